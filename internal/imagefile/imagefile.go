// Package imagefile reads the headers of JPEG and PNG files, writes such files,
// and measures the similarity of two pictures. The engine packages share it.
//
//   - [ReadJPEG] and [ReadPNG] return the header fields: size, density, colour
//     profile, EXIF orientation and estimated quality. [PNGChunks] iterates over
//     the chunks of a PNG file.
//   - [EncodePNG] compresses samples in parallel. [WritePNG] writes rendered
//     pages, which have few colours. [WriteJPEG] adds the density that
//     image/jpeg omits.
//   - [Filter] and [Palette] are parts of PNG that PDF files use too.
//   - [FromImage] and [EncodeJPEG] connect [raster.Samples] with the image
//     packages of the standard library.
//   - [Similarity] is the structural similarity of two pictures.
//
// The package accepts untrusted input: damaged files result in an error or zero
// fields.
package imagefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"

	"github.com/filewright/filewright/fileops/raster"
)

// A Density is a resolution in dots per inch. The zero value means unknown.
type Density struct{ X, Y float64 }

const centimetresPerInch = 2.54

// FromImage returns the samples of an opaque picture. It fails with
// errors.ErrUnsupported for other pictures.
func FromImage(img image.Image) (raster.Samples, error) {
	b := img.Bounds()
	s := raster.Samples{Width: b.Dx(), Height: b.Dy()}
	switch v := img.(type) {
	case *image.Gray:
		s.Components, s.Pix = 1, pack(v.Pix, v.Stride, s.Width, s.Height)
		return s, nil
	case *image.CMYK: // image/jpeg converted the stored values to ink
		s.Components, s.Pix = 4, Inverted(pack(v.Pix, v.Stride, 4*s.Width, s.Height))
		return s, nil
	case *image.YCbCr:
		s.Components, s.Pix = 3, make([]byte, 0, 3*s.Width*s.Height)
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				c := v.YCbCrAt(x, y)
				r, g, b := color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
				s.Pix = append(s.Pix, r, g, b)
			}
		}
		return s, nil
	case *image.RGBA:
		if pix, ok := dropAlpha(v.Pix, v.Stride, s.Width, s.Height); ok {
			s.Components, s.Pix = 3, pix
			return s, nil
		}
	case *image.NRGBA:
		if pix, ok := dropAlpha(v.Pix, v.Stride, s.Width, s.Height); ok {
			s.Components, s.Pix = 3, pix
			return s, nil
		}
	}
	return raster.Samples{}, fmt.Errorf("%T: %w", img, errors.ErrUnsupported)
}

// pack returns rows without padding. If there is no padding, it returns pix
// itself.
func pack(pix []byte, stride, row, rows int) []byte {
	if stride == row {
		return pix[:row*rows]
	}
	out := make([]byte, 0, row*rows)
	for y := range rows {
		out = append(out, pix[y*stride:y*stride+row]...)
	}
	return out
}

// dropAlpha returns the colours of an opaque picture. It reports false for other pictures.
func dropAlpha(pix []byte, stride, w, h int) ([]byte, bool) {
	const opaque = 0xff << 24
	out := make([]byte, 3*w*h+1) // each pixel is written with its alpha, which the next one replaces
	i := 0
	for y := range h {
		row := pix[y*stride:][:4*w]
		all := uint32(opaque)
		for ; len(row) >= 4; row = row[4:] {
			v := binary.LittleEndian.Uint32(row)
			all &= v
			binary.LittleEndian.PutUint32(out[i:], v)
			i += 3
		}
		if all < opaque {
			return nil, false
		}
	}
	return out[: 3*w*h : 3*w*h], true
}

// Inverted converts ink to the inverted values that Adobe programs store, and
// back.
func Inverted(pix []byte) []byte {
	out := make([]byte, len(pix))
	for i, v := range pix {
		out[i] = 255 - v
	}
	return out
}

// RGBA converts samples with three components to an opaque picture.
func RGBA(s raster.Samples) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, s.Width, s.Height))
	for i, j := 0, 0; i+2 < len(s.Pix); i, j = i+3, j+4 {
		m.Pix[j], m.Pix[j+1], m.Pix[j+2], m.Pix[j+3] = s.Pix[i], s.Pix[i+1], s.Pix[i+2], 255
	}
	return m
}

// EncodeJPEG encodes samples with image/jpeg. It fails with errors.ErrUnsupported
// unless they have 1 or 3 components.
func EncodeJPEG(s raster.Samples, quality int) ([]byte, error) {
	var img image.Image
	switch s.Components {
	case 1:
		img = &image.Gray{Pix: s.Pix, Stride: s.Width, Rect: image.Rect(0, 0, s.Width, s.Height)}
	case 3:
		img = RGBA(s)
	default:
		return nil, fmt.Errorf("JPEG of %d components: %w", s.Components, errors.ErrUnsupported)
	}
	var out bytes.Buffer
	err := jpeg.Encode(&out, img, &jpeg.Options{Quality: quality})
	return out.Bytes(), err
}
