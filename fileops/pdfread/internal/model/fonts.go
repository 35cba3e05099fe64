package model

import (
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// widths holds the character widths of a font, in thousandths of its size.
type widths struct {
	ascii        [95]uint16 // from the space to the tilde
	upper, lower uint16     // of other letters, on average
}

// of returns the width of a text, in units of the font size.
func (w *widths) of(text string) float64 {
	sum := 0
	for _, r := range text {
		if r >= 0x80 {
			if d := norm.NFD.String(string(r)); len(d) > 0 && d[0] < 0x80 {
				r = rune(d[0]) // the base letter without accents
			}
		}
		switch {
		case r >= ' ' && r <= '~':
			sum += int(w.ascii[r-' '])
		case r == '\u00ad' || unicode.Is(unicode.Mn, r):
		case r >= 0x2e80 && r < 0xfb00 || r >= 0xff00 && r < 0xff60: // East Asian characters are square
			sum += 1000
		case r == '\u2014' || r == '\u2026':
			sum += 1000
		case r == '\u2018' || r == '\u2019':
			sum += int(w.ascii['('-' '])
		case unicode.IsUpper(r):
			sum += int(w.upper)
		default:
			sum += int(w.lower)
		}
	}
	return float64(sum) / 1000
}

// metrics returns the character widths of the stand-in for f, or nil if they are
// unknown.
func (f *Font) metrics() *widths {
	if f == nil {
		return nil
	}
	pick := func(regular, bold, italic, both *widths) *widths {
		switch {
		case f.Bold && f.Italic:
			return both
		case f.Bold:
			return bold
		case f.Italic:
			return italic
		}
		return regular
	}
	switch f.Latin {
	case "Arial", "Liberation Sans":
		return pick(&sansWidths, &sansBoldWidths, &sansWidths, &sansBoldWidths)
	case "Times New Roman", "Liberation Serif":
		return pick(&serifWidths, &serifBoldWidths, &serifItalicWidths, &serifBoldItalicWidths)
	case "Courier New", "Liberation Mono":
		return &monoWidths
	}
	return nil
}

// FontScales returns the width of each font relative to its stand-in, in per
// cent. It omits fonts without a difference.
func FontScales(sheets []*Sheet) map[*Font]int {
	type sum struct{ is, nominal float64 }
	sums := make(map[*Font]*sum)
	for _, s := range sheets {
		for _, w := range s.Words {
			if w.Turn != 0 || len(w.Spans) != 1 || w.Spans[0].Raise != 0 || w.RTL {
				continue
			}
			sp := &w.Spans[0]
			m := sp.Font.metrics()
			if m == nil || strings.ContainsFunc(sp.Text, func(r rune) bool { return r >= 0x250 || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r > '~' }) {
				continue
			}
			x := sums[sp.Font]
			if x == nil {
				x = &sum{}
				sums[sp.Font] = x
			}
			x.is += w.W()
			x.nominal += m.of(sp.Text) * sp.Size
		}
	}
	out := make(map[*Font]int)
	for f, x := range sums {
		if !(x.nominal > 0) {
			continue
		}
		if p := int(math.Round(100 * x.is / x.nominal)); p < 99 || p > 101 {
			out[f] = min(max(p, 50), 200)
		}
	}
	return out
}

// lineWidth estimates the width of a line in points, or returns 0 if it is
// unknown.
func (d *Document) lineWidth(l *Line) float64 {
	sum := 0.0
	for i, w := range l.Words {
		for k, sp := range w.Spans {
			text := sp.Text
			if i > 0 && k == 0 && !w.Glued {
				text = " " + text
			}
			width, ok := d.spanWidth(w, &sp, text)
			if !ok || w.RTL {
				return 0
			}
			sum += width
		}
	}
	return sum
}

// spanWidth estimates the width of text in the style of a span of w, in points. ok is
// false if it is unknown.
func (d *Document) spanWidth(w *Word, sp *Span, text string) (width float64, ok bool) {
	m := sp.Font.metrics()
	if m == nil {
		return 0, false
	}
	size := sp.Size
	if sp.Raise != 0 {
		size = 0.6 * w.Size
	}
	return m.of(text) * size * float64(d.Scale(sp.Font)) / 100, true
}

// Scale returns the character width for f, in per cent.
func (d *Document) Scale(f *Font) int {
	if p, ok := d.Scales[f]; ok {
		return p
	}
	return 100
}

// tightBorders is the width of a cell that its borders take from the text, points.
const tightBorders = 1.5

// Squeeze returns a character width in per cent at which a paragraph takes no
// more lines than in the PDF file; 100 means no change. room is the width of its
// lines in the document. tight means that the paragraph is in a cell.
func (d *Document) Squeeze(lines []*Line, room float64, tight bool) int {
	least := 80
	if tight {
		least = 60
		room -= tightBorders
	}
	var is, will, longest float64
	for _, l := range lines {
		w := d.lineWidth(l)
		if w == 0 && tight {
			w = 1.12 * l.W() // the typical width of similar fonts
		}
		if w == 0 {
			return 100
		}
		is += l.W()
		will += w
		longest = max(longest, w)
	}
	k := 1.0
	switch {
	case len(lines) == 1:
		if longest > room && room > 0 {
			k = room / longest
		}
	case tight && longest > room && room > 0: // a single word must not wrap either
		k = room / longest
	case will > 1.015*is && longest > room:
		k = is / will
	}
	return min(100, max(least, int(100*k)))
}

// Fit returns the character width in per cent at which a line is as wide as in
// the PDF file; 100 if that is unknown. vertical means that the line runs up or
// down.
func (d *Document) Fit(l *Line, vertical bool) int {
	is, will := l.W(), d.lineWidth(l)
	if vertical {
		is = l.H()
	} else if w := l.apart(); will == 0 && w > 1.05*is {
		will = w
	}
	if will == 0 || is <= 0 {
		return 100
	}
	return min(max(int(100*is/will), 50), 180)
}

// apart returns the width of a line whose words do not overlap each other, as they do in some PDF
// files.
func (l *Line) apart() (sum float64) {
	const space = 0.25 // of the size
	for i, w := range l.Words {
		if sum += w.W(); i > 0 && !w.Glued {
			sum += space * w.Size
		}
	}
	return sum
}

// These are the widths of Arial, Times New Roman and Courier New, which their
// metric-compatible replacements share.
var (
	sansWidths = widths{ascii: [95]uint16{
		278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
		556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
		611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
		667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
		222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
	}, upper: 726, lower: 578}
	sansBoldWidths = widths{ascii: [95]uint16{
		278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
		556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667,
		611, 778, 722, 278, 556, 722, 611, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
		667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556,
		278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584,
	}, upper: 752, lower: 632}
	serifWidths = widths{ascii: [95]uint16{
		250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278, 500, 500, 500,
		500, 500, 500, 500, 500, 500, 500, 278, 278, 564, 564, 564, 444, 921, 722, 667, 667, 722, 611,
		556, 722, 722, 333, 389, 722, 611, 889, 722, 722, 556, 722, 667, 556, 611, 722, 722, 944, 722,
		722, 611, 333, 278, 333, 469, 500, 333, 444, 500, 444, 500, 444, 333, 500, 500, 278, 278, 500,
		278, 778, 500, 500, 500, 500, 333, 389, 278, 500, 500, 722, 500, 500, 444, 480, 200, 480, 541,
	}, upper: 720, lower: 532}
	serifBoldWidths = widths{ascii: [95]uint16{
		250, 333, 555, 500, 500, 1000, 833, 278, 333, 333, 500, 570, 250, 333, 250, 278, 500, 500, 500,
		500, 500, 500, 500, 500, 500, 500, 333, 333, 570, 570, 570, 500, 930, 722, 667, 722, 722, 667,
		611, 778, 778, 389, 500, 778, 667, 944, 722, 778, 611, 778, 722, 556, 667, 722, 722, 1000, 722,
		722, 667, 333, 278, 333, 581, 500, 333, 500, 556, 444, 556, 444, 333, 500, 556, 278, 333, 556,
		278, 833, 556, 500, 556, 556, 444, 389, 333, 556, 500, 722, 500, 500, 444, 394, 220, 394, 520,
	}, upper: 776, lower: 573}
	serifItalicWidths = widths{ascii: [95]uint16{
		250, 333, 420, 500, 500, 833, 778, 214, 333, 333, 500, 675, 250, 333, 250, 278, 500, 500, 500,
		500, 500, 500, 500, 500, 500, 500, 333, 333, 675, 675, 675, 500, 920, 611, 611, 667, 722, 611,
		611, 722, 722, 333, 444, 667, 556, 833, 667, 722, 611, 722, 611, 500, 556, 722, 611, 833, 611,
		556, 556, 389, 278, 389, 422, 500, 333, 500, 500, 444, 500, 444, 278, 500, 500, 278, 278, 444,
		278, 722, 500, 500, 500, 500, 389, 389, 278, 500, 444, 667, 444, 444, 389, 400, 275, 400, 541,
	}, upper: 710, lower: 536}
	serifBoldItalicWidths = widths{ascii: [95]uint16{
		250, 389, 555, 500, 500, 833, 778, 278, 333, 333, 500, 570, 250, 333, 250, 278, 500, 500, 500,
		500, 500, 500, 500, 500, 500, 500, 333, 333, 570, 570, 570, 500, 832, 667, 667, 667, 722, 667,
		667, 722, 778, 389, 500, 667, 611, 889, 722, 722, 611, 722, 667, 556, 611, 722, 667, 889, 667,
		611, 611, 333, 278, 333, 570, 500, 333, 500, 500, 444, 500, 444, 333, 500, 556, 278, 278, 500,
		278, 778, 556, 500, 500, 500, 389, 389, 278, 556, 444, 667, 500, 444, 389, 348, 220, 348, 570,
	}, upper: 752, lower: 562}
	monoWidths = widths{ascii: [95]uint16{
		600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600,
		600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600,
		600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600,
		600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600,
		600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600,
	}, upper: 600, lower: 600}
)
