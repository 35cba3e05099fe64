package extract

import (
	"image"
	"math"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// How pages are rendered for text recognition.
const (
	scanPixels = 30e6 // of one page; a larger page gets a lower resolution
	scanDPI    = 300  // the resolution that recognizers expect
)

// A pixel is ink if a component is below inkLevel, and has a colour if its components
// differ by more than vivid. Old paper is paler.
const (
	inkLevel = 128
	vivid    = 112
)

// A page is a scan if it has at most this many characters of text and a picture
// covers most of it.
const (
	stampChars = 60
	scanCover  = 0.6
)

// Scan renders the page if its text must be recognized. Otherwise it returns
// nil.
func (x *Extractor) Scan(p *pdfium.Page, s *model.Sheet) *model.Scan {
	if math.Abs(s.W-p.W) > 0.1 || math.Abs(s.H-p.H) > 0.1 {
		return nil // rotated, so the page has text that defines the orientation
	}
	chars, _ := countText(s.Words)
	garbage, misread := s.Unlikely, misread(s)
	if chars > stampChars && !garbage && !misread {
		return nil
	}
	w := &walker{x: x, page: p, sheet: s}
	cover := w.cover()
	if misread && !garbage {
		if cover.part < scanCover {
			return nil
		}
		garbage = true
	}
	switch {
	case garbage && chars > 0:
	case chars == 0 && cover.objects > 0:
	case cover.part < scanCover:
		return nil
	}
	return drawScan(p, cover, !garbage)
}

// ScanLayer renders the page if recognized text is to be added to it: if it has at most
// a stamp as text, or, with force, if anything is visible. Otherwise it returns nil.
func (x *Extractor) ScanLayer(p *pdfium.Page, s *model.Sheet, force bool) *model.Scan {
	chars, _ := countText(s.Words)
	if chars > stampChars && !force {
		return nil
	}
	w := &walker{x: x, page: p, sheet: s}
	cover := w.cover()
	if !force && (chars > 0 || cover.objects == 0) && cover.part < scanCover {
		return nil
	}
	return drawScan(p, cover, !s.Unlikely)
}

// drawScan renders a page at the resolution at which it is recognized best. keep reports
// whether its text is usable. drawScan returns nil if the page cannot be drawn; then the
// instance has the error.
func drawScan(p *pdfium.Page, cover cover, keep bool) *model.Scan {
	dpi := float64(scanDPI)
	if native := cover.dpi; cover.part >= 0.5 && native > 0 {
		switch { // pictures are recognized best at their own resolution
		case native >= 150 && native <= 450:
			dpi = native
		case native < 150: // scaling up more than threefold gains nothing
			dpi = min(dpi, max(3*native, 150))
		}
	}
	dpi = min(dpi, 72*math.Sqrt(scanPixels/(p.W*p.H)))
	sc := &model.Scan{DPI: dpi, Keep: keep, Done: make(chan struct{})}
	width, height := p.Pixels(dpi)
	err := p.Draw(width, height, func(pix []byte) error {
		sc.Img = image.NewGray(image.Rect(0, 0, width, height))
		var ink, coloured int
		for i := range sc.Img.Pix {
			c := pix[4*i : 4*i+3 : 4*i+3] // luma of ITU-R BT.601
			sc.Img.Pix[i] = byte((299*int(c[0]) + 587*int(c[1]) + 114*int(c[2])) / 1000)
			least, most := min(c[0], c[1], c[2]), max(c[0], c[1], c[2])
			if least < inkLevel {
				ink++
			}
			if most-least > vivid {
				coloured++
			}
		}
		sc.Colour = float64(coloured) / float64(max(ink, 1))
		return nil
	})
	if err != nil || sc.Img == nil {
		return nil
	}
	return sc
}

// A cover describes the largest picture of a page.
type cover struct {
	part    float64 // of the page that it covers
	dpi     float64 // of the picture
	objects int
}

// cover finds the largest picture of a page.
func (w *walker) cover() (c cover) {
	in := w.x.In
	var look func(obj uint64, m geom.Matrix, depth int)
	look = func(obj uint64, m geom.Matrix, depth int) {
		c.objects++
		switch in.Int("FPDFPageObj_GetType", obj) {
		case objectImage:
			box, ok := w.bounds(obj, m)
			if part := box.Area() / (w.sheet.W * w.sheet.H); ok && part > c.part {
				c.part, c.dpi = part, 0
				if in.Ok("FPDFImageObj_GetImageMetadata", obj, w.page.Ptr, in.Arg(0)) {
					pixels := float64(uint32(in.OutInt(0))) * float64(in.OutField(4))
					c.dpi = 72 * math.Sqrt(pixels/max(box.Area(), 1))
				}
			}
		case objectForm:
			if depth >= maxDepth || !in.Ok("FPDFPageObj_GetMatrix", obj, in.Arg(0)) {
				return
			}
			inner := in.OutMatrix().Then(m)
			for i := range in.Int("FPDFFormObj_CountObjects", obj) {
				if in.Err != nil || c.objects > maxObjects {
					return
				}
				look(in.Call("FPDFFormObj_GetObject", obj, uint64(i)), inner, depth+1)
			}
		}
	}
	view := w.page.Matrix()
	for i := range in.Int("FPDFPage_CountObjects", w.page.Ptr) {
		if in.Err != nil || c.objects > maxObjects {
			break
		}
		look(in.Call("FPDFPage_GetObject", w.page.Ptr, uint64(i)), view, 0)
	}
	return c
}

// blankDPI is the resolution at which Blank draws a page.
const blankDPI = 36

// Blank reports whether nothing is visible on a page.
func Blank(p *pdfium.Page) bool {
	empty := false
	w, h := p.Pixels(min(blankDPI, 72*math.Sqrt(shotPixels/(p.W*p.H))))
	err := p.Draw(w, h, func(pix []byte) error {
		empty = blank(pix)
		return nil
	})
	return err == nil && empty
}
