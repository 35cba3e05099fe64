package mediaops

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ffmpeg "github.com/u2takey/ffmpeg-go"

	"github.com/filewright/filewright/fileops"
)

// seamless are the codecs whose packets can follow those of another file: each group of
// pictures or block of sound is independent, given the same headers.
var seamless = []string{
	"h264", "hevc", "av1", "vp8", "vp9", "mpeg4", "mpeg2video", "mpeg1video", "mjpeg", "prores",
	"mp3", "mp2", "aac", "ac3", "eac3", "pcm_s16le", "pcm_s24le", "pcm_s16be", "pcm_s24be",
}

// joinable reports whether parts can be joined in t without encoding: each part has one
// video and one sound track, all with the same encoding.
func (t target) joinable(parts []*media, sound bool) bool {
	switch {
	case len(parts) < 2:
		return false
	case t.kind == audio && t.audio != "pcm" && t.muxer != "mp3":
		// Encoders add silence at the start, and players skip it only at the start of a
		// file. It would be audible between the parts.
		return false
	case t.muxer == "mpegts" || t.video == "mpeg2video":
		return false // their timestamps do not start at zero
	}
	first := parts[0]
	for _, m := range parts {
		if strings.ContainsAny(m.path, "\r\n") || !slices.Equal(m.source.demuxers, first.source.demuxers) {
			return false
		}
		if t.kind == video {
			if len(m.videos()) != 1 || !t.mayCopy(m.videos()[0]) || !alike(m.videos()[0], first.videos()[0]) {
				return false
			}
		}
		if !sound {
			continue
		}
		if len(m.audios()) == 0 || len(first.audios()) == 0 {
			return false
		}
		a := m.audios()[0]
		if !slices.Contains(t.copyAudio, a.Codec) || !alike(a, first.audios()[0]) {
			return false
		}
		// If sound and picture of a part do not end together, the next part would have
		// to be shifted.
		if t.kind == video && a.seconds() > 0 && math.Abs(a.seconds()-m.videos()[0].seconds()) > 0.1 {
			return false
		}
	}
	return true
}

// alike reports whether two streams have the same encoding.
func alike(a, b stream) bool {
	turnedA, sidewaysA := a.turned()
	turnedB, sidewaysB := b.turned()
	return slices.Contains(seamless, a.Codec) && a.Index == b.Index && a.Codec == b.Codec && a.Profile == b.Profile && a.Extradata == b.Extradata &&
		a.TimeBase == b.TimeBase && a.Width == b.Width && a.Height == b.Height && a.PixFmt == b.PixFmt && a.SAR == b.SAR &&
		a.FieldOrder == b.FieldOrder && a.Transfer == b.Transfer && a.RFrameRate == b.RFrameRate &&
		a.SampleRate == b.SampleRate && a.Channels == b.Channels && a.BitsPerSample == b.BitsPerSample &&
		turnedA == turnedB && sidewaysA == sidewaysB && a.transparent() == b.transparent()
}

// chain joins parts without encoding them, with ffmpeg's concat list.
func (e *Engine) chain(ctx context.Context, job *fileops.Job, parts []*media, t target, sound bool, path string, total float64) error {
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "parts.ffconcat")
	var b strings.Builder
	b.WriteString("ffconcat version 1.0\n")
	for _, m := range parts {
		b.WriteString("file 'file:" + strings.ReplaceAll(m.path, "'", `'\''`) + "'\n")
	}
	if err := os.WriteFile(list, []byte(b.String()), 0o600); err != nil {
		return err
	}
	out := func() node {
		o := opts(e.options(parts[0].source))
		// No part is such a list itself, as the check of their content has shown.
		o["f"], o["format_whitelist"], o["safe"] = "concat", "concat,"+strings.Join(parts[0].source.demuxers, ","), 0
		in := ffmpeg.Input("file:"+list, o)
		var streams []node
		more := opts{"map_metadata": -1, "map_chapters": -1, "max_muxing_queue_size": 4096}
		if t.kind == video {
			v := parts[0].videos()[0]
			streams = append(streams, pick(in, v))
			more["c:v:0"] = "copy"
			if v.Codec == "hevc" && t.iso {
				more["tag:v:0"] = "hvc1"
			}
		}
		if sound {
			streams = append(streams, pick(in, parts[0].audios()[0]))
			more["c:a:0"] = "copy"
		}
		return e.output(path, t.muxer, e.maxOutput, streams, t.muxed, more)
	}
	return e.run(ctx, job, pass{out: out, path: path, limit: e.maxOutput, expected: total, to: 1})
}
