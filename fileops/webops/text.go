package webops

import (
	"context"
	_ "embed"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	eastasian "golang.org/x/text/width"
)

//go:embed text.css
var textStyle string

const (
	// charWidth is the width of a character of a monospaced font, relative to the font
	// size (DejaVu Sans Mono).
	charWidth = 0.602

	textSize, minTextSize = 10.0, 7.0 // points

	// blockLines is the number of lines in one element. The browser is very slow with an
	// element of a hundred thousand lines.
	blockLines = 200

	// maxLines is the maximum number of lines of a text: more than a thousand pages.
	maxLines = 100_000
)

// escapes are terminal control sequences (ECMA-48, 5.4), which many logs contain.
var escapes = regexp.MustCompile("\x1b\\[[0-?]*[\\x20-\\x2f]*[\\x40-\\x7e]|\x1b\\][^\a\x1b]*(?:\a|\x1b\\\\)")

// textPage prints text in its original columns and lines. It wraps only lines that are
// wider than the page. A form feed starts a new page.
func (e *Engine) textPage(ctx context.Context, job *fileops.Job, in []byte) (page, error) {
	text := string(charset.Decode(in))
	text = escapes.ReplaceAllString(text, "")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if n := strings.Count(text, "\n"); n > maxLines {
		return page{}, fileops.Fail(fileops.ErrLimit, ErrTooLong, "the text has %d lines, more than the limit of %d for a PDF", n, maxLines)
	}
	l := newLayout(job.Params, textMargin, false)
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	var counts [256]int // number of lines for each width
	pages := strings.Split(strings.Trim(text, "\f"), "\f")
	for i, p := range pages {
		if ctx.Err() != nil {
			return page{}, context.Cause(ctx)
		}
		if i > 0 {
			p = strings.TrimPrefix(p, "\n")
		}
		if i == len(pages)-1 && i > 0 && strings.TrimSpace(p) == "" {
			break
		}
		class := ""
		if i > 0 {
			class = ` class="new"`
		}
		p = strings.TrimSuffix(p, "\n")
		lines := 0
		for line := range strings.SplitSeq(p, "\n") {
			if lines%blockLines == 0 {
				if lines > 0 {
					b.WriteString("</pre>\n")
				}
				b.WriteString("<pre" + class + ">")
				class = ""
				if line == "" {
					b.WriteString("\n") // pre drops the first line break
				}
			}
			lines++
			line = strings.Map(printable, line)
			counts[min(columns(line), len(counts)-1)]++
			b.WriteString(html.EscapeString(line))
			b.WriteByte('\n')
		}
		b.WriteString("</pre>\n")
	}
	style := fmt.Sprintf("%s\npre { font-size: %s }", textStyle, css(fontSize(counts[:], l.inner().width)))
	return page{html: document(format.Base(job.Input().Name()), style, b.String()), layout: l}, nil
}

// fontSize returns the font size at which 99% of the lines fit, or textSize if that size
// would be too small.
func fontSize(counts []int, available float64) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	widest, seen := 0, 0
	for w, n := range counts {
		seen += n
		if n > 0 && 100*(seen-n) < 99*total {
			widest = w
		}
	}
	if widest == 0 {
		return textSize
	}
	if fit := 0.998 * available / charWidth / float64(widest); fit >= minTextSize {
		return min(fit, textSize)
	}
	return textSize
}

// columns returns the width of a line in a monospaced font, at most some hundred.
func columns(line string) int {
	n := 0
	for _, r := range line {
		switch {
		case r == '\t':
			n += 8 - n%8
		case r >= 0x1100 && wide(r):
			n += 2
		default:
			n++
		}
		if n > 1000 {
			break
		}
	}
	return n
}

// wide reports whether a character takes two columns (Unicode Standard Annex 11).
func wide(r rune) bool {
	k := eastasian.LookupRune(r).Kind()
	return k == eastasian.EastAsianWide || k == eastasian.EastAsianFullwidth
}

// printable replaces characters that no font shows.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return r
	case r < ' ', r == 0x7f:
		return -1
	}
	return r
}

// width returns the approximate number of columns of a text in a table. An average
// character of a proportional font counts as one.
func width(b []byte) int {
	n := 0
	for len(b) > 0 {
		r, k := utf8.DecodeRune(b)
		b = b[k:]
		if n++; r >= 0x1100 && wide(r) {
			n++
		}
	}
	return n
}
