package fidelity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// A Page is a picture with three channels from 0 to 255, in rows from the top.
type Page struct {
	W, H int
	RGB  []byte // 3*W*H bytes
}

// Draw draws at most n pages of a PDF with pdftoppm, cut to the crop box as in a viewer. It draws no
// page of a file that poppler cannot read.
func Draw(ctx context.Context, pdf string, n int) ([]*Page, error) {
	out, err := output(ctx, "pdftoppm", "-cropbox", "-r", strconv.Itoa(DPI), "-l", strconv.Itoa(n), pdf)
	if err != nil {
		return nil, err
	}
	var pages []*Page
	for len(out) > 0 {
		p, rest, err := ParsePPM(out)
		if err != nil {
			return pages, err
		}
		pages, out = append(pages, p), rest
	}
	return pages, nil
}

var errPPM = errors.New("the picture is no complete PPM file with 8 bits per channel")

// ParsePPM reads one binary portable pixmap (netpbm, ppm(5)) and returns the bytes after it.
func ParsePPM(b []byte) (*Page, []byte, error) {
	p, depth := new(Page), 0
	r := bytes.NewReader(b)
	if _, err := fmt.Fscanf(r, "P6\n%d %d\n%d\n", &p.W, &p.H, &depth); err != nil || depth != 255 || p.W < 1 || p.H < 1 {
		return nil, nil, errPPM
	}
	rest := b[len(b)-r.Len():]
	if len(rest)/3/p.W < p.H {
		return nil, nil, errPPM
	}
	n := 3 * p.W * p.H
	p.RGB = rest[:n:n]
	return p, rest[n:], nil
}

// A Match says how similar two pages are. Nil means that the first page has nothing to measure.
// See [Score] for the fields.
type Match struct {
	Ink, Colour *float64
	Extra, Look float64
}

// Match compares b with the page a. b is cut to the size of a, or filled with white.
func (a *Page) Match(b *Page) Match {
	b = b.fit(a.W, a.H)
	ga, gb := a.gray(), b.gray()
	ia, ib := a.ink(), b.ink()
	near := max(3, a.H/60)
	var m Match
	if n := ia.count(); n > 20 {
		m.Ink = ptr(float64(ia.and(ib.grow(near, a.W, a.H)).count()) / float64(n))
	}
	if n := ib.count(); n > 20 {
		m.Extra = 1 - float64(ib.and(ia.grow(near, a.W, a.H)).count())/float64(n)
	}
	m.Look = min(max(0, similarity(ga, gb, a.W, a.H)), 1)
	ca, cb := a.areas(ga), b.areas(gb)
	if n := ca.count(); float64(n) > 0.01*float64(a.W*a.H) {
		m.Colour = ptr(float64(ca.and(cb.grow(near, a.W, a.H)).count()) / float64(n))
	}
	return m
}

func ptr(v float64) *float64 { return &v }

func (a *Page) fit(w, h int) *Page {
	if a.W == w && a.H == h {
		return a
	}
	out := &Page{W: w, H: h, RGB: bytes.Repeat([]byte{255}, 3*w*h)}
	for y := range min(h, a.H) {
		copy(out.RGB[3*w*y:3*w*(y+1)], a.RGB[3*a.W*y:3*a.W*(y+1)])
	}
	return out
}

// A plane has one value for each pixel.
type plane []float32

// A mask selects pixels.
type mask []bool

func (m mask) count() (n int) {
	for _, set := range m {
		if set {
			n++
		}
	}
	return n
}

func (m mask) and(o mask) mask {
	out := make(mask, len(m))
	for i := range m {
		out[i] = m[i] && o[i]
	}
	return out
}

// grow selects every pixel that is at most r rows and columns from a selected pixel.
func (m mask) grow(r, w, h int) mask {
	p := make(plane, len(m))
	for i, set := range m {
		if set {
			p[i] = 1
		}
	}
	out := make(mask, len(m))
	for i, v := range p.box(r, w, h) {
		out[i] = v > 1e-6
	}
	return out
}

// gray returns the mean of the channels.
func (a *Page) gray() plane {
	g := make(plane, a.W*a.H)
	for i := range g {
		g[i] = float32(int(a.RGB[3*i])+int(a.RGB[3*i+1])+int(a.RGB[3*i+2])) / 3
	}
	return g
}

// ink selects what differs from the paper, whose brightness is the median.
func (a *Page) ink() mask {
	g := a.gray()
	sorted := slices.Sorted(slices.Values(g))
	n := len(sorted)
	paper := (sorted[(n-1)/2] + sorted[n/2]) / 2
	m := make(mask, n)
	for i, v := range g {
		m[i] = v-paper > 40 || paper-v > 40
	}
	return m
}

// Blank reports whether the page has no ink: all of it has nearly the brightness of the paper.
func (a *Page) Blank() bool { return a.ink().count() == 0 }

// areas selects coloured and dark areas: pictures, bands and boxes, but not text.
func (a *Page) areas(gray plane) mask {
	colour := make(plane, len(gray))
	for i := range colour {
		r, g, b := a.RGB[3*i], a.RGB[3*i+1], a.RGB[3*i+2]
		colour[i] = float32(max(r, g, b) - min(r, g, b))
	}
	colour = colour.box(2, a.W, a.H)
	gray = gray.box(2, a.W, a.H)
	m := make(mask, len(gray))
	for i := range m {
		m[i] = colour[i] > 35 || gray[i] < 170
	}
	return m
}

// box returns the mean of the square around each pixel, with r pixels on each side. Pixels at the
// border are repeated outside the page.
//
// The summed-area table has single precision. Its rounding errors are part of the measure: almost
// flat areas at the end of a page count as busy.
func (p plane) box(r, w, h int) plane {
	n := 2*r + 1
	tw, th := w+n, h+n // with a row and a column of zeros at the start
	table := make(plane, tw*th)
	for y := 1; y < th; y++ {
		row := p[min(max(y-1-r, 0), h-1)*w:]
		for x := 1; x < tw; x++ {
			table[y*tw+x] = row[min(max(x-1-r, 0), w-1)] + table[(y-1)*tw+x]
		}
	}
	for y := range th {
		for x := 1; x < tw; x++ {
			table[y*tw+x] += table[y*tw+x-1]
		}
	}
	out := make(plane, len(p))
	for y := range h {
		top, bottom := table[y*tw:], table[(y+n)*tw:]
		for x := range w {
			out[y*w+x] = (bottom[x+n] - top[x+n] - bottom[x] + top[x]) / float32(n*n)
		}
	}
	return out
}

// similarity returns the mean structural similarity of two softened pages (Wang, Bovik, Sheikh and
// Simoncelli 2004, equation 13), where either page is not blank.
func similarity(a, b plane, w, h int) float64 {
	const r, c1, c2, busy = 5, 6.5, 58.5, 20
	times := func(a, b plane) plane {
		out := make(plane, len(a))
		for i := range a {
			out[i] = a[i] * b[i]
		}
		return out.box(r, w, h)
	}
	a, b = a.box(2, w, h), b.box(2, w, h)
	ma, mb, aa, bb, ab := a.box(r, w, h), b.box(r, w, h), times(a, a), times(b, b), times(a, b)
	sum, n := 0.0, 0.0
	for i := range ma {
		x, y := ma[i], mb[i]
		va, vb, cov := aa[i]-x*x, bb[i]-y*y, ab[i]-x*y
		if va > busy || vb > busy {
			va, vb = max(va, 0), max(vb, 0) // rounding
			s := (2*x*y + c1) * (2*cov + c2) / ((x*x + y*y + c1) * (va + vb + c2))
			sum += float64(s)
			n++
		}
	}
	if n == 0 {
		return 1
	}
	return sum / n
}
