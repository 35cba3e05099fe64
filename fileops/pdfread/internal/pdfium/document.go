package pdfium

import (
	"fmt"
	"math"
	"regexp"

	"github.com/filewright/filewright/fileops"
)

// A Document is a PDF file that an instance has opened. It is closed with the
// instance.
type Document struct {
	In    *Instance
	Ptr   uint64
	form  uint64 // form fill environment, 0 if the file has no form
	Pages int
}

// Limits of documents.
const (
	MaxFileSize = 512 << 20
	mostPages   = 99_999  // what the parameter pages can name
	MaxChars    = 200_000 // of one page
)

// Errors of FPDF_GetLastError (fpdfview.h).
const (
	errorPassword = 4
	errorSecurity = 5
)

// OpenDocument opens a file. What pdfium makes of damaged files is often
// readable, so only what cannot be opened at all is an error.
func OpenDocument(in *Instance, data []byte) (*Document, error) {
	p := in.malloc(len(data))
	copy(in.Bytes(p, len(data)), data)
	ptr := in.Call("FPDF_LoadMemDocument", uint64(p), uint64(len(data)), 0)
	if in.Err != nil {
		return nil, in.Err
	}
	if ptr == 0 {
		switch code := in.Int("FPDF_GetLastError"); {
		case in.Err != nil:
			return nil, in.Err
		case code == errorPassword:
			return nil, fileops.Fail(fileops.ErrPasswordRequired, nil, "the document is protected by a password; unlock it first")
		case code == errorSecurity:
			return nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the document is protected in a way that is not supported")
		default:
			return nil, fileops.Fail(fileops.ErrCorruptInput, fmt.Errorf("pdfium error %d", code), "the PDF file is damaged and cannot be opened")
		}
	}
	d := &Document{In: in, Ptr: ptr, Pages: in.Int("FPDF_GetPageCount", ptr)}
	switch {
	case in.Err != nil:
		return nil, in.Err
	case d.Pages <= 0:
		return nil, fileops.Fail(fileops.ErrCorruptInput, nil, "the PDF file has no pages")
	case d.Pages > mostPages:
		return nil, fileops.Fail(fileops.ErrLimit, nil, "the document has %d pages, more than the limit of %d; split it first", d.Pages, mostPages)
	}
	return d, nil
}

// OpenForm prepares for drawing form fields, if there are any.
func (d *Document) OpenForm() {
	if d.In.Int("FPDF_GetFormType", d.Ptr) == 0 {
		return
	}
	info := d.In.Call("FPDF_FORMFILLINFO_Create")
	d.form = d.In.Call("FPDFDOC_InitFormFillEnvironment", d.Ptr, info)
	if d.form != 0 {
		d.In.Call("FPDF_SetFormFieldHighlightAlpha", d.form, 0)
	}
}

// A Page is a page of a document, loaded.
type Page struct {
	in     *Instance
	doc    *Document
	Ptr    uint64
	Number int     // from 1
	W, H   float64 // points, as the page is shown, that is after rotation
}

// Load loads a page, counted from 0. It returns nil if the page is damaged; the
// instance's err is set only if pdfium failed altogether.
func (d *Document) Load(index int) *Page {
	ptr := d.In.Call("FPDF_LoadPage", d.Ptr, uint64(index))
	if ptr == 0 {
		return nil
	}
	p := &Page{in: d.In, doc: d, Ptr: ptr, Number: index + 1}
	p.W, p.H = d.In.float("FPDF_GetPageWidthF", ptr), d.In.float("FPDF_GetPageHeightF", ptr)
	if !(p.W > 0 && p.H > 0) {
		p.Close()
		return nil
	}
	return p
}

func (p *Page) Close() { p.in.Call("FPDF_ClosePage", p.Ptr) }

// Pixels returns the size of the page at a resolution.
func (p *Page) Pixels(dpi float64) (w, h int) {
	// A page of 595.276 points should not get an extra column for the
	// error of a float.
	round := func(pt float64) int { return int(max(1, math.Ceil(pt*dpi/72-0.01))) }
	return round(p.W), round(p.H)
}

// Flags of FPDF_RenderPageBitmap (fpdfview.h).
const (
	renderAnnotations = 0x01
	RenderRGBA        = 0x10 // instead of BGRA
	BitmapRGBA        = 4    // FPDFBitmap_BGRA
)

// Draw draws the page on white and calls fn with the pixels, RGBA and opaque,
// valid until fn returns.
func (p *Page) Draw(w, h int, fn func(pix []byte) error) error {
	in := p.in
	bitmap := in.Call("FPDFBitmap_CreateEx", uint64(w), uint64(h), BitmapRGBA, 0, uint64(4*w))
	if bitmap == 0 {
		if in.Err == nil {
			in.Err = errMemory
		}
		return in.Err
	}
	in.Call("FPDFBitmap_FillRect", bitmap, 0, 0, uint64(w), uint64(h), 0xffffffff)
	in.Call("FPDF_RenderPageBitmap", bitmap, p.Ptr, 0, 0, uint64(w), uint64(h), 0, renderAnnotations|RenderRGBA)
	if p.doc.form != 0 {
		in.Call("FPDF_FFLDraw", p.doc.form, bitmap, p.Ptr, 0, 0, uint64(w), uint64(h), 0, renderAnnotations|RenderRGBA)
	}
	pix := in.Bytes(uint32(in.Call("FPDFBitmap_GetBuffer", bitmap)), 4*w*h)
	if in.Err != nil {
		return in.Err
	}
	err := fn(pix)
	in.Call("FPDFBitmap_Destroy", bitmap)
	return err
}

// MetaText returns an entry of the document information.
func (d *Document) MetaText(key string) string {
	in := d.In
	p := in.malloc(len(key) + 1)
	if b := in.Bytes(p, len(key)+1); b != nil {
		copy(b, key+"\x00")
	}
	s := Utf16String(in.WithBuffer(8192, func(b, n uint64) int { return in.Int("FPDF_GetMetaText", d.Ptr, uint64(p), b, n) }))
	in.free(p)
	return s
}

// Formats of bitmaps (fpdfview.h).
const (
	FormatGray = 1
	FormatBGR  = 2
	FormatBGRx = 3
	FormatBGRA = 4
)

// Language returns that of the document, as the catalog tells it (ISO 32000-1,
// 14.9.2), "" if it does not or if what it says is no language tag.
func (d *Document) Language() string {
	in := d.In
	lang := Utf16String(in.WithBuffer(256, func(b, n uint64) int { return in.Int("FPDFCatalog_GetLanguage", d.Ptr, b, n) }))
	if !languageTag.MatchString(lang) {
		return ""
	}
	return lang
}

// languageTag is the form of most language tags (RFC 5646).
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
