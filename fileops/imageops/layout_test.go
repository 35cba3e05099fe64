package imageops_test

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// flag returns a picture of three upright stripes in a transparent frame.
func flag() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, 120, 60))
	for i, c := range []color.NRGBA{{200, 0, 0, 255}, {0, 200, 0, 255}, {0, 0, 200, 255}} {
		draw.Draw(m, image.Rect(6+36*i, 6, 42+36*i, 54), image.NewUniform(c), image.Point{}, draw.Src)
	}
	return m
}

// near compares a pixel with a colour.
func near(m image.Image, x, y int, want color.NRGBA) error {
	got := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
	d := func(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
	if want.A == 0 && got.A <= 8 || max(d(got.R, want.R), d(got.G, want.G), d(got.B, want.B), d(got.A, want.A)) <= 24 {
		return nil
	}
	return fmt.Errorf("pixel %d, %d is %v, want %v", x, y, got, want)
}

func TestFit(t *testing.T) {
	t.Parallel()
	red, green, blue := color.NRGBA{200, 0, 0, 255}, color.NRGBA{0, 200, 0, 255}, color.NRGBA{0, 0, 200, 255}
	orange, clear, white := color.NRGBA{255, 165, 0, 255}, color.NRGBA{}, color.NRGBA{255, 255, 255, 255}
	type pixel struct {
		x, y int
		c    color.NRGBA
	}
	for _, tt := range []struct {
		name   string
		to     string
		args   fileops.Args
		w, h   int
		pixels []pixel
	}{
		{"inside does not enlarge", "tiff", fileops.Args{"width": 500, "height": 500}, 120, 60, []pixel{{20, 30, red}, {1, 1, clear}}},
		{"inside", "tiff", fileops.Args{"width": 60, "height": 60, "fit": "inside"}, 60, 30, []pixel{{10, 15, red}, {50, 15, blue}}},
		{"fill", "tiff", fileops.Args{"width": 60, "height": 120, "fit": "fill"}, 60, 120, []pixel{{10, 60, red}, {30, 60, green}, {50, 60, blue}}},
		{"cover", "tiff", fileops.Args{"width": 50, "height": 50, "fit": "cover"}, 50, 50, []pixel{{25, 25, green}, {4, 25, red}, {46, 25, blue}}},
		{"cover enlarges", "tiff", fileops.Args{"width": 240, "height": 240, "fit": "crop"}, 240, 240, []pixel{{120, 120, green}, {4, 120, red}}},
		{"contain", "tiff", fileops.Args{"width": 100, "height": 100, "fit": "contain"}, 100, 100, []pixel{{50, 50, green}, {50, 5, clear}, {50, 95, clear}}},
		{"contain on white", "jpg", fileops.Args{"width": 100, "height": 100, "fit": "contain"}, 100, 100, []pixel{{50, 50, green}, {50, 5, white}}},
		{"contain on a colour", "tiff", fileops.Args{"width": 100, "height": 100, "fit": "contain", "background": "#ffa500"}, 100, 100, []pixel{{50, 50, green}, {50, 5, orange}, {1, 27, orange}}},
		{"background", "jpg", fileops.Args{"background": "orange"}, 120, 60, []pixel{{60, 30, green}, {2, 2, orange}}},
		{"background where there could be none", "tiff", fileops.Args{"background": "orange"}, 120, 60, []pixel{{60, 30, green}, {2, 2, orange}}},
		{"bitmap", "bmp", fileops.Args{"background": "#ffa500", "width": 90, "height": 90, "fit": "contain"}, 90, 90, []pixel{{45, 45, green}, {2, 2, orange}}},
		{"one side only", "tiff", fileops.Args{"width": 60, "fit": "cover"}, 60, 30, []pixel{{10, 15, red}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.args["convert_to"] = tt.to
			m := looked(t, one(t, engine(t).Convert(), tt.args, fileops.Bytes("in.png", encodePNG(t, flag()))))
			if s := m.Bounds().Size(); s != image.Pt(tt.w, tt.h) {
				t.Fatalf("the result has %v pixels", s)
			}
			for _, p := range tt.pixels {
				systest.Check(t, near(m, p.x, p.y, p.c))
			}
		})
	}
}

// TestFitOfGray checks that a gray picture becomes RGB on a coloured background.
func TestFitOfGray(t *testing.T) {
	t.Parallel()
	for name, img := range map[string]image.Image{"8": image.NewGray(image.Rect(0, 0, 40, 20)), "16": image.NewGray16(image.Rect(0, 0, 40, 20))} {
		for background, c := range map[string]color.NRGBA{"teal": {0, 128, 128, 255}, "silver": {192, 192, 192, 255}} {
			args := fileops.Args{"convert_to": "tiff", "width": 40, "height": 40, "fit": "contain", "background": background}
			m := looked(t, one(t, engine(t).Convert(), args, fileops.Bytes("in.png", encodePNG(t, img))))
			if err := near(m, 20, 3, c); err != nil {
				t.Errorf("%s bits: %v", name, err)
			}
			if err := near(m, 20, 20, color.NRGBA{0, 0, 0, 255}); err != nil {
				t.Errorf("%s bits: %v", name, err)
			}
		}
	}
}

func TestBackgroundParameter(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, flag()))
	for _, bad := range []string{"mauve", "#12345", "#gggggg", "url(x)", "red;"} {
		if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "jpg", "background": bad}, in); !isParamError(err) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	// The limits of an input also apply to a result.
	_, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "tiff", "width": 65000, "height": 65000, "fit": "fill"}, in)
	if !errors.Is(err, fileops.ErrLimit) {
		t.Error(err)
	}
}

func isParamError(err error) bool {
	var p *fileops.ParamError
	return errors.As(err, &p)
}
