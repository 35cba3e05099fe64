package imageops

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// editors lists the namespaces that only drawing programs read.
var editors = []string{
	"http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd",
	"http://www.inkscape.org/namespaces/inkscape",
	"http://www.inkscape.org/namespace/inkscape",
	"http://ns.adobe.com/AdobeIllustrator/10.0/",
	"http://ns.adobe.com/AdobeSVGViewerExtensions/3.0/",
	"http://ns.adobe.com/Graphs/1.0/",
	"http://ns.adobe.com/SaveForWeb/1.0/",
	"http://ns.adobe.com/Variables/1.0/",
	"http://www.bohemiancoding.com/sketch/ns",
	"http://www.serif.com/",
	"http://www.figma.com/figma/ns",
	"http://www.vectornator.io",
	"https://boxy-svg.com",
	"http://krita.org/namespaces/svg/krita",
	"http://www.corel.com/coreldraw/odm/2003",
	"http://creativecommons.org/ns#",
	"http://purl.org/dc/elements/1.1/",
	"http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}

// texts lists the elements in which white space is content. Their content stays
// unchanged.
var texts = []string{"text", "tspan", "textPath", "tref", "title", "desc", "style", "script", "foreignObject", "a"}

// parts holds, for each level, the fraction of a drawing to which coordinates
// are rounded.
var parts = [...]float64{1: 100000, 2: 20000, 3: 2000}

// maxXMLDepth limits the nesting of elements.
const maxXMLDepth = 1000

// minifySVG removes comments, editor data and white space between elements from
// an SVG. It rounds coordinates to a precision that is invisible at the level, from 1
// to 3. Texts, identifiers, links, styles and scripts stay unchanged. In a drawing
// with scripts it removes only comments and metadata, because a script may read
// everything else. It returns nil for drawings that are not UTF-8.
func minifySVG(data []byte, level int) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	m := &svgMinifier{data: data, exact: active.Match(data), private: make(map[string]int)}
	m.decimals = svgDecimals(data, parts[min(max(level, 1), 3)])
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.Strict = false // for entities of the document type
	foreign := errors.New("not UTF-8")
	dec.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, foreign }
	for {
		from := dec.InputOffset()
		t, err := dec.RawToken()
		switch {
		case errors.Is(err, io.EOF) && len(m.open) == 0:
			return m.out, nil
		case errors.Is(err, foreign):
			return nil, nil
		case err != nil:
			return nil, err
		case len(m.open) > maxXMLDepth:
			return nil, errors.New("elements are nested too deeply")
		}
		m.token(t, data[from:dec.InputOffset()])
	}
}

// nothing matches a length of zero, and a missing one.
var nothing = regexp.MustCompile(`^[+-]?0*\.?0*[a-z%]*$`)

// sizeless reports whether an intact drawing has no area, such as a collection of
// symbols for other documents. It cannot be drawn alone.
func sizeless(data []byte) bool {
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.Strict = false // for entities of the document type
	empty, root := false, true
	for {
		t, err := dec.Token()
		if err != nil {
			return empty && errors.Is(err, io.EOF)
		}
		e, ok := t.(xml.StartElement)
		if !ok || !root {
			continue
		}
		root = false
		size := map[string]string{}
		for _, a := range e.Attr {
			size[a.Name.Local] = strings.TrimSpace(a.Value)
		}
		box := strings.FieldsFunc(size["viewBox"], func(r rune) bool { return r == ',' || r <= ' ' })
		if empty = nothing.MatchString(size["width"]) || nothing.MatchString(size["height"]); len(box) == 4 {
			empty = size["width"] != "" && nothing.MatchString(size["width"]) || size["height"] != "" && nothing.MatchString(size["height"]) ||
				nothing.MatchString(box[2]) || nothing.MatchString(box[3])
		}
	}
}

// active matches scripts, and other content that can access parts of the document
// that are not drawn.
var active = regexp.MustCompile(`(?i)<(?:[a-z]+:)?script|\son[a-z]+\s*=|<\?xml-stylesheet|@import`)

type svgMinifier struct {
	data, out []byte
	exact     bool // the drawing has scripts
	decimals  int
	open      []svgElement
	private   map[string]int // editor prefixes, with the number of open elements that declare each
}

// An svgElement is an open element.
type svgElement struct {
	name    string   // without prefix
	dropped bool     // removed with its content
	text    bool     // white space in it is content
	kept    bool     // its content stays unchanged
	private []string // editor prefixes that it declares
}

func (m *svgMinifier) inside() svgElement {
	if n := len(m.open); n > 0 {
		return m.open[n-1]
	}
	return svgElement{}
}

func (m *svgMinifier) token(t xml.Token, raw []byte) {
	in := m.inside()
	switch t := t.(type) {
	case xml.StartElement:
		m.start(t, raw)
	case xml.EndElement:
		if len(m.open) > 0 {
			m.open = m.open[:len(m.open)-1]
			for _, prefix := range in.private {
				m.private[prefix]--
			}
		}
		if in.dropped {
			return
		}
		m.out = append(m.out, raw...) // empty for an empty element
	case xml.CharData:
		if in.dropped || !in.text && len(bytes.TrimSpace(raw)) == 0 {
			return
		}
		m.out = append(m.out, raw...)
	case xml.Comment:
		if in.kept && !in.dropped {
			m.out = append(m.out, raw...)
		}
	case xml.Directive:
		// The public identifier is irrelevant, but entities are needed.
		if bytes.IndexByte(raw, '[') >= 0 {
			m.out = append(m.out, raw...)
		}
	case xml.ProcInst:
		if t.Target != "xml" && !in.dropped {
			m.out = append(m.out, raw...)
		}
	}
}

// start writes a start tag without its unnecessary parts.
func (m *svgMinifier) start(t xml.StartElement, raw []byte) {
	in := m.inside()
	el := svgElement{name: t.Name.Local, dropped: in.dropped, text: in.text, kept: in.kept}
	attrs, closing, ok := svgAttributes(raw)
	for _, a := range attrs {
		prefix, isNamespace := strings.CutPrefix(a.name, "xmlns:")
		switch {
		case isNamespace && slices.Contains(editors, strings.TrimSpace(string(a.value))):
			el.private = append(el.private, prefix)
			m.private[prefix]++
		case a.name == "xml:space":
			el.text = el.text || string(a.value) == "preserve"
		}
	}
	if slices.Contains(texts, el.name) {
		el.text = true
		el.kept = el.kept || el.name == "style" || el.name == "script" || el.name == "foreignObject"
	}
	if el.name == "metadata" || !m.exact && m.private[t.Name.Space] > 0 {
		el.dropped = true
	}
	m.open = append(m.open, el)
	switch {
	case el.dropped:
		return
	case !ok || m.exact || el.kept:
		m.out = append(m.out, raw...)
		return
	}
	m.out = append(m.out, '<')
	if t.Name.Space != "" {
		m.out = append(append(m.out, t.Name.Space...), ':')
	}
	m.out = append(m.out, t.Name.Local...)
	for _, a := range attrs {
		if prefix, local, found := strings.Cut(a.name, ":"); found {
			if m.private[prefix] > 0 || prefix == "xmlns" && m.private[local] > 0 {
				continue
			}
		}
		value := m.attribute(el.name, a.name, a.value)
		if a.name == "style" && len(value) == 0 {
			continue
		}
		m.out = append(append(append(m.out, ' '), a.name...), '=', a.quote)
		m.out = append(append(m.out, value...), a.quote)
	}
	m.out = append(m.out, closing...)
}

// ownStyle matches Inkscape's additions to styles.
var ownStyle = regexp.MustCompile(`\s*-inkscape-[a-z-]+\s*:\s*(?:'[^']*'|&quot;[^&]*&quot;|[^;'"&])*;?`)

// attribute returns the value of an attribute in its short form.
func (m *svgMinifier) attribute(element, name string, value []byte) []byte {
	if bytes.IndexByte(value, '&') >= 0 && name != "style" {
		return value
	}
	switch name {
	case "d":
		if b, ok := shortPath(value, m.decimals); ok && len(b) < len(value) {
			return b
		}
	case "points":
		if b, ok := shortNumbers(value, m.decimals); ok && len(b) < len(value) {
			return b
		}
	case "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "width", "height":
		if m.inside().text || len(m.open) == 1 || strings.HasPrefix(element, "fe") || element == "filter" ||
			strings.HasSuffix(element, "Gradient") || element == "pattern" || element == "mask" {
			return value // may be a box, or the size of the drawing itself
		}
		if b, ok := shortNumbers(value, m.decimals); ok && len(b) < len(value) {
			return b
		}
	case "style":
		if bytes.Contains(value, []byte("-inkscape-")) {
			return bytes.TrimSpace(ownStyle.ReplaceAll(value, nil))
		}
	}
	return value
}

// An svgAttribute is an attribute in its source form.
type svgAttribute struct {
	name  string
	value []byte
	quote byte
}

// svgAttributes splits a start tag into attributes.
func svgAttributes(raw []byte) (attrs []svgAttribute, closing string, ok bool) {
	i := 1
	for i < len(raw) && !bytes.ContainsRune([]byte(" \t\r\n/>"), rune(raw[i])) {
		i++
	}
	for {
		for i < len(raw) && strings.IndexByte(" \t\r\n", raw[i]) >= 0 {
			i++
		}
		rest := raw[min(i, len(raw)):]
		if len(rest) <= 2 && (string(rest) == ">" || string(rest) == "/>") {
			return attrs, string(rest), true
		}
		eq := bytes.IndexByte(rest, '=')
		if eq < 0 {
			return nil, "", false
		}
		name := strings.TrimSpace(string(raw[i : i+eq]))
		i += eq + 1
		for i < len(raw) && strings.IndexByte(" \t\r\n", raw[i]) >= 0 {
			i++
		}
		if name == "" || strings.ContainsAny(name, " \t\r\n\"'<>/") || i >= len(raw) || raw[i] != '"' && raw[i] != '\'' {
			return nil, "", false
		}
		end := bytes.IndexByte(raw[i+1:], raw[i])
		if end < 0 {
			return nil, "", false
		}
		attrs = append(attrs, svgAttribute{name, raw[i+1 : i+1+end], raw[i]})
		i += end + 2
	}
}
