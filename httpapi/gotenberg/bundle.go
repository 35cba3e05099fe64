package gotenberg

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"
)

// A bundle puts the files of a form into a page, as data URLs: the page can load nothing else.
type bundle struct {
	c       *call
	left    int64 // bytes that the page may still grow
	depth   int   // of style sheets that import others
	missing []string
}

// An assetAttr is an attribute with the address of a part of a page.
type assetAttr struct{ tag, attr, kind string }

// assetAttrs lists them. It is read-only.
var assetAttrs = []assetAttr{
	{"img", "src", "Image"}, {"script", "src", "Script"}, {"source", "src", "Media"}, {"video", "poster", "Image"}, {"video", "src", "Media"},
	{"audio", "src", "Media"}, {"input", "src", "Image"}, {"image", "href", "Image"}, {"image", "xlink:href", "Image"}, {"iframe", "src", "Document"},
	{"embed", "src", "Document"}, {"object", "data", "Document"}, {"body", "background", "Image"},
}

// page returns a page with its parts in it. Everything else in it stays as it is.
func (b *bundle) page(text []byte) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(text))
	b.left -= int64(len(text))
	z := nethtml.NewTokenizer(bytes.NewReader(text))
	style := false
	for {
		kind := z.Next()
		if kind == nethtml.ErrorToken {
			break
		}
		raw := bytes.Clone(z.Raw())
		switch kind {
		case nethtml.StartTagToken, nethtml.SelfClosingTagToken:
			t := z.Token()
			changed, err := b.tag(&t)
			if err != nil {
				return nil, err
			}
			if changed {
				raw = []byte(t.String())
			}
			style = t.Data == "style" && kind == nethtml.StartTagToken
		case nethtml.EndTagToken:
			style = false
		case nethtml.TextToken:
			if style {
				css, err := b.css(raw)
				if err != nil {
					return nil, err
				}
				raw = css
			}
		}
		out.Write(raw)
	}
	if b.left < 0 {
		return nil, refuse(http.StatusRequestEntityTooLarge, "The page has more than %d bytes with its resources", maxPage)
	}
	return out.Bytes(), nil
}

// tag replaces addresses in the attributes of a tag.
func (b *bundle) tag(t *nethtml.Token) (changed bool, err error) {
	get := func(name string) string {
		for _, a := range t.Attr {
			if a.Key == name {
				return a.Val
			}
		}
		return ""
	}
	for i := range t.Attr {
		a := &t.Attr[i]
		kind := ""
		for _, one := range assetAttrs {
			if one.tag == t.Data && one.attr == a.Key {
				kind = one.kind
			}
		}
		switch {
		case t.Data == "link" && a.Key == "href":
			rel := strings.Fields(strings.ToLower(get("rel")))
			if slices.Contains(rel, "stylesheet") {
				kind = "Stylesheet"
			}
		case a.Key == "style":
			css, err := b.css([]byte(a.Val))
			if err != nil {
				return changed, err
			}
			if string(css) != a.Val {
				a.Val, changed = string(css), true
			}
			continue
		case a.Key == "srcset" && (t.Data == "img" || t.Data == "source"):
			v, err := b.srcset(a.Val)
			if err != nil {
				return changed, err
			}
			if v != a.Val {
				a.Val, changed = v, true
			}
			continue
		}
		if kind == "" {
			continue
		}
		v, err := b.address(a.Val, kind)
		if err != nil {
			return changed, err
		}
		if v != a.Val {
			a.Val, changed = v, true
		}
	}
	return changed, nil
}

// srcset replaces the addresses of candidates for a picture.
func (b *bundle) srcset(v string) (string, error) {
	if strings.Contains(v, "data:") {
		return v, nil
	}
	parts := strings.Split(v, ",")
	for i, part := range parts {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		to, err := b.address(words[0], "Image")
		if err != nil {
			return "", err
		}
		words[0] = to
		parts[i] = strings.Join(words, " ")
	}
	return strings.Join(parts, ", "), nil
}

// cssURL matches an address in a style sheet.
var cssURL = regexp.MustCompile(`(?i)url\(\s*("[^"]*"|'[^']*'|[^)'"\s]*)\s*\)|(@import\s+)("[^"]*"|'[^']*')`)

// maxImports bounds style sheets that import others.
const maxImports = 5

// css replaces addresses in a style sheet.
func (b *bundle) css(text []byte) (_ []byte, err error) {
	out := cssURL.ReplaceAllFunc(text, func(found []byte) []byte {
		if err != nil {
			return found
		}
		m := cssURL.FindSubmatch(found)
		quoted, at := m[1], ""
		if len(m[2]) > 0 {
			quoted, at = m[3], string(m[2])
		}
		from := strings.Trim(string(quoted), `"'`)
		kind := "Image"
		if at != "" || strings.HasSuffix(strings.ToLower(from), ".css") {
			kind = "Stylesheet"
		}
		var to string
		if to, err = b.address(from, kind); err != nil || to == from {
			return found
		}
		return []byte(at + `url("` + to + `")`)
	})
	return out, err
}

// address returns a data URL for an address if it is one of a file of the form, else the address.
func (b *bundle) address(at, kind string) (string, error) {
	at = strings.TrimSpace(at)
	lower := strings.ToLower(at)
	for _, own := range []string{"", "#", "data:", "blob:", "about:", "javascript:"} {
		if own == "" && at == "" || own != "" && strings.HasPrefix(lower, own) {
			return at, nil
		}
	}
	u, err := url.Parse(strings.ReplaceAll(at, `\`, "/"))
	if err != nil {
		u = &url.URL{Host: at}
	}
	if u.Host != "" || u.Scheme != "" && u.Scheme != "file" {
		b.lost(kind, "net::ERR_INTERNET_DISCONNECTED")
		return at, nil
	}
	f, ok := b.c.form.input(path.Base(u.Path))
	if !ok || path.IsAbs(u.Path) && u.Scheme == "" {
		b.lost(kind, "net::ERR_FILE_NOT_FOUND")
		return at, nil
	}
	if b.left < f.size {
		return "", refuse(http.StatusRequestEntityTooLarge, "The page has more than %d bytes with its resources", maxPage)
	}
	text, err := b.c.read(f.key, maxPage)
	if err != nil {
		return "", err
	}
	if kind == "Stylesheet" && b.depth < maxImports {
		b.depth++
		text, err = b.css(text)
		b.depth--
		if err != nil {
			return "", err
		}
	}
	encoded := "data:" + mediaType(f.name, text) + ";base64," + base64.StdEncoding.EncodeToString(text)
	b.left -= int64(len(encoded))
	if b.left < 0 {
		return "", refuse(http.StatusRequestEntityTooLarge, "The page has more than %d bytes with its resources", maxPage)
	}
	return encoded, nil
}

// lost records a part that the page cannot load.
func (b *bundle) lost(kind, reason string) {
	if text := fmt.Sprintf("resource %s: %s", kind, reason); len(b.missing) < 100 && !slices.Contains(b.missing, text) {
		b.missing = append(b.missing, text)
	}
}

// mediaType returns the media type of a file.
func mediaType(name string, content []byte) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".css":
		return "text/css"
	case ".js", ".mjs":
		return "text/javascript"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	case ".woff":
		return "font/woff"
	case ".ttf":
		return "font/ttf"
	case ".otf":
		return "font/otf"
	case ".html", ".htm":
		return "text/html"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		t, _, _ = strings.Cut(t, ";")
		return t
	}
	t, _, _ := strings.Cut(http.DetectContentType(content), ";")
	return t
}

// toHTML matches the only instruction of a template that the route of Markdown knows. Other
// instructions of text/template are not run: those of strangers could run without end.
var toHTML = regexp.MustCompile(`\{\{-?\s*toHTML\s+(?:"([^"]*)"|` + "`([^`]*)`" + `)\s*-?\}\}`)

// template returns a page with Markdown files in the places of {{ toHTML "name.md" }}.
func (c *call) template(index file) ([]byte, error) {
	text, err := c.read(index.key, maxPage)
	if err != nil {
		return nil, err
	}
	var missing []string
	left := int64(maxPage)
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	out := toHTML.ReplaceAllFunc(text, func(found []byte) []byte {
		if err != nil {
			return nil
		}
		m := toHTML.FindSubmatch(found)
		name := string(m[1]) + string(m[2])
		f, ok := c.form.input(name)
		if !ok || !strings.EqualFold(path.Ext(name), ".md") {
			missing = append(missing, "'"+name+"'")
			return nil
		}
		var content []byte
		if content, err = c.read(f.key, min(left, maxMarkdown)); err != nil {
			return nil
		}
		left -= int64(len(content))
		var b bytes.Buffer
		err = md.Convert(content, &b)
		return b.Bytes()
	})
	switch {
	case err != nil:
		return nil, err
	case len(missing) > 0:
		return nil, refuse(http.StatusBadRequest, "Markdown file(s) not found: %s", strings.Join(missing, "\n"))
	}
	return out, nil
}

// maxMarkdown bounds a Markdown file in bytes.
const maxMarkdown = 4 << 20
