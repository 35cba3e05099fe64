package renderops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/zip"
)

// This file writes a doc as Office Open XML (ECMA-376, part 1). The order of
// elements within their parents is that of the schema; programs insist on it.

const (
	xmlHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	nsMain  = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
	nsRel   = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	nsDraw  = "http://schemas.openxmlformats.org/drawingml/2006/main"
	nsPic   = "http://schemas.openxmlformats.org/drawingml/2006/picture"
	nsWP    = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"
	nsPkg   = "http://schemas.openxmlformats.org/package/2006/"
	mainDoc = "application/vnd.openxmlformats-officedocument.wordprocessingml."
	rootNS  = ` xmlns:w="` + nsMain + `" xmlns:r="` + nsRel + `" xmlns:wp="` + nsWP + `" xmlns:a="` + nsDraw + `" xmlns:pic="` + nsPic + `"`
)

// writeDocx writes d. The result depends on nothing but d.
func writeDocx(ctx context.Context, w io.Writer, d *doc) error {
	x := &docxWriter{d: d, out: new(bytes.Buffer), links: make(map[string]string), lists: make(map[int]*listDef), headings: d.headingStyles()}
	x.document()
	if err := cancelled(ctx); err != nil {
		return err
	}
	z := zip.NewWriter(w)
	var err error
	add := func(name, content string) {
		if err != nil {
			return
		}
		var f io.Writer
		if f, err = z.Create(name); err == nil {
			_, err = io.WriteString(f, content)
		}
	}
	add("[Content_Types].xml", x.contentTypes())
	add("_rels/.rels", xmlHead+`<Relationships xmlns="`+nsPkg+`relationships">`+
		`<Relationship Id="rId1" Type="`+nsRel+`/officeDocument" Target="word/document.xml"/>`+
		`<Relationship Id="rId2" Type="`+nsPkg+`relationships/metadata/core-properties" Target="docProps/core.xml"/></Relationships>`)
	add("docProps/core.xml", x.core())
	add("word/document.xml", x.out.String())
	add("word/styles.xml", x.styles())
	add("word/numbering.xml", x.numbering())
	add("word/settings.xml", x.settings())
	for _, p := range x.parts {
		add("word/"+p.name, p.content)
	}
	var rels strings.Builder
	rels.WriteString(xmlHead + `<Relationships xmlns="` + nsPkg + `relationships">`)
	for i, r := range x.rels {
		mode := ""
		if r.external {
			mode = ` TargetMode="External"`
		}
		fmt.Fprintf(&rels, `<Relationship Id="rId%d" Type="%s/%s" Target="%s"%s/>`, i+1, nsRel, r.kind, escape(r.target), mode)
	}
	rels.WriteString(`</Relationships>`)
	add("word/_rels/document.xml.rels", rels.String())
	for _, m := range d.media {
		if !x.used[m] {
			continue
		}
		if err == nil {
			err = addFile(z, x.mediaName(m), m.path)
		}
		if cerr := cancelled(ctx); cerr != nil {
			return cerr
		}
	}
	if err != nil {
		return err
	}
	return z.Close()
}

// addFile adds a picture; it is compressed already.
func addFile(z *zip.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

type relation struct {
	kind, target string
	external     bool
}

type part struct{ name, kind, content string }

// A listDef is the definition of one list.
type listDef struct {
	num    int
	levels [9]*listItem // the first item of each level
}

type docxWriter struct {
	d        *doc
	out      *bytes.Buffer
	rels     []relation
	links    map[string]string // target to relation id
	parts    []part
	lists    map[int]*listDef
	nums     []*listDef
	used     map[*media]bool
	mediaRel map[*media]string
	headings [maxHeadingLevel + 1]*style
	pictures int
	marks    int
	leaf     *leaf // page of the block that is written, for its links
	dark     bool  // what is written has a background of its own
	narrow   int   // width of the characters of the paragraph that is written, in per cent; 0 is 100
}

func (x *docxWriter) relate(kind, target string, external bool) string {
	x.rels = append(x.rels, relation{kind, target, external})
	return fmt.Sprintf("rId%d", len(x.rels))
}

func (x *docxWriter) mediaName(m *media) string {
	return fmt.Sprintf("word/media/image%d.%s", m.id, m.ext)
}

// escape returns s as XML text or attribute, without characters that XML does
// not allow.
func escape(s string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0xfffe || r == 0xffff || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)))
	return b.String()
}

// twips converts points to twentieths of a point.
func twips(pt float64) int { return int(math.Round(pt * 20)) }

// emu converts points to English metric units.
func emu(pt float64) int { return int(math.Round(pt * 12700)) }

func (x *docxWriter) printf(format string, args ...any) { fmt.Fprintf(x.out, format, args...) }

// document writes the main part.
func (x *docxWriter) document() {
	x.used, x.mediaRel = make(map[*media]bool), make(map[*media]string)
	x.relate("styles", "styles.xml", false)
	x.relate("numbering", "numbering.xml", false)
	x.relate("settings", "settings.xml", false)
	x.out.WriteString(xmlHead + `<w:document` + rootNS + `><w:body>`)
	for i, s := range x.d.sections {
		last := i == len(x.d.sections)-1
		props := x.section(s, i)
		for k := 0; k < len(s.blocks); {
			n := 1
			for k+n-1 < len(s.blocks)-1 && s.blocks[k+n-1].joined {
				n++
			}
			end := ""
			if k+n == len(s.blocks) && !last && s.blocks[k].kind == paragraphBlock {
				end = props
			}
			x.block(s.blocks[k:k+n], s, end)
			k += n
		}
		switch n := len(s.blocks); {
		case last:
			if n > 0 && s.blocks[n-1].kind == tableBlock {
				x.tiny("")
			}
			x.out.WriteString(props)
		case n == 0 || s.blocks[n-1].kind != paragraphBlock:
			x.tiny(props)
		}
	}
	x.out.WriteString(`</w:body></w:document>`)
}

// tiny writes a paragraph that takes next to no room: the end of a section, or
// what must stand behind a table.
func (x *docxWriter) tiny(section string) {
	x.out.WriteString(`<w:p><w:pPr><w:spacing w:before="0" w:after="0" w:line="20" w:lineRule="exact"/>` +
		`<w:rPr><w:sz w:val="2"/><w:szCs w:val="2"/></w:rPr>` + section + `</w:pPr></w:p>`)
}

// section returns the properties of a section, with its headers and footers.
func (x *docxWriter) section(s *section, index int) string {
	var b strings.Builder
	b.WriteString(`<w:sectPr>`)
	if index == 0 || s.nextPage {
		x.headers(&b, s)
	}
	kind := "continuous"
	if s.nextPage {
		kind = "nextPage"
	}
	orient := ""
	if s.w > s.h {
		orient = ` w:orient="landscape"`
	}
	// Headers stand where they stood.
	headerAt, footerAt := 0.5*s.margin.t, 0.5*s.margin.b
	for _, r := range []*running{s.odd, s.even} {
		if r == nil {
			continue
		}
		if len(r.header) > 0 {
			headerAt = max(4, r.header[0].t)
		}
		if n := len(r.footer); n > 0 {
			footerAt = max(4, s.h-r.footer[n-1].b)
		}
	}
	fmt.Fprintf(&b, `<w:type w:val="%s"/><w:pgSz w:w="%d" w:h="%d"%s/>`, kind, pageTwips(s.w), pageTwips(s.h), orient)
	fmt.Fprintf(&b, `<w:pgMar w:top="%d" w:right="%d" w:bottom="%d" w:left="%d" w:header="%d" w:footer="%d" w:gutter="0"/>`,
		twips(s.margin.t), twips(s.margin.r), twips(s.margin.b), twips(s.margin.l), twips(min(headerAt, s.margin.t)), twips(min(footerAt, s.margin.b)))
	if s.start > 0 && (index == 0 || s.nextPage) && s.offset != 0 {
		fmt.Fprintf(&b, `<w:pgNumType w:start="%d"/>`, s.start)
	}
	if n := len(s.columns); n > 1 {
		fmt.Fprintf(&b, `<w:cols w:num="%d" w:space="%d" w:equalWidth="0">`, n, twips(12))
		edges := []float64{s.margin.l}
		for i := 1; i < n; i++ {
			edges = append(edges, s.columns[i].l)
		}
		for i := range n {
			right, space := s.w-s.margin.r, 0.0
			if i < n-1 {
				// A column is as wide as its text, but lines need a bit of air.
				right = min(s.columns[i].r+1, edges[i+1]-4)
				space = edges[i+1] - right
			}
			fmt.Fprintf(&b, `<w:col w:w="%d" w:space="%d"/>`, max(400, twips(right-edges[i])), twips(space))
		}
		b.WriteString(`</w:cols>`)
	} else {
		b.WriteString(`<w:cols w:space="720"/>`)
	}
	if s.first != nil {
		b.WriteString(`<w:titlePg/>`)
	}
	b.WriteString(`</w:sectPr>`)
	return b.String()
}

// pageTwips keeps within what programs accept: 22 inches at most.
func pageTwips(pt float64) int { return min(max(twips(pt), 720), 31680) }

func (x *docxWriter) headers(b *strings.Builder, s *section) {
	ref := func(element, kind string, r *running) {
		lines := r.header
		if element == "footer" {
			lines = r.footer
		}
		tag := map[string]string{"header": "hdr", "footer": "ftr"}[element]
		name := fmt.Sprintf("%s%d.xml", element, len(x.parts)+1)
		outer := x.out
		x.out = new(bytes.Buffer)
		x.out.WriteString(xmlHead + `<w:` + tag + rootNS + `>`)
		for _, l := range lines {
			x.runningLine(l, s, r.page)
		}
		if len(lines) == 0 {
			x.out.WriteString(`<w:p/>`)
		}
		x.out.WriteString(`</w:` + tag + `>`)
		content := x.out.String()
		x.out = outer
		x.parts = append(x.parts, part{name, element, content})
		fmt.Fprintf(b, `<w:%sReference w:type="%s" r:id="%s"/>`, element, kind, x.relate(element, name, false))
	}
	any := false
	for _, r := range []*running{s.odd, s.even, s.first} {
		any = any || r != nil && len(r.header)+len(r.footer) > 0
	}
	if !any && len(x.parts) == 0 {
		return // no section before this one has any either
	}
	for _, element := range []string{"header", "footer"} {
		ref(element, "default", s.odd)
		if x.d.evenOdd {
			even := s.even
			if even == nil {
				even = s.odd
			}
			ref(element, "even", even)
		}
		if s.first != nil {
			ref(element, "first", s.first)
		}
	}
}

// runningLine writes a line of a header, with tabs where it has wide gaps and
// the page number as a field. page is the one that it was taken from.
func (x *docxWriter) runningLine(l *line, s *section, page int) {
	left, right := s.margin.l, s.w-s.margin.r
	ps := pieces(append([]*word(nil), l.words...), nil)
	sortStable(ps, func(a, b *item) bool { return a.l < b.l })
	x.out.WriteString(`<w:p><w:pPr>`)
	middle := (left + right) / 2
	fmt.Fprintf(x.out, `<w:tabs><w:tab w:val="center" w:pos="%d"/><w:tab w:val="right" w:pos="%d"/></w:tabs>`, twips(middle-left), twips(right-left))
	x.out.WriteString(`<w:spacing w:before="0" w:after="0"/></w:pPr>`)
	at := 0
	for i, p := range ps {
		stop := 0
		switch {
		case math.Abs(p.cx()-middle) < 0.08*(right-left):
			stop = 1
		case p.cx() > middle:
			stop = 2
		}
		if stop <= at && i > 0 {
			x.out.WriteString(`<w:r><w:t xml:space="preserve">   </w:t></w:r>`)
		}
		for ; at < stop; at++ {
			x.out.WriteString(`<w:r><w:tab/></w:r>`)
		}
		var text strings.Builder
		var st style
		flush := func() {
			x.run(text.String(), st, nil)
			text.Reset()
		}
		for k, w := range p.words {
			space := ""
			if k > 0 && !w.glued {
				space = " "
			}
			if n, ok := pageNumber(w.text()); ok && s.numbered && n == page+s.offset {
				text.WriteString(space)
				flush()
				x.out.WriteString(`<w:fldSimple w:instr=" PAGE ">`)
				x.run(w.text(), w.spans[0].style, nil)
				x.out.WriteString(`</w:fldSimple>`)
				continue
			}
			for m, sp := range w.spans {
				sp.link = 0
				if sp.style != st {
					flush()
					st = sp.style
				}
				if m == 0 {
					text.WriteString(space)
				}
				text.WriteString(sp.text)
			}
		}
		flush()
	}
	x.out.WriteString(`</w:p>`)
}

// block writes a block, or several that are one paragraph.
func (x *docxWriter) block(bs []*placed, s *section, section string) {
	b := bs[0]
	x.leaf = x.d.leaves[b.page]
	switch b.kind {
	case tableBlock:
		x.before(b)
		x.table(b.table, s)
		x.tiny("")
	case pictureBlock:
		x.picture(b, s)
	default:
		x.paragraph(bs, section)
	}
}

// before writes what a paragraph could say by itself and a table cannot.
func (x *docxWriter) before(b *placed) {
	if !b.pageBreak && !b.columnBreak && b.bookmark == 0 && b.before < 1 {
		return
	}
	x.out.WriteString(`<w:p><w:pPr>`)
	if b.pageBreak {
		x.out.WriteString(`<w:pageBreakBefore/>`)
	}
	fmt.Fprintf(x.out, `<w:spacing w:before="0" w:after="0" w:line="%d" w:lineRule="exact"/><w:rPr><w:sz w:val="2"/><w:szCs w:val="2"/></w:rPr></w:pPr>`, max(20, twips(min(b.before, 100))))
	if b.columnBreak {
		x.out.WriteString(`<w:r><w:br w:type="column"/></w:r>`)
	}
	x.bookmark(b)
	x.out.WriteString(`</w:p>`)
}

func (x *docxWriter) bookmark(b *placed) {
	if b.bookmark > 0 {
		x.marks++
		x.printf(`<w:bookmarkStart w:id="%d" w:name="page_%d"/><w:bookmarkEnd w:id="%d"/>`, x.marks, b.bookmark, x.marks)
	}
}

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
					t = x.unhyphen(w, t, lines[li+1])
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
func (x *docxWriter) unhyphen(w *word, text string, next *line) string {
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
	if x.d.hyphens[hyphenKey(whole)] {
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

// picture writes pictures that stand side by side.
func (x *docxWriter) picture(b *placed, s *section) {
	x.out.WriteString(`<w:p><w:pPr>`)
	if b.pageBreak {
		x.out.WriteString(`<w:pageBreakBefore/>`)
	}
	x.printf(`<w:spacing w:before="%d" w:after="0" w:line="240" w:lineRule="auto"/>`, twips(b.before))
	room := b.region.w()
	if len(s.columns) < 2 {
		room = max(room, s.w-s.margin.l-s.margin.r)
	}
	edge := b.region.l
	if len(s.columns) < 2 {
		edge = s.margin.l
	}
	left, right := b.l-edge, edge+room-b.r
	switch {
	case math.Abs(left-right) < 12 && left > 6:
		x.out.WriteString(`<w:jc w:val="center"/>`)
	case right < 6 && left > 20:
		x.out.WriteString(`<w:jc w:val="right"/>`)
	case left > 6:
		x.printf(`<w:ind w:left="%d"/>`, twips(min(left, 0.8*room)))
		room -= min(left, 0.8*room)
	}
	x.out.WriteString(`</w:pPr>`)
	if b.columnBreak {
		x.out.WriteString(`<w:r><w:br w:type="column"/></w:r>`)
	}
	x.bookmark(b)
	total := 0.0
	for _, p := range b.pictures {
		total += p.w()
	}
	scale := min(1, room/max(total, 1))
	high := s.h - s.margin.t - s.margin.b
	for i, p := range b.pictures {
		if i > 0 {
			x.out.WriteString(`<w:r><w:t xml:space="preserve"> </w:t></w:r>`)
		}
		k := min(scale, 0.98*high/max(p.h(), 1))
		x.drawing(p, k)
	}
	x.out.WriteString(`</w:p>`)
}

func (x *docxWriter) drawing(p *picture, scale float64) {
	m := p.media
	id, ok := x.mediaRel[m]
	if !ok {
		id = x.relate("image", strings.TrimPrefix(x.mediaName(m), "word/"), false)
		x.mediaRel[m], x.used[m] = id, true
	}
	x.pictures++
	n, cx, cy := x.pictures, max(1, emu(p.w()*scale)), max(1, emu(p.h()*scale))
	x.printf(`<w:r><w:drawing><wp:inline distT="0" distB="0" distL="0" distR="0"><wp:extent cx="%d" cy="%d"/><wp:docPr id="%d" name="Picture %d"`, cx, cy, n, n)
	if p.alt != "" {
		x.printf(` descr="%s"`, escape(p.alt))
	}
	x.out.WriteString(`/>`)
	x.printf(`<a:graphic><a:graphicData uri="%s"><pic:pic><pic:nvPicPr><pic:cNvPr id="%d" name="Picture %d"/><pic:cNvPicPr/></pic:nvPicPr>`, nsPic, n, n)
	x.printf(`<pic:blipFill><a:blip r:embed="%s"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>`, id)
	x.printf(`<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="%d" cy="%d"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>`, cx, cy)
}

// table writes a table.
func (x *docxWriter) table(t *table, s *section) {
	nx, ny := len(t.xs)-1, len(t.ys)-1
	width := t.xs[nx] - t.xs[0]
	edge := s.margin.l
	if n := len(s.columns); n > 1 {
		for _, c := range s.columns {
			if t.cx() >= c.l && t.cx() <= c.r {
				edge = c.l
			}
		}
	}
	left, right := t.sides()
	x.printf(`<w:tbl><w:tblPr><w:tblW w:w="%d" w:type="dxa"/><w:tblInd w:w="%d" w:type="dxa"/>`, twips(width), twips(max(t.l-edge, -edge+2)))
	if t.ruled {
		x.out.WriteString(`<w:tblBorders>`)
		for _, e := range []string{"top", "left", "bottom", "right", "insideH", "insideV"} {
			x.printf(`<w:%s w:val="single" w:sz="%d" w:space="0" w:color="%06X"/>`, e, min(max(2, int(math.Round(t.width*8))), 24), t.colour)
		}
		x.out.WriteString(`</w:tblBorders>`)
	}
	x.printf(`<w:tblLayout w:type="fixed"/><w:tblCellMar><w:left w:w="%d" w:type="dxa"/><w:right w:w="%d" w:type="dxa"/></w:tblCellMar></w:tblPr><w:tblGrid>`, twips(left), twips(right))
	for i := range nx {
		x.printf(`<w:gridCol w:w="%d"/>`, max(20, twips(t.xs[i+1]-t.xs[i])))
	}
	x.out.WriteString(`</w:tblGrid>`)
	grid := make([]*cell, nx*ny)
	for _, c := range t.cells {
		for y := c.row; y < c.row+c.rows; y++ {
			for k := c.col; k < c.col+c.cols; k++ {
				grid[y*nx+k] = c
			}
		}
	}
	for y := range ny {
		x.printf(`<w:tr><w:trPr><w:cantSplit/><w:trHeight w:val="%d" w:hRule="atLeast"/></w:trPr>`, max(20, twips(0.94*(t.ys[y+1]-t.ys[y]))))
		for k := 0; k < nx; {
			c := grid[y*nx+k]
			if c == nil {
				c = &cell{row: y, col: k, rows: 1, cols: 1}
			}
			cols := max(1, c.col+c.cols-k)
			x.printf(`<w:tc><w:tcPr><w:tcW w:w="%d" w:type="dxa"/>`, twips(t.xs[k+cols]-t.xs[k]))
			if cols > 1 {
				x.printf(`<w:gridSpan w:val="%d"/>`, cols)
			}
			if c.rows > 1 {
				if y == c.row {
					x.out.WriteString(`<w:vMerge w:val="restart"/>`)
				} else {
					x.out.WriteString(`<w:vMerge/>`)
				}
			}
			if c.shaded {
				x.printf(`<w:shd w:val="clear" w:color="auto" w:fill="%06X"/>`, c.shade)
			}
			switch c.turn {
			case 1:
				x.out.WriteString(`<w:textDirection w:val="tbRl"/>`)
			case 3:
				x.out.WriteString(`<w:textDirection w:val="btLr"/>`)
			}
			if y == c.row && len(c.blocks) > 0 && c.turn == 0 {
				top, bottom := c.blocks[0].t-c.t, c.b-c.blocks[len(c.blocks)-1].b
				switch {
				case top > bottom+6 && top > 2*bottom:
					x.out.WriteString(`<w:vAlign w:val="bottom"/>`)
				case top > 6 && math.Abs(top-bottom) < 5:
					x.out.WriteString(`<w:vAlign w:val="center"/>`)
				}
			}
			x.out.WriteString(`</w:tcPr>`)
			if y == c.row && len(c.blocks) > 0 {
				x.dark = c.shaded
				for _, b := range c.blocks {
					x.paragraph([]*placed{{block: c.inside(b, left, right)}}, "")
				}
				x.dark = false
			} else {
				x.out.WriteString(`<w:p><w:pPr><w:spacing w:before="0" w:after="0" w:line="20" w:lineRule="exact"/><w:rPr><w:sz w:val="2"/><w:szCs w:val="2"/></w:rPr></w:pPr></w:p>`)
			}
			x.out.WriteString(`</w:tc>`)
			k += cols
		}
		x.out.WriteString(`</w:tr>`)
	}
	x.out.WriteString(`</w:tbl>`)
}

// sides returns the margins of the cells of t: those that its text keeps, so
// that it has the room it had.
func (t *table) sides() (left, right float64) {
	const usual = 3.0
	var ls, rs []float64
	for _, c := range t.cells {
		if c.turn != 0 || len(c.blocks) == 0 {
			continue
		}
		l, r := math.Inf(1), math.Inf(1)
		for _, b := range c.blocks {
			l, r = min(l, b.l-c.l), min(r, c.r-b.r)
		}
		ls, rs = append(ls, l), append(rs, r)
	}
	margin := func(v []float64) float64 {
		if len(v) == 0 {
			return usual
		}
		slices.Sort(v)
		return min(max(0, v[len(v)/20]-0.3), usual)
	}
	return margin(ls), margin(rs)
}

// inside returns b as it is written in a cell with these margins.
func (c *cell) inside(b *block, left, right float64) *block {
	q := *b
	box := c.rect
	if c.turn != 0 {
		box = rect{0, 0, c.h(), c.w()}
		q.region = rect{0, 0, c.h(), c.w()}
		q.left, q.right, q.first = 0, 0, 0
		return &q
	}
	if q.align != alignCentre && q.align != alignRight {
		q.left = max(0, q.left+b.region.l-c.l-left)
	}
	if q.align == alignRight {
		q.right = max(0, c.r-right-b.r)
	}
	q.region = rect{c.l + left, c.t, c.r - right, c.b}
	q.tight = true
	if n := float64(len(q.lines)); n > 0 && q.linePitch()*n > box.h()-0.6 && len(c.blocks) == 1 {
		q.pitch = max((box.h()-0.6)/n, 0.95*q.lines[0].size) // rows may be as narrow as their text
	}
	return &q
}

// number returns the id of the list of an item.
func (x *docxWriter) number(it *listItem) int {
	def := x.lists[it.list]
	if def == nil {
		def = &listDef{num: len(x.nums) + 1}
		x.lists[it.list] = def
		x.nums = append(x.nums, def)
	}
	if def.levels[it.level] == nil {
		def.levels[it.level] = it
	}
	return def.num
}

// numbering writes the definitions of lists.
func (x *docxWriter) numbering() string {
	var b strings.Builder
	b.WriteString(xmlHead + `<w:numbering xmlns:w="` + nsMain + `">`)
	for _, d := range x.nums {
		fmt.Fprintf(&b, `<w:abstractNum w:abstractNumId="%d"><w:multiLevelType w:val="hybridMultilevel"/>`, d.num)
		for level := range d.levels {
			it := d.levels[level]
			if it == nil {
				it = &listItem{mark: mark{bullet: "•"}, text: 18 * float64(level+1), indent: 18 * float64(level)}
			}
			format, text, start := "bullet", it.bullet, 1
			if it.kind != bulletMarker {
				text = fmt.Sprintf("%s%%%d%s", it.before, level+1, it.after)
				start = it.value
				format = map[markerKind]string{
					decimalMarker: "decimal", lowerLetterMarker: "lowerLetter", upperLetterMarker: "upperLetter",
					lowerRomanMarker: "lowerRoman", upperRomanMarker: "upperRoman",
				}[it.kind]
			}
			fmt.Fprintf(&b, `<w:lvl w:ilvl="%d"><w:start w:val="%d"/><w:numFmt w:val="%s"/><w:lvlText w:val="%s"/><w:lvlJc w:val="left"/><w:pPr><w:ind w:left="%d" w:hanging="%d"/></w:pPr></w:lvl>`,
				level, start, format, escape(text), twips(it.text), max(0, twips(it.text-it.indent)))
		}
		b.WriteString(`</w:abstractNum>`)
	}
	for _, d := range x.nums {
		fmt.Fprintf(&b, `<w:num w:numId="%d"><w:abstractNumId w:val="%d"/></w:num>`, d.num, d.num)
	}
	b.WriteString(`</w:numbering>`)
	return b.String()
}

// headingStyles returns the style that most characters of each level have.
func (d *doc) headingStyles() (out [maxHeadingLevel + 1]*style) {
	counts := make([]map[style]int, maxHeadingLevel+1)
	most := make([]int, maxHeadingLevel+1)
	for _, s := range d.sections {
		for _, b := range s.blocks {
			if b.heading == 0 {
				continue
			}
			for _, l := range b.lines {
				for _, w := range l.words {
					for _, sp := range w.spans {
						st := style{font: sp.font, size: sp.size, colour: sp.colour}
						if counts[b.heading] == nil {
							counts[b.heading] = make(map[style]int)
						}
						counts[b.heading][st] += len(sp.text)
						if n := counts[b.heading][st]; n > most[b.heading] {
							most[b.heading] = n
							out[b.heading] = &st
						}
					}
				}
			}
		}
	}
	return out
}

// styles writes the styles: the body text as the default, headings, lists.
func (x *docxWriter) styles() string {
	var b strings.Builder
	size := x.d.body.size
	if size == 0 {
		size = 11
	}
	var body strings.Builder
	if f := x.d.body.font; f != nil && f.name != "" {
		body.WriteString(fontNames(f))
		body.WriteString(x.runProps(style{font: &font{bold: f.bold, italic: f.italic}, size: size}, style{size: size}, false))
		if p := x.d.scale(f); p != 100 {
			fmt.Fprintf(&body, `<w:w w:val="%d"/>`, p)
		}
	} else {
		body.WriteString(fontNames(&font{name: "Times New Roman"}))
	}
	fmt.Fprintf(&body, `<w:sz w:val="%d"/><w:szCs w:val="%d"/>`, halfPoints(size), halfPoints(size))
	b.WriteString(xmlHead + `<w:styles xmlns:w="` + nsMain + `"><w:docDefaults><w:rPrDefault><w:rPr>` + body.String() + `</w:rPr></w:rPrDefault>` +
		`<w:pPrDefault><w:pPr><w:widowControl w:val="0"/><w:autoSpaceDE w:val="0"/><w:autoSpaceDN w:val="0"/><w:spacing w:before="0" w:after="0"/></w:pPr></w:pPrDefault></w:docDefaults>` +
		`<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/><w:qFormat/></w:style>` +
		`<w:style w:type="character" w:default="1" w:styleId="DefaultParagraphFont"><w:name w:val="Default Paragraph Font"/></w:style>` +
		`<w:style w:type="table" w:default="1" w:styleId="TableNormal"><w:name w:val="Normal Table"/><w:tblPr><w:tblInd w:w="0" w:type="dxa"/><w:tblCellMar><w:left w:w="60" w:type="dxa"/><w:right w:w="60" w:type="dxa"/></w:tblCellMar></w:tblPr></w:style>` +
		`<w:style w:type="paragraph" w:styleId="ListParagraph"><w:name w:val="List Paragraph"/><w:basedOn w:val="Normal"/><w:qFormat/></w:style>`)
	for level := 1; level <= maxHeadingLevel; level++ {
		st := x.headings[level]
		if st == nil {
			continue
		}
		fmt.Fprintf(&b, `<w:style w:type="paragraph" w:styleId="Heading%d"><w:name w:val="heading %d"/><w:basedOn w:val="Normal"/><w:next w:val="Normal"/><w:qFormat/><w:pPr><w:keepNext/><w:outlineLvl w:val="%d"/></w:pPr><w:rPr>%s</w:rPr></w:style>`,
			level, level, level-1, x.runProps(*st, x.d.body, false))
	}
	b.WriteString(`</w:styles>`)
	return b.String()
}

func (x *docxWriter) settings() string {
	even := ""
	if x.d.evenOdd {
		even = `<w:evenAndOddHeaders/>`
	}
	return xmlHead + `<w:settings xmlns:w="` + nsMain + `">` + even +
		`<w:defaultTabStop w:val="720"/><w:characterSpacingControl w:val="doNotCompress"/>` +
		`<w:compat><w:compatSetting w:name="compatibilityMode" w:uri="http://schemas.microsoft.com/office/word" w:val="15"/></w:compat></w:settings>`
}

func (x *docxWriter) core() string {
	var b strings.Builder
	b.WriteString(xmlHead + `<cp:coreProperties xmlns:cp="` + nsPkg + `metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/">`)
	for _, p := range []struct{ name, value string }{{"dc:creator", x.d.info.author}, {"dc:subject", x.d.info.subject}, {"dc:title", x.d.info.title}} {
		if p.value != "" {
			fmt.Fprintf(&b, `<%s>%s</%s>`, p.name, escape(p.value), p.name)
		}
	}
	b.WriteString(`</cp:coreProperties>`)
	return b.String()
}

func (x *docxWriter) contentTypes() string {
	var b strings.Builder
	b.WriteString(xmlHead + `<Types xmlns="` + nsPkg + `content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/>` +
		`<Default Extension="jpg" ContentType="image/jpeg"/><Default Extension="png" ContentType="image/png"/>` +
		`<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>` +
		`<Override PartName="/word/document.xml" ContentType="` + mainDoc + `document.main+xml"/>`)
	for _, n := range []string{"styles", "numbering", "settings"} {
		fmt.Fprintf(&b, `<Override PartName="/word/%s.xml" ContentType="%s%s+xml"/>`, n, mainDoc, n)
	}
	for _, p := range x.parts {
		fmt.Fprintf(&b, `<Override PartName="/word/%s" ContentType="%s%s+xml"/>`, p.name, mainDoc, p.kind)
	}
	b.WriteString(`</Types>`)
	return b.String()
}
