package mediaops

import (
	"context"
	"math"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/report"
)

// Inspect returns the action "inspect" for audio and video: what ffprobe reports about
// the file and its streams.
func (e *Engine) Inspect() fileops.Action {
	var formats []format.Format
	for f := range e.sources {
		if f.Family() == format.Audio || f.Family() == format.Video {
			formats = append(formats, f)
		}
	}
	slices.Sort(formats)
	spec := report.Spec(e.name(), "media", "Describes audio or video as JSON.", formats)
	if len(formats) == 0 {
		spec.Accepts = nil
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		m, err := e.within(job).probe(ctx, job, job.Input())
		if err != nil {
			return err
		}
		return describe(job, m).Write(job)
	})
}

func describe(job *fileops.Job, m *media) *report.Report {
	r := report.New(job)
	for key, value := range m.tags {
		switch key {
		case "artist":
			key = "author"
		case "encoder":
			key = "program"
		case "creation_time":
			r.SetTime("created", value)
			continue
		case "major_brand", "minor_version", "compatible_brands": // of the container, not of the content
			continue
		}
		r.Set(key, value)
	}
	out := &report.Media{Duration: round(m.duration, 3), BitRate: int(m.bitRate), Chapters: m.chapters, Streams: []report.Stream{}}
	for _, s := range m.streams {
		d := report.Stream{Type: s.Type, Codec: s.Codec, BitRate: int(s.bitRate()), Language: s.Tags["language"]}
		if d.Language == "und" {
			d.Language = ""
		}
		if s.Profile != "unknown" {
			d.Profile = s.Profile
		}
		switch s.Type {
		case "video":
			d.Width, d.Height, d.PixelFormat = s.Width, s.Height, s.PixFmt
			if s.cover() {
				d.Type = "cover"
				break
			}
			fps, _ := s.frameRate()
			d.FPS, d.HDR = round(fps, 3), s.hdr() || s.dolbyVision()
		case "audio":
			d.SampleRate, d.Channels = s.rate(), s.Channels
		}
		out.Streams = append(out.Streams, d)
	}
	r.Media = out
	return r
}

func round(v float64, digits int) float64 {
	k := math.Pow10(digits)
	return math.Round(v*k) / k
}
