package pdfops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
)

// An ImageCodec decodes and encodes the pictures in a PDF file. It is called from
// several goroutines at once.
//
// Sample values of CMYK pictures are what the JPEG file stores (after YCCK is
// turned into CMYK) and what a PDF reader gets of it: an Adobe marker, which
// makes other software take them for inverted, changes nothing.
type ImageCodec interface {
	// Decode decodes a picture and scales it to width × height pixels. A
	// format or colour model that it does not know is reported by an error
	// that matches errors.ErrUnsupported. It must not convert between colour
	// spaces, nor apply profiles or an orientation.
	Decode(ctx context.Context, p EncodedImage, width, height int) (Samples, error)

	// Encode encodes a picture with 1, 3 or 4 components as a baseline or
	// progressive JPEG file of a quality from 1 to 100, without profiles.
	Encode(ctx context.Context, s Samples, quality int) ([]byte, error)
}

// An EncodedImage is a picture in a PDF file: a JPEG or JPEG 2000 file, or plain
// samples.
type EncodedImage struct {
	Format ImageFormat
	Data   []byte // of a JPEG or JPEG 2000 file
	Plain  Samples
}

// ImageFormat is what an [EncodedImage] contains.
type ImageFormat int

// The formats of pictures in a PDF file.
const (
	PlainSamples ImageFormat = iota
	JPEG
	JPEG2000
)

// Samples are the pixels of a picture, 8 bits per component, interleaved, from
// the top left, without padding.
type Samples struct {
	Width, Height int
	Components    int // 1, 3 or 4; other numbers occur in plain samples only
	Pix           []byte
}

// goCodec is the ImageCodec of pure Go.
type goCodec struct{}

func (goCodec) Decode(ctx context.Context, p EncodedImage, width, height int) (Samples, error) {
	s := p.Plain
	switch p.Format {
	case PlainSamples:
	case JPEG:
		img, err := jpeg.Decode(bytes.NewReader(p.Data))
		if err != nil {
			return Samples{}, err
		}
		if s, err = fromImage(img); err != nil {
			return Samples{}, err
		}
	default:
		return Samples{}, fmt.Errorf("JPEG 2000: %w", errors.ErrUnsupported)
	}
	return resample(ctx, s, width, height)
}

func fromImage(img image.Image) (Samples, error) {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	switch v := img.(type) {
	case *image.Gray:
		s := Samples{Width: w, Height: h, Components: 1, Pix: make([]byte, 0, w*h)}
		for y := range h {
			s.Pix = append(s.Pix, v.Pix[y*v.Stride:][:w]...)
		}
		return s, nil
	case *image.YCbCr:
		s := Samples{Width: w, Height: h, Components: 3, Pix: make([]byte, 0, 3*w*h)}
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				c := v.YCbCrAt(x, y)
				r, g, b := color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
				s.Pix = append(s.Pix, r, g, b)
			}
		}
		return s, nil
	case *image.RGBA:
		s := Samples{Width: w, Height: h, Components: 3, Pix: make([]byte, 0, 3*w*h)}
		for y := range h {
			row := v.Pix[y*v.Stride:][:4*w]
			for x := 0; x < len(row); x += 4 {
				s.Pix = append(s.Pix, row[x:x+3]...)
			}
		}
		return s, nil
	}
	return Samples{}, fmt.Errorf("%T: %w", img, errors.ErrUnsupported)
}

func (goCodec) Encode(_ context.Context, s Samples, quality int) ([]byte, error) {
	var img image.Image
	rect := image.Rect(0, 0, s.Width, s.Height)
	switch s.Components {
	case 1:
		img = &image.Gray{Pix: s.Pix, Stride: s.Width, Rect: rect}
	case 3:
		rgba := image.NewRGBA(rect)
		for i, j := 0, 0; i+2 < len(s.Pix); i, j = i+3, j+4 {
			rgba.Pix[j], rgba.Pix[j+1], rgba.Pix[j+2], rgba.Pix[j+3] = s.Pix[i], s.Pix[i+1], s.Pix[i+2], 255
		}
		img = rgba
	default:
		return nil, fmt.Errorf("%d components: %w", s.Components, errors.ErrUnsupported)
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// resample scales a picture with Catmull and Rom's cubic filter, widened where
// it shrinks, first across and then down.
func resample(ctx context.Context, s Samples, width, height int) (Samples, error) {
	if width < 1 || height < 1 || len(s.Pix) < s.Width*s.Height*s.Components {
		return Samples{}, errors.New("not enough samples")
	}
	n := s.Components
	if width != s.Width {
		out := make([]byte, width*s.Height*n)
		taps := filterTaps(s.Width, width)
		for y := range s.Height {
			if y%64 == 0 && ctx.Err() != nil {
				return Samples{}, context.Cause(ctx)
			}
			scaleRow(out[y*width*n:][:width*n], s.Pix[y*s.Width*n:][:s.Width*n], taps, n)
		}
		s = Samples{Width: width, Height: s.Height, Components: n, Pix: out}
	}
	if height != s.Height {
		out := make([]byte, width*height*n)
		sums := make([]float32, width*n)
		for y, t := range filterTaps(s.Height, height) {
			if y%64 == 0 && ctx.Err() != nil {
				return Samples{}, context.Cause(ctx)
			}
			clear(sums)
			for i, weight := range t.weights {
				for x, v := range s.Pix[(t.first+i)*width*n:][:width*n] {
					sums[x] += weight * float32(v)
				}
			}
			for x, v := range sums {
				out[y*width*n+x] = toByte(v)
			}
		}
		s = Samples{Width: width, Height: height, Components: n, Pix: out}
	}
	return s, nil
}

func scaleRow(dst, src []byte, taps []tap, n int) {
	for x, t := range taps {
		for c := range n {
			var sum float32
			at := t.first*n + c
			for _, weight := range t.weights {
				sum += weight * float32(src[at])
				at += n
			}
			dst[x*n+c] = toByte(sum)
		}
	}
}

func toByte(v float32) byte { return byte(max(0, min(255, v+0.5))) }

// A tap says which source pixels make up one of the target, and how much.
type tap struct {
	first   int
	weights []float32
}

func filterTaps(from, to int) []tap {
	ratio := float64(from) / float64(to)
	stretch := math.Max(1, ratio)
	taps := make([]tap, to)
	for i := range taps {
		center := (float64(i)+0.5)*ratio - 0.5
		lo := max(0, int(math.Ceil(center-2*stretch)))
		hi := min(from-1, int(math.Floor(center+2*stretch)))
		weights := make([]float32, hi-lo+1)
		sum := float32(0)
		for j := range weights {
			weights[j] = float32(catmullRom((float64(lo+j) - center) / stretch))
			sum += weights[j]
		}
		for j := range weights {
			weights[j] /= sum
		}
		taps[i] = tap{lo, weights}
	}
	return taps
}

func catmullRom(x float64) float64 {
	x = math.Abs(x)
	switch {
	case x < 1:
		return 1.5*x*x*x - 2.5*x*x + 1
	case x < 2:
		return -0.5*x*x*x + 2.5*x*x - 4*x + 2
	}
	return 0
}

// similarity is the structural similarity index (Wang et al., 2004) of two
// pictures of the same size, in blocks of 8 × 8, over their brightness, or, if
// they are neither gray nor RGB, their first component.
func similarity(a, b Samples) float64 {
	if a.Width != b.Width || a.Height != b.Height || a.Components != b.Components {
		return 0
	}
	n := a.Components
	value := func(pix []byte, at int) float64 {
		if n != 3 {
			return float64(pix[at*n])
		}
		return 0.299*float64(pix[at*3]) + 0.587*float64(pix[at*3+1]) + 0.114*float64(pix[at*3+2])
	}
	const c1, c2 = 6.5025, 58.5225
	total, count := 0.0, 0
	for y := 0; y < a.Height; y += 8 {
		for x := 0; x < a.Width; x += 8 {
			var sa, sb, saa, sbb, sab, k float64
			for j := y; j < min(y+8, a.Height); j++ {
				for i := x; i < min(x+8, a.Width); i++ {
					p, q := value(a.Pix, j*a.Width+i), value(b.Pix, j*a.Width+i)
					sa, sb, saa, sbb, sab, k = sa+p, sb+q, saa+p*p, sbb+q*q, sab+p*q, k+1
				}
			}
			ma, mb := sa/k, sb/k
			va, vb, cov := saa/k-ma*ma, sbb/k-mb*mb, sab/k-ma*mb
			total += (2*ma*mb + c1) * (2*cov + c2) / ((ma*ma + mb*mb + c1) * (va + vb + c2))
			count++
		}
	}
	return total / float64(max(1, count))
}

var _ ImageCodec = goCodec{}
