package pdfread

import (
	"math"
	"slices"
	"strings"
)

// picture writes pictures that stand side by side.
func (x *docxWriter) picture(b *placed, s *section) {
	x.out.WriteString(`<w:p><w:pPr>`)
	if b.pageBreak {
		x.out.WriteString(`<w:pageBreakBefore/>`)
	}
	x.printf(`<w:spacing w:before="%d" w:after="0" w:line="240" w:lineRule="auto"/>`, twips(b.before))
	room := b.region.w()
	if len(s.columns) < 2 {
		room = max(room, s.w-s.margin.l-s.margin.r)
	}
	edge := b.region.l
	if len(s.columns) < 2 {
		edge = s.margin.l
	}
	left, right := b.l-edge, edge+room-b.r
	switch {
	case math.Abs(left-right) < 12 && left > 6:
		x.out.WriteString(`<w:jc w:val="center"/>`)
	case right < 6 && left > 20:
		x.out.WriteString(`<w:jc w:val="right"/>`)
	case left > 6:
		x.printf(`<w:ind w:left="%d"/>`, twips(min(left, 0.8*room)))
		room -= min(left, 0.8*room)
	}
	x.out.WriteString(`</w:pPr>`)
	if b.columnBreak {
		x.out.WriteString(`<w:r><w:br w:type="column"/></w:r>`)
	}
	x.bookmark(b)
	total := 0.0
	for _, p := range b.pictures {
		total += p.w()
	}
	scale := min(1, room/max(total, 1))
	high := s.h - s.margin.t - s.margin.b
	for i, p := range b.pictures {
		if i > 0 {
			x.out.WriteString(`<w:r><w:t xml:space="preserve"> </w:t></w:r>`)
		}
		k := min(scale, 0.98*high/max(p.h(), 1))
		x.drawing(p, k)
	}
	x.out.WriteString(`</w:p>`)
}

func (x *docxWriter) drawing(p *picture, scale float64) {
	m := p.media
	id, ok := x.mediaRel[m]
	if !ok {
		id = x.relate("image", strings.TrimPrefix(x.mediaName(m), "word/"), false)
		x.mediaRel[m], x.used[m] = id, true
	}
	x.pictures++
	n, cx, cy := x.pictures, max(1, emu(p.w()*scale)), max(1, emu(p.h()*scale))
	x.printf(`<w:r><w:drawing><wp:inline distT="0" distB="0" distL="0" distR="0"><wp:extent cx="%d" cy="%d"/><wp:docPr id="%d" name="Picture %d"`, cx, cy, n, n)
	if p.alt != "" {
		x.printf(` descr="%s"`, escape(p.alt))
	}
	x.out.WriteString(`/>`)
	x.printf(`<a:graphic><a:graphicData uri="%s"><pic:pic><pic:nvPicPr><pic:cNvPr id="%d" name="Picture %d"/><pic:cNvPicPr/></pic:nvPicPr>`, nsPic, n, n)
	x.printf(`<pic:blipFill><a:blip r:embed="%s"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>`, id)
	x.printf(`<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="%d" cy="%d"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>`, cx, cy)
}

// table writes a table.
func (x *docxWriter) table(t *table, s *section) {
	nx, ny := len(t.xs)-1, len(t.ys)-1
	width := t.xs[nx] - t.xs[0]
	edge := s.margin.l
	if n := len(s.columns); n > 1 {
		for _, c := range s.columns {
			if t.cx() >= c.l && t.cx() <= c.r {
				edge = c.l
			}
		}
	}
	left, right := t.sides()
	x.printf(`<w:tbl><w:tblPr><w:tblW w:w="%d" w:type="dxa"/><w:tblInd w:w="%d" w:type="dxa"/>`, twips(width), twips(max(t.l-edge, -edge+2)))
	if t.ruled {
		x.out.WriteString(`<w:tblBorders>`)
		for _, e := range []string{"top", "left", "bottom", "right", "insideH", "insideV"} {
			x.printf(`<w:%s w:val="single" w:sz="%d" w:space="0" w:color="%06X"/>`, e, min(max(2, int(math.Round(t.width*8))), 24), t.colour)
		}
		x.out.WriteString(`</w:tblBorders>`)
	}
	x.printf(`<w:tblLayout w:type="fixed"/><w:tblCellMar><w:left w:w="%d" w:type="dxa"/><w:right w:w="%d" w:type="dxa"/></w:tblCellMar></w:tblPr><w:tblGrid>`, twips(left), twips(right))
	for i := range nx {
		x.printf(`<w:gridCol w:w="%d"/>`, max(20, twips(t.xs[i+1]-t.xs[i])))
	}
	x.out.WriteString(`</w:tblGrid>`)
	grid := make([]*cell, nx*ny)
	for _, c := range t.cells {
		for y := c.row; y < c.row+c.rows; y++ {
			for k := c.col; k < c.col+c.cols; k++ {
				grid[y*nx+k] = c
			}
		}
	}
	for y := range ny {
		x.printf(`<w:tr><w:trPr><w:cantSplit/><w:trHeight w:val="%d" w:hRule="atLeast"/></w:trPr>`, max(20, twips(0.94*(t.ys[y+1]-t.ys[y]))))
		for k := 0; k < nx; {
			c := grid[y*nx+k]
			if c == nil {
				c = &cell{row: y, col: k, rows: 1, cols: 1}
			}
			cols := max(1, c.col+c.cols-k)
			x.printf(`<w:tc><w:tcPr><w:tcW w:w="%d" w:type="dxa"/>`, twips(t.xs[k+cols]-t.xs[k]))
			if cols > 1 {
				x.printf(`<w:gridSpan w:val="%d"/>`, cols)
			}
			if c.rows > 1 {
				if y == c.row {
					x.out.WriteString(`<w:vMerge w:val="restart"/>`)
				} else {
					x.out.WriteString(`<w:vMerge/>`)
				}
			}
			if c.shaded {
				x.printf(`<w:shd w:val="clear" w:color="auto" w:fill="%06X"/>`, c.shade)
			}
			switch c.turn {
			case 1:
				x.out.WriteString(`<w:textDirection w:val="tbRl"/>`)
			case 3:
				x.out.WriteString(`<w:textDirection w:val="btLr"/>`)
			}
			if y == c.row && len(c.blocks) > 0 && c.turn == 0 {
				top, bottom := c.blocks[0].t-c.t, c.b-c.blocks[len(c.blocks)-1].b
				switch {
				case top > bottom+6 && top > 2*bottom:
					x.out.WriteString(`<w:vAlign w:val="bottom"/>`)
				case top > 6 && math.Abs(top-bottom) < 5:
					x.out.WriteString(`<w:vAlign w:val="center"/>`)
				}
			}
			x.out.WriteString(`</w:tcPr>`)
			if y == c.row && len(c.blocks) > 0 {
				x.dark = c.shaded
				for _, b := range c.blocks {
					x.paragraph([]*placed{{block: c.inside(b, left, right)}}, "")
				}
				x.dark = false
			} else {
				x.out.WriteString(`<w:p><w:pPr><w:spacing w:before="0" w:after="0" w:line="20" w:lineRule="exact"/><w:rPr><w:sz w:val="2"/><w:szCs w:val="2"/></w:rPr></w:pPr></w:p>`)
			}
			x.out.WriteString(`</w:tc>`)
			k += cols
		}
		x.out.WriteString(`</w:tr>`)
	}
	x.out.WriteString(`</w:tbl>`)
}

// sides returns the margins of the cells of t: those that its text keeps, so
// that it has the room it had.
func (t *table) sides() (left, right float64) {
	const usual = 3.0
	var ls, rs []float64
	for _, c := range t.cells {
		if c.turn != 0 || len(c.blocks) == 0 {
			continue
		}
		l, r := math.Inf(1), math.Inf(1)
		for _, b := range c.blocks {
			l, r = min(l, b.l-c.l), min(r, c.r-b.r)
		}
		ls, rs = append(ls, l), append(rs, r)
	}
	margin := func(v []float64) float64 {
		if len(v) == 0 {
			return usual
		}
		slices.Sort(v)
		return min(max(0, v[len(v)/20]-0.3), usual)
	}
	return margin(ls), margin(rs)
}

// inside returns b as it is written in a cell with these margins.
func (c *cell) inside(b *block, left, right float64) *block {
	q := *b
	box := c.rect
	if c.turn != 0 {
		q.region = rect{0, 0, c.h(), c.w()}
		q.left, q.right, q.first = 0, 0, 0
		return &q
	}
	if q.align != alignCentre && q.align != alignRight {
		q.left = max(0, q.left+b.region.l-c.l-left)
	}
	if q.align == alignRight {
		q.right = max(0, c.r-right-b.r)
	}
	q.region = rect{c.l + left, c.t, c.r - right, c.b}
	q.tight = true
	if n := float64(len(q.lines)); n > 0 && q.linePitch()*n > box.h()-0.6 && len(c.blocks) == 1 {
		q.pitch = max((box.h()-0.6)/n, 0.95*q.lines[0].size) // rows may be as narrow as their text
	}
	return &q
}
