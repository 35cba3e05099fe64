package officetext_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/officetext"
	"github.com/filewright/filewright/internal/systest"
)

// archive is a ZIP archive of parts, given as names and texts.
func archive(t testing.TB, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		w, err := z.Create(parts[i])
		systest.NoError(t, err)
		if _, err := io.WriteString(w, parts[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	systest.NoError(t, z.Close())
	return b.Bytes()
}

// ole is a compound file of streams, given as names and contents.
func ole(t testing.TB, streams ...string) []byte {
	t.Helper()
	var nodes []*compound.Node
	for i := 0; i < len(streams); i += 2 {
		s := streams[i+1]
		nodes = append(nodes, &compound.Node{Name: streams[i], Size: int64(len(s)), Content: func(w io.Writer) error { _, err := io.WriteString(w, s); return err }})
	}
	var b bytes.Buffer
	systest.NoError(t, compound.Write(&b, nodes))
	return b.Bytes()
}

func le16(n int) string { return string(binary.LittleEndian.AppendUint16(nil, uint16(n))) }
func le32(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

func wide(s string) (out string) {
	for _, u := range utf16.Encode([]rune(s)) {
		out += le16(int(u))
	}
	return out
}

// xlsx is a workbook with two sheets; the second is hidden.
func xlsx(t testing.TB, name, sheet string) []byte {
	const relation = `<Relationship Id="r%d" Target="%s"/>`
	return archive(t,
		"xl/workbook.xml", `<workbook><sheets><sheet name="A" r:id="r1"/><sheet name="B" state="hidden" r:id="r2"/></sheets><definedNames>`+name+`</definedNames></workbook>`,
		"xl/_rels/workbook.xml.rels", `<Relationships>`+fmt.Sprintf(relation, 1, "worksheets/one.xml")+fmt.Sprintf(relation, 2, "/xl/worksheets/two.xml")+`</Relationships>`,
		"xl/sharedStrings.xml", `<sst><si><t>alpha &amp; co</t><rPh><t>hint</t></rPh></si><si><r><t>be</t></r><r><t>ta</t></r></si></sst>`,
		"xl/styles.xml", `<styleSheet><numFmts><numFmt numFmtId="170" formatCode=";;;"/></numFmts><cellStyleXfs><xf/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="170"/></cellXfs></styleSheet>`,
		"xl/worksheets/one.xml", `<worksheet>`+sheet+`</worksheet>`,
		"xl/worksheets/two.xml", `<worksheet><sheetData><row><c t="inlineStr"><is><t>secret</t></is></c></row></sheetData></worksheet>`)
}

// biff is a record of a workbook.
func biff(kind int, data string) string { return le16(kind) + le16(len(data)) + data }

// xls is a workbook whose table of strings is in two records. The second string goes on
// in the second record, with wider characters.
func xls(t testing.TB, globals, sheet string) []byte {
	bof := biff(0x809, le16(0x600)+le16(5)+strings.Repeat("\x00", 12))
	table := biff(0xfc, le32(2)+le32(2)+le16(5)+"\x00alpha"+le16(8)+"\x00beta") + biff(0x3c, "\x01"+wide("гамм"))
	end := biff(0x0a, "")
	entry := func(start int) string { return biff(0x85, le32(start)+le16(0)+"\x01\x00A") }
	cells := biff(0xfd, le16(0)+le16(0)+le16(0)+le32(0)) + biff(0xfd, le16(1)+le16(1)+le16(0)+le32(1)) + biff(0x203, le16(2)+le16(0)+le16(0)+"12345678")
	start := len(bof + entry(0) + table + globals + end)
	return ole(t, "Workbook", bof+entry(start)+table+globals+end+bof+sheet+cells+end+string(make([]byte, 4096)))
}

// doc is a document whose text is in two pieces, the second with one byte for each
// character. The bytes from hiddenFrom to hiddenTo of the stream are hidden.
func doc(t testing.TB, first, second string, hidden ...int) []byte {
	fib := make([]byte, 1024)
	le := binary.LittleEndian
	le.PutUint16(fib, 0xa5ec)
	le.PutUint16(fib[2:], 0xc1)
	fib[11] = 2 // 1Table
	le.PutUint32(fib[0x4c:], uint32(len(first)+len(second)))
	clx := le32(0) + le32(len(first)) + le32(len(first)+len(second)) +
		le16(0) + le32(1024) + le16(0) + le16(0) + le32(2*(1024+2*len(first))|1<<30) + le16(0)
	clx = "\x02" + le32(len(clx)) + clx
	le.PutUint32(fib[0x1a2:], 0)
	le.PutUint32(fib[0x1a6:], uint32(len(clx)))
	body := string(fib) + wide(first) + second
	body += strings.Repeat("\x00", -len(body)&511)
	table := clx
	if len(hidden) == 2 {
		page := make([]byte, 512)
		le.PutUint32(page, uint32(1024+hidden[0]))
		le.PutUint32(page[4:], uint32(1024+hidden[1]))
		page[8] = 100                                    // the properties are at 200
		copy(page[200:], "\x06\x35\x08\x01\x3c\x08\x01") // bold, hidden
		page[511] = 1
		bin := le32(1024) + le32(4096) + le32(len(body)/512)
		le.PutUint32(fib[0xfa:], uint32(len(table)))
		le.PutUint32(fib[0xfe:], uint32(len(bin)))
		table += bin
		body = string(fib) + body[1024:] + string(page)
	}
	return ole(t, "WordDocument", body+string(make([]byte, 4096)), "1Table", table)
}

// ppt is a presentation with one slide and the remains of an older one.
func ppt(t testing.TB, flags int) []byte {
	atom := func(kind int, data string) string { return le16(0) + le16(kind) + le32(len(data)) + data }
	box := func(kind, instance int, data string) string {
		return le16(instance<<4|15) + le16(kind) + le32(len(data)) + data
	}
	old := box(0x3ee, 0, atom(0xfa8, "older"))
	slide := box(0x3ee, 0, atom(0x3f9, string(make([]byte, 10))+le16(flags)+le32(0))+box(0xf00d, 0, atom(0xfa0, wide("über"))))
	document := box(0x3e8, 0, box(0xff0, 1, atom(0xfa8, "master"))+box(0xff0, 0, atom(0x3f3, le32(2)+string(make([]byte, 16)))+atom(0xfa8, "title"))+box(0xff0, 2, atom(0xfa8, "notes")))
	body := old + slide + document
	directory := atom(0x1772, le32(1|2<<20)+le32(len(old)+len(slide))+le32(len(old)))
	edit := atom(0xff5, le32(0)+le32(0)+le32(0)+le32(len(body))+le32(1)+string(make([]byte, 12)))
	user := atom(0xff6, le32(20)+le32(0xe391c05f-1<<32)+le32(len(body)+len(directory))+string(make([]byte, 8)))
	return ole(t, "PowerPoint Document", body+directory+edit+string(make([]byte, 4096)), "Current User", user)
}

func ods(attributes, rows string) string {
	return `<office:document-content><style:style style:name="gone"><style:table-properties table:display="false"/></style:style><office:body><office:spreadsheet><table:table ` + attributes + `>` + rows + `</table:table></office:spreadsheet></office:body></office:document-content>`
}

func TestCertain(t *testing.T) {
	t.Parallel()
	const cellsXML = `<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1"><v>7</v></c></row><row r="2"%s><c r="A2" t="inlineStr"><is><t>gamma</t></is></c></row></sheetData>%s`
	const odsRow = `<table:table-row><table:table-cell office:value-type="string"><text:p>alpha<office:annotation><text:p>remark</text:p></office:annotation></text:p></table:table-cell><table:table-cell office:value-type="float"><text:p>7</text:p></table:table-cell></table:table-row>`
	const rtf = `{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\*\generator Writer;}{\header top}alpha\par be\u1090\'3fta {\v hidden} \{x\} {\field{\*\fldinst HYPERLINK "u"}{\fldrslt link}}{\pict\bin4 {}{}00ff}end}`
	for name, tt := range map[string]struct {
		f    format.Format
		b    []byte
		want string // words
		n    int
	}{
		"xlsx":             {format.XLSX, xlsx(t, "", fmt.Sprintf(cellsXML, "", "")), "alpha & co beta gamma", 1},
		"xlsx rows":        {format.XLSX, xlsx(t, "", fmt.Sprintf(cellsXML, ` hidden="1"`, "")), "alpha & co beta", 1},
		"xlsx columns":     {format.XLSX, xlsx(t, "", `<cols><col min="2" max="3" hidden="1"/></cols>`+fmt.Sprintf(cellsXML, "", "")), "alpha & co gamma", 0},
		"xlsx print range": {format.XLSX, xlsx(t, `<definedName name="_xlnm.Print_Area" localSheetId="0">'A'!$B$1:$C$1,A!$A$2</definedName>`, fmt.Sprintf(cellsXML, "", "")), "beta gamma", 1},
		"xlsx odd range":   {format.XLSX, xlsx(t, `<definedName name="_xlnm.Print_Area" localSheetId="0">OFFSET(A!$A$1,0,0)</definedName>`, fmt.Sprintf(cellsXML, "", "")), "", 0},
		"xlsx merged":      {format.XLSX, xlsx(t, "", fmt.Sprintf(cellsXML, "", `<mergeCells><mergeCell ref="A1:B2"/></mergeCells>`)), "alpha & co", 1},
		"xlsx blank":       {format.XLSX, xlsx(t, "", `<sheetData><row><c s="1" t="s"><v>0</v></c><c s="1"><v>1</v></c></row></sheetData>`), "", 0},
		"xlsx formula":     {format.XLSX, xlsx(t, "", `<sheetData><row><c t="str"><f>TODAY()</f><v>old</v></c></row></sheetData>`), "", 0},
		"ods":              {format.ODS, archive(t, "content.xml", ods(``, odsRow)), "alpha", 1},
		"ods hidden":       {format.ODS, archive(t, "content.xml", ods(`table:style-name="gone"`, odsRow)), "", 0},
		"ods row":          {format.ODS, archive(t, "content.xml", ods(``, strings.Replace(odsRow, "-row>", `-row table:visibility="filter">`, 1))), "", 0},
		"ods column":       {format.ODS, archive(t, "content.xml", ods(``, `<table:table-column/><table:table-column table:visibility="collapse"/>`+odsRow)), "alpha", 0},
		"ods print range":  {format.FODS, []byte(ods(`table:print-ranges="A.B1:A.C9"`, odsRow)), "", 1},
		"xls":              {format.XLS, xls(t, "", ""), "alpha betaгамм", 1},
		"xls row":          {format.XLS, xls(t, "", biff(0x208, le16(0)+string(make([]byte, 4))+le16(200)+le32(0)+"\x20\x00\x00\x00")), "betaгамм", 1},
		"xls column":       {format.XLS, xls(t, "", biff(0x7d, le16(0)+le16(0)+le16(9)+le16(0)+le16(1)+le16(0))), "betaгамм", 0},
		"xls print range":  {format.XLS, xls(t, biff(0x18, "\x20\x00\x00\x01"+string(make([]byte, 11))+"\x06"), ""), "", 0},
		"doc":              {format.DOC, doc(t, "alpha \x13 DATE \x14today\x15 ", "b\xe9ta"), "alpha today béta", 0},
		"doc hidden":       {format.DOC, doc(t, "alpha omega ", "beta", 2*6, 2*12), "alpha beta", 0},
		"ppt":              {format.PPT, ppt(t, 0), "title über", 0},
		"ppt hidden":       {format.PPT, ppt(t, 4), "", 0},
		"rtf":              {format.RTF, []byte(rtf), "alpha beтta {x} linkend", 0},
		"rtf emoji":        {format.RTF, []byte(`{\rtf1\ansi a\u-10179?\u-8704? b}`), "a😀 b", 0},
		"csv":              {format.CSV, []byte("name,\"sum\",3.5\nalpha;2024-01-02;true\n"), "name sum alpha", 0},
		"utf-16":           {format.TXT, []byte("\xff\xfea\x00"), "", 0},
		"md":               {format.MD, []byte("# alpha [beta](http://x/y)\n\n```go\ncode\n```\n"), "# alpha [beta] code", 0},
		"html":             {format.HTML, []byte("<head><title>no</title><script>x</script></head><p>alpha &amp; beta</p><!-- no -->"), "alpha & beta", 0},
		"hidden html":      {format.HTML, []byte("<p style='display: none'>alpha</p>"), "", 0},
		"epub":             {format.EPUB, archive(t, "mimetype", "application/epub+zip", "a.xhtml", "<p>alpha</p>", "nav.xhtml", "<p>no</p>"), "alpha", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := officetext.Certain(t.Context(), bytes.NewReader(tt.b), int64(len(tt.b)), tt.f, false)
			text := strings.Join(strings.Fields(strings.ReplaceAll(got.Text, "\x00", " ")), " ")
			if text != tt.want || got.Numbers != tt.n {
				t.Errorf("got %q and %d numbers, want %q and %d", text, got.Numbers, tt.want, tt.n)
			}
			all, ok := officetext.Whole(t.Context(), bytes.NewReader(tt.b), int64(len(tt.b)), tt.f)
			if n, kept := officetext.Kept(got.Text, all); !ok && n > 0 || kept != n {
				t.Errorf("the whole text has %d of %d letters: %q", kept, n, all)
			}
		})
	}
}

func TestFirstSheet(t *testing.T) {
	t.Parallel()
	const table = `<table:table table:print-ranges="X.Z9"><table:table-row><table:table-cell office:value-type="string"><text:p>%s</text:p></table:table-cell></table:table-row></table:table>`
	b := []byte(fmt.Sprintf(table, "one") + fmt.Sprintf(table, "two"))
	if got := officetext.Certain(t.Context(), bytes.NewReader(b), int64(len(b)), format.FODS, true).Text; got != "one\x00" {
		t.Errorf("got %q", got)
	}
}

func TestKept(t *testing.T) {
	t.Parallel()
	if all, kept := officetext.Kept("Ångström ﬁ 12", "ANGSTROM FI 1"); all != 12 || kept != 11 {
		t.Errorf("kept %d of %d letters", kept, all)
	}
	// Cut-off cells count, others do not.
	if all, kept := officetext.KeptCells("Quantity of goods\x00Missing\x00数量合计\x00ab\x00שלום עולם", "QUAN tity o 数量"); all != 3 || kept != 2 {
		t.Errorf("kept %d of %d cells", kept, all)
	}
}

// A workbook keeps equal strings once.
func TestRepeated(t *testing.T) {
	t.Parallel()
	for f, b := range map[format.Format][]byte{
		format.XLSX: xlsx(t, "", `<sheetData>`+strings.Repeat(`<row><c t="s"><v>0</v></c></row>`, 6)+`</sheetData>`),
		format.ODS:  archive(t, "content.xml", ods("", `<table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="3" office:value-type="string"><text:p>alpha &amp; co</text:p></table:table-cell></table:table-row>`)),
	} {
		got, ok := officetext.Whole(t.Context(), bytes.NewReader(b), int64(len(b)), f)
		if all, kept := officetext.Kept(strings.Repeat("alpha co ", 6), got); !ok || kept != all {
			t.Errorf("%s: %d of %d letters", f, kept, all)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add(xls(f, "", ""), uint8(0))
	f.Add(doc(f, "alpha", "beta", 0, 4), uint8(1))
	f.Add(ppt(f, 0), uint8(2))
	f.Add([]byte(`{\rtf1 a\u1090\'3f{\v x}\bin2 {}}`), uint8(3))
	f.Add([]byte(ods("", "")), uint8(4))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		all := []format.Format{format.XLS, format.DOC, format.PPT, format.RTF, format.FODS, format.XLSX, format.ODS, format.HTML, format.MD, format.CSV, format.EPUB}
		kind := all[int(n)%len(all)]
		text := officetext.Certain(t.Context(), bytes.NewReader(b), int64(len(b)), kind, n > 128)
		whole, _ := officetext.Whole(t.Context(), bytes.NewReader(b), int64(len(b)), kind)
		officetext.Kept(text.Text, whole)
		officetext.KeptCells(text.Text, whole)
	})
}
