package standard

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/dataops"
	"github.com/filewright/filewright/fileops/documentops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/fileops/isolate"
	"github.com/filewright/filewright/fileops/ocrops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// The actions that read files in this process, by the keys under which they are
// known in a process of their own.
const (
	imagesConvert    = "images.convert"
	imagesCompress   = "images.compress"
	tablesConvert    = "tables.convert"
	archivesConvert  = "archives.convert"
	archivesZip      = "archives.zip"
	archivesCompress = "archives.compress"
	archivesLock     = "archives.lock"
	archivesUnlock   = "archives.unlock"
	archivesReset    = "archives.reset_password"
	pdfFromImages    = "pdf.from_images"
	pdfOfImages      = "pdf.of_images"
	pdfCompress      = "pdf.compress"
	pdfLock          = "pdf.lock"
	pdfUnlock        = "pdf.unlock"
	pdfReset         = "pdf.reset_password"
	pdfMerge         = "pdf.merge"
	packagesCompress = "packages.compress"
	packagesLock     = "packages.lock"
	packagesUnlock   = "packages.unlock"
	packagesReset    = "packages.reset_password"
	pagesConvert     = "pages.convert"
)

// own makes these actions.
func (p *prober) own() map[string]fileops.Action {
	tools := p.tools()
	archives, packages := p.opts.Limits.archives(), p.opts.Limits.packages()
	m := map[string]fileops.Action{
		tablesConvert:   dataops.Convert(),
		archivesConvert: archiveops.Convert(archives), archivesZip: archiveops.Zip(), archivesCompress: archiveops.Compress(archives),
		archivesLock: archiveops.Lock(archives), archivesUnlock: archiveops.Unlock(archives), archivesReset: archiveops.ResetPassword(archives),
		pdfFromImages: tools.FromImages(), pdfOfImages: tools.ImagesToPDF(), pdfCompress: tools.Compress(),
		pdfLock: tools.Lock(), pdfUnlock: tools.Unlock(), pdfReset: tools.ResetPassword(), pdfMerge: tools.Merge(),
		packagesLock: documentops.Lock(packages), packagesUnlock: documentops.Unlock(packages), packagesReset: documentops.ResetPassword(packages),
	}
	var pictures documentops.PictureCodec
	if p.images != nil {
		pictures = p.images
		m[imagesConvert], m[imagesCompress] = p.images.Convert(), p.images.Compress()
	}
	if p.render != nil {
		m[pagesConvert] = p.render.Convert()
	}
	m[packagesCompress] = documentops.Compress(pictures, packages)
	return m
}

func (p *prober) tools() pdfops.Tools {
	t := p.opts.Limits.pdf(pdfops.Tools{QPDF: p.qpdf})
	if p.images != nil {
		t.Images = p.images
	}
	if p.render != nil {
		t.Renderer = p.render
	}
	return t
}

// isolated returns actions that are run in processes of their own, if there is a
// pool of these; none if there should be one and is not.
func (p *prober) isolated(m map[string]fileops.Action) map[string]fileops.Action {
	out := make(map[string]fileops.Action, len(m))
	switch {
	case p.poolErr != nil:
		return out
	case p.pool == nil:
		return m
	}
	for key, a := range m {
		out[key] = p.pool.Wrap(key, a)
	}
	if p.render != nil { // pdfium is compiled here, once
		for _, key := range []string{pdfCompress, pagesConvert} {
			out[key] = fileops.Wrap(out[key], func(ctx context.Context, job *fileops.Job, do func(context.Context, *fileops.Job) error) error {
				if err := p.render.Warm(ctx); err != nil && ctx.Err() == nil {
					return fileops.Fail(fileops.ErrUnavailable, err, "the PDF engine cannot be started")
				}
				return do(ctx, job)
			})
		}
	}
	return out
}

// A role is what a process of its own must know of the one that starts it.
type role struct {
	Probed string // see imageops.Options
	QPDF   string // path; "" if there is none
	Number string // its version
	Cache  string
	Limits Limits
	OCR    string // see ocrops.Options
}

const roleVariable = "FILEWRIGHT_STANDARD"

func (p *prober) newPool() (*isolate.Pool, error) {
	r := role{Limits: p.opts.Limits}
	if p.qpdf != nil {
		r.QPDF, r.Number = p.qpdf.Path, p.qpdf.Version
	}
	if p.images != nil {
		r.Probed = p.images.Probed()
	}
	if p.ocr != nil {
		r.OCR = p.ocr.Probed()
	}
	access := engine.Access{Limits: true}
	if p.render != nil {
		dir, err := filepath.Abs(p.opts.CacheDir)
		if err != nil {
			return nil, err
		}
		r.Cache, access.Read = dir, []string{dir}
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return isolate.New(isolate.Options{
		Sandbox: p.sandbox, Access: access, Env: []string{roleVariable + "=" + string(b), imageops.Lean},
		Limits: p.opts.Limits.isolated(), TempDir: p.opts.TempDir, Log: p.opts.Log,
	})
}

// Main does one run and ends the process, if it was started for that by a [Set] with
// the option Isolate. A program that uses the option calls it first thing.
func Main() {
	isolate.Main(func(ctx context.Context) (map[string]fileops.Action, error) {
		var r role
		if err := json.Unmarshal([]byte(os.Getenv(roleVariable)), &r); err != nil {
			return nil, fmt.Errorf("standard: %w", err)
		}
		p := &prober{opts: Options{Limits: r.Limits}, sandbox: engine.NewSandbox()}
		if r.QPDF != "" {
			p.qpdf = &engine.Program{Name: filepath.Base(r.QPDF), Path: r.QPDF, Version: r.Number, Sandbox: p.sandbox}
		}
		p.images, p.imagesErr = imageops.New(r.Limits.images(imageops.Options{Probed: r.Probed}))
		if r.Cache != "" {
			o := r.Limits.render(pdfread.Options{CacheDir: r.Cache})
			if p.images != nil {
				o.Encoder = p.images
			}
			if r.OCR != "" {
				if p.ocr, p.ocrErr = ocrops.Find(ctx, r.Limits.ocr(ocrops.Options{Probed: r.OCR, Sandbox: p.sandbox})); p.ocrErr == nil {
					o.Recognizer = recognizer{p.ocr}
				}
			}
			p.render, p.renderErr = pdfread.New(ctx, o)
		}
		return p.own(), nil
	})
}
