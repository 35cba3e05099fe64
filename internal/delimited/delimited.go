// Package delimited reads text of delimited values: CSV, TSV and what else looks
// like them.
package delimited

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
)

// Limits of a row.
const (
	MaxCell    = 16 << 20 // bytes of one cell
	MaxRow     = 32 << 20 // bytes of the cells of one row
	MaxColumns = 16384    // what a sheet can hold
)

// chunk is how many bytes are read at once, and how many [Sniff] looks at.
const chunk = 64 << 10

// A Reader reads delimited values as they come: quotes inside a cell and rows of
// different length are taken as they are, and lines may end with \n, \r\n or \r.
// Unlike a csv.Reader it keeps line ends in cells and limits the length of a
// row while it reads it.
type Reader struct {
	// LazyQuotes ends a cell whose closing quotation mark is missing at the end of the
	// text, instead of failing.
	LazyQuotes bool

	r        io.Reader
	comma    []byte
	buf      []byte
	pos, end int
	err      error // of r, met while looking ahead
	rows     int
	text     []byte // of all cells of the row
	ends     []int  // of each cell in text
}

// NewReader returns a reader of UTF-8 text whose cells are separated by comma.
// Sniff finds out which one that is.
func NewReader(r io.Reader, comma rune) *Reader {
	return &Reader{r: r, comma: utf8.AppendRune(nil, comma), buf: make([]byte, chunk)}
}

// fill reads more after all of buf has been used.
func (r *Reader) fill() (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err = r.r.Read(r.buf[:chunk])
	r.pos, r.end = 0, n
	return n, err
}

// atComma reports whether the separator is at buf[i]. It may read a little more.
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

// Rows returns how many rows have been read.
func (r *Reader) Rows() int { return r.rows }

// Len returns the number of cells in the row.
func (r *Reader) Len() int { return len(r.ends) }

// Cell returns the content of cell i of the row, counted from 0; nil if there is
// no such cell. It is valid until Next is called.
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
	inCell          // inside one
	inQuotes        // inside one that began with a quote
	atQuote         // after a quote in there
)

// Next reads the next row that is not an empty line. It returns io.EOF at the
// end, and fails with [fileops.ErrLimit] where a row exceeds a limit and with
// [fileops.ErrCorruptInput] where a quotation mark is missing.
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
				return fileops.Fail(fileops.ErrLimit, nil, "row %d has a cell with more than %d MiB; perhaps a quotation mark is missing at its end", r.rows+1, MaxCell>>20)
			}
			return fileops.Fail(fileops.ErrLimit, nil, "a row in the file has more than %d MiB, which is the limit", MaxRow>>20)
		}
		if len(r.ends) >= MaxColumns { // and another one begins
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
				return fileops.Fail(fileops.ErrCorruptInput, nil, "row %d has a cell that begins with a quotation mark, but does not end with one", r.rows+1)
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
				r.pos++ // an empty line, or what is left of a line end
				continue
			}
			state = atCell
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
				state = inCell // text after the quotes
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

// Sniff returns the separator of a text in UTF-8, and a reader of the text without
// a line that names it, which Excel writes ("sep=;"). known is the separator if
// there is no such line; 0 if that is to be found out.
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
		// Excel's own way to say it.
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

// separator returns the one of the usual separators that cuts most rows into
// the same number of cells, or a comma.
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
			// How many rows agree counts more than how many cells they have.
			share := float64(k) / float64(rows)
			if s := math.Pow(share, 3) + 0.01*float64(min(n, 10)); s > bestScore {
				best, bestScore = c, s
			}
		}
	}
	return best
}
