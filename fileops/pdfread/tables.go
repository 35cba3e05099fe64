package pdfread

import (
	"math"
	"slices"
	"strings"
)

// A table is a grid with text in its cells.
type table struct {
	rect
	xs, ys []float64 // borders of columns and rows
	cells  []*cell   // from left to right, from top to bottom
	ruled  bool      // it has visible borders
	colour uint32    // of the borders
	width  float64   // of the borders, points
}

// A cell is a part of a table, of one or more fields of the grid.
type cell struct {
	rect
	row, col   int
	rows, cols int
	blocks     []*block
	turn       int // direction of all of its text, as that of a word
	shaded     bool
	shade      uint32
}

const (
	maxGrid = 4000 // fields of one grid
	reach   = 3.0  // how far apart rules may end that meet, points
)

// findTables finds the tables that rules or filled rectangles draw. It returns
// the words that are in none.
func findTables(s *sheet, words []*word) ([]*table, []*word) {
	lines := slices.DeleteFunc(slices.Clone(s.rules), func(r *rule) bool { return r.used })
	soft := make(map[*rule]bool) // borders of filled rectangles, which are not drawn
	for _, f := range s.fills {
		if f.area() > 0.5*s.w*s.h || f.w() < 8 || f.h() < 6 || len(s.fills) > 3000 {
			continue
		}
		for _, r := range []*rule{
			{horizontal: true, pos: f.t, from: f.l, to: f.r}, {horizontal: true, pos: f.b, from: f.l, to: f.r},
			{pos: f.l, from: f.t, to: f.b}, {pos: f.r, from: f.t, to: f.b},
		} {
			soft[r] = true
			lines = append(lines, r)
		}
	}
	if len(lines) > 6000 {
		return nil, words
	}
	var out []*table
	for _, g := range meeting(lines) {
		if t := newTable(s, g, soft); t != nil {
			out = append(out, t)
		}
	}
	// The largest first, and none in another.
	sortStable(out, func(a, b *table) bool { return a.area() > b.area() })
	var kept []*table
	for _, t := range out {
		if slices.ContainsFunc(kept, func(k *table) bool { return k.intersect(t.rect).area() > 0.5*t.area() }) {
			continue
		}
		var in, rest []*word
		for _, w := range words {
			if t.grow(1).contains(w.cx(), w.cy()) {
				in = append(in, w)
			} else {
				rest = append(rest, w)
			}
		}
		if fine := t.refine(in); fine != nil {
			kept = append(kept, fine)
			words = rest
			continue
		}
		if t.fillWords(in, s) {
			kept = append(kept, t)
			words = rest
		}
	}
	sortStable(kept, func(a, b *table) bool { return a.t < b.t })
	return kept, words
}

// meeting groups rules that touch or cross.
func meeting(lines []*rule) [][]*rule {
	var h, v []*rule
	for _, r := range lines {
		if r.horizontal {
			h = append(h, r)
		} else {
			v = append(v, r)
		}
	}
	parent := make(map[*rule]*rule)
	var find func(r *rule) *rule
	find = func(r *rule) *rule {
		p, ok := parent[r]
		if !ok || p == r {
			return r
		}
		root := find(p)
		parent[r] = root
		return root
	}
	sortStable(v, func(a, b *rule) bool { return a.pos < b.pos })
	for _, a := range h {
		for _, b := range v {
			if b.pos < a.from-reach {
				continue
			}
			if b.pos > a.to+reach {
				break
			}
			if a.pos >= b.from-reach && a.pos <= b.to+reach {
				if ra, rb := find(a), find(b); ra != rb {
					parent[ra] = rb
				}
			}
		}
	}
	index := make(map[*rule]int)
	var out [][]*rule
	for _, r := range append(h, v...) {
		root := find(r)
		i, ok := index[root]
		if !ok {
			i = len(out)
			index[root] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// newTable makes a grid of rules that meet, or returns nil.
func newTable(s *sheet, rules []*rule, soft map[*rule]bool) *table {
	var xs, ys []float64
	box := nothing()
	drawn := 0
	for _, r := range rules {
		box = box.union(r.rect())
		if r.horizontal {
			ys = append(ys, r.pos)
		} else {
			xs = append(xs, r.pos)
		}
		if !soft[r] {
			drawn++
		}
	}
	if len(ys) < 2 || len(xs) < 1 {
		return nil
	}
	t := &table{xs: cluster(xs, 2.5), ys: cluster(ys, 2.5), ruled: drawn > 0}
	// A table need not have borders at its sides.
	if t.xs[0]-box.l > 12 {
		t.xs = append([]float64{box.l}, t.xs...)
	}
	if box.r-t.xs[len(t.xs)-1] > 12 {
		t.xs = append(t.xs, box.r)
	}
	if t.ys[0]-box.t > 8 {
		t.ys = append([]float64{box.t}, t.ys...)
	}
	if box.b-t.ys[len(t.ys)-1] > 8 {
		t.ys = append(t.ys, box.b)
	}
	t.xs, t.ys = spread(t.xs, 4), spread(t.ys, 4)
	nx, ny := len(t.xs)-1, len(t.ys)-1
	if nx < 1 || ny < 1 || nx*ny < 2 || nx*ny > maxGrid || nx > 60 {
		return nil
	}
	t.rect = rect{t.xs[0], t.ys[0], t.xs[nx], t.ys[ny]}
	for _, r := range rules {
		if !soft[r] && (t.width == 0 || r.width < t.width) {
			t.width, t.colour = r.width, r.colour
		}
	}
	edge := func(horizontal bool, pos, from, to float64) bool {
		covered := 0.0
		for _, r := range rules {
			if r.horizontal == horizontal && math.Abs(r.pos-pos) <= 2.5 {
				covered += max(0, min(to, r.to)-max(from, r.from))
			}
		}
		return covered >= 0.5*(to-from)
	}
	t.merge(
		func(row, x int) bool { return edge(false, t.xs[x], t.ys[row], t.ys[row+1]) },
		func(y, col int) bool { return edge(true, t.ys[y], t.xs[col], t.xs[col+1]) })
	return t
}

// spread drops values that are closer than least to the one before.
func spread(v []float64, least float64) []float64 {
	out := v[:1]
	for _, x := range v[1:] {
		if x-out[len(out)-1] >= least {
			out = append(out, x)
		}
	}
	return out
}

// merge makes cells of the fields of the grid that have no border between them.
// vertical tells whether there is one at the left of column x in a row,
// horizontal whether there is one at the top of row y in a column.
func (t *table) merge(vertical func(row, x int) bool, horizontal func(y, col int) bool) {
	nx, ny := len(t.xs)-1, len(t.ys)-1
	taken := make([]bool, nx*ny)
	for row := range ny {
		for col := range nx {
			if taken[row*nx+col] {
				continue
			}
			c := &cell{row: row, col: col, rows: 1, cols: 1}
			for x := col + 1; x < nx && !taken[row*nx+x] && !vertical(row, x); x++ {
				c.cols++
			}
			for y := row + 1; y < ny; y++ {
				open := true
				for x := col; x < col+c.cols && open; x++ {
					open = !taken[y*nx+x] && !horizontal(y, x) && (x == col || !vertical(y, x))
				}
				// The cell must end there too, or it is no rectangle.
				if !open || col+c.cols < nx && !vertical(y, col+c.cols) {
					break
				}
				c.rows++
			}
			for y := row; y < row+c.rows; y++ {
				for x := col; x < col+c.cols; x++ {
					taken[y*nx+x] = true
				}
			}
			c.rect = rect{t.xs[col], t.ys[row], t.xs[col+c.cols], t.ys[row+c.rows]}
			t.cells = append(t.cells, c)
		}
	}
}

// fillWords puts words into cells. It returns false if that does not look like
// a table: a frame, a chart, a box to tick.
func (t *table) fillWords(words []*word, s *sheet) bool {
	in := make(map[*cell][]*word)
	for _, w := range words {
		if c := t.at(w.cx(), w.cy()); c != nil {
			in[c] = append(in[c], w)
		}
	}
	if len(in) < 2 || len(t.cells) < 2 {
		return false
	}
	if len(t.cells) > 60 && len(in)*12 < len(t.cells) {
		return false
	}
	// One column of boxes with much text is a frame around parts of a page.
	if len(t.xs) == 2 && t.h() > 0.6*s.h {
		return false
	}
	t.splitRows(in)
	for _, c := range t.cells {
		c.fill(in[c])
		for _, f := range s.fills {
			if f.contains(c.cx(), c.cy()) && f.intersect(c.rect).area() > 0.6*c.area() && f.area() < 0.5*s.w*s.h {
				c.shaded, c.shade = f.colour != 0xffffff, f.colour // the last one is on top
			}
		}
	}
	return true
}

// refine returns the table in t if its rules divide only groups of rows and
// columns, so that white space must divide the rest; nil if they do not.
func (t *table) refine(words []*word) *table {
	coarse := false
	for _, c := range t.cells {
		var in []*word
		for _, w := range words {
			if c.contains(w.cx(), w.cy()) {
				in = append(in, w)
			}
		}
		several, numbers := 0, 0
		rs := itemRows(pieces(in, nil))
		for _, r := range rs {
			if len(r.items) > 1 {
				several++
			}
			if n := r.items[len(r.items)-1]; isNumber(n.words) {
				numbers++
			}
		}
		coarse = coarse || len(rs) >= 5 && 3*several >= 2*len(rs) && 3*numbers >= 2*len(rs)
	}
	if !coarse {
		return nil
	}
	fine := openTable(itemRows(pieces(words, nil)), 3, t.rect)
	if fine == nil || len(fine.xs) <= len(t.xs) {
		return nil
	}
	fine.ruled, fine.colour, fine.width = t.ruled, t.colour, t.width
	return fine
}

func (t *table) at(x, y float64) *cell {
	for _, c := range t.cells {
		if x >= c.l-0.5 && x < c.r+0.5 && y >= c.t-0.5 && y < c.b+0.5 {
			return c
		}
	}
	return nil
}

// fill puts words into c. Text that runs up or down is set in lines of its own
// direction.
func (c *cell) fill(words []*word) {
	if len(words) > 0 && (words[0].turn == 1 || words[0].turn == 3) &&
		!slices.ContainsFunc(words, func(w *word) bool { return w.turn != words[0].turn }) {
		c.turn = words[0].turn
		c.blocks = turnedBlocks(words, c.rect)
		return
	}
	c.blocks = cellBlocks(words, c.rect)
}

// turnedBlocks makes paragraphs of words that all run up or all run down.
func turnedBlocks(words []*word, box rect) []*block {
	m := turned(words[0].turn, box.l+box.r, box.t+box.b)
	level := make([]*word, len(words))
	for i, w := range words {
		c := *w
		c.rect = m.rect(w.l, w.t, w.r, w.b)
		c.turn = 0
		if w.turn == 1 {
			c.base = box.l + box.r - w.base
		} else {
			c.base = w.base
		}
		level[i] = &c
	}
	return cellBlocks(level, m.rect(box.l, box.t, box.r, box.b))
}

func cellBlocks(words []*word, box rect) []*block {
	if len(words) == 0 {
		return nil
	}
	var level, turned []*word
	for _, w := range words {
		if w.turn == 0 {
			level = append(level, w)
		} else {
			turned = append(turned, w)
		}
	}
	var lines []*line
	for _, row := range rows(level) {
		lines = append(lines, newLine(row))
	}
	inner := nothing()
	for _, l := range lines {
		inner = inner.union(l.rect)
	}
	// Text in a cell is as wide as the cell, less equal margins.
	margin := 0.0
	if len(lines) > 0 {
		margin = max(0, min(inner.l-box.l, box.r-inner.r, 8))
	}
	col := rect{box.l + margin, box.t, box.r - margin, box.b}
	bs := paragraphs(lines, col)
	if len(turned) > 0 {
		bs = append(bs, newParagraph([]*line{{rect: box, words: turned, size: turned[0].size, base: box.b}}, col, col.l, col.r))
	}
	spacing(bs)
	return bs
}

// splitRows divides rows that have no rules between them but whose text stands
// in lines, each with something in the first column.
func (t *table) splitRows(in map[*cell][]*word) {
	if len(t.xs) < 3 {
		return
	}
	nx := len(t.xs) - 1
	for row := len(t.ys) - 2; row >= 0; row-- {
		var cs []*cell
		for _, c := range t.cells {
			if c.row == row && c.rows == 1 {
				cs = append(cs, c)
			}
		}
		if len(cs) != nx || slices.ContainsFunc(cs, func(c *cell) bool { return c.cols != 1 }) {
			continue
		}
		first := rows(in[cs[0]])
		if len(first) < 3 {
			continue
		}
		ok := true
		var bases []float64
		for _, r := range first {
			bases = append(bases, r[0].base)
		}
		entries, numbers, most := 0, 0, 0
		equal := true
		for _, c := range cs[1:] {
			other := rows(in[c])
			equal = equal && len(other) == len(first)
			most = max(most, len(other))
			for _, r := range other {
				ok = ok && math.Abs(bases[nearest(bases, r[0].base)]-r[0].base) < 0.2*r[0].size
				entries++
				if isNumber(r) {
					numbers++
				}
			}
		}
		// Some entries may be missing if the others are numbers. A column of
		// text with lines as many as those beside it is a single entry.
		if !ok || !equal && (most < len(first)-1 || 4*numbers < 3*entries) {
			continue
		}
		var cuts []float64
		for i := 1; i < len(first); i++ {
			bottom, top := math.Inf(-1), math.Inf(1)
			for _, w := range first[i-1] {
				bottom = max(bottom, w.base+0.2*w.size)
			}
			for _, w := range first[i] {
				top = min(top, w.base-0.8*w.size)
			}
			cuts = append(cuts, (bottom+top)/2)
		}
		t.cut(row, cuts, in)
	}
}

// isNumber tells whether words are one entry of a table of numbers.
func isNumber(words []*word) bool {
	if len(words) > 2 {
		return false
	}
	for _, w := range words {
		if strings.Trim(w.text(), "0123456789.,%$€£+-–—()*/XN") != "" {
			return false
		}
	}
	return true
}

// cut divides a row of single cells.
func (t *table) cut(row int, cuts []float64, in map[*cell][]*word) {
	n := len(cuts)
	var cells []*cell
	for _, c := range t.cells {
		switch {
		case c.row > row:
			c.row += n
		case c.row == row:
			words := in[c]
			delete(in, c)
			for k := 0; k <= n; k++ {
				part := &cell{rect: c.rect, row: row + k, col: c.col, rows: 1, cols: 1}
				if k > 0 {
					part.t = cuts[k-1]
				}
				if k < n {
					part.b = cuts[k]
				}
				for _, w := range words {
					if mid := w.base - 0.3*w.size; mid >= part.t && mid < part.b {
						in[part] = append(in[part], w)
					}
				}
				cells = append(cells, part)
			}
			continue
		case c.row+c.rows > row:
			c.rows += n
		}
		cells = append(cells, c)
	}
	sortStable(cells, func(a, b *cell) bool {
		if a.row != b.row {
			return a.row < b.row
		}
		return a.col < b.col
	})
	t.cells = cells
	t.ys = slices.Insert(slices.Clone(t.ys), row+1, cuts...)
}

// follow adds the rows of u, the part of t on the next page.
func (t *table) follow(u *table) {
	ny, end := len(t.ys)-1, t.ys[len(t.ys)-1]
	for _, y := range u.ys[1:] {
		t.ys = append(t.ys, end+y-u.ys[0])
	}
	for _, c := range u.cells {
		c.row += ny
		t.cells = append(t.cells, c)
	}
}

// continues tells whether u has the same columns as t.
func (t *table) continues(u *table) bool {
	if len(t.xs) != len(u.xs) || t.ruled != u.ruled || t.colour != u.colour {
		return false
	}
	for i := range t.xs {
		if math.Abs(t.xs[i]-u.xs[i]) > 3 {
			return false
		}
	}
	return true
}
