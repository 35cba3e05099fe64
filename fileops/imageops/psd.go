package imageops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
)

// This file reads the flattened picture of a Photoshop file, which Photoshop
// writes by default (Adobe Photoshop File Formats Specification, "Image Data
// Section"). It ignores layers.

var errPSD = errors.New("malformed Photoshop file")

// Colour modes of a Photoshop file.
const (
	psdBitmap  = 0
	psdGray    = 1
	psdIndexed = 2
	psdRGB     = 3
	psdCMYK    = 4
	psdDuotone = 8
)

// iccResource is the identifier of the colour profile resource.
const iccResource = 1039

type psdFile struct {
	width, height   int
	channels, depth int
	mode            int
	large           bool // PSB: 4-byte row lengths
	palette         []byte
	profile         []byte
	data            []byte // the image data section
	merged          bool   // the first alpha channel is the picture's transparency
}

func parsePSD(b []byte) (p psdFile, err error) {
	be := binary.BigEndian
	if len(b) < 26 || string(b[:4]) != "8BPS" {
		return p, errPSD
	}
	p.large = be.Uint16(b[4:]) == 2
	p.channels, p.depth, p.mode = int(be.Uint16(b[12:])), int(be.Uint16(b[22:])), int(be.Uint16(b[24:]))
	h, w := be.Uint32(b[14:]), be.Uint32(b[18:])
	if w == 0 || h == 0 || w > 300000 || h > 300000 || p.channels < 1 || p.channels > 56 {
		return p, errPSD
	}
	p.width, p.height = int(w), int(h)
	rest := b[26:]
	section := func(wide bool) ([]byte, error) {
		n, size := uint64(0), 4
		if wide {
			size = 8
		}
		if len(rest) < size {
			return nil, errPSD
		}
		if wide {
			n = be.Uint64(rest)
		} else {
			n = uint64(be.Uint32(rest))
		}
		if n > uint64(len(rest)-size) {
			return nil, errPSD
		}
		s := rest[size : size+int(n)]
		rest = rest[size+int(n):]
		return s, nil
	}
	colours, err := section(false)
	if err != nil {
		return p, err
	}
	resources, err := section(false)
	if err != nil {
		return p, err
	}
	layers, err := section(p.large)
	if err != nil {
		return p, err
	}
	p.palette, p.profile, p.data = colours, psdProfile(resources), rest
	// With a negative layer count the first alpha channel is the transparency of
	// the merged picture.
	if at := map[bool]int{false: 4, true: 8}[p.large]; len(layers) >= at+2 {
		p.merged = int16(be.Uint16(layers[at:])) < 0
	}
	return p, nil
}

// psdProfile returns the ICC profile in the image resource blocks.
func psdProfile(b []byte) []byte {
	be := binary.BigEndian
	for len(b) >= 12 && string(b[:4]) == "8BIM" {
		id := be.Uint16(b[4:])
		name := (int(b[6]) + 2) &^ 1 // a Pascal string, padded to even
		if len(b) < 6+name+4 {
			return nil
		}
		size := int64(be.Uint32(b[6+name:]))
		b = b[6+name+4:]
		if size > int64(len(b)) {
			return nil
		}
		if id == iccResource {
			return b[:size]
		}
		b = b[min(int64(len(b)), (size+1)&^1):]
	}
	return nil
}

func statPSD(src source) (header, error) {
	p, err := parsePSD(src.data)
	return header{width: p.width, height: p.height, pages: 1, bits: p.depth, profile: p.profile != nil, cmyk: p.mode == psdCMYK}, err
}

func decodePSD(data []byte) (decoded, error) {
	p, err := parsePSD(data)
	if err != nil {
		return decoded{}, err
	}
	need := map[int]int{psdBitmap: 1, psdGray: 1, psdIndexed: 1, psdRGB: 3, psdCMYK: 4, psdDuotone: 1}[p.mode]
	if need == 0 || p.depth != 8 && p.depth != 16 && (p.depth != 1 || p.mode != psdBitmap) {
		return decoded{}, fmt.Errorf("photoshop mode %d of %d bits: %w", p.mode, p.depth, errors.ErrUnsupported)
	}
	if p.channels < need || p.mode == psdIndexed && len(p.palette) < 768 {
		return decoded{}, errPSD
	}
	planes := need
	if p.merged && p.channels > need && (p.mode == psdRGB || p.mode == psdGray) {
		planes++
	}
	ch, err := p.planes(planes)
	if err != nil {
		return decoded{}, err
	}
	r, n := image.Rect(0, 0, p.width, p.height), p.width*p.height
	switch {
	case p.mode == psdCMYK:
		m := image.NewCMYK(r)
		for i := range n {
			for c := range 4 {
				m.Pix[4*i+c] = 255 - ch[c][i] // stored as amounts of light, not of ink
			}
		}
		return decoded{img: m, profile: p.profile}, nil
	case p.mode == psdIndexed:
		m := image.NewNRGBA(r)
		for i, v := range ch[0] {
			m.Pix[4*i], m.Pix[4*i+1], m.Pix[4*i+2], m.Pix[4*i+3] = p.palette[v], p.palette[256+int(v)], p.palette[512+int(v)], 255
		}
		return decoded{img: m, profile: p.profile}, nil
	case planes == 1:
		return decoded{img: &image.Gray{Pix: ch[0], Stride: p.width, Rect: r}, profile: p.profile}, nil
	}
	m := image.NewNRGBA(r)
	profile := p.profile
	for i := range n {
		o := m.Pix[4*i : 4*i+4]
		if need == 1 {
			o[0], o[1], o[2] = ch[0][i], ch[0][i], ch[0][i]
			profile = nil // the profile is for gray
		} else {
			o[0], o[1], o[2] = ch[0][i], ch[1][i], ch[2][i]
		}
		o[3] = 255
		if planes > need {
			o[3] = ch[need][i]
			unblend(o)
		}
	}
	return decoded{img: m, profile: profile}, nil
}

// unblend removes the white that Photoshop blends into transparent colours of the
// merged picture.
func unblend(o []byte) {
	a := int(o[3])
	if a == 0 || a == 255 {
		return
	}
	for c := range 3 {
		o[c] = byte(min(255, max(0, (int(o[c])*255-255*(255-a))/a)))
	}
}

// planes decodes the first n channels to 8 bits per sample.
func (p *psdFile) planes(n int) ([][]byte, error) {
	be := binary.BigEndian
	if len(p.data) < 2 {
		return nil, errPSD
	}
	method, b := be.Uint16(p.data), p.data[2:]
	row := p.width * p.depth / 8
	if p.depth == 1 {
		row = (p.width + 7) / 8
	}
	var lengths []byte
	size := 2
	switch method {
	case 0:
		if int64(len(b)) < int64(row)*int64(p.height)*int64(n) {
			return nil, fmt.Errorf("%w: pixels are missing", errPSD)
		}
	case 1:
		if p.large {
			size = 4
		}
		table := int64(size) * int64(p.height) * int64(p.channels)
		if int64(len(b)) < table {
			return nil, errPSD
		}
		lengths, b = b[:table], b[table:]
	default:
		return nil, fmt.Errorf("photoshop compression %d: %w", method, errors.ErrUnsupported)
	}
	out := make([][]byte, n)
	line := make([]byte, row)
	for c := range out {
		out[c] = make([]byte, p.width*p.height)
		for y := range p.height {
			if method == 0 {
				copy(line, b)
				b = b[row:]
			} else {
				i := (c*p.height + y) * size
				k := int64(be.Uint16(lengths[i:]))
				if size == 4 {
					k = int64(be.Uint32(lengths[i:]))
				}
				if k > int64(len(b)) || !unpackBits(line, b[:k]) {
					return nil, fmt.Errorf("%w: pixels are missing", errPSD)
				}
				b = b[k:]
			}
			dst := out[c][y*p.width:][:p.width]
			switch p.depth {
			case 8:
				copy(dst, line)
			case 16:
				for x := range dst {
					dst[x] = line[2*x]
				}
			case 1:
				for x := range dst {
					dst[x] = 255 * (1 - line[x/8]>>(7-x%8)&1)
				}
			}
		}
	}
	return out, nil
}

// unpackBits decodes PackBits (TIFF 6.0, section 9) and reports whether it
// filled dst.
func unpackBits(dst, src []byte) bool {
	for len(dst) > 0 {
		if len(src) < 2 {
			return false
		}
		n := int(int8(src[0]))
		src = src[1:]
		switch {
		case n >= 0:
			n++
			if n > len(src) || n > len(dst) {
				return false
			}
			copy(dst, src[:n])
			dst, src = dst[n:], src[n:]
		case n != -128:
			n = 1 - n
			if n > len(dst) {
				return false
			}
			for i := range n {
				dst[i] = src[0]
			}
			dst, src = dst[n:], src[1:]
		}
	}
	return true
}
