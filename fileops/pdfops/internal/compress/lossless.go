package compress

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// A lossless is an image compressed without loss.
type lossless struct {
	raw           []byte
	parms         types.Dict
	space         types.Object
	bits          int
	width, height int
	palette       int // number of colours, 0 without a palette
}

// set stores the image in its stream.
func (l *lossless) set(s *types.StreamDict) {
	pdf.SetContent(s, l.raw, types.PDFFilter{Name: "FlateDecode", DecodeParms: l.parms})
	s.Dict["Width"], s.Dict["Height"] = types.Integer(l.width), types.Integer(l.height)
	s.Dict["BitsPerComponent"] = types.Integer(l.bits)
	s.Dict["ColorSpace"] = l.space
}

// compactPicture compresses samples of a colour space. It uses a palette if
// mayIndex is set and there are few colours, and a PNG predictor where that
// helps.
func compactPicture(px raster.Samples, space types.Object, mayIndex bool) *lossless {
	l := &lossless{space: space, bits: 8, width: px.Width, height: px.Height}
	if packed, colors, bits := palettize(px, mayIndex); packed != nil {
		l.space = types.Array{types.Name("Indexed"), space, types.Integer(len(colors)/px.Components - 1), types.HexLiteral(hex.EncodeToString(colors))}
		l.palette, l.bits = len(colors)/px.Components, bits
		// Neighbouring palette indices are unrelated, so a predictor would not help.
		l.raw = pdf.Deflate(packed)
		return l
	}
	predicted := imagefile.Filter(px.Pix, px.Width*px.Components, px.Components)
	if pdf.DeflatedSize(px.Pix) <= pdf.DeflatedSize(predicted) {
		l.raw = pdf.Deflate(px.Pix)
	} else {
		l.raw, l.parms = pdf.Deflate(predicted), pdf.PredictorParms(px.Width, px.Components, l.bits)
	}
	return l
}

// palettize returns the palette and the packed palette indices of an image. It
// returns nil if there are too many colours for a gain: more than 16 in a gray
// image, or 256 in others.
func palettize(px raster.Samples, may bool) (packed, colors []byte, bits int) {
	n := px.Components
	if !may || n > 4 || len(px.Pix) < smallPicture {
		return nil, nil, 0
	}
	most := 256
	if n == 1 {
		most = 16
	}
	var palette imagefile.Palette
	numbers := make([]byte, 0, px.Width*px.Height)
	var last [4]byte
	var number byte
	for i := 0; i+n <= len(px.Pix); i += n {
		var c [4]byte
		copy(c[:], px.Pix[i:i+n])
		if c != last || i == 0 {
			var ok bool
			if number, ok = palette.Add(binary.LittleEndian.Uint32(c[:])); !ok || len(palette.Colours) > most {
				return nil, nil, 0
			}
			last = c
		}
		numbers = append(numbers, number)
	}
	for _, c := range palette.Colours {
		colors = append(colors, binary.LittleEndian.AppendUint32(nil, c)[:n]...)
	}
	if bits = palette.Depth(); bits == 8 {
		return numbers, colors, bits
	}
	stride := (px.Width*bits + 7) / 8
	packed = make([]byte, stride*px.Height)
	for y := range px.Height {
		imagefile.PackRow(packed[y*stride:], numbers[y*px.Width:][:px.Width], bits)
	}
	return packed, colors, bits
}
