package pdfops

import (
	"encoding/binary"
	"slices"
	"unicode/utf16"
)

// blankFont returns a TrueType font for invisible text, with the tables that PDF
// requires (ISO 32000-2, 9.9.1; OpenType 1.9). Its second glyph is a box as large as the
// em square, because pdfium finds no sideways text without outlines.
func blankFont() []byte {
	be := binary.BigEndian
	words := func(values ...uint16) (b []byte) {
		for _, v := range values {
			b = be.AppendUint16(b, v)
		}
		return b
	}
	const em, glyphs = 1000, 2
	descent := uint16(0x10000 - 200)
	head := words(
		1, 0, 1, 0, // versions of the table and of the font
		0, 0, // checksum, set below
		0x5f0f, 0x3cf5, // magic number
		0, em,
		0, 0, 0, 0, 0, 0, 0, 0, // times
		0, descent, glyphWidth, 800, // bounds
		0, 8, // style, smallest size
		2, 0, 0, // direction, short offsets, format of glyphs
	)
	hhea := words(1, 0, 800, descent, 0, glyphWidth, 0, 0, glyphWidth, 1, 0, 0, 0, 0, 0, 0, 0, 1)
	maxp := words(1, 0, glyphs, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	hmtx := words(glyphWidth, 0, 0) // the second glyph has the width of the first
	glyf := append(
		words(1, 0, descent, glyphWidth, 800, 3, 0), // a contour, its bounds, its last point, no instructions
		1, 1, 1, 1, // points on the curve, with long distances
	)
	glyf = append(glyf, words(0, 0, glyphWidth, 0, descent, em, 0, 0x10000-em)...)
	loca := words(0, 0, uint16(len(glyf)/2))
	// Without characters (subtable of format 4), because codes are mapped to glyphs in
	// the PDF file.
	cmap := words(0, 1, 3, 1, 0, 12, 4, 24, 0, 2, 2, 0, 0, 0xffff, 0, 0xffff, 1, 0)
	tables := []struct {
		tag  string
		data []byte
	}{{"cmap", cmap}, {"glyf", glyf}, {"head", head}, {"hhea", hhea}, {"hmtx", hmtx}, {"loca", loca}, {"maxp", maxp}}

	sum := func(b []byte) (n uint32) {
		for ; len(b) > 0; b = b[4:] {
			n += be.Uint32(b)
		}
		return n
	}
	out := words(1, 0, uint16(len(tables)), 64, 2, uint16(16*len(tables)-64))
	at := len(out) + 16*len(tables)
	headAt := 0
	var body []byte
	for _, t := range tables {
		if t.tag == "head" {
			headAt = at + len(body)
		}
		padded := slices.Concat(t.data, make([]byte, (4-len(t.data)%4)%4))
		out = append(out, t.tag...)
		out = be.AppendUint32(out, sum(padded))
		out = be.AppendUint32(out, uint32(at+len(body)))
		out = be.AppendUint32(out, uint32(len(t.data)))
		body = append(body, padded...)
	}
	out = append(out, body...)
	be.PutUint32(out[headAt+8:], 0xb1b0afba-sum(out))
	return out
}

// utf16Bytes returns a character in UTF-16BE.
func utf16Bytes(r rune) (b []byte) {
	for _, v := range utf16.AppendRune(nil, r) {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	return b
}
