// Package fileops runs actions on files: convert, compress, merge, lock and every other
// [Action].
//
//	err := fileops.Run(ctx, pdfops.Lock(), fileops.Args{"password": "s3cret"},
//		fileops.ToDir("out"), fileops.Path("report.pdf"))
//
// The [Spec] of an action is data: it lists the formats and parameters that the action
// accepts. A [Registry] validates a request and finds the action for it. A [Runner] runs
// the action: it checks that the content of each input matches its name, gives the
// action a [Job] with scratch space, and passes the results to a [Sink].
//
// The package contains no engine and imports only the standard library. Each subpackage
// whose name ends in "ops", and pdfread, provides an [Engine]. Package standard collects
// the engines that work on this host.
package fileops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/format"
)

// An Action turns input files into result files.
//
// An Action must be safe for concurrent use. All state of a run, including scratch space
// and results, belongs to the [Job].
type Action interface {
	// Spec describes what the action accepts. It is constant for the lifetime of the
	// value: an action that depends on the host (an engine, a codec) inspects the host
	// in its constructor, not here.
	Spec() Spec

	// Do runs the action. The inputs and parameters of job satisfy one entry of
	// Spec().Accepts. If Do returns an error, its results are discarded. Do must return
	// soon after ctx is done.
	//
	// Use [Fail] for errors that describe a problem of the input or the engine. Every
	// other error is reported as an internal error.
	Do(ctx context.Context, job *Job) error
}

// A Spec describes an action. The registry, the capability matrix, the OpenAPI document
// and the tests know nothing else about it.
type Spec struct {
	// Name is the action's wire name in lower snake case: "convert",
	// "reset_password". Several actions may share a name; the [Registry]
	// offers the union of what they accept and picks the first that fits.
	Name string

	// Engine names the implementation in logs and metrics: "pdfcpu",
	// "libvips 8.16.1".
	Engine string

	// Family groups actions that compete for the same resource: "office", "image",
	// "media", "pdf", "archive", "data". The number of concurrent runs is limited for
	// each family. "" is a family too.
	Family string

	// Summary is one sentence for users, with a full stop.
	Summary string

	// Joint is set if one run takes all inputs together (merge, zip). Otherwise each
	// input has its own run with its own status.
	Joint bool

	// Encrypted is set if the action accepts documents that are encrypted as a whole
	// (unlock). Other actions only receive documents that can be read without a
	// password.
	Encrypted bool

	// Verbatim is set if results are files that the inputs contain (extract). Their
	// content is not compared with their names, because the action did not make either.
	Verbatim bool

	// Results maps the format of an input to that of its results, where convert_to does
	// not name it and it is not the same. The key format.Any is for all other inputs.
	// See [Spec.ResultFormats].
	Results map[format.Format]format.Format

	// MaxBytes is the size of the largest input file that the action reads. A [Runner]
	// rejects larger ones. 0 means that the action has no such limit.
	MaxBytes int64

	// Accepts lists the supported inputs, most specific first.
	Accepts []Accept
}

// CheckSize returns an error that matches [ErrLimit] if a file of n bytes is larger than
// the action reads.
func (s Spec) CheckSize(n int64) error {
	if s.MaxBytes <= 0 || n <= s.MaxBytes {
		return nil
	}
	return Fail(ErrLimit, nil, "the file has %d bytes, more than the limit of %d for this operation", n, s.MaxBytes)
}

// ResultFormats returns the formats that results of the action can have for inputs of
// the given formats and params that [Registry.Resolve] returned for it. It returns nil
// if that is not known before the run, as for the files in an archive.
func (s Spec) ResultFormats(inputs []format.Format, params Params) []format.Format {
	if s.Verbatim {
		return nil
	}
	if to := params.Get("convert_to"); to != "" {
		return []format.Format{format.Parse(to)}
	}
	var out []format.Format
	for _, f := range inputs {
		if to, ok := s.Results[f]; ok {
			f = to
		} else if to, ok := s.Results[format.Any]; ok {
			f = to
		}
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// An Accept pairs input formats with the parameters that are valid for them:
// "for png, jpg and gif, convert_to is one of webp, png, jpg".
type Accept struct {
	Formats []format.Format // format.Any matches all
	Params  Schema

	// Changes lists the parameters that change the file. If it is not empty, a request
	// must give at least one of them a value other than its default. It is for the
	// conversion of a file to its own format, which otherwise changes nothing.
	Changes []string
}

// parse validates args with a.Params, and that they change the file.
func (a Accept) parse(args Args) (Params, error) {
	p, err := a.Params.Parse(args)
	if err != nil || len(a.Changes) == 0 {
		return p, err
	}
	for _, d := range a.Params {
		if slices.Contains(a.Changes, d.Name) && p.Has(d.Name) && !d.isDefault(p.m[d.Name]) {
			return p, nil
		}
	}
	e := &unchangedError{ParamError{Param: a.Changes[0], Reason: "is required", Missing: true}}
	if len(a.Changes) > 1 {
		e.Reason += ", or another parameter that changes the file: " + strings.Join(a.Changes[1:], ", ")
	}
	if d, ok := a.Params.selector(); ok {
		e.Missing = false
		e.Param, e.Reason = d.Name, "is the format of the file; choose another one, or add a parameter that changes the file: "+strings.Join(a.Changes, ", ")
	}
	return Params{}, e
}

// An unchangedError rejects a request that would not change the file, see
// [Accept.Changes].
type unchangedError struct{ ParamError }

func (e *unchangedError) Unwrap() error { return &e.ParamError }

// Func returns an Action that calls do.
func Func(spec Spec, do func(context.Context, *Job) error) Action {
	return &funcAction{spec, do}
}

type funcAction struct {
	spec Spec
	do   func(context.Context, *Job) error
}

func (a *funcAction) Spec() Spec                             { return a.spec }
func (a *funcAction) Do(ctx context.Context, job *Job) error { return a.do(ctx, job) }

// Wrap returns an action with a's Spec that calls around instead of a.Do. Use it to add
// timeouts, concurrency limits and metrics.
func Wrap(a Action, around func(ctx context.Context, job *Job, do func(context.Context, *Job) error) error) Action {
	return Func(a.Spec(), func(ctx context.Context, job *Job) error {
		return around(ctx, job, a.Do)
	})
}

// A Step is one action of a [Chain].
type Step struct {
	Action Action
	Args   func(Params) Args // from the chain's parameters; nil means no arguments
}

// Chain returns an action that runs steps one after the other: the results of a step are
// the inputs of the next. Nothing is copied in between. Each step counts equally for
// progress.
//
//	docxToPNG := fileops.Chain(spec,
//		fileops.Step{Action: office, Args: to("pdf")},
//		fileops.Step{Action: raster, Args: to("png")})
func Chain(spec Spec, steps ...Step) Action {
	return Func(spec, func(ctx context.Context, job *Job) error {
		dir, err := job.Dir()
		if err != nil {
			return err
		}
		files := job.Inputs
		for i, st := range steps {
			var args Args
			if st.Args != nil {
				args = st.Args(job.Params)
			}
			last := i == len(steps)-1
			var next []*File
			sink := SinkFunc(func(_ context.Context, f *File) error {
				kept, err := f.keepIn(dir)
				if err != nil {
					return err
				}
				next = append(next, kept)
				if last {
					return job.addKept(kept)
				}
				return nil
			})
			n := float64(len(steps))
			r, err := job.Runner(float64(i)/n, float64(i+1)/n)
			if err != nil {
				return err
			}
			if err := r.Run(ctx, st.Action, args, sink, files...); err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
			files = next
		}
		return nil
	})
}
