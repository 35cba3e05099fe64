package pdfread

import (
	"slices"
	"strings"
	"unicode"
)

// Charts, diagrams and other drawings are not for editing as text: they become
// pictures. What is written in them is their alternative text, so that it can be
// found, and is no longer in the flow.

const (
	figureSide  = 30  // how wide and high a drawing with text must be, points
	figurePart  = 0.7 // of a page is the largest that is not a background
	figureWords = 400 // with more words it is something else
	labelReach  = 14  // how far outside a drawing its labels are, points
)

// drawings makes pictures of drawings: those that stand by themselves and those
// with labels in them. Text with a frame around it or a background is left.
func (w *walker) drawings() {
	s := w.sheet
	for _, d := range s.drawings {
		if d.w() < 16 || d.h() < 16 {
			continue
		}
		if slices.ContainsFunc(s.pictures, func(p *picture) bool { return d.overlaps(p.rect) }) {
			continue
		}
		if !slices.ContainsFunc(s.words, func(word *word) bool { return d.grow(1).overlaps(word.rect) }) {
			if d.area() > 0.6*s.w*s.h {
				continue
			}
			if m := w.drawn(d.grow(1).intersect(rect{0, 0, s.w, s.h})); m != nil {
				s.pictures = append(s.pictures, &picture{rect: d, media: m})
			}
			continue
		}
		w.figure(d)
	}
}

// figure makes a picture of a drawing with text in it, if it is one.
func (w *walker) figure(d rect) {
	s := w.sheet
	page := rect{0, 0, s.w, s.h}
	if d.w() < figureSide || d.h() < figureSide || !w.complex(d) {
		return
	}
	box := w.extent(d)
	if box.area() > figurePart*page.area() {
		return
	}
	inside := func(word *word) bool { return box.contains(word.cx(), word.cy()) }
	var labels []*word
	for _, word := range s.words {
		if inside(word) {
			labels = append(labels, word)
		}
	}
	if !areLabels(labels, box) {
		return
	}
	box = w.withLabels(box).intersect(page)
	labels = labels[:0]
	for _, word := range s.words {
		if inside(word) {
			labels = append(labels, word)
		}
	}
	seen := box.grow(1).intersect(page)
	m := w.drawn(seen)
	if m == nil {
		return
	}
	s.pictures = append(s.pictures, &picture{rect: seen, media: m, alt: labelText(labels)})
	s.words = slices.DeleteFunc(s.words, inside)
	s.rules = slices.DeleteFunc(s.rules, func(r *rule) bool { b := r.rect(); return box.grow(2).contains(b.cx(), b.cy()) })
	s.fills = slices.DeleteFunc(s.fills, func(f fill) bool { return box.grow(2).contains(f.cx(), f.cy()) })
}

// complex tells whether a drawing consists of more than a frame.
func (w *walker) complex(d rect) bool {
	n := 0
	for _, c := range w.plots {
		if c.w() > 0.3*d.w() && d.grow(1).contains(c.cx(), c.cy()) {
			return true
		}
	}
	for _, c := range w.curves {
		if c.area() < 0.8*d.area() && d.grow(1).contains(c.cx(), c.cy()) {
			n++
		}
	}
	return n >= 3
}

// extent adds the rules and fills that belong to a drawing: the axes and bars of
// a chart.
func (w *walker) extent(d rect) rect {
	s := w.sheet
	box := d
	for range 6 {
		before := box
		add := func(r rect, near float64) {
			if u := box.union(r); r.grow(0.5).overlaps(box.grow(near)) && u.area() < 4*d.area() {
				box = u
			}
		}
		for _, r := range s.rules {
			add(r.rect(), 6)
		}
		for _, f := range s.fills {
			if f.area() < figurePart*s.w*s.h {
				add(f.rect, 1.5)
			}
		}
		if box == before {
			break
		}
	}
	return box
}

// areLabels tells whether words in a drawing are labels and no running text.
func areLabels(words []*word, box rect) bool {
	if len(words) > figureWords {
		return false
	}
	var level []*word
	area := 0.0
	for _, w := range words {
		area += w.area()
		if w.turn == 0 {
			level = append(level, w)
		}
	}
	if area > 0.3*box.area() {
		return false
	}
	long := 0
	for _, p := range pieces(level, nil) {
		if p.chars > 45 {
			long++
		}
	}
	return long < 2
}

// withLabels adds the labels right outside a drawing: the numbers of an axis and
// what is written beside it.
func (w *walker) withLabels(box rect) rect {
	var sizes []float64
	for _, word := range w.sheet.words {
		sizes = append(sizes, word.size)
	}
	usual := median(sizes)
	out := box
	for _, p := range pieces(w.sheet.words, nil) {
		if !p.overlaps(box.grow(labelReach)) {
			continue
		}
		text := labelText(p.words)
		number := !strings.ContainsFunc(text, unicode.IsLetter)
		if p.overlaps(box) && p.w() < 0.5*box.w() || number && p.chars < 80 || p.turned && p.h() < 1.1*box.h() || p.chars < 24 && p.size < 0.96*usual {
			out = out.union(p.rect)
		}
	}
	if out.w() > box.w()+6*labelReach || out.h() > box.h()+6*labelReach {
		return box
	}
	return out
}

// labelText returns the words of a drawing line by line.
func labelText(words []*word) string {
	var level, others []*word
	for _, w := range words {
		if w.turn == 0 {
			level = append(level, w)
		} else {
			others = append(others, w)
		}
	}
	var b strings.Builder
	put := func(s string) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	for _, r := range rows(level) {
		put(newLine(r).text())
	}
	for _, w := range others {
		put(w.text())
	}
	return b.String()
}

// composePictures joins images that overlap or are parts of one that was cut in
// strips: what is seen is all of them together.
func (w *walker) composePictures() {
	s := w.sheet
	var out []*picture
	for _, p := range s.pictures {
		out = append(out, p)
		for k := 0; k < len(out)-1; k++ {
			last := out[len(out)-1]
			if !oneImage(out[k].rect, last.rect) {
				continue
			}
			out[k] = &picture{rect: out[k].union(last.rect), joined: true}
			out = out[:len(out)-1]
			// What was joined may meet others now.
			out = append(append(out[:k:k], out[k+1:]...), out[k])
			k = -1
		}
	}
	if len(out) == len(s.pictures) {
		return
	}
	for _, p := range out {
		if p.joined {
			p.media = w.drawn(p.rect)
		}
	}
	s.pictures = out
}

// oneImage tells whether two images are to be seen as one.
func oneImage(a, b rect) bool {
	if in := a.intersect(b); in.w() > 1 && in.h() > 1 && in.area() > 0.1*min(a.area(), b.area()) {
		return true
	}
	const gap, edge = 0.8, 2
	sameRows := max(a.t, b.t)-min(a.t, b.t) < edge && max(a.b, b.b)-min(a.b, b.b) < edge
	sameColumns := max(a.l, b.l)-min(a.l, b.l) < edge && max(a.r, b.r)-min(a.r, b.r) < edge
	beside := min(abs(a.r-b.l), abs(b.r-a.l)) < gap
	below := min(abs(a.b-b.t), abs(b.b-a.t)) < gap
	return sameRows && beside || sameColumns && below
}
