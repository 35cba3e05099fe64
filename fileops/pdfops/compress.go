package pdfops

import (
	"bytes"
	"context"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/raster"

	"github.com/filewright/filewright/fileops/pdfops/internal/compress"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// An ImageCodec decodes and encodes the images in a PDF file. Package imageops
// provides an implementation. Implementations must be safe for concurrent use.
//
// It must not convert between colour spaces, and must ignore profiles and
// orientation. For unknown formats and colour models it returns an error that
// matches errors.ErrUnsupported.
type ImageCodec interface {
	// DecodePixels decodes a JPEG or JPEG 2000 file and scales it to width × height
	// pixels.
	DecodePixels(ctx context.Context, data []byte, width, height int) (raster.Samples, error)

	// ScalePixels scales samples down to width × height pixels.
	ScalePixels(ctx context.Context, s raster.Samples, width, height int) (raster.Samples, error)

	// EncodeJPEG encodes samples with 1, 3 or 4 components as a baseline or
	// progressive JPEG file without profiles. quality is from 1 to 100.
	EncodeJPEG(ctx context.Context, s raster.Samples, quality int) ([]byte, error)
}

// A Renderer draws pages, so that Compress can compare its result with the
// original. Package pdfread provides an implementation. It is called from two
// goroutines at once.
type Renderer interface {
	// Views draws pages of a PDF file, counted from 0. The resolution is dpi dots
	// per inch, or less if a page would be too large. A page that cannot be drawn
	// has a width of 0.
	Views(ctx context.Context, pdf []byte, pages []int, dpi float64) ([]raster.Page, error)
}

// Compress returns the action "compress" for PDF files.
//
// Images are scaled down to the resolution of the level: 220, 150 or 96 dpi at
// the size in which the pages draw them. They become JPEG of quality 85, 73 or
// 50 if that saves enough. Images with few colours get a palette; images with
// one bit per pixel become JBIG2, without loss. Embedded fonts keep only the
// glyphs that the document shows, or all glyphs if form fields can be filled in
// with the font. Type 1 fonts become CFF. Metadata loses the histories that
// editing programs write. All streams are compressed as tightly as possible,
// equal objects are stored once, and unused objects are dropped. Text, links,
// bookmarks, forms, tags, annotations, page labels, attachments and the PDF/A
// identification stay. Images masked by colour stay unchanged.
//
// With a Renderer (see [Tools]), pages of the result are compared with the
// original. If text or colours differ, or a page is less similar than the level
// allows (0.99, 0.95 or 0.90), Compress retries at a gentler level. If all
// levels fail, it returns the original.
//
// A signed file is returned unchanged, because any change breaks the signature.
// So is a file that would shrink by less than 3 %. An encrypted file that opens
// without a password, or with the parameter "password", is compressed like any
// other. A result that is smaller is not encrypted and has no restrictions.
func (t Tools) Compress() fileops.Action {
	spec := t.pageSpec("compress", "Makes a PDF file smaller.", fileops.Compression("How much quality may be given up for a smaller file."))
	spec.MaxBytes = pdf.MaxFile // it is read into memory
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		f := job.Input()
		original, err := f.ReadAll(pdf.MaxFile)
		if err != nil {
			return err
		}
		dir, err := job.Dir()
		if err != nil {
			return err
		}
		var encrypted, incomplete bool
		plain, err := t.unlocked(ctx, job, f, original)
		if err != nil {
			return err
		}
		if plain != nil {
			original, encrypted = plain, true
		}
		path, err := compress.Job{
			Original: original,
			Load: func() (*pdf.Document, error) {
				d, err := t.loadData(ctx, job, f, original, "the file")
				if err == nil {
					encrypted, incomplete = encrypted || d.Encrypted, d.Incomplete()
				}
				return d, err
			},
			Level: job.Params.Get("compression_value"), MaxPages: t.Limits.pages(),
			Codec: t.Images, Renderer: t.Renderer,
			Dir: dir, Log: job.Log, Progress: job.Progress,
		}.Run(ctx)
		if err == nil && !encrypted {
			job.WarnPasswordUnused()
		}
		switch {
		case err != nil:
			return err
		case path == "":
			return job.Keep(f)
		}
		warnLosses(job, encrypted, incomplete, "the file")
		return job.Best(f, path)
	})
}

// unlocked returns a file without its encryption if it needs the password of the job,
// else nil: the Renderer knows no passwords.
func (t Tools) unlocked(ctx context.Context, job *fileops.Job, f *fileops.File, data []byte) ([]byte, error) {
	if !job.Params.Has("password") {
		return nil, nil
	}
	sec, _ := pdf.FindSecurity(ctx, data) // loading reports what is wrong
	if sec == nil {
		return nil, nil
	}
	if _, open := sec.Open(nil); open {
		return nil, nil
	}
	d, err := t.loadData(ctx, job, f, data, "the file")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = d.Write(&b, d.IsPDFA1(), nil)
	return b.Bytes(), err
}
