package pdfread

import (
	"context"
	"fmt"
	"math"

	"github.com/filewright/filewright/fileops"
)

// A document is a PDF file that an instance has opened. It is closed with the
// instance.
type document struct {
	in    *instance
	ptr   uint64
	form  uint64 // form fill environment, 0 if the file has no form
	pages int
}

// Errors of FPDF_GetLastError (fpdfview.h).
const (
	errorPassword = 4
	errorSecurity = 5
)

// openDocument opens a file. What pdfium makes of damaged files is often
// readable, so only what cannot be opened at all is an error.
func openDocument(in *instance, data []byte) (*document, error) {
	p := in.malloc(len(data))
	copy(in.bytes(p, len(data)), data)
	ptr := in.call("FPDF_LoadMemDocument", uint64(p), uint64(len(data)), 0)
	if in.err != nil {
		return nil, in.err
	}
	if ptr == 0 {
		switch code := in.int("FPDF_GetLastError"); {
		case in.err != nil:
			return nil, in.err
		case code == errorPassword:
			return nil, fileops.Fail(fileops.ErrPasswordRequired, nil, "the document is protected by a password; unlock it first")
		case code == errorSecurity:
			return nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the document is protected in a way that is not supported")
		default:
			return nil, fileops.Fail(fileops.ErrCorruptInput, fmt.Errorf("pdfium error %d", code), "the PDF file is damaged and cannot be opened")
		}
	}
	d := &document{in: in, ptr: ptr, pages: in.int("FPDF_GetPageCount", ptr)}
	switch {
	case in.err != nil:
		return nil, in.err
	case d.pages <= 0:
		return nil, fileops.Fail(fileops.ErrCorruptInput, nil, "the PDF file has no pages")
	case d.pages > mostPages:
		return nil, fileops.Fail(fileops.ErrLimit, nil, "the document has %d pages, more than the limit of %d; split it first", d.pages, mostPages)
	}
	return d, nil
}

// openForm prepares for drawing form fields, if there are any.
func (d *document) openForm() {
	if d.in.int("FPDF_GetFormType", d.ptr) == 0 {
		return
	}
	info := d.in.call("FPDF_FORMFILLINFO_Create")
	d.form = d.in.call("FPDFDOC_InitFormFillEnvironment", d.ptr, info)
	if d.form != 0 {
		d.in.call("FPDF_SetFormFieldHighlightAlpha", d.form, 0)
	}
}

// A page is a page of a document, loaded.
type page struct {
	in     *instance
	doc    *document
	ptr    uint64
	number int     // from 1
	w, h   float64 // points, as the page is shown, that is after rotation
}

// load loads a page, counted from 0. It returns nil if the page is damaged; the
// instance's err is set only if pdfium failed altogether.
func (d *document) load(index int) *page {
	ptr := d.in.call("FPDF_LoadPage", d.ptr, uint64(index))
	if ptr == 0 {
		return nil
	}
	p := &page{in: d.in, doc: d, ptr: ptr, number: index + 1}
	p.w, p.h = d.in.float("FPDF_GetPageWidthF", ptr), d.in.float("FPDF_GetPageHeightF", ptr)
	if !(p.w > 0 && p.h > 0) {
		p.close()
		return nil
	}
	return p
}

func (p *page) close() { p.in.call("FPDF_ClosePage", p.ptr) }

// pixels returns the size of the page at a resolution.
func (p *page) pixels(dpi float64) (w, h int) {
	// A page of 595.276 points should not get an extra column for the
	// error of a float.
	round := func(pt float64) int { return int(max(1, math.Ceil(pt*dpi/72-0.01))) }
	return round(p.w), round(p.h)
}

// Flags of FPDF_RenderPageBitmap (fpdfview.h).
const (
	renderAnnotations = 0x01
	renderRGBA        = 0x10 // instead of BGRA
	bitmapRGBA        = 4    // FPDFBitmap_BGRA
)

// draw draws the page on white and calls fn with the pixels, RGBA and opaque,
// valid until fn returns.
func (p *page) draw(w, h int, fn func(pix []byte) error) error {
	in := p.in
	bitmap := in.call("FPDFBitmap_CreateEx", uint64(w), uint64(h), bitmapRGBA, 0, uint64(4*w))
	if bitmap == 0 {
		if in.err == nil {
			in.err = errMemory
		}
		return in.err
	}
	in.call("FPDFBitmap_FillRect", bitmap, 0, 0, uint64(w), uint64(h), 0xffffffff)
	in.call("FPDF_RenderPageBitmap", bitmap, p.ptr, 0, 0, uint64(w), uint64(h), 0, renderAnnotations|renderRGBA)
	if p.doc.form != 0 {
		in.call("FPDF_FFLDraw", p.doc.form, bitmap, p.ptr, 0, 0, uint64(w), uint64(h), 0, renderAnnotations|renderRGBA)
	}
	pix := in.bytes(uint32(in.call("FPDFBitmap_GetBuffer", bitmap)), 4*w*h)
	if in.err != nil {
		return in.err
	}
	err := fn(pix)
	in.call("FPDFBitmap_Destroy", bitmap)
	return err
}

// errPageTimeout is why an instance is killed that takes too long for a page.
func (e *Engine) errPageTimeout(number int) error {
	return fileops.Fail(fileops.ErrLimit, nil, "page %d takes longer to process than the limit of %v", number, e.timeout)
}

// open reads the input of job and opens it in an instance.
func (e *Engine) open(in *instance, job *fileops.Job) (*document, error) {
	data, err := job.Input().ReadAll(maxInputSize)
	if err != nil {
		return nil, err
	}
	defer in.within(e.timeout, fileops.Fail(fileops.ErrLimit, nil, "the document takes longer to open than the limit of %v", e.timeout))()
	return openDocument(in, data)
}

// cancelled returns why ctx ended, or nil.
func cancelled(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
