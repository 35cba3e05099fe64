package fileops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/format"
)

// Args are parameters before validation. The values have the types that encoding/json
// produces (string, float64, bool); Go integers are accepted too. The value of an Upload
// is a *[File]. nil means that the value is absent.
type Args map[string]any

// Text is a value of [Args] from an untyped source, such as a command line or a query
// string. The type of the parameter decides whether it is parsed as a string, a number
// or a boolean.
type Text string

// A Sink receives the results of a run after the run has succeeded.
type Sink interface {
	// Put stores one complete result. f is valid until Put returns. If f.Path reports a
	// path, Put may move that file instead of copying it. If Put fails, nothing may
	// remain visible.
	Put(ctx context.Context, f *File) error
}

// SinkFunc adapts a function to a [Sink].
type SinkFunc func(ctx context.Context, f *File) error

// Put calls s.
func (s SinkFunc) Put(ctx context.Context, f *File) error { return s(ctx, f) }

// ToDir returns a sink that writes results to a directory and creates it if necessary.
// It never replaces a file: if the name is taken, for instance by the input, the result
// gets a number ("report-2.pdf").
func ToDir(dir string) Sink {
	return SinkFunc(func(_ context.Context, f *File) error {
		if err := putInto(dir, f); err != nil {
			return &pathError{what: fmt.Sprintf("cannot write to %q", dir), err: err}
		}
		return nil
	})
}

func putInto(dir string, f *File) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if p, ok := f.Path(); ok {
		if err := place(p, dir, f.Name()); err == nil {
			return nil // no copy on the same file system
		}
	}
	w, err := os.CreateTemp(dir, ".fileops-")
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f.Reader())
	if err = errors.Join(err, w.Close()); err == nil {
		err = place(w.Name(), dir, f.Name())
	}
	if err != nil {
		os.Remove(w.Name())
	}
	return err
}

// place moves a file into dir, under the first free name.
func place(path, dir, name string) error {
	const mostNames = 10_000
	for i := 1; i <= mostNames; i++ {
		dst := filepath.Join(dir, numbered(name, i))
		switch err := os.Link(path, dst); {
		case err == nil:
			return os.Remove(path)
		case errors.Is(err, os.ErrExist):
			continue
		}
		// On a file system without hard links, reserve the name first.
		w, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err = errors.Join(w.Close(), os.Rename(path, dst)); err != nil {
			os.Remove(dst)
		}
		return err
	}
	return fmt.Errorf("%s: %w, and so do %d more with a number", name, os.ErrExist, mostNames-1)
}

// numbered returns the i-th name to try for a file. It is no longer than file systems
// permit.
func numbered(name string, i int) string {
	if i == 1 {
		return name
	}
	base := name[:strings.LastIndexByte(name, '\\')+1] + format.Base(name)
	suffix := fmt.Sprintf("-%d%s", i, name[len(base):])
	const longest = 255 // bytes
	return strings.ToValidUTF8(base[:min(len(base), max(1, longest-len(suffix)))], "") + suffix
}

// A Runner runs actions. The zero value is ready to use.
type Runner struct {
	TempDir  string             // parent of the scratch directories; "" means os.TempDir
	Log      *slog.Logger       // nil discards
	Progress func(done float64) // from 0 to 1, never falls; called from any goroutine; may be nil
	Warn     func(Warning)      // called for each warning before the results of a successful run are passed on; may be nil

	// MaxOutput limits the total size in bytes of the results of a run; 0 means no
	// limit. A run that exceeds it fails with [ErrLimit] while it writes, before the
	// disk is full.
	MaxOutput int64

	// Owner identifies whom the files belong to, such as an account. A process that has read a
	// file may read others of the same owner. If Owner is "", no process that keeps state of its
	// files is reused, see package isolate.
	Owner string
}

// Run validates args, runs a on the inputs and passes the results to sink. If a is not
// joint, Run runs it once for each input and stops at the first failure.
func (r *Runner) Run(ctx context.Context, a Action, args Args, sink Sink, inputs ...*File) error {
	if len(inputs) == 0 {
		return errNoInput
	}
	reg, err := NewRegistry(a)
	if err != nil {
		return err
	}
	groups := [][]*File{inputs}
	if !a.Spec().Joint {
		groups = slices.Collect(slices.Chunk(inputs, 1))
	}
	for i, g := range groups {
		_, params, err := reg.Resolve(a.Spec().Name, formatsOf(g), args)
		if err != nil {
			return err
		}
		one := *r
		if r.Progress != nil {
			one.Progress = func(done float64) { r.Progress((float64(i) + done) / float64(len(groups))) }
		}
		if err := one.Do(ctx, a, params, sink, g...); err != nil {
			return err
		}
	}
	return nil
}

// Do runs a once with the params that [Registry.Resolve] returned for it.
//
// Do compares the content of each input that a accepts by name with that name before the
// run, and that of each result after it. These checks fail with [ErrFormatMismatch],
// [ErrCorruptInput], [ErrPasswordRequired] or [ErrEngine]. If ctx stops the run, the
// error wraps its cause.
func (r *Runner) Do(ctx context.Context, a Action, params Params, sink Sink, inputs ...*File) (err error) {
	if len(inputs) == 0 {
		return errNoInput
	}
	spec := a.Spec()
	log := r.Log
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	job := &Job{
		Params: params, progress: r.Progress, tempDir: r.TempDir, maxOutput: max(r.MaxOutput, 0), verbatim: spec.Verbatim, owner: r.Owner,
		Log: log.With("action", spec.Name, "engine", spec.Engine),
	}
	defer job.cleanup()
	defer func() {
		for _, f := range job.Inputs {
			f.close()
		}
		for _, f := range job.Extra {
			f.close()
		}
	}()
	for _, f := range inputs {
		g, err := f.handle()
		if err != nil {
			return err
		}
		job.Inputs = append(job.Inputs, g)
		if err := spec.CheckSize(g.Size()); err != nil {
			return inAction(spec.Name, err)
		}
		if spec.names(g.Format()) {
			if err := checkInput(g); err != nil && (!spec.Encrypted || !errors.Is(err, format.ErrEncrypted)) {
				return inAction(spec.Name, err)
			}
		}
	}
	for name := range params.Uploads() {
		return inAction(spec.Name, &ParamError{Param: name, Reason: "is the key of an uploaded file, which has no meaning here; pass the file"})
	}
	for name, f := range params.files() {
		g, err := f.handle()
		if err != nil {
			return err
		}
		if job.Extra == nil {
			job.Extra = make(map[string]*File)
		}
		job.Extra[name] = g
		if err := checkInput(g); err != nil {
			return inAction(spec.Name, ofParameter(name, err))
		}
	}
	defer func() {
		if p := recover(); p != nil { // libraries panic on bad input; see docs/design.md
			job.Log.Error("action panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = Fail(ErrEngine, fmt.Errorf("%s: panic: %v", spec.Name, p), "the engine could not process the file")
		}
	}()
	err = a.Do(ctx, job)
	if ctx.Err() != nil {
		return inAction(spec.Name, context.Cause(ctx))
	}
	if err != nil {
		return inAction(spec.Name, err)
	}
	if r.Warn != nil {
		for _, w := range job.warnings {
			r.Warn(w)
		}
	}
	if err := job.finish(ctx, sink); err != nil {
		return inAction(spec.Name, err)
	}
	job.Progress(1)
	return nil
}

// ofParameter returns the failure of the file of an Upload parameter.
func ofParameter(name string, err error) error {
	return &Failure{Kind: ErrParameter, Message: fmt.Sprintf("parameter %q: %s", name, Message(err)), Err: err}
}

// An actionError adds the name of the action to the error of a run.
type actionError struct {
	action string
	err    error
}

func (e *actionError) Error() string { return e.action + ": " + e.err.Error() }
func (e *actionError) Unwrap() error { return e.err }

// inAction prefixes err with the name of the action, unless a nested run has done so.
func inAction(name string, err error) error {
	var a *actionError
	if errors.As(err, &a) && a.action == name && a.Error() == err.Error() {
		return err
	}
	return &actionError{name, err}
}

// Run runs a with the zero [Runner].
func Run(ctx context.Context, a Action, args Args, sink Sink, inputs ...*File) error {
	return new(Runner).Run(ctx, a, args, sink, inputs...)
}
