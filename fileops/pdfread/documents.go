package pdfread

import (
	"context"
	"io"
	"math"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/docx"
	"github.com/filewright/filewright/fileops/pdfread/internal/extract"
	"github.com/filewright/filewright/fileops/pdfread/internal/flow"
	"github.com/filewright/filewright/fileops/pdfread/internal/html"
	"github.com/filewright/filewright/fileops/pdfread/internal/layout"
	"github.com/filewright/filewright/fileops/pdfread/internal/markdown"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/fileops/pdfread/internal/pptx"
	"github.com/filewright/filewright/fileops/pdfread/internal/tables"
)

// errPageTimeout is the cause with which an instance is killed that takes too
// long for a page.
func (e *Engine) errPageTimeout(number int) error {
	return fileops.Fail(fileops.ErrLimit, nil, "page %d takes longer to process than the limit of %v", number, e.timeout)
}

// open reads the input of job into an instance.
func (e *Engine) open(in *pdfium.Instance, job *fileops.Job) (*pdfium.Document, error) {
	data, err := job.Input().ReadAll(pdfium.MaxFileSize)
	if err != nil {
		return nil, err
	}
	defer in.Within(e.timeout, fileops.Fail(fileops.ErrLimit, nil, "the document takes longer to open than the limit of %v", e.timeout))()
	d, err := pdfium.OpenDocument(in, data, job.Params.Get("password"))
	if err == nil && !d.Encrypted() {
		job.WarnPasswordUnused()
	}
	return d, err
}

// document reads and lays out the document of job. It reads all pages before it
// lays out the first: headings, lists and headers can be recognized only in the
// whole document. Only a document for DOCX may contain fixed pages.
func (e *Engine) document(ctx context.Context, job *fileops.Job, to format.Format) (*model.Document, error) {
	r, err := e.read(ctx, job, 0.85, to)
	if err != nil {
		return nil, err
	}
	if to == format.DOCX {
		warnTurned(job, r.sheets)
		choose := func(param string, f model.Form) {
			for _, n := range numbers(job.Params.Get(param)) {
				if i := slices.IndexFunc(r.sheets, func(s *model.Sheet) bool { return s.Number == n }); i >= 0 {
					r.sheets[i].Form = f
				}
			}
		}
		choose(boxesParam, model.FormBoxes)
		choose(picturesParam, model.FormPicture)
		shrink(job, r.sheets)
	}
	if to == format.PPTX {
		warnTurned(job, r.sheets)
		asSlides(job, r.sheets)
	}
	d := layout.Document(ctx, r.sheets, r.marks, to == format.DOCX || to == format.PPTX)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := e.backdrops(ctx, job, d, r.media, to); err != nil {
		return nil, err
	}
	d.Info, d.Lang, d.Media = r.info, r.lang, r.media.All
	if to == format.XLSX || to == format.CSV {
		for _, s := range r.sheets {
			for _, w := range s.Words {
				d.Letters += tables.Letters(w.Text())
			}
		}
	}
	job.Progress(0.92)
	return d, nil
}

// warnTurned reports pages whose direction is not that of the file.
func warnTurned(job *fileops.Job, sheets []*model.Sheet) {
	var turned []int
	for _, s := range sheets {
		if s.Turned {
			turned = append(turned, s.Number)
		}
	}
	if len(turned) > 0 {
		job.Warn(fileops.WarnLayoutSimplified, "The text of %s runs sideways or upside down, so it was turned upright.", pageList(turned))
	}
}

// largestPage is the largest width and height of a page in Word, in points: 22 inches.
const largestPage = 1584

// shrink makes pages smaller that are too large for Word, and reports them.
func shrink(job *fileops.Job, sheets []*model.Sheet) {
	var large []int
	for _, s := range sheets {
		if k := largestPage / max(s.W, s.H); k < 1 {
			s.Scale(k)
			large = append(large, s.Number)
		}
	}
	if len(large) > 0 {
		job.Warn(fileops.WarnLayoutSimplified, "Word has no pages above 22 inches (55.9 cm), so these were made smaller: %s.", pageList(large))
	}
}

// asSlides prepares pages for a presentation: each keeps its look, and all fit on slides
// of the size of the first page.
func asSlides(job *fileops.Job, sheets []*model.Sheet) {
	var first *model.Sheet
	var resized []int
	for _, s := range sheets {
		s.Form = model.FormBoxes
		if s.W <= 0 || s.H <= 0 { // damaged
			continue
		}
		var k float64
		if first == nil {
			first = s
			k = min(max(1, pptx.Smallest/min(s.W, s.H)), pptx.Largest/max(s.W, s.H))
		} else {
			k = min(first.W/s.W, first.H/s.H)
		}
		if math.Abs(k-1) > 0.001 {
			s.Scale(k)
		}
		if s != first && math.Abs(k-1) > 0.02 {
			resized = append(resized, s.Number)
		}
	}
	if len(resized) > 0 {
		job.Warn(fileops.WarnLayoutSimplified, "All slides of a presentation have the same size, so these pages were made larger or smaller: %s.", pageList(resized))
	}
}

// slideSize returns the size of slides, which is that of the first page that has one.
func slideSize(d *model.Document) (w, h float64) {
	for _, s := range d.Sections {
		if s.W > 0 && s.H > 0 {
			return max(s.W, pptx.Smallest), max(s.H, pptx.Smallest)
		}
	}
	return 595, 842
}

// tablesHold is the part of a document's letters that its tables need for a result without a warning:
// page numbers and a title may be outside.
const tablesHold = 0.9

// toDocument writes the document of job in a format that needs its structure.
func (e *Engine) toDocument(ctx context.Context, job *fileops.Job, to format.Format) error {
	d, err := e.document(ctx, job, to)
	if err != nil {
		return err
	}
	if len(d.Labelled) > 0 && to == format.HTML {
		job.Warn(fileops.WarnPageAsImage, "Most text of %s is part of drawings, which are pictures with this text as their description.", pageList(d.Labelled))
	}
	if len(d.Bare) > 0 && (to == format.HTML || to == format.MD) {
		job.Warn(fileops.WarnContentDropped, "Lines and drawings of %s were left out; PDF to DOCX keeps them.", pageList(d.Bare))
	}
	var write func(io.Writer) error
	switch to {
	case format.DOCX:
		write = func(w io.Writer) error { return docx.Write(ctx, w, d) }
	case format.PPTX:
		width, height := slideSize(d)
		write = func(w io.Writer) error { return pptx.Write(ctx, w, d, width, height) }
	case format.HTML:
		name := format.Base(job.Input().Name())
		write = func(w io.Writer) error { return html.Write(ctx, w, flow.New(d), name) }
	case format.MD:
		write = func(w io.Writer) error {
			left, err := markdown.Write(ctx, w, flow.New(d))
			if left > 0 {
				job.Warn(fileops.WarnContentDropped, "Pictures were left out; PDF to HTML or DOCX keeps them.")
			}
			return err
		}
	default:
		ts, err := tables.Find(d)
		if err != nil {
			return err
		}
		if float64(tables.Total(ts)) < tablesHold*float64(d.Letters) {
			job.Warn(fileops.WarnContentDropped, "Text outside of tables was left out; PDF to HTML or DOCX keeps it.")
		}
		write = func(w io.Writer) error { return tables.WriteCSV(ctx, w, ts) }
		if to == format.XLSX {
			write = func(w io.Writer) error { return tables.WriteXLSX(ctx, w, ts, flow.New(d).Lang) }
		}
	}
	return job.Write(fileops.ResultName(job.Input(), to), write)
}

// backdrops draws the pictures of fixed pages.
func (e *Engine) backdrops(ctx context.Context, job *fileops.Job, d *model.Document, media *extract.Store, to format.Format) error {
	var pages []*model.Fixed
	var boxes, whole, behind, chosen []int
	for _, s := range d.Sections {
		f := s.Fixed
		if f == nil {
			continue
		}
		if f.Pictures == nil {
			pages = append(pages, f)
		}
		switch {
		case f.Chosen:
			chosen = append(chosen, f.Number)
		case f.Whole:
			whole = append(whole, f.Number)
		case slices.ContainsFunc(f.Boxes, func(b *model.Box) bool { return !b.Behind }):
			boxes = append(boxes, f.Number)
		case len(f.Boxes) > 0:
			behind = append(behind, f.Number)
		}
	}
	if len(boxes) > 0 && to == format.DOCX {
		job.Warn(fileops.WarnLayoutSimplified, "Flowing text cannot show %s, so text boxes over a picture do.", pageList(boxes))
	}
	if len(whole) > 0 {
		job.Warn(fileops.WarnPageAsImage, "The text of %s cannot be read or is mirrored, so a picture of the page was kept.", pageList(whole))
	}
	if len(chosen) > 0 {
		job.Warn(fileops.WarnPageAsImage, "In print, neither flowing text nor text boxes look like %s, so a picture of the page was kept, with the text behind it.", pageList(chosen))
	}
	if len(behind) > 0 && to == format.DOCX {
		job.Warn(fileops.WarnPageAsImage, "Flowing text cannot show %s, so pictures do, with the text behind them.", pageList(behind))
	}
	if len(pages) == 0 {
		return nil
	}
	return e.pool.Run(ctx, func(in *pdfium.Instance) error {
		doc, err := e.open(in, job)
		if err != nil {
			return err
		}
		x := extract.New(doc, media)
		x.AsShown = true
		for _, f := range pages {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := e.backdrop(x, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// backdrop draws the picture of a fixed page.
func (e *Engine) backdrop(x *extract.Extractor, f *model.Fixed) error {
	defer x.In.Within(e.timeout, e.errPageTimeout(f.Number))()
	p := x.Doc.Load(f.Number - 1)
	if p == nil {
		return x.In.Err
	}
	defer p.Close()
	x.Backdrop(p, f)
	return x.In.Err
}
