package imageops

import (
	"encoding/binary"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// Levels of compress, as they are on the wire.
const (
	less        = fileops.LessCompression
	recommended = fileops.RecommendedCompression
	extreme     = fileops.ExtremeCompression
)

var levels = []string{less, recommended, extreme}

// bounds are the least structural similarity (SSIM of the luminance in blocks of
// 8 by 8 pixels) that a result of each level has with its input.
var bounds = [3]float64{0.99, 0.95, 0.90}

// margin is what is demanded above a bound: others decode a little differently.
const margin = 0.001

// compressible are the formats of compress: those with something to gain.
var compressible = []format.Format{
	format.JPG, format.PNG, format.WebP, format.GIF, format.TIFF, format.AVIF, format.HEIC, format.JXL, format.JP2, format.BMP, format.SVG,
}

// stepsFor returns how to compress a picture: each step is a set of plans of
// which the smallest result counts, and the next step is taken if none of them
// is similar enough. The numbers are from comparing size and similarity of
// photos, scans, logos and page images.
func stepsFor(src source, h header, level int) (steps [][]plan) {
	steps = append(steps, plansFor(src, h, level))
	if src.format != format.PNG && src.format != format.GIF {
		return steps // more quality is tried within a step
	}
	for i := level - 1; i >= 0; i-- {
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
		exact.colours = 256 // or not at all
		p.colours, p.quality, p.dither = 256, at(0, 90, 50), []float64{0, 1, 0.6}[i]
		plain := p
		plain.dither = 0 // less like noise; bands are the price
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
