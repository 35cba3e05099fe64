// Package isolate runs actions in separate processes. Each run gets a confined process of
// this program, normally a new one. A file that crashes or compromises a library can
// therefore only spoil its own result. With [Options.Files], a process also serves later
// files of the same owner; then such a file can spoil or read those too, but never files
// of others.
//
// A program that uses the package calls [Main] first. In the server process Main returns
// at once. In a process that the [Pool] of the same name started, Main serves runs and
// does not return.
//
//	func main() {
//		isolate.Main("thumbnails", func(context.Context) ([]fileops.Action, error) {
//			return []fileops.Action{Thumbnail()}, nil
//		})
//		...
//		pool, err := isolate.New("thumbnails", isolate.Options{Sandbox: engine.NewSandbox()})
//		action := pool.Wrap(Thumbnail())
//	}
//
// A program may have several pools, such as its own and that of package standard. Each
// pool has a name, and its call of Main at the start of the program. The pool limits
// processor time, memory and scratch space. Limit the pixels of a picture in the action,
// before it decodes: that is cheaper than to run into the memory limit.
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
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/worktime"
	"github.com/filewright/filewright/trace"
)

// Options configure [New]. The zero value is usable.
type Options struct {
	// Sandbox confines the processes; nil runs them unconfined.
	Sandbox *engine.Sandbox

	// Access lists what the processes may access beyond their own directory.
	Access engine.Access

	// Env lists variables for [Main] in the processes: "name=value".
	Env []string

	// Files is how many runs of one owner (see [fileops.Runner.Owner]) a process may serve;
	// 0 or 1 means that each run gets a new process. Processes are reused only between runs
	// that succeed, with small results, and for about a minute. Nothing is reused for runs
	// without an owner.
	Files int

	Spare  int           // idle processes kept ready; 0 means one for each core
	Limits engine.Limits // of one run; zero fields mean no limit

	TempDir string       // parent of the processes' directories; "" means os.TempDir
	Log     *slog.Logger // events of the processes; nil discards
}

// A Pool keeps idle processes ready. It is safe for concurrent use.
type Pool struct {
	name string
	opts Options
	prog *engine.Program

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	spare []*starting
	kept  []*kept

	setup  sync.Mutex
	dir    string             // parent of the processes' directories; "" before the first start
	server *engine.ForkServer // forks the processes; nil before the first start, or if they are not forked
}

// New returns a pool of processes that call [Main] with the same name. No process starts
// before [Pool.Warm] or the first run. The caller must call [Pool.Close].
func New(name string, o Options) (*Pool, error) {
	if name == "" {
		return nil, errors.New("isolate: a pool needs a name")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("isolate: %w", err)
	}
	o.Spare = cmp.Or(max(o.Spare, 0), runtime.GOMAXPROCS(0))
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.TempDir, err = filepath.Abs(cmp.Or(o.TempDir, os.TempDir())); err != nil {
		return nil, fmt.Errorf("isolate: %w", err)
	}
	p := &Pool{name: name, opts: o, prog: &engine.Program{Name: filepath.Base(self), Path: self, Sandbox: o.Sandbox, Alone: true}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// startTimeout limits how long a process may work until it is ready. Normally it takes a
// tenth of a second.
const startTimeout = time.Minute

// A starting is a process that is being started.
type starting struct {
	done chan struct{}
	w    *process
	err  error
}

// A process serves one run, or several of one owner.
type process struct {
	proc *engine.Process
	from *engine.ForkServer // that forked it; nil if it was started without one
	dir  string             // parent of data and work; the process may not access it
	data string             // inputs, read-only
	work string             // writable
	in   *os.File
	out  *bufio.Reader
	pipe *os.File // the pipe that out reads

	served int           // number of runs
	since  time.Time     // start of the first run
	used   time.Duration // processor time before the current run
	spoke  chan error    // see kept; nil if nothing else reads out
}

// launch starts a process in the background.
func (p *Pool) launch() *starting {
	s := &starting{done: make(chan struct{})}
	p.wg.Go(func() {
		defer close(s.done)
		pprof.SetGoroutineLabels(p.ctx) // a process outlives the call that starts it
		if s.w, s.err = p.start(); s.err != nil && p.ctx.Err() == nil {
			p.opts.Log.Warn("isolated process did not start; trying again", "err", s.err)
			s.w, s.err = p.start()
		}
	})
	return s
}

// starter returns the parent of the processes' directories and the fork server, which
// saves loading the libraries for each start. server is nil if this system has no fork
// server.
func (p *Pool) starter() (dir string, server *engine.ForkServer, err error) {
	p.setup.Lock()
	defer p.setup.Unlock()
	if p.dir == "" {
		if p.dir, err = os.MkdirTemp(p.opts.TempDir, "isolate-"); err != nil {
			return "", nil, err
		}
	}
	if !canFork {
		return p.dir, nil, nil
	}
	if p.server != nil && p.server.Ended() {
		p.opts.Log.Warn("the process that starts isolated processes has stopped; starting another one")
		p.server = nil
	}
	if p.server == nil {
		if p.server, err = p.prog.ForkServer(p.ctx, p.cmd(p.dir)); err != nil {
			return "", nil, err
		}
	}
	return p.dir, p.server, nil
}

// cmd returns the command that all processes share.
func (p *Pool) cmd(dir string) engine.Cmd {
	return engine.Cmd{
		// Before the request there is little garbage to collect.
		Dir: dir, Env: append([]string{roleEnv + "=" + p.name, "GOGC=off"}, p.opts.Env...),
		OnLine: func(line string) { p.opts.Log.Warn("line from an isolated process", "line", line) },
		Access: p.opts.Access,
	}
}

// start starts a process and waits until it is ready.
func (p *Pool) start() (_ *process, err error) {
	parent, server, err := p.starter()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return nil, err
	}
	w := &process{from: server, dir: dir, data: filepath.Join(dir, "in"), work: filepath.Join(dir, "work")}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := errors.Join(os.Mkdir(w.data, 0o700), os.Mkdir(w.work, 0o700)); err != nil {
		return nil, err
	}
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
	w.pipe, w.out = outR, bufio.NewReaderSize(outR, maxMessage)
	cmd := p.cmd(w.work)
	cmd.Files = []*os.File{inR, outW}
	cmd.Access.Read = append(slices.Clone(cmd.Access.Read), w.data)
	if server != nil {
		w.proc, err = server.Start(p.ctx, cmd)
	} else {
		w.proc, err = p.prog.Start(p.ctx, cmd)
	}
	// Only the process has these ends now, so the pipe closes when it ends.
	inR.Close()
	outW.Close()
	if err != nil {
		return nil, err
	}
	late := worktime.AfterFunc(startTimeout, w.proc.Kill, w.proc.Work())
	m, err := w.read() // fails if the process is killed
	late()
	if err == nil && m.Error != nil {
		err = errors.New(m.Error.Detail)
	}
	if err != nil {
		w.proc.Kill()
		return nil, fmt.Errorf("isolated process does not start: %w", errors.Join(err, w.proc.Wait()))
	}
	return w, nil
}

// take returns a ready process, and starts replacements.
func (p *Pool) take(ctx context.Context) (*process, error) {
	for {
		w, err := p.takeOne(ctx)
		if err != nil || w.from == nil || !w.from.Ended() {
			return w, err
		}
		// It ended together with its fork server.
		if err := w.end(); err != nil {
			return nil, err
		}
	}
}

func (p *Pool) takeOne(ctx context.Context) (*process, error) {
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
		p.spare = append(p.spare, s) // for the next run
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

// Close kills all processes. No run may be in progress.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.cancel()
	spare, kept := p.spare, p.kept
	p.spare, p.kept = nil, nil
	p.mu.Unlock()
	p.wg.Wait()
	var errs []error
	for _, k := range kept {
		k.until.Stop()
		errs = append(errs, k.w.end())
	}
	for _, s := range spare {
		if s.err == nil {
			errs = append(errs, s.w.end())
		}
	}
	if p.server != nil {
		errs = append(errs, p.server.Close())
	}
	if p.dir != "" {
		errs = append(errs, os.RemoveAll(p.dir))
	}
	return errors.Join(errs...)
}

// end kills the process and removes its directory.
func (w *process) end() error {
	w.proc.Kill()
	_ = w.proc.Wait() // it was killed, so an error is expected
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
	w.answer()
	var m message
	line, err := w.out.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = errors.New("answer too long")
		}
		return m, err
	}
	err = json.Unmarshal(line, &m)
	return m, err
}

// Wrap returns an action with the Spec of a. It runs the action of [Main] that has the
// same description. Both actions must be constructed in the same way.
func (p *Pool) Wrap(a fileops.Action) fileops.Action {
	spec := a.Spec()
	key := keyOf(spec)
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		return p.run(ctx, key, spec.Name, job)
	})
}

// keyOf returns the name of an action in requests.
func keyOf(s fileops.Spec) string {
	return fmt.Sprint(s.Name, s.Joint, ": ", s.Engine, ": ", s.Summary)
}

func (p *Pool) run(ctx context.Context, key, action string, job *fileops.Job) error {
	ctx, span := trace.Start(ctx, "isolated run", trace.Internal)
	span.String("filewright.action", action)
	err := p.runTraced(ctx, span, key, action, job)
	code := ""
	if err != nil {
		code = fileops.Code(err)
	}
	span.End(code)
	return err
}

func (p *Pool) runTraced(ctx context.Context, span *trace.Span, key, action string, job *fileops.Job) error {
	owner := job.Owner()
	if p.opts.Files <= 1 {
		owner = ""
	}
	if w := p.again(owner); w != nil {
		span.Bool("filewright.reused", true)
		err := p.runIn(ctx, w, owner, key, action, job)
		var died *ended
		if !errors.As(err, &died) {
			return err
		}
		if ctx.Err() != nil {
			return died.error
		}
		// An earlier file may be the reason.
		job.Log.Info("a reused isolated process has ended; trying again in a new one", "err", err)
	}
	w, err := p.take(ctx)
	if err != nil {
		return err
	}
	w.since = time.Now()
	err = p.runIn(ctx, w, owner, key, action, job)
	var died *ended
	if errors.As(err, &died) {
		return died.error
	}
	return err
}

// maxWarnings is more than a [fileops.Job] records of one run.
const maxWarnings = 100

// limits returns the limits of the processes for owner.
func (p *Pool) limits(owner string) engine.Limits {
	l := p.opts.Limits
	if owner != "" && l.CPU > 0 {
		l.CPU += reuseWork // which earlier files may have used
	}
	return l
}

// An ended error reports that the process has ended during a run, before it had any result.
type ended struct{ error }

func (e *ended) Unwrap() error { return e.error }

// runIn runs an action in w, and ends w or keeps it for owner.
func (p *Pool) runIn(ctx context.Context, w *process, owner, key, action string, job *fileops.Job) (err error) {
	keep := false
	defer func() {
		if keep {
			p.keep(w, owner)
		} else if cerr := w.end(); cerr != nil {
			job.Log.Error("directory of an isolated process not removed", "err", cerr)
		}
	}()
	unhook := context.AfterFunc(ctx, w.proc.Kill)
	defer unhook()
	counted := worktime.Count(ctx, w.meter())
	defer counted()
	if w.served == 0 {
		if err := w.proc.Limit(p.limits(owner)); err != nil {
			return err
		}
	}
	w.served++
	r, err := w.request(key, action, job)
	if err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := w.in.Write(append(line, '\n')); err != nil {
		return &ended{w.died(ctx, err)}
	}
	var results []file
	var warnings []fileops.Warning
	sent := int64(0) // bytes of results
	for {
		m, err := w.read()
		switch {
		case err != nil:
			return &ended{w.died(ctx, err)}
		case m.Warning != nil:
			if len(warnings) < maxWarnings && !slices.Contains(warnings, *m.Warning) {
				warnings = append(warnings, *m.Warning)
			}
		case m.Result != nil:
			if m.Result.Path == "" {
				if m.Result.Size < 0 || m.Result.Size > sentResults-sent {
					return &ended{w.died(ctx, fmt.Errorf("an isolated process sends %d bytes of results, after %d", m.Result.Size, sent))}
				}
				sent += m.Result.Size
				m.Result.content = make([]byte, m.Result.Size)
				if _, err := io.ReadFull(w.out, m.Result.content); err != nil {
					return &ended{w.died(ctx, err)}
				}
			}
			results = append(results, *m.Result)
		case m.Error != nil:
			return m.Error.failure()
		case m.Done:
			counted() // while the process can be measured
			for _, warning := range warnings {
				job.Warn(warning.Code, "%s", warning.Message)
			}
			again := owner != "" && m.Again && !slices.ContainsFunc(results, file.inDir) && p.reusable(w)
			if !again { // so results in its directory do not change after the check
				w.proc.Kill()
				_ = w.proc.Wait() // it was killed, so an error is expected
			}
			for _, f := range results {
				if err := w.deliver(job, f); err != nil {
					return err
				}
			}
			if again {
				if err := w.wipe(); err != nil {
					job.Log.Warn("an isolated process is not reused", "err", err)
					return nil
				}
				keep = unhook() // else it is being killed
			}
			return nil
		default:
			job.Progress(m.Progress)
		}
	}
}

// request links the inputs of a job into the directory of the process and describes the job.
func (w *process) request(key, action string, job *fileops.Job) (request, error) {
	r := request{Key: key, Action: action, Args: job.Params.Args(), Most: job.MaxOutput(), Extra: make(map[string]file)}
	put := func(f *fileops.File) (file, error) {
		path := filepath.Join(w.data, strconv.Itoa(len(r.Inputs)+len(r.Extra)))
		return file{Path: path, Name: f.Name()}, f.LinkTo(path)
	}
	for _, f := range job.Inputs {
		in, err := put(f)
		if err != nil {
			return request{}, err
		}
		r.Inputs = append(r.Inputs, in)
	}
	for name, f := range job.Extra {
		var err error
		if r.Extra[name], err = put(f); err != nil {
			return request{}, err
		}
		delete(r.Args, name)
	}
	return r, nil
}

// died returns the error of a process that ended during its run.
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
	return fileops.Fail(fileops.ErrEngine, crash{errors.Join(err, cause)}, "the engine could not process the file")
}

// A crash reports that a process ended during its run.
type crash struct{ error }

func (c crash) Unwrap() error { return c.error }

// Crashed marks the error for code that counts crashes.
func (crash) Crashed() bool { return true }

// inDir reports whether f is a result in resultsDir.
func (f file) inDir() bool { return f.Path != "" }

// deliver adds a result to the job. The process may be compromised, so a result in its directory is
// checked like any other.
func (w *process) deliver(job *fileops.Job, f file) error {
	if !f.inDir() {
		return job.WriteBytes(filepath.Base(f.Name), f.content)
	}
	made, err := engine.Open(w.work, filepath.Join(resultsDir, f.Path))
	if err != nil {
		return fileops.Fail(fileops.ErrEngine, err, "")
	}
	defer made.Close()
	return job.WriteFile(f.Name, func(path string) error { return engine.Take(made, path) })
}
