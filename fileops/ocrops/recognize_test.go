package ocrops_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/ocrops"
	"github.com/filewright/filewright/internal/systest"
)

func TestRecognize(t *testing.T) {
	t.Parallel()
	e := engine(t)
	eng := page(t, english, 300)
	for _, tt := range []struct {
		name     string
		img      *image.Gray
		language string
		text     string
		least    float64
		turn     int
	}{
		{"clean", eng, "", english, 0.98, 0},
		{"skewed", skewed(eng, 1.5), "eng", english, 0.97, 0},
		{"noisy", noisy(skewed(eng, -0.7), 60), "eng", english, 0.95, 0},
		{"on its side", quarter(eng), "eng", english, 0.98, 1},
		{"on its head", quarter(quarter(eng)), "eng", english, 0.98, 2},
		{"on its other side", quarter(quarter(quarter(eng))), "eng", english, 0.98, 3},
		{"German", page(t, german, 300), "deu", german, 0.98, 0},
		{"German by both", page(t, german, 300), "deu+eng", german, 0.95, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const dpi = 300
			p, err := e.Recognize(t.Context(), tt.img, dpi, tt.language)
			systest.NoError(t, err)
			var got strings.Builder
			for i, l := range p.Lines {
				for _, w := range l.Words {
					got.WriteString(w.Text + " ")
					if w.Left < 0 || w.Right > float64(p.Width) || w.Bottom <= w.Top || w.Bottom < l.Base-3 || w.Top > l.Base {
						t.Errorf("word %+v on base line %v is not where it can be", w, l.Base)
					}
				}
				if i > 0 && l.Size != p.Lines[0].Size {
					t.Errorf("size %v of line %d, %v of the first", l.Size, i, p.Lines[0].Size)
				}
				// 10 points of Times
				if pt := l.Size / dpi * 72; math.Abs(pt-10) > 0.8 {
					t.Errorf("size %.2f pt", pt)
				}
				if i > 0 {
					if pitch := (l.Base - p.Lines[i-1].Base) / dpi * 72; math.Abs(pitch-14) > 0.7 {
						t.Errorf("line %d is %.2f pt below the one before, want 14", i, pitch)
					}
					if d := (l.Words[0].Left - p.Lines[0].Words[0].Left) / dpi * 72; math.Abs(d) > 1.5 {
						t.Errorf("line %d begins %.2f pt from the margin", i, d)
					}
				}
			}
			if r := recall(tt.text, got.String()); r < tt.least {
				t.Errorf("recall %.3f: %s", r, got.String())
			}
			if p.Turn != tt.turn {
				t.Errorf("turn %d, want %d", p.Turn, tt.turn)
			}
		})
	}
}

// Little text is turned only if it reads better that way.
func TestRecognizeLittleText(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for name, tt := range map[string]struct {
		img  *image.Gray
		turn int
	}{
		"upright":     {page(t, "Total 11 6 90\n6 9 86", 300), 0},
		"upside down": {quarter(quarter(page(t, "The harbour of the town was small when the first\nfishermen dried their nets on the stones of the\nriver bank, and later it grew with the trade.", 300))), 2},
	} {
		p, err := e.Recognize(t.Context(), tt.img, 300, "eng")
		systest.NoError(t, err)
		if p.Turn != tt.turn || len(p.Lines) == 0 {
			t.Errorf("%s: turn %d with %d lines, want %d", name, p.Turn, len(p.Lines), tt.turn)
		}
	}
}

// Tesseract's guess that little text is turned is checked against the text of the
// picture as it is. A script in its place says how sure it is of each.
func TestRecognizeChecksTurn(t *testing.T) {
	t.Parallel()
	img := image.NewGray(image.Rect(0, 0, 60, 40))
	for i := range img.Pix {
		img.Pix[i] = byte(255 * min(i, 1)) // the first pixel is black
	}
	for i := range 20 {
		img.Pix[20*60+20+i] = 0
	}
	const page = `<div class='ocr_page' title='bbox 0 0 60 40'><span class='ocr_line' title='bbox 1 1 50 30; textangle %%s; x_size 20'><span class='ocrx_word' title='bbox 1 1 50 30; x_wconf %%s'>word</span></span></div>`
	for name, tt := range map[string]struct {
		turned, straight, turn int
	}{"right": {90, 30, 2}, "wrong": {30, 90, 0}} {
		path := filepath.Join(t.TempDir(), "tesseract")
		// The first sample follows a header of 13 bytes, "P5 60 40 255\n".
		systest.WriteScript(t, path, fmt.Sprintf(`#!/bin/sh
first=$(od -An -v -tu1 -w1 | sed -n 14p | tr -d ' ')
angle=0 sure=%d
case "$*" in *"--psm 1"*) angle=180;; *) if [ "$first" = 0 ]; then sure=%d; fi;; esac
printf "`+page+`" $angle $sure
`, tt.turned, tt.straight))
		e, err := ocrops.New(t.Context(), ocrops.Options{Probed: fmt.Sprintf(`{"path":%q,"version":"5.3.0","languages":["eng"],"upright":true}`, path)})
		systest.NoError(t, err)
		p, err := e.Recognize(t.Context(), img, 300, "eng")
		systest.NoError(t, err)
		if p.Turn != tt.turn || len(p.Lines) != 1 {
			t.Errorf("a guess that is %s: turn %d with %d lines, want %d", name, p.Turn, len(p.Lines), tt.turn)
		}
	}
}

// The engine finds the script and the language of a text by itself.
func TestDetect(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for _, tt := range []struct{ name, font, text string }{
		{"French", "Noto Serif", "Les habitants de la ville ont toujours aimé le port. Une petite école est ouverte dans la rue qui mène à la forêt."},
		{"Ukrainian", "Noto Serif", "Історія гавані починається з маленького села у гирлі річки, де рибалки сушили сіті на камінні."},
		{"traditional Chinese", "Noto Sans CJK TC", "港口的歷史始於河口的一個小村莊，漁民們在石頭上晾曬漁網。"},
		{"a sign", "Noto Sans", "Выход на улицу"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := e.Recognize(t.Context(), textPicture(t, tt.text, tt.font), 300, "")
			systest.NoError(t, err)
			var got strings.Builder
			words := 0
			for _, l := range p.Lines {
				for _, w := range l.Words {
					got.WriteString(w.Text + " ")
					words++
				}
			}
			if r := letterRecall(tt.text, got.String()); r < 0.9 {
				t.Errorf("recall of letters %.3f: %s", r, got.String())
			}
			if most := len(strings.Fields(tt.text)) + 20; words > most {
				t.Errorf("%d words: the characters are separated: %s", words, got.String())
			}
		})
	}
}

// The size of full-width characters is their pitch.
func TestSizeOfIdeographs(t *testing.T) {
	t.Parallel()
	const size = 12.0 / 72 * 300 // vips' default
	p, err := engine(t).Recognize(t.Context(), textPicture(t, "港口的歷史始於河口的一個小村莊漁民們在石頭上晾曬漁網", "Noto Sans CJK TC"), 300, "chi_tra")
	systest.NoError(t, err)
	if len(p.Lines) == 0 {
		t.Fatal("no line")
	}
	if got := p.Lines[0].Size; math.Abs(got-size) > 0.06*size {
		t.Errorf("size %.1f, want %.1f", got, size)
	}
}

// The setup script installs the languages that the engine recommends.
func TestRecommendedLanguages(t *testing.T) {
	t.Parallel()
	setup := systest.ReadFile(t, "../../scripts/setup.sh")
	bare, err := ocrops.New(t.Context(), ocrops.Options{Probed: `{"path":"/bin/tesseract","version":"5","languages":["eng"]}`})
	systest.NoError(t, err)
	missing := bare.Dependencies()[0].Recommended
	if !slices.Contains(missing, "tesseract-ocr-chi-tra") || !slices.Contains(missing, "tesseract-ocr-osd") || slices.Contains(missing, "tesseract-ocr-eng") {
		t.Errorf("recommended: %v", missing)
	}
	for _, p := range missing {
		if name := strings.TrimPrefix(p, "tesseract-ocr-"); !regexp.MustCompile(`\b` + name + `\b`).Match(setup) {
			t.Errorf("scripts/setup.sh does not install %s", p)
		}
	}
	if full := engine(t).Dependencies()[0].Recommended; len(full) > 0 {
		t.Errorf("this host lacks %v", full)
	}
}

func TestRecognizeNothing(t *testing.T) {
	t.Parallel()
	e := engine(t)
	white := image.NewGray(image.Rect(0, 0, 800, 600))
	for i := range white.Pix {
		white.Pix[i] = 250
	}
	for name, img := range map[string]*image.Gray{"white": white, "noise": noisy(white, 100)} {
		if p, err := e.Recognize(t.Context(), img, 300, ""); err != nil || len(p.Lines) > 1 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := e.Recognize(t.Context(), image.NewGray(image.Rect(0, 0, 40_000, 10)), 300, ""); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("a picture that is too wide: %v", err)
	}
	if _, err := e.Recognize(t.Context(), &image.Gray{}, 300, ""); !errors.Is(err, fileops.ErrCorruptInput) {
		t.Errorf("a picture without pixels: %v", err)
	}
	if _, err := e.Recognize(t.Context(), page(t, english, 100), 100, "--help"); err == nil {
		t.Error("a language that is not installed is accepted")
	}
}

func TestRecognizeLimits(t *testing.T) {
	t.Parallel()
	img := page(t, english, 300)
	slow, err := ocrops.New(t.Context(), ocrops.Options{Timeout: time.Millisecond}) // rounded up to a second
	systest.NoError(t, err)
	// Noise keeps it busy.
	big := image.NewGray(image.Rect(0, 0, 6000, 6000))
	for i := range big.Pix {
		big.Pix[i] = img.Pix[i%len(img.Pix)]
	}
	if _, err := slow.Recognize(t.Context(), noisy(big, 120), 300, ""); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("more CPU time than allowed: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := engine(t).Recognize(ctx, img, 300, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that is done: %v", err)
	}
}

func TestConformance(t *testing.T) {
	// A few lines are enough.
	img := page(t, strings.Join(strings.Split(english, "\n")[:3], "\n"), 150).SubImage(image.Rect(0, 60, 875, 240)).(*image.Gray)
	small := image.NewGray(image.Rect(0, 0, img.Rect.Dx(), img.Rect.Dy()))
	for y := range small.Rect.Dy() {
		copy(small.Pix[y*small.Stride:][:small.Stride], img.Pix[y*img.Stride:])
	}
	fileopstest.Run(t, fileopstest.Suite{
		Action: engine(t).Convert(),
		Fixture: func(t testing.TB, f format.Format) *fileops.File {
			return fileops.Bytes("scan."+string(f), encode(t, small, f))
		},
		Args:        fileops.Args{"ocr_language": "eng"},
		Concurrency: 4,
		Check: func(t *testing.T, in []*fileops.File, _ fileops.Args, out []*fileops.File) {
			b, _ := out[0].Bytes()
			pages := 1
			if in[0].Format() == format.TIFF {
				pages = 2
			}
			if n := strings.Count(string(b), "\f"); n != pages || strings.Count(string(b), "lighthouse") > pages {
				t.Errorf("%d pages, want %d", n, pages)
			}
			if n := strings.Count(string(b), "fishermen"); n != pages {
				t.Errorf("%d of %d pages read: %q", n, pages, b)
			}
		},
	})
}

func TestConvertErrors(t *testing.T) {
	t.Parallel()
	e := engine(t)
	white := image.NewGray(image.Rect(0, 0, 300, 200))
	bomb := tiff(white)
	copy(bomb[len(bomb)-4-9*12+8:], "\xff\xff\xff\x7f") // its width
	twelve := bytes.Replace(tiff(white), []byte("\x02\x01\x04\x00\x01\x00\x00\x00\x08"), []byte("\x02\x01\x04\x00\x01\x00\x00\x00\x0c"), 1)
	loop := tiff(white)
	copy(loop[len(loop)-4:], loop[4:8])
	for _, tt := range []struct {
		name string
		in   *fileops.File
		kind error
	}{
		{"no text", fileops.Bytes("a.png", encode(t, white, format.PNG)), fileops.ErrUnsupportedInput},
		{"half a GIF", fileops.Bytes("a.gif", halfOf(encode(t, page(t, english, 100), format.GIF))), fileops.ErrCorruptInput},
		{"BMP of 16 bits", fileops.Bytes("a.bmp", sixteenBits()), fileops.ErrUnsupportedInput},
		{"TIFF of 12 bits", fileops.Bytes("a.tiff", twelve), fileops.ErrUnsupportedInput},
		{"bomb", fileops.Bytes("a.tiff", bomb), fileops.ErrLimit},
		{"loop", fileops.Bytes("a.tiff", loop), fileops.ErrLimit},
	} {
		err := fileops.Run(t.Context(), e.Convert(), fileops.Args{"convert_to": "txt"}, fileops.ToDir(t.TempDir()), tt.in)
		// A variant that cannot be read is not a picture without text.
		if variant := strings.Contains(tt.name, " bits"); !errors.Is(err, tt.kind) || variant != strings.Contains(fileops.Message(err), "variant") {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.kind)
		}
	}
	_, err := e.Convert().Spec().Accepts[0].Params.Parse(fileops.Args{"convert_to": "txt", "ocr_language": "tlh"})
	var param *fileops.ParamError
	if !errors.As(err, &param) || param.Allowed[0] != ocrops.Auto {
		t.Errorf("a language that is not installed: %v", err)
	}
	p, err := e.Convert().Spec().Accepts[0].Params.Parse(fileops.Args{"convert_to": "TEXT", "ocr_language": "de"})
	if err != nil || p.Get("ocr_language") != "deu" {
		t.Errorf("de means %q (%v)", p.Get("ocr_language"), err)
	}
}

func halfOf(b []byte) []byte { return b[:len(b)/2] }

// sixteenBits returns a BMP of one pixel with 16 bits, which neither Tesseract nor package bmp reads.
func sixteenBits() []byte {
	b := make([]byte, 14+40+4)
	copy(b, "BM")
	for at, v := range map[int]uint32{2: uint32(len(b)), 10: 54, 14: 40, 18: 1, 22: 1, 26: 16<<16 | 1} {
		binary.LittleEndian.PutUint32(b[at:], v)
	}
	return b
}

// Smaller copies of a page are not read again.
func TestConvertTIFFWithCopy(t *testing.T) {
	t.Parallel()
	img := page(t, english, 150)
	b := tiff(img, img)
	kind := []byte("\xfe\x00\x04\x00\x01\x00\x00\x00\x00")
	at := bytes.LastIndex(b, kind)
	b[at+len(kind)-1] = 1 // the second page is a copy
	dir := t.TempDir()
	systest.NoError(t, fileops.Run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "txt", "ocr_language": "eng"}, fileops.ToDir(dir), fileops.Bytes("a.tiff", b)))
	text := string(systest.ReadFile(t, filepath.Join(dir, "a.txt")))
	if n, want := len(tokens(text)), len(tokens(english)); strings.Count(text, "\f") != 1 || n > want+want/5 || recall(english, text) < 0.9 {
		t.Errorf("%d words, want %d on one page: %s", n, want, text)
	}
}

// Tesseract does not read TIFF in tiles.
func TestConvertTiledTIFF(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, tiled := filepath.Join(dir, "in.png"), filepath.Join(dir, "a.tiff")
	systest.NoError(t, os.WriteFile(in, encode(t, page(t, english, 150), format.PNG), 0o600))
	systest.Run(t, "vips", "tiffsave", in, tiled, "--tile", "--compression", "deflate")
	systest.NoError(t, fileops.Run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "txt", "ocr_language": "eng"}, fileops.ToDir(dir), fileops.Path(tiled)))
	if text := string(systest.ReadFile(t, filepath.Join(dir, "a.txt"))); recall(english, text) < 0.9 {
		t.Errorf("%s", text)
	}
}

// A GIF with an empty comment is valid, but Tesseract does not read it.
func TestConvertGIFWithEmptyComment(t *testing.T) {
	t.Parallel()
	b := encode(t, page(t, english, 150), format.GIF)
	at := 13 // after the header
	if b[10]&0x80 != 0 {
		at += 3 << (b[10]&7 + 1) // and the colours
	}
	b = slices.Insert(b, at, 0x21, 0xfe, 0)
	dir := t.TempDir()
	if err := fileops.Run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "txt", "ocr_language": "eng"}, fileops.ToDir(dir), fileops.Bytes("a.gif", b)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	if err != nil || recall(english, string(text)) < 0.9 {
		t.Errorf("%v: %s", err, text)
	}
}

func TestFindFails(t *testing.T) {
	t.Parallel()
	if _, err := ocrops.New(t.Context(), ocrops.Options{Tesseract: "tesseract-that-is-not-here"}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("missing program: %v", err)
	}
	dir := t.TempDir()
	for name, script := range map[string]string{
		"old":  "#!/bin/sh\necho tesseract 3.04.01\n",
		"mute": "#!/bin/sh\ncase $1 in --version) echo tesseract 5.3.0;; *) echo 'List (1):'; echo osd;; esac\n",
	} {
		path := filepath.Join(dir, name)
		systest.WriteScript(t, path, script)
		if _, err := ocrops.New(t.Context(), ocrops.Options{Tesseract: path}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func FuzzHOCR(f *testing.F) {
	f.Add(`<div class='ocr_page' title='bbox 0 0 100 50'><span class='ocr_line' title="bbox 1 1 90 20; baseline 0.01 -3; x_size 18"><span class='ocrx_word' title='bbox 1 1 40 20; x_wconf 96'>one &amp; two</span></span></div>`)
	f.Add(`<div class="ocr_page"><span class="ocrx_word">`)
	f.Fuzz(func(t *testing.T, s string) { ocrops.ParseHOCR(strings.NewReader(s)) })
}

func FuzzTIFF(f *testing.F) {
	f.Add(tiff(image.NewGray(image.Rect(0, 0, 4, 4))))
	f.Fuzz(func(t *testing.T, b []byte) {
		sizes, err := ocrops.PictureSizes(fileops.Bytes("a.tiff", b))
		if err == nil && len(sizes) == 0 {
			t.Error("no error and no page")
		}
	})
}

func Example() {
	ctx := context.Background()
	ocr, err := ocrops.New(ctx, ocrops.Options{})
	if err != nil {
		panic(err)
	}
	err = fileops.Run(ctx, ocr.Convert(), fileops.Args{"convert_to": "txt", "ocr_language": "eng"},
		fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
			_, err := io.Copy(os.Stdout, f.Reader())
			return err
		}), fileops.Path("testdata/hello.png"))
	if err != nil {
		panic(err)
	}
	// Output:
	// Hello, scanned world
	//
}

// One process can use the probe result of another.
func TestProbed(t *testing.T) {
	t.Parallel()
	e := engine(t)
	again, err := ocrops.New(t.Context(), ocrops.Options{Tesseract: "/nowhere", Probed: e.Probed()})
	if err != nil || !reflect.DeepEqual(again.Dependencies(), e.Dependencies()) || !slices.Equal(again.Languages(), e.Languages()) || again.Probed() != e.Probed() {
		t.Errorf("%+v, %v", again, err)
	}
	for _, bad := range []string{"x", "{}"} {
		if _, err := ocrops.New(t.Context(), ocrops.Options{Probed: bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// Text that is upright according to the detection of its script is read without looking for its
// direction again.
func TestDirectionIsLookedForOnce(t *testing.T) {
	t.Parallel()
	img := image.NewGray(image.Rect(0, 0, 60, 40))
	for i := range img.Pix {
		img.Pix[i] = byte(255 * (i % 2))
	}
	for rotate, mode := range map[string]string{"Rotate: 0": "3", "Rotate: 180": "1", "": "1"} {
		dir := t.TempDir()
		path, modes := filepath.Join(dir, "tesseract"), filepath.Join(dir, "modes")
		systest.WriteScript(t, path, fmt.Sprintf(`#!/bin/sh
case "$*" in *"--psm 0"*) printf '%s\nScript: Latin\nScript confidence: 10\n'; exit;; esac
echo "$*" >>%s
echo "<div class='ocr_page' title='bbox 0 0 60 40'><span class='ocr_line' title='bbox 1 1 50 30; x_size 20'><span class='ocrx_word' title='bbox 1 1 50 30; x_wconf 95'>word</span></span></div>"
`, rotate, modes))
		e, err := ocrops.New(t.Context(), ocrops.Options{Probed: fmt.Sprintf(`{"path":%q,"version":"5.3.0","languages":["eng","deu"],"upright":true}`, path)})
		systest.NoError(t, err)
		_, err = e.Recognize(t.Context(), img, 300, "")
		systest.NoError(t, err)
		if first, _, _ := strings.Cut(string(systest.ReadFile(t, modes)), "\n"); !strings.Contains(first, "--psm "+mode+" ") {
			t.Errorf("%q: Tesseract runs with %s, want mode %s", rotate, first, mode)
		}
	}
}
