//go:build !cgo

package imageops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
)

// goCodec is the codec for programs built without cgo. It keeps the colour
// profile between JPEG and PNG. It cannot convert colours, and drops all other
// metadata.
type goCodec struct{}

func newCodec(string) (codec, error) { return goCodec{}, nil }

func (goCodec) probed() string { return "" }

func (goCodec) name() string { return "go" }

func (goCodec) reads(f format.Format) bool {
	switch f {
	case format.JPG, format.PNG, format.GIF, format.TIFF, format.WebP:
		return true
	}
	return false
}

func (goCodec) writes(f format.Format) bool {
	switch f {
	case format.JPG, format.PNG, format.GIF, format.TIFF:
		return true
	}
	return false
}

func (goCodec) compresses(f format.Format) bool { return f == format.JPG || f == format.PNG }

func (goCodec) stat(src source) (header, error) {
	r := bytes.NewReader(src.data)
	var c image.Config
	var err error
	h := header{pages: 1, bits: 8}
	switch src.format {
	case format.JPG:
		c, err = jpeg.DecodeConfig(r)
		h.profile = jpegInfo(src.data).Profile != nil
	case format.PNG:
		c, err = png.DecodeConfig(r)
		h.profile = imagefile.PNGProfile(src.data) != nil
		switch c.ColorModel {
		case color.Gray16Model, color.RGBA64Model, color.NRGBA64Model:
			h.bits = 16
		}
	case format.GIF:
		c, err = gif.DecodeConfig(r)
	case format.TIFF:
		if c, err = tiff.DecodeConfig(r); err == nil && readTIFF(src.data).pages > 1 {
			return h, fmt.Errorf("TIFF of several pages: %w", errors.ErrUnsupported)
		}
	case format.WebP:
		c, err = webp.DecodeConfig(r)
	default:
		return h, errors.ErrUnsupported
	}
	h.width, h.height = c.Width, c.Height
	var (
		u1 jpeg.UnsupportedError
		u2 png.UnsupportedError
		u3 tiff.UnsupportedError
	)
	if errors.As(err, &u1) || errors.As(err, &u2) || errors.As(err, &u3) {
		err = fmt.Errorf("%v: %w", err, errors.ErrUnsupported)
	}
	return h, err
}

func (c goCodec) decode(src source) (decoded, error) {
	r := bytes.NewReader(src.data)
	var m decoded
	var err error
	switch src.format {
	case format.JPG:
		m.img, err = jpeg.Decode(r)
		m.profile = jpegInfo(src.data).Profile
	case format.PNG:
		m.img, err = png.Decode(r)
		m.profile = imagefile.PNGProfile(src.data)
	case format.GIF:
		m.img, err = gif.Decode(r)
	case format.TIFF:
		m.img, err = tiff.Decode(r)
	case format.WebP:
		// The decoder fills missing data with zeros.
		if n := len(src.data); n < 12 || int64(binary.LittleEndian.Uint32(src.data[4:])) > int64(n-8) {
			return m, io.ErrUnexpectedEOF
		}
		m.img, err = webp.Decode(r)
	default:
		err = errors.ErrUnsupported
	}
	return m, err
}

func (c goCodec) transcode(ctx context.Context, src source, t plan) ([]byte, error) {
	m, err := c.decode(src)
	if err != nil {
		return nil, err
	}
	if src.format == format.JPG && !t.upside {
		m.img = upright(m.img, jpegInfo(src.data).Orientation)
	}
	return c.encode(ctx, m, t)
}

func (c goCodec) encode(ctx context.Context, m decoded, t plan) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var err error
	if m.img, err = reshaped(m.img, t); err != nil {
		return nil, err
	}
	m.img = fitted(m.img, t)
	var b bytes.Buffer
	switch t.to {
	case format.JPG:
		q := t.quality
		q = cmp.Or(q, 90)
		if err = jpeg.Encode(&b, laidOn(m.img, t.backdrop()), &jpeg.Options{Quality: q}); err == nil && rgbProfile(m.profile) {
			return imagefile.WithJPEGProfile(b.Bytes(), m.profile), nil
		}
	case format.PNG:
		img := m.img
		switch img.(type) {
		case *image.CMYK, *image.YCbCr: // would become 16 bits per sample
			img = rgb(img, t.backdrop())
		}
		if t.colours > 0 {
			img = quantise(img, t.colours, t.dither > 0)
		}
		enc := png.Encoder{}
		if t.small {
			enc.CompressionLevel = png.BestCompression
		}
		if err = enc.Encode(&b, img); err == nil && rgbProfile(m.profile) {
			return imagefile.WithPNGProfile(b.Bytes(), m.profile)
		}
	case format.GIF:
		img := quantise(m.img, 256, true)
		err = gif.Encode(&b, img, nil)
	case format.TIFF:
		err = tiff.Encode(&b, m.img, &tiff.Options{Compression: tiff.Deflate, Predictor: true})
	default:
		err = errors.ErrUnsupported
	}
	return b.Bytes(), err
}

func (c goCodec) pixels(ctx context.Context, src source, t plan) (image.Image, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m, err := c.decode(src)
	if err != nil {
		return nil, err
	}
	if src.format == format.JPG && !t.upside {
		m.img = upright(m.img, jpegInfo(src.data).Orientation)
	}
	if m.img, err = reshaped(m.img, t); err != nil {
		return nil, err
	}
	img := fitted(m.img, t)
	if g, ok := img.(*image.Gray); ok {
		return g, nil
	}
	if t.to == format.BMP {
		return laidOn(img, t.backdrop()), nil
	}
	if n, ok := img.(*image.NRGBA); ok {
		return n, nil
	}
	n := image.NewNRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(n, n.Rect, img, img.Bounds().Min, draw.Src)
	return n, nil
}

func (c goCodec) flat(ctx context.Context, src source) (raster.Samples, error) {
	m, err := c.pixels(ctx, src, own)
	if err != nil {
		return raster.Samples{}, err
	}
	return imagefile.FromImage(m)
}

func (c goCodec) luma(ctx context.Context, src source, _ int, backdrop uint8) (*image.Gray, error) {
	m, err := c.pixels(ctx, src, plan{to: format.PNG})
	if err != nil {
		return nil, err
	}
	return lumaOn(m, uint32(backdrop)), nil
}

// laidOn returns m composed with an opaque backdrop of one colour.
func laidOn(m image.Image, c color.NRGBA) image.Image {
	switch img := m.(type) {
	case *image.Gray, *image.YCbCr:
		return m
	case *image.RGBA:
		if img.Opaque() {
			return m
		}
	}
	return rgb(m, c)
}

func rgb(m image.Image, c color.NRGBA) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	draw.Draw(out, out.Rect, image.NewUniform(c), image.Point{}, draw.Src)
	draw.Draw(out, out.Rect, m, m.Bounds().Min, draw.Over)
	return out
}

// fitted scales, crops and pads m according to a plan.
func fitted(m image.Image, t plan) image.Image {
	b := m.Bounds()
	l := t.layout(b.Dx(), b.Dy())
	m = scaled(m, l.width, l.height)
	pad := l.outW > l.width || l.outH > l.height
	if t.background != nil {
		m = laidOn(m, *t.background)
	}
	if l.outW == l.width && l.outH == l.height {
		return m
	}
	out := image.NewNRGBA(image.Rect(0, 0, l.outW, l.outH))
	at := image.Rect(-l.cropX, -l.cropY, l.width-l.cropX, l.height-l.cropY)
	if pad {
		draw.Draw(out, out.Rect, image.NewUniform(t.padding()), image.Point{}, draw.Src)
		at = image.Rect(l.padX, l.padY, l.padX+l.width, l.padY+l.height)
	}
	draw.Draw(out, at, m, m.Bounds().Min, draw.Src)
	return out
}

// reshaped returns m cropped, rotated and flipped as a plan says.
func reshaped(m image.Image, t plan) (image.Image, error) {
	b := m.Bounds()
	part, err := t.crop.of(b.Dx(), b.Dy())
	if err != nil {
		return nil, err
	}
	if part.Size() != b.Size() {
		var out draw.Image = image.NewNRGBA(image.Rectangle{Max: part.Size()})
		if _, gray := m.(*image.Gray); gray {
			out = image.NewGray(image.Rectangle{Max: part.Size()})
		}
		draw.Draw(out, out.Bounds(), m, part.Min.Add(b.Min), draw.Src)
		m = out
	}
	// As EXIF orientations.
	m = upright(m, map[int]int{90: 6, 180: 3, 270: 8}[t.turn])
	return upright(m, map[string]int{flipHorizontal: 2, flipVertical: 4}[t.flip]), nil
}

// scaled returns m scaled to w × h pixels.
func scaled(m image.Image, w, h int) image.Image {
	b := m.Bounds()
	switch {
	case w == b.Dx() && h == b.Dy():
		return m
	case w > b.Dx() || h > b.Dy():
		out := image.NewRGBA(image.Rect(0, 0, w, h))
		xdraw.CatmullRom.Scale(out, out.Rect, m, b, xdraw.Src, nil)
		return out
	}
	if g, ok := m.(*image.Gray); ok {
		if s, err := imagefile.FromImage(g); err == nil {
			return &image.Gray{Pix: average(s, w, h).Pix, Stride: w, Rect: image.Rect(0, 0, w, h)}
		}
	}
	// Averages are correct only with premultiplied alpha.
	src := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(src, src.Rect, m, b.Min, draw.Src)
	v := average(raster.Samples{Width: b.Dx(), Height: b.Dy(), Components: 4, Pix: src.Pix}, w, h)
	return &image.RGBA{Pix: v.Pix, Stride: 4 * w, Rect: image.Rect(0, 0, w, h)}
}

// average scales samples down. Each result is the mean of the area that it
// covers.
func average(m raster.Samples, width, height int) raster.Samples {
	c := m.Components
	mid := make([]float32, width*m.Height*c) // rows first, then columns
	for x := range width {
		from, to := float64(x)*float64(m.Width)/float64(width), float64(x+1)*float64(m.Width)/float64(width)
		for y := range m.Height {
			for k := range c {
				var sum, weight float64
				for i := int(from); i < m.Width && float64(i) < to; i++ {
					wt := min(float64(i+1), to) - max(float64(i), from)
					sum, weight = sum+wt*float64(m.Pix[(y*m.Width+i)*c+k]), weight+wt
				}
				mid[(y*width+x)*c+k] = float32(sum / weight)
			}
		}
	}
	out := raster.Samples{Width: width, Height: height, Components: c, Pix: make([]byte, width*height*c)}
	for y := range height {
		from, to := float64(y)*float64(m.Height)/float64(height), float64(y+1)*float64(m.Height)/float64(height)
		for x := range width * c {
			var sum, weight float64
			for i := int(from); i < m.Height && float64(i) < to; i++ {
				wt := min(float64(i+1), to) - max(float64(i), from)
				sum, weight = sum+wt*float64(mid[i*width*c+x]), weight+wt
			}
			out.Pix[y*width*c+x] = byte(sum/weight + 0.5)
		}
	}
	return out
}

// upright applies an EXIF orientation (Exif 2.32, tag 274).
func upright(m image.Image, orientation int) image.Image {
	if orientation < 2 || orientation > 8 {
		return m
	}
	b := m.Bounds()
	w, h := b.Dx(), b.Dy()
	ow, oh := w, h
	if orientation >= 5 {
		ow, oh = h, w
	}
	src := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.Draw(src, src.Rect, m, b.Min, draw.Src)
	out := image.NewNRGBA(image.Rect(0, 0, ow, oh))
	for y := range oh {
		for x := range ow {
			var sx, sy int
			switch orientation {
			case 2:
				sx, sy = w-1-x, y
			case 3:
				sx, sy = w-1-x, h-1-y
			case 4:
				sx, sy = x, h-1-y
			case 5:
				sx, sy = y, x
			case 6:
				sx, sy = y, h-1-x
			case 7:
				sx, sy = w-1-y, h-1-x
			case 8:
				sx, sy = w-1-y, x
			}
			copy(out.Pix[y*out.Stride+4*x:][:4], src.Pix[sy*src.Stride+4*sx:])
		}
	}
	return out
}

func (goCodec) jpeg(ctx context.Context, s raster.Samples, quality int) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return imagefile.EncodeJPEG(s, quality)
}

func (goCodec) scale(ctx context.Context, s raster.Samples, width, height int) (raster.Samples, error) {
	if ctx.Err() != nil {
		return raster.Samples{}, context.Cause(ctx)
	}
	return average(s, width, height), nil
}

func (c goCodec) unpack(ctx context.Context, src source, width, height int) (raster.Samples, error) {
	m, err := c.decode(src)
	if err != nil {
		return raster.Samples{}, err
	}
	s, err := imagefile.FromImage(m.img)
	if err != nil {
		return raster.Samples{}, err
	}
	if width != s.Width || height != s.Height {
		return c.scale(ctx, s, width, height)
	}
	return s, ctx.Err()
}

var _ codec = goCodec{}
