package engine_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/systest"
)

// delegated returns the cgroup v2 directory of this process if groups can be created
// there and programs can have namespaces, else "".
func delegated(t *testing.T, s *engine.Sandbox) string {
	t.Helper()
	own := systest.ReadFile(t, "/proc/self/cgroup")
	mounts := systest.ReadFile(t, "/proc/mounts")
	_, path, ok := strings.Cut("\n"+string(own), "\n0::")
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if !ok || !s.Namespaced() || f[2] != "cgroup2" {
			continue
		}
		dir := strings.TrimSuffix(filepath.Join(f[1], strings.TrimSpace(path)), "/server")
		probe := filepath.Join(dir, "filewright-test-"+strconv.Itoa(os.Getpid()))
		if err := os.Mkdir(probe, 0o700); err == nil {
			systest.Check(t, os.Remove(probe))
			return dir
		}
	}
	return ""
}

// Each start of a server finds the same layers.
func TestSameLayers(t *testing.T) {
	t.Parallel()
	first := engine.NewSandbox()
	for range 50 {
		if s := engine.NewSandbox(); !slices.Equal(s.Layers(), first.Layers()) || !slices.Equal(s.Missing(), first.Missing()) {
			t.Fatalf("layers %q, missing %q; at first %q, %q", s.Layers(), s.Missing(), first.Layers(), first.Missing())
		}
	}
}

// With a delegated cgroup, each run has its own group, and most programs are the init
// process of a PID namespace. Neither leaves anything behind, whatever a program does.
func TestGroups(t *testing.T) {
	s := sandbox(t)
	dir := delegated(t, s)
	why := strings.Join(s.Missing(), "; ")
	if s.Grouped() != (dir != "") || s.Grouped() == strings.Contains(why, "PID namespace and cgroup: ") {
		t.Fatalf("delegated %q, layers %v, missing %q", dir, s.Layers(), why)
	}
	if s.Basic().Grouped() || (*engine.Sandbox)(nil).Grouped() {
		t.Error("the basic sandbox has groups")
	}
	const script = `
import os, sys, time
print(os.getpid() == 1, [l.split("/")[-2] for l in open("/proc/self/cgroup") if l.startswith("0::")], flush=True)
for i in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            print("started", flush=True)
            time.sleep(1000)
        os._exit(0)
if sys.argv[1:] == ["stay"]: time.sleep(1000)
`
	p := find(t, s, "/usr/bin/python3")
	for name, a := range map[string]engine.Access{"engine": {}, "with its own sandbox": {Namespaces: true, Write: []string{"/proc"}}, "that starts programs": {Limits: true}} {
		for _, arg := range []string{"", "stay"} {
			a.Read = []string{"/proc"}
			r, w, err := os.Pipe()
			systest.NoError(t, err)
			proc, err := p.Start(t.Context(), engine.Cmd{Args: []string{"-I", "-c", script, arg}, Dir: t.TempDir(), Stdout: w, Access: a})
			w.Close()
			systest.NoError(t, err)
			var out bytes.Buffer
			if arg == "stay" {
				for strings.Count(out.String(), "started") < 3 {
					b := make([]byte, 100)
					n, err := r.Read(b)
					if err != nil {
						t.Fatalf("%s: %v after %q", name, err, &out)
					}
					out.Write(b[:n])
				}
				proc.Kill()
			}
			err = proc.Wait()
			var exit *engine.ExitError
			if killed := errors.As(err, &exit) && exit.Signal == syscall.SIGKILL; killed != (arg == "stay") || !killed && err != nil {
				t.Errorf("%s %q: %v", name, arg, err)
			}
			out.ReadFrom(r) // to the end: no process holds the pipe
			r.Close()
			want := "False ["
			if s.Grouped() {
				want = map[bool]string{true: "True", false: "False"}[name == "engine"] + " ['engines']"
			}
			if !strings.HasPrefix(out.String(), want) {
				t.Errorf("%s %q: got %q, want %q", name, arg, &out, want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "engines", strconv.Itoa(os.Getpid())+"-*")); s.Grouped() && len(left) > 0 {
				t.Errorf("%s %q: left %v", name, arg, left)
			}
		}
	}
}

// A file that was there before the program started does not count as one that it wrote.
func TestLargeFileBefore(t *testing.T) {
	t.Parallel()
	for kind, s := range map[string]*engine.Sandbox{"default": sandbox(t), "basic": sandbox(t).Basic()} {
		shell := find(t, s, "bash")
		for script, limit := range map[string]string{"true": "", "exit 3": "", "printf '%100000s' x >file": "space for results"} {
			dir := t.TempDir()
			systest.NoError(t, os.WriteFile(filepath.Join(dir, "before"), make([]byte, 60000), 0o600))
			err := shell.Run(t.Context(), engine.Cmd{Args: []string{"-c", script}, Dir: dir, Limits: engine.Limits{FileSize: 50000}})
			var exit *engine.ExitError
			switch errors.As(err, &exit); {
			case exit == nil && (err != nil || script != "true"), exit != nil && (exit.Which() != limit || script == "true"):
				t.Errorf("%s: %q: %v, want limit %q", kind, script, err, limit)
			}
		}
	}
}

// The init process of a PID namespace ignores signals that kill other processes. Limits
// and crashes are still recognised.
func TestFirstProcess(t *testing.T) {
	t.Parallel()
	for kind, s := range map[string]*engine.Sandbox{"default": sandbox(t), "basic": sandbox(t).Basic()} {
		shell, python := find(t, s, "bash"), find(t, s, "/usr/bin/python3")
		for name, tt := range map[string]struct {
			p       *engine.Program
			script  string
			limits  engine.Limits
			limit   string
			crashed bool
		}{
			"time":          {shell, "while :; do :; done", engine.Limits{CPU: time.Second}, "processor time", false},
			"time of child": {shell, "(while :; do :; done); exit $?", engine.Limits{CPU: time.Second}, "", false},
			"file":          {shell, "printf '%100000s' x >file", engine.Limits{FileSize: 50000}, "space for results", false},
			"below":         {shell, "printf '%1000s' x >file; exit 3", engine.Limits{FileSize: 50000, CPU: time.Minute}, "", false},
			"segfault":      {python, "import ctypes; ctypes.string_at(0)", engine.Limits{CPU: time.Minute, FileSize: 1 << 20}, "", true},
			"abort":         {python, "import os; os.abort()", engine.Limits{}, "", true},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				args := []string{"-c", tt.script}
				err := tt.p.Run(t.Context(), engine.Cmd{Args: args, Dir: t.TempDir(), Limits: tt.limits})
				var exit *engine.ExitError
				if !errors.As(err, &exit) || exit.Which() != tt.limit || exit.Crashed() != tt.crashed {
					t.Errorf("got %v, want limit %q, crashed %v", err, tt.limit, tt.crashed)
				}
			})
		}
	}
}
