package pdfread

import (
	"math"
	"slices"
)

// Browsers and some office programs do not write the bullets of a list but draw
// them. They become words again, so that a list is seen to be one.

// bulletsMost is how many small shapes of a page are looked at; with more of them it
// is a drawing.
const bulletsMost = 500

// bullets makes words of dots and squares in front of lines.
func (w *walker) bullets() {
	s := w.sheet
	var dots []rect
	small := func(r rect) bool { return r.w() < 12 && r.h() < 12 && math.Abs(r.w()-r.h()) < 0.2*r.h() }
	for _, d := range s.drawings {
		if small(d) {
			dots = append(dots, d)
		}
	}
	for _, f := range s.fills {
		if small(f.rect) && f.colour != 0xffffff {
			dots = append(dots, f.rect)
		}
	}
	if len(dots) > bulletsMost {
		return
	}
	for _, d := range dots {
		i := s.bulletOf(d)
		if i < 0 {
			continue
		}
		first := s.words[i]
		f := first.spans[0].style
		dot := style{font: f.font, size: f.size, colour: f.colour}
		s.words = slices.Insert(s.words, i, &word{rect: d, spans: []span{{"•", dot}}, base: first.base, size: first.size})
		s.drawings = slices.DeleteFunc(s.drawings, func(r rect) bool { return r == d })
		s.fills = slices.DeleteFunc(s.fills, func(f fill) bool { return f.rect == d })
	}
}

// bulletOf returns the index of the word that a dot is the bullet of, or -1: the
// nearest on its right, if it begins a line.
func (s *sheet) bulletOf(d rect) int {
	best := -1
	for i, w := range s.words {
		if w.turn != 0 || w.rtl || len(w.spans) == 0 || d.cy() < w.t || d.cy() > w.b {
			continue
		}
		if w.r > d.l-2*w.size && w.l < d.r { // the dot is within a line
			return -1
		}
		if gap := w.l - d.r; gap > 0 && gap < 2.5*w.size && (best < 0 || w.l < s.words[best].l) {
			best = i
		}
	}
	if best < 0 {
		return -1
	}
	// Middle dots and bullets are between a tenth and two thirds of the size of
	// the text; anything else is a picture or a box to tick.
	if k := d.h() / s.words[best].size; k < 0.1 || k > 0.66 {
		return -1
	}
	return best
}
