package officeops_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/officeops"
	"github.com/filewright/filewright/internal/systest"
)

// Texts of the fixtures. Every text document contains all words, every sheet and slide
// some of them.
const (
	sentence = fileopstest.Text
	latin    = "Äpfel"
	cjk      = "日本語"
	arabic   = "العربية"
	emoji    = "😀"
	cell     = "Zellwert"
	item     = "first item"
)

const head = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"

// office is the engine that most tests share, because LibreOffice starts more slowly
// than it converts.
var office *officeops.Engine

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if office, err = officeops.New(context.Background(), officeops.Options{Workers: 2, Sandbox: engine.NewSandbox()}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer office.Close()
		return m.Run()
	}())
}

func picture() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, fileopstest.Picture(64, 48)); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func zipOf(pairs ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		w, err := z.Create(pairs[i])
		if err == nil {
			_, err = io.WriteString(w, pairs[i+1])
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// docx is a document with headings, a list, a table, a picture, a header and a comment.
// body is appended.
func docx(body string) []byte {
	const (
		ns = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" ` +
			`xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"`
		main = "application/vnd.openxmlformats-officedocument.wordprocessingml."
		rel  = `<Relationship Id="%s" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/>`
		rels = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	)
	para := func(text string) string { return `<w:p><w:r><w:t xml:space="preserve">` + text + `</w:t></w:r></w:p>` }
	styled := func(style, text string) string {
		return `<w:p><w:pPr><w:pStyle w:val="` + style + `"/></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
	}
	bullet := func(text string) string {
		return `<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
	}
	td := func(text string) string {
		return `<w:tc><w:tcPr><w:tcW w:w="3000" w:type="dxa"/></w:tcPr>` + para(text) + `</w:tc>`
	}
	const drawing = `<w:p><w:r><w:drawing><wp:inline><wp:extent cx="609600" cy="457200"/><wp:docPr id="1" name="Picture" descr="A picture"/><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture">` +
		`<pic:pic><pic:nvPicPr><pic:cNvPr id="1" name="p.png"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:embed="rPic"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>` +
		`<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="609600" cy="457200"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>`
	over := func(part, kind string) string {
		return `<Override PartName="/word/` + part + `" ContentType="` + main + kind + `+xml"/>`
	}
	return zipOf(
		"[Content_Types].xml", head+`<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>`+
			`<Default Extension="xml" ContentType="application/xml"/><Default Extension="png" ContentType="image/png"/>`+
			over("document.xml", "document.main")+over("styles.xml", "styles")+over("numbering.xml", "numbering")+over("header1.xml", "header")+over("comments.xml", "comments")+`</Types>`,
		"_rels/.rels", head+rels+fmt.Sprintf(rel, "rId1", "officeDocument", "word/document.xml")+`</Relationships>`,
		"word/_rels/document.xml.rels", head+rels+fmt.Sprintf(rel, "rStyles", "styles", "styles.xml")+fmt.Sprintf(rel, "rNum", "numbering", "numbering.xml")+
			fmt.Sprintf(rel, "rHead", "header", "header1.xml")+fmt.Sprintf(rel, "rCom", "comments", "comments.xml")+fmt.Sprintf(rel, "rPic", "image", "media/p.png")+`</Relationships>`,
		"word/media/p.png", string(picture()),
		"word/styles.xml", head+`<w:styles `+ns+`><w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>`+
			`<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/><w:basedOn w:val="Normal"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:rPr><w:b/><w:sz w:val="36"/></w:rPr></w:style></w:styles>`,
		"word/numbering.xml", head+`<w:numbering `+ns+`><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="bullet"/><w:lvlText w:val="•"/><w:pPr><w:ind w:left="720" w:hanging="360"/></w:pPr></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>`,
		"word/header1.xml", head+`<w:hdr `+ns+`>`+para("Running header")+`</w:hdr>`,
		"word/comments.xml", head+`<w:comments `+ns+`><w:comment w:id="0" w:author="A" w:initials="A" w:date="2024-01-01T00:00:00Z">`+para("a remark")+`</w:comment></w:comments>`,
		"word/document.xml", head+`<w:document `+ns+`><w:body>`+styled("Heading1", "A sample")+
			`<w:p><w:commentRangeStart w:id="0"/><w:r><w:t>`+sentence+`</w:t></w:r><w:commentRangeEnd w:id="0"/><w:r><w:commentReference w:id="0"/></w:r></w:p>`+
			para(strings.Join([]string{latin, cjk, arabic, emoji}, " "))+bullet(item)+bullet("second item")+
			`<w:tbl><w:tblPr><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid><w:gridCol w:w="3000"/><w:gridCol w:w="3000"/></w:tblGrid><w:tr>`+td("Name")+td(cell)+`</w:tr></w:tbl>`+
			drawing+body+styled("Heading1", "Second part")+para("The end.")+
			`<w:sectPr><w:headerReference w:type="default" r:id="rHead"/><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="600" w:footer="600" w:gutter="0"/></w:sectPr></w:body></w:document>`)
}

// pages is a body of n pages.
func pages(n int) string {
	return strings.Repeat(`<w:p><w:r><w:t>`+strings.Repeat(sentence+" ", 20)+`</w:t></w:r><w:r><w:br w:type="page"/></w:r></w:p>`, n)
}

func dataURL() string { return "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture()) }

func htmlPage() string {
	return `<!DOCTYPE html><html><head><meta charset="utf-8"><title>A sample</title></head><body><h1>A sample</h1><p>` + sentence + `</p><p>` +
		strings.Join([]string{latin, cjk, arabic, emoji}, " ") + `</p><ul><li>` + item + `</li><li>second item</li></ul><table border="1"><tr><td>Name</td><td>` + cell +
		`</td></tr></table><p><img src="` + dataURL() + `" alt="A picture"></p><h1>Second part</h1><p>The end.</p></body></html>`
}

func markdown() string {
	return "# A sample\n\n" + sentence + "\n\n" + strings.Join([]string{latin, cjk, arabic, emoji}, " ") + "\n- " + item + "\n- second item\n\n| Name | Value |\n|---|---|\n| Name | " +
		cell + " |\n\n```go\nfunc main() {}\n```\n\n![A picture](" + dataURL() + ")\n\n# Second part\n\nThe end.\n"
}

// xlsx has two sheets, of which the second is active, and a wide one.
func xlsx() []byte {
	const (
		ns   = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
		main = "application/vnd.openxmlformats-officedocument.spreadsheetml."
		rel  = `<Relationship Id="rId%d" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/>`
		rels = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	)
	str := func(ref, v string) string { return `<c r="` + ref + `" t="inlineStr"><is><t>` + v + `</t></is></c>` }
	wide := ""
	for c := 'A'; c <= 'R'; c++ {
		wide += str(fmt.Sprintf("%c4", c), fmt.Sprintf("col-%c", c))
	}
	sheet := func(selected, rows string) string {
		return head + `<worksheet ` + ns + `><sheetViews><sheetView workbookViewId="0"` + selected + `/></sheetViews><sheetData>` + rows + `</sheetData></worksheet>`
	}
	return zipOf(
		"[Content_Types].xml", head+`<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>`+
			`<Override PartName="/xl/workbook.xml" ContentType="`+main+`sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="`+main+`worksheet+xml"/><Override PartName="/xl/worksheets/sheet2.xml" ContentType="`+main+`worksheet+xml"/></Types>`,
		"_rels/.rels", head+rels+fmt.Sprintf(rel, 1, "officeDocument", "xl/workbook.xml")+`</Relationships>`,
		"xl/workbook.xml", head+`<workbook `+ns+` xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><bookViews><workbookView activeTab="1"/></bookViews><sheets><sheet name="Fruit" sheetId="1" r:id="rId1"/><sheet name="Other" sheetId="2" r:id="rId2"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", head+rels+fmt.Sprintf(rel, 1, "worksheet", "worksheets/sheet1.xml")+fmt.Sprintf(rel, 2, "worksheet", "worksheets/sheet2.xml")+`</Relationships>`,
		"xl/worksheets/sheet1.xml", sheet("", `<row r="1">`+str("A1", "name")+str("B1", "count")+`</row><row r="2">`+str("A2", latin+" "+cjk)+`<c r="B2"><v>3.5</v></c></row>`+
			`<row r="3">`+str("A3", cell+", &quot;quoted&quot;")+`<c r="B3"><f>B2*2</f><v>7</v></c></row><row r="4">`+wide+`</row>`),
		"xl/worksheets/sheet2.xml", sheet(` tabSelected="1"`, `<row r="1">`+str("A1", "on the second sheet")+`</row>`))
}

const csvText = "name;price;article;date;note\r\n" +
	latin + " " + cjk + ";3,50;007;2024-01-31;=1+1\r\n" +
	"Birnen;1.234,25;0012;2024-02-01;\"" + cell + "; \"\"quoted\"\"\"\r\n" +
	"Kirschen;-7;0100;2024-02-02;1/2\r\n"

// fixture returns a rich document of a format, made by code, or converted from such a
// document by the engine.
func fixture(t testing.TB, f format.Format) *fileops.File {
	t.Helper()
	switch f {
	case format.DOCX:
		return fileops.Bytes("Möglich & gut.docx", docx(""))
	case format.HTML:
		return fileops.Bytes("page.html", []byte(htmlPage()))
	case format.MD:
		return fileops.Bytes("read me.md", []byte(markdown()))
	case format.TXT:
		return fileops.Bytes("text.txt", []byte("A sample\n\n"+sentence+"\n"+strings.Join([]string{latin, cjk, arabic, emoji}, " ")+"\n\n  "+item+"\n"+cell+"\n\nSecond part\nThe end.\n"))
	case format.XLSX:
		return fileops.Bytes("table.xlsx", xlsx())
	case format.CSV:
		return fileops.Bytes("table.csv", []byte(csvText))
	case format.TSV:
		return fileops.Bytes("table.tsv", []byte("name\tvalue\n"+latin+" "+cjk+"\t3.5\n"+cell+"\t7\n"))
	case format.ODT, format.DOC, format.RTF:
		return made(t, format.DOCX, f)
	case format.XLS, format.ODS:
		return made(t, format.XLSX, f)
	case format.EPUB:
		return made(t, format.HTML, f)
	case format.PPT, format.ODP:
		return made(t, format.PPTX, f)
	}
	return fileopstest.Sample(t, f)
}

var cache sync.Map // [2]format.Format → func() ([]byte, error)

func made(t testing.TB, from, to format.Format) *fileops.File {
	t.Helper()
	get, _ := cache.LoadOrStore([2]format.Format{from, to}, sync.OnceValues(func() ([]byte, error) {
		return convert(context.Background(), office, fixture(t, from), to)
	}))
	b, err := get.(func() ([]byte, error))()
	systest.NoError(t, err)
	return fileops.Bytes("made."+string(to), b)
}

// save writes a file for an external tool.
func save(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// tool runs a program and returns its standard output. The test fails if the program fails.
var tool = systest.Run

// rewritten returns an archive with its XML parts changed.
func rewritten(b []byte, change func(string) string) []byte {
	zr, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		panic(err)
	}
	var pairs []string
	for _, f := range zr.File {
		r, err := f.Open()
		if err != nil {
			panic(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			panic(err)
		}
		s := string(text)
		if strings.HasSuffix(f.Name, ".xml") {
			s = change(s)
		}
		pairs = append(pairs, f.Name, s)
	}
	return zipOf(pairs...)
}
