//go:build cgo

package imageops

import (
	"image"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// Large pictures are encoded as WebP with an effort at which libwebp does not start again. What
// counts is the size of a frame.
func TestEffortOfWebP(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), Options{})
	systest.NoError(t, err)
	one, err := fromImage(decoded{img: image.NewNRGBA(image.Rect(0, 0, 1, 1))})
	systest.NoError(t, err)
	defer one.close()
	for _, c := range []struct {
		width, height, frames int
		t                     plan
		want                  string
	}{
		{8000, 4000, 1, plan{}, "effort=4"},
		{8000, 4200, 1, plan{}, "effort=2"},
		{8000, 6000, 1, plan{quality: 75, small: true}, "effort=2"},
		{8000, 6000, 1, plan{lossless: true}, "effort=4"},
		{8000, 6000, 1, plan{quality: 100}, "effort=4"},
		{1000, 100_000, 100, plan{}, "effort=4"},
	} {
		p, err := one.blank(c.width, c.height)
		systest.NoError(t, err)
		if c.frames > 1 {
			systest.NoError(t, p.SetPages(c.frames))
			systest.NoError(t, p.SetPageHeight(c.height/c.frames))
		}
		c.t.to = format.WebP
		if got := saveOptions(p, c.t); !strings.Contains(got, c.want) {
			t.Errorf("%d x %d pixels, %d frames, plan %+v: options %s, want %s", c.width, c.height, c.frames, c.t, got, c.want)
		}
		p.close()
	}
}
