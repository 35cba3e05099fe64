package specimen

import (
	"bytes"
	"encoding/binary"
	"image"
	"math"
	"slices"
)

// writeDNG writes m as the raw photo of a camera with a Bayer pattern (Digital Negative
// Specification 1.4). The sensor has the primaries of sRGB, and its samples are linear.
func writeDNG(b *bytes.Buffer, m image.Image) {
	le := binary.LittleEndian
	size := m.Bounds().Size()
	pixels := make([]byte, 0, 2*size.X*size.Y)
	for y := range size.Y {
		for x := range size.X {
			r, g, bl, _ := m.At(m.Bounds().Min.X+x, m.Bounds().Min.Y+y).RGBA()
			v := [2][2]uint32{{r, g}, {g, bl}}[y%2][x%2]
			linear := float64(v) / 0xffff / 12.92 // IEC 61966-2-1
			if s := float64(v) / 0xffff; s > 0.04045 {
				linear = math.Pow((s+0.055)/1.055, 2.4)
			}
			pixels = le.AppendUint16(pixels, uint16(60000*linear))
		}
	}
	const (
		short, long, ascii, bytesType, rational, signed = 3, 4, 2, 1, 5, 10
		model                                           = "Specimen 1\x00"
	)
	shorts := func(v ...uint16) (d []byte) {
		for _, n := range v {
			d = le.AppendUint16(d, n)
		}
		return d
	}
	longs := func(v ...int) (d []byte) {
		for _, n := range v {
			d = le.AppendUint32(d, uint32(int32(n)))
		}
		return d
	}
	entries := []struct {
		tag, kind uint16
		count     int
		data      []byte // nil: the offset of the pixels
	}{
		{254, long, 1, longs(0)}, {256, long, 1, longs(size.X)}, {257, long, 1, longs(size.Y)}, {258, short, 1, shorts(16)},
		{259, short, 1, shorts(1)}, {262, short, 1, shorts(32803)}, // uncompressed, a colour filter array
		{271, ascii, 11, []byte("Filewright\x00")}, {272, ascii, len(model), []byte(model)},
		{273, long, 1, nil}, {274, short, 1, shorts(1)}, {277, short, 1, shorts(1)}, {278, long, 1, longs(size.Y)}, {279, long, 1, longs(len(pixels))},
		{33421, short, 2, shorts(2, 2)}, {33422, bytesType, 4, []byte{0, 1, 1, 2}}, // the pattern: red, green, green, blue
		{34665, long, 1, slices.Concat(shorts(1, 34855, short), longs(1, 200, 0))}, // the EXIF directory, with the ISO speed
		{50706, bytesType, 4, []byte{1, 4, 0, 0}}, {50707, bytesType, 4, []byte{1, 1, 0, 0}}, {50708, ascii, len(model), []byte(model)},
		{50717, long, 1, longs(60000)}, // white
		{50721, signed, 9, longs(32405, 10000, -15371, 10000, -4985, 10000, -9693, 10000, 18760, 10000, 416, 10000, 556, 10000, -2040, 10000, 10572, 10000)},
		{50728, rational, 3, longs(1, 1, 1, 1, 1, 1)}, {50778, short, 1, shorts(21)}, // neutral, D65
	}
	head := 8 + 2 + 12*len(entries) + 4
	var extra []byte
	for _, e := range entries {
		if len(e.data) > 4 {
			extra = append(extra, e.data...)
			extra = append(extra, make([]byte, len(e.data)%2)...)
		}
	}
	b.WriteString("II*\x00\x08\x00\x00\x00")
	b.Write(shorts(uint16(len(entries))))
	at := head
	for _, e := range entries {
		b.Write(shorts(e.tag, e.kind))
		b.Write(longs(e.count))
		switch {
		case e.data == nil:
			b.Write(longs(head + len(extra)))
		case len(e.data) > 4:
			b.Write(longs(at))
			at += len(e.data) + len(e.data)%2
		default:
			b.Write(append(e.data, make([]byte, 4-len(e.data))...))
		}
	}
	b.Write(longs(0))
	b.Write(extra)
	b.Write(pixels)
}
