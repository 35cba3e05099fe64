package compress

import (
	"bytes"
	"context"
	"errors"
	"image/jpeg"
	"math"

	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
)

// A codec decodes, scales and encodes images; see pdfops.ImageCodec.
type codec interface {
	DecodePixels(ctx context.Context, data []byte, width, height int) (raster.Samples, error)
	ScalePixels(ctx context.Context, s raster.Samples, width, height int) (raster.Samples, error)
	EncodeJPEG(ctx context.Context, s raster.Samples, quality int) ([]byte, error)
}

// goCodec is the codec in pure Go. It supports neither JPEG 2000 nor CMYK.
type goCodec struct{}

func (c goCodec) DecodePixels(ctx context.Context, data []byte, width, height int) (raster.Samples, error) {
	if !bytes.HasPrefix(data, []byte{0xff, 0xd8}) {
		return raster.Samples{}, errors.ErrUnsupported
	}
	img, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return raster.Samples{}, err
	}
	s, err := imagefile.FromImage(img)
	if err != nil {
		return raster.Samples{}, err
	}
	return c.ScalePixels(ctx, s, width, height)
}

func (goCodec) EncodeJPEG(_ context.Context, s raster.Samples, quality int) ([]byte, error) {
	return imagefile.EncodeJPEG(s, quality)
}

// ScalePixels uses the Catmull-Rom cubic filter, widened when the image shrinks.
// It scales horizontally, then vertically.
func (goCodec) ScalePixels(ctx context.Context, s raster.Samples, width, height int) (raster.Samples, error) {
	if width < 1 || height < 1 || len(s.Pix) < s.Width*s.Height*s.Components {
		return raster.Samples{}, errors.New("not enough samples")
	}
	n := s.Components
	if width != s.Width {
		out := make([]byte, width*s.Height*n)
		taps := filterTaps(s.Width, width)
		for y := range s.Height {
			if y%64 == 0 && ctx.Err() != nil {
				return raster.Samples{}, context.Cause(ctx)
			}
			scaleRow(out[y*width*n:][:width*n], s.Pix[y*s.Width*n:][:s.Width*n], taps, n)
		}
		s = raster.Samples{Width: width, Height: s.Height, Components: n, Pix: out}
	}
	if height != s.Height {
		out := make([]byte, width*height*n)
		sums := make([]float32, width*n)
		for y, t := range filterTaps(s.Height, height) {
			if y%64 == 0 && ctx.Err() != nil {
				return raster.Samples{}, context.Cause(ctx)
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
		s = raster.Samples{Width: width, Height: height, Components: n, Pix: out}
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

// A tap lists the source pixels that contribute to a target pixel, with their
// weights.
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

var _ codec = goCodec{}
