package mediaops_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// quarters makes a video whose corners are red, green, blue and white (clockwise from
// the top left), with a key frame every half second.
func quarters(t *testing.T, name, more string) *fileops.File {
	t.Helper()
	graph := "color=red:s=80x60:r=25:d=2[a];color=lime:s=80x60:r=25:d=2[b];color=white:s=80x60:r=25:d=2[c];color=blue:s=80x60:r=25:d=2[d];[a][b]hstack[x];[c][d]hstack[y];[x][y]vstack"
	return makeFile(t, name, args("-f lavfi -i", graph, tone(2, 44100), "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 12 -keyint_min 12 -ac 2", more)...)
}

// corners returns the colours of the corners of a picture, clockwise from the top left:
// one letter for each.
func corners(t *testing.T, path string, at float64) string {
	t.Helper()
	px := pixels(t, path, at, 8, 8)
	var out strings.Builder
	for _, i := range []int{1*8 + 1, 1*8 + 6, 6*8 + 6, 6*8 + 1} {
		c := px[3*i : 3*i+3]
		letter := ""
		for k, l := range []string{"r", "g", "b"} {
			if c[k] > 128 {
				letter += l
			}
		}
		letter = cmp.Or(letter, "k")
		if letter == "rgb" {
			letter = "w"
		}
		out.WriteString(letter)
	}
	return out.String()
}

func TestPictureParameters(t *testing.T) {
	t.Parallel()
	in := quarters(t, "in.mp4", "-c:a aac")
	for _, tt := range []struct {
		name    string
		to      string
		more    []any
		size    [2]int
		corners string
		codec   string
	}{
		{"as it is", "mkv", nil, [2]int{160, 120}, "rgbw", "h264"},
		{"quarter turn", "mp4", []any{"rotate", 90}, [2]int{120, 160}, "wrgb", "h264"},
		{"half turn", "mov", []any{"rotate", 180}, [2]int{160, 120}, "bwrg", "h264"},
		{"turn to the left", "webm", []any{"rotate", 270}, [2]int{120, 160}, "gbwr", "vp9"},
		{"turned and smaller", "avi", []any{"rotate", 90, "height", 80}, [2]int{60, 80}, "wrgb", "mpeg4"},
		{"stretched", "mp4", []any{"width", 200, "height", 50, "fit", "fill"}, [2]int{200, 50}, "rgbw", "h264"},
		{"cropped", "mp4", []any{"width", 100, "height", 200, "fit", "cover"}, [2]int{100, 200}, "rgbw", "h264"},
		{"with borders", "mp4", []any{"width", 300, "height", 120, "fit", "contain"}, [2]int{300, 120}, "kkkk", "h264"},
		{"with red borders", "mp4", []any{"width", 300, "height", 120, "fit", "contain", "background", "red"}, [2]int{300, 120}, "rrrr", "h264"},
		{"HEVC", "mp4", []any{"video_codec", "hevc"}, [2]int{160, 120}, "rgbw", "hevc"},
		{"AV1", "mp4", []any{"video_codec", "av1", "duration", 0.5}, [2]int{160, 120}, "rgbw", "av1"},
		{"VP8", "webm", []any{"video_codec", "vp8"}, [2]int{160, 120}, "rgbw", "vp8"},
		{"VP9 in Matroska", "mkv", []any{"video_codec", "vp9"}, [2]int{160, 120}, "rgbw", "vp9"},
		{"picture", "png", []any{"rotate", 90}, [2]int{120, 160}, "wrgb", "png"},
		{"animation", "gif", []any{"rotate", 90, "width", 60, "end", 0.5}, [2]int{60, 80}, "wrgb", "gif"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := must(t, engine(t).Convert(), convertTo(tt.to, tt.more...), in)
			p := probe(t, out)
			s := p.Streams[0]
			if got := [2]int{s.Width, s.Height}; got != tt.size || s.Codec != tt.codec {
				t.Errorf("%s of %v, want %s of %v", s.Codec, got, tt.codec, tt.size)
			}
			if s.Codec == "hevc" && s.Tag != "hvc1" {
				t.Errorf("the tag is %s", s.Tag)
			}
			if got := corners(t, out, map[bool]float64{false: 0.2}[tt.to == "png"]); got != tt.corners {
				t.Errorf("corners %s, want %s", got, tt.corners)
			}
		})
	}
}

// noisy makes a video of random pixels and sound, which needs many bytes.
func noisy(t *testing.T) *fileops.File {
	t.Helper()
	return makeFile(t, "noisy.mp4", args("-f lavfi -i nullsrc=s=160x120:r=25:d=3 -f lavfi -i anoisesrc=d=3:a=0.3 -vf geq=random(1)*30+110:128:128",
		"-pix_fmt yuv420p -c:v libx264 -preset ultrafast -crf 8 -c:a aac -b:a 128k")...)
}

func TestBitRateAndSize(t *testing.T) {
	t.Parallel()
	in := noisy(t)
	if n := size(t, onDisk(t, in)); n < 400_000 {
		t.Fatalf("the fixture has only %d bytes", n)
	}
	for _, tt := range []struct {
		to    string
		bytes int64
		more  []any
	}{
		{"mp4", 150_000, nil}, {"mkv", 200_000, []any{"video_codec", "hevc"}}, {"webm", 150_000, nil}, {"avi", 200_000, nil}, {"wmv", 250_000, nil},
		{"mp4", 100_000, []any{"end", 1.5, "mute", true}}, {"mp4", 250_000, []any{"video_codec", "av1"}},
	} {
		t.Run(fmt.Sprint(tt.to, tt.bytes), func(t *testing.T) {
			t.Parallel()
			out := must(t, engine(t).Convert(), convertTo(tt.to, append(tt.more, "max_bytes", tt.bytes)...), in)
			if n := size(t, out); n > tt.bytes || n < tt.bytes/4 {
				t.Errorf("%d bytes, want at most %d and more than a quarter of them", n, tt.bytes)
			}
			decodes(t, out)
		})
	}
	t.Run("large enough", func(t *testing.T) {
		t.Parallel()
		out := must(t, engine(t).Convert(), convertTo("mkv", "max_bytes", 10_000_000), in)
		if a, b := hash(t, onDisk(t, in), "v:0"), hash(t, out, "v:0"); a != b {
			t.Error("the pictures were encoded although the file fits")
		}
	})
	t.Run("bit rate", func(t *testing.T) {
		t.Parallel()
		for _, to := range []string{"mp4", "webm"} {
			out := must(t, engine(t).Convert(), convertTo(to, "video_bitrate", 400, "mute", true), in)
			if kbit := float64(size(t, out)) * 8 / 3 / 1000; kbit < 250 || kbit > 550 {
				t.Errorf("%s: %.0f kbit/s", to, kbit)
			}
		}
	})
	t.Run("quality", func(t *testing.T) {
		t.Parallel()
		good := size(t, must(t, engine(t).Convert(), convertTo("mp4", "crf", 25), in))
		bad := size(t, must(t, engine(t).Convert(), convertTo("mp4", "crf", 45), in))
		if bad > good/2 {
			t.Errorf("%d and %d bytes", good, bad)
		}
	})
	t.Run("too small", func(t *testing.T) {
		t.Parallel()
		var p *fileops.ParamError
		if _, err := run(t, engine(t).Convert(), convertTo("mp4", "max_bytes", 10_000), in); !errors.As(err, &p) || p.Param != "max_bytes" {
			t.Errorf("got %v", err)
		}
	})
}

// A part has the requested length to a frame, and starts with the requested frame. It is
// only copied if it starts with a key frame.
func TestTrim(t *testing.T) {
	t.Parallel()
	make := func(name, more string) *fileops.File {
		return makeFile(t, name, args(picture("160x120", 25, 4), tone(4, 44100), "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac -g 25 -keyint_min 25", more)...)
	}
	in := make("in.mp4", "-bf 2 -preset fast")
	all := frames(t, true, onDisk(t, in))
	for _, tt := range []struct {
		from, to string
		more     []any
		start    float64
		seconds  float64
		copied   bool
	}{
		{"mp4", "mp4", []any{"start", 1, "end", 3}, 1, 2, true},
		{"mp4", "mkv", []any{"start", 1, "end", 3}, 1, 2, true},
		{"mp4", "mp4", []any{"start", 1.2, "duration", 0.8}, 1.2, 0.8, false},
		{"mp4", "mov", []any{"start", 0.52, "end", 1}, 0.52, 0.48, false},
		{"mkv", "mkv", []any{"start", 2}, 2, 2, false}, // its frames come 23 ms later
		{"mkv", "mp4", []any{"start", 2.04}, 2.04, 1.96, false},
		{"mp4", "webm", []any{"start", 1, "end", 1.6}, 1, 0.6, false},
		{"ts", "ts", []any{"start", 1, "end", 2}, 1, 1, false},
		{"mp4", "mp4", []any{"end", 1.4}, 0, 1.4, false},
		{"mp4", "mov", []any{"end", 2}, 0, 2, true},
		{"mp4", "m4v", []any{"start", 3, "end", 9}, 3, 1, true},
	} {
		t.Run(fmt.Sprint(tt.from, tt.to, tt.more), func(t *testing.T) {
			t.Parallel()
			f := in
			if tt.from != "mp4" {
				f = makeFile(t, "in."+tt.from, "-i", onDisk(t, in), "-c", "copy")
			}
			out := must(t, engine(t).Convert(), convertTo(tt.to, tt.more...), f)
			video := probe(t, out).Streams[0]
			n, _ := strconv.Atoi(video.Packets)
			if want := int(math.Round(tt.seconds * 25)); n < want-1 || n > want+1 {
				t.Errorf("%d frames, want %d", n, want)
			}
			if d := difference(pixels(t, out, 0, 80, 60), pixels(t, onDisk(t, in), tt.start, 80, 60)); d > 5 {
				t.Errorf("the first frame differs by %v", d)
			}
			if seconds, volume := decodes(t, out); math.Abs(seconds-tt.seconds) > 0.1 || volume > -1 || volume < -60 {
				t.Errorf("%v seconds at %v dB", seconds, volume)
			}
			first := frames(t, true, out)[0]
			if copied := first == all[int(math.Round(tt.start*25))]; copied != tt.copied {
				t.Errorf("copied: %t", copied)
			}
		})
	}
}

var (
	integrated = regexp.MustCompile(`(?s)Integrated loudness:.*?I: +(-?[\d.]+) LUFS`)
	truePeak   = regexp.MustCompile(`(?s)True peak:.*?Peak: +(-?[\d.]+|-inf) dBFS`)
)

// loudnessOf returns the integrated loudness in LUFS and the true peak in dBTP.
func loudnessOf(t *testing.T, path string) (level, peak float64) {
	t.Helper()
	out, err := exec.Command("ffmpeg", "-nostdin", "-hide_banner", "-i", path, "-map", "0:a:0", "-af", "ebur128=peak=true", "-f", "null", "-").CombinedOutput()
	systest.NoError(t, err)
	i := integrated.FindAllStringSubmatch(string(out), -1)
	p := truePeak.FindAllStringSubmatch(string(out), -1)
	if len(i) == 0 || len(p) == 0 {
		t.Fatalf("no loudness: %s", out)
	}
	level, _ = strconv.ParseFloat(i[len(i)-1][1], 64)
	peak, _ = strconv.ParseFloat(p[len(p)-1][1], 64)
	return level, peak
}

// volumeOf returns the mean volume in dB of a part of a file.
func volumeOf(t *testing.T, path string, start, seconds float64) float64 {
	t.Helper()
	out, err := exec.Command("ffmpeg", "-nostdin", "-hide_banner", "-i", path, "-map", "0:a:0", "-af",
		fmt.Sprintf("atrim=start=%g:duration=%g,volumedetect", start, seconds), "-f", "null", "-").CombinedOutput()
	systest.NoError(t, err)
	_, after, ok := strings.Cut(string(out), "mean_volume: ")
	if !ok {
		return math.Inf(-1)
	}
	v, _ := strconv.ParseFloat(strings.Fields(after)[0], 64)
	return v
}

func TestSoundParameters(t *testing.T) {
	t.Parallel()
	e := engine(t)
	wav := makeFile(t, "in.wav", args(tone(4, 44100), "-ac 2 -af volume=0.5")...)
	film := quarters(t, "in.mp4", "-c:a aac")
	before := volumeOf(t, onDisk(t, wav), 0, 4)
	for _, tt := range []struct {
		name string
		in   *fileops.File
		to   string
		more []any
		want string // codec, rate and channels
	}{
		{"sampling rate", wav, "wav", []any{"sample_rate", 22050}, "pcm_s16le 22050 2"},
		{"mono", wav, "mp3", []any{"channels", 1}, "mp3 44100 1"},
		{"telephone", wav, "m4a", []any{"channels", 1, "sample_rate", 8000, "audio_bitrate", 320}, "aac 8000 1"},
		{"low rate, high bit rate", wav, "ogg", []any{"sample_rate", 8000, "audio_bitrate", 320}, "vorbis 8000 2"},
		{"low rate, high bit rate", wav, "mp3", []any{"sample_rate", 8000, "audio_bitrate", 320}, "mp3 8000 2"},
		{"lossless", wav, "m4a", []any{"audio_codec", "alac"}, "alac 44100 2"},
		{"of a film", film, "mp4", []any{"sample_rate", 48000, "channels", 1}, "aac 48000 1"},
		{"of a film", film, "mp4", []any{"audio_codec", "ac3"}, "ac3 44100 2"},
		{"of a film", film, "mkv", []any{"audio_codec", "flac"}, "flac 44100 2"},
		{"of a film", film, "webm", []any{"audio_codec", "vorbis"}, "vorbis 44100 2"},
	} {
		t.Run(tt.name+" "+tt.to, func(t *testing.T) {
			t.Parallel()
			out := must(t, e.Convert(), convertTo(tt.to, tt.more...), tt.in)
			for _, s := range probe(t, out).Streams {
				if got := fmt.Sprintf("%s %s %d", s.Codec, s.SampleRate, s.Channels); s.Type == "audio" && got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			}
			decodes(t, out)
		})
	}
	t.Run("volume", func(t *testing.T) {
		t.Parallel()
		for factor, want := range map[float64]float64{0.5: -6, 1.5: 3.5} {
			out := must(t, e.Convert(), convertTo("wav", "volume", factor), wav)
			if got := volumeOf(t, out, 0, 4) - before; math.Abs(got-want) > 0.5 {
				t.Errorf("%v: %.1f dB, want %v", factor, got, want)
			}
		}
		if got := volumeOf(t, must(t, e.Convert(), convertTo("mp3", "volume", 0), wav), 0, 4); got > -80 {
			t.Errorf("0: %v dB", got)
		}
	})
	t.Run("fades", func(t *testing.T) {
		t.Parallel()
		for _, to := range []string{"wav", "mp3", "flac"} {
			out := must(t, e.Convert(), convertTo(to, "fade_in", 1, "fade_out", 1.5, "start", 0.5), wav) // 3.5 seconds
			middle := volumeOf(t, out, 1.2, 0.6)
			for at, want := range map[float64]float64{0: -25, 0.45: -6, 2.7: -6, 3.3: -20} {
				if got := volumeOf(t, out, at, 0.1) - middle; math.Abs(got-want) > 4 {
					t.Errorf("%s at %v: %.1f dB of the middle, want about %v", to, at, got, want)
				}
			}
			if math.Abs(middle-before) > 0.5 {
				t.Errorf("%s: the middle has %v dB, before %v", to, middle, before)
			}
		}
		var p *fileops.ParamError
		if _, err := run(t, e.Convert(), convertTo("wav", "fade_in", 3, "fade_out", 3), wav); !errors.As(err, &p) || p.Param != "fade_out" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("tags and cover stay", func(t *testing.T) {
		t.Parallel()
		song := makeFile(t, "song.mp3", args(tone(1, 44100), "-i", coverArt(t), "-map 0 -map 1 -c:a libmp3lame -c:v copy -disposition:v attached_pic -metadata title=Song")...)
		p := probe(t, must(t, e.Convert(), convertTo("mp3", "audio_bitrate", 64, "fade_out", 0.5), song))
		if len(p.codecs("video")) != 1 || p.Format.Tags["title"] != "Song" || p.Streams[0].BitRate != "64000" {
			t.Errorf("%+v", p)
		}
	})
}

func TestLoudness(t *testing.T) {
	t.Parallel()
	e := engine(t)
	quiet := makeFile(t, "quiet.wav", args("-f lavfi -i anoisesrc=d=4:c=pink:a=0.05:seed=3 -ac 2")...)
	// Short peaks over a quiet ground, which a constant gain would clip.
	peaks := makeFile(t, "peaks.wav", "-f", "lavfi", "-i", "aevalsrc='0.03*sin(2000*t)+if(lt(mod(t,1),0.01),0.8*sin(3000*t),0)':d=6:s=48000")
	film := makeFile(t, "film.mkv", args(picture("160x120", 10, 4), "-i", onDisk(t, quiet), "-i", onDisk(t, peaks), "-map 0 -map 1 -map 2 -t 4 -c:v libx264 -c:a flac")...)
	for _, tt := range []struct {
		name   string
		in     *fileops.File
		to     string
		target float64
		slack  float64
	}{
		{"louder", quiet, "wav", -23, 0.3}, {"louder", quiet, "mp3", -16, 0.5}, {"louder", quiet, "opus", -18, 0.5},
		{"mono", quiet, "m4a", -20, 0.5}, {"peaks", peaks, "flac", -16, 1.5}, {"film", film, "mp4", -20, 0.5},
	} {
		t.Run(tt.name+" "+tt.to, func(t *testing.T) {
			t.Parallel()
			a := convertTo(tt.to, "loudness", tt.target)
			if tt.name == "mono" {
				a["channels"] = 1
			}
			out := must(t, e.Convert(), a, tt.in)
			level, peak := loudnessOf(t, out)
			if math.Abs(level-tt.target) > tt.slack || peak > -0.5 {
				t.Errorf("%v LUFS with a peak of %v, want %v", level, peak, tt.target)
			}
			for _, s := range probe(t, out).Streams {
				if s.Type == "audio" && s.SampleRate != "48000" && tt.name == "peaks" {
					t.Errorf("the sampling rate is %s", s.SampleRate)
				}
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		in := makeFile(t, "in.wav", args("-f lavfi -i anullsrc=d=1")...)
		if v := volumeOf(t, must(t, e.Convert(), convertTo("wav", "loudness", -16), in), 0, 1); v > -80 {
			t.Errorf("%v dB", v)
		}
	})
}

func TestTrackParameters(t *testing.T) {
	t.Parallel()
	e := engine(t)
	texts := filepath.Join(t.TempDir(), "in.srt")
	systest.NoError(t, os.WriteFile(texts, []byte("1\n00:00:00,500 --> 00:00:01,500\n{\\an5}█████████\n"), 0o600))
	other := filepath.Join(t.TempDir(), "b.srt")
	systest.NoError(t, os.WriteFile(other, []byte("1\n00:00:00,100 --> 00:00:01,900\nOther\n"), 0o600))
	in := makeFile(t, "in.mkv", args("-f lavfi -i color=black:s=320x240:r=25:d=2", tone(2, 44100), "-f lavfi -i anullsrc=d=2 -i", texts, "-i", other,
		"-map 0 -map 1 -map 2 -map 3 -map 4 -c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac -c:s srt -metadata:s:s:1 language=fra")...)
	for _, tt := range []struct {
		name             string
		to               string
		more             []any
		sound, subtitles int
		warning          string
	}{
		{"all", "mp4", nil, 2, 2, ""},
		{"muted", "mp4", []any{"mute", true}, 0, 2, ""},
		{"one track", "mp4", []any{"audio_track", 2}, 1, 2, ""},
		{"no subtitles", "mp4", []any{"subtitles", "drop"}, 2, 0, ""},
		{"one of the subtitles", "webm", []any{"subtitle_track", 2}, 2, 1, ""},
		{"burnt in", "mp4", []any{"subtitles", "burn"}, 2, 0, "streams_dropped: 1 subtitle track was left out"},
		{"only this burnt in", "mp4", []any{"subtitles", "burn", "subtitle_track", 1}, 2, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := probe(t, must(t, e.Convert(), convertTo(tt.to, tt.more...), in))
			if a, s := len(p.codecs("audio")), len(p.codecs("subtitle")); a != tt.sound || s != tt.subtitles {
				t.Errorf("%d sound tracks and %d subtitles", a, s)
			}
			if got := warned(t, e.Convert(), convertTo(tt.to, tt.more...), in); !strings.HasPrefix(got, tt.warning) || tt.warning == "" && got != "" {
				t.Errorf("warnings %q", got)
			}
		})
	}
	t.Run("second track", func(t *testing.T) {
		t.Parallel()
		for track, silent := range map[int]bool{1: false, 2: true} {
			if v := volumeOf(t, must(t, e.Convert(), convertTo("wav", "audio_track", track), in), 0, 2); (v < -80) != silent {
				t.Errorf("track %d: %v dB", track, v)
			}
		}
	})
	t.Run("subtitles are drawn in time", func(t *testing.T) {
		t.Parallel()
		bright := func(path string, at float64) float64 {
			px := pixels(t, path, at, 16, 12)
			return difference(px, make([]byte, len(px)))
		}
		for _, start := range []float64{0, 0.3} {
			out := must(t, e.Convert(), convertTo("mp4", "subtitles", "burn", "subtitle_track", 1, "start", start), in)
			for at, drawn := range map[float64]bool{0.44: false, 0.6: true, 1.4: true, 1.6: false} {
				if v := bright(out, at-start); (v > 3) != drawn {
					t.Errorf("from %v, at %v: brightness %v", start, at, v)
				}
			}
		}
	})
}

// Parameters that contradict each other, or do not fit the file.
func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	e := engine(t)
	film := quarters(t, "in.mp4", "-c:a aac")
	song := makeFile(t, "in.mp3", args(tone(1, 44100))...)
	for _, tt := range []struct {
		in    *fileops.File
		to    string
		more  []any
		param string
	}{
		{film, "mp4", nil, "convert_to"},
		{song, "mp3", nil, "convert_to"},
		{film, "mp4", []any{"fit", "cover"}, "convert_to"},
		{film, "mkv", []any{"fit", "cover", "width", 100}, "fit"},
		{film, "mkv", []any{"start", 1, "end", 1}, "end"},
		{film, "mkv", []any{"duration", 1, "end", 1}, "end"},
		{film, "mkv", []any{"crf", 20, "video_bitrate", 500}, "video_bitrate"},
		{film, "mkv", []any{"crf", 60}, "crf"},
		{film, "mkv", []any{"crf", 0}, "crf"},
		{film, "avi", []any{"crf", 20}, "crf"},
		{film, "mp4", []any{"video_codec", "vp9"}, "video_codec"},
		{film, "mkv", []any{"mute", true, "volume", 2}, "volume"},
		{film, "mkv", []any{"volume", 2, "loudness", -20}, "loudness"},
		{film, "mkv", []any{"audio_codec", "flac", "audio_bitrate", 128}, "audio_bitrate"},
		{film, "mkv", []any{"audio_track", 2}, "audio_track"},
		{film, "mkv", []any{"subtitle_track", 1}, "subtitle_track"},
		{film, "mkv", []any{"subtitles", "burn"}, "subtitles"},
		{film, "mkv", []any{"subtitles", "drop", "subtitle_track", 1}, "subtitle_track"},
		{song, "m4a", []any{"sample_rate", 12345}, "sample_rate"},
		{song, "opus", []any{"sample_rate", 48000}, "sample_rate"},
		{song, "wav", []any{"channels", 3}, "channels"},
		{song, "wav", []any{"rotate", 90}, "rotate"},
	} {
		t.Run(fmt.Sprint(tt.to, tt.more), func(t *testing.T) {
			t.Parallel()
			_, err := run(t, e.Convert(), convertTo(tt.to, tt.more...), tt.in)
			var p *fileops.ParamError
			if !errors.As(err, &p) || p.Param != tt.param {
				t.Errorf("got %v", err)
			}
		})
	}
}
