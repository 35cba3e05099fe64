package imageops

import (
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// Levels of compress, as they are on the wire.
const (
	less        = "less_compression"
	recommended = "recommended_compression"
	extreme     = "extreme_compression"
)

// compressible are the formats of compress: those with something to gain.
var compressible = []format.Format{format.JPG, format.PNG, format.WebP, format.GIF, format.TIFF, format.AVIF, format.HEIC}

// Compress returns the action "compress" for pictures. The result has the format,
// dimensions, frames and colour profile of the input; other metadata are
// dropped. If nothing is gained, or what came out does not look like the input,
// the input itself is the result.
func (e *Engine) Compress() fileops.Action {
	spec := fileops.Spec{
		Name: "compress", Engine: e.Name(), Family: "image",
		Summary: "Makes pictures smaller in bytes, at the same dimensions.",
	}
	var formats []format.Format
	for _, f := range compressible {
		if slices.Contains(e.reads, f) && e.codec.compresses(f) {
			formats = append(formats, f)
		}
	}
	spec.Accepts = []fileops.Accept{{Formats: formats, Params: fileops.Schema{{
		Name: "compression_value", Doc: "How much detail may be lost to save space.",
		Default: recommended,
		Enum:    []string{less, recommended, extreme},
		Aliases: map[string]string{"low": less, "less": less, "recommended": recommended, "high": extreme, "extreme": extreme},
	}}}}
	return fileops.Func(spec, e.compress)
}

// worthwhile is the largest part of the input's size that a result may have to
// be worth any change of the picture.
const worthwhile = 0.97

// similar is the structural similarity below which a result is thrown away.
const similar = 0.85

func (e *Engine) compress(ctx context.Context, job *fileops.Job) error {
	src, h, err := e.load(job)
	if err != nil {
		return err
	}
	job.Progress(0.05)
	if reason := irreplaceable(src, h); reason != "" {
		job.Log.Info("kept as it is", "reason", reason)
		return e.keep(ctx, job, src)
	}
	var before image.Image
	steps := stepsFor(src, h, job.Params.Get("compression_value"))
	for i, candidates := range steps {
		b, err := e.smallest(ctx, src, candidates)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && src.format == format.TIFF && h.pages > 1:
			// Pages of different sizes cannot be written as one TIFF.
			job.Log.Info("kept as it is", "reason", "the pages cannot be written together")
			return e.keep(ctx, job, src)
		case err != nil:
			return e.blame(ctx, src, candidates[0], err)
		}
		job.Progress(0.1 + 0.7*float64(i+1)/float64(len(steps)))
		if float64(len(b)) >= worthwhile*float64(len(src.data)) {
			if src.format == format.PNG {
				continue // without loss it may be smaller
			}
			break // what keeps more is larger still
		}
		if before == nil {
			if before, err = e.preview(ctx, src); err != nil {
				return e.blame(ctx, src, candidates[0], err)
			}
		}
		if err := e.verify(ctx, source{b, src.format}, h, before); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			job.Log.Warn("compressed picture rejected", "err", err)
			continue
		}
		return job.WriteBytes(job.Input().Name(), b)
	}
	return e.keep(ctx, job, src)
}

// smallest encodes a picture in several ways and returns the smallest result.
func (e *Engine) smallest(ctx context.Context, src source, candidates []plan) (best []byte, err error) {
	for _, p := range candidates {
		b, err := e.recompress(ctx, src, p)
		if err != nil {
			return nil, err
		}
		if b != nil && (best == nil || len(b) < len(best)) {
			best = b
		}
	}
	return best, nil
}

// keep returns the input, provided that it is whole: a damaged picture must not
// be reported as compressed.
func (e *Engine) keep(ctx context.Context, job *fileops.Job, src source) error {
	if _, err := e.preview(ctx, src); err != nil {
		return e.blame(ctx, src, plan{to: src.format}, err)
	}
	return job.Keep(job.Input())
}

// irreplaceable tells why a picture cannot be compressed without losing more
// than detail, "" if it can.
func irreplaceable(src source, h header) string {
	switch src.format {
	case format.PNG:
		// The control chunk of an animation comes before the first pixels
		// (PNG, third edition, 5.6).
		for typ, at := range pngChunks(src.data) {
			switch typ {
			case "acTL":
				return "it is animated"
			case "IDAT":
				return ""
			}
			_ = at
		}
	case format.AVIF, format.HEIC:
		if len(src.data) >= 12 {
			if brand := string(src.data[8:12]); brand == "avis" || brand == "msf1" || brand == "hevc" || brand == "hevx" {
				return "it is a sequence"
			}
		}
		if h.pages > 1 {
			return "it holds several pictures"
		}
	}
	return ""
}

// stepsFor returns how to compress a picture: each step is a set of plans of
// which the smallest result counts, and the next step is taken if that does not
// look like the original. The numbers are from comparing size and similarity of
// photos, scans, logos and page images.
func stepsFor(src source, h header, level string) (steps [][]plan) {
	for i := max(0, slices.Index([]string{less, recommended, extreme}, level)); i >= 0; i-- {
		steps = append(steps, plansFor(src, h, i))
	}
	return steps
}

// plansFor returns the plans of one level, from 0 for the least loss to 2.
func plansFor(src source, h header, i int) []plan {
	at := func(v ...int) int { return v[i] }
	p := plan{to: src.format, meta: keepProfile, small: true}
	switch src.format {
	case format.JPG:
		info := readJPEG(src.data)
		p.quality = at(85, 75, 50)
		if info.quality > 0 {
			p.quality = min(p.quality, info.quality) // more would only add bytes
		}
		p.subsample = "on"
		if info.fullColour && i == 0 {
			p.subsample = "off"
		}
	case format.PNG:
		exact := p
		exact.lossless = true
		if i == 0 {
			return []plan{exact}
		}
		exact.colours = 256 // or not at all
		p.colours, p.quality, p.dither = 256, at(0, 90, 50), []float64{0, 1, 0.6}[i]
		return []plan{p, exact}
	case format.WebP:
		p.all = h.pages > 1
		p.quality = at(85, 75, 50)
		p.lossless = i == 0 && losslessWebP(src.data)
	case format.GIF:
		p.all = h.pages > 1
		p.colours = at(256, 128, 64)
		p.dither = []float64{1, 0.7, 0.3}[i]
		p.slack = []float64{0, 8, 20}[i]
	case format.TIFF:
		p.all, p.upside, p.tiff = h.pages > 1, true, "deflate"
		switch {
		case h.bilevel:
			p.tiff = "ccittfax4" // lossless, and nothing lossy is smaller
		case i > 0 && !h.alpha:
			q := p
			q.tiff, q.quality = "jpeg", at(0, 75, 55)
			return []plan{q, p} // drawings are smaller without loss
		}
	case format.AVIF:
		p.quality = at(65, 50, 35)
	case format.HEIC:
		p.quality = at(60, 45, 35)
	}
	return []plan{p}
}

// losslessWebP tells whether a still WebP has the lossless kind of data (WebP
// container specification).
func losslessWebP(b []byte) bool {
	for i := 12; i+8 <= len(b); {
		switch string(b[i : i+4]) {
		case "VP8L":
			return true
		case "VP8 ":
			return false
		}
		n := int64(binary.LittleEndian.Uint32(b[i+4:]))
		if n > int64(len(b)) {
			return false
		}
		i += 8 + int(n+n&1)
	}
	return false
}

// recompress encodes a picture as p says. For a lossless PNG it also tries a
// palette of exactly its colours, which libvips does not make; with a limit of
// colours in p it tries nothing else, and the result is nil if there are more.
func (e *Engine) recompress(ctx context.Context, src source, p plan) (b []byte, err error) {
	if p.to != format.PNG || !p.lossless {
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

// verify tells whether a compressed picture is one that can be shown in the
// place of the original, of which before is a preview.
func (e *Engine) verify(ctx context.Context, src source, want header, before image.Image) error {
	h, err := e.codec.stat(src)
	if err != nil {
		return err
	}
	if h.width != want.width && h.width != want.height || h.pixels() != want.pixels() || h.pages != want.pages {
		return fmt.Errorf("%d×%d with %d pages became %d×%d with %d", want.width, want.height, want.pages, h.width, h.height, h.pages)
	}
	after, err := e.preview(ctx, src)
	if err != nil {
		return err
	}
	if s := similarity(before, after); s < similar {
		return fmt.Errorf("similarity %.3f", s)
	}
	return nil
}

// preview decodes the first frame, reduced so much that noise is averaged away:
// lossy formats drop it, and that is no damage.
func (e *Engine) preview(ctx context.Context, src source) (image.Image, error) {
	return e.codec.pixels(ctx, src, plan{width: 192, height: 192})
}

// pngChunks yields type and offset of the chunks of a PNG.
func pngChunks(b []byte) func(yield func(string, int) bool) {
	return func(yield func(string, int) bool) {
		for i := 8; i+12 <= len(b); {
			n := int64(binary.BigEndian.Uint32(b[i:]))
			if n > int64(len(b)-i-12) || !yield(string(b[i+4:i+8]), i) {
				return
			}
			i += 12 + int(n)
		}
	}
}

// similarity returns the mean structural similarity of two pictures of the same
// size (Wang et al., 2004) in blocks of 8 by 8 of their luminance over white, 1
// for equal ones and 0 for pictures of different size.
func similarity(a, b image.Image) float64 {
	if a.Bounds().Size() != b.Bounds().Size() {
		return 0
	}
	ga, gb := luma(a), luma(b)
	const block, c1, c2 = 8, 6.5025, 58.5225 // (0.01 × 255)² and (0.03 × 255)²
	w, h := ga.Rect.Dx(), ga.Rect.Dy()
	sum, n := 0.0, 0
	for y := 0; y < h; y += block {
		for x := 0; x < w; x += block {
			var sa, sb, saa, sbb, sab, k float64
			for j := y; j < min(h, y+block); j++ {
				for i := x; i < min(w, x+block); i++ {
					p, q := float64(ga.Pix[j*ga.Stride+i]), float64(gb.Pix[j*gb.Stride+i])
					sa, sb, saa, sbb, sab, k = sa+p, sb+q, saa+p*p, sbb+q*q, sab+p*q, k+1
				}
			}
			ma, mb := sa/k, sb/k
			va, vb, cov := math.Max(0, saa/k-ma*ma), math.Max(0, sbb/k-mb*mb), sab/k-ma*mb
			sum += (2*ma*mb + c1) * (2*cov + c2) / ((ma*ma + mb*mb + c1) * (va + vb + c2))
			n++
		}
	}
	return sum / float64(n)
}

// luma returns m in gray, laid on white.
func luma(m image.Image) *image.Gray {
	if g, ok := m.(*image.Gray); ok {
		return g
	}
	b := m.Bounds()
	out := image.NewGray(image.Rect(0, 0, b.Dx(), b.Dy()))
	for y := range b.Dy() {
		for x := range b.Dx() {
			r, g, bl, a := m.At(b.Min.X+x, b.Min.Y+y).RGBA()
			v := (19595*r + 38470*g + 7471*bl + 1<<15) >> 16
			out.Pix[y*out.Stride+x] = byte((v + 0xffff - a) >> 8)
		}
	}
	return out
}
