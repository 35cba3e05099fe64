package webops

import (
	"strings"
	"testing"
)

// Formulas are drawn; amounts of money, code and unknown commands stay text.
func TestFormulas(t *testing.T) {
	t.Parallel()
	const md = "Energy is $E = mc^2$, not $5 or $10, nor `$x$`. A root: $`\\sqrt{2}`$.\n\n$$\n\\frac{alpha}{beta}\n- \\pi\n$$\n\nafter\n\n" +
		"```math\n\\sum_{i=1}^n i\n```\n\n| a |\n|---|\n| $\\gamma$ |\n\n$$\\newcommand{\\zz}{1}$$\n\nan open $$ end\n\n> $$\n> \\omega\n> $$\n"
	got := output(t, "pdftotext", convert(t, "a.md", md, nil), "-")
	for _, want := range []string{"$5 or $10", "$x$", "√", "𝜋", "∑", "𝛾", "after", "newcommand", "an open $$ end", "𝜔"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	for _, not := range []string{`\frac`, `\sqrt`, "mc^2", `\sum`} {
		if strings.Contains(got, not) {
			t.Errorf("%q is in %q", not, got)
		}
	}
}
