package extract

import (
	"slices"
	"strings"
	"unicode"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/layout"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// Charts, diagrams and other drawings are not editable text, so they become
// pictures. Their text becomes the alternative text, which keeps it searchable,
// and leaves the flow.

const (
	figureSide  = 30  // least width and height of a drawing with text, points
	figurePart  = 0.7 // largest part of a page that is not a background
	figureWords = 400 // with more words it is not a drawing
	labelReach  = 14  // largest distance of labels outside a drawing, points
	fieldSide   = 16  // least width and height of a field of colour, points
	fieldPart   = 0.3 // largest part of a page that is a field of colour
	fieldGap    = 6   // least distance of a field of colour from everything else, points
)

// drawings turns drawings into pictures: standalone drawings and those with
// labels. Text with a frame or a background stays text.
func (w *walker) drawings() {
	s := w.sheet
	for _, d := range s.Drawings {
		if d.W() < 16 || d.H() < 16 {
			continue
		}
		if slices.ContainsFunc(s.Pictures, func(p *model.Picture) bool { return d.Overlaps(p.Rect) }) {
			continue
		}
		if !slices.ContainsFunc(s.Words, func(word *model.Word) bool { return d.Grow(1).Overlaps(word.Rect) }) {
			if d.Area() > 0.6*s.W*s.H {
				continue
			}
			if m := w.drawn(d.Grow(1).Intersect(geom.Rect{L: 0, T: 0, R: s.W, B: s.H})); m != nil {
				s.Pictures = append(s.Pictures, &model.Picture{Rect: d, Media: m})
			}
			continue
		}
		w.figure(d)
	}
}

// colourFields turns filled rectangles into pictures if no text and no rule is in
// or near them, such as bars, swatches and placeholders of pictures.
func (w *walker) colourFields() {
	s := w.sheet
	var fields []geom.Rect
	for _, f := range s.Fills {
		if model.IsPaper(f.Colour) || f.Area() > fieldPart*s.W*s.H {
			continue
		}
		fields = append(fields, f.Rect)
	}
	for _, d := range groupRects(fields, fieldGap) {
		near := d.Grow(fieldGap)
		switch {
		case d.W() < fieldSide || d.H() < fieldSide || d.Area() > fieldPart*s.W*s.H:
		case slices.ContainsFunc(s.Words, func(word *model.Word) bool { return near.Overlaps(word.Rect) }):
		case slices.ContainsFunc(s.Rules, func(r *model.Rule) bool { return near.Overlaps(r.Rect().Grow(0.5)) }):
		case slices.ContainsFunc(s.Drawings, func(r geom.Rect) bool { return near.Overlaps(r.Grow(0.5)) }):
		case slices.ContainsFunc(s.Pictures, func(p *model.Picture) bool { return near.Overlaps(p.Rect) }):
		default:
			if m := w.drawn(d); m != nil {
				s.Pictures = append(s.Pictures, &model.Picture{Rect: d, Media: m})
				s.Fills = slices.DeleteFunc(s.Fills, func(f model.Fill) bool { return d.Contains(f.CX(), f.CY()) })
			}
		}
	}
}

// figure turns d into a picture if it is a drawing with text.
func (w *walker) figure(d geom.Rect) {
	s := w.sheet
	page := geom.Rect{L: 0, T: 0, R: s.W, B: s.H}
	if d.W() < figureSide || d.H() < figureSide || !w.complex(d) {
		return
	}
	box := w.extent(d)
	if box.Area() > figurePart*page.Area() {
		return
	}
	inside := func(word *model.Word) bool { return box.Contains(word.CX(), word.CY()) }
	var labels []*model.Word
	for _, word := range s.Words {
		if inside(word) {
			labels = append(labels, word)
		}
	}
	if !areLabels(labels, box) {
		return
	}
	box = w.withLabels(box).Intersect(page)
	labels = labels[:0]
	for _, word := range s.Words {
		if inside(word) {
			labels = append(labels, word)
		}
	}
	seen := box.Grow(1).Intersect(page)
	m := w.drawn(seen)
	if m == nil {
		return
	}
	s.Pictures = append(s.Pictures, &model.Picture{Rect: seen, Media: m, Alt: labelText(labels), Labels: slices.Clone(labels)})
	s.Words = slices.DeleteFunc(s.Words, inside)
	s.Rules = slices.DeleteFunc(s.Rules, func(r *model.Rule) bool { b := r.Rect(); return box.Grow(2).Contains(b.CX(), b.CY()) })
	s.Fills = slices.DeleteFunc(s.Fills, func(f model.Fill) bool { return box.Grow(2).Contains(f.CX(), f.CY()) })
}

// complex reports whether a drawing consists of more than a frame.
func (w *walker) complex(d geom.Rect) bool {
	n := 0
	for _, c := range w.plots {
		if c.W() > 0.3*d.W() && d.Grow(1).Contains(c.CX(), c.CY()) {
			return true
		}
	}
	for _, c := range w.curves {
		if c.Area() < 0.8*d.Area() && d.Grow(1).Contains(c.CX(), c.CY()) {
			n++
		}
	}
	return n >= 3
}

// extent adds the rules and fills that belong to a drawing, such as the axes and
// bars of a chart.
func (w *walker) extent(d geom.Rect) geom.Rect {
	s := w.sheet
	box := d
	for range 6 {
		before := box
		add := func(r geom.Rect, near float64) {
			if u := box.Union(r); r.Grow(0.5).Overlaps(box.Grow(near)) && u.Area() < 4*d.Area() {
				box = u
			}
		}
		for _, r := range s.Rules {
			add(r.Rect(), 6)
		}
		for _, f := range s.Fills {
			if f.Area() < figurePart*s.W*s.H {
				add(f.Rect, 1.5)
			}
		}
		if box == before {
			break
		}
	}
	return box
}

// areLabels reports whether words in a drawing are labels, as opposed to running
// text.
func areLabels(words []*model.Word, box geom.Rect) bool {
	if len(words) > figureWords {
		return false
	}
	var level []*model.Word
	area := 0.0
	for _, w := range words {
		area += w.Area()
		if w.Turn == 0 {
			level = append(level, w)
		}
	}
	if area > 0.3*box.Area() {
		return false
	}
	long := 0
	for _, p := range layout.Pieces(level, nil) {
		if p.Chars > 45 {
			long++
		}
	}
	return long < 2
}

// withLabels adds the labels next to a drawing: the numbers of an axis and the
// text beside it.
func (w *walker) withLabels(box geom.Rect) geom.Rect {
	var sizes []float64
	for _, word := range w.sheet.Words {
		sizes = append(sizes, word.Size)
	}
	usual := geom.Median(sizes)
	out := box
	for _, p := range layout.Pieces(w.sheet.Words, nil) {
		if !p.Overlaps(box.Grow(labelReach)) {
			continue
		}
		text := labelText(p.Words)
		number := !strings.ContainsFunc(text, unicode.IsLetter)
		if p.Overlaps(box) && p.W() < 0.5*box.W() || number && p.Chars < 80 || p.Turned && p.H() < 1.1*box.H() || p.Chars < 24 && p.Size < 0.96*usual {
			out = out.Union(p.Rect)
		}
	}
	if out.W() > box.W()+6*labelReach || out.H() > box.H()+6*labelReach {
		return box
	}
	return out
}

// labelText returns the words of a drawing line by line.
func labelText(words []*model.Word) string {
	var level, others []*model.Word
	for _, w := range words {
		if w.Turn == 0 {
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
	for _, r := range layout.Rows(level) {
		put(model.NewLine(r).Text())
	}
	for _, w := range others {
		put(w.Text())
	}
	return b.String()
}

// composePictures joins images that overlap or are strips of one image. They are
// visible only together.
func (w *walker) composePictures() {
	s := w.sheet
	var out []*model.Picture
	for _, p := range s.Pictures {
		out = append(out, p)
		for k := 0; k < len(out)-1; k++ {
			last := out[len(out)-1]
			if !oneImage(out[k].Rect, last.Rect) {
				continue
			}
			out[k] = &model.Picture{Rect: out[k].Union(last.Rect), Joined: true}
			out = out[:len(out)-1]
			// The joined image may now touch others.
			out = append(append(out[:k:k], out[k+1:]...), out[k])
			k = -1
		}
	}
	if len(out) == len(s.Pictures) {
		return
	}
	for _, p := range out {
		if p.Joined {
			p.Media = w.drawn(p.Rect)
		}
	}
	s.Pictures = out
}

// oneImage reports whether two images appear as one.
func oneImage(a, b geom.Rect) bool {
	if in := a.Intersect(b); in.W() > 1 && in.H() > 1 && in.Area() > 0.1*min(a.Area(), b.Area()) {
		return true
	}
	const gap, edge = 0.8, 2
	sameRows := max(a.T, b.T)-min(a.T, b.T) < edge && max(a.B, b.B)-min(a.B, b.B) < edge
	sameColumns := max(a.L, b.L)-min(a.L, b.L) < edge && max(a.R, b.R)-min(a.R, b.R) < edge
	beside := min(geom.Abs(a.R-b.L), geom.Abs(b.R-a.L)) < gap
	below := min(geom.Abs(a.B-b.T), geom.Abs(b.B-a.T)) < gap
	return sameRows && beside || sameColumns && below
}
