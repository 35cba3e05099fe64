package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/systest"
)

// program writes a shell script and returns it as a program.
func program(t testing.TB, script string) *engine.Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prog")
	systest.WriteScript(t, path, "#!/bin/bash\n"+script+"\n")
	return &engine.Program{Name: "prog", Path: path}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		systest.WriteScript(t, path, content)
		systest.NoError(t, os.Chmod(path, mode))
		return path
	}
	const answers = "#!/bin/sh\necho \"tool version 5.1.9-3 of 2024\"\n"
	good := write("good", answers, 0o700)
	onStderr := write("onstderr", "#!/bin/sh\necho 'built 7' >&2\necho 'release 12.0.1' >&2\n", 0o700)
	silent := write("silent", "#!/bin/sh\n", 0o700)
	locked := write("locked", answers, 0o600)
	fails := write("fails", "#!/bin/sh\necho 1.2.3\nexit 3\n", 0o700)
	noLoader := write("noloader", "#!/no/such/interpreter\n", 0o700)
	missing := filepath.Join(dir, "missing")
	for _, tt := range []struct {
		name, path, version string
		names               []string
		is                  error
	}{
		{name: "found", names: []string{good}, path: good, version: "5.1.9"},
		{name: "version on standard error", names: []string{onStderr}, path: onStderr, version: "12.0.1"},
		{name: "no version", names: []string{silent}, path: silent},
		{name: "the first that exists", names: []string{missing, locked, fails, noLoader, good, silent}, path: good, version: "5.1.9"},
		{name: "in PATH", names: []string{"no-such-program-1", "bash"}, version: "any"},
		{name: "missing", names: []string{missing}, is: exec.ErrNotFound},
		{name: "not in PATH", names: []string{"no-such-program-1", "no-such-program-2"}, is: exec.ErrNotFound},
		{name: "no names", is: exec.ErrNotFound},
		{name: "not executable", names: []string{locked}, is: os.ErrPermission},
		{name: "a directory", names: []string{dir}, is: syscall.EISDIR},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := engine.Find(t.Context(), []string{"--version"}, tt.names...)
			if tt.is != nil {
				if !errors.Is(err, tt.is) || p != nil {
					t.Errorf("got %v, %v, want %v", p, err, tt.is)
				}
				return
			}
			systest.NoError(t, err)
			if tt.path != "" && (p.Path != tt.path || p.Name != filepath.Base(tt.path) || p.Version != tt.version) {
				t.Errorf("got %+v", p)
			}
			if !filepath.IsAbs(p.Path) || tt.version == "any" && (p.Name != "bash" || p.Version == "") {
				t.Errorf("got %+v", p)
			}
		})
	}
	t.Run("does not run", func(t *testing.T) {
		t.Parallel()
		_, err := engine.Find(t.Context(), nil, fails)
		var exit *engine.ExitError
		if !errors.As(err, &exit) || exit.Code != 3 || errors.Is(err, exec.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if _, err := engine.Find(t.Context(), nil, noLoader); err == nil {
			t.Error("a program without its interpreter is found")
		}
	})
	t.Run("context is done", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := engine.Find(ctx, nil, good); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunExit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script, message string
		code                  int
		signal                syscall.Signal
		stderr                string
	}{
		{"success", "echo fine >&2", "", 0, 0, ""},
		{"exit code", "echo /secret/path: broken >&2; exit 42", "prog failed with exit code 42", 42, 0, "/secret/path: broken\n"},
		{"exit code 255", "exit 255", "prog failed with exit code 255", 255, 0, ""},
		{"signal", "kill -TERM $$", "prog was ended by a signal (terminated)", -1, syscall.SIGTERM, ""},
		{"segmentation fault", "kill -SEGV $$", "prog was ended by a signal (segmentation fault)", -1, syscall.SIGSEGV, ""},
		{"stderr that is no text", `printf 'a\xff\xfeb' >&2; exit 1`, "prog failed with exit code 1", 1, 0, "a\uFFFDb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := program(t, tt.script).Run(t.Context(), engine.Cmd{Dir: t.TempDir()})
			if tt.message == "" {
				systest.Check(t, err)
				return
			}
			var exit *engine.ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("got %v", err)
			}
			if exit.Program != "prog" || exit.Code != tt.code || exit.Signal != tt.signal || exit.Stderr != tt.stderr || exit.StderrTail() != tt.stderr {
				t.Errorf("got %+v", exit)
			}
			if err.Error() != tt.message || exit.Limit() {
				t.Errorf("got %q, limit %v", err, exit.Limit())
			}
		})
	}
	t.Run("cannot be started", func(t *testing.T) {
		t.Parallel()
		p := &engine.Program{Name: "gone", Path: filepath.Join(t.TempDir(), "gone")}
		if err := p.Run(t.Context(), engine.Cmd{Dir: t.TempDir()}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		if err := program(t, "true").Run(t.Context(), engine.Cmd{Dir: "/no/such/dir"}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunStreams(t *testing.T) {
	t.Parallel()
	t.Run("in and out", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		in := strings.Repeat("0123456789", 200_000)
		systest.NoError(t, program(t, "cat").Run(t.Context(), engine.Cmd{Dir: t.TempDir(), Stdin: strings.NewReader(in), Stdout: &out}))
		if out.String() != in {
			t.Errorf("%d bytes came back, want %d", out.Len(), len(in))
		}
	})
	t.Run("arguments and directory", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		dir := t.TempDir()
		args := []string{"a b", "", "$HOME", `"`, "*", "-x"}
		if err := program(t, `pwd; printf '[%s]' "$@"`).Run(t.Context(), engine.Cmd{Dir: dir, Args: args, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		if want := dir + "\n[a b][][$HOME][\"][*][-x]"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
	t.Run("tail of stderr", func(t *testing.T) {
		t.Parallel()
		lines := 0
		err := program(t, `for i in {1..20000}; do echo "line $i"; done >&2; exit 1`).Run(t.Context(), engine.Cmd{
			Dir: t.TempDir(), OnLine: func(string) { lines++ },
		})
		var exit *engine.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if len(exit.Stderr) > 4<<10 || !strings.HasSuffix(exit.Stderr, "line 19999\nline 20000\n") || lines != 20000 {
			t.Errorf("%d bytes that end in %q, %d lines", len(exit.Stderr), exit.Stderr[max(0, len(exit.Stderr)-30):], lines)
		}
	})
	t.Run("lines", func(t *testing.T) {
		t.Parallel()
		var lines []string
		err := program(t, `printf 'frame=1\rframe=2\rdone\n\n\r\nno end' >&2`).Run(t.Context(), engine.Cmd{
			Dir: t.TempDir(), OnLine: func(s string) { lines = append(lines, s) },
		})
		if want := []string{"frame=1", "frame=2", "done", "no end"}; err != nil || !slices.Equal(lines, want) {
			t.Errorf("got %q, %v, want %q", lines, err, want)
		}
	})
	t.Run("endless line", func(t *testing.T) {
		t.Parallel()
		longest, total := 0, 0
		err := program(t, `head -c 3000000 /dev/zero | tr '\0' x >&2`).Run(t.Context(), engine.Cmd{
			Dir: t.TempDir(), OnLine: func(s string) { longest, total = max(longest, len(s)), total+len(s) },
		})
		if err != nil || total != 3_000_000 || longest > 128<<10 {
			t.Errorf("%d bytes in lines of up to %d, %v", total, longest, err)
		}
	})
	t.Run("reader of the output fails", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("disk full")
		err := program(t, `head -c 1000000 /dev/zero`).Run(t.Context(), engine.Cmd{Dir: t.TempDir(), Stdout: writerFunc(func([]byte) (int, error) { return 0, broken })})
		if err == nil {
			t.Error("no error although the output was lost")
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRunEnvironment(t *testing.T) {
	// Not parallel: the test changes the environment of the whole process.
	t.Setenv("FILEWRIGHT_TEST_SECRET", "s3cret")
	t.Setenv("LD_PRELOAD", "")
	dir := t.TempDir()
	var out bytes.Buffer
	p := &engine.Program{Name: "env", Path: "/usr/bin/env"}
	systest.NoError(t, p.Run(t.Context(), engine.Cmd{Dir: dir, Env: []string{"A=1", "LANG=de_DE.UTF-8"}, Stdout: &out}))
	got := strings.Fields(out.String())
	slices.Sort(got)
	want := []string{"A=1", "HOME=" + dir, "LANG=de_DE.UTF-8", "LC_ALL=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + dir}
	// Go adds PWD if a command has a directory but no environment; this command has
	// both.
	got = slices.DeleteFunc(got, func(s string) bool { return s == "PWD="+dir })
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRunFiles(t *testing.T) {
	t.Parallel()
	var files []*os.File
	for i := range 2 {
		path := filepath.Join(t.TempDir(), "f")
		systest.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "file %d\n", i), 0o600))
		f, err := os.Open(path)
		systest.NoError(t, err)
		defer f.Close()
		files = append(files, f)
	}
	var out bytes.Buffer
	err := program(t, "cat <&3; cat <&4").Run(t.Context(), engine.Cmd{Dir: t.TempDir(), Stdout: &out, Files: files})
	if err != nil || out.String() != "file 0\nfile 1\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// A program does not inherit a file that is open in this process.
func TestRunInheritsNoFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret-file")
	f, err := os.Create(path)
	systest.NoError(t, err)
	defer f.Close()
	var out bytes.Buffer
	p := &engine.Program{Name: "ls", Path: "/bin/ls"}
	systest.NoError(t, p.Run(t.Context(), engine.Cmd{Args: []string{"-l", "/proc/self/fd"}, Dir: t.TempDir(), Stdout: &out}))
	if strings.Contains(out.String(), "secret-file") || !strings.Contains(out.String(), "0 -> /dev/null") {
		t.Errorf("got %s", out.String())
	}
}

// waitGone waits until a process has ended or is a zombie.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	systest.Until(t, fmt.Sprintf("the end of process %d", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, ok := strings.Cut(string(stat), ") ")
		return err != nil || ok && (state[0] == 'Z' || state[0] == 'X')
	})
}

// pidOnLine returns a function for OnLine and a channel that receives the number on the
// first line.
func pidOnLine(t *testing.T) (func(string), chan int) {
	pids := make(chan int, 1)
	var once sync.Once
	return func(line string) {
		once.Do(func() {
			n, err := strconv.Atoi(line)
			if err != nil {
				t.Errorf("%q is no process id", line)
			}
			pids <- n
		})
	}, pids
}

// When the context is done, everything in the group is killed, including a grandchild
// that ignores signals and holds the pipes.
func TestRunCancel(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"program":            `trap '' TERM INT HUP; echo $$ >&2; while :; do sleep 1000; done`,
		"grandchild":         `(trap '' TERM INT HUP; echo $BASHPID >&2; while :; do sleep 1000; done) & wait`,
		"orphaned":           `(setsid true; trap '' TERM HUP; echo $BASHPID >&2; sleep 1000) & sleep 1000`,
		"program that spins": `echo $$ >&2; while :; do :; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cause := errors.New("the client has gone")
			ctx, cancel := context.WithCancelCause(t.Context())
			onLine, pids := pidOnLine(t)
			done := make(chan error, 1)
			go func() {
				var out bytes.Buffer
				done <- program(t, script).Run(ctx, engine.Cmd{Dir: t.TempDir(), OnLine: onLine, Stdout: &out})
			}()
			pid := <-pids
			cancel(cause)
			if err := <-done; !errors.Is(err, cause) {
				t.Errorf("got %v, want the cause", err)
			}
			waitGone(t, pid)
		})
	}
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := program(t, "sleep 1000").Run(ctx, engine.Cmd{Dir: t.TempDir()}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("done before", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		mark := filepath.Join(t.TempDir(), "mark")
		if err := program(t, `touch "$1"`).Run(ctx, engine.Cmd{Dir: t.TempDir(), Args: []string{mark}}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(mark); err == nil {
			t.Error("the program was started")
		}
	})
}

// A program that succeeds but leaves a process that holds the pipe counts as a success,
// and the leftover process is killed.
func TestRunLeavesNothing(t *testing.T) {
	t.Parallel()
	onLine, pids := pidOnLine(t)
	var out bytes.Buffer
	err := program(t, `sleep 1000 & echo $! >&2; echo result`).Run(t.Context(), engine.Cmd{Dir: t.TempDir(), OnLine: onLine, Stdout: &out})
	if err != nil || out.String() != "result\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	waitGone(t, <-pids)
}

func TestRunLimits(t *testing.T) {
	t.Parallel()
	t.Run("file size", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		p := &engine.Program{Name: "dd", Path: "/bin/dd"}
		err := p.Run(t.Context(), engine.Cmd{
			Args: []string{"if=/dev/zero", "of=out", "bs=64k", "count=100"}, Dir: dir, Limits: engine.Limits{FileSize: 1 << 20},
		})
		var exit *engine.ExitError
		if !errors.As(err, &exit) || exit.Signal != syscall.SIGXFSZ || !exit.Limit() {
			t.Errorf("got %v", err)
		}
		if st, err := os.Stat(filepath.Join(dir, "out")); err != nil || st.Size() > 1<<20 {
			t.Errorf("the file has %v bytes, %v", st.Size(), err)
		}
	})
	t.Run("cpu", func(t *testing.T) {
		t.Parallel()
		err := program(t, "while :; do :; done").Run(t.Context(), engine.Cmd{Dir: t.TempDir(), Limits: engine.Limits{CPU: time.Second / 2}})
		var exit *engine.ExitError
		if !errors.As(err, &exit) || exit.Signal != syscall.SIGXCPU || !exit.Limit() {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cpu of a program that does not want to end", func(t *testing.T) {
		t.Parallel()
		err := program(t, "trap '' XCPU; while :; do :; done").Run(t.Context(), engine.Cmd{Dir: t.TempDir(), Limits: engine.Limits{CPU: time.Second}})
		var exit *engine.ExitError
		if !errors.As(err, &exit) || exit.Signal != syscall.SIGKILL {
			t.Errorf("got %v", err)
		}
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		script := `x=$(head -c 200000000 /dev/zero | tr '\0' x); echo ${#x}`
		var out bytes.Buffer
		if err := program(t, script).Run(t.Context(), engine.Cmd{Dir: t.TempDir(), Stdout: &out, Limits: engine.Limits{Memory: 100 << 20}}); err == nil {
			t.Errorf("it got all the memory: %q", out.String())
		}
	})
	t.Run("high enough", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		err := program(t, `head -c 1000 /dev/zero > f; ulimit -c -t -v -f`).Run(t.Context(), engine.Cmd{
			Dir: t.TempDir(), Stdout: &out, Limits: engine.Limits{CPU: 90 * time.Second, Memory: 4 << 30, FileSize: 1 << 20},
		})
		systest.Check(t, err)
		for _, want := range []string{"(blocks, -c) 0", "(seconds, -t) 90", "(kbytes, -v) 4194304", "(blocks, -f) 1024"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in %s", want, out.String())
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		if err := program(t, `ulimit -c`).Run(t.Context(), engine.Cmd{Dir: t.TempDir(), Stdout: &out}); err != nil || out.String() != "0\n" {
			t.Errorf("core files of %q blocks are allowed, %v", out.String(), err)
		}
	})
}

// Limits are in force from the start, so that even a fast program cannot escape them.
func TestRunLimitsHoldAtOnce(t *testing.T) {
	t.Parallel()
	p := &engine.Program{Name: "dd", Path: "/bin/dd"}
	for range 50 {
		dir := t.TempDir()
		err := p.Run(t.Context(), engine.Cmd{
			Args: []string{"if=/dev/zero", "of=out", "bs=8k", "count=1"}, Dir: dir, Limits: engine.Limits{FileSize: 4096},
		})
		var exit *engine.ExitError
		if !errors.As(err, &exit) || !exit.Limit() {
			t.Fatalf("got %v", err)
		}
	}
}

func TestExitErrorLimit(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]bool{0: false, syscall.SIGXCPU: true, syscall.SIGXFSZ: true, syscall.SIGKILL: false} {
		if got := (&engine.ExitError{Signal: sig}).Limit(); got != want {
			t.Errorf("%v: got %v", sig, got)
		}
	}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	onLine, pids := pidOnLine(t)
	proc, err := program(t, `echo $$ >&2; sleep 1000`).Start(t.Context(), engine.Cmd{Dir: t.TempDir(), OnLine: onLine})
	systest.NoError(t, err)
	if pid := <-pids; pid != proc.Pid() {
		t.Errorf("pid %d, the program says %d", proc.Pid(), pid)
	}
	if pgid, err := syscall.Getpgid(proc.Pid()); err != nil || pgid != proc.Pid() {
		t.Errorf("group %d, %v, want one of its own", pgid, err)
	}
	errs := make(chan error, 8)
	for range cap(errs) / 2 {
		go func() { errs <- proc.Wait() }()
		go func() { proc.Kill(); errs <- proc.Wait() }()
	}
	first := <-errs
	var exit *engine.ExitError
	if !errors.As(first, &exit) || exit.Signal != syscall.SIGKILL {
		t.Errorf("got %v", first)
	}
	for range cap(errs) - 1 {
		if err := <-errs; !errors.Is(err, first) {
			t.Errorf("got %v, then %v", first, err)
		}
	}
	proc.Kill()
	if err := proc.Wait(); !errors.Is(err, first) {
		t.Errorf("after all: %v", err)
	}
	waitGone(t, proc.Pid())
}

// Limits can be lowered during a run.
func TestProcessLimit(t *testing.T) {
	t.Parallel()
	proc, err := program(t, "while :; do :; done").Start(t.Context(), engine.Cmd{Dir: t.TempDir(), Limits: engine.Limits{CPU: time.Hour}})
	systest.NoError(t, err)
	systest.Check(t, proc.Limit(engine.Limits{CPU: time.Second}))
	var exit *engine.ExitError
	if err := proc.Wait(); !errors.As(err, &exit) || exit.Signal != syscall.SIGXCPU {
		t.Errorf("got %v", err)
	}
	if err := proc.Limit(engine.Limits{CPU: time.Second}); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

// The context has no effect on a process that has ended.
func TestProcessContextAfterEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	proc, err := program(t, "exit 0").Start(ctx, engine.Cmd{Dir: t.TempDir()})
	systest.NoError(t, err)
	systest.Check(t, proc.Wait())
	cancel()
	systest.Check(t, proc.Wait())
}

// Many concurrent runs are not mixed up and leave no goroutines or descriptors behind.
func TestRunConcurrently(t *testing.T) {
	p := program(t, `cat; echo "$1" >&2`)
	run := func() {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				var out bytes.Buffer
				var lines []string
				id := strconv.Itoa(i)
				err := p.Run(t.Context(), engine.Cmd{
					Args: []string{id}, Dir: t.TempDir(), Stdin: strings.NewReader(id), Stdout: &out,
					OnLine: func(s string) { lines = append(lines, s) },
				})
				if err != nil || out.String() != id || !slices.Equal(lines, []string{id}) {
					t.Errorf("%s: got %q, %q, %v", id, out.String(), lines, err)
				}
			})
		}
		wg.Wait()
	}
	run()
	before, fds := runtime.NumGoroutine(), openFiles(t)
	run()
	systest.Until(t, fmt.Sprintf("at most 4 goroutines more than the %d before", before), func() bool { return runtime.NumGoroutine() <= before+4 })
	if n := openFiles(t); n > fds+4 {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
}

func openFiles(t *testing.T) int {
	es, err := os.ReadDir("/proc/self/fd")
	systest.NoError(t, err)
	return len(es)
}

func Example() {
	ctx := context.Background()
	sort, err := engine.Find(ctx, []string{"--version"}, "gsort", "sort")
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	var out strings.Builder
	err = sort.Run(ctx, engine.Cmd{
		Args: []string{"-r"}, Dir: dir, Stdin: strings.NewReader("a\nc\nb\n"), Stdout: &out,
		Limits: engine.Limits{CPU: 10 * time.Second, Memory: 1 << 30, FileSize: 1 << 30},
	})
	fmt.Printf("%q %v %v\n", out.String(), err, sort.Version != "")

	err = sort.Run(ctx, engine.Cmd{Args: []string{"--no-such-option"}, Dir: dir, Stdout: io.Discard})
	fmt.Println(err)
	// Output:
	// "c\nb\na\n" <nil> true
	// sort failed with exit code 2
}
