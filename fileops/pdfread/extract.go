package pdfread

import (
	"errors"
	"math"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"
)

// Limits of what is looked at on one page. Beyond them a page is a map or a
// drawing, and its parts are no rules of tables.
const (
	maxChars    = 200_000
	maxObjects  = 20_000
	maxSegments = 200_000
	maxDepth    = 8 // of forms in forms
)

// An extractor reads pages of one document. It keeps what pages share.
type extractor struct {
	in    *instance
	doc   *document
	fonts map[uint64]*font
	names map[font]*font
	media *mediaStore // nil if pictures are not wanted
	dpi   float64     // of pictures that must be drawn
}

func newExtractor(doc *document, store *mediaStore) *extractor {
	return &extractor{in: doc.in, doc: doc, fonts: make(map[uint64]*font), names: make(map[font]*font), media: store, dpi: 200}
}

// A matrix maps x, y to a*x+c*y+e, b*x+d*y+f.
type matrix struct{ a, b, c, d, e, f float64 }

func (m matrix) apply(x, y float64) (float64, float64) {
	return m.a*x + m.c*y + m.e, m.b*x + m.d*y + m.f
}

// then returns the matrix that applies m first and n after it.
func (m matrix) then(n matrix) matrix {
	e, f := n.apply(m.e, m.f)
	return matrix{
		m.a*n.a + m.b*n.c, m.a*n.b + m.b*n.d,
		m.c*n.a + m.d*n.c, m.c*n.b + m.d*n.d, e, f,
	}
}

// rect maps a rectangle; the result is the smallest that has all of it.
func (m matrix) rect(x0, y0, x1, y1 float64) rect {
	out := nothing()
	for _, p := range [][2]float64{{x0, y0}, {x1, y0}, {x0, y1}, {x1, y1}} {
		x, y := m.apply(p[0], p[1])
		out = out.union(rect{x, y, x, y})
	}
	return out
}

// view returns the matrix from the coordinates of a page's content to those of
// the page as it is shown. pdfium has it only as a function on whole numbers.
func (p *page) view() matrix {
	const unit = 100.0 // device pixels per point
	in := p.in
	at := func(x, y float64) (float64, float64) {
		in.call("FPDF_PageToDevice", p.ptr, 0, 0, uint64(math.Round(p.w*unit)), uint64(math.Round(p.h*unit)), 0,
			math.Float64bits(x), math.Float64bits(y), in.arg(0), in.arg(1))
		return float64(in.outInt(0)) / unit, float64(in.outInt(1)) / unit
	}
	const far = 1000.0
	e, f := at(0, 0)
	ax, ay := at(far, 0)
	cx, cy := at(0, far)
	return matrix{(ax - e) / far, (ay - f) / far, (cx - e) / far, (cy - f) / far, e, f}
}

// turned returns the matrix that turns a page of size w, h by quarter turns
// counterclockwise, so that text that ran in direction turn runs to the right.
func turned(turn int, w, h float64) matrix {
	switch turn {
	case 1: // ran downwards
		return matrix{0, -1, 1, 0, 0, w}
	case 2:
		return matrix{-1, 0, 0, -1, w, h}
	case 3: // ran upwards
		return matrix{0, 1, -1, 0, h, 0}
	}
	return matrix{1, 0, 0, 1, 0, 0}
}

// askew is the direction of text that runs neither across nor down the page.
const askew = 4

// A glyph is a character on the page.
type glyph struct {
	rect
	text  string
	x, y  float64 // origin, on the base line
	style style
	turn  int // direction of the text in quarter turns clockwise; 0 is to the right, 4 is askew
	rtl   bool
	space bool // there is white space before it
	gap   bool // pdfium thinks that there is
}

// sheet reads a page.
func (x *extractor) sheet(p *page) *sheet {
	s := &sheet{number: p.number, w: p.w, h: p.h}
	view := p.view()
	links := x.links(p, view)
	x.flatten(p)
	glyphs := x.glyphs(p, view)

	// A page that was laid out sideways is turned, so that everything that
	// follows need not know.
	var votes [askew + 1]int
	for i := range glyphs {
		votes[glyphs[i].turn]++
	}
	turn := 0
	for i, n := range votes {
		if 2*n > len(glyphs) && i != askew {
			turn = i
		}
	}
	if turn != 0 {
		m := turned(turn, s.w, s.h)
		for i := range glyphs {
			g := &glyphs[i]
			g.rect = m.rect(g.l, g.t, g.r, g.b)
			g.x, g.y = m.apply(g.x, g.y)
			if g.turn != askew {
				g.turn = (g.turn - turn + 4) % 4
			}
		}
		for i := range links {
			l := &links[i]
			l.rect = m.rect(l.l, l.t, l.r, l.b)
		}
		view = view.then(m)
		if turn != 2 {
			s.w, s.h = s.h, s.w
		}
	}
	s.links = links
	for i := range glyphs {
		g := &glyphs[i]
		for k := range s.links {
			if s.links[k].contains(g.cx(), g.cy()) {
				g.style.link = k + 1
			}
		}
	}
	s.words = raiseWords(makeWords(glyphs))
	if x.media != nil {
		w := &walker{x: x, page: p, sheet: s, turn: turn}
		w.walk(view)
		w.finish()
	}
	return s
}

// An objectStyle is what all characters of a text object share.
type objectStyle struct {
	style
	turn int
}

// glyphs reads the characters of a page in the order of its content, which for
// scripts from right to left is that of reading.
func (x *extractor) glyphs(p *page, view matrix) []glyph {
	in := x.in
	text := in.call("FPDFText_LoadPage", p.ptr)
	if text == 0 {
		return nil
	}
	defer in.call("FPDFText_ClosePage", text)
	n := min(in.int("FPDFText_CountChars", text), maxChars)
	objects := make(map[uint64]*objectStyle)
	var out []glyph
	var space, gap bool
	var high rune
	var last uint64 // object of the last character
	drawn := make(overprint)
	for i := uint64(0); int(i) < n && in.err == nil; i++ {
		r := rune(uint32(in.call("FPDFText_GetUnicode", text, i)))
		if utf16.IsSurrogate(r) {
			if high == 0 {
				high = r
				continue
			}
			r = utf16.DecodeRune(high, r)
		}
		high = 0
		switch {
		case r == 2: // how pdfium marks a hyphen at the end of a line
			r = '-'
		case r == 0 || r == 0xfffe || r == 0xffff || r == 0xfeff || r == 0x200b:
			continue
		case unicode.IsSpace(r) || unicode.IsControl(r):
			if in.int("FPDFText_IsGenerated", text, i) == 1 {
				gap = true
			} else {
				space = true
			}
			continue
		}
		obj := in.call("FPDFText_GetTextObject", text, i)
		st := objects[obj]
		if st == nil {
			st = x.objectStyle(text, obj, i, view)
			objects[obj] = st
		}
		if !in.ok("FPDFText_GetLooseCharBox", text, i, in.arg(0)) {
			continue
		}
		var box [4]float64 // left, top, right, bottom
		in.outFloats(box[:])
		g := glyph{rect: view.rect(box[0], box[1], box[2], box[3]), style: st.style, turn: st.turn, space: space, gap: gap, rtl: isRTL(r)}
		if in.ok("FPDFText_GetCharOrigin", text, i, in.arg(0), in.arg(1)) {
			g.x, g.y = view.apply(in.outDouble(0), in.outDouble(1))
		} else {
			g.x, g.y = g.l, g.b
		}
		if !(math.Abs(g.l) < 1e5 && math.Abs(g.t) < 1e5 && math.Abs(g.r) < 1e5 && math.Abs(g.b) < 1e5) {
			continue
		}
		space, gap = false, false
		if g.style.size < 0.5 {
			g.style.size = math.Round(2*g.h()) / 2
		}
		g.text = normalise(r, g.style.font)
		if g.text == "" {
			continue
		}
		// A ligature comes as several characters at one place.
		if k := len(out) - 1; k >= 0 && last == obj && out[k].x == g.x && out[k].y == g.y && out[k].rect == g.rect && g.w() > 0 && hasLetter(g.text) && hasLetter(out[k].text) {
			out[k].text += g.text
			continue
		}
		if drawn.again(&g, obj) {
			continue
		}
		last = obj
		out = append(out, g)
	}
	return compose(out)
}

// overprint knows where characters were drawn. Text drawn twice, a bit apart,
// looks bold or has a shadow.
type overprint map[printed][]struct {
	x, y float64
	obj  uint64
}

type printed struct {
	text string
	x, y int
}

// again tells whether the same character was drawn at the same place by another
// object, and remembers it if not.
func (o overprint) again(g *glyph, obj uint64) bool {
	near := 0.06 * g.style.size
	at := func(v float64) int { return int(math.Floor(v / 4)) }
	for _, x := range []int{at(g.x - near), at(g.x + near)} {
		for _, y := range []int{at(g.y - near), at(g.y + near)} {
			for _, p := range o[printed{g.text, x, y}] {
				if p.obj != obj && math.Hypot(p.x-g.x, p.y-g.y) < near {
					return true
				}
			}
		}
	}
	k := printed{g.text, at(g.x), at(g.y)}
	o[k] = append(o[k], struct {
		x, y float64
		obj  uint64
	}{g.x, g.y, obj})
	return false
}

// compose joins letters with accents that were drawn over them as characters of
// their own, as TeX does it.
func compose(glyphs []glyph) []glyph {
	out := glyphs[:0]
	for i := 0; i < len(glyphs); i++ {
		g := glyphs[i]
		mark, ok := accents[g.text]
		if !ok {
			out = append(out, g)
			continue
		}
		over := func(h *glyph) bool {
			return h.turn == g.turn && hasLetter(h.text) && g.intersect(h.rect).w() > 0.5*min(g.w(), h.w()) && math.Abs(g.cy()-h.cy()) < h.style.size
		}
		if i+1 < len(glyphs) && over(&glyphs[i+1]) {
			next := &glyphs[i+1]
			next.text = norm.NFC.String(next.text + mark)
			next.space, next.gap = next.space || g.space, next.gap || g.gap
			continue
		}
		if k := len(out) - 1; k >= 0 && over(&out[k]) {
			out[k].text = norm.NFC.String(out[k].text + mark)
			continue
		}
		out = append(out, g)
	}
	return out
}

// accents maps accents that stand alone to those that combine.
var accents = map[string]string{
	"\u00a8": "\u0308", "\u00b4": "\u0301", "`": "\u0300", "\u02c6": "\u0302", "\u02dc": "\u0303", "\u02c7": "\u030c",
	"\u00af": "\u0304", "\u02d8": "\u0306", "\u02d9": "\u0307", "\u02da": "\u030a", "\u00b8": "\u0327", "\u02db": "\u0328", "\u02dd": "\u030b",
}

// Render modes of text (ISO 32000-1, table 106).
const (
	textStroke    = 1
	textInvisible = 3
	textClip      = 7
)

// objectStyle reads the style of a text object, of which char is a character.
func (x *extractor) objectStyle(text, obj, char uint64, view matrix) *objectStyle {
	in := x.in
	st := &objectStyle{}
	size := in.double("FPDFText_GetFontSize", text, char)
	m := matrix{a: 1, d: 1}
	if in.ok("FPDFText_GetMatrix", text, char, in.arg(0)) {
		var v [6]float64
		in.outFloats(v[:])
		m = matrix{v[0], v[1], v[2], v[3], v[4], v[5]}
	}
	if size < 0 { // turned round by its size
		size = -size
		m.a, m.b, m.c, m.d = -m.a, -m.b, -m.c, -m.d
	}
	m = m.then(view)
	size *= math.Hypot(m.c, m.d)
	if !(size < 2000) {
		size = 0
	}
	st.size = math.Round(size*4) / 4
	// y grows downwards in view: (0, 1) is down.
	switch dx, dy := m.a, m.b; {
	case min(math.Abs(dx), math.Abs(dy)) > 0.1*max(math.Abs(dx), math.Abs(dy)):
		st.turn = askew
	case math.Abs(dx) >= math.Abs(dy) && dx < 0:
		st.turn = 2
	case math.Abs(dx) >= math.Abs(dy):
	case dy > 0:
		st.turn = 1
	default:
		st.turn = 3
	}
	mode := in.int("FPDFTextObj_GetTextRenderMode", obj)
	colour := "FPDFText_GetFillColor"
	if mode == textStroke {
		colour = "FPDFText_GetStrokeColor"
	}
	if in.ok(colour, text, char, in.arg(0), in.arg(1), in.arg(2), in.arg(3)) {
		st.colour = uint32(in.outInt(0)&255)<<16 | uint32(in.outInt(1)&255)<<8 | uint32(in.outInt(2)&255)
	}
	if mode == textInvisible || mode == textClip { // the text layer of a scan
		st.colour = 0
	}
	st.font = x.font(in.call("FPDFTextObj_GetFont", obj))
	return st
}

// Types of page objects, of path segments and of actions (fpdfview.h,
// fpdf_edit.h, fpdf_doc.h).
const (
	objectText  = 1
	objectPath  = 2
	objectImage = 3
	objectForm  = 5

	segmentLine   = 0
	segmentBezier = 1
	segmentMove   = 2

	actionGoto = 1
	actionURI  = 3
)

// Types of annotations (fpdf_annot.h).
const (
	annotationLink  = 2
	annotationPopup = 16
)

// flatten makes form fields and annotations with an appearance parts of the
// content, so that their text is found. The links of the page are lost.
func (x *extractor) flatten(p *page) {
	in := x.in
	visible := false
	for i := range min(in.int("FPDFPage_GetAnnotCount", p.ptr), 1000) {
		annot := in.call("FPDFPage_GetAnnot", p.ptr, uint64(i))
		switch in.int("FPDFAnnot_GetSubtype", annot) {
		case annotationLink, annotationPopup:
		default:
			visible = true
		}
		in.call("FPDFPage_CloseAnnot", annot)
	}
	const forDisplay, done = 0, 1
	if !visible || in.int("FPDFPage_Flatten", p.ptr, forDisplay) != done {
		return
	}
	// A loaded page has the old content.
	in.call("FPDF_ClosePage", p.ptr)
	p.ptr = in.call("FPDF_LoadPage", x.doc.ptr, uint64(p.number-1))
	if p.ptr == 0 && in.err == nil {
		in.err = errors.New("pdfium: page lost by flattening")
	}
}

// links reads the links of a page.
func (x *extractor) links(p *page, view matrix) (out []link) {
	in := x.in
	pos := in.arg(0)
	in.module.Memory().WriteUint64Le(uint32(pos), 0)
	for n := 0; n < 5000 && in.ok("FPDFLink_Enumerate", p.ptr, pos, in.arg(1)); n++ {
		ptr := uint64(uint32(in.outInt(1)))
		saved := in.outInt(0)
		if !in.ok("FPDFLink_GetAnnotRect", ptr, in.arg(2)) {
			continue
		}
		var l link
		r := [4]float64{in.outFloatAt(16), in.outFloatAt(20), in.outFloatAt(24), in.outFloatAt(28)}
		l.rect = view.rect(r[0], r[1], r[2], r[3])
		dest := in.call("FPDFLink_GetDest", x.doc.ptr, ptr)
		if dest == 0 {
			action := in.call("FPDFLink_GetAction", ptr)
			switch in.int("FPDFAction_GetType", action) {
			case actionURI:
				l.uri = cString(in.withBuffer(8192, func(b, n uint64) int {
					return in.int("FPDFAction_GetURIPath", x.doc.ptr, action, b, n)
				}))
			case actionGoto:
				dest = in.call("FPDFAction_GetDest", x.doc.ptr, action)
			}
		}
		if dest != 0 {
			l.page = in.int("FPDFDest_GetDestPageIndex", x.doc.ptr, dest) + 1
		}
		if safeLink(l.uri) || l.uri == "" && l.page > 0 {
			out = append(out, l)
		}
		in.module.Memory().WriteUint32Le(uint32(pos), uint32(saved))
	}
	return out
}

// safeLink tells whether a target may go into a document that people will
// click in: the web and mail, no local files and no scripts.
func safeLink(uri string) bool {
	low := strings.ToLower(uri)
	for _, scheme := range []string{"http://", "https://", "mailto:", "ftp://", "tel:"} {
		if strings.HasPrefix(low, scheme) && len(low) > len(scheme) {
			return !strings.ContainsFunc(uri, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar })
		}
	}
	return false
}
