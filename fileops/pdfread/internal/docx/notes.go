package docx

import (
	"bytes"
	"fmt"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

// raised returns the properties of a mark in text of some size.
func raised(size float64) string {
	n := halfPoints(size)
	return fmt.Sprintf(`<w:rPr><w:rStyle w:val="FootnoteReference"/><w:sz w:val="%d"/><w:szCs w:val="%d"/><w:vertAlign w:val="superscript"/></w:rPr>`, n, n)
}

// noteNumbers returns the elements that number the footnotes.
func (x *writer) noteNumbers() string {
	if len(x.d.Notes) == 0 {
		return ""
	}
	n, out := x.notesBy, ""
	if n.Signs {
		out += `<w:numFmt w:val="chicago"/>`
	}
	if n.Start > 1 {
		out += fmt.Sprintf(`<w:numStart w:val="%d"/>`, n.Start)
	}
	if n.EachPage {
		out += `<w:numRestart w:val="eachPage"/>`
	}
	return out
}

// reference writes the reference to a footnote.
func (x *writer) reference(n *model.Note, size float64) {
	x.notes = append(x.notes, n)
	if !x.notesBy.Own {
		x.printf(`<w:r>%s<w:footnoteReference w:id="%d"/></w:r>`, raised(size), n.ID)
		return
	}
	x.printf(`<w:r>%s<w:footnoteReference w:customMarkFollows="1" w:id="%d"/><w:t>%s</w:t></w:r>`, raised(size), n.ID, ooxml.Escape(n.Mark))
}

// footnotes writes the part with the footnotes (ECMA-376, part 1, 17.11.15), if
// there are any.
func (x *writer) footnotes() {
	if len(x.notes) == 0 {
		return
	}
	outer := x.out
	x.out = new(bytes.Buffer)
	x.leaf = nil // the part has no relations, so its links are text
	x.out.WriteString(ooxml.Header + `<w:footnotes` + rootNS + `>`)
	for i, s := range []string{"separator", "continuationSeparator"} {
		x.printf(`<w:footnote w:type="%s" w:id="%d"><w:p><w:r><w:%s/></w:r></w:p></w:footnote>`, s, i-1, s)
	}
	for _, n := range x.notes {
		x.printf(`<w:footnote w:id="%d">`, n.ID)
		for i, b := range n.Blocks {
			if i == 0 {
				x.lead = `<w:r>` + raised(b.Lines[0].Size) + `<w:footnoteRef/></w:r>`
				if x.notesBy.Own {
					x.lead = `<w:r>` + raised(b.Lines[0].Size) + `<w:t>` + ooxml.Escape(n.Mark) + `</w:t></w:r>`
				}
				if w := b.Lines[0].Words[0]; !w.Glued && w.L > b.L+0.5*w.Size {
					x.lead += `<w:r><w:t xml:space="preserve"> </w:t></w:r>`
				}
			}
			x.paragraph([]*model.Placed{{Block: b}}, "")
		}
		x.out.WriteString(`</w:footnote>`)
	}
	x.out.WriteString(`</w:footnotes>`)
	x.parts = append(x.parts, part{"footnotes.xml", "footnotes", x.out.String()})
	x.relate("footnotes", "footnotes.xml", false)
	x.out = outer
}
