package pdfops_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// A grayPage is a page rendered in shades of gray.
type grayPage struct {
	w, h int
	pix  []byte
}

// renderGray renders pages with poppler. It avoids the time that PNG output
// takes.
func renderGray(t testing.TB, f *fileops.File) []grayPage {
	t.Helper()
	dir := t.TempDir()
	shell(t, "pdftoppm", "-r", "110", "-gray", save(t, f), filepath.Join(dir, "p"))
	files, err := filepath.Glob(filepath.Join(dir, "p*.pgm"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing rendered: %v", err)
	}
	var out []grayPage
	for _, p := range files {
		b := read(t, p)
		var g grayPage
		if _, err := fmt.Sscanf(string(b[:32]), "P5\n%d %d\n255\n", &g.w, &g.h); err != nil {
			t.Fatal(err)
		}
		g.pix = b[len(b)-g.w*g.h:]
		out = append(out, g)
	}
	return out
}

// ssim is the mean structural similarity (Wang et al., 2004) of two pages, in
// blocks of 8 × 8 at every fourth pixel.
func ssim(t testing.TB, a, b grayPage) float64 {
	t.Helper()
	if a.w != b.w || a.h != b.h {
		t.Fatalf("size %d×%d, want %d×%d", a.w, a.h, b.w, b.h)
	}
	total, n := 0.0, 0.0
	for y := 0; y+8 <= a.h; y += 4 {
		for x := 0; x+8 <= a.w; x += 4 {
			var sp, sq, spp, sqq, spq float64
			for j := y; j < y+8; j++ {
				for i := x; i < x+8; i++ {
					u, v := float64(a.pix[j*a.w+i]), float64(b.pix[j*a.w+i])
					sp, sq, spp, sqq, spq = sp+u, sq+v, spp+u*u, sqq+v*v, spq+u*v
				}
			}
			mp, mq := sp/64, sq/64
			vp, vq, c := spp/64-mp*mp, sqq/64-mq*mq, spq/64-mp*mq
			total += (2*mp*mq + 6.5025) * (2*c + 58.5225) / ((mp*mp + mq*mq + 6.5025) * (vp + vq + 58.5225))
			n++
		}
	}
	return total / n
}

func levels() map[string]float64 {
	return map[string]float64{"less_compression": 0.99, "recommended_compression": 0.95, "extreme_compression": 0.90}
}

func TestCompress(t *testing.T) {
	t.Parallel()
	codec, err := imageops.New(t.Context(), imageops.Options{}) // decodes formats that pure Go cannot
	systest.NoError(t, err)
	for name, in := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := pdf("in.pdf", in)
			want, wantText := summarize(t, before), text(t, before, "-layout")
			pages := renderGray(t, before)
			tools := pdfops.Tools{QPDF: findQPDF(t)}
			if strings.HasPrefix(name, "cmyk") || name == "jpx" {
				tools.Images = codec
			}
			sizes := make(map[string]int64)
			for level, least := range levels() {
				if testing.Short() && name != "office" && name != "scan" && name != "png" && level != "recommended_compression" {
					continue
				}
				start := time.Now()
				out := run(t, tools.Compress(), fileops.Args{"compression_value": level}, before)
				took := time.Since(start)
				sizes[level] = out.Size()
				if out.Name() != "in.pdf" || out.Size() > before.Size() {
					t.Errorf("%s: %s, %d bytes of %d", level, out.Name(), out.Size(), before.Size())
				}
				sound(t, out)
				if got := summarize(t, out); got != want {
					t.Errorf("%s: %+v, want %+v", level, got, want)
				}
				if text(t, out, "-layout") != wantText {
					t.Errorf("%s: the text has changed", level)
				}
				worst, sum := 1.0, 0.0
				for i, p := range renderGray(t, out) {
					s := ssim(t, p, pages[i])
					worst, sum = math.Min(worst, s), sum+s
				}
				if worst < least {
					t.Errorf("%s: similarity %.4f, want %.2f", level, worst, least)
				}
				t.Logf("%-24s %8d → %8d  %5.1f %%  ssim %.4f (worst %.4f)  %v", level, before.Size(), out.Size(),
					100*float64(out.Size())/float64(before.Size()), sum/float64(len(pages)), worst, took.Round(time.Millisecond))
			}
			if len(sizes) > 1 && (sizes["extreme_compression"] >= sizes["recommended_compression"] || sizes["recommended_compression"] >= sizes["less_compression"]) {
				t.Errorf("levels do not differ: %v", sizes)
			}
			for level, size := range sizes {
				if size >= before.Size() {
					t.Errorf("%s gains nothing", level)
				}
			}
		})
	}
}

// pictureList returns width, colour space, bits, encoding and resolution of each
// image.
func pictureList(t *testing.T, f *fileops.File) []string {
	t.Helper()
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(shell(t, "pdfimages", "-list", save(t, f))), "\n")[2:] {
		c := strings.Fields(line)
		out = append(out, fmt.Sprint(c[2], " ", c[3], "x", c[4], " ", c[5], " ", c[7], " ", c[8]))
	}
	return out
}

func TestCompressScales(t *testing.T) {
	t.Parallel()
	// 1000 pixels over 250 points are 288 dpi.
	jpg := func(draw string) []byte {
		return withPicture(draw, imageStream(1000, 750, "/DeviceRGB", "/Filter/DCTDecode", asJPEG(t, photo(1000, 750, 6), 95)))
	}
	for name, c := range map[string]struct {
		in   []byte
		want map[string]string
	}{
		"full page": {jpg(fill), map[string]string{
			"less_compression": "image 1000x750 rgb 8 jpeg", "recommended_compression": "image 521x391 rgb 8 jpeg", "extreme_compression": "image 334x250 rgb 8 jpeg"}},
		"drawn twice": {jpg("q 40 0 0 30 0 0 cm /I Do Q q 250 0 0 187.5 0 0 cm /I Do Q"), map[string]string{"extreme_compression": "image 334x250 rgb 8 jpeg"}},
		"turned":      {jpg("q 0 250 -187.5 0 187.5 0 cm /I Do Q"), map[string]string{"extreme_compression": "image 334x250 rgb 8 jpeg"}},
		"small":       {jpg("q 1 0 0 1 5 5 cm 100 0 0 75 0 0 cm /I Do Q"), map[string]string{"recommended_compression": "image 209x157 rgb 8 jpeg"}},
		"after an inline image": {jpg("q BI /W 4 /H 1 /CS /G /BPC 8 ID \x01EI\x02 EI Q\n" + fill), map[string]string{
			"extreme_compression": "image 334x250 rgb 8 jpeg"}},
		"not drawn": {jpg("0 0 1 rg 0 0 9 9 re f"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for level, want := range c.want {
				out := run(t, pdfops.Compress(), fileops.Args{"compression_value": level}, pdf("a.pdf", c.in))
				if got := pictureList(t, out); got[len(got)-1] != want {
					t.Errorf("%s: %q, want %q", level, got, want)
				}
			}
			if c.want == nil {
				out := run(t, pdfops.Compress(), nil, pdf("a.pdf", c.in))
				if q := shell(t, "qpdf", "--json=2", "--json-key=qpdf", save(t, out)); !strings.Contains(q, `"/Width": 1000`) {
					t.Error("the picture is changed")
				}
			}
		})
	}
}

// Images that must stay unchanged, pixel by pixel.
func TestCompressLeaves(t *testing.T) {
	t.Parallel()
	img := photo(1000, 750, 7)
	bits := make([]byte, 125*750)
	for i := range bits {
		bits[i] = img.Pix[i*32]
	}
	for name, c := range map[string]struct {
		in    []byte
		first string
	}{
		"one bit":    {withPicture(fill, stream("/Type/XObject/Subtype/Image/Width 1000/Height 750/ColorSpace/DeviceGray/BitsPerComponent 1", string(bits))), "image 1000x750 gray 1"},
		"stencil":    {withPicture(fill, stream("/Type/XObject/Subtype/Image/Width 1000/Height 750/ImageMask true/BitsPerComponent 1", string(bits))), "stencil 1000x750"},
		"colour key": {withPicture(fill, stream("/Type/XObject/Subtype/Image/Width 1000/Height 750/ColorSpace/DeviceRGB/BitsPerComponent 8/Mask[0 9 0 9 0 9]", string(rgb(img)))), "image 1000x750"},
		"matte": {withPicture(fill, imageStream(1000, 750, "/DeviceRGB", "/SMask 6 0 R", rgb(img)),
			imageStream(1000, 750, "/DeviceGray", "/Matte[0 0 0]", alphaBytes(img))), "image 1000x750"},
		"lab": {withPicture(fill, imageStream(1000, 750, "[/Lab<</WhitePoint[.96 1 .82]>>]", "", rgb(img))), "image 1000x750"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := pdf("a.pdf", c.in)
			out := run(t, pdfops.Compress(), fileops.Args{"compression_value": "extreme"}, in)
			sound(t, out)
			if got := pictureList(t, out); len(got) == 0 || !strings.HasPrefix(got[0], c.first) {
				t.Errorf("%q, want %q", got, c.first)
			}
			if d := difference(t, render(t, out, 72)[0], render(t, in, 72)[0]); d != 0 {
				t.Errorf("difference %.3f", d)
			}
		})
	}
}

func TestCompressKeeps(t *testing.T) {
	t.Parallel()
	signed := func(extra string) []byte {
		return handmade("1.7", "<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R]/SigFlags 3>>>>",
			"<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Annots[4 0 R]/Contents 6 0 R>>",
			"<</Type/Annot/Subtype/Widget/FT/Sig/T(s)/V 5 0 R/Rect[0 0 0 0]>>",
			"<</Type/Sig/Filter/Adobe.PPKLite/ByteRange[0 1 2 3]/Contents<00>>>", stream("", strings.Repeat("0 0 m ", 5000)))
	}
	tight := run(t, pdfops.Compress(), nil, pdf("a.pdf", rich("x")))
	for name, in := range map[string][]byte{"signed": signed(""), "compressed already": content(t, tight)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, pdfops.Compress(), fileops.Args{"compression_value": "extreme"}, pdf("a.pdf", in))
			if !bytes.Equal(content(t, out), in) {
				t.Error("the file is changed")
			}
		})
	}
	fails(t, fileops.ErrPasswordRequired, pdfops.Compress(), nil, pdf("a.pdf", encrypted(t, simple("x"), "u", "o", "256")))
	fails(t, fileops.ErrCorruptInput, pdfops.Tools{QPDF: findQPDF(t)}.Compress(), nil, pdf("a.pdf", []byte("%PDF-1.4\nrubbish")))
}

func TestCompressPDFA(t *testing.T) {
	t.Parallel()
	for level := range levels() {
		out := run(t, pdfops.Compress(), fileops.Args{"compression_value": level}, pdf("a.pdf", office(t, archival)))
		q := shell(t, "qpdf", "--qdf", save(t, out), "-")
		for _, want := range []string{"/OutputIntents", "<pdfaid:part>1</pdfaid:part>"} {
			if !strings.Contains(q, want) {
				t.Errorf("%s: %s is lost", level, want)
			}
		}
		b := content(t, out)
		if !bytes.HasPrefix(b, []byte("%PDF-1.4")) || bytes.Contains(b, []byte("/ObjStm")) || bytes.Contains(b, []byte("/XRef")) || !bytes.Contains(b, []byte("<pdfaid:part>1")) {
			t.Errorf("%s: PDF/A-1 allows no object streams and no compressed metadata", level)
		}
	}
}

// Equal objects are stored once. Unused objects are dropped, and outside PDF/A
// output intents too.
func TestCompressObjects(t *testing.T) {
	t.Parallel()
	pic := imageStream(100, 100, "/DeviceRGB", "", rgb(photo(100, 100, 1)))
	in := handmade("1.4",
		"<</Type/Catalog/Pages 2 0 R/OutputIntents[<</Type/OutputIntent/S/GTS_PDFX/DestOutputProfile 9 0 R>>]>>",
		"<</Type/Pages/Kids[3 0 R 6 0 R]/Count 2/MediaBox[0 0 250 187.5]>>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>",
		stream("", fill), pic,
		"<</Type/Page/Parent 2 0 R/Contents 7 0 R/Resources<</XObject<</I 8 0 R>>>>/Thumb 5 0 R>>",
		stream("", fill), pic,
		stream("/N 4", strings.Repeat("profile", 9999)),
		stream("", "nobody needs this"))
	for level, intents := range map[string]bool{"less": true, "recommended": false} {
		out := run(t, pdfops.Compress(), fileops.Args{"compression_value": level}, pdf("a.pdf", in))
		sound(t, out)
		q := shell(t, "qpdf", "--qdf", "--object-streams=disable", save(t, out), "-")
		if n := strings.Count(q, "/Subtype /Image"); n != 1 {
			t.Errorf("%s: %d pictures", level, n)
		}
		if n := len(regexp.MustCompile(`(?m)^/Type /Page$|/Type /Page\n`).FindAllString(q, -1)); n != 2 {
			t.Errorf("%s: %d pages", level, n)
		}
		if strings.Contains(q, "nobody") || strings.Contains(q, "/OutputIntents") != intents || strings.Contains(q, "/Thumb") {
			t.Errorf("%s: not as expected", level)
		}
	}
}

// A PDF version that never existed.
func TestUnknownVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.8", "3.0"} {
		in := bytes.Clone(simple("a"))
		copy(in[bytes.Index(in, []byte("%PDF-"))+5:], version)
		for name, tools := range variants(t) {
			sound(t, run(t, tools.Compress(), nil, pdf("a.pdf", in)))
			out := run(t, tools.Merge(tools.FromImages()), nil, pdf("a.pdf", in), pdf("b.pdf", simple("b")))
			sound(t, out)
			if text := shell(t, "pdftotext", save(t, out), "-"); !strings.Contains(text, "a") || !strings.Contains(text, "b") {
				t.Errorf("%s: version %s: the text is %q", name, version, text)
			}
		}
	}
}

// Streams with old filters, and JPEG within another filter.
func TestCompressFilters(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0 0 m 100 100 l S ", 500)
	hex := fmt.Sprintf("%x>", long)
	jpg := asJPEG(t, photo(300, 200, 1), 60)
	in := withPicture(fill, imageStream(300, 200, "/DeviceRGB", "/Filter[/ASCIIHexDecode/DCTDecode]", fmt.Appendf(nil, "%x>", jpg)))
	in = bytes.Replace(in, []byte("/Contents 4 0 R"), []byte("/Contents[4 0 R 6 0 R]"), 1)
	in = append(in[:bytes.LastIndex(in, []byte("xref\n0"))], fmt.Sprintf("6 0 obj\n%s\nendobj\ntrailer<</Root 1 0 R/Size 7>>", stream("/Filter/AHx", hex))...)
	out := run(t, pdfops.Tools{QPDF: findQPDF(t)}.Compress(), nil, pdf("a.pdf", in))
	sound(t, out)
	if !bytes.Contains(content(t, out), jpg) {
		t.Error("the JPEG file is not taken out")
	}
	q := shell(t, "qpdf", "--qdf", save(t, out), "-")
	if !strings.Contains(q, "100 100 l S") {
		t.Error("the content is lost")
	}
}

// Nested forms that expand to billions of operators, and a loop.
func TestCompressBombs(t *testing.T) {
	t.Parallel()
	objects := []string{
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 250 187.5]/Contents 4 0 R/Resources<</XObject<</F 5 0 R/I 30 0 R>>>>>>",
		stream("", "/F Do "+fill),
	}
	for i := 5; i < 29; i++ {
		objects = append(objects, stream(fmt.Sprintf("/Type/XObject/Subtype/Form/BBox[0 0 1 1]/Resources<</XObject<</F %d 0 R>>>>", i+1),
			strings.Repeat("1.01 0 0 .99 0 0 cm /F Do ", 10)))
	}
	objects = append(objects, stream("/Type/XObject/Subtype/Form/BBox[0 0 1 1]/Resources<</XObject<</F 5 0 R>>>>", "/F Do"),
		imageStream(1000, 750, "/DeviceRGB", "/Filter/DCTDecode", asJPEG(t, photo(1000, 750, 6), 95)))
	out := run(t, pdfops.Compress(), fileops.Args{"compression_value": "extreme"}, pdf("bomb.pdf", handmade("1.7", objects...)))
	// The walker did not see all content, so no image may be scaled.
	if q := shell(t, "qpdf", "--json=2", "--json-key=qpdf", save(t, out)); !strings.Contains(q, `"/Width": 1000`) {
		t.Error("the picture is scaled")
	}
}

func TestCompressCancelled(t *testing.T) {
	t.Parallel()
	var files []*fileops.File
	for i := range 4 {
		files = append(files, fileops.Bytes("p.jpg", asJPEG(t, photo(1000, 750, uint64(i)), 95)))
	}
	in := pdf("a.pdf", album(t, files...))
	ctx, cancel := context.WithCancel(t.Context())
	r := fileops.Runner{TempDir: t.TempDir(), Progress: func(done float64) {
		if done > 0.2 {
			cancel()
		}
	}}
	err := r.Run(ctx, pdfops.Compress(), nil, fileops.ToDir(t.TempDir()), in)
	if fileops.Code(err) != "cancelled" {
		t.Errorf("error %v", err)
	}
}

func BenchmarkCompress(b *testing.B) {
	in := pdf("a.pdf", album(b, fileops.Bytes("p.jpg", asJPEG(b, photo(1600, 1200, 1), 92))))
	b.SetBytes(in.Size())
	for b.Loop() {
		run(b, pdfops.Compress(), nil, in)
	}
}

func BenchmarkMerge(b *testing.B) {
	in := pdf("a.pdf", rich("text"))
	b.SetBytes(10 * in.Size())
	for b.Loop() {
		run(b, pdfops.Merge(), nil, in, in, in, in, in, in, in, in, in, in)
	}
}

func BenchmarkLock(b *testing.B) {
	in := pdf("a.pdf", rich("text"))
	for name, tools := range variants(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(in.Size())
			for b.Loop() {
				run(b, tools.Lock(), fileops.Args{"password": "secret"}, in)
			}
		})
	}
}

func BenchmarkUnlock(b *testing.B) {
	in := pdf("a.pdf", encrypted(b, rich("text"), "secret", "owner", "256"))
	for name, tools := range variants(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(in.Size())
			for b.Loop() {
				run(b, tools.Unlock(), fileops.Args{"password": "secret"}, in)
			}
		})
	}
}

func BenchmarkFromImages(b *testing.B) {
	in := fileops.Bytes("p.png", asPNG(b, photo(1600, 1200, 1)))
	b.SetBytes(in.Size())
	for b.Loop() {
		run(b, pdfops.FromImages(), toPDF(), in)
	}
}

// A file that needs a password is compressed with it.
func TestCompressWithPassword(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", encrypted(t, simple("x"), "0pensesame", "owner", "256"))
	fails(t, fileops.ErrPasswordRequired, pdfops.Compress(), nil, in)
	fails(t, fileops.ErrWrongPassword, pdfops.Compress(), fileops.Args{"password": "wrong"}, in)
	big := encryptedWith(t, simple(strings.Repeat("text ", 4000)), []string{"--compress-streams=n"}, "0pensesame", "owner", "256")
	out, warnings := withWarnings(t, pdfops.Compress(), fileops.Args{"password": "0pensesame"}, pdf("a.pdf", big))
	sound(t, out)
	if !slices.Equal(warnings, []string{fileops.WarnProtectionRemoved}) || out.Size() >= int64(len(big)) {
		t.Errorf("warnings %q, from %d to %d bytes", warnings, len(big), out.Size())
	}
}
