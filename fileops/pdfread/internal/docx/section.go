package docx

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/layout"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

// tiny writes a paragraph with almost no height: for the end of a section, or
// after a table, where a paragraph is required.
func (x *writer) tiny(section string) {
	x.out.WriteString(`<w:p><w:pPr><w:spacing w:before="0" w:after="0" w:line="20" w:lineRule="exact"/>` +
		`<w:rPr><w:sz w:val="2"/><w:szCs w:val="2"/></w:rPr>` + section + `</w:pPr></w:p>`)
}

// section returns the properties of a section, with its headers and footers.
func (x *writer) section(s *model.Section, index int) string {
	var b strings.Builder
	b.WriteString(`<w:sectPr>`)
	if index == 0 || s.NextPage {
		x.headers(&b, s)
	}
	if n := x.noteNumbers(); n != "" {
		b.WriteString(`<w:footnotePr>` + n + `</w:footnotePr>`)
	}
	kind := "continuous"
	if s.NextPage {
		kind = "nextPage"
	}
	orient := ""
	if s.W > s.H {
		orient = ` w:orient="landscape"`
	}
	// Headers keep their position.
	headerAt, footerAt := 0.5*s.Margin.T, 0.5*s.Margin.B
	for _, r := range []*model.Running{s.Odd, s.Even} {
		if r == nil {
			continue
		}
		if len(r.Header) > 0 {
			headerAt = max(4, r.Header[0].T)
		}
		if n := len(r.Footer); n > 0 {
			footerAt = max(4, s.H-r.Footer[n-1].B)
		}
	}
	fmt.Fprintf(&b, `<w:type w:val="%s"/><w:pgSz w:w="%d" w:h="%d"%s/>`, kind, pageTwips(s.W), pageTwips(s.H), orient)
	fmt.Fprintf(&b, `<w:pgMar w:top="%d" w:right="%d" w:bottom="%d" w:left="%d" w:header="%d" w:footer="%d" w:gutter="0"/>`,
		twips(s.Margin.T), twips(s.Margin.R), twips(s.Margin.B), twips(s.Margin.L), twips(min(headerAt, s.Margin.T)), twips(min(footerAt, s.Margin.B)))
	if s.Start > 0 && (index == 0 || s.NextPage) && s.Offset != 0 {
		fmt.Fprintf(&b, `<w:pgNumType w:start="%d"/>`, s.Start)
	}
	if n := len(s.Columns); n > 1 {
		fmt.Fprintf(&b, `<w:cols w:num="%d" w:space="%d" w:equalWidth="0">`, n, twips(12))
		edges := []float64{s.Margin.L}
		for i := 1; i < n; i++ {
			edges = append(edges, s.Columns[i].L)
		}
		for i := range n {
			right, space := s.W-s.Margin.R, 0.0
			if i < n-1 {
				// A column is as wide as its text, plus a small margin for the lines.
				right = min(s.Columns[i].R+1, edges[i+1]-4)
				space = edges[i+1] - right
			}
			fmt.Fprintf(&b, `<w:col w:w="%d" w:space="%d"/>`, max(400, twips(right-edges[i])), twips(space))
		}
		b.WriteString(`</w:cols>`)
	} else {
		b.WriteString(`<w:cols w:space="720"/>`)
	}
	if s.First != nil {
		b.WriteString(`<w:titlePg/>`)
	}
	b.WriteString(`</w:sectPr>`)
	return b.String()
}

// pageTwips clamps a page size to the range that programs accept: 22 inches at
// most.
func pageTwips(pt float64) int { return min(max(twips(pt), 720), 31680) }

func (x *writer) headers(b *strings.Builder, s *model.Section) {
	ref := func(element, kind string, r *model.Running) {
		lines := r.Header
		if element == "footer" {
			lines = r.Footer
		}
		tag := map[string]string{"header": "hdr", "footer": "ftr"}[element]
		name := fmt.Sprintf("%s%d.xml", element, len(x.parts)+1)
		outer := x.out
		x.out = new(bytes.Buffer)
		x.out.WriteString(ooxml.Header + `<w:` + tag + rootNS + `>`)
		for i, l := range lines {
			pitch := 1.2 * l.Size
			if i+1 < len(lines) && lines[i+1].Base > l.Base {
				pitch = min(lines[i+1].Base-l.Base, 4*l.Size)
			}
			if leaf := x.d.Leaves[r.Page]; leaf != nil {
				x.dark = onDark(l.Rect, leaf.Behind)
			}
			if i+1 == len(lines) { // it must not move the text of the page
				room := s.Margin.T - lines[0].T
				if element == "footer" {
					room = lines[i].B - lines[0].T
				}
				pitch = max(min(pitch, room-(l.Base-lines[0].Base)), 0.6*l.Size)
			}
			x.runningLine(l, s, r.Page, pitch)
		}
		x.dark = false
		if len(lines) == 0 {
			x.out.WriteString(`<w:p/>`)
		}
		x.out.WriteString(`</w:` + tag + `>`)
		content := x.out.String()
		x.out = outer
		x.parts = append(x.parts, part{name, element, content})
		fmt.Fprintf(b, `<w:%sReference w:type="%s" r:id="%s"/>`, element, kind, x.relate(element, name, false))
	}
	any := false
	for _, r := range []*model.Running{s.Odd, s.Even, s.First} {
		any = any || r != nil && len(r.Header)+len(r.Footer) > 0
	}
	if !any && len(x.parts) == 0 {
		return // no earlier section has a header or footer either
	}
	for _, element := range []string{"header", "footer"} {
		ref(element, "default", s.Odd)
		if x.d.EvenOdd {
			even := s.Even
			if even == nil {
				even = s.Odd
			}
			ref(element, "even", even)
		}
		if s.First != nil {
			ref(element, "first", s.First)
		}
	}
}

// outside reports whether a line starts or ends outside of the margins.
func outside(l *model.Line, left, right float64) bool {
	const little = 4
	return len(l.Words) > 0 && (l.L < left-little || l.R > right+little)
}

// runningLine writes a header line. Wide gaps become tabs and the page number
// becomes a field. A line whose parts do not fit to the left, the middle and the right of
// the text has each part at its place. page is the page that the line comes
// from, pitch its height.
func (x *writer) runningLine(l *model.Line, s *model.Section, page int, pitch float64) {
	left, right := s.Margin.L, s.W-s.Margin.R
	ps := layout.Pieces(append([]*model.Word(nil), l.Words...), nil)
	geom.SortStable(ps, func(a, b *layout.Item) bool { return a.L < b.L })
	x.out.WriteString(`<w:p><w:pPr>`)
	middle := (left + right) / 2
	place := func(p *layout.Item) int { // 0 left, 1 in the middle, 2 right
		switch {
		case math.Abs(p.CX()-middle) < 0.08*(right-left):
			return 1
		case p.CX() > middle:
			return 2
		}
		return 0
	}
	first := 1
	exact := outside(l, left, right)
	for i := 1; i < len(ps); i++ {
		exact = exact || place(ps[i]) == place(ps[i-1])
	}
	var tabs strings.Builder
	tab := func(kind string, at float64) {
		fmt.Fprintf(&tabs, `<w:tab w:val="%s" w:pos="%d"/>`, kind, twips(at-left))
	}
	indent := ""
	switch {
	case exact:
		for _, p := range ps[1:] {
			tab("left", p.L)
		}
		indent = fmt.Sprintf(`<w:ind w:left="%d" w:right="%d"/>`, twips(ps[0].L-left), twips(min(0, max(right-l.R-6, 6-s.Margin.R))))
	case slices.ContainsFunc(ps, func(p *layout.Item) bool { return place(p) == 1 }):
		tab("center", middle)
		tab("right", right)
	default: // without anything in the middle, long text on the right needs its place
		first = 2
		tab("right", right)
	}
	if tabs.Len() > 0 {
		x.printf(`<w:tabs>%s</w:tabs>`, tabs.String())
	}
	x.printf(`<w:spacing w:before="0" w:after="0" w:line="%d" w:lineRule="exact"/>%s</w:pPr>`, max(20, twips(pitch)), indent)
	at := 0
	for i, p := range ps {
		stop := place(p)
		if exact {
			first, stop = 0, i
		}
		for ; at < stop; at++ {
			if at+1 >= first {
				x.out.WriteString(`<w:r><w:tab/></w:r>`)
			}
		}
		var text strings.Builder
		var st model.Style
		flush := func() {
			x.run(text.String(), st, nil)
			text.Reset()
		}
		for k, w := range p.Words {
			space := ""
			if k > 0 && !w.Glued {
				space = " "
			}
			if n, ok := model.PageNumber(w.Text()); ok && s.Numbered && n == page+s.Offset {
				text.WriteString(space)
				flush()
				x.out.WriteString(`<w:fldSimple w:instr=" PAGE ">`)
				x.run(w.Text(), w.Spans[0].Style, nil)
				x.out.WriteString(`</w:fldSimple>`)
				continue
			}
			for m, sp := range w.Spans {
				sp.Link = 0
				if sp.Style != st {
					flush()
					st = sp.Style
				}
				if m == 0 {
					text.WriteString(space)
				}
				text.WriteString(sp.Text)
			}
		}
		flush()
	}
	x.out.WriteString(`</w:p>`)
}
