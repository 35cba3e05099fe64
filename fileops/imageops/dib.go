package imageops

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"math/bits"
	"slices"

	"golang.org/x/image/bmp"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// This file reads BMP and ICO, because libvips would pass them to ImageMagick.
// Both contain a "device independent bitmap" ([MS-WMF] 2.2.2.9 and the
// BITMAPINFOHEADER family of the Windows GDI documentation).

var errDIB = errors.New("malformed bitmap")

// dibHeader contains the fields that this package uses, from all header versions.
type dibHeader struct {
	width, height int
	topDown       bool
	bits          int
	compression   uint32
	colours       int // number of palette entries
	entry         int // bytes of a palette entry
	size          int // bytes of the header and the masks after it
	masks         [4]uint32
}

// Compression methods of a bitmap.
const (
	biRGB = iota
	biRLE8
	biRLE4
	biBitfields
	_
	_
	biAlphaBitfields
)

func parseDIB(b []byte) (h dibHeader, err error) {
	if len(b) < 12 {
		return h, errDIB
	}
	le := binary.LittleEndian
	h.size, h.entry = int(le.Uint32(b)), 4
	switch {
	case h.size == 12:
		h.width, h.height, h.bits = int(le.Uint16(b[4:])), int(le.Uint16(b[6:])), int(le.Uint16(b[10:]))
		h.entry = 3
	case h.size == 16 && len(b) >= 16: // OS/2 2.0, without the fields that may be missing
		h.width, h.height, h.bits = int(le.Uint32(b[4:])), int(le.Uint32(b[8:])), int(le.Uint16(b[14:]))
	case h.size >= 40 && h.size <= 256 && len(b) >= h.size:
		w, ht := int64(int32(le.Uint32(b[4:]))), int64(int32(le.Uint32(b[8:])))
		if ht < 0 {
			h.topDown, ht = true, -ht
		}
		h.width, h.height, h.bits = int(w), int(ht), int(le.Uint16(b[14:]))
		h.compression = le.Uint32(b[16:])
		if n := le.Uint32(b[32:]); n <= 256 {
			h.colours = int(n)
		}
		if h.compression == biBitfields || h.compression == biAlphaBitfields {
			n := 12
			if h.compression == biAlphaBitfields || h.size >= 56 {
				n = 16
			}
			if len(b) < 40+n {
				return h, errDIB
			}
			for i := range n / 4 {
				h.masks[i] = le.Uint32(b[40+4*i:])
			}
			h.size = max(h.size, 40+n)
		}
	default:
		return h, errDIB
	}
	if h.bits <= 8 && h.colours == 0 {
		h.colours = 1 << h.bits
	}
	if h.bits > 8 {
		// A palette may exist as a hint for old displays.
		h.entry *= min(1, h.colours)
	}
	switch {
	case h.width <= 0 || h.height <= 0 || h.width > 1<<20 || h.height > 1<<21:
		return h, errDIB
	case h.bits == 1 && h.compression == biRGB,
		h.bits == 4 && (h.compression == biRGB || h.compression == biRLE4),
		h.bits == 8 && (h.compression == biRGB || h.compression == biRLE8),
		h.bits == 24 && h.compression == biRGB,
		(h.bits == 16 || h.bits == 32) && (h.compression == biRGB || h.compression == biBitfields || h.compression == biAlphaBitfields):
	default:
		return h, fmt.Errorf("bitmap of %d bits, compression %d: %w", h.bits, h.compression, errors.ErrUnsupported)
	}
	if h.compression == biRGB {
		switch h.bits {
		case 16:
			h.masks = [4]uint32{0x7c00, 0x3e0, 0x1f, 0}
		case 32:
			h.masks = [4]uint32{0xff0000, 0xff00, 0xff, 0}
		}
	}
	return h, nil
}

// stride returns the number of bytes in a row, which is padded to a multiple of
// four.
func (h dibHeader) stride() int { return (h.width*h.bits + 31) / 32 * 4 }

// decodeDIB decodes the pixels. head starts with the header, pix with the
// pixels. alpha enables the fourth byte of 32-bit pixels even without a mask for
// it, as in icons.
func decodeDIB(h dibHeader, head, pix []byte, alpha bool) (*image.NRGBA, error) {
	if int64(h.stride())*int64(h.height) > int64(len(pix)) && h.compression != biRLE4 && h.compression != biRLE8 {
		return nil, fmt.Errorf("%w: pixels are missing", errDIB)
	}
	var palette [256][3]byte
	for i := range min(h.colours, 256) {
		at := h.size + i*h.entry
		if h.bits <= 8 && at+3 <= len(head) {
			palette[i] = [3]byte{head[at+2], head[at+1], head[at]}
		}
	}
	m := image.NewNRGBA(image.Rect(0, 0, h.width, h.height))
	if h.compression == biRLE4 || h.compression == biRLE8 {
		return m, unRLE(m, h, pix, &palette)
	}
	if alpha && h.bits == 32 && h.masks[3] == 0 {
		h.masks[3] = 0xff000000
	}
	seen := false // whether any pixel is not fully transparent
	for y := range h.height {
		row := pix[y*h.stride():][:h.stride()]
		at := h.height - 1 - y
		if h.topDown {
			at = y
		}
		out := m.Pix[at*m.Stride:][:4*h.width]
		for x := range h.width {
			o := out[4*x : 4*x+4]
			o[3] = 255
			switch h.bits {
			case 24:
				o[0], o[1], o[2] = row[3*x+2], row[3*x+1], row[3*x]
			case 16, 32:
				v := uint32(binary.LittleEndian.Uint16(row[2*x*(h.bits/16):]))
				if h.bits == 32 {
					v = binary.LittleEndian.Uint32(row[4*x:])
				}
				o[0], o[1], o[2] = masked(v, h.masks[0]), masked(v, h.masks[1]), masked(v, h.masks[2])
				if h.masks[3] != 0 {
					o[3] = masked(v, h.masks[3])
					seen = seen || o[3] != 0
				}
			default:
				i := int(row[x*h.bits/8]) >> (8 - h.bits - x*h.bits%8) & (1<<h.bits - 1)
				if i >= h.colours {
					return nil, fmt.Errorf("%w: a pixel has no colour", errDIB)
				}
				copy(o, palette[i][:])
			}
		}
	}
	if h.masks[3] != 0 && !seen {
		// A fully transparent picture is unlikely; the channel is probably unused.
		for i := 3; i < len(m.Pix); i += 4 {
			m.Pix[i] = 255
		}
	}
	return m, nil
}

// masked returns the bits of v under mask, scaled to 8 bits.
func masked(v, mask uint32) byte {
	if mask == 0 {
		return 0
	}
	v = (v & mask) >> bits.TrailingZeros32(mask)
	top := mask >> bits.TrailingZeros32(mask)
	return byte(uint64(v) * 255 / uint64(top))
}

// unRLE decodes run-length encoding. Skipped pixels stay transparent, as the format
// specifies. Pixels after the end of a row are dropped, as other readers do; pixels above the first
// row mean that the data is damaged.
func unRLE(m *image.NRGBA, h dibHeader, b []byte, palette *[256][3]byte) error {
	x, y, outside := 0, 0, false
	set := func(i int) {
		outside = outside || y >= h.height
		if x < h.width && y < h.height {
			o := m.Pix[(h.height-1-y)*m.Stride+4*x:]
			copy(o, palette[i][:])
			o[3] = 255
		}
		x++
	}
	nibble := func(v byte, i int) int {
		if h.bits == 8 {
			return int(v)
		}
		return int(v) >> (4 - i%2*4) & 15
	}
	for len(b) >= 2 {
		n, v := int(b[0]), b[1]
		b = b[2:]
		if n > 0 {
			for i := range n {
				set(nibble(v, i))
			}
			continue
		}
		switch v {
		case 0:
			x, y = 0, y+1
		case 1:
			if outside {
				return fmt.Errorf("%w: pixels are outside of the picture", errDIB)
			}
			return nil
		case 2:
			if len(b) < 2 {
				return errDIB
			}
			x, y = x+int(b[0]), y+int(b[1])
			b = b[2:]
		default:
			n := int(v)
			size := n
			if h.bits == 4 {
				size = (n + 1) / 2
			}
			if len(b) < size {
				return errDIB
			}
			for i := range n {
				k := i
				if h.bits == 4 {
					k = i / 2
				}
				set(nibble(b[k], i))
			}
			b = b[min(len(b), (size+1)/2*2):]
		}
	}
	return fmt.Errorf("%w: end mark is missing", errDIB)
}

func statBMP(src source) (header, error) {
	if len(src.data) < 26 {
		return header{}, errDIB
	}
	h, err := parseDIB(src.data[14:])
	return header{width: h.width, height: h.height, pages: 1, bits: 8}, err
}

func decodeBMP(data []byte) (decoded, error) {
	if len(data) < 26 {
		return decoded{}, errDIB
	}
	h, err := parseDIB(data[14:])
	if err != nil {
		return decoded{}, err
	}
	at := int64(binary.LittleEndian.Uint32(data[10:]))
	if at < 14 || at > int64(len(data)) {
		return decoded{}, errDIB
	}
	m, err := decodeDIB(h, data[14:], data[at:], false)
	if err != nil {
		return decoded{}, err
	}
	out := decoded{img: m}
	if len(data) >= bmpDensity+8 && binary.LittleEndian.Uint32(data[14:]) >= 40 {
		perMetre := func(i int) float64 { return float64(max(0, int32(binary.LittleEndian.Uint32(data[i:])))) }
		if x, y := perMetre(bmpDensity), perMetre(bmpDensity+4); x > 0 && y > 0 {
			out.resolution = resolution{x / 1000, y / 1000}
		}
	}
	return out, nil
}

// bmpDensity is the offset of pixels per metre in a BMP, horizontal and
// vertical; 0 if unknown (BITMAPINFOHEADER, biXPelsPerMeter).
const bmpDensity = 14 + 24

func encodeBMP(m image.Image, r resolution) ([]byte, error) {
	var b bytes.Buffer
	if n, ok := m.(*image.NRGBA); ok && n.Opaque() {
		m = &image.RGBA{Pix: n.Pix, Stride: n.Stride, Rect: n.Rect}
	}
	if err := bmp.Encode(&b, m); err != nil {
		return nil, err
	}
	out := b.Bytes()
	for i, v := range []float64{r.x, r.y} {
		if v = math.Round(1000 * v); v < math.MaxInt32 {
			binary.LittleEndian.PutUint32(out[bmpDensity+4*i:], uint32(v))
		}
	}
	return out, nil
}

// An iconEntry is one of the pictures in an icon.
type iconEntry struct {
	data []byte
	png  bool
	dib  dibHeader
	w, h int
	bits int
}

// parseICO returns the largest picture of an icon. Among pictures of the same size it
// chooses the one with the most colours. The ICO format has no standard; this follows the Windows
// documentation of icon resources.
func parseICO(b []byte) (best iconEntry, err error) {
	le := binary.LittleEndian
	if len(b) < 6 {
		return best, errDIB
	}
	err = errDIB
	for i := range int(le.Uint16(b[4:])) {
		dir := 6 + 16*i
		if dir+16 > len(b) {
			break
		}
		size, at := int64(le.Uint32(b[dir+8:])), int64(le.Uint32(b[dir+12:]))
		if at+size > int64(len(b)) || size < 16 {
			continue
		}
		e := iconEntry{data: b[at : at+size]}
		if bytes.HasPrefix(e.data, []byte("\x89PNG")) {
			c, cerr := png.DecodeConfig(bytes.NewReader(e.data))
			if cerr != nil {
				continue
			}
			e.png, e.w, e.h, e.bits = true, c.Width, c.Height, 32
		} else {
			h, herr := parseDIB(e.data)
			if herr != nil {
				if errors.Is(herr, errors.ErrUnsupported) {
					err = herr
				}
				continue
			}
			h.height /= 2 // it includes the mask below the colours
			e.dib, e.w, e.h, e.bits = h, h.width, h.height, h.bits
		}
		if e.w > 0 && e.h > 0 && (best.data == nil || e.w*e.h > best.w*best.h || e.w*e.h == best.w*best.h && e.bits > best.bits) {
			best = e
		}
	}
	if best.data == nil {
		return best, err
	}
	return best, nil
}

func statICO(src source) (header, error) {
	e, err := parseICO(src.data)
	return header{width: e.w, height: e.h, pages: 1, bits: 8, alpha: true}, err
}

func decodeICO(data []byte) (decoded, error) {
	e, err := parseICO(data)
	if err != nil {
		return decoded{}, err
	}
	if e.png {
		m, err := png.Decode(bytes.NewReader(e.data))
		return decoded{img: m}, err
	}
	start := e.dib.size
	if e.dib.bits <= 8 {
		start += e.dib.colours * e.dib.entry
	}
	if start > len(e.data) {
		return decoded{}, errDIB
	}
	pix := e.data[start:]
	m, err := decodeDIB(e.dib, e.data, pix, true)
	if err != nil {
		return decoded{}, err
	}
	mask := pix[min(len(pix), e.dib.stride()*e.dib.height):]
	stride := (e.w + 31) / 32 * 4
	if e.dib.bits < 32 && len(mask) >= stride*e.h {
		for y := range e.h {
			row := mask[(e.h-1-y)*stride:]
			for x := range e.w {
				if row[x/8]>>(7-x%8)&1 == 1 {
					m.Pix[y*m.Stride+4*x+3] = 0
				}
			}
		}
	}
	return decoded{img: m}, nil
}

// iconSizes are the widths that Windows and browsers use.
var iconSizes = []int{256, 128, 64, 48, 32, 16}

func iconPlan(p plan) plan {
	p.to, p.all = format.PNG, false
	if !p.exact() {
		p.fit = "" // the bounds below are no box to fill
	}
	if len(p.sizes) > 0 {
		p.width = slices.Max(p.sizes)
		p.height, p.enlarge = p.width, true
		return p
	}
	p.width, p.height = bound(p.width, iconSizes[0]), bound(p.height, iconSizes[0])
	return p
}

func bound(n, limit int) int {
	if n <= 0 {
		return limit
	}
	return min(n, limit)
}

// icon writes an icon that contains a PNG picture of up to 256 pixels and smaller
// versions of it, as PNG files. Windows supports them since Vista.
func (e *Engine) icon(ctx context.Context, first []byte, p plan) ([]byte, error) {
	src := source{first, format.PNG}
	h, err := e.codec.stat(src)
	if err != nil {
		return nil, err
	}
	type item struct {
		png  []byte
		w, h int
	}
	items := []item{{first, h.width, h.height}}
	sizes := iconSizes
	if len(p.sizes) > 0 {
		sizes = p.sizes
	}
	for _, size := range sizes {
		if size >= max(h.width, h.height) {
			continue
		}
		b, err := e.codec.transcode(ctx, src, plan{to: format.PNG, width: size, height: size, meta: keepProfile})
		if err != nil {
			return nil, err
		}
		ih, err := e.codec.stat(source{b, format.PNG})
		if err != nil {
			return nil, err
		}
		items = append(items, item{b, ih.width, ih.height})
	}
	le := binary.LittleEndian
	out := []byte{0, 0, 1, 0, byte(len(items)), 0}
	at := 6 + 16*len(items)
	for _, it := range items {
		if it.w > 256 || it.h > 256 {
			return nil, fileops.Fail(fileops.ErrEngine, nil, "the picture could not be made small enough for an icon")
		}
		out = append(out, byte(it.w), byte(it.h), 0, 0, 1, 0, 32, 0) // 256 is written as 0
		out = le.AppendUint32(out, uint32(len(it.png)))
		out = le.AppendUint32(out, uint32(at))
		at += len(it.png)
	}
	for _, it := range items {
		out = append(out, it.png...)
	}
	return out, nil
}

// ownDecoder returns this package's decoder for a format that the codec does not
// decode, or nil.
func ownDecoder(f format.Format) func([]byte) (decoded, error) {
	switch f {
	case format.BMP:
		return decodeBMP
	case format.ICO:
		return decodeICO
	case format.PSD:
		return decodePSD
	case format.PPM:
		return decodePNM
	case format.TGA:
		return decodeTGA
	case format.ICNS:
		return decodeICNS
	}
	return nil
}

func ownStat(f format.Format) func(source) (header, error) {
	switch f {
	case format.BMP:
		return statBMP
	case format.ICO:
		return statICO
	case format.PSD:
		return statPSD
	case format.PPM:
		return statPNM
	case format.TGA:
		return statTGA
	case format.ICNS:
		return statICNS
	}
	return nil
}
