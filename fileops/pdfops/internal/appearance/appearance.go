// Package appearance draws the form fields of PDF documents: it makes appearance
// streams for widgets that have none, or whose document asks viewers to make
// them (ISO 32000-2, 12.7.4.3).
//
//	m := appearance.New(doc, typeset.HostFonts())
//	m.Form(doc.Dict(doc.Catalog()["AcroForm"]))
//	err := m.Finish()
//
// Text is drawn in the font of the field. Characters that this font lacks are
// drawn in an embedded one, in ZapfDingbats, or in a font of East Asia that
// viewers supply. A text with other characters is drawn in embedded fonts of the
// host, see package typeset.
package appearance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/fileops/pdfops/internal/typeset"
)

// A Maker makes the appearances of the forms of a document.
type Maker struct {
	doc    *pdf.Document
	spare  []*face // for characters that a field's font lacks
	latin  *embedded
	faces  map[types.Object]*face
	missed map[rune]bool
	dirs   []string // with fonts of the host
	host   *typeset.Setter

	// Of the current form.
	ctx   context.Context
	fonts types.Dict
	fresh bool // viewers were asked to make all appearances
	seen  map[int]bool

	work int // that is left, in characters, bytes and choices
}

// mostWork limits the work on all forms: many fields may share a long value.
const mostWork = 5_000_000

// spend takes n from the work that is left, and reports whether there was enough.
func (m *Maker) spend(n int) bool {
	m.work -= n + 1
	return m.work > 0 && m.ctx.Err() == nil
}

// New returns a maker for a document. dirs are directories with fonts of the host.
func New(d *pdf.Document, dirs []string) *Maker {
	m := &Maker{doc: d, dirs: dirs, faces: make(map[types.Object]*face), missed: make(map[rune]bool), work: mostWork, latin: &embedded{}}
	m.spare = append([]*face{m.latin.face(d), dingbats(d)}, eastern(d)...)
	return m
}

// Missed returns the number of different characters that no font has.
func (m *Maker) Missed() int { return len(m.missed) }

// inherited returns the attributes that fields inherit (ISO 32000-2, 12.7.4.1).
func inherited() []string {
	return []string{"FT", "Ff", "V", "DA", "Q", "MaxLen", "Opt", "TI", "I"}
}

// Form makes the appearances of an interactive form, and removes the request for
// them.
func (m *Maker) Form(ctx context.Context, form types.Dict) {
	if form == nil {
		return
	}
	m.ctx = ctx
	m.fonts = m.doc.Dict(m.doc.Dict(form["DR"])["Font"])
	m.fresh = m.doc.Boolean(form["NeedAppearances"])
	m.seen = make(map[int]bool)
	delete(form, "NeedAppearances")
	defaults := types.Dict{}
	for _, key := range []string{"DA", "Q"} {
		if v := form[key]; v != nil {
			defaults[key] = v
		}
	}
	for _, o := range m.doc.Array(form["Fields"]) {
		m.field(o, defaults, 0)
	}
	m.ctx = nil
}

func (m *Maker) field(o types.Object, above types.Dict, depth int) {
	dict := m.doc.Dict(o)
	if dict == nil || depth > 64 || !m.spend(0) {
		return
	}
	if ref, ok := o.(types.IndirectRef); ok {
		if m.seen[ref.ObjectNumber.Value()] {
			return
		}
		m.seen[ref.ObjectNumber.Value()] = true
	}
	attrs := maps.Clone(above)
	for _, key := range inherited() {
		if v := dict[key]; v != nil {
			attrs[key] = v
		}
	}
	if m.doc.Name(dict["Subtype"]) == "Widget" {
		m.widget(dict, attrs)
	}
	for _, kid := range m.doc.Array(dict["Kids"]) {
		m.field(kid, attrs, depth+1)
	}
}

// Field flags (ISO 32000-2, tables 228, 229, 230 and 232).
const (
	flagMultiline = 1 << 12
	flagPassword  = 1 << 13
	flagPush      = 1 << 16
	flagCombo     = 1 << 17
	flagComb      = 1 << 24
)

func (m *Maker) widget(dict, attrs types.Dict) {
	box, ok := m.frame(dict)
	if !ok {
		return
	}
	flags := m.doc.Integer(attrs["Ff"])
	normal := m.doc.Dict(dict["AP"])["N"]
	switch kind := m.doc.Name(attrs["FT"]); {
	case kind == "Btn" && flags&flagPush == 0:
		m.check(dict, attrs, box, normal)
	case kind == "Btn":
		if m.doc.Stream(normal) == nil {
			m.setText(dict, attrs, box, m.text(m.doc.Dict(dict["MK"])["CA"]), layout{align: 1})
		}
	case kind == "Tx":
		s := m.text(attrs["V"])
		l := layout{align: m.doc.Integer(attrs["Q"]), lines: flags&flagMultiline != 0}
		switch {
		case flags&flagPassword != 0:
			s = stars(s)
		case flags&flagComb != 0 && !l.lines:
			l.cells = m.doc.Integer(attrs["MaxLen"])
		}
		m.setValue(dict, attrs, box, s, l, normal)
	case kind == "Ch" && flags&flagCombo != 0:
		s := m.text(attrs["V"])
		for _, o := range m.options(attrs) {
			if o.export == s {
				s = o.shown
				break
			}
		}
		m.setValue(dict, attrs, box, s, layout{align: m.doc.Integer(attrs["Q"])}, normal)
	case kind == "Ch":
		m.list(dict, attrs, box, normal)
	}
}

// setValue draws the value of a field, unless the field has an appearance that
// need not or cannot be replaced.
func (m *Maker) setValue(dict, attrs types.Dict, box frame, s string, l layout, normal types.Object) {
	if old := m.doc.Stream(normal); old != nil {
		if !m.fresh {
			return
		}
		if font := m.style(attrs); s != "" && !font.face.covers(s) && m.shows(old, s) {
			return
		}
	}
	m.setText(dict, attrs, box, s, l)
}

type option struct{ export, shown string }

// options returns the choices of a field.
func (m *Maker) options(attrs types.Dict) []option {
	var out []option
	for _, o := range m.doc.Array(attrs["Opt"]) {
		if !m.spend(0) {
			break
		}
		if pair := m.doc.Array(o); len(pair) == 2 {
			out = append(out, option{m.text(pair[0]), m.text(pair[1])})
		} else {
			s := m.text(o)
			out = append(out, option{s, s})
		}
	}
	return out
}

// list draws a list of choices.
func (m *Maker) list(dict, attrs types.Dict, box frame, normal types.Object) {
	if m.doc.Stream(normal) != nil && !m.fresh {
		return
	}
	chosen := make(map[string]bool)
	values := m.doc.Array(attrs["V"])
	if values == nil && attrs["V"] != nil {
		values = types.Array{attrs["V"]}
	}
	for _, v := range values {
		chosen[m.text(v)] = true
	}
	st := m.style(attrs)
	size := st.size
	size = cmp.Or(max(size, 0), 12)
	c := m.begin(box)
	c.clip(box)
	all := m.options(attrs)
	all = all[min(max(0, m.doc.Integer(attrs["TI"])), len(all)):]
	y := box.h - box.pad
	for _, o := range all {
		if y <= 0 {
			break
		}
		if chosen[o.export] {
			c.printf("0.6 0.757 0.855 rg %s %s %s %s re f\n", num(box.pad/2), num(y-1.2*size), num(box.w-box.pad), num(1.2*size))
		}
		c.text(m.runs(o.shown, st), st, size, box.pad+1, y-0.95*size)
		y -= 1.2 * size
	}
	m.finish(dict, box, c)
}

// check makes the states of a check box or radio button, or chooses the state
// that matches the value.
func (m *Maker) check(dict, attrs types.Dict, box frame, normal types.Object) {
	value := m.doc.Name(attrs["V"])
	if states := m.doc.Dict(normal); len(states) > 0 && m.doc.Stream(normal) == nil {
		if m.fresh || dict["AS"] == nil {
			state := "Off"
			if states[value] != nil {
				state = value
			}
			dict["AS"] = types.Name(state)
		}
		return
	}
	on := m.doc.Name(dict["AS"])
	if on == "" || on == "Off" {
		if on = value; on == "" || on == "Off" {
			on = "Yes"
		}
	}
	st := style{face: m.spare[1], colour: "0 g"}
	if own := m.style(attrs); own.colour != "" {
		st.colour = own.colour
	}
	code := m.doc.Text(m.doc.Dict(dict["MK"])["CA"])
	if len(code) != 1 {
		code = []byte{'4'}
	}
	marked := m.begin(box)
	size := 0.8 * min(box.w, box.h)
	mark := run{face: st.face, codes: code, width: dingbatWidth(code[0])}
	marked.text([]run{mark}, st, size, (box.w-mark.width*size)/2, (box.h-0.7*size)/2)
	dict["AP"] = types.Dict{"N": types.Dict{
		on:    m.stream(box, marked),
		"Off": m.stream(box, m.begin(box)),
	}}
	state := "Off"
	if value == on || attrs["V"] == nil && m.doc.Name(dict["AS"]) == on {
		state = on
	}
	dict["AS"] = types.Name(state)
}

func stars(s string) string {
	return string(slices.Repeat([]rune{'*'}, len([]rune(s))))
}

func num(f float64) string {
	return string(pdf.AppendFloat(nil, float64(int64(f*1000))/1000))
}

// text returns a text string, or the content of a text stream.
func (m *Maker) text(o types.Object) string {
	if s := m.doc.Stream(o); s != nil {
		b, err := pdf.Decode(s)
		if err != nil || !m.spend(len(b)) {
			return ""
		}
		return pdf.Unicode(b)
	}
	if n := m.doc.Name(o); n != "" {
		return n
	}
	b := m.doc.Text(o)
	if !m.spend(len(b)) {
		return ""
	}
	return pdf.Unicode(b)
}

// finish sets the appearance of a widget.
func (m *Maker) finish(dict types.Dict, box frame, c *content) {
	ap := maps.Clone(m.doc.Dict(dict["AP"]))
	if ap == nil {
		ap = types.Dict{}
	}
	ap["N"] = m.stream(box, c)
	dict["AP"] = ap
	delete(dict, "AS")
}

func (m *Maker) stream(box frame, c *content) types.IndirectRef {
	dict := types.Dict{
		"Type": types.Name("XObject"), "Subtype": types.Name("Form"),
		"BBox":      types.Array{types.Integer(0), types.Integer(0), types.Float(box.w), types.Float(box.h)},
		"Resources": types.Dict{"Font": c.fonts},
	}
	if box.matrix != nil {
		dict["Matrix"] = box.matrix
	}
	ref := m.doc.AddStream(dict, nil)
	pdf.SetContent(m.doc.Stream(ref), pdf.Deflate(c.buf), types.PDFFilter{Name: "FlateDecode"})
	return ref
}

// content is a content stream with its fonts.
type content struct {
	buf   []byte
	fonts types.Dict
}

func (c *content) printf(format string, args ...any) { c.buf = fmt.Appendf(c.buf, format, args...) }
