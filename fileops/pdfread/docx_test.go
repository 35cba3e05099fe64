package pdfread_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/jpeg"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

const fodtHead = `<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.text">
<office:styles>
<style:default-style style:family="paragraph"><style:text-properties fo:font-family="'Liberation Serif'" style:font-family-asian="'Noto Serif CJK SC'" style:font-family-complex="'Noto Naskh Arabic'" fo:font-size="11pt" style:font-size-asian="11pt" style:font-size-complex="11pt" fo:language="en" fo:country="GB"/></style:default-style>
<style:style style:name="Body" style:family="paragraph"><style:paragraph-properties fo:margin-bottom="0.2cm" fo:text-align="justify"/></style:style>
<style:style style:name="H1" style:family="paragraph"><style:paragraph-properties fo:margin-top="0.6cm" fo:margin-bottom="0.3cm" fo:keep-with-next="always"/><style:text-properties fo:font-size="20pt" fo:font-weight="bold" fo:font-family="'Liberation Sans'"/></style:style>
<style:style style:name="H2" style:family="paragraph"><style:paragraph-properties fo:margin-top="0.4cm" fo:margin-bottom="0.2cm" fo:keep-with-next="always"/><style:text-properties fo:font-size="15pt" fo:font-weight="bold" fo:font-family="'Liberation Sans'"/></style:style>
<text:list-style style:name="Bullets"><text:list-level-style-bullet text:level="1" text:bullet-char="•"><style:list-level-properties text:list-level-position-and-space-mode="label-alignment"><style:list-level-label-alignment text:label-followed-by="listtab" fo:text-indent="-0.6cm" fo:margin-left="1.2cm"/></style:list-level-properties></text:list-level-style-bullet></text:list-style>
<text:list-style style:name="Numbers"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."><style:list-level-properties text:list-level-position-and-space-mode="label-alignment"><style:list-level-label-alignment text:label-followed-by="listtab" fo:text-indent="-0.6cm" fo:margin-left="1.2cm"/></style:list-level-properties></text:list-level-style-number></text:list-style>
</office:styles>
<office:automatic-styles>
<style:page-layout style:name="PL"><style:page-layout-properties fo:page-width="21cm" fo:page-height="29.7cm" fo:margin-top="1.5cm" fo:margin-bottom="1.5cm" fo:margin-left="2.5cm" fo:margin-right="2.5cm"/><style:header-style><style:header-footer-properties fo:min-height="0.8cm" fo:margin-bottom="0.6cm"/></style:header-style><style:footer-style><style:header-footer-properties fo:min-height="0.8cm" fo:margin-top="0.6cm"/></style:footer-style></style:page-layout>
<style:style style:name="B" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>
<style:style style:name="I" style:family="text"><style:text-properties fo:font-style="italic"/></style:style>
<style:style style:name="R" style:family="text"><style:text-properties fo:color="#c00000"/></style:style>
<style:style style:name="U" style:family="text"><style:text-properties style:text-underline-style="solid" style:text-underline-width="auto"/></style:style>
<style:style style:name="Sup" style:family="text"><style:text-properties style:text-position="super 58%"/></style:style>
<style:style style:name="Centre" style:family="paragraph"><style:paragraph-properties fo:text-align="center"/></style:style>
<style:style style:name="Rtl" style:family="paragraph"><style:paragraph-properties fo:text-align="end" style:writing-mode="rl-tb"/></style:style>
<style:style style:name="Two" style:family="section"><style:section-properties><style:columns fo:column-count="2" fo:column-gap="0.8cm"/></style:section-properties></style:style>
<style:style style:name="Cell" style:family="table-cell"><style:table-cell-properties fo:border="0.5pt solid #000000" fo:padding="0.1cm"/></style:style>
<style:style style:name="Shaded" style:family="table-cell"><style:table-cell-properties fo:border="0.5pt solid #000000" fo:padding="0.1cm" fo:background-color="#ffe0b0"/></style:style>
<style:style style:name="Fill1" style:family="table-cell"><style:table-cell-properties fo:padding="0.15cm" fo:background-color="#d0e0f0"/></style:style>
<style:style style:name="Fill2" style:family="table-cell"><style:table-cell-properties fo:padding="0.15cm" fo:background-color="#f0f0d0"/></style:style>
<style:style style:name="G" style:family="graphic"><style:graphic-properties style:wrap="none" style:horizontal-pos="center" style:horizontal-rel="paragraph" text:anchor-type="paragraph"/></style:style>
</office:automatic-styles>
<office:master-styles><style:master-page style:name="Standard" style:page-layout-name="PL"><style:header><text:p>Annual report of the harbour office</text:p></style:header><style:footer><text:p text:style-name="Centre">Page <text:page-number/></text:p></style:footer></style:master-page></office:master-styles>
<office:body><office:text>
`

// report is a document with common content. It is long enough for running
// headers.
func report() string {
	var b strings.Builder
	b.WriteString(fodtHead)
	para := func(seed, n int) { fmt.Fprintf(&b, `<text:p text:style-name="Body">%s.</text:p>`, prose(seed, n)) }
	heading := func(level int, text string) {
		fmt.Fprintf(&b, `<text:h text:style-name="H%d" text:outline-level="%d">%s</text:h>`, level, level, text)
	}
	heading(1, "Introduction to the harbour")
	para(1, 90)
	b.WriteString(`<text:p text:style-name="Body">Words in <text:span text:style-name="B">boldface</text:span>, in <text:span text:style-name="I">slanted</text:span>, in <text:span text:style-name="R">scarlet</text:span>, <text:span text:style-name="U">underscored</text:span> and E = mc<text:span text:style-name="Sup">2</text:span>, with <text:a xlink:type="simple" xlink:href="https://example.com/page?a=1&amp;b=2">a link to somewhere</text:a>.</text:p>`)
	heading(2, "Things to remember")
	b.WriteString(`<text:list text:style-name="Bullets">`)
	for i := range 4 {
		fmt.Fprintf(&b, `<text:list-item><text:p>bulleted %s</text:p></text:list-item>`, prose(20+i, 4+9*(i%2)))
	}
	b.WriteString(`</text:list>`)
	para(2, 40)
	b.WriteString(`<text:list text:style-name="Numbers">`)
	for i := range 3 {
		fmt.Fprintf(&b, `<text:list-item><text:p>numbered %s</text:p></text:list-item>`, prose(30+i, 5+10*(i%2)))
	}
	b.WriteString(`</text:list>`)
	heading(2, "A table with borders")
	b.WriteString(`<table:table table:name="T1"><table:table-column table:number-columns-repeated="3"/>` +
		`<table:table-row><table:table-cell table:style-name="Shaded" table:number-columns-spanned="2"><text:p>Wide heading</text:p></table:table-cell><table:covered-table-cell/><table:table-cell table:style-name="Shaded"><text:p>Third</text:p></table:table-cell></table:table-row>` +
		`<table:table-row><table:table-cell table:style-name="Cell" table:number-rows-spanned="2"><text:p>Tall cell</text:p></table:table-cell><table:table-cell table:style-name="Cell"><text:p>alpha</text:p></table:table-cell><table:table-cell table:style-name="Cell"><text:p>beta</text:p></table:table-cell></table:table-row>` +
		`<table:table-row><table:covered-table-cell/><table:table-cell table:style-name="Cell"><text:p>gamma</text:p></table:table-cell><table:table-cell table:style-name="Cell"><text:p>delta with more text than fits into one line of it</text:p></table:table-cell></table:table-row></table:table>`)
	para(3, 60)
	heading(2, "A table without borders")
	b.WriteString(`<table:table table:name="T2"><table:table-column table:number-columns-repeated="3"/>`)
	for i := range 4 {
		b.WriteString(`<table:table-row>`)
		for k := range 3 {
			fmt.Fprintf(&b, `<table:table-cell table:style-name="Fill%d"><text:p>field%d%d</text:p></table:table-cell>`, 1+(i+k)%2, i, k)
		}
		b.WriteString(`</table:table-row>`)
	}
	b.WriteString(`</table:table>`)
	para(4, 50)
	heading(1, "The second chapter")
	fmt.Fprintf(&b, `<text:p text:style-name="Centre"><draw:frame draw:style-name="G" text:anchor-type="as-char" svg:width="8cm" svg:height="6cm"><draw:image><office:binary-data>%s</office:binary-data></draw:image></draw:frame></text:p>`,
		base64.StdEncoding.EncodeToString(photo()))
	para(5, 120)
	b.WriteString(`<text:section text:style-name="Two" text:name="S">`)
	for i := range 5 {
		para(6+i, 110)
	}
	b.WriteString(`</text:section>`)
	heading(1, "Other scripts")
	b.WriteString(`<text:p text:style-name="Body">这是一个中文段落，用来检查文字的顺序和换行是否正确，并且没有多余的空格出现在其中。</text:p>`)
	b.WriteString(`<text:p text:style-name="Rtl">هذه فقرة باللغة العربية للتحقق من ترتيب الكلمات</text:p>`)
	for i := range 12 {
		heading(2, fmt.Sprintf("Part %c of the appendix", 'A'+i))
		para(40+i, 150)
		para(60+i, 80)
	}
	b.WriteString(`</office:text></office:body></office:document>`)
	return b.String()
}

// photo is a JPEG file.
func photo() []byte {
	var b bytes.Buffer
	jpeg.Encode(&b, fileopstest.Picture(400, 300), &jpeg.Options{Quality: 90})
	return b.Bytes()
}

var reportPDF sync.Map

// reportAsPDF returns the report as LibreOffice prints it, created once.
func reportAsPDF(t testing.TB) []byte {
	t.Helper()
	make, _ := reportPDF.LoadOrStore("", sync.OnceValue(func() []byte {
		return office(t, "report.fodt", []byte(report()), `pdf:writer_pdf_Export:{"ExportBookmarks":{"type":"boolean","value":"false"},"UseLosslessCompression":{"type":"boolean","value":"false"},"ReduceImageResolution":{"type":"boolean","value":"false"},"Quality":{"type":"long","value":"95"}}`)
	}))
	return make.(func() []byte)()
}

// docxText returns the text that pandoc extracts from a document.
func docxText(t testing.TB, docx []byte) string {
	t.Helper()
	return tool(t, "pandoc", "-f", "docx", "-t", "plain", "--wrap=none", write(t, "x.docx", docx))
}

// bodyText returns the text of a PDF without the lines that are the same on all
// pages except for numbers.
func bodyText(t testing.TB, pdf []byte) string {
	t.Helper()
	text := tool(t, "pdftotext", write(t, "x.pdf", pdf), "-")
	digits := regexp.MustCompile(`\d+`)
	count := make(map[string]int)
	ls := strings.Split(strings.ReplaceAll(text, "\f", "\n"), "\n")
	for _, l := range ls {
		count[digits.ReplaceAllString(l, "#")]++
	}
	var out []string
	for _, l := range ls {
		if count[digits.ReplaceAllString(l, "#")] < 4 {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func TestDocxOfReport(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	pdf := reportAsPDF(t)
	out := mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pdf)
	docx := out[0].b
	if out[0].name != "in.docx" {
		t.Errorf("result is %s", out[0].name)
	}
	parts := unzip(t, docx)
	checkSchema(t, parts)
	body := string(parts["word/document.xml"])
	md := tool(t, "pandoc", "-f", "docx", "-t", "markdown-simple_tables-multiline_tables+pipe_tables", "--wrap=none", write(t, "x.docx", docx))

	t.Run("words and their order", func(t *testing.T) {
		want, got := tokens(bodyText(t, pdf)), tokens(docxText(t, docx))
		if r := recall(want, got); r < 0.99 {
			t.Errorf("recall %.4f", r)
		}
		if o := order(want, got); o < 0.97 {
			t.Errorf("order %.4f", o)
		}
		if len(got) > len(want)*102/100 {
			t.Errorf("%d words, want %d", len(got), len(want))
		}
	})
	t.Run("headings", func(t *testing.T) {
		for _, h := range []string{"# Introduction to the harbour", "## Things to remember", "# The second chapter", "# Other scripts", "## Part A of the appendix", "## Part L of the appendix"} {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(h) + `( \{.*\})?$`).MatchString(md) {
				t.Errorf("no heading %q", h)
			}
		}
		if n := strings.Count("\n"+md, "\n# "); n != 3 {
			t.Errorf("%d headings of the first level", n)
		}
		if n := strings.Count("\n"+md, "\n## "); n != 15 {
			t.Errorf("%d headings of the second level", n)
		}
	})
	t.Run("lists", func(t *testing.T) {
		if n := len(regexp.MustCompile(`(?m)^-\s+bulleted`).FindAllString(md, -1)); n != 4 {
			t.Errorf("%d bulleted items", n)
		}
		for i := 1; i <= 3; i++ {
			if !regexp.MustCompile(fmt.Sprintf(`(?m)^%d\.\s+numbered`, i)).MatchString(md) {
				t.Errorf("no item %d", i)
			}
		}
	})
	t.Run("tables", func(t *testing.T) {
		if n := strings.Count(body, "<w:tbl>"); n != 2 {
			t.Fatalf("%d tables", n)
		}
		for _, s := range []string{`<w:gridSpan w:val="2"/>`, `<w:vMerge w:val="restart"/>`, `<w:vMerge/>`, `w:fill="FFE0B0"`, `w:fill="D0E0F0"`} {
			if !strings.Contains(body, s) {
				t.Errorf("no %s", s)
			}
		}
		second := body[strings.LastIndex(body, "<w:tbl>"):]
		second = second[:strings.Index(second, "</w:tbl>")]
		if r, c := strings.Count(second, "<w:tr>"), strings.Count(second, "<w:tc>"); r != 4 || c != 12 {
			t.Errorf("the table without borders has %d rows and %d cells", r, c)
		}
		if strings.Contains(second, "w:tblBorders") {
			t.Error("the table without borders has some")
		}
	})
	t.Run("characters", func(t *testing.T) {
		for _, s := range []string{"**boldface**", "*slanted*", "mc^2^", "[a link to somewhere](https://example.com/page?a=1&b=2)"} {
			if !strings.Contains(md, s) {
				t.Errorf("no %s", s)
			}
		}
		for _, s := range []string{`<w:color w:val="C00000"/></w:rPr><w:t xml:space="preserve">scarlet`, `<w:u w:val="single"/></w:rPr><w:t xml:space="preserve">underscored`} {
			if !strings.Contains(body, s) {
				t.Errorf("no %s", s)
			}
		}
		styles := string(parts["word/styles.xml"])
		if !strings.Contains(styles, `w:ascii="Liberation Serif"`) || !strings.Contains(styles, `<w:sz w:val="22"/>`) || !strings.Contains(styles, `w:ascii="Liberation Sans"`) {
			t.Errorf("styles: %s", styles)
		}
	})
	t.Run("picture", func(t *testing.T) {
		var found bool
		for name, b := range parts {
			if strings.HasPrefix(name, "word/media/") && strings.HasSuffix(name, ".jpg") {
				m, err := jpeg.Decode(bytes.NewReader(b))
				systest.NoError(t, err)
				want, _ := jpeg.Decode(bytes.NewReader(photo()))
				found = true
				if s := ssim(t, want, m); s < 0.97 {
					t.Errorf("SSIM %.3f", s)
				}
			}
		}
		if !found {
			t.Error("no picture")
		}
		// 8 cm are 226.8 points, in English metric units.
		m := regexp.MustCompile(`<wp:extent cx="(\d+)" cy="(\d+)"/>`).FindStringSubmatch(body)
		var cx, cy int
		if m != nil {
			fmt.Sscan(m[1]+" "+m[2], &cx, &cy)
		}
		if cx < 2_830_000 || cx > 2_930_000 || cy < 2_110_000 || cy > 2_210_000 {
			t.Errorf("the picture is %d by %d", cx, cy)
		}
	})
	t.Run("header and footer", func(t *testing.T) {
		var headers, footers string
		for name, b := range parts {
			switch {
			case strings.HasPrefix(name, "word/header"):
				headers += string(b)
			case strings.HasPrefix(name, "word/footer"):
				footers += string(b)
			}
		}
		if !strings.Contains(headers, "Annual report of the harbour office") || !strings.Contains(footers, ` PAGE `) {
			t.Errorf("headers %q, footers %q", headers, footers)
		}
		if strings.Contains(body, "Annual report") {
			t.Error("the header is in the text too")
		}
	})
	t.Run("columns and page", func(t *testing.T) {
		if !strings.Contains(body, `<w:cols w:num="2"`) {
			t.Error("no section of two columns")
		}
		if !strings.Contains(body, `<w:pgSz w:w="11906" w:h="16838"/>`) {
			t.Errorf("page size: %s", regexp.MustCompile(`<w:pgSz[^>]*>`).FindString(body))
		}
	})
	t.Run("scripts", func(t *testing.T) {
		if !strings.Contains(md, "这是一个中文段落，用来检查文字的顺序和换行是否正确，并且没有多余的空格出现在其中。") {
			t.Error("the Chinese text is not as it was")
		}
		if !strings.Contains(md, "هذه فقرة باللغة العربية للتحقق من ترتيب الكلمات") || !strings.Contains(body, "<w:bidi/>") {
			t.Errorf("the Arabic text is not as it was")
		}
	})
	t.Run("pages", func(t *testing.T) {
		back := office(t, "back.docx", docx, "pdf")
		want, got := pdfPages(t, pdf), pdfPages(t, back)
		if got*5 < want*4 || got*5 > want*6 {
			t.Errorf("%d pages, want %d", got, want)
		}
		if r := recall(tokens(bodyText(t, pdf)), tokens(bodyText(t, back))); r < 0.98 {
			t.Errorf("recall of what is printed %.4f", r)
		}
	})
	t.Run("always the same", func(t *testing.T) {
		again := mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pdf)
		if !bytes.Equal(docx, again[0].b) {
			t.Error("a second run makes another file")
		}
	})
}

func TestTextOfReport(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	pdf := reportAsPDF(t)
	out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, pdf)
	ref := tool(t, "pdftotext", write(t, "x.pdf", pdf), "-")
	want, got := tokens(ref), tokens(string(out[0].b))
	if r, o := recall(want, got), order(want, got); r < 0.99 || o < 0.97 {
		t.Errorf("recall %.4f, order %.4f", r, o)
	}
	if a, b := strings.Count(ref, "\f"), strings.Count(string(out[0].b), "\f"); a != b {
		t.Errorf("%d form feeds, want %d", b, a)
	}
}

// TestDocxByHand tests documents that are easier to write by hand.
func TestDocxByHand(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	body := func(t *testing.T, pdf []byte) string {
		return string(unzip(t, mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pdf)[0].b)["word/document.xml"])
	}
	t.Run("landscape", func(t *testing.T) {
		t.Parallel()
		b := body(t, pages(pdfPage{extra: "/Rotate 90", content: "0 1 -1 0 595 0 cm " + lines("F1", 14, 72, 500, 20, "first line of it", "second line of it")},
			pdfPage{content: lines("F1", 14, 72, 500, 20, "upright")}))
		if !strings.Contains(b, `<w:pgSz w:w="16840" w:h="11900" w:orient="landscape"/>`) || !strings.Contains(b, `<w:pgSz w:w="11900" w:h="16840"/>`) {
			t.Errorf("page sizes: %v", regexp.MustCompile(`<w:pgSz[^>]*>`).FindAllString(b, -1))
		}
	})
	t.Run("three columns", func(t *testing.T) {
		t.Parallel()
		content, text := columns(3, 30, 640)
		out := mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pages(pdfPage{content: content}))
		if !strings.Contains(string(unzip(t, out[0].b)["word/document.xml"]), `<w:cols w:num="3"`) {
			t.Error("no three columns")
		}
		if o := order(tokens(text), tokens(docxText(t, out[0].b))); o < 0.999 {
			t.Errorf("order %.4f", o)
		}
	})
	t.Run("book table", func(t *testing.T) {
		t.Parallel()
		content := "1 w 100 700 m 400 700 l S 100 680 m 400 680 l S 100 600 m 400 600 l S\n"
		for i, r := range [][]string{{"Item", "Count", "Price"}, {"apple", "3", "1.20"}, {"pear", "14", "0.80"}, {"plum", "150", "0.15"}} {
			for k, c := range r {
				content += lines("F1", 11, 110+float64(k)*110, 686-float64(i)*20, 12, c)
			}
		}
		out := mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pages(pdfPage{content: lines("F1", 11, 72, 760, 14, "Some text above it.") + content}))
		html := tool(t, "pandoc", "-f", "docx", "-t", "html", write(t, "x.docx", out[0].b))
		flat := regexp.MustCompile(`<[^>]*>|\s+`).ReplaceAllString(html, " ")
		if strings.Count(html, "<tr") != 4 || !strings.Contains(strings.Join(strings.Fields(flat), " "), "Item Count Price apple 3 1.20 pear 14 0.80 plum 150 0.15") {
			t.Errorf("table: %s", html)
		}
	})
	t.Run("link to a page", func(t *testing.T) {
		t.Parallel()
		p := &pdfFile{}
		font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
		res := "/MediaBox[0 0 595 842]/Resources<</Font<</F1 " + font + ">>>>"
		one, two := p.stream("", lines("F1", 12, 72, 700, 14, "Go to the end")), p.stream("", lines("F1", 12, 72, 700, 14, "The end"))
		p.add("<</Type/Page/Parent 6 0 R%s/Contents %s/Annots[<</Type/Annot/Subtype/Link/Rect[70 695 160 715]/Dest[5 0 R/Fit]>><</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(javascript:alert)>>>>]>>", res, one)
		p.add("<</Type/Page/Parent 6 0 R%s/Contents %s>>", res, two)
		p.add("<</Type/Pages/Kids[4 0 R 5 0 R]/Count 2>>")
		b := body(t, p.finish(p.add("<</Type/Catalog/Pages 6 0 R>>")))
		if !strings.Contains(b, `<w:hyperlink w:anchor="page_2">`) || !strings.Contains(b, `w:name="page_2"`) || strings.Contains(b, "javascript") {
			t.Error(b)
		}
	})
	t.Run("hyphens", func(t *testing.T) {
		t.Parallel()
		b := docxText(t, mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pages(pdfPage{content: lines("F3", 10, 72, 700, 12,
			"This is a paragraph with a word that was di-", "vided at the end of a line and goes on here,", "with dashes - like this - and a well-known, well-", "known compound, which keeps what belongs to it.")}))[0].b)
		if !strings.Contains(b, "that was divided at the end of a line and goes on here, with dashes - like this - and a well-known, well-known compound") {
			t.Error(b)
		}
	})
}
