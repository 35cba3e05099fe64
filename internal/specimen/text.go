package specimen

import (
	"fmt"
	"image"
	"image/draw"
	"strings"
	"sync"
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// LetteredText is the text in a picture of [Lettered]: two lines of words that
// are both English and German.
const LetteredText = "Warm Sand\nFinger Ring"

// The picture is as wide as the largest icon that is written here. Its letters
// are about as high as 10-point text scanned at 300 dpi.
const (
	letteredWidth  = 255
	letteredHeight = 120
	letteredSize   = 40 // pixels per em
)

// lettered caches results, like specimens.
var lettered sync.Map // format.Format → func() ([]byte, error)

// Lettered returns a picture of format f with [LetteredText], black on white,
// large enough for text recognition.
func Lettered(t testing.TB, f format.Format) *fileops.File {
	t.Helper()
	made, _ := lettered.LoadOrStore(f, sync.OnceValues(func() ([]byte, error) { return letteredPicture(f) }))
	b, err := made.(func() ([]byte, error))()
	if err != nil {
		t.Fatalf("lettered %s: %v", f, err)
	}
	return fileops.Bytes("lettered."+string(f), b)
}

func letteredPicture(f format.Format) ([]byte, error) {
	if f == format.SVG {
		var b strings.Builder
		fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"><rect width="100%%" height="100%%" fill="#fff"/>`, letteredWidth, letteredHeight)
		for i, l := range strings.Split(LetteredText, "\n") {
			fmt.Fprintf(&b, `<text x="12" y="%d" font-family="sans-serif" font-size="%d">%s</text>`, baseline(i), letteredSize, l)
		}
		b.WriteString(`</svg>`)
		return []byte(b.String()), nil
	}
	m, err := drawLetters()
	if err != nil {
		return nil, err
	}
	return encodePicture(f, m)
}

func baseline(line int) int { return 48 + 50*line }

// drawLetters draws in at most 256 shades of gray.
func drawLetters() (*image.NRGBA, error) {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: letteredSize, DPI: 72})
	if err != nil {
		return nil, err
	}
	defer face.Close()
	m := image.NewNRGBA(image.Rect(0, 0, letteredWidth, letteredHeight))
	draw.Draw(m, m.Rect, image.White, image.Point{}, draw.Src)
	d := font.Drawer{Dst: m, Src: image.Black, Face: face}
	for i, l := range strings.Split(LetteredText, "\n") {
		d.Dot = fixed.P(12, baseline(i))
		d.DrawString(l)
	}
	return m, nil
}
