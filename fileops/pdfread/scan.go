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
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// A Recognizer recognizes the text in pictures of pages.
type Recognizer interface {
	// Language returns the parameter by which a caller specifies the language of
	// the text.
	Language() fileops.Param

	// Recognize reads a page, drawn at dpi dots per inch. language is a value of
	// the parameter. A page without text is not an error.
	Recognize(ctx context.Context, img *image.Gray, dpi float64, language string) (*Recognized, error)
}

// Recognized is the text of a page. Positions are in pixels from the top left
// corner of the upright and straight page.
type Recognized struct {
	Turn  int     // quarter turns counterclockwise that make the page upright
	Slope float64 // of the lines before the page was straightened: dy/dx, about its centre
	Words []RecognizedWord
}

// A RecognizedWord is text without space.
type RecognizedWord struct {
	Text                     string
	Left, Top, Right, Bottom float64
	Base                     float64 // y of the line's baseline
	Size                     float64 // of the font (1 em)
}

// maxScans limits the recognized pages of one document.
const maxScans = 500

// A recognition recognizes the scanned pages of one document, several
// concurrently, while pdfium reads later pages.
type recognition struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	with     Recognizer
	language string
	font     *model.Font // of all recognized text, whose font is unknown

	slots chan struct{} // one for each picture in memory
	wg    sync.WaitGroup

	mu    sync.Mutex
	pages []*model.Sheet
}

// newRecognition returns a recognition for a job, or nil if the engine has no
// recognizer.
func (e *Engine) newRecognition(ctx context.Context, job *fileops.Job) *recognition {
	if e.recognizer == nil {
		return nil
	}
	r := &recognition{
		with: e.recognizer, language: job.Params.Get(e.recognizer.Language().Name),
		font: &model.Font{Name: "Times New Roman", Latin: "Times New Roman"}, slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

// add starts to recognize a page. It blocks while too many pictures of pages are
// in memory. Several goroutines may call it.
func (r *recognition) add(s *model.Sheet) error {
	if s.Scan == nil {
		return nil
	}
	r.mu.Lock()
	r.pages = append(r.pages, s)
	n := len(r.pages)
	r.mu.Unlock()
	if n > maxScans {
		return fileops.Fail(fileops.ErrLimit, nil,
			"the document has more than %d scanned pages; choose a part of them with the parameter pages", maxScans)
	}
	select {
	case r.slots <- struct{}{}:
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
	sc := s.Scan
	r.wg.Go(func() {
		defer func() { <-r.slots }()
		if err := r.read(s); err != nil {
			r.cancel(err)
			return
		}
		sc.Img = nil
		close(sc.Done)
	})
	return nil
}

func (r *recognition) read(s *model.Sheet) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fileops.Fail(fileops.ErrEngine, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "")
		}
	}()
	got, err := r.with.Recognize(r.ctx, s.Scan.Img, s.Scan.DPI, r.language)
	if err != nil {
		return fmt.Errorf("page %d: %w", s.Number, err)
	}
	s.Scan.Words = len(got.Words)
	s.Scan.Other = otherInk(s.Scan.Img, got)
	takeWords(s, got, r.font)
	return nil
}

// Paper is the most frequent light level of a scan; ink is this much darker.
const inkContrast = 48

// otherInk returns the part of a scan's ink that is not in recognized words, from
// 0 to 1. It erases the words from img.
func otherInk(img *image.Gray, got *Recognized) float64 {
	var levels [256]int
	for _, p := range img.Pix {
		levels[p]++
	}
	paper := 128
	for i := paper; i < len(levels); i++ {
		if levels[i] > levels[paper] {
			paper = i
		}
	}
	ink := func() (n int) {
		for _, p := range img.Pix {
			if int(p) < paper-inkContrast {
				n++
			}
		}
		return n
	}
	all := ink()
	if all == 0 {
		return 0
	}
	for i := range got.Words {
		w := &got.Words[i]
		pad := 0.15 * w.Size
		box := image.Rect(int(w.Left-pad), int(w.Top-pad), int(w.Right+pad)+1, int(w.Bottom+pad)+1)
		box = beforeTurn(box, img.Rect.Size(), got.Turn).Intersect(img.Rect)
		for y := box.Min.Y; y < box.Max.Y; y++ {
			row := img.Pix[img.PixOffset(box.Min.X, y):img.PixOffset(box.Max.X, y)]
			for x := range row {
				row[x] = 0xff
			}
		}
	}
	return float64(ink()) / float64(all)
}

// beforeTurn returns the place of r in a picture of the given size that some
// quarter turns counterclockwise made upright.
func beforeTurn(r image.Rectangle, size image.Point, turn int) image.Rectangle {
	a, b := r.Min, r.Max
	switch turn % 4 {
	case 1:
		return image.Rect(size.X-b.Y, a.X, size.X-a.Y, b.X)
	case 2:
		return image.Rect(size.X-b.X, size.Y-b.Y, size.X-a.X, size.Y-a.Y)
	case 3:
		return image.Rect(a.Y, size.Y-b.X, b.Y, size.Y-a.X)
	}
	return r
}

// wait waits until the words of a page are complete.
func (r *recognition) wait(s *model.Sheet) error {
	if s.Scan == nil {
		return nil
	}
	select {
	case <-s.Scan.Done:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// warn reports the pages with recognized text.
func (r *recognition) warn(job *fileops.Job) {
	if r == nil {
		return
	}
	var found []int
	for _, s := range r.pages {
		if s.Scan.Words > 0 {
			found = append(found, s.Number)
		}
	}
	slices.Sort(found)
	if len(found) > 0 {
		job.Warn(fileops.WarnTextRecognized, "The text of %s was recognised and may contain errors.", pageList(found))
	}
}

// stop cancels recognition and waits until it has stopped.
func (r *recognition) stop() {
	if r != nil {
		r.cancel(context.Canceled)
		r.wg.Wait()
	}
}

// takeWords replaces the words of the sheet with the recognized ones.
func takeWords(s *model.Sheet, got *Recognized, f *model.Font) {
	if s.Unlikely && got.Turn%4 != 0 { // its codes are wrong, but their direction is right
		s.Scan.Words = 0
		return
	}
	if len(got.Words) == 0 {
		return // it stays a picture
	}
	if !s.Scan.Keep {
		s.Words = nil
	}
	if got.Turn%4 != 0 { // the page is rotated, so all other positions are wrong
		s.Words, s.Pictures, s.Rules, s.Fills, s.Drawings, s.Links = nil, nil, nil, nil, nil, nil
		s.Scan.Turn = got.Turn % 4
		if got.Turn%2 == 1 {
			s.W, s.H = s.H, s.W
		}
	}
	known := s.Words
	var last *model.Word
	k := 72 / s.Scan.DPI
	for i := range got.Words {
		g := &got.Words[i]
		text := strings.ToValidUTF8(g.Text, "")
		if text == "" {
			continue
		}
		w := &model.Word{
			Rect:       geom.Rect{L: g.Left * k, T: g.Top * k, R: g.Right * k, B: g.Bottom * k},
			Recognised: true, Base: g.Base * k, Size: max(2, math.Round(2*g.Size*k)/2), RTL: strings.ContainsFunc(text, model.IsRTL),
		}
		if overlapsAny(w.Rect, known) {
			continue // a stamp that is already text
		}
		first, _ := utf8.DecodeRuneInString(text)
		w.Glued = last != nil && last.Base == w.Base && model.WithoutSpaces(model.LastRune(last.Text())) && model.WithoutSpaces(first)
		w.Spans = []model.Span{{Text: text, Style: model.Style{Font: f, Size: w.Size}}}
		s.Words = append(s.Words, w)
		last = w
	}
	// Drop the picture of the page itself, which would cover its text.
	page := s.W * s.H
	kept := s.Pictures[:0]
	for _, p := range s.Pictures {
		over := 0
		for _, w := range s.Words {
			if p.Contains(w.CX(), w.CY()) {
				over++
			}
		}
		if part := p.Area() / page; over == 0 || part < 0.25 || part < 0.5 && over <= 12 {
			kept = append(kept, p)
		} else {
			s.Scan.Under = append(s.Scan.Under, p)
		}
	}
	s.Pictures = kept
}

func overlapsAny(r geom.Rect, words []*model.Word) bool {
	for _, w := range words {
		if both := r.Intersect(w.Rect).Area(); both > 0.3*min(r.Area(), w.Area()) {
			return true
		}
	}
	return false
}

// errNoText returns the error for a document without text, with advice.
func (e *Engine) errNoText() error {
	if e.recognizer == nil {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil,
			"the document has no text layer: it seems to be scanned; to recognise its text the server needs Tesseract (Debian package tesseract-ocr)")
	}
	return fileops.Fail(fileops.ErrUnsupportedInput, nil, "no text was found in the document, neither as such nor in its pictures")
}
