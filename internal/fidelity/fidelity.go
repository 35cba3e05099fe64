// Package fidelity scores how much of a PDF survives a conversion, as a reader sees it.
//
// The result of the conversion is printed to PDF again. [Compare] draws the pages of both files with
// pdftoppm at [DPI] and compares them in order. The parts of a [Score] are means over the pages. It
// needs the programs of poppler (pdftoppm, pdfinfo, pdftotext), which did not write the result.
package fidelity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/filewright/filewright/internal/likeness"
)

// The comparison of pages.
const (
	DPI      = 36 // resolution of compared pages
	MaxPages = 20 // pages that are compared; the rest only counts
)

// A Score says how much of a PDF survived. Nil means that the original has nothing to measure.
type Score struct {
	Pages  [2]int   // pages of the original and of the print
	Ink    *float64 // part of the original's ink that has ink nearby in the print, 0 to 1
	Extra  *float64 // part of the print's ink that has none of the original nearby, 0 to 1
	Look   *float64 // structural similarity of softened pages, 0 to 1
	Colour *float64 // part of the coloured and dark areas that is matched, 0 to 1
	Text   *float64 // part of the original's letters and digits that the print has, 0 to 1

	// Total is from 0 to 10: the mean of the parts, in which ink and text count twice, times the
	// ratio of the page counts. It is halved if more than half of the text is missing.
	Total float64
}

// Compare scores the file printed against the PDF original. Both are paths.
func Compare(ctx context.Context, original, printed string) (Score, error) {
	var s Score
	var pages [2][]*likeness.Page
	var text [2]map[rune]int
	for i, path := range []string{original, printed} {
		var err error
		if s.Pages[i], err = Count(ctx, path); err != nil {
			return s, err
		}
		if pages[i], err = Draw(ctx, path, MaxPages); err != nil {
			return s, err
		}
		if text[i], err = letters(ctx, path); err != nil {
			return s, err
		}
	}
	s.match(pages[0], pages[1])
	s.Text = likeness.Common(text[0], text[1])
	s.Total = s.total()
	return s, nil
}

// Pictures scores pictures of the pages of a PDF, in order. They have the size of the pages at [DPI].
func Pictures(ctx context.Context, original string, pictures []*likeness.Page) (Score, error) {
	pages, err := Draw(ctx, original, len(pictures))
	if err != nil {
		return Score{}, err
	}
	s := Score{Pages: [2]int{len(pages), len(pictures)}}
	s.match(pages, pictures)
	s.Total = s.total()
	return s, nil
}

// Text returns the part of the letters and digits of a PDF that the text has, from 0 to 1, or nil if
// the PDF has nearly no text.
func Text(ctx context.Context, original, text string) (*float64, error) {
	want, err := letters(ctx, original)
	return likeness.Common(want, likeness.Letters(text)), err
}

// match compares pages in order.
func (s *Score) match(original, printed []*likeness.Page) {
	var ink, extra, look, colour mean
	for i, a := range original {
		m := likeness.Match{Ink: new(float64), Colour: new(float64)} // a missing page
		if i < len(printed) {
			m = a.Match(printed[i])
		}
		ink.add(m.Ink)
		extra.add(&m.Extra)
		look.add(&m.Look)
		colour.add(m.Colour)
	}
	s.Ink, s.Extra, s.Look, s.Colour = ink.value(), extra.value(), look.value(), colour.value()
}

func (s *Score) total() float64 {
	total, ok := likeness.Total(s.Ink, s.Extra, s.Look, s.Colour, s.Text)
	a, b := s.Pages[0], s.Pages[1]
	if !ok || a == 0 || b == 0 {
		return 0
	}
	return math.Round(10*total*float64(min(a, b))/float64(max(a, b))) / 10
}

// A mean adds numbers that may be missing.
type mean struct{ sum, n float64 }

func (m *mean) add(v *float64) {
	if v != nil {
		m.sum, m.n = m.sum+*v, m.n+1
	}
}

func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / m.n
	return &v
}

var pagesLine = regexp.MustCompile(`(?m)^Pages:\s+(\d+)`)

// Count returns the number of pages of a PDF, or 0 if pdfinfo cannot read it.
func Count(ctx context.Context, pdf string) (int, error) {
	out, err := output(ctx, "pdfinfo", pdf)
	if err != nil {
		return 0, err
	}
	m := pagesLine.FindSubmatch(out)
	if m == nil {
		return 0, nil
	}
	return strconv.Atoi(string(m[1]))
}

var word = regexp.MustCompile(`<word [^>]*>(.*?)</word>`)

// letters counts the letters and digits of the compared pages, without regard to case. pdftotext
// leaves out text outside of the crop box only if it lists words with their places.
func letters(ctx context.Context, pdf string) (map[rune]int, error) {
	out, err := output(ctx, "pdftotext", "-bbox", "-cropbox", "-l", strconv.Itoa(MaxPages), pdf, "-")
	if err != nil {
		return nil, err
	}
	var words strings.Builder
	for _, m := range word.FindAllSubmatch(out, -1) {
		words.WriteString(html.UnescapeString(string(m[1])))
	}
	return likeness.Letters(words.String()), nil
}

// output runs a program of poppler. A damaged file is no error: whatever the program prints counts.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	return out.Bytes(), nil
}
