package imagefile

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/xmp"
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

// editAll changes metadata of anything that b may be.
func editAll(b []byte) (out [][]byte) {
	set := map[string][]string{"title": {"a"}, "author": {"b", "c"}, "software": nil, "copyright": {"long enough"}}
	for _, e := range []Edit{{Set: set}, {EXIF: true, XMP: true, IPTC: true, Comments: true}} {
		j, err1 := e.JPEG(b)
		p, err2 := e.PNG(b)
		w, err3 := e.WebP(b, 9, 7)
		if err1 == nil && err2 == nil && err3 == nil {
			out = append(out, j, p, w)
		}
	}
	x, _ := editEXIF(b, map[uint16]string{0x13b: "somebody", 0x131: "", 0x112: ""})
	return append(out, x, xmp.Edit(b, properties(set)))
}

// FuzzMetadata changes damaged metadata. What is written can be changed again.
func FuzzMetadata(f *testing.F) {
	m := image.NewNRGBA(image.Rect(0, 0, 9, 7))
	var p, j bytes.Buffer
	systest.NoError(f, errors.Join(png.Encode(&p, m), jpeg.Encode(&j, m, nil)))
	for _, b := range [][]byte{
		p.Bytes(), j.Bytes(), WithOrientation(j.Bytes(), 6), []byte("RIFF\x1e\x00\x00\x00WEBPVP8L\x05\x00\x00\x00\x2f\x00\x00\x00\x10\x00XMP \x01\x00\x00\x00<\x00"),
		[]byte("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x3b\x00\x02\x00\x00\x00\x05\x00\x00\x00\x1a\x00\x00\x00\x00abcd\x00"),
		[]byte("<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description rdf:about='x' xmlns:dc='" + xmp.DublinCore + "' dc:title='a'><dc:creator>b</dc:creator></rdf:Description></rdf:RDF>"),
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, out := range editAll(b) {
			editAll(out)
		}
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
