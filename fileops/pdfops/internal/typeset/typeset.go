// Package typeset sets lines of text for PDF pages in fonts that are embedded with the
// glyphs in use.
//
//	s := typeset.New(doc, typeset.HostFonts())
//	line, err := s.Line("Entwurf")
//	content = s.Append(content, line, 12, name) // between BT and ET
//	err = s.Finish()
//
// Text is shaped: letters of Arabic join, and syllables of Indic scripts are formed.
// Lines with text from right to left are in visual order. Latin, Greek and Cyrillic
// text uses a built-in font, other text a font of the host.
package typeset

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/go-text/typesetting/di"
	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/language"
	"github.com/go-text/typesetting/shaping"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/unicode/bidi"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// HostFonts returns the directories with the fonts of the host.
func HostFonts() []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"/System/Library/Fonts", "/Library/Fonts"}
	case "windows":
		return []string{`C:\Windows\Fonts`}
	}
	return []string{"/usr/share/fonts", "/usr/local/share/fonts"}
}

// A Setter sets text for one document.
type Setter struct {
	doc   *pdf.Document
	dirs  []string
	files []string // below dirs, once read
	faces []*face
	seen  map[*font.Face]*face
	lacks map[rune]bool // characters that no font has
	seg   shaping.Segmenter
	hb    shaping.HarfbuzzShaper
}

// New returns a setter for a document. dirs are directories with fonts.
func New(d *pdf.Document, dirs []string) *Setter {
	s := &Setter{doc: d, dirs: dirs, seen: make(map[*font.Face]*face), lacks: make(map[rune]bool)}
	s.add(builtin())
	return s
}

func (s *Setter) add(src *source) {
	f := &face{source: src, text: make(map[int]string), kept: make(map[int]float64)}
	s.faces = append(s.faces, f)
	s.seen[src.face] = f
}

// A MissingError reports characters that no font has.
type MissingError struct{ Chars []rune }

func (e *MissingError) Error() string {
	return fmt.Sprintf("no font of the host has the characters %q", string(e.Chars))
}

// A Line is a line of text at size 1.
type Line struct {
	Width           float64
	Ascent, Descent float64 // of its fonts; Descent is negative
	runs            []run
}

// A run is a part of a line in one font.
type run struct {
	face   *face
	glyphs []glyph
}

type glyph struct {
	id      int
	x, y    float64 // position in thousandths
	natural float64 // advance according to the font, in thousandths
	// actual is the text of this and the next glyphs; "" if the glyphs by themselves
	// give it.
	actual string
	more   int // glyphs that actual covers besides this
}

// Line shapes a text without line breaks. It fails with *MissingError if no font has
// some of its characters.
func (s *Setter) Line(text string) (Line, error) {
	chars := []rune(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, text))
	if err := s.prepare(chars); err != nil {
		return Line{}, err
	}
	var line Line
	if len(chars) == 0 {
		return line, nil
	}
	direction := direction(chars)
	inputs := s.seg.Split(shaping.Input{
		Text: chars, RunEnd: len(chars), Direction: direction, Size: fixed.I(1000), Language: language.NewLanguage("en"),
	}, s)
	var outputs []shaping.Output
	for _, in := range inputs {
		outputs = append(outputs, s.hb.Shape(in))
	}
	var wrapper shaping.LineWrapper
	lines, _ := wrapper.WrapParagraph(shaping.WrapConfig{Direction: direction}, 1<<24, chars, shaping.NewSliceIterator(outputs))
	if len(lines) > 0 {
		outputs = lines[0]
	}
	slices.SortStableFunc(outputs, func(a, b shaping.Output) int { return int(a.VisualIndex - b.VisualIndex) })
	x := 0.0
	for _, o := range outputs {
		x = line.append(s.seen[o.Face], o, chars, x)
	}
	line.Width = x / 1000
	return line, nil
}

// append adds shaped glyphs, which start at x, and returns their end.
func (l *Line) append(f *face, o shaping.Output, chars []rune, x float64) float64 {
	l.Ascent, l.Descent = max(l.Ascent, f.head.ascent/1000), min(l.Descent, f.head.descent/1000)
	r := run{face: f}
	for i := 0; i < len(o.Glyphs); {
		g := o.Glyphs[i]
		from, n := g.TextIndex(), max(1, g.GlyphsCount())
		text := string(chars[from:min(len(chars), from+g.RunesCount())])
		n = min(n, len(o.Glyphs)-i)
		for k, g := range o.Glyphs[i : i+n] {
			id := int(g.GlyphID)
			one := glyph{
				id: id, x: x + number(g.XOffset), y: number(g.YOffset),
				natural: float64(f.face.HorizontalAdvance(g.GlyphID)) * 1000 / float64(f.face.Upem()),
			}
			if old, known := f.text[id]; n == 1 && !known {
				f.text[id] = text
			} else if k == 0 && (n > 1 || old != text) {
				one.actual, one.more = text, n-1
			}
			if _, known := f.text[id]; !known {
				f.text[id] = "" // unknown on its own
			}
			r.glyphs = append(r.glyphs, one)
			x += number(g.Advance)
		}
		i += n
	}
	l.runs = append(l.runs, r)
	return x
}

func number(v fixed.Int26_6) float64 { return float64(v) / 64 }

// direction returns the direction of the first letter that has one.
func direction(chars []rune) di.Direction {
	for _, r := range chars {
		p, _ := bidi.LookupRune(r)
		switch p.Class() {
		case bidi.L:
			return di.DirectionLTR
		case bidi.R, bidi.AL:
			return di.DirectionRTL
		}
	}
	return di.DirectionLTR
}

// prepare adds fonts until each character is in one of them.
func (s *Setter) prepare(chars []rune) error {
	missing := s.missing(chars)
	if len(missing) == 0 {
		return nil
	}
	if known := slices.DeleteFunc(slices.Clone(missing), func(r rune) bool { return !s.lacks[r] }); len(known) > 0 {
		return &MissingError{known} // the fonts are searched once
	}
	if s.files == nil {
		s.files = files(s.dirs)
	}
	// One font for all is best, then one for each script, then one for each character.
	for _, group := range [...]func(rune) string{
		func(rune) string { return "" },
		func(r rune) string { return language.LookupScript(r).String() },
		func(r rune) string { return string(r) },
	} {
		parts := make(map[string][]rune)
		for _, r := range missing {
			parts[group(r)] = append(parts[group(r)], r)
		}
		for _, key := range slices.Sorted(maps.Keys(parts)) {
			part := s.missing(parts[key])
			if len(part) == 0 {
				continue
			}
			for _, path := range s.files {
				if src := open(path, part); src != nil {
					s.add(src)
					break
				}
			}
		}
		if missing = s.missing(missing); len(missing) == 0 {
			return nil
		}
	}
	for _, r := range missing {
		s.lacks[r] = true
	}
	return &MissingError{missing}
}

// missing returns the characters that no font has, sorted.
func (s *Setter) missing(chars []rune) (out []rune) {
	for _, r := range chars {
		if s.find(r) == nil && !ignorable(r) {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ignorable reports whether a character is invisible by itself.
func ignorable(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector)
}

func (s *Setter) find(r rune) *face {
	for _, f := range s.faces {
		if g, ok := f.face.NominalGlyph(r); ok && g != 0 {
			return f
		}
	}
	return nil
}

// ResolveFace implements shaping.Fontmap.
func (s *Setter) ResolveFace(r rune) *font.Face {
	if f := s.find(r); f != nil {
		return f.face
	}
	return s.faces[0].face
}

// Append appends operators that show a line, for use between BT and ET after the text
// matrix is set. name adds a font to the resources of the content and returns its name.
func (s *Setter) Append(b []byte, l Line, size float64, name func(types.IndirectRef) string) []byte {
	pen := 0.0 // in thousandths
	var last *face
	for _, r := range l.runs {
		if r.face != last {
			b = fmt.Appendf(b, "/%s ", name(r.face.reference(s.doc)))
			b = append(pdf.AppendFloat(b, size), " Tf\n"...)
			last = r.face
		}
		rise, open, left := 0.0, false, 0
		closeArray := func() {
			if open {
				b = append(b, "]TJ\n"...)
				open = false
			}
		}
		for _, g := range r.glyphs {
			r.face.kept[g.id] = g.natural
			if g.actual != "" {
				closeArray()
				b = append(b, "/Span<</ActualText"...)
				b = append(pdf.AppendObject(b, pdf.TextString(g.actual)), ">>BDC\n"...)
				left = g.more + 1
			}
			if g.y != rise {
				closeArray()
				rise = g.y
				b = append(pdf.AppendFloat(b, rise*size/1000), " Ts\n"...)
			}
			if !open {
				b = append(b, '[')
				open = true
			}
			if d := pen - g.x; d > 0.01 || d < -0.01 {
				b = append(pdf.AppendFloat(b, round(d)), ' ')
			}
			b = fmt.Appendf(b, "<%04x>", r.face.code(g.id))
			pen = g.x + g.natural
			if left > 0 {
				if left--; left == 0 {
					closeArray()
					b = append(b, "EMC\n"...)
				}
			}
		}
		closeArray()
		if rise != 0 {
			b = append(b, "0 Ts\n"...)
		}
	}
	return b
}

func round(v float64) float64 { return float64(int64(v*1000)) / 1000 }
