package jpegenc

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/filewright/filewright/fileops/raster"
)

// zigzag holds the position in a block (row × 8 + column) of each coefficient in
// the order of the file (T.81, figure A.6).
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// scaled returns quantization steps for a quality, in zigzag order, as libjpeg
// scales them.
func scaled(base *[64]uint8, quality int) (steps [64]int) {
	q := min(100, max(1, quality))
	percent := 200 - 2*q
	if q < 50 {
		percent = 5000 / q
	}
	for i, at := range zigzag {
		steps[i] = min(255, max(1, (int(base[at])*percent+50)/100))
	}
	return steps
}

// A quantizer chooses the coefficients of the blocks of one table.
type quantizer struct {
	factor [64]float32  // by position: from the output of fdct to multiples of the step
	weight [64]float32  // in zigzag order: square of the step
	bits   [256]float32 // of a symbol and the value that follows it
	counts [256]int     // of symbols since the last call of adapt
}

// A block hides errors where it has much detail. Both figures gave the smallest
// files at equal scores of SSIMULACRA 2.
const (
	strictness = 16   // bits that an error of one step costs in a plain block
	masking    = 8000 // mean square of the coefficients of a block that halves that
)

func newQuantizer(steps *[64]int) *quantizer {
	q := &quantizer{}
	for i, at := range zigzag {
		q.factor[at] = float32(1 / (8 * aan[at/8] * aan[at%8] * float64(steps[i])))
		q.weight[i] = float32(steps[i] * steps[i])
	}
	for symbol := range q.bits {
		run, size := symbol>>4, symbol&15
		q.bits[symbol] = float32(min(16, 2+run+size)) + float32(size) // until the first counts
	}
	q.bits[0] = 4
	return q
}

// adapt derives the bits of symbols from their counts.
func (q *quantizer) adapt() {
	lengths := codeLengths(&q.counts)
	for symbol, n := range lengths {
		size := symbol & 15
		n = cmp.Or(n, 16)
		q.bits[symbol] = float32(int(n) + size)
	}
	q.counts = [256]int{}
}

// choose quantizes the output of fdct. It minimizes, over all choices of zero and
// the two nearest values for each coefficient, the sum of the squared error and
// the bits of a sequential scan. A progressive scan needs about the same.
func (q *quantizer) choose(dct *[64]float32, out []int16) {
	var v, zeros [64]float32 // magnitudes in steps; error of all zeros up to here
	energy := float32(0)
	out = out[:64]
	var at [64]uint8 // positions that are not surely zero
	n := 0
	for i := 1; i < 64; i++ {
		k := zigzag[i]
		a := dct[k] * q.factor[k]
		energy += a * a * q.weight[i]
		out[i] = 0
		if a < 0 {
			a = -a
		}
		v[i] = a
		if a >= 0.5 {
			at[n] = uint8(i)
			n++
		}
	}
	out[0] = int16(math.Floor(float64(dct[0]*q.factor[0]) + 0.5))
	if n == 0 {
		q.counts[0]++
		return
	}
	strict := strictness * masking / (masking + energy/63)
	for i := 1; i < 64; i++ {
		zeros[i] = zeros[i-1] + strict*v[i]*v[i]
	}
	// cost[i] is the least cost of a block up to its i-th possible value, which is not
	// zero; from[i] the value before it.
	var cost [65]float32
	var from, value [65]int16
	end, last := zeros[63]+q.bits[0], 0
	for i := 1; i <= n; i++ {
		pos := int(at[i-1])
		near := int(v[pos] + 0.5)
		best := float32(math.MaxFloat32)
		for c := near; c >= max(1, near-1); c-- {
			size := bits.Len(uint(c))
			if size > 10 {
				continue
			}
			d := v[pos] - float32(c)
			own := strict * d * d
			for j := i - 1; j >= 0; j-- {
				before, start := float32(0), 0
				if j > 0 {
					before, start = cost[j], int(at[j-1])
				}
				sum := before + zeros[pos-1] - zeros[start] + own
				if sum >= best {
					continue
				}
				run := pos - start - 1
				for ; run > 15; run -= 16 {
					sum += q.bits[0xf0]
				}
				if sum += q.bits[run<<4|size]; sum < best {
					best, from[i], value[i] = sum, int16(j), int16(c)
				}
			}
		}
		cost[i] = best
		total := best + zeros[63] - zeros[pos]
		if pos < 63 {
			total += q.bits[0]
		}
		if total < end {
			end, last = total, i
		}
	}
	if last == 0 || at[last-1] < 63 {
		q.counts[0]++
	}
	for i := last; i > 0; i = int(from[i]) {
		pos, start := int(at[i-1]), 0
		if from[i] > 0 {
			start = int(at[from[i]-1])
		}
		run := pos - start - 1
		q.counts[0xf0] += run / 16
		q.counts[run%16<<4|bits.Len16(uint16(value[i]))]++
		if out[pos] = value[i]; dct[zigzag[pos]] < 0 {
			out[pos] = -out[pos]
		}
	}
}

// quantize fills in the coefficients of the components.
func quantize(ctx context.Context, s raster.Samples, comps []*component, steps *[2][64]int) error {
	qs := [2]*quantizer{newQuantizer(&steps[0]), newQuantizer(&steps[1])}
	// A sample of the rows shows which symbols are frequent.
	rows := comps[0].rows / comps[0].v
	const sample = 4000 // blocks
	every := max(1, comps[0].stride*comps[0].rows/sample)
	for range 2 {
		for y := every / 2; y < rows; y += every {
			quantizeRow(s, comps, &qs, y)
		}
		qs[0].adapt()
		qs[1].adapt()
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(rows, runtime.GOMAXPROCS(0)) {
		own := [2]*quantizer{new(*qs[0]), new(*qs[1])} // their counts no longer matter
		wg.Go(func() {
			for y := int(next.Add(1)) - 1; y < rows && ctx.Err() == nil; y = int(next.Add(1)) - 1 {
				quantizeRow(s, comps, &own, y)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// quantizeRow fills in one row of MCUs.
func quantizeRow(s raster.Samples, comps []*component, qs *[2]*quantizer, row int) {
	high := 8 * comps[0].v
	var planes [3][]float32
	for i := range comps {
		planes[i] = make([]float32, comps[0].stride*8*high)
	}
	convert(s, row*high, comps[0].stride*8, high, planes[:len(comps)])
	var dct [64]float32
	for i, c := range comps {
		p, stride := planes[i], comps[0].stride*8
		if c.h < comps[0].h {
			p, stride = halve(p, stride, high), stride/2
		}
		for y := range c.v {
			for x := range c.stride {
				for j := range 8 {
					copy(dct[8*j:][:8], p[(8*y+j)*stride+8*x:][:8])
				}
				fdct(&dct)
				qs[c.table].choose(&dct, c.block(x, row*c.v+y))
			}
		}
	}
}

// convert writes the luminance and colour differences (ITU-T T.871, 7) of rows of
// a picture, minus 128, and repeats the last pixels outside.
func convert(s raster.Samples, top, w, h int, planes [][]float32) {
	for y := range h {
		line := s.Pix[min(top+y, s.Height-1)*s.Width*s.Components:][:s.Width*s.Components]
		if len(planes) == 1 {
			to := planes[0][y*w:][:w]
			for x, v := range line {
				to[x] = float32(v) - 128
			}
			for x := s.Width; x < w; x++ {
				to[x] = to[s.Width-1]
			}
			continue
		}
		ys, bs, rs := planes[0][y*w:][:w], planes[1][y*w:][:w], planes[2][y*w:][:w]
		for x := range s.Width {
			r, g, b := float32(line[3*x]), float32(line[3*x+1]), float32(line[3*x+2])
			ys[x] = 0.299*r + 0.587*g + 0.114*b - 128
			bs[x] = -0.168735892*r - 0.331264108*g + 0.5*b
			rs[x] = 0.5*r - 0.418687589*g - 0.081312411*b
		}
		for x := s.Width; x < w; x++ {
			ys[x], bs[x], rs[x] = ys[s.Width-1], bs[s.Width-1], rs[s.Width-1]
		}
	}
}

// halve averages squares of 2 × 2 samples.
func halve(p []float32, w, h int) []float32 {
	out := make([]float32, w/2*h/2)
	for y := range h / 2 {
		a, b, to := p[2*y*w:][:w], p[(2*y+1)*w:][:w], out[y*w/2:][:w/2]
		for x := range to {
			to[x] = (a[2*x] + a[2*x+1] + b[2*x] + b[2*x+1]) / 4
		}
	}
	return out
}

// aan holds the factors by which the output of fdct differs from the transform of
// T.81, for rows and columns.
var aan = func() (f [8]float64) {
	f[0] = 1
	for k := 1; k < 8; k++ {
		f[k] = math.Sqrt2 * math.Cos(float64(k)*math.Pi/16)
	}
	return f
}()

// fdct transforms a block in place, with the factorization of Arai, Agui and
// Nakajima (A fast DCT-SQ scheme for images, 1988). Each result is the coefficient
// of T.81 times 8 and the factors aan of its row and column.
func fdct(b *[64]float32) {
	for i := 0; i < 64; i += 8 {
		transform(b, i, 1)
	}
	for i := range 8 {
		transform(b, i, 8)
	}
}

func transform(b *[64]float32, at, step int) {
	const (
		c4 = 0.707106781 // cos(4π/16)
		c6 = 0.382683433 // cos(6π/16)
		d  = 0.541196100 // cos(2π/16) - cos(6π/16)
		e  = 1.306562965 // cos(2π/16) + cos(6π/16)
	)
	p := func(k int) *float32 { return &b[(at+k*step)&63] }
	s0, s1, s2, s3, s4, s5, s6, s7 := *p(0), *p(1), *p(2), *p(3), *p(4), *p(5), *p(6), *p(7)
	a0, a7, a1, a6, a2, a5, a3, a4 := s0+s7, s0-s7, s1+s6, s1-s6, s2+s5, s2-s5, s3+s4, s3-s4

	u0, u3, u1, u2 := a0+a3, a0-a3, a1+a2, a1-a2
	*p(0), *p(4) = u0+u1, u0-u1
	z := (u2 + u3) * c4
	*p(2), *p(6) = u3+z, u3-z

	v0, v1, v2 := a4+a5, a5+a6, a6+a7
	z5 := (v0 - v2) * c6
	z2, z4, z3 := d*v0+z5, e*v2+z5, v1*c4
	w, x := a7+z3, a7-z3
	*p(5), *p(3), *p(1), *p(7) = x+z2, x-z2, w+z4, w-z4
}
