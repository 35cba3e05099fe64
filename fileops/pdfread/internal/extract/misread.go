package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// A scanner's software that recognizes text in the wrong language stores words such as
// "no,QTBep>K,Qa10" for "подтверждаю": signs, digits and capitals between small letters.

// How misread text is recognized.
const (
	misreadWords  = 20  // least number of words
	misreadLength = 4   // characters of a word that counts
	misreadPart   = 0.2 // of the words
)

// misread reports whether the words of a page look like those of another language. Only
// pictures with text behind them have such words; program code has similar ones.
func misread(s *model.Sheet) bool {
	all, broken := 0, 0
	for _, w := range s.Words {
		text := strings.TrimFunc(w.Text(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if utf8.RuneCountInString(text) < misreadLength || !strings.ContainsFunc(text, unicode.IsLetter) {
			continue
		}
		all++
		if brokenWord(text) {
			broken++
		}
	}
	return all >= misreadWords && float64(broken) >= misreadPart*float64(all)
}

// brokenWord reports whether a word has a sign that no word contains, or small letters
// on both sides of a digit or a capital at two places.
func brokenWord(s string) bool {
	odd := 0
	var before, last rune
	for _, r := range s {
		switch {
		case strings.ContainsRune("!<>[]{}\\~$|^*\"", r):
			return true
		case unicode.IsLower(r) && (unicode.IsDigit(last) || unicode.IsUpper(last)) && unicode.IsLower(before):
			odd++
		case unicode.IsDigit(r) && unicode.IsUpper(last) && unicode.IsLower(before):
			odd++
		}
		before, last = last, r
	}
	return odd >= 2 || odd == 1 && strings.ContainsFunc(s, unicode.IsDigit)
}
