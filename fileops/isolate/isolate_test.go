package isolate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/isolate"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/worktime"
)

func TestMain(m *testing.M) {
	isolate.Main("test", func(context.Context) ([]fileops.Action, error) {
		switch os.Getenv("ISOLATE_TEST") {
		case "broken":
			return nil, errors.New("no engine here")
		case "dies":
			os.Exit(3)
		case "slow":
			time.Sleep(time.Hour)
		}
		return []fileops.Action{work()}, nil
	})
	os.Exit(m.Run())
}

// classes are all classes of failures.
var classes = []error{
	fileops.ErrCorruptInput, fileops.ErrFormatMismatch, fileops.ErrUnsupportedInput, fileops.ErrPasswordRequired,
	fileops.ErrWrongPassword, fileops.ErrNotEncrypted, fileops.ErrLimit, fileops.ErrParameter, fileops.ErrEngine, fileops.ErrUnavailable,
}

// work is an action for any number of text files that does what its parameter names.
func work() fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "work", Joint: true, Summary: "Works.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{
			{Name: "how", Enum: []string{"well", "badly", "crash", "hang", "exit", "eat", "try", "link", "panic", "fill", "spoil", "lead", "tell", "odd", "full", "late", "unsupported", "simply", "warn", "compute", "class", "page", "collect", "look", "setenv", "stray", "large", "pid", "send", "sizes"}, Default: "well", Doc: "How."},
			{Name: "path", Doc: "A path."}, {Name: "address", Doc: "An address."},
			{Name: "second", Doc: "A file.", Type: fileops.Upload, Formats: []format.Format{format.TXT, format.MD}},
		}}},
	}, func(ctx context.Context, job *fileops.Job) error {
		if f := job.Extra["second"]; f != nil {
			b, err := f.ReadAll(1 << 20)
			if err != nil {
				return err
			}
			return job.WriteBytes("with-"+f.Name(), b)
		}
		switch job.Params.Get("how") {
		case "badly":
			return fileops.Fail(fileops.ErrWrongPassword, errors.New("inner"), "not with %s", "this")
		case "odd": // text that takes six bytes for each byte in JSON, and invalid text
			odd := strings.Repeat("<\x01\xff&é", 2000)
			return fileops.Fail(fileops.ErrUnsupportedInput, fmt.Errorf("part %s is no picture", odd), "%s is odd", odd[:900])
		case "page":
			return &fileops.ParamError{Param: "path", Reason: "names page 9, but the document has 1 page"}
		case "full":
			return fmt.Errorf("write: %w", &os.PathError{Op: "write", Path: "out", Err: syscall.ENOSPC})
		case "late":
			return fmt.Errorf("in here: %w", context.DeadlineExceeded)
		case "unsupported":
			return fmt.Errorf("this one: %w", errors.ErrUnsupported)
		case "simply":
			return errors.New("simply not")
		case "class": // of the failure classes[path], with a long cause that needs escapes
			i, err := strconv.Atoi(job.Params.Get("path"))
			if err != nil {
				return err
			}
			return fileops.Fail(classes[i], fmt.Errorf("part %s", strings.Repeat("<", 6000)), "no <%d> here", i)
		case "warn":
			for range 3 {
				job.Warn(fileops.WarnLinksDropped, "links <%s> dropped", strings.Repeat("\x01", 1000))
				job.Warn(fileops.WarnFontsSubstituted, "100%% sure")
			}
		case "crash":
			systest.Signal(os.Getpid(), syscall.SIGSEGV)
			select {}
		case "hang":
			for {
				time.Sleep(time.Hour)
			}
		case "compute":
			for meter := worktime.Process(); meter().Worked <= 1200*time.Millisecond; {
			}
		case "collect":
			n := func() string {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return fmt.Sprint(m.NumGC > 0)
			}
			var held []byte
			for range 64 { // 64 MiB, less than the first collection needs
				held = make([]byte, 1<<20)
			}
			before := n()
			for range 1024 {
				held = make([]byte, 1<<20)
			}
			runtime.KeepAlive(held)
			return job.WriteBytes("collected.txt", []byte(before+" "+n()))
		case "exit":
			os.Exit(3)
		case "panic":
			go panic("in another goroutine")
			select {}
		case "eat":
			var all [][]byte
			for {
				b := make([]byte, 16<<20)
				for i := range b {
					b[i] = 1
				}
				all = append(all, b)
				time.Sleep(10 * time.Millisecond)
				if len(all) > 1000 {
					return errors.New("not stopped")
				}
			}
		case "fill":
			dir, err := job.Dir()
			if err != nil {
				return err
			}
			for i := range 1000 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 4<<20), 0o600); err != nil {
					return err
				}
				time.Sleep(5 * time.Millisecond)
			}
			return errors.New("not stopped")
		case "try":
			if b, err := os.ReadFile(job.Params.Get("path")); err == nil {
				return fmt.Errorf("read %q", b)
			}
			if _, err := net.Dial("tcp", job.Params.Get("address")); err == nil {
				return errors.New("connected")
			}
			if systest.Signal(os.Getppid(), 0) == nil {
				return errors.New("can signal its parent")
			}
		case "tell":
			cwd, err := os.Getwd()
			if err != nil {
				return err
			}
			tmp, err := filepath.EvalSymlinks(os.TempDir())
			if err != nil || tmp != cwd || os.Getenv("HOME") != cwd {
				return fmt.Errorf("works in %s, TMPDIR %s, HOME %s: %w", cwd, tmp, os.Getenv("HOME"), err)
			}
			return job.WriteBytes("a.txt", fmt.Append(nil, os.Getppid(), " ", rand.Uint64(), " ", cwd))
		case "look": // list everything that is here, and leave something
			cwd, err := os.Getwd()
			if err != nil {
				return err
			}
			var all []string
			for _, dir := range []string{".", "../in"} {
				err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						all = append(all, path)
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			if err := errors.Join(os.MkdirAll("left/deep", 0o700), os.WriteFile("left/deep/file", make([]byte, 40<<20), 0o600), os.Symlink("/etc", "link")); err != nil {
				return err
			}
			return job.WriteBytes("a.txt", fmt.Append(nil, cwd, " ", os.Getenv("LEFT"), all))
		case "setenv":
			return errors.Join(os.Setenv("LEFT", "set"), job.WriteBytes("a.txt", []byte("x")))
		case "stray":
			go func() { select {} }()
		case "large":
			return job.WriteBytes("a.txt", []byte(strings.Repeat("large ", 1<<20)))
		case "pid":
			return job.WriteBytes("a.txt", []byte(strconv.Itoa(os.Getpid())))
		case "spoil": // overwrite the input
			path, ok := job.Input().Path()
			if !ok {
				return errors.New("not on disk")
			}
			for name, err := range map[string]error{
				"write": os.WriteFile(path, []byte("spoilt"), 0o600), "truncate": os.Truncate(path, 0), "chmod": os.Chmod(path, 0),
				"touch": os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0)), "rename": os.Rename(path, path+"x"), "remove": os.Remove(path),
			} {
				if err == nil {
					return fmt.Errorf("%s is possible", name)
				}
			}
		case "lead": // point outside the directory of results
			if err := os.Symlink(filepath.Dir(job.Params.Get("path")), "results"); err != nil {
				return err
			}
			fmt.Fprintf(os.NewFile(4, "messages"), "{\"result\":{\"path\":%q,\"name\":\"out.txt\"}}\n{\"done\":true}\n", filepath.Base(job.Params.Get("path")))
			select {}
		case "send": // a result that is not what its message says
			fmt.Fprintf(os.NewFile(4, "messages"), "{\"result\":{\"name\":\"one.txt\",\"size\":1}}\n1{\"result\":{\"name\":\"out.txt\",\"size\":%s}}\n", job.Params.Get("path"))
			if job.Params.Get("address") == "exit" {
				os.Exit(0)
			}
			select {}
		case "sizes": // results of these sizes
			for i, size := range strings.Split(job.Params.Get("path"), ",") {
				n, err := strconv.Atoi(size)
				if err != nil {
					return err
				}
				name, content := fmt.Sprintf("%d.txt", i), bytes.Repeat([]byte{'a' + byte(i)}, n)
				if i%2 == 0 {
					err = job.WriteBytes(name, content)
				} else {
					err = job.WriteFile(name, func(path string) error { return os.WriteFile(path, content, 0o600) })
				}
				if err != nil {
					return err
				}
			}
			return nil
		case "link": // a symbolic link as a result
			return job.WriteFile("out.txt", func(path string) error { return os.Symlink(job.Params.Get("path"), path) })
		}
		job.Progress(0.5)
		for _, f := range job.Inputs {
			b, err := io.ReadAll(f.Reader())
			if err != nil {
				return err
			}
			if err := job.WriteBytes("re-"+f.Name(), []byte(strings.ToUpper(string(b)))); err != nil {
				return err
			}
		}
		return nil
	})
}

func pool(t testing.TB, o isolate.Options) (*isolate.Pool, string) {
	t.Helper()
	o.TempDir, o.Sandbox = t.TempDir(), engine.NewSandbox()
	if !o.Sandbox.Strong() {
		t.Fatalf("no sandbox: %v", o.Sandbox.Missing())
	}
	p, err := isolate.New("test", o)
	systest.NoError(t, err)
	t.Cleanup(func() {
		systest.Check(t, p.Close())
		if es, err := os.ReadDir(o.TempDir); err != nil || len(es) > 0 {
			t.Errorf("left behind: %v, %v", es, err)
		}
	})
	return p, o.TempDir
}

func do(ctx context.Context, t testing.TB, p *isolate.Pool, args fileops.Args, in ...*fileops.File) (out []string, progress []float64, err error) {
	t.Helper()
	return doFor(ctx, t, "", p, args, in...)
}

func doFor(ctx context.Context, t testing.TB, owner string, p *isolate.Pool, args fileops.Args, in ...*fileops.File) (out []string, progress []float64, err error) {
	t.Helper()
	if len(in) == 0 {
		in = []*fileops.File{fileops.Bytes("a.txt", []byte("text"))}
	}
	r := fileops.Runner{TempDir: t.TempDir(), Owner: owner, Progress: func(x float64) { progress = append(progress, x) }}
	err = r.Run(ctx, p.Wrap(work()), args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out = append(out, f.Name()+"="+string(b))
		return err
	}), in...)
	return out, progress, err
}

func TestRun(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{})
	disk := filepath.Join(t.TempDir(), "disk.txt")
	systest.NoError(t, os.WriteFile(disk, []byte("on disk"), 0o600))
	out, progress, err := do(t.Context(), t, p, nil, fileops.Bytes("ä b.txt", []byte("memory")), fileops.Path(disk))
	if err != nil || !slices.Equal(out, []string{"re-ä b.txt=MEMORY", "re-disk.txt=ON DISK"}) {
		t.Errorf("got %q, %v", out, err)
	}
	if !slices.Contains(progress, 0.5) || !slices.IsSorted(progress) {
		t.Errorf("progress %v", progress)
	}
	if b, err := os.ReadFile(disk); err != nil || string(b) != "on disk" {
		t.Errorf("the input is changed: %q, %v", b, err)
	}
}

// The file of a parameter reaches the process, from memory and from disk.
func TestFileOfParameter(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 1})
	disk := filepath.Join(t.TempDir(), "disk.md")
	systest.NoError(t, os.WriteFile(disk, []byte("on disk"), 0o600))
	for want, f := range map[string]*fileops.File{"with-ä.txt=in memory": fileops.Bytes("ä.txt", []byte("in memory")), "with-disk.md=on disk": fileops.Path(disk)} {
		if out, _, err := do(t.Context(), t, p, fileops.Args{"second": f}); err != nil || !slices.Equal(out, []string{want}) {
			t.Errorf("got %q, %v, want %s", out, err, want)
		}
	}
	if _, _, err := do(t.Context(), t, p, fileops.Args{"second": fileops.Path(filepath.Join(t.TempDir(), "none.txt"))}); err == nil || !strings.Contains(fileops.Message(err), "none.txt") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	warnings := func(a fileops.Action) (all []fileops.Warning) {
		r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { all = append(all, w) }}
		systest.NoError(t, r.Run(t.Context(), a, fileops.Args{"how": "warn"}, fileops.ToDir(t.TempDir()), fileops.Bytes("a.txt", []byte("text"))))
		return all
	}
	p, _ := pool(t, isolate.Options{})
	want := warnings(work())
	if got := warnings(p.Wrap(work())); len(got) != 2 || !slices.Equal(got, want) {
		t.Errorf("isolated: %q; in this process: %q", got, want)
	}
}

// The work of all runs for one context counts together.
func TestRunsAddUp(t *testing.T) {
	t.Parallel()
	tooLong := errors.New("too long")
	p, _ := pool(t, isolate.Options{Spare: 1})
	ctx, cancel := worktime.Total(t.Context(), 1600*time.Millisecond, tooLong)
	defer cancel()
	for i := range 6 {
		_, _, err := do(ctx, t, p, fileops.Args{"how": "compute"})
		if errors.Is(err, tooLong) {
			if i == 0 {
				t.Error("the first run was stopped")
			}
			return
		}
		systest.NoError(t, err)
	}
	t.Error("six runs were not stopped")
}

// An input may be a hard link to the uploaded file.
func TestInputsStay(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 1})
	disk := filepath.Join(t.TempDir(), "disk.txt")
	systest.NoError(t, os.WriteFile(disk, []byte("on disk"), 0o640))
	before, err := os.Stat(disk)
	systest.NoError(t, err)
	if out, _, err := do(t.Context(), t, p, fileops.Args{"how": "spoil"}, fileops.Path(disk)); err != nil || !slices.Equal(out, []string{"re-disk.txt=ON DISK"}) {
		t.Errorf("got %q, %v", out, err)
	}
	after, err := os.Stat(disk)
	systest.NoError(t, err)
	if b, err := os.ReadFile(disk); err != nil || string(b) != "on disk" || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the input is %q, %v, %v; %v", b, after.Mode(), after.ModTime(), err)
	}
}

// Every problem in a process fails one run, with the right code, and the next run works.
func TestFailures(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 1, Limits: engine.Limits{Resident: 200 << 20, Scratch: 100 << 20}})
	// The data of a server is often in the directory of its program.
	self, err := os.Executable()
	systest.NoError(t, err)
	dir, err := os.MkdirTemp(filepath.Dir(self), "data-")
	systest.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	canary := filepath.Join(dir, "canary")
	systest.NoError(t, os.WriteFile(canary, []byte("secret"), 0o644))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	systest.NoError(t, err)
	defer l.Close()
	for how, code := range map[string]string{
		"badly": "wrong_password", "crash": "engine_failed", "exit": "engine_failed", "panic": "engine_failed", "eat": "limit_exceeded",
		"fill": "limit_exceeded", "link": "engine_failed", "lead": "engine_failed", "hang": "timeout", "try": "",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if how == "hang" {
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		}
		_, _, err := do(ctx, t, p, fileops.Args{"how": how, "path": canary, "address": l.Addr().String()})
		cancel()
		switch {
		case code == "" && err != nil, code != "" && (err == nil || fileops.Code(err) != code):
			t.Errorf("%s: %v (%s), want %s", how, err, fileops.Code(err), code)
		}
		if how == "badly" && (fileops.Message(err) != "not with this" || !strings.Contains(err.Error(), "inner")) {
			t.Errorf("message %q of %v", fileops.Message(err), err)
		}
		if out, _, err := do(t.Context(), t, p, nil); err != nil || len(out) != 1 {
			t.Errorf("after %s: %v, %v", how, out, err)
		}
	}
}

// A process is stopped that announces more than it may send, or less than nothing, or ends within a result.
func TestWrongSizes(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 1})
	for size, address := range map[string]string{"-1": "", "1048576": "", "9223372036854775807": "", "1000": "exit", "1e3": "", "null": "exit"} {
		if _, _, err := do(t.Context(), t, p, fileops.Args{"how": "send", "path": size, "address": address}); fileops.Code(err) != "engine_failed" {
			t.Errorf("size %s: %v (%s), want engine_failed", size, err, fileops.Code(err))
		}
	}
}

// Small results are sent, large ones are linked; the content is the same.
func TestSizes(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 1, Files: 100})
	const most = 1 << 20
	for _, c := range []struct {
		sizes []int
		again bool // the process is reused
	}{
		{[]int{1, 1000, 70000}, true},
		{[]int{most}, true},
		{[]int{1, most - 1}, true},
		{[]int{most + 1}, false},
		{[]int{1, most}, false},
		{[]int{1, most, 1, 2 * most, 3}, false},
	} {
		for _, owner := range []string{"a", ""} {
			dir := where(t, "a", p)
			text := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.sizes), " ", ","), "[]")
			out, _, err := doFor(t.Context(), t, owner, p, fileops.Args{"how": "sizes", "path": text})
			if err != nil || len(out) != len(c.sizes) {
				t.Errorf("%d: %d results, error %v", c.sizes, len(out), err)
				continue
			}
			for i, n := range c.sizes {
				if want := fmt.Sprintf("%d.txt=%s", i, strings.Repeat(string(rune('a'+i)), n)); out[i] != want {
					t.Errorf("%d: result %d has %d bytes and starts with %.20q", c.sizes, i, len(out[i]), out[i])
				}
			}
			if again := where(t, "a", p) == dir; again != (c.again || owner == "") {
				t.Errorf("%d, owner %q: reused is %v", c.sizes, owner, again)
			}
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 2})
	systest.NoError(t, p.Warm(t.Context()))
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			in := fmt.Sprintf("number %d", i)
			out, _, err := do(t.Context(), t, p, nil, fileops.Bytes("n.txt", []byte(in)))
			if err != nil || out[0] != "re-n.txt="+strings.ToUpper(in) {
				t.Errorf("%d: %v, %v", i, out, err)
			}
		})
	}
	wg.Wait()
}

func TestDoesNotStart(t *testing.T) {
	t.Parallel()
	log := new(logtest.Buffer)
	p, _ := pool(t, isolate.Options{Env: []string{"ISOLATE_TEST=broken"}, Spare: 1, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err := p.Warm(t.Context()); err == nil || !strings.Contains(err.Error(), "no engine here") {
		t.Errorf("Warm: %v", err)
	}
	if n := strings.Count(log.String(), "trying again"); n != 1 {
		t.Errorf("it was started again %d times, want once", n)
	}
	if _, _, err := do(t.Context(), t, p, nil); !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("a run: %v", err)
	}
}

// A process that ends before it is ready is noticed. A process that never gets ready
// does not block Close.
func TestNeverReady(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Env: []string{"ISOLATE_TEST=dies"}})
	if err := p.Warm(t.Context()); err == nil || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("Warm: %v", err)
	}
	if _, _, err := do(t.Context(), t, p, nil); !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("a run: %v", err)
	}
	slow, _ := pool(t, isolate.Options{Env: []string{"ISOLATE_TEST=slow"}})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := slow.Warm(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Warm of a slow one: %v", err)
	}
	systest.Check(t, slow.Close())
}

func TestClosed(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{})
	systest.NoError(t, p.Close())
	if _, _, err := do(t.Context(), t, p, nil); !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("a run: %v", err)
	}
	if err := p.Warm(t.Context()); !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("Warm: %v", err)
	}
}

// tell returns what a process reports about itself.
func tell(t *testing.T, p *isolate.Pool) (parent int, random uint64, dir string) {
	t.Helper()
	return tellFor(t, "", p)
}

func tellFor(t *testing.T, owner string, p *isolate.Pool) (parent int, random uint64, dir string) {
	t.Helper()
	out, _, err := doFor(t.Context(), t, owner, p, fileops.Args{"how": "tell"})
	if err != nil || len(out) != 1 {
		t.Fatal(out, err)
	}
	if n, err := fmt.Sscanf(out[0], "a.txt=%d %d %s", &parent, &random, &dir); n != 3 {
		t.Fatal(out[0], err)
	}
	return parent, random, dir
}

// Forked processes do not share random state, and cannot see each other's files.
func TestCopies(t *testing.T) {
	t.Parallel()
	p, dir := pool(t, isolate.Options{Spare: 1})
	numbers, dirs := make(map[uint64]bool), make(map[string]bool)
	for range 3 {
		_, n, work := tell(t, p)
		numbers[n], dirs[work] = true, true
	}
	if len(numbers) != 3 || len(dirs) != 3 {
		t.Errorf("random numbers %v, directories %v", numbers, dirs)
	}
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	canary := filepath.Join(all[0], "other", "in", "canary") // stands for another process's input
	systest.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(canary), 0o755), os.WriteFile(canary, []byte("secret"), 0o644)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	systest.NoError(t, err)
	defer l.Close()
	if _, _, err := do(t.Context(), t, p, fileops.Args{"how": "try", "path": canary, "address": l.Addr().String()}); err != nil {
		t.Error(err)
	}
}

// If the fork server is killed, the pool starts another one.
func TestMakerDies(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{Spare: 2})
	systest.NoError(t, p.Warm(t.Context()))
	maker, _, _ := tell(t, p)
	if maker == os.Getpid() {
		t.Fatal("processes are started by this one")
	}
	systest.NoError(t, systest.Signal(maker, syscall.SIGKILL))
	for other := maker; other == maker; { // the spare process of the old server may come first
		out, _, err := do(t.Context(), t, p, fileops.Args{"how": "tell"})
		if err == nil {
			fmt.Sscanf(out[0], "a.txt=%d", &other)
		}
	}
}

// The garbage of small jobs is not collected, that of large ones is.
func TestCollectLater(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{})
	out, _, err := do(t.Context(), t, p, fileops.Args{"how": "collect"})
	if err != nil || len(out) != 1 || out[0] != "collected.txt=false true" {
		t.Error(out, err)
	}
}

// A failure has the same kind, message and text, whether the action runs in an isolated
// process or not.
func TestFailuresAreTheSame(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{})
	isolated := p.Wrap(work())
	none := fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil })
	for _, how := range []string{"badly", "odd", "full", "late", "unsupported", "simply", "page"} {
		args, in := fileops.Args{"how": how}, fileops.Bytes("a.txt", []byte("x"))
		want := fileops.Run(t.Context(), work(), args, none, in)
		got := fileops.Run(t.Context(), isolated, args, none, in)
		if fileops.Code(got) != fileops.Code(want) {
			t.Errorf("%s: %s, want %s", how, fileops.Code(got), fileops.Code(want))
		}
		if got, want := fileops.Message(got), strings.ToValidUTF8(fileops.Message(want), ""); got != want {
			t.Errorf("%s: message %q, want %q", how, got, want)
		}
		if fileops.Retryable(got) != fileops.Retryable(want) || errors.Is(got, syscall.ENOSPC) != errors.Is(want, syscall.ENOSPC) {
			t.Errorf("%s: %v is not the same to try again", how, got)
		}
		if text := strings.ToValidUTF8(want.Error(), ""); how != "odd" && got.Error() != text {
			t.Errorf("%s: %q, want %q", how, got, text)
		}
		if strings.Count(got.Error(), "work: ") != 1 || len(got.Error()) > 3000 {
			t.Errorf("%s: %d bytes: %.100q", how, len(got.Error()), got)
		}
	}
}

// A failure of each class is the same inside and outside, with a cause longer than
// what the process reports, in which each character needs six bytes.
func TestClassesAreTheSame(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, isolate.Options{})
	none := fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil })
	for i, class := range classes {
		args, in := fileops.Args{"how": "class", "path": strconv.Itoa(i)}, fileops.Bytes("a.txt", []byte("x"))
		got := fileops.Run(t.Context(), p.Wrap(work()), args, none, in)
		want := fileops.Run(t.Context(), work(), args, none, in)
		if !errors.Is(got, class) || fileops.Code(got) != fileops.Code(want) || fileops.Message(got) != fileops.Message(want) || fileops.Retryable(got) != fileops.Retryable(want) {
			t.Errorf("%v: got %s %q, want %s %q", class, fileops.Code(got), fileops.Message(got), fileops.Code(want), fileops.Message(want))
		}
	}
}
