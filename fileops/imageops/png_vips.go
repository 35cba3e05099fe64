//go:build cgo

package imageops

import (
	"context"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
)

// maxPlainPNG limits the pixels that are held in memory to write a PNG. libvips
// is slower, but needs only a few rows.
const maxPlainPNG = 24_000_000

// plainPNG reports whether imagefile.EncodePNG can encode p according to a plan.
func plainPNG(p *picture, t plan) bool {
	return t.to == format.PNG && !t.small && t.colours == 0 && (!t.bilevel || p.Bands() != 1) &&
		p.BandFormat() == vips.BandFormatUchar && p.Bands() <= 4 && p.Interpretation() != vips.InterpretationCMYK &&
		int64(p.Width())*int64(p.Height()) <= maxPlainPNG
}

// savePNG writes p with imagefile's encoder. The metadata comes from a black
// picture of the same size that libvips writes.
func (p *picture) savePNG(ctx context.Context, t plan) ([]byte, error) {
	options := "compression=1,filter=none"
	if t.meta == keepProfile && !p.HasICCProfile() {
		options += ",strip=true"
	}
	width, height := 1, 1
	if p.HasExif() { // EXIF repeats the size
		width, height = p.Width(), p.Height()
	}
	black, err := p.blank(width, height)
	if err != nil {
		return nil, err
	}
	defer black.close()
	// A rotated picture has no orientation, but its EXIF block still contains one.
	if err := black.SetOrientation(max(1, p.Orientation())); err != nil {
		return nil, cause(err)
	}
	metadata, err := black.save(ctx, "pngsave_buffer", options)
	if err != nil {
		return nil, err
	}
	if p.resolution == (resolution{}) {
		metadata = imagefile.WithoutChunk(metadata, "pHYs")
	}
	before, after := imagefile.SplitMetadata(metadata)
	var out []byte
	m := raster.Samples{Width: p.Width(), Height: p.Height(), Components: p.Bands()}
	err = p.look(ctx, func(pix []byte) error {
		m.Pix = pix
		var err error
		out, err = imagefile.EncodePNG(ctx, m, before, after)
		return err
	})
	return out, err
}
