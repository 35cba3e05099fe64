package pdfium

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// onePage returns a file with one page and the font Helvetica as F.
func onePage(content string) []byte {
	var out bytes.Buffer
	var at []int
	out.WriteString("%PDF-1.4\n")
	for _, obj := range []string{
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
		fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(content), content),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
	} {
		at = append(at, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(at), obj)
	}
	xref := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, o := range at {
		fmt.Fprintf(&out, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&out, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, xref)
	return out.Bytes()
}

// Characters that are read from memory equal those of pdfium's functions. If this test
// fails after an update of pdfium, the constants of chars.go need the new layout.
func TestChars(t *testing.T) {
	t.Parallel()
	p, err := NewPool(systest.CodeCache(), nil, 1, slog.New(slog.DiscardHandler))
	systest.NoError(t, err)
	systest.AtEnd(t, p.Close)
	var content strings.Builder
	for i := range 12 {
		fmt.Fprintf(&content, "BT /F %d Tf 1 0 %d 1 72 %d Tm (Line %d of the page, with a code: \\001) Tj ET\n", 9+i, i%2, 780-40*i, i)
	}
	content.WriteString("BT /F 12 Tf 0 1 -1 0 500 100 Tm (turned) Tj ET\n")
	content.WriteString("BT /F 12 Tf 72 200 Td (two) Tj 60 0 Td (gaps and a hyph-) Tj -60 -14 Td (en) Tj ET\n")
	systest.NoError(t, p.Run(t.Context(), func(in *Instance) error {
		doc, err := OpenDocument(in, onePage(content.String()), "")
		if err != nil {
			return err
		}
		page := doc.Load(0)
		if page == nil {
			t.Fatal("the page is damaged")
		}
		defer page.Close()
		text := in.Call("FPDFText_LoadPage", page.Ptr)
		defer in.Call("FPDFText_ClosePage", text)
		n := in.Int("FPDFText_CountChars", text)
		if n <= 4*blockSize {
			t.Errorf("%d characters, which fill too few blocks", n)
		}
		before := []Char{{Rune: 'x'}}
		chars, ok := in.readChars(before, text, n)
		if !ok || len(chars) != n+1 || chars[0] != before[0] {
			t.Fatalf("readChars: %v, %d of %d characters", ok, len(chars)-1, n)
		}
		generated, unmapped := 0, 0
		for i, c := range chars[1:] {
			if want := in.char(text, i); c != want {
				t.Errorf("character %d: %+v, want %+v", i, c, want)
			}
			if c.Generated {
				generated++
			}
			if c.Unmapped {
				unmapped++
			}
		}
		if generated == 0 || unmapped == 0 {
			t.Errorf("%d generated characters, %d without a mapping; want both", generated, unmapped)
		}

		// Without the expected layout, the functions of pdfium are used.
		size := uint32(text) + dequeSize
		in.Module.Memory().WriteUint32Le(size, 3)
		if _, ok := in.readChars(nil, text, n); ok {
			t.Error("readChars reads more characters than the page has")
		}
		in.Module.Memory().WriteUint32Le(size, uint32(n))
		blocks, _ := in.Module.Memory().ReadUint32Le(uint32(text) + dequeMap)
		first, _ := in.Module.Memory().ReadUint32Le(blocks)
		in.Module.Memory().WriteUint32Le(blocks, 1<<31)
		if _, ok := in.readChars(nil, text, n); ok {
			t.Error("readChars reads outside the memory")
		}
		in.Module.Memory().WriteUint32Le(blocks, first)
		if all := in.Chars(nil, text, n); len(all) != n || in.Err != nil {
			t.Errorf("Chars: %d of %d characters, %v", len(all), n, in.Err)
		}
		return in.Err
	}))
}
