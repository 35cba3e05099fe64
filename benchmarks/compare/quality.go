package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

var ssimLine = regexp.MustCompile(`All:([0-9.]+)`)

// ssim returns the structural similarity of two pictures, as ffmpeg computes it.
func ssim(ctx context.Context, a, b string) (float64, error) {
	out, err := exec.CommandContext(ctx, "ffmpeg", "-nostdin", "-hide_banner", "-i", a, "-i", b,
		"-lavfi", "[0]format=yuv444p[a];[1]format=yuv444p[b];[a][b]ssim", "-f", "null", "-").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("ffmpeg: %w\n%s", err, out)
	}
	m := ssimLine.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("ffmpeg does not tell a similarity: %s", out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

func imageQuality(ctx context.Context, in, dir string) (float64, error) {
	made, err := only(dir)
	if err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	// libvips decodes both, so that no difference between decoders counts.
	for to, from := range map[string]string{"a.png": in, "b.png": made} {
		if out, err := exec.CommandContext(ctx, "vips", "copy", from, filepath.Join(tmp, to)).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("vips: %w\n%s", err, out)
		}
	}
	return ssim(ctx, filepath.Join(tmp, "a.png"), filepath.Join(tmp, "b.png"))
}

// pdfQuality compares the first pages at 100 dpi.
func pdfQuality(ctx context.Context, in, dir string) (float64, error) {
	made, err := only(dir)
	if err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	for to, from := range map[string]string{"a": in, "b": made} {
		if out, err := exec.CommandContext(ctx, "pdftoppm", "-r", "100", "-singlefile", from, filepath.Join(tmp, to)).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("pdftoppm: %w\n%s", err, out)
		}
	}
	return ssim(ctx, filepath.Join(tmp, "a.ppm"), filepath.Join(tmp, "b.ppm"))
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
