package pdfread_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// sup returns content with text, then a raised mark and more text on the line.
func sup(x, y float64, text, mark, rest string) string {
	return fmt.Sprintf("BT /F1 12 Tf %g %g Td (%s) Tj /F1 7 Tf 4 Ts (%s) Tj 0 Ts /F1 12 Tf (%s) Tj ET\n", x, y, text, mark, rest)
}

// note returns the content of a footnote.
func note(y float64, mark, text string) string {
	return fmt.Sprintf("BT /F1 6 Tf 3 Ts 72 %g Td (%s) Tj 0 Ts /F1 9 Tf ( %s) Tj ET\n", y, mark, text)
}

func body(seed int) string {
	return lines("F1", 12, 72, 740, 14, prose(seed, 10), prose(seed+1, 10), prose(seed+2, 10))
}

const noteLine = "0.5 w 72 130 m 200 130 l S\n"

func TestDocxFootnotes(t *testing.T) {
	t.Parallel()
	for name, marks := range map[string][]string{"numbers": {"1", "2"}, "signs": {"*", "†"}, "from 5": {"5", "6"}, "others": {"2", "7"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := strings.NewReplacer("†", `\206`)
			pdf := pages(pdfPage{content: body(1) +
				sup(72, 690, "A line with a note", code.Replace(marks[0]), " in the middle of it.") + sup(72, 660, "Another line that ends with a note.", code.Replace(marks[1]), "") +
				noteLine + note(110, code.Replace(marks[0]), "The first note of the page.") + note(98, code.Replace(marks[1]), "The second note of the page.")})
			parts, _ := docxOf(t, pdf)
			checkSchema(t, parts)
			notes := string(parts["word/footnotes.xml"])
			main := string(parts["word/document.xml"])
			if strings.Contains(main, "first note of") || strings.Count(main, "<w:footnoteReference ") != 2 || !strings.Contains(notes, "The first note of the page.") || strings.Count(notes, `<w:footnote w:id=`) != 2 {
				t.Errorf("no footnotes: %s\n%s", main, notes)
			}
			settings := string(parts["word/settings.xml"])
			own, signs, start := strings.Contains(main, "customMarkFollows"), strings.Contains(settings, `<w:numFmt w:val="chicago"/>`), strings.Contains(settings, `<w:numStart w:val="5"/>`)
			if own != (name == "others") || signs != (name == "signs") || start != (name == "from 5") {
				t.Errorf("own marks: %v, signs: %v, start: %v", own, signs, start)
			}
			for _, part := range []string{"word/_rels/document.xml.rels", "[Content_Types].xml", "word/settings.xml"} {
				if !strings.Contains(string(parts[part]), "footnote") {
					t.Errorf("no footnotes in %s", part)
				}
			}
		})
	}
}

func TestFootnotesOfText(t *testing.T) {
	t.Parallel()
	pdf := pages(pdfPage{content: body(1) + sup(72, 690, "A line with a note", "1", " in the middle.") + noteLine + note(110, "1", "The note of the page.")})
	e := newEngine(t, pdfread.Options{})
	md := string(mustConvert(t, e, fileops.Args{"convert_to": "md"}, pdf)[0].b)
	if !strings.Contains(md, "A line with a note[^1] in the middle.") || !strings.Contains(md, "\n[^1]: The note of the page.\n") {
		t.Errorf("Markdown %q", md)
	}
	page := mustConvert(t, e, fileops.Args{"convert_to": "html"}, pdf)[0].b
	checkHTML(t, page)
	if s := string(page); !strings.Contains(s, `<sup id="ref-1"><a href="#note-1">1</a></sup>`) || !strings.Contains(s, `<p id="note-1"><sup><a href="#ref-1">1</a></sup> The note of the page.</p>`) {
		t.Errorf("HTML %s", s)
	}
}

// Raised numbers and small text that are no footnotes stay as they are.
func TestNoFootnotes(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"a power without a note":     sup(72, 690, "The area is 5 m", "2", " in all."),
		"two places with one mark":   sup(72, 690, "A word", "1", " here.") + sup(72, 660, "A word", "1", " there.") + note(110, "1", "The note of the page."),
		"a note without a place":     sup(72, 690, "A word", "2", " here.") + note(110, "1", "The note of the page."),
		"references":                 sup(72, 690, "As others found", "1", " before.") + lines("F1", 9, 72, 110, 11, "1. An author, a title, a year.", "2. Another author, a title, a year."),
		"a note as large as text":    sup(72, 690, "A word", "1", " here.") + fmt.Sprintf("BT /F1 7 Tf 4 Ts 72 110 Td (1) Tj 0 Ts /F1 12 Tf ( %s) Tj ET\n", prose(7, 8)),
		"a formula at the bottom":    sup(72, 690, "The value x", "2", " is small.") + note(110, "2", "+ 4"),
		"a note high up on the page": sup(72, 700, "A word", "1", " here.") + note(600, "1", "The note of a table."),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts, text := docxOf(t, pages(pdfPage{content: body(1) + content}))
			if parts["word/footnotes.xml"] != nil || strings.Contains(string(parts["word/document.xml"]), "footnoteReference") {
				t.Errorf("a footnote in %s", text)
			}
		})
	}
}
