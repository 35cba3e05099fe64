package imageops

import (
	"context"
	"fmt"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// fine is the quality of formats with losses for results that should look like their
// input. Lossless files stay lossless.
var fine = map[format.Format]int{
	format.JPG: 92, format.WebP: 92, format.AVIF: 80, format.HEIC: 80, format.JXL: 95, format.JP2: 80,
}

// Rotate returns the action "rotate" for pictures. The result has the format, frames,
// colour profile and metadata of the input. All frames of an animation and all pages of
// a TIFF are turned; pages of different sizes become separate files. The orientation of
// EXIF is applied first. Formats with losses are encoded again at high quality, except JPEG
// files that jpegtran can turn without losses.
func (e *Engine) Rotate() fileops.Action {
	return fileops.Func(fileops.Spec{
		MaxBytes: e.opts.MaxBytes,
		Name:     "rotate", Engine: e.Name(), Family: "image",
		Summary: "Turns pictures with all their frames.",
		Accepts: e.keeping(fileops.Schema{fileops.Angle()}),
	}, e.rotate)
}

// keeping returns what an action accepts whose results have the format of their input.
// It is empty if no format is both read and written.
func (e *Engine) keeping(s fileops.Schema) []fileops.Accept {
	formats := slices.DeleteFunc(e.Reads(), func(f format.Format) bool { return !slices.Contains(e.writes, f) })
	if len(formats) == 0 {
		return nil
	}
	return []fileops.Accept{{Formats: formats, Params: s}}
}

func (e *Engine) rotate(ctx context.Context, job *fileops.Job) error {
	src, h, err := e.load(ctx, job)
	if err != nil {
		return err
	}
	p := same(src, h)
	p.turn = job.Params.Int("angle")
	if done, err := e.turned(ctx, job, src, h, p); done || err != nil {
		return err
	}
	return e.produce(ctx, job, src, h, p)
}

// same returns a plan that keeps the format of a picture, at high quality.
func same(src source, h header) plan {
	p := plan{to: src.format, quality: fine[src.format], bilevel: h.bilevel}
	switch src.format {
	case format.WebP:
		p.lossless = losslessWebP(src.data)
	case format.JPG:
		p.quality = max(p.quality, min(97, jpegInfo(src.data).Quality))
	}
	return p
}

// produce encodes a picture by p, whose result must have all of its pixels.
func (e *Engine) produce(ctx context.Context, job *fileops.Job, src source, h header, p plan) error {
	job.Progress(0.05)
	results, total, err := e.results(fileops.Params{}, src, h, p)
	if err != nil {
		return err
	}
	if err := e.warn(ctx, job, src, h, results[0].plan); err != nil {
		return e.blame(ctx, src, p, err)
	}
	for i, r := range results {
		if r.page > 0 {
			if err := e.pageLimit(src, r.page); err != nil {
				return err
			}
		}
		b, err := e.transcode(ctx, src, r.plan)
		if err != nil {
			return e.blame(ctx, src, p, err)
		}
		if err := e.checkSize(source{b, p.to}, h, r.page); err != nil {
			return err
		}
		if err := job.WriteBytes(fileops.PageName(job.Input(), p.to, r.number, total), b); err != nil {
			return err
		}
		job.Progress(float64(i+1) / float64(len(results)))
	}
	return nil
}

// checkSize returns an error if a result does not have the sides and frames of its input.
func (e *Engine) checkSize(out source, want header, page int) error {
	if page > 0 || out.format == format.ICO { // pages of other sizes; icons are smaller
		return nil
	}
	h, err := e.stat(out)
	if err != nil {
		return fileops.Fail(fileops.ErrEngine, err, "the result cannot be read")
	}
	if min(h.width, h.height) != min(want.width, want.height) || max(h.width, h.height) != max(want.width, want.height) {
		return fileops.Fail(fileops.ErrEngine, fmt.Errorf("%d × %d pixels became %d × %d", want.width, want.height, h.width, h.height), "the result has another size")
	}
	return nil
}
