package main

import (
	"bytes"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// docs/configuration.md lists the flags of the server.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/configuration.md"
	want := configuration()
	if *update {
		systest.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	if got := string(systest.ReadFile(t, path)); got != want {
		t.Error("docs/configuration.md is out of date; run go test ./cmd/refserver -run ConfigurationPage -update")
	}
}

// Each command has a manual page with its flags.
func TestManual(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	var out, errs bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	if code := run(t.Context(), []string{"man", dir}, &out, &errs, none); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	for name, want := range map[string][]string{
		"refserver.1":             {"refserver-serve(1)", "refserver-convert(1)", "EXIT STATUS", "0"},
		"refserver-serve.1":       {`\-\-data-dir`, `\-\-listen`, "refserver(1)"},
		"refserver-keys-create.1": {`\-\-name`, "refserver-keys(1)"},
		"refserver-convert.1":     {`\-\-force`, `\-\-param`},
	} {
		page := strings.ReplaceAll(string(systest.ReadFile(t, filepath.Join(dir, name))), "--", `\-\-`)
		page = strings.ReplaceAll(page, `\fB`, "")
		page = strings.ReplaceAll(page, `\fP`, "")
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s lacks %q:\n%s", name, w, page[:min(len(page), 1500)])
			}
		}
	}
}

// docs writes the pages of the site as files that a web server finds.
func TestWriteDocs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out, errs bytes.Buffer
	args := append([]string{"docs", dir, "--public-url", "https://files.example.com", "--cache-dir", systest.CodeCache()},
		"--ffmpeg", "none", "--soffice", "none", "--pandoc", "none", "--chromium", "none", "--tesseract", "none")
	if code := run(t.Context(), args, &out, &errs, func(string) (string, bool) { return "", false }); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer srv.Close()
	for path, want := range map[string]string{
		"/docs": "Filewright documentation", "/docs/quickstart": "convert.mjs", "/docs/guides/cluster": "Run a cluster",
		"/docs/site.js": "search", "/docs/site.css": ":root", "/docs/search.json": `"u":"/docs/api#action-zip"`,
		"/docs/api": "https://files.example.com", "/openapi.json": `"/api/v1/import"`, "/openapi.yaml": "openapi: 3.1", "/openapi-3.0.json": `"3.0`,
	} {
		resp, err := http.Get(srv.URL + path)
		systest.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		systest.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != 200 || !strings.Contains(string(b), want) {
			t.Errorf("%s: %s lacks %q", path, resp.Status, want)
		}
	}
}

// The documentation is at /docs, the API reference of the service at /docs/api.
func TestWithDocs(t *testing.T) {
	t.Parallel()
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "service") })
	document := func() []byte {
		return []byte(`{"paths":{"/api/v1/do":{"x-no-alias":true,"parameters":[],"post":{"operationId":"do","summary":"Start an operation","description":"Text."}}},
			"components":{"schemas":{"DoZip":{"title":"zip","description":"Makes an archive."},"DoSteps":{"title":"steps"},"Other":{"title":"other"}}}}`)
	}
	log := slog.New(slog.DiscardHandler)
	h := withDocs(service, log, document)
	for _, tt := range []struct{ method, path, want string }{
		{"GET", "/docs", "Filewright documentation"},
		{"GET", "/docs/quickstart", "Quickstart"},
		{"GET", "/docs/api", "service"},
		{"POST", "/docs", "service"},
		{"GET", "/docsy", "service"},
		{"GET", "/api/v1/formats", "service"},
		{"GET", "/docs/search.json", `{"u":"/docs/api#do","p":"API reference","s":"Start an operation","t":"POST /api/v1/do Text."},{"u":"/docs/api#action-zip","p":"API reference","s":"zip","t":"Makes an archive."}]`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %s: %d %.200s, want %s", tt.method, tt.path, w.Code, w.Body, tt.want)
		}
	}
	w := httptest.NewRecorder()
	withDocs(service, log, func() []byte { return []byte("{") }).ServeHTTP(w, httptest.NewRequest("GET", "/docs", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("an invalid document is accepted: %d", w.Code)
	}
}
