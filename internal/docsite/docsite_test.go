package docsite

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"github.com/filewright/filewright/docs"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

func TestRender(t *testing.T) {
	t.Parallel()
	p, err := render("guides/a.md", []byte("# A `title`\n\nThe *first* paragraph\nwith [a link](../b.md#some-part), [code](../../cmd/x.go) and [here](#one).\n\n"+
		"## One\n\ntext <script>alert(1)</script>\n\n## One\n\n<!-- tabs -->\n\n### Go\n\n```go\na < b\n```\n\n<!-- /tabs -->\n\n<!-- other --><b>x</b>\n\n| a | |\n|---|---|\n| 1 | 2 |\n\n![p](../images/p.png)\n"))
	systest.NoError(t, err)
	if p.URL != "/docs/guides/a" || p.Title != "A title" || p.Summary != "The first paragraph with a link, code and here." {
		t.Errorf("%q %q %q", p.URL, p.Title, p.Summary)
	}
	for _, want := range []string{
		`href="/docs/b#some-part"`, `href="https://github.com/filewright/filewright/blob/main/cmd/x.go"`, `href="#one"`, `id="one"`, `id="one-1"`, `id="go"`,
		`<div class="tabs">`, `<pre tabindex="0"><code data-language="go">a &lt; b`, `<th scope="col">a</th>`, `<td></td>`, `<div class="scroll" tabindex="0"><table>`,
		`<img src="/docs/images/p.png" alt="p" loading="lazy">`,
	} {
		if !strings.Contains(string(p.Body), want) {
			t.Errorf("no %s in\n%s", want, p.Body)
		}
	}
	for _, bad := range []string{"<script", "<b>", "other", "<h1"} {
		if strings.Contains(string(p.Body), bad) {
			t.Errorf("%s in\n%s", bad, p.Body)
		}
	}
	if got := p.entries[1]; got != (Entry{"/docs/guides/a#one", "A title", "One", "text alert(1)"}) {
		t.Errorf("%+v", got)
	}
	if _, err := render("a.md", []byte("text\n")); err == nil {
		t.Error("a page without a title is accepted")
	}
}

func TestBadLinks(t *testing.T) {
	t.Parallel()
	page := func(text string) fs.FS {
		return fstest.MapFS{"index.md": {Data: []byte("# Home\n\n## Start\n\n- [A](a.md)\n- [API](/docs/api)\n")}, "a.md": {Data: []byte(text)}}
	}
	if err := Check(docs.Files); err != nil {
		t.Error(err)
	}
	if err := Check(page("# A\n\n[x](index.md#start) [y](#z) [i](/docs/api#do)\n\n## Z\n")); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"# A\n\n[x](b.md)\n":             "no page /docs/b",
		"# A\n\n[x](#b)\n":               "no section /docs/a#b",
		"# A\n\n[x](index.md#b)\n":       "no section /docs#b",
		"# A\n\n![x](images/none.png)\n": "no page /docs/images/none.png",
	} {
		if err := Check(page(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	lost := fstest.MapFS{"index.md": {Data: []byte("# Home\n")}, "a.md": {Data: []byte("# A\n")}}
	if err := Check(lost); err == nil || !strings.Contains(err.Error(), "no link on the home page") {
		t.Error(err)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	s, err := New(docs.Files, []Entry{{URL: "/docs/api#do", Page: "API", Text: "x"}})
	systest.NoError(t, err)
	get := func(method, path, known string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("If-None-Match", known)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	for _, tt := range []struct {
		method, path string
		status       int
		location     string
	}{
		{"GET", "/docs", 200, ""}, {"HEAD", "/docs", 200, ""}, {"GET", "/docs/", 301, "/docs"}, {"GET", "/docs/quickstart/", 301, "/docs/quickstart"},
		{"GET", "/docs/guides/embed.md", 301, "/docs/guides/embed"}, {"GET", "/docs/images/growth-pages.svg", 200, ""}, {"GET", "/docs/nope", 404, ""}, {"GET", "/docs/../go.mod", 404, ""}, {"POST", "/docs", 405, ""},
	} {
		w := get(tt.method, tt.path, "")
		if w.Code != tt.status || w.Header().Get("Location") != tt.location {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, w.Code, w.Header().Get("Location"))
		}
		if p := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: policy %s", tt.path, p)
		}
		if etag := w.Header().Get("ETag"); tt.status == 200 {
			if w := get(tt.method, tt.path, `"x", W/`+etag); w.Code != 304 || w.Body.Len() > 0 {
				t.Errorf("%s with its ETag: %d", tt.path, w.Code)
			}
		}
	}
	// The pages need nothing from elsewhere, and the first page is small.
	outside := regexp.MustCompile(`(src|href)="(https?:)?//[^"]*"`)
	first := 0
	for url, content := range s.Files() {
		if url == Path || strings.HasSuffix(url, ".css") || strings.HasSuffix(url, ".js") {
			first += len(content)
		}
		for _, m := range outside.FindAllString(string(content), -1) {
			if strings.HasPrefix(m, "src=") || strings.Contains(m, ".css") {
				t.Errorf("%s loads %s", url, m)
			}
		}
		if strings.HasPrefix(string(content), "<!DOCTYPE") && regexp.MustCompile(`(?i)<script>|<style|\son\w+=|\sstyle=`).Match(content) {
			t.Errorf("%s has code or style in the page, which the policy forbids", url)
		}
	}
	if first > 80_000 {
		t.Errorf("the first page has %d bytes with its style and script", first)
	}
	var index []Entry
	systest.NoError(t, json.Unmarshal(get("GET", "/docs/search.json", "").Body.Bytes(), &index))
	if len(index) < 200 || !slices.Contains(index, Entry{URL: "/docs/api#do", Page: "API", Text: "x"}) {
		t.Errorf("%d entries", len(index))
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(s.files["/docs/search.json"].content)
	z.Close()
	if b.Len() > 250_000 {
		t.Errorf("the index of the search has %d bytes, compressed", b.Len())
	}
}

// Every error, file error and warning of the code has a section in docs/troubleshooting.md and nothing
// else has. The links in error responses (/docs#error-SLUG) lead to a place on the home page that links
// to that section.
func TestEveryErrorIsExplained(t *testing.T) {
	t.Parallel()
	var d struct {
		Errors []struct{ Slug string } `yaml:"x-errors"`
		Files  []struct{ Code string } `yaml:"x-file-errors"`
	}
	systest.NoError(t, yaml.Unmarshal(systest.ReadFile(t, "../../httpapi/openapi.yaml"), &d))
	var want []string
	for _, e := range d.Errors {
		want = append(want, "error-"+e.Slug)
	}
	for _, e := range d.Files {
		want = append(want, "file-error-"+e.Code)
	}
	for code := range fileops.WarningMeanings() {
		want = append(want, "file-warning-"+code)
	}
	s, err := New(docs.Files, nil)
	systest.NoError(t, err)
	page := string(s.files[Path+"/troubleshooting"].content)
	var got []string
	for _, m := range regexp.MustCompile(`<h3 id="((?:error|file-error|file-warning)-[^"]+)"`).FindAllStringSubmatch(page, -1) {
		got = append(got, m[1])
	}
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Errorf("docs/troubleshooting.md has no section %s", id)
		}
		link := `<li id="` + id + `"><a href="/docs/troubleshooting#` + id + `">`
		if !strings.Contains(string(s.files[Path].content), link) {
			t.Errorf("the home page lacks %s", link)
		}
	}
	for _, id := range got {
		if !slices.Contains(want, id) {
			t.Errorf("docs/troubleshooting.md explains %s, which does not exist", id)
		}
	}
}

// The flags that the pages name exist.
func TestFlagsExist(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	flags := regexp.MustCompile("`--([a-z][a-z-]+)")
	sources, err := filepath.Glob("../../cmd/refserver/*.go")
	systest.NoError(t, err)
	var all strings.Builder
	for _, name := range sources {
		b, err := os.ReadFile(name)
		systest.NoError(t, err)
		all.Write(b)
	}
	for _, m := range regexp.MustCompile(`"([a-z][a-z-]+)"`).FindAllStringSubmatch(all.String(), -1) {
		known[m[1]] = true
	}
	for _, name := range []string{"troubleshooting.md", "command-line.md", "upgrading.md", "guides/cluster.md", "guides/web-app.md", "guides/hosted-api.md"} {
		b, err := fs.ReadFile(docs.Files, name)
		systest.NoError(t, err)
		for _, m := range flags.FindAllStringSubmatch(string(b), -1) {
			if !known[m[1]] && m[1] != "help" {
				t.Errorf("%s names --%s, which does not exist", name, m[1])
			}
		}
	}
}
