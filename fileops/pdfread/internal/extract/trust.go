package extract

import (
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// The text of a page is trusted only if it is plausible. Fonts without a usable
// encoding yield their own codes: characters of no script, of many scripts in
// one word, or letters shifted by a constant.

// Unlikely reports whether the text of a page is probably not what the page
// shows.
func Unlikely(s *model.Sheet) bool {
	chars, bad := countText(s.Words)
	if chars == 0 {
		return false
	}
	if 3*bad > chars || rareIdeographs(s.Words) {
		return true
	}
	pairs, mixed := 0, 0
	for _, w := range s.Words {
		last := 0
		for _, r := range w.Text() {
			sc := script(r)
			if sc != 0 && last != 0 {
				pairs++
				if sc != last {
					mixed++
				}
			}
			last = sc
		}
	}
	return pairs >= 20 && 4*mixed > pairs
}

// rareIdeographs reports whether many Chinese characters of words are in none of the
// national standards, which have all that are in use.
func rareIdeographs(words []*model.Word) bool {
	const least, part = 8, 8 // one of part characters
	standards := []*encoding.Encoder{japanese.ShiftJIS.NewEncoder(), simplifiedchinese.HZGB2312.NewEncoder(), traditionalchinese.Big5.NewEncoder(), korean.EUCKR.NewEncoder()}
	known := make(map[rune]bool)
	all, rare := 0, 0
	for _, w := range words {
		for _, s := range w.Spans {
			for _, r := range s.Text {
				if r < 0x3400 || !unicode.Is(unicode.Han, r) {
					continue
				}
				ok, seen := known[r]
				if !seen {
					ok = slices.ContainsFunc(standards, func(e *encoding.Encoder) bool { _, err := e.String(string(r)); return err == nil })
					known[r] = ok
				}
				all++
				if !ok {
					rare++
				}
			}
		}
	}
	return all >= least && part*rare > all
}

// countText counts the characters of words. bad counts characters that no text
// contains, from fonts with an unknown encoding.
func countText(words []*model.Word) (chars, bad int) {
	for _, w := range words {
		for _, s := range w.Spans {
			for _, r := range s.Text {
				chars++
				if r >= ' ' && r <= '~' {
					continue
				}
				if r == utf8.RuneError || unicode.Is(unicode.Co, r) || unicode.IsControl(r) || !unicode.IsGraphic(r) {
					bad++
				}
			}
		}
	}
	return chars, bad
}

// script returns a number for the script of a letter, and 0 for other
// characters.
func script(r rune) int {
	switch {
	case !unicode.IsLetter(r):
		return 0
	case r < 0x250 || r >= 0x1e00 && r < 0x1f00:
		return 1
	case r < 0x300: // phonetic
		return 2
	case r < 0x400 || r >= 0x1f00 && r < 0x2000:
		return 3 // Greek
	case r < 0x530:
		return 4 // Cyrillic
	case r < 0x590:
		return 5 // Armenian
	case r < 0x600:
		return 6 // Hebrew
	case r < 0x780 || r >= 0xfb50 && r < 0xff00:
		return 7 // Arabic
	case r < 0x2000:
		return int(r >> 7) // most other alphabets have a block of this size
	}
	return 1000 // East Asian and others, which mix
}

// glyphShift is the difference between codes of ASCII characters and the numbers
// of their glyphs in most TrueType fonts.
const glyphShift = 29

// shiftedLetters is the least number of letters in which a shift is recognized, and
// shiftedKinds the least number of different common letters among them.
const (
	shiftedLetters = 24
	shiftedKinds   = 4
)

// unshift corrects fonts whose characters are numbers of glyphs: "Hello" arrives
// as "+HOOR". It returns the number of characters that remain numbers of glyphs, such as
// letters with accents, whose order differs from font to font.
func unshift(glyphs []glyph) (left int) {
	type count struct {
		letters, is, shifted int
		kinds                map[rune]bool // of shifted
	}
	counts := make(map[*model.Font]*count)
	common := func(r rune) bool { // 60 % of the letters of most languages in Latin script
		switch r {
		case 'e', 'a', 'i', 'n', 'o', 'r', 's', 't':
			return true
		}
		return false
	}
	var c *count
	for i := range glyphs {
		g := &glyphs[i]
		if i == 0 || g.style.Font != glyphs[i-1].style.Font {
			if c = counts[g.style.Font]; c == nil {
				c = &count{kinds: make(map[rune]bool)}
				counts[g.style.Font] = c
			}
		}
		for _, r := range g.text {
			if r > 0x7f || r < ' ' { // codes below the space are digits and punctuation, if the font is shifted
				continue
			}
			c.letters++
			if common(r) {
				c.is++
			}
			if common(r + glyphShift) {
				c.shifted++
				c.kinds[r] = true
			}
		}
	}
	maps.DeleteFunc(counts, func(_ *model.Font, c *count) bool {
		return c.letters < shiftedLetters || len(c.kinds) < shiftedKinds || 100*c.shifted < 40*c.letters || 100*c.is > 12*c.letters
	})
	if len(counts) == 0 {
		return 0
	}
	for i := range glyphs {
		g := &glyphs[i]
		if counts[g.style.Font] == nil {
			continue
		}
		text := ""
		for _, r := range g.text {
			if r > 2 && r+glyphShift < 0x7f {
				r += glyphShift
			} else if r+glyphShift >= 0x7f {
				left++
			}
			text += string(r)
		}
		g.text = text
	}
	return left
}

// utf8Letters is the least number of letters by which codes in UTF-8 are recognized.
const utf8Letters = 8

// decodeUTF8 corrects fonts whose codes are characters in UTF-8 (as libHaru writes
// them): pdfium returns codes of two bytes as they are, and "П" arrives as U+D09F.
// Text in Hangul, which has these characters, also has others.
func decodeUTF8(glyphs []glyph) {
	decode := func(r rune) (rune, bool) {
		c, n := utf8.DecodeRune([]byte{byte(r >> 8), byte(r)})
		return c, r >= 0xc280 && r < 0xd800 && n == 2
	}
	counts := make(map[*model.Font]map[int]int) // letters by script; -1: not in UTF-8
	for i := range glyphs {
		g := &glyphs[i]
		for _, r := range g.text {
			if r < 0xac00 || r > 0xd7ff { // Hangul
				continue
			}
			c := counts[g.style.Font]
			if c == nil {
				c = make(map[int]int)
				counts[g.style.Font] = c
			}
			if letter, ok := decode(r); ok {
				c[script(letter)]++
			} else {
				c[-1]++
			}
		}
	}
	if len(counts) == 0 {
		return
	}
	for i := range glyphs {
		g := &glyphs[i]
		c := counts[g.style.Font]
		most := 0
		for sc, n := range c {
			if sc > 0 {
				most = max(most, n)
			}
		}
		if c[-1] > 0 || most < utf8Letters {
			continue
		}
		text := ""
		for _, r := range g.text {
			if letter, ok := decode(r); ok {
				r = letter
			}
			text += string(r)
		}
		g.text = text
	}
}

// leftGlyphs is the number of characters in shifted fonts, known only as numbers of
// glyphs, from which the text of a page is not trusted.
const leftGlyphs = 3

// dropCodes removes control characters, which are codes of fonts without text. It
// returns their number. Shifted spaces become white space.
func dropCodes(glyphs []glyph) (out []glyph, unread int) {
	code := func(g glyph) bool {
		r, _ := utf8.DecodeRuneInString(g.text)
		return r == ' ' || unicode.IsControl(r)
	}
	if !slices.ContainsFunc(glyphs, code) {
		return glyphs, 0
	}
	out = glyphs[:0]
	space := false
	for _, g := range glyphs {
		r, _ := utf8.DecodeRuneInString(g.text)
		switch {
		case r == ' ':
			space = true
		case unicode.IsControl(r):
			unread++
		default:
			g.space, space = g.space || space, false
			out = append(out, g)
		}
	}
	return out, unread
}

// unreadable reports whether too much of the text of a page is missing in s.
// unread is the number of missing characters.
func unreadable(s *model.Sheet, unread int) bool {
	if unread == 0 {
		return false
	}
	chars, _ := countText(s.Words)
	return 10*unread > chars
}
