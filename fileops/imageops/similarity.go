package imageops

import (
	"context"
	"image"
	"math"

	"github.com/filewright/filewright/fileops/format"
)

// A sight is what is compared of a picture: the luminance of its pages, one
// below the other. What shows through depends on what is behind it.
type sight struct {
	onWhite *image.Gray
	onBlack *image.Gray // nil if the picture is opaque
	pages   int
}

const (
	// maxSeen is up to how many pixels all pages of a file are compared, and
	// not just the first one.
	maxSeen = 60e6

	// drawn is the size at which a drawing without pixels is compared.
	drawn = 1024
)

// see decodes what is to be compared of a picture with header h.
func (e *Engine) see(ctx context.Context, src source, h header) (*sight, error) {
	s := &sight{pages: 1}
	if (animated(src.format) || src.format == format.TIFF) && h.pixels()*int64(h.pages) <= maxSeen {
		s.pages = h.pages
	}
	if decode := ownDecoder(src.format); decode != nil {
		m, err := decode(src.data)
		if err != nil {
			return nil, err
		}
		s.onWhite = luma(m.img)
		return s, nil
	}
	var err error
	if s.onWhite, err = e.codec.luma(ctx, src, s.pages, 255); err != nil {
		return nil, err
	}
	if h.alpha || src.format == format.SVG {
		s.onBlack, err = e.codec.luma(ctx, src, s.pages, 0)
	}
	return s, err
}

// similarity returns that of the page that differs most. on
// which it does.
func (s *sight) similarity(t *sight) float64 {
	if s.pages != t.pages || s.onWhite.Rect != t.onWhite.Rect || s.onWhite.Rect.Dy()%s.pages != 0 {
		return 0
	}
	least := 1.0
	for i := range s.pages {
		least = min(least, similarity(page(s.onWhite, i, s.pages), page(t.onWhite, i, s.pages)))
		if s.onBlack != nil && t.onBlack != nil && t.onBlack.Rect == s.onBlack.Rect {
			least = min(least, similarity(page(s.onBlack, i, s.pages), page(t.onBlack, i, s.pages)))
		}
	}
	return least
}

// page returns one of n pages of the same height.
func page(m *image.Gray, i, n int) *image.Gray {
	h := m.Rect.Dy() / n
	return m.SubImage(image.Rect(0, i*h, m.Rect.Dx(), (i+1)*h)).(*image.Gray)
}

// similarity returns the mean structural similarity of two pictures of the same
// size (Wang et al., Image quality assessment, 2004) in blocks of 8 by 8: 1 for
// equal ones and 0 for pictures of different size.
func similarity(a, b *image.Gray) float64 {
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

// luma returns m in gray (ITU-R BT.601), laid on white.
func luma(m image.Image) *image.Gray { return lumaOn(m, 255) }

// lumaOn is luma on a gray backdrop.
func lumaOn(m image.Image, backdrop uint32) *image.Gray {
	if g, ok := m.(*image.Gray); ok && g.Rect.Min == (image.Point{}) {
		return g
	}
	b := m.Bounds()
	out := image.NewGray(image.Rect(0, 0, b.Dx(), b.Dy()))
	for y := range b.Dy() {
		for x := range b.Dx() {
			r, g, bl, a := m.At(b.Min.X+x, b.Min.Y+y).RGBA()
			v := (19595*r + 38470*g + 7471*bl + 1<<15) >> 16
			out.Pix[y*out.Stride+x] = byte((v + (0xffff-a)*backdrop/255) >> 8)
		}
	}
	return out
}
