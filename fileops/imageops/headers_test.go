package imageops

import (
	"bytes"
	"image"
	"testing"

	"golang.org/x/image/tiff"
)

// FuzzHeaders runs the header parsers in Go on damaged pictures.
func FuzzHeaders(f *testing.F) {
	var tf bytes.Buffer
	if err := tiff.Encode(&tf, image.NewNRGBA(image.Rect(0, 0, 9, 7)), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(tf.Bytes())
	f.Fuzz(func(_ *testing.T, b []byte) {
		readTIFF(b)
		losslessWebP(b)
	})
}
