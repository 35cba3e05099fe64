package pdfread_test

import (
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// contents returns a contents list and the pages with its headings.
func contents() []byte {
	list := lines("F1", 20, 72, 760, 20, "Contents") +
		lines("F1", 12, 72, 700, 18, "1 Harbour "+strings.Repeat(".", 60), "2 Market "+strings.Repeat(". ", 36), "3 A chapter that is not there "+strings.Repeat(".", 30)) +
		lines("F1", 12, 500, 700, 18, "2", "3", "9")
	page := func(title string, seed int) pdfPage {
		return pdfPage{content: lines("F1", 20, 72, 760, 20, title) + lines("F1", 12, 72, 720, 14, prose(seed, 10), prose(seed+1, 10), prose(seed+2, 10))}
	}
	return pages(pdfPage{content: list}, page("1 Harbour", 1), page("2 Market", 5))
}

// Entries of contents lists have a tab with dots, and lead to their heading.
func TestDocxContents(t *testing.T) {
	t.Parallel()
	parts, _ := docxOf(t, contents())
	checkSchema(t, parts)
	main := string(parts["word/document.xml"])
	if n := strings.Count(main, `<w:tab w:val="right" w:leader="dot" w:pos=`); n != 3 {
		t.Errorf("%d tabs with dots, want 3: %s", n, main)
	}
	if strings.Contains(main, "....") || strings.Contains(main, ". . .") {
		t.Error("the dots are still text")
	}
	for _, want := range []string{
		`<w:hyperlink w:anchor="_Toc00000001"><w:r><w:t xml:space="preserve">1 Harbour</w:t><w:tab/><w:t xml:space="preserve">2</w:t></w:r></w:hyperlink>`,
		`w:name="_Toc00000001"/>`, `<w:hyperlink w:anchor="_Toc00000002">`, `w:name="_Toc00000002"/>`,
	} {
		if !strings.Contains(main, want) {
			t.Errorf("no %s in %s", want, main)
		}
	}
	if strings.Contains(main, "_Toc00000003") {
		t.Error("a link leads to a heading that does not exist")
	}
}

func TestHTMLContents(t *testing.T) {
	t.Parallel()
	out := mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "html"}, contents())
	if page := string(out[0].b); !strings.Contains(page, `<a href="#page-2">1 Harbour … 2</a>`) || !strings.Contains(page, `id="page-2"`) {
		t.Errorf("no link in %s", page)
	}
}

// Dots that lead to no page number stay text.
func TestDocxDots(t *testing.T) {
	t.Parallel()
	_, text := docxOf(t, pages(pdfPage{content: lines("F1", 12, 72, 700, 30, "Sign here ............ please, in blue ink", "Well........")}))
	if got := strings.Join(strings.Fields(text), " "); got != "Sign here ............ please, in blue ink Well........" {
		t.Errorf("text %q", got)
	}
}
