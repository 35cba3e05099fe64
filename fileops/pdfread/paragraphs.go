package pdfread

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// blocks makes blocks of items one below the other.
func blocks(items []*item, box rect) []*block {
	col := column{rect: box}
	var words []*word
	var others []*item
	for _, it := range items {
		if it.text() && !it.turned {
			words = append(words, it.words...)
		} else {
			others = append(others, it)
		}
	}
	var lines []*line
	for _, row := range rows(words) {
		lines = append(lines, newLine(row))
	}
	sortStable(others, func(a, b *item) bool { return a.t < b.t })

	// Pictures and turned lines go between the lines they stand between.
	i := 0
	var pending []*line
	flush := func() {
		col.blocks = append(col.blocks, paragraphs(pending, col.rect)...)
		pending = nil
	}
	place := func(it *item) {
		flush()
		switch {
		case it.table != nil:
			col.blocks = append(col.blocks, &block{rect: it.rect, kind: tableBlock, table: it.table, region: col.rect})
		case it.picture != nil:
			if k := len(col.blocks) - 1; k >= 0 && col.blocks[k].kind == pictureBlock {
				last := col.blocks[k]
				if it.t < last.b-0.5*min(it.h(), last.h()) && it.l >= last.r-2 { // side by side
					last.pictures = append(last.pictures, it.picture)
					last.rect = last.union(it.rect)
					return
				}
			}
			col.blocks = append(col.blocks, &block{rect: it.rect, kind: pictureBlock, pictures: []*picture{it.picture}, region: col.rect})
		default:
			l := &line{rect: it.rect, words: it.words, base: it.b, size: it.size}
			col.blocks = append(col.blocks, &block{rect: it.rect, lines: []*line{l}, region: col.rect})
		}
	}
	for _, l := range lines {
		for i < len(others) && others[i].cy() < l.cy() {
			place(others[i])
			i++
		}
		pending = append(pending, l)
	}
	for ; i < len(others); i++ {
		place(others[i])
	}
	flush()
	spacing(col.blocks)
	return col.blocks
}

// spacing sets the space above blocks.
func spacing(bs []*block) {
	for i, b := range bs {
		if i == 0 {
			continue
		}
		p := bs[i-1]
		if b.kind == paragraphBlock && p.kind == paragraphBlock && len(p.lines) > 0 && len(b.lines) > 0 {
			pitch := b.pitch
			if pitch == 0 {
				pitch = 1.2 * b.lines[0].size
			}
			b.before = b.lines[0].base - p.lines[len(p.lines)-1].base - pitch
		} else {
			b.before = b.t - p.b
		}
		b.before = min(max(0, b.before), 150)
	}
}

// paragraphs joins lines of a column to paragraphs.
func paragraphs(lines []*line, col rect) []*block {
	var out []*block
	for _, run := range runs(lines) {
		out = append(out, splitRun(run, col)...)
	}
	return out
}

// runs divides lines where there is more space between them than usual, or the
// size or the weight changes.
func runs(lines []*line) [][]*line {
	pitches := make(map[float64][]float64)
	for i := 1; i < len(lines); i++ {
		a, b := lines[i-1], lines[i]
		if d := b.base - a.base; a.size == b.size && d > 0.7*b.size && d < 2.5*b.size {
			pitches[b.size] = append(pitches[b.size], d)
		}
	}
	usual := make(map[float64]float64)
	for size, ds := range pitches {
		slices.Sort(ds)
		usual[size] = ds[len(ds)/3] // paragraphs may be short, and the space between them larger
	}
	var out [][]*line
	var cur []*line
	for i, l := range lines {
		if i > 0 {
			p := lines[i-1]
			pitch := usual[l.size]
			if len(cur) > 1 {
				pitch = cur[1].base - cur[0].base
			}
			if pitch == 0 {
				pitch = 1.35 * l.size
			}
			d := l.base - p.base
			if d > pitch+0.22*l.size || d <= 0 || math.Abs(l.size-p.size) > 0.09*max(l.size, p.size) ||
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

// weight returns 1 for a line that is all bold, 0 for one that is not bold at
// all, and -1 for a mixed one.
func weight(l *line) int {
	bold := func(s style) bool { return s.font != nil && s.font.bold }
	switch {
	case l.all(bold):
		return 1
	case l.all(func(s style) bool { return !bold(s) }):
		return 0
	}
	return -1
}

// splitRun divides lines of one size and distance into paragraphs by their
// indents and by where they end.
func splitRun(run []*line, col rect) []*block {
	right, left := math.Inf(-1), math.Inf(1)
	for _, l := range run {
		right, left = max(right, l.r), min(left, l.l)
	}
	if len(run) < 3 {
		right = max(right, col.r-0.12*col.w())
		if right > col.r {
			right = col.r
		}
	}
	centred := len(run) > 1 && isCentred(run, col)
	var out []*block
	var cur []*line
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

// breaksBefore tells whether l starts a new paragraph after cur.
func breaksBefore(cur []*line, l *line, left, right float64, centred bool) bool {
	p := cur[len(cur)-1]
	if _, ok := marker(l); ok {
		return true
	}
	if hasWideGap(l) || hasWideGap(p) {
		return true // set with tabs
	}
	if centred {
		return false
	}
	rtl := l.words[0].rtl && p.words[0].rtl
	start, end := l.l, right-p.r // where the line starts, and what is free at the end of the last
	first, edge := cur[0].l, left
	prev := p.l
	if rtl {
		start, end, first, edge, prev = -l.r, p.l-left, -cur[0].r, -right, -p.r
	}
	fits := l.words[0].w() + 0.3*l.size
	short := end > fits+0.02*(right-left)
	if short {
		return true
	}
	in := 0.7 * l.size
	switch {
	case len(cur) == 1:
		if start > first+in { // a hanging indent, or a new paragraph with an indent
			_, listed := marker(cur[0])
			return !listed && prev <= edge+1 && !hangs(cur[0], l)
		}
		return false
	default:
		body := cur[1].l
		if rtl {
			body = -cur[1].r
		}
		return math.Abs(start-body) > in
	}
}

// hasWideGap tells whether l is set with tabs: one of justified text has equal
// gaps.
func hasWideGap(l *line) bool {
	wide := 0
	for i := 1; i < len(l.words); i++ {
		if wideGap(l, i) {
			wide++
		}
	}
	return wide > 0 && (len(l.words) < 4 || wide < len(l.words)-1)
}

// hangs tells whether b goes on with a although it is indented: references
// begin with a name or a number in brackets and hang.
func hangs(a, b *line) bool {
	t := a.text()
	return strings.HasPrefix(t, "[") || !endsSentence(t) && startsLower(b.text())
}

func endsSentence(s string) bool {
	s = strings.TrimRight(s, "\"'”’»)]")
	return s == "" || strings.ContainsRune(".!?:;。！？", lastRune(s))
}

func lastRune(s string) rune { r, _ := utf8.DecodeLastRuneInString(s); return r }

func startsLower(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r)
}

func isCentred(ls []*line, col rect) bool {
	ragged := false
	for _, l := range ls {
		if math.Abs(l.cx()-col.cx()) > 0.015*col.w()+1.5 {
			return false
		}
		if l.l > col.l+0.04*col.w() && l.r < col.r-0.04*col.w() {
			ragged = true
		}
	}
	return ragged
}

// newParagraph makes a block of lines and finds out how it is set.
func newParagraph(ls []*line, col rect, left, right float64) *block {
	b := &block{rect: nothing(), lines: ls, region: col}
	for _, l := range ls {
		b.rect = b.union(l.rect)
	}
	if n := len(ls); n > 1 {
		b.pitch = (ls[n-1].base - ls[0].base) / float64(n-1)
	}
	full := 0
	for _, l := range ls[:len(ls)-1] {
		if l.r > right-2 && l.l < left+2+max(0, ls[0].l-left) {
			full++
		}
	}
	last := ls[len(ls)-1]
	rtl := ls[0].words[0].rtl
	switch {
	case isCentred(ls, col):
		b.align = alignCentre
		return b
	case len(ls) > 1 && full == len(ls)-1 && (len(ls) > 2 || last.r < right-2):
		b.align = alignJustify
	case rtl && b.r > col.r-3:
		b.align = alignRight
	case !rtl && b.r > col.r-1.5 && b.l > col.l+0.3*col.w() && len(ls) == 1:
		b.align = alignRight
		return b
	}
	if rtl {
		b.right = max(0, col.r-b.r)
		return b
	}
	body := ls[0].l
	if len(ls) > 1 {
		body = math.Inf(1)
		for _, l := range ls[1:] {
			body = min(body, l.l)
		}
		b.first = ls[0].l - body
	}
	b.left = max(0, body-col.l)
	if math.Abs(b.first) < 1.5 {
		b.first = 0
	}
	if b.left < 1.5 {
		b.left = 0
	}
	// A narrow paragraph keeps its width if it is clearly meant so.
	if free := col.r - right; len(ls) > 2 && free > 12 {
		b.right = free
	}
	return b
}

// decorate marks words that have a rule right below or through them.
func decorate(words []*word, rules []*rule) {
	for _, r := range rules {
		if !r.horizontal || r.width > 2.5 {
			continue
		}
		var under, through []*word
		covered := 0.0
		for _, w := range words {
			if w.turn != 0 || w.r < r.from-1 || w.l > r.to+1 {
				continue
			}
			inside := min(w.r, r.to) - max(w.l, r.from)
			if inside < 0.8*w.w() {
				continue
			}
			switch d := (r.pos - w.base) / w.size; {
			case d > -0.02 && d < 0.27:
				under = append(under, w)
				covered += inside
			case d > -0.42 && d < -0.18:
				through = append(through, w)
				covered += inside
			}
		}
		if covered < 0.75*(r.to-r.from) {
			continue // a border or a line to write on
		}
		for _, w := range under {
			for i := range w.spans {
				w.spans[i].underline = true
			}
			r.used = true
		}
		for _, w := range through {
			for i := range w.spans {
				w.spans[i].strike = true
			}
			r.used = true
		}
	}
}
