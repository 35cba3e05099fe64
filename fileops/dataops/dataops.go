// Package dataops converts tabular data in pure Go: JSON, CSV and TSV to each
// other and to tables in HTML and Markdown, and tables in HTML to data.
//
// Files other than HTML are read as streams, JSON several times: once to see what it is, once
// for the columns, once for the rows. Memory does not grow with the file, only
// with its widest row. The limits are 16 MiB for a
// cell, 32 MiB for a row, 16384 columns, 100 levels of nesting.
//
// # JSON as a table
//
// These are read as tables:
//
//   - an array of objects: a row each; a column for each name, in the order in
//     which names first appear;
//   - an array of arrays: a row each, without names;
//   - an array of other values: one column, "value";
//   - the same without the array around it, one value after the other (JSON
//     Lines);
//   - an object of objects: a row each, with the name in a column "key";
//   - an object with an array as its only member: the table of that array;
//   - an object of arrays of the same length without anything nested: each is a
//     column;
//   - an object with one array of objects, such as the answer of a web service:
//     a row for each of them, with the other members in front, the same in
//     every row;
//   - any other object: one row.
//
// Objects inside a row become columns with dotted names ("address.city"), arrays
// of simple values are joined by "; ", and what else is nested becomes a text of
// JSON. Numbers keep their digits. null is an empty cell. Control characters that
// no text file has become U+FFFD. JSON without a single value, such as [], is no
// table.
//
// # CSV as JSON
//
// The text may be in any encoding that package charset knows. The separator of a
// CSV is found by trying if it is not given. The first row names the columns; a
// name that is empty or used before gets one of its own ("column_3", "name_2").
//
// # Tables of HTML
//
// A page may be in any encoding that package charset knows or that it declares. A
// table inside a cell is a table of its own; tables without any text and rows without
// any cell do not count. Of several the one with the most cells that have a text is taken, and
// to workbooks each becomes a sheet. A cell that spans others stands in the first
// place of its span and leaves the others empty, as in a merged cell of a sheet. White
// space is that which a browser shows. The first row names the columns in JSON, as
// for CSV. In workbooks what is literally a number of JSON is one; nothing else is
// taken for a number or a date. A page may have 64 MiB, 1000 tables, 1,048,576 rows
// in each and 4 million cells in all of them.
//
// # CSV as a table
//
// The cells are taken over as they are: nothing is read as a number or a date. The
// first row is the header of tables in HTML and Markdown.
package dataops

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/delimited"
)

const (
	maxCell    = delimited.MaxCell
	maxRow     = delimited.MaxRow
	maxNames   = 4 << 20 // bytes of the names of all columns
	maxColumns = delimited.MaxColumns
	maxDepth   = 100 // levels of objects and arrays

	// A few bytes can ask for a row of thousands of empty cells. A result may
	// have this many bytes, plus so many for each byte of the input.
	maxResult, maxGrowth = 256 << 20, 50
)

// Convert returns the action "convert" for JSON to csv, tsv, html and md, for CSV
// and TSV to each other and to json, html and md, and for the tables of an HTML page
// to csv, tsv, json and fods, where the parameter sheet chooses one of them. With the parameter typed, what
// is literally a number, true or false in a cell is one in the JSON too, and an
// empty cell is null. The parameter delimiter is that of the CSV, be it the input
// or the result: that of an input is found by trying if it is absent, and that of a
// result is then a comma. Where both are CSV's kin it is that of the CSV.
//
// It fails with [fileops.ErrCorruptInput] if the input breaks the rules of its
// format, [fileops.ErrUnsupportedInput] if JSON is no table or a page has none, and
// [fileops.ErrLimit] beyond the limits named in the package comment.
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
	written := delimiter("What stands between the cells of the result.")
	written.Default = "comma"
	read := delimiter("What stands between the cells of the CSV; without it, what fits best.")
	typed := fileops.Param{
		Name: "typed", Type: fileops.Boolean, Default: false,
		Doc: "Whether numbers, true and false become such values, and empty cells null, instead of strings.",
	}
	sheet := func(otherwise string) fileops.Param {
		return fileops.Param{Name: "sheet", Scope: fileops.ScopeContent, Min: 1, Max: 256, Doc: "Caption or number, counted from 1, of the table to take; " + otherwise + " if absent."}
	}
	one, all := sheet("the largest one"), sheet("all of them, a sheet each,")
	spec := fileops.Spec{
		Name:    "convert",
		Engine:  "go",
		Family:  "data",
		Summary: "Converts tabular data to another format.",
		Accepts: []fileops.Accept{
			{Formats: []format.Format{format.JSON}, Params: fileops.Schema{to(format.CSV), written}},
			{Formats: []format.Format{format.JSON}, Params: fileops.Schema{to(format.TSV, format.HTML, format.MD)}},
			{Formats: []format.Format{format.CSV}, Params: fileops.Schema{to(format.JSON), typed, read}},
			{Formats: []format.Format{format.CSV}, Params: fileops.Schema{to(format.TSV, format.HTML, format.MD), read}},
			{Formats: []format.Format{format.TSV}, Params: fileops.Schema{to(format.JSON), typed}},
			{Formats: []format.Format{format.TSV}, Params: fileops.Schema{to(format.CSV), written}},
			{Formats: []format.Format{format.TSV}, Params: fileops.Schema{to(format.HTML, format.MD)}},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.JSON), typed, one}},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.CSV), written, one}},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.TSV), one}},
			{Formats: []format.Format{format.HTML}, Params: fileops.Schema{to(format.FODS), all}},
		},
	}
	return fileops.Func(spec, convert)
}

// delimiters are the bytes that the values of the parameter stand for.
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

// A limitedWriter fails when more is written than a result may have.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, fileops.Fail(fileops.ErrLimit, nil, "the result would be more than %d times as large as the file", maxGrowth)
	}
	return l.w.Write(p)
}

// uniqueNames gives columns names that can be told apart: the n-th becomes
// column_n if it has none, and one whose name an earlier column has gets a
// number.
func uniqueNames(names []string, keepEmpty bool) {
	taken := make(map[string]bool, len(names)) // no new name is one that a later column has
	for _, n := range names {
		taken[n] = true
	}
	used := make(map[string]bool, len(names))
	next := make(map[string]int) // where to go on counting
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

// notTabular says why JSON is not a table.
func notTabular(why string) error {
	return fileops.Fail(fileops.ErrUnsupportedInput, errNoTable, "%s; a table is made of an array of objects, an array of arrays, an object or JSON Lines", why)
}
