// Package pdfread converts PDF files to pictures, text, Word documents, HTML,
// Markdown and spreadsheets. The engine is pdfium, compiled to WebAssembly, so
// the host needs neither a program nor a C library. A hostile file can affect
// only the memory of one short-lived instance.
//
//	e, err := pdfread.New(ctx, pdfread.Options{CacheDir: dir})
//	…
//	defer e.Close()
//	err = fileops.Run(ctx, e.Convert(), fileops.Args{"convert_to": "png", "dpi": 150},
//		fileops.ToDir("out"), fileops.Path("report.pdf"))
//
// # Pictures
//
// Every page becomes a separate file ([fileops.PageName]), even in formats that
// could hold several. Pages are drawn on white, with annotations and the
// contents of form fields. A page of more than 100 megapixels is rejected.
//
// Text whose font is not embedded is drawn with a font of the host, or with one
// of pdfium's built-in Latin fonts. pdfium can read the files in
// [Options.FontDirs], but no others. The page entry UserUnit has no effect, as in
// other programs.
//
// # Text and documents
//
// All text formats share one analysis of a page: characters become words and
// lines; white space and rules divide the page into columns, tables and
// paragraphs.
//
// HTML is one self-contained page: pictures are data URLs. Markdown is GitHub's,
// without pictures. In both, text that repeats on every page appears only once,
// without page numbers.
//
// # Sheets
//
// Each table of the document becomes a sheet of the workbook, or a part of the
// CSV file after an empty line. A table that continues on the next page stays
// one table, with its header only once.
//
// In a workbook, numbers are numbers. The column, the table, the document or its
// language decides how to read 1,234 and 1.234; undecided numbers stay text. CSV
// contains the text as printed. A document without tables fails with
// [fileops.ErrUnsupportedInput].
//
// # Scanned pages
//
// [Options.Recognizer] reads scanned pages. A page is a scan if it has no text
// or its text is implausible: characters of no script, or of many in one word. A
// page with only a stamp on a picture that covers it is a scan too. The
// recognized words are laid out like any others. Codes that are numbers of glyphs
// become letters without recognition.
//
// Without a recognizer, or if it finds nothing, such a page becomes a picture in
// Word documents and HTML, and is empty in text. Markdown has pictures only if a
// document has no text at all. In other formats such a document fails with
// [fileops.ErrUnsupportedInput]. At most 500 pages of one document are
// recognized. A blank document becomes a blank document.
//
// # Pages that flowing text cannot show
//
// In a Word document, text flows, and each page starts with a page break. Rules,
// fills and pictures behind the text stay at their places. A page keeps its look
// instead if the flow would lose drawings, shadings or turned text, or would move
// lines too far: its text goes into boxes at their places, over a picture of
// everything else. A page whose text cannot be read becomes a picture with the
// recognized text behind it. Warnings name these pages.
//
// # Slides
//
// Each page becomes a slide that keeps its look like such a page. All slides have the
// size of the first page; other pages are made larger or smaller to fit.
package pdfread

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/internal/pagelist"
)

// An Encoder writes pictures in additional formats. Package imageops provides an
// implementation.
type Encoder interface {
	// Formats lists the formats that Encode can write. Only JPG, TIFF, AVIF and
	// WebP are used.
	Formats() []format.Format

	// Encode writes one opaque picture. quality is from 1 to 100; lossless formats
	// ignore it. dpi is stored in the file if the format can hold it. img is valid
	// until Encode returns.
	Encode(ctx context.Context, img *image.RGBA, to format.Format, quality int, dpi float64, w io.Writer) error
}

// Options configure an [Engine]. The zero value is usable.
type Options struct {
	// CacheDir keeps compiled machine code of pdfium between processes. With it a
	// start takes a tenth of a second, otherwise seconds. The directory is created
	// if needed; only this program may have write access. "" means no cache.
	CacheDir string

	// FontDirs are up to four directories with the fonts of the host, in which
	// pdfium looks for fonts that a file uses without containing them. nil means
	// the usual ones of the system; an empty list means none, and then only Latin
	// text is drawn in such fonts.
	FontDirs []string

	// Instances is the number of pages processed concurrently, by all jobs
	// together; 0 means GOMAXPROCS. Each may use up to 1 GiB.
	Instances int

	// Encoder adds picture formats, and replaces the built-in JPEG encoder if it
	// supports jpg. It may be nil.
	Encoder Encoder

	// Recognizer reads scanned pages. Without it they have no text.
	Recognizer Recognizer

	// PageTimeout is the processor time that pdfium may use for one page; 0 means
	// one minute.
	PageTimeout time.Duration

	// MaxPages is the largest number of pages to convert in a document; 0 means
	// 5000.
	MaxPages int

	// MaxPixels is the largest picture of a page, width × height; 0 means 100
	// million.
	MaxPixels int64

	Log *slog.Logger // nil discards
}

// systemFonts returns the directories of the host's fonts.
func systemFonts() []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"/System/Library/Fonts", "/Library/Fonts"}
	case "windows":
		return []string{`C:\Windows\Fonts`}
	}
	return []string{"/usr/share/fonts", "/usr/local/share/fonts"}
}

// Default limits.
const (
	maxPages  = 5000  // pages to convert, see Options.MaxPages
	maxPixels = 100e6 // of the picture of a page, see Options.MaxPixels
)

// An Engine runs pdfium. It is safe for concurrent use.
type Engine struct {
	pool    *pdfium.Pool
	encoder Encoder
	timeout time.Duration
	pages   int     // Options.MaxPages
	pixels  float64 // Options.MaxPixels
	log     *slog.Logger

	recognizer Recognizer // nil if there is none
}

// New returns an engine. pdfium is compiled on first use.
func New(_ context.Context, o Options) (*Engine, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.FontDirs == nil {
		o.FontDirs = systemFonts()
	}
	o.Instances = cmp.Or(max(o.Instances, 0), runtime.GOMAXPROCS(0))
	o.PageTimeout = cmp.Or(max(o.PageTimeout, 0), time.Minute)
	o.MaxPages = cmp.Or(max(o.MaxPages, 0), maxPages)
	o.MaxPixels = cmp.Or(max(o.MaxPixels, 0), maxPixels)
	pool, err := pdfium.NewPool(o.CacheDir, o.FontDirs, o.Instances, o.Log)
	if err != nil {
		return nil, fileops.Missing(dependency(), fmt.Errorf("pdfread: %w", err))
	}
	return &Engine{
		pool: pool, encoder: o.Encoder, timeout: o.PageTimeout, pages: o.MaxPages, pixels: float64(o.MaxPixels), log: o.Log, recognizer: o.Recognizer,
	}, nil
}

// Warm compiles pdfium before the first job needs it. Call it when the program
// starts.
func (e *Engine) Warm(ctx context.Context) error { return e.pool.Warm(ctx) }

// Close releases the resources of the engine. No job may be running or start
// afterwards.
func (e *Engine) Close() error { return e.pool.Close() }

// Convert returns the action that converts PDF files.
func (e *Engine) Convert() fileops.Action {
	pages, password := pagesParam(), passwordParam()
	dpi := fileops.Param{
		Name: "dpi", Type: fileops.Integer, Default: 150.0, Min: 36, Max: 600,
		Doc: "Resolution of the pictures in dots per inch.",
	}
	quality := fileops.Param{
		Name: "quality", Type: fileops.Integer, Default: 85.0, Min: 1, Max: 100,
		Doc: "Quality of the compression: 100 is the best and the largest.",
	}
	to := func(doc string, fs ...format.Format) fileops.Param {
		p := fileops.Enum("convert_to", doc)
		p.Aliases = make(map[string]string)
		for _, f := range fs {
			p.Enum = append(p.Enum, string(f))
			for _, a := range f.Aliases() {
				p.Aliases[string(a)] = string(f)
			}
		}
		return p
	}
	lossless, lossy := e.pictureFormats()
	text := fileops.Schema{to("Format of the result; html, docx and pptx hold pictures too, md and txt only text, xlsx and csv only tables.", format.TXT, format.DOCX, format.PPTX, format.HTML, format.MD, format.XLSX, format.CSV), pages, password}
	if e.recognizer != nil {
		text = append(text, e.recognizer.Language())
	}
	in := []format.Format{format.PDF}
	return fileops.Func(fileops.Spec{
		MaxBytes: pdfium.MaxFileSize,
		Name:     "convert", Engine: "pdfium", Family: "pdf",
		Summary: "Converts the pages of a PDF file to pictures, or the document to text, Word, slides, HTML, Markdown or sheets.",
		Accepts: []fileops.Accept{
			{Formats: in, Params: fileops.Schema{to("Format of the pictures, one for each page.", lossless...), dpi, pages, password}},
			{Formats: in, Params: fileops.Schema{to("Format of the pictures, one for each page.", lossy...), dpi, quality, pages, password}},
			{Formats: in, Params: text},
		},
	}, func(ctx context.Context, job *fileops.Job) error {
		switch f := format.Parse(job.Params.Get("convert_to")); f {
		case format.TXT:
			return e.toText(ctx, job)
		case format.DOCX, format.PPTX, format.HTML, format.MD, format.XLSX, format.CSV:
			return e.toDocument(ctx, job, f)
		default:
			return e.toPictures(ctx, job, f)
		}
	})
}

func pagesParam() fileops.Param {
	return fileops.Param{
		Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000, Scope: fileops.ScopeContent,
		Doc: "Pages to convert, counted from 1, such as 1-3,5,-1 (negative: from the end); all if absent.",
	}
}

func passwordParam() fileops.Param {
	return fileops.Param{
		Name: "password", Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput,
		Doc: "Password that opens the document.",
	}
}

// pictureFormats returns the formats available for pages: lossless ones, and
// lossy ones that take a quality. It ignores the encoder's other formats.
func (e *Engine) pictureFormats() (lossless, lossy []format.Format) {
	lossless, lossy = []format.Format{format.PNG}, []format.Format{format.JPG}
	if e.encoder == nil {
		return lossless, lossy
	}
	fs := slices.Clone(e.encoder.Formats())
	slices.Sort(fs)
	for _, f := range slices.Compact(fs) {
		switch f {
		case format.TIFF:
			lossless = append(lossless, f)
		case format.AVIF, format.WebP:
			lossy = append(lossy, f)
		}
	}
	return lossless, lossy
}
