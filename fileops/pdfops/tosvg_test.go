package pdfops_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/imagefile"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

func drawing(t testing.TB) fileops.Action {
	t.Helper()
	p, err := engine.NewSandbox().Find(t.Context(), []string{"-v"}, "pdftocairo")
	systest.NoError(t, err)
	return pdfops.Tools{PDFToCairo: p, QPDF: findQPDF(t)}.ToSVG()
}

var toSVG = fileops.Args{"convert_to": "svg"}

func picture(t testing.TB, path string) image.Image {
	t.Helper()
	m, _, err := image.Decode(bytes.NewReader(systest.ReadFile(t, path)))
	systest.NoError(t, err)
	return m
}

// A drawing in librsvg looks like the page in Ghostscript.
func TestToSVG(t *testing.T) {
	t.Parallel()
	shapes := "1 0 0 rg 20 20 100 60 re f 0 0 1 RG 5 w 150 30 m 280 150 l S /F 24 Tf"
	page := func(dict, content string) []byte {
		return handmade("1.7", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
			"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>"+dict+">>", stream("", content), "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	}
	for name, in := range map[string][]byte{
		"shapes":   page("", shapes),
		"turned":   page("/Rotate 90", shapes),
		"cropped":  page("/CropBox[10 10 200 150]", shapes),
		"text":     page("", shapes+" BT /F 24 Tf 20 120 Td (Outlines) Tj ET"),
		"document": func() []byte { b, _ := specimen.Sample(t, "pdf").Bytes(); return b }(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			src := filepath.Join(dir, "in.pdf")
			systest.NoError(t, os.WriteFile(src, in, 0o600))
			args := fileops.Args{"convert_to": "svg", "pages": "1"}
			out := run(t, drawing(t), args, pdf("in.pdf", in))
			if out.Name() != "in.svg" {
				t.Errorf("named %s", out.Name())
			}
			svg := filepath.Join(dir, "out.svg")
			systest.NoError(t, os.WriteFile(svg, content(t, out), 0o600))
			systest.Run(t, "vips", "svgload", svg, filepath.Join(dir, "svg.png"), "--dpi", "144")
			systest.Run(t, "vips", "flatten", filepath.Join(dir, "svg.png"), filepath.Join(dir, "got.png"), "--background", "255 255 255")
			systest.Run(t, "gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-dUseCropBox", "-dLastPage=1", "-dTextAlphaBits=4", "-dGraphicsAlphaBits=4", "-sDEVICE=png16m", "-r144", "-sOutputFile="+filepath.Join(dir, "want.png"), src)
			got, want := picture(t, filepath.Join(dir, "got.png")), picture(t, filepath.Join(dir, "want.png"))
			if got.Bounds() != want.Bounds() {
				t.Fatalf("%v pixels, want %v", got.Bounds().Max, want.Bounds().Max)
			}
			if s := imagefile.Similarity(grayOf(got), grayOf(want)); s < 0.98 {
				t.Errorf("looks different: %.4f", s)
			}
		})
	}
}

// Each page is a file. Encrypted files need their password, and text becomes outlines with
// a warning.
func TestToSVGPages(t *testing.T) {
	t.Parallel()
	a := drawing(t)
	three := handmade("1.7", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 4 0 R 5 0 R]/Count 3/MediaBox[0 0 300 200]/Resources<<>>>>",
		"<</Type/Page/Parent 2 0 R>>", "<</Type/Page/Parent 2 0 R>>", "<</Type/Page/Parent 2 0 R>>")
	var codes []string
	convert := func(args fileops.Args, in []byte) (names []string, err error) {
		codes = nil
		r := &fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
		err = r.Run(t.Context(), a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
			names = append(names, f.Name())
			return nil
		}), pdf("in.pdf", in))
		return names, err
	}
	if got, err := convert(toSVG, three); err != nil || !slices.Equal(got, []string{"in-001.svg", "in-002.svg", "in-003.svg"}) || len(codes) > 0 {
		t.Errorf("%q %q %v", got, codes, err)
	}
	if got, err := convert(fileops.Args{"convert_to": "svg", "pages": "3,1"}, three); err != nil || !slices.Equal(got, []string{"in-003.svg", "in-001.svg"}) {
		t.Errorf("%q %v", got, err)
	}
	if _, err := convert(fileops.Args{"convert_to": "svg", "pages": "4"}, three); err == nil {
		t.Error("page 4 of 3")
	}
	if _, err := convert(toSVG, simple("letters")); err != nil || strings.Join(codes, " ") != fileops.WarnContentDropped {
		t.Errorf("warnings %q, %v", codes, err)
	}
	locked := encrypted(t, simple("letters"), "sesame", "owner", "256")
	if _, err := convert(toSVG, locked); !errors.Is(err, fileops.ErrPasswordRequired) {
		t.Errorf("without a password: %v", err)
	}
	if _, err := convert(fileops.Args{"convert_to": "svg", "password": "sesame"}, locked); err != nil {
		t.Errorf("with a password: %v", err)
	}
	if _, err := convert(toSVG, []byte("%PDF-1.7\nnothing")); !errors.Is(err, fileops.ErrCorruptInput) {
		t.Errorf("damaged: %v", err)
	}
}
