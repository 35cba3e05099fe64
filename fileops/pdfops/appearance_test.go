package pdfops_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// utf16Text returns a text string object.
func utf16Text(s string) string {
	out := "<feff"
	for _, u := range utf16.Encode([]rune(s)) {
		out += fmt.Sprintf("%04x", u)
	}
	return out + ">"
}

// fieldsFile returns a document with form fields, each in a band of its own from
// the bottom up. Its font F1 is Helvetica.
func fieldsFile(form string, fields ...string) []byte {
	objects := []string{
		"", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "",
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
		stream("/Type/XObject/Subtype/Form/BBox[0 0 200 30]/Resources<</Font<</F1 4 0 R>>>>", "/Tx BMC BT /F1 12 Tf 2 9 Td (stale) Tj ET EMC"),
	}
	kids := ""
	for i, f := range fields {
		objects = append(objects, fmt.Sprintf("<</Type/Annot/Subtype/Widget/F 4/P 3 0 R/Rect[10 %d 210 %d]/T(f%d)%s>>", 10+50*i, 40+50*i, i, f))
		kids += fmt.Sprintf("%d 0 R ", 6+i)
	}
	objects[0] = "<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[" + kids + "]/DA(/F1 12 Tf 0 g)/DR<</Font<</F1 4 0 R>>>>" + form + ">>>>"
	objects[2] = fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 %d]/Annots[%s]>>", 60+50*len(fields), kids)
	return handmade("1.7", objects...)
}

// drawn returns a page as poppler draws it, at 72 dpi.
func drawn(t *testing.T, path string, page int) image.Image {
	t.Helper()
	out := filepath.Join(t.TempDir(), "p")
	shell(t, "pdftoppm", "-png", "-r", "72", "-singlefile", "-f", fmt.Sprint(page), path, out)
	img, err := png.Decode(bytes.NewReader(read(t, out+".png")))
	systest.NoError(t, err)
	return img
}

// ink returns the number of dark pixels in a rectangle, in PDF's coordinates.
func ink(img image.Image, x0, y0, x1, y1 int) (n int) {
	h := img.Bounds().Dy()
	for y := h - y1; y < h-y0; y++ {
		for x := x0; x < x1; x++ {
			if r, _, _, _ := img.At(x, y).RGBA(); r < 0xa000 {
				n++
			}
		}
	}
	return n
}

// Merge makes the appearances that a file lacks, or that it asks viewers to make.
// So the request disappears, and with it the harm that it does to other files.
func TestMergeAppearances(t *testing.T) {
	t.Parallel()
	const stale = "/AP<</N 5 0 R>>"
	asking := fieldsFile("/NeedAppearances true",
		"/FT/Tx/V(plain)", "/FT/Tx/V(fresh)"+stale, "/FT/Tx/V"+utf16Text("Жлобін ✔ Ωμέγα"), "/FT/Tx/Ff 4096/V(first line\\nsecond line that is much too long for a single one)/DA(/F1 0 Tf 0 g)",
		"/FT/Tx/Ff 16777216/MaxLen 5/V(12345)", "/FT/Ch/Ff 131072/Opt[[(a)(Apple)][(b)(Pear)]]/V(b)", "/FT/Ch/Opt[(one)(two)(three)]/V(two)/DA(/F1 8 Tf 0 g)",
		"/FT/Btn/V/On/MK<</BC[0 0 1]>>", "/FT/Btn/V/Off/MK<</BC[0 0 1]>>", "/FT/Tx/Ff 8192/V(secret)", "/FT/Btn/Ff 65536/MK<</CA(Press)/BG[.8]/BC[0]>>",
		"/FT/Tx/V"+utf16Text("日本語 かな")+"/DA(/F1 0 Tf 1 0 0 rg)", "/FT/Tx/V(turned)/MK<</R 180>>", "/FT/Tx/V()"+stale, "/FT/Tx/V(no font)/DA(/Gone 10 Tf)")
	// Its own appearance shows a value that its font cannot.
	other := fieldsFile("", "/FT/Tx/V"+utf16Text("Іншы")+"/AP<</N 5 0 R>>", "/FT/Tx/V(lonely)")
	for name, files := range map[string][][]byte{"first": {asking, other}, "last": {other, asking}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, pdfops.Merge(), nil, pdf("a.pdf", files[0]), pdf("b.pdf", files[1]))
			sound(t, out)
			p := save(t, out)
			q := shell(t, "qpdf", "--qdf", "--object-streams=disable", p, "-")
			if strings.Contains(q, "/NeedAppearances") {
				t.Error("viewers are still asked to make appearances")
			}
			got := text(t, out, "-layout")
			for _, want := range []string{
				"plain", "fresh", "Жлобін", "✔", "Ωμέγα", "first line", "second line", "single one", "Pear", "one", "two", "three", "******", "Press", "turned", "no font", "lonely",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("lacks %q", want)
				}
			}
			if n := strings.Count(got, "stale"); n != 1 || strings.Contains(got, "secret") || strings.Contains(got, "Apple") {
				t.Errorf("%d stale values in:\n%s", n, got)
			}
			page := 1
			if name == "last" {
				page = 2
			}
			img := drawn(t, p, page)
			band := func(i int) int { return ink(img, 10, 10+50*i, 210, 40+50*i) }
			for i := range 15 {
				switch n := band(i); {
				case i == 11: // poppler needs its own data for this
				case i == 13 && n > 0:
					t.Errorf("the empty field has %d dark pixels", n)
				case i != 13 && n < 20:
					t.Errorf("field %d has %d dark pixels", i, n)
				}
			}
			if on, off := ink(img, 100, 365, 120, 385), ink(img, 100, 415, 120, 435); on < 30 || off > 0 {
				t.Errorf("the checked box has %d dark pixels inside, the other %d", on, off)
			}
			if fonts := shell(t, "pdffonts", p); !regexp.MustCompile(`GoRegular +CID TrueType +Identity-H +yes yes yes`).MatchString(fonts) {
				t.Errorf("fonts:\n%s", fonts)
			}
			for _, want := range []string{"/Encoding /UniGB-UTF16-H", "/Encoding /UniJIS-UTF16-H", "/BaseFont /ZapfDingbats"} {
				if !strings.Contains(q, want) {
					t.Errorf("no font has %s", want)
				}
			}
		})
	}
}

// Buttons with appearances keep them, and show their value.
func TestMergeButtons(t *testing.T) {
	t.Parallel()
	states := "/AP<</N<</On 5 0 R/Off 5 0 R>>>>"
	in := fieldsFile("/NeedAppearances true", "/FT/Btn/V/On/AS/Off"+states, "/FT/Btn/AS/On"+states, "/FT/Btn/V/On"+states)
	out := run(t, pdfops.Merge(), nil, pdf("a.pdf", in), pdf("b.pdf", simple("b")))
	sound(t, out)
	q := shell(t, "qpdf", "--qdf", "--object-streams=disable", save(t, out), "-")
	if on, off := strings.Count(q, "/AS /On"), strings.Count(q, "/AS /Off"); on != 2 || off != 1 {
		t.Errorf("%d on, %d off", on, off)
	}
}
