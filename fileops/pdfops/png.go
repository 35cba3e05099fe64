package pdfops

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"math"

	"github.com/klauspost/compress/zlib"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// pngInfo is what the chunks of a PNG file say (W3C PNG, third edition).
type pngInfo struct {
	width, height int
	depth         int
	colour        int // 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha
	interlaced    bool
	palette       []byte
	transparency  []byte // of tRNS, nil if there is none
	density       density
	profile       []byte
	data          []byte // of all IDAT chunks: one zlib stream
}

var errPNG = errors.New("not a PNG file, or a damaged one")

func parsePNG(b []byte) (pngInfo, error) {
	var info pngInfo
	if !bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) {
		return info, errPNG
	}
	ended := false
	for b = b[8:]; len(b) >= 12 && !ended; {
		n := int64(binary.BigEndian.Uint32(b))
		if n+12 > int64(len(b)) {
			return info, errPNG
		}
		kind, data := string(b[4:8]), b[8:8+n]
		if crc32.ChecksumIEEE(b[4:8+n]) != binary.BigEndian.Uint32(b[8+n:]) {
			return info, fmt.Errorf("%w: checksum of %q", errPNG, kind)
		}
		b = b[12+n:]
		switch kind {
		case "IHDR":
			if len(data) != 13 {
				return info, errPNG
			}
			w, h := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
			if w == 0 || h == 0 || w > 1<<30 || h > 1<<30 {
				return info, errPNG
			}
			info.width, info.height = int(w), int(h)
			info.depth, info.colour, info.interlaced = int(data[8]), int(data[9]), data[12] != 0
		case "PLTE":
			info.palette = data
		case "tRNS":
			info.transparency = append([]byte{}, data...)
		case "pHYs":
			if len(data) == 9 && data[8] == 1 { // per metre
				info.density = density{perMetre(binary.BigEndian.Uint32(data)), perMetre(binary.BigEndian.Uint32(data[4:]))}
			}
		case "iCCP":
			if i := bytes.IndexByte(data, 0); i >= 0 && i+2 <= len(data) {
				info.profile, _ = inflate(data[i+2:]) // without it if it is damaged
			}
		case "IDAT":
			info.data = append(info.data, data...)
		case "IEND":
			ended = true
		}
	}
	if info.width == 0 || len(info.data) == 0 || !ended || info.channels() == 0 {
		return info, errPNG
	}
	if info.colour == 3 && (len(info.palette) < 3 || len(info.palette)%3 != 0) {
		return info, errPNG
	}
	return info, nil
}

// perMetre turns pixels per metre into dots per inch. A whole number of these
// was meant if it is as near as a whole number of those can be.
func perMetre(n uint32) float64 {
	dpi := float64(n) * 0.0254
	if whole := math.Round(dpi); math.Abs(dpi-whole) <= 0.0254/2 {
		return whole
	}
	return dpi
}

func (p pngInfo) channels() int {
	switch p.colour {
	case 0, 3:
		return 1
	case 4:
		return 2
	case 2:
		return 3
	case 6:
		return 4
	}
	return 0
}

// stride is the length of a row without its filter byte.
func (p pngInfo) stride() int { return (p.width*p.channels()*p.depth + 7) / 8 }

// checkData inflates the picture of a file that is not interlaced, because a
// viewer would only show that it is damaged once it is in a PDF file.
func (p pngInfo) checkData() error {
	r, err := zlib.NewReader(bytes.NewReader(p.data))
	if err != nil {
		return err
	}
	defer r.Close()
	want := int64(p.stride()+1) * int64(p.height)
	n, err := io.Copy(io.Discard, io.LimitReader(r, want))
	if err == nil && n < want {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// pngPicture makes a picture of a PNG file. Where it can, it takes the
// compressed data as they are: PDF has the same filters.
func pngPicture(d *document, b []byte) (picture, error) {
	info, err := parsePNG(b)
	if err := d.bounds.checkPixels(info.width, info.height); err != nil { // also if the rest is damaged
		return picture{}, err
	}
	if err != nil {
		return picture{}, err
	}
	p := picture{width: info.width, height: info.height, density: info.density, orientation: 1}
	if info.interlaced || info.colour == 4 || info.colour == 6 {
		p.image, err = decodedPNG(d, b, info)
		return p, err
	}
	if err := info.checkData(); err != nil {
		return picture{}, err
	}
	dict := imageDict(info.width, info.height, info.depth)
	dict["Filter"] = types.Name("FlateDecode")
	dict["DecodeParms"] = predictorParms(info.width, info.channels(), info.depth)
	switch info.colour {
	case 0:
		dict["ColorSpace"] = pictureSpace(d, info.profile, 1)
	case 2:
		dict["ColorSpace"] = pictureSpace(d, info.profile, 3)
	case 3:
		entries := min(len(info.palette)/3, 1<<info.depth)
		dict["ColorSpace"] = types.Array{
			types.Name("Indexed"), pictureSpace(d, info.profile, 3), types.Integer(entries - 1),
			types.NewHexLiteral(info.palette[:3*entries]),
		}
	}
	if info.transparency != nil {
		if err := addTransparency(d, dict, b, info); err != nil {
			return picture{}, err
		}
	}
	p.image = d.addStream(dict, info.data)
	return p, nil
}

// addTransparency says which colour is transparent, or, for a palette, adds a
// soft mask.
func addTransparency(d *document, dict types.Dict, b []byte, info pngInfo) error {
	if info.colour != 3 {
		var mask types.Array
		if len(info.transparency) < 2*info.channels() {
			return errPNG
		}
		for i := range info.channels() {
			v := types.Integer(binary.BigEndian.Uint16(info.transparency[2*i:]))
			mask = append(mask, v, v)
		}
		dict["Mask"] = mask
		return nil
	}
	opaque := true
	for _, a := range info.transparency {
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
		return errPNG
	}
	alpha := make([]byte, 0, info.width*info.height)
	for y := range info.height {
		for _, i := range pal.Pix[y*pal.Stride:][:info.width] {
			a := byte(255)
			if int(i) < len(info.transparency) {
				a = info.transparency[i]
			}
			alpha = append(alpha, a)
		}
	}
	dict["SMask"] = addSamples(d, info.width, info.height, 1, 8, alpha, types.Name("DeviceGray"))
	return nil
}

// decodedPNG adds a picture with an alpha channel, or an interlaced one: colours
// and opacity apart, in the depth that they have.
func decodedPNG(d *document, b []byte, info pngInfo) (types.IndirectRef, error) {
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return types.IndirectRef{}, err
	}
	n, bits := 3, 8
	if info.colour == 0 || info.colour == 4 {
		n = 1
	}
	if info.depth == 16 {
		bits = 16
	}
	size := info.width * info.height * bits / 8
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
	dict := samplesDict(info.width, info.height, n, bits, pictureSpace(d, info.profile, n))
	if !opaque {
		dict["SMask"] = addSamples(d, info.width, info.height, 1, bits, alpha, types.Name("DeviceGray"))
	}
	return d.addStream(dict, packSamples(info.width, n, bits, pix)), nil
}

// straight returns a pixel's red, green, blue and alpha without premultiplying,
// which would lose what is under a transparent pixel and round the rest.
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
	dict["DecodeParms"] = predictorParms(width, n, bits)
	return dict
}

func packSamples(width, n, bits int, pix []byte) []byte {
	return deflate(predict(pix, width*n*bits/8, n*bits/8))
}

func addSamples(d *document, width, height, n, bits int, pix []byte, space types.Object) types.IndirectRef {
	return d.addStream(samplesDict(width, height, n, bits, space), packSamples(width, n, bits, pix))
}
