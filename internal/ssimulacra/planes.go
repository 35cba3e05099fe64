package ssimulacra

import (
	"fmt"
	"math"

	"github.com/filewright/filewright/fileops/raster"
)

// Memory for planes is reused for crops and copies, which have no time to wait for the garbage collector.
// The zero value is ready to use. From a nil pointer, each plane has its own memory.
type memory struct{ all, free []float32 }

// plane returns n samples with any content.
func (m *memory) plane(n int) []float32 {
	if m == nil {
		return make([]float32, n)
	}
	if len(m.free) < n {
		m.all = make([]float32, max(n, 2*len(m.all)))
		m.free = m.all
	}
	p := m.free[:n:n]
	m.free = m.free[n:]
	return p
}

// reset lets plane return memory again that it has returned before.
func (m *memory) reset() { m.free = m.all }

// resize calls f with the planes of a picture in linear sRGB, 0 to 1, at each size
// with at least 8 pixels in each direction. f may use the planes until resize returns.
func resize(s raster.Samples, m *memory, f func(size, w, h int, rgb [3][]float32)) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.Components != 1 && s.Components != 3 {
		return fmt.Errorf("ssimulacra: %d components", s.Components)
	}
	w, h := s.Width, s.Height
	if w < least || h < least {
		return ErrTooSmall
	}
	var rgb [3][]float32
	for c := range s.Components {
		rgb[c] = m.plane(w * h)
	}
	if s.Components == 1 {
		for i, v := range s.Pix[:w*h] {
			rgb[0][i] = linear[v]
		}
	} else {
		r, g, b := rgb[0], rgb[1][:w*h], rgb[2][:w*h]
		for i := range r {
			p := (*[3]byte)(s.Pix[3*i:])
			r[i], g[i], b[i] = linear[p[0]], linear[p[1]], linear[p[2]]
		}
	}
	if s.Components == 1 {
		rgb[1], rgb[2] = rgb[0], rgb[0]
	}
	for size := range sizes {
		if size > 0 {
			var nw, nh int
			for c := range s.Components {
				rgb[c], nw, nh = halve(rgb[c], w, h, m)
			}
			if s.Components == 1 {
				rgb[1], rgb[2] = rgb[0], rgb[0]
			}
			w, h = nw, nh
		}
		f(size, w, h, rgb)
		if w < least || h < least {
			break // the author's program counts the first size below the limit, too
		}
	}
	return nil
}

// halve returns a plane of half the width and height, rounded up.
func halve(p []float32, w, h int, m *memory) (out []float32, nw, nh int) {
	nw, nh = (w+1)/2, (h+1)/2
	out = m.plane(nw * nh)
	for y := range nh {
		a, b := p[2*y*w:][:w], p[min(2*y+1, h-1)*w:][:w]
		row := out[y*nw:][:nw]
		average(row[:w/2], a, b)
		if w%2 == 1 {
			row[nw-1] = (a[w-1] + b[w-1]) / 2
		}
	}
	return out, nw, nh
}

// averageGo sets out to the averages of squares of 2 × 2 samples in two rows.
func averageGo(out, a, b []float32) {
	for x := range out {
		above, below := (*[2]float32)(a[2*x:]), (*[2]float32)(b[2*x:])
		out[x] = (above[0] + above[1] + below[0] + below[1]) / 4
	}
}

// linear is the transfer function of sRGB (IEC 61966-2-1) for 8-bit samples.
var linear = func() (t [256]float32) {
	for i := range t {
		v := float64(i) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		t[i] = float32(v)
	}
	return t
}()

// xyb converts linear sRGB to the planes X, Y and B of JPEG XL, shifted and scaled
// to about 0 to 1 as the measure demands. It leaves out planes that do not count at
// a size, or that are the same for all gray pictures.
func xyb(rgb [3][]float32, size int, m *memory) (out [3][]float32) {
	offset := float32(math.Cbrt(bias))
	n := len(rgb[0])
	gray := &rgb[0][0] == &rgb[1][0]
	for i := range out {
		if counts(i, size) && (i == 1 || !gray) {
			out[i] = m.plane(n)
		}
	}
	convert(out, rgb, offset)
	return out
}

// bias is added to the light that each kind of cone of an eye receives.
const bias = 0.0037930732552754493

// convertGo sets the samples of the planes of out that are not nil, starting with the given one. Y is not nil
// if another plane is not.
func convertGo(out, rgb [3][]float32, offset float32, start int) {
	xs, ys, bs := out[0], out[1], out[2]
	rs, gs, us := rgb[0][:len(ys)], rgb[1][:len(ys)], rgb[2][:len(ys)]
	for i := start; i < len(ys); i++ {
		r, g, b := rs[i], gs[i], us[i]
		l := cbrt(0.30*r+0.622*g+0.078*b+bias) - offset
		m := cbrt(0.23*r+0.692*g+0.078*b+bias) - offset
		y := (l + m) / 2
		ys[i] = y + 0.01
		if xs != nil {
			xs[i] = (l-m)/2*14 + 0.42
		}
		if bs != nil {
			s := cbrt(0.24342268924547819*r+0.20476744424496821*g+0.55180986650955360*b+bias) - offset
			bs[i] = s - y + 0.55
		}
	}
}

// cbrt returns the cube root of a positive normal number, with a relative error
// below 4e-5. An exact one changes scores by less than 0.01.
func cbrt(v float32) float32 {
	// A third of the exponent is a first value. A step of Halley's method triples the
	// correct digits.
	t := math.Float32frombits(math.Float32bits(v)/3 + 0x2a514067)
	c := t * t * t
	return t * (c + 2*v) / (2*c + v)
}

func multiplyGo(out, a, b []float32) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] * b[i]
	}
}

// reach is the number of samples on each side that a blurred sample depends on.
const reach = 4

// kernel approximates a Gaussian with a standard deviation of 1.5 samples by a sum
// of three cosines with periods of 4/1, 4/3 and 4/5 of a radius (Charalampidis,
// Recursive implementation of the Gaussian filter using truncated cosine
// functions, 2016), as the author's program does. It is zero at the radius.
var kernel = func() (taps [reach + 1]float32) {
	const (
		radius = reach + 1
		sigma  = 1.5
	)
	// Equations 55 to 57 of the paper: the sum of the filter is 1, its variance that of
	// the Gaussian, and the cosines are as in the truncated Gaussian's series.
	var p, r, rho, omega [3]float64
	for k := range 3 {
		omega[k] = float64(2*k+1) * math.Pi / (2 * radius)
		sign := []float64{1, -1, 1}[k]
		p[k] = sign / math.Tan(omega[k]/2)
		r[k] = sign * p[k] * p[k] / math.Sin(omega[k])
		rho[k] = math.Exp(-sigma*sigma/2*omega[k]*omega[k]) / radius
	}
	d13, d35, d51 := p[0]*r[1]-r[0]*p[1], p[1]*r[2]-r[1]*p[2], p[2]*r[0]-r[2]*p[0]
	zeta15, zeta35 := d35/d13, d51/d13
	a := [3][3]float64{p, r, {zeta15, zeta35, 1}}
	gamma := [3]float64{1, radius*radius - sigma*sigma, zeta15*rho[0] + zeta35*rho[1] + rho[2]}
	det := func(m [3][3]float64) float64 {
		return m[0][0]*(m[1][1]*m[2][2]-m[1][2]*m[2][1]) - m[0][1]*(m[1][0]*m[2][2]-m[1][2]*m[2][0]) + m[0][2]*(m[1][0]*m[2][1]-m[1][1]*m[2][0])
	}
	for k := range 3 { // Cramer's rule
		b := a
		for row := range 3 {
			b[row][k] = gamma[row]
		}
		beta := det(b) / det(a)
		for n := range taps {
			taps[n] += float32(beta * math.Cos(omega[k]*float64(n)))
		}
	}
	return taps
}()

// inside returns, for each of n samples in a line, the inverse of the sum of the
// kernel's taps on the line.
func inside(n int) []float32 {
	out := make([]float32, n)
	for x := range out {
		sum := kernel[0]
		for k := 1; k <= reach; k++ {
			if x >= k {
				sum += kernel[k]
			}
			if x+k < n {
				sum += kernel[k]
			}
		}
		out[x] = 1 / sum
	}
	return out
}

// A filter blurs some planes with kernel in both directions, row by row. Samples outside are zero, as in
// the author's program. If the planes are a part of a picture, they are left out: otherwise, the edges of
// the parts would hide errors.
type filter struct {
	w, h         int
	stride       int // samples of a plane in a row: w and zeros, a multiple of lanes
	planes       int
	zero, padded []float32
	blurred      []float32              // a row of each plane
	window       [2*reach + 1][]float32 // the rows that a blurred row needs, by their number modulo their count
	across, down []float32              // what compensates for samples outside a part; nil for a whole picture
}

func newFilter(w, h, planes int, part bool) *filter {
	f := &filter{w: w, h: h, stride: (w + lanes - 1) / lanes * lanes, planes: planes}
	n := planes * f.stride
	all := make([]float32, (len(f.window)+2)*n+f.stride+2*reach)
	row := func(n int) (r []float32) {
		r, all = all[:n:n], all[n:]
		return r
	}
	f.zero, f.blurred = row(n), row(n)
	for i := range f.window {
		f.window[i] = row(n)
	}
	f.padded = row(f.stride + 2*reach)
	if part {
		f.across, f.down = inside(w), inside(h)
	}
	return f
}

// plane returns the samples of a plane in a row.
func (f *filter) plane(row []float32, n int) []float32 { return row[n*f.stride:][:f.w] }

// run calls use with the blurred rows from top to before bottom. It gets the rows from fill. Both may use
// a row until they return.
func (f *filter) run(top, bottom int, fill, use func(y int, row []float32)) {
	size := len(f.window)
	next := max(0, top-reach)
	var rows [2*reach + 1][]float32 // from above to below
	for y := top; y < bottom; y++ {
		for ; next < min(f.h, y+reach+1); next++ {
			fill(next, f.window[next%size])
		}
		for k := range rows {
			rows[k] = f.zero
			if at := y - reach + k; at >= 0 && at < f.h {
				rows[k] = f.window[at%size]
			}
		}
		f.blur(&rows)
		if f.down != nil {
			for n := range f.planes {
				f.compensate(f.plane(f.blurred, n), y)
			}
		}
		use(y, f.blurred)
	}
}

// compensate scales a blurred row for the samples that are outside of a part.
func (f *filter) compensate(row []float32, y int) {
	if y < reach || y >= f.h-reach {
		for x, a := range f.across {
			row[x] *= a * f.down[y]
		}
		return
	}
	for x := range min(reach, f.w) { // those in the middle have all samples
		row[x] *= f.across[x]
	}
	for x := max(reach, f.w-reach); x < f.w; x++ {
		row[x] *= f.across[x]
	}
}

// blurGo sets f.blurred to the blurred middle row.
func (f *filter) blurGo(rows *[2*reach + 1][]float32) {
	k0, k1, k2, k3, k4 := kernel[0], kernel[1], kernel[2], kernel[3], kernel[4]
	for n := range f.planes {
		plane := func(k int) []float32 { return rows[k][n*f.stride:][:f.stride] }
		a0, a1, b1, a2, b2, a3, b3, a4, b4 := plane(4), plane(3), plane(5), plane(2), plane(6), plane(1), plane(7), plane(0), plane(8)
		row := f.padded[reach:][:f.stride]
		for x, v := range a0 {
			row[x] = k0*v + k1*(a1[x]+b1[x]) + k2*(a2[x]+b2[x]) + k3*(a3[x]+b3[x]) + k4*(a4[x]+b4[x])
		}
		out := f.blurred[n*f.stride:][:f.stride]
		for x := range out {
			p := (*[2*reach + 1]float32)(f.padded[x:])
			out[x] = k0*p[4] + k1*(p[3]+p[5]) + k2*(p[2]+p[6]) + k3*(p[1]+p[7]) + k4*(p[0]+p[8])
		}
	}
}
