package imageops

import (
	"context"
	"errors"
	"image"
	"math"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/imagefile"
)

// Compress returns the action "compress" for pictures. The result has the
// format, dimensions, frames and colour profile of the input; other metadata is
// dropped. If it would be less than 3 % smaller, the result is the input.
//
// The initial quality depends on the level:
//
//	        less              recommended        extreme
//	jpg     85                75                 50
//	png     lossless          256 colours        256 coarser colours
//	webp    85 or lossless    75                 50
//	gif     256 colours       128 colours        64 colours
//	tiff    lossless          JPEG 75 inside     JPEG 55 inside
//	avif    65                50                 35
//	heic    60                45                 35
//	jxl     90                80                 65
//	jp2     48                38                 30
//	bmp     lossless, at any level: a palette, no unused bytes
//	svg     comments and data of editors removed, coordinates rounded to
//	        1/100000, 1/20000 or 1/2000 of the drawing
//	score   ≥ 80              ≥ 70               ≥ 55
//	SSIM    ≥ 0.99            ≥ 0.95             ≥ 0.90
//
// The result is decoded and compared with the input. If it is not similar enough,
// it is encoded again at higher quality. If that fails too, the result is the
// input.
//
// Still, opaque pictures in jpg, webp, avif, heic and jxl must reach the score of
// SSIMULACRA 2. Of a picture with more than 0.9 million pixels, 16 squares are
// compared. If the score is higher than needed, a lower quality is tried. A JPEG
// is never encoded with more than its own quality.
//
// Other pictures must reach the mean structural similarity (SSIM) of the luminance
// in blocks of 8 × 8 pixels. The worst frame of an animation counts, and for
// transparent pictures the worse of a white and a black backdrop.
func (e *Engine) Compress() fileops.Action {
	spec := fileops.Spec{
		MaxBytes: e.opts.MaxBytes,
		Name:     "compress", Engine: e.Name(), Family: "image",
		Summary: "Makes picture files smaller and keeps the dimensions.",
	}
	var formats []format.Format
	for _, f := range compressible {
		if slices.Contains(e.reads, f) && (f == format.SVG || f == format.BMP || e.codec.compresses(f)) {
			formats = append(formats, f)
		}
	}
	spec.Accepts = []fileops.Accept{{Formats: formats, Params: fileops.Schema{fileops.Compression("How much detail may be lost to save space.")}}}
	return fileops.Func(spec, e.compress)
}

// worthwhile is the largest ratio of result size to input size. A change of the
// picture must save at least 3 %.
const worthwhile = 0.97

func (e *Engine) compress(ctx context.Context, job *fileops.Job) error {
	src, h, err := e.load(ctx, job)
	if src.format == format.SVG && errors.Is(err, fileops.ErrUnsupportedInput) && sizeless(src.data) {
		job.Log.Info("file kept as it is", "reason", "the drawing has no size")
		return job.Keep(job.Input()) // an intact document, which cannot be compared
	}
	if err != nil {
		return err
	}
	job.Progress(0.05)
	if reason := irreplaceable(src, h); reason != "" {
		job.Log.Info("file kept as it is", "reason", reason)
		return e.keep(ctx, job, src)
	}
	level := max(0, slices.Index(levels, job.Params.Get("compression_value")))
	c := &compression{Engine: e, src: src, header: h, level: level, bound: bounds[level] + margin, limit: worthwhile * float64(len(src.data))}
	if src.format == format.SVG {
		c.bound = bounds[0] // simplifications of a drawing must be invisible
	}
	steps := stepsFor(src, h, level)
	for i, candidates := range steps {
		for k, p := range candidates {
			err := c.try(ctx, p)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil && src.format == format.TIFF && h.pages > 1:
				// The TIFF writer requires pages of the same size.
				job.Log.Info("file kept as it is", "reason", "the pages cannot be written together")
				return e.keep(ctx, job, src)
			case err != nil:
				return e.blame(ctx, src, p, err)
			}
			done := float64(i) + float64(k+1)/float64(len(candidates))
			job.Progress(0.05 + 0.9*done/float64(len(steps)))
		}
		if c.best != nil {
			warnHDR(job, src, h)
			warnMotion(job, src)
			if h.cmyk {
				warnCMYK(job)
			}
			return job.WriteBytes(job.Input().Name(), c.best)
		}
	}
	return e.keep(ctx, job, src)
}

// A compression searches for the smallest encoding of a picture that is similar
// enough.
type compression struct {
	*Engine
	src    source
	header header
	bound  float64 // least structural similarity
	limit  float64 // a result must have fewer bytes

	level int

	before   *appearance // of the input; decoded on first use
	original *original   // of the input; decoded on first use
	best     []byte      // the smallest result so far that meets the bound
}

// tries returns the maximum number of encodings of a picture with header h for one
// plan.
func tries(h header) int {
	if h.pixels()*int64(h.pages) > 4e6 {
		return 3 // some encoders take seconds
	}
	return 5
}

// try encodes the picture according to p. If the result is not similar enough,
// it retries at higher quality. A result that is smaller than the best so far
// replaces it.
func (c *compression) try(ctx context.Context, p plan) error {
	if scored(p, c.header) {
		return c.tryScored(ctx, p)
	}
	search := search{quality: p.quality, highest: 97, mayLose: 1 - c.bound}
	if c.src.format == format.JPG {
		// At the quality of the input hardly any detail is lost, because the
		// quantization is the same. A higher quality only adds bytes.
		if known := jpegInfo(c.src.data).Quality; known > 0 {
			search.highest = max(known, p.quality)
		}
	}
	for n := 1; ; n++ {
		b, err := c.recompress(ctx, c.src, p)
		if err != nil || b == nil {
			return err
		}
		similar := 1.0 // too large: a result with less similarity may be smaller
		if fits := float64(len(b)) < c.limit && (c.best == nil || len(b) < len(c.best)); fits {
			if similar, err = c.compare(ctx, source{b, c.src.format}); err != nil {
				return err
			}
			if similar >= c.bound {
				c.best = b
			}
		}
		again := similar > 0 && p.quality > 0 && p.colours == 0 && !p.lossless
		if n == tries(c.header) || !again {
			return nil
		}
		if c.src.format == format.SVG {
			if p.quality--; similar >= c.bound || p.quality == 0 {
				return nil
			}
			continue
		}
		if !search.next(1 - similar) {
			return nil
		}
		p.quality = search.quality
	}
}

// A search finds the lowest quality, from the initial quality upwards, whose
// loss is acceptable. The loss is one minus the similarity.
type search struct {
	quality int // to try
	highest int
	mayLose float64

	failures       int     // number of qualities with too much loss
	failed, passed int     // nearest qualities with too much and with acceptable loss; 0 for none
	lost, kept     float64 // their losses
}

// next takes the loss at the current quality and chooses the next one. It
// returns false if no other quality is worth a try.
func (s *search) next(lost float64) bool {
	const (
		near   = 2    // quality difference that hardly matters
		safety = 0.95 // fraction of the acceptable loss to aim at
	)
	if lost <= s.mayLose {
		s.passed, s.kept = s.quality, lost
		if s.failed == 0 || s.passed-s.failed <= near || lost > 0.9*s.mayLose {
			return false // the level allows no less, or it would gain little
		}
	} else {
		s.failures++
		s.failed, s.lost = s.quality, lost
	}
	// The loss grows like a power of the distance from the best quality. The
	// exponent is 1.25 for most encoders; two measured points give a better one.
	power := 1.25
	if s.passed > 0 && s.kept > 0 {
		power = math.Log(s.lost/s.kept) / math.Log(float64(101-s.failed)/float64(101-s.passed))
	}
	next := 101 - int(float64(101-s.failed)*math.Pow(s.mayLose/s.lost*safety, 1/power))
	if s.passed == 0 {
		// Noise loses much at every quality except the best. After each miss, skip a
		// growing part of the rest, so that the last try does not fail too.
		s.quality = min(s.highest, max(next, beyond(s.failed, s.highest, s.failures, 100, 3, 2)))
	} else {
		s.quality = min(s.passed-1, max(next, s.failed+1))
	}
	return s.quality > s.failed
}

// beyond returns the lowest quality to try after a number of failures, the last one at
// failed. The nth failure skips at least one of parts[n-1] equal parts of the rest; after
// more failures only the highest quality is left.
func beyond(failed, highest, failures int, parts ...int) int {
	if failures > len(parts) {
		return highest
	}
	return failed + max(1, (highest-failed)/parts[failures-1])
}

// compare returns the similarity of a result to the picture. It is 0 if
// dimensions or pages differ.
func (c *compression) compare(ctx context.Context, src source) (float64, error) {
	h, err := c.stat(src)
	if err != nil {
		return 0, err
	}
	want := c.header
	if h.width != want.width && h.width != want.height || h.pixels() != want.pixels() || h.pages != want.pages {
		return 0, nil
	}
	if c.before == nil {
		if c.before, err = c.see(ctx, c.src, want); err != nil {
			return 0, err
		}
	}
	after, err := c.see(ctx, src, want)
	if err != nil {
		return 0, err
	}
	return c.before.similarity(after), nil
}

// keep returns the input after a check that it is intact: a damaged picture must
// not be reported as compressed.
func (e *Engine) keep(ctx context.Context, job *fileops.Job, src source) error {
	if _, err := e.preview(ctx, src); err != nil {
		return e.blame(ctx, src, plan{to: src.format}, err)
	}
	return job.Keep(job.Input())
}

// irreplaceable returns the reason why compression would lose content, such as
// frames, or "".
func irreplaceable(src source, h header) string {
	switch src.format {
	case format.PNG:
		// The control chunk of an animation precedes the first pixels (PNG, third
		// edition, 5.6).
		for kind := range imagefile.PNGChunks(src.data) {
			switch kind {
			case "acTL":
				return "it is animated"
			case "IDAT":
				return ""
			}
		}
	case format.AVIF, format.HEIC:
		if isSequence(src) {
			return "it is a sequence"
		}
		if h.pages > 1 {
			return "it contains several pictures"
		}
	}
	return ""
}

// recompress encodes a picture according to p. For a lossless PNG it also tries
// an exact palette, which libvips does not write. If p limits the colours, it tries
// only the palette, and returns nil for a picture with more colours.
func (e *Engine) recompress(ctx context.Context, src source, p plan) (b []byte, err error) {
	switch {
	case p.to == format.BMP:
		return repackBMP(src.data)
	case p.to == format.SVG:
		return minifySVG(src.data, p.quality)
	case p.to != format.PNG || !p.lossless:
		return e.codec.transcode(ctx, src, p)
	}
	if p.colours == 0 {
		if b, err = e.codec.transcode(ctx, src, p); err != nil {
			return nil, err
		}
	}
	exact, err := e.paletted(ctx, src, p)
	if err != nil {
		return nil, err
	}
	if exact != nil && (b == nil || len(exact) < len(b)) {
		b = exact
	}
	return b, nil
}

// preview decodes the first frame and scales it down so far that noise averages out.
// Lossy formats drop noise, so different noise is not damage.
func (e *Engine) preview(ctx context.Context, src source) (image.Image, error) {
	if decode := ownDecoder(src.format); decode != nil {
		m, err := decode(src.data)
		return m.img, err
	}
	return e.codec.pixels(ctx, src, plan{width: 192, height: 192})
}
