package webops

import (
	"context"
	"errors"
	"os"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/pdfpack"
)

// Default margins in points: two centimetres around text without its own margins, less
// around content that has margins.
const (
	textMargin  = 57
	pageMargin  = 36
	tableMargin = 36
)

// A page is a document to print.
type page struct {
	html   string
	title  string // of the PDF if the document has no title
	layout layout
	most   int64 // maximum bytes of the PDF

	// check requires the first picture to load, because it is the document.
	check bool

	media    string     // of the style: "" for print, or "screen"
	features []feature  // media features of the style
	scripts  *scripting // how its scripts run; nil if they do not run
	shot     *shot      // the picture to take of it; nil: it is printed

	// lost is called with what the page does not show, at least once. It may be nil.
	lost func(losses)
}

// A source makes a page from the content of a document.
type source func(e *Engine, ctx context.Context, job *fileops.Job, in []byte) (page, error)

// conversions lists the input formats in the order of the Spec. It is read-only.
var conversions = []struct {
	formats []format.Format
	params  fileops.Schema
	source  source
}{
	{
		[]format.Format{format.HTML},
		append(parameters("takes what the style of the page says (@page), else a4", "takes that of the style, else portrait", pageMargin), append(scriptParameters(), singlePage())...),
		(*Engine).htmlPage,
	},
	{[]format.Format{format.MD}, parameters("is a4", "is portrait", textMargin), (*Engine).markdownPage},
	{[]format.Format{format.TXT}, parameters("is a4", "is portrait", textMargin), (*Engine).textPage},
	{[]format.Format{format.CSV, format.TSV}, parameters("is a4", "is landscape if the table is wide", tableMargin), (*Engine).tablePage},
	{[]format.Format{format.SVG}, drawingParameters(parameters("is that of the picture", "is that of the picture", 0)), (*Engine).svgPage},
}

// Convert returns the action "convert" to pdf, see the package comment.
//
// It fails with [fileops.ErrLimit] if a document is larger than 32 MiB, is too long
// ([ErrTooLong]), exceeds the time or memory of the [Options], or makes a PDF of more
// than 512 MiB. It fails with [fileops.ErrCorruptInput] for an unreadable document, with
// [fileops.ErrUnsupportedInput] if the visible content is in other files, and with
// [fileops.ErrEngine] if the browser crashes twice.
func (e *Engine) Convert() fileops.Action {
	spec := fileops.Spec{
		Name:    "convert",
		Engine:  e.prog.Name + " " + e.prog.Version,
		Family:  "web",
		Summary: "Prints web pages, text, tables and drawings to PDF.",
	}
	for _, c := range conversions {
		spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: c.formats, Params: c.params})
	}
	return fileops.Func(spec, e.convert)
}

func (e *Engine) convert(ctx context.Context, job *fileops.Job) error {
	err := e.print(ctx, job)
	if e.fallback != nil && errors.Is(err, ErrTooLong) && ordinary(job.Params) {
		job.Log.Debug("too long for the browser", "err", err)
		return e.fallback.Do(ctx, job)
	}
	return err
}

// ordinary reports whether the parameters, which the fallback does not know, have their
// default values.
func ordinary(p fileops.Params) bool {
	defaults := make(map[string]any)
	for _, d := range parameters("", "", 0) {
		defaults[d.Name] = d.Default
	}
	for name, v := range p.Args() {
		if name != "convert_to" && v != defaults[name] {
			return false
		}
	}
	return true
}

func (e *Engine) print(ctx context.Context, job *fileops.Job) error {
	in := job.Input()
	b, err := in.ReadAll(maxText)
	if err != nil {
		return err
	}
	var make source
	for _, c := range conversions {
		for _, f := range c.formats {
			if f == in.Format() {
				make = c.source
			}
		}
	}
	pg, err := make(e, ctx, job, b)
	if err != nil {
		return err
	}
	pg.most = maxOutput
	if most := job.MaxOutput(); most > 0 {
		pg.most = min(pg.most, unpacked*most)
	}
	if pg.title == "" {
		pg.title = format.Base(in.Name())
	}
	pg.layout.plain = pg.layout.plain || heavy(pg.html)
	return e.write(ctx, job, pg, format.PDF)
}

// unpacked is how many times larger a PDF may be before it is packed.
const unpacked = 8

// pack makes a PDF smaller. It fails if that is still too large.
func pack(job *fileops.Job, path string) error {
	if _, err := pdfpack.File(path); err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if most := job.MaxOutput(); most > 0 && st.Size() > most {
		return job.TooMuch(nil)
	}
	return nil
}

// write prints a page, or takes a picture of it, and writes the result.
func (e *Engine) write(ctx context.Context, job *fileops.Job, pg page, to format.Format) error {
	job.Progress(0.1)
	return job.WriteFile(fileops.ResultName(job.Input(), to), func(path string) error {
		use := e.pool.use
		if pg.scripts != nil {
			use = e.pool.alone
		}
		err := use(ctx, func(ctx context.Context, b *browser) error {
			return b.print(ctx, pg, path, func(done float64) { job.Progress(0.1 + 0.9*done) })
		})
		if pg.scripts != nil && errors.Is(err, errCrashed) && ctx.Err() == nil {
			return fileops.Fail(fileops.ErrLimit, err, "the scripts of the page need more memory than is allowed")
		}
		if err == nil && to == format.PDF {
			err = pack(job, path)
		}
		return err
	})
}

// htmlPage prints a page as it is.
func (e *Engine) htmlPage(_ context.Context, job *fileops.Job, in []byte) (page, error) {
	l := newLayout(job.Params, pageMargin, false)
	l.follow = true
	p := job.Params
	rule := l.rule(sized(p))
	text := prepare(charset.DecodeHTML(in))
	if rule != "" {
		text += "<style>@page { " + rule + " }</style>"
	}
	pg := page{html: text, layout: l, lost: func(l losses) { l.warn(job) }}
	if p.Get("media") == screen {
		pg.media = screen
	}
	pg.layout.single = p.Bool("single_page")
	var err error
	if pg.features, err = mediaFeatures(p); err != nil {
		return page{}, err
	}
	pg.scripts, err = newScripts(job, e.pool.opts.ScriptTime)
	return pg, err
}
