package pdfops

import (
	"context"

	"github.com/filewright/filewright/fileops/pdfops/internal/bilevel"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// recodeOneBit compresses the pictures and stencils of one bit per pixel without
// loss, by JBIG2 where that is smallest.
func (d *document) recodeOneBit(ctx context.Context) error {
	var tasks []*types.StreamDict
	for _, nr := range d.reachable() {
		if s, ok := d.objects[nr].(*types.StreamDict); ok && d.name(s.Dict["Subtype"]) == "Image" && d.oneBit(s) {
			tasks = append(tasks, s)
		}
	}
	return inParallel(ctx, len(tasks), func(i int) error {
		d.recodeBits(tasks[i])
		return nil
	}, func(float64) {})
}

func (d *document) oneBit(s *types.StreamDict) bool {
	if s.Dict["F"] != nil || len(s.Raw) < 256 || len(s.FilterPipeline) > 1 {
		return false
	}
	if d.boolean(s.Dict["ImageMask"]) {
		return true
	}
	cs, ok := d.colourSpace(s.Dict["ColorSpace"])
	return ok && d.integer(s.Dict["BitsPerComponent"]) == 1 && (cs.n == 1 || cs.palette != nil)
}

// recodeBits leaves alone what it does not understand.
func (d *document) recodeBits(s *types.StreamDict) {
	width, height := d.integer(s.Dict["Width"]), d.integer(s.Dict["Height"])
	if width < 1 || height < 1 || width > maxPixels/height {
		return
	}
	var samples []byte
	best := len(s.Raw)
	if len(s.FilterPipeline) == 1 && s.FilterPipeline[0].Name == "CCITTFaxDecode" {
		p := s.FilterPipeline[0].DecodeParms
		columns := 1728
		if v, ok := d.number(p["Columns"]); ok {
			columns = int(v)
		}
		if columns != width || d.integer(p["DamagedRowsBeforeError"]) != 0 {
			return
		}
		b, err := bilevel.Fax{K: d.integer(p["K"]), Aligned: d.boolean(p["EncodedByteAlign"]), Inverse: d.boolean(p["BlackIs1"])}.Samples(s.Raw, width, height)
		if err != nil {
			return
		}
		samples = b
	} else {
		b, err := decodeStream(s)
		if err != nil {
			return
		}
		samples = b
		best = min(best, len(deflate(b)))
	}
	bitmap, err := bilevel.FromSamples(samples, width, height)
	if err != nil {
		return
	}
	if b := bilevel.JBIG2(bitmap); len(b) < best*95/100 {
		setContent(s, b, types.PDFFilter{Name: "JBIG2Decode"})
	}
}
