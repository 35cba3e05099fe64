package imageops

import (
	"context"
	"math"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/report"
)

// Inspect returns the action "inspect" for pictures: what their headers say.
func (e *Engine) Inspect() fileops.Action {
	spec := report.Spec(e.Name(), "image", "Describes a picture as JSON.", e.Reads())
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		r := report.New(job)
		if job.Input().Format() == format.RAW {
			if err := e.inspectRaw(ctx, job, r); err != nil {
				return err
			}
			return r.Write(job)
		}
		_, h, err := e.load(ctx, job)
		if err != nil {
			return err
		}
		dpi := func(perMM float64) float64 { return math.Round(perMM*25.4*100) / 100 }
		r.Picture = &report.Picture{
			Width: h.width, Height: h.height, Pages: h.pages, Bits: h.bits, Alpha: h.alpha, CMYK: h.cmyk, Profile: h.profile,
			DPIX: dpi(h.resolution.x), DPIY: dpi(h.resolution.y),
		}
		return r.Write(job)
	})
}
