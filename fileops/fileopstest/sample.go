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

// Picture returns a small opaque picture of w × h pixels with flat areas, a
// gradient and sharp edges.
func Picture(w, h int) *image.RGBA { return specimen.Picture(w, h) }

// Sample returns a small valid file of format f. Code generates most of them.
// Formats that need an encoder require ffmpeg, vips, soffice, 7z or tar on the
// host.
func Sample(t testing.TB, f format.Format) *fileops.File { return specimen.Sample(t, f) }
