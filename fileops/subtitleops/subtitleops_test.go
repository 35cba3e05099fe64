package subtitleops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/subtitleops"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

func engine(t testing.TB, l subtitleops.Limits) *subtitleops.Engine {
	t.Helper()
	e, err := subtitleops.New(t.Context(), subtitleops.Options{Limits: l})
	systest.NoError(t, err)
	return e
}

// run converts a file. It returns the result, the codes of its warnings and the error.
func run(t testing.TB, e *subtitleops.Engine, in *fileops.File, args fileops.Args) (string, []string, error) {
	t.Helper()
	var out string
	var codes []string
	r := &fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
	err := r.Run(t.Context(), e.Convert(), args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out = string(b)
		return err
	}), in)
	return out, codes, err
}

func converted(t testing.TB, name, text, to string, warnings ...string) string {
	t.Helper()
	out, got, err := run(t, engine(t, subtitleops.Limits{}), fileops.Bytes(name, []byte(text)), fileops.Args{"convert_to": to})
	systest.NoError(t, err)
	if !slices.Equal(got, warnings) {
		t.Errorf("%s to %s: warnings %q, want %q", name, to, got, warnings)
	}
	return out
}

func TestSuite(t *testing.T) {
	t.Parallel()
	e := engine(t, subtitleops.Limits{})
	fileopstest.Run(t, fileopstest.Suite{Action: e.Convert(), Fixture: specimen.Of, Args: fileops.Args{"encoding": "utf-8"}})
}

const styledSRT = "1\r\n00:00:01,000 --> 00:00:02,500\r\n{\\an8}<i>Hello</i>, <b>wide <u>world</u></b>\r\n<font color=\"#ff0000\">red</font> & <3\r\n\r\n" +
	"2\r\n01:02:03,004 --> 01:02:04,050 X1:100 X2:200\r\nsecond\r\n\r\nafter an empty line\r\n\r\n3\r\n00:00:05,000 --> 00:00:04,000\r\nnever\r\n"

// Styles, places and times reach each format, in order of time.
func TestStyles(t *testing.T) {
	t.Parallel()
	const dropped = fileops.WarnContentDropped // of the subtitle that ends before it starts
	vtt := converted(t, "a.srt", styledSRT, "vtt", dropped)
	if want := "WEBVTT\n\n00:00:01.000 --> 00:00:02.500 line:0\n<i>Hello</i>, <b>wide </b><b><u>world</u></b>\n<c.red>red</c> &amp; &lt;3\n\n" +
		"01:02:03.004 --> 01:02:04.050\nsecond\nafter an empty line\n\n"; vtt != want {
		t.Errorf("vtt is %q, want %q", vtt, want)
	}
	ass := converted(t, "a.srt", styledSRT, "ass", dropped)
	for _, want := range []string{
		`Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,{\an8}{\i1}Hello{\i0}, {\b1}wide {\u1}world{\b0\u0}\N{\c&H0000ff&}red{\c} & <3` + "\n",
		`Dialogue: 0,1:02:03.00,1:02:04.05,Default,,0,0,0,,second\Nafter an empty line` + "\n",
	} {
		if !strings.Contains(ass, want) {
			t.Errorf("%q is not in %s", want, ass)
		}
	}
	// Both become SubRip again with the same content.
	srt := "1\n00:00:01,000 --> 00:00:02,500\n{\\an8}<i>Hello</i>, <b>wide </b><b><u>world</u></b>\n<font color=\"#ff0000\">red</font> & <3\n\n2\n01:02:03,00%d --> 01:02:04,050\nsecond\nafter an empty line\n\n"
	if got, want := converted(t, "a.vtt", vtt, "srt"), fmt.Sprintf(srt, 4); got != want {
		t.Errorf("vtt to srt: %q, want %q", got, want)
	}
	if got, want := converted(t, "a.ass", ass, "srt"), fmt.Sprintf(srt, 0); got != want { // hundredths
		t.Errorf("ass to srt: %q, want %q", got, want)
	}
	if got, want := converted(t, "a.ass", ass, "txt"), "Hello, wide world\nred & <3\nsecond\nafter an empty line\n"; got != want {
		t.Errorf("ass to txt: %q, want %q", got, want)
	}
}

// What a target cannot hold is a warning.
func TestLosses(t *testing.T) {
	t.Parallel()
	const looks, content = fileops.WarnLayoutSimplified, fileops.WarnContentDropped
	vtt := func(rest string) string { return "WEBVTT\n\n" + rest }
	ass := func(style, text string) string {
		return "[Script Info]\n[V4+ Styles]\nFormat: Name, PrimaryColour, Italic, Alignment\nStyle: Default,&H00FFFFFF,0,2\nStyle: Sign,&H0000FFFF,-1,7\n[Events]\n" +
			"Format: Start, End, Style, Name, Effect, Text\nComment: 0:00:00.00,0:00:01.00,Default,,,note\nDialogue: 0:00:01.00,0:00:02.00," + style + "," + text + "\n"
	}
	for name, tt := range map[string]struct {
		file, text, to string
		want           string
		warnings       []string
	}{
		"speaker":            {"a.vtt", vtt("id\n00:01.000 --> 00:02.000\n<v.loud Mary &amp; Bob>Hi &gt; you</v>\n"), "srt", "1\n00:00:01,000 --> 00:00:02,000\nHi > you\n\n", []string{content}},
		"speaker as name":    {"a.vtt", vtt("00:01.000 --> 00:02.000\n<v Mary>Hi\n"), "ass", ",Default,Mary,0,0,0,,Hi\n", nil},
		"name as speaker":    {"a.ass", ass("Default", "Mary,,Hi"), "vtt", "00:00:01.000 --> 00:00:02.000\n<v Mary>Hi\n", nil},
		"times of words":     {"a.vtt", vtt("00:01.000 --> 00:02.000\na <00:01.500>b\n"), "srt", "\na b\n", []string{looks}},
		"style sheet":        {"a.vtt", vtt("STYLE\n::cue { color: red }\n\nNOTE x\n\n00:01.000 --> 00:02.000\na\n"), "srt", "\na\n", []string{looks}},
		"exact position":     {"a.vtt", vtt("00:01.000 --> 00:02.000 position:20% line:10% align:left\na\n"), "srt", "\n{\\an7}a\n", []string{looks}},
		"unknown colour":     {"a.srt", "1\n00:00:01,000 --> 00:00:02,000\n<font color=\"#123456\">a</font>\n", "vtt", "\na\n", []string{looks}},
		"font":               {"a.srt", "1\n00:00:01,000 --> 00:00:02,000\n<font face=\"Arial\" size=20>a</font>\n", "vtt", "\na\n", []string{looks}},
		"style of ass":       {"a.ass", ass("Sign", ",,{\\pos(1,2)}a{\\i0}b{\\r}c"), "srt", "\n{\\an7}<font color=\"#ffff00\"><i>a</i></font><font color=\"#ffff00\">b</font><font color=\"#ffff00\"><i>c</i></font>\n", []string{looks}},
		"drawing":            {"a.ass", ass("Default", ",,{\\p1}m 0 0 l 9 9{\\p0}a"), "srt", "\na\n", []string{content}},
		"comment and comma":  {"a.ass", ass("Default", ",,a, b{comment}\\h\\{c\\}\\nd"), "srt", "\na, b\u00a0{c}\nd\n", nil},
		"looks do not count": {"a.ass", ass("Sign", ",,{\\fs20}a"), "txt", "a\n", nil},
		"backslash":          {"a.srt", "00:00:01,000 --> 00:00:02,000\nC:\\New {x}\n", "ass", ",,C:\\\u2060New \\{x\\}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := converted(t, tt.file, tt.text, tt.to, tt.warnings...); !strings.Contains(got, tt.want) {
				t.Errorf("%q does not contain %q", got, tt.want)
			}
		})
	}
}

// Real files lack numbers, empty lines and digits.
func TestCarelessSRT(t *testing.T) {
	t.Parallel()
	in := "0:0:1,5-->0:0:2,50\na\n2\n00:00:03.000 --> 00:00:04.000\n42\n\n\n\n3\n00:00:05,000 -> 00:00:06,000\n\n\n"
	if got, want := converted(t, "a.srt", in, "vtt"), "WEBVTT\n\n00:00:01.500 --> 00:00:02.500\na\n\n00:00:03.000 --> 00:00:04.000\n42\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	e := engine(t, subtitleops.Limits{})
	const text = "1\n00:00:01,000 --> 00:00:02,000\nÄpfel für Zoë\n"
	var latin []byte
	for _, c := range text {
		latin = append(latin, byte(c))
	}
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for name, tt := range map[string]struct {
		content []byte
		args    fileops.Args
		guessed bool
	}{
		"utf-16": {wide, nil, false}, "mark": {append([]byte("\xef\xbb\xbf"), text...), nil, false},
		"guessed": {latin, nil, true}, "said": {latin, fileops.Args{"encoding": "iso-8859-15"}, false},
	} {
		args := fileops.Args{"convert_to": "txt"}
		for k, v := range tt.args {
			args[k] = v
		}
		out, codes, err := run(t, e, fileops.Bytes("a.srt", tt.content), args)
		if err != nil || out != "Äpfel für Zoë\n" || slices.Contains(codes, fileops.WarnEncodingGuessed) != tt.guessed {
			t.Errorf("%s: %q %q %v", name, out, codes, err)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	two := strings.Repeat("1\n00:00:01,000 --> 00:00:02,000\na\n\n", 2)
	for name, tt := range map[string]struct {
		limits subtitleops.Limits
		file   *fileops.File
		want   error
	}{
		"empty vtt":    {subtitleops.Limits{}, fileops.Bytes("a.vtt", []byte("WEBVTT\n\nNOTE nothing\n")), fileops.ErrCorruptInput},
		"only comment": {subtitleops.Limits{}, fileops.Bytes("a.ass", []byte("[Script Info]\n[Events]\nComment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,x\n")), fileops.ErrCorruptInput},
		"size":         {subtitleops.Limits{Size: 50}, fileops.Bytes("a.srt", []byte(two)), fileops.ErrLimit},
		"number":       {subtitleops.Limits{Cues: 1}, fileops.Bytes("a.srt", []byte(two)), fileops.ErrLimit},
	} {
		if _, _, err := run(t, engine(t, tt.limits), tt.file, fileops.Args{"convert_to": "txt"}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// ffmpeg reads the same cues from each result as from the input.
func TestFFmpegAgrees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cues := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		systest.NoError(t, os.WriteFile(p, b, 0o600))
		var found struct {
			Packets []struct {
				PTS      string `json:"pts_time"`
				Duration string `json:"duration_time"`
			}
		}
		systest.NoError(t, json.Unmarshal([]byte(systest.Run(t, "ffprobe", "-v", "error", "-show_entries", "packet=pts_time,duration_time", "-of", "json", p)), &found))
		return fmt.Sprint(found, systest.Run(t, "ffmpeg", "-v", "error", "-i", p, "-f", "webvtt", "-"))
	}
	in := []byte("1\n00:00:01,000 --> 00:00:02,500\n<i>Hello</i>, <b>wide <u>world</u></b>\nsecond line\n\n2\n00:00:03,000 --> 00:00:04,000\n日本語\n\n")
	want := strings.ReplaceAll(cues("in.srt", in), "</b><b>", "")
	for _, to := range []string{"vtt", "ass"} {
		got := cues("out."+to, []byte(converted(t, "in.srt", string(in), to)))
		if got = strings.ReplaceAll(got, "</b><b>", ""); got != want {
			t.Errorf("%s: ffmpeg reads %s, want %s", to, got, want)
		}
	}
}

func FuzzConvert(f *testing.F) {
	f.Add(0, []byte(styledSRT))
	f.Add(1, []byte("WEBVTT\n\n00:01.000 --> 00:02.000 line:0 align:left\n<v A><c.red>x</c> <00:01.500>&amp;</v>\n"))
	f.Add(2, []byte("[Script Info]\n[V4+ Styles]\nFormat: Name, Alignment\nStyle: Default,8\n[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\an8\\c&H00FF00&}a\\N{\\p1}m 0 0\n"))
	formats := []format.Format{format.SRT, format.VTT, format.ASS}
	f.Fuzz(func(t *testing.T, from int, b []byte) {
		if from < 0 || from > 2 || len(b) > 64<<10 {
			return
		}
		e := engine(t, subtitleops.Limits{})
		name := "a." + string(formats[from])
		for _, to := range append(formats, format.TXT) {
			if to == formats[from] {
				continue
			}
			out, _, err := run(t, e, fileops.Bytes(name, b), fileops.Args{"convert_to": string(to)})
			if err != nil || to == format.TXT {
				continue
			}
			// The result is read again, with all subtitles.
			next := formats[(slices.Index(formats, to)+1)%3]
			if _, _, err := run(t, e, fileops.Bytes("b."+string(to), []byte(out)), fileops.Args{"convert_to": string(next)}); err != nil {
				t.Errorf("%s of %q cannot be read: %v", to, bytes.TrimSpace(b), err)
			}
		}
	})
}
