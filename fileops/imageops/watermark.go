package imageops

import (
	"context"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// A mark is a text to draw over a picture.
type mark struct {
	text     string
	opacity  float64 // up to 1
	position string
	scale    float64 // width of the text as a part of that of the picture
}

// A marker is a codec that draws marks.
type marker interface{ marks() bool }

// Watermark returns the action "watermark" for pictures: it draws "text" over every frame
// and page, white with a dark shadow. "scale" is the width of the text as a part of the
// width of the picture. Text that would be higher than the picture is drawn smaller. The
// result has the format, colour profile and metadata of the input; formats with losses
// are encoded again at high quality. It needs libvips with Pango.
func (e *Engine) Watermark() fileops.Action {
	spec := fileops.Spec{MaxBytes: e.opts.MaxBytes, Name: "watermark", Engine: e.Name(), Family: "image", Summary: "Draws a text over pictures."}
	if m, ok := e.codec.(marker); ok && m.marks() {
		spec.Accepts = e.keeping(fileops.Schema{
			{Name: "text", Required: true, Min: 1, Max: 1000, Doc: "Text of the watermark; a line break starts a new line."},
			{Name: "opacity", Type: fileops.Number, Default: 0.4, Min: 0.01, Max: 1, Doc: "How much the watermark covers, from 0.01 to 1 (opaque)."},
			{Name: "position", Default: "center", Enum: []string{
				"center", "diagonal", "tile", "top-left", "top-center", "top-right", "center-left", "center-right", "bottom-left", "bottom-center", "bottom-right",
			}, Aliases: map[string]string{"top": "top-center", "bottom": "bottom-center", "left": "center-left", "right": "center-right", "center-center": "center"},
				Doc: "Place of the watermark: at an edge, a corner or in the middle, along the diagonal, or repeated over the picture."},
			{Name: "scale", Type: fileops.Number, Min: 0.02, Max: 1, Doc: "Width of the watermark as a part of the picture's; by default 0.6 for center and diagonal, else 0.25."},
		})
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		src, h, err := e.load(job)
		if err != nil {
			return err
		}
		p := same(src, h)
		p.bilevel = false // the text has shades of gray
		p.mark = &mark{text: strings.TrimSpace(job.Params.Get("text")), opacity: job.Params.Float("opacity"), position: job.Params.Get("position"), scale: job.Params.Float("scale")}
		if p.mark.text == "" {
			return &fileops.ParamError{Param: "text", Reason: "is empty"}
		}
		if p.mark.scale == 0 {
			p.mark.scale = 0.25
			if slices.Contains([]string{"center", "diagonal"}, p.mark.position) {
				p.mark.scale = 0.6
			}
		}
		return e.produce(ctx, job, src, h, p)
	})
}

// place returns the left and top of a text of w × h pixels in a picture.
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
