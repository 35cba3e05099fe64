package mediaops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	programs "github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/mediaops"
	"github.com/filewright/filewright/internal/systest"
)

var find = sync.OnceValues(func() (*mediaops.Engine, error) {
	return mediaops.New(context.Background(), mediaops.Options{Sandbox: programs.NewSandbox()})
})

func engine(t testing.TB) *mediaops.Engine {
	t.Helper()
	e, err := find()
	systest.NoError(t, err)
	return e
}

// sample returns a small file with sound and, if f is a video format, pictures.
func sample(t testing.TB, f format.Format) *fileops.File {
	t.Helper()
	switch f {
	case format.AMR:
		return fileops.Bytes("sample.amr", amr(50))
	case format.ThGP: // H.263, ffmpeg's default, supports few sizes
		return makeFile(t, "sample.3gp", args(picture("160x120", 25, 1), tone(1, 44100), "-pix_fmt yuv420p -c:v libx264 -c:a aac -ac 2")...)
	}
	return fileopstest.Sample(t, f)
}

// amr returns a recording of n frames of 20 ms, each with 12.2 kbit/s and a counter as
// excitation (RFC 4867, section 5).
func amr(n int) []byte {
	b := []byte("#!AMR\n")
	for i := range n {
		b = append(b, 7<<3|1<<2)
		for j := range 31 {
			b = append(b, byte(i*31+j*7))
		}
	}
	return b
}

// makeFile makes a file with ffmpeg; args are its inputs and options.
func makeFile(t testing.TB, name string, args ...string) *fileops.File {
	t.Helper()
	made := systest.MadeBy(t, name, "", append(append([]string{"ffmpeg", "-nostdin", "-v", "error"}, args...), name)...)
	path := filepath.Join(t.TempDir(), name)
	systest.NoError(t, os.WriteFile(path, systest.ReadFile(t, made), 0o600))
	return fileops.Path(path)
}

// Inputs for makeFile.
func picture(size string, fps int, seconds float64) []string {
	return []string{"-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=%s:rate=%d:duration=%g", size, fps, seconds)}
}

func tone(seconds float64, rate int) []string {
	return []string{"-f", "lavfi", "-i", fmt.Sprintf("sine=frequency=440:duration=%g:sample_rate=%d", seconds, rate)}
}

func args(parts ...any) []string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, strings.Fields(p)...)
		case []string:
			out = append(out, p...)
		}
	}
	return out
}

// run runs an action and returns its only result as a path on disk.
func run(t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) (string, error) {
	t.Helper()
	dir := t.TempDir()
	var name string
	r := fileops.Runner{TempDir: t.TempDir()}
	err := r.Run(t.Context(), a, args, fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
		if name != "" {
			t.Errorf("second result %s", f.Name())
		}
		name = filepath.Join(dir, f.Name())
		return fileops.ToDir(dir).Put(ctx, f)
	}), in...)
	return name, err
}

// must is run for actions that have to succeed.
func must(t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) string {
	t.Helper()
	out, err := run(t, a, args, in...)
	systest.NoError(t, err)
	return out
}

// probed is ffprobe's description of a file.
type probed struct {
	Streams []struct {
		Type          string `json:"codec_type"`
		Codec         string `json:"codec_name"`
		Width, Height int
		PixFmt        string `json:"pix_fmt"`
		Tag           string `json:"codec_tag_string"`
		SAR           string `json:"sample_aspect_ratio"`
		AvgFrameRate  string `json:"avg_frame_rate"`
		SampleRate    string `json:"sample_rate"`
		Channels      int
		BitRate       string `json:"bit_rate"`
		Duration      string
		Transfer      string `json:"color_transfer"`
		Packets       string `json:"nb_read_packets"`
		Disposition   map[string]int
		Tags          map[string]string
		SideData      []map[string]any `json:"side_data_list"`
	}
	Format struct {
		Name     string `json:"format_name"`
		Duration string
		Tags     map[string]string
	}
	Chapters []struct {
		Tags map[string]string
	}
}

func probe(t testing.TB, path string) probed {
	t.Helper()
	out, err := exec.Command("ffprobe", "-v", "error", "-count_packets", "-show_streams", "-show_format", "-show_chapters", "-of", "json", path).Output()
	if err != nil {
		t.Fatalf("ffprobe: %v", err)
	}
	var p probed
	systest.NoError(t, json.Unmarshal(out, &p))
	return p
}

// codecs returns the codecs of the streams of a kind.
func (p probed) codecs(kind string) []string {
	var out []string
	for _, s := range p.Streams {
		if s.Type == kind {
			out = append(out, s.Codec)
		}
	}
	return out
}

func (p probed) duration() float64 {
	d, _ := strconv.ParseFloat(p.Format.Duration, 64)
	for _, s := range p.Streams {
		if s.Type == "audio" || s.Type == "video" {
			n, _ := strconv.ParseFloat(s.Duration, 64)
			d = max(d, n)
		}
	}
	return d
}

// decodes checks that ffmpeg decodes a file without errors. It returns the duration in
// seconds, and the mean volume in dB (0 without sound).
func decodes(t testing.TB, path string, opts ...string) (seconds, volume float64) {
	t.Helper()
	d := decode(t, path, opts...)
	return d.seconds, d.volume
}

// decoded is ffmpeg's report about a file that it decodes.
type decoded struct {
	seconds  float64 // decoded seconds
	volume   float64 // mean, in dB; 0 without sound
	duration float64 // declared by the file, 0 if it declares none
	streams  []decodedStream
}

type decodedStream struct{ kind, codec, description string }

var (
	streamLine   = regexp.MustCompile(`Stream #0:\d+.*?: (Video|Audio|Subtitle): (\w+)(.*)`)
	durationLine = regexp.MustCompile(`Duration: (\d\d):(\d\d):(\d\d\.\d\d)`)
)

func decode(t testing.TB, path string, opts ...string) decoded {
	t.Helper()
	a := append([]string{"-nostdin", "-v", "level+info", "-nostats", "-xerror", "-progress", "pipe:1"}, opts...)
	cmd := exec.Command("ffmpeg", append(a, "-i", path, "-af", "volumedetect",
		"-enc_time_base:v", "-1", "-f", "null", "-")...) // otherwise frames of a variable rate collide
	var out, msg bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &msg
	if err := cmd.Run(); err != nil || strings.Contains(msg.String(), "[error]") || strings.Contains(msg.String(), "[fatal]") {
		t.Errorf("%s does not decode: %v: %s", filepath.Base(path), err, msg.String())
	}
	var d decoded
	for line := range strings.Lines(out.String()) {
		if v, ok := strings.CutPrefix(line, "out_time_us="); ok {
			if us, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
				d.seconds = us / 1e6
			}
		}
	}
	if _, after, ok := strings.Cut(msg.String(), "mean_volume: "); ok {
		d.volume, _ = strconv.ParseFloat(strings.Fields(after)[0], 64)
	}
	input, _, _ := strings.Cut(msg.String(), "Output #0")
	input, _, _ = strings.Cut(input, "Stream mapping:")
	for _, m := range streamLine.FindAllStringSubmatch(input, -1) {
		d.streams = append(d.streams, decodedStream{strings.ToLower(m[1]), m[2], m[3]})
	}
	if m := durationLine.FindStringSubmatch(input); m != nil {
		var v [3]float64
		for i := range v {
			v[i], _ = strconv.ParseFloat(m[i+1], 64)
		}
		d.duration = v[0]*3600 + v[1]*60 + v[2]
	}
	return d
}

// pixels returns the first frame of a file at the given time, scaled to w by h, as RGB
// bytes.
func pixels(t testing.TB, path string, at float64, w, h int) []byte {
	t.Helper()
	a := []string{"-nostdin", "-v", "error"}
	if at > 0 {
		a = append(a, "-ss", fmt.Sprint(at))
	}
	cmd := exec.Command("ffmpeg", append(a, "-i", path, "-frames:v", "1",
		"-vf", fmt.Sprintf("scale=%d:%d:flags=area", w, h), "-pix_fmt", "rgb24", "-f", "rawvideo", "-")...)
	out, err := cmd.Output()
	if err != nil || len(out) != w*h*3 {
		t.Fatalf("pixels of %s: %v, %d bytes", filepath.Base(path), err, len(out))
	}
	return out
}

// difference returns the mean difference of two pictures, from 0 to 255.
func difference(a, b []byte) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += max(d, -d)
	}
	return sum / float64(len(a))
}

// onDisk returns the path of a file. It writes the file if it is in memory.
func onDisk(t testing.TB, f *fileops.File) string {
	t.Helper()
	if path, ok := f.Path(); ok {
		return path
	}
	b, err := io.ReadAll(f.Reader())
	systest.NoError(t, err)
	path := filepath.Join(t.TempDir(), f.Name())
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func size(t testing.TB, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	systest.NoError(t, err)
	return st.Size()
}
