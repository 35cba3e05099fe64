package pdfread_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// docxOf converts a file and checks the result. It returns the parts, and the
// text that pandoc extracts.
func docxOf(t *testing.T, pdf []byte) (parts map[string][]byte, text string) {
	t.Helper()
	out := mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "docx"}, pdf)
	parts = unzip(t, out[0].b)
	checkSchema(t, parts)
	return parts, strings.Join(strings.Fields(docxText(t, out[0].b)), " ")
}

func TestDocxSuperscriptBeforeWord(t *testing.T) {
	t.Parallel()
	parts, text := docxOf(t, pages(pdfPage{content: lines("F2", 11, 80, 700, 14, "Institute of Rivers and of all that flows") +
		lines("F2", 6, 75, 704, 14, "1") + lines("F2", 11, 72, 660, 14, "This is the text below it, which goes on for a while.")}))
	if body := string(parts["word/document.xml"]); !strings.Contains(body, `<w:vertAlign w:val="superscript"/></w:rPr><w:t xml:space="preserve">1`) {
		t.Errorf("the number is not raised: %s", body)
	}
	if !strings.HasPrefix(text, "1 Institute of Rivers") && !strings.HasPrefix(text, "¹ Institute") {
		t.Errorf("text: %s", text)
	}
}

func TestDocxOverprint(t *testing.T) {
	t.Parallel()
	twice := lines("F1", 12, 72, 700, 16, "Printed twice to look bold", "and the line after it")
	_, text := docxOf(t, pages(pdfPage{content: twice + lines("F1", 12, 72, 500, 16, "Something else") + "1 0 0 1 0.2 0 cm " + twice}))
	if text != "Printed twice to look bold and the line after it Something else" {
		t.Errorf("text: %s", text)
	}
}

// TestDocxLigature uses one character code that stands for three letters.
func TestDocxLigature(t *testing.T) {
	t.Parallel()
	p := &pdfFile{}
	cmap := p.stream("", "/CIDInit/ProcSet findresource begin 12 dict begin begincmap/CMapName/X def/CMapType 2 def "+
		"1 begincodespacerange<00><ff>endcodespacerange 1 beginbfchar<57><006600660069>endbfchar 1 beginbfrange<61><7a><0061>endbfrange endcmap end end")
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode %s>>", cmap)
	page := p.stream("", lines("F1", 12, 72, 700, 14, "diWculties of an oWce"))
	p.add("<</Type/Page/Parent 5 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 %s>>>>/Contents %s>>", font, page)
	p.add("<</Type/Pages/Kids[4 0 R]/Count 1>>")
	if _, text := docxOf(t, p.finish(p.add("<</Type/Catalog/Pages 5 0 R>>"))); text != "difficulties of an office" {
		t.Errorf("text: %s", text)
	}
}

func TestDocxYearInHeader(t *testing.T) {
	t.Parallel()
	var ps []pdfPage
	for i := range 4 {
		ps = append(ps, pdfPage{content: lines("F1", 9, 72, 800, 10, fmt.Sprintf("Report for 2018 page %d", i+1)) +
			lines("F1", 11, 72, 700, 14, strings.Split(prose(i, 60), " ")[:40]...)})
	}
	parts, _ := docxOf(t, pages(ps...))
	header := ""
	for name, b := range parts {
		if strings.HasPrefix(name, "word/header") {
			header += string(b)
		}
	}
	if !strings.Contains(header, "Report for 2018 page") || strings.Count(header, " PAGE ") != 1 {
		t.Errorf("header: %s", header)
	}
}

// TestDocxChart draws a curve of many points between axes with numbers.
func TestDocxChart(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(lines("F2", 11, 72, 780, 14, "The chart below shows how it went."))
	b.WriteString("1 w 120 500 m 120 700 l S 120 500 m 420 500 l S 0 0 1 RG 125 510 m\n")
	for i := range 60 {
		fmt.Fprintf(&b, "%d %.1f l\n", 130+i*4, 590+70*math.Sin(float64(i)/7))
	}
	b.WriteString("S 0 0 0 RG\n" + lines("F1", 8, 180, 640, 10, "inflow") + lines("F1", 8, 104, 696, 100, "40", "20") + lines("F1", 8, 200, 488, 10, "2001"))
	b.WriteString(lines("F2", 11, 72, 420, 14, "This is what comes after the chart."))
	parts, text := docxOf(t, pages(pdfPage{content: b.String()}))
	body := string(parts["word/document.xml"])
	alt := regexp.MustCompile(`descr="([^"]*)"`).FindStringSubmatch(body)
	if alt == nil || !strings.Contains(alt[1], "inflow") || !strings.Contains(alt[1], "2001") || !strings.Contains(alt[1], "40") {
		t.Errorf("alternative text %q", alt)
	}
	if strings.Contains(body, "<w:t xml:space=\"preserve\">inflow") || strings.Contains(body, "<w:tbl>") {
		t.Error("the labels are in the text too")
	}
	if !strings.Contains(text, "The chart below shows how it went.") || !strings.Contains(text, "inflow") || !strings.HasSuffix(text, "This is what comes after the chart.") {
		t.Errorf("text: %s", text)
	}
	media := 0
	for name := range parts {
		if strings.HasPrefix(name, "word/media/") {
			media++
		}
	}
	if media != 1 {
		t.Errorf("%d pictures", media)
	}
}

// TestDocxStrips uses an image that was cut into strips.
func TestDocxStrips(t *testing.T) {
	t.Parallel()
	p := &pdfFile{}
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	image := func(v byte) string {
		return p.stream("/Type/XObject/Subtype/Image/Width 20/Height 10/BitsPerComponent 8/ColorSpace/DeviceGray", strings.Repeat(string(rune(v)), 200))
	}
	a, b := image(40), image(90)
	page := p.stream("", lines("F1", 12, 72, 750, 14, "Two strips")+"q 200 0 0 100 100 500 cm /A Do Q q 200 0 0 100 100 400 cm /B Do Q")
	p.add("<</Type/Page/Parent 6 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 %s>>/XObject<</A %s/B %s>>>>/Contents %s>>", font, a, b, page)
	p.add("<</Type/Pages/Kids[5 0 R]/Count 1>>")
	parts, _ := docxOf(t, p.finish(p.add("<</Type/Catalog/Pages 6 0 R>>")))
	extents := regexp.MustCompile(`<wp:extent cx="(\d+)" cy="(\d+)"/>`).FindAllStringSubmatch(string(parts["word/document.xml"]), -1)
	if len(extents) != 1 || extents[0][1] != "2540000" || extents[0][2] != "2540000" {
		t.Errorf("pictures: %v", extents)
	}
}

// TestDocxDenseGrid puts rows of numbers into one row of a ruled table, without
// rules between them and with some entries missing.
func TestDocxDenseGrid(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("0.5 w 72 700 228 20 re S 72 640 228 60 re S 160 640 m 160 720 l S 230 640 m 230 720 l S\n")
	b.WriteString(lines("F1", 8, 76, 706, 10, "State") + lines("F1", 8, 164, 706, 10, "Handgun") + lines("F1", 8, 234, 706, 10, "Long gun"))
	b.WriteString(lines("F1", 8, 76, 688, 10, "Alabama", "Alaska", "Arizona", "Arkansas", "California"))
	b.WriteString(lines("F1", 8, 190, 688, 10, "20,132", "2,201", "11,330", "5,900", "91,003"))
	b.WriteString(lines("F1", 8, 260, 688, 10, "13,401") + lines("F1", 8, 260, 668, 10, "7,020", "6,111", "40,010"))
	parts, text := docxOf(t, pages(pdfPage{content: b.String()}))
	if n := strings.Count(string(parts["word/document.xml"]), "<w:tr>"); n != 6 {
		t.Errorf("%d rows", n)
	}
	if !regexp.MustCompile(`Alabama 20,132 13,401 Alaska 2,201 Arizona 11,330 7,020`).MatchString(regexp.MustCompile(`[-+=| ]+`).ReplaceAllString(text, " ")) {
		t.Errorf("text: %s", text)
	}
}

// TestDocxCoarseRules uses a table whose rules separate only groups of columns.
func TestDocxCoarseRules(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("0.5 w 72 500 400 200 re S 72 680 m 472 680 l S 180 500 m 180 700 l S 326 500 m 326 700 l S\n")
	b.WriteString(lines("F1", 8, 230, 686, 10, "Male") + lines("F1", 8, 380, 686, 10, "Female"))
	want := ""
	for i := range 12 {
		y := 668 - float64(i)*13
		want += fmt.Sprintf("row%c 1%02d 2%02d 3%02d 4%02d ", 'a'+i, i, i, i, i)
		b.WriteString(lines("F1", 8, 76, y, 10, fmt.Sprintf("row%c", 'a'+i)))
		for k, x := range []float64{200, 270, 345, 420} {
			b.WriteString(lines("F1", 8, x, y, 10, fmt.Sprintf("%d%02d", k+1, i)))
		}
	}
	parts, text := docxOf(t, pages(pdfPage{content: b.String()}))
	body := string(parts["word/document.xml"])
	if r := strings.Count(body, "<w:tr>"); r != 13 || strings.Count(body, "<w:gridCol ") != 5 {
		t.Errorf("%d rows, %d columns", r, strings.Count(body, "<w:gridCol "))
	}
	if got := regexp.MustCompile(`[-+=| ]+`).ReplaceAllString(text, " "); !strings.Contains(got, strings.TrimSpace(want)) {
		t.Errorf("text: %s", got)
	}
}

func TestDocxLabels(t *testing.T) {
	t.Parallel()
	labels := []string{"Name:", "Contact:", "Street:", "Town:", "Telephone:", "Customer:", "Order:", "Terms:"}
	values := []string{"Premier Goods", "Michael Chen", "Broadway 55", "Newtown", "555 0100", "number 98765", "of December", "thirty days net"}
	want := ""
	for i := range labels {
		want += labels[i] + " " + values[i] + " "
	}
	_, text := docxOf(t, pages(pdfPage{content: lines("F1", 10, 72, 700, 14, labels...) + lines("F1", 10, 200, 700, 14, values...)}))
	if text != strings.TrimSpace(want) {
		t.Errorf("text: %s", text)
	}
}

func TestDocxTurnedText(t *testing.T) {
	t.Parallel()
	content := "0.5 w 72 600 300 100 re S 92 600 m 92 700 l S 92 650 m 372 650 l S\n" +
		"BT /F1 9 Tf 0 1 -1 0 85 620 Tm (Income tax) Tj ET\n" +
		lines("F1", 10, 100, 670, 50, "first entry of it", "second entry of it") +
		"BT /F1 14 Tf 0 1 -1 0 40 200 Tm (A stamp in the margin) Tj ET\n" +
		lines("F2", 11, 72, 560, 14, strings.Split("This is running text beside the stamp in the margin.|It goes on here, and on the next line, because there must be|more of it than of the text that runs up beside it.", "|")...)
	parts, text := docxOf(t, pages(pdfPage{content: content}))
	body := string(parts["word/document.xml"])
	if !strings.Contains(body, `<w:textDirection w:val="btLr"/>`) {
		t.Error("no cell with text that runs up")
	}
	if !strings.HasSuffix(text, "A stamp in the margin") || !strings.Contains(text, "Income tax") {
		t.Errorf("text: %s", text)
	}
	for _, m := range regexp.MustCompile(`w:before="(\d+)"`).FindAllStringSubmatch(body, -1) {
		if len(m[1]) > 4 || len(m[1]) == 4 && m[1] > "1500" {
			t.Errorf("a gap of %s twips", m[1])
		}
	}
}

// TestDocxFontStandIn uses a font that no program has. Its text is written in
// another font, with characters scaled to the original width.
func TestDocxFontStandIn(t *testing.T) {
	t.Parallel()
	p := &pdfFile{}
	var widths strings.Builder
	for i := range 95 {
		fmt.Fprintf(&widths, "%d ", 500+i%3*20)
	}
	desc := p.add("<</Type/FontDescriptor/FontName/Grundschrift-Regular/Flags 34/FontBBox[0 -200 600 800]/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80>>")
	font := p.add("<</Type/Font/Subtype/TrueType/BaseFont/Grundschrift-Regular/Encoding/WinAnsiEncoding/FirstChar 32/LastChar 126/Widths[%s]/FontDescriptor %s>>", widths.String(), desc)
	page := p.stream("", lines("F1", 12, 72, 700, 14, "The narrow letters of this font need room", "that is about the same in the document."))
	p.add("<</Type/Page/Parent 5 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 %s>>>>/Contents %s>>", font, page)
	p.add("<</Type/Pages/Kids[4 0 R]/Count 1>>")
	pdf := p.finish(p.add("<</Type/Catalog/Pages 5 0 R>>"))
	out := mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "docx"}, pdf)
	styles := string(unzip(t, out[0].b)["word/styles.xml"])
	if !strings.Contains(styles, `w:ascii="Times New Roman"`) || !strings.Contains(styles, `w:cs="Grundschrift"`) || !regexp.MustCompile(`<w:w w:val="\d+"/>`).MatchString(styles) {
		t.Errorf("styles: %s", styles)
	}
	right := func(pdf []byte) (x float64) {
		for _, m := range regexp.MustCompile(`xMax="([\d.]+)" yMax="[\d.]+">(room|document\.)<`).FindAllStringSubmatch(tool(t, "pdftotext", "-bbox", write(t, "x.pdf", pdf), "-"), -1) {
			var v float64
			fmt.Sscan(m[1], &v)
			x = max(x, v)
		}
		return x
	}
	if a, b := right(pdf), right(office(t, "x.docx", out[0].b, "pdf")); math.Abs(a-b) > 0.05*a {
		t.Errorf("the line ends at %.1f, not at %.1f points", b, a)
	}
}
