package imageops_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// quarters returns a picture of w × h pixels whose quarters have different colours and
// whose first pixels are marked.
func quarters(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{uint8(40 + 2*x), uint8(40 + 2*y), 60, 255}
			if x < w/2 {
				c.B = 200
			}
			if y < h/2 {
				c.R /= 2
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

// mapped returns a picture of w × h pixels with those of m at the points that at returns.
func mapped(m image.Image, w, h int, at func(x, y int) (int, int)) image.Image {
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			sx, sy := at(x, y)
			out.Set(x, y, m.At(sx, sy))
		}
	}
	return out
}

// reshapings are arguments and the picture that they make of quarters(80, 60).
var reshapings = []struct {
	args fileops.Args
	w, h int
	at   func(x, y int) (int, int)
}{
	{fileops.Args{"rotate": 90}, 60, 80, func(x, y int) (int, int) { return y, 59 - x }},
	{fileops.Args{"rotate": 180}, 80, 60, func(x, y int) (int, int) { return 79 - x, 59 - y }},
	{fileops.Args{"rotate": 270}, 60, 80, func(x, y int) (int, int) { return 79 - y, x }},
	{fileops.Args{"rotate": -90}, 60, 80, func(x, y int) (int, int) { return 79 - y, x }},
	{fileops.Args{"flip": "horizontal"}, 80, 60, func(x, y int) (int, int) { return 79 - x, y }},
	{fileops.Args{"flip": "vertical"}, 80, 60, func(x, y int) (int, int) { return x, 59 - y }},
	{fileops.Args{"crop": "10,20,30,25"}, 30, 25, func(x, y int) (int, int) { return x + 10, y + 20 }},
	{fileops.Args{"crop": "1:1"}, 60, 60, func(x, y int) (int, int) { return x + 10, y }},
	{fileops.Args{"crop": "16:9"}, 80, 45, func(x, y int) (int, int) { return x, y + 7 }},
	{fileops.Args{"crop": "10,20,30,25", "rotate": 90, "flip": "horizontal"}, 25, 30, func(x, y int) (int, int) { return y + 10, x + 20 }},
}

// Pictures are cropped, rotated and flipped, in this order, also if their format stays.
func TestReshape(t *testing.T) {
	t.Parallel()
	src := quarters(80, 60)
	in := fileops.Bytes("in.png", encodePNG(t, src))
	for i, from := range []format.Format{format.PNG, format.JPG, format.TIFF, format.BMP, format.WebP} {
		if !slices.Contains(engine(t).Reads(), from) {
			continue
		}
		in := in
		if from != format.PNG && slices.Contains(engine(t).Formats(), from) {
			in = one(t, engine(t).Convert(), fileops.Args{"convert_to": string(from), "quality": 100}, in)
		}
		for j, r := range reshapings {
			if testing.Short() && from != format.PNG && j%4 != i-1 {
				continue
			}
			for _, to := range slices.Compact([]string{"png", string(from)}) {
				if !slices.Contains(engine(t).Formats(), format.Format(to)) {
					continue
				}
				args := fileops.Args{"convert_to": to}
				for k, v := range r.args {
					args[k] = v
				}
				out := one(t, engine(t).Convert(), args, in)
				if d := difference(mapped(src, r.w, r.h, r.at), decoded(t, out)); d > 6 {
					t.Errorf("%s to %s %v: the picture differs by %.1f", from, to, r.args, d)
				}
			}
		}
	}
}

// The orientation of EXIF comes before the crop, and width and height after the rotation.
func TestReshapeUpright(t *testing.T) {
	t.Parallel()
	src := quarters(80, 60)
	path := save(t, jpegFile(t, "in.jpg", src, 95))
	tool(t, "exiftool", "-n", "-Orientation=6", path) // upright it has 60 × 80 pixels
	out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg", "crop": "0,10,60,70", "rotate": 90, "width": 35}, fileops.Path(path))
	m := decoded(t, out)
	want := mapped(src, 70, 60, func(x, y int) (int, int) { return 79 - x, 59 - y }) // 90 degrees twice
	want = mapped(want, 35, 30, func(x, y int) (int, int) { return 2 * x, 2 * y })
	if d := difference(want, m); d > 8 {
		t.Errorf("the picture of %v differs by %.1f", m.Bounds(), d)
	}
	if v, ok := tags(t, out)["EXIF:Orientation"]; ok && v != 1.0 {
		t.Errorf("orientation %v", v)
	}
}

// A box outside the picture, and a size that cannot be reached, are errors of a parameter.
func TestReshapeErrors(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, photo(80, 60)))
	for _, args := range []fileops.Args{
		{"crop": "0,0,81,60"}, {"crop": "70,0,11,60"}, {"crop": "0,60,1,1"}, {"crop": "0:9"}, {"crop": "1,2,3"}, {"crop": "-1,0,5,5"},
		{"max_bytes": 100, "width": 80, "height": 60, "fit": "fill"},
		{"convert_to": "ico", "sizes": "16,300"}, {"convert_to": "ico", "sizes": "0"}, {"convert_to": "jpg", "sizes": "16"},
		{"convert_to": "jpg", "lossless": true}, {"rotate": 45}, {"flip": "diagonal"}, {"rotate": 0}, {"quality": 50}, {},
	} {
		if args["convert_to"] == nil {
			args["convert_to"] = "png"
		}
		_, err := run(t.Context(), engine(t).Convert(), args, in)
		if !errors.Is(err, fileops.ErrParameter) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// Pictures grow only if that is asked for.
func TestEnlarge(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, quarters(80, 60)))
	for _, tt := range []struct {
		args fileops.Args
		w, h int
	}{
		{fileops.Args{"width": 160}, 80, 60},
		{fileops.Args{"width": 160, "enlarge": true}, 160, 120},
		{fileops.Args{"width": 160, "height": 90, "enlarge": true}, 120, 90},
		{fileops.Args{"width": 160, "height": 100, "fit": "exact"}, 160, 100},
	} {
		tt.args["convert_to"] = "png"
		if got := decoded(t, one(t, engine(t).Convert(), tt.args, in)).Bounds().Size(); got != image.Pt(tt.w, tt.h) {
			t.Errorf("%v: %v", tt.args, got)
		}
	}
}

// A result has at most max_bytes: by quality, and if that is not enough by dimensions.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	src := photo(400, 300)
	in := jpegFile(t, "in.jpg", src, 95)
	for _, to := range []format.Format{format.JPG, format.PNG, format.WebP, format.GIF, format.TIFF} {
		if !slices.Contains(engine(t).Formats(), to) {
			continue
		}
		for _, most := range []int{200_000, 20_000, 4_000} {
			out := one(t, engine(t).Convert(), fileops.Args{"convert_to": string(to), "max_bytes": most}, in)
			size := decoded(t, out).Bounds().Size()
			if out.Size() > int64(most) || size.X*3 < size.Y*4-4 || size.X*3 > size.Y*4+4 {
				t.Errorf("%s of at most %d bytes: %d bytes, %v", to, most, out.Size(), size)
			}
			if most == 20_000 && to == format.JPG && (size.X != 400 || out.Size() < 15_000) {
				t.Errorf("jpg of at most %d bytes: %d bytes, %v", most, out.Size(), size)
			}
		}
	}
	small := jpegFile(t, "in.jpg", src, 60)
	kept := one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg", "max_bytes": 1_000_000}, small)
	if string(content(t, kept)) != string(content(t, small)) {
		t.Error("a picture that is small enough was changed")
	}
	// Metadata gives way before pixels do.
	path := save(t, small)
	tool(t, "exiftool", "-XMP-dc:Description="+strings.Repeat("long ", 4000), path)
	out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg", "max_bytes": 15_000}, fileops.Path(path))
	if size := decoded(t, out).Bounds().Size(); size.X != 400 || out.Size() > 15_000 {
		t.Errorf("beside metadata: %v, %d bytes", size, out.Size())
	}
	_, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "jpg", "max_bytes": 100}, in)
	if !errors.Is(err, fileops.ErrParameter) {
		t.Errorf("100 bytes: %v", err)
	}
}

// Icons have the sizes that are asked for.
func TestChosenIconSizes(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, quarters(80, 80)))
	out := content(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "ico", "sizes": "16,128,48"}, in))
	var sizes []string
	for i := range int(out[4]) {
		sizes = append(sizes, fmt.Sprintf("%dx%d", out[6+16*i], out[7+16*i]))
	}
	if !slices.Equal(sizes, []string{"128x128", "48x48", "16x16"}) {
		t.Errorf("sizes %v", sizes)
	}
	again := one(t, engine(t).Convert(), fileops.Args{"convert_to": "ico", "sizes": "32"}, fileops.Bytes("a.ico", out))
	if got := decoded(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, again)).Bounds().Size(); got != image.Pt(32, 32) {
		t.Errorf("icon of 32: %v", got)
	}
}

// rotate keeps metadata, and the orientation of EXIF is applied first.
func TestRotate(t *testing.T) {
	t.Parallel()
	src := quarters(80, 60)
	path := save(t, jpegFile(t, "in.jpg", src, 95))
	tool(t, "exiftool", "-n", "-Orientation=6", "-Artist=Somebody", path)
	out := one(t, engine(t).Rotate(), fileops.Args{"angle": 90}, fileops.Path(path))
	if d := difference(turned(src, "180"), decoded(t, out)); d > 4 {
		t.Errorf("the picture differs by %.1f", d)
	}
	if v := tags(t, out); v["EXIF:Orientation"] != nil && v["EXIF:Orientation"] != 1.0 || v["EXIF:Artist"] != nil && v["EXIF:Artist"] != "Somebody" {
		t.Errorf("tags %v", v)
	}
	if _, err := run(t.Context(), engine(t).Rotate(), fileops.Args{"angle": 45}, fileops.Path(path)); !errors.Is(err, fileops.ErrParameter) {
		t.Errorf("45 degrees: %v", err)
	}
}

// Previews fit into a box, upright, without metadata.
func TestThumbnail(t *testing.T) {
	t.Parallel()
	src := quarters(100, 60)
	path := save(t, jpegFile(t, "in.jpg", src, 95))
	tool(t, "exiftool", "-n", "-Orientation=8", "-Artist=Somebody", path)
	for _, tt := range []struct {
		args fileops.Args
		w, h int
	}{
		{nil, 60, 100},
		{fileops.Args{"width": 30}, 30, 50},
		{fileops.Args{"height": 25}, 15, 25},
		{fileops.Args{"width": 30, "height": 30, "convert_to": "png"}, 18, 30},
	} {
		out := one(t, engine(t).Thumbnail(), tt.args, fileops.Path(path))
		if d := difference(mapped(turned(src, "270"), tt.w, tt.h, func(x, y int) (int, int) { return (2*x + 1) * 60 / (2 * tt.w), (2*y + 1) * 100 / (2 * tt.h) }), decoded(t, out)); d > 9 {
			t.Errorf("%v: differs by %.1f", tt.args, d)
		}
		if v := tags(t, out); v["EXIF:Artist"] != nil {
			t.Errorf("%v: tags %v", tt.args, v)
		}
	}
	var p *fileops.ParamError
	if _, err := run(t.Context(), engine(t).Thumbnail(), fileops.Args{"page": 2}, fileops.Path(path)); !errors.As(err, &p) {
		t.Errorf("page 2: %v", err)
	}
}

// A picture that only loses its metadata keeps every pixel.
func TestStripOnly(t *testing.T) {
	t.Parallel()
	path := save(t, jpegFile(t, "in.jpg", photo(200, 150), 40))
	tool(t, "exiftool", "-Artist=Somebody", "-n", "-Orientation=6", path)
	out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg", "strip_metadata": true}, fileops.Path(path))
	if v := tags(t, out); v["EXIF:Artist"] != nil || v["EXIF:Orientation"] != 6.0 {
		t.Errorf("tags %v", v)
	}
	if d := difference(decoded(t, fileops.Path(path)), decoded(t, out)); d != 0 {
		t.Errorf("the pixels differ by %.2f", d)
	}
	// Segments after stray bytes, which decoders skip, are found too: the picture is encoded again.
	b := content(t, fileops.Path(path))
	at := 4 + int(b[4])<<8 + int(b[5]) // after the first segment
	stray := fileops.Bytes("in.jpg", slices.Concat(b[:at], []byte("stray"), b[at:]))
	again := one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg", "strip_metadata": true}, stray)
	if bytes.Contains(content(t, again), []byte("Somebody")) {
		t.Error("metadata after stray bytes is still there")
	}
	if _, err := run(t.Context(), engine(t).Metadata(), fileops.Args{"remove": "all"}, stray); !errors.Is(err, fileops.ErrUnsupportedInput) {
		t.Errorf("stray bytes: %v", err)
	}
}

// A JPEG that keeps its format keeps its quality.
func TestSameQuality(t *testing.T) {
	t.Parallel()
	in := jpegFile(t, "in.jpg", photo(200, 150), 70)
	out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg", "flip": "horizontal"}, in)
	if r := float64(out.Size()) / float64(in.Size()); r < 0.7 || r > 1.15 {
		t.Errorf("%d bytes became %d", in.Size(), out.Size())
	}
}
