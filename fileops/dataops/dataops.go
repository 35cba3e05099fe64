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
// # JSON and JSON Lines
//
// The members of an array become lines, and lines become an array. Nothing is converted:
// numbers keep their digits, and objects their members in order, also duplicate ones. A
// value may have 32 MiB.
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
// CSV and TSV also convert to themselves with another separator or character encoding
// (output_delimiter, output_encoding, bom). The parameter header says whether the first
// row names the columns, and shape how rows become JSON.
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
	shape := fileops.Param{
		Name: "shape", Enum: []string{objects, arrays, lines}, Default: objects,
		Doc: "How rows become JSON: an array of objects, an array of arrays, or one object per line (JSON Lines).",
	}
	header := fileops.Param{
		Name: "header", Type: fileops.Boolean, Default: true,
		Doc: "Whether the first row names the columns.",
	}
	result := delimiter("Separator of the cells in the result; comma by default.")
	result.Name = "output_delimiter"
	output := charset.OutputParams()
	with := func(some fileops.Schema, params ...fileops.Param) fileops.Schema { return append(params, some...) }
	encoding := charset.EncodingParam()
	one, all := sheet("the largest table"), sheet("all tables, one sheet each,")
	records := []format.Format{format.JSON, format.JSONL}
	spec := fileops.Spec{
		Name:    "convert",
		Engine:  "go",
		Family:  "data",
		Summary: "Converts tabular data to another format.",
		Accepts: []fileops.Accept{
			{Formats: records, Params: with(output, to(format.CSV), written)},
			{Formats: records, Params: with(output, to(format.TSV))},
			{Formats: []format.Format{format.JSON}, Params: fileops.Schema{to(format.HTML, format.MD, format.JSONL)}},
			{Formats: []format.Format{format.JSONL}, Params: fileops.Schema{to(format.HTML, format.MD, format.JSON)}},
			{Formats: []format.Format{format.CSV}, Params: fileops.Schema{to(format.JSON), typed, header, shape, read, encoding}},
			{Formats: []format.Format{format.CSV}, Params: fileops.Schema{to(format.JSONL), typed, header, read, encoding}},
			{Formats: []format.Format{format.CSV}, Params: with(output, to(format.TSV), read, encoding)},
			{Formats: []format.Format{format.CSV}, Params: fileops.Schema{to(format.HTML, format.MD), header, read, encoding}},
			{
				Formats: []format.Format{format.CSV}, Params: with(output, to(format.CSV), result, read, encoding),
				Changes: []string{"bom", "output_delimiter", "output_encoding", "delimiter", "encoding"},
			},
			{Formats: []format.Format{format.TSV}, Params: fileops.Schema{to(format.JSON), typed, header, shape, encoding}},
			{Formats: []format.Format{format.TSV}, Params: fileops.Schema{to(format.JSONL), typed, header, encoding}},
			{Formats: []format.Format{format.TSV}, Params: with(output, to(format.CSV), written, encoding)},
			{Formats: []format.Format{format.TSV}, Params: fileops.Schema{to(format.HTML, format.MD), header, encoding}},
			{
				Formats: []format.Format{format.TSV}, Params: with(output, to(format.TSV), encoding),
				Changes: []string{"bom", "output_encoding", "encoding"},
			},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.JSON), typed, header, shape, one}},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.JSONL), typed, header, one}},
			{Formats: []format.Format{format.HTML}, Params: with(output, to(format.CSV), written, one)},
			{Formats: []format.Format{format.HTML}, Params: with(output, to(format.TSV), one)},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.FODS), all}},
		},
	}
	return fileops.Func(spec, convert)
}

func newJSONLayout(p fileops.Params) jsonLayout {
	shape := p.Get("shape")
	if format.Format(p.Get("convert_to")) == format.JSONL {
		shape = lines
	}
	return jsonLayout{typed: p.Bool("typed"), header: p.Bool("header"), shape: shape}
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
	out, err := charset.OutputOf(job.Params)
	if err != nil {
		return err
	}
	err = job.Write(fileops.ResultName(in, to), func(w io.Writer) error {
		lw := &limitedWriter{w: w, left: maxResult + maxGrowth*in.Size()}
		return out.Copy(lw, func(w io.Writer) error {
			bw := bufio.NewWriterSize(w, 64<<10)
			if err := write(ctx, job, src, bw, to); err != nil {
				return err
			}
			return bw.Flush()
		})
	})
	out.Warn(job)
	return err
}

// write writes the result in UTF-8. src is nil for HTML.
func write(ctx context.Context, job *fileops.Job, src *source, w io.Writer, to format.Format) error {
	in, p := job.Input(), job.Params
	comma := delimiters[p.Get("delimiter")]
	title := format.Base(in.Name())
	switch {
	case in.Format() == format.HTML:
		return fromHTML(ctx, job, w, to)
	case in.Format() == format.JSON && to == format.JSONL:
		return splitValues(src, w)
	case in.Format() == format.JSONL && to == format.JSON:
		return joinValues(src, w)
	case in.Format() == format.JSON, in.Format() == format.JSONL:
		return fromJSON(src, newTableWriter(w, to, title, comma))
	case to == format.JSON, to == format.JSONL:
		return toJSON(src, w, in.Format(), comma, newJSONLayout(p))
	case in.Format() == format.CSV:
		return toTable(src, newTableWriter(w, to, title, delimiters[p.Get("output_delimiter")]), in.Format(), comma, !p.Has("header") || p.Bool("header"))
	}
	return toTable(src, newTableWriter(w, to, title, comma), in.Format(), 0, !p.Has("header") || p.Bool("header"))
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
