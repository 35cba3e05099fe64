// Package isolate runs actions in processes of their own: each run in a fresh,
// confined process of this very program, so that a file which crashes a library, or
// takes it over, spoils nothing but its own result.
//
// A program that uses it calls [Main] first thing. In the server process that
// returns at once; in a process that a [Pool] has started it serves one run and
// does not return.
//
//	func main() {
//		isolate.Main(func(context.Context) (map[string]fileops.Action, error) { ... })
//		...
//		pool, err := isolate.New(isolate.Options{Sandbox: engine.NewSandbox()})
//		action = pool.Wrap("images", action)
//	}
package isolate

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
)

// Options configure [New]. The zero value is usable.
type Options struct {
	// Sandbox confines the processes; nil does not.
	Sandbox *engine.Sandbox

	// Access is what the processes need beyond their own directory.
	Access engine.Access

	// Env is for [Main] in the processes: "name=value".
	Env []string

	Spare  int           // processes that wait for work; 0 means one for each core
	Limits engine.Limits // of one run; zero fields mean no limit

	TempDir string       // parent of the directories of the processes; "" means os.TempDir
	Log     *slog.Logger // what happens to the processes; nil discards
}

// A Pool keeps processes ready. It is safe for concurrent use.
type Pool struct {
	opts Options
	prog *engine.Program

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	spare []*starting
}

// New returns a pool. No process is started before [Pool.Warm] or the first run.
// The caller must call [Pool.Close].
func New(o Options) (*Pool, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("isolate: %w", err)
	}
	if o.Spare <= 0 {
		o.Spare = runtime.GOMAXPROCS(0)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.TempDir, err = filepath.Abs(cmp.Or(o.TempDir, os.TempDir())); err != nil {
		return nil, fmt.Errorf("isolate: %w", err)
	}
	p := &Pool{opts: o, prog: &engine.Program{Name: filepath.Base(self), Path: self, Sandbox: o.Sandbox}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// A starting is a process that was started.
type starting struct {
	done chan struct{}
	w    *process
	err  error
}

// A process serves one run.
type process struct {
	proc *engine.Process
	dir  string
	in   *os.File
	out  *bufio.Reader
	pipe *os.File // what out reads
}

// launch starts a process in the background.
func (p *Pool) launch() *starting {
	s := &starting{done: make(chan struct{})}
	p.wg.Go(func() {
		defer close(s.done)
		s.w, s.err = p.start()
	})
	return s
}

// start starts a process and waits until it is ready.
func (p *Pool) start() (_ *process, err error) {
	dir, err := os.MkdirTemp(p.opts.TempDir, "isolate-")
	if err != nil {
		return nil, err
	}
	w := &process{dir: dir}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	w.in = inW
	outR, outW, err := os.Pipe()
	if err != nil {
		inR.Close()
		return nil, err
	}
	w.pipe, w.out = outR, bufio.NewReader(outR)
	w.proc, err = p.prog.Start(p.ctx, engine.Cmd{
		Dir: dir, Env: append([]string{roleEnv + "=1"}, p.opts.Env...),
		Files:  []*os.File{inR, outW},
		OnLine: func(line string) { p.opts.Log.Warn("isolated process says", "line", line) },
		Limits: p.opts.Limits, Access: p.opts.Access,
	})
	// Only the process has these ends now: its end is the end of the pipe.
	inR.Close()
	outW.Close()
	if err != nil {
		return nil, err
	}
	m, err := w.read()
	if err == nil && m.Error != nil {
		err = errors.New(m.Error.Detail)
	}
	if err != nil {
		w.proc.Kill()
		return nil, fmt.Errorf("isolated process does not start: %w", errors.Join(err, w.proc.Wait()))
	}
	return w, nil
}

// take returns a process that is ready, and sees to it that others will be.
func (p *Pool) take(ctx context.Context) (*process, error) {
	p.mu.Lock()
	if p.ctx.Err() != nil {
		p.mu.Unlock()
		return nil, errClosed
	}
	for len(p.spare) <= p.opts.Spare {
		p.spare = append(p.spare, p.launch())
	}
	s := p.spare[0]
	p.spare = p.spare[1:]
	p.mu.Unlock()
	select {
	case <-s.done:
		if s.err != nil {
			return nil, fileops.Fail(fileops.ErrUnavailable, s.err, "the engine could not be started")
		}
		return s.w, nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.spare = append(p.spare, s) // for the next one
		return nil, context.Cause(ctx)
	}
}

var errClosed = fileops.Fail(fileops.ErrUnavailable, nil, "the engine was closed")

// Warm starts the spare processes and waits until they are ready.
func (p *Pool) Warm(ctx context.Context) error {
	p.mu.Lock()
	if p.ctx.Err() != nil {
		p.mu.Unlock()
		return errClosed
	}
	for len(p.spare) < p.opts.Spare {
		p.spare = append(p.spare, p.launch())
	}
	all := append([]*starting(nil), p.spare...)
	p.mu.Unlock()
	for _, s := range all {
		select {
		case <-s.done:
			if s.err != nil {
				return s.err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close ends all processes. No run may be going on.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.cancel()
	spare := p.spare
	p.spare = nil
	p.mu.Unlock()
	p.wg.Wait()
	var errs []error
	for _, s := range spare {
		if s.err == nil {
			errs = append(errs, s.w.end())
		}
	}
	return errors.Join(errs...)
}

// end kills the process and removes its directory.
func (w *process) end() error {
	w.proc.Kill()
	w.proc.Wait() // it was killed: that it did not end well is no news
	return w.close()
}

func (w *process) close() error {
	if w.in != nil {
		w.in.Close()
	}
	if w.pipe != nil {
		w.pipe.Close()
	}
	return os.RemoveAll(w.dir)
}

func (w *process) read() (message, error) {
	var m message
	line, err := w.out.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = errors.New("answer too long")
		}
		return m, err
	}
	return m, json.Unmarshal(line, &m)
}

// Wrap returns an action with the Spec of a whose runs are done by the action that
// [Main] has under key. Both must be made in the same way.
func (p *Pool) Wrap(key string, a fileops.Action) fileops.Action {
	spec := a.Spec()
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		return p.run(ctx, key, spec.Name, job)
	})
}

func (p *Pool) run(ctx context.Context, key, action string, job *fileops.Job) (err error) {
	w, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := w.end(); cerr != nil {
			job.Log.Error("directory of an isolated process not removed", "err", cerr)
		}
	}()
	defer context.AfterFunc(ctx, w.proc.Kill)()
	r := request{Key: key, Action: action, Args: job.Params.Args(), Most: job.MaxOutput()}
	for i, f := range job.Inputs {
		path, err := job.Path(f)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("in-%d%s", i, filepath.Ext(path))
		if err := os.Link(path, filepath.Join(w.dir, name)); err != nil {
			if err := copyFile(filepath.Join(w.dir, name), f.Reader()); err != nil {
				return err
			}
		}
		r.Inputs = append(r.Inputs, file{Path: name, Name: f.Name()})
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := w.in.Write(append(line, '\n')); err != nil {
		return w.died(ctx, err)
	}
	for {
		m, err := w.read()
		switch {
		case err != nil:
			return w.died(ctx, err)
		case m.Result != nil:
			if err := w.deliver(job, *m.Result); err != nil {
				return err
			}
		case m.Error != nil:
			return m.Error.failure()
		case m.Done:
			return nil
		default:
			job.Progress(m.Progress)
		}
	}
}

// died tells why a process has ended before its run.
func (w *process) died(ctx context.Context, cause error) error {
	w.proc.Kill()
	err := w.proc.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *engine.ExitError
	if errors.As(err, &exit) && exit.Limit() {
		return fileops.Fail(fileops.ErrLimit, err, "the file needs more %s than is allowed; try a smaller one", exit.Which())
	}
	return fileops.Fail(fileops.ErrEngine, errors.Join(err, cause), "the engine could not process the file")
}

// deliver moves a result into the job. The process may have been taken over:
// what it calls a file is looked at like any other result.
func (w *process) deliver(job *fileops.Job, f file) error {
	if f.Path != filepath.Base(f.Path) {
		return fileops.Fail(fileops.ErrEngine, errors.New("result outside of the directory"), "")
	}
	return job.WriteFile(f.Name, func(path string) error {
		return os.Rename(filepath.Join(w.dir, "results", f.Path), path)
	})
}

func copyFile(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
