package fileops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/filewright/filewright/fileops/format"
)

// Args are parameters as a caller gives them, before validation. The values
// are those encoding/json produces (string, float64, bool); Go integers are
// accepted too. nil stands for an absent value.
type Args map[string]any

// Text is a value of [Args] that comes from where everything is text, such as a
// command line or a query string. The parameter it is for decides whether it is
// read as a string, a number or a boolean.
type Text string

// A Sink receives the results of a run, once the run has succeeded.
type Sink interface {
	// Put stores one complete result. f is valid until Put returns; if
	// f.Path reports a path, Put may move that file away instead of
	// copying it. Nothing may remain visible if Put fails.
	Put(ctx context.Context, f *File) error
}

// SinkFunc adapts a function to a [Sink].
type SinkFunc func(ctx context.Context, f *File) error

// Put calls s.
func (s SinkFunc) Put(ctx context.Context, f *File) error { return s(ctx, f) }

// ToDir returns a sink that puts results into an existing directory,
// replacing files of the same name.
func ToDir(dir string) Sink {
	return SinkFunc(func(_ context.Context, f *File) error {
		dst := filepath.Join(dir, f.Name())
		if p, ok := f.Path(); ok && os.Rename(p, dst) == nil {
			return nil // same file system: no copy
		}
		w, err := os.CreateTemp(dir, ".fileops-")
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f.Reader())
		if err = errors.Join(err, w.Close()); err == nil {
			err = os.Rename(w.Name(), dst)
		}
		if err != nil {
			os.Remove(w.Name())
		}
		return err
	})
}

// A Runner runs actions. The zero value is ready to use.
type Runner struct {
	TempDir  string             // parent of scratch directories; "" means os.TempDir
	Log      *slog.Logger       // nil discards
	Progress func(done float64) // from 0 to 1, never falling; called from any goroutine; may be nil

	// MaxOutput is how many bytes all results of a run may have together; 0
	// means no limit. A run that would make more is ended with [ErrLimit] while it
	// writes, not when the disk is full.
	MaxOutput int64
}

// Run validates args, runs a on the inputs and hands the results to sink. If a
// is not joint it is run once per input; Run stops at the first failure.
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

// Do is one run of a with parameters that [Registry.Resolve] returned for it.
//
// Before a runs, the content of each input that a accepts by name is compared
// with that name, and afterwards each result; [ErrFormatMismatch],
// [ErrCorruptInput], [ErrPasswordRequired] and [ErrEngine] come from there.
// If ctx ends the run, the error wraps its cause.
func (r *Runner) Do(ctx context.Context, a Action, params Params, sink Sink, inputs ...*File) (err error) {
	if len(inputs) == 0 {
		return errNoInput
	}
	spec := a.Spec()
	log := r.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	job := &Job{
		Params: params, progress: r.Progress, tempDir: r.TempDir, maxOutput: max(r.MaxOutput, 0),
		Log: log.With("action", spec.Name, "engine", spec.Engine),
	}
	defer job.cleanup()
	for _, f := range inputs {
		g := *f // a handle of our own
		g.f = nil
		if err := g.open(); err != nil {
			return err
		}
		defer g.close()
		if spec.names(g.Format()) {
			if err := checkInput(&g); err != nil && !(spec.Encrypted && errors.Is(err, format.ErrEncrypted)) {
				return fmt.Errorf("%s: %w", spec.Name, err)
			}
		}
		job.Inputs = append(job.Inputs, &g)
	}
	defer func() {
		if p := recover(); p != nil { // libraries panic on bad input; see docs/design.md
			job.Log.Error("action panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = Fail(ErrEngine, fmt.Errorf("%s: panic: %v", spec.Name, p), "the engine could not process the file")
		}
	}()
	err = a.Do(ctx, job)
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", spec.Name, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", spec.Name, err)
	}
	if err := job.finish(ctx, sink); err != nil {
		return fmt.Errorf("%s: %w", spec.Name, err)
	}
	job.Progress(1)
	return nil
}

// Run runs a with the zero [Runner].
func Run(ctx context.Context, a Action, args Args, sink Sink, inputs ...*File) error {
	return new(Runner).Run(ctx, a, args, sink, inputs...)
}
