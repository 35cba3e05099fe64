package officeops_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/internal/systest"
)

const flatHead = `<?xml version="1.0" encoding="UTF-8"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" ` +
	`xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" ` +
	`xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0" xmlns:form="urn:oasis:names:tc:opendocument:xmlns:form:1.0" office:version="1.2" `

// pagedText is a text document of four pages with headings, an outdated table of
// contents, a comment and tracked changes.
func pagedText() *fileops.File {
	var body strings.Builder
	for i := range 4 {
		fmt.Fprintf(&body, `<text:h text:style-name="H" text:outline-level="1">Chapter %d</text:h>`, i+1)
	}
	changed := `<text:tracked-changes><text:changed-region text:id="c1"><text:deletion><office:change-info><dc:creator>A</dc:creator><dc:date>2024-01-01T00:00:00</dc:date></office:change-info><text:p>removed </text:p></text:deletion></text:changed-region>` +
		`<text:changed-region text:id="c2"><text:insertion><office:change-info><dc:creator>A</dc:creator><dc:date>2024-01-01T00:00:00</dc:date></office:change-info></text:insertion></text:changed-region></text:tracked-changes>`
	index := `<text:table-of-content text:name="Contents"><text:table-of-content-source text:outline-level="2"/><text:index-body><text:p>Outdated entry</text:p></text:index-body></text:table-of-content>`
	para := `<text:p>Words <office:annotation><dc:creator>A</dc:creator><dc:date>2024-01-01T00:00:00</dc:date><text:p>a remark</text:p></office:annotation><text:change text:change-id="c1"/><text:change-start text:change-id="c2"/>added <text:change-end text:change-id="c2"/>stay.</text:p>`
	return fileops.Bytes("a.fodt", []byte(flatHead+`office:mimetype="application/vnd.oasis.opendocument.text"><office:styles><style:style style:name="H" style:family="paragraph"><style:paragraph-properties fo:break-before="page"/></style:style></office:styles>`+
		`<office:body><office:text>`+changed+index+para+body.String()+`</office:text></office:body></office:document>`))
}

// deck has three slides with notes; the second is hidden.
func deck() *fileops.File {
	var body strings.Builder
	for i := range 3 {
		style := "shown"
		if i == 1 {
			style = "hidden"
		}
		frame := `<draw:frame svg:x="2cm" svg:y="2cm" svg:width="10cm" svg:height="3cm"`
		fmt.Fprintf(&body, `<draw:page draw:name="Topic %d" draw:style-name="%s" draw:master-page-name="M">%s><draw:text-box><text:p>Slide %[1]d</text:p></draw:text-box></draw:frame>`+
			`<presentation:notes>%[3]s presentation:class="notes"><draw:text-box><text:p>Note %[1]d</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>`, i+1, style, frame)
	}
	return fileops.Bytes("a.fodp", []byte(flatHead+`office:mimetype="application/vnd.oasis.opendocument.presentation"><office:automatic-styles>`+
		`<style:page-layout style:name="L"><style:page-layout-properties fo:page-width="28cm" fo:page-height="21cm"/></style:page-layout>`+
		`<style:style style:name="shown" style:family="drawing-page"/><style:style style:name="hidden" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style></office:automatic-styles>`+
		`<office:master-styles><style:master-page style:name="M" style:page-layout-name="L"/></office:master-styles>`+
		`<office:body><office:presentation>`+body.String()+`</office:presentation></office:body></office:document>`))
}

// book is a workbook with three sheets of two pages each. The second is named like a
// number.
func book() *fileops.File {
	var body strings.Builder
	for i, name := range []string{"First", "3", "Third"} {
		fmt.Fprintf(&body, `<table:table table:name="%s">`, name)
		for row := range 70 {
			fmt.Fprintf(&body, `<table:table-row><table:table-cell office:value-type="string"><text:p>S%dR%d</text:p></table:table-cell></table:table-row>`, i+1, row+1)
		}
		body.WriteString(`</table:table>`)
	}
	return fileops.Bytes("a.fods", []byte(flatHead+`office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet>`+body.String()+`</office:spreadsheet></office:body></office:document>`))
}

var pdfSize = regexp.MustCompile(`Page size: +([\d.]+) x ([\d.]+)`)

// Every parameter of a conversion to PDF changes the result as described. poppler and
// qpdf judge.
func TestPDFParameters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		in     func() *fileops.File
		args   fileops.Args
		pages  int
		has    []string // words, in this order
		lacks  []string // words
		judged func(t *testing.T, path string)
	}{
		{"plain text", pagedText, nil, 5, []string{"Outdated", "added", "stay", "Chapter 1", "Chapter 4"}, []string{"remark"}, bookmarks(4)},
		{"pages", pagedText, fileops.Args{"pages": "-1,2-3"}, 3, []string{"Chapter 1", "Chapter 2", "Chapter 4"}, []string{"Words", "Chapter 3"}, nil},
		{"no bookmarks", pagedText, fileops.Args{"bookmarks": false}, 5, nil, nil, bookmarks(0)},
		{"no tags", pagedText, fileops.Args{"tagged": false}, 5, nil, nil, info("Tagged", "no")},
		{"tags", pagedText, fileops.Args{"tagged": true}, 5, nil, nil, info("Tagged", "yes")},
		{"comments", pagedText, fileops.Args{"comments": "annotations"}, 5, []string{"Words"}, []string{"remark"}, contains(`a remark`)},
		{"accepted", pagedText, fileops.Args{"tracked_changes": "accepted"}, 5, []string{"added", "stay"}, []string{"removed"}, nil},
		{"rejected", pagedText, fileops.Args{"tracked_changes": "rejected"}, 5, []string{"removed", "stay"}, []string{"added"}, nil},
		{"changes shown", pagedText, fileops.Args{"tracked_changes": "shown"}, 5, []string{"removed", "added", "stay"}, nil, nil},
		{"indexes", pagedText, fileops.Args{"update_indexes": true}, 5, []string{"Chapter 1", "Chapter 4", "Words"}, []string{"Outdated"}, nil},
		{"landscape", pagedText, fileops.Args{"orientation": "landscape"}, 5, nil, nil, turned(true)},
		{"PDF/A of pages", pagedText, fileops.Args{"pdfa": "2b", "pages": "2"}, 1, []string{"Chapter 1"}, nil, contains("/GTS_PDFA1")},

		{"plain slides", deck, nil, 2, []string{"Slide 1", "Slide 3"}, []string{"Slide 2", "Note"}, bookmarks(2)},
		{"hidden slides", deck, fileops.Args{"hidden_slides": true}, 3, []string{"Slide 1", "Slide 2", "Slide 3"}, nil, nil},
		{"last slide", deck, fileops.Args{"pages": "2"}, 1, []string{"Slide 3"}, []string{"Slide 1"}, nil},
		{"last of all slides", deck, fileops.Args{"pages": "2-", "hidden_slides": true}, 2, []string{"Slide 2", "Slide 3"}, nil, nil},
		{"notes", deck, fileops.Args{"notes": "after"}, 4, []string{"Slide 1", "Slide 3", "Note 1", "Note 3"}, []string{"Note 2"}, nil},
		{"only notes", deck, fileops.Args{"notes": "only"}, 2, []string{"Note 1", "Note 3"}, nil, nil},
		{"notes of a slide", deck, fileops.Args{"notes": "true", "pages": "-1"}, 2, []string{"Slide 3", "Note 3"}, []string{"Note 1"}, nil},

		{"plain sheets", book, nil, 6, []string{"S1R1", "S2R1", "S3R70"}, nil, turned(false)},
		{"sheet", book, fileops.Args{"sheet": "Third"}, 2, []string{"S3R1", "S3R70"}, []string{"S1R1", "S2R1"}, nil},
		{"name before number", book, fileops.Args{"sheet": "3"}, 2, []string{"S2R1", "S2R70"}, []string{"S1R1", "S3R1"}, nil},
		{"sheets", book, fileops.Args{"sheet": "1,-1"}, 4, []string{"S1R1", "S3R70"}, []string{"S2R1"}, nil},
		{"pages of a sheet", book, fileops.Args{"sheet": "2-", "pages": "-1"}, 1, []string{"S3R70"}, []string{"S3R1\n", "S2R70"}, nil},
		{"sheet on a page", book, fileops.Args{"fit_to": "page"}, 3, []string{"S1R70", "S3R70"}, nil, turned(false)},
		{"page of a sheet", book, fileops.Args{"fit_to": "sheet"}, 3, []string{"S1R70", "S3R70"}, nil, nil},
		{"sheets in landscape", book, fileops.Args{"orientation": "landscape", "fit_to": "none"}, 9, nil, nil, turned(true)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := fileops.Args{"convert_to": "pdf"}
			for k, v := range tt.args {
				args[k] = v
			}
			b, err := convertWith(t, tt.in(), args)
			systest.NoError(t, err)
			path := save(t, "a.pdf", b)
			tool(t, "qpdf", "--check", path)
			info("Pages", fmt.Sprint(tt.pages))(t, path)
			text := tool(t, "pdftotext", path, "-")
			at := 0
			for _, w := range tt.has {
				i := strings.Index(text[at:], w)
				if i < 0 {
					t.Fatalf("%q is not there, or not after the others: %q", w, text)
				}
				at += i
			}
			for _, w := range tt.lacks {
				if strings.Contains(text, w) {
					t.Errorf("%q is there: %q", w, text)
				}
			}
			if tt.judged != nil {
				tt.judged(t, path)
			}
		})
	}
}

func info(field, want string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		out := tool(t, "pdfinfo", path)
		if !regexp.MustCompile(`(?m)^` + field + `: +` + want + `$`).MatchString(out) {
			t.Errorf("%s is not %s: %s", field, want, out)
		}
	}
}

func bookmarks(want int) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		if got := strings.Count(tool(t, "qpdf", "--json", "--json-key=outlines", path), `"destpageposfrom1"`); got != want {
			t.Errorf("%d bookmarks, want %d", got, want)
		}
	}
}

func contains(want string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		if !strings.Contains(tool(t, "qpdf", "--json", path), want) {
			t.Errorf("%q is not there", want)
		}
	}
}

func turned(landscape bool) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		var w, h float64
		m := pdfSize.FindStringSubmatch(tool(t, "pdfinfo", path))
		if m == nil {
			t.Fatal("no page size")
		}
		fmt.Sscan(m[1], &w)
		fmt.Sscan(m[2], &h)
		if w > h != landscape {
			t.Errorf("pages of %v × %v", w, h)
		}
	}
}

// Pictures are compressed as the parameters say. pdfimages of poppler judges.
func TestImageParameters(t *testing.T) {
	t.Parallel()
	var pic bytes.Buffer
	systest.NoError(t, png.Encode(&pic, fileopstest.Picture(800, 600)))
	in := fileops.Bytes("a.fodt", []byte(flatHead+`office:mimetype="application/vnd.oasis.opendocument.text"><office:body><office:text><text:p><draw:frame text:anchor-type="as-char" svg:width="4in" svg:height="3in"><draw:image><office:binary-data>`+
		base64.StdEncoding.EncodeToString(pic.Bytes())+`</office:binary-data></draw:image></draw:frame></text:p></office:text></office:body></office:document>`))
	list := func(args fileops.Args) (kind, width string, size int) {
		args["convert_to"] = "pdf"
		b, err := convertWith(t, in, args)
		systest.NoError(t, err)
		f := strings.Fields(strings.Split(tool(t, "pdfimages", "-list", save(t, "a.pdf", b)), "\n")[2])
		return f[8], f[3], len(b)
	}
	kind, width, fine := list(fileops.Args{"image_quality": 95})
	if kind != "jpeg" || width != "800" {
		t.Errorf("quality 95: %s of %s pixels", kind, width)
	}
	if _, _, coarse := list(fileops.Args{"image_quality": 20}); coarse >= fine {
		t.Errorf("%d bytes with quality 20, %d with 95", coarse, fine)
	}
	if kind, width, _ := list(fileops.Args{"image_lossless": true}); kind != "image" || width != "800" {
		t.Errorf("lossless: %s of %s pixels", kind, width)
	}
	if _, width, _ := list(fileops.Args{"image_resolution": 75}); width != "300" {
		t.Errorf("4 inches at 75 pixels per inch have %s pixels", width)
	}
	if _, err := convertWith(t, in, fileops.Args{"convert_to": "pdf", "image_lossless": true, "image_quality": 50}); err == nil {
		t.Error("quality and lossless together")
	}
}

func TestBadPDFParameters(t *testing.T) {
	t.Parallel()
	var param *fileops.ParamError
	for _, tt := range []struct {
		in   *fileops.File
		args fileops.Args
	}{
		{pagedText(), fileops.Args{"pages": "6"}},
		{deck(), fileops.Args{"pages": "3"}},
		{pagedText(), fileops.Args{"notes": "after"}},
		{deck(), fileops.Args{"orientation": "landscape"}},
		{book(), fileops.Args{"hidden_slides": true}},
		{deck(), fileops.Args{"comments": "margin"}},
		{book(), fileops.Args{"fit_to": "sheet", "pages": "1"}},
		{book(), fileops.Args{"fit_to": "sheet", "sheet": "1"}},
	} {
		tt.args["convert_to"] = "pdf"
		if _, err := convertWith(t, tt.in, tt.args); !errors.As(err, &param) {
			t.Errorf("%s %v: %v", tt.in.Name(), tt.args, err)
		}
	}
	for _, sheet := range []string{"4", "0", "2-1", "Fourth", "1,Third"} {
		if _, err := convertWith(t, book(), fileops.Args{"convert_to": "pdf", "sheet": sheet}); !errors.Is(err, fileops.ErrUnsupportedInput) {
			t.Errorf("sheet %q: %v", sheet, err)
		}
	}
	// The process is ready for the next document after a refusal.
	if _, err := convertWith(t, pagedText(), fileops.Args{"convert_to": "pdf", "pages": "1"}); err != nil {
		t.Error(err)
	}
}
