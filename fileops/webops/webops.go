// Package webops prints web pages, Markdown, plain text, delimited values and SVG
// drawings to PDF by Chromium: with real typography, every script and emoji for
// which there is a font, tags for screen readers and bookmarks.
//
//	web, err := webops.New(ctx, webops.Options{})
//	...
//	defer web.Close()
//	err = fileops.Run(ctx, web.Convert(), fileops.Args{"convert_to": "pdf"},
//		fileops.ToDir("out"), fileops.Path("page.html"))
//
// # Processes
//
// One browser is kept running, started by [Engine.Warm] or the first document and
// driven by the DevTools protocol over a pair of pipes: there is no network port.
// Each document gets a browser context and a process of its own. The browser is
// replaced after a number of documents, when it has grown and when a document was
// stopped; if it crashes, each document that was in it is tried once more in a
// browser of its own. The headless shell (chrome-headless-shell, in Debian
// chromium-headless-shell) is taken first: it needs a fifth of the time of the
// complete browser for a small page, and half of the memory.
//
// # Hostile documents
//
// A page runs no scripts and reaches nothing but itself: every request is
// intercepted and aborted, the network is switched off for the page, no host name
// and no address resolves, and the proxy does not exist. The page has no origin
// and so no access to files. Time, memory and the size of the result are bounded.
// The browser's own sandbox is on unless [Options] say otherwise.
//
// What a page names is therefore missing: pictures, styles and fonts must be in
// it as data URLs. A picture that is not there is its alternative text.
//
// # Pages
//
// What a web page says about paper (@page) is followed unless the parameters ask
// for something else. Text keeps its lines in a monospaced font; a form feed
// begins a page. A table gets all its columns on the page, and its first row on
// each page if it is a heading. A drawing stays vectors.
//
// PDFs have tags and bookmarks unless the page is so large that the browser would
// need minutes for them. Fonts are embedded as subsets; those with PostScript
// outlines, such as the usual ones for Chinese, Japanese and Korean, and emoji
// become fonts of type 3.
package webops

import (
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

// ErrTooLong is the cause of a failure because of a text or table that has too
// many lines or cells: the time that the browser takes grows with the square of the
// number of pages. Another engine may do better.
var ErrTooLong = errors.New("webops: the document is too long")

// Limits of documents.
const (
	maxText   = 32 << 20  // bytes of a document
	maxOutput = 512 << 20 // bytes of a result
)

// Options configure [New]. The zero value is usable.
type Options struct {
	// Chromium is the path of Chromium, Chrome or their headless shell; ""
	// searches PATH, [engine.None] does without.
	Chromium string

	// NoSandbox does without the browser's own sandbox. As root, and where there are
	// no namespaces for users, as in most containers, it does not start otherwise;
	// elsewhere the sandbox should be left on. It is one of several walls around a
	// document: scripts and the network are off anyway.
	NoSandbox bool

	Workers       int           // documents at once; 0 means one for each core
	RecycleAfter  int           // documents after which the browser is replaced; 0 means 200
	RecycleMemory int64         // private memory in bytes above which it is replaced; 0 means 800 MB
	MemoryLimit   int64         // private memory in bytes at which it is killed; 0 means 3 GiB
	Timeout       time.Duration // of work for one document, see [worktime.Context]; 0 means 2 minutes

	// Run limits scratch space, files and processes of the browser while it has documents. Zero
	// fields mean no limit.
	Run      engine.Limits
	MaxCells int // of a table; 0 means 20,000

	// Fallback converts documents that are too long for the browser, unless the request
	// says how the pages look. nil means that they fail with [ErrTooLong].
	Fallback fileops.Action

	TempDir string       // parent of the profile directories; "" means os.TempDir
	Log     *slog.Logger // what happens to the browser; nil discards

	// Sandbox confines the browser as a whole; nil does not. It is beside the
	// browser's own sandbox, which confines its parts.
	Sandbox *engine.Sandbox
}

// An Engine owns the browser. It is safe for concurrent use.
type Engine struct {
	prog     *engine.Program
	pool     *pool
	fallback fileops.Action // may be nil
}

// programs are the names by which the browser is known, the smallest first.
var programs = []string{"chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}

// New looks for a browser and starts it once, to be sure that it runs here and
// answers. No process is left running. If there is no browser, it fails with a
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

// chromium describes the browser, before anything is known about it.
func chromium() fileops.Dependency {
	return fileops.Dependency{Name: "chromium", Purpose: "web pages, Markdown, text, CSV and SVG as PDF", Packages: []string{"chromium-headless-shell"}}
}

func find(ctx context.Context, o Options) (*Engine, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.RecycleAfter <= 0 {
		o.RecycleAfter = 200
	}
	if o.RecycleMemory <= 0 {
		o.RecycleMemory = 800e6
	}
	if o.MemoryLimit <= 0 {
		o.MemoryLimit = 3 << 30
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.MaxCells <= 0 {
		o.MaxCells = 20_000
	}
	if o.TempDir == "" {
		o.TempDir = os.TempDir()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
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
// distribution adds switches for people, and extensions.
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
func (e *Engine) Actions() []fileops.Action { return []fileops.Action{e.Convert()} }

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	d := chromium()
	d.Version, d.Path = e.prog.Version, e.prog.Path
	return []fileops.Dependency{d}
}

// Warm starts the browser and waits until it is ready. Without it the first
// document does that.
func (e *Engine) Warm(ctx context.Context) error { return e.pool.warm(ctx) }

// Close ends the browser at once and removes its profile. Conversions that are
// under way fail with [fileops.ErrUnavailable].
func (e *Engine) Close() error {
	e.pool.close()
	return nil
}
