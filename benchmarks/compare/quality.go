//go:build linux

package main

import (
	"context"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/ssimulacra"
)

var ssimLine = regexp.MustCompile(`All:([0-9.]+)`)

// ssim returns the structural similarity of two images, computed by ffmpeg.
func ssim(ctx context.Context, a, b string) (float64, error) {
	out, err := exec.CommandContext(ctx, "ffmpeg", "-nostdin", "-hide_banner", "-i", a, "-i", b,
		"-lavfi", "[0]format=yuv444p[a];[1]format=yuv444p[b];[a][b]ssim", "-f", "null", "-").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("ffmpeg: %w\n%s", err, out)
	}
	m := ssimLine.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("ffmpeg reports no similarity: %s", out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// imageQuality compares images. libvips decodes both, so that differences between decoders do not
// count.
func imageQuality(ctx context.Context, in, dir string) (float64, error) {
	return quality(ctx, in, dir, ".png", "vips", "copy")
}

// perceptualQuality is the score of SSIMULACRA 2 of a picture without transparency.
func perceptualQuality(ctx context.Context, in, dir string) (score float64, err error) {
	err = rendered(ctx, in, dir, ".png", []string{"vips", "copy"}, func(a, b string) error {
		original, err := readPNG(a)
		if err != nil {
			return err
		}
		changed, err := readPNG(b)
		if err != nil {
			return err
		}
		score, err = ssimulacra.Score(original, changed)
		return err
	})
	return score, err
}

// readPNG reads a PNG as RGB.
func readPNG(path string) (raster.Samples, error) {
	f, err := os.Open(path)
	if err != nil {
		return raster.Samples{}, err
	}
	defer f.Close()
	m, err := png.Decode(f)
	if err != nil {
		return raster.Samples{}, err
	}
	b := m.Bounds()
	s := raster.Samples{Width: b.Dx(), Height: b.Dy(), Components: 3}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			red, green, blue, _ := m.At(x, y).RGBA()
			s.Pix = append(s.Pix, byte(red>>8), byte(green>>8), byte(blue>>8))
		}
	}
	return s, nil
}

// pdfQuality compares the first pages at 100 dpi. pdftoppm adds the file extension itself.
func pdfQuality(ctx context.Context, in, dir string) (float64, error) {
	return quality(ctx, in, dir, "", "pdftoppm", "-r", "100", "-singlefile")
}

// quality compares the images that a program renders, see [rendered].
func quality(ctx context.Context, in, dir, ext string, program ...string) (alike float64, err error) {
	err = rendered(ctx, in, dir, ext, program, func(a, b string) (err error) {
		alike, err = ssim(ctx, a, b)
		return err
	})
	return alike, err
}

// rendered calls f with the images that a program renders from in and from the only file in dir. The
// last arguments of the program are the file and the name of the image.
func rendered(ctx context.Context, in, dir, ext string, program []string, f func(a, b string) error) error {
	made, err := only(dir)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for to, from := range map[string]string{"a": in, "b": made} {
		args := slices.Concat(program[1:], []string{from, filepath.Join(tmp, to+ext)})
		if out, err := exec.CommandContext(ctx, program[0], args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", program[0], err, out)
		}
	}
	pictures, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil {
		return err
	}
	if len(pictures) != 2 {
		return fmt.Errorf("%s made %d pictures", program[0], len(pictures))
	}
	return f(pictures[0], pictures[1])
}

// only returns the only file in dir.
func only(dir string) (string, error) {
	made, err := filepath.Glob(filepath.Join(dir, "*"))
	if err == nil && len(made) != 1 {
		err = fmt.Errorf("%d results instead of one", len(made))
	}
	if err != nil {
		return "", err
	}
	return made[0], nil
}
