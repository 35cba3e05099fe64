package imageops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/colour"
	"github.com/filewright/filewright/internal/imagefile"
	"github.com/filewright/filewright/internal/pagelist"
)

// Convert returns the action "convert" for pictures.
//
// Its parameters, besides convert_to:
//
//   - quality: 1 to 100. Lossless formats ignore it; 100 is lossless for webp,
//     avif, jxl and jp2, as is lossless.
//   - max_bytes: the largest size of a result. The quality is lowered, and then the
//     dimensions; a picture that cannot be made so small fails with ErrParameter.
//   - crop: a box or a ratio; rotate and flip. They apply to the upright picture, in
//     this order, before it is scaled.
//   - width and height: a box in pixels.
//   - fit: how the picture fills the box. inside, the default, never enlarges a
//     raster picture unless enlarge is set. cover, contain and fill result in exactly
//     this size.
//   - background: a colour behind transparent parts.
//   - dpi: for svg, pixels per inch, where an inch is 96 units. width and height
//     take precedence.
//   - pages: for tiff, the pages to convert; frames: those of an animation.
//   - sizes: for icons, the sizes of their pictures.
//   - strip_metadata: removes EXIF, XMP and IPTC data, including the location of
//     a photo. Otherwise they are kept if the target supports them.
//
// A format converts to itself if one of these parameters changes the picture. A JPEG
// then keeps its quality by default.
func (e *Engine) Convert() fileops.Action {
	spec := fileops.Spec{
		MaxBytes: e.opts.MaxBytes,
		Name:     "convert", Engine: e.Name(), Family: "image",
		Summary: "Converts pictures to other formats, and changes them.",
	}
	for _, in := range e.reads {
		for _, group := range groupTargets(e.writes) {
			targets := slices.DeleteFunc(slices.Clone(group), func(f format.Format) bool { return f == in })
			if len(targets) > 0 {
				spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: []format.Format{in}, Params: e.convertParams(in, targets)})
			}
		}
		if slices.Contains(e.writes, in) {
			s := e.convertParams(in, []format.Format{in})
			spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: []format.Format{in}, Params: s, Changes: changes(in, s)})
		}
	}
	return fileops.Func(spec, e.convert)
}

// lossy lists the formats that have a quality, and lossless those of them that also
// store pixels unchanged.
var (
	lossy    = []format.Format{format.JPG, format.WebP, format.AVIF, format.HEIC, format.JXL, format.JP2}
	lossless = []format.Format{format.WebP, format.AVIF, format.JXL, format.JP2}
)

// groupTargets groups formats that take the same parameters.
func groupTargets(all []format.Format) [][]format.Format {
	var plain, exact, icons []format.Format
	for _, f := range all {
		switch {
		case f == format.ICO:
			icons = append(icons, f)
		case slices.Contains(lossless, f):
			exact = append(exact, f)
		default:
			plain = append(plain, f)
		}
	}
	return [][]format.Format{plain, exact, icons}
}

// changes returns the parameters that change a picture whose format is kept.
func changes(f format.Format, s fileops.Schema) (names []string) {
	for _, p := range s {
		switch {
		case !affects(p.Name, f):
		case p.Name == "strip_metadata": // the least change comes first
			names = append([]string{p.Name}, names...)
		default:
			names = append(names, p.Name)
		}
	}
	return names
}

// affects reports whether a parameter alone can change a picture that keeps format f.
func affects(param string, f format.Format) bool {
	switch param {
	case "convert_to", "fit", "enlarge", "dpi":
		return false
	case "quality", "lossless":
		return slices.Contains(lossy, f)
	case "background":
		return !opaque(plan{to: f})
	}
	return true
}

// changed reports whether a parameter other than one changes a picture of format f.
func changed(params fileops.Params, f format.Format, other string) bool {
	for name, v := range params.Args() {
		if name != other && v != false && v != 0.0 && affects(name, f) {
			return true
		}
	}
	return false
}

func (e *Engine) convertParams(in format.Format, targets []format.Format) fileops.Schema {
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
			Doc: "Largest width in pixels; the proportions are kept and pictures are not enlarged."},
		{Name: "height", Type: fileops.Integer, Min: 1, Max: 65535,
			Doc: "Largest height in pixels; the proportions are kept and pictures are not enlarged."},
		{Name: "strip_metadata", Type: fileops.Boolean, Default: false,
			Doc: "Removes metadata, such as the camera and the location of a photo."},
		{Name: "fit", Default: fitInside, Enum: []string{fitInside, fitCover, fitContain, fitFill}, Aliases: map[string]string{"exact": fitFill, "scale": fitFill, "crop": fitCover, "pad": fitContain, "max": fitInside},
			Doc: "How the picture fits width and height: at most this size (inside), or exactly this size by cropping (cover), padding (contain) or stretching (fill)."},
		colour.Param("background", "Colour behind transparent parts and in the padding, as #rrggbb or a CSS 2.1 name; white by default if the format has no transparency."),
		{Name: "rotate", Type: fileops.Integer, Default: 0, Enum: []string{"0", "90", "180", "270"}, Aliases: map[string]string{"-90": "270", "-180": "180", "-270": "90"},
			Doc: "Degrees to turn the picture clockwise, after crop and before width and height."},
		{Name: "flip", Enum: []string{flipHorizontal, flipVertical},
			Doc: "Mirrors the picture: left and right (horizontal) or top and bottom (vertical)."},
		{Name: "max_bytes", Type: fileops.Integer, Min: 100, Max: 1 << 30,
			Doc: "Largest size of a result in bytes; quality and dimensions are reduced until it fits."},
	}
	if in == format.SVG {
		s = append(s, fileops.Param{Name: "dpi", Type: fileops.Integer, Min: 10, Max: 2400,
			Doc: "Resolution of the result in pixels per inch; 96 by default, which is one pixel for each unit of the drawing."})
	} else {
		s = append(s, fileops.Param{Name: "crop", Pattern: cropPattern, Min: 3, Max: 60,
			Doc: "Part of the upright picture to keep: a box x,y,width,height in pixels, or a centred part with a ratio such as 16:9."},
			fileops.Param{Name: "enlarge", Type: fileops.Boolean, Default: false,
				Doc: "Enlarges smaller pictures to width and height."})
	}
	if _, ok := e.codec.(animator); ok {
		switch {
		case in == format.TIFF:
			s = append(s, fileops.Param{Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000, Scope: fileops.ScopeContent,
				Doc: "Pages to convert, such as 1-3,5,-1 (negative: from the end); all by default."})
		case e.animates(in):
			s = append(s, fileops.Param{Name: "frames", Pattern: pagelist.Pattern, Min: 1, Max: 1000, Scope: fileops.ScopeContent,
				Doc: "Frames of an animation to keep, such as 1-3,5,-1 (negative: from the end); a format without animation gets a result for each."})
		}
	}
	switch {
	case slices.Contains(targets, format.ICO):
		s = append(s, fileops.Param{Name: "sizes", Pattern: `[1-9][0-9]{0,2}(,[1-9][0-9]{0,2})*`, Min: 1, Max: 100,
			Doc: "Widths of the pictures in the icon, from 1 to 256, such as 16,32,48; by default those of 16, 32, 48, 64, 128 and 256 that the picture fills."})
	case slices.Contains(lossless, targets[0]):
		s = append(s, fileops.Param{Name: "lossless", Type: fileops.Boolean, Default: false,
			Doc: "Keeps every pixel as it is."})
	}
	return s
}

// newPlan returns the plan of a conversion.
func newPlan(params fileops.Params, src source, h header) (plan, error) {
	p := plan{
		to:    format.Format(params.Get("convert_to")),
		width: params.Int("width"), height: params.Int("height"),
		quality: params.Int("quality"), lossless: params.Bool("lossless"),
		enlarge: src.format == format.SVG || params.Bool("enlarge"),
		bilevel: h.bilevel,
		fit:     params.Get("fit"), background: colour.Parse(params.Get("background")),
		dpi:  params.Float("dpi"),
		turn: params.Int("rotate"), flip: params.Get("flip"),
	}
	var err error
	if p.crop, err = parseCrop(params.Get("crop")); err != nil {
		return p, err
	}
	if list := params.Get("sizes"); list != "" {
		for s := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > iconSizes[0] {
				return p, &fileops.ParamError{Param: "sizes", Reason: fmt.Sprintf("must be numbers from 1 to %d", iconSizes[0])}
			}
			if !slices.Contains(p.sizes, n) {
				p.sizes = append(p.sizes, n)
			}
		}
		slices.SortFunc(p.sizes, func(a, b int) int { return b - a })
	}
	p.bilevel = p.bilevel && p.width == 0 && p.height == 0 // scaling creates shades of gray
	switch {
	case p.quality > 0 || p.lossless:
	case src.format == format.GIF && p.to == format.WebP:
		// Lossy encoding blurs the sharp edges of palette pictures and saves little.
		p.lossless = true
	case src.format == format.WebP && p.to == format.WebP:
		p.lossless = losslessWebP(src.data)
	case src.format == format.JPG && p.to == format.JPG:
		p.quality = min(95, max(50, jpegInfo(src.data).Quality))
		if jpegInfo(src.data).Quality == 0 {
			p.quality = 0
		}
	}
	if params.Bool("strip_metadata") {
		p.meta = keepProfile
	}
	return p, nil
}

func (e *Engine) convert(ctx context.Context, job *fileops.Job) error {
	src, h, err := e.load(ctx, job)
	if err != nil {
		return err
	}
	p, err := newPlan(job.Params, src, h)
	if err != nil {
		return err
	}
	if err := e.sizeLimit(h, p); err != nil {
		return err
	}
	most := job.Params.Int("max_bytes")
	switch {
	case p.to != src.format:
	case len(src.data) <= most && !changed(job.Params, src.format, "max_bytes"):
		return e.keep(ctx, job, src)
	case most == 0 && p.meta == keepProfile && editable(src.format) && !changed(job.Params, src.format, "strip_metadata"):
		err := e.rewrite(ctx, job, src, h, everything) // without a loss of quality
		if !errors.Is(err, imagefile.ErrMetadata) {
			return err
		}
	case src.format == format.JPG && onlyTurns(job.Params):
		if done, err := e.turned(ctx, job, src, h, p); done || err != nil {
			return err
		}
	}
	job.Progress(0.05)
	results, total, err := e.results(job.Params, src, h, p)
	if err != nil {
		return err
	}
	if err := e.warn(ctx, job, src, h, results[0].plan); err != nil {
		return e.blame(ctx, src, p, err)
	}
	for i, r := range results {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		data, err := e.encoded(ctx, job, src, h, r.plan)
		if err != nil {
			return err
		}
		if err := job.WriteBytes(fileops.PageName(job.Input(), r.to, r.number, total), data); err != nil {
			return err
		}
		job.Progress(float64(i+1) / float64(len(results)))
	}
	return nil
}

// encoded returns one result of convert. It warns if metadata or pixels were left out to fit into max_bytes.
func (e *Engine) encoded(ctx context.Context, job *fileops.Job, src source, h header, p plan) ([]byte, error) {
	if p.page > 0 {
		if err := e.pageLimit(src, p.page); err != nil {
			return nil, err
		}
	}
	if err := targetLimit(p, h); err != nil {
		return nil, err
	}
	most := job.Params.Int("max_bytes")
	b, err := e.within(ctx, src, h, p, most)
	if err != nil {
		return nil, e.blame(ctx, src, p, err)
	}
	if b.metadata && hasMetadata(src) {
		job.Warn(fileops.WarnMetadataDropped, "Metadata was left out, to fit into %d bytes.", most)
	}
	if b.smaller {
		job.Warn(fileops.WarnResolutionReduced, "The picture has fewer pixels, to fit into %d bytes.", most)
	}
	return b.data, nil
}

// onlyTurns reports whether parameters turn or mirror a JPEG file and change nothing else.
func onlyTurns(params fileops.Params) bool {
	for name, v := range params.Args() {
		if name != "rotate" && name != "flip" && v != false && v != 0.0 && affects(name, format.JPG) {
			return false
		}
	}
	return true
}

// hasMetadata reports whether a file may have EXIF, XMP or IPTC data.
func hasMetadata(src source) bool {
	for _, mark := range []string{"Exif", "EXIF", "eXIf", "http://ns.adobe.com/xap/", "XML:com.adobe.xmp", "XMP ", "Photoshop 3.0", "II*\x00", "MM\x00*"} {
		if bytes.Contains(src.data, []byte(mark)) {
			return true
		}
	}
	return false
}

// A result is the plan of one result, and the number of its page or frame, from 1.
type result struct {
	plan
	number int
}

// results returns the results of a conversion by p. total is the number of pages or
// frames to count them by, or 1 if there is one result.
func (e *Engine) results(params fileops.Params, src source, h header, p plan) (out []result, total int, err error) {
	name := "pages"
	if src.format != format.TIFF {
		name = "frames"
	}
	full := fullPages(src, h.pages)
	chosen, err := pagelist.Parse(params.Get(name), len(full))
	var bad *fileops.ParamError
	if errors.As(err, &bad) {
		e := *bad
		e.Param = name
		return nil, 0, &e
	}
	if err != nil {
		return nil, 0, err
	}
	listed := params.Get(name) != ""
	together := e.animates(src.format) && (e.animates(p.to) || p.to == format.TIFF) ||
		src.format == format.TIFF && p.to == format.TIFF && e.alike(src, h)
	switch {
	case h.pages > 1 && together:
		p.all = true
		if listed {
			p.frames = chosen
		}
		return []result{{p, 1}}, 1, nil
	case src.format != format.TIFF && !listed:
		return []result{{p, 1}}, 1, nil
	}
	for _, n := range chosen {
		q := p
		if q.page = full[n]; src.format == format.PNG && h.pages > 1 {
			q.page, q.all, q.frames = 0, true, []int{n}
		}
		out = append(out, result{q, n + 1})
	}
	if total = len(full); len(out) == 1 {
		out[0].number, total = 1, 1
	}
	return out, total, nil
}

// alike reports whether all pages of a TIFF have the same size and depth, so that they
// can be processed together.
func (e *Engine) alike(src source, first header) bool {
	c, ok := e.codec.(pager)
	if !ok || first.pages < 2 {
		return false
	}
	for i := 1; i < first.pages; i++ {
		h, err := c.statPage(src, i)
		if err != nil || h.width != first.width || h.height != first.height || h.bits != first.bits ||
			h.alpha != first.alpha || h.cmyk != first.cmyk || h.profile != first.profile {
			return false
		}
	}
	return true
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
	h.width, h.height = p.shaped(h.width, h.height)
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
