package mediaops_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

var levels = []string{"less_compression", "recommended_compression", "extreme_compression"}

func TestCompressVideo(t *testing.T) {
	t.Parallel()
	for row, tt := range []struct {
		file, codecs, want string
	}{
		{"in.mp4", "-c:v libx264 -qp 8 -preset ultrafast -pix_fmt yuv420p -c:a aac -b:a 256k", "h264 aac"},
		{"in.mkv", "-c:v mpeg2video -q:v 1 -c:a flac", "h264 aac"},
		{"in.webm", "-c:v libvpx -b:v 8M -qmin 1 -qmax 4 -deadline realtime -cpu-used 8 -c:a libopus -b:a 256k", "vp9 opus"},
		{"in.avi", "-c:v mpeg4 -q:v 1 -c:a pcm_s16le", "mpeg4 mp3"},
		{"in.wmv", "-c:v wmv2 -q:v 1 -c:a wmav2 -b:a 256k", "wmv2 wmav2"},
		{"in.mpeg", "-c:v mpeg2video -q:v 1 -c:a mp2 -b:a 320k", "mpeg2video mp2"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			in := makeFile(t, tt.file, args(picture("320x240", 25, 2), "-f lavfi -i anoisesrc=d=2:a=0.3:r=44100:seed=7 -ac 2", tt.codecs)...)
			last := size(t, onDisk(t, in))
			for i, l := range levels {
				if testing.Short() && row > 0 && i != row%len(levels) {
					continue
				}
				out := must(t, engine(t).Compress(), fileops.Args{"compression_value": l}, in)
				n := size(t, out)
				if n*100 > last*95 {
					t.Errorf("%s: %d bytes became %d", l, last, n)
				}
				last = n
				p := probe(t, out)
				if got := strings.Join(append(p.codecs("video"), p.codecs("audio")...), " "); got != tt.want {
					t.Errorf("%s: got %s, want %s", l, got, tt.want)
				}
				if seconds, volume := decodes(t, out); seconds < 1.8 || seconds > 2.25 || volume > -1 || volume < -60 {
					t.Errorf("%s: %v seconds at %v dB", l, seconds, volume)
				}
				if d := difference(pixels(t, onDisk(t, in), 1, 40, 30), pixels(t, out, 1, 40, 30)); d > 12 {
					t.Errorf("%s: the picture differs by %v", l, d)
				}
			}
		})
	}
}

func TestCompressLargePicture(t *testing.T) {
	t.Parallel()
	for size, want := range map[string][2]int{"1600x1200": {960, 720}, "1080x1920": {720, 1280}} {
		in := makeFile(t, "in.mp4", args(picture(size, 5, 0.6), "-c:v libx264 -qp 5 -preset ultrafast -pix_fmt yuv420p")...)
		s := probe(t, must(t, engine(t).Compress(), fileops.Args{"compression_value": "extreme"}, in)).Streams[0]
		if s.Width != want[0] || s.Height != want[1] {
			t.Errorf("%s became %d × %d", size, s.Width, s.Height)
		}
		s = probe(t, must(t, engine(t).Compress(), nil, in)).Streams[0]
		if fmt.Sprintf("%dx%d", s.Width, s.Height) != size {
			t.Errorf("without reason %s became %d × %d", size, s.Width, s.Height)
		}
	}
}

func TestCompressAudio(t *testing.T) {
	t.Parallel()
	noise := func(channels string) []string {
		return args("-f lavfi -i anoisesrc=d=2:a=0.3:r=44100:seed=7", "-ac", channels)
	}
	for row, tt := range []struct {
		file, codec string
		channels    string
		kbit        []float64 // of the results, by level; 0 means unchanged
	}{
		{"in.mp3", "-c:a libmp3lame -b:a 320k", "2", []float64{160, 128, 96}},
		{"in.mp3", "-c:a libmp3lame -b:a 128k", "2", []float64{0, 0, 96}},
		{"in.mp3", "-c:a libmp3lame -b:a 96k", "1", []float64{0, 64, 48}},
		{"in.m4a", "-c:a aac -b:a 256k", "2", []float64{160, 128, 96}},
		{"in.m4a", "-c:a alac", "2", []float64{160, 128, 96}},
		{"in.aac", "-c:a aac -b:a 256k", "2", []float64{160, 128, 96}},
		{"in.ogg", "-c:a libvorbis -b:a 320k", "2", []float64{160, 128, 96}},
		{"in.opus", "-c:a libopus -b:a 320k", "2", []float64{160, 128, 96}},
		{"in.wma", "-c:a wmav2 -b:a 256k", "2", []float64{160, 128, 96}},
		{"in.wav", "-c:a pcm_s16le", "2", []float64{0, 0, 0}},
		{"in.aiff", "-c:a pcm_s16be", "2", []float64{0, 0, 0}},
	} {
		t.Run(tt.file+" "+tt.codec, func(t *testing.T) {
			t.Parallel()
			in := makeFile(t, tt.file, append(noise(tt.channels), strings.Fields(tt.codec)...)...)
			before := systest.ReadFile(t, onDisk(t, in))
			for i, l := range levels {
				if testing.Short() && i != row%len(levels) {
					continue // each file and each level is tested
				}
				out := must(t, engine(t).Compress(), fileops.Args{"compression_value": l}, in)
				after := systest.ReadFile(t, out)
				if kept := bytes.Equal(before, after); kept != (tt.kbit[i] == 0) {
					t.Errorf("%s: kept: %v, %d bytes became %d", l, kept, len(before), len(after))
				}
				if tt.kbit[i] == 0 {
					continue
				}
				if kbit := float64(len(after)) * 8 / 2 / 1000; kbit > tt.kbit[i]*1.25 || kbit < tt.kbit[i]*0.6 {
					t.Errorf("%s: %.0f kbit/s, want about %v", l, kbit, tt.kbit[i])
				}
				a, b := probe(t, onDisk(t, in)).Streams[0], probe(t, out).Streams[0]
				if a.Codec != b.Codec && a.Codec != "alac" {
					t.Errorf("%s became %s", a.Codec, b.Codec)
				}
				if seconds, volume := decodes(t, out); seconds < 1.9 || seconds > 2.2 || volume > -1 || volume < -60 {
					t.Errorf("%s: %v seconds at %v dB", l, seconds, volume)
				}
			}
		})
	}
}

// FLAC becomes smaller without losing a bit.
func TestCompressFLAC(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.flac", args("-f lavfi -i", "aevalsrc=d=2:s=96000:exprs=0.2*sin(3000*t)+0.1*sin(4321*t)+0.01*random(0)", "-c:a flac -compression_level 0 -sample_fmt s32 -bits_per_raw_sample 24")...)
	out := must(t, engine(t).Compress(), nil, in)
	if a, b := size(t, onDisk(t, in)), size(t, out); b*100 > a*97 {
		t.Errorf("%d bytes became %d", a, b)
	}
	if a, b := hash(t, onDisk(t, in), "a:0"), hash(t, out, "a:0"); a != b {
		t.Error("the sound was changed")
	}
	if s := probe(t, out).Streams[0]; s.SampleRate != strconv.Itoa(96000) {
		t.Errorf("%s Hz", s.SampleRate)
	}
}

// A file that cannot become smaller is returned unchanged, byte by byte.
func TestCompressKeeps(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mp4", args(picture("160x120", 25, 1), tone(1, 44100), "-c:v libx264 -crf 40 -preset slow -pix_fmt yuv420p -c:a aac -b:a 32k")...)
	before := systest.ReadFile(t, onDisk(t, in))
	for _, l := range levels[:2] {
		after := systest.ReadFile(t, must(t, engine(t).Compress(), fileops.Args{"compression_value": l}, in))
		if !bytes.Equal(before, after) {
			t.Errorf("%s: %d bytes became %d", l, len(before), len(after))
		}
	}
}

// Sound that is already small enough is not encoded again.
func TestCompressCopiesSound(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mp4", args(picture("160x120", 25, 1), "-f lavfi -i anoisesrc=d=1:a=0.3:r=44100:seed=7 -ac 2 -c:v libx264 -qp 5 -pix_fmt yuv420p -c:a aac -b:a 96k")...)
	out := must(t, engine(t).Compress(), nil, in)
	if a, b := hash(t, onDisk(t, in), "a:0", "-c", "copy"), hash(t, out, "a:0", "-c", "copy"); a != b {
		t.Error("the sound was encoded again")
	}
	if size(t, out) >= size(t, onDisk(t, in)) {
		t.Error("it did not become smaller")
	}
}

func TestCompressSubtitles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"in.srt": "1\n00:00:00,200 --> 00:00:00,800\nHello, world\n", "a.ttf": "not really a font"} {
		systest.NoError(t, os.WriteFile(dir+"/"+name, []byte(text), 0o600))
	}
	for _, tt := range []struct{ file, codec, more, want string }{
		{"in.mkv", "srt", "-attach " + dir + "/a.ttf -metadata:s:t mimetype=application/x-truetype-font", "subrip ttf"},
		{"in.mp4", "mov_text", "", "mov_text"},
	} {
		in := makeFile(t, tt.file, args(picture("160x120", 25, 1), "-i", dir+"/in.srt", "-map 0 -map 1 -c:v libx264 -qp 1 -pix_fmt yuv420p -c:s", tt.codec, tt.more)...)
		out := must(t, engine(t).Compress(), nil, in)
		p := probe(t, out)
		if got := strings.Join(append(p.codecs("subtitle"), p.codecs("attachment")...), " "); got != tt.want || size(t, out) >= size(t, onDisk(t, in)) {
			t.Errorf("%s: subtitles and fonts are %q, want %q", tt.file, got, tt.want)
		}
	}
}

// A decoder that ignores the transparency of VP9 must not remove it.
func TestCompressTransparent(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.webm", args(picture("160x120", 25, 1), "-vf format=yuva420p -c:v libvpx-vp9 -deadline realtime -b:v 5M -qmax 4 -auto-alt-ref 0")...)
	out := must(t, engine(t).Compress(), nil, in)
	if a, b := hash(t, onDisk(t, in), "v:0", "-c", "copy"), hash(t, out, "v:0", "-c", "copy"); a != b {
		t.Error("the video was encoded again")
	}
}
