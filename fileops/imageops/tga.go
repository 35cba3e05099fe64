package imageops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
)

// This file reads and writes Targa pictures (Truevision TGA File Format Specification 2.0).

var errTGA = errors.New("malformed Targa file")

const (
	tgaHeader = 18
	tgaFooter = "\x00\x00\x00\x00\x00\x00\x00\x00TRUEVISION-XFILE.\x00" // no extension, no developer area

	tgaRight = 1 << 4 // rows start at the right
	tgaTop   = 1 << 5 // the first row is at the top
)

// A tgaFile is a parsed header.
type tgaFile struct {
	width, height int
	kind          int // 1 palette, 2 colour, 3 gray
	packed        bool
	bits          int // of a pixel
	alpha         int // bits of it that are transparency
	flags         byte

	palette     []byte
	first       int // index of the first colour of palette
	paletteBits int
	data        []byte
}

func parseTGA(b []byte) (t tgaFile, err error) {
	le := binary.LittleEndian
	if len(b) < tgaHeader {
		return t, errTGA
	}
	t.kind, t.packed = int(b[2]&7), b[2]&8 != 0
	t.first, t.paletteBits = int(le.Uint16(b[3:])), int(b[7])
	t.width, t.height = int(le.Uint16(b[12:])), int(le.Uint16(b[14:]))
	t.bits, t.alpha, t.flags = int(b[16]), int(b[17]&15), b[17]
	if t.width == 0 || t.height == 0 || t.kind < 1 || t.kind > 3 || b[2] > 11 {
		return t, errTGA
	}
	rest := b[tgaHeader:]
	skip := int(b[0])
	colours := 0
	if b[1] == 1 {
		colours = int(le.Uint16(b[5:])) * ((t.paletteBits + 7) / 8)
	}
	if len(rest) < skip+colours {
		return t, errTGA
	}
	t.palette, t.data = rest[skip:skip+colours], rest[skip+colours:]
	known := map[int][]int{1: {8, 16}, 2: {15, 16, 24, 32}, 3: {8, 16}}[t.kind]
	for _, n := range known {
		if n == t.bits {
			return t, nil
		}
	}
	return t, fmt.Errorf("targa of type %d with %d bits: %w", t.kind, t.bits, errors.ErrUnsupported)
}

func (t tgaFile) hasAlpha() bool {
	bits := t.bits
	if t.kind == 1 {
		bits = t.paletteBits
	}
	return t.alpha > 0 && (bits == 32 || bits == 16)
}

func statTGA(src source) (header, error) {
	t, err := parseTGA(src.data)
	return header{width: t.width, height: t.height, pages: 1, bits: 8, alpha: t.hasAlpha()}, err
}

// pixel decodes one pixel of colour, stored as blue, green, red and transparency.
func (t tgaFile) pixel(b []byte, bits int) (p [4]byte) {
	switch bits {
	case 8:
		return [4]byte{b[0], b[0], b[0], 255}
	case 15, 16:
		v := binary.LittleEndian.Uint16(b)
		five := func(n uint16) byte { return byte(n & 31 * 255 / 31) }
		p = [4]byte{five(v >> 10), five(v >> 5), five(v), 255}
		if t.hasAlpha() && v>>15 == 0 {
			p[3] = 0
		}
		return p
	case 24:
		return [4]byte{b[2], b[1], b[0], 255}
	}
	p = [4]byte{b[2], b[1], b[0], 255}
	if t.hasAlpha() {
		p[3] = b[3]
	}
	return p
}

func decodeTGA(b []byte) (decoded, error) {
	t, err := parseTGA(b)
	if err != nil {
		return decoded{}, err
	}
	missing := fmt.Errorf("%w: pixels are missing", errTGA)
	size, each := (t.bits+7)/8, (t.paletteBits+7)/8
	m := image.NewNRGBA(image.Rect(0, 0, t.width, t.height))
	data := t.data
	seen := false // a pixel that is not transparent
	var pixel [4]byte
	read := func() error {
		if len(data) < size {
			return missing
		}
		v := data[:size]
		data = data[size:]
		switch {
		case t.kind == 3: // gray, perhaps with transparency
			pixel = [4]byte{v[0], v[0], v[0], 255}
			if size == 2 && t.alpha > 0 {
				pixel[3] = v[1]
			}
		case t.kind == 1:
			i := int(v[0])
			if size == 2 {
				i |= int(v[1]) << 8
			}
			if i -= t.first; i < 0 || each == 0 || (i+1)*each > len(t.palette) {
				return errTGA
			}
			pixel = t.pixel(t.palette[i*each:], t.paletteBits)
		default:
			pixel = t.pixel(v, t.bits)
		}
		return nil
	}
	run, same := 0, false
	for i := range t.width * t.height {
		if t.packed && run == 0 {
			if len(data) == 0 {
				return decoded{}, missing
			}
			run, same = int(data[0]&127)+1, data[0]&128 != 0
			data = data[1:]
			if same {
				if err := read(); err != nil {
					return decoded{}, err
				}
			}
		}
		if !t.packed || !same {
			if err := read(); err != nil {
				return decoded{}, err
			}
		}
		run--
		x, y := i%t.width, i/t.width
		if t.flags&tgaRight != 0 {
			x = t.width - 1 - x
		}
		if t.flags&tgaTop == 0 {
			y = t.height - 1 - y
		}
		copy(m.Pix[y*m.Stride+4*x:], pixel[:])
		seen = seen || pixel[3] != 0
	}
	if !seen { // some programs leave the transparency empty
		for i := 3; i < len(m.Pix); i += 4 {
			m.Pix[i] = 255
		}
	}
	return decoded{img: m}, nil
}

// encodeTGA writes a picture without compression, with 24 bits, or 32 if it is transparent.
func encodeTGA(m image.Image) ([]byte, error) {
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	if w > 65535 || h > 65535 {
		return nil, fmt.Errorf("%d × %d pixels are too many for a Targa file", w, h)
	}
	o, ok := m.(interface{ Opaque() bool })
	size := 4
	if ok && o.Opaque() {
		size = 3
	}
	out := make([]byte, tgaHeader, tgaHeader+size*w*h+len(tgaFooter))
	out[2], out[16], out[17] = 2, byte(8*size), tgaTop
	if size == 4 {
		out[17] |= 8
	}
	binary.LittleEndian.PutUint16(out[12:], uint16(w))
	binary.LittleEndian.PutUint16(out[14:], uint16(h))
	eachPixel(m, func(r, g, b, a uint8) {
		if out = append(out, b, g, r); size == 4 {
			out = append(out, a)
		}
	})
	return append(out, tgaFooter...), nil
}
