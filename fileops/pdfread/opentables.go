package pdfread

import (
	"math"
	"slices"
	"strings"
)

// findFramedTables finds tables that have horizontal rules only, as books have
// them. It returns the items that are in none.
func findFramedTables(s *sheet, items []*item) ([]*table, []*item) {
	var out []*table
	for _, frame := range ruledFrames(s) {
		var rs []*row
		for _, r := range itemRows(items) {
			part := &row{base: r.base, rect: nothing()}
			for _, it := range r.items {
				if it.cx() > frame.l-3 && it.cx() < frame.r+3 && it.base > frame.t && it.base < frame.b {
					part.items = append(part.items, it)
					part.rect = part.union(it.rect)
				}
			}
			if len(part.items) > 0 {
				rs = append(rs, part)
			}
		}
		if t := openTable(rs, 2, frame); t != nil {
			out = append(out, t)
			items = without(items, rs)
		}
	}
	return out, items
}

// findOpenTables finds tables without any rules in a column of text: rows of at
// least three short pieces, with white space that goes down between them.
func findOpenTables(items []*item) ([]*table, []*item) {
	var out []*table
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
func without(items []*item, rs []*row) []*item {
	in := make(map[*item]bool)
	for _, r := range rs {
		for _, it := range r.items {
			in[it] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return in[it] })
}

type row struct {
	rect
	items []*item
	base  float64
}

func itemRows(items []*item) []*row {
	var level []*item
	for _, it := range items {
		if it.text() && !it.turned {
			level = append(level, it)
		}
	}
	sortStable(level, func(a, b *item) bool { return a.base < b.base })
	var out []*row
	for _, it := range level {
		if k := len(out) - 1; k >= 0 && it.base-out[k].base <= 0.25*max(it.size, 4) {
			out[k].items = append(out[k].items, it)
			out[k].rect = out[k].union(it.rect)
			continue
		}
		out = append(out, &row{rect: it.rect, items: []*item{it}, base: it.base})
	}
	for _, r := range out {
		sortStable(r.items, func(a, b *item) bool { return a.l < b.l })
	}
	return out
}

func nextOpenTable(all []*row) (*table, []*row) {
	for i := range all {
		if len(all[i].items) < 3 {
			continue
		}
		j := i + 1
		for j < len(all) && all[j].t-all[j-1].b < 1.6*all[j].items[0].size && (len(all[j].items) >= 2 || j+1 < len(all) && len(all[j+1].items) >= 3) {
			j++
		}
		// The last rows of a run may be something else.
		for tries := 0; j-i >= 3 && tries < 12; j, tries = j-1, tries+1 {
			if len(all[j-1].items) < 2 {
				continue
			}
			if t := openTable(all[i:j], 3, rect{}); t != nil {
				return t, all[i:j]
			}
		}
	}
	return nil, nil
}

// ruledFrames returns the areas between horizontal rules of the same width,
// one below the other, as tables in books have them: at least three, or two
// with white space at both sides of what is between.
func ruledFrames(s *sheet) []rect {
	var h []*rule
	for _, r := range s.rules {
		if r.horizontal && !r.used && r.to-r.from > 60 {
			h = append(h, r)
		}
	}
	if len(h) > 300 {
		return nil
	}
	sortStable(h, func(a, b *rule) bool { return a.pos < b.pos })
	var out []rect
	seen := make(map[*rule]bool)
	for i, a := range h {
		if seen[a] {
			continue
		}
		n, last := 1, a
		for _, b := range h[i+1:] {
			if math.Abs(a.from-b.from) < 4 && math.Abs(a.to-b.to) < 4 {
				if b.pos-last.pos > 0.5*s.h {
					break
				}
				n++
				last = b
				seen[b] = true
			}
		}
		if n >= 3 {
			out = append(out, rect{a.from, a.pos, a.to, last.pos})
		}
	}
	return out
}

// openTable makes a table of rows if white space divides them into at least
// least columns.
func openTable(rs []*row, least int, frame rect) *table {
	if len(rs) < 2 {
		return nil
	}
	box := nothing()
	var size float64
	pieces := 0
	for _, r := range rs {
		box = box.union(r.rect)
		size = max(size, r.items[0].size)
		pieces += len(r.items)
	}
	// What no piece covers, from left to right. Headings over several
	// columns would close the gaps; rows with few pieces do not count.
	type interval struct{ a, b float64 }
	var cover []interval
	counted := 0
	for _, r := range rs {
		if len(r.items) < least && len(rs) > 2 {
			continue
		}
		counted++
		for _, it := range r.items {
			cover = append(cover, interval{it.l, it.r})
		}
	}
	if counted < 2 || counted*3 < len(rs) {
		return nil
	}
	// A few pieces, such as headings over two columns, may cross.
	const start, end = 1, -1
	type edge struct {
		x    float64
		kind int
	}
	var edges []edge
	for _, c := range cover {
		edges = append(edges, edge{c.a, start}, edge{c.b, end})
	}
	sortStable(edges, func(a, b edge) bool {
		if a.x != b.x {
			return a.x < b.x
		}
		return a.kind > b.kind // touching pieces leave no gap
	})
	var xs []float64
	allowed := counted / 12
	open, column := 0, false // column tells that one began
	var since, freeFrom, freeTo float64
	for _, e := range edges {
		was := open
		open += e.kind
		switch {
		case was > allowed && open <= allowed:
			column, since, freeFrom, freeTo = true, e.x, e.x, e.x
		case was <= allowed && open > allowed && column:
			if e.x-since > max(3, 0.35*size) {
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
	n := len(xs) + 1
	if n < least || n < 2 {
		return nil
	}
	// Most rows must use most columns, and none must be crossed much.
	crossed, used := 0, 0
	for _, r := range rs {
		cols := make(map[int]bool)
		for _, it := range r.items {
			k := columnOf(xs, it.cx())
			cols[k] = true
			for _, x := range xs {
				if it.l < x-1 && it.r > x+1 {
					crossed++
					break
				}
			}
		}
		used += len(cols)
	}
	if crossed > len(rs)/4 || float64(used) < 0.5*float64(n*len(rs)) {
		return nil
	}
	if frame == (rect{}) {
		// Without any rule, it must look very much like a table: short
		// pieces, at least three rows.
		var chars []float64
		for _, r := range rs {
			for _, it := range r.items {
				chars = append(chars, float64(it.chars))
			}
		}
		if counted < 3 || median(chars) > 22 || leaders(rs) || !columnsAlign(rs, xs) {
			return nil
		}
		frame = box.grow(2)
	}
	t := &table{rect: frame}
	t.xs = append(append([]float64{min(frame.l, box.l-1)}, xs...), max(frame.r, box.r+1))
	t.ys = []float64{frame.t}
	for i := 1; i < len(rs); i++ {
		t.ys = append(t.ys, (rs[i-1].b+rs[i].t)/2)
	}
	t.ys = append(t.ys, max(frame.b, rs[len(rs)-1].b))
	for i := 1; i < len(t.ys); i++ {
		t.ys[i] = max(t.ys[i], t.ys[i-1]+1)
	}
	t.rect = rect{t.xs[0], t.ys[0], t.xs[n], t.ys[len(t.ys)-1]}
	for y, r := range rs {
		t.openRow(y, r, xs)
	}
	return t
}

// columnsAlign tells whether the pieces in each column, but for the odd one,
// begin, end or have their middle at the same place. Words of justified lines,
// which also have wide gaps between them, do not.
func columnsAlign(rs []*row, xs []float64) bool {
	n := len(xs) + 1
	good := 0
	for k := range n {
		var l, c, r []float64
		var size float64
		for _, row := range rs {
			for _, it := range row.items {
				if columnOf(xs, it.cx()) == k {
					l, c, r = append(l, it.l), append(c, it.cx()), append(r, it.r)
					size = max(size, it.size)
				}
			}
		}
		for _, v := range [][]float64{l, c, r} {
			mid, near := median(v), 0
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

// openRow makes the cells of a row. A piece over several columns is in a cell
// over these.
func (t *table) openRow(y int, r *row, xs []float64) {
	n := len(xs) + 1
	words := make([][]*word, n)
	span := make([]int, n) // last column of a piece that starts here
	for i := range span {
		span[i] = i
	}
	for _, it := range r.items {
		a, b := columnOf(xs, it.l+1), columnOf(xs, it.r-1)
		if b < a {
			b = a
		}
		for a > 0 { // within a span that began before?
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
		words[a] = append(words[a], it.words...)
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
		c := &cell{row: y, col: col, rows: 1, cols: end - col + 1, rect: rect{t.xs[col], t.ys[y], t.xs[end+1], t.ys[y+1]}}
		c.fill(words[col])
		t.cells = append(t.cells, c)
		col = end + 1
	}
}

// leaders tells whether rows look like those of a table of contents.
func leaders(rs []*row) bool {
	n := 0
	for _, r := range rs {
		for _, it := range r.items {
			for _, w := range it.words {
				if t := w.text(); strings.Contains(t, "....") || strings.Contains(t, "…") || strings.Trim(t, ".") == "" {
					n++
				}
			}
		}
	}
	return n >= len(rs)
}
