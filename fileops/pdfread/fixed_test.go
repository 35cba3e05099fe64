package pdfread_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // of photographs
	_ "image/png"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// warned converts a file and returns the results with the codes of warnings.
func warned(t testing.TB, e *pdfread.Engine, to string, pdf []byte) (out []result, codes []string) {
	t.Helper()
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
	if err := r.Run(t.Context(), e.Convert(), fileops.Args{"convert_to": to}, collect(&out), fileops.Bytes("in.pdf", pdf)); err != nil {
		t.Fatalf("%s: %v", to, err)
	}
	return out, codes
}

// A document without text becomes its pictures where the format can hold them.
func TestPicturesWithoutText(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{Recognizer: says(0)})
	for to, want := range map[string]string{"docx": "word/media/", "html": "data:image/", "md": "](data:image/"} {
		out, codes := warned(t, e, to, pages(picturePage(420, 595, "")))
		if !slices.Equal(codes, []string{fileops.WarnPageAsImage}) {
			t.Errorf("%s: warnings %q", to, codes)
		}
		text := string(out[0].b)
		if to == "docx" {
			text = strings.Join(keys(unzip(t, out[0].b)), " ")
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s has no picture", to)
		}
	}
}

// A page of only pictures keeps their places, and the pictures themselves.
func TestDocxPicturePage(t *testing.T) {
	t.Parallel()
	two := picturePage(200, 100, "")
	two.extra = "/MediaBox[0 0 400 300]"
	second := picturePage(50, 80, "").content
	two.content = "q 1 0 0 1 0 0 cm " + two.content + " Q q 1 0 0 1 330 210 cm " + second + " Q"
	docx, codes := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(two))
	if !slices.Equal(codes, []string{fileops.WarnPageAsImage}) {
		t.Errorf("warnings %q", codes)
	}
	parts := unzip(t, docx[0].b)
	checkSchema(t, parts)
	main := string(parts["word/document.xml"])
	for _, want := range []string{
		fmt.Sprintf(`<wp:posOffset>0</wp:posOffset></wp:positionH><wp:positionV relativeFrom="page"><wp:posOffset>%d</wp:posOffset>`, 200*12700),
		fmt.Sprintf(`<wp:posOffset>%d</wp:posOffset></wp:positionH><wp:positionV relativeFrom="page"><wp:posOffset>%d</wp:posOffset>`, 330*12700, 10*12700),
	} {
		if !strings.Contains(main, want) {
			t.Errorf("no picture at %s", want)
		}
	}
	if n := pdfPages(t, office(t, "in.docx", docx[0].b, "pdf")); n != 1 {
		t.Errorf("%d pages, want 1", n)
	}
}

// A sideways scan with more than text becomes an upright page.
func TestDocxSidewaysPhoto(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{Recognizer: says(1, "a photograph", "with words")})
	docx, _ := warned(t, e, "docx", pages(picturePage(420, 595, "")))
	parts := unzip(t, docx[0].b)
	for name, b := range parts {
		if !strings.HasPrefix(name, "word/media/") {
			continue
		}
		cfg, _, err := image.DecodeConfig(bytes.NewReader(b))
		if err != nil || cfg.Width <= cfg.Height {
			t.Errorf("%s has %d x %d pixels: %v", name, cfg.Width, cfg.Height, err)
		}
	}
	if !strings.Contains(string(parts["word/document.xml"]), `<w:pgSz w:w="11900" w:h="8400"`) {
		t.Error("the page is not upright")
	}
}

// Text outside the visible page stays outside. Text far below the top of the page
// stays below.
func TestDocxPlace(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	cropped := pdfPage{extra: "/MediaBox[0 0 500 800]/CropBox[50 50 450 750]", content: lines("F1", 12, 100, 300, 16, "the visible line") + lines("F1", 12, 100, 770, 16, "a mark of the printer")}
	docx, codes := warned(t, e, "docx", pages(cropped))
	if len(codes) > 0 {
		t.Errorf("warnings %q", codes)
	}
	printed := office(t, "in.docx", docx[0].b, "pdf")
	boxes := tool(t, "pdftotext", "-bbox", write(t, "x.pdf", printed), "-")
	m := regexp.MustCompile(`yMax="([\d.]+)">(\w+)<`).FindAllStringSubmatch(boxes, -1)
	if len(m) != 3 || m[0][2] != "the" {
		t.Fatalf("words %v", m)
	}
	if y, _ := strconv.ParseFloat(m[0][1], 64); y < 435 || y > 470 { // 750 - 300
		t.Errorf("the line is %v points below the top, want 450", y)
	}
}

// Text boxes have room for lines that run askew, and for lines whose words overlap.
func TestDocxBoxesHoldTheirText(t *testing.T) {
	t.Parallel()
	drawing := " 0 0 1 rg 100 100 m 300 350 500 350 550 100 c f 0 g "
	for code, content := range map[string]string{
		fileops.WarnPageAsImage: "q 0.2588 0.9659 -0.9659 0.2588 300 450 cm " + lines("F1", 14, 0, 0, 16, "Nineteen lazy gophers run uphill") + "Q",
		fileops.WarnLayoutSimplified: lines("F1", 8, 60, 700, 16, "Number 133, 132, 139, 138, 143, 140, 142, 141, 144, 156, 155, 154, 163, 165, 166, 167, 176") +
			lines("F1", 8, 65, 700, 16, "Balance 21406 brought forward from the last account of the other party in the year before"),
	} {
		pdf := pages(pdfPage{content: content + drawing})
		docx, codes := warned(t, newEngine(t, pdfread.Options{}), "docx", pdf)
		if !slices.Equal(codes, []string{code}) {
			t.Errorf("warnings %q, want %s", codes, code)
		}
		printed := words(t, office(t, "in.docx", docx[0].b, "pdf"))
		want := letterCounts(words(t, pdf))
		for r, n := range letterCounts(printed) {
			want[r] -= n
		}
		for r, n := range want {
			if n > 0 {
				t.Errorf("%d of the letter %c are missing: %q", n, r, printed)
			}
		}
	}
}

// letterCounts counts the letters and digits of pages.
func letterCounts(pages [][]string) map[rune]int {
	out := make(map[rune]int)
	for _, p := range pages {
		for _, r := range strings.Join(p, "") {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				out[r]++
			}
		}
	}
	return out
}

// Markdown of a document with text has no pictures, and says so.
func TestMarkdownLeavesPicturesOut(t *testing.T) {
	t.Parallel()
	page := picturePage(200, 200, "")
	page.extra = "/MediaBox[0 0 595 842]"
	page.content += "\n" + lines("F1", 12, 72, 700, 16, "A line of text above the picture")
	out, codes := warned(t, newEngine(t, pdfread.Options{}), "md", pages(page))
	if text := string(out[0].b); !strings.Contains(text, "A line of text") || strings.Contains(text, "data:") {
		t.Errorf("Markdown %q", text)
	}
	if !slices.Equal(codes, []string{fileops.WarnContentDropped}) {
		t.Errorf("warnings %q", codes)
	}
}

// A damaged page is reported. A document without any other page is damaged.
func TestDamagedPages(t *testing.T) {
	t.Parallel()
	document := func(kids string, count int) []byte {
		p := &pdfFile{}
		content := p.stream("", "BT /F1 12 Tf 50 150 Td (legible) Tj ET")
		page := p.add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 300 200]/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>/Contents %s>>", len(p.objs)+2, content)
		tree := p.add("<</Type/Pages/Kids[%s]/Count %d>>", strings.ReplaceAll(kids, "PAGE", page), count)
		return p.finish(p.add("<</Type/Catalog/Pages %s>>", tree))
	}
	e := newEngine(t, pdfread.Options{})
	for _, to := range []string{"txt", "docx", "md"} {
		_, codes := warned(t, e, to, document("PAGE 99 0 R", 2))
		if !slices.Contains(codes, fileops.WarnContentDropped) {
			t.Errorf("%s: warnings %q", to, codes)
		}
		var out []result
		err := fileops.Run(t.Context(), e.Convert(), fileops.Args{"convert_to": to}, collect(&out), fileops.Bytes("in.pdf", document("98 0 R 99 0 R", 2)))
		if !errors.Is(err, fileops.ErrCorruptInput) {
			t.Errorf("%s without a legible page: %v", to, err)
		}
	}
}

// A blank document becomes a blank document.
func TestBlank(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{Recognizer: says(0)})
	for _, to := range []string{"txt", "docx", "html", "md"} {
		out, codes := warned(t, e, to, pages(pdfPage{}, pdfPage{content: "1 g 0 0 100 100 re f"}))
		if len(codes) > 0 {
			t.Errorf("%s: warnings %q", to, codes)
		}
		switch to {
		case "txt":
			if string(out[0].b) != "\f\f" {
				t.Errorf("text %q", out[0].b)
			}
		case "docx":
			if n := pdfPages(t, office(t, "in.docx", out[0].b, "pdf")); n != 2 {
				t.Errorf("%d pages, want 2", n)
			}
		}
	}
}

// A page that flowing text cannot show keeps its look: boxes for the text, over
// a picture of the rest.
func TestDocxFixedPage(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	poster := pdfPage{extra: "/MediaBox[0 0 400 300]", content: "0.1 0.3 0.6 rg 0 0 400 300 re f 1 0.8 0 rg 60 60 m 200 250 l 340 60 l f\n" +
		"1 g " + lines("F4", 30, 120, 255, 30, "Open day") + lines("F1", 12, 20, 20, 14, "Harbour Street 4") + lines("F1", 12, 270, 20, 14, "Saturday 10 am")}
	small := pdfPage{extra: "/MediaBox[0 0 120 90]", content: lines("F1", 9, 10, 75, 11, "a small page", "with three", "lines of text")}
	docx, codes := warned(t, e, "docx", pages(poster, small, pdfPage{content: lines("F1", 11, 72, 760, 14, strings.Split(prose(3, 40), " ")[:30]...)}))
	if !slices.Contains(codes, fileops.WarnLayoutSimplified) {
		t.Errorf("warnings %q", codes)
	}
	parts := unzip(t, docx[0].b)
	checkSchema(t, parts)
	main := string(parts["word/document.xml"])
	if n := strings.Count(main, "<wps:txbx>"); n != 4 {
		t.Errorf("%d text boxes, want 4: three on the poster and a paragraph on the small page", n)
	}
	if !strings.Contains(main, `<w:color w:val="FFFFFF"/>`) {
		t.Error("white text on the picture is not white")
	}
	printed := office(t, "in.docx", docx[0].b, "pdf")
	if n := pdfPages(t, printed); n != 3 {
		t.Errorf("%d pages, want 3", n)
	}
	text := string(mustConvert(t, e, fileops.Args{"convert_to": "txt"}, printed)[0].b)
	for _, want := range []string{"Open day", "Harbour Street 4", "Saturday 10 am", "with three"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
}

// coded is a page of text in a font that the file does not contain. codes are two bytes
// each in hexadecimal; bfrange is the only range of the font's ToUnicode table.
func coded(codes, bfrange string) []byte {
	p := &pdfFile{}
	content := p.stream("", "BT /F1 10 Tf 20 40 Td <"+codes+"> Tj ET")
	desc := p.add("<</Type/FontDescriptor/FontName/Nowhere/Flags 32/ItalicAngle 0/Ascent 859/Descent -140/CapHeight 709/StemV 80/FontBBox[0 -140 1000 859]>>")
	unicode := p.stream("", "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n1 begincodespacerange <0000> <ffff> endcodespacerange\n1 beginbfrange "+bfrange+" endbfrange\nendcmap end end")
	cid := p.add("<</Type/Font/Subtype/CIDFontType2/BaseFont/Nowhere/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 500/CIDToGIDMap/Identity/FontDescriptor %s>>", desc)
	font := p.add("<</Type/Font/Subtype/Type0/BaseFont/Nowhere/Encoding/Identity-H/DescendantFonts[%s]/ToUnicode %s>>", cid, unicode)
	parent := len(p.objs) + 2
	page := p.add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 600 120]/Resources<</Font<</F1 %s>>>>/Contents %s>>", parent, font, content)
	tree := p.add("<</Type/Pages/Kids[%s]/Count 1>>", page)
	return p.finish(p.add("<</Type/Catalog/Pages %s>>", tree))
}

// shifted is a page of text in a font whose ToUnicode table yields the codes, which are
// numbers of glyphs.
func shifted(codes ...rune) []byte {
	var hex strings.Builder
	for _, c := range codes {
		fmt.Fprintf(&hex, "%04x", c)
	}
	return coded(hex.String(), "<0000> <00ff> <0000>")
}

// Codes that are numbers of glyphs become the letters that they stand for. If some of
// them do not, because only the font knows their letters, the text is recognized.
func TestShiftedCodes(t *testing.T) {
	t.Parallel()
	const want = "thenotesofthestationareonthetableneartheentrance"
	var codes []rune
	for _, r := range want {
		codes = append(codes, r-29)
	}
	out := mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "txt"}, shifted(codes...))
	if got := strings.TrimSpace(string(out[0].b)); got != want {
		t.Errorf("text %q", got)
	}
	accents := shifted(append(codes, 0xa1, 0xb8, 0xbe)...)
	out, warnings := warned(t, newEngine(t, pdfread.Options{Recognizer: says(0, "what the page shows")}), "txt", accents)
	if got := strings.TrimSpace(string(out[0].b)); got != "what the page shows" || !slices.Equal(warnings, []string{fileops.WarnTextRecognized}) {
		t.Errorf("with accents: text %q with warnings %q", got, warnings)
	}
	if _, warnings := warned(t, newEngine(t, pdfread.Options{}), "txt", accents); !slices.Equal(warnings, []string{fileops.WarnTextUnreliable}) {
		t.Errorf("without a recognizer: warnings %q", warnings)
	}
}

// Text that is implausible is recognized instead of read.
func TestImplausibleText(t *testing.T) {
	t.Parallel()
	var hex, cmap strings.Builder
	for i := range 60 {
		fmt.Fprintf(&hex, "%02x", 33+i)
		fmt.Fprintf(&cmap, "<%02x> <%04x>\n", 33+i, []int{0x3b1, 0x431, 0x565, 0x5d0, 0x905, 0xb85, 0x62d}[i%7]+i/7)
	}
	p := &pdfFile{}
	content := p.stream("", "BT /F1 12 Tf 20 40 Td <"+hex.String()+"> Tj ET")
	unicode := p.stream("", "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n1 begincodespacerange <00> <ff> endcodespacerange\n60 beginbfchar\n"+cmap.String()+"endbfchar\nendcmap end end")
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode %s>>", unicode)
	parent := len(p.objs) + 2
	page := p.add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 600 120]/Resources<</Font<</F1 %s>>>>/Contents %s>>", parent, font, content)
	tree := p.add("<</Type/Pages/Kids[%s]/Count 1>>", page)
	pdf := p.finish(p.add("<</Type/Catalog/Pages %s>>", tree))

	out, codes := warned(t, newEngine(t, pdfread.Options{Recognizer: says(0, "what the page shows")}), "txt", pdf)
	if !slices.Equal(codes, []string{fileops.WarnTextRecognized}) || strings.TrimSpace(string(out[0].b)) != "what the page shows" {
		t.Errorf("%q with warnings %q", out[0].b, codes)
	}
	for name, opts := range map[string]pdfread.Options{"without a recognizer": {}, "if nothing is recognised": {Recognizer: says(2)}} {
		_, codes = warned(t, newEngine(t, opts), "txt", pdf)
		if !slices.Equal(codes, []string{fileops.WarnTextUnreliable}) {
			t.Errorf("%s: warnings %q", name, codes)
		}
	}
	docx, codes := warned(t, newEngine(t, pdfread.Options{Recognizer: says(2)}), "docx", pdf)
	if !slices.Contains(codes, fileops.WarnPageAsImage) || !strings.Contains(strings.Join(keys(unzip(t, docx[0].b)), " "), "word/media/") {
		t.Errorf("no picture of the page; warnings %q", codes)
	}
}

// Codes in UTF-8 become the characters that they stand for. Hangul, whose characters
// have such numbers, stays.
func TestCodesInUTF8(t *testing.T) {
	t.Parallel()
	var cyrillic, korean strings.Builder
	for _, c := range "Переплётчикнарисовалкарту" {
		fmt.Fprintf(&cyrillic, "%x", string(c))
	}
	for _, c := range "킟킵톀킲킿톀킸킼차" {
		fmt.Fprintf(&korean, "%04x", c)
	}
	for hex, want := range map[string]string{cyrillic.String(): "Переплётчикнарисовалкарту", korean.String(): "킟킵톀킲킿톀킸킼차"} {
		// pdfium returns the codes, whether or not it understands a table.
		out := mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "txt"}, coded(hex, "<c000> <d7ff> <c000>"))
		if got := strings.TrimSpace(string(out[0].b)); got != want {
			t.Errorf("text %q, want %q", got, want)
		}
	}
}

// Chinese characters that no national standard has are codes of another font. A few
// of them are names.
func TestRareIdeographs(t *testing.T) {
	t.Parallel()
	for text, rare := range map[string]bool{"䋴䋮䋶糫蒭鍍伴俘緌鍍伴俘勢渡袱糫": true, "港口的歷史始於河口的一個小村莊䋴": false, "港口的历史始于河口的一个小村庄": false, "簡易公募型公募型競争入札": false} {
		var hex strings.Builder
		for _, c := range text {
			fmt.Fprintf(&hex, "%04x", c)
		}
		_, codes := warned(t, newEngine(t, pdfread.Options{}), "txt", coded(hex.String(), "<3400> <9fff> <3400>"))
		if got := slices.Contains(codes, fileops.WarnTextUnreliable); got != rare {
			t.Errorf("%s: warnings %q", text, codes)
		}
	}
}

// Annotations without an appearance are drawn, and a page with nothing else is not
// blank.
func TestAnnotationsWithoutAppearance(t *testing.T) {
	t.Parallel()
	mark := "/MediaBox[0 0 595 842]/Annots[<</Type/Annot/Subtype/%s/F 4/C[1 0 0]/Rect[100 500 400 520]/QuadPoints[100 520 400 520 100 500 400 500]/InkList[[100 500 400 520]]>>]"
	for _, kind := range []string{"Highlight", "Underline", "Square", "Ink"} {
		docx, codes := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(pdfPage{extra: fmt.Sprintf(mark, kind)}))
		if !slices.Equal(codes, []string{fileops.WarnPageAsImage}) || !strings.Contains(strings.Join(keys(unzip(t, docx[0].b)), " "), "word/media/") {
			t.Errorf("%s: no picture; warnings %q", kind, codes)
		}
	}
}

// The text behind a scan that was recognized in another language is recognized again.
// The same words on a page without a scan are what the page shows.
func TestMisreadScan(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("npe,[ICT8BflH8TCH no,QTBep>K,Qa10 peopr8HH381..HH, Hanorosas:tAeKnapa no8HocTb111 ynnalVIBaeMoMy ", 5)
	hidden := "BT 3 Tr /F1 4 Tf 20 400 Td (" + words + ") Tj ET"
	e := newEngine(t, pdfread.Options{Recognizer: says(0, "what the page shows")})
	out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, pages(picturePage(2400, 595, hidden)))
	if got := strings.TrimSpace(string(out[0].b)); got != "what the page shows" {
		t.Errorf("behind a scan: %q", got)
	}
	plain := pages(pdfPage{extra: "/MediaBox[0 0 2400 595]", content: "BT /F1 4 Tf 20 400 Td (" + words + ") Tj ET"})
	if out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, plain); !strings.Contains(string(out[0].b), "ynnalVIBaeMoMy") {
		t.Errorf("on a page: %q", out[0].b)
	}
}

// A page that is larger than any page of Word is made smaller, with everything on it.
func TestDocxHugePage(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	text := strings.Fields(prose(6, 20))
	extra := "/MediaBox[0 0 2000 3168]"
	flowing := "0 0 0.6 RG 4 w 200 2800 m 1800 2800 l S\n0 g " + lines("F1", 40, 200, 2600, 60, strings.Join(text[:5], " "), strings.Join(text[5:10], " "))
	drawing := "0.5 0.1 0.1 rg 200 1000 m 600 2400 1400 2400 1800 1000 c f 0 g " + lines("F1", 40, 200, 2600, 60, text[10:]...)
	docx, codes := warned(t, e, "docx", pages(pdfPage{extra, flowing}, pdfPage{extra, drawing}))
	parts := unzip(t, docx[0].b)
	main := string(parts["word/document.xml"])
	if want := `<w:pgSz w:w="20000" w:h="31680"/>`; strings.Count(main, want) != 2 {
		t.Errorf("pages are not %s", want)
	}
	if text := main + string(parts["word/styles.xml"]); !strings.Contains(text, `<w:sz w:val="40"/>`) || strings.Contains(text, `<w:sz w:val="80"/>`) {
		t.Error("the text is not of 20 points")
	}
	if !strings.Contains(main, `<a:ln w="25400">`) {
		t.Error("the rule is not 2 points wide")
	}
	if want := `<wp:extent cx="12700000" cy="20116800"/>`; !strings.Contains(main, want) {
		t.Errorf("the picture of the second page is not %s", want)
	}
	if want := []string{"layout_simplified", "layout_simplified"}; !slices.Equal(codes, want) {
		t.Errorf("warnings %q, want %q", codes, want)
	}
}
