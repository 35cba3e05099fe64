package pdfops

import (
	"context"
	"maps"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/appearance"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// A mergedForm is the interactive form of all documents (ISO 32000-2, 12.7.3).
type mergedForm struct {
	forms     int
	base      types.Dict // of the first document with a form
	fields    types.Array
	order     types.Array // calculation order
	resources types.Dict
	titles    map[string]bool // names of top-level fields
	maker     *appearance.Maker
	signed    bool
}

func newMergedForm(out *pdf.Document, fonts []string) *mergedForm {
	return &mergedForm{maker: appearance.New(out, fonts), resources: types.Dict{}, titles: make(map[string]bool)}
}

func (f *mergedForm) add(ctx context.Context, d *pdf.Document, form types.Dict) {
	fields := d.Array(form["Fields"])
	if form == nil {
		return
	}
	if f.forms++; f.base == nil {
		f.base = form
	}
	// A request to make appearances would hold for all documents, whose fonts a
	// viewer may lack.
	f.maker.Form(ctx, form)
	f.signed = f.signed || d.Integer(form["SigFlags"])&1 != 0
	f.order = append(f.order, d.Array(form["CO"])...)
	own := make(map[string]bool)
	for _, o := range fields {
		own[string(d.Text(d.Dict(o)["T"]))] = true
	}
	renamed := make(map[string]string)
	for _, o := range fields {
		field := d.Dict(o)
		if field == nil {
			continue
		}
		f.fields = append(f.fields, o)
		// Two fields with the same name would share one value.
		name := string(d.Text(field["T"]))
		if name != "" && f.titles[name] {
			to, ok := renamed[name]
			if !ok {
				to = unique(name, func(s string) bool { return f.titles[s] || own[s] })
				renamed[name] = to
			}
			field["T"] = types.NewHexLiteral(encodeLike(name, to))
		}
		// The form's defaults become attributes of each field.
		for _, key := range []string{"DA", "Q"} {
			if v := form[key]; v != nil && field[key] == nil {
				field[key] = v
			}
		}
	}
	for name := range own {
		if to, ok := renamed[name]; ok {
			name = to
		}
		f.titles[name] = true
	}
	f.addResources(d, d.Dict(form["DR"]))
}

// encodeLike returns to in the encoding of from: UTF-16 if from starts with a
// byte order mark. to is from with an ASCII suffix.
func encodeLike(from, to string) []byte {
	if len(from) < 2 || from[:2] != "\xfe\xff" {
		return []byte(to)
	}
	out := []byte(from)
	for _, c := range []byte(to[len(from):]) {
		out = append(out, 0, c)
	}
	return out
}

// addResources adds the default resources whose names are still free.
func (f *mergedForm) addResources(d *pdf.Document, resources types.Dict) {
	for _, kind := range slices.Sorted(maps.Keys(resources)) {
		switch v := d.Resolve(resources[kind]).(type) {
		case types.Dict:
			own, _ := f.resources[kind].(types.Dict)
			if own == nil {
				own = types.Dict{}
				f.resources[kind] = own
			}
			for name, r := range v {
				if own[name] == nil {
					own[name] = r
				}
			}
		default:
			if f.resources[kind] == nil {
				f.resources[kind] = v
			}
		}
	}
}

// dict returns the form. With several documents it drops signatures, which are
// void. It also drops an XFA form, which describes one document and would hide
// the fields of the others.
func (f *mergedForm) dict(several bool) types.Object {
	if f.forms == 0 {
		return nil
	}
	form := maps.Clone(f.base)
	form["Fields"] = f.fields
	for _, key := range []string{"CO", "DR"} {
		delete(form, key)
	}
	if len(f.order) > 0 {
		form["CO"] = f.order
	}
	if len(f.resources) > 0 {
		form["DR"] = f.resources
	}
	if several {
		delete(form, "XFA")
		delete(form, "SigFlags")
		if f.signed {
			form["SigFlags"] = types.Integer(1) // the form has signature fields
		}
	}
	return form
}

// mergedLayers joins the optional content groups of all documents (ISO 32000-2,
// 8.11.4). Without them, hidden content would be visible.
type mergedLayers struct {
	groups types.Array
	lists  map[string]types.Array // of the default configuration
	base   types.Dict
}

func newMergedLayers() *mergedLayers { return &mergedLayers{lists: make(map[string]types.Array)} }

func (l *mergedLayers) add(d *pdf.Document, properties types.Dict) {
	groups := d.Array(properties["OCGs"])
	if len(groups) == 0 {
		return
	}
	l.groups = append(l.groups, groups...)
	config := d.Dict(properties["D"])
	if l.base == nil {
		l.base = types.Dict{}
		for _, key := range []string{"Name", "Creator", "ListMode"} {
			if v := config[key]; v != nil {
				l.base[key] = v
			}
		}
	}
	for _, key := range []string{"ON", "OFF", "Order", "RBGroups", "Locked", "AS"} {
		l.lists[key] = append(l.lists[key], d.Array(config[key])...)
	}
	// "Everything is off except …" in one document becomes a list of groups.
	if d.Name(config["BaseState"]) == "OFF" {
		on := make(map[types.Object]bool)
		for _, g := range d.Array(config["ON"]) {
			if ref, ok := g.(types.IndirectRef); ok {
				on[ref] = true
			}
		}
		for _, g := range groups {
			if ref, ok := g.(types.IndirectRef); ok && !on[ref] {
				l.lists["OFF"] = append(l.lists["OFF"], ref)
			}
		}
	}
}

func (l *mergedLayers) dict() types.Object {
	if len(l.groups) == 0 {
		return nil
	}
	for key, a := range l.lists {
		if len(a) > 0 {
			l.base[key] = a
		}
	}
	return types.Dict{"OCGs": l.groups, "D": l.base}
}
