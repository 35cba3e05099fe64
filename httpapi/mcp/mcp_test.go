package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/mcp"
	"github.com/filewright/filewright/httpapi/remote"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// actions are test actions: a "PDF" is a text with pages that form feeds separate, and txt becomes one.
func actions() []fileops.Action {
	to := func(formats ...string) fileops.Param { return fileops.Enum("convert_to", "Target.", formats...) }
	pages := fileops.Param{Name: "pages", Doc: "Pages."}
	convert := func(from format.Format, target string, more ...fileops.Param) fileops.Action {
		return fileops.Func(fileops.Spec{
			Name: "convert", Engine: "go", Family: "text", Summary: "Converts.",
			Accepts: []fileops.Accept{{Formats: []format.Format{from}, Params: append(fileops.Schema{to(target)}, more...)}},
		}, func(ctx context.Context, job *fileops.Job) error {
			b, err := job.Input().ReadAll(1 << 20)
			if err != nil {
				return err
			}
			if bytes.Contains(b, []byte("hang")) {
				<-ctx.Done()
				return ctx.Err()
			}
			if bytes.Contains(b, []byte("broken")) {
				return fileops.Fail(fileops.ErrCorruptInput, nil, "the text is broken")
			}
			job.Progress(0.5)
			if list := job.Params.Get("pages"); list != "" {
				b = append([]byte("pages "+list+" data:image/png;base64,AAAA "), b...)
			}
			if target == "pdf" {
				b = append([]byte("%PDF-1.7\n"), b...)
			}
			job.Warn(fileops.WarnLinksDropped, "a link was left out")
			return job.WriteBytes(fileops.ResultName(job.Input(), format.Format(target)), b)
		})
	}
	return []fileops.Action{
		convert(format.CSV, "html"), convert(format.HTML, "md"), convert(format.JSON, "pdf"), convert(format.PDF, "md", pages),
		fileops.Func(fileops.Spec{
			Name: "inspect", Engine: "go", Family: "pdf", Summary: "Describes.",
			Accepts: []fileops.Accept{{Formats: []format.Format{format.PDF}}},
		}, func(_ context.Context, job *fileops.Job) error {
			return job.WriteBytes("report.json", []byte(`{"pdf":{"pages":23}}`))
		}),
		fileops.Func(fileops.Spec{
			Name: "merge", Engine: "go", Family: "text", Summary: "Joins texts.", Joint: true,
			Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}},
		}, func(_ context.Context, job *fileops.Job) error {
			var all []byte
			for _, f := range job.Inputs {
				b, err := f.ReadAll(1 << 20)
				if err != nil {
					return err
				}
				all = append(all, b...)
			}
			return job.WriteBytes("merged.txt", all)
		}),
		fileops.Func(fileops.Spec{
			Name: "inspect", Engine: "go", Family: "text", Summary: "Describes.",
			Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}},
		}, func(_ context.Context, job *fileops.Job) error {
			return job.WriteBytes("report.json", fmt.Appendf(nil, `{"bytes":%d}`, job.Input().Size()))
		}),
	}
}

// connect connects a client of the SDK. progress may be nil.
func connect(t *testing.T, transport sdk.Transport, progress func(float64)) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			if progress != nil {
				progress(req.Params.Progress)
			}
		},
	})
	s, err := c.Connect(t.Context(), transport, nil)
	systest.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// local returns a session with a server on the files of a directory, and the directory.
func local(t *testing.T, progress func(float64)) (*sdk.ClientSession, string) {
	t.Helper()
	reg, err := fileops.NewRegistry(actions()...)
	systest.NoError(t, err)
	root, err := filepath.EvalSymlinks(t.TempDir())
	systest.NoError(t, err)
	server := mcp.NewServer(mcp.Config{
		Backend: &mcp.Local{Root: root, Registry: reg, TempDir: t.TempDir()}, Registry: reg,
		Files: mcp.LocalFiles, Output: mcp.LocalOutput, Resources: mcp.LocalResources, MaxText: 20_000,
	})
	here, there := sdk.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, there) }()
	t.Cleanup(func() { cancel(); <-done })
	return connect(t, here, progress), root
}

// use calls a tool and returns its texts. It fails the test if isError differs.
func use(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any, isError bool) (string, *sdk.CallToolResult) {
	t.Helper()
	params := &sdk.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken(t.Name())
	r, err := s.CallTool(t.Context(), params)
	systest.NoError(t, err)
	var texts []string
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if r.IsError != isError {
		t.Fatalf("%s: error %v: %s", tool, r.IsError, text)
	}
	return text, r
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	systest.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
}

func TestLocal(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var progress []float64
	s, root := local(t, func(p float64) { mu.Lock(); defer mu.Unlock(); progress = append(progress, p) })
	write(t, root, "a.html", "hello")

	list, err := s.ListTools(t.Context(), nil)
	systest.NoError(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{"convert", "inspect", "list_formats", "merge", "read_document"}; !slices.Equal(names, want) {
		t.Errorf("tools %q, expected %q", names, want)
	}

	text, r := use(t, s, "convert", map[string]any{"file": "a.html", "convert_to": "md"}, false)
	if !strings.Contains(text, filepath.Join(root, "a.md")) || !strings.Contains(text, "links_dropped") {
		t.Errorf("convert: %s", text)
	}
	if b, _ := os.ReadFile(filepath.Join(root, "a.md")); string(b) != "hello" {
		t.Errorf("result %q", b)
	}
	link, ok := r.Content[1].(*sdk.ResourceLink)
	if !ok || link.Name != "a.md" {
		t.Fatalf("content %+v", r.Content)
	}
	res, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: link.URI})
	systest.NoError(t, err)
	if res.Contents[0].Text != "hello" {
		t.Errorf("resource %+v", res.Contents[0])
	}
	systest.Until(t, "progress", func() bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(progress, 50) })

	// Nothing is replaced: the name gets a number, and a wanted name is refused.
	text, _ = use(t, s, "convert", map[string]any{"file": "a.html", "convert_to": "md"}, false)
	if !strings.Contains(text, "a-2.md") {
		t.Errorf("the second result: %s", text)
	}
	text, _ = use(t, s, "convert", map[string]any{"file": "a.html", "convert_to": "md", "output": "a.md"}, true)
	if !strings.Contains(text, "exists") {
		t.Errorf("existing output: %s", text)
	}
	text, _ = use(t, s, "convert", map[string]any{"file": "a.html", "convert_to": "md", "output": "b.pdf"}, true)
	if !strings.Contains(text, "md file") {
		t.Errorf("wrong extension: %s", text)
	}
	use(t, s, "convert", map[string]any{"file": filepath.Join(root, "a.html"), "convert_to": "md", "output": "c.md"}, false)
	write(t, root, "1.txt", "one")
	write(t, root, "2.txt", "two")
	use(t, s, "merge", map[string]any{"files": []string{"2.txt", "1.txt"}, "output": "all.txt"}, false)
	if b, _ := os.ReadFile(filepath.Join(root, "all.txt")); string(b) != "twoone" {
		t.Errorf("merged %q", b)
	}
	text, _ = use(t, s, "inspect", map[string]any{"file": "1.txt"}, false)
	if text != `{"bytes":3}` {
		t.Errorf("inspect: %s", text)
	}
	entries, _ := os.ReadDir(root)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"1.txt", "2.txt", "a-2.md", "a.html", "a.md", "all.txt", "c.md"}; !slices.Equal(left, want) {
		t.Errorf("files %q, expected %q", left, want)
	}
}

// TestLocalRefuses asks for what the server must not do.
func TestLocalRefuses(t *testing.T) {
	t.Parallel()
	s, root := local(t, nil)
	outside := t.TempDir()
	write(t, outside, "secret.html", "secret")
	systest.NoError(t, os.Symlink(filepath.Join(outside, "secret.html"), filepath.Join(root, "link.html")))
	systest.NoError(t, os.Symlink(outside, filepath.Join(root, "dir")))
	write(t, root, "bad.html", "broken")
	write(t, root, "a.html", "fine")
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"convert", map[string]any{"file": "../x.html", "convert_to": "md"}, "no such file"},
		{"convert", map[string]any{"file": filepath.Join(outside, "secret.html"), "convert_to": "md"}, "outside"},
		{"convert", map[string]any{"file": "link.html", "convert_to": "md"}, "outside"},
		{"convert", map[string]any{"file": "a.html", "convert_to": "md", "output": "dir/x.md"}, "outside"},
		{"convert", map[string]any{"file": "a.html", "convert_to": "md", "output": outside + "/x.md"}, "outside"},
		{"read_document", map[string]any{"file": "link.html"}, "outside"},
		{"inspect", map[string]any{"file": "link.html"}, "outside"},
		{"convert", map[string]any{"file": "bad.html", "convert_to": "md"}, "corrupt_input"},
		{"convert", map[string]any{"file": "a.html", "convert_to": "gif"}, "convert_to"},
		{"convert", map[string]any{"file": "a.html", "convert_to": "md", "speed": 3}, "speed"},
		{"convert", map[string]any{"convert_to": "md"}, "file is required"},
		{"merge", map[string]any{"files": []string{}}, "at least one"},
		{"merge", map[string]any{"files": []string{"a.html"}}, "html"},
		{"convert", map[string]any{"file": ".", "convert_to": "md"}, "not a file"},
		{"list_formats", map[string]any{"format": "gif"}, "no action"},
		{"read_document", map[string]any{"file": "a.html", "pages": "7-3"}, "pages"},
	} {
		text, _ := use(t, s, c.tool, c.args, true)
		if !strings.Contains(text, c.want) {
			t.Errorf("%s %v: %q, expected %q in it", c.tool, c.args, text, c.want)
		}
	}
	for _, uri := range []string{"file://" + filepath.Join(outside, "secret.html"), "file://" + filepath.Join(root, "link.html"), "file:///etc/hostname", "http://x"} {
		if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s was read", uri)
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("files outside: %v", entries)
	}
}

func TestReadDocument(t *testing.T) {
	t.Parallel()
	s, root := local(t, nil)
	var long strings.Builder
	for i := range 400 {
		fmt.Fprintf(&long, "Paragraph %d %s\n\n", i, strings.Repeat("word ", 20))
	}
	write(t, root, "short.csv", "short text") // through HTML
	write(t, root, "long.html", long.String())
	write(t, root, "plain.txt", "caf\xe9 au lait") // Windows-1252
	text, _ := use(t, s, "read_document", map[string]any{"file": "short.csv"}, false)
	if !strings.HasPrefix(text, "The whole document (1 section).\n\nshort text") || strings.Count(text, "links_dropped") != 2 {
		t.Errorf("short: %q", text)
	}
	text, _ = use(t, s, "read_document", map[string]any{"file": "plain.txt"}, false)
	if !strings.Contains(text, "café au lait") {
		t.Errorf("plain: %q", text)
	}
	first, _ := use(t, s, "read_document", map[string]any{"file": "long.html", "pages": "1-2"}, false)
	second, _ := use(t, s, "read_document", map[string]any{"file": "long.html", "pages": "3"}, false)
	last, _ := use(t, s, "read_document", map[string]any{"file": "long.html", "pages": "-1"}, false)
	if !strings.HasPrefix(first, "Sections 1-2 of ") || !strings.Contains(first, "Paragraph 0 ") || strings.Contains(first, "Paragraph 150 ") || !strings.HasPrefix(second, "Section 3 of ") || !strings.Contains(last, "Paragraph 399 ") {
		t.Errorf("first %.60q, second %.60q, last %.60q", first, second, last)
	}
	write(t, root, "paged.json", `{}`) // through PDF
	for pages, want := range map[string]string{
		"":       "Pages 1-10 of 23. Continue with pages=\"11-20\".\n\npages 1-10 left-out %PDF",
		"21-":    "Pages 21-23 of 23.\n\npages 21-23 left-out %PDF",
		"2,4,-1": "Pages 2,4,23 of 23.\n\npages 2,4,23 left-out %PDF",
	} {
		args := map[string]any{"file": "paged.json"}
		if pages != "" {
			args["pages"] = pages
		}
		if text, _ := use(t, s, "read_document", args, false); !strings.HasPrefix(text, want) {
			t.Errorf("pages %q: %q", pages, text)
		}
	}
	all, _ := use(t, s, "read_document", map[string]any{"file": "long.html"}, false)
	if head, _, _ := strings.Cut(all, "\n"); !strings.Contains(head, "read fewer pages") || len(all) > 21_000 {
		t.Errorf("%d bytes with the first line %q", len(all), head)
	}
}

// TestCancel cancels a call: the action ends, and nothing remains.
func TestCancel(t *testing.T) {
	t.Parallel()
	s, root := local(t, nil)
	write(t, root, "a.html", "hang")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "convert", Arguments: map[string]any{"file": "a.html", "convert_to": "md"}}); err == nil {
		t.Error("the cancelled call succeeded")
	}
	systest.Until(t, "the end of the action", func() bool {
		entries, _ := os.ReadDir(root)
		return len(entries) == 1
	})
}

// bearer adds an API key to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// service starts a service with the endpoint.
func service(t *testing.T) (*httptest.Server, *memblob.Store) {
	t.Helper()
	store := memblob.New()
	imports, err := remote.NewImports(remote.ImportConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	systest.NoError(t, err)
	svc, err := httpapi.New(httpapi.Config{
		Actions: actions(), Auth: httpapi.StaticKeys("key-a", "key-b"), TempDir: t.TempDir(), Blobs: store,
		Extensions: []func(*httpapi.Service) httpapi.Extension{imports.Extension, mcp.New(mcp.Options{Imports: true})},
	})
	systest.NoError(t, err)
	srv := httptest.NewServer(svc)
	t.Cleanup(srv.Close)
	systest.Start(t, svc.Run)
	systest.Start(t, imports.Run)
	return srv, store
}

func session(t *testing.T, srv *httptest.Server, key string, progress func(float64)) *sdk.ClientSession {
	t.Helper()
	return connect(t, &sdk.StreamableClientTransport{Endpoint: srv.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(key)}, DisableStandaloneSSE: true}, progress)
}

func TestService(t *testing.T) {
	t.Parallel()
	srv, _ := service(t)
	var mu sync.Mutex
	var progress []float64
	s := session(t, srv, "key-a", func(p float64) { mu.Lock(); defer mu.Unlock(); progress = append(progress, p) })
	key, _ := use(t, s, "upload", map[string]any{"name": "a.html", "text": "hello"}, false)
	text, r := use(t, s, "convert", map[string]any{"file": key, "convert_to": "md"}, false)
	if !strings.Contains(text, "name: a.md") || !strings.Contains(text, "/v1/download/") || !strings.Contains(text, "links_dropped") {
		t.Errorf("convert: %s", text)
	}
	link, ok := r.Content[1].(*sdk.ResourceLink)
	if !ok {
		t.Fatalf("content %+v", r.Content)
	}
	res, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: link.URI})
	systest.NoError(t, err)
	if res.Contents[0].Text != "hello" {
		t.Errorf("resource %+v", res.Contents[0])
	}
	text, _ = use(t, s, "read_document", map[string]any{"file": key}, false)
	if !strings.HasPrefix(text, "The whole document (1 section).\n\nhello") {
		t.Errorf("read: %q", text)
	}
	systest.Until(t, "progress", func() bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(progress, 100) })

	// Another account sees nothing of this.
	other := session(t, srv, "key-b", nil)
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{"convert", map[string]any{"file": key, "convert_to": "md"}},
		{"read_document", map[string]any{"file": key}},
		{"read_document", map[string]any{"file": "../status"}},
	} {
		text, _ := use(t, other, call.tool, call.args, true)
		if strings.Contains(text, "hello") {
			t.Errorf("%s: %s", call.tool, text)
		}
	}
	bad, _ := use(t, s, "upload", map[string]any{"name": "b.html", "base64": "YnJva2Vu"}, false)
	text, _ = use(t, s, "convert", map[string]any{"file": bad, "convert_to": "md"}, true)
	if !strings.Contains(text, "corrupt_input") {
		t.Errorf("a damaged file: %s", text)
	}
	text, _ = use(t, s, "upload", map[string]any{"name": "b.html", "base64": "?"}, true)
	if !strings.Contains(text, "base64") {
		t.Errorf("bad base64: %s", text)
	}
}

// The tool import loads a file from a URL. Refused URLs and failures leave nothing, nor does a call that
// is cancelled.
func TestImport(t *testing.T) {
	t.Parallel()
	srv, store := service(t)
	began := make(chan struct{}, 1)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.html":
			io.WriteString(w, "hello "+r.Header.Get("X-Token"))
		case "/hang.html":
			began <- struct{}{}
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(files.Close)
	s := session(t, srv, "key-a", nil)
	for _, c := range []struct{ url, want string }{
		{"ftp://example.com/a.html", "http"},
		{"http://127.0.0.2/a.html", "url_address"},
		{files.URL + "/missing.html", "404"},
		{"", "url"},
	} {
		if text, _ := use(t, s, "import", map[string]any{"url": c.url}, true); !strings.Contains(text, c.want) {
			t.Errorf("%q: %q, expected %q in it", c.url, text, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "import", Arguments: map[string]any{"url": files.URL + "/hang.html"}}); err == nil {
		t.Error("the cancelled call succeeded")
	}
	systest.Until(t, "nothing is stored", func() bool {
		for _, err := range store.List(context.Background(), "") {
			systest.NoError(t, err)
			return false
		}
		return true
	})
	key, _ := use(t, s, "import", map[string]any{"url": files.URL + "/a.html", "headers": map[string]any{"X-Token": "t"}}, false)
	if text, _ := use(t, s, "read_document", map[string]any{"file": key}, false); !strings.Contains(text, "hello t") {
		t.Errorf("document: %q", text)
	}
}

// TestServiceNeedsKey: without a valid key there is no answer of the protocol.
func TestServiceNeedsKey(t *testing.T) {
	t.Parallel()
	srv, _ := service(t)
	for _, key := range []string{"", "wrong"} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		systest.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, body := systest.Send(t, req)
		var p struct {
			Slug string `json:"error"`
		}
		if err := json.Unmarshal(body, &p); err != nil || resp.StatusCode != 401 || p.Slug == "" {
			t.Errorf("key %q: %d %s", key, resp.StatusCode, body)
		}
	}
}

// TestServiceGone closes the connection of a running call: its operation is cancelled.
func TestServiceGone(t *testing.T) {
	t.Parallel()
	srv, _ := service(t)
	s := session(t, srv, "key-a", nil)
	key, _ := use(t, s, "upload", map[string]any{"name": "a.html", "text": "hang"}, false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"convert","arguments":{"file":%q,"convert_to":"md"}}}`, key)
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/mcp", strings.NewReader(body))
	systest.NoError(t, err)
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer key-a"}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			defer resp.Body.Close()
			_, _ = resp.Body.Read(make([]byte, 1))
		}
	}()
	state := func() string {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/api/v1/operations", nil)
		systest.NoError(t, err)
		req.Header.Set("Authorization", "Bearer key-a")
		_, body := systest.Send(t, req)
		var list struct {
			Operations []struct {
				Status string `json:"operation_status"`
				Files  []struct {
					Code string `json:"error_code"`
				} `json:"files_data"`
			} `json:"operations"`
		}
		systest.NoError(t, json.Unmarshal(body, &list))
		if len(list.Operations) != 1 {
			return ""
		}
		return list.Operations[0].Status + " " + list.Operations[0].Files[0].Code
	}
	systest.Until(t, "the start of the operation", func() bool { return state() == "running " })
	cancel()
	<-ended
	systest.Until(t, "its cancellation", func() bool { return state() == "failed cancelled" })
}
