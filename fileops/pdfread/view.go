package pdfread

import (
	"context"
	"fmt"
	"math"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/fileops/raster"
)

// viewPixels is the largest size of a view in pixels.
const viewPixels = 2_000_000

// inMemory calls do with a PDF file in memory that needs no password.
func (e *Engine) inMemory(ctx context.Context, pdf []byte, do func(*pdfium.Instance, *pdfium.Document) error) error {
	if len(pdf) > pdfium.MaxFileSize {
		return fileops.Fail(fileops.ErrLimit, nil, "the document is too large")
	}
	return e.pool.Run(ctx, func(in *pdfium.Instance) error {
		opened := in.Within(e.timeout, fileops.Fail(fileops.ErrLimit, nil, "the document takes longer to open than the limit of %v", e.timeout))
		doc, err := pdfium.OpenDocument(in, pdf, "")
		opened()
		if err != nil {
			return err
		}
		return do(in, doc)
	})
}

// Views draws pages, counted from 0, of a PDF file in memory, with annotations
// and form fields. The resolution is dpi dots per inch, or less for pages with
// too many pixels. A page that pdfium cannot load has a width of 0.
func (e *Engine) Views(ctx context.Context, pdf []byte, pages []int, dpi float64) ([]raster.Page, error) {
	var out []raster.Page
	_, err := withForm(func(form bool) error {
		out = nil
		return e.views(ctx, pdf, pages, dpi, form, &out)
	})
	return out, err
}

func (e *Engine) views(ctx context.Context, pdf []byte, pages []int, dpi float64, form bool, out *[]raster.Page) error {
	return e.inMemory(ctx, pdf, func(in *pdfium.Instance, doc *pdfium.Document) error {
		if form {
			e.openForm(doc)
		}
		for _, index := range pages {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if index < 0 || index >= doc.Pages {
				return fmt.Errorf("page %d of %d", index+1, doc.Pages)
			}
			inTime := in.Within(e.timeout, e.errPageTimeout(index+1))
			v, err := view(doc, index, dpi)
			inTime()
			if err != nil {
				return err
			}
			*out = append(*out, v)
		}
		return nil
	})
}

func view(d *pdfium.Document, index int, dpi float64) (raster.Page, error) {
	p := d.Load(index)
	if p == nil {
		return raster.Page{}, d.In.Err
	}
	defer p.Close()
	dpi = min(dpi, 72*math.Sqrt(viewPixels/(p.W*p.H)))
	var v raster.Page
	v.Width, v.Height = p.Pixels(dpi)
	if v.Width > viewPixels/v.Height { // extremely narrow: it would have too many pixels
		return raster.Page{}, nil
	}
	err := p.Draw(v.Width, v.Height, func(pix []byte) error {
		v.Components, v.Pix = 3, make([]byte, 3*v.Width*v.Height)
		for i, j := 0, 0; i+3 < len(pix); i, j = i+4, j+3 {
			to, from := v.Pix[j:j+3:j+3], pix[i:i+4:i+4]
			to[0], to[1], to[2] = from[0], from[1], from[2]
		}
		return nil
	})
	if err != nil {
		return raster.Page{}, err
	}
	v.Text = p.PlainText()
	return v, d.In.Err
}
