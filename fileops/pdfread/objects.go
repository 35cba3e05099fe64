package pdfread

import "math"

// A walker looks at the objects of a page that are not text.
type walker struct {
	x       *extractor
	page    *page
	sheet   *sheet
	turn    int
	objects int
	segs    int
	curves  []rect // what is neither a rule nor a fill
	plots   []rect // those of many points

	shot         uint64 // the drawn page, a bitmap of pdfium; 0 if there is none yet
	shotPix      uint32 // its pixels
	shotW, shotH int
	scale        float64 // pixels per point of it
}

// walk looks at all objects of the page, also those in forms.
func (w *walker) walk(view matrix) {
	in := w.x.in
	n := in.int("FPDFPage_CountObjects", w.page.ptr)
	for i := range n {
		if in.err != nil || w.objects > maxObjects {
			return
		}
		w.object(in.call("FPDFPage_GetObject", w.page.ptr, uint64(i)), view, 0)
	}
}

func (w *walker) object(obj uint64, m matrix, depth int) {
	in := w.x.in
	w.objects++
	switch in.int("FPDFPageObj_GetType", obj) {
	case objectPath:
		w.path(obj, m)
	case objectImage:
		w.image(obj, m)
	case objectForm:
		if depth >= maxDepth || !in.ok("FPDFPageObj_GetMatrix", obj, in.arg(0)) {
			return
		}
		inner := in.matrixOut().then(m)
		for i := range in.int("FPDFFormObj_CountObjects", obj) {
			if in.err != nil || w.objects > maxObjects {
				return
			}
			w.object(in.call("FPDFFormObj_GetObject", obj, uint64(i)), inner, depth+1)
		}
	}
}

// matrixOut returns the FS_MATRIX in the scratch space.
func (in *instance) matrixOut() matrix {
	var v [6]float64
	in.outFloats(v[:])
	return matrix{v[0], v[1], v[2], v[3], v[4], v[5]}
}

// bounds returns where an object is shown.
func (w *walker) bounds(obj uint64, m matrix) (rect, bool) {
	in := w.x.in
	if !in.ok("FPDFPageObj_GetBounds", obj, in.arg(0), uint64(in.out)+4, uint64(in.out)+8, uint64(in.out)+12) {
		return rect{}, false
	}
	var v [4]float64 // left, bottom, right, top
	in.outFloats(v[:])
	r := m.rect(v[0], v[1], v[2], v[3])
	visible := r.intersect(rect{0, 0, w.sheet.w, w.sheet.h})
	return visible, visible.r >= visible.l && visible.b >= visible.t
}

// colour returns a colour of an object; ok is false if it is not to be seen.
func (w *walker) colour(function string, obj uint64) (c uint32, ok bool) {
	in := w.x.in
	if !in.ok(function, obj, in.arg(0), in.arg(1), in.arg(2), in.arg(3)) {
		return 0, false
	}
	c = uint32(in.outInt(0)&255)<<16 | uint32(in.outInt(1)&255)<<8 | uint32(in.outInt(2)&255)
	return c, in.outInt(3) > 8
}

type vertex struct{ x, y float64 }

// path finds rules and filled rectangles. Everything else is a drawing.
func (w *walker) path(obj uint64, m matrix) {
	in := w.x.in
	box, ok := w.bounds(obj, m)
	if !ok {
		return
	}
	if !in.ok("FPDFPath_GetDrawMode", obj, in.arg(0), in.arg(1)) {
		return
	}
	filled, stroked := in.outInt(0) != 0, in.outInt(1) != 0
	var fillColour, lineColour uint32
	if filled {
		fillColour, filled = w.colour("FPDFPageObj_GetFillColor", obj)
	}
	if stroked {
		lineColour, stroked = w.colour("FPDFPageObj_GetStrokeColor", obj)
	}
	if !filled && !stroked {
		return
	}
	n := in.int("FPDFPath_CountSegments", obj)
	w.segs += n
	if n > 2000 || w.segs > maxSegments {
		w.curves = append(w.curves, box)
		w.plots = append(w.plots, box)
		return
	}
	if in.ok("FPDFPageObj_GetMatrix", obj, in.arg(0)) {
		m = in.matrixOut().then(m)
	}
	width := 0.0
	if stroked {
		in.ok("FPDFPageObj_GetStrokeWidth", obj, in.arg(0))
		var v [1]float64
		in.outFloats(v[:])
		width = max(0.1, v[0]*math.Sqrt(math.Abs(m.a*m.d-m.b*m.c)))
	}
	var cur []vertex
	curved := false
	end := func(closed bool) {
		if len(cur) > 1 {
			if curved || !w.polygon(cur, closed, filled, stroked, fillColour, lineColour, width) {
				b := nothing()
				for _, v := range cur {
					b = b.union(rect{v.x, v.y, v.x, v.y})
				}
				if b = b.intersect(rect{0, 0, w.sheet.w, w.sheet.h}); b.r >= b.l && b.b >= b.t {
					w.curves = append(w.curves, b)
					if len(cur) > plotPoints {
						w.plots = append(w.plots, b)
					}
				}
			}
		}
		cur, curved = nil, false
	}
	for i := range n {
		seg := in.call("FPDFPath_GetPathSegment", obj, uint64(i))
		if !in.ok("FPDFPathSegment_GetPoint", seg, in.arg(0), in.arg(1)) {
			return
		}
		px, py := in.outFloatAt(0), in.outFloatAt(8)
		v := vertex{}
		v.x, v.y = m.apply(px, py)
		switch in.int("FPDFPathSegment_GetType", seg) {
		case segmentMove:
			end(false)
		case segmentBezier:
			curved = true
		}
		cur = append(cur, v)
		if in.ok("FPDFPathSegment_GetClose", seg) {
			end(true)
		}
	}
	end(false)
}

// plotPoints is more than a frame with round corners has.
const plotPoints = 24

// thin is up to how many points a filled rectangle is a rule.
const thin = 3.0

// polygon takes a subpath of straight lines apart. It returns false if one of
// them is neither horizontal nor vertical.
func (w *walker) polygon(v []vertex, closed, filled, stroked bool, fillColour, lineColour uint32, width float64) bool {
	const straight = 0.3
	if closed || filled {
		v = append(v, v[0])
	}
	for i := 1; i < len(v); i++ {
		if math.Abs(v[i].x-v[i-1].x) > straight && math.Abs(v[i].y-v[i-1].y) > straight {
			return false
		}
	}
	box := nothing()
	for _, p := range v {
		box = box.union(rect{p.x, p.y, p.x, p.y})
	}
	page := rect{0, 0, w.sheet.w, w.sheet.h}
	if filled && len(v) <= 6 { // a rectangle; any other shape has more corners
		seen := box.intersect(page)
		switch {
		case seen.w() < 0 || seen.h() < 0:
		case box.h() <= thin && box.w() > box.h():
			w.rule(rule{horizontal: true, pos: box.cy(), from: box.l, to: box.r, width: max(0.1, box.h()), colour: fillColour})
		case box.w() <= thin && box.h() > box.w():
			w.rule(rule{pos: box.cx(), from: box.t, to: box.b, width: max(0.1, box.w()), colour: fillColour})
		case seen.area() > 0:
			w.sheet.fills = append(w.sheet.fills, fill{seen, fillColour})
		}
	} else if filled {
		return false
	}
	if stroked {
		for i := 1; i < len(v); i++ {
			a, b := v[i-1], v[i]
			switch {
			case math.Abs(a.y-b.y) <= straight && math.Abs(a.x-b.x) > straight:
				w.rule(rule{horizontal: true, pos: (a.y + b.y) / 2, from: min(a.x, b.x), to: max(a.x, b.x), width: width, colour: lineColour})
			case math.Abs(a.x-b.x) <= straight && math.Abs(a.y-b.y) > straight:
				w.rule(rule{pos: (a.x + b.x) / 2, from: min(a.y, b.y), to: max(a.y, b.y), width: width, colour: lineColour})
			}
		}
	}
	return true
}

// rule keeps a rule that can be seen. One that is as thick as it is long is a
// dot; a very thick one is a bar.
func (w *walker) rule(r rule) {
	if r.to-r.from < 1 || r.width > 8 || r.colour == 0xffffff {
		return
	}
	r.from = max(r.from, -5)
	r.to = min(r.to, 5+max(w.sheet.w, w.sheet.h))
	if r.to <= r.from {
		return
	}
	w.sheet.rules = append(w.sheet.rules, &r)
}

// finish joins rules that were drawn in pieces and groups what is left of
// drawings.
func (w *walker) finish() {
	w.sheet.rules = joinRules(w.sheet.rules)
	w.sheet.drawings = groupRects(w.curves, 6)
	w.composePictures()
	w.drawings()
	w.bullets()
	if w.shot != 0 {
		w.x.in.call("FPDFBitmap_Destroy", w.shot)
	}
}

// joinRules joins pieces of one rule: dashes, and the borders of cells that
// were drawn one by one.
func joinRules(rules []*rule) []*rule {
	sortStable(rules, func(a, b *rule) bool {
		switch {
		case a.horizontal != b.horizontal:
			return a.horizontal
		case math.Abs(a.pos-b.pos) > 0.6:
			return a.pos < b.pos
		}
		return a.from < b.from
	})
	var out []*rule
	for _, r := range rules {
		if k := len(out) - 1; k >= 0 {
			last := out[k]
			if last.horizontal == r.horizontal && math.Abs(last.pos-r.pos) <= 0.8 && r.from <= last.to+2.5 && r.from >= last.from-0.8 {
				if r.width < last.width+2 {
					last.to = max(last.to, r.to)
					last.width = max(last.width, r.width)
					continue
				}
			}
		}
		out = append(out, r)
	}
	return out
}

// groupRects joins rectangles that are at most distance apart, until none are.
func groupRects(rs []rect, distance float64) []rect {
	// A sweep from the top keeps this fast for thousands of pieces.
	sortStable(rs, func(a, b rect) bool { return a.t < b.t })
	groups := append([]rect(nil), rs...)
	for {
		var out []rect
		for _, r := range groups {
			joined := false
			for k := len(out) - 1; k >= 0 && k >= len(out)-200; k-- {
				if out[k].grow(distance).overlaps(r.grow(0.01)) {
					out[k] = out[k].union(r)
					joined = true
					break
				}
			}
			if !joined {
				out = append(out, r)
			}
		}
		if len(out) == len(groups) {
			return out
		}
		groups = out
		sortStable(groups, func(a, b rect) bool { return a.t < b.t })
	}
}
