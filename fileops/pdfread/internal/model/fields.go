package model

import "github.com/filewright/filewright/fileops/pdfread/internal/geom"

// A FieldKind is a kind of form field that people fill in.
type FieldKind int

// Kinds of form fields.
const (
	TextField FieldKind = iota
	ChoiceField
	CheckField
	RadioField
)

// A Field is a form field on a page. Its words point to it; each field has at
// least one.
type Field struct {
	geom.Rect
	Kind     FieldKind
	Name     string   // unique in the file
	Label    string   // for people; may be ""
	Value    string   // of a text or choice field
	Options  []string // of a choice field
	Checked  bool     // of a check box or radio button
	Editable bool     // text other than the options is possible
	ReadOnly bool
	Undrawn  bool  // without a valid appearance: viewers draw the value
	Mark     *Word // the character in a check box or radio button; nil if there is none
}

// Ticks reports whether f is a check box or radio button.
func (f *Field) Ticks() bool { return f.Kind == CheckField || f.Kind == RadioField }

// SymbolFont is a font with ticks and similar marks. Programs that choose a font
// for these themselves may choose one of colour pictures.
const SymbolFont = "DejaVu Sans"

// Blank is the text of an empty field.
const Blank = "\u2002"

// State returns the character that shows a check box or radio button, as a box
// or circle with or without its mark.
func (f *Field) State(checked bool) string {
	switch {
	case f.Kind == RadioField && checked:
		return "◉"
	case f.Kind == RadioField:
		return "○"
	case checked:
		return "☒"
	}
	return "☐"
}

// Tick returns the mark that a checked box or circle has.
func (f *Field) Tick() string {
	switch {
	case f.Mark != nil:
		return f.Mark.Text()
	case f.Kind == RadioField:
		return "●"
	}
	return "✔"
}
