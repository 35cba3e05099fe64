package imageops

import (
	"context"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/imagefile"
)

// maxAnimation limits the pixels of all frames of an animated PNG, which are held
// in memory.
const maxAnimation = 250_000_000

// An animator is a codec that keeps the frames of animations.
type animator interface {
	codec

	// animation decodes all frames. It applies the steps of the plan that precede
	// encoding.
	animation(ctx context.Context, src source, p plan) (imagefile.Animation, error)

	// reanimate applies these steps to decoded frames.
	reanimate(ctx context.Context, m decoded, p plan) (imagefile.Animation, error)
}

// animates reports whether the frames of a format are an animation that this engine
// keeps.
func (e *Engine) animates(f format.Format) bool {
	if f == format.PNG {
		_, ok := e.codec.(animator)
		return ok
	}
	return f == format.GIF || f == format.WebP
}

// animate converts between animated PNG, which libvips does not support, and
// other animations.
func (e *Engine) animate(ctx context.Context, src source, p plan) ([]byte, error) {
	h, err := e.stat(src)
	if err != nil {
		return nil, err
	}
	if h.pixels()*int64(h.pages) > maxAnimation {
		return nil, fileops.Fail(fileops.ErrLimit, nil, "the %d frames of the animation have more pixels than the limit of %s", h.pages, millions(maxAnimation))
	}
	if src.format == format.PNG {
		a, err := imagefile.DecodeAPNG(ctx, src.data, maxAnimation)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the animation is damaged or incomplete")
		}
		m := decoded{img: a.Pix, profile: imagefile.PNGProfile(src.data), animation: &a}
		if p.to != format.PNG {
			return e.codec.encode(ctx, m, p)
		}
		if a, err = e.codec.(animator).reanimate(ctx, m, p); err != nil {
			return nil, err
		}
		return a.EncodeAPNG(ctx)
	}
	a, err := e.codec.(animator).animation(ctx, src, p)
	if err != nil {
		return nil, err
	}
	return a.EncodeAPNG(ctx)
}
