package renderops

import (
	"image"
	"io"
)

// ParsePages makes parsePages testable.
func ParsePages(s string, total int) ([]int, error) { return parsePages(s, total) }

// PagesPattern is the pattern of the parameter pages.
const PagesPattern = pagesPattern

// WritePNG makes writePNG testable.
func WritePNG(w io.Writer, img *image.RGBA, dpi float64) error { return writePNG(w, img, dpi) }

// Compiled tells whether pdfium was compiled, once that is decided.
func (e *Engine) Compiled() bool {
	<-e.starter.ready
	return e.starter.lib != nil
}
