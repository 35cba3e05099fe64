package tables

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread/internal/flow"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

// A Grid is a table reduced to the contents of its cells.
type Grid struct {
	table  *model.Table // its first part, for the columns
	first  int          // its first page
	last   int          // its last page
	header int          // rows
	rows   [][]string
}

// Limits of tables in one document.
const (
	maxGrids     = 1000
	maxGridCells = 2_000_000
)

// Find returns the tables of a document in order. Parts of one table on
// successive pages become one grid, with the header only once. A document
// without tables fails with [fileops.ErrUnsupportedInput]; too many tables fail
// with [fileops.ErrLimit].
func Find(d *model.Document) ([]*Grid, error) {
	gs := grids(d)
	if len(gs) == 0 {
		return nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "no table was found in the document")
	}
	cells := 0
	for _, g := range gs {
		for _, row := range g.rows {
			cells += len(row)
		}
	}
	if len(gs) > maxGrids || cells > maxGridCells {
		return nil, fileops.Fail(fileops.ErrLimit, nil,
			"the document has %d tables with %d cells, more than the limit of %d and %d; choose a part of it with the parameter pages", len(gs), cells, maxGrids, maxGridCells)
	}
	return gs, nil
}

func grids(d *model.Document) []*Grid {
	var out []*Grid
	var open *Grid // continues unless other content precedes the next table
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			switch {
			case b.Kind == model.TableBlock:
				g := newGrid(d, b.Block)
				if g == nil {
					continue
				}
				if open != nil && g.first == open.last+1 && open.table.Continues(b.Table) && len(g.rows[0]) == len(open.rows[0]) {
					open.take(g)
					continue
				}
				out = append(out, g)
				open = g
			case b.Kind == model.ParagraphBlock && len(b.Lines) > 0:
				open = nil
			}
		}
	}
	return out
}

// take appends the rows of next, the continuation of g on the next page.
func (g *Grid) take(next *Grid) {
	rows := next.rows
	for n := max(g.header, 1); n > 0; n-- {
		if len(rows) > n && n <= len(g.rows) && slices.EqualFunc(rows[:n], g.rows[:n], slices.Equal) {
			rows = rows[n:]
			break
		}
	}
	g.rows = append(g.rows, rows...)
	g.last = next.last
}

// newGrid returns a table as text, without empty columns and rows. It returns
// nil for a frame: less than two columns or rows with text.
func newGrid(d *model.Document, b *model.Block) *Grid {
	t := b.Table
	rows, header := flow.TableRows(d, t, d.Leaves[b.Page])
	g := &Grid{table: t, first: firstPage(t, b.Page), last: b.Page, header: header}
	n := len(t.Xs) - 1
	used := make([]bool, n)
	for i, row := range rows {
		texts := make([]string, n)
		any := false
		for _, c := range row {
			var ps []string
			for _, p := range c.Paragraphs {
				if s := strings.TrimSpace(flow.PlainText(p)); s != "" {
					ps = append(ps, s)
				}
			}
			if c.Col < n && len(ps) > 0 {
				texts[c.Col] = strings.Join(ps, "\n")
				used[c.Col], any = true, true
			}
		}
		if any {
			g.rows = append(g.rows, texts)
		} else if i < header {
			g.header--
		}
	}
	for i, row := range g.rows {
		k := 0
		for c, s := range row {
			if used[c] {
				row[k] = s
				k++
			}
		}
		g.rows[i] = row[:k]
	}
	if len(g.rows) < 2 || len(g.rows[0]) < 2 {
		return nil
	}
	return g
}

// firstPage returns the first page of a table from its last page.
func firstPage(t *model.Table, last int) int {
	first := last
	for _, c := range t.Cells {
		for _, b := range c.Blocks {
			if b.Page > 0 {
				first = min(first, b.Page)
			}
		}
	}
	return first
}

// Total returns the number of letters and digits in the cells of grids.
func Total(gs []*Grid) (n int) {
	for _, g := range gs {
		for _, row := range g.rows {
			for _, cell := range row {
				n += Letters(cell)
			}
		}
	}
	return n
}

// Letters returns the number of letters and digits in a text.
func Letters(text string) (n int) {
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			n++
		}
	}
	return n
}

// WriteCSV writes all tables into one file, separated by an empty line. Cells
// contain the text as printed.
func WriteCSV(ctx context.Context, w io.Writer, gs []*Grid) error {
	for i, g := range gs {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if i > 0 {
			if _, err := io.WriteString(w, "\r\n"); err != nil {
				return err
			}
		}
		c := csv.NewWriter(w)
		c.UseCRLF = true // RFC 4180
		for _, row := range g.rows {
			line := make([]string, len(row))
			for k, s := range row {
				line[k] = strings.ReplaceAll(s, "\n", " ")
			}
			if err := c.Write(line); err != nil {
				return err
			}
		}
		if c.Flush(); c.Error() != nil {
			return c.Error()
		}
	}
	return nil
}

// WriteXLSX writes each table to a separate sheet, with numbers as numbers. lang
// is the language of the document, which decides how to read ambiguous numbers.
func WriteXLSX(ctx context.Context, w io.Writer, gs []*Grid, lang string) error {
	book := &ooxml.Workbook{}
	commas := documentConvention(gs, lang)
	names := make(map[string]int)
	for _, g := range gs {
		name := fmt.Sprintf("Page %d", g.first)
		if g.last > g.first {
			name = fmt.Sprintf("Pages %d-%d", g.first, g.last)
		}
		names[name]++
		if n := names[name]; n > 1 {
			name = fmt.Sprintf("%s (%d)", name, n)
		}
		book.Sheets = append(book.Sheets, ooxml.Sheet{Name: name, Header: g.header, Rows: g.values(commas)})
	}
	return book.Write(ctx, w)
}
