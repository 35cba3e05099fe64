package webops

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// newEngine returns a separate engine, and the directory of its profiles.
func newEngine(t *testing.T, o Options) (*Engine, string) {
	t.Helper()
	o.Sandbox, o.NoSandbox, o.TempDir, o.Chromium = shared.pool.opts.Sandbox, shared.pool.opts.NoSandbox, t.TempDir(), shared.prog.Path
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute // the machine may be busy
	}
	e, err := New(t.Context(), o)
	systest.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	return e, o.TempDir
}

// processes returns the processes that have dir in their arguments.
func processes(t *testing.T, dir string) map[int]string {
	t.Helper()
	found := make(map[int]string)
	all, err := os.ReadDir("/proc")
	systest.NoError(t, err)
	for _, d := range all {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if b, err := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline")); err == nil && strings.Contains(string(b), dir) {
			found[pid] = strings.ReplaceAll(string(b), "\x00", " ")
		}
	}
	return found
}

// eventually polls until ok returns true.
var eventually = systest.Until

// untilWorks waits until a browser has n documents and has worked on them, in case they take that
// long.
func untilWorks(t *testing.T, e *Engine, b *browser, n int) {
	t.Helper()
	users := func() int { e.pool.mu.Lock(); defer e.pool.mu.Unlock(); return b.users }
	work := b.proc.Work()
	start := work().Worked
	eventually(t, "documents", func() bool { return users() >= n })
	eventually(t, "work on the documents", func() bool { return work().Worked-start >= 100*time.Millisecond || users() < n })
}

// Close stops every process at any point of its work, and leaves nothing behind.
func TestClose(t *testing.T) {
	t.Parallel()
	e, dir := newEngine(t, Options{})
	if n := processes(t, dir); len(n) > 0 {
		t.Errorf("after Find: %v", n)
	}
	systest.NoError(t, e.Warm(t.Context()))
	group := e.pool.current.proc.Pid()
	if len(processes(t, dir)) == 0 {
		t.Error("nothing runs after Warm")
	}
	done := make(chan error)
	go func() {
		_, err := try(t, e.Convert(), "a.html", endless, nil)
		done <- err
	}()
	untilWorks(t, e, e.pool.current, 1)
	systest.Check(t, e.Close())
	if err := <-done; !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("a conversion during Close: %v", err)
	}
	if n := processes(t, dir); len(n) > 0 {
		t.Errorf("processes left: %v", n)
	}
	if err := systest.Signal(-group, 0); err == nil {
		// In a container without init, unreaped processes stay as zombies.
		for pid, args := range processes(t, dir) {
			t.Errorf("in the group: %d %s", pid, args)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := try(t, e.Convert(), "a.html", "<p>x", nil); !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// endless is a page that keeps the browser busy for long: it has to lay out nested
// columns and floats again and again.
var endless = "<p>" + strings.Repeat("<div style='columns:2'><div style='float:left'><table><tr><td>x", 30) + strings.Repeat("<p>text</p>", 60_000)

// A crash of the browser loses no document.
func TestCrash(t *testing.T) {
	t.Parallel()
	e, dir := newEngine(t, Options{Workers: 4})
	systest.NoError(t, e.Warm(t.Context()))
	long := "<title>t</title>" + strings.Repeat("<p>a paragraph</p>", 1000)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := try(t, e.Convert(), "a.html", long, nil); err != nil {
				t.Error(err)
			}
		})
	}
	first := e.pool.current
	untilWorks(t, e, first, 3)
	first.proc.Kill()
	wg.Wait()
	if _, err := try(t, e.Convert(), "a.html", "<p>x", nil); err != nil {
		t.Error(err)
	}
	if e.pool.current == first {
		t.Error("the browser that crashed is still in use")
	}
	if es, _ := os.ReadDir(dir); len(es) > 1 {
		t.Errorf("profiles of browsers that are gone: %v", es)
	}
}

// A page whose own process crashes, in each browser, fails with its own error.
func TestPageCrashes(t *testing.T) {
	t.Parallel()
	e, _ := newEngine(t, Options{})
	err := e.pool.use(t.Context(), func(ctx context.Context, b *browser) error {
		return b.printQuietly(ctx, append(quiet[:len(quiet):len(quiet)], instruction{"Page.crash", nil}), page{html: "<p>x", layout: layout{page: paper["a4"]}}, filepath.Join(t.TempDir(), "x.pdf"), func(float64) {})
	})
	if !errors.Is(err, fileops.ErrEngine) || !errors.Is(err, errCrashed) {
		t.Errorf("got %v", err)
	}
	if _, err := try(t, e.Convert(), "a.html", "<p>x", nil); err != nil {
		t.Errorf("the next document: %v", err)
	}
}

// A document that takes too much time or memory, or is cancelled, is stopped with its
// processes.
func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		e, _ := newEngine(t, Options{Timeout: 10 * time.Second})
		_, err := try(t, e.Convert(), "a.html", endless, nil)
		if !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("got %v", err)
		}
		if _, err := try(t, e.Convert(), "a.html", "<p>x", nil); err != nil {
			t.Errorf("the next document: %v", err)
		}
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		e, _ := newEngine(t, Options{MemoryLimit: 150e6})
		_, err := try(t, e.Convert(), "a.html", strings.Repeat("<table><tr><td>x<td>y</table>", 100_000), nil)
		if !errors.Is(err, fileops.ErrLimit) || !strings.Contains(err.Error(), "memory") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		e, dir := newEngine(t, Options{})
		systest.NoError(t, e.Warm(t.Context()))
		busy := e.pool.current
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() {
			done <- fileops.Run(ctx, e.Convert(), fileops.Args{"convert_to": "pdf"}, fileops.ToDir(t.TempDir()), fileops.Bytes("a.html", []byte(endless)))
		}()
		untilWorks(t, e, busy, 1) // before that there is nothing to stop
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		eventually(t, "the end of the browser", busy.ended)
		eventually(t, "the end of its processes", func() bool { return len(processes(t, dir)) == 0 })
	})
	t.Run("size", func(t *testing.T) {
		t.Parallel()
		for name, in := range map[string]string{
			"a.html": strings.Repeat("x", maxText+1),
			"a.csv":  strings.Repeat("a,b\n", 10_001),
			"a.txt":  strings.Repeat("a\n", maxLines+1),
		} {
			_, err := try(t, shared.Convert(), name, in, nil)
			if !errors.Is(err, fileops.ErrLimit) || errors.Is(err, ErrTooLong) != (name != "a.html") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A browser is replaced after a number of documents, and the old browser stops. The goroutines of
// the new one are not those of a document.
func TestRecycle(t *testing.T) {
	t.Parallel()
	e, dir := newEngine(t, Options{RecycleAfter: 2, Workers: 3})
	var wg sync.WaitGroup
	pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(context.Context) {
		for range 7 {
			wg.Go(func() {
				if _, err := try(t, e.Convert(), "a.html", "<p>x", nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	eventually(t, "no goroutine of the documents left", func() bool { n, _ := systest.Goroutines(t, t.Name()); return n == 0 })
	eventually(t, "all but one profile removed", func() bool { es, _ := os.ReadDir(dir); return len(es) <= 1 })
}

// Markdown that keeps its parser busy is stopped, too.
func TestHostileMarkdown(t *testing.T) {
	t.Parallel()
	e, _ := newEngine(t, Options{Timeout: 3 * time.Second})
	for name, in := range map[string]string{
		"quotes":     strings.Repeat(">", 100_000) + " x",
		"lists":      strings.Repeat("- ", 50_000) + "x",
		"notes":      strings.Repeat("[^a]: ", 20_000),
		"emphasis":   strings.Repeat("*a **a ", 20_000),
		"links":      strings.Repeat("[a](", 50_000),
		"characters": strings.Repeat("[", 50_000),
	} {
		if _, err := try(t, e.Convert(), "a.md", in, nil); !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	deep := strings.Repeat("> ", 20) + strings.Repeat("- ", 20) + "text " + strings.Repeat("**b** `c` ", 200)
	if _, err := try(t, shared.Convert(), "a.md", deep, nil); err != nil {
		t.Errorf("what people may write: %v", err)
	}
}
