package pdfops

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A level says how much a picture may lose.
type level struct {
	dpi     float64 // resolution after scaling down
	excess  float64 // scale only what has more than this many times as much
	quality int     // of JPEG
	similar float64 // what JPEG must have in common with a picture that was lossless before
	private bool    // drop data of the producing application and output intents too
}

const (
	maxPixels    = 100_000_000
	smallPicture = 64 * 64 // pixels: not worth the trouble
	smallStream  = 4096    // bytes

	// A JPEG file replaces another only if it is this much smaller, and
	// lossless data only if it is far smaller: then they are a photograph,
	// not a drawing, which would suffer.
	gainJPEG     = 0.92
	gainLossless = 0.6
	gainMask     = 0.8

	// leastSimilarity is what a re-encoded picture must have in common with
	// the one it is made of.
	leastSimilarity = 0.85

	bestJPEG = 98 // quality above which files only grow
)

// colours describes the colour space of a picture.
type colours struct {
	n       int    // components of a pixel once the palette is resolved
	palette []byte // of an Indexed space: n bytes per entry
	base    types.Object
}

// colourSpace understands the spaces in which the mean of two colours is a
// colour between them.
func (d *document) colourSpace(o types.Object) (colours, bool) {
	switch v := d.resolve(o).(type) {
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
		switch d.name(v[0]) {
		case "DeviceGray", "G", "DeviceRGB", "RGB", "DeviceCMYK", "CMYK":
			return d.colourSpace(v[0])
		case "CalGray", "Separation":
			return colours{n: 1}, true
		case "CalRGB":
			return colours{n: 3}, true
		case "ICCBased":
			if len(v) < 2 {
				return colours{}, false
			}
			n := d.integer(d.dict(v[1])["N"])
			return colours{n: n}, n == 1 || n == 3 || n == 4
		case "Indexed", "I":
			return d.indexed(v)
		}
	}
	return colours{}, false
}

func (d *document) indexed(v types.Array) (colours, bool) {
	if len(v) < 4 {
		return colours{}, false
	}
	cs, ok := d.colourSpace(v[1])
	if !ok || cs.palette != nil {
		return colours{}, false
	}
	if a := d.array(v[1]); len(a) > 0 && d.name(a[0]) == "Separation" {
		return colours{}, false
	}
	cs.base = v[1]
	if s := d.stream(v[3]); s != nil {
		b, err := decodeStream(s)
		if err != nil {
			return colours{}, false
		}
		cs.palette = b
	} else {
		cs.palette = d.text(v[3])
	}
	return cs, len(cs.palette) >= cs.n
}

// A recoder re-encodes pictures of one document.
type recoder struct {
	doc    *document
	codec  ImageCodec
	level  level
	scale  bool // the sizes are known
	logErr func(nr int, err error)
}

// picture makes a picture smaller if that is worth it. mask is set for soft
// masks, where flaws show as halos. It fails only if ctx is done.
func (r *recoder) picture(ctx context.Context, nr int, s *types.StreamDict, size drawn, mask bool) error {
	err := r.recode(ctx, s, size, mask)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		r.logErr(nr, err)
	}
	return nil
}

func (r *recoder) recode(ctx context.Context, s *types.StreamDict, size drawn, mask bool) error {
	d := r.doc
	width, height := d.integer(s.Dict["Width"]), d.integer(s.Dict["Height"])
	switch {
	case d.boolean(s.Dict["ImageMask"]), s.Dict["F"] != nil, len(s.Raw) < smallStream, d.integer(s.Dict["SMaskInData"]) != 0:
		return nil
	case width < 1 || height < 1 || width > maxPixels/height || width*height < smallPicture:
		return nil
	case d.array(s.Dict["Mask"]) != nil: // colours to leave out: they must stay exact
		return nil
	}
	toWidth, toHeight := r.target(width, height, size)
	scaled := toWidth < width
	filters := s.FilterPipeline
	last := ""
	if len(filters) > 0 {
		last = filters[len(filters)-1].Name
	}
	cs, known := d.colourSpace(s.Dict["ColorSpace"])
	switch last {
	case "CCITTFaxDecode", "JBIG2Decode":
		return nil
	case "DCTDecode", "JPXDecode":
		if cs.palette != nil || !known && (last == "DCTDecode" || s.Dict["ColorSpace"] != nil) {
			return nil
		}
		outer := *s
		outer.FilterPipeline = filters[:len(filters)-1]
		data, err := decodeStream(&outer)
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

// target returns the size to scale a picture to.
func (r *recoder) target(width, height int, size drawn) (int, int) {
	if !r.scale || size.width <= 0 || size.height <= 0 {
		return width, height
	}
	dpi := min(float64(width)/size.width, float64(height)/size.height) * 72
	if dpi <= r.level.dpi*r.level.excess {
		return width, height
	}
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
	info, err := parseJPEG(data)
	if err != nil {
		return err
	}
	d := r.doc
	if info.components != cs.n || info.width != d.integer(s.Dict["Width"]) || info.height != d.integer(s.Dict["Height"]) {
		return fmt.Errorf("the JPEG file is not what the dictionary says: %w", errors.ErrUnsupported)
	}
	if v, ok := parms["ColorTransform"]; ok && !info.adobe && d.integer(v) != map[int]int{3: 1}[cs.n] && cs.n != 1 {
		return fmt.Errorf("unusual colour transform: %w", errors.ErrUnsupported)
	}
	q, most := r.quality(mask), bestJPEG
	if info.quality > 0 {
		if !scaled && info.quality <= q+5 {
			return nil
		}
		q, most = min(q, info.quality), min(most, info.quality)
	}
	encoded, px, err := r.encode(ctx, EncodedImage{Format: JPEG, Data: data}, toWidth, toHeight, q, most, leastSimilarity)
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
	encoded, px, err := r.encode(ctx, EncodedImage{Format: JPEG2000, Data: data}, toWidth, toHeight, r.quality(mask), bestJPEG, leastSimilarity)
	if err != nil {
		return err
	}
	if cs.n != 0 && px.Components != cs.n || float64(len(encoded)) > gainJPEG*float64(len(s.Raw)) {
		return nil
	}
	if cs.n == 0 { // it was in the JPEG 2000 file
		s.Dict["ColorSpace"] = deviceSpace(px.Components)
	}
	delete(s.Dict, "Decode") // had no meaning (ISO 32000-2, 7.4.9)
	delete(s.Dict, "SMaskInData")
	setJPEG(s, encoded, px)
	return nil
}

func deviceSpace(n int) types.Name {
	switch n {
	case 1:
		return "DeviceGray"
	case 3:
		return "DeviceRGB"
	}
	return "DeviceCMYK"
}

func setJPEG(s *types.StreamDict, encoded []byte, px Samples) {
	setContent(s, encoded, types.PDFFilter{Name: "DCTDecode"})
	setSize(s, px)
}

func setSize(s *types.StreamDict, px Samples) {
	s.Dict["Width"], s.Dict["Height"] = types.Integer(px.Width), types.Integer(px.Height)
	s.Dict["BitsPerComponent"] = types.Integer(8)
}

// encode makes a JPEG file of a picture and checks that it shows the same: the
// similarity must be at least that given. It tries qualities up to most.
func (r *recoder) encode(ctx context.Context, p EncodedImage, width, height, quality, most int, least float64) ([]byte, Samples, error) {
	px, err := r.codec.Decode(ctx, p, width, height)
	if err != nil {
		return nil, Samples{}, err
	}
	if err := px.check(width, height); err != nil {
		return nil, Samples{}, err
	}
	// Where the quality of the level is not enough for this picture, a higher
	// one often is, and still gains.
	for _, q := range []int{quality, (quality + most) / 2, most} {
		encoded, err := r.codec.Encode(ctx, px, q)
		if err != nil {
			return nil, Samples{}, err
		}
		back, err := r.codec.Decode(ctx, EncodedImage{Format: JPEG, Data: encoded}, width, height)
		if err != nil {
			return nil, Samples{}, err
		}
		if err := back.check(width, height); err != nil {
			return nil, Samples{}, err
		}
		if similarity(px, back) >= least {
			return encoded, px, nil
		}
	}
	return nil, Samples{}, fmt.Errorf("JPEG does not suit this picture: %w", errors.ErrUnsupported)
}

func (s Samples) check(width, height int) error {
	if s.Width != width || s.Height != height || len(s.Pix) != width*height*s.Components {
		return fmt.Errorf("the codec returned %d×%d pixels instead of %d×%d", s.Width, s.Height, width, height)
	}
	return nil
}

// plain handles pictures whose samples are compressed without loss. What comes
// of it is the smallest of: the same samples compressed better, fewer samples, or
// a JPEG file if it is far smaller than these.
func (r *recoder) plain(ctx context.Context, s *types.StreamDict, cs colours, width, height, toWidth, toHeight int, mask bool) error {
	bits := r.doc.integer(s.Dict["BitsPerComponent"])
	scaled := toWidth < width
	if bits == 1 || cs.palette != nil && (!scaled || s.Dict["Decode"] != nil) {
		return nil
	}
	content, err := decodeStream(s)
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
	encoded, small, err := r.encode(ctx, EncodedImage{Format: PlainSamples, Plain: px}, toWidth, toHeight, r.quality(mask), bestJPEG, r.level.similar)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	useJPEG := func() error {
		if cs.palette != nil {
			s.Dict["ColorSpace"] = cs.base
		}
		setJPEG(s, encoded, small)
		return nil
	}
	// To compress a photograph well without loss takes long and is in vain.
	if err == nil && float64(len(encoded)) < gain*0.85*float64(min(len(s.Raw), roughSize(px))) {
		return useJPEG()
	}
	best := len(s.Raw)
	var raw []byte // nil: as it is
	var parms types.Dict
	if bits == 8 && cs.palette == nil {
		if z, p := deflatePicture(px); len(z) < best {
			best, raw, parms = len(z), z, p
		}
	} else if z := deflate(content); len(z) < best {
		best = len(z) // what it will become without our doing
	}
	out := px
	if scaled {
		less, err := resample(ctx, px, toWidth, toHeight)
		if err != nil {
			return err
		}
		if z, p := deflatePicture(less); float64(len(z)) < gainJPEG*float64(best) {
			best, raw, parms, out = len(z), z, p, less
		}
	}
	if err == nil && float64(len(encoded)) < gain*float64(best) {
		return useJPEG()
	}
	if raw != nil {
		if cs.palette != nil {
			s.Dict["ColorSpace"] = cs.base
		}
		setContent(s, raw, types.PDFFilter{Name: "FlateDecode", DecodeParms: parms})
		setSize(s, out)
	}
	return nil
}

// unpack returns samples of 8 bits, with the palette resolved.
func unpack(b []byte, width, height, bits int, cs colours) (Samples, error) {
	n := cs.n
	if cs.palette != nil {
		n = 1
	}
	stride := (width*n*bits + 7) / 8
	if bits != 2 && bits != 4 && bits != 8 && bits != 16 || len(b) < stride*height {
		return Samples{}, fmt.Errorf("%d bits per component, %d bytes: %w", bits, len(b), errors.ErrUnsupported)
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
		return Samples{Width: width, Height: height, Components: n, Pix: pix}, nil
	}
	full := make([]byte, 0, width*height*cs.n)
	entries := len(cs.palette) / cs.n
	for _, i := range pix {
		at := min(int(i), entries-1) * cs.n
		full = append(full, cs.palette[at:at+cs.n]...)
	}
	return Samples{Width: width, Height: height, Components: cs.n, Pix: full}, nil
}

// deflatePicture compresses samples, with a PNG predictor where that helps.
func deflatePicture(s Samples) ([]byte, types.Dict) {
	predicted := predict(s.Pix, s.Width*s.Components, s.Components)
	if deflatedSize(s.Pix) <= deflatedSize(predicted) {
		return deflate(s.Pix), nil
	}
	return deflate(predicted), predictorParms(s.Width, s.Components, 8)
}

// roughSize is about what deflatePicture will make of a picture.
func roughSize(s Samples) int {
	return min(deflatedSize(s.Pix), deflatedSize(predict(s.Pix, s.Width*s.Components, s.Components)))
}

func predictorParms(columns, colors, bits int) types.Dict {
	return types.Dict{
		"Predictor": types.Integer(15), "Columns": types.Integer(columns),
		"Colors": types.Integer(colors), "BitsPerComponent": types.Integer(bits),
	}
}

// predict filters rows as PNG does (W3C PNG, 9.2), with the filter for each row
// whose output has the least sum of absolute values. pixel is the distance, in
// bytes, of corresponding bytes.
func predict(b []byte, stride, pixel int) []byte {
	rows := len(b) / stride
	out := make([]byte, 0, rows*(stride+1))
	above := make([]byte, stride)
	var try [5][]byte
	for i := range try {
		try[i] = make([]byte, stride)
	}
	for y := range rows {
		row := b[y*stride:][:stride]
		copy(try[0], row)
		for i, v := range row {
			var left, corner byte
			if i >= pixel {
				left, corner = row[i-pixel], above[i-pixel]
			}
			try[1][i] = v - left
			try[2][i] = v - above[i]
			try[3][i] = v - byte((int(left)+int(above[i]))/2)
			try[4][i] = v - paeth(left, above[i], corner)
		}
		best, least := 0, math.MaxInt
		for i, t := range try {
			sum := 0
			for _, v := range t {
				sum += abs(int(int8(v)))
			}
			if sum < least {
				best, least = i, sum
			}
		}
		out = append(append(out, byte(best)), try[best]...)
		above = row
	}
	return out
}

func paeth(a, b, c byte) byte {
	p := int(a) + int(b) - int(c)
	pa, pb, pc := abs(p-int(a)), abs(p-int(b)), abs(p-int(c))
	switch {
	case pa <= pb && pa <= pc:
		return a
	case pb <= pc:
		return b
	}
	return c
}

func abs(n int) int { return max(n, -n) }
