package matrix_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// A stream describes a stream in a file, from ffmpeg.
type stream struct {
	kind  string // audio, video
	codec string
	rate  int
}

// A playback is the result of decoding a whole file.
type playback struct {
	streams []stream
	sound   time.Duration
	pcm     []byte // mono, 16 bits, 44100 Hz
	moving  time.Duration
	frames  int
	frame   *image.NRGBA // from the middle
}

// play strictly decodes the video and sound of a file in one run. It fails if a requested stream is
// missing. It measures the duration, because the header has only an estimate in some formats.
func play(t *testing.T, p string, video, sound bool, c content) playback {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-C", dir, "ffmpeg", "-nostdin", "-v", "error", "-xerror", "-i", p,
		"-map", "0", "-c", "copy", "-frames:v", "1", "-frames:a", "1", "-f", "framecrc", "s.crc"} // list the streams
	if video {
		args = append(args, "-map", "0:v:0", "-f", "framecrc", "v.crc",
			"-map", "0:v:0", "-ss", strconv.FormatFloat(c.moving.Seconds()/2, 'f', 2, 64), "-frames:v", "1", "-pix_fmt", "rgba", "-f", "image2pipe", "-c:v", "pam", "v.pam")
	}
	if sound {
		args = append(args, "-map", "0:a:0", "-ac", "1", "-ar", "44100", "-f", "s16le", "a.raw")
	}
	tool(t, "env", args...)
	out := playback{streams: parseStreams(read(t, filepath.Join(dir, "s.crc")))}
	if sound {
		out.pcm = []byte(read(t, filepath.Join(dir, "a.raw")))
		out.sound = time.Duration(len(out.pcm)/2) * time.Second / 44100
	}
	if video {
		out.moving, out.frames = lasts(t, read(t, filepath.Join(dir, "v.crc")))
		var err error
		if out.frame, err = parsePAM(read(t, filepath.Join(dir, "v.pam"))); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// parseStreams parses the header of ffmpeg's framecrc output for streams that are not decoded.
func parseStreams(list string) []stream {
	var out []stream
	for line := range strings.Lines(list) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !strings.HasPrefix(line, "#") || !ok {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		if name == "#tb" { // the first line of a stream
			out = append(out, stream{})
		}
		if len(out) == 0 {
			continue
		}
		s := &out[len(out)-1]
		switch name {
		case "#media_type":
			s.kind = value
		case "#codec_id":
			s.codec = value
		case "#sample_rate":
			fmt.Sscan(value, &s.rate)
		}
	}
	return out
}

// lasts returns the time from the start of the first frame to the end of the last in ffmpeg's
// framecrc output (stream, dts, pts, duration, …), and the number of frames.
func lasts(t *testing.T, list string) (_ time.Duration, n int) {
	t.Helper()
	var num, den, first, end int64
	for line := range strings.Lines(list) {
		if v, ok := strings.CutPrefix(line, "#tb 0: "); ok {
			fmt.Sscanf(v, "%d/%d", &num, &den)
		}
		var stream, dts, pts, d int64
		if k, _ := fmt.Sscanf(line, "%d, %d, %d, %d,", &stream, &dts, &pts, &d); k == 4 {
			if n == 0 {
				first = pts
			}
			end = max(end, pts+d)
			n++
		}
	}
	if n == 0 || den == 0 {
		t.Fatalf("no frames: %.200q", list)
	}
	return time.Duration(end-first) * time.Second * time.Duration(num) / time.Duration(den), n
}

// audio judges sound whose codec name starts with codec.
func audio(codec string) func(*testing.T, []string, content) {
	return one(func(t *testing.T, p string, c content) {
		pb := play(t, p, false, true, c)
		codec := cmp.Or(c.voice, codec)
		if len(pb.streams) != 1 || pb.streams[0].kind != "audio" || !strings.HasPrefix(pb.streams[0].codec, codec) {
			t.Errorf("streams %+v, want %s", pb.streams, codec)
		}
		hasSound(t, p, pb, c)
	})
}

func hasSound(t *testing.T, p string, pb playback, c content) {
	t.Helper()
	got := pb.sound
	if rate := pb.streams[0].rate; strings.HasSuffix(p, ".aac") && got > c.sound && rate > 0 {
		// A raw stream cannot mark the padding in its first and last frame (ISO/IEC 14496-3, ADTS):
		// at 8 kHz a frame is 128 ms.
		got = max(c.sound, got-2*1024*time.Second/time.Duration(rate))
	}
	within(t, "sound", got, c.sound, c.slack())
	if !c.tone {
		return
	}
	// The tone crosses zero twice in each period. Half a second suffices.
	pcm := pb.pcm[len(pb.pcm)/4&^1:]
	pcm = pcm[:min(len(pcm), 44100)]
	crossings, n, last := 0, len(pcm)/2, int16(0)
	for i := range n {
		v := int16(binary.LittleEndian.Uint16(pcm[2*i:]))
		if v > 200 && last < 0 || v < -200 && last > 0 {
			crossings++
		}
		if v > 200 || v < -200 {
			last = v
		}
	}
	if hz := float64(crossings) / 2 / (float64(n) / 44100); hz < specimen.Tone-8 || hz > specimen.Tone+8 {
		t.Errorf("a tone of %.1f Hz, want %d", hz, specimen.Tone)
	}
}

// video judges moving pictures. The codec name starts with codec, or is the unchanged input codec
// if kept lists it: the container supports that codec, and copying is lossless.
func video(codec string, kept ...string) func(*testing.T, []string, content) {
	return one(func(t *testing.T, p string, c content) {
		pb := play(t, p, true, c.sound > 0, c)
		for _, s := range pb.streams {
			if s.kind == "audio" && (c.sound == 0 || !strings.HasPrefix(s.codec, c.voice)) {
				t.Errorf("sound %s, want %q", s.codec, c.voice)
			}
			if s.kind != "video" {
				continue
			}
			codec := cmp.Or(c.encoded, codec)
			copied := c.encoded == "" && s.codec == c.codec && slices.Contains(kept, s.codec)
			if !strings.HasPrefix(s.codec, codec) && !copied || pb.frame.Rect.Dx() != c.w || pb.frame.Rect.Dy() != c.h {
				t.Errorf("video %s of %v, want %s of %d by %d", s.codec, pb.frame.Rect.Max, codec, c.w, c.h)
			}
		}
		if c.moving > 0 {
			within(t, "video", pb.moving, c.moving, c.slack())
		}
		if fps := float64(pb.frames) / pb.moving.Seconds(); c.fps > 0 && math.Abs(fps-c.fps) > 0.5 {
			t.Errorf("%.2f frames a second, want %g", fps, c.fps)
		}
		if c.sound > 0 {
			hasSound(t, p, pb, c)
		}
		for place := range 4 {
			i := place
			if c.order != nil {
				i = c.order[place]
			}
			want := specimen.PatchColors()[i]
			x, y := c.w/4+place%2*c.w/2, c.h/4+place/2*c.h/2
			if !shows(pb.frame, x, y, want, c.marked) {
				t.Errorf("patch %d is %v, want %v", i+1, pb.frame.NRGBAAt(x, y), want)
			}
		}
	})
}

// shows reports whether a colour is at a point, or around it if a mark may cover the point.
func shows(m *image.NRGBA, x, y int, want color.NRGBA, marked bool) bool {
	if !marked {
		return near(m.NRGBAAt(x, y), want, 30)
	}
	const around = 12
	for dy := -around; dy <= around; dy++ {
		for dx := -around; dx <= around; dx++ {
			if near(m.NRGBAAt(x+dx, y+dy), want, 30) {
				return true
			}
		}
	}
	return false
}

func judgeZIP(t *testing.T, p string, c content) {
	if c.password != "" {
		if out, err := systest.Output(t, "7z", "t", "-pwrong", p); err == nil {
			t.Errorf("opens with any password: %s", out)
		}
		extracted(t, c, "7z", "x", "-y", "-p"+c.password, p)
		return
	}
	tool(t, "unzip", "-tq", p)
	got := py.ask(t, "zip", p).Entries
	for _, e := range c.entries {
		sum := sha256.Sum256([]byte(e[1]))
		if len(c.entries) == 1 && len(got) == 1 { // a gzip file need not name its content
			for _, is := range got {
				got[e[0]] = is
			}
		}
		if got[e[0]] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is missing or another: %v", e[0], got)
		}
	}
	if n := strings.Count(tool(t, "unzip", "-Z1", p), "\n"); n < len(c.entries) || n > len(c.entries)+1 { // directories may have entries
		t.Errorf("entries %v", got)
	}
}

func bySevenZip(t *testing.T, p string, c content) {
	if c.password != "" {
		if out, err := systest.Output(t, "7z", "t", "-pwrong", p); err == nil {
			t.Errorf("opens with any password: %s", out)
		}
	}
	extracted(t, c, "7z", "x", "-y", "-p"+c.password, p)
}

func byTar(t *testing.T, p string, c content) { extracted(t, c, "tar", "-xf", p) }

// extracted runs a program that extracts an archive into its working directory, and compares the
// files.
func extracted(t *testing.T, c content, args ...string) {
	t.Helper()
	dir := t.TempDir()
	tool(t, "env", append([]string{"-C", dir}, args...)...)
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, e := range c.entries {
		path := filepath.Join(dir, e[0])
		if len(c.entries) == 1 && len(files) == 1 { // a compressed file need not name its content
			path = files[0]
		}
		b, err := os.ReadFile(path)
		if err != nil || string(b) != e[1] {
			t.Errorf("%s: %v, or another content", e[0], err)
		}
	}
}
