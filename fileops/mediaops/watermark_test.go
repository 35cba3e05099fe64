package mediaops_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// logo returns a picture of 40 × 20 pixels: green, and transparent in the right half.
func logo(t testing.TB) *fileops.File {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, 40, 20))
	for y := range 20 {
		for x := range 20 {
			m.SetNRGBA(x, y, color.NRGBA{G: 255, A: 255})
		}
	}
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, m))
	return fileops.Bytes("logo.png", b.Bytes())
}

// gray returns two seconds of a gray picture of 320 × 180 pixels with sound, subtitles and
// a title.
func gray(t *testing.T, name string) *fileops.File {
	t.Helper()
	return makeFile(t, name, args("-f lavfi -i color=c=#808080:s=320x180:r=25:d=2 -f lavfi -i sine=d=2 -shortest -metadata title=Title")...)
}

// change returns the box around the pixels of two videos that differ, at a time, and the
// colour in the middle of the left half of the box in the second one.
func change(t *testing.T, before, after string, at float64) (box image.Rectangle, c color.RGBA) {
	t.Helper()
	const w, h = 320, 180
	a, b := pixels(t, before, at, w, h), pixels(t, after, at, w, h)
	for i := range w * h {
		for k := range 3 {
			if d := int(a[3*i+k]) - int(b[3*i+k]); d < -24 || d > 24 {
				box = box.Union(image.Rect(i%w, i/w, i%w+1, i/w+1))
			}
		}
	}
	i := 3 * ((box.Min.Y+box.Max.Y)/2*w + (3*box.Min.X+box.Max.X)/4)
	return box, color.RGBA{b[i], b[i+1], b[i+2], 255}
}

// A picture is drawn in every frame, where and as large as asked for, in its colours.
func TestWatermarkPicture(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ext  string
		args fileops.Args
		want image.Rectangle // give or take 4
	}{
		{"mp4", fileops.Args{"position": "top-left"}, image.Rect(6, 6, 46, 46)},
		{"mkv", fileops.Args{"position": "bottom-right", "scale": 0.5}, image.Rect(154, 94, 234, 174)},
		{"webm", fileops.Args{}, image.Rect(64, 42, 160, 138)},
		{"mov", fileops.Args{"position": "tile"}, image.Rect(20, 10, 302, 172)},
		{"avi", fileops.Args{"position": "left", "opacity": 0.5}, image.Rect(6, 70, 46, 110)},
		{"mpeg", fileops.Args{"position": "diagonal"}, image.Rect(64, 52, 182, 170)},
	} {
		if testing.Short() && (tt.ext == "webm" || tt.ext == "mkv") { // other formats have the same code
			continue
		}
		t.Run(tt.ext, func(t *testing.T) {
			t.Parallel()
			e := engine(t)
			in := gray(t, "in."+tt.ext)
			a := fileops.Args{"image_key": logo(t), "opacity": 1}
			for k, v := range tt.args {
				a[k] = v
			}
			out := must(t, e.Watermark(), a, in)
			if filepath.Base(out) != "in."+tt.ext {
				t.Errorf("result %s", filepath.Base(out))
			}
			for _, at := range []float64{0.2, 1.7} {
				box, c := change(t, onDisk(t, in), out, at)
				for _, d := range []int{box.Min.X - tt.want.Min.X, box.Min.Y - tt.want.Min.Y, box.Max.X - tt.want.Max.X, box.Max.Y - tt.want.Max.Y} {
					if d < -4 || d > 4 {
						t.Errorf("at %g: pixels in %v changed, want %v", at, box, tt.want)
						break
					}
				}
				want := color.RGBA{0, 255, 0, 255}
				if a["opacity"] == 0.5 {
					want = color.RGBA{64, 191, 64, 255}
				}
				if d := difference([]byte{c.R, c.G, c.B}, []byte{want.R, want.G, want.B}); tt.args["position"] != "tile" && tt.args["position"] != "diagonal" && d > 12 {
					t.Errorf("at %g: colour %v, want %v", at, c, want)
				}
			}
			p := probe(t, out)
			if len(p.codecs("audio")) != 1 || len(p.codecs("video")) != 1 || p.duration() < 1.8 || p.duration() > 2.3 {
				t.Errorf("streams %+v, %g seconds", p.Streams, p.duration())
			}
			if tt.ext != "mpeg" && !strings.EqualFold(p.Format.Tags["title"]+p.Format.Tags["TITLE"], "Title") {
				t.Errorf("tags %v", p.Format.Tags)
			}
			if got := warned(t, e.Watermark(), a, in); got != "" {
				t.Errorf("warnings %s", got)
			}
		})
	}
}

// Text of any script is drawn, as large as asked for, and is not taken for commands.
func TestWatermarkText(t *testing.T) {
	t.Parallel()
	e := engine(t)
	in := gray(t, "in.mp4")
	for _, tt := range []struct {
		text, position string
		within         image.Rectangle
		width          [2]int
	}{
		{"Draft", "center", image.Rect(50, 20, 270, 160), [2]int{175, 200}},
		{"Entwurf\nПроект", "bottom-right", image.Rect(220, 80, 320, 180), [2]int{70, 90}},
		{"{\\b1\\fs300}C:\\New", "top", image.Rect(110, 0, 210, 60), [2]int{65, 90}},
		{"草案", "diagonal", image.Rect(40, 0, 280, 180), [2]int{100, 205}},
		{"مسودة", "tile", image.Rect(0, 0, 320, 180), [2]int{200, 320}},
	} {
		t.Run(tt.position, func(t *testing.T) {
			t.Parallel()
			out := must(t, e.Watermark(), fileops.Args{"text": tt.text, "position": tt.position, "opacity": 1}, in)
			box, _ := change(t, onDisk(t, in), out, 1)
			if !box.In(tt.within) || box.Dx() < tt.width[0] || box.Dx() > tt.width[1] {
				t.Errorf("%q: pixels in %v changed", tt.text, box)
			}
		})
	}
}

// A JPEG file is turned as its EXIF data say.
func TestWatermarkUpright(t *testing.T) {
	t.Parallel()
	m := image.NewRGBA(image.Rect(0, 0, 64, 32))
	for y := range 32 {
		for x := range 64 {
			c := color.RGBA{255, 0, 0, 255}
			if x >= 32 {
				c = color.RGBA{0, 0, 255, 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	systest.NoError(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: 100}))
	exif := "\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	turned := fileops.Bytes("turned.jpg", append([]byte("\xff\xd8"+exif), b.Bytes()[2:]...))
	in := gray(t, "in.mp4")
	out := must(t, engine(t).Watermark(), fileops.Args{"image_key": turned, "opacity": 1, "scale": 0.25}, in)
	box, _ := change(t, onDisk(t, in), out, 1)
	if box.Dx() < 76 || box.Dx() > 84 || box.Dy() < 156 || box.Dy() > 166 { // red above blue
		t.Fatalf("pixels in %v changed", box)
	}
	px := pixels(t, out, 1, 320, 180)
	if top, bottom := px[3*(40*320+160):], px[3*(140*320+160):]; top[0] < 200 || bottom[2] < 200 {
		t.Errorf("colours %v and %v", top[:3], bottom[:3])
	}
}

func TestWatermarkErrors(t *testing.T) {
	t.Parallel()
	e := engine(t)
	in := gray(t, "in.mp4")
	good := logo(t)
	b, _ := good.Bytes()
	var huge bytes.Buffer
	systest.NoError(t, png.Encode(&huge, image.NewGray(image.Rect(0, 0, 8000, 2001))))
	for what, args := range map[string]fileops.Args{
		"image_key": {"image_key": fileops.Bytes("a.png", b[:len(b)/2])}, "megapixels": {"image_key": fileops.Bytes("a.png", huge.Bytes())},
		"no visible": {"text": "\u200b"}, "too long": {"text": strings.Repeat("long ", 190)}, "text": nil, "combined": {"text": "a", "image_key": good},
	} {
		if out, err := run(t, e.Watermark(), args, in); !errors.Is(err, fileops.ErrParameter) || !strings.Contains(fileops.Message(err), what) {
			t.Errorf("%s: %s, %v", what, out, err)
		}
	}
	sound := makeFile(t, "in.mp4", args("-f lavfi -i sine=d=1")...)
	if _, err := run(t, e.Watermark(), fileops.Args{"text": "a"}, sound); fileops.Code(err) != "unsupported_input" {
		t.Errorf("a file without a picture: %v", err)
	}
}
