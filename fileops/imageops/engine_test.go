package imageops_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/systest"
)

// The tests in this file apply to both codecs.

func TestConformance(t *testing.T) {
	e := engine(t)
	// The vips program, which judges, reads neither raw photos nor icons of macOS. They have
	// tests of their own, and so have the decoders of tga and ppm.
	formats := slices.DeleteFunc(e.Reads(), func(f format.Format) bool {
		return f == format.RAW || f == format.ICNS || testing.Short() && (f == format.TGA || f == format.PPM)
	})
	t.Run("convert", func(t *testing.T) {
		fileopstest.Run(t, fileopstest.Suite{Action: e.Convert(), Formats: formats, Check: checkPicture})
	})
	t.Run("rotate", func(t *testing.T) {
		fileopstest.Run(t, fileopstest.Suite{Action: e.Rotate(), Check: checkPicture})
	})
	t.Run("metadata", func(t *testing.T) {
		fileopstest.Run(t, fileopstest.Suite{Action: e.Metadata(), Args: fileops.Args{"remove": "all"}, Check: checkPicture})
	})
	t.Run("thumbnail", func(t *testing.T) {
		fileopstest.Run(t, fileopstest.Suite{Action: e.Thumbnail(), Args: fileops.Args{"width": 50}, Formats: formats, Check: func(t *testing.T, in []*fileops.File, _ fileops.Args, out []*fileops.File) {
			if s := decoded(t, out[0]).Bounds().Size(); s.X > 50 || s.X < 16 {
				t.Errorf("%v pixels", s)
			}
		}})
	})
	t.Run("compress", func(t *testing.T) {
		fileopstest.Run(t, fileopstest.Suite{Action: e.Compress(), Check: func(t *testing.T, in []*fileops.File, args fileops.Args, out []*fileops.File) {
			if n := len(content(t, in[0])); out[0].Size() > int64(n) || out[0].Name() != in[0].Name() {
				t.Errorf("%s of %d bytes became %s of %d", in[0].Name(), n, out[0].Name(), out[0].Size())
			}
			checkPicture(t, in, args, out)
		}})
	})
}

// turned returns m turned clockwise by degrees or flipped.
func turned(m image.Image, how any) image.Image {
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	switch how {
	case "90":
		return mapped(m, h, w, func(x, y int) (int, int) { return y, h - 1 - x })
	case "180":
		return mapped(m, w, h, func(x, y int) (int, int) { return w - 1 - x, h - 1 - y })
	case "270":
		return mapped(m, h, w, func(x, y int) (int, int) { return w - 1 - y, x })
	case "horizontal":
		return mapped(m, w, h, func(x, y int) (int, int) { return w - 1 - x, y })
	case "vertical":
		return mapped(m, w, h, func(x, y int) (int, int) { return x, h - 1 - y })
	}
	return m
}

// checkPicture compares a result with the sample. The vips program decodes both.
func checkPicture(t *testing.T, in []*fileops.File, args fileops.Args, out []*fileops.File) {
	t.Helper()
	if len(out) != 1 {
		t.Fatalf("%d results", len(out))
	}
	before := decoded(t, in[0])
	for _, v := range []any{args["angle"], args["rotate"], args["flip"]} {
		before = turned(before, v)
	}
	if in[0].Format() == format.SVG && out[0].Format() == format.ICO {
		return // drawn larger; see TestSVG
	}
	limit := 12.0
	if in[0].Format() == format.GIF {
		limit = 16 // its dither is noise, which lossy formats smooth
	}
	if d := difference(before, decoded(t, out[0])); d > limit {
		t.Errorf("the picture differs by %.1f", d)
	}
}

func jpegFile(t testing.TB, name string, m image.Image, quality int) *fileops.File {
	t.Helper()
	var b bytes.Buffer
	systest.NoError(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}))
	return fileops.Bytes(name, b.Bytes())
}

func TestOrientation(t *testing.T) {
	t.Parallel()
	want := fileopstest.Picture(96, 64)
	for o := 1; o <= 8; o++ {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			t.Parallel()
			// Store the picture as a camera does: orientation o turns it into want.
			stored := image.NewRGBA(image.Rect(0, 0, 96, 64))
			if o >= 5 {
				stored = image.NewRGBA(image.Rect(0, 0, 64, 96))
			}
			for y := range 64 {
				for x := range 96 {
					sx, sy := x, y
					switch o {
					case 2:
						sx = 95 - x
					case 3:
						sx, sy = 95-x, 63-y
					case 4:
						sy = 63 - y
					case 5:
						sx, sy = y, x
					case 6:
						sx, sy = y, 95-x
					case 7:
						sx, sy = 63-y, 95-x
					case 8:
						sx, sy = 63-y, x
					}
					stored.Set(sx, sy, want.At(x, y))
				}
			}
			path := save(t, jpegFile(t, "in.jpg", stored, 95))
			tool(t, "exiftool", "-n", fmt.Sprintf("-Orientation=%d", o), path)
			for _, to := range []string{"png", "gif", "tiff", "bmp"} {
				out := one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, fileops.Path(path))
				if d := difference(want, decoded(t, out)); d > 14 {
					t.Errorf("%s: the picture differs by %.1f", to, d)
				}
				if v, ok := tags(t, out)["EXIF:Orientation"]; ok && v != 1.0 {
					t.Errorf("%s: still says orientation %v", to, v)
				}
			}
		})
	}
}

// withHole returns a picture whose left half is transparent.
func withHole() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	draw.Draw(m, image.Rect(32, 0, 64, 64), image.NewUniform(color.NRGBA{200, 30, 30, 255}), image.Point{}, draw.Src)
	return m
}

func TestTransparency(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, withHole()))
	for _, to := range engine(t).Formats() {
		if to == format.PNG {
			continue
		}
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			m := decoded(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": string(to)}, in))
			_, _, _, a := m.At(8, 8).RGBA()
			opaque := to == format.JPG || to == format.BMP || to == format.PPM
			if opaque != (a == 0xffff) {
				t.Errorf("alpha is %d", a>>8)
			}
			if d := difference(withHole(), m); d > 4 {
				t.Errorf("the picture differs by %.1f", d)
			}
		})
	}
}

func TestSizeParameters(t *testing.T) {
	t.Parallel()
	in := fileopstest.Sample(t, format.PNG) // 160 × 120
	for _, tt := range []struct {
		name string
		args fileops.Args
		want image.Point
	}{
		{"width", fileops.Args{"width": 80}, image.Pt(80, 60)},
		{"height", fileops.Args{"height": 30}, image.Pt(40, 30)},
		{"box", fileops.Args{"width": 80, "height": 30}, image.Pt(40, 30)},
		{"never larger", fileops.Args{"width": 1000, "height": 1000}, image.Pt(160, 120)},
		{"a pixel at least", fileops.Args{"width": 1}, image.Pt(1, 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.args["convert_to"] = "jpg"
			c, err := jpeg.DecodeConfig(bytes.NewReader(content(t, one(t, engine(t).Convert(), tt.args, in))))
			if err != nil || image.Pt(c.Width, c.Height) != tt.want {
				t.Errorf("got %d × %d (%v), want %v", c.Width, c.Height, err, tt.want)
			}
		})
	}
}

func TestQuality(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, photo(300, 200)))
	last := int64(1 << 40)
	for _, q := range []int{100, 80, 40, 10} {
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg", "quality": q}, in)
		if out.Size() >= last {
			t.Errorf("quality %d has %d bytes, the one above %d", q, out.Size(), last)
		}
		last = out.Size()
	}
	for _, q := range []any{0, 101, "high"} {
		_, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "jpg", "quality": q}, in)
		var p *fileops.ParamError
		if !errors.As(err, &p) || p.Param != "quality" {
			t.Errorf("quality %v: %v", q, err)
		}
	}
}

func TestAliasOfTarget(t *testing.T) {
	t.Parallel()
	out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "JPEG"}, fileopstest.Sample(t, format.PNG))
	if out.Name() != "sample.jpg" {
		t.Errorf("got %s", out.Name())
	}
}

// hugePNG has a valid header of w × h pixels and nothing else.
func hugePNG(w, h uint32) []byte {
	be := binary.BigEndian
	ihdr := append(be.AppendUint32(be.AppendUint32([]byte("IHDR"), w), h), 8, 6, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), ihdr...)
	b = be.AppendUint32(b, crc32.ChecksumIEEE(ihdr))
	for _, c := range []string{"IDAT", "IEND"} {
		b = append(be.AppendUint32(b, 0), c...)
		b = be.AppendUint32(b, crc32.ChecksumIEEE([]byte(c)))
	}
	return b
}

func TestLimits(t *testing.T) {
	t.Parallel()
	small, err := imageops.New(t.Context(), imageops.Options{MaxPixels: 1000, MaxBytes: 10000, MaxFrames: 3, MaxTotalPixels: 2000})
	systest.NoError(t, err)
	for _, tt := range []struct {
		name string
		e    *imageops.Engine
		in   *fileops.File
	}{
		{"pixels in a header", engine(t), fileops.Bytes("in.png", hugePNG(60000, 60000))},
		{"pixels", small, fileops.Bytes("in.png", encodePNG(t, fileopstest.Picture(40, 30)))},
		{"bytes", small, fileops.Bytes("in.png", encodePNG(t, photo(100, 100)))},
		{"bitmap", engine(t), fileops.Bytes("in.bmp", hugeBMP())},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := run(t.Context(), tt.e.Convert(), fileops.Args{"convert_to": "jpg"}, tt.in); !errors.Is(err, fileops.ErrLimit) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func hugeBMP() []byte {
	le := binary.LittleEndian
	b := append([]byte("BM"), make([]byte, 12)...)
	le.PutUint32(b[10:], 54)
	b = le.AppendUint32(b, 40)
	b = le.AppendUint32(le.AppendUint32(b, 50000), 50000)
	b = append(b, 1, 0, 24, 0)
	return append(b, make([]byte, 24)...)
}

func TestWithout(t *testing.T) {
	t.Parallel()
	e, err := imageops.New(t.Context(), imageops.Options{Without: []format.Format{format.TIFF, format.PSD}})
	systest.NoError(t, err)
	reg, err := fileops.NewRegistry(e.Convert(), e.Compress())
	systest.NoError(t, err)
	for _, f := range []format.Format{format.TIFF, format.PSD} {
		if _, _, err := reg.Resolve("convert", []format.Format{f}, fileops.Args{"convert_to": "png"}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", f, err)
		}
	}
	if _, _, err := reg.Resolve("convert", []format.Format{format.PNG}, fileops.Args{"convert_to": "tiff"}); err != nil {
		t.Errorf("it can no longer be written either: %v", err)
	}
}

func TestTruncated(t *testing.T) {
	t.Parallel()
	for _, f := range engine(t).Reads() {
		if f == format.SVG {
			continue // text has no detectable end
		}
		b := content(t, fileopstest.Sample(t, f))
		for _, part := range []int{30, 60, 90} {
			t.Run(fmt.Sprintf("%s/%d%%", f, part), func(t *testing.T) {
				t.Parallel()
				in := fileops.Bytes("in."+string(f), b[:len(b)*part/100])
				to := "png"
				if f == format.PNG {
					to = "jpg"
				}
				if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": to}, in); !errors.Is(err, fileops.ErrCorruptInput) && !errors.Is(err, fileops.ErrFormatMismatch) {
					t.Errorf("convert: %v", err)
				}
				reg, err := fileops.NewRegistry(engine(t).Compress())
				systest.NoError(t, err)
				if _, _, err := reg.Resolve("compress", []format.Format{f}, nil); err != nil {
					return
				}
				if _, err := run(t.Context(), engine(t).Compress(), nil, in); !errors.Is(err, fileops.ErrCorruptInput) && !errors.Is(err, fileops.ErrFormatMismatch) {
					t.Errorf("compress: %v", err)
				}
			})
		}
	}
}

// One run in a hundred returned a black picture for a damaged JPEG 2000.
func TestDamageIsNeverLost(t *testing.T) {
	t.Parallel()
	if !slices.Contains(engine(t).Reads(), format.JP2) {
		t.Fatal("no JPEG 2000")
	}
	b := content(t, fileopstest.Sample(t, format.JP2))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			in := fileops.Bytes("in.jp2", b[:len(b)*3/10])
			for range systest.Scale(400, 100) {
				if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, in); !errors.Is(err, fileops.ErrCorruptInput) {
					t.Errorf("convert: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestErrorsShowNothingOfTheEngine(t *testing.T) {
	t.Parallel()
	b := content(t, fileopstest.Sample(t, format.JPG))
	_, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("in.jpg", b[:len(b)/2]))
	if got, want := fileops.Message(err), "the JPEG is damaged or incomplete"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBitmapVariants(t *testing.T) {
	t.Parallel()
	src := save(t, fileops.Bytes("src.png", encodePNG(t, fileopstest.Picture(75, 50))))
	for _, tt := range []struct {
		pixels string
		max    float64
	}{
		{"bgr24", 0.1}, {"bgra", 0.1}, {"rgb565le", 5}, {"rgb555le", 5}, {"rgb8", 40}, {"gray", 90}, {"monow", 120}, {"pal8", 40},
	} {
		t.Run(tt.pixels, func(t *testing.T) {
			t.Parallel()
			in := made(t, "in.bmp", "ffmpeg", "-v", "error", "-i", src, "-pix_fmt", tt.pixels, "OUT")
			m, err := png.Decode(bytes.NewReader(content(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, in))))
			systest.NoError(t, err)
			// ffmpeg reduces colours differently, so compare with its decoder only.
			want, err := png.Decode(bytes.NewReader(content(t, made(t, "want.png", "ffmpeg", "-v", "error", "-i", save(t, in), "-pix_fmt", "rgba", "OUT"))))
			systest.NoError(t, err)
			if d := difference(want, m); d > 0.6 {
				t.Errorf("differs from what ffmpeg reads by %.2f", d)
			}
			if d := difference(fileopstest.Picture(75, 50), m); d > tt.max {
				t.Errorf("differs from the source by %.2f", d)
			}
		})
	}
}

func TestRunLengthBitmaps(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	build := func(bits, method int, pix []byte) *fileops.File {
		b := append([]byte("BM"), make([]byte, 12)...)
		le.PutUint32(b[10:], 14+40+3*4)
		b = le.AppendUint32(b, 40)
		b = le.AppendUint32(le.AppendUint32(b, 4), 2)
		b = append(b, 1, 0, byte(bits), 0)
		b = le.AppendUint32(b, uint32(method))
		b = append(b, make([]byte, 12)...)
		b = le.AppendUint32(le.AppendUint32(b, 3), 0)
		b = append(b, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0) // red, green, blue
		return fileops.Bytes("in.bmp", append(b, pix...))
	}
	for name, in := range map[string]*fileops.File{
		"8 bits": build(8, 1, []byte{4, 0, 0, 0, 0, 4, 0, 1, 2, 1, 0, 1}),
		"4 bits": build(4, 2, []byte{4, 0x00, 0, 0, 0, 4, 0x01, 0x21, 0, 1}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := png.Decode(bytes.NewReader(content(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, in))))
			systest.NoError(t, err)
			red, green, blue := color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 255, 0, 255}, color.NRGBA{0, 0, 255, 255}
			for i, want := range []color.NRGBA{red, green, blue, green, red, red, red, red} {
				if got := color.NRGBAModel.Convert(m.At(i%4, i/4)); got != want {
					t.Errorf("pixel %d is %v, want %v", i, got, want)
				}
			}
		})
	}
}

func TestIconOfBitmaps(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	var b []byte
	// Two pictures of 8 and 16 pixels, 24 bits, with a mask that makes the top row
	// transparent.
	entry := func(n int) []byte {
		d := le.AppendUint32(nil, 40)
		d = le.AppendUint32(le.AppendUint32(d, uint32(n)), uint32(2*n))
		d = append(d, 1, 0, 24, 0)
		d = append(d, make([]byte, 24)...)
		for range n * n {
			d = append(d, 10, 20, 200)
		}
		for y := range n {
			v := byte(0)
			if y == n-1 {
				v = 255
			}
			d = append(d, v, v, v, v)
		}
		return d
	}
	small, large := entry(8), entry(16)
	b = append(b, 0, 0, 1, 0, 2, 0)
	b = append(b, 8, 8, 0, 0, 1, 0, 24, 0)
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(small))), 38)
	b = append(b, 16, 16, 0, 0, 1, 0, 24, 0)
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(large))), uint32(38+len(small)))
	b = append(append(b, small...), large...)
	out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("in.ico", b))
	m, err := png.Decode(bytes.NewReader(content(t, out)))
	if err != nil || m.Bounds().Dx() != 16 {
		t.Fatalf("got %v, %v", m, err)
	}
	if _, _, _, a := m.At(3, 0).RGBA(); a != 0 {
		t.Error("the mask is not applied")
	}
	if got := color.NRGBAModel.Convert(m.At(3, 3)); got != (color.NRGBA{200, 20, 10, 255}) {
		t.Errorf("colour %v", got)
	}
}

func TestIconSizes(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, fileopstest.Picture(300, 150)))
	b := content(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "ico"}, in))
	var got []image.Point
	for i := range int(b[4]) {
		d := b[6+16*i:]
		at := binary.LittleEndian.Uint32(d[12:])
		c, err := png.DecodeConfig(bytes.NewReader(b[at : at+binary.LittleEndian.Uint32(d[8:])]))
		systest.NoError(t, err)
		if int(d[0]) != c.Width%256 || int(d[1]) != c.Height%256 {
			t.Errorf("the directory says %d × %d of a picture of %d × %d", d[0], d[1], c.Width, c.Height)
		}
		got = append(got, image.Pt(c.Width, c.Height))
	}
	want := []image.Point{{256, 128}, {128, 64}, {64, 32}, {48, 24}, {32, 16}, {16, 8}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// psd returns a Photoshop file with the given planes.
func psd(w, h, mode, depth int, rle bool, alpha bool, planes ...[]byte) *fileops.File {
	be := binary.BigEndian
	b := append([]byte("8BPS\x00\x01"), make([]byte, 6)...)
	b = be.AppendUint16(b, uint16(len(planes)))
	b = be.AppendUint32(be.AppendUint32(b, uint32(h)), uint32(w))
	b = be.AppendUint16(be.AppendUint16(b, uint16(depth)), uint16(mode))
	b = append(b, make([]byte, 8)...)
	if alpha { // an empty layer section that declares transparency
		b = be.AppendUint32(b, 6)
		b = append(be.AppendUint32(b, 2), 0xff, 0xff)
	} else {
		b = append(b, 0, 0, 0, 0)
	}
	row := w * depth / 8
	if !rle {
		b = append(b, 0, 0)
		for _, p := range planes {
			b = append(b, p...)
		}
		return fileops.Bytes("in.psd", b)
	}
	b = append(b, 0, 1)
	var data []byte
	for _, p := range planes {
		for y := range h {
			start := len(data)
			for i := 0; i < row; i += 100 {
				n := min(100, row-i)
				data = append(append(data, byte(n-1)), p[y*row+i:y*row+i+n]...)
			}
			b = be.AppendUint16(b, uint16(len(data)-start))
		}
	}
	return fileops.Bytes("in.psd", append(b, data...))
}

func TestPhotoshopVariants(t *testing.T) {
	t.Parallel()
	const w, h = 120, 40
	pic := fileopstest.Picture(w, h)
	channel := func(of func(color.RGBA) byte) []byte {
		var p []byte
		for y := range h {
			for x := range w {
				p = append(p, of(pic.RGBAAt(x, y)))
			}
		}
		return p
	}
	r := channel(func(c color.RGBA) byte { return c.R })
	g := channel(func(c color.RGBA) byte { return c.G })
	b := channel(func(c color.RGBA) byte { return c.B })
	wide := func(p []byte) []byte {
		var out []byte
		for _, v := range p {
			out = append(out, v, v)
		}
		return out
	}
	solid := bytes.Repeat([]byte{255}, w*h)
	for name, in := range map[string]*fileops.File{
		"raw":        psd(w, h, 3, 8, false, false, r, g, b),
		"rle":        psd(w, h, 3, 8, true, false, r, g, b),
		"16 bits":    psd(w, h, 3, 16, true, false, wide(r), wide(g), wide(b)),
		"mask":       psd(w, h, 3, 8, true, false, r, g, b, make([]byte, w*h)),
		"opaque":     psd(w, h, 3, 8, true, true, r, g, b, solid),
		"gray+alpha": psd(w, h, 1, 8, true, true, r, solid),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := image.Image(pic)
			if name == "gray+alpha" {
				want = &image.Gray{Pix: r, Stride: w, Rect: image.Rect(0, 0, w, h)}
			}
			m, err := png.Decode(bytes.NewReader(content(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, in))))
			systest.NoError(t, err)
			if d := difference(want, m); d > 0.01 {
				t.Errorf("differs by %.2f", d)
			}
		})
	}
	t.Run("lab", func(t *testing.T) {
		t.Parallel()
		if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, psd(w, h, 9, 8, false, false, r, g, b)); !errors.Is(err, fileops.ErrUnsupportedInput) {
			t.Errorf("got %v", err)
		}
	})
}

func TestCompressJPEGLevels(t *testing.T) {
	t.Parallel()
	in := jpegFile(t, "in.jpg", photo(600, 400), 95)
	last := in.Size()
	for _, level := range []string{"less_compression", "recommended_compression", "extreme_compression"} {
		out := one(t, engine(t).Compress(), fileops.Args{"compression_value": level}, in)
		if out.Size() >= last {
			t.Errorf("%s: %d bytes after %d", level, out.Size(), last)
		}
		last = out.Size()
		if d := difference(photo(600, 400), decoded(t, out)); d > 8 {
			t.Errorf("%s: the picture differs by %.1f", level, d)
		}
	}
}

func TestCompressPNGIsLossless(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.NoCompression}
	systest.NoError(t, enc.Encode(&b, photo(200, 150)))
	out := one(t, engine(t).Compress(), fileops.Args{"compression_value": "less_compression"}, fileops.Bytes("in.png", b.Bytes()))
	if out.Size() >= int64(b.Len()) {
		t.Errorf("%d bytes of %d", out.Size(), b.Len())
	}
	if d := difference(photo(200, 150), decoded(t, out)); d != 0 {
		t.Errorf("the picture differs by %.3f", d)
	}
}

// TestCompressFewColours uses a true-colour picture with few colours, like a
// screenshot.
func TestCompressFewColours(t *testing.T) {
	t.Parallel()
	m := image.NewNRGBA(image.Rect(0, 0, 400, 300))
	seed := uint32(7)
	for y := range 300 {
		for x := range 400 {
			seed = seed*1664525 + 1013904223
			k := uint8(seed >> 28)
			m.SetNRGBA(x, y, color.NRGBA{k * 16, 255 - k*9, 77, 255 - k})
		}
	}
	in := fileops.Bytes("in.png", encodePNG(t, m))
	out := one(t, engine(t).Compress(), fileops.Args{"compression_value": "less"}, in)
	if float64(out.Size()) > 0.7*float64(in.Size()) {
		t.Errorf("%d bytes of %d", out.Size(), in.Size())
	}
	got, err := png.Decode(bytes.NewReader(content(t, out)))
	systest.NoError(t, err)
	for y := range 300 {
		for x := range 400 {
			if color.NRGBAModel.Convert(got.At(x, y)) != m.At(x, y) {
				t.Fatalf("pixel %d, %d became %v", x, y, got.At(x, y))
			}
		}
	}
}

func TestCompressKeepsWhatIsSmall(t *testing.T) {
	t.Parallel()
	in := jpegFile(t, "in.jpg", photo(300, 200), 20)
	out := one(t, engine(t).Compress(), fileops.Args{"compression_value": "less_compression"}, in)
	if out.Size() > in.Size() {
		t.Errorf("%d bytes became %d", in.Size(), out.Size())
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	m := fileopstest.Picture(100, 80)
	for _, to := range engine(t).Formats() {
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			systest.NoError(t, engine(t).Encode(t.Context(), m, to, 85, 150, &b))
			out := fileops.Bytes("out."+string(to), b.Bytes())
			if got := format.Sniff(out.Reader(), out.Size()); got != to {
				t.Fatalf("wrote %s", got)
			}
			if d := difference(m, decoded(t, out)); d > 12 {
				t.Errorf("the picture differs by %.1f", d)
			}
		})
	}
	if err := engine(t).Encode(t.Context(), m, format.SVG, 0, 0, new(bytes.Buffer)); !errors.Is(err, fileops.ErrUnavailable) {
		t.Errorf("svg: %v", err)
	}
	if err := engine(t).Encode(t.Context(), new(image.RGBA), format.PNG, 0, 0, new(bytes.Buffer)); err == nil {
		t.Error("an empty picture is accepted")
	}
}

func TestSamples(t *testing.T) {
	t.Parallel()
	e, m := engine(t), fileopstest.Picture(120, 90)
	rgb, gray := raster.Samples{Width: 120, Height: 90, Components: 3}, raster.Samples{Width: 120, Height: 90, Components: 1}
	for i := 0; i < len(m.Pix); i += 4 {
		rgb.Pix = append(rgb.Pix, m.Pix[i:i+3]...)
		gray.Pix = append(gray.Pix, m.Pix[i])
	}
	b, err := e.EncodeJPEG(t.Context(), rgb, 90)
	systest.NoError(t, err)
	if d := difference(m, decoded(t, fileops.Bytes("x.jpg", b))); d > 6 {
		t.Errorf("RGB differs by %.1f", d)
	}
	halfGray, err := e.ScalePixels(t.Context(), gray, 60, 45)
	systest.NoError(t, err)
	half, err := e.EncodeJPEG(t.Context(), halfGray, 90)
	systest.NoError(t, err)
	if c, err := jpeg.DecodeConfig(bytes.NewReader(half)); err != nil || c.Width != 60 || c.Height != 45 || c.ColorModel != color.GrayModel {
		t.Errorf("got %v, %v", c, err)
	}
	got, err := e.DecodePixels(t.Context(), b, 40, 0)
	if err != nil || got.Width != 40 || got.Height != 90 || got.Components != 3 || len(got.Pix) != 40*90*3 {
		t.Errorf("got %d × %d × %d, %d bytes, %v", got.Width, got.Height, got.Components, len(got.Pix), err)
	}
	small, err := e.ScalePixels(t.Context(), rgb, 12, 9)
	if err != nil || small.Width != 12 || small.Height != 9 || len(small.Pix) != 12*9*3 {
		t.Errorf("%d bytes, %v", len(small.Pix), err)
	}
	same, err := e.ScalePixels(t.Context(), rgb, 0, 500)
	if err != nil || &same.Pix[0] != &rgb.Pix[0] {
		t.Error("pixels were scaled although they fit")
	}
	recode := func(data []byte) ([]byte, error) {
		s, err := e.DecodePixels(t.Context(), data, 60, 45)
		if err != nil {
			return nil, err
		}
		return e.EncodeJPEG(t.Context(), s, 50)
	}
	again, err := recode(b)
	if err != nil || len(again) >= len(b) {
		t.Errorf("%d bytes of %d, %v", len(again), len(b), err)
	}
	// CMYK: the stored values as djpeg prints them are those that a PDF reader
	// uses.
	cmyk := made(t, "cmyk.jpg", "vips", "icc_transform", save(t, fileops.Bytes("in.png", encodePNG(t, image.NewRGBA(image.Rect(0, 0, 32, 32))))), "OUT[Q=100]", "cmyk", "--input-profile", "srgb")
	stored, err := e.DecodePixels(t.Context(), content(t, cmyk), 0, 0)
	if err != nil || stored.Components != 4 {
		t.Fatalf("%d components, %v", stored.Components, err)
	}
	// Black has much ink. Adobe stores it as small numbers.
	if stored.Pix[3] > 100 {
		t.Errorf("black is stored as %v", stored.Pix[:4])
	}
	for name, bad := range map[string]func() error{
		"length": func() error {
			_, err := e.EncodeJPEG(t.Context(), raster.Samples{Width: 120, Height: 90, Components: 3, Pix: rgb.Pix[1:]}, 90)
			return err
		},
		"components": func() error {
			_, err := e.ScalePixels(t.Context(), raster.Samples{Width: 180, Height: 90, Components: 2, Pix: rgb.Pix}, 10, 10)
			return err
		},
		"size": func() error {
			_, err := e.EncodeJPEG(t.Context(), raster.Samples{Height: 90, Components: 3}, 90)
			return err
		},
		"format": func() error { _, err := recode(encodePNG(t, m)); return err },
		"damage": func() error { _, err := recode(b[:len(b)/2]); return err },
	} {
		if bad() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestGIFFirstFrame(t *testing.T) {
	t.Parallel()
	out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, animation(t, 3))
	if c, err := png.DecodeConfig(bytes.NewReader(content(t, out))); err != nil || c.Height != 40 || c.Width != 60 {
		t.Errorf("got %v, %v", c, err)
	}
}

// animation returns a GIF of 60 × 40 pixels in which a square moves.
func animation(t testing.TB, frames int) *fileops.File {
	t.Helper()
	g := &gif.GIF{LoopCount: 3}
	for i := range frames {
		m := image.NewPaletted(image.Rect(0, 0, 60, 40), color.Palette{color.White, color.Black, color.RGBA{220, 20, 60, 255}})
		draw.Draw(m, image.Rect(5*i, 10, 5*i+10, 20), image.NewUniform(color.RGBA{220, 20, 60, 255}), image.Point{}, draw.Src)
		g.Image = append(g.Image, m)
		g.Delay = append(g.Delay, 5+i)
	}
	var b bytes.Buffer
	systest.NoError(t, gif.EncodeAll(&b, g))
	return fileops.Bytes("in.gif", b.Bytes())
}

func BenchmarkConvert(b *testing.B) {
	for _, tt := range []struct{ from, to string }{{"jpg", "webp"}, {"png", "jpg"}, {"jpg", "png"}} {
		if !slices.Contains(engine(b).Formats(), format.Format(tt.to)) {
			continue // requires libvips
		}
		b.Run(tt.from+" to "+tt.to, func(b *testing.B) {
			in := jpegFile(b, "in.jpg", photo(1200, 800), 92)
			if tt.from == "png" {
				in = fileops.Bytes("in.png", encodePNG(b, photo(1200, 800)))
			}
			a := engine(b).Convert()
			b.SetBytes(in.Size())
			for b.Loop() {
				if _, err := run(b.Context(), a, fileops.Args{"convert_to": tt.to}, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompress(b *testing.B) {
	in := jpegFile(b, "in.jpg", photo(1200, 800), 92)
	for _, level := range []string{"less_compression", "recommended_compression", "extreme_compression"} {
		b.Run(level, func(b *testing.B) {
			a := engine(b).Compress()
			b.SetBytes(in.Size())
			for b.Loop() {
				if _, err := run(b.Context(), a, fileops.Args{"compression_value": level}, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
