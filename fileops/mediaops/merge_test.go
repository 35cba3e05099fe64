package mediaops_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

func TestMergeAudio(t *testing.T) {
	t.Parallel()
	loud := makeFile(t, "a.mp3", args(tone(1, 44100), "-af volume=0dB -c:a libmp3lame")...)
	quiet := makeFile(t, "b.flac", args(tone(1, 48000), "-af volume=-20dB -ac 2")...)
	low := fileops.Bytes("c.amr", amr(50))
	high := makeFile(t, "d.wav", args(tone(1, 96000), "-c:a pcm_s24le")...)
	many := makeFile(t, "e.flac", args(tone(1, 44100), "-af pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0")...)
	for _, tt := range []struct {
		want  string
		codec string
		in    []*fileops.File
	}{
		{"merged.mp3", "mp3", []*fileops.File{loud, quiet, low, high, many}},
		{"merged.flac", "flac", []*fileops.File{quiet, loud}},
		{"merged.m4a", "aac", []*fileops.File{low, low, loud}},
		{"merged.wav", "pcm_s24le", []*fileops.File{high, many}},
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			out := must(t, engine(t).Merge(), nil, tt.in...)
			if filepath.Base(out) != tt.want {
				t.Errorf("result %s", filepath.Base(out))
			}
			p := probe(t, out)
			if got := strings.Join(p.codecs("audio"), " "); got != tt.codec {
				t.Errorf("codec %s", got)
			}
			want := float64(len(tt.in))
			if seconds, _ := decodes(t, out); seconds < want-0.2 || seconds > want+0.2 {
				t.Errorf("%v seconds, want %v", seconds, want)
			}
		})
	}
	t.Run("in order", func(t *testing.T) {
		t.Parallel()
		out := must(t, engine(t).Merge(), nil, loud, quiet, loud)
		var volumes []float64
		for i := range 3 {
			_, v := decodes(t, out, "-ss", fmt.Sprint(float64(i)+0.2), "-t", "0.6")
			volumes = append(volumes, v)
		}
		if d := volumes[0] - volumes[1]; d < 17 || d > 26 || volumes[2]-volumes[0] > 1 || volumes[0]-volumes[2] > 1 {
			t.Errorf("volumes are %v", volumes)
		}
	})
}

func TestMergeVideo(t *testing.T) {
	t.Parallel()
	colour := func(name, colour, size, more string) *fileops.File {
		return makeFile(t, name, args("-f lavfi -i color="+colour+":size="+size+":rate=25:duration=1", more)...)
	}
	red := makeFile(t, "a.mp4", args("-f lavfi -i color=red:size=160x120:rate=25:duration=1", tone(1, 44100), "-c:v libx264 -pix_fmt yuv420p -c:a aac")...)
	green := colour("b.webm", "lime", "90x160", "-c:v libvpx") // portrait, and without sound
	blue := makeFile(t, "c.avi", args("-f lavfi -i color=blue:size=640x480:rate=10:duration=1", tone(1, 22050), "-c:v mpeg4 -c:a libmp3lame -ac 2")...)
	silent := colour("d.mkv", "red", "162x120", "-c:v libx264")

	check := func(t *testing.T, out string, w, h int, seconds float64, colours string) {
		t.Helper()
		s := probe(t, out).Streams[0]
		if s.Width != w || s.Height != h {
			t.Errorf("%d × %d", s.Width, s.Height)
		}
		if d, _ := decodes(t, out); d < seconds-0.25 || d > seconds+0.25 {
			t.Errorf("it lasts %v s", d)
		}
		for i, want := range colours {
			px := pixels(t, out, float64(i)+0.5, 17, 13)
			middle := px[3*(17*6+8):][:3]
			got := strings.IndexByte("rgb", byte(want))
			for c, v := range middle {
				if c == got && v < 200 || c != got && v > 60 {
					t.Errorf("at %v.5 s the middle is %v, want %c", i, middle, want)
					break
				}
			}
		}
	}
	t.Run("mixed", func(t *testing.T) {
		t.Parallel()
		out := must(t, engine(t).Merge(), nil, red, green, blue, green)
		if filepath.Base(out) != "merged.mp4" {
			t.Errorf("result %s", filepath.Base(out))
		}
		check(t, out, 160, 120, 4, "rgbg")
		edge := pixels(t, out, 1.5, 17, 13)[:3] // beside the portrait picture
		if edge[1] > 40 {
			t.Errorf("the border is %v", edge)
		}
		for i, sounds := range []bool{true, false, true, false} {
			if _, v := decodes(t, out, "-ss", fmt.Sprint(float64(i)+0.3), "-t", "0.4"); sounds != (v > -60) {
				t.Errorf("volume of part %d is %v dB", i, v)
			}
		}
	})
	t.Run("the first has no sound", func(t *testing.T) {
		t.Parallel()
		out := must(t, engine(t).Merge(), nil, green, red)
		check(t, out, 90, 160, 2, "gr")
		if got := strings.Join(probe(t, out).codecs("audio"), " "); filepath.Base(out) != "merged.webm" || got != "opus" {
			t.Errorf("%s with sound %q", filepath.Base(out), got)
		}
	})
	t.Run("none has sound", func(t *testing.T) {
		t.Parallel()
		out := must(t, engine(t).Merge(), nil, silent, green)
		check(t, out, 162, 120, 2, "rg")
		if n := len(probe(t, out).codecs("audio")); n != 0 {
			t.Errorf("%d sound tracks", n)
		}
	})
	t.Run("other containers", func(t *testing.T) {
		t.Parallel()
		for _, f := range []format.Format{format.WMV, format.FLV, format.MPEG, format.AVI, format.ThGP} {
			check(t, must(t, engine(t).Merge(), nil, sample(t, f), red), 160, 120, 2, "")
		}
	})
}

func TestMergeErrors(t *testing.T) {
	t.Parallel()
	e := engine(t)
	mp4 := sample(t, format.MP4)
	var unsupported *fileops.UnsupportedError
	if _, err := run(t, e.Merge(), nil, mp4, sample(t, format.MP3)); !errors.As(err, &unsupported) {
		t.Errorf("sound with video: %v", err)
	}
	blind := makeFile(t, "blind.mp4", args(tone(1, 44100))...)
	_, err := run(t, e.Merge(), nil, mp4, blind)
	if !errors.Is(err, fileops.ErrUnsupportedInput) || !strings.Contains(fileops.Message(err), "file 2 of 2") {
		t.Errorf("no picture: %v", err)
	}
	many := make([]*fileops.File, 101)
	for i := range many {
		many[i] = mp4
	}
	if _, err := run(t, e.Merge(), nil, many...); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("too many: %v", err)
	}
}
