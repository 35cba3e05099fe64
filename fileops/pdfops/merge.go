package pdfops

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// Merge returns the joint action "merge". It joins all inputs, in their order,
// into one PDF file, merged.pdf. Inputs of other formats are converted by the
// first convert action that accepts convert_to=pdf for their format. Merge
// accepts all formats that have such an action.
//
// Each input gets a bookmark with its name, above its own bookmarks. Links,
// named destinations, form fields, page labels, attachments and layers stay;
// duplicate names get a number. Form fields without an appearance get one, so no
// viewer has to make them. The tags of all inputs form one structure tree.
// Metadata and viewer preferences come from the first input. A single PDF file
// is returned unchanged, except that encryption is removed. Encrypted inputs are
// accepted if they open without a password or with the one given; the result is
// never encrypted, and a warning says so.
func (t Tools) Merge(convert ...fileops.Action) fileops.Action {
	spec := t.spec("merge", "Merges files into one PDF file.", fileops.Schema{{
		Name: "convert_to", Doc: "The format of the result.", Enum: []string{"pdf"}, Default: "pdf",
	}, {
		Name: "password", Doc: "Password that opens the encrypted files.",
		Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput,
	}})
	spec.Joint, spec.Encrypted = true, true
	spec.Results = map[format.Format]format.Format{format.Any: format.PDF}
	by := make(map[format.Format]fileops.Action)
	for _, a := range convert {
		for _, f := range convertible(a) {
			if by[f] == nil && f != format.PDF {
				by[f] = a
				spec.Accepts[0].Formats = append(spec.Accepts[0].Formats, f)
			}
		}
	}
	slices.Sort(spec.Accepts[0].Formats[1:])
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		if t.Merger != nil {
			return t.mergeElsewhere(ctx, job, by)
		}
		if len(job.Inputs) == 1 && job.Input().Format() == format.PDF {
			d, err := t.load(ctx, job, job.Input(), job.Input().Name())
			if err != nil {
				return err
			}
			defer d.Close()
			if d.Encrypted {
				warnLosses(job, d.Encrypted, d.Incomplete(), job.Input().Name())
				return job.Write(mergedName, func(w io.Writer) error { return d.Write(w, d.IsPDFA1(), nil) })
			}
			job.WarnPasswordUnused()
			return job.Keep(job.Input().Named(mergedName))
		}
		m := newMerger(t.Limits, t.fonts())
		defer m.out.Close()
		protected := false // a file is
		files := t.openAhead(ctx, job)
		defer files.close()
		for i, f := range job.Inputs {
			parts, locked, err := t.asPDF(ctx, job, by, f)
			if err != nil {
				return err
			}
			protected = protected || locked
			for _, part := range parts {
				var d *pdf.Document
				if part == f {
					d, err = files.take(i)
				} else {
					d, err = t.load(ctx, job, part, f.Name())
				}
				if err != nil {
					return err
				}
				protected = protected || d.Encrypted
				m.out.Files = append(m.out.Files, d.Files...)
				m.warnLosses(job, d, f.Name())
				if err := m.add(ctx, d, f.Name()); err != nil {
					return err
				}
			}
			job.Progress(0.9 * float64(i+1) / float64(len(job.Inputs)))
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		if !protected {
			job.WarnPasswordUnused()
		}
		d, err := m.finish()
		if err != nil {
			return err
		}
		if n := m.form.maker.Missed(); n > 0 {
			job.Warn(fileops.WarnFontsSubstituted, "Form fields have %d characters that no font has.", n)
		}
		return job.Write(mergedName, func(w io.Writer) error { return d.Write(w, false, nil) })
	})
}

// An openingAhead opens the PDF files among the inputs of a merge before they are needed: as many at the
// same time as there are processors, and more small ones, because waking a goroutine takes as long as opening one.
type openingAhead struct {
	open    func(f *fileops.File) (*pdf.Document, error)
	inputs  []*fileops.File
	started int // how many inputs are opened, or need not be
	waiting map[int]chan opened
	bytes   int64 // the size of the files in waiting
	running sync.WaitGroup
}

// What an openingAhead opens at most while it waits for one file.
const (
	aheadFiles = 32
	aheadBytes = 4 << 20
)

// more reports whether another file may be opened.
func (o *openingAhead) more() bool {
	n := len(o.waiting)
	return n < runtime.GOMAXPROCS(0) || n < aheadFiles && o.bytes < aheadBytes
}

type opened struct {
	d        *pdf.Document
	err      error
	panicked any
}

func (t Tools) openAhead(ctx context.Context, job *fileops.Job) *openingAhead {
	return &openingAhead{inputs: job.Inputs, waiting: make(map[int]chan opened), open: func(f *fileops.File) (*pdf.Document, error) {
		return t.load(ctx, job, f, f.Name())
	}}
}

// take returns the document of input i, which must be larger than that of the call before. The caller
// must close the document.
func (o *openingAhead) take(i int) (*pdf.Document, error) {
	for ; o.started < len(o.inputs) && (o.started <= i || o.more()); o.started++ {
		if f := o.inputs[o.started]; f.Format() == format.PDF {
			c := make(chan opened, 1)
			o.waiting[o.started] = c
			o.bytes += f.Size()
			o.running.Go(func() {
				var r opened
				defer func() {
					r.panicked = recover() // it belongs to the goroutine of the run
					c <- r
				}()
				r.d, r.err = o.open(f)
			})
		}
	}
	r := <-o.waiting[i]
	delete(o.waiting, i)
	o.bytes -= o.inputs[i].Size()
	if r.panicked != nil {
		panic(r.panicked)
	}
	return r.d, r.err
}

// close closes the documents that were not taken.
func (o *openingAhead) close() {
	o.running.Wait()
	for _, c := range o.waiting {
		if r := <-c; r.d != nil {
			r.d.Close()
		}
	}
}

// warnLosses warns of what the result will lack of d, which add has not consumed
// yet.
func (m *merger) warnLosses(job *fileops.Job, d *pdf.Document, name string) {
	warnLosses(job, d.Encrypted, d.Incomplete(), name)
	if len(job.Inputs) == 1 {
		return
	}
	if d.Signed() {
		job.Warn(fileops.WarnSignatureInvalid, "The signatures of %s do not cover the result.", name)
	}
	if d.Dict(d.Catalog()["AcroForm"])["XFA"] != nil {
		warnXFA(job, name)
	}
	if m.inputs == 0 && d.Claims(standards()...) {
		job.Warn(fileops.WarnMetadataDropped, "%s claims to conform to a standard, such as PDF/A; the result does not.", name)
	}
}

// standards returns marks of claims in metadata: PDF/A, PDF/X, PDF/UA and PDF/E.
func standards() []string { return []string{"pdfaid:part", "pdfxid:", "pdfuaid:part", "pdfe:"} }

// mergeElsewhere converts all inputs to PDF and passes them to the Merger.
func (t Tools) mergeElsewhere(ctx context.Context, job *fileops.Job, by map[format.Format]fileops.Action) error {
	var all []*fileops.File
	protected := false // a file is
	for i, f := range job.Inputs {
		parts, locked, err := t.asPDF(ctx, job, by, f)
		if err != nil {
			return err
		}
		protected = protected || locked
		for _, part := range parts {
			if f.Format() != format.PDF { // its name is that of its source
				part = part.Named(fileops.ResultName(f, format.PDF))
			}
			all = append(all, part)
		}
		job.Progress(0.5 * float64(i+1) / float64(len(job.Inputs)))
	}
	r, err := job.Runner(0.5, 1)
	if err != nil {
		return err
	}
	warn := r.Warn
	r.Warn = func(w fileops.Warning) {
		if w.Code != fileops.WarnPasswordUnused || !protected {
			warn(w)
		}
	}
	return r.Run(ctx, t.Merger, opening(toPDF(), job, t.Merger, format.PDF), fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		return job.WriteFile(mergedName, f.LinkTo)
	}), all...)
}

const mergedName = "merged.pdf"

// convertible returns the formats that a can convert to PDF.
func convertible(a fileops.Action) []format.Format {
	reg, err := fileops.NewRegistry(a)
	if err != nil {
		return nil
	}
	var out []format.Format
	for _, acc := range a.Spec().Accepts {
		for _, f := range acc.Formats {
			if f == format.Any {
				continue
			}
			if _, _, err := reg.Resolve(a.Spec().Name, []format.Format{f}, toPDF()); err == nil {
				out = append(out, f)
			}
		}
	}
	return out
}

func toPDF() fileops.Args { return fileops.Args{"convert_to": "pdf"} }

// opening adds the password of a job to the parameters of an action for files of a
// format, if the action takes one.
func opening(args fileops.Args, job *fileops.Job, a fileops.Action, f format.Format) fileops.Args {
	const name = "password"
	if !job.Params.Has(name) {
		return args
	}
	for _, accept := range a.Spec().Accepts {
		if slices.Contains(accept.Formats, f) && slices.ContainsFunc(accept.Params, func(p fileops.Param) bool { return p.Name == name }) {
			args[name] = job.Params.Get(name)
		}
	}
	return args
}

// asPDF converts an input to PDF if necessary, and reports whether that needed the password of
// the job. The results are in memory.
func (t Tools) asPDF(ctx context.Context, job *fileops.Job, by map[format.Format]fileops.Action, f *fileops.File) (out []*fileops.File, locked bool, err error) {
	if f.Format() == format.PDF {
		return []*fileops.File{f}, false, nil
	}
	a := by[f.Format()]
	if a == nil {
		return nil, false, fileops.Fail(fileops.ErrUnsupportedInput, nil, "%s cannot be converted to PDF", f.Name())
	}
	sink := fileops.SinkFunc(func(_ context.Context, r *fileops.File) error {
		if r.Size() > pdf.MaxFile {
			return fileops.Fail(fileops.ErrLimit, nil, "%s is too large as a PDF file", f.Name())
		}
		b, err := io.ReadAll(r.Reader())
		out = append(out, fileops.Bytes(r.Name(), b))
		return err
	})
	r, err := job.Runner(0, 0) // the caller reports progress
	if err != nil {
		return nil, false, err
	}
	args := opening(toPDF(), job, a, f.Format())
	_, locked = args["password"]
	warn := r.Warn
	r.Warn = func(w fileops.Warning) {
		if w.Code == fileops.WarnPasswordUnused {
			locked = false // another file may need the password
			return
		}
		warn(w)
	}
	if err := r.Run(ctx, a, args, sink, f); err != nil {
		return nil, false, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return out, locked, nil
}

// A merger joins documents.
type merger struct {
	bounds  Limits
	out     *pdf.Document
	pages   []types.IndirectRef
	outline []types.IndirectRef // one item per file
	labels  []labelled
	names   map[string]*nameTree // by kind of name tree
	dests   types.Dict           // destinations whose names are PDF names
	form    *mergedForm
	layers  *mergedLayers
	tags    *mergedTags
	arrays  map[string]types.Array // of the catalog, concatenated
	inputs  int
}

func newMerger(bounds Limits, fonts []string) *merger {
	out := pdf.New()
	return &merger{
		bounds: bounds,
		out:    out, tags: newMergedTags(out), names: make(map[string]*nameTree), dests: types.Dict{},
		form: newMergedForm(out, fonts), layers: newMergedLayers(), arrays: make(map[string]types.Array),
	}
}

// add adds the objects and pages of d. d cannot be used afterwards.
func (m *merger) add(ctx context.Context, d *pdf.Document, title string) error {
	m.inputs++
	first := m.inputs == 1
	shift := m.out.Last
	move := func(nr int) int { return nr + shift }
	kept := make(map[int]types.Object)
	for _, nr := range d.Reachable() {
		kept[nr] = d.Objects[nr]
	}
	for nr, o := range kept {
		m.out.Objects[move(nr)] = pdf.Replace(o, move)
	}
	m.out.Last = shift + d.Last
	moved := pdf.Document{Objects: m.out.Objects, Root: move(d.Root)}
	pages, err := moved.Pages(m.bounds.pages())
	if err != nil {
		return fileops.Fail(fileops.ErrCorruptInput, err, "%s is damaged and could not be repaired", title)
	}
	if most := m.bounds.pages(); len(m.pages)+len(pages) > most {
		return fileops.Fail(fileops.ErrLimit, nil, "the files have more than the limit of %d pages together; merge fewer of them", most)
	}
	catalog := m.out.Dict(pdf.Ref(move(d.Root)))
	if first {
		m.out.Root, m.out.ID = move(d.Root), d.ID
		if d.Info != 0 {
			m.out.Info = move(d.Info)
		}
	}
	m.out.Version = max(m.out.Version, d.Version)

	m.tags.add(m.out, catalog, kept)
	renamed := m.addNames(catalog)
	if len(renamed) > 0 {
		m.renameDests(kept, renamed)
	}
	from := len(m.pages)
	m.out.SeparatePages(pages)
	for _, p := range pages {
		m.pages = append(m.pages, p.Ref)
	}
	m.labels = append(m.labels, labelled{from: from, tree: catalog["PageLabels"]})
	m.addOutline(catalog, title, m.pages[from])
	m.form.add(ctx, m.out, m.out.Dict(catalog["AcroForm"]))
	m.layers.add(m.out, m.out.Dict(catalog["OCProperties"]))
	for _, key := range []string{"AF", "Threads"} {
		m.arrays[key] = append(m.arrays[key], m.out.Array(catalog[key])...)
	}
	return nil
}

// eachDict calls f for o and for the dictionaries directly in it.
func eachDict(o types.Object, f func(types.Dict)) {
	switch v := o.(type) {
	case types.Dict:
		f(v)
		for _, e := range v {
			eachDict(e, f)
		}
	case types.Array:
		for _, e := range v {
			eachDict(e, f)
		}
	case *types.StreamDict:
		eachDict(v.Dict, f)
	}
}

// finish builds the catalog.
func (m *merger) finish() (*pdf.Document, error) {
	d := m.out
	catalog := d.Catalog()
	if catalog == nil {
		return nil, fmt.Errorf("merge: no catalog")
	}
	if err := m.form.maker.Finish(); err != nil {
		return nil, err
	}
	catalog["Pages"] = d.AddPageTree(m.pages)
	structure, marks := m.tags.finish(d)
	for key, value := range map[string]types.Object{
		"StructTreeRoot": structure,
		"MarkInfo":       marks,
		"Outlines":       m.outlines(),
		"PageLabels":     m.pageLabels(),
		"Names":          m.nameTrees(),
		"Dests":          orNil(m.dests),
		"AcroForm":       m.form.dict(m.inputs > 1),
		"OCProperties":   m.layers.dict(),
	} {
		delete(catalog, key)
		if value != nil {
			catalog[key] = value
		}
	}
	for key, a := range m.arrays {
		delete(catalog, key)
		if len(a) > 0 {
			catalog[key] = a
		}
	}
	if m.inputs > 1 {
		// These entries hold for one file only: signatures and permissions, a
		// portfolio's view of attachments, printing conditions, private data, and
		// claims of conformance to a standard.
		for _, key := range []string{"Perms", "DSS", "Legal", "Collection", "OutputIntents", "PieceInfo", "Requirements"} {
			delete(catalog, key)
		}
		if d.Claims(standards()...) {
			delete(catalog, "Metadata")
		}
	}
	delete(catalog, "Version")
	return d, nil
}

func orNil(d types.Dict) types.Object {
	if len(d) == 0 {
		return nil
	}
	return d
}

// addOutline adds a bookmark for a file. The bookmarks of the file go below it.
func (m *merger) addOutline(catalog types.Dict, title string, first types.IndirectRef) {
	d := m.out
	item := types.Dict{
		"Title": pdf.TextString(title),
		"Dest":  types.Array{first, types.Name("XYZ"), nil, nil, nil},
	}
	ref := d.Add(item)
	m.outline = append(m.outline, ref)
	var kids []types.IndirectRef
	seen := make(map[int]bool)
	next := d.Dict(catalog["Outlines"])["First"]
	for {
		kid, ok := next.(types.IndirectRef)
		dict := d.Dict(kid)
		if !ok || dict == nil || seen[kid.ObjectNumber.Value()] {
			break
		}
		seen[kid.ObjectNumber.Value()] = true
		kids = append(kids, kid)
		next = dict["Next"]
	}
	if len(kids) == 0 {
		return
	}
	count := m.chain(kids, ref)
	item["First"], item["Last"] = kids[0], kids[len(kids)-1]
	item["Count"] = types.Integer(-count) // closed
}

// chain links bookmarks to each other and to their parent. It returns the number
// of bookmarks that are visible when the parent is open.
func (m *merger) chain(items []types.IndirectRef, parent types.IndirectRef) int {
	visible := 0
	for i, ref := range items {
		dict := m.out.Dict(ref)
		dict["Parent"] = parent
		delete(dict, "Prev")
		delete(dict, "Next")
		if i > 0 {
			dict["Prev"] = items[i-1]
		}
		if i+1 < len(items) {
			dict["Next"] = items[i+1]
		}
		visible += 1 + max(0, m.out.Integer(dict["Count"]))
	}
	return visible
}

func (m *merger) outlines() types.Object {
	root := types.Dict{"Type": types.Name("Outlines")}
	ref := m.out.Add(root)
	root["Count"] = types.Integer(m.chain(m.outline, ref))
	root["First"], root["Last"] = m.outline[0], m.outline[len(m.outline)-1]
	return ref
}

// labelled holds the page labels of an input whose pages start at index from.
type labelled struct {
	from int
	tree types.Object
}

// pageLabels joins the page labels. Pages of a file without labels are numbered
// by their position in the result, as viewers do.
func (m *merger) pageLabels() types.Object {
	var nums types.Array
	given := false
	for i, l := range m.labels {
		end := len(m.pages)
		if i+1 < len(m.labels) {
			end = m.labels[i+1].from
		}
		entries := m.out.NumberTree(l.tree)
		given = given || len(entries) > 0
		if len(entries) == 0 || entries[0].Key > 0 {
			nums = append(nums, types.Integer(l.from), types.Dict{"S": types.Name("D"), "St": types.Integer(l.from + 1)})
		}
		for _, e := range entries {
			if at := l.from + e.Key; e.Key >= 0 && at < end {
				nums = append(nums, types.Integer(at), e.Value)
			}
		}
	}
	if !given {
		return nil
	}
	return m.out.Add(types.Dict{"Nums": nums})
}
