//go:build cgo

package imageops_test

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
)

func TestWatermarkConformance(t *testing.T) {
	fileopstest.Run(t, fileopstest.Suite{
		Action: engine(t).Watermark(), Args: fileops.Args{"text": "W"}, Formats: []format.Format{format.JPG, format.PNG, format.GIF, format.BMP},
		Check: func(t *testing.T, in []*fileops.File, _ fileops.Args, out []*fileops.File) {
			if d := difference(decoded(t, in[0]), decoded(t, out[0])); d < 0.2 || d > 60 {
				t.Errorf("the picture differs by %.1f", d)
			}
		},
	})
}

// changedBox returns the box around the pixels that differ visibly.
func changedBox(a, b image.Image) (box image.Rectangle) {
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			p, q := onWhite(a.At(x, y)), onWhite(b.At(x, y))
			for k := range 3 {
				if d := p[k] - q[k]; d > 10 || d < -10 {
					box = box.Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
	}
	return box
}

// The text is where it was asked for, as large and as strong as asked for, and nowhere else.
func TestWatermark(t *testing.T) {
	t.Parallel()
	src := image.NewNRGBA(image.Rect(0, 0, 300, 200))
	for i := range src.Pix {
		src.Pix[i] = 100
		if i%4 == 3 {
			src.Pix[i] = 255
		}
	}
	in := fileops.Bytes("in.png", encodePNG(t, src))
	for _, tt := range []struct {
		args   fileops.Args
		within image.Rectangle
		width  [2]int
	}{
		{fileops.Args{"position": "top-left"}, image.Rect(0, 0, 100, 70), [2]int{60, 85}},
		{fileops.Args{"position": "bottom-right", "scale": 0.5}, image.Rect(130, 60, 300, 200), [2]int{130, 165}},
		{fileops.Args{"position": "center"}, image.Rect(50, 40, 250, 160), [2]int{160, 195}},
		{fileops.Args{"position": "bottom"}, image.Rect(100, 130, 200, 200), [2]int{60, 85}},
		{fileops.Args{"position": "diagonal", "opacity": 1}, image.Rect(30, 20, 270, 180), [2]int{120, 200}},
		{fileops.Args{"position": "tile"}, image.Rect(0, 0, 300, 200), [2]int{180, 300}},
	} {
		tt.args["text"] = "<b> & co"
		m := decoded(t, one(t, engine(t).Watermark(), tt.args, in))
		box := changedBox(src, m)
		if !box.In(tt.within) || box.Dx() < tt.width[0] || box.Dx() > tt.width[1] {
			t.Errorf("%v: pixels in %v changed", tt.args, box)
		}
	}
	brightest := func(opacity float64) (v uint8) {
		m := decoded(t, one(t, engine(t).Watermark(), fileops.Args{"text": "MMM", "opacity": opacity}, in))
		for y := range 200 {
			for x := range 300 {
				v = max(v, color.GrayModel.Convert(m.At(x, y)).(color.Gray).Y)
			}
		}
		return v
	}
	if a, b := brightest(0.5), brightest(1); a < 120 || a > 200 || b != 255 {
		t.Errorf("brightness %d and %d", a, b)
	}
}

// Every frame has the text, and transparent pixels stay so elsewhere.
func TestWatermarkFrames(t *testing.T) {
	t.Parallel()
	args := fileops.Args{"text": "MM", "opacity": 1, "scale": 0.9}
	before, _ := frames(t, moving(t))
	after, delays := frames(t, one(t, engine(t).Watermark(), args, moving(t)))
	if len(after) != 4 || delays != "50 100 150 200" {
		t.Fatalf("%d frames, delays %s", len(after), delays)
	}
	for i := range after {
		if box := changedBox(before[i], after[i]); box.Dx() < 25 {
			t.Errorf("frame %d: %v", i, box)
		}
	}
	m := decoded(t, one(t, engine(t).Watermark(), fileops.Args{"text": "MM", "position": "bottom"}, fileops.Bytes("in.png", encodePNG(t, withHole()))))
	if _, _, _, a := m.At(5, 5).RGBA(); a != 0 {
		t.Errorf("alpha is %d", a>>8)
	}
}

func TestWatermarkErrors(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, photo(40, 30)))
	for _, args := range []fileops.Args{nil, {"text": ""}, {"text": " \n "}, {"text": "a", "opacity": 0}, {"text": "a", "position": "outside"}, {"text": "\u200b"}} {
		if _, err := run(t.Context(), engine(t).Watermark(), args, in); !errors.Is(err, fileops.ErrParameter) {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, n := range []int{1, 2, 5} { // no room for a text
		tiny := fileops.Bytes("in.png", encodePNG(t, photo(n, n)))
		if out, err := run(t.Context(), engine(t).Watermark(), fileops.Args{"text": fmt.Sprint("long text ", n)}, tiny); !errors.Is(err, fileops.ErrParameter) {
			t.Errorf("%d pixels: %v, %v", n, out, err)
		}
	}
}
