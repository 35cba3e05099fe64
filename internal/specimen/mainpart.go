package specimen

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

const xmlHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"

// writeOffice writes minimal documents that office programs accept: a heading, a
// paragraph with [Text] and a table or a sheet.
func writeOffice(b *bytes.Buffer, f format.Format) error {
	switch f {
	case format.DOCX:
		return writeZIP(b,
			"[Content_Types].xml", contentTypes("/word/document.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"),
			"_rels/.rels", rels("officeDocument", "word/document.xml"),
			"word/document.xml", xmlHead+`<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`+
				`<w:p><w:r><w:rPr><w:b/><w:sz w:val="36"/></w:rPr><w:t>A sample</w:t></w:r></w:p>`+
				`<w:p><w:r><w:t>`+Text+`</w:t></w:r></w:p>`+
				`<w:tbl><w:tblPr><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid><w:gridCol w:w="3000"/><w:gridCol w:w="3000"/></w:tblGrid>`+
				`<w:tr><w:tc><w:p><w:r><w:t>Äpfel</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>日本語</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`+
				`<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="0" w:footer="0" w:gutter="0"/></w:sectPr>`+
				`</w:body></w:document>`)
	case format.XLSX:
		return writeZIP(b,
			"[Content_Types].xml", contentTypes("/xl/workbook.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
				"/xl/worksheets/sheet1.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"),
			"_rels/.rels", rels("officeDocument", "xl/workbook.xml"),
			"xl/workbook.xml", xmlHead+`<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Fruit" sheetId="1" r:id="rId1"/></sheets></workbook>`,
			"xl/_rels/workbook.xml.rels", rels("worksheet", "worksheets/sheet1.xml"),
			"xl/worksheets/sheet1.xml", xmlHead+`<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`+
				`<row r="1"><c r="A1" t="inlineStr"><is><t>name</t></is></c><c r="B1" t="inlineStr"><is><t>count</t></is></c></row>`+
				`<row r="2"><c r="A2" t="inlineStr"><is><t>Äpfel</t></is></c><c r="B2"><v>3</v></c></row>`+
				`<row r="3"><c r="A3" t="inlineStr"><is><t>`+Text+`</t></is></c><c r="B3"><f>B2*2</f><v>6</v></c></row></sheetData></worksheet>`)
	case format.PPTX:
		return writePPTX(b, nil, `<p:sp><p:nvSpPr><p:cNvPr id="2" name="Text"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr><a:xfrm><a:off x="500000" y="500000"/><a:ext cx="8000000" cy="1500000"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr>`+
			`<p:txBody><a:bodyPr/><a:p><a:r><a:rPr lang="en" sz="2400"/><a:t>`+Text+`</a:t></a:r></a:p></p:txBody></p:sp>`)
	case format.ODT:
		return writeODF(b, "text", `<office:text><text:h text:outline-level="1">A sample</text:h><text:p>`+Text+`</text:p></office:text>`)
	case format.ODS:
		return writeODF(b, "spreadsheet", odfSheet)
	case format.ODP:
		return writeODF(b, "presentation", odfSlide)
	case format.FODT:
		writeFlat(b, "text", `<office:text><text:h text:outline-level="1">A sample</text:h><text:p>`+Text+`</text:p></office:text>`)
	case format.FODS:
		writeFlat(b, "spreadsheet", odfSheet)
	case format.FODP:
		writeFlat(b, "presentation", odfSlide)
	case format.EPUB:
		return writeZIP(b,
			"mimetype", "application/epub+zip",
			"META-INF/container.xml", xmlHead+`<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
			"book.opf", xmlHead+`<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">urn:x:sample</dc:identifier><dc:title>A sample</dc:title><dc:language>en</dc:language></metadata>`+
				`<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>`,
			"c.xhtml", xmlHead+`<html xmlns="http://www.w3.org/1999/xhtml"><head><title>A sample</title></head><body><h1>A sample</h1><p>`+Text+`</p></body></html>`)
	}
	return nil
}

// WithMainPart returns a document of Office Open XML whose main part has another
// name, such as "word/document22.xml". The list of its relationships is renamed
// too.
func WithMainPart(t testing.TB, f *fileops.File, name string) *fileops.File {
	t.Helper()
	old := map[format.Format]string{format.DOCX: "word/document.xml", format.XLSX: "xl/workbook.xml", format.PPTX: "ppt/presentation.xml"}[f.Format()]
	relations := func(part string) string { return path.Join(path.Dir(part), "_rels", path.Base(part)+".rels") }
	z, err := zip.NewReader(f.Reader(), f.Size())
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for _, e := range z.File {
		r, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		to := e.Name
		switch to {
		case old:
			to = name
		case relations(old):
			to = relations(name)
		case "[Content_Types].xml", "_rels/.rels":
			content = bytes.ReplaceAll(content, []byte(old), []byte(name))
		}
		pairs = append(pairs, to, string(content))
	}
	var b bytes.Buffer
	if err := writeZIP(&b, pairs...); err != nil {
		t.Fatal(err)
	}
	return fileops.Bytes(f.Name(), b.Bytes())
}

func contentTypes(partAndType ...string) string {
	s := xmlHead + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>`
	for i := 0; i < len(partAndType); i += 2 {
		s += fmt.Sprintf(`<Override PartName="%s" ContentType="%s"/>`, partAndType[i], partAndType[i+1])
	}
	return s + `</Types>`
}

func rels(kindAndTarget ...string) string {
	s := xmlHead + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	for i := 0; i < len(kindAndTarget); i += 2 {
		s += fmt.Sprintf(`<Relationship Id="rId%d" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/>`, i/2+1, kindAndTarget[i], kindAndTarget[i+1])
	}
	return s + `</Relationships>`
}

// writePPTX writes a presentation. Each slide is given as its shapes, which may
// refer to a PNG picture as rId2. picture may be nil.
func writePPTX(b *bytes.Buffer, picture []byte, slides ...string) error {
	const (
		ns   = `xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"`
		tree = `<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>`
		main = "application/vnd.openxmlformats-officedocument.presentationml."
	)
	theme := xmlHead + `<a:theme xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" name="T"><a:themeElements><a:clrScheme name="c">`
	for _, c := range [][2]string{{"dk1", "000000"}, {"lt1", "FFFFFF"}, {"dk2", "333333"}, {"lt2", "EEEEEE"}, {"accent1", "4472C4"}, {"accent2", "ED7D31"}, {"accent3", "A5A5A5"}, {"accent4", "FFC000"}, {"accent5", "5B9BD5"}, {"accent6", "70AD47"}, {"hlink", "0563C1"}, {"folHlink", "954F72"}} {
		theme += fmt.Sprintf(`<a:%s><a:srgbClr val="%s"/></a:%s>`, c[0], c[1], c[0])
	}
	font := `<a:latin typeface="Liberation Sans"/><a:ea typeface=""/><a:cs typeface=""/>`
	fill := `<a:solidFill><a:schemeClr val="phClr"/></a:solidFill>`
	theme += `</a:clrScheme><a:fontScheme name="f"><a:majorFont>` + font + `</a:majorFont><a:minorFont>` + font + `</a:minorFont></a:fontScheme><a:fmtScheme name="s"><a:fillStyleLst>` + fill + fill + fill +
		`</a:fillStyleLst><a:lnStyleLst><a:ln>` + fill + `</a:ln><a:ln>` + fill + `</a:ln><a:ln>` + fill + `</a:ln></a:lnStyleLst><a:effectStyleLst><a:effectStyle><a:effectLst/></a:effectStyle><a:effectStyle><a:effectLst/></a:effectStyle><a:effectStyle><a:effectLst/></a:effectStyle></a:effectStyleLst><a:bgFillStyleLst>` + fill + fill + fill + `</a:bgFillStyleLst></a:fmtScheme></a:themeElements></a:theme>`
	types := []string{"/ppt/presentation.xml", main + "presentation.main+xml",
		"/ppt/slideLayouts/slideLayout1.xml", main + "slideLayout+xml", "/ppt/slideMasters/slideMaster1.xml", main + "slideMaster+xml",
		"/ppt/theme/theme1.xml", "application/vnd.openxmlformats-officedocument.theme+xml"}
	presRels := []string{"slideMaster", "slideMasters/slideMaster1.xml"}
	var parts []string
	list := ""
	for i, shapes := range slides {
		name := fmt.Sprintf("slides/slide%d.xml", i+1)
		types = append(types, "/ppt/"+name, main+"slide+xml")
		presRels = append(presRels, "slide", name)
		list += fmt.Sprintf(`<p:sldId id="%d" r:id="rId%d"/>`, 256+i, 2+i)
		slideRels := []string{"slideLayout", "../slideLayouts/slideLayout1.xml"}
		if picture != nil {
			slideRels = append(slideRels, "image", "../media/image1.png")
		}
		parts = append(parts,
			"ppt/"+name, xmlHead+`<p:sld `+ns+`><p:cSld><p:spTree>`+tree+shapes+`</p:spTree></p:cSld></p:sld>`,
			fmt.Sprintf("ppt/slides/_rels/slide%d.xml.rels", i+1), rels(slideRels...))
	}
	if picture != nil {
		parts = append(parts, "ppt/media/image1.png", string(picture))
	}
	return writeZIP(b, append([]string{
		"[Content_Types].xml", strings.Replace(contentTypes(types...), `<Override`, `<Default Extension="png" ContentType="image/png"/><Override`, 1),
		"_rels/.rels", rels("officeDocument", "ppt/presentation.xml"),
		"ppt/presentation.xml", xmlHead + `<p:presentation ` + ns + `><p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="rId1"/></p:sldMasterIdLst><p:sldIdLst>` + list + `</p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/><p:notesSz cx="6858000" cy="9144000"/></p:presentation>`,
		"ppt/_rels/presentation.xml.rels", rels(presRels...),
		"ppt/slideLayouts/slideLayout1.xml", xmlHead + `<p:sldLayout ` + ns + `><p:cSld><p:spTree>` + tree + `</p:spTree></p:cSld></p:sldLayout>`,
		"ppt/slideLayouts/_rels/slideLayout1.xml.rels", rels("slideMaster", "../slideMasters/slideMaster1.xml"),
		"ppt/slideMasters/slideMaster1.xml", xmlHead + `<p:sldMaster ` + ns + `><p:cSld><p:spTree>` + tree + `</p:spTree></p:cSld><p:clrMap bg1="lt1" tx1="dk1" bg2="lt2" tx2="dk2" accent1="accent1" accent2="accent2" accent3="accent3" accent4="accent4" accent5="accent5" accent6="accent6" hlink="hlink" folHlink="folHlink"/><p:sldLayoutIdLst><p:sldLayoutId id="2147483649" r:id="rId1"/></p:sldLayoutIdLst></p:sldMaster>`,
		"ppt/slideMasters/_rels/slideMaster1.xml.rels", rels("slideLayout", "../slideLayouts/slideLayout1.xml", "theme", "../theme/theme1.xml"),
		"ppt/theme/theme1.xml", theme,
	}, parts...)...)
}

const (
	odfNS = `xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.3"`

	odfSheet = `<office:spreadsheet><table:table table:name="Fruit"><table:table-row><table:table-cell office:value-type="string"><text:p>Äpfel</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="3"><text:p>3</text:p></table:table-cell></table:table-row>` +
		`<table:table-row><table:table-cell office:value-type="string"><text:p>` + Text + `</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>`

	odfSlide = `<office:presentation><draw:page draw:name="one"><draw:frame svg:x="2cm" svg:y="2cm" svg:width="20cm" svg:height="3cm"><draw:text-box><text:p>` + Text + `</text:p></draw:text-box></draw:frame></draw:page></office:presentation>`
)

func writeODF(b *bytes.Buffer, kind, body string) error {
	mime := "application/vnd.oasis.opendocument." + kind
	return writeZIP(b,
		"mimetype", mime,
		"META-INF/manifest.xml", xmlHead+`<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.3"><manifest:file-entry manifest:full-path="/" manifest:media-type="`+mime+`"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>`,
		"content.xml", xmlHead+`<office:document-content `+odfNS+`><office:body>`+body+`</office:body></office:document-content>`)
}

func writeFlat(b *bytes.Buffer, kind, body string) {
	fmt.Fprintf(b, `%s<office:document %s office:mimetype="application/vnd.oasis.opendocument.%s"><office:body>%s</office:body></office:document>`, xmlHead, odfNS, kind, body)
}
