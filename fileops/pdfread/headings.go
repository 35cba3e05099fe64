package pdfread

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// A bookmark is an entry of the outline of a document.
type bookmark struct {
	title string // letters and digits only
	level int    // from 1
	page  int    // from 1, 0 if unknown
}

// outline reads the bookmarks of the document.
func (d *document) outline() []bookmark {
	const most = 5000
	in := d.in
	var out []bookmark
	seen := make(map[uint64]bool) // damaged files have cycles
	var walk func(parent uint64, level int)
	walk = func(parent uint64, level int) {
		for b := in.call("FPDFBookmark_GetFirstChild", d.ptr, parent); b != 0 && !seen[b] && len(out) < most; b = in.call("FPDFBookmark_GetNextSibling", d.ptr, b) {
			seen[b] = true
			title := utf16String(in.withBuffer(4096, func(p, n uint64) int { return in.int("FPDFBookmark_GetTitle", b, p, n) }))
			m := bookmark{title: plain(title), level: level}
			if dest := in.call("FPDFBookmark_GetDest", d.ptr, b); dest != 0 {
				m.page = in.int("FPDFDest_GetDestPageIndex", d.ptr, dest) + 1
			}
			out = append(out, m)
			if level < 9 {
				walk(b, level+1)
			}
		}
	}
	walk(0, 1)
	return out
}

// plain returns the letters and digits of s in lower case.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// metaText returns an entry of the document information.
func (d *document) metaText(key string) string {
	in := d.in
	p := in.malloc(len(key) + 1)
	if b := in.bytes(p, len(key)+1); b != nil {
		copy(b, key+"\x00")
	}
	s := utf16String(in.withBuffer(8192, func(b, n uint64) int { return in.int("FPDF_GetMetaText", d.ptr, uint64(p), b, n) }))
	in.free(p)
	return s
}

// bodyStyle returns the font and size that most of the text has.
func bodyStyle(blocks []*block) style {
	type key struct {
		font *font
		size float64
	}
	count := make(map[key]int)
	var best style
	most := 0
	for _, b := range blocks {
		for _, l := range b.lines {
			for _, w := range l.words {
				for _, s := range w.spans {
					if s.raise != 0 {
						continue
					}
					k := key{s.font, s.size}
					count[k] += len(s.text)
					if count[k] > most {
						most, best = count[k], style{font: s.font, size: s.size}
					}
				}
			}
		}
	}
	return best
}

const maxHeadingLevel = 6

// findHeadings marks the paragraphs that are headings: those in the outline of
// the file, those in larger print, and those in bold print that stand alone.
func findHeadings(blocks []*block, marks []bookmark, body style) {
	byTitle := make(map[string][]bookmark)
	for _, m := range marks {
		if m.title != "" {
			byTitle[m.title] = append(byTitle[m.title], m)
		}
	}
	levels := make(map[float64]int) // of sizes of headings that are in the outline
	var open []*block
	var sizes []float64
	paragraphs := 0
	for i, b := range blocks {
		if b.kind != paragraphBlock || len(b.lines) == 0 {
			continue
		}
		paragraphs++
		t := plain(b.text())
		if t == "" || len(b.lines) > 4 || len(t) > 300 {
			continue
		}
		if level := inOutline(byTitle, t, b.page); level > 0 && b.lines[0].size >= 0.85*body.size {
			b.heading = min(level, maxHeadingLevel)
			if l, ok := levels[b.lines[0].size]; !ok || b.heading < l {
				levels[b.lines[0].size] = b.heading
			}
			continue
		}
		if looksLikeHeading(blocks, i, body) {
			open = append(open, b)
			sizes = append(sizes, headingSize(b, body))
		}
	}
	// Where nearly everything looks like a heading, nothing is: slides, forms.
	if len(open)*2 > paragraphs && paragraphs > 6 {
		return
	}
	distinct := cluster(slices.Clone(sizes), 0.6)
	reverse(distinct)
	for _, b := range open {
		if level, ok := levels[b.lines[0].size]; ok {
			b.heading = level
			continue
		}
		if len(marks) > 0 && len(levels) > 0 && headingSize(b, body) <= body.size*1.15 {
			continue // the outline knows better
		}
		size := headingSize(b, body)
		rank := 0
		for rank < len(distinct)-1 && math.Abs(distinct[rank]-size) > 0.7 {
			rank++
		}
		b.heading = min(rank+1, maxHeadingLevel)
	}
}

// headingSize is the size of a heading for its level: one that is only bold is
// below all that are larger.
func headingSize(b *block, body style) float64 {
	return max(b.lines[0].size, body.size)
}

func inOutline(byTitle map[string][]bookmark, text string, page int) int {
	near := func(ms []bookmark) int {
		for _, m := range ms {
			if m.page == 0 || m.page >= page-1 && m.page <= page+1 {
				return m.level
			}
		}
		return 0
	}
	if l := near(byTitle[text]); l > 0 {
		return l
	}
	// The number of a chapter may be only in the text.
	rest := strings.TrimLeft(text, "0123456789")
	if rest != text && len(rest) > 3 {
		return near(byTitle[rest])
	}
	return 0
}

func looksLikeHeading(blocks []*block, i int, body style) bool {
	b := blocks[i]
	text := strings.TrimSpace(b.text())
	if len(text) > 200 || len(b.lines) > 3 || !hasLetter(text) || strings.HasSuffix(text, ",") || strings.HasSuffix(text, ";") {
		return false
	}
	size := b.lines[0].size
	if size >= body.size*1.14 && size >= body.size+1 {
		return true
	}
	if len(b.lines) > 1 || len(text) > 90 || size < 0.95*body.size || body.font == nil || body.font.bold {
		return false
	}
	if weight(b.lines[0]) != 1 || strings.HasSuffix(text, ".") || strings.HasSuffix(text, ":") {
		return false
	}
	// Bold text alone may also be a label; a heading has space above it and
	// a paragraph below it.
	if i > 0 && blocks[i-1].page == b.page && b.before < 0.25*size {
		return false
	}
	if i+1 >= len(blocks) {
		return false
	}
	next := blocks[i+1]
	return next.kind != paragraphBlock || len(next.lines) > 0 && weight(next.lines[0]) != 1
}
