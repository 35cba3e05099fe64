//go:build cgo

package imageops

import (
	"cmp"
	"context"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/imagefile"
)

// plainPNG reports whether imagefile.PNGWriter can encode p according to a plan.
func plainPNG(p *picture, t plan) bool {
	return t.to == format.PNG && !t.small && t.colours == 0 && (!t.bilevel || p.Bands() != 1) &&
		p.BandFormat() == vips.BandFormatUchar && p.Bands() <= 4 && p.Interpretation() != vips.InterpretationCMYK
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
	w := imagefile.NewPNGWriter(ctx, p.Width(), p.Height(), p.Bands())
	err = p.copyTo(ctx, w)
	out, failed := w.Finish(before, after)
	return out, cmp.Or(err, failed)
}
