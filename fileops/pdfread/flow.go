package pdfread

import (
	"context"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
)

// This file turns a doc, which knows where everything stands on its pages, into
// a flow: what HTML and Markdown have words for.

// An inline is a piece of text of one kind.
type inline struct {
	text         string
	bold, italic bool
	strike       bool
	underline    bool
	raise        int8
	href         string
}

func (a inline) like(b inline) bool { a.text, b.text = "", ""; return a == b }

type elementKind int

const (
	paragraphElement elementKind = iota
	headingElement
	itemElement
	codeElement
	tableElement
	pictureElement
)

// An element is a part of a flow.
type element struct {
	kind     elementKind
	level    int // of a heading, from 1; of an item, from 0
	text     []inline
	item     *listItem
	code     []string // lines
	rows     [][]flowCell
	header   int // how many rows of the table are its header
	pictures []*picture
	align    alignment
	rtl      bool
	page     int // anchor: the element is the first of a page that links lead to; 0 for none
}

// A flowCell is a cell of a table. One that is covered by another is not there.
type flowCell struct {
	col, rows, cols int
	paragraphs      [][]inline
	right, centre   bool
}

// A flow is a document from top to bottom.
type flow struct {
	info           docInfo
	lang           string
	elements       []*element
	columns        map[*element]int // of tables
	header, footer [][]inline       // what stands on all pages, without page numbers
}

// flow reads the document of job and returns it as a flow.
func (e *Engine) flow(ctx context.Context, job *fileops.Job) (*flow, error) {
	r, err := e.read(ctx, job, 0.85)
	if err != nil {
		return nil, err
	}
	d := layOut(ctx, r.sheets, r.marks)
	if err := cancelled(ctx); err != nil {
		return nil, err
	}
	d.info = r.info
	f := d.flow()
	if f.lang = r.lang; f.lang == "" {
		f.lang = f.guessLanguage()
	}
	job.Progress(0.92)
	return f, nil
}

func (d *doc) flow() *flow {
	f := &flow{info: d.info, columns: make(map[*element]int)}
	for _, s := range d.sections {
		for i := 0; i < len(s.blocks); {
			n := 1
			for i+n-1 < len(s.blocks)-1 && s.blocks[i+n-1].joined {
				n++
			}
			d.element(f, s.blocks[i:i+n])
			i += n
		}
	}
	f.header = d.runningText(func(r *running) []*line { return r.header })
	f.footer = d.runningText(func(r *running) []*line { return r.footer })
	return f
}

// element adds a block, or several that are one paragraph.
func (d *doc) element(f *flow, bs []*placed) {
	b := bs[0]
	el := &element{align: b.align, page: b.bookmark}
	switch b.kind {
	case tableBlock:
		el.kind = tableElement
		el.rows, el.header = d.tableRows(b.table, d.leaves[b.page])
		f.columns[el] = len(b.table.xs) - 1
	case pictureBlock:
		el.kind, el.pictures = pictureElement, b.pictures
	default:
		if len(b.lines) == 0 || len(b.lines[0].words) == 0 {
			if el.page == 0 {
				return
			}
			break
		}
		el.rtl = b.lines[0].words[0].rtl
		base := style{font: d.body.font}
		switch {
		case b.heading > 0:
			el.kind, el.level = headingElement, b.heading
			base = b.lines[0].words[0].spans[0].style
		case b.list != nil:
			el.kind, el.level, el.item = itemElement, b.list.level, b.list
		case d.isCode(b.block):
			el.kind = codeElement
			el.code = codeLines(b.lines)
			if k := len(f.elements) - 1; k >= 0 && f.elements[k].kind == codeElement && el.page == 0 {
				last := f.elements[k]
				if b.before > 0.6*b.lines[0].size {
					last.code = append(last.code, "")
				}
				last.code = append(last.code, el.code...)
				return
			}
			f.elements = append(f.elements, el)
			return
		}
		var lines []*line
		var on []*leaf // pages of the lines
		for _, p := range bs {
			for range p.lines {
				on = append(on, d.leaves[p.page])
			}
			lines = append(lines, p.lines...)
		}
		el.text = d.inlines(lines, on, b.list != nil, base)
	}
	f.elements = append(f.elements, el)
}

// inlines returns the text of lines. skip leaves out the first word, a marker of
// a list. What base has is no emphasis.
func (d *doc) inlines(lines []*line, on []*leaf, skip bool, base style) []inline {
	var out []inline
	put := func(in inline) {
		if k := len(out) - 1; k >= 0 && out[k].like(in) {
			out[k].text += in.text
			return
		}
		out = append(out, in)
	}
	for li, l := range lines {
		words := l.words
		if li == 0 && skip && len(words) > 1 {
			words = words[1:]
		}
		for i, w := range words {
			sep := ""
			switch {
			case len(out) == 0:
			case i == 0 && li > 0:
				sep = lineJoint(lines[li-1], l)
			case !w.glued:
				sep = " "
			}
			for k, sp := range w.spans {
				in := inline{
					bold: bold(sp.font) && !bold(base.font), italic: italic(sp.font) && !italic(base.font),
					strike: sp.strike, underline: sp.underline, raise: sp.raise, href: d.href(sp.link, on[li]),
				}
				if in.href != "" {
					in.underline = false // it is one anyway
				}
				if k == 0 && sep != "" {
					space := inline{text: sep}
					if last := out[len(out)-1]; last.like(in) {
						space = in
						space.text = sep
					} else if last.href != "" && last.href == in.href {
						space.href = in.href
					}
					put(space)
				}
				in.text = sp.text
				if i == len(words)-1 && k == len(w.spans)-1 && li+1 < len(lines) {
					in.text = d.unhyphen(w, in.text, lines[li+1])
				}
				put(in)
			}
		}
	}
	return out
}

func bold(f *font) bool   { return f != nil && f.bold }
func italic(f *font) bool { return f != nil && f.italic }

// href returns where a link of a page leads, "" for nowhere.
func (d *doc) href(link int, on *leaf) string {
	if link == 0 || on == nil || link > len(on.links) {
		return ""
	}
	l := on.links[link-1]
	if l.uri != "" {
		return l.uri
	}
	if d.leaves[l.page] == nil {
		return ""
	}
	return pageAnchor(l.page)
}

// isCode tells whether a paragraph is set in a font of a typewriter, in a
// document that otherwise is not.
func (d *doc) isCode(b *block) bool {
	if monospaced(d.body.font) || b.align == alignCentre {
		return false
	}
	for _, l := range b.lines {
		if !l.all(func(s style) bool { return monospaced(s.font) }) {
			return false
		}
	}
	return true
}

func monospaced(f *font) bool {
	if f == nil {
		return false
	}
	low := strings.ToLower(f.name)
	for _, part := range []string{"courier", "mono", "consol", "menlo", "typewriter", "source code", "fixed"} {
		if strings.Contains(low, part) {
			return true
		}
	}
	return false
}

// codeLines returns lines with their indents and gaps, as far as these are
// multiples of the width of a character.
func codeLines(lines []*line) []string {
	left := math.Inf(1)
	for _, l := range lines {
		left = min(left, l.l)
	}
	var out []string
	for _, l := range lines {
		wide := 0.6 * l.size
		if n := utf8.RuneCountInString(strings.ReplaceAll(l.text(), " ", "")); n > 0 && len(l.words) == 1 {
			wide = l.w() / float64(n)
		}
		var b strings.Builder
		at := left
		for i, w := range l.words {
			n := int(math.Round((w.l - at) / max(wide, 1)))
			if i > 0 && !w.glued {
				n = max(n, 1)
			}
			b.WriteString(strings.Repeat(" ", min(max(n, 0), 120)))
			b.WriteString(w.text())
			at = w.r
		}
		out = append(out, b.String())
	}
	return out
}

// tableRows returns the cells of a table by rows, and how many rows are its
// header: the first ones, if all of their text is bold and that of others is not.
func (d *doc) tableRows(t *table, on *leaf) (rows [][]flowCell, header int) {
	rows = make([][]flowCell, len(t.ys)-1)
	strong := make([]bool, len(rows))
	for i := range strong {
		strong[i] = true
	}
	filled := make([]bool, len(rows))
	for _, c := range t.cells {
		if c.row < 0 || c.row >= len(rows) {
			continue
		}
		fc := flowCell{col: c.col, rows: min(c.rows, len(rows)-c.row), cols: c.cols}
		for _, b := range c.blocks {
			if len(b.lines) == 0 {
				continue
			}
			pages := make([]*leaf, len(b.lines))
			for i := range pages {
				pages[i] = on
			}
			text := d.inlines(b.lines, pages, false, style{font: d.body.font})
			fc.paragraphs = append(fc.paragraphs, text)
			fc.right, fc.centre = b.align == alignRight, b.align == alignCentre
			filled[c.row] = true
			for _, in := range text {
				strong[c.row] = strong[c.row] && (in.bold || strings.TrimSpace(in.text) == "")
			}
		}
		rows[c.row] = append(rows[c.row], fc)
	}
	for header < len(rows) && filled[header] && strong[header] {
		header++
	}
	if header == len(rows) || header > 3 {
		header = 0
	}
	for i := range rows {
		slices.SortFunc(rows[i], func(a, b flowCell) int { return a.col - b.col })
		for k := range rows[i] {
			if i >= header {
				break
			}
			for _, p := range rows[i][k].paragraphs {
				for n := range p {
					p[n].bold = false
				}
			}
		}
	}
	return rows, header
}

// mostRunning is how many different lines may stand at the top, or bottom, of
// pages. More of them are the titles of chapters, which the text has anyway.
const mostRunning = 4

// runningText returns the headers or footers of all sections, each once.
func (d *doc) runningText(of func(*running) []*line) [][]inline {
	seen := make(map[string]bool)
	var out [][]inline
	for _, s := range d.sections {
		for _, r := range []*running{s.first, s.odd, s.even} {
			if r == nil {
				continue
			}
			for _, l := range of(r) {
				key := lineKey(l)
				if seen[key] {
					continue
				}
				seen[key] = true
				var b strings.Builder
				for _, w := range l.words {
					if n, ok := pageNumber(w.text()); ok && s.numbered && n-s.offset >= 0 && n-s.offset <= maxPages {
						continue
					}
					b.WriteString(w.text() + " ")
				}
				if t := strings.TrimSpace(b.String()); strings.ContainsFunc(t, unicode.IsLetter) {
					out = append(out, []inline{{text: t}})
				}
			}
		}
	}
	if len(out) > mostRunning {
		return nil
	}
	return out
}

// plainText returns text without its emphasis.
func plainText(text []inline) string {
	var b strings.Builder
	for _, in := range text {
		b.WriteString(in.text)
	}
	return b.String()
}

// functionWords are short words by which a language is known.
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

// guessLanguage returns the language that the text is in, "" if that is not clear.
func (f *flow) guessLanguage() string {
	count := make(map[string]int)
	total := 0
	for _, el := range f.elements {
		for _, w := range strings.Fields(plainText(el.text)) {
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
