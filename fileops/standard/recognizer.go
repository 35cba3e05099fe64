package standard

import (
	"context"
	"image"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/ocrops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// A recognizer lets package pdfread read scanned pages with package ocrops.
type recognizer struct{ ocr *ocrops.Engine }

// Language implements pdfread.Recognizer.
func (r recognizer) Language() fileops.Param { return ocrops.LanguageParam(r.ocr.Languages()) }

// Recognize implements pdfread.Recognizer.
func (r recognizer) Recognize(ctx context.Context, img *image.Gray, dpi float64, language string) (*pdfread.Recognized, error) {
	page, err := r.ocr.Recognize(ctx, img, dpi, language)
	if err != nil {
		return nil, err
	}
	out := &pdfread.Recognized{Turn: page.Turn, Slope: page.Slope}
	for _, l := range page.Lines {
		for _, w := range l.Words {
			out.Words = append(out.Words, pdfread.RecognizedWord{
				Text: w.Text, Left: w.Left, Top: w.Top, Right: w.Right, Bottom: w.Bottom, Base: l.Base, Size: l.Size,
			})
		}
	}
	return out, nil
}
