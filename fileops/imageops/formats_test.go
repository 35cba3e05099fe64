package imageops_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// sameAs converts a picture to PNG and compares all pixels with want.
func sameAs(t *testing.T, name string, b []byte, want *image.NRGBA, tolerance int) {
	t.Helper()
	if got := format.Sniff(bytes.NewReader(b), int64(len(b))); got != format.Parse(name) {
		t.Errorf("%s: sniffed as %q", name, got)
	}
	out := one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes(name, b))
	m, err := png.Decode(bytes.NewReader(content(t, out)))
	systest.NoError(t, err)
	if m.Bounds() != want.Rect {
		t.Fatalf("%s: %v, want %v", name, m.Bounds(), want.Rect)
	}
	for y := range want.Rect.Dy() {
		for x := range want.Rect.Dx() {
			g, _ := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
			w := want.NRGBAAt(x, y)
			for i, d := range []int{int(g.R) - int(w.R), int(g.G) - int(w.G), int(g.B) - int(w.B), int(g.A) - int(w.A)} {
				if max(d, -d) > tolerance {
					t.Fatalf("%s: %v at %d,%d, want %v (%d)", name, g, x, y, w, i)
				}
			}
		}
	}
}

// ffmpegOf encodes a picture with ffmpeg.
func ffmpegOf(t *testing.T, m image.Image, name string, args ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, m))
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "in.png"), b.Bytes(), 0o600))
	path := filepath.Join(dir, name)
	tool(t, "ffmpeg", append(append([]string{"-v", "error", "-i", filepath.Join(dir, "in.png")}, args...), path)...)
	return systest.ReadFile(t, path)
}

func gray(m *image.NRGBA) *image.NRGBA {
	out := image.NewNRGBA(m.Rect)
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			c, _ := color.GrayModel.Convert(m.At(x, y)).(color.Gray)
			out.SetNRGBA(x, y, color.NRGBA{c.Y, c.Y, c.Y, 255})
		}
	}
	return out
}

// Files of other programs have the right pixels.
func TestReadTGAAndPNM(t *testing.T) {
	t.Parallel()
	m := specimen.Patches(37, 23)
	clear := specimen.Patches(37, 23)
	for i := 3; i < len(clear.Pix)/2; i += 4 {
		clear.Pix[i] = 128
	}
	five := func(n string) []string { return []string{"-pix_fmt", n} }
	sameAs(t, "a.tga", ffmpegOf(t, m, "a.tga", "-pix_fmt", "bgr24"), m, 0)
	sameAs(t, "plain.tga", ffmpegOf(t, m, "a.tga", "-pix_fmt", "bgr24", "-rle", "0"), m, 0)
	sameAs(t, "clear.tga", ffmpegOf(t, clear, "a.tga", "-pix_fmt", "bgra"), clear, 0)
	sameAs(t, "15.tga", ffmpegOf(t, specimen.Patches(40, 24), "a.tga", "-sws_flags", "neighbor+full_chroma_inp", "-pix_fmt", "rgb555le"), specimen.Patches(40, 24), 16)
	sameAs(t, "gray.tga", ffmpegOf(t, gray(m), "a.tga", five("gray")...), gray(m), 1)
	sameAs(t, "palette.tga", ffmpegOf(t, m, "a.tga", five("pal8")...), m, 64) // dithered
	sameAs(t, "a.ppm", ffmpegOf(t, m, "a.ppm", five("rgb24")...), m, 0)
	sameAs(t, "deep.ppm", ffmpegOf(t, m, "a.ppm", five("rgb48be")...), m, 1)
	sameAs(t, "gray.pgm", ffmpegOf(t, gray(m), "a.pgm", five("gray")...), gray(m), 1)
	sameAs(t, "clear.pam", ffmpegOf(t, clear, "a.pam", five("rgba")...), clear, 0)

	two := image.NewNRGBA(image.Rect(0, 0, 10, 2))
	for i := range 20 {
		v := uint8(255 * (i % 3 % 2))
		two.SetNRGBA(i%10, i/10, color.NRGBA{v, v, v, 255})
	}
	sameAs(t, "bits.pbm", ffmpegOf(t, two, "a.pbm", five("monow")...), two, 0)
	plain := "P1\n# a comment\n10 2\n"
	shades := "P2 10 2 # another\n3\n"
	for i := range 20 {
		black := 1 - two.Pix[4*i]/255
		plain += fmt.Sprint(black)
		shades += fmt.Sprint(3-3*black, " ")
	}
	sameAs(t, "plain.pbm", []byte(plain), two, 0)
	sameAs(t, "shades.pgm", []byte(shades), two, 0)
}

// Other programs read what is written.
func TestWriteTGAAndPNM(t *testing.T) {
	t.Parallel()
	m := specimen.Patches(37, 23)
	var b bytes.Buffer
	clear := specimen.Patches(37, 23)
	clear.Pix[3] = 0
	for name, p := range map[string]*image.NRGBA{"opaque": m, "clear": clear} {
		b.Reset()
		systest.NoError(t, png.Encode(&b, p))
		for _, to := range []string{"tga", "ppm"} {
			out := one(t, engine(t).Convert(), fileops.Args{"convert_to": to}, fileops.Bytes("a.png", bytes.Clone(b.Bytes())))
			raw := tool(t, "ffmpeg", "-v", "error", "-i", save(t, out), "-f", "rawvideo", "-pix_fmt", "rgba", "-")
			want := string(p.Pix)
			if to == "ppm" {
				want = string(m.Pix)
				if name == "clear" { // transparent parts are white
					want = "\xff\xff\xff\xff" + want[4:]
				}
			} else if name == "clear" {
				raw, want = raw[3:], want[3:] // the colour of what is transparent
			}
			if raw != want {
				t.Errorf("%s %s: other pixels", name, to)
			}
		}
	}
}

func TestReadICNS(t *testing.T) {
	t.Parallel()
	m := specimen.Patches(16, 16)
	m.Pix[3] = 0
	chunk := func(name string, b []byte) []byte {
		n := len(b) + 8
		return append([]byte{name[0], name[1], name[2], name[3], byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, b...)
	}
	var bits, mask []byte
	for c := range 3 {
		for i := 0; i < 256; {
			n := 1
			for i+n < 256 && n < 130 && m.Pix[4*(i+n)+c] == m.Pix[4*i+c] {
				n++
			}
			if n >= 3 {
				bits = append(bits, byte(n+125), m.Pix[4*i+c])
			} else {
				n = 1
				bits = append(bits, 0, m.Pix[4*i+c])
			}
			i += n
		}
	}
	for i := range 256 {
		mask = append(mask, m.Pix[4*i+3])
	}
	old := chunk("icns", append(chunk("is32", bits), chunk("s8mk", mask)...))
	sameAs(t, "old.icns", old, m, 0)
	if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("a.icns", old[:60])); fileops.Code(err) != "format_mismatch" && fileops.Code(err) != "corrupt_input" {
		t.Errorf("truncated: %v", err)
	}
	var big bytes.Buffer
	systest.NoError(t, png.Encode(&big, specimen.Patches(64, 64)))
	sameAs(t, "new.icns", chunk("icns", append(append(chunk("is32", bits), chunk("icp6", big.Bytes())...), chunk("TOC ", nil)...)), specimen.Patches(64, 64), 0)

	// A picture in JPEG 2000 counts if it is the largest one, and an icon of nothing else can be read.
	jp2 := content(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "jp2", "lossless": true}, fileops.Bytes("a.png", big.Bytes())))
	for name, icon := range map[string][]byte{
		"jp2.icns":  chunk("icns", append(append(chunk("is32", bits), chunk("s8mk", mask)...), chunk("ic08", jp2)...)),
		"only.icns": chunk("icns", chunk("ic08", jp2)),
	} {
		sameAs(t, name, icon, specimen.Patches(64, 64), 0)
	}
	larger := specimen.Patches(80, 80)
	big.Reset()
	systest.NoError(t, png.Encode(&big, larger))
	sameAs(t, "larger.icns", chunk("icns", append(chunk("ic08", jp2), chunk("ic07", big.Bytes())...)), larger, 0)
}

// Damaged files fail, and do not make the decoders panic.
func TestDamagedTGAAndPNM(t *testing.T) {
	t.Parallel()
	m := specimen.Patches(37, 23)
	for name, b := range map[string][]byte{"a.tga": ffmpegOf(t, m, "a.tga", "-pix_fmt", "bgr24"), "a.ppm": ffmpegOf(t, m, "a.ppm"), "a.pgm": []byte("P2 9 9 255 " + strings.Repeat("1 ", 81))} {
		for n := len(b) - 60; n > 0; n -= len(b)/9 + 1 {
			_, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes(name, b[:n]))
			if code := fileops.Code(err); code != "corrupt_input" && code != "format_mismatch" {
				t.Errorf("%s of %d bytes: %v", name, n, err)
			}
		}
	}
	huge := []byte("P6 60000 60000 255\n" + strings.Repeat("x", 100))
	if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("a.ppm", huge)); fileops.Code(err) != "limit_exceeded" {
		t.Errorf("huge: %v", err)
	}
	if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("a.pam", []byte("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nTUPLTYPE CMYK\nENDHDR\nabc"))); fileops.Code(err) != "unsupported_input" {
		t.Errorf("unknown type: %v", err)
	}
}
