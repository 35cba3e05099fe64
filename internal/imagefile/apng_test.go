package imagefile

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"slices"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// moving returns frames in which a transparent square moves over a gradient.
func moving(n int) Animation {
	a := Animation{Pix: image.NewNRGBA(image.Rect(0, 0, 20, 12*n)), Plays: 3}
	for i := range n {
		for y := range 12 {
			for x := range 20 {
				a.Pix.SetNRGBA(x, 12*i+y, color.NRGBA{byte(12 * x), byte(20 * y), 90, 255})
			}
		}
		draw.Draw(a.Pix, image.Rect(2*i, 12*i+3, 2*i+4, 12*i+7), image.Transparent, image.Point{}, draw.Src)
		a.Delays = append(a.Delays, 40+10*i)
	}
	return a
}

func TestAPNG(t *testing.T) {
	t.Parallel()
	a := moving(5)
	b, err := a.EncodeAPNG(t.Context())
	systest.NoError(t, err)
	if n := PNGFrames(b); n != 5 {
		t.Errorf("%d frames", n)
	}
	if _, err := ReadPNG(b); err != nil {
		t.Errorf("as a still picture: %v", err)
	}
	got, err := DecodeAPNG(t.Context(), b, 5*20*12)
	systest.NoError(t, err)
	if !bytes.Equal(got.Pix.Pix, a.Pix.Pix) || !slices.Equal(got.Delays, a.Delays) || got.Plays != a.Plays {
		t.Error("the animation differs after encoding and decoding")
	}
	for i := 0; i < len(b); i += 7 {
		for _, bad := range [][]byte{b[:i], slices.Concat(b[:i], []byte{b[i] ^ 0xff}, b[i+1:])} {
			_, _ = DecodeAPNG(t.Context(), bad, 1<<20) // does not panic
		}
	}
	if _, err := DecodeAPNG(t.Context(), b, 5*20*12-1); !errors.Is(err, ErrPixels) {
		t.Errorf("more pixels than allowed: %v", err)
	}
	if _, err := DecodeAPNG(t.Context(), b[:len(b)-200], 1<<20); err == nil {
		t.Error("a truncated animation was decoded")
	}
}
