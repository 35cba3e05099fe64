package ocrops_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	"golang.org/x/image/math/f64"

	programs "github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/ocrops"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

var found = sync.OnceValues(func() (*ocrops.Engine, error) {
	return ocrops.New(context.Background(), ocrops.Options{Sandbox: programs.NewSandbox()})
})

func engine(t testing.TB) *ocrops.Engine {
	t.Helper()
	e, err := found()
	systest.NoError(t, err)
	return e
}

const (
	english = `The history of the harbour begins with a small village at the mouth of the river,
where fishermen dried their nets on the stones. In 1742 the council decided to build
a lighthouse, and eleven years later ships from every northern port came to trade
timber, salt, wool and glass. Captains wrote letters home about the long winters,
the market in front of the church and the island theatre, which opened in spring.
A fire destroyed the paper mill and most of the wooden houses along the quay, but
the merchants rebuilt the street within eighteen months. Today the garden behind
the museum shows an engine, two anchors and the silver bell of the first ferry.`

	german = `Die Bürger der Stadt prüften die Größe der Türme, weil ein schwerer Sturm über
die Dächer gezogen war. Später öffnete der Müller das Wehr, damit das Wasser nicht
über die Straße floß. Im Frühjahr kaufte die Gemeinde zwölf Körbe voll Äpfel und
schickte sie ans Ende des Tals, wo die Mühle früher Öl für viele Häuser lieferte.
Jeder Schüler mußte eine Geschichte über die große Brücke schreiben.`
)

// page returns a page of text, drawn by an external program: A5 at dpi.
func page(t testing.TB, text string, dpi int) *image.Gray {
	t.Helper()
	var content strings.Builder
	for i, l := range strings.Split(text, "\n") {
		fmt.Fprintf(&content, "BT /F1 10 Tf 30 %d Td <%s> Tj ET\n", 540-14*i, latin1(l))
	}
	pdf := tinypdf.File("1.4", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 595]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
		tinypdf.Stream("", content.String()),
		"<</Type/Font/Subtype/Type1/BaseFont/Times-Roman/Encoding/WinAnsiEncoding>>")
	in := filepath.Join(t.TempDir(), "page.pdf")
	systest.NoError(t, os.WriteFile(in, pdf, 0o600))
	out, err := exec.CommandContext(t.Context(), "pdftoppm", "-gray", "-r", fmt.Sprint(dpi), in).Output()
	systest.NoError(t, err)
	var w, h int
	if _, err := fmt.Sscanf(string(out), "P5\n%d %d\n255\n", &w, &h); err != nil {
		t.Fatal(err)
	}
	return &image.Gray{Pix: out[len(out)-w*h:], Stride: w, Rect: image.Rect(0, 0, w, h)}
}

func latin1(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, "%02x", r)
	}
	return b.String()
}

// skewed returns img rotated by the given degrees, on white.
func skewed(img *image.Gray, degrees float64) *image.Gray {
	out := image.NewGray(img.Rect)
	for i := range out.Pix {
		out.Pix[i] = 255
	}
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	cx, cy := float64(img.Rect.Dx())/2, float64(img.Rect.Dy())/2
	m := f64.Aff3{cos, -sin, cx - cos*cx + sin*cy, sin, cos, cy - sin*cx - cos*cy}
	draw.BiLinear.Transform(out, m, img, img.Rect, draw.Src, nil)
	return out
}

// noisy adds noise like that of a bad scanner.
func noisy(img *image.Gray, amount int) *image.Gray {
	out := image.NewGray(img.Rect)
	rng := rand.New(rand.NewPCG(1, 2))
	for i, v := range img.Pix {
		out.Pix[i] = byte(min(max(int(v)+rng.IntN(2*amount+1)-amount, 0), 255))
	}
	return out
}

// quarter returns img turned by 90 degrees clockwise.
func quarter(img *image.Gray) *image.Gray {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	out := image.NewGray(image.Rect(0, 0, h, w))
	for y := range w {
		for x := range h {
			out.Pix[y*out.Stride+x] = img.Pix[(h-1-x)*img.Stride+y]
		}
	}
	return out
}

func encode(t testing.TB, img *image.Gray, to format.Format) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch to {
	case format.PNG:
		err = png.Encode(&b, img)
	case format.JPG:
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 90})
	case format.BMP:
		err = bmp.Encode(&b, img)
	case format.GIF:
		p := image.NewPaletted(img.Rect, palette.WebSafe)
		draw.Draw(p, img.Rect, img, image.Point{}, draw.Src)
		err = gif.Encode(&b, p, nil)
	case format.TIFF:
		return tiff(img, img)
	case format.WebP:
		dir := t.TempDir()
		in, out := filepath.Join(dir, "a.png"), filepath.Join(dir, "a.webp")
		systest.NoError(t, os.WriteFile(in, encode(t, img, format.PNG), 0o600))
		if msg, err := exec.CommandContext(t.Context(), "vips", "copy", in, out).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, msg)
		}
		p := systest.ReadFile(t, out)
		return p
	}
	systest.NoError(t, err)
	return b.Bytes()
}

// tiff returns an uncompressed TIFF file with several pages (TIFF 6.0, section 4).
func tiff(pages ...*image.Gray) []byte {
	b := []byte("II*\x00\x00\x00\x00\x00")
	link := 4
	for _, img := range pages {
		w, h := img.Rect.Dx(), img.Rect.Dy()
		strip := len(b)
		b = append(b, img.Pix...)
		b = append(b, make([]byte, len(b)%2)...)
		binary.LittleEndian.PutUint32(b[link:], uint32(len(b)))
		fields := [][2]uint32{{254, 0}, {256, uint32(w)}, {257, uint32(h)}, {258, 8}, {259, 1}, {262, 1}, {273, uint32(strip)}, {277, 1}, {278, uint32(h)}, {279, uint32(w * h)}}
		b = binary.LittleEndian.AppendUint16(b, uint16(len(fields)))
		for _, f := range fields {
			b = binary.LittleEndian.AppendUint16(b, uint16(f[0]))
			b = binary.LittleEndian.AppendUint16(b, 4) // LONG
			b = binary.LittleEndian.AppendUint32(b, 1)
			b = binary.LittleEndian.AppendUint32(b, f[1])
		}
		link = len(b)
		b = append(b, 0, 0, 0, 0)
	}
	return b
}

func tokens(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// recall returns the fraction of the words of want that are in got.
func recall(want, got string) float64 {
	count := make(map[string]int)
	for _, w := range tokens(got) {
		count[w]++
	}
	hit, all := 0, tokens(want)
	for _, w := range all {
		if count[w] > 0 {
			count[w]--
			hit++
		}
	}
	return float64(hit) / float64(len(all))
}

// textPicture returns text in a font, drawn by an external program at 300 dpi.
func textPicture(t testing.TB, text, font string) *image.Gray {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.png")
	if msg, err := exec.CommandContext(t.Context(), "vips", "text", path, text, "--font", font, "--dpi", "300", "--width", "1600").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	f, err := os.Open(path)
	systest.NoError(t, err)
	defer f.Close()
	m, err := png.Decode(f)
	systest.NoError(t, err)
	const margin = 60
	out := image.NewGray(m.Bounds().Inset(-margin).Sub(m.Bounds().Min).Add(image.Pt(margin, margin)))
	for i := range out.Pix {
		out.Pix[i] = 255
	}
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			level, _, _, _ := m.At(x, y).RGBA() // of the ink
			out.Pix[(y+margin)*out.Stride+x+margin] = 255 - byte(level>>8)
		}
	}
	return out
}

// letterRecall returns the fraction of the letters of want that are in got.
func letterRecall(want, got string) float64 {
	separate := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if unicode.IsLetter(r) {
				b.WriteString(string(r) + " ")
			}
		}
		return b.String()
	}
	return recall(separate(want), separate(got))
}
