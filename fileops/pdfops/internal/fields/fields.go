// Package fields reads and sets the values of interactive forms (ISO 32000-2, 12.7).
//
//	form := fields.Read(doc, pages)
//	err := form.Set(map[string]any{"name": "Ada", "agree": true})
//
// It changes values and the states of buttons. Package appearance draws them: Set
// removes the appearances that show old values.
package fields

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// Flags of fields (ISO 32000-2, tables 227, 229, 232).
const (
	flagReadOnly = 1 << 0
	flagRadio    = 1 << 15
	flagPush     = 1 << 16
	flagCombo    = 1 << 17
	flagEdit     = 1 << 18
	flagMulti    = 1 << 21
)

const (
	maxDepth = 64
	maxNames = 10        // in a message
	maxWork  = 1_000_000 // kids, choices and bytes of values: many fields may share them
)

// errWork reports a form with more than maxWork.
var errWork = errors.New("belongs to a form that is too large")

// A Form holds the fields of a document.
type Form struct {
	doc    *pdf.Document
	fields []*field
	byName map[string][]*field
	work   int // that is left
}

// spend takes n from the work that is left, and reports whether there was enough.
func (f *Form) spend(n int) bool {
	f.work -= n + 1
	return f.work > 0
}

// A field is one without subfields. Its attributes include inherited ones.
type field struct {
	name    string
	dict    types.Dict
	attrs   types.Dict
	widgets []types.Dict
}

// Read returns the fields of a document. Fields that only the pages name are added to
// the form.
func Read(d *pdf.Document, pages []pdf.Page) *Form {
	f := &Form{doc: d, byName: make(map[string][]*field), work: maxWork}
	form := d.Dict(d.Catalog()["AcroForm"])
	if form == nil {
		return f
	}
	f.adopt(form, pages)
	seen := make(map[int]bool)
	for _, o := range d.Array(form["Fields"]) {
		f.read(o, "", types.Dict{}, seen, 0)
	}
	return f
}

// adopt adds fields to the form that have widgets on pages, but no place in it.
func (f *Form) adopt(form types.Dict, pages []pdf.Page) {
	d := f.doc
	known := make(map[int]bool)
	list := slices.Clone(d.Array(form["Fields"]))
	for _, o := range list {
		if ref, ok := o.(types.IndirectRef); ok {
			known[ref.ObjectNumber.Value()] = true
		}
	}
	for _, p := range pages {
		for _, o := range d.Array(p.Dict["Annots"]) {
			ref, ok := o.(types.IndirectRef)
			if !ok || d.Name(d.Dict(o)["Subtype"]) != "Widget" {
				continue
			}
			for range maxDepth {
				above, ok := d.Dict(ref)["Parent"].(types.IndirectRef)
				if !ok || d.Dict(above) == nil {
					break
				}
				ref = above
			}
			top := d.Dict(ref)
			if nr := ref.ObjectNumber.Value(); !known[nr] && top["T"] != nil && top["Parent"] == nil {
				known[nr] = true
				list = append(list, ref)
			}
		}
	}
	form["Fields"] = list
}

// inherited returns the attributes that fields inherit.
func inherited() []string { return []string{"FT", "Ff", "V", "MaxLen", "Opt"} }

func (f *Form) read(o types.Object, prefix string, above types.Dict, seen map[int]bool, depth int) {
	d := f.doc
	dict := d.Dict(o)
	if dict == nil || depth > maxDepth || !f.spend(0) {
		return
	}
	if ref, ok := o.(types.IndirectRef); ok {
		if seen[ref.ObjectNumber.Value()] {
			return
		}
		seen[ref.ObjectNumber.Value()] = true
	}
	name := prefix
	if t := d.Text(dict["T"]); t != nil {
		if name != "" {
			name += "."
		}
		name += pdf.Unicode(t)
	}
	attrs := maps.Clone(above)
	for _, key := range inherited() {
		if v := dict[key]; v != nil {
			attrs[key] = v
		}
	}
	one := &field{name: name, dict: dict, attrs: attrs}
	var below []types.Object
	for _, kid := range d.Array(dict["Kids"]) {
		if !f.spend(0) {
			break
		}
		k := d.Dict(kid)
		switch {
		case k == nil:
		case k["T"] != nil || k["Kids"] != nil:
			below = append(below, kid)
		default:
			one.widgets = append(one.widgets, k)
		}
	}
	if d.Name(dict["Subtype"]) == "Widget" {
		one.widgets = append(one.widgets, dict)
	}
	for _, kid := range below {
		f.read(kid, name, attrs, seen, depth+1)
	}
	if name != "" && len(below) == 0 && d.Name(attrs["FT"]) != "" {
		f.fields = append(f.fields, one)
		f.byName[name] = append(f.byName[name], one)
	}
}

// Names returns the full names of the fields that can have a value, sorted.
func (f *Form) Names() []string {
	var out []string
	for _, one := range f.fields {
		if kind := f.doc.Name(one.attrs["FT"]); kind != "Sig" && !(kind == "Btn" && f.flags(one)&flagPush != 0) {
			out = append(out, one.name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (f *Form) flags(one *field) int { return f.doc.Integer(one.attrs["Ff"]) }

// Scripted reports whether scripts calculate, check or format values of the fields that
// set names.
func (f *Form) Scripted(set map[string]any) bool {
	d := f.doc
	if len(d.Array(d.Dict(d.Catalog()["AcroForm"])["CO"])) > 0 {
		return true
	}
	for name := range set {
		for _, one := range f.byName[name] {
			for _, dict := range append(slices.Clone(one.widgets), one.dict) {
				actions := d.Dict(dict["AA"])
				for _, key := range []string{"C", "V", "F", "K"} {
					if actions[key] != nil {
						return true
					}
				}
			}
		}
	}
	return false
}

// Set sets the values of fields by their full names. A value is of a type of
// [json.Unmarshal]; nil empties a field. Either all values are set, or none and Set
// returns an error that says which names or values exist.
func (f *Form) Set(values map[string]any) error {
	var changes []func()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		found := f.byName[name]
		if found == nil {
			return fmt.Errorf("%q does not exist; the form has %s", name, list(f.Names()))
		}
		for _, one := range found {
			change, err := f.change(one, values[name])
			if err != nil {
				return fmt.Errorf("%q %w", name, err)
			}
			changes = append(changes, change)
		}
	}
	for _, change := range changes {
		change()
	}
	return nil
}

// list returns some names for a message.
func list(names []string) string {
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return cmp.Or(strings.Join(quoted, ", "), "none") + more
}

// change returns a function that sets the value of a field.
func (f *Form) change(one *field, value any) (func(), error) {
	d := f.doc
	flags := f.flags(one)
	kind := d.Name(one.attrs["FT"])
	switch {
	case kind == "Sig":
		return nil, errors.New("is a field for a signature")
	case kind == "Btn" && flags&flagPush != 0:
		return nil, errors.New("is a button without a value")
	case flags&flagReadOnly != 0:
		return nil, errors.New("is read-only")
	}
	switch kind {
	case "Tx":
		return f.text(one, value)
	case "Btn":
		return f.button(one, value, flags&flagRadio != 0)
	case "Ch":
		return f.choice(one, value, flags)
	}
	return nil, fmt.Errorf("is a field of the unknown type %q", kind)
}

// text sets a text field.
func (f *Form) text(one *field, value any) (func(), error) {
	s, ok := scalar(value)
	if !ok {
		return nil, errors.New("takes a text")
	}
	if most := f.doc.Integer(one.attrs["MaxLen"]); most > 0 && len([]rune(s)) > most {
		return nil, fmt.Errorf("takes at most %d characters, not %d", most, len([]rune(s)))
	}
	if !f.spend(len(s)) {
		return nil, errWork
	}
	return func() { f.store(one, pdf.TextString(s)) }, nil
}

// scalar returns a text or number as text. nil is the empty text.
func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// store sets the value of a field that shows it as text, and removes its appearances.
func (f *Form) store(one *field, value types.Object) {
	one.dict["V"] = value
	delete(one.dict, "RV") // rich text of the old value
	for _, w := range one.widgets {
		if _, own := w["T"]; !own {
			delete(w, "V")
		}
		ap := maps.Clone(f.doc.Dict(w["AP"]))
		delete(ap, "N")
		if w["AP"] = ap; len(ap) == 0 {
			delete(w, "AP")
		}
	}
}

// states returns the states of a button other than Off, by widget. A widget without
// appearances has "".
func (f *Form) states(one *field) []string {
	out := make([]string, len(one.widgets))
	for i, w := range one.widgets {
		normal := f.doc.Dict(w["AP"])["N"]
		if f.doc.Stream(normal) != nil {
			continue
		}
		for _, s := range slices.Sorted(maps.Keys(f.doc.Dict(normal))) {
			if s != "Off" {
				out[i] = s
				break
			}
		}
	}
	return out
}

// button sets a check box or a group of radio buttons.
func (f *Form) button(one *field, value any, radio bool) (func(), error) {
	if !f.spend(len(one.widgets)) {
		return nil, errWork
	}
	states := f.states(one)
	for i, s := range states {
		if s == "" && !radio {
			states[i] = "Yes"
		}
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(states)))
	distinct = slices.DeleteFunc(distinct, func(s string) bool { return s == "" })
	exports := f.doc.Array(one.attrs["Opt"])
	export := func(i int) string {
		if i < len(exports) {
			return pdf.Unicode(f.doc.Text(exports[i]))
		}
		return ""
	}
	var names []string
	for _, s := range distinct {
		names = append(names, readable(s))
	}
	for i := range states {
		if s := export(i); s != "" && !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	chosen := ""
	switch v := value.(type) {
	case nil:
		chosen = "Off"
	case bool:
		switch {
		case !v:
			chosen = "Off"
		case len(distinct) == 1:
			chosen = distinct[0]
		default:
			return nil, fmt.Errorf("takes one of %s", list(names))
		}
	default:
		s, ok := scalar(v)
		if !ok {
			return nil, fmt.Errorf("takes true, false or one of %s", list(names))
		}
		if s == "Off" || slices.Contains(distinct, s) {
			chosen = s
			break
		}
		for i, state := range states {
			if state != "" && (export(i) == s || readable(state) == s) {
				chosen = state
			}
		}
		if chosen == "" {
			return nil, fmt.Errorf("has no value %q; it takes one of %s", s, list(append(names, "Off")))
		}
	}
	return func() {
		one.dict["V"] = types.Name(chosen)
		for i, w := range one.widgets {
			if _, own := w["T"]; !own {
				delete(w, "V")
			}
			w["AS"] = types.Name("Off")
			if states[i] == chosen {
				w["AS"] = types.Name(chosen)
			}
		}
	}, nil
}

// readable returns the text of a state. Some programs write the number signs of an encoded
// name as characters.
func readable(state string) string {
	if s, err := types.DecodeName(state); err == nil && utf8.ValidString(s) {
		return s
	}
	return state
}

// choice sets a list or a combo box.
func (f *Form) choice(one *field, value any, flags int) (func(), error) {
	d := f.doc
	var exports, shown []string
	var originals types.Array // of exports
	options := d.Array(one.attrs["Opt"])
	if value == nil {
		options = nil // not needed
	}
	if !f.spend(len(options)) {
		return nil, errWork
	}
	for _, o := range options {
		a, b := o, o
		if pair := d.Array(o); len(pair) == 2 {
			a, b = pair[0], pair[1]
		}
		originals = append(originals, d.Resolve(a))
		exports, shown = append(exports, pdf.Unicode(d.Text(a))), append(shown, pdf.Unicode(d.Text(b)))
	}
	var wanted types.Array
	many, ok := value.([]any)
	if !ok && value != nil {
		many = []any{value}
	}
	if len(many) > 1 && flags&flagMulti == 0 {
		return nil, errors.New("takes one value only")
	}
	indexes := make(map[int]bool)
	for _, v := range many {
		s, ok := scalar(v)
		if !ok {
			return nil, errors.New("takes a text or a list of texts")
		}
		i := slices.Index(exports, s)
		if i < 0 {
			i = slices.Index(shown, s)
		}
		switch {
		case i >= 0:
			indexes[i] = true
			wanted = append(wanted, originals[i])
		case flags&flagCombo == 0 || flags&flagEdit == 0:
			return nil, fmt.Errorf("has no value %q; it takes one of %s", s, list(exports))
		default:
			wanted = append(wanted, pdf.TextString(s))
		}
	}
	return func() {
		switch len(wanted) {
		case 0:
			f.store(one, nil)
			delete(one.dict, "V")
		case 1:
			f.store(one, wanted[0])
		default:
			f.store(one, wanted)
		}
		delete(one.dict, "I")
		if flags&flagCombo == 0 && len(indexes) > 0 {
			var sorted types.Array
			for _, i := range slices.Sorted(maps.Keys(indexes)) {
				sorted = append(sorted, types.Integer(i))
			}
			one.dict["I"] = sorted
			for _, dict := range append(slices.Clone(one.widgets), one.dict) {
				delete(dict, "TI") // the chosen values may be above the first visible one
			}
		}
	}, nil
}
