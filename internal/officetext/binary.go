package officetext

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strings"

	"github.com/filewright/filewright/internal/compound"
)

// readDOC returns the text of a Word document ([MS-DOC] 2.4.1): of the main document, or
// with all, of all its documents. Text that is formatted as hidden or deleted does not
// count, nor do instructions of fields. It is empty for versions before Word 97.
func readDOC(ctx context.Context, r io.ReaderAt, size int64, all bool) string {
	le := binary.LittleEndian
	b := stream(r, size, "worddocument")
	const fib = 0x1aa // up to lcbClx
	if len(b) < fib || le.Uint16(b) != 0xa5ec || le.Uint16(b[2:]) < 0xc1 {
		return ""
	}
	table := stream(r, size, []string{"0table", "1table"}[b[11]>>1&1])
	main := int64(le.Uint32(b[0x4c:])) // ccpText
	pieces := pieceTable(section(table, le.Uint32(b[0x1a2:]), le.Uint32(b[0x1a6:])))
	var hidden []span
	if !all {
		hidden = hiddenRuns(ctx, b, section(table, le.Uint32(b[0xfa:]), le.Uint32(b[0xfe:])))
	}
	var out strings.Builder
	for _, p := range pieces {
		if ctx.Err() != nil || out.Len() > maxResult {
			return ""
		}
		n := p.length
		if !all {
			n = min(n, main)
			main -= n
		}
		width := int64(2)
		if p.bytes {
			width = 1
		}
		if n <= 0 || p.offset > int64(len(b)) || n*width > int64(len(b))-p.offset {
			continue
		}
		decode := utf16Text
		if p.bytes {
			decode = latinText
		}
		for _, s := range visible(span{p.offset, p.offset + n*width}, hidden) {
			out.WriteString(decode(b[s.from:s.to]))
		}
	}
	if out.Len() == 0 {
		return ""
	}
	return withoutFields(out.String())
}

// section returns a part of the table stream.
func section(b []byte, offset, size uint32) []byte {
	if uint64(offset)+uint64(size) > uint64(len(b)) {
		return nil
	}
	return b[offset : offset+size]
}

// A piece is a part of the text in the stream.
type piece struct {
	offset, length int64 // in bytes, in characters
	bytes          bool  // one byte for each character
}

// pieceTable reads a Clx: [MS-DOC] 2.9.38.
func pieceTable(b []byte) (pieces []piece) {
	le := binary.LittleEndian
	for len(b) >= 3 && b[0] == 1 { // Prc
		n := 3 + int(le.Uint16(b[1:]))
		if n > len(b) {
			return nil
		}
		b = b[n:]
	}
	if len(b) < 5 || b[0] != 2 {
		return nil
	}
	n := int(le.Uint32(b[1:]))
	if b = b[5:]; n < 4 || n > len(b) {
		return nil
	}
	count := (n - 4) / 12
	for i := range count {
		from, to := int64(le.Uint32(b[4*i:])), int64(le.Uint32(b[4*i+4:]))
		fc := le.Uint32(b[4*(count+1)+8*i+2:])
		p := piece{offset: int64(fc & 0x3fffffff), length: to - from, bytes: fc&(1<<30) != 0}
		if p.bytes {
			p.offset /= 2
		}
		pieces = append(pieces, p)
	}
	return pieces
}

// A span is a range of bytes of the stream.
type span struct{ from, to int64 }

// hiddenRuns returns the text with direct formatting as hidden or deleted, in order
// ([MS-DOC] 2.9.33 ChpxFkp).
func hiddenRuns(ctx context.Context, b, bins []byte) (runs []span) {
	const page = 512
	le := binary.LittleEndian
	count := (len(bins) - 4) / 8
	for i := range max(count, 0) {
		if ctx.Err() != nil {
			return nil
		}
		offset := int64(le.Uint32(bins[4*(count+1)+4*i:])&0x3fffff) * page
		if offset+page > int64(len(b)) {
			continue
		}
		p := b[offset : offset+page]
		n := int(p[page-1])
		if 5*n+4 > page-1 {
			continue
		}
		for k := range n {
			at := 2 * int(p[4*(n+1)+k])
			if at == 0 || at+1+int(p[at]) > page {
				continue
			}
			if isHidden(p[at+1 : at+1+int(p[at])]) {
				runs = append(runs, span{int64(le.Uint32(p[4*k:])), int64(le.Uint32(p[4*k+4:]))})
			}
		}
	}
	slices.SortFunc(runs, func(a, b span) int { return int(a.from - b.from) })
	return runs
}

// isHidden reports whether character properties have sprmCFVanish, sprmCFSpecVanish or
// sprmCFRMarkDel ([MS-DOC] 2.6.1).
func isHidden(props []byte) bool {
	for len(props) >= 3 {
		op := binary.LittleEndian.Uint16(props)
		switch op {
		case 0x083c, 0x0818, 0x0800:
			if props[2] != 0 {
				return true
			}
		}
		n := map[uint16]int{0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}[op>>13]
		if op>>13 == 6 {
			n = 1 + int(props[2])
		}
		if 2+n > len(props) {
			return false
		}
		props = props[2+n:]
	}
	return false
}

// visible returns the parts of s outside the hidden spans, which are in order.
func visible(s span, hidden []span) (out []span) {
	i, _ := slices.BinarySearchFunc(hidden, s.from, func(h span, from int64) int { return int(h.to - from) })
	for ; i < len(hidden) && hidden[i].from < s.to; i++ {
		if h := hidden[i]; h.to > s.from {
			if h.from > s.from {
				out = append(out, span{s.from, h.from})
			}
			s.from = max(s.from, h.to)
		}
	}
	if s.from < s.to {
		out = append(out, s)
	}
	return out
}

// withoutFields removes the instructions of fields, between the characters 0x13 and 0x14
// or 0x15, and other special characters ([MS-DOC] 2.8.25).
func withoutFields(s string) string {
	var b strings.Builder
	var results []bool // for each open field, whether its result has started
	hidden := 0        // open fields without a result so far
	for _, r := range s {
		switch r {
		case 0x13:
			results = append(results, false)
			hidden++
		case 0x14, 0x15:
			if n := len(results); n > 0 {
				if !results[n-1] {
					results[n-1] = true
					hidden--
				}
				if r == 0x15 {
					results = results[:n-1]
				}
			}
		default:
			if hidden == 0 {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// Records of a presentation ([MS-PPT] 2.13.24).
const (
	pptDocument  = 0x03e8
	pptSlide     = 0x03ee
	pptSlideInfo = 0x03f9
	pptPersist   = 0x03f3
	pptList      = 0x0ff0
	pptUnicode   = 0x0fa0
	pptBytes     = 0x0fa8
	pptUserEdit  = 0x0ff5
	pptDirectory = 0x1772
)

// pptRecords calls do for the records of b. do returns whether to read the children of
// a container.
func pptRecords(ctx context.Context, b []byte, depth int, do func(kind, instance int, data []byte) bool) {
	le := binary.LittleEndian
	for len(b) >= 8 && depth < 20 && ctx.Err() == nil {
		version, kind, size := le.Uint16(b), int(le.Uint16(b[2:])), int64(le.Uint32(b[4:]))
		if size > int64(len(b)-8) {
			return
		}
		d := b[8 : 8+size]
		if do(kind, int(version>>4), d) && version&15 == 15 {
			pptRecords(ctx, d, depth+1, do)
		}
		b = b[8+size:]
	}
}

// pptText returns the text of a text atom, and "" for other records.
func pptText(kind int, d []byte) string {
	switch kind {
	case pptUnicode:
		return utf16Text(d) + "\n"
	case pptBytes:
		return byteText(d) + "\n"
	}
	return ""
}

// readPPT returns the text of the slides of a presentation, or with all, every text in
// the file. It is empty if a slide is hidden, because results may or may not have it.
func readPPT(ctx context.Context, r io.ReaderAt, size int64, all bool) string {
	b := stream(r, size, "powerpoint document")
	var out strings.Builder
	if all {
		pptRecords(ctx, b, 0, func(kind, _ int, d []byte) bool {
			out.WriteString(pptText(kind, d))
			return true
		})
		return out.String()
	}
	objects, document := pptObjects(b, stream(r, size, "current user"))
	if document == nil {
		return ""
	}
	le := binary.LittleEndian
	hidden := false
	var slides []uint32
	pptRecords(ctx, document, 0, func(kind, instance int, d []byte) bool {
		if kind != pptList {
			return kind == pptDocument
		}
		if instance != 0 { // masters, notes
			return false
		}
		pptRecords(ctx, d, 0, func(kind, _ int, d []byte) bool {
			if kind == pptPersist && len(d) >= 4 {
				slides = append(slides, le.Uint32(d))
			}
			out.WriteString(pptText(kind, d))
			return false
		})
		return false
	})
	seen := map[uint32]bool{}
	for _, id := range slides {
		at, ok := objects[id]
		if !ok || seen[id] || int64(at)+8 > int64(len(b)) {
			continue
		}
		seen[id] = true
		one := b[at:]
		size := int64(le.Uint32(one[4:]))
		if le.Uint16(one[2:]) != pptSlide || size > int64(len(one)-8) {
			continue
		}
		pptRecords(ctx, one[:8+size], 0, func(kind, _ int, d []byte) bool {
			if kind == pptSlideInfo && len(d) >= 12 && le.Uint16(d[10:])&4 != 0 { // fHidden: [MS-PPT] 2.6.6
				hidden = true
			}
			out.WriteString(pptText(kind, d))
			return true
		})
	}
	if hidden {
		return ""
	}
	return out.String()
}

// pptObjects returns the offsets of the live objects, and the document container
// ([MS-PPT] 2.1.2). A file has older versions of objects beside them.
func pptObjects(b, user []byte) (objects map[uint32]uint32, document []byte) {
	le := binary.LittleEndian
	if len(user) < 20 {
		return nil, nil
	}
	objects = map[uint32]uint32{}
	root := uint32(0)
	edit := le.Uint32(user[16:]) // CurrentUserAtom.offsetToCurrentEdit
	for n := 0; n < 1000; n++ {
		if int64(edit)+36 > int64(len(b)) || le.Uint16(b[edit+2:]) != pptUserEdit {
			break
		}
		d := b[edit+8:]
		if n == 0 {
			root = le.Uint32(d[16:])
		}
		dir := le.Uint32(d[12:])
		if int64(dir)+8 > int64(len(b)) || le.Uint16(b[dir+2:]) != pptDirectory {
			break
		}
		entries := b[dir+8:]
		entries = entries[:min(int64(len(entries)), int64(le.Uint32(b[dir+4:])))]
		for len(entries) >= 4 {
			head := le.Uint32(entries)
			first, count := head&0xfffff, int(head>>20)
			entries = entries[4:]
			for i := 0; i < count && len(entries) >= 4; i++ {
				if _, ok := objects[first+uint32(i)]; !ok { // newer edits come first
					objects[first+uint32(i)] = le.Uint32(entries)
				}
				entries = entries[4:]
			}
		}
		older := le.Uint32(d[8:])
		if older == 0 || older >= edit {
			break
		}
		edit = older
	}
	at, ok := objects[root]
	if !ok || int64(at)+8 > int64(len(b)) {
		return nil, nil
	}
	document = b[at:]
	size := int64(le.Uint32(document[4:]))
	if size > int64(len(document)-8) {
		return nil, nil
	}
	return objects, document[:8+size]
}

// isOLE reports whether b starts like a compound file.
func isOLE(b []byte) bool { return bytes.HasPrefix(b, []byte(compound.Magic)) }
