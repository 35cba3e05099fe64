package imageops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
)

// Options configure an [Engine]. The zero value is ready to use.
type Options struct {
	// MaxPixels is the largest picture, width times height of one page or
	// frame. 0 means 100 million.
	MaxPixels int64

	// MaxTotalPixels limits all pages or frames of a file together. 0 means
	// twenty times MaxPixels.
	MaxTotalPixels int64

	// MaxFrames limits the pages of a TIFF and the frames of an animation.
	// 0 means 1000.
	MaxFrames int

	// MaxBytes is the largest input, which is held in memory. 0 means
	// 512 MiB.
	MaxBytes int64

	// Without lists input formats that are not to be read even where the
	// host could, for instance format.SVG.
	Without []format.Format

	// Probed is what [Engine.Probed] has returned to another process of this
	// program on this host; then nothing is tried, which takes a tenth of a
	// second.
	Probed string
}

// Lean, in the environment of a process, has libvips start without its plug-ins, which
// takes a third of the time. It is for a process whose [Options] say what was probed:
// that loads a plug-in when it has a picture for it.
const Lean = "VIPSHOME=/nonexistent"

// An Engine makes the actions of this package. It is safe for concurrent use.
type Engine struct {
	opts   Options
	codec  codec
	reads  []format.Format
	writes []format.Format
}

// inputs and outputs are what this package may read and write, in the order
// in which they are offered. What the host's codec cannot do is left out.
var (
	inputs = []format.Format{
		format.JPG, format.PNG, format.WebP, format.GIF, format.TIFF, format.BMP, format.AVIF,
		format.HEIC, format.JXL, format.JP2, format.SVG, format.ICO, format.PSD,
	}
	outputs = []format.Format{
		format.JPG, format.PNG, format.WebP, format.GIF, format.TIFF, format.BMP, format.AVIF,
		format.HEIC, format.JXL, format.JP2, format.ICO,
	}
)

// New finds out what can be done on this host and returns an engine for it. It
// fails if libvips is linked in and does not start.
func New(_ context.Context, o Options) (*Engine, error) {
	e := &Engine{opts: o}
	setDefault(&e.opts.MaxPixels, 100e6)
	setDefault(&e.opts.MaxTotalPixels, 20*e.opts.MaxPixels)
	setDefault(&e.opts.MaxFrames, 1000)
	setDefault(&e.opts.MaxBytes, 512<<20)
	c, err := newCodec(e.opts.Probed)
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
		if ownDecoder(f) != nil || c.reads(f) {
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

// Probed returns what was found out about the codec, for [Options].
func (e *Engine) Probed() string { return e.codec.probed() }

// Name returns the name and version of the codec: "libvips 8.14.1", or "go".
func (e *Engine) Name() string { return e.codec.name() }

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action { return []fileops.Action{e.Convert(), e.Compress()} }

// libvips describes the library, before anything is known about it.
func libvips() fileops.Dependency {
	return fileops.Dependency{Name: "libvips", Purpose: "pictures", Hint: "install libvips-dev and build with cgo"}
}

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	d := libvips()
	name, version, _ := strings.Cut(e.Name(), " ")
	if name == d.Name {
		d.Version = version
		return []fileops.Dependency{d}
	}
	d.Purpose, d.Packages = "pictures beyond jpg, png, gif, bmp, tiff", []string{"libvips-dev"}
	d.Err = fmt.Errorf("built without it: %w", exec.ErrNotFound)
	return []fileops.Dependency{d, {Name: name, Version: version, Purpose: "pictures"}}
}

// Reads returns the formats that can be read.
func (e *Engine) Reads() []format.Format { return slices.Clone(e.reads) }

// Formats returns the formats that can be written.
func (e *Engine) Formats() []format.Format { return slices.Clone(e.writes) }

// Encode writes an opaque picture that is in memory, such as a rendered page.
// quality is from 1 to 100; 0 stands for the default of the format, and formats
// without loss ignore it. dpi, if it is not 0, goes into the file where the
// format has a place for it.
func (e *Engine) Encode(ctx context.Context, img *image.RGBA, to format.Format, quality int, dpi float64, w io.Writer) error {
	if !slices.Contains(e.writes, to) {
		return fileops.Fail(fileops.ErrUnavailable, nil, "%s cannot be written here", to.Title())
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

// A codec decodes and encodes pictures. It has no policy: what to do is in a
// plan, limits are checked before it is called.
type codec interface {
	name() string
	probed() string
	reads(format.Format) bool
	writes(format.Format) bool
	compresses(format.Format) bool

	// stat reads the header.
	stat(src source) (header, error)

	// transcode decodes a file and encodes it anew.
	transcode(ctx context.Context, src source, p plan) ([]byte, error)

	// encode encodes a picture in memory.
	encode(ctx context.Context, m decoded, p plan) ([]byte, error)

	// pixels decodes one page: to *image.Gray, *image.NRGBA, or
	// *image.RGBA if opaque. Of the plan it follows what comes before
	// encoding. For PNG the samples are left in their colour space, for
	// any other target they become sRGB, for BMP without transparency.
	pixels(ctx context.Context, src source, p plan) (image.Image, error)

	// luma returns the luminance of the first page or, if there are several
	// pages to see, of all, one below the other,
	// upright and laid on a gray backdrop. Drawings are made drawn pixels
	// large.
	luma(ctx context.Context, src source, pages int, backdrop uint8) (*image.Gray, error)

	// jpeg makes a JPEG of samples; see [Engine.EncodeJPEG].
	jpeg(ctx context.Context, s raster.Samples, quality int) ([]byte, error)

	// scale returns samples at another size.
	scale(ctx context.Context, s raster.Samples, width, height int) (raster.Samples, error)

	// unpack decodes a JPEG or JPEG 2000 stream without touching its
	// colours.
	unpack(ctx context.Context, src source, width, height int) (raster.Samples, error)
}

// A source is an encoded file whose format was told by its content.
type source struct {
	data   []byte
	format format.Format
}

// A header is what is known of a picture before it is decoded.
type header struct {
	width, height int // of one page, before any rotation
	pages         int // at least 1
	bits          int // per sample
	alpha         bool
	bilevel       bool // black and white only
	profile       bool // has a colour profile
	resolution    resolution
}

func (h header) pixels() int64 { return int64(h.width) * int64(h.height) }

// A decoded is a picture in memory.
type decoded struct {
	img     image.Image
	profile []byte // ICC profile, or nil

	resolution resolution
}

// A resolution is pixels per millimetre, across and down. The zero resolution is unknown.
type resolution struct{ x, y float64 }

// perInch returns a resolution of dpi pixels per inch.
func perInch(dpi float64) resolution { return resolution{dpi / 25.4, dpi / 25.4} }

// meta says how much of the metadata is kept.
type meta int

const (
	keepAll     meta = iota // all but what has become wrong
	keepProfile             // the colour profile only
)

// A plan says how to encode a picture.
type plan struct {
	to   format.Format
	page int  // the first one to use
	all  bool // all pages or frames from there on

	// width and height are a box to fit into, 0 for no bound. enlarge makes
	// the picture as large as possible in it rather than leaving smaller
	// ones alone; it is for SVG.
	width, height int
	enlarge       bool
	fit           string // how to use the box: one of the values of fit, "" for inside

	// background is laid behind transparency, nil for white where the target
	// has no transparency and for nothing elsewhere.
	background *color.NRGBA

	meta   meta
	upside bool // leave the noted orientation alone

	quality   int     // 1 to 100, 0 for the default of the format
	dpi       float64 // 0 for that of the source; a drawing is drawn at it
	lossless  bool
	bilevel   bool   // the source is black and white only
	subsample string // of JPEG colours: "on", "off", "" for the codec's choice

	colours int     // of a palette, 0 for none
	dither  float64 // 0 to 1
	slack   float64 // how much a pixel of an animation may differ from the last frame to be left out
	tiff    string  // compression within TIFF: "deflate", "jpeg", "ccittfax4"
	small   bool    // spend more time to save bytes
}

// ownEncoders are the formats that need no encoder of the codec.
var ownEncoders = []format.Format{format.BMP, format.ICO}

// transcode is codec.transcode for every format of this package.
func (e *Engine) transcode(ctx context.Context, src source, p plan) ([]byte, error) {
	if decode := ownDecoder(src.format); decode != nil {
		m, err := decode(src.data)
		if err != nil {
			return nil, err
		}
		return e.encode(ctx, m, p)
	}
	switch p.to {
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
		return e.icon(ctx, b)
	}
	return e.codec.transcode(ctx, src, p)
}

// encode is codec.encode for every format of this package.
func (e *Engine) encode(ctx context.Context, m decoded, p plan) ([]byte, error) {
	switch p.to {
	case format.BMP, format.ICO:
		b, err := e.codec.encode(ctx, m, plan{to: format.PNG, meta: p.meta})
		if err != nil {
			return nil, err
		}
		return e.transcode(ctx, source{b, format.PNG}, p)
	}
	return e.codec.encode(ctx, m, p)
}

// stat reads a header and checks the limits. A codec may fail because of the very
// size that it tells.
func (e *Engine) stat(src source) (header, error) {
	stat := e.codec.stat
	if s := ownStat(src.format); s != nil {
		stat = s
	}
	h, err := stat(src)
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

// load returns the content of a job's input and its header.
func (e *Engine) load(job *fileops.Job) (source, header, error) {
	in := job.Input()
	data, err := in.ReadAll(e.opts.MaxBytes)
	if err != nil {
		return source{}, header{}, err
	}
	src := source{data, in.Format()}
	if got := format.Sniff(bytes.NewReader(data), int64(len(data))); got != src.format {
		return src, header{}, fileops.Fail(fileops.ErrFormatMismatch, nil, "the content of the file is not %s", src.format.Title())
	}
	h, err := e.stat(src)
	return src, h, err
}

// blame turns the failure of a codec into one that says whether the input or
// the engine is to blame. Codecs do not tell, so the input is decoded once more
// and on its own.
func (e *Engine) blame(ctx context.Context, src source, p plan, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var failure *fileops.Failure
	if errors.As(err, &failure) {
		return err
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "this variant of %s cannot be read", src.format.Title())
	}
	if ownDecoder(src.format) == nil {
		_, bad := e.codec.pixels(ctx, src, plan{page: p.page, width: 256, height: 256})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if bad == nil {
			return fileops.Fail(fileops.ErrEngine, err, "the picture could not be written as %s", p.to.Title())
		}
	}
	return fileops.Fail(fileops.ErrCorruptInput, err, "the %s is damaged or incomplete", src.format.Title())
}
