// Package jpegenc encodes pictures as progressive JPEG files (ITU-T T.81) that are
// smaller than those of common encoders at the same visual quality. It quantizes
// each block so that the sum of its error and its coded size is least, as mozjpeg
// does (Crouse and Ramchandran, Joint thresholding and quantizer selection for
// transform image coding, 1997), with fewer bits for blocks that hide errors.
package jpegenc

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/filewright/filewright/fileops/raster"
)

// Options say how to encode a picture.
type Options struct {
	// Quality is 1 to 100, on the scale of libjpeg.
	Quality int

	// FullColour stores the colours of each pixel. Otherwise, those of 2 × 2 pixels
	// are averaged.
	FullColour bool

	// X and Y are the resolution in pixels per inch. They are unknown if X is 0.
	X, Y float64

	// Profile is an ICC profile, or nil.
	Profile []byte
}

const maxSide = 65500 // pixels; the limit of libjpeg

// A component is one colour component of a picture.
type component struct {
	id, h, v      int // identifier and sampling factors
	table         int // 0 for luminance, 1 for chrominance
	width, height int // samples
	across, down  int // blocks that hold samples
	stride, rows  int // blocks, padded to whole MCUs
	coef          []int16
	nonzero       []uint64 // of each block, which of its coefficients are not zero
}

// block returns the 64 quantized coefficients of a block, in zigzag order.
func (c *component) block(at int) []int16 { return c.coef[at*64:][:64] }

// Encode returns a picture in gray or RGB as a JPEG file.
func Encode(ctx context.Context, s raster.Samples, o Options) ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.Components != 1 && s.Components != 3 {
		return nil, fmt.Errorf("jpegenc: %d components", s.Components)
	}
	if s.Width > maxSide || s.Height > maxSide {
		return nil, fmt.Errorf("jpegenc: more than %d pixels wide or high", maxSide)
	}
	steps := [2][64]int{scaled(&lumaSteps, o.Quality), scaled(&chromaSteps, o.Quality)}
	comps := layout(s, o)
	if err := quantize(ctx, s, comps, &steps); err != nil {
		return nil, err
	}
	out := header(s, o, comps, &steps)
	scans := script(comps)
	var wg sync.WaitGroup
	for _, scan := range scans {
		wg.Go(func() {
			if ctx.Err() == nil {
				scan.write()
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, scan := range scans {
		out = append(out, scan.out...)
	}
	return append(out, 0xff, 0xd9), nil
}

// layout returns the components of a picture, without coefficients.
func layout(s raster.Samples, o Options) []*component {
	comps := []*component{{id: 1, h: 1, v: 1}}
	if s.Components == 3 {
		if !o.FullColour {
			comps[0].h, comps[0].v = 2, 2
		}
		comps = append(comps, &component{id: 2, h: 1, v: 1, table: 1}, &component{id: 3, h: 1, v: 1, table: 1})
	}
	most := comps[0].h
	mcusX, mcusY := ceil(s.Width, 8*most), ceil(s.Height, 8*most)
	for _, c := range comps {
		c.width, c.height = ceil(s.Width*c.h, most), ceil(s.Height*c.v, most)
		c.across, c.down = ceil(c.width, 8), ceil(c.height, 8)
		c.stride, c.rows = mcusX*c.h, mcusY*c.v
		c.coef, c.nonzero = make([]int16, c.stride*c.rows*64), make([]uint64, c.stride*c.rows)
	}
	return comps
}

func ceil(a, b int) int { return (a + b - 1) / b }

// header returns the file up to the first scan.
func header(s raster.Samples, o Options, comps []*component, steps *[2][64]int) []byte {
	be := binary.BigEndian
	segment := func(out []byte, marker byte, n int) []byte {
		return be.AppendUint16(append(out, 0xff, marker), uint16(n+2))
	}
	out := segment([]byte{0xff, 0xd8}, 0xe0, 14)
	out = append(out, "JFIF\x00\x01\x01"...) // ITU-T T.871, 10.1
	if o.X >= 1 && o.X < 65535 && o.Y >= 1 && o.Y < 65535 {
		out = be.AppendUint16(append(out, 1), uint16(math.Round(o.X)))
		out = be.AppendUint16(out, uint16(math.Round(o.Y)))
	} else {
		out = append(out, 0, 0, 1, 0, 1)
	}
	out = append(out, 0, 0)
	const most = 65519 // bytes of a profile in a segment (ICC.1, annex B.4)
	for i, n := 0, ceil(len(o.Profile), most); i < n && n < 256; i++ {
		part := o.Profile[i*most : min(len(o.Profile), (i+1)*most)]
		out = segment(out, 0xe2, 14+len(part))
		out = append(out, "ICC_PROFILE\x00"...)
		out = append(append(out, byte(i+1), byte(n)), part...)
	}
	tables := min(2, len(comps))
	out = segment(out, 0xdb, 65*tables)
	for i := range tables {
		out = append(out, byte(i))
		for _, q := range &steps[i] {
			out = append(out, byte(q))
		}
	}
	out = append(segment(out, 0xc2, 6+3*len(comps)), 8)
	out = be.AppendUint16(out, uint16(s.Height))
	out = append(be.AppendUint16(out, uint16(s.Width)), byte(len(comps)))
	for _, c := range comps {
		out = append(out, byte(c.id), byte(c.h<<4|c.v), byte(c.table))
	}
	return out
}
