package pdfread

import (
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

// An item is what a page is divided by: a piece of a line, a picture or a table.
type item struct {
	rect
	words   []*word // of a piece of a line
	size    float64
	base    float64
	chars   int
	turned  bool
	picture *picture
	table   *table
}

func (it *item) text() bool { return len(it.words) > 0 }

// pieces joins words to pieces of lines: words on one base line with no more
// than the width of a letter between them. bars are rules that separate.
func pieces(words []*word, bars []*rule) []*item {
	var out []*item
	var level []*word
	for _, w := range words {
		if w.turn != 0 {
			out = append(out, &item{rect: w.rect, words: []*word{w}, size: w.size, base: w.b, chars: utf8.RuneCountInString(w.text()), turned: true})
			continue
		}
		level = append(level, w)
	}
	out = joinTurned(out)
	for _, row := range rows(level) {
		sortStable(row, func(a, b *word) bool { return a.l < b.l })
		for i := 0; i < len(row); {
			j := i + 1
			right := row[i].r
			for j < len(row) && !apart(row[j-1], row[j], right, bars) {
				right = max(right, row[j].r)
				j++
			}
			out = append(out, newPiece(row[i:j:j]))
			i = j
		}
	}
	return out
}

func newPiece(words []*word) *item {
	l := newLine(words)
	it := &item{rect: l.rect, words: words, size: l.size, base: l.base}
	for _, w := range words {
		it.chars += utf8.RuneCountInString(w.text()) + 1
	}
	return it
}

// apart tells whether b, to the right of a, starts a new piece.
func apart(a, b *word, right float64, bars []*rule) bool {
	if b.glued {
		return false
	}
	gap := b.l - right
	if gap > 0.85*max(min(a.size, b.size), 4) {
		return true
	}
	if gap < 1 {
		return false
	}
	for _, r := range bars {
		if !r.horizontal && r.pos > right-1 && r.pos < b.l+1 && r.from < b.cy() && r.to > b.cy() {
			return true
		}
	}
	return false
}

// joinTurned joins words that run up or down to lines of their own.
func joinTurned(in []*item) []*item {
	var out []*item
	for _, it := range in {
		if k := len(out) - 1; k >= 0 {
			last := out[k]
			a, b := last.words[len(last.words)-1], it.words[0]
			near := a.grow(0.6 * a.size).overlaps(b.rect)
			if near && a.turn == b.turn && (a.turn == askew || math.Abs(a.base-b.base) < 0.3*a.size) {
				last.words = append(last.words, b)
				last.rect = last.union(it.rect)
				last.chars += it.chars + 1
				continue
			}
		}
		out = append(out, it)
	}
	return out
}

// rows groups words that stand on the same base line, from top to bottom.
func rows(words []*word) [][]*word {
	ws := slices.Clone(words)
	sortStable(ws, func(a, b *word) bool { return a.base < b.base })
	var out [][]*word
	for i := 0; i < len(ws); {
		j := i + 1
		for j < len(ws) && ws[j].base-ws[i].base <= 0.22*min(max(ws[i].size, 4), max(ws[j].size, 4)) {
			j++
		}
		out = append(out, ws[i:j:j])
		i = j
	}
	return out
}

// A group is a part of a page in reading order: one column, or several side by
// side. A column consists of parts, one below the other, each with items.
type group struct {
	columns [][][]*item
}

// divide finds the columns of a page. Everything that is not part of columns
// is above or below them.
func divide(items []*item, depth int) []group {
	if len(items) == 0 {
		return nil
	}
	g, ok := findGutter(items)
	if !ok || depth > 12 {
		return []group{{[][][]*item{{items}}}}
	}
	var top, left, right, bottom []*item
	for _, it := range items {
		switch {
		case it.cy() < g.t:
			top = append(top, it)
		case it.cy() > g.b:
			bottom = append(bottom, it)
		case it.cx() < g.cx():
			left = append(left, it)
		default:
			right = append(right, it)
		}
	}
	out := divide(top, depth+1)
	var columns [][][]*item
	for _, side := range [][]*item{left, right} {
		sub := divide(side, depth+1)
		if len(sub) == 1 {
			columns = append(columns, sub[0].columns...)
			continue
		}
		// Columns in a part of a column cannot be kept, but their order can.
		var parts [][]*item
		for _, s := range sub {
			for _, c := range s.columns {
				parts = append(parts, c...)
			}
		}
		columns = append(columns, parts)
	}
	out = append(out, group{columns})
	return append(out, divide(bottom, depth+1)...)
}

// findGutter returns the white rectangle that divides the most text into a left
// and a right part.
func findGutter(items []*item) (best rect, found bool) {
	var sizes, lefts []float64
	for _, it := range items {
		if it.text() && !it.turned {
			sizes = append(sizes, it.size)
		}
		lefts = append(lefts, it.l)
	}
	if len(sizes) < 6 {
		return rect{}, false
	}
	size := median(sizes)
	least := max(5, 0.75*size)
	byTop := slices.Clone(items)
	sortStable(byTop, func(a, b *item) bool { return a.t < b.t })
	page := nothing()
	for _, it := range items {
		page = page.union(it.rect)
	}
	score := 0.0
	for _, x := range cluster(lefts, 1.5) {
		right := x - 1
		left := right - least
		if left < page.l+0.08*page.w() || right > page.r-0.08*page.w() {
			continue
		}
		try := func(t, b float64) {
			if g, s := judgeGutter(byTop, rect{left, t, right, b}, size); s > score {
				best, score, found = g, s, true
			}
		}
		from := page.t - 1
		for _, it := range byTop {
			if it.l < right && it.r > left+0.01 {
				if it.t-from > 2*size {
					try(from, it.t)
				}
				from = max(from, it.b)
			}
		}
		if page.b+1-from > 2*size {
			try(from, page.b+1)
		}
	}
	return best, found
}

// judgeGutter tells how good a gutter is, 0 for not at all, and where it really
// begins and ends. What stands left and right of it must look like columns of
// text, not like those of a table.
func judgeGutter(items []*item, g rect, size float64) (rect, float64) {
	type side struct {
		box     rect
		lines   int
		chars   []float64
		letters int // lines that begin with a letter
		digits  int // lines that do not
		labels  int // lines that end in a colon
		widths  []float64
		bases   []float64
		objects float64 // height of pictures and tables
	}
	var l, r side
	for _, it := range items {
		if it.cy() <= g.t || it.cy() >= g.b {
			continue
		}
		s := &l
		if it.cx() > g.cx() {
			s = &r
		}
		if s.box.r == 0 && s.box.l == 0 && s.lines == 0 && s.objects == 0 {
			s.box = nothing()
		}
		s.box = s.box.union(it.rect)
		if it.text() {
			s.lines++
			s.chars = append(s.chars, float64(it.chars))
			s.widths = append(s.widths, it.w())
			s.bases = append(s.bases, it.base)
			if lastRune(it.words[len(it.words)-1].text()) == ':' {
				s.labels++
			}
			if r, _ := utf8.DecodeRuneInString(it.words[0].text()); unicode.IsLetter(r) {
				s.letters++
			} else {
				s.digits++
			}
		} else {
			s.objects += it.h()
		}
	}
	enough := func(s *side) bool { return s.lines >= 3 || s.objects > 4*size }
	if !enough(&l) || !enough(&r) || l.lines+r.lines < 4 || l.box.w() < 40 || r.box.w() < 40 {
		return g, 0
	}
	overlap := min(l.box.b, r.box.b) - max(l.box.t, r.box.t)
	if overlap < 2*size || overlap < 0.25*min(l.box.h(), r.box.h()) {
		return g, 0
	}
	// How many lines of the shorter side stand level with one of the other?
	level := 0
	slices.Sort(r.bases)
	for _, b := range l.bases {
		if len(r.bases) > 0 && math.Abs(r.bases[nearest(r.bases, b)]-b) < 0.15*size {
			level++
		}
	}
	aligned := float64(level) / float64(max(1, min(l.lines, r.lines)))
	full := func(s *side) bool {
		if s.lines < 3 {
			return true
		}
		if s.lines >= 15 && median(s.chars) >= 9 && s.box.w() >= 8*size && s.letters > s.digits {
			return true // an index
		}
		return median(s.chars) >= 16 && median(s.widths) >= 0.55*s.box.w()
	}
	if aligned > 0.5 && (!full(&l) || !full(&r)) {
		return g, 0
	}
	if aligned > 0.3 && 5*l.labels >= 2*l.lines {
		return g, 0 // labels with their values beside them
	}
	if !full(&l) && !full(&r) && min(l.lines, r.lines) < 4 {
		return g, 0
	}
	// Some lines that end early on the left make a wide gap; only one that is
	// free over its whole height counts, so width says little. Height and
	// text on both sides do.
	g = rect{max(g.l, l.box.r), min(l.box.t, r.box.t) - 0.5, min(g.r+1, r.box.l), max(l.box.b, r.box.b) + 0.5}
	if g.l > g.r {
		g.l, g.r = g.r, g.l
	}
	balance := min(l.box.w(), r.box.w()) / max(l.box.w(), r.box.w())
	return g, overlap * (0.5 + balance) * float64(min(l.lines, r.lines)+2)
}

// A layouter lays out the pages of one document.
type layouter struct {
	tables bool // find tables; otherwise their text is text in lines
}

// leaf lays out a page. Words in taken are left out: they are in the header or
// footer.
func (y *layouter) leaf(s *sheet, taken map[*word]bool) *leaf {
	out := &leaf{number: s.number, w: s.w, h: s.h, links: s.links}
	var words []*word
	for _, w := range s.words {
		if !taken[w] {
			words = append(words, w)
		}
	}
	var items []*item
	var ts []*table
	if y.tables {
		decorate(words, s.rules)
		ts, words = findTables(s, words)
	}
	ps := pieces(words, s.rules)
	if y.tables {
		// Tables without vertical rules are found by their white space.
		var framed []*table
		framed, ps = findFramedTables(s, ps)
		for _, t := range append(ts, framed...) {
			items = append(items, &item{rect: t.rect, table: t})
		}
	}
	// What runs up or down beside the text, such as a stamp in the margin, is
	// no part of the columns and comes last.
	ps, aside := apartFromFlow(ps)
	items = append(items, ps...)
	for _, p := range s.pictures {
		if p.media == nil {
			continue
		}
		items = append(items, &item{rect: p.rect, picture: p})
	}
	out.content = nothing()
	for _, g := range divide(items, 0) {
		b := band{rect: nothing()}
		for _, c := range g.columns {
			col := y.column(c)
			for _, bl := range col.blocks {
				bl.page = s.number
			}
			b.rect = b.union(col.rect)
			b.columns = append(b.columns, col)
		}
		out.content = out.content.union(b.rect)
		out.bands = append(out.bands, b)
	}
	if n := len(out.bands); n > 0 && len(aside) > 0 {
		last := &out.bands[n-1].columns[len(out.bands[n-1].columns)-1]
		for _, it := range aside {
			l := &line{rect: it.rect, words: it.words, base: it.b, size: it.size}
			last.blocks = append(last.blocks, &block{rect: it.rect, lines: []*line{l}, region: last.rect, page: s.number})
		}
	}
	return out
}

// apartFromFlow divides pieces of lines into those of the flow and those in
// another direction, if these are few.
func apartFromFlow(ps []*item) (flow, aside []*item) {
	level, turned := 0, 0
	for _, it := range ps {
		if it.turned {
			turned += it.chars
			aside = append(aside, it)
		} else {
			level += it.chars
			flow = append(flow, it)
		}
	}
	if level == 0 || 5*turned > level {
		return ps, nil
	}
	return flow, aside
}

// column makes blocks of the parts of a column.
func (y *layouter) column(parts [][]*item) column {
	col := column{rect: nothing()}
	for _, items := range parts {
		box := nothing()
		for _, it := range items {
			box = box.union(it.rect)
		}
		col.rect = col.union(box)
		if y.tables {
			var ts []*table
			ts, items = findOpenTables(items)
			for _, t := range ts {
				items = append(items, &item{rect: t.rect, table: t})
			}
		}
		col.blocks = append(col.blocks, blocks(items, box)...)
	}
	return col
}
