package imagefile

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// FuzzHeaders runs the header parsers on damaged pictures.
func FuzzHeaders(f *testing.F) {
	m := image.NewNRGBA(image.Rect(0, 0, 9, 7))
	var p, j bytes.Buffer
	systest.NoError(f, errors.Join(png.Encode(&p, m), jpeg.Encode(&j, m, nil)))
	exif := WithOrientation(j.Bytes(), 6)
	withProfile, err := WithPNGProfile(p.Bytes(), make([]byte, 200))
	systest.NoError(f, err)
	for _, b := range [][]byte{p.Bytes(), j.Bytes(), exif, withProfile, WithJPEGProfile(exif, make([]byte, 200))} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, err := ReadJPEG(b); err == nil && (j.Width == 0 || j.Height == 0 || j.Components == 0) {
			t.Errorf("%+v", j)
		}
		if p, err := ReadPNG(b); err == nil && (p.Width == 0 || p.Height == 0 || p.Channels() == 0) {
			t.Errorf("%+v", p)
		}
		readEXIF(b)
		PNGProfile(b)
		CopyColourChunks(p.Bytes(), b)
		SplitMetadata(b)
		WithoutChunk(b, "tEXt")
	})
}

// Written headers can be read back.
func TestHeaders(t *testing.T) {
	t.Parallel()
	m := image.NewRGBA(image.Rect(0, 0, 9, 7))
	profile := bytes.Repeat([]byte("profile"), 20_000) // two segments of JPEG
	for _, quality := range []int{1, 10, 50, 75, 95, 100} {
		var b bytes.Buffer
		systest.NoError(t, WriteJPEG(&b, m, quality, 300))
		got, err := ReadJPEG(WithJPEGProfile(WithOrientation(b.Bytes(), 8), profile))
		if err != nil || got.Width != 9 || got.Height != 7 || got.Components != 3 || got.Bits != 8 || got.Process != 0xc0 || !got.Complete || got.FullColour {
			t.Errorf("%+v, %v", got, err)
		}
		if got.Quality != quality || got.Density != (Density{300, 300}) || got.Orientation != 8 || !bytes.Equal(got.Profile, profile) {
			t.Errorf("quality %d, density %v, orientation %d, profile of %d bytes", got.Quality, got.Density, got.Orientation, len(got.Profile))
		}
	}
	var b bytes.Buffer
	systest.NoError(t, WritePNG(&b, m, 300))
	whole, err := WithPNGProfile(b.Bytes(), profile)
	systest.NoError(t, err)
	got, err := ReadPNG(whole)
	if err != nil || got.Width != 9 || got.Height != 7 || got.Depth != 1 || got.Colour != PNGPalette || got.Density != (Density{300, 300}) || !bytes.Equal(got.Profile, profile) {
		t.Errorf("%+v, %v", got, err)
	}
	systest.Check(t, got.CheckData())
	got.Height++
	if got.CheckData() == nil {
		t.Error("a row is missing, and there is no error")
	}
	whole[len(whole)-20] ^= 1
	if _, err := ReadPNG(whole); err == nil {
		t.Error("damaged content, and no error")
	}
}
