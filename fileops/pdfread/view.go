package pdfread

import (
	"context"
	"fmt"
	"math"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/raster"
)

// viewPixels is how many pixels a view has at most.
const viewPixels = 2_000_000

// Views draws pages, counted from 0, of a PDF file in memory at a resolution in
// dots per inch, or less for pages that would get too many pixels, with
// annotations and form fields. A page that pdfium cannot load has a width of 0.
func (e *Engine) Views(ctx context.Context, pdf []byte, pages []int, dpi float64) ([]raster.Page, error) {
	if len(pdf) > maxInputSize {
		return nil, fileops.Fail(fileops.ErrLimit, nil, "the document is too large")
	}
	var out []raster.Page
	err := e.run(ctx, func(in *instance) error {
		opened := in.within(e.timeout, fileops.Fail(fileops.ErrLimit, nil, "the document takes longer to open than the limit of %v", e.timeout))
		doc, err := openDocument(in, pdf)
		opened()
		if err != nil {
			return err
		}
		doc.openForm()
		for _, index := range pages {
			if err := cancelled(ctx); err != nil {
				return err
			}
			if index < 0 || index >= doc.pages {
				return fmt.Errorf("page %d of %d", index+1, doc.pages)
			}
			inTime := in.within(e.timeout, e.errPageTimeout(index+1))
			v, err := doc.view(index, dpi)
			inTime()
			if err != nil {
				return err
			}
			out = append(out, v)
		}
		return nil
	})
	return out, err
}

func (d *document) view(index int, dpi float64) (raster.Page, error) {
	p := d.load(index)
	if p == nil {
		return raster.Page{}, d.in.err
	}
	defer p.close()
	dpi = min(dpi, 72*math.Sqrt(viewPixels/(p.w*p.h)))
	var v raster.Page
	v.Width, v.Height = p.pixels(dpi)
	if v.Width > viewPixels/v.Height { // hardly more than a line
		return raster.Page{}, nil
	}
	err := p.draw(v.Width, v.Height, func(pix []byte) error {
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
	v.Text = p.plainText()
	return v, d.in.err
}

// plainText returns the text as it stands in the page, in UTF-16.
func (p *page) plainText() string {
	in := p.in
	text := in.call("FPDFText_LoadPage", p.ptr)
	if text == 0 {
		return ""
	}
	defer in.call("FPDFText_ClosePage", text)
	n := min(in.int("FPDFText_CountChars", text), maxChars)
	if n <= 0 {
		return ""
	}
	buf := in.malloc(2 * (n + 1))
	if in.err != nil {
		return ""
	}
	defer in.free(buf)
	got := in.int("FPDFText_GetText", text, 0, uint64(n), uint64(buf))
	return utf16String(in.bytes(buf, 2*min(got, n+1)))
}
