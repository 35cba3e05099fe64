package fontfile

import (
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/encoding/charmap"
)

// standardNames returns the standard strings of CFF fonts by number.
var standardNames = sync.OnceValue(func() []string { return strings.Fields(standardText) })

var standardNumbers = sync.OnceValue(func() map[string]int {
	m := make(map[string]int)
	for i, s := range standardNames() {
		m[s] = i
	}
	return m
})

// latin maps glyph names to characters, and characters to glyph names.
var latin = sync.OnceValue(func() (l struct {
	char  map[string]rune
	names map[rune][]string
}) {
	l.char, l.names = make(map[string]rune), make(map[rune][]string)
	f := strings.Fields(latinText)
	for i := 0; i+1 < len(f); i += 2 {
		v, err := strconv.ParseUint(f[i+1], 16, 32)
		if err != nil { // impossible: a constant
			panic(err)
		}
		l.char[f[i]] = rune(v)
		l.names[rune(v)] = append(l.names[rune(v)], f[i])
	}
	return l
})

// StandardName returns the glyph name of a code in Adobe's standard encoding, or
// "" (Technical Note 5176, appendix B).
func StandardName(code byte) string {
	for _, r := range [][3]int{
		{32, 126, 1}, {161, 175, 96}, {177, 180, 111}, {182, 189, 115}, {191, 191, 123}, {193, 200, 124}, {202, 203, 132},
		{205, 208, 134}, {225, 225, 138}, {227, 227, 139}, {232, 235, 140}, {241, 241, 144}, {245, 245, 145}, {248, 251, 146},
	} {
		if c := int(code); c >= r[0] && c <= r[1] {
			return standardNames()[r[2]+c-r[0]]
		}
	}
	return ""
}

// Char returns the character that a glyph name stands for. It knows the Latin
// names, uniXXXX, and uXXXX to uXXXXXX.
func Char(name string) (rune, bool) {
	base, _, _ := strings.Cut(name, ".")
	if r, ok := latin().char[base]; ok {
		return r, true
	}
	for _, prefix := range []string{"uni", "u"} {
		if hex, ok := strings.CutPrefix(base, prefix); ok && len(hex) >= 4 && len(hex) <= 6 {
			if v, err := strconv.ParseUint(hex, 16, 32); err == nil {
				return rune(v), true
			}
		}
	}
	return 0, false
}

// Names returns the glyph names of a character.
func Names(r rune) []string { return latin().names[r] }

// Chars returns the characters that a code stands for in the encodings of PDF
// (ISO 32000-2, annex D): standard, Mac Roman, Windows and PDFDoc.
func Chars(code byte) []rune {
	out := []rune{rune(code), charmap.Windows1252.DecodeByte(code), charmap.Macintosh.DecodeByte(code)}
	if r, ok := Char(StandardName(code)); ok {
		out = append(out, r)
	}
	switch code {
	case 0x7f, 0x81, 0x8d, 0x8f, 0x90, 0x9d:
		out = append(out, '•') // unassigned codes in WinAnsiEncoding
	case 0xa0:
		out = append(out, ' ')
	case 0xad:
		out = append(out, '-')
	case 0xdb:
		out = append(out, '¤', '€')
	case 0x27:
		out = append(out, '’')
	case 0x60:
		out = append(out, '‘')
	}
	return out
}

// macCode returns the code of a character in Mac Roman.
func macCode(r rune) (byte, bool) { return charmap.Macintosh.EncodeRune(r) }
