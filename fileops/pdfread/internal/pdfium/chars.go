package pdfium

import (
	"encoding/binary"
	"math"
)

// A Char is a character of a text page.
type Char struct {
	Rune   rune    // a UTF-16 code unit; 0 if the character has no text
	X, Y   float64 // origin, on the baseline
	Box    [4]float64
	Object uint64 // the text object that draws it, or 0

	Generated bool // pdfium inferred it: a space or the end of a line
	Unmapped  bool // Rune is a code of the font, because it has no mapping to Unicode
}

// Layout of pdfium's text pages in memory, in bytes. A CPDF_TextPage has its characters
// in a std::deque of libc++, which consists of blocks. pdfium exports no function that
// returns several characters, and a call costs more than a character needs otherwise.
// readChars compares what it finds with the exported functions, so a new release of
// pdfium may change the layout: it only becomes slower, and TestChars fails.
const (
	dequeMap   = 20 // address of the first pointer to a block
	dequeEnd   = 24 // address after the last one
	dequeStart = 32 // characters to skip in the first block
	dequeSize  = 36 // characters

	charSize  = 80
	blockSize = 4096 / charSize // characters

	charKind   = 0 // one byte
	charRune   = 4
	charOrigin = 12 // two floats
	charBox    = 36 // four floats, the loose box
	charObject = 76

	kindGenerated = 1
	kindUnmapped  = 2
)

// Chars appends the first n characters of a text page to buf. Box is the loose box in
// content coordinates: left, top, right, bottom.
func (in *Instance) Chars(buf []Char, text uint64, n int) []Char {
	if chars, ok := in.readChars(buf, text, n); ok || in.Err != nil {
		return chars
	}
	for i := range n {
		buf = append(buf, in.char(text, i))
	}
	return buf
}

// char reads a character with the exported functions.
func (in *Instance) char(text uint64, index int) Char {
	i := uint64(index)
	c := Char{
		Rune:      rune(uint32(in.Call("FPDFText_GetUnicode", text, i))),
		Object:    in.Call("FPDFText_GetTextObject", text, i),
		Generated: in.Int("FPDFText_IsGenerated", text, i) == 1,
		Unmapped:  in.Int("FPDFText_HasUnicodeMapError", text, i) == 1,
	}
	in.Call("FPDFText_GetLooseCharBox", text, i, in.Arg(0))
	in.OutFloats(c.Box[:])
	in.Call("FPDFText_GetCharOrigin", text, i, in.Arg(0), in.Arg(1))
	c.X, c.Y = in.OutDouble(0), in.OutDouble(1)
	return c
}

// readChars is like Chars, but reads the characters from memory. It reports false if
// the memory does not have the expected layout; then buf is unchanged.
func (in *Instance) readChars(buf []Char, text uint64, n int) ([]Char, bool) {
	mem := in.Module.Memory()
	word := func(p uint32) uint32 {
		v, _ := mem.ReadUint32Le(p)
		return v
	}
	page := uint32(text)
	first, end, start, size := word(page+dequeMap), word(page+dequeEnd), word(page+dequeStart), word(page+dequeSize)
	if n <= 0 || int64(size) < int64(n) || start >= blockSize || end < first || uint64(end-first)/4*blockSize < uint64(start)+uint64(n) {
		return buf, n <= 0
	}
	chars := buf
	var block []byte
	for i, at := 0, int(start); i < n; i, at = i+1, at+1 {
		if at == blockSize {
			at, first = 0, first+4
		}
		if at == 0 || i == 0 {
			var ok bool
			if block, ok = mem.Read(word(first), blockSize*charSize); !ok {
				return buf, false
			}
		}
		chars = append(chars, decodeChar(block[at*charSize:][:charSize]))
	}
	for _, i := range []int{0, n / 2, n - 1} {
		if in.char(text, i) != chars[len(buf)+i] {
			return buf, false
		}
	}
	return chars, true
}

// decodeChar decodes a character in memory.
func decodeChar(b []byte) Char {
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	float := func(at int) float64 { return float64(math.Float32frombits(word(at))) }
	return Char{
		Rune: rune(word(charRune)),
		X:    float(charOrigin), Y: float(charOrigin + 4),
		// The box in memory is left, bottom, right, top, as in PDF.
		Box:       [4]float64{float(charBox), float(charBox + 12), float(charBox + 8), float(charBox + 4)},
		Object:    uint64(word(charObject)),
		Generated: b[charKind] == kindGenerated,
		Unmapped:  b[charKind] == kindUnmapped,
	}
}
