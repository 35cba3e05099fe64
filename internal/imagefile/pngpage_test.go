package imagefile

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

func TestPNGIsExact(t *testing.T) {
	t.Parallel()
	page := func(w, h int, at func(x, y int) color.Color) *image.RGBA {
		m := image.NewRGBA(image.Rect(0, 0, w, h))
		for y := range h {
			for x := range w {
				m.Set(x, y, at(x, y))
			}
		}
		return m
	}
	big := page(300, 200, func(x, y int) color.Color { return color.RGBA{uint8(x * 7), uint8(y * 3), uint8(x ^ y), 255} })
	for _, tc := range []struct {
		name, kind string
		img        *image.RGBA
	}{
		{"white", "1-bit", page(33, 5, func(int, int) color.Color { return color.White })},
		{"two colours", "1-bit", page(37, 9, func(x, y int) color.Color { return color.Gray{uint8(255 * ((x + y) % 2))} })},
		{"three colours", "2-bit", page(41, 9, func(x, y int) color.Color { return color.RGBA{uint8(100 * (x % 3)), 10, 20, 255} })},
		{"ten colours", "4-bit", page(41, 9, func(x, y int) color.Color { return color.RGBA{uint8(20 * (x % 10)), 10, 20, 255} })},
		{"200 colours", "8-bit", page(211, 9, func(x, y int) color.Color { return color.RGBA{uint8(x % 200), 10, 20, 255} })},
		{"256 colours", "8-bit", page(512, 9, func(x, y int) color.Color { return color.RGBA{uint8(x % 256), 10, 20, 255} })},
		{"257 colours", "truecolour", page(512, 9, func(x, y int) color.Color { return color.RGBA{uint8(x % 256), 10, uint8(x / 511), 255} })},
		{"grays", "gray", page(256, 20, func(x, y int) color.Color { return color.Gray{uint8(x + y)} })},
		{"colours", "truecolour", big},
		{"one pixel", "1-bit", page(1, 1, func(int, int) color.Color { return color.RGBA{1, 2, 3, 255} })},
		{"part of a picture", "truecolour", big.SubImage(image.Rect(10, 20, 250, 190)).(*image.RGBA)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			systest.NoError(t, WritePNG(&b, tc.img, 150))
			got, err := png.Decode(bytes.NewReader(b.Bytes()))
			systest.NoError(t, err)
			if got.Bounds().Size() != tc.img.Bounds().Size() {
				t.Fatalf("size %v, want %v", got.Bounds().Size(), tc.img.Bounds().Size())
			}
			flat := image.NewRGBA(got.Bounds())
			draw.Draw(flat, flat.Bounds(), got, image.Point{}, draw.Src)
			for y := range got.Bounds().Dy() {
				for x := range got.Bounds().Dx() {
					if a, b := flat.RGBAAt(x, y), tc.img.RGBAAt(tc.img.Rect.Min.X+x, tc.img.Rect.Min.Y+y); a != b {
						t.Fatalf("pixel %d, %d is %v, want %v", x, y, a, b)
					}
				}
			}
			depth := map[string][2]byte{"1-bit": {1, 3}, "2-bit": {2, 3}, "4-bit": {4, 3}, "8-bit": {8, 3}, "gray": {8, 0}, "truecolour": {8, 2}}[tc.kind]
			if head := b.Bytes()[24:26]; [2]byte(head) != depth {
				t.Errorf("depth and type %v, want %v", head, depth)
			}
		})
	}
}
