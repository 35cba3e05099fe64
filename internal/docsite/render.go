package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// repository is the address of files that are not pages.
const repository = "https://github.com/filewright/filewright/blob/main/"

// A page is a rendered Markdown file.
type page struct {
	URL      string
	Title    string
	Summary  string // first paragraph as plain text
	Body     template.HTML
	Sections []link // second-level headings

	ids     map[string]bool
	links   []string // paths on this site
	entries []Entry
	groups  []group // lists of links by section, of the home page
}

// urlOf returns the path of the page of a file.
func urlOf(name string) string {
	if name == home {
		return Path
	}
	return Path + "/" + strings.TrimSuffix(name, ".md")
}

// render renders a file.
func render(name string, source []byte) (*page, error) {
	p := &page{URL: urlOf(name), ids: make(map[string]bool)}
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Linkify, extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
	)
	ctx := parser.NewContext(parser.WithIDs(&ids{seen: p.ids}))
	doc := md.Parser().Parse(text.NewReader(source), parser.WithContext(ctx))
	if err := p.read(doc, source, name); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := md.Renderer().Render(&b, source, doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.Body = template.HTML(b.String())
	return p, nil
}

// read collects what other pages and the search need, and rewrites links. It removes the title, which
// the template shows.
func (p *page) read(doc ast.Node, source []byte, name string) error {
	for doc.FirstChild() != nil && doc.FirstChild().Kind() == ast.KindHTMLBlock { // a comment
		doc.RemoveChild(doc, doc.FirstChild())
	}
	first, ok := doc.FirstChild().(*ast.Heading)
	if !ok || first.Level != 1 {
		return fmt.Errorf("%s: the first line must be a title", name)
	}
	p.Title = plain(first, source)
	doc.RemoveChild(doc, first)
	entry := Entry{URL: p.URL, Page: p.Title}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			id := idOf(h)
			p.entries = append(p.entries, entry)
			title := plain(h, source)
			entry = Entry{URL: p.URL + "#" + id, Page: p.Title, Section: title}
			if h.Level == 2 {
				p.Sections = append(p.Sections, link{ID: id, Title: title})
			}
			continue
		}
		t := plain(n, source)
		if p.Summary == "" && n.Kind() == ast.KindParagraph {
			p.Summary = t
		}
		if list, ok := n.(*ast.List); ok && len(p.Sections) > 0 {
			p.group(p.Sections[len(p.Sections)-1].Title, list, source)
		}
		if entry.Text += " " + t; len(entry.Text) > 4000 {
			entry.Text = strings.ToValidUTF8(entry.Text[:4000], "")
		}
		entry.Text = strings.TrimSpace(entry.Text)
	}
	p.entries = append(p.entries, entry)
	return ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(p.address(string(n.Destination), name))
		case *ast.Image:
			n.Destination = []byte(p.address(string(n.Destination), name))
			n.SetAttributeString("loading", []byte("lazy"))
		}
		return ast.WalkContinue, nil
	})
}

// group adds the links of a list to a group of the navigation.
func (p *page) group(title string, list ast.Node, source []byte) {
	g := group{Title: title}
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		_ = ast.Walk(item, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if l, ok := n.(*ast.Link); ok && entering {
				url := string(l.Destination)
				if strings.HasSuffix(url, ".md") {
					url = urlOf(url)
				}
				g.Links = append(g.Links, link{Title: plain(l, source), URL: url})
				return ast.WalkStop, nil
			}
			return ast.WalkContinue, nil
		})
	}
	p.groups = append(p.groups, g)
}

// address returns the address of a link on the site.
func (p *page) address(to, name string) string {
	target, fragment, _ := strings.Cut(to, "#")
	if fragment != "" {
		fragment = "#" + fragment
	}
	switch {
	case strings.Contains(to, "://"), strings.HasPrefix(to, "mailto:"):
		return to
	case target == "":
		p.links = append(p.links, p.URL+fragment)
		return fragment
	case strings.HasPrefix(target, Path+"/") || target == Path:
		p.links = append(p.links, to)
		return to
	case strings.HasPrefix(target, "/"): // of the server
		return to
	}
	full := path.Join("docs", path.Dir(name), target)
	inside, ok := strings.CutPrefix(full, "docs/")
	switch {
	case !ok || !slices.Contains([]string{".md", ".png", ".svg"}, path.Ext(inside)):
		return repository + full + fragment
	case path.Ext(inside) != ".md":
		to = Path + "/" + inside
	default:
		to = urlOf(inside) + fragment
	}
	p.links = append(p.links, to)
	return to
}

// errors returns the sections of the page about errors and warnings, whose titles are "Error: SLUG".
func (p *page) errors() (all []link) {
	for _, e := range p.entries {
		if kind, slug, ok := strings.Cut(e.Section, ": "); ok && (strings.HasSuffix(kind, "rror") || strings.HasSuffix(kind, "arning")) {
			_, id, _ := strings.Cut(e.URL, "#")
			all = append(all, link{ID: id, Title: slug, URL: e.URL})
		}
	}
	return all
}

// plain returns the text of a node without markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.AutoLink:
			if entering {
				b.Write(n.Label(source))
			}
		case *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

func idOf(n ast.Node) string {
	v, _ := n.AttributeString("id")
	b, _ := v.([]byte)
	return string(b)
}

// ids gives headings the ids that GitHub gives them, so that links work in both places.
type ids struct{ seen map[string]bool }

// Generate implements parser.IDs.
func (s *ids) Generate(value []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(string(value)) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	id := b.String()
	for i := 1; s.seen[id]; i++ {
		id = fmt.Sprint(b.String(), "-", i)
	}
	s.seen[id] = true
	return []byte(id)
}

// Put implements parser.IDs.
func (s *ids) Put(value []byte) { s.seen[string(value)] = true }

// blocks renders the blocks that differ from goldmark's.
type blocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(ast.KindHTMLBlock, comment)
	r.Register(ast.KindRawHTML, func(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) { return ast.WalkSkipChildren, nil })
	r.Register(extast.KindTable, table)
	r.Register(extast.KindTableCell, cell)
}

// code renders a block of code, which can be scrolled by keyboard.
func code(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.FencedCodeBlock)
	fmt.Fprintf(w, `<div class="code"><pre tabindex="0"><code data-language="%s">`, util.EscapeHTML(block.Language(source)))
	_, _ = w.Write(util.EscapeHTML(block.Lines().Value(source)))
	_, _ = w.WriteString("</code></pre></div>\n")
	return ast.WalkSkipChildren, nil
}

// comment renders the comments that enclose tabs. Each heading between them is the name of a tab. Other
// HTML is left out.
func comment(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		switch strings.TrimSpace(string(n.Lines().Value(source))) {
		case "<!-- tabs -->":
			_, _ = w.WriteString("<div class=\"tabs\">\n")
		case "<!-- /tabs -->":
			_, _ = w.WriteString("</div>\n")
		}
	}
	return ast.WalkSkipChildren, nil
}

// table encloses a table in a box that scrolls.
func table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString("<div class=\"scroll\" tabindex=\"0\"><table>\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

// cell renders a cell of a table. An empty cell is no heading.
func cell(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "td"
	if n.Parent().Kind() == extast.KindTableHeader && n.HasChildren() {
		tag = "th"
	}
	switch {
	case !entering:
		_, _ = w.WriteString("</" + tag + ">\n")
	case tag == "th":
		_, _ = w.WriteString(`<th scope="col">`)
	default:
		_, _ = w.WriteString("<td>")
	}
	return ast.WalkContinue, nil
}
