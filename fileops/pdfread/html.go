package pdfread

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// toHTML makes one page of HTML, with pictures in it.
func (e *Engine) toHTML(ctx context.Context, job *fileops.Job) error {
	f, err := e.flow(ctx, job)
	if err != nil {
		return err
	}
	return job.Write(fileops.ResultName(job.Input(), format.HTML), func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 64<<10)
		x := &htmlWriter{w: b, ctx: ctx}
		x.document(f, format.Base(job.Input().Name()))
		if x.err != nil {
			return x.err
		}
		return b.Flush()
	})
}

// htmlStyle is all that is said about looks.
const htmlStyle = `body{max-width:48em;margin:2em auto;padding:0 1em;font:1em/1.5 Georgia,"Times New Roman",serif;color:#111;background:#fff}
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

// An htmlWriter writes a flow as HTML. The first error stays.
type htmlWriter struct {
	w        *bufio.Writer
	ctx      context.Context
	lists    []string // end tags of the lists that are open
	next     []int    // number that the next item of each would have
	pictures int
	err      error
}

func (x *htmlWriter) print(s ...string) {
	for _, s := range s {
		x.w.WriteString(s) // its error comes back from Flush
	}
}

func (x *htmlWriter) document(f *flow, name string) {
	title := strings.TrimSpace(f.info.title)
	if title == "" {
		title = name
	}
	x.print("<!DOCTYPE html>\n<html lang=\"", escape(f.lang), "\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>", escapeHTML(title), "</title>\n")
	if f.info.author != "" {
		x.print("<meta name=\"author\" content=\"", escapeHTML(f.info.author), "\">\n")
	}
	if f.info.subject != "" {
		x.print("<meta name=\"description\" content=\"", escapeHTML(f.info.subject), "\">\n")
	}
	x.print("<style>\n", htmlStyle, "</style>\n</head>\n<body>\n")
	x.running("header", f.header)
	for _, el := range f.elements {
		if x.err == nil {
			x.err = cancelled(x.ctx)
		}
		if x.err != nil {
			return
		}
		x.element(f, el)
	}
	x.closeLists(0)
	x.running("footer", f.footer)
	x.print("</body>\n</html>\n")
}

func (x *htmlWriter) running(tag string, lines [][]inline) {
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

func (x *htmlWriter) element(f *flow, el *element) {
	if el.kind != itemElement {
		x.closeLists(0)
	}
	attrs := ""
	if el.page > 0 {
		attrs = ` id="` + strings.TrimPrefix(pageAnchor(el.page), "#") + `"`
	}
	if el.rtl {
		attrs += ` dir="rtl"`
	}
	if el.kind == paragraphElement || el.kind == headingElement {
		switch {
		case el.align == alignCentre:
			attrs += ` class="c"`
		case el.align == alignRight && !el.rtl:
			attrs += ` class="r"`
		}
	}
	switch el.kind {
	case headingElement:
		x.print(fmt.Sprintf("<h%d%s>", el.level, attrs))
		x.text(el.text)
		x.print(fmt.Sprintf("</h%d>\n", el.level))
	case itemElement:
		x.item(el, attrs)
	case codeElement:
		x.print("<pre", attrs, "><code>", escapeHTML(strings.Join(el.code, "\n")), "</code></pre>\n")
	case tableElement:
		x.table(el, attrs)
	case pictureElement:
		x.print("<figure", attrs, ">\n")
		for _, p := range el.pictures {
			x.picture(p)
		}
		x.print("</figure>\n")
	default:
		x.print("<p", attrs, ">")
		x.text(el.text)
		x.print("</p>\n")
	}
}

// item writes an item of a list, and what opens and closes lists before it. An
// item stays open for a list in it.
func (x *htmlWriter) item(el *element, attrs string) {
	depth := min(el.level+1, 9)
	it := el.item
	open, closing := "<ul>\n", "</li>\n</ul>\n"
	if it.kind != bulletMarker {
		kind := map[markerKind]string{lowerLetterMarker: ` type="a"`, upperLetterMarker: ` type="A"`, lowerRomanMarker: ` type="i"`, upperRomanMarker: ` type="I"`}[it.kind]
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
		if len(x.lists) < depth-1 { // a level that has no item of its own
			x.print("<ul>\n<li>")
			x.lists, x.next = append(x.lists, "</li>\n</ul>\n"), append(x.next, 1)
			continue
		}
		x.print(open)
		x.lists, x.next = append(x.lists, closing), append(x.next, 1)
	}
	if it.kind != bulletMarker {
		if it.value != x.next[depth-1] {
			attrs += fmt.Sprintf(` value="%d"`, it.value)
		}
		x.next[depth-1] = it.value + 1
	}
	x.print("<li", attrs, ">")
	x.text(el.text)
}

// closeLists closes all lists deeper than depth.
func (x *htmlWriter) closeLists(depth int) {
	for len(x.lists) > depth {
		n := len(x.lists) - 1
		x.print(x.lists[n])
		x.lists, x.next = x.lists[:n], x.next[:n]
	}
}

func (x *htmlWriter) table(el *element, attrs string) {
	x.print("<table", attrs, ">\n")
	for i, row := range el.rows {
		switch {
		case i == 0 && el.header > 0:
			x.print("<thead>\n")
		case i == el.header:
			x.print("<tbody>\n")
		}
		tag := "td"
		if i < el.header {
			tag = "th"
		}
		x.print("<tr>")
		for _, c := range row {
			x.print("<", tag)
			if c.cols > 1 {
				x.print(fmt.Sprintf(` colspan="%d"`, c.cols))
			}
			if rows := min(c.rows, groupEnd(i, el.header, len(el.rows))-i); rows > 1 {
				x.print(fmt.Sprintf(` rowspan="%d"`, rows))
			}
			switch {
			case c.right:
				x.print(` class="r"`)
			case c.centre:
				x.print(` class="c"`)
			}
			x.print(">")
			for k, p := range c.paragraphs {
				if k > 0 {
					x.print("<br>")
				}
				x.text(p)
			}
			x.print("</", tag, ">")
		}
		x.print("</tr>\n")
		if i == el.header-1 {
			x.print("</thead>\n")
		}
	}
	x.print("</tbody>\n</table>\n")
}

// groupEnd returns the row behind the group, header or body, that row is in.
func groupEnd(row, header, rows int) int {
	if row < header {
		return header
	}
	return rows
}

func (x *htmlWriter) picture(p *picture) {
	if p.media == nil || x.err != nil {
		return
	}
	f, err := os.Open(p.media.path)
	if err != nil {
		x.err = err
		return
	}
	defer f.Close()
	x.pictures++
	alt := p.alt // what is written in it
	if alt == "" {
		alt = fmt.Sprintf("Picture %d", x.pictures)
	}
	// CSS pixels: 96 to the inch.
	x.print(fmt.Sprintf(`<img alt="%s" width="%d" height="%d" src="data:%s;base64,`, html.EscapeString(alt),
		max(1, int(math.Round(p.w()*96/72))), max(1, int(math.Round(p.h()*96/72))), format.Format(p.media.ext).MIME()))
	enc := base64.NewEncoder(base64.StdEncoding, x.w)
	if _, err := io.Copy(enc, f); err != nil {
		x.err = err
	}
	enc.Close()
	x.print("\">\n")
}

func (x *htmlWriter) text(text []inline) {
	for _, in := range text {
		var tags []string
		open := func(on bool, tag string) {
			if on {
				tags = append(tags, tag)
				x.print("<", tag, ">")
			}
		}
		if in.href != "" {
			x.print(`<a href="`, escapeHTML(in.href), `">`)
		}
		open(in.bold, "strong")
		open(in.italic, "em")
		open(in.underline, "u")
		open(in.strike, "s")
		open(in.raise > 0, "sup")
		open(in.raise < 0, "sub")
		x.print(escapeHTML(in.text))
		for _, t := range slices.Backward(tags) {
			x.print("</", t, ">")
		}
		if in.href != "" {
			x.print("</a>")
		}
	}
}

// escapeHTML returns s as text or attribute, without characters that HTML does
// not allow.
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

// pageAnchor is the target of links to a page.
func pageAnchor(number int) string { return fmt.Sprintf("#page-%d", number) }
