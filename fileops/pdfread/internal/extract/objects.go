package extract

import (
	"math"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// A walker examines the page objects that are not text.
type walker struct {
	x       *Extractor
	page    *pdfium.Page
	sheet   *model.Sheet
	turn    int
	objects int
	segs    int
	curves  []geom.Rect // neither rules nor fills
	plots   []geom.Rect // curves with many points

	shot         uint64 // rendered page, a bitmap of pdfium; 0 before rendering
	shotPix      uint32 // its pixels
	shotW, shotH int
	scale        float64 // pixels per point of it
}

// walk examines all objects of the page, including those in forms.
func (w *walker) walk(view geom.Matrix) {
	in := w.x.In
	n := in.Int("FPDFPage_CountObjects", w.page.Ptr)
	for i := range n {
		if in.Err != nil || w.objects > maxObjects {
			return
		}
		w.object(in.Call("FPDFPage_GetObject", w.page.Ptr, uint64(i)), view, 0)
	}
}

func (w *walker) object(obj uint64, m geom.Matrix, depth int) {
	in := w.x.In
	w.objects++
	switch in.Int("FPDFPageObj_GetType", obj) {
	case objectPath:
		w.path(obj, m)
	case objectImage:
		w.image(obj, m)
	case objectShading:
		if box, ok := w.bounds(obj, m); ok {
			w.sheet.Lost = append(w.sheet.Lost, box)
		}
	case objectForm:
		if depth >= maxDepth || !in.Ok("FPDFPageObj_GetMatrix", obj, in.Arg(0)) {
			return
		}
		inner := in.OutMatrix().Then(m)
		if opacity := w.opacity(obj); opacity <= invisible {
			return
		} else if box, ok := w.bounds(obj, m); ok && opacity < 250 { // its parts are found in their full colours
			w.sheet.Lost = append(w.sheet.Lost, box)
		}
		for i := range in.Int("FPDFFormObj_CountObjects", obj) {
			if in.Err != nil || w.objects > maxObjects {
				return
			}
			w.object(in.Call("FPDFFormObj_GetObject", obj, uint64(i)), inner, depth+1)
		}
	}
}

// bounds returns the visible area of an object.
func (w *walker) bounds(obj uint64, m geom.Matrix) (geom.Rect, bool) {
	in := w.x.In
	if !in.Ok("FPDFPageObj_GetBounds", obj, in.Arg(0), uint64(in.Out)+4, uint64(in.Out)+8, uint64(in.Out)+12) {
		return geom.Rect{}, false
	}
	var v [4]float64 // left, bottom, right, top
	in.OutFloats(v[:])
	r := m.Rect(v[0], v[1], v[2], v[3])
	visible := r.Intersect(geom.Rect{L: 0, T: 0, R: w.sheet.W, B: w.sheet.H})
	return visible, visible.R >= visible.L && visible.B >= visible.T
}

// invisible is an opacity of 255 that nobody sees.
const invisible = 8

// opacity returns the opacity of an object, from 0 to 255.
func (w *walker) opacity(obj uint64) int {
	in := w.x.In
	if !in.Ok("FPDFPageObj_GetFillColor", obj, in.Arg(0), in.Arg(1), in.Arg(2), in.Arg(3)) {
		return 255
	}
	return in.OutInt(3) & 255
}

// colour returns a colour of an object; ok is false if the colour is invisible,
// or not a single one.
func (w *walker) colour(function string, obj uint64, m geom.Matrix) (c uint32, ok bool) {
	in := w.x.In
	if !in.Ok(function, obj, in.Arg(0), in.Arg(1), in.Arg(2), in.Arg(3)) { // a pattern
		if box, ok := w.bounds(obj, m); ok {
			w.sheet.Lost = append(w.sheet.Lost, box)
		}
		return 0, false
	}
	over := uint32(in.OutInt(3) & 255) // opacity, on white paper
	for i := range 3 {
		v := uint32(in.OutInt(i) & 255)
		c = c<<8 | (v*over+255*(255-over))/255
	}
	return c, over > invisible
}

type vertex struct{ x, y float64 }

// path finds rules and filled rectangles. All other paths are drawings.
func (w *walker) path(obj uint64, m geom.Matrix) {
	in := w.x.In
	box, ok := w.bounds(obj, m)
	if !ok {
		return
	}
	if !in.Ok("FPDFPath_GetDrawMode", obj, in.Arg(0), in.Arg(1)) {
		return
	}
	filled, stroked := in.OutInt(0) != 0, in.OutInt(1) != 0
	var fillColour, lineColour uint32
	if filled {
		fillColour, filled = w.colour("FPDFPageObj_GetFillColor", obj, m)
	}
	if stroked {
		lineColour, stroked = w.colour("FPDFPageObj_GetStrokeColor", obj, m)
	}
	if !filled && !stroked {
		return
	}
	n := in.Int("FPDFPath_CountSegments", obj)
	w.segs += n
	if n > 2000 || w.segs > maxSegments {
		w.curves = append(w.curves, box)
		w.plots = append(w.plots, box)
		return
	}
	if in.Ok("FPDFPageObj_GetMatrix", obj, in.Arg(0)) {
		m = in.OutMatrix().Then(m)
	}
	width := 0.0
	if stroked {
		in.Ok("FPDFPageObj_GetStrokeWidth", obj, in.Arg(0))
		var v [1]float64
		in.OutFloats(v[:])
		width = max(0.1, v[0]*math.Sqrt(math.Abs(m.A*m.D-m.B*m.C)))
	}
	var cur []vertex
	curved := false
	end := func(closed bool) {
		if len(cur) > 1 {
			if curved || !w.polygon(cur, closed, filled, stroked, fillColour, lineColour, width) {
				b := geom.Nothing()
				for _, v := range cur {
					b = b.Union(geom.Rect{L: v.x, T: v.y, R: v.x, B: v.y})
				}
				if b = b.Intersect(geom.Rect{L: 0, T: 0, R: w.sheet.W, B: w.sheet.H}); b.R >= b.L && b.B >= b.T {
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
		seg := in.Call("FPDFPath_GetPathSegment", obj, uint64(i))
		if !in.Ok("FPDFPathSegment_GetPoint", seg, in.Arg(0), in.Arg(1)) {
			return
		}
		px, py := in.OutFloatAt(0), in.OutFloatAt(8)
		v := vertex{}
		v.x, v.y = m.Apply(px, py)
		switch in.Int("FPDFPathSegment_GetType", seg) {
		case segmentMove:
			end(false)
		case segmentBezier:
			curved = true
		}
		cur = append(cur, v)
		if in.Ok("FPDFPathSegment_GetClose", seg) {
			end(true)
		}
	}
	end(false)
}

// plotPoints is more points than a frame with round corners has.
const plotPoints = 24

// thin is the largest thickness in points at which a filled rectangle is a rule.
const thin = 3.0

// polygon splits a subpath of straight lines into rules and fills. It returns
// false if a line is neither horizontal nor vertical.
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
	box := geom.Nothing()
	for _, p := range v {
		box = box.Union(geom.Rect{L: p.x, T: p.y, R: p.x, B: p.y})
	}
	page := geom.Rect{L: 0, T: 0, R: w.sheet.W, B: w.sheet.H}
	if filled && len(v) <= 6 { // a rectangle; other shapes have more corners
		seen := box.Intersect(page)
		switch {
		case seen.W() < 0 || seen.H() < 0:
		case box.H() <= thin && box.W() > box.H():
			w.rule(model.Rule{Horizontal: true, Pos: box.CY(), From: box.L, To: box.R, Width: max(0.1, box.H()), Colour: fillColour})
		case box.W() <= thin && box.H() > box.W():
			w.rule(model.Rule{Pos: box.CX(), From: box.T, To: box.B, Width: max(0.1, box.W()), Colour: fillColour})
		case seen.Area() > 0:
			w.sheet.Fills = append(w.sheet.Fills, model.Fill{Rect: seen, Colour: fillColour, Order: w.objects})
		}
	} else if filled {
		return false
	}
	if stroked {
		for i := 1; i < len(v); i++ {
			a, b := v[i-1], v[i]
			switch {
			case math.Abs(a.y-b.y) <= straight && math.Abs(a.x-b.x) > straight:
				w.rule(model.Rule{Horizontal: true, Pos: (a.y + b.y) / 2, From: min(a.x, b.x), To: max(a.x, b.x), Width: width, Colour: lineColour})
			case math.Abs(a.x-b.x) <= straight && math.Abs(a.y-b.y) > straight:
				w.rule(model.Rule{Pos: (a.x + b.x) / 2, From: min(a.y, b.y), To: max(a.y, b.y), Width: width, Colour: lineColour})
			}
		}
	}
	return true
}

// thick is the width in points above which a rule is a bar, like a filled rectangle.
const thick = 8

// rule stores a visible rule. A rule that is as thick as it is long is a dot.
func (w *walker) rule(r model.Rule) {
	if r.To-r.From < 1 || r.Colour == 0xffffff {
		return
	}
	if r.Width > thick {
		bar := r.Rect().Intersect(geom.Rect{L: 0, T: 0, R: w.sheet.W, B: w.sheet.H})
		if bar.W() > 0 && bar.H() > 0 {
			w.sheet.Fills = append(w.sheet.Fills, model.Fill{Rect: bar, Colour: r.Colour, Order: w.objects})
		}
		return
	}
	r.From = max(r.From, -5)
	r.To = min(r.To, 5+max(w.sheet.W, w.sheet.H))
	if r.To <= r.From {
		return
	}
	r.Order = w.objects
	w.sheet.Rules = append(w.sheet.Rules, &r)
}

// finish joins rules that were drawn in pieces and groups the remaining
// drawings.
func (w *walker) finish() {
	w.patterns()
	w.dropFrames()
	w.sheet.Rules = joinRules(w.sheet.Rules)
	w.sheet.Drawings = groupRects(w.curves, 6)
	w.composePictures()
	w.backs()
	w.drawings()
	w.colourFields()
	w.bullets()
	w.finishShot()
}

// finishShot releases the rendered page.
func (w *walker) finishShot() {
	if w.shot != 0 {
		w.x.In.Call("FPDFBitmap_Destroy", w.shot)
		w.shot = 0
	}
}

// joinRules joins the pieces of one rule: dashes, and cell borders that were
// drawn separately.
func joinRules(rules []*model.Rule) []*model.Rule {
	geom.SortStable(rules, func(a, b *model.Rule) bool {
		switch {
		case a.Horizontal != b.Horizontal:
			return a.Horizontal
		case math.Abs(a.Pos-b.Pos) > 0.6:
			return a.Pos < b.Pos
		}
		return a.From < b.From
	})
	var out []*model.Rule
	for _, r := range rules {
		if k := len(out) - 1; k >= 0 {
			last := out[k]
			if last.Horizontal == r.Horizontal && math.Abs(last.Pos-r.Pos) <= 0.8 && r.From <= last.To+2.5 && r.From >= last.From-0.8 {
				if r.Width < last.Width+2 {
					last.To = max(last.To, r.To)
					last.Width = max(last.Width, r.Width)
					last.Order = max(last.Order, r.Order)
					continue
				}
			}
		}
		out = append(out, r)
	}
	return out
}

// groupRects joins rectangles that are at most distance apart, repeatedly.
func groupRects(rs []geom.Rect, distance float64) []geom.Rect {
	// A sweep from the top keeps this fast for thousands of rectangles.
	geom.SortStable(rs, func(a, b geom.Rect) bool { return a.T < b.T })
	groups := append([]geom.Rect(nil), rs...)
	for {
		var out []geom.Rect
		for _, r := range groups {
			joined := false
			for k := len(out) - 1; k >= 0 && k >= len(out)-200; k-- {
				if out[k].Grow(distance).Overlaps(r.Grow(0.01)) {
					out[k] = out[k].Union(r)
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
		geom.SortStable(groups, func(a, b geom.Rect) bool { return a.T < b.T })
	}
}
