package mediaops_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// codecsOf lists the codecs that a result of each format may contain. The first entry is
// what we encode, the others may be copied from the samples.
var codecsOf = map[format.Format]struct{ video, audio []string }{
	format.MP4:  {[]string{"h264"}, []string{"aac", "mp3"}},
	format.M4V:  {[]string{"h264"}, []string{"aac", "mp3"}},
	format.MOV:  {[]string{"h264", "mpeg4"}, []string{"aac", "mp3"}},
	format.ThGP: {[]string{"h264", "h263", "mpeg4"}, []string{"aac"}},
	format.MKV:  {[]string{"h264", "vp9", "mpeg4", "mpeg1video", "mpeg2video"}, []string{"aac", "mp3", "mp2", "vorbis", "opus"}},
	format.WebM: {[]string{"vp9"}, []string{"opus", "vorbis"}},
	format.AVI:  {[]string{"mpeg4"}, []string{"mp3"}},
	format.WMV:  {[]string{"wmv2"}, []string{"wmav2"}},
	format.FLV:  {[]string{"h264", "flv1"}, []string{"aac"}},
	format.MPEG: {[]string{"mpeg2video", "mpeg1video"}, []string{"mp2", "mp3"}},
	format.TS:   {[]string{"h264", "mpeg2video", "mpeg1video"}, []string{"aac", "mp3", "mp2"}},
	format.MP3:  {nil, []string{"mp3"}},
	format.WAV:  {nil, []string{"pcm_s16le"}},
	format.AIFF: {nil, []string{"pcm_s16be"}},
	format.FLAC: {nil, []string{"flac"}},
	format.OGG:  {nil, []string{"vorbis"}},
	format.Opus: {nil, []string{"opus"}},
	format.M4A:  {nil, []string{"aac"}},
	format.AAC:  {nil, []string{"aac"}},
	format.WMA:  {nil, []string{"wmav2"}},
	format.GIF:  {[]string{"gif"}, nil},
	format.JPG:  {[]string{"mjpeg"}, nil},
	format.PNG:  {[]string{"png"}, nil},
}

// judge checks that a result has suitable content for its format and the duration of its
// input.
func judge(t *testing.T, in []*fileops.File, args fileops.Args, out []*fileops.File) {
	t.Helper()
	if len(out) != 1 {
		t.Fatalf("%d results", len(out))
	}
	f := out[0].Format()
	path := onDisk(t, out[0])
	if f == format.WebP { // ffmpeg writes animated WebP but does not read it
		b, err := exec.Command("vipsheader", "-a", path).Output()
		systest.NoError(t, err)
		if s := string(b); !strings.Contains(s, "n-pages: 1") || !strings.Contains(s, "width: 160") || strings.Contains(s, "n-pages: 1\n") {
			t.Errorf("not an animation 160 wide: %s", s)
		}
		return
	}
	want, ok := codecsOf[f]
	if !ok {
		t.Fatalf("the test does not know what %s should contain", f)
	}
	d := decode(t, path)
	for kind, allowed := range map[string][]string{"video": want.video, "audio": want.audio} {
		var got []string
		for _, s := range d.streams {
			if s.kind == kind {
				got = append(got, s.codec)
			}
		}
		if kind == "audio" && (in[0].Format() == format.GIF || args["mute"] == true) {
			allowed = nil
		}
		if codec, ok := args[kind+"_codec"].(string); ok {
			allowed = []string{codec}
		}
		if (len(got) != 1) != (allowed == nil) || len(got) == 1 && !slices.Contains(allowed, got[0]) {
			t.Errorf("%s streams are %v, want one of %v", kind, got, allowed)
		}
	}
	for _, s := range d.streams {
		size := " 160x120"
		if args["rotate"] == "90" || args["rotate"] == "270" {
			size = " 90x120" // at most 160 × 120
		}
		if s.kind == "video" && !strings.Contains(s.description, size) {
			t.Errorf("the picture is not of%s: %s", size, s.description)
		}
		if s.codec == "h264" && !strings.Contains(s.description, "yuv420p") {
			t.Errorf("players do not know the pixels of %s", s.description)
		}
	}
	if f == format.JPG || f == format.PNG || in[0].Format() == format.GIF {
		return
	}
	total := 1.0 * float64(len(in))
	tolerance := 0.25 * float64(len(in))
	if d.seconds < total-tolerance || d.seconds > total+tolerance {
		t.Errorf("%.3f s could be decoded, want %v s", d.seconds, total)
	}
	if f != format.AAC && f != format.MPEG && (d.duration < total-tolerance || d.duration > total+tolerance) {
		// ADTS and program streams have no duration; ffmpeg guesses it.
		t.Errorf("it says that it lasts %.3f s, want %v s", d.duration, total)
	}
	if want.audio != nil && (d.volume > -1 || d.volume < -60) {
		t.Errorf("mean volume %v dB: there is no sound", d.volume)
	}
}

// Every pair that the Spec advertises is run once, and checked with ffprobe and by
// decoding it. With -short, every source and every target is part of a pair.
func TestConvertPairs(t *testing.T) {
	t.Parallel()
	convert := engine(t).Convert()
	n := 0
	var pairs systest.Pairs
	sources := 0
	for _, a := range convert.Spec().Accepts {
		for _, from := range a.Formats {
			for j := range a.Params[0].Enum {
				to := a.Params[0].Enum[(j+sources)%len(a.Params[0].Enum)]
				n++
				if !pairs.Run(string(from), to) {
					continue
				}
				t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
					t.Parallel()
					in := sample(t, from)
					args := fileopstest.Changing(a)
					args["convert_to"] = to
					out := must(t, convert, args, in)
					if want := "sample." + to; filepath.Base(out) != want {
						t.Errorf("result %s, want %s", filepath.Base(out), want)
					}
					judge(t, []*fileops.File{in}, args, []*fileops.File{fileops.Path(out)})
				})
			}
			sources++
		}
	}
	// 11 video formats, 10 sound formats (AMR is read-only) and gif; 11 and 9 are also
	// their own targets.
	if want := 11*(10+4+9) + 9*8 + 9 + 4 + 11 + 9; n != want {
		t.Errorf("%d pairs are advertised, want %d", n, want)
	}
}

func TestCompressFormats(t *testing.T) {
	t.Parallel()
	compress := engine(t).Compress()
	for _, f := range compress.Spec().Accepts[0].Formats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			in := sample(t, f)
			checkCompressed(t, []*fileops.File{in}, nil, []*fileops.File{fileops.Path(must(t, compress, nil, in))})
		})
	}
}

func checkCompressed(t *testing.T, in []*fileops.File, _ fileops.Args, out []*fileops.File) {
	t.Helper()
	src, dst := onDisk(t, in[0]), onDisk(t, out[0])
	if a, b := size(t, src), size(t, dst); b > a {
		t.Errorf("%d bytes became %d", a, b)
	}
	if out[0].Name() != in[0].Name() {
		t.Errorf("result %s of %s", out[0].Name(), in[0].Name())
	}
	before, after := probe(t, src), probe(t, dst)
	for _, kind := range []string{"audio", "video"} {
		if a, b := before.codecs(kind), after.codecs(kind); len(a) != len(b) {
			t.Errorf("%s streams %v became %v", kind, a, b)
		}
	}
	if a, b := before.duration(), after.duration(); b < a-0.25 || b > a+0.25 {
		t.Errorf("%v s became %v s", a, b)
	}
}

// checkSame checks that a result has the name, the streams and the duration of its input.
func checkSame(t *testing.T, in []*fileops.File, _ fileops.Args, out []*fileops.File) {
	t.Helper()
	if out[0].Name() != in[0].Name() {
		t.Errorf("result %s of %s", out[0].Name(), in[0].Name())
	}
	before, after := probe(t, onDisk(t, in[0])), probe(t, onDisk(t, out[0]))
	for _, kind := range []string{"audio", "video"} {
		if a, b := before.codecs(kind), after.codecs(kind); !slices.Equal(a, b) {
			t.Errorf("%s streams %v became %v", kind, a, b)
		}
	}
	if a, b := before.duration(), after.duration(); b < a-0.1 || b > a+0.1 {
		t.Errorf("%v s became %v s", a, b)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for name, s := range map[string]fileopstest.Suite{
		"convert":  {Action: e.Convert(), Check: judge, Args: fileops.Args{"width": 160, "height": 120}, Formats: []format.Format{format.MP3, format.GIF}},
		"compress": {Action: e.Compress(), Check: checkCompressed, Formats: []format.Format{format.MP4, format.FLAC}},
		"rotate":   {Action: e.Rotate(), Check: checkSame, Formats: []format.Format{format.MP4, format.WebM}},
		"metadata": {Action: e.Metadata(), Check: checkSame, Args: fileops.Args{"set": map[string]any{"title": "T"}}, Formats: []format.Format{format.MP4, format.FLAC}},
		"merge":    {Action: e.Merge(), Check: judge, Formats: []format.Format{format.TS, format.AMR}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Fixture, s.Concurrency = sample, 4
			fileopstest.Run(t, s)
		})
	}
}
