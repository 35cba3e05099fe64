package imageops

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"

	"github.com/filewright/filewright/internal/imagefile"
)

// paletted encodes a PNG with an exact palette. It returns nil if there are more
// than 256 colours.
func (e *Engine) paletted(ctx context.Context, src source, p plan) ([]byte, error) {
	h, err := e.codec.stat(src)
	if err != nil || h.bits > 8 {
		return nil, err
	}
	m, err := e.codec.pixels(ctx, src, p)
	if err != nil {
		return nil, err
	}
	pal := exactPalette(m)
	if pal == nil {
		return nil, nil
	}
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(&b, pal); err != nil {
		return nil, err
	}
	return imagefile.CopyColourChunks(b.Bytes(), src.data), nil
}

// exactPalette returns m with a palette, or nil if it has more than 256 colours.
func exactPalette(m image.Image) *image.Paletted {
	b := m.Bounds()
	out := image.NewPaletted(image.Rect(0, 0, b.Dx(), b.Dy()), nil)
	var palette imagefile.Palette
	for y := range b.Dy() {
		for x := range b.Dx() {
			var c color.NRGBA
			switch m := m.(type) {
			case *image.Gray:
				v := m.Pix[y*m.Stride+x]
				c = color.NRGBA{v, v, v, 255}
			case *image.NRGBA:
				p := m.Pix[y*m.Stride+4*x:]
				c = color.NRGBA{p[0], p[1], p[2], p[3]}
			case *image.RGBA: // opaque
				p := m.Pix[y*m.Stride+4*x:]
				c = color.NRGBA{p[0], p[1], p[2], 255}
			default:
				return nil
			}
			known := len(palette.Colours)
			i, ok := palette.Add(uint32(c.R)<<24 | uint32(c.G)<<16 | uint32(c.B)<<8 | uint32(c.A))
			if !ok {
				return nil
			}
			if len(palette.Colours) > known {
				out.Palette = append(out.Palette, c)
			}
			out.Pix[y*out.Stride+x] = i
		}
	}
	return out
}

// jpegInfo returns the readable properties in the headers of a JPEG file.
func jpegInfo(b []byte) imagefile.JPEG {
	info, _ := imagefile.ReadJPEG(b)
	return info
}
