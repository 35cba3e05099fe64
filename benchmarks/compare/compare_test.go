//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/benchmarks/internal/inputs"
	"github.com/filewright/filewright/benchmarks/internal/proc"
	"github.com/filewright/filewright/benchmarks/internal/worker"
	"github.com/filewright/filewright/internal/systest"
)

// The test binary also serves as the measured worker, like the program itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-worker" {
		w := worker.Worker{Actions: standardActions, Serve: newService}
		if err := w.Run(context.Background(), os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "-serve" {
		panic(serveCounter(os.Args[2]))
	}
	if len(os.Args) > 4 && os.Args[1] == "--api-bind-ip" {
		panic(serveConverter(net.JoinHostPort(os.Args[2], os.Args[4])))
	}
	os.Exit(m.Run())
}

// serveConverter answers like Gotenberg.
func serveConverter(addr string) error {
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /forms/libreoffice/convert", func(w http.ResponseWriter, r *http.Request) {
		f, header, err := r.FormFile("files")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if content, err := io.ReadAll(f); err != nil || header.Filename != "a.docx" || string(content) != "a document" {
			http.Error(w, header.Filename, http.StatusBadRequest)
		}
	})
	return http.ListenAndServe(addr, nil)
}

// serveCounter answers each request for /job with the number of such requests so far, and uses some
// processor time for it.
func serveCounter(addr string) error {
	var jobs atomic.Int64
	http.HandleFunc("/job", func(w http.ResponseWriter, _ *http.Request) {
		for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); {
		}
		fmt.Fprint(w, jobs.Add(1))
	})
	http.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) {})
	return http.ListenAndServe(addr, nil)
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	self, err := os.Executable()
	systest.NoError(t, err)
	sample, err := filepath.Abs("../../examples/files")
	systest.NoError(t, err)
	return &environment{self: self, lean: self, sample: sample, tools: t.TempDir(), inputs: &inputs.Set{Dir: t.TempDir()}}
}

// A comparison measures both sides of a task in turn, and reports missing tools.
func TestCompare(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	task := &task{
		name: "merge", about: "many PDFs", action: "merge",
		inputs: func(context.Context, *environment) ([]string, error) {
			// Many, because the memory of a program that ends within milliseconds is not seen.
			return slices.Repeat([]string{filepath.Join(e.sample, "two.pdf")}, 300), nil
		},
		rivals: []rival{
			tool("qpdf", "qpdf", "--empty", "--pages", "@in", "--", "@dir/out.pdf"),
			tool("nobody", "a-program-that-nobody-has", "@1"),
		},
		goals: []goal{{metric: byTime, rival: "qpdf", max: 1000}, {metric: bySize, rival: "nobody", max: 1}, {metric: byMemory, max: 1}},
	}
	r, err := compare(t.Context(), e, task, time.Millisecond, 3)
	systest.NoError(t, err)
	for i, s := range r.scores[:2] {
		if len(s.runs) != 3 || s.missing != nil {
			t.Fatalf("%s has %d runs (%v)", s.name, len(s.runs), s.missing)
		}
		for _, run := range s.runs {
			// A separate process takes some time, and at most that of all cores.
			if run.wall <= 0 || run.cpu <= 0 || run.cpu > 64*run.wall || run.size < 1000 {
				t.Errorf("%s: %+v", s.name, run)
			}
		}
		if m := s.of(byMemory); m < 1<<20 || m > 4<<30 {
			t.Errorf("contender %d has %v bytes of memory", i, m)
		}
	}
	if !errors.Is(r.scores[2].missing, errMissing) {
		t.Errorf("a program that does not exist is not missing but %v", r.scores[2].missing)
	}
	text := string(document([]result{r}, false, e.tools))
	for _, want := range []string{
		"| merge | time ≤ 1e+03 × qpdf |", "| met |", "| merge | size ≤ 1 × nobody | not measured | tool missing |",
		"**missed**", "| merge (many PDFs) | **Filewright** |", "| nobody | not installed |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// The service stores exactly the sent bytes, and the measured time is that of the upload.
func TestUpload(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	u, err := newUploader(e, 3<<20)
	systest.NoError(t, err)
	s, err := u.measure(t.Context(), t.TempDir())
	if cerr := u.close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	if s.size != 3<<20 || s.wall <= 0 {
		t.Errorf("%+v", s)
	}
}

// A sample of a program that serves HTTP is that of one job, and all jobs of a run take place.
func TestHosted(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	systest.NoError(t, err)
	h, err := host(t.TempDir(), "/ready", load{clients: 3, jobs: 50}, func(addr, _ string) []string { return []string{self, "-serve", addr} })
	systest.NoError(t, err)
	defer h.close() // the program ends by the signal
	var most atomic.Int64
	h.job = func(context.Context) error {
		resp, err := http.Get(h.base + "/job")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var n int64
		_, err = fmt.Fscan(resp.Body, &n)
		for old := most.Load(); old < n && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		return err
	}
	s, err := h.measure(t.Context(), "")
	systest.NoError(t, err)
	if most.Load() != 50 {
		t.Errorf("the program got %d jobs, want 50", most.Load())
	}
	// Three jobs at the same time need 5 ms of the clock each.
	if s.wall < 5*time.Millisecond/3 || s.cpu <= 0 || s.cpu > 64*s.wall {
		t.Errorf("%+v", s)
	}
}

// Gotenberg gets the document in a form. Without the program it is missing.
func TestGotenberg(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	rival := withGotenberg(task{}, officeRoute, "a.docx", load{clients: 2, jobs: 4}).rivals[0]
	path := filepath.Join(t.TempDir(), "in")
	systest.NoError(t, os.WriteFile(path, []byte("a document"), 0o600))
	if _, err := rival.start(e, []string{path}); !errors.Is(err, errMissing) {
		t.Errorf("error %v, want errMissing", err)
	}
	e.gotenberg = e.self
	c, err := rival.start(e, []string{path})
	systest.NoError(t, err)
	defer c.close() // the program ends by the signal
	s, err := c.measure(t.Context(), "")
	systest.NoError(t, err)
	if s.wall <= 0 || s.cpu < 0 {
		t.Errorf("%+v", s)
	}
}

// Goals without a rival have the unit of their quantity.
func TestAbsoluteGoals(t *testing.T) {
	t.Parallel()
	r := result{scores: []score{{runs: []sample{{wall: 40 * time.Microsecond, cpu: 9 * time.Millisecond, memory: 1 << 20}}}}}
	for _, c := range []struct {
		goal goal
		want string
		met  bool
	}{
		{goal{metric: byTime, max: 50e-6}, "time ≤ 50 µs: 40 µs", true},
		{goal{metric: byCPU, max: 8e-3}, "CPU ≤ 8 ms: 9 ms", false},
		{goal{metric: byMemory, max: 2 << 20}, "memory ≤ 2 MiB: 1 MiB", true},
	} {
		want, got, met, known := c.goal.check(&r)
		if s := want + ": " + got; s != c.want || met != c.met || !known {
			t.Errorf("%s, met %v, known %v; want %s, met %v", s, met, known, c.want, c.met)
		}
	}
}

// The memory of a program includes its child processes.
func TestMeasureFamily(t *testing.T) {
	t.Parallel()
	c, err := newCommand(nil, "sh", "-c", `python3 -c 'import time; b = bytearray(40 << 20); time.sleep(0.3); open("x", "wb").write(b[:5])' & wait`)
	systest.NoError(t, err)
	s, err := c.measure(t.Context(), t.TempDir())
	systest.NoError(t, err)
	if s.memory < 40<<20 || s.memory > 200<<20 || s.size != 5 {
		t.Errorf("memory %d, size %d", s.memory, s.size)
	}
}

// The clock of another process counts only that process.
func TestClock(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", "read x; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done; read x")
	in, err := cmd.StdinPipe()
	systest.NoError(t, err)
	out, err := cmd.StdoutPipe()
	systest.NoError(t, err)
	systest.NoError(t, cmd.Start())
	before := proc.Clock(cmd.Process.Pid)
	in.Write([]byte("\n"))
	out.Read(make([]byte, 5))
	after := proc.Clock(cmd.Process.Pid)
	in.Close()
	cmd.Wait()
	total := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if after <= before || after > total+50*time.Millisecond {
		t.Errorf("%v, then %v of %v", before, after, total)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	var s score
	for _, ms := range []int{50, 10, 30, 20, 40} {
		s.runs = append(s.runs, sample{wall: time.Duration(ms) * time.Millisecond})
	}
	lower, middle, upper := s.median(wall)
	for i, v := range []float64{lower, middle, upper} {
		if want := []float64{0.02, 0.03, 0.04}[i]; math.Abs(v-want) > 1e-9 {
			t.Errorf("quartile %d is %v, want %v", i, v, want)
		}
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 2048: "2 KiB", 1 << 20: "1 MiB", 1 << 30: "1 GiB", 5 << 29: "2.5 GiB"} {
		if got := amount(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// A goal with two rivals uses the one that measures more, and is unknown without both.
func TestGoalBesideTwo(t *testing.T) {
	t.Parallel()
	timed := func(name string, d time.Duration) score { return score{name: name, runs: []sample{{wall: d}}} }
	g := goal{metric: byTime, rival: "hash", other: "disk", max: 1.25}
	for _, c := range []struct {
		disk       []score
		got        string
		met, known bool
	}{
		{[]score{timed("disk", 20*time.Second)}, "1.2 ×", true, true},
		{[]score{timed("disk", 16*time.Second)}, "1.5 ×", false, true},
		{[]score{timed("disk", time.Second)}, "3 ×", false, true},
		{[]score{{name: "disk", missing: errMissing}}, "not measured", false, false},
		{nil, "not measured", false, false},
	} {
		r := result{scores: append([]score{timed(ourName, 24*time.Second), timed("hash", 8*time.Second)}, c.disk...)}
		want, got, met, known := g.check(&r)
		if want != "time ≤ 1.25 × the slower of “hash” and “disk”" || got != c.got || met != c.met || known != c.known {
			t.Errorf("%s: %s, met %t, known %t", want, got, met, known)
		}
	}
}
