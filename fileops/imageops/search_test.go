package imageops

import (
	"math"
	"testing"
)

// A sufficient quality is found in five tries, for any relation between quality
// and loss.
func TestSearch(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(q int) float64{
		"photo":      func(q int) float64 { return 0.08 * math.Pow(float64(101-q)/51, 1.25) },
		"noise":      func(q int) float64 { return 0.113 * math.Pow(float64(101-q)/51, 0.3) },
		"more noise": func(q int) float64 { return 0.2 * math.Pow(float64(101-q)/51, 0.25) },
		"cliff": func(q int) float64 {
			if q < 95 {
				return 0.3
			}
			return 0.001
		},
		"nothing": func(int) float64 { return 0 },
	} {
		for _, begin := range []int{30, 50, 75, 85} {
			for _, mayLose := range []float64{0.009, 0.049, 0.099} {
				s := search{quality: begin, highest: 97, mayLose: mayLose}
				found := false
				for range 5 {
					l := lost(s.quality)
					found = found || l <= mayLose
					if !s.next(l) {
						break
					}
				}
				if best := lost(97) <= mayLose; best && !found {
					t.Errorf("%s from quality %d, with %v to lose: nothing found", name, begin, mayLose)
				}
			}
		}
	}
}
