package fidelity

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

// A sheet is one page of a test document: lines of text, and drawing operators.
type sheet struct{ text, draw string }

// document writes a PDF file of A5 pages and returns its path.
func document(t *testing.T, sheets ...sheet) string {
	t.Helper()
	return boxed(t, "/MediaBox[0 0 420 595]", sheets...)
}

// boxed is document with other page boxes.
func boxed(t *testing.T, boxes string, sheets ...sheet) string {
	t.Helper()
	var objects []string
	object := func(s string) { objects = append(objects, s) }
	var kids strings.Builder
	for i := range sheets {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*i)
	}
	object("<</Type/Catalog/Pages 2 0 R>>")
	object(fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", kids.String(), len(sheets)))
	object("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	for i, s := range sheets {
		object(fmt.Sprintf("<</Type/Page/Parent 2 0 R%s/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>", boxes, 5+2*i))
		c := s.draw + " 0 g BT /F 14 Tf 20 TL 40 540 Td"
		for line := range strings.Lines(s.text) {
			c += fmt.Sprintf(" (%s) Tj T*", strings.TrimSpace(line))
		}
		c += " ET"
		object(tinypdf.Stream("", c))
	}
	path := filepath.Join(t.TempDir(), "a.pdf")
	systest.NoError(t, os.WriteFile(path, tinypdf.File("1.4", objects...), 0o600))
	return path
}

func TestCompare(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 12)
	const band = "0.8 0.1 0.1 rg 40 40 300 120 re f "
	original := []sheet{{lines, band}, {lines, ""}}
	from := document(t, original...)
	for _, tt := range []struct {
		name     string
		print    []sheet
		min, max float64 // of the total
	}{
		{"the same", original, 10, 10},
		{"without the band", []sheet{{lines, ""}, {lines, ""}}, 6, 8.9},
		{"half of the text", []sheet{{lines[:len(lines)/2], band}, {lines[:len(lines)/2], ""}}, 4, 8},
		{"without text", []sheet{{"", band}, {"", ""}}, 0, 3},
		{"other text", []sheet{{strings.Repeat("1234567890 1234567890 1234567890\n", 12), band}, {strings.Repeat("1234567890\n", 12), ""}}, 1, 4.5},
		{"one page", original[:1], 1, 4},
		{"two pages too many", append(original[:2:2], sheet{}, sheet{}), 5, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := Compare(t.Context(), from, document(t, tt.print...))
			systest.NoError(t, err)
			if s.Total < tt.min || s.Total > tt.max || s.Pages != [2]int{2, len(tt.print)} {
				t.Errorf("%+v, want a total from %v to %v", s, tt.min, tt.max)
			}
		})
	}
}

// What lies outside of the crop box is not on the page.
func TestCompareCropped(t *testing.T) {
	t.Parallel()
	visible := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 4) // at the top of the page
	const hidden = "0.8 0.1 0.1 rg 0 0 420 200 re f BT /F 14 Tf 40 100 Td (cut off, cut off, cut off, cut off) Tj ET "
	cropped := boxed(t, "/MediaBox[0 0 420 595]/CropBox[0 395 420 595]", sheet{visible, hidden})
	printed := boxed(t, "/MediaBox[0 395 420 595]", sheet{text: visible})
	s, err := Compare(t.Context(), cropped, printed)
	if err != nil || s.Total != 10 || s.Text == nil || *s.Text != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A file that nothing can read scores 0, and an original without content has nothing to measure.
func TestCompareWithNothing(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken.pdf")
	systest.NoError(t, os.WriteFile(broken, []byte("%PDF-1.4\n"), 0o600))
	some, blank := document(t, sheet{text: "The quick brown fox jumps over the lazy dog."}), document(t, sheet{})
	if s, err := Compare(t.Context(), some, broken); err != nil || s.Total != 0 || s.Pages != [2]int{1, 0} {
		t.Errorf("broken: %+v, %v", s, err)
	}
	s, err := Compare(t.Context(), blank, blank)
	if err != nil || s.Ink != nil || s.Text != nil || s.Colour != nil || s.Total != 10 {
		t.Errorf("blank: %+v, %v", s, err)
	}
}

func TestParsePPM(t *testing.T) {
	t.Parallel()
	p, rest, err := ParsePPM([]byte("P6\n2 1\n255\nabcdefP6"))
	if err != nil || p.W != 2 || p.H != 1 || string(p.RGB) != "abcdef" || string(rest) != "P6" {
		t.Errorf("%+v, rest %q, %v", p, rest, err)
	}
	for _, s := range []string{"", "P5\n1 1\n255\nabc", "P6\n2 1\n255\nabc", "P6\n1 1\n65535\nabcdef", "P6\n0 1\n255\n", "P6\n99999999999 1\n255\n"} {
		if _, _, err := ParsePPM([]byte(s)); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}
