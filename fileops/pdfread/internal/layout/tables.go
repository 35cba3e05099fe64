package layout

import (
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

const (
	maxGrid = 4000 // fields of a grid
	reach   = 3.0  // largest distance between the ends of rules that meet, points
)

// findTables finds the tables that rules or filled rectangles draw. It also
// returns the words outside these tables.
func findTables(s *model.Sheet, words []*model.Word) ([]*model.Table, []*model.Word) {
	lines := slices.DeleteFunc(slices.Clone(s.Rules), func(r *model.Rule) bool { return r.Used })
	soft := make(map[*model.Rule]bool) // edges of filled rectangles, which have no visible line
	for _, f := range s.Fills {
		if f.Area() > 0.5*s.W*s.H || f.W() < 8 || f.H() < 6 || len(s.Fills) > 3000 {
			continue
		}
		for _, r := range []*model.Rule{
			{Horizontal: true, Pos: f.T, From: f.L, To: f.R}, {Horizontal: true, Pos: f.B, From: f.L, To: f.R},
			{Pos: f.L, From: f.T, To: f.B}, {Pos: f.R, From: f.T, To: f.B},
		} {
			soft[r] = true
			lines = append(lines, r)
		}
	}
	if len(lines) > 6000 {
		return nil, words
	}
	var out []*model.Table
	for _, g := range meeting(lines) {
		if t := newTable(g, soft); t != nil {
			out = append(out, t)
		}
	}
	// Largest first; no table lies within another.
	geom.SortStable(out, func(a, b *model.Table) bool { return a.Area() > b.Area() })
	var kept []*model.Table
	for _, t := range out {
		if slices.ContainsFunc(kept, func(k *model.Table) bool { return k.Intersect(t.Rect).Area() > 0.5*t.Area() }) {
			continue
		}
		var in, rest []*model.Word
		for _, w := range words {
			if t.Grow(1).Contains(w.CX(), w.CY()) {
				in = append(in, w)
			} else {
				rest = append(rest, w)
			}
		}
		if fine := refine(t, in); fine != nil {
			kept = append(kept, fine)
			words = rest
			continue
		}
		if fillWords(t, in, s) {
			kept = append(kept, t)
			words = rest
		}
	}
	geom.SortStable(kept, func(a, b *model.Table) bool { return a.T < b.T })
	return kept, words
}

// meeting groups rules that touch or cross.
func meeting(lines []*model.Rule) [][]*model.Rule {
	var h, v []*model.Rule
	for _, r := range lines {
		if r.Horizontal {
			h = append(h, r)
		} else {
			v = append(v, r)
		}
	}
	parent := make(map[*model.Rule]*model.Rule)
	var find func(r *model.Rule) *model.Rule
	find = func(r *model.Rule) *model.Rule {
		p, ok := parent[r]
		if !ok || p == r {
			return r
		}
		root := find(p)
		parent[r] = root
		return root
	}
	geom.SortStable(v, func(a, b *model.Rule) bool { return a.Pos < b.Pos })
	for _, a := range h {
		for _, b := range v {
			if b.Pos < a.From-reach {
				continue
			}
			if b.Pos > a.To+reach {
				break
			}
			if a.Pos >= b.From-reach && a.Pos <= b.To+reach {
				if ra, rb := find(a), find(b); ra != rb {
					parent[ra] = rb
				}
			}
		}
	}
	index := make(map[*model.Rule]int)
	var out [][]*model.Rule
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
func newTable(rules []*model.Rule, soft map[*model.Rule]bool) *model.Table {
	var xs, ys []float64
	box := geom.Nothing()
	drawn := 0
	for _, r := range rules {
		box = box.Union(r.Rect())
		if r.Horizontal {
			ys = append(ys, r.Pos)
		} else {
			xs = append(xs, r.Pos)
		}
		if !soft[r] {
			drawn++
		}
	}
	if len(ys) < 2 || len(xs) < 1 {
		return nil
	}
	t := &model.Table{Xs: geom.Cluster(xs, 2.5), Ys: geom.Cluster(ys, 2.5), Ruled: drawn > 0}
	// A table may lack borders at its sides.
	if t.Xs[0]-box.L > 12 {
		t.Xs = append([]float64{box.L}, t.Xs...)
	}
	if box.R-t.Xs[len(t.Xs)-1] > 12 {
		t.Xs = append(t.Xs, box.R)
	}
	if t.Ys[0]-box.T > 8 {
		t.Ys = append([]float64{box.T}, t.Ys...)
	}
	if box.B-t.Ys[len(t.Ys)-1] > 8 {
		t.Ys = append(t.Ys, box.B)
	}
	t.Xs, t.Ys = spread(t.Xs, 4), spread(t.Ys, 4)
	nx, ny := len(t.Xs)-1, len(t.Ys)-1
	if nx < 1 || ny < 1 || nx*ny < 2 || nx*ny > maxGrid || nx > 60 {
		return nil
	}
	t.Rect = geom.Rect{L: t.Xs[0], T: t.Ys[0], R: t.Xs[nx], B: t.Ys[ny]}
	for _, r := range rules {
		if !soft[r] && (t.Width == 0 || r.Width < t.Width) {
			t.Width, t.Colour = r.Width, r.Colour
		}
	}
	edge := func(horizontal bool, pos, from, to float64) bool {
		covered := 0.0
		for _, r := range rules {
			if r.Horizontal == horizontal && math.Abs(r.Pos-pos) <= 2.5 {
				covered += max(0, min(to, r.To)-max(from, r.From))
			}
		}
		return covered >= 0.5*(to-from)
	}
	mergeCells(t,
		func(row, x int) bool { return edge(false, t.Xs[x], t.Ys[row], t.Ys[row+1]) },
		func(y, col int) bool { return edge(true, t.Ys[y], t.Xs[col], t.Xs[col+1]) })
	return t
}

// spread drops values that are closer than least to their predecessor.
func spread(v []float64, least float64) []float64 {
	out := v[:1]
	for _, x := range v[1:] {
		if x-out[len(out)-1] >= least {
			out = append(out, x)
		}
	}
	return out
}

// mergeCells makes cells of grid fields without borders between them. vertical
// reports whether column x has a left border in a row. horizontal reports
// whether row y has a top border in a column.
func mergeCells(t *model.Table, vertical func(row, x int) bool, horizontal func(y, col int) bool) {
	nx, ny := len(t.Xs)-1, len(t.Ys)-1
	taken := make([]bool, nx*ny)
	for row := range ny {
		for col := range nx {
			if taken[row*nx+col] {
				continue
			}
			c := &model.Cell{Row: row, Col: col, Rows: 1, Cols: 1}
			for x := col + 1; x < nx && !taken[row*nx+x] && !vertical(row, x); x++ {
				c.Cols++
			}
			for y := row + 1; y < ny; y++ {
				open := true
				for x := col; x < col+c.Cols && open; x++ {
					open = !taken[y*nx+x] && !horizontal(y, x) && (x == col || !vertical(y, x))
				}
				// The cell must end there too, or it is not a rectangle.
				if !open || col+c.Cols < nx && !vertical(y, col+c.Cols) {
					break
				}
				c.Rows++
			}
			for y := row; y < row+c.Rows; y++ {
				for x := col; x < col+c.Cols; x++ {
					taken[y*nx+x] = true
				}
			}
			c.Rect = geom.Rect{L: t.Xs[col], T: t.Ys[row], R: t.Xs[col+c.Cols], B: t.Ys[row+c.Rows]}
			t.Cells = append(t.Cells, c)
		}
	}
}

// fillWords puts words into cells. It returns false if the result does not look
// like a table, but like a frame, a chart or a checkbox.
func fillWords(t *model.Table, words []*model.Word, s *model.Sheet) bool {
	in := make(map[*model.Cell][]*model.Word)
	for _, w := range words {
		if c := cellAt(t, w.CX(), w.CY()); c != nil {
			in[c] = append(in[c], w)
		}
	}
	if len(in) < 2 || len(t.Cells) < 2 {
		return false
	}
	if len(t.Cells) > 60 && len(in)*12 < len(t.Cells) {
		return false
	}
	// One column of boxes with much text is a frame around parts of a page.
	if len(t.Xs) == 2 && t.H() > 0.6*s.H {
		return false
	}
	splitRows(t, in)
	for _, c := range t.Cells {
		fillCell(c, in[c])
		for _, f := range s.Fills {
			if f.Contains(c.CX(), c.CY()) && f.Intersect(c.Rect).Area() > 0.6*c.Area() && f.Area() < 0.5*s.W*s.H {
				c.Shaded, c.Shade = f.Colour != 0xffffff, f.Colour // the last fill is on top
			}
		}
	}
	return true
}

// refine handles tables whose rules separate only groups of rows and columns. It
// returns a table in which white space separates the rest, or nil.
func refine(t *model.Table, words []*model.Word) *model.Table {
	coarse := false
	for _, c := range t.Cells {
		var in []*model.Word
		for _, w := range words {
			if c.Contains(w.CX(), w.CY()) {
				in = append(in, w)
			}
		}
		several, numbers := 0, 0
		rs := itemRows(Pieces(in, nil))
		for _, r := range rs {
			if len(r.items) > 1 {
				several++
			}
			if n := r.items[len(r.items)-1]; isNumber(n.Words) {
				numbers++
			}
		}
		coarse = coarse || len(rs) >= 5 && 3*several >= 2*len(rs) && 3*numbers >= 2*len(rs)
	}
	if !coarse {
		return nil
	}
	fine := openTable(itemRows(Pieces(words, nil)), 3, t.Rect)
	if fine == nil || len(fine.Xs) <= len(t.Xs) {
		return nil
	}
	fine.Ruled, fine.Colour, fine.Width = t.Ruled, t.Colour, t.Width
	return fine
}

func cellAt(t *model.Table, x, y float64) *model.Cell {
	for _, c := range t.Cells {
		if x >= c.L-0.5 && x < c.R+0.5 && y >= c.T-0.5 && y < c.B+0.5 {
			return c
		}
	}
	return nil
}

// fillCell puts words into c. Text that runs up or down forms vertical lines.
func fillCell(c *model.Cell, words []*model.Word) {
	if len(words) > 0 && (words[0].Turn == 1 || words[0].Turn == 3) &&
		!slices.ContainsFunc(words, func(w *model.Word) bool { return w.Turn != words[0].Turn }) {
		c.Turn = words[0].Turn
		c.Blocks = turnedBlocks(words, c.Rect)
		return
	}
	c.Blocks = cellBlocks(words, c.Rect)
}

// turnedBlocks makes paragraphs of words that all run up or all run down.
func turnedBlocks(words []*model.Word, box geom.Rect) []*model.Block {
	m := geom.Turned(words[0].Turn, box.L+box.R, box.T+box.B)
	level := make([]*model.Word, len(words))
	for i, w := range words {
		c := *w
		c.Rect = m.Rect(w.L, w.T, w.R, w.B)
		c.Turn = 0
		if w.Turn == 1 {
			c.Base = box.L + box.R - w.Base
		} else {
			c.Base = w.Base
		}
		level[i] = &c
	}
	return cellBlocks(level, m.Rect(box.L, box.T, box.R, box.B))
}

func cellBlocks(words []*model.Word, box geom.Rect) []*model.Block {
	if len(words) == 0 {
		return nil
	}
	var level, turned []*model.Word
	for _, w := range words {
		if w.Turn == 0 {
			level = append(level, w)
		} else {
			turned = append(turned, w)
		}
	}
	var lines []*model.Line
	for _, row := range Rows(level) {
		lines = append(lines, model.NewLine(row))
	}
	inner := geom.Nothing()
	for _, l := range lines {
		inner = inner.Union(l.Rect)
	}
	// Text in a cell is as wide as the cell, minus equal margins.
	margin := 0.0
	if len(lines) > 0 {
		margin = max(0, min(inner.L-box.L, box.R-inner.R, 8))
	}
	col := geom.Rect{L: box.L + margin, T: box.T, R: box.R - margin, B: box.B}
	bs := paragraphs(lines, col)
	if len(turned) > 0 {
		bs = append(bs, newParagraph([]*model.Line{{Rect: box, Words: turned, Size: turned[0].Size, Base: box.B}}, col, col.L, col.R))
	}
	spacing(bs)
	return bs
}

// splitRows splits rows that have no rules between them but whose text forms
// lines, each with an entry in the first column.
func splitRows(t *model.Table, in map[*model.Cell][]*model.Word) {
	if len(t.Xs) < 3 {
		return
	}
	nx := len(t.Xs) - 1
	for row := len(t.Ys) - 2; row >= 0; row-- {
		var cs []*model.Cell
		for _, c := range t.Cells {
			if c.Row == row && c.Rows == 1 {
				cs = append(cs, c)
			}
		}
		if len(cs) != nx || slices.ContainsFunc(cs, func(c *model.Cell) bool { return c.Cols != 1 }) {
			continue
		}
		first := Rows(in[cs[0]])
		if len(first) < 3 {
			continue
		}
		ok := true
		var bases []float64
		for _, r := range first {
			bases = append(bases, r[0].Base)
		}
		entries, numbers, most := 0, 0, 0
		equal := true
		for _, c := range cs[1:] {
			other := Rows(in[c])
			equal = equal && len(other) == len(first)
			most = max(most, len(other))
			for _, r := range other {
				ok = ok && math.Abs(bases[geom.Nearest(bases, r[0].Base)]-r[0].Base) < 0.2*r[0].Size
				entries++
				if isNumber(r) {
					numbers++
				}
			}
		}
		// Entries may be missing if the others are numbers. A text column with as many
		// lines as its neighbours is a single entry.
		if !ok || !equal && (most < len(first)-1 || 4*numbers < 3*entries) {
			continue
		}
		var cuts []float64
		for i := 1; i < len(first); i++ {
			bottom, top := math.Inf(-1), math.Inf(1)
			for _, w := range first[i-1] {
				bottom = max(bottom, w.Base+0.2*w.Size)
			}
			for _, w := range first[i] {
				top = min(top, w.Base-0.8*w.Size)
			}
			cuts = append(cuts, (bottom+top)/2)
		}
		cutRow(t, row, cuts, in)
	}
}

// isNumber reports whether words form one entry of a numeric table.
func isNumber(words []*model.Word) bool {
	if len(words) > 2 {
		return false
	}
	for _, w := range words {
		if strings.Trim(w.Text(), "0123456789.,%$€£+-–—()*/XN") != "" {
			return false
		}
	}
	return true
}

// cutRow splits a row of single cells.
func cutRow(t *model.Table, row int, cuts []float64, in map[*model.Cell][]*model.Word) {
	n := len(cuts)
	var cells []*model.Cell
	for _, c := range t.Cells {
		switch {
		case c.Row > row:
			c.Row += n
		case c.Row == row:
			words := in[c]
			delete(in, c)
			for k := 0; k <= n; k++ {
				part := &model.Cell{Rect: c.Rect, Row: row + k, Col: c.Col, Rows: 1, Cols: 1}
				if k > 0 {
					part.T = cuts[k-1]
				}
				if k < n {
					part.B = cuts[k]
				}
				for _, w := range words {
					if mid := w.Base - 0.3*w.Size; mid >= part.T && mid < part.B {
						in[part] = append(in[part], w)
					}
				}
				cells = append(cells, part)
			}
			continue
		case c.Row+c.Rows > row:
			c.Rows += n
		}
		cells = append(cells, c)
	}
	geom.SortStable(cells, func(a, b *model.Cell) bool {
		if a.Row != b.Row {
			return a.Row < b.Row
		}
		return a.Col < b.Col
	})
	t.Cells = cells
	t.Ys = slices.Insert(slices.Clone(t.Ys), row+1, cuts...)
}

// edgePart is the part of a cell's side that its border covers at least.
const edgePart = 0.6

// findEdges gives the cells of a ruled table their own borders if these differ
// from those of the table.
func findEdges(t *model.Table, rules []*model.Rule) {
	if !t.Ruled {
		return
	}
	var near []*model.Rule
	for _, r := range rules {
		if r.Rect().Grow(reach).Overlaps(t.Rect) {
			near = append(near, r)
		}
	}
	if len(near)*len(t.Cells) > 400_000 {
		return
	}
	find := func(horizontal bool, pos, from, to float64) (e model.Edge) {
		covered := 0.0
		for _, r := range near {
			if r.Horizontal != horizontal || math.Abs(r.Pos-pos) > reach {
				continue
			}
			if part := min(r.To, to) - max(r.From, from); part > 0 {
				covered += part
				if part > edgePart*(to-from)/2 {
					e = model.Edge{Width: r.Width, Colour: r.Colour}
				}
			}
		}
		if covered < edgePart*(to-from) {
			return model.Edge{}
		}
		return e
	}
	edges := make([][4]model.Edge, len(t.Cells))
	differ := false
	for i, c := range t.Cells {
		edges[i] = [4]model.Edge{find(true, c.T, c.L, c.R), find(false, c.L, c.T, c.B), find(true, c.B, c.L, c.R), find(false, c.R, c.T, c.B)}
		for _, e := range edges[i] {
			differ = differ || e.Width == 0 || e.Colour != t.Colour || math.Abs(e.Width-t.Width) > 0.6
		}
	}
	if !differ {
		return
	}
	for i, c := range t.Cells {
		c.Edges = &edges[i]
	}
}
