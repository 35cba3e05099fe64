// Package charset decodes text in an unknown encoding: text files, CSV files and
// web pages.
//
// It detects UTF-8, UTF-16, UTF-32 with a byte order mark, ISO-2022-JP,
// Shift-JIS, EUC-JP, EUC-KR, GB 18030, Big5, Windows-1251 and Windows-1252. For
// web pages it supports all encodings of the WHATWG Encoding Standard, if the page
// declares its encoding.
package charset

import (
	"bytes"
	"regexp"
	"unicode"
	"unicode/utf8"

	whatwg "golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode/utf32"

	utf "golang.org/x/text/encoding/unicode"
)

// Decode returns text of any encoding in UTF-8, without a byte order mark. It
// never fails: invalid bytes become U+FFFD.
func Decode(b []byte) []byte {
	if enc := Detect(b); enc != nil {
		if d, err := enc.NewDecoder().Bytes(b); err == nil {
			b = d
		}
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	return bytes.ToValidUTF8(b, []byte("\ufffd"))
}

var (
	declared    = regexp.MustCompile(`(?i)charset\s*=`)
	xmlEncoding = regexp.MustCompile(`^\s*<\?xml\s[^>]*encoding\s*=\s*["']([A-Za-z0-9._-]+)["']`)
)

// DecodeHTML returns a page in UTF-8. A byte order mark determines the encoding, or
// else the declaration in the page, or else the content.
func DecodeHTML(b []byte) []byte {
	if utf8.Valid(b) {
		return Decode(b)
	}
	if enc := declaredIn(b); enc != nil {
		if d, err := enc.NewDecoder().Bytes(b); err == nil {
			b = d
		}
	}
	return Decode(b)
}

// declaredIn returns the encoding that a page declares at its start, or nil for
// UTF-8 or no declaration.
func declaredIn(page []byte) encoding.Encoding {
	head := page[:min(len(page), 1024)] // HTML, 13.2.3.2
	var enc encoding.Encoding
	name := "utf-8"
	if m := xmlEncoding.FindSubmatch(head); m != nil {
		enc, name = whatwg.Lookup(string(m[1]))
	} else if declared.Match(head) {
		enc, name, _ = whatwg.DetermineEncoding(head, "")
	}
	if name == "utf-8" {
		return nil
	}
	return enc
}

// Detect returns the encoding of a text, nil for UTF-8. It checks for a byte
// order mark, then for valid UTF-8, and then chooses the encoding with the most
// plausible text.
func Detect(b []byte) encoding.Encoding {
	if enc, ok := marked(b); ok {
		return enc
	}
	if enc := unmarked(b[:min(len(b), sampleSize)]); enc != nil {
		return enc
	}
	if utf8.Valid(b) {
		if shifts(b) {
			return japanese.ISO2022JP
		}
		return nil
	}
	return guess(b[:min(len(b), sampleSize)], len(b) > sampleSize)
}

// marked returns the encoding of a byte order mark, nil for UTF-8. ok reports
// whether there is a mark.
func marked(b []byte) (enc encoding.Encoding, ok bool) {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return nil, true
	case bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")):
		return utf32.UTF32(utf32.LittleEndian, utf32.ExpectBOM), true
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
		return utf.UTF16(utf.LittleEndian, utf.ExpectBOM), true
	}
	return nil, false
}

// unmarked returns the encoding of UTF-16 without a byte order mark, or nil. In
// UTF-16, one of the two bytes of each ASCII letter and line end is zero. All these
// bytes are at even offsets, or all are at odd offsets.
func unmarked(b []byte) encoding.Encoding {
	var zeros [2]int
	for i, c := range b {
		if c == 0 {
			zeros[i%2]++
		}
	}
	if few := len(b) / 50; len(b) < 4 || min(zeros[0], zeros[1]) > 0 || max(zeros[0], zeros[1]) <= few {
		return nil
	}
	if zeros[0] > 0 {
		return utf.UTF16(utf.BigEndian, utf.IgnoreBOM)
	}
	return utf.UTF16(utf.LittleEndian, utf.IgnoreBOM)
}

// longestEscape is the length of the longest escape sequence that shifts
// searches for.
const longestEscape = 4

// shifts reports whether a text switches between character sets like
// ISO-2022-JP.
func shifts(b []byte) bool {
	for _, escape := range []string{"\x1b$B", "\x1b$@", "\x1b(J", "\x1b$(D"} {
		if bytes.Contains(b, []byte(escape)) {
			return true
		}
	}
	return false
}

// sampleSize is the maximum number of bytes that guess needs.
const sampleSize = 256 << 10

// guess returns the encoding in which a sample that is not UTF-8 is the most plausible
// text. cut means that the text continues after the sample.
func guess(sample []byte, cut bool) encoding.Encoding {
	if cut { // end the sample at a line end, not within a character
		if i := bytes.LastIndexByte(sample, '\n'); i > 0 {
			sample = sample[:i]
		}
	}
	best, bestScore := encoding.Encoding(charmap.Windows1252), 0.5
	for _, c := range []struct {
		enc   encoding.Encoding
		usual func(rune) bool
	}{
		{japanese.ShiftJIS, isJapanese},
		{japanese.EUCJP, isJapanese},
		{korean.EUCKR, isKorean},
		{simplifiedchinese.GB18030, isChinese},
		{traditionalchinese.Big5, isTraditional},
		{charmap.Windows1251, func(r rune) bool { return r >= 'А' && r <= 'я' || r == 'ё' || r == 'Ё' }},
	} {
		s := score(sample, c.enc, c.usual)
		if c.enc == charmap.Windows1251 && mixesLetters(sample) {
			s /= 2
		}
		if s > bestScore {
			best, bestScore = c.enc, s
		}
	}
	return best
}

// score returns how plausible b is as text in an encoding: the fraction of its
// non-ASCII characters that are usual in the languages of the encoding. An
// undefined character counts ten times.
func score(b []byte, enc encoding.Encoding, usual func(rune) bool) float64 {
	d, err := enc.NewDecoder().Bytes(b)
	if err != nil {
		return 0
	}
	good, all, kana, run, longRuns := 0, 0, 0, 0, 0
	for _, r := range string(d) {
		if r < 0x80 {
			run = 0
			continue
		}
		all++
		if run++; run == 2 {
			longRuns += 2
		} else if run > 2 {
			longRuns++
		}
		switch {
		case r == utf8.RuneError, unicode.Is(unicode.Co, r), r < 0xa0:
			all += 9
		case usual(r):
			good++
			if r >= 0x3041 && r <= 0x30fe || unicode.Is(unicode.Hangul, r) {
				kana++
			}
		}
	}
	if all == 0 {
		return 0
	}
	s := float64(good) / float64(all)
	// In Latin text, single accented letters are among ASCII letters. In the other
	// languages, non-ASCII letters come in runs.
	if float64(longRuns) < 0.6*float64(all) {
		s /= 2
	}
	// Kana and Hangul result only from the right encoding; ideographs result from
	// several.
	return s + 0.5*float64(kana)/float64(all)
}

// mixesLetters reports whether most non-ASCII letters are in words with ASCII
// letters. That is common in Latin text, and very rare in Cyrillic.
func mixesLetters(b []byte) bool {
	ascii := func(i int) bool {
		return i >= 0 && i < len(b) && (b[i]|0x20 >= 'a' && b[i]|0x20 <= 'z')
	}
	mixed, all := 0, 0
	for i := 0; i < len(b); i++ {
		if b[i] < 0x80 {
			continue
		}
		from := i
		for i < len(b) && b[i] >= 0x80 {
			i++
		}
		all += i - from
		if ascii(from-1) || ascii(i) {
			mixed += i - from
		}
	}
	return 2*mixed > all
}

// isJapanese reports whether r is kana, punctuation, or an ideograph of JIS X
// 0208 level 1. In Shift-JIS these ideographs are below 0x989f.
func isJapanese(r rune) bool {
	switch {
	case r >= 0x3000 && r <= 0x30fe, r >= 0xff01 && r <= 0xff5e:
		return true
	case unicode.Is(unicode.Han, r):
		b, err := japanese.ShiftJIS.NewEncoder().Bytes([]byte(string(r)))
		return err == nil && len(b) == 2 && (b[0] < 0x98 || b[0] == 0x98 && b[1] <= 0x9e)
	}
	return false
}

// isKorean reports whether r is a syllable of KS X 1001: rows 0xb0 to 0xc8.
func isKorean(r rune) bool {
	if !unicode.Is(unicode.Hangul, r) {
		return false
	}
	b, err := korean.EUCKR.NewEncoder().Bytes([]byte(string(r)))
	return err == nil && len(b) == 2 && b[0] >= 0xb0 && b[0] <= 0xc8 && b[1] >= 0xa1
}

// isChinese reports whether r is punctuation or an ideograph of GB 2312 level 1:
// rows 0xb0 to 0xd7.
func isChinese(r rune) bool {
	switch {
	case r >= 0x3000 && r <= 0x3011, r >= 0xff01 && r <= 0xff5e, r >= 0x2014 && r <= 0x2026:
		return true
	case unicode.Is(unicode.Han, r):
		b, err := simplifiedchinese.GBK.NewEncoder().Bytes([]byte(string(r)))
		return err == nil && len(b) == 2 && b[0] >= 0xb0 && b[0] <= 0xd7 && b[1] >= 0xa1
	}
	return false
}

// isTraditional reports whether r is punctuation or a frequent ideograph of Big5:
// rows 0xa4 to 0xc6.
func isTraditional(r rune) bool {
	switch {
	case r >= 0x3000 && r <= 0x3011, r >= 0xff01 && r <= 0xff5e, r >= 0x2014 && r <= 0x2026:
		return true
	case unicode.Is(unicode.Han, r):
		b, err := traditionalchinese.Big5.NewEncoder().Bytes([]byte(string(r)))
		return err == nil && len(b) == 2 && b[0] >= 0xa4 && b[0] <= 0xc6
	}
	return false
}
