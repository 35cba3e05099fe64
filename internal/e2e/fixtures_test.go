//go:build linux

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
)

const markdown = `# Annual report

The quick brown fox jumps over the lazy dog. Äpfel, λόγος, 日本語.

## Figures

| fruit  | count |
|--------|-------|
| apples | 3     |
| pears  | 4     |

- one
- **two**

See [the site](https://example.com/).
`

// The following files are created by other programs.

func docx(t testing.TB) file {
	return makeFile(t, "report.docx", markdown, "pandoc", "-f", "markdown", "-o", "report.docx")
}

func odt(t testing.TB) file {
	return makeFile(t, "report.odt", markdown, "pandoc", "-f", "markdown", "-o", "report.odt")
}

func pptx(t testing.TB) file {
	return makeFile(t, "slides.pptx", "# One\n\nThe quick brown fox\n\n# Two\n\njumps\n", "pandoc", "-f", "markdown", "-o", "slides.pptx")
}

func rtf(t testing.TB) file {
	return makeFile(t, "report.rtf", markdown, "pandoc", "-s", "-f", "markdown", "-o", "report.rtf")
}

func jpg(t testing.TB) file {
	src := sample(t, format.PNG)
	path := src.save(t)
	return makeFile(t, "photo.jpg", "", "vips", "jpegsave", path, "photo.jpg", "--Q", "95")
}

func video(t testing.TB, ext string) file {
	return makeFile(t, "clip."+ext, "", "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=2",
		"-f", "lavfi", "-i", "sine=frequency=440:duration=2", "-shortest", "-pix_fmt", "yuv420p", "clip."+ext)
}

func audio(t testing.TB, ext string) file {
	return makeFile(t, "tone."+ext, "", "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=frequency=440:duration=2", "-ac", "2", "-ar", "48000", "tone."+ext)
}

// pdf returns a document of two pages with an outline and links.
func pdf(t testing.TB) file { f := sample(t, format.PDF); f.name = "paper.pdf"; return f }

// lockedPDF returns pdf with a user password, created by qpdf.
func lockedPDF(t testing.TB, password string) file {
	return makeFile(t, "locked.pdf", "", "qpdf", "--encrypt", password, "owner-"+password, "256", "--", pdf(t).save(t), "locked.pdf")
}

// sample returns a file created by code.
func sample(t testing.TB, f format.Format) file {
	s := fileopstest.Sample(t, f)
	b, _ := s.Bytes()
	return file{filepath.Base(s.Name()), b}
}
