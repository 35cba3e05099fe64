package imagefile

import (
	"encoding/binary"
	"math"
)

// Filter types of PNG.
const (
	filterNone = iota
	filterSub
	filterUp
	filterAverage
	filterPaeth
)

// chooseFilter returns the filter with the smallest sum of absolute differences
// (W3C PNG, 12.7). A row of few different bytes stays unfiltered, because
// repetitions compress better than small numbers.
func chooseFilter(cur, prev []byte, bpp int) byte {
	var none, sub, up, cross int
	same := 0
	for i := bpp; i < len(cur); i++ {
		c, a, b, d := cur[i], cur[i-bpp], prev[i], prev[i-bpp]
		if c == a {
			same++
		}
		none += small(c)
		sub += small(c - a)
		up += small(c - b)
		cross += small(c - paeth(a, b, d))
	}
	kind, least := byte(filterSub), sub
	if up < least {
		kind, least = filterUp, up
	}
	if cross < least {
		kind, least = filterPaeth, cross
	}
	if none < least || same > len(cur)*3/4 && least > 0 {
		kind = filterNone
	}
	return kind
}

// small returns the absolute value of a difference.
func small(b byte) int {
	v := int(int8(b))
	m := v >> 63
	return (v ^ m) - m
}

// The functions below work on eight bytes at a time, as lanes of an integer.
const (
	highBits = 0x8080808080808080
	lowBits  = 0x0101010101010101
)

// minus8 subtracts the bytes of y from those of x.
func minus8(x, y uint64) uint64 {
	return ((x | highBits) - (y &^ highBits)) ^ ((x ^ ^y) & highBits)
}

// small8 returns the sum of small for the bytes of v.
func small8(v uint64) int {
	negative := (v & highBits) >> 7 * 0xff // each byte is 0 or 0xff
	v = (v ^ negative) + negative&lowBits
	const even = 0x00ff00ff00ff00ff
	pairs := v&even + v>>8&even
	return int(pairs * 0x0001000100010001 >> 48)
}

// sumSmall returns the sum of small for all bytes.
func sumSmall(b []byte) (sum int) {
	for ; len(b) >= 8; b = b[8:] {
		sum += small8(binary.LittleEndian.Uint64(b))
	}
	for _, v := range b {
		sum += small(v)
	}
	return sum
}

// sums returns the sums of small for the filters None, Sub and Up.
func sums(cur, prev []byte, bpp int) (none, sub, up int) {
	for i, c := range cur[:bpp] {
		none += small(c)
		sub += small(c)
		up += small(c - prev[i])
	}
	left, rest, above := cur[:len(cur)-bpp], cur[bpp:], prev[bpp:len(cur)]
	for ; len(rest) >= 8; left, rest, above = left[8:], rest[8:], above[8:] {
		c := binary.LittleEndian.Uint64(rest)
		none += small8(c)
		sub += small8(minus8(c, binary.LittleEndian.Uint64(left)))
		up += small8(minus8(c, binary.LittleEndian.Uint64(above)))
	}
	for i, c := range rest {
		none += small(c)
		sub += small(c - left[i])
		up += small(c - above[i])
	}
	return none, sub, up
}

// subtract stores a - b in dst. All have the same length.
func subtract(dst, a, b []byte) {
	n := len(a) &^ 7
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], minus8(binary.LittleEndian.Uint64(a[i:]), binary.LittleEndian.Uint64(b[i:])))
	}
	for i := n; i < len(a); i++ {
		dst[i] = a[i] - b[i]
	}
}

// paeth is the Paeth predictor (W3C PNG, 9.4): a is left, b above, c above left.
func paeth(a, b, c byte) byte {
	pa, pb := int(b)-int(c), int(a)-int(c)
	pc := pa + pb
	pa, pb, pc = max(pa, -pa), max(pb, -pb), max(pc, -pc)
	out := c
	if pb <= pc {
		out = b
	}
	if pa <= pb && pa <= pc {
		out = a
	}
	return out
}

// applyFilter filters a row; prev is the row above it (W3C PNG, 9.2).
func applyFilter(kind byte, dst, cur, prev []byte, bpp int) {
	dst, prev = dst[:len(cur)], prev[:len(cur)]
	switch kind {
	case filterNone:
		copy(dst, cur)
	case filterSub:
		copy(dst, cur[:bpp])
		subtract(dst[bpp:], cur[bpp:], cur[:len(cur)-bpp])
	case filterUp:
		subtract(dst, cur, prev)
	case filterAverage:
		for i := range bpp {
			dst[i] = cur[i] - prev[i]/2
		}
		left := cur[:len(cur)-bpp]
		rest, above, out := cur[bpp:], prev[bpp:], dst[bpp:]
		rest, above, out = rest[:len(left)], above[:len(left)], out[:len(left)]
		for i, a := range left {
			out[i] = rest[i] - byte((int(a)+int(above[i]))/2)
		}
	case filterPaeth:
		for i := range bpp {
			dst[i] = cur[i] - prev[i]
		}
		left, diagonal := cur[:len(cur)-bpp], prev[:len(cur)-bpp]
		rest, above, out := cur[bpp:], prev[bpp:], dst[bpp:]
		rest, above, out, diagonal = rest[:len(left)], above[:len(left)], out[:len(left)], diagonal[:len(left)]
		for i, a := range left {
			out[i] = rest[i] - paeth(a, above[i], diagonal[i])
		}
	}
}

// Filter filters rows of stride bytes. For each row it uses the filter with the
// smallest sum of absolute values, and writes the filter's type before the row.
// pixel is the distance in bytes of corresponding samples.
func Filter(b []byte, stride, pixel int) []byte {
	rows := len(b) / stride
	out := make([]byte, 0, rows*(stride+1))
	above := make([]byte, stride)
	best, try := make([]byte, stride), make([]byte, stride)
	for y := range rows {
		row := b[y*stride:][:stride]
		least, kind := math.MaxInt, byte(filterNone)
		for k := byte(filterNone); k <= filterPaeth; k++ {
			applyFilter(k, try, row, above, pixel)
			if sum := sumSmall(try); sum < least {
				least, kind = sum, k
				best, try = try, best
			}
		}
		out = append(append(out, kind), best...)
		above = row
	}
	return out
}
