package dataops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A csvReader reads separated values as they come: quotes inside a cell and
// rows of different length are taken as they are, and lines may end with \n,
// \r\n or \r. Unlike a csv.Reader it keeps line ends in cells and limits the
// length of a row.
type csvReader struct {
	r        io.Reader
	comma    byte
	buf      []byte
	pos, end int
	rows     int
	row      row
}

func newCSVReader(r io.Reader, comma byte) *csvReader {
	return &csvReader{r: r, comma: comma, buf: make([]byte, chunk)}
}

// States of next.
const (
	inRow    = iota // at the start of a row
	atCell          // at the start of a cell
	inCell          // inside one
	inQuotes        // inside one that began with a quote
	atQuote         // after a quote in there
)

// next reads a row that is not an empty line into r.row. It returns io.EOF at
// the end.
func (r *csvReader) next() error {
	r.row.text, r.row.cells = r.row.text[:0], r.row.cells[:0]
	from, state := 0, inRow
	cell := func() {
		r.row.cells = append(r.row.cells, span{from, len(r.row.text)})
		from = len(r.row.text)
	}
	for {
		if len(r.row.text) > maxRow || len(r.row.text)-from > maxCell {
			if state == inQuotes {
				return fileops.Fail(fileops.ErrLimit, nil, "row %d has a cell with more than %d MiB; perhaps a quotation mark is missing at its end", r.rows+1, maxCell>>20)
			}
			return tooLong("a row")
		}
		if len(r.row.cells) >= maxColumns { // and another one begins
			return tooManyNames()
		}
		if r.pos == r.end {
			n, err := r.r.Read(r.buf)
			r.pos, r.end = 0, n
			if n == 0 && err == nil {
				continue
			}
			switch {
			case n > 0:
			case !errors.Is(err, io.EOF):
				return err
			case state == inRow:
				return io.EOF
			case state == inQuotes:
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
			for i < r.end && r.buf[i] != r.comma && r.buf[i] != '\n' && r.buf[i] != '\r' {
				i++
			}
			r.row.text = append(r.row.text, r.buf[r.pos:i]...)
			if r.pos = i; i == r.end {
				continue
			}
		case inQuotes:
			i := bytes.IndexByte(r.buf[r.pos:r.end], '"')
			if i < 0 {
				r.row.text = append(r.row.text, r.buf[r.pos:r.end]...)
				r.pos = r.end
				continue
			}
			r.row.text = append(r.row.text, r.buf[r.pos:r.pos+i]...)
			r.pos += i + 1
			state = atQuote
			continue
		case atQuote:
			if c == '"' {
				r.row.text = append(r.row.text, c)
				r.pos++
				state = inQuotes
				continue
			}
			if c != r.comma && c != '\n' && c != '\r' {
				state = inCell // text after the quotes
				continue
			}
		}
		// The cell ends here.
		c = r.buf[r.pos]
		r.pos++
		cell()
		if c == r.comma {
			state = atCell
			continue
		}
		r.rows++
		return nil
	}
}

// dialect returns the separator of a text, and a reader of the text without a
// line that names it.
func dialect(text io.Reader, from format.Format, comma byte) (byte, io.Reader, error) {
	sample := make([]byte, chunk)
	n, err := io.ReadFull(text, sample)
	whole := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !whole {
		return 0, nil, err
	}
	sample = sample[:n]
	rest := io.MultiReader(bytes.NewReader(sample), text)
	if line, after, ok := bytes.Cut(sample, []byte("\n")); ok {
		// Excel's own way to say it.
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 5 && strings.EqualFold(string(line[:4]), "sep=") && line[4] < 0x80 && line[4] != '"' && line[4] != '\r' {
			return line[4], io.MultiReader(bytes.NewReader(after), text), nil
		}
	}
	if from == format.TSV {
		return '\t', rest, nil
	}
	if comma != 0 {
		return comma, rest, nil
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
		r := newCSVReader(bytes.NewReader(sample), c)
		counts, rows := make(map[int]int), 0
		for ; rows < 500 && r.next() == nil; rows++ {
			counts[len(r.row.cells)]++
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

// toJSON writes the rows of src as an array of objects, one on a line.
func toJSON(src *source, w io.Writer, from format.Format, comma byte, typed bool) error {
	comma, text, err := dialect(src.text(), from, comma)
	if err != nil {
		return err
	}
	r := newCSVReader(text, comma)
	err = r.next()
	if errors.Is(err, io.EOF) {
		_, err = io.WriteString(w, "[]\n")
		return err
	}
	if err != nil {
		return err
	}
	names := make([]string, len(r.row.cells))
	for i := range names {
		if n := r.row.get(i); len(bytes.TrimSpace(n)) > 0 {
			names[i] = string(n)
		}
	}
	bytesOfNames := 0
	uniqueNames(names, false)
	taken := make(map[string]bool, len(names))
	keys := make([][]byte, 0, len(names)) // names as JSON
	for _, n := range names {
		taken[n] = true
		keys = append(keys, appendJSON(nil, []byte(n)))
		if bytesOfNames += len(n); bytesOfNames > maxNames {
			return tooManyNames()
		}
	}
	var buf []byte
	sep := "[\n  {"
	for {
		if err := r.next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		n := len(r.row.cells)
		for n > len(names) && len(r.row.get(n-1)) == 0 {
			n-- // empty cells beyond the last name
		}
		for n > len(keys) {
			// A cell without a name.
			name := fmt.Sprintf("column_%d", len(keys)+1)
			for k := 2; taken[name]; k++ {
				name = fmt.Sprintf("column_%d_%d", len(keys)+1, k)
			}
			taken[name] = true
			keys = append(keys, appendJSON(nil, []byte(name)))
		}
		buf = append(buf[:0], sep...)
		sep = ",\n  {"
		for i, key := range keys[:max(n, len(names))] {
			if i > 0 {
				buf = append(buf, ", "...)
			}
			buf = append(append(buf, key...), ": "...)
			cell := r.row.get(i)
			if word := literal(cell); typed && word != "" {
				buf = append(buf, word...)
			} else if typed && isPlainNumber(cell) {
				buf = append(buf, cell...)
			} else {
				buf = appendJSON(buf, cell)
			}
		}
		buf = append(buf, '}')
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	end := "\n]\n"
	if r.rows == 1 {
		end = "[]\n"
	}
	_, err = io.WriteString(w, end)
	return err
}

// literal returns the word of JSON that a cell stands for, or "".
func literal(cell []byte) string {
	switch string(cell) {
	case "":
		return "null"
	case "true":
		return "true"
	case "false":
		return "false"
	}
	return ""
}

// isPlainNumber tells whether a cell is a number of JSON that programs read
// without losing a digit.
func isPlainNumber(cell []byte) bool {
	if len(cell) > 40 || !isNumber(cell) {
		return false
	}
	mantissa := cell
	if i := bytes.IndexAny(cell, "eE"); i >= 0 {
		mantissa = cell[:i]
		f, err := strconv.ParseFloat(string(cell), 64)
		if err != nil || f == 0 && bytes.ContainsAny(mantissa, "123456789") {
			return false
		}
	}
	digits := 0
	for _, c := range mantissa {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return digits <= 15
}

// toTable writes the rows of src as they are; the first one is the header.
func toTable(src *source, w tableWriter, from format.Format, comma byte) error {
	comma, text, err := dialect(src.text(), from, comma)
	if err != nil {
		return err
	}
	// Markdown has as many columns as its header, so that the widest row must be
	// known before.
	r, width := newCSVReader(text, comma), 0
	for ; err == nil; err = r.next() {
		width = max(width, len(r.row.cells))
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if _, text, err = dialect(src.text(), from, comma); err != nil {
		return err
	}
	r = newCSVReader(text, comma)
	var cells [][]byte
	for first := true; ; first = false {
		err := r.next()
		switch {
		case errors.Is(err, io.EOF) && first:
			return fileops.Fail(fileops.ErrUnsupportedInput, errNoTable, "the file has no rows")
		case errors.Is(err, io.EOF):
			return w.close()
		case err != nil:
			return err
		}
		cells = cells[:0]
		for i := range len(r.row.cells) {
			cells = append(cells, r.row.get(i))
		}
		if first {
			if _, same := w.(*csvWriter); !same {
				for len(cells) < width {
					cells = append(cells, nil)
				}
			}
			err = w.start(cells, width)
		} else {
			err = w.row(cells)
		}
		if err != nil {
			return err
		}
	}
}
