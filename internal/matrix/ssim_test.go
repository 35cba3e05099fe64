package matrix_test

import (
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

// TestGolden compares rendered documents with reviewed pictures. The threshold permits edges drawn
// differently by other versions of a font or engine. It does not permit text that is missing, moved
// or of another size.
func TestGolden(t *testing.T) {
	t.Parallel()
	const bound = 0.98
	for _, tt := range []struct {
		from format.Format
		args fileops.Args
	}{
		{format.DOCX, fileops.Args{"convert_to": "png", "dpi": 60}},
		{format.MD, fileops.Args{"convert_to": "png", "dpi": 60}},
		{format.CSV, fileops.Args{"convert_to": "png", "dpi": 60}},
		{format.PPTX, fileops.Args{"convert_to": "png", "dpi": 48, "pages": "1"}},
		{format.PDF, fileops.Args{"convert_to": "png", "dpi": 60, "pages": "1"}},
		{format.SVG, fileops.Args{"convert_to": "png"}},
	} {
		t.Run(string(tt.from), func(t *testing.T) {
			t.Parallel()
			out, err := perform(t, "convert", tt.args, specimen.Of(t, tt.from))
			if err != nil || len(out) != 1 {
				t.Fatalf("%d results: %v", len(out), err)
			}
			got := decode(t, out[0])
			golden := filepath.Join("testdata", "golden", string(tt.from)+".png")
			if *update {
				writeGolden(t, golden, got)
			}
			want := decode(t, golden)
			if got.Rect != want.Rect {
				t.Fatalf("%v pixels, want %v", got.Rect.Max, want.Rect.Max)
			}
			if s := ssim(got, want); s < bound {
				t.Errorf("SSIM %.4f, want at least %.2f", s, bound)
			} else {
				t.Logf("SSIM %.4f", s)
			}
		})
	}
}

// A comparison that never fails would be worthless.
func TestSSIM(t *testing.T) {
	t.Parallel()
	a := decode(t, filepath.Join("testdata", "golden", "docx.png"))
	moved := image.NewNRGBA(a.Rect)
	blank := image.NewNRGBA(a.Rect)
	for y := range a.Rect.Dy() {
		for x := range a.Rect.Dx() {
			moved.SetNRGBA(x, y, a.NRGBAAt(x, max(0, y-6)))
			blank.SetNRGBA(x, y, color.NRGBA{255, 255, 255, 255})
		}
	}
	if s := ssim(a, a); s < 0.9999 {
		t.Errorf("with itself: %.4f", s)
	}
	for name, b := range map[string]*image.NRGBA{"moved": moved, "blank": blank} {
		if s := ssim(a, b); s > 0.97 {
			t.Errorf("%s: %.4f", name, s)
		}
	}
}

func writeGolden(t *testing.T, path string, m *image.NRGBA) {
	t.Helper()
	gray := image.NewGray(m.Rect)
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			gray.SetGray(x, y, color.Gray{uint8(luma(m, x, y))})
		}
	}
	f, err := os.Create(path)
	systest.NoError(t, err)
	defer f.Close()
	systest.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(f, gray))
	if st, err := f.Stat(); err != nil || st.Size() > 50<<10 {
		t.Error(fmt.Errorf("%s has %d bytes: more than is kept here (%v)", path, st.Size(), err))
	}
}

// luma returns the brightness of a pixel on white, from 0 to 255 (ITU-R BT.601).
func luma(m *image.NRGBA, x, y int) float64 {
	c := m.NRGBAAt(x, y)
	l := 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B)
	return 255 + (l-255)*float64(c.A)/255
}

// ssim returns the mean structural similarity of two pictures of the same size, in windows of 8 by
// 8 pixels that overlap by half (Wang, Bovik, Sheikh and Simoncelli 2004, equation 13). Windows
// that are blank in both pictures do not count, because most of a page is blank.
func ssim(a, b *image.NRGBA) float64 {
	const c1, c2, n = (0.01 * 255) * (0.01 * 255), (0.03 * 255) * (0.03 * 255), 64
	sum, windows := 0.0, 0
	for y := 0; y+8 <= a.Rect.Dy(); y += 4 {
		for x := 0; x+8 <= a.Rect.Dx(); x += 4 {
			var ma, mb, aa, bb, ab float64
			for j := range 8 {
				for i := range 8 {
					p, q := luma(a, x+i, y+j), luma(b, x+i, y+j)
					ma, mb, aa, bb, ab = ma+p, mb+q, aa+p*p, bb+q*q, ab+p*q
				}
			}
			ma, mb = ma/n, mb/n
			va, vb, cov := aa/n-ma*ma, bb/n-mb*mb, ab/n-ma*mb
			if va < 1 && vb < 1 && ma > 250 && mb > 250 {
				continue
			}
			sum += (2*ma*mb + c1) * (2*cov + c2) / ((ma*ma + mb*mb + c1) * (va + vb + c2))
			windows++
		}
	}
	if windows == 0 {
		return 1
	}
	return sum / float64(windows)
}
