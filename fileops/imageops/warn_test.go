//go:build cgo

package imageops_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/internal/systest"
)

// warned runs an action and returns the codes of its warnings.
func warned(t testing.TB, a fileops.Action, args fileops.Args, in *fileops.File) (codes []string) {
	t.Helper()
	r := fileops.Runner{Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
	sink := fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil })
	systest.NoError(t, r.Run(t.Context(), a, args, sink, in))
	return codes
}

// ffmpeg writes and reads animated PNG without libvips and without this package.
func TestAnimatedPNG(t *testing.T) {
	t.Parallel()
	in := made(t, "in.png", "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=64x48:d=1:r=4", "-f", "apng", "-plays", "0", "OUT")
	convert := engine(t).Convert()
	for _, to := range []string{"gif", "webp"} {
		out := one(t, convert, fileops.Args{"convert_to": to, "quality": 100}, in)
		if n, d, l := field(t, out, "n-pages"), field(t, out, "delay"), field(t, out, "loop"); n != "4" || d != "250 250 250 250" || l != "0" {
			t.Errorf("%s: %s frames with delays %s, played %s times", to, n, d, l)
		}
		back := one(t, convert, fileops.Args{"convert_to": "png"}, out)
		for i := range 4 {
			frame := func(f *fileops.File) image.Image {
				return pngOf(t, made(t, "f.png", "ffmpeg", "-v", "error", "-i", save(t, f), "-vf", "select=eq(n\\,"+string(rune('0'+i))+")", "-frames:v", "1", "-pix_fmt", "rgb24", "OUT"))
			}
			before, after := frame(in), frame(back)
			if d := meanDifference(before, after); d > 12 {
				t.Errorf("%s and back, frame %d differs by %.1f", to, i+1, d)
			}
		}
	}
	small := one(t, convert, fileops.Args{"convert_to": "gif", "width": 32}, in)
	if n, w := field(t, small, "n-pages"), field(t, small, "width"); n != "4" || w != "32" {
		t.Errorf("scaled: %s frames of width %s", n, w)
	}
	pages := one(t, convert, fileops.Args{"convert_to": "tiff"}, in)
	if n := field(t, pages, "n-pages"); n != "4" {
		t.Errorf("tiff has %s pages", n)
	}
	if got := warned(t, convert, fileops.Args{"convert_to": "gif"}, in); len(got) > 0 {
		t.Errorf("warnings %v", got)
	}
	if got := warned(t, convert, fileops.Args{"convert_to": "jpg"}, in); !slices.Equal(got, []string{fileops.WarnAnimationDropped}) {
		t.Errorf("jpg: warnings %v", got)
	}
	b := content(t, in)
	if _, err := run(t.Context(), convert, fileops.Args{"convert_to": "gif"}, fileops.Bytes("in.png", b[:len(b)*2/3])); fileops.Code(err) != "corrupt_input" {
		t.Errorf("truncated: %v", err)
	}
}

// meanDifference is the mean difference of samples from 0 to 255.
func meanDifference(a, b image.Image) float64 {
	if a.Bounds() != b.Bounds() {
		return 255
	}
	sum, n := 0.0, 0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			p, q := rgb(a.At(x, y)), rgb(b.At(x, y))
			for c := range 3 {
				sum += float64(max(p[c], q[c])-min(p[c], q[c])) / 257
				n++
			}
		}
	}
	return sum / float64(n)
}

// withChunk inserts a chunk after the header of a PNG file.
func withChunk(b []byte, kind string, data []byte) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	chunk = append(append(chunk, kind...), data...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	const header = 8 + 25
	return slices.Concat(b[:header], chunk, b[header:])
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	encoded := func(m image.Image) []byte {
		var b bytes.Buffer
		systest.NoError(t, png.Encode(&b, m))
		return b.Bytes()
	}
	picture := fileopstest.Picture(96, 64)
	opaque := image.NewNRGBA(image.Rect(0, 0, 40, 30))
	for i := range opaque.Pix {
		opaque.Pix[i] = 255
	}
	clear := image.NewNRGBA(opaque.Rect)
	copy(clear.Pix, opaque.Pix)
	for y := range 10 {
		for x := range 10 {
			clear.SetNRGBA(x, y, color.NRGBA{})
		}
	}
	photo := content(t, jpegFile(t, "a.jpg", picture, 90))
	xmp := "http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta xmlns:x=\"adobe:ns:meta/\" xmlns:hdrgm=\"http://ns.adobe.com/hdr-gain-map/1.0/\" hdrgm:Version=\"1.0\"/>"
	segment := append(binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(xmp)+2)), xmp...)
	gain := slices.Concat(photo[:2], segment, photo[2:])
	motionXMP := "http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta xmlns:x=\"adobe:ns:meta/\" xmlns:GCamera=\"http://ns.google.com/photos/1.0/camera/\" GCamera:MotionPhoto=\"1\"/>"
	motion := slices.Concat(photo[:2], binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(motionXMP)+2)), []byte(motionXMP), photo[2:], []byte("\x00\x00\x00\x18ftypmp42"))
	samsung := slices.Concat(photo, []byte("MotionPhoto_Data\x00\x00\x00\x18ftypmp42"))
	jxl := func(transfer string) *fileops.File {
		return made(t, transfer+".jxl", "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=64x48:d=1:r=1", "-frames:v", "1",
			"-vf", "format=rgb48le,setparams=color_primaries=bt2020:color_trc="+transfer, "-c:v", "libjxl", "OUT")
	}
	ink := made(t, "ink.jpg", "vips", "icc_transform", save(t, fileops.Bytes("p.png", encoded(picture))), "OUT", "cmyk", "--input-profile", "srgb")
	for name, tt := range map[string]struct {
		in   *fileops.File
		to   string
		want string
	}{
		"plain":                {fileops.Bytes("a.png", encoded(opaque)), "jpg", ""},
		"transparent":          {fileops.Bytes("a.png", encoded(clear)), "jpg", fileops.WarnTransparencyDropped},
		"transparent and kept": {fileops.Bytes("a.png", encoded(clear)), "webp", ""},
		"gain map":             {fileops.Bytes("a.jpg", gain), "png", fileops.WarnHDRDropped},
		"no gain map":          {fileops.Bytes("a.jpg", photo), "png", ""},
		"motion photo":         {fileops.Bytes("a.jpg", motion), "png", fileops.WarnStreamsDropped},
		"Samsung motion photo": {fileops.Bytes("a.jpg", samsung), "webp", fileops.WarnStreamsDropped},
		"JPEG XL, PQ":          {jxl("smpte2084"), "png", fileops.WarnHDRDropped},
		"JPEG XL, HLG":         {jxl("arib-std-b67"), "jpg", fileops.WarnHDRDropped},
		"JPEG XL, 16 bits":     {made(t, "a.jxl", "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=64x48:d=1:r=1", "-frames:v", "1", "-pix_fmt", "rgb48le", "-c:v", "libjxl", "OUT"), "png", ""},
		"PQ":                   {fileops.Bytes("a.png", withChunk(encoded(picture), "cICP", []byte{9, 16, 0, 1})), "jpg", fileops.WarnHDRDropped},
		"sRGB":                 {fileops.Bytes("a.png", withChunk(encoded(picture), "cICP", []byte{1, 13, 0, 1})), "jpg", ""},
		"CMYK":                 {ink, "png", fileops.WarnColorConverted},
		"GIF":                  {animation(t, 3), "jpg", fileops.WarnAnimationDropped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(warned(t, engine(t).Convert(), fileops.Args{"convert_to": tt.to}, tt.in), " "); got != tt.want {
				t.Errorf("warnings %q, want %q", got, tt.want)
			}
		})
	}
}

// compress also warns about what a JPEG loses.
func TestCompressWarns(t *testing.T) {
	t.Parallel()
	picture := save(t, jpegFile(t, "p.jpg", fileopstest.Picture(96, 64), 98))
	for name, tt := range map[string]struct {
		in   *fileops.File
		want string
	}{
		"CMYK": {made(t, "ink.jpg", "vips", "icc_transform", picture, "OUT[Q=98]", "cmyk", "--input-profile", "srgb"), fileops.WarnColorConverted},
		"RGB":  {fileops.Bytes("p.jpg", content(t, fileops.Path(picture))), ""},
	} {
		if out := one(t, engine(t).Compress(), nil, tt.in); out.Size() >= tt.in.Size() {
			t.Fatalf("%s: %d bytes became %d", name, tt.in.Size(), out.Size())
		}
		if got := strings.Join(warned(t, engine(t).Compress(), nil, tt.in), " "); got != tt.want {
			t.Errorf("%s: warnings %q, want %q", name, got, tt.want)
		}
	}
}

// A valid file that cannot be read is not called damaged.
func TestUnsupportedIsNotDamaged(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	twelve := []byte("II*\x00\x08\x00\x00\x00\x09\x00") // gray, 4 × 2 pixels of 12 bits
	for _, e := range [][2]int{{256, 4}, {257, 2}, {258, 12}, {259, 1}, {262, 1}, {273, 122}, {277, 1}, {278, 2}, {279, 12}} {
		twelve = le.AppendUint16(le.AppendUint16(twelve, uint16(e[0])), 3)
		twelve = le.AppendUint32(le.AppendUint32(twelve, 1), uint32(e[1]))
	}
	twelve = append(twelve, make([]byte, 4+12)...)
	heic := content(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "heic"}, jpegFile(t, "a.jpg", fileopstest.Picture(96, 64), 90)))
	for name, in := range map[string]*fileops.File{
		"12-bit TIFF":             fileops.Bytes("a.tiff", twelve),
		"HEIF with another codec": fileops.Bytes("a.heic", bytes.ReplaceAll(heic, []byte("hvc1"), []byte("j2k1"))),
		"HEIF in a short form":    fileops.Bytes("a.avif", append([]byte("\x00\x00\x00\x10ftypmif3avif\x00\x00\x00\x59mini\x08\x08\x1f\x3e"), make([]byte, 77)...)),
	} {
		if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, in); fileops.Code(err) != "unsupported_input" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("a.heic", heic[:len(heic)/2])); fileops.Code(err) != "corrupt_input" {
		t.Errorf("truncated HEIC: %v", err)
	}
}

// tiffOf returns a TIFF with directories of the given entries (tag, type, count,
// value), followed by data. Values are offsets in the file, or in data if the type
// is negative.
func tiffOf(data []byte, pages ...[][4]int) []byte {
	le := binary.LittleEndian
	size := 8
	for _, p := range pages {
		size += 2 + 12*len(p) + 4
	}
	b := []byte("II*\x00\x08\x00\x00\x00")
	for i, p := range pages {
		b = le.AppendUint16(b, uint16(len(p)))
		for _, e := range p {
			kind, value := e[1], e[3]
			if kind < 0 {
				kind, value = -kind, size+value
			}
			b = le.AppendUint16(le.AppendUint16(b, uint16(e[0])), uint16(kind))
			b = le.AppendUint32(le.AppendUint32(b, uint32(e[2])), uint32(value))
		}
		next := len(b) + 4
		if i == len(pages)-1 {
			next = 0
		}
		b = le.AppendUint32(b, uint32(next))
	}
	return append(b, data...)
}

// Smaller copies of a page are no pages (TIFF 6.0, NewSubfileType). libvips reads no
// tiles of single components, whether of a copy or of the page itself.
func TestTIFFWithOverviews(t *testing.T) {
	t.Parallel()
	page := [][4]int{{256, 3, 1, 32}, {257, 3, 1, 16}, {258, 3, 1, 8}, {259, 3, 1, 1}, {262, 3, 1, 1}, {273, -4, 1, 0}, {277, 3, 1, 1}, {278, 3, 1, 16}, {279, 4, 1, 512}}
	overview := [][4]int{{254, 4, 1, 1}, {256, 3, 1, 16}, {257, 3, 1, 8}, {258, -3, 3, 512}, {259, 3, 1, 1}, {262, 3, 1, 2}, {277, 3, 1, 3}, {284, 3, 1, 2},
		{322, 3, 1, 16}, {323, 3, 1, 16}, {324, -4, 3, 518}, {325, -4, 3, 530}}
	data := bytes.Repeat([]byte{90}, 512)
	data = append(data, 8, 0, 8, 0, 8, 0)
	for range 3 {
		data = binary.LittleEndian.AppendUint32(data, 8)
	}
	for range 3 {
		data = binary.LittleEndian.AppendUint32(data, 256)
	}
	for name, tt := range map[string]struct {
		pages [][][4]int
		want  int // results; 0: unsupported
	}{
		"overview":         {[][][4]int{page, overview}, 1},
		"overviews first":  {[][][4]int{overview, page}, 1},
		"two pages":        {[][][4]int{page, overview, page}, 2},
		"tiles, no copies": {[][][4]int{slices.Concat([][4]int{{254, 4, 1, 0}}, overview[1:])}, 0},
	} {
		out, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("a.tiff", tiffOf(data, tt.pages...)))
		if tt.want == 0 {
			if fileops.Code(err) != "unsupported_input" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(out) != tt.want {
			t.Errorf("%s: %d results, want %d: %v", name, len(out), tt.want, err)
			continue
		}
		for _, f := range out {
			if m := pngOf(t, f); m.Bounds().Size() != image.Pt(32, 16) {
				t.Errorf("%s: %v", name, m.Bounds())
			}
		}
	}
}

// The samples of a planar TIFF are stored by component (TIFF 6.0, section 8).
func TestPlanarTIFF(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	const w, h, entries = 4, 2, 11
	const offsets = 8 + 2 + 12*entries + 4
	file := []byte("II*\x00\x08\x00\x00\x00\x0b\x00")
	for _, e := range [entries][3]int{
		{256, 1, w}, {257, 1, h}, {258, 3, offsets}, {259, 1, 1}, {262, 1, 2}, {273, 3, offsets + 6}, {277, 1, 3}, {278, 1, h},
		{279, 3, offsets + 18}, {284, 1, 2}, {339, 1, 1},
	} {
		kind := uint16(3)
		if e[0] == 273 || e[0] == 279 {
			kind = 4
		}
		file = le.AppendUint16(le.AppendUint16(file, uint16(e[0])), kind)
		file = le.AppendUint32(le.AppendUint32(file, uint32(e[1])), uint32(e[2]))
	}
	file = append(file, 0, 0, 0, 0, 8, 0, 8, 0, 8, 0)
	for i := range 3 {
		file = le.AppendUint32(file, uint32(offsets+30+i*w*h))
	}
	file = append(file, "\x08\x00\x00\x00\x08\x00\x00\x00\x08\x00\x00\x00"...)
	for i := range 3 {
		file = append(file, bytes.Repeat([]byte{byte(50 + 60*i)}, w*h)...)
	}
	m := pngOf(t, one(t, engine(t).Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("a.tiff", file)))
	if got := color.RGBAModel.Convert(m.At(3, 1)); m.Bounds().Size() != image.Pt(w, h) || got != (color.RGBA{50, 110, 170, 255}) {
		t.Errorf("%v, %v", m.Bounds(), got)
	}
}
