package webops

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/delimited"
)

//go:embed table.css
var tableStyle string

const (
	tableSize, minTableSize = 9.0, 5.0 // points

	// average is the average width of a character, relative to the font size: a little
	// more than in ordinary text, because of capitals and digits.
	average = 0.56

	// padding is the sum of a cell's left and right padding, relative to the font size
	// (table.css).
	padding = 1.2

	// longCell is the number of characters from which a cell is wrapped instead of
	// widened.
	longCell = 50

	// longWord is the number of characters from which a word is broken.
	longWord = 18

	// maxTagged is the maximum number of cells of a tagged table: each tag takes some
	// hundred bytes.
	maxTagged = 5000
)

// A column holds measurements of a column of a table.
type column struct {
	longest int // longest cell in characters, at most longCell
	word    int // longest word in characters, at most longWord
	values  int // non-empty cells, without the first row
	numbers int // values that are numbers
}

// need returns the width that n characters need in the column, relative to the font
// size.
func (c column) need(n int) float64 { return average*float64(max(n, 1)) + padding }

// tablePage prints delimited values as a table whose columns all fit on the page. It
// first turns the page if the orientation is auto, then reduces the font, then wraps
// cells. The first row is repeated on each page if it does not look like data.
func (e *Engine) tablePage(ctx context.Context, job *fileops.Job, in []byte) (page, error) {
	var comma byte // to be detected
	if job.Input().Format() == format.TSV {
		comma = '\t'
	}
	t, err := newTable(ctx, charset.Decode(in), comma)
	if err != nil {
		return page{}, err
	}
	cells := t.rows * len(t.columns)
	if limit := e.pool.opts.MaxCells; cells > limit {
		return page{}, fileops.Fail(fileops.ErrLimit, ErrTooLong, "the table has %d cells, more than the limit of %d for a PDF", cells, limit)
	}
	l := newLayout(job.Params, tableMargin, false)
	if job.Params.Get("orientation") == auto && !job.Params.Has("paper_width") && t.width() > l.inner().width {
		l = newLayout(job.Params, tableMargin, true)
	}
	body, font, err := t.write(ctx, l.inner().width)
	if err != nil {
		return page{}, err
	}
	l.plain = l.plain || cells > maxTagged
	style := fmt.Sprintf("%s\ntable { font-size: %s }", tableStyle, css(font))
	return page{html: document(format.Base(job.Input().Name()), style, body), layout: l}, nil
}

// A table is delimited values with measurements from a first pass.
type table struct {
	text    []byte // without a line that declares the separator
	comma   byte
	rows    int
	columns []column
	heading bool // the first row is a heading
}

func newTable(ctx context.Context, text []byte, comma byte) (*table, error) {
	comma, rest, err := delimited.Sniff(bytes.NewReader(text), comma)
	if err != nil {
		return nil, err
	}
	t := &table{comma: comma, heading: true}
	if t.text, err = io.ReadAll(rest); err != nil {
		return nil, err
	}
	named := false
	err = t.each(ctx, func(r *delimited.Reader) {
		for i := range r.Len() {
			if i == len(t.columns) {
				t.columns = append(t.columns, column{})
			}
			cell := bytes.TrimSpace(r.Cell(i))
			if len(cell) == 0 {
				continue
			}
			c := &t.columns[i]
			c.longest = max(c.longest, longestLine(cell))
			for word := range bytes.FieldsSeq(cell[:min(len(cell), 400)]) {
				n := width(word)
				if r.Rows() == 1 {
					n += (n + 5) / 6 // headings are bold
				}
				c.word = max(c.word, min(n, longWord))
			}
			number := isNumber(cell)
			if r.Rows() == 1 {
				named = true
				t.heading = t.heading && !number
				continue
			}
			c.values++
			if number {
				c.numbers++
			}
		}
		t.rows = r.Rows()
	})
	t.heading = t.heading && named && t.rows > 1
	return t, err
}

// each calls do for each row.
func (t *table) each(ctx context.Context, do func(*delimited.Reader)) error {
	r := delimited.NewReader(bytes.NewReader(t.text), rune(t.comma))
	for {
		if r.Rows()%1000 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		do(r)
	}
}

// width returns the preferred width of the table in points.
func (t *table) width() float64 {
	total := 0.0
	for _, c := range t.columns {
		total += c.need(c.longest) * tableSize
	}
	return total
}

// fit returns the font size and the widths of the columns in points. It reduces the font
// until every word fits; below the minimum size it breaks words.
func (t *table) fit(available float64) (font float64, widths []float64) {
	words, wishes := make([]float64, len(t.columns)), make([]float64, len(t.columns))
	allWords, allWishes := 0.0, 0.0
	for i, c := range t.columns {
		words[i], wishes[i] = c.need(c.word), c.need(max(c.longest, c.word))
		allWords += words[i]
		allWishes += wishes[i]
	}
	if allWishes == 0 {
		return tableSize, nil
	}
	// A slightly smaller font is better than wrapped cells.
	font = max(min(available/allWishes, tableSize), 0.8*tableSize)
	font = max(min(available/allWords, font), minTableSize)
	switch room := available / font; {
	case allWishes <= room:
		widths = wishes
	case allWords <= room:
		// The columns share the space that remains after their longest words.
		more := make([]float64, len(wishes))
		for i := range more {
			more[i] = wishes[i] - words[i]
		}
		widths = share(more, room-allWords)
		for i := range widths {
			widths[i] += words[i]
		}
	default:
		widths = share(words, room)
	}
	for i := range widths {
		widths[i] *= font
	}
	return font, widths
}

// share gives each wish its amount. If there is not enough room, the largest wishes get
// equal amounts.
func share(wishes []float64, room float64) []float64 {
	sorted := slices.Sorted(slices.Values(wishes))
	level := 0.0
	for i, w := range sorted {
		if each := room / float64(len(sorted)-i); w > each {
			level = each
			break
		}
		room -= w
		level = w
	}
	out := make([]float64, len(wishes))
	for i, w := range wishes {
		out[i] = min(w, level)
	}
	return out
}

// write returns the table in HTML.
func (t *table) write(ctx context.Context, available float64) (body string, font float64, err error) {
	font, widths := t.fit(available)
	var b strings.Builder
	b.Grow(2*len(t.text) + 1000)
	total := 0.0
	for _, w := range widths {
		total += w
	}
	b.WriteString(`<table style="width:` + css(total) + `"><colgroup>`)
	for _, w := range widths {
		b.WriteString(`<col style="width:` + css(w) + `">`)
	}
	b.WriteString("</colgroup>\n")
	err = t.each(ctx, func(r *delimited.Reader) {
		tag := "td"
		switch {
		case r.Rows() == 1 && t.heading:
			tag = "th"
			b.WriteString("<thead>")
		case r.Rows() == 1 || r.Rows() == 2 && t.heading:
			b.WriteString("<tbody>")
		}
		b.WriteString("<tr>")
		for i, c := range t.columns {
			b.WriteString("<" + tag)
			if c.values > 0 && c.numbers == c.values {
				b.WriteString(" class=n")
			}
			b.WriteString(">")
			cell := bytes.Map(visible, bytes.TrimSpace(r.Cell(i)))
			b.WriteString(html.EscapeString(string(cell)))
		}
		b.WriteByte('\n')
		if tag == "th" {
			b.WriteString("</thead>")
		}
	})
	b.WriteString("</table>\n")
	return b.String(), font, err
}

// visible drops characters that no font shows, except line ends and tabs.
func visible(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
		return -1
	}
	return r
}

// longestLine returns the width of a cell in characters, at most longCell.
func longestLine(cell []byte) int {
	longest := 0
	for line := range bytes.SplitSeq(cell[:min(len(cell), 1000)], []byte("\n")) {
		longest = max(longest, width(line))
	}
	return min(longest, longCell)
}

// isNumber reports whether a cell is a number, an amount or a percentage in any common
// notation.
func isNumber(cell []byte) bool {
	digits := 0
	for _, r := range string(cell) {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case strings.ContainsRune("+-.,' %€$£¥\u2212\u00a0\u202f", r):
		default:
			return false
		}
	}
	return digits > 0
}
