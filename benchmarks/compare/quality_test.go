//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// A file equals itself, and a missing result is an error.
func TestQuality(t *testing.T) {
	t.Parallel()
	write := func(f format.Format, dir string) string {
		b, err := fileopstest.Sample(t, f).ReadAll(1 << 20)
		systest.NoError(t, err)
		path := filepath.Join(dir, "x."+string(f))
		systest.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	for f, quality := range map[format.Format]func(context.Context, string, string) (float64, error){format.PNG: imageQuality, format.PDF: pdfQuality} {
		dir := t.TempDir()
		if q, err := quality(t.Context(), write(f, dir), dir); err != nil || q < 0.9999 {
			t.Errorf("%s: %v, %v", f, q, err)
		}
		if _, err := quality(t.Context(), write(f, t.TempDir()), t.TempDir()); err == nil {
			t.Errorf("%s: there is a quality without a result", f)
		}
	}
}
