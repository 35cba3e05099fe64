package imageops

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"testing"

	"golang.org/x/image/tiff"
)

// FuzzHeaders gives damaged pictures to what reads parts of them in Go.
func FuzzHeaders(f *testing.F) {
	m := image.NewNRGBA(image.Rect(0, 0, 9, 7))
	var p, j, tf bytes.Buffer
	if err := errors.Join(png.Encode(&p, m), jpeg.Encode(&j, m, nil), tiff.Encode(&tf, m, nil)); err != nil {
		f.Fatal(err)
	}
	exif := "\xff\xd8\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	for _, b := range [][]byte{p.Bytes(), j.Bytes(), tf.Bytes(), []byte(exif)} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		readTIFF(b)
		readJPEG(b)
		losslessWebP(b)
		copyColourChunks(p.Bytes(), b)
	})
}
