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

// toJSON writes the rows of src as an array of objects, one per line.
func toJSON(src *source, w io.Writer, from format.Format, comma byte, typed bool) error {
	comma, text, err := dialect(src.text(), from, comma)
	if err != nil {
		return err
	}
	var types []columnType
	if typed {
		src.passes = 2
		if types, err = typesOf(delimited.NewReader(text, rune(comma))); err != nil {
			return err
		}
		if _, text, err = dialect(src.text(), from, comma); err != nil {
			return err
		}
	}
	return writeRecords(src.job, delimited.NewReader(text, rune(comma)), w, types)
}

// A columnType is the JSON type of the cells of a column.
type columnType int

const (
	unknownColumn columnType = iota // only empty cells
	numberColumn
	booleanColumn
	textColumn
)

// typesOf returns the types of all columns. The first row names the columns.
func typesOf(r rowReader) (types []columnType, err error) {
	for {
		err := r.Next()
		if errors.Is(err, io.EOF) {
			return types, nil
		}
		if err != nil {
			return nil, err
		}
		if r.Rows() == 1 {
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

// writeRecords writes rows as an array of objects, one per line. The first row
// names the columns; a warning says so if there is no other. If types is nil, all cells
// become strings.
func writeRecords(job *fileops.Job, r rowReader, w io.Writer, types []columnType) error {
	err := r.Next()
	if errors.Is(err, io.EOF) {
		_, err = io.WriteString(w, "[]\n")
		return err
	}
	if err != nil {
		return err
	}
	names := make([]string, r.Len())
	for i := range names {
		if n := r.Cell(i); len(bytes.TrimSpace(n)) > 0 {
			names[i] = string(n)
		}
	}
	bytesOfNames := 0
	uniqueNames(names, false)
	taken := make(map[string]bool, len(names))
	keys := make([][]byte, 0, len(names)) // column names in JSON
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
		if err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		n := r.Len()
		for n > len(names) && len(r.Cell(n-1)) == 0 {
			n-- // ignore empty cells beyond the last name
		}
		for n > len(keys) {
			// A cell without a column name.
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
			cell := r.Cell(i)
			switch {
			case types == nil:
				buf = appendJSON(buf, cell)
			case len(cell) == 0:
				buf = append(buf, "null"...)
			case i < len(types) && types[i] != textColumn:
				buf = append(buf, cell...)
			default:
				buf = appendJSON(buf, cell)
			}
		}
		buf = append(buf, '}')
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	end := "\n]\n"
	if r.Rows() == 1 {
		end = "[]\n"
		job.Warn(fileops.WarnContentDropped, "The table has a single row, which names the columns, so the result has no records.")
	}
	_, err = io.WriteString(w, end)
	return err
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

// toTable writes the rows of src unchanged. The first row is the header.
func toTable(src *source, w tableWriter, from format.Format, comma byte) error {
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
			err = w.start(cells, width)
		} else {
			err = w.row(cells)
		}
		if err != nil {
			return err
		}
	}
}
