// Package ocrops reads the text in pictures with Tesseract (Debian package
// tesseract-ocr, version 4 or later).
//
//	ocr, err := ocrops.New(ctx, ocrops.Options{})
//	…
//	err = fileops.Run(ctx, ocr.Convert(), fileops.Args{"convert_to": "txt", "ocr_language": "deu"},
//		fileops.ToDir("out"), fileops.Path("letter.jpg"))
//
// [Engine.Recognize] returns words with their positions, for packages that make
// documents from scanned pages.
//
// # Languages
//
// A language has to be installed (tesseract-ocr-deu, tesseract-ocr-fra …). With the wrong
// language Tesseract guesses letters that the text does not have. Therefore the default,
// [Auto], detects the script first and then the language, by frequent words and by
// Tesseract's confidence. Text that no installed language fits is left out.
//
// # Pages that are not straight
//
// A page that is sideways or upside down is turned, if the orientation data
// (tesseract-ocr-osd) is installed and there is enough text. A page that is a few
// degrees off is straightened. Text with low confidence, as Tesseract finds in
// photographs, is dropped.
//
// # Safety
//
// Tesseract reads a picture from standard input and writes to standard output; its
// arguments contain no untrusted names. The size of a picture is read from its header
// and checked first. Memory, CPU time and the length of the output are limited.
package ocrops

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
)

// Options configure [New]. The zero value is usable.
type Options struct {
	Tesseract string // path or name; "" means tesseract in PATH, [engine.None] disables the engine

	Workers int           // processes at the same time, for all jobs together; 0 means GOMAXPROCS
	Timeout time.Duration // of CPU time for one page; 0 means 2 minutes

	MaxPixels int64 // of one page, width times height; 0 means 100 million
	MaxPages  int   // of one file; 0 means 500

	// Limits restrict each process. The defaults are Timeout for processor time and 3
	// GiB of address space.
	Limits engine.Limits

	TempDir string       // parent of the empty directories that processes run in; "" means os.TempDir
	Log     *slog.Logger // nil discards
	// Sandbox confines the programs; nil runs them unconfined.
	Sandbox *engine.Sandbox

	// Probed is the result of [Engine.Probed] of another process on this host. With it
	// New does not query Tesseract, which takes a tenth of a second.
	Probed string
}

// Limits of the processed data.
const (
	maxSide   = 32_767    // maximum of Tesseract
	maxInput  = 512 << 20 // bytes
	maxOutput = 64 << 20  // bytes of hOCR
	maxMemory = 3 << 30   // address space of a process
)

// An Engine is an installed Tesseract with its languages. It is safe for concurrent use.
type Engine struct {
	tesseract *engine.Program
	languages []string
	upright   bool // it can detect which side of a page is up
	opts      Options
	turns     chan struct{} // held while a process runs
}

var languageName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{1,31}$`)

// tesseract returns the dependency on Tesseract, without its path and version.
func tesseract() fileops.Dependency {
	return fileops.Dependency{Name: "tesseract", Purpose: "text of scanned PDFs and of pictures", Packages: []string{"tesseract-ocr"}}
}

// New searches for Tesseract and queries its languages. If Tesseract cannot be used, New
// fails with a *[fileops.MissingError].
func New(ctx context.Context, o Options) (*Engine, error) {
	e, err := find(ctx, o)
	if err != nil {
		return nil, fileops.Missing(tesseract(), err)
	}
	return e, nil
}

func find(ctx context.Context, o Options) (*Engine, error) {
	o.Workers = cmp.Or(max(o.Workers, 0), runtime.GOMAXPROCS(0))
	o.Timeout = cmp.Or(max(o.Timeout, 0), 2*time.Minute)
	o.MaxPixels = cmp.Or(max(o.MaxPixels, 0), 100e6)
	o.MaxPages = cmp.Or(max(o.MaxPages, 0), 500)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	e := &Engine{opts: o, turns: make(chan struct{}, o.Workers)}
	if o.Probed != "" {
		var p probed
		if err := json.Unmarshal([]byte(o.Probed), &p); err != nil {
			return nil, fmt.Errorf("ocrops: options: probed: %w", err)
		}
		if p.Path == "" || len(p.Languages) == 0 {
			return nil, errors.New("ocrops: options: probed: incomplete")
		}
		e.tesseract = &engine.Program{Name: filepath.Base(p.Path), Path: p.Path, Version: p.Version, Sandbox: o.Sandbox}
		e.languages, e.upright = p.Languages, p.Upright
		return e, nil
	}
	var err error
	if e.tesseract, err = o.Sandbox.Find(ctx, []string{"--version"}, cmp.Or(o.Tesseract, "tesseract")); err != nil {
		return nil, err
	}
	major, _, _ := strings.Cut(e.tesseract.Version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < 4 {
		return nil, fmt.Errorf("tesseract %s is too old: version 4 or later is needed", e.tesseract.Version)
	}
	var out strings.Builder
	if err := e.run(ctx, engine.Cmd{Args: []string{"--list-langs"}, Stdout: &out}, time.Minute, errors.New("tesseract does not answer")); err != nil {
		return nil, err
	}
	e.languages, e.upright = parseLanguages(out.String())
	if len(e.languages) == 0 {
		return nil, errors.New("tesseract has no language: install one, such as tesseract-ocr-eng")
	}
	return e, nil
}

// parseLanguages parses the output of --list-langs: a heading, then one name on each
// line. English comes first, the others are sorted.
func parseLanguages(s string) (names []string, osd bool) {
	_, s, _ = strings.Cut(s, "\n")
	for name := range strings.Lines(s) {
		switch name = strings.TrimSpace(name); {
		case name == "osd":
			osd = true
		case name == "equ" || name == "snum": // not languages
		case languageName.MatchString(name):
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if i := slices.Index(names, "eng"); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "eng")
	}
	return names, osd
}

// probed is the information that New gets from Tesseract.
type probed struct {
	Path      string   `json:"path"`
	Version   string   `json:"version"`
	Languages []string `json:"languages"`
	Upright   bool     `json:"upright"`
}

// Probed returns the information about Tesseract for [Options].
func (e *Engine) Probed() string {
	b, err := json.Marshal(probed{e.tesseract.Path, e.tesseract.Version, e.languages, e.upright})
	if err != nil {
		panic(err) // it has only strings and a boolean
	}
	return string(b)
}

// Languages returns the supported languages: [Auto], which is the default, and Tesseract's
// names: "eng", "deu", and "deu+eng" for a text in both.
func (e *Engine) Languages() []string {
	out := append([]string{Auto}, e.languages...)
	if e.languages[0] == "eng" {
		for _, l := range e.languages[1:] {
			out = append(out, l+"+eng")
		}
	}
	return out
}

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action { return []fileops.Action{e.Convert()} }

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	d := tesseract()
	d.Version, d.Path = e.tesseract.Version, e.tesseract.Path
	d.Purpose += "; languages: " + strings.Join(e.languages, " ")
	d.Recommended = e.recommended()
	return []fileops.Dependency{d}
}

func (e *Engine) name() string { return strings.TrimSpace("tesseract " + e.tesseract.Version) }

// run waits for a turn and runs Tesseract in an empty directory. If that takes longer
// than limit, not counting the wait, run fails with tooLong.
func (e *Engine) run(ctx context.Context, c engine.Cmd, limit time.Duration, tooLong error) error {
	select {
	case e.turns <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-e.turns }()
	dir, err := os.MkdirTemp(e.opts.TempDir, "ocr-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.Dir = dir
	// Several processes with one thread each are faster than one with several.
	c.Env = []string{"OMP_THREAD_LIMIT=1"}
	c.Limits.Memory = maxMemory
	c.Limits.FileSize = 1 << 20 // it has nothing to write there
	own := c.Limits
	c.Limits = e.opts.Limits.Or(own)
	c.Limits.FileSize = own.FileSize
	return e.tesseract.RunWithin(ctx, c, limit, tooLong)
}
