package typeset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// A face is a font of the document with the glyphs in use.
type face struct {
	*source
	text map[int]string  // of glyphs; "" if a glyph alone has none
	kept map[int]float64 // advances of the glyphs in use, in thousandths
	font types.Dict      // nil until the font is used
	ref  types.IndirectRef
}

// reference returns the font object, which Finish completes.
func (f *face) reference(d *pdf.Document) types.IndirectRef {
	if f.font == nil {
		f.font = types.Dict{}
		f.ref = d.Add(f.font)
	}
	return f.ref
}

// code returns the code of a glyph in text: its CID.
func (f *face) code(glyph int) int {
	if f.compact != nil && f.compact.ByCID() {
		return f.compact.CID(glyph)
	}
	return glyph
}

// Finish embeds the fonts in use. Lines must not be appended afterwards.
func (s *Setter) Finish() error {
	for i, f := range s.faces {
		if f.font == nil {
			continue
		}
		if err := f.finish(s.doc, i); err != nil {
			return err
		}
	}
	return nil
}

// finish completes the font object.
func (f *face) finish(d *pdf.Document, number int) error {
	keep := make(map[int]bool)
	for g := range f.kept {
		keep[g] = true
	}
	var file []byte
	var err error
	dict, filter, key, kind := types.Dict{}, types.PDFFilter{Name: "FlateDecode"}, "FontFile2", "CIDFontType2"
	switch {
	case f.outlines != nil:
		file, err = f.outlines.Subset(keep, false)
		dict["Length1"] = types.Integer(len(file))
	case f.compact.ByCID():
		file, err = f.compact.SubsetByCID(keep)
	default:
		file, err = f.compact.Subset(keep)
	}
	if err != nil {
		return fmt.Errorf("font %s: %w", f.name, err)
	}
	if f.compact != nil {
		dict["Subtype"], key, kind = types.Name("CIDFontType0C"), "FontFile3", "CIDFontType0"
	}
	program := d.AddStream(dict, nil)
	pdf.SetContent(d.Stream(program), pdf.Deflate(file), filter)

	name := types.Name(fmt.Sprintf("FWRG%c%c+%s", 'A'+number/26%26, 'A'+number%26, f.name))
	codes := make(map[int]int) // glyphs
	for g := range f.kept {
		codes[f.code(g)] = g
	}
	descriptor := types.Dict{
		"Type": types.Name("FontDescriptor"), "FontName": name, "Flags": types.Integer(4), "ItalicAngle": types.Integer(0),
		"FontBBox": types.NewNumberArray(f.head.box[:]...), "Ascent": types.Float(f.head.ascent), "Descent": types.Float(f.head.descent),
		"CapHeight": types.Float(f.head.capHeight), "StemV": types.Integer(80), key: program,
	}
	if d.IsPDFA1() { // ISO 19005-1, 6.3.5
		descriptor["CIDSet"] = f.set(d, codes)
	}
	kid := types.Dict{
		"Type": types.Name("Font"), "Subtype": types.Name(kind), "BaseFont": name, "FontDescriptor": d.Add(descriptor),
		"DW": types.Integer(0), "W": f.widths(codes),
		"CIDSystemInfo": types.Dict{"Registry": types.NewHexLiteral([]byte("Adobe")), "Ordering": types.NewHexLiteral([]byte("Identity")), "Supplement": types.Integer(0)},
	}
	if f.outlines != nil {
		kid["CIDToGIDMap"] = types.Name("Identity")
	}
	maps.Copy(f.font, types.Dict{
		"Type": types.Name("Font"), "Subtype": types.Name("Type0"), "BaseFont": name, "Encoding": types.Name("Identity-H"),
		"DescendantFonts": types.Array{d.Add(kid)}, "ToUnicode": f.toUnicode(d, codes),
	})
	return nil
}

func (f *face) widths(codes map[int]int) (out types.Array) {
	for _, c := range slices.Sorted(maps.Keys(codes)) {
		out = append(out, types.Integer(c), types.Array{types.Float(round(f.kept[codes[c]]))})
	}
	return out
}

// set returns a stream with a bit for each CID of the font program.
func (f *face) set(d *pdf.Document, codes map[int]int) types.IndirectRef {
	bits := []byte{0x80} // .notdef
	for c := range codes {
		for len(bits) <= c/8 {
			bits = append(bits, 0)
		}
		bits[c/8] |= 0x80 >> (c % 8)
	}
	ref := d.AddStream(types.Dict{}, nil)
	pdf.SetContent(d.Stream(ref), pdf.Deflate(bits), types.PDFFilter{Name: "FlateDecode"})
	return ref
}

// toUnicode returns the CMap from glyphs to their text.
func (f *face) toUnicode(d *pdf.Document, codes map[int]int) types.IndirectRef {
	var lines []string
	for _, c := range slices.Sorted(maps.Keys(codes)) {
		if text := f.text[codes[c]]; text != "" {
			lines = append(lines, fmt.Sprintf("<%04x> <%s>\n", c, utf16Hex(text)))
		}
	}
	var b strings.Builder
	b.WriteString("/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CIDSystemInfo <</Registry (Adobe) /Ordering (UCS) /Supplement 0>> def\n" +
		"/CMapName /Adobe-Identity-UCS def /CMapType 2 def 1 begincodespacerange <0000> <FFFF> endcodespacerange\n")
	for part := range slices.Chunk(lines, 100) {
		fmt.Fprintf(&b, "%d beginbfchar\n%sendbfchar\n", len(part), strings.Join(part, ""))
	}
	b.WriteString("endcmap CMapName currentdict /CMap defineresource pop end end")
	ref := d.AddStream(types.Dict{}, nil)
	pdf.SetContent(d.Stream(ref), pdf.Deflate([]byte(b.String())), types.PDFFilter{Name: "FlateDecode"})
	return ref
}

// utf16Hex returns s in UTF-16, in hexadecimal.
func utf16Hex(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, "%04x", u)
	}
	return b.String()
}
