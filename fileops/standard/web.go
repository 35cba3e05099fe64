package standard

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/webops"
)

// findWeb looks for the browser. It comes after findOffice, which takes over what
// is too long for a browser.
func (p *prober) findWeb(ctx context.Context) {
	if p.webErr = p.refused("chromium", p.opts.Chromium); p.webErr != nil {
		return
	}
	o := p.opts.Limits.web(webops.Options{
		Chromium: p.opts.Chromium, TempDir: p.opts.TempDir, Log: p.opts.Log, Sandbox: p.sandbox,
		NoSandbox: os.Geteuid() == 0,         // as root it does not start otherwise
		Workers:   runtime.GOMAXPROCS(0) + 1, // one for a guest, see status.Local; it is only a page more
	})
	if p.office == nil {
		o.MaxCells = 50_000 // better slowly than not at all
	}
	if p.web, p.webErr = webops.Find(ctx, o); p.webErr != nil && !o.NoSandbox {
		// Most containers have no namespaces for the browser's own sandbox.
		o.NoSandbox = true
		if p.web, _ = webops.Find(ctx, o); p.web != nil {
			p.webErr = nil
			p.opts.Log.Info("the browser's own sandbox does not work here, as in most containers; it runs without")
		}
	}
}

// webActions returns what prints to PDF by way of a page, and nil for what there
// is not on this host: the browser's own conversions, books, and records.
func (p *prober) webActions(office, data fileops.Action) (pages, books, records fileops.Action) {
	if p.web == nil {
		return nil, nil, nil
	}
	pages = orOffice(p.web.Convert(), office)
	books = via(office, format.HTML, pages, nil, func(from, to format.Format) bool { return from == format.EPUB })
	records = via(data, format.CSV, pages, nil, func(from, to format.Format) bool { return from == format.JSON })
	return pages, books, records
}

// orOffice returns web with office for documents that are too long for it, unless
// somebody has said how the pages shall look, which office cannot be told.
func orOffice(web, office fileops.Action) fileops.Action {
	if office == nil {
		return web
	}
	return fileops.Wrap(web, func(ctx context.Context, job *fileops.Job, do func(context.Context, *fileops.Job) error) error {
		err := do(ctx, job)
		if p := job.Params; errors.Is(err, webops.ErrTooLong) && p.Get("page_size") == "auto" && p.Get("orientation") == "auto" &&
			!p.Has("margin") && !p.Bool("page_numbers") && p.Bool("print_background") {
			job.Log.Debug("too long for the browser", "err", err)
			return office.Do(ctx, job)
		}
		return err
	})
}

// webToPages says which pictures of pages are better made of what the browser
// prints: those of drawings are made directly.
func webToPages(from, to format.Format) bool {
	return from != format.SVG && to.Family() == format.Image
}

// reportWeb describes the browser.
func (p *prober) reportWeb() Engine {
	e := Engine{Name: "chromium", Purpose: "web pages, Markdown, text, CSV and SVG as PDF", Packages: []string{"chromium-headless-shell"}}
	switch {
	case p.web != nil:
		e.Version, e.Path = p.web.Program().Version, p.web.Program().Path
	case !errors.Is(p.webErr, errDisabled) && !errors.Is(p.webErr, exec.ErrNotFound):
		e.Hint = "it is there, but does not start; its sandbox needs user namespaces, or the package chromium-sandbox"
	}
	return e
}
