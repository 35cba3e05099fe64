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

// What a page may lose in flowing text, as parts of its area or width.
const (
	lostFills  = 0.02
	lostImages = 0.02
	lostDrawn  = 0.015
	lostRules  = 2.0  // total length
	lostHeight = 0.12 // difference of the height of the flow
	lostTurned = 0.2  // part of the characters
	lostInk    = 0.12 // part of the ink of a scan
	smallPage  = 260  // points; text on narrower pages has no room to flow
)

// flows reports whether flowing text can show the page: whether the leaf l has
// everything visible of s, at about the same height.
func flows(s *model.Sheet, l *model.Leaf) bool {
	if s.Scan != nil && s.Scan.Words > 0 {
		return s.Scan.Other <= lostInk && sameHeight(s, l)
	}
	if s.Unlikely {
		return false
	}
	if len(s.Words) == 0 {
		return s.Blank || s.Damaged
	}
	area := s.W * s.H
	if s.W < smallPage {
		return false
	}
	return lostGraphics(s, l, area) && upright(l) && hasMargins(s, l) && sameHeight(s, l)
}

// edge is the smallest margin of flowing text, points.
const edge = 12

// hasMargins reports whether nothing of l is at the edge of the page.
func hasMargins(s *model.Sheet, l *model.Leaf) bool {
	c := l.Content
	return c.L >= edge && c.T >= edge && c.R <= s.W-edge && c.B <= s.H-edge
}

// lostGraphics reports whether few graphics of s are missing in l.
func lostGraphics(s *model.Sheet, l *model.Leaf, area float64) bool {
	var kept []geom.Rect // tables and pictures have their own graphics
	for _, b := range l.Bands {
		for _, c := range b.Columns {
			for _, bl := range c.Blocks {
				switch {
				case bl.Kind == model.TableBlock && (bl.Table.Ruled || slices.ContainsFunc(bl.Table.Cells, func(c *model.Cell) bool { return c.Shaded })):
					kept = append(kept, bl.Table.Grow(4))
				case bl.Kind == model.PictureBlock:
					kept = append(kept, bl.Grow(2))
				}
			}
		}
	}
	isKept := func(r geom.Rect) bool {
		return slices.ContainsFunc(kept, func(k geom.Rect) bool { return k.Intersect(r).Area() > 0.7*r.Area() })
	}
	images, fills, drawn, rules := 0.0, 0.0, 0.0, 0.0
	for _, r := range s.Lost {
		images += r.Area()
	}
	for _, f := range s.Fills {
		if !model.IsPaper(f.Colour) && !isKept(f.Rect) {
			fills += f.Area()
		}
	}
	for _, d := range s.Drawings {
		if d = d.Grow(0.5); d.W() > 6 && d.H() > 6 && !isKept(d) {
			drawn += d.Area()
		}
	}
	for _, r := range s.Rules {
		if b := r.Rect().Grow(0.5); !r.Used && !isKept(b) {
			rules += r.To - r.From
		}
	}
	return images <= lostImages*area && fills <= lostFills*area && drawn <= lostDrawn*area && rules <= lostRules*s.W
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

// sameHeight reports whether the blocks of l fill about the same height, one
// below the other, as on the page. Blocks side by side that are not columns do
// not.
func sameHeight(s *model.Sheet, l *model.Leaf) bool {
	flow := 0.0
	for _, b := range l.Bands {
		most := 0.0
		for _, c := range b.Columns {
			h := 0.0
			for _, bl := range c.Blocks {
				h += bl.Before + bl.Height()
			}
			most = max(most, h)
		}
		flow += most
	}
	is := l.Content.H()
	for i := 1; i < len(l.Bands); i++ {
		is -= max(0, l.Bands[i].T-l.Bands[i-1].B)
	}
	return math.Abs(flow-is) <= lostHeight*s.H
}

// fix returns the page with its text in boxes.
func fix(s *model.Sheet) *model.Fixed {
	f := &model.Fixed{Number: s.Number, W: s.W, H: s.H, Whole: s.Unlikely}
	words := slices.Clone(s.Words)
	for _, p := range s.Pictures {
		words = append(words, p.Labels...)
	}
	var level, turned []*model.Word
	scanned := s.Scan != nil && s.Scan.Words > 0 // the picture shows the recognized words
	if scanned {
		f.Turn = s.Scan.Turn
	}
	if !s.Unlikely && f.Turn == 0 && (scanned || len(s.Words) == 0) {
		f.Pictures = allPictures(s)
	}
	for _, w := range words {
		w.Hidden = w.Hidden || s.Unlikely || scanned
		for i := range w.Spans { // the picture has their rules
			w.Spans[i].Underline, w.Spans[i].Strike = false, false
		}
		if w.Turn == 0 {
			level = append(level, w)
		} else {
			turned = append(turned, w)
		}
	}
	f.Boxes = boxes(Pieces(level, s.Rules))
	for _, it := range Pieces(turned, nil) {
		l := &model.Line{Rect: it.Rect, Words: it.Words, Base: it.base, Size: it.Size}
		turn := it.Words[0].Turn
		f.Boxes = append(f.Boxes, &model.Box{Rect: it.Rect, Lines: []*model.Line{l}, Turn: turn, Behind: hidden(l) || turn == model.Askew})
	}
	geom.SortStable(f.Boxes, func(a, b *model.Box) bool { return a.T < b.T })
	return f
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
	case len(s.Lost) > 0 || len(out) == 0,
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
