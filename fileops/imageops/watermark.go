package imageops

import (
	"context"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A mark is a text or a picture to draw over a picture.
type mark struct {
	text     string
	picture  source  // drawn instead of text if it has data
	opacity  float64 // up to 1
	position string
	scale    float64 // width of the mark as a part of that of the picture
}

// A marker is a codec that draws marks.
type marker interface {
	marksText() bool // it can draw text, not only pictures
}

// Watermark returns the action "watermark" for pictures: it draws "text", white with a
// dark shadow, or the picture "image_key" over every frame and page. "scale" is the width
// of the mark as a part of the width of the picture. A mark that would be higher than the
// picture is drawn smaller. The result has the format, colour profile and metadata of the
// input; formats with losses are encoded again at high quality. It needs libvips, and
// Pango for text.
func (e *Engine) Watermark() fileops.Action {
	spec := fileops.Spec{MaxBytes: e.opts.MaxBytes, Name: "watermark", Engine: e.Name(), Family: "image", Summary: "Draws a text or a picture over pictures."}
	if m, ok := e.codec.(marker); ok {
		params := fileops.Watermark(m.marksText(), e.Reads()...)
		spec.Accepts = e.keeping(params)
		for i := range spec.Accepts {
			spec.Accepts[i].Changes = fileops.WatermarkMarks(params)
		}
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		src, h, err := e.load(ctx, job)
		if err != nil {
			return err
		}
		p := same(src, h)
		p.bilevel = false // the mark has shades of gray
		p.mark = &mark{text: strings.TrimSpace(job.Params.Get("text")), opacity: job.Params.Float("opacity"), position: job.Params.Get("position"), scale: fileops.WatermarkScale(job.Params)}
		if f := job.Extra["image_key"]; f != nil {
			if p.mark.picture, err = e.stamp(ctx, f); err != nil {
				return err
			}
		} else if p.mark.text == "" {
			return &fileops.ParamError{Param: "text", Reason: "is empty"}
		}
		return e.produce(ctx, job, src, h, p)
	})
}

// stamp returns a picture to draw, in a format that the codec reads. Of an animation it
// is the first frame.
func (e *Engine) stamp(ctx context.Context, f *fileops.File) (source, error) {
	bad := func(err error) (source, error) {
		if ctx.Err() != nil {
			return source{}, context.Cause(ctx)
		}
		return source{}, &fileops.Failure{Kind: fileops.ErrParameter, Message: `parameter "image_key": ` + fileops.Message(err), Err: err}
	}
	data, err := f.ReadAll(e.opts.MaxBytes)
	if err != nil {
		return bad(err)
	}
	src := e.unwrap(source{data, f.Format()})
	if _, err := e.stat(src); err != nil {
		return bad(err)
	}
	if ownDecoder(src.format) != nil {
		if data, err = e.transcode(ctx, src, plan{to: format.PNG}); err != nil {
			return bad(fileops.Fail(fileops.ErrCorruptInput, err, "the picture is damaged and cannot be read"))
		}
		src = source{data, format.PNG}
	}
	if err := e.unreadable(ctx, src); err != nil {
		return bad(fileops.Fail(fileops.ErrCorruptInput, err, "the picture is damaged and cannot be read"))
	}
	return src, nil
}

// place returns the left and top of a mark of w × h pixels in a picture.
func (m *mark) place(w, h, width, height int) (x, y int) {
	gap := min(width, height) / 30
	x, y = (width-w)/2, (height-h)/2
	down, across, _ := strings.Cut(m.position, "-")
	switch down {
	case "top":
		y = gap
	case "bottom":
		y = height - h - gap
	}
	switch across {
	case "left":
		x = gap
	case "right":
		x = width - w - gap
	}
	return max(0, min(x, width-w)), max(0, min(y, height-h))
}
