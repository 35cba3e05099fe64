// Package engine finds and runs the external programs that actions use.
//
// Each program runs with minimal rights: with only the listed environment variables; in
// the job's scratch directory; with limits on CPU time, memory, processes and files; and
// in a [Sandbox], if there is one. When the context is done, the program and everything
// that it has started are killed.
package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/filewright/filewright/internal/worktime"
	"github.com/filewright/filewright/trace"
)

// A Program is an external program that exists and answered [Find].
type Program struct {
	Name    string // base name, for messages and logs
	Path    string // absolute
	Version string // "5.1.9"; "" if its answer contains no version number

	Sandbox *Sandbox // that confines it; may be nil

	// Alone reports that the program needs no other file of its directory. If it is
	// false, a program outside the host's program directories (such as /usr/bin) may
	// read and execute everything in its own directory, because it may ship libraries
	// there.
	Alone bool
}

// None is the program name that disables a program: [Find] fails with [ErrDisabled].
const None = "none"

// ErrDisabled is the error of [Find] for the name [None].
var ErrDisabled = errors.New("switched off by configuration")

var versionNumber = regexp.MustCompile(`\d+(\.\d+)+`)

// Find searches for the first of names that exists and runs it with versionArgs, to
// check that it works on this host. A name without a slash is searched for in PATH. If
// none of the names exists, the error matches exec.ErrNotFound.
//
// The program runs without a sandbox; see [Sandbox.Find].
func Find(ctx context.Context, versionArgs []string, names ...string) (*Program, error) {
	return (*Sandbox)(nil).Find(ctx, versionArgs, names...)
}

// Find is the function [Find] for programs that run in s, in this check and later. s may
// be nil.
func (s *Sandbox) Find(ctx context.Context, versionArgs []string, names ...string) (*Program, error) {
	var errs []error
	for _, name := range names {
		if name == None {
			return nil, ErrDisabled
		}
		path, err := exec.LookPath(name)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if errors.Is(err, fs.ErrNotExist) { // for a name with a slash
			err = fmt.Errorf("%w: %w", exec.ErrNotFound, err)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p := &Program{Name: filepath.Base(name), Path: path, Sandbox: s}
		if err := p.askVersion(ctx, versionArgs); err != nil {
			errs = append(errs, err)
			continue
		}
		return p, nil
	}
	if len(errs) == 0 {
		return nil, exec.ErrNotFound
	}
	return nil, errors.Join(errs...)
}

func (p *Program) askVersion(ctx context.Context, args []string) error {
	dir, err := os.MkdirTemp("", "engine-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := &tail{max: 16 << 10}
	c := Cmd{Args: args, Dir: dir, Stdout: out, OnLine: func(line string) { fmt.Fprintln(out, line) }}
	err = p.RunWithin(ctx, c, 30*time.Second, fmt.Errorf("%s did not report its version in time", p.Name))
	if err != nil {
		return err
	}
	p.Version = versionNumber.FindString(out.String())
	return nil
}

// Limits restrict one run. Zero fields mean no limit. The context limits the wall time
// of the run.
type Limits struct {
	CPU      time.Duration // total of all threads, rounded up to seconds
	Memory   int64         // address space of each process, bytes
	FileSize int64         // largest file that it may write, bytes

	// These are checked several times a second; mappings of removed files are checked
	// once a second.
	Resident  int64 // memory of all processes together, bytes, including shared memory
	Scratch   int64 // all files together, bytes: in writable directories, and removed files that are still open
	Files     int   // files and directories in writable directories
	Processes int   // at the same time
}

// A Cmd is one run of a [Program].
type Cmd struct {
	Args   []string
	Dir    string   // scratch directory: working directory, HOME and TMPDIR
	Env    []string // "name=value", added to PATH, HOME, TMPDIR, LANG and LC_ALL
	Stdin  io.Reader
	Stdout io.Writer         // nil discards
	OnLine func(line string) // called for each line of standard error; may be nil
	Limits Limits

	// Files are inherited by the program as descriptors 3 and up.
	Files []*os.File

	Access Access // its rights, if it runs in a [Sandbox]

	forks bool // it is a [ForkServer]: its processes are not part of its run
}

// Run runs c and waits for the program and everything that it has started. If the
// program fails, Run fails with an *[ExitError]. If the context stops the run, it fails
// with the cause of the context.
func (p *Program) Run(ctx context.Context, c Cmd) error {
	proc, err := p.Start(ctx, c)
	if err != nil {
		return err
	}
	return proc.Wait()
}

// A Process is a running program.
type Process struct {
	ctx    context.Context // the caller's: stops the process, see Start
	name   string
	dirs   []string // where it may write
	pid    int
	end    func() error         // waits for the process and its pipes
	spent  func() time.Duration // processor time of the ended process and the children that it waited for; nil: unknown
	counts func()               // ends counting its work for the caller
	forget func()               // releases the process id; nil if end does that
	mark   mark
	stderr *tail
	span   *trace.Span
	lines  *lines
	unhook func() bool
	once   sync.Once
	err    error
	gone   chan struct{} // closed when the process has ended

	large map[string]int64 // files of Limits.FileSize and more that were there before it, with their sizes

	mu       sync.Mutex
	ended    bool   // Wait has finished: another process may have the id now
	watched  Limits // the limits that watch checks
	watching bool
	exceeded string // the limit that it was killed for
}

// Start starts c, which runs until it exits, [Process.Kill] is called or ctx is done.
// The caller must call [Process.Wait].
func (p *Program) Start(ctx context.Context, c Cmd) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return p.start(ctx, c, newMark())
}

func (p *Program) start(ctx context.Context, c Cmd, m mark) (*Process, error) {
	proc := p.process(ctx, c, m)
	_, proc.span = trace.Start(ctx, "engine run", trace.Internal)
	proc.span.String("filewright.program", p.Name)
	proc.span.String("filewright.version", p.Version)
	if err := p.launch(c, proc); err != nil {
		proc.span.End("engine_unavailable")
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	proc.counts = worktime.Count(ctx, proc.Work())
	proc.started(c.Limits)
	return proc, nil
}

// process returns a Process that is not started yet.
func (p *Program) process(ctx context.Context, c Cmd, m mark) *Process {
	proc := &Process{ctx: ctx, name: p.Name, dirs: writable(c), mark: m, stderr: &tail{max: 4 << 10}, gone: make(chan struct{})}
	proc.large = largeFiles(proc.dirs, c.Limits.FileSize)
	if c.OnLine != nil {
		proc.lines = &lines{each: c.OnLine}
	}
	return proc
}

// largeFiles returns the files below dirs that have at least limit bytes, with their sizes. It
// returns none if limit is 0.
func largeFiles(dirs []string, limit int64) map[string]int64 {
	if limit <= 0 {
		return nil
	}
	var files map[string]int64
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() { // otherwise a directory, or already removed
				if info, err := d.Info(); err == nil && info.Size() >= limit {
					if files == nil {
						files = make(map[string]int64)
					}
					files[path] = info.Size()
				}
			}
			return nil
		})
	}
	return files
}

// writable returns the directories that are watched for the limits of c, without
// directories that are below another one.
func writable(c Cmd) []string {
	all := append([]string{c.Dir}, c.Access.Write...)
	for i := range all {
		all[i] = filepath.Clean(all[i])
	}
	slices.Sort(all)
	var dirs []string
	for _, dir := range all {
		within := func(parent string) bool { return dir == parent || strings.HasPrefix(dir, parent+"/") }
		if dir != "." && dir != "/" && !within("/proc") && !slices.ContainsFunc(dirs, within) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// errors returns the writer for the standard error of the process.
func (p *Process) errors() io.Writer {
	if p.lines == nil {
		return p.stderr
	}
	return io.MultiWriter(p.stderr, p.lines)
}

// started applies the context and the limits to a process that has started.
func (p *Process) started(l Limits) {
	p.unhook = context.AfterFunc(p.ctx, p.Kill)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchFor(l)
}

// pipeDelay is how long we wait for a grandchild that keeps a pipe open.
const pipeDelay = 2 * time.Second

// command converts c to a command of package os/exec.
func (p *Program) command(c Cmd, proc *Process) *exec.Cmd {
	cmd := exec.Command(p.Path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"HOME=" + c.Dir,
		"TMPDIR=" + c.Dir,
		"LANG=C.UTF-8",
		"LC_ALL=C.UTF-8",
	}, c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = c.Stdin, c.Stdout, c.Files
	cmd.Stderr = proc.errors()
	cmd.WaitDelay = pipeDelay
	return cmd
}

// watchFor starts watching the process for the limits of l. p.mu is held.
func (p *Process) watchFor(l Limits) {
	w := &p.watched
	w.Resident, w.Scratch = cmp.Or(l.Resident, w.Resident), cmp.Or(l.Scratch, w.Scratch)
	w.Processes, w.Files = cmp.Or(l.Processes, w.Processes), cmp.Or(l.Files, w.Files)
	w.CPU, w.FileSize = cmp.Or(l.CPU, w.CPU), cmp.Or(l.FileSize, w.FileSize) // for ignored
	if !p.watching && w.any() {
		p.watching = true
		go p.watch(nil, func() Limits {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.watched
		})
	}
}

// any reports whether l has a limit to watch.
func (l Limits) any() bool { return l.Resident > 0 || l.Scratch > 0 || l.Processes > 0 || l.Files > 0 }

// Watch kills the process if it exceeds Resident, Scratch, Files or Processes of l,
// until stop is called. It is for processes that serve several files, and costs nothing
// between them. See [Process.Exceeded].
func (p *Process) Watch(l Limits) (stop func()) {
	if !l.any() {
		return func() {}
	}
	done := make(chan struct{})
	go p.watch(done, func() Limits { return l })
	stopGroup := p.limitGroup(l)
	return sync.OnceFunc(func() {
		close(done)
		stopGroup()
	})
}

// Exceeded names the limit that the process was killed for; "" if there was none.
func (p *Process) Exceeded() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exceeded
}

// watch kills the process when it exceeds a limit, until done is closed.
func (p *Process) watch(done <-chan struct{}, limits func() Limits) {
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case <-p.gone:
			return
		case <-t.C:
		}
		// Listing the mappings takes as long as everything else together.
		if what := p.over(limits(), n%5 == 4); what != "" {
			p.mu.Lock()
			if !p.ended { // otherwise the limit was not the reason
				p.exceeded = what
			}
			p.mu.Unlock()
			p.Kill()
			return
		}
	}
}

// over names the limit that the process exceeds, or returns "".
func (p *Process) over(l Limits, mappings bool) string {
	if l.Resident > 0 || l.Processes > 0 || l.Scratch > 0 {
		pids := p.members()
		if l.Processes > 0 && len(pids) > l.Processes {
			return "number of processes"
		}
		if l.Resident > 0 || l.Scratch > 0 {
			removed, shared := hidden(pids, p.dirs, mappings)
			if l.Resident > 0 && memory(pids)+shared > l.Resident {
				return memoryLimit
			}
			if l.Scratch > 0 && removed > l.Scratch {
				return "scratch space"
			}
			l.Scratch -= min(removed, max(l.Scratch-1, 0)) // 0 means no limit
		}
	}
	if l.Scratch > 0 || l.Files > 0 {
		bytes, files := used(p.dirs, l.Scratch, l.Files)
		if l.Scratch > 0 && bytes > l.Scratch {
			return "scratch space"
		}
		if l.Files > 0 && files > l.Files {
			return "number of files"
		}
	}
	return ""
}

// memoryLimit is the name of a limit for users.
const memoryLimit = "memory"

// members returns the ids of the processes of the run.
func (p *Process) members() []int {
	if pids := p.mark.members(); len(pids) > 0 || p.pid == 0 {
		return pids
	}
	return []int{p.pid} // there is no mark, or /proc cannot be read
}

// Pid returns the process id, which is also the id of the process group.
func (p *Process) Pid() int { return p.pid }

// Memory returns the memory in bytes of the process and everything that it has started.
// Shared memory counts if one of them has it open.
func (p *Process) Memory() int64 {
	pids := p.members()
	_, shared := hidden(pids, p.dirs, false)
	return memory(pids) + shared
}

// Limit sets the limits that are not zero. They must not be higher than the current
// limits. Processor time that was used before counts. After [Process.Wait] it does
// nothing.
func (p *Process) Limit(l Limits) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	err := setLimits(p.pid, l, mark{})
	if errors.Is(err, syscall.ESRCH) { // it has just ended
		return nil
	}
	if err != nil {
		return err
	}
	p.watchFor(l)
	return p.mark.group.limit(p.watched, p.dirs)
}

// Kill immediately kills the process and everything that it has started, even processes
// that have left its group. It does not wait. After [Process.Wait] it does nothing.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.mark.kill()
	}
}

// Wait waits for the process to end and returns the same error as [Program.Run]. It may
// be called several times and concurrently.
func (p *Process) Wait() error {
	p.once.Do(func() {
		err := p.end()
		p.Kill() // kill leftover processes
		outOfMemory := err != nil && p.mark.group.outOfMemory()
		p.mu.Lock()
		if p.ended = true; outOfMemory && p.exceeded == "" {
			p.exceeded = memoryLimit
		}
		p.mu.Unlock()
		if p.counts != nil {
			p.counts()
		}
		if p.forget != nil {
			p.forget()
		}
		close(p.gone)
		if p.unhook != nil {
			p.unhook()
		}
		if p.lines != nil {
			p.lines.flush()
		}
		p.err = p.result(err)
		p.span.End(p.spanCode())
	})
	return p.err
}

// spanCode returns the error code for the span of a process that has ended.
func (p *Process) spanCode() string {
	switch {
	case p.err == nil:
		return ""
	case p.ctx.Err() != nil:
		return "stopped"
	}
	return "engine_failed"
}

// total returns the processor time of a process that has ended and of the children that
// it waited for, 0 if that is unknown. It reports whether the process has ended.
func (p *Process) total() (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended || p.spent == nil {
		return 0, p.ended
	}
	return p.spent(), true
}

func (p *Process) result(err error) error {
	limit := p.ignored(err)
	if err == nil && limit == 0 {
		return nil
	}
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	if limit == 0 && errors.Is(err, exec.ErrWaitDelay) {
		return nil // it succeeded, and only its pipes were still open
	}
	p.mu.Lock()
	e := &ExitError{Program: p.name, Code: -1, Stderr: p.stderr.String(), Exceeded: p.exceeded}
	p.mu.Unlock()
	if limit != 0 {
		e.Signal = limit
		return e
	}
	st, ok := waitStatus(err)
	if !ok {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	e.Code = st.ExitStatus() // -1 for a signal
	if st.Signaled() {
		e.Signal = st.Signal()
	}
	return e
}

// exited is the error of a process that package os/exec did not start.
type exited syscall.WaitStatus

func (e exited) Error() string { return "the process has failed" }

// waitStatus returns the wait status of a process from its error.
func waitStatus(err error) (st syscall.WaitStatus, ok bool) {
	var e exited
	if errors.As(err, &e) {
		return syscall.WaitStatus(e), true
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		st, ok = exit.Sys().(syscall.WaitStatus)
	}
	return st, ok
}

// An ExitError reports that a program failed. Its Error text contains only the program's
// name and exit code and is safe to show. Stderr may contain paths.
type ExitError struct {
	Program string
	Code    int            // -1 if a signal killed it
	Signal  syscall.Signal // 0 if there was no signal; SIGXCPU and SIGXFSZ mean a limit
	Stderr  string         // the last 4 KiB

	// Exceeded names the watched limit of [Limits] that the program was killed for, such
	// as "memory".
	Exceeded string
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Exceeded != "" {
		return fmt.Sprintf("%s exceeded its limit: %s", e.Program, e.Exceeded)
	}
	if e.Signal != 0 {
		return fmt.Sprintf("%s was ended by a signal (%s)", e.Program, e.Signal)
	}
	return fmt.Sprintf("%s failed with exit code %d", e.Program, e.Code)
}

// StderrTail returns Stderr. Code that logs errors can use it without knowing this type.
func (e *ExitError) StderrTail() string { return e.Stderr }

// Limit reports whether the program was killed because of its [Limits]. A program that
// cannot allocate memory has to report that itself.
func (e *ExitError) Limit() bool {
	return e.Exceeded != "" || e.Signal == sigXCPU || e.Signal == sigXFSZ
}

// Crashed reports whether the program died by a signal that came neither from its
// [Limits] nor from a user or service manager.
func (e *ExitError) Crashed() bool { return e.Signal != 0 && !e.Limit() && !e.Stopped() }

// Stopped reports whether the program was stopped from outside, for example by a service
// manager that stops all processes of a service.
func (e *ExitError) Stopped() bool {
	return e.Exceeded == "" && (e.Signal == syscall.SIGTERM || e.Signal == syscall.SIGINT || e.Signal == syscall.SIGHUP)
}

// A tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	max int
	b   []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - t.max; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "�")
}

// lines is a writer that calls each with every line it receives. "\r" also ends a line,
// because progress displays use it. Lines longer than 64 KiB are cut.
type lines struct {
	each func(string)
	b    []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.b = append(l.b, p...)
	for {
		i := bytes.IndexAny(l.b, "\r\n")
		if i < 0 {
			break
		}
		if i > 0 {
			l.each(string(l.b[:i]))
		}
		l.b = l.b[i+1:]
	}
	if len(l.b) > 64<<10 {
		l.flush()
	}
	return len(p), nil
}

func (l *lines) flush() {
	if len(l.b) > 0 {
		l.each(string(l.b))
		l.b = nil
	}
}
