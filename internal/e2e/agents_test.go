//go:build linux

package e2e

import (
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/filewright/filewright/internal/systest"
)

// An agent is a client of the Model Context Protocol.
type agent struct{ *sdk.ClientSession }

func connectAgent(t *testing.T, transport sdk.Transport) agent {
	t.Helper()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	systest.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return agent{s}
}

// use calls a tool that must succeed, and returns its text.
func (a agent) use(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	r, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	systest.NoError(t, err)
	text := r.Content[0].(*sdk.TextContent).Text
	if r.IsError {
		t.Fatalf("%s: %s", tool, text)
	}
	return text
}

// TestAgentOnThisHost lets an agent work on local files through the program.
func TestAgentOnThisHost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	photo, err := os.ReadFile("../../examples/files/photo.jpg")
	systest.NoError(t, err)
	systest.NoError(t, os.WriteFile(filepath.Join(root, "photo.jpg"), photo, 0o600))
	pdf, err := os.ReadFile("../../examples/files/one.pdf")
	systest.NoError(t, err)
	systest.NoError(t, os.WriteFile(filepath.Join(root, "one.pdf"), pdf, 0o600))
	command := exec.Command(binary, append([]string{"mcp", "--root", root, "--cache-dir", systest.CodeCache()}, noEngines...)...)
	a := connectAgent(t, &sdk.CommandTransport{Command: command})
	a.use(t, "convert", map[string]any{"file": "photo.jpg", "convert_to": "jpg", "width": 100})
	small, err := os.ReadFile(filepath.Join(root, "photo-2.jpg"))
	systest.NoError(t, err)
	if len(small) == 0 || len(small) > len(photo)/2 {
		t.Errorf("the small picture has %d bytes", len(small))
	}
	text := a.use(t, "read_document", map[string]any{"file": "one.pdf"})
	if !strings.HasPrefix(text, "The whole document (1 page).") || !strings.Contains(text, "# Chapter one") {
		t.Errorf("document: %s", text)
	}
	if text := a.use(t, "inspect", map[string]any{"file": "photo-2.jpg"}); !strings.Contains(text, `"width": 100`) {
		t.Errorf("inspect: %s", text)
	}
}

// key adds the API key to requests.
type keyTransport string

func (k keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// TestAgentOfTheService lets an agent work on files of an account.
func TestAgentOfTheService(t *testing.T) {
	t.Parallel()
	a := connectAgent(t, &sdk.StreamableClientTransport{
		Endpoint: shared.url + "/mcp", HTTPClient: &http.Client{Transport: keyTransport(shared.key)}, DisableStandaloneSSE: true,
	})
	docx, err := os.ReadFile("../../examples/files/report.docx")
	systest.NoError(t, err)
	key := a.use(t, "upload", map[string]any{"name": "report.docx", "base64": base64.StdEncoding.EncodeToString(docx)})
	text := a.use(t, "read_document", map[string]any{"file": key})
	if !strings.Contains(text, "# Summary") || !strings.Contains(text, "| Apples") || strings.Contains(text, "base64") {
		t.Errorf("document: %s", text)
	}
	text = a.use(t, "convert", map[string]any{"file": key, "convert_to": "pdf"})
	result, _, _ := strings.Cut(text, " ")
	r, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "filewright://files/" + result})
	systest.NoError(t, err)
	if !strings.HasPrefix(string(r.Contents[0].Blob), "%PDF") {
		t.Errorf("result %.20q", r.Contents[0].Blob)
	}
	// The document of the API describes the endpoint, and its checker must see a call.
	shared.request(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
}
