package imageops

import (
	"image/color"
	"math"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/colour"
)

// Values of the parameter fit.
const (
	fitInside  = "inside"  // within the box, in proportion, never larger than it was
	fitCover   = "cover"   // all of the box, in proportion; what stands out is cut off
	fitContain = "contain" // within the box, in proportion; the rest is background
	fitFill    = "fill"    // all of the box, out of proportion
)

// A layout says how large a picture becomes.
type layout struct {
	width, height int // to scale to
	cropX, cropY  int // then cut off on the left and on top, ...
	padX, padY    int // or put there, ...
	outW, outH    int // to get this size
}

// exact tells whether a plan names the size of the result, not just a limit.
func (t plan) exact() bool {
	return t.width > 0 && t.height > 0 && t.fit != "" && t.fit != fitInside
}

// layout returns how a picture of a size is laid out.
func (t plan) layout(w, h int) layout {
	scaled := func(n int, s float64) int { return max(1, int(math.Round(float64(n)*s))) }
	if !t.exact() {
		s := fit(w, h, t, false)
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

// opaque tells whether the target of a plan has no transparency.
func opaque(t plan) bool {
	return t.to == format.JPG || t.to == format.BMP || t.to == format.TIFF && t.tiff == "jpeg"
}

// backdrop is the colour that transparency is laid on.
func (t plan) backdrop() color.NRGBA {
	if t.background != nil {
		return *t.background
	}
	return colour.White
}

// padding is the colour around a contained picture.
func (t plan) padding() color.NRGBA {
	if t.background == nil && !opaque(t) {
		return color.NRGBA{}
	}
	return t.backdrop()
}
