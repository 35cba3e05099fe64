package mediaops_test

import (
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/fileops"
)

// A turned video looks turned, and is not encoded where its format can say so.
func TestRotate(t *testing.T) {
	t.Parallel()
	e := engine(t)
	in := quarters(t, "in.mp4", "-c:a aac -metadata title=Title")
	for _, tt := range []struct {
		ext    string
		angle  int
		want   string
		copied bool
	}{
		{"mp4", 90, "wrgb", true}, {"mp4", 180, "bwrg", true}, {"mov", 270, "gbwr", true}, {"m4v", -90, "gbwr", true}, {"3gp", 90, "wrgb", true},
		{"mkv", 90, "wrgb", false}, {"webm", 180, "bwrg", false}, {"ts", 270, "gbwr", false}, {"avi", 90, "wrgb", false}, {"mpeg", 90, "wrgb", false},
	} {
		t.Run(tt.ext, func(t *testing.T) {
			t.Parallel()
			f := in
			if tt.ext != "mp4" {
				f = fileops.Path(must(t, e.Convert(), convertTo(tt.ext), in))
			}
			out := must(t, e.Rotate(), fileops.Args{"angle": tt.angle}, f)
			if filepath.Base(out) != "in."+tt.ext {
				t.Errorf("result %s", filepath.Base(out))
			}
			if got := corners(t, out, map[bool]float64{false: 0.2}[tt.ext == "ts"]); got != tt.want {
				t.Errorf("corners %s, want %s", got, tt.want)
			}
			p := probe(t, out)
			if len(p.codecs("audio")) != 1 || len(p.codecs("video")) != 1 {
				t.Errorf("streams %+v", p.Streams)
			}
			if copied := hash(t, onDisk(t, f), "v:0", "-c", "copy") == hash(t, out, "v:0", "-c", "copy"); copied != tt.copied {
				t.Errorf("copied: %t", copied)
			}
			if tt.copied && hash(t, onDisk(t, f), "a:0", "-c", "copy") != hash(t, out, "a:0", "-c", "copy") {
				t.Error("the sound was encoded")
			}
			if tt.ext == "mp4" && p.Format.Tags["title"] != "Title" {
				t.Errorf("tags %v", p.Format.Tags)
			}
			if got := warned(t, e.Rotate(), fileops.Args{"angle": tt.angle}, f); got != "" {
				t.Errorf("warnings %q", got)
			}
			if tt.angle != 90 {
				return
			}
			// Four quarters are the same picture again.
			for range 3 {
				out = must(t, e.Rotate(), fileops.Args{"angle": 90}, fileops.Path(out))
			}
			if got := corners(t, out, 0.2); got != "rgbw" {
				t.Errorf("corners %s after four turns", got)
			}
			if s := probe(t, out).Streams[0]; s.Width != 160 || s.Height != 120 {
				t.Errorf("%d × %d after four turns", s.Width, s.Height)
			}
		})
	}
}
