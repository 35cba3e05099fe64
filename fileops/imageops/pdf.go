package imageops

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/filewright/filewright/fileops/format"
)

// samples are raw pixels: 8 bits, interleaved, rows without padding.
type samples struct {
	pix           []byte
	width, height int
	components    int // 1, 3 or 4
}

func (m samples) check() error {
	switch {
	case m.width <= 0 || m.height <= 0 || m.width > 1<<20 || m.height > 1<<20:
		return fmt.Errorf("imageops: picture of %d × %d", m.width, m.height)
	case m.components != 1 && m.components != 3 && m.components != 4:
		return fmt.Errorf("imageops: %d components: %w", m.components, errors.ErrUnsupported)
	case int64(len(m.pix)) != int64(m.width)*int64(m.height)*int64(m.components):
		return fmt.Errorf("imageops: %d bytes for %d × %d × %d", len(m.pix), m.width, m.height, m.components)
	}
	return nil
}

// EncodeJPEG writes raw pixels as a progressive JPEG without metadata, scaled
// down to width × height if that is smaller; 0 keeps a dimension. pix is
// interleaved, 8 bits per sample and without padding; 1 component is gray, 3 are
// RGB and 4 are CMYK. quality is from 1 to 100.
//
// CMYK samples, here and in [Engine.DecodePixels], are the values that a JPEG
// stores and a PDF reader gets of it, whatever an Adobe marker says.
func (e *Engine) EncodeJPEG(ctx context.Context, pix []byte, w, h, components, width, height, quality int) ([]byte, error) {
	m := samples{pix, w, h, components}
	if err := m.check(); err != nil {
		return nil, err
	}
	width, height = smaller(w, width), smaller(h, height)
	return e.codec.jpeg(ctx, m, width, height, min(100, max(1, quality)))
}

// ScalePixels scales raw pixels, as [Engine.EncodeJPEG] takes them, down to
// width × height. It returns pix itself if they are not larger.
func (e *Engine) ScalePixels(ctx context.Context, pix []byte, w, h, components, width, height int) ([]byte, error) {
	m := samples{pix, w, h, components}
	if err := m.check(); err != nil {
		return nil, err
	}
	width, height = smaller(w, width), smaller(h, height)
	if width == w && height == h {
		return pix, nil
	}
	m, err := e.codec.scale(ctx, m, width, height)
	return m.pix, err
}

// DecodePixels decodes a JPEG or JPEG 2000 stream, scaled down to width ×
// height if that is smaller; 0 keeps a dimension. The samples are those of the
// stream: no profile and no orientation is applied. It fails with
// errors.ErrUnsupported if the stream has more than 8 bits or other than 1, 3
// or 4 components.
func (e *Engine) DecodePixels(ctx context.Context, data []byte, width, height int) (pix []byte, w, h, components int, err error) {
	src := source{data, format.Sniff(bytes.NewReader(data), int64(len(data)))}
	if src.format != format.JPG && src.format != format.JP2 || !e.codec.reads(src.format) {
		return nil, 0, 0, 0, fmt.Errorf("imageops: not a JPEG or JPEG 2000 stream: %w", errors.ErrUnsupported)
	}
	head, err := e.stat(src)
	if err != nil {
		return nil, 0, 0, 0, err
	}
	m, err := e.codec.unpack(ctx, src, smaller(head.width, width), smaller(head.height, height))
	if err != nil {
		return nil, 0, 0, 0, err
	}
	return m.pix, m.width, m.height, m.components, nil
}

// RecodeJPEG makes a new JPEG of a JPEG or JPEG 2000 stream, scaled down to
// width × height if that is smaller; 0 keeps a dimension. Its colours are those
// of the stream; see [Engine.DecodePixels] and [Engine.EncodeJPEG].
func (e *Engine) RecodeJPEG(ctx context.Context, data []byte, width, height, quality int) ([]byte, error) {
	pix, w, h, components, err := e.DecodePixels(ctx, data, width, height)
	if err != nil {
		return nil, err
	}
	return e.EncodeJPEG(ctx, pix, w, h, components, 0, 0, quality)
}

// inverted turns ink into the values that Adobe stores, and back.
func inverted(pix []byte) []byte {
	out := make([]byte, len(pix))
	for i, v := range pix {
		out[i] = 255 - v
	}
	return out
}

func smaller(n, limit int) int {
	if limit <= 0 || limit > n {
		return n
	}
	return limit
}
