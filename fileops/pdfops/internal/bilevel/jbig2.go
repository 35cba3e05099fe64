package bilevel

import (
	"bytes"
	"encoding/binary"
)

// JBIG2 encodes a bitmap without loss for JBIG2Decode (ITU-T T.88; ISO 32000-2,
// 7.4.7): one page with one generic region, arithmetically coded by template 0
// with typical prediction.
func JBIG2(b Bitmap) []byte {
	var out []byte
	segment := func(number uint32, kind byte, data []byte) {
		out = binary.BigEndian.AppendUint32(out, number)
		out = append(out, kind, 0, 1) // refers to no segment, belongs to page 1
		out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
		out = append(out, data...)
	}
	size := binary.BigEndian.AppendUint32(nil, uint32(b.Width))
	size = binary.BigEndian.AppendUint32(size, uint32(b.Height))
	page := append(bytes.Clone(size), make([]byte, 11)...)
	page[16] = 1         // flags: lossless
	segment(0, 48, page) // page information, 7.4.8
	region := append(bytes.Clone(size), make([]byte, 9)...)
	// Template 0, TPGDON; its adaptive pixels at their default positions.
	region = append(region, 1<<3, 3, 0xff, 0xfd, 0xff, 2, 0xfe, 0xfe, 0xfe)
	segment(1, 39, append(region, genericRegion(b)...)) // immediate lossless
	return out
}

// sltpContext is the context of the bit SLTP, which is set if a row equals the
// row above (6.2.5.7, figure 8).
const sltpContext = 0x9b25

// genericRegion encodes all pixels (6.2.5). The context of a pixel consists of
// 16 neighbours: 5 two rows above, 7 in the row above and 4 to the left.
func genericRegion(b Bitmap) []byte {
	e := newEncoder()
	contexts := make([]context, 1<<16)
	blank := make([]byte, b.Stride()+2)
	above2, above := blank, blank
	row := make([]byte, b.Stride()+2)
	typical := false
	for y := range b.Height {
		row = append(append(row[:0:0], b.row(y)...), 0, 0)
		same := bytes.Equal(row, above)
		bit := byte(0)
		if same != typical {
			bit = 1
		}
		e.encode(&contexts[sltpContext], bit)
		typical = same
		if !same {
			// The next bits of the rows above, most significant first.
			w2 := uint32(above2[0])<<8 | uint32(above2[1])
			w1 := uint32(above[0])<<8 | uint32(above[1])
			line2, line1, line0 := w2>>14, w1>>13, uint32(0)
			w2, w1 = w2<<2, w1<<3
			have2, have1 := 14, 13 // unread bits in w2 and w1, of 16
			next2, next1 := 2, 2
			for x := range b.Width {
				if have2 == 0 {
					w2, have2 = fill(above2, next2), 8
					next2++
				}
				if have1 == 0 {
					w1, have1 = fill(above, next1), 8
					next1++
				}
				line2 = line2<<1&0x1f | w2>>15&1
				line1 = line1<<1&0x7f | w1>>15&1
				w2, w1 = w2<<1, w1<<1
				have2, have1 = have2-1, have1-1
				p := row[x/8] >> (7 - x%8) & 1
				e.encode(&contexts[line2<<11|line1<<4|line0], p)
				line0 = line0<<1&0xf | uint32(p)
			}
		}
		above2, above = above, row
	}
	return e.flush()
}

// fill returns byte i of a row, or white beyond its end, in the upper half of 16
// bits.
func fill(row []byte, i int) uint32 {
	if i >= len(row) {
		return 0
	}
	return uint32(row[i]) << 8
}

// A context is the state of a probability estimate: a table index and the more
// probable symbol.
type context struct{ index, mps byte }

// An encoder is the arithmetic encoder of T.88, annex E.
type encoder struct {
	a, c uint32
	ct   int
	out  []byte // out[0] is a dummy byte before the data
}

func newEncoder() *encoder { return &encoder{a: 0x8000, ct: 12, out: []byte{0}} }

func (e *encoder) encode(cx *context, bit byte) {
	q := &probabilities[cx.index]
	e.a -= q.qe
	if bit == cx.mps {
		if e.a&0x8000 != 0 {
			e.c += q.qe
			return
		}
		if e.a < q.qe {
			e.a = q.qe
		} else {
			e.c += q.qe
		}
		cx.index = q.mps
	} else {
		if e.a < q.qe {
			e.c += q.qe
		} else {
			e.a = q.qe
		}
		if q.swap {
			cx.mps ^= 1
		}
		cx.index = q.lps
	}
	for {
		e.a <<= 1
		e.c <<= 1
		if e.ct--; e.ct == 0 {
			e.byteOut()
		}
		if e.a&0x8000 != 0 {
			return
		}
	}
}

func (e *encoder) byteOut() {
	last := len(e.out) - 1
	if e.out[last] != 0xff && e.c >= 0x8000000 { // a carry
		e.out[last]++
		e.c &= 0x7ffffff
	}
	if e.out[last] == 0xff { // a bit is stuffed
		e.out = append(e.out, byte(e.c>>20))
		e.c &= 0xfffff
		e.ct = 7
		return
	}
	e.out = append(e.out, byte(e.c>>19))
	e.c &= 0x7ffff
	e.ct = 8
}

// flush terminates the data (annex E.2.9).
func (e *encoder) flush() []byte {
	limit := e.c + e.a
	e.c |= 0xffff
	if e.c >= limit {
		e.c -= 0x8000
	}
	e.c <<= e.ct
	e.byteOut()
	e.c <<= e.ct
	e.byteOut()
	if e.out[len(e.out)-1] != 0xff {
		e.out = append(e.out, 0xff)
	}
	return append(e.out[1:], 0xac)
}

// probabilities is table E.1: the probability of the less probable symbol, and
// the next state after the more and the less probable one.
var probabilities = [47]struct {
	qe       uint32
	mps, lps byte
	swap     bool
}{
	{0x5601, 1, 1, true}, {0x3401, 2, 6, false}, {0x1801, 3, 9, false}, {0x0ac1, 4, 12, false},
	{0x0521, 5, 29, false}, {0x0221, 38, 33, false}, {0x5601, 7, 6, true}, {0x5401, 8, 14, false},
	{0x4801, 9, 14, false}, {0x3801, 10, 14, false}, {0x3001, 11, 17, false}, {0x2401, 12, 18, false},
	{0x1c01, 13, 20, false}, {0x1601, 29, 21, false}, {0x5601, 15, 14, true}, {0x5401, 16, 14, false},
	{0x5101, 17, 15, false}, {0x4801, 18, 16, false}, {0x3801, 19, 17, false}, {0x3401, 20, 18, false},
	{0x3001, 21, 19, false}, {0x2801, 22, 19, false}, {0x2401, 23, 20, false}, {0x2201, 24, 21, false},
	{0x1c01, 25, 22, false}, {0x1801, 26, 23, false}, {0x1601, 27, 24, false}, {0x1401, 28, 25, false},
	{0x1201, 29, 26, false}, {0x1101, 30, 27, false}, {0x0ac1, 31, 28, false}, {0x09c1, 32, 29, false},
	{0x08a1, 33, 30, false}, {0x0521, 34, 31, false}, {0x0441, 35, 32, false}, {0x02a1, 36, 33, false},
	{0x0221, 37, 34, false}, {0x0141, 38, 35, false}, {0x0111, 39, 36, false}, {0x0085, 40, 37, false},
	{0x0049, 41, 38, false}, {0x0025, 42, 39, false}, {0x0015, 43, 40, false}, {0x0009, 44, 41, false},
	{0x0005, 45, 42, false}, {0x0001, 45, 43, false}, {0x5601, 46, 46, false},
}
