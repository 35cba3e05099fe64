package officeops_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// Templates and documents with macros are read like ordinary documents, and so are
// drawings, binary workbooks and text in markup languages.
func TestMoreFormats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to format.Format
		short    bool
		warning  string
	}{
		{format.DOCM, format.ODT, true, "macros_dropped"},
		{format.DOTM, format.PDF, false, ""},
		{format.DOTX, format.MD, false, ""},
		{format.DOT, format.PDF, true, ""},
		{format.OTT, format.DOCX, true, ""},
		{format.XLSM, format.CSV, true, ""},
		{format.XLTM, format.ODS, false, "macros_dropped"},
		{format.XLTX, format.PDF, false, ""},
		{format.XLT, format.XLSX, false, ""},
		{format.OTS, format.XLSX, false, ""},
		{format.XLSB, format.XLSX, true, ""},
		{format.XLSB, format.PDF, false, ""},
		{format.PPTM, format.ODP, false, "macros_dropped"},
		{format.PPSM, format.PDF, false, ""},
		{format.PPSX, format.PDF, true, ""},
		{format.POTX, format.ODP, false, ""},
		{format.POTM, format.PDF, false, ""},
		{format.PPS, format.PPTX, true, ""},
		{format.POT, format.PDF, false, ""},
		{format.OTP, format.PPTX, false, ""},
		{format.ODG, format.PDF, true, ""},
		{format.VSDX, format.PDF, true, ""},
		{format.VSDX, format.ODG, false, ""},
		{format.VSD, format.PDF, true, ""},
		{format.VSD, format.ODG, false, ""},
		{format.PUB, format.PDF, true, ""},
		{format.PUB, format.ODG, false, ""},
		{format.EMF, format.PDF, true, ""},
		{format.WMF, format.PDF, true, ""},
		{format.Pages, format.DOCX, true, ""},
		{format.Pages, format.PDF, false, ""},
		{format.Numbers, format.XLSX, true, ""},
		{format.Numbers, format.PDF, false, ""},
		{format.Key, format.PPTX, true, ""},
		{format.Key, format.PDF, false, ""},
		{format.RST, format.DOCX, true, ""},
		{format.Org, format.HTML, true, ""},
		{format.TeX, format.MD, true, ""},
		{format.FB2, format.DOCX, true, ""},
		{format.FB2, format.EPUB, true, ""},
		{format.DOCX, format.RST, true, "content_dropped"},
		{format.ODT, format.Org, true, "content_dropped"},
		{format.DOCX, format.TeX, true, "content_dropped"},
		{format.HTML, format.FB2, true, ""},
		{format.MD, format.TeX, false, ""},
		{format.TXT, format.RST, false, ""},
	} {
		t.Run(string(tt.from+" "+tt.to), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && !tt.short {
				return
			}
			in := specimen.Of(t, tt.from)
			b, got, err := convertWarned(t.Context(), office, in, tt.to)
			systest.NoError(t, err)
			if !strings.HasPrefix(got, tt.warning) || tt.warning == "" && got != "" && !strings.HasPrefix(got, "fonts") {
				t.Errorf("warnings %q, want %q", got, tt.warning)
			}
			text := textOf(t, tt.to, b)
			want := []string{"quick brown fox", "Äpfel", "Pear"}
			if in.Format().Family() == format.Sheet {
				want = want[1:]
			}
			for _, word := range want {
				if !strings.Contains(strings.Join(strings.Fields(text), " "), word) {
					t.Errorf("%q is missing in %q", word, text)
				}
			}
		})
	}
}

// A heading in a box does not break a book, each file of which must be well-formed.
func TestBookOfBoxes(t *testing.T) {
	t.Parallel()
	b, err := convert(t.Context(), office, fileops.Bytes("a.html", []byte("<title>t</title><h1>One</h1><div><p>a</p><h1>Two</h1><p>b</p></div>")), format.EPUB)
	systest.NoError(t, err)
	path := save(t, "a.epub", b)
	for _, name := range strings.Fields(tool(t, "unzip", "-Z1", path, "*.xhtml")) {
		d := xml.NewDecoder(strings.NewReader(tool(t, "unzip", "-p", path, name)))
		for {
			_, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// Files of markup languages cannot make pandoc read other files.
func TestMarkupReadsNothing(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a.rst": "Title\n=====\n\n.. include:: /etc/passwd\n\n.. csv-table:: t\n   :file: /etc/passwd\n",
		"a.org": "* Title\n\n#+INCLUDE: \"/etc/passwd\"\n",
		"a.tex": "\\documentclass{article}\\begin{document}Title\n\n\\input{/etc/passwd}\\include{/etc/passwd}\\verbatiminput{/etc/passwd}\\end{document}\n",
		"a.fb2": `<?xml version="1.0"?><FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0" xmlns:l="http://www.w3.org/1999/xlink"><body><section><title><p>Title</p></title><image l:href="file:///etc/passwd"/></section></body></FictionBook>`,
	} {
		b, err := convert(t.Context(), office, fileops.Bytes(name, []byte(text)), format.HTML)
		if err == nil && bytes.Contains(b, []byte("root:")) {
			t.Errorf("%s: the result has the content of a file", name)
		}
	}
}

// A FictionBook may be in an old encoding, and must not define entities.
func TestFictionBook(t *testing.T) {
	t.Parallel()
	book := "<?xml version=\"1.0\" encoding=\"windows-1251\"?><FictionBook xmlns=\"http://www.gribuser.ru/xml/fictionbook/2.0\"><body><section><p>\xcf\xf0\xe8\xe2\xe5\xf2</p></section></body></FictionBook>"
	b, err := convert(t.Context(), office, fileops.Bytes("a.fb2", []byte(book)), format.TXT)
	systest.NoError(t, err)
	if !strings.Contains(string(b), "Привет") {
		t.Errorf("text %q", b)
	}
	table := `<?xml version="1.0"?><FictionBook><body><section><p>Text</p><table><tr><td>a</td></tr></table></section></body></FictionBook>`
	if got := warned(t, fileops.Bytes("a.fb2", []byte(table)), format.TXT, nil); got != "content_dropped: 1 table was left out." {
		t.Errorf("warnings %q", got)
	}
	bomb := `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><FictionBook><body><section><p>&a;</p></section></body></FictionBook>`
	if _, err := convert(t.Context(), office, fileops.Bytes("a.fb2", []byte(bomb)), format.TXT); err == nil {
		t.Error("a document type declaration is accepted")
	}
}

// The macros of a binary document are noticed.
func TestMacrosOfBinaryDocuments(t *testing.T) {
	t.Parallel()
	src := specimen.Of(t, format.XLS)
	book := streamOf(t, src, "Workbook")
	var b bytes.Buffer
	systest.NoError(t, compound.Write(&b, []*compound.Node{
		stored("Workbook", book),
		{Name: "_VBA_PROJECT_CUR", Children: []*compound.Node{stored("PROJECT", []byte("ID=x"))}},
	}))
	got := warned(t, fileops.Bytes("a.xls", b.Bytes()), format.XLSX, nil)
	if !strings.HasPrefix(got, "macros_dropped") {
		t.Errorf("warnings %q", got)
	}
}

// stored returns a stream of a compound file.
func stored(name string, data []byte) *compound.Node {
	return &compound.Node{Name: name, Size: int64(len(data)), Content: func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}}
}

// streamOf returns the content of a stream of a compound file.
func streamOf(t testing.TB, f *fileops.File, name string) []byte {
	t.Helper()
	c, err := compound.Open(f.Reader(), f.Size(), 0)
	systest.NoError(t, err)
	s, ok, err := c.Stream(name)
	systest.NoError(t, err)
	if !ok {
		t.Fatalf("no stream %s", name)
	}
	b, err := io.ReadAll(s)
	systest.NoError(t, err)
	return b
}

// LibreOffice would show a part of damaged drawings. A document of Apple's programs with a
// password is refused with a reason.
func TestDamagedDrawings(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.EMF, format.WMF, format.VSD, format.PUB} {
		b, _ := specimen.Of(t, f).Bytes()
		for _, part := range [][]byte{b[:len(b)/2], b[:len(b)*3/4]} {
			_, err := convert(t.Context(), office, fileops.Bytes("a."+string(f), part), format.PDF)
			if code := fileops.Code(err); code != "corrupt_input" && code != "format_mismatch" {
				t.Errorf("%s, %d of %d bytes: %v", f, len(part), len(b), err)
			}
		}
	}
	emf, _ := specimen.Of(t, format.EMF).Bytes()
	loop := bytes.Clone(emf)
	copy(loop[88+4:], "\x00\x00\x00\x00") // a record without a size
	if _, err := convert(t.Context(), office, fileops.Bytes("a.emf", loop), format.PDF); fileops.Code(err) != "corrupt_input" {
		t.Errorf("a record without a size: %v", err)
	}
	var locked bytes.Buffer
	z := zip.NewWriter(&locked)
	w, err := z.Create("index.apxl")
	systest.NoError(t, err)
	_, err = w.Write([]byte("\x01\x02\x03"))
	systest.NoError(t, err)
	systest.NoError(t, z.Close())
	_, err = convert(t.Context(), office, fileops.Bytes("a.key", locked.Bytes()), format.PDF)
	if fileops.Code(err) != "unsupported_input" || !strings.Contains(fileops.Message(err), "password") {
		t.Errorf("with a password: %v", err)
	}
}
