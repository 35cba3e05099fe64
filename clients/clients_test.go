//go:build linux

// Package clients tests the clients of other languages, and generators of clients, against the built
// server. The clients are in the folders beside it.
package clients

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
)

var update = flag.Bool("update", false, "write the types that the clients have of the OpenAPI document")

// The server of all tests, and its program.
var baseURL, apiKey, binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "clients-")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "refserver")
		if err := systest.Build(binary, "../cmd/refserver"); err != nil {
			log.Fatal(err)
		}
		cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--cache-dir", systest.CodeCache(), "--concurrency", "office=1",
			"--cors-origins", "*", "--webhook-allow", "127.0.0.0/8", "--url-allow", "127.0.0.0/8")
		systest.DieWithParent(attributes(cmd), syscall.SIGKILL)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			log.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			log.Fatal(err)
		}
		defer func() {
			cmd.Process.Signal(syscall.SIGTERM)
			cmd.Wait()
		}()
		ready := regexp.MustCompile(`is ready at (https?://\S+) `)
		for lines := bufio.NewScanner(out); baseURL == "" && lines.Scan(); {
			if m := ready.FindStringSubmatch(lines.Text()); m != nil {
				baseURL = m[1]
			}
		}
		if baseURL == "" {
			log.Fatal("the server did not start")
		}
		go io.Copy(io.Discard, out)
		key, err := exec.Command(binary, "keys", "create", "--data-dir", filepath.Join(dir, "data"), "--name", "tests", "--scopes", "upload,operate,read,admin").Output()
		if err != nil {
			log.Fatal(err)
		}
		apiKey = strings.TrimSpace(string(key))
		return m.Run()
	}())
}

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return cmd.SysProcAttr
}

// document returns a form of the server's OpenAPI document.
func document(t *testing.T, path string) (text []byte, doc map[string]any) {
	t.Helper()
	r, err := http.NewRequest("GET", baseURL+path, nil)
	systest.NoError(t, err)
	resp, text := systest.Send(t, r)
	if resp.StatusCode != 200 {
		t.Fatalf("%s: %s", path, resp.Status)
	}
	systest.NoError(t, json.Unmarshal(text, &doc))
	return text, doc
}

// current checks that a generated file of a client is what its generator makes of the document of this
// server, which must offer every action. With -update it writes the file. The copy of the client below
// dir gets it too.
func current(t *testing.T, dir, name, want string) {
	t.Helper()
	if *update {
		systest.NoError(t, os.WriteFile(name, []byte(want), 0o644))
	} else if got := string(systest.ReadFile(t, name)); got != want {
		t.Errorf("clients/%s is older than the OpenAPI document: run \"go test ./clients -update\"", name)
	}
	_, inside, _ := strings.Cut(name, string(filepath.Separator))
	systest.NoError(t, os.WriteFile(filepath.Join(dir, inside), []byte(want), 0o600))
}

// run runs a program in a directory and returns its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		if len(out) > 8000 {
			out = out[:8000]
		}
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// tool returns the path of a program that scripts/setup.sh installs from npm.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("generators", "node_modules", ".bin", name))
	systest.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; scripts/setup.sh test installs it", err)
	}
	return path
}

// workspace returns a directory with files of the folder generators and its packages.
func workspace(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	modules, err := filepath.Abs("generators/node_modules")
	systest.NoError(t, err)
	systest.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	for _, name := range append(files, "package.json") {
		systest.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), systest.ReadFile(t, filepath.Join("generators", name)), 0o600))
	}
	return dir
}
