package mediaops_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

const (
	addedSRT = "1\n00:00:00,500 --> 00:00:01,500\n{\\an5}<b>█████████</b>\n"
	addedVTT = "WEBVTT\n\n00:00.500 --> 00:01.500\n<b>█████████</b>\n"
	addedASS = "[Script Info]\nScriptType: v4.00+\nPlayResX: 320\nPlayResY: 240\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize, PrimaryColour, Alignment\nStyle: Big,Arial,40,&H0000FF00,5\n\n" +
		"[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\nDialogue: 0,0:00:00.50,0:00:01.50,Big,,0,0,0,,{\\pos(160,120)}█████████\n"
)

func subtitles(name, text string) *fileops.File { return fileops.Bytes(name, []byte(text)) }

// read returns a subtitle track of a file as SubRip, decoded by ffmpeg.
func read(t *testing.T, path, track string) string {
	t.Helper()
	out, err := exec.Command("ffmpeg", "-nostdin", "-v", "error", "-i", path, "-map", "0:s:"+track, "-f", "srt", "-").Output()
	systest.NoError(t, err)
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

// A subtitle file becomes a track with its text, times and language.
func TestSubtitleFileAsTrack(t *testing.T) {
	t.Parallel()
	e := engine(t)
	film := makeFile(t, "in.mp4", args(picture("160x120", 25, 2), tone(2, 44100), "-c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p -c:a aac")...)
	avi := makeFile(t, "in.avi", args(picture("160x120", 25, 2), "-c:v mpeg4")...)
	other := t.TempDir() + "/other.srt"
	systest.NoError(t, os.WriteFile(other, []byte("1\n00:00:00,100 --> 00:00:01,900\nOther\n"), 0o600))
	withTrack := makeFile(t, "with.mkv", args(picture("160x120", 25, 2), "-i", other, "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:s srt -metadata:s:s:0 language=fra")...)
	for _, tt := range []struct {
		name    string
		in      *fileops.File
		to      string
		file    *fileops.File
		more    []any
		codecs  string // of all subtitle tracks
		times   string // of the last one, a pattern: containers move all streams by the delay of the sound
		warning string
	}{
		{"mp4", film, "mp4", subtitles("a.srt", addedSRT), []any{"subtitle_language", "de"}, "mov_text", "00:00:00,5.. --> 00:00:01,5..", ""},
		{"mkv srt", film, "mkv", subtitles("a.srt", addedSRT), nil, "subrip", "00:00:00,5.. --> 00:00:01,5..", ""},
		{"mkv ass", film, "mkv", subtitles("a.ssa", addedASS), nil, "ass", "00:00:00,5.. --> 00:00:01,5..", ""},
		{"mov ass", film, "mov", subtitles("a.ass", addedASS), nil, "mov_text", "00:00:00,5.. --> 00:00:01,5..", "layout_simplified: "},
		{"webm", film, "webm", subtitles("a.vtt", addedVTT), []any{"subtitle_language", "pt-BR"}, "webvtt", "00:00:00,5.. --> 00:00:01,5..", ""},
		{"webm srt", film, "webm", subtitles("a.srt", addedSRT), nil, "webvtt", "00:00:00,5.. --> 00:00:01,5..", ""},
		{"source without tracks", avi, "mp4", subtitles("a.vtt", addedVTT), nil, "mov_text", "00:00:00,5.. --> 00:00:01,5..", ""},
		{"beside another", withTrack, "mkv", subtitles("a.srt", addedSRT), []any{"subtitle_language", "eng"}, "subrip subrip", "00:00:00,5.. --> 00:00:01,5..", ""},
		{"instead of another", withTrack, "mp4", subtitles("a.srt", addedSRT), []any{"subtitles", "drop"}, "mov_text", "00:00:00,5.. --> 00:00:01,5..", ""},
		{"part", film, "mp4", subtitles("a.srt", addedSRT), []any{"start", 0.4, "duration", 1.2}, "mov_text", "00:00:00,1.. --> 00:00:01,1..", ""},
		{"encoded", film, "mp4", subtitles("a.srt", addedSRT), []any{"height", 60}, "mov_text", "00:00:00,5.. --> 00:00:01,5..", ""},
		{"Latin-1", film, "mp4", fileops.Bytes("a.srt", []byte("1\r\n00:00:00,500 --> 00:00:01,500\r\nEl ni\xf1o comi\xf3 la manzana m\xe1s peque\xf1a, \xbfno? █")[:73]), nil, "mov_text", "niño", "encoding_guessed: "},
		{"bad time and late", film, "mp4", subtitles("a.srt", addedSRT+"\n2\n00:00:0x --> 00:00:09,000\nlost\n\n3\n00:01:00,000 --> 00:01:01,000\nlate\n"), nil, "mov_text", "00:00:00,5.. --> 00:00:01,5..", "content_dropped: 1 subtitle was left out, because the time is invalid.\ncontent_dropped: 1 subtitle was left out, because the video ends before."},
	} {
		if testing.Short() && (strings.HasPrefix(tt.name, "mov") || tt.name == "webm srt" || tt.name == "encoded") {
			continue // the others cover their paths
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := convertTo(tt.to, append(tt.more, "subtitle_key", tt.file)...)
			out, got := watched(t, e.Convert(), a, tt.in)
			if !strings.HasPrefix(got, tt.warning) || tt.warning == "" && got != "" {
				t.Errorf("warnings %q, want %q", got, tt.warning)
			}
			p := probe(t, out)
			if got := strings.Join(p.codecs("subtitle"), " "); got != tt.codecs {
				t.Errorf("codecs %q, want %q", got, tt.codecs)
			}
			last := map[int]string{1: "0", 2: "1"}[len(p.codecs("subtitle"))]
			if text := read(t, out, last); !regexp.MustCompile(tt.times).MatchString(text) || tt.name != "Latin-1" && !strings.Contains(text, "█████████") || strings.Contains(text, "late") || strings.Contains(text, "lost") {
				t.Errorf("text %q", text)
			}
			if d := p.duration(); math.Abs(d-2) > 0.1 && tt.name != "part" {
				t.Errorf("%v seconds", d)
			}
			for _, s := range p.Streams {
				want := map[string]string{"mp4": "deu", "webm": "por"}[tt.name]
				if s.Type == "subtitle" && tt.name != "beside another" && s.Disposition["default"] != 1 {
					t.Error("the only track is not the default one")
				}
				if s.Type == "subtitle" && want != "" && s.Tags["language"] != want {
					t.Errorf("language %q", s.Tags["language"])
				}
			}
		})
	}
}

// watched runs an action and returns its result and its warnings.
func watched(t *testing.T, a fileops.Action, args fileops.Args, in *fileops.File) (path, warnings string) {
	t.Helper()
	dir := t.TempDir()
	var lines []string
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { lines = append(lines, w.Code+": "+w.Message) }}
	err := r.Run(t.Context(), a, args, fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
		path = filepath.Join(dir, f.Name())
		return fileops.ToDir(dir).Put(ctx, f)
	}), in)
	systest.NoError(t, err)
	return path, strings.Join(lines, "\n")
}

// A subtitle file is drawn into the picture while it is shown.
func TestSubtitleFileBurnt(t *testing.T) {
	t.Parallel()
	e := engine(t)
	in := makeFile(t, "in.avi", args("-f lavfi -i color=black:s=320x240:r=25:d=2 -c:v mpeg4")...)
	black := make([]byte, 16*12*3)
	for name, text := range map[string]string{"a.srt": addedSRT, "a.vtt": addedVTT, "a.ass": addedASS} {
		for _, start := range []float64{0, 0.3} {
			if testing.Short() && (name == "a.srt") != (start == 0) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				out := must(t, e.Convert(), convertTo("wmv", "subtitles", "burn", "subtitle_key", subtitles(name, text), "start", start), in)
				for at, drawn := range map[float64]bool{0.4: false, 0.7: true, 1.3: true, 1.65: false} {
					if v := difference(pixels(t, out, at-start, 16, 12), black); (v > 3) != drawn {
						t.Errorf("from %v, at %v: brightness %v", start, at, v)
					}
				}
			})
		}
	}
}

// Subtitle files that have nothing to show, or that the result cannot hold, are refused.
func TestSubtitleFileRefused(t *testing.T) {
	t.Parallel()
	e := engine(t)
	film := makeFile(t, "in.mp4", args(picture("160x120", 25, 1), "-c:v libx264 -preset ultrafast -pix_fmt yuv420p")...)
	good := subtitles("a.srt", addedSRT)
	for _, tt := range []struct {
		to    string
		more  []any
		param string
		text  string
	}{
		{"mp4", []any{"subtitle_key", subtitles("a.srt", "")}, "subtitle_key", ""},
		{"mp4", []any{"subtitle_key", subtitles("a.srt", "1\n00:00 -> now\nno times\n")}, "subtitle_key", ""},
		{"mp4", []any{"subtitle_key", subtitles("a.vtt", "WEBVTT\n\nNOTE nothing\n")}, "subtitle_key", "no subtitles"},
		{"mp4", []any{"subtitle_key", subtitles("a.srt", strings.ReplaceAll(addedSRT, "00:00:0", "00:10:0"))}, "subtitle_key", "before the end of the video"},
		{"mkv", []any{"subtitle_key", subtitles("a.ass", "[Script Info]\nScriptType: v4.00+\n\n[Events]\n")}, "subtitle_key", ""},
		{"mkv", []any{"subtitle_key", fileops.Bytes("a.srt", bytes.Repeat([]byte{0, 1, 2, 0xff}, 100))}, "subtitle_key", ""},
		{"mkv", []any{"subtitle_key", fileops.Bytes("a.png", []byte("\x89PNG"))}, "subtitle_key", ""},
		{"avi", []any{"subtitle_key", good}, "subtitle_key", "AVI"},
		{"mp4", []any{"subtitle_key", good, "subtitles", "burn", "subtitle_track", 1}, "subtitle_track", ""},
		{"mp4", []any{"subtitle_key", good, "subtitle_language", "klingonish"}, "subtitle_language", "language"},
		{"mp4", []any{"subtitle_key", good, "subtitles", "burn", "subtitle_language", "en"}, "subtitle_language", ""},
		{"mkv", []any{"subtitle_language", "en"}, "subtitle_language", "needs subtitle_key"},
	} {
		_, err := run(t, e.Convert(), convertTo(tt.to, tt.more...), film)
		var p *fileops.ParamError
		if !errors.Is(err, fileops.ErrParameter) || !strings.Contains(err.Error(), tt.param) || errors.As(err, &p) && p.Param != tt.param || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s %v: %v", tt.to, tt.more[0], err)
		}
	}
}
