package typeset

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// shown returns the operators of a line.
func shown(t *testing.T, s *Setter, text string) (string, Line) {
	t.Helper()
	l, err := s.Line(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(s.Append(nil, l, 10, func(r types.IndirectRef) string { return fmt.Sprint("F", r.ObjectNumber) })), l
}

// Text in other scripts is shaped: letters join, marks are placed, and text from right
// to left is in visual order.
func TestLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text   string
		glyphs int // 0 means one for each character
		fonts  int
	}{
		{"Draft", 0, 1}, {"Δοκιμή Проба", 0, 1}, {"草案", 0, 1}, {"a 草", 0, 2}, {"مسودة", 0, 1}, {"لا", 1, 1}, {"क्ष", 1, 1}, {"", 0, 0}, {"a\nb\tc\x01", 5, 1},
	} {
		s := New(pdf.New(), HostFonts())
		got, l := shown(t, s, tt.text)
		want := tt.glyphs
		if want == 0 {
			want = len([]rune(tt.text))
		}
		if n := strings.Count(got, "<") - 3*strings.Count(got, "/Span"); n != want || strings.Count(got, " Tf") != tt.fonts {
			t.Errorf("%q: %d glyphs, want %d:\n%s", tt.text, n, want, got)
		}
		if tt.text != "" && (l.Width <= 0 || l.Ascent <= 0 || l.Descent >= 0) {
			t.Errorf("%q measures %+v", tt.text, l)
		}
		if err := s.Finish(); err != nil {
			t.Errorf("%q: %v", tt.text, err)
		}
	}
	// The first letter is the rightmost.
	s := New(pdf.New(), HostFonts())
	_, line := shown(t, s, "אב")
	first, _ := s.find('א').face.NominalGlyph('א')
	if glyphs := line.runs[0].glyphs; glyphs[1].id != int(first) || glyphs[0].x >= glyphs[1].x {
		t.Errorf("glyphs %+v", glyphs)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	var missing *MissingError
	if _, err := New(pdf.New(), nil).Line("a草b案"); !errors.As(err, &missing) || string(missing.Chars) != "案草" {
		t.Errorf("error %v", err)
	}
	if _, err := New(pdf.New(), HostFonts()).Line("\U000E0FFF"); !errors.As(err, &missing) {
		t.Errorf("error %v", err)
	}
}
