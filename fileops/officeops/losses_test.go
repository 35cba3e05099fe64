package officeops_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// warned converts a file and returns the warnings, one a line.
func warned(t *testing.T, in *fileops.File, to format.Format, more fileops.Args) string {
	t.Helper()
	args := fileops.Args{"convert_to": string(to)}
	for k, v := range more {
		args[k] = v
	}
	var lines []string
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { lines = append(lines, w.Code+": "+w.Message) }}
	systest.NoError(t, r.Run(t.Context(), office.Convert(), args, fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil }), in))
	return strings.Join(lines, "\n")
}

// inFont is a paragraph in a font.
func inFont(font, text string) string {
	return `<w:p><w:r><w:rPr><w:rFonts w:ascii="` + font + `" w:hAnsi="` + font + `"/></w:rPr><w:t>` + text + `</w:t></w:r></w:p>`
}

// withPart adds a part to an archive.
func withPart(t *testing.T, b []byte, name, text string) []byte {
	t.Helper()
	zr, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	pairs := []string{name, text}
	for _, f := range zr.File {
		r, err := f.Open()
		systest.NoError(t, err)
		content, err := io.ReadAll(r)
		systest.NoError(t, err)
		pairs = append(pairs, f.Name, string(content))
	}
	return zipOf(pairs...)
}

// workbook is a workbook with the given sheets, each with one cell.
func workbook(sheets ...string) *fileops.File {
	var b strings.Builder
	b.WriteString(head + `<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet>`)
	for i, s := range sheets {
		fmt.Fprintf(&b, `<table:table table:name="S%d"><table:table-row><table:table-cell office:value-type="string"><text:p>%s</text:p></table:table-cell></table:table-row></table:table>`, i, s)
	}
	b.WriteString(`</office:spreadsheet></office:body></office:document>`)
	return fileops.Bytes("book.fods", []byte(b.String()))
}

func TestLossesAreTold(t *testing.T) {
	t.Parallel()
	plain := docx("")
	macros := withPart(t, plain, "word/vbaProject.bin", "code")
	page := func(body string) *fileops.File {
		return fileops.Bytes("page.html", []byte("<!DOCTYPE html><title>t</title><p>text "+body))
	}
	odt, err := convert(t.Context(), office, fileops.Bytes("a.docx", docx(inFont("No Such Font", "text"))), format.ODT)
	systest.NoError(t, err)
	const picture = "content_dropped: 1 picture was left out, because it is not in the file."
	const fonts = "fonts_substituted: The document does not contain these fonts, so others were used: No Such Font."
	for name, tt := range map[string]struct {
		in   *fileops.File
		to   format.Format
		want string
	}{
		"docx to pdf":                 {fileops.Bytes("a.docx", plain), format.PDF, ""},
		"docx to odt":                 {fileops.Bytes("a.docx", plain), format.ODT, ""},
		"fonts with the same metrics": {fileops.Bytes("a.docx", docx(inFont("Calibri", "a")+inFont("Arial", "b")+inFont("Wingdings", "c"))), format.PDF, ""},
		"font of a docx":              {fileops.Bytes("a.docx", docx(inFont("No Such Font", "text"))), format.PDF, fonts},
		"font of an odt":              {fileops.Bytes("a.odt", odt), format.PDF, fonts},
		"font kept":                   {fileops.Bytes("a.docx", docx(inFont("No Such Font", "text"))), format.ODT, ""},
		"macros":                      {fileops.Bytes("a.docx", macros), format.ODT, "macros_dropped: The macros of the document were left out."},
		"macros are no text":          {fileops.Bytes("a.docx", macros), format.PDF, ""},
		"comments to text":            {fileops.Bytes("a.docx", plain), format.TXT, "content_dropped: 1 comment was left out."},
		"comments to Markdown":        {fileops.Bytes("a.docx", plain), format.MD, "content_dropped: 1 comment was left out."},
		"one sheet":                   {workbook("a"), format.CSV, ""},
		"empty sheets":                {workbook("a", "", ""), format.CSV, ""},
		"three sheets":                {workbook("a", "b", "c"), format.CSV, "content_dropped: 2 sheets were left out; the result has only the first one."},
		"sheets to xlsx":              {workbook("a", "b"), format.XLSX, ""},
		"page":                        {page(""), format.DOCX, ""},
		"picture of a page":           {page(`<img src="a.png"><img src="` + dataURL() + `">`), format.DOCX, picture},
		"script and style":            {page(`<script>x()</script><link rel=stylesheet href=a.css>`), format.DOCX, "script_not_run: The scripts of the page were not run.\ncontent_dropped: 1 style sheet was left out, because it is not in the file."},
		"recording":                   {page(`<video src="a.mp4">old browser</video><audio src="a.mp3"></audio>`), format.DOCX, "content_dropped: 2 recordings were left out."},
		"picture of Markdown":         {fileops.Bytes("a.md", []byte("# Title\n\n![p](a.png)\n")), format.DOCX, picture},
		"Markdown":                    {fileops.Bytes("a.md", []byte("# Title\n\ntext\n")), format.DOCX, ""},
		"book of a page":              {page(`<img src="a.png">`), format.EPUB, picture},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := warned(t, tt.in, tt.to, nil); got != tt.want {
				t.Errorf("warnings %q, want %q", got, tt.want)
			}
		})
	}
	if got := warned(t, workbook("a", "b"), format.CSV, fileops.Args{"sheet": "2"}); got != "" {
		t.Errorf("chosen sheet: %q", got)
	}
	for _, from := range []format.Format{format.ODT, format.PPTX, format.ODP, format.XLSX, format.ODS, format.DOC} {
		if got := warned(t, fixture(t, from), format.PDF, nil); got != "" {
			t.Errorf("%s to pdf: %q", from, got)
		}
	}
}
