package imageops

import (
	"bytes"
	"image"
	"testing"

	"golang.org/x/image/tiff"
)

// FuzzHeaders gives damaged pictures to what reads parts of them in Go.
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
