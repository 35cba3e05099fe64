// Package bilevel encodes the bilevel images of PDF files without loss, as
// JBIG2. It also decodes CCITT fax data.
package bilevel

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"golang.org/x/image/ccitt"
)

// A Bitmap is an image of one bit per pixel, 1 for black. Rows start at the top
// left and take whole bytes.
type Bitmap struct {
	Width, Height int
	Rows          []byte // (Width+7)/8 * Height
}

// Stride returns the number of bytes in a row.
func (b Bitmap) Stride() int { return (b.Width + 7) / 8 }

func (b Bitmap) row(y int) []byte { return b.Rows[y*b.Stride():][:b.Stride()] }

// maxPixels limits the pixels of a bitmap.
const maxPixels = 1 << 28

// FromSamples returns a bitmap that takes over samples of a PDF image, in which
// 0 is black. It sets the padding bits at the end of rows to white.
func FromSamples(samples []byte, width, height int) (Bitmap, error) {
	b := Bitmap{Width: width, Height: height}
	if width < 1 || height < 1 || width > maxPixels/height || len(samples) < b.Stride()*height {
		return Bitmap{}, errors.New("bilevel: too few samples, or too many")
	}
	b.Rows = make([]byte, b.Stride()*height)
	for i := range b.Rows {
		b.Rows[i] = ^samples[i]
	}
	if rest := width % 8; rest != 0 {
		for y := range height {
			b.row(y)[b.Stride()-1] &= 0xff << (8 - rest)
		}
	}
	return b, nil
}

// Fax holds the parameters of CCITTFaxDecode (ISO 32000-2, 7.4.6).
type Fax struct {
	K       int // negative: Group 4; 0: Group 3 in one dimension
	Aligned bool
	Inverse bool // black is 1
}

// Samples decodes width × height samples of a PDF image. It fails on damaged
// data, where a viewer would guess.
func (f Fax) Samples(data []byte, width, height int) ([]byte, error) {
	if f.K > 0 {
		return nil, fmt.Errorf("bilevel: Group 3 in two dimensions: %w", errors.ErrUnsupported)
	}
	if width < 1 || height < 1 || width > maxPixels/height {
		return nil, errors.New("bilevel: no size, or too large")
	}
	format := ccitt.Group4
	if f.K == 0 {
		format = ccitt.Group3
	}
	r := ccitt.NewReader(bytes.NewReader(data), ccitt.MSB, format, width, height,
		&ccitt.Options{Align: f.Aligned, Invert: f.Inverse})
	out := make([]byte, (width+7)/8*height)
	_, err := io.ReadFull(r, out)
	return out, err
}
