package texmath_test

import (
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/texmath"
)

func FuzzGrowth(f *testing.F) {
	systest.FuzzGrowth(f, func(_ testing.TB, _ string, b []byte) {
		for len(b) > 0 { // in pieces that are short enough
			n := min(len(b), 20_000)
			_, _ = texmath.Convert(string(b[:n]), true)
			b = b[n:]
		}
	}, systest.Growing{Unit: `\frac`}, systest.Growing{Unit: `x_1`}, systest.Growing{Unit: `{`}, systest.Growing{Unit: `\left(`}, systest.Growing{Unit: `'`},
		systest.Growing{Head: `\begin{matrix}`, Unit: `a&b\\`, Tail: `\end{matrix}`}, systest.Growing{Unit: `\text{a}`}, systest.Growing{Unit: `a\over `})
}
