package pdfread

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// tiny writes a paragraph that takes next to no room: the end of a section, or
// what must stand behind a table.
func (x *docxWriter) tiny(section string) {
	x.out.WriteString(`<w:p><w:pPr><w:spacing w:before="0" w:after="0" w:line="20" w:lineRule="exact"/>` +
		`<w:rPr><w:sz w:val="2"/><w:szCs w:val="2"/></w:rPr>` + section + `</w:pPr></w:p>`)
}

// section returns the properties of a section, with its headers and footers.
func (x *docxWriter) section(s *section, index int) string {
	var b strings.Builder
	b.WriteString(`<w:sectPr>`)
	if index == 0 || s.nextPage {
		x.headers(&b, s)
	}
	kind := "continuous"
	if s.nextPage {
		kind = "nextPage"
	}
	orient := ""
	if s.w > s.h {
		orient = ` w:orient="landscape"`
	}
	// Headers stand where they stood.
	headerAt, footerAt := 0.5*s.margin.t, 0.5*s.margin.b
	for _, r := range []*running{s.odd, s.even} {
		if r == nil {
			continue
		}
		if len(r.header) > 0 {
			headerAt = max(4, r.header[0].t)
		}
		if n := len(r.footer); n > 0 {
			footerAt = max(4, s.h-r.footer[n-1].b)
		}
	}
	fmt.Fprintf(&b, `<w:type w:val="%s"/><w:pgSz w:w="%d" w:h="%d"%s/>`, kind, pageTwips(s.w), pageTwips(s.h), orient)
	fmt.Fprintf(&b, `<w:pgMar w:top="%d" w:right="%d" w:bottom="%d" w:left="%d" w:header="%d" w:footer="%d" w:gutter="0"/>`,
		twips(s.margin.t), twips(s.margin.r), twips(s.margin.b), twips(s.margin.l), twips(min(headerAt, s.margin.t)), twips(min(footerAt, s.margin.b)))
	if s.start > 0 && (index == 0 || s.nextPage) && s.offset != 0 {
		fmt.Fprintf(&b, `<w:pgNumType w:start="%d"/>`, s.start)
	}
	if n := len(s.columns); n > 1 {
		fmt.Fprintf(&b, `<w:cols w:num="%d" w:space="%d" w:equalWidth="0">`, n, twips(12))
		edges := []float64{s.margin.l}
		for i := 1; i < n; i++ {
			edges = append(edges, s.columns[i].l)
		}
		for i := range n {
			right, space := s.w-s.margin.r, 0.0
			if i < n-1 {
				// A column is as wide as its text, but lines need a bit of air.
				right = min(s.columns[i].r+1, edges[i+1]-4)
				space = edges[i+1] - right
			}
			fmt.Fprintf(&b, `<w:col w:w="%d" w:space="%d"/>`, max(400, twips(right-edges[i])), twips(space))
		}
		b.WriteString(`</w:cols>`)
	} else {
		b.WriteString(`<w:cols w:space="720"/>`)
	}
	if s.first != nil {
		b.WriteString(`<w:titlePg/>`)
	}
	b.WriteString(`</w:sectPr>`)
	return b.String()
}

// pageTwips keeps within what programs accept: 22 inches at most.
func pageTwips(pt float64) int { return min(max(twips(pt), 720), 31680) }

func (x *docxWriter) headers(b *strings.Builder, s *section) {
	ref := func(element, kind string, r *running) {
		lines := r.header
		if element == "footer" {
			lines = r.footer
		}
		tag := map[string]string{"header": "hdr", "footer": "ftr"}[element]
		name := fmt.Sprintf("%s%d.xml", element, len(x.parts)+1)
		outer := x.out
		x.out = new(bytes.Buffer)
		x.out.WriteString(xmlHead + `<w:` + tag + rootNS + `>`)
		for _, l := range lines {
			x.runningLine(l, s, r.page)
		}
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
	for _, r := range []*running{s.odd, s.even, s.first} {
		any = any || r != nil && len(r.header)+len(r.footer) > 0
	}
	if !any && len(x.parts) == 0 {
		return // no section before this one has any either
	}
	for _, element := range []string{"header", "footer"} {
		ref(element, "default", s.odd)
		if x.d.evenOdd {
			even := s.even
			if even == nil {
				even = s.odd
			}
			ref(element, "even", even)
		}
		if s.first != nil {
			ref(element, "first", s.first)
		}
	}
}

// runningLine writes a line of a header, with tabs where it has wide gaps and
// the page number as a field. page is the one that it was taken from.
func (x *docxWriter) runningLine(l *line, s *section, page int) {
	left, right := s.margin.l, s.w-s.margin.r
	ps := pieces(append([]*word(nil), l.words...), nil)
	sortStable(ps, func(a, b *item) bool { return a.l < b.l })
	x.out.WriteString(`<w:p><w:pPr>`)
	middle := (left + right) / 2
	fmt.Fprintf(x.out, `<w:tabs><w:tab w:val="center" w:pos="%d"/><w:tab w:val="right" w:pos="%d"/></w:tabs>`, twips(middle-left), twips(right-left))
	x.out.WriteString(`<w:spacing w:before="0" w:after="0"/></w:pPr>`)
	at := 0
	for i, p := range ps {
		stop := 0
		switch {
		case math.Abs(p.cx()-middle) < 0.08*(right-left):
			stop = 1
		case p.cx() > middle:
			stop = 2
		}
		if stop <= at && i > 0 {
			x.out.WriteString(`<w:r><w:t xml:space="preserve">   </w:t></w:r>`)
		}
		for ; at < stop; at++ {
			x.out.WriteString(`<w:r><w:tab/></w:r>`)
		}
		var text strings.Builder
		var st style
		flush := func() {
			x.run(text.String(), st, nil)
			text.Reset()
		}
		for k, w := range p.words {
			space := ""
			if k > 0 && !w.glued {
				space = " "
			}
			if n, ok := pageNumber(w.text()); ok && s.numbered && n == page+s.offset {
				text.WriteString(space)
				flush()
				x.out.WriteString(`<w:fldSimple w:instr=" PAGE ">`)
				x.run(w.text(), w.spans[0].style, nil)
				x.out.WriteString(`</w:fldSimple>`)
				continue
			}
			for m, sp := range w.spans {
				sp.link = 0
				if sp.style != st {
					flush()
					st = sp.style
				}
				if m == 0 {
					text.WriteString(space)
				}
				text.WriteString(sp.text)
			}
		}
		flush()
	}
	x.out.WriteString(`</w:p>`)
}
