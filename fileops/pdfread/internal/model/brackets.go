package model

import (
	"math"
	"slices"
	"unicode/utf8"
)

// brackets are the pairs of characters that right-to-left text shows mirrored
// (UAX #9, rule L4).
var brackets = [][2]rune{{'(', ')'}, {'[', ']'}, {'{', '}'}, {'«', '»'}, {'‹', '›'}}

// A bracket is a place in the text of a line.
type bracket struct {
	span  *Span
	at    int  // offset of the character
	first bool // its word starts with it
}

// pairBrackets corrects the brackets of a line with right-to-left text, in reading
// order. Some files have the character that is seen, others the one that is meant;
// the opening one comes first. It also joins brackets to the text next to them.
func pairBrackets(words []*Word) {
	if !slices.ContainsFunc(words, func(w *Word) bool { return w.RTL }) {
		return
	}
	for _, pair := range brackets {
		var found []bracket
		var opens []bool
		for _, w := range words {
			for i := range w.Spans {
				for at, r := range w.Spans[i].Text {
					if r == pair[0] || r == pair[1] {
						found = append(found, bracket{&w.Spans[i], at, i == 0 && at == 0})
						opens = append(opens, r == pair[0])
					}
				}
			}
		}
		if len(found)%2 != 0 || balanced(opens) {
			continue
		}
		mirrored := make([]bool, len(opens))
		for i, o := range opens {
			mirrored[i] = !o
		}
		if !balanced(mirrored) {
			for i := range mirrored {
				mirrored[i] = i%2 == 0
			}
			if !startWords(found) {
				continue // the labels of a list
			}
		}
		for i, b := range found {
			r := pair[1]
			if mirrored[i] {
				r = pair[0]
			}
			old := b.span.Text
			_, n := utf8.DecodeRuneInString(old[b.at:])
			b.span.Text = old[:b.at] + string(r) + old[b.at+n:] // both have the same length
		}
	}
	for i := 1; i < len(words); i++ {
		a, b := words[i-1], words[i]
		gap := max(a.L, b.L) - min(a.R, b.R)
		if math.Abs(gap) < 0.15*b.Size && (isBracket(a.Text(), 0) || isBracket(b.Text(), 1)) {
			b.Glued = true
		}
	}
}

// startWords reports whether every other bracket, which opens, is at the start of a
// word.
func startWords(found []bracket) bool {
	for i := 0; i < len(found); i += 2 {
		if !found[i].first {
			return false
		}
	}
	return true
}

// isBracket reports whether s is only an opening (0) or a closing (1) bracket.
func isBracket(s string, side int) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n == len(s) && slices.ContainsFunc(brackets, func(p [2]rune) bool { return p[side] == r })
}

// balanced reports whether each opening bracket has its closing one.
func balanced(opens []bool) bool {
	depth := 0
	for _, o := range opens {
		if !o {
			depth--
		} else {
			depth++
		}
		if depth < 0 {
			return false
		}
	}
	return depth == 0
}
