package imageops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
)

// Reduce encodes the first page of a picture again, for a picture in a document. It
// keeps the colour profile, drops other metadata, and does not apply an orientation.
// It never raises the quality of a JPEG.
//
// It fails with errors.ErrUnsupported if transparency would be lost, or if the
// result does not resemble the picture.
func (e *Engine) Reduce(ctx context.Context, data []byte, r raster.Reduction) ([]byte, error) {
	src := source{data, format.Sniff(bytes.NewReader(data), int64(len(data)))}
	if ownDecoder(src.format) == nil && !e.codec.reads(src.format) {
		return nil, fmt.Errorf("imageops: %s: %w", src.format, errors.ErrUnsupported)
	}
	h, err := e.stat(src)
	if err != nil {
		return nil, err
	}
	p := plan{to: r.To, width: r.Width, height: r.Height, quality: r.Quality, meta: keepProfile, upside: true}
	var b []byte
	switch r.To {
	case format.JPG:
		if h.alpha {
			if err := e.requireOpaque(ctx, src); err != nil {
				return nil, err
			}
		}
		p.small, p.subsample = true, "on"
		if src.format == format.JPG {
			if q := jpegInfo(data).Quality; q > 0 {
				p.quality = min(p.quality, q) // more would only add bytes
			}
		}
		b, err = e.transcode(ctx, src, p)
	case format.PNG:
		small := src
		if fit(h.width, h.height, p) < 1 || src.format != format.PNG {
			if b, err = e.transcode(ctx, src, p); err != nil {
				return nil, err
			}
			small = source{b, format.PNG}
		}
		q := plan{to: format.PNG, meta: keepProfile, small: true, lossless: true}
		if r.Palette {
			q.lossless, q.colours, q.quality, q.dither = false, 256, r.Quality, 0.8
		}
		b, err = e.recompress(ctx, small, q)
	default:
		return nil, fmt.Errorf("imageops: reduce to %s: %w", r.To, errors.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	return b, e.resembles(ctx, src, source{b, r.To})
}

// requireOpaque returns an error if a picture has a pixel that is not opaque.
func (e *Engine) requireOpaque(ctx context.Context, src source) error {
	img, err := e.codec.pixels(ctx, src, plan{to: format.PNG})
	if err != nil {
		return err
	}
	if o, ok := img.(interface{ Opaque() bool }); !ok || !o.Opaque() {
		return fmt.Errorf("imageops: transparent picture: %w", errors.ErrUnsupported)
	}
	return nil
}

// alike is the minimum similarity; below it the encoding has failed.
const alike = 0.85

// resembles returns an error if the second picture does not look like the first. If
// the sizes of the previews differ by rounding, it compares the common part.
func (e *Engine) resembles(ctx context.Context, a, b source) error {
	if ownDecoder(a.format) != nil {
		return nil // written from the same pixels
	}
	before, err := e.codec.pixels(ctx, a, plan{width: 192, height: 192, upside: true})
	if err != nil {
		return err
	}
	after, err := e.codec.pixels(ctx, b, plan{width: 192, height: 192, upside: true})
	if err != nil {
		return err
	}
	both := before.Bounds().Intersect(after.Bounds())
	if s := imagefile.Similarity(luma(crop(before, both)), luma(crop(after, both))); s < alike {
		return fmt.Errorf("imageops: similarity %.3f", s)
	}
	return nil
}

func crop(m image.Image, r image.Rectangle) image.Image {
	if m.Bounds() == r {
		return m
	}
	if s, ok := m.(interface {
		SubImage(image.Rectangle) image.Image
	}); ok {
		return s.SubImage(r)
	}
	return m
}
