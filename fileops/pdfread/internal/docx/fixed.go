package docx

import (
	"cmp"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// fixed writes a page that is not flowing text: one paragraph that holds the
// picture of the page and its text boxes, all at places relative to the page.
// section are the properties of its section, or "" for the last one.
func (x *writer) fixed(f *model.Fixed, section string) {
	x.leaf, x.dark, x.onPicture = x.d.Leaves[f.Number], true, true
	defer func() { x.dark, x.onPicture = false, false }()
	x.out.WriteString(`<w:p><w:pPr><w:spacing w:before="0" w:after="0" w:line="20" w:lineRule="exact"/><w:rPr><w:sz w:val="2"/><w:szCs w:val="2"/></w:rPr>` + section + `</w:pPr>`)
	if x.d.Targets[f.Number] {
		x.bookmark(&model.Placed{Bookmark: f.Number})
	}
	for _, b := range f.Boxes {
		if b.Behind {
			x.box(b)
		}
	}
	if m := f.Picture; m != nil {
		x.anchor(place{W: f.W, H: f.H, behind: true, name: "Page"}, nsPic, func() { x.pic(m, emu(f.W), emu(f.H)) })
	}
	x.rules(f.Rules, true)
	for _, p := range f.Pictures {
		x.anchor(place{L: p.L, T: p.T, W: p.W(), H: p.H(), behind: true, name: "Picture"}, nsPic, func() { x.pic(p.Media, emu(p.W()), emu(p.H())) })
	}
	for _, b := range f.Boxes {
		if !b.Behind {
			x.box(b)
		}
	}
	x.out.WriteString(`</w:p>`)
}

// A place is the place of a drawing on its page, in points.
type place struct {
	L, T, W, H float64
	behind     bool // behind the text of the document
	inFlow     bool // L and T are relative to the column and the paragraph
	name       string
}

// anchor writes a run with a drawing at a fixed place. content writes its
// graphic, of the kind uri.
func (x *writer) anchor(p place, uri string, content func()) {
	x.pictures++
	behind := 0
	if p.behind {
		behind = 1
	}
	x.printf(`<w:r><w:drawing><wp:anchor distT="0" distB="0" distL="0" distR="0" simplePos="0" relativeHeight="%d" behindDoc="%d" locked="0" layoutInCell="1" allowOverlap="1">`, x.pictures, behind)
	fromH, fromV := "page", "page"
	if p.inFlow {
		fromH, fromV = "column", "paragraph"
	}
	x.printf(`<wp:simplePos x="0" y="0"/><wp:positionH relativeFrom="%s"><wp:posOffset>%d</wp:posOffset></wp:positionH><wp:positionV relativeFrom="%s"><wp:posOffset>%d</wp:posOffset></wp:positionV>`, fromH, emu(p.L), fromV, emu(p.T))
	x.printf(`<wp:extent cx="%d" cy="%d"/><wp:wrapNone/><wp:docPr id="%d" name="%s %d"/><wp:cNvGraphicFramePr/><a:graphic><a:graphicData uri="%s">`, max(1, emu(p.W)), max(1, emu(p.H)), x.pictures, p.name, x.pictures, uri)
	content()
	x.out.WriteString(`</a:graphicData></a:graphic></wp:anchor></w:drawing></w:r>`)
}

// box writes a text box.
func (x *writer) box(b *model.Box) {
	first, last := b.Lines[0], b.Lines[len(b.Lines)-1]
	pitch := b.Pitch
	pitch = cmp.Or(pitch, 1.2*first.Size)
	pitch = max(pitch, 1)
	rtl := first.Words[0].RTL
	full := isFull(b)
	p := place{L: b.L, T: b.T, W: b.W(), H: b.H(), behind: b.Behind, name: "Text"}
	direction := "horz"
	switch b.Turn {
	case 1, 3:
		direction = "vert"
		if b.Turn == 3 {
			direction = "vert270"
		}
		// The line is in the middle of the box, and the box may be longer.
		p.L, p.W = (b.L+b.R-pitch)/2, pitch
		slack := 0.1*b.H() + 6
		p.H += slack
		if b.Turn == 3 {
			p.T -= slack
		}
	default:
		// Programs put the baseline at four fifths of a line of exact height.
		p.T, p.H = first.Base-0.8*pitch, last.Base-first.Base+pitch+0.1*first.Size
		slack := 0.1*b.W() + 6
		switch w := textWidth(b); {
		case full:
			slack = 1
		case w > 1.05*b.W(): // what wraps is below the box, and lost
			slack += 1.1 * (w - b.W())
		}
		p.W += slack
		switch {
		case b.Align == model.AlignCentre:
			p.L -= slack / 2
		case b.Align == model.AlignRight || rtl:
			p.L -= slack
		}
	}
	x.anchor(p, nsShape, func() {
		x.textBox(p, direction, func() { x.boxText(b, p, pitch, full, rtl) })
	})
}

// textWidth estimates the width of the longest line of a box. It is more than that of the box if words
// overlap each other, or if they run askew.
func textWidth(b *model.Box) (most float64) {
	const char, space = 0.6, 0.25 // of the size
	for _, l := range b.Lines {
		sum := 0.0
		for i, w := range l.Words {
			width := w.W()
			if b.Turn == model.Askew {
				width = char * w.Size * float64(utf8.RuneCountInString(w.Text()))
			}
			if sum += width; i > 0 && !w.Glued {
				sum += space * w.Size
			}
		}
		most = max(most, sum)
	}
	return most
}

// textBox writes the shape of a text box. content writes its paragraphs.
func (x *writer) textBox(p place, direction string, content func()) {
	x.out.WriteString(`<wps:wsp><wps:cNvSpPr txBox="1"/><wps:spPr>`)
	x.printf(`<a:xfrm><a:off x="0" y="0"/><a:ext cx="%d" cy="%d"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom><a:noFill/><a:ln><a:noFill/></a:ln></wps:spPr>`, max(1, emu(p.W)), max(1, emu(p.H)))
	x.out.WriteString(`<wps:txbx><w:txbxContent>`)
	content()
	x.printf(`</w:txbxContent></wps:txbx><wps:bodyPr rot="0" vert="%s" wrap="square" lIns="0" tIns="0" rIns="0" bIns="0" anchor="t"><a:noAutofit/></wps:bodyPr></wps:wsp>`, direction)
}

// boxText writes the paragraph of a text box. Its lines can wrap by themselves if
// full is set.
func (x *writer) boxText(b *model.Box, p place, pitch float64, full, rtl bool) {
	block := &model.Block{Rect: b.Rect, Lines: b.Lines, Region: b.Rect}
	defer func() { x.narrow, x.goesOn = 0, false }()
	switch {
	case full:
		x.boxStart(b, pitch, full, rtl)
		x.narrow = x.d.Squeeze(b.Lines, p.W, true)
		x.text(b.Lines, block, x.d.Body, nil)
		x.out.WriteString(`</w:p>`)
	case len(b.Lines) > 1 && fieldOf(b) != nil: // programs lose line breaks next to a control
		x.field = fieldOf(b)
		x.control(x.field, false)
		x.goesOn = true
		for _, l := range b.Lines {
			x.boxStart(b, pitch, full, rtl)
			x.narrow = x.d.Fit(l, false)
			x.text([]*model.Line{l}, block, x.d.Body, nil)
			x.out.WriteString(`</w:p>`)
		}
		x.out.WriteString(`</w:sdtContent></w:sdt>`)
		x.field = nil
	default:
		x.boxStart(b, pitch, full, rtl)
		for i, l := range b.Lines {
			if i > 0 {
				x.out.WriteString(`<w:r><w:br/></w:r>`)
			}
			x.narrow = x.d.Fit(l, b.Turn%2 == 1)
			x.text([]*model.Line{l}, block, x.d.Body, nil)
		}
		x.out.WriteString(`</w:p>`)
	}
}

// boxStart starts a paragraph of a text box.
func (x *writer) boxStart(b *model.Box, pitch float64, full, rtl bool) {
	x.out.WriteString(`<w:p><w:pPr>`)
	if rtl {
		x.out.WriteString(`<w:bidi/>`)
	}
	x.printf(`<w:spacing w:before="0" w:after="0" w:line="%d" w:lineRule="exact"/>`, max(20, twips(pitch)))
	switch {
	case full:
		x.out.WriteString(`<w:jc w:val="both"/>`)
	case b.Align == model.AlignCentre:
		x.out.WriteString(`<w:jc w:val="center"/>`)
	case b.Align == model.AlignRight && !rtl:
		x.out.WriteString(`<w:jc w:val="right"/>`)
	}
	x.out.WriteString(`</w:pPr>`)
}

// fieldOf returns the form field that shows all text of a box, or nil.
func fieldOf(b *model.Box) *model.Field {
	f := b.Lines[0].Words[0].Field
	for _, l := range b.Lines {
		for _, w := range l.Words {
			if w.Field != f {
				return nil
			}
		}
	}
	return f
}

// isFull reports whether the lines of a box are justified, so that they can wrap
// by themselves.
func isFull(b *model.Box) bool {
	n := len(b.Lines)
	if n < 3 || b.Align != model.AlignLeft {
		return false
	}
	for _, l := range b.Lines[:n-1] {
		if math.Abs(l.L-b.L) > 2 || math.Abs(l.R-b.R) > 2 {
			return false
		}
	}
	return true
}

// pic writes the graphic of a picture.
func (x *writer) pic(m *model.Media, cx, cy int) {
	id, ok := x.mediaRel[m]
	if !ok {
		id = x.relate("image", fmt.Sprintf("media/image%d.%s", m.ID, m.Ext), false)
		x.mediaRel[m], x.used[m] = id, true
	}
	n := x.pictures
	x.printf(`<pic:pic><pic:nvPicPr><pic:cNvPr id="%d" name="Picture %d"/><pic:cNvPicPr/></pic:nvPicPr>`, n, n)
	x.printf(`<pic:blipFill><a:blip r:embed="%s"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>`, id)
	x.printf(`<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="%d" cy="%d"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic>`, cx, cy)
}
