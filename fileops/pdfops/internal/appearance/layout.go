package appearance

import (
	"fmt"
	"math"
	"strings"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/fileops/pdfops/internal/typeset"
)

// A frame is the box of a widget, upright for its reader.
type frame struct {
	w, h   float64
	pad    float64     // distance of the text from the edge
	matrix types.Array // turns the box; nil if it is upright
	look   string      // operators that draw background and border
}

// frame returns the box of a widget with its background and border. It reports
// false for a widget without an area.
func (m *Maker) frame(dict types.Dict) (f frame, ok bool) {
	rect, ok := m.doc.Numbers(dict["Rect"], 4)
	if !ok {
		return f, false
	}
	f.w, f.h = math.Abs(rect[2]-rect[0]), math.Abs(rect[3]-rect[1])
	if !(f.w > 0 && f.h > 0 && f.w < 1e5 && f.h < 1e5) { // also if one is not a number
		return f, false
	}
	n := func(v float64) types.Float { return types.Float(v) }
	mk := m.doc.Dict(dict["MK"])
	switch w, h := f.w, f.h; ((m.doc.Integer(mk["R"])%360 + 360) % 360) / 90 {
	case 1:
		f.w, f.h, f.matrix = h, w, types.Array{n(0), n(1), n(-1), n(0), n(w), n(0)}
	case 2:
		f.matrix = types.Array{n(-1), n(0), n(0), n(-1), n(w), n(h)}
	case 3:
		f.w, f.h, f.matrix = h, w, types.Array{n(0), n(-1), n(1), n(0), n(0), n(h)}
	}
	width := 1.0
	if b := m.doc.Array(dict["Border"]); len(b) > 2 {
		width, _ = m.doc.Number(b[2])
	}
	bs := m.doc.Dict(dict["BS"])
	if v, ok := m.doc.Number(bs["W"]); ok {
		width = v
	}
	var look strings.Builder
	if c := m.colour(mk["BG"], "g", "rg", "k"); c != "" {
		look.WriteString(c + " 0 0 " + num(f.w) + " " + num(f.h) + " re f\n")
	}
	stroke := m.colour(mk["BC"], "G", "RG", "K")
	if stroke == "" || width < 0 || width > min(f.w, f.h)/2 {
		width = 0
	}
	if width > 0 {
		style := m.doc.Name(bs["S"])
		look.WriteString(stroke + " " + num(width) + " w ")
		if style == "D" {
			look.WriteString("[3] 0 d ")
		}
		if style == "U" {
			look.WriteString("0 " + num(width/2) + " m " + num(f.w) + " " + num(width/2) + " l S\n")
		} else {
			look.WriteString(num(width/2) + " " + num(width/2) + " " + num(f.w-width) + " " + num(f.h-width) + " re S\n")
		}
		if style == "B" || style == "I" {
			width *= 2
		}
	}
	f.look, f.pad = look.String(), max(2, 2*width)
	return f, true
}

// colour returns the operator that sets a colour, or "" for none.
func (m *Maker) colour(o types.Object, operators ...string) string {
	a := m.doc.Array(o)
	for i, n := range []int{1, 3, 4} {
		if v, ok := m.doc.Numbers(a, n); ok {
			s := ""
			for _, c := range v {
				s += num(c) + " "
			}
			return s + operators[i]
		}
	}
	return ""
}

// begin returns a content stream with background and border.
func (m *Maker) begin(box frame) *content {
	c := &content{fonts: types.Dict{}}
	if box.look != "" {
		c.printf("q\n%sQ\n", box.look)
	}
	return c
}

func (c *content) clip(box frame) {
	in := box.pad / 2
	c.printf("%s %s %s %s re W n\n", num(in), num(in), num(max(0, box.w-2*in)), num(max(0, box.h-2*in)))
}

// A style is the default appearance of a field.
type style struct {
	face   *face
	size   float64 // 0 means that it follows from the box
	colour string  // operator
}

// style parses the default appearance string (ISO 32000-2, 12.7.4.3).
func (m *Maker) style(attrs types.Dict) style {
	st := style{colour: "0 g"}
	da := m.doc.Text(attrs["DA"])
	if !m.spend(len(da)) {
		da = nil
	}
	l := pdf.NewLexer(da)
	var nums []float64
	name := ""
	for {
		t := l.Next()
		switch t.Kind {
		case pdf.TokenNumber:
			nums = append(nums, t.Num)
			continue
		case pdf.TokenName:
			name = t.Text
			continue
		case pdf.TokenEnd:
			if st.face == nil {
				st.face = m.helvetica()
			}
			return st
		}
		switch n := len(nums); {
		case t.Text == "Tf" && n > 0:
			st.face, st.size = m.face(m.fonts[name]), math.Abs(nums[n-1])
			if st.size > 1000 {
				st.size = 0
			}
		case t.Text == "g" && n == 1, t.Text == "rg" && n == 3, t.Text == "k" && n == 4:
			st.colour = ""
			for _, v := range nums {
				st.colour += num(v) + " "
			}
			st.colour += t.Text
		}
		nums, name = nums[:0], ""
	}
}

// A layout says how a text fills its box.
type layout struct {
	align int // 0 left, 1 centre, 2 right
	lines bool
	cells int // characters in equal cells; 0 means none
}

const leading = 1.15

// setText makes the appearance of a widget with a text.
func (m *Maker) setText(dict, attrs types.Dict, box frame, s string, l layout) {
	st := m.style(attrs)
	c := m.begin(box)
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	if !l.lines {
		s = strings.ReplaceAll(s, "\n", " ")
	}
	if len(s) > 1<<16 {
		s = strings.ToValidUTF8(s[:1<<16], "")
	}
	c.printf("/Tx BMC\nq\n")
	c.clip(box)
	if s != "" {
		switch {
		case l.cells > 0:
			m.combed(c, box, s, st, l.cells)
		case l.lines:
			m.paragraph(c, box, s, st, l)
		default:
			m.line(c, box, s, st, l)
		}
	}
	c.printf("Q\nEMC\n")
	m.finish(dict, box, c)
}

// line draws one line, centred vertically.
func (m *Maker) line(c *content, box frame, s string, st style, l layout) {
	runs := m.runs(s, st)
	wide := widthOf(runs)
	size := st.size
	if size == 0 {
		size = max(4, 0.67*(box.h-box.pad))
		if room := box.w - 2*box.pad; wide*size > room {
			size = max(4, room/wide)
		}
	}
	c.text(runs, st, size, aligned(box, wide*size, l.align), box.h/2-0.35*size)
}

func aligned(box frame, wide float64, align int) float64 {
	switch align {
	case 1:
		return (box.w - wide) / 2
	case 2:
		return box.w - box.pad - wide
	}
	return box.pad
}

// combed draws each character in the middle of its cell.
func (m *Maker) combed(c *content, box frame, s string, st style, cells int) {
	size := st.size
	if size == 0 {
		size = max(4, min(0.67*(box.h-box.pad), 1.2*box.w/float64(cells)))
	}
	for i, r := range []rune(s) {
		if i >= cells {
			break
		}
		one := m.runs(string(r), st)
		mid := (float64(i) + 0.5) * box.w / float64(cells)
		c.text(one, st, size, mid-widthOf(one)*size/2, box.h/2-0.35*size)
	}
}

// paragraph draws lines from the top, broken at spaces.
func (m *Maker) paragraph(c *content, box frame, s string, st style, l layout) {
	size := st.size
	lines := m.wrap(s, st, (box.w-2*box.pad)/max(size, 1))
	if size == 0 {
		for size = 12; size > 4; size-- {
			if lines = m.wrap(s, st, (box.w-2*box.pad)/size); float64(len(lines))*leading*size <= box.h-2*box.pad {
				break
			}
		}
	}
	y := box.h - box.pad - 0.8*size
	for _, line := range lines {
		if y < -size {
			break
		}
		c.text(line, st, size, aligned(box, widthOf(line)*size, l.align), y)
		y -= leading * size
	}
}

// wrap breaks a text into lines of at most the given width at size 1.
func (m *Maker) wrap(s string, st style, room float64) [][]run {
	var out [][]run
	for para := range strings.SplitSeq(s, "\n") {
		line, used := "", 0.0
		for word := range strings.SplitAfterSeq(para, " ") {
			w := widthOf(m.runs(strings.TrimRight(word, " "), st))
			if line != "" && used+w > room {
				out = append(out, m.runs(strings.TrimRight(line, " "), st))
				line, used = "", 0
			}
			line += word
			used += widthOf(m.runs(word, st))
		}
		out = append(out, m.runs(line, st))
	}
	return out
}

// A run is a part of a text in one font, or a shaped text.
type run struct {
	face   *face
	codes  []byte
	width  float64 // at size 1
	shaped *typeset.Line
	host   *typeset.Setter // of shaped
}

// runs divides a text by fonts. It drops characters that no font has.
func (m *Maker) runs(s string, st style) []run {
	out, missed := m.divide(s, st)
	if len(missed) == 0 {
		return out
	}
	if m.host == nil {
		m.host = typeset.New(m.doc, m.dirs)
	}
	if line, err := m.host.Line(s); err == nil && m.spend(10*len(s)) {
		return []run{{width: line.Width, shaped: &line, host: m.host}}
	}
	for _, r := range missed {
		m.missed[r] = true
	}
	return out
}

// divide divides a text by fonts. It also returns characters that no font has.
func (m *Maker) divide(s string, st style) (out []run, missed []rune) {
	for _, r := range s {
		if r == '\t' {
			r = ' '
		}
		f, code, wide := m.pick(r, st.face)
		if f == nil {
			if r >= ' ' {
				missed = append(missed, r)
			}
			continue
		}
		if n := len(out); n == 0 || out[n-1].face != f {
			out = append(out, run{face: f})
		}
		last := &out[len(out)-1]
		last.codes = append(last.codes, code...)
		last.width += wide
	}
	return out, missed
}

// pick returns the first font that has a character.
func (m *Maker) pick(r rune, first *face) (*face, []byte, float64) {
	if code, wide, ok := first.encode(r); ok {
		return first, code, wide
	}
	for _, f := range m.spare {
		if code, wide, ok := f.encode(r); ok {
			return f, code, wide
		}
	}
	return nil, nil, 0
}

func widthOf(runs []run) (w float64) {
	for _, r := range runs {
		w += r.width
	}
	return w
}

// text draws runs at a position.
func (c *content) text(runs []run, st style, size, x, y float64) {
	if len(runs) == 0 {
		return
	}
	c.printf("BT %s %s %s Td", st.colour, num(x), num(y))
	for _, r := range runs {
		if r.shaped != nil {
			c.buf = r.host.Append(append(c.buf, ' '), *r.shaped, size, func(font types.IndirectRef) string {
				name := fmt.Sprint("Host", font.ObjectNumber)
				c.fonts[name] = font
				return name
			})
			continue
		}
		c.fonts[r.face.name] = r.face.object()
		c.printf(" /%s %s Tf <%x> Tj", r.face.name, num(size), r.codes)
	}
	c.printf(" ET\n")
}

// shows reports whether an appearance shows as many characters as a text has,
// with or without its spaces.
func (m *Maker) shows(s *types.StreamDict, text string) bool {
	b, err := pdf.Decode(s)
	if err != nil || !m.spend(len(b)) {
		return false
	}
	fonts := m.doc.Dict(m.doc.Dict(s.Dict["Resources"])["Font"])
	shown, bytesEach := 0, 1
	l := pdf.NewLexer(b)
	name := ""
	var strs [][]byte
	for {
		t := l.Next()
		switch {
		case t.Kind == pdf.TokenEnd:
			all := len([]rune(text))
			return shown == all || shown == all-strings.Count(text, " ")-strings.Count(text, "\n")
		case t.Kind == pdf.TokenName:
			name = t.Text
		case t.Kind == pdf.TokenString:
			strs = append(strs, t.Raw)
		case t.Text == "Tf":
			bytesEach = 1
			if m.doc.Name(m.doc.Dict(fonts[name])["Subtype"]) == "Type0" {
				bytesEach = 2
			}
		case t.Text == "Tj", t.Text == "TJ", t.Text == "'", t.Text == `"`:
			for _, raw := range strs {
				shown += len(pdf.StringBytes(raw)) / bytesEach
			}
			strs = nil
		}
	}
}
