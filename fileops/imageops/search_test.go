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

// A sufficient quality is found in five tries, and one that is hardly higher than
// needed.
func TestScoreSearch(t *testing.T) {
	t.Parallel()
	for name, score := range map[string]func(q int) float64{
		"photo": func(q int) float64 { return 100 - 40*math.Pow(float64(101-q)/51, 0.9) },
		"noise": func(q int) float64 { return 100 - 60*math.Pow(float64(101-q)/51, 0.6) },
		"WebP of fine noise": func(q int) float64 { // measured
			return interpolate(float64(q), [][2]float64{{0, 40}, {50, 51.3}, {57, 52.7}, {62, 53.8}, {67, 55}, {75, 58}, {85, 69.9}, {93, 86.5}, {100, 92}})
		},
		"steep":  func(q int) float64 { return 100 - 100*math.Pow(float64(101-q)/51, 2.5) },
		"cliff":  func(q int) float64 { return float64(10 + q/60*85) },
		"smooth": func(q int) float64 { return 95 },
	} {
		for _, begin := range []int{30, 50, 75, 85} {
			for level := range leastScore {
				s := scoreSearch{quality: begin, lowest: begin / 2, highest: 97, least: leastScore[level], enough: enoughScore[level]}
				for range 5 {
					if !s.next(score(s.quality)) {
						break
					}
				}
				least := s.lowest
				for least < s.highest && score(least) < s.least {
					least++
				}
				if s.passed == 0 || score(s.passed) < s.least {
					t.Errorf("%s from quality %d, level %d: nothing found", name, begin, level)
				} else if s.passed > least+12 && score(s.passed) > s.enough {
					t.Errorf("%s from quality %d, level %d: found %d, but %d is enough", name, begin, level, s.passed, least)
				}
			}
		}
	}
}

// interpolate returns the value at x of the line through points.
func interpolate(x float64, points [][2]float64) float64 {
	for i, b := range points[1:] {
		if a := points[i]; x <= b[0] {
			return a[1] + (b[1]-a[1])*(x-a[0])/(b[0]-a[0])
		}
	}
	return points[len(points)-1][1]
}
