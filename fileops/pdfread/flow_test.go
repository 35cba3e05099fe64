package pdfread_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

// checkHTML fails if tags are not closed in order, or if a parser has to repair
// the page.
func checkHTML(t testing.TB, page []byte) *html.Node {
	t.Helper()
	void := map[string]bool{"meta": true, "img": true, "br": true, "hr": true, "input": true}
	z := html.NewTokenizer(bytes.NewReader(page))
	var open []string
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		tag, _ := z.TagName()
		name := string(tag)
		switch kind {
		case html.StartTagToken:
			if !void[name] {
				open = append(open, name)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != name {
				t.Fatalf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Fatalf("not closed: %v", open)
	}
	doc, err := html.Parse(bytes.NewReader(page))
	systest.NoError(t, err)
	return doc
}

// all returns the elements with a name.
func all(n *html.Node, name string) (out []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			out = append(out, d)
		}
	}
	return out
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "style" {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestHTMLOfReport(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	pdf := reportAsPDF(t)
	out := mustConvert(t, e, fileops.Args{"convert_to": "html"}, pdf)
	if out[0].name != "in.html" {
		t.Errorf("result is %s", out[0].name)
	}
	page := string(out[0].b)
	doc := checkHTML(t, out[0].b)
	plain := tool(t, "pandoc", "-f", "html", "-t", "plain", "--wrap=none", write(t, "x.html", out[0].b))
	want, got := tokens(bodyText(t, pdf)), tokens(plain)
	if r, o := recall(want, got), order(want, got); r < 0.99 || o < 0.97 || len(got) > len(want)*102/100 {
		t.Errorf("recall %.4f, order %.4f, %d of %d words", r, o, len(got), len(want))
	}
	for name, n := range map[string]int{"h1": 3, "h2": 15, "table": 2, "ul": 1, "ol": 1, "li": 7, "img": 1, "header": 1, "title": 1} {
		if got := len(all(doc, name)); got != n {
			t.Errorf("%d elements %s, want %d", got, name, n)
		}
	}
	for _, s := range []string{
		"<strong>boldface</strong>", "<em>slanted</em>", "<u>underscored</u>", "mc<sup>2</sup>",
		`<a href="https://example.com/page?a=1&amp;b=2">a link to somewhere</a>`, `colspan="2"`, `rowspan="2"`, `dir="rtl"`,
		"<h1>The second chapter</h1>", `src="data:image/jpeg;base64,`, "Annual report of the harbour office",
	} {
		if !strings.Contains(page, s) {
			t.Errorf("no %s", s)
		}
	}
	if n := strings.Count(page, "Annual report of the harbour office"); n != 1 {
		t.Errorf("the header is there %d times", n)
	}
}

func TestHTMLHead(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	english := strings.ReplaceAll(prose(3, 40), " ", " and the ")
	convertTo := func(pdf []byte) *html.Node {
		return checkHTML(t, mustConvert(t, e, fileops.Args{"convert_to": "html"}, pdf)[0].b)
	}
	named := pages(pdfPage{content: lines("F1", 12, 72, 700, 20, "Text")})
	named = bytes.Replace(named, []byte("/Type/Catalog"), []byte("/Type/Catalog/Lang(pt-BR)"), 1)
	doc := convertTo(rewritten(t, named))
	if got := attr(all(doc, "html")[0], "lang"); got != "pt-BR" {
		t.Errorf("language %q", got)
	}
	if got := text(all(doc, "title")[0]); got != "in" {
		t.Errorf("title %q", got)
	}
	doc = convertTo(pages(pdfPage{content: lines("F1", 10, 40, 700, 20, strings.SplitAfter(english, "the ")...)}))
	if got := attr(all(doc, "html")[0], "lang"); got != "en" {
		t.Errorf("language of English is %q", got)
	}
	if got := attr(all(convertTo(pages(pdfPage{content: lines("F1", 10, 40, 700, 20, "xyzzy")})), "html")[0], "lang"); got != "" {
		t.Errorf("language of nothing is %q", got)
	}
}

// rewritten makes qpdf repair a file that a test has edited.
func rewritten(t testing.TB, pdf []byte) []byte {
	t.Helper()
	return []byte(tool(t, "qpdf", "--warning-exit-0", write(t, "x.pdf", pdf), "-"))
}

func TestMarkdownOfReport(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	pdf := reportAsPDF(t)
	out := mustConvert(t, e, fileops.Args{"convert_to": "md"}, pdf)
	md := string(out[0].b)
	path := write(t, "x.md", out[0].b)
	want, got := tokens(bodyText(t, pdf)), tokens(tool(t, "pandoc", "-f", "gfm", "-t", "plain", "--wrap=none", path))
	if r, o := recall(want, got), order(want, got); r < 0.99 || o < 0.97 || len(got) > len(want)*102/100 {
		t.Errorf("recall %.4f, order %.4f, %d of %d words", r, o, len(got), len(want))
	}
	for _, s := range []string{
		"\n# The second chapter\n", "\n## Part L of the appendix\n", "**boldface**", "*slanted*", "mc<sup>2</sup>",
		"[a link to somewhere](https://example.com/page?a=1&b=2)", "| field00 | field01 | field02 |\n", "| Tall cell | alpha | beta |",
	} {
		if !strings.Contains(md, s) {
			t.Errorf("no %s", s)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^- bulleted`).FindAllString(md, -1)); n != 4 {
		t.Errorf("%d bulleted items", n)
	}
	if n := len(regexp.MustCompile(`(?m)^[123]\. numbered`).FindAllString(md, -1)); n != 3 {
		t.Errorf("%d numbered items", n)
	}
	if strings.Contains(md, "data:") {
		t.Error("there is a picture")
	}
	page := tool(t, "pandoc", "-f", "gfm", "-t", "html", path)
	for s, n := range map[string]int{"<table>": 2, "<ul>": 1, "<ol": 1, "<h1": 3, "<h2": 15} {
		if got := strings.Count(page, s); got != n {
			t.Errorf("%d of %s, want %d", got, s, n)
		}
	}
}

// Punctuation in the text is not interpreted as Markdown or HTML.
func TestSignsOfText(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	for _, line := range []string{
		"# no heading", "1986) was a good year", "- no item here", "+ plus", "> no quotation", "=====", "[x]: no definition", "a * b * c and d_e_f and _g_",
		"`code` and ~~gone~~", "<b>tags</b> & &amp; <!-- remark -->", "[label](target) [1] and ![x](y)", `back\slash \* and \\ end\`, "a | b | c", "snake_case_name", "---",
		"# # #", "**stars**", "~~~",
	} {
		pdf := pages(pdfPage{content: lines("F2", 12, 72, 700, 20, line, "The next line of text is there to be read.")})
		want := line + " The next line of text is there to be read."
		md := mustConvert(t, e, fileops.Args{"convert_to": "md"}, pdf)[0].b
		doc, err := html.Parse(strings.NewReader(tool(t, "pandoc", "-f", "gfm-smart", "-t", "html", "--wrap=none", write(t, "x.md", md))))
		systest.NoError(t, err)
		if got := text(doc); got != want || len(all(doc, "em"))+len(all(doc, "h1"))+len(all(doc, "a"))+len(all(doc, "li"))+len(all(doc, "hr")) > 0 {
			t.Errorf("Markdown of %q is %q, which reads %q", line, md, got)
		}
		page := mustConvert(t, e, fileops.Args{"convert_to": "html"}, pdf)[0].b
		if got := text(all(checkHTML(t, page), "body")[0]); got != want {
			t.Errorf("HTML of %q reads %q", line, got)
		}
	}
}

func TestCodeInMarkdown(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	pdf := pages(pdfPage{content: lines("F2", 12, 72, 740, 14, strings.Split(strings.ReplaceAll(prose(1, 60), " ", " \n "), "\n")[:20]...) +
		lines("F3", 10, 72, 400, 12, "func main() {") + lines("F3", 10, 72+24, 388, 12, "x := 1 * 2") + lines("F3", 10, 72, 376, 12, "}")})
	md := string(mustConvert(t, e, fileops.Args{"convert_to": "md"}, pdf)[0].b)
	if !strings.Contains(md, "```\nfunc main() {\n    x := 1 * 2\n}\n```\n") {
		t.Errorf("%s", md)
	}
	page := mustConvert(t, e, fileops.Args{"convert_to": "html"}, pdf)[0].b
	checkHTML(t, page)
	if !strings.Contains(string(page), "<pre><code>func main() {\n    x := 1 * 2\n}</code></pre>") {
		t.Errorf("%s", page)
	}
}
