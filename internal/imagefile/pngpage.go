package imagefile

import (
	"bytes"
	"encoding/binary"
	"image"
	"io"
	"math"

	"github.com/klauspost/compress/zlib"
)

// pageLevel is the compression level for pages. Higher levels take two to ten
// times as long and save a few percent.
const pageLevel = 3

// WritePNG writes an opaque picture (W3C PNG, third edition) with its density in
// dots per inch, unless that is 0. It is optimized for pages. Many of them are
// gray or have few colours, which it stores in a third of the bytes. It is
// several times faster than image/png.
func WritePNG(w io.Writer, img *image.RGBA, dpi float64) error {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	e := newPageEncoder(img)
	head := appendHeader(nil, width, height, e.depth, e.colour)
	if dpi > 0 {
		perMetre := uint32(math.Round(dpi / 0.0254))
		b := binary.BigEndian.AppendUint32(nil, perMetre)
		head = appendChunk(head, "pHYs", append(binary.BigEndian.AppendUint32(b, perMetre), 1))
	}
	if e.colour == PNGPalette {
		var b []byte
		for _, v := range e.palette.Colours {
			b = append(b, byte(v), byte(v>>8), byte(v>>16))
		}
		head = appendChunk(head, "PLTE", b)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	data := &idatWriter{w: w}
	z, err := zlib.NewWriterLevel(data, pageLevel)
	if err != nil {
		return err
	}
	for y := range height {
		row := img.Pix[img.PixOffset(img.Rect.Min.X, img.Rect.Min.Y+y):]
		if _, err := z.Write(e.row(row[:4*width])); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := data.flush(); err != nil {
		return err
	}
	_, err = w.Write(appendChunk(nil, "IEND", nil))
	return err
}

// A pageEncoder converts and filters rows.
type pageEncoder struct {
	colour, depth int
	palette       Palette // of the whole picture, if colour is PNGPalette

	width          int
	prev, cur, out []byte
	numbers        []byte // palette numbers of a row
}

// newPageEncoder chooses the colour type and depth for a picture.
func newPageEncoder(img *image.RGBA) *pageEncoder {
	e := &pageEncoder{colour: PNGPalette, width: img.Rect.Dx()}
	gray, few := e.countColours(img)
	switch {
	case gray && (!few || len(e.palette.Colours) > 16):
		e.colour = PNGGray
	case !few:
		e.colour = PNGRGB
	}
	n := 0
	switch e.colour {
	case PNGGray:
		e.depth, n = 8, e.width
	case PNGRGB:
		e.depth, n = 8, 3*e.width
	default:
		e.depth = e.palette.Depth()
		n = (e.width*e.depth + 7) / 8
		e.numbers = make([]byte, e.width)
	}
	e.prev, e.cur, e.out = make([]byte, n), make([]byte, n), make([]byte, n+1)
	return e
}

const noColour = 1 << 24

// countColours reports whether a picture is gray, and whether it has few enough
// colours for a palette. It fills the palette.
func (e *pageEncoder) countColours(img *image.RGBA) (gray, few bool) {
	gray, few = true, true
	last := uint32(noColour)
	for y := img.Rect.Min.Y; y < img.Rect.Max.Y; y++ {
		row := img.Pix[img.PixOffset(img.Rect.Min.X, y):]
		row = row[:4*e.width]
		for i := 0; i+4 <= len(row); i += 4 {
			v := binary.LittleEndian.Uint32(row[i:]) & 0xffffff
			if v == last {
				continue
			}
			last = v
			gray = gray && v&0xff == v>>8&0xff && v&0xff == v>>16
			if few {
				_, few = e.palette.Add(v)
			}
			if !few && !gray {
				return gray, few
			}
		}
	}
	return gray, few
}

// row returns the input of the compressor for a row: the filter type and the
// filtered bytes. It is valid until the next call.
func (e *pageEncoder) row(rgba []byte) []byte {
	e.prev, e.cur = e.cur, e.prev
	cur := e.cur
	switch e.colour {
	case PNGGray:
		for i := range cur {
			cur[i] = rgba[4*i]
		}
		return e.filter(1)
	case PNGRGB:
		for i, j := 0, 0; j+3 <= len(cur); i, j = i+4, j+3 {
			cur[j], cur[j+1], cur[j+2] = rgba[i], rgba[i+1], rgba[i+2]
		}
		return e.filter(3)
	}
	last, number := uint32(noColour), byte(0)
	for x := range e.numbers {
		if v := binary.LittleEndian.Uint32(rgba[4*x:]) & 0xffffff; v != last {
			last = v
			number, _ = e.palette.Add(v)
		}
		e.numbers[x] = number
	}
	// Neighbouring palette numbers are unrelated: no filter.
	clear(e.out)
	PackRow(e.out[1:], e.numbers, e.depth)
	return e.out
}

// filter chooses None, Sub or Up by the sum of absolute differences (W3C PNG,
// 12.7). Paeth and Average save little on pages and cost much time.
func (e *pageEncoder) filter(bpp int) []byte {
	cur, prev := e.cur, e.prev
	if bytes.Equal(cur, prev) {
		clear(e.out)
		e.out[0] = filterUp
		return e.out
	}
	none, sub, up := sums(cur, prev, bpp)
	kind := byte(filterNone)
	switch {
	case up < sub && up < none:
		kind = filterUp
	case sub < none:
		kind = filterSub
	}
	e.out[0] = kind
	applyFilter(kind, e.out[1:], cur, prev, bpp)
	return e.out
}

// An idatWriter collects compressed data into IDAT chunks of reasonable size.
type idatWriter struct {
	w    io.Writer
	data []byte
}

func (d *idatWriter) Write(b []byte) (int, error) {
	d.data = append(d.data, b...)
	if len(d.data) >= 128<<10 {
		return len(b), d.flush()
	}
	return len(b), nil
}

func (d *idatWriter) flush() error {
	if len(d.data) == 0 {
		return nil
	}
	_, err := d.w.Write(appendChunk(nil, "IDAT", d.data))
	d.data = d.data[:0]
	return err
}
