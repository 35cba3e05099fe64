package webops

import (
	"bytes"
	"html"
	"regexp"
	"strings"

	nethtml "golang.org/x/net/html"
)

var (
	refresh = regexp.MustCompile(`(?i)<meta\s[^>]*http-equiv\s*=\s*["']?\s*refresh[^>]*>`)
	xmlFile = regexp.MustCompile(`^\s*<\?xml\s`)
	xhtml   = regexp.MustCompile(`(?i)<!doctype\s+html\s[^>]*xhtml|<html\s[^>]*xmlns\s*=`)
)

// void elements have no end tag (HTML, 13.1.2); foreign ones may be empty anyway.
var void = map[string]bool{
	"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true, "input": true,
	"link": true, "meta": true, "param": true, "source": true, "track": true, "wbr": true,
}

// prepare changes parts of a page that would make it vanish: instructions to navigate
// elsewhere, and XHTML tags that HTML reads as start tags without an end tag. The
// browser handles everything else.
func prepare(text []byte) string {
	text = refresh.ReplaceAll(text, nil)
	head := text[:min(len(text), 1024)]
	if xmlFile.Match(head) || xhtml.Match(head) {
		text = closeTags(text)
	}
	return string(text)
}

// closeTags adds an end tag to "<p/>", except in SVG and MathML, where HTML has the same
// rule as XML.
func closeTags(text []byte) []byte {
	if !bytes.Contains(text, []byte("/>")) {
		return text
	}
	var b bytes.Buffer
	b.Grow(len(text) + len(text)/16)
	z := nethtml.NewTokenizer(bytes.NewReader(text))
	foreign := 0
	for {
		kind := z.Next()
		if kind == nethtml.ErrorToken {
			return b.Bytes()
		}
		raw := z.Raw()
		if kind == nethtml.TextToken || kind == nethtml.CommentToken || kind == nethtml.DoctypeToken {
			b.Write(raw)
			continue
		}
		closed := kind == nethtml.SelfClosingTagToken
		raw = bytes.Clone(raw) // TagName converts it to lower case
		name, _ := z.TagName()
		tag := string(name)
		if tag == "svg" || tag == "math" {
			switch kind {
			case nethtml.StartTagToken:
				foreign++
			case nethtml.EndTagToken:
				foreign = max(0, foreign-1)
			}
		}
		if closed && foreign == 0 && !void[tag] && tag != "svg" && tag != "math" {
			b.Write(bytes.TrimSuffix(raw, []byte("/>")))
			b.WriteString("></" + tag + ">")
			z.NextIsNotRawText() // otherwise it would read the text after <title/> as its content
			continue
		}
		b.Write(raw)
	}
}

// Limits for tagged PDFs, see heavy.
const (
	maxTags   = 16_000 // of a page, start and end tags
	maxInline = 1500   // parts of one block
)

// inline elements are part of a line (HTML, 3.2.5.2.5, the usual ones).
var inline = map[string]bool{
	"a": true, "abbr": true, "b": true, "bdi": true, "bdo": true, "big": true, "br": true, "cite": true, "code": true, "del": true,
	"em": true, "font": true, "i": true, "img": true, "ins": true, "kbd": true, "label": true, "mark": true, "q": true, "s": true,
	"samp": true, "small": true, "span": true, "strike": true, "strong": true, "sub": true, "sup": true, "tt": true, "u": true,
	"var": true, "wbr": true,
}

// heavy reports whether tagging a page would take longer than everything else. The
// browser searches for each part of a paragraph in all previous parts. 8000 parts take
// minutes.
func heavy(page string) bool {
	if strings.Count(page, "<") > maxTags {
		return true
	}
	z := nethtml.NewTokenizer(strings.NewReader(page))
	parts := 0
	for parts <= maxInline {
		switch z.Next() {
		case nethtml.ErrorToken:
			return false
		case nethtml.TextToken:
			raw := z.Raw()
			parts += bytes.Count(raw, []byte("\n")) + len(raw)/100 // approximate number of lines
		case nethtml.StartTagToken, nethtml.SelfClosingTagToken, nethtml.EndTagToken:
			if name, _ := z.TagName(); inline[string(name)] {
				parts++
			} else {
				parts = 0
			}
		}
	}
	return true
}

// document returns a complete page.
func document(title, style, body string) string {
	var b strings.Builder
	b.Grow(len(style) + len(body) + 200)
	b.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>")
	b.WriteString(html.EscapeString(title))
	b.WriteString("</title><style>")
	b.WriteString(style)
	b.WriteString("</style></head><body>\n")
	b.WriteString(body)
	b.WriteString("</body></html>\n")
	return b.String()
}
