package layout

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// WideGap reports whether the gap before the i-th word of l is as wide as a tab.
func WideGap(l *model.Line, i int) bool {
	a, b := l.Words[i-1], l.Words[i]
	return !a.RTL && !b.RTL && !b.Glued && b.L-a.R > 1.8*l.Size
}

// blocks converts a vertical sequence of items to blocks.
func blocks(items []*Item, box geom.Rect) []*model.Block {
	col := model.Column{Rect: box}
	var words []*model.Word
	var others []*Item
	for _, it := range items {
		if it.text() && !it.Turned {
			words = append(words, it.Words...)
		} else {
			others = append(others, it)
		}
	}
	var lines []*model.Line
	for _, row := range Rows(words) {
		lines = append(lines, model.NewLine(row))
	}
	geom.SortStable(others, func(a, b *Item) bool { return a.T < b.T })

	// Pictures and rotated lines keep their place between the lines.
	i := 0
	var pending []*model.Line
	flush := func() {
		col.Blocks = append(col.Blocks, paragraphs(pending, col.Rect)...)
		pending = nil
	}
	place := func(it *Item) {
		flush()
		switch {
		case it.table != nil:
			col.Blocks = append(col.Blocks, &model.Block{Rect: it.Rect, Kind: model.TableBlock, Table: it.table, Region: col.Rect})
		case it.picture != nil:
			if k := len(col.Blocks) - 1; k >= 0 && col.Blocks[k].Kind == model.PictureBlock {
				last := col.Blocks[k]
				if it.T < last.B-0.5*min(it.H(), last.H()) && it.L >= last.R-2 { // side by side
					last.Pictures = append(last.Pictures, it.picture)
					last.Rect = last.Union(it.Rect)
					return
				}
			}
			col.Blocks = append(col.Blocks, &model.Block{Rect: it.Rect, Kind: model.PictureBlock, Pictures: []*model.Picture{it.picture}, Region: col.Rect})
		default:
			l := &model.Line{Rect: it.Rect, Words: it.Words, Base: it.B, Size: it.Size}
			col.Blocks = append(col.Blocks, &model.Block{Rect: it.Rect, Lines: []*model.Line{l}, Region: col.Rect})
		}
	}
	for _, l := range lines {
		for i < len(others) && others[i].CY() < l.CY() {
			place(others[i])
			i++
		}
		pending = append(pending, l)
	}
	for ; i < len(others); i++ {
		place(others[i])
	}
	flush()
	spacing(col.Blocks)
	return col.Blocks
}

// spacing sets the space above each block.
func spacing(bs []*model.Block) {
	for i, b := range bs {
		if i == 0 {
			continue
		}
		p := bs[i-1]
		if b.Kind == model.ParagraphBlock && p.Kind == model.ParagraphBlock && len(p.Lines) > 0 && len(b.Lines) > 0 {
			pitch := b.Pitch
			if pitch == 0 {
				pitch = 1.2 * b.Lines[0].Size
			}
			b.Before = b.Lines[0].Base - p.Lines[len(p.Lines)-1].Base - pitch
		} else {
			b.Before = b.T - p.B
		}
		b.Before = min(max(0, b.Before), 150)
	}
}

// paragraphs joins the lines of a column to paragraphs.
func paragraphs(lines []*model.Line, col geom.Rect) []*model.Block {
	var out []*model.Block
	for _, run := range runs(lines) {
		out = append(out, splitRun(run, col)...)
	}
	return out
}

// runs splits lines at larger gaps than usual, and where the size or weight
// changes.
func runs(lines []*model.Line) [][]*model.Line {
	pitches := make(map[float64][]float64)
	for i := 1; i < len(lines); i++ {
		a, b := lines[i-1], lines[i]
		if d := b.Base - a.Base; a.Size == b.Size && d > 0.7*b.Size && d < 2.5*b.Size {
			pitches[b.Size] = append(pitches[b.Size], d)
		}
	}
	usual := make(map[float64]float64)
	for size, ds := range pitches {
		slices.Sort(ds)
		usual[size] = ds[len(ds)/3] // paragraphs may be short, with larger gaps between them
	}
	var out [][]*model.Line
	var cur []*model.Line
	for i, l := range lines {
		if i > 0 {
			p := lines[i-1]
			pitch := usual[l.Size]
			if len(cur) > 1 {
				pitch = cur[1].Base - cur[0].Base
			}
			pitch = cmp.Or(pitch, 1.35*l.Size)
			d := l.Base - p.Base
			if d > pitch+0.22*l.Size || d <= 0 || math.Abs(l.Size-p.Size) > 0.09*max(l.Size, p.Size) ||
				weight(l) != weight(p) && weight(l) >= 0 && weight(p) >= 0 {
				out = append(out, cur)
				cur = nil
			}
		}
		cur = append(cur, l)
	}
	if len(cur) > 0 {
		out = append(out, cur)
	}
	return out
}

// weight returns 1 for a bold line, 0 for a line without bold text, and -1 for a
// mixed line.
func weight(l *model.Line) int {
	bold := func(s model.Style) bool { return s.Font != nil && s.Font.Bold }
	switch {
	case l.All(bold):
		return 1
	case l.All(func(s model.Style) bool { return !bold(s) }):
		return 0
	}
	return -1
}

// splitRun splits lines of one size and pitch into paragraphs, by their indents
// and line ends.
func splitRun(run []*model.Line, col geom.Rect) []*model.Block {
	right, left := math.Inf(-1), math.Inf(1)
	for _, l := range run {
		right, left = max(right, l.R), min(left, l.L)
	}
	if len(run) < 3 {
		right = max(right, col.R-0.12*col.W())
		if right > col.R {
			right = col.R
		}
	}
	centred := len(run) > 1 && isCentred(run, col)
	var out []*model.Block
	var cur []*model.Line
	flush := func() {
		if len(cur) > 0 {
			out = append(out, newParagraph(cur, col, left, right))
			cur = nil
		}
	}
	for i, l := range run {
		if i > 0 && len(cur) > 0 && breaksBefore(cur, l, left, right, centred) {
			flush()
		}
		cur = append(cur, l)
	}
	flush()
	return out
}

// breaksBefore reports whether l starts a new paragraph after cur.
func breaksBefore(cur []*model.Line, l *model.Line, left, right float64, centred bool) bool {
	p := cur[len(cur)-1]
	if Leader(p) > 0 || lineMark(l) != "" && lineMark(cur[0]) != "" { // each footnote is a paragraph
		return true
	}
	if _, ok := marker(l); ok {
		return true
	}
	if hasWideGap(l) || hasWideGap(p) && !(len(cur) == 1 && HangsAfterTab(p, l)) {
		return true // set with tabs
	}
	if centred {
		return false
	}
	rtl := l.Words[0].RTL && p.Words[0].RTL
	start, end := l.L, right-p.R // indent of the line, and free space at the end of the previous line
	first, edge := cur[0].L, left
	prev := p.L
	if rtl {
		start, end, first, edge, prev = -l.R, p.L-left, -cur[0].R, -right, -p.R
	}
	fits := l.Words[0].W() + 0.3*l.Size
	short := end > fits+0.02*(right-left)
	if short {
		return true
	}
	in := 0.7 * l.Size
	switch {
	case len(cur) == 1:
		if start > first+in { // a hanging indent, or a new indented paragraph
			_, listed := marker(cur[0])
			return !listed && prev <= edge+1 && !hangs(cur[0], l)
		}
		return false
	default:
		body := cur[1].L
		if rtl {
			body = -cur[1].R
		}
		return math.Abs(start-body) > in
	}
}

// hasWideGap reports whether l is set with tabs. The gaps of a justified line
// are equal.
func hasWideGap(l *model.Line) bool {
	wide := 0
	for i := 1; i < len(l.Words); i++ {
		if WideGap(l, i) {
			wide++
		}
	}
	return wide > 0 && (len(l.Words) < 4 || wide < len(l.Words)-1)
}

// HangsAfterTab reports whether l continues p, whose text starts after a label and
// a tab, at the same indent.
func HangsAfterTab(p, l *model.Line) bool {
	for i := 1; i < len(p.Words); i++ {
		if WideGap(p, i) {
			return i <= 2 && math.Abs(p.Words[i].L-l.L) < 2 && !wideAfter(p, i)
		}
	}
	return false
}

// wideAfter reports whether l has a wide gap after its i-th word.
func wideAfter(l *model.Line, i int) bool {
	for k := i + 1; k < len(l.Words); k++ {
		if WideGap(l, k) {
			return true
		}
	}
	return false
}

// hangs reports whether the indented line b continues a: references start with a
// name or a bracketed number and have hanging indents.
func hangs(a, b *model.Line) bool {
	t := a.Text()
	return strings.HasPrefix(t, "[") || !endsSentence(t) && model.StartsLower(b.Text())
}

func endsSentence(s string) bool {
	s = strings.TrimRight(s, "\"'”’»)]")
	return s == "" || strings.ContainsRune(".!?:;。！？", model.LastRune(s))
}

func isCentred(ls []*model.Line, col geom.Rect) bool {
	ragged := false
	for _, l := range ls {
		if math.Abs(l.CX()-col.CX()) > 0.015*col.W()+1.5 {
			return false
		}
		if l.L > col.L+0.04*col.W() && l.R < col.R-0.04*col.W() {
			ragged = true
		}
	}
	return ragged
}

// newParagraph makes a block of lines and determines its alignment and indents.
func newParagraph(ls []*model.Line, col geom.Rect, left, right float64) *model.Block {
	b := &model.Block{Rect: geom.Nothing(), Lines: ls, Region: col}
	for _, l := range ls {
		b.Rect = b.Union(l.Rect)
	}
	if n := len(ls); n > 1 {
		b.Pitch = (ls[n-1].Base - ls[0].Base) / float64(n-1)
	}
	full := 0
	for i, l := range ls[:len(ls)-1] {
		if l.R > right-2 && (i == 0 || math.Abs(l.L-ls[1].L) < 2) {
			full++
		}
	}
	last := ls[len(ls)-1]
	rtl := ls[0].Words[0].RTL
	switch {
	case isCentred(ls, col):
		b.Align = model.AlignCentre
		return b
	case len(ls) > 1 && full == len(ls)-1 && (len(ls) > 2 || last.R < right-2):
		b.Align = model.AlignJustify
	case rtl && b.R > col.R-3:
		b.Align = model.AlignRight
	case !rtl && b.R > col.R-1.5 && b.L > col.L+0.3*col.W() && len(ls) == 1:
		b.Align = model.AlignRight
		return b
	}
	if rtl {
		b.Right = max(0, col.R-b.R)
		return b
	}
	body := ls[0].L
	if len(ls) > 1 {
		body = math.Inf(1)
		for _, l := range ls[1:] {
			body = min(body, l.L)
		}
		b.First = ls[0].L - body
	}
	b.Left = max(0, body-col.L)
	if math.Abs(b.First) < 1.5 {
		b.First = 0
	}
	if b.Left < 1.5 {
		b.Left = 0
	}
	// A clearly narrower paragraph keeps its width, unless it consists of a few
	// words, which could wrap.
	if free := col.R - right; len(ls) > 2 && free > 12 && right-left > 12*ls[0].Size {
		b.Right = free
	}
	return b
}

// decorate marks words that are underlined or struck through by a rule.
func decorate(words []*model.Word, rules []*model.Rule) {
	for _, r := range rules {
		if !r.Horizontal || r.Width > 2.5 {
			continue
		}
		var under, through []*model.Word
		covered := 0.0
		for _, w := range words {
			if w.Turn != 0 || w.R < r.From-1 || w.L > r.To+1 {
				continue
			}
			inside := min(w.R, r.To) - max(w.L, r.From)
			if inside < 0.8*w.W() {
				continue
			}
			switch d := (r.Pos - w.Base) / w.Size; {
			case d > -0.02 && d < 0.27:
				under = append(under, w)
				covered += inside
			case d > -0.42 && d < -0.18:
				through = append(through, w)
				covered += inside
			}
		}
		if covered < 0.75*(r.To-r.From) {
			continue // a border or a line to write on
		}
		for _, w := range under {
			for i := range w.Spans {
				w.Spans[i].Underline = true
			}
			r.Used = true
		}
		for _, w := range through {
			for i := range w.Spans {
				w.Spans[i].Strike = true
			}
			r.Used = true
		}
	}
}
