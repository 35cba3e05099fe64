package ssimulacra_test

import (
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/ssimulacra"
	"github.com/filewright/filewright/internal/systest"
)

var dump = flag.String("dump", "", "write the pictures of TestReference to this directory")

// scene returns a picture with soft and sharp structures in all colours.
func scene(w, h int) raster.Samples {
	s := raster.Samples{Width: w, Height: h, Components: 3, Pix: make([]byte, 3*w*h)}
	seed := uint32(7)
	for y := range h {
		for x := range w {
			seed = seed*1664525 + 1013904223
			n := int(seed>>24)%16 - 8
			hill := (x*x/37 + y*y/53 + x*y/91) % 256
			box := 0
			if (x/29+y/23)%3 == 0 {
				box = 70
			}
			for c, v := range []int{hill/2 + box + n + 40, 200 - hill/3 - box + n, (hill+x)%200 + n + 20} {
				s.Pix[3*(y*w+x)+c] = uint8(min(255, max(0, v)))
			}
		}
	}
	return s
}

// changes are kinds of damage, each computed with integers.
var changes = map[string]func(s raster.Samples) raster.Samples{
	"equal": func(s raster.Samples) raster.Samples { return s },
	"noise": func(s raster.Samples) raster.Samples {
		seed := uint32(99)
		return each(s, func(_, _, _ int, v int) int {
			seed = seed*1664525 + 1013904223
			return v + int(seed>>24)%13 - 6
		})
	},
	"posterized": func(s raster.Samples) raster.Samples {
		return each(s, func(_, _, _ int, v int) int { return v/24*24 + 12 })
	},
	"blurred": func(s raster.Samples) raster.Samples {
		return each(s, func(x, y, c int, _ int) int {
			sum := 0
			for j := -1; j <= 1; j++ {
				for i := -1; i <= 1; i++ {
					sum += int(s.Pix[3*(min(s.Height-1, max(0, y+j))*s.Width+min(s.Width-1, max(0, x+i)))+c])
				}
			}
			return sum / 9
		})
	},
	"blocks": func(s raster.Samples) raster.Samples {
		return each(s, func(x, y, c int, v int) int {
			return (3*v + int(s.Pix[3*(y/8*8*s.Width+x/8*8)+c])) / 4
		})
	},
	"tinted": func(s raster.Samples) raster.Samples {
		return each(s, func(_, _, c int, v int) int { return v + 6*(c-1) })
	},
}

func each(s raster.Samples, f func(x, y, c int, v int) int) raster.Samples {
	out := s
	out.Pix = make([]byte, len(s.Pix))
	for i, v := range s.Pix {
		out.Pix[i] = uint8(min(255, max(0, f(i/3%s.Width, i/3/s.Width, i%3, int(v)))))
	}
	return out
}

func gray(s raster.Samples) raster.Samples {
	g := raster.Samples{Width: s.Width, Height: s.Height, Components: 1, Pix: make([]byte, s.Width*s.Height)}
	for i := range g.Pix {
		g.Pix[i] = s.Pix[3*i+1]
	}
	return g
}

// TestReference compares scores with those of the author's program, version 2.1
// (github.com/cloudinary/ssimulacra2, commit 81feacf), for the same pictures. Run
// it with -dump to write them. The tolerance is for its faster, less exact arithmetic.
func TestReference(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		w, h   int
		change string
		gray   bool
		want   float64
	}{
		{160, 120, "equal", false, 100.00000},
		{160, 120, "noise", false, 82.68998},
		{160, 120, "posterized", false, 59.32034},
		{160, 120, "blurred", false, 56.66982},
		{160, 120, "blocks", false, 18.80632},
		{160, 120, "tinted", false, 82.78443},
		{161, 127, "noise", false, 81.33402},
		{113, 129, "blocks", false, 20.06709},
		{200, 150, "posterized", false, 60.88655},
		{256, 256, "blurred", false, 45.18255},
		{128, 300, "noise", true, 83.70538},
		{160, 120, "blurred", true, 65.30488},
	} {
		name := fmt.Sprintf("%dx%d-%s", tt.w, tt.h, tt.change)
		if tt.gray {
			name += "-gray"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := scene(tt.w, tt.h)
			b := changes[tt.change](a)
			if tt.gray {
				a, b = gray(a), gray(b)
			}
			if *dump != "" {
				write(t, filepath.Join(*dump, name+".a.png"), a)
				write(t, filepath.Join(*dump, name+".b.png"), b)
			}
			got, err := ssimulacra.Score(a, b)
			systest.NoError(t, err)
			if math.Abs(got-tt.want) > 0.05 {
				t.Errorf("score %.5f, want %.5f", got, tt.want)
			}
		})
	}
}

func write(t *testing.T, path string, s raster.Samples) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, s.Width, s.Height))
	for i := range s.Width * s.Height {
		p := s.Pix[i*s.Components:][:s.Components]
		c := color.RGBA{p[0], p[0], p[0], 255}
		if s.Components == 3 {
			c.G, c.B = p[1], p[2]
		}
		m.SetRGBA(i%s.Width, i/s.Width, c)
	}
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(png.Encode(f, m), f.Close())
	}
	systest.NoError(t, err)
}

// Several crops count as one picture: the crops of a picture have about the score of
// the whole, and not a higher one. The score of two pictures is between theirs.
func TestCrops(t *testing.T) {
	t.Parallel()
	const size, part = 256, 128
	quarters := func(s raster.Samples) (out []raster.Samples) {
		for i := range 4 {
			c := raster.Samples{Width: part, Height: part, Components: 3}
			for y := range part {
				c.Pix = append(c.Pix, s.Pix[3*((i/2*part+y)*size+i%2*part):][:3*part]...)
			}
			out = append(out, c)
		}
		return out
	}
	a := scene(size, size)
	ref, err := ssimulacra.NewReference(quarters(a)...)
	systest.NoError(t, err)
	score := func(crops []raster.Samples) float64 {
		s, err := ref.Score(crops...)
		systest.NoError(t, err)
		return s
	}
	for name, change := range changes {
		b := change(a)
		whole, err := ssimulacra.Score(a, b)
		systest.NoError(t, err)
		if got := score(quarters(b)); got > whole+0.1 || got < whole-(100-whole)/6 {
			t.Errorf("%s: quarters %.2f, whole %.2f", name, got, whole)
		}
	}
	b, c := quarters(changes["noise"](a)), quarters(changes["blurred"](a))
	if mixed := score(append(b[:2:2], c[2:]...)); !(mixed < score(b) && mixed > score(c)) {
		t.Errorf("mixed %v, want between %v and %v", mixed, score(b), score(c))
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	small := scene(64, 7)
	if _, err := ssimulacra.NewReference(small); !errors.Is(err, ssimulacra.ErrTooSmall) {
		t.Errorf("7 pixels high: %v", err)
	}
	if _, err := ssimulacra.NewReference(); !errors.Is(err, ssimulacra.ErrTooSmall) {
		t.Errorf("no crops: %v", err)
	}
	a := scene(16, 16)
	ref, err := ssimulacra.NewReference(a)
	systest.NoError(t, err)
	for name, crops := range map[string][]raster.Samples{
		"no crops": nil, "other size": {scene(16, 17)}, "ink": {{Width: 16, Height: 16, Components: 4, Pix: make([]byte, 1024)}},
		"short": {{Width: 16, Height: 16, Components: 3, Pix: make([]byte, 3)}},
	} {
		if _, err := ref.Score(crops...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkScore(b *testing.B) {
	a := scene(512, 512)
	ref, err := ssimulacra.NewReference(a)
	systest.NoError(b, err)
	c := changes["noise"](a)
	b.SetBytes(512 * 512)
	for b.Loop() {
		if _, err := ref.Score(c); err != nil {
			b.Fatal(err)
		}
	}
}
