package excerpt

import (
	"maps"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A pruner removes resources that content does not use. Many producers give all
// pages the same resources, so that each page seems to need those of all.
type pruner struct {
	doc     *pdf.Document
	changed map[int]types.Object // forms with fewer resources, by object number
	seen    map[int]bool         // forms
}

func newPruner(d *pdf.Document) *pruner {
	return &pruner{doc: d, changed: make(map[int]types.Object), seen: make(map[int]bool)}
}

// page returns the resources that a page uses, or nil if that is unknown.
func (p *pruner) page(page types.Dict) types.Dict {
	b, complete := p.doc.Content(page["Contents"])
	if !complete {
		return nil
	}
	return p.used(b, p.doc.Dict(page["Resources"]), 0)
}

// used returns the resources that content uses, or nil if that is unknown. A name
// in the content counts as used in each kind of resource.
func (p *pruner) used(content []byte, resources types.Dict, depth int) types.Dict {
	if resources == nil || depth > 16 {
		return nil
	}
	kinds := make(map[string]types.Dict)
	out := make(types.Dict)
	for key, o := range resources {
		if kind := p.doc.Dict(o); kind != nil {
			kinds[key], out[key] = kind, types.Dict{}
		} else {
			out[key] = o
		}
	}
	known := true
	seen := make(map[string]bool)
	use := func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for key, kind := range kinds {
			if o := kind[name]; o != nil {
				out[key].(types.Dict)[name] = o
				known = known && p.resource(key, o, depth)
			}
		}
	}
	for _, implicit := range []string{"DefaultGray", "DefaultRGB", "DefaultCMYK"} {
		use(implicit)
	}
	lexer := pdf.NewLexer(content)
	for {
		switch t := lexer.Next(); {
		case t.Kind == pdf.TokenEnd:
			if !known {
				return nil
			}
			return out
		case t.Kind == pdf.TokenName:
			use(t.Text)
		case t.Kind == pdf.TokenOperator && t.Text == "ID":
			lexer.SkipInlineImage()
		}
	}
}

// resource prunes a used resource. It reports false if the resource uses those of
// the surrounding content.
func (p *pruner) resource(kind string, o types.Object, depth int) bool {
	d := p.doc
	switch dict := d.Dict(o); kind {
	case "XObject":
		return d.Name(dict["Subtype"]) != "Form" || p.form(o, depth)
	case "Pattern":
		return d.Integer(dict["PatternType"]) != 1 || p.form(o, depth)
	case "ExtGState":
		mask := d.Dict(dict["SMask"])
		return mask == nil || p.form(mask["G"], depth)
	case "Font":
		return d.Name(dict["Subtype"]) != "Type3" || d.Dict(dict["Resources"]) != nil
	}
	return true
}

// form prunes the resources of a form. It reports false if the form has none.
func (p *pruner) form(o types.Object, depth int) bool {
	s := p.doc.Stream(o)
	if s == nil {
		return true
	}
	resources := p.doc.Dict(s.Dict["Resources"])
	if resources == nil {
		return false
	}
	ref, ok := o.(types.IndirectRef)
	nr := ref.ObjectNumber.Value()
	if !ok || p.seen[nr] {
		return true
	}
	p.seen[nr] = true
	b, err := pdf.Decode(s)
	if err != nil {
		return true
	}
	if used := p.used(b, resources, depth+1); used != nil {
		pruned := *s
		pruned.Dict = maps.Clone(s.Dict)
		pruned.Dict["Resources"] = used
		p.changed[nr] = &pruned
	}
	return true
}
