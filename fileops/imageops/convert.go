package imageops

import (
	"context"
	"math"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/colour"
)

// Convert returns the action "convert" for pictures.
//
// Its parameters, besides convert_to:
//
//   - quality: 1 to 100. Lossless formats ignore it; 100 is lossless for webp,
//     avif and jxl.
//   - width and height: a box in pixels.
//   - fit: how the picture fills the box. inside, the default, never enlarges a
//     raster picture. cover, contain and fill result in exactly this size.
//   - background: a colour behind transparent parts.
//   - dpi: for svg, pixels per inch, where an inch is 96 units. width and height
//     take precedence.
//   - strip_metadata: removes EXIF, XMP and IPTC data, including the location of
//     a photo. Otherwise they are kept if the target supports them.
func (e *Engine) Convert() fileops.Action {
	spec := fileops.Spec{
		Name: "convert", Engine: e.Name(), Family: "image",
		Summary: "Converts pictures to other formats.",
	}
	for _, in := range e.reads {
		targets := slices.DeleteFunc(e.Formats(), func(f format.Format) bool { return f == in })
		if len(targets) == 0 {
			continue
		}
		spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: []format.Format{in}, Params: convertParams(in, targets)})
	}
	return fileops.Func(spec, e.convert)
}

func convertParams(in format.Format, targets []format.Format) fileops.Schema {
	to := fileops.Enum("convert_to", "Format of the result.")
	to.Aliases = make(map[string]string)
	for _, f := range targets {
		to.Enum = append(to.Enum, string(f))
		for _, a := range f.Aliases() {
			to.Aliases[string(a)] = string(f)
		}
	}
	s := fileops.Schema{
		to,
		{Name: "quality", Type: fileops.Integer, Min: 1, Max: 100,
			Doc: "Quality for lossy formats, from 1 to 100 (best)."},
		{Name: "width", Type: fileops.Integer, Min: 1, Max: 65535,
			Doc: "Largest width in pixels; the proportions are kept and pictures are never enlarged."},
		{Name: "height", Type: fileops.Integer, Min: 1, Max: 65535,
			Doc: "Largest height in pixels; the proportions are kept and pictures are never enlarged."},
		{Name: "strip_metadata", Type: fileops.Boolean, Default: false,
			Doc: "Removes metadata, such as the camera and the location of a photo."},
		{Name: "fit", Default: fitInside, Enum: []string{fitInside, fitCover, fitContain, fitFill}, Aliases: map[string]string{"exact": fitFill, "crop": fitCover, "pad": fitContain},
			Doc: "How the picture fits width and height: at most this size (inside), or exactly this size by cropping (cover), padding (contain) or stretching (fill)."},
		colour.Param("background", "Colour behind transparent parts and in the padding, as #rrggbb or a CSS 2.1 name; white by default if the format has no transparency."),
	}
	if in == format.SVG {
		s = append(s, fileops.Param{Name: "dpi", Type: fileops.Integer, Min: 10, Max: 2400,
			Doc: "Resolution of the result in pixels per inch; 96 by default, which is one pixel for each unit of the drawing."})
	}
	return s
}

func (e *Engine) convert(ctx context.Context, job *fileops.Job) error {
	src, h, err := e.load(job)
	if err != nil {
		return err
	}
	p := plan{
		to:    format.Format(job.Params.Get("convert_to")),
		width: job.Params.Int("width"), height: job.Params.Int("height"),
		quality: job.Params.Int("quality"),
		enlarge: src.format == format.SVG,
		bilevel: h.bilevel,
		fit:     job.Params.Get("fit"), background: colour.Parse(job.Params.Get("background")),
		dpi: job.Params.Float("dpi"),
	}
	p.bilevel = p.bilevel && p.width == 0 && p.height == 0 // scaling creates shades of gray
	// Lossy encoding blurs the sharp edges of palette pictures and saves little.
	p.lossless = src.format == format.GIF && p.to == format.WebP && p.quality == 0
	if job.Params.Bool("strip_metadata") {
		p.meta = keepProfile
	}
	if err := e.sizeLimit(h, p); err != nil {
		return err
	}
	job.Progress(0.05)
	pages := []int{0}
	switch {
	case src.format == format.TIFF:
		pages = fullPages(src.data, h.pages)
	case e.animates(src.format) && (e.animates(p.to) || p.to == format.TIFF) && h.pages > 1:
		p.all = true
	}
	if err := e.warn(ctx, job, src, h, p); err != nil {
		return e.blame(ctx, src, p, err)
	}
	for i, page := range pages {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.page = page
		if page > 0 {
			if err := e.pageLimit(src, page); err != nil {
				return err
			}
		}
		if err := targetLimit(p, h); err != nil {
			return err
		}
		b, err := e.transcode(ctx, src, p)
		if err != nil {
			return e.blame(ctx, src, p, err)
		}
		if err := job.WriteBytes(fileops.PageName(job.Input(), p.to, i+1, len(pages)), b); err != nil {
			return err
		}
		job.Progress(float64(i+1) / float64(len(pages)))
	}
	return nil
}

// A pager is a codec that can return the size of pages other than the first.
type pager interface {
	statPage(src source, page int) (header, error)
}

// pageLimit checks the size of a page of a TIFF. Pages can have different sizes.
func (e *Engine) pageLimit(src source, page int) error {
	c, ok := e.codec.(pager)
	if !ok {
		return nil
	}
	h, err := c.statPage(src, page)
	if err != nil {
		return fileops.Fail(fileops.ErrCorruptInput, err, "page %d of the TIFF is damaged", page+1)
	}
	if h.pixels() > e.opts.MaxPixels {
		return fileops.Fail(fileops.ErrLimit, nil, "page %d has %d × %d pixels, more than the limit of %s",
			page+1, h.width, h.height, millions(e.opts.MaxPixels))
	}
	return nil
}

// outSize returns the size of the result in pixels.
func outSize(h header, p plan) (w, height float64) {
	if p.exact() {
		return float64(p.width), float64(p.height)
	}
	s := fit(h.width, h.height, p)
	if p.enlarge && p.width == 0 && p.height == 0 && p.dpi > 0 {
		s = p.dpi / 96
	}
	return float64(h.width) * s, float64(h.height) * s
}

// sizeLimit checks the size of a result that may be larger than its input.
func (e *Engine) sizeLimit(h header, p plan) error {
	w, ht := outSize(h, p)
	if n := w * ht; n > float64(e.opts.MaxPixels) || n*float64(h.pages) > float64(e.opts.MaxTotalPixels) {
		return fileops.Fail(fileops.ErrLimit, nil, "the result would have more pixels than the limit of %s", millions(e.opts.MaxPixels))
	}
	return nil
}

// largest is the maximum width or height of a format. For AVIF and HEIC it is the
// limit of the encoders, not of the formats.
var largest = map[format.Format]int{
	format.JPG: 65535, format.WebP: 16383, format.GIF: 65535, format.AVIF: 16384, format.HEIC: 16384,
}

// targetLimit returns an error if the encoder would reject the size of the result.
func targetLimit(p plan, h header) error {
	limit, ok := largest[p.to]
	if !ok {
		return nil
	}
	if w, ht := outSize(h, p); max(w, ht) > float64(limit) {
		return fileops.Fail(fileops.ErrLimit, nil,
			"a %s picture can be at most %d pixels wide or high and this one has %d × %d; set width or height to make it smaller",
			p.to.Title(), limit, h.width, h.height)
	}
	return nil
}

// fit returns the scale factor that fits a picture into the box of a plan.
func fit(width, height int, t plan) float64 {
	s := math.Inf(1)
	if t.width > 0 {
		s = min(s, float64(t.width)/float64(width))
	}
	if t.height > 0 {
		s = min(s, float64(t.height)/float64(height))
	}
	if math.IsInf(s, 1) || s > 1 && !t.enlarge {
		return 1
	}
	return s
}
