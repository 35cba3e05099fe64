package pdfread

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/likeness"
)

// Parameters of [Engine.Keep].
const (
	boxesParam    = "boxes"
	picturesParam = "pictures"
)

// A page gets the next form if its score is lower than that of results that people keep,
// and becomes a picture only below pictureBelow, because text behind a picture cannot be
// edited. It stays with the form it has unless the next one gains at least these scores.
const (
	pictureBelow = 6.0
	boxesGain    = 0.5
	pictureGain  = 1.0
)

// A Proof converts PDF files to Word as [Engine.Convert] does, but looks at the result in
// print before it returns it. A page that does not look like the page of the PDF file
// becomes text boxes over a picture, and if that does not help, a picture with the text
// behind it. Warnings name these pages.
//
// A document is converted and printed up to three times. Documents of more than 100 pages
// are not compared, nor are those that cannot be printed.
type Proof struct {
	// Convert, Keep and Compare are the actions of one Engine, perhaps in other processes.
	Convert, Keep, Compare fileops.Action

	// Print converts DOCX to PDF.
	Print fileops.Action
}

// Action returns the conversion, which has the Spec of p.Convert.
func (p Proof) Action() fileops.Action {
	return fileops.Wrap(p.Convert, func(ctx context.Context, job *fileops.Job, do func(context.Context, *fileops.Job) error) error {
		if format.Parse(job.Params.Get("convert_to")) != format.DOCX {
			return do(ctx, job)
		}
		return p.convert(ctx, job)
	})
}

// Keep returns the conversion to Word with two more parameters: the numbers of pages that
// become text boxes over a picture, and of pages that become a picture. It is a part of a
// [Proof].
func (e *Engine) Keep() fileops.Action {
	const list = `[0-9]{1,5}(,[0-9]{1,5})*`
	numbers := func(name, doc string) fileops.Param {
		return fileops.Param{Name: name, Pattern: list, Min: 1, Max: 6 * maxCompared, Doc: doc}
	}
	to := fileops.Enum("convert_to", "Format of the result.", string(format.DOCX))
	params := fileops.Schema{
		to, pagesParam(), passwordParam(),
		numbers(boxesParam, "Pages whose text becomes boxes over a picture."), numbers(picturesParam, "Pages that become a picture."),
	}
	if e.recognizer != nil {
		params = append(params, e.recognizer.Language())
	}
	spec := e.Convert().Spec()
	spec.Summary = "Converts a PDF file to Word, with some pages as text boxes or pictures."
	spec.Accepts = []fileops.Accept{{Formats: []format.Format{format.PDF}, Params: params}}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		return e.toDocument(ctx, job, format.DOCX)
	})
}

// numbers returns the numbers in a list such as "1,3".
func numbers(list string) (out []int) {
	for s := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(s); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// A draft is one conversion of a document, or another result of a part of the job.
type draft struct {
	name     string
	path     string
	warnings []fileops.Warning
	forms    map[int]model.Form // of pages, by number; those that the caller has chosen
	scores   []pageScore
}

// A proofing is one run of a [Proof].
type proofing struct {
	Proof
	job    *fileops.Job
	drafts int
	done   float64 // progress
}

func (p Proof) convert(ctx context.Context, job *fileops.Job) error {
	r := &proofing{Proof: p, job: job}
	best, err := r.draft(ctx, nil)
	if err != nil {
		return err
	}
	if err := r.compare(ctx, best); err != nil {
		return r.unproved(ctx, best, err)
	}
	for _, step := range []struct {
		form        model.Form
		below, gain float64
	}{
		{model.FormBoxes, likeness.Kept, boxesGain},
		{model.FormPicture, pictureBelow, pictureGain},
	} {
		next, err := r.improve(ctx, best, step.form, step.below, step.gain)
		if err != nil {
			return r.unproved(ctx, best, err)
		}
		best = next
	}
	return r.deliver(best)
}

// improve returns a draft in which the pages of d with a score below a limit have another
// form, if that gains enough. It returns d if no page gains enough.
func (r *proofing) improve(ctx context.Context, d *draft, form model.Form, below, gain float64) (*draft, error) {
	forms := make(map[int]model.Form)
	for n, f := range d.forms {
		forms[n] = f
	}
	var weak []int // index in d.scores
	for i, s := range d.scores {
		if s.Score < below {
			forms[s.Page] = form
			weak = append(weak, i)
		}
	}
	if len(weak) == 0 {
		return d, nil
	}
	next, err := r.draft(ctx, forms)
	if err != nil {
		return nil, err
	}
	if already, err := same(d.path, next.path); err != nil || already {
		return d, err // the pages had this form before
	}
	if err := r.compare(ctx, next); err != nil {
		return nil, err
	}
	if len(next.scores) != len(d.scores) {
		return nil, fmt.Errorf("%d pages instead of %d", len(next.scores), len(d.scores))
	}
	scores, gained := slices.Clone(d.scores), 0
	for _, i := range weak {
		if n := d.scores[i].Page; next.scores[i].Score >= d.scores[i].Score+gain {
			scores[i] = next.scores[i]
			gained++
		} else if f, ok := d.forms[n]; ok {
			forms[n] = f
		} else {
			delete(forms, n)
		}
	}
	switch gained {
	case 0:
		return d, nil
	case len(weak):
		return next, nil
	}
	if next, err = r.draft(ctx, forms); err != nil {
		return nil, err
	}
	next.scores = scores
	return next, nil
}

// same reports whether two files have the same content.
func same(a, b string) (bool, error) {
	x, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	y, err := os.ReadFile(b)
	return bytes.Equal(x, y), err
}

// run runs a part of the job, which has one result.
func (r *proofing) run(ctx context.Context, a fileops.Action, args fileops.Args, in ...*fileops.File) (*draft, error) {
	dir, err := r.job.Dir()
	if err != nil {
		return nil, err
	}
	const parts = 9 // three drafts, each converted, printed and compared
	start := r.done
	r.done = min(0.99, r.done+1.0/parts)
	runner, err := r.job.Runner(start, r.done)
	if err != nil {
		return nil, err
	}
	out := new(draft)
	runner.Warn = func(w fileops.Warning) { out.warnings = append(out.warnings, w) }
	err = runner.Run(ctx, a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		r.drafts++
		out.name, out.path = f.Name(), filepath.Join(dir, fmt.Sprintf("draft-%d.%s", r.drafts, f.Format()))
		return f.LinkTo(out.path)
	}), in...)
	return out, err
}

// draft converts the document with the given forms of pages.
func (r *proofing) draft(ctx context.Context, forms map[int]model.Form) (*draft, error) {
	a, args := r.Convert, r.job.Params.Args()
	if len(forms) > 0 {
		a = r.Keep
		list := func(form model.Form) string {
			var all []int
			for n, f := range forms {
				if f == form {
					all = append(all, n)
				}
			}
			slices.Sort(all)
			var s []string
			for _, n := range all {
				s = append(s, strconv.Itoa(n))
			}
			return strings.Join(s, ",")
		}
		for name, form := range map[string]model.Form{boxesParam: model.FormBoxes, picturesParam: model.FormPicture} {
			if l := list(form); l != "" {
				args[name] = l
			}
		}
	}
	d, err := r.run(ctx, a, args, r.job.Input())
	if err != nil {
		return nil, err
	}
	d.forms = forms
	return d, nil
}

// compare prints a draft and scores its pages.
func (r *proofing) compare(ctx context.Context, d *draft) error {
	printed, err := r.run(ctx, r.Print, fileops.Args{"convert_to": string(format.PDF)}, fileops.Path(d.path))
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	args := make(fileops.Args)
	for _, name := range []string{"pages", "password"} {
		if v := r.job.Params.Get(name); v != "" {
			args[name] = v
		}
	}
	scores, err := r.run(ctx, r.Compare, args, r.job.Input(), fileops.Path(printed.path))
	if err != nil {
		return fmt.Errorf("compare with the print: %w", err)
	}
	b, err := os.ReadFile(scores.path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &d.scores); err != nil {
		return err
	}
	r.job.Log.Debug("a document was compared with its print", "scores", d.scores)
	return nil
}

// unproved returns a draft that could not be compared or improved. The conversion itself
// has succeeded, so only the end of ctx is an error.
func (r *proofing) unproved(ctx context.Context, d *draft, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.job.Log.Warn("a document was not compared with its print", "err", err)
	return r.deliver(d)
}

func (r *proofing) deliver(d *draft) error {
	for _, w := range d.warnings {
		r.job.Warn(w.Code, "%s", w.Message)
	}
	return r.job.WriteFile(d.name, fileops.Path(d.path).LinkTo)
}
