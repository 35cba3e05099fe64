// Package model defines the parts of a document: words, rules and pictures of a
// page ([Sheet]), blocks in columns ([Leaf]), and sections ([Document]).
//
// Package extract makes sheets. Package layout turns them into leaves and
// documents. Each writer converts a document to one format.
package model

import (
	"image"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
)

// Askew is the direction of text that is neither horizontal nor vertical.
const Askew = 4

// A Font describes a font of the file.
type Font struct {
	Name         string // family name, without the properties in the other fields
	Latin        string // font for Latin text, often a stand-in
	Bold, Italic bool
}

// A Style is the appearance of characters. Styles are comparable with ==.
type Style struct {
	Font      *Font
	Size      float64 // points
	Colour    uint32  // 0xRRGGBB
	Raise     int8    // 1 for superscript, -1 for subscript
	Underline bool
	Strike    bool
	Link      int    // index of the page's links plus one
	Frame     uint32 // 0xff000000 plus the colour of a frame around it; 0 means none
}

// A Span is a piece of text of one style.
type Span struct {
	Text string
	Style
}

// A Word is a sequence of characters without space.
type Word struct {
	geom.Rect
	Spans      []Span
	Base       float64 // baseline
	Size       float64 // of the characters that are not raised
	RTL        bool
	Hidden     bool   // invisible, as in the text layer of a scan
	Recognised bool   // read from a picture, which shows it
	Glued      bool   // no space before it, although it is a separate word
	Turn       int    // direction in quarter turns clockwise, or askew
	Field      *Field // the form field that shows it; nil if none does
	Leader     bool   // dots between a title and a page number, or to write on
	Line       bool   // underscores to write on
	Note       *Note  // the footnote that its raised end refers to; nil if there is none
}

// Text returns the characters of all spans.
func (w *Word) Text() string {
	if len(w.Spans) == 1 {
		return w.Spans[0].Text
	}
	var b strings.Builder
	for _, s := range w.Spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// A Line is words side by side, in reading order.
type Line struct {
	geom.Rect
	Words []*Word
	Base  float64
	Size  float64 // of most characters
}

// Text returns the words, with spaces between them.
func (l *Line) Text() string {
	var b strings.Builder
	for i, w := range l.Words {
		if i > 0 && !w.Glued {
			b.WriteByte(' ')
		}
		for _, s := range w.Spans {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

// NewLine makes a line from words in any order.
func NewLine(words []*Word) *Line {
	l := &Line{Rect: geom.Nothing(), Words: words}
	orderWords(words)
	pairBrackets(words)
	count := make(map[float64]int)
	most := 0
	for _, w := range words {
		l.Rect = l.Union(w.Rect)
		count[w.Size] += len(w.Text())
	}
	for _, w := range words { // in order, so that the result is deterministic
		if n := count[w.Size]; n > most {
			most, l.Size, l.Base = n, w.Size, w.Base
		}
	}
	return l
}

// All reports whether f returns true for the style of every character of l.
func (l *Line) All(f func(Style) bool) bool {
	for _, w := range l.Words {
		for _, s := range w.Spans {
			if !f(s.Style) {
				return false
			}
		}
	}
	return true
}

// orderWords sorts the words of a line into reading order: left to right, or
// right to left if most words are. It reverses runs of the other direction (UAX
// #9, reduced to whole words).
func orderWords(words []*Word) {
	rtl, ltr := 0, 0
	for _, w := range words {
		switch {
		case w.RTL:
			rtl++
		case HasLetter(w.Text()):
			ltr++
		}
	}
	geom.SortStable(words, func(a, b *Word) bool { return a.L < b.L })
	if rtl == 0 {
		return
	}
	opposite := func(w *Word) bool { return w.RTL }
	if rtl > ltr {
		slices.Reverse(words)
		opposite = func(w *Word) bool { return !w.RTL }
	}
	for i := 0; i < len(words); {
		j := i
		for j < len(words) && opposite(words[j]) {
			j++
		}
		slices.Reverse(words[i:j])
		i = max(j, i+1)
	}
}

// HasLetter reports whether s contains a letter.
func HasLetter(s string) bool { return strings.ContainsFunc(s, unicode.IsLetter) }

// IsRTL reports whether r belongs to a right-to-left script.
func IsRTL(r rune) bool {
	if r < 0x590 {
		return false
	}
	p, _ := bidi.LookupRune(r)
	return p.Class() == bidi.R || p.Class() == bidi.AL
}

// A Picture is an image or a drawing on a page.
type Picture struct {
	geom.Rect
	Media  *Media  // nil if it cannot be stored
	Alt    string  // its text, which is not in the flow
	Labels []*Word // the words of Alt
	Joined bool    // joined from several pictures
}

// A Media is the content of a picture, in a file of the scratch directory.
type Media struct {
	Path string
	Ext  string // png or jpg
	W, H int    // pixels
	ID   int    // from 1, in order of first use
}

// A Rule is a horizontal or vertical line.
type Rule struct {
	Horizontal bool
	Pos        float64 // middle: y of a horizontal rule, x of a vertical rule
	From, To   float64
	Width      float64
	Colour     uint32
	Order      int  // of drawing; later objects cover earlier ones
	Used       bool // it is already part of another object
}

// Rect returns the area that a rule covers.
func (r *Rule) Rect() geom.Rect {
	if r.Horizontal {
		return geom.Rect{L: r.From, T: r.Pos - r.Width/2, R: r.To, B: r.Pos + r.Width/2}
	}
	return geom.Rect{L: r.Pos - r.Width/2, T: r.From, R: r.Pos + r.Width/2, B: r.To}
}

// Line returns the line in the middle of a rule.
func (r *Rule) Line() geom.Rect {
	if r.Horizontal {
		return geom.Rect{L: r.From, T: r.Pos, R: r.To, B: r.Pos}
	}
	return geom.Rect{L: r.Pos, T: r.From, R: r.Pos, B: r.To}
}

// A Fill is a rectangle of one colour.
type Fill struct {
	geom.Rect
	Colour uint32
	Order  int // like Rule.Order
}

// IsPaper reports whether a colour is white or almost white.
func IsPaper(c uint32) bool { return min(c>>16, c>>8&255, c&255) > 0xf4 }

// A Link is an area with a target.
type Link struct {
	geom.Rect
	URI   string
	Page  int    // target page in the document, from 1; 0 if uri is set, or if the target is unknown
	Frame uint32 // like Style.Frame
	Mark  int    // the heading that it leads to, like Block.Mark; 0 means the page
}

// A Sheet is the content of a page before layout.
type Sheet struct {
	Number   int // from 1
	W, H     float64
	Words    []*Word
	Pictures []*Picture
	Rules    []*Rule
	Fills    []Fill
	Drawings []geom.Rect // areas of paths that are neither rules nor fills
	Backs    []*Picture  // behind text
	Lost     []geom.Rect // areas of other pictures that are behind text, and of shadings
	Links    []Link
	Fields   []*Field
	Turned   bool  // its text runs sideways or upside down on the page in the file
	Mirrored bool  // much of its text is mirrored
	Unlikely bool  // the text is probably not what the page shows
	Blank    bool  // nothing is visible on it
	Damaged  bool  // it cannot be read, and so is empty
	Scan     *Scan // nil unless the text has to be recognized
	Form     Form  // that the caller has chosen
}

// A Form is how a page becomes part of a Word document.
type Form int

// Forms of pages. Each keeps more of the look than those before, and is harder to edit.
const (
	FormAny     Form = iota // flowing text, unless that would lose too much
	FormBoxes               // text boxes over a picture of everything else
	FormPicture             // a picture of the page, with the text behind it
)

type blockKind int

// Kinds of blocks.
const (
	ParagraphBlock blockKind = iota
	TableBlock
	PictureBlock
)

// A Block is a part of the flow of text.
type Block struct {
	geom.Rect
	Kind     blockKind
	Lines    []*Line // paragraph
	Table    *Table
	Pictures []*Picture // side by side

	Region  geom.Rect // its column
	Align   Alignment
	First   float64 // indent of the first line relative to the others, points
	Left    float64 // indent relative to the column
	Right   float64
	Pitch   float64 // distance of baselines, 0 for a single line
	Before  float64 // space above it, points
	Heading int     // level, 0 if it is not a heading
	Mark    int     // number of a heading that links lead to, from 1; 0 if there is none
	List    *ListItem
	Tight   bool // its lines must fit, because it is in a cell
	Joined  bool // the next block of this kind continues it
	Page    int
}

// An Alignment is the alignment of lines in their column.
type Alignment int

// Alignments of lines.
const (
	AlignLeft Alignment = iota
	AlignCentre
	AlignRight
	AlignJustify
)

// Text returns the lines of a paragraph, joined by spaces.
func (b *Block) Text() string {
	var s strings.Builder
	for i, l := range b.Lines {
		if i > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(l.Text())
	}
	return s.String()
}

// A Band is a part of a page with its full width: one column or several side by
// side.
type Band struct {
	geom.Rect
	Columns []Column
}

// A Column is one of the columns of a band.
type Column struct {
	geom.Rect
	Blocks []*Block
}

// A Leaf is a page after layout.
type Leaf struct {
	Number  int
	W, H    float64
	Bands   []Band
	Content geom.Rect // area of the bands
	Links   []Link
	Behind  *Behind // nil if there is nothing
	Notes   []*Note // footnotes, which are not in the bands
}

// A Scan is a page whose text must be recognized.
type Scan struct {
	Img    *image.Gray
	DPI    float64
	Words  int           // recognized
	Other  float64       // part of the ink that is not in recognized words
	Colour float64       // part of the ink that has a colour, which recognized text does not have
	Turn   int           // quarter turns counterclockwise that made the page upright
	Under  []*Picture    // pictures of the page that show the recognized words
	Keep   bool          // keep the words that the page already has
	Done   chan struct{} // closed when the words of the sheet are complete
}
