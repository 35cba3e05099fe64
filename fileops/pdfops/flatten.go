package pdfops

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/appearance"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// Flatten returns the action "flatten". Form fields and other annotations become
// content of their pages: they look as before and can no longer be changed. Tags
// of annotations become tags of that content.
//
// Fields without an appearance get one. Links stay, as do annotations whose
// appearance is left to viewers. Hidden annotations, XFA forms and signatures are
// left out. The result is not encrypted.
func (t Tools) Flatten() fileops.Action {
	spec := t.pageSpec("flatten", "Makes form fields and annotations part of the pages.")
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		d, pages, err := t.loadPages(ctx, job)
		if err != nil {
			return err
		}
		defer d.Close()
		if d.Dict(d.Catalog()["AcroForm"])["XFA"] != nil {
			job.Warn(fileops.WarnContentDropped, "The XFA form of the file was left out; its fields became content.")
		}
		if err := t.drawFields(ctx, job, d); err != nil {
			return err
		}
		if err := flatten(ctx, job, d, pages); err != nil {
			return err
		}
		return writePure(job, d, d.IsPDFA1(), nil)
	})
}

// drawFields makes the appearances of form fields that have none.
func (t Tools) drawFields(ctx context.Context, job *fileops.Job, d *pdf.Document) error {
	maker := appearance.New(d, t.fonts())
	maker.Form(ctx, d.Dict(d.Catalog()["AcroForm"]))
	if err := maker.Finish(); err != nil {
		return err
	}
	if n := maker.Missed(); n > 0 {
		job.Warn(fileops.WarnFontsSubstituted, "Form fields have %d characters that no font has.", n)
	}
	return nil
}

// flatten makes annotations part of the pages, and removes the form.
func flatten(ctx context.Context, job *fileops.Job, d *pdf.Document, pages []pdf.Page) error {
	f := newFlattener(d)
	for i, p := range pages {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.page(p)
		job.Progress(0.9 * float64(i+1) / float64(len(pages)))
	}
	f.finish()
	if f.left > 0 {
		job.Warn(fileops.WarnContentDropped, "%d annotations have no appearance of their own; they were not changed.", f.left)
	}
	catalog := d.Catalog()
	for _, key := range []string{"AcroForm", "Perms", "DSS"} {
		delete(catalog, key)
	}
	if names := d.Dict(catalog["Names"]); names["JavaScript"] != nil {
		delete(names, "JavaScript") // scripts of fields that no longer exist
		job.Warn(fileops.WarnScriptNotRun, "The scripts of the form were left out.")
	}
	return nil
}

// A flattener draws annotations on their pages.
type flattener struct {
	doc     *pdf.Document
	left    int                  // annotations without an appearance, which stay
	seen    map[int]bool         // pages
	tags    types.Dict           // root of the structure, or nil
	parents map[int]types.Object // entries of its parent tree
	content map[int]types.Array  // entries for the content of pages
	next    int                  // free number in the parent tree
	marks   map[int]types.Dict   // references to the content of annotations, by their object number
}

func newFlattener(d *pdf.Document) *flattener {
	f := &flattener{
		doc: d, seen: make(map[int]bool), tags: d.Dict(d.Catalog()["StructTreeRoot"]),
		parents: make(map[int]types.Object), content: make(map[int]types.Array), marks: make(map[int]types.Dict),
	}
	for _, e := range d.NumberTree(f.tags["ParentTree"]) {
		f.parents[e.Key] = e.Value
		f.next = max(f.next, e.Key+1)
	}
	return f
}

// Flags of annotations (ISO 32000-2, table 167).
const (
	flagHidden = 1 << 1
	flagNoView = 1 << 5
)

// page draws the annotations of a page and removes them.
func (f *flattener) page(p pdf.Page) {
	d := f.doc
	annots, nr := d.Array(p.Dict["Annots"]), p.Ref.ObjectNumber.Value()
	if annots == nil || nr != 0 && f.seen[nr] {
		return // a page can occur twice in the tree
	}
	f.seen[nr] = true
	canvas := &canvas{doc: d, page: p, names: make(map[int]string)}
	kept := types.Array{}
	for _, o := range annots {
		dict := d.Dict(o)
		kind := d.Name(dict["Subtype"])
		hidden := d.Integer(dict["F"])&(flagHidden|flagNoView) != 0
		form := f.appearance(dict)
		switch {
		case dict == nil || kind == "Popup" || hidden && kind != "Link":
		case kind == "Link":
			kept = append(kept, o)
		case form != nil:
			f.draw(canvas, o, form)
		case kind != "Widget":
			kept = append(kept, o)
			f.left++
		}
	}
	if p.Dict["Annots"] = kept; len(kept) == 0 {
		delete(p.Dict, "Annots")
	}
	canvas.finish()
}

// appearance returns the stream of the normal appearance of an annotation, or nil.
func (f *flattener) appearance(annot types.Dict) types.Object {
	normal := f.doc.Dict(annot["AP"])["N"]
	if f.doc.Stream(normal) != nil {
		return normal
	}
	if state := f.doc.Dict(normal)[f.doc.Name(annot["AS"])]; f.doc.Stream(state) != nil {
		return state
	}
	return nil
}

// draw draws the appearance of an annotation.
func (f *flattener) draw(c *canvas, o, form types.Object) {
	annot := f.doc.Dict(o)
	m, ok := placement(f.doc, annot, f.doc.Stream(form).Dict)
	if !ok {
		return // without extent, so nothing is visible
	}
	if group := annot["OC"]; group != nil {
		s := *f.doc.Stream(form)
		s.Dict = maps.Clone(s.Dict)
		s.Dict["OC"] = group
		form = f.doc.Add(&s)
	}
	if f.doc.Name(annot["Subtype"]) == "Highlight" {
		c.multiply() // viewers keep the text below it readable
		defer c.write("Q\n")
	}
	if f.tags == nil {
		c.draw(form, m)
		return
	}
	if number, ok := f.mark(c.page, o); ok {
		c.write(fmt.Sprintf("/Form <</MCID %d>> BDC\n", number))
	} else {
		c.write("/Artifact BMC\n")
	}
	c.draw(form, m)
	c.write("EMC\n")
}

// placement returns the transformation that takes the box of an appearance to the
// rectangle of its annotation (ISO 32000-2, 12.5.5).
func placement(d *pdf.Document, annot, form types.Dict) (pdf.Matrix, bool) {
	rect, ok := d.Numbers(annot["Rect"], 4)
	box, ok2 := d.Numbers(form["BBox"], 4)
	if !ok || !ok2 {
		return pdf.Matrix{}, false
	}
	own := pdf.IdentityMatrix()
	if v, ok := d.Numbers(form["Matrix"], 6); ok {
		own = pdf.Matrix(v)
	}
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, x := range []float64{box[0], box[2]} {
		for _, y := range []float64{box[1], box[3]} {
			u, v := x*own[0]+y*own[2]+own[4], x*own[1]+y*own[3]+own[5]
			x0, y0, x1, y1 = min(x0, u), min(y0, v), max(x1, u), max(y1, v)
		}
	}
	left, bottom := min(rect[0], rect[2]), min(rect[1], rect[3])
	w, h := math.Abs(rect[2]-rect[0]), math.Abs(rect[3]-rect[1])
	if x1 <= x0 || y1 <= y0 || w == 0 || h == 0 {
		return pdf.Matrix{}, false
	}
	sx, sy := w/(x1-x0), h/(y1-y0)
	return pdf.Matrix{sx, 0, 0, sy, left - x0*sx, bottom - y0*sy}, true
}

// mark makes the content of an annotation content of its structure element. It
// returns the number of the content on the page.
func (f *flattener) mark(p pdf.Page, annot types.Object) (number int, ok bool) {
	d := f.doc
	ref, indirect := annot.(types.IndirectRef)
	dict := d.Dict(annot)
	if !indirect || dict["StructParent"] == nil || p.Ref.ObjectNumber.Value() == 0 {
		return 0, false
	}
	key := d.Integer(dict["StructParent"])
	element := f.parents[key]
	if d.Dict(element)["S"] == nil {
		return 0, false
	}
	page := d.Integer(p.Dict["StructParents"])
	if p.Dict["StructParents"] == nil {
		page = f.next
		f.next++
		p.Dict["StructParents"] = types.Integer(page)
	}
	if _, ok := f.content[page]; !ok {
		f.content[page] = slices.Clone(d.Array(f.parents[page]))
	}
	number = len(f.content[page])
	f.content[page] = append(f.content[page], element)
	f.marks[ref.ObjectNumber.Value()] = types.Dict{"Type": types.Name("MCR"), "Pg": p.Ref, "MCID": types.Integer(number)}
	delete(f.parents, key)
	return number, true
}

// finish updates the structure: elements of annotations get their content.
func (f *flattener) finish() {
	if len(f.marks) == 0 {
		return
	}
	replaced := func(o types.Object) types.Object {
		if ref, ok := f.doc.Dict(o)["Obj"].(types.IndirectRef); ok {
			if mark := f.marks[ref.ObjectNumber.Value()]; mark != nil {
				return mark
			}
		}
		return o
	}
	for _, e := range elementsOf(f.doc, f.tags) {
		if kids := f.doc.Array(e.Dict["K"]); kids == nil {
			e.Dict["K"] = replaced(e.Dict["K"])
		} else {
			for i, o := range kids {
				kids[i] = replaced(o)
			}
		}
	}
	for page, elements := range f.content {
		f.parents[page] = elements
	}
	var nums types.Array
	for _, key := range slices.Sorted(maps.Keys(f.parents)) {
		nums = append(nums, types.Integer(key), f.parents[key])
	}
	f.tags["ParentTree"] = f.doc.AddNumberTree(nums)
	f.tags["ParentTreeNextKey"] = types.Integer(f.next)
}
