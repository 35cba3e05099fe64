package imageops

import (
	"encoding/binary"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// Levels of compress, as in the API.
const (
	less        = fileops.LessCompression
	recommended = fileops.RecommendedCompression
	extreme     = fileops.ExtremeCompression
)

var levels = []string{less, recommended, extreme}

// bounds holds the minimum structural similarity of results without a score for
// each level (SSIM of the luminance in blocks of 8 × 8 pixels).
var bounds = [3]float64{0.99, 0.95, 0.90}

// margin is added to each bound, because other decoders differ slightly.
const margin = 0.001

// compressible lists the formats of compress.
var compressible = []format.Format{
	format.JPG, format.PNG, format.WebP, format.GIF, format.TIFF, format.AVIF, format.HEIC, format.JXL, format.JP2, format.BMP, format.SVG,
}

// stepsFor returns the steps to compress a picture. Each step is a set of plans,
// of which the smallest result counts. The next step is used only if no plan of
// a step is similar enough. The numbers come from comparisons of size and
// similarity on photos, scans, logos and page images.
func stepsFor(src source, h header, level int) (steps [][]plan) {
	steps = append(steps, plansFor(src, h, level))
	if src.format != format.PNG && src.format != format.GIF {
		return steps // higher quality is tried within a step
	}
	for i := level - 1; i >= 0; i-- {
		steps = append(steps, plansFor(src, h, i))
	}
	return steps
}

// plansFor returns the plans of one level, from 0 (least loss) to 2.
func plansFor(src source, h header, i int) []plan {
	at := func(v ...int) int { return v[i] }
	p := plan{to: src.format, meta: keepProfile, small: true}
	switch src.format {
	case format.JPG:
		info := jpegInfo(src.data)
		p.quality = at(85, 75, 50)
		if info.Quality > 0 {
			p.quality = min(p.quality, info.Quality) // more would only add bytes
		}
		p.subsample = "on"
		if info.FullColour && i == 0 {
			p.subsample = "off"
		}
	case format.PNG:
		exact := p
		exact.lossless = true
		if i == 0 {
			return []plan{exact}
		}
		exact.colours = 256 // fails with more colours
		p.colours, p.quality, p.dither = 256, at(0, 90, 50), []float64{0, 1, 0.6}[i]
		plain := p
		plain.dither = 0 // less noise, but bands
		return []plan{exact, p, plain}
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
			p.tiff = "ccittfax4" // lossless, and smaller than any lossy form
		case i > 0 && !h.alpha:
			q := p
			q.tiff, q.quality = "jpeg", at(0, 75, 55)
			return []plan{q, p} // lossless drawings are smaller
		}
	case format.AVIF:
		p.quality = at(65, 50, 35)
	case format.HEIC:
		p.quality = at(60, 45, 35)
	case format.JXL:
		p.quality = at(90, 80, 65)
	case format.JP2:
		p.quality = at(48, 38, 30)
	case format.BMP:
		p.lossless = true
	case format.SVG:
		p.quality = at(1, 2, 3) // see minifySVG
	}
	return []plan{p}
}

// losslessWebP reports whether a still WebP is lossless (WebP container
// specification).
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
