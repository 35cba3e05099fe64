package pdfread_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

func TestConformance(t *testing.T) {
	e := newEngine(t, pdfread.Options{Encoder: tiffEncoder{}})
	fileopstest.Run(t, fileopstest.Suite{
		Action:  e.Convert(),
		Fixture: func(testing.TB, format.Format) *fileops.File { return fileops.Bytes("paper.pdf", paper()) },
		Args:    fileops.Args{"dpi": 72.0},
	})
}

func TestThumbnail(t *testing.T) {
	e := newEngine(t, pdfread.Options{})
	fileopstest.Run(t, fileopstest.Suite{
		Action:      e.Thumbnail(),
		Fixture:     func(testing.TB, format.Format) *fileops.File { return fileops.Bytes("paper.pdf", paper()) },
		Concurrency: 3,
	})
	in := fileops.Bytes("paper.pdf", paper())
	for _, tt := range []struct {
		args fileops.Args
		w, h int // of an A4 page
	}{
		{nil, 181, 256},
		{fileops.Args{"width": 100}, 100, 142},
		{fileops.Args{"height": 1600, "page": 2, "convert_to": "png"}, 1131, 1600},
		{fileops.Args{"width": 90, "height": 90}, 64, 90},
	} {
		var size image.Point
		err := fileops.Run(t.Context(), e.Thumbnail(), tt.args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
			c, _, err := image.DecodeConfig(f.Reader())
			size = image.Pt(c.Width, c.Height)
			return err
		}), in)
		if err != nil || size != image.Pt(tt.w, tt.h) {
			t.Errorf("%v: %v, %v", tt.args, size, err)
		}
	}
	err := fileops.Run(t.Context(), e.Thumbnail(), fileops.Args{"page": 3}, fileops.ToDir(t.TempDir()), in)
	var p *fileops.ParamError
	if !errors.As(err, &p) || p.Param != "page" {
		t.Errorf("page 3: %v", err)
	}
}

// paper has text and a table on two pages.
func paper() []byte {
	return pages(
		pdfPage{content: lines("F1", 14, 72, 760, 20, strings.Split(prose(1, 60), " ")[:20]...)},
		pdfPage{content: ruledTable(72, 700, 120, 20, [][]string{{"Name", "Amount"}, {"first", "1.50"}, {"second", "22.75"}})})
}

func TestClose(t *testing.T) {
	t.Parallel()
	e, err := pdfread.New(t.Context(), pdfread.Options{})
	systest.NoError(t, err)
	if err := e.Close(); err != nil { // never started
		t.Fatal(err)
	}
	if _, err := convert(t.Context(), t, e, fileops.Args{"convert_to": "png"}, fileops.Bytes("in.pdf", fixtures()["text"])); fileops.Code(err) != "engine_unavailable" {
		t.Errorf("after Close: %v", err)
	}
	if _, err := pdfread.New(t.Context(), pdfread.Options{CacheDir: write(t, "file", nil)}); err == nil {
		t.Error("a file is accepted as the directory of the cache")
	}
}

// The race detector fails this test if concurrent instances write shared data.
// All start from a new engine, with an image whose decoder uses longjmp.
func TestFirstRunsTogether(t *testing.T) {
	t.Parallel()
	if err := newEngine(t, pdfread.Options{}).Warm(t.Context()); err != nil { // compiles
		t.Fatal(err)
	}
	var photo bytes.Buffer
	systest.NoError(t, jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 32, 32)), nil))
	pdf := pages(pdfPage{content: fmt.Sprintf("q 100 0 0 100 0 0 cm BI /W 32 /H 32 /CS /G /BPC 8 /F [/AHx /DCT] ID %x> EI Q", photo.Bytes())})
	for range 3 {
		e := newEngine(t, pdfread.Options{Instances: 4})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { mustConvert(t, e, fileops.Args{"convert_to": "png", "dpi": 36.0}, pdf) })
		}
		wg.Wait()
	}
}

func BenchmarkConvert(b *testing.B) {
	e := newEngine(b, pdfread.Options{})
	var ps []pdfPage
	for range 10 {
		content, _ := columns(2, 50, 740)
		ps = append(ps, pdfPage{content: content})
	}
	pdf := pages(ps...)
	mustConvert(b, e, fileops.Args{"convert_to": "txt"}, pdf) // compiles
	for _, to := range []string{"png", "jpg", "txt", "docx"} {
		b.Run(to, func(b *testing.B) {
			b.SetBytes(int64(len(pdf)))
			for b.Loop() {
				mustConvert(b, e, fileops.Args{"convert_to": to}, pdf)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(10*b.N), "ms/page")
		})
	}
}
