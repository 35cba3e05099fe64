package mediaops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	programs "github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/mediaops"
	"github.com/filewright/filewright/internal/systest"
)

// Files that make a player open other files. No action may process them, and no content
// of the other file may get into a result: neither through the Runner, which detects
// them by their content, nor with the engine alone.
func TestHostile(t *testing.T) {
	t.Parallel()
	e := engine(t)
	dir := t.TempDir()
	canary := onDisk(t, makeFile(t, "canary.ts", args(picture("160x120", 25, 1), tone(1, 44100), "-c:v libx264 -pix_fmt yuv420p -c:a aac")...))
	own := systest.ReadFile(t, canary)
	near := filepath.Join(dir, "near.ts")
	systest.NoError(t, os.WriteFile(near, own, 0o600))
	playlist := "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1.0,\n" + canary + "\n#EXT-X-ENDLIST\n"
	hostile := map[string]string{
		"playlist":             playlist,
		"playlist with zeros":  strings.Replace(playlist, "#EXTINF", "#\x00\x01\x02\n#EXTINF", 1), // no longer text for content detection
		"playlist by URL":      strings.Replace(playlist, canary, "file://"+canary, 1),
		"playlist by concat":   strings.Replace(playlist, canary, "concat:"+canary, 1),
		"playlist of a header": "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"" + canary + "\"\n#EXTINF:1.0,\n" + canary + "\n",
		"concatenation":        "ffconcat version 1.0\nfile '" + canary + "'\n",
		"relative concat":      "ffconcat version 1.0\nfile near.ts\n\x00\x00",
		"session description":  "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n",
		"manifest": `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">
<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>` + canary + `</BaseURL></Representation></AdaptationSet></Period></MPD>`,
		"image pattern": "%03d.png\n",
		"subtitles":     "1\n00:00:00,000 --> 00:00:01,000\n" + canary + "\n",
	}
	actions := map[string]fileops.Action{"convert": e.Convert(), "compress": e.Compress(), "merge": e.Merge(), "rotate": e.Rotate(), "metadata": e.Metadata()}
	for i, name := range slices.Sorted(maps.Keys(hostile)) {
		for j, ext := range []string{"mp4", "mp3", "ts", "mpeg", "webm"} {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+"."+ext)
			systest.NoError(t, os.WriteFile(path, []byte(hostile[name]), 0o600))
			for k, action := range slices.Sorted(maps.Keys(actions)) {
				if testing.Short() && (i+j+k)%len(actions) != 0 { // one action for each file and extension; each action runs on each extension
					continue
				}
				a := actions[action]
				var args fileops.Args
				switch action {
				case "convert":
					args = convertTo("wav")
				case "rotate":
					if ext == "mp3" {
						continue
					}
					args = fileops.Args{"angle": 90}
				case "metadata":
					if ext == "ts" || ext == "mpeg" {
						continue
					}
					args = fileops.Args{"remove": "all"}
				}
				t.Run(fmt.Sprintf("%s as %s, %s", name, ext, action), func(t *testing.T) {
					t.Parallel()
					blamesInput(t, a, args, fileops.Path(path))
					// A wrapper that accepts every format bypasses the Runner's check.
					any := a.Spec()
					any.Accepts = []fileops.Accept{{Formats: []format.Format{format.Any}, Params: fileops.Schema{{Name: "convert_to"}, {Name: "angle", Type: fileops.Integer}, {Name: "remove", Type: fileops.List}}}}
					blamesInput(t, fileops.Func(any, a.Do), args, fileops.Path(path))
				})
			}
		}
	}
}

func blamesInput(t *testing.T, a fileops.Action, args fileops.Args, in *fileops.File) {
	t.Helper()
	out, err := run(t, a, args, in)
	if err == nil {
		t.Errorf("it was processed: %s", filepath.Base(out))
		return
	}
	if !errors.Is(err, fileops.ErrCorruptInput) && !errors.Is(err, fileops.ErrFormatMismatch) && !errors.Is(err, fileops.ErrUnsupportedInput) {
		t.Errorf("error does not blame the input: %v", err)
	}
	if m := fileops.Message(err); strings.ContainsAny(m, "/\\") || strings.Contains(m, "ffmpeg") {
		t.Errorf("message %q shows something of the machine", m)
	}
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	e := engine(t)
	whole := func(name string, a ...string) []byte {
		b := systest.ReadFile(t, onDisk(t, makeFile(t, name, a...)))
		return b
	}
	video := args(picture("160x120", 25, 4), tone(4, 44100), "-c:v libx264 -g 25 -pix_fmt yuv420p -c:a aac")
	late := whole("a.mp4", video...)
	early := whole("b.mp4", append(slices.Clone(video), "-movflags", "+faststart")...)
	zeroed := slices.Clone(early)
	for i := len(early) / 4; i < len(early); i++ {
		zeroed[i] = 0
	}
	for name, in := range map[string]*fileops.File{
		"no index":                  fileops.Bytes("a.mp4", late[:len(late)/2]),
		"half of the data":          fileops.Bytes("b.mp4", early[:len(early)/2]),
		"zeros instead of the data": fileops.Bytes("c.mp4", zeroed),
		"header only":               fileops.Bytes("d.wav", []byte("RIFF\x00\x00\x00\x00WAVE")),
		"empty matroska":            fileops.Bytes("e.mkv", []byte("\x1a\x45\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x00")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, to := range []string{"mp3", "avi"} {
				if in.Format() == format.WAV && to == "avi" {
					continue
				}
				blamesInput(t, e.Convert(), convertTo(to), in)
			}
			blamesInput(t, e.Compress(), nil, in)
		})
	}
	// ffmpeg accepts both, and writes empty files.
	sound := whole("g.wav", args(tone(1, 44100))...)
	blamesInput(t, e.Convert(), convertTo("mp3"), fileops.Bytes("g.wav", sound[:bytes.Index(sound, []byte("data"))+8]))
	drawing := whole("h.gif", args(picture("160x120", 10, 2))...)
	blamesInput(t, e.Convert(), convertTo("mkv"), fileops.Bytes("h.gif", drawing[:800]))
	// A recording that is cut off at the end is still usable.
	out := must(t, e.Convert(), convertTo("avi"), fileops.Bytes("f.ts", whole("f.ts", video...)[:60000]))
	if probe(t, out).duration() < 1 {
		t.Error("nothing of it was kept")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		small, err := mediaops.New(t.Context(), mediaops.Options{MaxOutput: 100 << 10, Threads: 1, Sandbox: programs.NewSandbox()})
		systest.NoError(t, err)
		in := makeFile(t, "in.mp3", args(tone(5, 44100))...)
		if _, err := run(t, small.Convert(), convertTo("wav"), in); !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("got %v, want ErrLimit", err)
		}
		if _, err := run(t, small.Convert(), convertTo("m4a", "audio_bitrate", 64), in); err != nil {
			t.Error(err)
		}
	})
	t.Run("pixels", func(t *testing.T) {
		t.Parallel()
		in := makeFile(t, "in.mkv", args("-f lavfi -i color=red:size=16384x6200:rate=1:duration=1 -frames:v 1 -c:v mjpeg -q:v 31")...)
		_, err := run(t, engine(t).Convert(), convertTo("jpg"), in)
		if !errors.Is(err, fileops.ErrLimit) || !strings.Contains(fileops.Message(err), "100 megapixels") {
			t.Errorf("got %v, want ErrLimit", err)
		}
	})
	t.Run("streams", func(t *testing.T) {
		t.Parallel()
		a := tone(0.1, 8000)
		for range 40 {
			a = append(a, "-map", "0")
		}
		in := makeFile(t, "in.mkv", append(a, "-c:a", "pcm_s16le")...)
		if _, err := run(t, engine(t).Convert(), convertTo("mp3"), in); err == nil {
			t.Error("40 streams are accepted")
		} else if fileops.Code(err) == "internal_error" {
			t.Error(err)
		}
	})
}

// recorder is a progress function.
type recorder struct {
	mu     sync.Mutex
	values []float64
}

func (r *recorder) add(v float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values = append(r.values, v)
}

func TestProgress(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mp4", args(picture("320x240", 25, 20), tone(20, 44100), "-c:v libx264 -preset ultrafast -pix_fmt yuv420p")...)
	for _, to := range []string{"webm", "avi", "gif"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			var rec recorder
			r := fileops.Runner{TempDir: t.TempDir(), Progress: rec.add}
			systest.NoError(t, r.Run(t.Context(), engine(t).Convert(), convertTo(to), fileops.ToDir(t.TempDir()), in))
			if !slices.IsSorted(rec.values) || rec.values[len(rec.values)-1] != 1 {
				t.Errorf("progress %v", rec.values)
			}
			between := slices.DeleteFunc(rec.values, func(v float64) bool { return v <= 0.02 || v >= 0.98 })
			if len(between) == 0 {
				t.Error("nothing between begin and end")
			}
			if to == "gif" && !slices.ContainsFunc(between, func(v float64) bool { return v > 0.4 }) {
				t.Errorf("the second pass does not count: %v", between)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "in.mp4", args(picture("640x480", 30, 60), "-c:v libx264 -preset ultrafast -pix_fmt yuv420p")...)
	for name, a := range map[string]fileops.Action{"convert": engine(t).Convert(), "compress": engine(t).Compress(), "merge": engine(t).Merge()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args fileops.Args
			if name == "convert" {
				args = convertTo("webm")
			}
			ctx, cancel := context.WithCancel(t.Context())
			dir := t.TempDir()
			done := make(chan error, 1)
			started := make(chan struct{})
			var once sync.Once
			r := fileops.Runner{TempDir: dir, Progress: func(float64) { once.Do(func() { close(started) }) }}
			go func() { done <- r.Run(ctx, a, args, fileops.ToDir(t.TempDir()), in) }()
			select {
			case <-started: // it is working
			case err := <-done:
				t.Fatalf("it ended: %v", err)
			}
			cancel()
			select {
			case err := <-done:
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on")
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// Abilities that ffmpeg lacks are not advertised.
func TestFindDerives(t *testing.T) {
	t.Parallel()
	real, err := exec.LookPath("ffmpeg")
	systest.NoError(t, err)
	// without returns an engine whose ffmpeg does not list lines that match pattern.
	without := func(pattern string) (*mediaops.Engine, error) {
		path := filepath.Join(t.TempDir(), "ffmpeg")
		script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *-encoders|*-decoders|*-muxers|*-demuxers|*-filters) %s \"$@\" | grep -Ev '%s';; *) exec %s \"$@\";; esac\n", real, pattern, real)
		systest.WriteScript(t, path, script)
		return mediaops.New(t.Context(), mediaops.Options{FFmpeg: path})
	}
	for _, tt := range []struct {
		missing  string
		from, to []format.Format // no longer offered
	}{
		{" libmp3lame ", nil, []format.Format{format.MP3, format.AVI}},
		{" libx264 ", nil, []format.Format{format.MP4, format.MOV, format.M4V, format.MKV, format.FLV, format.TS, format.ThGP}},
		{" (libvpx-vp9|libvorbis) ", nil, []format.Format{format.WebM, format.OGG}},
		{" libwebp_anim ", nil, []format.Format{format.WebP}},
		{" matroska,webm ", []format.Format{format.MKV, format.WebM}, nil},
		{" (amrnb|libopencore_amrnb) ", []format.Format{format.AMR}, nil},
		{" E asf ", nil, []format.Format{format.WMA, format.WMV}},
	} {
		t.Run(tt.missing, func(t *testing.T) {
			t.Parallel()
			e, err := without(tt.missing)
			systest.NoError(t, err)
			for _, a := range e.Actions() {
				if _, err := fileops.NewRegistry(a); err != nil {
					t.Error(err)
				}
			}
			var from, to []format.Format
			for _, a := range e.Convert().Spec().Accepts {
				from = append(from, a.Formats...)
				for _, f := range a.Params[0].Enum {
					to = append(to, format.Format(f))
				}
			}
			for _, f := range []format.Format{format.MP4, format.MKV, format.WebM, format.AMR, format.MP3, format.OGG, format.WMA} {
				if got, want := slices.Contains(from, f), !slices.Contains(tt.from, f); got != want {
					t.Errorf("reading %s: %v", f, got)
				}
			}
			for _, f := range []format.Format{format.MP4, format.MOV, format.M4V, format.MKV, format.FLV, format.TS, format.ThGP, format.AVI,
				format.WebM, format.WMV, format.MPEG, format.MP3, format.OGG, format.WMA, format.WAV, format.WebP, format.GIF} {
				if got, want := slices.Contains(to, f), !slices.Contains(tt.to, f); got != want {
					t.Errorf("writing %s: %v", f, got)
				}
			}
			for _, f := range e.Compress().Spec().Accepts[0].Formats {
				if slices.Contains(tt.to, f) || slices.Contains(tt.from, f) {
					t.Errorf("compress is offered for %s", f)
				}
			}
		})
	}
	t.Run("filters", func(t *testing.T) {
		t.Parallel()
		if _, err := without(" palettegen "); err == nil || !strings.Contains(err.Error(), "palettegen") {
			t.Error(err)
		}
	})
	t.Run("no program", func(t *testing.T) {
		t.Parallel()
		if _, err := mediaops.New(t.Context(), mediaops.Options{FFprobe: "no-such-program"}); !errors.Is(err, exec.ErrNotFound) {
			t.Error(err)
		}
	})
}

func TestAliases(t *testing.T) {
	t.Parallel()
	out := must(t, engine(t).Convert(), convertTo("MPG"), sample(t, format.MP4))
	if filepath.Base(out) != "sample.mpeg" {
		t.Errorf("result %s", filepath.Base(out))
	}
	if _, err := run(t, engine(t).Convert(), convertTo("mp4"), sample(t, format.MP4)); err == nil {
		t.Error("mp4 is converted to mp4")
	}
}

func BenchmarkConvert(b *testing.B) {
	video := makeFile(b, "in.mp4", args(picture("640x360", 25, 5), tone(5, 44100), "-ac 2 -c:v libx264 -pix_fmt yuv420p -c:a aac")...)
	wav := makeFile(b, "in.wav", args(tone(30, 44100), "-ac 2")...)
	for _, bb := range []struct {
		name string
		in   *fileops.File
		to   string
		bare string // the same operation with ffmpeg alone
	}{
		{"mp4 to mp3", video, "mp3", "-vn -c:a libmp3lame -q:a 2"},
		{"wav to mp3", wav, "mp3", "-c:a libmp3lame -q:a 2"},
		{"mp4 to webm", video, "webm", "-c:v libvpx-vp9 -crf 31 -b:v 0 -deadline realtime -cpu-used 5 -row-mt 1 -c:a libopus -b:a 128k"},
		{"mp4 to mkv", video, "mkv", "-c copy"},
		{"mp4 to gif", video, "gif", ""},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(size(b, onDisk(b, bb.in)))
			for b.Loop() {
				must(b, engine(b).Convert(), convertTo(bb.to), bb.in)
			}
		})
		if bb.bare == "" {
			continue
		}
		b.Run(bb.name+" by ffmpeg alone", func(b *testing.B) {
			for b.Loop() {
				makeFile(b, "out."+bb.to, args("-i", onDisk(b, bb.in), bb.bare)...)
			}
		})
	}
}

func BenchmarkCompress(b *testing.B) {
	in := makeFile(b, "in.mp4", args(picture("640x360", 25, 5), tone(5, 44100), "-ac 2 -c:v libx264 -qp 15 -preset ultrafast -pix_fmt yuv420p -c:a aac -b:a 192k")...)
	b.SetBytes(size(b, onDisk(b, in)))
	for b.Loop() {
		must(b, engine(b).Compress(), nil, in)
	}
}

func BenchmarkMerge(b *testing.B) {
	in := fileopstest.Sample(b, format.MP3)
	b.SetBytes(3 * in.Size())
	for b.Loop() {
		must(b, engine(b).Merge(), nil, in, in, in)
	}
}
