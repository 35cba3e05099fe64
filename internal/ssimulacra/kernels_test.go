package ssimulacra

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The code in C and that in Go have the same results for lines of any length.
func TestKernels(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float32 {
		s := make([]float32, n)
		for i := range s {
			s[i] = r.Float32()
		}
		return s
	}
	same := func(name string, n int, got, want []float32) {
		t.Helper()
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Fatalf("%s of %d samples: sample %d is %g, want %g", name, n, i, got[i], want[i])
			}
		}
	}
	for n := 1; n < 70; n++ {
		a, b := random(n), random(n)
		got, want := make([]float32, n), make([]float32, n)
		multiply(got, a, b)
		multiplyGo(want, a, b)
		same("multiply", n, got, want)

		a, b = random(2*n), random(2*n)
		average(got, a, b)
		averageGo(want, a, b)
		same("average", n, got, want)

		for _, counted := range [][3]bool{{true, true, true}, {false, true, true}, {true, true, false}, {false, true, false}} {
			var got, want [3][]float32
			for i := range counted {
				if counted[i] {
					got[i], want[i] = make([]float32, n), make([]float32, n)
				}
			}
			rgb := [3][]float32{random(n), random(n), random(n)}
			rgb[0][0], rgb[1][0], rgb[2][0] = 0, 0, 0
			convert(got, rgb, 0.155)
			convertGo(want, rgb, 0.155, 0)
			for i := range want {
				same("convert", n, got[i], want[i])
			}
		}

		f := newFilter(n, 9, 3, false)
		var rows [2*reach + 1][]float32
		for k := range rows {
			rows[k] = make([]float32, 3*f.stride)
			for plane := range 3 {
				copy(f.plane(rows[k], plane), random(n))
			}
		}
		f.blurGo(&rows)
		want = slices.Clone(f.blurred)
		clear(f.blurred)
		f.blur(&rows)
		for plane := range 3 {
			same("blur", n, f.plane(f.blurred, plane), f.plane(want, plane))
		}

		l := line{x1: random(n), x2: random(n), m1: random(n), m2: random(n), s1: random(n), s2: random(n), product: random(n)}
		for i := range n { // a mean of squares is not less than the square of the mean
			l.s1[i] += l.m1[i] * l.m1[i]
			l.s2[i] += l.m2[i] * l.m2[i]
		}
		var e, w lineErrors
		e.add(&l)
		w.addGo(&l, 0)
		for _, v := range [][2]float64{{e.similar, w.similar}, {e.similar4, w.similar4}, {e.edges, w.edges}, {e.edges4, w.edges4}, {e.magnitude, w.magnitude}, {e.magnitude4, w.magnitude4}} {
			if math.Abs(v[0]-v[1]) > 1e-5*max(1, math.Abs(v[1])) {
				t.Fatalf("errors of %d samples are %+v, want %+v", n, e, w)
			}
		}
	}
}
