//go:build linux

package clients

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/browsertest"
	"github.com/filewright/filewright/internal/systest"
)

// The TypeScript client has the types of the running server, compiles strictly, and works in Node and in
// a browser.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(workspace(t), "typescript")
	systest.NoError(t, os.CopyFS(dir, os.DirFS("typescript")))
	save(t, dir, "/openapi.json")
	current(t, dir, filepath.Join("typescript", "src", "api.ts"), run(t, dir, nil, "node", "generate.mjs", "openapi.json"))
	run(t, dir, nil, tool(t, "tsc"), "-p", ".")
	dist := filepath.Join(dir, "dist")
	env := []string{"DIST=" + dist, "BASE_URL=" + baseURL, "API_KEY=" + apiKey}
	if out := run(t, dir, env, "node", "--test", "--test-reporter", "tap", "test/"); !strings.Contains(out, "# pass 7") {
		t.Error(out)
	}

	t.Run("browser", func(t *testing.T) {
		t.Parallel()
		mux := http.NewServeMux()
		mux.Handle("/dist/", http.StripPrefix("/dist/", http.FileServer(http.Dir(dist))))
		mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Test</title><h1>Test</h1>`))
		})
		page := httptest.NewServer(mux)
		t.Cleanup(page.Close)
		tab := browsertest.Open(t)
		tab.Go(page.URL)
		var text string
		tab.Eval(`(async () => {
			const { Filewright } = await import("/dist/index.js");
			const files = new Filewright({ baseUrl: "`+baseURL+`", key: "`+apiKey+`", partSize: 4 });
			const key = await files.upload(new File(["# Hello\n"], "note.md", { type: "text/markdown" }));
			const operation = await files.run({ action: "convert", file_keys: [key], parameters: { convert_to: "html" } });
			return (await files.download(operation.files_data[0])).text();
		})()`, &text)
		if !strings.Contains(text, "Hello</h1>") {
			t.Errorf("the result is %q", text)
		}
	})
}
