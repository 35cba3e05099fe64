package pdfops_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// quadrants returns an image whose corners are red, green, blue and white, with
// a gradient, so that all orientations differ.
func quadrants(w, h int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			shade := uint8(255 - 100*x/w - 50*y/h)
			c := color.NRGBA{A: 255}
			switch {
			case x < w/2 && y < h/2:
				c.R = shade
			case y < h/2:
				c.G = shade
			case x < w/2:
				c.B = shade
			default:
				c.R, c.G, c.B = shade, shade, shade
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

func asPNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

func asJPEG(t testing.TB, img image.Image, quality int) []byte {
	t.Helper()
	var b bytes.Buffer
	systest.NoError(t, jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}))
	return b.Bytes()
}

// write writes a file into a new directory.
func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	systest.NoError(t, os.WriteFile(p, b, 0o600))
	return p
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b := systest.ReadFile(t, path)
	return b
}

// render renders pages with poppler.
func render(t testing.TB, f *fileops.File, dpi float64) []image.Image {
	t.Helper()
	in := save(t, f)
	dir := t.TempDir()
	shell(t, "pdftoppm", "-r", fmt.Sprint(dpi), "-png", in, filepath.Join(dir, "p"))
	return pictures(t, dir)
}

// renderTo renders a one-page document at a given size.
func renderTo(t testing.TB, f *fileops.File, size image.Point) image.Image {
	t.Helper()
	dir := t.TempDir()
	shell(t, "pdftoppm", "-scale-to-x", fmt.Sprint(size.X), "-scale-to-y", fmt.Sprint(size.Y), "-png", save(t, f), filepath.Join(dir, "p"))
	return pictures(t, dir)[0]
}

// extract returns the images in a document. A soft mask follows its image.
func extract(t testing.TB, f *fileops.File) []image.Image {
	t.Helper()
	dir := t.TempDir()
	shell(t, "pdfimages", "-png", save(t, f), filepath.Join(dir, "p"))
	return pictures(t, dir)
}

func pictures(t testing.TB, dir string) []image.Image {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "p*.png"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	var out []image.Image
	for _, p := range files {
		img, err := png.Decode(bytes.NewReader(read(t, p)))
		systest.NoError(t, err)
		out = append(out, img)
	}
	return out
}

// difference returns the mean difference of the colour values (0 to 255) of two
// images on white.
func difference(t testing.TB, a, b image.Image) float64 {
	t.Helper()
	if a.Bounds().Size() != b.Bounds().Size() {
		t.Fatalf("size %v, want %v", a.Bounds().Size(), b.Bounds().Size())
	}
	onWhite := func(c color.Color) [3]float64 {
		r, g, b, a := c.RGBA()
		f := func(v uint32) float64 { return float64(v+0xffff-a) / 257 }
		return [3]float64{f(r), f(g), f(b)}
	}
	sum := 0.0
	size := a.Bounds().Size()
	for y := range size.Y {
		for x := range size.X {
			p := onWhite(a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y))
			q := onWhite(b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y))
			for i := range p {
				sum += math.Abs(p[i]-q[i]) / 3
			}
		}
	}
	return sum / float64(size.X*size.Y)
}

func toPDF(extra ...any) fileops.Args {
	args := fileops.Args{"convert_to": "pdf"}
	for i := 0; i < len(extra); i += 2 {
		args[extra[i].(string)] = extra[i+1]
	}
	return args
}

func TestFromJPEG(t *testing.T) {
	t.Parallel()
	src := asJPEG(t, quadrants(200, 120), 92)
	out := run(t, pdfops.FromImages(), toPDF(), fileops.Bytes("my photo.jpeg", src))
	if out.Name() != "my photo.pdf" {
		t.Errorf("name %q", out.Name())
	}
	sound(t, out)
	dir := t.TempDir()
	shell(t, "pdfimages", "-all", save(t, out), filepath.Join(dir, "i"))
	if got := read(t, filepath.Join(dir, "i-000.jpg")); !bytes.Equal(got, src) {
		t.Error("the JPEG file is changed")
	}
	want, _ := jpeg.Decode(bytes.NewReader(src))
	if d := difference(t, renderTo(t, out, want.Bounds().Size()), want); d > 2 {
		t.Errorf("difference %.1f", d)
	}
}

func TestOrientations(t *testing.T) {
	t.Parallel()
	plain := write(t, "p.jpg", asJPEG(t, quadrants(160, 96), 92))
	for n := 1; n <= 8; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			p := filepath.Join(t.TempDir(), "o.jpg")
			shell(t, "exiftool", "-n", fmt.Sprintf("-Orientation=%d", n), "-o", p, plain)
			upright := filepath.Join(t.TempDir(), "u.png")
			shell(t, "vips", "autorot", p, upright)
			want, err := png.Decode(bytes.NewReader(read(t, upright)))
			systest.NoError(t, err)
			out := run(t, pdfops.FromImages(), toPDF(), fileops.Path(p))
			if d := difference(t, renderTo(t, out, want.Bounds().Size()), want); d > 3 {
				t.Errorf("difference %.1f", d)
			}
		})
	}
}

func TestGrayAndCMYK(t *testing.T) {
	t.Parallel()
	src := write(t, "q.png", asPNG(t, quadrants(160, 96)))
	dir := t.TempDir()
	shell(t, "vips", "colourspace", src, filepath.Join(dir, "gray.jpg[Q=95]"), "b-w")
	shell(t, "vips", "icc_transform", src, filepath.Join(dir, "cmyk.jpg[Q=95]"), "cmyk", "--input-profile", "srgb")
	shell(t, "vips", "icc_transform", src, filepath.Join(dir, "bare.jpg[Q=95,strip]"), "cmyk", "--input-profile", "srgb")
	for name, want := range map[string]string{"gray": "gray 1", "cmyk": "icc 4", "bare": "cmyk 4"} {
		t.Run(name, func(t *testing.T) {
			out := run(t, pdfops.FromImages(), toPDF(), fileops.Path(filepath.Join(dir, name+".jpg")))
			sound(t, out)
			list := shell(t, "pdfimages", "-list", save(t, out))
			row := strings.Fields(strings.Split(list, "\n")[2])
			if got := row[5] + " " + row[6]; got != want {
				t.Errorf("colours %q, want %q", got, want)
			}
			orig, err := png.Decode(bytes.NewReader(read(t, src)))
			systest.NoError(t, err)
			if name == "gray" {
				if orig, err = jpeg.Decode(bytes.NewReader(read(t, filepath.Join(dir, "gray.jpg")))); err != nil {
					t.Fatal(err)
				}
			}
			// A device's CMYK differs from the profile's. Only an inverted image would be
			// far off.
			if d := difference(t, renderTo(t, out, orig.Bounds().Size()), orig); d > map[string]float64{"gray": 8, "cmyk": 45, "bare": 45}[name] {
				t.Errorf("difference %.1f", d)
			}
		})
	}
}

// opaque returns the colours of an image without its opacity.
func opaque(img image.Image) image.Image {
	out := image.NewNRGBA(img.Bounds())
	for i := range out.Rect.Dx() * out.Rect.Dy() {
		x, y := i%out.Rect.Dx(), i/out.Rect.Dx()
		var c color.NRGBA
		switch v := img.(type) {
		case *image.NRGBA64:
			n := v.NRGBA64At(x, y)
			c = color.NRGBA{uint8(n.R >> 8), uint8(n.G >> 8), uint8(n.B >> 8), 255}
		case *image.Paletted:
			c = color.NRGBAModel.Convert(v.Palette[v.ColorIndexAt(x, y)]).(color.NRGBA)
		default:
			c = color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
		}
		c.A = 255
		out.SetNRGBA(x, y, c)
	}
	return out
}

// alphaOf returns the opacity of an image as a gray image.
func alphaOf(img image.Image) image.Image {
	out := image.NewGray(img.Bounds())
	for i := range out.Pix {
		_, _, _, a := img.At(i%out.Rect.Dx(), i/out.Rect.Dx()).RGBA()
		out.Pix[i] = uint8(a >> 8)
	}
	return out
}

// addChunk inserts a chunk before the first IDAT.
func addChunk(b []byte, kind string, data []byte) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	chunk = append(append(chunk, kind...), data...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	at := bytes.Index(b, []byte("IDAT")) - 4
	return append(append(append([]byte{}, b[:at]...), chunk...), b[at:]...)
}

func TestFromPNG(t *testing.T) {
	t.Parallel()
	const w, h = 120, 80
	src := quadrants(w, h)
	gray, gray16, rgb16 := image.NewGray(src.Rect), image.NewGray16(src.Rect), image.NewRGBA64(src.Rect)
	alpha, alpha16 := image.NewNRGBA(src.Rect), image.NewNRGBA64(src.Rect)
	palettes := map[string]*image.Paletted{}
	for bits, n := range map[int]int{1: 2, 2: 4, 4: 16, 8: 200} {
		var p, clear color.Palette
		for i := range n {
			p = append(p, color.NRGBA{uint8(i * 255 / n), uint8(255 - i*200/n), uint8(i * 7), 255})
			clear = append(clear, color.NRGBA{uint8(i * 255 / n), uint8(255 - i*200/n), uint8(i * 7), uint8(i * 255 / (n - 1))})
		}
		palettes[fmt.Sprintf("palette %d", bits)] = image.NewPaletted(src.Rect, p)
		palettes[fmt.Sprintf("palette %d alpha", bits)] = image.NewPaletted(src.Rect, clear)
	}
	for y := range h {
		for x := range w {
			c := src.NRGBAAt(x, y)
			gray.Set(x, y, c)
			gray16.SetGray16(x, y, color.Gray16{uint16(x*500 + y)})
			rgb16.SetRGBA64(x, y, color.RGBA64{uint16(x * 500), uint16(y * 800), uint16(x * y), 0xffff})
			c.A = uint8(x * 2)
			alpha.SetNRGBA(x, y, c)
			alpha16.SetNRGBA64(x, y, color.NRGBA64{uint16(x * 500), uint16(y * 800), 0x8000, uint16(x * 540)})
			for _, p := range palettes {
				p.SetColorIndex(x, y, uint8(x*len(p.Palette)/w))
			}
		}
	}
	cases := map[string][]byte{
		"gray": asPNG(t, gray), "gray 16": asPNG(t, gray16), "rgb": asPNG(t, src), "rgb 16": asPNG(t, rgb16),
		"alpha": asPNG(t, alpha), "alpha 16": asPNG(t, alpha16),
	}
	for name, p := range palettes {
		cases[name] = asPNG(t, p)
	}
	key := gray.GrayAt(5, 5).Y
	cases["gray key"] = addChunk(cases["gray"], "tRNS", []byte{0, key})
	c := src.NRGBAAt(5, 5)
	cases["rgb key"] = addChunk(cases["rgb"], "tRNS", []byte{0, c.R, 0, c.G, 0, c.B})
	for _, name := range []string{"rgb", "alpha", "gray"} {
		out := filepath.Join(t.TempDir(), "i.png")
		shell(t, "vips", "pngsave", write(t, "s.png", cases[name]), out, "--interlace")
		cases[name+" interlaced"] = read(t, out)
	}
	twoBit := filepath.Join(t.TempDir(), "g.png")
	shell(t, "vips", "pngsave", write(t, "s.png", cases["gray"]), twoBit, "--bitdepth", "2")
	cases["gray 2"] = read(t, twoBit)

	for name, b := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := png.Decode(bytes.NewReader(b))
			systest.NoError(t, err)
			out := run(t, pdfops.FromImages(), toPDF(), fileops.Bytes("p.png", b))
			sound(t, out)
			if d := difference(t, renderTo(t, out, want.Bounds().Size()), want); d > 5 && name != "gray 2" { // "gray 2" is dithered
				t.Errorf("difference %.2f", d)
			}
			// The samples are identical, except for the low 8 of 16 bits, which pdfimages
			// drops.
			parts := extract(t, out)
			if d := difference(t, parts[0], opaque(want)); d > 0.6 && !strings.HasPrefix(name, "palette 1") { // shown as black and white
				t.Errorf("colours differ by %.2f", d)
			}
			if strings.Contains(name, "alpha") {
				if d := difference(t, parts[1], alphaOf(want)); d > 0.6 {
					t.Errorf("opacity differs by %.2f", d)
				}
			} else if len(parts) != 1 {
				t.Errorf("%d pictures", len(parts))
			}
			through := !strings.Contains(name, "interlaced") && !strings.HasPrefix(name, "alpha")
			if idat := b[bytes.Index(b, []byte("IDAT"))+4:]; through != bytes.Contains(content(t, out), idat[:12]) {
				t.Errorf("data taken over: %v, want %v", !through, through)
			}
			if strings.HasPrefix(name, "gray 16") || strings.HasPrefix(name, "rgb 16") || name == "alpha 16" {
				if list := shell(t, "pdfimages", "-list", save(t, out)); !regexp.MustCompile(`\d +16 +image`).MatchString(list) {
					t.Errorf("not 16 bits:\n%s", list)
				}
			}
		})
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	src := write(t, "q.png", asPNG(t, quadrants(64, 48)))
	for _, ext := range []string{"jpg", "png"} {
		p := filepath.Join(t.TempDir(), "p."+ext)
		shell(t, "vips", "icc_transform", src, p, "p3", "--input-profile", "srgb")
		out := run(t, pdfops.FromImages(), toPDF(), fileops.Path(p))
		sound(t, out)
		if list := shell(t, "pdfimages", "-list", save(t, out)); !strings.Contains(list, " icc ") {
			t.Errorf("%s: the profile is lost:\n%s", ext, list)
		}
	}
}

func TestPageSize(t *testing.T) {
	t.Parallel()
	small := asJPEG(t, quadrants(200, 100), 80)
	withDensity := func(dpi float64) []byte {
		p := filepath.Join(t.TempDir(), "d.jpg")
		shell(t, "exiftool", "-n", fmt.Sprintf("-JFIF:XResolution=%v", dpi), fmt.Sprintf("-JFIF:YResolution=%v", dpi),
			"-JFIF:ResolutionUnit=1", "-o", p, jfif(t, small))
		return read(t, p)
	}
	metre := binary.BigEndian.AppendUint32(nil, 5906) // 150 dpi
	density := append(append(append([]byte{}, metre...), metre...), 1)
	for name, c := range map[string]struct {
		file string
		b    []byte
		args []any
		want string
	}{
		"none":            {"a.jpg", small, nil, "150 x 75"},
		"300 dpi":         {"a.jpg", withDensity(300), nil, "48 x 24"},
		"72 dpi":          {"a.jpg", withDensity(72), nil, "200 x 100"},
		"png":             {"a.png", addChunk(asPNG(t, quadrants(300, 150)), "pHYs", density), nil, "144 x 72"},
		"camera":          {"a.jpg", asJPEG(t, image.NewGray(image.Rect(0, 0, 4000, 3000)), 50), nil, "842 x 631.5"},
		"margin":          {"a.jpg", small, []any{"margin", 10}, "170 x 95"},
		"a4":              {"a.jpg", small, []any{"page_size", "a4"}, "841.89 x 595.276"},
		"a4 portrait":     {"a.jpg", small, []any{"page_size", "a4", "orientation", "portrait"}, "595.276 x 841.89"},
		"letter":          {"a.jpg", asJPEG(t, quadrants(100, 200), 80), []any{"page_size", "letter"}, "612 x 792"},
		"letter turned":   {"a.jpg", asJPEG(t, quadrants(100, 200), 80), []any{"page_size", "letter", "orientation", "landscape"}, "792 x 612"},
		"large on letter": {"a.jpg", asJPEG(t, quadrants(3000, 2000), 80), []any{"page_size", "letter", "margin", 50.0}, "792 x 612"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, pdfops.FromImages(), toPDF(c.args...), fileops.Bytes(c.file, c.b))
			sound(t, out)
			info := shell(t, "pdfinfo", save(t, out))
			if !strings.Contains(info, "Page size:       "+c.want+" pts") {
				t.Errorf("want %s:\n%s", c.want, info)
			}
			if name == "large on letter" {
				img := render(t, out, 72)[0]
				if r, g, b, _ := img.At(40, 300).RGBA(); r+g+b != 3*0xffff {
					t.Error("the margin is not empty")
				}
				if r, g, _, _ := img.At(70, 100).RGBA(); r < 0x8000 || g > 0x4000 {
					t.Error("the picture is not where it should be")
				}
			}
		})
	}
}

// jfif returns the path of a copy with a JFIF header, which Go does not write.
func jfif(t *testing.T, b []byte) string {
	t.Helper()
	head := []byte{0xff, 0xd8, 0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0}
	return write(t, "j.jpg", append(head, b[2:]...))
}

func TestImagesToPDF(t *testing.T) {
	t.Parallel()
	in := []*fileops.File{
		fileops.Bytes("first.png", asPNG(t, quadrants(64, 64))),
		fileops.Bytes("second.jpg", asJPEG(t, quadrants(80, 40), 90)),
		fileops.Bytes("third.png", asPNG(t, image.NewGray(image.Rect(0, 0, 30, 60)))),
	}
	out := run(t, pdfops.ImagesToPDF(), toPDF(), in...)
	if out.Name() != "first.pdf" {
		t.Errorf("name %q", out.Name())
	}
	sound(t, out)
	info := shell(t, "pdfinfo", "-l", "9", save(t, out))
	for i, want := range []string{"48 x 48", "60 x 30", "22.5 x 45"} {
		if !regexp.MustCompile(fmt.Sprintf(`Page +%d size: +%s`, i+1, want)).MatchString(info) {
			t.Errorf("page %d is not %s:\n%s", i+1, want, info)
		}
	}
}

func TestBadPictures(t *testing.T) {
	t.Parallel()
	good := asPNG(t, quadrants(64, 64))
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 0xff
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge[16:], 1<<20)
	binary.BigEndian.PutUint32(huge[20:], 1<<20)
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	photo := asJPEG(t, quadrants(64, 64), 90)
	twelve := bytes.Clone(photo)
	twelve[bytes.Index(twelve, []byte{0xff, 0xc0})+1] = 0xc9 // arithmetic coding
	for name, c := range map[string]struct {
		file string
		b    []byte
		kind error
	}{
		"checksum":   {"a.png", flipped, fileops.ErrCorruptInput},
		"truncated":  {"a.png", good[:len(good)-20], fileops.ErrCorruptInput},
		"bomb":       {"a.png", huge, fileops.ErrLimit},
		"cut jpeg":   {"a.jpg", photo[:len(photo)-300], fileops.ErrCorruptInput},
		"arithmetic": {"a.jpg", twelve, fileops.ErrUnsupportedInput},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fails(t, c.kind, pdfops.FromImages(), toPDF(), fileops.Bytes(c.file, c.b))
		})
	}
}
