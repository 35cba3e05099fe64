//go:build linux

package clients

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// The client of the MCP project works as an agent of the service, and of a local program.
func TestAgent(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<h1>From a URL</h1>"))
	}))
	t.Cleanup(page.Close)
	root := desk(t)
	dir := workspace(t, "agent.mjs", "../../examples/files/report.docx")
	env := append(environment(t), "BINARY="+binary, "ROOT="+root, "CACHE="+systest.CodeCache(), "PAGE="+page.URL+"/page")
	if out := run(t, dir, env, "node", "agent.mjs"); !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}
