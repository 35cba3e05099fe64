package mediaops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// maxAnimation is the maximum duration of an animated picture in seconds. The encoders
// keep much of it in memory.
const maxAnimation = 300

// Convert returns the action "convert" for audio and video.
func (e *Engine) Convert() fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "convert", Engine: e.name(), Family: "media",
		Summary: "Converts audio and video to other formats.",
		Accepts: e.conversions(),
	}, e.convert)
}

// conversions lists the targets of every source, grouped by parameters. A format is also
// its own target, with a parameter that changes the file.
func (e *Engine) conversions() []fileops.Accept {
	var all []fileops.Accept
	known := make(map[string]int) // indexes in all, by parameters
	for _, from := range slices.Sorted(maps.Keys(e.sources)) {
		var own []fileops.Accept
		to := make(map[string][]string) // targets by parameters
		params := make(map[string]fileops.Schema)
		for _, f := range slices.Sorted(maps.Keys(e.targets)) {
			if !sensible(from, f, e.targets[f]) {
				continue
			}
			s, changes := e.parameters(from, f)
			if f == from {
				own = append(own, fileops.Accept{Formats: []format.Format{from}, Params: append(fileops.Schema{convertTo(string(f))}, s...), Changes: changes})
				continue
			}
			key := fmt.Sprint(s)
			to[key], params[key] = append(to[key], string(f)), s
		}
		for _, key := range slices.SortedFunc(maps.Keys(to), func(a, b string) int { return cmp.Compare(to[a][0], to[b][0]) }) {
			both := fmt.Sprint(to[key]) + key
			if i, ok := known[both]; ok {
				all[i].Formats = append(all[i].Formats, from)
				continue
			}
			known[both] = len(all)
			all = append(all, fileops.Accept{Formats: []format.Format{from}, Params: append(fileops.Schema{convertTo(to[key]...)}, params[key]...)})
		}
		all = append(all, own...)
	}
	return all
}

func convertTo(formats ...string) fileops.Param {
	p := fileops.Enum("convert_to", "Format of the result.", formats...)
	p.Aliases = aliases(formats)
	return p
}

// sensible reports whether a conversion is useful, judged by the formats alone.
func sensible(from, to format.Format, t target) bool {
	switch from.Family() {
	case format.Audio:
		return t.kind == audio
	case format.Image: // gif; another engine handles the other picture formats
		return to == format.MP4 || to == format.WebM || to == format.MOV || to == format.MKV
	}
	return true
}

func aliases(formats []string) map[string]string {
	m := make(map[string]string)
	for _, f := range formats {
		for _, a := range format.Format(f).Aliases() {
			m[string(a)] = f
		}
	}
	return m
}

// window returns the options that make ffmpeg read only the requested part.
func (r request) window() opts {
	o := opts{}
	if r.start > 0 {
		o["ss"] = seconds(r.start)
	}
	if r.duration > 0 {
		o["t"] = seconds(r.duration)
	}
	return o
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 6, 64) }

// length returns the duration of the result for a source of total seconds, or 0 if it is
// unknown.
func (r request) length(total float64) float64 {
	if total == 0 {
		return r.duration
	}
	left := max(total-r.start, 0)
	if r.duration > 0 {
		return min(left, r.duration)
	}
	return left
}

// declared returns the seconds that the result has by a reliable record in m, or 0.
func (r request) declared(m *media, kept []stream) float64 {
	total := m.declared(kept)
	if total == 0 {
		return 0
	}
	return r.length(total)
}

func (e *Engine) convert(ctx context.Context, job *fileops.Job) error {
	e = e.within(job)
	to := format.Format(job.Params.Get("convert_to"))
	t, err := e.target(to)
	if err != nil {
		return err
	}
	r, err := requestOf(job.Params)
	if err == nil {
		t, err = t.chosen(r)
	}
	if err == nil {
		err = r.checkSubtitleFile(to, t)
	}
	if err != nil {
		return err
	}
	return job.WriteFile(fileops.ResultName(job.Input(), to), func(path string) error {
		if t.kind == audio && r.usualSound() {
			if done, err := e.quickly(ctx, job, t, r, path); done || err != nil {
				return err
			}
		}
		m, err := e.probe(ctx, job, job.Input())
		if err == nil {
			m, err = m.only(r)
		}
		if err != nil {
			return err
		}
		if from := max(r.start, r.time); m.duration > 0 && from >= m.duration {
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the recording is only %.2f seconds long", m.duration)
		}
		switch t.kind {
		case animation:
			err = e.animate(ctx, job, m, to, r, path)
		case still:
			err = e.frame(ctx, job, m, t, r, path)
		default:
			return e.transcode(ctx, job, m, t, r, path)
		}
		if err == nil {
			o := outcome{to: to, target: t, kept: m.videos()[:1], encoded: true, opaque: t.video == "mjpeg", ground: r.ground}
			o.warn(job, m)
		}
		return err
	})
}

// A plan is one way to produce a result.
type plan struct {
	copies bool // copy streams if the target allows it
	plain  bool // only one picture and one sound stream, in a form that every encoder accepts
}

// transcode makes sound or video with sound. It first copies all streams that can be
// copied. If that fails, because streams differ from what their container declares, or
// cannot be cut exactly, it encodes them. If that fails too, it leaves out everything
// that is not essential.
func (e *Engine) transcode(ctx context.Context, job *fileops.Job, m *media, t target, r request, path string) error {
	total := m.duration
	if t.kind == audio {
		a, err := m.audio()
		if err != nil {
			return err
		}
		total = cmp.Or(a.length(), total)
	} else if _, err := m.video(); err != nil {
		return err
	}
	r, from, err := e.prepare(ctx, job, m, t, r)
	if err != nil {
		return err
	}
	limit := e.maxOutput
	if r.maxBytes > 0 {
		limit = min(limit, r.maxBytes)
	}
	for _, p := range []plan{{copies: true}, {}, {plain: true}} {
		out := func() node {
			if t.kind == audio {
				return e.sound(m, t, r, p, path)
			}
			return e.movie(m, t, r, p, path, limit)
		}
		o := e.outcome(m, t, r, p)
		o.to = format.Parse(path)
		err = e.run(ctx, job, pass{out: out, path: path, limit: limit, expected: r.length(total), declared: r.declared(m, o.kept), from: from, to: 1})
		if err == nil {
			err = e.verify(ctx, job, m, r, o, path)
		}
		if err == nil {
			o.warn(job, m)
			return nil
		}
		if errors.Is(err, errFull) && limit < e.maxOutput {
			return e.squeeze(ctx, job, m, t, r, o, path)
		}
		if errors.Is(err, errFull) {
			return e.tooLarge()
		}
		var setup setupError
		if ctx.Err() != nil || !p.copies && !errors.As(err, &setup) || errors.Is(err, fileops.ErrLimit) {
			return err
		}
		job.Log.Debug("trying again with other arguments", "err", err.Error())
	}
	return err
}

// outcome returns what sound or movie makes of m.
func (e *Engine) outcome(m *media, t target, r request, p plan) outcome {
	o := outcome{target: t, opaque: true, ground: r.ground, plain: p.plain}
	if t.kind == audio {
		o.kept = m.audios()[:1:1]
		if c := m.covers(); t.cover && len(c) > 0 && !p.plain {
			o.kept = append(o.kept, c[0])
		}
		return o
	}
	v := m.videos()[0]
	side := t.sideStreams(m, p)
	if r.burnt != "" {
		side, o.burnt = append(slices.Clone(t.soundTracks(m, p)), r.burntTrack), true
	}
	o.kept, o.encoded = slices.Concat(side, []stream{v}), !t.copiesPicture(v, r, p)
	return o
}

// sound returns the output of a conversion to audio.
func (e *Engine) sound(m *media, t target, r request, p plan, path string) node {
	a := m.audios()[0]
	in := e.input(m, r.window())
	streams := []node{pick(in, a)}
	o := opts{}
	audioCodec(o, 0, a, t, r.soundSettings(m, a, p))
	if c := m.covers(); t.cover && len(c) > 0 && !p.plain {
		// The cover is at the start, wherever the sound is cut.
		streams = append(streams, pick(e.input(m), c[0]))
		o["c:v:0"], o["disposition:v:0"] = "copy", "attached_pic"
	}
	if slices.Contains(m.source.demuxers, "ogg") {
		o["map_metadata"] = "0:s:a:0" // Ogg stores its tags in the stream
	}
	return e.output(path, t.muxer, e.maxOutput, streams, t.muxed, o)
}

// movie returns the output of a conversion to video.
func (e *Engine) movie(m *media, t target, r request, p plan, path string, limit int64) node {
	v := m.videos()[0]
	open, o := r.window(), opts{"max_muxing_queue_size": 4096}
	if r.marked {
		e.rotationMark(open, o, v.Index, r.mark)
	}
	in := e.input(m, open)
	var streams []node
	if t.copiesPicture(v, r, p) {
		streams = append(streams, pick(in, v))
		o["c:v:0"] = "copy"
		if v.Codec == "hevc" && t.iso {
			o["tag:v:0"] = "hvc1" // Apple's players know no other tag
		}
		if r.frames > 0 {
			o["frames:v:0"] = r.frames
		}
	} else {
		e.encodePicture(o, t, r)
		streams = append(streams, e.pictures(pick(in, v), v, t.shape(r)))
	}
	streams = append(streams, e.sideStreams(o, m, in, t, r, p)...)
	return e.output(path, t.muxer, limit, streams, t.muxed, o)
}

// encodePicture adds the options that encode the picture for a conversion to t.
func (e *Engine) encodePicture(o opts, t target, r request) {
	videoCodec(o, t.video, converted)
	r.quality(o, t.video)
	if t.video == "libx265" && t.iso {
		o["tag:v:0"] = "hvc1"
	}
}

// copiesPicture reports whether a conversion to t copies the video stream v.
func (t target) copiesPicture(v stream, r request, p plan) bool {
	recoloured := r.ground != nil && v.transparent()
	return p.copies && !r.encodesPicture() && !recoloured && t.mayCopy(v)
}

// mayCopy reports whether a video stream can be copied into t.
func (t target) mayCopy(v stream) bool {
	if rotated, _ := v.turned(); rotated && !t.rotates {
		return false
	}
	if v.Codec == "h264" && v.PixFmt != "yuv420p" && v.PixFmt != "yuvj420p" && t.muxer != "matroska" {
		return false // players do not support the other profiles
	}
	return slices.Contains(t.copyVideo, v.Codec)
}

func (t target) shape(r request) shape {
	sh := r.shape()
	sh.even, sh.constant, sh.pixels = true, t.constant, "yuv420p"
	switch t.video {
	case "mpeg4", "wmv2", "mpeg2video": // the maximum size in their headers
		limit := func(x float64) float64 { return min(cmp.Or(x, 4080), 4080) }
		sh.width, sh.height = limit(sh.width), limit(sh.height)
	}
	return sh
}

// shape returns the requested form of pictures.
func (r request) shape() shape {
	return shape{width: r.width, height: r.height, fps: r.fps, ground: r.ground, fit: r.fit, turn: r.turn, draw: r.drawSubtitles(), stamp: r.stamp}
}

// sideStreams adds the sound tracks and subtitles of a video.
func (e *Engine) sideStreams(o opts, m *media, in node, t target, r request, p plan) []node {
	var streams []node
	for i, a := range t.soundTracks(m, p) {
		streams = append(streams, pick(in, a))
		audioCodec(o, i, a, t, r.soundSettings(m, a, p))
	}
	if !p.plain && r.burnt == "" {
		streams = append(streams, subtitles(o, m, in, t)...)
	}
	return r.addTrack(o, streams)
}

// soundTracks returns the sound tracks that t keeps of a video.
func (t target) soundTracks(m *media, p plan) []stream {
	tracks := m.audios()
	if len(tracks) > 1 && (!t.tracks || p.plain) {
		tracks = tracks[:1]
	}
	return tracks
}

// sideStreams returns the sound tracks and subtitles that t keeps of a video.
func (t target) sideStreams(m *media, p plan) []stream {
	streams := slices.Clone(t.soundTracks(m, p))
	return append(streams, m.heldSubtitles(t, p.plain)...)
}

// heldSubtitles returns the subtitles of m that t keeps. A plain result has none of them.
func (m *media) heldSubtitles(t target, plain bool) []stream {
	return slices.DeleteFunc(m.subtitles(), func(s stream) bool { return plain || t.subtitleCodec(s) == "" })
}

// subtitles adds the subtitles that t can store.
func subtitles(o opts, m *media, in node, t target) []node {
	var streams []node
	for _, s := range m.subtitles() {
		if codec := t.subtitleCodec(s); codec != "" {
			o[numbered("c:s", len(streams))] = codec
			streams = append(streams, pick(in, s))
		}
	}
	return streams
}

// subtitleCodec returns the codec of the subtitles s in t: "copy", an encoder, or "" if
// t cannot store them.
func (t target) subtitleCodec(s stream) string {
	if slices.Contains(t.copySubs, s.Codec) {
		return "copy"
	}
	if s.isText() {
		return t.subs
	}
	return ""
}

// animate makes an animated picture. A gif takes two passes, the first for the palette:
// in a single pass ffmpeg would keep every frame in memory.
func (e *Engine) animate(ctx context.Context, job *fileops.Job, m *media, to format.Format, r request, path string) error {
	v, err := m.video()
	if err != nil {
		return err
	}
	t := e.targets[to]
	length, declared := r.length(m.duration), r.declared(m, []stream{v})
	if length > maxAnimation {
		return fileops.Fail(fileops.ErrLimit, nil, "the video is %.0f seconds long; an animated picture can have at most %d: choose a part with start and duration", length, maxAnimation)
	}
	if r.duration == 0 {
		r.duration = maxAnimation // the duration may be unknown
	}
	sh := r.shape()
	sh.lanczos = true
	if sh.width == 0 && sh.height == 0 {
		sh.width = 480
		if to == format.WebP {
			sh.width = 640
		}
	}
	// A gif counts in hundredths of a second, and 8 of them are 12.5 frames per second.
	fps, _ := v.frameRate()
	if sh.fps == 0 && (fps == 0 || fps > 12.5) {
		sh.fps = 12.5
	}
	p := pass{path: path, limit: e.maxOutput, expected: length, declared: declared, to: 1}
	run := func(p pass) error {
		err := e.run(ctx, job, p)
		if errors.Is(err, errFull) {
			return e.tooLarge()
		}
		return err
	}
	if to == format.WebP {
		p.rate = cmp.Or(sh.fps, fps)
		p.out = func() node {
			o := opts{"map_metadata": -1, "c:v:0": t.video, "loop": 0, "q:v:0": 70, "compression_level": 4}
			return e.output(path, t.muxer, e.maxOutput, []node{e.pictures(pick(e.input(m, r.window()), v), v, sh)}, o)
		}
		return run(p)
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	palette := filepath.Join(dir, "palette.png")
	first := pass{path: palette, limit: 64 << 20, to: 0.4}
	first.expected = length
	first.out = func() node {
		colours := filter(e.pictures(pick(e.input(m, r.window()), v), v, sh), step{"palettegen", "stats_mode=diff"})
		return e.output(palette, "image2pipe", first.limit, []node{colours}, opts{"c:v:0": "png", "map_metadata": -1})
	}
	first.still = true
	if err := run(first); err != nil {
		return err
	}
	p.from = first.to
	p.out = func() node {
		drawn := withPalette(e.pictures(pick(e.input(m, r.window()), v), v, sh), ownInput(palette, "png_pipe"))
		return e.output(path, t.muxer, e.maxOutput, []node{drawn}, opts{"c:v:0": t.video, "map_metadata": -1, "loop": 0})
	}
	return run(p)
}

// frame makes a still picture: the frame at the requested time, or a frame that is
// typical of the video. The first frame is often black.
func (e *Engine) frame(ctx context.Context, job *fileops.Job, m *media, t target, r request, path string) error {
	v, err := m.video()
	if err != nil {
		return err
	}
	sh := r.shape()
	if t.video == "mjpeg" {
		sh.pixels = "yuvj420p"
	}
	write := func(pictures node) node {
		return e.output(path, t.muxer, e.maxOutput, []node{pictures}, opts{"c:v:0": t.video, "q:v:0": 2, "frames:v:0": 1, "map_metadata": -1})
	}
	from := func(start float64) node {
		return pick(e.input(m, request{start: start}.window()), v)
	}
	var tries []func() node
	if r.time >= 0 {
		tries = append(tries, func() node { return write(e.pictures(from(r.time), v, sh)) })
		if r.time > 0 { // perhaps after the start of the last frame
			tries = append(tries, func() node { return write(e.pictures(from(max(r.time-1, 0)), v, sh)) })
		}
	} else {
		if m.duration >= 2 {
			tries = append(tries, func() node {
				var samples []node
				for _, at := range [...]float64{0.1, 0.25, 0.4, 0.55, 0.7} {
					one := filter(from(at*m.duration), step{"trim", "end_frame=1"}, step{"setpts", "PTS-STARTPTS"})
					samples = append(samples, e.pictures(one, v, sh))
				}
				all, _ := join(samples, 1, 0)
				return write(filter(all, step{"thumbnail", "5"}))
			})
		}
		// As many of the first frames as fit into some 200 MB.
		n := max(1, min(100, 50_000_000/(v.Width*v.Height)))
		tries = append(tries, func() node { return write(e.pictures(filter(from(0), step{"thumbnail", fmt.Sprint(n)}), v, sh)) })
	}
	for i, out := range tries {
		err = e.run(ctx, job, pass{out: out, path: path, limit: e.maxOutput, still: true})
		if err == nil || ctx.Err() != nil || errors.Is(err, fileops.ErrLimit) {
			return err
		}
		if i < len(tries)-1 {
			os.Remove(path)
		}
	}
	if errors.Is(err, errFull) {
		return e.tooLarge()
	}
	return err
}
