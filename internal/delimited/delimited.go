// Package delimited reads delimited text: CSV, TSV and similar formats. [Sniff]
// detects the separator, and a [Reader] reads the rows as a stream.
package delimited

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
)

// Limits of a row.
const (
	MaxCell    = 16 << 20 // bytes of one cell
	MaxRow     = 32 << 20 // bytes of the cells of one row
	MaxColumns = 16384    // maximum of a sheet
)

// chunk is the number of bytes to read at once, and the size of [Sniff]'s
// sample.
const chunk = 64 << 10

// A Reader reads delimited values leniently. It accepts quotes inside a cell, rows of
// different lengths, and lines that end with \n, \r\n or \r. Unlike a csv.Reader it
// keeps line ends in cells. It limits the length of a row while reading it.
type Reader struct {
	// LazyQuotes accepts a missing closing quotation mark: the cell extends to the
	// end of the text.
	LazyQuotes bool

	r        io.Reader
	comma    []byte
	buf      []byte
	pos, end int
	err      error // of r, found by lookahead
	rows     int
	text     []byte // of all cells in the row
	ends     []int  // by cell: its end in text
}

// NewReader returns a reader of UTF-8 text whose cells are separated by comma.
// Sniff detects the separator.
func NewReader(r io.Reader, comma rune) *Reader {
	return &Reader{r: r, comma: utf8.AppendRune(nil, comma), buf: make([]byte, chunk)}
}

// fill reads more data when all of buf has been consumed.
func (r *Reader) fill() (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err = r.r.Read(r.buf[:chunk])
	r.pos, r.end = 0, n
	return n, err
}

// atComma reports whether the separator is at buf[i]. It may read more data.
func (r *Reader) atComma(i int) bool {
	if r.buf[i] != r.comma[0] {
		return false
	}
	if more := i + len(r.comma) - len(r.buf); more > 0 {
		r.buf = append(r.buf, make([]byte, more)...)
	}
	for r.end-i < len(r.comma) && r.err == nil {
		var n int
		n, r.err = r.r.Read(r.buf[r.end : i+len(r.comma)])
		r.end += n
	}
	return bytes.HasPrefix(r.buf[i:r.end], r.comma)
}

// Rows returns the number of rows read.
func (r *Reader) Rows() int { return r.rows }

// Len returns the number of cells in the current row.
func (r *Reader) Len() int { return len(r.ends) }

// Cell returns the content of cell i of the current row, counted from 0, or nil
// if there is no such cell. It is valid until the next call of Next.
func (r *Reader) Cell(i int) []byte {
	switch {
	case i >= len(r.ends):
		return nil
	case i == 0:
		return r.text[:r.ends[0]]
	}
	return r.text[r.ends[i-1]:r.ends[i]]
}

// States of Next.
const (
	inRow    = iota // at the start of a row
	atCell          // at the start of a cell
	inCell          // inside an unquoted cell
	inQuotes        // inside a quoted cell
	atQuote         // after a quote in a quoted cell
)

// Next reads the next row that is not an empty line. It returns io.EOF at the
// end. It fails with [fileops.ErrLimit] if a row exceeds a limit, and with
// [fileops.ErrCorruptInput] if a quotation mark is missing.
func (r *Reader) Next() error {
	r.text, r.ends = r.text[:0], r.ends[:0]
	from, state := 0, inRow
	cell := func() {
		from = len(r.text)
		r.ends = append(r.ends, from)
	}
	for {
		if len(r.text) > MaxRow || len(r.text)-from > MaxCell {
			if state == inQuotes {
				return fileops.Fail(fileops.ErrLimit, nil, "row %d has a cell of more than %d MiB; its closing quotation mark may be missing", r.rows+1, MaxCell>>20)
			}
			return fileops.Fail(fileops.ErrLimit, nil, "a row in the file has more than the limit of %d MiB", MaxRow>>20)
		}
		if len(r.ends) >= MaxColumns { // and another cell starts
			return fileops.Fail(fileops.ErrLimit, nil, "the file has more than %d columns", MaxColumns)
		}
		if r.pos == r.end {
			n, err := r.fill()
			if n == 0 && err == nil {
				continue
			}
			switch {
			case n > 0:
			case !errors.Is(err, io.EOF):
				return err
			case state == inRow:
				return io.EOF
			case state == inQuotes && !r.LazyQuotes:
				return fileops.Fail(fileops.ErrCorruptInput, nil, "row %d has a cell that starts with a quotation mark, but does not end with one", r.rows+1)
			default:
				cell()
				r.rows++
				return nil
			}
		}
		c := r.buf[r.pos]
		switch state {
		case inRow:
			if c == '\n' || c == '\r' {
				r.pos++ // an empty line, or the rest of a line end
				continue
			}
			fallthrough
		case atCell:
			if c == '"' {
				r.pos++
				state = inQuotes
				continue
			}
			state = inCell
			fallthrough
		case inCell:
			i := r.pos
			for ; i < r.end; i++ {
				if c := r.buf[i]; c == '\n' || c == '\r' || c == r.comma[0] && r.atComma(i) {
					break
				}
			}
			r.text = append(r.text, r.buf[r.pos:i]...)
			if r.pos = i; i == r.end {
				continue
			}
		case inQuotes:
			i := bytes.IndexByte(r.buf[r.pos:r.end], '"')
			if i < 0 {
				r.text = append(r.text, r.buf[r.pos:r.end]...)
				r.pos = r.end
				continue
			}
			r.text = append(r.text, r.buf[r.pos:r.pos+i]...)
			r.pos += i + 1
			state = atQuote
			continue
		case atQuote:
			if c == '"' {
				r.text = append(r.text, c)
				r.pos++
				state = inQuotes
				continue
			}
			if c != '\n' && c != '\r' && !r.atComma(r.pos) {
				state = inCell // text after the closing quote
				continue
			}
		}
		// The cell ends here.
		cell()
		if c := r.buf[r.pos]; c != '\n' && c != '\r' {
			r.pos += len(r.comma)
			state = atCell
			continue
		}
		r.pos++
		r.rows++
		return nil
	}
}

// Sniff returns the separator of a UTF-8 text, and a reader of the text. The first line
// can declare the separator, as in files for Excel ("sep=;"). Such a line takes
// precedence over known, and the reader omits it. If known is 0 and there is no such
// line, Sniff detects the separator.
func Sniff(text io.Reader, known byte) (comma byte, rest io.Reader, err error) {
	sample := make([]byte, chunk)
	n, err := io.ReadFull(text, sample)
	whole := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !whole {
		return 0, nil, err
	}
	sample = sample[:n]
	rest = io.MultiReader(bytes.NewReader(sample), text)
	if line, after, ok := bytes.Cut(sample, []byte("\n")); ok {
		// Excel's separator line.
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 5 && strings.EqualFold(string(line[:4]), "sep=") && line[4] < 0x80 && line[4] != '"' && line[4] != '\r' {
			return line[4], io.MultiReader(bytes.NewReader(after), text), nil
		}
	}
	if known != 0 {
		return known, rest, nil
	}
	if i := bytes.LastIndexByte(sample, '\n'); i > 0 && !whole {
		sample = sample[:i]
	}
	return separator(sample), rest, nil
}

// separator returns the common separator that splits most rows into the same number
// of cells. The default is a comma.
func separator(sample []byte) byte {
	best, bestScore := byte(','), 0.0
	for _, c := range []byte(",;\t|") {
		r := NewReader(bytes.NewReader(sample), rune(c))
		counts, rows := make(map[int]int), 0
		for ; rows < 500 && r.Next() == nil; rows++ {
			counts[len(r.ends)]++
		}
		for n, k := range counts {
			if n < 2 {
				continue
			}
			// The number of consistent rows counts more than the number of cells.
			share := float64(k) / float64(rows)
			if s := share*share*share + 0.01*float64(min(n, 10)); s > bestScore {
				best, bestScore = c, s
			}
		}
	}
	return best
}
