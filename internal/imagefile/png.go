package imagefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/klauspost/compress/zlib"
)

const (
	pngSignature = "\x89PNG\r\n\x1a\n"
	pngHeader    = len(pngSignature) + 12 + 13 // signature and IHDR

	// maxProfile limits the size of a decompressed colour profile.
	maxProfile = 16 << 20
)

// Colour types of PNG.
const (
	PNGGray      = 0
	PNGRGB       = 2
	PNGPalette   = 3
	PNGGrayAlpha = 4
	PNGRGBAlpha  = 6
)

// A PNG holds the fields of a PNG file's chunks (W3C PNG, third edition).
type PNG struct {
	Width, Height int
	Depth         int // bits per sample
	Colour        int // colour type
	Interlaced    bool
	Palette       []byte // three bytes per colour
	Transparency  []byte // content of tRNS; nil if missing
	Density       Density
	Profile       []byte // ICC profile; nil if missing or damaged
	Data          []byte // all IDAT chunks: one zlib stream
}

var errPNG = errors.New("not a PNG file, or a damaged one")

// ReadPNG reads a PNG file to its end and verifies its checksums.
func ReadPNG(b []byte) (PNG, error) {
	var p PNG
	ended := false
	for kind, chunk := range PNGChunks(b) {
		if crc32.ChecksumIEEE(chunk[4:len(chunk)-4]) != binary.BigEndian.Uint32(chunk[len(chunk)-4:]) {
			return p, fmt.Errorf("%w: checksum of %q", errPNG, kind)
		}
		data := chunk[8 : len(chunk)-4]
		switch kind {
		case "IHDR":
			if !p.readHeader(data) {
				return p, errPNG
			}
		case "PLTE":
			p.Palette = data
		case "tRNS":
			p.Transparency = append([]byte{}, data...)
		case "pHYs":
			if len(data) == 9 && data[8] == 1 { // per metre
				p.Density = Density{perMetre(binary.BigEndian.Uint32(data)), perMetre(binary.BigEndian.Uint32(data[4:]))}
			}
		case "iCCP":
			p.Profile = readICCP(data)
		case "IDAT":
			p.Data = append(p.Data, data...)
		case "IEND":
			ended = true
		}
		if ended {
			break
		}
	}
	if p.Width == 0 || len(p.Data) == 0 || !ended || p.Channels() == 0 {
		return p, errPNG
	}
	if p.Colour == PNGPalette && (len(p.Palette) < 3 || len(p.Palette)%3 != 0) {
		return p, errPNG
	}
	return p, nil
}

func (p *PNG) readHeader(b []byte) bool {
	if len(b) != 13 {
		return false
	}
	w, h := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if w == 0 || h == 0 || w > 1<<30 || h > 1<<30 {
		return false
	}
	p.Width, p.Height = int(w), int(h)
	p.Depth, p.Colour, p.Interlaced = int(b[8]), int(b[9]), b[12] != 0
	return true
}

// perMetre converts pixels per metre to dots per inch. It rounds to a whole
// number of dots if that is within the precision of whole pixels per metre.
func perMetre(n uint32) float64 {
	dpi := float64(n) * 0.0254
	if whole := math.Round(dpi); math.Abs(dpi-whole) <= 0.0254/2 {
		return whole
	}
	return dpi
}

// Channels returns the number of samples per pixel, or 0 for an unknown colour
// type.
func (p PNG) Channels() int {
	switch p.Colour {
	case PNGGray, PNGPalette:
		return 1
	case PNGGrayAlpha:
		return 2
	case PNGRGB:
		return 3
	case PNGRGBAlpha:
		return 4
	}
	return 0
}

// CheckData inflates the pixels of a file that is not interlaced. It returns an
// error if some are missing.
func (p PNG) CheckData() error {
	r, err := zlib.NewReader(bytes.NewReader(p.Data))
	if err != nil {
		return err
	}
	defer r.Close()
	stride := (p.Width*p.Channels()*p.Depth + 7) / 8
	want := int64(stride+1) * int64(p.Height)
	n, err := io.Copy(io.Discard, io.LimitReader(r, want))
	if err == nil && n < want {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// PNGChunks yields the chunks of a PNG file with their types. Each includes its
// length and its checksum, which is not verified.
func PNGChunks(b []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		if !bytes.HasPrefix(b, []byte(pngSignature)) {
			return
		}
		for b := b[len(pngSignature):]; len(b) >= 12; {
			n := int64(binary.BigEndian.Uint32(b)) + 12
			if n > int64(len(b)) || !yield(string(b[4:8]), b[:n]) {
				return
			}
			b = b[n:]
		}
	}
}

// PNGProfile returns the ICC profile of a PNG file, or nil if it is missing or
// damaged.
func PNGProfile(b []byte) []byte {
	for kind, chunk := range PNGChunks(b) {
		switch kind {
		case "IDAT":
			return nil
		case "iCCP":
			return readICCP(chunk[8 : len(chunk)-4])
		}
	}
	return nil
}

// readICCP returns the profile in an iCCP chunk: a name, the compression method,
// and a zlib stream.
func readICCP(b []byte) []byte {
	_, b, ok := bytes.Cut(b, []byte{0})
	if !ok || len(b) < 2 || b[0] != 0 {
		return nil
	}
	z, err := zlib.NewReader(bytes.NewReader(b[1:]))
	if err != nil {
		return nil
	}
	defer z.Close()
	profile, err := io.ReadAll(io.LimitReader(z, maxProfile))
	if err != nil {
		return nil
	}
	return profile
}

// WithPNGProfile inserts an ICC profile into a PNG file.
func WithPNGProfile(b, profile []byte) ([]byte, error) {
	data := bytes.NewBufferString("icc\x00\x00")
	z := zlib.NewWriter(data)
	if _, err := z.Write(profile); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	out := appendChunk(slices.Clone(b[:pngHeader]), "iCCP", data.Bytes())
	return append(out, b[pngHeader:]...), nil
}

// CopyColourChunks copies the chunks that define the meaning of samples (W3C
// PNG, 11.3.2) and the pixel size from one PNG file to another.
func CopyColourChunks(dst, from []byte) []byte {
	out := slices.Clone(dst[:pngHeader])
	for kind, chunk := range PNGChunks(from) {
		switch kind {
		case "iCCP", "sRGB", "gAMA", "cHRM", "cICP", "pHYs":
			out = append(out, chunk...)
		case "IDAT", "PLTE":
			return append(out, dst[pngHeader:]...)
		}
	}
	return append(out, dst[pngHeader:]...)
}

// SplitMetadata returns the chunks of a PNG file other than pixels and palette:
// those before the pixels and those after.
func SplitMetadata(b []byte) (before, after []byte) {
	pixels := false
	for kind, chunk := range PNGChunks(b) {
		switch kind {
		case "IDAT":
			pixels = true
		case "IHDR", "IEND", "PLTE":
		default:
			if pixels {
				after = append(after, chunk...)
			} else {
				before = append(before, chunk...)
			}
		}
	}
	return before, after
}

// WithoutChunk returns a PNG file without the chunks of one type.
func WithoutChunk(b []byte, kind string) []byte {
	out := []byte(pngSignature)
	for k, chunk := range PNGChunks(b) {
		if k != kind {
			out = append(out, chunk...)
		}
	}
	return out
}

func appendChunk(out []byte, kind string, data []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
	start := len(out)
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[start:]))
}

// appendHeader appends the signature and the IHDR chunk of a non-interlaced
// picture.
func appendHeader(out []byte, width, height, depth, colour int) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(width))
	head = binary.BigEndian.AppendUint32(head, uint32(height))
	head = append(head, byte(depth), byte(colour), 0, 0, 0)
	return appendChunk(append(out, pngSignature...), "IHDR", head)
}
