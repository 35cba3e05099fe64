package gotenberg_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/gotenberg"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

// pages is a stand-in for Chromium: its result is the page itself and the parameters.
func pages() fileops.Action {
	params := fileops.Schema{fileops.Enum("convert_to", "Target.", "pdf")}
	for _, name := range []string{"paper_width", "paper_height", "margin_top", "margin_right", "margin_bottom", "margin_left", "scale", "wait_delay"} {
		params = append(params, fileops.Param{Name: name, Doc: "A length.", Type: fileops.Number})
	}
	for _, name := range []string{"print_background", "bookmarks", "tagged", "javascript"} {
		params = append(params, fileops.Param{Name: name, Doc: "A flag.", Type: fileops.Boolean})
	}
	for _, name := range []string{"pages", "header", "footer", "media", "wait_for_selector", "wait_for_expression"} {
		params = append(params, fileops.Param{Name: name, Doc: "A text.", Max: 10_000})
	}
	spec := fileops.Spec{Name: "convert", Engine: "go", Family: "web", Summary: "Prints.", Accepts: []fileops.Accept{{Formats: []format.Format{format.HTML}, Params: params}}}
	return fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
		page, err := job.Input().ReadAll(1 << 20)
		if err != nil {
			return err
		}
		if bytes.Contains(page, []byte("BROKEN")) {
			return fileops.Fail(fileops.ErrCorruptInput, nil, "the page is damaged")
		}
		seen := map[string]any{}
		for _, p := range params {
			switch {
			case !job.Params.Has(p.Name):
			case p.Type == fileops.Number:
				seen[p.Name] = job.Params.Float(p.Name)
			case p.Type == fileops.Boolean:
				seen[p.Name] = job.Params.Bool(p.Name)
			default:
				seen[p.Name] = job.Params.Get(p.Name)
			}
		}
		b, err := json.Marshal(seen)
		if err != nil {
			return err
		}
		return job.WriteBytes(fileops.ResultName(job.Input(), format.PDF), slices.Concat([]byte("%PDF-1.4\n"), page, []byte("\n"), b, []byte("\n%%EOF\n")))
	})
}

// A server is a service with the routes.
type server struct {
	*httptest.Server
	db *sqlstore.DB
}

func serve(t *testing.T, cfg gotenberg.Config, open bool) *server {
	t.Helper()
	dir := t.TempDir()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(dir, "db"), Exclusive: true})
	systest.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	blobs, err := fsblob.New(filepath.Join(dir, "blobs"))
	systest.NoError(t, err)
	t.Cleanup(func() { blobs.Close() })
	scratch := filepath.Join(dir, "scratch")
	systest.NoError(t, os.Mkdir(scratch, 0o700))
	var account func(context.Context) (httpapi.Principal, error)
	if open {
		account = func(context.Context) (httpapi.Principal, error) { return httpapi.Principal{Account: "local"}, nil }
	}
	g, err := gotenberg.New(cfg)
	systest.NoError(t, err)
	gs, err := engine.NewSandbox().Find(t.Context(), []string{"--version"}, "gs")
	systest.NoError(t, err)
	tools := pdfops.Tools{Ghostscript: gs}
	svc, err := httpapi.New(httpapi.Config{
		Actions: []fileops.Action{
			pages(), tools.Merge(), tools.Split(), tools.ExtractPages(), tools.Rotate(), tools.Flatten(), tools.Metadata(), tools.Watermark(),
			tools.Lock(), tools.Inspect(), tools.Compress(), tools.Bookmarks(), tools.Attach(), tools.ConvertArchival(),
		},
		Auth: gotenberg.Auth(httpapi.StaticKeys("key"), account), Files: db.Files(), Operations: db.Operations(), Blobs: blobs, TempDir: scratch,
		Log:        slog.New(slog.NewTextHandler(&logtest.Buffer{}, nil)),
		Extensions: []func(*httpapi.Service) httpapi.Extension{g.Extension},
	})
	systest.NoError(t, err)
	systest.Start(t, svc.Run)
	systest.Start(t, g.Run)
	s := &server{httptest.NewServer(g.Handler(svc)), db}
	t.Cleanup(s.Close)
	return s
}

type field = systest.Part

func pdf(t *testing.T, name string) field {
	t.Helper()
	b, err := specimen.Of(t, format.PDF).ReadAll(1 << 20)
	systest.NoError(t, err)
	return field{"files", name, string(b)}
}

func request(t *testing.T, s *server, path string, fields ...field) *http.Request {
	t.Helper()
	body, contentType := systest.Form(t, fields...)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, bytes.NewReader(body))
	systest.NoError(t, err)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", "Bearer key")
	return r
}

func (s *server) post(t *testing.T, path string, fields ...field) (*http.Response, []byte) {
	t.Helper()
	return systest.Send(t, request(t, s, path, fields...))
}

// left lists the files that exist.
func (s *server) left(t *testing.T) (left []string) {
	t.Helper()
	for f, err := range s.db.Files().All(context.Background()) {
		systest.NoError(t, err)
		if f.State != upload.Expired {
			left = append(left, f.Name)
		}
	}
	return left
}

// nothingLeft checks that all files of requests are deleted.
func (s *server) nothingLeft(t *testing.T) {
	t.Helper()
	systest.Until(t, "the deletion of all files", func() bool { return len(s.left(t)) == 0 })
}

func fileName(t *testing.T, h http.Header) string {
	t.Helper()
	_, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
	systest.NoError(t, err)
	return params["filename"]
}

func entries(t *testing.T, b []byte) (names []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	return names
}

// The routes of PDF files answer as Gotenberg does.
func TestPDF(t *testing.T) {
	t.Parallel()
	s := serve(t, gotenberg.Config{}, false)
	one := pdf(t, "page_1.pdf")
	two := pdf(t, "page_2.pdf")
	text := func(name, value string) field { return field{name, "", value} }
	for _, c := range []struct {
		path   string
		fields []field
		status int
		want   string // media type, or the text of an error
		names  []string
	}{
		{"merge", []field{one, two}, 200, "application/pdf", nil},
		{"merge", []field{one, two, text("unknown", "x"), text("rotateAngle", "90")}, 200, "application/pdf", nil},
		{"merge", nil, 400, "Invalid form data: no form file found for extensions: [.pdf]", nil},
		{"merge", []field{one, text("metadata", "foo")}, 400, "Invalid form data: form field 'metadata' is invalid (got 'foo', resulting to unmarshal metadata: invalid character 'o' in literal false (expecting 'a'))", nil},
		{"split", []field{one, two, text("splitMode", "intervals"), text("splitSpan", "1")}, 200, "application/zip", []string{"page_1_0.pdf", "page_1_1.pdf", "page_2_0.pdf", "page_2_1.pdf"}},
		{"split", []field{one, text("splitMode", "pages"), text("splitSpan", "2-z"), text("splitUnify", "true")}, 200, "application/pdf", nil},
		{"split", []field{one, text("splitMode", "pages"), text("splitSpan", "foo")}, 400, "The requested split mode is not supported, or no PDF engine could process it. Valid modes: 'intervals', 'pages'.", nil},
		{"split", nil, 400, "Invalid form data: form field 'splitMode' is required\nform field 'splitSpan' is required\nno form file found for extensions: [.pdf]", nil},
		{"rotate", []field{one, two, text("rotateAngle", "270"), text("rotatePages", "1")}, 200, "application/zip", []string{"page_1.pdf", "page_2.pdf"}},
		{"rotate", []field{one, text("rotateAngle", "45")}, 400, "Invalid form data: form field 'rotateAngle' is invalid (got '45', resulting to wrong value, expected 90, 180, or 270)", nil},
		{"flatten", []field{one}, 200, "application/pdf", nil},
		{"optimize", []field{one, text("imageQuality", "40")}, 200, "application/pdf", nil},
		{"encrypt", []field{one, text("userPassword", "foo")}, 200, "application/pdf", nil},
		{"encrypt", []field{one}, 400, "Invalid form data: a 'userPassword' or 'ownerPassword' is required", nil},
		{"watermark", []field{one, text("watermarkSource", "text"), text("watermarkExpression", "DRAFT"), text("watermarkPages", "1-2"), text("watermarkOptions", `{"scale":"0.5 abs","op":"0.2"}`)}, 200, "application/pdf", nil},
		{"stamp", []field{one, text("stampSource", "image")}, 400, "Invalid form data: a stamp file is required for image or pdf source", nil},
		{"stamp", []field{one}, 400, "Invalid form data: form field 'stampSource' is required", nil},
		{"metadata/write", []field{one, text("metadata", `{"Title":"a\nb"}`)}, 400, "The requested metadata could not be written; ensure values are valid and free of control characters.", nil},
		{"convert", []field{one}, 400, "Invalid form data: either 'pdfa' or 'pdfua' form fields must be provided", nil},
		{"rotate", []field{{"files", "damaged.pdf", "%PDF-1.4 nothing"}, text("rotateAngle", "90")}, 400, "the file is damaged and could not be repaired", nil},
	} {
		resp, body := s.post(t, "/forms/pdfengines/"+c.path, c.fields...)
		if resp.StatusCode != c.status || resp.Header.Get("Gotenberg-Trace") == "" {
			t.Errorf("%s: status %d, trace %q: %.200q", c.path, resp.StatusCode, resp.Header.Get("Gotenberg-Trace"), body)
			continue
		}
		switch got := resp.Header.Get("Content-Type"); {
		case c.status != 200 && (got != "text/plain; charset=UTF-8" || string(body) != c.want):
			t.Errorf("%s: %s %q, want %q", c.path, got, body, c.want)
		case c.status == 200 && got != c.want:
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		case c.want == "application/pdf" && !bytes.HasPrefix(body, []byte("%PDF-")):
			t.Errorf("%s: %.20q", c.path, body)
		case c.want == "application/zip" && !slices.Equal(entries(t, body), c.names):
			t.Errorf("%s: %q, want %q", c.path, entries(t, body), c.names)
		}
	}
	s.nothingLeft(t)
}

// Metadata that one request writes is what another reads.
func TestMetadata(t *testing.T) {
	t.Parallel()
	s := serve(t, gotenberg.Config{}, false)
	resp, body := s.post(t, "/forms/pdfengines/metadata/write", pdf(t, "page.pdf"),
		field{"metadata", "", `{"Title":"Sample","PDF:Author":["Ada","Bob"],"System:FileName":"stolen.pdf","Keywords":["first","second"]}`})
	if resp.StatusCode != 200 || fileName(t, resp.Header) != "page.pdf" {
		t.Fatalf("status %d, name %q", resp.StatusCode, resp.Header.Get("Content-Disposition"))
	}
	resp, body = s.post(t, "/forms/pdfengines/metadata/read", field{"files", "page.pdf", string(body)})
	var got map[string]map[string]any
	systest.NoError(t, json.Unmarshal(body, &got))
	if m := got["page.pdf"]; resp.Header.Get("Content-Type") != "application/json" || m["Title"] != "Sample" || m["Author"] != "Ada, Bob" || m["FileName"] != nil {
		t.Errorf("%s: %s", resp.Header.Get("Content-Type"), body)
	}
	s.nothingLeft(t)
}

// Bookmarks that one request writes are what another reads, also in merged files.
func TestBookmarks(t *testing.T) {
	t.Parallel()
	s := serve(t, gotenberg.Config{}, false)
	one := pdf(t, "one.pdf")
	read := func(name string, b []byte) string {
		t.Helper()
		resp, body := s.post(t, "/forms/pdfengines/bookmarks/read", field{"files", name, string(b)})
		if resp.StatusCode != 200 {
			t.Errorf("status %d", resp.StatusCode)
		}
		return strings.TrimSpace(string(body))
	}
	const nested = `[{"title":"Index","page":1,"children":[{"title":"Below\n","page":2}]}]`
	_, marked := s.post(t, "/forms/pdfengines/bookmarks/write", one, field{"bookmarks", "", nested})
	if got := read("one.pdf", marked); got != `{"one.pdf":[{"title":"Index","page":1,"children":[{"title":"Below ","page":2}]}]}` {
		t.Errorf("bookmarks %s", got)
	}
	if got := read("one.pdf", []byte(one[2])); got != `{"one.pdf":[]}` {
		t.Errorf("bookmarks %s", got)
	}
	two := field{"files", "two.pdf", string(marked)}
	for _, c := range []struct{ name, value, want string }{
		{"bookmarks", `[{"title":"All","page":4}]`, `[{"title":"All","page":4}]`},
		{"bookmarks", `{"one.pdf":[{"title":"A","page":2}],"two.pdf":[{"title":"B","page":1}]}`, `[{"title":"A","page":2},{"title":"B","page":3}]`},
		{"autoIndexBookmarks", "true", `[{"title":"Index","page":3,"children":[{"title":"Below ","page":4}]}]`},
		{"titleBookmarks", "true", `[{"title":"one","page":1},{"title":"two","page":3,"children":[{"title":"Index","page":3,"children":[{"title":"Below ","page":4}]}]}]`},
	} {
		resp, body := s.post(t, "/forms/pdfengines/merge", one, two, field{c.name, "", c.value})
		if got := read("m.pdf", body); resp.StatusCode != 200 || got != `{"m.pdf":`+c.want+`}` {
			t.Errorf("%s %s: status %d %s, want %s", c.name, c.value, resp.StatusCode, got, c.want)
		}
	}
	if resp, body := s.post(t, "/forms/pdfengines/bookmarks/write", one, field{"bookmarks", "", `[{"title":"x","page":9}]`}); resp.StatusCode != 400 || !strings.Contains(string(body), "page 9") {
		t.Errorf("status %d %s", resp.StatusCode, body)
	}
	s.nothingLeft(t)
}

// Files are embedded, and are no inputs.
func TestEmbed(t *testing.T) {
	t.Parallel()
	s := serve(t, gotenberg.Config{}, false)
	note := field{"embeds", "note.xml", "<a/>"}
	for path, more := range map[string][]field{
		"embed": {{"embedsMetadata", "", `{"note.xml":{"mimeType":"text/xml","relationship":"Data"}}`}}, "merge": nil,
		"split": {{"splitMode", "", "intervals"}, {"splitSpan", "", "9"}},
	} {
		resp, body := s.post(t, "/forms/pdfengines/"+path, append(more, pdf(t, "page.pdf"), note)...)
		if resp.StatusCode != 200 || !bytes.Contains(body, []byte("/EmbeddedFile")) && !bytes.Contains(body, []byte("/ObjStm")) {
			t.Errorf("%s: status %d %.100s", path, resp.StatusCode, body)
			continue
		}
		out := filepath.Join(t.TempDir(), "out.pdf")
		systest.NoError(t, os.WriteFile(out, body, 0o600))
		if list := systest.Run(t, "pdfdetach", "-list", out); !strings.Contains(list, "note.xml") {
			t.Errorf("%s: %s", path, list)
		}
	}
	if resp, body := s.post(t, "/forms/pdfengines/merge", pdf(t, "page.pdf"), note, field{"pdfa", "", "PDF/A-2b"}); resp.StatusCode != 400 || !strings.Contains(string(body), "does not support embedded files") {
		t.Errorf("status %d %s", resp.StatusCode, body)
	}
	s.nothingLeft(t)
}

// Documents become electronic invoices, whatever they are before.
func TestFacturX(t *testing.T) {
	t.Parallel()
	s := serve(t, gotenberg.Config{}, false)
	xml, level := field{"facturxXml", "invoice.xml", "<a/>"}, field{"facturxConformanceLevel", "", "EN 16931"}
	for path, more := range map[string][]field{
		"factur-x": nil, "embed": {{"embeds", "note.xml", "<b/>"}}, "merge": {{"pdfa", "", "PDF/A-3b"}}, "split": {{"splitMode", "", "intervals"}, {"splitSpan", "", "9"}},
	} {
		resp, body := s.post(t, "/forms/pdfengines/"+path, append(more, pdf(t, "page.pdf"), xml, level)...)
		out := filepath.Join(t.TempDir(), "out.pdf")
		systest.NoError(t, os.WriteFile(out, body, 0o600))
		if resp.StatusCode != 200 {
			t.Errorf("%s: status %d %.100s", path, resp.StatusCode, body)
			continue
		}
		said := systest.Run(t, "pdfinfo", "-meta", out)
		if list := systest.Run(t, "pdfdetach", "-list", out); !strings.Contains(list, "factur-x.xml") || !strings.Contains(said, "<fx:ConformanceLevel>EN 16931<") || !strings.Contains(said, "<pdfaid:part>3<") {
			t.Errorf("%s: attachments %s, metadata %s", path, list, said)
		}
	}
	for _, c := range []struct {
		fields []field
		want   string
	}{
		{[]field{xml}, "'facturxConformanceLevel' is required"},
		{[]field{level}, "'facturxXml' file is required"},
		{[]field{xml, {"facturxConformanceLevel", "", "COMFORT"}}, "unsupported conformance level"},
		{[]field{xml, level, {"facturxDocumentType", "", "LETTER"}}, "unsupported document type"},
		{[]field{xml, level, {"pdfa", "", "PDF/A-2b"}}, "PDF/A-3"},
		{nil, "both required"},
	} {
		if resp, body := s.post(t, "/forms/pdfengines/factur-x", append(c.fields, pdf(t, "page.pdf"))...); resp.StatusCode != 400 || !strings.Contains(string(body), c.want) {
			t.Errorf("status %d %s, want %s", resp.StatusCode, body, c.want)
		}
	}
	s.nothingLeft(t)
}

// Pages and their parts come from URLs if that is on, with the headers and cookies for each URL.
func TestURL(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := make(map[string]http.Header)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.URL.Path] = r.Header.Clone()
		mu.Unlock()
		switch r.URL.Path {
		case "/old":
			http.Redirect(w, r, "/sub/page", http.StatusFound)
		case "/sub/page":
			w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
			io.WriteString(w, "<!doctype html><link rel=stylesheet href=style.css><img src=missing.png><p>caf\xe9")
		case "/sub/style.css":
			w.Header().Set("Content-Type", "text/css")
			io.WriteString(w, "p { background: url(../logo.png) }")
		case "/logo.png":
			w.Header().Set("Content-Type", "image/png")
			io.WriteString(w, "PNG")
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	s := serve(t, gotenberg.Config{Outbound: http.DefaultTransport, URLs: true}, false)
	get := func(path string, more ...field) (*http.Response, string) {
		resp, body := s.post(t, "/forms/chromium/convert/url", append(more, field{"url", "", site.URL + path})...)
		return resp, string(body)
	}
	resp, body := get("/old", field{"extraHttpHeaders", "", `{"X-All":"a","X-Css":"b;scope=.*\\.css$"}`}, field{"userAgent", "", "Agent"},
		field{"cookies", "", `[{"name":"c","value":"v","domain":"127.0.0.1","path":"/sub"},{"name":"other","value":"v","domain":"example.com"}]`})
	const css = "data:text/css;base64,cCB7IGJhY2tncm91bmQ6IHVybCgiZGF0YTppbWFnZS9wbmc7YmFzZTY0LFVFNUgiKSB9"
	if resp.StatusCode != 200 || !strings.Contains(body, css) || !strings.Contains(body, "café") || !strings.Contains(body, "missing.png") {
		t.Errorf("status %d %s", resp.StatusCode, body)
	}
	for path, want := range map[string][4]string{"/old": {"a", "", "Agent", ""}, "/sub/page": {"a", "", "Agent", "c=v"}, "/sub/style.css": {"a", "b", "Agent", "c=v"}, "/logo.png": {"a", "", "Agent", ""}} {
		h := seen[path]
		if got := [4]string{h.Get("X-All"), h.Get("X-Css"), h.Get("User-Agent"), h.Get("Cookie")}; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for _, c := range []struct {
		path   string
		field  field
		status int
		want   string
	}{
		{"/none", field{"x", "", ""}, 409, "Invalid HTTP status code from the main page: 404: Not Found"},
		{"/none", field{"failOnHttpStatusCodes", "", "[500]"}, 200, ""},
		{"/old", field{"failOnResourceHttpStatusCodes", "", "[499]"}, 409, "Invalid HTTP status code from resources:\n" + site.URL + "/sub/missing.png - 404: Not Found"},
		{"/old", field{"extraHttpHeaders", "", `{"a":"b;scope=*."}`}, 400, ""},
	} {
		if resp, body := get(c.path, c.field); resp.StatusCode != c.status || c.want != "" && body != c.want {
			t.Errorf("%s %v: status %d %s", c.path, c.field, resp.StatusCode, body)
		}
	}
	for u, status := range map[string]int{"file:///etc/passwd": 400, "ftp://example.com/": 403, "http://127.0.0.1:1/": 400, "": 400} {
		if resp, body := s.post(t, "/forms/chromium/convert/url", field{"url", "", u}); resp.StatusCode != status {
			t.Errorf("%q: status %d %s, want %d", u, resp.StatusCode, body, status)
		}
	}
	off := serve(t, gotenberg.Config{Outbound: http.DefaultTransport}, false)
	if resp, _ := off.post(t, "/forms/chromium/convert/url", field{"url", "", site.URL}); resp.StatusCode != http.StatusForbidden {
		t.Errorf("URLs are off: status %d", resp.StatusCode)
	}
	s.nothingLeft(t)
}

// A site that does not answer takes no longer than the limit, and only its parts are missing.
func TestSlowSite(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fast" {
			io.WriteString(w, "<!doctype html><img src=/slow><img src=/slow2><p>text")
			return
		}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	defer site.Close()
	defer close(end)
	s := serve(t, gotenberg.Config{Outbound: http.DefaultTransport, URLs: true, LoadTime: 200 * time.Millisecond}, false)
	resp, body := s.post(t, "/forms/chromium/convert/url", field{"url", "", site.URL + "/slow"})
	if resp.StatusCode != 400 || string(body) != "Chromium returned net::ERR_TIMED_OUT" {
		t.Errorf("status %d %s", resp.StatusCode, body)
	}
	if resp, body := s.post(t, "/forms/chromium/convert/url", field{"url", "", site.URL + "/fast"}); resp.StatusCode != 200 {
		t.Errorf("status %d %s", resp.StatusCode, body)
	}
	s.nothingLeft(t)
}

// A page gets the files of the form, the layout of Gotenberg, and no others.
func TestPage(t *testing.T) {
	t.Parallel()
	s := serve(t, gotenberg.Config{}, false)
	index := `<!doctype html><link rel=stylesheet href="style.css"><img src="./logo.png?v=1"><img src="https://example.com/x.png"><p style="background:url(logo.png)">text</p>`
	resp, body := s.post(t, "/forms/chromium/convert/html",
		field{"files", "index.html", index},
		field{"files", "style.css", "body { background: url('logo.png') }"}, field{"files", "logo.png", "PNG"},
		field{"files", "header.html", "<p>head</p>"}, field{"marginTop", "", "2cm"}, field{"landscape", "", "true"})
	out := string(body)
	if resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", resp.StatusCode, body)
	}
	const logo = "data:image/png;base64,UE5H"
	for _, want := range []string{
		`<img src="` + logo + `">`, `<img src="https://example.com/x.png">`, `url(&#34;` + logo + `&#34;)`, `href="data:text/css;base64,`,
		`"paper_width":792`, `"paper_height":612`, `"print_background":false`, `"margin_left":28.08`, `"margin_top":56.69`, `"header":"\u003cp\u003ehead`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %s", want, out)
		}
	}
	if strings.Contains(out, "javascript") {
		t.Error("scripts run in a page without scripts")
	}

	for _, c := range []struct {
		fields []field
		status int
		want   string
	}{
		{nil, 400, "Invalid form data: form file 'index.html' is required"},
		{[]field{{"files", "index.html", index}, {"scale", "", "foo"}}, 400, `Invalid form data: form field 'scale' is invalid (got 'foo', resulting to strconv.ParseFloat: parsing "foo": invalid syntax)`},
		{[]field{{"files", "index.html", index}, {"nativePageRanges", "", "foo"}}, 400, "Chromium does not handle the page ranges 'foo' (nativePageRanges) syntax"},
		{[]field{{"files", "index.html", index}, {"omitBackground", "", "true"}}, 400, "omitBackground requires printBackground set to true"},
		{[]field{{"files", "index.html", index}, {"failOnResourceLoadingFailed", "", "true"}}, 409, "Chromium failed to load resources: resource Stylesheet: net::ERR_FILE_NOT_FOUND\nresource Image: net::ERR_FILE_NOT_FOUND\nresource Image: net::ERR_INTERNET_DISCONNECTED"},
		{[]field{{"files", "index.html", "BROKEN"}}, 400, "the page is damaged"},
	} {
		resp, body := s.post(t, "/forms/chromium/convert/html", c.fields...)
		if resp.StatusCode != c.status || string(body) != c.want {
			t.Errorf("%v: status %d %q, want %d %q", c.fields, resp.StatusCode, body, c.status, c.want)
		}
	}

	template := "<body>{{ toHTML \"a.md\" }}|{{toHTML `b.md`}}{{ define \"x\" }}</body>"
	resp, body = s.post(t, "/forms/chromium/convert/markdown", field{"files", "index.html", template}, field{"files", "a.md", "# One"}, field{"files", "b.md", "*two*"})
	if resp.StatusCode != 200 || !strings.Contains(string(body), "<h1>One</h1>\n|<p><em>two</em></p>\n{{ define") {
		t.Errorf("Markdown: status %d %s", resp.StatusCode, body)
	}
	resp, body = s.post(t, "/forms/chromium/convert/markdown", field{"files", "index.html", template}, field{"files", "a.md", "# One"})
	if resp.StatusCode != 400 || string(body) != "Markdown file(s) not found: 'b.md'" {
		t.Errorf("Markdown: status %d %s", resp.StatusCode, body)
	}
	s.nothingLeft(t)
}

// Names of results never have directories of any system.
func TestOutputName(t *testing.T) {
	t.Parallel()
	s := serve(t, gotenberg.Config{}, false)
	for wanted, name := range map[string]string{"foo": "foo.pdf", `..\..\Windows\foo`: "foo.pdf", "/tmp/foo": "foo.pdf", "na%C3%AFve": "naïve.pdf", "": "page_1.pdf"} {
		r := request(t, s, "/forms/pdfengines/flatten", pdf(t, "page_1.pdf"))
		r.Header.Set("Gotenberg-Output-Filename", wanted)
		r.Header.Set("Gotenberg-Trace", "trace")
		resp, _ := systest.Send(t, r)
		if got := fileName(t, resp.Header); got != name || resp.Header.Get("Gotenberg-Trace") != "trace" {
			t.Errorf("%q: %q", wanted, got)
		}
	}
	long := strings.Repeat("ä", 110) + ".pdf"
	if resp, _ := s.post(t, "/forms/pdfengines/flatten", pdf(t, long)); resp.StatusCode != 200 || fileName(t, resp.Header) != long {
		t.Errorf("long name: status %d %q", resp.StatusCode, resp.Header.Get("Content-Disposition"))
	}
}

// Without an account for them, requests need a key, also as the password of basic authentication.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		s := serve(t, gotenberg.Config{Version: "8.1"}, open)
		for name, change := range map[string]func(*http.Request){
			"bearer":  func(*http.Request) {},
			"basic":   func(r *http.Request) { r.SetBasicAuth("anybody", "key") },
			"wrong":   func(r *http.Request) { r.SetBasicAuth("anybody", "wrong") },
			"none":    func(r *http.Request) { r.Header.Del("Authorization") },
			"foreign": func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Origin", "https://example.com") },
		} {
			want := map[string]int{"bearer": 200, "basic": 200, "wrong": 401, "none": 401, "foreign": 401}[name]
			if open && name == "none" {
				want = 200
			}
			r := request(t, s, "/forms/pdfengines/flatten", pdf(t, "page.pdf"))
			change(r)
			if resp, _ := systest.Send(t, r); resp.StatusCode != want {
				t.Errorf("open %v, %s: status %d, want %d", open, name, resp.StatusCode, want)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/version", nil)
			systest.NoError(t, err)
			r.Header.Set("Authorization", "Bearer key")
			change(r)
			if resp, body := systest.Send(t, r); resp.StatusCode != want || want == 200 && string(body) != "8.1" {
				t.Errorf("version, open %v, %s: status %d %q", open, name, resp.StatusCode, body)
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/health", nil)
		systest.NoError(t, err)
		if resp, body := systest.Send(t, r); resp.StatusCode != 503 || !strings.Contains(string(body), `"chromium":{"status":"up"`) || !strings.Contains(string(body), `"libreoffice":{"status":"down"`) {
			t.Errorf("health: status %d %s", resp.StatusCode, body)
		}
	}
}

// A hook is a server that receives webhooks.
type hook struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]*http.Request // by path
	body map[string][]byte
	fail int // responses that fail first
}

func newHook(t *testing.T) *hook {
	h := &hook{seen: make(map[string]*http.Request), body: make(map[string][]byte)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.fail > 0 {
			h.fail--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		h.seen[r.URL.Path], h.body[r.URL.Path] = r, b
	}))
	t.Cleanup(h.Close)
	return h
}

// got returns the paths that were called.
func (h *hook) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.seen))
}

// Results go to webhooks, failures to the webhook for errors, and both to that for events.
func TestWebhook(t *testing.T) {
	t.Parallel()
	s := serve(t, gotenberg.Config{Outbound: http.DefaultTransport}, false)
	send := func(h *hook, path string, fields []field, header ...string) (*http.Response, []byte) {
		r := request(t, s, path, fields...)
		r.Header.Set("Gotenberg-Webhook-Url", h.URL+"/result")
		r.Header.Set("Gotenberg-Webhook-Error-Url", h.URL+"/error")
		r.Header.Set("Gotenberg-Webhook-Events-Url", h.URL+"/event")
		r.Header.Set("Gotenberg-Trace", "trace")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return systest.Send(t, r)
	}
	page := []field{pdf(t, "page.pdf")}

	h := newHook(t)
	h.fail = 1
	resp, _ := send(h, "/forms/pdfengines/flatten", page, "Gotenberg-Webhook-Method", "put", "Gotenberg-Output-Filename", "foo",
		"Gotenberg-Webhook-Extra-Http-Headers", `{"X-Foo":"bar"}`, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("status %d", resp.StatusCode)
	}
	systest.Until(t, "the webhooks", func() bool { return slices.Equal(h.got(), []string{"/event", "/result"}) })
	r := h.seen["/result"]
	if r.Method != http.MethodPut || fileName(t, r.Header) != "foo.pdf" || r.Header.Get("X-Foo") != "bar" || r.Header.Get("Gotenberg-Trace") != "trace" ||
		r.Header.Get("Content-Type") != "application/pdf" || !bytes.HasPrefix(h.body["/result"], []byte("%PDF-")) ||
		!strings.HasPrefix(r.Header.Get("Traceparent"), "00-0af7651916cd43dd8448eb211c80319c-") || strings.Contains(r.Header.Get("Traceparent"), "b7ad6b7169203331") {
		t.Errorf("result: %s %v %.20q", r.Method, r.Header, h.body["/result"])
	}
	if body := string(h.body["/event"]); !strings.Contains(body, `"event":"webhook.success"`) || !strings.Contains(body, `"correlationId":"trace"`) {
		t.Errorf("event: %s", body)
	}

	for path, c := range map[string]struct {
		fields []field
		want   string
	}{
		"/forms/pdfengines/flatten":       {[]field{{"files", "damaged.pdf", "%PDF-1.4 nothing"}}, `{"message":"the file is damaged and could not be repaired","status":400}`},
		"/forms/pdfengines/metadata/read": {page, `{"message":"The webhook middleware can only work with multipart/form-data routes that results in output files","status":400}`},
	} {
		h := newHook(t)
		if resp, body := send(h, path, c.fields); resp.StatusCode != http.StatusNoContent {
			t.Fatalf("%s: status %d %s", path, resp.StatusCode, body)
		}
		systest.Until(t, "the webhooks", func() bool { return slices.Equal(h.got(), []string{"/error", "/event"}) })
		if string(h.body["/error"]) != c.want || !strings.Contains(string(h.body["/event"]), `"event":"webhook.error"`) {
			t.Errorf("%s: %s, %s", path, h.body["/error"], h.body["/event"])
		}
	}

	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"Gotenberg-Webhook-Method", "GET"}, 400},
		{[]string{"Gotenberg-Webhook-Error-Url", "", "Gotenberg-Webhook-Events-Url", ""}, 400},
		{[]string{"Gotenberg-Webhook-Extra-Http-Headers", "foo"}, 400},
		{[]string{"Gotenberg-Webhook-Url", "file:///etc/passwd"}, 403},
	} {
		if resp, body := send(newHook(t), "/forms/pdfengines/flatten", page, c.header...); resp.StatusCode != c.status {
			t.Errorf("%q: status %d %s, want %d", c.header, resp.StatusCode, body, c.status)
		}
	}
	s.nothingLeft(t)

	off := serve(t, gotenberg.Config{}, false)
	r = request(t, off, "/forms/pdfengines/flatten", page...)
	r.Header.Set("Gotenberg-Webhook-Url", h.URL)
	if resp, _ := systest.Send(t, r); resp.StatusCode != http.StatusForbidden {
		t.Errorf("webhooks are off: status %d", resp.StatusCode)
	}
}

// A secret that is too short is refused.
func TestSecrets(t *testing.T) {
	t.Parallel()
	if _, err := gotenberg.New(gotenberg.Config{Secrets: [][]byte{[]byte("short")}}); err == nil {
		t.Error("a short secret is accepted")
	}
}

// Files come from URLs if that is on, and only through the transport with the guard.
func TestDownloadFrom(t *testing.T) {
	t.Parallel()
	var header http.Header
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		w.Header().Set("Content-Disposition", `attachment; filename="../page.pdf"`)
		io.WriteString(w, pdf(t, "")[2])
	})
	// back redirects to the server that it is asked about.
	back := func(w http.ResponseWriter, r *http.Request) {
		if to := r.FormValue("back"); to != "" {
			http.Redirect(w, r, to+"/page", http.StatusFound)
			return
		}
		page(w, r)
	}
	other := httptest.NewServer(http.HandlerFunc(back))
	defer other.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(back))
	defer secure.Close()
	from := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			page(w, r)
		case "/here":
			http.Redirect(w, r, "/page", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other.URL+"/page?back="+r.FormValue("back"), http.StatusFound)
		case "/nameless":
		case "/away":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer from.Close()
	s := serve(t, gotenberg.Config{Outbound: secure.Client().Transport, URLs: true}, false)
	urls := strings.NewReplacer("BASE", from.URL, "SECURE", secure.URL)
	get := func(s *server, list string) (*http.Response, []byte) {
		return s.post(t, "/forms/pdfengines/flatten", field{"downloadFrom", "", urls.Replace(list)})
	}
	resp, body := get(s, `[{"url":"BASE/page","extraHttpHeaders":{"X-Foo":"bar"}}]`)
	if resp.StatusCode != 200 || fileName(t, resp.Header) != "page.pdf" || header.Get("X-Foo") != "bar" {
		t.Errorf("status %d %.200s, header %v", resp.StatusCode, body, header)
	}
	// Only the server that the client names gets the headers.
	for path, want := range map[string]string{"/here": "bar", "/other": "", "/other?back=BASE": ""} {
		resp, body := get(s, `[{"url":"BASE`+path+`","extraHttpHeaders":{"X-Foo":"bar"}}]`)
		if resp.StatusCode != 200 || header.Get("X-Foo") != want || header.Get("User-Agent") != "Gotenberg" {
			t.Errorf("%s: status %d %.200s, header %v", path, resp.StatusCode, body, header)
		}
	}
	for list, want := range map[string]string{
		`[{"url":"BASE/nameless"}]`:     "No 'Content-Disposition' header from 'BASE/nameless'",
		`[{"url":"BASE/missing"}]`:      "Unable to download file from 'BASE/missing': got status: '404 Not Found'",
		`[{"url":"BASE/away"}]`:         "Unable to download file from 'BASE/away': no response",
		`[{"url":"SECURE/?back=BASE"}]`: "Unable to download file from 'SECURE/?back=BASE': no response",
		`[{"url":" "}]`:                 "Invalid 'downloadFrom' form field entry 0: URL must be set",
		`foo`:                           "Invalid 'downloadFrom' form field value: invalid character 'o' in literal false (expecting 'a')",
	} {
		if resp, body := get(s, list); resp.StatusCode != 400 || string(body) != urls.Replace(want) {
			t.Errorf("%s: status %d %q", list, resp.StatusCode, body)
		}
	}
	if resp, _ := get(s, `[{"url":"file:///etc/passwd"}]`); resp.StatusCode != 403 {
		t.Errorf("file: status %d", resp.StatusCode)
	}
	if resp, _ := get(serve(t, gotenberg.Config{Outbound: http.DefaultTransport}, false), `[{"url":"BASE/page"}]`); resp.StatusCode != 403 {
		t.Errorf("URLs are off: status %d", resp.StatusCode)
	}
	s.nothingLeft(t)
}

// A request that ends early, or takes too long, leaves nothing behind.
func TestCutOff(t *testing.T) {
	t.Parallel()
	s := serve(t, gotenberg.Config{Timeout: time.Nanosecond}, false)
	if resp, body := s.post(t, "/forms/pdfengines/flatten", pdf(t, "page.pdf")); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d %s", resp.StatusCode, body)
	}
	s = serve(t, gotenberg.Config{}, false)
	whole := request(t, s, "/forms/pdfengines/flatten", pdf(t, "page.pdf"))
	b, err := io.ReadAll(whole.Body)
	systest.NoError(t, err)
	r := whole.Clone(t.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b[:len(b)/2])), int64(len(b)/2)
	if resp, body := systest.Send(t, r); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d %s", resp.StatusCode, body)
	}
	r = whole.Clone(t.Context())
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
	r.Header.Set("Content-Type", "application/json")
	if resp, _ := systest.Send(t, r); resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("status %d", resp.StatusCode)
	}
	s.nothingLeft(t)
}
