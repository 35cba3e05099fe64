package pdfread_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// words returns the words that pdftotext finds on each page.
func words(t *testing.T, pdf []byte) (out [][]string) {
	t.Helper()
	for page := range strings.SplitSeq(strings.TrimSuffix(tool(t, "pdftotext", write(t, "x.pdf", pdf), "-"), "\f"), "\f") {
		out = append(out, strings.Fields(page))
	}
	return out
}

// Pages start and end with the same text as in the PDF file, even if the text of
// one continues on the next. A paragraph over two pages stays one paragraph.
func TestDocxPagesKeepTheirText(t *testing.T) {
	t.Parallel()
	all := strings.Fields(prose(2, 1200))
	var ps []pdfPage
	for n := range 3 {
		var ls []string
		for i := range 40 {
			ls = append(ls, strings.Join(all[(n*40+i)*9:(n*40+i+1)*9], " "))
		}
		ps = append(ps, pdfPage{content: lines("F2", 11, 60, 780, 17, ls...)})
	}
	pdf := pages(ps...)
	parts, _ := docxOf(t, pdf)
	if n := strings.Count(string(parts["word/document.xml"]), `<w:br w:type="page"/>`); n != 2 {
		t.Errorf("%d page breaks within the paragraph, want 2", n)
	}
	out := mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "docx"}, pdf)
	want, got := words(t, pdf), words(t, office(t, "x.docx", out[0].b, "pdf"))
	if len(got) != len(want) {
		t.Fatalf("%d pages, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := got[i], want[i]; len(g) == 0 || g[0] != w[0] || g[len(g)-1] != w[len(w)-1] {
			t.Errorf("page %d: %q, want %q", i+1, g, w)
		}
	}
}

// Graphics that are not part of the flow stay behind it: the page still flows.
func TestDocxGraphicsBehindFlow(t *testing.T) {
	t.Parallel()
	text := strings.Fields(prose(4, 60))
	content := "0.9 0.5 0.1 rg 60 640 480 90 re f 0 0 0.6 RG 1.5 w 60 60 m 540 60 l S\n0 g " + lines("F2", 11, 72, 710, 15, text[:20]...)
	docx, codes := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(pdfPage{content: content}))
	if len(codes) > 0 {
		t.Errorf("warnings %q", codes)
	}
	parts := unzip(t, docx[0].b)
	checkSchema(t, parts)
	main := string(parts["word/document.xml"])
	if n := strings.Count(main, "<a:custGeom>"); n != 2 || strings.Contains(main, "<wps:txbx>") {
		t.Errorf("%d shapes behind the text, want 2, and no text boxes", n)
	}
	if !strings.Contains(main, `<a:ln w="19050"><a:solidFill><a:srgbClr val="000099"/>`) || !regexp.MustCompile(`<a:solidFill><a:srgbClr val="E[56](7F|80)1[9A]"/></a:solidFill><a:ln><a:noFill/>`).MatchString(main) {
		t.Error("the shapes have other colours or widths")
	}
}

// The lines of a thick frame around the page are bars behind the flow.
func TestDocxThickFrame(t *testing.T) {
	t.Parallel()
	content := "18 w 0 0.4 0 RG 9 9 577 824 re S\n0 g " + lines("F2", 11, 72, 710, 15, strings.Fields(prose(4, 60))[:20]...)
	main := string(unzip(t, mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "docx"}, pages(pdfPage{content: content}))[0].b)["word/document.xml"])
	if n := strings.Count(main, "<a:moveTo>"); n != 4 || !strings.Contains(main, `<a:srgbClr val="006600"/>`) || strings.Contains(main, "<wps:txbx>") {
		t.Errorf("%d bars, want 4 green ones, and no text boxes", n)
	}
}

// A picture behind text stays behind the flow.
func TestDocxPictureBehindFlow(t *testing.T) {
	t.Parallel()
	page := picturePage(400, 500, "")
	page.extra = "/MediaBox[0 0 595 842]"
	page.content = "q 1 0 0 1 90 200 cm " + page.content + " Q\n" + lines("F2", 11, 72, 760, 15, strings.Fields(prose(4, 60))[:45]...)
	docx, codes := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(page))
	main := string(unzip(t, docx[0].b)["word/document.xml"])
	if len(codes) > 0 || strings.Contains(main, "<wps:txbx>") || !strings.Contains(main, `behindDoc="1"`) || !strings.Contains(main, "<pic:pic>") {
		t.Errorf("no picture behind the flow, or the page does not flow; warnings %q", codes)
	}
}

// Thin lines of a page with boxes are lines too, not only pixels. A line that a
// rectangle covers stays invisible.
func TestDocxRulesOverPicture(t *testing.T) {
	t.Parallel()
	content := "0.2 0.4 0.8 rg 0 0 400 300 re f 1 0 0 RG 0.3 w 20 30 m 380 30 l S 0 1 0 RG 20 200 m 380 200 l S 1 1 0.5 rg 10 190 380 20 re f\n0 g " +
		lines("F4", 20, 100, 250, 30, "Open day") + lines("F1", 9, 300, 100, 30, "come in")
	e := newEngine(t, pdfread.Options{})
	for name, more := range map[string]string{"flow": "", "boxes": " 0.5 0 0.5 rg 60 60 m 200 240 l 340 60 l f"} {
		docx, codes := warned(t, e, "docx", pages(pdfPage{extra: "/MediaBox[0 0 400 300]", content: content + more}))
		main := string(unzip(t, docx[0].b)["word/document.xml"])
		if (len(codes) > 0) != (name == "boxes") || !strings.Contains(main, `<a:srgbClr val="FF0000"/>`) {
			t.Errorf("%s: no red line; warnings %q", name, codes)
		}
		if strings.Contains(main, `<a:srgbClr val="00FF00"/>`) {
			t.Errorf("%s: a line that a rectangle covers is visible", name)
		}
	}
}

// A shading is part of the page: it does not flow without it.
func TestDocxShading(t *testing.T) {
	t.Parallel()
	page := pdfPage{
		extra:   "/Resources<</Shading<</S<</ShadingType 2/ColorSpace/DeviceRGB/Coords[0 400 0 700]/Function<</FunctionType 2/Domain[0 1]/C0[1 0 0]/C1[0 0 1]/N 1>>>>>>>>",
		content: "q 100 300 300 300 re W n /S sh Q\n" + lines("F2", 11, 72, 760, 15, "a line above the shading"),
	}
	docx, codes := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(page))
	if len(codes) != 1 || codes[0] != fileops.WarnLayoutSimplified || !strings.Contains(strings.Join(keys(unzip(t, docx[0].b)), " "), "word/media/") {
		t.Errorf("the shading is lost; warnings %q", codes)
	}
}

// Visible frames of links become frames of their text.
func TestDocxLinkFrame(t *testing.T) {
	t.Parallel()
	annot := func(y int, more string) string {
		return fmt.Sprintf("<</Type/Annot/Subtype/Link/Rect[70 %d 200 %d]/C[0 1 0]%s>>", y, y+14, more)
	}
	page := pdfPage{
		extra: "/Annots[" + annot(756, "/Border[0 0 1]/A<</S/URI/URI(https://example.com/)>>") + annot(716, "/Border[0 0 0]/A<</S/URI/URI(https://example.com/)>>") +
			annot(676, "/Border[0 0 1]/A<</S/URI/URI(file:///etc/passwd)>>") + "]",
		content: lines("F1", 11, 72, 760, 40, "with a frame", "without a frame", "a frame, no target"),
	}
	docx, _ := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(page))
	parts := unzip(t, docx[0].b)
	checkSchema(t, parts)
	main := string(parts["word/document.xml"])
	if n := strings.Count(main, `<w:bdr w:val="single" w:sz="6" w:space="0" w:color="00FF00"/>`); n != 2 {
		t.Errorf("%d frames, want 2", n)
	}
	if n := strings.Count(main, "<w:hyperlink "); n != 2 {
		t.Errorf("%d links, want 2", n)
	}
}

// codesPage is a page whose font has codes below the space, without a map to
// text: readable letters are the first few.
func codesPage(letters, codes int) []byte {
	var hex strings.Builder
	for i := range letters {
		fmt.Fprintf(&hex, "%04x", 0x61+i%20)
	}
	for i := range codes {
		fmt.Fprintf(&hex, "%04x", 1+i%8)
	}
	return coded(hex.String(), "<0061> <007a> <0061>")
}

// Codes without text are not taken for white space: a page that consists of them
// cannot be read.
func TestCodesWithoutText(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	for _, c := range []struct {
		letters, codes int
		unreliable     bool
	}{{40, 60, true}, {40, 2, false}} {
		_, codes := warned(t, e, "txt", codesPage(c.letters, c.codes))
		if got := strings.Contains(strings.Join(codes, " "), fileops.WarnTextUnreliable); got != c.unreliable {
			t.Errorf("%d letters and %d codes: warnings %q", c.letters, c.codes, codes)
		}
	}
}

// A recognizer that reads a page with unreadable text upside down is wrong.
func TestUnreadableTextIsNotTurned(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{Recognizer: says(2, "upside down")})
	_, codes := warned(t, e, "txt", codesPage(10, 80))
	if strings.Contains(strings.Join(codes, " "), fileops.WarnTextRecognized) {
		t.Errorf("warnings %q", codes)
	}
}

// A page is turned only if almost all its text is.
func TestDocxHalfTurned(t *testing.T) {
	t.Parallel()
	up := func(x int, s string) string { return fmt.Sprintf("BT /F1 12 Tf 0 1 -1 0 %d 200 Tm (%s) Tj ET\n", x, s) }
	content := lines("F1", 12, 72, 700, 16, "a line that runs to the right") + up(300, "a first line that runs up") + up(320, "and another one beside it")
	docx, _ := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(pdfPage{content: content}))
	main := string(unzip(t, docx[0].b)["word/document.xml"])
	if !regexp.MustCompile(`<w:pgSz w:w="11900" w:h="16840"/>`).MatchString(main) || !strings.Contains(main, `vert="vert270"`) {
		t.Error("the page is turned, or its turned text is not")
	}
}

// The text of a drawing stays behind it, so that it can be found.
func TestDocxDrawingText(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("0.8 w\n")
	for i := range 6 {
		fmt.Fprintf(&b, "%d 500 m %d 560 %d 440 %d 520 c S\n", 120+i*40, 140+i*40, 150+i*40, 160+i*40)
	}
	b.WriteString(lines("F1", 8, 150, 505, 10, "valve") + lines("F1", 8, 250, 505, 10, "sluice") + lines("F2", 11, 72, 760, 15, strings.Fields(prose(5, 30))[:12]...))
	docx, _ := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(pdfPage{content: b.String()}))
	parts := unzip(t, docx[0].b)
	checkSchema(t, parts)
	main := string(parts["word/document.xml"])
	if m := regexp.MustCompile(`behindDoc="1".*?<wps:txbx>.*?>valve sluice<`).FindString(main); m == "" {
		t.Error("no text behind the drawing")
	}
}

// A label, a tab and lines at the indent after it are one paragraph.
func TestDocxHangingTab(t *testing.T) {
	t.Parallel()
	words := strings.Fields(prose(6, 40))
	content := lines("F2", 11, 72, 700, 15, "35") + lines("F2", 11, 122, 700, 15, strings.Join(words[:9], " "), strings.Join(words[9:18], " "), strings.Join(words[18:22], " "))
	parts, text := docxOf(t, pages(pdfPage{content: content}))
	main := string(parts["word/document.xml"])
	if n := strings.Count(main, "<w:p>"); n != 1 || !regexp.MustCompile(`<w:ind w:left="\d+" w:right="\d+" w:hanging="\d+"/>`).MatchString(main) {
		t.Errorf("%d paragraphs, want one with a hanging indent", n)
	}
	if !strings.HasPrefix(text, "35 "+words[0]) || !strings.Contains(text, words[8]+" "+words[9]) {
		t.Errorf("text %q", text)
	}
}

// Blank pages stay, also before a page with another layout.
func TestDocxBlankPageStays(t *testing.T) {
	t.Parallel()
	picture := picturePage(100, 80, "")
	picture.extra = "/MediaBox[0 0 595 842]"
	out := mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "docx"}, pages(pdfPage{}, pdfPage{}, picture))
	if n := pdfPages(t, office(t, "x.docx", out[0].b, "pdf")); n != 3 {
		t.Errorf("%d pages, want 3", n)
	}
}

// A table whose cells cannot hold their text at its place does not flow.
func TestDocxTextMovesInCell(t *testing.T) {
	t.Parallel()
	frame := "0.5 w 72 300 400 400 re S 72 500 m 472 500 l S 272 300 m 272 700 l S\n"
	e := newEngine(t, pdfread.Options{})
	for name, c := range map[string]struct {
		content string
		fixed   bool
	}{
		"at the top":     {lines("F2", 11, 80, 686, 15, "first", "second") + lines("F2", 11, 280, 486, 15, "third"), false},
		"anywhere in it": {lines("F2", 11, 80, 660, 15, "first") + lines("F2", 11, 90, 540, 15, "second") + lines("F2", 11, 280, 640, 15, "third") + lines("F2", 11, 290, 320, 15, "fourth"), true},
	} {
		_, codes := warned(t, e, "docx", pages(pdfPage{content: frame + c.content}))
		if (len(codes) > 0) != c.fixed {
			t.Errorf("%s: warnings %q", name, codes)
		}
	}
}

// A long header on the right keeps its line: no tab stop in the middle limits it.
func TestDocxLongHeader(t *testing.T) {
	t.Parallel()
	var ps []pdfPage
	for n := range 3 {
		content := lines("F4", 14, 60, 800, 16, "Tables") + lines("F4", 14, 210, 800, 16, "Highlights of the report of the harbour office") + lines("F2", 11, 60, 740, 16, strings.Fields(prose(n, 40))[:30]...)
		ps = append(ps, pdfPage{content: content})
	}
	parts, _ := docxOf(t, pages(ps...))
	header := string(parts["word/header1.xml"])
	if !strings.Contains(header, "Highlights") || strings.Contains(header, `w:val="center"`) || strings.Count(header, "<w:tab/>") != 1 || !strings.Contains(header, `w:lineRule="exact"`) {
		t.Errorf("header: %s", header)
	}
}

// The parts of a header that a court puts over the margins stay at their places.
func TestDocxCrowdedHeader(t *testing.T) {
	t.Parallel()
	var ps []pdfPage
	for n := range 3 {
		content := lines("F1", 12, 60, 815, 16, "Case: 21-50498") + lines("F1", 12, 170, 815, 16, "Document: 00516242060") +
			lines("F1", 12, 330, 815, 16, fmt.Sprintf("Page: %d", n+1)) + lines("F1", 12, 400, 815, 16, "Date Filed: 03/16/2022") +
			lines("F2", 11, 90, 740, 16, strings.Fields(prose(n, 40))[:30]...)
		ps = append(ps, pdfPage{content: content})
	}
	docx, _ := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(ps...))
	checkSchema(t, unzip(t, docx[0].b))
	printed := write(t, "x.pdf", office(t, "x.docx", docx[0].b, "pdf"))
	for word, want := range map[string]string{"Case:": "60", "Document:": "170", "Page:": "330", "Date": "400", "03/16/2022": ""} {
		m := regexp.MustCompile(`xMin="([0-9]+)\.[0-9]*" yMin="([0-9]+)\.[0-9]*"[^>]*>` + word).FindStringSubmatch(tool(t, "pdftotext", "-bbox", "-f", "3", printed, "-"))
		if m == nil || want != "" && m[1] != want || m[2] != "16" && m[2] != "17" && m[2] != "15" {
			t.Errorf("%s is at %q, want %s", word, m, want)
		}
	}
}

// Cells have the borders that are drawn, in their colours.
func TestDocxCellBorders(t *testing.T) {
	t.Parallel()
	text := lines("F1", 9, 80, 686, 20, "north", "south") + lines("F1", 9, 210, 686, 20, "11", "12") + lines("F1", 9, 340, 686, 20, "21", "22")
	grid := "0.5 w 0 0 1 RG 72 660 390 40 re S 72 680 m 462 680 l S 202 660 m 202 700 l S 332 660 m 332 700 l S\n"
	for name, c := range map[string]struct {
		graphics string
		own      bool
	}{
		"all alike":  {grid, false},
		"red bottom": {strings.Replace(grid, "72 660 390 40 re S", "72 700 m 462 700 l S 72 660 m 72 700 l S 462 660 m 462 700 l S", 1) + "1 0 0 RG 3 w 72 660 m 462 660 l S\n", true},
	} {
		docx, _ := warned(t, newEngine(t, pdfread.Options{}), "docx", pages(pdfPage{content: c.graphics + "0 g " + text}))
		parts := unzip(t, docx[0].b)
		checkSchema(t, parts)
		main := string(parts["word/document.xml"])
		if strings.Count(main, "<w:tc>") != 6 || strings.Contains(main, "<w:tcBorders>") != c.own {
			t.Errorf("%s: %d cells, own borders: %v", name, strings.Count(main, "<w:tc>"), !c.own)
		}
		if c.own && strings.Count(main, `<w:bottom w:val="single" w:sz="24" w:space="0" w:color="FF0000"/>`) != 3 {
			t.Errorf("%s: the lower borders are not red", name)
		}
	}
}

// A narrow font that only some office programs have gets a stand-in of its width:
// another font would need many more pages.
func TestDocxNarrowFont(t *testing.T) {
	t.Parallel()
	p := &pdfFile{}
	desc := p.add("<</Type/FontDescriptor/FontName/Garamond/Flags 34/FontBBox[0 -200 600 800]/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80>>")
	font := p.add("<</Type/Font/Subtype/TrueType/BaseFont/Garamond/Encoding/WinAnsiEncoding/FirstChar 32/LastChar 126/Widths[%s]/FontDescriptor %s>>", strings.Repeat("300 400 500 ", 32), desc)
	page := p.stream("", lines("F1", 12, 72, 700, 14, "a line of narrow letters that is", "followed by another one"))
	p.add("<</Type/Page/Parent 5 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 %s>>>>/Contents %s>>", font, page)
	p.add("<</Type/Pages/Kids[4 0 R]/Count 1>>")
	docx, _ := warned(t, newEngine(t, pdfread.Options{}), "docx", p.finish(p.add("<</Type/Catalog/Pages 5 0 R>>")))
	if styles := string(unzip(t, docx[0].b)["word/styles.xml"]); !strings.Contains(styles, `w:ascii="Times New Roman"`) || !strings.Contains(styles, "<w:w w:val=") {
		t.Errorf("styles: %s", styles)
	}
}

// A web page lacks long rules of a page, and the warning says so; a rule between
// paragraphs is an ornament. Drawings are pictures that have their text as description.
func TestHTMLOfDrawings(t *testing.T) {
	t.Parallel()
	text := lines("F1", 12, 72, 760, 14, prose(1, 12), prose(2, 12))
	chart, labels, grid := "", "", ""
	for i := range 40 {
		chart += fmt.Sprintf("%d 200 m %d 650 %d 300 %d %d c S ", 72+i*10, 80+i*10, 90+i*10, 100+i*10, 400+5*i)
		labels += lines("F1", 8, float64(80+10*i), float64(300+7*(i%9)), 10, "abcd")
		grid += fmt.Sprintf("40 %d m 560 %d l S ", 40+9*i, 40+9*i)
	}
	for name, tt := range map[string]struct{ content, want string }{
		"drawing with labels": {lines("F1", 12, 72, 760, 14, "A title") + chart + labels, fileops.WarnPageAsImage},
		"drawing":             {text + chart, ""},
		"rule":                {text + "72 700 m 500 700 l S ", ""},
		"rules":               {text + grid, fileops.WarnContentDropped},
	} {
		_, codes := warned(t, newEngine(t, pdfread.Options{}), "html", pages(pdfPage{content: tt.content}))
		if got := strings.Join(codes, " "); got != tt.want {
			t.Errorf("%s: warnings %q, want %q", name, got, tt.want)
		}
	}
}
