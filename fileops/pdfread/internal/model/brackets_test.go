package model

import (
	"testing"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
)

func TestPairBrackets(t *testing.T) {
	for _, tt := range []struct {
		words []string // in reading order
		want  string
	}{
		{[]string{"שלום", ")עולם("}, "שלום (עולם)"},
		{[]string{"שלום", "(עולם)"}, "שלום (עולם)"},
		{[]string{"עברית", "]א[", ")ב(", "(2024)"}, "עברית [א] (ב) (2024)"},
		{[]string{"العربية", "(", "text", "("}, "العربية ( text )"},
		{[]string{"ציטוט", "»טוב«", "}ג{"}, "ציטוט «טוב» {ג}"},
		{[]string{"א)", "סעיף"}, "א) סעיף"}, // a label
		{[]string{"א)", "סעיף", "ב)", "עוד"}, "א) סעיף ב) עוד"},
		{[]string{"f)x(", "is", "odd"}, "f)x( is odd"}, // not right to left
	} {
		var words []*Word
		for i, s := range tt.words {
			x := 1000 - 50*float64(i) // apart
			rtl := false
			for _, r := range s {
				rtl = rtl || IsRTL(r)
			}
			words = append(words, &Word{Rect: geom.Rect{L: x, R: x + 20, B: 10}, RTL: rtl, Size: 10, Spans: []Span{{Text: s}}})
		}
		pairBrackets(words)
		if got := (&Line{Words: words}).Text(); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.words, got, tt.want)
		}
	}
}
