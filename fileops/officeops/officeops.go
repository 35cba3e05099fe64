// Package officeops converts office documents: text documents, slides and sheets to PDF
// and to each other.
//
// LibreOffice does most of the work, in a pool of warm processes. They start with the
// first document or with [Engine.Warm], and each has its own profile directory. A small
// Python program of this package drives them over a UNO pipe, without a network port.
// pandoc converts Markdown and EPUB, and HTML for some targets. It always runs with
// --sandbox.
//
//	office, err := officeops.New(ctx, officeops.Options{})
//	...
//	defer office.Close()
//	err = fileops.Run(ctx, office.Convert(), fileops.Args{"convert_to": "pdf"},
//		fileops.ToDir("out"), fileops.Path("report.docx"))
//
// # Processes
//
// A process converts one document at a time. The pool replaces it in the background
// after a number of documents, when its memory has grown, and when it has crashed. If a
// document is cancelled or takes too long, the pool kills its process at once. A document
// that crashes a process is retried once in a separate LibreOffice. Without the UNO
// module of Python, every document has a separate LibreOffice.
//
// # Hostile documents
//
// The profile disables macros, links, updates and remote content. The package removes
// references to anything outside the file from HTML, and limits memory and time. That is
// not enough: LibreOffice still reads local files that an RTF document or an SVG picture
// refers to. Use [Options.Sandbox] if documents are untrusted.
//
// # Sheets as PDF
//
// A sheet without an explicit scale is scaled so that all its columns fit on a page. The
// page becomes landscape if the columns would otherwise shrink by more than a fifth.
// Explicit scales, orientations and print ranges are kept.
package officeops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/route"
	"github.com/filewright/filewright/internal/safezip"
)

// Options configure [New]. The zero value is usable.
type Options struct {
	LibreOffice string // path of soffice; "" searches PATH, [engine.None] disables it
	Python      string // path of a Python that can import uno; "" searches, [engine.None] disables it
	Pandoc      string // path of pandoc; "" searches PATH, [engine.None] disables it
	Jemalloc    string // path of libjemalloc.so.2 for LibreOffice; "" searches, [engine.None] disables it

	Workers      int           // LibreOffice processes, and pandoc processes, at the same time; 0 means one for each core
	RecycleAfter int           // documents after which a process is replaced; 0 means 50
	RecycleRSS   int64         // resident memory in bytes above which it is replaced; 0 means 600 MB
	MemoryLimit  int64         // address space of a process in bytes; 0 means 4 GiB
	Timeout      time.Duration // of work for one document, see [worktime.Context]; 0 means 2 minutes

	Limits Limits // of documents

	// Run limits memory, scratch space, files and processes of LibreOffice while it has
	// a document, and of pandoc. Zero fields mean no limit, except that MemoryLimit
	// still applies.
	Run engine.Limits

	TempDir string       // parent of the profile directories; "" means os.TempDir
	Log     *slog.Logger // events of the processes; nil discards

	// Sandbox confines the programs; nil runs them unconfined.
	Sandbox *engine.Sandbox

	// Reader reads the text of PDF files, so that a conversion to PDF can report
	// missing text. nil means that only a result without any font is noticed.
	Reader TextReader
}

// A TextReader returns the text layer of the first pages of a PDF file in memory, at
// most most pages.
type TextReader interface {
	Text(ctx context.Context, pdf []byte, most int) (string, error)
}

// Limits restrict the content of documents. They are checked before an engine reads a
// document. Zero fields mean the defaults.
type Limits struct {
	Entries  int   // parts of a document that is an archive; 0 means 10,000
	Unpacked int64 // bytes of all its parts together; 0 means 1 GiB
	Ratio    int64 // uncompressed to compressed size of a part of more than 10 MiB; 0 means 500
	Cells    int64 // non-empty cells of all sheets of an OpenDocument workbook together; 0 means 10 million
}

func (l Limits) orDefault() Limits {
	z := safezip.Limits{Entries: l.Entries, Unpacked: l.Unpacked, Ratio: l.Ratio}.OrDefault(1 << 30)
	return Limits{Entries: z.Entries, Unpacked: z.Unpacked, Ratio: z.Ratio, Cells: cmp.Or(max(l.Cells, 0), 10_000_000)}
}

// An Engine owns the processes. It is safe for concurrent use.
type Engine struct {
	office *engine.Program // soffice.bin; nil if there is none
	python *engine.Program // nil if no Python has UNO
	pandoc *engine.Program // nil if there is none
	opts   Options

	router *route.Router

	dependencies []fileops.Dependency

	pool  *pool         // nil if office is nil
	turns chan struct{} // held while pandoc runs

	fonts func() map[string]bool // installed families in lower case; nil if unknown
}

// New searches for the programs and starts each once, to check that it works on this
// host. No process keeps running. If it finds neither LibreOffice nor pandoc, it fails
// with a *[fileops.MissingError].
func New(ctx context.Context, o Options) (*Engine, error) {
	o.Workers = cmp.Or(max(o.Workers, 0), runtime.GOMAXPROCS(0))
	o.RecycleAfter = cmp.Or(max(o.RecycleAfter, 0), 50)
	o.RecycleRSS = cmp.Or(max(o.RecycleRSS, 0), 600e6)
	o.MemoryLimit = cmp.Or(max(o.MemoryLimit, 0), 4<<30)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 2*time.Minute)
	o.Limits = o.Limits.orDefault()
	o.TempDir = cmp.Or(o.TempDir, os.TempDir())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	e := &Engine{opts: o, turns: make(chan struct{}, o.Workers)}
	e.fonts = sync.OnceValue(func() map[string]bool { return installedFonts(o.Sandbox) })
	add := func(d fileops.Dependency, p *engine.Program, err error) *engine.Program {
		if d.Err = err; err == nil {
			d.Version, d.Path = p.Version, p.Path
		}
		e.dependencies = append(e.dependencies, d)
		return p
	}
	office, err := findOffice(ctx, o)
	e.office = add(fileops.Dependency{
		Name: "libreoffice", Purpose: "documents, sheets and slides",
		Packages: []string{"libreoffice-writer", "libreoffice-calc", "libreoffice-impress", "libreoffice-draw", "libreoffice-math"},
	}, office, err)
	allocator, missing := findAllocator(o)
	if e.office != nil && missing {
		e.dependencies[0].Recommended = []string{"libjemalloc2"}
	}
	python, err := findPython(ctx, o, e.office)
	e.python = add(fileops.Dependency{
		Name: "python3-uno", Purpose: "reusing LibreOffice processes; without it each document takes a second longer", Packages: []string{"python3-uno"},
	}, python, err)
	if e.office != nil && e.python == nil {
		o.Log.Warn("no Python with the UNO module found: every document starts a separate LibreOffice, which is slow")
	}
	pandoc, err := o.Sandbox.Find(ctx, []string{"--version"}, cmp.Or(o.Pandoc, "pandoc"))
	e.pandoc = add(fileops.Dependency{Name: "pandoc", Purpose: "Markdown and EPUB", Packages: []string{"pandoc"}}, pandoc, err)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if e.office == nil && e.pandoc == nil {
		return nil, &fileops.MissingError{Dependencies: e.dependencies}
	}
	e.router = e.newRouter()
	if e.office != nil {
		e.pool = newPool(e.office, e.python, allocator, o)
	}
	return e, nil
}

// findOffice searches for soffice.bin. The soffice in PATH is a script that starts a
// program that starts soffice.bin: slower, and two more processes to stop.
func findOffice(ctx context.Context, o Options) (*engine.Program, error) {
	access := engine.Access{
		Read: []string{
			"/etc/libreoffice", "/var/lib/libreoffice",
			"/var/spool/libreoffice", // the cache of its extensions; it aborts without it
		},
		Unwritable: true, // see socketsHere
	}
	if !o.Sandbox.Strong() { // it may need that
		access.Sockets = []string{"/tmp"}
	}
	sandbox := o.Sandbox.With(access)
	var errs []error
	if o.LibreOffice == engine.None {
		return nil, engine.ErrDisabled
	}
	for _, name := range []string{cmp.Or(o.LibreOffice, "soffice"), cmp.Or(o.LibreOffice, "libreoffice")} {
		path, err := exec.LookPath(name)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p, err := sandbox.Find(ctx, []string{"--version"}, filepath.Join(filepath.Dir(path), "soffice.bin"))
		if err == nil {
			return p, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// findPython searches for a Python that can import uno: the Python of the system, which
// may not be the first in PATH, or the Python that LibreOffice ships.
func findPython(ctx context.Context, o Options, office *engine.Program) (*engine.Program, error) {
	if office == nil {
		return nil, fmt.Errorf("not searched for without LibreOffice: %w", exec.ErrNotFound)
	}
	names := []string{o.Python}
	if o.Python == "" {
		names = []string{"/usr/bin/python3", "python3", filepath.Join(filepath.Dir(office.Path), "python")}
	}
	return o.Sandbox.Find(ctx, []string{"-I", "-c", "import sys, uno; print(sys.version.split()[0])"}, names...)
}

// Dependencies implements [fileops.Engine]: LibreOffice, the Python that drives it,
// and pandoc.
func (e *Engine) Dependencies() []fileops.Dependency { return slices.Clone(e.dependencies) }

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	if e.python == nil {
		return []fileops.Action{e.Convert()}
	}
	return []fileops.Action{e.Convert(), e.Merge(), e.Unlock()}
}

// Warm starts all processes and waits until they are ready. Without it they start when
// they are first needed.
func (e *Engine) Warm(ctx context.Context) error {
	if e.pool == nil {
		return nil
	}
	return e.pool.warm(ctx)
}

// Close kills all processes and removes their profiles. Running conversions fail with
// [fileops.ErrUnavailable].
func (e *Engine) Close() error {
	if e.pool == nil {
		return nil
	}
	return e.pool.close()
}

// name returns Spec.Engine: "libreoffice 7.4.7.2, pandoc 2.17.1.1".
func (e *Engine) name() string {
	var names []string
	for _, p := range []struct {
		name string
		*engine.Program
	}{{"libreoffice", e.office}, {"pandoc", e.pandoc}} {
		if p.Program != nil {
			names = append(names, strings.TrimSpace(p.name+" "+p.Version))
		}
	}
	return strings.Join(names, ", ")
}
