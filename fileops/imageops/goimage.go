//go:build !cgo

package imageops

import (
	"image"
	"image/color"
	"image/draw"
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

// rgbProfile reports whether a profile is for RGB (ICC.1:2022, 7.2.6).
func rgbProfile(p []byte) bool { return len(p) >= 128 && string(p[16:20]) == "RGB " }
