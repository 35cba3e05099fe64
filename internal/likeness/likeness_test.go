package likeness

import (
	"bytes"
	"strings"
	"testing"
)

// Presentation forms and ligatures are the letters that they stand for.
func TestTextForms(t *testing.T) {
	t.Parallel()
	forms := strings.Repeat("\uFEE3\uFEAE\uFEA3\uFE92\uFE8E \uFB01re ", 4)
	part := Common(Letters(forms), Letters(strings.Repeat("\u0645\u0631\u062D\u0628\u0627 fire ", 4)))
	if part == nil || *part != 1 {
		t.Errorf("%v of the letters are found, want all", part)
	}
}

// No page is more similar than itself, though the sums over flat areas are rounded.
func TestMatchRounds(t *testing.T) {
	t.Parallel()
	const w, h = 612, 792
	a := &Page{W: w, H: h, RGB: bytes.Repeat([]byte{255}, 3*w*h)}
	for i := range a.RGB {
		if i/3%w > w/2 {
			a.RGB[i] = byte(250 + i%5)
		}
	}
	b := &Page{W: w, H: h, RGB: bytes.Repeat([]byte{253}, 3*w*h)}
	for _, m := range []Match{a.Match(a), a.Match(b), b.Match(a)} {
		if m.Look < 0 || m.Look > 1 {
			t.Errorf("the similarity is %v", m.Look)
		}
	}
}

func TestTotal(t *testing.T) {
	t.Parallel()
	whole, half, little := 1.0, 0.5, 0.4
	for _, tt := range []struct {
		match Match
		text  *float64
		want  float64
	}{
		{Match{Ink: &whole, Look: 1}, &whole, 10},
		{Match{Ink: &half, Look: 1}, &whole, 10 * (2*0.5 + 1 + 1 + 2) / 6},
		{Match{Ink: &whole, Look: 1, Extra: 0.5, Colour: &half}, nil, 10 * (2 + 0.5 + 1 + 0.5) / 5},
		{Match{Ink: &whole, Look: 1}, &little, 10 * (2 + 1 + 1 + 2*0.4) / 6 / 2},
	} {
		if got := tt.match.Total(tt.text); got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("%+v, text %v: got %v, want %v", tt.match, tt.text, got, tt.want)
		}
	}
	if _, ok := Total(nil, nil, nil, nil, nil); ok {
		t.Error("a score of nothing")
	}
}
