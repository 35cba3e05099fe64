package pdfops

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/png"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/internal/imagefile"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

var errTransparency = errors.New("the tRNS chunk does not fit the picture")

// pngPicture embeds a PNG file. Where possible it copies the compressed data,
// because PDF has the same filters.
func pngPicture(d *pdf.Document, b []byte, limits Limits) (picture, error) {
	info, err := imagefile.ReadPNG(b)
	if err := limits.checkPixels(info.Width, info.Height); err != nil { // reported even if the rest is damaged
		return picture{}, err
	}
	if err != nil {
		return picture{}, err
	}
	p := picture{width: info.Width, height: info.Height, density: info.Density, orientation: 1}
	if info.Interlaced || info.Colour == imagefile.PNGGrayAlpha || info.Colour == imagefile.PNGRGBAlpha {
		p.image, err = decodedPNG(d, b, info)
		return p, err
	}
	if err := info.CheckData(); err != nil {
		return picture{}, err
	}
	dict := imageDict(info.Width, info.Height, info.Depth)
	dict["Filter"] = types.Name("FlateDecode")
	dict["DecodeParms"] = pdf.PredictorParms(info.Width, info.Channels(), info.Depth)
	switch info.Colour {
	case imagefile.PNGGray:
		dict["ColorSpace"] = pictureSpace(d, info.Profile, 1)
	case imagefile.PNGRGB:
		dict["ColorSpace"] = pictureSpace(d, info.Profile, 3)
	case imagefile.PNGPalette:
		entries := min(len(info.Palette)/3, 1<<info.Depth)
		dict["ColorSpace"] = types.Array{
			types.Name("Indexed"), pictureSpace(d, info.Profile, 3), types.Integer(entries - 1),
			types.NewHexLiteral(info.Palette[:3*entries]),
		}
	}
	if info.Transparency != nil {
		if err := addTransparency(d, dict, b, info); err != nil {
			return picture{}, err
		}
	}
	p.image = d.AddStream(dict, info.Data)
	return p, nil
}

// addTransparency declares the transparent colour, or adds a soft mask for a
// palette.
func addTransparency(d *pdf.Document, dict types.Dict, b []byte, info imagefile.PNG) error {
	if info.Colour != imagefile.PNGPalette {
		var mask types.Array
		if len(info.Transparency) < 2*info.Channels() {
			return errTransparency
		}
		for i := range info.Channels() {
			v := types.Integer(binary.BigEndian.Uint16(info.Transparency[2*i:]))
			mask = append(mask, v, v)
		}
		dict["Mask"] = mask
		return nil
	}
	opaque := true
	for _, a := range info.Transparency {
		opaque = opaque && a == 255
	}
	if opaque {
		return nil
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return err
	}
	pal, ok := img.(*image.Paletted)
	if !ok {
		return errTransparency
	}
	alpha := make([]byte, 0, info.Width*info.Height)
	for y := range info.Height {
		for _, i := range pal.Pix[y*pal.Stride:][:info.Width] {
			a := byte(255)
			if int(i) < len(info.Transparency) {
				a = info.Transparency[i]
			}
			alpha = append(alpha, a)
		}
	}
	dict["SMask"] = addSamples(d, info.Width, info.Height, 1, 8, alpha, types.Name("DeviceGray"))
	return nil
}

// decodedPNG adds an interlaced image, or one with an alpha channel. It stores
// colours and opacity separately, in their original depth.
func decodedPNG(d *pdf.Document, b []byte, info imagefile.PNG) (types.IndirectRef, error) {
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return types.IndirectRef{}, err
	}
	n, bits := 3, 8
	if info.Colour == imagefile.PNGGray || info.Colour == imagefile.PNGGrayAlpha {
		n = 1
	}
	if info.Depth == 16 {
		bits = 16
	}
	size := info.Width * info.Height * bits / 8
	pix := make([]byte, 0, size*n)
	alpha := make([]byte, 0, size)
	opaque := true
	put := func(dst []byte, v uint16) []byte {
		if bits == 16 {
			return append(dst, byte(v>>8), byte(v))
		}
		return append(dst, byte(v>>8))
	}
	bounds := img.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := straight(img, x, y)
			pix = put(pix, c[0])
			if n == 3 {
				pix = put(put(pix, c[1]), c[2])
			}
			alpha = put(alpha, c[3])
			opaque = opaque && c[3] == 0xffff
		}
	}
	dict := samplesDict(info.Width, info.Height, n, bits, pictureSpace(d, info.Profile, n))
	if !opaque {
		dict["SMask"] = addSamples(d, info.Width, info.Height, 1, bits, alpha, types.Name("DeviceGray"))
	}
	return d.AddStream(dict, packSamples(info.Width, n, bits, pix)), nil
}

// straight returns a pixel's red, green, blue and alpha without
// premultiplication. Premultiplying would lose the colours of transparent pixels
// and round the others.
func straight(img image.Image, x, y int) [4]uint16 {
	switch v := img.(type) {
	case *image.NRGBA:
		c := v.NRGBAAt(x, y)
		return [4]uint16{uint16(c.R) * 0x101, uint16(c.G) * 0x101, uint16(c.B) * 0x101, uint16(c.A) * 0x101}
	case *image.NRGBA64:
		c := v.NRGBA64At(x, y)
		return [4]uint16{c.R, c.G, c.B, c.A}
	case *image.Paletted:
		if int(v.ColorIndexAt(x, y)) >= len(v.Palette) {
			return [4]uint16{0, 0, 0, 0xffff}
		}
	}
	r, g, b, a := img.At(x, y).RGBA()
	if a != 0 && a != 0xffff {
		r, g, b = r*0xffff/a, g*0xffff/a, b*0xffff/a
	}
	return [4]uint16{uint16(r), uint16(g), uint16(b), uint16(a)}
}

func samplesDict(width, height, n, bits int, space types.Object) types.Dict {
	dict := imageDict(width, height, bits)
	dict["ColorSpace"] = space
	dict["Filter"] = types.Name("FlateDecode")
	dict["DecodeParms"] = pdf.PredictorParms(width, n, bits)
	return dict
}

func packSamples(width, n, bits int, pix []byte) []byte {
	return pdf.Deflate(imagefile.Filter(pix, width*n*bits/8, n*bits/8))
}

func addSamples(d *pdf.Document, width, height, n, bits int, pix []byte, space types.Object) types.IndirectRef {
	return d.AddStream(samplesDict(width, height, n, bits, space), packSamples(width, n, bits, pix))
}
