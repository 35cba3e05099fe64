package imageops

import (
	"context"
	"math"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/report"
)

// Inspect returns the action "inspect" for pictures: what their headers say.
func (e *Engine) Inspect() fileops.Action {
	spec := report.Spec(e.Name(), "image", "Describes a picture as JSON.", e.Reads())
	return fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
		_, h, err := e.load(job)
		if err != nil {
			return err
		}
		dpi := func(perMM float64) float64 { return math.Round(perMM*25.4*100) / 100 }
		r := report.New(job)
		r.Picture = &report.Picture{
			Width: h.width, Height: h.height, Pages: h.pages, Bits: h.bits, Alpha: h.alpha, CMYK: h.cmyk, Profile: h.profile,
			DPIX: dpi(h.resolution.x), DPIY: dpi(h.resolution.y),
		}
		return r.Write(job)
	})
}
