package docx

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

// picture writes adjacent pictures.
func (x *writer) picture(b *model.Placed, s *model.Section) {
	x.out.WriteString(`<w:p><w:pPr>`)
	if b.PageBreak || b.Continues {
		x.out.WriteString(`<w:pageBreakBefore/>`)
	}
	x.printf(`<w:spacing w:before="%d" w:after="0" w:line="240" w:lineRule="auto"/>`, twips(b.Before))
	room := b.Region.W()
	if len(s.Columns) < 2 {
		room = max(room, s.W-s.Margin.L-s.Margin.R)
	}
	edge := b.Region.L
	if len(s.Columns) < 2 {
		edge = s.Margin.L
	}
	left, right := b.L-edge, edge+room-b.R
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
	if b.ColumnBreak {
		x.out.WriteString(`<w:r><w:br w:type="column"/></w:r>`)
	}
	x.bookmark(b)
	total := 0.0
	for _, p := range b.Pictures {
		total += p.W()
	}
	scale := min(1, room/max(total, 1))
	high := s.H - s.Margin.T - s.Margin.B
	for i, p := range b.Pictures {
		if i > 0 {
			x.out.WriteString(`<w:r><w:t xml:space="preserve"> </w:t></w:r>`)
		}
		k := min(scale, 0.98*high/max(p.H(), 1))
		x.drawing(p, k)
		x.labels(p, p.L-edge, k)
	}
	x.out.WriteString(`</w:p>`)
}

// labels writes the text of a drawing behind it, so that it can be found.
// left is the distance of the drawing from its column.
func (x *writer) labels(p *model.Picture, left, scale float64) {
	text := strings.TrimSpace(p.Alt)
	if len(p.Labels) == 0 || text == "" {
		return
	}
	// A smaller box stays behind the drawing if that is not exactly in its place.
	w, h := p.W()*scale/2, p.H()*scale/2
	size := min(max(math.Sqrt(w*h/(0.8*float64(utf8.RuneCountInString(text)))), 1), 6)
	x.anchor(place{L: max(0, left) + w/2, T: h / 2, W: w, H: h, behind: true, inFlow: true, name: "Text"}, nsShape, func() {
		x.textBox(place{W: w, H: h}, "horz", func() {
			n := halfPoints(size)
			x.printf(`<w:p><w:pPr><w:spacing w:before="0" w:after="0" w:line="%d" w:lineRule="exact"/></w:pPr><w:r><w:rPr><w:sz w:val="%d"/><w:szCs w:val="%d"/></w:rPr><w:t xml:space="preserve">%s</w:t></w:r></w:p>`,
				max(20, twips(1.1*size)), n, n, ooxml.Escape(text))
		})
	})
}

func (x *writer) drawing(p *model.Picture, scale float64) {
	x.pictures++
	n, cx, cy := x.pictures, max(1, emu(p.W()*scale)), max(1, emu(p.H()*scale))
	x.printf(`<w:r><w:drawing><wp:inline distT="0" distB="0" distL="0" distR="0"><wp:extent cx="%d" cy="%d"/><wp:docPr id="%d" name="Picture %d"`, cx, cy, n, n)
	if p.Alt != "" {
		x.printf(` descr="%s"`, ooxml.Escape(p.Alt))
	}
	x.out.WriteString(`/>`)
	x.printf(`<a:graphic><a:graphicData uri="%s">`, nsPic)
	x.pic(p.Media, cx, cy)
	x.out.WriteString(`</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>`)
}

// table writes a table.
func (x *writer) table(t *model.Table, s *model.Section) {
	nx, ny := len(t.Xs)-1, len(t.Ys)-1
	width := t.Xs[nx] - t.Xs[0]
	edge := s.Margin.L
	if n := len(s.Columns); n > 1 {
		for _, c := range s.Columns {
			if t.CX() >= c.L && t.CX() <= c.R {
				edge = c.L
			}
		}
	}
	left, right := sides(t)
	x.thin = t.Width
	x.printf(`<w:tbl><w:tblPr><w:tblW w:w="%d" w:type="dxa"/><w:tblInd w:w="%d" w:type="dxa"/>`, twips(width), twips(max(t.L-edge, -edge+2)))
	if t.Ruled {
		x.out.WriteString(`<w:tblBorders>`)
		for _, e := range []string{"top", "left", "bottom", "right", "insideH", "insideV"} {
			x.border(e, model.Edge{Width: t.Width, Colour: t.Colour})
		}
		x.out.WriteString(`</w:tblBorders>`)
	}
	x.printf(`<w:tblLayout w:type="fixed"/><w:tblCellMar><w:left w:w="%d" w:type="dxa"/><w:right w:w="%d" w:type="dxa"/></w:tblCellMar></w:tblPr><w:tblGrid>`, twips(left), twips(right))
	for i := range nx {
		x.printf(`<w:gridCol w:w="%d"/>`, max(20, twips(t.Xs[i+1]-t.Xs[i])))
	}
	x.out.WriteString(`</w:tblGrid>`)
	grid := make([]*model.Cell, nx*ny)
	for _, c := range t.Cells {
		for y := c.Row; y < c.Row+c.Rows; y++ {
			for k := c.Col; k < c.Col+c.Cols; k++ {
				grid[y*nx+k] = c
			}
		}
	}
	for y := range ny {
		x.printf(`<w:tr><w:trPr><w:cantSplit/><w:trHeight w:val="%d" w:hRule="atLeast"/></w:trPr>`, max(20, twips(0.94*(t.Ys[y+1]-t.Ys[y]))))
		for k := 0; k < nx; {
			c := grid[y*nx+k]
			if c == nil {
				c = &model.Cell{Row: y, Col: k, Rows: 1, Cols: 1}
			}
			cols := max(1, c.Col+c.Cols-k)
			x.printf(`<w:tc><w:tcPr><w:tcW w:w="%d" w:type="dxa"/>`, twips(t.Xs[k+cols]-t.Xs[k]))
			if cols > 1 {
				x.printf(`<w:gridSpan w:val="%d"/>`, cols)
			}
			if c.Rows > 1 {
				if y == c.Row {
					x.out.WriteString(`<w:vMerge w:val="restart"/>`)
				} else {
					x.out.WriteString(`<w:vMerge/>`)
				}
			}
			x.edges(c, y)
			if c.Shaded {
				x.printf(`<w:shd w:val="clear" w:color="auto" w:fill="%06X"/>`, c.Shade)
			}
			switch c.Turn {
			case 1:
				x.out.WriteString(`<w:textDirection w:val="tbRl"/>`)
			case 3:
				x.out.WriteString(`<w:textDirection w:val="btLr"/>`)
			}
			if y == c.Row && len(c.Blocks) > 0 && c.Turn == 0 {
				switch c.Vertical() {
				case model.AlignBottom:
					x.out.WriteString(`<w:vAlign w:val="bottom"/>`)
				case model.AlignMiddle:
					x.out.WriteString(`<w:vAlign w:val="center"/>`)
				}
			}
			x.out.WriteString(`</w:tcPr>`)
			if y == c.Row && len(c.Blocks) > 0 {
				outer := x.dark
				x.dark = x.dark || c.Shaded
				for _, b := range c.Blocks {
					x.paragraph([]*model.Placed{{Block: inside(c, b, left, right)}}, "")
				}
				x.dark = outer
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

// edges writes the borders of the part of a cell that is in a row.
func (x *writer) edges(c *model.Cell, row int) {
	if c.Edges == nil {
		return
	}
	x.out.WriteString(`<w:tcBorders>`)
	for i, name := range []string{"top", "left", "bottom", "right"} {
		e := c.Edges[i]
		if e.Width == 0 || i == 0 && row != c.Row || i == 2 && row != c.Row+c.Rows-1 {
			x.printf(`<w:%s w:val="nil"/>`, name)
			continue
		}
		if i%2 == 1 { // a thick border would take the room of the text
			e.Width = min(e.Width, max(x.thin, 0.75))
		}
		x.border(name, e)
	}
	x.out.WriteString(`</w:tcBorders>`)
}

// border writes one border of a table or cell. Widths are eighths of a point.
func (x *writer) border(name string, e model.Edge) {
	x.printf(`<w:%s w:val="single" w:sz="%d" w:space="0" w:color="%06X"/>`, name, min(max(2, int(math.Round(e.Width*8))), 24), e.Colour)
}

// sides returns the cell margins of t: the space that its text leaves free, so
// that the text keeps its width.
func sides(t *model.Table) (left, right float64) {
	const usual = 3.0
	var ls, rs []float64
	for _, c := range t.Cells {
		if c.Turn != 0 || len(c.Blocks) == 0 {
			continue
		}
		l, r := math.Inf(1), math.Inf(1)
		for _, b := range c.Blocks {
			l, r = min(l, b.L-c.L), min(r, c.R-b.R)
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

// inside returns b adapted to a cell with these margins.
func inside(c *model.Cell, b *model.Block, left, right float64) *model.Block {
	q := *b
	box := c.Rect
	if c.Turn != 0 {
		q.Region = geom.Rect{L: 0, T: 0, R: c.H(), B: c.W()}
		q.Left, q.Right, q.First = 0, 0, 0
		return &q
	}
	if q.Align != model.AlignCentre && q.Align != model.AlignRight {
		q.Left = max(0, q.Left+b.Region.L-c.L-left)
	}
	if q.Align == model.AlignRight {
		q.Right = max(0, c.R-right-b.R)
	}
	q.Region = geom.Rect{L: c.L + left, T: c.T, R: c.R - right, B: c.B}
	q.Tight = true
	if n := float64(len(q.Lines)); n > 0 && q.LinePitch()*n > box.H()-0.6 && len(c.Blocks) == 1 {
		q.Pitch = max((box.H()-0.6)/n, 0.95*q.Lines[0].Size) // rows may be as low as their text
	}
	return &q
}
