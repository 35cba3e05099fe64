package model

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
)

// Info is what a file says about itself.
type Info struct{ Title, Author, Subject string }

// A Document is a document as it is written.
type Document struct {
	Info     Info
	Lang     string // as in RFC 5646; "" if the file does not say
	Body     Style
	Sections []*Section
	Media    []*Media
	EvenOdd  bool            // left pages have other headers than right ones
	Targets  map[int]bool    // pages that links lead to
	Leaves   map[int]*Leaf   // by page number
	Scales   map[*Font]int   // width of characters in per cent, 100 if absent
	Hyphens  map[string]bool // words with a hyphen in them, to know where one belongs
}

// A Section is a part of a document with one layout of the page.
type Section struct {
	NextPage bool // it starts on a new page
	W, H     float64
	Margin   geom.Rect // distances from the edges
	Columns  []Column  // only their rectangles count; one or none is the normal case
	Blocks   []*Placed
	First    *Running // header and footer of the first page, if different
	Odd      *Running // of right pages, or of all
	Even     *Running
	Start    int // page number of the first page, 0 to go on counting
	Offset   int // printed number less number of the page
	Numbered bool
	Page     int // the page its headers were taken from
}

// A Placed block is one with what comes before it.
type Placed struct {
	*Block
	PageBreak   bool
	ColumnBreak bool
	Bookmark    int // page number of which it is the start, 0 for none
}

// HyphenKey returns a word without the signs around it, in lower case.
func HyphenKey(s string) string {
	return strings.ToLower(strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }))
}

// Hyphenated reports whether s ends in a hyphen.
func Hyphenated(s string) bool {
	r := LastRune(s)
	return r == '-' || r == '\u00ad' || r == '\u2010'
}

// Height estimates how high a block will be.
func (b *Block) Height() float64 {
	if b.Kind != ParagraphBlock || len(b.Lines) == 0 {
		return b.H()
	}
	return float64(len(b.Lines)) * b.LinePitch()
}

// LinePitch is the distance of base lines, also for a single line.
func (b *Block) LinePitch() float64 {
	size := b.Lines[0].Size
	if b.Pitch > 0.8*size {
		return b.Pitch
	}
	if r, _ := utf8.DecodeRuneInString(b.Lines[0].Text()); WithoutSpaces(r) {
		return 1.4 * size // fonts for these scripts are higher
	}
	return 1.2 * size
}

// A Bookmark is an entry of the outline of a document.
type Bookmark struct {
	Title string // letters and digits only
	Level int    // from 1
	Page  int    // from 1, 0 if unknown
}

// Plain returns the letters and digits of s in lower case.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// MaxHeadingLevel is the lowest level of headings that is told apart.
const MaxHeadingLevel = 6
