package officeops

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/filewright/filewright/fileops"
)

// pageStyle precedes the styles of a document, which may override it. Without it
// LibreOffice uses very small margins.
const pageStyle = `<style>@page { size: 21cm 29.7cm; margin: 2cm }</style>`

var (
	cssURL    = regexp.MustCompile(`(?is)url\s*\([^)]*\)?`)
	tagName   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	cssImport = regexp.MustCompile(`(?is)@import[^;]*;?`)
)

// dropped lists the elements to remove. The value is true if their content is removed
// too.
var dropped = map[string]bool{
	"script": true, "iframe": true, "frame": true, "frameset": true, "object": true, "applet": true,
	"audio": true, "video": true, "canvas": true, "template": true, "svg": true, "annotation": true,
	"annotation-xml": true, "noframes": true, "noembed": true, "noscript": true, "portal": true,
	"base": false, "link": false, "meta": false, "embed": false, "source": false, "track": false, "param": false,
}

// void elements have no end tag (HTML, 13.1.2).
var void = map[string]bool{
	"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true, "input": true,
	"link": true, "meta": true, "param": true, "source": true, "track": true, "wbr": true,
}

// A cleaner rewrites HTML so that an engine cannot fetch or run anything. It also adds
// styles for a better layout.
type cleaner struct {
	tables   bool // add a border to tables without one: for pages without styles
	pageSize bool // add pageStyle

	// book replaces boxes by paragraphs. A box around a heading would begin in one file
	// of a book and end in another.
	book bool

	lost *pageLosses // counts the parts that are left out; may be nil
}

// clean rewrites a page in UTF-8. The result is ASCII, so its declared encoding does not
// matter. clean holds one tag, or the text between two tags, in memory. It limits their
// size.
func (c cleaner) clean(ctx context.Context, w io.Writer, page io.Reader) error {
	b := bufio.NewWriter(w)
	b.WriteString("<!DOCTYPE html>\n")
	if c.pageSize {
		b.WriteString(pageStyle + "\n")
	}
	z := html.NewTokenizer(&attributeCounter{r: fileops.ContextReader(ctx, page)})
	z.SetMaxBuf(maxToken)
	skip, depth := "", 0 // the element that is skipped, and its nesting depth
	inStyle := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := tokenError(z.Err()); err != nil {
				return err
			}
			return b.Flush()
		case html.TextToken:
			switch {
			case depth > 0:
			case inStyle:
				css := strings.ReplaceAll(string(z.Raw()), `\`, "")
				writeASCII(b, cssImport.ReplaceAllString(cssURL.ReplaceAllString(css, "none"), ""))
			default:
				writeEscaped(b, string(z.Text()))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			whole, drop := dropped[t.Data]
			if drop || depth > 0 {
				if depth == 0 {
					c.count(t)
				}
				if t.Type == html.StartTagToken && !void[t.Data] {
					if depth == 0 && whole {
						skip, depth = t.Data, 1
					} else if depth > 0 && t.Data == skip {
						depth++
					}
				}
				continue
			}
			if !tagName.MatchString(t.Data) {
				continue
			}
			if t.Data == "input" {
				writeCheckbox(b, t)
				continue
			}
			if t.Data == "img" && !slices.ContainsFunc(t.Attr, func(a html.Attribute) bool { return a.Key == "src" && isPicture(a.Val) }) {
				c.count(t)
				for _, a := range t.Attr {
					if a.Key == "alt" {
						writeEscaped(b, a.Val)
					}
				}
				continue
			}
			inStyle = t.Data == "style"
			if c.book && isBox(t.Data) {
				b.WriteString("<p>")
				continue
			}
			c.writeTag(b, t)
		case html.EndTagToken:
			t := z.Token()
			if depth > 0 {
				if t.Data == skip {
					depth--
				}
				continue
			}
			inStyle = false
			if c.book && isBox(t.Data) {
				b.WriteString("<p>")
				continue
			}
			if _, drop := dropped[t.Data]; !drop && t.Data != "input" && tagName.MatchString(t.Data) {
				b.WriteString("</" + t.Data + ">")
			}
		}
	}
}

// isBox reports whether an element only groups others.
func isBox(element string) bool {
	switch element {
	case "div", "section", "article", "main", "header", "footer", "aside", "nav", "center":
		return true
	}
	return false
}

// count counts an element that is left out.
func (c cleaner) count(t html.Token) {
	if c.lost == nil {
		return
	}
	a := map[string]string{}
	for _, attr := range t.Attr {
		a[strings.ToLower(attr.Key)] = strings.ToLower(strings.TrimSpace(attr.Val))
	}
	one := func(name string) bool { return a[name] == "0" || a[name] == "1" }
	switch t.Data {
	case "img":
		if (a["src"] != "" || a["srcset"] != "") && !one("width") && !one("height") { // those count readers
			c.lost.images++
		}
	case "script":
		if kind := a["type"]; kind == "" || kind == "module" || strings.Contains(kind, "javascript") {
			c.lost.scripts++
		}
	case "link":
		if slices.Contains(strings.Fields(a["rel"]), "stylesheet") && a["media"] != "screen" {
			c.lost.styles++
		}
	case "iframe", "frame", "object", "embed":
		if !one("width") && !one("height") {
			c.lost.frames++
		}
	case "svg":
		c.lost.drawings++
	case "audio", "video":
		c.lost.recordings++
	}
}

func (c cleaner) writeTag(b *bufio.Writer, t html.Token) {
	b.WriteString("<" + t.Data)
	border := false
	for _, a := range t.Attr {
		v := a.Val
		switch key := strings.ToLower(a.Key); {
		case strings.HasPrefix(key, "on"), strings.Contains(key, ":"), strings.Trim(key, "abcdefghijklmnopqrstuvwxyz-") != "":
			continue
		case key == "src":
			if t.Data != "img" || !isPicture(v) {
				continue
			}
			v = strings.Join(strings.Fields(v), "")
		case key == "href":
			if t.Data != "a" && t.Data != "area" || !isLink(v) {
				continue
			}
		case key == "style":
			if strings.Contains(v, `\`) {
				continue
			}
			v = cssURL.ReplaceAllString(v, "none")
		case key == "type" && t.Data == "ol" && v == "1":
			continue // the default; LibreOffice turns it into bullets in a nested list
		case key == "border" && t.Data == "table":
			border = true
		case key == "srcset", key == "background", key == "poster", key == "data", key == "action", key == "formaction",
			key == "ping", key == "longdesc", key == "cite", key == "classid", key == "codebase", key == "dynsrc",
			key == "lowsrc", key == "manifest", key == "archive", key == "usemap", key == "role", key == "profile":
			continue
		}
		b.WriteString(" " + a.Key + `="`)
		writeEscaped(b, v)
		b.WriteString(`"`)
	}
	if t.Data == "table" && c.tables && !border {
		b.WriteString(` border="1" cellspacing="0" cellpadding="4"`)
	}
	b.WriteString(">")
	if t.Type == html.SelfClosingTagToken && !void[t.Data] {
		b.WriteString("</" + t.Data + ">")
	}
}

// isPicture reports whether a URL contains a picture. It rejects SVG, which can refer to
// other files.
func isPicture(url string) bool {
	url = strings.ToLower(strings.TrimSpace(url[:min(len(url), 64)]))
	for _, kind := range []string{"png", "jpeg", "jpg", "gif", "bmp", "webp", "tiff"} {
		if strings.HasPrefix(url, "data:image/"+kind+";") {
			return true
		}
	}
	return false
}

// isLink reports whether a link does not depend on the location of the page.
func isLink(url string) bool {
	url = strings.ToLower(strings.TrimSpace(url))
	for _, prefix := range []string{"#", "http://", "https://", "mailto:", "tel:", "ftp://"} {
		if strings.HasPrefix(url, prefix) {
			return true
		}
	}
	return false
}

// writeCheckbox writes the state of a form's checkbox as text. LibreOffice would convert
// it to a form control, which most formats lack.
func writeCheckbox(b *bufio.Writer, t html.Token) {
	kind, checked, value := "text", false, ""
	for _, a := range t.Attr {
		switch strings.ToLower(a.Key) {
		case "type":
			kind = strings.ToLower(a.Val)
		case "checked":
			checked = true
		case "value":
			value = a.Val
		}
	}
	switch {
	case kind == "checkbox" && checked, kind == "radio" && checked:
		b.WriteString("&#9745; ")
	case kind == "checkbox", kind == "radio":
		b.WriteString("&#9744; ")
	case kind != "hidden" && kind != "password":
		writeEscaped(b, value)
	}
}

// writeASCII writes a style with escapes for non-ASCII characters.
func writeASCII(b *bufio.Writer, css string) {
	for _, r := range css {
		if r < 0x80 {
			b.WriteByte(byte(r))
		} else {
			fmt.Fprintf(b, `\%x `, r)
		}
	}
}

// writeEscaped writes a text with character references for non-ASCII and special HTML
// characters.
func writeEscaped(b *bufio.Writer, s string) {
	for _, r := range s {
		switch {
		case r >= 0x80:
			fmt.Fprintf(b, "&#%d;", r)
		case strings.ContainsRune(`&<>"'`, r):
			b.WriteString(html.EscapeString(string(r)))
		default:
			b.WriteByte(byte(r))
		}
	}
}

const (
	maxToken      = 16 << 20 // bytes of a tag, including embedded pictures, or of the text between two tags
	maxAttributes = 50_000   // of a tag
)

// An attributeCounter fails when a tag of its page has too many attributes, because the
// parser needs many times the bytes of an attribute. It does not recognise scripts and
// comments, so it counts the attributes of everything that could be a tag.
type attributeCounter struct {
	r    io.Reader
	last byte

	// For each state, the attribute count of a possible tag in that state, plus one; 0
	// if there is no such tag. See HTML, 13.2.5.
	tag [attributeStates]int
}

// States of a tag.
const (
	inTagName   = iota
	inAttribute // in a name, or before it
	beforeValue // after "="
	inValue     // without quotes
	inDouble
	inSingle
	attributeStates
)

// Read implements io.Reader.
func (a *attributeCounter) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	for _, c := range p[:n] {
		if a.step(c); a.tag[inAttribute] > maxAttributes {
			return 0, fileops.Fail(fileops.ErrLimit, nil, "a tag of the page has more than %d attributes", maxAttributes)
		}
	}
	return n, err
}

func (a *attributeCounter) step(c byte) {
	last, was := a.last, a.tag
	a.last = c
	if last != '<' && was == ([attributeStates]int{}) {
		return
	}
	space := c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'
	if last == '<' && (c|0x20 >= 'a' && c|0x20 <= 'z') {
		was[inTagName] = max(was[inTagName], 1)
	}
	a.tag = [attributeStates]int{}
	for state, count := range was {
		if count == 0 {
			continue
		}
		to := func(state, count int) { a.tag[state] = max(a.tag[state], count) }
		switch {
		case state == inDouble && c == '"', state == inSingle && c == '\'':
			to(inAttribute, count+1)
		case state == inDouble, state == inSingle:
			to(state, count)
		case c == '>':
		case state == beforeValue && c == '"':
			to(inDouble, count)
		case state == beforeValue && c == '\'':
			to(inSingle, count)
		case state == beforeValue && !space:
			to(inValue, count)
		case state == inAttribute && c == '=':
			to(beforeValue, count)
			if strings.IndexByte(" \t\n\f\r/\"'", last) >= 0 { // the name may start with it
				to(inAttribute, count)
			}
		case state == inAttribute && c == '/', state != beforeValue && space, state == inTagName && c == '/':
			to(inAttribute, count+1)
		default:
			to(state, count)
		}
	}
}
