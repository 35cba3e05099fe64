//go:build cgo

package imageops_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

var frameColours = []color.RGBA{{200, 0, 0, 255}, {0, 160, 0, 255}, {0, 0, 220, 255}, {230, 230, 0, 255}}

// moving returns an animation with a frame of 40 × 30 pixels for each frame colour. The top
// left quarter of each is black. The delay of frame n is (n+1)·50 ms.
func moving(t testing.TB) *fileops.File {
	t.Helper()
	var a gif.GIF
	for i, c := range frameColours {
		m := image.NewPaletted(image.Rect(0, 0, 40, 30), color.Palette{c, color.Black})
		for y := range 15 {
			for x := range 20 {
				m.SetColorIndex(x, y, 1)
			}
		}
		a.Image, a.Delay = append(a.Image, m), append(a.Delay, 5*(i+1))
	}
	var b bytes.Buffer
	systest.NoError(t, gif.EncodeAll(&b, &a))
	return fileops.Bytes("in.gif", b.Bytes())
}

// frames decodes all frames of a file with the vips program, which joins them to one high picture:
// starting the program takes longer than its work.
func frames(t testing.TB, f *fileops.File) (all []image.Image, delays string) {
	t.Helper()
	path, n := save(t, f), 0
	for line := range strings.Lines(tool(t, "vipsheader", "-a", path)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name {
		case "n-pages":
			var err error
			n, err = strconv.Atoi(value)
			systest.NoError(t, err)
		case "delay":
			delays = value
		}
	}
	if n == 1 {
		delays = ""
	}
	strip := pngOf(t, made(t, "strip.png", "vips", "colourspace", path+"[n=-1]", "OUT", "srgb"))
	height := strip.Bounds().Dy() / n
	for i := range n {
		m := image.NewNRGBA(image.Rect(0, 0, strip.Bounds().Dx(), height))
		draw.Draw(m, m.Bounds(), strip, image.Pt(0, i*height), draw.Src)
		all = append(all, m)
	}
	return all, delays
}

// colourAt returns the number of the frame colour of a pixel, or -1 for black.
func colourAt(m image.Image, x, y int) int {
	r, g, b, _ := m.At(x, y).RGBA()
	d := func(p uint32, q uint8) int { v := int(p>>8) - int(q); return max(v, -v) }
	for i, c := range frameColours {
		if d(r, c.R)+d(g, c.G)+d(b, c.B) < 90 {
			return i
		}
	}
	return -1
}

// Animations and pages stay through rotation, crop and scaling, and are chosen by number.
func TestFrames(t *testing.T) {
	t.Parallel()
	src := moving(t)
	inputs := map[string]*fileops.File{"gif": src}
	for _, to := range []string{"webp", "png", "tiff"} {
		inputs[to] = one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, src)
	}
	for from, in := range inputs {
		choice := "frames"
		if from == "tiff" {
			choice = "pages"
		}
		for i, tt := range []struct {
			args   fileops.Args
			w, h   int
			black  [2]int // a black pixel
			want   []int
			delays string
		}{
			{fileops.Args{"rotate": 90}, 30, 40, [2]int{25, 5}, []int{0, 1, 2, 3}, "50 100 150 200"},
			{fileops.Args{"flip": "vertical"}, 40, 30, [2]int{5, 25}, []int{0, 1, 2, 3}, "50 100 150 200"},
			{fileops.Args{"flip": "horizontal", "rotate": 180}, 40, 30, [2]int{5, 25}, []int{0, 1, 2, 3}, "50 100 150 200"},
			{fileops.Args{"crop": "10,5,20,20"}, 20, 20, [2]int{5, 5}, []int{0, 1, 2, 3}, "50 100 150 200"},
			{fileops.Args{"width": 20}, 20, 15, [2]int{4, 3}, []int{0, 1, 2, 3}, "50 100 150 200"},
			{fileops.Args{choice: "-1,2"}, 40, 30, [2]int{5, 5}, []int{3, 1}, "200 100"},
			{fileops.Args{choice: "2-3", "rotate": 270, "width": 15}, 15, 20, [2]int{3, 16}, []int{1, 2}, "100 150"},
		} {
			if from != "gif" && i > 0 && i < 5 {
				continue
			}
			to := from
			if from == "png" {
				to = "gif" // the vips program does not know animated PNG
			}
			tt.args["convert_to"] = to
			out := one(t, engine(t).Convert(), tt.args, in)
			all, delays := frames(t, out)
			var got []int
			for _, m := range all {
				if m.Bounds().Size() != image.Pt(tt.w, tt.h) || colourAt(m, tt.black[0], tt.black[1]) != -1 {
					t.Errorf("%s %v: %v, black %v", from, tt.args, m.Bounds().Size(), m.At(tt.black[0], tt.black[1]))
				}
				got = append(got, colourAt(m, tt.w-1-tt.black[0], tt.h-1-tt.black[1]))
			}
			if !slices.Equal(got, tt.want) || from != "tiff" && delays != tt.delays {
				t.Errorf("%s %v: frames %v, delays %q", from, tt.args, got, delays)
			}
			if from == "png" { // again, but as PNG
				tt.args["convert_to"] = "png"
				again := one(t, engine(t).Convert(), fileops.Args{"convert_to": "gif"}, one(t, engine(t).Convert(), tt.args, in))
				if all, d := frames(t, again); len(all) != len(tt.want) || d != tt.delays || all[0].Bounds().Size() != image.Pt(tt.w, tt.h) {
					t.Errorf("png %v: %d frames, delays %q", tt.args, len(all), d)
				}
			}
		}
		// A format without frames gets a result for each.
		results := mustRun(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg", choice: "2,-1"}, in)
		var got []int
		for _, r := range results {
			got = append(got, colourAt(decoded(t, r), 35, 25))
		}
		if !slices.Equal(got, []int{1, 3}) || results[0].Name() == results[1].Name() {
			t.Errorf("%s to jpg: %v", from, got)
		}
		if m := decoded(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg", choice: "3"}, in)); colourAt(m, 35, 25) != 2 {
			t.Errorf("%s: frame 3 is %v", from, m.At(35, 25))
		}
		if m := decoded(t, one(t, engine(t).Thumbnail(), fileops.Args{"page": 4, "width": 20}, in)); colourAt(m, 18, 13) != 3 {
			t.Errorf("%s: the preview of frame 4 is %v", from, m.At(18, 13))
		}
		if turned := one(t, engine(t).Rotate(), fileops.Args{"angle": 180}, in); from != "png" {
			if all, _ := frames(t, turned); len(all) != 4 || colourAt(all[2], 35, 25) != -1 || colourAt(all[2], 5, 5) != 2 {
				t.Errorf("%s: %d frames after rotate", from, len(all))
			}
		}
		_, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "jpg", choice: "5"}, in)
		var p *fileops.ParamError
		if !errors.As(err, &p) || p.Param != choice {
			t.Errorf("%s: frame 5: %v", from, err)
		}
	}
}

// Pixels are kept by lossless.
func TestLossless(t *testing.T) {
	t.Parallel()
	src := photo(64, 48)
	in := fileops.Bytes("in.png", encodePNG(t, src))
	for _, to := range []string{"webp", "jxl", "jp2", "avif"} {
		if !slices.ContainsFunc(engine(t).Formats(), func(f format.Format) bool { return string(f) == to }) {
			continue
		}
		limit := 0.0
		if to == "avif" {
			limit = 1 // libheif converts to YCbCr
		}
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": to, "lossless": true}, in)
		if d := difference(src, decoded(t, out)); d > limit {
			t.Errorf("%s differs by %.2f", to, d)
		}
	}
}
