// Package html writes a flow as one HTML page. Pictures are data URLs.
package html

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/flow"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

// Write writes f. name is the title if the document has no title.
func Write(ctx context.Context, w io.Writer, f *flow.Flow, name string) error {
	b := bufio.NewWriterSize(w, 64<<10)
	x := &writer{w: b, ctx: ctx}
	x.document(f, name)
	if x.err != nil {
		return x.err
	}
	return b.Flush()
}

// stylesheet is the complete style of the page.
const stylesheet = `body{max-width:48em;margin:2em auto;padding:0 1em;font:1em/1.5 Georgia,"Times New Roman",serif;color:#111;background:#fff}
h1,h2,h3,h4,h5,h6{line-height:1.25;font-family:system-ui,Arial,sans-serif}
img{max-width:100%;height:auto}
figure{margin:1em 0}
pre{overflow-x:auto;padding:.6em;background:#f5f5f5}
table{border-collapse:collapse;margin:1em 0}
th,td{border:1px solid #bbb;padding:.2em .5em;vertical-align:top;text-align:left}
th{background:#f0f0f0}
td p,th p,li p{margin:0}
.c{text-align:center}
.r{text-align:right}
header,footer{color:#666;font-size:.85em}
`

// A writer writes a flow as HTML. Its first error is sticky.
type writer struct {
	w        *bufio.Writer
	ctx      context.Context
	lists    []string // end tags of the open lists
	next     []int    // by list: number that the next item would get
	pictures int
	err      error
}

func (x *writer) print(s ...string) {
	for _, s := range s {
		x.w.WriteString(s) // Flush returns the error
	}
}

func (x *writer) document(f *flow.Flow, name string) {
	title := strings.TrimSpace(f.Info.Title)
	title = cmp.Or(title, name)
	x.print("<!DOCTYPE html>\n<html lang=\"", ooxml.Escape(f.Lang), "\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>", escapeHTML(title), "</title>\n")
	if f.Info.Author != "" {
		x.print("<meta name=\"author\" content=\"", escapeHTML(f.Info.Author), "\">\n")
	}
	if f.Info.Subject != "" {
		x.print("<meta name=\"description\" content=\"", escapeHTML(f.Info.Subject), "\">\n")
	}
	x.print("<style>\n", stylesheet, "</style>\n</head>\n<body>\n")
	x.running("header", f.Header)
	for _, el := range f.Elements {
		if x.err == nil {
			x.err = context.Cause(x.ctx)
		}
		if x.err != nil {
			return
		}
		x.element(el)
	}
	x.closeLists(0)
	x.notes(f.Notes)
	x.running("footer", f.Footer)
	x.print("</body>\n</html>\n")
}

func (x *writer) running(tag string, lines [][]flow.Inline) {
	if len(lines) == 0 {
		return
	}
	x.print("<", tag, ">\n")
	for _, l := range lines {
		x.print("<p>")
		x.text(l)
		x.print("</p>\n")
	}
	x.print("</", tag, ">\n")
}

func (x *writer) element(el *flow.Element) {
	if el.Kind != flow.ItemElement {
		x.closeLists(0)
	}
	attrs := ""
	if el.Page > 0 {
		attrs = ` id="` + strings.TrimPrefix(flow.PageAnchor(el.Page), "#") + `"`
	}
	if el.RTL {
		attrs += ` dir="rtl"`
	}
	if el.Kind == flow.ParagraphElement || el.Kind == flow.HeadingElement {
		switch {
		case el.Align == model.AlignCentre:
			attrs += ` class="c"`
		case el.Align == model.AlignRight && !el.RTL:
			attrs += ` class="r"`
		}
	}
	switch el.Kind {
	case flow.HeadingElement:
		x.print(fmt.Sprintf("<h%d%s>", el.Level, attrs))
		x.text(el.Text)
		x.print(fmt.Sprintf("</h%d>\n", el.Level))
	case flow.ItemElement:
		x.item(el, attrs)
	case flow.CodeElement:
		x.print("<pre", attrs, "><code>", escapeHTML(strings.Join(el.Code, "\n")), "</code></pre>\n")
	case flow.TableElement:
		x.table(el, attrs)
	case flow.PictureElement:
		x.print("<figure", attrs, ">\n")
		for _, p := range el.Pictures {
			x.picture(p)
		}
		x.print("</figure>\n")
	default:
		x.print("<p", attrs, ">")
		x.text(el.Text)
		x.print("</p>\n")
	}
}

// item writes a list item, and opens and closes lists before it. The item stays
// open for a nested list.
func (x *writer) item(el *flow.Element, attrs string) {
	depth := min(el.Level+1, 9)
	it := el.Item
	open, closing := "<ul>\n", "</li>\n</ul>\n"
	if it.Kind != model.BulletMarker {
		kind := map[model.MarkerKind]string{model.LowerLetterMarker: ` type="a"`, model.UpperLetterMarker: ` type="A"`, model.LowerRomanMarker: ` type="i"`, model.UpperRomanMarker: ` type="I"`}[it.Kind]
		open, closing = "<ol"+kind+">\n", "</li>\n</ol>\n"
	}
	x.closeLists(depth)
	if n := len(x.lists); n == depth && x.lists[n-1] != closing {
		x.closeLists(depth - 1)
	}
	if len(x.lists) == depth {
		x.print("</li>\n")
	}
	for len(x.lists) < depth {
		if len(x.lists) < depth-1 { // a level without its own item
			x.print("<ul>\n<li>")
			x.lists, x.next = append(x.lists, "</li>\n</ul>\n"), append(x.next, 1)
			continue
		}
		x.print(open)
		x.lists, x.next = append(x.lists, closing), append(x.next, 1)
	}
	if it.Kind != model.BulletMarker {
		if it.Value != x.next[depth-1] {
			attrs += fmt.Sprintf(` value="%d"`, it.Value)
		}
		x.next[depth-1] = it.Value + 1
	}
	x.print("<li", attrs, ">")
	x.text(el.Text)
}

// closeLists closes all lists deeper than depth.
func (x *writer) closeLists(depth int) {
	for len(x.lists) > depth {
		n := len(x.lists) - 1
		x.print(x.lists[n])
		x.lists, x.next = x.lists[:n], x.next[:n]
	}
}

func (x *writer) table(el *flow.Element, attrs string) {
	x.print("<table", attrs, ">\n")
	for i, row := range el.Rows {
		switch {
		case i == 0 && el.Header > 0:
			x.print("<thead>\n")
		case i == el.Header:
			x.print("<tbody>\n")
		}
		tag := "td"
		if i < el.Header {
			tag = "th"
		}
		x.print("<tr>")
		for _, c := range row {
			x.print("<", tag)
			if c.Cols > 1 {
				x.print(fmt.Sprintf(` colspan="%d"`, c.Cols))
			}
			if rows := min(c.Rows, groupEnd(i, el.Header, len(el.Rows))-i); rows > 1 {
				x.print(fmt.Sprintf(` rowspan="%d"`, rows))
			}
			switch {
			case c.Right:
				x.print(` class="r"`)
			case c.Centre:
				x.print(` class="c"`)
			}
			x.print(">")
			for k, p := range c.Paragraphs {
				if k > 0 {
					x.print("<br>")
				}
				x.text(p)
			}
			x.print("</", tag, ">")
		}
		x.print("</tr>\n")
		if i == el.Header-1 {
			x.print("</thead>\n")
		}
	}
	x.print("</tbody>\n</table>\n")
}

// groupEnd returns the end of the row group, header or body, that contains row.
func groupEnd(row, header, rows int) int {
	if row < header {
		return header
	}
	return rows
}

func (x *writer) picture(p *model.Picture) {
	if p.Media == nil || x.err != nil {
		return
	}
	f, err := os.Open(p.Media.Path)
	if err != nil {
		x.err = err
		return
	}
	defer f.Close()
	x.pictures++
	alt := p.Alt // text in the picture
	if alt == "" {
		alt = fmt.Sprintf("Picture %d", x.pictures)
	}
	// CSS pixels: 96 to the inch.
	x.print(fmt.Sprintf(`<img alt="%s" width="%d" height="%d" src="data:%s;base64,`, html.EscapeString(alt),
		max(1, int(math.Round(p.W()*96/72))), max(1, int(math.Round(p.H()*96/72))), format.Format(p.Media.Ext).MIME()))
	enc := base64.NewEncoder(base64.StdEncoding, x.w)
	if _, err := io.Copy(enc, f); err != nil {
		x.err = err
	}
	enc.Close()
	x.print("\">\n")
}

func (x *writer) text(text []flow.Inline) {
	for _, in := range text {
		var tags []string
		open := func(on bool, tag string) {
			if on {
				tags = append(tags, tag)
				x.print("<", tag, ">")
			}
		}
		if in.Note > 0 {
			x.print(fmt.Sprintf(`<sup id="ref-%d"><a href="#note-%d">%s</a></sup>`, in.Note, in.Note, escapeHTML(in.Text)))
			continue
		}
		if in.Field != nil {
			x.field(in.Field)
			continue
		}
		if in.Href != "" {
			x.print(`<a href="`, escapeHTML(in.Href), `">`)
		}
		open(in.Bold, "strong")
		open(in.Italic, "em")
		open(in.Underline, "u")
		open(in.Strike, "s")
		open(in.Raise > 0, "sup")
		open(in.Raise < 0, "sub")
		x.print(escapeHTML(in.Text))
		for _, t := range slices.Backward(tags) {
			x.print("</", t, ">")
		}
		if in.Href != "" {
			x.print("</a>")
		}
	}
}

// notes writes the footnotes.
func (x *writer) notes(notes []flow.Note) {
	if len(notes) == 0 {
		return
	}
	x.print("<section role=\"doc-endnotes\">\n<hr>\n")
	for i, n := range notes {
		for k, p := range n.Paragraphs {
			if k > 0 {
				x.print("<p>")
			} else {
				x.print(fmt.Sprintf(`<p id="note-%d"><sup><a href="#ref-%d">%s</a></sup> `, i+1, i+1, escapeHTML(n.Mark)))
			}
			x.text(p)
			x.print("</p>\n")
		}
	}
	x.print("</section>\n")
}

// field writes a form field.
func (x *writer) field(f *model.Field) {
	attrs := ` name="` + escapeHTML(f.Name) + `"`
	if f.Label != "" {
		attrs += ` aria-label="` + escapeHTML(f.Label) + `"`
	}
	if f.ReadOnly {
		attrs += ` disabled`
	}
	switch {
	case f.Ticks():
		kind := "checkbox"
		if f.Kind == model.RadioField {
			kind = "radio"
		}
		if f.Checked {
			attrs += ` checked`
		}
		x.print(`<input type="`, kind, `"`, attrs, `>`)
	case f.Kind == model.ChoiceField && !f.Editable:
		x.print(`<select`, attrs, `>`)
		options := f.Options
		if !slices.Contains(options, f.Value) {
			options = slices.Concat([]string{f.Value}, options)
		}
		for _, o := range options {
			selected := ""
			if o == f.Value {
				selected = ` selected`
			}
			x.print(`<option`, selected, `>`, escapeHTML(o), `</option>`)
		}
		x.print(`</select>`)
	default:
		x.print(`<input type="text"`, attrs, ` value="`, escapeHTML(f.Value), `">`)
	}
}

// escapeHTML escapes s for text or attributes. It removes characters that HTML
// forbids.
func escapeHTML(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe:
			return -1
		}
		return r
	}, s))
}
