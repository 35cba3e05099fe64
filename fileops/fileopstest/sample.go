package fileopstest

import (
	"image"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
)

// Text is a sentence that every document made by [Sample] contains.
const Text = specimen.Text

// Picture returns a small picture with flat areas, a gradient and sharp edges:
// w by h pixels, opaque.
func Picture(w, h int) *image.RGBA { return specimen.Picture(w, h) }

// Sample returns a small valid file of format f. Most are made by code. Formats
// that need an encoder are made with ffmpeg, vips, soffice, 7z or tar, which must
// be installed then.
func Sample(t testing.TB, f format.Format) *fileops.File { return specimen.Sample(t, f) }
