// Package pptx writes the pages of a document as a presentation in PresentationML
// (ECMA-376, part 1, 19): a slide for each page, with text boxes over a picture of
// everything else.
package pptx

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

const (
	nsMain = "http://schemas.openxmlformats.org/presentationml/2006/main"
	nsDraw = "http://schemas.openxmlformats.org/drawingml/2006/main"
	kind   = "application/vnd.openxmlformats-officedocument.presentationml."
	rootNS = ` xmlns:a="` + nsDraw + `" xmlns:r="` + ooxml.RelationshipNS + `" xmlns:p="` + nsMain + `"`
)

// The smallest and the largest side of a slide in points (ECMA-376, part 1, 19.7.18).
const (
	Smallest = 72
	Largest  = 4032
)

// Write writes d, all pages of which are [model.Fixed], on slides of w × h points. A
// smaller page is in the middle of its slide. The result depends only on its arguments.
func Write(ctx context.Context, out io.Writer, d *model.Document, w, h float64) error {
	z := zip.NewWriter(out)
	p := &deck{d: d, z: z, w: w, h: h, numbers: make(map[int]int), stored: make(map[*model.Media]bool)}
	for i, s := range d.Sections {
		p.numbers[s.Page] = i + 1
	}
	for i, s := range d.Sections {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		p.slide(i+1, s.Fixed)
	}
	p.rest()
	if p.err != nil {
		return p.err
	}
	return z.Close()
}

// A deck is a presentation that is being written.
type deck struct {
	d       *model.Document
	z       *zip.Writer
	w, h    float64
	numbers map[int]int // of slides, by page
	stored  map[*model.Media]bool
	err     error
}

func (p *deck) add(name, content string) {
	if p.err != nil {
		return
	}
	var w io.Writer
	if w, p.err = p.z.Create(name); p.err == nil {
		_, p.err = io.WriteString(w, content)
	}
}

// relationships returns a part with relationships. Each is its kind, target and mode.
func relationships(all [][3]string) string {
	var b strings.Builder
	b.WriteString(ooxml.Header + `<Relationships xmlns="` + ooxml.PackageNS + `relationships">`)
	for i, r := range all {
		space := ooxml.RelationshipNS + "/"
		if r[0] == "metadata/core-properties" {
			space = ooxml.PackageNS + "relationships/"
		}
		fmt.Fprintf(&b, `<Relationship Id="rId%d" Type="%s%s" Target="%s"`, i+1, space, r[0], ooxml.Escape(r[1]))
		if r[2] != "" {
			fmt.Fprintf(&b, ` TargetMode="%s"`, r[2])
		}
		b.WriteString(`/>`)
	}
	b.WriteString(`</Relationships>`)
	return b.String()
}

// A slide is one page.
type slide struct {
	*deck
	out    bytes.Buffer
	rels   [][3]string
	ids    map[[3]string]string
	shapes int
	dx, dy float64 // of the page on the slide
	leaf   *model.Leaf
}

func (s *slide) printf(format string, args ...any) { fmt.Fprintf(&s.out, format, args...) }

// relate returns the id of a relationship.
func (s *slide) relate(kind, target, mode string) string {
	r := [3]string{kind, target, mode}
	if s.ids[r] == "" {
		s.rels = append(s.rels, r)
		s.ids[r] = fmt.Sprintf("rId%d", len(s.rels))
	}
	return s.ids[r]
}

// shape returns the properties that every shape starts with.
func (s *slide) shape(name, description string) string {
	s.shapes++
	if description != "" {
		description = ` descr="` + ooxml.Escape(description) + `"`
	}
	return fmt.Sprintf(`<p:cNvPr id="%d" name="%s %d"%s/>`, s.shapes+1, name, s.shapes, description)
}

// place returns the transform of a shape.
func (s *slide) place(r geom.Rect) string {
	return fmt.Sprintf(`<a:xfrm><a:off x="%d" y="%d"/><a:ext cx="%d" cy="%d"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom>`,
		emu(r.L+s.dx), emu(r.T+s.dy), max(1, emu(r.W())), max(1, emu(r.H())))
}

// emu converts points to English metric units.
func emu(pt float64) int { return int(math.Round(pt * 12700)) }

// slide writes the slide of a page.
func (p *deck) slide(number int, f *model.Fixed) {
	s := &slide{deck: p, ids: make(map[[3]string]string), dx: (p.w - f.W) / 2, dy: (p.h - f.H) / 2, leaf: p.d.Leaves[f.Number]}
	s.relate("slideLayout", "../slideLayouts/slideLayout1.xml", "")
	s.out.WriteString(ooxml.Header + `<p:sld` + rootNS + `><p:cSld><p:spTree>` + emptyTree)
	for _, b := range f.Boxes {
		if b.Behind {
			s.box(b)
		}
	}
	page := geom.Rect{R: f.W, B: f.H}
	if f.Picture != nil {
		s.picture(f.Picture, page, fmt.Sprintf("Page %d", f.Number))
	}
	for _, r := range f.Rules {
		l := r.Line()
		half := r.Width / 2
		if r.Horizontal {
			l.T, l.B = l.T-half, l.B+half
		} else {
			l.L, l.R = l.L-half, l.R+half
		}
		s.printf(`<p:sp><p:nvSpPr>%s<p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr>%s<a:solidFill><a:srgbClr val="%06X"/></a:solidFill><a:ln><a:noFill/></a:ln></p:spPr></p:sp>`, s.shape("Line", ""), s.place(l), r.Colour)
	}
	for _, m := range f.Pictures {
		s.picture(m.Media, m.Rect, m.Alt)
	}
	for _, b := range f.Boxes {
		if !b.Behind {
			s.box(b)
		}
	}
	s.out.WriteString(`</p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sld>`)
	p.add(fmt.Sprintf("ppt/slides/slide%d.xml", number), s.out.String())
	p.add(fmt.Sprintf("ppt/slides/_rels/slide%d.xml.rels", number), relationships(s.rels))
}

func (s *slide) picture(m *model.Media, at geom.Rect, description string) {
	name := fmt.Sprintf("media/image%d.%s", m.ID, m.Ext)
	if !s.stored[m] && s.err == nil {
		s.stored[m] = true
		s.err = ooxml.AddFile(s.z, "ppt/"+name, m.Path)
	}
	s.printf(`<p:pic><p:nvPicPr>%s<p:cNvPicPr><a:picLocks noChangeAspect="1"/></p:cNvPicPr><p:nvPr/></p:nvPicPr><p:blipFill><a:blip r:embed="%s"/><a:stretch><a:fillRect/></a:stretch></p:blipFill><p:spPr>%s</p:spPr></p:pic>`,
		s.shape("Picture", description), s.relate("image", "../"+name, ""), s.place(at))
}

// box writes a text box. Its lines break where they do on the page.
func (s *slide) box(b *model.Box) {
	if !slices.ContainsFunc(b.Lines, func(l *model.Line) bool { return strings.TrimSpace(l.Text()) != "" }) {
		return // a form field without a value
	}
	first, last := b.Lines[0], b.Lines[len(b.Lines)-1]
	pitch := max(b.Pitch, 1.2*first.Size, 1)
	if b.Pitch > 0 {
		pitch = max(b.Pitch, 1)
	}
	rtl := first.Words[0].RTL
	r, direction := b.Rect, "horz"
	switch b.Turn {
	case 1, 3:
		direction = "vert"
		if b.Turn == 3 {
			direction = "vert270"
		}
		middle := (b.L + b.R) / 2
		r.L, r.R = middle-pitch/2, middle+pitch/2
	default:
		// Programs put the baseline at four fifths of a line of exact height.
		r.T, r.B = first.Base-0.8*pitch, last.Base+0.2*pitch+0.1*first.Size
	}
	align := "l"
	switch {
	case b.Align == model.AlignCentre:
		align = "ctr"
	case b.Align == model.AlignRight || rtl:
		align = "r"
	}
	s.printf(`<p:sp><p:nvSpPr>%s<p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr>%s<a:noFill/></p:spPr>`, s.shape("Text", ""), s.place(r))
	s.printf(`<p:txBody><a:bodyPr vert="%s" wrap="none" lIns="0" tIns="0" rIns="0" bIns="0" anchor="t"><a:noAutofit/></a:bodyPr><a:lstStyle/><a:p><a:pPr algn="%s"`, direction, align)
	if rtl {
		s.out.WriteString(` rtl="1"`)
	}
	s.printf(`><a:lnSpc><a:spcPts val="%d"/></a:lnSpc></a:pPr>`, min(max(100, int(math.Round(100*pitch))), 158400))
	for i, l := range b.Lines {
		if i > 0 {
			s.out.WriteString(`<a:br/>`)
		}
		s.line(l, b.Turn%2 == 1)
	}
	s.out.WriteString(`</a:p></p:txBody></p:sp>`)
}

// line writes the words of a line. Letter spacing makes it as wide as on the page.
func (s *slide) line(l *model.Line, vertical bool) {
	width := l.W()
	if vertical {
		width = l.H()
	}
	spacing := 0.0
	if n := utf8.RuneCountInString(l.Text()); n > 1 {
		natural := width * 100 / float64(s.d.Fit(l, vertical))
		spacing = (width - natural) / float64(n)
	}
	var text strings.Builder
	var style model.Style
	flush := func() {
		if text.Len() > 0 {
			s.run(text.String(), style, spacing)
			text.Reset()
		}
	}
	for i, w := range l.Words {
		for k, sp := range w.Spans {
			st := sp.Style
			if st != style {
				flush()
				style = st
			}
			if i > 0 && k == 0 && !w.Glued {
				text.WriteByte(' ')
			}
			text.WriteString(sp.Text)
		}
	}
	flush()
}

// run writes text of one style.
func (s *slide) run(text string, st model.Style, spacing float64) {
	s.printf(`<a:r><a:rPr sz="%d"`, min(max(100, int(math.Round(2*st.Size))*50), 400000))
	f := st.Font
	if f == nil {
		f = &model.Font{}
	}
	if f.Bold {
		s.out.WriteString(` b="1"`)
	}
	if f.Italic {
		s.out.WriteString(` i="1"`)
	}
	if st.Underline {
		s.out.WriteString(` u="sng"`)
	}
	if st.Strike {
		s.out.WriteString(` strike="sngStrike"`)
	}
	if spacing := int(math.Round(100 * spacing)); spacing != 0 {
		s.printf(` spc="%d"`, min(max(spacing, -1000), 10000))
	}
	switch st.Raise {
	case 1:
		s.out.WriteString(` baseline="30000"`)
	case -1:
		s.out.WriteString(` baseline="-25000"`)
	}
	s.printf(` dirty="0"><a:solidFill><a:srgbClr val="%06X"/></a:solidFill>`, st.Colour)
	if f.Name != "" {
		latin, other := ooxml.Escape(cmp.Or(f.Latin, f.Name)), ooxml.Escape(f.Name)
		s.printf(`<a:latin typeface="%s"/><a:ea typeface="%s"/><a:cs typeface="%[2]s"/>`, latin, other)
	}
	s.link(st.Link)
	s.out.WriteString(`</a:rPr><a:t>` + ooxml.Escape(text) + `</a:t></a:r>`)
}

// link writes the target of a run: an address, or the slide of a page.
func (s *slide) link(index int) {
	if index == 0 || s.leaf == nil || index > len(s.leaf.Links) {
		return
	}
	l := s.leaf.Links[index-1]
	if l.URI != "" {
		s.printf(`<a:hlinkClick r:id="%s"/>`, s.relate("hyperlink", l.URI, "External"))
	} else if n := s.numbers[l.Page]; n > 0 {
		s.printf(`<a:hlinkClick r:id="%s" action="ppaction://hlinksldjump"/>`, s.relate("slide", fmt.Sprintf("slide%d.xml", n), ""))
	}
}
