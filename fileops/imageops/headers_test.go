package imageops

import (
	"bytes"
	"image"
	"testing"

	"golang.org/x/image/tiff"

	"github.com/filewright/filewright/internal/systest"
)

// FuzzHeaders runs the header parsers in Go on damaged pictures.
func FuzzHeaders(f *testing.F) {
	var tf bytes.Buffer
	systest.NoError(f, tiff.Encode(&tf, image.NewNRGBA(image.Rect(0, 0, 9, 7)), nil))
	f.Add(tf.Bytes())
	f.Fuzz(func(_ *testing.T, b []byte) {
		readTIFF(b)
		losslessWebP(b)
	})
}
