package standard_test

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"golang.org/x/image/bmp"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/systest"
)

// Limits are checked before decoding: the first part of a picture that is too large is
// refused for its size, not because the rest is missing.
func TestHeadersAreEnough(t *testing.T) {
	t.Parallel()
	s := standard.Probe(t.Context(), &standard.Options{
		CacheDir: systest.CodeCache(), TempDir: t.TempDir(), Limits: standard.Limits{Pixels: 250 * 250},
		FFmpeg: standard.None, LibreOffice: standard.None, Pandoc: standard.None, Chromium: standard.None, Tesseract: standard.None,
	})
	t.Cleanup(func() { s.Close() })
	m := image.NewNRGBA(image.Rect(0, 0, 300, 300))
	rand.NewChaCha8([32]byte{1}).Read(m.Pix)
	whole := make(map[format.Format][]byte)
	for f, encode := range map[format.Format]func(*bytes.Buffer) error{
		format.PNG: func(b *bytes.Buffer) error { return png.Encode(b, m) }, format.JPG: func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) },
		format.GIF: func(b *bytes.Buffer) error { return gif.Encode(b, m, nil) }, format.BMP: func(b *bytes.Buffer) error { return bmp.Encode(b, m) },
	} {
		var b bytes.Buffer
		systest.NoError(t, encode(&b))
		whole[f] = b.Bytes()
	}
	for f, b := range whole {
		for action, args := range map[string][]fileops.Args{
			"convert": {{"convert_to": "webp"}, {"convert_to": "pdf"}}, "compress": {nil},
		} {
			for _, a := range args {
				if action == "compress" && f == format.BMP {
					continue // there is no smaller file of the same kind
				}
				_, err := do(t, s, 0, action, a, []*fileops.File{fileops.Bytes("a."+string(f), b[:len(b)/3])})
				if !errors.Is(err, fileops.ErrLimit) {
					t.Errorf("%s %v of a third of a %s: %v (%s)", action, a, f, err, fileops.Code(err))
				}
			}
		}
	}
}
