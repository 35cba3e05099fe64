package officeops_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// bytesOf returns the content of a fixture.
func bytesOf(t testing.TB, f *fileops.File) []byte {
	t.Helper()
	b, ok := f.Bytes()
	if !ok {
		t.Fatal("fixture is not in memory")
	}
	return bytes.Clone(b)
}

// A damaged document fails, although LibreOffice would repair it.
func TestDamaged(t *testing.T) {
	for _, f := range []format.Format{
		format.DOCX, format.DOC, format.ODT, format.FODT, format.RTF, format.EPUB, format.PPTX, format.PPT, format.ODP, format.FODP,
		format.XLSX, format.XLS, format.ODS, format.FODS,
	} {
		good := bytesOf(t, fixture(t, f))
		flipped := bytes.Clone(good)
		copy(flipped[len(flipped)/2:], "this was not here before, and it does not belong here")
		cases := map[string][]byte{
			"half":         good[:len(good)/2],
			"nine tenths":  good[:len(good)*9/10],
			"one and half": good[:len(good)/2+1],
		}
		switch f {
		case format.DOC, format.XLS, format.PPT, format.RTF, format.FODT, format.FODP, format.FODS: // no checksums
		default:
			cases["overwritten"] = flipped
		}
		for name, b := range cases {
			t.Run(string(f)+" "+name, func(t *testing.T) {
				_, err := convert(t.Context(), office, fileops.Bytes("x."+string(f), b), format.PDF)
				if !errors.Is(err, fileops.ErrCorruptInput) && !errors.Is(err, fileops.ErrFormatMismatch) {
					t.Errorf("got %v, want ErrCorruptInput", err)
				}
			})
		}
	}
}

// A valid container with invalid content.
func TestNonsense(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]*fileops.File{
		"docx": fileops.Bytes("a.docx", zipOf("[Content_Types].xml", "<Types/>", "word/document.xml", "not XML")),
		"xlsx": fileops.Bytes("a.xlsx", zipOf("xl/workbook.xml", "not XML")),
		"pptx": fileops.Bytes("a.pptx", zipOf("ppt/presentation.xml", "not XML")),
		"odt":  fileops.Bytes("a.odt", zipOf("mimetype", format.ODT.MIME(), "content.xml", "<a>")),
		"epub": fileops.Bytes("a.epub", zipOf("mimetype", format.EPUB.MIME(), "META-INF/container.xml", "<a>")),
	} {
		_, err := convert(t.Context(), office, in, format.PDF)
		if !errors.Is(err, fileops.ErrCorruptInput) && !errors.Is(err, fileops.ErrFormatMismatch) {
			t.Errorf("%s: got %v, want ErrCorruptInput", name, err)
		}
	}
}

// withPassword stores a document with a password, using LibreOffice.
func withPassword(t *testing.T, f format.Format, filter string) *fileops.File {
	t.Helper()
	from := map[format.Family]format.Format{format.Document: format.DOCX, format.Sheet: format.XLSX, format.Slides: format.PPTX}[f.Family()]
	dir := t.TempDir()
	in := filepath.Join(dir, "in."+string(from))
	systest.NoError(t, os.WriteFile(in, bytesOf(t, fixture(t, from)), 0o600))
	out := filepath.Join(dir, "out."+string(f))
	script := `
import subprocess, sys, time, uno
from com.sun.star.beans import PropertyValue
dir, src, dst, name = sys.argv[1:]
pipe = "test-" + dir.replace("/", "")[-40:]
office = subprocess.Popen(["soffice", "-env:UserInstallation=file://" + dir + "/profile", "--headless", "--norestore", "--accept=pipe,name=" + pipe + ";urp;"])
local = uno.getComponentContext()
resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
for i in range(3000):
    try:
        ctx = resolver.resolve("uno:pipe,name=" + pipe + ";urp;StarOffice.ComponentContext")
        break
    except Exception:
        time.sleep(0.05)
desktop = ctx.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", ctx)
p = lambda **k: tuple(PropertyValue(Name=n, Value=v) for n, v in k.items())
doc = desktop.loadComponentFromURL("file://" + src, "_blank", 0, p(Hidden=True))
doc.storeToURL("file://" + dst, p(FilterName=name, Password="secret"))
doc.close(True)
try:
    desktop.terminate()
except Exception:
    pass
office.wait()
`
	tool(t, "/usr/bin/python3", "-c", script, dir, in, out, filter)
	b := systest.ReadFile(t, out)
	return fileops.Bytes("locked."+string(f), b)
}

func TestPassword(t *testing.T) {
	for f, filter := range map[format.Format]string{
		format.DOC: "MS Word 97", format.XLS: "MS Excel 97", format.ODT: "writer8", format.ODS: "calc8", format.ODP: "impress8",
	} {
		t.Run(string(f), func(t *testing.T) {
			in := withPassword(t, f, filter)
			if b := bytesOf(t, in); bytes.Contains(b, []byte("A sample")) {
				t.Fatal("the fixture is not encrypted")
			}
			_, err := convert(t.Context(), office, in, format.PDF)
			if !errors.Is(err, fileops.ErrPasswordRequired) {
				t.Errorf("got %v, want ErrPasswordRequired", err)
			}
		})
	}
	t.Run("ppt", func(t *testing.T) { // LibreOffice cannot write these: set the token of an encrypted one
		b := bytesOf(t, fixture(t, format.PPT))
		token := binary.LittleEndian.AppendUint32(nil, 0xe391c05f)
		if bytes.Count(b, token) != 1 {
			t.Fatalf("%d tokens", bytes.Count(b, token))
		}
		b = bytes.Replace(b, token, binary.LittleEndian.AppendUint32(nil, 0xf3d1c4df), 1)
		_, err := convert(t.Context(), office, fileops.Bytes("x.ppt", b), format.PDF)
		if !errors.Is(err, fileops.ErrPasswordRequired) {
			t.Errorf("got %v, want ErrPasswordRequired", err)
		}
	})
}

// Documents that expand without end or do not fit are refused.
func TestLimits(t *testing.T) {
	t.Parallel()
	bomb := zipOf("word/document.xml", strings.Repeat(" ", 64<<20))
	many := make([]string, 0, 30000)
	for i := range 10001 {
		many = append(many, fmt.Sprint("word/", i), "")
	}
	tall := strings.Repeat("1,2\n", 70000)
	for name, c := range map[string]struct {
		in *fileops.File
		to format.Format
	}{
		"ratio":     {fileops.Bytes("x.docx", bomb), format.PDF},
		"entries":   {fileops.Bytes("x.docx", zipOf(append(many, "word/document.xml", "<a/>")...)), format.PDF},
		"xls rows":  {fileops.Bytes("x.csv", []byte(tall)), format.XLS},
		"calc rows": {fileops.Bytes("x.csv", []byte(strings.Repeat("1\n", 1<<20+1))), format.XLSX},
	} {
		_, err := convert(t.Context(), office, c.in, c.to)
		if !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("%s: got %v, want ErrLimit", name, err)
		}
	}
	// From another sheet: LibreOffice would silently cut off the rows.
	ods, err := convert(t.Context(), office, fileops.Bytes("x.csv", []byte(tall)), format.ODS)
	systest.NoError(t, err)
	if _, err := convert(t.Context(), office, fileops.Bytes("x.ods", ods), format.XLS); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("xls rows of ods: got %v, want ErrLimit", err)
	}
	entities := `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "y">]><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" office:mimetype="application/vnd.oasis.opendocument.text"></office:document>`
	if _, err := convert(t.Context(), office, fileops.Bytes("x.fodt", []byte(entities)), format.PDF); !errors.Is(err, fileops.ErrUnsupportedInput) {
		t.Errorf("entities: got %v, want ErrUnsupportedInput", err)
	}
}

// Text in common encodings is decoded correctly.
func TestEncodings(t *testing.T) {
	t.Parallel()
	utf16le := func(s string) []byte {
		b := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(s)) {
			b = binary.LittleEndian.AppendUint16(b, u)
		}
		return b
	}
	in := func(e encoding.Encoding, s string) []byte {
		b, err := e.NewEncoder().Bytes([]byte(s))
		systest.NoError(t, err)
		return b
	}
	const (
		german   = "Schöne Grüße aus München, sagte Jürgen.\nDas kostet 5 Euro – “wirklich”.\n"
		french   = "Où est l'élève? À côté de la fenêtre, près du garçon.\n"
		nihongo  = "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。カタカナも。\n"
		zhongwen = "中华人民共和国是一个国家。\n我们今天去北京看朋友，天气很好。\n"
		hangul   = "안녕하세요. 저는 학생입니다. 오늘은 날씨가 좋습니다.\n"
		russian  = "Все счастливые семьи похожи друг на друга, каждая несчастлива по-своему.\n"
	)
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"utf-8":        {[]byte(german + nihongo), german + nihongo},
		"utf-8 bom":    {[]byte("\ufeff" + german), german},
		"utf-16":       {utf16le(german + nihongo + emoji), german + nihongo + emoji},
		"windows-1252": {in(charmap.Windows1252, german+french), german + french},
		"latin-1":      {in(charmap.ISO8859_1, french), french},
		"shift-jis":    {in(japanese.ShiftJIS, nihongo), nihongo},
		"euc-jp":       {in(japanese.EUCJP, nihongo), nihongo},
		"iso-2022-jp":  {in(japanese.ISO2022JP, nihongo), nihongo},
		"gb18030":      {in(simplifiedchinese.GB18030, zhongwen), zhongwen},
		"gbk mixed":    {in(simplifiedchinese.GBK, "Version 2.0\n"+zhongwen), "Version 2.0\n" + zhongwen},
		"euc-kr":       {in(korean.EUCKR, hangul), hangul},
		"windows-1251": {in(charmap.Windows1251, russian), russian},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := convert(t.Context(), office, fileops.Bytes("x.txt", c.b), format.MD)
			systest.NoError(t, err)
			if string(got) != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			pdf, err := convert(t.Context(), office, fileops.Bytes("x.txt", c.b), format.PDF)
			systest.NoError(t, err)
			squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
			if text := textOf(t, format.PDF, pdf); !strings.Contains(squeeze(text), squeeze(strings.TrimSuffix(c.want, emoji))) {
				t.Errorf("the PDF says %q", text)
			}
		})
	}
	page := in(charmap.ISO8859_1, `<html><head><meta charset="iso-8859-1"></head><body><p>Grüße</p></body></html>`)
	for _, to := range []format.Format{format.PDF, format.MD, format.EPUB} {
		b, err := convert(t.Context(), office, fileops.Bytes("x.html", page), to)
		systest.NoError(t, err)
		if text := textOf(t, to, b); !strings.Contains(text, "Grüße") {
			t.Errorf("html to %s: %q", to, text)
		}
	}
}

// Separated values keep their meaning.
func TestCSV(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want string // as CSV of the resulting workbook
	}{
		"comma":     {"a,b\n1.5,x\n", "a,b\n1.5,x\n"},
		"semicolon": {"a;b\n1,5;x\n", "a,b\n1.5,x\n"},
		"tab":       {"a\tb\n1\tx, y\n", "a,b\n1,\"x, y\"\n"},
		"pipe":      {"a|b\n1|x\n", "a,b\n1,x\n"},
		"sep line":  {"sep=|\na|b\n1|x;y;z\n", "a,b\n1,x;y;z\n"},
		"quotes":    {"a,b\n\"say \"\"hi\"\", twice\",\"two\nlines\"\n", "a,b\n\"say \"\"hi\"\", twice\",\"two\nlines\"\n"},
		"text":      {"plz,phone,card,date\n01234,+49301234,1234567890123456789,2024-01-31\n", "plz,phone,card,date\n01234,+49301234,1234567890123456789,2024-01-31\n"},
		"no dates":  {"gene,size\nMARCH1,1/2\nSEPT2,3-4\n", "gene,size\nMARCH1,1/2\nSEPT2,3-4\n"},
		"formula":   {"a,b\n=1+1,=WEBSERVICE(\"http://127.0.0.1/\")\n", "a,b\n=1+1,\"=WEBSERVICE(\"\"http://127.0.0.1/\"\")\"\n"},
		"one":       {"only\nvalue\n", "only\nvalue\n"},
		"empty":     {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book, err := convert(t.Context(), office, fileops.Bytes("my table.csv", []byte(c.in)), format.XLSX)
			systest.NoError(t, err)
			if names := tool(t, "unzip", "-p", save(t, "x.xlsx", book), "xl/workbook.xml"); !strings.Contains(names, `name="my table"`) {
				t.Errorf("sheet is not named after the file: %s", names)
			}
			got, err := convert(t.Context(), office, fileops.Bytes("x.xlsx", book), format.CSV)
			systest.NoError(t, err)
			if strings.TrimSpace(string(got)) != strings.TrimSpace(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	b, err := convert(t.Context(), office, fileops.Bytes("x.csv", []byte("a;b\r\n\"x\ty\";007\r\n")), format.TSV)
	if want := "a\tb\n\"x\ty\"\t007\n"; err != nil || string(b) != want {
		t.Errorf("csv to tsv: %q, %v", b, err)
	}
}

// A wide sheet keeps its columns on one page.
func TestSheetFitsPage(t *testing.T) {
	t.Parallel()
	pdf, err := convert(t.Context(), office, fixture(t, format.XLSX), format.PDF)
	systest.NoError(t, err)
	if n := pageCount(t, pdf); n != 2 {
		t.Errorf("%d pages for two sheets", n)
	}
	first := tool(t, "pdftotext", "-layout", "-l", "1", save(t, "x.pdf", pdf), "-")
	if !strings.Contains(first, "col-A") || !strings.Contains(first, "col-R") {
		t.Errorf("columns are missing on the first page: %s", first)
	}
}

// A PDF has bookmarks for the headings, but no reviewers' comments.
func TestPDF(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.DOCX, format.HTML, format.MD} {
		pdf, err := convert(t.Context(), office, fixture(t, f), format.PDF)
		systest.NoError(t, err)
		path := save(t, "x.pdf", pdf)
		outline := tool(t, "qpdf", "--json", "--json-key=outlines", path)
		for _, h := range []string{"A sample", "Second part"} {
			if !strings.Contains(outline, `"title": "`+h+`"`) {
				t.Errorf("%s: no bookmark %q", f, h)
			}
		}
		if s := tool(t, "qpdf", "--qdf", "--object-streams=disable", path, "-"); strings.Contains(s, "a remark") || strings.Contains(s, "/Subtype /Text") {
			t.Errorf("%s: there are comments", f)
		}
	}
}

// No document makes an engine connect to a server, run a program or read a file.
func TestHostile(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		t.Logf("request for %s", r.URL)
	}))
	defer srv.Close()
	secret := save(t, "secret.txt", []byte("TOP-SECRET"))
	page := fmt.Sprintf(`<html><head><link rel="stylesheet" href="%[1]s/css"><style>@import url("%[1]s/import"); body { background: url(%[1]s/bg) } p { background: u\rl(%[1]s/esc) }</style><base href="%[1]s/">
		<script src="%[1]s/js">document.write("scripted")</script></head><body background="%[1]s/body"><p>%[3]s<img src="%[1]s/img" alt="remote"><img src="file://%[2]s" alt="local"></p>
		<iframe src="file://%[2]s"></iframe><object data="file://%[2]s"></object><embed src="%[1]s/embed"><div style="background-image:url('%[1]s/style')">x</div><a href="relative.html">link</a>
		<img src="data:image/svg+xml;base64,PHN2Zy8+"></body></html>`, srv.URL, secret, sentence)
	md := fmt.Sprintf("# x\n\n%[3]s\n\n![remote](%[1]s/img) ![local](file://%[2]s)\n\n<img src=\"%[1]s/raw\">\n\n<iframe src=\"file://%[2]s\"></iframe>\n", srv.URL, secret, sentence)
	linked := docx(`<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText xml:space="preserve"> INCLUDEPICTURE "` + srv.URL + `/field" \d </w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>` +
		`<w:p><w:r><w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:shape style="width:50pt;height:50pt"><v:imagedata src="` + srv.URL + `/vml"/></v:shape></w:pict></w:r></w:p>`)
	book := fmt.Sprintf(`<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:mimetype="application/vnd.oasis.opendocument.spreadsheet" office:version="1.3"><office:body><office:spreadsheet><table:table table:name="x"><table:table-row>`+
		`<table:table-cell table:formula="of:=WEBSERVICE(&quot;%[1]s/formula&quot;)" office:value-type="string"><text:p>old</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>%[2]s</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet></office:body></office:document>`, srv.URL, sentence)
	for name, in := range map[string]*fileops.File{
		"html": fileops.Bytes("x.html", []byte(page)),
		"md":   fileops.Bytes("x.md", []byte(md)),
		"docx": fileops.Bytes("x.docx", linked),
		"fods": fileops.Bytes("x.fods", []byte(book)),
	} {
		for _, a := range office.Convert().Spec().Accepts {
			if a.Formats[0] != in.Format() {
				continue
			}
			for _, to := range a.Params[0].Enum {
				b, err := convert(t.Context(), office, in, format.Format(to))
				if err != nil {
					t.Errorf("%s to %s: %v", name, to, err)
					continue
				}
				text := textOf(t, format.Format(to), b)
				if !strings.Contains(strings.Join(strings.Fields(text), " "), sentence) {
					t.Errorf("%s to %s: the text is missing: %.300s", name, to, text)
				}
				if strings.Contains(text, "TOP-SECRET") || strings.Contains(text, "scripted") {
					t.Errorf("%s to %s: the result contains what it must not: %s", name, to, text)
				}
			}
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// Form values become text.
func TestForm(t *testing.T) {
	t.Parallel()
	page := `<ul><li><input type="checkbox" checked>done</li><li><input type="checkbox">open</li><li><input value="typed"></li><li><input type="hidden" value="hidden"></li></ul>`
	b, err := convert(t.Context(), office, fileops.Bytes("x.html", []byte(page)), format.ODT)
	systest.NoError(t, err)
	text := textOf(t, format.ODT, b)
	for _, want := range []string{"☑ done", "☐ open", "typed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing: %q", want, text)
		}
	}
	if strings.Contains(text, "hidden") {
		t.Errorf("hidden field shown: %q", text)
	}
}

// Similar formats are distinguished by content, not by name.
func TestWrongName(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]*fileops.File{
		"xlsx as docx": fixture(t, format.XLSX).Named("x.docx"),
		"txt as docx":  fixture(t, format.TXT).Named("x.docx"),
		"doc as xls":   fixture(t, format.DOC).Named("x.xls"),
		"png as odt":   fileopstest.Sample(t, format.PNG).Named("x.odt"),
	} {
		if _, err := convert(t.Context(), office, in, format.PDF); !errors.Is(err, fileops.ErrFormatMismatch) {
			t.Errorf("%s: got %v, want ErrFormatMismatch", name, err)
		}
	}
}
