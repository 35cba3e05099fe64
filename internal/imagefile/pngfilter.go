package imagefile

import "math"

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
		left := cur[:len(cur)-bpp]
		rest, out := cur[bpp:], dst[bpp:]
		for i, a := range left {
			out[i] = rest[i] - a
		}
	case filterUp:
		for i, c := range cur {
			dst[i] = c - prev[i]
		}
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
			sum := 0
			for _, v := range try {
				sum += small(v)
			}
			if sum < least {
				least, kind = sum, k
				best, try = try, best
			}
		}
		out = append(append(out, kind), best...)
		above = row
	}
	return out
}
