package pdfread

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of list markers.
type markerKind int

const (
	bulletMarker markerKind = iota
	decimalMarker
	lowerLetterMarker
	upperLetterMarker
	lowerRomanMarker
	upperRomanMarker
)

// A mark is the marker of a list item.
type mark struct {
	kind   markerKind
	before string // "(" of "(a)"
	after  string // ")" of it, or "."
	bullet string
	value  int // of a number or letter, from 1
	roman  int // value if the letters are read as a Roman number; 0 if they cannot be
}

// A listItem tells the place of a paragraph in a list.
type listItem struct {
	mark
	list   int     // from 1
	level  int     // from 0
	indent float64 // of the marker against the column
	text   float64 // of the text against the column
}

const bullets = "•◦▪▫■□●○◆◇►▸▶➢➤➔✓✔❑❖‣∙·–—*-→※"

// marker returns the list marker that a line starts with. It must be a word of
// its own with something behind it.
func marker(l *line) (mark, bool) {
	if len(l.words) < 2 || l.words[0].rtl || l.words[1].glued {
		return mark{}, false
	}
	w := l.words[0]
	for _, s := range w.spans {
		if s.raise != 0 {
			return mark{}, false
		}
	}
	t := w.text()
	if r, n := utf8.DecodeRuneInString(t); n == len(t) && r >= 0xe000 && r <= 0xf8ff {
		return mark{kind: bulletMarker, bullet: "•"}, true // of a symbol font
	}
	if utf8.RuneCountInString(t) == 1 && strings.Contains(bullets, t) {
		// A dash may be one of a dialogue or of a calculation; a list has
		// more space behind it.
		if strings.Contains("–—*-·→", t) && l.words[1].l-w.r < 0.3*l.size {
			return mark{}, false
		}
		return mark{kind: bulletMarker, bullet: t}, true
	}
	m := mark{}
	if strings.HasPrefix(t, "(") {
		m.before, t = "(", t[1:]
	}
	switch {
	case strings.HasSuffix(t, ")"):
		m.after = ")"
	case strings.HasSuffix(t, ".") && m.before == "":
		m.after = "."
	default:
		return mark{}, false
	}
	t = t[:len(t)-1]
	if t == "" || len(t) > 5 {
		return mark{}, false
	}
	if n, err := strconv.Atoi(t); err == nil && len(t) <= 3 && n > 0 && t[0] != '0' && t[0] != '+' {
		m.kind, m.value = decimalMarker, n
		return m, true
	}
	r := rune(t[0])
	upper := unicode.IsUpper(r)
	m.roman = romanValue(strings.ToLower(t))
	if len(t) == 1 && r < unicode.MaxASCII && unicode.IsLetter(r) {
		m.kind, m.value = lowerLetterMarker, int(unicode.ToLower(r)-'a')+1
		if upper {
			m.kind = upperLetterMarker
		}
		return m, true
	}
	if m.roman > 0 && (t == strings.ToLower(t) || t == strings.ToUpper(t)) {
		m.kind, m.value = lowerRomanMarker, m.roman
		if upper {
			m.kind = upperRomanMarker
		}
		return m, true
	}
	return mark{}, false
}

// romanValue returns the value of a lower case Roman number up to 39, or 0.
func romanValue(s string) int {
	for n := 1; n < 40; n++ {
		if roman(n) == s {
			return n
		}
	}
	return 0
}

func roman(n int) string {
	ones := []string{"", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"}
	return strings.Repeat("x", n/10) + ones[n%10]
}

// A lister finds lists in the blocks of a document.
type lister struct {
	lists int
	open  []*listItem // the last item of each level
	since int         // blocks since the last item
}

// find marks the items among blocks that follow one another. Numbers are only
// those of a list if they count; a single one could be the start of a sentence.
func (x *lister) find(bs []*block) {
	for i, b := range bs {
		if b.kind != paragraphBlock || len(b.lines) == 0 {
			x.pause(3)
			continue
		}
		m, ok := marker(b.lines[0])
		if !ok || b.align == alignCentre || b.align == alignRight {
			x.pause(1)
			continue
		}
		l := b.lines[0]
		it := &listItem{mark: m, indent: max(0, l.l-b.region.l), text: max(0, l.words[1].l-b.region.l)}
		if k := x.follow(it); k >= 0 {
			it.list, it.level = x.open[k].list, x.open[k].level
			x.open = append(x.open[:k], it)
			b.list = it
			x.since = 0
			continue
		}
		if m.kind == bulletMarker || x.counts(it, bs[i+1:]) {
			level := 0
			for level < len(x.open) && x.open[level].indent < it.indent-3 {
				level++
			}
			x.lists++
			it.list = x.lists
			it.level = min(level, 8)
			x.open = append(x.open[:min(level, len(x.open))], it)
			b.list = it
			x.since = 0
			continue
		}
		x.pause(1)
	}
}

// pause tells that something came that is no item. A list may have paragraphs
// between its items, but not many.
func (x *lister) pause(n int) {
	if x.since += n; x.since > 4 {
		x.open = nil
	}
}

// follow returns the level of which it is the next item, or -1.
func (x *lister) follow(it *listItem) int {
	for k := len(x.open) - 1; k >= 0; k-- {
		if o := x.open[k]; it.next(o) && abs(o.indent-it.indent) < 9 {
			return k
		}
	}
	return -1
}

// next tells whether it comes right after o. "i." after "h." is a letter, after
// nothing it is a number.
func (it *listItem) next(o *listItem) bool {
	if it.before != o.before || it.after != o.after {
		return false
	}
	switch {
	case it.kind == bulletMarker:
		return o.kind == bulletMarker && it.bullet == o.bullet
	case it.kind == o.kind && it.value == o.value+1:
		return true
	case it.roman > 0 && (o.kind == lowerRomanMarker || o.kind == upperRomanMarker) && it.roman == o.value+1:
		it.kind, it.value = o.kind, it.roman
		return true
	}
	return false
}

// counts tells whether the number after that of it comes soon.
func (x *lister) counts(it *listItem, rest []*block) bool {
	readings := []listItem{*it}
	if it.roman > 0 && it.kind != lowerRomanMarker && it.kind != upperRomanMarker {
		r := *it
		r.value = r.roman
		r.kind = lowerRomanMarker
		if it.kind == upperLetterMarker {
			r.kind = upperRomanMarker
		}
		readings = append(readings, r)
	}
	for i, b := range rest {
		if i > 12 {
			break
		}
		if b.kind != paragraphBlock || len(b.lines) == 0 || b.align == alignCentre {
			continue
		}
		m, ok := marker(b.lines[0])
		if !ok {
			continue
		}
		n := &listItem{mark: m}
		for _, r := range readings {
			if abs(b.lines[0].l-b.region.l-it.indent) < 9 && n.next(&r) {
				it.kind, it.value = r.kind, r.value
				return true
			}
		}
	}
	return false
}

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}
