package geom

import (
	"slices"
	"sort"
)

// SortStable sorts s by less. Equal elements keep their order.
func SortStable[T any](s []T, less func(a, b T) bool) {
	sort.SliceStable(s, func(i, j int) bool { return less(s[i], s[j]) })
}

// Median returns the median of v, or 0 if v is empty. It sorts v.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// Cluster returns the means of groups of values in v. Neighbours in a group are
// at most tolerance apart. Cluster sorts v.
func Cluster(v []float64, tolerance float64) []float64 {
	slices.Sort(v)
	var out []float64
	for i := 0; i < len(v); {
		j, sum := i, 0.0
		for j < len(v) && (j == i || v[j]-v[j-1] <= tolerance) {
			sum += v[j]
			j++
		}
		out = append(out, sum/float64(j-i))
		i = j
	}
	return out
}

// Nearest returns the index of the value in the sorted slice v that is closest
// to x.
func Nearest(v []float64, x float64) int {
	i := sort.SearchFloat64s(v, x)
	if i == len(v) || i > 0 && x-v[i-1] < v[i]-x {
		i--
	}
	return max(i, 0)
}
