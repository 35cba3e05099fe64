package imagefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/filewright/filewright/fileops/raster"
)

// deflateLevel is the compression level for pictures with repetitions.
// Photographs have hardly any after filtering. For them, Huffman coding alone
// gives smaller results than a fast match search, in half the time.
const deflateLevel = 5

const (
	pngPart   = 512 << 10 // bytes to compress at a time
	pngWindow = 32 << 10  // bytes of the previous part to which a part refers
)

// EncodePNG encodes samples as a PNG file (W3C PNG, third edition). One
// component is gray, two are gray and alpha, three are RGB, four are RGB and
// alpha. before and after are chunks to insert before and after the pixels.
//
// It filters and compresses parts of the picture in parallel, which is several
// times faster than zlib.
func EncodePNG(ctx context.Context, s raster.Samples, before, after []byte) ([]byte, error) {
	row := s.Width * s.Components
	rows := max(1, pngPart/(row+1))
	parts := make([]*pngRows, (s.Height+rows-1)/rows)
	for i := range parts {
		first := i * rows
		parts[i] = &pngRows{s: s, first: first, last: min(first+rows, s.Height)}
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
	size := 64 + len(before) + len(after)
	for _, p := range parts {
		size += p.out.Len() + 24
	}
	colour := []int{PNGGray, PNGGrayAlpha, PNGRGB, PNGRGBAlpha}[s.Components-1]
	out := appendHeader(make([]byte, 0, size), s.Width, s.Height, 8, colour)
	out = append(out, before...)
	sum := uint32(1)
	for i, p := range parts {
		data := p.out.Bytes()
		sum = joinAdler(sum, p.sum, p.size)
		if i == 0 {
			data = slices.Concat([]byte{0x78, 0x5e}, data) // RFC 1950: window of 32 KiB, fast algorithm
		}
		if i == len(parts)-1 {
			data = binary.BigEndian.AppendUint32(data, sum)
		}
		out = appendChunk(out, "IDAT", data)
	}
	return appendChunk(append(out, after...), "IEND", nil), nil
}

// joinAdler returns the Adler-32 checksum of the concatenation of two texts. n
// is the length of the second (RFC 1950, 8.2).
func joinAdler(a, b uint32, n int) uint32 {
	const mod = 65521
	a1, a2 := uint64(a&0xffff), uint64(a>>16)
	b1, b2 := uint64(b&0xffff), uint64(b>>16)
	s1 := (a1 + b1 + mod - 1) % mod
	s2 := (a2 + b2 + uint64(n%mod)*(a1+mod-1)) % mod
	return uint32(s2<<16 | s1)
}

// pngRows is a part: some consecutive rows of a picture.
type pngRows struct {
	s           raster.Samples
	first, last int

	out  bytes.Buffer // deflated
	size int          // bytes before compression
	sum  uint32       // Adler-32
}

// A pngPacker holds the buffers that a goroutine reuses.
type pngPacker struct {
	search, codes *flate.Writer // with and without match search
	data          []byte
}

func (k *pngPacker) pack(p *pngRows) (err error) {
	row := p.s.Width * p.s.Components
	// The dictionary is the end of the previous part: its last rows, filtered
	// again.
	start := max(0, p.first-(pngWindow+row)/(row+1))
	f := pngFilter{s: p.s, row: row, zero: make([]byte, row)}
	k.data = slices.Grow(k.data[:0], (p.last-start)*(row+1))
	for y := start; y < p.last; y++ {
		k.data = f.append(k.data, y)
	}
	dict := k.data[:(p.first-start)*(row+1)]
	data := k.data[len(dict):]
	p.size, p.sum = len(data), adler32.Checksum(data)
	p.out.Grow(len(data)/2 + 1024)
	if k.search == nil {
		if k.search, err = flate.NewWriter(nil, deflateLevel); err != nil {
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
	if p.last == p.s.Height {
		return w.Close()
	}
	return w.Flush() // ends at a byte boundary, so that parts can be concatenated
}

// noisy reports whether a match search gains nothing. It tries both on a
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
		// Writing to a counter cannot fail.
		_, _ = k.search.Write(data[at:][:sample])
		_, _ = k.codes.Write(data[at:][:sample])
	}
	k.search.Flush()
	k.codes.Flush()
	return codes <= search
}

// A counter counts the bytes written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// filterRows is the number of rows that share the best filter of the first of
// them. Groups are counted from the top of the picture, so that parts agree.
const filterRows = 8

// A pngFilter filters rows (W3C PNG, 9.2).
type pngFilter struct {
	s     raster.Samples
	row   int
	zero  []byte
	kind  byte
	known int // group of rows to which kind applies, plus one
}

func (f *pngFilter) append(dst []byte, y int) []byte {
	cur := f.s.Pix[y*f.row:][:f.row]
	prev := f.zero
	if y > 0 {
		prev = f.s.Pix[(y-1)*f.row:][:f.row]
	}
	if group := y/filterRows + 1; f.known != group {
		f.known = group
		first := y / filterRows * filterRows
		above := f.zero
		if first > 0 {
			above = f.s.Pix[(first-1)*f.row:][:f.row]
		}
		f.kind = chooseFilter(f.s.Pix[first*f.row:][:f.row], above, f.s.Components)
	}
	dst = append(dst, f.kind)
	n := len(dst)
	dst = dst[:n+f.row]
	applyFilter(f.kind, dst[n:], cur, prev, f.s.Components)
	return dst
}
