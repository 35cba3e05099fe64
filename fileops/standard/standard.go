// Package standard collects the engines of this module that work on this host.
//
// [Probe] searches for them and returns a [Set] of actions: those of each engine,
// conversions in two steps through an intermediate format, and a merge of everything
// that can become a PDF. Importing the package links every engine. Programs that need
// only some engines import imageops, pdfops, pdfread, mediaops, officeops, webops,
// ocrops, documentops, mailops, archiveops or dataops instead.
//
//	set := standard.Probe(ctx, nil)
//	defer set.Close()
//	reg, err := fileops.NewRegistry(set.Actions()...)
//
// # Isolation
//
// External programs run in a sandbox. With [Options.Isolate], libraries also read each
// file in a separate confined process. Such a process runs this program, so main starts
// with [Main]. [Set.Isolate] does the same for a custom action:
//
//	func main() {
//		gray := Grayscale()
//		standard.Main(gray)
//		set := standard.Probe(ctx, &standard.Options{Isolate: true})
//		defer set.Close()
//		actions := append(set.Actions(), set.Isolate(gray))
package standard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/isolate"
	"github.com/filewright/filewright/fileops/pdfread"
)

// None is the path in [Options] that disables a program.
const None = engine.None

// Options configure [Probe]. The zero value is usable.
type Options struct {
	// Paths of programs; "" searches PATH, [None] disables the program.
	FFmpeg, FFprobe, LibreOffice, Python, Pandoc, QPDF, Chromium, Tesseract, BSDTar, LibRaw, JPEGTran, Ghostscript, PDFToCairo, Mobitool string

	// OfficeWorkers is the number of LibreOffice processes; 0 means one for each core.
	OfficeWorkers int

	// OfficeDocuments is the number of documents after which a LibreOffice process is
	// replaced; 0 means 50. With 1, each document has its own process, which costs about
	// one more second of processor time.
	OfficeDocuments int

	// IsolatedFiles is the number of small files of one owner (see [fileops.Runner.Owner]) that
	// an isolated process reads before it is replaced; 0 means 64. With 1, each file has its own
	// process, which costs some 40 ms of processor time. See [isolate.Options].
	IsolatedFiles int

	CacheDir string       // for compiled machine code, see pdfread.Options; "" means no cache
	TempDir  string       // for the profiles of LibreOffice and Chromium; "" means os.TempDir
	Log      *slog.Logger // nil discards

	// Engines adds custom engines. Their actions come after those of this package, and
	// what they convert to PDF can be merged. Each constructor receives the sandbox for
	// external programs, which is nil if Unconfined is set.
	Engines []func(context.Context, *engine.Sandbox) (fileops.Engine, error)

	// Unconfined runs external programs without a sandbox, for hosts where every file is
	// trusted. Otherwise each program runs in the strongest sandbox of the host. If that
	// is weak (see [engine.Sandbox.Strong]), a program is used only if AllowWeak has its
	// name as in [fileops.Dependency].
	Unconfined bool
	AllowWeak  []string

	// NoNamespaces runs programs without namespaces even if the host permits them, see
	// [engine.Sandbox.Basic].
	NoNamespaces bool

	// ProofPrint prints each Word document that is made of a PDF file with LibreOffice and
	// compares it with the file, see [pdfread.Proof]. It improves pages that look different,
	// and takes several times as long. The other document formats are made of DOCX. It has
	// no effect without LibreOffice.
	ProofPrint bool

	// Limits restrict the work on one file.
	Limits Limits

	// Isolate runs all code that reads files in this process (libvips, pdfcpu, pdfium,
	// and the code for archives, tables and documents) in a new process for each file.
	// The program must call [Main] first. Without a CacheDir, a directory below TempDir
	// is used until the set is closed. Isolate has no effect if Unconfined is set.
	Isolate bool
}

// A Set holds the actions and engines that work on a host.
type Set struct {
	sandbox      *engine.Sandbox
	actions      []fileops.Action
	dependencies []fileops.Dependency
	engines      []fileops.Engine
	pool         *isolate.Pool // nil if actions run in this process
	pages        *isolate.Pool // for actions that use pdfium; nil like pool
	drawn        bool          // there are such actions
	poolErr      error         // why actions cannot be isolated; nil if they can
	cache        string        // created by the set; "" if there is none
}

// Probe starts each external program once, to learn its version and codecs. It does not
// fail: the actions of a missing engine are left out. No process keeps running. The
// caller must close the set. o may be nil.
func Probe(ctx context.Context, o *Options) *Set {
	if o == nil {
		o = new(Options)
	}
	f := &finder{opts: *o, refused: make(map[string]error)}
	f.opts.Log = cmp.Or(f.opts.Log, slog.New(slog.DiscardHandler))
	if !o.Unconfined {
		f.sandbox = engine.NewSandbox()
		if o.NoNamespaces {
			f.sandbox = f.sandbox.Basic()
		}
	}
	s := &Set{sandbox: f.sandbox}
	isolated := o.Isolate && !o.Unconfined
	if isolated && o.CacheDir == "" { // otherwise every process would compile pdfium
		s.cache, s.poolErr = os.MkdirTemp(o.TempDir, "cache-")
		f.opts.CacheDir = s.cache
	}
	list := f.list(ctx)
	var wg sync.WaitGroup
	for _, e := range list { // each mostly waits for processes
		wg.Go(func() { _, _ = e.find() }) // find remembers its result
	}
	wg.Wait()
	if isolated && s.poolErr == nil {
		if s.pool, s.poolErr = f.pool(list, false); s.poolErr == nil {
			s.pages, s.poolErr = f.pool(list, true)
		}
	}
	if s.poolErr != nil {
		f.opts.Log.Error("actions cannot be isolated", "err", s.poolErr)
	}
	s.assemble(f, list)
	return s
}

// Actions returns the actions that work, in order of preference.
func (s *Set) Actions() []fileops.Action { return slices.Clone(s.actions) }

// Dependencies returns the dependencies of the engines, including missing ones.
func (s *Set) Dependencies() []fileops.Dependency { return slices.Clone(s.dependencies) }

// Sandbox returns the sandbox of the external programs, or nil if they are not confined.
func (s *Set) Sandbox() *engine.Sandbox { return s.sandbox }

// Isolate returns an action that runs a in a separate confined process, within the
// limits of the set. The program must pass a to [Main]. If the set does not isolate its
// actions, Isolate returns a.
func (s *Set) Isolate(a fileops.Action) fileops.Action { return s.isolate(a, s.pool) }

func (s *Set) isolate(a fileops.Action, in *isolate.Pool) fileops.Action {
	switch {
	case s.poolErr != nil: // no result is better than a result without isolation
		return fileops.Func(a.Spec(), func(context.Context, *fileops.Job) error {
			return fileops.Fail(fileops.ErrUnavailable, s.poolErr, "the engine could not be started")
		})
	case in == nil:
		return a
	}
	return in.Wrap(a)
}

// Warm starts the engines that are slow to start (LibreOffice, the compiler of pdfium),
// so that the first operation need not wait. A server calls it in the background, beside
// [Set.Ready]. The engines keep running until Close.
func (s *Set) Warm(ctx context.Context) error {
	errs := make([]error, len(s.engines))
	var all sync.WaitGroup
	for i, e := range s.engines {
		if w, ok := e.(fileops.Warmer); ok {
			all.Go(func() { errs[i] = w.Warm(ctx) })
		}
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil || !s.drawn {
		return err
	}
	return s.pages.Warm(ctx)
}

// Ready starts the processes for isolated actions, if [Options.Isolate] is set, and
// waits until they are ready, which takes two tenths of a second. A server calls Ready
// before its first attempt, so that no attempt waits for a process.
func (s *Set) Ready(ctx context.Context) error {
	if s.pool == nil {
		return nil
	}
	return s.pool.Warm(ctx)
}

// Close stops everything that the actions have started. No action may be running.
func (s *Set) Close() error {
	var errs []error
	for _, e := range s.engines {
		if c, ok := e.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	for _, p := range []*isolate.Pool{s.pool, s.pages} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if s.cache != "" {
		errs = append(errs, os.RemoveAll(s.cache))
	}
	return errors.Join(errs...)
}

// assemble collects the actions. Their order matters: a conversion in one step comes
// before a conversion in several.
func (s *Set) assemble(f *finder, list []entry) {
	actions, pages := make(map[string][]fileops.Action), fileops.Warmer(nil)
	for _, e := range list {
		got, err := e.find()
		s.dependencies = append(s.dependencies, f.report(e.name, got, err)...)
		if err != nil {
			continue
		}
		s.engines = append(s.engines, got)
		if e.name == pageEngine {
			pages, _ = got.(fileops.Warmer)
		}
		if e.local && s.poolErr != nil {
			continue // no action is better than an action without isolation
		}
		for _, a := range got.Actions() {
			if e.local && s.pool != nil {
				if pages != nil && (e.name == pageEngine || e.name == pdfEngine && draws(a.Spec())) {
					a = s.drawing(pages, a)
				} else {
					a = s.Isolate(a)
				}
			}
			actions[e.name] = append(actions[e.name], a)
		}
	}
	if f.opts.ProofPrint {
		s.proofPrint(actions, pages)
	}
	s.actions = s.routed(list, actions)
}

// draws reports whether an action of the PDF engine uses pdfium, to compare or recognize pages.
func draws(s fileops.Spec) bool {
	return s.Name == "compress" || s.Name == "ocr" || s.Name == "convert" && slices.ContainsFunc(s.Accepts, func(acc fileops.Accept) bool { return slices.Contains(acc.Changes, "pdfa") })
}

// drawing isolates a, which uses pdfium.
func (s *Set) drawing(pages fileops.Warmer, a fileops.Action) fileops.Action {
	s.drawn = true
	return after(pages, s.isolate(a, s.pages))
}

// proofPrint makes the conversions of PDF files to Word look at their results in print.
func (s *Set) proofPrint(actions map[string][]fileops.Action, pages fileops.Warmer) {
	i := slices.IndexFunc(actions[officeEngine], func(a fileops.Action) bool {
		return a.Spec().Name == "convert" && slices.Contains(inputs(a, format.PDF), format.DOCX)
	})
	j := slices.IndexFunc(s.engines, func(e fileops.Engine) bool { _, ok := e.(*pdfread.Engine); return ok })
	if i < 0 || j < 0 {
		return
	}
	e := s.engines[j].(*pdfread.Engine)
	keep, compare := e.Keep(), e.Compare()
	if s.pool != nil {
		keep, compare = s.drawing(pages, keep), s.drawing(pages, compare)
	}
	for k, a := range actions[pageEngine] {
		if a.Spec().Name == "convert" {
			actions[pageEngine][k] = pdfread.Proof{Convert: a, Keep: keep, Compare: compare, Print: actions[officeEngine][i]}.Action()
		}
	}
}

// after returns a with a wait until w is warm: pdfium is compiled once, in this process.
func after(w fileops.Warmer, a fileops.Action) fileops.Action {
	return fileops.Wrap(a, func(ctx context.Context, job *fileops.Job, do func(context.Context, *fileops.Job) error) error {
		if err := w.Warm(ctx); err != nil && ctx.Err() == nil {
			return fileops.Fail(fileops.ErrUnavailable, err, "the PDF engine cannot be started")
		}
		return do(ctx, job)
	})
}

var errWeak = errors.New("not used, because this host cannot confine it")

// program returns the path to search for, or [None] if the program must not be used. In
// that case it records the reason for the dependencies called names.
func (f *finder) program(path string, names ...string) string {
	if path == None || !f.allowed(names[0]) {
		for _, n := range names {
			if f.refused[n] = engine.ErrDisabled; path != None {
				f.refused[n] = f.weak()
			}
		}
		return None
	}
	return path
}

func (f *finder) weak() error {
	return fmt.Errorf("%w (%s)", errWeak, strings.Join(f.sandbox.Missing(), "; "))
}

// allowed reports whether the program may be used in the sandbox of this host.
func (f *finder) allowed(name string) bool {
	return f.probed != nil || f.opts.Unconfined || f.sandbox.Strong() || slices.Contains(f.opts.AllowWeak, name)
}

// report lists the dependencies of an engine, with hints for missing ones.
func (f *finder) report(name string, e fileops.Engine, err error) []fileops.Dependency {
	all := []fileops.Dependency{{Name: name, Err: err, Hint: "see the error"}}
	var missing *fileops.MissingError
	switch {
	case err == nil:
		all = e.Dependencies()
	case errors.As(err, &missing):
		all = missing.Dependencies
	}
	for i := range all {
		d := &all[i]
		if why := f.refused[d.Name]; why != nil {
			d.Err, d.Hint = why, ""
		}
		switch {
		case d.Err == nil || d.Hint != "":
		case errors.Is(d.Err, engine.ErrDisabled):
			d.Hint = "it is switched off by the configuration"
		case errors.Is(d.Err, errWeak):
			d.Hint = "use a kernel with Landlock and seccomp (Linux 5.13), or allow it by name"
		default:
			d.Hint = "install the package " + strings.Join(d.Packages, ", ")
		}
	}
	return all
}
