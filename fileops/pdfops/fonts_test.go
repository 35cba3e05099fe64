package pdfops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// withFont returns a document whose page shows a text in the font F, given by
// the text of its dictionary. The font file is object 5, and more objects may
// follow it.
func withFont(t *testing.T, catalog, font, show string, more ...string) []byte {
	t.Helper()
	fonts, err := testFonts()
	systest.NoError(t, err)
	objects := []string{
		"<</Type/Catalog/Pages 2 0 R" + catalog + ">>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Contents 4 0 R/Resources<</Font<</F " + font + ">>>>>>",
		stream("", "BT /F 24 Tf 20 40 Td "+show+" Tj ET"), fonts["FontFile2"].data,
	}
	return handmade("1.7", append(objects, more...)...)
}

const descriptor = "<</Type/FontDescriptor/FontName/GoRegular/Flags 32/FontBBox[-440 -432 2161 1103]/ItalicAngle 0/Ascent 935/Descent -212/CapHeight 723/StemV 80/FontFile2 5 0 R>>"

// Fonts lose the glyphs that nobody uses, also in the ways in which some programs
// write them.
func TestCompressFonts(t *testing.T) {
	t.Parallel()
	fonts, err := testFonts()
	systest.NoError(t, err)
	gids := fonts["FontFile2"].gids
	widths := "/FirstChar 32/LastChar 255/Widths[" + strings.Repeat("600 ", 224) + "]"
	for name, in := range map[string][]byte{
		// Microsoft: Print To PDF
		"direct objects": withFont(t, "", "6 0 R", fmt.Sprintf("<%04x%04x>", gids['A'], gids['g']),
			"<</Type/Font/Subtype/Type0/BaseFont/GoRegular/Encoding/Identity-H/DescendantFonts[<</Type/Font/Subtype/CIDFontType2/BaseFont/GoRegular/CIDToGIDMap/Identity/DW 600"+
				"/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor"+descriptor+">>]>>"),
		"direct font": withFont(t, "", "<</Type/Font/Subtype/TrueType/BaseFont/GoRegular/Encoding/WinAnsiEncoding"+widths+"/FontDescriptor"+descriptor+">>", "(Ag)"),
		// SAP NetWeaver
		"made-up names": withFont(t, "", "6 0 R", "(A\xa0g\xdd)",
			"<</Type/Font/Subtype/TrueType/BaseFont/GoRegular/Encoding<</Type/Encoding/BaseEncoding/WinAnsiEncoding/Differences[160/no_break_space 221/Idot]>>"+widths+"/FontDescriptor 7 0 R>>", descriptor),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := pdf("in.pdf", in)
			out := run(t, pdfops.Compress(), nil, before)
			sound(t, out)
			if out.Size() > before.Size()/4 {
				t.Errorf("%d bytes of %d", out.Size(), before.Size())
			}
			if d := difference(t, render(t, out, 72)[0], render(t, before, 72)[0]); d != 0 {
				t.Errorf("difference %.3f", d)
			}
			if got, want := text(t, out), text(t, before); got != want {
				t.Errorf("text %q, want %q", got, want)
			}
		})
	}
}

// A font of a form keeps all glyphs as long as text can be set in it.
func TestCompressFormFonts(t *testing.T) {
	t.Parallel()
	font := "<</Type/Font/Subtype/TrueType/BaseFont/GoRegular/Encoding/WinAnsiEncoding/FirstChar 32/LastChar 255/Widths[" + strings.Repeat("600 ", 224) + "]/FontDescriptor 7 0 R>>"
	for name, tt := range map[string]struct {
		form, field string
		whole       bool
	}{
		"text field":                 {"", "/FT/Tx/DA(/F 9 Tf)", true},
		"font of the form":           {"/DA(/F 9 Tf)", "/FT/Ch", true},
		"read-only":                  {"", "/FT/Tx/Ff 1/DA(/F 9 Tf)", false},
		"read-only, with a script":   {"", "/FT/Tx/Ff 1/DA(/F 9 Tf)/AA<</C<</S/JavaScript/JS(x)>>>>", true},
		"read-only, drawn by others": {"/NeedAppearances true", "/FT/Tx/Ff 1/DA(/F 9 Tf)", true},
		"button":                     {"/DA(/F 9 Tf)", "/FT/Btn", false},
		"other font":                 {"/DA(/Helv 9 Tf)", "/FT/Tx/DA(/Helv 9 Tf)", false},
		"XFA":                        {"/XFA(x)", "/FT/Btn", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := withFont(t, "/AcroForm<</Fields[8 0 R]/DR<</Font<</F 6 0 R>>>>"+tt.form+">>", "6 0 R", "(Ag)", font, descriptor, "<</Type/Annot/Subtype/Widget/T(t)/Rect[0 0 9 9]"+tt.field+">>")
			before := pdf("in.pdf", in)
			out := run(t, pdfops.Compress(), fileops.Args{"compression_value": "extreme"}, before)
			sound(t, out)
			if whole := out.Size() > before.Size()/2; whole != tt.whole {
				t.Errorf("%d bytes of %d; want the whole font: %v", out.Size(), before.Size(), tt.whole)
			}
		})
	}
}
