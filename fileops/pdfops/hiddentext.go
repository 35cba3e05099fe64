package pdfops

import (
	"bytes"
	"maps"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A hiddenText removes the invisible text of pages, such as the layer of an earlier
// recognition, and can bring it back.
type hiddenText struct {
	doc     *pdf.Document
	removed map[int]page // what the changed pages had, by index
	forms   map[formKey]types.Object
}

// page holds the entries of a page that the removal replaces.
type page struct{ contents, resources types.Object }

// A formKey names a form XObject and the rendering mode with which it is drawn.
type formKey struct{ nr, mode int }

// maxForms limits the depth of nested form XObjects.
const maxForms = 12

// mixed stands for several rendering modes.
const mixed = -1

// invisible is the text rendering mode of text that is not painted (ISO 32000-2, 9.3.6).
const invisible = 3

// removeHiddenText removes the invisible text of pages.
func removeHiddenText(d *pdf.Document, pages []pdf.Page) *hiddenText {
	h := &hiddenText{doc: d, removed: make(map[int]page), forms: make(map[formKey]types.Object)}
	seen := make(map[int]bool)
	for i, p := range pages {
		nr := p.Ref.ObjectNumber.Value()
		if nr != 0 && seen[nr] { // a page can occur twice in the tree
			continue
		}
		seen[nr] = true
		b, complete := d.Content(p.Dict["Contents"])
		if !complete {
			continue
		}
		before := page{p.Dict["Contents"], p.Dict["Resources"]}
		content, resources, changed := h.strip(b, d.Dict(p.Attr("Resources")), 0, 0)
		if !changed {
			continue
		}
		h.removed[i] = before
		p.Dict["Contents"] = types.Array{h.stream(types.Dict{}, content)}
		if resources != nil {
			p.Dict["Resources"] = resources
		}
	}
	return h
}

// restore brings the text of a page back.
func (h *hiddenText) restore(i int, p pdf.Page) {
	before, ok := h.removed[i]
	if !ok {
		return
	}
	p.Dict["Contents"] = before.contents
	if before.resources != nil {
		p.Dict["Resources"] = before.resources
	} else {
		delete(p.Dict, "Resources")
	}
	delete(h.removed, i)
}

func (h *hiddenText) stream(dict types.Dict, content []byte) types.IndirectRef {
	s := &types.StreamDict{Dict: dict}
	pdf.SetContent(s, pdf.Deflate(content), types.PDFFilter{Name: "FlateDecode"})
	return h.doc.Add(s)
}

// An edit replaces a part of a content stream.
type edit struct {
	from, to int
	by       string
}

// strip returns content without the text objects that show only invisible text, and the
// resources with forms without such text, or nil if they stay. mode is the rendering mode
// at the start. Text objects that mix visible and invisible text stay, because the place
// of one part depends on the other.
func (h *hiddenText) strip(content []byte, resources types.Dict, mode, depth int) (out []byte, changed types.Dict, ok bool) {
	var edits, pending []edit
	var saved []int
	var own types.Dict            // the XObjects, once one is replaced
	drawn := make(map[string]int) // rendering modes of the XObjects
	lexer := pdf.NewLexer(content)
	start, number, name := -1, 0.0, "" // of the operands of the next operator
	shown, inText := false, false      // the text object shows visible text
	for {
		at := lexer.Pos()
		t := lexer.Next()
		if t.Kind == pdf.TokenEnd {
			break
		}
		if start < 0 {
			start = at
		}
		switch t.Kind {
		case pdf.TokenNumber:
			number = t.Num
		case pdf.TokenName:
			name = t.Text
		}
		if t.Kind != pdf.TokenOperator {
			continue
		}
		switch t.Text {
		case "q":
			saved = append(saved, mode)
		case "Q":
			if n := len(saved); n > 0 {
				mode, saved = saved[n-1], saved[:n-1]
			}
		case "Tr":
			mode = int(number)
		case "BT":
			shown, inText, pending = false, true, nil
		case "ET":
			if inText && !shown {
				edits = append(edits, pending...)
			}
			inText, pending = false, nil
		case "Tj", "TJ", "'", "\"":
			switch {
			case mode != invisible || t.Text == "\"":
				shown = true
			case t.Text == "'":
				pending = append(pending, edit{start, lexer.Pos(), " T* "})
			default:
				pending = append(pending, edit{start, lexer.Pos(), " "})
			}
		case "ID":
			lexer.SkipInlineImage()
		case "Do":
			objects := h.doc.Dict(resources["XObject"])
			if before, again := drawn[name]; again && before != mode { // its text is visible in one of the places
				if drawn[name] = mixed; own != nil {
					own[name] = objects[name]
				}
				break
			}
			drawn[name] = mode
			if form, replaced := h.form(objects[name], resources, mode, depth); replaced {
				if own == nil {
					own = maps.Clone(objects)
				}
				own[name] = form
			}
		}
		start = -1
	}
	if len(edits) == 0 && own == nil {
		return nil, nil, false
	}
	var b bytes.Buffer
	last := 0
	for _, e := range edits {
		b.Write(content[last:e.from])
		b.WriteString(e.by)
		last = e.to
	}
	b.Write(content[last:])
	if own != nil {
		changed = maps.Clone(resources)
		changed["XObject"] = own
	}
	return b.Bytes(), changed, true
}

// form returns a copy of a form XObject without invisible text. It reports false if the
// object has none, or is no form.
func (h *hiddenText) form(o types.Object, around types.Dict, mode, depth int) (types.Object, bool) {
	ref, ok := o.(types.IndirectRef)
	s := h.doc.Stream(o)
	if !ok || s == nil || depth >= maxForms || h.doc.Name(s.Dict["Subtype"]) != "Form" {
		return nil, false
	}
	key := formKey{ref.ObjectNumber.Value(), mode}
	if done, ok := h.forms[key]; ok {
		return done, done != nil
	}
	h.forms[key] = nil // a form may draw itself
	content, err := pdf.Decode(s)
	if err != nil {
		return nil, false
	}
	resources := h.doc.Dict(s.Dict["Resources"])
	if resources == nil {
		resources = around
	}
	stripped, changed, ok := h.strip(content, resources, mode, depth+1)
	if !ok {
		return nil, false
	}
	dict := maps.Clone(s.Dict)
	if changed != nil {
		dict["Resources"] = changed
	}
	done := h.stream(dict, stripped)
	h.forms[key] = done
	return done, true
}
