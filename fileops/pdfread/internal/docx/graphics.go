package docx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// behind writes the graphics behind the text of the page that b starts.
func (x *writer) behind(b *model.Placed) {
	if b.Behind == nil {
		return
	}
	for _, p := range b.Behind.Pictures {
		x.anchor(place{L: p.L, T: p.T, W: p.W(), H: p.H(), behind: true, name: "Picture"}, nsPic, func() { x.pic(p.Media, emu(p.W()), emu(p.H())) })
	}
	x.fills(b.Behind.Fills)
	x.rules(b.Behind.Rules, true)
}

// fills writes rectangles as shapes. Neighbours of one colour become one shape,
// so the order stays.
func (x *writer) fills(fs []model.Fill) {
	for i := 0; i < len(fs); {
		j, box := i, geom.Nothing()
		for ; j < len(fs) && fs[j].Colour == fs[i].Colour; j++ {
			box = box.Union(fs[j].Rect)
		}
		var paths strings.Builder
		for _, f := range fs[i:j] {
			l, t, r, b := emu(f.L-box.L), emu(f.T-box.T), emu(f.R-box.L), emu(f.B-box.T)
			fmt.Fprintf(&paths, `<a:path w="%d" h="%d"><a:moveTo><a:pt x="%d" y="%d"/></a:moveTo>`, max(1, emu(box.W())), max(1, emu(box.H())), l, t)
			for _, p := range [][2]int{{r, t}, {r, b}, {l, b}} {
				fmt.Fprintf(&paths, `<a:lnTo><a:pt x="%d" y="%d"/></a:lnTo>`, p[0], p[1])
			}
			paths.WriteString(`<a:close/></a:path>`)
		}
		x.shape(box, true, paths.String(), fmt.Sprintf(`<a:solidFill><a:srgbClr val="%06X"/></a:solidFill><a:ln><a:noFill/></a:ln>`, fs[i].Colour))
		i = j
	}
}

// rules writes lines as shapes, one for each width and colour.
func (x *writer) rules(rs []*model.Rule, behind bool) {
	type pen struct {
		width  int // quarters of a point
		colour uint32
	}
	var pens []pen
	groups := make(map[pen][]*model.Rule)
	for _, r := range rs {
		p := pen{max(1, int(math.Round(4*r.Width))), r.Colour}
		if groups[p] == nil {
			pens = append(pens, p)
		}
		groups[p] = append(groups[p], r)
	}
	for _, p := range pens {
		box := geom.Nothing()
		for _, r := range groups[p] {
			box = box.Union(r.Line())
		}
		var path strings.Builder
		fmt.Fprintf(&path, `<a:path w="%d" h="%d" fill="none">`, max(1, emu(box.W())), max(1, emu(box.H())))
		for _, r := range groups[p] {
			l := r.Line()
			fmt.Fprintf(&path, `<a:moveTo><a:pt x="%d" y="%d"/></a:moveTo><a:lnTo><a:pt x="%d" y="%d"/></a:lnTo>`,
				emu(l.L-box.L), emu(l.T-box.T), emu(l.R-box.L), emu(l.B-box.T))
		}
		path.WriteString(`</a:path>`)
		x.shape(box, behind, path.String(), fmt.Sprintf(`<a:noFill/><a:ln w="%d"><a:solidFill><a:srgbClr val="%06X"/></a:solidFill></a:ln>`, p.width*12700/4, p.colour))
	}
}

// shape writes a shape of paths with coordinates in EMU, relative to box.
func (x *writer) shape(box geom.Rect, behind bool, paths, style string) {
	x.anchor(place{L: box.L, T: box.T, W: box.W(), H: box.H(), behind: behind, name: "Shape"}, nsShape, func() {
		x.printf(`<wps:wsp><wps:cNvSpPr/><wps:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="%d" cy="%d"/></a:xfrm><a:custGeom><a:avLst/><a:gdLst/><a:ahLst/><a:cxnLst/><a:rect l="0" t="0" r="r" b="b"/><a:pathLst>%s</a:pathLst></a:custGeom>%s</wps:spPr><wps:bodyPr/></wps:wsp>`,
			max(1, emu(box.W())), max(1, emu(box.H())), paths, style)
	})
}

// onDark reports whether r is over a dark fill or a picture behind the page.
func onDark(r geom.Rect, behind *model.Behind) bool {
	if behind == nil {
		return false
	}
	for _, f := range behind.Fills {
		if !nearWhite(f.Colour) && f.Intersect(r).Area() > 0.7*r.Area() {
			return true
		}
	}
	return slices.ContainsFunc(behind.Pictures, func(p *model.Picture) bool { return p.Intersect(r).Area() > 0.7*r.Area() })
}
