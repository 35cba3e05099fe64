package pdfops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
)

// Options configure [New]. The zero value is usable.
type Options struct {
	QPDF        string          // path or name; "" means qpdf in PATH, [engine.None] disables qpdf
	Ghostscript string          // path or name; "" means gs in PATH, [engine.None] disables Ghostscript
	PDFToCairo  string          // path or name; "" means pdftocairo in PATH, [engine.None] disables pdftocairo
	Sandbox     *engine.Sandbox // confines the programs; nil means no sandbox

	// Probed is the result of [Engine.Probed] in another process on this host. It
	// saves the starts of the programs.
	Probed string

	Images   ImageCodec // see [Tools]
	Renderer Renderer   // see [Tools]
	Reader   TextReader // see [Tools]
	Limits   Limits
	Run      engine.Limits // see [Tools]
}

// An Engine provides the actions of this package. It implements
// [fileops.Engine].
type Engine struct {
	Tools
	missing      error // why qpdf is unavailable
	noPostScript error // why Ghostscript is unavailable
	noSVG        error // why pdftocairo is unavailable
}

// New looks for qpdf, Ghostscript and pdftocairo and returns an engine. Without qpdf the actions run
// in pure Go.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{Tools: Tools{Images: o.Images, Renderer: o.Renderer, Reader: o.Reader, Limits: o.Limits, Run: o.Run}}
	if o.Probed != "" {
		var p probed
		if err := json.Unmarshal([]byte(o.Probed), &p); err != nil {
			return nil, fmt.Errorf("pdfops: options: probed: %w", err)
		}
		e.QPDF, e.Ghostscript, e.PDFToCairo = p.QPDF.program(o.Sandbox), p.Ghostscript.program(o.Sandbox), p.PDFToCairo.program(o.Sandbox)
		return e, nil
	}
	e.Ghostscript, e.noPostScript = o.Sandbox.Find(ctx, []string{"--version"}, cmp.Or(o.Ghostscript, "gs"))
	e.PDFToCairo, e.noSVG = o.Sandbox.Find(ctx, []string{"-v"}, cmp.Or(o.PDFToCairo, "pdftocairo"))
	e.QPDF, e.missing = o.Sandbox.Find(ctx, []string{"--version"}, cmp.Or(o.QPDF, "qpdf"))
	return e, nil
}

// probed holds the facts about programs that [New] finds out.
type probed struct {
	QPDF        found `json:"qpdf"`
	Ghostscript found `json:"ghostscript"`
	PDFToCairo  found `json:"pdftocairo"`
}

// found holds the facts about a program.
type found struct {
	Path    string `json:"path"` // "" if it is not there
	Version string `json:"version"`
}

func factsOf(p *engine.Program) found {
	if p == nil {
		return found{}
	}
	return found{p.Path, p.Version}
}

// program returns a program that another process has found, or nil.
func (f found) program(s *engine.Sandbox) *engine.Program {
	if f.Path == "" {
		return nil
	}
	return &engine.Program{Name: filepath.Base(f.Path), Path: f.Path, Version: f.Version, Sandbox: s}
}

// Probed returns the facts about programs that [New] found out, for [Options].
func (e *Engine) Probed() string {
	b, err := json.Marshal(probed{factsOf(e.QPDF), factsOf(e.Ghostscript), factsOf(e.PDFToCairo)})
	if err != nil {
		panic(err) // impossible: only strings
	}
	return string(b)
}

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	all := []fileops.Action{e.FromImages(), e.Compress(), e.Lock(), e.Unlock(), e.ResetPassword(), e.Merge(), e.ExtractPages(), e.ConvertPages(), e.ConvertArchival(), e.Split(), e.Rotate(), e.Flatten(), e.PageNumbers(), e.Watermark(), e.FillForm(), e.Metadata(), e.Bookmarks(), e.Attach(), e.Inspect()}
	for _, a := range []fileops.Action{e.FromPostScript(), e.ToSVG(), e.OCR()} {
		if a != nil {
			all = append(all, a)
		}
	}
	return all
}

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	qpdf := fileops.Dependency{Name: "qpdf", Purpose: "passwords of every kind of PDF; repair of damaged ones", Packages: []string{"qpdf"}, Err: e.missing}
	if e.QPDF != nil {
		qpdf.Version, qpdf.Path = e.QPDF.Version, e.QPDF.Path
	}
	ghostscript := fileops.Dependency{Name: "ghostscript", Purpose: "PostScript; PDF/A of files whose pages must be written again", Packages: []string{"ghostscript"}, Err: e.noPostScript}
	if e.Ghostscript != nil {
		ghostscript.Version, ghostscript.Path = e.Ghostscript.Version, e.Ghostscript.Path
	}
	poppler := fileops.Dependency{Name: "poppler", Purpose: "PDF to SVG", Packages: []string{"poppler-utils"}, Err: e.noSVG}
	if e.PDFToCairo != nil {
		poppler.Version, poppler.Path = e.PDFToCairo.Version, e.PDFToCairo.Path
	}
	return []fileops.Dependency{qpdf, ghostscript, poppler, fileops.Module("pdfcpu", "github.com/pdfcpu/pdfcpu", "PDFs")}
}
