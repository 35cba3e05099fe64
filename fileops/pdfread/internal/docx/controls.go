package docx

import (
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

// symbolFont is the font of check boxes in Word.
const symbolFont = "MS Gothic"

// control writes the start of a content control for a form field (ECMA-376, part
// 1, 17.5.2; check boxes: MS-DOCX, 2.6.1). Its content and end follow. plain means
// that the content is one paragraph in the style of the paragraph: LibreOffice
// drops any other style from a control for plain text.
func (x *writer) control(f *model.Field, plain bool) {
	x.controls++
	x.out.WriteString(`<w:sdt><w:sdtPr>`)
	if s := short(f.Label); s != "" {
		x.printf(`<w:alias w:val="%s"/>`, ooxml.Escape(s))
	}
	if s := short(f.Name); s != "" {
		x.printf(`<w:tag w:val="%s"/>`, ooxml.Escape(s))
	}
	x.printf(`<w:id w:val="%d"/>`, x.controls)
	if f.ReadOnly {
		x.out.WriteString(`<w:lock w:val="contentLocked"/>`)
	}
	switch f.Kind {
	case model.ChoiceField:
		kind := "dropDownList"
		if f.Editable {
			kind = "comboBox"
		}
		x.out.WriteString(`<w:` + kind + `>`)
		for _, o := range f.Options {
			o = ooxml.Escape(o)
			x.printf(`<w:listItem w:displayText="%s" w:value="%s"/>`, o, o)
		}
		x.out.WriteString(`</w:` + kind + `>`)
	case model.CheckField, model.RadioField:
		on, off := f.State(true), f.State(false)
		if x.onPicture {
			on, off = f.Tick(), model.Blank
		}
		checked := 0
		if f.Checked {
			checked = 1
		}
		x.printf(`<w14:checkbox><w14:checked w14:val="%d"/><w14:checkedState w14:val="%04X" w14:font="%s"/><w14:uncheckedState w14:val="%04X" w14:font="%s"/></w14:checkbox>`,
			checked, firstRune(on), symbolFont, firstRune(off), symbolFont)
	case model.TextField:
		if plain {
			x.out.WriteString(`<w:text w:multiLine="1"/>`)
		}
	}
	x.out.WriteString(`</w:sdtPr><w:sdtContent>`)
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// short returns s on one line, cut to the 64 characters that Word accepts as the
// name of a control.
func short(s string) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	return string(r[:min(len(r), 64)])
}
