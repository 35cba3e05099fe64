package model

import (
	"strings"
	"testing"
)

// A paragraph takes no more lines than in the file, even if a divided word is joined.
func TestWrap(t *testing.T) {
	t.Parallel()
	font := &Font{Name: "Times New Roman", Latin: "Times New Roman"}
	paragraph := func(font *Font, text ...string) (out []*Line) {
		for _, s := range text {
			l := &Line{Size: 10}
			for f := range strings.FieldsSeq(s) {
				l.Words = append(l.Words, &Word{Size: 10, Spans: []Span{{Text: f, Style: Style{Font: font, Size: 10}}}})
			}
			out = append(out, l)
		}
		return out
	}
	d := &Document{}
	for _, tt := range []struct {
		name         string
		lines        []*Line
		more, indent float64 // room beyond the longest line
		narrower     bool
	}{
		{"fits", paragraph(font, "the river runs past the garden", "and the old market"), 2, 0, false},
		{"a divided word", paragraph(font, "the river runs past the gar-", "den and the old market town"), 2, 0, true},
		{"a compound", paragraph(font, "the river runs past the well-", "Known and the old market tow"), 2, 0, false},
		{"an indent", paragraph(font, "the river runs past the garden", "and the old market of this tow"), 2, 12, true},
		{"no line is so narrow", paragraph(font, "the river runs past the garden", "and the old market of this tow"), 2, 60, false},
		{"an unknown font", paragraph(&Font{Name: "Unknown"}, "the river runs past the gar-", "den and the old market town"), 2, 0, false},
	} {
		room := tt.more
		for _, l := range tt.lines {
			room = max(room, d.lineWidth(l)+tt.more)
		}
		got := d.Wrap(tt.lines, room, tt.indent)
		if got < leastWrap || got > 100 || (got < 100) != tt.narrower {
			t.Errorf("%s: width %d %%", tt.name, got)
		}
		if chunks := d.chunks(tt.lines); got < 100 && wrapped(chunks, float64(got)/100, room, tt.indent) > len(tt.lines) {
			t.Errorf("%s: %d lines at a width of %d %%", tt.name, wrapped(chunks, float64(got)/100, room, tt.indent), got)
		}
	}
}
