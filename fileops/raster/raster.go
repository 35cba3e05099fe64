// Package raster defines the types with which the engine packages exchange
// pictures. They are public because interfaces of public packages use them. An
// [imageops.Engine] is the picture codec of pdfops and documentops, and a
// [pdfread.Engine] draws and reads pages for pdfops, without an adapter.
//
// Package internal/imagefile reads and writes picture files.
//
// [imageops.Engine]: https://pkg.go.dev/github.com/filewright/filewright/fileops/imageops#Engine
// [pdfread.Engine]: https://pkg.go.dev/github.com/filewright/filewright/fileops/pdfread#Engine
package raster

import (
	"fmt"

	"github.com/filewright/filewright/fileops/format"
)

// Samples are the pixels of a picture: 8 bits per component, interleaved, row by
// row from the top left, without padding.
//
// One component is gray, three are RGB and four are CMYK. CMYK values are those
// that a JPEG file stores and that a PDF reader uses, regardless of an Adobe
// marker. Only the caller knows the meaning of two components, or of more than
// four.
type Samples struct {
	Width, Height int
	Components    int
	Pix           []byte // Width × Height × Components bytes
}

// Check returns an error unless the dimensions are valid and Pix has the right
// length.
func (s Samples) Check() error {
	switch {
	case s.Width <= 0 || s.Height <= 0 || s.Width > 1<<20 || s.Height > 1<<20:
		return fmt.Errorf("raster: picture of %d × %d pixels", s.Width, s.Height)
	case s.Components <= 0 || int64(len(s.Pix)) != int64(s.Width)*int64(s.Height)*int64(s.Components):
		return fmt.Errorf("raster: %d bytes for %d × %d pixels of %d components", len(s.Pix), s.Width, s.Height, s.Components)
	}
	return nil
}

// A Page is a rendered page of a document: RGB pixels, and its text. A page that
// cannot be drawn has a width of 0.
type Page struct {
	Samples
	Text string
}

// A Reduction describes how to encode a picture of a document again.
type Reduction struct {
	To            format.Format // JPG or PNG
	Width, Height int           // box in pixels to shrink into, keeps proportions; 0 means no limit
	Quality       int           // 1 to 100, of a JPEG or a palette
	Palette       bool          // PNG with at most 256 colours; otherwise only scaling loses detail
}

// A TextPage is the text that was recognized on a page of a document.
type TextPage struct {
	Page          int     // counted from 0
	Width, Height float64 // of the page as it is shown, in points
	Words         []TextWord
}

// A TextWord is a recognized word: its text without spaces and its baseline. Positions
// are in points from the top left corner of the page as it is shown.
type TextWord struct {
	Text   string
	X, Y   float64 // start of the baseline
	DX, DY float64 // from its start to its end
	Size   float64 // of the font (1 em)
}
