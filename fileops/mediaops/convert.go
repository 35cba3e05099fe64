package mediaops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image/color"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/colour"
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

// conversions lists the targets of every source, grouped by parameters.
func (e *Engine) conversions() []fileops.Accept {
	bitRate := fileops.Param{Name: "audio_bitrate", Type: fileops.Integer, Min: 32, Max: 320, Doc: "Bit rate of the sound in kbit/s, within what the format allows; without it, one that suits the format."}
	width := fileops.Param{Name: "width", Type: fileops.Integer, Min: 16, Max: 8192, Doc: "Largest width in pixels; larger pictures are scaled down in proportion."}
	height := fileops.Param{Name: "height", Type: fileops.Integer, Min: 16, Max: 8192, Doc: "Largest height in pixels; larger pictures are scaled down in proportion."}
	videoHeight := height
	videoHeight.Name, videoHeight.Doc = "video_height", "The same as height: 720 makes a video of at most 720p."
	fps := fileops.Param{Name: "fps", Type: fileops.Number, Min: 1, Max: 120, Doc: "Frames per second; without it, those of the input."}
	animFPS := fileops.Param{Name: "fps", Type: fileops.Number, Min: 1, Max: 50, Doc: "Frames per second; without it, those of the input, at most 12.5."}
	start := fileops.Param{Name: "start", Type: fileops.Number, Min: 0, Max: 360000, Doc: "Start in seconds."}
	length := fileops.Param{Name: "duration", Type: fileops.Number, Min: 0.01, Max: 360000, Doc: "How much to take, in seconds; without it, up to the end."}
	at := fileops.Param{Name: "time", Type: fileops.Number, Min: 0, Max: 360000, Doc: "Where to take the picture, in seconds; without it, one that is typical of the video."}

	groups := []struct {
		kind   kind
		lossy  bool
		params fileops.Schema
	}{
		{video, true, fileops.Schema{bitRate, width, height, videoHeight, fps, start, length}},
		{animation, false, fileops.Schema{width, height, animFPS, start, length}},
		{still, false, fileops.Schema{width, height, at}},
		{audio, true, fileops.Schema{bitRate, start, length}},
		{audio, false, fileops.Schema{start, length}},
	}
	var all []fileops.Accept
	for _, from := range slices.Sorted(maps.Keys(e.sources)) {
		for _, g := range groups {
			var to []string
			for _, f := range slices.Sorted(maps.Keys(e.targets)) {
				t := e.targets[f]
				if f != from && t.kind == g.kind && (t.kind != audio || t.lossy() == g.lossy) && sensible(from, f, t) {
					to = append(to, string(f))
				}
			}
			if len(to) == 0 {
				continue
			}
			params := g.params
			if from == format.GIF {
				params = slices.DeleteFunc(slices.Clone(params), func(p fileops.Param) bool { return p.Name == "audio_bitrate" })
			}
			if g.kind != audio && mayBeTransparent(from) {
				params = append(slices.Clone(params), colour.Param("background", "Colour behind transparent parts, as #rrggbb or a name of CSS 2.1; without it, white where the format has no transparency."))
			}
			target := fileops.Enum("convert_to", "Format of the result.", to...)
			target.Aliases = aliases(to)
			all = append(all, fileops.Accept{
				Formats: []format.Format{from},
				Params:  append(fileops.Schema{target}, params...),
			})
		}
	}
	return all
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

// A request holds the parameters of a conversion.
type request struct {
	bitRate         int          // kbit/s, 0 if absent
	width, height   float64      // pixels, 0 if absent
	fps             float64      // 0 if absent
	start, duration float64      // seconds, 0 if absent
	time            float64      // seconds, -1 if absent
	ground          *color.NRGBA // background of transparent content, nil if absent
}

func requestOf(p fileops.Params) request {
	r := request{
		bitRate: p.Int("audio_bitrate"), width: p.Float("width"), height: p.Float("height"), fps: p.Float("fps"),
		start: p.Float("start"), duration: p.Float("duration"), time: -1, ground: colour.Parse(p.Get("background")),
	}
	if h := p.Float("video_height"); h > 0 && (r.height == 0 || h < r.height) {
		r.height = h
	}
	if p.Has("time") {
		r.time = p.Float("time")
	}
	return r
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
	t, ok := e.targets[to]
	if !ok {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "%s cannot be written here", to)
	}
	r := requestOf(job.Params)
	return job.WriteFile(fileops.ResultName(job.Input(), to), func(path string) error {
		if t.kind == audio {
			if done, err := e.quickly(ctx, job, t, r, path); done || err != nil {
				return err
			}
		}
		m, err := e.probe(ctx, job, job.Input())
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
// copied. If that fails, because streams differ from what their container declares, it
// encodes them. If that fails too, it leaves out everything that is not essential.
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
	var err error
	for _, p := range []plan{{copies: true}, {}, {plain: true}} {
		out := func() node {
			if t.kind == audio {
				return e.sound(m, t, r, p, path)
			}
			return e.movie(m, t, r, p, path)
		}
		o := e.outcome(m, t, r, p)
		err = e.run(ctx, job, pass{out: out, path: path, limit: e.maxOutput, expected: r.length(total), declared: r.declared(m, o.kept), to: 1})
		if err == nil {
			o.to = format.Format(job.Params.Get("convert_to"))
			o.warn(job, m)
			return nil
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
	o.kept, o.encoded = append(t.sideStreams(m, p), v), !t.copiesPicture(v, r, p)
	return o
}

// sound returns the output of a conversion to audio.
func (e *Engine) sound(m *media, t target, r request, p plan, path string) node {
	a := m.audios()[0]
	in := e.input(m, r.window())
	streams := []node{pick(in, a)}
	o := opts{}
	audioCodec(o, 0, a, t, r.bitRate, p.copies, p.plain)
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
func (e *Engine) movie(m *media, t target, r request, p plan, path string) node {
	v := m.videos()[0]
	in := e.input(m, r.window())
	o := opts{"max_muxing_queue_size": 4096}
	var streams []node
	if t.copiesPicture(v, r, p) {
		streams = append(streams, pick(in, v))
		o["c:v:0"] = "copy"
		if v.Codec == "hevc" && t.iso {
			o["tag:v:0"] = "hvc1" // Apple's players know no other tag
		}
	} else {
		videoCodec(o, t.video, converted)
		streams = append(streams, e.pictures(pick(in, v), v, t.shape(r)))
	}
	streams = append(streams, e.sideStreams(o, m, in, t, r.bitRate, p)...)
	return e.output(path, t.muxer, e.maxOutput, streams, t.muxed, o)
}

// copiesPicture reports whether a conversion to t copies the video stream v.
func (t target) copiesPicture(v stream, r request, p plan) bool {
	recoloured := r.ground != nil && v.transparent()
	return p.copies && r.width == 0 && r.height == 0 && r.fps == 0 && r.start == 0 && !recoloured && t.mayCopy(v)
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
	sh := shape{width: r.width, height: r.height, fps: r.fps, even: true, constant: t.constant, pixels: "yuv420p", ground: r.ground}
	switch t.video {
	case "mpeg4", "wmv2", "mpeg2video": // the maximum size in their headers
		limit := func(x float64) float64 { return min(cmp.Or(x, 4080), 4080) }
		sh.width, sh.height = limit(sh.width), limit(sh.height)
	}
	return sh
}

// sideStreams adds the sound tracks and subtitles of a video.
func (e *Engine) sideStreams(o opts, m *media, in node, t target, kbit int, p plan) []node {
	var streams []node
	for i, a := range t.soundTracks(m, p) {
		streams = append(streams, pick(in, a))
		audioCodec(o, i, a, t, kbit, p.copies, p.plain)
	}
	if p.plain {
		return streams
	}
	return append(streams, subtitles(o, m, in, t)...)
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
	for _, s := range m.subtitles() {
		if !p.plain && t.subtitleCodec(s) != "" {
			streams = append(streams, s)
		}
	}
	return streams
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
	switch s.Codec {
	case "mov_text", "subrip", "ass", "ssa", "webvtt", "text":
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
	sh := shape{width: r.width, height: r.height, fps: r.fps, lanczos: true, ground: r.ground}
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
	sh := shape{width: r.width, height: r.height, ground: r.ground}
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
