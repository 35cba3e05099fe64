package imagefile

import (
	"math/rand/v2"
	"testing"
)

// The sums and differences of several bytes at a time are those of each byte.
func TestLanes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 200; n++ {
		cur, prev := make([]byte, n), make([]byte, n)
		for i := range cur {
			cur[i], prev[i] = byte(random.Uint32()), byte(random.Uint32())
			if random.IntN(4) == 0 { // the extremes
				cur[i], prev[i] = 0x80*byte(random.IntN(2)), 0x80*byte(random.IntN(2))
			}
		}
		for bpp := 1; bpp <= min(n, 4); bpp++ {
			var none, sub, up int
			for i, c := range cur {
				left := byte(0)
				if i >= bpp {
					left = cur[i-bpp]
				}
				none += small(c)
				sub += small(c - left)
				up += small(c - prev[i])
			}
			if a, b, c := sums(cur, prev, bpp); a != none || b != sub || c != up {
				t.Fatalf("%d bytes: sums %d, %d, %d, want %d, %d, %d", n, a, b, c, none, sub, up)
			}
			if sum := sumSmall(cur); sum != none {
				t.Fatalf("%d bytes: sum %d, want %d", n, sum, none)
			}
		}
		got := make([]byte, n)
		subtract(got, cur, prev)
		for i := range got {
			if got[i] != cur[i]-prev[i] {
				t.Fatalf("%d bytes: byte %d is %d, want %d", n, i, got[i], cur[i]-prev[i])
			}
		}
	}
}
