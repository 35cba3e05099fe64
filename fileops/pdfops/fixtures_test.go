package pdfops_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// photo returns a synthetic photograph: gradients, edges and a little noise.
func photo(w, h int, seed uint64) *image.NRGBA { return noisyPhoto(w, h, seed, 1) }

// noisyPhoto is photo with noise of a given standard deviation.
func noisyPhoto(w, h int, seed uint64, sigma float64) *image.NRGBA {
	rng := rand.New(rand.NewPCG(seed, 1))
	type wave struct{ fx, fy, phase, amp float64 }
	var waves [3][]wave
	for c := range waves {
		for i := range 7 {
			f := math.Pow(2, float64(i))
			waves[c] = append(waves[c], wave{rng.NormFloat64() * f, rng.NormFloat64() * f, rng.Float64() * 6, 70 / math.Pow(1.8, float64(i))})
		}
	}
	type disc struct {
		x, y, r float64
		c       [3]float64
	}
	var discs []disc
	for range 8 {
		discs = append(discs, disc{rng.Float64(), rng.Float64(), 0.02 + 0.1*rng.Float64(), [3]float64{rng.NormFloat64() * 50, rng.NormFloat64() * 50, rng.NormFloat64() * 50}})
	}
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			u, v := float64(x)/float64(w), float64(y)/float64(w)
			var p [3]uint8
			noise := rng.NormFloat64() * sigma
			for c := range p {
				s := 128 + noise
				for _, k := range waves[c] {
					s += k.amp * math.Sin(k.fx*u*6+k.fy*v*6+k.phase)
				}
				for _, d := range discs {
					if (u-d.x)*(u-d.x)+(v-d.y)*(v-d.y) < d.r*d.r {
						s += d.c[c]
					}
				}
				p[c] = uint8(max(0, min(255, s)))
			}
			img.SetNRGBA(x, y, color.NRGBA{p[0], p[1], p[2], 255})
		}
	}
	return img
}

// vips runs an operation of vips from one file to another and returns the result.
func vips(t testing.TB, op string, b []byte, ext, to string, args ...string) []byte {
	t.Helper()
	in := filepath.Join(t.TempDir(), "in."+ext)
	systest.NoError(t, os.WriteFile(in, b, 0o600))
	out := "out." + to
	name, _, _ := strings.Cut(out, "[")
	return read(t, systest.MadeBy(t, name, "", append([]string{"vips", op, in, out}, args...)...))
}

// fodt returns a document with every feature that a PDF export can carry.
func fodt(t testing.TB) string {
	pic := func(name string, b []byte) string {
		return fmt.Sprintf(`<text:p><draw:frame draw:name="%s" text:anchor-type="paragraph" svg:width="12cm" svg:height="9cm"><draw:image><office:binary-data>%s</office:binary-data></draw:image></draw:frame></text:p>`,
			name, base64.StdEncoding.EncodeToString(b))
	}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:form="urn:oasis:names:tc:opendocument:xmlns:form:1.0" office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.text"><office:body><office:text>
<office:forms><form:form form:name="Form"><form:text form:name="city" form:id="c1" xml:id="c1" form:current-value="Oslo"/></form:form></office:forms>
<text:h text:outline-level="1">First chapter</text:h>
<text:p><draw:control draw:control="c1" text:anchor-type="as-char" svg:width="5cm" svg:height="0.8cm"/></text:p>
<text:p>See <text:a xlink:type="simple" xlink:href="https://example.org/">the site</text:a> or <text:a xlink:type="simple" xlink:href="#Second chapter|outline">below</text:a>.</text:p>`)
	for i := range 30 {
		fmt.Fprintf(&b, `<text:p>Paragraph %d with Äpfel and λόγος, and enough words to fill more than one line of the page, as texts do.</text:p>`, i)
	}
	b.WriteString(pic("jpeg", asJPEG(t, photo(1600, 1200, 1), 95)))
	b.WriteString(`<text:h text:outline-level="1">Second chapter</text:h><table:table table:name="T">`)
	for r := range 12 {
		b.WriteString(`<table:table-row>`)
		for c := range 4 {
			fmt.Fprintf(&b, `<table:table-cell><text:p>cell %d %d</text:p></table:table-cell>`, r, c)
		}
		b.WriteString(`</table:table-row>`)
	}
	b.WriteString(`</table:table>`)
	b.WriteString(pic("png", asPNG(t, photo(600, 450, 2))))
	b.WriteString(`</office:text></office:body></office:document>`)
	return b.String()
}

// office converts that document with LibreOffice.
func office(t testing.TB, options string) []byte {
	t.Helper()
	return officeExport(t, "doc.fodt", fodt(t), options)
}

// officeExport converts a text document with LibreOffice. options are those of its PDF export.
func officeExport(t testing.TB, name, content, options string) []byte {
	t.Helper()
	key, err := systest.Program("soffice")
	systest.NoError(t, err)
	result := strings.TrimSuffix(name, filepath.Ext(name)) + ".pdf"
	path, err := systest.Made(result, key+options+content, func(path string) error {
		dir := t.TempDir()
		in := filepath.Join(dir, name)
		if err := os.WriteFile(in, []byte(content), 0o600); err != nil {
			return err
		}
		cmd := exec.Command("soffice", "-env:UserInstallation=file://"+dir+"/profile", "--headless", "--convert-to",
			"pdf:writer_pdf_Export:{"+options+"}", "--outdir", filepath.Dir(path), in)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("soffice: %w: %s", err, out)
		}
		return nil
	})
	systest.NoError(t, err)
	return read(t, path)
}

const (
	everything = `"UseTaggedPDF":{"type":"boolean","value":"true"},"ExportBookmarks":{"type":"boolean","value":"true"},` +
		`"ExportFormFields":{"type":"boolean","value":"true"},"Quality":{"type":"long","value":"95"},"ReduceImageResolution":{"type":"boolean","value":"false"}`
	archival = `"SelectPdfVersion":{"type":"long","value":"1"},"ReduceImageResolution":{"type":"boolean","value":"false"},"Quality":{"type":"long","value":"95"}`
)

// withPicture draws an image, given as a stream object, on a page of 250 × 187.5
// points. The image is object 5; more objects may follow.
func withPicture(draw string, objects ...string) []byte {
	all := []string{
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 250 187.5]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>",
		stream("", draw),
	}
	return handmade("1.7", append(all, objects...)...)
}

const fill = "q 250 0 0 187.5 0 0 cm /I Do Q"

func imageStream(w, h int, space, filter string, b []byte) string {
	return stream(fmt.Sprintf("/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace%s/BitsPerComponent 8%s", w, h, space, filter), string(b))
}

func rgb(img *image.NRGBA) []byte {
	var b []byte
	for i := 0; i < len(img.Pix); i += 4 {
		b = append(b, img.Pix[i:i+3]...)
	}
	return b
}

// album makes a PDF file of images.
func album(t testing.TB, files ...*fileops.File) []byte {
	t.Helper()
	return content(t, run(t, pdfops.ImagesToPDF(), toPDF(), files...))
}

// samples returns the documents for the compression tests.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{"office": office(t, everything), "pdfa": office(t, archival)}

	dir, dpi := t.TempDir(), fmt.Sprint(systest.Scale(250, 150))
	shell(t, "pdftoppm", "-r", dpi, "-jpeg", "-jpegopt", "quality=97", save(t, pdf("o.pdf", out["office"])), filepath.Join(dir, "s"))
	shell(t, "pdftoppm", "-r", dpi, "-jpeg", "-gray", "-jpegopt", "quality=97", save(t, pdf("o.pdf", out["office"])), filepath.Join(dir, "g"))
	for _, kind := range []string{"s", "g"} {
		pages, err := filepath.Glob(filepath.Join(dir, kind+"-*.jpg"))
		if err != nil || len(pages) < 2 {
			t.Fatalf("pages: %v, %v", pages, err)
		}
		var in []*fileops.File
		for _, p := range pages {
			in = append(in, fileops.Path(p))
		}
		out[map[string]string{"s": "scan", "g": "gray scan"}[kind]] = album(t, in...)
	}

	big := photo(1000, 750, 3)
	out["png"] = album(t, fileops.Bytes("p.png", asPNG(t, photo(600, 450, 8))))
	out["noisy png"] = album(t, fileops.Bytes("p.png", asPNG(t, noisyPhoto(600, 450, 8, 2))))
	cmyk := vips(t, "icc_transform", asPNG(t, big), "png", "jpg[Q=95,strip]", "cmyk", "--input-profile", "srgb")
	out["cmyk"] = withPicture(fill, imageStream(1000, 750, "/DeviceCMYK", "/Filter/DCTDecode/Decode[1 0 1 0 1 0 1 0]", cmyk))
	raw := vips(t, "icc_transform", asPNG(t, big), "png", "v", "cmyk", "--input-profile", "srgb")
	out["cmyk plain"] = withPicture(fill, imageStream(1000, 750, "/DeviceCMYK", "", vips(t, "rawsave", raw, "v", "raw")))
	out["jpx"] = withPicture(fill, imageStream(1000, 750, "/DeviceRGB", "/Filter/JPXDecode", vips(t, "jp2ksave", asPNG(t, big), "png", "jp2", "--Q", "60", "--subsample-mode", "off")))
	paletted := vips(t, "pngsave", asPNG(t, photo(1000, 750, 4)), "png", "png", "--palette")
	out["indexed"] = withPicture(fill, indexedImage(t, paletted)...)

	alpha := photo(800, 600, 5)
	for i := 3; i < len(alpha.Pix); i += 4 {
		x, y := float64(i/4%800)/800-.5, float64(i/4/800)/600-.5
		alpha.Pix[i] = uint8(255 * max(0, min(1, 2.2-5*math.Hypot(x, y))))
	}
	out["soft mask"] = withPicture(fill,
		imageStream(800, 600, "/DeviceRGB", "/SMask 6 0 R", rgb(alpha)),
		imageStream(800, 600, "/DeviceGray", "", alphaBytes(alpha)))

	jpg := string(asJPEG(t, photo(1000, 750, 6), 95))
	jpegImage := stream("/Type/XObject/Subtype/Image/Width 1000/Height 750/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode", jpg)
	out["pattern"] = handmade("1.7",
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 125 93.75]/UserUnit 2/Contents 4 0 R/Resources<</Pattern<</P 6 0 R>>>>>>",
		stream("", "/Pattern cs /P scn 0 0 125 93.75 re f"),
		jpegImage,
		stream("/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep 1/YStep 1/Matrix[125 0 0 93.75 0 0]/Resources<</XObject<</F 7 0 R>>>>", "/F Do"),
		stream("/Type/XObject/Subtype/Form/BBox[0 0 100 100]/Matrix[.01 0 0 .01 0 0]/Resources<</XObject<</I 5 0 R>>>>", "q 100 0 0 100 0 0 cm /I Do Q"))

	in := save(t, pdf("o.pdf", out["office"]))
	attached := filepath.Join(t.TempDir(), "a.pdf")
	shell(t, "qpdf", in, "--add-attachment", write(t, "data.csv", []byte("a,b\n1,2\n")), "--", attached)
	out["attachment"] = read(t, attached)
	return out
}

func alphaBytes(img *image.NRGBA) []byte {
	var b []byte
	for i := 3; i < len(img.Pix); i += 4 {
		b = append(b, img.Pix[i])
	}
	return b
}

// indexedImage returns the image of a PNG file with a palette and its colour
// table, as objects 5 and 6.
func indexedImage(t testing.TB, b []byte) []string {
	t.Helper()
	var pix, table bytes.Buffer
	img, _, err := image.Decode(bytes.NewReader(b))
	systest.NoError(t, err)
	p, ok := img.(*image.Paletted)
	if !ok {
		t.Fatalf("%T", img)
	}
	pix.Write(p.Pix)
	for _, c := range p.Palette {
		r, g, b, _ := c.RGBA()
		table.Write([]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8)})
	}
	space := fmt.Sprintf("[/Indexed/DeviceRGB %d 6 0 R]", len(p.Palette)-1)
	return []string{imageStream(p.Rect.Dx(), p.Rect.Dy(), space, "", pix.Bytes()), stream("", table.String())}
}
