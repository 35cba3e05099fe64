// Package webops prints web pages, Markdown, plain text, delimited values and SVG
// drawings to PDF with Chromium, and takes screenshots of web pages. The PDFs have real typography, every script and emoji
// for which a font is installed, bookmarks, and tags for screen readers.
//
//	web, err := webops.New(ctx, webops.Options{})
//	...
//	defer web.Close()
//	err = fileops.Run(ctx, web.Convert(), fileops.Args{"convert_to": "pdf"},
//		fileops.ToDir("out"), fileops.Path("page.html"))
//
// # Processes
//
// One browser keeps running. [Engine.Warm] or the first document starts it, and the
// DevTools protocol over a pair of pipes drives it, without a network port. Each
// document has its own browser context and process. The browser is replaced after a
// number of documents, when its memory has grown, and when a document was stopped. If it
// crashes, each of its documents is retried once in a separate browser. The package
// prefers the headless shell (chrome-headless-shell, in Debian chromium-headless-shell):
// for a small page it needs a fifth of the time of the complete browser, and half of the
// memory.
//
// # Hostile documents
//
// A page runs no scripts and loads nothing: every request is intercepted and aborted,
// the network is switched off for the page, no host name and no address resolves, and
// the proxy does not exist. The page has no origin and so no access to files. Time,
// memory and the size of the result are limited. The browser's own sandbox is on unless
// [Options] disable it.
//
// With the parameter javascript, the scripts in a page run before it is printed. Such a
// page has a browser of its own, which is stopped afterwards: endless scripts and scripts
// that need too much memory affect no other document. The scripts reach nothing outside
// the page either. They are interpreted, not compiled, and have no WebAssembly.
//
// External resources are therefore missing: pictures, styles and fonts must be in the
// page as data URLs. A missing picture is replaced by its alternative text. Warnings tell
// how many pictures, style sheets and frames are missing, and whether the page has
// scripts.
//
// # Pages
//
// The page rules of a web page (@page) apply unless the parameters override them. Text
// keeps its lines in a monospaced font, and a form feed starts a new page. A table gets
// all its columns on the page, and a heading row is repeated on each page. A drawing
// stays vectors.
//
// PDFs have tags and bookmarks unless the page is so large that the browser would need
// minutes for them. Fonts are embedded as subsets. Fonts with PostScript outlines, such
// as the usual ones for Chinese, Japanese and Korean, and emoji become Type 3 fonts.
package webops

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
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
)

// ErrTooLong is the cause of a failure for a text or table with too many lines or cells:
// the browser's time grows with the square of the number of pages. Another engine may
// succeed.
var ErrTooLong = errors.New("webops: the document is too long")

// Limits of documents.
const (
	maxText   = 32 << 20  // bytes of a document
	maxOutput = 512 << 20 // bytes of a result
)

// Options configure [New]. The zero value is usable.
type Options struct {
	// Chromium is the path of Chromium, Chrome or their headless shell; "" searches
	// PATH, [engine.None] disables the engine.
	Chromium string

	// NoSandbox disables the browser's own sandbox. Set it as root, and where user
	// namespaces are unavailable, as in most containers: the browser does not start
	// otherwise. Elsewhere leave the sandbox on. It is one of several layers: scripts
	// and the network are off anyway.
	NoSandbox bool

	Workers       int           // documents at the same time; 0 means one for each core
	RecycleAfter  int           // documents after which the browser is replaced; 0 means 200
	RecycleMemory int64         // private memory in bytes above which it is replaced; 0 means 800 MB
	MemoryLimit   int64         // private memory in bytes at which it is killed; 0 means 3 GiB
	Timeout       time.Duration // of work for one document, see [worktime.Context]; 0 means 2 minutes

	// ScriptTime limits how long the scripts of a page may take until it is printed,
	// with their waits. 0 means 20 seconds.
	ScriptTime time.Duration

	// Run limits scratch space, files and processes of the browser while it has
	// documents. Zero fields mean no limit.
	Run      engine.Limits
	MaxCells int // of a table; 0 means 20,000

	// Fallback converts documents that are too long for the browser, unless the request
	// sets the page layout. Without it they fail with [ErrTooLong].
	Fallback fileops.Action

	TempDir string       // parent of the profile directories; "" means os.TempDir
	Log     *slog.Logger // events of the browser; nil discards

	// Sandbox confines the browser as a whole; nil runs it unconfined. It is independent
	// of the browser's own sandbox, which confines its parts.
	Sandbox *engine.Sandbox
}

// An Engine owns the browser. It is safe for concurrent use.
type Engine struct {
	prog     *engine.Program
	pool     *pool
	fallback fileops.Action // may be nil
}

// programs are the names of the browser, smallest variant first.
var programs = []string{"chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}

// New searches for a browser and starts it once, to check that it works and responds. No
// process keeps running. If there is no browser, it fails with a
// *[fileops.MissingError].
func New(ctx context.Context, o Options) (*Engine, error) {
	e, err := find(ctx, o)
	if err != nil {
		d := chromium()
		if !errors.Is(err, engine.ErrDisabled) && !errors.Is(err, exec.ErrNotFound) {
			d.Hint = "it is there, but does not start; its sandbox needs user namespaces, or the package chromium-sandbox"
		}
		return nil, fileops.Missing(d, err)
	}
	return e, nil
}

// chromium returns the dependency on the browser, without its path and version.
func chromium() fileops.Dependency {
	return fileops.Dependency{Name: "chromium", Purpose: "web pages, Markdown, text, CSV and SVG as PDF", Packages: []string{"chromium-headless-shell"}}
}

func find(ctx context.Context, o Options) (*Engine, error) {
	o.Workers = cmp.Or(max(o.Workers, 0), runtime.GOMAXPROCS(0))
	o.RecycleAfter = cmp.Or(max(o.RecycleAfter, 0), 200)
	o.RecycleMemory = cmp.Or(max(o.RecycleMemory, 0), 800e6)
	o.MemoryLimit = cmp.Or(max(o.MemoryLimit, 0), 3<<30)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 2*time.Minute)
	o.ScriptTime = cmp.Or(max(o.ScriptTime, 0), 20*time.Second)
	o.MaxCells = cmp.Or(max(o.MaxCells, 0), 20_000)
	o.TempDir = cmp.Or(o.TempDir, os.TempDir())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	names := programs
	switch o.Chromium {
	case engine.None:
		return nil, engine.ErrDisabled
	case "":
	default:
		names = []string{o.Chromium}
	}
	var errs []error
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		prog := &engine.Program{Name: filepath.Base(name), Path: binary(path), Sandbox: o.Sandbox}
		b, product, err := startBrowser(ctx, prog, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b.stop()
		_, prog.Version, _ = strings.Cut(product, "/") // "HeadlessChrome/120.0.6099.129"
		return &Engine{prog: prog, pool: newPool(prog, o), fallback: o.Fallback}, nil
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("webops: no browser works here: %w", errors.Join(errs...))
}

// binary returns the program that the script at path starts. The script of a
// distribution adds interactive switches and extensions.
func binary(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir, base := filepath.Split(path)
	for _, p := range []string{
		filepath.Join(dir, "..", "lib", "chromium", base), // Debian
		filepath.Join(dir, "chrome"),                      // /opt/google/chrome/google-chrome
	} {
		if found, err := exec.LookPath(p); err == nil {
			return found
		}
	}
	return path
}

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action { return []fileops.Action{e.Convert(), e.Screenshot()} }

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	d := chromium()
	d.Version, d.Path = e.prog.Version, e.prog.Path
	return []fileops.Dependency{d}
}

// Warm starts the browser and waits until it is ready. Without it the first document
// starts the browser.
func (e *Engine) Warm(ctx context.Context) error { return e.pool.warm(ctx) }

// Close kills the browser and removes its profile. Running conversions fail with
// [fileops.ErrUnavailable].
func (e *Engine) Close() error {
	e.pool.close()
	return nil
}
