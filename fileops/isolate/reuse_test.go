package isolate_test

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/isolate"
	"github.com/filewright/filewright/internal/systest"
)

// where returns the directory of the process that serves the next run of owner. No two processes
// of a pool have the same.
func where(t *testing.T, owner string, p *isolate.Pool) string {
	t.Helper()
	_, _, dir := tellFor(t, owner, p)
	return dir
}

// A process serves several runs of one owner, and never those of two.
func TestOneOwner(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 2, Files: 100})
	var mu sync.Mutex
	owners, runs := make(map[string]string), make(map[string]int)
	var wg sync.WaitGroup
	for _, owner := range []string{"a", "b", "a", ""} {
		wg.Go(func() {
			for range 8 {
				dir := where(t, owner, p)
				mu.Lock()
				if other, ok := owners[dir]; ok && other != owner {
					t.Errorf("a process served %q and %q", other, owner)
				}
				owners[dir] = owner
				if runs[dir]++; owner == "" && runs[dir] > 1 {
					t.Error("a process served two runs without an owner")
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if first := where(t, "c", p); where(t, "c", p) != first {
		t.Error("a process was not reused")
	}
}

// The goroutines of a process are not those of the run that was the reason to start it.
func TestGoroutines(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 1, Files: 100})
	pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(context.Context) {
		for _, owner := range []string{"a", "b", ""} {
			where(t, owner, p)
		}
	})
	if n, profile := systest.Goroutines(t, t.Name()); n > 0 {
		t.Errorf("%d goroutines left:\n%s", n, profile)
	}
}

// Without [isolate.Options.Files], each run has its own process.
func TestFiles(t *testing.T) {
	t.Parallel()
	for files, want := range map[int]int{0: 6, 1: 6, 2: 3} {
		p, _ := pool(t, isolate.Options{Spare: 1, Files: files})
		dirs := make(map[string]bool)
		for range 6 {
			dirs[where(t, "a", p)] = true
		}
		if len(dirs) != want {
			t.Errorf("%d files for each process: %d processes, want %d", files, len(dirs), want)
		}
	}
}

// Files of a run are gone before the next run of the same process, and do not count for its limits.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 1, Files: 100, Limits: engine.Limits{Scratch: 100 << 20, Files: 50}})
	dir := where(t, "a", p)
	for range 3 {
		out, _, err := doFor(t.Context(), t, "a", p, fileops.Args{"how": "look"})
		if err != nil || len(out) != 1 || out[0] != "a.txt="+dir+" [../in/0]" {
			t.Fatalf("got %q, %v, want only the input, in %s", out, err, dir)
		}
	}
}

// A process is not reused if its run has failed, or has left something behind.
func TestNotReused(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 1, Files: 100, Limits: engine.Limits{Resident: 200 << 20, Scratch: 100 << 20}})
	for how, code := range map[string]string{
		"badly": "wrong_password", "crash": "engine_failed", "eat": "limit_exceeded",
		"link": "engine_failed", "hang": "timeout", "setenv": "", "stray": "", "large": "", "compute": "",
	} {
		dir := where(t, "a", p)
		ctx, cancel := context.WithCancel(t.Context())
		if how == "hang" {
			ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
		}
		_, _, err := doFor(ctx, t, "a", p, fileops.Args{"how": how, "path": "/etc/hostname"})
		cancel()
		if code == "" && err != nil || code != "" && (err == nil || fileops.Code(err) != code) {
			t.Errorf("%s: %v (%s), want %q", how, err, fileops.Code(err), code)
		}
		if where(t, "a", p) == dir {
			t.Errorf("%s: the process is reused", how)
		}
		out, _, err := doFor(t.Context(), t, "a", p, fileops.Args{"how": "look"})
		if err != nil || strings.Contains(out[0], "set") {
			t.Errorf("%s: the next run sees %q, %v", how, out, err)
		}
	}
}

// A process that ends while it waits, or at the start of a run, fails no run.
func TestEndsBetween(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 1, Files: 100})
	for i := range 10 {
		out, _, err := doFor(t.Context(), t, "a", p, fileops.Args{"how": "pid"})
		systest.NoError(t, err)
		var pid int
		if _, err := fmt.Sscanf(out[0], "a.txt=%d", &pid); err != nil {
			t.Fatal(out, err)
		}
		systest.NoError(t, systest.Signal(pid, syscall.SIGKILL)) // and it is noticed then or later
		in := fileops.Bytes("n.txt", fmt.Append(nil, i))
		if out, _, err := doFor(t.Context(), t, "a", p, nil, in); err != nil || len(out) != 1 || out[0] != fmt.Sprint("re-n.txt=", i) {
			t.Errorf("got %q, %v", out, err)
		}
	}
}
