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
	QPDF    string          // path or name; "" means qpdf in PATH, [engine.None] disables qpdf
	Sandbox *engine.Sandbox // confines qpdf; nil means no sandbox

	// Probed is the result of [Engine.Probed] in another process on this host. It
	// saves one start of qpdf.
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
	missing error // why qpdf is unavailable
}

// New looks for qpdf and returns an engine. Without qpdf the actions run in pure
// Go.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{Tools: Tools{Images: o.Images, Renderer: o.Renderer, Reader: o.Reader, Limits: o.Limits, Run: o.Run}}
	if o.Probed != "" {
		var p probed
		if err := json.Unmarshal([]byte(o.Probed), &p); err != nil {
			return nil, fmt.Errorf("pdfops: options: probed: %w", err)
		}
		if p.Path != "" {
			e.QPDF = &engine.Program{Name: filepath.Base(p.Path), Path: p.Path, Version: p.Version, Sandbox: o.Sandbox}
		}
		return e, nil
	}
	e.QPDF, e.missing = o.Sandbox.Find(ctx, []string{"--version"}, cmp.Or(o.QPDF, "qpdf"))
	return e, nil
}

// probed holds the facts about qpdf that [New] finds out.
type probed struct {
	Path    string `json:"path"` // "" if there is no qpdf
	Version string `json:"version"`
}

// Probed returns the facts about qpdf that [New] found out, for [Options].
func (e *Engine) Probed() string {
	var p probed
	if e.QPDF != nil {
		p = probed{e.QPDF.Path, e.QPDF.Version}
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // impossible: only two strings
	}
	return string(b)
}

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	all := []fileops.Action{e.FromImages(), e.Compress(), e.Lock(), e.Unlock(), e.ResetPassword(), e.Merge(), e.ExtractPages(), e.ConvertPages(), e.Split(), e.Rotate(), e.Flatten(), e.PageNumbers(), e.Watermark(), e.FillForm(), e.Metadata(), e.Bookmarks(), e.Attach(), e.Inspect()}
	if a := e.OCR(); a != nil {
		all = append(all, a)
	}
	return all
}

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	qpdf := fileops.Dependency{Name: "qpdf", Purpose: "passwords of every kind of PDF; repair of damaged ones", Packages: []string{"qpdf"}, Err: e.missing}
	if e.QPDF != nil {
		qpdf.Version, qpdf.Path = e.QPDF.Version, e.QPDF.Path
	}
	return []fileops.Dependency{qpdf, fileops.Module("pdfcpu", "github.com/pdfcpu/pdfcpu", "PDFs")}
}
