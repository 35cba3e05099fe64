package imageops

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
)

func checkSamples(s raster.Samples) error {
	if s.Components != 1 && s.Components != 3 && s.Components != 4 {
		return fmt.Errorf("imageops: %d components: %w", s.Components, errors.ErrUnsupported)
	}
	return s.Check()
}

// EncodeJPEG encodes samples with 1, 3 or 4 components as a progressive JPEG
// file without metadata. quality is from 1 to 100.
func (e *Engine) EncodeJPEG(ctx context.Context, s raster.Samples, quality int) ([]byte, error) {
	if err := checkSamples(s); err != nil {
		return nil, err
	}
	return e.codec.jpeg(ctx, s, min(100, max(1, quality)))
}

// ScalePixels scales samples with 1, 3 or 4 components down to width × height; 0
// keeps a dimension. It never scales up. If nothing changes, it returns s
// itself.
func (e *Engine) ScalePixels(ctx context.Context, s raster.Samples, width, height int) (raster.Samples, error) {
	if err := checkSamples(s); err != nil {
		return raster.Samples{}, err
	}
	width, height = smaller(s.Width, width), smaller(s.Height, height)
	if width == s.Width && height == s.Height {
		return s, nil
	}
	return e.codec.scale(ctx, s, width, height)
}

// DecodePixels decodes a JPEG or JPEG 2000 file and scales it down to width ×
// height; 0 keeps a dimension. It never scales up, and applies neither profile
// nor orientation. It fails with errors.ErrUnsupported if the file has more than
// 8 bits, or a number of components other than 1, 3 or 4.
func (e *Engine) DecodePixels(ctx context.Context, data []byte, width, height int) (raster.Samples, error) {
	src := source{data, format.Sniff(bytes.NewReader(data), int64(len(data)))}
	if src.format != format.JPG && src.format != format.JP2 || !e.codec.reads(src.format) {
		return raster.Samples{}, fmt.Errorf("imageops: not a JPEG or JPEG 2000 file: %w", errors.ErrUnsupported)
	}
	head, err := e.stat(src)
	if err != nil {
		return raster.Samples{}, err
	}
	return e.codec.unpack(ctx, src, smaller(head.width, width), smaller(head.height, height))
}

func smaller(n, limit int) int {
	if limit <= 0 || limit > n {
		return n
	}
	return limit
}
