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

	"github.com/filewright/filewright/fileops/engine"
)

// ErrTooLong is the cause of a failure because of a text or table that has too
// many lines or cells: the time that the browser takes grows with the square of the
// number of pages. Another engine may do better.
var ErrTooLong = errors.New("webops: the document is too long")

// None as the path in [Options] does without the browser.
const None = "none"

// Limits of documents.
const (
	maxText   = 32 << 20  // bytes of a document
	maxOutput = 512 << 20 // bytes of a result
)

// Options configure [Find]. The zero value is usable.
type Options struct {
	// Chromium is the path of Chromium, Chrome or their headless shell; ""
	// searches PATH.
	Chromium string

	// NoSandbox does without the browser's own sandbox. As root it does not
	// start otherwise; elsewhere the sandbox should be left on. It is one of
	// several walls around a document: scripts and the network are off anyway.
	NoSandbox bool

	Workers       int           // documents at once; 0 means one for each core
	RecycleAfter  int           // documents after which the browser is replaced; 0 means 200
	RecycleMemory int64         // private memory in bytes above which it is replaced; 0 means 800 MB
	MemoryLimit   int64         // private memory in bytes at which it is killed; 0 means 3 GiB
	Timeout       time.Duration // for one document; 0 means 2 minutes
	MaxCells      int           // of a table; 0 means 20,000

	TempDir string       // parent of the profile directories; "" means os.TempDir
	Log     *slog.Logger // what happens to the browser; nil discards
}

// An Engine owns the browser. It is safe for concurrent use.
type Engine struct {
	prog *engine.Program
	pool *pool
}

// programs are the names by which the browser is known, the smallest first.
var programs = []string{"chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}

// Find looks for a browser and starts it once, to be sure that it runs here and
// answers. It fails if there is none; the error then matches exec.ErrNotFound.
// No process is left running.
func Find(ctx context.Context, o Options) (*Engine, error) {
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
	case None:
		return nil, fmt.Errorf("webops: switched off: %w", exec.ErrNotFound)
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
		prog := &engine.Program{Name: filepath.Base(name), Path: binary(path)}
		b, product, err := startBrowser(ctx, prog, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b.stop()
		_, prog.Version, _ = strings.Cut(product, "/") // "HeadlessChrome/120.0.6099.129"
		return &Engine{prog: prog, pool: newPool(prog, o)}, nil
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

// Program returns the browser that was found, for reports.
func (e *Engine) Program() *engine.Program { return e.prog }

// Warm starts the browser and waits until it is ready. Without it the first
// document does that.
func (e *Engine) Warm(ctx context.Context) error { return e.pool.warm(ctx) }

// Close ends the browser at once and removes its profile. Conversions that are
// under way fail with [fileops.ErrUnavailable].
func (e *Engine) Close() error {
	e.pool.close()
	return nil
}
