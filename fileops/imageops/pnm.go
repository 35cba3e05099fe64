package imageops

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"strconv"
	"strings"
)

// This file reads and writes the formats of Netpbm: PBM, PGM, PPM and PAM (Netpbm, "PPM
// Format Specification" and related pages). Of several pictures in a file it reads the
// first.

var errPNM = errors.New("malformed Netpbm file")

// A pnmFile is a parsed header.
type pnmFile struct {
	width, height int
	depth         int // samples for each pixel
	most          int // the largest value of a sample
	alpha         bool
	plain         bool   // samples are decimal numbers
	bitmap        bool   // PBM, where 1 is black
	data          []byte // samples
}

// parsePNM reads the header.
func parsePNM(b []byte) (p pnmFile, err error) {
	if len(b) < 3 || b[0] != 'P' {
		return p, errPNM
	}
	kind, rest := b[1], b[2:]
	if kind == '7' {
		return parsePAM(b)
	}
	p.depth, p.most, p.plain = 1, 1, kind <= '3'
	numbers := []*int{&p.width, &p.height, &p.most}
	switch kind {
	case '1', '4':
		p.bitmap, numbers = true, numbers[:2]
	case '2', '5':
	case '3', '6':
		p.depth = 3
	default:
		return p, errPNM
	}
	for _, n := range numbers {
		if *n, rest, err = pnmNumber(rest); err != nil {
			return p, err
		}
	}
	if len(rest) == 0 {
		return p, errPNM
	}
	p.data = rest[1:] // one white space
	return p, p.check()
}

// pnmNumber reads a decimal number after white space and comments.
func pnmNumber(b []byte) (n int, rest []byte, err error) {
	for len(b) > 0 && (isSpace(b[0]) || b[0] == '#') {
		if b[0] != '#' {
			b = b[1:]
			continue
		}
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	i := 0
	for i < len(b) && i < 10 && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	n, err = strconv.Atoi(string(b[:i]))
	if err != nil {
		return 0, nil, errPNM
	}
	return n, b[i:], nil
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// parsePAM reads the header of a PAM file: lines with a name and a value.
func parsePAM(b []byte) (p pnmFile, err error) {
	tuple := ""
	fields := map[string]*int{"WIDTH": &p.width, "HEIGHT": &p.height, "DEPTH": &p.depth, "MAXVAL": &p.most}
	_, rest, _ := bytes.Cut(b[:min(len(b), 64<<10)], []byte("\n"))
	for {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			return p, errPNM
		}
		rest = after
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		switch value = strings.TrimSpace(value); {
		case name == "ENDHDR":
			p.alpha = strings.HasSuffix(tuple, "_ALPHA")
			p.data = b[min(len(b), 64<<10)-len(rest):]
			if want := map[string]int{"": p.depth, "BLACKANDWHITE": 1, "GRAYSCALE": 1, "RGB": 3, "BLACKANDWHITE_ALPHA": 2, "GRAYSCALE_ALPHA": 2, "RGB_ALPHA": 4}[tuple]; want != p.depth {
				return p, fmt.Errorf("PAM of the type %.40q: %w", tuple, errors.ErrUnsupported)
			}
			if p.depth == 2 || p.depth == 4 {
				p.alpha = true
			}
			return p, p.check()
		case name == "TUPLTYPE":
			tuple = value
		case fields[name] != nil:
			if *fields[name], err = strconv.Atoi(value); err != nil {
				return p, errPNM
			}
		}
	}
}

func (p pnmFile) check() error {
	if p.width <= 0 || p.height <= 0 || p.width > 1<<24 || p.height > 1<<24 || p.most < 1 || p.most > 65535 || p.depth < 1 || p.depth > 4 {
		return errPNM
	}
	return nil
}

func (p pnmFile) bits() int {
	if p.most > 255 {
		return 16
	}
	return 8
}

func statPNM(src source) (header, error) {
	p, err := parsePNM(src.data)
	return header{width: p.width, height: p.height, pages: 1, bits: p.bits(), alpha: p.alpha, bilevel: p.most == 1 && p.depth == 1}, err
}

func decodePNM(b []byte) (decoded, error) {
	p, err := parsePNM(b)
	if err != nil {
		return decoded{}, err
	}
	next, err := p.samples()
	if err != nil {
		return decoded{}, err
	}
	r, n := image.Rect(0, 0, p.width, p.height), p.width*p.height
	if p.depth == 1 {
		m := image.NewGray(r)
		for i := range n {
			if m.Pix[i], err = next(); err != nil {
				return decoded{}, err
			}
		}
		return decoded{img: m}, nil
	}
	m := image.NewNRGBA(r)
	var s [4]byte
	for i := range n {
		for c := range p.depth {
			if s[c], err = next(); err != nil {
				return decoded{}, err
			}
		}
		o := m.Pix[4*i : 4*i+4]
		switch p.depth {
		case 2:
			o[0], o[1], o[2], o[3] = s[0], s[0], s[0], s[1]
		case 3:
			o[0], o[1], o[2], o[3] = s[0], s[1], s[2], 255
		case 4:
			copy(o, s[:])
		}
	}
	return decoded{img: m}, nil
}

// samples returns a function that returns the samples one after the other, scaled to 8 bits.
func (p pnmFile) samples() (func() (byte, error), error) {
	missing := fmt.Errorf("%w: pixels are missing", errPNM)
	scale := func(v int) byte { return byte((min(v, p.most)*255 + p.most/2) / p.most) }
	data := p.data
	if p.plain {
		return func() (byte, error) {
			var v int
			var err error
			if p.bitmap { // digits need no white space between them
				data = bytes.TrimLeft(data, " \t\r\n\v\f")
				if len(data) == 0 || data[0] != '0' && data[0] != '1' {
					return 0, missing
				}
				v, data = int('1'-data[0]), data[1:]
				return scale(v), nil
			}
			if v, data, err = pnmNumber(data); err != nil {
				return 0, missing
			}
			return scale(v), nil
		}, nil
	}
	if p.bitmap {
		stride := (p.width + 7) / 8
		if int64(len(data)) < int64(stride)*int64(p.height) {
			return nil, missing
		}
		i := 0
		return func() (byte, error) {
			x, y := i%p.width, i/p.width
			i++
			return 255 * (1 - data[y*stride+x/8]>>(7-x%8)&1), nil
		}, nil
	}
	size := p.bits() / 8
	if int64(len(data)) < int64(p.width)*int64(p.height)*int64(p.depth)*int64(size) {
		return nil, missing
	}
	return func() (byte, error) {
		v := int(data[0])
		if size == 2 {
			v = v<<8 | int(data[1])
		}
		data = data[size:]
		return scale(v), nil
	}, nil
}

// encodePNM writes an opaque picture as PPM, or as PGM if it is gray.
func encodePNM(m image.Image) []byte {
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	if g, ok := m.(*image.Gray); ok {
		out := fmt.Appendf(nil, "P5\n%d %d\n255\n", w, h)
		for y := range h {
			out = append(out, g.Pix[y*g.Stride:][:w]...)
		}
		return out
	}
	out := fmt.Appendf(make([]byte, 0, 3*w*h+32), "P6\n%d %d\n255\n", w, h)
	eachPixel(m, func(r, g, b, _ uint8) { out = append(out, r, g, b) })
	return out
}

// eachPixel calls do for each pixel of a picture, row by row.
func eachPixel(m image.Image, do func(r, g, b, a uint8)) {
	r := m.Bounds()
	if n, ok := m.(*image.NRGBA); ok {
		for y := range r.Dy() {
			row := n.Pix[y*n.Stride:][:4*r.Dx()]
			for x := 0; x < len(row); x += 4 {
				do(row[x], row[x+1], row[x+2], row[x+3])
			}
		}
		return
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c, _ := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA) // its only type
			do(c.R, c.G, c.B, c.A)
		}
	}
}
