package extract

import (
	"math"
	"slices"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

const (
	patternPart  = 0.005 // least part of a page that a pattern covers
	patternScale = 0.5   // pixels per point
	patternFills = 100   // with more white fills a page is a drawing
	patternSteps = 48    // most points of a fill that are looked at, in each direction
)

// patterns finds fills that are white according to pdfium, but not on the drawn page.
// pdfium reports shadings of paths as white. Their areas are lost in flowing text.
func (w *walker) patterns() {
	in, s := w.x.In, w.sheet
	white := func(f model.Fill) bool { return f.Colour == 0xffffff && f.Area() > patternPart*s.W*s.H }
	n := 0
	for _, f := range s.Fills {
		if white(f) {
			n++
		}
	}
	if n == 0 || n > patternFills {
		return
	}
	scale := min(patternScale, math.Sqrt(shotPixels/(s.W*s.H)))
	bitmap, at, width, height := w.render(scale)
	if bitmap == 0 {
		return
	}
	defer in.Call("FPDFBitmap_Destroy", bitmap)
	pix := in.Bytes(at, 4*width*height)
	if in.Err != nil {
		return
	}
	coloured := func(x, y float64) bool {
		i := 4 * (min(int(y*scale), height-1)*width + min(int(x*scale), width-1))
		return min(pix[i], pix[i+1], pix[i+2]) < 0xf0
	}
	s.Fills = slices.DeleteFunc(s.Fills, func(f model.Fill) bool {
		if !white(f) || !w.differs(f, coloured) {
			return false
		}
		s.Lost = append(s.Lost, f.Rect)
		return true
	})
}

// differs reports whether most of a fill is coloured, where nothing that the walker
// knows was drawn over it.
func (w *walker) differs(f model.Fill, coloured func(x, y float64) bool) bool {
	s := w.sheet
	over := slices.Concat(s.Lost, w.curves)
	for _, p := range s.Pictures {
		over = append(over, p.Rect)
	}
	for _, g := range s.Fills {
		if g.Order > f.Order {
			over = append(over, g.Rect)
		}
	}
	step := max(1/patternScale, f.W()/patternSteps, f.H()/patternSteps)
	seen, differ := 0, 0
	for y := f.T + step/2; y < f.B; y += step {
		for x := f.L + step/2; x < f.R; x += step {
			if slices.ContainsFunc(over, func(r geom.Rect) bool { return r.Contains(x, y) }) {
				continue
			}
			seen++
			if coloured(x, y) {
				differ++
			}
		}
	}
	return seen > 0 && 2*differ > seen
}
