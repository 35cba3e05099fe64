package pdfread

import (
	"math"
	"unicode/utf8"
)

// makeWords joins characters that stand side by side.
func makeWords(glyphs []glyph) []*word {
	var out []*word
	var cur *word
	for i := range glyphs {
		g := &glyphs[i]
		if cur != nil {
			switch join(cur, g) {
			case joinSame:
				cur.add(g)
				continue
			case joinGlued:
				next := newWord(g)
				next.glued = true
				next.base = cur.base
				cur = next
				out = append(out, cur)
				continue
			}
		}
		cur = newWord(g)
		out = append(out, cur)
	}
	return out
}

// raiseWords finds words that are superscripts or subscripts of their
// neighbours, such as the number in front of a footnote, and puts them on the
// same line.
func raiseWords(words []*word) []*word {
	const step = 16 // height of the strips in which neighbours are looked for, points
	strips := make(map[int][]*word)
	strip := func(y float64) int { return int(math.Floor(y / step)) }
	for _, w := range words {
		if w.turn == 0 && utf8.RuneCountInString(w.text()) >= 2 && w.spans[0].raise == 0 {
			strips[strip(w.base)] = append(strips[strip(w.base)], w)
		}
	}
	for _, w := range words {
		if w.turn != 0 || w.size <= 0 || w.spans[0].raise != 0 || utf8.RuneCountInString(w.text()) > 4 {
			continue
		}
		if n, raise := raisedOver(w, strips[strip(w.base-step)], strips[strip(w.base)], strips[strip(w.base+step)]); n != nil {
			for j := range w.spans {
				w.spans[j].raise = raise
			}
			w.base, w.size = n.base, n.size
		}
	}
	return words
}

// raisedOver returns the word at whose side w is a superscript, 1, or a
// subscript, -1.
func raisedOver(w *word, near ...[]*word) (n *word, raise int8) {
	closest := math.Inf(1)
	for _, strip := range near {
		for _, c := range strip {
			if c == w || w.size > 0.85*c.size || w.size < 0.4*c.size {
				continue
			}
			gap, up := max(c.l-w.r, w.l-c.r), c.base-w.base
			if gap > 0.6*c.size || gap < -0.2*c.size || gap >= closest {
				continue
			}
			switch {
			case up > 0.12*c.size && up < 0.75*c.size:
				n, raise, closest = c, 1, gap
			case up < -0.05*c.size && up > -0.35*c.size:
				n, raise, closest = c, -1, gap
			}
		}
	}
	return n, raise
}

func newWord(g *glyph) *word {
	w := &word{rect: nothing(), base: g.y, size: g.style.size, turn: g.turn, rtl: g.rtl}
	if g.turn == 1 || g.turn == 3 {
		w.base = g.x
	}
	w.add(g)
	return w
}

func (w *word) add(g *glyph) {
	w.rect = w.union(g.rect)
	if g.rtl {
		w.rtl = true
	}
	if k := len(w.spans) - 1; k >= 0 && w.spans[k].style == g.style {
		w.spans[k].text += g.text
		return
	}
	w.spans = append(w.spans, span{g.text, g.style})
}

type joint int

const (
	joinNone joint = iota
	joinSame
	joinGlued
)

// join tells whether g goes on with w.
func join(w *word, g *glyph) joint {
	if w.turn != g.turn {
		return joinNone
	}
	if w.turn == askew {
		if g.space || g.gap || w.size != g.style.size {
			return joinNone
		}
		return joinSame
	}
	// along and across the direction of the text
	var gap, shift float64
	switch w.turn {
	case 0:
		gap, shift = g.l-w.r, g.y-w.base
		if g.rtl && w.rtl || g.rtl && g.r < w.l+0.5*w.size || w.rtl && !g.rtl && g.r < w.cx() {
			gap = w.l - g.r
		}
	case 1:
		gap, shift = g.t-w.b, w.base-g.x
	case 2:
		gap, shift = w.l-g.r, w.base-g.y
	case 3:
		gap, shift = w.t-g.b, g.x-w.base
	}
	size := max(w.size, g.style.size)
	limit := 0.13 * size
	switch {
	case g.space: // some files have space characters where there is no space
		limit = 0.04 * size
	case g.gap:
		limit = 0.07 * size
	}
	if gap > limit && gap < 0.35*size && w.turn == 0 && !g.space && shifted(w, g, shift) != 0 {
		limit = 0.35 * size
	}
	if gap > limit || gap < -0.7*size {
		return joinNone
	}
	if w.turn != 0 {
		if math.Abs(shift) < 0.3*size {
			return joinSame
		}
		return joinNone
	}
	if math.Abs(shift) <= 0.1*size && g.style.size > 0.6*w.size && w.size > 0.6*g.style.size {
		if g.rtl != w.rtl && hasLetter(g.text) && hasLetter(w.text()) {
			return joinGlued
		}
		return joinSame
	}
	switch s := shifted(w, g, shift); s {
	case 1, -1:
		g.style.raise = s
		return joinSame
	case 2, -2: // what was there so far was raised, as the number of a footnote is
		for i := range w.spans {
			w.spans[i].raise = s / 2
		}
		w.base, w.size = g.y, g.style.size
		return joinSame
	}
	return joinNone
}

// shifted tells whether g is a superscript (1) or subscript (-1) to w, or w is
// one to g (2 and -2). shift is how far below the base line of w it stands.
func shifted(w *word, g *glyph, shift float64) int8 {
	small, large := g.style.size, w.size
	switch {
	case small <= 0.85*large:
		switch {
		case shift < -0.12*large && shift > -0.75*large:
			return 1
		case shift > 0.05*large && shift < 0.4*large:
			return -1
		}
	case large <= 0.85*small && len(w.text()) <= 4:
		switch {
		case shift > 0.12*small && shift < 0.75*small:
			return 2
		case shift < -0.05*small && shift > -0.4*small:
			return -2
		}
	}
	return 0
}
