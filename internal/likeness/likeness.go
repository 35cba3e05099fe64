// Package likeness compares two pictures of a page as a reader sees them: their ink, colours and
// structure, and how much of the text of one page the other one has.
package likeness

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A Page is a picture with three channels from 0 to 255, in rows from the top.
type Page struct {
	W, H int
	RGB  []byte // 3*W*H bytes
}

// Turned returns the page turned clockwise by a quarter.
func (a *Page) Turned() *Page {
	out := &Page{W: a.H, H: a.W, RGB: make([]byte, len(a.RGB))}
	for y := range a.H {
		for x := range a.W {
			copy(out.RGB[3*(x*out.W+a.H-1-y):], a.RGB[3*(y*a.W+x):3*(y*a.W+x)+3])
		}
	}
	return out
}

// A Match says how similar two pages are. Nil means that the first page has nothing to measure.
type Match struct {
	Ink    *float64 // part of the first page's ink that has ink nearby on the second, 0 to 1
	Colour *float64 // part of the coloured and dark areas that is matched, 0 to 1
	Extra  float64  // part of the second page's ink that has none of the first nearby, 0 to 1
	Look   float64  // structural similarity of softened pages, 0 to 1
}

// Total returns a score from 0 to 10: the weighted mean of the parts of a comparison, in which ink
// and text count twice. Parts that are nil do not count. The score is halved if more than half of
// the text is missing. ok is false if no part counts.
func Total(ink, extra, look, colour, text *float64) (score float64, ok bool) {
	var sum, weights float64
	add := func(weight float64, v *float64) {
		if v != nil {
			sum, weights = sum+weight**v, weights+weight
		}
	}
	add(2, ink)
	if extra != nil {
		add(1, ptr(1-*extra))
	}
	add(1, look)
	add(1, colour)
	add(2, text)
	if weights == 0 {
		return 0, false
	}
	score = 10 * sum / weights
	if text != nil && *text < 0.5 {
		score /= 2
	}
	return score, true
}

// Total returns the score of m, with text as the part of the text that the second page has, or nil.
func (m Match) Total(text *float64) float64 {
	score, _ := Total(m.Ink, &m.Extra, &m.Look, m.Colour, text)
	return score
}

// Letters counts the letters and digits of a text, without regard to case. Presentation forms,
// ligatures and the like count as the letters that they stand for (Unicode normalization form KC).
func Letters(text string) map[rune]int {
	n := make(map[rune]int)
	for _, r := range strings.ToLower(norm.NFKC.String(text)) {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			n[r]++
		}
	}
	return n
}

// Common returns the part of the letters in want that have has, or nil for a few letters only.
func Common(want, have map[rune]int) *float64 {
	found, all := 0, 0
	for r, n := range want {
		found, all = found+min(n, have[r]), all+n
	}
	if all <= 20 {
		return nil
	}
	return ptr(float64(found) / float64(all))
}

// Scores of results, from people who looked at some.
const (
	Kept       = 8.0 // people keep a result with this score or a higher one
	ThrownAway = 4.0 // people throw away a result with a lower score
)

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
