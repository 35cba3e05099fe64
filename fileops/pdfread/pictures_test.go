package pdfread_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/tiff"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

// fixtures returns pages that renderers often get wrong.
func fixtures() map[string][]byte {
	gradient := "/Shading<</S1<</ShadingType 2/ColorSpace/DeviceRGB/Coords[0 0 400 0]/Function<</FunctionType 2/Domain[0 1]/C0[1 0 0]/C1[0 0 1]/N 1>>/Extend[true true]>>>>"
	m := map[string][]byte{
		"text":      pages(pdfPage{content: lines("F1", 14, 72, 760, 20, strings.Split(prose(1, 60), " ")[:30]...)}),
		"rotated":   pages(pdfPage{extra: "/Rotate 90", content: lines("F2", 20, 72, 760, 30, "A page that lies on its side", prose(2, 6))}),
		"crop box":  pages(pdfPage{extra: "/CropBox[50 400 545 800]", content: lines("F1", 18, 72, 760, 26, prose(3, 5), prose(4, 5), "line three")}),
		"origin":    pages(pdfPage{extra: "/MediaBox[-100 -200 300 250]", content: lines("F3", 12, -80, 200, 16, "Courier at odd coordinates", "second line") + "1 0 0 rg -50 -150 100 80 re f"}),
		"two tones": pages(pdfPage{content: "0 0 0 rg 100 100 200 300 re f 320 500 100 100 re f"}),
		"flat":      pages(pdfPage{content: "0.2 0.4 0.9 rg 100 100 200 300 re f 0.9 0.3 0.1 rg 320 500 100 100 re f 0 g " + lines("F1", 30, 100, 700, 40, "Colours")}),
		"gradient":  pages(pdfPage{extra: "/Resources<<" + gradient + ">>", content: "q 1 0 0 1 80 200 cm 0 0 400 300 re W n /S1 sh Q " + lines("F1", 30, 100, 700, 40, "Smooth")}),
		"transparent": pages(pdfPage{extra: "/Group<</S/Transparency/CS/DeviceRGB>>/Resources<</ExtGState<</G<</ca 0.5>>>>>>",
			content: "/G gs 1 0 0 rg 100 100 200 200 re f 0 0 1 rg 200 200 200 200 re f"}),
		"unit": pages(pdfPage{extra: "/UserUnit 2/MediaBox[0 0 200 300]", content: lines("F1", 14, 20, 260, 20, "A page with a unit", "of its own")}),
	}
	m["bits"] = bitImage()
	m["form"] = formAndNote()
	return m
}

// bitImage returns a page with a bilevel image.
func bitImage() []byte {
	p := &pdfFile{}
	var data []byte
	for y := range 64 {
		for x := range 8 {
			b := byte(0xf0)
			if (x+y/8)%2 == 0 {
				b = 0x33
			}
			data = append(data, b)
		}
	}
	img := p.add("<</Type/XObject/Subtype/Image/Width 64/Height 64/BitsPerComponent 1/ColorSpace/DeviceGray/Filter/ASCIIHexDecode/Length %d>>stream\n%x>\nendstream", 2*len(data)+1, data)
	content := p.stream("", "q 300 0 0 300 100 300 cm /I Do Q")
	pg := p.add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 595 842]/Resources<</XObject<</I %s>>>>/Contents %s>>", 4, img, content)
	tree := p.add("<</Type/Pages/Kids[%s]/Count 1>>", pg)
	return p.finish(p.add("<</Type/Catalog/Pages %s>>", tree))
}

// formAndNote returns a page with a filled form field and an annotation, each
// with an appearance.
func formAndNote() []byte {
	p := &pdfFile{}
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	res := "/Resources<</Font<</F1 " + font + ">>>>"
	look := p.stream("/Type/XObject/Subtype/Form/BBox[0 0 200 24]"+res, "0.9 0.95 1 rg 0 0 200 24 re f /Tx BMC 0 g BT /F1 14 Tf 4 7 Td (Filled value) Tj ET EMC")
	note := p.stream("/Type/XObject/Subtype/Form/BBox[0 0 150 60]"+res, "1 1 0.6 rg 0 0 150 60 re f 0 g BT /F1 12 Tf 6 30 Td (Typed remark) Tj ET")
	field := p.add("<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Filled value)/DA(/F1 14 Tf 0 g)/Rect[150 600 350 624]/F 4/AP<</N %s>>>>", look)
	free := p.add("<</Type/Annot/Subtype/FreeText/Contents(Typed remark)/DA(/F1 12 Tf 0 g)/Rect[150 400 300 460]/F 4/AP<</N %s>>>>", note)
	content := p.stream("", lines("F1", 14, 72, 607, 20, "Name:"))
	pg := p.add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 %s>>>>/Contents %s/Annots[%s %s]>>", 8, font, content, field, free)
	tree := p.add("<</Type/Pages/Kids[%s]/Count 1>>", pg)
	return p.finish(p.add("<</Type/Catalog/Pages %s/AcroForm<</Fields[%s]/DR<</Font<</F1 %s>>>>/DA(/F1 12 Tf 0 g)>>>>", tree, field, font))
}

// inherited returns a page with a filled form field that inherits its resources. Its
// letters are those of the word with each moved by one.
func inherited() []byte {
	p := &pdfFile{}
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Courier-Bold/Encoding<</BaseEncoding/WinAnsiEncoding/Differences[65/B/C/D/E]>>>>")
	plain := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	look := p.stream("/Type/XObject/Subtype/Form/BBox[0 0 200 24]/Resources<</Font<</F1 "+plain+">>>>", "BT /F1 14 Tf 4 7 Td (Filled value) Tj ET")
	field := p.add("<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Filled value)/Rect[150 600 350 624]/F 4/AP<</N %s>>>>", look)
	content := p.stream("", lines("F1", 14, 72, 607, 20, "ABCD"))
	pg := p.add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 595 842]/Contents %s/Annots[%s]>>", 7, content, field)
	tree := p.add("<</Type/Pages/Kids[%s]/Count 1/Resources<</Font<</F1 %s>>>>>>", pg, font)
	return p.finish(p.add("<</Type/Catalog/Pages %s/AcroForm<</Fields[%s]>>>>", tree, field))
}

// A page with form fields keeps the fonts that it inherits.
func TestInheritedResources(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	for _, to := range []string{"txt", "html", "docx"} {
		out := mustConvert(t, e, fileops.Args{"convert_to": to}, inherited())
		text := string(out[0].b)
		if to == "docx" {
			text = docxText(t, out[0].b)
		}
		if !strings.Contains(text, "BCDE") || !strings.Contains(text, "Filled value") {
			t.Errorf("%s: %.500s", to, text)
		}
	}
}

// TestPicturesLookRight compares with another renderer.
func TestPicturesLookRight(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	for name, pdf := range fixtures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := write(t, "in.pdf", pdf)
			ref := filepath.Join(filepath.Dir(in), "ref")
			tool(t, "pdftoppm", "-r", "100", "-png", "-singlefile", "-cropbox", in, ref)
			b := systest.ReadFile(t, ref+".png")
			want, err := png.Decode(bytes.NewReader(b))
			systest.NoError(t, err)
			for _, to := range []string{"png", "jpg"} {
				out := mustConvert(t, e, fileops.Args{"convert_to": to, "dpi": 100}, pdf)
				if len(out) != 1 || out[0].name != "in."+to {
					t.Fatalf("results %v", out)
				}
				got, _, err := image.Decode(bytes.NewReader(out[0].b))
				systest.NoError(t, err)
				if s := ssim(t, want, got); s < 0.95 {
					t.Errorf("%s: SSIM %.3f", to, s)
				}
				// Another program must read the file and report the resolution.
				info := tool(t, "vipsheader", "-a", write(t, "out."+to, out[0].b))
				for _, field := range []string{
					fmt.Sprintf("width: %d\n", got.Bounds().Dx()), fmt.Sprintf("height: %d\n", got.Bounds().Dy()), "xres: 3.93", "yres: 3.93",
				} {
					if !strings.Contains(info, field) {
						t.Errorf("%s: no %q in %s", to, field, info)
					}
				}
			}
		})
	}
}

func TestPicturesOfManyPages(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{Instances: 3})
	var ps []pdfPage
	for i := range 25 { // each page has its own width
		ps = append(ps, pdfPage{extra: fmt.Sprintf("/MediaBox[0 0 %d 100]", 100+4*i), content: lines("F1", 20, 10, 50, 20, fmt.Sprint(i+1))})
	}
	pdf := pages(ps...)
	for _, tc := range []struct {
		pages string
		want  []int
	}{{"", nil}, {"3,20-22,5", []int{3, 20, 21, 22, 5}}, {"24-", []int{24, 25}}, {"7", []int{7}}} {
		args := fileops.Args{"convert_to": "png", "dpi": 72}
		if tc.pages != "" {
			args["pages"] = tc.pages
		} else {
			for i := range ps {
				tc.want = append(tc.want, i+1)
			}
		}
		out := mustConvert(t, e, args, pdf)
		if len(out) != len(tc.want) {
			t.Fatalf("%q: %d results, want %d", tc.pages, len(out), len(tc.want))
		}
		for i, n := range tc.want {
			name := fmt.Sprintf("in-%03d.png", n)
			if len(tc.want) == 1 {
				name = "in.png"
			}
			cfg, err := png.DecodeConfig(bytes.NewReader(out[i].b))
			systest.NoError(t, err)
			if out[i].name != name || cfg.Width != 100+4*(n-1) {
				t.Errorf("%q: result %d is %s, %d pixels wide; want page %d", tc.pages, i, out[i].name, cfg.Width, n)
			}
		}
	}
}

// A tiffEncoder is an Encoder for two more formats, one of them known.
type tiffEncoder struct{}

func (tiffEncoder) Formats() []format.Format { return []format.Format{format.TIFF, format.JPG} }

func (tiffEncoder) Encode(_ context.Context, img *image.RGBA, to format.Format, quality int, _ float64, w io.Writer) error {
	if to == format.JPG {
		return jpeg.Encode(w, img, &jpeg.Options{Quality: quality})
	}
	return tiff.Encode(w, img, &tiff.Options{Compression: tiff.Deflate})
}

func TestEncoder(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{Encoder: tiffEncoder{}})
	pdf := fixtures()["flat"]
	pic := mustConvert(t, e, fileops.Args{"convert_to": "png", "dpi": 50}, pdf)
	want, err := png.Decode(bytes.NewReader(pic[0].b))
	systest.NoError(t, err)
	out := mustConvert(t, e, fileops.Args{"convert_to": "tif", "dpi": 50}, pdf)
	got, err := tiff.Decode(bytes.NewReader(out[0].b))
	if err != nil || out[0].name != "in.tiff" {
		t.Fatal(out[0].name, err)
	}
	if s := ssim(t, want, got); s < 0.9999 {
		t.Errorf("SSIM %v", s)
	}
	low := mustConvert(t, e, fileops.Args{"convert_to": "jpg", "dpi": 50, "quality": 10}, pdf)
	high := mustConvert(t, e, fileops.Args{"convert_to": "jpeg", "dpi": 50, "quality": 95}, pdf)
	if len(low[0].b) >= len(high[0].b) {
		t.Errorf("quality 10 makes %d bytes, 95 %d", len(low[0].b), len(high[0].b))
	}
	// Formats without an encoder are not offered.
	reg, err := fileops.NewRegistry(e.Convert())
	systest.NoError(t, err)
	schema, _ := reg.Schema("convert", format.PDF)
	i := slices.IndexFunc(schema, func(p fileops.Param) bool { return p.Name == "convert_to" })
	if got := strings.Join(schema[i].Enum, " "); got != "csv docx html jpg md png pptx tiff txt xlsx" {
		t.Errorf("convert_to is one of %s", got)
	}
}

// bomb returns a page that takes forever to draw: forms that draw forms.
func bomb() []byte {
	p := &pdfFile{}
	inner := p.stream("/Type/XObject/Subtype/Form/BBox[0 0 595 842]", strings.Repeat("0 0 500 500 re f ", 10))
	for range 11 {
		inner = p.stream("/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</X "+inner+">>>>", strings.Repeat("/X Do ", 10))
	}
	content := p.stream("", strings.Repeat("/X Do ", 10))
	tree := fmt.Sprintf("%d 0 R", len(p.objs)+2)
	pg := p.add("<</Type/Page/Parent %s/MediaBox[0 0 595 842]/Resources<</XObject<</X %s>>>>/Contents %s>>", tree, inner, content)
	p.add("<</Type/Pages/Kids[%s]/Count 1>>", pg)
	return p.finish(p.add("<</Type/Catalog/Pages %s>>", tree))
}

func TestHangEnds(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{Instances: 1})
	good := fixtures()["text"]
	mustConvert(t, e, fileops.Args{"convert_to": "png"}, good) // compiles
	for _, to := range []string{"png", "txt", "docx"} {
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		done := make(chan error, 1)
		go func() {
			_, err := convert(ctx, t, e, fileops.Args{"convert_to": to}, fileops.Bytes("bomb.pdf", bomb()))
			done <- err
		}()
		select {
		case err := <-done:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want context.DeadlineExceeded", to, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the run does not end", to)
		}
		cancel()
		// The only slot is free again.
		mustConvert(t, e, fileops.Args{"convert_to": "png"}, good)
	}
	impatient := newEngine(t, pdfread.Options{PageTimeout: 300 * time.Millisecond})
	_, err := convert(t.Context(), t, impatient, fileops.Args{"convert_to": "png"}, fileops.Bytes("bomb.pdf", bomb()))
	if !errors.Is(err, fileops.ErrLimit) || !strings.Contains(fileops.Message(err), "300ms") {
		t.Errorf("page timeout: %v", err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	good := fixtures()["text"]
	in := write(t, "plain.pdf", good)
	locked := filepath.Join(filepath.Dir(in), "locked.pdf")
	tool(t, "qpdf", "--encrypt", "secret", "owner", "256", "--", in, locked)
	owner := filepath.Join(filepath.Dir(in), "owner.pdf")
	tool(t, "qpdf", "--encrypt", "", "owner", "256", "--", in, owner)
	read := func(path string) []byte {
		b := systest.ReadFile(t, path)
		return b
	}
	many := make([]pdfPage, 5001)
	for _, tc := range []struct {
		name    string
		pdf     []byte
		args    fileops.Args
		kind    error
		message string
	}{
		{"locked", read(locked), fileops.Args{"convert_to": "png"}, fileops.ErrPasswordRequired, "unlock"},
		{"locked text", read(locked), fileops.Args{"convert_to": "txt"}, fileops.ErrPasswordRequired, "unlock"},
		{"locked docx", read(locked), fileops.Args{"convert_to": "docx"}, fileops.ErrPasswordRequired, "unlock"},
		{"wrong password", read(locked), fileops.Args{"convert_to": "png", "password": "Secret"}, fileops.ErrWrongPassword, "password"},
		{"wrong password docx", read(locked), fileops.Args{"convert_to": "docx", "password": "Secret"}, fileops.ErrWrongPassword, "password"},
		{"damaged", []byte("%PDF-1.7\n" + strings.Repeat("nothing here ", 100)), fileops.Args{"convert_to": "png"}, fileops.ErrCorruptInput, "damaged"},
		{"damaged docx", []byte("%PDF-1.7\n" + strings.Repeat("nothing here ", 100)), fileops.Args{"convert_to": "docx"}, fileops.ErrCorruptInput, "damaged"},
		{"too many pages", pages(many...), fileops.Args{"convert_to": "png"}, fileops.ErrLimit, "5001 pages to convert, more than the limit of 5000"},
		{"too large", pages(pdfPage{extra: "/MediaBox[0 0 14400 14400]"}), fileops.Args{"convert_to": "png", "dpi": 150}, fileops.ErrLimit, "page 1 has 30000 x 30000 pixels at 150 dpi, more than the limit of 100 megapixels"},
		{"scan as text", bitImage(), fileops.Args{"convert_to": "txt"}, fileops.ErrUnsupportedInput, "scan"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := convert(t.Context(), t, e, tc.args, fileops.Bytes("in.pdf", tc.pdf))
			if !errors.Is(err, tc.kind) || !strings.Contains(fileops.Message(err), tc.message) {
				t.Errorf("got %v (%q), want %v with %q", err, fileops.Message(err), tc.kind, tc.message)
			}
		})
	}
	t.Run("owner password only", func(t *testing.T) {
		t.Parallel()
		mustConvert(t, e, fileops.Args{"convert_to": "png"}, read(owner))
	})
	for name, args := range map[string]fileops.Args{
		"dpi too low":    {"convert_to": "png", "dpi": 35},
		"dpi too high":   {"convert_to": "png", "dpi": 601},
		"bad pages":      {"convert_to": "png", "pages": "1;2"},
		"no such page":   {"convert_to": "png", "pages": "2"},
		"no quality":     {"convert_to": "png", "quality": 50},
		"no such format": {"convert_to": "webp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := convert(t.Context(), t, e, args, fileops.Bytes("in.pdf", good))
			var p *fileops.ParamError
			if !errors.As(err, &p) {
				t.Errorf("got %v, want a ParamError", err)
			}
		})
	}
}

// The user and the owner password open a document. A document without a password opens
// with any.
func TestPassword(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	in := write(t, "plain.pdf", fixtures()["text"])
	want := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, fixtures()["text"])[0].b
	for _, tc := range []struct{ name, password, bits string }{
		{"AES-256", "sésame", "256"}, {"RC4", "sesame", "128"}, {"40 bits", "sesame", "40"}, {"Latin-1", "s\xe9same", "128"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			locked := filepath.Join(t.TempDir(), "locked.pdf")
			tool(t, "qpdf", "--password-mode=bytes", "--allow-weak-crypto", "--encrypt", tc.password, "owner-1", tc.bits, "--", in, locked)
			b := systest.ReadFile(t, locked)
			user := strings.ToValidUTF8(tc.password, "é")
			for _, password := range []string{user, "owner-1"} {
				if got := mustConvert(t, e, fileops.Args{"convert_to": "txt", "password": password}, b)[0].b; !bytes.Equal(got, want) {
					t.Errorf("password %q: got %.100q", password, got)
				}
				mustConvert(t, e, fileops.Args{"convert_to": "png", "password": password}, b)
				mustConvert(t, e, fileops.Args{"convert_to": "docx", "password": password}, b)
			}
		})
	}
	mustConvert(t, e, fileops.Args{"convert_to": "txt", "password": "needless"}, fixtures()["text"])
}

// fieldsOfManyParents returns a page with a form. Each field but the last has two
// children, which are the same.
func fieldsOfManyParents() []byte {
	p := &pdfFile{}
	field := p.add("<</T(a)/FT/Tx/V(b)>>")
	for range 30 {
		field = p.add("<</Kids[%s %s]>>", field, field)
	}
	content := p.stream("", "0 0 60 60 re f")
	tree := fmt.Sprintf("%d 0 R", len(p.objs)+2)
	pg := p.add("<</Type/Page/Parent %s/MediaBox[0 0 99 99]/Contents %s>>", tree, content)
	p.add("<</Type/Pages/Kids[%s]/Count 1>>", pg)
	return p.finish(p.add("<</Type/Catalog/Pages %s/AcroForm<</Fields[%s]>>>>", tree, field))
}

// A form that takes hours to open is left out of pictures, with a warning.
func TestFieldsOfManyParents(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{PageTimeout: 400 * time.Millisecond})
	in := fieldsOfManyParents()
	out, codes := warned(t, e, "png", in)
	if !slices.Equal(codes, []string{fileops.WarnContentDropped}) {
		t.Errorf("warnings %q", codes)
	}
	plain := mustConvert(t, e, fileops.Args{"convert_to": "png"}, bytes.ReplaceAll(in, []byte("/AcroForm"), []byte("/NotAForm")))
	if !bytes.Equal(out[0].b, plain[0].b) {
		t.Error("the picture is not that of the page")
	}
	views, err := e.Views(t.Context(), in, []int{0}, 72)
	systest.NoError(t, err)
	if views[0].Width != 99 {
		t.Errorf("the view is %d wide", views[0].Width)
	}
}
