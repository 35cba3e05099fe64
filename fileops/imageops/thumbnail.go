package imageops

import (
	"context"
	"fmt"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// Thumbnail returns the action "thumbnail" for pictures: a small picture that fits into
// a box, 256 × 256 pixels by default, in upright orientation, with the colour profile and
// without other metadata. Pictures are not enlarged, except SVG. page selects a page of a
// TIFF or a frame of an animation, the first by default. It is empty if no picture
// format for the web can be written.
//
// A JPEG is decoded at an eighth, a quarter or half of its size where that is enough.
func (e *Engine) Thumbnail() fileops.Action {
	spec := fileops.Spec{Name: "thumbnail", Engine: e.Name(), Family: "image", Summary: "Makes a small preview of a picture."}
	if params := fileops.Thumbnail(e.writes...); params != nil {
		page := fileops.Param{
			Name: "page", Type: fileops.Integer, Min: 1, Max: 99999, Default: 1,
			Doc: "Page or frame to show.",
		}
		for _, in := range e.reads {
			s := params
			if _, ok := e.codec.(animator); ok && (in == format.TIFF || e.animates(in)) {
				s = append(s[:len(s):len(s)], page)
			}
			spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: []format.Format{in}, Params: s})
		}
	}
	return fileops.Func(spec, e.thumbnail)
}

func (e *Engine) thumbnail(ctx context.Context, job *fileops.Job) error {
	width, height := fileops.ThumbnailBox(job.Params)
	src, h, err := e.loadFor(ctx, job, width, height)
	if err != nil {
		return err
	}
	p := plan{
		to: format.Format(job.Params.Get("convert_to")), meta: keepProfile, quality: 80,
		enlarge: src.format == format.SVG, width: width, height: height,
	}
	if n := job.Params.Int("page"); n > 1 {
		if n > h.pages {
			return &fileops.ParamError{Param: "page", Reason: fmt.Sprintf("must be from 1 to %d", h.pages)}
		}
		if p.page = n - 1; src.format == format.PNG {
			p.page, p.all, p.frames = 0, true, []int{n - 1}
		} else if err := e.pageLimit(src, p.page); err != nil {
			return err
		}
	}
	b, err := e.transcode(ctx, src, p)
	if err != nil {
		return e.blame(ctx, src, p, err)
	}
	out, err := e.stat(source{b, p.to})
	if err != nil || out.width > p.width || out.height > p.height {
		return fileops.Fail(fileops.ErrEngine, fmt.Errorf("%d × %d pixels: %w", out.width, out.height, err), "the preview could not be made")
	}
	return job.WriteBytes(fileops.ResultName(job.Input(), p.to), b)
}
