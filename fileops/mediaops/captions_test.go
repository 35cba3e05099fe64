package mediaops_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// The subtitles of a video become a file, by default those of the default track.
func TestCaptions(t *testing.T) {
	t.Parallel()
	e := engine(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		systest.NoError(t, os.WriteFile(p, []byte(text), 0o600))
		return p
	}
	first := write("a.srt", "1\n00:00:00,200 --> 00:00:00,800\n<i>first</i>\nline\n")
	second := write("b.ass", "[Script Info]\n[V4+ Styles]\nFormat: Name, Fontname\nStyle: Big,Arial\n[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\nDialogue: 0,0:00:00.20,0:00:00.80,Big,,0,0,0,,{\\pos(1,2)}second\n")
	mkv := makeFile(t, "in.mkv", args(picture("160x120", 25, 1), "-i", first, "-i", second, "-map 0 -map 1 -map 2 -c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:s:0 srt -c:s:1 copy -disposition:s:1 default")...)
	mp4 := makeFile(t, "in.mp4", args(picture("160x120", 25, 1), "-i", first, "-map 0 -map 1 -c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:s mov_text")...)
	none := makeFile(t, "none.mp4", args(picture("160x120", 25, 1), "-c:v libx264 -preset ultrafast -pix_fmt yuv420p")...)
	for name, tt := range map[string]struct {
		in      *fileops.File
		args    fileops.Args
		want    string
		warning string
	}{
		"copied":       {mkv, convertTo("srt", "subtitle_track", 1), "00:00:00,200 --> 00:00:00,800\n<i>first</i>\nline", ""},
		"default":      {mkv, convertTo("ass"), `,Big,,0,0,0,,{\pos(1,2)}second`, "streams_dropped"},
		"other format": {mkv, convertTo("vtt", "subtitle_track", 2), "00:00.200 --> 00:00.800\nsecond", "layout_simplified"},
		"mp4":          {mp4, convertTo("vtt"), "00:00.200 --> 00:00.800\n<i>first</i>\nline", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := must(t, e.Captions(), tt.args, tt.in)
			text := strings.ReplaceAll(string(systest.ReadFile(t, out)), "\r\n", "\n")
			if !strings.Contains(text, tt.want) {
				t.Errorf("%q is not in %q", tt.want, text)
			}
			if got := warned(t, e.Captions(), tt.args, tt.in); tt.warning == "" && got != "" || !strings.Contains(got, tt.warning) {
				t.Errorf("warnings %q, want %q", got, tt.warning)
			}
		})
	}
	for name, tt := range map[string]struct {
		in   *fileops.File
		args fileops.Args
		want string
	}{
		"none":     {none, convertTo("srt"), "the file has no subtitles"},
		"no track": {mkv, convertTo("srt", "subtitle_track", 3), "the file has 2 subtitle tracks"},
	} {
		if _, err := run(t, e.Captions(), tt.args, tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
