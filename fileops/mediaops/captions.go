package mediaops

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A captionFormat is a format of subtitles that ffmpeg writes.
type captionFormat struct{ encoder, muxer string }

// captionFormats returns the writable formats of subtitles.
func (a abilities) captionFormats() map[format.Format]captionFormat {
	all := map[format.Format]captionFormat{
		format.SRT: {"subrip", "srt"}, format.VTT: {"webvtt", "webvtt"}, format.ASS: {"ass", "ass"},
	}
	maps.DeleteFunc(all, func(_ format.Format, c captionFormat) bool { return !a.encoders[c.encoder] || !a.muxers[c.muxer] })
	return all
}

// Captions returns the action "convert" from video to its subtitles. It takes the default
// track, or the one that the parameter subtitle_track names. Tracks that already have the
// format of the result are copied.
func (e *Engine) Captions() fileops.Action {
	spec := fileops.Spec{Name: "convert", Engine: e.name(), Family: "media", Summary: "Takes the subtitles out of videos."}
	from := slices.DeleteFunc(slices.Sorted(maps.Keys(e.sources)), func(f format.Format) bool { return !holdsSubtitles(f) })
	var to []string
	for _, f := range slices.Sorted(maps.Keys(e.captions)) {
		to = append(to, string(f))
	}
	if len(from) > 0 && len(to) > 0 {
		spec.Accepts = []fileops.Accept{{Formats: from, Params: fileops.Schema{
			convertTo(to...),
			{Name: "subtitle_track", Type: fileops.Integer, Min: 1, Max: maxStreams, Doc: "Which subtitle track to take, from 1; the default one if absent."},
		}}}
	}
	return fileops.Func(spec, e.takeCaptions)
}

func (e *Engine) takeCaptions(ctx context.Context, job *fileops.Job) error {
	e = e.within(job)
	m, err := e.probe(ctx, job, job.Input())
	if err != nil {
		return err
	}
	tracks := m.subtitles()
	if len(tracks) == 0 {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file has no subtitles")
	}
	var s stream
	if n := job.Params.Int("subtitle_track"); n > len(tracks) {
		return lacks("subtitle_track", len(tracks), "subtitle track")
	} else if n > 0 {
		s = tracks[n-1]
	} else {
		sortDefault(tracks)
		s = tracks[0]
		if more := len(tracks) - 1; more == 1 {
			job.Warn(fileops.WarnStreamsDropped, "The file has 1 more subtitle track; subtitle_track selects one.")
		} else if more > 1 {
			job.Warn(fileops.WarnStreamsDropped, "The file has %d more subtitle tracks; subtitle_track selects one.", more)
		}
	}
	if !s.isText() {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the subtitles are pictures, not text")
	}
	to := format.Format(job.Params.Get("convert_to"))
	c := e.captions[to]
	codec := c.encoder
	if s.Codec == codec || codec == "ass" && s.Codec == "ssa" {
		codec = "copy"
	} else if s.Codec == "ass" || s.Codec == "ssa" {
		job.Warn(fileops.WarnLayoutSimplified, "Fonts, effects and exact positions of the subtitles were left out or simplified.")
	}
	return job.WriteFile(fileops.ResultName(job.Input(), to), func(path string) error {
		out := func() node {
			return e.output(path, c.muxer, e.maxOutput, []node{pick(e.input(m), s)}, opts{"c:s:0": codec, "map_metadata": -1})
		}
		err := e.run(ctx, job, pass{out: out, path: path, limit: e.maxOutput, expected: m.duration, still: true, to: 1})
		var setup setupError
		switch {
		case errors.Is(err, errFull):
			return e.tooLarge()
		case errors.As(err, &setup) && errors.Is(err, fileops.ErrCorruptInput):
			return fileops.Fail(fileops.ErrCorruptInput, err, "the subtitle track is empty or damaged")
		}
		return err
	})
}

// isText reports whether subtitles are text, not pictures.
func (s stream) isText() bool {
	switch s.Codec {
	case "mov_text", "subrip", "ass", "ssa", "webvtt", "text":
		return true
	}
	return false
}
