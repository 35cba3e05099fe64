package mediaops

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// maxMerged is the maximum number of files to merge: all are open at the same time.
const maxMerged = 100

// Merge returns the action "merge", which joins recordings one after the other: any mix
// of audio formats, or any mix of video formats. The first input decides the format of
// the result and, for video, the frame size and frame rate. Other videos are scaled and
// get borders. Parts with identical encoding are joined without loss. The silence of a
// few hundredths of a second that MP3 encoders add around a recording then remains. A
// part without sound becomes silent, and a part with more than two channels is mixed
// down. The result is merged.<ext>.
func (e *Engine) Merge() fileops.Action {
	spec := fileops.Spec{
		Name: "merge", Engine: e.name(), Family: "media", Joint: true,
		Summary: "Joins several audio files, or several video files, into one.",
	}
	var sounds, movies []format.Format
	for _, f := range slices.Sorted(maps.Keys(e.sources)) {
		to, ok := e.mergeTarget(f)
		switch {
		case ok && f.Family() == format.Audio:
			sounds = append(sounds, f)
			if to != f {
				if spec.Results == nil {
					spec.Results = make(map[format.Format]format.Format)
				}
				spec.Results[f] = to
			}
		case ok && f.Family() == format.Video:
			movies = append(movies, f)
		}
	}
	for _, formats := range [][]format.Format{sounds, movies} {
		if len(formats) > 0 {
			spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: formats})
		}
	}
	return fileops.Func(spec, e.merge)
}

// mergeTarget returns the result format of a merge whose first input is of format f: f,
// or m4a if f cannot be written (AMR).
func (e *Engine) mergeTarget(f format.Format) (format.Format, bool) {
	if t, ok := e.targets[f]; ok && t.plays() {
		return f, true
	}
	_, ok := e.targets[format.M4A]
	return format.M4A, ok && f.Family() == format.Audio
}

func (e *Engine) merge(ctx context.Context, job *fileops.Job) error {
	e = e.within(job)
	if n := len(job.Inputs); n > maxMerged {
		return fileops.Fail(fileops.ErrLimit, nil, "%d files are too many; at most %d can be merged", n, maxMerged)
	}
	to, ok := e.mergeTarget(job.Input().Format())
	if !ok {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "%s cannot be written here", job.Input().Format())
	}
	t := e.targets[to]
	parts, sound, err := e.probeParts(ctx, job, t)
	if err != nil {
		return err
	}
	total := 0.0
	for _, m := range parts {
		total += m.duration
	}
	if err := e.checkDuration(fmt.Sprintf("the recordings take %.0f seconds together,", total), total); err != nil {
		return err
	}
	var silence []string
	if sound && t.kind == video {
		if silence, err = silences(job, parts); err != nil {
			return err
		}
	}
	declared := declaredTotal(parts)
	return job.WriteFile("merged."+string(to), func(path string) error {
		o := outcome{to: to, target: t, opaque: true}
		if t.joinable(parts, sound) {
			err := e.chain(ctx, job, parts, t, sound, path, total)
			if err == nil {
				mergeLosses(job, parts, o, 0, 0)
			}
			if err == nil || ctx.Err() != nil {
				return err
			}
			job.Log.Debug("joining by encoding", "err", err.Error())
		}
		out := func() node {
			if t.kind == audio {
				return e.joinSound(parts, t, path)
			}
			return e.joinMovies(parts, t, sound, silence, path)
		}
		err := e.run(ctx, job, pass{out: out, path: path, limit: e.maxOutput, expected: total, declared: declared, to: 1})
		if errors.Is(err, errFull) {
			return e.tooLarge()
		}
		if err == nil {
			w, h := 0, 0
			if o.encoded = t.kind == video; o.encoded {
				w, h = t.mergedSize(parts[0].videos()[0])
			}
			mergeLosses(job, parts, o, w, h)
		}
		return err
	})
}

// probeParts probes the inputs of merge. sound reports whether the result has sound.
func (e *Engine) probeParts(ctx context.Context, job *fileops.Job, t target) (parts []*media, sound bool, err error) {
	sound = t.kind == audio
	for i, f := range job.Inputs {
		m, err := e.probe(ctx, job, f)
		if err == nil && t.kind == audio {
			_, err = m.audio()
		} else if err == nil {
			_, err = m.video()
			sound = sound || len(m.audios()) > 0
		}
		var fail *fileops.Failure
		if errors.As(err, &fail) && len(job.Inputs) > 1 {
			return nil, false, fileops.Fail(fail.Kind, fail.Err, "file %d of %d: %s", i+1, len(job.Inputs), fail.Message)
		}
		if err != nil {
			return nil, false, err
		}
		parts = append(parts, m)
	}
	return parts, sound, nil
}

// silences writes a file of silence for each part without sound and returns their paths by part.
func silences(job *fileops.Job, parts []*media) ([]string, error) {
	dir, err := job.Dir()
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(parts))
	for i, m := range parts {
		if len(m.audios()) == 0 {
			// One file for each, because ffmpeg-go merges equal nodes.
			paths[i] = filepath.Join(dir, fmt.Sprintf("silence-%d.wav", i))
			if err := writeSilence(paths[i]); err != nil {
				return nil, err
			}
		}
	}
	return paths, nil
}

// declaredTotal returns the sum of the declared durations in seconds, 0 if a part declares none.
func declaredTotal(parts []*media) float64 {
	total := 0.0
	for _, m := range parts {
		d := m.declared(m.streams)
		if d == 0 {
			return 0
		}
		total += d
	}
	return total
}

func (e *Engine) joinSound(parts []*media, t target, path string) node {
	best := parts[0].audios()[0] // as if the whole result were one stream of this kind
	best.Channels = 1
	rate := best.rate()
	for _, m := range parts {
		a := m.audios()[0]
		best.Channels = max(best.Channels, min(a.Channels, 2))
		rate = max(rate, a.rate())
	}
	rate = min(rate, 48000)
	best.SampleRate = fmt.Sprint(rate)
	var streams []node
	for _, m := range parts {
		streams = append(streams, e.evenSound(pick(e.input(m), m.audios()[0]), m.audios()[0].Channels, rate, best.Channels))
	}
	_, sound := join(streams, 0, 1)
	o := opts{"map_metadata": -1, "map_chapters": -1}
	audioCodec(o, 0, best, t, soundSettings{})
	return e.output(path, t.muxer, e.maxOutput, []node{sound}, t.muxed, o)
}

// mergedSize returns the frame size of a merge whose first video is first.
func (t target) mergedSize(first stream) (w, h int) {
	sh := t.shape(request{})
	return fit(first, sh.width, sh.height, true)
}

func (e *Engine) joinMovies(parts []*media, t target, sound bool, silence []string, path string) node {
	first := parts[0].videos()[0]
	sh := t.shape(request{})
	w, h := t.mergedSize(first)
	fps, _ := first.frameRate()
	fps = cmp.Or(fps, 25)
	fps = min(fps, 60)
	var streams []node
	for i, m := range parts {
		v := m.videos()[0]
		in := e.input(m)
		each := sh
		each.width, each.height, each.fps = float64(w), float64(h), fps
		picture := filter(e.pictures(pick(in, v), v, each),
			// Scales smaller ones up; the others already have their size.
			step{"scale", fmt.Sprint(w), fmt.Sprint(h), "force_original_aspect_ratio=decrease:force_divisible_by=2"},
			step{"pad", fmt.Sprint(w), fmt.Sprint(h), "(ow-iw)/2", "(oh-ih)/2"},
			step{"setsar", "1"},
		)
		streams = append(streams, picture)
		if !sound {
			continue
		}
		if silence[i] == "" {
			streams = append(streams, e.evenSound(pick(in, m.audios()[0]), m.audios()[0].Channels, 48000, 2))
			continue
		}
		quiet := filter(ownInput(silence[i], "wav").Get("0"), step{"apad"}, step{"atrim", "duration=" + seconds(max(m.duration, 1/fps))})
		streams = append(streams, e.evenSound(quiet, 2, 48000, 2))
	}
	n := 0
	if sound {
		n = 1
	}
	pictures, track := join(streams, 1, n)
	o := opts{"map_metadata": -1, "map_chapters": -1, "max_muxing_queue_size": 4096}
	videoCodec(o, t.video, converted)
	outs := []node{pictures}
	if sound {
		outs = append(outs, track)
		audioCodec(o, 0, stream{Channels: 2, SampleRate: "48000"}, t, soundSettings{})
	}
	return e.output(path, t.muxer, e.maxOutput, outs, t.muxed, o)
}

// evenSound converts sound to a common form, which the concat filter requires.
func (e *Engine) evenSound(n node, from, rate, channels int) node {
	if from > 8 {
		n = filter(n, step{"pan", "stereo|c0=c0|c1=c1"})
	}
	layout := "stereo"
	if channels == 1 {
		layout = "mono"
	}
	return filter(n,
		step{"aresample", fmt.Sprint(rate)},
		step{"aformat", "sample_fmts=fltp", fmt.Sprintf("sample_rates=%d", rate), "channel_layouts=" + layout},
		step{"asetpts", "PTS-STARTPTS"},
	)
}

// writeSilence writes a tenth of a second of silence as WAV.
func writeSilence(path string) error {
	const rate, n = 48000, 4800 * 4
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("RIFF"), 36+n)
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00"...)
	b = le.AppendUint32(b, rate)
	b = le.AppendUint32(b, rate*4)
	b = append(b, "\x04\x00\x10\x00data"...)
	b = le.AppendUint32(b, n)
	return os.WriteFile(path, append(b, make([]byte, n)...), 0o600)
}
