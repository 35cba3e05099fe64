// Package layout finds the structure of pages: lines, columns, tables,
// paragraphs, headings, lists, and the headers and footers of a document.
//
// White space divides a page into its parts. Paragraphs are found on each page;
// headings and headers only by comparison of all pages.
package layout

import (
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// An Item is a part of a page during layout: a piece of a line, a picture or a
// table.
type Item struct {
	geom.Rect
	Words   []*model.Word // of a piece of a line
	Size    float64
	base    float64
	Chars   int
	Turned  bool
	picture *model.Picture
	table   *model.Table
}

func (it *Item) text() bool { return len(it.Words) > 0 }

// Pieces joins words to pieces of lines: words on one baseline with gaps no
// wider than a letter. bars are rules that separate words.
func Pieces(words []*model.Word, bars []*model.Rule) []*Item {
	var out []*Item
	var level []*model.Word
	for _, w := range words {
		if w.Turn != 0 {
			out = append(out, &Item{Rect: w.Rect, Words: []*model.Word{w}, Size: w.Size, base: w.B, Chars: utf8.RuneCountInString(w.Text()), Turned: true})
			continue
		}
		level = append(level, w)
	}
	out = joinTurned(out)
	for _, row := range Rows(level) {
		geom.SortStable(row, func(a, b *model.Word) bool { return a.L < b.L })
		for i := 0; i < len(row); {
			j := i + 1
			right := row[i].R
			for j < len(row) && !apart(row[j-1], row[j], right, bars) {
				right = max(right, row[j].R)
				j++
			}
			out = append(out, newPiece(row[i:j:j]))
			i = j
		}
	}
	return out
}

func newPiece(words []*model.Word) *Item {
	l := model.NewLine(words)
	it := &Item{Rect: l.Rect, Words: words, Size: l.Size, base: l.Base}
	for _, w := range words {
		it.Chars += utf8.RuneCountInString(w.Text()) + 1
	}
	return it
}

// apart reports whether b, to the right of a, starts a new piece.
func apart(a, b *model.Word, right float64, bars []*model.Rule) bool {
	if b.Glued {
		return false
	}
	gap := b.L - right
	if gap > 0.85*max(min(a.Size, b.Size), 4) {
		return true
	}
	if gap < 1 {
		return false
	}
	for _, r := range bars {
		if !r.Horizontal && r.Pos > right-1 && r.Pos < b.L+1 && r.From < b.CY() && r.To > b.CY() {
			return true
		}
	}
	return false
}

// joinTurned joins words that run up or down to vertical lines.
func joinTurned(in []*Item) []*Item {
	var out []*Item
	for _, it := range in {
		if k := len(out) - 1; k >= 0 {
			last := out[k]
			a, b := last.Words[len(last.Words)-1], it.Words[0]
			near := a.Grow(0.6 * a.Size).Overlaps(b.Rect)
			if near && a.Turn == b.Turn && (a.Turn == model.Askew || math.Abs(a.Base-b.Base) < 0.3*a.Size) {
				last.Words = append(last.Words, b)
				last.Rect = last.Union(it.Rect)
				last.Chars += it.Chars + 1
				continue
			}
		}
		out = append(out, it)
	}
	return out
}

// Rows groups words on the same baseline, from top to bottom.
func Rows(words []*model.Word) [][]*model.Word {
	ws := slices.Clone(words)
	geom.SortStable(ws, func(a, b *model.Word) bool { return a.Base < b.Base })
	var out [][]*model.Word
	for i := 0; i < len(ws); {
		j := i + 1
		for j < len(ws) && ws[j].Base-ws[i].Base <= 0.22*min(max(ws[i].Size, 4), max(ws[j].Size, 4)) {
			j++
		}
		out = append(out, ws[i:j:j])
		i = j
	}
	return out
}

// A group is a part of a page in reading order: one column, or several side by
// side. Each column consists of parts from top to bottom, and each part has
// items.
type group struct {
	columns [][][]*Item
}

// divide finds the columns of a page. All other items are above or below
// columns.
func divide(items []*Item, depth int) []group {
	if len(items) == 0 {
		return nil
	}
	g, ok := findGutter(items)
	if !ok || depth > 12 {
		return []group{{[][][]*Item{{items}}}}
	}
	var top, left, right, bottom []*Item
	for _, it := range items {
		switch {
		case it.CY() < g.T:
			top = append(top, it)
		case it.CY() > g.B:
			bottom = append(bottom, it)
		case it.CX() < g.CX():
			left = append(left, it)
		default:
			right = append(right, it)
		}
	}
	out := divide(top, depth+1)
	var columns [][][]*Item
	for _, side := range [][]*Item{left, right} {
		sub := divide(side, depth+1)
		if len(sub) == 1 {
			columns = append(columns, sub[0].columns...)
			continue
		}
		// Columns within a column cannot be kept, but their order can.
		var parts [][]*Item
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

// findGutter returns the white rectangle that separates the most text into a
// left and a right part.
func findGutter(items []*Item) (best geom.Rect, found bool) {
	var sizes, lefts []float64
	for _, it := range items {
		if it.text() && !it.Turned {
			sizes = append(sizes, it.Size)
		}
		lefts = append(lefts, it.L)
	}
	if len(sizes) < 6 {
		return geom.Rect{}, false
	}
	size := geom.Median(sizes)
	least := max(5, 0.75*size)
	byTop := slices.Clone(items)
	geom.SortStable(byTop, func(a, b *Item) bool { return a.T < b.T })
	page := geom.Nothing()
	for _, it := range items {
		page = page.Union(it.Rect)
	}
	score := 0.0
	for _, x := range geom.Cluster(lefts, 1.5) {
		right := x - 1
		left := right - least
		if left < page.L+0.08*page.W() || right > page.R-0.08*page.W() {
			continue
		}
		try := func(t, b float64) {
			if g, s := judgeGutter(byTop, geom.Rect{L: left, T: t, R: right, B: b}, size); s > score {
				best, score, found = g, s, true
			}
		}
		from := page.T - 1
		for _, it := range byTop {
			if it.L < right && it.R > left+0.01 {
				if it.T-from > 2*size {
					try(from, it.T)
				}
				from = max(from, it.B)
			}
		}
		if page.B+1-from > 2*size {
			try(from, page.B+1)
		}
	}
	return best, found
}

// judgeGutter returns the exact extent of a gutter and its score; 0 means that
// it is not a gutter. The text on both sides must look like columns of text, and
// not like columns of a table.
func judgeGutter(items []*Item, g geom.Rect, size float64) (geom.Rect, float64) {
	l, r := besides(items, g)
	if !l.enough(size) || !r.enough(size) || l.lines+r.lines < 4 || l.box.W() < 40 || r.box.W() < 40 {
		return g, 0
	}
	overlap := min(l.box.B, r.box.B) - max(l.box.T, r.box.T)
	if overlap < 2*size || overlap < 0.25*min(l.box.H(), r.box.H()) {
		return g, 0
	}
	fullLeft, fullRight := l.full(size), r.full(size)
	aligned := float64(level(l, r, size)) / float64(max(1, min(l.lines, r.lines)))
	switch {
	case aligned > 0.5 && (!fullLeft || !fullRight):
		return g, 0
	case aligned > 0.3 && 5*l.labels >= 2*l.lines: // labels with values beside them
		return g, 0
	case !fullLeft && !fullRight && min(l.lines, r.lines) < 4:
		return g, 0
	}
	// A few short lines on the left make a wide gap, but the gutter must be free
	// over its whole height. So the width says little; the height and the text on
	// both sides count.
	g = geom.Rect{L: max(g.L, l.box.R), T: min(l.box.T, r.box.T) - 0.5, R: min(g.R+1, r.box.L), B: max(l.box.B, r.box.B) + 0.5}
	if g.L > g.R {
		g.L, g.R = g.R, g.L
	}
	balance := min(l.box.W(), r.box.W()) / max(l.box.W(), r.box.W())
	return g, overlap * (0.5 + balance) * float64(min(l.lines, r.lines)+2)
}

// A side is what stands on one side of a gutter.
type side struct {
	box     geom.Rect
	lines   int
	chars   []float64
	letters int // lines that start with a letter
	digits  int // lines that start otherwise
	labels  int // lines that end in a colon
	widths  []float64
	bases   []float64
	objects float64 // height of pictures and tables
}

// besides returns what stands on the left and on the right of a gutter.
func besides(items []*Item, g geom.Rect) (l, r *side) {
	l, r = &side{box: geom.Nothing()}, &side{box: geom.Nothing()}
	for _, it := range items {
		switch {
		case it.CY() <= g.T || it.CY() >= g.B:
		case it.CX() > g.CX():
			r.add(it)
		default:
			l.add(it)
		}
	}
	return l, r
}

func (s *side) add(it *Item) {
	s.box = s.box.Union(it.Rect)
	if !it.text() {
		s.objects += it.H()
		return
	}
	s.lines++
	s.chars = append(s.chars, float64(it.Chars))
	s.widths = append(s.widths, it.W())
	s.bases = append(s.bases, it.base)
	if model.LastRune(it.Words[len(it.Words)-1].Text()) == ':' {
		s.labels++
	}
	if first, _ := utf8.DecodeRuneInString(it.Words[0].Text()); unicode.IsLetter(first) {
		s.letters++
	} else {
		s.digits++
	}
}

// enough reports whether a side may be a column.
func (s *side) enough(size float64) bool { return s.lines >= 3 || s.objects > 4*size }

// full reports whether the lines of a side fill it, as in a column of text or an index.
func (s *side) full(size float64) bool {
	if s.lines < 3 {
		return true
	}
	if s.lines >= 15 && geom.Median(s.chars) >= 9 && s.box.W() >= 8*size && s.letters > s.digits {
		return true // an index
	}
	return geom.Median(s.chars) >= 16 && geom.Median(s.widths) >= 0.55*s.box.W()
}

// level returns how many lines of l are level with a line of r. It sorts the bases of r.
func level(l, r *side, size float64) (n int) {
	slices.Sort(r.bases)
	for _, b := range l.bases {
		if len(r.bases) > 0 && math.Abs(r.bases[geom.Nearest(r.bases, b)]-b) < 0.15*size {
			n++
		}
	}
	return n
}

// A layouter lays out the pages of one document.
type layouter struct {
	tables bool // find tables; otherwise their text is treated as lines
}

// Text lays out a page without table detection. The text of tables becomes
// lines.
func Text(s *model.Sheet) *model.Leaf { return (&layouter{}).leaf(s, nil) }

// leaf lays out a page. It omits the words in taken, which belong to the header
// or footer.
func (y *layouter) leaf(s *model.Sheet, taken map[*model.Word]bool) *model.Leaf {
	out := &model.Leaf{Number: s.Number, W: s.W, H: s.H, Links: s.Links}
	var words []*model.Word
	for _, w := range s.Words {
		if !taken[w] {
			words = append(words, w)
		}
	}
	var items []*Item
	var ts []*model.Table
	if y.tables {
		decorate(words, s.Rules)
		ts, words = findTables(s, words)
		for _, t := range ts {
			findEdges(t, s.Rules)
		}
	}
	ps := Pieces(words, s.Rules)
	if y.tables {
		// Their white space reveals tables without vertical rules.
		var framed []*model.Table
		framed, ps = findFramedTables(s, ps)
		for _, t := range append(ts, framed...) {
			items = append(items, &Item{Rect: t.Rect, table: t})
		}
	}
	// Text that runs up or down beside the columns, such as a stamp in the margin,
	// comes last.
	ps, aside := apartFromFlow(ps)
	items = append(items, ps...)
	for _, p := range s.Pictures {
		if p.Media == nil {
			continue
		}
		items = append(items, &Item{Rect: p.Rect, picture: p})
	}
	out.Content = geom.Nothing()
	for _, g := range divide(items, 0) {
		b := model.Band{Rect: geom.Nothing()}
		for _, c := range g.columns {
			col := y.column(c)
			for _, bl := range col.Blocks {
				bl.Page = s.Number
			}
			b.Rect = b.Union(col.Rect)
			b.Columns = append(b.Columns, col)
		}
		out.Content = out.Content.Union(b.Rect)
		out.Bands = append(out.Bands, b)
	}
	if n := len(out.Bands); n > 0 && len(aside) > 0 {
		last := &out.Bands[n-1].Columns[len(out.Bands[n-1].Columns)-1]
		for _, it := range aside {
			l := &model.Line{Rect: it.Rect, Words: it.Words, Base: it.B, Size: it.Size}
			last.Blocks = append(last.Blocks, &model.Block{Rect: it.Rect, Lines: []*model.Line{l}, Region: last.Rect, Page: s.Number})
		}
	}
	return out
}

// apartFromFlow separates pieces of lines in another direction from the flow, if
// they are few.
func apartFromFlow(ps []*Item) (flow, aside []*Item) {
	level, turned := 0, 0
	for _, it := range ps {
		if it.Turned {
			turned += it.Chars
			aside = append(aside, it)
		} else {
			level += it.Chars
			flow = append(flow, it)
		}
	}
	if level == 0 || 5*turned > level {
		return ps, nil
	}
	return flow, aside
}

// column converts the parts of a column to blocks.
func (y *layouter) column(parts [][]*Item) model.Column {
	col := model.Column{Rect: geom.Nothing()}
	for _, items := range parts {
		box := geom.Nothing()
		for _, it := range items {
			box = box.Union(it.Rect)
		}
		col.Rect = col.Union(box)
		if y.tables {
			var ts []*model.Table
			ts, items = findOpenTables(items)
			for _, t := range ts {
				items = append(items, &Item{Rect: t.Rect, table: t})
			}
		}
		col.Blocks = append(col.Blocks, blocks(items, box)...)
	}
	return col
}
