package webops

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// pagesOf is a document of five pages.
const pagesOf = `<title>Report</title><h1>One</h1><h1 style=break-before:page>Two</h1><h1 style=break-before:page>Three</h1><h1 style=break-before:page>Four</h1><h1 style=break-before:page>Five</h1>`

// words returns the text of a PDF with single spaces.
func words(t *testing.T, path string) string {
	return strings.Join(strings.Fields(output(t, "pdftotext", path, "-")), " ")
}

func TestPages(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{"2": "Two", "-1,1-2": "One Two Five", "4-": "Four Five", "1-5": "One Two Three Four Five"} {
		if got := words(t, convert(t, "a.html", pagesOf, fileops.Args{"pages": list})); got != want {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
	var param *fileops.ParamError
	if _, err := try(t, shared.Convert(), "a.html", pagesOf, fileops.Args{"pages": "6"}); !errors.As(err, &param) {
		t.Errorf("a page beyond the last: %v", err)
	}
	many := "word\n" + strings.Repeat("\fword\n", 299)
	if got := info(t, convert(t, "a.txt", many, fileops.Args{"pages": "-10-"}), "Pages"); got != "10" {
		t.Errorf("%s of the last ten pages of a long text", got)
	}
}

// single_page puts all content on one page, as high as the content, whatever breaks the style asks for.
func TestSinglePage(t *testing.T) {
	t.Parallel()
	path := convert(t, "a.html", pagesOf+`<style>@page { size: a5 }</style><p style="height:2000px">tall</p><p>end</p>`, fileops.Args{"single_page": true, "margin": 0})
	if got := info(t, path, "Pages"); got != "1" {
		t.Errorf("%s pages", got)
	}
	if got := words(t, path); got != "One Two Three Four Five tall end" {
		t.Errorf("text %q", got)
	}
	var width, height float64
	if _, err := fmt.Sscanf(info(t, path, "Page size"), "%f x %f", &width, &height); err != nil || height < 1500 || height > 2500 || width > 600 {
		t.Errorf("size %v × %v: %v", width, height, err)
	}
	if got := info(t, convert(t, "a.html", "<p>short</p>", fileops.Args{"single_page": true}), "Pages"); got != "1" {
		t.Errorf("%s pages of a short text", got)
	}
}

// The style of a page can query media features.
func TestMediaFeatures(t *testing.T) {
	t.Parallel()
	const in = `<style>b { display: none } @media (prefers-reduced-motion: reduce) { b { display: inline } }</style>text <b>still</b>`
	if got := words(t, convert(t, "a.html", in, nil)); got != "text" {
		t.Errorf("text %q", got)
	}
	if got := words(t, convert(t, "a.html", in, fileops.Args{"media_features": map[string]any{"prefers-reduced-motion": "reduce"}})); got != "text still" {
		t.Errorf("text %q", got)
	}
	var param *fileops.ParamError
	if _, err := try(t, shared.Convert(), "a.html", in, fileops.Args{"media_features": map[string]any{"prefers-reduced-motion": 1.0}}); !errors.As(err, &param) {
		t.Errorf("a number as value: %v", err)
	}
}

func TestHeaderAndFooter(t *testing.T) {
	t.Parallel()
	path := convert(t, "a.html", pagesOf, fileops.Args{
		"header": `<b onclick="x()">Top of <span class=title></span></b><script>document.body.append("SCRIPT")</script><img src=x onerror="document.body.append('SCRIPT')">`,
		"footer": `<div style="text-align:right">Page <span class=pageNumber></span> of <span class=totalPages></span></div>`, "pages": "2-3", "margin": 0,
	})
	got := words(t, path)
	for _, want := range []string{"Top of Report", "Page 2 of 5", "Page 3 of 5"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if strings.Contains(got, "SCRIPT") || strings.Contains(got, "Page 1 of") {
		t.Errorf("text %q", got)
	}
	if got := words(t, convert(t, "a.md", "text", fileops.Args{"header": "Confidential", "page_numbers": true})); strings.ReplaceAll(got, " ", "") != "Confidentialtext1/1" {
		t.Errorf("a header and page numbers: %q", got)
	}
}

func TestCleanTemplate(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`<b class="title">x</b>`: `<b class="title">x</b>`,
		`<script>x</script><iframe src=x></iframe><svg onload=x></svg><object data=x></object>a`: `a`,
		`<i onclick="x()" style="color:red">a</i>`:                                               `<i style="color:red">a</i>`,
		`<p style="background:url(http://a/b)">a</p>`:                                            `<p>a</p>`,
		`<p style="background:u\72l(http://a/b)">a</p>`:                                          `<p>a</p>`,
		`<p style="background:url( 'data:image/png;base64,AA')">a</p>`:                           `<p style="background:url( &#39;data:image/png;base64,AA&#39;)">a</p>`,
		`<img src="http://a/b.png"><img src="data:image/png;base64,AA"><img src=dark.png>`:       `<img/><img src="data:image/png;base64,AA"/><img/>`,
		`<style>@import "http://a/b"; p{}</style><style>p { color: red }</style>`:                `<style></style><style>p { color: red }</style>`,
		`<a href="http://a/">link</a><meta http-equiv=refresh content="0;url=http://a"><base>`:   `<a>link</a>`,
		" ": "",
	} {
		got := cleanTemplate(in)
		if i := strings.IndexByte(got, '>'); i >= 0 {
			got = strings.TrimSuffix(got[i+1:], "</div>")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Margins, paper and scale are where the parameters say.
func TestPaper(t *testing.T) {
	t.Parallel()
	in := "<style>@page { margin: 1in } body { margin: 0 }</style><div style='text-align:justify'>word " + strings.Repeat("filler ", 300)
	at := func(args fileops.Args) (x, y, height float64) {
		path := convert(t, "a.html", in, args)
		for line := range strings.Lines(output(t, "pdftotext", "-bbox", path, "-")) {
			var x0, y0, x1, y1 float64
			if n, _ := scan(line, &x0, &y0, &x1, &y1); n == 4 && strings.Contains(line, ">word<") {
				return x0, y0, y1 - y0
			}
		}
		t.Fatal("no word")
		return 0, 0, 0
	}
	x, y, height := at(nil)
	if math.Abs(x-72) > 1.5 || math.Abs(y-72) > 4 {
		t.Errorf("with the margins of the page, at %v, %v", x, y)
	}
	if x, y, _ := at(fileops.Args{"margin_left": 10}); math.Abs(x-10) > 1.5 || math.Abs(y-72) > 4 {
		t.Errorf("with margin_left, at %v, %v", x, y)
	}
	if x, y, _ := at(fileops.Args{"margin": 20, "margin_top": 100}); math.Abs(x-20) > 1.5 || math.Abs(y-100) > 4 {
		t.Errorf("with margin and margin_top, at %v, %v", x, y)
	}
	if _, _, h := at(fileops.Args{"scale": 0.5}); math.Abs(h-height/2) > 1 {
		t.Errorf("a height of %v became %v at half the scale", height, h)
	}
	if got := info(t, convert(t, "a.txt", "word", fileops.Args{"paper_width": 300, "paper_height": 200}), "Page size"); !strings.HasPrefix(got, "300 x ") {
		t.Errorf("page size %s", got)
	}
	if got := info(t, convert(t, "a.md", "# a", fileops.Args{"tagged": false}), "Tagged"); got != "no" {
		t.Errorf("tagged: %s", got)
	}
	for _, on := range []bool{true, false} {
		if js := output(t, "qpdf", "--json", "--json-key=outlines", convert(t, "a.md", "# Head\n\ntext", fileops.Args{"bookmarks": on})); strings.Contains(js, "Head") != on {
			t.Errorf("bookmarks %v: %s", on, js)
		}
	}
}

func TestMedia(t *testing.T) {
	t.Parallel()
	in := `<style>@media print { .s { display: none } } @media screen { .p { display: none } }</style><p class=s>Screen<p class=p>Paper`
	for media, want := range map[string]string{"print": "Paper", "screen": "Screen"} {
		if got := words(t, convert(t, "a.html", in, fileops.Args{"media": media})); got != want {
			t.Errorf("%s: %q", media, got)
		}
	}
}

// printed converts with the scripts of the page, and returns the warnings.
func printed(t *testing.T, e *Engine, in string, args fileops.Args) (string, []fileops.Warning, error) {
	t.Helper()
	args["convert_to"] = "pdf"
	var warnings []fileops.Warning
	dir := t.TempDir()
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { warnings = append(warnings, w) }}
	err := r.Run(t.Context(), e.Convert(), args, fileops.ToDir(dir), fileops.Bytes("a.html", []byte(in)))
	return dir + "/a.pdf", warnings, err
}

func TestJavaScript(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		args     fileops.Args
		want     string
		code     string // of the only warning
	}{
		{"off", `<p>text<script>document.body.append("made")</script>`, fileops.Args{"javascript": false}, "text", fileops.WarnScriptNotRun},
		{"on", `<p>text<script>document.body.append(" made")</script>`, fileops.Args{}, "text made", ""},
		{"load", `<p>text<script>onload = () => setTimeout(() => document.body.append(" made"))</script>`, fileops.Args{}, "text made", ""},
		{"selector", `<p>text<script>setTimeout(() => document.body.innerHTML += "<p id=x>made", 300)</script>`, fileops.Args{"wait_for_selector": "#x"}, "text made", ""},
		{"expression", `<p>text<script>setTimeout(() => { document.body.append(" made"); window.ready = {} }, 300)</script>`, fileops.Args{"wait_for_expression": "window.ready"}, "text made", ""},
		{"delay", `<p>text<script>setTimeout(() => document.body.append(" made"), 300)</script>`, fileops.Args{"wait_delay": 1.5}, "text made", ""},
		{"endless timers", `<p>text<script>setInterval(() => 0, 1); (function f() { requestAnimationFrame(f); setTimeout(f, 50) })()</script>`, fileops.Args{}, "text", ""},
		{"error", `<p>text<script>document.body.append(" made"); missing()</script>`, fileops.Args{}, "text made", fileops.WarnScriptFailed},
		{"script elsewhere", `<p>text<script src="https://example.com/a.js"></script>`, fileops.Args{}, "text", fileops.WarnScriptNotRun},
		{"dialogs", `<p>text<script>alert(1); if (!confirm("?")) document.body.append(" made")</script>`, fileops.Args{}, "text made", ""},
		{"its own functions", `<p>text<script>Document.prototype.querySelector = () => null; Promise = setTimeout = undefined; document.body.innerHTML += "<p id=x>made"</script>`, fileops.Args{"wait_for_selector": "#x"}, "text made", ""},
		{"eval", `<p>text<script>new Function('document.body.append(" made")')()</script>`, fileops.Args{}, "text made", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.args["javascript"] == nil {
				tt.args["javascript"] = true
			}
			path, warnings, err := printed(t, shared, tt.in, tt.args)
			systest.NoError(t, err)
			if got := words(t, path); got != tt.want {
				t.Errorf("text %q", got)
			}
			if len(warnings) > 1 || len(warnings) == 1 != (tt.code != "") || tt.code != "" && warnings[0].Code != tt.code {
				t.Errorf("warnings %v", warnings)
			}
		})
	}
}

// Scripts that never stop, or that fill the memory, fail within their time. The shared
// browser stays.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	e, dir := newEngine(t, Options{ScriptTime: 3 * time.Second, MemoryLimit: 1 << 30})
	systest.NoError(t, e.Warm(t.Context()))
	before := e.pool.current
	type hostile struct {
		name, in string
		args     fileops.Args
		want     error
	}
	all := []hostile{
		{"loop", `<p>text<script>for (;;);</script>`, fileops.Args{}, fileops.ErrLimit},
		{"loop in a timer", `<p>text<script>setTimeout(() => { for (;;); })</script>`, fileops.Args{}, fileops.ErrLimit},
		{"loop in a promise", `<p>text<script>(async () => { for (;;) await 0 })()</script>`, fileops.Args{}, fileops.ErrLimit},
		{"memory", `<p>text<script>const a = []; for (;;) a.push(new Array(1e6).fill(Math.random()))</script>`, fileops.Args{}, fileops.ErrLimit},
		{"elements", `<p>text<script>for (;;) document.body.append(document.createElement("p"), "x".repeat(1e5))</script>`, fileops.Args{}, fileops.ErrLimit},
		{"never", `<p>text`, fileops.Args{"wait_for_selector": "#never"}, fileops.ErrLimit},
		{"never true", `<p>text`, fileops.Args{"wait_for_expression": "window.never"}, fileops.ErrLimit},
		{"nothing", `<div id=root></div><script>0</script>`, fileops.Args{}, fileops.ErrUnsupportedInput},
		{"elsewhere", `<p>text<script>location.reload()</script>`, fileops.Args{"wait_delay": 1}, fileops.ErrUnsupportedInput},
	}
	if testing.Short() {
		all = slices.DeleteFunc(all, func(tt hostile) bool { return tt.name != "loop" && tt.name != "memory" && tt.name != "never" })
	}
	t.Run("pages", func(t *testing.T) {
		for _, tt := range all {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				tt.args["javascript"] = true
				if _, _, err := printed(t, e, tt.in, tt.args); !errors.Is(err, tt.want) {
					t.Errorf("error %v", err)
				}
			})
		}
	})
	if e.pool.current != before || before.ended() {
		t.Error("the shared browser was replaced")
	}
	eventually(t, "the end of the other browsers", func() bool {
		for _, args := range processes(t, dir) {
			if !strings.Contains(args, before.dir) {
				return false
			}
		}
		return true
	})
}

func TestBadScriptParameters(t *testing.T) {
	t.Parallel()
	for _, args := range []fileops.Args{
		{"wait_delay": 1}, {"wait_for_selector": "p"}, {"wait_for_expression": "1"},
		{"javascript": true, "wait_for_selector": "p["}, {"javascript": true, "wait_for_expression": "1 +"}, {"javascript": true, "wait_delay": 59},
	} {
		var param *fileops.ParamError
		if _, _, err := printed(t, shared, "<p>text", args); !errors.As(err, &param) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// The scripts of a page reach neither a server on this machine nor a file.
func TestScriptsReachNothing(t *testing.T) {
	t.Parallel()
	server := newBait(t)
	secret, content := secretFile(t)
	in := strings.Replace(temptation(server.url, secret), "<script src=", "<p id=first></p><script src=", 1)
	in = strings.Replace(in, "</body>", fmt.Sprintf(`<script>
new Worker(URL.createObjectURL(new Blob(["fetch('%[1]s/blobworker').catch(() => 0); new WebSocket('%[1]s/blobsocket')"])));
const f = document.createElement("iframe"); f.srcdoc = "<script>fetch('%[1]s/inner')<" + "/script>"; document.body.append(f);
navigator.serviceWorker && navigator.serviceWorker.register("%[1]s/sw.js").catch(() => 0);
</script></body>`, server.url), 1)
	in = strings.Replace(in, `window.open("BASE/open"); `, "", 1)
	path, _, err := printed(t, shared, in, fileops.Args{"javascript": true, "wait_delay": 2})
	if hits := server.all(t); len(hits) > 0 {
		t.Errorf("the server was visited: %v", hits)
	}
	if err != nil { // its attempts to go elsewhere may be what counts
		if !errors.Is(err, fileops.ErrUnsupportedInput) {
			t.Error(err)
		}
		return
	}
	if text := output(t, "pdftotext", path, "-"); strings.Contains(text, content) || !strings.Contains(text, "SCRIPT RAN") {
		t.Errorf("text of the PDF: %s", text)
	}
}
