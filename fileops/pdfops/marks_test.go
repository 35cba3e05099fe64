package pdfops_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// A word is a word on a page as poppler finds it, in points from the upper left corner
// of the visible page.
type word struct {
	Left   float64 `xml:"xMin,attr"`
	Top    float64 `xml:"yMin,attr"`
	Right  float64 `xml:"xMax,attr"`
	Bottom float64 `xml:"yMax,attr"`
	Text   string  `xml:",chardata"`
}

// wordsOf returns the words of the first page.
func wordsOf(t *testing.T, path string) []word {
	t.Helper()
	var v struct {
		Body struct {
			Doc struct {
				Pages []struct {
					Words []word `xml:"word"`
				} `xml:"page"`
			} `xml:"doc"`
		} `xml:"body"`
	}
	systest.NoError(t, xml.Unmarshal([]byte(shell(t, "pdftotext", "-bbox", "-cropbox", path, "-")), &v))
	return v.Body.Doc.Pages[0].Words
}

// visible returns the visible part of the first page, with a pixel for each point.
func visible(t *testing.T, path string) image.Image {
	t.Helper()
	out := filepath.Join(t.TempDir(), "p")
	shell(t, "pdftoppm", "-png", "-r", "72", "-cropbox", "-singlefile", path, out)
	img, err := png.Decode(bytes.NewReader(read(t, out+".png")))
	systest.NoError(t, err)
	return img
}

// blank returns a page of 400 × 300 points with the given attributes and a blue
// rectangle in its middle.
func blank(attributes string) []byte {
	return handmade("1.7", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1"+attributes+">>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>",
		stream("", "q .5 0 0 .5 99 70 cm 0 0 1 rg 0 0 300 260 re f")) // the state is not restored
}

// differing returns the smallest rectangle outside of which two pictures are equal.
func differing(a, b image.Image) (r image.Rectangle) {
	at := func(m image.Image, x, y int) color.NRGBA { return color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA) }
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			if at(a, x, y) != at(b, x, y) {
				r = r.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return r
}

// Numbers are upright on the visible part of pages of every kind, where position says.
func TestPageNumberPlaces(t *testing.T) {
	t.Parallel()
	positions := []string{"top-left", "top-center", "top-right", "bottom-left", "bottom-center", "bottom-right"}
	for i, page := range []string{
		"/MediaBox[0 0 400 300]", "/MediaBox[0 0 400 300]/Rotate 90", "/MediaBox[-50 -20 350 280]/Rotate 180",
		"/MediaBox[400 300 0 0]/Rotate -90", "/MediaBox[0 0 400 300]/CropBox[50 40 350 250]/Rotate 90", "/MediaBox[0 0 400 300]/CropBox[50 40 999 999]",
		"/MediaBox[0 0 100 80]", "/MediaBox[0 0 30 20]",
	} {
		for j, position := range positions {
			if !cell(i, j, len(positions)) {
				continue
			}
			in := pdf("a.pdf", blank(page))
			out := run(t, pdfops.PageNumbers(), fileops.Args{"position": position, "format": "No{page}"}, in)
			sound(t, out)
			path := save(t, out)
			words, before, after := wordsOf(t, path), visible(t, save(t, in)), visible(t, path)
			w, h := float64(after.Bounds().Dx()), float64(after.Bounds().Dy())
			if len(words) != 1 || words[0].Text != "No1" {
				t.Errorf("%s %s: words %+v", page, position, words)
				continue
			}
			n := words[0]
			// The middle of the number lies in the ninth of the page that position names.
			column, row := int(3*(n.Left+n.Right)/2/w), int(3*(n.Top+n.Bottom)/2/h)
			vertical, horizontal, _ := strings.Cut(position, "-")
			if want := (map[string]int{"left": 0, "center": 1, "right": 2}[horizontal]); column != want || row != (map[string]int{"top": 0, "bottom": 2}[vertical]) {
				t.Errorf("%s %s: number at %+v of %v × %v", page, position, n, w, h)
			}
			if n.Left < 0 || n.Top < 0 || n.Right > w || n.Bottom > h || n.Right-n.Left < n.Bottom-n.Top {
				t.Errorf("%s %s: number at %+v is not upright on the page", page, position, n)
			}
			changed := differing(before, after)
			allowed := image.Rect(int(n.Left)-2, int(n.Top)-2, int(n.Right)+3, int(n.Bottom)+3)
			if changed.Empty() || !changed.In(allowed) {
				t.Errorf("%s %s: pixels in %v changed, the number is in %v", page, position, changed, allowed)
			}
		}
	}
}

func TestPageNumbers(t *testing.T) {
	t.Parallel()
	in := numberedPages(t, 5)
	for _, tt := range []struct {
		args fileops.Args
		want []string
	}{
		{nil, []string{"1 1", "2 2", "3 3", "4 4", "5 5"}},
		{fileops.Args{"format": "Seite {page} / {pages}", "pages": "-1,2"}, []string{"1", "2 Seite 2 / 5", "3", "4", "5 Seite 5 / 5"}},
		{fileops.Args{"format": "{page} of {pages}", "pages": "2-", "start": 11}, []string{"1", "2 11 of 14", "3 12 of 14", "4 13 of 14", "5 14 of 14"}},
		{fileops.Args{"format": "Überblick {page}, Страница"}, []string{"1 Überblick 1, Страница", "2 Überblick 2, Страница", "3 Überblick 3, Страница", "4 Überblick 4, Страница", "5 Überblick 5, Страница"}},
		{fileops.Args{"format": "第{page}页", "pages": "1", "start": 0}, []string{"1 第0页", "2", "3", "4", "5"}},
	} {
		out := run(t, pdfops.PageNumbers(), tt.args, in)
		sound(t, out)
		if got := pageTexts(t, out); !slices.Equal(got, tt.want) {
			t.Errorf("%v gives %q, want %q", tt.args, got, tt.want)
		}
		if n := out.Size() - in.Size(); n > 12<<10 {
			t.Errorf("%v adds %d bytes", tt.args, n)
		}
		for _, f := range strings.Split(shell(t, "pdffonts", save(t, out)), "\n") {
			if strings.HasPrefix(f, "FWRG") && !strings.Contains(f, "yes yes yes") {
				t.Errorf("font is not embedded as a part with text: %s", f)
			}
		}
	}
}

// A page that occurs twice, and pages that share their content and resources, get a
// number each.
func TestPageNumbersOfSharedPages(t *testing.T) {
	t.Parallel()
	in := handmade("1.7", "<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R 3 0 R 4 0 R<</Type/Page/Contents 5 0 R>>]/Count 4/MediaBox[0 0 300 200]/Resources 6 0 R>>",
		"<</Type/Page/Parent 2 0 R/Contents 5 0 R>>", "<</Type/Page/Parent 2 0 R/Contents[5 0 R]>>",
		stream("", "BT /F 24 Tf 20 100 Td (x) Tj ET"), "<</Font 7 0 R>>", "<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>")
	out := run(t, pdfops.PageNumbers(), nil, pdf("a.pdf", in))
	sound(t, out)
	if got := pageTexts(t, out); !slices.Equal(got, []string{"x 1", "x 2", "x 3", "x 4"}) {
		t.Errorf("pages %q", got)
	}
}

// Marks are artifacts: the structure of a tagged document stays as it was.
func TestMarksOfTaggedFiles(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", taggedFile("alpha", "en", "/Title/H1/Art/Sect", "/O/Layout/TextAlign/Center"))
	for _, tt := range []struct {
		action  fileops.Action
		args    fileops.Args
		subtype string
	}{
		{pdfops.PageNumbers(), fileops.Args{"format": "Number {page}"}, "/Footer"},
		{pdfops.PageNumbers(), fileops.Args{"format": "Number {page}", "position": "top-left"}, "/Header"},
		{pdfops.Watermark(), fileops.Args{"text": "Number"}, "/Watermark"},
	} {
		out := run(t, tt.action, tt.args, in)
		sound(t, out)
		if got, want := structureOf(t, save(t, out)), structureOf(t, save(t, in)); got != want {
			t.Errorf("structure\n%s\nwant\n%s", got, want)
		}
		if text := shell(t, "pdfinfo", "-struct-text", save(t, out)); strings.Contains(text, "Number") {
			t.Errorf("the mark is part of the structure:\n%s", text)
		}
		if b := string(inflated(t, content(t, out))); !strings.Contains(b, "/Artifact<</Type/Pagination/Subtype"+tt.subtype) {
			t.Errorf("%s is not marked as an artifact", tt.subtype)
		}
	}
}

func TestMarkErrors(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", simple("x"))
	none := pdfops.Tools{FontDirs: []string{}}
	for _, tt := range []struct {
		action fileops.Action
		args   fileops.Args
		param  string
		want   string
	}{
		{pdfops.PageNumbers(), fileops.Args{"format": "{page} {date}"}, "format", "{date}"},
		{pdfops.PageNumbers(), fileops.Args{"pages": "2"}, "pages", "1 page"},
		{pdfops.Watermark(), nil, "text", "required"},
		{pdfops.Watermark(), fileops.Args{"text": "a", "image_key": logo(t, 0)}, "image_key", "cannot be combined with text"},
		{pdfops.Watermark(), fileops.Args{"image_key": pdf("a.webp", nil)}, "image_key", "png, jpg"},
		{pdfops.Watermark(), fileops.Args{"text": " \n "}, "text", "no visible characters"},
		{none.Watermark(), fileops.Args{"text": "草案 draft"}, "text", `"案草"`},
		{none.PageNumbers(), fileops.Args{"format": "第{page}页"}, "format", `"第页"`},
	} {
		_, err := try(t.Context(), t, tt.action, tt.args, in)
		var param *fileops.ParamError
		if !errors.As(err, &param) || param.Param != tt.param || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %v: %v", tt.action.Spec().Name, tt.args, err)
		}
	}
	signed := pdf("a.pdf", fieldsFile("/SigFlags 3", "/FT/Sig/V<</Type/Sig/Filter/Adobe.PPKLite/ByteRange[0 1 2 3]/Contents<00>>>"))
	if codes := warned(t, pdfops.PageNumbers(), nil, signed); !slices.Equal(codes, []string{fileops.WarnSignatureInvalid}) {
		t.Errorf("warnings %q", codes)
	}
	locked := pdf("a.pdf", encrypted(t, rich("secret"), "0pensesame", "owner", "256"))
	fails(t, fileops.ErrPasswordRequired, pdfops.PageNumbers(), nil, locked)
	if codes := warned(t, pdfops.PageNumbers(), fileops.Args{"password": "0pensesame"}, locked); !slices.Equal(codes, []string{fileops.WarnProtectionRemoved}) {
		t.Errorf("warnings %q", codes)
	}
}

// A watermark is upright on the visible part of the page, changes nothing outside of its
// place, and lets the content below it show through.
func TestWatermarkPlaces(t *testing.T) {
	t.Parallel()
	places := map[string]image.Rectangle{ // in sixths of the page
		"center": image.Rect(1, 2, 5, 4), "diagonal": image.Rect(0, 0, 6, 6), "tile": image.Rect(0, 0, 6, 6),
		"top-left": image.Rect(0, 0, 2, 2), "top": image.Rect(2, 0, 4, 2), "top-right": image.Rect(4, 0, 6, 2),
		"left": image.Rect(0, 2, 2, 4), "right": image.Rect(4, 2, 6, 4),
		"bottom-left": image.Rect(0, 4, 2, 6), "bottom": image.Rect(2, 4, 4, 6), "bottom-right": image.Rect(4, 4, 6, 6),
	}
	for i, page := range []string{"/MediaBox[0 0 400 300]", "/MediaBox[0 0 400 300]/CropBox[50 40 350 250]/Rotate 90", "/MediaBox[-50 -20 350 280]/Rotate 180"} {
		for j, position := range slices.Sorted(maps.Keys(places)) {
			if !cell(i, j, 3) {
				continue
			}
			in := pdf("a.pdf", blank(page))
			out := run(t, pdfops.Watermark(), fileops.Args{"text": "Draft", "position": position}, in)
			sound(t, out)
			before, after := visible(t, save(t, in)), visible(t, save(t, out))
			w, h := after.Bounds().Dx(), after.Bounds().Dy()
			p := places[position]
			changed := differing(before, after)
			if allowed := image.Rect(p.Min.X*w/6, p.Min.Y*h/6, p.Max.X*w/6, p.Max.Y*h/6); changed.Empty() || !changed.In(allowed) {
				t.Errorf("%s %s: pixels in %v of %d × %d changed, want %v", page, position, changed, w, h, allowed)
			}
			// Tilted letters are in lines of their own.
			if text := strings.Join(strings.Fields(shell(t, "pdftotext", "-raw", "-cropbox", save(t, out), "-")), ""); !strings.Contains(text, "Draft") {
				t.Errorf("%s %s: text %q", page, position, text)
			}
		}
	}
}

func TestWatermarkLooks(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", blank("/MediaBox[0 0 400 300]"))
	// Colours of the letters on white and on the blue rectangle.
	colours := func(opacity float64) (white, blue bool) {
		out := run(t, pdfops.Watermark(), fileops.Args{"text": "■■■", "opacity": opacity, "scale": 1}, in)
		img := visible(t, save(t, out))
		alpha := opacity
		for x := range img.Bounds().Dx() {
			c := color.NRGBAModel.Convert(img.At(x, 150)).(color.NRGBA)
			near := func(got uint8, ground float64) bool { return math.Abs(float64(got)-(127.5*alpha+ground*(1-alpha))) < 3 }
			white = white || near(c.R, 255) && near(c.B, 255)
			blue = blue || near(c.R, 0) && near(c.B, 255)
		}
		return white, blue
	}
	for _, opacity := range []float64{0.2, 0.7, 1} {
		if white, blue := colours(opacity); !white || !blue {
			t.Errorf("opacity %v: on white %v, on blue %v", opacity, white, blue)
		}
	}
	// Lines and other scripts can be read.
	out := run(t, pdfops.Watermark(), fileops.Args{"text": "Entwurf\nПроект\n草案", "pages": "2"}, numberedPages(t, 2))
	sound(t, out)
	if got := pageTexts(t, out); !slices.Equal(got, []string{"1", "Entwurf 2 Проект 草案"}) && !slices.Equal(got, []string{"1", "2 Entwurf Проект 草案"}) {
		t.Errorf("pages %q", got)
	}
	out = run(t, pdfops.Watermark(), fileops.Args{"text": "مسودة", "pages": "1"}, numberedPages(t, 1))
	if got := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) { // marks of direction
			return -1
		}
		return r
	}, pageTexts(t, out)[0]); got != "مسودة 1" && got != "1 مسودة" {
		t.Errorf("text %q", got)
	}
}

// A transparent mark ends the claim of PDF/A-1; an opaque one does not.
func TestWatermarkPDFA(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", handmade("1.4",
		"<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>",
		stream("/Type/Metadata/Subtype/XML", `<rdf:Description pdfaid:conformance="B"><pdfaid:part>1</pdfaid:part><dc:title>kept</dc:title></rdf:Description>`)))
	out, warnings := withWarnings(t, pdfops.Watermark(), fileops.Args{"text": "x"}, in)
	if b := content(t, out); bytes.Contains(b, []byte("pdfaid")) || !bytes.Contains(b, []byte("<dc:title>kept")) || !slices.Equal(warnings, []string{fileops.WarnMetadataDropped}) {
		t.Errorf("warnings %q, file %q", warnings, b)
	}
	out, warnings = withWarnings(t, pdfops.Watermark(), fileops.Args{"text": "x", "opacity": 1}, in)
	if b := content(t, out); !bytes.Contains(b, []byte("<pdfaid:part>1<")) || bytes.Contains(b, []byte("/ObjStm")) || bytes.Contains(b, []byte("/ca ")) || len(warnings) > 0 {
		t.Errorf("warnings %q, file %q", warnings, b)
	}
}

// logo returns a picture of 40 × 20 pixels: red at the left, and at the right green with
// the given opacity.
func logo(t *testing.T, right uint8) *fileops.File {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, 40, 20))
	for y := range 20 {
		for x := range 40 {
			c := color.NRGBA{R: 255, A: 255}
			if x >= 20 {
				c = color.NRGBA{G: 255, A: right}
			}
			m.SetNRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, m))
	return pdf("logo.png", b.Bytes())
}

// A picture is upright on every page, as large as asked for, keeps its colours and its
// transparency, and is stored once.
func TestWatermarkPicture(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"/MediaBox[0 0 400 300]", "/MediaBox[0 0 300 400]/Rotate 90"} {
		in := pdf("a.pdf", blank(page))
		for _, opacity := range []float64{0.5, 1} {
			out := run(t, pdfops.Watermark(), fileops.Args{"image_key": logo(t, 128), "position": "top-left", "scale": 0.5, "opacity": opacity}, in)
			sound(t, out)
			before, after := visible(t, save(t, in)), visible(t, save(t, out))
			changed := differing(before, after)
			if w, h := changed.Dx(), changed.Dy(); w < 198 || w > 202 || h < 98 || h > 102 {
				t.Errorf("%s: pixels in %v changed", page, changed)
			}
			y := changed.Min.Y + 10
			for x, want := range map[int]color.NRGBA{
				changed.Min.X + 10: {255, uint8(255 * (1 - opacity)), uint8(255 * (1 - opacity)), 255},
				changed.Max.X - 10: {uint8(255 * (1 - opacity*128/255)), 255, uint8(255 * (1 - opacity*128/255)), 255},
			} {
				got := color.NRGBAModel.Convert(after.At(x, y)).(color.NRGBA)
				for _, d := range []int{int(got.R) - int(want.R), int(got.G) - int(want.G), int(got.B) - int(want.B)} {
					if d < -4 || d > 4 {
						t.Errorf("%s, opacity %v: colour %v at %d,%d, want %v", page, opacity, got, x, y, want)
						break
					}
				}
			}
		}
	}
	out := run(t, pdfops.Watermark(), fileops.Args{"image_key": logo(t, 255), "position": "tile"}, numberedPages(t, 3))
	sound(t, out)
	if images := strings.Count(shell(t, "pdfimages", "-list", save(t, out)), " image "); images < 3 {
		t.Errorf("%d pictures", images)
	}
	if n := bytes.Count(content(t, run(t, pdfops.Watermark(), fileops.Args{"image_key": logo(t, 255)}, pdf("a.pdf", blank("/MediaBox[0 0 99 99]")))), []byte("/Width 40")); n != 1 {
		t.Errorf("the picture is stored %d times", n)
	}
	broken := content(t, logo(t, 255))
	_, err := try(t.Context(), t, pdfops.Watermark(), fileops.Args{"image_key": pdf("a.png", broken[:len(broken)/2])}, numberedPages(t, 1))
	if !errors.Is(err, fileops.ErrParameter) || !strings.Contains(fileops.Message(err), "image_key") {
		t.Errorf("a broken picture: %v", err)
	}
}

// The colours of an opaque picture conform to PDF/A; transparent parts do not conform to
// PDF/A-1.
func TestWatermarkPicturePDFA(t *testing.T) {
	t.Parallel()
	for part, want := range map[string][2]bool{"1": {true, false}, "2": {true, true}} { // keeps the claim: opaque, transparent
		in := pdf("a.pdf", handmade("1.4",
			"<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>",
			stream("/Type/Metadata/Subtype/XML", `<rdf:Description pdfaid:conformance="B"><pdfaid:part>`+part+`</pdfaid:part></rdf:Description>`)))
		for i, opacity := range []uint8{255, 100} {
			out, warnings := withWarnings(t, pdfops.Watermark(), fileops.Args{"image_key": logo(t, opacity), "opacity": 1}, in)
			b := content(t, out)
			if keeps := bytes.Contains(b, []byte("pdfaid:part")); keeps != want[i] || keeps != (len(warnings) == 0) {
				t.Errorf("part %s, opacity %d: keeps the claim: %v, warnings %q", part, opacity, keeps, warnings)
			}
			if part == "1" && (!bytes.Contains(b, []byte("/CalRGB")) || bytes.Contains(b, []byte("/DeviceRGB"))) {
				t.Error("the colours are not calibrated")
			}
		}
	}
}
