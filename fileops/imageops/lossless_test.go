package imageops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/filewright/filewright/fileops"
	sandbox "github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/internal/systest"
)

// detailed returns a JPEG photo of width × height pixels, in which every direction looks
// different.
func detailed(t testing.TB, width, height int) *fileops.File {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.RGBA{uint8(x * 255 / width), uint8(y * 255 / height), uint8((x*7 ^ y*3) & 127), 255})
		}
	}
	var b bytes.Buffer
	systest.NoError(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: 60}))
	return fileops.Bytes("in.jpg", b.Bytes())
}

// pixels decodes a JPEG file as it is stored, by a decoder that did not make it.
func pixels(t testing.TB, f *fileops.File) *image.YCbCr {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(content(t, f)))
	systest.NoError(t, err)
	return m.(*image.YCbCr)
}

// withWarnings runs an action with one result and returns the codes of its warnings.
func withWarnings(t testing.TB, a fileops.Action, args fileops.Args, in *fileops.File) (out *fileops.File, codes []string) {
	t.Helper()
	r := &fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
	systest.NoError(t, r.Run(t.Context(), a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := f.ReadAll(1 << 30)
		out = fileops.Bytes(f.Name(), bytes.Clone(b))
		return err
	}), in))
	return out, codes
}

// A JPEG file is turned without losses: after a whole turn all pixels are what they were, and
// each step shows the picture turned. Metadata stay, but not the preview.
func TestLosslessTurns(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for o := 1; o <= 8; o++ {
		path := save(t, detailed(t, 96, 64))
		tool(t, "exiftool", "-q", "-n", fmt.Sprintf("-Orientation=%d", o), "-Artist=Somebody", "-overwrite_original", path)
		in := fileops.Bytes("in.jpg", systest.ReadFile(t, path))
		for _, step := range []fileops.Args{
			{"angle": 90}, {"angle": 180}, {"angle": 270},
			{"convert_to": "jpg", "flip": "horizontal"}, {"convert_to": "jpg", "flip": "vertical"}, {"convert_to": "jpg", "rotate": 90, "flip": "horizontal"},
		} {
			a := e.Rotate()
			if step["convert_to"] != nil {
				a = e.Convert()
			}
			out, codes := withWarnings(t, a, step, in)
			if len(codes) > 0 {
				t.Errorf("orientation %d, %v: %v", o, step, codes)
			}
			// The same by way of a lossless format.
			png := fileops.Args{"convert_to": "png"}
			for from, to := range map[string]string{"angle": "rotate", "rotate": "rotate", "flip": "flip"} {
				if v := step[from]; v != nil {
					png[to] = v
				}
			}
			if d := difference(decoded(t, one(t, e.Convert(), png, in)), decoded(t, out)); d > 2 {
				t.Errorf("orientation %d, %v: the picture differs by %.1f", o, step, d)
			}
			got := tags(t, out)
			if got["EXIF:Artist"] != "Somebody" || got["EXIF:Orientation"] != 1.0 {
				t.Errorf("orientation %d, %v: %v", o, step, got)
			}
		}
		if o > 1 {
			continue
		}
		whole := in
		for range 4 {
			whole = one(t, e.Rotate(), fileops.Args{"angle": 90}, whole)
		}
		if a, b := pixels(t, in), pixels(t, whole); !bytes.Equal(a.Y, b.Y) || !bytes.Equal(a.Cb, b.Cb) || !bytes.Equal(a.Cr, b.Cr) {
			t.Error("a whole turn changed pixels")
		}
	}
}

// A picture whose sides are not multiples of its blocks, or with a part that would not be
// turned, is compressed again, with a warning. So is every picture without jpegtran, where
// nothing else can be expected.
func TestLossyTurns(t *testing.T) {
	t.Parallel()
	e := engine(t)
	gain := content(t, detailed(t, 96, 64))
	gain = append(append(gain[:2:2], "\xff\xe2\x00\x1eurn:iso:std:iso:ts:21496:-1\x00"...), gain[2:]...)
	for name, in := range map[string]*fileops.File{"sides": detailed(t, 100, 60), "gain map": fileops.Bytes("in.jpg", gain)} {
		out, codes := withWarnings(t, e.Rotate(), fileops.Args{"angle": 90}, in)
		if len(codes) == 0 || codes[0] != fileops.WarnRecompressed {
			t.Errorf("%s: warnings %v", name, codes)
		}
		if m := pixels(t, out); m.Rect.Dx() >= m.Rect.Dy() {
			t.Errorf("%s: not turned", name)
		}
	}
	// A flip whose moving edge fits is lossless.
	if _, codes := withWarnings(t, e.Convert(), fileops.Args{"convert_to": "jpg", "flip": "vertical"}, detailed(t, 100, 64)); len(codes) > 0 {
		t.Errorf("vertical flip: %v", codes)
	}
	without, err := imageops.New(t.Context(), imageops.Options{JPEGTran: sandbox.None})
	systest.NoError(t, err)
	if out, codes := withWarnings(t, without.Rotate(), fileops.Args{"angle": 90}, detailed(t, 96, 64)); len(codes) > 0 || pixels(t, out).Rect.Dx() != 64 {
		t.Errorf("without jpegtran: %v", codes)
	}
	damaged := content(t, detailed(t, 960, 640))
	if _, err := run(t.Context(), e.Rotate(), fileops.Args{"angle": 90}, fileops.Bytes("in.jpg", damaged[:len(damaged)/2])); !errors.Is(err, fileops.ErrCorruptInput) {
		t.Errorf("damaged: %v", err)
	}
}

// The preview in the EXIF data of a photo would show its old direction.
func TestTurnedPreview(t *testing.T) {
	t.Parallel()
	path, preview := save(t, detailed(t, 96, 64)), save(t, detailed(t, 48, 32))
	tool(t, "exiftool", "-q", "-Artist=Somebody", "-ThumbnailImage<="+preview, "-overwrite_original", path)
	in := fileops.Bytes("in.jpg", systest.ReadFile(t, path))
	if tags(t, in)["EXIF:ThumbnailImage"] == nil {
		t.Fatal("no preview in the file")
	}
	if got := tags(t, one(t, engine(t).Rotate(), fileops.Args{"angle": 90}, in)); got["EXIF:ThumbnailImage"] != nil || got["EXIF:Artist"] != "Somebody" || got["ExifTool:Warning"] != nil {
		t.Errorf("%v", got)
	}
}
