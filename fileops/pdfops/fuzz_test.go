package pdfops

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// FuzzPictures runs the conversion to PDF on damaged images.
func FuzzPictures(f *testing.F) {
	m := image.NewNRGBA(image.Rect(0, 0, 9, 7))
	m.Pix[7] = 99
	var p, j bytes.Buffer
	systest.NoError(f, errors.Join(png.Encode(&p, m), jpeg.Encode(&j, m, nil)))
	f.Add(p.Bytes(), true)
	f.Add(j.Bytes(), false)
	tools := Tools{Limits: Limits{Pixels: 1 << 20}}
	f.Fuzz(func(t *testing.T, data []byte, isPNG bool) {
		name := "a.jpg"
		if isPNG {
			name = "a.png"
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		none := fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil })
		err := (&fileops.Runner{TempDir: t.TempDir()}).Run(ctx, tools.FromImages(), fileops.Args{"convert_to": "pdf"}, none, fileops.Bytes(name, data))
		if code := fileops.Code(err); err != nil && (code == "internal_error" || code == "engine_failed" || code == "timeout") {
			t.Error(err)
		}
	})
}

// FuzzDocument runs parser, compression, split, flatten, marks and writer on damaged documents.
func FuzzDocument(f *testing.F) {
	f.Add([]byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj " +
		"3 0 obj<</Type/Page/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>endobj " +
		"4 0 obj<</Length 28>>stream\nq 9 0 0 9 0 0 cm /I Do Q BT ET\nendstream endobj " +
		"5 0 obj<</Type/XObject/Subtype/Image/Width 2/Height 2/BitsPerComponent 8/ColorSpace/DeviceGray/Length 4>>stream\n\x00\x40\x80\xff\nendstream endobj\n" +
		"trailer<</Root 1 0 R/Size 6>>\nstartxref\n0\n%%EOF"))
	f.Add([]byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R<</T(b)/FT/Btn/Kids[5 0 R]>>]>>>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj " +
		"3 0 obj<</Type/Page/MediaBox[0 0 9 9]/Annots[4 0 R 5 0 R]>>endobj 4 0 obj<</Subtype/Widget/Rect[0 0 9 9]/T(a)/FT/Ch/Opt[(x)[(y)(z)]]>>endobj " +
		"5 0 obj<</Subtype/Widget/Rect[0 0 9 9]/AP<</N<</Yes 3 0 R>>>>>>endobj\n" +
		"trailer<</Root 1 0 R/Size 6>>\nstartxref\n0\n%%EOF"))
	tools := Tools{Limits: Limits{Pages: 100, Pixels: 1 << 20}}
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		none := fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil })
		for _, a := range []fileops.Action{tools.Compress(), tools.Merge(), tools.Split(), tools.Flatten(), tools.PageNumbers(), tools.Watermark(), tools.FillForm(), tools.Metadata()} {
			in := []*fileops.File{fileops.Bytes("a.pdf", data)}
			if a.Spec().Joint {
				in = append(in, fileops.Bytes("b.pdf", data))
			}
			var args fileops.Args
			switch a.Spec().Name {
			case "watermark":
				args = fileops.Args{"text": "Draft", "position": "tile"}
			case "metadata":
				args = fileops.Args{"set": map[string]any{"title": "x"}, "remove": []any{"author"}}
			case "fill_form":
				args = fileops.Args{"fields": map[string]any{"a": "x", "b": true}}
			}
			err := (&fileops.Runner{TempDir: t.TempDir()}).Run(ctx, a, args, none, in...)
			if code := fileops.Code(err); err != nil && (code == "internal_error" || code == "engine_failed" || code == "timeout") {
				t.Errorf("%s: %v", a.Spec().Name, err)
			}
		}
	})
}
