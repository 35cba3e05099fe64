package mediaops_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/mediaops"
	"github.com/filewright/filewright/internal/systest"
)

// counting returns an engine whose programs record their starts, and functions that
// return the number of starts since their last call.
func counting(t *testing.T) (e *mediaops.Engine, ffmpegs, ffprobes func() int) {
	t.Helper()
	dir := t.TempDir()
	program := func(name string) (string, func() int) {
		path, log := filepath.Join(dir, name), filepath.Join(dir, name+".log")
		script := fmt.Sprintf("#!/bin/sh\necho >> '%s'\nexec %s \"$@\"\n", log, name)
		systest.WriteScript(t, path, script)
		return path, func() int {
			b, err := os.ReadFile(log)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			os.Remove(log)
			return len(b)
		}
	}
	var o mediaops.Options
	o.FFmpeg, ffmpegs = program("ffmpeg")
	o.FFprobe, ffprobes = program("ffprobe")
	e, err := mediaops.New(t.Context(), o)
	systest.NoError(t, err)
	ffmpegs()
	ffprobes()
	return e, ffmpegs, ffprobes
}

// Sound takes one process for an ordinary file, a second one for other files, and
// ffprobe if the description is not understood. The result is the same.
func TestProcesses(t *testing.T) {
	t.Parallel()
	e, ffmpegs, ffprobes := counting(t)
	video := makeFile(t, "video.mp4", args(picture("160x120", 25, 3), tone(3, 44100), "-c:v libx264 -pix_fmt yuv420p -c:a aac")...)
	soundFirst := makeFile(t, "first.mkv", args(picture("160x120", 25, 3), tone(3, 48000), "-map 1 -map 0 -c:v libx264 -c:a aac")...)
	two := makeFile(t, "two.mkv", args(picture("160x120", 25, 3), tone(1, 48000), tone(3, 48000),
		"-map 0 -map 1 -map 2 -c:v libx264 -c:a aac -disposition:a:0 0 -disposition:a:1 default")...)
	song := makeFile(t, "song.mp3", args(tone(3, 44100), "-i", coverArt(t), "-map 0 -map 1 -c:a libmp3lame -c:v copy -disposition:v attached_pic")...)
	quad := makeFile(t, "quad.wav", args("-f lavfi -i aevalsrc=sin(900*t)|sin(700*t)|sin(500*t)|sin(300*t):d=3:c=quad")...)
	for _, c := range []struct {
		name        string
		in          *fileops.File
		to          string
		more        []any
		codec       string
		first, last int // runs of ffmpeg and ffprobe
	}{
		{"usual", video, "mp3", nil, "mp3", 1, 0},
		{"copied", video, "m4a", nil, "aac", 1, 0},
		{"uncompressed", video, "wav", nil, "pcm_s16le", 1, 0},
		{"part", video, "ogg", []any{"duration", 3}, "vorbis", 1, 0},
		{"mono", video, "opus", nil, "opus", 2, 0}, // stereo has another bit rate
		{"sound first", soundFirst, "mp3", nil, "mp3", 2, 0},
		{"default track", two, "mp3", nil, "mp3", 2, 0},
		{"cover", song, "m4a", nil, "aac", 2, 0},
		{"no cover", song, "ogg", nil, "vorbis", 1, 0},
		{"odd channels", quad, "mp3", nil, "mp3", 2, 1},
		{"lossless", quad, "flac", nil, "flac", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) { // sequential, because processes are counted
			out := must(t, e.Convert(), convertTo(c.to, c.more...), c.in)
			if a, b := ffmpegs(), ffprobes(); a != c.first || b != c.last {
				t.Errorf("%d runs of ffmpeg and %d of ffprobe instead of %d and %d", a, b, c.first, c.last)
			}
			p := probe(t, out)
			if got := strings.Join(p.codecs("audio"), " "); got != c.codec {
				t.Errorf("the sound is %q", got)
			}
			if d := p.duration(); d < 2.9 || d > 3.2 {
				t.Errorf("%.2f seconds", d)
			}
		})
	}
}

// A run that starts before the length of its input is known still reports its progress.
func TestProgressOfSound(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.wav", args(tone(150, 44100))...)
	var rec recorder
	e, ffmpegs, ffprobes := counting(t)
	r := fileops.Runner{TempDir: t.TempDir(), Progress: rec.add}
	systest.NoError(t, r.Run(t.Context(), e.Convert(), convertTo("mp3"), fileops.ToDir(t.TempDir()), in))
	if a, b := ffmpegs(), ffprobes(); a != 1 || b != 0 {
		t.Errorf("%d runs of ffmpeg and %d of ffprobe", a, b)
	}
	between := slices.DeleteFunc(rec.values, func(v float64) bool { return v <= 0.02 || v >= 0.98 })
	if len(between) == 0 {
		t.Error("nothing between begin and end")
	}
}
