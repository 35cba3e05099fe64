package officeops_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func merged(t *testing.T, args fileops.Args, in ...*fileops.File) (name string, b []byte, err error) {
	t.Helper()
	err = fileops.Run(t.Context(), office.Merge(), args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		name = f.Name()
		var err error
		b, err = io.ReadAll(f.Reader())
		return err
	}), in...)
	return name, b, err
}

// variant is the rich document with other words, colours and page size.
func variant(name, color string, landscape bool) *fileops.File {
	b := docx("")
	change := func(s string) string {
		s = strings.ReplaceAll(s, "A sample", "Title of "+name)
		s = strings.ReplaceAll(s, "Running header", "Header of "+name)
		s = strings.ReplaceAll(s, "The end.", "End of "+name)
		s = strings.ReplaceAll(s, `<w:numFmt w:val="bullet"/><w:lvlText w:val="•"/>`, `<w:numFmt w:val="decimal"/><w:lvlText w:val="%1)"/>`)
		s = strings.ReplaceAll(s, `<w:b/><w:sz w:val="36"/>`, `<w:b/><w:color w:val="`+color+`"/><w:sz w:val="36"/>`)
		if landscape {
			s = strings.ReplaceAll(s, `<w:pgSz w:w="11906" w:h="16838"/>`, `<w:pgSz w:w="16838" w:h="11906" w:orient="landscape"/>`)
		}
		return s
	}
	return fileops.Bytes(name+".docx", rewritten(b, change))
}

// Texts are in order, lists restart, and each document has its own page size, header,
// heading colour and picture.
func TestMergeDocuments(t *testing.T) {
	t.Parallel()
	in := []*fileops.File{variant("Alpha", "FF0000", false), variant("Beta", "0000FF", true), variant("Gamma", "00AA00", false)}
	for _, tt := range []struct {
		to   string
		args fileops.Args
	}{{"docx", nil}, {"odt", fileops.Args{"convert_to": "odt"}}} {
		t.Run(tt.to, func(t *testing.T) {
			t.Parallel()
			name, b, err := merged(t, tt.args, in...)
			systest.NoError(t, err)
			if name != "merged."+tt.to {
				t.Errorf("name %q", name)
			}
			pdf, err := convert(t.Context(), office, fileops.Bytes(name, b), format.PDF)
			systest.NoError(t, err)
			path := save(t, "a.pdf", pdf)
			info := tool(t, "pdfinfo", "-l", "9", path)
			sizes := regexp.MustCompile(`Page +\d size: +(\d+)`).FindAllStringSubmatch(info, -1)
			var widths []string
			for _, s := range sizes {
				widths = append(widths, s[1])
			}
			if !slices.Equal(widths, []string{"595", "841", "595"}) {
				t.Errorf("widths of pages %v", widths)
			}
			for i, who := range []string{"Alpha", "Beta", "Gamma"} {
				page := string(rune('1' + i))
				text := tool(t, "pdftotext", "-layout", "-f", page, "-l", page, path, "-")
				for _, want := range []string{"Header of " + who, "Title of " + who, "1) " + item, "2) second item", "End of " + who} {
					if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
						t.Errorf("page %s lacks %q: %s", page, want, text)
					}
				}
			}
			if n := strings.Count(tool(t, "pdfimages", "-list", path), " image "); n != 3 {
				t.Errorf("%d pictures", n)
			}
			if tt.to == "docx" {
				styles := tool(t, "unzip", "-p", save(t, "a.docx", b), "word/styles.xml")
				for _, color := range []string{"FF0000", "0000FF", "00AA00"} {
					if !strings.Contains(strings.ToUpper(styles), color) {
						t.Errorf("the heading of colour %s is lost", color)
					}
				}
			}
		})
	}
}

func TestMergeMixedDocuments(t *testing.T) {
	t.Parallel()
	in := []*fileops.File{fixture(t, format.ODT), fixture(t, format.DOC), fixture(t, format.RTF), fixture(t, format.DOCX)}
	if _, _, err := merged(t, nil, in...); err == nil {
		t.Error("mixed formats without convert_to are accepted")
	}
	_, b, err := merged(t, fileops.Args{"convert_to": "docx"}, in...)
	systest.NoError(t, err)
	doc := tool(t, "unzip", "-p", save(t, "a.docx", b), "word/document.xml")
	if n := strings.Count(doc, sentence); n != 4 {
		t.Errorf("%d of 4 texts", n)
	}
}

func TestMergeOneDocument(t *testing.T) {
	t.Parallel()
	in := fixture(t, format.DOCX)
	name, b, err := merged(t, nil, in)
	want, _ := in.Bytes()
	if err != nil || name != "merged.docx" || !bytes.Equal(b, want) {
		t.Errorf("%q, %d bytes, %v", name, len(b), err)
	}
}

func TestMergeDamaged(t *testing.T) {
	t.Parallel()
	good := fixture(t, format.DOCX)
	b, _ := good.Bytes()
	for name, bad := range map[string][]byte{"cut off": b[:len(b)/2], "empty": nil} {
		if _, _, err := merged(t, nil, good, fileops.Bytes("b.docx", bad)); !errors.Is(err, fileops.ErrCorruptInput) && !errors.Is(err, fileops.ErrFormatMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMergeSuite(t *testing.T) {
	t.Parallel()
	runSuite(t, fileopstest.Suite{Action: office.Merge(), Fixture: fixture, Formats: []format.Format{format.ODT}, Concurrency: 2})
}
