package dataops

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
)

const (
	maxPage    = 64 << 20 // bytes of an HTML page
	maxCells   = 4 << 20  // of all tables of a page, including cells that spans leave empty
	maxRows    = 1 << 20  // of a table: the maximum of a sheet
	maxTables  = 1000
	maxColspan = 1000 // HTML, 4.9.11
)

// A grid is a table of a page, with a cell for each place that a span covers. A
// row ends with its last cell, even if that is empty.
type grid struct {
	number int    // number of the table in the page, from 1
	name   string // its caption, or ""
	rows   [][]string
	cells  int // number of non-empty cells
}

// readTables returns the tables of a page that have text, in the order of their
// start tags.
func readTables(ctx context.Context, f *fileops.File) ([]*grid, error) {
	b, err := f.ReadAll(maxPage)
	if err != nil {
		return nil, err
	}
	p := &pageReader{}
	z := html.NewTokenizer(fileops.ContextReader(ctx, bytes.NewReader(charset.DecodeHTML(b))))
	z.SetMaxBuf(maxCell)
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if err := z.Err(); errors.Is(err, html.ErrBufferExceeded) {
				return nil, fileops.Fail(fileops.ErrLimit, err, "the page contains a text of more than %d MiB", maxCell>>20)
			} else if !errors.Is(err, io.EOF) {
				return nil, err
			}
			for len(p.open) > 0 {
				p.endTable()
			}
			return p.tables()
		case html.TextToken:
			p.text(z.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			if err := p.start(atom.Lookup(name), attributes(z, more)); err != nil {
				return nil, err
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			p.end(atom.Lookup(name))
		}
		if p.total > maxCells {
			return nil, fileops.Fail(fileops.ErrLimit, nil, "the tables of the page have more than %d cells", maxCells)
		}
	}
}

// attributes returns the span of a cell from the attributes of its tag.
func attributes(z *html.Tokenizer, more bool) (s extent) {
	s = extent{1, 1}
	for more {
		var key, val []byte
		key, val, more = z.TagAttr()
		n, err := strconv.Atoi(strings.TrimSpace(string(val)))
		if err != nil || n < 0 {
			continue
		}
		switch string(key) {
		case "colspan":
			if s.columns = n; n == 0 || n > maxColspan {
				s.columns = 1
			}
		case "rowspan":
			if s.rows = n; n == 0 {
				s.rows = maxRows // to the end of the row group
			}
		}
	}
	return s
}

// An extent is the span of a cell.
type extent struct{ columns, rows int }

// A pageReader collects the tables of a page from its tags. It builds no tree, because
// the next tags determine the ends of cells, rows and tables (HTML, 4.9 and 13.1.2.4).
type pageReader struct {
	all   []*grid
	open  []*openTable // a table in a cell is a separate table
	quiet atom.Atom    // the element whose text is invisible
	pre   int          // number of open elements that preserve white space
	total int          // cells of all tables
}

// An openTable is a table whose end tag has not been read.
type openTable struct {
	*grid
	text    *cellText // of the open cell or caption; nil if neither is open
	caption bool      // text is the caption
	at      int       // row of the open cell
	column  int       // its column
	inRow   bool
	below   []int // by column: number of further rows that a cell from above covers
	total   *int  // total of the pageReader
}

func (p *pageReader) top() *openTable {
	if len(p.open) == 0 {
		return nil
	}
	return p.open[len(p.open)-1]
}

func (p *pageReader) text(b []byte) {
	if t := p.top(); t != nil && t.text != nil && p.quiet == 0 {
		t.text.add(string(b), p.pre > 0)
	}
}

func (p *pageReader) start(tag atom.Atom, s extent) error {
	if p.quiet != 0 {
		return nil
	}
	switch tag {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Textarea, atom.Select, atom.Title:
		p.quiet = tag
	case atom.Table:
		if len(p.all) == maxTables {
			return fileops.Fail(fileops.ErrLimit, nil, "the page has more than %d tables", maxTables)
		}
		if t := p.top(); t != nil && t.text != nil {
			t.text.block()
		}
		g := &grid{}
		p.all, p.open = append(p.all, g), append(p.open, &openTable{grid: g, total: &p.total})
	case atom.Pre:
		p.pre++
	}
	t := p.top()
	if t == nil {
		return nil
	}
	switch tag {
	case atom.Caption:
		t.endCell()
		t.text, t.caption = &cellText{}, true
	case atom.Thead, atom.Tbody, atom.Tfoot:
		t.endGroup()
	case atom.Tr:
		t.endRow()
		return p.startRow(t)
	case atom.Td, atom.Th:
		return p.startCell(t, s)
	case atom.Br:
		if t.text != nil {
			t.text.line()
		}
	default:
		if t.text != nil && isBlock(tag) {
			t.text.block()
		}
	}
	return nil
}

func (p *pageReader) end(tag atom.Atom) {
	if p.quiet != 0 {
		if tag == p.quiet {
			p.quiet = 0
		}
		return
	}
	if tag == atom.Pre && p.pre > 0 {
		p.pre--
	}
	t := p.top()
	if t == nil {
		return
	}
	switch tag {
	case atom.Table:
		p.endTable()
	case atom.Thead, atom.Tbody, atom.Tfoot:
		t.endGroup()
	case atom.Tr:
		t.endRow()
	case atom.Td, atom.Th, atom.Caption:
		t.endCell()
	default:
		if t.text != nil && isBlock(tag) {
			t.text.block()
		}
	}
}

func (p *pageReader) startRow(t *openTable) error {
	if len(t.rows) == maxRows {
		return fileops.Fail(fileops.ErrLimit, nil, "a table has more than %d rows", maxRows)
	}
	t.rows, t.inRow, t.column = append(t.rows, nil), true, 0
	t.at = len(t.rows) - 1
	return nil
}

// startCell starts a cell in the next place of the row that no cell from above covers.
func (p *pageReader) startCell(t *openTable, s extent) error {
	t.endCell()
	if !t.inRow {
		if err := p.startRow(t); err != nil {
			return err
		}
	}
	row := &t.rows[t.at]
	t.covered()
	t.column = len(*row)
	end := t.column + s.columns
	if end > maxColumns {
		return fileops.Fail(fileops.ErrLimit, nil, "a table has more than %d columns", maxColumns)
	}
	for len(*row) < end {
		*row = append(*row, "")
	}
	p.total += s.columns
	if s.rows > 1 {
		for len(t.below) < end {
			t.below = append(t.below, 0)
		}
		for i := t.column; i < end; i++ {
			t.below[i] = s.rows // including this row
		}
	}
	t.text, t.caption = &cellText{}, false
	p.pre = 0 // an unclosed element ends with its cell
	return nil
}

// covered appends empty places below cells from above.
func (t *openTable) covered() {
	row := &t.rows[t.at]
	for len(*row) < len(t.below) && t.below[len(*row)] > 0 {
		*row = append(*row, "")
		*t.total++
	}
}

func (t *openTable) endCell() {
	if t.text == nil {
		return
	}
	s := t.text.String()
	t.text = nil
	if t.caption {
		t.caption = false
		t.name = s
		return
	}
	t.rows[t.at][t.column] = s
	if s != "" {
		t.cells++
	}
}

func (t *openTable) endRow() {
	t.endCell()
	if !t.inRow {
		return
	}
	t.inRow = false
	t.covered()
	for i, n := range t.below {
		t.below[i] = max(0, n-1)
	}
}

// endGroup ends a row group. No cell extends beyond it.
func (t *openTable) endGroup() {
	t.endRow()
	clear(t.below)
}

func (p *pageReader) endTable() {
	p.top().endRow()
	p.open = p.open[:len(p.open)-1]
}

// tables returns the tables with text, without their empty rows.
func (p *pageReader) tables() ([]*grid, error) {
	var out []*grid
	for _, g := range p.all {
		if g.cells == 0 {
			continue
		}
		rows := g.rows[:0]
		for _, r := range g.rows {
			if len(r) > 0 {
				rows = append(rows, r)
			}
		}
		g.rows = rows
		out = append(out, g)
		g.number = len(out)
	}
	if len(out) == 0 {
		return nil, fileops.Fail(fileops.ErrUnsupportedInput, errNoTable, "the page has no table")
	}
	return out, nil
}

// choose returns the table with a number, counted from 1, or with a caption. For ""
// it returns the largest table.
func choose(tables []*grid, sheet string) (*grid, error) {
	if sheet == "" {
		best := tables[0]
		for _, g := range tables[1:] {
			if g.cells > best.cells {
				best = g
			}
		}
		return best, nil
	}
	for _, g := range tables {
		if strings.EqualFold(g.name, sheet) {
			return g, nil
		}
	}
	if n, err := strconv.Atoi(sheet); err == nil && n >= 1 && n <= len(tables) {
		return tables[n-1], nil
	}
	return nil, fileops.Fail(fileops.ErrUnsupportedInput, errNoTable, "the page has no table %q; it has %d tables", sheet, len(tables))
}

// A gridReader reads the rows of a grid.
type gridReader struct {
	rows [][]string
	read int
}

// Next implements rowReader.
func (r *gridReader) Next() error {
	if r.read == len(r.rows) {
		return io.EOF
	}
	r.read++
	return nil
}

// Rows implements rowReader.
func (r *gridReader) Rows() int { return r.read }

// Len implements rowReader.
func (r *gridReader) Len() int { return len(r.rows[r.read-1]) }

// Cell implements rowReader.
func (r *gridReader) Cell(i int) []byte {
	if row := r.rows[r.read-1]; i < len(row) {
		return []byte(row[i])
	}
	return nil
}

// fromHTML writes the tables of a page: the selected one, or all of them to a
// workbook.
func fromHTML(ctx context.Context, job *fileops.Job, w io.Writer, to format.Format) error {
	tables, err := readTables(ctx, job.Input())
	if err != nil {
		return err
	}
	job.Progress(0.5)
	sheet := job.Params.Get("sheet")
	if sheet != "" || to != format.FODS {
		g, err := choose(tables, sheet)
		if err != nil {
			return err
		}
		tables = []*grid{g}
	}
	switch to {
	case format.FODS:
		return writeWorkbook(ctx, w, tables)
	case format.JSON, format.JSONL:
		var types []columnType
		l := newJSONLayout(job.Params)
		if l.typed {
			if types, err = typesOf(&gridReader{rows: tables[0].rows}, l.header); err != nil {
				return err
			}
		}
		return writeRecords(job, &gridReader{rows: tables[0].rows}, w, types, l)
	}
	tw := newTableWriter(w, to, "", delimiters[job.Params.Get("delimiter")])
	for r := (&gridReader{rows: tables[0].rows}); r.Next() == nil; {
		cells := make([][]byte, r.Len())
		for i := range cells {
			cells[i] = r.Cell(i)
		}
		if err := tw.row(cells); err != nil {
			return err
		}
	}
	return tw.close()
}

// isBlock reports whether an element is displayed on separate lines.
func isBlock(tag atom.Atom) bool {
	switch tag {
	case atom.P, atom.Div, atom.Li, atom.Ul, atom.Ol, atom.Dl, atom.Dt, atom.Dd, atom.Pre, atom.Blockquote, atom.Hr,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Address:
		return true
	}
	return false
}

// A cellText is text as a browser shows it: white space collapses to one space, and
// elements can end lines.
type cellText struct {
	b     strings.Builder
	lines int  // pending line ends
	space bool // a space is pending
}

func (c *cellText) add(s string, pre bool) {
	for _, r := range s {
		switch {
		case pre && r == '\n':
			c.line()
		case pre && r == '\t', pre && r == ' ':
			c.flush()
			c.b.WriteRune(r)
		case r == ' ', r == '\t', r == '\n', r == '\r', r == '\f':
			c.space = true
		case r < ' ' || r == 0x7f: // not allowed in HTML
			c.flush()
			c.b.WriteRune(unicode.ReplacementChar)
		case r == '\u00a0': // pages use it for its width
			c.space = true
		default:
			c.flush()
			c.b.WriteRune(r)
		}
	}
}

// flush writes pending line ends and spaces before a character. It writes
// nothing before the first character.
func (c *cellText) flush() {
	if c.b.Len() > 0 {
		if c.lines > 0 {
			c.b.WriteString(strings.Repeat("\n", c.lines))
		} else if c.space {
			c.b.WriteByte(' ')
		}
	}
	c.lines, c.space = 0, false
}

func (c *cellText) line()  { c.lines++ }
func (c *cellText) block() { c.lines = max(c.lines, 1) }

// String returns the text.
func (c *cellText) String() string { return c.b.String() }
