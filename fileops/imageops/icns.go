package imageops

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
)

// This file reads the icons of macOS: the largest of their pictures that is PNG, or packed
// bits with a mask. Those with JPEG 2000 are passed over.

var errICNS = errors.New("malformed icon of macOS")

// An icnsPicture is a picture in an icon.
type icnsPicture struct {
	side int
	png  []byte // nil for packed bits
	bits []byte // red, green and blue, each packed
	mask []byte // one byte for each pixel; nil if there is none

	// jp2 is a larger picture of the icon, in JPEG 2000, or nil. Icons of Mac OS X 10.5 and 10.6 have
	// one for 256 and 512 pixels.
	jp2 []byte
}

// packedICNS lists the pictures of packed bits, with the names of their masks.
var packedICNS = map[string]struct {
	side int
	mask string
}{"is32": {16, "s8mk"}, "il32": {32, "l8mk"}, "ih32": {48, "h8mk"}, "it32": {128, "t8mk"}}

// parseICNS returns the largest picture that this package can read, and a larger one in JPEG 2000 even
// if there is no other.
func parseICNS(b []byte) (best icnsPicture, err error) {
	if len(b) < 8 || string(b[:4]) != "icns" {
		return best, errICNS
	}
	parts := make(map[string][]byte)
	var jp2 []byte
	for rest := b[8:]; len(rest) >= 8; {
		n := int64(binary.BigEndian.Uint32(rest[4:]))
		if n < 8 || n > int64(len(rest)) {
			return best, errICNS
		}
		name, content := string(rest[:4]), rest[8:n]
		rest = rest[n:]
		parts[name] = content
		if jpeg2000Width(content) > jpeg2000Width(jp2) {
			jp2 = content
		}
		if bytes.HasPrefix(content, []byte("\x89PNG\r\n\x1a\n")) {
			c, err := png.DecodeConfig(bytes.NewReader(content))
			if err != nil {
				return best, err
			}
			if c.Width > best.side {
				best = icnsPicture{side: c.Width, png: content}
			}
		}
	}
	for name, p := range packedICNS {
		bits := parts[name]
		if name == "it32" && len(bits) >= 4 {
			bits = bits[4:] // zeros
		}
		if len(bits) > 0 && p.side > best.side {
			best = icnsPicture{side: p.side, bits: bits, mask: parts[p.mask]}
		}
	}
	if jpeg2000Width(jp2) > best.side {
		best.jp2 = jp2
	}
	if best.side == 0 {
		return best, fmt.Errorf("icon of macOS without PNG: %w", errors.ErrUnsupported)
	}
	return best, nil
}

// jpeg2000Width returns the width of a picture in JPEG 2000, or 0 for other content. The box ihdr starts
// with height and width (ISO/IEC 15444-1, I.5.3.1).
func jpeg2000Width(b []byte) int {
	at := bytes.Index(b, []byte("ihdr"))
	if at < 0 || len(b) < at+12 || !bytes.HasPrefix(b, []byte("\x00\x00\x00\x0cjP  \r\n\x87\n")) {
		return 0
	}
	return int(binary.BigEndian.Uint32(b[at+8:]))
}

func statICNS(src source) (header, error) {
	p, err := parseICNS(src.data)
	h := header{width: p.side, height: p.side, pages: 1, bits: 8, alpha: true}
	if p.png != nil {
		c, err := png.DecodeConfig(bytes.NewReader(p.png))
		if err != nil {
			return h, err
		}
		h.width, h.height = c.Width, c.Height
	}
	return h, err
}

func decodeICNS(b []byte) (decoded, error) {
	p, err := parseICNS(b)
	if err != nil {
		return decoded{}, err
	}
	if p.png != nil {
		m, err := png.Decode(bytes.NewReader(p.png))
		if err != nil {
			return decoded{}, err
		}
		n := image.NewNRGBA(m.Bounds())
		draw.Draw(n, n.Rect, m, m.Bounds().Min, draw.Src)
		return decoded{img: n}, nil
	}
	n := p.side * p.side
	planes, ok := unpackICNS(p.bits, 3*n)
	if !ok {
		return decoded{}, fmt.Errorf("%w: pixels are missing", errICNS)
	}
	m := image.NewNRGBA(image.Rect(0, 0, p.side, p.side))
	for i := range n {
		c := color.NRGBA{planes[i], planes[n+i], planes[2*n+i], 255}
		if len(p.mask) >= n {
			c.A = p.mask[i]
		}
		m.SetNRGBA(i%p.side, i/p.side, c)
	}
	return decoded{img: m}, nil
}

// unpackICNS decodes the packed bits of icons to n bytes: a byte from 0 to 127 precedes one
// byte more of content, and a byte from 128 a byte that is repeated 125 times less.
func unpackICNS(b []byte, n int) ([]byte, bool) {
	out := make([]byte, 0, n)
	for len(b) > 1 && len(out) < n {
		k := int(b[0])
		if k < 128 {
			k = min(k+1, len(b)-1)
			out = append(out, b[1:1+k]...)
			b = b[1+k:]
			continue
		}
		out = append(out, bytes.Repeat(b[1:2], k-125)...)
		b = b[2:]
	}
	return out[:min(len(out), n)], len(out) >= n
}
