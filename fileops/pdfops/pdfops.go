// Package pdfops provides the actions on PDF files: lock, unlock,
// reset_password, merge, compress, extract_pages, split, rotate, flatten,
// page_numbers, watermark, fill_form, bookmarks, attach, ocr, and convert from images, from
// PostScript, to PDF/A and to SVG.
//
// All actions work in pure Go, with pdfcpu as the parser. If qpdf is available
// (see [Tools]), it sets and removes passwords. It also repairs files that
// pdfcpu cannot read.
//
//	tools := pdfops.Tools{}
//	if qpdf, err := engine.Find(ctx, []string{"--version"}, "qpdf"); err == nil {
//		tools.QPDF = qpdf
//	}
//	err := fileops.Run(ctx, tools.Lock(), fileops.Args{"password": "s3cret"},
//		fileops.ToDir("out"), fileops.Path("report.pdf"))
//
// # Limits
//
// Documents of 64 MiB and more stay in their file: only objects and short streams
// are in memory. They may have at most 4 GiB. Compress, files in memory, and without
// qpdf also encrypted files, have a limit of 512 MiB. Documents may have 5,000 pages
// (see [Limits]), and images 100 megapixels.
//
// pdfcpu checks the context only between objects, so parsing one hostile object
// cannot be interrupted. Run the actions on untrusted files in processes that
// can be killed; see package isolate.
package pdfops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// Tools are optional components that the actions use beyond pure Go. The zero
// value is ready to use.
type Tools struct {
	// QPDF is qpdf, version 10 or later. nil means pure Go.
	QPDF *engine.Program

	// Ghostscript is Ghostscript, version 9.50 or later, for PostScript and for PDF/A. nil
	// means no PostScript, and PDF/A only of files whose pages need no change.
	Ghostscript *engine.Program

	// PDFToCairo is pdftocairo of poppler, version 0.64 or later, for SVG. nil means no SVG.
	PDFToCairo *engine.Program

	// Images decodes and encodes images for Compress. nil means pure Go, which
	// leaves CMYK JPEG and JPEG 2000 images unchanged.
	Images ImageCodec

	// Renderer lets Compress check the appearance of its result. If the result
	// looks different from the original, Compress uses a gentler level or gives up.
	// nil means that results are parsed again, but not drawn.
	Renderer Renderer

	// Reader recognizes the text of scanned pages for OCR. Without it, or if it has no
	// language, there is no such action. nil means no recognition.
	Reader TextReader

	// Merger merges PDF files for Merge after it has converted other formats. nil
	// means Merge itself; package isolate provides another.
	Merger fileops.Action

	// FontDirs are directories with the fonts of the host, for text that the built-in
	// font lacks. nil means the usual ones of the system.
	FontDirs []string

	Limits Limits

	// Run limits each run of QPDF. Zero fields mean one minute of processor time
	// and 4 GiB of address space.
	Run engine.Limits

	large int64 // size of files whose streams stay in the file; 0 means mapFrom
}

// Limits bound the input of the actions. Zero fields mean the defaults.
type Limits struct {
	Pages  int   // of a document, or of all merged documents together; 0 means 5,000
	Pixels int64 // of an image that becomes a page, width × height; 0 means 100 million
}

func (l Limits) pages() int {
	if l.Pages <= 0 {
		return 5000
	}
	return l.Pages
}

// checkPixels returns an error if an image is larger than the limit.
func (l Limits) checkPixels(width, height int) error {
	most := l.Pixels
	most = cmp.Or(max(most, 0), 100_000_000)
	if width <= 0 || height <= 0 || int64(width) <= most/int64(height) {
		return nil
	}
	text := fmt.Sprintf("%d pixels", most)
	if most%1_000_000 == 0 {
		text = fmt.Sprintf("%d megapixels", most/1_000_000)
	}
	return fileops.Fail(fileops.ErrLimit, nil, "the picture has %d × %d pixels, more than the limit of %s; make it smaller first", width, height, text)
}

// Lock is [Tools.Lock] in pure Go.
func Lock() fileops.Action { return Tools{}.Lock() }

// Unlock is [Tools.Unlock] in pure Go.
func Unlock() fileops.Action { return Tools{}.Unlock() }

// ResetPassword is [Tools.ResetPassword] in pure Go.
func ResetPassword() fileops.Action { return Tools{}.ResetPassword() }

// Compress is [Tools.Compress] in pure Go.
func Compress() fileops.Action { return Tools{}.Compress() }

// Merge is [Tools.Merge] in pure Go.
func Merge(convert ...fileops.Action) fileops.Action { return Tools{}.Merge(convert...) }

// ExtractPages is [Tools.ExtractPages] in pure Go.
func ExtractPages() fileops.Action { return Tools{}.ExtractPages() }

// ConvertPages is [Tools.ConvertPages] in pure Go.
func ConvertPages() fileops.Action { return Tools{}.ConvertPages() }

// Split is [Tools.Split] in pure Go.
func Split() fileops.Action { return Tools{}.Split() }

// Rotate is [Tools.Rotate] in pure Go.
func Rotate() fileops.Action { return Tools{}.Rotate() }

// Flatten is [Tools.Flatten] in pure Go.
func Flatten() fileops.Action { return Tools{}.Flatten() }

// Metadata is [Tools.Metadata] in pure Go.
func Metadata() fileops.Action { return Tools{}.Metadata() }

// Bookmarks is [Tools.Bookmarks] in pure Go.
func Bookmarks() fileops.Action { return Tools{}.Bookmarks() }

// Attach is [Tools.Attach] in pure Go.
func Attach() fileops.Action { return Tools{}.Attach() }

// PageNumbers is [Tools.PageNumbers] in pure Go.
func PageNumbers() fileops.Action { return Tools{}.PageNumbers() }

// Watermark is [Tools.Watermark] in pure Go.
func Watermark() fileops.Action { return Tools{}.Watermark() }

// FillForm is [Tools.FillForm] in pure Go.
func FillForm() fileops.Action { return Tools{}.FillForm() }

// ConvertArchival is [Tools.ConvertArchival] in pure Go.
func ConvertArchival() fileops.Action { return Tools{}.ConvertArchival() }

// FromImages is [Tools.FromImages] in pure Go.
func FromImages() fileops.Action { return Tools{}.FromImages() }

// ImagesToPDF is [Tools.ImagesToPDF] in pure Go.
func ImagesToPDF() fileops.Action { return Tools{}.ImagesToPDF() }

// spec returns a Spec for PDF files.
func (t Tools) spec(name, summary string, params fileops.Schema) fileops.Spec {
	return fileops.Spec{
		Name: name, Engine: "pdfcpu", Family: "pdf", Summary: summary, MaxBytes: pdf.MaxMapped,
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PDF}, Params: params}},
	}
}

// pageSpec returns a Spec for actions on the pages of PDF files, which may be
// encrypted.
func (t Tools) pageSpec(name, summary string, params ...fileops.Param) fileops.Spec {
	spec := t.spec(name, summary, append(params, fileops.Param{
		Name: "password", Doc: "Password that opens an encrypted file.",
		Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput,
	}))
	spec.Encrypted = true
	return spec
}

// loadPages reads the input and its pages, and warns about what a new file lacks. The
// caller must close the document.
func (t Tools) loadPages(ctx context.Context, job *fileops.Job) (*pdf.Document, []pdf.Page, error) {
	d, err := t.load(ctx, job, job.Input(), "the file")
	if err != nil {
		return nil, nil, err
	}
	warnLosses(job, d.Encrypted, d.Incomplete(), "the file")
	if !d.Encrypted {
		job.WarnPasswordUnused()
	}
	pages, err := d.Pages(t.Limits.pages())
	if err != nil {
		err = fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged and could not be repaired")
		return nil, nil, errors.Join(err, d.Close())
	}
	return d, pages, nil
}

// plainCopy returns a document as a file without encryption and damage, to compare its
// pages with those of the result.
func plainCopy(d *pdf.Document) ([]byte, error) {
	var b bytes.Buffer
	err := d.Write(&b, false, nil)
	return b.Bytes(), err
}

// load reads a PDF file. If pdfcpu cannot read it completely, qpdf rewrites it first.
// who names the file in messages: "the file", or its name if there are several. The
// caller must close the document.
func (t Tools) load(ctx context.Context, job *fileops.Job, f *fileops.File, who string) (*pdf.Document, error) {
	if path, ok := f.Path(); ok && f.Size() >= cmp.Or(t.large, mapFrom) {
		d, err := t.loadLarge(ctx, job, f, path, who)
		if !errors.Is(err, errors.ErrUnsupported) {
			return d, err
		}
	}
	data, err := f.ReadAll(pdf.MaxFile)
	if err != nil {
		return nil, err
	}
	return t.loadData(ctx, job, f, data, who)
}

// loadData is load for a file whose content is in memory.
func (t Tools) loadData(ctx context.Context, job *fileops.Job, f *fileops.File, data []byte, who string) (*pdf.Document, error) {
	d, err := pdf.ParseComplete(ctx, data, t.Limits.pages())
	if errors.Is(err, pdf.ErrEncrypted) && job.Params.Has("password") {
		return t.decrypted(ctx, job, f, data, who)
	}
	final := err == nil || errors.Is(err, pdf.ErrEncrypted) || errors.Is(err, pdf.ErrHandler) || errors.Is(err, pdf.ErrManyPages) || ctx.Err() != nil
	if t.QPDF != nil && !final {
		encrypted := errors.Is(err, pdf.ErrProtected) || errors.Is(err, pdf.ErrSecurity)
		repaired, rerr := t.rewrite(ctx, job, f, nil, encrypted)
		if rerr == nil {
			job.Log.Debug("file repaired by qpdf", "err", err)
			if again, err2 := pdf.ParseComplete(ctx, repaired, t.Limits.pages()); again != nil || d == nil {
				if again != nil {
					again.Encrypted = encrypted
				}
				d, err = again, errors.Join(err2, err)
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, pdf.ErrEncrypted):
		return nil, fileops.Fail(fileops.ErrPasswordRequired, err, "%s is protected by a password; unlock it first", who)
	case errors.Is(err, pdf.ErrManyPages):
		return nil, manyPages(t, err, who)
	case d != nil:
		return d, nil // with everything that could be read, as a viewer would show it
	case errors.Is(err, pdf.ErrHandler) || errors.Is(err, pdf.ErrSecurity):
		return nil, damagedSecurity(err, who)
	}
	return nil, fileops.Fail(fileops.ErrCorruptInput, err, "%s is damaged and could not be repaired", who)
}

// decrypted opens an encrypted file, whose content is data, with the password of the job. If pdfcpu
// cannot read it completely, qpdf rewrites it first. For who, see [Tools.load].
func (t Tools) decrypted(ctx context.Context, job *fileops.Job, f *fileops.File, data []byte, who string) (*pdf.Document, error) {
	sec, err := pdf.FindSecurity(ctx, data)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil || sec == nil:
		return nil, damagedSecurity(err, who)
	}
	for _, form := range pdf.PasswordForms(job.Params.Get("password")) {
		secret, ok := sec.Open(form)
		if !ok {
			continue
		}
		d, err := sec.Decrypt(ctx, data, secret)
		if err == nil {
			_, err = d.Pages(t.Limits.pages())
		}
		if t.QPDF != nil && ctx.Err() == nil && !errors.Is(err, pdf.ErrManyPages) && (err != nil || d.Incomplete()) {
			if repaired, rerr := t.rewrite(ctx, job, f, form, true); rerr == nil {
				job.Log.Debug("file repaired by qpdf", "err", err)
				if again, err2 := pdf.ParseComplete(ctx, repaired, t.Limits.pages()); again != nil {
					d, err = again, nil
				} else {
					err = errors.Join(err, err2)
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, pdf.ErrManyPages):
			return nil, manyPages(t, err, who)
		case err != nil:
			return nil, fileops.Fail(fileops.ErrCorruptInput, err, "%s is damaged and could not be repaired", who)
		}
		d.Encrypted = true
		return d, nil
	}
	return nil, fileops.Fail(fileops.ErrWrongPassword, nil, "the password does not open %s", who)
}

// warnLosses warns that a result lacks the encryption of a file, or objects that
// could not be read. For who, see [Tools.load].
func warnLosses(job *fileops.Job, encrypted, incomplete bool, who string) {
	if encrypted {
		job.Warn(fileops.WarnProtectionRemoved, "The result is not encrypted; %s was, for example to restrict printing.", who)
	}
	if incomplete {
		job.Warn(fileops.WarnContentDropped, "Parts of %s could not be read, because it is damaged.", who)
	}
}

// rewrite makes qpdf read a file that pw opens, damaged or not, and returns its output without
// encryption. It fails if the file is encrypted and qpdf does not notice: the
// output would contain streams that are still encrypted.
func (t Tools) rewrite(ctx context.Context, job *fileops.Job, f *fileops.File, pw []byte, encrypted bool) ([]byte, error) {
	out, err := t.rewriteTo(ctx, job, f, pw, encrypted)
	if err != nil {
		return nil, err
	}
	defer os.Remove(out)
	st, err := os.Stat(out)
	if err != nil {
		return nil, err
	}
	if st.Size() > pdf.MaxFile {
		return nil, errors.New("the repaired file is too large")
	}
	return os.ReadFile(out)
}

// rewriteTo is rewrite into a file. It returns its path, and the caller must remove it.
func (t Tools) rewriteTo(ctx context.Context, job *fileops.Job, f *fileops.File, pw []byte, encrypted bool) (string, error) {
	in, err := job.Path(f)
	if err != nil {
		return "", err
	}
	if encrypted {
		if state, err := t.probe(ctx, job, in, pw); err != nil || state != lockOpen {
			return "", errors.Join(errors.New("qpdf cannot decrypt the file"), err)
		}
	}
	dir, err := job.Dir()
	if err != nil {
		return "", err
	}
	out, err := os.CreateTemp(dir, "repaired-*.pdf")
	if err != nil {
		return "", err
	}
	if err := out.Close(); err != nil {
		return "", err
	}
	args := append(password(pw), "--decrypt", "--object-streams=disable", in, out.Name())
	if err := t.qpdf(ctx, job, args...); err != nil {
		os.Remove(out.Name())
		return "", err
	}
	return out.Name(), nil
}
