package layout

import (
	"math"
	"slices"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// A page that flowing text cannot show keeps its look: its text goes into boxes
// at their places, over a picture of everything else. This file decides which
// pages need that, and makes the boxes.

// What a page may lose or change in flowing text.
const (
	lostImages = 0.02 // part of the area
	lostDrawn  = 0.015
	lostTurned = 0.2   // part of the characters
	lostInk    = 0.12  // part of the ink of a scan
	lostColour = 0.3   // part of the ink of a scan that has a colour
	drift      = 0.045 // how far text may move, as a part of the height
	driftOver  = 6     // the same over graphics, points
	driftSmall = 12    // recognised text may move so far even on a small picture, points
	overFills  = 0.02  // with larger fills or longer rules text is over graphics
	overRules  = 2.0
	smallPage  = 260 // points; text on narrower pages has no room to flow
	lowPage    = 36  // points; on lower pages a line has no room for its descent and a margin
)

// flows reports whether flowing text can show the page: whether the leaf l, with
// the graphics in left behind it, has everything visible of s at about the same
// place.
func flows(s *model.Sheet, l *model.Leaf, left *graphics) bool {
	if s.Scan != nil && s.Scan.Words > 0 {
		return s.H >= lowPage && s.Scan.Other <= lostInk && s.Scan.Colour <= lostColour && moved(l) <= max(drift*s.H, driftSmall)
	}
	if s.Unlikely || s.Mirrored {
		return false
	}
	if len(s.Words) == 0 {
		return s.Blank || s.Damaged
	}
	area := s.W * s.H
	if s.W < smallPage || s.H < lowPage || left.images > lostImages*area || left.drawn > lostDrawn*area || !upright(l) || !hasMargins(s, l) {
		return false
	}
	most := drift * s.H
	if left.fillArea > overFills*area || left.ruled > overRules*s.W || len(s.Backs) > 0 {
		most = driftOver
	}
	return moved(l) <= most
}

// edge is the smallest margin of flowing text, points.
const edge = 12

// hasMargins reports whether nothing of l is at the edge of the page.
func hasMargins(s *model.Sheet, l *model.Leaf) bool {
	c := l.Content
	return c.L >= edge && c.T >= edge && c.R <= s.W-edge && c.B <= s.H-edge
}

// graphics are the graphics of a page that its flow does not have.
type graphics struct {
	fills []model.Fill
	rules []*model.Rule

	images, drawn, fillArea float64 // areas, square points
	ruled                   float64 // length of rules, points
}

// leftover returns the graphics of s that are not part of l.
func leftover(s *model.Sheet, l *model.Leaf) *graphics {
	var tables []*model.Table
	var pictures []geom.Rect
	for _, b := range l.Bands {
		for _, c := range b.Columns {
			for _, bl := range c.Blocks {
				switch bl.Kind {
				case model.TableBlock:
					tables = append(tables, bl.Table)
				case model.PictureBlock:
					pictures = append(pictures, bl.Grow(2))
				}
			}
		}
	}
	inside := func(r, in geom.Rect) bool { return in.Intersect(r).Area() > 0.7*r.Area() }
	inPicture := func(r geom.Rect) bool {
		return slices.ContainsFunc(pictures, func(p geom.Rect) bool { return inside(r, p) })
	}
	shades := func(f model.Fill) bool {
		return slices.ContainsFunc(tables, func(t *model.Table) bool {
			return inside(f.Rect, t.Grow(4)) && slices.ContainsFunc(t.Cells, func(c *model.Cell) bool {
				return c.Shaded && c.Shade == f.Colour && c.Intersect(f.Rect).Area() > 0.5*min(c.Area(), f.Area())
			})
		})
	}
	borders := func(r *model.Rule) bool {
		return slices.ContainsFunc(tables, func(t *model.Table) bool {
			at := t.Xs
			if r.Horizontal {
				at = t.Ys
			}
			return t.Ruled && inside(r.Rect().Grow(0.5), t.Grow(4)) && math.Abs(at[geom.Nearest(at, r.Pos)]-r.Pos) < reach
		})
	}
	g := new(graphics)
	for _, r := range s.Lost {
		g.images += r.Area()
	}
	for _, f := range s.Fills {
		if !shades(f) && !inPicture(f.Rect) {
			g.fills = append(g.fills, f)
			if !model.IsPaper(f.Colour) {
				g.fillArea += f.Area()
			}
		}
	}
	for _, d := range s.Drawings {
		if d = d.Grow(0.5); d.W() > 6 && d.H() > 6 && !inPicture(d) {
			g.drawn += d.Area()
		}
	}
	for _, r := range s.Rules {
		if b := r.Rect().Grow(0.5); !r.Used && !borders(r) && !inPicture(b) && !covered(b, r.Order, s.Fills) {
			g.rules = append(g.rules, r)
			g.ruled += r.To - r.From
		}
	}
	return g
}

// matter reports whether s without the graphics looks as if something is missing.
// Rules and colours between paragraphs are an ornament.
func (g *graphics) matter(s *model.Sheet) bool {
	const fills, rules = 0.25, 8.0 // part of the area, and of the width
	area := s.W * s.H
	return s.Scan == nil && (g.images > lostImages*area || g.drawn > lostDrawn*area || g.fillArea > fills*area || g.ruled > rules*s.W)
}

// inPictures reports whether s has text, but most of it is part of its pictures.
func inPictures(s *model.Sheet) bool {
	count := func(words []*model.Word) (n int) {
		for _, w := range words {
			n += len(w.Text())
		}
		return n
	}
	labels := 0
	for _, p := range s.Pictures {
		labels += count(p.Labels)
	}
	return len(s.Words) > 0 && labels > count(s.Words)
}

// covered reports whether a fill hides what was drawn before it.
func covered(r geom.Rect, order int, fills []model.Fill) bool {
	return slices.ContainsFunc(fills, func(f model.Fill) bool { return f.Order > order && f.Intersect(r).Area() > 0.9*r.Area() })
}

// maxBehind limits the rules and fills behind the text of a page.
const maxBehind = 500

// behind returns what the flow of s has behind its text, or nil.
func (g *graphics) behind(s *model.Sheet) *model.Behind {
	b := &model.Behind{Pictures: s.Backs, Fills: g.fills, Rules: g.rules}
	if g.fillArea == 0 && len(s.Backs) == 0 {
		b.Fills = nil // white on white
	}
	if n := len(b.Fills) + len(b.Rules); n > maxBehind || n+len(b.Pictures) == 0 {
		return nil
	}
	return b
}

// upright reports whether almost all text outside tables runs to the right.
func upright(l *model.Leaf) bool {
	all, turned := 0, 0
	for _, b := range l.Bands {
		for _, c := range b.Columns {
			for _, bl := range c.Blocks {
				for _, line := range bl.Lines {
					for _, w := range line.Words {
						n := len(w.Text())
						all += n
						if w.Turn != 0 {
							turned += n
						}
					}
				}
			}
		}
	}
	return float64(turned) <= lostTurned*float64(all)
}

// moved returns how far most of the text moves down or up if the blocks of l
// follow each other, in points: nine tenths of the lines move less. Blocks side by
// side that are not columns move the text below them.
func moved(l *model.Leaf) float64 {
	var by []float64
	lines := func(d float64, n int) {
		for range n {
			by = append(by, math.Abs(d))
		}
	}
	at := l.Content.T
	for i, b := range l.Bands {
		if i > 0 {
			at += max(0, b.T-l.Bands[i-1].B)
		}
		bottom := at
		for _, c := range b.Columns {
			y := at
			for k, bl := range c.Blocks {
				if len(bl.Lines) > 0 && bl.Lines[0].Words[0].Turn != 0 {
					continue // in the margin
				}
				if k == 0 {
					y += max(0, c.T-b.T)
				}
				y += bl.Before
				n := max(1, len(bl.Lines))
				if bl.Kind == model.TableBlock {
					n = len(bl.Table.Ys) - 1
				}
				lines(y-bl.T, n)
				if bl.Kind == model.TableBlock {
					for _, c := range bl.Table.Cells {
						for _, d := range movedInCell(c) {
							lines(d, 2)
						}
					}
				}
				y += flowHeight(bl)
				lines(y-bl.B, n)
			}
			bottom = max(bottom, y)
		}
		at = bottom
	}
	if len(by) == 0 {
		return 0
	}
	slices.Sort(by)
	return by[len(by)*9/10]
}

// movedInCell returns how far each line of c moves within its cell.
func movedInCell(c *model.Cell) (by []float64) {
	if len(c.Blocks) == 0 || c.Turn != 0 {
		return nil
	}
	h := 0.0
	for _, b := range c.Blocks {
		h += b.Before + b.Height()
	}
	y := c.T
	switch c.Vertical() {
	case model.AlignBottom:
		y = c.B - h
	case model.AlignMiddle:
		y = c.CY() - h/2
	}
	for _, b := range c.Blocks {
		y += b.Before
		for range b.Lines {
			by = append(by, math.Max(0, math.Abs(y-b.T)-2))
		}
		y += b.Height()
	}
	return by
}

// flowHeight estimates the height of a block in the flow, in points.
func flowHeight(b *model.Block) float64 {
	if b.Kind != model.TableBlock {
		return b.Height()
	}
	t := b.Table
	rows := make([]float64, len(t.Ys)-1)
	for i := range rows {
		rows[i] = t.Ys[i+1] - t.Ys[i]
	}
	for _, c := range t.Cells {
		if c.Rows != 1 || c.Turn != 0 {
			continue
		}
		h := 0.0
		for _, bl := range c.Blocks {
			h += bl.Before + bl.Height()
		}
		rows[c.Row] = max(rows[c.Row], h)
	}
	sum := 0.0
	for _, h := range rows {
		sum += h
	}
	return sum
}

// fix returns the page with its text in boxes.
func fix(s *model.Sheet) *model.Fixed {
	f := &model.Fixed{Number: s.Number, W: s.W, H: s.H, Whole: s.Unlikely || s.Mirrored}
	if s.Form == model.FormPicture && !f.Whole {
		f.Whole, f.Chosen = true, true
	}
	words := slices.Clone(s.Words)
	var level, turned []*model.Word
	scanned := s.Scan != nil && s.Scan.Words > 0 // the picture shows the recognized words
	if scanned {
		f.Turn = s.Scan.Turn
	}
	if !f.Whole && f.Turn == 0 && (scanned || len(s.Words) == 0) {
		f.Pictures = allPictures(s)
	}
	for _, p := range s.Pictures {
		for _, w := range p.Labels {
			w.Hidden = w.Hidden || scanned
			words = append(words, w)
		}
	}
	for _, w := range words {
		w.Hidden = w.Hidden || f.Whole || scanned && w.Recognised
		for i := range w.Spans { // the picture has their rules
			w.Spans[i].Underline, w.Spans[i].Strike = false, false
		}
		switch {
		case w.Field != nil && w.Spans[0].Font == nil: // a blank, or a box to tick
			if w.Field.Ticks() {
				tickOnly(w)
			}
			l := &model.Line{Rect: w.Rect, Words: []*model.Word{w}, Base: w.Base, Size: w.Size}
			f.Boxes = append(f.Boxes, &model.Box{Rect: w.Rect, Lines: []*model.Line{l}})
		case w.Turn == 0:
			level = append(level, w)
		default:
			turned = append(turned, w)
		}
	}
	if !f.Whole && f.Turn == 0 && f.Pictures == nil && len(s.Rules) <= maxBehind {
		f.Rules = s.Rules
	}
	f.Boxes = append(f.Boxes, boxes(Pieces(level, s.Rules))...)
	for _, it := range Pieces(turned, nil) {
		l := &model.Line{Rect: it.Rect, Words: it.Words, Base: it.base, Size: it.Size}
		turn := it.Words[0].Turn
		f.Boxes = append(f.Boxes, &model.Box{Rect: it.Rect, Lines: []*model.Line{l}, Turn: turn, Behind: hidden(l) || turn == model.Askew})
	}
	geom.SortStable(f.Boxes, func(a, b *model.Box) bool { return a.T < b.T })
	return f
}

// tickOnly makes w, a check box or radio button, show only its mark, because the
// picture of the page has the rest.
func tickOnly(w *model.Word) {
	f := w.Field
	text, style := model.Blank, model.Style{Size: w.Size, Font: &model.Font{Name: model.SymbolFont}}
	if f.Checked {
		text = f.Tick()
	}
	if m := f.Mark; m != nil {
		style, w.Rect, w.Base, w.Size = m.Spans[0].Style, m.Rect, m.Base, m.Size
	}
	w.Spans = []model.Span{{Text: text, Style: style}}
}

// allPictures returns the pictures of a page if they show everything on it that
// is not text.
func allPictures(s *model.Sheet) []*model.Picture {
	out := s.Pictures
	if s.Scan != nil {
		out = slices.Concat(s.Scan.Under, out)
	}
	shown := func(r geom.Rect) bool {
		return slices.ContainsFunc(out, func(p *model.Picture) bool { return p.Grow(2).Intersect(r).Area() > 0.95*r.Area() })
	}
	switch {
	case len(s.Lost) > 0 || len(s.Backs) > 0 || len(out) == 0,
		slices.ContainsFunc(out, func(p *model.Picture) bool { return p.Media == nil }),
		slices.ContainsFunc(s.Fills, func(f model.Fill) bool { return !model.IsPaper(f.Colour) && !shown(f.Rect) }),
		slices.ContainsFunc(s.Rules, func(r *model.Rule) bool { return !shown(r.Rect().Grow(0.5)) }),
		slices.ContainsFunc(s.Drawings, func(d geom.Rect) bool { return !shown(d.Grow(0.5)) }):
		return nil
	}
	return out
}

// boxes joins pieces of lines that are set one below the other to paragraphs.
func boxes(ps []*Item) []*model.Box {
	geom.SortStable(ps, func(a, b *Item) bool { return a.base < b.base })
	var out []*model.Box
	for _, it := range ps {
		l := &model.Line{Rect: it.Rect, Words: it.Words, Base: it.base, Size: it.Size}
		var best *model.Box
		for k := len(out) - 1; k >= 0 && k >= len(out)-60; k-- {
			if b := out[k]; continues(b, l) && (best == nil || b.B > best.B) {
				best = b
			}
		}
		if best == nil {
			out = append(out, &model.Box{Rect: l.Rect, Lines: []*model.Line{l}, Behind: hidden(l)})
			continue
		}
		if len(best.Lines) == 1 {
			best.Pitch = l.Base - best.Lines[0].Base
			best.Align, _ = alignment(best.Lines[0], l)
		}
		best.Lines = append(best.Lines, l)
		best.Rect = best.Union(l.Rect)
	}
	return out
}

// continues reports whether l is the next line of the paragraph b.
func continues(b *model.Box, l *model.Line) bool {
	last := b.Lines[len(b.Lines)-1]
	d := l.Base - last.Base
	if math.Abs(l.Size-last.Size) > 0.06*last.Size || d < 0.8*l.Size || d > 1.7*l.Size {
		return false
	}
	if b.Behind != hidden(l) || l.Words[0].RTL || last.Words[0].RTL || l.L > last.R || l.R < last.L {
		return false
	}
	align, ok := alignment(last, l)
	if len(b.Lines) == 1 {
		return ok
	}
	return ok && align == b.Align && math.Abs(d-b.Pitch) < 0.06*l.Size
}

// alignment returns the alignment of two lines, one below the other.
func alignment(a, b *model.Line) (model.Alignment, bool) {
	const same = 1.2
	switch {
	case math.Abs(a.L-b.L) < same:
		return model.AlignLeft, true
	case math.Abs(a.CX()-b.CX()) < same:
		return model.AlignCentre, true
	case math.Abs(a.R-b.R) < same:
		return model.AlignRight, true
	}
	return model.AlignLeft, false
}

func hidden(l *model.Line) bool {
	return !slices.ContainsFunc(l.Words, func(w *model.Word) bool { return !w.Hidden })
}
