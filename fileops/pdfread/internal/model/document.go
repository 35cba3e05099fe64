package model

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
)

// Info is the metadata of a file.
type Info struct{ Title, Author, Subject string }

// A Document is a document ready for a writer.
type Document struct {
	Info     Info
	Lang     string // as in RFC 5646; "" if unknown
	Body     Style
	Sections []*Section
	Media    []*Media
	EvenOdd  bool          // left and right pages have different headers
	Targets  map[int]bool  // pages that links point to
	Leaves   map[int]*Leaf // by page number
	Scales   map[*Font]int // width of characters in per cent, 100 if absent
	Notes    []*Note
	Hyphens  map[string]bool // words that contain a hyphen, to decide whether a hyphen at a line end stays
	Bare     []int           // pages whose graphics are not in the flow; empty if such pages are fixed
	Labelled []int           // pages whose text is mostly part of pictures; empty if such pages are fixed
	Letters  int             // letters and digits of all pages, in any part of the document
}

// A Section is a part of a document with one page layout.
type Section struct {
	NextPage bool // it starts on a new page
	W, H     float64
	Margin   geom.Rect // distances from the edges
	Columns  []Column  // only their rectangles count; usually one or none
	Blocks   []*Placed
	First    *Running // header and footer of the first page, if they differ
	Odd      *Running // of right pages, or of all
	Even     *Running
	Start    int // page number of the first page; 0 continues the numbering
	Offset   int // printed page number minus page
	Numbered bool
	Page     int    // the page that its headers come from
	Fixed    *Fixed // its only page, if that is not flowing text
}

// A Placed is a block with the breaks and bookmark before it.
type Placed struct {
	*Block
	PageBreak   bool
	Continues   bool // it starts a page too, but the text of the page before goes on
	ColumnBreak bool
	Bookmark    int     // page number whose start it is; 0 means no bookmark
	Behind      *Behind // of the page whose start it is; nil if there is nothing
}

// HyphenKey returns a word without surrounding punctuation, in lower case.
func HyphenKey(s string) string {
	return strings.ToLower(strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }))
}

// Hyphenated reports whether s ends in a hyphen.
func Hyphenated(s string) bool {
	r := LastRune(s)
	return r == '-' || r == '\u00ad' || r == '\u2010'
}

// Height estimates the height of a block, in points.
func (b *Block) Height() float64 {
	if b.Kind != ParagraphBlock || len(b.Lines) == 0 {
		return b.H()
	}
	return float64(len(b.Lines)) * b.LinePitch()
}

// LinePitch returns the distance of baselines in points, even for a single line.
func (b *Block) LinePitch() float64 {
	size := b.Lines[0].Size
	if b.Pitch > 0.8*size {
		return b.Pitch
	}
	if r, _ := utf8.DecodeRuneInString(b.Lines[0].Text()); WithoutSpaces(r) {
		return 1.4 * size // fonts for these scripts are taller
	}
	return 1.2 * size
}

// A Bookmark is an entry of the outline of a document.
type Bookmark struct {
	Title string // letters and digits only
	Level int    // from 1
	Page  int    // from 1; 0 means unknown
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

// MaxHeadingLevel is the deepest level of headings.
const MaxHeadingLevel = 6
