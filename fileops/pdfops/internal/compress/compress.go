// Package compress makes PDF documents smaller. A [Job] goes through five
// stages:
//
//   - read: package pdf parses the original;
//   - plan: the walker follows the content of all pages. It finds the largest
//     size at which each image is drawn, and the characters that each font
//     shows;
//   - recode: images become JPEG, palettes or JBIG2, fonts lose unused glyphs,
//     and metadata loses what no reader needs;
//   - write: streams are compressed again and equal objects are stored once;
//   - verify: the result is parsed, and a few of its pages are drawn and
//     compared with the original.
//
// If the result looks different from the original, the stages run again at a
// gentler level.
package compress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// worthwhile is the largest size of a useful result, relative to the original.
const worthwhile = 0.97

// A Job compresses one document.
type Job struct {
	Original []byte
	Load     func() (*pdf.Document, error) // reads the original
	Level    string                        // value of the parameter compression_value
	MaxPages int

	Codec    codec    // nil means pure Go
	Renderer renderer // nil means that results are parsed again, but not drawn

	Dir      string // for results
	Log      *slog.Logger
	Progress func(float64) // from 0 to 1
}

// Run returns the path of the result in j.Dir, or "" if compression gains
// nothing. It tries one level after the other until a result looks like the
// original.
func (j Job) Run(ctx context.Context) (path string, err error) {
	if j.Codec == nil {
		j.Codec = goCodec{}
	}
	d, pages, err := j.read()
	if err != nil {
		return "", err
	}
	j.Progress(0.1)
	if d.Signed() {
		j.Log.Info("signed file kept as it is")
		return "", nil
	}
	shown := newComparison(ctx, j.Renderer, j.Original, d)
	defer shown.stop()
	for _, lv := range levelOf(j.Level).fallbacks() {
		if d == nil { // the last attempt changed it
			if d, pages, err = j.read(); err != nil {
				return "", err
			}
		}
		a := &attempt{Job: j, doc: d, pages: pages, level: lv}
		path, err := a.run(ctx, shown)
		if !errors.Is(err, errGentler) {
			return path, err
		}
		d = nil
	}
	return "", nil
}

func (j Job) read() (*pdf.Document, []pdf.Page, error) {
	d, err := j.Load()
	if err != nil {
		return nil, nil, err
	}
	pages, err := d.Pages(j.MaxPages)
	return d, pages, err
}

// An attempt compresses a document at one level. It consumes the document.
type attempt struct {
	Job
	doc   *pdf.Document
	pages []pdf.Page
	level level
}

// errGentler reports that a gentler level may succeed.
var errGentler = errors.New("try a gentler level")

// run plans, recodes images and fonts, writes the result and verifies it. It
// returns the path of the result, or "" to keep the original. It returns
// errGentler to request the next level.
func (a *attempt) run(ctx context.Context, shown *comparison) (string, error) {
	compared := changes{}.choose(slices.Repeat([]*pageUse{{}}, len(a.pages)))
	if !a.level.rewrite {
		p, err := a.plan(ctx)
		if err != nil {
			return "", err
		}
		changed, err := a.recode(ctx, p)
		if err != nil {
			return "", err
		}
		strip(a.doc, a.pages, a.level)
		compared = changed.choose(p.shown)
	}
	if err := a.repack(ctx); err != nil {
		return "", err
	}
	path, made, err := a.write()
	if err != nil {
		return "", err
	}
	a.Progress(0.9)
	if float64(len(made)) >= worthwhile*float64(len(a.Original)) {
		if a.level.hopeful {
			return "", errGentler
		}
		return "", nil
	}
	err = a.verify(ctx, made, compared, shown)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		a.Log.Info("compressed less, because the result would differ", "err", err)
		return "", errGentler
	}
	return path, nil
}

// plan follows the content of the document to find the drawn images, their sizes
// and the characters shown. First it merges equal objects, so that each is
// recoded once.
func (a *attempt) plan(ctx context.Context) (*walker, error) {
	nameFonts(a.doc)
	a.doc.MergeEqual(ctx)
	w := newWalker(a.doc)
	for i, p := range a.pages {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := w.page(ctx, p); err != nil {
			return nil, err
		}
		a.Progress(0.1 + 0.1*float64(i+1)/float64(len(a.pages)))
	}
	if err := w.otherForms(ctx); err != nil {
		return nil, err
	}
	if !w.complete() {
		a.Log.Info("content is too complex or damaged; pictures are not scaled")
	}
	return w, nil
}

// recode makes images and fonts smaller and returns what it changed.
func (a *attempt) recode(ctx context.Context, w *walker) (changes, error) {
	d := a.doc
	before := takeSnapshot(d, w)
	r := &recoder{
		doc: d, codec: a.Codec, level: a.level, scale: w.complete(),
		logErr: func(nr int, err error) { a.Log.Debug("picture kept as it is", "object", nr, "err", err) },
	}
	tasks := pictures(d, w.sizes)
	losses := make([]float64, len(tasks))
	err := inParallel(ctx, len(tasks), func(i int) (err error) {
		losses[i], err = r.picture(ctx, tasks[i])
		return err
	}, func(done float64) { a.Progress(0.2 + 0.5*done) })
	if err != nil {
		return changes{}, err
	}
	if err := recodeOneBit(ctx, d); err != nil {
		return changes{}, err
	}
	if w.complete() {
		if err := subsetFonts(ctx, d, w.fonts); err != nil {
			return changes{}, err
		}
	}
	changed := before.changes(d, w)
	for i, k := range tasks {
		if _, ok := changed.kinds[k.nr]; ok {
			changed.risks[k.nr] = losses[i] * k.size.width * k.size.height
		}
	}
	return changed, nil
}

// repack compresses all streams as tightly as possible.
func (a *attempt) repack(ctx context.Context) error {
	var streams []*types.StreamDict
	for _, nr := range a.doc.Reachable() {
		if s, ok := a.doc.Objects[nr].(*types.StreamDict); ok {
			streams = append(streams, s)
		}
	}
	err := inParallel(ctx, len(streams), func(i int) error {
		pdf.Repack(streams[i])
		return nil
	}, func(done float64) { a.Progress(0.7 + 0.2*done) })
	if err != nil {
		return err
	}
	a.doc.MergeEqual(ctx)
	return nil
}

// write writes the document to a file. It returns the path and content of the
// file.
func (a *attempt) write() (path string, made []byte, err error) {
	out, err := os.CreateTemp(a.Dir, "compressed-*.pdf")
	if err != nil {
		return "", nil, err
	}
	werr := a.doc.Write(out, a.doc.IsPDFA1(), nil)
	if err := errors.Join(werr, out.Close()); err != nil {
		return "", nil, err
	}
	made, err = os.ReadFile(out.Name())
	return out.Name(), made, err
}

// verify parses a result again and compares the given pages with the original.
func (a *attempt) verify(ctx context.Context, made []byte, compared []int, shown *comparison) error {
	again, err := pdf.ParseComplete(ctx, made, a.MaxPages)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && (!errors.Is(err, pdf.ErrIncomplete) || !a.doc.Incomplete()):
		return err
	}
	pages, err := again.Pages(a.MaxPages)
	if err != nil {
		return err
	}
	if len(pages) != len(a.pages) {
		return fmt.Errorf("%d pages instead of %d", len(pages), len(a.pages))
	}
	return shown.same(ctx, made, compared, a.level)
}
