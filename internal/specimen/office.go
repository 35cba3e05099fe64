package specimen

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops/format"
)

const wordNS = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" ` +
	`xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"`

// pictureEMU is the size of the picture in a document in English metric units
// (1/914400 inch): 160 × 120 CSS pixels of 1/96 inch.
const pictureEMU = `cx="1524000" cy="1143000"`

func base64PNG() string { return base64.StdEncoding.EncodeToString(patchesPNG()) }

// htmlBody and its counterparts contain the same table in different formats.
func htmlBody(picture string) string {
	return fmt.Sprintf(`<h1>%s</h1><p>%s</p><p>%s</p><table border="1"><tr><td>Fruit</td><td>Count</td></tr><tr><td>Apple</td><td>3</td></tr><tr><td>Pear</td><td>4</td></tr></table>`+
		`<p><img src="%s" width="160" height="120" alt="four patches"/></p>`, Heading, Text, Scripts, picture)
}

func writeDocument(b *bytes.Buffer, f format.Format) error {
	switch f {
	case format.DOCX:
		return writeDOCX(b)
	case format.ODT:
		return writeODFWith(b, "text", `<office:text>`+odfBlocks("text:p")+`</office:text>`, true)
	case format.FODT:
		writeFlat(b, "text", `<office:text>`+strings.Replace(odfBlocks("text:p"), odfHref, flatImage(), 1)+`</office:text>`)
		return nil
	}
	return writeZIP(b, // EPUB 3.3
		"mimetype", "application/epub+zip",
		"META-INF/container.xml", xmlHead+`<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
		"book.opf", xmlHead+`<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">urn:x:specimen</dc:identifier><dc:title>`+Heading+`</dc:title><dc:language>en</dc:language></metadata>`+
			`<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/><item id="p" href="p.png" media-type="image/png"/></manifest><spine><itemref idref="c"/></spine></package>`,
		"c.xhtml", xmlHead+`<html xmlns="http://www.w3.org/1999/xhtml"><head><title>`+Heading+`</title></head><body>`+htmlBody("p.png")+`</body></html>`,
		"p.png", string(patchesPNG()))
}

func writeDOCX(b *bytes.Buffer) error {
	para := func(s string) string { return `<w:p><w:r><w:t>` + s + `</w:t></w:r></w:p>` }
	row := func(x, y string) string {
		return `<w:tr><w:tc><w:tcPr><w:tcW w:w="3000" w:type="dxa"/></w:tcPr>` + para(x) + `</w:tc><w:tc><w:tcPr><w:tcW w:w="3000" w:type="dxa"/></w:tcPr>` + para(y) + `</w:tc></w:tr>`
	}
	picture := `<w:p><w:r><w:drawing><wp:inline><wp:extent ` + pictureEMU + `/><wp:docPr id="1" name="patches"/><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture">` +
		`<pic:pic><pic:nvPicPr><pic:cNvPr id="1" name="patches"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:embed="rId1"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>` +
		`<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext ` + pictureEMU + `/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>`
	return writeZIP(b,
		"[Content_Types].xml", strings.Replace(contentTypes("/word/document.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"), `<Override`, `<Default Extension="png" ContentType="image/png"/><Override`, 1),
		"_rels/.rels", rels("officeDocument", "word/document.xml"),
		"word/_rels/document.xml.rels", rels("image", "media/image1.png"),
		"word/media/image1.png", string(patchesPNG()),
		"word/document.xml", xmlHead+`<w:document `+wordNS+`><w:body>`+
			`<w:p><w:r><w:rPr><w:b/><w:sz w:val="36"/></w:rPr><w:t>`+Heading+`</w:t></w:r></w:p>`+para(Text)+para(Scripts)+
			`<w:tbl><w:tblPr><w:tblW w:w="6000" w:type="dxa"/><w:tblBorders><w:top w:val="single" w:sz="4"/><w:bottom w:val="single" w:sz="4"/><w:insideH w:val="single" w:sz="4"/><w:insideV w:val="single" w:sz="4"/></w:tblBorders></w:tblPr><w:tblGrid><w:gridCol w:w="3000"/><w:gridCol w:w="3000"/></w:tblGrid>`+
			row("Fruit", "Count")+row("Apple", "3")+row("Pear", "4")+`</w:tbl>`+picture+
			`<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="0" w:footer="0" w:gutter="0"/></w:sectPr></w:body></w:document>`)
}

// writeRTF writes non-ASCII characters as \u escapes in UTF-16 (RTF 1.9.1,
// "Unicode RTF").
func writeRTF(b *bytes.Buffer) {
	b.WriteString(`{\rtf1\ansi\ansicpg1252\uc1{\fonttbl{\f0 Liberation Sans;}}\paperw11906\paperh16838\f0\fs24 {\b\fs36 ` + Heading + `}\par ` + Text + `\par `)
	for _, u := range utf16.Encode([]rune(Scripts)) {
		if u < 0x80 {
			b.WriteByte(byte(u))
		} else {
			b.WriteString(`\u` + strconv.Itoa(int(int16(u))) + `?`)
		}
	}
	b.WriteString(`\par Fruit\tab Count\par Apple\tab 3\par Pear\tab 4\par {\pict\pngblip\picw4233\pich3175\picwgoal2400\pichgoal1800 `)
	fmt.Fprintf(b, "%x}\\par}", patchesPNG())
}

// odfHref is the reference to the picture in a package. A flat document contains
// the picture inline instead.
const odfHref = `<draw:image xlink:href="Pictures/p.png" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/>`

func flatImage() string {
	return `<draw:image><office:binary-data>` + base64PNG() + `</office:binary-data></draw:image>`
}

func odfBlocks(p string) string {
	cell := func(s string) string {
		return `<table:table-cell office:value-type="string"><text:p>` + s + `</text:p></table:table-cell>`
	}
	row := func(x, y string) string {
		return `<table:table-row>` + cell(x) + cell(y) + `</table:table-row>`
	}
	return `<text:h text:outline-level="1">` + Heading + `</text:h><` + p + `>` + Text + `</` + p + `><` + p + `>` + Scripts + `</` + p + `>` +
		`<table:table table:name="T"><table:table-column table:number-columns-repeated="2"/>` + row("Fruit", "Count") + row("Apple", "3") + row("Pear", "4") + `</table:table>` +
		`<text:p><draw:frame draw:name="patches" text:anchor-type="as-char" svg:width="1.6667in" svg:height="1.25in">` + odfHref + `</draw:frame></text:p>`
}

func odfSlides(image string) string {
	box := func(y, s string) string {
		return `<draw:frame svg:x="2cm" svg:y="` + y + `" svg:width="20cm" svg:height="2cm"><draw:text-box><text:p>` + s + `</text:p></draw:text-box></draw:frame>`
	}
	return `<office:presentation><draw:page draw:name="one">` + box("1cm", Heading) + box("4cm", Text) +
		`<draw:frame svg:x="3cm" svg:y="8cm" svg:width="8cm" svg:height="6cm">` + image + `</draw:frame></draw:page>` +
		`<draw:page draw:name="two">` + box("1cm", Scripts) + box("4cm", "Fruit Count") + box("7cm", "Apple 3") + box("10cm", "Pear 4") + `</draw:page></office:presentation>`
}

func odfTable() string {
	s := `<office:spreadsheet><table:table table:name="Fruit">`
	for _, row := range tableRows() {
		s += `<table:table-row>`
		for _, c := range row {
			if _, err := strconv.ParseFloat(c, 64); err == nil {
				s += `<table:table-cell office:value-type="float" office:value="` + c + `"><text:p>` + c + `</text:p></table:table-cell>`
			} else {
				s += `<table:table-cell office:value-type="string"><text:p>` + c + `</text:p></table:table-cell>`
			}
		}
		s += `</table:table-row>`
	}
	return s + `</table:table></office:spreadsheet>`
}

func writeODFWith(b *bytes.Buffer, kind, body string, picture bool) error {
	if !picture {
		return writeODF(b, kind, body)
	}
	mime := "application/vnd.oasis.opendocument." + kind
	return writeZIP(b,
		"mimetype", mime,
		"META-INF/manifest.xml", xmlHead+`<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.3"><manifest:file-entry manifest:full-path="/" manifest:media-type="`+mime+`"/>`+
			`<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/><manifest:file-entry manifest:full-path="Pictures/p.png" manifest:media-type="image/png"/></manifest:manifest>`,
		"content.xml", xmlHead+`<office:document-content `+odfNS+`><office:body>`+body+`</office:body></office:document-content>`,
		"Pictures/p.png", string(patchesPNG()))
}

func writeSheet(b *bytes.Buffer, f format.Format) error {
	switch f {
	case format.ODS:
		return writeODF(b, "spreadsheet", odfTable())
	case format.FODS:
		writeFlat(b, "spreadsheet", odfTable())
		return nil
	}
	sheet := ""
	for y, row := range tableRows() {
		sheet += fmt.Sprintf(`<row r="%d">`, y+1)
		for x, c := range row {
			ref := string(rune('A'+x)) + strconv.Itoa(y+1)
			if _, err := strconv.ParseFloat(c, 64); err == nil {
				sheet += `<c r="` + ref + `"><v>` + c + `</v></c>`
			} else {
				sheet += `<c r="` + ref + `" t="inlineStr"><is><t>` + c + `</t></is></c>`
			}
		}
		sheet += `</row>`
	}
	return writeZIP(b,
		"[Content_Types].xml", contentTypes("/xl/workbook.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
			"/xl/worksheets/sheet1.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"),
		"_rels/.rels", rels("officeDocument", "xl/workbook.xml"),
		"xl/workbook.xml", xmlHead+`<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Fruit" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", rels("worksheet", "worksheets/sheet1.xml"),
		"xl/worksheets/sheet1.xml", xmlHead+`<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`+sheet+`</sheetData></worksheet>`)
}

func slidesSpecimen(f format.Format) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch f {
	case format.PPT:
		return officeFile("specimen.ppt")
	case format.ODP:
		err = writeODFWith(&b, "presentation", odfSlides(odfHref), true)
	case format.FODP:
		writeFlat(&b, "presentation", odfSlides(flatImage()))
	default:
		id := 1
		box := func(y int, s string) string {
			id++
			return fmt.Sprintf(`<p:sp><p:nvSpPr><p:cNvPr id="%d" name="Text %[1]d"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr><a:xfrm><a:off x="500000" y="%d"/><a:ext cx="8000000" cy="700000"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr>`+
				`<p:txBody><a:bodyPr/><a:p><a:r><a:rPr lang="en" sz="2000"/><a:t>%s</a:t></a:r></a:p></p:txBody></p:sp>`, id, y, s)
		}
		picture := `<p:pic><p:nvPicPr><p:cNvPr id="9" name="patches"/><p:cNvPicPr/><p:nvPr/></p:nvPicPr><p:blipFill><a:blip r:embed="rId2"/><a:stretch><a:fillRect/></a:stretch></p:blipFill>` +
			`<p:spPr><a:xfrm><a:off x="1000000" y="2600000"/><a:ext cx="3048000" cy="2286000"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr></p:pic>`
		err = writePPTX(&b, patchesPNG(), box(400000, Heading)+box(1400000, Text)+picture,
			box(400000, Scripts)+box(1400000, "Fruit Count")+box(2400000, "Apple 3")+box(3400000, "Pear 4"))
	}
	return b.Bytes(), err
}
