package imageops_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/tiff"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
	"github.com/filewright/filewright/internal/ssimulacra"
	"github.com/filewright/filewright/internal/systest"
)

// ssim returns the mean structural similarity of two pictures (Wang, Bovik,
// Sheikh, Simoncelli: Image quality assessment, 2004) with the usual constants,
// in disjoint blocks of 8 × 8 pixels. It compares 8-bit gray (ITU-R BT.601, as
// image/color computes it) on a backdrop. It is independent of the package's
// implementation, and decodes with the vips program.
func ssim(a, b image.Image, backdrop color.Color) float64 {
	if a.Bounds().Size() != b.Bounds().Size() {
		return 0
	}
	gray := func(m image.Image) *image.Gray {
		flat := image.NewRGBA64(m.Bounds())
		draw.Draw(flat, flat.Rect, image.NewUniform(backdrop), image.Point{}, draw.Src)
		draw.Draw(flat, flat.Rect, m, m.Bounds().Min, draw.Over)
		g := image.NewGray(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
		draw.Draw(g, g.Rect, flat, flat.Rect.Min, draw.Src)
		return g
	}
	x, y := gray(a), gray(b)
	var sum, blocks float64
	for top := 0; top < x.Rect.Dy(); top += 8 {
		for left := 0; left < x.Rect.Dx(); left += 8 {
			r := image.Rect(left, top, left+8, top+8).Intersect(x.Rect)
			var p, q []float64
			for j := r.Min.Y; j < r.Max.Y; j++ {
				for i := r.Min.X; i < r.Max.X; i++ {
					p, q = append(p, float64(x.GrayAt(i, j).Y)), append(q, float64(y.GrayAt(i, j).Y))
				}
			}
			mean := func(v []float64) (m float64) {
				for _, f := range v {
					m += f / float64(len(v))
				}
				return m
			}
			mp, mq := mean(p), mean(q)
			var vp, vq, cov float64
			for i := range p {
				vp += (p[i] - mp) * (p[i] - mp) / float64(len(p))
				vq += (q[i] - mq) * (q[i] - mq) / float64(len(p))
				cov += (p[i] - mp) * (q[i] - mq) / float64(len(p))
			}
			c1, c2 := 0.01*255*0.01*255, 0.03*255*0.03*255
			sum += (2*mp*mq + c1) * (2*cov + c2) / ((mp*mp + mq*mq + c1) * (vp + vq + c2))
			blocks++
		}
	}
	return sum / blocks
}

// Typical kinds of pictures.

func screenshot() image.Image {
	m := image.NewRGBA(image.Rect(0, 0, 320, 240))
	fill := func(r image.Rectangle, c color.Color) { draw.Draw(m, r, image.NewUniform(c), image.Point{}, draw.Src) }
	fill(m.Rect, color.RGBA{245, 246, 248, 255})
	fill(image.Rect(0, 0, 320, 24), color.RGBA{38, 70, 120, 255})
	fill(image.Rect(8, 32, 90, 232), color.RGBA{255, 255, 255, 255})
	for i := range 14 {
		text(m, 98, 44+14*i, fmt.Sprintf("Line %d: the quick brown fox %d", i, i*i), color.RGBA{20, 20, uint8(20 + 10*i), 255})
	}
	text(m, 10, 16, "File  Edit  View  Help", color.White)
	return m
}

func text(m draw.Image, x, y int, s string, c color.Color) {
	d := font.Drawer{Dst: m, Src: image.NewUniform(c), Face: basicfont.Face7x13, Dot: fixed.P(x, y)}
	d.DrawString(s)
}

func gradient() image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, 192, 192))
	for y := range 192 {
		for x := range 192 {
			a := 255 - math.Hypot(float64(x-128), float64(y-96))*1.9
			m.SetNRGBA(x, y, color.NRGBA{uint8(x), uint8(y), uint8(255 - x), uint8(max(0, a))})
		}
	}
	return m
}

func noise() image.Image {
	m := image.NewRGBA(image.Rect(0, 0, 160, 120))
	seed := uint32(3)
	for i := range m.Pix {
		seed = seed*1664525 + 1013904223
		m.Pix[i] = uint8(seed >> 24)
		if i%4 == 3 {
			m.Pix[i] = 255
		}
	}
	return m
}

func lineArt() image.Image {
	m := image.NewGray(image.Rect(0, 0, 300, 200))
	draw.Draw(m, m.Rect, image.White, image.Point{}, draw.Src)
	for k := range 12 {
		for t := 0.0; t < 2*math.Pi; t += 0.002 {
			r := 20 + 6*float64(k) + 10*math.Sin(float64(k+2)*t)
			m.SetGray(150+int(1.4*r*math.Cos(t)), 100+int(r*math.Sin(t)), color.Gray{uint8(k * 6)})
		}
	}
	return m
}

func icon() image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, 33, 31))
	for y := range 31 {
		for x := range 33 {
			if math.Hypot(float64(x-16), float64(y-15)) < 13 {
				m.SetNRGBA(x, y, color.NRGBA{230, uint8(60 + 3*x), 40, 255})
			}
		}
	}
	text(m, 9, 20, "Fw", color.White)
	return m
}

// noisyPhoto returns a picture like a camera's in poor light.
func noisyPhoto() image.Image {
	m := photo(176, 120)
	seed := uint32(99)
	for i := range m.Pix {
		seed = seed*1664525 + 1013904223
		if i%4 != 3 {
			m.Pix[i] = uint8(min(255, max(0, int(m.Pix[i])+int(seed>>24)%41-20)))
		}
	}
	return m
}

var kinds = map[string]func() image.Image{
	"photo": func() image.Image { return photo(176, 120) }, "noisy photo": noisyPhoto, "screenshot": screenshot,
	"gradient with alpha": gradient, "noise": noise, "line art": lineArt, "icon": icon,
}

// original returns a picture in a format, encoded without care for its size.
func original(t testing.TB, f format.Format, m image.Image) *fileops.File {
	t.Helper()
	switch f {
	case format.JPG:
		flat := image.NewRGBA(m.Bounds())
		draw.Draw(flat, flat.Rect, image.White, image.Point{}, draw.Src)
		draw.Draw(flat, flat.Rect, m, m.Bounds().Min, draw.Over)
		return jpegFile(t, "in.jpg", flat, 96)
	case format.BMP:
		var b bytes.Buffer
		flat := image.NewRGBA(m.Bounds())
		draw.Draw(flat, flat.Rect, image.White, image.Point{}, draw.Src)
		draw.Draw(flat, flat.Rect, m, m.Bounds().Min, draw.Over)
		systest.NoError(t, bmp.Encode(&b, flat))
		return fileops.Bytes("in.bmp", b.Bytes())
	case format.PNG:
		return fileops.Bytes("in.png", encodePNG(t, m))
	}
	args := fileops.Args{"convert_to": string(f)}
	switch f {
	case format.WebP, format.AVIF, format.JXL, format.JP2, format.HEIC:
		args["quality"] = 96
	}
	return one(t, engine(t).Convert(), args, fileops.Bytes("in.png", encodePNG(t, m)))
}

// looked decodes a picture with a Go library if one exists, which is faster than
// a program, and otherwise with vips.
func looked(t testing.TB, f *fileops.File) image.Image {
	t.Helper()
	var m image.Image
	var err error
	r := bytes.NewReader(content(t, f))
	switch f.Format() {
	case format.JPG, format.PNG, format.GIF:
		m, _, err = image.Decode(r)
	case format.BMP:
		m, err = bmp.Decode(r)
	case format.TIFF:
		if m, err = tiff.Decode(r); err != nil {
			return decoded(t, f) // JPEG inside
		}
	default:
		return decoded(t, f)
	}
	systest.NoError(t, err)
	return m
}

// score returns the score of SSIMULACRA 2 of an opaque picture.
func score(t testing.TB, before, after image.Image) float64 {
	t.Helper()
	samples := func(m image.Image) raster.Samples {
		flat := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
		draw.Draw(flat, flat.Rect, m, m.Bounds().Min, draw.Src)
		s, err := imagefile.FromImage(flat)
		systest.NoError(t, err)
		return s
	}
	s, err := ssimulacra.Score(samples(before), samples(after))
	systest.NoError(t, err)
	return s
}

func opaque(m image.Image) bool {
	o, ok := m.(interface{ Opaque() bool })
	return ok && o.Opaque()
}

// TestCompressBounds checks the guarantee of [imageops.Engine.Compress] for
// every format and level, on seven kinds of pictures. With -short it uses the
// kinds at the two ends: a photo and an icon.
func TestCompressBounds(t *testing.T) {
	t.Parallel()
	spec := engine(t).Compress().Spec()
	for _, f := range spec.Accepts[0].Formats {
		if f == format.SVG {
			continue // see TestCompressDrawing
		}
		for kind, draw := range kinds {
			if slices.Contains([]format.Format{format.AVIF, format.HEIC, format.JXL}, f) && (kind == "noise" || kind == "line art" || kind == "photo") {
				continue // slow, and similar to others
			}
			if testing.Short() && kind != "noisy photo" && kind != "icon" {
				continue
			}
			t.Run(string(f)+"/"+kind, func(t *testing.T) {
				t.Parallel()
				in := original(t, f, draw())
				looked := looked
				if f == format.JPG {
					looked = decoded // image/jpeg does not smooth colours
				}
				before := looked(t, in)
				scored := slices.Contains([]format.Format{format.JPG, format.WebP, format.AVIF, format.HEIC, format.JXL}, f) && opaque(before)
				bounds := map[string]float64{"less_compression": 0.99, "recommended_compression": 0.95, "extreme_compression": 0.90}
				if scored {
					bounds = map[string]float64{"less_compression": 80, "recommended_compression": 70, "extreme_compression": 55}
				}
				for level, bound := range bounds {
					out := one(t, engine(t).Compress(), fileops.Args{"compression_value": level}, in)
					if out.Size() > in.Size() {
						t.Errorf("%s: %d bytes became %d", level, in.Size(), out.Size())
					}
					after := looked(t, out)
					var s float64
					if scored {
						s = score(t, before, after)
					} else {
						s = min(ssim(before, after, color.White), ssim(before, after, color.Black))
					}
					if s < bound {
						t.Errorf("%s: similarity %.4f, want at least %.2f", level, s, bound)
					}
					t.Logf("%s %s %s: %.1f %%, similarity %.4f", f, kind, strings.TrimSuffix(level, "_compression"), 100*float64(out.Size())/float64(in.Size()), s)
				}
			})
		}
	}
	if !slices.Contains(spec.Accepts[0].Formats, format.JPG) {
		t.Error("jpg cannot be compressed")
	}
}
