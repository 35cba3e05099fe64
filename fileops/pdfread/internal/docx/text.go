package docx

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/layout"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

// baseStyle returns the style of a paragraph, which its runs may override.
func (x *writer) baseStyle(b *model.Block) model.Style {
	if b.Heading > 0 && x.headings[b.Heading] != nil {
		return *x.headings[b.Heading]
	}
	return x.d.Body
}

// paragraph writes blocks as one paragraph.
func (x *writer) paragraph(bs []*model.Placed, section string) {
	b := bs[0]
	base := x.baseStyle(b.Block)
	stops := tabStops(b.Block)
	hanging := b.List == nil && len(b.Lines) > 1 && b.First < 0 && layout.HangsAfterTab(b.Lines[0], b.Lines[1])
	if hanging { // the indent is a tab stop
		stops = []tabStop{{kind: "left", pos: b.Left}}
	}
	x.out.WriteString(`<w:p>`)
	x.paragraphProps(b, stops, section)
	if b.ColumnBreak {
		x.out.WriteString(`<w:r><w:br w:type="column"/></w:r>`)
	}
	x.bookmark(b)
	if b.Mark > 0 {
		x.marks++
		x.printf(`<w:bookmarkStart w:id="%d" w:name="%s"/><w:bookmarkEnd w:id="%d"/>`, x.marks, headingMark(b.Mark), x.marks)
	}
	x.out.WriteString(x.lead)
	x.lead = ""
	var lines []*model.Line
	clear(x.breaks)
	for i, p := range bs {
		if i > 0 && p.Continues && len(p.Lines) > 0 {
			x.breaks[p.Lines[0]] = p
		}
		lines = append(lines, p.Lines...)
	}
	x.narrow = x.narrowing(b, lines, stops, hanging)
	x.text(lines, b.Block, base, stops)
	x.narrow = 0
	x.out.WriteString(`</w:p>`)
}

// paragraphProps writes the properties of a paragraph, and of a section that ends with it.
func (x *writer) paragraphProps(b *model.Placed, stops []tabStop, section string) {
	rtl := len(b.Lines) > 0 && len(b.Lines[0].Words) > 0 && b.Lines[0].Words[0].RTL
	x.out.WriteString(`<w:pPr>`)
	if b.Heading > 0 {
		x.printf(`<w:pStyle w:val="Heading%d"/><w:keepNext/>`, b.Heading)
	} else if b.List != nil {
		x.out.WriteString(`<w:pStyle w:val="ListParagraph"/>`)
	}
	if b.PageBreak || b.Continues {
		x.out.WriteString(`<w:pageBreakBefore/>`)
	}
	if b.List != nil {
		x.printf(`<w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr>`, b.List.Level, x.number(b.List))
	}
	if len(stops) > 0 {
		x.out.WriteString(`<w:tabs>`)
		for _, t := range stops {
			x.printf(`<w:tab w:val="%s"%s w:pos="%d"/>`, t.kind, t.leader, twips(t.pos))
		}
		x.out.WriteString(`</w:tabs>`)
	}
	if rtl {
		x.out.WriteString(`<w:bidi/>`)
	}
	if len(b.Lines) > 0 {
		pitch, before := b.LinePitch(), b.Before
		if b.Block == x.moved {
			before = 0
		}
		x.printf(`<w:spacing w:before="%d" w:after="%d" w:line="%d" w:lineRule="exact"/>`, twips(before), twips(x.after), max(20, twips(pitch)))
	}
	x.indent(b.Block, rtl)
	switch {
	case b.Align == model.AlignCentre:
		x.out.WriteString(`<w:jc w:val="center"/>`)
	case b.Align == model.AlignJustify:
		x.out.WriteString(`<w:jc w:val="both"/>`)
	case b.Align == model.AlignRight && !rtl:
		x.out.WriteString(`<w:jc w:val="right"/>`)
	case b.Heading > 0:
		x.out.WriteString(`<w:jc w:val="left"/>`)
	}
	x.out.WriteString(section + `</w:pPr>`)
}

// narrowing returns the width of the characters of a paragraph in per cent, 0 for 100, so that its lines
// wrap where those of the PDF do.
func (x *writer) narrowing(b *model.Placed, lines []*model.Line, stops []tabStop, hanging bool) int {
	switch {
	case len(stops) == 0 || hanging:
		left := b.Left + max(0, b.First)
		if b.List != nil {
			left = b.List.Indent
		}
		narrow := x.d.Squeeze(lines, b.Region.W()-left-b.Right, b.Tight)
		switch {
		case b.Tight || len(x.breaks) > 0:
		case b.List != nil:
			narrow = min(narrow, x.d.Wrap(unmarked(lines), b.Region.W()-b.List.Text-b.Right, 0))
		default:
			narrow = min(narrow, x.d.Wrap(lines, b.Region.W()-b.Left-b.Right, b.First))
		}
		return narrow
	case stops[len(stops)-1].kind == "left": // what follows the last tab must not wrap
		l := b.Lines[0]
		i := len(l.Words) - 1
		for ; i > 0 && !layout.WideGap(l, i); i-- {
		}
		return x.d.Squeeze([]*model.Line{model.NewLine(slices.Clone(l.Words[i:]))}, b.Region.W()-stops[len(stops)-1].pos, b.Tight)
	}
	return 0
}

// unmarked returns the lines of a list item without its marker, which the list supplies.
func unmarked(lines []*model.Line) []*model.Line {
	first := *lines[0]
	first.Words = first.Words[1:]
	return append([]*model.Line{&first}, lines[1:]...)
}

func (x *writer) indent(b *model.Block, rtl bool) {
	left, right, first := b.Left, b.Right, b.First
	if b.List != nil {
		left, first = b.List.Text, b.List.Indent-b.List.Text
	}
	if b.Align == model.AlignCentre {
		left, right, first = 0, b.Right, 0
	}
	if rtl {
		left, right = right, left // start and end
		first = 0
	}
	if geom.Abs(left)+geom.Abs(right)+geom.Abs(first) < 1 {
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
	kind   string
	pos    float64
	leader string // attribute that fills the space; "" if it stays empty
}

// tabStops returns the positions of the words after wide gaps in a single line.
func tabStops(b *model.Block) []tabStop {
	if n := len(b.Lines); n > 1 && layout.Leader(b.Lines[n-1]) > 0 {
		return []tabStop{leaderStop(b, b.Lines[n-1])}
	}
	if len(b.Lines) != 1 || b.List != nil || b.Align == model.AlignCentre {
		return nil
	}
	l := b.Lines[0]
	at := layout.Leader(l)
	var out []tabStop
	for i := 1; i < len(l.Words); i++ {
		w := l.Words[i]
		if at > 0 && i >= at {
			return append(out, leaderStop(b, l))
		}
		if !layout.TabGap(l, i) {
			continue
		}
		t := tabStop{kind: "left", pos: w.L - b.Region.L}
		if i == len(l.Words)-1 && w.R > b.Region.R-3 {
			t = tabStop{kind: "right", pos: b.Region.R - b.Region.L}
		}
		if n := len(out); n == 0 || t.pos > out[n-1].pos+1 {
			out = append(out, t)
		}
	}
	return out
}

// leaderStop returns the tab stop of the page number in l, an entry of a contents
// list.
func leaderStop(b *model.Block, l *model.Line) tabStop {
	return tabStop{kind: "right", pos: min(l.R, b.Region.R) - b.Region.L, leader: ` w:leader="dot"`}
}

// text writes the words of a paragraph.
func (x *writer) text(lines []*model.Line, b *model.Block, base model.Style, stops []tabStop) {
	t := &inline{writer: x, base: base}
	first := true
	var last model.Style
	for li, l := range lines {
		if p := x.breaks[l]; p != nil {
			t.control(nil, base)
			t.end()
			x.out.WriteString(`<w:r><w:br w:type="page"/></w:r>`)
			x.bookmark(p)
		}
		words := l.Words
		if li == 0 && b.List != nil {
			words = words[1:] // the list supplies the marker
		}
		leader := 0 // the dots, which a tab replaces
		if len(stops) > 0 {
			if leader = layout.Leader(l); leader > 0 {
				leader -= len(l.Words) - len(words)
			}
		}
		for i, w := range words {
			if leader > 0 && i == leader {
				continue
			}
			sep := ""
			switch {
			case i == 0 && x.breaks[l] != nil:
			case first:
			case leader > 0 && i == leader+1:
				sep = "\t"
			case i == 0 && li > 0:
				sep = model.LineJoint(lines[li-1], l)
			case len(stops) > 0 && li == 0 && layout.TabGap(l, i):
				sep = "\t"
			case i == 0 || !w.Glued:
				sep = " "
			}
			first = false
			var next *model.Line // at whose start the word may continue
			if i == len(words)-1 && li+1 < len(lines) && x.breaks[lines[li+1]] == nil {
				next = lines[li+1]
			}
			last = t.word(w, sep, last, next)
		}
	}
	if !x.goesOn {
		t.control(nil, base)
	}
	t.end()
}

// An inline writes the content of a paragraph: runs of one style, links and controls of fields.
type inline struct {
	*writer
	base model.Style
	open int // currently open link; 0 if there is none

	pending strings.Builder // the text of the next run
	style   model.Style     // of pending
}

// word writes a word after a separator, and returns the style of its end. last is that of the text before
// it. next is the line after it if the word ends a line, or nil.
func (t *inline) word(w *model.Word, sep string, last model.Style, next *model.Line) model.Style {
	if w.Field != t.field {
		t.control(nil, t.base)
	}
	for k, sp := range w.Spans {
		st := sp.Style
		if st.Raise != 0 {
			st.Size = w.Size
		}
		if k == 0 && sep != "" {
			t.put(sep, spaceStyle(last, st, t.base))
		}
		t.control(w.Field, st)
		last = st
		if w.IsReference(&sp) {
			t.end()
			t.reference(w.Note, w.Size)
			continue
		}
		text := sp.Text
		if k == len(w.Spans)-1 && next != nil {
			text = t.d.Unhyphen(w, text, next)
		}
		t.put(text, st)
	}
	return last
}

// put writes text in a style. The run ends when the style changes.
func (t *inline) put(text string, st model.Style) {
	if t.field != nil || st.Link != t.open && t.link(st.Link) == "" {
		st.Link = 0
	}
	if st.Link != t.open || t.pending.Len() > 0 && st != t.style {
		t.flush()
	}
	if st.Link != t.open {
		t.closeLink()
		t.out.WriteString(t.link(st.Link))
		t.open = st.Link
	}
	t.style = st
	t.pending.WriteString(text)
}

// control opens the control of f, unless it is nil, and closes that of another field.
func (t *inline) control(f *model.Field, st model.Style) {
	if f == t.field {
		return
	}
	t.end()
	if t.field != nil {
		t.out.WriteString(`</w:sdtContent></w:sdt>`)
	}
	if t.field = f; f != nil {
		t.writer.control(f, t.runProps(st, t.base, false) == "")
	}
}

// end ends the run and the link.
func (t *inline) end() {
	t.flush()
	t.closeLink()
}

func (t *inline) flush() {
	if t.pending.Len() > 0 {
		t.run(t.pending.String(), t.style, &t.base)
		t.pending.Reset()
	}
}

func (t *inline) closeLink() {
	if t.open > 0 {
		t.out.WriteString(`</w:hyperlink>`)
		t.open = 0
	}
}

// spaceStyle returns the style of the space between two words: that of the
// plainer word, so that emphasis starts and ends with a word.
func spaceStyle(a, b, base model.Style) model.Style {
	if a == b {
		return a
	}
	like := func(s model.Style) bool {
		return s == model.Style{Font: base.Font, Size: s.Size, Colour: base.Colour}
	}
	switch {
	case like(a):
		return a
	case like(b):
		return b
	}
	a.Link, a.Frame, a.Underline, a.Strike, a.Raise = 0, 0, false, false, 0
	return a
}

// link returns the start tag of a hyperlink, or "" if the link has no target.
func (x *writer) link(index int) string {
	if index == 0 || x.leaf == nil || index > len(x.leaf.Links) {
		return ""
	}
	l := x.leaf.Links[index-1]
	if l.URI != "" {
		id, ok := x.links[l.URI]
		if !ok {
			id = x.relate("hyperlink", l.URI, true)
			x.links[l.URI] = id
		}
		return `<w:hyperlink r:id="` + id + `">`
	}
	if x.d.Leaves[l.Page] == nil {
		return ""
	}
	if l.Mark > 0 {
		return fmt.Sprintf(`<w:hyperlink w:anchor="%s">`, headingMark(l.Mark))
	}
	return fmt.Sprintf(`<w:hyperlink w:anchor="page_%d">`, l.Page)
}

// headingMark returns the name of the bookmark of a heading, as Word chooses it.
func headingMark(n int) string { return fmt.Sprintf("_Toc%08d", n) }

// run writes text of one style. base is the style of the paragraph; nil means
// that of the document.
func (x *writer) run(text string, st model.Style, base *model.Style) {
	if text == "" {
		return
	}
	if base == nil {
		base = &x.d.Body
	}
	rtl := strings.ContainsFunc(text, model.IsRTL)
	if nearWhite(st.Colour) && !x.dark {
		st.Colour = 0 // the dark background behind it is missing here
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
			x.out.WriteString(`<w:t xml:space="preserve">` + ooxml.Escape(piece) + `</w:t>`)
		}
	}
	x.out.WriteString(`</w:r>`)
}

func nearWhite(c uint32) bool { return c>>16 > 0xe0 && c>>8&255 > 0xe0 && c&255 > 0xe0 }

// fontNames returns the element that sets a font. The original name applies to
// scripts that the stand-in font lacks.
func fontNames(f *model.Font) string {
	latin, other := ooxml.Escape(cmp.Or(f.Latin, f.Name)), ooxml.Escape(f.Name)
	return fmt.Sprintf(`<w:rFonts w:ascii="%s" w:hAnsi="%s" w:eastAsia="%s" w:cs="%s"/>`, latin, latin, other, other)
}

// runProps returns the properties of a run that differ from base.
func (x *writer) runProps(st, base model.Style, rtl bool) string {
	var b strings.Builder
	f, g := st.Font, base.Font
	if f == nil {
		f = &model.Font{}
	}
	if g == nil {
		g = &model.Font{}
	}
	if f.Name != g.Name && f.Name != "" {
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
	onOff(f.Bold, g.Bold, "b", "bCs")
	onOff(f.Italic, g.Italic, "i", "iCs")
	if st.Strike {
		b.WriteString(`<w:strike/>`)
	}
	if st.Colour != base.Colour {
		fmt.Fprintf(&b, `<w:color w:val="%06X"/>`, st.Colour)
	}
	if is, def := x.width(st.Font), x.d.Scale(base.Font); is != def {
		fmt.Fprintf(&b, `<w:w w:val="%d"/>`, is)
	}
	if halfPoints(st.Size) != halfPoints(base.Size) {
		n := halfPoints(st.Size)
		fmt.Fprintf(&b, `<w:sz w:val="%d"/><w:szCs w:val="%d"/>`, n, n)
	}
	if st.Underline {
		b.WriteString(`<w:u w:val="single"/>`)
	}
	if st.Frame != 0 {
		fmt.Fprintf(&b, `<w:bdr w:val="single" w:sz="6" w:space="0" w:color="%06X"/>`, st.Frame&0xffffff)
	}
	switch st.Raise {
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

// width returns the character width of f in the current paragraph, in per cent.
func (x *writer) width(f *model.Font) int {
	p := x.d.Scale(f)
	if x.narrow > 0 {
		p = p * x.narrow / 100
	}
	return max(p, 1)
}

func halfPoints(size float64) int { return min(max(2, int(math.Round(size*2))), 3276) }
