package pdfops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/fileops/raster"
)

// A reader recognizes the same words on all pages.
type reader struct {
	width, height float64
	words         []raster.TextWord
	pages         []int
	forced        bool
	err           error
}

func (*reader) Language() (fileops.Param, bool) {
	return fileops.Param{Name: "ocr_language", Enum: []string{"eng"}, Default: "eng", Scope: fileops.ScopeContent}, true
}

func (r *reader) RecognizePages(_ context.Context, _ []byte, _ string, force bool, progress func(float64)) (out []raster.TextPage, err error) {
	r.forced = force
	for _, i := range r.pages {
		out = append(out, raster.TextPage{Page: i, Width: r.width, Height: r.height, Words: r.words})
	}
	progress(1)
	return out, r.err
}

// scanned returns a page of 400 by 300 points with a picture, more entries of the page
// and of the catalog, and content that does not restore its state.
func scanned(page, catalog string) []byte {
	content := "q 0.5 0 0 0.5 7 9 cm q 800 0 0 600 0 0 cm /Im Do"
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	for i, o := range []string{
		"<</Type/Catalog/Pages 2 0 R" + catalog + ">>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 300]/Contents 4 0 R/Resources<</XObject<</Im 5 0 R>>/Font<</Fw0 6 0 R>>>>" + page + ">>",
		fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(content), content),
		"<</Type/XObject/Subtype/Image/Width 2/Height 2/BitsPerComponent 8/ColorSpace/DeviceGray/Length 4>>stream\n\x40\x80\xc0\xff\nendstream",
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
	} {
		fmt.Fprintf(&b, "%d 0 obj%s endobj\n", i+1, o)
	}
	b.WriteString("trailer<</Root 1 0 R>>\n%%EOF\n")
	return b.Bytes()
}

var wordBox = regexp.MustCompile(`<word xMin="([0-9.-]+)" yMin="([0-9.-]+)" xMax="([0-9.-]+)" yMax="([0-9.-]+)">(.*)</word>`)

// boxes returns the place of each word as poppler shows the page.
func boxes(t *testing.T, f *fileops.File) map[string][4]float64 {
	out := make(map[string][4]float64)
	for _, m := range wordBox.FindAllStringSubmatch(shell(t, "pdftotext", "-cropbox", "-bbox", save(t, f), "-"), -1) {
		var box [4]float64
		for i := range box {
			box[i], _ = strconv.ParseFloat(m[i+1], 64)
		}
		out[m[5]] = box
	}
	return out
}

// The words of a layer are where they were seen, whatever the geometry of the page.
func TestOCRPositions(t *testing.T) {
	t.Parallel()
	words := []raster.TextWord{
		{Text: "found", X: 100, Y: 50, DX: 60, Size: 20}, {Text: "שלום", X: 100, Y: 90, DX: 40, Size: 20},
		{Text: "x²𝒳", X: 20, Y: 150, DX: 45, Size: 12}, {Text: "up", X: 30, Y: 120, DY: -30, Size: 15},
	}
	const visual = "םולש" // poppler lists letters from left to right here
	for page, size := range map[string][2]float64{
		"": {400, 300}, "/Rotate 90": {300, 400}, "/Rotate 180": {400, 300}, "/Rotate -90": {300, 400},
		"/CropBox[100 40 380 290]": {280, 250}, "/CropBox[100 40 380 290]/Rotate 90": {250, 280}, "/CropBox[-9 -9 999 999]/Rotate 270": {300, 400},
		"/MediaBox[50 60 450 360]/Rotate 180": {400, 300}, "/MediaBox[400 300 0 0]": {400, 300},
	} {
		tools := pdfops.Tools{Reader: &reader{width: size[0], height: size[1], words: words, pages: []int{0}}}
		in := scanned(page, "")
		if strings.HasPrefix(page, "/MediaBox") {
			in = bytes.Replace(in, []byte("/MediaBox[0 0 400 300]"), nil, 1)
		}
		out := run(t, tools.OCR(), nil, pdf("a.pdf", in))
		sound(t, out)
		got := boxes(t, out)
		if text := shell(t, "pdftotext", save(t, out), "-"); !strings.Contains(text, "שלום") {
			t.Errorf("%s: the text is %q", page, text)
		}
		for text, want := range map[string][4]float64{"found": {100, 34, 160, 54}, visual: {100, 74, 140, 94}, "x²𝒳": {20, 140.4, 65, 152.4}} {
			for i := range want {
				if math.Abs(got[text][i]-want[i]) > 0.1 {
					t.Errorf("%s: %q is at %v, not %v", page, text, got[text], want)
					break
				}
			}
		}
		if b, ok := got["up"]; !ok || math.Abs(b[1]-90) > 0.1 || math.Abs(b[3]-120) > 0.1 {
			t.Errorf("%s: the sideways word is at %v of %v", page, b, got)
		}
	}
}

func TestOCR(t *testing.T) {
	t.Parallel()
	with := func(r *reader) pdfops.Tools {
		r.width, r.height = 400, 300
		r.words = []raster.TextWord{{Text: "found", X: 100, Y: 50, DX: 60, Size: 20}}
		return pdfops.Tools{Reader: r}
	}
	if (pdfops.Tools{}).OCR() != nil {
		t.Error("an action without a reader")
	}
	in := pdf("a.pdf", scanned("/Annots[<</Type/Annot/Subtype/Link/Rect[0 0 9 9]>>]", "/StructTreeRoot<</Type/StructTreeRoot>>/MarkInfo<</Marked true>>"))
	out, warnings := withWarnings(t, with(&reader{pages: []int{0}}).OCR(), nil, in)
	if !slices.Equal(warnings, []string{"text_recognized"}) || out.Name() != "a.pdf" {
		t.Errorf("%s: %v", out.Name(), warnings)
	}
	path := save(t, out)
	if list := shell(t, "pdffonts", path); !strings.Contains(list, "FwGlyphless") || !strings.Contains(list, "yes no  yes") {
		t.Errorf("fonts:\n%s", list)
	}
	plain := shell(t, "qpdf", "--qdf", "--object-streams=disable", path, "-")
	for _, want := range []string{"\x40\x80\xc0\xff", "/Artifact BMC", "3 Tr", "/Subtype /Link", "800 0 0 600 0 0 cm /Im Do"} {
		if !strings.Contains(plain, want) {
			t.Errorf("the result lacks %q", want)
		}
	}
	if text := shell(t, "pdftotext", path, "-"); strings.TrimSpace(text) != "found" {
		t.Errorf("text %q", text)
	}
	for _, dpi := range []string{"50", "144"} {
		if a, b := shell(t, "pdftoppm", "-r", dpi, save(t, in)), shell(t, "pdftoppm", "-r", dpi, path); a != b {
			t.Error("the page looks different")
		}
	}

	// Nothing was added: the file stays as it is.
	r := &reader{}
	out, warnings = withWarnings(t, with(r).OCR(), fileops.Args{"force": true}, in)
	if !bytes.Equal(content(t, out), content(t, in)) || len(warnings) > 0 || !r.forced {
		t.Errorf("without scans: %d bytes, %v", out.Size(), warnings)
	}
	empty := with(&reader{pages: []int{0}})
	empty.Reader.(*reader).words = nil
	if _, warnings = withWarnings(t, empty.OCR(), nil, in); !slices.Equal(warnings, []string{"text_unreliable"}) {
		t.Errorf("without words: %v", warnings)
	}

	locked := pdf("a.pdf", encrypted(t, simple("page"), "sesame", "owner", "256"))
	fails(t, fileops.ErrPasswordRequired, with(&reader{pages: []int{0}}).OCR(), nil, locked)
	out, warnings = withWarnings(t, with(&reader{pages: []int{0}}).OCR(), fileops.Args{"password": "sesame"}, locked)
	if text := shell(t, "pdftotext", save(t, out), "-"); !strings.Contains(text, "found") || !slices.Equal(warnings, []string{"protection_removed", "text_recognized"}) {
		t.Errorf("encrypted: %q, %v", text, warnings)
	}
	signed := pdf("a.pdf", scanned("", "/AcroForm<</Fields[<</FT/Sig/T(s)/V<</Type/Sig/ByteRange[0 1 2 3]/Contents<00>>>>>]>>"))
	if _, warnings = withWarnings(t, with(&reader{pages: []int{0}}).OCR(), nil, signed); !slices.Contains(warnings, "signature_invalid") {
		t.Errorf("signed: %v", warnings)
	}
	broken := errors.New("no recognition")
	fails(t, broken, with(&reader{err: broken}).OCR(), nil, in)
}

// A renderer draws what it is given, in order.
type renderer struct{ views [][]raster.Page }

func (r *renderer) Views(context.Context, []byte, []int, float64) ([]raster.Page, error) {
	v := r.views[0]
	r.views = r.views[1:]
	return v, nil
}

func TestOCRChecksItsResult(t *testing.T) {
	t.Parallel()
	page := func(pix, text string) []raster.Page {
		return []raster.Page{{Samples: raster.Samples{Width: 1, Height: 1, Components: 3, Pix: []byte(pix)}, Text: text}}
	}
	for name, tt := range map[string]struct {
		after []raster.Page
		err   error
	}{"another look": {page("xyz", "found"), fileops.ErrEngine}, "no text": {page("abc", ""), fileops.ErrEngine}, "good": {page("abc", "found"), nil}} {
		tools := pdfops.Tools{
			Reader:   &reader{width: 400, height: 300, pages: []int{0}, words: []raster.TextWord{{Text: "found", X: 9, Y: 9, DX: 9, Size: 9}}},
			Renderer: &renderer{views: [][]raster.Page{page("abc", ""), tt.after}},
		}
		if _, err := try(t.Context(), t, tools.OCR(), nil, pdf("a.pdf", scanned("", ""))); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
