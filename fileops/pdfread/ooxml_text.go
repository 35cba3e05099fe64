package pdfread

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// baseStyle is what a paragraph has if its runs say nothing else.
func (x *docxWriter) baseStyle(b *block) style {
	if b.heading > 0 && x.headings[b.heading] != nil {
		return *x.headings[b.heading]
	}
	return x.d.body
}

// paragraph writes blocks as one paragraph.
func (x *docxWriter) paragraph(bs []*placed, section string) {
	b := bs[0]
	base := x.baseStyle(b.block)
	rtl := len(b.lines) > 0 && len(b.lines[0].words) > 0 && b.lines[0].words[0].rtl
	x.out.WriteString(`<w:p><w:pPr>`)
	if b.heading > 0 {
		x.printf(`<w:pStyle w:val="Heading%d"/><w:keepNext/>`, b.heading)
	} else if b.list != nil {
		x.out.WriteString(`<w:pStyle w:val="ListParagraph"/>`)
	}
	if b.pageBreak {
		x.out.WriteString(`<w:pageBreakBefore/>`)
	}
	if b.list != nil {
		x.printf(`<w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr>`, b.list.level, x.number(b.list))
	}
	stops := tabStops(b.block)
	if len(stops) > 0 {
		x.out.WriteString(`<w:tabs>`)
		for _, t := range stops {
			x.printf(`<w:tab w:val="%s" w:pos="%d"/>`, t.kind, twips(t.pos))
		}
		x.out.WriteString(`</w:tabs>`)
	}
	if rtl {
		x.out.WriteString(`<w:bidi/>`)
	}
	if len(b.lines) > 0 {
		pitch := b.linePitch()
		x.printf(`<w:spacing w:before="%d" w:after="0" w:line="%d" w:lineRule="exact"/>`, twips(b.before), max(20, twips(pitch)))
	}
	x.indent(b.block, rtl)
	switch {
	case b.align == alignCentre:
		x.out.WriteString(`<w:jc w:val="center"/>`)
	case b.align == alignJustify:
		x.out.WriteString(`<w:jc w:val="both"/>`)
	case b.align == alignRight && !rtl:
		x.out.WriteString(`<w:jc w:val="right"/>`)
	case b.heading > 0:
		x.out.WriteString(`<w:jc w:val="left"/>`)
	}
	x.out.WriteString(section + `</w:pPr>`)
	if b.columnBreak {
		x.out.WriteString(`<w:r><w:br w:type="column"/></w:r>`)
	}
	x.bookmark(b)
	var lines []*line
	for _, p := range bs {
		lines = append(lines, p.lines...)
	}
	if len(bs) == 1 && len(stops) == 0 {
		left := b.left + max(0, b.first)
		if b.list != nil {
			left = b.list.indent
		}
		x.narrow = x.d.squeeze(lines, b.region.w()-left-b.right, b.tight)
	}
	x.text(lines, b.block, base, stops)
	x.narrow = 0
	x.out.WriteString(`</w:p>`)
}

func (x *docxWriter) indent(b *block, rtl bool) {
	left, right, first := b.left, b.right, b.first
	if b.list != nil {
		left, first = b.list.text, b.list.indent-b.list.text
	}
	if b.align == alignCentre {
		left, right, first = 0, b.right, 0
	}
	if rtl {
		left, right = right, left // start and end
		first = 0
	}
	if abs(left)+abs(right)+abs(first) < 1 {
		return
	}
	x.printf(`<w:ind w:left="%d" w:right="%d"`, twips(left), twips(right))
	switch {
	case first > 0.5:
		x.printf(` w:firstLine="%d"`, twips(first))
	case first < -0.5:
		x.printf(` w:hanging="%d"`, twips(-first))
	}
	x.out.WriteString(`/>`)
}

type tabStop struct {
	kind string
	pos  float64
}

// tabStops returns where the words after wide gaps of a single line stand.
func tabStops(b *block) []tabStop {
	if len(b.lines) != 1 || b.list != nil || b.align == alignCentre {
		return nil
	}
	l := b.lines[0]
	var out []tabStop
	for i := 1; i < len(l.words); i++ {
		w := l.words[i]
		if !wideGap(l, i) {
			continue
		}
		t := tabStop{"left", w.l - b.region.l}
		if i == len(l.words)-1 && w.r > b.region.r-3 {
			t = tabStop{"right", b.region.r - b.region.l}
		}
		if n := len(out); n == 0 || t.pos > out[n-1].pos+1 {
			out = append(out, t)
		}
	}
	return out
}

func wideGap(l *line, i int) bool {
	a, b := l.words[i-1], l.words[i]
	return !a.rtl && !b.rtl && !b.glued && b.l-a.r > 1.8*l.size
}

// text writes the words of a paragraph.
func (x *docxWriter) text(lines []*line, b *block, base style, stops []tabStop) {
	open := 0 // link that is open
	closeLink := func() {
		if open > 0 {
			x.out.WriteString(`</w:hyperlink>`)
			open = 0
		}
	}
	var pending strings.Builder
	var pendingStyle style
	flush := func() {
		if pending.Len() > 0 {
			x.run(pending.String(), pendingStyle, &base)
			pending.Reset()
		}
	}
	put := func(text string, st style) {
		if st.link != open || pending.Len() > 0 && st != pendingStyle {
			flush()
		}
		if st.link != open {
			closeLink()
			if start := x.link(st.link); start != "" {
				x.out.WriteString(start)
				open = st.link
			} else {
				st.link = 0
			}
		}
		pendingStyle = st
		pending.WriteString(text)
	}
	first := true
	var last style
	for li, l := range lines {
		words := l.words
		if li == 0 && b.list != nil {
			words = words[1:] // the marker comes from the list
		}
		for i, w := range words {
			sep := ""
			switch {
			case first:
			case i == 0:
				sep = " "
			case len(stops) > 0 && li == 0 && wideGap(l, i):
				sep = "\t"
			case !w.glued:
				sep = " "
			}
			first = false
			if i == 0 && sep == " " && li > 0 {
				sep = lineJoint(lines[li-1], l)
			}
			for k, sp := range w.spans {
				st := sp.style
				if st.raise != 0 {
					st.size = w.size
				}
				if k == 0 && sep != "" {
					put(sep, spaceStyle(last, st, base))
				}
				t := sp.text
				if i == len(words)-1 && k == len(w.spans)-1 && li+1 < len(lines) {
					t = x.d.unhyphen(w, t, lines[li+1])
				}
				put(t, st)
				last = st
			}
		}
	}
	flush()
	closeLink()
}

// spaceStyle returns the style of the space between two words: that of the
// plainer one, so that an emphasis begins and ends with a word.
func spaceStyle(a, b, base style) style {
	if a == b {
		return a
	}
	like := func(s style) bool {
		return s == style{font: base.font, size: s.size, colour: base.colour}
	}
	switch {
	case like(a):
		return a
	case like(b):
		return b
	}
	a.link, a.underline, a.strike, a.raise = 0, false, false, 0
	return a
}

// lineJoint returns what stands between two lines of a paragraph.
func lineJoint(a, b *line) string {
	if len(a.words) == 0 || len(b.words) == 0 {
		return ""
	}
	x, y := a.words[len(a.words)-1].text(), b.words[0].text()
	r, _ := utf8.DecodeRuneInString(y)
	if withoutSpaces(lastRune(x)) && withoutSpaces(r) {
		return ""
	}
	if hyphenated(x) && len(x) > 1 && unicode.IsLetter(r) {
		return ""
	}
	return " "
}

// withoutSpaces tells whether r belongs to a script that has none between words.
func withoutSpaces(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) ||
		r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef
}

// unhyphen takes the hyphen from a word that was divided at the end of a line.
// It stays if it belongs to the word: if the document has the word with it
// elsewhere, or a capital or a digit follows.
func (d *doc) unhyphen(w *word, text string, next *line) string {
	if !hyphenated(text) || len(next.words) == 0 {
		return text
	}
	stem := strings.TrimRight(text, "-\u00ad\u2010")
	if lastRune(text) == '\u00ad' {
		return stem
	}
	rest := next.words[0].text()
	if !startsLower(rest) || !unicode.IsLetter(lastRune(stem)) {
		return text
	}
	whole := strings.TrimRight(w.text(), "-\u00ad\u2010") + "-" + rest
	if d.hyphens[hyphenKey(whole)] {
		return stem + "-"
	}
	return stem
}

// link returns the start of a hyperlink, "" if it leads nowhere.
func (x *docxWriter) link(index int) string {
	if index == 0 || x.leaf == nil || index > len(x.leaf.links) {
		return ""
	}
	l := x.leaf.links[index-1]
	if l.uri != "" {
		id, ok := x.links[l.uri]
		if !ok {
			id = x.relate("hyperlink", l.uri, true)
			x.links[l.uri] = id
		}
		return `<w:hyperlink r:id="` + id + `">`
	}
	if x.d.leaves[l.page] == nil {
		return ""
	}
	return fmt.Sprintf(`<w:hyperlink w:anchor="page_%d">`, l.page)
}

// run writes text of one style. base is what the paragraph gives it; nil means
// that of the document.
func (x *docxWriter) run(text string, st style, base *style) {
	if text == "" {
		return
	}
	if base == nil {
		base = &x.d.body
	}
	rtl := strings.ContainsFunc(text, isRTL)
	if nearWhite(st.colour) && !x.dark {
		st.colour = 0 // it stood on a picture or a coloured area that is not here
	}
	x.out.WriteString(`<w:r>`)
	if p := x.runProps(st, *base, rtl); p != "" {
		x.out.WriteString(`<w:rPr>` + p + `</w:rPr>`)
	}
	for i, piece := range strings.Split(text, "\t") {
		if i > 0 {
			x.out.WriteString(`<w:tab/>`)
		}
		if piece != "" {
			x.out.WriteString(`<w:t xml:space="preserve">` + escape(piece) + `</w:t>`)
		}
	}
	x.out.WriteString(`</w:r>`)
}

func nearWhite(c uint32) bool { return c>>16 > 0xe0 && c>>8&255 > 0xe0 && c&255 > 0xe0 }

// fontNames returns the element that sets a font. Its own name is that for
// scripts whose letters the font in its place does not have.
func fontNames(f *font) string {
	latin, other := escape(cmp.Or(f.latin, f.name)), escape(f.name)
	return fmt.Sprintf(`<w:rFonts w:ascii="%s" w:hAnsi="%s" w:eastAsia="%s" w:cs="%s"/>`, latin, latin, other, other)
}

// runProps returns the properties of a run where they differ from base.
func (x *docxWriter) runProps(st, base style, rtl bool) string {
	var b strings.Builder
	f, g := st.font, base.font
	if f == nil {
		f = &font{}
	}
	if g == nil {
		g = &font{}
	}
	if f.name != g.name && f.name != "" {
		b.WriteString(fontNames(f))
	}
	onOff := func(on, def bool, names ...string) {
		if on == def {
			return
		}
		for _, n := range names {
			if on {
				b.WriteString("<w:" + n + "/>")
			} else {
				b.WriteString("<w:" + n + ` w:val="0"/>`)
			}
		}
	}
	onOff(f.bold, g.bold, "b", "bCs")
	onOff(f.italic, g.italic, "i", "iCs")
	if st.strike {
		b.WriteString(`<w:strike/>`)
	}
	if st.colour != base.colour {
		fmt.Fprintf(&b, `<w:color w:val="%06X"/>`, st.colour)
	}
	if is, def := x.width(st.font), x.d.scale(base.font); is != def {
		fmt.Fprintf(&b, `<w:w w:val="%d"/>`, is)
	}
	if halfPoints(st.size) != halfPoints(base.size) {
		n := halfPoints(st.size)
		fmt.Fprintf(&b, `<w:sz w:val="%d"/><w:szCs w:val="%d"/>`, n, n)
	}
	if st.underline {
		b.WriteString(`<w:u w:val="single"/>`)
	}
	switch st.raise {
	case 1:
		b.WriteString(`<w:vertAlign w:val="superscript"/>`)
	case -1:
		b.WriteString(`<w:vertAlign w:val="subscript"/>`)
	}
	if rtl {
		b.WriteString(`<w:rtl/>`)
	}
	return b.String()
}

// width returns the width of characters of f in the paragraph that is written.
func (x *docxWriter) width(f *font) int {
	p := x.d.scale(f)
	if x.narrow > 0 {
		p = p * x.narrow / 100
	}
	return max(p, 1)
}

func halfPoints(size float64) int { return min(max(2, int(math.Round(size*2))), 3276) }
