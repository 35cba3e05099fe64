package compress

import (
	"context"

	"github.com/filewright/filewright/fileops/pdfops/internal/bilevel"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// recodeOneBit compresses bilevel images and stencil masks without loss. It uses
// JBIG2 where that is smallest.
func recodeOneBit(ctx context.Context, d *pdf.Document) error {
	var tasks []*types.StreamDict
	for _, nr := range d.Reachable() {
		if s, ok := d.Objects[nr].(*types.StreamDict); ok && d.Name(s.Dict["Subtype"]) == "Image" && oneBit(d, s) {
			tasks = append(tasks, s)
		}
	}
	return inParallel(ctx, len(tasks), func(i int) error {
		recodeBits(d, tasks[i])
		return nil
	}, func(float64) {})
}

func oneBit(d *pdf.Document, s *types.StreamDict) bool {
	if s.Dict["F"] != nil || len(s.Raw) < 256 || len(s.FilterPipeline) > 1 {
		return false
	}
	if d.Boolean(s.Dict["ImageMask"]) {
		return true
	}
	cs, ok := colourSpace(d, s.Dict["ColorSpace"])
	return ok && d.Integer(s.Dict["BitsPerComponent"]) == 1 && (cs.n == 1 || cs.palette != nil)
}

// recodeBits recodes a bilevel image. It leaves unknown encodings unchanged.
func recodeBits(d *pdf.Document, s *types.StreamDict) {
	width, height := d.Integer(s.Dict["Width"]), d.Integer(s.Dict["Height"])
	if width < 1 || height < 1 || width > maxPixels/height {
		return
	}
	var samples []byte
	best := len(s.Raw)
	if len(s.FilterPipeline) == 1 && s.FilterPipeline[0].Name == "CCITTFaxDecode" {
		p := s.FilterPipeline[0].DecodeParms
		columns := 1728
		if v, ok := d.Number(p["Columns"]); ok {
			columns = int(v)
		}
		if columns != width || d.Integer(p["DamagedRowsBeforeError"]) != 0 {
			return
		}
		b, err := bilevel.Fax{K: d.Integer(p["K"]), Aligned: d.Boolean(p["EncodedByteAlign"]), Inverse: d.Boolean(p["BlackIs1"])}.Samples(s.Raw, width, height)
		if err != nil {
			return
		}
		samples = b
	} else {
		b, err := pdf.Decode(s)
		if err != nil {
			return
		}
		samples = b
		best = min(best, len(pdf.Deflate(b)))
	}
	bitmap, err := bilevel.FromSamples(samples, width, height)
	if err != nil {
		return
	}
	if b := bilevel.JBIG2(bitmap); len(b) < best*95/100 {
		pdf.SetContent(s, b, types.PDFFilter{Name: "JBIG2Decode"})
	}
}
