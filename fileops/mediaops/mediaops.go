// Package mediaops converts, compresses and joins audio and video with ffmpeg.
//
// [New] inspects the ffmpeg and ffprobe of the host and derives the readable and
// writable formats from their encoders, muxers and demuxers. Missing ones appear in no
// Spec. The actions of the [Engine] are
//
//   - [Engine.Convert]: audio and video into each other's formats, video to
//     sound, to an animated gif or webp, or to a still picture;
//   - [Engine.Captions]: video to its subtitles;
//   - [Engine.Compress]: the same format with fewer bytes, never with more;
//   - [Engine.Merge]: several recordings one after the other;
//   - [Engine.Rotate]: video turned by a quarter or a half;
//   - [Engine.Watermark]: video with a text or a picture over it;
//   - [Engine.Thumbnail]: a sheet of pictures of a video;
//   - [Engine.Metadata]: the same streams with other tags.
//
// # What is kept
//
// Streams are copied without loss if the target allows their codecs, and encoded
// otherwise. Tags, chapters and, for audio, the cover picture are kept if the target can
// store them. Text subtitles are kept in mp4, mov, m4v, mkv and webm, all sound tracks
// in these and ts. Pictures are turned upright, interlaced video becomes progressive,
// and pixels become square. HDR video that has to be encoded is mapped to standard range
// if ffmpeg has the filters. If the target has no transparency, transparent content is
// put on white or on the requested colour. Warnings list what a result lacks: tracks,
// tags, covers, chapters, HDR, transparency, and damaged parts of the input.
//
// # Parts
//
// A part of a video is exact to a frame. It is copied if it starts and ends at key frames,
// else encoded. ffprobe checks the size, the tracks and the duration of results.
//
// # Compression
//
// Video is encoded with x264 (webm: VP9; avi, wmv and mpeg: their usual codec) at three
// qualities, audio with 160, 128 or 96 kbit/s in the usual codec of its format. FLAC is
// compressed harder, without loss. WAV and AIFF are returned unchanged: these formats
// have no smaller form that sounds the same.
//
// # Safety
//
// A media file is a program for its demuxer: playlists and concatenation scripts name
// other files and hosts. The package therefore detects the content of every input first.
// ffmpeg may use only the demuxers for that content, only the file protocol, and limited
// memory, pixels, streams, CPU time and output.
package mediaops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
)

// Options configure [New]. The zero value is ready to use.
type Options struct {
	FFmpeg  string // path or name; "" means ffmpeg in PATH, [engine.None] disables the engine
	FFprobe string // path or name; "" means ffprobe in PATH, [engine.None] disables the engine

	// Threads is the number of decoding threads of one run, and also of encoding
	// threads; 0 means one for each processor, at most 8.
	Threads int

	// MaxOutput is the maximum size of a result in bytes; 0 means 4 GiB, or the limit of
	// [fileops.Job.MaxOutput].
	MaxOutput int64

	// MaxDuration limits the duration of a recording, and of all merged recordings
	// together; 0 means 24 hours.
	MaxDuration time.Duration

	// MaxPixels limits width times height of a picture; 0 means 100 million.
	MaxPixels int64

	// Limits restrict each run of the programs. The defaults are 4 GiB of address space,
	// and for each thread a processor time of ten times the duration, but at least ten
	// minutes.
	Limits engine.Limits

	// Sandbox confines the programs; nil runs them unconfined.
	Sandbox *engine.Sandbox
}

// An Engine is an installed ffmpeg with its abilities. It is safe for concurrent use.
type Engine struct {
	ffmpeg, ffprobe *engine.Program

	threads     int
	maxOutput   int64
	ownOutput   bool    // Options set maxOutput
	maxDuration float64 // seconds
	maxPixels   int64
	limits      engine.Limits
	toneMap     bool            // it has the filters for HDR
	burns       bool            // it can draw subtitles
	letters     bool            // it can draw text
	sheets      []format.Format // of sheets of pictures that it can write
	captions    map[format.Format]captionFormat
	texts       map[format.Format]textFormat // that can be added to a video

	decoders map[string]bool // names of available decoders

	sources map[format.Format]source // readable formats
	targets map[format.Format]target // writable formats
}

// dependency returns the dependency on ffmpeg and ffprobe, without path and version.
func dependency() fileops.Dependency {
	return fileops.Dependency{Name: "ffmpeg", Purpose: "audio and video", Packages: []string{"ffmpeg"}}
}

// New searches for ffmpeg and ffprobe and queries their abilities. If one of them cannot
// be used, it fails with a *[fileops.MissingError].
func New(ctx context.Context, o Options) (*Engine, error) {
	e, err := find(ctx, o)
	if err != nil {
		return nil, fileops.Missing(dependency(), err)
	}
	return e, nil
}

func find(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{
		threads: o.Threads, maxOutput: o.MaxOutput, ownOutput: o.MaxOutput > 0,
		maxDuration: cmp.Or(max(o.MaxDuration, 0), 24*time.Hour).Seconds(), maxPixels: cmp.Or(max(o.MaxPixels, 0), 100_000_000), limits: o.Limits,
	}
	if e.threads <= 0 {
		e.threads = min(runtime.GOMAXPROCS(0), 8)
	}
	e.maxOutput = cmp.Or(max(e.maxOutput, 0), 4<<30)
	var err error
	if e.ffmpeg, err = o.Sandbox.Find(ctx, []string{"-version"}, cmp.Or(o.FFmpeg, "ffmpeg")); err != nil {
		return nil, err
	}
	if e.ffprobe, err = o.Sandbox.Find(ctx, []string{"-version"}, cmp.Or(o.FFprobe, "ffprobe")); err != nil {
		return nil, err
	}
	var has abilities
	for _, l := range []struct {
		flag string
		set  *map[string]bool
	}{
		{"-encoders", &has.encoders}, {"-decoders", &has.decoders}, {"-filters", &has.filters},
		{"-muxers", &has.muxers}, {"-demuxers", &has.demuxers},
	} {
		if *l.set, err = e.list(ctx, l.flag); err != nil {
			return nil, err
		}
	}
	if missing := has.missingFilters(); len(missing) > 0 {
		return nil, fmt.Errorf("%s has no filter %s", e.ffmpeg.Name, strings.Join(missing, ", "))
	}
	e.burns = has.filters["subtitles"] && has.encoders["ass"] && has.muxers["ass"]
	e.letters = has.filters["subtitles"] && has.filters["color"] && has.demuxers["lavfi"] && has.muxers["rawvideo"]
	for f, encoder := range sheetEncoders {
		if has.encoders[encoder] && has.muxers["image2pipe"] && has.muxers["rawvideo"] && has.demuxers["rawvideo"] {
			e.sheets = append(e.sheets, f)
		}
	}
	e.toneMap = has.filters["zscale"] && has.filters["tonemap"]
	e.decoders, e.captions, e.texts = has.decoders, has.captionFormats(), has.textFormats()
	e.sources, e.targets = has.sources(), has.targets()
	if len(e.sources) == 0 || len(e.targets) == 0 {
		return nil, errors.New(e.ffmpeg.Name + " can neither read nor write a known format")
	}
	return e, nil
}

// within returns e with the limits of a job.
func (e *Engine) within(job *fileops.Job) *Engine {
	most := job.MaxOutput()
	if most == 0 || e.ownOutput && most > e.maxOutput {
		return e
	}
	one := *e
	one.maxOutput = most
	return &one
}

// checkDuration fails with [fileops.ErrLimit] if seconds is above the limit.
func (e *Engine) checkDuration(what string, seconds float64) error {
	if seconds <= e.maxDuration {
		return nil
	}
	return fileops.Fail(fileops.ErrLimit, nil, "%s more than the limit of %v; cut it into parts", what, time.Duration(e.maxDuration*float64(time.Second)).Round(time.Millisecond))
}

// checkPixels fails with [fileops.ErrLimit] if a picture is above the limit.
func (e *Engine) checkPixels(width, height int) error {
	if width <= 0 || height <= 0 || int64(width) <= e.maxPixels/int64(height) {
		return nil
	}
	return fileops.Fail(fileops.ErrLimit, nil, "the picture has %d × %d pixels, more than the limit of %s; make it smaller first", width, height, e.pixels())
}

// pixels returns the pixel limit as text for users.
func (e *Engine) pixels() string {
	if e.maxPixels%1_000_000 == 0 {
		return fmt.Sprintf("%d megapixels", e.maxPixels/1_000_000)
	}
	return fmt.Sprintf("%d pixels", e.maxPixels)
}

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	d := dependency()
	d.Version, d.Path = e.ffmpeg.Version, e.ffmpeg.Path
	return []fileops.Dependency{d}
}

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	var all []fileops.Action
	for _, a := range []fileops.Action{e.Convert(), e.Captions(), e.Compress(), e.Merge(), e.Rotate(), e.Watermark(), e.Thumbnail(), e.Metadata(), e.Inspect()} {
		if len(a.Spec().Accepts) > 0 {
			all = append(all, a)
		}
	}
	return all
}

func (e *Engine) name() string { return strings.TrimSpace("ffmpeg " + e.ffmpeg.Version) }

// list returns the names that ffmpeg prints for a flag such as -encoders.
func (e *Engine) list(ctx context.Context, flag string) (map[string]bool, error) {
	var out bytes.Buffer
	err := e.ffmpeg.Run(ctx, engine.Cmd{Args: []string{"-hide_banner", "-nostdin", "-v", "error", flag}, Dir: "/", Stdout: &out})
	if err != nil {
		return nil, err
	}
	return parseList(out.String()), nil
}

// parseList parses the lists of ffmpeg: lines with flags, one or several names separated
// by commas, and a description. Before them comes a legend with lines like "D. =
// Demuxing supported".
func parseList(s string) map[string]bool {
	m := make(map[string]bool)
	for line := range strings.Lines(s) {
		if f := strings.Fields(line); len(f) >= 2 && f[1] != "=" {
			for name := range strings.SplitSeq(f[1], ",") {
				m[name] = true
			}
		}
	}
	return m
}
