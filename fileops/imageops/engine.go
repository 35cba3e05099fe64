package imageops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
)

// Options configure an [Engine]. The zero value is ready to use.
type Options struct {
	// MaxPixels limits width × height of one page or frame. 0 means 100 million.
	MaxPixels int64

	// MaxTotalPixels limits the pixels of all pages or frames of a file together. 0
	// means twenty times MaxPixels.
	MaxTotalPixels int64

	// MaxFrames limits the pages of a TIFF and the frames of an animation.
	// 0 means 1000.
	MaxFrames int

	// MaxBytes limits the size of an input, which is held in memory. 0 means 512
	// MiB.
	MaxBytes int64

	// Without lists input formats to disable, for example format.SVG.
	Without []format.Format

	LibRaw   string          // path or name of simple_dcraw; "" means in PATH, [engine.None] disables raw photos
	JPEGTran string          // path or name of jpegtran; "" means in PATH, [engine.None] disables turning JPEG files without losses
	Sandbox  *engine.Sandbox // confines both; nil means no sandbox
	Run      engine.Limits   // of each run of a program; zero fields mean some minutes of processor time and 4 GiB of memory

	// Probed is the result of [Engine.Probed] in another process of this program on
	// this host. It saves the probing, which takes a tenth of a second.
	Probed string
}

// Lean is an environment variable. With it, libvips starts without its plug-ins, in a
// third of the time. Set it for processes whose [Options] contain probed abilities.
// They load a plug-in when a picture needs it.
const Lean = "VIPSHOME=/nonexistent"

// An Engine provides the actions of this package. It is safe for concurrent use.
type Engine struct {
	opts    Options
	codec   codec
	raw     developer
	rawErr  error // why raw photos cannot be read
	turner  turner
	turnErr error // why JPEG files are not turned without losses
	reads   []format.Format
	writes  []format.Format
}

// inputs and outputs list the formats that this package may read and write, in
// the order in which they are offered. Formats without support in the host's
// codec are omitted.
var (
	inputs = []format.Format{
		format.JPG, format.PNG, format.WebP, format.GIF, format.TIFF, format.BMP, format.AVIF,
		format.HEIC, format.JXL, format.JP2, format.SVG, format.ICO, format.PSD, format.RAW, format.PPM, format.TGA, format.ICNS,
	}
	outputs = []format.Format{
		format.JPG, format.PNG, format.WebP, format.GIF, format.TIFF, format.BMP, format.AVIF,
		format.HEIC, format.JXL, format.JP2, format.ICO, format.PPM, format.TGA,
	}
)

// New probes the abilities of this host and returns an engine. It fails if the
// program contains libvips and libvips does not start.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{opts: o}
	setDefault(&e.opts.MaxPixels, 100e6)
	setDefault(&e.opts.MaxTotalPixels, 20*e.opts.MaxPixels)
	setDefault(&e.opts.MaxFrames, 1000)
	setDefault(&e.opts.MaxBytes, 512<<20)
	var known finding
	if o.Probed != "" {
		if err := json.Unmarshal([]byte(o.Probed), &known); err != nil {
			return nil, fmt.Errorf("imageops: options: probed: %w", err)
		}
		e.raw, e.turner = known.Raw, known.Turner
	} else {
		e.raw, e.rawErr = findRaw(ctx, o)
		e.turner, e.turnErr = findTurner(ctx, o)
	}
	c, err := newCodec(known.Codec)
	if err != nil {
		return nil, fileops.Missing(libvips(), fmt.Errorf("imageops: %w", err))
	}
	e.codec = c
	for _, f := range outputs {
		if slices.Contains(ownEncoders, f) || c.writes(f) {
			e.writes = append(e.writes, f)
		}
	}
	for _, f := range inputs {
		if slices.Contains(e.opts.Without, f) {
			continue
		}
		if ownDecoder(f) != nil || c.reads(f) || f == format.RAW && e.raw.Path != "" && c.reads(format.TIFF) {
			e.reads = append(e.reads, f)
		}
	}
	return e, nil
}

func setDefault[T int | int64](p *T, v T) {
	if *p <= 0 {
		*p = v
	}
}

// Probed returns the probed abilities of the codec, for [Options].
func (e *Engine) Probed() string {
	b, err := json.Marshal(finding{e.codec.probed(), e.raw, e.turner})
	if err != nil {
		panic(err) // impossible: only strings
	}
	return string(b)
}

// Name returns the name and version of the codec: "libvips 8.14.1", or "go".
func (e *Engine) Name() string { return e.codec.name() }

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	return []fileops.Action{e.Convert(), e.Compress(), e.Rotate(), e.Thumbnail(), e.Metadata(), e.Watermark(), e.Inspect()}
}

// libvips describes the library without any probed data.
func libvips() fileops.Dependency {
	return fileops.Dependency{Name: "libvips", Purpose: "pictures", Hint: "install libvips-dev and build with cgo"}
}

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	d := libvips()
	name, version, _ := strings.Cut(e.Name(), " ")
	raw := libraw()
	raw.Path, raw.Version, raw.Err = e.raw.Path, e.raw.Version, e.rawErr
	turn := jpegtran()
	turn.Path, turn.Version, turn.Err = e.turner.Path, e.turner.Version, e.turnErr
	if name == d.Name {
		d.Version = version
		return []fileops.Dependency{d, raw, turn}
	}
	d.Purpose, d.Packages = "pictures beyond jpg, png, gif, bmp, tiff", []string{"libvips-dev"}
	d.Err = fmt.Errorf("built without it: %w", exec.ErrNotFound)
	return []fileops.Dependency{d, {Name: name, Version: version, Purpose: "pictures"}, raw, turn}
}

// Reads returns the supported input formats.
func (e *Engine) Reads() []format.Format { return slices.Clone(e.reads) }

// Formats returns the supported output formats.
func (e *Engine) Formats() []format.Format { return slices.Clone(e.writes) }

// Encode writes an opaque picture from memory, such as a rendered page. quality
// is from 1 to 100; 0 means the default of the format, and lossless formats
// ignore it. dpi, if not 0, is stored in the file if the format supports it.
func (e *Engine) Encode(ctx context.Context, img *image.RGBA, to format.Format, quality int, dpi float64, w io.Writer) error {
	if !slices.Contains(e.writes, to) {
		return fileops.Fail(fileops.ErrUnavailable, nil, "%s cannot be written on this host", to.Title())
	}
	if img.Rect.Empty() {
		return errors.New("imageops: empty picture")
	}
	b, err := e.encode(ctx, decoded{img: img}, plan{to: to, quality: quality, dpi: dpi, meta: keepProfile})
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// A codec decodes and encodes pictures. It makes no decisions: a plan describes all
// steps, and the caller checks limits.
type codec interface {
	name() string
	probed() string
	reads(format.Format) bool
	writes(format.Format) bool
	compresses(format.Format) bool

	// stat reads the header of a file.
	stat(src source) (header, error)

	// transcode decodes a file and encodes it again.
	transcode(ctx context.Context, src source, p plan) ([]byte, error)

	// encode encodes a picture in memory.
	encode(ctx context.Context, m decoded, p plan) ([]byte, error)

	// pixels decodes one page to *image.Gray, *image.NRGBA, or *image.RGBA if
	// opaque. It follows the steps of the plan that precede encoding. For PNG the
	// samples keep their colour space. For other targets they become sRGB, for BMP
	// without transparency.
	pixels(ctx context.Context, src source, p plan) (image.Image, error)

	// flat decodes an opaque picture to gray or RGB, 8 bits, upright, in its own
	// colour space.
	flat(ctx context.Context, src source) (raster.Samples, error)

	// luma returns the luminance of the first page, or of all pages one below the
	// other if pages is more than 1. The result is upright and on a gray backdrop.
	// Drawings fill a box of drawn × drawn pixels.
	luma(ctx context.Context, src source, pages int, backdrop uint8) (*image.Gray, error)

	// jpeg encodes samples as JPEG; see [Engine.EncodeJPEG].
	jpeg(ctx context.Context, s raster.Samples, quality int) ([]byte, error)

	// scale scales samples to width × height.
	scale(ctx context.Context, s raster.Samples, width, height int) (raster.Samples, error)

	// unpack decodes a JPEG or JPEG 2000 stream without colour conversion.
	unpack(ctx context.Context, src source, width, height int) (raster.Samples, error)
}

// own is the plan that keeps the colour space of a picture, in 8 bits.
var own = plan{to: format.PNG, colours: 256}

// A source is an encoded file and the format of its content.
type source struct {
	data   []byte
	format format.Format
}

// A header holds the properties of a picture that are known before decoding.
type header struct {
	width, height int // of one page, before any rotation
	pages         int // at least 1
	bits          int // per sample
	alpha         bool
	bilevel       bool // black and white only
	cmyk          bool // inks for print
	profile       bool // has a colour profile
	hdr           bool // the colour profile is for high dynamic range
	resolution    resolution
}

func (h header) pixels() int64 { return int64(h.width) * int64(h.height) }

// A decoded is a decoded picture in memory.
type decoded struct {
	img     image.Image
	profile []byte // ICC profile, or nil

	resolution resolution

	// animation describes the frames in img, which are one below the other; nil for
	// a still picture.
	animation *imagefile.Animation
}

// A resolution is in pixels per millimetre, horizontal and vertical. The zero
// value means unknown.
type resolution struct{ x, y float64 }

// perInch converts dpi pixels per inch to a resolution.
func perInch(dpi float64) resolution { return resolution{dpi / 25.4, dpi / 25.4} }

// meta selects the metadata to keep.
type meta int

const (
	keepAll     meta = iota // all except outdated fields
	keepProfile             // the colour profile only
)

// A plan describes how to process and encode a picture.
type plan struct {
	to   format.Format
	page int  // first page to use
	all  bool // all pages or frames from there on

	// width and height are a box to fit into, 0 for no limit. enlarge scales a
	// smaller picture up to the box.
	width, height int
	enlarge       bool
	fit           string // how to use the box: a value of fit, "" for inside

	// The plan crops the upright picture, rotates it clockwise, flips it, and then scales
	// it. frames are the frames to keep if all is set, counted from page; nil means all.
	crop   cropping
	turn   int    // degrees: 0, 90, 180, 270
	flip   string // a value of flip, "" for none
	frames []int

	mark  *mark // drawn over the result; nil for none
	sizes []int // of the pictures in an icon; nil means the usual ones

	// background is the colour behind transparency. nil means white if the target has no
	// transparency, and otherwise no background.
	background *color.NRGBA

	meta   meta
	upside bool // ignore the EXIF orientation

	quality   int     // 1 to 100; 0 means the default of the format
	dpi       float64 // 0 means that of the source; drawings are drawn at it
	lossless  bool
	bilevel   bool   // the source is black and white only
	subsample string // chroma subsampling of JPEG: "on", "off", "" for the codec's choice

	colours int     // palette size, 0 for no palette
	dither  float64 // 0 to 1
	slack   float64 // difference to the last frame below which an animation omits a pixel
	tiff    string  // compression within TIFF: "deflate", "jpeg", "ccittfax4"
	small   bool    // spend more time to save bytes
}

// ownEncoders lists the formats that are encoded without the codec.
var ownEncoders = []format.Format{format.BMP, format.ICO, format.PPM, format.TGA}

// transcode is codec.transcode for all formats of this package.
func (e *Engine) transcode(ctx context.Context, src source, p plan) ([]byte, error) {
	if p.all && (src.format == format.PNG || p.to == format.PNG) {
		return e.animate(ctx, src, p)
	}
	if decode := ownDecoder(src.format); decode != nil {
		m, err := decode(src.data)
		if err != nil {
			return nil, err
		}
		return e.encode(ctx, m, p)
	}
	switch p.to {
	case format.PPM, format.TGA:
		q := p
		if q.to = ""; p.to == format.PPM {
			q.to = format.BMP // without transparency too
		}
		img, err := e.codec.pixels(ctx, src, q)
		if err != nil {
			return nil, err
		}
		if p.to == format.PPM {
			return encodePNM(img), nil
		}
		return encodeTGA(img)
	case format.BMP:
		img, err := e.codec.pixels(ctx, src, p)
		if err != nil {
			return nil, err
		}
		r := perInch(p.dpi)
		if p.dpi == 0 {
			h, err := e.codec.stat(src)
			if err != nil {
				return nil, err
			}
			r = h.resolution
		}
		return encodeBMP(img, r)
	case format.ICO:
		q := iconPlan(p)
		b, err := e.codec.transcode(ctx, src, q)
		if err != nil {
			return nil, err
		}
		return e.icon(ctx, b, q)
	}
	return e.codec.transcode(ctx, src, p)
}

// encode is codec.encode for all formats of this package.
func (e *Engine) encode(ctx context.Context, m decoded, p plan) ([]byte, error) {
	switch p.to {
	case format.BMP, format.ICO, format.PPM, format.TGA:
		b, err := e.codec.encode(ctx, m, plan{to: format.PNG, meta: p.meta})
		if err != nil {
			return nil, err
		}
		return e.transcode(ctx, source{b, format.PNG}, p)
	}
	return e.codec.encode(ctx, m, p)
}

// stat reads a header and checks the limits. The limit error has precedence over an
// error of the codec, which may have the same cause.
func (e *Engine) stat(src source) (header, error) {
	stat := e.codec.stat
	if s := ownStat(src.format); s != nil {
		stat = s
	}
	h, err := stat(src)
	if src.format == format.PNG {
		h.pages = max(h.pages, imagefile.PNGFrames(src.data)) // libvips sees only the first frame
	}
	switch {
	case err == nil && (h.width <= 0 || h.height <= 0):
		return h, fileops.Fail(fileops.ErrCorruptInput, nil, "the %s has no size", src.format.Title())
	case h.pixels() > e.opts.MaxPixels:
		return h, fileops.Fail(fileops.ErrLimit, nil, "the picture has %d × %d pixels, more than the limit of %s; make it smaller first",
			h.width, h.height, millions(e.opts.MaxPixels))
	case errors.Is(err, errors.ErrUnsupported):
		return h, fileops.Fail(fileops.ErrUnsupportedInput, err, "this variant of %s cannot be read", src.format.Title())
	case err != nil:
		return h, fileops.Fail(fileops.ErrCorruptInput, err, "the %s is damaged and cannot be read", src.format.Title())
	case h.pages > e.opts.MaxFrames:
		return h, fileops.Fail(fileops.ErrLimit, nil, "the file has %d pages or frames, more than the limit of %d; split it first", h.pages, e.opts.MaxFrames)
	case h.pixels()*int64(h.pages) > e.opts.MaxTotalPixels:
		return h, fileops.Fail(fileops.ErrLimit, nil, "the %d pages or frames of the file have more pixels than the limit of %s; split it first",
			h.pages, millions(e.opts.MaxTotalPixels))
	}
	return h, nil
}

func millions(n int64) string {
	if n >= 1e6 && n%1e6 == 0 {
		return fmt.Sprintf("%d million", n/1e6)
	}
	return fmt.Sprint(n)
}

// load returns the content and header of a job's input.
func (e *Engine) load(ctx context.Context, job *fileops.Job) (source, header, error) {
	return e.loadFor(ctx, job, 0, 0)
}

// loadFor is load for a result that fits into a box, if the box is not zero.
func (e *Engine) loadFor(ctx context.Context, job *fileops.Job, boxWidth, boxHeight int) (source, header, error) {
	in := job.Input()
	if in.Format() == format.RAW {
		b, err := e.develop(ctx, job, boxWidth, boxHeight)
		if err != nil {
			return source{}, header{}, err
		}
		src := source{b, format.TIFF}
		h, err := e.stat(src)
		return src, h, err
	}
	data, err := in.ReadAll(e.opts.MaxBytes)
	if err != nil {
		return source{}, header{}, err
	}
	src := source{data, in.Format()}
	if got := format.Sniff(bytes.NewReader(data), int64(len(data))); got != src.format && (got != format.RAW || src.format != format.TIFF) {
		return src, header{}, fileops.Fail(fileops.ErrFormatMismatch, nil, "the content of the file is not %s", src.format.Title())
	}
	src = e.unwrap(src)
	h, err := e.stat(src)
	return src, h, err
}

// unwrap returns the picture in an icon of macOS if the codec reads it, else src.
func (e *Engine) unwrap(src source) source {
	if src.format == format.ICNS && e.codec.reads(format.JP2) {
		if p, _ := parseICNS(src.data); p.jp2 != nil {
			return source{p.jp2, format.JP2}
		}
	}
	return src
}

// unreadable decodes all pages and frames of a picture and returns the first error.
func (e *Engine) unreadable(ctx context.Context, src source) error {
	h, err := e.codec.stat(src)
	for n := 0; err == nil && n < h.pages; n++ {
		_, err = e.codec.pixels(ctx, src, plan{page: n, width: 256, height: 256})
	}
	return err
}

// blame decides whether the input or the engine caused a codec's failure. Codecs do
// not report that, so blame decodes the input once more without encoding it.
func (e *Engine) blame(ctx context.Context, src source, p plan, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var failure *fileops.Failure
	var param *fileops.ParamError
	if errors.As(err, &failure) || errors.As(err, &param) {
		return err
	}
	if errors.Is(err, errors.ErrUnsupported) || unusual(src) != "" {
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "this variant of %s cannot be read", src.format.Title())
	}
	if ownDecoder(src.format) == nil {
		bad := e.unreadable(ctx, src)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if bad == nil {
			return fileops.Fail(fileops.ErrEngine, err, "the picture could not be written as %s", p.to.Title())
		}
	}
	return fileops.Fail(fileops.ErrCorruptInput, err, "the %s is damaged or incomplete", src.format.Title())
}
