package imagefile

import (
	"image"
	"math"

	"github.com/filewright/filewright/fileops/raster"
)

// Similarity returns the mean structural similarity of two pictures of the same
// size in blocks of 8 × 8 pixels (Wang et al., Image quality assessment, 2004).
// It is 1 for equal pictures, and 0 if the sizes differ.
func Similarity(a, b *image.Gray) float64 {
	if a.Rect.Size() != b.Rect.Size() || a.Rect.Empty() {
		return 0
	}
	const block, c1, c2 = 8, 6.5025, 58.5225 // (0.01 × 255)² and (0.03 × 255)²
	w, h := a.Rect.Dx(), a.Rect.Dy()
	sum, n := 0.0, 0
	for y := 0; y < h; y += block {
		for x := 0; x < w; x += block {
			var sa, sb, saa, sbb, sab, count int
			for j := y; j < min(h, y+block); j++ {
				to := min(w, x+block)
				p, q := a.Pix[j*a.Stride+x:j*a.Stride+to], b.Pix[j*b.Stride+x:j*b.Stride+to]
				for i, u := range p {
					u, v := int(u), int(q[i])
					sa, sb, saa, sbb, sab = sa+u, sb+v, saa+u*u, sbb+v*v, sab+u*v
				}
				count += len(p)
			}
			k := float64(count)
			ma, mb := float64(sa)/k, float64(sb)/k
			va, vb := math.Max(0, float64(saa)/k-ma*ma), math.Max(0, float64(sbb)/k-mb*mb)
			cov := float64(sab)/k - ma*mb
			sum += (2*ma*mb + c1) * (2*cov + c2) / ((ma*ma + mb*mb + c1) * (va + vb + c2))
			n++
		}
	}
	return sum / float64(n)
}

// Luma returns the luminance of samples (ITU-R BT.601). If they are neither gray
// nor RGB, it returns their first component.
func Luma(s raster.Samples) *image.Gray {
	out := &image.Gray{Pix: s.Pix, Stride: s.Width, Rect: image.Rect(0, 0, s.Width, s.Height)}
	n := s.Components
	if n == 1 {
		return out
	}
	out.Pix = make([]byte, s.Width*s.Height)
	for i := range out.Pix {
		p := s.Pix[i*n:][:n]
		if n == 3 {
			out.Pix[i] = byte((19595*uint32(p[0]) + 38470*uint32(p[1]) + 7471*uint32(p[2]) + 1<<15) >> 16)
		} else {
			out.Pix[i] = p[0]
		}
	}
	return out
}
