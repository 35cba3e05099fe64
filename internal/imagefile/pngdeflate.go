package imagefile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"io"
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
func EncodePNG(ctx context.Context, s raster.Samples, before, after []byte) ([]byte, error) {
	w := NewPNGWriter(ctx, s.Width, s.Height, s.Components)
	for !w.complete() {
		p := w.next()
		p.pix = s.Pix[p.base*w.row : p.last*w.row]
		w.submit(p)
	}
	return w.Finish(before, after)
}

// A PNGWriter encodes a picture whose rows are written to it from top to bottom. See
// [EncodePNG] for the components. It filters and compresses parts of the picture in
// parallel, which is several times faster than zlib, while the next rows are computed.
// Besides the result it holds only the rows of the parts that are compressed.
type PNGWriter struct {
	ctx                       context.Context
	width, height, components int

	row, rows int // bytes of a row; rows of a part

	parts   []*pngRows
	part    *pngRows // receives the rows that are written
	idle    chan *pngPacker
	workers sync.WaitGroup

	mu  sync.Mutex
	err error // the first
}

// NewPNGWriter returns a writer for a picture. The caller must call Finish.
func NewPNGWriter(ctx context.Context, width, height, components int) *PNGWriter {
	w := &PNGWriter{ctx: ctx, width: width, height: height, components: components, row: width * components}
	w.rows = max(1, pngPart/(w.row+1))
	w.idle = make(chan *pngPacker, min(runtime.GOMAXPROCS(0), 4))
	for range cap(w.idle) {
		w.idle <- &pngPacker{}
	}
	return w
}

// complete reports whether the parts contain all rows.
func (w *PNGWriter) complete() bool {
	return len(w.parts) > 0 && w.parts[len(w.parts)-1].last == w.height
}

// next returns the next part, without its pixels.
func (w *PNGWriter) next() *pngRows {
	p := &pngRows{of: w, first: len(w.parts) * w.rows}
	p.last = min(p.first+w.rows, w.height)
	// The dictionary is the end of the previous part: its last rows, filtered again.
	p.start = max(0, p.first-(pngWindow+w.row)/(w.row+1))
	p.base = max(0, p.start/filterRows*filterRows-1)
	w.parts = append(w.parts, p)
	return p
}

// submit compresses a part in the background.
func (w *PNGWriter) submit(p *pngRows) {
	k := <-w.idle
	w.workers.Go(func() {
		defer func() { w.idle <- k }()
		if w.failed() != nil {
			return
		}
		if err := k.pack(p); err != nil {
			w.fail(err)
		}
		p.pix = nil
	})
}

func (w *PNGWriter) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = cmp.Or(w.err, err)
}

func (w *PNGWriter) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = context.Cause(w.ctx)
	}
	return w.err
}

// Write implements [io.Writer]. It copies b.
func (w *PNGWriter) Write(b []byte) (n int, err error) {
	if w.part == nil && !w.complete() {
		w.part = w.next()
		w.part.pix = make([]byte, 0, (w.part.last-w.part.base)*w.row)
	}
	for n < len(b) {
		if err := w.failed(); err != nil {
			return n, err
		}
		p := w.part
		if p == nil {
			return n, errors.New("more pixels than the picture has")
		}
		k := min(len(b)-n, cap(p.pix)-len(p.pix))
		p.pix = append(p.pix, b[n:n+k]...)
		n += k
		if len(p.pix) < cap(p.pix) {
			break
		}
		if w.part = nil; !w.complete() {
			q := w.next()
			q.pix = append(make([]byte, 0, (q.last-q.base)*w.row), p.pix[(q.base-p.base)*w.row:]...)
			w.part = q
		}
		w.submit(p)
	}
	return n, nil
}

// Finish waits for the compression and returns the file. before and after are chunks to
// insert before and after the pixels.
func (w *PNGWriter) Finish(before, after []byte) ([]byte, error) {
	w.workers.Wait()
	if err := w.failed(); err != nil {
		return nil, err
	}
	if w.part != nil || !w.complete() {
		return nil, io.ErrUnexpectedEOF
	}
	size := 64 + len(before) + len(after)
	for _, p := range w.parts {
		size += p.out.Len() + 24
	}
	colour := []int{PNGGray, PNGGrayAlpha, PNGRGB, PNGRGBAlpha}[w.components-1]
	out := appendHeader(make([]byte, 0, size), w.width, w.height, 8, colour)
	out = append(out, before...)
	sum := uint32(1)
	for i, p := range w.parts {
		data := p.out.Bytes()
		sum = joinAdler(sum, p.sum, p.size)
		if i == 0 {
			data = slices.Concat([]byte{0x78, 0x5e}, data) // RFC 1950: window of 32 KiB, fast algorithm
		}
		if i == len(w.parts)-1 {
			data = binary.BigEndian.AppendUint32(data, sum)
		}
		out = appendChunk(out, "IDAT", data)
		p.out = bytes.Buffer{} // free
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
	of          *PNGWriter
	first, last int
	start       int    // first row of the dictionary
	base        int    // first row of pix, which the filters of the dictionary need
	pix         []byte // rows from base to last

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
	row := p.of.row
	f := pngFilter{rows: p, zero: make([]byte, row)}
	k.data = slices.Grow(k.data[:0], (p.last-p.start)*(row+1))
	for y := p.start; y < p.last; y++ {
		k.data = f.append(k.data, y)
	}
	dict := k.data[:(p.first-p.start)*(row+1)]
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
	if p.last == p.of.height {
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
	rows  *pngRows
	zero  []byte
	kind  byte
	known int // group of rows to which kind applies, plus one
}

// pixels returns a row, which is zero above the picture.
func (f *pngFilter) pixels(y int) []byte {
	if y < 0 {
		return f.zero
	}
	return f.rows.pix[(y-f.rows.base)*len(f.zero):][:len(f.zero)]
}

func (f *pngFilter) append(dst []byte, y int) []byte {
	components := f.rows.of.components
	if group := y/filterRows + 1; f.known != group {
		f.known = group
		first := y / filterRows * filterRows
		f.kind = chooseFilter(f.pixels(first), f.pixels(first-1), components)
	}
	dst = append(dst, f.kind)
	n := len(dst)
	dst = dst[:n+len(f.zero)]
	applyFilter(f.kind, dst[n:], f.pixels(y), f.pixels(y-1), components)
	return dst
}
