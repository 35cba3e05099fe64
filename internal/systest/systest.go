// Package systest has what the tests of several packages need: checks of errors, files, requests,
// other programs, free ports, a proxy between two peers, and waiting for an event.
package systest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Run runs a program in an empty directory and returns its standard output. The test fails if the
// program fails.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := Output(t, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Output runs a program in an empty directory and returns its standard output. The error has the
// start of both outputs and wraps an [exec.ExitError] if the program ran.
func Output(t testing.TB, name string, args ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %.1000s: %w: %.1000s%.1000s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// Build builds a program of this module to path. target is its folder, relative to the folder of
// the test; flags are for go build. The program is copied from the build cache, where go run, unlike
// go build, keeps linked programs: so several packages can test a program that is linked once.
func Build(path, target string, flags ...string) error {
	argv := append(append([]string{"run"}, flags...), "-exec", "cp", target, path)
	if out, err := exec.Command("go", argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return DependOn(target)
}

// DependOn makes the result of a test depend on the sources of packages of this module that the test
// does not import, such as those of a program that it builds. Without that, go test would take the
// result from its cache after a change of the program.
func DependOn(targets ...string) error {
	const files = `{{with .Module}}{{if .Main}}{{.GoMod}}{{"\n"}}{{$.Dir}}{{range $.EmbedFiles}}{{"\n"}}{{$.Dir}}/{{.}}{{end}}{{end}}{{end}}`
	argv := append([]string{"list", "-deps", "-f", files}, targets...)
	out, err := exec.Command("go", argv...).Output()
	if err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(argv, " "), err)
	}
	observe(strings.Split(strings.TrimSpace(string(out)), "\n"))
	return nil
}

// observe opens files and folders, because go test records what a test opens: these are the inputs
// of its result. The record starts in [testing.M.Run]. Before that, observe continues in the
// background until the file of the record is there.
func observe(paths []string) {
	record := flag.Lookup("test.testlogfile")
	if record == nil || record.Value.String() == "" {
		return
	}
	open := func() {
		for _, path := range paths {
			if f, err := os.Open(path); err == nil {
				f.Close()
			}
		}
	}
	if _, err := os.Lstat(record.Value.String()); err == nil {
		open()
		return
	}
	go func() {
		for {
			time.Sleep(10 * time.Millisecond)
			if _, err := os.Lstat(record.Value.String()); err == nil {
				break
			}
		}
		time.Sleep(10 * time.Millisecond) // the record starts just after its file is made
		open()
	}()
}

// Tool builds a program of internal/tools, each of which is a module of its own so that this module
// does not depend on it, and returns its path.
func Tool(name string) (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	cmd := exec.Command("go", "tool", "-n", name)
	cmd.Dir = filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "internal", "tools", name)
	// The race detector and similar flags are for our own code.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, &stderr)
	}
	observe([]string{cmd.Dir})
	return strings.TrimSpace(string(path)), nil
}

// Start calls run in the background and returns a function that ends its context and waits for it.
// The end of the test also does that. The test fails if run returns an error.
func Start(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// MainWith builds a program of this module, sets *path to it, runs the tests of a package and exits.
// target is the folder of the program, relative to that of the tests.
func MainWith(m *testing.M, path *string, target string) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "tests-")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		*path = filepath.Join(dir, filepath.Base(target))
		if err := Build(*path, target); err != nil {
			log.Fatal(err)
		}
		return m.Run()
	}())
}

// CodeCache returns the directory in which the tests of all packages keep the machine code of pdfium, also
// for later runs. Compiling it takes five seconds of processor time.
func CodeCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "filewright-tests")
}

// patience is how long Until waits: longer than anything takes on a busy machine.
const patience = 2 * time.Minute

// Until polls until ok returns true; what names the event. The test fails if that takes more than
// two minutes.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end, pause := time.Now().Add(patience), time.Millisecond
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// FreeAddr returns an address of this machine with a TCP port that nobody uses at the moment. The
// kernel gives out other ports before it repeats one.
func FreeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// Proxy returns the address of a TCP proxy. It calls carry for each connection from a client, with
// a connection to the server at to, and closes both when carry returns. It listens until the end of
// the test.
func Proxy(t testing.TB, to string, carry func(client, server *net.TCPConn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer server.Close()
				carry(client.(*net.TCPConn), server.(*net.TCPConn))
			}()
		}
	}()
	return ln.Addr().String()
}

// Scale returns the size or number for a test: full, or short with -short.
func Scale(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// Pairs chooses the pairs of a source and a target that a test runs. The zero value is ready to use.
type Pairs struct{ read, written map[string]bool }

// Run reports whether to run a pair. With -short it selects the pairs whose source or target is not
// part of an earlier pair, so every source and every target is run; otherwise it selects all.
func (p *Pairs) Run(source, target string) bool {
	if testing.Short() && p.read[source] && p.written[target] {
		return false
	}
	if p.read == nil {
		p.read, p.written = make(map[string]bool), make(map[string]bool)
	}
	p.read[source], p.written[target] = true, true
	return true
}

// NoError ends the test if err is not nil. It costs nothing in the loop of a benchmark.
func NoError(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Check fails the test if err is not nil, and the test goes on.
func Check(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Error(err)
	}
}

// ReadFile returns the content of a file. The test ends if that fails.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	NoError(t, err)
	return b
}

// WriteScript writes a script that the test can run at once. A file that this process wrote itself can
// be "text file busy": a program that another test starts meanwhile inherits the open file for an
// instant. See https://go.dev/issue/22315.
func WriteScript(t testing.TB, path, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `cat >"$1" && chmod 755 "$1"`, "sh", path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("write %s: %v: %s", path, err, out)
	}
}

// Send sends a request and returns the response with its body, which has been read and closed. The
// test ends if there is no complete response.
func Send(t testing.TB, r *http.Request) (*http.Response, []byte) {
	t.Helper()
	return SendBy(t, http.DefaultClient, r)
}

// SendBy is Send with another client.
func SendBy(t testing.TB, c *http.Client, r *http.Request) (*http.Response, []byte) {
	t.Helper()
	resp, err := c.Do(r)
	NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	NoError(t, err)
	return resp, body
}

// A Part of a form is its field, the name of the file ("" for a text) and the value.
type Part = [3]string

// Form returns a form as multipart/form-data.
func Form(t testing.TB, parts ...Part) (body []byte, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, part := range parts {
		field, name, value := part[0], part[1], part[2]
		h := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf("form-data; name=%q", field)}}
		if name != "" {
			h.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename="%s"`, field, name))
		}
		p, err := w.CreatePart(h)
		NoError(t, err)
		_, err = io.WriteString(p, value)
		NoError(t, err)
	}
	NoError(t, w.Close())
	return b.Bytes(), w.FormDataContentType()
}

// Regular returns the paths of all regular files below a directory, which a running server may
// change. The directory must exist.
func Regular(t testing.TB, dir string) (paths []string) {
	t.Helper()
	NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// AtEnd calls a function, such as Close, at the end of the test. The test fails if that returns an
// error.
func AtEnd(t testing.TB, f func() error) {
	t.Helper()
	t.Cleanup(func() { Check(t, f()) })
}
