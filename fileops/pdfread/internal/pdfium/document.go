package pdfium

import (
	"bytes"
	"fmt"
	"math"
	"regexp"

	"github.com/filewright/filewright/fileops"
)

// A Document is a PDF file that an instance has opened. It is closed with the
// instance.
type Document struct {
	In     *Instance
	Ptr    uint64
	form   uint64 // form fill environment, 0 without a form
	fields uint64 // like form, see Fields
	Pages  int

	drawn drawing // of the values of form fields, see ViewerDraws

	data   uint32 // address of the file
	size   int
	secret uint32 // address of the password, or 0
}

// Limits of documents.
const (
	MaxFileSize = 512 << 20
	mostPages   = 99_999  // largest page number that the parameter pages accepts
	MaxChars    = 200_000 // of one page
)

// Errors of FPDF_GetLastError (fpdfview.h).
const (
	errorPassword = 4
	errorSecurity = 5
)

// OpenDocument opens a file. The password may be the user or the owner password;
// it is ignored if the file needs none. pdfium can often read damaged files, so
// only a file that it cannot open at all is an error.
func OpenDocument(in *Instance, data []byte, password string) (*Document, error) {
	p := in.malloc(len(data))
	copy(in.Bytes(p, len(data)), data)
	var secret uint32
	if password != "" {
		secret = in.cString(password)
	}
	ptr := in.Call("FPDF_LoadMemDocument", uint64(p), uint64(len(data)), uint64(secret))
	if in.Err != nil {
		return nil, in.Err
	}
	if ptr == 0 {
		switch code := in.Int("FPDF_GetLastError"); {
		case in.Err != nil:
			return nil, in.Err
		case code == errorPassword && password != "":
			return nil, fileops.Fail(fileops.ErrWrongPassword, nil, "the password is not that of the file")
		case code == errorPassword:
			return nil, fileops.Fail(fileops.ErrPasswordRequired, nil, "the document is protected by a password; give its password, or unlock it first")
		case code == errorSecurity:
			return nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the document is protected in a way that is not supported")
		default:
			return nil, fileops.Fail(fileops.ErrCorruptInput, fmt.Errorf("pdfium error %d", code), "the PDF file is damaged and cannot be opened")
		}
	}
	d := &Document{In: in, Ptr: ptr, Pages: in.Int("FPDF_GetPageCount", ptr), data: p, size: len(data), secret: secret}
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

// Encrypted reports whether the file is encrypted, also if it opens without a password.
func (d *Document) Encrypted() bool {
	return d.In.Int("FPDF_GetSecurityHandlerRevision", d.Ptr) >= 0
}

// Reopen opens the file again, without changes that were made to d. It returns nil
// if that fails.
func (d *Document) Reopen() *Document {
	again := *d
	again.form, again.fields = 0, 0
	if again.Ptr = d.In.Call("FPDF_LoadMemDocument", uint64(d.data), uint64(d.size), uint64(d.secret)); again.Ptr == 0 {
		return nil
	}
	return &again
}

// A drawing says who draws the values of form fields.
type drawing byte

const (
	drawnUnknown drawing = iota
	drawnByFile
	drawnByViewer
)

// ViewerDraws reports whether the file asks viewers to draw the values of its form fields, even where
// it has appearances (NeedAppearances; ISO 32000-2, table 224). An entry within an object stream is not
// found.
func (d *Document) ViewerDraws() bool {
	if d.drawn == drawnUnknown {
		const key = "/NeedAppearances"
		d.drawn = drawnByFile
		file := d.In.Bytes(d.data, d.size)
		if i := bytes.LastIndex(file, []byte(key)); i >= 0 {
			const white = " \t\r\n\f\x00"
			if bytes.HasPrefix(bytes.TrimLeft(file[i+len(key):], white), []byte("true")) {
				d.drawn = drawnByViewer
			}
		}
	}
	return d.drawn == drawnByViewer
}

// OpenForm enables the rendering of form fields, if there are any.
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

// Fields returns a form fill environment that reads form fields, but does not
// draw them.
func (d *Document) Fields() uint64 {
	if d.fields == 0 && d.In.Int("FPDF_GetFormType", d.Ptr) != 0 {
		d.fields = d.In.Call("FPDFDOC_InitFormFillEnvironment", d.Ptr, d.In.Call("FPDF_FORMFILLINFO_Create"))
	}
	return d.fields
}

// A Page is a loaded page of a document.
type Page struct {
	in     *Instance
	doc    *Document
	Ptr    uint64
	Number int     // from 1
	W, H   float64 // points, after rotation
}

// Load loads a page, counted from 0. It returns nil if the page is damaged. It
// sets the instance's error only if pdfium itself failed.
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

// In returns the instance that loaded the page.
func (p *Page) In() *Instance { return p.in }

// Close releases the page.
func (p *Page) Close() { p.in.Call("FPDF_ClosePage", p.Ptr) }

// Pixels returns the size of the page in pixels at a resolution.
func (p *Page) Pixels(dpi float64) (w, h int) {
	// Rounding errors must not add a pixel column to a page of 595.276 points.
	round := func(pt float64) int { return int(max(1, math.Ceil(pt*dpi/72-0.01))) }
	return round(p.W), round(p.H)
}

// Flags of FPDF_RenderPageBitmap (fpdfview.h).
const (
	renderAnnotations = 0x01
	RenderRGBA        = 0x10 // instead of BGRA
	BitmapRGBA        = 4    // FPDFBitmap_BGRA
)

// Draw renders the page on white and calls fn with the pixels, RGBA and opaque.
// They are valid until fn returns.
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
	p := in.cString(key)
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

// Language returns the language tag in the catalog (ISO 32000-1, 14.9.2). It
// returns "" if the entry is missing or not a language tag.
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
