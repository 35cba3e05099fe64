package imagefile

import (
	"errors"
	"image"
	"image/color"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// The samples of an opaque picture are its colours, also of a part of a larger picture. A picture that is
// not opaque has none.
func TestFromImage(t *testing.T) {
	t.Parallel()
	whole := image.NewNRGBA(image.Rect(0, 0, 9, 7))
	for y := range 7 {
		for x := range 9 {
			whole.SetNRGBA(x, y, color.NRGBA{byte(x), byte(y), byte(x * y), 255})
		}
	}
	for _, r := range []image.Rectangle{whole.Rect, image.Rect(2, 1, 8, 6), image.Rect(8, 6, 9, 7)} {
		part := whole.SubImage(r)
		s, err := FromImage(part)
		systest.NoError(t, err)
		if s.Width != r.Dx() || s.Height != r.Dy() || s.Components != 3 || len(s.Pix) != 3*r.Dx()*r.Dy() {
			t.Fatalf("%v: %d × %d, %d components, %d bytes", r, s.Width, s.Height, s.Components, len(s.Pix))
		}
		for y := range r.Dy() {
			for x := range r.Dx() {
				c := whole.NRGBAAt(r.Min.X+x, r.Min.Y+y)
				if i := 3 * (y*r.Dx() + x); s.Pix[i] != c.R || s.Pix[i+1] != c.G || s.Pix[i+2] != c.B {
					t.Fatalf("%v: pixel %d, %d is %v, want %v", r, x, y, s.Pix[i:i+3], c)
				}
			}
		}
	}
	whole.SetNRGBA(4, 4, color.NRGBA{1, 2, 3, 254})
	if _, err := FromImage(whole); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("not opaque: %v", err)
	}
}
