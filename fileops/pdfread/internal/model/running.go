package model

import (
	"strconv"
	"strings"
	"unicode"
)

// A Running is the header and footer of one page.
type Running struct {
	Page           int // it was taken from, from 1
	Header, Footer []*Line
	Signature      string // equal for pages with the same text, but for page numbers
}

// LineKey returns what is the same in the header of each page: the text with
// one sign for each number, also Roman ones.
func LineKey(l *Line) string {
	var b strings.Builder
	for _, w := range l.Words {
		t := w.Text()
		if RomanValue(strings.ToLower(t)) > 0 && len(t) < 6 {
			b.WriteString("# ")
			continue
		}
		digits := false
		for _, r := range t {
			if unicode.IsDigit(r) {
				if !digits {
					b.WriteByte('#')
				}
				digits = true
				continue
			}
			digits = false
			b.WriteRune(r)
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// PageNumber returns the number that s is, if it can be that of a page.
func PageNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && len(s) <= 5
}
