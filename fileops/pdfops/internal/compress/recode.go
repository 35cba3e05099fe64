package compress

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// A level limits the loss of quality.
type level struct {
	dpi     float64 // resolution after scaling down
	excess  float64 // scale only pictures above this multiple of dpi
	quality int     // of JPEG
	similar float64 // least similarity of a JPEG to a lossless original
	jpeg    float64 // least similarity of a JPEG to a JPEG original
	page    float64 // least similarity of a page to the original
	tint    float64 // largest difference of its colours, of 255
	hopeful bool    // without a gain, the next level in fallbacks may gain something
	rewrite bool    // change nothing visible
	private bool    // also drop private application data and output intents
}

func levelOf(name string) level {
	switch name {
	case fileops.LessCompression:
		return level{dpi: 220, excess: 1.5, quality: 85, similar: 0.995, jpeg: 0.995, hopeful: true, page: 0.991, tint: 2}
	case fileops.ExtremeCompression:
		return level{dpi: 96, excess: 1.3, quality: 50, similar: leastSimilarity, jpeg: leastSimilarity, private: true, page: 0.915, tint: 8}
	}
	return level{dpi: 150, excess: 1.4, quality: 73, similar: 0.9, jpeg: leastSimilarity, private: true, page: 0.955, tint: 4}
}

const (
	maxPixels    = 100_000_000 // larger pictures stay unchanged
	smallPicture = 64 * 64     // pixels: not worth recoding
	smallStream  = 4096        // bytes

	// A JPEG file replaces another JPEG only if it is this much smaller. It
	// replaces lossless data only if it is far smaller: then the picture is a
	// photograph and not a drawing, in which artefacts show.
	gainJPEG     = 0.92
	gainLossless = 0.6
	gainMask     = 0.8

	// leastSimilarity is the least similarity of a recoded picture to its original,
	// at any level.
	leastSimilarity = 0.85

	// largePicture is the size of samples in bytes above which not every encoding
	// is tried.
	largePicture = 16 << 20

	// lossOfScaling is the approximate loss of similarity by scaling down.
	lossOfScaling = 0.03

	bestJPEG = 98 // above this quality files only grow
)

// A colours describes the colour space of a picture.
type colours struct {
	n       int    // components of a pixel once the palette is resolved
	palette []byte // of an Indexed space: n bytes per entry
	base    types.Object
}

// colourSpace returns the colour space of a picture. It reports false for spaces
// in which the mean of two colours is not a colour between them.
func colourSpace(d *pdf.Document, o types.Object) (colours, bool) {
	switch v := d.Resolve(o).(type) {
	case types.Name:
		switch v {
		case "DeviceGray", "G", "CalGray":
			return colours{n: 1}, true
		case "DeviceRGB", "RGB", "CalRGB":
			return colours{n: 3}, true
		case "DeviceCMYK", "CMYK":
			return colours{n: 4}, true
		}
	case types.Array:
		if len(v) == 0 {
			return colours{}, false
		}
		switch d.Name(v[0]) {
		case "DeviceGray", "G", "DeviceRGB", "RGB", "DeviceCMYK", "CMYK":
			return colourSpace(d, v[0])
		case "CalGray", "Separation":
			return colours{n: 1}, true
		case "CalRGB":
			return colours{n: 3}, true
		case "ICCBased":
			if len(v) < 2 {
				return colours{}, false
			}
			n := d.Integer(d.Dict(v[1])["N"])
			return colours{n: n}, n == 1 || n == 3 || n == 4
		case "Indexed", "I":
			return indexed(d, v)
		}
	}
	return colours{}, false
}

func indexed(d *pdf.Document, v types.Array) (colours, bool) {
	if len(v) < 4 {
		return colours{}, false
	}
	cs, ok := colourSpace(d, v[1])
	if !ok || cs.palette != nil {
		return colours{}, false
	}
	if a := d.Array(v[1]); len(a) > 0 && d.Name(a[0]) == "Separation" {
		return colours{}, false
	}
	cs.base = v[1]
	if s := d.Stream(v[3]); s != nil {
		b, err := pdf.Decode(s)
		if err != nil {
			return colours{}, false
		}
		cs.palette = b
	} else {
		cs.palette = d.Text(v[3])
	}
	return cs, len(cs.palette) >= cs.n
}

// A recoder recodes the pictures of one document.
type recoder struct {
	doc    *pdf.Document
	codec  codec
	level  level
	scale  bool // the drawn sizes are known
	logErr func(nr int, err error)
	loss   float64 // of one picture: visible difference, 0 to 1
}

// picture makes a picture smaller if that saves enough. It returns the
// visibility of the change, from 0 to 1. It fails only if ctx is done.
func (r *recoder) picture(ctx context.Context, k pictureTask) (float64, error) {
	one := *r
	err := one.recode(ctx, k.stream, k.size, k.mask)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		r.logErr(k.nr, err)
	}
	return one.loss, nil
}

func (r *recoder) recode(ctx context.Context, s *types.StreamDict, size drawnSize, mask bool) error {
	d := r.doc
	width, height := d.Integer(s.Dict["Width"]), d.Integer(s.Dict["Height"])
	switch {
	case d.Boolean(s.Dict["ImageMask"]), s.Dict["F"] != nil, len(s.Raw) < smallStream, d.Integer(s.Dict["SMaskInData"]) != 0:
		return nil
	case width < 1 || height < 1 || width > maxPixels/height || width*height < smallPicture:
		return nil
	}
	if d.Array(s.Dict["Mask"]) != nil { // colour key mask
		if d.Stream(s.Dict["SMask"]) == nil {
			return nil // the samples must stay exact
		}
		delete(s.Dict, "Mask") // ignored beside a soft mask (ISO 32000-2, 8.9.6.4)
	}
	toWidth, toHeight := r.target(width, height, size)
	scaled := toWidth < width
	filters := s.FilterPipeline
	last := ""
	if len(filters) > 0 {
		last = filters[len(filters)-1].Name
	}
	cs, known := colourSpace(d, s.Dict["ColorSpace"])
	switch last {
	case "CCITTFaxDecode", "JBIG2Decode":
		return nil
	case "DCTDecode", "JPXDecode":
		if cs.palette != nil || !known && (last == "DCTDecode" || s.Dict["ColorSpace"] != nil) {
			return nil
		}
		outer := *s
		outer.FilterPipeline = filters[:len(filters)-1]
		data, err := pdf.Decode(&outer)
		if err != nil {
			return err
		}
		if last == "JPXDecode" {
			return r.jpeg2000(ctx, s, cs, data, toWidth, toHeight, mask)
		}
		return r.jpeg(ctx, s, cs, data, scaled, toWidth, toHeight, mask, filters[len(filters)-1].DecodeParms)
	}
	if !known {
		return nil
	}
	return r.plain(ctx, s, cs, width, height, toWidth, toHeight, mask)
}

// target returns the size to which a picture is scaled.
func (r *recoder) target(width, height int, size drawnSize) (int, int) {
	if !r.scale || size.width <= 0 || size.height <= 0 {
		return width, height
	}
	dpi := min(float64(width)/size.width, float64(height)/size.height) * 72
	if dpi <= r.level.dpi*r.level.excess {
		return width, height
	}
	r.loss = lossOfScaling
	f := r.level.dpi / dpi
	return max(1, int(math.Ceil(float64(width)*f))), max(1, int(math.Ceil(float64(height)*f)))
}

func (r *recoder) quality(mask bool) int {
	if mask {
		return min(95, r.level.quality+15)
	}
	return r.level.quality
}

func (r *recoder) jpeg(ctx context.Context, s *types.StreamDict, cs colours, data []byte, scaled bool, toWidth, toHeight int, mask bool, parms types.Dict) error {
	info, err := imagefile.ReadJPEG(data)
	if err != nil {
		return err
	}
	d := r.doc
	if info.Components != cs.n || info.Width != d.Integer(s.Dict["Width"]) || info.Height != d.Integer(s.Dict["Height"]) {
		return fmt.Errorf("the JPEG file is not what the dictionary says: %w", errors.ErrUnsupported)
	}
	if v, ok := parms["ColorTransform"]; ok && !info.Adobe && d.Integer(v) != map[int]int{3: 1}[cs.n] && cs.n != 1 {
		return fmt.Errorf("unusual colour transform: %w", errors.ErrUnsupported)
	}
	q, most := r.quality(mask), bestJPEG
	if info.Quality > 0 {
		if !scaled && info.Quality <= q+5 {
			return nil
		}
		q, most = min(q, info.Quality), min(most, info.Quality)
	}
	encoded, px, err := r.reencode(ctx, data, toWidth, toHeight, q, most, r.level.jpeg)
	if err != nil {
		return err
	}
	if px.Components != cs.n || float64(len(encoded)) > gainJPEG*float64(len(s.Raw)) {
		return nil
	}
	setJPEG(s, encoded, px)
	return nil
}

func (r *recoder) jpeg2000(ctx context.Context, s *types.StreamDict, cs colours, data []byte, toWidth, toHeight int, mask bool) error {
	encoded, px, err := r.reencode(ctx, data, toWidth, toHeight, r.quality(mask), bestJPEG, leastSimilarity)
	if err != nil {
		return err
	}
	if cs.n != 0 && px.Components != cs.n || float64(len(encoded)) > gainJPEG*float64(len(s.Raw)) {
		return nil
	}
	if cs.n == 0 { // the JPEG 2000 file defined it
		s.Dict["ColorSpace"] = pdf.DeviceSpace(px.Components)
	}
	delete(s.Dict, "Decode") // was ignored (ISO 32000-2, 7.4.9)
	delete(s.Dict, "SMaskInData")
	setJPEG(s, encoded, px)
	return nil
}

func setJPEG(s *types.StreamDict, encoded []byte, px raster.Samples) {
	pdf.SetContent(s, encoded, types.PDFFilter{Name: "DCTDecode"})
	setSize(s, px)
}

func setSize(s *types.StreamDict, px raster.Samples) {
	s.Dict["Width"], s.Dict["Height"] = types.Integer(px.Width), types.Integer(px.Height)
	s.Dict["BitsPerComponent"] = types.Integer(8)
}

// reencode decodes a JPEG or JPEG 2000 file, scales it and encodes it as JPEG.
func (r *recoder) reencode(ctx context.Context, data []byte, width, height, quality, most int, least float64) ([]byte, raster.Samples, error) {
	px, err := r.decode(ctx, data, width, height)
	if err != nil {
		return nil, raster.Samples{}, err
	}
	encoded, err := r.encode(ctx, px, quality, most, least)
	return encoded, px, err
}

func (r *recoder) decode(ctx context.Context, data []byte, width, height int) (raster.Samples, error) {
	px, err := r.codec.DecodePixels(ctx, data, width, height)
	if err != nil {
		return raster.Samples{}, err
	}
	return px, checkSize(px, width, height)
}

// encode encodes samples as JPEG and checks that the result has at least the
// given similarity. It tries qualities up to most.
func (r *recoder) encode(ctx context.Context, px raster.Samples, quality, most int, least float64) ([]byte, error) {
	luma := imagefile.Luma(px)
	// If the level's quality is too low for this picture, a higher quality often
	// suffices and still saves space.
	for _, q := range []int{quality, (quality + most) / 2, most} {
		encoded, err := r.codec.EncodeJPEG(ctx, px, q)
		if err != nil {
			return nil, err
		}
		back, err := r.decode(ctx, encoded, px.Width, px.Height)
		if err != nil {
			return nil, err
		}
		if back.Components != px.Components {
			continue
		}
		if s := imagefile.Similarity(luma, imagefile.Luma(back)); s >= least {
			r.loss += 1 - s
			return encoded, nil
		}
	}
	return nil, fmt.Errorf("JPEG does not suit this picture: %w", errors.ErrUnsupported)
}

// checkSize returns an error unless a codec returned the expected number of
// pixels.
func checkSize(s raster.Samples, width, height int) error {
	if s.Width != width || s.Height != height {
		return fmt.Errorf("the codec returned %d×%d pixels instead of %d×%d", s.Width, s.Height, width, height)
	}
	return s.Check()
}

// plain recodes a picture whose samples are compressed without loss. The result
// is the smallest of the same samples compressed better and fewer samples, or a
// JPEG file if that is far smaller than these.
func (r *recoder) plain(ctx context.Context, s *types.StreamDict, cs colours, width, height, toWidth, toHeight int, mask bool) error {
	bits := r.doc.Integer(s.Dict["BitsPerComponent"])
	scaled := toWidth < width
	if bits == 1 || cs.palette != nil && s.Dict["Decode"] != nil {
		return nil
	}
	if cs.palette != nil && !scaled && (!r.level.private || len(s.Raw) < width*height/2) {
		return nil // few colours, or many repetitions
	}
	content, err := pdf.Decode(s)
	if err != nil {
		return err
	}
	px, err := unpack(content, width, height, bits, cs)
	if err != nil {
		return err
	}
	gain := gainLossless
	if mask {
		gain = gainMask
	}
	best := len(s.Raw)
	var out *lossless
	mayIndex := !mask && s.Dict["Decode"] == nil && s.Dict["Matte"] == nil
	// Lossless compression of a large picture takes long, and is useless if the
	// picture is scaled afterwards.
	if bits <= 8 && (!scaled || len(px.Pix) <= largePicture) {
		if l := compactPicture(px, r.base(s, cs), mayIndex); l != nil && len(l.raw) < best && (cs.palette == nil || len(l.raw) < best*9/10) {
			best, out = len(l.raw), l
		}
	}
	if out != nil && out.palette > 0 && out.palette <= 32 && !scaled {
		out.set(s)
		return nil // a drawing
	}
	if scaled {
		if px, err = r.resample(ctx, px, toWidth, toHeight); err != nil {
			return err
		}
		if l := compactPicture(px, r.base(s, cs), mayIndex); float64(len(l.raw)) < gainJPEG*float64(best) {
			best, out = len(l.raw), l
		}
	}
	encoded, err := r.encode(ctx, px, r.quality(mask), bestJPEG, r.level.similar)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	switch {
	case err == nil && float64(len(encoded)) < gain*float64(best):
		if cs.palette != nil {
			s.Dict["ColorSpace"] = cs.base
		}
		setJPEG(s, encoded, px)
	case out != nil:
		out.set(s)
	}
	return nil
}

func (r *recoder) resample(ctx context.Context, px raster.Samples, width, height int) (raster.Samples, error) {
	small, err := r.codec.ScalePixels(ctx, px, width, height)
	if err != nil {
		return raster.Samples{}, err
	}
	return small, checkSize(small, width, height)
}

// base returns the colour space of the samples after a palette is resolved.
func (r *recoder) base(s *types.StreamDict, cs colours) types.Object {
	if cs.palette != nil {
		return cs.base
	}
	return s.Dict["ColorSpace"]
}

// unpack returns samples of 8 bits with the palette resolved. The result shares
// b if b already has that form.
func unpack(b []byte, width, height, bits int, cs colours) (raster.Samples, error) {
	n := cs.n
	if cs.palette != nil {
		n = 1
	}
	stride := (width*n*bits + 7) / 8
	if bits != 2 && bits != 4 && bits != 8 && bits != 16 || len(b) < stride*height {
		return raster.Samples{}, fmt.Errorf("%d bits per component, %d bytes: %w", bits, len(b), errors.ErrUnsupported)
	}
	if bits == 8 && cs.palette == nil {
		return raster.Samples{Width: width, Height: height, Components: n, Pix: b[: stride*height : stride*height]}, nil
	}
	pix := make([]byte, 0, width*height*n)
	for y := range height {
		row := b[y*stride:][:stride]
		for i := range width * n {
			switch bits {
			case 8:
				pix = append(pix, row[i])
			case 16:
				pix = append(pix, row[2*i])
			default:
				v := row[i*bits/8] >> (8 - bits - i*bits%8) & (1<<bits - 1)
				if cs.palette == nil {
					v *= 255 / (1<<bits - 1)
				}
				pix = append(pix, v)
			}
		}
	}
	if cs.palette == nil {
		return raster.Samples{Width: width, Height: height, Components: n, Pix: pix}, nil
	}
	full := make([]byte, 0, width*height*cs.n)
	entries := len(cs.palette) / cs.n
	for _, i := range pix {
		at := min(int(i), entries-1) * cs.n
		full = append(full, cs.palette[at:at+cs.n]...)
	}
	return raster.Samples{Width: width, Height: height, Components: cs.n, Pix: full}, nil
}
