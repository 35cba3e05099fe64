package imageops

import (
	"image/color"
	"math"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/colour"
)

// Values of the parameter fit.
const (
	fitInside  = "inside"  // within the box, keeps proportions, never enlarges
	fitCover   = "cover"   // fills the box, keeps proportions, crops the rest
	fitContain = "contain" // within the box, keeps proportions, pads the rest
	fitFill    = "fill"    // fills the box, ignores proportions
)

// A layout describes the steps that give a picture its final size.
type layout struct {
	width, height int // scaled size
	cropX, cropY  int // pixels to crop at the left and top,
	padX, padY    int // or padding at the left and top
	outW, outH    int // final size
}

// exact reports whether a plan defines the exact size of the result, not only a
// maximum.
func (t plan) exact() bool {
	return t.width > 0 && t.height > 0 && t.fit != "" && t.fit != fitInside
}

// layout returns the layout of a picture of w × h pixels.
func (t plan) layout(w, h int) layout {
	scaled := func(n int, s float64) int { return max(1, int(math.Round(float64(n)*s))) }
	if !t.exact() {
		s := fit(w, h, t)
		l := layout{width: scaled(w, s), height: scaled(h, s)}
		l.outW, l.outH = l.width, l.height
		return l
	}
	l := layout{width: t.width, height: t.height, outW: t.width, outH: t.height}
	across, down := float64(t.width)/float64(w), float64(t.height)/float64(h)
	switch t.fit {
	case fitCover:
		s := max(across, down)
		l.width, l.height = max(l.outW, scaled(w, s)), max(l.outH, scaled(h, s))
		l.cropX, l.cropY = (l.width-l.outW)/2, (l.height-l.outH)/2
	case fitContain:
		s := min(across, down)
		l.width, l.height = min(l.outW, scaled(w, s)), min(l.outH, scaled(h, s))
		l.padX, l.padY = (l.outW-l.width)/2, (l.outH-l.height)/2
	}
	return l
}

// opaque reports whether the target of a plan lacks transparency.
func opaque(t plan) bool {
	return t.to == format.JPG || t.to == format.BMP || t.to == format.PPM || t.to == format.TIFF && t.tiff == "jpeg"
}

// backdrop returns the colour behind transparency.
func (t plan) backdrop() color.NRGBA {
	if t.background != nil {
		return *t.background
	}
	return colour.White
}

// padding returns the colour around a contained picture.
func (t plan) padding() color.NRGBA {
	if t.background == nil && !opaque(t) {
		return color.NRGBA{}
	}
	return t.backdrop()
}
