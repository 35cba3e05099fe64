package pdfread

import (
	"context"
	"fmt"
	"image"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
)

// A Recognizer reads the text in pictures of pages.
type Recognizer interface {
	// Language describes the parameter by which a caller says in which
	// language the text is.
	Language() fileops.Param

	// Recognize reads a page drawn with dpi dots per inch. language is a
	// value of the parameter. A page without text is no error.
	Recognize(ctx context.Context, img *image.Gray, dpi float64, language string) (*Recognized, error)
}

// Recognized is the text of a page. Places are in pixels from the top left corner
// of the page once it is turned upright.
type Recognized struct {
	Turn  int // quarter turns counterclockwise that make the page upright
	Words []RecognizedWord
}

// A RecognizedWord is text without space.
type RecognizedWord struct {
	Text                     string
	Left, Top, Right, Bottom float64
	Base                     float64 // y of the base line of its line
	Size                     float64 // of the font (1 em)
}

// Limits of recognition.
const (
	maxScans   = 500  // pages of one document
	scanPixels = 30e6 // of one page; a larger one is drawn with fewer dots per inch
	scanDPI    = 300  // what recognisers are made for
)

// A scan is a page whose text must be recognised.
type scan struct {
	img  *image.Gray
	dpi  float64
	keep bool          // the words that the page has are good
	done chan struct{} // closed when the words of the sheet are complete
}

// Which pages are scans: those with at most so many characters of text, if a
// picture covers most of them.
const (
	stampChars = 60
	scanCover  = 0.6
)

// scan draws the page if its text must be recognised, and returns nil otherwise.
func (x *extractor) scan(p *page, s *sheet) *scan {
	if math.Abs(s.w-p.w) > 0.1 || math.Abs(s.h-p.h) > 0.1 {
		return nil // turned, so there is text that says what is up
	}
	chars, bad := countText(s.words)
	garbage := 3*bad > chars
	if chars > stampChars && !garbage {
		return nil
	}
	w := &walker{x: x, page: p, sheet: s}
	cover := w.cover()
	switch {
	case garbage && chars > 0:
	case chars == 0 && cover.objects > 0:
	case cover.part < scanCover:
		return nil
	}
	dpi := float64(scanDPI)
	if native := cover.dpi; cover.part >= 0.5 && native > 0 {
		switch { // pictures are best read as they are
		case native >= 150 && native <= 450:
			dpi = native
		case native < 150: // more than three times as many gain nothing
			dpi = min(dpi, max(3*native, 150))
		}
	}
	dpi = min(dpi, 72*math.Sqrt(scanPixels/(p.w*p.h)))
	sc := &scan{dpi: dpi, keep: !garbage, done: make(chan struct{})}
	width, height := p.pixels(dpi)
	err := p.draw(width, height, func(pix []byte) error {
		sc.img = image.NewGray(image.Rect(0, 0, width, height))
		for i := range sc.img.Pix {
			c := pix[4*i : 4*i+3 : 4*i+3] // luma of ITU-R BT.601
			sc.img.Pix[i] = byte((299*int(c[0]) + 587*int(c[1]) + 114*int(c[2])) / 1000)
		}
		return nil
	})
	if err != nil || sc.img == nil {
		return nil // the instance knows why
	}
	return sc
}

// countText counts the characters of words, and those that no text has: of fonts
// whose code is unknown.
func countText(words []*word) (chars, bad int) {
	for _, w := range words {
		for _, s := range w.spans {
			for _, r := range s.text {
				chars++
				if r == utf8.RuneError || unicode.Is(unicode.Co, r) || unicode.IsControl(r) || !unicode.IsGraphic(r) {
					bad++
				}
			}
		}
	}
	return chars, bad
}

// A cover tells how much of a page its largest picture covers.
type cover struct {
	part    float64 // of the page
	dpi     float64 // of the picture
	objects int
}

// cover looks at the pictures of a page.
func (w *walker) cover() (c cover) {
	in := w.x.in
	var look func(obj uint64, m matrix, depth int)
	look = func(obj uint64, m matrix, depth int) {
		c.objects++
		switch in.int("FPDFPageObj_GetType", obj) {
		case objectImage:
			box, ok := w.bounds(obj, m)
			if part := box.area() / (w.sheet.w * w.sheet.h); ok && part > c.part {
				c.part, c.dpi = part, 0
				if in.ok("FPDFImageObj_GetImageMetadata", obj, w.page.ptr, in.arg(0)) {
					pixels := float64(uint32(in.outInt(0))) * float64(uint32(in.outFieldAt(4)))
					c.dpi = 72 * math.Sqrt(pixels/max(box.area(), 1))
				}
			}
		case objectForm:
			if depth >= maxDepth || !in.ok("FPDFPageObj_GetMatrix", obj, in.arg(0)) {
				return
			}
			inner := in.matrixOut().then(m)
			for i := range in.int("FPDFFormObj_CountObjects", obj) {
				if in.err != nil || c.objects > maxObjects {
					return
				}
				look(in.call("FPDFFormObj_GetObject", obj, uint64(i)), inner, depth+1)
			}
		}
	}
	view := w.page.view()
	for i := range in.int("FPDFPage_CountObjects", w.page.ptr) {
		if in.err != nil || c.objects > maxObjects {
			break
		}
		look(in.call("FPDFPage_GetObject", w.page.ptr, uint64(i)), view, 0)
	}
	return c
}

// outFieldAt returns the 32-bit number at a byte offset in the scratch space.
func (in *instance) outFieldAt(offset uint32) uint32 {
	v, _ := in.module.Memory().ReadUint32Le(in.out + offset)
	return v
}

// A recognition reads the scanned pages of one document, several at the same
// time, while pdfium goes on with the pages behind them.
type recognition struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	with     Recognizer
	language string
	font     *font // of all recognised text: which one it is, nobody knows

	slots chan struct{} // one for each picture in memory
	wg    sync.WaitGroup
	found atomic.Int64 // words
	count int          // pages
}

// newRecognition returns what reads the scanned pages for a job, nil if the
// engine cannot.
func (e *Engine) newRecognition(ctx context.Context, job *fileops.Job) *recognition {
	if e.recognizer == nil {
		return nil
	}
	r := &recognition{
		with: e.recognizer, language: job.Params.Get(e.recognizer.Language().Name),
		font: &font{name: "Times New Roman"}, slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

// add starts to read a page. It waits while there are enough pictures of pages in
// memory.
func (r *recognition) add(s *sheet) error {
	if s.scan == nil {
		return nil
	}
	if r.count++; r.count > maxScans {
		return fileops.Fail(fileops.ErrLimit, nil,
			"the document has more than %d scanned pages; choose a part of them with the parameter pages", maxScans)
	}
	select {
	case r.slots <- struct{}{}:
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
	sc := s.scan
	r.wg.Go(func() {
		defer func() { <-r.slots }()
		if err := r.read(s); err != nil {
			r.cancel(err)
			return
		}
		sc.img = nil
		close(sc.done)
	})
	return nil
}

func (r *recognition) read(s *sheet) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fileops.Fail(fileops.ErrEngine, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "")
		}
	}()
	got, err := r.with.Recognize(r.ctx, s.scan.img, s.scan.dpi, r.language)
	if err != nil {
		return fmt.Errorf("page %d: %w", s.number, err)
	}
	r.found.Add(int64(len(got.Words)))
	s.take(got, r.font)
	return nil
}

// wait waits until the words of a page are complete.
func (r *recognition) wait(s *sheet) error {
	if s.scan == nil {
		return nil
	}
	select {
	case <-s.scan.done:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// stop ends what is still going on and waits for that.
func (r *recognition) stop() {
	if r != nil {
		r.cancel(context.Canceled)
		r.wg.Wait()
	}
}

// take makes the recognised words those of the sheet.
func (s *sheet) take(got *Recognized, f *font) {
	if len(got.Words) == 0 {
		return // it stays a picture
	}
	if !s.scan.keep {
		s.words = nil
	}
	if got.Turn%4 != 0 { // nothing else that was found is where it should be
		s.words, s.pictures, s.rules, s.fills, s.drawings, s.links = nil, nil, nil, nil, nil, nil
		if got.Turn%2 == 1 {
			s.w, s.h = s.h, s.w
		}
	}
	known := s.words
	var last *word
	k := 72 / s.scan.dpi
	for i := range got.Words {
		g := &got.Words[i]
		text := strings.ToValidUTF8(g.Text, "")
		if text == "" {
			continue
		}
		w := &word{
			rect: rect{g.Left * k, g.Top * k, g.Right * k, g.Bottom * k},
			base: g.Base * k, size: max(2, math.Round(2*g.Size*k)/2), rtl: strings.ContainsFunc(text, isRTL),
		}
		if overlapsAny(w.rect, known) {
			continue // a stamp that is text anyway
		}
		first, _ := utf8.DecodeRuneInString(text)
		w.glued = last != nil && last.base == w.base && withoutSpaces(lastRune(last.text())) && withoutSpaces(first)
		w.spans = []span{{text, style{font: f, size: w.size}}}
		s.words = append(s.words, w)
		last = w
	}
	// The page itself, as a picture, is in the way of its text.
	page := s.w * s.h
	kept := s.pictures[:0]
	for _, p := range s.pictures {
		over := 0
		for _, w := range s.words {
			if p.contains(w.cx(), w.cy()) {
				over++
			}
		}
		if part := p.area() / page; over == 0 || part < 0.25 || part < 0.5 && over <= 12 {
			kept = append(kept, p)
		}
	}
	s.pictures = kept
}

func overlapsAny(r rect, words []*word) bool {
	for _, w := range words {
		if both := r.intersect(w.rect).area(); both > 0.3*min(r.area(), w.area()) {
			return true
		}
	}
	return false
}

// errNoText tells that a document has no text, with what to do about it.
func (e *Engine) errNoText() error {
	if e.recognizer == nil {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil,
			"the document has no text layer: it seems to be scanned; to recognise its text the server needs Tesseract (Debian package tesseract-ocr)")
	}
	return fileops.Fail(fileops.ErrUnsupportedInput, nil, "no text was found in the document, neither as such nor in its pictures")
}
