package pdfread

import (
	"context"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// Text returns the text layer of the first pages of a PDF file in memory, at most most
// pages, in content order. It recognizes nothing. A damaged page has no text.
func (e *Engine) Text(ctx context.Context, pdf []byte, most int) (string, error) {
	var out strings.Builder
	err := e.inMemory(ctx, pdf, func(in *pdfium.Instance, doc *pdfium.Document) error {
		for i := range min(doc.Pages, most) {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			inTime := in.Within(e.timeout, e.errPageTimeout(i+1))
			if p := doc.Load(i); p != nil {
				out.WriteString(p.PlainText())
				out.WriteByte('\f')
				p.Close()
			}
			inTime()
			if in.Err != nil {
				return in.Err
			}
		}
		return nil
	})
	return out.String(), err
}
