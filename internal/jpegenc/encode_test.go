package jpegenc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"math"
	"testing"

	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
	"github.com/filewright/filewright/internal/jpegenc"
	"github.com/filewright/filewright/internal/ssimulacra"
	"github.com/filewright/filewright/internal/systest"
)

// scene returns a picture with soft and sharp structures.
func scene(w, h, components int) raster.Samples {
	s := raster.Samples{Width: w, Height: h, Components: components, Pix: make([]byte, components*w*h)}
	seed := uint32(7)
	for i := range s.Pix {
		x, y, c := i/components%w, i/components/w, i%components
		seed = seed*1664525 + 1013904223
		v := 120 + 60*math.Sin(float64(x*(c+1))/19) + 40*math.Cos(float64(y)/27+float64(x)/63) + float64(seed>>28)
		if (x/29+y/23)%3 == 0 {
			v += 30 - 20*float64(c)
		}
		s.Pix[i] = uint8(min(255, max(0, v)))
	}
	return s
}

func decode(t *testing.T, b []byte) raster.Samples {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(b))
	systest.NoError(t, err)
	s, err := imagefile.FromImage(m)
	systest.NoError(t, err)
	return s
}

// Pictures of all sizes relative to blocks and MCUs decode to what was encoded.
func TestEncode(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{1, 1}, {7, 3}, {8, 8}, {16, 16}, {17, 33}, {100, 60}, {160, 121}} {
		for _, components := range []int{1, 3} {
			for _, full := range []bool{false, true} {
				for _, q := range []int{1, 30, 75, 100} {
					s := scene(size[0], size[1], components)
					b, err := jpegenc.Encode(t.Context(), s, jpegenc.Options{Quality: q, FullColour: full})
					systest.NoError(t, err)
					name := fmt.Sprintf("%v, %d components, full colour %t, quality %d", size, components, full, q)
					got := decode(t, b)
					if got.Width != s.Width || got.Height != s.Height || got.Components != components {
						t.Fatalf("%s: %d × %d, %d components", name, got.Width, got.Height, got.Components)
					}
					sum := 0.0
					for i, v := range s.Pix {
						sum += math.Abs(float64(v) - float64(got.Pix[i]))
					}
					bound := map[int]float64{1: 60, 30: 20, 75: 12, 100: 10}[q]
					if full || components == 1 {
						bound = map[int]float64{1: 60, 30: 12, 75: 6, 100: 1}[q]
					}
					if mean := sum / float64(len(s.Pix)); mean > bound {
						t.Errorf("%s: mean difference %.1f", name, mean)
					}
				}
			}
		}
	}
}

// Extremes of contrast need the largest codes.
func TestEncodeExtremes(t *testing.T) {
	t.Parallel()
	s := raster.Samples{Width: 64, Height: 64, Components: 3, Pix: make([]byte, 3*64*64)}
	seed := uint32(1)
	for i := range s.Pix {
		seed = seed*1664525 + 1013904223
		s.Pix[i] = byte(int32(seed) >> 31) // 0 or 255
	}
	b, err := jpegenc.Encode(t.Context(), s, jpegenc.Options{Quality: 100, FullColour: true})
	systest.NoError(t, err)
	got := decode(t, b)
	for i, v := range s.Pix {
		if d := int(v) - int(got.Pix[i]); d > 4 || d < -4 {
			t.Fatalf("sample %d is %d, want %d", i, got.Pix[i], v)
		}
	}
}

// At the same score, files are smaller than those of image/jpeg, which quantizes
// without regard to size and writes no optimized codes.
func TestSmaller(t *testing.T) {
	t.Parallel()
	s := scene(320, 240, 3)
	ref, err := ssimulacra.NewReference(s)
	systest.NoError(t, err)
	score := func(b []byte) float64 {
		v, err := ref.Score(decode(t, b))
		systest.NoError(t, err)
		return v
	}
	var plain bytes.Buffer
	systest.NoError(t, jpeg.Encode(&plain, imagefile.RGBA(s), &jpeg.Options{Quality: 75}))
	want := score(plain.Bytes())
	for q := 50; q < 95; q++ {
		b, err := jpegenc.Encode(t.Context(), s, jpegenc.Options{Quality: q})
		systest.NoError(t, err)
		if score(b) >= want {
			if ratio := float64(len(b)) / float64(plain.Len()); ratio > 0.8 {
				t.Errorf("%d bytes at the score of %d bytes", len(b), plain.Len())
			}
			return
		}
	}
	t.Error("the score is not reached")
}

func TestHeader(t *testing.T) {
	t.Parallel()
	profile := bytes.Repeat([]byte("profile "), 10000) // two segments
	b, err := jpegenc.Encode(t.Context(), scene(40, 30, 3), jpegenc.Options{Quality: 80, X: 300, Y: 150, Profile: profile})
	systest.NoError(t, err)
	j, err := imagefile.ReadJPEG(b)
	if err != nil || !j.Complete || j.Process != 0xc2 || j.FullColour || j.Density != (imagefile.Density{X: 300, Y: 150}) || !bytes.Equal(j.Profile, profile) {
		t.Errorf("complete %t, process %x, density %v, %d bytes of profile: %v", j.Complete, j.Process, j.Density, len(j.Profile), err)
	}
	b, err = jpegenc.Encode(t.Context(), scene(40, 30, 1), jpegenc.Options{Quality: 80})
	systest.NoError(t, err)
	if j, err := imagefile.ReadJPEG(b); err != nil || j.Density.X != 0 || j.Profile != nil {
		t.Errorf("density %v: %v", j.Density, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, s := range []raster.Samples{{}, scene(8, 8, 4), {Width: 65501, Height: 1, Components: 1, Pix: make([]byte, 65501)}} {
		if _, err := jpegenc.Encode(t.Context(), s, jpegenc.Options{Quality: 75}); err == nil {
			t.Errorf("%d × %d, %d components: no error", s.Width, s.Height, s.Components)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := jpegenc.Encode(ctx, scene(8, 8, 3), jpegenc.Options{Quality: 75}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add(uint8(9), uint8(17), uint8(75), []byte("samples"))
	f.Fuzz(func(t *testing.T, w, h, q uint8, seed []byte) {
		if w == 0 || h == 0 || len(seed) == 0 {
			return
		}
		s := raster.Samples{Width: int(w), Height: int(h), Components: 3, Pix: make([]byte, 3*int(w)*int(h))}
		for i := range s.Pix {
			s.Pix[i] = seed[i%len(seed)] + byte(i*int(seed[0]))
		}
		b, err := jpegenc.Encode(t.Context(), s, jpegenc.Options{Quality: int(q)})
		systest.NoError(t, err)
		if got := decode(t, b); got.Width != s.Width || got.Height != s.Height {
			t.Fatalf("%d × %d", got.Width, got.Height)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	s := scene(1024, 1024, 3)
	b.SetBytes(1 << 20)
	for b.Loop() {
		if _, err := jpegenc.Encode(b.Context(), s, jpegenc.Options{Quality: 75}); err != nil {
			b.Fatal(err)
		}
	}
}
