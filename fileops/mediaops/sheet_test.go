package mediaops_test

import (
	"bytes"
	"errors"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"slices"
	"strings"
	"testing"

	_ "golang.org/x/image/webp"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// changing returns six seconds of video that is red, then green, and then blue for two
// seconds each.
func changing(t *testing.T, name string, more ...string) *fileops.File {
	t.Helper()
	inputs := args("-f lavfi -i color=c=#ff0000:s=160x90:r=25:d=2 -f lavfi -i color=c=#00ff00:s=160x90:r=25:d=2 -f lavfi -i color=c=#0000ff:s=160x90:r=25:d=2")
	return makeFile(t, name, slices.Concat(inputs, more, args("-filter_complex [0:v][1:v][2:v]concat=n=3 -pix_fmt yuv420p"))...)
}

// letters returns the colours in the middle of the cells of a sheet, row by row: r, g, b or
// k for black.
func letters(t *testing.T, path string, columns, w, h int) string {
	t.Helper()
	b, err := os.ReadFile(path)
	systest.NoError(t, err)
	m, _, err := image.Decode(bytes.NewReader(b))
	systest.NoError(t, err)
	if m.Bounds().Dx() != columns*w || m.Bounds().Dy()%h != 0 {
		t.Fatalf("%d × %d pixels, want %d columns of %d × %d", m.Bounds().Dx(), m.Bounds().Dy(), columns, w, h)
	}
	var out strings.Builder
	for y := h / 2; y < m.Bounds().Dy(); y += h {
		for x := w / 2; x < m.Bounds().Dx(); x += w {
			c := "k"
			r, g, b, _ := m.At(x, y).RGBA()
			for i, v := range []uint32{r, g, b} {
				if v > 0x8000 {
					c = "rgb"[i : i+1]
				}
			}
			out.WriteString(c)
		}
	}
	return out.String()
}

// A sheet shows the video in order, in rows, with pictures of the size asked for.
func TestSheet(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for _, tt := range []struct {
		ext     string
		args    fileops.Args
		columns int
		w, h    int
		want    string
	}{
		{"mp4", fileops.Args{"count": 3}, 2, 160, 90, "rgbk"},
		{"mkv", fileops.Args{"count": 6, "columns": 3, "width": 80, "convert_to": "png"}, 3, 80, 45, "rrggbb"},
		{"mp4", fileops.Args{"interval": 2, "columns": 5, "height": 30, "convert_to": "webp"}, 3, 53, 30, "rgb"},
		{"avi", fileops.Args{"count": 12, "width": 32}, 4, 32, 18, "rrrrggggbbbb"},
		{"webm", fileops.Args{"interval": 1.5, "columns": 1}, 1, 160, 90, "rrgb"},
		{"ts", fileops.Args{"count": 3, "columns": 3}, 3, 160, 90, "rgb"},
	} {
		t.Run(tt.ext, func(t *testing.T) {
			t.Parallel()
			in := changing(t, "in."+tt.ext)
			out := must(t, e.Thumbnail(), tt.args, in)
			if got := letters(t, out, tt.columns, tt.w, tt.h); got != tt.want {
				t.Errorf("%v: cells %s, want %s", tt.args, got, tt.want)
			}
		})
	}
}

// The picture may end before the sound, or in the middle of the file.
func TestSheetOfShortPicture(t *testing.T) {
	t.Parallel()
	e := engine(t)
	in := changing(t, "in.mkv", args("-f lavfi -i sine=d=12")...)
	out := must(t, e.Thumbnail(), fileops.Args{"interval": 1.99, "columns": 10}, in)
	if got := letters(t, out, 4, 160, 90); got != "rgbb" { // the first frame from a time on
		t.Errorf("cells %s", got)
	}
	whole, err := os.ReadFile(onDisk(t, changing(t, "in.ts")))
	systest.NoError(t, err)
	out = must(t, e.Thumbnail(), fileops.Args{"count": 9, "columns": 9}, fileops.Bytes("in.ts", whole[:len(whole)*3/4]))
	if got := letters(t, out, 9, 160, 90); !strings.HasPrefix(got, "rr") || !strings.Contains(got, "g") {
		t.Errorf("cells %s", got)
	}
}

func TestSheetErrors(t *testing.T) {
	t.Parallel()
	e := engine(t)
	in := changing(t, "in.mp4")
	for _, tt := range []struct {
		args fileops.Args
		want string
	}{
		{nil, "count"}, {fileops.Args{"columns": 2}, "count"}, {fileops.Args{"count": 2, "interval": 2}, "combined"}, {fileops.Args{"count": 1}, "from 2"},
		{fileops.Args{"interval": 0.01}, "interval"}, {fileops.Args{"count": 400, "columns": 400, "width": 160, "convert_to": "webp"}, "too large"},
	} {
		if out, err := run(t, e.Thumbnail(), tt.args, in); !errors.Is(err, fileops.ErrParameter) || !strings.Contains(fileops.Message(err), tt.want) {
			t.Errorf("%v: %s, %v", tt.args, out, err)
		}
	}
	long := makeFile(t, "long.mp4", args("-f lavfi -i color=s=16x16:r=1:d=60")...)
	if _, err := run(t, e.Thumbnail(), fileops.Args{"interval": 0.1}, long); !errors.Is(err, fileops.ErrParameter) || !strings.Contains(fileops.Message(err), "limit of 400") {
		t.Errorf("too many pictures: %v", err)
	}
}
