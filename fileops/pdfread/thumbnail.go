package pdfread

import (
	"context"
	"fmt"
	"image"
	"io"
	"math"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// Thumbnail returns the action "thumbnail": a picture of one page that fills a box,
// 256 × 256 pixels by default. The page is drawn at this size.
func (e *Engine) Thumbnail() fileops.Action {
	formats := []format.Format{format.JPG, format.PNG}
	if e.encoder != nil {
		formats = append(formats, e.encoder.Formats()...)
	}
	return fileops.Func(fileops.Spec{
		MaxBytes: pdfium.MaxFileSize,
		Name:     "thumbnail", Engine: "pdfium", Family: "pdf",
		Summary: "Makes a small preview of a page.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PDF}, Params: append(fileops.Thumbnail(formats...),
			fileops.Param{Name: "page", Type: fileops.Integer, Min: 1, Max: 99999, Default: 1, Doc: "Page to show."},
			fileops.Param{Name: "password", Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput, Doc: "Password that opens the document."},
		)}},
	}, e.thumbnail)
}

func (e *Engine) thumbnail(ctx context.Context, job *fileops.Job) error {
	dropped, err := withForm(func(form bool) error { return e.thumbnailWith(ctx, job, form) })
	if dropped && err == nil {
		warnForm(job)
	}
	return err
}

func (e *Engine) thumbnailWith(ctx context.Context, job *fileops.Job, form bool) error {
	to, number := format.Parse(job.Params.Get("convert_to")), job.Params.Int("page")
	return e.pool.Run(ctx, func(in *pdfium.Instance) error {
		doc, err := e.open(in, job)
		if err != nil {
			return err
		}
		if number > doc.Pages {
			return &fileops.ParamError{Param: "page", Reason: fmt.Sprintf("must be from 1 to %d", doc.Pages)}
		}
		if form {
			e.openForm(doc)
		}
		inTime := doc.In.Within(e.timeout, e.errPageTimeout(number))
		defer inTime()
		p := doc.Load(number - 1)
		if p == nil {
			if doc.In.Err != nil {
				return doc.In.Err
			}
			return fileops.Fail(fileops.ErrCorruptInput, nil, "page %d of the document is damaged", number)
		}
		defer p.Close()
		const unit = 72.0 // dots per inch at which a point is a pixel
		w, h := p.Pixels(unit)
		across, down := fileops.ThumbnailBox(job.Params)
		scale := min(float64(across)/float64(w), float64(down)/float64(h))
		w, h = side(w, scale, across), side(h, scale, down)
		return p.Draw(w, h, func(pix []byte) error {
			inTime()
			return job.Write(fileops.ResultName(job.Input(), to), func(out io.Writer) error {
				return e.encode(ctx, &image.RGBA{Pix: pix, Stride: 4 * w, Rect: image.Rect(0, 0, w, h)}, to, 80, scale*unit, out)
			})
		})
	})
}

// side returns a side of n points in pixels.
func side(n int, scale float64, most int) int {
	return max(1, min(most, int(math.Round(float64(n)*scale))))
}
