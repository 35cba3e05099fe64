package bilevel_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/fileops/pdfops/internal/bilevel"
	"github.com/filewright/filewright/internal/systest"
)

// pictures returns bitmaps of several kinds and odd sizes, as samples of a PDF
// image.
func pictures() map[string]bilevel.Bitmap {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make(map[string]bilevel.Bitmap)
	widths := []int{1, 8, 9, 17, 33, 1001}
	if testing.Short() {
		widths = []int{1, 9, 1001}
	}
	for _, w := range widths {
		for kind, black := range map[string]func(x, y int) bool{
			"noise":  func(int, int) bool { return rng.IntN(2) == 0 },
			"sparse": func(int, int) bool { return rng.IntN(40) == 0 },
			"white":  func(int, int) bool { return false },
			"black":  func(int, int) bool { return true },
			"discs":  func(x, y int) bool { return (x%40-20)*(x%40-20)+(y%40-20)*(y%40-20) < 200 },
			"lines":  func(_, y int) bool { return y%10 < 3 },
		} {
			h := 1 + rng.IntN(120)
			b := bilevel.Bitmap{Width: w, Height: h}
			b.Rows = make([]byte, b.Stride()*h)
			for y := range h {
				for x := range w {
					if black(x, y) {
						b.Rows[y*b.Stride()+x/8] |= 0x80 >> (x % 8)
					}
				}
			}
			out[fmt.Sprintf("%s %dx%d", kind, w, h)] = b
		}
	}
	return out
}

// poppler decodes our output.
func TestJBIG2(t *testing.T) {
	t.Parallel()
	for name, b := range pictures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := bilevel.JBIG2(b)
			dir := t.TempDir()
			doc := fmt.Sprintf("%%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n"+
				"3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Resources<</XObject<</I 4 0 R>>>>/Contents 5 0 R>>\nendobj\n"+
				"4 0 obj\n<</Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceGray/BitsPerComponent 1/Filter/JBIG2Decode/Length %d>>\nstream\n%s\nendstream\nendobj\n"+
				"5 0 obj\n<</Length 5>>\nstream\n/I Do\nendstream\nendobj\ntrailer\n<</Root 1 0 R>>\n", b.Width, b.Height, len(data), data)
			in := filepath.Join(dir, "in.pdf")
			systest.NoError(t, os.WriteFile(in, []byte(doc), 0o600))
			if out, err := exec.CommandContext(t.Context(), "pdfimages", in, filepath.Join(dir, "i")).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got := systest.ReadFile(t, filepath.Join(dir, "i-000.pbm"))
			want := append(fmt.Appendf(nil, "P4\n%d %d\n", b.Width, b.Height), b.Rows...)
			if !bytes.Equal(got, want) {
				t.Errorf("poppler reads something else: %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

// We decode libtiff's output.
func TestFax(t *testing.T) {
	t.Parallel()
	for name, b := range pictures() {
		if b.Width < 8 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in.pbm"), filepath.Join(dir, "out.tiff")
			systest.NoError(t, os.WriteFile(in, append(fmt.Appendf(nil, "P4\n%d %d\n", b.Width, b.Height), b.Rows...), 0o600))
			if out, err := exec.CommandContext(t.Context(), "vips", "tiffsave", in, out, "--compression", "ccittfax4", "--bitdepth", "1").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			tiff := systest.ReadFile(t, out)
			strips, rows, inverse := stripsOf(t, tiff)
			for i, strip := range strips {
				h := min(rows, b.Height-i*rows)
				samples, err := bilevel.Fax{K: -1, Inverse: inverse}.Samples(strip, b.Width, h)
				systest.NoError(t, err)
				got, err := bilevel.FromSamples(samples, b.Width, h)
				systest.NoError(t, err)
				if want := b.Rows[i*rows*b.Stride():][:h*b.Stride()]; !bytes.Equal(got.Rows, want) {
					t.Errorf("strip %d differs", i)
				}
			}
		})
	}
}

// stripsOf returns the strips of a little-endian TIFF file, the rows of each
// strip, and whether samples of 1 are black.
func stripsOf(t *testing.T, b []byte) (strips [][]byte, rows int, blackIs1 bool) {
	t.Helper()
	num := func(at, n int) int {
		v := 0
		for i := n - 1; i >= 0; i-- {
			v = v<<8 | int(b[at+i])
		}
		return v
	}
	if string(b[:2]) != "II" {
		t.Fatal("not little-endian")
	}
	list := func(e int) []int {
		size := map[int]int{3: 2, 4: 4}[num(e+2, 2)]
		n, at := num(e+4, 4), e+8
		if n*size > 4 {
			at = num(e+8, 4)
		}
		var out []int
		for i := range n {
			out = append(out, num(at+i*size, size))
		}
		return out
	}
	var offsets, counts []int
	ifd := num(4, 4)
	for i := range num(ifd, 2) {
		e := ifd + 2 + 12*i
		switch num(e, 2) {
		case 262:
			// 0 is white in a fax; photometric 0 means that samples of 0 are white.
			blackIs1 = list(e)[0] == 1
		case 273:
			offsets = list(e)
		case 278:
			rows = list(e)[0]
		case 279:
			counts = list(e)
		}
	}
	for i, off := range offsets {
		strips = append(strips, b[off:off+counts[i]])
	}
	return strips, rows, blackIs1
}

func TestLimits(t *testing.T) {
	t.Parallel()
	if _, err := bilevel.FromSamples(make([]byte, 3), 8, 4); err == nil {
		t.Error("too few samples are accepted")
	}
	if _, err := bilevel.FromSamples(nil, 1<<20, 1<<20); err == nil {
		t.Error("no limit")
	}
	if _, err := (bilevel.Fax{K: 4}).Samples(nil, 8, 8); err == nil {
		t.Error("an unknown kind of fax is accepted")
	}
}

func FuzzFax(f *testing.F) {
	f.Add([]byte{0x00, 0x10, 0x01}, -1, uint16(100), uint16(10))
	f.Add([]byte{0xff, 0x00}, 0, uint16(9), uint16(2))
	f.Fuzz(func(t *testing.T, b []byte, k int, w, h uint16) {
		width, height := 1+int(w)%2000, 1+int(h)%200
		samples, err := bilevel.Fax{K: k}.Samples(b, width, height)
		if err != nil {
			return
		}
		bitmap, err := bilevel.FromSamples(samples, width, height)
		systest.NoError(t, err)
		bilevel.JBIG2(bitmap)
	})
}

func ExampleJBIG2() {
	// 64 rows of 64 samples: all black, which is 0.
	b, err := bilevel.FromSamples(make([]byte, 8*64), 64, 64)
	fmt.Println(len(bilevel.JBIG2(b)) < 80, err)
	// Output: true <nil>
}
