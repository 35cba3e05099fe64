//go:build cgo

package imageops_test

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"strings"
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

// logo returns a green square with a transparent right half.
func logo(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w / 2 {
			m.SetNRGBA(x, y, color.NRGBA{G: 255, A: 255})
		}
	}
	return m
}

// A picture is drawn where it was asked for, as large as asked for, in its colours and
// with its transparency.
func TestWatermarkPicture(t *testing.T) {
	t.Parallel()
	src := image.NewNRGBA(image.Rect(0, 0, 300, 200))
	for i := range src.Pix {
		src.Pix[i] = 200
		if i%4 == 3 {
			src.Pix[i] = 255
		}
	}
	in := fileops.Bytes("in.png", encodePNG(t, src))
	mark := fileops.Bytes("logo.png", encodePNG(t, logo(40, 20)))
	for _, tt := range []struct {
		args fileops.Args
		want image.Rectangle // of the changed pixels, give or take 2
	}{
		{fileops.Args{"position": "top-left"}, image.Rect(6, 6, 43, 43)},
		{fileops.Args{"position": "bottom-right", "scale": 0.5}, image.Rect(144, 119, 219, 194)},
		{fileops.Args{}, image.Rect(60, 55, 150, 145)},
		{fileops.Args{"position": "tile"}, image.Rect(18, 9, 281, 200)},
	} {
		tt.args["image_key"] = mark
		m := decoded(t, one(t, engine(t).Watermark(), tt.args, in))
		box := changedBox(src, m)
		for _, d := range []int{box.Min.X - tt.want.Min.X, box.Min.Y - tt.want.Min.Y, box.Max.X - tt.want.Max.X, box.Max.Y - tt.want.Max.Y} {
			if d < -2 || d > 2 {
				t.Errorf("%v: pixels in %v changed, want %v", tt.args["position"], box, tt.want)
				break
			}
		}
	}
	for _, opacity := range []float64{0.5, 1} {
		m := decoded(t, one(t, engine(t).Watermark(), fileops.Args{"image_key": mark, "opacity": opacity, "scale": 1}, in))
		got, want := onWhite(m.At(60, 100)), [3]int{200, 200, 200}
		for i, v := range []float64{0, 255, 0} {
			want[i] = int(v*opacity + 200*(1-opacity))
		}
		for i := range got {
			if d := int(got[i]) - want[i]; d < -3 || d > 3 {
				t.Errorf("opacity %g: colour %v, want %v", opacity, got, want)
				break
			}
		}
	}
}

// All kinds of pictures take all kinds of marks.
func TestWatermarkPictureKinds(t *testing.T) {
	t.Parallel()
	mark := fileops.Bytes("logo.png", encodePNG(t, logo(40, 20)))
	gray16 := image.NewGray16(image.Rect(0, 0, 60, 60))
	for i := range gray16.Pix {
		gray16.Pix[i] = 0xc0
	}
	gray := image.NewGray(image.Rect(0, 0, 60, 60))
	for i := range gray.Pix {
		gray.Pix[i] = 0xc0
	}
	for name, m := range map[string]image.Image{"gray": gray, "deep": gray16, "hole": withHole()} {
		out := decoded(t, one(t, engine(t).Watermark(), fileops.Args{"image_key": mark, "opacity": 1, "scale": 1}, fileops.Bytes("in.png", encodePNG(t, m))))
		b := out.Bounds()
		r, g, bl, a := out.At(b.Dx()/4, b.Dy()/2).RGBA()
		if a != 0xffff || name == "hole" && (r>>8 > 3 || g>>8 < 252 || bl>>8 > 3) || name != "hole" && (r != g || g>>8 > 220) {
			t.Errorf("%s: colour %d %d %d %d", name, r>>8, g>>8, bl>>8, a>>8)
		}
	}
	in := fileops.Bytes("in.png", encodePNG(t, photo(80, 60)))
	svg := fileops.Bytes("logo.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="10" height="10" fill="#f00"/></svg>`))
	for _, mark := range []*fileops.File{svg, fileopstest.Sample(t, format.JPG), fileopstest.Sample(t, format.GIF), fileopstest.Sample(t, format.BMP)} {
		out := decoded(t, one(t, engine(t).Watermark(), fileops.Args{"image_key": mark, "opacity": 1}, in))
		if box := changedBox(decoded(t, in), out); box.Dx() < 20 {
			t.Errorf("%s: %v", mark.Name(), box)
		}
	}
	after, _ := frames(t, one(t, engine(t).Watermark(), fileops.Args{"image_key": mark, "opacity": 1, "scale": 0.9}, moving(t)))
	before, _ := frames(t, moving(t))
	for i := range after {
		if box := changedBox(before[i], after[i]); box.Dx() < 10 {
			t.Errorf("frame %d: %v", i, box)
		}
	}
}

func TestWatermarkPictureErrors(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, photo(40, 30)))
	good := encodePNG(t, logo(40, 20))
	for what, args := range map[string]fileops.Args{
		"both":      {"text": "a", "image_key": fileops.Bytes("a.png", good)},
		"not ours":  {"image_key": fileops.Bytes("a.pdf", good)},
		"misnamed":  {"image_key": fileops.Bytes("a.jpg", good)},
		"truncated": {"image_key": fileops.Bytes("a.png", good[:len(good)/2])},
		"empty":     {"image_key": fileops.Bytes("a.png", nil)},
		"a key":     {"image_key": "0123"},
	} {
		_, err := run(t.Context(), engine(t).Watermark(), args, in)
		if !errors.Is(err, fileops.ErrParameter) || !strings.Contains(fileops.Message(err), "image_key") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
