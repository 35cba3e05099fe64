// Package ssimulacra rates how different a picture looks from its original, with
// SSIMULACRA 2.1 by Jon Sneyers: 100 for equal pictures, about 90 if a change
// cannot be seen when the pictures alternate, 70 if it is hard to notice without
// the original, 50 for medium quality, below 0 for strong distortion.
//
// The measure is the structural similarity and the gained and lost edges of the
// pictures in the colour space of JPEG XL, at six sizes. The program, constants
// and weights of the author, under the 3-clause BSD licence, are at
// https://github.com/cloudinary/ssimulacra2. The colour space, XYB, is in
// ISO/IEC 18181-1, annex L. The code here is written from these sources, and
// tests compare it with figures of the author's program.
//
// A picture with a side of 112 pixels or less has fewer sizes. The author's program
// then gives the weights of some sizes to others, and its scores differ from those
// of this package.
package ssimulacra

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/filewright/filewright/fileops/raster"
)

const (
	sizes = 6 // 1:1 to 1:32
	least = 8 // pixels in each direction, of a size that counts
)

// A Reference holds what the measure needs of an original, to rate several
// copies of it. It needs about 20 bytes for each pixel.
type Reference struct {
	crops  []crop
	memory sync.Pool // of *memory, for copies
}

// A crop is a part of an original, at each size.
type crop struct {
	width, height int
	scales        []scale
}

// A scale holds the planes X, Y and B of a picture at one size: the samples,
// their local mean, and the local mean of their squares. Planes that do not count
// at that size are nil.
type scale struct {
	width, height         int
	samples, mean, square [3][]float32
}

// ErrTooSmall means that a picture has less than 8 pixels in a direction.
var ErrTooSmall = errors.New("ssimulacra: the picture is smaller than 8 × 8 pixels")

// NewReference prepares an original in gray or RGB, in the sRGB colour space. It
// may consist of several crops, which the measure treats as one picture.
//
// It fails with [ErrTooSmall] if a crop is smaller than 8 × 8 pixels.
func NewReference(crops ...raster.Samples) (*Reference, error) {
	if len(crops) == 0 {
		return nil, ErrTooSmall
	}
	r, part := &Reference{crops: make([]crop, len(crops))}, len(crops) > 1
	err := each(len(crops), func(i int) error {
		s, c := crops[i], &r.crops[i]
		c.width, c.height = s.Width, s.Height
		m := r.scratch()
		defer r.memory.Put(m)
		return resize(s, m, func(size, w, h int, rgb [3][]float32) {
			at := scale{width: w, height: h, samples: xyb(rgb, size, nil)}
			for i, plane := range at.samples {
				if plane == nil {
					continue
				}
				mean, square := make([]float32, w*h), make([]float32, w*h)
				at.mean[i], at.square[i] = mean, square
				bands(h, part, func(_, top, bottom int) {
					f := newFilter(w, h, 2, part)
					f.run(top, bottom, func(y int, row []float32) {
						in := plane[y*w:][:w]
						copy(f.plane(row, 0), in)
						multiply(f.plane(row, 1), in, in)
					}, func(y int, row []float32) {
						copy(mean[y*w:], f.plane(row, 0))
						copy(square[y*w:], f.plane(row, 1))
					})
				})
			}
			c.scales = append(c.scales, at)
		})
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Score rates a copy of the original, from minus infinity to 100. It must have the
// crops of the original, in the same order and sizes.
func (r *Reference) Score(crops ...raster.Samples) (float64, error) {
	if len(crops) != len(r.crops) {
		return 0, fmt.Errorf("ssimulacra: %d crops, want %d", len(crops), len(r.crops))
	}
	parts := make([][sizes]sums, len(crops))
	err := each(len(crops), func(n int) error {
		s, c := crops[n], &r.crops[n]
		if s.Width != c.width || s.Height != c.height {
			return fmt.Errorf("ssimulacra: %d × %d pixels, want %d × %d", s.Width, s.Height, c.width, c.height)
		}
		m := r.scratch()
		defer r.memory.Put(m)
		return resize(s, m, func(i, w, h int, rgb [3][]float32) {
			parts[n][i].compare(&c.scales[i], xyb(rgb, i, m), len(crops) > 1)
		})
	})
	if err != nil {
		return 0, err
	}
	var all [sizes]sums
	for n := range parts { // in order: the sum does not depend on which was finished first
		for i := range all {
			all[i].add(&parts[n][i])
		}
	}
	return score(all[:]), nil
}

// scratch returns memory that has no other user.
func (r *Reference) scratch() *memory {
	if m, ok := r.memory.Get().(*memory); ok {
		m.reset()
		return m
	}
	return new(memory)
}

// Score rates a copy of an original: see [Reference.Score].
func Score(original, changed raster.Samples) (float64, error) {
	r, err := NewReference(original)
	if err != nil {
		return 0, err
	}
	return r.Score(changed)
}

// sums holds the sums of the errors of one size: for each plane, the similarity
// and the gained and lost edges, and the fourth powers of these.
type sums struct {
	pixels int
	sum    [3][2][3]float64 // plane, power, kind of error
}

func (s *sums) add(o *sums) {
	s.pixels += o.pixels
	for plane := range s.sum {
		for power := range s.sum[plane] {
			for kind := range s.sum[plane][power] {
				s.sum[plane][power][kind] += o.sum[plane][power][kind]
			}
		}
	}
}

// compare sets the sums to the errors of the planes of a copy. With part, the copy is one of several
// crops.
func (s *sums) compare(a *scale, copied [3][]float32, part bool) {
	w, h := a.width, a.height
	s.pixels = w * h
	for i, plane := range copied {
		if plane == nil {
			continue
		}
		parts := make([]sums, (h+band-1)/band)
		bands(h, part, func(n, top, bottom int) {
			f, total := newFilter(w, h, 3, part), &parts[n].sum[i]
			f.run(top, bottom, func(y int, row []float32) {
				original, in := a.samples[i][y*w:][:w], plane[y*w:][:w]
				copy(f.plane(row, 0), in)
				multiply(f.plane(row, 1), in, in)
				multiply(f.plane(row, 2), in, original)
			}, func(y int, row []float32) {
				from := func(p []float32) []float32 { return p[y*w:][:w] }
				var e lineErrors
				e.add(&line{
					x1: from(a.samples[i]), m1: from(a.mean[i]), s1: from(a.square[i]),
					x2: from(plane), m2: f.plane(row, 0), s2: f.plane(row, 1), product: f.plane(row, 2),
				})
				e.addTo(total)
			})
		})
		for n := range parts { // in order: the sum does not depend on which was finished first
			s.add(&parts[n])
		}
	}
}

// A line is a row of a plane of the original and of the copy.
type line struct {
	x1, x2  []float32 // samples
	m1, m2  []float32 // their local means
	s1, s2  []float32 // the local means of their squares
	product []float32 // the local mean of the products of x1 and x2
}

// lineErrors are sums over the samples of a line. Those of edges and of their magnitudes give the gained and
// the lost edges, without a branch that no processor can predict.
type lineErrors struct {
	similar, similar4     float64 // of differences, and of their fourth power
	edges, edges4         float64
	magnitude, magnitude4 float64
}

// addGo adds the errors of the samples of a line, starting with the given one.
func (e *lineErrors) addGo(l *line, start int) {
	n := len(l.x1)
	x1, m1, s1, x2, m2, s2, product := l.x1, l.m1[:n], l.s1[:n], l.x2[:n], l.m2[:n], l.s2[:n], l.product[:n]
	for k := start; k < n; k++ {
		u, v := m1[k], m2[k]
		// The usual similarity without the denominator of its first factor: the
		// samples are perceptually uniform.
		num := (1 - (u-v)*(u-v)) * (2*(product[k]-u*v) + c2)
		d := 1 - num/((s1[k]-u*u)+(s2[k]-v*v)+c2)
		d = (d + abs(d)) / 2
		e.similar += float64(d)
		d *= d
		e.similar4 += float64(d * d)

		// Edges are distances from the local mean. One that only the copy has is
		// ringing, blocks or bands; one that it lacks is blur.
		edge := (1+abs(x2[k]-v))/(1+abs(x1[k]-u)) - 1
		m := abs(edge)
		e.edges += float64(edge)
		e.magnitude += float64(m)
		cube := edge * edge * edge
		e.edges4 += float64(cube * m)
		e.magnitude4 += float64(cube * edge)
	}
}

// c2 keeps the similarity of even areas finite.
const c2 = 0.0009

// addTo adds the errors to the sums of a plane.
func (e *lineErrors) addTo(total *[2][3]float64) {
	total[0][0] += e.similar
	total[0][1] += max(0, e.magnitude+e.edges) / 2
	total[0][2] += max(0, e.magnitude-e.edges) / 2 // may be rounded below zero
	total[1][0] += e.similar4
	total[1][1] += max(0, e.magnitude4+e.edges4) / 2
	total[1][2] += max(0, e.magnitude4-e.edges4) / 2
}

// band is the number of rows that are filtered together. It does not depend on the machine, so that the
// order of sums and with it the score does not, either.
const band = 64

// bands calls f with the number, first row and end of each band of h rows: at the same time, except for one
// of several crops, which are compared at the same time themselves.
func bands(h int, part bool, f func(n, top, bottom int)) {
	n := (h + band - 1) / band
	one := func(i int) { f(i, i*band, min(h, (i+1)*band)) }
	if part {
		for i := range n {
			one(i)
		}
		return
	}
	_ = each(n, func(i int) error { one(i); return nil })
}

// counts reports whether a plane has a weight at a size that matters. The others move scores by less than
// 0.02, and would take more than half of the time: two of the three planes at full size are among them.
func counts(plane, size int) bool {
	const negligible = 0.002
	for _, power := range weights[plane][size] {
		if slices.Max(power[:]) > negligible {
			return true
		}
	}
	return false
}

// each calls f for the numbers below n, as many at the same time as there are processors.
func each(n int, f func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	return g.Wait()
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// score combines the errors of all sizes.
func score(all []sums) float64 {
	total := 0.0
	for plane := range 3 {
		for size := range all {
			if s := &all[size]; s.pixels > 0 {
				n := float64(s.pixels)
				for kind := range 3 {
					w := &weights[plane][size]
					total += w[0][kind] * s.sum[plane][0][kind] / n
					total += w[1][kind] * math.Sqrt(math.Sqrt(s.sum[plane][1][kind]/n))
				}
			}
		}
	}
	t := total * 0.9562382616834844
	t = 2.326765642916932*t - 0.020884521182843837*t*t + 6.248496625763138e-05*t*t*t
	if t <= 0 {
		return 100
	}
	return 100 - 10*math.Pow(t, 0.6276336467831387)
}

// weights are those of version 2.1, for each plane (X, Y, B), size, power (1, 4)
// and kind of error (similarity, gained edges, lost edges).
var weights = [3][sizes][2][3]float64{
	{
		{{0, 0.0007376606707406586, 0}, {0, 0.0007793481682867309, 0}},
		{{0, 0.0004371155730107379, 0}, {1.1041726426657346, 0.00066284834129271, 0.00015231632783718752}},
		{{0, 0.0016406437456599754, 0}, {1.8422455520539298, 11.441172603757666, 0}},
		{{0.0007989109436015163, 0.000176816438078653, 0}, {1.8787594979546387, 10.94906990605142, 0}},
		{{0.0007289346991508072, 0.9677937080626833, 0}, {0.00014003424285435884, 0.9981766977854967, 0.00031949755934435053}},
		{{0.0004550992113792063, 0, 0}, {0.0013648766163243398, 0, 0}},
	},
	{
		{{0, 0, 0}, {7.466890328078848, 0, 17.445833984131262}},
		{{0.0006235601634041466, 0, 0}, {6.683678146179332, 0.00037724407979611296, 1.027889937768264}},
		{{225.20515300849274, 0, 0}, {19.213238186143016, 0.0011401524586618361, 0.001237755635509985}},
		{{176.39317598450694, 0, 0}, {24.43300999870476, 0.28520802612117757, 0.0004485436923833408}},
		{{0, 0, 0}, {34.77906344483772, 44.835625328877896, 0}},
		{{0, 0, 0}, {0, 0, 0}},
	},
	{
		{{0, 0.0008680556573291698, 0}, {0, 0, 0}},
		{{0, 0.0005313191874358747, 0}, {0.00016533814161379112, 0, 0}},
		{{0, 0, 0}, {0.0004179171803251336, 0.0017290828234722833, 0}},
		{{0.0020827005846636437, 0, 0}, {8.826982764996862, 23.19243343998926, 0}},
		{{95.1080498811086, 0.9863978034400682, 0.9834382792465353}, {0.0012286405048278493, 171.2667255897307, 0.9807858872435379}},
		{{0, 0, 0}, {0.0005130064588990679, 0, 0.00010854057858411537}},
	},
}
