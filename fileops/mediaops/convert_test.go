package mediaops_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func convertTo(to string, more ...any) fileops.Args {
	a := fileops.Args{"convert_to": to}
	for i := 0; i < len(more); i += 2 {
		a[more[i].(string)] = more[i+1]
	}
	return a
}

// hash returns a hash of one stream. The stream is decoded unless more copies it. Even
// the decoded hash of a lossy codec is equal only if the stream was copied.
func hash(t *testing.T, path, stream string, more ...string) string {
	t.Helper()
	a := append([]string{"-nostdin", "-v", "error", "-i", path, "-map", "0:" + stream, "-vsync", "passthrough"}, more...)
	out, err := exec.Command("ffmpeg", append(a, "-f", "md5", "-")...).Output()
	systest.NoError(t, err)
	return string(out)
}

// Streams that the target allows are copied bit by bit.
func TestCopies(t *testing.T) {
	t.Parallel()
	e := engine(t)
	h264 := args(picture("160x120", 25, 1), tone(1, 44100), "-pix_fmt yuv420p -c:v libx264 -c:a aac")
	for _, tt := range []struct {
		name, in string
		args     []string
		to       string
		video    bool
	}{
		{"mp4 to mkv", "in.mp4", h264, "mkv", true},
		{"mp4 to mov", "in.mp4", h264, "mov", true},
		{"mp4 to m4v", "in.mp4", h264, "m4v", true},
		{"mp4 to 3gp", "in.mp4", h264, "3gp", true},
		{"mp4 to ts", "in.mp4", h264, "ts", true},
		{"mp4 to flv", "in.mp4", h264, "flv", true},
		{"ts to mp4", "in.ts", h264, "mp4", true},
		{"flv to mp4", "in.flv", h264, "mp4", true},
		{"mp4 to m4a", "in.mp4", h264, "m4a", false},
		{"mkv to webm", "in.mkv", args(picture("160x120", 25, 1), tone(1, 48000), "-c:v libvpx -c:a libopus"), "webm", true},
		{"webm to mkv", "in.webm", args(picture("160x120", 25, 1), tone(1, 48000), "-c:v libvpx-vp9 -c:a libvorbis"), "mkv", true},
		{"webm to ogg", "in.webm", args(picture("160x120", 25, 1), tone(1, 48000), "-c:v libvpx -c:a libvorbis"), "ogg", false},
		{"mkv to opus", "in.mkv", args(picture("160x120", 25, 1), tone(1, 48000), "-c:v libx264 -c:a libopus"), "opus", false},
		{"avi to mp3", "in.avi", args(picture("160x120", 25, 1), tone(1, 44100), "-c:v mpeg4 -c:a libmp3lame"), "mp3", false},
		{"mpeg to ts", "in.mpg", args(picture("160x120", 25, 1), tone(1, 44100), "-c:v mpeg2video -c:a mp2"), "ts", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := makeFile(t, tt.in, tt.args...)
			out := must(t, e.Convert(), convertTo(tt.to), in)
			if tt.to != "ts" && filepath.Ext(tt.in) != ".ts" { // AAC is stored differently there
				if a, b := hash(t, onDisk(t, in), "a:0", "-c", "copy"), hash(t, out, "a:0", "-c", "copy"); a != b {
					t.Errorf("the sound was changed: %s, %s", a, b)
				}
			}
			if !tt.video {
				return
			}
			if a, b := hash(t, onDisk(t, in), "v:0"), hash(t, out, "v:0"); a != b {
				t.Errorf("the pictures were changed: %s, %s", a, b)
			}
		})
	}
}

func TestHEVC(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mkv", args(picture("160x120", 10, 1), "-pix_fmt yuv420p -c:v libx265 -x265-params log-level=none")...)
	p := probe(t, must(t, engine(t).Convert(), convertTo("mp4"), in))
	if s := p.Streams[0]; s.Codec != "hevc" || s.Tag != "hvc1" {
		t.Errorf("got %s tagged %s, want hevc as it was, tagged hvc1", s.Codec, s.Tag)
	}
}

// The index of a streamable mp4 is at the front.
func TestFastStart(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"mp4", "mov", "m4a"} {
		b := systest.ReadFile(t, must(t, engine(t).Convert(), convertTo(to), sample(t, format.MKV)))
		if moov, mdat := strings.Index(string(b), "moov"), strings.Index(string(b), "mdat"); moov < 0 || moov > mdat {
			t.Errorf("%s: moov at %d, mdat at %d", to, moov, mdat)
		}
	}
}

// The picture has odd sides, 4:4:4 colours and non-square pixels.
func TestOddPicture(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "odd.mkv", args("-f lavfi -i testsrc=size=163x121:rate=25:duration=1 -vf setsar=4/3 -pix_fmt yuv444p -c:v libx264")...)
	for _, to := range []string{"mp4", "mov", "mkv", "webm", "avi", "wmv", "flv", "mpeg", "3gp", "ts", "m4v", "gif", "jpg", "png"} {
		if to == "mkv" {
			continue
		}
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			out := must(t, engine(t).Convert(), convertTo(to), in)
			s := probe(t, out).Streams[0]
			want := [2]int{216, 120} // 163 × 4/3 = 217.3
			if to == "gif" || to == "jpg" || to == "png" {
				want = [2]int{217, 121}
			}
			if got := [2]int{s.Width, s.Height}; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
			if s.SAR != "" && s.SAR != "1:1" {
				t.Errorf("pixels are %s", s.SAR)
			}
			decodes(t, out)
		})
	}
}

func TestRotated(t *testing.T) {
	t.Parallel()
	lying := makeFile(t, "lying.mp4", args(picture("160x96", 25, 1), "-pix_fmt yuv420p -c:v libx264")...)
	in := makeFile(t, "in.mp4", "-i", onDisk(t, lying), "-c", "copy", "-metadata:s:v:0", "rotate=90")
	if len(probe(t, onDisk(t, in)).Streams[0].SideData) == 0 {
		t.Fatal("the fixture is not rotated")
	}
	for _, to := range []string{"mkv", "webm", "avi", "ts", "gif", "jpg"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			s := probe(t, must(t, engine(t).Convert(), convertTo(to), in)).Streams[0]
			if s.Width != 96 || s.Height != 160 {
				t.Errorf("the picture is %d × %d, want 96 × 160", s.Width, s.Height)
			}
		})
	}
	t.Run("mov keeps the mark", func(t *testing.T) {
		t.Parallel()
		s := probe(t, must(t, engine(t).Convert(), convertTo("mov"), in)).Streams[0]
		if s.Width != 160 || len(s.SideData) == 0 || fmt.Sprint(s.SideData[0]["rotation"]) == "0" {
			t.Errorf("%d wide with %v", s.Width, s.SideData)
		}
	})
	t.Run("compressed", func(t *testing.T) {
		t.Parallel()
		big := makeFile(t, "in.mp4", "-i", onDisk(t, in), "-c:v", "libx264", "-qp", "1", "-vf", "scale=96:160")
		s := probe(t, must(t, engine(t).Compress(), nil, big)).Streams[0]
		if s.Width != 96 || s.Height != 160 || len(s.SideData) > 0 {
			t.Errorf("the picture is %d × %d with %v", s.Width, s.Height, s.SideData)
		}
	})
}

// Sound that encoders do not accept directly.
// With -short, every input, every target and every bit rate is part of a conversion.
func TestOddSound(t *testing.T) {
	t.Parallel()
	inputs := map[string]*fileops.File{
		"8 kHz mono":     makeFile(t, "a.wav", args(tone(1, 8000))...),
		"11025 Hz":       makeFile(t, "b.wav", args(tone(1, 11025), "-ac 2")...),
		"96 kHz":         makeFile(t, "c.wav", args(tone(1, 96000), "-ac 2 -c:a pcm_s24le")...),
		"5.1":            makeFile(t, "d.wav", args(tone(1, 48000), "-af pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0")...),
		"5.1 side":       makeFile(t, "e.flac", args(tone(1, 48000), "-af pan=5.1(side)|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0")...),
		"12 channels":    makeFile(t, "f.wav", "-f", "lavfi", "-i", "aevalsrc=d=1:s=44100:exprs=0.1*sin(2000*t)"+strings.Repeat("|0.1*sin(2000*t)", 11)),
		"video, 5.1":     makeFile(t, "g.mkv", args(picture("160x120", 25, 1), tone(1, 48000), "-c:v libx264 -c:a flac -af pan=5.1(side)|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0")...),
		"video, 8 kHz":   makeFile(t, "h.mkv", args(picture("160x120", 25, 1), tone(1, 8000), "-c:v libx264 -c:a pcm_s16le")...),
		"video, 22 kHz ": makeFile(t, "i.avi", args(picture("160x120", 25, 1), tone(1, 22050), "-c:v mpeg4 -c:a libmp3lame")...),
	}
	for i, name := range slices.Sorted(maps.Keys(inputs)) {
		in := inputs[name]
		targets := []string{"mp3", "m4a", "aac", "ogg", "opus", "wma", "flac", "wav", "aiff"}
		if in.Format().Family() == format.Video {
			targets = []string{"mp4", "mov", "webm", "avi", "wmv", "flv", "mpeg", "3gp", "ts"}
		}
		for j, to := range targets {
			if in.Format() == format.Parse(to) {
				continue
			}
			for k, rate := range []int{0, 32, 320} {
				if testing.Short() && (i+j+k)%4 != 0 {
					continue
				}
				lossless := to == "flac" || to == "wav" || to == "aiff"
				if rate > 0 && (lossless || name != "8 kHz mono" && name != "5.1 side" && name != "video, 8 kHz") {
					continue
				}
				t.Run(fmt.Sprintf("%s to %s at %d", name, to, rate), func(t *testing.T) {
					t.Parallel()
					a := convertTo(to)
					if rate > 0 {
						a["audio_bitrate"] = rate
					}
					out := must(t, engine(t).Convert(), a, in)
					seconds, volume := decodes(t, out)
					if seconds < 0.9 || seconds > 1.25 || volume > -1 || volume < -60 {
						t.Errorf("%v seconds at %v dB", seconds, volume)
					}
				})
			}
		}
	}
}

// A file in high resolution keeps it if the target supports it.
func TestResolution(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.flac", args(tone(1, 96000), "-c:a flac -sample_fmt s32 -bits_per_raw_sample 24")...)
	for to, want := range map[string]string{"wav": "pcm_s24le 96000", "aiff": "pcm_s24be 96000", "mp3": "mp3 48000", "m4a": "aac 48000", "opus": "opus 48000"} {
		s := probe(t, must(t, engine(t).Convert(), convertTo(to), in)).Streams[0]
		if got := s.Codec + " " + s.SampleRate; got != want {
			t.Errorf("%s: got %s, want %s", to, got, want)
		}
	}
	// A lossy file does not gain resolution.
	s := probe(t, must(t, engine(t).Convert(), convertTo("wav"), sample(t, format.MP3))).Streams[0]
	if s.Codec != "pcm_s16le" {
		t.Errorf("mp3 became %s", s.Codec)
	}
}

func TestMissingStreams(t *testing.T) {
	t.Parallel()
	silent := makeFile(t, "silent.mp4", args(picture("160x120", 25, 1), "-c:v libx264")...)
	blind := makeFile(t, "blind.mp4", args(tone(1, 44100))...)
	for _, tt := range []struct {
		name, to string
		in       *fileops.File
		says     string // "" if it succeeds
	}{
		{"no sound for mp3", "mp3", silent, "no audio stream"},
		{"no sound for wav", "wav", silent, "no audio stream"},
		{"no sound for webm", "webm", silent, ""},
		{"no sound for avi", "avi", silent, ""},
		{"no picture for webm", "webm", blind, "no video stream"},
		{"no picture for gif", "gif", blind, "no video stream"},
		{"no picture for jpg", "jpg", blind, "no video stream"},
		{"no picture for mp3", "mp3", blind, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t, engine(t).Convert(), convertTo(tt.to), tt.in)
			if tt.says == "" {
				systest.Check(t, err)
				return
			}
			if !errors.Is(err, fileops.ErrUnsupportedInput) || !strings.Contains(fileops.Message(err), tt.says) {
				t.Errorf("got %v, want ErrUnsupportedInput that says %q", err, tt.says)
			}
		})
	}
}

func coverArt(t *testing.T) string {
	return onDisk(t, makeFile(t, "cover.jpg", args(picture("64x64", 1, 1), "-frames:v 1")...))
}

// An mp3 with a picture is sound. The picture is kept if the target can store it.
func TestCover(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "song.mp3", args(tone(2, 44100), "-i", coverArt(t), "-map 0 -map 1 -c:a libmp3lame -b:a 256k -c:v copy -disposition:v attached_pic -metadata title=Song")...)
	check := func(t *testing.T, out string, cover bool) {
		t.Helper()
		p := probe(t, out)
		if n := len(p.codecs("audio")); n != 1 {
			t.Errorf("%d sound tracks", n)
		}
		pictures := 0
		title := p.Format.Tags["title"] + p.Format.Tags["TITLE"]
		for _, s := range p.Streams {
			if s.Type == "video" {
				pictures++
				if s.Disposition["attached_pic"] != 1 || s.Codec != "mjpeg" || s.Width != 64 {
					t.Errorf("the cover is %+v", s)
				}
			}
			title += s.Tags["title"] + s.Tags["TITLE"]
		}
		if (pictures == 1) != cover {
			t.Errorf("%d covers", pictures)
		}
		if filepath.Ext(out) != ".aac" && title != "Song" {
			t.Errorf("title %q", title)
		}
	}
	for to, cover := range map[string]bool{"m4a": true, "flac": true, "aiff": true, "ogg": false, "opus": false, "wav": false, "wma": false, "aac": false} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			out := must(t, engine(t).Convert(), convertTo(to), in)
			check(t, out, cover)
			if to == "flac" || to == "m4a" || to == "ogg" { // and back
				check(t, must(t, engine(t).Convert(), convertTo("mp3"), fileops.Path(out)), cover)
			}
		})
	}
	t.Run("compressed", func(t *testing.T) {
		t.Parallel()
		out := must(t, engine(t).Compress(), nil, in)
		check(t, out, true)
		if a, b := size(t, onDisk(t, in)), size(t, out); b*100 > a*80 {
			t.Errorf("%d bytes became %d", a, b)
		}
	})
}

// The delay of the sound encoder shifts everything by up to 50 ms.
var subtitle = regexp.MustCompile(`00:00:00,2\d\d --> 00:00:00,8\d\d\nHello, world`)

func TestSubtitles(t *testing.T) {
	t.Parallel()
	srt := filepath.Join(t.TempDir(), "in.srt")
	systest.NoError(t, os.WriteFile(srt, []byte("1\n00:00:00,200 --> 00:00:00,800\nHello, world\n"), 0o600))
	mkv := makeFile(t, "in.mkv", args(picture("160x120", 25, 1), tone(1, 44100), "-i", srt, "-map 0 -map 1 -map 2 -c:v libx264 -pix_fmt yuv420p -c:a aac -c:s srt")...)
	for to, want := range map[string]string{"mp4": "mov_text", "mov": "mov_text", "webm": "webvtt", "avi": "", "ts": "", "flv": ""} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			out := must(t, engine(t).Convert(), convertTo(to), mkv)
			p := probe(t, out)
			if got := strings.Join(p.codecs("subtitle"), " "); got != want {
				t.Fatalf("subtitles are %q, want %q", got, want)
			}
			if want == "" {
				return
			}
			for range 2 { // once here, and once more after converting back
				text, err := exec.Command("ffmpeg", "-nostdin", "-v", "error", "-i", out, "-map", "0:s:0", "-f", "srt", "-").Output()
				if err != nil || !subtitle.Match(text) {
					t.Errorf("the text is %q: %v", text, err)
				}
				if filepath.Ext(out) != ".mkv" {
					out = must(t, engine(t).Convert(), convertTo("mkv"), fileops.Path(out))
				}
			}
		})
	}
}

func TestSoundTracks(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mkv", args(picture("160x120", 25, 1), tone(1, 44100), tone(1, 48000),
		"-map 0 -map 1 -map 2 -c:v libx264 -pix_fmt yuv420p -c:a:0 aac -c:a:1 libopus -metadata:s:a:1 language=fra -disposition:a:0 0 -disposition:a:1 default")...)
	for to, want := range map[string]string{"mp4": "aac aac", "webm": "opus opus", "avi": "mp3", "ogg": "vorbis", "opus": "opus"} {
		p := probe(t, must(t, engine(t).Convert(), convertTo(to), in))
		if got := strings.Join(p.codecs("audio"), " "); got != want {
			t.Errorf("%s: tracks are %q, want %q", to, got, want)
		}
		if to == "mp4" && p.Streams[1].Tags["language"] != "fra" {
			t.Errorf("the default track is not the first: %v", p.Streams[1].Tags)
		}
	}
}

// A recording with irregular frames and a time base of a millisecond must not become a
// video with a thousand frames per second.
func TestVariableFrameRate(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mkv", args("-f lavfi -i", "testsrc2=size=160x120:rate=1000:duration=2", "-vf", "select='eq(mod(n,37),0)+eq(mod(n,50),0)'", "-vsync vfr -c:v libx264 -pix_fmt yuv420p")...)
	for _, to := range []string{"avi", "wmv", "mpeg", "mp4", "webm", "gif"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			out := must(t, engine(t).Convert(), convertTo(to), in)
			if seconds, _ := decodes(t, out); seconds < 1.75 || seconds > 2.25 {
				t.Errorf("it lasts %v s", seconds)
			}
			if n, _ := strconv.Atoi(probe(t, out).Streams[0].Packets); n < 20 || n > 130 {
				t.Errorf("it has %d pictures", n)
			}
		})
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mkv", args(picture("160x120", 25, 0.04), tone(0.04, 44100), "-c:v libx264 -pix_fmt yuv420p -c:a pcm_s16le")...)
	for _, to := range []string{"mp4", "mov", "webm", "avi", "wmv", "flv", "mpeg", "3gp", "ts", "gif", "webp", "jpg", "png", "mp3", "m4a", "aac", "ogg", "opus", "wma", "flac", "wav", "aiff"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			out := must(t, engine(t).Convert(), convertTo(to), in)
			if to != "webp" {
				decodes(t, out)
			}
		})
	}
}

// A video with a single frame, as some programs export it.
func TestStillVideo(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mkv", args(picture("160x120", 1, 1), "-c:v png -frames:v 1")...)
	for _, to := range []string{"mp4", "webm", "jpg", "png", "gif"} {
		out := must(t, engine(t).Convert(), convertTo(to), in)
		if d := difference(pixels(t, onDisk(t, in), 0, 40, 30), pixels(t, out, 0, 40, 30)); d > 16 { // 4:2:0 loses half of the colours
			t.Errorf("%s differs by %v", to, d)
		}
	}
}

func TestPoster(t *testing.T) {
	t.Parallel()
	// Half a second of black, then a picture, then one second of another.
	in := makeFile(t, "in.mp4", args("-f lavfi -i color=black:size=160x120:rate=25:duration=0.5", picture("160x120", 25, 2),
		"-f lavfi -i color=red:size=160x120:rate=25:duration=1", "-filter_complex [0][1][2]concat=n=3 -c:v libx264 -pix_fmt yuv420p")...)
	for _, to := range []string{"jpg", "png"} {
		typical := pixels(t, must(t, engine(t).Convert(), convertTo(to), in), 0, 40, 30)
		if d := difference(typical, make([]byte, len(typical))); d < 60 {
			t.Errorf("%s: the picture is black (%v)", to, d)
		}
	}
	at := func(seconds float64) []byte {
		return pixels(t, must(t, engine(t).Convert(), convertTo("png", "time", seconds), in), 0, 40, 30)
	}
	for seconds, elsewhere := range map[float64]float64{0: 0.7, 1.5: 2, 3.2: 2} {
		got := at(seconds)
		d := difference(got, pixels(t, onDisk(t, in), seconds, 40, 30))
		if other := difference(got, pixels(t, onDisk(t, in), elsewhere, 40, 30)); d > 16 || d > other/2 {
			t.Errorf("the picture at %v s differs by %v, another one by %v", seconds, d, other)
		}
	}
	last := at(3.499) // no frame starts after this
	if last[0] < 200 || last[1] > 50 {
		t.Errorf("the last picture is not red: %v", last[:3])
	}
	if _, err := run(t, engine(t).Convert(), convertTo("jpg", "time", 3.6), in); !errors.Is(err, fileops.ErrUnsupportedInput) {
		t.Errorf("after the end: %v", err)
	}
	if s := probe(t, must(t, engine(t).Convert(), convertTo("jpg", "width", 80), in)).Streams[0]; s.Width != 80 || s.Height != 60 {
		t.Errorf("%d × %d", s.Width, s.Height)
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mp4", args(picture("320x240", 25, 3), tone(3, 44100), "-ac 2 -c:v libx264 -pix_fmt yuv420p -g 250 -c:a aac")...)
	t.Run("part of a video", func(t *testing.T) {
		t.Parallel()
		out := must(t, engine(t).Convert(), convertTo("mov", "start", 1.0, "duration", 1.2), in)
		if seconds, _ := decodes(t, out); seconds < 1.1 || seconds > 1.4 {
			t.Errorf("it lasts %v s", seconds)
		}
		if d := difference(pixels(t, out, 0.2, 40, 30), pixels(t, onDisk(t, in), 1.2, 40, 30)); d > 8 {
			t.Errorf("it does not begin where it should: difference %v", d)
		}
	})
	t.Run("the end of the sound", func(t *testing.T) {
		t.Parallel()
		for _, to := range []string{"mp3", "m4a", "wav"} {
			if seconds, _ := decodes(t, must(t, engine(t).Convert(), convertTo(to, "start", 2), in)); seconds < 0.85 || seconds > 1.15 {
				t.Errorf("%s lasts %v s", to, seconds)
			}
		}
	})
	t.Run("start after the end", func(t *testing.T) {
		t.Parallel()
		if _, err := run(t, engine(t).Convert(), convertTo("mp3", "start", 5), in); !errors.Is(err, fileops.ErrUnsupportedInput) {
			t.Error(err)
		}
	})
	t.Run("smaller", func(t *testing.T) {
		t.Parallel()
		s := probe(t, must(t, engine(t).Convert(), convertTo("mkv", "width", 200, "height", 100, "fps", 10), in)).Streams[0]
		if s.Width != 132 || s.Height != 100 || s.AvgFrameRate != "10/1" {
			t.Errorf("%d × %d at %s", s.Width, s.Height, s.AvgFrameRate)
		}
	})
	t.Run("never larger", func(t *testing.T) {
		t.Parallel()
		if s := probe(t, must(t, engine(t).Convert(), convertTo("webm", "width", 2000), in)).Streams[0]; s.Width != 320 {
			t.Errorf("%d wide", s.Width)
		}
	})
	t.Run("bit rate", func(t *testing.T) {
		t.Parallel()
		for _, to := range []string{"mp3", "wma"} {
			p := probe(t, must(t, engine(t).Convert(), convertTo(to, "audio_bitrate", 64), in))
			if p.Streams[0].BitRate != "64000" {
				t.Errorf("%s has %s bit/s", to, p.Streams[0].BitRate)
			}
		}
		if _, err := run(t, engine(t).Convert(), convertTo("mp3", "audio_bitrate", 500), in); err == nil {
			t.Error("500 kbit/s are accepted")
		}
	})
}

func TestAnimation(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mp4", args(picture("640x360", 25, 2), tone(2, 44100), "-c:v libx264 -pix_fmt yuv420p")...)
	t.Run("gif", func(t *testing.T) {
		t.Parallel()
		out := must(t, engine(t).Convert(), convertTo("gif"), in)
		s := probe(t, out).Streams[0]
		if s.Width != 480 || s.Height != 270 || s.Packets != "25" {
			t.Errorf("%d × %d, %s pictures", s.Width, s.Height, s.Packets)
		}
		if seconds, _ := decodes(t, out); seconds < 1.9 || seconds > 2.1 {
			t.Errorf("it lasts %v s", seconds)
		}
		if d := difference(pixels(t, out, 1, 48, 27), pixels(t, onDisk(t, in), 1, 48, 27)); d > 12 {
			t.Errorf("the picture differs by %v", d)
		}
		b, err := os.ReadFile(out)
		if err != nil || !strings.Contains(string(b), "NETSCAPE2.0\x03\x01\x00\x00\x00") {
			t.Errorf("it does not loop: %v", err)
		}
	})
	t.Run("gif by parameters", func(t *testing.T) {
		t.Parallel()
		s := probe(t, must(t, engine(t).Convert(), convertTo("gif", "width", 100, "fps", 5, "start", 1), in)).Streams[0]
		if s.Width != 100 || s.Height != 56 || s.Packets != "5" {
			t.Errorf("%d × %d, %s pictures", s.Width, s.Height, s.Packets)
		}
	})
	t.Run("webp", func(t *testing.T) {
		t.Parallel()
		out, err := exec.Command("vipsheader", "-a", must(t, engine(t).Convert(), convertTo("webp"), in)).Output()
		if err != nil || !strings.Contains(string(out), "n-pages: 25\n") || !strings.Contains(string(out), "width: 640\n") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("too long", func(t *testing.T) {
		t.Parallel()
		long := makeFile(t, "long.mkv", args(picture("16x16", 1, 301), "-c:v libx264 -preset ultrafast")...)
		if _, err := run(t, engine(t).Convert(), convertTo("gif"), long); !errors.Is(err, fileops.ErrLimit) {
			t.Error(err)
		}
		if s := probe(t, must(t, engine(t).Convert(), convertTo("gif", "duration", 5), long)).Streams[0]; s.Packets != "5" {
			t.Errorf("%s pictures", s.Packets)
		}
	})
}

// Transparent parts of a gif become white.
func TestTransparentGIF(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.gif", args("-f lavfi -i testsrc=size=161x121:rate=10:duration=1", "-filter_complex",
		"[0]format=rgba,geq=r=255:g=0:b=0:a='if(lt(X,80),255,0)',split[a][b];[a]palettegen[p];[b][p]paletteuse")...)
	for _, to := range []string{"mp4", "webm", "mov", "mkv"} {
		out := must(t, engine(t).Convert(), convertTo(to), in)
		px := pixels(t, out, 0.5, 16, 12)
		left, right := px[3*2:3*3], px[3*13:3*14]
		if left[0] < 220 || left[1] > 40 || slices.Min(right) < 220 {
			t.Errorf("%s: left %v, right %v", to, left, right)
		}
		s := probe(t, out).Streams[0]
		if s.Width != 160 || s.Height != 120 || s.AvgFrameRate != "10/1" {
			t.Errorf("%s: %d × %d at %s", to, s.Width, s.Height, s.AvgFrameRate)
		}
	}
}

func TestInterlaced(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mpg", args(picture("160x120", 50, 1), "-vf interlace -c:v mpeg2video -flags +ilme+ildct -b:v 2M")...)
	out := must(t, engine(t).Convert(), convertTo("mp4"), in)
	b, err := exec.Command("ffprobe", "-v", "error", "-show_entries", "stream=field_order,avg_frame_rate", "-of", "default=nw=1", out).Output()
	if err != nil || !strings.Contains(string(b), "field_order=progressive") || !strings.Contains(string(b), "avg_frame_rate=25/1") {
		t.Errorf("%v: %s", err, b)
	}
}

// HDR is mapped to the range of an ordinary screen.
func TestHDR(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mkv", args("-f lavfi -i testsrc2=size=160x120:rate=10:duration=1", "-vf",
		"format=yuv444p,setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv,zscale=t=linear:npl=203,format=gbrpf32le,"+
			"zscale=p=2020:t=smpte2084:m=2020_ncl:r=tv:npl=203,format=yuv420p10le",
		"-c:v libx265 -x265-params log-level=none")...)
	sdr := makeFile(t, "sdr.mp4", args("-f lavfi -i testsrc2=size=160x120:rate=10:duration=1", "-c:v libx264 -pix_fmt yuv420p")...)
	out := must(t, engine(t).Convert(), convertTo("webm"), in)
	s := probe(t, out).Streams[0]
	if s.PixFmt != "yuv420p" || s.Transfer != "bt709" {
		t.Errorf("%s, transfer %s", s.PixFmt, s.Transfer)
	}
	mean := func(path string) (m float64) {
		px := pixels(t, path, 0.5, 40, 30)
		return difference(px, make([]byte, len(px)))
	}
	if a, b := mean(out), mean(onDisk(t, sdr)); a < b*0.6 || a > b*1.2 {
		t.Errorf("mean brightness %v, want about %v", a, b)
	}
}
