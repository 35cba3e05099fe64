package pdfread

import (
	"encoding/binary"
	"hash/crc32"
	"image"
	"io"
	"math"

	"github.com/klauspost/compress/zlib"
)

// pngLevel is the level of compression: higher ones take two to ten times as
// long and save a few percent.
const pngLevel = 3

// writePNG writes an opaque picture (W3C PNG, third edition). It is made for
// pages: they are mostly flat, and many have no colour or only few colours,
// which takes a third of the bytes. It is several times faster than image/png.
func writePNG(w io.Writer, img *image.RGBA, dpi float64) error {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	p := &pngWriter{w: w}
	p.write([]byte("\x89PNG\r\n\x1a\n"))

	c := countColours(img)
	var depth, kind byte = 8, 2
	switch {
	case c.gray && len(c.palette) > 0 && len(c.palette) <= 16 || !c.gray && len(c.palette) > 0:
		kind = 3
		depth = byte(bitsFor(len(c.palette)))
	case c.gray:
		kind = 0
	}
	be := binary.BigEndian
	head := be.AppendUint32(nil, uint32(width))
	head = be.AppendUint32(head, uint32(height))
	p.chunk("IHDR", append(head, depth, kind, 0, 0, 0))
	if dpi > 0 {
		perMetre := uint32(math.Round(dpi / 0.0254))
		b := be.AppendUint32(nil, perMetre)
		p.chunk("pHYs", append(be.AppendUint32(b, perMetre), 1))
	}
	if kind == 3 {
		var b []byte
		for _, v := range c.palette {
			b = append(b, byte(v), byte(v>>8), byte(v>>16))
		}
		p.chunk("PLTE", b)
	}
	z, err := zlib.NewWriterLevel(&idatWriter{p: p}, pngLevel)
	if err != nil {
		return err
	}
	enc := &rowEncoder{kind: kind, depth: int(depth), index: c.index, width: width}
	for y := range height {
		row := img.Pix[img.PixOffset(img.Rect.Min.X, img.Rect.Min.Y+y):]
		if _, err := z.Write(enc.row(row[:4*width])); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	p.flush()
	p.chunk("IEND", nil)
	return p.err
}

// bitsFor returns the depth of an index into n colours.
func bitsFor(n int) int {
	switch {
	case n <= 2:
		return 1
	case n <= 4:
		return 2
	case n <= 16:
		return 4
	}
	return 8
}

// colours tells which colours a picture has.
type colours struct {
	gray    bool
	palette []uint32 // R | G<<8 | B<<16, in order of appearance; nil if there are more than 256
	index   *colourIndex
}

// A colourIndex finds the position of a colour in a palette: a hash table with
// open addressing, large enough to be mostly empty.
type colourIndex struct {
	keys [1024]uint32 // colour + 1<<24, 0 if free
	vals [1024]uint8
}

func (t *colourIndex) slot(v uint32) uint32 {
	i := (v * 0x9e3779b1) >> 22
	for t.keys[i] != 0 && t.keys[i] != v|1<<24 {
		i = (i + 1) & 1023
	}
	return i
}

func countColours(img *image.RGBA) colours {
	c := colours{gray: true, index: new(colourIndex)}
	width := img.Rect.Dx()
	many := false
	last := uint32(1 << 24) // no colour
	for y := img.Rect.Min.Y; y < img.Rect.Max.Y; y++ {
		row := img.Pix[img.PixOffset(img.Rect.Min.X, y):]
		row = row[:4*width]
		for i := 0; i+4 <= len(row); i += 4 {
			v := binary.LittleEndian.Uint32(row[i:]) & 0xffffff
			if v == last {
				continue
			}
			last = v
			if c.gray && (v&0xff != v>>8&0xff || v&0xff != v>>16) {
				c.gray = false
			}
			if many {
				if !c.gray {
					return c
				}
				continue
			}
			s := c.index.slot(v)
			if c.index.keys[s] != 0 {
				continue
			}
			if len(c.palette) == 256 {
				many, c.palette = true, nil
				continue
			}
			c.index.keys[s] = v | 1<<24
			c.index.vals[s] = uint8(len(c.palette))
			c.palette = append(c.palette, v)
		}
	}
	return c
}

// A rowEncoder converts and filters rows.
type rowEncoder struct {
	kind  byte
	depth int
	index *colourIndex
	width int

	prev, cur, out []byte
}

// row returns a row as it goes into the compressor: the filter and the filtered
// bytes. It is valid until the next call.
func (e *rowEncoder) row(rgba []byte) []byte {
	n := 3 * e.width
	switch e.kind {
	case 0:
		n = e.width
	case 3:
		n = (e.width*e.depth + 7) / 8
	}
	if e.cur == nil {
		e.prev, e.cur, e.out = make([]byte, n), make([]byte, n), make([]byte, n+1)
	}
	e.prev, e.cur = e.cur, e.prev
	cur := e.cur
	switch e.kind {
	case 0:
		for i := range cur {
			cur[i] = rgba[4*i]
		}
	case 2:
		for i, j := 0, 0; j+3 <= len(cur); i, j = i+4, j+3 {
			cur[j], cur[j+1], cur[j+2] = rgba[i], rgba[i+1], rgba[i+2]
		}
	case 3:
		e.indexRow(rgba)
		// Differences of indexes mean nothing: no filter.
		e.out[0] = 0
		copy(e.out[1:], cur)
		return e.out
	}
	bpp := 1
	if e.kind == 2 {
		bpp = 3
	}
	return e.filter(bpp)
}

func (e *rowEncoder) indexRow(rgba []byte) {
	last, idx := uint32(1<<24), uint8(0)
	perByte := 8 / e.depth
	for i := range e.cur {
		var b uint8
		for k := range perByte {
			x := i*perByte + k
			b <<= uint(e.depth)
			if x >= e.width {
				continue
			}
			v := binary.LittleEndian.Uint32(rgba[4*x:]) & 0xffffff
			if v != last {
				last, idx = v, e.index.vals[e.index.slot(v)]
			}
			b |= idx
		}
		e.cur[i] = b
	}
}

// filter chooses between None, Sub and Up by the sum of absolute differences,
// as section 12.7 of the standard suggests. Paeth and Average gain little on
// pages and cost much.
func (e *rowEncoder) filter(bpp int) []byte {
	cur, prev := e.cur, e.prev
	var none, sub, up int
	for i, c := range cur {
		left := byte(0)
		if i >= bpp {
			left = cur[i-bpp]
		}
		none += int(min(c, -c))
		s, u := c-left, c-prev[i]
		sub += int(min(s, -s))
		up += int(min(u, -u))
	}
	out := e.out[1:]
	switch {
	case up == 0 || up < sub && up < none:
		e.out[0] = 2
		for i, c := range cur {
			out[i] = c - prev[i]
		}
	case sub < none:
		e.out[0] = 1
		copy(out, cur[:bpp])
		for i := bpp; i < len(cur); i++ {
			out[i] = cur[i] - cur[i-bpp]
		}
	default:
		e.out[0] = 0
		copy(out, cur)
	}
	return e.out
}

// A pngWriter writes chunks and remembers the first error.
type pngWriter struct {
	w    io.Writer
	idat []byte
	err  error
}

func (p *pngWriter) write(b []byte) {
	if p.err == nil {
		_, p.err = p.w.Write(b)
	}
}

func (p *pngWriter) chunk(name string, data []byte) {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	head = append(head, name...)
	crc := crc32.Update(crc32.ChecksumIEEE(head[4:]), crc32.IEEETable, data)
	p.write(head)
	p.write(data)
	p.write(binary.BigEndian.AppendUint32(nil, crc))
}

func (p *pngWriter) flush() {
	if len(p.idat) > 0 {
		p.chunk("IDAT", p.idat)
		p.idat = p.idat[:0]
	}
}

// An idatWriter collects compressed data into IDAT chunks of reasonable size.
type idatWriter struct{ p *pngWriter }

func (w *idatWriter) Write(b []byte) (int, error) {
	w.p.idat = append(w.p.idat, b...)
	if len(w.p.idat) >= 128<<10 {
		w.p.flush()
	}
	return len(b), w.p.err
}
