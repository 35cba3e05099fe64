package extract

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// Types and flags of form fields and their annotations (fpdf_formfill.h; ISO
// 32000-1, tables 165, 221 and 230).
const (
	annotationWidget = 20

	widgetUnseen = 1<<0 | 1<<1 | 1<<5 // invisible, hidden, not for display

	fieldCheck  = 2
	fieldRadio  = 3
	fieldChoice = 4
	fieldText   = 6

	flagReadOnly = 1 << 0
	flagEdit     = 1 << 18
	flagPassword = 1 << 13
)

// Limits of form fields.
const (
	maxFields  = 2000 // on one page
	maxOptions = 500  // of one field
	maxBlanks  = 60   // characters of an empty field
	boxReach   = 2.5  // distance of the frame of a check box from the field, points
)

// fields reads the form fields of a page that people fill in.
func (x *Extractor) fields(p *pdfium.Page, view geom.Matrix) (out []*model.Field) {
	in := x.In
	form := uint64(0)
	for i := range min(in.Int("FPDFPage_GetAnnotCount", p.Ptr), maxFields) {
		annot := in.Call("FPDFPage_GetAnnot", p.Ptr, uint64(i))
		if in.Int("FPDFAnnot_GetSubtype", annot) == annotationWidget && in.Int("FPDFAnnot_GetFlags", annot)&widgetUnseen == 0 {
			if form == 0 {
				form = x.Doc.Fields()
			}
			if f := x.field(form, annot, view); f != nil {
				out = append(out, f)
			}
		}
		in.Call("FPDFPage_CloseAnnot", annot)
	}
	return out
}

// field reads a form field, or returns nil if people do not fill it in.
func (x *Extractor) field(form, annot uint64, view geom.Matrix) *model.Field {
	in := x.In
	f := new(model.Field)
	flags := in.Int("FPDFAnnot_GetFormFieldFlags", form, annot)
	switch in.Int("FPDFAnnot_GetFormFieldType", form, annot) {
	case fieldCheck:
		f.Kind = model.CheckField
	case fieldRadio:
		f.Kind = model.RadioField
	case fieldChoice:
		f.Kind = model.ChoiceField
		f.Editable = flags&flagEdit != 0
	case fieldText:
		if flags&flagPassword != 0 {
			return nil
		}
	default:
		return nil
	}
	if !in.Ok("FPDFAnnot_GetRect", annot, in.Arg(0)) {
		return nil
	}
	var r [4]float64
	in.OutFloats(r[:])
	if f.Rect = view.Rect(r[0], r[1], r[2], r[3]); f.W() < 3 || f.H() < 3 {
		return nil
	}
	text := func(function string, args ...uint64) string {
		return strings.ToValidUTF8(pdfium.Utf16String(in.WithBuffer(4096, func(b, n uint64) int {
			return in.Int(function, append(append([]uint64{form, annot}, args...), b, n)...)
		})), "")
	}
	f.Name, f.Label = text("FPDFAnnot_GetFormFieldName"), text("FPDFAnnot_GetFormFieldAlternateName")
	f.ReadOnly = flags&flagReadOnly != 0
	if f.Ticks() {
		f.Checked = in.Int("FPDFAnnot_IsChecked", form, annot) == 1
		return f
	}
	f.Value = text("FPDFAnnot_GetFormFieldValue")
	f.Undrawn = !in.HasKey(annot, "AP") || x.Doc.ViewerDraws()
	if f.Kind == model.ChoiceField {
		for i := range min(in.Int("FPDFAnnot_GetOptionCount", form, annot), maxOptions) {
			if o := text("FPDFAnnot_GetOptionLabel", uint64(i)); o != "" && !slices.Contains(f.Options, o) {
				f.Options = append(f.Options, o)
			}
		}
	}
	return f
}

// fillFields connects the words of s with its form fields. A field without words
// gets a blank one, and a check box one that shows its state. Dots and lines to
// write on are the content of an empty field.
func fillFields(s *model.Sheet) {
	page := geom.Rect{L: 0, T: 0, R: s.W, B: s.H}
	s.Fields = slices.DeleteFunc(s.Fields, func(f *model.Field) bool { return !page.Contains(f.CX(), f.CY()) })
	s.Fields = slices.DeleteFunc(s.Fields, func(f *model.Field) bool {
		var in []*model.Word
		for _, w := range s.Words {
			if w.Field == nil && f.Contains(w.CX(), w.CY()) {
				in = append(in, w)
			}
		}
		switch {
		case f.Ticks():
			tick(s, f, in)
			return false
		case len(in) > 0 && strings.TrimSpace(f.Value) == "":
			in = slices.DeleteFunc(in, func(w *model.Word) bool { return !w.Leader && !w.Line })
			for _, w := range in {
				w.Field = f // the dots or the line to write on, until someone does
			}
			return len(in) == 0 // the field is over printed text
		case len(in) > 0:
			for _, w := range in {
				w.Field = f
			}
			return false
		case slices.ContainsFunc(s.Words, func(w *model.Word) bool { return w.Intersect(f.Rect).Area() > 0.1*f.Area() }):
			return true
		}
		size := min(11, math.Round(1.4*f.H())/2)
		base := f.CY() + 0.35*size
		if f.H() > 2.5*size { // several lines
			base = f.T + 1.1*size
		}
		if f.Undrawn && strings.TrimSpace(f.Value) != "" {
			s.Words = append(s.Words, valueWords(f, base, size)...)
			return false
		}
		n := min(max(int(f.W()/(0.5*size)), 1), maxBlanks)
		w := &model.Word{Rect: geom.Rect{L: f.L, T: base - 0.8*size, R: f.R, B: base + 0.2*size}, Base: base, Size: size, Field: f}
		w.Spans = []model.Span{{Text: strings.Repeat(model.Blank, n), Style: model.Style{Size: size}}}
		s.Words = append(s.Words, w)
		return false
	})
}

// valueWords returns the words of a field that viewers draw themselves, from the base line of the
// first one. The size falls if a line would not fit into the field.
func valueWords(f *model.Field, base, size float64) (out []*model.Word) {
	const width, smallest = 0.5, 4 // of a character, of the size; points
	lines := strings.FieldsFunc(f.Value, func(r rune) bool { return r == '\r' || r == '\n' })
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); float64(n)*width*size > f.W() {
			size = max(smallest, f.W()/(width*float64(n)))
		}
	}
	for i, line := range lines {
		x, b := f.L, base+1.2*size*float64(i)
		for _, text := range strings.Fields(line) {
			w := width * size * float64(utf8.RuneCountInString(text))
			word := &model.Word{Rect: geom.Rect{L: x, T: b - 0.8*size, R: x + w, B: b + 0.2*size}, Base: b, Size: size, Field: f}
			word.Spans = []model.Span{{Text: text, Style: model.Style{Size: size}}}
			out = append(out, word)
			x += w + width*size
		}
	}
	return out
}

// dingbats maps the codes of the usual marks in ZapfDingbats (ISO 32000-1, D.6) to
// their characters.
var dingbats = map[string]string{"3": "✓", "4": "✔", "5": "✕", "6": "✖", "8": "✘", "l": "●", "n": "■", "u": "◆", "H": "★"}

// tick replaces the words in a check box or radio button.
func tick(s *model.Sheet, f *model.Field, in []*model.Word) {
	if len(in) == 1 && utf8.RuneCountInString(in[0].Text()) == 1 {
		f.Mark = in[0]
		if sp := &in[0].Spans[0]; dingbats[sp.Text] != "" && sp.Font != nil && strings.Contains(sp.Font.Name, "Dingbats") {
			sp.Text = dingbats[sp.Text]
		}
		f.Checked = f.Checked || !model.HasLetter(in[0].Text())
	}
	s.Words = slices.DeleteFunc(s.Words, func(w *model.Word) bool { return slices.Contains(in, w) })
	size := math.Round(2*min(f.H(), f.W())) / 2
	w := &model.Word{Rect: f.Rect, Base: f.CY() + 0.38*size, Size: size, Field: f}
	w.Spans = []model.Span{{Text: f.State(f.Checked), Style: model.Style{Size: size}}}
	s.Words = append(s.Words, w)
}

// dropFrames drops the drawn frames and marks of check boxes and radio buttons,
// which their words show.
func (w *walker) dropFrames() {
	s := w.sheet
	for _, f := range s.Fields {
		if !f.Ticks() {
			continue
		}
		box := f.Grow(boxReach)
		in := func(r geom.Rect) bool { return r.L >= box.L && r.T >= box.T && r.R <= box.R && r.B <= box.B }
		s.Rules = slices.DeleteFunc(s.Rules, func(r *model.Rule) bool { return in(r.Line()) })
		s.Fills = slices.DeleteFunc(s.Fills, func(f model.Fill) bool { return in(f.Rect) })
		w.curves = slices.DeleteFunc(w.curves, in)
		w.plots = slices.DeleteFunc(w.plots, in)
	}
}
