// Package dataops converts tabular data in pure Go. It converts JSON, CSV and TSV to
// each other and to tables in HTML and Markdown, and HTML tables to data.
//
// Files other than HTML are read as streams. JSON is read three times: for the
// layout, for the columns and for the rows. Memory depends on the widest row, not on
// the size of the file. The limits are 16 MiB for a cell, 32 MiB for a row, 16384
// columns and 100 levels of nesting.
//
// # JSON as a table
//
// These forms are tables:
//
//   - an array of objects: each is a row. Each name is a column, in the order of
//     first appearance;
//   - an array of arrays: each is a row. Columns have no names;
//   - an array of other values: one column, "value";
//   - the same values without the array, one after the other (JSON Lines);
//   - an object of objects: each is a row, with its name in a column "key";
//   - an object with an array as its only member: the table of that array;
//   - an object of arrays of the same length without nested values: each is a
//     column;
//   - an object with one array of objects, such as the response of a web
//     service: each is a row. Every row starts with the values of the other
//     members;
//   - any other object: one row.
//
// Objects inside a row become columns with dotted names ("address.city"). Arrays
// of simple values are joined by "; ". Other nested values become JSON text.
// Numbers keep their digits. null becomes an empty cell. Control characters that text
// files do not have become U+FFFD. JSON without any value, such as [], is not a
// table.
//
// # CSV as JSON
//
// The text may be in any encoding that package charset detects. The separator of
// a CSV is detected unless it is given. The first row names the columns; empty
// and duplicate names are replaced ("column_3", "name_2").
//
// # Tables of HTML
//
// A page may be in any encoding that package charset detects or that the page
// declares. A table inside a cell is a separate table. Tables without text and
// rows without cells are ignored. If there are several tables, the one with the
// most non-empty cells is used; a workbook gets a sheet for each.
//
// A cell that spans several places fills the first place and leaves the others empty,
// like a merged cell of a sheet. White space collapses as in a browser.
// In JSON the first row names the columns, as for CSV. In workbooks a cell is a
// number only if it is a JSON number; no cell becomes a date. A page may have 64
// MiB, 1000 tables, 1,048,576 rows per table and 4 million cells in total.
//
// # CSV as a table
//
// Cells are copied unchanged, not converted to numbers or dates. The first row
// is the header of tables in HTML and Markdown.
package dataops

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/delimited"
)

const (
	maxCell    = delimited.MaxCell
	maxRow     = delimited.MaxRow
	maxNames   = 4 << 20 // bytes of all column names
	maxColumns = delimited.MaxColumns
	maxDepth   = 100 // levels of objects and arrays

	// A few bytes can produce a row of thousands of empty cells. A result may have
	// maxResult bytes, plus maxGrowth bytes for each byte of the input.
	maxResult, maxGrowth = 256 << 20, 50
)

// Convert returns the action "convert". It converts JSON to csv, tsv, html and
// md. It converts CSV and TSV to each other and to json, html and md. It
// converts the tables of an HTML page to csv, tsv, json and fods; the parameter
// sheet selects one table.
//
// With the parameter typed, a column becomes numbers if all its cells are numbers, and
// booleans if all its cells are true or false. Empty cells become null. The parameter
// delimiter is the separator of the CSV input or result. By default the separator of an
// input is detected, and the separator of a result is a comma. Between CSV and TSV the
// parameter applies to the CSV.
//
// Convert fails with [fileops.ErrCorruptInput] if the input violates its format.
// It fails with [fileops.ErrUnsupportedInput] if JSON is not a table or a page
// has no table. It fails with [fileops.ErrLimit] beyond the limits in the
// package comment.
func Convert() fileops.Action {
	to := func(formats ...format.Format) fileops.Param {
		p := fileops.Enum("convert_to", "Format of the result.")
		p.Aliases = make(map[string]string)
		for _, f := range formats {
			p.Enum = append(p.Enum, string(f))
			for _, a := range f.Aliases() {
				p.Aliases[string(a)] = string(f)
			}
		}
		return p
	}
	delimiter := func(doc string) fileops.Param {
		return fileops.Param{
			Name: "delimiter", Doc: doc, Scope: fileops.ScopeFile,
			Enum:    []string{"comma", "semicolon", "tab", "pipe"},
			Aliases: map[string]string{",": "comma", ";": "semicolon", "\t": "tab", `\t`: "tab", "|": "pipe"},
		}
	}
	written := delimiter("Separator of the cells in the result.")
	written.Default = "comma"
	read := delimiter("Separator of the cells in the CSV; detected by default.")
	typed := fileops.Param{
		Name: "typed", Type: fileops.Boolean, Default: false,
		Doc: "Writes columns of numbers as numbers, columns of true and false as booleans, and empty cells as null. Otherwise all values are strings.",
	}
	sheet := func(otherwise string) fileops.Param {
		return fileops.Param{Name: "sheet", Scope: fileops.ScopeContent, Min: 1, Max: 256, Doc: "Caption or number, counted from 1, of the table to convert; " + otherwise + " by default."}
	}
	encoding := charset.EncodingParam()
	one, all := sheet("the largest table"), sheet("all tables, one sheet each,")
	spec := fileops.Spec{
		Name:    "convert",
		Engine:  "go",
		Family:  "data",
		Summary: "Converts tabular data to another format.",
		Accepts: []fileops.Accept{
			{Formats: []format.Format{format.JSON}, Params: fileops.Schema{to(format.CSV), written}},
			{Formats: []format.Format{format.JSON}, Params: fileops.Schema{to(format.TSV, format.HTML, format.MD)}},
			{Formats: []format.Format{format.CSV}, Params: fileops.Schema{to(format.JSON), typed, read, encoding}},
			{Formats: []format.Format{format.CSV}, Params: fileops.Schema{to(format.TSV, format.HTML, format.MD), read, encoding}},
			{Formats: []format.Format{format.TSV}, Params: fileops.Schema{to(format.JSON), typed, encoding}},
			{Formats: []format.Format{format.TSV}, Params: fileops.Schema{to(format.CSV), written, encoding}},
			{Formats: []format.Format{format.TSV}, Params: fileops.Schema{to(format.HTML, format.MD), encoding}},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.JSON), typed, one}},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.CSV), written, one}},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.TSV), one}},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.FODS), all}},
		},
	}
	return fileops.Func(spec, convert)
}

// delimiters maps values of the parameter to bytes.
var delimiters = map[string]byte{"comma": ',', "semicolon": ';', "tab": '\t', "pipe": '|'}

func convert(ctx context.Context, job *fileops.Job) error {
	in := job.Input()
	to := format.Format(job.Params.Get("convert_to"))
	var src *source
	if in.Format() != format.HTML {
		var err error
		if src, err = newSource(ctx, job); err != nil {
			return err
		}
	}
	return job.Write(fileops.ResultName(in, to), func(w io.Writer) error {
		lw := &limitedWriter{w: w, left: maxResult + maxGrowth*in.Size()}
		bw := bufio.NewWriterSize(lw, 64<<10)
		comma := delimiters[job.Params.Get("delimiter")]
		var err error
		switch {
		case in.Format() == format.HTML:
			err = fromHTML(ctx, job, bw, to)
		case in.Format() == format.JSON:
			err = fromJSON(src, newTableWriter(bw, to, format.Base(in.Name()), comma))
		case to == format.JSON:
			err = toJSON(src, bw, in.Format(), comma, job.Params.Bool("typed"))
		case in.Format() == format.CSV:
			err = toTable(src, newTableWriter(bw, to, format.Base(in.Name()), 0), in.Format(), comma)
		default:
			err = toTable(src, newTableWriter(bw, to, format.Base(in.Name()), comma), in.Format(), 0)
		}
		if err != nil {
			return err
		}
		return bw.Flush()
	})
}

// A limitedWriter fails when a result exceeds its maximum size.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, fileops.Fail(fileops.ErrLimit, nil, "the result would have more than %d times the size of the file", maxGrowth)
	}
	return l.w.Write(p)
}

// uniqueNames makes column names unique. Column n without a name becomes
// column_n. A duplicate name gets a number.
func uniqueNames(names []string, keepEmpty bool) {
	taken := make(map[string]bool, len(names)) // includes names of later columns
	for _, n := range names {
		taken[n] = true
	}
	used := make(map[string]bool, len(names))
	next := make(map[string]int) // by name: next number to try
	for i, n := range names {
		if n == "" && !keepEmpty {
			n = fmt.Sprintf("column_%d", i+1)
			if !taken[n] {
				names[i], taken[n], used[n] = n, true, true
				continue
			}
		} else if !used[n] {
			used[n] = true
			continue
		}
		k := max(next[n], 2)
		name := fmt.Sprintf("%s_%d", n, k)
		for taken[name] {
			k++
			name = fmt.Sprintf("%s_%d", n, k)
		}
		next[n] = k + 1
		names[i], taken[name], used[name] = name, true, true
	}
}

var errNoTable = errors.New("no table")

// notTabular returns an error with the reason why JSON is not a table.
func notTabular(why string) error {
	return fileops.Fail(fileops.ErrUnsupportedInput, errNoTable, "%s; a table must be an array of objects, an array of arrays, an object or JSON Lines", why)
}
