// Package flow converts a document, which has positions on pages, into a
// sequence of elements for HTML and Markdown: headings, paragraphs, lists,
// tables and pictures.
package flow

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// An Inline is a piece of text of one kind.
type Inline struct {
	Text         string
	Bold, Italic bool
	Strike       bool
	Underline    bool
	Raise        int8
	Href         string
	Note         int          // number of the footnote that it refers to, from 1; 0 if it is text
	Field        *model.Field // the form field that shows it, or nil
}

func (a Inline) like(b Inline) bool { a.Text, b.Text = "", ""; return a == b }

// A Kind is the type of an element.
type Kind int

// Kinds of elements.
const (
	ParagraphElement Kind = iota
	HeadingElement
	ItemElement
	CodeElement
	TableElement
	PictureElement
)

// An Element is a part of a flow.
type Element struct {
	Kind     Kind
	Level    int // of a heading, from 1; of an item, from 0
	Text     []Inline
	Item     *model.ListItem
	Code     []string // lines
	Rows     [][]Cell
	Header   int // number of header rows of a table
	Pictures []*model.Picture
	Align    model.Alignment
	RTL      bool
	Page     int // anchor: the element is the first on a page that links point to; 0 means no anchor
}

// A Cell is a cell of a table. Cells that another cell covers are omitted.
type Cell struct {
	Col, Rows, Cols int
	Paragraphs      [][]Inline
	Right, Centre   bool
}

// A Note is a footnote.
type Note struct {
	Mark       string
	Paragraphs [][]Inline
}

// A Flow is a document from top to bottom.
type Flow struct {
	Info           model.Info
	Lang           string // of the document, or guessed from its words; "" if unknown
	Elements       []*Element
	Columns        map[*Element]int // of tables
	Notes          []Note
	Header, Footer [][]Inline // text that repeats on all pages, without page numbers
}

// New converts a document into a flow.
func New(d *model.Document) *Flow {
	f := &Flow{Info: d.Info, Columns: make(map[*Element]int)}
	for _, s := range d.Sections {
		for i := 0; i < len(s.Blocks); {
			n := 1
			for i+n-1 < len(s.Blocks)-1 && s.Blocks[i+n-1].Joined {
				n++
			}
			addElement(d, f, s.Blocks[i:i+n])
			i += n
		}
	}
	for _, n := range d.Notes {
		note := Note{Mark: n.Mark}
		for _, b := range n.Blocks {
			on := slices.Repeat([]*model.Leaf{d.Leaves[b.Page]}, len(b.Lines))
			note.Paragraphs = append(note.Paragraphs, inlines(d, b.Lines, on, false, model.Style{Font: d.Body.Font}))
		}
		f.Notes = append(f.Notes, note)
	}
	f.Header = runningText(d, func(r *model.Running) []*model.Line { return r.Header })
	f.Footer = runningText(d, func(r *model.Running) []*model.Line { return r.Footer })
	if f.Lang = d.Lang; f.Lang == "" {
		f.Lang = f.guessLanguage()
	}
	return f
}

// addElement adds a block, or several blocks that form one paragraph.
func addElement(d *model.Document, f *Flow, bs []*model.Placed) {
	b := bs[0]
	el := &Element{Align: b.Align, Page: b.Bookmark}
	switch b.Kind {
	case model.TableBlock:
		el.Kind = TableElement
		el.Rows, el.Header = TableRows(d, b.Table, d.Leaves[b.Page])
		f.Columns[el] = len(b.Table.Xs) - 1
	case model.PictureBlock:
		el.Kind, el.Pictures = PictureElement, b.Pictures
	default:
		if len(b.Lines) == 0 || len(b.Lines[0].Words) == 0 {
			if el.Page == 0 {
				return
			}
			break
		}
		el.RTL = b.Lines[0].Words[0].RTL
		base := model.Style{Font: d.Body.Font}
		switch {
		case b.Heading > 0:
			el.Kind, el.Level = HeadingElement, b.Heading
			base = b.Lines[0].Words[0].Spans[0].Style
		case b.List != nil:
			el.Kind, el.Level, el.Item = ItemElement, b.List.Level, b.List
		case isCode(d, b.Block):
			el.Kind = CodeElement
			el.Code = codeLines(b.Lines)
			if k := len(f.Elements) - 1; k >= 0 && f.Elements[k].Kind == CodeElement && el.Page == 0 {
				last := f.Elements[k]
				if b.Before > 0.6*b.Lines[0].Size {
					last.Code = append(last.Code, "")
				}
				last.Code = append(last.Code, el.Code...)
				return
			}
			f.Elements = append(f.Elements, el)
			return
		}
		var lines []*model.Line
		var on []*model.Leaf // pages of the lines
		for _, p := range bs {
			for range p.Lines {
				on = append(on, d.Leaves[p.Page])
			}
			lines = append(lines, p.Lines...)
		}
		el.Text = inlines(d, lines, on, b.List != nil, base)
	}
	f.Elements = append(f.Elements, el)
}

// inlines returns the text of lines. skip omits the first word, a list marker.
// Only differences from base count as emphasis.
func inlines(d *model.Document, lines []*model.Line, on []*model.Leaf, skip bool, base model.Style) []Inline {
	var out []Inline
	put := func(in Inline) {
		if k := len(out) - 1; k >= 0 && out[k].like(in) {
			out[k].Text += in.Text
			return
		}
		out = append(out, in)
	}
	for li, l := range lines {
		words := l.Words
		if li == 0 && skip && len(words) > 1 {
			words = words[1:]
		}
		for i, w := range words {
			sep := ""
			switch {
			case len(out) == 0:
			case i == 0 && li > 0:
				sep = model.LineJoint(lines[li-1], l)
			case !w.Glued:
				sep = " "
			}
			for k, sp := range w.Spans {
				in := Inline{
					Bold: bold(sp.Font) && !bold(base.Font), Italic: italic(sp.Font) && !italic(base.Font),
					Strike: sp.Strike, Underline: sp.Underline, Raise: sp.Raise, Href: href(d, sp.Link, on[li]), Field: w.Field,
				}
				if w.IsReference(&sp) {
					in = Inline{Note: w.Note.ID, Raise: 1}
				}
				if w.Field != nil {
					in = Inline{Field: w.Field}
				}
				if in.Href != "" {
					in.Underline = false // links are underlined anyway
				}
				if k == 0 && sep != "" {
					space := Inline{Text: sep}
					if last := out[len(out)-1]; last.like(in) {
						space = in
						space.Text = sep
					} else if last.Href != "" && last.Href == in.Href {
						space.Href = in.Href
					}
					put(space)
				}
				in.Text = sp.Text
				if w.Leader {
					in.Text = "…"
				}
				if i == len(words)-1 && k == len(w.Spans)-1 && li+1 < len(lines) {
					in.Text = d.Unhyphen(w, in.Text, lines[li+1])
				}
				put(in)
			}
		}
	}
	return out
}

func bold(f *model.Font) bool { return f != nil && f.Bold }

func italic(f *model.Font) bool { return f != nil && f.Italic }

// href returns the target of a link on a page, or "".
func href(d *model.Document, link int, on *model.Leaf) string {
	if link == 0 || on == nil || link > len(on.Links) {
		return ""
	}
	l := on.Links[link-1]
	if l.URI != "" {
		return l.URI
	}
	if d.Leaves[l.Page] == nil {
		return ""
	}
	return PageAnchor(l.Page)
}

// isCode reports whether a paragraph is set in a monospaced font, in a document
// that otherwise is not.
func isCode(d *model.Document, b *model.Block) bool {
	if monospaced(d.Body.Font) || b.Align == model.AlignCentre {
		return false
	}
	for _, l := range b.Lines {
		if !l.All(func(s model.Style) bool { return monospaced(s.Font) }) {
			return false
		}
	}
	return true
}

func monospaced(f *model.Font) bool {
	if f == nil {
		return false
	}
	low := strings.ToLower(f.Name)
	for _, part := range []string{"courier", "mono", "consol", "menlo", "typewriter", "source code", "fixed"} {
		if strings.Contains(low, part) {
			return true
		}
	}
	return false
}

// codeLines returns lines with their indents and gaps, in multiples of a
// character's width.
func codeLines(lines []*model.Line) []string {
	left := math.Inf(1)
	for _, l := range lines {
		left = min(left, l.L)
	}
	var out []string
	for _, l := range lines {
		wide := 0.6 * l.Size
		if n := utf8.RuneCountInString(strings.ReplaceAll(l.Text(), " ", "")); n > 0 && len(l.Words) == 1 {
			wide = l.W() / float64(n)
		}
		var b strings.Builder
		at := left
		for i, w := range l.Words {
			n := int(math.Round((w.L - at) / max(wide, 1)))
			if i > 0 && !w.Glued {
				n = max(n, 1)
			}
			b.WriteString(strings.Repeat(" ", min(max(n, 0), 120)))
			b.WriteString(w.Text())
			at = w.R
		}
		out = append(out, b.String())
	}
	return out
}

// TableRows returns the cells of a table by rows, and the number of header rows.
// Header rows are the first rows if all their text is bold and that of other
// rows is not.
func TableRows(d *model.Document, t *model.Table, on *model.Leaf) (rows [][]Cell, header int) {
	rows = make([][]Cell, len(t.Ys)-1)
	strong := make([]bool, len(rows))
	for i := range strong {
		strong[i] = true
	}
	filled := make([]bool, len(rows))
	for _, c := range t.Cells {
		if c.Row < 0 || c.Row >= len(rows) {
			continue
		}
		fc := Cell{Col: c.Col, Rows: min(c.Rows, len(rows)-c.Row), Cols: c.Cols}
		for _, b := range c.Blocks {
			if len(b.Lines) == 0 {
				continue
			}
			pages := make([]*model.Leaf, len(b.Lines))
			for i := range pages {
				pages[i] = on
			}
			text := inlines(d, b.Lines, pages, false, model.Style{Font: d.Body.Font})
			fc.Paragraphs = append(fc.Paragraphs, text)
			fc.Right, fc.Centre = b.Align == model.AlignRight, b.Align == model.AlignCentre
			filled[c.Row] = true
			for _, in := range text {
				strong[c.Row] = strong[c.Row] && (in.Bold || strings.TrimSpace(in.Text) == "")
			}
		}
		rows[c.Row] = append(rows[c.Row], fc)
	}
	for header < len(rows) && filled[header] && strong[header] {
		header++
	}
	if header == len(rows) || header > 3 {
		header = 0
	}
	for i := range rows {
		slices.SortFunc(rows[i], func(a, b Cell) int { return a.Col - b.Col })
		for k := range rows[i] {
			if i >= header {
				break
			}
			for _, p := range rows[i][k].Paragraphs {
				for n := range p {
					p[n].Bold = false
				}
			}
		}
	}
	return rows, header
}

// mostRunning limits the different lines at the top or bottom of pages. More of
// them are chapter titles, which the text has anyway.
const mostRunning = 4

// mostNumber is the largest page number that is removed from headers and
// footers.
const mostNumber = 5000

// runningText returns the headers or footers of all sections, without
// duplicates.
func runningText(d *model.Document, of func(*model.Running) []*model.Line) [][]Inline {
	seen := make(map[string]bool)
	var out [][]Inline
	for _, s := range d.Sections {
		for _, r := range []*model.Running{s.First, s.Odd, s.Even} {
			if r == nil {
				continue
			}
			for _, l := range of(r) {
				key := model.LineKey(l)
				if seen[key] {
					continue
				}
				seen[key] = true
				var b strings.Builder
				for _, w := range l.Words {
					if n, ok := model.PageNumber(w.Text()); ok && s.Numbered && n-s.Offset >= 0 && n-s.Offset <= mostNumber {
						continue
					}
					b.WriteString(w.Text() + " ")
				}
				if t := strings.TrimSpace(b.String()); strings.ContainsFunc(t, unicode.IsLetter) {
					out = append(out, []Inline{{Text: t}})
				}
			}
		}
	}
	if len(out) > mostRunning {
		return nil
	}
	return out
}

// PlainText returns text without emphasis.
func PlainText(text []Inline) string {
	var b strings.Builder
	for _, in := range text {
		b.WriteString(in.Text)
	}
	return b.String()
}

// functionWords are short words that identify a language.
var functionWords = []struct {
	lang  string
	words string
}{
	{"en", "the and of to is that for with are this from which"},
	{"de", "der die und das ist nicht mit den von für auf eine"},
	{"fr", "le les des et est que une dans pour qui sur pas"},
	{"es", "el los las y que una por con para del como más"},
	{"it", "il che di per una con non sono della nel gli più"},
	{"pt", "os que uma para com não por mais dos como são ao"},
	{"nl", "het een van en dat niet met voor zijn aan ook wordt"},
}

// guessLanguage returns the language of the text, or "" if that is unclear.
func (f *Flow) guessLanguage() string {
	count := make(map[string]int)
	total := 0
	for _, el := range f.Elements {
		for _, w := range strings.Fields(PlainText(el.Text)) {
			count[strings.ToLower(w)]++
			total++
		}
		if total > 20_000 {
			break
		}
	}
	best, most, second := "", 0, 0
	for _, l := range functionWords {
		n := 0
		for _, w := range strings.Fields(l.words) {
			n += count[w]
		}
		switch {
		case n > most:
			best, second, most = l.lang, most, n
		case n > second:
			second = n
		}
	}
	if most < 5 || 20*most < total || 3*second > 2*most {
		return ""
	}
	return best
}

// PageAnchor is the target of links to a page.
func PageAnchor(number int) string { return fmt.Sprintf("#page-%d", number) }
