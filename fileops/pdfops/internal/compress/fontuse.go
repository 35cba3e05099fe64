package compress

import (
	"context"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// fontUses holds the character codes that a document shows, by the object number
// of the font.
type fontUses struct {
	doc   *pdf.Document
	codes map[int]map[int]bool
	wide  map[int]bool // by font: codes have two bytes
	// unsure is set if text is shown in an unknown font. Then the codes of all
	// fonts are uncertain.
	unsure bool
	page   *pageUse // page that shows the text; nil outside pages
}

// inheritedFont stands for the font that a form inherits from the surrounding
// content.
const inheritedFont = types.Name("inherited")

func newFontUses(d *pdf.Document) *fontUses {
	return &fontUses{doc: d, codes: make(map[int]map[int]bool), wide: make(map[int]bool)}
}

// show adds the codes of text that is shown in a font. A missing font uses no
// font file.
func (u *fontUses) show(font types.Object, strings [][]byte) {
	if font == nil || len(strings) == 0 {
		return
	}
	ref, ok := font.(types.IndirectRef)
	if !ok {
		_, direct := font.(types.Dict)
		u.unsure = u.unsure || !direct
		return
	}
	nr := ref.ObjectNumber.Value()
	used, known := u.codes[nr]
	if !known {
		used = make(map[int]bool)
		u.codes[nr] = used
		u.wide[nr] = u.doc.Name(u.doc.Dict(font)["Subtype"]) == "Type0"
	}
	wide := u.wide[nr]
	var here bitset
	if u.page != nil {
		here = u.page.codes[nr]
		defer func() { u.page.codes[nr] = here }()
	}
	for _, raw := range strings {
		b := pdf.StringBytes(raw)
		if !wide {
			for _, c := range b {
				used[int(c)] = true
				here.add(int(c))
			}
			continue
		}
		for i := 0; i < len(b); i += 2 {
			c := int(b[i]) << 8
			if i+1 < len(b) {
				c |= int(b[i+1])
			} else {
				used[int(b[i])] = true // viewers interpret half a code differently
			}
			used[c] = true
			here.add(c)
		}
	}
}

// otherForms follows forms and patterns that no page refers to, such as the
// icons of buttons, to collect their characters.
func (w *walker) otherForms(ctx context.Context) error {
	w.page0, w.textOnly = nil, true
	for _, nr := range w.doc.Reachable() {
		s, ok := w.doc.Objects[nr].(*types.StreamDict)
		if !ok || w.forms[nr] {
			continue
		}
		if w.doc.Name(s.Dict["Subtype"]) != "Form" && w.doc.Integer(s.Dict["PatternType"]) != 1 {
			continue
		}
		if err := w.form(ctx, pdf.Ref(nr), nil, pdf.IdentityMatrix(), 0); err != nil {
			return err
		}
	}
	return nil
}
