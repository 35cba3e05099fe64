package imageops

import (
	"cmp"
	"context"
	"image"
	"math"
	"slices"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
	"github.com/filewright/filewright/internal/jpegenc"
	"github.com/filewright/filewright/internal/ssimulacra"
)

// Scores of SSIMULACRA 2 for each level: 80 means that the pictures cannot be
// distinguished side by side, 70 that it is hard to notice a change without the
// original, 50 is medium quality.
var (
	leastScore  = [3]float64{80, 70, 55}
	enoughScore = [3]float64{88, 80, 65} // then a lower quality is tried
)

// leastAlike is the least structural similarity of the whole picture. The score
// of a large picture is that of its samples, and does not see damage elsewhere.
const leastAlike = 0.6

// scored reports whether the measure for a result of p is the score, and not the
// structural similarity. The score knows only opaque, still pictures.
func scored(p plan, h header) bool {
	switch p.to {
	case format.JPG, format.WebP, format.AVIF, format.HEIC, format.JXL:
		return h.pages == 1 && !h.alpha && !p.lossless && !p.all && min(h.width, h.height) >= 8
	}
	return false
}

// An original is the decoded input, with what the score needs of it.
type original struct {
	whole raster.Samples    // RGB, or gray
	parts []image.Rectangle // of the picture, that are compared
	ref   *ssimulacra.Reference
	luma  *image.Gray // of whole; nil until it is needed
}

const (
	tile     = 192 // pixels of each side of a part
	tiles    = 12  // the most parts
	allTiles = tile * tile * tiles * 2
)

// newOriginal decodes the input. The parts of a large picture are tiles with as
// much and as little detail as the whole.
func (e *Engine) newOriginal(ctx context.Context, src source) (*original, error) {
	whole, err := e.codec.flat(ctx, src)
	if err != nil {
		return nil, err
	}
	s := &original{whole: whole, parts: []image.Rectangle{image.Rect(0, 0, whole.Width, whole.Height)}}
	if whole.Width*whole.Height > allTiles && min(whole.Width, whole.Height) >= tile {
		s.parts = choose(whole)
	}
	s.ref, err = ssimulacra.NewReference(cut(whole, s.parts)...)
	return s, err
}

// choose returns the parts of a large picture: tiles at equal distances in the order
// of their detail.
func choose(s raster.Samples) []image.Rectangle {
	type candidate struct {
		at     image.Rectangle
		detail int
	}
	var all []candidate
	for y := 0; y+tile <= s.Height; y += tile {
		for x := 0; x+tile <= s.Width; x += tile {
			c := candidate{at: image.Rect(x, y, x+tile, y+tile)}
			for j := 1; j < tile; j += 4 {
				row := s.Pix[((y+j)*s.Width+x)*s.Components:][:tile*s.Components]
				for i := 4 * s.Components; i < len(row); i += 4 * s.Components {
					d := int(row[i]) - int(row[i-s.Components])
					c.detail += max(d, -d)
				}
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.detail, a.detail) })
	var parts []image.Rectangle
	for i, n := 0, min(len(all), tiles); i < n; i++ {
		parts = append(parts, all[(2*i+1)*len(all)/(2*n)].at)
	}
	return parts
}

// cut returns parts of a picture.
func cut(s raster.Samples, parts []image.Rectangle) (out []raster.Samples) {
	for _, r := range parts {
		if r == image.Rect(0, 0, s.Width, s.Height) {
			out = append(out, s)
			continue
		}
		part := raster.Samples{Width: r.Dx(), Height: r.Dy(), Components: s.Components}
		part.Pix = make([]byte, 0, part.Width*part.Height*part.Components)
		for y := r.Min.Y; y < r.Max.Y; y++ {
			part.Pix = append(part.Pix, s.Pix[(y*s.Width+r.Min.X)*s.Components:][:r.Dx()*s.Components]...)
		}
		out = append(out, part)
	}
	return out
}

// sampled returns the parts of the original in a column, as a picture of its own,
// and the parts of that picture. It returns the original if that is the only part.
func (s *original) sampled() (raster.Samples, []image.Rectangle) {
	parts := cut(s.whole, s.parts)
	if len(parts) == 1 {
		return parts[0], s.parts
	}
	all := raster.Samples{Width: tile, Components: s.whole.Components}
	all.Pix = make([]byte, 0, len(parts)*tile*tile*all.Components)
	var rects []image.Rectangle
	for _, p := range parts {
		rects = append(rects, image.Rect(0, all.Height, tile, all.Height+tile))
		all.Height += tile
		all.Pix = append(all.Pix, p.Pix...)
	}
	return all, rects
}

// tryScored is try for plans that are scored. It searches for the quality on a
// sample of the picture, and encodes the whole picture with it.
func (c *compression) tryScored(ctx context.Context, p plan) error {
	if c.original == nil {
		var err error
		if c.original, err = c.newOriginal(ctx, c.src); err != nil {
			return err
		}
	}
	s := scoreSearch{quality: p.quality, lowest: max(1, p.quality/2), highest: 97, least: leastScore[c.level] + 0.5, enough: enoughScore[c.level]}
	if c.src.format == format.JPG {
		// At the quality of the input hardly any detail is lost. A higher one only adds bytes.
		if known := jpegInfo(c.src.data).Quality; known > 0 {
			s.highest = max(known, p.quality)
		}
	}
	sample, parts := c.original.sampled()
	whole := len(parts) == 1
	var encoded []byte         // with the quality found, if known
	var decoded raster.Samples // the pixels of encoded
	for range 5 {
		p.quality = s.quality
		b, err := c.encodeSamples(ctx, sample, p)
		if err != nil {
			return err
		}
		m, err := c.codec.flat(ctx, source{b, p.to})
		if err != nil {
			return err
		}
		got, err := c.original.ref.Score(cut(m, parts)...)
		if err != nil {
			return err
		}
		again := s.next(got)
		if whole && p.to == format.JPG && s.passed == p.quality {
			encoded, decoded = b, m // the whole picture is coded alike
		}
		if !again {
			break
		}
	}
	if s.passed == 0 {
		return nil
	}
	// A whole picture may differ a little from its sample.
	quality := s.passed
	for range tries(c.header) {
		b, m, scored := encoded, decoded, true
		if p.quality = quality; b == nil || quality > s.passed {
			var err error
			if b, err = c.encodeWhole(ctx, p); err != nil {
				return err
			}
			scored = false
		}
		if float64(len(b)) >= c.limit {
			return nil
		}
		if !scored {
			var err error
			if m, err = c.codec.flat(ctx, source{b, p.to}); err != nil {
				return err
			}
		}
		good, err := c.acceptable(m, scored)
		if good {
			c.best = b
		}
		if good || err != nil || quality == s.highest {
			return err
		}
		quality = min(s.highest, quality+max(4, (s.highest-quality)/4))
	}
	return nil
}

// acceptable reports whether a decoded result looks enough like the picture. The score
// of a result may be known to suffice.
func (c *compression) acceptable(m raster.Samples, scored bool) (bool, error) {
	if m.Width != c.original.whole.Width || m.Height != c.original.whole.Height {
		return false, nil
	}
	alike := make(chan bool)
	go func() {
		if c.original.luma == nil {
			c.original.luma = gray(c.original.whole)
		}
		alike <- imagefile.Similarity(c.original.luma, gray(m)) >= leastAlike
	}()
	good, err := scored, error(nil)
	if !scored {
		var got float64
		got, err = c.original.ref.Score(cut(m, c.original.parts)...)
		good = err == nil && got >= leastScore[c.level]
	}
	return <-alike && good, err
}

// gray returns the luminance of gray or RGB samples.
func gray(s raster.Samples) *image.Gray {
	r := image.Rect(0, 0, s.Width, s.Height)
	if s.Components == 1 {
		return &image.Gray{Pix: s.Pix, Stride: s.Width, Rect: r}
	}
	m := image.NewGray(r)
	for i := range m.Pix {
		p := s.Pix[3*i : 3*i+3]
		m.Pix[i] = byte((19595*uint32(p[0]) + 38470*uint32(p[1]) + 7471*uint32(p[2]) + 1<<15) >> 16)
	}
	return m
}

// encodeWhole encodes the picture.
func (c *compression) encodeWhole(ctx context.Context, p plan) ([]byte, error) {
	if p.to == format.JPG {
		return c.encodeSamples(ctx, c.original.whole, p)
	}
	return c.recompress(ctx, c.src, p)
}

// encodeSamples encodes samples that come from the picture.
func (c *compression) encodeSamples(ctx context.Context, s raster.Samples, p plan) ([]byte, error) {
	if p.to != format.JPG {
		var m image.Image = &image.Gray{Pix: s.Pix, Stride: s.Width, Rect: image.Rect(0, 0, s.Width, s.Height)}
		if s.Components == 3 {
			m = imagefile.RGBA(s)
		}
		return c.encode(ctx, decoded{img: m}, p)
	}
	o := jpegenc.Options{Quality: p.quality, FullColour: p.subsample == "off"}
	info := jpegInfo(c.src.data)
	o.X, o.Y = c.header.resolution.x*25.4, c.header.resolution.y*25.4
	if o.X == 0 {
		o.X, o.Y = info.Density.X, info.Density.Y
	}
	space := map[int]string{1: "GRAY", 3: "RGB "}[s.Components]
	if len(info.Profile) > 20 && string(info.Profile[16:20]) == space { // ICC.1:2022, 7.2.6
		o.Profile = info.Profile
	}
	return jpegenc.Encode(ctx, s, o)
}

// A scoreSearch finds the lowest quality with a sufficient score.
type scoreSearch struct {
	quality         int // to try
	lowest, highest int
	least, enough   float64 // a score above enough is better than needed

	failures                 int // number of insufficient scores
	failed, passed           int // nearest qualities; 0 for none
	failedScore, passedScore float64
}

// next takes the score of the current quality and chooses the next one. It returns
// false if no other is worth a try.
func (s *scoreSearch) next(got float64) bool {
	const near = 2 // quality difference that hardly matters
	aim := s.least + 1
	if got >= s.least {
		s.passed, s.passedScore = s.quality, got
		if s.failed == 0 {
			if got <= s.enough || s.passed <= s.lowest {
				return false
			}
			aim = (s.least + s.enough) / 2
		}
	} else {
		s.failures++
		s.failed, s.failedScore = s.quality, got
		if s.failed >= s.highest {
			return false
		}
	}
	if s.failed > 0 && s.passed > 0 {
		gap := s.passed - s.failed
		if gap <= near {
			return false
		}
		part := (aim - s.failedScore) / (s.passedScore - s.failedScore)
		s.quality = s.failed + int(float64(gap)*min(0.8, max(0.2, part))+0.5)
		return true
	}
	// The distance from 100 grows a little slower than that of the quality.
	next := 101 - int(float64(101-s.quality)*math.Pow((100-aim)/max(0.1, 100-got), 1.2))
	if s.failed > 0 {
		// The score of noise hardly grows with the quality. After each miss, skip a
		// growing part of the rest, so that the last try does not fail too.
		s.quality = min(s.highest, max(next, beyond(s.failed, s.highest, s.failures, 12, 4, 2)))
	} else {
		s.quality = max(s.lowest, min(s.passed-1, next))
	}
	return true
}
