//go:build cgo

package ssimulacra

/*
#cgo CFLAGS: -O3 -Wno-psabi

#include <stdint.h>

// GCC also makes a version for processors with AVX2, which the dynamic linker of glibc chooses.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define VECTORS
#endif

// Vectors of several samples. Those in memory need not be aligned.
enum { lanes = 8, reach = 4 };
typedef float samples __attribute__((vector_size(4*lanes), aligned(4), may_alias));
typedef int32_t integers __attribute__((vector_size(4*lanes), aligned(4), may_alias));

#define AT(p) (*(samples *)(p))
#define MAGNITUDE(v) ((samples)((integers)(v) & 0x7fffffff))

// blur is filter.blurGo. stride is a multiple of lanes.
VECTORS static void blur(float *restrict out, float *restrict padded, const float *kernel, int planes, int stride,
	float *a4, float *a3, float *a2, float *a1, float *a0, float *b1, float *b2, float *b3, float *b4) {
	const float k0 = kernel[0], k1 = kernel[1], k2 = kernel[2], k3 = kernel[3], k4 = kernel[4];
	for (int n = 0; n < planes; n++) {
		const int from = n*stride;
		for (int x = 0, i = from; x < stride; x += lanes, i += lanes)
			AT(padded+reach+x) = k0*AT(a0+i) + k1*(AT(a1+i)+AT(b1+i)) + k2*(AT(a2+i)+AT(b2+i)) + k3*(AT(a3+i)+AT(b3+i)) + k4*(AT(a4+i)+AT(b4+i));
		for (int x = 0; x < stride; x += lanes) {
			float *p = padded+x;
			AT(out+from+x) = k0*AT(p+4) + k1*(AT(p+3)+AT(p+5)) + k2*(AT(p+2)+AT(p+6)) + k3*(AT(p+1)+AT(p+7)) + k4*(AT(p)+AT(p+8));
		}
	}
}

// add is lineErrors.addGo. n is a multiple of lanes. The sums of a line need no more digits than a float has.
VECTORS static void add(double *total, int n, float c2, float *x1, float *m1, float *s1, float *x2, float *m2, float *s2, float *product) {
	samples sums[6] = {0};
	for (int k = 0; k < n; k += lanes) {
		const samples u = AT(m1+k), v = AT(m2+k);
		const samples num = (1 - (u-v)*(u-v)) * (2*(AT(product+k)-u*v) + c2);
		samples d = 1 - num/((AT(s1+k)-u*u)+(AT(s2+k)-v*v)+c2);
		d = (d + MAGNITUDE(d)) / 2;
		sums[0] += d;
		d *= d;
		sums[1] += d * d;
		const samples edge = (1+MAGNITUDE(AT(x2+k)-v))/(1+MAGNITUDE(AT(x1+k)-u)) - 1;
		const samples magnitude = MAGNITUDE(edge), cube = edge * edge * edge;
		sums[2] += edge;
		sums[3] += cube * magnitude;
		sums[4] += magnitude;
		sums[5] += cube * edge;
	}
	for (int i = 0; i < 6; i++)
		for (int k = 0; k < lanes; k++)
			total[i] += sums[i][k];
}

// ROOT is cbrt. A third of the exponent has fewer digits here, which the step of Halley's method does not show.
#define ROOT(out, value) do { \
	const samples v = (value); \
	const samples t = (samples)(__builtin_convertvector(__builtin_convertvector((integers)v, samples) * (1.0f/3), integers) + 0x2a514067); \
	const samples c = t * t * t; \
	out = t * (c + 2*v) / (2*c + v); \
} while (0)

// convert is convertGo. n is a multiple of lanes; xs and bs may be null.
VECTORS static void convert(float *restrict xs, float *restrict ys, float *restrict bs, int n, float *rs, float *gs, float *us, float bias, float offset) {
	for (int i = 0; i < n; i += lanes) {
		const samples r = AT(rs+i), g = AT(gs+i), b = AT(us+i);
		samples l, m, s;
		ROOT(l, 0.30f*r + 0.622f*g + 0.078f*b + bias);
		ROOT(m, 0.23f*r + 0.692f*g + 0.078f*b + bias);
		const samples y = (l + m)/2 - offset;
		AT(ys+i) = y + 0.01f;
		if (xs)
			AT(xs+i) = (l-m)/2*14 + 0.42f;
		if (bs) {
			ROOT(s, 0.24342268924547819f*r + 0.20476744424496821f*g + 0.55180986650955360f*b + bias);
			AT(bs+i) = s - offset - y + 0.55f;
		}
	}
}

// average is averageGo, and multiply is multiplyGo.
VECTORS static void average(float *restrict out, int n, const float *restrict a, const float *restrict b) {
	for (int x = 0; x < n; x++)
		out[x] = (a[2*x] + a[2*x+1] + b[2*x] + b[2*x+1]) / 4;
}

VECTORS static void multiply(float *restrict out, int n, const float *a, const float *b) {
	for (int x = 0; x < n; x++)
		out[x] = a[x] * b[x];
}
*/
import "C"

import "unsafe"

// The code in C does what that in Go does, for several samples at once.

const lanes = C.lanes

// c returns the address of samples.
func c(s []float32) *C.float { return (*C.float)(unsafe.SliceData(s)) }

func convert(out, rgb [3][]float32, offset float32) {
	n := len(out[1]) / lanes * lanes
	C.convert(c(out[0]), c(out[1]), c(out[2]), C.int(n), c(rgb[0]), c(rgb[1]), c(rgb[2]), bias, C.float(offset))
	convertGo(out, rgb, offset, n)
}

func average(out, a, b []float32) {
	C.average(c(out), C.int(len(out)), c(a), c(b))
}

func multiply(out, a, b []float32) {
	C.multiply(c(out), C.int(len(out)), c(a), c(b))
}

func (f *filter) blur(rows *[2*reach + 1][]float32) {
	C.blur(c(f.blurred), c(f.padded), c(kernel[:]), C.int(f.planes), C.int(f.stride),
		c(rows[0]), c(rows[1]), c(rows[2]), c(rows[3]), c(rows[4]), c(rows[5]), c(rows[6]), c(rows[7]), c(rows[8]))
}

func (e *lineErrors) add(l *line) {
	n := len(l.x1) / lanes * lanes
	var total [6]float64
	C.add((*C.double)(&total[0]), C.int(n), c2, c(l.x1), c(l.m1), c(l.s1), c(l.x2), c(l.m2), c(l.s2), c(l.product))
	e.similar += total[0]
	e.similar4 += total[1]
	e.edges += total[2]
	e.edges4 += total[3]
	e.magnitude += total[4]
	e.magnitude4 += total[5]
	e.addGo(l, n)
}
