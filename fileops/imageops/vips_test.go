//go:build cgo

package imageops_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/systest"
)

// field returns a header field as reported by vipsheader.
func field(t testing.TB, f *fileops.File, name string) string {
	t.Helper()
	return strings.TrimSpace(tool(t, "vipsheader", "-f", name, save(t, f)))
}

func TestName(t *testing.T) {
	t.Parallel()
	if got := engine(t).Name(); !strings.HasPrefix(got, "libvips 8.") || !strings.Contains(tool(t, "vips", "--version"), strings.TrimPrefix(got, "libvips ")) {
		t.Errorf("got %q", got)
	}
}

// TestUntrustedLoadersAreOff calls libvips directly, without the actions.
func TestUntrustedLoadersAreOff(t *testing.T) {
	engine(t)
	dir := t.TempDir()
	pdf := content(t, fileopstest.Sample(t, format.PDF))
	for name, b := range map[string][]byte{
		"magick": content(t, fileopstest.Sample(t, format.BMP)),
		"psd":    content(t, fileopstest.Sample(t, format.PSD)),
		"pdf":    pdf,
	} {
		if ref, err := vips.NewImageFromBuffer(b); err == nil {
			ref.Close()
			t.Errorf("%s can be loaded", name)
		}
	}
	path := filepath.Join(dir, "in.pdf")
	systest.NoError(t, os.WriteFile(path, pdf, 0o600))
	if ref, err := vips.NewThumbnailFromFile(path, 10, 10, vips.InterestingNone); err == nil {
		ref.Close()
		t.Error("a PDF can be loaded from a path")
	}
}

func TestAnimation(t *testing.T) {
	t.Parallel()
	in := animation(t, 4)
	webp := one(t, engine(t).Convert(), fileops.Args{"convert_to": "webp"}, in)
	back := one(t, engine(t).Convert(), fileops.Args{"convert_to": "gif"}, webp)
	small := one(t, engine(t).Convert(), fileops.Args{"convert_to": "webp", "width": 31}, in)
	for name, f := range map[string]*fileops.File{"webp": webp, "gif": back, "smaller": small} {
		if n := field(t, f, "n-pages"); n != "4" {
			t.Errorf("%s has %s frames", name, n)
		}
		if d := field(t, f, "delay"); d != "50 60 70 80" {
			t.Errorf("%s has delays %s", name, d)
		}
		if l := field(t, f, "loop"); l != field(t, in, "loop") {
			t.Errorf("%s loops %s times", name, l)
		}
	}
	if w := field(t, small, "width"); w != "31" {
		t.Errorf("width %s", w)
	}
	// ffmpeg, which does not use libvips, decodes the last frame.
	frame := content(t, made(t, "f.png", "ffmpeg", "-v", "error", "-i", save(t, back), "-vf", `select=eq(n\,3)`, "-frames:v", "1", "-pix_fmt", "rgb24", "OUT"))
	m, err := png.Decode(strings.NewReader(string(frame)))
	systest.NoError(t, err)
	if r, g, _, _ := m.At(20, 15).RGBA(); r>>8 < 180 || g>>8 > 80 {
		t.Errorf("no square where it should be: %d %d", r>>8, g>>8)
	}
	for _, level := range []string{"less", "recommended", "extreme"} {
		out := one(t, engine(t).Compress(), fileops.Args{"compression_value": level}, in)
		if n := field(t, out, "n-pages"); n != "4" {
			t.Errorf("%s: %s frames left", level, n)
		}
	}
}

func TestAnimatedPNGStaysOne(t *testing.T) {
	t.Parallel()
	in := made(t, "in.png", "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=64x48:d=1:r=4", "-f", "apng", "OUT")
	out := one(t, engine(t).Compress(), fileops.Args{"compression_value": "extreme"}, in)
	if !strings.Contains(string(content(t, out)), "acTL") {
		t.Error("the animation is lost")
	}
}

func TestFrameLimits(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]imageops.Options{"frames": {MaxFrames: 4}, "pixels": {MaxTotalPixels: 4 * 60 * 40}} {
		e, err := imageops.New(t.Context(), o)
		systest.NoError(t, err)
		if _, err := run(t.Context(), e.Convert(), fileops.Args{"convert_to": "webp"}, animation(t, 4)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := run(t.Context(), e.Convert(), fileops.Args{"convert_to": "webp"}, animation(t, 5)); !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// pages returns a TIFF with pages of the given sizes and different grays.
func pages(t testing.TB, sizes ...int) *fileops.File {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for i, n := range sizes {
		m := fileopstest.Picture(n, n)
		for x := range n {
			m.Set(x, i, color.Black)
		}
		p := filepath.Join(dir, fmt.Sprintf("%d.png", i))
		systest.NoError(t, os.WriteFile(p, encodePNG(t, m), 0o600))
		files = append(files, p)
	}
	joined := filepath.Join(dir, "all.v")
	tool(t, "vips", "arrayjoin", strings.Join(files, " "), joined, "--across", "1")
	return made(t, "scan.tiff", "vips", "tiffsave", joined, "OUT", "--page-height", strconv.Itoa(sizes[0]), "--compression", "none")
}

func TestPagesOfTIFF(t *testing.T) {
	t.Parallel()
	in := pages(t, 100, 100, 100)
	if n := field(t, in, "n-pages"); n != "3" {
		t.Fatalf("the input has %s pages", n)
	}
	for _, to := range []string{"png", "webp", "gif", "bmp"} {
		out := mustRun(t, engine(t).Convert(), fileops.Args{"convert_to": to}, in)
		if len(out) != 3 {
			t.Fatalf("%s: %d results", to, len(out))
		}
		for i, f := range out {
			if want := fmt.Sprintf("scan-%03d.%s", i+1, to); f.Name() != want {
				t.Errorf("name %s, want %s", f.Name(), want)
			}
			m := decoded(t, f)
			if m.Bounds() != image.Rect(0, 0, 100, 100) {
				t.Fatalf("%s: %v", f.Name(), m.Bounds())
			}
			if v := onWhite(m.At(95, i))[1]; v > 60 {
				t.Errorf("%s: the line of page %d is not there: %.0f", f.Name(), i+1, v)
			}
		}
	}
	last := in.Size() + 1
	for _, level := range []string{"less", "recommended", "extreme"} {
		out := one(t, engine(t).Compress(), fileops.Args{"compression_value": level}, in)
		if n := field(t, out, "n-pages"); n != "3" {
			t.Errorf("%s: %s pages left", level, n)
		}
		if out.Size() > last || level != "less" && out.Size() >= in.Size() {
			t.Errorf("%s: %d bytes after %d", level, out.Size(), last)
		}
		last = out.Size()
	}
}

func TestPagesOfDifferentSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// libvips cannot write such a TIFF, but pyramids, whose other pages are smaller
	// copies of the first.
	src := filepath.Join(dir, "in.png")
	systest.NoError(t, os.WriteFile(src, encodePNG(t, photo(600, 400)), 0o600))
	pyramid := made(t, "scan.tiff", "vips", "tiffsave", src, "OUT", "--pyramid", "--tile", "--tile-width", "128", "--tile-height", "128")
	if w := field(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg"}, pyramid), "width"); w != "600" {
		t.Errorf("a pyramid has a width of %s", w)
	}
	copies := []byte("\xfe\x00\x04\x00\x01\x00\x00\x00\x01\x00\x00\x00") // NewSubfileType 1
	pages := bytes.ReplaceAll(content(t, pyramid), copies, append(copies[:8:8], 0, 0, 0, 0))
	in := fileops.Bytes("scan.tiff", pages)
	out := mustRun(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg"}, in)
	if len(out) < 2 {
		t.Fatalf("%d results", len(out))
	}
	if a, b := field(t, out[0], "width"), field(t, out[1], "width"); a != "600" || b != "300" {
		t.Errorf("widths %s and %s", a, b)
	}
	same := mustRun(t, engine(t).Convert(), fileops.Args{"convert_to": "tiff", "crop": "1:1"}, in)
	if len(same) != len(out) || field(t, same[0], "width") != "400" || field(t, same[1], "width") != "200" {
		t.Errorf("%d results of the same format", len(same))
	}
	for name, in := range map[string]*fileops.File{"pages": in, "pyramid": pyramid} {
		if kept := one(t, engine(t).Compress(), nil, in); string(content(t, kept)) != string(content(t, in)) {
			t.Errorf("%s: a file that cannot be written again was changed", name)
		}
	}
}

func TestFaxStaysLossless(t *testing.T) {
	t.Parallel()
	m := image.NewGray(image.Rect(0, 0, 400, 300))
	for i := range m.Pix {
		if (i/400/20+i%400/30)%3 == 0 {
			m.Pix[i] = 255
		}
	}
	src := save(t, fileops.Bytes("src.png", encodePNG(t, m)))
	in := made(t, "in.tiff", "vips", "tiffsave", src, "OUT", "--bitdepth", "1", "--compression", "none")
	for _, level := range []string{"less", "extreme"} {
		out := one(t, engine(t).Compress(), fileops.Args{"compression_value": level}, in)
		if out.Size()*2 > in.Size() {
			t.Errorf("%s: %d bytes of %d", level, out.Size(), in.Size())
		}
		if got := tags(t, out); got["EXIF:BitsPerSample"] != 1.0 {
			t.Errorf("%s: %v bits per sample", level, got["EXIF:BitsPerSample"])
		}
		if d := difference(m, decoded(t, out)); d != 0 {
			t.Errorf("%s: the picture differs by %.2f", level, d)
		}
	}
}

func TestCMYK(t *testing.T) {
	t.Parallel()
	src := save(t, fileops.Bytes("src.png", encodePNG(t, fileopstest.Picture(160, 120))))
	dir := t.TempDir()
	cmyk := filepath.Join(dir, "cmyk.tif")
	tool(t, "vips", "icc_transform", src, cmyk, "cmyk", "--input-profile", "srgb")
	with := made(t, "with.jpg", "vips", "copy", cmyk, "OUT[Q=95]")
	without := made(t, "without.jpg", "vips", "copy", cmyk, "OUT[Q=95,strip]")
	for _, in := range []*fileops.File{with, without} {
		if got := tags(t, in); got["File:ColorComponents"] != 4.0 {
			t.Fatalf("the input has %v components", got["File:ColorComponents"])
		}
		for _, to := range []string{"png", "webp", "tiff", "jxl", "avif"} {
			out := one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, in)
			if d := difference(fileopstest.Picture(160, 120), decoded(t, out)); d > 24 { // the gamut is smaller
				t.Errorf("%s to %s: the picture differs by %.1f", in.Name(), to, d)
			}
			if f, b := field(t, out, "format"), field(t, out, "bands"); !strings.Contains(f, "UCHAR") || b != "3" {
				t.Errorf("%s to %s: %s, %s bands", in.Name(), to, f, b)
			}
		}
		out := one(t, engine(t).Compress(), fileops.Args{"compression_value": "extreme"}, in)
		if d := difference(fileopstest.Picture(160, 120), decoded(t, out)); d > 24 {
			t.Errorf("compressed: the picture differs by %.1f", d)
		}
	}
}

// deep returns a PNG with 16 bits per sample.
func deep(t testing.TB) *fileops.File {
	m := image.NewNRGBA64(image.Rect(0, 0, 160, 120))
	p := photo(160, 120)
	for y := range 120 {
		for x := range 160 {
			r, g, b, _ := p.At(x, y).RGBA()
			m.SetNRGBA64(x, y, color.NRGBA64{uint16(r), uint16(g), uint16(b), 0xffff})
		}
	}
	return fileops.Bytes("deep.png", encodePNG(t, m))
}

func TestSixteenBits(t *testing.T) {
	t.Parallel()
	in := deep(t)
	for _, to := range engine(t).Formats() {
		if to == format.PNG {
			continue
		}
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			out := one(t, engine(t).Convert(), fileops.Args{"convert_to": string(to)}, in)
			if d := difference(photo(160, 120), decoded(t, out)); d > 8 {
				t.Errorf("the picture differs by %.1f", d)
			}
			if deep := strings.Contains(field(t, out, "format"), "USHORT"); deep != (to == format.TIFF || to == format.JXL) {
				t.Errorf("format %s", field(t, out, "format"))
			}
		})
	}
	for _, level := range []string{"less", "recommended", "extreme"} {
		out := one(t, engine(t).Compress(), fileops.Args{"compression_value": level}, in)
		if d := difference(photo(160, 120), decoded(t, out)); d > 8 {
			t.Errorf("%s: the picture differs by %.1f", level, d)
		}
		if deep := strings.Contains(field(t, out, "format"), "USHORT"); deep != (level == "less") {
			t.Errorf("%s: %s", level, field(t, out, "format"))
		}
	}
}

// wideGamut returns a picture in Display P3 with its profile.
func wideGamut(t testing.TB) *fileops.File {
	t.Helper()
	src := save(t, fileops.Bytes("src.png", encodePNG(t, fileopstest.Picture(160, 120))))
	return made(t, "p3.png", "vips", "icc_transform", src, "OUT", "p3", "--input-profile", "srgb")
}

func TestColourProfile(t *testing.T) {
	t.Parallel()
	in := wideGamut(t)
	// decodedSRGB applies the profile before comparing.
	srgb := func(t *testing.T, f *fileops.File) image.Image {
		return decoded(t, made(t, "srgb.png", "vips", "icc_transform", save(t, f), "OUT", "srgb", "--embedded", "--input-profile", "srgb", "--depth", "8"))
	}
	if d := difference(fileopstest.Picture(160, 120), decoded(t, in)); d < 4 {
		t.Fatalf("the input is hardly different without its profile: %.1f", d)
	}
	for _, to := range engine(t).Formats() {
		if to == format.PNG {
			continue
		}
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			out := one(t, engine(t).Convert(), fileops.Args{"convert_to": string(to), "strip_metadata": true}, in)
			if d := difference(fileopstest.Picture(160, 120), srgb(t, out)); d > 8 {
				t.Errorf("the colours differ by %.1f", d)
			}
			_, has := tags(t, out)["ICC_Profile:ProfileDescription"]
			switch to {
			case format.JPG, format.WebP, format.TIFF:
				if !has {
					t.Error("the profile is lost")
				}
			case format.GIF, format.BMP:
				if has {
					t.Error("a profile where there can be none")
				}
			}
		})
	}
	for _, level := range []string{"less", "recommended", "extreme"} {
		out := one(t, engine(t).Compress(), fileops.Args{"compression_value": level}, in)
		if d := difference(fileopstest.Picture(160, 120), srgb(t, out)); d > 8 {
			t.Errorf("%s: the colours differ by %.1f", level, d)
		}
	}
}

// TestGrayProfile uses a profile that is wrong for RGB, which WebP and HEIF
// store.
func TestGrayProfile(t *testing.T) {
	t.Parallel()
	gray := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range gray.Pix {
		gray.Pix[i] = byte(i % 64 * 4)
	}
	p := save(t, fileops.Bytes("gray.png", encodePNG(t, gray)))
	profile := filepath.Join(t.TempDir(), "gray.icc")
	systest.NoError(t, os.WriteFile(profile, grayProfile(), 0o600))
	in := made(t, "gray.jpg", "vips", "jpegsave", p, "OUT", "--profile", profile, "--Q", "95")
	if got := tags(t, in)["ICC_Profile:ColorSpaceData"]; got != "GRAY" {
		t.Fatalf("the input has a profile for %v", got)
	}
	for _, to := range []string{"webp", "avif", "heic", "png", "tiff", "gif"} {
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, in)
		got := tags(t, out)["ICC_Profile:ColorSpaceData"]
		if rgb := to == "webp" || to == "avif" || to == "heic"; rgb && got == "GRAY" {
			t.Errorf("%s: a gray profile in a picture that is not gray", to)
		}
		if m := decoded(t, out); onWhite(m.At(60, 10))[0]-onWhite(m.At(4, 10))[0] < 150 {
			t.Errorf("%s: the picture is gone", to)
		}
	}
}

// grayProfile returns an ICC profile for gray with a gamma of 2.2 (ICC.1:2001-04).
func grayProfile() []byte {
	tag := func(sig string, off, size int) string {
		return sig + be32(off) + be32(size)
	}
	desc := "desc\x00\x00\x00\x00" + be32(5) + "gray\x00" + strings.Repeat("\x00", 4+4+2+1+67)
	for len(desc)%4 != 0 {
		desc += "\x00"
	}
	wtpt := "XYZ \x00\x00\x00\x00\x00\x00\xf6\xd6\x00\x01\x00\x00\x00\x00\xd3\x2d"
	curve := "curv\x00\x00\x00\x00" + be32(1) + "\x02\x33\x00\x00"
	at := 128 + 4 + 3*12
	body := be32(3) + tag("desc", at, len(desc)) + tag("wtpt", at+len(desc), len(wtpt)) + tag("kTRC", at+len(desc)+len(wtpt), len(curve)) + desc + wtpt + curve
	head := be32(128+len(body)) + "\x00\x00\x00\x00\x02\x10\x00\x00mntrGRAYXYZ " + strings.Repeat("\x00", 12) + "acsp" + strings.Repeat("\x00", 28) +
		"\x00\x00\xf6\xd6\x00\x01\x00\x00\x00\x00\xd3\x2d"
	head += strings.Repeat("\x00", 128-len(head))
	return []byte(head + body)
}

func be32(n int) string { return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) }

func TestMetadata(t *testing.T) {
	t.Parallel()
	path := save(t, jpegFile(t, "in.jpg", fileopstest.Picture(160, 120), 90))
	tool(t, "exiftool", "-n", "-Make=Maker", "-Orientation=6", "-GPSLatitude=48.1", "-GPSLatitudeRef=N", "-XMP:City=Somewhere", "-IPTC:City=Somewhere", path)
	in := fileops.Path(path)
	for _, to := range []string{"webp", "tiff", "png", "avif", "heic", "jxl"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			kept := tags(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, in))
			// libvips writes no EXIF directory into TIFF, and into JPEG XL only since
			// 8.15.
			if to != "tiff" && to != "jxl" && kept["EXIF:Make"] != "Maker" {
				t.Errorf("the camera is lost: %v", kept["EXIF:Make"])
			}
			if o, ok := kept["EXIF:Orientation"]; ok && o != 1.0 {
				t.Errorf("orientation %v although it was applied", o)
			}
			for k, v := range tags(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": to, "strip_metadata": true}, in)) {
				if strings.Contains(fmt.Sprint(v), "Maker") || strings.Contains(fmt.Sprint(v), "Somewhere") || strings.Contains(k, "GPS") {
					t.Errorf("%s is still there: %v", k, v)
				}
			}
		})
	}
	out := one(t, engine(t).Compress(), fileops.Args{"compression_value": "extreme"}, in)
	for k, v := range tags(t, out) {
		if strings.Contains(fmt.Sprint(v), "Maker") || strings.Contains(k, "GPS") || strings.HasPrefix(k, "XMP:") {
			t.Errorf("compressed: %s is still there: %v", k, v)
		}
	}
	if c := decoded(t, out).Bounds(); c.Dx() != 120 {
		t.Errorf("compressed: %v, the orientation is lost", c)
	}
}

func TestSVG(t *testing.T) {
	t.Parallel()
	svg := func(s string) *fileops.File { return fileops.Bytes("in.svg", []byte(s)) }
	small := svg(`<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="10" height="10" fill="red"/></svg>`)
	m := decoded(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "png", "width": 400}, small))
	if m.Bounds() != image.Rect(0, 0, 400, 200) {
		t.Fatalf("drawn with %v", m.Bounds())
	}
	// The edge is sharp if the drawing is drawn and not scaled up.
	if a, b := onWhite(m.At(198, 100)), onWhite(m.At(201, 100)); a[1] > 5 || b[1] < 250 {
		t.Errorf("the edge is soft: %v, %v", a, b)
	}
	for name, in := range map[string]*fileops.File{
		"size":     svg(`<svg xmlns="http://www.w3.org/2000/svg" width="1000000" height="1000000"><rect width="10" height="10"/></svg>`),
		"asked":    small,
		"view box": svg(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90000 90000"><rect width="10" height="10"/></svg>`),
	} {
		args := fileops.Args{"convert_to": "png"}
		if name == "asked" {
			args["width"] = 65535
		}
		if _, err := run(t.Context(), engine(t).Convert(), args, in); !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSVGReadsNoFiles(t *testing.T) {
	t.Parallel()
	secret := save(t, fileops.Bytes("secret.png", encodePNG(t, fileopstest.Picture(50, 50))))
	for name, ref := range map[string]string{"url": "file://" + secret, "path": secret, "include": ""} {
		doc := `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="50" height="50"><image xlink:href="` + ref + `" width="50" height="50"/></svg>`
		if name == "include" {
			doc = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xi="http://www.w3.org/2001/XInclude" width="50" height="50"><text y="20"><xi:include parse="text" href="file:///etc/hostname"/></text></svg>`
		}
		out, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("in.svg", []byte(doc)))
		if err != nil {
			continue // rejected
		}
		m := decoded(t, out[0])
		for y := range 50 {
			for x := range 50 {
				if _, _, _, a := m.At(x, y).RGBA(); a != 0 {
					t.Fatalf("%s: something was drawn", name)
				}
			}
		}
	}
}

func TestContentOfAnotherFormat(t *testing.T) {
	t.Parallel()
	msl := `<?xml version="1.0"?><image><read filename="x.png"/></image>`
	for name, b := range map[string][]byte{"in.png": []byte(msl), "in.svg": []byte(msl), "in.jpg": content(t, fileopstest.Sample(t, format.PNG))} {
		_, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "webp"}, fileops.Bytes(name, b))
		if !errors.Is(err, fileops.ErrFormatMismatch) && !errors.Is(err, fileops.ErrCorruptInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDensity(t *testing.T) {
	t.Parallel()
	for _, to := range []format.Format{format.JPG, format.PNG, format.TIFF} {
		var b strings.Builder
		systest.NoError(t, engine(t).Encode(t.Context(), fileopstest.Picture(40, 30), to, 80, 150, &b))
		f := fileops.Bytes("x."+string(to), []byte(b.String()))
		x, err := strconv.ParseFloat(field(t, f, "xres"), 64)
		if err != nil || x < 5.85 || x > 5.96 { // pixels per millimetre
			t.Errorf("%s: %v, %v", to, x, err)
		}
	}
}

// A resolution is kept. A source without one does not get libvips' pixel per
// millimetre; formats that require a resolution get 72 dpi.
func TestResolution(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 64, 48))))
	bare := fileops.Bytes("a.png", b.Bytes())
	path := save(t, fileops.Bytes("dense.jpg", content(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "jpg"}, bare))))
	tool(t, "exiftool", "-n", "-overwrite_original", "-EXIF:XResolution=300", "-EXIF:YResolution=300", "-EXIF:ResolutionUnit=2",
		"-JFIF:XResolution=300", "-JFIF:YResolution=300", "-JFIF:ResolutionUnit=1", path)
	dense := systest.ReadFile(t, path)
	// Every resolution in a file, in pixels per inch.
	read := func(f *fileops.File) map[string]float64 {
		all := tags(t, f)
		number := func(tag string) float64 { v, _ := all[tag].(float64); return v }
		out := make(map[string]float64)
		if number("JFIF:ResolutionUnit") == 1 {
			out["JFIF"] = number("JFIF:XResolution")
		}
		if unit := number("EXIF:ResolutionUnit"); unit > 1 {
			out["EXIF"] = number("EXIF:XResolution") * map[float64]float64{2: 1, 3: 2.54}[unit]
		}
		if v := number("PNG:PixelsPerUnitX"); v > 0 {
			out["pHYs"] = v * 0.0254
		}
		if v := number("File:PixelsPerMeterX"); v > 0 {
			out["BMP"] = v * 0.0254
		}
		return out
	}
	for _, to := range []string{"jpg", "png", "webp", "tiff", "bmp", "avif", "heic"} {
		for name, in := range map[string]*fileops.File{"none": bare, "300": fileops.Bytes("a.jpg", dense)} {
			f := in
			if in.Name() != "a."+to {
				f = one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, in)
			}
			got := read(f)
			for where, dpi := range got {
				if name == "300" && math.Abs(dpi-300) > 1 || name == "none" && (where != "EXIF" || dpi != 72) {
					t.Errorf("from %s to %s: %s has %v dpi", name, to, where, dpi)
				}
			}
			if name == "300" && len(got) == 0 {
				t.Errorf("the resolution is lost in %s", to)
			}
			if back, ok := map[string]string{"bmp": "png", "heic": "jpg"}[to]; ok && name == "300" {
				again := read(one(t, engine(t).Convert(), fileops.Args{"convert_to": back}, f))
				for where, dpi := range again {
					if math.Abs(dpi-300) > 1 {
						t.Errorf("from %s to %s: %s has %v dpi", to, back, where, dpi)
					}
				}
				if len(again) == 0 {
					t.Errorf("from %s to %s the resolution is lost", to, back)
				}
			}
		}
	}
}

func TestCompressLevels(t *testing.T) {
	t.Parallel()
	src := save(t, fileops.Bytes("src.png", encodePNG(t, photo(400, 300))))
	for _, tt := range []struct {
		name   string
		in     *fileops.File
		differ bool // each level is smaller than the previous one, not just as small
	}{
		{"png", fileops.Bytes("in.png", encodePNG(t, photo(400, 300))), false},
		{"webp", made(t, "in.webp", "vips", "copy", src, "OUT[Q=97]"), true},
		{"lossless webp", made(t, "in.webp", "vips", "copy", src, "OUT[lossless,effort=0]"), true},
		{"tiff", made(t, "in.tiff", "vips", "copy", src, "OUT[compression=none]"), true},
		{"avif", made(t, "in.avif", "vips", "copy", src, "OUT[Q=90,effort=0,compression=av1]"), true},
		{"heic", made(t, "in.heic", "vips", "copy", src, "OUT[Q=90]"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			last := tt.in.Size() + 1
			for _, level := range []string{"less_compression", "recommended_compression", "extreme_compression"} {
				out := one(t, engine(t).Compress(), fileops.Args{"compression_value": level}, tt.in)
				if out.Size() > last || tt.differ && out.Size() == last {
					t.Errorf("%s: %d bytes after %d", level, out.Size(), last)
				}
				last = out.Size()
				if d := difference(photo(400, 300), decoded(t, out)); d > 9 {
					t.Errorf("%s: the picture differs by %.1f", level, d)
				}
			}
		})
	}
}

func TestTargetTooLarge(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.png", encodePNG(t, image.NewGray(image.Rect(0, 0, 20000, 4))))
	_, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "webp"}, in)
	if !errors.Is(err, fileops.ErrLimit) || !strings.Contains(fileops.Message(err), "16383") {
		t.Errorf("got %v", err)
	}
	mustRun(t, engine(t).Convert(), fileops.Args{"convert_to": "webp", "width": 16000}, in)
}

// TestCancelWhileComputing cancels while the decoder is running.
func TestCancelWhileComputing(t *testing.T) {
	t.Parallel()
	in := jpegFile(t, "in.jpg", photo(3000, 2000), 90)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	e := engine(t)
	r := fileops.Runner{Progress: func(done float64) { cancel(why) }} // after the header
	err := r.Run(ctx, e.Convert(), fileops.Args{"convert_to": "png"}, fileops.ToDir(t.TempDir()), in)
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsLeaked(t *testing.T) {
	var before, after vips.MemoryStats
	e, in := engine(t), fileops.Bytes("in.png", encodePNG(t, withHole()))
	bad := content(t, fileopstest.Sample(t, format.JPG))
	work := func() {
		for range 20 {
			for _, to := range []string{"jpg", "webp", "bmp", "ico"} {
				mustRun(t, e.Convert(), fileops.Args{"convert_to": to}, in)
			}
			if _, err := run(t.Context(), e.Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("in.jpg", bad[:len(bad)/2])); err == nil {
				t.Fatal("damaged input is accepted")
			}
		}
	}
	work()
	vips.ReadVipsMemStats(&before)
	work()
	vips.ReadVipsMemStats(&after)
	if after.Allocs > before.Allocs+10 || after.Mem > before.Mem+1<<20 {
		t.Errorf("libvips holds %d allocations of %d bytes, before %d of %d", after.Allocs, after.Mem, before.Allocs, before.Mem)
	}
}

func TestCMYKSamples(t *testing.T) {
	t.Parallel()
	e := engine(t)
	ink := raster.Samples{Width: 64, Height: 64, Components: 4, Pix: bytes.Repeat([]byte{250, 200, 100, 30}, 64*64)}
	b, err := e.EncodeJPEG(t.Context(), ink, 95)
	systest.NoError(t, err)
	got, err := e.DecodePixels(t.Context(), b, 8, 8)
	if err != nil || got.Components != 4 || len(got.Pix) != 8*8*4 {
		t.Fatalf("%d bytes, %d components, %v", len(got.Pix), got.Components, err)
	}
	for i, want := range []byte{250, 200, 100, 30} {
		if d := int(got.Pix[i]) - int(want); d < -3 || d > 3 {
			t.Errorf("component %d: %d, want %d", i, got.Pix[i], want)
		}
	}
	// poppler shows how a PDF reader interprets the values in the file.
	pdf := fmt.Sprintf("1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "+
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 64 64]/Resources<</XObject<</I 5 0 R>>>>/Contents 4 0 R>>endobj "+
		"4 0 obj<</Length 20>>stream\n64 0 0 64 0 0 cm /I Do\nendstream endobj "+
		"5 0 obj<</Type/XObject/Subtype/Image/Width 64/Height 64/BitsPerComponent 8/ColorSpace/DeviceCMYK/Filter/DCTDecode/Length %d>>stream\n%s\nendstream endobj", len(b), b)
	path := filepath.Join(t.TempDir(), "in.pdf")
	systest.NoError(t, os.WriteFile(path, []byte("%PDF-1.4\n"+pdf+"\ntrailer<</Root 1 0 R>>"), 0o600))
	root := filepath.Join(t.TempDir(), "shot")
	tool(t, "pdftoppm", "-r", "72", "-png", "-singlefile", path, root)
	c := onWhite(decoded(t, fileops.Path(root+".png")).At(32, 32))
	// Much cyan and magenta, some yellow, hardly any black: blue.
	if c[2] < c[0] || c[2] < c[1] {
		t.Errorf("the reader shows %v", c)
	}
}

// TestFitOfAnimation checks that every frame is laid out and that delays stay
// the same.
func TestFitOfAnimation(t *testing.T) {
	t.Parallel()
	in := animation(t, 5)
	for _, fit := range []string{"cover", "contain", "fill"} {
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "webp", "width": 60, "height": 20, "fit": fit, "background": "red"}, in)
		for name, want := range map[string]string{"n-pages": field(t, in, "n-pages"), "height": "20", "width": "60"} {
			if got := field(t, out, name); got != want {
				t.Errorf("%s: %s is %s, want %s", fit, name, got, want)
			}
		}
		if got, want := field(t, out, "delay"), field(t, in, "delay"); got != want {
			t.Errorf("%s: delays %s, want %s", fit, got, want)
		}
	}
}

// TestDrawingDensity checks that a drawing is drawn for a density, not scaled.
func TestDrawingDensity(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="1in" height="0.5in" viewBox="0 0 96 48"><path d="M0 0h48v48H0z"/></svg>`))
	for dpi, want := range map[int]image.Point{0: {96, 48}, 96: {96, 48}, 300: {300, 150}, 48: {48, 24}} {
		args := fileops.Args{"convert_to": "png"}
		if dpi > 0 {
			args["dpi"] = dpi
		}
		out := one(t, engine(t).Convert(), args, in)
		m := decoded(t, out)
		if m.Bounds().Size() != want {
			t.Errorf("%d dpi: %v, want %v", dpi, m.Bounds().Size(), want)
			continue
		}
		edge := want.X / 2 // sharp
		if a, b := onWhite(m.At(edge-1, 4)), onWhite(m.At(edge, 4)); a[0] > 2 || b[0] < 253 {
			t.Errorf("%d dpi: the edge is %v, %v", dpi, a, b)
		}
		if dpi > 0 {
			if got := tags(t, out)["PNG:PixelsPerUnitX"].(float64); math.Abs(got/39.3701-float64(dpi)) > 0.6 {
				t.Errorf("%d dpi: %v pixels per metre are noted", dpi, got)
			}
		}
	}
	if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png", "dpi": 300}, fileops.Bytes("in.png", encodePNG(t, photo(9, 9)))); !isParamError(err) {
		t.Error(err)
	}
}

// TestStripMetadata checks that a photograph loses all metadata of a camera and
// an editor in every format, but keeps its colours.
func TestStripMetadata(t *testing.T) {
	t.Parallel()
	path := save(t, jpegFile(t, "in.jpg", photo(320, 240), 90))
	thumb := save(t, jpegFile(t, "thumb.jpg", photo(80, 60), 80))
	profile := save(t, fileops.Bytes("p.icc", srgbProfile(t)))
	tool(t, "exiftool", "-overwrite_original", "-GPSLatitude=52.5", "-GPSLatitudeRef=N", "-GPSLongitude=13.4", "-GPSLongitudeRef=E",
		"-SerialNumber=SN123456", "-LensSerialNumber=L99", "-OwnerName=Some One", "-Artist=Some One", "-XMP:Creator=Some One", "-XMP:Location=Home",
		"-IPTC:By-line=Some One", "-IPTC:City=Berlin", "-Comment=a comment", "-UserComment=private", "-ThumbnailImage<="+thumb, "-ICC_Profile<="+profile, path)
	b := systest.ReadFile(t, path)
	in := fileops.Bytes("in.jpg", b)
	if got := tags(t, in); got["EXIF:GPSLatitude"] == nil || got["XMP:Creator"] == nil || got["IPTC:City"] == nil || got["EXIF:ThumbnailImage"] == nil {
		t.Fatalf("the input has only %v", got)
	}
	check := func(t *testing.T, out *fileops.File, profiled bool) {
		t.Helper()
		got := tags(t, out)
		for name := range got {
			for _, bad := range []string{"GPS", "Serial", "Owner", "Artist", "XMP:", "IPTC:", "Comment", "Thumbnail", "Photoshop:", "PNG:Text", "Creator", "PNG:Raw"} {
				if strings.Contains(name, bad) && !strings.HasPrefix(name, "ICC_Profile:") {
					t.Errorf("%s is still there: %v", name, got[name])
				}
			}
		}
		if profiled && got["ICC_Profile:ProfileDescription"] == nil {
			t.Error("the colour profile is gone")
		}
		if raw := content(t, out); bytes.Contains(raw, []byte("SN123456")) || bytes.Contains(raw, []byte("Some One")) || bytes.Contains(raw, []byte("private")) {
			t.Error("private text is still in the file")
		}
	}
	for _, to := range engine(t).Formats() {
		if to == format.JPG {
			continue
		}
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			out := one(t, engine(t).Convert(), fileops.Args{"convert_to": string(to), "strip_metadata": true}, in)
			check(t, out, !slices.Contains([]format.Format{format.GIF, format.BMP, format.ICO, format.JXL, format.JP2, format.TGA, format.PPM}, to))
		})
	}
	t.Run("png texts", func(t *testing.T) {
		t.Parallel()
		path := save(t, fileops.Bytes("in.png", encodePNG(t, photo(60, 40))))
		tool(t, "exiftool", "-overwrite_original", "-PNG:Author=Some One", "-PNG:Comment=private", "-XMP:Creator=Some One", "-EXIF:GPSLatitude=1", "-EXIF:SerialNumber=SN123456", path)
		b := systest.ReadFile(t, path)
		for _, to := range []string{"jpg", "webp", "tiff", "avif"} {
			check(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": to, "strip_metadata": true}, fileops.Bytes("in.png", b)), false)
		}
	})
}

// srgbProfile returns the ICC profile for sRGB that libvips has built in.
func srgbProfile(t testing.TB) []byte {
	t.Helper()
	out := made(t, "p.jpg", "vips", "icc_export", save(t, fileops.Bytes("s.png", encodePNG(t, photo(8, 8)))), "OUT", "--output-profile", "srgb")
	return []byte(tool(t, "exiftool", "-b", "-ICC_Profile", save(t, out)))
}

// Scaling in the JPEG decoder is invisible: the result resembles that of a fully
// decoded picture at every scale.
func TestSmallerThanDecoded(t *testing.T) {
	t.Parallel()
	m := image.NewRGBA(image.Rect(0, 0, 1200, 960))
	draw.Draw(m, m.Rect, photo(1200, 960), image.Point{}, draw.Src)
	for y := 0; y < 900; y += 60 { // letters of several sizes
		line := image.NewRGBA(image.Rect(0, 0, 300, 15))
		text(line, 0, 12, "Sphinx of black quartz, judge my vow 0123456789", color.Black)
		for i := range line.Pix {
			if k := 1 + y/180; line.Pix[i] == 255 && i%4 == 3 {
				x0, y0 := (i/4%300)*k, y+(i/1200)*k
				draw.Draw(m, image.Rect(x0, y0, x0+k, y0+k), image.Black, image.Point{}, draw.Src)
			}
		}
	}
	in := original(t, format.JPG, m)
	path := save(t, in)
	for _, width := range []int{1100, 600, 520, 500, 480, 300, 260, 250, 240, 150, 130, 125, 120, 70} {
		got := one(t, engine(t).Convert(), fileops.Args{"convert_to": "png", "width": width}, in)
		want := made(t, "want.png", "vips", "resize", path, "OUT", fmt.Sprint(float64(width)/1200), "--vscale", fmt.Sprint(math.Round(float64(width)*0.8)/960))
		if s := ssim(decoded(t, got), decoded(t, want), color.White); s < 0.985 {
			t.Errorf("%d pixels wide: a similarity of %.4f", width, s)
		}
	}
}

// The frames of an animation become the pages of a TIFF with the same pixels
// that ffmpeg decodes.
func TestAnimationToPages(t *testing.T) {
	t.Parallel()
	in := animation(t, 4)
	webp := one(t, engine(t).Convert(), fileops.Args{"convert_to": "webp"}, in) // without loss
	for name, src := range map[string]*fileops.File{"gif": in, "webp": webp} {
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "tiff"}, src)
		if n, h := field(t, out, "n-pages"), field(t, out, "height"); n != "4" || h != "40" {
			t.Fatalf("%s: %s pages of height %s", name, n, h)
		}
		for i := range 4 {
			page := made(t, "p.png", "vips", "extract_band", save(t, out)+fmt.Sprintf("[page=%d]", i), "OUT", "0", "--n", "3")
			frame := made(t, "f.png", "ffmpeg", "-v", "error", "-i", save(t, in), "-vf", fmt.Sprintf(`select=eq(n\,%d)`, i), "-frames:v", "1", "-pix_fmt", "rgb24", "OUT")
			got, want := pngOf(t, page), pngOf(t, frame)
			if got.Bounds() != want.Bounds() {
				t.Fatalf("%s, page %d: %v instead of %v", name, i+1, got.Bounds(), want.Bounds())
			}
			for y := range 40 {
				for x := range 60 {
					if r, g, b, _ := got.At(x, y).RGBA(); [3]uint32{r, g, b} != rgb(want.At(x, y)) {
						t.Fatalf("%s, page %d: (%d, %d) is %v, want %v", name, i+1, x, y, got.At(x, y), want.At(x, y))
					}
				}
			}
		}
	}

	small := one(t, engine(t).Convert(), fileops.Args{"convert_to": "tiff", "width": 30, "height": 30, "fit": "contain", "background": "black"}, in)
	if n, w, h := field(t, small, "n-pages"), field(t, small, "width"), field(t, small, "height"); n != "4" || w != "30" || h != "30" {
		t.Errorf("scaled: %s pages of %s × %s", n, w, h)
	}
	single := one(t, engine(t).Convert(), fileops.Args{"convert_to": "tiff"}, animation(t, 1))
	if out := tool(t, "vipsheader", "-a", save(t, single)); strings.Contains(out, "n-pages: ") && !strings.Contains(out, "n-pages: 1\n") {
		t.Errorf("a single frame: %s", out)
	}
	e, err := imageops.New(t.Context(), imageops.Options{MaxFrames: 4})
	systest.NoError(t, err)
	if _, err := run(t.Context(), e.Convert(), fileops.Args{"convert_to": "tiff"}, animation(t, 5)); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("more frames than the limit: %v", err)
	}
}

func rgb(c color.Color) [3]uint32 {
	r, g, b, _ := c.RGBA()
	return [3]uint32{r, g, b}
}

// Files that libvips rejects for other reasons are not reported as damaged.
func TestNotDamaged(t *testing.T) {
	t.Parallel()
	entry := func(tag, kind, count int, value uint32) []byte {
		b := binary.LittleEndian.AppendUint16(nil, uint16(tag))
		b = binary.LittleEndian.AppendUint16(b, uint16(kind))
		b = binary.LittleEndian.AppendUint32(b, uint32(count))
		return binary.LittleEndian.AppendUint32(b, value)
	}
	// 16 × 16 pixels, one strip, uncompressed YCbCr with chroma halved in both
	// directions.
	const short, long, strip = 3, 4, 16 * 16 * 3 / 2
	entries := [][]byte{
		entry(256, short, 1, 16), entry(257, short, 1, 16), entry(258, short, 3, 8+2+10*12+4), entry(259, short, 1, 1), entry(262, short, 1, 6),
		entry(273, long, 1, 8+2+10*12+4+6), entry(277, short, 1, 3), entry(278, short, 1, 16), entry(279, long, 1, strip), entry(530, short, 2, 2|2<<16),
	}
	subsampled := []byte("II*\x00\x08\x00\x00\x00\x0a\x00")
	subsampled = append(subsampled, slices.Concat(entries...)...)
	subsampled = append(subsampled, 0, 0, 0, 0, 8, 0, 8, 0, 8, 0)
	subsampled = append(subsampled, bytes.Repeat([]byte{128}, strip)...)

	sized := func(w, h uint32) []byte {
		b := bytes.Clone(content(t, fileopstest.Sample(t, format.AVIF)))
		at := bytes.Index(b, []byte("ispe"))
		if at < 0 {
			t.Fatal("no ispe")
		}
		binary.BigEndian.PutUint32(b[at+8:], w)
		binary.BigEndian.PutUint32(b[at+12:], h)
		return b
	}
	// The codes of the second frame are not those of a picture (GIF89a, appendix F).
	var moving bytes.Buffer
	frame := func(c uint8) *image.Paletted {
		m := image.NewPaletted(image.Rect(0, 0, 40, 30), palette.Plan9)
		for i := range m.Pix {
			m.Pix[i] = c
		}
		return m
	}
	if err := gif.EncodeAll(&moving, &gif.GIF{Image: []*image.Paletted{frame(1), frame(9)}, Delay: []int{5, 5}}); err != nil {
		t.Fatal(err)
	}
	second := bytes.LastIndex(moving.Bytes(), []byte{0x2c, 0, 0, 0, 0, 40, 0, 30, 0})
	codes := moving.Bytes()[second+10+flagged(moving.Bytes()[second+9])+2:]
	for i := range 20 {
		codes[i] = 0xff
	}

	// The last run of pixels is above the first row of a bitmap.
	rle := make([]byte, 54+4*256)
	copy(rle, "BM")
	for at, v := range map[int]uint32{10: uint32(len(rle)), 14: 40, 18: 4, 22: 2, 26: 8<<16 | 1, 30: 1} {
		binary.LittleEndian.PutUint32(rle[at:], v)
	}
	good := slices.Concat(rle, []byte{5, 1, 0, 0, 4, 2, 0, 0, 0, 1})
	bad := slices.Concat(rle, []byte{4, 1, 0, 0, 4, 2, 0, 0, 4, 3, 0, 1})

	// One pixel with the second of n colours.
	indexed := func(n uint32) []byte {
		b := append(bytes.Clone(rle[:54]), make([]byte, 4*n)...)
		for at, v := range map[int]uint32{10: uint32(len(b)), 18: 1, 22: 1, 30: 0, 46: n} {
			binary.LittleEndian.PutUint32(b[at:], v)
		}
		return append(b, 1, 0, 0, 0)
	}
	// A palette of two colours, and a header that announces 12341234.
	colours := indexed(2)
	binary.LittleEndian.PutUint32(colours[46:], 12341234)
	// One pixel of 24 bits after the short header of OS/2 2.0.
	os2 := append([]byte("BM"), make([]byte, 32)...)
	for at, v := range map[int]uint32{2: 34, 10: 30, 14: 16, 18: 1, 22: 1, 26: 24<<16 | 1} {
		binary.LittleEndian.PutUint32(os2[at:], v)
	}

	for name, c := range map[string]struct {
		in   *fileops.File
		want error
		text string
	}{
		"bad frame":   {fileops.Bytes("in.gif", moving.Bytes()), fileops.ErrCorruptInput, "damaged"},
		"rows":        {fileops.Bytes("in.bmp", good), nil, ""},
		"more rows":   {fileops.Bytes("in.bmp", bad), fileops.ErrCorruptInput, "damaged"},
		"no colour":   {fileops.Bytes("in.bmp", indexed(1)), fileops.ErrCorruptInput, "damaged"},
		"colour":      {fileops.Bytes("in.bmp", indexed(2)), nil, ""},
		"colours":     {fileops.Bytes("in.bmp", colours), nil, ""},
		"OS/2":        {fileops.Bytes("in.bmp", os2), nil, ""},
		"subsampled":  {fileops.Bytes("in.tiff", subsampled), fileops.ErrUnsupportedInput, "this variant of TIFF cannot be read"},
		"many pixels": {fileops.Bytes("in.avif", sized(17000, 17000)), fileops.ErrLimit, "17000 × 17000 pixels"},
		"too wide":    {fileops.Bytes("in.avif", sized(17000, 100)), fileops.ErrUnsupportedInput, "this variant of AVIF cannot be read"},
		"cut":         {fileops.Bytes("in.avif", sized(170, 100)[:200]), fileops.ErrCorruptInput, "damaged"},
	} {
		_, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, c.in)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(fileops.Message(err), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// flagged returns the size of the colour table that the flags of a GIF's frame announce, in bytes.
func flagged(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// withResource returns a Photoshop file with an image resource block.
func withResource(f *fileops.File, id int, data []byte) *fileops.File {
	b, _ := f.Bytes()
	block := append([]byte("8BIM"), byte(id>>8), byte(id), 0, 0)
	block = append(append(block, be32(len(data))...), data...)
	block = append(block, make([]byte, len(data)%2)...)
	const colours = 26 + 4 // behind the header and an empty section
	old := int(binary.BigEndian.Uint32(b[colours:]))
	out := append(slices.Clone(b[:colours]), be32(old+len(block))...)
	out = append(append(out, block...), b[colours+4:]...)
	return fileops.Bytes(f.Name(), out)
}

// planesOf splits 8-bit interleaved samples into planes.
func planesOf(pix []byte, n int) [][]byte {
	out := make([][]byte, n)
	for i, v := range pix {
		out[i%n] = append(out[i%n], v)
	}
	return out
}

func TestPhotoshopProfile(t *testing.T) {
	t.Parallel()
	const w, h = 96, 64
	const resource = 1039 // ICC profile
	pic := fileopstest.Picture(w, h)
	src := save(t, fileops.Bytes("src.png", encodePNG(t, pic)))
	// samples converts the picture to a profile and returns both.
	samples := func(t *testing.T, profile string) ([]byte, []byte) {
		t.Helper()
		f := made(t, "in.tif", "vips", "icc_transform", src, "OUT", profile, "--input-profile", "srgb", "--depth", "8")
		raw := made(t, "in.raw", "vips", "rawsave", save(t, f), "OUT")
		return content(t, raw), []byte(tool(t, "exiftool", "-b", "-ICC_Profile", save(t, f)))
	}
	profileOf := func(t *testing.T, f *fileops.File) []byte {
		t.Helper()
		return []byte(tool(t, "exiftool", "-b", "-ICC_Profile", save(t, f)))
	}
	rgb, p3 := samples(t, "p3")
	ink, press := samples(t, "cmyk")
	for i := range ink {
		ink[i] = 255 - ink[i] // Photoshop stores light
	}
	planes := planesOf(rgb, 3)
	solid := bytes.Repeat([]byte{255}, w*h)
	for name, in := range map[string]*fileops.File{
		"rgb":   withResource(psd(w, h, 3, 8, true, false, planes...), resource, p3),
		"alpha": withResource(psd(w, h, 3, 8, true, true, append(slices.Clone(planes), slices.Concat(solid[:w*h-1], []byte{0}))...), resource, p3),
	} {
		for _, to := range []string{"jpg", "png", "webp", "tiff", "avif"} { // exiftool reads no profile in jxl
			t.Run(name+" to "+to, func(t *testing.T) {
				t.Parallel()
				out := one(t, engine(t).Convert(), fileops.Args{"convert_to": to, "quality": 95}, in)
				if got := profileOf(t, out); !bytes.Equal(got, p3) {
					t.Errorf("a profile of %d bytes, want the %d bytes of the source", len(got), len(p3))
				}
			})
		}
		for _, to := range []string{"bmp", "gif", "ico"} { // no profile: the colours become sRGB
			t.Run(name+" to "+to, func(t *testing.T) {
				t.Parallel()
				out := one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, in)
				if to == "ico" {
					return // has its own sizes
				}
				back := one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, out)
				if d := difference(pic, decoded(t, back)); d > 4 {
					t.Errorf("differs by %.1f", d)
				}
			})
		}
	}
	t.Run("cmyk", func(t *testing.T) {
		t.Parallel()
		in := withResource(psd(w, h, 4, 8, true, false, planesOf(ink, 4)...), resource, press)
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, in)
		if d := difference(pic, decoded(t, out)); d > 24 { // the gamut is smaller
			t.Errorf("differs by %.1f", d)
		}
	})
	t.Run("gray", func(t *testing.T) {
		t.Parallel()
		in := withResource(psd(w, h, 1, 8, true, false, planes[0]), resource, grayProfile())
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, in)
		if got := profileOf(t, out); !bytes.Equal(got, grayProfile()) {
			t.Errorf("a profile of %d bytes, want %d", len(got), len(grayProfile()))
		}
	})
	for name, bad := range map[string][]byte{"empty": {}, "short": p3[:20], "cut": p3[:len(p3)/2], "of another kind": press} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, to := range []string{"png", "gif", "jpg"} {
				one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, withResource(psd(w, h, 3, 8, true, false, planes...), resource, bad))
			}
		})
	}
}

// A profile is applied to the colours of a 16-bit picture, and its transparency keeps its share.
func TestProfileKeepsTransparency(t *testing.T) {
	t.Parallel()
	m := image.NewNRGBA64(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			m.SetNRGBA64(x, y, color.NRGBA64{0x4000, 0x4000, 0x4000, uint16(x * 1024)})
		}
	}
	profile := filepath.Join(t.TempDir(), "gray.icc")
	systest.NoError(t, os.WriteFile(profile, grayProfile(), 0o600))
	plain := save(t, fileops.Bytes("plain.png", encodePNG(t, m)))
	in := made(t, "in.png", "vips", "colourspace", plain, "OUT[profile="+profile+"]", "grey16")
	if got := tags(t, in)["ICC_Profile:ColorSpaceData"]; got != "GRAY" || !strings.Contains(field(t, in, "format"), "USHORT") {
		t.Fatalf("the input has the profile %v and samples of %s", got, field(t, in, "format"))
	}
	for _, to := range []string{"webp", "gif"} {
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, in)
		got := decoded(t, out)
		const x = 16 // a quarter of the full opacity
		if _, _, _, a := got.At(x, 32).RGBA(); to != "gif" && (a < 0x3c00 || a > 0x4400) {
			t.Errorf("%s: the opacity is %#x, want about 0x4000", to, a)
		}
		if _, _, _, a := got.At(x/2, 32).RGBA(); to == "gif" && a != 0 {
			t.Errorf("gif: the opacity is %#x, want 0", a)
		}
	}
}

// Signed samples of 8 bits are shown as unsigned ones, as other programs show them.
func TestSignedSamples(t *testing.T) {
	t.Parallel()
	m := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range m.Pix {
		m.Pix[i] = byte(i % 64 * 4)
	}
	in := made(t, "in.tiff", "vips", "colourspace", save(t, fileops.Bytes("in.png", encodePNG(t, m))), "OUT", "b-w")
	b := content(t, in)
	const sampleFormat, short = "\x53\x01\x03\x00\x01\x00\x00\x00", 1
	at := bytes.Index(b, []byte(sampleFormat))
	if at < 0 || b[at+8] != short {
		t.Fatal("the TIFF does not say that its samples are unsigned")
	}
	b = bytes.Clone(b)
	b[at+8] = 2 // two's complement
	signed := fileops.Bytes("in.tiff", b)
	if f := field(t, signed, "format"); !strings.Contains(f, "VIPS_FORMAT_CHAR") {
		t.Fatalf("the samples are of %s", f)
	}
	for _, to := range []string{"png", "bmp", "jpg"} {
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, signed)
		if d := difference(m, decoded(t, out)); d > 3 {
			t.Errorf("%s: the picture differs by %.1f", to, d)
		}
	}
}

// The EXIF chunk of a WebP starts with the TIFF header, also in an animation.
func TestExifOfWebP(t *testing.T) {
	t.Parallel()
	photo := save(t, fileopstest.Sample(t, format.JPG))
	tool(t, "exiftool", "-n", "-overwrite_original", "-Make=Maker", "-GPSLatitude=48.1", "-GPSLatitudeRef=N", photo)
	b := systest.ReadFile(t, photo)
	for name, in := range map[string]*fileops.File{"photo": fileops.Bytes("photo.jpg", b), "animation": fileopstest.Sample(t, format.GIF)} {
		out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "webp"}, in)
		b := content(t, out)
		if n := binary.LittleEndian.Uint32(b[4:]); int(n)+8 != len(b) {
			t.Errorf("%s: the RIFF header says %d bytes, and the file has %d", name, n+8, len(b))
		}
		if at := bytes.Index(b, []byte("EXIF")); at >= 0 && !bytes.HasPrefix(b[at+8:], []byte("II*\x00")) && !bytes.HasPrefix(b[at+8:], []byte("MM\x00*")) {
			t.Errorf("%s: the EXIF chunk starts with %q", name, b[at+8:at+16])
		}
		if got := tags(t, out); name == "photo" && (got["EXIF:Make"] != "Maker" || got["ExifTool:Warning"] != nil) {
			t.Errorf("%s: exiftool finds the maker %v and warns %v", name, got["EXIF:Make"], got["ExifTool:Warning"])
		}
	}
}
