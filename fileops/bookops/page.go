package bookops

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A page is a part of the text of a book.
type page struct {
	text    []byte // XHTML
	shows   bool   // text or a picture
	scripts int    // that were left out
}

// tidy makes XHTML of a page. Elements of Mobipocket, which only its readers know, are
// replaced by their content, and so are pictures and media that has does not know.
func tidy(text []byte, name string, has func(href string) bool) (*page, error) {
	root, err := html.ParseWithOptions(bytes.NewReader(text), html.ParseOptionEnableScripting(false))
	if err != nil { // elements are nested too deeply: old books leave many open
		root, err = html.Parse(bytes.NewReader(closed(text)))
	}
	if err != nil {
		return nil, err
	}
	w := &pageWriter{page: new(page), title: name, has: has}
	w.out.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">` + "\n")
	for n := range root.ChildNodes() {
		w.node(n)
	}
	w.text = w.out.Bytes()
	return w.page, nil
}

type pageWriter struct {
	*page
	title string // of a page without one
	out   bytes.Buffer
	body  bool // the body has started
	has   func(href string) bool
}

// closed returns HTML without the elements that pages leave open: those of the style of
// text, and unknown ones with content.
func closed(text []byte) []byte {
	var out bytes.Buffer
	for z := html.NewTokenizer(bytes.NewReader(text)); ; {
		switch z.Next() {
		case html.ErrorToken: // the end
			return out.Bytes()
		case html.StartTagToken, html.EndTagToken:
			raw := bytes.Clone(z.Raw())
			name, _ := z.TagName()
			switch atom.Lookup(name) {
			case 0, atom.Font, atom.B, atom.I, atom.U, atom.Big, atom.Small, atom.Center, atom.Strong, atom.Em, atom.Span, atom.Sub, atom.Sup, atom.Tt, atom.Code, atom.S, atom.Strike, atom.A, atom.Blockquote, atom.Div:
			default:
				out.Write(raw)
			}
		case html.SelfClosingTagToken:
			raw := bytes.Clone(z.Raw())
			out.Write(raw)
			if name, _ := z.TagName(); atom.Lookup(name) == 0 { // HTML ignores the slash
				out.WriteString("</" + string(name) + ">")
			}
		default:
			out.Write(z.Raw())
		}
	}
}

// missing reports whether a reference is to a file that the book does not have.
func (w *pageWriter) missing(href string) bool {
	file, _, _ := strings.Cut(href, "#")
	return file == "" || !strings.Contains(file, ":") && !w.has(file)
}

// node writes a node. The parser limits the depth of elements.
func (w *pageWriter) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		w.shows = w.shows || w.body && strings.ContainsFunc(n.Data, unicode.IsGraphic) && strings.TrimSpace(n.Data) != ""
		w.escape(n.Data, false)
	case html.ElementNode:
		w.element(n)
	}
}

func (w *pageWriter) element(n *html.Node) {
	switch n.DataAtom {
	case atom.Script:
		w.scripts++
		return
	case atom.Body:
		w.body = true
	case atom.Img:
		if w.missing(attribute(n, "src")) {
			return
		}
		w.shows = true
	case atom.Image:
		w.shows = true
	}
	if n.Data == "mbp:pagebreak" {
		w.out.WriteString(`<div style="page-break-before: always"></div>`)
	}
	known := isName(n.Data)
	if known {
		w.out.WriteString("<" + n.Data)
		switch {
		case n.DataAtom == atom.Html:
			w.out.WriteString(` xmlns="http://www.w3.org/1999/xhtml"`)
		case n.DataAtom == atom.Svg && n.Namespace == "svg":
			w.out.WriteString(` xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"`)
		case n.DataAtom == atom.Math && n.Namespace == "math":
			w.out.WriteString(` xmlns="http://www.w3.org/1998/Math/MathML"`)
		}
		w.attributes(n)
		if n.FirstChild == nil && isVoid(n.DataAtom) {
			w.out.WriteString("/>")
			return
		}
		w.out.WriteString(">")
	}
	titled := false
	for c := range n.ChildNodes() {
		titled = titled || c.DataAtom == atom.Title
		w.node(c)
	}
	if n.DataAtom == atom.Head && !titled {
		w.out.WriteString("<title>")
		w.escape(w.title, false)
		w.out.WriteString("</title>")
	}
	if known {
		w.out.WriteString("</" + n.Data + ">")
	}
}

// attribute returns the value of an attribute, or "".
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Namespace == "" && a.Key == name {
			return a.Val
		}
	}
	return ""
}

// attributes writes those attributes of an element that XML allows.
func (w *pageWriter) attributes(n *html.Node) {
	seen := make(map[string]bool)
	for _, a := range n.Attr {
		name := a.Key
		switch {
		case a.Namespace == "xlink" && isName(a.Key), a.Namespace == "xml" && a.Key == "lang":
			name = a.Namespace + ":" + a.Key
		case a.Key == "xml:lang":
		case a.Key == "xmlns" || !isName(a.Key) || strings.HasPrefix(a.Key, "on"): // handlers of events are scripts
			continue
		}
		if seen[name] || (name == "src" || name == "poster") && w.missing(a.Val) {
			continue
		}
		seen[name] = true
		w.out.WriteString(" " + name + `="`)
		w.escape(a.Val, true)
		w.out.WriteString(`"`)
	}
}

// escape writes text without the characters that XML 1.0 excludes (2.2).
func (w *pageWriter) escape(s string, attribute bool) {
	for _, r := range s {
		switch {
		case r == '&':
			w.out.WriteString("&amp;")
		case r == '<':
			w.out.WriteString("&lt;")
		case r == '>':
			w.out.WriteString("&gt;")
		case r == '"' && attribute:
			w.out.WriteString("&quot;")
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0xFFFE, r == 0xFFFF, r == utf8.RuneError:
		default:
			w.out.WriteRune(r)
		}
	}
}

// isName reports whether s is a name of an element or attribute without a prefix.
func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r != '-' && r != '.' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

// isVoid reports whether an element has no content in HTML.
func isVoid(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}
