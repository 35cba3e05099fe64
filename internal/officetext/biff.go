package officetext

import (
	"context"
	"encoding/binary"
	"strings"
)

// Records of a workbook ([MS-XLS] 2.3.1).
const (
	biffEOF      = 0x0a
	biffName     = 0x18
	biffFilePass = 0x2f
	biffContinue = 0x3c
	biffColumns  = 0x7d
	biffSheet    = 0x85
	biffMerged   = 0xe5
	biffStrings  = 0xfc
	biffLabel    = 0xfd
	biffRow      = 0x208
	biffNumber   = 0x203
	biffRK       = 0x27e
	biffRKs      = 0xbd
	biffBOF      = 0x809
	biffFormat   = 0x41e
	biffStyle    = 0xe0
)

// records calls do for each record of b.
func records(ctx context.Context, b []byte, do func(kind int, data []byte) bool) {
	for n := 0; len(b) >= 4; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return
		}
		kind, size := int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
		if 4+size > len(b) || !do(kind, b[4:4+size]) {
			return
		}
		b = b[4+size:]
	}
}

// A biffBook is what the globals of a workbook contain.
type biffBook struct {
	sheets  []biffEntry
	strings []string
	blank   map[int]bool // cell styles that may show no value
	failed  bool
}

// A biffEntry is a BoundSheet8 record: [MS-XLS] 2.4.28.
type biffEntry struct {
	offset int
	shows  bool
}

// readGlobals reads the globals of a workbook of Excel 97 or later.
func readGlobals(ctx context.Context, b []byte) (book biffBook) {
	le := binary.LittleEndian
	book.blank = map[int]bool{}
	formats := map[uint16]bool{}
	var parts [][]byte // the string table and its continuations
	styles, last, first := 0, 0, true
	areas := false
	records(ctx, b, func(kind int, d []byte) bool {
		switch {
		case first:
			first = false
			book.failed = kind != biffBOF || len(d) < 2 || le.Uint16(d) != 0x0600
		case kind == biffFilePass:
			book.failed = true
		case kind == biffEOF:
			return false
		case kind == biffSheet && len(d) >= 6:
			book.sheets = append(book.sheets, biffEntry{int(le.Uint32(d)), d[4]&3 == 0 && d[5] == 0})
		case kind == biffStrings || kind == biffContinue && last == biffStrings:
			parts = append(parts, d)
			last = biffStrings
			return !book.failed
		case kind == biffName && len(d) >= 16:
			// fBuiltin, and the name of the print area: [MS-XLS] 2.4.150.
			areas = areas || d[0]&0x20 != 0 && d[3] == 1 && d[15] == 6
		case kind == biffFormat && len(d) >= 5:
			code := string(d[5:])
			formats[le.Uint16(d)] = strings.Contains(strings.ReplaceAll(code, "\x00", ""), ";;")
		case kind == biffStyle && len(d) >= 4:
			book.blank[styles] = formats[le.Uint16(d[2:])]
			styles++
		}
		last = kind
		return !book.failed
	})
	book.strings = biffTable(parts)
	if areas { // which sheets they belong to is not read
		for i := range book.sheets {
			book.sheets[i].shows = false
		}
	}
	return book
}

// A biffReader reads the string table, whose strings continue in the next record. There
// the characters of a string start with a new byte of flags ([MS-XLS] 2.5.293).
type biffReader struct {
	parts [][]byte
	short bool // end of the table
}

// bytes returns the next n bytes, which may be in several records.
func (r *biffReader) bytes(n int) []byte {
	var out []byte
	for {
		if len(r.parts) == 0 {
			r.short = true
			return nil
		}
		p := r.parts[0]
		if len(out) == 0 && n <= len(p) {
			r.parts[0] = p[n:]
			return p[:n]
		}
		k := min(n-len(out), len(p))
		out = append(out, p[:k]...)
		if r.parts[0] = p[k:]; len(out) == n {
			return out
		}
		r.parts = r.parts[1:]
	}
}

// text returns n characters.
func (r *biffReader) text(n int, wide bool) string {
	var b strings.Builder
	for {
		if len(r.parts) == 0 {
			r.short = true
			return ""
		}
		p := r.parts[0]
		width := 1
		if wide {
			width = 2
		}
		k := min(n, len(p)/width)
		if wide {
			b.WriteString(utf16Text(p[:2*k]))
		} else {
			b.WriteString(byteText(p[:k]))
		}
		r.parts[0] = p[k*width:]
		if n -= k; n == 0 {
			return b.String()
		}
		if r.parts = r.parts[1:]; len(r.parts) > 0 && len(r.parts[0]) > 0 {
			wide = r.parts[0][0]&1 != 0
			r.parts[0] = r.parts[0][1:]
		}
	}
}

// biffTable reads the SST record: [MS-XLS] 2.4.265.
func biffTable(parts [][]byte) (all []string) {
	le := binary.LittleEndian
	r := &biffReader{parts: parts}
	r.bytes(8)
	for !r.short {
		head := r.bytes(3)
		if r.short {
			break
		}
		n, flags := int(le.Uint16(head)), head[2]
		runs, extra := 0, 0
		if flags&8 != 0 {
			if d := r.bytes(2); d != nil {
				runs = int(le.Uint16(d))
			}
		}
		if flags&4 != 0 {
			if d := r.bytes(4); d != nil {
				extra = int(le.Uint32(d) & 0x7fffffff)
			}
		}
		s := ""
		if n > 0 && !r.short {
			s = r.text(n, flags&1 != 0)
		}
		all = append(all, s)
		if !r.short && extra > 1<<20 {
			break
		}
		if !r.short && 4*runs+extra > 0 {
			r.bytes(4*runs + extra)
		}
	}
	return all
}

// readXLS reads the string cells of a workbook that show. A workbook with print ranges,
// or of a version before Excel 97, has none.
func readXLS(ctx context.Context, b []byte, firstSheet bool) (t Text) {
	book := readGlobals(ctx, b)
	if book.failed {
		return t
	}
	if firstSheet && len(book.sheets) > 1 {
		book.sheets = book.sheets[:1]
	}
	var out strings.Builder
	for i, e := range book.sheets {
		if i >= 1000 {
			break
		}
		if !e.shows || e.offset < 0 || e.offset >= len(b) {
			continue
		}
		s := &sheet{hiddenRows: map[int]bool{}}
		depth := 0
		records(ctx, b[e.offset:], func(kind int, d []byte) bool {
			switch {
			case kind == biffBOF:
				depth++
			case kind == biffEOF:
				depth--
				return depth > 0
			case depth > 1: // a chart
			default:
				s.record(book, kind, d)
			}
			return true
		})
		s.shown(&t, &out)
	}
	t.Text = out.String()
	return t
}

// record reads a record of the sheet itself. book has the strings, and which formats show nothing.
func (s *sheet) record(book biffBook, kind int, d []byte) {
	le := binary.LittleEndian
	at := func(d []byte) cell {
		return cell{row: int(le.Uint16(d)), column: int(le.Uint16(d[2:]))}
	}
	switch {
	case kind == biffColumns && len(d) >= 10:
		if le.Uint16(d[8:])&1 != 0 || le.Uint16(d[4:]) == 0 {
			s.hiddenColumns = append(s.hiddenColumns, area{0, int(le.Uint16(d)), 1 << 30, int(le.Uint16(d[2:]))})
		}
	case kind == biffRow && len(d) >= 14:
		if d[12]&0x20 != 0 || le.Uint16(d[6:])&0x7fff == 0 {
			s.hiddenRows[int(le.Uint16(d))] = true
		}
	case kind == biffLabel && len(d) >= 10:
		if n := int(le.Uint32(d[6:])); n >= 0 && n < len(book.strings) && !book.blank[int(le.Uint16(d[4:]))] {
			c := at(d)
			c.text = book.strings[n]
			s.cells = append(s.cells, c)
		}
	case (kind == biffNumber || kind == biffRK) && len(d) >= 6:
		if !book.blank[int(le.Uint16(d[4:]))] {
			s.numbers = append(s.numbers, at(d))
		}
	case kind == biffRKs && len(d) >= 6:
		for k := 0; 4+6*k+8 <= len(d); k++ {
			if !book.blank[int(le.Uint16(d[4+6*k:]))] {
				c := at(d)
				c.column += k
				s.numbers = append(s.numbers, c)
			}
		}
	case kind == biffMerged && len(d) >= 2:
		for d = d[2:]; len(d) >= 8; d = d[8:] {
			s.merged = append(s.merged, area{int(le.Uint16(d)), int(le.Uint16(d[4:])), int(le.Uint16(d[2:])), int(le.Uint16(d[6:]))})
		}
	}
}

// wholeXLS returns the texts of all cells. Several cells may share a string, which is in
// the result once for each.
func wholeXLS(ctx context.Context, b []byte) string {
	book := readGlobals(ctx, b)
	var out strings.Builder
	records(ctx, b, func(kind int, d []byte) bool {
		if kind == biffLabel && len(d) >= 10 {
			if n := int(binary.LittleEndian.Uint32(d[6:])); n >= 0 && n < len(book.strings) && out.Len() < maxResult {
				out.WriteString(book.strings[n])
				out.WriteByte('\n')
			}
		}
		return true
	})
	return out.String()
}
