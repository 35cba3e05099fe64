package pdfops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/fileops/raster"
)

// A brokenEye is a renderer that draws the first document correctly and all
// others differently.
type brokenEye struct {
	original []byte
	view     raster.Page
	others   raster.Page
	err      error
}

func (e brokenEye) Views(_ context.Context, pdf []byte, pages []int, _ float64) ([]raster.Page, error) {
	v := e.others
	if bytes.Equal(pdf, e.original) {
		v = e.view
		if e.err != nil {
			return nil, e.err
		}
	}
	return slices.Repeat([]raster.Page{v}, len(pages)), nil
}

// Compress never returns a result that looks different from the original.
func TestCompressLooks(t *testing.T) {
	t.Parallel()
	in := pdf("in.pdf", generated(t, 4))
	page := func(gray byte, text string) raster.Page {
		return raster.Page{Samples: raster.Samples{Width: 40, Height: 40, Components: 3, Pix: bytes.Repeat([]byte{gray, gray, gray}, 1600)}, Text: text}
	}
	tinted := page(200, "a")
	for i := 0; i < len(tinted.Pix); i += 3 {
		tinted.Pix[i] -= 20
		tinted.Pix[i+2] += 20
	}
	small := page(200, "a")
	small.Width, small.Pix = 20, small.Pix[:20*40*3]
	for name, c := range map[string]struct {
		other raster.Page
		err   error
		kept  bool
	}{
		"same":   {page(200, "a"), nil, false},
		"darker": {page(20, "a"), nil, true},
		"tinted": {tinted, nil, true},
		"text":   {page(200, "b"), nil, true},
		"size":   {small, nil, true},
		"not drawn, so that only what is not shown may be touched": {page(1, ""), errors.New("no"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := in
			if c.err != nil {
				in = pdf("in.pdf", withPicture(fill, imageStream(600, 400, "/DeviceRGB", "", rgb(photo(600, 400, 1)))))
			}
			tools := pdfops.Tools{Renderer: brokenEye{content(t, in), page(200, "a"), c.other, c.err}}
			for level := range levels() {
				out := run(t, tools.Compress(), fileops.Args{"compression_value": level}, in)
				if kept := bytes.Equal(content(t, out), content(t, in)); kept != c.kept {
					t.Errorf("%s: kept is %v, want %v", level, kept, c.kept)
				}
				if c.err != nil && !slices.Equal(pictureList(t, out), pictureList(t, in)) {
					t.Errorf("%s: the picture is not the same", level)
				}
			}
		})
	}
}

// An attentiveEye is a renderer that records which pages it draws.
type attentiveEye struct {
	mu    sync.Mutex
	pages map[int]bool
}

func (e *attentiveEye) Views(_ context.Context, _ []byte, pages []int, _ float64) ([]raster.Page, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range pages {
		e.pages[p] = true
	}
	view := raster.Page{Samples: raster.Samples{Width: 1, Height: 1, Components: 3, Pix: make([]byte, 3)}}
	return slices.Repeat([]raster.Page{view}, len(pages)), nil
}

// Of many pages, only changed pages are compared.
func TestCompressLooksWhereItMatters(t *testing.T) {
	t.Parallel()
	const pages, changed = 40, 27
	objects := []string{
		"<</Type/Catalog/Pages 2 0 R>>", "",
		stream("", fill), imageStream(600, 400, "/DeviceRGB", "", rgb(photo(600, 400, 1))), stream("", "0 0 10 10 re f"),
	}
	kids := ""
	for i := range pages {
		content := 5
		if i == changed {
			content = 3
		}
		objects = append(objects, fmt.Sprintf("<</Type/Page/Parent 2 0 R/Contents %d 0 R/Resources<</XObject<</I 4 0 R>>>>>>", content))
		kids += fmt.Sprintf("%d 0 R ", len(objects))
	}
	objects[1] = fmt.Sprintf("<</Type/Pages/Count %d/MediaBox[0 0 300 300]/Kids[%s]>>", pages, kids)
	in := pdf("in.pdf", handmade("1.7", objects...))
	eye := &attentiveEye{pages: make(map[int]bool)}
	out := run(t, pdfops.Tools{Renderer: eye}.Compress(), nil, in)
	if out.Size() > in.Size()/2 {
		t.Errorf("%d bytes of %d", out.Size(), in.Size())
	}
	if want := map[int]bool{0: true, changed: true}; !maps.Equal(eye.pages, want) {
		t.Errorf("pages %v were compared, want %v", eye.pages, want)
	}
}
