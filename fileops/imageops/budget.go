package imageops

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/filewright/filewright/fileops"
)

const (
	coarsest    = 40 // lowest quality before the dimensions are reduced
	leastPixels = 8  // width and height below which a picture is not reduced
)

// A budgeted is an encoding within a number of bytes, and what it lost for that beside
// quality.
type budgeted struct {
	data     []byte
	metadata bool // all but the colour profile is dropped
	smaller  bool // the picture has fewer pixels
}

// within encodes a picture according to p, with at most a number of bytes; 0 means no
// limit. It lowers the quality, drops metadata, and lowers the dimensions, as far as
// necessary. It fails with *[fileops.ParamError] if the picture cannot have so few bytes.
func (e *Engine) within(ctx context.Context, src source, h header, p plan, most int) (b budgeted, err error) {
	b.data, err = e.transcode(ctx, src, p)
	if err != nil || most <= 0 || len(b.data) <= most {
		return b, err
	}
	size, quality := len(b.data), p.quality
	for {
		switch {
		case slices.Contains(lossy, p.to) && !p.lossless:
			p.quality = quality
			b.data, size, err = e.coarser(ctx, src, p, most)
			p.quality = coarsest
		case b.metadata:
			b.data, err = e.transcode(ctx, src, p)
			if size = len(b.data); size > most {
				b.data = nil
			}
		default:
			b.data = nil
		}
		if err != nil || b.data != nil {
			return b, err
		}
		if b.metadata || p.meta == keepProfile {
			break
		}
		b.metadata, p.meta = true, keepProfile
	}
	b.smaller = true
	b.data, err = e.smaller(ctx, src, h, p, size, most)
	return b, err
}

// coarser returns the encoding of the highest quality with at most a number of bytes,
// found by bisection. It returns nil and the number of bytes of quality coarsest if that
// has more.
func (e *Engine) coarser(ctx context.Context, src source, p plan, most int) (best []byte, size int, err error) {
	low, high := coarsest, 99
	if p.quality > 0 {
		high = max(coarsest, p.quality-1)
	}
	for q := low; low <= high; q = (low + high) / 2 {
		p.quality = q
		b, err := e.transcode(ctx, src, p)
		if err != nil {
			return nil, 0, err
		}
		switch size = len(b); {
		case size <= most:
			best, low = b, q+1
		case best == nil:
			return nil, size, nil
		default:
			high = q - 1
		}
		if best != nil && len(best) > most*97/100 {
			break // a higher quality gains nothing visible
		}
	}
	return best, len(best), nil
}

// smaller scales the picture down until it has at most a number of bytes. size is the
// number of bytes at full size.
func (e *Engine) smaller(ctx context.Context, src source, h header, p plan, size, most int) ([]byte, error) {
	const tries = 12
	w, ht := outSize(h, p)
	scale := 1.0
	if !p.exact() && len(p.sizes) == 0 {
		for range tries {
			// The size grows with the area, less the parts that do not depend on it.
			scale *= min(0.9, 0.97*math.Sqrt(float64(most)/float64(size)))
			q := p
			// The longer side decides, as the picture may be turned.
			long := max(leastPixels, int(scale*max(w, ht)))
			q.width, q.height, q.enlarge = long, long, p.enlarge
			b, err := e.transcode(ctx, src, q)
			if err != nil || len(b) <= most {
				return b, err
			}
			if size = len(b); long == leastPixels {
				break
			}
		}
	}
	return nil, &fileops.ParamError{Param: "max_bytes", Reason: fmt.Sprintf("is too small for this picture: it needs about %d bytes", size)}
}
