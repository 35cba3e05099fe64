package imageops

import (
	"context"
	"image"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/imagefile"
)

// An appearance is the compared part of a picture: the luminance of its pages,
// one below the other. Transparent pictures look different on each backdrop.
type appearance struct {
	onWhite *image.Gray
	onBlack *image.Gray // nil if the picture is opaque
	pages   int
}

const (
	// maxSeen is the largest number of pixels in a file of which all pages are
	// compared. In larger files only the first page is compared.
	maxSeen = 60e6

	// drawn is the size in pixels at which a vector drawing is compared.
	drawn = 1024
)

// see decodes a picture with header h and returns its appearance.
func (e *Engine) see(ctx context.Context, src source, h header) (*appearance, error) {
	s := &appearance{pages: 1}
	if (src.format == format.GIF || src.format == format.WebP || src.format == format.TIFF) && h.pixels()*int64(h.pages) <= maxSeen {
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

// similarity returns the structural similarity of the page and backdrop that
// differ most. It is 0 if sizes or numbers of pages differ.
func (s *appearance) similarity(t *appearance) float64 {
	if s.pages != t.pages || s.onWhite.Rect != t.onWhite.Rect || s.onWhite.Rect.Dy()%s.pages != 0 {
		return 0
	}
	least := 1.0
	for i := range s.pages {
		least = min(least, imagefile.Similarity(page(s.onWhite, i, s.pages), page(t.onWhite, i, s.pages)))
		if s.onBlack != nil && t.onBlack != nil && t.onBlack.Rect == s.onBlack.Rect {
			least = min(least, imagefile.Similarity(page(s.onBlack, i, s.pages), page(t.onBlack, i, s.pages)))
		}
	}
	return least
}

// page returns one of n pages of the same height.
func page(m *image.Gray, i, n int) *image.Gray {
	h := m.Rect.Dy() / n
	return m.SubImage(image.Rect(0, i*h, m.Rect.Dx(), (i+1)*h)).(*image.Gray)
}

// luma returns m in gray (ITU-R BT.601) on a white background.
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
