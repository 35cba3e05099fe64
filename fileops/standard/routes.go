package standard

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/route"
)

const convertTo = "convert_to"

// joins lists where two engines meet. It determines the conversions in two steps.
func joins() []route.Join {
	to := func(all ...format.Format) func(from, to format.Format) bool {
		return func(_, to format.Format) bool { return slices.Contains(all, to) }
	}
	return []route.Join{
		// A browser prints books better than the office, and prints records as a table.
		{First: officeEngine, Mid: format.HTML, Second: webEngine, Before: true, Only: func(from, _ format.Format) bool {
			return slices.Contains([]format.Format{format.EPUB, format.FB2, format.RST, format.Org, format.TeX}, from)
		}},
		{First: bookEngine, Mid: format.EPUB, Second: webEngine, Before: true},
		{First: bookEngine, Mid: format.EPUB, Second: officeEngine, Only: func(_, to format.Format) bool { return to.Family() == format.Document && to != format.PDF }},
		{First: mailEngine, Mid: format.HTML, Second: webEngine, Before: true},
		{First: mailEngine, Mid: format.HTML, Second: officeEngine, Only: func(_, to format.Format) bool { return to.Family() == format.Document }},
		{First: dataEngine, Mid: format.CSV, Second: webEngine, Before: true, Only: func(from, _ format.Format) bool { return from == format.JSON || from == format.JSONL }},

		// Pictures of pages, and the text of slides. Drawings become pictures directly.
		{First: webEngine, Mid: format.PDF, Second: pageEngine, Only: func(from, to format.Format) bool {
			return from != format.SVG && from != format.JSON && from != format.JSONL && to.Family() == format.Image
		}},
		{First: officeEngine, Mid: format.PDF, Second: pageEngine, Only: func(from, to format.Format) bool {
			return to.Family() == format.Image || to == format.TXT && from.Family() == format.Slides
		}},

		// Text in pictures.
		{First: imageEngine, Mid: format.PNG, Second: textEngine, Only: func(from, to format.Format) bool {
			return to == format.TXT && from.Family() == format.Image && from != format.ICO
		}},
		{First: pdfEngine, Mid: format.PDF, Second: pageEngine, Only: to(format.DOCX, format.HTML, format.MD)},

		// Pictures and the text of PostScript.
		{First: pdfEngine, Mid: format.PDF, Second: pageEngine, Only: func(from, to format.Format) bool {
			return from == format.PS && (to.Family() == format.Image || to == format.TXT)
		}},

		// A PDF to the other document formats, through DOCX.
		{First: pageEngine, Mid: format.DOCX, Second: officeEngine, Only: func(_, to format.Format) bool {
			return to.Family() == format.Document && to != format.FODT
		}},

		// Records and tables to spreadsheets, and back.
		{First: dataEngine, Mid: format.CSV, Second: officeEngine, Only: func(from, to format.Format) bool {
			return (from == format.JSON || from == format.JSONL) && (to.Family() == format.Sheet || to == format.PDF)
		}},
		{First: dataEngine, Mid: format.FODS, Second: officeEngine, Only: func(from, to format.Format) bool {
			return from == format.HTML && to.Family() == format.Sheet
		}},
		{First: officeEngine, Mid: format.CSV, Second: dataEngine, Only: func(from, to format.Format) bool {
			return from.Family() == format.Sheet && from != format.CSV && from != format.TSV && (to == format.JSON || to == format.JSONL)
		}},
	}
}

// A router builds the actions with two steps.
type router struct {
	route.Router
	by    map[string][]fileops.Action   // conversions, by the name of an engine
	takes map[route.Step]fileops.Action // the action for a step; absent if there is none
}

func newRouter(list []entry, actions map[string][]fileops.Action) *router {
	r := &router{by: make(map[string][]fileops.Action), takes: make(map[route.Step]fileops.Action)}
	r.Joins = joins()
	r.Can = func(s route.Step) bool { return r.takes[s] != nil }
	for _, e := range list {
		r.Converters = append(r.Converters, e.name)
		for _, a := range actions[e.name] {
			r.add(e.name, a)
		}
	}
	if len(r.by[textEngine]) == 0 { // then pages of pictures have no text
		r.Joins = slices.DeleteFunc(r.Joins, func(j route.Join) bool { return j.First == pdfEngine })
	}
	return r
}

// add adds a conversion to those of an engine.
func (r *router) add(engine string, a fileops.Action) {
	spec := a.Spec()
	if spec.Name != "convert" || spec.Joint {
		return
	}
	r.by[engine] = append(r.by[engine], a)
	for _, acc := range spec.Accepts {
		for _, from := range acc.Formats {
			for _, to := range targets(acc) {
				if s := (route.Step{By: engine, From: from, To: to}); r.takes[s] == nil {
					r.takes[s] = a
				}
			}
		}
	}
}

// accepted returns the parameters with which a converts from one format to another, or
// nil if a does not.
func accepted(a fileops.Action, from, to format.Format) fileops.Schema {
	for _, acc := range a.Spec().Accepts {
		if slices.Contains(acc.Formats, from) && slices.Contains(targets(acc), to) {
			return acc.Params
		}
	}
	return nil
}

// targets returns the formats that an entry lists for convert_to. An entry that needs a
// parameter to change the file is not a step to another format.
func targets(acc fileops.Accept) (out []format.Format) {
	if i := slices.IndexFunc(acc.Params, named(convertTo)); i >= 0 && len(acc.Changes) == 0 {
		for _, v := range acc.Params[i].Enum {
			out = append(out, format.Format(v))
		}
	}
	return out
}

func named(name string) func(fileops.Param) bool {
	return func(p fileops.Param) bool { return p.Name == name }
}

// inputs returns the formats that a converts to target, in the order of its Spec.
func inputs(a fileops.Action, target format.Format) []format.Format {
	var out []format.Format
	for _, acc := range a.Spec().Accepts {
		for _, f := range acc.Formats {
			if slices.Contains(targets(acc), target) && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// join returns the actions for the two steps of j.
func (r *router) join(j route.Join) (out []fileops.Action) {
	for _, first := range r.by[j.First] {
		for _, second := range r.by[j.Second] {
			if a := r.chain(first, j, second); a != nil {
				out = append(out, a)
			}
		}
	}
	return out
}

// chain returns an action that converts with first and passes the result to second. It
// returns nil if j has no conversion with these two.
func (r *router) chain(first fileops.Action, j route.Join, second fileops.Action) fileops.Action {
	one, two := first.Spec(), second.Spec()
	spec := fileops.Spec{
		Name: two.Name, Engine: one.Engine + " + " + two.Engine, Family: one.Family, Encrypted: one.Encrypted, MaxBytes: one.MaxBytes,
		Summary: "Converts by way of " + j.Mid.Title() + ".",
	}
	for _, from := range inputs(first, j.Mid) {
		for _, acc := range two.Accepts {
			if !slices.Contains(acc.Formats, j.Mid) {
				continue
			}
			var to []string
			for _, t := range targets(acc) {
				steps := r.Steps(from, t)
				if len(steps) == 2 && steps[0] == (route.Step{By: j.First, From: from, To: j.Mid}) && steps[1].By == j.Second && r.takes[steps[0]] == first {
					to = append(to, string(t))
				}
			}
			if len(to) > 0 {
				spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: []format.Format{from}, Params: parameters(accepted(first, from, j.Mid), acc.Params, to)})
			}
		}
	}
	if len(spec.Accepts) == 0 {
		return nil
	}
	spec.Accepts = group(spec.Accepts)
	// Parameters that second does not take are for first. Second reads a file that first
	// has written, so it gets no password and no encoding.
	forSecond := func(name string, p fileops.Params) bool {
		return slices.ContainsFunc(accepted(second, j.Mid, format.Format(p.Get(convertTo))), func(p fileops.Param) bool {
			return p.Name == name && p.Scope != fileops.ScopeInput
		})
	}
	return fileops.Chain(spec,
		fileops.Step{Action: first, Args: func(p fileops.Params) fileops.Args {
			args := p.Args()
			maps.DeleteFunc(args, func(name string, _ any) bool { return forSecond(name, p) })
			args[convertTo] = string(j.Mid)
			return args
		}},
		fileops.Step{Action: second, Args: func(p fileops.Params) fileops.Args {
			args := p.Args()
			maps.DeleteFunc(args, func(name string, _ any) bool { return !forSecond(name, p) })
			return args
		}})
}

// parameters returns the parameters of a conversion in two steps to one of the formats
// to: those of the second step, and those of the first that open the input or select a
// part of it.
func parameters(first, second fileops.Schema, to []string) fileops.Schema {
	var out fileops.Schema
	for _, p := range second {
		if p.Name == convertTo {
			p.Enum, p.Aliases = to, aliasesOf(to)
		}
		if p.Scope != fileops.ScopeFile && p.Scope != fileops.ScopeInput {
			out = append(out, p)
		}
	}
	for _, p := range first {
		if (p.Scope == fileops.ScopeContent || p.Scope == fileops.ScopeInput) && !slices.ContainsFunc(out, named(p.Name)) {
			out = append(out, p)
		}
	}
	return out
}

// aliasesOf returns the other spellings of formats: jpeg for jpg.
func aliasesOf(values []string) map[string]string {
	m := make(map[string]string)
	for _, v := range values {
		for _, a := range format.Format(v).Aliases() {
			m[string(a)] = v
		}
	}
	return m
}

// group merges entries with equal parameters, which makes tables short.
func group(all []fileops.Accept) []fileops.Accept {
	var out []fileops.Accept
	for _, a := range all {
		i := slices.IndexFunc(out, func(o fileops.Accept) bool { return reflect.DeepEqual(o.Params, a.Params) })
		if i < 0 {
			out = append(out, a)
			continue
		}
		out[i].Formats = append(slices.Clone(out[i].Formats), a.Formats...)
	}
	return out
}

// routed returns the actions of all engines in order of preference: conversions in one
// step, then those in two, and the merge of everything that can become a PDF.
func (s *Set) routed(list []entry, actions map[string][]fileops.Action) []fileops.Action {
	var all []fileops.Action
	add := func(more ...fileops.Action) {
		for _, a := range more {
			if len(a.Spec().Accepts) > 0 {
				all = append(all, a)
			}
		}
	}
	r := newRouter(list, actions)
	for _, e := range list {
		add(actions[e.name]...)
		for _, j := range r.Joins {
			if j.Before && j.Second == e.name {
				for _, a := range r.join(j) {
					add(a)
					r.add(e.name, a)
				}
			}
		}
	}
	var pdf *pdfops.Engine
	for _, e := range s.engines {
		if p, ok := e.(*pdfops.Engine); ok {
			pdf = p
		}
	}
	if images := r.by[imageEngine]; len(images) > 0 {
		a := imagesToPDF(images[0], s.Isolate(pdf.ImagesToPDF()), all)
		add(a)
		r.add(pdfEngine, a)
	}
	for _, j := range r.Joins {
		if !j.Before {
			add(r.join(j)...)
		}
	}
	add(thumbnails(all)...)
	if s.poolErr == nil {
		tools := pdf.Tools
		if s.pool != nil {
			tools.Merger = s.Isolate(pdf.Merge())
		}
		add(tools.Merge(toPDF(all)...))
	}
	for _, a := range actions[pdfEngine] {
		if a.Spec().Name == "ocr" {
			for _, c := range toPDF(all) {
				add(recognized(c, a))
			}
		}
	}
	return withLimits(all)
}

// recognized returns the action ocr for the pictures that convert makes PDFs of.
func recognized(convert, ocr fileops.Action) fileops.Action {
	one, two := convert.Spec(), ocr.Spec()
	spec := fileops.Spec{
		Name: two.Name, Engine: one.Engine + " + " + two.Engine, Family: two.Family, MaxBytes: one.MaxBytes,
		Summary: "Makes a PDF file of a picture, with its text, so that it can be found and copied.",
		Results: map[format.Format]format.Format{format.Any: format.PDF},
	}
	var params fileops.Schema
	for _, p := range two.Accepts[0].Params {
		if p.Scope == fileops.ScopeContent {
			params = append(params, p)
		}
	}
	formats := slices.DeleteFunc(inputs(convert, format.PDF), func(f format.Format) bool { return f.Family() != format.Image || f == format.SVG })
	if len(formats) > 0 {
		spec.Accepts = []fileops.Accept{{Formats: formats, Params: params}}
	}
	return fileops.Chain(spec,
		fileops.Step{Action: convert, Args: func(fileops.Params) fileops.Args { return fileops.Args{convertTo: string(format.PDF)} }},
		fileops.Step{Action: ocr, Args: fileops.Params.Args},
	)
}

// imagesToPDF returns a conversion for pictures that a PDF cannot contain directly, and
// that no action of direct converts. All pages of a picture go into one document.
func imagesToPDF(convert, pages fileops.Action, direct []fileops.Action) fileops.Action {
	one := convert.Spec()
	spec := fileops.Spec{
		Name: "convert", Engine: one.Engine + " + " + pages.Spec().Engine, Family: one.Family, MaxBytes: one.MaxBytes,
		Summary: "Puts a picture into a PDF, a page for each of its pages.",
	}
	formats := slices.DeleteFunc(inputs(convert, format.PNG), func(from format.Format) bool {
		return slices.ContainsFunc(direct, func(a fileops.Action) bool { return accepted(a, from, format.PDF) != nil })
	})
	if len(formats) > 0 {
		spec.Accepts = []fileops.Accept{{Formats: formats, Params: pages.Spec().Accepts[0].Params}}
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		to := fileops.Args{convertTo: string(format.PNG)}
		if f := job.Input().Format(); f == format.HEIC || f == format.AVIF || f == format.RAW {
			// A photograph stays lossy: as PNG it would be many times its size.
			to = fileops.Args{convertTo: string(format.JPG), "quality": 92}
		}
		name := fileops.ResultName(job.Input(), format.PDF)
		return fileops.Chain(spec,
			fileops.Step{Action: convert, Args: func(fileops.Params) fileops.Args { return to }},
			fileops.Step{Action: renamed(pages, name), Args: fileops.Params.Args},
		).Do(ctx, job)
	})
}

// renamed returns a with another name for its result. A joint action names its result
// after the first input.
func renamed(a fileops.Action, name string) fileops.Action {
	return fileops.Wrap(a, func(ctx context.Context, job *fileops.Job, do func(context.Context, *fileops.Job) error) error {
		err := do(ctx, job)
		job.Rename(name)
		return err
	})
}

// toPDF returns the actions that convert something to PDF.
func toPDF(all []fileops.Action) []fileops.Action {
	return slices.DeleteFunc(slices.Clone(all), func(a fileops.Action) bool {
		spec := a.Spec()
		return spec.Name != "convert" || spec.Joint || len(inputs(a, format.PDF)) == 0
	})
}
