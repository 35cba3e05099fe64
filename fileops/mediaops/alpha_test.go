package mediaops_test

import (
	"crypto/md5"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// halfClear makes a video whose left half is red and whose right half is transparent.
func halfClear(t *testing.T, name string, more string) *fileops.File {
	t.Helper()
	return makeFile(t, name, args("-f lavfi -i color=red:size=160x120:rate=10:duration=1 -vf format=rgba,geq=r=255:g=0:b=0:a='if(lt(X,80),255,0)'", more)...)
}

func TestTransparentVideo(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]*fileops.File{
		"vp9":    halfClear(t, "in.webm", "-pix_fmt yuva420p -c:v libvpx-vp9 -deadline realtime -b:v 2M -auto-alt-ref 0"),
		"vp8":    halfClear(t, "in.webm", "-pix_fmt yuva420p -c:v libvpx -b:v 2M -auto-alt-ref 0"),
		"qtrle":  halfClear(t, "in.mov", "-c:v qtrle -pix_fmt argb"),
		"prores": halfClear(t, "in.mov", "-c:v prores_ks -profile:v 4444 -pix_fmt yuva444p10le"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for background, want := range map[string][3]int{"": {255, 255, 255}, "#00ff00": {0, 255, 0}, "black": {0, 0, 0}} {
				for _, to := range []string{"mp4", "jpg", "gif"} {
					if testing.Short() && (background == "black" || name != "vp9" && to != "mp4") {
						continue // the decoder makes the difference, and it comes first
					}
					a := convertTo(to)
					if background != "" {
						a["background"] = background
					} else if to == "gif" {
						continue // it stays transparent
					}
					px := pixels(t, must(t, engine(t).Convert(), a, in), 0, 16, 12)
					left, right := px[3*2:3*3], px[3*13:3*14]
					if left[0] < 200 || left[1] > 60 {
						t.Errorf("%s on %q: left %v", to, background, left)
					}
					for i, v := range right {
						if d := int(v) - want[i]; d > 40 || d < -40 {
							t.Errorf("%s on %q: right %v, want %v", to, background, right, want)
							break
						}
					}
				}
			}
		})
	}
	t.Run("kept", func(t *testing.T) {
		t.Parallel()
		in := halfClear(t, "in.webm", "-pix_fmt yuva420p -c:v libvpx-vp9 -deadline realtime -b:v 2M -auto-alt-ref 0")
		for _, to := range []string{"gif", "png"} {
			out := must(t, engine(t).Convert(), convertTo(to), in)
			raw, err := exec.Command("ffmpeg", "-v", "error", "-i", out, "-frames:v", "1", "-vf", "scale=16:12", "-f", "rawvideo", "-pix_fmt", "rgba", "-").Output()
			if err != nil || len(raw) != 16*12*4 {
				t.Fatal(err, len(raw))
			}
			if left, right := raw[4*2+3], raw[4*13+3]; left != 255 || right != 0 {
				t.Errorf("%s: opacity %d and %d", to, left, right)
			}
		}
	})
	var p *fileops.ParamError
	if _, err := run(t, engine(t).Convert(), convertTo("mp4", "background", "drawbox"), halfClear(t, "in.mov", "-c:v qtrle")); !errors.As(err, &p) {
		t.Errorf("got %v", err)
	}
}

func TestVideoHeight(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mov", args(picture("640x480", 10, 1), "-c:v libx264 -pix_fmt yuv420p")...)
	for want, a := range map[int]fileops.Args{
		240: convertTo("mp4", "video_height", 240), 120: convertTo("mp4", "video_height", 120, "height", 240), 480: convertTo("mp4", "video_height", 1080),
	} {
		if s := probe(t, must(t, engine(t).Convert(), a, in)).Streams[0]; s.Height != want || s.Width != want*4/3 {
			t.Errorf("%v: %d × %d", a, s.Width, s.Height)
		}
	}
}

// TestCoverOfPart: a cover belongs to the whole song, and so to each part of it.
func TestCoverOfPart(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "song.mp3", args(tone(4, 44100), "-i", coverArt(t), "-map 0 -map 1 -c:a libmp3lame -c:v copy -disposition:v attached_pic -metadata title=Song")...)
	for _, to := range []string{"m4a", "flac", "aiff"} {
		out := must(t, engine(t).Convert(), convertTo(to, "start", 1, "duration", 2), in)
		p := probe(t, out)
		if got := p.codecs("video"); !slices.Equal(got, []string{"mjpeg"}) {
			t.Errorf("%s: pictures %v", to, got)
		}
		if seconds, _ := decodes(t, out); math.Abs(seconds-2) > 0.1 {
			t.Errorf("%s: %v seconds", to, seconds)
		}
	}
}

// frames returns hashes of the decoded frames of a file, or the hash of its sound.
func frames(t *testing.T, video bool, paths ...string) (out []string) {
	t.Helper()
	sound := md5.New()
	for _, path := range paths {
		a := []string{"-nostdin", "-v", "error", "-i", path, "-map", "0:v", "-vsync", "passthrough", "-f", "framemd5", "-"}
		if !video {
			a = []string{"-nostdin", "-v", "error", "-i", path, "-f", "s16le", "-"}
		}
		b, err := exec.Command("ffmpeg", a...).Output()
		systest.NoError(t, err)
		if !video {
			sound.Write(b)
			continue
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(line, "#") {
				out = append(out, f[len(f)-1])
			}
		}
	}
	if !video {
		return []string{fmt.Sprintf("%x", sound.Sum(nil))}
	}
	return out
}

// TestMergeCopies: parts with the same encoding are joined packet by packet.
func TestMergeCopies(t *testing.T) {
	t.Parallel()
	x264 := "-c:v libx264 -pix_fmt yuv420p -bf 2 -g 10 -c:a aac -b:a 96k"
	for name, tt := range map[string]struct {
		ext, more string
		video     bool
		seconds   float64
		gaps      float64 // silence that the encoder has put around the parts
	}{
		"mp4": {"mp4", x264, true, 2, 0}, "mkv": {"mkv", x264, true, 2, 0},
		"webm": {"webm", "-c:v libvpx -deadline realtime -an", true, 2, 0},
		"mp3":  {"mp3", "-map 1 -c:a libmp3lame -b:a 128k", false, 2, 0.15}, "wav": {"wav", "-map 1 -c:a pcm_s16le", false, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			make := func(name, source string) *fileops.File {
				return makeFile(t, name+"."+tt.ext, args("-f lavfi -i", source+"=size=160x120:rate=25:duration="+fmt.Sprint(tt.seconds), tone(tt.seconds, 44100), tt.more)...)
			}
			parts := []*fileops.File{make("it's", "testsrc"), make("b", "smptebars"), make("c", "testsrc2")}
			out := must(t, engine(t).Merge(), nil, parts...)
			// The frames are bit-identical to those of the parts.
			var paths []string
			for _, f := range parts {
				paths = append(paths, onDisk(t, f))
			}
			if got, want := frames(t, tt.video, out), frames(t, tt.video, paths...); tt.ext != "mp3" && !slices.Equal(got, want) {
				t.Errorf("%d pictures or sounds, want %d; or they are others", len(got), len(want))
			}
			if tt.ext == "mp3" && probe(t, out).Streams[0].BitRate != "128000" {
				t.Errorf("the sound was encoded again: %s", probe(t, out).Streams[0].BitRate)
			}
			if seconds, _ := decodes(t, out); math.Abs(seconds-3*tt.seconds) > 0.1+tt.gaps {
				t.Errorf("%v seconds", seconds)
			}
		})
	}
	t.Run("other settings", func(t *testing.T) {
		t.Parallel()
		a := makeFile(t, "a.mp4", args(picture("160x120", 25, 1), "-c:v libx264 -pix_fmt yuv420p")...)
		b := makeFile(t, "b.mp4", args(picture("160x120", 25, 1), "-c:v libx264 -pix_fmt yuv420p -bf 0 -refs 1 -coder 0")...)
		if seconds, _ := decodes(t, must(t, engine(t).Merge(), nil, a, b)); math.Abs(seconds-2) > 0.1 {
			t.Errorf("%v seconds", seconds)
		}
	})
}
