package pdf

import (
	"strings"
	"testing"
)

// FuzzGrowth parses files that repeat a text. The work, measured by looks at the
// context, grows at most as fast as the file, however often the text is repeated.
func FuzzGrowth(f *testing.F) {
	for _, seed := range []struct{ head, unit, tail string }{
		{"%PDF-1.4 /Encrypt ", "trailer<<", "trailer<</Root 1 0 R>>"},
		{"%PDF-1.4\n", "1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n", "trailer<</Root 1 0 R>>"},
		{"%PDF-1.4\n1 0 obj<</Type/Catalog/X[", "<</Y[1 0 R]>>", "]>>endobj trailer<</Root 1 0 R>>"},
		{"%PDF-1.4\n1 0 obj<</Type/Catalog/X", "[", " 1 0 R>>endobj trailer<</Root 1 0 R>>"},
		{"%PDF-1.4\n1 0 obj<</Type/Catalog/X", "<</Y", " 1 0 R>>endobj trailer<</Root 1 0 R>>"},
		{"%PDF-1.4\n1 0 obj<</Type/Catalog/X(", "((", ")>>endobj trailer<</Root 1 0 R>>"},
		{"%PDF-1.4\n", "2 0 obj<</Length 9>>stream\nendobj\n", "trailer<</Root 1 0 R>>"},
		{"%PDF-1.4\n", "xref\n0 1\n0000000000 65535 f \ntrailer<</Root 1 0 R/Prev 9>>\n", "startxref\n9\n%%EOF"},
		{"%PDF-1.4\n", "/Size 99999999 ", "trailer<</Root 1 0 R>>"},
		{"%PDF-1.5\n", "1 0 obj<</Type/ObjStm/N 1/First 4/Length 8>>stream\n2 0 <<>>\nendstream endobj\n", "trailer<</Root 1 0 R>>"},
	} {
		f.Add(seed.head, seed.unit, seed.tail)
	}
	f.Fuzz(func(t *testing.T, head, unit, tail string) {
		if len(head)+len(unit)+len(tail) > 1000 {
			return // longer texts only take longer
		}
		const few, factor, slack = 300, 8, 2000
		looks := func(n int) int {
			c := &lookCounter{Context: t.Context(), most: 1 << 40}
			data := []byte(head + strings.Repeat(unit, n) + tail)
			source{data: data}.hasHugeNumber()
			if _, err := FindSecurity(c, data); err == nil {
				_, _ = ParseComplete(c, data, 100)
			}
			return c.looks
		}
		small := looks(few)
		if large := looks(factor * few); large > factor*small+slack {
			t.Errorf("%d looks at the context for %d repetitions, %d for %d", small, few, large, factor*few)
		}
	})
}
