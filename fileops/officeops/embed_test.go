package officeops_test

import (
	"archive/zip"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// epub is a book of one page with a picture, "my picture.png".
func epub(body string) *fileops.File {
	return fileops.Bytes("a.epub", zipOf("mimetype", format.EPUB.MIME(),
		"META-INF/container.xml", `<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
		"OEBPS/book.opf", `<package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="i"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T</dc:title><dc:identifier id="i">1</dc:identifier></metadata>`+
			`<manifest><item id="p" href="page.xhtml" media-type="application/xhtml+xml"/><item id="q" href="my%20picture.png" media-type="image/png"/><item id="m" href="a.mp4" media-type="video/mp4"/></manifest><spine><itemref idref="p"/></spine></package>`,
		"OEBPS/page.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head><body><p>Before</p>`+body+`<p>After</p></body></html>`,
		"OEBPS/my picture.png", string(picture()),
		"OEBPS/a.mp4", "a recording"))
}

// A book that refers to recordings, or to files that it does not have, is converted without
// them, with a warning.
func TestBookWithoutItsFiles(t *testing.T) {
	t.Parallel()
	const (
		aPicture   = "content_dropped: 1 picture was left out, because it is not in the file."
		aFrame     = "content_dropped: 1 frame was left out, because it is not in the file."
		aRecording = "content_dropped: 1 recording was left out."
	)
	fb2 := fileops.Bytes("a.fb2", []byte(`<?xml version="1.0"?><FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0" xmlns:l="http://www.w3.org/1999/xlink"><description><title-info><book-title>T</book-title></title-info></description>`+
		`<body><section><p>Before</p><image l:href="#none.png"/><image l:href="#b.png"/><p>After</p></section></body><binary id="b.png" content-type="image/png">`+strings.TrimPrefix(dataURL(), "data:image/png;base64,")+`</binary></FictionBook>`))
	for name, tt := range map[string]struct {
		in       *fileops.File
		want     string // in the page
		warnings string
	}{
		"picture":         {epub(`<p><img src="my%20picture.png" alt="A"/></p>`), dataURL(), ""},
		"missing picture": {epub(`<p><img src="none.png" alt="Its &lt;description&gt;"/></p>`), "Its &lt;description&gt;", aPicture},
		"remote picture":  {epub(`<p><img src="http://127.0.0.1:1/a.png" alt="Remote"/></p>`), "Remote", aPicture},
		"other file":      {epub(`<p><img src="../../../../etc/passwd.png" alt="Other"/></p>`), "Other", aPicture},
		"audio":           {epub(`<audio src="a.mp3" controls=""></audio>`), "", aRecording},
		"video":           {epub(`<video src="a.mp4" poster="none.png"><p>Instead</p></video>`), "Instead", aRecording},
		"sources":         {epub(`<video><source src="a.mp4"/><track src="a.vtt"/><p>Instead</p></video>`), "Instead", aRecording},
		"frame":           {epub(`<p><iframe src="none.html">hidden text</iframe></p>`), "", aFrame},
		"drawing":         {epub(`<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"><circle r="9"/><image xlink:href="my%20picture.png"/></svg>`), "<svg", "content_dropped: 1 drawing was left out."},
		"button":          {epub(`<p><input type="image" src="none.png"/></p>`), "", ""},
		"FictionBook":     {fb2, dataURL(), aPicture},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := warned(t, tt.in, format.HTML, nil); got != tt.warnings {
				t.Errorf("warnings %q, want %q", got, tt.warnings)
			}
			b, err := convert(t.Context(), office, tt.in, format.HTML)
			systest.NoError(t, err)
			page := string(b)
			for _, word := range []string{"Before", "After", tt.want} {
				if !strings.Contains(page, word) {
					t.Errorf("%q is missing in %s", word, page)
				}
			}
			for _, word := range []string{"none.", "a.mp", "a.vtt", "127.0.0.1", "passwd", "hidden", "<video", "<audio", "<iframe"} {
				if strings.Contains(page, word) {
					t.Errorf("%q is in %s", word, page)
				}
			}
			b, err = convert(t.Context(), office, tt.in, format.PDF)
			systest.NoError(t, err)
			if text := textOf(t, format.PDF, b); !strings.Contains(text, "Before") || !strings.Contains(text, "After") {
				t.Errorf("PDF with %q", text)
			}
		})
	}
}

// A name in a book that is not UTF-8 is the book's defect.
func TestBookWithBadName(t *testing.T) {
	t.Parallel()
	b, _ := epub("").Bytes()
	b = bytes.ReplaceAll(b, []byte("page.xhtml"), []byte("p\x82ge.xhtml"))
	for _, to := range []format.Format{format.HTML, format.MD} {
		if _, err := convert(t.Context(), office, fileops.Bytes("a.epub", b), to); fileops.Code(err) != "corrupt_input" {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// A package document may refer to files outside of its folder.
func TestBookWithFilesAbove(t *testing.T) {
	t.Parallel()
	b := zipOf("mimetype", format.EPUB.MIME(),
		"META-INF/container.xml", `<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
		"OEBPS/book.opf", `<package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="i"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T</dc:title><dc:identifier id="i">1</dc:identifier></metadata>`+
			`<manifest><item id="p" href='../text/one.xhtml' media-type="application/xhtml+xml"/><item id="q" href="two.xhtml" media-type="application/xhtml+xml"/><item id="r" href="../pictures/a.png" media-type="image/png"/></manifest><spine><itemref idref="p"/><itemref idref="q"/></spine></package>`,
		"text/one.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head><body><p>First</p><p><img src="../pictures/a.png"/></p></body></html>`,
		"OEBPS/two.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head><body><p>Second</p></body></html>`,
		"pictures/a.png", string(picture()))
	for to, want := range map[format.Format]string{format.HTML: dataURL(), format.MD: dataURL(), format.TXT: "First"} {
		in := fileops.Bytes("a.epub", b)
		if got := warned(t, in, to, nil); got != "" {
			t.Errorf("%s: warnings %q", to, got)
		}
		out, err := convert(t.Context(), office, in, to)
		systest.NoError(t, err)
		for _, word := range []string{"First", "Second", want} {
			if !strings.Contains(string(out), word) {
				t.Errorf("%s: %q is missing in %s", to, word, out)
			}
		}
	}
}

// The drawing around the picture of a cover is left out, also where pandoc does not look for pictures in
// drawings. Other drawings stay.
func TestBookWithPicturesInDrawings(t *testing.T) {
	t.Parallel()
	const image = `<image width="64" height="64" xlink:href="my%20picture.png"/>`
	svg := func(content string) string {
		return `<div><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 64 64">` + content + `</svg></div>`
	}
	for name, tt := range map[string]struct {
		body     string
		pictures int
	}{
		"cover":           {svg("<title>The cover</title>" + image), 1},
		"prefix":          {`<svg:svg xmlns:svg="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink"><svg:g><svg:image x:href="my%20picture.png"/></svg:g></svg:svg>`, 1},
		"two drawings":    {svg(image) + "<p>Between</p>" + svg(image), 2},
		"a circle":        {svg(image + `<circle r="9"/>`), 0},
		"two pictures":    {svg(image + image), 0},
		"no picture":      {svg(`<title>Nothing</title>`), 0},
		"a drawing in it": {svg(`<svg>` + image + `</svg>`), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := convert(t.Context(), office, epub(tt.body), format.HTML)
			systest.NoError(t, err)
			page := string(b)
			if n := strings.Count(page, dataURL()); n != tt.pictures {
				t.Errorf("%d pictures, want %d: %s", n, tt.pictures, page)
			}
			for _, word := range []string{"Before", "After"} {
				if !strings.Contains(page, word) {
					t.Errorf("%q is missing in %s", word, page)
				}
			}
			if name == "cover" && !strings.Contains(page, `alt="The cover"`) {
				t.Errorf("the description is missing in %s", page)
			}
		})
	}
	b, err := convert(t.Context(), office, epub(svg(image)), format.DOCX)
	systest.NoError(t, err)
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	if !slices.ContainsFunc(z.File, func(f *zip.File) bool { return strings.HasPrefix(f.Name, "word/media/") }) {
		t.Error("the cover is missing in DOCX")
	}
}
