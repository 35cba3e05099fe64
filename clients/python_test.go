//go:build linux

package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// The Python client has the types of the running server, passes a strict type check with every
// parameter of every action, and works.
func TestPython(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(workspace(t), "python")
	systest.NoError(t, os.CopyFS(dir, os.DirFS("python")))
	doc := save(t, dir, "/openapi-3.0.json")
	current(t, dir, filepath.Join("python", "src", "filewright", "types.py"), run(t, dir, nil, "/usr/bin/python3", "generate.py", "openapi.json"))
	var b strings.Builder
	b.WriteString("from filewright.types import Do\n\nDO: list[Do] = [\n")
	for _, body := range requests(doc) {
		s, err := json.Marshal(body)
		systest.NoError(t, err)
		fmt.Fprintf(&b, "    %s,\n", strings.ReplaceAll(string(s), ":true", ":True"))
	}
	b.WriteString("]\n")
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "src", "actions.py"), []byte(b.String()), 0o600))
	run(t, dir, nil, tool(t, "pyright"), "-p", ".")
	env := []string{"PYTHONPATH=src", "BASE_URL=" + baseURL, "API_KEY=" + apiKey}
	if out := run(t, dir, env, "/usr/bin/python3", "-m", "unittest", "discover", "-s", "tests"); !strings.Contains(out, "Ran 7 tests") {
		t.Error(out)
	}
}
