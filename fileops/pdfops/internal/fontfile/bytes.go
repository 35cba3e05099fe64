// Package fontfile parses the font programs that PDF files embed, and writes
// subsets of them. It supports TrueType, CFF (bare, as Type1C and CIDFontType0C)
// and Type 1, which it converts to CFF.
//
// TrueType and CFF keep their glyph numbers. Unknown constructs are errors; the
// package never guesses.
package fontfile

import "errors"

// ErrFormat is returned for fonts that are damaged or use unsupported features.
var ErrFormat = errors.New("fontfile: the font is damaged or of an unknown kind")

// maxGlyphs limits the glyphs of a font.
const maxGlyphs = 1 << 16

func u16(b []byte, at int) int {
	if at < 0 || at+2 > len(b) {
		return 0
	}
	return int(b[at])<<8 | int(b[at+1])
}

func i16(b []byte, at int) int { return int(int16(u16(b, at))) }

func u32(b []byte, at int) int { return u16(b, at)<<16 | u16(b, at+2) }

func put16(b []byte, v int) []byte { return append(b, byte(v>>8), byte(v)) }

func put32(b []byte, v int) []byte { return append(b, byte(v>>24), byte(v>>16), byte(v>>8), byte(v)) }
