package extract

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// makeWords joins adjacent characters to words.
func makeWords(glyphs []glyph) []*model.Word {
	var out []*model.Word
	var cur *model.Word
	t := newText(glyphs)
	for i := range glyphs {
		g := &glyphs[i]
		if cur != nil {
			switch join(cur, g) {
			case joinSame:
				t.add(cur, g)
				continue
			case joinGlued:
				next := t.word(g)
				next.Glued = true
				next.Base = cur.Base
				cur = next
				out = append(out, cur)
				continue
			}
		}
		cur = t.word(g)
		out = append(out, cur)
	}
	return out
}

// A text has the text of all characters of a page one after another, so that words are
// parts of it and take no memory of their own. Its methods take the characters in order.
type text struct {
	all      string
	from, at int // where the last span starts and ends
}

func newText(glyphs []glyph) *text {
	n := 0
	for i := range glyphs {
		n += len(glyphs[i].text)
	}
	var b strings.Builder
	b.Grow(n)
	for i := range glyphs {
		b.WriteString(glyphs[i].text)
	}
	return &text{all: b.String()}
}

// raiseWords finds words that are superscripts or subscripts of their
// neighbours, such as the number of a footnote. It moves them to the neighbour's
// line.
func raiseWords(words []*model.Word) []*model.Word {
	const step = 16 // height of the strips in which neighbours are searched, points
	strips := make(map[int][]*model.Word)
	strip := func(y float64) int { return int(math.Floor(y / step)) }
	for _, w := range words {
		if w.Turn == 0 && utf8.RuneCountInString(w.Text()) >= 2 && w.Spans[0].Raise == 0 {
			strips[strip(w.Base)] = append(strips[strip(w.Base)], w)
		}
	}
	for _, w := range words {
		if w.Turn != 0 || w.Size <= 0 || w.Spans[0].Raise != 0 || utf8.RuneCountInString(w.Text()) > 4 {
			continue
		}
		if n, raise := raisedOver(w, strips[strip(w.Base-step)], strips[strip(w.Base)], strips[strip(w.Base+step)]); n != nil {
			for j := range w.Spans {
				w.Spans[j].Raise = raise
			}
			w.Base, w.Size = n.Base, n.Size
		}
	}
	return words
}

// raisedOver returns the word next to w to which w is a superscript (1) or a
// subscript (-1).
func raisedOver(w *model.Word, near ...[]*model.Word) (n *model.Word, raise int8) {
	closest := math.Inf(1)
	for _, strip := range near {
		for _, c := range strip {
			if c == w || w.Size > 0.85*c.Size || w.Size < 0.4*c.Size {
				continue
			}
			gap, up := max(c.L-w.R, w.L-c.R), c.Base-w.Base
			if gap > 0.6*c.Size || gap < -0.2*c.Size || gap >= closest {
				continue
			}
			switch {
			case up > 0.12*c.Size && up < 0.75*c.Size:
				n, raise, closest = c, 1, gap
			case up < -0.05*c.Size && up > -0.35*c.Size:
				n, raise, closest = c, -1, gap
			}
		}
	}
	return n, raise
}

// minDots is the least number of dots that lead from a title to a page number, and
// of underscores to write on.
const minDots = 5

// A leader says which row of characters a glyph is part of.
type leader byte

const (
	noLeader leader = iota
	dots            // they lead to something, or wait for an entry by hand
	line            // underscores to write on
)

// leaders has the characters that leaders consist of.
var leaders = map[string]struct {
	leader
	dots int // how many dots it has
}{".": {dots, 1}, "‥": {dots, 2}, "…": {dots, 3}, "_": {line, 1}}

// findLeaders marks dots and underscores in a row, with or without space between
// them.
func findLeaders(glyphs []glyph) {
	for i := 0; i < len(glyphs); i++ {
		if c := glyphs[i].text[0]; c != '.' && c != '_' && c < utf8.RuneSelf { // most text needs no lookup
			continue
		}
		kind, n := leaders[glyphs[i].text].leader, 0
		if kind == noLeader {
			continue
		}
		j := i
		for j < len(glyphs) && leaders[glyphs[j].text].leader == kind && glyphs[j].turn == 0 && glyphs[j].y == glyphs[i].y && (j == i || glyphs[j].L > glyphs[j-1].L) {
			n += leaders[glyphs[j].text].dots
			j++
		}
		if n >= minDots {
			for k := i; k < j; k++ {
				glyphs[k].leader = kind
			}
		}
		i = max(i, j-1)
	}
}

// word starts a word with a character.
func (t *text) word(g *glyph) *model.Word {
	w := &model.Word{Leader: g.leader == dots, Line: g.leader == line, Rect: geom.Nothing(), Base: g.y, Size: g.style.Size, Turn: g.turn, RTL: g.rtl, Hidden: g.hidden}
	if g.turn == 1 || g.turn == 3 {
		w.Base = g.x
	}
	t.add(w, g)
	return w
}

// add adds a character to the last word.
func (t *text) add(w *model.Word, g *glyph) {
	start := t.at
	t.at += len(g.text)
	w.Rect = w.Union(g.Rect)
	if g.rtl {
		w.RTL = true
	}
	if k := len(w.Spans) - 1; k >= 0 && w.Spans[k].Style == g.style {
		w.Spans[k].Text = t.all[t.from:t.at]
		return
	}
	t.from = start
	w.Spans = append(w.Spans, model.Span{Text: t.all[t.from:t.at], Style: g.style})
}

type joint int

const (
	joinNone joint = iota
	joinSame
	joinGlued
)

// join reports how g continues w.
func join(w *model.Word, g *glyph) joint {
	switch {
	case w.Turn != g.turn:
		return joinNone
	case w.Leader != (g.leader == dots) || w.Line != (g.leader == line):
		return joinLeader(w, g)
	case w.Leader:
		if gap := g.L - w.R; g.y == w.Base && gap > -0.1*w.Size && gap < 2*w.Size {
			return joinSame
		}
		return joinNone
	case w.Turn == model.Askew:
		if g.space || g.gap || w.Size != g.style.Size {
			return joinNone
		}
		return joinSame
	}
	gap, shift := distance(w, g)
	size := max(w.Size, g.style.Size)
	if gap > widest(w, g, gap, shift) || gap < -0.7*size {
		return joinNone
	}
	if w.Turn != 0 {
		if math.Abs(shift) < 0.3*size {
			return joinSame
		}
		return joinNone
	}
	if math.Abs(shift) <= 0.1*size && g.style.Size > 0.6*w.Size && w.Size > 0.6*g.style.Size {
		if g.rtl != w.RTL && model.HasLetter(g.text) && model.HasLetter(w.Text()) {
			return joinGlued
		}
		return joinSame
	}
	return joinShifted(w, g, shift)
}

// joinLeader is join where a leader begins or ends.
func joinLeader(w *model.Word, g *glyph) joint {
	if gap := g.L - w.R; w.Turn == 0 && !g.space && !g.gap && g.y == w.Base && gap > -0.1*w.Size && gap < 0.13*w.Size {
		return joinGlued
	}
	return joinNone
}

// distance returns how far g is from the end of w along the direction of the text, and from its base
// across it.
func distance(w *model.Word, g *glyph) (gap, shift float64) {
	switch w.Turn {
	case 0:
		gap, shift = g.L-w.R, g.y-w.Base
		if g.rtl && w.RTL || g.rtl && g.R < w.L+0.5*w.Size || w.RTL && !g.rtl && g.R < w.CX() {
			gap = w.L - g.R
		}
	case 1:
		gap, shift = g.T-w.B, w.Base-g.x
	case 2:
		gap, shift = w.L-g.R, w.Base-g.y
	case 3:
		gap, shift = w.T-g.B, g.x-w.Base
	}
	return gap, shift
}

// widest returns the widest gap within a word.
func widest(w *model.Word, g *glyph, gap, shift float64) float64 {
	size := max(w.Size, g.style.Size)
	limit := 0.13 * size
	switch {
	case g.space: // some files have space characters where no space is visible
		limit = 0.04 * size
	case g.gap:
		limit = 0.07 * size
	}
	if gap > limit && gap < 0.35*size && w.Turn == 0 && !g.space && shifted(w, g, shift) != 0 {
		limit = 0.35 * size
	}
	return limit
}

// joinShifted is join for characters that are raised, lowered, or of another size.
func joinShifted(w *model.Word, g *glyph, shift float64) joint {
	switch s := shifted(w, g, shift); s {
	case 1, -1:
		g.style.Raise = s
		return joinSame
	case 2, -2: // the word so far was raised, like the number of a footnote
		for i := range w.Spans {
			w.Spans[i].Raise = s / 2
		}
		w.Base, w.Size = g.y, g.style.Size
		return joinSame
	}
	return joinNone
}

// shifted returns 1 if g is a superscript of w, -1 if it is a subscript, and 2
// or -2 if w is one of g. shift is the distance of g below the baseline of w.
func shifted(w *model.Word, g *glyph, shift float64) int8 {
	small, large := g.style.Size, w.Size
	switch {
	case small <= 0.85*large:
		switch {
		case shift < -0.12*large && shift > -0.75*large:
			return 1
		case shift > 0.05*large && shift < 0.4*large:
			return -1
		}
	case large <= 0.85*small && len(w.Text()) <= 4:
		switch {
		case shift > 0.12*small && shift < 0.75*small:
			return 2
		case shift < -0.05*small && shift > -0.4*small:
			return -2
		}
	}
	return 0
}
