package pdfread_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

// A reader is a Recognizer whose results a test defines.
type reader struct {
	calls atomic.Int64
	read  func(ctx context.Context, img *image.Gray, dpi float64, language string) (*pdfread.Recognized, error)
}

func (*reader) Language() fileops.Param {
	return fileops.Param{Name: "ocr_language", Doc: "Language.", Enum: []string{"eng", "deu"}, Default: "eng"}
}

func (r *reader) Recognize(ctx context.Context, img *image.Gray, dpi float64, language string) (*pdfread.Recognized, error) {
	r.calls.Add(1)
	return r.read(ctx, img, dpi, language)
}

// picturePage draws a picture of w × h points, and then content.
func picturePage(w, h float64, content string) pdfPage {
	row := strings.Repeat("00ff80", 16)
	pixels := strings.Repeat(row, 48)
	return pdfPage{
		extra:   fmt.Sprintf("/MediaBox[0 0 %g %g]", w, h),
		content: fmt.Sprintf("q %g 0 0 %g 0 0 cm BI /W 48 /H 48 /CS /G /BPC 8 /F /AHx ID %s> EI Q\n%s", w, h, pixels, content),
	}
}

// letterPage draws a picture of white paper with a black bar for each word that
// found returns for the text. The paper is turned clockwise by quarter turns.
func letterPage(turn int, text ...string) pdfPage {
	w, h := 420, 595
	img := image.NewGray(image.Rect(0, 0, w, h))
	draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
	for _, word := range found(0, 72, text...).Words {
		draw.Draw(img, image.Rect(int(word.Left), int(word.Top), int(word.Right), int(word.Bottom)), image.Black, image.Point{}, draw.Src)
	}
	for range turn {
		turned := image.NewGray(image.Rect(0, 0, h, w))
		for y := range w {
			for x := range h {
				turned.Set(x, y, img.At(y, h-1-x))
			}
		}
		img, w, h = turned, h, w
	}
	return pdfPage{
		extra:   fmt.Sprintf("/MediaBox[0 0 %d %d]", w, h),
		content: fmt.Sprintf("q %d 0 0 %d 0 0 cm BI /W %d /H %d /CS /G /BPC 8 /F /AHx ID %x> EI Q", w, h, w, h, img.Pix),
	}
}

// found returns lines of words at plausible positions of a page.
func found(turn int, dpi float64, text ...string) *pdfread.Recognized {
	out := &pdfread.Recognized{Turn: turn}
	k := dpi / 72
	for i, l := range text {
		x, base := 72.0, 100+14*float64(i)
		for _, w := range strings.Fields(l) {
			wide := 5.5 * float64(len(w))
			out.Words = append(out.Words, pdfread.RecognizedWord{
				Text: w, Left: x * k, Right: (x + wide) * k, Top: (base - 8) * k, Bottom: (base + 2) * k, Base: base * k, Size: 11.1 * k,
			})
			x += wide + 3
		}
	}
	return out
}

func says(turn int, text ...string) *reader {
	return &reader{read: func(_ context.Context, _ *image.Gray, dpi float64, _ string) (*pdfread.Recognized, error) {
		return found(turn, dpi, text...), nil
	}}
}

func TestScans(t *testing.T) {
	t.Parallel()
	scan := picturePage(420, 595, "")
	// A font whose characters have no meaning.
	p := &pdfFile{}
	cmap := p.stream("", `/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def
1 begincodespacerange <00> <ff> endcodespacerange
1 beginbfrange <41> <7a> <E041> endbfrange
endcmap end end`)
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding/ToUnicode %s>>", cmap)
	content := p.stream("", "BT /F1 12 Tf 50 150 Td (meaningless) Tj ET BT /F1 12 Tf 50 120 Td (characters) Tj ET")
	tree := fmt.Sprintf("%d 0 R", len(p.objs)+2)
	pg := p.add("<</Type/Page/Parent %s/MediaBox[0 0 300 200]/Resources<</Font<</F1 %s>>>>/Contents %s>>", tree, font, content)
	p.add("<</Type/Pages/Kids[%s]/Count 1>>", pg)
	garbage := p.finish(p.add("<</Type/Catalog/Pages %s>>", tree))

	for _, tt := range []struct {
		name   string
		reader *reader
		pdf    []byte
		want   string
		calls  int64
	}{
		{"picture", says(0, "first line of it", "second line"), pages(scan), "first line of it\nsecond line\n\f", 1},
		{"on its side", says(1, "first line of it", "second line"), pages(scan), "first line of it\nsecond line\n\f", 1},
		{"order of pages", says(0, "read"), pages(scan, pdfPage{content: lines("F1", 14, 72, 500, 20, "written")}, scan, pdfPage{}, scan), "read\n\fwritten\n\fread\n\f\fread\n\f", 3},
		// The recognizer finds the stamp in the picture of the page as well.
		{"stamp", says(0, "Received", "letter text"), pages(picturePage(420, 595, lines("F1", 11, 72, 595-100, 14, "Received"))), "Received\nletter text\n\f", 1},
		{"garbage", says(0, "with a meaning"), garbage, "with a meaning\n\f", 1},
		{"outlines", says(0, "drawn letters"), pages(pdfPage{content: "100 500 m 150 550 l 200 500 l f"}), "drawn letters\n\f", 1},
		{"text over a picture", says(0, "no"), pages(picturePage(595, 842, lines("F1", 12, 72, 700, 20, prose(1, 8), prose(2, 8)))), prose(1, 8) + "\n" + prose(2, 8) + "\n\f", 0},
		{"title beside a picture", says(0, "no"), pages(pdfPage{content: lines("F1", 12, 72, 700, 20, "Title") + "100 100 200 200 re f"}), "Title\n\f", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, pdfread.Options{Recognizer: tt.reader})
			out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, tt.pdf)
			if got := string(out[0].b); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if n := tt.reader.calls.Load(); n != tt.calls {
				t.Errorf("%d pages were recognised, want %d", n, tt.calls)
			}
		})
	}
}

// A scan becomes text in a document, not a picture.
func TestDocxOfScan(t *testing.T) {
	t.Parallel()
	letter := []string{"A line of the letter that", "goes on here."}
	for turn := range 4 {
		e := newEngine(t, pdfread.Options{Recognizer: says(turn, letter...)})
		docx := mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pages(letterPage(turn, letter...)))[0].b
		if got := strings.Join(strings.Fields(docxText(t, docx)), " "); got != "A line of the letter that goes on here." {
			t.Errorf("%d turns: got %q", turn, got)
		}
		parts := unzip(t, docx)
		for name := range parts {
			if strings.HasPrefix(name, "word/media/") {
				t.Errorf("%d turns: the page is in it as a picture: %s", turn, name)
			}
		}
		if !strings.Contains(string(parts["word/styles.xml"]), `<w:sz w:val="22"/>`) {
			t.Errorf("%d turns: the text is not of 11 points", turn)
		}
	}
	// A picture with more than its text keeps its look, and hides the text behind it.
	e := newEngine(t, pdfread.Options{Recognizer: says(0, letter...)})
	photo := mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pages(picturePage(420, 595, "")))[0].b
	parts := unzip(t, photo)
	if !strings.Contains(strings.Join(keys(parts), " "), "word/media/") {
		t.Error("a photograph with text is lost")
	}
	if main := string(parts["word/document.xml"]); !strings.Contains(main, "letter") || !strings.Contains(main, `behindDoc="1"`) {
		t.Error("the text of a photograph is lost")
	}
	// Its own text is still visible in front.
	stamped := mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pages(picturePage(420, 595, lines("F1", 11, 72, 300, 14, "Received"))))[0].b
	main := string(unzip(t, stamped)["word/document.xml"])
	before, _, ok := strings.Cut(main, "Received")
	if at := strings.LastIndex(before, "behindDoc="); !ok || at < 0 || !strings.HasPrefix(before[at:], `behindDoc="0"`) {
		t.Error("a stamp is lost or behind its picture")
	}
	// If nothing is recognized, the picture stays.
	mixed := newEngine(t, pdfread.Options{Recognizer: says(0)})
	docx := mustConvert(t, mixed, fileops.Args{"convert_to": "docx"}, pages(picturePage(420, 595, ""), pdfPage{content: lines("F1", 14, 72, 500, 20, "text")}))[0].b
	if !strings.Contains(strings.Join(keys(unzip(t, docx)), " "), "word/media/") {
		t.Error("a photograph is lost")
	}
}

// Recognised lines have the width that they have in the picture, so none of them wraps in print.
func TestDocxOfNarrowScan(t *testing.T) {
	t.Parallel()
	letter := []string{"THE RIVER RUNS PAST THE GARDEN AND THE OLD MARKET", "HALL WHERE THE WOMEN OF THE TOWN MEET AND WALK ON", "SUNDAYS IN THE RAIN WITH THEIR MOTHERS AND HORSES"}
	e := newEngine(t, pdfread.Options{Recognizer: says(0, letter...)})
	docx := mustConvert(t, e, fileops.Args{"convert_to": "docx"}, pages(letterPage(0, letter...)))[0].b
	printed := write(t, "x.pdf", office(t, "in.docx", docx, "pdf"))
	var lines []string
	for l := range strings.Lines(tool(t, "pdftotext", "-layout", printed, "-")) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if !slices.Equal(lines, letter) {
		t.Errorf("lines %q", lines)
	}
}

func keys(m map[string][]byte) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

func TestScansRefused(t *testing.T) {
	t.Parallel()
	scan := pages(picturePage(420, 595, ""))
	for _, to := range []string{"txt", "csv", "xlsx"} {
		_, err := convert(t.Context(), t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": to}, fileops.Bytes("in.pdf", scan))
		if fileops.Code(err) != "unsupported_input" || !strings.Contains(fileops.Message(err), "tesseract-ocr") {
			t.Errorf("%s without a recognizer: %v", to, err)
		}
		_, err = convert(t.Context(), t, newEngine(t, pdfread.Options{Recognizer: says(0)}), fileops.Args{"convert_to": to}, fileops.Bytes("in.pdf", scan))
		if fileops.Code(err) != "unsupported_input" || !strings.Contains(fileops.Message(err), "no text was found") {
			t.Errorf("%s without text: %v", to, err)
		}
	}
	if _, err := convert(t.Context(), t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "txt", "ocr_language": "eng"}, fileops.Bytes("in.pdf", scan)); err == nil {
		t.Error("a language is accepted, but there is no recognizer")
	}
}

func TestScanFails(t *testing.T) {
	t.Parallel()
	scan := pages(picturePage(420, 595, ""), picturePage(420, 595, ""), picturePage(420, 595, ""))
	fails := func(f func(context.Context) error) *reader {
		return &reader{read: func(ctx context.Context, _ *image.Gray, _ float64, _ string) (*pdfread.Recognized, error) {
			return nil, f(ctx)
		}}
	}
	for _, to := range []string{"txt", "docx"} {
		for name, tt := range map[string]struct {
			r    *reader
			code string
		}{
			"limit":  {fails(func(context.Context) error { return fileops.Fail(fileops.ErrLimit, nil, "too slow") }), "limit_exceeded"},
			"panic":  {fails(func(context.Context) error { panic("boom") }), "engine_failed"},
			"cancel": {fails(func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }), "timeout"},
		} {
			e := newEngine(t, pdfread.Options{Recognizer: tt.r})
			systest.NoError(t, e.Warm(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if name == "cancel" {
				ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
			}
			if _, err := convert(ctx, t, e, fileops.Args{"convert_to": to}, fileops.Bytes("in.pdf", scan)); fileops.Code(err) != tt.code {
				t.Errorf("%s, %s: %v", to, name, err)
			}
			cancel()
		}
	}
}

// The recognizer gets pages in the expected form, within limits, and with the
// requested language.
func TestScanPictures(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	r := &reader{read: func(_ context.Context, img *image.Gray, dpi float64, language string) (*pdfread.Recognized, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, language)
		w, h := img.Rect.Dx(), img.Rect.Dy()
		if float64(w)*float64(h) > 31e6 {
			t.Errorf("a page of %d x %d pixels", w, h)
		}
		lo, hi := byte(255), byte(0)
		for _, v := range img.Pix {
			lo, hi = min(lo, v), max(hi, v)
		}
		if lo > 20 || hi < 235 {
			t.Errorf("the picture is not that of the page: gray from %d to %d", lo, hi)
		}
		return found(0, dpi, "word"), nil
	}}
	e := newEngine(t, pdfread.Options{Recognizer: r})
	mustConvert(t, e, fileops.Args{"convert_to": "txt", "ocr_language": "deu"}, pages(picturePage(420, 595, ""), picturePage(14000, 14000, "")))
	if len(seen) != 2 || seen[0] != "deu" || seen[1] != "deu" {
		t.Errorf("languages %v", seen)
	}
}

func TestScanLimit(t *testing.T) {
	t.Parallel()
	r := says(0, "word")
	e := newEngine(t, pdfread.Options{Recognizer: r})
	var many, blank []pdfPage
	for range 501 {
		many = append(many, picturePage(10, 10, ""))
		blank = append(blank, pdfPage{})
	}
	_, err := convert(t.Context(), t, e, fileops.Args{"convert_to": "txt"}, fileops.Bytes("in.pdf", pages(many...)))
	if !errors.Is(err, fileops.ErrLimit) || !strings.Contains(fileops.Message(err), "pages") {
		t.Errorf("501 scanned pages: %v", err)
	}
	r.calls.Store(0)
	out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, pages(append(blank, picturePage(420, 595, ""))...))
	if n := r.calls.Load(); n != 1 || strings.TrimSpace(string(out[0].b)) != "word" {
		t.Errorf("501 blank pages and a scan: %d recognised, %q", n, out[0].b)
	}
}
