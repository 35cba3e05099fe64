package pdfread_test

import (
	"fmt"
	"image/png"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

// A shading that fills a path is kept. A page with white fills still flows.
func TestDocxPathShading(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	text := "0 g " + lines("F1", 12, 72, 700, 16, "A line of text above the shading")
	shading := pdfPage{
		extra: "/Resources<</Pattern<</P1<</PatternType 2/Shading<</ShadingType 2/ColorSpace/DeviceRGB/Coords[60 0 540 0]" +
			"/Function<</FunctionType 2/Domain[0 1]/C0[0 0 1]/C1[1 0 0]/N 1>>>>>>>>>>",
		content: "/Pattern cs /P1 scn 60 500 480 100 re f " + text,
	}
	docx, codes := warned(t, e, "docx", pages(shading))
	if !slices.Equal(codes, []string{fileops.WarnLayoutSimplified}) {
		t.Errorf("warnings %q", codes)
	}
	printed := tool(t, "pdftoppm", "-png", "-r", "72", "-singlefile", write(t, "x.pdf", office(t, "x.docx", docx[0].b, "pdf")))
	img, err := png.Decode(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	for x, more := range map[int]string{100: "blue", 500: "red"} {
		if r, g, b, _ := img.At(x, 842-550).RGBA(); g > 0x3000 || (b > r) != (more == "blue") {
			t.Errorf("the colour at %d is %v, want more %s", x, img.At(x, 842-550), more)
		}
	}
	white := pdfPage{content: "1 g 40 40 515 762 re f 60 600 400 150 re f " + text}
	if _, codes := warned(t, e, "docx", pages(white)); len(codes) > 0 {
		t.Errorf("white fills: warnings %q", codes)
	}
}

// The opacity of a form counts for all that it draws.
func TestDocxPaleForm(t *testing.T) {
	t.Parallel()
	p := &pdfFile{}
	form := p.stream("/Type/XObject/Subtype/Form/BBox[0 0 200 100]", "1 0 0 rg 0 0 150 100 re f 0 0 1 rg 20 20 180 60 re f")
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	content := p.stream("", "q /G gs 1 0 0 1 72 500 cm /X Do Q "+lines("F1", 12, 72, 700, 16, "A line of text above the form"))
	tree := fmt.Sprintf("%d 0 R", len(p.objs)+2)
	pg := p.add("<</Type/Page/Parent %s/MediaBox[0 0 595 842]/Resources<</Font<</F1 %s>>/XObject<</X %s>>/ExtGState<</G<</ca 0.1>>>>>>/Contents %s>>", tree, font, form, content)
	p.add("<</Type/Pages/Kids[%s]/Count 1>>", pg)
	docx, codes := warned(t, newEngine(t, pdfread.Options{}), "docx", p.finish(p.add("<</Type/Catalog/Pages %s>>", tree)))
	if !slices.Equal(codes, []string{fileops.WarnLayoutSimplified}) {
		t.Errorf("warnings %q", codes)
	}
	img, err := png.Decode(strings.NewReader(tool(t, "pdftoppm", "-png", "-r", "72", "-singlefile", write(t, "x.pdf", office(t, "x.docx", docx[0].b, "pdf")))))
	systest.NoError(t, err)
	for _, x := range []int{80, 120, 250} {
		if r, g, b, _ := img.At(x, 842-550).RGBA(); min(r, g, b) < 0xc000 || min(r, g, b) > 0xf800 {
			t.Errorf("the colour at %d is %v, want a pale one", x, img.At(x, 842-550))
		}
	}
}

// No document shows mirrored text, so a picture of the page does.
func TestDocxMirrored(t *testing.T) {
	t.Parallel()
	docx, codes := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(
		pdfPage{content: "1 0 0 -1 0 842 cm " + lines("F1", 12, 72, 700, 16, "the reflection", "of a page", "in the water")}))
	if !slices.Equal(codes, []string{fileops.WarnPageAsImage}) {
		t.Errorf("warnings %q", codes)
	}
	if names := strings.Join(keys(unzip(t, docx[0].b)), " "); !strings.Contains(names, "word/media/") {
		t.Errorf("no picture in %s", names)
	}
}

// A page of sideways text is turned upright, and a warning says so. A page with a few
// sideways labels keeps its direction.
func TestDocxSideways(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	sideways := func(text ...string) pdfPage {
		return pdfPage{content: "0 1 -1 0 595 0 cm " + lines("F1", 12, 72, 500, 16, text...)}
	}
	for _, tt := range []struct {
		text  []string
		size  string
		boxes bool
	}{
		{[]string{"Height", "Width"}, `<w:pgSz w:w="11900" w:h="16840"`, true},
		{[]string{prose(1, 8), prose(2, 8), prose(3, 8)}, `<w:pgSz w:w="16840" w:h="11900"`, false},
	} {
		docx, codes := warned(t, e, "docx", pages(sideways(tt.text...)))
		if !slices.Equal(codes, []string{fileops.WarnLayoutSimplified}) {
			t.Errorf("%q: warnings %q", tt.text, codes)
		}
		main := string(unzip(t, docx[0].b)["word/document.xml"])
		if !strings.Contains(main, tt.size) {
			t.Errorf("%q: the page does not have the size %s", tt.text, tt.size)
		}
		if got := strings.Contains(main, "<wps:txbx>"); got != tt.boxes {
			t.Errorf("%q: text boxes: %v", tt.text, got)
		}
	}
}

// Dots lead from the labels to the numbers of a table, and rules are above its sums only.
// That is neither a table of contents nor a table of the numbers alone.
func TestDocxTableWithDots(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("0.5 w 40 720 m 560 720 l S\n")
	for y := range 18 {
		base := float64(700 - 14*y)
		label := fmt.Sprintf("Item %c of the budget", 'A'+y)
		b.WriteString(lines("F1", 8, 40, base, 0, label+" "+strings.Repeat(".", 34)))
		for x := range 8 {
			n := fmt.Sprint(100 + 37*y + 11*x)
			b.WriteString(lines("F1", 8, float64(260+38*x), base, 0, n))
		}
		if y%6 == 5 {
			fmt.Fprintf(&b, "250 %g m 560 %g l S\n", base+9, base+9)
		}
	}
	docx, codes := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(pdfPage{content: b.String()}))
	if len(codes) > 0 {
		t.Errorf("warnings %q", codes)
	}
	main := string(unzip(t, docx[0].b)["word/document.xml"])
	rows := regexp.MustCompile(`(?s)<w:tr>.*?</w:tr>`).FindAllString(main, -1)
	for y := range 18 {
		label := fmt.Sprintf("Item %c of the budget", 'A'+y)
		i := slices.IndexFunc(rows, func(r string) bool { return strings.Contains(r, label) })
		if i < 0 {
			t.Errorf("%q is not in a table", label)
			continue
		}
		if n := strings.Count(rows[i], "<w:tc>"); n != 9 || !strings.Contains(rows[i], fmt.Sprintf(">%d<", 100+37*y+77)) {
			t.Errorf("%q: %d cells, want 9 with all its numbers", label, n)
		}
	}
}

// A scan of black text flows. Recognized text has no colours, so a scan of coloured text
// keeps its picture.
func TestDocxColouredScan(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{Recognizer: says(0, "a title", "of some words")})
	bars := func(colour string) pdfPage {
		page := letterPage(0, "a title", "of some words")
		page.content += "\n" + colour
		return page
	}
	for blend, want := range map[string][]string{
		"":                                     {fileops.WarnTextRecognized},
		"1 0 1 rg /Screen gs 0 0 420 595 re f": {fileops.WarnTextRecognized, fileops.WarnPageAsImage}, // the bars become magenta
	} {
		page := bars(blend)
		page.extra += "/Resources<</ExtGState<</Screen<</BM/Screen>>>>>>"
		if _, codes := warned(t, e, "docx", pages(page)); !slices.Equal(codes, want) {
			t.Errorf("%q: warnings %q, want %q", blend, codes, want)
		}
	}
}
