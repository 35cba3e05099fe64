package fontfile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/filewright/filewright/fileops/pdfops/internal/fontfile"
	"github.com/filewright/filewright/internal/systest"
	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

const (
	dejaVu  = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
	urwType = "/usr/share/fonts/type1/urw-base35/C059-Roman.t1"
	urwOTF  = "/usr/share/fonts/opentype/urw-base35/C059-Roman.otf"
)

func read(t testing.TB, p string) []byte {
	t.Helper()
	b := systest.ReadFile(t, p)
	return b
}

// outline returns the segments that x/image draws for a glyph, in font units.
func outline(t *testing.T, f *sfnt.Font, glyph int) string {
	t.Helper()
	ppem := fixed.Int26_6(f.UnitsPerEm()) << 6
	s, err := f.LoadGlyph(nil, sfnt.GlyphIndex(glyph), ppem, nil)
	systest.NoError(t, err)
	return fmt.Sprint(s)
}

func TestTrueType(t *testing.T) {
	t.Parallel()
	b := read(t, dejaVu)
	before, err := sfnt.Parse(b)
	systest.NoError(t, err)
	f, err := fontfile.ParseTrueType(b)
	systest.NoError(t, err)
	keep := make(map[int]bool)
	var kept []int
	for _, r := range "AgÉǺ" { // the last two are composite
		g, err := before.GlyphIndex(nil, r)
		systest.NoError(t, err)
		keep[int(g)] = true
		kept = append(kept, int(g))
	}
	small, err := f.Subset(keep, true)
	systest.NoError(t, err)
	if len(small) > len(b)/3 {
		t.Errorf("%d bytes of %d", len(small), len(b))
	}
	after, err := sfnt.Parse(small)
	systest.NoError(t, err)
	for _, g := range kept {
		if outline(t, after, g) != outline(t, before, g) {
			t.Errorf("glyph %d has changed", g)
		}
	}
	other, _ := before.GlyphIndex(nil, 'W')
	if s := outline(t, after, int(other)); s != "[]" {
		t.Errorf("a glyph that is not used is left: %s", s)
	}
	if glyphs, known := f.ForCode('A', "A"); !known || !bytes.Contains(fmt.Append(nil, glyphs), fmt.Append(nil, kept[0])) {
		t.Errorf("A is %v, want %d among them", glyphs, kept[0])
	}
	if _, known := f.ForCode('A', "nosuchname"); known {
		t.Error("a name that leads nowhere is taken for known")
	}
}

// wrapped puts a CFF font into an OpenType font, because x/image reads no bare
// CFF.
func wrapped(t *testing.T, like, cff []byte, glyphs int) *sfnt.Font {
	t.Helper()
	n := int(binary.BigEndian.Uint16(like[4:]))
	out := bytes.Clone(like[:12+16*n]) // a multiple of 4
	for i := range n {
		e := out[12+16*i:]
		off, size := binary.BigEndian.Uint32(e[8:]), binary.BigEndian.Uint32(e[12:])
		data := bytes.Clone(like[off : off+size])
		switch string(e[:4]) {
		case "CFF ":
			data = cff
		case "maxp":
			binary.BigEndian.PutUint16(data[4:], uint16(glyphs))
		case "hhea":
			if int(binary.BigEndian.Uint16(data[34:])) > glyphs {
				binary.BigEndian.PutUint16(data[34:], uint16(glyphs))
			}
		case "hmtx":
			data = data[:min(len(data), 4*glyphs)]
		}
		binary.BigEndian.PutUint32(e[8:], uint32(len(out)))
		binary.BigEndian.PutUint32(e[12:], uint32(len(data)))
		out = append(out, data...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	f, err := sfnt.Parse(out)
	systest.NoError(t, err)
	return f
}

func cffTable(b []byte) []byte {
	for i := range int(binary.BigEndian.Uint16(b[4:])) {
		e := b[12+16*i:]
		if string(e[:4]) == "CFF " {
			off, n := binary.BigEndian.Uint32(e[8:]), binary.BigEndian.Uint32(e[12:])
			return b[off : off+n]
		}
	}
	return nil
}

func TestCFF(t *testing.T) {
	t.Parallel()
	otf := read(t, urwOTF)
	cff := cffTable(otf)
	f, err := fontfile.ParseCFF(cff)
	systest.NoError(t, err)
	keep := make(map[int]bool)
	for g := range f.Glyphs() {
		switch f.Name(g) {
		case "A", "g", "Eacute":
			keep[g] = true
		}
	}
	small, err := f.Subset(keep)
	if err != nil || len(keep) != 3 {
		t.Fatal(len(keep), err)
	}
	if len(small) > len(cff)/3 {
		t.Errorf("%d bytes of %d", len(small), len(cff))
	}
	before, after := wrapped(t, otf, cff, f.Glyphs()), wrapped(t, otf, small, f.Glyphs())
	for g := range keep {
		if got, want := outline(t, after, g), outline(t, before, g); got != want || len(want) < 50 {
			t.Errorf("glyph %d is %s, want %s", g, got, want)
		}
	}
	again, err := fontfile.ParseCFF(small)
	if err != nil || again.Glyphs() != f.Glyphs() {
		t.Fatalf("%d glyphs, %v", again.Glyphs(), err)
	}
}

// The Type 1 and OpenType versions of a family have the same outlines.
func TestType1(t *testing.T) {
	t.Parallel()
	b, otf := read(t, urwType), read(t, urwOTF)
	f, err := fontfile.ParseType1(b)
	systest.NoError(t, err)
	names := map[string]bool{"A": true, "g": true, "germandbls": true, "Eacute": true, "at": true, "ampersand": true}
	cff, err := f.CFF(names)
	systest.NoError(t, err)
	if len(cff) > len(b)/10 {
		t.Errorf("%d bytes of %d", len(cff), len(b))
	}
	made, err := fontfile.ParseCFF(cff)
	systest.NoError(t, err)
	full, err := fontfile.ParseCFF(cffTable(otf))
	systest.NoError(t, err)
	numbers := make(map[string]int)
	for g := range full.Glyphs() {
		numbers[full.Name(g)] = g
	}
	before, after := wrapped(t, otf, cffTable(otf), full.Glyphs()), wrapped(t, otf, cff, made.Glyphs())
	seen := 0
	for g := range made.Glyphs() {
		name := made.Name(g)
		if !names[name] {
			continue
		}
		seen++
		// Subpaths may start elsewhere, but their extent must be equal.
		ppem := fixed.Int26_6(before.UnitsPerEm()) << 6
		want, advance, err := before.GlyphBounds(nil, sfnt.GlyphIndex(numbers[name]), ppem, font.HintingNone)
		systest.NoError(t, err)
		got, _, err := after.GlyphBounds(nil, sfnt.GlyphIndex(g), ppem, font.HintingNone)
		systest.NoError(t, err)
		if got != want || advance == 0 {
			t.Errorf("%s extends over %v, want %v", name, got, want)
		}
	}
	if seen != len(names) {
		t.Errorf("%d glyphs, want %d", seen, len(names))
	}
	if g := made.Encoded('A'); made.Name(g) != "A" {
		t.Errorf("code 65 is %s", made.Name(g))
	}
}

// fuzz calls all functions on data that may be a font.
func fuzz(b []byte) {
	keep := map[int]bool{1: true, 3: true, 40: true}
	if f, err := fontfile.ParseTrueType(b); err == nil {
		f.ForCode('A', "A")
		f.Subset(keep, true)
		f.Subset(nil, false)
	}
	if f, err := fontfile.ParseCFF(b); err == nil {
		for g := range min(f.Glyphs(), 100) {
			if !f.ByCID() {
				f.Name(g)
			}
		}
		if small, err := f.Subset(keep); err == nil {
			fontfile.ParseCFF(small)
		}
	}
	if f, err := fontfile.ParseType1(b); err == nil {
		names := make(map[string]bool)
		for _, n := range f.Names() {
			names[n] = true
		}
		f.CFF(names)
	}
}

func FuzzFonts(f *testing.F) {
	for _, p := range []string{dejaVu, urwType} {
		f.Add(read(f, p)[:60000])
	}
	f.Add(cffTable(read(f, urwOTF)))
	f.Fuzz(func(_ *testing.T, b []byte) { fuzz(b) })
}

func ExampleChar() {
	r, ok := fontfile.Char("Eacute")
	fmt.Printf("%c %v", r, ok)
	// Output: É true
}
