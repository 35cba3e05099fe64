package pdfread

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A grid is a table without its looks: what a sheet has room for.
type grid struct {
	table  *table // the first part of it, for its columns
	first  int    // page where it begins
	last   int    // page where it ends
	header int    // rows
	rows   [][]string
}

// Limits of tables in one document.
const (
	maxGrids     = 1000
	maxGridCells = 2_000_000
)

// errNoTable tells that a document has nothing for a sheet.
var errNoTable = fileops.Fail(fileops.ErrUnsupportedInput, nil, "no table was found in the document")

// grids returns the tables of the document of job in their order. Parts of one
// table on successive pages are one grid, with the header only once.
func (e *Engine) grids(ctx context.Context, job *fileops.Job) ([]*grid, string, error) {
	r, err := e.read(ctx, job, 0.85)
	if err != nil {
		return nil, "", err
	}
	d := layOut(ctx, r.sheets, r.marks)
	if err := cancelled(ctx); err != nil {
		return nil, "", err
	}
	gs := d.grids()
	if len(gs) == 0 {
		return nil, "", errNoTable
	}
	cells := 0
	for _, g := range gs {
		for _, row := range g.rows {
			cells += len(row)
		}
	}
	if len(gs) > maxGrids || cells > maxGridCells {
		return nil, "", fileops.Fail(fileops.ErrLimit, nil,
			"the document has %d tables with %d cells, more than the limit of %d and %d; choose a part of it with the parameter pages", len(gs), cells, maxGrids, maxGridCells)
	}
	lang := r.lang
	if lang == "" {
		lang = d.flow().guessLanguage()
	}
	job.Progress(0.92)
	return gs, lang, nil
}

func (d *doc) grids() []*grid {
	var out []*grid
	var open *grid // goes on if nothing else comes before the next table
	for _, s := range d.sections {
		for _, b := range s.blocks {
			switch {
			case b.kind == tableBlock:
				g := d.grid(b.block)
				if g == nil {
					continue
				}
				if open != nil && g.first == open.last+1 && open.table.continues(b.table) && len(g.rows[0]) == len(open.rows[0]) {
					open.take(g)
					continue
				}
				out = append(out, g)
				open = g
			case b.kind == paragraphBlock && len(b.lines) > 0:
				open = nil
			}
		}
	}
	return out
}

// take adds the rows of the part of g that is on the next page.
func (g *grid) take(next *grid) {
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

// grid returns a table as text, without columns and rows that are empty. It
// returns nil for what is only a frame: less than two columns or rows with text.
func (d *doc) grid(b *block) *grid {
	t := b.table
	rows, header := d.tableRows(t, d.leaves[b.page])
	g := &grid{table: t, first: t.page(b.page), last: b.page, header: header}
	n := len(t.xs) - 1
	used := make([]bool, n)
	for i, row := range rows {
		texts := make([]string, n)
		any := false
		for _, c := range row {
			var ps []string
			for _, p := range c.paragraphs {
				if s := strings.TrimSpace(plainText(p)); s != "" {
					ps = append(ps, s)
				}
			}
			if c.col < n && len(ps) > 0 {
				texts[c.col] = strings.Join(ps, "\n")
				used[c.col], any = true, true
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

// page returns the first page of a table whose last page is given.
func (t *table) page(last int) int {
	first := last
	for _, c := range t.cells {
		for _, b := range c.blocks {
			if b.page > 0 {
				first = min(first, b.page)
			}
		}
	}
	return first
}

// toCSV writes all tables into one file, with an empty line between them. Cells
// have the text that is printed.
func (e *Engine) toCSV(ctx context.Context, job *fileops.Job) error {
	gs, _, err := e.grids(ctx, job)
	if err != nil {
		return err
	}
	return job.Write(fileops.ResultName(job.Input(), format.CSV), func(w io.Writer) error {
		for i, g := range gs {
			if err := cancelled(ctx); err != nil {
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
				c.Write(line)
			}
			if c.Flush(); c.Error() != nil {
				return c.Error()
			}
		}
		return nil
	})
}

// toXLSX writes each table to a sheet of its own, with numbers as numbers.
func (e *Engine) toXLSX(ctx context.Context, job *fileops.Job) error {
	gs, lang, err := e.grids(ctx, job)
	if err != nil {
		return err
	}
	book := &workbook{}
	commas := decimalComma(gs, lang)
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
		book.sheets = append(book.sheets, worksheet{name: name, header: g.header, rows: g.values(commas)})
	}
	return job.Write(fileops.ResultName(job.Input(), format.XLSX), func(w io.Writer) error { return book.write(ctx, w) })
}
