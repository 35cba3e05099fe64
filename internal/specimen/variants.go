package specimen

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
)

// mainTypes has the content types of the main parts of Office Open XML.
var mainTypes = map[format.Format]string{
	format.DOCX: "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
	format.DOTX: "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
	format.DOCM: "application/vnd.ms-word.document.macroEnabled.main+xml",
	format.DOTM: "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
	format.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
	format.XLTX: "application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml",
	format.XLSM: "application/vnd.ms-excel.sheet.macroEnabled.main+xml",
	format.XLTM: "application/vnd.ms-excel.template.macroEnabled.main+xml",
	format.PPTX: "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
	format.PPSX: "application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
	format.POTX: "application/vnd.openxmlformats-officedocument.presentationml.template.main+xml",
	format.PPTM: "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
	format.PPSM: "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
	format.POTM: "application/vnd.ms-powerpoint.template.macroEnabled.main+xml",
}

// variant makes a template, or a document with macros, of made(f.Plain()).
func variant(f format.Format, made func(format.Format) ([]byte, error)) ([]byte, error) {
	b, err := made(f.Plain())
	if err != nil {
		return nil, err
	}
	switch f {
	case format.XLT, format.POT, format.PPS: // only the extension says so
		return b, nil
	case format.DOT:
		return asDOT(b)
	}
	return retype(b, f)
}

// asDOT sets the flag of templates in a document of Word ([MS-DOC] 2.5.2, fDot).
func asDOT(b []byte) ([]byte, error) {
	b = bytes.Clone(b)
	for at := 512; at+12 < len(b); at += 64 {
		if b[at] == 0xec && b[at+1] == 0xa5 {
			b[at+10] |= 1
			return b, nil
		}
	}
	return nil, errors.New("no document of Word")
}

// retype changes the mark that says what a package is. A format for macros gets a module
// too.
func retype(b []byte, f format.Format) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	var pairs []string
	macros := strings.HasSuffix(string(f), "m")
	for _, e := range z.File {
		r, err := e.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		content := string(data)
		switch e.Name {
		case "[Content_Types].xml":
			content = strings.ReplaceAll(content, mainTypes[f.Plain()], mainTypes[f])
			if macros {
				content = strings.Replace(content, `<Override`, `<Default Extension="bin" ContentType="application/vnd.ms-office.vbaProject"/><Override`, 1)
			}
		case "mimetype", "META-INF/manifest.xml":
			content = strings.ReplaceAll(content, f.Plain().MIME(), f.MIME())
		case "word/_rels/document.xml.rels", "xl/_rels/workbook.xml.rels", "ppt/_rels/presentation.xml.rels":
			if macros {
				content = strings.Replace(content, `</Relationships>`, `<Relationship Id="rIdMacros" Type="http://schemas.microsoft.com/office/2006/relationships/vbaProject" Target="vbaProject.bin"/></Relationships>`, 1)
			}
		}
		pairs = append(pairs, e.Name, content)
	}
	if macros {
		dir := map[format.Format]string{format.DOCX: "word", format.XLSX: "xl", format.PPTX: "ppt"}[f.Plain()]
		if f.Plain() == format.DOCX && !strings.Contains(strings.Join(pairs, "\n"), "rIdMacros") {
			pairs = append(pairs, "word/_rels/document.xml.rels", xmlHead+`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rIdMacros" Type="http://schemas.microsoft.com/office/2006/relationships/vbaProject" Target="vbaProject.bin"/></Relationships>`)
		}
		project, err := compoundFile(stored("PROJECT", []byte("ID=\"{00000000-0000-0000-0000-000000000000}\"\r\nModule=Module1\r\n")))
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, dir+"/vbaProject.bin", string(project))
	}
	var out bytes.Buffer
	err = writeZIP(&out, pairs...)
	return out.Bytes(), err
}

// stored returns a stream of a compound file.
func stored(name string, data []byte) *compound.Node {
	return &compound.Node{Name: name, Size: int64(len(data)), Content: func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}}
}

func compoundFile(nodes ...*compound.Node) ([]byte, error) {
	var b bytes.Buffer
	err := compound.Write(&b, nodes)
	return b.Bytes(), err
}

// writeXLSB writes the table of the sheets as a binary workbook ([MS-XLSB]).
func writeXLSB(b *bytes.Buffer) error {
	le := binary.LittleEndian
	record := func(out []byte, kind int, data []byte) []byte {
		out = append(out, byte(kind))
		if kind >= 0x80 {
			out = append(out, byte(kind>>8)) // already with the bit of the first byte
		}
		n := len(data)
		for n >= 0x80 {
			out = append(out, byte(n)|0x80)
			n >>= 7
		}
		return append(append(out, byte(n)), data...)
	}
	long := func(n int) int { return n&0x7f | 0x80 | n>>7<<8 } // a number of a record from 128 on
	text := func(s string) []byte {
		u := utf16.Encode([]rune(s))
		out := le.AppendUint32(nil, uint32(len(u)))
		for _, c := range u {
			out = le.AppendUint16(out, c)
		}
		return out
	}
	sheet := record(nil, long(129), nil)
	sheet = record(sheet, long(145), nil)
	for y, row := range tableRows() {
		head := le.AppendUint32(nil, uint32(y))
		head = le.AppendUint32(head, 0)
		head = le.AppendUint16(head, 300)
		head = append(head, 0, 0, 0)
		head = le.AppendUint32(head, 1)
		head = le.AppendUint32(head, 0)
		head = le.AppendUint32(head, uint32(len(row)-1))
		sheet = record(sheet, 0, head)
		for x, c := range row {
			cell := le.AppendUint32(le.AppendUint32(nil, uint32(x)), 0)
			var number float64
			if _, err := fmt.Sscanf(c, "%g", &number); err == nil && y > 0 {
				sheet = record(sheet, 5, le.AppendUint64(cell, math.Float64bits(number)))
			} else {
				sheet = record(sheet, 6, append(cell, text(c)...))
			}
		}
	}
	sheet = record(record(sheet, long(146), nil), long(130), nil)
	bundle := le.AppendUint32(le.AppendUint32(nil, 0), 1)
	bundle = append(append(bundle, text("rId1")...), text("Fruit")...)
	book := record(nil, long(131), nil)
	book = record(record(record(book, long(143), nil), long(156), bundle), long(144), nil)
	book = record(book, long(132), nil)
	return writeZIP(b,
		"[Content_Types].xml", strings.Replace(contentTypes("/xl/workbook.bin", "application/vnd.ms-excel.sheet.binary.macroEnabled.main",
			"/xl/worksheets/sheet1.bin", "application/vnd.ms-excel.worksheet"), `<Override`, `<Default Extension="bin" ContentType="application/vnd.ms-excel.sheet.binary.macroEnabled.main"/><Override`, 1),
		"_rels/.rels", rels("officeDocument", "xl/workbook.bin"),
		"xl/workbook.bin", string(book),
		"xl/_rels/workbook.bin.rels", rels("worksheet", "worksheets/sheet1.bin"),
		"xl/worksheets/sheet1.bin", string(sheet))
}

// drawingLines are the lines of text of a drawing.
func drawingLines() []string {
	return []string{Heading, Text, Scripts, "Fruit Count", "Apple 3", "Pear 4"}
}

// writeODG writes a drawing of one page.
func writeODG(b *bytes.Buffer) error {
	body := `<office:drawing><draw:page draw:name="one">`
	for i, line := range drawingLines() {
		body += fmt.Sprintf(`<draw:frame svg:x="2cm" svg:y="%dcm" svg:width="16cm" svg:height="1.5cm"><draw:text-box><text:p>%s</text:p></draw:text-box></draw:frame>`, 2+2*i, line)
	}
	body += `<draw:frame svg:x="2cm" svg:y="15cm" svg:width="8cm" svg:height="6cm">` + odfHref + `</draw:frame></draw:page></office:drawing>`
	return writeODFWith(b, "graphics", body, true)
}

// writeVSDX writes a drawing of one page ([MS-VSDX]). Lengths are inches from the bottom
// left corner.
func writeVSDX(b *bytes.Buffer) error {
	const (
		ns       = `xmlns="http://schemas.microsoft.com/office/visio/2012/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
		relation = "http://schemas.microsoft.com/visio/2010/relationships/"
		kind     = "application/vnd.ms-visio."
	)
	related := func(name, target string) string {
		return xmlHead + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="` + relation + name + `" Target="` + target + `"/></Relationships>`
	}
	shapes := ""
	for i, line := range drawingLines() {
		shapes += fmt.Sprintf(`<Shape ID="%d" Type="Shape"><Cell N="PinX" V="4"/><Cell N="PinY" V="%d"/><Cell N="Width" V="7"/><Cell N="Height" V="0.8"/><Cell N="LocPinX" V="3.5"/><Cell N="LocPinY" V="0.4"/>`+
			`<Section N="Geometry" IX="0"><Row T="MoveTo" IX="1"><Cell N="X" V="0"/><Cell N="Y" V="0"/></Row><Row T="LineTo" IX="2"><Cell N="X" V="7"/><Cell N="Y" V="0"/></Row></Section><Text>%s</Text></Shape>`, i+1, 10-i, line)
	}
	return writeZIP(b,
		"[Content_Types].xml", contentTypes("/visio/document.xml", kind+"drawing.main+xml", "/visio/pages/pages.xml", kind+"pages+xml", "/visio/pages/page1.xml", kind+"page+xml"),
		"_rels/.rels", related("document", "visio/document.xml"),
		"visio/document.xml", xmlHead+`<VisioDocument `+ns+`/>`,
		"visio/_rels/document.xml.rels", related("pages", "pages/pages.xml"),
		"visio/pages/pages.xml", xmlHead+`<Pages `+ns+`><Page ID="0" Name="one"><PageSheet><Cell N="PageWidth" V="8.27"/><Cell N="PageHeight" V="11.69"/></PageSheet><Rel r:id="rId1"/></Page></Pages>`,
		"visio/pages/_rels/pages.xml.rels", related("page", "page1.xml"),
		"visio/pages/page1.xml", xmlHead+`<PageContents `+ns+`><Shapes>`+shapes+`</Shapes></PageContents>`)
}

// writeMarkup writes a document in one of the languages that only pandoc reads.
func writeMarkup(b *bytes.Buffer, f format.Format) {
	switch f {
	case format.RST:
		fmt.Fprintf(b, "%s\n=================\n\n%s\n\n%s\n\n===== =====\nFruit Count\n===== =====\nApple 3\nPear  4\n===== =====\n", Heading, Text, Scripts)
	case format.Org:
		fmt.Fprintf(b, "* %s\n\n%s\n\n%s\n\n| Fruit | Count |\n|-------+-------|\n| Apple | 3 |\n| Pear | 4 |\n", Heading, Text, Scripts)
	case format.TeX:
		fmt.Fprintf(b, "\\documentclass{article}\n\\begin{document}\n\\section{%s}\n\n%s\n\n%s\n\n\\begin{tabular}{ll}\nFruit & Count \\\\\nApple & 3 \\\\\nPear & 4 \\\\\n\\end{tabular}\n\\end{document}\n", Heading, Text, Scripts)
	case format.FB2:
		fmt.Fprintf(b, `<?xml version="1.0" encoding="UTF-8"?>
<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0" xmlns:l="http://www.w3.org/1999/xlink"><description><title-info><genre>sf</genre><author><first-name>Ada</first-name><last-name>Lovelace</last-name></author><book-title>%[1]s</book-title><lang>en</lang></title-info><document-info><author><nickname>a</nickname></author><date>2026</date><id>1</id><version>1</version></document-info></description>
<body><section><title><p>%[1]s</p></title><p>%[2]s</p><p>%[3]s</p><p>Fruit Count</p><p>Apple 3</p><p>Pear 4</p><image l:href="#p.png"/></section></body><binary id="p.png" content-type="image/png">%[4]s</binary></FictionBook>
`, Heading, Text, Scripts, base64PNG())
	}
}
