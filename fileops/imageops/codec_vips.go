//go:build cgo

package imageops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
)

// vipsCodec is the codec of libvips.
type vipsCodec struct {
	version string
	in, out map[format.Format]bool
}

// loaders and savers name the operations for each format.
var (
	loaders = map[format.Format]string{
		format.JPG: "jpegload_buffer", format.PNG: "pngload_buffer", format.WebP: "webpload_buffer",
		format.GIF: "gifload_buffer", format.TIFF: "tiffload_buffer", format.AVIF: "heifload_buffer",
		format.HEIC: "heifload_buffer", format.JXL: "jxlload_buffer", format.JP2: "jp2kload_buffer",
		format.SVG: "svgload_buffer",
	}
	savers = map[format.Format]string{
		format.JPG: "jpegsave_buffer", format.PNG: "pngsave_buffer", format.WebP: "webpsave_buffer",
		format.GIF: "gifsave_buffer", format.TIFF: "tiffsave_buffer", format.AVIF: "heifsave_buffer",
		format.HEIC: "heifsave_buffer", format.JXL: "jxlsave_buffer", format.JP2: "jp2ksave_buffer",
	}
)

// newCodec starts libvips. It probes the codec's abilities, unless known contains
// them.
func newCodec(known string) (codec, error) {
	if err := startVips(); err != nil {
		return nil, err
	}
	if known != "" {
		var a abilities
		if err := json.Unmarshal([]byte(known), &a); err != nil {
			return nil, fmt.Errorf("probed abilities: %w", err)
		}
		if a.Version == vipsVersion() {
			return &vipsCodec{version: a.Version, in: a.In, out: a.Out}, nil
		}
	}
	probed := probeVips()
	return &probed, nil
}

// abilities are the probed abilities of a codec.
type abilities struct {
	Version string
	In, Out map[format.Format]bool
}

func (c *vipsCodec) probed() string {
	b, err := json.Marshal(abilities{c.version, c.in, c.out})
	if err != nil {
		return "" // then the next process probes again
	}
	return string(b)
}

func (c *vipsCodec) name() string                { return "libvips " + c.version }
func (c *vipsCodec) reads(f format.Format) bool  { return c.in[f] }
func (c *vipsCodec) writes(f format.Format) bool { return c.out[f] }

// compresses reports whether libvips writes f at several levels of quality. It does so
// for all formats that it both reads and writes.
func (c *vipsCodec) compresses(f format.Format) bool { return c.in[f] && c.out[f] }

// open opens one page of src, or all pages from that page on. more holds loader
// options.
func (c *vipsCodec) open(src source, page int, all, random bool, scale float64, more ...string) (*picture, error) {
	op, ok := loaders[src.format]
	if !ok {
		return nil, errors.ErrUnsupported
	}
	opts := append([]string{"fail-on=truncated"}, more...)
	if !random {
		opts = append(opts, "access=sequential")
	}
	switch src.format {
	case format.GIF, format.WebP, format.TIFF:
		n := 1
		if all {
			n = -1
		}
		opts = append(opts, fmt.Sprintf("page=%d,n=%d", page, n))
	case format.SVG:
		opts = append(opts, fmt.Sprintf("scale=%g", scale*svgUnits(src.data)))
	}
	p, err := load(op, src.data, strings.Join(opts, ","))
	if err != nil {
		return nil, err
	}
	if p.BandFormat() == vips.BandFormatChar { // as other programs do; negative samples would become black
		if err := p.unsigned(); err != nil {
			p.close()
			return nil, cause(err)
		}
	}
	p.resolution = resolutionOf(src, p)
	if !all && p.Pages() > 1 {
		// Savers and govips' resizing confuse the number of pages in the file with
		// that in the picture.
		if err := errors.Join(p.SetPages(1), p.SetPageHeight(p.Height())); err != nil {
			p.close()
			return nil, cause(err)
		}
	}
	return p, nil
}

// refused returns the reason why libvips rejects an intact picture, if it knows one.
// It does not use libvips' messages: see vipsError.
func refused(src source, err error) (header, error) {
	switch src.format {
	case format.TIFF:
		if readTIFF(src.data).subsampled {
			return header{}, fmt.Errorf("TIFF with subsampled colour: %w: %w", errors.ErrUnsupported, err)
		}
	case format.AVIF, format.HEIC:
		const longest = 1 << 14 // limit of libheif
		if w, h := heifSize(src.data); max(w, h) > longest {
			return header{width: w, height: h}, fmt.Errorf("more than %d pixels wide or high: %w: %w", longest, errors.ErrUnsupported, err)
		}
	}
	if reason := unusual(src); reason != "" {
		return header{}, fmt.Errorf("%s: %w: %w", reason, errors.ErrUnsupported, err)
	}
	return header{}, err
}

func (c *vipsCodec) stat(src source) (header, error) { return c.statPage(src, 0) }

func (c *vipsCodec) statPage(src source, page int) (header, error) {
	op, ok := loaders[src.format]
	if !ok {
		return header{}, errors.ErrUnsupported
	}
	opts := "access=sequential"
	if page > 0 {
		opts += fmt.Sprintf(",page=%d", page)
	}
	if src.format == format.SVG {
		opts += fmt.Sprintf(",scale=%g", svgUnits(src.data))
	}
	p, err := load(op, src.data, opts)
	if err != nil {
		return refused(src, err)
	}
	defer p.close()
	h := header{width: p.Width(), height: p.Height(), pages: max(1, p.Pages()), bits: 8, alpha: p.HasAlpha(), profile: p.HasICCProfile(), resolution: resolutionOf(src, p)}
	h.cmyk = p.Interpretation() == vips.InterpretationCMYK
	switch p.BandFormat() {
	case vips.BandFormatUshort, vips.BandFormatShort:
		h.bits = 16
	case vips.BandFormatUchar, vips.BandFormatChar:
	default:
		h.bits = 32
	}
	if src.format == format.JXL {
		h.hdr = isHDRProfile(p.GetICCProfile())
	}
	if src.format == format.TIFF {
		h.bilevel = readTIFF(src.data).bilevel
	}
	return h, nil
}

// prepare opens src and applies the steps of a plan that precede encoding.
func (c *vipsCodec) prepare(src source, t plan) (*picture, error) {
	p, err := c.open(src, t.page, t.all, false, 1)
	if err != nil {
		return nil, err
	}
	turned := !t.upside && !t.all && p.Orientation() > 1
	random := turned || t.turn != 0 || t.flip != "" || len(t.frames) > 0
	var shrunk []string
	if n, l := shrinkOnLoad(p, src.format, t, turned && p.Orientation() >= 5); n > 1 {
		if !t.exact() { // loaded sizes are rounded, but the result must be exact
			t.width, t.height, t.fit = l.width, l.height, fitFill
		}
		p.close()
		shrunk = []string{fmt.Sprintf("shrink=%d", n)}
		if p, err = c.open(src, t.page, t.all, false, 1, shrunk...); err != nil {
			return nil, err
		}
	}
	scale := 1.0
	if src.format == format.SVG {
		w, h := t.shaped(p.Width(), p.PageHeight())
		scale = drawingScale(w, h, t)
		t.enlarge = false // it is drawn at its final size
	}
	if scale != 1 || random {
		p.close() // rotation needs random access to the lines
		if p, err = c.open(src, t.page, t.all, random, scale, shrunk...); err != nil {
			return nil, err
		}
	}
	if turned {
		if err := p.AutoRotate(); err != nil {
			p.close()
			return nil, cause(err)
		}
	}
	if err := c.finish(p, t, turned); err != nil {
		p.close()
		return nil, cause(err)
	}
	return p, nil
}

// shrinkOnLoad returns the factor by which the JPEG decoder scales down (1 for
// none), and the layout of the whole picture. Scaling in the decoder takes a
// fraction of the time, but filters each block separately. So a better filter does
// the last step, by a factor of at least 1.2. Photos then have a similarity of 0.996
// to fully decoded photos. With a last factor of 2 it is 0.998, but takes a quarter
// more time. For comparison, WebP of quality 85 has a similarity of 0.984.
func shrinkOnLoad(p *picture, f format.Format, t plan, sideways bool) (int, layout) {
	w, h := p.Width(), p.PageHeight()
	if sideways {
		w, h = h, w
	}
	w, h = t.shaped(w, h)
	n, l := 1, t.layout(w, h)
	if t.crop != (cropping{}) {
		return n, l // the box is in pixels of the whole picture
	}
	s := max(float64(l.width)/float64(w), float64(l.height)/float64(h))
	for f == format.JPG && n < 8 && 1.2*s*float64(2*n) <= 1 {
		n *= 2
	}
	return n, l
}

// finish adapts size, colours, transparency and metadata of an upright picture
// to the target of a plan.
func (c *vipsCodec) finish(p *picture, t plan, turned bool) error {
	if t.reshapes() {
		if err := p.reshape(t); err != nil {
			return err
		}
	}
	w, h := p.Width(), p.PageHeight()
	l := t.layout(w, h)
	if l.width != w || l.height != h {
		// All frames get the same height.
		ws, hs := float64(l.width)/float64(w), float64(l.height)/float64(h)
		if err := p.ResizeWithVScale(ws, hs, vips.KernelLanczos3); err != nil {
			return err
		}
	}
	if l.outW < l.width || l.outH < l.height {
		if err := p.ExtractArea(l.cropX, l.cropY, l.outW, l.outH); err != nil {
			return err
		}
	}
	if err := colours(p, t); err != nil {
		return err
	}
	if err := ground(p, t, l); err != nil {
		return err
	}
	if t.mark != nil {
		if err := c.draw(p, t.mark); err != nil {
			return err
		}
	}
	if t.meta == keepProfile {
		return removeMetadata(p)
	}
	// A preview shows the original picture, and XMP may repeat the orientation, which
	// has just been applied.
	wrong := []string{"jpeg-thumbnail-data"}
	if turned {
		wrong = append(wrong, "xmp-data")
	}
	return p.RemoveMetadata(slices.DeleteFunc(p.ImageFields(), func(f string) bool { return slices.Contains(wrong, f) })...)
}

// ground composes p with its background and adds padding.
func ground(p *picture, t plan, l layout) error {
	flatten := p.HasAlpha() && (opaque(t) || t.background != nil)
	pad := l.outW > l.width || l.outH > l.height
	if !flatten && !pad {
		return nil
	}
	back, around := t.backdrop(), t.padding()
	if p.Bands() <= 2 && (back.R != back.G || back.G != back.B) { // gray, which the background colour makes RGB
		to := vips.InterpretationSRGB
		if p.BandFormat() == vips.BandFormatUshort {
			to = vips.InterpretationRGB16
		}
		if err := errors.Join(p.ToColorSpace(to), p.RemoveICCProfile()); err != nil {
			return err
		}
	}
	if flatten {
		if err := p.flatten(back); err != nil {
			return err
		}
	}
	if !pad {
		return nil
	}
	if around.A == 0 && !p.HasAlpha() {
		if err := p.AddAlpha(); err != nil {
			return err
		}
	}
	if p.Height() > p.PageHeight() { // each frame separately; frames have 8 bits
		return p.EmbedBackgroundRGBA(l.padX, l.padY, l.outW, l.outH, &vips.ColorRGBA{R: around.R, G: around.G, B: around.B, A: around.A})
	}
	return p.embed(l, around)
}

// drawingScale returns the factor from the declared size of a drawing to the size at
// which it is rendered.
func drawingScale(w, h int, t plan) float64 {
	base := 1.0
	if t.dpi > 0 {
		base = t.dpi / 96
	}
	switch {
	case t.exact() && t.fit == fitContain, t.width > 0 && !t.exact(), t.height > 0 && !t.exact():
		t.enlarge = true
		return fit(w, h, t)
	case t.exact():
		return max(float64(t.width)/float64(w), float64(t.height)/float64(h))
	}
	return base
}

// removeMetadata removes all metadata except the profile and the fields for
// pages and frames. govips sees 256 fields at a time, and each EXIF tag is a
// field.
func removeMetadata(p *picture) error {
	const many = 200 // far more than the remaining fields
	for range 1000 {
		if err := p.RemoveMetadata("resolution-unit"); err != nil {
			return err
		}
		if len(p.ImageFields()) < many {
			return nil
		}
	}
	return errors.New("too much metadata")
}

// colours converts p to gray or RGB, with 16 bits where source and target have
// them, and with a profile that matches the samples.
func colours(p *picture, t plan) error {
	deep := p.BandFormat() != vips.BandFormatUchar && t.colours == 0 && t.tiff != "jpeg" &&
		(t.to == format.PNG || t.to == format.TIFF || t.to == format.JXL)
	depth := 8
	if deep {
		depth = 16
	}
	convert := depth // libvips clips 16-bit transparency when it applies a profile for 8 bits
	if p.BandFormat() == vips.BandFormatUshort && p.HasAlpha() {
		convert = 16
	}
	rgbOnly := t.to == format.WebP || t.to == format.AVIF || t.to == format.HEIC
	if err := applyProfile(p, t.to, convert, rgbOnly); err != nil {
		return err
	}
	to := vips.InterpretationSRGB
	switch gray := p.Bands() <= 2; {
	case deep && gray:
		to = vips.InterpretationGrey16
	case deep:
		to = vips.InterpretationRGB16
	case gray && !rgbOnly:
		to = vips.InterpretationBW
	}
	if p.Interpretation() != to || deep != (p.BandFormat() == vips.BandFormatUshort) {
		if err := p.ToColorSpace(to); err != nil {
			return err
		}
	}
	// Conversions may result in float samples.
	if !deep && p.BandFormat() != vips.BandFormatUchar {
		return p.Cast(vips.BandFormatUchar)
	}
	return nil
}

// applyProfile converts the samples to sRGB of depth bits, without a profile, if the target stores neither
// the profile nor the colour space. It removes a profile that is wrong for the samples.
func applyProfile(p *picture, to format.Format, depth int, rgbOnly bool) error {
	space, cmyk := p.profileSpace(), p.Interpretation() == vips.InterpretationCMYK
	gray := p.Bands() <= 2
	noProfile := to == format.GIF || to == format.BMP || to == "" // "" is for pixels
	want := map[bool]string{true: "GRAY", false: "RGB "}[gray]
	if cmyk {
		want = "CMYK"
	}
	switch {
	case space != "" && space != want: // the profile is wrong for these samples
		if err := p.RemoveICCProfile(); err != nil {
			return err
		}
		space = ""
	case space != "" && (cmyk || noProfile || gray && rgbOnly):
		if err := p.toSRGB(depth); err != nil {
			// Ignore an unreadable profile.
			space = ""
		}
		if err := p.RemoveICCProfile(); err != nil {
			return err
		}
	}
	if p.Interpretation() == vips.InterpretationCMYK && space == "" {
		if err := p.toSRGB(depth); err != nil {
			return err
		}
		if err := p.RemoveICCProfile(); err != nil {
			return err
		}
	}
	return nil
}

func (c *vipsCodec) transcode(ctx context.Context, src source, t plan) ([]byte, error) {
	p, err := c.prepare(src, t)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := p.density(t.dpi); err != nil {
		return nil, err
	}
	return c.write(ctx, p, t)
}

// resolutionOf returns the resolution of src. Without one, libvips reports one
// pixel per millimetre, or 72 dpi for PNG. libvips ignores a resolution that is
// only in EXIF.
func resolutionOf(src source, p *picture) resolution {
	r := resolution{p.ResX(), p.ResY()}
	pHYs := src.format != format.PNG
	if !pHYs {
		for typ := range imagefile.PNGChunks(src.data) {
			pHYs = pHYs || typ == "pHYs"
		}
	}
	if r != (resolution{1, 1}) && pHYs {
		return r
	}
	field := func(name string) (numerator, denominator float64) {
		denominator = 1
		if n, _ := fmt.Sscanf(p.GetString("exif-ifd0-"+name), "%g/%g", &numerator, &denominator); n == 0 {
			return 0, 1
		}
		return numerator, denominator
	}
	perUnit := func(n, d float64) float64 {
		switch unit, _ := field("ResolutionUnit"); {
		case !(n > 0 && d > 0):
		case unit == 2:
			return n / d / 25.4
		case unit == 3:
			return n / d / 10
		}
		return 0
	}
	if r = (resolution{perUnit(field("XResolution")), perUnit(field("YResolution"))}); r.x == 0 || r.y == 0 {
		return resolution{}
	}
	return r
}

// density replaces the resolution of the source by dpi pixels per inch, unless
// dpi is 0. If neither is known, it sets 72 dpi for formats that require a
// resolution: EXIF (CIPA DC-008, 4.6.5) and TIFF.
func (p *picture) density(dpi float64) error {
	if dpi != 0 {
		p.resolution = perInch(dpi)
	}
	r := cmp.Or(p.resolution, perInch(72))
	denser, err := p.CopyChangingResolution(r.x, r.y)
	if err != nil {
		return cause(err)
	}
	p.Close()
	p.ImageRef = denser
	p.SetString("resolution-unit", "in")
	return nil
}

func (c *vipsCodec) write(ctx context.Context, p *picture, t plan) ([]byte, error) {
	op, ok := savers[t.to]
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if plainPNG(p, t) {
		return p.savePNG(ctx, t)
	}
	b, err := p.save(ctx, op, saveOptions(p, t))
	if err != nil {
		return nil, err
	}
	switch {
	case t.to == format.JPG && p.resolution == (resolution{}):
		withoutDensity(b)
	case t.to == format.JPG:
		b = withDensity(b, p.ResX()*25.4, p.ResY()*25.4)
	case t.to == format.PNG && p.resolution == (resolution{}):
		b = imagefile.WithoutChunk(b, "pHYs")
	case t.to == format.WebP:
		b = bareExif(b)
	}
	return b, nil
}

// bareExif removes the identifier of a JPEG segment from the EXIF chunk of a WebP. libvips writes
// it, but the chunk starts with the TIFF header (WebP Container Specification, Metadata), and
// decoders such as that of FFmpeg reject the metadata otherwise.
func bareExif(b []byte) []byte {
	const identifier = "Exif\x00\x00"
	le := binary.LittleEndian
	for at := 12; at+8 <= len(b); {
		n := int64(le.Uint32(b[at+4:]))
		if string(b[at:at+4]) == "EXIF" && bytes.HasPrefix(b[at+8:], []byte(identifier)) && n >= int64(len(identifier)) {
			le.PutUint32(b[at+4:], uint32(n)-uint32(len(identifier)))
			le.PutUint32(b[4:], le.Uint32(b[4:])-uint32(len(identifier)))
			return slices.Delete(b, at+8, at+8+len(identifier))
		}
		next := int64(at) + 8 + n + n%2
		if next > int64(len(b)) {
			return b
		}
		at = int(next)
	}
	return b
}

// withoutDensity sets the density in a JFIF header to square pixels of unknown
// size (ITU-T T.871, 10.1).
func withoutDensity(b []byte) {
	if len(b) >= 18 && string(b[2:4]) == "\xff\xe0" && string(b[6:11]) == "JFIF\x00" {
		copy(b[13:18], "\x00\x00\x01\x00\x01")
	}
}

// withDensity adds a JFIF header with pixels per inch to a JPEG without one
// (ITU-T T.871, 10.1). libvips omits it when it strips metadata.
func withDensity(b []byte, x, y float64) []byte {
	if len(b) < 4 || b[3] == 0xe0 || !(x >= 1 && x < 65535 && y >= 1 && y < 65535) {
		return b
	}
	be := binary.BigEndian
	head := slices.Concat(b[:2], []byte("\xff\xe0\x00\x10JFIF\x00\x01\x02\x01"))
	head = be.AppendUint16(head, uint16(math.Round(x)))
	head = be.AppendUint16(head, uint16(math.Round(y)))
	head = append(head, 0, 0) // no thumbnail
	return append(head, b[2:]...)
}

// mostWebP is the number of pixels above which WebP is encoded with less effort. The modes of all
// blocks share a partition of at most 512 KiB (RFC 6386, 9.1). With effort 3 and more libwebp notices
// only in the end that they do not fit, and starts again with half the bits for a block: up to ten
// times. With less effort it keeps to the limit from the start. A photograph of 48 megapixels took
// 22 s of processor time, and takes 3 s; of photographs of 12 to 48 megapixels the results were 4 to
// 10 % smaller, of one of 110 they were 6 % larger. The modes of a photograph need about 13 KB for a
// megapixel.
const mostWebP = 32 << 20

// saveOptions returns the options of a saver for a plan.
func saveOptions(p *picture, t plan) string {
	o := map[string]any{}
	quality := func(def int) int {
		if t.quality > 0 {
			return t.quality
		}
		return def
	}
	// Without strip, libvips writes its own EXIF block. Strip removes the profile
	// too, so use it only without a profile.
	if t.meta == keepProfile && !p.HasICCProfile() && t.to != format.GIF {
		o["strip"] = true
	}
	switch t.to {
	case format.JPG:
		o["Q"], o["interlace"], o["optimize-coding"] = quality(90), true, true
		o["subsample-mode"] = cmp.Or(t.subsample, "auto")
	case format.PNG:
		o["compression"] = 3 // 6 takes twice as long and saves only 4 %
		if t.small {
			o["compression"] = 9
		}
		switch {
		case t.colours > 0:
			o["palette"], o["Q"], o["dither"] = true, quality(90), t.dither
			o["bitdepth"] = bitdepth(t.colours)
			o["effort"] = 7
		case t.bilevel && p.Bands() == 1:
			o["bitdepth"] = 1
		default:
			o["filter"] = "all"
		}
	case format.WebP:
		o["Q"], o["effort"] = quality(85), 4
		if t.lossless || t.quality == 100 {
			o["lossless"] = true
		} else if p.Width()*p.PageHeight() > mostWebP {
			o["effort"] = 2
		}
		if t.small && p.Pages() > 1 {
			o["min-size"] = true
		}
	case format.GIF:
		o["effort"], o["dither"] = 7, 1.0
		if t.colours > 0 {
			o["bitdepth"], o["dither"], o["interframe-maxerror"] = bitdepth(t.colours), t.dither, t.slack
		}
	case format.TIFF:
		o["compression"] = cmp.Or(t.tiff, "deflate")
		switch o["compression"] {
		case "deflate":
			o["predictor"] = "horizontal"
		case "jpeg":
			o["Q"] = quality(75)
		case "ccittfax4":
			o["bitdepth"] = 1
		}
	case format.AVIF:
		// Without a bit depth 16-bit sources become 12 bits, which few programs show.
		o["Q"], o["effort"], o["bitdepth"], o["compression"] = quality(63), 2, 8, "av1"
		if t.lossless || t.quality == 100 {
			o["lossless"] = true
		}
	case format.HEIC:
		o["Q"], o["bitdepth"], o["compression"] = quality(60), 8, "hevc"
	case format.JP2:
		o["Q"], o["subsample-mode"] = quality(60), "off"
		if t.lossless || t.quality == 100 {
			o["lossless"] = true
		}
	case format.JXL:
		o["Q"], o["effort"] = quality(90), 5
		if t.lossless || t.quality == 100 {
			o["lossless"] = true
		}
	}
	parts := make([]string, 0, len(o))
	for _, k := range slices.Sorted(maps.Keys(o)) {
		parts = append(parts, fmt.Sprintf("%s=%v", k, o[k]))
	}
	return strings.Join(parts, ",")
}

func bitdepth(colours int) int {
	for d := 1; d < 8; d *= 2 {
		if colours <= 1<<d {
			return d
		}
	}
	return 8
}

func (c *vipsCodec) encode(ctx context.Context, m decoded, t plan) ([]byte, error) {
	p, err := fromImage(m)
	if err != nil {
		return nil, cause(err)
	}
	defer p.close()
	if err := c.finish(p, t, false); err != nil {
		return nil, cause(err)
	}
	if err := p.density(t.dpi); err != nil {
		return nil, err
	}
	return c.write(ctx, p, t)
}

// fromImage converts a Go image to a libvips picture.
func fromImage(m decoded) (*picture, error) {
	b := m.img.Bounds()
	if b.Empty() {
		return nil, errors.New("the picture is empty")
	}
	var p *picture
	s, err := imagefile.FromImage(m.img)
	if err == nil {
		if s.Components == 4 {
			s.Pix = imagefile.Inverted(s.Pix) // libvips expects ink
		}
		p, err = fromSamples(s)
	} else {
		n, ok := m.img.(*image.NRGBA)
		if !ok || n.Rect.Min != (image.Point{}) || n.Stride != 4*b.Dx() {
			n = image.NewNRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
			draw.Draw(n, n.Rect, m.img, b.Min, draw.Src)
		}
		var ref *vips.ImageRef
		if ref, err = vips.NewImageFromGoImage(n); err == nil {
			p = &picture{ImageRef: ref}
		}
	}
	if err == nil {
		p.setProfile(m.profile)
		p.resolution = m.resolution
	}
	if a := m.animation; err == nil && a != nil {
		err = errors.Join(p.SetPages(len(a.Delays)), p.SetPageHeight(a.Height()), p.SetPageDelay(a.Delays), p.SetLoop(a.Plays))
	}
	return p, err
}

func (c *vipsCodec) pixels(ctx context.Context, src source, t plan) (image.Image, error) {
	switch t.to {
	case format.BMP, format.PNG:
	default:
		t.to = ""
	}
	p, err := c.prepare(src, t)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.goImage(ctx)
}

func (c *vipsCodec) flat(ctx context.Context, src source) (raster.Samples, error) {
	p, err := c.prepare(src, own)
	if err != nil {
		return raster.Samples{}, err
	}
	defer p.close()
	if n := p.Bands(); n == 1 || n == 3 {
		pix, err := p.bytes(ctx)
		return raster.Samples{Width: p.Width(), Height: p.Height(), Components: n, Pix: pix}, err
	}
	m, err := p.goImage(ctx)
	if err != nil {
		return raster.Samples{}, err
	}
	return imagefile.FromImage(m)
}

// animation implements animator.
func (c *vipsCodec) animation(ctx context.Context, src source, t plan) (imagefile.Animation, error) {
	t.to = ""
	p, err := c.prepare(src, t)
	if err != nil {
		return imagefile.Animation{}, err
	}
	defer p.close()
	return p.animation(ctx)
}

// reanimate implements animator.
func (c *vipsCodec) reanimate(ctx context.Context, m decoded, t plan) (imagefile.Animation, error) {
	t.to = ""
	p, err := fromImage(m)
	if err != nil {
		return imagefile.Animation{}, cause(err)
	}
	defer p.close()
	if err := c.finish(p, t, false); err != nil {
		return imagefile.Animation{}, cause(err)
	}
	return p.animation(ctx)
}

// animation returns the frames of p.
func (p *picture) animation(ctx context.Context) (imagefile.Animation, error) {
	delays, err := p.PageDelay()
	if err != nil {
		return imagefile.Animation{}, cause(err)
	}
	n := max(1, p.Height()/max(1, p.PageHeight()))
	for len(delays) < n {
		delays = append(delays, 100)
	}
	m, err := p.goImage(ctx)
	if err != nil {
		return imagefile.Animation{}, err
	}
	pix, ok := m.(*image.NRGBA)
	if !ok {
		pix = image.NewNRGBA(m.Bounds())
		draw.Draw(pix, pix.Rect, m, m.Bounds().Min, draw.Src)
	}
	return imagefile.Animation{Pix: pix, Delays: delays[:n], Plays: p.Loop()}, nil
}

// goImage returns the pixels of p as in codec.pixels.
func (p *picture) goImage(ctx context.Context) (image.Image, error) {
	w, h, bands := p.Width(), p.Height(), p.Bands()
	pix, err := p.bytes(ctx)
	if err != nil {
		return nil, err
	}
	r := image.Rect(0, 0, w, h)
	switch bands {
	case 1:
		return &image.Gray{Pix: pix, Stride: w, Rect: r}, nil
	case 2:
		out := image.NewNRGBA(r)
		for i, j := 0, 0; i+1 < len(pix); i, j = i+2, j+4 {
			v := pix[i]
			out.Pix[j], out.Pix[j+1], out.Pix[j+2], out.Pix[j+3] = v, v, v, pix[i+1]
		}
		return out, nil
	case 3:
		out := image.NewRGBA(r)
		for i, j := 0, 0; i+2 < len(pix); i, j = i+3, j+4 {
			out.Pix[j], out.Pix[j+1], out.Pix[j+2], out.Pix[j+3] = pix[i], pix[i+1], pix[i+2], 255
		}
		return out, nil
	case 4:
		return &image.NRGBA{Pix: pix, Stride: 4 * w, Rect: r}, nil
	}
	return nil, fmt.Errorf("%d components: %w", bands, errors.ErrUnsupported)
}

func (c *vipsCodec) luma(ctx context.Context, src source, pages int, backdrop uint8) (*image.Gray, error) {
	// As for a PNG palette: 8 bits in the original colour space.
	t := plan{to: format.PNG, colours: 256, all: pages > 1}
	if src.format == format.SVG {
		t.width, t.height, t.enlarge = drawn, drawn, true
	}
	p, err := c.prepare(src, t)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if p.HasAlpha() {
		if err := p.flatten(color.NRGBA{backdrop, backdrop, backdrop, 255}); err != nil {
			return nil, err
		}
	}
	if err := p.toLuma(); err != nil {
		return nil, err
	}
	w, h := p.Width(), p.Height()
	pix, err := p.bytes(ctx)
	if err != nil {
		return nil, err
	}
	return &image.Gray{Pix: pix, Stride: w, Rect: image.Rect(0, 0, w, h)}, nil
}

func (c *vipsCodec) jpeg(ctx context.Context, s raster.Samples, quality int) ([]byte, error) {
	if s.Components == 4 {
		s.Pix = imagefile.Inverted(s.Pix) // libvips inverts what it writes
	}
	p, err := fromSamples(s)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.save(ctx, "jpegsave_buffer", fmt.Sprintf("Q=%d,interlace=true,optimize-coding=true,strip=true", quality))
}

func (c *vipsCodec) scale(ctx context.Context, m raster.Samples, width, height int) (raster.Samples, error) {
	p, err := fromSamples(m)
	if err != nil {
		return raster.Samples{}, err
	}
	defer p.close()
	if err := p.resize(width, height); err != nil {
		return raster.Samples{}, err
	}
	return unpacked(ctx, p)
}

func (c *vipsCodec) unpack(ctx context.Context, src source, width, height int) (raster.Samples, error) {
	h, err := c.stat(src)
	if err != nil {
		return raster.Samples{}, err
	}
	opts := "fail-on=truncated,access=sequential"
	if src.format == format.JPG {
		// The decoder can scale down, which is faster. Half of the reduction is left
		// to a better filter.
		shrink := 1
		for shrink < 8 && h.width >= 4*shrink*width && h.height >= 4*shrink*height {
			shrink *= 2
		}
		opts += fmt.Sprintf(",shrink=%d", shrink)
	}
	p, err := load(loaders[src.format], src.data, opts)
	if err != nil {
		return raster.Samples{}, err
	}
	defer p.close()
	if width != p.Width() || height != p.Height() {
		if err := p.resize(width, height); err != nil {
			return raster.Samples{}, err
		}
	}
	m, err := unpacked(ctx, p)
	if err == nil && m.Components == 4 && jpegInfo(src.data).Adobe {
		m.Pix = imagefile.Inverted(m.Pix) // libvips converted it to ink
	}
	return m, err
}

func unpacked(ctx context.Context, p *picture) (raster.Samples, error) {
	if p.BandFormat() != vips.BandFormatUchar {
		return raster.Samples{}, fmt.Errorf("more than 8 bits: %w", errors.ErrUnsupported)
	}
	s := raster.Samples{Width: p.Width(), Height: p.Height(), Components: p.Bands()}
	if s.Components != 1 && s.Components != 3 && s.Components != 4 {
		return raster.Samples{}, fmt.Errorf("%d components: %w", s.Components, errors.ErrUnsupported)
	}
	var err error
	s.Pix, err = p.bytes(ctx)
	return s, err
}

var (
	_ codec    = (*vipsCodec)(nil)
	_ animator = (*vipsCodec)(nil)
)
