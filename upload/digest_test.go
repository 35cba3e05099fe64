package upload

import (
	"crypto/md5"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// The sum is correct in whatever chunks the bytes arrive, and no goroutine is left.
func TestDigest(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{0, 1, digestChunk - 1, digestChunk, digestChunk + 1, 2 * digestChunk, 5*digestChunk + 7} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		for _, most := range []int{4 << 10, 300 << 10, 1 << 20} {
			synctest.Test(t, func(t *testing.T) {
				d := newDigest()
				for rest := data; len(rest) > 0; {
					n := min(len(rest), 1+rng.IntN(most))
					d.write(rest[:n])
					rest = rest[n:]
				}
				for range 2 { // sum changes nothing
					if d.sum() != md5.Sum(data) {
						t.Errorf("%d bytes in writes of at most %d have another sum", size, most)
					}
				}
				d.close()
			})
		}
		synctest.Test(t, func(*testing.T) { // an aborted upload
			d := newDigest()
			d.write(data)
			d.close()
		})
	}
}
