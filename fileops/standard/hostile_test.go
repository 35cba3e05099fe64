package standard_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
)

const secret = "xylophone canary 4711"

// A trap is a file and a server that nothing must touch.
type trap struct {
	path, url string
	opened    func() bool
	called    atomic.Int64
}

func newTrap(t *testing.T) *trap {
	x := &trap{path: filepath.Join(t.TempDir(), "canary.txt")}
	if err := os.WriteFile(x.path, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(watch) })
	if _, err := unix.InotifyAddWatch(watch, x.path, unix.IN_OPEN|unix.IN_ACCESS); err != nil {
		t.Fatal(err)
	}
	x.opened = func() bool {
		n, err := unix.Read(watch, make([]byte, 64<<10))
		return err == nil && n > 0
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			x.called.Add(1)
			c.Close()
		}
	}()
	x.url = "http://" + l.Addr().String()
	return x
}

// text returns what of a result could have come from another file.
func text(t *testing.T, f *fileops.File) string {
	b, err := io.ReadAll(f.Reader())
	if err != nil {
		t.Fatal(err)
	}
	out := string(b)
	if f.Format() == format.PDF {
		c := exec.Command("pdftotext", "-upw", "pw", "-", "-")
		c.Stdin = bytes.NewReader(b)
		said, err := c.Output()
		if err != nil {
			t.Errorf("pdftotext: %v", err)
		}
		out += string(said)
	}
	if z, err := zip.NewReader(bytes.NewReader(b), int64(len(b))); err == nil {
		for _, e := range z.File {
			if r, err := e.Open(); err == nil {
				part, _ := io.ReadAll(io.LimitReader(r, 1<<20))
				out += string(part)
			}
		}
	}
	return out
}

// TestTrapWorks makes sure that a visit would be noticed.
func TestTrapWorks(t *testing.T) {
	t.Parallel()
	x := newTrap(t)
	if x.opened() || x.called.Load() != 0 {
		t.Fatal("touched by nobody")
	}
	if _, err := os.ReadFile(x.path); err != nil || !x.opened() {
		t.Errorf("an open is not noticed: %v", err)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://")); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	for range 100 {
		if x.called.Load() > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a call is not noticed")
}

// Nothing that a file says makes an engine open another file or call a server,
// by whatever action it comes.
func TestHostileFilesStayInside(t *testing.T) {
	t.Parallel()
	if !set.Sandbox().Strong() {
		t.Fatalf("no sandbox: %v", set.Sandbox().Missing())
	}
	x := newTrap(t)
	reg := registry(t, set)
	for _, f := range fileopstest.Hostile(x.path, x.url) {
		tried := 0
		for _, action := range []string{"convert", "compress", "merge", "lock", "unlock"} {
			targets := []string{""}
			if action == "convert" {
				targets = []string{"pdf", "txt", "png", "docx", "html", "mp3", "gif", "csv"}
			}
			for _, to := range targets {
				args := fileops.Args{}
				if to != "" {
					args["convert_to"] = to
				}
				if action == "lock" || action == "unlock" {
					args["password"] = "pw"
				}
				a, p, err := reg.Resolve(action, []format.Format{f.Format()}, args)
				if err != nil {
					continue
				}
				tried++
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				r := fileops.Runner{TempDir: t.TempDir()}
				err = r.Do(ctx, a, p, fileops.SinkFunc(func(_ context.Context, out *fileops.File) error {
					if strings.Contains(text(t, out), secret) {
						t.Errorf("%s: %s to %s has the secret", f.Name(), action, to)
					}
					return nil
				}), f)
				cancel()
				if err != nil && fileops.Code(err) == "internal_error" {
					t.Errorf("%s: %s to %s: %v", f.Name(), action, to, err)
				}
				if x.opened() {
					t.Errorf("%s: %s to %s opened the file", f.Name(), action, to)
				}
				if x.called.Swap(0) > 0 {
					t.Errorf("%s: %s to %s called the server", f.Name(), action, to)
				}
				if es, err := os.ReadDir(r.TempDir); err != nil || len(es) > 0 {
					t.Errorf("%s: %s to %s left %v in the scratch space, %v", f.Name(), action, to, es, err)
				}
			}
		}
		if tried == 0 {
			t.Errorf("%s: nothing takes it", f.Name())
		}
	}
}

// Files that ask for much are refused, or done within limits, and nothing is left
// of them. What they cost in memory is measured in internal/e2e, on a server that
// was built without the race detector.
func TestBombs(t *testing.T) {
	reg := registry(t, set)
	known := []string{"limit_exceeded", "corrupt_input", "format_mismatch", "engine_failed", "unsupported_input", "timeout"}
	for _, f := range fileopstest.Bombs() {
		for _, to := range []string{"pdf", "png", "txt", ""} {
			action, args := "compress", fileops.Args{}
			if to != "" {
				action, args = "convert", fileops.Args{"convert_to": to}
			}
			a, p, err := reg.Resolve(action, []format.Format{f.Format()}, args)
			if err != nil {
				continue
			}
			began := time.Now()
			r := fileops.Runner{TempDir: t.TempDir()}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			err = r.Do(ctx, a, p, fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil }), f)
			cancel()
			t.Logf("%s %s to %q: %v after %v", f.Name(), action, to, err, time.Since(began).Round(time.Millisecond))
			if err != nil && !slices.Contains(known, fileops.Code(err)) {
				t.Errorf("%s %s to %q: %q: %v", f.Name(), action, to, fileops.Code(err), err)
			}
			if es, err := os.ReadDir(r.TempDir); err != nil || len(es) > 0 {
				t.Errorf("%s: left %v in the scratch space, %v", f.Name(), es, err)
			}
		}
	}
}
