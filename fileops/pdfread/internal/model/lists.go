package model

import (
	"strings"
)

// A MarkerKind is a kind of list marker.
type MarkerKind int

// Kinds of list markers.
const (
	BulletMarker MarkerKind = iota
	DecimalMarker
	LowerLetterMarker
	UpperLetterMarker
	LowerRomanMarker
	UpperRomanMarker
)

// A Mark is the marker of a list item.
type Mark struct {
	Kind   MarkerKind
	Before string // "(" of "(a)"
	After  string // ")" of it, or "."
	Bullet string
	Value  int // of the number or letter, from 1
	Roman  int // value as a Roman numeral; 0 if the letters are not one
}

// A ListItem is the position of a paragraph in a list.
type ListItem struct {
	Mark
	List   int     // from 1
	Level  int     // from 0
	Indent float64 // of the marker, relative to the column
	Text   float64 // of the text, relative to the column
}

// RomanValue returns the value of a lower case Roman numeral up to 39, or 0.
func RomanValue(s string) int {
	for n := 1; n < 40; n++ {
		if Roman(n) == s {
			return n
		}
	}
	return 0
}

// Roman returns n as a lower case Roman numeral, up to 39.
func Roman(n int) string {
	ones := []string{"", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"}
	return strings.Repeat("x", n/10) + ones[n%10]
}
