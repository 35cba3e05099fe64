// Package extract reads the visible content of a page: words with their style,
// rules, filled rectangles, links and pictures. Its result is a [model.Sheet].
//
// Charts and other drawings with labels become pictures, and drawn bullets
// become words. Invisible content, and content outside the page, is left out.
package extract

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// Limits for the objects of one page. Beyond them the page is a map or a
// drawing, and its parts are not rules of tables.
const (
	maxObjects  = 20_000
	maxSegments = 200_000
	maxDepth    = 8 // of nested forms
)

// An Extractor reads pages of one document. It caches data that pages share.
type Extractor struct {
	In    *pdfium.Instance
	Doc   *pdfium.Document
	fonts map[uint64]*model.Font
	names map[model.Font]*model.Font
	media *Store  // nil if pictures are not wanted
	dpi   float64 // of pictures that are rendered

	// Buffers for a page.
	chars []pdfium.Char
	buf   []glyph
	drawn overprint

	unread int // visible characters of the last page that are codes without text
	left   int // characters of the last page that are still numbers of glyphs

	original *pdfium.Document // the document without the changes of flatten; nil until it is needed
	copies   uint64           // a document of copied pages, 0 until it is needed
	copied   map[int]int      // from the numbers of pages to indexes in copies

	// AsShown keeps the direction of a page with only a few labels, for documents that
	// show pages as they are. Otherwise all text is turned, so that it can be read in order.
	AsShown bool

	Missing pdfium.FontList // fonts that the document does not contain
}

// New returns an Extractor for a document. store keeps its pictures.
func New(doc *pdfium.Document, store *Store) *Extractor {
	return &Extractor{In: doc.In, Doc: doc, fonts: make(map[uint64]*model.Font), names: make(map[model.Font]*model.Font), copied: make(map[int]int), media: store, dpi: 200}
}

// A glyph is a character on the page.
type glyph struct {
	geom.Rect
	text   string
	x, y   float64 // origin, on the baseline
	style  model.Style
	turn   int // text direction in quarter turns clockwise; 0 is to the right, 4 is askew
	rtl    bool
	space  bool   // white space precedes it
	hidden bool   // invisible
	mirror bool   // mirrored
	leader leader // the row of dots or underscores that it is part of
	gap    bool   // pdfium reports a space before it
}

// Sheet reads a page.
func (x *Extractor) Sheet(p *pdfium.Page) *model.Sheet {
	s := &model.Sheet{Number: p.Number, W: p.W, H: p.H}
	view := p.Matrix()
	links := x.links(p, view)
	s.Fields = x.fields(p, view)
	if x.media == nil { // for text, only values that are not on the page count
		s.Fields = slices.DeleteFunc(s.Fields, func(f *model.Field) bool { return !f.Undrawn || strings.TrimSpace(f.Value) == "" })
	}
	x.flatten(p)
	clear(x.fonts) // their addresses may be those of other fonts now
	glyphs, _ := x.glyphs(p, view)

	// Rotate a sideways page, so that later stages can ignore rotation.
	turn := x.direction(glyphs)
	if turn != 0 {
		m := geom.Turned(turn, s.W, s.H)
		for i := range glyphs {
			g := &glyphs[i]
			g.Rect = m.Rect(g.L, g.T, g.R, g.B)
			g.x, g.y = m.Apply(g.x, g.y)
			if g.turn != model.Askew {
				g.turn = (g.turn - turn + 4) % 4
			}
		}
		for i := range links {
			l := &links[i]
			l.Rect = m.Rect(l.L, l.T, l.R, l.B)
		}
		for _, f := range s.Fields {
			f.Rect = m.Rect(f.L, f.T, f.R, f.B)
		}
		view = view.Then(m)
		if turn != 2 {
			s.W, s.H = s.H, s.W
		}
	}
	s.Turned, s.Mirrored = turn != 0, mirrored(glyphs)
	s.Links = links
	page := geom.Rect{L: 0, T: 0, R: s.W, B: s.H}
	glyphs = slices.DeleteFunc(glyphs, func(g glyph) bool { return !page.Contains(g.CX(), g.CY()) })
	for i := range glyphs {
		g := &glyphs[i]
		for k := range s.Links {
			if s.Links[k].Contains(g.CX(), g.CY()) {
				g.style.Link, g.style.Frame = k+1, s.Links[k].Frame
			}
		}
	}
	s.Words = raiseWords(makeWords(glyphs))
	s.Unlikely = Unlikely(s) || unreadable(s, x.unread) || x.left >= leftGlyphs
	fillFields(s)
	if x.media == nil {
		s.Fields = nil
	} else {
		w := &walker{x: x, page: p, sheet: s, turn: turn}
		w.walk(view)
		w.finish()
	}
	return s
}

// mirrored reports whether many characters are mirrored, which no document can show.
func mirrored(glyphs []glyph) bool {
	n := 0
	for i := range glyphs {
		if glyphs[i].mirror && !glyphs[i].hidden {
			n++
		}
	}
	return 10*n > len(glyphs)
}

// fewGlyphs is the largest number of characters that are labels rather than the text
// of a page.
const fewGlyphs = 40

// direction returns the direction of almost all characters, in quarter turns. Mirrored
// text, and labels with AsShown, keep their direction.
func (x *Extractor) direction(glyphs []glyph) (turn int) {
	if x.AsShown && len(glyphs) <= fewGlyphs || mirrored(glyphs) {
		return 0
	}
	var votes [model.Askew + 1]int
	for i := range glyphs {
		votes[glyphs[i].turn]++
	}
	for i, n := range votes {
		if 100*n > 85*len(glyphs) && i != model.Askew {
			turn = i
		}
	}
	return turn
}

// An objectStyle is the style that all characters of a text object share.
type objectStyle struct {
	model.Style
	turn   int
	hidden bool
	mirror bool
}

// glyphs reads the characters of a page in content order. In right-to-left
// scripts that is the reading order. It also returns the text objects. The characters
// are valid until the next call.
func (x *Extractor) glyphs(p *pdfium.Page, view geom.Matrix) ([]glyph, map[uint64]*objectStyle) {
	in := x.In
	text := in.Call("FPDFText_LoadPage", p.Ptr)
	if text == 0 {
		return nil, nil
	}
	defer in.Call("FPDFText_ClosePage", text)
	n := min(in.Int("FPDFText_CountChars", text), pdfium.MaxChars)
	objects := make(map[uint64]*objectStyle)
	out := slices.Grow(x.buf[:0], max(n, 0))
	var space, gap bool
	var high rune
	var last uint64 // object of the last character
	var of uint64   // object of st
	var st *objectStyle
	x.drawn.reset()
	x.chars = in.Chars(x.chars[:0], text, n)
	for i := range x.chars {
		if in.Err != nil {
			break
		}
		c := &x.chars[i]
		r := c.Rune
		if utf16.IsSurrogate(r) {
			if high == 0 {
				high = r
				continue
			}
			r = utf16.DecodeRune(high, r)
		}
		high = 0
		switch {
		case r == 2: // pdfium's mark for a hyphen at the end of a line
			r = '-'
		case r == 0 || r == 0xfffe || r == 0xffff || r == 0xfeff || r == 0x200b:
			continue
		case c.Unmapped && unicode.IsControl(r):
			// A code of the font, which stands for a visible character.
		case unicode.IsSpace(r) || unicode.IsControl(r):
			if c.Generated {
				gap = true
			} else {
				space = true
			}
			continue
		}
		obj := c.Object
		if st == nil || obj != of {
			if st = objects[obj]; st == nil {
				st = x.objectStyle(text, obj, uint64(i), view)
				objects[obj] = st
			}
			of = obj
		}
		g := glyph{Rect: view.Rect(c.Box[0], c.Box[1], c.Box[2], c.Box[3]), style: st.Style, turn: st.turn, hidden: st.hidden, mirror: st.mirror, space: space, gap: gap, rtl: model.IsRTL(r)}
		g.x, g.y = view.Apply(c.X, c.Y)
		if !(math.Abs(g.L) < 1e5 && math.Abs(g.T) < 1e5 && math.Abs(g.R) < 1e5 && math.Abs(g.B) < 1e5) {
			continue
		}
		space, gap = false, false
		if g.style.Size < 0.5 {
			g.style.Size = math.Round(2*g.H()) / 2
		}
		if g.text = string(r); !unicode.IsControl(r) {
			g.text = normalise(r, g.style.Font)
		}
		if g.text == "" {
			continue
		}
		// A ligature arrives as several characters at one position.
		if k := len(out) - 1; k >= 0 && last == obj && out[k].x == g.x && out[k].y == g.y && out[k].Rect == g.Rect && g.W() > 0 && model.HasLetter(g.text) && model.HasLetter(out[k].text) {
			out[k].text += g.text
			continue
		}
		if x.drawn.again(&g, obj) {
			continue
		}
		last = obj
		out = append(out, g)
	}
	x.buf = out
	decodeUTF8(out)
	x.left = unshift(out)
	out, x.unread = dropCodes(out)
	out = compose(out)
	findLeaders(out)
	return out, objects
}

// An overprint records where characters were drawn. Text drawn twice with a small
// offset looks bold or has a shadow.
type overprint struct {
	last  map[printed]int32 // the last of drawn with this text and place, plus 1
	drawn []drawnGlyph
	texts map[string]int32 // numbers of texts of several characters
}

// reset forgets all characters. It keeps memory, but not that of an unusually full page.
func (o *overprint) reset() {
	const usual = 20_000 // characters
	if o.last == nil || len(o.drawn) > usual {
		*o = overprint{last: make(map[printed]int32), texts: make(map[string]int32)}
	}
	clear(o.last)
	clear(o.texts)
	o.drawn = o.drawn[:0]
}

// A printed stands for a text and a square of the page. Squares that are very far apart
// have the same number.
type printed uint64

func newPrinted(text, x, y int32) printed {
	return printed(uint32(text))<<32 | printed(uint16(x))<<16 | printed(uint16(y))
}

type drawnGlyph struct {
	x, y   float64
	obj    uint64
	before int32 // the previous one with the same text and place, plus 1; 0 if there is none
}

// number returns a number for a text: its only character, or a negative number.
func (o *overprint) number(text string) int32 {
	if r, n := utf8.DecodeRuneInString(text); n == len(text) {
		return r
	}
	n, ok := o.texts[text]
	if !ok {
		n = -1 - int32(len(o.texts))
		o.texts[text] = n
	}
	return n
}

// again reports whether another object drew the same character at the same
// position. If not, it records the character.
func (o *overprint) again(g *glyph, obj uint64) bool {
	near := 0.06 * g.style.Size
	at := func(v float64) int32 { return int32(math.Floor(v / 4)) }
	text := o.number(g.text)
	col, row := at(g.x), at(g.y)
	place := newPrinted(text, col, row)
	left, right, top, bottom := at(g.x-near), at(g.x+near), at(g.y-near), at(g.y+near)
	last := o.last[place]
	for _, x := range [...]int32{left, right} {
		for _, y := range [...]int32{top, bottom} {
			k := last
			if x != col || y != row {
				k = o.last[newPrinted(text, x, y)]
			}
			for ; k > 0; k = o.drawn[k-1].before {
				if p := &o.drawn[k-1]; p.obj != obj && math.Hypot(p.x-g.x, p.y-g.y) < near {
					return true
				}
			}
			if top == bottom {
				break
			}
		}
		if left == right {
			break
		}
	}
	o.drawn = append(o.drawn, drawnGlyph{g.x, g.y, obj, last})
	o.last[place] = int32(len(o.drawn))
	return false
}

// compose joins letters with accents that were drawn over them as separate
// characters, as TeX does.
func compose(glyphs []glyph) []glyph {
	first := slices.IndexFunc(glyphs, func(g glyph) bool { return accent(g.text) != "" })
	if first < 0 {
		return glyphs
	}
	out := glyphs[:first]
	for i := first; i < len(glyphs); i++ {
		g := glyphs[i]
		mark := accent(g.text)
		if mark == "" {
			out = append(out, g)
			continue
		}
		over := func(h *glyph) bool {
			return h.turn == g.turn && model.HasLetter(h.text) && g.Intersect(h.Rect).W() > 0.5*min(g.W(), h.W()) && math.Abs(g.CY()-h.CY()) < h.style.Size
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

// accent returns the combining accent for a spacing accent, or "" for other text.
func accent(text string) string {
	if text[0] < utf8.RuneSelf && text[0] != '`' { // most text needs no lookup
		return ""
	}
	return accents[text]
}

// accents maps spacing accents to combining accents.
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

// objectStyle reads the style of a text object. char is one of its characters.
func (x *Extractor) objectStyle(text, obj, char uint64, view geom.Matrix) *objectStyle {
	in := x.In
	st := &objectStyle{}
	font := in.Call("FPDFTextObj_GetFont", obj)
	size := in.Double("FPDFText_GetFontSize", text, char)
	m := geom.Matrix{A: 1, D: 1}
	if in.Ok("FPDFText_GetMatrix", text, char, in.Arg(0)) {
		var v [6]float64
		in.OutFloats(v[:])
		m = geom.Matrix{A: v[0], B: v[1], C: v[2], D: v[3], E: v[4], F: v[5]}
	}
	if size < 0 { // a negative size rotates the text
		size = -size
		m.A, m.B, m.C, m.D = -m.A, -m.B, -m.C, -m.D
	}
	m = m.Then(view)
	size *= math.Hypot(m.C, m.D)
	if !(size < 2000) {
		size = 0
	}
	st.Size = math.Round(size*4) / 4
	// y grows downwards in view, so (0, 1) points down.
	switch dx, dy := m.A, m.B; {
	case min(math.Abs(dx), math.Abs(dy)) > 0.1*max(math.Abs(dx), math.Abs(dy)):
		st.turn = model.Askew
	case math.Abs(dx) >= math.Abs(dy) && dx < 0:
		st.turn = 2
	case math.Abs(dx) >= math.Abs(dy):
	case dy > 0:
		st.turn = 1
	default:
		st.turn = 3
	}
	st.Font = x.font(font)
	// Glyphs of fonts without a name (Type 3) may be upside down themselves.
	st.mirror = m.A*m.D-m.B*m.C > 0 && pdfium.FontName(in, font) != ""
	mode := in.Int("FPDFTextObj_GetTextRenderMode", obj)
	colour := "FPDFText_GetFillColor"
	if mode == textStroke {
		colour = "FPDFText_GetStrokeColor"
	}
	if in.Ok(colour, text, char, in.Arg(0), in.Arg(1), in.Arg(2), in.Arg(3)) {
		st.Colour = uint32(in.OutInt(0)&255)<<16 | uint32(in.OutInt(1)&255)<<8 | uint32(in.OutInt(2)&255)
	}
	if mode == textInvisible || mode == textClip { // the text layer of a scan
		st.Colour, st.hidden = 0, true
	}
	return st
}

// Types of page objects, of path segments and of actions (fpdfview.h,
// fpdf_edit.h, fpdf_doc.h).
const (
	objectText    = 1
	objectPath    = 2
	objectImage   = 3
	objectShading = 4
	objectForm    = 5

	segmentLine   = 0
	segmentBezier = 1
	segmentMove   = 2

	actionGoto = 1
	actionURI  = 3
)

// links reads the links of a page.
func (x *Extractor) links(p *pdfium.Page, view geom.Matrix) (out []model.Link) {
	in := x.In
	pos := in.Arg(0)
	in.Module.Memory().WriteUint64Le(uint32(pos), 0)
	for n := 0; n < 5000 && in.Ok("FPDFLink_Enumerate", p.Ptr, pos, in.Arg(1)); n++ {
		ptr := uint64(uint32(in.OutInt(1)))
		saved := in.OutInt(0)
		if !in.Ok("FPDFLink_GetAnnotRect", ptr, in.Arg(2)) {
			continue
		}
		var l model.Link
		r := [4]float64{in.OutFloatAt(16), in.OutFloatAt(20), in.OutFloatAt(24), in.OutFloatAt(28)}
		l.Rect = view.Rect(r[0], r[1], r[2], r[3])
		dest := in.Call("FPDFLink_GetDest", x.Doc.Ptr, ptr)
		if dest == 0 {
			action := in.Call("FPDFLink_GetAction", ptr)
			switch in.Int("FPDFAction_GetType", action) {
			case actionURI:
				l.URI = pdfium.CString(in.WithBuffer(8192, func(b, n uint64) int {
					return in.Int("FPDFAction_GetURIPath", x.Doc.Ptr, action, b, n)
				}))
			case actionGoto:
				dest = in.Call("FPDFAction_GetDest", x.Doc.Ptr, action)
			}
		}
		if dest != 0 {
			l.Page = in.Int("FPDFDest_GetDestPageIndex", x.Doc.Ptr, dest) + 1
		}
		if !safeLink(l.URI) {
			l.URI = ""
		}
		if l.Frame = x.frame(p, ptr); l.URI != "" || l.Page > 0 || l.Frame != 0 {
			out = append(out, l)
		}
		in.Module.Memory().WriteUint32Le(uint32(pos), uint32(saved))
	}
	return out
}

// frame returns the frame of a link, like [model.Style.Frame].
func (x *Extractor) frame(p *pdfium.Page, link uint64) uint32 {
	in := x.In
	annot := in.Call("FPDFLink_GetAnnot", p.Ptr, link)
	if annot == 0 {
		return 0
	}
	defer in.Call("FPDFPage_CloseAnnot", annot)
	const colour, noWidth = 0, 0.05
	if !in.Ok("FPDFAnnot_GetBorder", annot, in.Arg(0), in.Arg(1), in.Arg(2)) || in.OutFloatAt(16) < noWidth {
		return 0
	}
	if !in.Ok("FPDFAnnot_GetColor", annot, colour, in.Arg(0), in.Arg(1), in.Arg(2), in.Arg(3)) {
		return 0
	}
	return 0xff<<24 | uint32(in.OutInt(0)&255)<<16 | uint32(in.OutInt(1)&255)<<8 | uint32(in.OutInt(2)&255)
}

// safeLink reports whether a link target is safe for users to click: web and
// mail addresses, but neither local files nor scripts.
func safeLink(uri string) bool {
	low := strings.ToLower(uri)
	for _, scheme := range []string{"http://", "https://", "mailto:", "ftp://", "tel:"} {
		if strings.HasPrefix(low, scheme) && len(low) > len(scheme) {
			return !strings.ContainsFunc(uri, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar })
		}
	}
	return false
}
