package standard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/bookops"
	"github.com/filewright/filewright/fileops/dataops"
	"github.com/filewright/filewright/fileops/documentops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/fileops/isolate"
	"github.com/filewright/filewright/fileops/mailops"
	"github.com/filewright/filewright/fileops/mediaops"
	"github.com/filewright/filewright/fileops/ocrops"
	"github.com/filewright/filewright/fileops/officeops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/fileops/subtitleops"
	"github.com/filewright/filewright/fileops/webops"
)

// Names of engines, for routes and isolated processes.
const (
	imageEngine    = "image"
	mediaEngine    = "media"
	dataEngine     = "data"
	mailEngine     = "mail"
	bookEngine     = "book"
	subtitleEngine = "subtitle"
	webEngine      = "web"
	officeEngine   = "office"
	pageEngine     = "page"
	textEngine     = "ocr"
	archiveEngine  = "archive"
	pdfEngine      = "pdf"
	documentEngine = "document"
)

// A finder holds the input for constructing engines: the options in a server, and the
// server's findings in an isolated process.
type finder struct {
	opts    Options
	sandbox *engine.Sandbox
	probed  map[string]string // by the name of an engine; nil in a server
	refused map[string]error  // why a dependency is not searched for, by its name
}

// An entry is an engine of the list.
type entry struct {
	name  string
	local bool // it reads files in this process
	find  func() (fileops.Engine, error)
}

// list returns the engines in order of preference: if two convert the same pair of
// formats, the first one is used. Each engine is constructed when it is first needed, by
// the caller or by another engine.
func (f *finder) list(ctx context.Context) []entry {
	l, o := f.opts.Limits, f.opts
	libraw, tran := f.program(o.LibRaw, "libraw"), f.program(o.JPEGTran, "jpegtran")
	images := lazily(ctx, imageops.New, func() imageops.Options {
		return l.images(imageops.Options{LibRaw: libraw, JPEGTran: tran, Probed: f.probed[imageEngine], Sandbox: f.sandbox})
	})

	ffmpeg, ffprobe := f.program(o.FFmpeg, "ffmpeg"), f.program(o.FFprobe, "ffmpeg")
	media := lazily(ctx, mediaops.New, func() mediaops.Options {
		return l.media(mediaops.Options{FFmpeg: ffmpeg, FFprobe: ffprobe, Sandbox: f.sandbox})
	})

	data := lazily(ctx, dataops.New, func() dataops.Options { return dataops.Options{} })

	mails := lazily(ctx, mailops.New, func() mailops.Options { return mailops.Options{} })

	subtitles := lazily(ctx, subtitleops.New, func() subtitleops.Options { return subtitleops.Options{} })

	mobitool := f.program(o.Mobitool, "libmobi")
	books := lazily(ctx, bookops.New, func() bookops.Options {
		return bookops.Options{Mobitool: mobitool, Probed: f.probed[bookEngine], Sandbox: f.sandbox}
	})

	tesseract := f.program(o.Tesseract, "tesseract")
	ocr := lazily(ctx, ocrops.New, func() ocrops.Options {
		return l.ocr(ocrops.Options{Tesseract: tesseract, Probed: f.probed[textEngine], TempDir: o.TempDir, Log: o.Log, Sandbox: f.sandbox})
	})

	pages := lazily(ctx, f.newPages, func() pdfread.Options {
		r := pdfread.Options{CacheDir: o.CacheDir, Log: o.Log}
		if e, err := images(); err == nil {
			r.Encoder = e
		}
		if e, err := ocr(); err == nil {
			r.Recognizer = recognizer{e}
		}
		return l.render(r)
	})

	soffice, pandoc := f.program(o.LibreOffice, "libreoffice", "python3-uno"), f.program(o.Pandoc, "pandoc")
	office := lazily(ctx, officeops.New, func() officeops.Options {
		w := officeops.Options{
			LibreOffice: soffice, Python: o.Python, Pandoc: pandoc,
			Workers: o.OfficeWorkers, RecycleAfter: o.OfficeDocuments, TempDir: o.TempDir, Log: o.Log, Sandbox: f.sandbox,
		}
		if e, err := pages(); err == nil {
			w.Reader = e
		}
		return l.office(w)
	})

	chromium := f.program(o.Chromium, "chromium")
	web := lazily(ctx, f.newBrowser, func() webops.Options {
		w := webops.Options{
			Chromium: chromium, TempDir: o.TempDir, Log: o.Log, Sandbox: f.sandbox,
			NoSandbox: os.Geteuid() == 0,         // it does not start as root otherwise
			Workers:   runtime.GOMAXPROCS(0) + 1, // one for an overflow slot, see status.Local; it costs only one more page
			MaxCells:  50_000,                    // slow is better than not at all
		}
		if e, err := office(); err == nil {
			w.Fallback, w.MaxCells = e.Convert(), 0
		}
		return l.web(w)
	})

	bsdtar := f.program(o.BSDTar, "bsdtar")
	archives := lazily(ctx, archiveops.New, func() archiveops.Options {
		return l.archives(archiveops.Options{BSDTar: bsdtar, Probed: f.probed[archiveEngine], Sandbox: f.sandbox})
	})

	qpdf, ghostscript, cairo := f.program(o.QPDF, "qpdf"), f.program(o.Ghostscript, "ghostscript"), f.program(o.PDFToCairo, "poppler")
	pdf := lazily(ctx, pdfops.New, func() pdfops.Options {
		p := pdfops.Options{QPDF: qpdf, Ghostscript: ghostscript, PDFToCairo: cairo, Probed: f.probed[pdfEngine], Sandbox: f.sandbox}
		if e, err := images(); err == nil {
			p.Images = e
		}
		if e, err := pages(); err == nil {
			p.Renderer, p.Reader = e, e
		}
		return l.pdf(p)
	})

	documents := lazily(ctx, documentops.New, func() documentops.Options {
		d := l.documents()
		if e, err := images(); err == nil {
			d.Pictures = e
		}
		return d
	})

	list := []entry{
		{imageEngine, true, found(images)},
		{mediaEngine, false, found(media)},
		{dataEngine, true, found(data)}, // before the office, which reads cells as dates and numbers
		{mailEngine, true, found(mails)},
		{bookEngine, true, found(books)},
		{subtitleEngine, true, found(subtitles)},
		{webEngine, false, found(web)},
		{officeEngine, false, found(office)},
		{pageEngine, true, found(pages)},
		{textEngine, false, found(ocr)},
		{archiveEngine, true, found(archives)},
		{pdfEngine, true, found(pdf)},
		{documentEngine, true, found(documents)},
	}
	for i, find := range o.Engines {
		list = append(list, entry{fmt.Sprint("engine ", i+1), false, sync.OnceValues(func() (fileops.Engine, error) {
			e, err := find(ctx, f.sandbox)
			if err != nil {
				return nil, err
			}
			for _, d := range e.Dependencies() {
				if d.Path != "" && !f.allowed(d.Name) {
					return nil, fileops.Missing(d, f.weak())
				}
			}
			return e, nil
		})})
	}
	return list
}

// lazily returns a function that constructs an engine on its first call.
func lazily[E, O any](ctx context.Context, make func(context.Context, O) (E, error), options func() O) func() (E, error) {
	return sync.OnceValues(func() (E, error) { return make(ctx, options()) })
}

// found adapts find to the type of the list of engines.
func found[E fileops.Engine](find func() (E, error)) func() (fileops.Engine, error) {
	return func() (fileops.Engine, error) {
		e, err := find()
		if err != nil {
			return nil, err
		}
		return e, nil
	}
}

// newPages returns pdfium. An isolated process uses the code that the server compiled.
func (f *finder) newPages(ctx context.Context, o pdfread.Options) (*pdfread.Engine, error) {
	if f.probed != nil && o.CacheDir == "" {
		return nil, errors.New("the server has no pdfium")
	}
	return pdfread.New(ctx, o)
}

// newBrowser returns the browser with its built-in sandbox, if that works on this host.
// In most containers it does not.
func (f *finder) newBrowser(ctx context.Context, o webops.Options) (*webops.Engine, error) {
	e, err := webops.New(ctx, o)
	if err == nil || o.NoSandbox || o.Chromium == None {
		return e, err
	}
	o.NoSandbox = true
	if e, again := webops.New(ctx, o); again == nil {
		f.opts.Log.Info("the browser's own sandbox does not work here, as in most containers; it runs without")
		return e, nil
	}
	return nil, err
}

// processes is the name of the isolated processes of this package.
const processes = "standard"

// A role is the server state that an isolated process needs.
type role struct {
	Probed map[string]string // see finder
	Cache  string            // "" without pdfium
	Pages  bool              // load pdfium before the file is known
	Limits Limits
}

const roleVariable = "FILEWRIGHT_STANDARD"

// pool returns isolated processes for the local engines of list. With pages, they are for
// actions that use pdfium.
func (f *finder) pool(list []entry, pages bool) (*isolate.Pool, error) {
	r := role{Limits: f.opts.Limits, Probed: make(map[string]string), Pages: pages}
	access := engine.Access{Limits: true}
	for _, e := range list {
		got, err := e.find()
		if err != nil {
			continue
		}
		if p, ok := got.(interface{ Probed() string }); ok {
			r.Probed[e.name] = p.Probed()
		}
		if e.name == pageEngine {
			if r.Cache, err = filepath.Abs(f.opts.CacheDir); err != nil {
				return nil, err
			}
			access.Read = []string{r.Cache}
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	spare := 0
	if pages { // they need more memory than others while they wait
		spare = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return isolate.New(processes, isolate.Options{
		Spare: spare, Files: cmp.Or(f.opts.IsolatedFiles, 64),
		Sandbox: f.sandbox, Access: access, Env: []string{roleVariable + "=" + string(b), imageops.Lean},
		Limits: f.opts.Limits.isolated(), TempDir: f.opts.TempDir, Log: f.opts.Log,
	})
}

// Main serves one run and exits, if a [Set] with the option Isolate started this
// process. Otherwise Main returns at once. A program that uses the option calls Main
// first, with the actions that it passes to [Set.Isolate].
func Main(own ...fileops.Action) {
	isolate.Main(processes, func(ctx context.Context) ([]fileops.Action, error) {
		var r role
		if err := json.Unmarshal([]byte(os.Getenv(roleVariable)), &r); err != nil {
			return nil, err
		}
		f := &finder{opts: Options{Limits: r.Limits, CacheDir: r.Cache}, sandbox: engine.NewSandbox(), probed: r.Probed, refused: make(map[string]error)}
		if r.Probed[textEngine] == "" {
			f.opts.Tesseract = None
		}
		all := slices.Clone(own)
		for _, e := range f.list(ctx) {
			if !e.local {
				continue
			}
			got, err := e.find()
			if err != nil {
				continue // the server does not have it either
			}
			if r.Pages && e.name == pageEngine {
				if err := got.(fileops.Warmer).Warm(ctx); err != nil {
					return nil, err
				}
			}
			all = append(all, got.Actions()...)
			switch e := got.(type) {
			case *pdfops.Engine:
				all = append(all, e.ImagesToPDF())
			case *pdfread.Engine:
				all = append(all, e.Keep(), e.Compare()) // for Options.ProofPrint
			}
		}
		return all, nil
	})
}
