package imagefile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"

	"github.com/filewright/filewright/fileops/raster"
)

// An Animation holds complete frames of the same size.
type Animation struct {
	Pix    *image.NRGBA // the frames, one below the other
	Delays []int        // milliseconds that each frame is shown
	Plays  int          // how often the animation runs; 0 means without end
}

// Height returns the height of a frame.
func (a Animation) Height() int { return a.Pix.Rect.Dy() / max(1, len(a.Delays)) }

// PNGFrames returns the number of frames of an animated PNG, and 0 for a still
// picture (W3C PNG, third edition, 11.3.6.1).
func PNGFrames(b []byte) int {
	for kind, chunk := range PNGChunks(b) {
		switch {
		case kind == "acTL" && len(chunk) == 12+8:
			return int(min(binary.BigEndian.Uint32(chunk[8:]), 1<<30))
		case kind == "IDAT":
			return 0
		}
	}
	return 0
}

// Ways to dispose of a frame, and to combine it with the one before (W3C PNG,
// 11.3.6.2).
const (
	disposeNone     = 0
	disposeClear    = 1
	disposePrevious = 2

	blendSource = 0
)

// A frame is a fcTL chunk with the pixel data that follows it.
type frame struct {
	r              image.Rectangle
	delay          int // milliseconds
	dispose, blend byte
	data           [][]byte
}

var errAPNG = errors.New("malformed animated PNG")

func readFrame(b []byte) (frame, error) {
	be := binary.BigEndian
	if len(b) != 26 {
		return frame{}, errAPNG
	}
	w, h, x, y := be.Uint32(b[4:]), be.Uint32(b[8:]), be.Uint32(b[12:]), be.Uint32(b[16:])
	if w == 0 || h == 0 || max(w, h, x, y) > 1<<30 {
		return frame{}, errAPNG
	}
	num, den := int(be.Uint16(b[20:])), int(be.Uint16(b[22:]))
	den = cmp.Or(den, 100)
	return frame{
		r:     image.Rect(int(x), int(y), int(x)+int(w), int(y)+int(h)),
		delay: num * 1000 / den, dispose: b[24], blend: b[25],
	}, nil
}

// ErrPixels reports that the frames of an animation have more pixels than allowed.
var ErrPixels = errors.New("too many pixels in the frames of the animation")

// DecodeAPNG decodes the frames of an animated PNG. If they have more than maxPixels
// pixels in all, it returns ErrPixels before it allocates memory for them.
func DecodeAPNG(ctx context.Context, b []byte, maxPixels int64) (Animation, error) {
	png, err := readAPNG(b)
	if err != nil {
		return Animation{}, err
	}
	if int64(png.size.Width)*int64(png.size.Height) > maxPixels/int64(len(png.frames)) {
		return Animation{}, ErrPixels
	}
	a := Animation{Plays: png.plays, Pix: image.NewNRGBA(image.Rect(0, 0, png.size.Width, png.size.Height*len(png.frames)))}
	canvas := image.NewNRGBA(image.Rect(0, 0, png.size.Width, png.size.Height))
	for i, f := range png.frames {
		if ctx.Err() != nil {
			return Animation{}, context.Cause(ctx)
		}
		m, err := f.decode(png.head, png.common)
		if err != nil {
			return Animation{}, fmt.Errorf("frame %d: %w", i+1, err)
		}
		var before []byte
		if f.dispose == disposePrevious {
			before = bytes.Clone(canvas.Pix)
		}
		op := draw.Over
		if f.blend == blendSource {
			op = draw.Src
		}
		draw.Draw(canvas, f.r, m, m.Bounds().Min, op)
		copy(a.Pix.Pix[i*len(canvas.Pix):], canvas.Pix)
		a.Delays = append(a.Delays, f.delay)
		switch {
		case f.dispose == disposePrevious && i > 0:
			canvas.Pix = before
		case f.dispose == disposeClear, f.dispose == disposePrevious:
			draw.Draw(canvas, f.r, image.Transparent, image.Point{}, draw.Src)
		}
	}
	return a, nil
}

// An apng is an animated PNG whose frames are not decoded yet.
type apng struct {
	head, common []byte // IHDR without its size, and the chunks that all frames share
	size         PNG
	frames       []frame
	plays        int
}

// readAPNG reads the chunks of an animated PNG.
func readAPNG(b []byte) (a apng, err error) {
	ended := false
	for kind, chunk := range PNGChunks(b) {
		data := chunk[8 : len(chunk)-4]
		switch kind {
		case "IHDR":
			if a.head != nil || !a.size.readHeader(data) {
				return apng{}, errPNG
			}
			a.head = data[8:]
		case "PLTE", "tRNS":
			a.common = append(a.common, chunk...)
		case "acTL":
			if len(data) == 8 {
				a.plays = int(min(binary.BigEndian.Uint32(data[4:]), 1<<30))
			}
		case "fcTL":
			f, err := readFrame(data)
			if err != nil {
				return apng{}, err
			}
			if !f.r.In(image.Rect(0, 0, a.size.Width, a.size.Height)) {
				return apng{}, errAPNG
			}
			a.frames = append(a.frames, f)
		case "IDAT":
			if n := len(a.frames); n > 0 { // otherwise a still picture that is no frame
				a.frames[n-1].data = append(a.frames[n-1].data, data)
			}
		case "fdAT":
			n := len(a.frames)
			if n == 0 || len(data) < 4 {
				return apng{}, errAPNG
			}
			a.frames[n-1].data = append(a.frames[n-1].data, data[4:])
		case "IEND":
			ended = true
		}
	}
	if !ended || len(a.frames) == 0 || len(a.frames) != PNGFrames(b) {
		return apng{}, fmt.Errorf("%w: frames are missing", errAPNG)
	}
	return a, nil
}

// decode decodes the pixels of a frame as a PNG file of its own.
func (f frame) decode(head, common []byte) (image.Image, error) {
	h := binary.BigEndian.AppendUint32(nil, uint32(f.r.Dx()))
	h = append(binary.BigEndian.AppendUint32(h, uint32(f.r.Dy())), head...)
	out := append(appendChunk([]byte(pngSignature), "IHDR", h), common...)
	out = appendChunk(out, "IDAT", bytes.Join(f.data, nil))
	m, err := png.Decode(bytes.NewReader(appendChunk(out, "IEND", nil)))
	if err == nil && m.Bounds().Size() != f.r.Size() {
		err = errAPNG
	}
	return m, err
}

// EncodeAPNG writes an animated PNG. Each frame but the first has only the
// rectangle that differs from the frame before.
func (a Animation) EncodeAPNG(ctx context.Context) ([]byte, error) {
	be := binary.BigEndian
	width, height := a.Pix.Rect.Dx(), a.Height()
	out := appendHeader(nil, width, height, 8, PNGRGBAlpha)
	out = appendChunk(out, "acTL", be.AppendUint32(be.AppendUint32(nil, uint32(len(a.Delays))), uint32(a.Plays)))
	sequence := uint32(0)
	next := func() []byte {
		b := be.AppendUint32(nil, sequence)
		sequence++
		return b
	}
	size := 4 * width * height
	for i, delay := range a.Delays {
		r := image.Rect(0, 0, width, height)
		if i > 0 {
			r = changed(a.Pix.Pix[(i-1)*size:][:size], a.Pix.Pix[i*size:][:size], width)
		}
		data, err := a.pixels(ctx, i, r)
		if err != nil {
			return nil, err
		}
		control := next()
		for _, v := range []int{r.Dx(), r.Dy(), r.Min.X, r.Min.Y} {
			control = be.AppendUint32(control, uint32(v))
		}
		control = be.AppendUint16(be.AppendUint16(control, uint16(min(delay, 65535))), 1000)
		out = appendChunk(out, "fcTL", append(control, disposeNone, blendSource))
		if i == 0 {
			out = appendChunk(out, "IDAT", data)
		} else {
			out = appendChunk(out, "fdAT", append(next(), data...))
		}
	}
	return appendChunk(out, "IEND", nil), nil
}

// pixels returns the compressed pixels of a rectangle of frame i.
func (a Animation) pixels(ctx context.Context, i int, r image.Rectangle) ([]byte, error) {
	pix := make([]byte, 0, 4*r.Dx()*r.Dy())
	for y := r.Min.Y; y < r.Max.Y; y++ {
		at := a.Pix.PixOffset(r.Min.X, i*a.Height()+y)
		pix = append(pix, a.Pix.Pix[at:][:4*r.Dx()]...)
	}
	b, err := EncodePNG(ctx, raster.Samples{Width: r.Dx(), Height: r.Dy(), Components: 4, Pix: pix}, nil, nil)
	if err != nil {
		return nil, err
	}
	var data []byte
	for kind, chunk := range PNGChunks(b) {
		if kind == "IDAT" {
			data = append(data, chunk[8:len(chunk)-4]...)
		}
	}
	return data, nil
}

// changed returns the rectangle in which two pictures of a width differ. It is
// never empty.
func changed(a, b []byte, width int) image.Rectangle {
	var r image.Rectangle
	stride := 4 * width
	for y := 0; y*stride < len(a); y++ {
		p, q := a[y*stride:][:stride], b[y*stride:][:stride]
		if bytes.Equal(p, q) {
			continue
		}
		left, right := 0, width
		for bytes.Equal(p[4*left:4*left+4], q[4*left:4*left+4]) {
			left++
		}
		for bytes.Equal(p[4*right-4:4*right], q[4*right-4:4*right]) {
			right--
		}
		r = r.Union(image.Rect(left, y, right, y+1))
	}
	if r.Empty() {
		return image.Rect(0, 0, 1, 1)
	}
	return r
}
