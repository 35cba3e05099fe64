package pdfread

import (
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
)

// A rect is a rectangle in points on a page as it is shown: the origin is the
// top left corner and y grows downwards.
type rect struct{ l, t, r, b float64 }

func (a rect) w() float64    { return a.r - a.l }
func (a rect) h() float64    { return a.b - a.t }
func (a rect) cx() float64   { return (a.l + a.r) / 2 }
func (a rect) cy() float64   { return (a.t + a.b) / 2 }
func (a rect) area() float64 { return max(0, a.w()) * max(0, a.h()) }

func (a rect) union(b rect) rect {
	return rect{min(a.l, b.l), min(a.t, b.t), max(a.r, b.r), max(a.b, b.b)}
}

func (a rect) intersect(b rect) rect {
	return rect{max(a.l, b.l), max(a.t, b.t), min(a.r, b.r), min(a.b, b.b)}
}

func (a rect) overlaps(b rect) bool { return a.l < b.r && b.l < a.r && a.t < b.b && b.t < a.b }

func (a rect) contains(x, y float64) bool { return x >= a.l && x <= a.r && y >= a.t && y <= a.b }

func (a rect) grow(d float64) rect { return rect{a.l - d, a.t - d, a.r + d, a.b + d} }

// nothing is the neutral element of union.
func nothing() rect { return rect{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)} }

// A font is what is known of a font of the file.
type font struct {
	name         string // of the family, without what is in the other fields
	latin        string // the font that Latin text is written in, often another one
	bold, italic bool
}

// A style is how characters look. Styles are compared with ==.
type style struct {
	font      *font
	size      float64 // points
	colour    uint32  // 0xRRGGBB
	raise     int8    // 1 for superscript, -1 for subscript
	underline bool
	strike    bool
	link      int // index into links of the page, plus one
}

// A span is a piece of text of one style.
type span struct {
	text string
	style
}

// A word is text without space that stands together.
type word struct {
	rect
	spans []span
	base  float64 // of the line it stands on
	size  float64 // of the characters that are not raised
	rtl   bool
	glued bool // no space before it, although it is a word of its own
	turn  int  // direction in quarter turns clockwise, or askew
}

func (w *word) text() string {
	if len(w.spans) == 1 {
		return w.spans[0].text
	}
	var b strings.Builder
	for _, s := range w.spans {
		b.WriteString(s.text)
	}
	return b.String()
}

// A line is words side by side, in reading order.
type line struct {
	rect
	words []*word
	base  float64
	size  float64 // of most characters
}

func (l *line) text() string {
	var b strings.Builder
	for i, w := range l.words {
		if i > 0 && !w.glued {
			b.WriteByte(' ')
		}
		for _, s := range w.spans {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// newLine makes a line of words in any order.
func newLine(words []*word) *line {
	l := &line{rect: nothing(), words: words}
	orderWords(words)
	count := make(map[float64]int)
	most := 0
	for _, w := range words {
		l.rect = l.union(w.rect)
		count[w.size] += len(w.text())
	}
	for _, w := range words { // in order, so that the result is always the same
		if n := count[w.size]; n > most {
			most, l.size, l.base = n, w.size, w.base
		}
	}
	return l
}

// all tells whether f is true for all characters of l.
func (l *line) all(f func(style) bool) bool {
	for _, w := range l.words {
		for _, s := range w.spans {
			if !f(s.style) {
				return false
			}
		}
	}
	return true
}

// orderWords puts words on one line into reading order: from left to right, or
// from right to left if most of them are written so. Runs of the other
// direction are turned round (the essence of UAX #9 for whole words).
func orderWords(words []*word) {
	rtl, ltr := 0, 0
	for _, w := range words {
		switch {
		case w.rtl:
			rtl++
		case hasLetter(w.text()):
			ltr++
		}
	}
	sortStable(words, func(a, b *word) bool { return a.l < b.l })
	if rtl == 0 {
		return
	}
	opposite := func(w *word) bool { return w.rtl }
	if rtl > ltr {
		reverse(words)
		opposite = func(w *word) bool { return !w.rtl }
	}
	for i := 0; i < len(words); {
		j := i
		for j < len(words) && opposite(words[j]) {
			j++
		}
		reverse(words[i:j])
		i = max(j, i+1)
	}
}

func hasLetter(s string) bool { return strings.ContainsFunc(s, unicode.IsLetter) }

// isRTL tells whether r belongs to a script that is written from right to left.
func isRTL(r rune) bool {
	if r < 0x590 {
		return false
	}
	p, _ := bidi.LookupRune(r)
	return p.Class() == bidi.R || p.Class() == bidi.AL
}

// A picture is an image or a drawing on a page.
type picture struct {
	rect
	media  *media // nil if it cannot be kept
	alt    string // text in it, which is not in the flow
	joined bool   // it is made of several
}

// A media is the content of a picture, in a file of the scratch directory.
type media struct {
	path string
	ext  string // png or jpg
	w, h int    // pixels
	id   int    // from 1, in order of first use
}

// A rule is a horizontal or vertical line.
type rule struct {
	horizontal bool
	pos        float64 // y of a horizontal rule, x of a vertical one: its middle
	from, to   float64
	width      float64
	colour     uint32
	used       bool // it is part of something already
}

func (r *rule) rect() rect {
	if r.horizontal {
		return rect{r.from, r.pos - r.width/2, r.to, r.pos + r.width/2}
	}
	return rect{r.pos - r.width/2, r.from, r.pos + r.width/2, r.to}
}

// A fill is a rectangle of one colour.
type fill struct {
	rect
	colour uint32
}

// A link is an area that leads somewhere.
type link struct {
	rect
	uri  string
	page int // target in the document, counted from 1; 0 if uri is set
}

// A sheet is what was found on a page, before it was laid out.
type sheet struct {
	number   int // from 1
	w, h     float64
	words    []*word
	pictures []*picture
	rules    []*rule
	fills    []fill
	drawings []rect // what path objects cover that are neither rules nor fills
	links    []link
	scan     *scan // if its text has to be recognised; nil for most
}

// Kinds of blocks.
type blockKind int

const (
	paragraphBlock blockKind = iota
	tableBlock
	pictureBlock
)

// A block is a piece of the flow of text.
type block struct {
	rect
	kind     blockKind
	lines    []*line // paragraph
	table    *table
	pictures []*picture // side by side

	region  rect // the column it stands in
	align   alignment
	first   float64 // indent of the first line against the others, points
	left    float64 // indent against the column
	right   float64
	pitch   float64 // distance of base lines, 0 for one line
	before  float64 // space above it, points
	heading int     // level, 0 for none
	list    *listItem
	tight   bool // its lines must fit, because it stands in a cell
	joined  bool // the next block of this kind goes on where it ends
	page    int
}

type alignment int

const (
	alignLeft alignment = iota
	alignCentre
	alignRight
	alignJustify
)

func (b *block) text() string {
	var s strings.Builder
	for i, l := range b.lines {
		if i > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(l.text())
	}
	return s.String()
}

// A band is a part of a page that goes over its whole width: one column or
// several side by side.
type band struct {
	rect
	columns []column
}

type column struct {
	rect
	blocks []*block
}

// A leaf is a page laid out.
type leaf struct {
	number  int
	w, h    float64
	bands   []band
	content rect // what bands cover
	links   []link
}
