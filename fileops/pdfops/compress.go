package pdfops

import (
	"context"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/raster"

	"github.com/filewright/filewright/fileops/pdfops/internal/compress"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// An ImageCodec decodes and encodes the pictures in a PDF file. Package imageops
// has one. It is called from several goroutines at once.
//
// It must not convert between colour spaces, nor apply profiles or an orientation.
// It reports formats and colour models that it does not know by an error that
// matches errors.ErrUnsupported.
type ImageCodec interface {
	// DecodePixels decodes a JPEG or JPEG 2000 file, scaled to width × height
	// pixels.
	DecodePixels(ctx context.Context, data []byte, width, height int) (raster.Samples, error)

	// ScalePixels scales samples down to width × height pixels.
	ScalePixels(ctx context.Context, s raster.Samples, width, height int) (raster.Samples, error)

	// EncodeJPEG encodes samples with 1, 3 or 4 components as a baseline or
	// progressive JPEG file without profiles. quality is from 1 to 100.
	EncodeJPEG(ctx context.Context, s raster.Samples, quality int) ([]byte, error)
}

// A Renderer draws pages, so that a compressed document can be compared with its
// original. Package pdfread has one. It is called from two goroutines at once.
type Renderer interface {
	// Views draws pages, counted from 0, of a PDF file, at a resolution in
	// dots per inch, or less if a page would be too large. A page that
	// cannot be drawn has a width of 0.
	Views(ctx context.Context, pdf []byte, pages []int, dpi float64) ([]raster.Page, error)
}

// Compress returns the action "compress" for PDF files.
//
// Pictures are scaled down to the resolution of the level (220, 150 or 96 dpi at
// the size they are drawn in) and encoded as JPEG of its quality (85, 73 or 50),
// where that gains enough; those with few colours get a palette, those of one bit
// become JBIG2, without loss. Embedded fonts keep the glyphs that are shown
// somewhere, and all of them if form fields can be filled in with the font; Type 1
// fonts become CFF. Metadata lose the histories of editing programs. Everything is
// stored as tightly as possible, equal objects once, and unused ones not at all.
// Text, links, bookmarks, forms, tags, annotations, page labels, attachments and
// the marks of PDF/A stay. Pictures masked by colour stay as they are.
//
// With a Renderer (see [Tools]) pages of the result are compared with the
// original. What differs in text or colour, or is less similar than the level
// allows (0.99, 0.95 or 0.90), is done again at a gentler level, and in the end
// not at all.
//
// A signed file is returned as it is, because any change breaks the signature,
// and so is one that would not become 3 % smaller. A file that is encrypted but
// opens without a password is compressed like any other. Its result is not
// encrypted, and restricts nothing.
func (t Tools) Compress() fileops.Action {
	spec := t.spec("compress", "Makes a PDF file smaller.", fileops.Schema{fileops.Compression("How much quality may be given up for a smaller file.")})
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
		path, err := compress.Job{
			Original: original, Load: func() (*pdf.Document, error) { return t.loadData(ctx, job, f, original, "the file") },
			Level: job.Params.Get("compression_value"), MaxPages: t.Limits.pages(),
			Codec: t.Images, Renderer: t.Renderer,
			Dir: dir, Log: job.Log, Progress: job.Progress,
		}.Run(ctx)
		switch {
		case err != nil:
			return err
		case path == "":
			return job.Keep(f)
		}
		return job.Best(f, path)
	})
}
