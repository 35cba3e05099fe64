package imageops_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/imageops"
)

// FuzzOwnDecoders gives damaged files to the decoders that are written in Go:
// they may refuse them, but neither panic nor blame anything but the file.
func FuzzOwnDecoders(f *testing.F) {
	for _, in := range []format.Format{format.BMP, format.ICO, format.PSD} {
		b, _ := fileopstest.Sample(f, in).Bytes()
		f.Add(string(in), b)
	}
	e, err := imageops.New(&imageops.Options{MaxPixels: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		switch format.Format(ext) {
		case format.BMP, format.ICO, format.PSD:
		default:
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := run(ctx, e.Convert(), fileops.Args{"convert_to": "jpg"}, fileops.Bytes("in."+ext, data))
		if err != nil && (fileops.Code(err) == "internal_error" || errors.Is(err, fileops.ErrEngine)) {
			t.Error(err)
		}
	})
}
