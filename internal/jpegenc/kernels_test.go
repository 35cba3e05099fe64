package jpegenc

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The code in C and that in Go have the same results, but for rounding.
func TestKernels(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float32 {
		s := make([]float32, n)
		for i := range s {
			s[i] = 255*r.Float32() - 128
		}
		return s
	}
	same := func(name string, n int, got, want []float32) {
		t.Helper()
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-3 {
				t.Fatalf("%s of %d: value %d is %g, want %g", name, n, i, got[i], want[i])
			}
		}
	}
	for n := 1; n < 40; n++ {
		line := make([]byte, 3*n)
		for i := range line {
			line[i] = byte(r.Uint32())
		}
		var got, want [3][]float32
		for i := range got {
			got[i], want[i] = make([]float32, n), make([]float32, n)
		}
		convertLine(got[0], got[1], got[2], line)
		convertLineGo(want[0], want[1], want[2], line)
		for i := range got {
			same("convertLine", n, got[i], want[i])
		}

		plane := random(16 * 2 * n)
		half, wantHalf := make([]float32, 8*n), make([]float32, 8*n)
		halve(half, plane, 2*n, 16)
		halveGo(wantHalf, plane, 2*n, 16)
		same("halve", n, half, wantHalf)

		steps := scaled(&lumaSteps, 10+2*n)
		q := newQuantizer(&steps)
		stride := 8*n + n%3
		p := random(8 * stride)
		values, wantValues := make([]float32, 64*n), make([]float32, 64*n)
		large, wantLarge := make([]uint64, n), make([]uint64, n)
		q.transform(values, large, p, stride)
		q.transformGo(wantValues, wantLarge, p, stride)
		same("transform", n, values, wantValues)
		for x := range large {
			for i := range 64 {
				if v := math.Abs(float64(values[64*x+i])); large[x]>>i&1 != wantLarge[x]>>i&1 && math.Abs(v-0.5) > 1e-3 {
					t.Fatalf("transform of %d blocks: value %d of block %d is %g, large %t", n, i, x, v, large[x]>>i&1 == 1)
				}
			}
			if large[x]&1 != 0 {
				t.Fatalf("the first value of block %d counts as large", x)
			}
		}
	}
}
