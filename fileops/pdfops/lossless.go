package pdfops

import (
	"encoding/hex"
	"math"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A lossless is a picture compressed without loss.
type lossless struct {
	raw           []byte
	parms         types.Dict
	space         types.Object
	bits          int
	width, height int
	palette       int // colours, 0 if there is no palette
}

// set puts the picture into its stream.
func (l *lossless) set(s *types.StreamDict) {
	setContent(s, l.raw, types.PDFFilter{Name: "FlateDecode", DecodeParms: l.parms})
	s.Dict["Width"], s.Dict["Height"] = types.Integer(l.width), types.Integer(l.height)
	s.Dict["BitsPerComponent"] = types.Integer(l.bits)
	s.Dict["ColorSpace"] = l.space
}

// compactPicture compresses samples of a colour space: with a palette if it may
// have one and there are few colours, with a PNG predictor where that helps.
func compactPicture(px Samples, space types.Object, mayIndex bool) *lossless {
	l := &lossless{space: space, bits: 8, width: px.Width, height: px.Height}
	if packed, colors, bits := palettize(px, mayIndex); packed != nil {
		l.space = types.Array{types.Name("Indexed"), space, types.Integer(len(colors)/px.Components - 1), types.HexLiteral(hex.EncodeToString(colors))}
		l.palette, l.bits = len(colors)/px.Components, bits
		// Neighbours in a palette have nothing in common.
		l.raw = deflate(packed)
		return l
	}
	predicted := predict(px.Pix, px.Width*px.Components, px.Components)
	if deflatedSize(px.Pix) <= deflatedSize(predicted) {
		l.raw = deflate(px.Pix)
	} else {
		l.raw, l.parms = deflate(predicted), predictorParms(px.Width, px.Components, l.bits)
	}
	return l
}

// palettize returns the picture with numbers of colours instead of colours,
// packed, if it has few enough colours and more than one component, or a gray
// one at most sixteen.
func palettize(px Samples, may bool) (packed, colors []byte, bits int) {
	n := px.Components
	most := 256
	if n == 1 {
		most = 16
	}
	if !may || n > 4 || len(px.Pix) < smallPicture {
		return nil, nil, 0
	}
	index := make(map[[4]byte]byte)
	numbers := make([]byte, 0, px.Width*px.Height)
	var last [4]byte
	var lastNumber byte
	for i := 0; i+n <= len(px.Pix); i += n {
		var c [4]byte
		copy(c[:], px.Pix[i:i+n])
		if c != last || i == 0 {
			number, ok := index[c]
			if !ok {
				if len(index) == most {
					return nil, nil, 0
				}
				number = byte(len(index))
				index[c] = number
				colors = append(colors, c[:n]...)
			}
			last, lastNumber = c, number
		}
		numbers = append(numbers, lastNumber)
	}
	switch k := len(index); {
	case k <= 2:
		bits = 1
	case k <= 4:
		bits = 2
	case k <= 16:
		bits = 4
	default:
		return numbers, colors, 8
	}
	stride := (px.Width*bits + 7) / 8
	packed = make([]byte, stride*px.Height)
	for y := range px.Height {
		for x, v := range numbers[y*px.Width:][:px.Width] {
			packed[y*stride+x*bits/8] |= v << (8 - bits - x*bits%8)
		}
	}
	return packed, colors, bits
}

func predictorParms(columns, colors, bits int) types.Dict {
	return types.Dict{
		"Predictor": types.Integer(15), "Columns": types.Integer(columns),
		"Colors": types.Integer(colors), "BitsPerComponent": types.Integer(bits),
	}
}

// predict filters rows as PNG does (W3C PNG, 9.2), with the filter for each row
// whose output has the least sum of absolute values. pixel is the distance, in
// bytes, of corresponding bytes.
func predict(b []byte, stride, pixel int) []byte {
	rows := len(b) / stride
	out := make([]byte, 0, rows*(stride+1))
	above := make([]byte, stride)
	var try [5][]byte
	for i := range try {
		try[i] = make([]byte, stride)
	}
	for y := range rows {
		row := b[y*stride:][:stride]
		copy(try[0], row)
		for i, v := range row {
			var left, corner byte
			if i >= pixel {
				left, corner = row[i-pixel], above[i-pixel]
			}
			try[1][i] = v - left
			try[2][i] = v - above[i]
			try[3][i] = v - byte((int(left)+int(above[i]))/2)
			try[4][i] = v - paeth(left, above[i], corner)
		}
		best, least := 0, math.MaxInt
		for i, t := range try {
			sum := 0
			for _, v := range t {
				sum += abs(int(int8(v)))
			}
			if sum < least {
				best, least = i, sum
			}
		}
		out = append(append(out, byte(best)), try[best]...)
		above = row
	}
	return out
}

func paeth(a, b, c byte) byte {
	p := int(a) + int(b) - int(c)
	pa, pb, pc := abs(p-int(a)), abs(p-int(b)), abs(p-int(c))
	switch {
	case pa <= pb && pa <= pc:
		return a
	case pb <= pc:
		return b
	}
	return c
}

func abs(n int) int { return max(n, -n) }
