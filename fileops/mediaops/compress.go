package mediaops

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/filewright/filewright/fileops"
)

// Compress returns the action "compress" for audio and video. Its results have the
// format of the input and are never larger: if the result is not at least 3 % smaller,
// the input is returned unchanged. See the package documentation for the levels. WAV and
// AIFF always stay unchanged.
func (e *Engine) Compress() fileops.Action {
	levels := fileops.Compression("How hard to compress: the smaller the result, the lower the quality.")
	spec := fileops.Spec{
		Name: "compress", Engine: e.name(), Family: "media",
		Summary: "Makes audio and video files smaller.",
	}
	if formats := e.rewritten(target.plays); len(formats) > 0 {
		spec.Accepts = []fileops.Accept{{Formats: formats, Params: fileops.Schema{levels}}}
	}
	return fileops.Func(spec, e.compress)
}

func (e *Engine) compress(ctx context.Context, job *fileops.Job) error {
	e = e.within(job)
	in := job.Input()
	t, m, err := e.own(ctx, job)
	if err != nil {
		return err
	}
	l := recommended
	switch job.Params.Get("compression_value") {
	case fileops.LessCompression:
		l = less
	case fileops.ExtremeCompression:
		l = extreme
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "compressed."+string(in.Format()))
	// Stop as soon as the result cannot be smaller.
	limit := in.Size() * 97 / 100
	var out func(plan) node
	var first []stream
	o := outcome{to: in.Format(), target: t}
	if t.kind == audio {
		a, err := m.audio()
		if err != nil {
			return err
		}
		kbit := bitRateFor(l, a.Channels)
		if t.audio == "pcm" || t.audio != "flac" && bitRateOf(m, a) <= 1.15*1000*float64(kbit) {
			return job.Keep(in)
		}
		first = []stream{a}
		out = func(p plan) node { return e.smallerSound(m, a, t, kbit, p, path, limit) }
	} else {
		v, err := m.video()
		if err != nil {
			return err
		}
		if v.transparent() {
			return job.Keep(in) // the encoders used here would lose the transparency
		}
		first, o.encoded, o.opaque = []stream{v}, true, true
		out = func(p plan) node { return e.smallerMovie(m, v, t, l, p, path, limit) }
	}
	for _, p := range []plan{{copies: true}, {}, {plain: true}} {
		o.plain, o.kept = p.plain, slices.Concat(first[:1], t.compressed(m, p))
		err = e.run(ctx, job, pass{out: func() node { return out(p) }, path: path, limit: limit, expected: m.duration, declared: m.declared(o.kept), to: 1})
		var setup setupError
		if !errors.As(err, &setup) || ctx.Err() != nil {
			break
		}
	}
	if errors.Is(err, errFull) && limit < e.maxOutput {
		return job.Keep(in)
	}
	if err != nil {
		return err
	}
	// The limit makes the result smaller than the input, so Best takes it.
	o.warn(job, m)
	return job.Best(in, path)
}

// compressed returns the streams of m that a compressed file keeps besides its first
// track.
func (t target) compressed(m *media, p plan) (kept []stream) {
	if t.kind == audio {
		if c := m.covers(); t.cover && len(c) > 0 && !p.plain {
			kept = c[:1]
		}
		return kept
	}
	kept = t.sideStreams(m, p)
	if !p.plain && t.muxer == "matroska" { // fonts, which its subtitles need
		kept = append(kept, m.of("attachment", func(stream) bool { return true })...)
	}
	return kept
}

// bitRateFor returns the target bit rate of sound in kbit/s.
func bitRateFor(l level, channels int) int {
	kbit := [...]int{0, 160, 128, 96}[l]
	switch {
	case channels == 1:
		return [...]int{0, 96, 64, 48}[l]
	case channels > 2:
		return kbit * 2
	}
	return kbit
}

// bitRateOf returns the bit rate of the sound of m in bit/s. If it is unknown, it
// returns the bit rate of the whole file.
func bitRateOf(m *media, a stream) float64 {
	if b := cmp.Or(a.bitRate(), m.bitRate); b > 0 || m.duration == 0 {
		return b
	}
	return float64(m.file.Size()) * 8 / m.duration
}

func (e *Engine) smallerSound(m *media, a stream, t target, kbit int, p plan, path string, limit int64) node {
	in := e.input(m)
	o := opts{}
	audioCodec(o, 0, a, t, soundSettings{kbit: kbit, plain: p.plain})
	if t.audio == "flac" {
		o = opts{"c:a:0": "flac", "compression_level:a:0": 12}
	}
	streams := []node{pick(in, a)}
	if c := m.covers(); t.cover && len(c) > 0 && !p.plain {
		streams = append(streams, pick(in, c[0]))
		o["c:v:0"], o["disposition:v:0"] = "copy", "attached_pic"
	}
	if slices.Contains(m.source.demuxers, "ogg") {
		o["map_metadata"] = "0:s:a:0"
	}
	return e.output(path, t.muxer, limit, streams, t.muxed, o)
}

func (e *Engine) smallerMovie(m *media, v stream, t target, l level, p plan, path string, limit int64) node {
	in := e.input(m)
	o := opts{"max_muxing_queue_size": 4096}
	videoCodec(o, t.video, l)
	sh := t.shape(request{})
	if l == extreme { // 720p, landscape or portrait
		if w, h := v.size(); w >= h {
			sh.width, sh.height = 1280, 720
		} else {
			sh.width, sh.height = 720, 1280
		}
	}
	streams := []node{e.pictures(pick(in, v), v, sh)}
	for i, a := range t.soundTracks(m, p) {
		streams = append(streams, pick(in, a))
		kbit := bitRateFor(l, a.Channels)
		if t.stereo {
			kbit = bitRateFor(l, min(a.Channels, 2))
		}
		if b := a.bitRate(); p.copies && b > 0 && b <= 1.15*1000*float64(kbit) {
			kbit = 0 // already small enough: copied if the format allows it
		}
		audioCodec(o, i, a, t, soundSettings{kbit: kbit, copies: p.copies, plain: p.plain})
	}
	if !p.plain {
		streams = append(streams, subtitles(o, m, in, t)...)
		for _, s := range t.compressed(m, p) {
			if s.Type == "attachment" {
				streams = append(streams, pick(in, s))
				o["c:t"] = "copy"
			}
		}
	}
	return e.output(path, t.muxer, limit, streams, t.muxed, o)
}
