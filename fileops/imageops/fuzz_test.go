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
	"github.com/filewright/filewright/internal/systest"
)

// FuzzOwnDecoders runs the decoders in Go on damaged files. They may reject
// them, but must neither panic nor report another cause than the file.
func FuzzOwnDecoders(f *testing.F) {
	for _, in := range []format.Format{format.BMP, format.ICO, format.PSD} {
		b, _ := fileopstest.Sample(f, in).Bytes()
		f.Add(string(in), b)
	}
	e, err := imageops.New(f.Context(), imageops.Options{MaxPixels: 1 << 20})
	systest.NoError(f, err)
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

// FuzzDrawing runs the compression of SVG on damaged drawings.
func FuzzDrawing(f *testing.F) {
	e, err := imageops.New(f.Context(), imageops.Options{MaxPixels: 1 << 20})
	systest.NoError(f, err)
	for _, s := range []string{
		`<svg width="9" height="9"><!-- c --><path d="m1.2345678,2.3456789a1 1 0 01.5.5h-3V2z"/></svg>`,
		`<!DOCTYPE svg [<!ENTITY a "b">]><svg viewBox='0 0 1e3 1e3'><text> a <tspan>&a;</tspan></text><style>.a{}</style></svg>`,
		`<svg><g style="-inkscape-x:'a';fill:red" points="1,2 3,4.5e-7"/><metadata><a/></metadata></svg>`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := run(ctx, e.Compress(), nil, fileops.Bytes("in.svg", data))
		var param *fileops.ParamError
		if err != nil && fileops.Code(err) == "internal_error" && !errors.As(err, &param) {
			t.Error(err)
		}
	})
}
