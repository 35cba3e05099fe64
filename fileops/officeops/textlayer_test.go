package officeops

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

// A pdfText is a TextReader that knows the text.
type pdfText string

func (s pdfText) Text(context.Context, []byte, int) (string, error) { return string(s), nil }

// archive is a ZIP archive of parts, given as names and texts. A mimetype is stored.
func archive(t *testing.T, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		h := &zip.FileHeader{Name: parts[i], Method: zip.Deflate}
		if h.Name == "mimetype" {
			h.Method = zip.Store
		}
		w, err := z.CreateHeader(h)
		systest.NoError(t, err)
		if _, err := w.Write([]byte(parts[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	systest.NoError(t, z.Close())
	return b.Bytes()
}

// Text that the PDF of a document lacks is reported, and a PDF without any of the text
// is a failure.
func TestTextLayer(t *testing.T) {
	t.Parallel()
	const text = "The history of the harbour begins with a small village; ships from every port came to trade timber, salt & wool."
	const spelled = "THE HIS\u00adTORY of the harbour begins with a small village; ships from every port came\nto trade timber, salt & wool. Page 1\f"
	escaped := strings.ReplaceAll(text, "&", "&amp;")
	para := func(s string) string { return `<w:p><w:r><w:t xml:space="preserve">` + s + `</w:t></w:r></w:p>` }
	word := func(body string) *fileops.File {
		return fileops.Bytes("a.docx", archive(t, "word/document.xml", `<w:document><w:body>`+body+`</w:body></w:document>`))
	}
	odt := func(body string) *fileops.File {
		return fileops.Bytes("a.odt", archive(t, "mimetype", "application/vnd.oasis.opendocument.text", "content.xml", `<office:document-content><office:body><office:text>`+body+`</office:text></office:body></office:document-content>`))
	}
	half := spelled[:len(spelled)/2]
	book := func(cells string) *fileops.File {
		return fileops.Bytes("a.fods", []byte(`<office:document office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet><table:table><table:table-row>`+cells+`</table:table-row></table:table></office:spreadsheet></office:body></office:document>`))
	}
	numbers := strings.Repeat(`<table:table-cell office:value-type="float"><text:p>1</text:p></table:table-cell>`, 30)
	cells, printed, cut := "", "", ""
	for w := range strings.FieldsSeq("timber salt wool ships harbour village port") {
		w += " and more"
		cells += `<table:table-cell office:value-type="string"><text:p>` + w + `</text:p></table:table-cell>`
		printed += w + "\n"
		cut += w[:7] + "\n"
	}
	for name, tt := range map[string]struct {
		in     *fileops.File
		pdf    string
		warned string
		fails  bool
	}{
		"all":            {word(para(escaped)), spelled, "", false},
		"half":           {word(para(escaped)), half, fileops.WarnContentDropped, false},
		"nothing":        {word(para(escaped)), "\f", "", true},
		"little text":    {word(para("The end")), "\f", "", false},
		"hidden text":    {word(para(escaped) + `<w:rPr><w:vanish/></w:rPr>`), half, "", false},
		"drawn twice":    {word(`<mc:AlternateContent><mc:Choice>` + para(escaped) + `</mc:Choice><mc:Fallback>` + para(escaped) + `</mc:Fallback></mc:AlternateContent>`), spelled, "", false},
		"deleted":        {word(para(escaped) + `<w:del><w:r><w:delText>` + escaped + `</w:delText></w:r></w:del>`), spelled, "", false},
		"odt":            {odt(`<text:p text:style-name="x">` + escaped + `</text:p>`), spelled, "", false},
		"half of an odt": {odt(`<text:p>` + escaped + `</text:p>`), half, fileops.WarnContentDropped, false},
		"odt's comment":  {odt(`<text:p>` + escaped + `<office:annotation xml:id="1"><text:p>` + escaped + `</text:p></office:annotation></text:p>`), spelled, "", false},
		"odt's changes":  {odt(`<text:tracked-changes xml:id="1"><text:p>` + escaped + `</text:p></text:tracked-changes><text:p>` + escaped + `</text:p>`), spelled, "", false},
		"sheet":          {book(cells), printed, "", false},
		"half a sheet":   {book(cells), printed[:len(printed)/2], fileops.WarnContentDropped, false},
		"empty sheet":    {book(cells), "\f", "", true},
		"cut-off cells":  {book(cells), cut, "", false},
		"numbers":        {book(numbers), "1,0", "", false},
		"no numbers":     {book(numbers), "\f", "", true},
		"rtf":            {fileops.Bytes("a.rtf", []byte(`{\rtf1 `+text+`}`)), half, fileops.WarnContentDropped, false},
		"text":           {fileops.Bytes("a.txt", []byte(text)), "\f", "", true},
		"slides": {fileops.Bytes("a.pptx", archive(t, "[Content_Types].xml", "<Types/>", "ppt/presentation.xml", "<p:presentation/>", "ppt/slides/slide1.xml", `<p:sld><a:t>`+escaped+`</a:t></p:sld>`)),
			half, fileops.WarnContentDropped, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.pdf")
			systest.NoError(t, os.WriteFile(path, []byte("%PDF-1.7 /BaseFont"), 0o600))
			var codes []string
			r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
			check := fileops.Func(fileops.Spec{Name: "convert", Engine: "test", Family: "document", Accepts: []fileops.Accept{{Formats: []format.Format{format.DOCX, format.ODT, format.PPTX, format.FODS, format.RTF, format.TXT}}}},
				func(ctx context.Context, job *fileops.Job) error {
					e := &Engine{opts: Options{Reader: pdfText(tt.pdf)}, fonts: func() map[string]bool { return nil }}
					task := &task{Engine: e, job: job, in: job.Input()}
					if err := task.warn(ctx, format.PDF, path, task.readSource(ctx, format.PDF)); err != nil {
						return err
					}
					return job.WriteFile("out.pdf", func(out string) error { return os.Rename(path, out) })
				})
			err := r.Run(t.Context(), check, nil, fileops.ToDir(t.TempDir()), tt.in)
			if errors.Is(err, fileops.ErrEngine) != tt.fails || err != nil && !tt.fails {
				t.Errorf("error %v", err)
			}
			if got := strings.Join(codes, " "); got != tt.warned {
				t.Errorf("warnings %q, want %q", got, tt.warned)
			}
		})
	}
}

// The text of long documents is compared too. An engine reads it only if text seems to be missing, and
// not in documents for which that takes long.
func TestTextLayerOfLongDocuments(t *testing.T) {
	t.Parallel()
	const text = "The history of the harbour begins with a small village; ships from every port came to trade."
	book := func(pages int, text string) []byte {
		kids := strings.Repeat("3 0 R ", pages-1) + "4 0 R"
		font := "/Resources<</Font<</F1<</Encoding/WinAnsiEncoding>>>>>>"
		return tinypdf.File("1.4", "<</Pages 2 0 R>>", "<</Kids["+kids+"]>>", "<</Type/Page>>", "<</Type/Page/Contents 5 0 R"+font+">>",
			tinypdf.Stream("", "/F1 9 Tf ("+text+") Tj"))
	}
	in := fileops.Bytes("a.txt", []byte(text))
	for name, c := range map[string]struct {
		pdf    []byte
		found  string // by the engine
		asked  int    // how many pages the engine may read; 0: it is not asked
		warned bool
	}{
		"all":           {book(300, text), "", 0, false},
		"half":          {book(300, text[:50]), text[:50], 1001, true},
		"not easily":    {book(300, text[:50]), text, 1001, false},
		"very long":     {book(1001, text[:50]), "", 0, false},
		"long":          {book(1000, text[:50]), text[:50], 1001, true},
		"unknown":       {[]byte("%PDF-1.7 /BaseFont"), text[:50], 200, true},
		"unknown, long": {[]byte("%PDF-1.7 /BaseFont"), text[:50] + strings.Repeat("\f", 200), 200, false},
	} {
		path := filepath.Join(t.TempDir(), "a.pdf")
		systest.NoError(t, os.WriteFile(path, c.pdf, 0o600))
		asked, warned := 0, false
		reader := readerFunc(func(most int) string { asked = most; return c.found })
		r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { warned = warned || w.Code == fileops.WarnContentDropped }}
		check := fileops.Func(fileops.Spec{Name: "convert", Engine: "test", Family: "document", Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}}},
			func(ctx context.Context, job *fileops.Job) error {
				e := &Engine{opts: Options{Reader: reader}, fonts: func() map[string]bool { return nil }}
				task := &task{Engine: e, job: job, in: job.Input()}
				if err := task.warn(ctx, format.PDF, path, task.readSource(ctx, format.PDF)); err != nil {
					return err
				}
				return job.WriteFile("out.pdf", func(out string) error { return os.Rename(path, out) })
			})
		systest.NoError(t, r.Run(t.Context(), check, nil, fileops.ToDir(t.TempDir()), in))
		if asked != c.asked || warned != c.warned {
			t.Errorf("%s: the engine reads %d pages, warned is %v, want %d and %v", name, asked, warned, c.asked, c.warned)
		}
	}
}

// A readerFunc is a TextReader that gets the number of pages to read.
type readerFunc func(most int) string

func (f readerFunc) Text(_ context.Context, _ []byte, most int) (string, error) { return f(most), nil }
