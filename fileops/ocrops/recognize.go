package ocrops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
)

// A Page is the text of a picture. Positions are in pixels from the top left corner of
// the picture after it is turned upright and straightened.
type Page struct {
	Width, Height int
	Turn          int     // quarter turns counterclockwise that make the picture upright
	Slope         float64 // of the lines before the picture was straightened: dy/dx, about the centre
	Lines         []Line
}

// A Line is words side by side, from left to right.
type Line struct {
	Words     []Word
	Base      float64 // y of the base line
	Size      float64 // of the font (1 em), pixels; equal for similar lines
	Paragraph int     // lines of one paragraph share the number
}

// A Word is text without spaces.
type Word struct {
	Text                     string
	Left, Top, Right, Bottom float64
	Confidence               float64 // 0 to 1
}

// Recognize reads the text of img, which has dpi dots per inch. language is one of
// [Engine.Languages]; "" means [Auto]. A picture without text is not an error, and
// neither is text in a language that is not installed, which [Auto] leaves out.
//
// It fails with [fileops.ErrLimit] if the picture is too large or takes too long, and
// with the cause of ctx when ctx is done.
func (e *Engine) Recognize(ctx context.Context, img *image.Gray, dpi float64, language string) (*Page, error) {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	if err := e.checkSize(w, h); err != nil {
		return nil, err
	}
	if blank(img) {
		return &Page{Width: w, Height: h}, nil
	}
	var pages []*hocrPage
	var err error
	if language == "" || language == Auto {
		pages, language, err = e.detect(ctx, reader{func() io.Reader { return netpbm(img) }, dpi, 1})
	} else {
		pages, err = e.read(ctx, netpbm(img), dpi, language, e.upright, 1)
	}
	if err != nil {
		return nil, err
	}
	p := pages[0]
	turn := p.turn()
	if turn != 0 { // base lines are known only for upright text
		upright := turned(img, turn)
		if pages, err = e.read(ctx, netpbm(upright), dpi, language, false, 1); err != nil {
			return nil, err
		}
		var straight []*hocrPage
		if countWords(pages) <= fewTurned { // Tesseract guesses the direction of little text
			if straight, err = e.read(ctx, netpbm(img), dpi, language, false, 1); err != nil {
				return nil, err
			}
		}
		if straight != nil && evidence(straight) >= evidence(pages) {
			p, turn = straight[0], 0
		} else {
			p, img = pages[0], upright
		}
	}
	out := p.page()
	out.Width, out.Height, out.Turn = img.Rect.Dx(), img.Rect.Dy(), turn
	return out, nil
}

// fewTurned is the number of words up to which the direction of a page is checked
// by reading it without turning it.
const fewTurned = 30

// evidence returns how much text pages show: their characters, weighted by the
// square of the confidence. Text that is upside down has a low confidence.
func evidence(pages []*hocrPage) (sum float64) {
	for _, p := range pages {
		for _, l := range p.lines {
			for _, w := range l.words {
				sum += float64(len([]rune(w.Text))) * w.Confidence * w.Confidence
			}
		}
	}
	return sum
}

func (e *Engine) checkSize(w, h int) error {
	if w < 1 || h < 1 {
		return fileops.Fail(fileops.ErrCorruptInput, nil, "the picture has no pixels")
	}
	if w > maxSide || h > maxSide || int64(w)*int64(h) > e.opts.MaxPixels {
		return fileops.Fail(fileops.ErrLimit, nil, "the picture has %d x %d pixels, more than the limit of %v megapixels (%d on a side) for character recognition; make it smaller first",
			w, h, float64(e.opts.MaxPixels)/1e6, maxSide)
	}
	return nil
}

// read runs Tesseract on a picture file with the given number of pages.
func (e *Engine) read(ctx context.Context, file io.Reader, dpi float64, language string, upright bool, pages int) ([]*hocrPage, error) {
	for l := range strings.SplitSeq(language, "+") {
		if !slices.Contains(e.languages, l) {
			return nil, fmt.Errorf("ocrops: language %q is not installed", language)
		}
	}
	mode := "3" // find text in any layout
	if upright {
		mode = "1" // the same, in any direction
	}
	args := []string{"stdin", "stdout", "-l", language, "--psm", mode}
	if dpi > 0 {
		args = append(args, "--dpi", strconv.Itoa(clampDPI(dpi)))
	}
	limit := time.Duration(pages) * e.opts.Timeout
	tooLong := fileops.Fail(fileops.ErrLimit, nil, "the picture takes longer to read than the limit of %v", limit)
	var out bytes.Buffer
	err := e.run(ctx, engine.Cmd{
		Args: append(args, "-c", "tessedit_create_hocr=1"), Stdin: file, Stdout: &limitedWriter{w: &out, left: maxOutput},
		Limits: engine.Limits{CPU: limit},
	}, 4*limit+time.Minute, tooLong) // more than the CPU time, because of other work on the machine
	var exit *engine.ExitError
	switch {
	case err == nil:
	case errors.Is(err, errOutput):
		return nil, fileops.Fail(fileops.ErrLimit, err, "the picture has more text than can be processed")
	case errors.As(err, &exit) && (exit.Limit() || exit.Signal == syscall.SIGKILL):
		return nil, tooLong
	case errors.As(err, &exit) && exit.Signal == 0:
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the picture is damaged or of a kind that cannot be read")
	case errors.As(err, &exit):
		return nil, fileops.Fail(fileops.ErrEngine, err, "the text of the picture could not be read")
	default:
		return nil, err
	}
	found, err := parseHOCR(&out)
	if errors.Is(err, errNoPage) { // Tesseract does not read this variant, and exits with 0
		return nil, fileops.Fail(fileops.ErrUnsupportedInput, err, "text cannot be read from this variant of picture; convert it to PNG first")
	}
	if err != nil {
		return nil, fileops.Fail(fileops.ErrEngine, err, "")
	}
	return found, nil
}

// clampDPI returns a resolution that Tesseract accepts.
func clampDPI(dpi float64) int { return min(max(int(dpi+0.5), 70), 2400) }

// netpbm returns img as a PGM file.
func netpbm(img *image.Gray) io.Reader {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	head := fmt.Sprintf("P5 %d %d 255\n", w, h)
	if img.Stride == w {
		return io.MultiReader(bytes.NewReader([]byte(head)), bytes.NewReader(img.Pix[:w*h]))
	}
	rows := []io.Reader{bytes.NewReader([]byte(head))}
	for y := range h {
		rows = append(rows, bytes.NewReader(img.Pix[y*img.Stride:][:w]))
	}
	return io.MultiReader(rows...)
}

// blank reports whether a picture has almost no contrast.
func blank(img *image.Gray) bool {
	lo, hi := byte(255), byte(0)
	w := img.Rect.Dx()
	for y := range img.Rect.Dy() {
		for _, v := range img.Pix[y*img.Stride:][:w] {
			lo, hi = min(lo, v), max(hi, v)
		}
		if hi >= lo && hi-lo > 24 {
			return false
		}
	}
	return true
}

// turned returns img after counterclockwise quarter turns.
func turned(img *image.Gray, turn int) *image.Gray {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	at := func(x, y int) int { return y*img.Stride + x }
	ow, oh := w, h
	if turn%2 == 1 {
		ow, oh = h, w
	}
	out := image.NewGray(image.Rect(0, 0, ow, oh))
	for y := range oh {
		row := out.Pix[y*out.Stride:][:ow]
		for x := range row {
			switch turn {
			case 1:
				row[x] = img.Pix[at(w-1-y, x)]
			case 2:
				row[x] = img.Pix[at(w-1-x, h-1-y)]
			default:
				row[x] = img.Pix[at(y, h-1-x)]
			}
		}
	}
	return out
}

var errOutput = errors.New("too much output")

// A limitedWriter fails when it receives more than the remaining bytes.
type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, errOutput
	}
	l.left -= len(p)
	return l.w.Write(p)
}
