package officeops

import (
	"bytes"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode/utf32"

	utf "golang.org/x/text/encoding/unicode"
)

// maxText is how large a text file may be, in bytes. It is read into memory.
const maxText = 128 << 20

// decode returns text in UTF-8, without a byte order mark, whatever encoding it
// is in. It never fails: what cannot be decoded becomes U+FFFD.
func decode(b []byte) []byte {
	if enc := detect(b); enc != nil {
		if d, err := enc.NewDecoder().Bytes(b); err == nil {
			b = d
		}
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	return bytes.ToValidUTF8(b, []byte("\ufffd"))
}

// detect returns the encoding of a text, nil for UTF-8. A byte order mark
// decides; then whether the bytes are UTF-8; then which encoding makes the most
// ordinary text of them.
func detect(b []byte) encoding.Encoding {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return nil
	case bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")):
		return utf32.UTF32(utf32.LittleEndian, utf32.ExpectBOM)
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
		return utf.UTF16(utf.LittleEndian, utf.ExpectBOM)
	case utf8.Valid(b):
		for _, escape := range []string{"\x1b$B", "\x1b$@", "\x1b(J", "\x1b$(D"} {
			if bytes.Contains(b, []byte(escape)) {
				return japanese.ISO2022JP
			}
		}
		return nil
	}
	sample := b[:min(len(b), 256<<10)]
	if len(sample) < len(b) { // end at a line, not in a character
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
		{korean.EUCKR, func(r rune) bool { return unicode.Is(unicode.Hangul, r) }},
		{simplifiedchinese.GB18030, isChinese},
		{charmap.Windows1251, func(r rune) bool { return r >= 'А' && r <= 'я' || r == 'ё' || r == 'Ё' }},
	} {
		if s := score(sample, c.enc, c.usual); s > bestScore {
			best, bestScore = c.enc, s
		}
	}
	return best
}

// score tells how much b looks like text in an encoding: the share of its
// characters beyond ASCII that are usual in the languages it is made for. A
// character that is not defined counts ten times.
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
	// In Latin text single accented letters stand among ASCII ones; in the
	// languages sought here such letters come in runs.
	if float64(longRuns) < 0.6*float64(all) {
		s /= 2
	}
	// Kana and Hangul come out of the right encoding only; ideographs come out
	// of several.
	return s + 0.5*float64(kana)/float64(all)
}

// isJapanese: kana, punctuation, and the ideographs of JIS X 0208 level 1,
// which are told by being in Shift-JIS before 0x989f.
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

// isChinese: punctuation, and the ideographs of GB 2312 level 1, which are rows
// 0xb0 to 0xd7.
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

// textToHTML makes a page of plain text: a paragraph for each block between
// empty lines, with its line breaks and indents.
func textToHTML(text []byte, title string) []byte {
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) +
		"</title><style>p { white-space: pre-wrap }</style></head><body>\n")
	s := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\f", "\n\n").Replace(string(text))
	inside := false
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" {
			if inside {
				b.WriteString("</p>\n")
			}
			inside = false
			continue
		}
		if inside {
			b.WriteString("<br>")
		} else {
			b.WriteString("<p>")
		}
		inside = true
		rest := strings.TrimLeft(line, " \t")
		for _, c := range line[:len(line)-len(rest)] {
			if c == '\t' {
				b.WriteString("&#160;&#160;&#160;")
			}
			b.WriteString("&#160;")
		}
		b.WriteString(html.EscapeString(rest))
	}
	if inside {
		b.WriteString("</p>\n")
	}
	b.WriteString("</body></html>\n")
	return b.Bytes()
}
