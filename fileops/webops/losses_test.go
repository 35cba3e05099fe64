package webops

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// warned prints a document and returns its warnings, one a line.
func warned(t *testing.T, name, in string, args fileops.Args) string {
	t.Helper()
	all := fileops.Args{"convert_to": "pdf"}
	maps.Copy(all, args)
	var lines []string
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { lines = append(lines, w.Code+": "+w.Message) }}
	systest.NoError(t, r.Run(t.Context(), shared.Convert(), all, fileops.ToDir(t.TempDir()), fileops.Bytes(name, []byte(in))))
	return strings.Join(lines, "\n")
}

func TestLossesAreTold(t *testing.T) {
	t.Parallel()
	const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="90" height="90"><rect width="9" height="9"/>`
	const scripts = "script_not_run: The scripts of the page were not run."
	left := func(what string) string { return "content_dropped: " + what + " not in the file." }
	for name, tt := range map[string]struct{ file, in, want string }{
		"plain": {"a.html", `<!DOCTYPE html><title>t</title><style>p { color: red; background: url(` + pixel + `) } @media print { p { margin: 0 } }</style>
			<p>text <a href="http://example.com/">link</a><img src="` + pixel + `"><img loading=lazy src="` + pixel + `"><svg><defs><g id=g></g></defs><use href="#g"/></svg>
			<iframe srcdoc="<p>x"></iframe><iframe src="data:text/html,x"></iframe><script type="application/ld+json">{}</script><script> </script>`, ""},
		"markdown":          {"a.md", "# Title\n\nText [link](http://example.com/) `code`.\n", ""},
		"text":              {"a.txt", "<script>x</script> <img src=a.png>", ""},
		"table":             {"a.csv", "a,b\n<script>x</script>,<img src=a.png>\n", ""},
		"drawing":           {"a.svg", svg + `<image href="` + pixel + `" width="9" height="9"/></svg>`, ""},
		"script":            {"a.html", `<p>text<script>document.write("x")</script>`, scripts},
		"module":            {"a.html", `<p>text<script type="module" src="a.js"></script>`, scripts},
		"remote picture":    {"a.html", `<p>text<img src="http://example.com/a.png">`, left("1 picture was left out, because it is")},
		"relative pictures": {"a.html", `<p>text<img src="a.png"><img src="a.png"><img srcset="b.png 2x"><picture><source srcset="http://example.com/c.png"><img></picture>`, left("3 pictures were left out, because they are")},
		"counting pixel":    {"a.html", `<p>text<img src="http://example.com/count.png" width=1 height=1>`, ""},
		"backgrounds": {"a.html", `<style>.a { background: url(a.png) } .unused { background: url(b.png) } p::before { content: url("c.png") } @media screen { p { background: url(d.png) } }
			@font-face { font-family: f; src: url(f.woff2) }</style><p class=a style="list-style: url(e.png)">text`, left("3 pictures were left out, because they are")},
		"styles": {"a.html", `<link rel=stylesheet href="a.css"><link rel=stylesheet media=screen href="b.css"><link rel=icon href="c.png"><style>@import "http://example.com/d.css";</style><p>text`,
			left("2 style sheets were left out, because they are")},
		"all": {"a.html", `<link rel=stylesheet href="a.css"><p>text<img src="a.png"><iframe src="http://example.com/"></iframe><object data="a.pdf"></object><script src="a.js"></script>`,
			scripts + "\n" + left("1 picture, 1 style sheet and 2 frames were left out, because they are")},
		"picture of Markdown":  {"a.md", "# Title\n\n![picture](images/a.png)\n", left("1 picture was left out, because it is")},
		"picture of a drawing": {"a.svg", svg + `<image xlink:href="a.png" width="9" height="9"/><script>x()</script></svg>`, scripts + "\n" + left("1 picture was left out, because it is")},
		"diagram":              {"a.md", "# T\n\n```mermaid\ngraph TD\nA-->B\n```\n", "layout_simplified: Diagrams are shown as their source text."},
		"formula":              {"a.md", "Energy is $E = mc^2$.\n", ""},
		"odd formula":          {"a.md", "Energy is $\\newcommand{\\x}{y}$.\n", "layout_simplified: Formulas are shown as their TeX source."},
		"displayed formula":    {"a.md", "# T\n\n$$\n\\frac{a}{b}\n$$\n", ""},
		"money and code":       {"a.md", "It costs $5 or $6_000, `$x^2$` is code.\n\n```sh\necho $a_b $c\n```\n", ""},
		"misleading names":     {"a.html", `<form name=querySelectorAll></form><img name=images><img name=scripts><p>text`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := warned(t, tt.file, tt.in, nil); got != tt.want {
				t.Errorf("warnings %q, want %q", got, tt.want)
			}
		})
	}
}

// A page of which nothing is left is a failure, with a reason. A page that is empty, or
// that still shows something, is not.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, in, reason string }{
		"scripts only":       {"a.html", `<!DOCTYPE html><title>t</title><div id=root></div><script src="app.js"></script>`, "without its scripts"},
		"a picture":          {"a.html", `<!DOCTYPE html><p><img src="a.png">`, "in other files"},
		"a frame":            {"a.html", `<iframe src="http://example.com/" style="border: 0"></iframe>`, "in other files"},
		"Markdown":           {"a.md", "![](images/a.png)\n", "in other files"},
		"hidden text":        {"a.html", `<p style="display: none">text</p><script>show()</script>`, "without its scripts"},
		"empty":              {"a.html", "", ""},
		"nothing was there":  {"a.html", "<p> <p>", ""},
		"description":        {"a.html", `<img src="a.png" alt="a lighthouse">`, ""},
		"text":               {"a.html", `text<script src="app.js"></script>`, ""},
		"background":         {"a.html", `<div style="height: 9em; background: red"></div><script src="app.js"></script>`, ""},
		"generated content":  {"a.html", `<style>p::before { content: "text" }</style><p><script src="app.js"></script>`, ""},
		"drawing":            {"a.html", `<svg width=9 height=9><rect width=9 height=9 /></svg><img src="a.png">`, ""},
		"text of no scripts": {"a.html", `<noscript>please switch on scripts</noscript><script src="app.js"></script>`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fileops.Runner{TempDir: t.TempDir()}
			err := r.Run(t.Context(), shared.Convert(), fileops.Args{"convert_to": "pdf"}, fileops.ToDir(t.TempDir()), fileops.Bytes(tt.file, []byte(tt.in)))
			if tt.reason == "" {
				systest.Check(t, err)
			} else if !errors.Is(err, fileops.ErrUnsupportedInput) || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("%v, want %q", err, tt.reason)
			}
		})
	}
}
