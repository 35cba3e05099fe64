package documentops_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/documentops"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/systest"
)

// inspected returns the report about a document, or the error.
func inspected(t testing.TB, in *fileops.File) (r map[string]any, err error) {
	t.Helper()
	err = (&fileops.Runner{TempDir: t.TempDir()}).Run(t.Context(), documentops.Inspect(nil), nil, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		systest.NoError(t, err)
		return json.Unmarshal(b, &r)
	}), in)
	return r, err
}

// packaged returns a ZIP archive of names and contents.
func packaged(t testing.TB, name string, parts ...string) *fileops.File {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: parts[i]})
		systest.NoError(t, err)
		_, err = io.WriteString(f, parts[i+1])
		systest.NoError(t, err)
	}
	systest.NoError(t, w.Close())
	return fileops.Bytes(name, b.Bytes())
}

const contentTypes = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/%s" ContentType="application/vnd.openxmlformats-officedocument.%s.main+xml"/></Types>`

func TestInspectPackages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in         *fileops.File
		meta, want string
	}{
		{packaged(t, "a.docx", "[Content_Types].xml", fmt.Sprintf(contentTypes, "word/document.xml", "wordprocessingml.document"),
			"docProps/core.xml", `<p><title>Ä &amp; B</title><creator>Ann</creator><lastModifiedBy>Bob</lastModifiedBy><created>2024-02-29T10:00:00Z</created><language>de</language></p>`,
			"docProps/app.xml", `<p><Pages>3</Pages><Words>120</Words><Application>X</Application></p>`, "word/document.xml", "<d/>", "word/vbaProject.bin", "x", "word/media/i.png", "x"),
			"map[author:Ann created:2024-02-29T10:00:00Z last_author:Bob program:X title:Ä & B]", "map[language:de macros:true pages:3 pictures:1 words:120]"},
		{packaged(t, "a.xlsx", "[Content_Types].xml", fmt.Sprintf(contentTypes, "xl/workbook.xml", "spreadsheetml.sheet"),
			"xl/workbook.xml", `<workbook><sheets><sheet name="One"/><sheet name="Zwei"/></sheets></workbook>`, "docProps/core.xml", "<p><title>cut"), "map[]", "map[macros:false pictures:0 sheets:[One Zwei]]"},
		{packaged(t, "a.odt", "mimetype", "application/vnd.oasis.opendocument.text", "content.xml", "<d/>",
			"meta.xml", `<m><initial-creator>Ann</initial-creator><creator>Bob</creator><keyword>a</keyword><keyword>b</keyword><date>2024-03-01T00:00:00</date><document-statistic page-count="2" word-count="9"/></m>`),
			"map[author:Ann keywords:a, b last_author:Bob modified:2024-03-01T00:00:00Z]", "map[macros:false pages:2 pictures:0 words:9]"},
		{packaged(t, "a.ods", "mimetype", "application/vnd.oasis.opendocument.spreadsheet", "content.xml", `<d><table name="A"/><table name="B"/></d>`), "map[]", "map[macros:false pictures:0 sheets:[A B]]"},
		{packaged(t, "a.epub", "mimetype", "application/epub+zip", "META-INF/container.xml", `<c><rootfile full-path="o/b.opf"/></c>`,
			"o/b.opf", `<p><title>T</title><creator>Ann</creator><language>en</language><date>2011</date><itemref/><itemref/></p>`), "map[author:Ann created:2011-01-01T00:00:00Z title:T]", "map[chapters:2 language:en macros:false pictures:0]"},
	} {
		r, err := inspected(t, tt.in)
		if got := fmt.Sprint(r["metadata"]); err != nil || got != tt.meta {
			t.Errorf("%s: metadata %s, want %s; %v", tt.in.Name(), got, tt.meta, err)
		}
		if got := fmt.Sprint(r["document"]); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.in.Name(), got, tt.want)
		}
	}
}

// summary returns a property stream (MS-OLEPS, 2.21) with code page 1251.
func summary() []byte {
	le := binary.LittleEndian
	values := []struct {
		id   uint32
		data []byte
	}{
		{1, []byte("\x02\x00\x00\x00\xe3\x04\x00\x00")},
		{2, []byte("\x1e\x00\x00\x00\x04\x00\x00\x00\xcc\xe8\xf0\x00")},
		{4, []byte("\x1f\x00\x00\x00\x03\x00\x00\x00A\x00n\x00\x00\x00\x00\x00")},
		{12, append([]byte("\x40\x00\x00\x00"), le.AppendUint64(nil, (11644473600+1709164800)*1e7)...)},
		{14, []byte("\x03\x00\x00\x00\x07\x00\x00\x00")},
		{15, []byte("\xff\xff\xff\xff\xff\xff\xff\xff")},
	}
	at := uint32(8 + 8*len(values))
	set, data := []byte(nil), []byte(nil)
	for _, v := range values {
		set = le.AppendUint32(le.AppendUint32(set, v.id), at+uint32(len(data)))
		data = append(data, v.data...)
	}
	set = append(le.AppendUint32(le.AppendUint32(nil, at+uint32(len(data))), uint32(len(values))), append(set, data...)...)
	head := append([]byte("\xfe\xff\x00\x00"), make([]byte, 44)...)
	le.PutUint32(head[24:], 1)
	le.PutUint32(head[44:], 48)
	return append(head, set...)
}

func binaryDocument(t testing.TB, name, stream string, content []byte) *fileops.File {
	t.Helper()
	var b bytes.Buffer
	node := func(name string, c []byte) *compound.Node {
		return &compound.Node{Name: name, Size: int64(len(c)), Content: func(w io.Writer) error { _, err := w.Write(c); return err }}
	}
	systest.NoError(t, compound.Write(&b, []*compound.Node{node(stream, content), node("\x05SummaryInformation", summary())}))
	return fileops.Bytes(name, b.Bytes())
}

func TestInspectBinary(t *testing.T) {
	t.Parallel()
	fib := make([]byte, 4096)
	copy(fib, "\xec\xa5")
	r, err := inspected(t, binaryDocument(t, "a.doc", "WordDocument", fib))
	if got := fmt.Sprint(r["metadata"], r["document"]); err != nil || got != "map[author:An created:2024-02-29T00:00:00Z title:Мир] map[macros:false pages:7 pictures:0]" {
		t.Errorf("%s, %v", got, err)
	}
	fib[11] = 1 // encrypted
	if r, err := inspected(t, binaryDocument(t, "a.doc", "WordDocument", fib)); err != nil || r["encrypted"] != true || r["document"] != nil {
		t.Errorf("encrypted: %v, %v", r, err)
	}
	book := append([]byte("\x09\x08\x04\x00abcd\x2f\x00\x02\x00xx"), make([]byte, 4096)...)
	if r, err := inspected(t, binaryDocument(t, "a.xls", "Workbook", book)); err != nil || r["encrypted"] != true {
		t.Errorf("encrypted workbook: %v, %v", r, err)
	}
}

// Damaged properties are left out, wherever the damage is.
func TestInspectDamagedProperties(t *testing.T) {
	t.Parallel()
	fib := make([]byte, 4096)
	copy(fib, "\xec\xa5")
	in, _ := binaryDocument(t, "a.doc", "WordDocument", fib).Bytes()
	at := bytes.Index(in, []byte("\xfe\xff\x00\x00"))
	for i := range len(summary()) {
		for _, v := range []byte{0, 0x7f, 0xff} {
			b := bytes.Clone(in)
			b[at+i] = v
			if _, err := inspected(t, fileops.Bytes("a.doc", b)); err != nil {
				t.Errorf("byte %d is %#x: %v", i, v, err)
			}
		}
	}
}
