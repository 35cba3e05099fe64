package model

import (
	"strconv"
	"strings"
	"unicode"
)

// A Running is the header and footer of one page.
type Running struct {
	Page           int // source page, from 1
	Header, Footer []*Line
	Signature      string // equal for pages whose text differs only in page numbers
}

// LineKey returns the part of a header line that repeats on each page: the text
// with a placeholder for each number, including Roman numerals.
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

// PageNumber returns the value of s if it can be a page number.
func PageNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && len(s) <= 5
}
