package officeops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/officeops"
	"github.com/filewright/filewright/internal/hostile"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
)

// find returns an engine whose profiles are below dir, and its log.
func find(t testing.TB, o officeops.Options) (e *officeops.Engine, dir string, log *logtest.Buffer) {
	t.Helper()
	dir, log = t.TempDir(), new(logtest.Buffer)
	o.Sandbox = engine.NewSandbox()
	o.TempDir, o.Log = dir, slog.New(slog.NewTextHandler(log, nil))
	e, err := officeops.New(t.Context(), o)
	systest.NoError(t, err)
	systest.AtEnd(t, e.Close)
	return e, dir, log
}

// processes returns the ids of the processes that have dir in their command line, by
// program name.
func processes(t testing.TB, dir string) map[string][]int {
	t.Helper()
	found := make(map[string][]int)
	dirs, err := filepath.Glob("/proc/[0-9]*")
	systest.NoError(t, err)
	for _, d := range dirs {
		line, err := os.ReadFile(filepath.Join(d, "cmdline"))
		if err != nil || !bytes.Contains(line, []byte(dir)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(d))
		name, _, _ := strings.Cut(string(line), "\x00")
		found[filepath.Base(name)] = append(found[filepath.Base(name)], pid)
	}
	return found
}

// eventually polls until ok returns true.
var eventually = systest.Until

// sockets returns the paths of the open UNIX sockets of processes.
func sockets(t testing.TB, pids []int) []string {
	t.Helper()
	var paths []string
	for _, pid := range pids {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", pid)) // of its network namespace
		systest.NoError(t, err)
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		systest.NoError(t, err)
		for _, fd := range fds {
			to, _ := os.Readlink(fd)
			inode, ok := strings.CutPrefix(to, "socket:[")
			for line := range strings.Lines(string(table)) {
				if f := strings.Fields(line); ok && len(f) == 8 && f[6] == strings.TrimSuffix(inode, "]") {
					paths = append(paths, f[7])
				}
			}
		}
	}
	return paths
}

// No process starts before it is needed, and nothing is left after Close.
func TestLife(t *testing.T) {
	e, dir, _ := find(t, officeops.Options{Workers: 2})
	if got := processes(t, dir); len(got) != 0 {
		t.Errorf("running before Warm: %v", got)
	}
	if es, _ := os.ReadDir(dir); len(es) != 0 {
		t.Errorf("files before Warm: %v", es)
	}
	systest.NoError(t, e.Warm(t.Context()))
	got := processes(t, dir)
	if len(got["soffice.bin"]) != 2 {
		t.Errorf("running after Warm: %v", got)
	}
	open := sockets(t, got["soffice.bin"])
	if len(open) < 4 { // two for each process
		t.Errorf("sockets: %v", open)
	}
	for _, path := range open { // in its own directory, so that a kill of this program leaves no sockets in /tmp
		if filepath.IsAbs(path) {
			t.Errorf("a socket outside of the directory: %s", path)
		}
	}
	if _, err := convert(t.Context(), e, fixture(t, format.DOCX), format.PDF); err != nil {
		t.Fatal(err)
	}
	goroutines := runtime.NumGoroutine()
	systest.NoError(t, e.Close())
	if got := processes(t, dir); len(got) != 0 {
		t.Errorf("running after Close: %v", got)
	}
	if es, _ := os.ReadDir(dir); len(es) != 0 {
		t.Errorf("files after Close: %v", es)
	}
	for _, path := range open {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("socket after Close: %s, %v", path, err)
		}
	}
	if n := runtime.NumGoroutine(); n >= goroutines {
		t.Errorf("%d goroutines after Close, %d before", n, goroutines)
	}
	if _, err := convert(t.Context(), e, fixture(t, format.DOCX), format.PDF); !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
	if err := e.Warm(t.Context()); !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("Warm after Close: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// Close does not wait for a slow document.
func TestCloseWhileBusy(t *testing.T) {
	e, dir, _ := find(t, officeops.Options{Workers: 1})
	systest.NoError(t, e.Warm(t.Context()))
	done := busy(t.Context(), t, e, dir)
	systest.NoError(t, e.Close())
	if err := <-done; !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if got := processes(t, dir); len(got) != 0 {
		t.Errorf("running after Close: %v", got)
	}
}

// slow is a document that takes LibreOffice far longer than a test may run: nested
// tables.
func slow() *fileops.File {
	const n = 3000
	open := `<w:tbl><w:tblPr><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid><w:gridCol w:w="3000"/></w:tblGrid><w:tr><w:tc><w:tcPr><w:tcW w:w="3000" w:type="dxa"/></w:tcPr>`
	return fileops.Bytes("slow.docx", docx(strings.Repeat(open, n)+`<w:p/>`+strings.Repeat(`</w:tc></w:tr></w:tbl><w:p/>`, n)))
}

// busy starts the conversion of a slow document and returns when LibreOffice is working
// on it.
func busy(ctx context.Context, t testing.TB, e *officeops.Engine, dir string) <-chan error {
	t.Helper()
	pids := processes(t, dir)["soffice.bin"]
	ticks := func() (sum int) {
		for _, pid := range pids {
			b := systest.ReadFile(t, fmt.Sprintf("/proc/%d/stat", pid))
			f := strings.Fields(string(b[bytes.LastIndexByte(b, ')'):]))
			user, _ := strconv.Atoi(f[12])
			sum += user
		}
		return sum
	}
	start := ticks()
	done := make(chan error, 1)
	go func() {
		_, err := convert(ctx, e, slow(), format.PDF)
		done <- err
	}()
	eventually(t, "LibreOffice works", func() bool { return ticks() > start+30 }) // 0.3 s of CPU
	return done
}

// Cancelling a document kills its process at once. The next document gets another
// process.
func TestCancel(t *testing.T) {
	e, dir, _ := find(t, officeops.Options{Workers: 1})
	systest.NoError(t, e.Warm(t.Context()))
	old := processes(t, dir)["soffice.bin"]
	ctx, cancel := context.WithCancel(t.Context())
	done := busy(ctx, t, e, dir)
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	case <-time.After(10 * time.Second): // generous: the machine may be busy
		t.Fatal("the conversion goes on")
	}
	if err := systest.Signal(old[0], 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process still runs: %v", err)
	}
	if _, err := convert(t.Context(), e, fixture(t, format.DOCX), format.PDF); err != nil {
		t.Error(err)
	}
}

// A document that exceeds the time limit is stopped too.
func TestTimeout(t *testing.T) {
	e, _, _ := find(t, officeops.Options{Workers: 1, Timeout: 6 * time.Second})
	_, err := convert(t.Context(), e, slow(), format.PDF)
	if !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
	if _, err := convert(t.Context(), e, fixture(t, format.TXT), format.PDF); err != nil {
		t.Error(err)
	}
}

// On a busy host a document may take any wall time, as long as LibreOffice works for
// less than the limit.
func TestStarved(t *testing.T) {
	e, _, _ := find(t, officeops.Options{Workers: 1, Timeout: time.Duration(systest.Scale(3, 2)) * time.Second})
	systest.NoError(t, e.Warm(t.Context()))
	for range 3 * runtime.NumCPU() {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "ulimit -t 60; while :; do :; done")
		systest.NoError(t, cmd.Start())
		defer cmd.Wait()
		defer cmd.Process.Kill()
	}
	if _, err := convert(t.Context(), e, fileops.Bytes("a.txt", bytes.Repeat([]byte("A line of text.\n"), systest.Scale(8000, 4000))), format.PDF); err != nil {
		t.Error(err)
	}
}

// A LibreOffice that hangs is stopped, although it does not use the processor.
func TestHang(t *testing.T) {
	e, dir, _ := find(t, officeops.Options{Workers: 1, Timeout: 500 * time.Millisecond})
	systest.NoError(t, e.Warm(t.Context()))
	for _, pid := range processes(t, dir)["soffice.bin"] {
		systest.NoError(t, systest.Signal(pid, systest.Stop))
	}
	if _, err := convert(t.Context(), e, fixture(t, format.DOCX), format.PDF); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
}

// If a process dies in the middle of a document, the document is retried, and the next
// document gets a new process.
func TestCrash(t *testing.T) {
	e, dir, log := find(t, officeops.Options{Workers: 1})
	systest.NoError(t, e.Warm(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := busy(ctx, t, e, dir)
	for _, pid := range processes(t, dir)["soffice.bin"] {
		systest.NoError(t, systest.Signal(pid, syscall.SIGKILL))
	}
	eventually(t, "the document is retried", func() bool { return strings.Contains(log.String(), "document retried") })
	if _, err := convertQueued(t, e, cancel, done); err != nil {
		t.Error(err)
	}

	// The process crashes while it is idle.
	for name, pids := range processes(t, dir) {
		for _, pid := range pids {
			if err := systest.Signal(pid, syscall.SIGKILL); err != nil {
				t.Fatal(name, err)
			}
		}
	}
	if _, err := convert(t.Context(), e, fixture(t, format.DOCX), format.PDF); err != nil {
		t.Error(err)
	}
}

// convertQueued converts a document while a slow document has the only turn. It then
// cancels the slow one.
func convertQueued(t testing.TB, e *officeops.Engine, cancel context.CancelFunc, done <-chan error) ([]byte, error) {
	t.Helper()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("slow document: %v", err)
	}
	return convert(t.Context(), e, fixture(t, format.DOCX), format.PDF)
}

// A crash in the middle of ordinary documents loses no document.
func TestCrashLosesNothing(t *testing.T) {
	e, dir, _ := find(t, officeops.Options{Workers: 2})
	systest.NoError(t, e.Warm(t.Context()))
	length := systest.Scale(60, 20)
	crashes := []int64{1, 2, 4} // when so many documents are complete
	documents := systest.Scale(6, 4)
	in := fileops.Bytes("long.docx", docx(pages(length)))
	var wg sync.WaitGroup
	var done atomic.Int64
	for range documents {
		wg.Go(func() {
			defer done.Add(1)
			b, err := convert(t.Context(), e, in, format.PDF)
			if err != nil {
				t.Error(err)
			} else if n := pageCount(t, b); n < length {
				t.Errorf("%d pages", n)
			}
		})
	}
	for _, n := range crashes[:systest.Scale(3, 2)] {
		eventually(t, "documents", func() bool { return done.Load() >= n }) // the next ones are being converted
		for _, pid := range processes(t, dir)["soffice.bin"] {
			if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(line, []byte("--accept")) {
				systest.Signal(pid, syscall.SIGKILL)
			}
		}
	}
	wg.Wait()
}

// A process is replaced after some documents. Its goroutines are not those of the document that
// was the reason.
func TestRecycle(t *testing.T) {
	documents := systest.Scale(4, 2)
	for name, o := range map[string]officeops.Options{
		"count":  {Workers: 1, RecycleAfter: 2},
		"memory": {Workers: 1, RecycleRSS: 1},
	} {
		t.Run(name, func(t *testing.T) {
			e, dir, log := find(t, o)
			systest.NoError(t, e.Warm(t.Context()))
			first := processes(t, dir)["soffice.bin"]
			pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(ctx context.Context) {
				for range documents {
					if _, err := convert(ctx, e, fixture(t, format.TXT), format.PDF); err != nil {
						t.Fatal(err)
					}
				}
			})
			// The last document may still be closed, and its process replaced.
			systest.Until(t, "no goroutine of the documents left", func() bool { n, _ := systest.Goroutines(t, t.Name()); return n == 0 })
			systest.NoError(t, e.Warm(t.Context()))
			if last := processes(t, dir)["soffice.bin"]; len(last) != 1 || last[0] == first[0] {
				t.Errorf("processes %v, then %v", first, last)
			}
			want := map[string]int{"count": documents / 2, "memory": documents}[name]
			if n := strings.Count(log.String(), "reason="+name); n != want {
				t.Errorf("replaced %d times, want %d:\n%s", n, want, log)
			}
		})
	}
}

// Many concurrent documents of all kinds give the same results as one by one.
func TestConcurrent(t *testing.T) {
	e, _, _ := find(t, officeops.Options{Workers: 2, RecycleAfter: systest.Scale(7, 3)})
	var wg sync.WaitGroup
	for i, p := range [][2]format.Format{
		{format.DOCX, format.PDF}, {format.XLSX, format.PDF}, {format.PPTX, format.PDF}, {format.ODT, format.DOCX}, {format.CSV, format.XLSX},
		{format.TXT, format.PDF}, {format.HTML, format.PDF}, {format.MD, format.PDF}, {format.DOC, format.ODT}, {format.RTF, format.PDF},
	} {
		for range systest.Scale(2, 1) {
			in := fixture(t, p[0])
			wg.Go(func() {
				b, err := convert(t.Context(), e, in, p[1])
				if err != nil {
					t.Errorf("%d: %v to %v: %v", i, p[0], p[1], err)
					return
				}
				checkResult(t, p[0], p[1], b)
			})
		}
	}
	wg.Wait()
}

// Without Python every document has a separate process.
func TestWithoutPython(t *testing.T) {
	e, dir, _ := find(t, officeops.Options{Python: engine.None, Workers: 1})
	systest.NoError(t, e.Warm(t.Context()))
	pairs := [][2]format.Format{
		{format.DOCX, format.PDF}, {format.CSV, format.XLSX}, {format.XLSX, format.CSV}, {format.PPTX, format.ODP}, {format.TXT, format.PDF}, {format.DOCX, format.HTML},
	}
	for _, p := range pairs[:systest.Scale(6, 4)] {
		b, err := convert(t.Context(), e, fixture(t, p[0]), p[1])
		if err != nil {
			t.Errorf("%v to %v: %v", p[0], p[1], err)
			continue
		}
		checkResult(t, p[0], p[1], b)
	}
	if _, err := convert(t.Context(), e, fileops.Bytes("x.docx", zipOf("word/document.xml", "<a")), format.PDF); !errors.Is(err, fileops.ErrCorruptInput) {
		t.Errorf("damaged: %v", err)
	}
	if got := processes(t, dir); len(got) != 0 {
		t.Errorf("still running: %v", got)
	}
}

// Missing programs are not advertised.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	targets := func(o officeops.Options) map[format.Format]string {
		e, _, _ := find(t, o)
		m := make(map[format.Format]string)
		for _, a := range e.Convert().Spec().Accepts {
			for _, f := range a.Formats {
				all := append(strings.Fields(m[f]), a.Params[0].Enum...)
				slices.Sort(all)
				m[f] = strings.Join(all, " ")
			}
		}
		return m
	}
	for _, c := range []struct {
		name string
		o    officeops.Options
		from format.Format
		want string
	}{
		{"all", officeops.Options{}, format.DOCX, "pdf doc odt rtf txt html md epub fb2 org rst tex"},
		{"all", officeops.Options{}, format.MD, "pdf docx doc odt rtf txt html epub fb2 org rst tex"},
		{"all", officeops.Options{}, format.XLS, "pdf html xlsx ods csv tsv"},
		{"all", officeops.Options{}, format.PPTX, "pdf ppt odp"},
		{"no pandoc", officeops.Options{Pandoc: engine.None}, format.DOCX, "pdf doc odt rtf txt html"},
		{"no pandoc", officeops.Options{Pandoc: engine.None}, format.HTML, "pdf docx doc odt rtf txt"},
		{"no pandoc", officeops.Options{Pandoc: engine.None}, format.MD, ""},
		{"no pandoc", officeops.Options{Pandoc: engine.None}, format.EPUB, ""},
		{"no LibreOffice", officeops.Options{LibreOffice: engine.None}, format.DOCX, "md epub fb2 org rst tex"},
		{"no LibreOffice", officeops.Options{LibreOffice: engine.None}, format.EPUB, "txt html md fb2 org rst tex"},
		{"no LibreOffice", officeops.Options{LibreOffice: engine.None}, format.XLSX, ""},
		{"no Python", officeops.Options{Python: engine.None}, format.XLSX, "pdf html ods csv tsv"},
	} {
		want := strings.Fields(c.want)
		slices.Sort(want)
		if got := targets(c.o)[c.from]; got != strings.Join(want, " ") {
			t.Errorf("%s: %s to %q, want %q", c.name, c.from, got, c.want)
		}
	}
	_, err := officeops.New(t.Context(), officeops.Options{LibreOffice: engine.None, Pandoc: "/does/not/exist"})
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("nothing installed: %v", err)
	}
}

// A document that would keep LibreOffice busy forever, or fill the memory, stops at its
// time limit, and the next one is converted.
func TestSlowBombs(t *testing.T) {
	e, _, _ := find(t, officeops.Options{Workers: 1, Timeout: time.Duration(systest.Scale(5, 3)) * time.Second, MemoryLimit: 2 << 30})
	systest.NoError(t, e.Warm(t.Context()))
	for _, f := range hostile.SlowBombs() {
		if _, err := convert(t.Context(), e, f, format.PDF); !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("%s: %v", f.Name(), err)
		}
		systest.NoError(t, e.Warm(t.Context()))
		if _, err := convert(t.Context(), e, fileops.Bytes("ok.rtf", []byte(`{\rtf1 fine\par}`)), format.PDF); err != nil {
			t.Errorf("after %s: %v", f.Name(), err)
		}
	}
}
