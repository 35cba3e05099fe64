package mediaops

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// Rotate returns the action "rotate" for video. The result has the format, tracks, tags
// and subtitles of the input. In mp4, m4v, mov and 3gp nothing is encoded: the file says
// by how much players turn the picture (ISO/IEC 14496-12, 8.3.2). In other formats, and
// if that is not possible, the picture is encoded at high quality.
func (e *Engine) Rotate() fileops.Action {
	spec := fileops.Spec{
		Name: "rotate", Engine: e.name(), Family: "media",
		Summary: "Turns the picture of videos.",
	}
	if formats := e.rewritten(func(t target) bool { return t.kind == video }); len(formats) > 0 {
		spec.Accepts = []fileops.Accept{{Formats: formats, Params: fileops.Schema{fileops.Angle()}}}
	}
	return fileops.Func(spec, e.rotate)
}

func (e *Engine) rotate(ctx context.Context, job *fileops.Job) error {
	e = e.within(job)
	in := job.Input()
	t, m, err := e.own(ctx, job)
	if err != nil {
		return err
	}
	v, err := m.video()
	if err != nil {
		return err
	}
	angle := job.Params.Int("angle")
	return job.WriteFile(in.Name(), func(path string) error {
		r := request{time: -1, volume: -1}
		if t.rotates && t.mayCopy(v) {
			r.mark, r.marked = (v.clockwise()+angle)%360, true
			done, err := e.markRotation(ctx, job, m, t, r, path)
			if done || err != nil {
				return err
			}
		}
		r.mark, r.marked, r.turn, r.crf = 0, false, angle, t.fine()
		return e.transcode(ctx, job, m, t, r, path)
	})
}

// markRotation copies all streams and marks the picture as turned by r.mark. done reports
// whether that was possible.
func (e *Engine) markRotation(ctx context.Context, job *fileops.Job, m *media, t target, r request, path string) (done bool, err error) {
	p := plan{copies: true}
	o := e.outcome(m, t, r, p)
	o.to = job.Input().Format()
	err = e.run(ctx, job, pass{
		out: func() node { return e.movie(m, t, r, p, path, e.maxOutput) }, path: path, limit: e.maxOutput,
		expected: m.duration, declared: r.declared(m, o.kept), to: 1,
	})
	if ctx.Err() != nil || errors.Is(err, fileops.ErrLimit) {
		return false, err
	}
	if errors.Is(err, errFull) {
		return false, e.tooLarge()
	}
	if err == nil {
		var res *media
		if res, err = e.look(ctx, job, path, e.sources[o.to]); err == nil {
			vs := res.videos()
			v := m.videos()[0]
			if len(vs) == 1 && vs[0].clockwise() == r.mark && vs[0].Width == v.Width && vs[0].Height == v.Height && len(res.audios()) == len(m.audios()) {
				o.warn(job, m)
				return true, nil
			}
			err = errors.New("the result is not marked as turned")
		}
	}
	job.Log.Debug("rotating by encoding", "err", err.Error())
	return false, nil
}

// clockwise returns by how many degrees players turn the picture of s, from 0 to 359.
func (s stream) clockwise() int {
	for _, d := range s.SideData {
		if d.Rotation != 0 {
			return ((-int(math.Round(d.Rotation)))%360 + 360) % 360
		}
	}
	return 0
}

// rotationMark adds the options that mark the copied video as turned by degrees
// clockwise: to the input from ffmpeg 6 on, before that to the output. Both count to the
// left.
func (e *Engine) rotationMark(in, out opts, index, degrees int) {
	major, _, _ := strings.Cut(e.ffmpeg.Version, ".")
	if n, err := strconv.Atoi(major); err != nil || n >= 6 {
		in[fmt.Sprintf("display_rotation:%d", index)] = (360 - degrees) % 360
		return
	}
	out["metadata:s:v:0"] = fmt.Sprintf("rotate=%d", (360-degrees)%360)
}
