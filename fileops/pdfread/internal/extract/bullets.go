package extract

import (
	"math"
	"slices"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// Browsers and some office programs draw the bullets of a list. This file turns
// drawn bullets back into words, so that the layout can recognize the list.

// bulletsMost limits the small shapes on a page. With more of them the page is a
// drawing.
const bulletsMost = 500

// bullets turns dots and squares before lines into words.
func (w *walker) bullets() {
	s := w.sheet
	var dots []geom.Rect
	small := func(r geom.Rect) bool { return r.W() < 12 && r.H() < 12 && math.Abs(r.W()-r.H()) < 0.2*r.H() }
	for _, d := range s.Drawings {
		if small(d) {
			dots = append(dots, d)
		}
	}
	for _, f := range s.Fills {
		if small(f.Rect) && f.Colour != 0xffffff {
			dots = append(dots, f.Rect)
		}
	}
	if len(dots) > bulletsMost {
		return
	}
	for _, d := range dots {
		i := bulletOf(s, d)
		if i < 0 {
			continue
		}
		first := s.Words[i]
		f := first.Spans[0].Style
		dot := model.Style{Font: f.Font, Size: f.Size, Colour: f.Colour}
		s.Words = slices.Insert(s.Words, i, &model.Word{Rect: d, Spans: []model.Span{{Text: "•", Style: dot}}, Base: first.Base, Size: first.Size})
		s.Drawings = slices.DeleteFunc(s.Drawings, func(r geom.Rect) bool { return r == d })
		s.Fills = slices.DeleteFunc(s.Fills, func(f model.Fill) bool { return f.Rect == d })
	}
}

// bulletOf returns the index of the word that belongs to a dot: the nearest word
// to its right, if it starts a line. Otherwise it returns -1.
func bulletOf(s *model.Sheet, d geom.Rect) int {
	best := -1
	for i, w := range s.Words {
		if w.Turn != 0 || w.RTL || len(w.Spans) == 0 || d.CY() < w.T || d.CY() > w.B {
			continue
		}
		if w.R > d.L-2*w.Size && w.L < d.R { // the dot is within a line
			return -1
		}
		if gap := w.L - d.R; gap > 0 && gap < 2.5*w.Size && (best < 0 || w.L < s.Words[best].L) {
			best = i
		}
	}
	if best < 0 {
		return -1
	}
	// Middle dots and bullets measure between a tenth and two thirds of the text
	// size. Anything else is a picture or a checkbox.
	if k := d.H() / s.Words[best].Size; k < 0.1 || k > 0.66 {
		return -1
	}
	return best
}
