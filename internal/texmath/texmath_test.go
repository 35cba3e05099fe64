package texmath_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/texmath"
)

func TestConvert(t *testing.T) {
	t.Parallel()
	for tex, want := range map[string]string{
		`x`:                 `<mi>x</mi>`,
		`a+b=-1.5`:          `<mrow><mi>a</mi><mo>+</mo><mi>b</mi><mo>=</mo><mo>−</mo><mn>1.5</mn></mrow>`,
		`x_i^2`:             `<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>`,
		`f'(x)`:             `<mrow><msup><mi>f</mi><mrow><mo>′</mo></mrow></msup><mo stretchy="false">(</mo><mi>x</mi><mo stretchy="false">)</mo></mrow>`,
		`\frac12`:           `<mfrac><mn>1</mn><mn>2</mn></mfrac>`,
		`\frac{a}{b}`:       `<mfrac><mi>a</mi><mi>b</mi></mfrac>`,
		`{n \choose k}`:     `<mfrac linethickness="0"><mi>n</mi><mi>k</mi></mfrac>`,
		`\sqrt[3]{x}`:       `<mroot><mi>x</mi><mn>3</mn></mroot>`,
		`\sum_{i=1}^n i`:    `<msubsup><mo>∑</mo>`,
		`\mathbb{R}`:        `<mi>ℝ</mi>`,
		`\mathcal{L}`:       `<mi>ℒ</mi>`,
		`\boldsymbol\beta`:  `<mi>𝜷</mi>`,
		`\text{if } x<1`:    "<mtext>if\u00a0</mtext><mi>x</mi><mo>&lt;</mo>",
		`\left\{ x \right.`: `<mrow><mo fence="true" stretchy="true">{</mo><mi>x</mi></mrow>`,
		`\not\in`:           "<mo>∈\u0338</mo>",
		`50\%\ \& more`:     `<mi>%</mi>`,
		`\hat{x}`:           `<mover accent="true"><mi>x</mi><mo stretchy="false">^</mo></mover>`,
		`\begin{pmatrix} a & b \\ c & d \end{pmatrix}`: `<mtr><mtd style="text-align:center"><mi>c</mi></mtd>`,
		`\begin{cases} 0 \\[1ex] 1 \end{cases}`:        `<mo fence="true" stretchy="true">{</mo><mtable>`,
	} {
		got, err := texmath.Convert(tex, false)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, %v; want %s", tex, got, err, want)
		}
		wellFormed(t, tex, got)
	}
	for tex, want := range map[string]string{
		`\sum_{i=1}^n i`:                  `<munderover><mo>∑</mo>`,
		`\lim_{x\to0} x`:                  `<munder><mi>lim</mi>`,
		`\int_0^1 x\,dx`:                  `<msubsup><mo>∫</mo>`,
		`a &= b \\ &= c`:                  `<mtable displaystyle="true">`,
		`\underbrace{a}_{\text{n times}}`: `<munder><munder accentunder="true">`,
	} {
		got, err := texmath.Convert(tex, true)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, %v; want %s", tex, got, err, want)
		}
		wellFormed(t, tex, got)
	}
}

func wellFormed(t testing.TB, tex, got string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(got))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%q: %v in %s", tex, err, got)
		}
	}
}

// What is not known is not drawn wrongly.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	for _, tex := range []string{
		`\newcommand{\x}{y}`, `\frac{a}`, `{a`, `a}`, `x^`, `x_1_2`, `\left( a`, `a \right)`, `\begin{tikzpicture}\end{tikzpicture}`, `\begin{matrix} a`, `\text{$x$}`, `\not a`, `\not`,
		`\sqrt[3`, `#`, `$`, `\`, `&`, `\begin{matrix}a\end{pmatrix}`, strings.Repeat("{", 1000), strings.Repeat("x", 30000), `\left`,
	} {
		if got, err := texmath.Convert(tex, false); !errors.Is(err, texmath.ErrUnsupported) {
			t.Errorf("%.40s: got %.200s, %v", tex, got, err)
		}
	}
}

func FuzzConvert(f *testing.F) {
	f.Add(`\frac{a}{b}_i^{2'}`)
	f.Add(`\begin{cases} a & \text{b} \\ \left[ c \right] \end{cases}`)
	f.Add(`\not\in \operatorname*{max}_x \big| \tag{1}`)
	f.Fuzz(func(t *testing.T, tex string) {
		got, err := texmath.Convert(tex, true)
		if err == nil && !strings.ContainsFunc(tex, func(r rune) bool { return r < ' ' || r > 0xd7ff }) {
			wellFormed(t, tex, got)
		}
		if len(got) > 300*len(tex)+1000 {
			t.Errorf("%d bytes of %d", len(got), len(tex))
		}
	})
}
