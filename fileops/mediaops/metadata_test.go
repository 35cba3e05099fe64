package mediaops_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// tagsOf returns the tags of a file, with names in lower case.
func tagsOf(p probed) map[string]string {
	out := make(map[string]string)
	for _, s := range p.Streams {
		if s.Type == "audio" {
			for k, v := range s.Tags {
				out[strings.ToLower(k)] = v
			}
		}
	}
	for k, v := range p.Format.Tags {
		out[strings.ToLower(k)] = v
	}
	return out
}

// Tags change, streams do not.
func TestMetadata(t *testing.T) {
	t.Parallel()
	e := engine(t)
	text := filepath.Join(t.TempDir(), "in.srt")
	systest.NoError(t, os.WriteFile(text, []byte("1\n00:00:00,100 --> 00:00:00,900\nHello\n"), 0o600))
	tags := "-metadata title=Old -metadata artist=Somebody -metadata comment=Secret"
	song := makeFile(t, "song.mp3", args(tone(1, 44100), "-i", coverArt(t), "-map 0 -map 1 -c:a libmp3lame -c:v copy -disposition:v attached_pic", tags)...)
	film := makeFile(t, "film.mkv", args(picture("160x120", 25, 1), tone(1, 44100), "-i", text, "-map 0 -map 1 -map 2 -c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac -c:s srt -metadata:s:a language=fra", tags, "-attach", text, "-metadata:s:t mimetype=text/plain")...)
	inputs := map[string]*fileops.File{"mp3": song, "mkv": film}
	others := map[string]*fileops.File{"flac": song, "ogg": song, "wav": song, "aiff": song, "mp4": film, "mov": film, "avi": film, "flv": film, "wmv": film}
	if !testing.Short() { // in the containers of the others
		maps.Copy(others, map[string]*fileops.File{"m4a": song, "opus": song, "wma": song, "webm": film})
	}
	for ext, from := range others {
		inputs[ext] = fileops.Path(must(t, e.Convert(), convertTo(ext), from))
	}
	for ext, in := range inputs {
		t.Run(ext, func(t *testing.T) {
			t.Parallel()
			before := probe(t, onDisk(t, in))
			set := map[string]any{"title": "Über = alles; 'x'", "track": 7.0}
			if ext == "mov" { // it cannot hold it
				delete(set, "track")
			}
			out := must(t, e.Metadata(), fileops.Args{"set": set, "remove": []any{"comment"}}, in)
			p := probe(t, out)
			got := tagsOf(p)
			if got["title"] != "Über = alles; 'x'" || ext != "mov" && !strings.HasPrefix(got["track"], "7") || got["comment"] != "" || got["artist"] == "" && tagsOf(before)["artist"] != "" {
				t.Errorf("tags %v", got)
			}
			same := func(p probed) {
				t.Helper()
				for _, kind := range []string{"audio", "subtitle", "attachment"} {
					if a, b := before.codecs(kind), p.codecs(kind); strings.Join(a, " ") != strings.Join(b, " ") {
						t.Errorf("%s streams %v became %v", kind, a, b)
					}
				}
			}
			same(p)
			if a, b := before.codecs("video"), p.codecs("video"); strings.Join(a, " ") != strings.Join(b, " ") {
				t.Errorf("pictures %v became %v", a, b)
			}
			if a, b := hash(t, onDisk(t, in), "a:0", "-c", "copy"), hash(t, out, "a:0", "-c", "copy"); a != b {
				t.Error("the sound was encoded")
			}
			bare := probe(t, must(t, e.Metadata(), fileops.Args{"remove": []any{"all"}}, in))
			same(bare)
			for _, name := range []string{"title", "artist", "comment", "album"} {
				if v := tagsOf(bare)[name]; v != "" {
					t.Errorf("%s is still %q", name, v)
				}
			}
			for _, s := range bare.Streams {
				if s.Disposition["attached_pic"] == 1 {
					t.Error("the cover is still there")
				}
				if s.Type == "audio" && ext == "mkv" && s.Tags["language"] != "fra" {
					t.Errorf("the language is %q", s.Tags["language"])
				}
			}
		})
	}
	for _, a := range []fileops.Args{
		{"set": map[string]any{"year": "x"}}, {"set": map[string]any{"title": ""}}, {"set": map[string]any{"title": true}},
		{"set": map[string]any{"title": "a\x00b"}}, {"remove": []any{"tittle"}},
	} {
		var p *fileops.ParamError
		if _, err := run(t, e.Metadata(), a, song); !errors.As(err, &p) {
			t.Errorf("%v: %v", a, err)
		}
	}
	var p *fileops.ParamError
	if _, err := run(t, e.Metadata(), fileops.Args{"set": map[string]any{"lyrics": "La"}}, inputs["wav"]); !errors.As(err, &p) {
		t.Errorf("lyrics in WAV: %v", err)
	}
}

// Pictures without a size cannot be written: a cover is left out with a warning, and a video is damaged.
func TestMetadataOfPicturesWithoutSize(t *testing.T) {
	t.Parallel()
	e := engine(t)
	title := fileops.Args{"set": map[string]any{"title": "New"}}
	// broken returns a file whose JPEG pictures start with zeros, and whose headers have no size of a picture.
	broken := func(name string, a []string) *fileops.File {
		b := systest.ReadFile(t, onDisk(t, makeFile(t, name, a...)))
		for i := bytes.Index(b, []byte{0xff, 0xd8, 0xff}); i >= 0; i = bytes.Index(b, []byte{0xff, 0xd8, 0xff}) {
			clear(b[i : i+650])
		}
		for _, size := range [][]byte{{0, 160, 0, 120, 0, 72}, {0, 160, 0, 0, 0, 120, 0, 0}} { // of the codec, of the track
			b = bytes.ReplaceAll(b, size, make([]byte, len(size)))
		}
		return fileops.Bytes(name, b)
	}
	song := broken("song.m4a", args(tone(1, 44100), "-i", coverArt(t), "-map 0 -map 1 -c:a aac -c:v mjpeg -disposition:v attached_pic"))
	if p := probe(t, must(t, e.Metadata(), title, song)); p.Format.Tags["title"] != "New" || len(p.codecs("audio")) != 1 {
		t.Errorf("the result is %+v", p)
	}
	if text := warned(t, e.Metadata(), title, song); !strings.Contains(text, "cover picture") {
		t.Errorf("warnings %q", text)
	}
	video := broken("video.mov", args(picture("160x120", 10, 1), tone(1, 44100), "-c:v mjpeg -c:a aac"))
	if _, err := run(t, e.Metadata(), title, video); !errors.Is(err, fileops.ErrCorruptInput) {
		t.Errorf("a video without pictures: %v", err)
	}
}

// ffmpeg reads closed captions and sound without compression from MP4 files, but does not write them there.
func TestMetadataOfTracksThatMP4LosesHere(t *testing.T) {
	t.Parallel()
	e := engine(t)
	title := fileops.Args{"set": map[string]any{"title": "New"}}
	captions := filepath.Join(t.TempDir(), "in.scc")
	systest.NoError(t, os.WriteFile(captions, []byte("Scenarist_SCC V1.0\n\n00:00:00:00\t9420 9420 94ae 94ae 9470 9470 c8e5 ecec ef80 942f 942f\n\n00:00:00:15\t942c 942c\n"), 0o600))
	mov := makeFile(t, "captions.mov", args(picture("160x120", 10, 1), "-i", captions, "-map 0 -map 1 -c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:s copy")...)
	if p := probe(t, must(t, e.Metadata(), title, mov)); len(p.codecs("subtitle")) != 1 {
		t.Errorf("QuickTime: the result is %+v", p)
	}
	// as returns a QuickTime file as MP4.
	as := func(name string, f *fileops.File) *fileops.File {
		return fileops.Bytes(name, bytes.ReplaceAll(systest.ReadFile(t, onDisk(t, f)), []byte("qt  "), []byte("isom")))
	}
	mp4 := as("captions.mp4", mov)
	if p := probe(t, must(t, e.Metadata(), title, mp4)); p.Format.Tags["title"] != "New" || len(p.codecs("video")) != 1 || len(p.codecs("subtitle")) != 0 {
		t.Errorf("MP4: the result is %+v", p)
	}
	if text := warned(t, e.Metadata(), title, mp4); !strings.Contains(text, "1 subtitle track was left out") {
		t.Errorf("warnings %q", text)
	}
	sound := as("sound.mp4", makeFile(t, "sound.mov", args(picture("160x120", 10, 1), tone(1, 44100), "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a pcm_s16le")...))
	if _, err := run(t, e.Metadata(), title, sound); err != nil && !errors.Is(err, fileops.ErrUnsupportedInput) { // later versions of ffmpeg write it
		t.Errorf("sound without compression: %v", err)
	}
}

// ffmpeg copies the ID3v1 tag of a file that has an ID3v2 tag as sound. No old value may stay.
func TestMetadataOldTag(t *testing.T) {
	t.Parallel()
	e := engine(t)
	b, err := os.ReadFile(onDisk(t, makeFile(t, "song.mp3", args(tone(1, 44100), "-c:a libmp3lame -metadata title=Old -id3v2_version 3 -write_id3v1 0")...)))
	systest.NoError(t, err)
	old := make([]byte, 128)
	copy(old, "TAGOld")
	b = append(b, old...)
	for name, tt := range map[string]struct {
		args fileops.Args
		tags int // ID3v1 tags of the result
	}{
		"remove all": {fileops.Args{"remove": []any{"all"}}, 0},
		"set":        {fileops.Args{"set": map[string]any{"title": "New"}}, 1},
	} {
		out := must(t, e.Metadata(), tt.args, fileops.Bytes("song.mp3", b))
		got := systest.ReadFile(t, out)
		if bytes.Contains(got, []byte("TAGOld")) {
			t.Errorf("%s: the old tag is still there", name)
		}
		if n := bytes.Count(got, []byte("TAGNew")); n != tt.tags {
			t.Errorf("%s: %d tags, want %d", name, n, tt.tags)
		}
	}
}
