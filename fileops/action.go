// Package fileops runs actions on files: convert, compress, merge, lock and
// whatever else implements [Action].
//
//	err := fileops.Run(ctx, pdfops.Lock(), fileops.Args{"password": "s3cret"},
//		fileops.ToDir("out"), fileops.Path("report.pdf"))
//
// An action has a [Spec], which is data: the formats and parameters that it takes. A
// [Registry] validates a request and finds the action for it. A [Runner] runs the
// action: it compares the content of the inputs with their names, gives the action a
// [Job] with scratch space, and hands the results to a [Sink].
//
// The package holds no engine and imports only the standard library. Each package below
// it whose name ends in "ops", and pdfread, has an [Engine]. Package standard collects
// those that work on this host.
package fileops

import (
	"context"
	"fmt"

	"github.com/filewright/filewright/fileops/format"
)

// An Action turns input files into result files.
//
// An Action must be safe for concurrent use. Everything that belongs to one
// run, including scratch space and results, belongs to the [Job].
type Action interface {
	// Spec describes what the action accepts. It is constant for the
	// lifetime of the value: an action that depends on the host (an engine,
	// a codec) looks at the host when it is constructed, not here.
	Spec() Spec

	// Do runs the action. The inputs and parameters of job satisfy one entry
	// of Spec().Accepts. If Do returns an error nothing it wrote is kept. Do
	// must return soon after ctx is done.
	//
	// Errors that say what is wrong with the input or the engine are made
	// with [Fail]; any other is reported as an internal error.
	Do(ctx context.Context, job *Job) error
}

// A Spec describes an action: it is all that a registry, the capability
// matrix, the OpenAPI document and the tests know about it.
type Spec struct {
	// Name is the action's wire name in lower snake case: "convert",
	// "reset_password". Several actions may share a name; the [Registry]
	// offers the union of what they accept and picks the first that fits.
	Name string

	// Engine names the implementation in logs and metrics: "pdfcpu",
	// "libvips 8.16.1".
	Engine string

	// Family groups actions that compete for the same resource: "office",
	// "image", "media", "pdf", "archive", "data". How many runs of a family go on
	// at once is limited together. "" is a family too.
	Family string

	// Summary is one sentence for people, ending in a full stop.
	Summary string

	// Joint is set if one run takes all inputs together (merge, zip).
	// Otherwise every input is a run of its own, with its own status.
	Joint bool

	// Encrypted is set if the action takes documents that are encrypted as a
	// whole (unlock). All others get only those that can be looked into.
	Encrypted bool

	// Accepts lists what the action can do, most specific first.
	Accepts []Accept
}

// An Accept pairs input formats with the parameters that are valid for them:
// "for png, jpg and gif, convert_to is one of webp, png, jpg".
type Accept struct {
	Formats []format.Format // format.Any matches all
	Params  Schema
}

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

// Wrap returns an action with a's Spec that calls around instead of a.Do.
// Timeouts, concurrency limits and metrics are written with it.
func Wrap(a Action, around func(ctx context.Context, job *Job, do func(context.Context, *Job) error) error) Action {
	return Func(a.Spec(), func(ctx context.Context, job *Job) error {
		return around(ctx, job, a.Do)
	})
}

// A Step is one action of a [Chain].
type Step struct {
	Action Action
	Args   func(Params) Args // from the chain's parameters; nil means none
}

// Chain returns an action that runs steps one after the other: the results of a
// step are the inputs of the next. Nothing is copied in between. The steps
// count alike for progress.
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
			r := &Runner{TempDir: dir, Log: job.Log, MaxOutput: job.maxOutput, Progress: func(done float64) {
				job.Progress((float64(i) + done) / float64(len(steps)))
			}}
			if err := r.Run(ctx, st.Action, args, sink, files...); err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
			files = next
		}
		return nil
	})
}
