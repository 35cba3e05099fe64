package isolate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// roleEnv is the variable with the name of the [Pool] that started a process.
const roleEnv = "FILEWRIGHT_ISOLATED"

// A request is a line that a process reads.
type request struct {
	Key    string          `json:"key"`
	Action string          `json:"action"`
	Args   fileops.Args    `json:"args"`
	Most   int64           `json:"most,omitempty"` // see fileops.Runner.MaxOutput
	Inputs []file          `json:"inputs"`
	Extra  map[string]file `json:"extra,omitempty"` // files of parameters, by name
}

// resultsDir is the directory of a process's large results, below its working directory.
const resultsDir = "results"

// A file is an input or a result.
type file struct {
	Path string `json:"path,omitempty"` // of an input; of a result the name in resultsDir, or "" if its content follows
	Name string `json:"name"`
	Size int64  `json:"size,omitempty"` // bytes that follow the message

	content []byte // of a result that followed its message
}

// A message is a line that a process writes. The first message reports that it is ready.
type message struct {
	Progress float64          `json:"progress,omitempty"`
	Warning  *fileops.Warning `json:"warning,omitempty"`
	Result   *file            `json:"result,omitempty"`
	Error    *report          `json:"error,omitempty"`
	Done     bool             `json:"done,omitempty"`
	Again    bool             `json:"again,omitempty"` // with Done: the process is as before the run and waits for another request
}

// A report is the wire form of a failure.
type report struct {
	Code    string        `json:"code"`
	Message string        `json:"message"`
	Failure bool          `json:"failure,omitempty"` // it is a fileops.Failure
	Detail  string        `json:"detail,omitempty"`  // for the log: the cause of the failure, or the whole text
	Errno   syscall.Errno `json:"errno,omitempty"`   // of the failed system call, such as ENOSPC
}

const (
	// maxText limits the bytes of a text in a report. Each byte may take six in JSON.
	maxText = 1000

	// maxMessage limits the bytes of a message. A report fits, as does a result with the
	// longest possible name, and a message fits into a pipe.
	maxMessage = 32 << 10
)

// reportOf returns the report of a failure of an action.
func reportOf(err error, action string) *report {
	r := &report{Code: fileops.Code(err), Message: cut(fileops.Message(err))}
	errors.As(err, &r.Errno)
	// The parent adds the name of the action again.
	text := strings.TrimPrefix(err.Error(), action+": ")
	var f *fileops.Failure
	if errors.As(err, &f) {
		r.Message, r.Failure = cut(f.Message), true
		if text == f.Error() { // only the message and its cause
			text = ""
			if f.Err != nil {
				text = f.Err.Error()
			}
		}
	}
	var p *fileops.ParamError
	if f == nil && errors.As(err, &p) {
		r.Failure = true // its text is for users
		if text == p.Error() {
			text = ""
		}
	}
	r.Detail = cut(text)
	return r
}

// cut shortens a text to at most maxText bytes, without splitting a character.
func cut(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxText)], "")
}

// A remoteError is the cause of a failure in an isolated process.
type remoteError struct {
	text string
	is   error // nil if it is no error that callers test for
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

// failure returns the reported error, with the same kind and message.
func (r *report) failure() error {
	cause := &remoteError{text: r.Detail}
	if r.Errno != 0 {
		cause.is = r.Errno
	}
	for _, kind := range []error{
		fileops.ErrCorruptInput, fileops.ErrFormatMismatch, errors.ErrUnsupported, fileops.ErrUnsupportedInput, fileops.ErrPasswordRequired,
		fileops.ErrWrongPassword, fileops.ErrNotEncrypted, fileops.ErrLimit, fileops.ErrParameter, fileops.ErrEngine, fileops.ErrUnavailable,
		context.DeadlineExceeded, context.Canceled,
	} {
		switch {
		case fileops.Code(kind) != r.Code:
		case !r.Failure && fileops.Message(kind) == r.Message:
			cause.is = errors.Join(kind, cause.is)
			return cause
		case r.Failure && !errors.Is(kind, errors.ErrUnsupported):
			f := &fileops.Failure{Kind: kind, Message: r.Message}
			if r.Detail != "" || cause.is != nil {
				f.Err = cause
			}
			return f
		}
	}
	return cause
}

// Main serves runs until the pool ends the process, if the [Pool] called name started it.
// Otherwise Main returns at once. actions returns the actions that the pool wraps. Main
// calls it before the request arrives, so it should do all slow initialisation.
func Main(name string, actions func(context.Context) ([]fileops.Action, error)) {
	if name == "" || os.Getenv(roleEnv) != name {
		return
	}
	// A forked process still has the variables of the fork server.
	if dir, err := os.Getwd(); err == nil {
		os.Setenv("HOME", dir)
		os.Setenv("TMPDIR", dir)
	}
	in, out := os.NewFile(3, "requests"), os.NewFile(4, "messages")
	if err := serve(in, out, actions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(in io.Reader, out io.Writer, actions func(context.Context) ([]fileops.Action, error)) error {
	ctx := context.Background()
	var mu sync.Mutex
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	send := func(m message) error {
		mu.Lock()
		defer mu.Unlock()
		err := enc.Encode(m)
		if err == nil && m.Result != nil && len(m.Result.content) > 0 {
			_, err = out.Write(m.Result.content)
		}
		return err
	}
	list, err := actions(ctx)
	all := make(map[string]fileops.Action, len(list))
	for _, a := range list {
		key := keyOf(a.Spec())
		if all[key] != nil {
			err = fmt.Errorf("isolate: two actions are described as %q", key)
		}
		all[key] = a
	}
	if err != nil {
		return send(message{Error: reportOf(err, "")})
	}
	defer watchTime(send)()
	if err := send(message{}); err != nil {
		return err
	}
	before := stateNow()
	requests := bufio.NewReader(in)
	for n := 0; ; n++ {
		line, err := requests.ReadBytes('\n')
		if err != nil {
			return nil // no longer needed
		}
		if n == 0 {
			collectLater()
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return send(message{Error: reportOf(err, "")})
		}
		if err := r.run(ctx, all[r.Key], send); err != nil {
			return send(message{Error: reportOf(err, r.Action)})
		}
		again := before.restored()
		if err := send(message{Done: true, Again: again}); err != nil || !again {
			return err
		}
	}
}

// A state is what a run could leave behind in its process, beside files.
type state struct {
	env        []string
	dir        string
	goroutines int
}

func stateNow() state {
	dir, _ := os.Getwd() // on an error it equals no later one
	return state{os.Environ(), dir, runtime.NumGoroutine()}
}

// restored reports whether the process is in state s again. Goroutines of a run get a moment to
// end.
func (s state) restored() bool {
	for i := 0; runtime.NumGoroutine() > s.goroutines; i++ {
		if i == 10 {
			return false
		}
		time.Sleep(100 * time.Microsecond)
	}
	now := stateNow()
	return s.dir != "" && now.dir == s.dir && slices.Equal(now.env, s.env)
}

// firstCollection is the size of the heap, in bytes, at which the first garbage collection starts.
const firstCollection = 128 << 20

// collectLater turns on the garbage collector, which was off, see [Pool.cmd], but only for heaps above
// firstCollection. Most files end before that. A collection also waits for the WebAssembly that runs
// at its time: no goroutine runs until that returns, not even one that would stop it.
func collectLater() {
	debug.SetMemoryLimit(firstCollection)
	runtime.AddCleanup(new([16]byte), func(int) { // after the first collection
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
	}, 0)
}

// watchTime reports that the processor time is used up. By default SIGXCPU ends a Go
// program with a long stack dump that its parent cannot parse. The kernel allows a
// second for the report.
func watchTime(send func(message) error) (stop func()) {
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.Signal(24)) // SIGXCPU, which package syscall lacks on Windows
	go func() {
		if _, ok := <-over; ok {
			_ = send(message{Error: reportOf(fileops.Fail(fileops.ErrLimit, nil, "the file needs more processor time than is allowed; try a smaller one"), "")})
			os.Exit(1)
		}
	}()
	return func() { signal.Stop(over); close(over) }
}

func (r *request) run(ctx context.Context, a fileops.Action, send func(message) error) error {
	if a == nil {
		return fmt.Errorf("isolate: Main has no action that is described as %q", r.Key)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	results := filepath.Join(dir, resultsDir)
	var inputs []*fileops.File
	var formats []format.Format
	for _, f := range r.Inputs {
		in := fileops.Path(f.Path).Named(f.Name)
		inputs, formats = append(inputs, in), append(formats, in.Format())
	}
	args := maps.Clone(r.Args)
	for name, f := range r.Extra {
		if args == nil {
			args = make(fileops.Args)
		}
		args[name] = fileops.Path(f.Path).Named(f.Name)
	}
	// The pool's process has the same action in a registry.
	_, params, err := fileops.UncheckedRegistry(a).Resolve(r.Action, formats, args)
	if err != nil {
		return err
	}
	n, left := 0, int64(sentResults)
	runner := fileops.Runner{
		TempDir: dir, MaxOutput: r.Most,
		Progress: func(done float64) { _ = send(message{Progress: done}) },
		Warn:     func(w fileops.Warning) { _ = send(message{Warning: &w}) },
	}
	return runner.Do(ctx, a, params, fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
		if f.Size() <= left {
			left -= f.Size()
			b, err := f.ReadAll(sentResults)
			if err != nil {
				return err
			}
			return send(message{Result: &file{Name: f.Name(), Size: int64(len(b)), content: b}})
		}
		if n++; n == 1 {
			if err := os.Mkdir(results, 0o700); err != nil {
				return err
			}
		}
		name := strconv.Itoa(n)
		if err := fileops.ToDir(results).Put(ctx, f.Named(name)); err != nil {
			return err
		}
		return send(message{Result: &file{Path: name, Name: f.Name()}})
	}), inputs...)
}
