package imageops

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"slices"
)

// paletted encodes a PNG of at most 256 different colours with exactly these;
// nil if it has more.
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
	return copyColourChunks(b.Bytes(), src.data), nil
}

// exactPalette returns m with a palette, nil if it has more than 256 colours.
func exactPalette(m image.Image) *image.Paletted {
	b := m.Bounds()
	out := image.NewPaletted(image.Rect(0, 0, b.Dx(), b.Dy()), nil)
	index := make(map[uint32]byte)
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
			key := uint32(c.R)<<24 | uint32(c.G)<<16 | uint32(c.B)<<8 | uint32(c.A)
			i, ok := index[key]
			if !ok {
				if len(index) == 256 {
					return nil
				}
				i = byte(len(index))
				index[key] = i
				out.Palette = append(out.Palette, c)
			}
			out.Pix[y*out.Stride+x] = i
		}
	}
	return out
}

// colourChunks say what the samples of a PNG mean (PNG, third edition, 11.3.2)
// and how large a pixel is.
var colourChunks = []string{"iCCP", "sRGB", "gAMA", "cHRM", "cICP", "pHYs"}

// copyColourChunks inserts the colour chunks of the PNG from into dst, after
// its header.
func copyColourChunks(dst, from []byte) []byte {
	const start = 8 + 12 + 13 // signature and IHDR
	out := slices.Clone(dst[:start])
	for typ, i := range pngChunks(from) {
		if typ == "IDAT" || typ == "PLTE" {
			break
		}
		if slices.Contains(colourChunks, typ) {
			n := int(binary.BigEndian.Uint32(from[i:]))
			out = append(out, from[i:i+12+n]...)
		}
	}
	return append(out, dst[start:]...)
}
