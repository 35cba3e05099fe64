package appearance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/pdfcpu/pdfcpu/pkg/font"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/encoding/charmap"

	"github.com/filewright/filewright/fileops/pdfops/internal/fontfile"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// A face is a font with its encoding.
type face struct {
	name   string // in resources
	object func() types.Object
	// encode returns the code of a character and its width at size 1.
	encode func(r rune) (code []byte, width float64, ok bool)
}

func (f *face) covers(s string) bool {
	for _, r := range s {
		if _, _, ok := f.encode(r); !ok && r >= ' ' {
			return false
		}
	}
	return true
}

// once returns an object that is added to the document when it is first used.
func once(d *pdf.Document, dict func() types.Dict) func() types.Object {
	var ref types.Object
	return func() types.Object {
		if ref == nil {
			ref = d.Add(dict())
		}
		return ref
	}
}

// face returns the font of a field.
func (m *Maker) face(o types.Object) *face {
	ref, ok := o.(types.IndirectRef)
	if !ok || m.doc.Dict(ref) == nil {
		return m.helvetica()
	}
	f := m.faces[ref]
	if f == nil {
		f = m.simple(ref)
		m.faces[ref] = f
	}
	return f
}

// helvetica replaces a font that is missing.
func (m *Maker) helvetica() *face {
	if f := m.faces[nil]; f != nil {
		return f
	}
	f := m.simple(m.doc.Add(types.Dict{
		"Type": types.Name("Font"), "Subtype": types.Name("Type1"), "BaseFont": types.Name("Helvetica"), "Encoding": types.Name("WinAnsiEncoding"),
	}))
	m.faces[nil] = f
	return f
}

// simple returns a simple font of the document. It encodes nothing if its
// encoding is unknown.
func (m *Maker) simple(ref types.IndirectRef) *face {
	d := m.doc
	dict := d.Dict(ref)
	codes := make(map[rune]byte)
	widths := d.Array(dict["Widths"])
	first := d.Integer(dict["FirstChar"])
	base := d.Name(dict["BaseFont"])
	core := font.IsCoreFont(base)
	descriptor := d.Dict(dict["FontDescriptor"])
	inFile := descriptor["FontFile"] != nil || descriptor["FontFile2"] != nil || descriptor["FontFile3"] != nil
	width := func(code byte, r rune) float64 {
		if i := int(code) - first; i >= 0 && i < len(widths) {
			w, _ := d.Number(widths[i])
			return w / 1000
		}
		if !core {
			w, _ := d.Number(descriptor["MissingWidth"])
			return w / 1000
		}
		win, ok := charmap.Windows1252.EncodeRune(r)
		if !ok {
			return 0.556
		}
		w, err := font.CharWidth(base, rune(win))
		if err != nil {
			return 0.5
		}
		return float64(w) / 1000
	}
	for code, r := range m.encoding(dict, base, inFile) {
		// A part of a font has no glyphs where it has no widths.
		if old, twice := codes[r]; (!twice || byte(code) < old) && (!inFile || width(byte(code), r) > 0) {
			codes[r] = byte(code)
		}
	}
	return &face{
		name:   fmt.Sprint("F", ref.ObjectNumber),
		object: func() types.Object { return ref },
		encode: func(r rune) ([]byte, float64, bool) {
			code, ok := codes[r]
			return []byte{code}, width(code, r), ok
		},
	}
}

// encoding returns the characters of the codes of a simple font, as far as they
// are known.
func (m *Maker) encoding(dict types.Dict, base string, inFile bool) map[int]rune {
	d := m.doc
	out := make(map[int]rune)
	if s := d.Name(dict["Subtype"]); s != "Type1" && s != "TrueType" && s != "MMType1" || base == "Symbol" || base == "ZapfDingbats" {
		return out
	}
	enc := dict["Encoding"]
	name := d.Name(enc)
	if e := d.Dict(enc); e != nil {
		name = d.Name(e["BaseEncoding"])
	}
	if name == "" && inFile && d.Dict(enc) == nil {
		return out // known to the font file only
	}
	for c := 32; c < 256; c++ {
		var r rune
		switch name {
		case "WinAnsiEncoding":
			r = charmap.Windows1252.DecodeByte(byte(c))
		case "MacRomanEncoding":
			r = charmap.Macintosh.DecodeByte(byte(c))
		case "PDFDocEncoding":
			r, _ = firstRune(pdf.Unicode([]byte{byte(c)}))
		case "":
			if inFile {
				continue
			}
			r, _ = fontfile.Char(fontfile.StandardName(byte(c)))
		}
		if r >= ' ' && r != unicode.ReplacementChar {
			out[c] = r
		}
	}
	at := 0
	for _, o := range d.Array(d.Dict(enc)["Differences"]) {
		if n, ok := d.Number(o); ok {
			at = int(n)
			continue
		}
		if r, ok := fontfile.Char(d.Name(o)); ok && at >= 0 && at < 256 {
			out[at] = r
		} else {
			delete(out, at)
		}
		at++
	}
	return out
}

func firstRune(s string) (rune, bool) {
	for _, r := range s {
		return r, true
	}
	return 0, false
}

// dingbats returns the standard font with check marks and the like.
func dingbats(d *pdf.Document) *face {
	return &face{
		name: "ZaDb",
		object: once(d, func() types.Dict {
			return types.Dict{"Type": types.Name("Font"), "Subtype": types.Name("Type1"), "BaseFont": types.Name("ZapfDingbats")}
		}),
		encode: func(r rune) ([]byte, float64, bool) {
			code, ok := dingbat(r)
			return []byte{code}, dingbatWidth(code), ok
		},
	}
}

// dingbat returns the code of a character in ZapfDingbats.
func dingbat(r rune) (byte, bool) {
	switch r { // characters that Unicode has elsewhere
	case '☎':
		return 0x25, true
	case '☛':
		return 0x2a, true
	case '☞':
		return 0x2b, true
	case '★':
		return 0x48, true
	case '●':
		return 0x6c, true
	case '■':
		return 0x6e, true
	case '▲':
		return 0x73, true
	case '▼':
		return 0x74, true
	case '◆':
		return 0x75, true
	case '◗':
		return 0x77, true
	}
	if r < 0x2701 || r > 0x275e || unicode.In(r, unassigned) {
		return 0, false
	}
	return byte(r - 0x2701 + 0x21), true
}

// unassigned holds the characters of the block that ZapfDingbats lacks, among
// those that Unicode has elsewhere.
var unassigned = &unicode.RangeTable{R16: []unicode.Range16{
	{0x2705, 0x2705, 1}, {0x270a, 0x270b, 1}, {0x2728, 0x2728, 1}, {0x274c, 0x274e, 2}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1},
}}

func dingbatWidth(code byte) float64 {
	w, err := font.CharWidth("ZapfDingbats", rune(code))
	if err != nil || w == 0 {
		return 0.8
	}
	return float64(w) / 1000
}

// eastern returns fonts of East Asia that viewers supply. Text is UTF-16.
func eastern(d *pdf.Document) []*face {
	var out []*face
	for _, f := range []struct {
		name, base, ordering, cmap string
		scripts                    []*unicode.RangeTable
	}{
		{"Kana", "KozMinPr6N-Regular", "Japan1", "UniJIS-UTF16-H", []*unicode.RangeTable{unicode.Hiragana, unicode.Katakana}},
		{"Hangul", "HYSMyeongJo-Medium", "Korea1", "UniKS-UTF16-H", []*unicode.RangeTable{unicode.Hangul}},
		{"Han", "STSong-Light", "GB1", "UniGB-UTF16-H", []*unicode.RangeTable{unicode.Han, wide}},
	} {
		out = append(out, &face{
			name: f.name,
			object: once(d, func() types.Dict {
				descriptor := d.Add(types.Dict{
					"Type": types.Name("FontDescriptor"), "FontName": types.Name(f.base), "Flags": types.Integer(4), "ItalicAngle": types.Integer(0),
					"FontBBox": types.NewIntegerArray(0, -200, 1000, 900), "Ascent": types.Integer(880), "Descent": types.Integer(-120),
					"CapHeight": types.Integer(880), "StemV": types.Integer(93),
				})
				kid := d.Add(types.Dict{
					"Type": types.Name("Font"), "Subtype": types.Name("CIDFontType0"), "BaseFont": types.Name(f.base), "FontDescriptor": descriptor,
					"CIDSystemInfo": types.Dict{"Registry": types.NewHexLiteral([]byte("Adobe")), "Ordering": types.NewHexLiteral([]byte(f.ordering)), "Supplement": types.Integer(2)},
				})
				return types.Dict{
					"Type": types.Name("Font"), "Subtype": types.Name("Type0"), "BaseFont": types.Name(f.base + "-" + f.cmap),
					"Encoding": types.Name(f.cmap), "DescendantFonts": types.Array{kid},
				}
			}),
			encode: func(r rune) ([]byte, float64, bool) {
				if !unicode.In(r, f.scripts...) {
					return nil, 0, false
				}
				var code []byte
				for _, u := range utf16.Encode([]rune{r}) {
					code = append(code, byte(u>>8), byte(u))
				}
				return code, 1, true
			},
		})
	}
	return out
}

// wide holds the punctuation and the full-width forms of East Asia.
var wide = &unicode.RangeTable{R16: []unicode.Range16{{0x3000, 0x303f, 1}, {0xff01, 0xff60, 1}}}

// embedded is a font for Latin, Greek and Cyrillic, which is embedded with the
// glyphs in use.
type embedded struct {
	font  *sfnt.Font
	glyph map[rune]int
	width map[int]float64
	used  bool
	// The parts that follow from the glyphs in use.
	file, descriptor, kid, parent types.IndirectRef
}

const (
	latinName = "GoRegular"
	perEm     = 1000
)

// face returns the font. Its glyphs are added when they are encoded.
func (e *embedded) face(d *pdf.Document) *face {
	e.glyph, e.width = make(map[rune]int), make(map[int]float64)
	var buf sfnt.Buffer
	return &face{
		name: "Latn",
		object: func() types.Object {
			if !e.used {
				e.used = true
				e.file, e.descriptor, e.kid, e.parent = d.AddStream(types.Dict{}, nil), d.Add(types.Dict{}), d.Add(types.Dict{}), d.Add(types.Dict{})
			}
			return e.parent
		},
		encode: func(r rune) ([]byte, float64, bool) {
			if e.font == nil {
				var err error
				if e.font, err = sfnt.Parse(goregular.TTF); err != nil { // impossible: a constant
					panic(err)
				}
			}
			g, known := e.glyph[r]
			if !known {
				i, err := e.font.GlyphIndex(&buf, r)
				if err != nil || i == 0 {
					return nil, 0, false
				}
				w, err := e.font.GlyphAdvance(&buf, i, fixed.I(perEm), 0)
				if err != nil {
					return nil, 0, false
				}
				g = int(i)
				e.glyph[r], e.width[g] = g, float64(w)/64/perEm
			}
			return []byte{byte(g >> 8), byte(g)}, e.width[g], true
		},
	}
}

// Finish adds the embedded fonts that the forms use.
func (m *Maker) Finish() error {
	if m.host != nil {
		if err := m.host.Finish(); err != nil {
			return err
		}
	}
	e, d := m.latin, m.doc
	if !e.used {
		return nil
	}
	parsed, err := fontfile.ParseTrueType(goregular.TTF)
	if err != nil {
		return err
	}
	keep := make(map[int]bool)
	for _, g := range e.glyph {
		keep[g] = true
	}
	file, err := parsed.Subset(keep, false)
	if err != nil {
		return err
	}
	stream := d.Stream(e.file)
	stream.Dict["Length1"] = types.Integer(len(file))
	pdf.SetContent(stream, pdf.Deflate(file), types.PDFFilter{Name: "FlateDecode"})

	var widths types.Array
	var unicodes strings.Builder
	chars := slices.Sorted(maps.Keys(e.glyph))
	unicodes.WriteString("/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CIDSystemInfo <</Registry (Adobe) /Ordering (UCS) /Supplement 0>> def\n" +
		"/CMapName /Adobe-Identity-UCS def /CMapType 2 def 1 begincodespacerange <0000> <FFFF> endcodespacerange\n")
	for part := range slices.Chunk(chars, 100) {
		fmt.Fprintf(&unicodes, "%d beginbfchar\n", len(part))
		for _, r := range part {
			fmt.Fprintf(&unicodes, "<%04x> <%04x>\n", e.glyph[r], r)
		}
		unicodes.WriteString("endbfchar\n")
	}
	unicodes.WriteString("endcmap CMapName currentdict /CMap defineresource pop end end")
	for _, g := range slices.Sorted(maps.Keys(e.width)) {
		widths = append(widths, types.Integer(g), types.Array{types.Float(1000 * e.width[g])})
	}
	cmap := d.AddStream(types.Dict{}, nil)
	pdf.SetContent(d.Stream(cmap), pdf.Deflate([]byte(unicodes.String())), types.PDFFilter{Name: "FlateDecode"})

	name := types.Name("FWRGHT+" + latinName)
	maps.Copy(d.Dict(e.descriptor), types.Dict{
		"Type": types.Name("FontDescriptor"), "FontName": name, "Flags": types.Integer(32), "ItalicAngle": types.Integer(0),
		"FontBBox": types.NewIntegerArray(-440, -432, 2161, 1103), "Ascent": types.Integer(935), "Descent": types.Integer(-212),
		"CapHeight": types.Integer(723), "StemV": types.Integer(80), "FontFile2": e.file,
	})
	maps.Copy(d.Dict(e.kid), types.Dict{
		"Type": types.Name("Font"), "Subtype": types.Name("CIDFontType2"), "BaseFont": name, "FontDescriptor": e.descriptor,
		"CIDToGIDMap": types.Name("Identity"), "DW": types.Integer(0), "W": widths,
		"CIDSystemInfo": types.Dict{"Registry": types.NewHexLiteral([]byte("Adobe")), "Ordering": types.NewHexLiteral([]byte("Identity")), "Supplement": types.Integer(0)},
	})
	maps.Copy(d.Dict(e.parent), types.Dict{
		"Type": types.Name("Font"), "Subtype": types.Name("Type0"), "BaseFont": name, "Encoding": types.Name("Identity-H"),
		"DescendantFonts": types.Array{e.kid}, "ToUnicode": cmap,
	})
	return nil
}
