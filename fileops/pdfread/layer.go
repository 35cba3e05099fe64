package pdfread

import (
	"context"
	"fmt"
	"image"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread/internal/extract"
	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/fileops/raster"
)

// Language returns the parameter for the language of scanned pages. ok is false if the
// engine has no [Options.Recognizer].
func (e *Engine) Language() (p fileops.Param, ok bool) {
	if e.recognizer == nil {
		return fileops.Param{}, false
	}
	return e.recognizer.Language(), true
}

// RecognizePages recognizes the text of scanned pages of a PDF file in memory, several
// concurrently, and returns those pages. A page is a scan if it has no text besides a
// stamp. With force, pages with text are recognized too; words where the page has
// readable text are left out.
//
// language is a value of the parameter of [Engine.Language]. progress receives fractions
// from 0 to 1, from any goroutine.
func (e *Engine) RecognizePages(ctx context.Context, pdf []byte, language string, force bool, progress func(float64)) ([]raster.TextPage, error) {
	l := &layering{with: e.recognizer, language: language, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	defer l.cancel(context.Canceled)
	err := e.inMemory(ctx, pdf, func(in *pdfium.Instance, doc *pdfium.Document) error {
		x := extract.New(doc, nil)
		l.done = func(pages int) { progress(float64(pages) / float64(doc.Pages)) }
		for i := range doc.Pages {
			if err := context.Cause(l.ctx); err != nil {
				return err
			}
			s, err := e.layerSheet(x, i, force)
			if err != nil {
				return err
			}
			if err := l.add(i, s); err != nil {
				return err
			}
		}
		return nil
	})
	l.wg.Wait()
	if cause := context.Cause(l.ctx); cause != nil && ctx.Err() == nil {
		err = cause
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.pages, func(a, b raster.TextPage) int { return a.Page - b.Page })
	return l.pages, nil
}

// layerSheet reads a page, and draws it if it is to be recognized.
func (e *Engine) layerSheet(x *extract.Extractor, index int, force bool) (*model.Sheet, error) {
	defer x.In.Within(e.timeout, e.errPageTimeout(index+1))()
	p := x.Doc.Load(index)
	if p == nil {
		return &model.Sheet{}, x.In.Err
	}
	defer p.Close()
	s := x.Sheet(p)
	if math.Abs(s.W-p.W) > 0.1 {
		return s, x.In.Err // it has text, whose direction is not that of the page
	}
	if x.In.Err == nil {
		s.Scan = x.ScanLayer(p, s, force)
	}
	return s, x.In.Err
}

// A layering recognizes pages for a text layer.
type layering struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	with     Recognizer
	language string
	slots    chan struct{} // one for each picture in memory
	wg       sync.WaitGroup
	done     func(pages int)

	mu       sync.Mutex
	pages    []raster.TextPage
	scans    int
	finished int // pages, with those that are no scans
}

// add starts to recognize a page. It blocks while too many pictures are in memory.
func (l *layering) add(index int, s *model.Sheet) error {
	if s.Scan == nil {
		l.finish()
		return nil
	}
	if l.scans++; l.scans > maxScans {
		return fileops.Fail(fileops.ErrLimit, nil, "the document has more than the limit of %d scanned pages; split it first", maxScans)
	}
	select {
	case l.slots <- struct{}{}:
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
	l.wg.Go(func() {
		defer func() { <-l.slots }()
		page, err := l.read(index, s)
		if err != nil {
			l.cancel(err)
			return
		}
		l.mu.Lock()
		l.pages = append(l.pages, page)
		l.mu.Unlock()
		l.finish()
	})
	return nil
}

func (l *layering) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished++
	l.done(l.finished)
}

func (l *layering) read(index int, s *model.Sheet) (page raster.TextPage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fileops.Fail(fileops.ErrEngine, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "")
		}
	}()
	got, err := l.with.Recognize(l.ctx, s.Scan.Img, s.Scan.DPI, l.language)
	if err != nil {
		return page, fmt.Errorf("page %d: %w", index+1, err)
	}
	page = raster.TextPage{Page: index, Width: s.W, Height: s.H}
	var known []*model.Word
	if s.Scan.Keep {
		known = s.Words
	}
	place := placement(s.Scan.Img.Rect.Size(), got)
	k := 72 / s.Scan.DPI
	for _, w := range got.Words {
		text := strings.ToValidUTF8(w.Text, "")
		if text == "" || w.Right <= w.Left || w.Size <= 0 {
			continue
		}
		x0, y0 := place(w.Left, w.Base)
		x1, y1 := place(w.Right, w.Base)
		ax, ay := place(w.Left, w.Top)
		bx, by := place(w.Right, w.Bottom)
		box := geom.Rect{L: min(ax, bx) * k, T: min(ay, by) * k, R: max(ax, bx) * k, B: max(ay, by) * k}
		if overlapsAny(box, known) {
			continue
		}
		page.Words = append(page.Words, raster.TextWord{Text: text, X: x0 * k, Y: y0 * k, DX: (x1 - x0) * k, DY: (y1 - y0) * k, Size: w.Size * k})
	}
	return page, nil
}

// placement returns the function that maps positions in a recognized page, which is
// upright and straight, to those in its picture of the given size.
func placement(size image.Point, got *Recognized) func(x, y float64) (float64, float64) {
	w, h := float64(size.X), float64(size.Y)
	uw, uh := w, h // of the upright picture
	if got.Turn%2 == 1 {
		uw, uh = h, w
	}
	sin, cos := math.Sincos(math.Atan(got.Slope))
	return func(x, y float64) (float64, float64) {
		x, y = x-uw/2, y-uh/2
		x, y = uw/2+x*cos-y*sin, uh/2+x*sin+y*cos
		switch got.Turn % 4 {
		case 1:
			return w - y, x
		case 2:
			return w - x, h - y
		case 3:
			return y, h - x
		}
		return x, y
	}
}
