// Package standard collects the actions of this module that work on this host.
//
// Importing it links every engine binding. Programs that need only some import
// pdfops, imageops, mediaops, officeops, pdfread or archiveops instead.
//
//	set := standard.Probe(ctx, nil)
//	defer set.Close()
//	reg, err := fileops.NewRegistry(set.Actions()...)
package standard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/fileops/isolate"
	"github.com/filewright/filewright/fileops/mediaops"
	"github.com/filewright/filewright/fileops/ocrops"
	"github.com/filewright/filewright/fileops/officeops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/fileops/webops"
)

// None as the path of a program in [Options] does without it.
const None = "none"

// Options configure [Probe]. The zero value is usable.
type Options struct {
	// Paths of programs; "" searches PATH, [None] does without.
	FFmpeg, FFprobe, LibreOffice, Python, Pandoc, QPDF, Chromium, Tesseract string

	// OfficeWorkers is how many LibreOffice processes are kept; 0 means one
	// for each core.
	OfficeWorkers int

	// OfficeDocuments is after how many documents a LibreOffice process is
	// replaced; 0 means 50. With 1 no document is ever read by a process that has
	// read another one; each then takes about a second of processor time more.
	OfficeDocuments int

	CacheDir string       // for compiled machine code, see pdfread.Options; "" means none
	TempDir  string       // for the profiles of LibreOffice and Chromium; "" means os.TempDir
	Log      *slog.Logger // nil discards

	// Unconfined runs the external engines without a sandbox, which is for
	// hosts where every file is trusted. Otherwise each runs in the strongest that
	// the host has, and is not used at all if that is weak (see
	// [engine.Sandbox.Strong]), unless AllowWeak has its name as [Engine] gives
	// it.
	Unconfined bool
	AllowWeak  []string

	// NoNamespaces runs the engines without namespaces of their own also where the host
	// permits them, see [engine.Sandbox.Basic].
	NoNamespaces bool

	// Limits bound what the work on one file may take.
	Limits Limits

	// Isolate has what reads files in this process done in processes of their
	// own, one for each run: libvips, pdfcpu, pdfium and the code for archives,
	// tables and packages. The program must call [Main] first thing. Without a
	// CacheDir there is one below TempDir until the set is closed. Isolate has no
	// effect if Unconfined is set.
	Isolate bool
}

// An Engine is something actions are built on.
type Engine struct {
	Name    string
	Version string
	Path    string // "" if linked in
	Purpose string // what needs it, for people

	Err      error    // why it cannot be used; nil if it can
	Hint     string   // what to do about Err, for people
	Packages []string // that contain it in Debian and Ubuntu
}

// A Set is what a host can do.
type Set struct {
	sandbox *engine.Sandbox
	actions []fileops.Action
	engines []Engine
	closers []io.Closer
	warmers []interface{ Warm(context.Context) error }
	pool    *isolate.Pool // may be nil
}

// Probe starts each external engine once, to learn its version and codecs. It
// does not fail: an engine that is missing leaves its actions out. No process is
// left running. The caller must close the set when its actions are not used any
// more. o may be nil.
func Probe(ctx context.Context, o *Options) *Set {
	if o == nil {
		o = new(Options)
	}
	p := &prober{opts: *o}
	if !o.Unconfined {
		p.sandbox = engine.NewSandbox()
		if o.NoNamespaces {
			p.sandbox = p.sandbox.Basic()
		}
	}
	if p.opts.Log == nil {
		p.opts.Log = slog.New(slog.DiscardHandler)
	}
	if o.Isolate && !o.Unconfined && o.CacheDir == "" { // or every process would compile pdfium
		if p.cache, p.poolErr = os.MkdirTemp(o.TempDir, "cache-"); p.poolErr == nil {
			p.opts.CacheDir = p.cache
		}
	}
	// Each of them waits for processes, mostly.
	var wg sync.WaitGroup
	for _, f := range []func(context.Context){p.findImages, p.findMedia, p.findOffice, p.findQPDF, p.findOCR} {
		wg.Go(func() { f(ctx) })
	}
	wg.Wait()
	wg.Go(func() { p.findRenderer(ctx) }) // takes the picture encoders into account
	wg.Go(func() { p.findWeb(ctx) })
	wg.Wait()
	if o.Isolate && !o.Unconfined && p.poolErr == nil {
		p.pool, p.poolErr = p.newPool()
	}
	return p.set()
}

// Actions returns the actions that work, in order of preference.
func (s *Set) Actions() []fileops.Action { return slices.Clone(s.actions) }

// Engines reports all engines, also those that are missing.
func (s *Set) Engines() []Engine { return slices.Clone(s.engines) }

// Sandbox returns that of the external engines, nil if they are not confined.
func (s *Set) Sandbox() *engine.Sandbox { return s.sandbox }

// Warm starts what takes time to start (LibreOffice, the compiler of pdfium), so
// that the first operation need not wait for it. A server calls it in the
// background. What it starts runs until Close.
func (s *Set) Warm(ctx context.Context) error {
	var errs []error
	for _, w := range s.warmers {
		errs = append(errs, w.Warm(ctx))
	}
	return errors.Join(errs...)
}

// Ready starts the processes that wait for files, if [Options.Isolate] is set, and waits
// until they do, which takes two tenths of a second. A server calls it before it
// begins to work, so that an attempt that is begun is work on the file from its first
// moment.
func (s *Set) Ready(ctx context.Context) error {
	if s.pool == nil {
		return nil
	}
	return s.pool.Warm(ctx)
}

// Close ends what the actions have started. None may be running.
func (s *Set) Close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

type prober struct {
	opts    Options
	sandbox *engine.Sandbox
	images  *imageops.Engine
	media   *mediaops.Engine
	office  *officeops.Engine
	render  *pdfread.Engine
	web     *webops.Engine
	qpdf    *engine.Program
	ocr     *ocrops.Engine
	pool    *isolate.Pool // nil if actions run in this process
	cache   string        // a directory of our own; "" if there is none

	imagesErr, mediaErr, officeErr, renderErr, qpdfErr, webErr, ocrErr, poolErr error
}

var (
	errDisabled = errors.New("switched off by configuration")
	errWeak     = errors.New("not used, because this host cannot confine it")
)

// refused tells why an engine must not be looked for, or returns nil.
func (p *prober) refused(name, path string) error {
	switch {
	case path == None:
		return errDisabled
	case p.opts.Unconfined, p.sandbox.Strong(), slices.Contains(p.opts.AllowWeak, name):
		return nil
	}
	return fmt.Errorf("%w (%s)", errWeak, strings.Join(p.sandbox.Missing(), "; "))
}

func (p *prober) findImages(context.Context) {
	p.images, p.imagesErr = imageops.New(p.opts.Limits.images(imageops.Options{}))
}

func (p *prober) findMedia(ctx context.Context) {
	if p.mediaErr = cmp.Or(p.refused("ffmpeg", p.opts.FFmpeg), p.refused("ffmpeg", p.opts.FFprobe)); p.mediaErr != nil {
		return
	}
	p.media, p.mediaErr = mediaops.Find(ctx, p.opts.Limits.media(mediaops.Options{FFmpeg: p.opts.FFmpeg, FFprobe: p.opts.FFprobe, Sandbox: p.sandbox}))
}

func (p *prober) findOffice(ctx context.Context) {
	o := p.opts.Limits.office(officeops.Options{
		LibreOffice: p.opts.LibreOffice, Python: p.opts.Python, Pandoc: p.opts.Pandoc,
		Workers: p.opts.OfficeWorkers, RecycleAfter: p.opts.OfficeDocuments, TempDir: p.opts.TempDir, Log: p.opts.Log, Sandbox: p.sandbox,
	})
	if p.officeErr = p.refused("libreoffice", o.LibreOffice); p.officeErr != nil {
		o.LibreOffice = officeops.None
	}
	if err := p.refused("pandoc", o.Pandoc); err != nil {
		p.officeErr, o.Pandoc = cmp.Or(p.officeErr, err), officeops.None
	}
	if o.LibreOffice != officeops.None || o.Pandoc != officeops.None {
		p.office, p.officeErr = officeops.Find(ctx, o)
	}
}

func (p *prober) findQPDF(ctx context.Context) {
	if p.qpdfErr = p.refused("qpdf", p.opts.QPDF); p.qpdfErr == nil {
		p.qpdf, p.qpdfErr = p.sandbox.Find(ctx, []string{"--version"}, cmp.Or(p.opts.QPDF, "qpdf"))
	}
}

func (p *prober) findRenderer(ctx context.Context) {
	o := p.opts.Limits.render(pdfread.Options{CacheDir: p.opts.CacheDir, Log: p.opts.Log})
	if p.images != nil {
		o.Encoder = p.images
	}
	if p.ocr != nil {
		o.Recognizer = recognizer{p.ocr}
	}
	p.render, p.renderErr = pdfread.New(ctx, o)
}

// set puts everything together. The order decides: what does a pair directly
// stands before what does it in steps.
func (p *prober) set() *Set {
	s := &Set{sandbox: p.sandbox}
	add := func(all ...fileops.Action) {
		for _, a := range all {
			if a != nil && len(a.Spec().Accepts) > 0 {
				s.actions = append(s.actions, a)
			}
		}
	}
	if p.poolErr != nil { // better no action than one that is not isolated
		p.opts.Log.Error("actions cannot be isolated", "err", p.poolErr)
	}
	own := p.isolated(p.own())
	imageConvert, dataConvert := own[imagesConvert], own[tablesConvert]
	var officeConvert, renderConvert fileops.Action
	add(imageConvert, own[imagesCompress])
	if p.media != nil {
		add(p.media.Actions()...)
	}
	// Before the office, which reads cells as dates and numbers and writes them
	// in its own way.
	add(dataConvert)
	if p.office != nil {
		s.closers, s.warmers = append(s.closers, p.office), append(s.warmers, p.office)
		officeConvert = p.office.Convert()
	}
	if p.web != nil {
		s.closers, s.warmers = append(s.closers, p.web), append(s.warmers, p.web)
	}
	pages, books, records := p.webActions(officeConvert, dataConvert)
	add(pages, books, records)
	if p.office != nil {
		add(p.office.Actions()...)
	}
	if p.render != nil {
		s.closers, s.warmers = append(s.closers, p.render), append(s.warmers, p.render)
		renderConvert = own[pagesConvert]
		add(renderConvert)
	}
	var ocrConvert fileops.Action
	if p.ocr != nil {
		ocrConvert = p.ocr.Convert()
		add(ocrConvert)
	}
	add(own[archivesConvert])
	add(own[pdfFromImages], own[pdfCompress], own[pdfLock], own[pdfUnlock], own[pdfReset])
	add(own[packagesCompress], own[packagesLock], own[packagesUnlock], own[packagesReset])

	direct := slices.Clone(s.actions)
	otherToPDF := p.imagesToPDF(imageConvert, own[pdfOfImages], direct)
	add(
		otherToPDF,
		via(pages, format.PDF, renderConvert, direct, webToPages),
		via(books, format.PDF, renderConvert, direct, webToPages),
		via(officeConvert, format.PDF, renderConvert, direct, officeToPages),
		via(imageConvert, format.PNG, ocrConvert, direct, pictureToText),
		p.scansToDocument(own[pdfFromImages], renderConvert, direct),
		p.scansToDocument(otherToPDF, renderConvert, direct),
		via(renderConvert, format.DOCX, officeConvert, direct, pdfToText),
		via(dataConvert, format.CSV, officeConvert, direct, dataToSheet),
		via(dataConvert, format.FODS, officeConvert, direct, tablesToSheets),
		via(officeConvert, format.CSV, dataConvert, direct, sheetToData),
	)
	merger := p.tools()
	if p.pool != nil {
		merger.Merger = own[pdfMerge]
		s.closers, s.warmers, s.pool = append(s.closers, p.pool), append(s.warmers, p.pool), p.pool
	}
	if p.poolErr == nil {
		add(merger.Merge(toPDF(s.actions)...))
	}
	add(own[archivesZip], own[archivesCompress], own[archivesLock], own[archivesUnlock], own[archivesReset])
	if p.cache != "" {
		s.closers = append(s.closers, closer(func() error { return os.RemoveAll(p.cache) }))
	}
	s.engines = p.report()
	return s
}

type closer func() error

func (c closer) Close() error { return c() }

// officeToPages says which results of a rendered document are worth having:
// pictures of everything, and the text of slides.
func officeToPages(from, to format.Format) bool {
	return to.Family() == format.Image || to == format.TXT && from.Family() == format.Slides
}

// pdfToText says what a PDF can become by way of an editable document.
func pdfToText(from, to format.Format) bool {
	return to.Family() == format.Document && to != format.FODT
}

// dataToSheet says what records can become by way of a table.
func dataToSheet(from, to format.Format) bool {
	return from == format.JSON && (to.Family() == format.Sheet || to == format.PDF)
}

// tablesToSheets says what the tables of a page can become by way of a workbook.
func tablesToSheets(from, to format.Format) bool {
	return from == format.HTML && to.Family() == format.Sheet
}

// sheetToData says what a sheet of a workbook can become.
func sheetToData(from, to format.Format) bool {
	return from.Family() == format.Sheet && from != format.CSV && from != format.TSV && to == format.JSON
}

// imagesToPDF returns the action for pictures that cannot go into a PDF as they
// are. All pages of a picture go into one document.
func (p *prober) imagesToPDF(convert, pages fileops.Action, direct []fileops.Action) fileops.Action {
	if convert == nil {
		return nil
	}
	var known []format.Format
	for _, a := range direct {
		known = append(known, inputs(a, format.PDF)...)
	}
	one := convert.Spec()
	spec := fileops.Spec{
		Name: "convert", Engine: one.Engine + " + " + pages.Spec().Engine, Family: one.Family,
		Summary: "Puts a picture into a PDF, a page for each of its pages.",
	}
	var formats []format.Format
	for _, f := range inputs(convert, format.PNG) {
		if !slices.Contains(known, f) {
			formats = append(formats, f)
		}
	}
	if len(formats) == 0 {
		return nil
	}
	spec.Accepts = []fileops.Accept{{Formats: formats, Params: pages.Spec().Accepts[0].Params}}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		// A photograph stays lossy: as PNG it would be many times its size.
		mid := format.PNG
		if f := job.Input().Format(); f == format.HEIC || f == format.AVIF {
			mid = format.JPG
		}
		name := fileops.ResultName(job.Input(), format.PDF)
		chain := fileops.Chain(spec,
			fileops.Step{Action: convert, Args: func(fileops.Params) fileops.Args {
				a := fileops.Args{convertTo: string(mid)}
				if mid == format.JPG {
					a["quality"] = 92
				}
				return a
			}},
			fileops.Step{Action: renamed(pages, name), Args: passOn})
		return chain.Do(ctx, job)
	})
}

// renamed returns a with a result of another name, because a joint action
// cannot know what its result should be called here.
func renamed(a fileops.Action, name string) fileops.Action {
	return fileops.Wrap(a, func(ctx context.Context, job *fileops.Job, do func(context.Context, *fileops.Job) error) error {
		err := do(ctx, job)
		job.Rename(name)
		return err
	})
}

// toPDF returns the actions that make a PDF of something.
func toPDF(all []fileops.Action) []fileops.Action {
	var out []fileops.Action
	for _, a := range all {
		if spec := a.Spec(); spec.Name == "convert" && !spec.Joint && len(inputs(a, format.PDF)) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// report lists the engines in the order in which people look for them.
func (p *prober) report() []Engine {
	var out []Engine
	add := func(e Engine, err error) {
		e.Err = err
		if err != nil && e.Hint == "" {
			e.Hint = "install the package " + strings.Join(e.Packages, ", ")
			switch {
			case errors.Is(err, errDisabled):
				e.Hint = "it is switched off by the configuration"
			case errors.Is(err, errWeak):
				e.Hint = "use a kernel with Landlock and seccomp (Linux 5.13), or allow it by name"
			}
		}
		out = append(out, e)
	}
	images := Engine{Name: "libvips", Purpose: "pictures", Hint: "install libvips-dev and build with cgo"}
	if p.images != nil {
		images.Name, images.Version, _ = strings.Cut(p.images.Name(), " ")
		if images.Name != "libvips" {
			add(Engine{Name: "libvips", Purpose: "pictures beyond jpg, png, gif, bmp, tiff", Hint: "install libvips-dev and build with cgo", Packages: []string{"libvips-dev"}},
				fmt.Errorf("built without it: %w", exec.ErrNotFound))
		}
	}
	add(images, p.imagesErr)
	media := Engine{Name: "ffmpeg", Purpose: "audio and video", Packages: []string{"ffmpeg"}}
	if p.media != nil {
		media.Version, media.Path = p.media.Version(), p.media.Path()
	}
	add(media, p.mediaErr)
	programs := make(map[string]*engine.Program)
	if p.office != nil {
		for _, prog := range p.office.Programs() {
			switch {
			case strings.HasPrefix(prog.Name, "soffice"):
				programs["libreoffice"] = prog
			case strings.HasPrefix(prog.Name, "python"):
				programs["python3-uno"] = prog
			default:
				programs[prog.Name] = prog
			}
		}
	}
	for _, e := range []Engine{
		{Name: "libreoffice", Purpose: "documents, sheets and slides", Packages: []string{"libreoffice-writer", "libreoffice-calc", "libreoffice-impress", "libreoffice-draw", "libreoffice-math"}},
		{Name: "python3-uno", Purpose: "keeping LibreOffice warm: without it each document takes a second more", Packages: []string{"python3-uno"}},
		{Name: "pandoc", Purpose: "Markdown and EPUB", Packages: []string{"pandoc"}},
	} {
		prog := programs[e.Name]
		if prog == nil {
			err := p.officeErr
			if err == nil {
				err = fmt.Errorf("%s: %w", e.Name, exec.ErrNotFound)
			}
			add(e, err)
			continue
		}
		e.Version, e.Path = prog.Version, prog.Path
		add(e, nil)
	}
	add(p.reportWeb(), p.webErr)
	qpdf := Engine{Name: "qpdf", Purpose: "passwords of every kind of PDF; repair of damaged ones", Packages: []string{"qpdf"}}
	if p.qpdf != nil {
		qpdf.Version, qpdf.Path = p.qpdf.Version, p.qpdf.Path
	}
	add(qpdf, p.qpdfErr)
	add(p.reportOCR(), p.ocrErr)
	add(Engine{Name: "pdfium", Version: moduleVersion("github.com/klippa-app/go-pdfium"), Purpose: "pages of PDFs"}, p.renderErr)
	add(Engine{Name: "pdfcpu", Version: moduleVersion("github.com/pdfcpu/pdfcpu"), Purpose: "PDFs"}, nil)
	return out
}

// moduleVersion returns the version of a module that is linked in, or "" where
// the program was built without that information.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return ""
}
