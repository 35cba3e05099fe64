package imageops

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"hash/crc32"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"
)

// pngLevel is the level of compression of what has repetitions. Photographs have
// hardly any after filtering: good codes alone make them smaller than a fast
// search for matches does, in half of the time.
const pngLevel = 5

// pngPart is how many bytes are compressed at a time. Each part knows the last
// 32 KiB of the one before.
const (
	pngPart   = 512 << 10
	pngWindow = 32 << 10
)

// encodePNG encodes 8-bit samples as a PNG (W3C PNG, third edition): 1 component
// is gray, 2 are gray and transparency, 3 are RGB, 4 are RGB and transparency.
// before and after are chunks that go before and after the pixels.
//
// Parts of the picture are filtered and compressed at the same time. With zlib
// one thread would do that, several times slower.
func encodePNG(ctx context.Context, m samples, before, after []byte) ([]byte, error) {
	row := m.width * m.components
	rows := max(1, pngPart/(row+1))
	parts := make([]*pngRows, (m.height+rows-1)/rows)
	for i := range parts {
		first := i * rows
		parts[i] = &pngRows{m: m, first: first, last: min(first+rows, m.height)}
	}
	var wg sync.WaitGroup
	errs := make([]error, min(len(parts), runtime.GOMAXPROCS(0), 4))
	for n := range errs {
		wg.Go(func() {
			var w pngPacker
			for i := n; i < len(parts) && errs[n] == nil; i += len(errs) {
				if ctx.Err() != nil {
					errs[n] = context.Cause(ctx)
					return
				}
				errs[n] = w.pack(parts[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	be := binary.BigEndian
	head := be.AppendUint32(be.AppendUint32(nil, uint32(m.width)), uint32(m.height))
	head = append(head, 8, []byte{0, 4, 2, 6}[m.components-1], 0, 0, 0)
	size := 64 + len(before) + len(after)
	for _, p := range parts {
		size += p.out.Len() + 24
	}
	out := append(make([]byte, 0, size), "\x89PNG\r\n\x1a\n"...)
	out = appendChunk(out, "IHDR", head)
	out = append(out, before...)
	sum := uint32(1)
	for i, p := range parts {
		data := p.out.Bytes()
		sum = joinAdler(sum, p.sum, p.size)
		if i == 0 {
			data = slices.Concat([]byte{0x78, 0x5e}, data) // RFC 1950: window of 32 KiB, a fast algorithm
		}
		if i == len(parts)-1 {
			data = be.AppendUint32(data, sum)
		}
		out = appendChunk(out, "IDAT", data)
	}
	return appendChunk(append(out, after...), "IEND", nil), nil
}

func appendChunk(out []byte, name string, data []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
	start := len(out)
	out = append(append(out, name...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[start:]))
}

// joinAdler returns the Adler-32 of two texts after each other, of which the
// second has n bytes (RFC 1950, 8.2).
func joinAdler(a, b uint32, n int) uint32 {
	const mod = 65521
	a1, a2 := uint64(a&0xffff), uint64(a>>16)
	b1, b2 := uint64(b&0xffff), uint64(b>>16)
	s1 := (a1 + b1 + mod - 1) % mod
	s2 := (a2 + b2 + uint64(n%mod)*(a1+mod-1)) % mod
	return uint32(s2<<16 | s1)
}

// pngRows are rows of a picture on their way into a PNG.
type pngRows struct {
	m           samples
	first, last int

	out  bytes.Buffer // deflated
	size int          // before
	sum  uint32       // Adler-32
}

// A pngPacker keeps what one thread uses again.
type pngPacker struct {
	search, codes *flate.Writer // with and without looking for matches
	data          []byte
}

func (k *pngPacker) pack(p *pngRows) (err error) {
	row := p.m.width * p.m.components
	// What was compressed before is filtered again to know it: the rows of 32
	// KiB, or a part of one.
	start := max(0, p.first-(pngWindow+row)/(row+1))
	f := pngFilter{m: p.m, row: row, zero: make([]byte, row)}
	k.data = slices.Grow(k.data[:0], (p.last-start)*(row+1))
	for y := start; y < p.last; y++ {
		k.data = f.append(k.data, y)
	}
	dict := k.data[:(p.first-start)*(row+1)]
	data := k.data[len(dict):]
	p.size, p.sum = len(data), adler32.Checksum(data)
	p.out.Grow(len(data)/2 + 1024)
	if k.search == nil {
		if k.search, err = flate.NewWriter(nil, pngLevel); err != nil {
			return err
		}
		if k.codes, err = flate.NewWriter(nil, flate.HuffmanOnly); err != nil {
			return err
		}
	}
	w := k.search
	if k.noisy(data) {
		w = k.codes
		w.Reset(&p.out)
	} else {
		w.ResetDict(&p.out, dict[max(0, len(dict)-pngWindow):])
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if p.last == p.m.height {
		return w.Close()
	}
	return w.Flush() // ends at a byte, so that parts can be put together
}

// noisy tells whether looking for matches gains nothing, by trying both on a
// sixteenth of the data.
func (k *pngPacker) noisy(data []byte) bool {
	const sample = 16 << 10
	if len(data) < 2*sample {
		return false
	}
	var search, codes counter
	k.search.Reset(&search)
	k.codes.Reset(&codes)
	for _, at := range []int{len(data) / 4, len(data)*3/4 - sample} {
		// A counter does not fail.
		k.search.Write(data[at:][:sample])
		k.codes.Write(data[at:][:sample])
	}
	k.search.Flush()
	k.codes.Flush()
	return codes <= search
}

// A counter counts what is written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// filterRows is for how many rows a filter is chosen by the first of them. Parts
// of the picture choose alike, because they count from its top.
const filterRows = 8

// A pngFilter filters rows: W3C PNG, 9.2.
type pngFilter struct {
	m     samples
	row   int
	zero  []byte
	kind  byte
	known int // the group of rows that kind is for, plus one
}

func (f *pngFilter) append(dst []byte, y int) []byte {
	cur := f.m.pix[y*f.row:][:f.row]
	prev := f.zero
	if y > 0 {
		prev = f.m.pix[(y-1)*f.row:][:f.row]
	}
	if group := y/filterRows + 1; f.known != group {
		f.known = group
		first := y / filterRows * filterRows
		above := f.zero
		if first > 0 {
			above = f.m.pix[(first-1)*f.row:][:f.row]
		}
		f.kind = chooseFilter(f.m.pix[first*f.row:][:f.row], above, f.m.components)
	}
	dst = append(dst, f.kind)
	n := len(dst)
	dst = dst[:n+f.row]
	applyFilter(f.kind, dst[n:], cur, prev, f.m.components)
	return dst
}

// The filter types of PNG.
const (
	filterNone = iota
	filterSub
	filterUp
	filterAverage
	filterPaeth
)

// chooseFilter returns the filter with the smallest sum of absolute differences
// (W3C PNG, 12.7). A row of few different bytes is left as it is: repetition is
// worth more there than small numbers.
func chooseFilter(cur, prev []byte, bpp int) byte {
	var none, sub, up, paeth int
	same := 0
	for i := bpp; i < len(cur); i++ {
		c, a, b, d := cur[i], cur[i-bpp], prev[i], prev[i-bpp]
		if c == a {
			same++
		}
		none += small(c)
		sub += small(c - a)
		up += small(c - b)
		paeth += small(c - predict(a, b, d))
	}
	kind, least := byte(filterSub), sub
	if up < least {
		kind, least = filterUp, up
	}
	if paeth < least {
		kind, least = filterPaeth, paeth
	}
	if none < least || same > len(cur)*3/4 && least > 0 {
		kind = filterNone
	}
	return kind
}

// small is the distance of a difference from zero.
func small(b byte) int {
	v := int(int8(b))
	m := v >> 63
	return (v ^ m) - m
}

// predict is the Paeth predictor (W3C PNG, 9.4): a is left, b above, c above left.
func predict(a, b, c byte) byte {
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
	case filterPaeth:
		for i := range bpp {
			dst[i] = cur[i] - prev[i]
		}
		left, diagonal := cur[:len(cur)-bpp], prev[:len(cur)-bpp]
		rest, above, out := cur[bpp:], prev[bpp:], dst[bpp:]
		rest, above, out, diagonal = rest[:len(left)], above[:len(left)], out[:len(left)], diagonal[:len(left)]
		for i, a := range left {
			out[i] = rest[i] - predict(a, above[i], diagonal[i])
		}
	}
}

// splitChunks returns the chunks of a PNG that say something about the picture,
// those before its pixels and those after, as they are.
func splitChunks(b []byte) (before, after []byte) {
	pixels := false
	for typ, i := range pngChunks(b) {
		switch typ {
		case "IDAT":
			pixels = true
		case "IHDR", "IEND", "PLTE":
		default:
			chunk := b[i : i+12+int(binary.BigEndian.Uint32(b[i:]))]
			if pixels {
				after = append(after, chunk...)
			} else {
				before = append(before, chunk...)
			}
		}
	}
	return before, after
}

// withoutChunk returns a PNG without the chunks of a type.
func withoutChunk(b []byte, typ string) []byte {
	out := slices.Clone(b[:8])
	for t, i := range pngChunks(b) {
		if t != typ {
			out = append(out, b[i:i+12+int(binary.BigEndian.Uint32(b[i:]))]...)
		}
	}
	return out
}
