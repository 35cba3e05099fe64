package pdfread_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// form returns a page with a filled text field, an empty one, a check box and a
// choice. extra is more content of the page.
func form(extra string) []byte {
	p := &pdfFile{}
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	marks := p.add("<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>")
	look := func(w, h float64, content string) string {
		return p.stream(fmt.Sprintf("/Type/XObject/Subtype/Form/BBox[0 0 %g %g]/Resources<</Font<</F1 %s/ZD %s>>>>", w, h, font, marks), content)
	}
	widget := func(y, w float64, rest string) string {
		return p.add("<</Type/Annot/Subtype/Widget/F 4/Rect[150 %g %g %g]%s>>", y, 150+w, y+16, rest)
	}
	on, off := look(16, 16, "0 0 m 16 0 l 16 16 l 0 16 l h S BT /ZD 12 Tf 3 4 Td (4) Tj ET"), look(16, 16, "0 0 m 16 0 l 16 16 l 0 16 l h S")
	fields := []string{
		widget(700, 200, "/FT/Tx/T(name)/TU(Your name)/V(Ada Lovelace)/AP<</N "+look(200, 16, "BT /F1 12 Tf 2 4 Td (Ada Lovelace) Tj ET")+">>"),
		widget(670, 200, "/FT/Tx/T(town)/AP<</N "+look(200, 16, "")+">>"),
		widget(640, 16, "/FT/Btn/T(agree)/V/Yes/AS/Yes/AP<</N<</Yes "+on+"/Off "+off+">>>>"),
		widget(610, 100, "/FT/Ch/Ff 131072/T(colour)/Opt[(Red)(Blue & green)]/V(Blue & green)/AP<</N "+look(100, 16, "BT /F1 12 Tf 2 4 Td (Blue & green) Tj ET")+">>"),
	}
	text := lines("F1", 12, 72, 704, 30, "Name", "Town", "Agree", "Colour") + extra
	tree := len(p.objs) + 3
	page := p.add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 595 842]/Annots[%s]/Resources<</Font<</F1 %s>>>>/Contents %d 0 R>>", tree, strings.Join(fields, " "), font, tree-1)
	p.stream("", text)
	p.add("<</Type/Pages/Kids[%s]/Count 1>>", page)
	return p.finish(p.add("<</Type/Catalog/Pages %d 0 R/AcroForm<</Fields[%s]/DR<</Font<</F1 %s/ZD %s>>>>>>>>", tree, strings.Join(fields, " "), font, marks))
}

// Form fields become content controls with their values, in flowing text and on
// pages that keep their look.
func TestDocxFormFields(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string]string{"flow": "", "fixed": " 0 0 1 rg 100 200 m 300 550 500 550 550 200 c f BT /F1 12 Tf 1 g 310 320 Td (over a drawing) Tj ET"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts, _ := docxOf(t, form(extra))
			checkSchema(t, parts)
			main := string(parts["word/document.xml"])
			if n := strings.Count(main, "<w:sdt>"); n != 4 {
				t.Fatalf("%d controls, want 4: %s", n, main)
			}
			mark := "☒"
			if name == "fixed" {
				mark = "✔" // the picture has the box
			}
			for _, want := range []string{
				`<w:alias w:val="Your name"/><w:tag w:val="name"/>`, `>Ada Lovelace</w:t></w:r></w:sdtContent>`, `<w:tag w:val="town"/>`,
				`<w:tag w:val="agree"/>`, `<w14:checked w14:val="1"/>`, `>` + mark + `</w:t></w:r></w:sdtContent>`,
				`<w:dropDownList><w:listItem w:displayText="Red" w:value="Red"/><w:listItem w:displayText="Blue &amp; green" w:value="Blue &amp; green"/></w:dropDownList>`,
				`>Blue &amp; green</w:t></w:r></w:sdtContent>`,
			} {
				if !strings.Contains(main, want) {
					t.Errorf("no %s", want)
				}
			}
		})
	}
}

func TestHTMLFormFields(t *testing.T) {
	t.Parallel()
	out := mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "html"}, form(""))
	page := string(out[0].b)
	checkHTML(t, out[0].b)
	for _, want := range []string{
		`<input type="text" name="name" aria-label="Your name" value="Ada Lovelace">`, `<input type="text" name="town" value="">`,
		`<input type="checkbox" name="agree" checked>`, `<select name="colour"><option>Red</option><option selected>Blue &amp; green</option></select>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
	}
}

// Dots and underscores to write on are the content of the field over them, also
// next to text. Fields over other printed text have no control.
func TestDocxFieldsOverLeaders(t *testing.T) {
	t.Parallel()
	p := &pdfFile{}
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	var fields []string
	for i, name := range []string{"dots", "ellipses", "line", "text"} {
		fields = append(fields, p.add("<</Type/Annot/Subtype/Widget/F 4/FT/Tx/T(%s)/Rect[110 %d 250 %d]>>", name, 700-30*i, 716-30*i))
	}
	text := lines("F1", 12, 72, 704, 30, "Name:"+strings.Repeat(".", 55), "Town:"+strings.Repeat("\x85", 15), "Date:"+strings.Repeat("_", 28), "This text is printed under a field")
	tree := len(p.objs) + 3
	page := p.add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 595 842]/Annots[%s]/Resources<</Font<</F1 %s>>>>/Contents %d 0 R>>", tree, strings.Join(fields, " "), font, tree-1)
	p.stream("", text)
	p.add("<</Type/Pages/Kids[%s]/Count 1>>", page)
	parts, plain := docxOf(t, p.finish(p.add("<</Type/Catalog/Pages %d 0 R/AcroForm<</Fields[%s]>>>>", tree, strings.Join(fields, " "))))
	checkSchema(t, parts)
	main := string(parts["word/document.xml"])
	for name, want := range map[string]bool{"dots": true, "ellipses": true, "line": true, "text": false} {
		if got := strings.Contains(main, `<w:tag w:val="`+name+`"/>`); got != want {
			t.Errorf("%s: control %v, want %v", name, got, want)
		}
	}
	if !strings.Contains(plain, "Name:.....") || !strings.Contains(plain, "Town:………") || !strings.Contains(plain, "Date:_____") || !strings.Contains(plain, "printed under a field") {
		t.Errorf("text %q", plain)
	}
	if main := main[strings.Index(main, `<w:tag w:val="dots"/>`):]; !strings.Contains(main[:strings.Index(main, "</w:sdt>")], "......") {
		t.Errorf("the dots are not the content of their control")
	}
}

// Viewers draw the value of a field without an appearance, so it is text of the page. A field with an
// empty appearance shows nothing.
func TestFieldsWithoutAppearance(t *testing.T) {
	t.Parallel()
	undrawn := string(form(""))
	cut := regexp.MustCompile(`(/V\(Ada Lovelace\))/AP<</N \d+ 0 R>>`)
	if !cut.MatchString(undrawn) {
		t.Fatal("no field to change")
	}
	undrawn = cut.ReplaceAllStringFunc(undrawn, func(s string) string { // offsets stay
		value := cut.FindStringSubmatch(s)[1]
		return value + strings.Repeat(" ", len(s)-len(value))
	})
	e := newEngine(t, pdfread.Options{})
	for _, to := range []string{"txt", "docx", "pptx", "html", "md"} {
		if text := converted(t, e, to, undrawn); !strings.Contains(text, "Ada Lovelace") {
			t.Errorf("%s: the value is missing: %q", to, text)
		}
	}
}

// Viewers also draw the values of a form that asks for it. The appearance of a field may be empty
// there.
func TestFieldsThatViewersDraw(t *testing.T) {
	t.Parallel()
	empty := strings.Replace(string(form("")), "/T(town)", "/V(Turin)/T(town)", 1)
	asks := strings.Replace(empty, "/AcroForm<<", "/AcroForm<</NeedAppearances true", 1)
	refuses := strings.Replace(empty, "/AcroForm<<", "/AcroForm<</NeedAppearances false", 1)
	e := newEngine(t, pdfread.Options{})
	for _, to := range []string{"txt", "docx"} {
		if text := converted(t, e, to, asks); !strings.Contains(text, "Turin") || strings.Count(text, "Ada Lovelace") != 1 {
			t.Errorf("%s: text %q", to, text)
		}
		for name, file := range map[string]string{"no entry": empty, "false": refuses} {
			if text := converted(t, e, to, file); strings.Contains(text, "Turin") {
				t.Errorf("%s, %s: text %q", to, name, text)
			}
		}
	}
}

// converted returns the text of the document that is made of a PDF file.
func converted(t *testing.T, e *pdfread.Engine, to, file string) string {
	t.Helper()
	out := mustConvert(t, e, fileops.Args{"convert_to": to}, []byte(file))
	parts := map[string]string{"docx": "word/document.xml", "pptx": "ppt/slides/slide1.xml"}
	if parts[to] == "" {
		return string(out[0].b)
	}
	return strings.Join(strings.Fields(regexp.MustCompile("<[^>]*>").ReplaceAllString(string(unzip(t, out[0].b)[parts[to]]), " ")), " ")
}
