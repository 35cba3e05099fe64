package imagefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/systest"
)

// pattern returns w × h samples with a gradient, noise in one half and flat
// areas, so that every filter is used.
func pattern(w, h, components int) raster.Samples {
	m := raster.Samples{Width: w, Height: h, Components: components, Pix: make([]byte, w*h*components)}
	rng := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	i := 0
	for y := range h {
		for x := range w {
			for c := range components {
				v := x*(c+1) + y
				switch {
				case y > h/2 && x > w/2:
					v += int(rng.Uint32() % 32)
				case y > h/2:
					v = 255 * (x / 40 % 2)
				}
				m.Pix[i] = byte(v)
				i++
			}
		}
	}
	return m
}

// image/png and libvips decode the original samples.
func TestEncodePNG(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{1, 1}, {1, 700}, {70000, 2}, {33, 17}, {900, 1400}} {
		for components := 1; components <= 4; components++ {
			t.Run(fmt.Sprintf("%v-%d", size, components), func(t *testing.T) {
				t.Parallel()
				m := pattern(size.X, size.Y, components)
				b, err := EncodePNG(context.Background(), m, nil, nil)
				systest.NoError(t, err)
				img, err := png.Decode(bytes.NewReader(b))
				systest.NoError(t, err)
				got := image.NewNRGBA(img.Bounds())
				if g, ok := img.(*image.Gray); ok {
					for i, v := range g.Pix {
						copy(got.Pix[4*i:], []byte{v, v, v, 255})
					}
				} else if n, ok := img.(*image.NRGBA); ok {
					got = n
				} else {
					draw.Draw(got, got.Rect, img, image.Point{}, draw.Src)
				}
				for i := range size.X * size.Y {
					s := m.Pix[i*components:][:components]
					want := [4]byte{s[0], s[0], s[0], 255}
					if components%2 == 0 {
						want[3] = s[components-1]
					}
					if components > 2 {
						copy(want[:3], s)
					}
					if [4]byte(got.Pix[4*i:]) != want {
						t.Fatalf("pixel %d is %v, want %v", i, got.Pix[4*i:4*i+4], want)
					}
				}
			})
		}
	}
}

// Strict checkers of the format find no defects.
func TestEncodePNGJudged(t *testing.T) {
	t.Parallel()
	m := pattern(1201, 1999, 3)
	b, err := EncodePNG(t.Context(), m, nil, nil)
	systest.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.png")
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	raw := filepath.Join(filepath.Dir(path), "x.v")
	if out, err := exec.Command("vips", "copy", path, raw).CombinedOutput(); err != nil {
		t.Fatalf("vips: %v\n%s", err, out)
	}
	out, err := exec.Command("ffmpeg", "-nostdin", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-").Output()
	if err != nil {
		t.Fatalf("ffmpeg: %v", err)
	}
	if !bytes.Equal(out, m.Pix) {
		t.Error("ffmpeg reads other pixels than were written")
	}
}

func TestEncodePNGStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrDeadlineExceeded)
	if _, err := EncodePNG(ctx, pattern(500, 500, 3), nil, nil); err == nil {
		t.Error("no error after the context was done")
	}
}

// Rows that arrive in pieces of any size give the same file as all at once.
func TestPNGWriter(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{1, 1}, {70000, 12}, {900, 1400}} {
		m := pattern(size.X, size.Y, 3)
		want, err := EncodePNG(t.Context(), m, nil, nil)
		systest.NoError(t, err)
		for _, piece := range []int{1000, 3 * size.X, 40 * 3 * size.X, len(m.Pix)} {
			w := NewPNGWriter(t.Context(), size.X, size.Y, 3)
			for part := range slices.Chunk(m.Pix, piece) {
				_, err := w.Write(part)
				systest.NoError(t, err)
			}
			got, err := w.Finish(nil, nil)
			systest.NoError(t, err)
			if !bytes.Equal(got, want) {
				t.Errorf("%v in pieces of %d bytes: another file", size, piece)
			}
			if _, err := w.Write([]byte{0}); err == nil {
				t.Error("no error for more pixels than the picture has")
			}
		}
		w := NewPNGWriter(t.Context(), size.X, size.Y, 3)
		_, err = w.Write(m.Pix[1:])
		systest.NoError(t, err)
		if _, err := w.Finish(nil, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a missing pixel: %v", err)
		}
	}
}
