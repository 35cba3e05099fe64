package standard

import (
	"context"
	"image"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/ocrops"
	"github.com/filewright/filewright/fileops/pdfread"
)

func (p *prober) findOCR(ctx context.Context) {
	if p.ocrErr = p.refused("tesseract", p.opts.Tesseract); p.ocrErr != nil {
		return
	}
	p.ocr, p.ocrErr = ocrops.Find(ctx, p.opts.Limits.ocr(ocrops.Options{Tesseract: p.opts.Tesseract, TempDir: p.opts.TempDir, Log: p.opts.Log, Sandbox: p.sandbox}))
}

func (p *prober) reportOCR() Engine {
	e := Engine{Name: "tesseract", Purpose: "text of scanned PDFs and of pictures", Packages: []string{"tesseract-ocr"}}
	if p.ocr != nil {
		e.Version, e.Path = p.ocr.Version(), p.ocr.Path()
		e.Purpose += "; languages: " + strings.Join(p.ocr.Languages(), " ")
	}
	return e
}

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
	out := &pdfread.Recognized{Turn: page.Turn}
	for _, l := range page.Lines {
		for _, w := range l.Words {
			out.Words = append(out.Words, pdfread.RecognizedWord{
				Text: w.Text, Left: w.Left, Top: w.Top, Right: w.Right, Bottom: w.Bottom, Base: l.Base, Size: l.Size,
			})
		}
	}
	return out, nil
}

// pictureToText says which pictures are read by way of another format.
func pictureToText(from, to format.Format) bool {
	return to == format.TXT && from.Family() == format.Image && from != format.ICO
}

// scansToDocument returns the action that makes documents with text of pictures
// that first can put into a PDF, nil if nothing can read them.
func (p *prober) scansToDocument(first, second fileops.Action, direct []fileops.Action) fileops.Action {
	if p.ocr == nil {
		return nil
	}
	return via(first, format.PDF, second, direct, func(_, to format.Format) bool {
		return to == format.DOCX || to == format.HTML || to == format.MD
	})
}
