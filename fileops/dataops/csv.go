package dataops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/delimited"
)

// dialect returns the separator of a text, and a reader of the text without a line
// that declares it. If comma is not 0, it is the separator.
func dialect(text io.Reader, from format.Format, comma byte) (byte, io.Reader, error) {
	if from == format.TSV {
		comma = '\t'
	}
	return delimited.Sniff(text, comma)
}

// A jsonLayout says how rows become JSON.
type jsonLayout struct {
	typed  bool
	header bool   // the first row names the columns
	shape  string // objects, arrays or lines
}

// Values of the parameter shape.
const (
	objects = "objects"
	arrays  = "arrays"
	lines   = "lines"
)

// toJSON writes the rows of src as an array, one row per line.
func toJSON(src *source, w io.Writer, from format.Format, comma byte, l jsonLayout) error {
	comma, text, err := dialect(src.text(), from, comma)
	if err != nil {
		return err
	}
	var types []columnType
	if l.typed {
		src.passes = 2
		if types, err = typesOf(delimited.NewReader(text, rune(comma)), l.header); err != nil {
			return err
		}
		if _, text, err = dialect(src.text(), from, comma); err != nil {
			return err
		}
	}
	return writeRecords(delimited.NewReader(text, rune(comma)), w, types, l)
}

// A columnType is the JSON type of the cells of a column.
type columnType int

const (
	unknownColumn columnType = iota // only empty cells
	numberColumn
	booleanColumn
	textColumn
)

// typesOf returns the types of all columns. header means that the first row names the
// columns.
func typesOf(r rowReader, header bool) (types []columnType, err error) {
	for {
		err := r.Next()
		if errors.Is(err, io.EOF) {
			return types, nil
		}
		if err != nil {
			return nil, err
		}
		if header && r.Rows() == 1 {
			continue
		}
		for i := range r.Len() {
			if i == len(types) {
				types = append(types, unknownColumn)
			}
			cell, kind := r.Cell(i), textColumn
			switch {
			case len(cell) == 0:
				continue
			case string(cell) == "true", string(cell) == "false":
				kind = booleanColumn
			case isPlainNumber(cell):
				kind = numberColumn
			}
			if types[i] != unknownColumn && types[i] != kind {
				kind = textColumn
			}
			types[i] = kind
		}
	}
}

// A rowReader reads rows of cells, like a [delimited.Reader].
type rowReader interface {
	Next() error
	Rows() int
	Len() int
	Cell(i int) []byte
}

// writeRecords writes rows as an array, one row per line, or as JSON Lines. If types is
// nil, all cells become strings.
func writeRecords(r rowReader, w io.Writer, types []columnType, l jsonLayout) error {
	begin, between, end := "[\n  ", ",\n  ", "\n]\n"
	if l.shape == lines {
		begin, between, end = "", "\n", "\n"
	}
	err := r.Next()
	if errors.Is(err, io.EOF) {
		if l.shape != lines {
			_, err = io.WriteString(w, "[]\n")
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	var names columnNames
	if err := names.read(r, l.header); err != nil {
		return err
	}
	var buf []byte
	sep := begin
	for first := true; ; first = false {
		buf = append(buf[:0], sep...)
		switch {
		case l.shape == arrays && l.header && first:
			buf = appendRow(buf, r, nil)
		case l.shape == arrays:
			buf = appendRow(buf, r, types)
		case l.header && first: // the names
			buf = buf[:0]
		default:
			buf = names.appendObject(buf, r, types)
		}
		if len(buf) > 0 {
			sep = between
			if _, err := w.Write(buf); err != nil {
				return err
			}
		}
		if err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	if sep == begin { // no rows
		if end = "[]\n"; l.shape == lines {
			end = ""
		}
	}
	_, err = io.WriteString(w, end)
	return err
}

// columnNames are the names of columns, which become the names of JSON members.
type columnNames struct {
	keys  [][]byte // in JSON
	first int      // number of columns of the first row, which every object has
	taken map[string]bool
}

// read takes the names from the first row. Without a header it numbers the columns.
func (c *columnNames) read(r rowReader, header bool) error {
	names := make([]string, r.Len())
	c.first = len(names)
	for i := range names {
		if n := r.Cell(i); header && len(bytes.TrimSpace(n)) > 0 {
			names[i] = string(n)
		}
	}
	bytesOfNames := 0
	uniqueNames(names, false)
	c.taken = make(map[string]bool, len(names))
	for _, n := range names {
		c.taken[n] = true
		c.keys = append(c.keys, appendJSON(nil, []byte(n)))
		if bytesOfNames += len(n); bytesOfNames > maxNames {
			return tooManyNames()
		}
	}
	return nil
}

// appendObject appends a row as an object.
func (c *columnNames) appendObject(buf []byte, r rowReader, types []columnType) []byte {
	n := r.Len()
	for n > c.first && len(r.Cell(n-1)) == 0 {
		n-- // ignore empty cells beyond the first row
	}
	for n > len(c.keys) {
		// A cell without a column name.
		name := fmt.Sprintf("column_%d", len(c.keys)+1)
		for k := 2; c.taken[name]; k++ {
			name = fmt.Sprintf("column_%d_%d", len(c.keys)+1, k)
		}
		c.taken[name] = true
		c.keys = append(c.keys, appendJSON(nil, []byte(name)))
	}
	buf = append(buf, '{')
	for i, key := range c.keys[:max(n, c.first)] {
		if i > 0 {
			buf = append(buf, ", "...)
		}
		buf = append(append(buf, key...), ": "...)
		buf = appendCell(buf, r.Cell(i), i, types)
	}
	return append(buf, '}')
}

// appendRow appends a row as an array.
func appendRow(buf []byte, r rowReader, types []columnType) []byte {
	buf = append(buf, '[')
	for i := range r.Len() {
		if i > 0 {
			buf = append(buf, ", "...)
		}
		buf = appendCell(buf, r.Cell(i), i, types)
	}
	return append(buf, ']')
}

// appendCell appends a cell of column i as a JSON value.
func appendCell(buf, cell []byte, i int, types []columnType) []byte {
	switch {
	case types == nil:
		return appendJSON(buf, cell)
	case len(cell) == 0:
		return append(buf, "null"...)
	case i < len(types) && types[i] != textColumn:
		return append(buf, cell...)
	}
	return appendJSON(buf, cell)
}

// isPlainNumber reports whether a cell is a JSON number that programs read without
// losing digits.
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

// toTable writes the rows of src unchanged. header means that the first row names the
// columns.
func toTable(src *source, w tableWriter, from format.Format, comma byte, header bool) error {
	comma, text, err := dialect(src.text(), from, comma)
	if err != nil {
		return err
	}
	// A Markdown table has as many columns as its header, so find the widest row
	// first.
	r, width := delimited.NewReader(text, rune(comma)), 0
	for ; err == nil; err = r.Next() {
		width = max(width, r.Len())
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if _, text, err = dialect(src.text(), from, comma); err != nil {
		return err
	}
	r = delimited.NewReader(text, rune(comma))
	var cells [][]byte
	for first := true; ; first = false {
		err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && first:
			return fileops.Fail(fileops.ErrUnsupportedInput, errNoTable, "the file has no rows")
		case errors.Is(err, io.EOF):
			return w.close()
		case err != nil:
			return err
		}
		cells = cells[:0]
		for i := range r.Len() {
			cells = append(cells, r.Cell(i))
		}
		if first {
			if _, same := w.(*csvWriter); !same {
				for len(cells) < width {
					cells = append(cells, nil)
				}
			}
			if header {
				err = w.start(cells, width)
			} else if err = w.start(nil, width); err == nil {
				err = w.row(cells)
			}
		} else {
			err = w.row(cells)
		}
		if err != nil {
			return err
		}
	}
}
