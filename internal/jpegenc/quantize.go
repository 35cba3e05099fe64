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
	scale
	weight [64]float32  // square of the step
	bits   [256]float32 // of a symbol and the value that follows it
	counts [256]int     // of symbols since the last call of adapt
}

// A scale turns the output of fdct into multiples of the steps, in zigzag order.
type scale [64]float32

// A block hides errors where it has much detail. Both figures gave the smallest
// files at equal scores of SSIMULACRA 2.
const (
	strictness = 16   // bits that an error of one step costs in a plain block
	masking    = 8000 // mean square of the coefficients of a block that halves that
)

func newQuantizer(steps *[64]int) (q quantizer) {
	for i, at := range zigzag {
		q.scale[i] = float32(1 / (8 * aan[at/8] * aan[at%8] * float64(steps[i])))
		q.weight[i] = float32(steps[i] * steps[i])
	}
	for symbol := range q.bits {
		run, size := symbol>>4, symbol&15
		q.bits[symbol] = float32(min(16, 2+run+size)) + float32(size) // until the first counts
	}
	q.bits[0] = 4
	return q
}

// take moves the counts of another quantizer to this one.
func (q *quantizer) take(other *quantizer) {
	for symbol, n := range &other.counts {
		q.counts[symbol] += n
	}
	other.counts = [256]int{}
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

// choose quantizes a block, whose coefficients are multiples of the steps. It minimizes, over all choices of
// zero and the two nearest values for each coefficient, the sum of the squared error and
// the bits of a sequential scan. A progressive scan needs about the same. large has a bit for each coefficient,
// except the first, that is not surely zero. A bit of the result is set for each that is not zero. The first of v
// is lost.
func (q *quantizer) choose(v *[64]float32, large uint64, out []int16) (nonzero uint64) {
	out = out[:64]
	clear(out)
	out[0] = int16(math.Floor(float64(v[0]) + 0.5))
	if large == 0 {
		q.counts[0]++
		return 0
	}
	v[0] = 0               // counts as no error
	var zeros [64]float32  // sums of the squares of the values of an eighth up to here
	var eighths [9]float32 // and of the eighths before it
	energy := float32(0)
	for i := range 8 { // processors add independent sums at once
		v, w, z := (*[8]float32)(v[8*i:]), (*[8]float32)(q.weight[8*i:]), (*[8]float32)(zeros[8*i:])
		sum, weighted := float32(0), float32(0)
		for k := range v {
			square := v[k] * v[k]
			sum += square
			weighted += square * w[k]
			z[k] = sum
		}
		energy += weighted
		eighths[i+1] = eighths[i] + sum
	}
	var at [64]uint8 // positions that are not surely zero
	n := 0
	for left := large; left != 0; left &= left - 1 {
		at[n&63] = uint8(bits.TrailingZeros64(left))
		n++
	}
	strict := strictness * masking / (masking + energy/63)
	// between returns the error of zeros after start and up to end.
	between := func(start, end int) float32 {
		return strict * (eighths[end/8&7] + zeros[end&63] - eighths[start/8&7] - zeros[start&63])
	}
	// cost[i] is the least cost of a block up to its i-th possible value, which is not
	// zero; from[i] the value before it. low[i] is the least of cost[1] to cost[i].
	var cost, low [65]float32
	var from, value [65]int16
	low[0] = math.MaxFloat32
	end, last := between(0, 63)+q.bits[0], 0
	for i := 1; i <= n; i++ {
		pos := int(at[i-1])
		a := abs(v[pos&63])
		near := int(a + 0.5)
		best := float32(math.MaxFloat32)
		for c := near; c >= max(1, near-1); c-- {
			size := bits.Len(uint(c))
			if size > 10 || c < near && size == bits.Len(uint(near)) { // as many bits as the nearer value
				continue
			}
			d := a - float32(c)
			own := strict * d * d
			try := func(j, start int, before float32) {
				sum := before + between(start, pos-1) + own
				if sum >= best {
					return
				}
				run := pos - start - 1
				for ; run > 15; run -= 16 {
					sum += q.bits[0xf0]
				}
				if sum += q.bits[run<<4|size]; sum < best {
					best, from[i], value[i] = sum, int16(j), int16(c)
				}
			}
			// The more values are zeros, the greater the error.
			for j := i - 1; j > 0 && low[j]+between(int(at[j-1]), pos-1) < best; j-- {
				try(j, int(at[j-1]), cost[j])
			}
			try(0, 0, 0)
		}
		cost[i], low[i] = best, min(low[i-1], best)
		total := best + between(pos, 63)
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
		if out[pos] = value[i]; v[pos] < 0 {
			out[pos] = -out[pos]
		}
		nonzero |= 1 << pos
	}
	return nonzero
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// quantize fills in the coefficients of the components.
func quantize(ctx context.Context, s raster.Samples, comps []*component, steps *[2][64]int) error {
	rows := comps[0].rows / comps[0].v
	workers := make([]worker, min(rows, runtime.GOMAXPROCS(0)))
	for i := range workers {
		workers[i] = newWorker(s, comps, steps)
	}
	// each lets the workers fill in every n-th row of MCUs.
	each := func(n int) {
		var next atomic.Int64
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				for ctx.Err() == nil {
					y := n/2 + n*int(next.Add(1)-1)
					if y >= rows {
						return
					}
					workers[i].row(y)
				}
			})
		}
		wg.Wait()
	}
	// Samples of the rows show which symbols are frequent. Larger ones do not make smaller files.
	for _, blocks := range []int{1000, 2000} {
		each(max(1, comps[0].stride*comps[0].rows/blocks))
		for table := range workers[0].quantizers {
			first := &workers[0].quantizers[table]
			for i := range workers[1:] {
				first.take(&workers[i+1].quantizers[table])
			}
			first.adapt()
			for i := range workers[1:] {
				workers[i+1].quantizers[table] = *first
			}
		}
	}
	each(1)
	return context.Cause(ctx)
}

// A worker fills in rows of MCUs, one after the other.
type worker struct {
	s          raster.Samples
	comps      []*component
	quantizers [2]quantizer // of luminance and colours
	planes     [][]float32  // samples of a row of MCUs
	half       []float32    // a plane of colours in half the width and height
	values     []float32    // coefficients of a row of blocks, as multiples of the steps
	large      []uint64     // which of them are not surely zero
}

func newWorker(s raster.Samples, comps []*component, steps *[2][64]int) worker {
	w := worker{s: s, comps: comps, quantizers: [2]quantizer{newQuantizer(&steps[0]), newQuantizer(&steps[1])}}
	w.values, w.large = make([]float32, comps[0].stride*64), make([]uint64, comps[0].stride)
	size := comps[0].stride * 8 * comps[0].v * 8
	for range comps {
		w.planes = append(w.planes, make([]float32, size))
	}
	if len(comps) > 1 && comps[1].h < comps[0].h {
		w.half = make([]float32, size/4)
	}
	return w
}

// row fills in a row of MCUs.
func (w *worker) row(row int) {
	high, wide := 8*w.comps[0].v, 8*w.comps[0].stride
	convert(w.s, row*high, wide, high, w.planes)
	for i, c := range w.comps {
		p, stride := w.planes[i], wide
		if c.h < w.comps[0].h {
			halve(w.half, p, wide, high)
			p, stride = w.half, wide/2
		}
		q := &w.quantizers[c.table]
		for y := range c.v {
			q.transform(w.values, w.large[:c.stride], p[8*y*stride:], stride)
			for x := range c.stride {
				at := (row*c.v+y)*c.stride + x
				c.nonzero[at] = q.choose((*[64]float32)(w.values[64*x:]), w.large[x], c.block(at))
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
			for x, v := range line {
				planes[0][y*w+x] = float32(v) - 128
			}
		} else {
			convertLine(planes[0][y*w:][:s.Width], planes[1][y*w:][:s.Width], planes[2][y*w:][:s.Width], line)
		}
		for _, p := range planes {
			to := p[y*w:][:w]
			for x := s.Width; x < w; x++ {
				to[x] = to[s.Width-1]
			}
		}
	}
}

// convertLineGo converts a line of a picture in RGB.
func convertLineGo(ys, bs, rs []float32, line []byte) {
	bs, rs = bs[:len(ys)], rs[:len(ys)]
	for x := range ys {
		p := (*[3]byte)(line[3*x:])
		r, g, b := float32(p[0]), float32(p[1]), float32(p[2])
		ys[x] = 0.299*r + 0.587*g + 0.114*b - 128
		bs[x] = -0.168735892*r - 0.331264108*g + 0.5*b
		rs[x] = 0.5*r - 0.418687589*g - 0.081312411*b
	}
}

// halveGo sets out to the averages of squares of 2 × 2 samples.
func halveGo(out, p []float32, w, h int) {
	for y := range h / 2 {
		a, b, to := p[2*y*w:][:w], p[(2*y+1)*w:][:w], out[y*w/2:][:w/2]
		for x := range to {
			above, below := (*[2]float32)(a[2*x:]), (*[2]float32)(b[2*x:])
			to[x] = (above[0] + above[1] + below[0] + below[1]) / 4
		}
	}
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

// transformGo sets values to the coefficients of a row of blocks, and large to those, except the first of a
// block, whose magnitudes are at least 0.5. p starts with the first sample of the blocks.
func (q *scale) transformGo(values []float32, large []uint64, p []float32, stride int) {
	var dct [64]float32
	for x := range large {
		for j := range 8 {
			copy(dct[8*j:][:8], p[j*stride+8*x:][:8])
		}
		fdct(&dct)
		v := (*[64]float32)(values[64*x:])
		large[x] = 0
		for i, at := range zigzag {
			v[i] = dct[at&63] * q[i]
			if i > 0 && abs(v[i]) >= 0.5 {
				large[x] |= 1 << i
			}
		}
	}
}

// fdct transforms a block in place, with the factorization of Arai, Agui and
// Nakajima (A fast DCT-SQ scheme for images, 1988). Each result is the coefficient
// of T.81 times 8 and the factors aan of its row and column.
func fdct(b *[64]float32) {
	for i := 0; i < 64; i += 8 {
		butterfly(b, i, 1)
	}
	for i := range 8 {
		butterfly(b, i, 8)
	}
}

// butterfly transforms 8 samples.
func butterfly(b *[64]float32, at, step int) {
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
