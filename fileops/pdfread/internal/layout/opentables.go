package layout

import (
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// findFramedTables finds tables with only horizontal rules, as in books. It also
// returns the items outside these tables.
func findFramedTables(s *model.Sheet, items []*Item) ([]*model.Table, []*Item) {
	var out []*model.Table
	for _, frame := range ruledFrames(s) {
		var rs []*row
		cut := 0 // rows that go on to the left of the frame
		for _, r := range itemRows(items) {
			part := &row{base: r.base, Rect: geom.Nothing()}
			for _, it := range r.items {
				if it.CX() > frame.L-3 && it.CX() < frame.R+3 && it.base > frame.T && it.base < frame.B {
					part.items = append(part.items, it)
					part.Rect = part.Union(it.Rect)
				}
			}
			if len(part.items) > 0 {
				rs = append(rs, part)
				if r.items[0].R < frame.L {
					cut++
				}
			}
		}
		if 2*cut > len(rs) && withinWider(frame, s.Rules) {
			continue // the rules are above sums of a table without a frame
		}
		if t := openTable(rs, 2, frame); t != nil {
			out = append(out, t)
			items = without(items, rs)
		}
	}
	return out, items
}

// withinWider reports whether a rule that extends further to the left is in a frame or
// above it.
func withinWider(frame geom.Rect, rules []*model.Rule) bool {
	const above, further = 150, 36
	return slices.ContainsFunc(rules, func(r *model.Rule) bool {
		return r.Horizontal && r.From < frame.L-further && r.To > frame.R-4 && r.Pos > frame.T-above && r.Pos < frame.B
	})
}

// findOpenTables finds tables without rules in a column of text: rows of at
// least three short pieces, separated by vertical white space.
func findOpenTables(items []*Item) ([]*model.Table, []*Item) {
	var out []*model.Table
	for len(out) < 50 {
		t, rs := nextOpenTable(itemRows(items))
		if t == nil {
			break
		}
		out = append(out, t)
		items = without(items, rs)
	}
	return out, items
}

// without returns the items that are not in rows.
func without(items []*Item, rs []*row) []*Item {
	in := make(map[*Item]bool)
	for _, r := range rs {
		for _, it := range r.items {
			in[it] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(items), func(it *Item) bool { return in[it] })
}

type row struct {
	geom.Rect
	items []*Item
	base  float64
}

func itemRows(items []*Item) []*row {
	var level []*Item
	for _, it := range items {
		if it.text() && !it.Turned {
			level = append(level, it)
		}
	}
	geom.SortStable(level, func(a, b *Item) bool { return a.base < b.base })
	var out []*row
	for _, it := range level {
		if k := len(out) - 1; k >= 0 && it.base-out[k].base <= 0.25*max(it.Size, 4) {
			out[k].items = append(out[k].items, it)
			out[k].Rect = out[k].Union(it.Rect)
			continue
		}
		out = append(out, &row{Rect: it.Rect, items: []*Item{it}, base: it.base})
	}
	for _, r := range out {
		geom.SortStable(r.items, func(a, b *Item) bool { return a.L < b.L })
	}
	return out
}

func nextOpenTable(all []*row) (*model.Table, []*row) {
	for i := range all {
		if len(all[i].items) < 3 {
			continue
		}
		j := i + 1
		for j < len(all) && all[j].T-all[j-1].B < 1.6*all[j].items[0].Size && (len(all[j].items) >= 2 || j+1 < len(all) && len(all[j+1].items) >= 3) {
			j++
		}
		// The last rows of a run may not belong to the table.
		for tries := 0; j-i >= 3 && tries < 12; j, tries = j-1, tries+1 {
			if len(all[j-1].items) < 2 {
				continue
			}
			if t := openTable(all[i:j], 3, geom.Rect{}); t != nil {
				return t, all[i:j]
			}
		}
	}
	return nil, nil
}

// ruledFrames returns the areas of tables with horizontal rules: stacked rules
// of the same width. It requires three rules, or two with white space on both
// sides of the content.
func ruledFrames(s *model.Sheet) []geom.Rect {
	var h []*model.Rule
	for _, r := range s.Rules {
		if r.Horizontal && !r.Used && r.To-r.From > 60 {
			h = append(h, r)
		}
	}
	if len(h) > 300 {
		return nil
	}
	geom.SortStable(h, func(a, b *model.Rule) bool { return a.Pos < b.Pos })
	var out []geom.Rect
	seen := make(map[*model.Rule]bool)
	for i, a := range h {
		if seen[a] {
			continue
		}
		n, last := 1, a
		for _, b := range h[i+1:] {
			if math.Abs(a.From-b.From) < 4 && math.Abs(a.To-b.To) < 4 {
				if b.Pos-last.Pos > 0.5*s.H {
					break
				}
				n++
				last = b
				seen[b] = true
			}
		}
		if n >= 3 {
			out = append(out, geom.Rect{L: a.From, T: a.Pos, R: a.To, B: last.Pos})
		}
	}
	return out
}

// openTable makes a table of rows if white space divides them into at least
// least columns. Otherwise it returns nil.
func openTable(rs []*row, least int, frame geom.Rect) *model.Table {
	if len(rs) < 2 {
		return nil
	}
	// Headings over several columns would close gaps, so rows with few pieces do
	// not count.
	counted := rs
	if len(rs) > 2 {
		counted = slices.DeleteFunc(slices.Clone(rs), func(r *row) bool { return len(r.items) < least })
	}
	if len(counted) < 2 || len(counted)*3 < len(rs) {
		return nil
	}
	box, size := geom.Nothing(), 0.0
	for _, r := range rs {
		box = box.Union(r.Rect)
		size = max(size, r.items[0].Size)
	}
	xs := columnGaps(counted, max(3, 0.35*size))
	if len(xs)+1 < max(least, 2) || !fillColumns(rs, xs) {
		return nil
	}
	if frame == (geom.Rect{}) {
		// Without rules it must closely resemble a table.
		if len(counted) < 3 || !shortPieces(rs) || len(xs) < contentsColumns && leaders(rs) || !columnsAlign(rs, xs) {
			return nil
		}
		frame = box.Grow(2)
	}
	t := openGrid(rs, xs, frame, box)
	for y, r := range rs {
		openRow(t, y, r, xs)
	}
	return t
}

// columnGaps returns the middles of the gaps between columns, from left to
// right. A gap is wider than width. A few pieces, such as headings over two
// columns, may cross it.
func columnGaps(rs []*row, width float64) []float64 {
	const start, end = 1, -1
	type edge struct {
		x    float64
		kind int
	}
	var edges []edge
	for _, r := range rs {
		for _, it := range r.items {
			edges = append(edges, edge{it.L, start}, edge{it.R, end})
		}
	}
	geom.SortStable(edges, func(a, b edge) bool {
		if a.x != b.x {
			return a.x < b.x
		}
		return a.kind > b.kind // touching pieces leave no gap
	})
	var xs []float64
	allowed := len(rs) / 12
	open, column := 0, false // column: pieces precede the current gap
	var since, freeFrom, freeTo float64
	for _, e := range edges {
		was := open
		open += e.kind
		switch {
		case was > allowed && open <= allowed:
			column, since, freeFrom, freeTo = true, e.x, e.x, e.x
		case was <= allowed && open > allowed && column:
			if e.x-since > width {
				if was == 0 {
					freeTo = e.x
				}
				if freeTo <= freeFrom {
					freeFrom, freeTo = since, e.x
				}
				xs = append(xs, (freeFrom+freeTo)/2)
			}
			column = false
		}
		if open == 0 {
			freeFrom = e.x
		} else if was == 0 {
			freeTo = e.x
		}
	}
	return xs
}

// fillColumns reports whether most rows use most columns, and few rows cross a
// gap.
func fillColumns(rs []*row, xs []float64) bool {
	crossed, used := 0, 0
	for _, r := range rs {
		cols := make(map[int]bool)
		for _, it := range r.items {
			cols[columnOf(xs, it.CX())] = true
			if slices.ContainsFunc(xs, func(x float64) bool { return it.L < x-1 && it.R > x+1 }) {
				crossed++
			}
		}
		used += len(cols)
	}
	return crossed <= len(rs)/4 && 2*used >= (len(xs)+1)*len(rs)
}

// shortPieces reports whether most pieces are as short as the content of cells.
func shortPieces(rs []*row) bool {
	var chars []float64
	for _, r := range rs {
		for _, it := range r.items {
			chars = append(chars, float64(it.Chars))
		}
	}
	return geom.Median(chars) <= 22
}

// openGrid returns a table without cells: its lines are in the gaps between
// columns and rows. box has all pieces.
func openGrid(rs []*row, xs []float64, frame, box geom.Rect) *model.Table {
	t := &model.Table{}
	t.Xs = append(append([]float64{min(frame.L, box.L-1)}, xs...), max(frame.R, box.R+1))
	t.Ys = []float64{frame.T}
	for i := 1; i < len(rs); i++ {
		t.Ys = append(t.Ys, (rs[i-1].B+rs[i].T)/2)
	}
	t.Ys = append(t.Ys, max(frame.B, rs[len(rs)-1].B))
	for i := 1; i < len(t.Ys); i++ {
		t.Ys[i] = max(t.Ys[i], t.Ys[i-1]+1)
	}
	t.Rect = geom.Rect{L: t.Xs[0], T: t.Ys[0], R: t.Xs[len(t.Xs)-1], B: t.Ys[len(t.Ys)-1]}
	return t
}

// columnsAlign reports whether most pieces in each column align at their left,
// right or middle. Words of justified lines, which can also have wide gaps, do
// not align.
func columnsAlign(rs []*row, xs []float64) bool {
	n := len(xs) + 1
	good := 0
	for k := range n {
		var l, c, r []float64
		var size float64
		for _, row := range rs {
			for _, it := range row.items {
				if columnOf(xs, it.CX()) == k {
					l, c, r = append(l, it.L), append(c, it.CX()), append(r, it.R)
					size = max(size, it.Size)
				}
			}
		}
		for _, v := range [][]float64{l, c, r} {
			mid, near := geom.Median(v), 0
			for _, x := range v {
				if math.Abs(x-mid) < 0.25*size {
					near++
				}
			}
			if near*4 >= len(v)*3 {
				good++
				break
			}
		}
	}
	return good*4 >= n*3
}

func columnOf(xs []float64, x float64) int {
	k := 0
	for k < len(xs) && x > xs[k] {
		k++
	}
	return k
}

// openRow makes the cells of a row. A piece across several columns gets a cell
// across them.
func openRow(t *model.Table, y int, r *row, xs []float64) {
	n := len(xs) + 1
	words := make([][]*model.Word, n)
	span := make([]int, n) // last column of the piece that starts here
	for i := range span {
		span[i] = i
	}
	for _, it := range r.items {
		a, b := columnOf(xs, it.L+1), columnOf(xs, it.R-1)
		if b < a {
			b = a
		}
		for a > 0 { // skip fields within an earlier span
			start := -1
			for k := range a {
				if span[k] >= a {
					start = k
				}
			}
			if start < 0 {
				break
			}
			a = start
		}
		words[a] = append(words[a], it.Words...)
		span[a] = max(span[a], b)
	}
	for col := 0; col < n; {
		end := span[col]
		for k := col; k <= end; k++ {
			if k > col && len(words[k]) > 0 {
				words[col] = append(words[col], words[k]...)
			}
			end = max(end, span[k])
		}
		c := &model.Cell{Row: y, Col: col, Rows: 1, Cols: end - col + 1, Rect: geom.Rect{L: t.Xs[col], T: t.Ys[y], R: t.Xs[end+1], B: t.Ys[y+1]}}
		fillCell(c, words[col])
		t.Cells = append(t.Cells, c)
		col = end + 1
	}
}

// contentsColumns is the number of gaps between columns that a table of contents never
// has: a number, a title, dots and two page numbers.
const contentsColumns = 5

// leaders reports whether rows look like those of a table of contents.
func leaders(rs []*row) bool {
	n := 0
	for _, r := range rs {
		for _, it := range r.items {
			for _, w := range it.Words {
				if t := w.Text(); strings.Contains(t, "....") || strings.Contains(t, "…") || strings.Trim(t, ".") == "" {
					n++
				}
			}
		}
	}
	return n >= len(rs)
}
