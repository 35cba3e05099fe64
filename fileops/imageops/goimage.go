//go:build !cgo

package imageops

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"io"
	"slices"
)

// quantise reduces m to a palette by median cut (Heckbert, 1982) in a
// histogram of 5 bits per channel.
func quantise(m image.Image, colours int, dither bool) *image.Paletted {
	b := m.Bounds()
	src := image.NewNRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(src, src.Rect, m, b.Min, draw.Src)
	type cell struct {
		n   int
		sum [3]int
	}
	hist := make(map[uint16]*cell)
	transparent := false
	for i := 0; i < len(src.Pix); i += 4 {
		p := src.Pix[i : i+4]
		if p[3] < 128 {
			transparent = true
			p[0], p[1], p[2], p[3] = 0, 0, 0, 0
			continue
		}
		p[3] = 255
		key := uint16(p[0])>>3<<10 | uint16(p[1])>>3<<5 | uint16(p[2])>>3
		c := hist[key]
		if c == nil {
			c = new(cell)
			hist[key] = c
		}
		c.n++
		for k := range 3 {
			c.sum[k] += int(p[k])
		}
	}
	type point struct {
		v [3]int
		n int
	}
	var all []point
	for _, c := range hist {
		all = append(all, point{[3]int{c.sum[0] / c.n, c.sum[1] / c.n, c.sum[2] / c.n}, c.n})
	}
	slices.SortFunc(all, func(a, b point) int { return slices.Compare(a.v[:], b.v[:]) })
	boxes := [][]point{all}
	if transparent {
		colours--
	}
	spread := func(ps []point) (axis, width int) {
		for k := range 3 {
			lo, hi := 255, 0
			for _, p := range ps {
				lo, hi = min(lo, p.v[k]), max(hi, p.v[k])
			}
			if hi-lo > width {
				axis, width = k, hi-lo
			}
		}
		return axis, width
	}
	for len(all) > 0 && len(boxes) < colours {
		best, score := -1, 0
		for i, ps := range boxes {
			n := 0
			for _, p := range ps {
				n += p.n
			}
			if _, w := spread(ps); len(ps) > 1 && w*n > score {
				best, score = i, w*n
			}
		}
		if best < 0 {
			break
		}
		ps := boxes[best]
		axis, _ := spread(ps)
		slices.SortFunc(ps, func(a, b point) int { return a.v[axis] - b.v[axis] })
		total, half, cut := 0, 0, 1
		for _, p := range ps {
			total += p.n
		}
		for i, p := range ps[:len(ps)-1] {
			if half += p.n; 2*half >= total {
				cut = i + 1
				break
			}
			cut = i + 1
		}
		boxes[best] = ps[:cut]
		boxes = append(boxes, ps[cut:])
	}
	var pal color.Palette
	if transparent {
		pal = append(pal, color.NRGBA{})
	}
	for _, ps := range boxes {
		var sum [3]int
		n := 0
		for _, p := range ps {
			for k := range 3 {
				sum[k] += p.v[k] * p.n
			}
			n += p.n
		}
		if n > 0 {
			pal = append(pal, color.NRGBA{byte(sum[0] / n), byte(sum[1] / n), byte(sum[2] / n), 255})
		}
	}
	out := image.NewPaletted(src.Rect, pal)
	var d draw.Drawer = draw.Src
	if dither {
		d = draw.FloydSteinberg
	}
	d.Draw(out, out.Rect, src, image.Point{})
	return out
}

// jpegOrientation returns the orientation noted in the EXIF data of a JPEG, 1 if
// there is none (Exif 2.32, 4.5.2 and 4.6.2).
func jpegOrientation(b []byte) int {
	for seg := range jpegSegments(b, 0xe1) {
		if len(seg) < 14 || string(seg[:6]) != "Exif\x00\x00" {
			continue
		}
		t := seg[6:]
		var order binary.ByteOrder = binary.LittleEndian
		if t[0] == 'M' {
			order = binary.BigEndian
		}
		at := int64(order.Uint32(t[4:]))
		if at+2 > int64(len(t)) {
			return 1
		}
		for i := range int64(order.Uint16(t[at:])) {
			e := at + 2 + 12*i
			if e+12 > int64(len(t)) {
				break
			}
			if order.Uint16(t[e:]) == 274 {
				return int(order.Uint16(t[e+8:]))
			}
		}
	}
	return 1
}

// jpegSegments yields the content of the marker segments of one kind that come
// before the first scan.
func jpegSegments(b []byte, kind byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := 2; i+4 <= len(b) && b[i] == 0xff; {
			n := int(b[i+2])<<8 | int(b[i+3])
			if b[i+1] == 0xda || n < 2 || i+2+n > len(b) {
				return
			}
			if b[i+1] == kind && !yield(b[i+4:i+2+n]) {
				return
			}
			i += 2 + n
		}
	}
}

const iccMark = "ICC_PROFILE\x00"

// jpegProfile joins the colour profile of a JPEG (ICC.1:2022, B.4).
func jpegProfile(b []byte) []byte {
	var parts [256][]byte
	for seg := range jpegSegments(b, 0xe2) {
		if len(seg) > 14 && string(seg[:12]) == iccMark {
			parts[seg[12]] = seg[14:]
		}
	}
	return bytes.Join(parts[:], nil)
}

func withJPEGProfile(b, profile []byte) []byte {
	const size = 65535 - 2 - 14
	chunks := slices.Collect(slices.Chunk(profile, size))
	if len(chunks) > 255 {
		return b
	}
	out := slices.Clone(b[:2])
	for i, c := range chunks {
		n := 2 + 14 + len(c)
		out = append(out, 0xff, 0xe2, byte(n>>8), byte(n))
		out = append(append(out, iccMark...), byte(i+1), byte(len(chunks)))
		out = append(out, c...)
	}
	return append(out, b[2:]...)
}

// maxProfile bounds a colour profile that is stored compressed.
const maxProfile = 16 << 20

func pngProfile(b []byte) []byte {
	for typ, i := range pngChunks(b) {
		if typ == "IDAT" {
			return nil
		}
		if typ != "iCCP" {
			continue
		}
		c := b[i+8 : i+8+int(binary.BigEndian.Uint32(b[i:]))]
		_, c, ok := bytes.Cut(c, []byte{0}) // after its name
		if !ok || len(c) < 2 || c[0] != 0 {
			return nil
		}
		z, err := zlib.NewReader(bytes.NewReader(c[1:]))
		if err != nil {
			return nil
		}
		p, err := io.ReadAll(io.LimitReader(z, maxProfile))
		if err != nil {
			return nil
		}
		return p
	}
	return nil
}

func withPNGProfile(b, profile []byte) []byte {
	chunk := bytes.NewBufferString("iCCPicc\x00\x00")
	z := zlib.NewWriter(chunk)
	if _, err := z.Write(profile); err != nil {
		return b
	}
	if z.Close() != nil {
		return b
	}
	const start = 8 + 12 + 13
	be := binary.BigEndian
	out := slices.Clone(b[:start])
	out = be.AppendUint32(out, uint32(chunk.Len()-4))
	out = append(out, chunk.Bytes()...)
	out = be.AppendUint32(out, crc32.ChecksumIEEE(chunk.Bytes()))
	return append(out, b[start:]...)
}

// rgbProfile tells whether a profile is one for RGB (ICC.1:2022, 7.2.6).
func rgbProfile(p []byte) bool { return len(p) >= 128 && string(p[16:20]) == "RGB " }
