package imageops

import (
	"encoding/binary"
	"image"
	"image/color"
	"math/bits"

	"github.com/filewright/filewright/internal/imagefile"
)

// repackBMP losslessly encodes a bitmap in the smallest widely supported form: 1, 4
// or 8 bits with an exact palette, or 24 bits. It returns nil if the bitmap has
// transparency or its own colour profile.
func repackBMP(data []byte) ([]byte, error) {
	m, err := decodeBMP(data)
	if err != nil {
		return nil, err
	}
	img, ok := m.img.(*image.NRGBA)
	if !ok || !img.Opaque() || ownColours(data) || fourthByte(data) {
		return nil, nil
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	pal := exactPalette(img)
	depth, colours := 24, 0
	if pal != nil {
		colours = len(pal.Palette)
		for depth = 1; 1<<depth < colours; depth *= 2 {
		}
		if depth == 2 {
			depth = 4
		}
	}
	// BITMAPFILEHEADER and BITMAPINFOHEADER (Windows documentation).
	const fileHeader, infoHeader = 14, 40
	stride := (w*depth + 31) / 32 * 4
	start := fileHeader + infoHeader + 4*colours
	le := binary.LittleEndian
	out := make([]byte, 0, start+stride*h)
	out = append(out, 'B', 'M')
	out = le.AppendUint32(out, uint32(start+stride*h))
	out = le.AppendUint32(out, 0)
	out = le.AppendUint32(out, uint32(start))
	out = le.AppendUint32(out, infoHeader)
	out = le.AppendUint32(out, uint32(w))
	out = le.AppendUint32(out, uint32(h))
	out = le.AppendUint16(out, 1)
	out = le.AppendUint16(out, uint16(depth))
	out = le.AppendUint32(out, biRGB)
	out = le.AppendUint32(out, uint32(stride*h))
	density := make([]byte, 8) // pixels per metre, horizontal and vertical
	if le.Uint32(data[14:]) >= infoHeader && len(data) >= 46 {
		copy(density, data[38:46])
	}
	out = append(out, density...)
	out = le.AppendUint32(out, uint32(colours))
	out = le.AppendUint32(out, 0)
	if pal != nil {
		for _, c := range pal.Palette {
			c := c.(color.NRGBA)
			out = append(out, c.B, c.G, c.R, 0)
		}
	}
	row := make([]byte, stride)
	for y := h - 1; y >= 0; y-- {
		if pal != nil {
			clear(row)
			imagefile.PackRow(row, pal.Pix[y*pal.Stride:][:w], depth)
		} else {
			for x := range w {
				p := img.Pix[y*img.Stride+4*x:]
				row[3*x], row[3*x+1], row[3*x+2] = p[2], p[1], p[0]
			}
		}
		out = append(out, row...)
	}
	return out, nil
}

// fourthByte reports whether the fourth byte of 32-bit pixels is used. Some programs
// interpret it as transparency even if the header does not declare it.
func fourthByte(data []byte) bool {
	h, err := parseDIB(data[14:])
	if err != nil || h.bits != 32 {
		return false
	}
	at := min(int64(binary.LittleEndian.Uint32(data[10:])), int64(len(data)))
	m, err := decodeDIB(h, data[14:], data[at:], true)
	if err != nil || m.Opaque() {
		return false
	}
	for i := 3; i < len(m.Pix); i += 4 {
		if m.Pix[i] != 0 {
			return true
		}
	}
	return false
}

// ownColours reports whether a bitmap defines its colours by end points or a
// profile (BITMAPV4HEADER, bV4CSType), not as sRGB.
func ownColours(data []byte) bool {
	if len(data) < 14+60 || binary.LittleEndian.Uint32(data[14:]) < 108 {
		return false
	}
	space := bits.ReverseBytes32(binary.LittleEndian.Uint32(data[14+56:]))
	tag := string(binary.BigEndian.AppendUint32(nil, space))
	return tag != "BGRs" && tag != " niW" // "sRGB" and "Win ", stored as numbers
}
