package model

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// LineJoint returns the separator between two lines of a paragraph.
func LineJoint(a, b *Line) string {
	if len(a.Words) == 0 || len(b.Words) == 0 {
		return ""
	}
	x, y := a.Words[len(a.Words)-1].Text(), b.Words[0].Text()
	r, _ := utf8.DecodeRuneInString(y)
	if WithoutSpaces(LastRune(x)) && WithoutSpaces(r) {
		return ""
	}
	if Hyphenated(x) && len(x) > 1 && unicode.IsLetter(r) {
		return ""
	}
	return " "
}

// WithoutSpaces reports whether r belongs to a script without spaces between
// words.
func WithoutSpaces(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) ||
		r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef
}

// Unhyphen removes the hyphen of a word that was divided at a line end. The
// hyphen stays if the document has the hyphenated word elsewhere, or if a
// capital or a digit follows.
func (d *Document) Unhyphen(w *Word, text string, next *Line) string {
	if !Hyphenated(text) || len(next.Words) == 0 {
		return text
	}
	stem := strings.TrimRight(text, "-\u00ad\u2010")
	if LastRune(text) == '\u00ad' {
		return stem
	}
	rest := next.Words[0].Text()
	if !StartsLower(rest) || !unicode.IsLetter(LastRune(stem)) {
		return text
	}
	whole := strings.TrimRight(w.Text(), "-\u00ad\u2010") + "-" + rest
	if d.Hyphens[HyphenKey(whole)] {
		return stem + "-"
	}
	return stem
}

// LastRune returns the last character of s.
func LastRune(s string) rune { r, _ := utf8.DecodeLastRuneInString(s); return r }

// StartsLower reports whether s starts with a lower case letter.
func StartsLower(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r)
}
