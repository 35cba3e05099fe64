package extract

import (
	"errors"
	"slices"

	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// Types of annotations (fpdf_annot.h).
const (
	annotationLink  = 2
	annotationPopup = 16
)

// appears has the annotations for which pdfium makes an appearance when it draws them
// (cpdf_annot.cpp): notes, rectangles, ellipses, marks of text and ink.
var appears = map[int]bool{1: true, 5: true, 6: true, 9: true, 10: true, 11: true, 12: true, 15: true}

// flatten makes form fields and annotations that have an appearance part of the
// content, so that their text is found. The links of the page are lost.
func (x *Extractor) flatten(p *pdfium.Page) {
	if i, ok := x.copied[p.Number]; ok {
		x.reload(p, x.copies, i)
		return
	}
	if !x.annotated(p) {
		return
	}
	x.appear(p)
	before := x.outline(p)
	if !x.merge(p) {
		return
	}
	x.reload(p, x.Doc.Ptr, p.Number-1)
	// pdfium gives the page resources of its own, which hide those that the page
	// inherits (fpdf_flatten.cpp). A copy of the page in another document has them all.
	if after := x.outline(p); x.In.Err == nil && !slices.Equal(before, after[:min(len(before), len(after))]) {
		x.flattenCopy(p)
	}
}

// annotated reports whether a page has annotations other than links and their notes.
func (x *Extractor) annotated(p *pdfium.Page) bool {
	in, found := x.In, false
	for i := range min(in.Int("FPDFPage_GetAnnotCount", p.Ptr), 1000) {
		annot := in.Call("FPDFPage_GetAnnot", p.Ptr, uint64(i))
		switch in.Int("FPDFAnnot_GetSubtype", annot) {
		case annotationLink, annotationPopup:
		default:
			found = true
		}
		in.Call("FPDFPage_CloseAnnot", annot)
	}
	return found
}

// appear draws a page with annotations that may lack an appearance, so that they get
// one.
func (x *Extractor) appear(p *pdfium.Page) {
	in, lacks := x.In, false
	for i := range min(in.Int("FPDFPage_GetAnnotCount", p.Ptr), 1000) {
		annot := in.Call("FPDFPage_GetAnnot", p.Ptr, uint64(i))
		lacks = lacks || appears[in.Int("FPDFAnnot_GetSubtype", annot)]
		in.Call("FPDFPage_CloseAnnot", annot)
	}
	if lacks && in.Err == nil {
		in.Err = p.Draw(1, 1, func([]byte) error { return nil })
	}
}

// merge makes annotations part of the stored content of a page. The loaded page
// still has the old content. It reports whether the content has changed.
func (x *Extractor) merge(p *pdfium.Page) bool {
	const forDisplay, done = 0, 1
	return x.In.Int("FPDFPage_Flatten", p.Ptr, forDisplay) == done
}

// reload replaces a loaded page by a page of a document.
func (x *Extractor) reload(p *pdfium.Page, doc uint64, index int) {
	x.In.Call("FPDF_ClosePage", p.Ptr)
	p.Ptr = x.In.Call("FPDF_LoadPage", doc, uint64(index))
	if p.Ptr == 0 && x.In.Err == nil {
		x.In.Err = errors.New("pdfium: page lost by flattening")
	}
}

// outline returns the types of the first objects of a page, and the fonts of text
// objects. They differ if the page has lost its resources.
func (x *Extractor) outline(p *pdfium.Page) (objects []string) {
	const most, text = 200, 1
	in := x.In
	for i := range min(in.Int("FPDFPage_CountObjects", p.Ptr), most) {
		obj := in.Call("FPDFPage_GetObject", p.Ptr, uint64(i))
		kind := in.Int("FPDFPageObj_GetType", obj)
		o := string(rune('0' + kind))
		if kind == text {
			o += pdfium.FontName(in, in.Call("FPDFTextObj_GetFont", obj))
		}
		objects = append(objects, o)
	}
	return objects
}

// flattenCopy replaces a page by a flattened copy. If that cannot be made, it is
// replaced by the page as it was before.
func (x *Extractor) flattenCopy(p *pdfium.Page) {
	in := x.In
	if x.original == nil {
		if x.original = x.Doc.Reopen(); x.original == nil {
			return
		}
		x.copies = in.Call("FPDF_CreateNewDocument")
	}
	index := p.Number - 1
	at := in.Int("FPDF_GetPageCount", x.copies)
	in.Module.Memory().WriteUint32Le(in.Out, uint32(index))
	if x.copies == 0 || !in.Ok("FPDF_ImportPagesByIndex", x.copies, x.original.Ptr, in.Arg(0), 1, uint64(at)) {
		x.reload(p, x.original.Ptr, index)
		return
	}
	x.copied[p.Number] = at
	x.reload(p, x.copies, at)
	x.appear(p)
	if x.merge(p) {
		x.reload(p, x.copies, at)
	}
}
