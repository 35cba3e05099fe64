//go:build cgo

package jpegenc

/*
#cgo CFLAGS: -O3 -Wno-psabi

#include <stdint.h>

// GCC also makes a version for processors with AVX2, which the dynamic linker of glibc chooses.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define VECTORS
#endif

// A row of a block. In memory, it need not be aligned.
enum { side = 8 };
typedef float samples __attribute__((vector_size(4*side), aligned(4), may_alias));
typedef int32_t integers __attribute__((vector_size(4*side), aligned(4), may_alias));

#define AT(p) (*(samples *)(p))

// convertLine is convertLineGo for n pixels.
VECTORS static void convertLine(float *restrict ys, float *restrict bs, float *restrict rs, int n, const uint8_t *restrict line) {
	for (int x = 0; x < n; x++) {
		const float r = line[3*x], g = line[3*x+1], b = line[3*x+2];
		ys[x] = 0.299f*r + 0.587f*g + 0.114f*b - 128;
		bs[x] = -0.168735892f*r - 0.331264108f*g + 0.5f*b;
		rs[x] = 0.5f*r - 0.418687589f*g - 0.081312411f*b;
	}
}

// halve is halveGo.
VECTORS static void halve(float *restrict out, const float *restrict p, int w, int h) {
	for (int y = 0; y < h/2; y++, p += 2*w, out += w/2)
		for (int x = 0; x < w/2; x++)
			out[x] = (p[2*x] + p[2*x+1] + p[w+2*x] + p[w+2*x+1]) / 4;
}

// BUTTERFLY is butterfly for the columns of a block. It has braces of its own.
#define BUTTERFLY(p) { \
	const float c4 = 0.707106781f, c6 = 0.382683433f, d = 0.541196100f, e = 1.306562965f; \
	const samples a0 = p[0]+p[7], a7 = p[0]-p[7], a1 = p[1]+p[6], a6 = p[1]-p[6]; \
	const samples a2 = p[2]+p[5], a5 = p[2]-p[5], a3 = p[3]+p[4], a4 = p[3]-p[4]; \
	const samples u0 = a0+a3, u3 = a0-a3, u1 = a1+a2, u2 = a1-a2; \
	const samples z = (u2 + u3) * c4; \
	p[0] = u0+u1, p[4] = u0-u1, p[2] = u3+z, p[6] = u3-z; \
	const samples v0 = a4+a5, v1 = a5+a6, v2 = a6+a7; \
	const samples z5 = (v0 - v2) * c6; \
	const samples z2 = d*v0 + z5, z4 = e*v2 + z5, z3 = v1*c4; \
	const samples w = a7+z3, x = a7-z3; \
	p[5] = x+z2, p[3] = x-z2, p[1] = w+z4, p[7] = w-z4; \
}

// transform is scale.transformGo for n blocks.
VECTORS static void transform(float *restrict values, uint64_t *restrict large, int n, float *restrict p, int stride, float *restrict scale, const uint8_t *restrict zigzag) {
	for (int x = 0; x < n; x++, p += side, values += side*side) {
		samples rows[side], columns[side] = {0};
		float turned[side*side];
		for (int j = 0; j < side; j++)
			rows[j] = AT(p + j*stride);
		BUTTERFLY(rows)
		for (int j = 0; j < side; j++)
			for (int i = 0; i < side; i++)
				columns[i][j] = rows[j][i];
		BUTTERFLY(columns)
		for (int j = 0; j < side; j++)
			AT(turned + side*j) = columns[j];
		for (int i = 0; i < side*side; i++)
			values[i] = turned[zigzag[i]%side*side + zigzag[i]/side];
		uint64_t bits = 0;
		for (int i = 0; i < side*side; i += side) {
			const samples v = AT(values+i) * AT(scale+i);
			AT(values+i) = v;
			const integers is = ((v >= 0.5f) | (v <= -0.5f)) & (integers){1, 2, 4, 8, 16, 32, 64, 128};
			bits |= (uint64_t)(is[0]|is[1]|is[2]|is[3]|is[4]|is[5]|is[6]|is[7]) << i;
		}
		large[x] = bits & ~(uint64_t)1;
	}
}
*/
import "C"

import "unsafe"

// The code in C does what that in Go does, for several samples at once. Results may be rounded differently.

// c returns the address of samples.
func c(s []float32) *C.float { return (*C.float)(unsafe.SliceData(s)) }

func convertLine(ys, bs, rs []float32, line []byte) {
	C.convertLine(c(ys), c(bs), c(rs), C.int(len(ys)), (*C.uint8_t)(unsafe.SliceData(line)))
}

func halve(out, p []float32, w, h int) { C.halve(c(out), c(p), C.int(w), C.int(h)) }

func (q *scale) transform(values []float32, large []uint64, p []float32, stride int) {
	C.transform(c(values), (*C.uint64_t)(unsafe.SliceData(large)), C.int(len(large)), c(p), C.int(stride), c(q[:]), (*C.uint8_t)(&zigzag[0]))
}
