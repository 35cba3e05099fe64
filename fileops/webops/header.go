package webops

import (
	"regexp"
	"slices"
	"strings"

	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxTemplate is the maximum size of a header or footer in bytes.
const maxTemplate = 64 << 10

// templateElements are the elements of headers and footers; the value says whether the
// element may contain others. It is read-only.
var templateElements = map[atom.Atom]bool{
	atom.Div: true, atom.P: true, atom.Span: true, atom.B: true, atom.Strong: true, atom.I: true, atom.Em: true, atom.U: true,
	atom.S: true, atom.Small: true, atom.Sub: true, atom.Sup: true, atom.Br: false, atom.Hr: false, atom.Img: false, atom.Center: true,
	atom.Table: true, atom.Tbody: true, atom.Thead: true, atom.Tr: true, atom.Td: true, atom.Th: true, atom.H1: true, atom.H2: true,
	atom.H3: true, atom.H4: true, atom.H5: true, atom.H6: true, atom.Ul: true, atom.Ol: true, atom.Li: true, atom.Style: true,
	atom.Section: true, atom.Header: true, atom.Footer: true, atom.A: true, atom.Font: true,
}

// templateAttributes are their attributes. It is read-only.
var templateAttributes = map[string]bool{
	"class": true, "id": true, "style": true, "align": true, "valign": true, "width": true, "height": true, "alt": true, "src": true,
	"colspan": true, "rowspan": true, "border": true, "cellpadding": true, "cellspacing": true, "dir": true, "lang": true, "title": true, "color": true,
}

var (
	dataPicture = regexp.MustCompile(`(?i)^\s*data:image/(?:png|jpe?g|gif|webp|svg\+xml)[;,]`)

	// hiding matches what can make a style load something, except urls. A backslash or a
	// comment can hide a url.
	hiding  = regexp.MustCompile(`(?i)\\|/\*|@import|image-set|src\s*\(`)
	address = regexp.MustCompile(`(?i)url\s*\(\s*["']?\s*(data:)?`)
)

// loads reports whether a style may load something.
func loads(style string) bool {
	return hiding.MatchString(style) || slices.ContainsFunc(address.FindAllStringSubmatch(style, -1), func(m []string) bool { return m[1] == "" })
}

// cleanTemplate returns the harmless part of a header or footer: elements of text,
// pictures in data URLs, and styles that load nothing. The browser runs the code of such
// templates, which is not part of the page, so everything unknown is removed. The
// browser gives the text no size, so it gets a readable one.
func cleanTemplate(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	body := &nethtml.Node{Type: nethtml.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := nethtml.ParseFragment(strings.NewReader(text), body)
	if err != nil {
		return ""
	}
	root := &nethtml.Node{Type: nethtml.ElementNode, Data: "div", DataAtom: atom.Div, Attr: []nethtml.Attribute{
		{Key: "style", Val: "width:100%;margin:0 10mm;font:10px 'Liberation Sans','Noto Sans',sans-serif"},
	}}
	for _, n := range nodes {
		addClean(root, n)
	}
	var b strings.Builder
	if nethtml.Render(&b, root) != nil {
		return ""
	}
	return b.String()
}

// addClean appends the harmless part of n to parent. The parser limits the depth of
// documents to 512 elements.
func addClean(parent, n *nethtml.Node) {
	switch n.Type {
	case nethtml.TextNode:
		if parent.DataAtom == atom.Style && loads(n.Data) {
			return
		}
		parent.AppendChild(&nethtml.Node{Type: nethtml.TextNode, Data: n.Data})
		return
	case nethtml.ElementNode:
	default:
		return
	}
	container, known := templateElements[n.DataAtom]
	if !known || n.Namespace != "" {
		return
	}
	clean := &nethtml.Node{Type: nethtml.ElementNode, Data: n.Data, DataAtom: n.DataAtom}
	for _, a := range n.Attr {
		switch {
		case a.Namespace != "" || !templateAttributes[a.Key],
			a.Key == "src" && (n.DataAtom != atom.Img || !dataPicture.MatchString(a.Val)),
			a.Key == "style" && loads(a.Val):
		default:
			clean.Attr = append(clean.Attr, a)
		}
	}
	parent.AppendChild(clean)
	if container {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			addClean(clean, c)
		}
	}
}
