package pdfops

import (
	"bytes"
	"maps"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// mergedTags joins the structure trees of all documents into one (ISO 32000-2,
// 14.7 and 14.8).
type mergedTags struct {
	root     types.Dict
	ref      types.IndirectRef // of root
	inputs   []tagged
	untagged bool // a document has no structure
	lang     []byte

	kids       types.Array
	parents    types.Array // numbers of content with the elements that it belongs to
	ids        map[string]types.Object
	classes    types.Dict
	namespaces map[string]types.IndirectRef
	lists      map[string]types.Array // of the root, concatenated
	marks      types.Dict
}

// tagged is the use of structure types in one document. Types with a namespace
// of their own are left out.
type tagged struct {
	roles map[string]string // the role map
	types map[string][]types.Dict
}

// An element is an element of a structure tree.
type element struct {
	types.Dict
	ref types.Object
}

func newMergedTags(out *pdf.Document) *mergedTags {
	root := types.Dict{"Type": types.Name("StructTreeRoot")}
	return &mergedTags{
		root: root, ref: out.Add(root),
		ids: make(map[string]types.Object), classes: types.Dict{}, namespaces: make(map[string]types.IndirectRef),
		lists: make(map[string]types.Array), marks: types.Dict{},
	}
}

// add adds the structure of a document with the objects kept.
func (t *mergedTags) add(d *pdf.Document, catalog types.Dict, kept map[int]types.Object) {
	lang := d.Text(catalog["Lang"])
	if t.lang == nil {
		t.lang = append([]byte{}, lang...) // of the first document, and so of the result
	}
	root := d.Dict(catalog["StructTreeRoot"])
	t.renumber(d, root, kept)
	if root == nil {
		t.untagged = true
		return
	}
	for key, v := range d.Dict(catalog["MarkInfo"]) {
		if d.Boolean(v) {
			t.marks[key] = types.Boolean(true)
		}
	}
	for _, kid := range list(d, root["K"]) {
		ref, ok := kid.(types.IndirectRef)
		dict := d.Dict(kid)
		if dict == nil {
			continue
		}
		if !ok {
			ref = d.Add(dict)
		}
		dict["P"] = t.ref
		if len(lang) > 0 && dict["Lang"] == nil && !bytes.Equal(lang, t.lang) {
			dict["Lang"] = types.NewHexLiteral(lang)
		}
		t.kids = append(t.kids, ref)
	}
	t.joinNamespaces(d, root, kept)
	elements := elementsOf(d, root)
	t.addIDs(d, elements, kept)
	t.addClasses(d, d.Dict(root["ClassMap"]), elements)
	for _, key := range []string{"AF", "PronunciationLexicon"} {
		t.lists[key] = append(t.lists[key], d.Array(root[key])...)
	}
	in := tagged{roles: make(map[string]string), types: make(map[string][]types.Dict)}
	for name, to := range d.Dict(root["RoleMap"]) {
		if to := d.Name(to); to != "" && to != name {
			in.roles[name] = to
		}
	}
	for _, e := range elements {
		if e.Dict["NS"] == nil {
			name := d.Name(e.Dict["S"])
			in.types[name] = append(in.types[name], e.Dict)
		}
	}
	t.inputs = append(t.inputs, in)
}

// list returns the elements of an array, or a single value as an array.
func list(d *pdf.Document, o types.Object) types.Array {
	switch v := d.Resolve(o).(type) {
	case nil:
		return nil
	case types.Array:
		return v
	}
	return types.Array{o}
}

// renumber gives the content of a document numbers in the common parent tree.
// Content that belongs to no element loses its number.
func (t *mergedTags) renumber(d *pdf.Document, root types.Dict, kept map[int]types.Object) {
	number := make(map[int]int)
	for _, e := range d.NumberTree(root["ParentTree"]) {
		if d.Resolve(e.Value) != nil {
			number[e.Key] = len(t.parents) / 2
			t.parents = append(t.parents, types.Integer(number[e.Key]), e.Value)
		}
	}
	for _, o := range kept {
		eachDict(o, func(v types.Dict) {
			for _, key := range []string{"StructParent", "StructParents"} {
				if v[key] == nil {
					continue
				}
				if nr, ok := number[d.Integer(v[key])]; ok {
					v[key] = types.Integer(nr)
				} else {
					delete(v, key)
				}
			}
		})
	}
}

// elementsOf returns all structure elements below the root of a structure tree.
func elementsOf(d *pdf.Document, root types.Dict) []element {
	var out []element
	seen := make(map[int]bool)
	stack := types.Array{root["K"]}
	for len(stack) > 0 {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if ref, ok := o.(types.IndirectRef); ok {
			if seen[ref.ObjectNumber.Value()] {
				continue
			}
			seen[ref.ObjectNumber.Value()] = true
		}
		switch v := d.Resolve(o).(type) {
		case types.Array:
			stack = append(stack, v...)
		case types.Dict:
			if v["S"] != nil {
				out = append(out, element{v, o})
				stack = append(stack, v["K"])
			}
		}
	}
	return out
}

// joinNamespaces lists the namespaces of a document. A namespace without a role
// map that another document has too is replaced by the other document's.
func (t *mergedTags) joinNamespaces(d *pdf.Document, root types.Dict, kept map[int]types.Object) {
	same := make(map[int]int)
	for _, o := range d.Array(root["Namespaces"]) {
		ref, ok := o.(types.IndirectRef)
		dict := d.Dict(o)
		if !ok || dict == nil {
			continue
		}
		name := string(d.Text(dict["NS"]))
		known, taken := t.namespaces[name]
		switch {
		case taken && dict["RoleMapNS"] == nil && dict["Schema"] == nil:
			same[ref.ObjectNumber.Value()] = known.ObjectNumber.Value()
			continue
		case !taken:
			t.namespaces[name] = ref
		}
		t.lists["Namespaces"] = append(t.lists["Namespaces"], ref)
	}
	if len(same) == 0 {
		return
	}
	for _, o := range kept {
		pdf.Replace(o, func(nr int) int {
			if to, ok := same[nr]; ok {
				return to
			}
			return nr
		})
	}
}

// addIDs lists the elements with an identifier, and renames identifiers that are
// taken.
func (t *mergedTags) addIDs(d *pdf.Document, elements []element, kept map[int]types.Object) {
	own := make(map[string]bool)
	for _, e := range elements {
		if id := d.Text(e.Dict["ID"]); id != nil {
			own[string(id)] = true
		}
	}
	renamed := make(map[string]string)
	for id := range own {
		if t.ids[id] != nil {
			renamed[id] = unique(id, func(s string) bool { return t.ids[s] != nil || own[s] })
		}
	}
	for _, e := range elements {
		id := d.Text(e.Dict["ID"])
		if id == nil {
			continue
		}
		if to, ok := renamed[string(id)]; ok {
			id = []byte(to)
			e.Dict["ID"] = types.NewHexLiteral(id)
		}
		if t.ids[string(id)] == nil {
			t.ids[string(id)] = e.ref
		}
	}
	if len(renamed) == 0 {
		return
	}
	rename := func(a types.Array) {
		for i, o := range a {
			if to, ok := renamed[string(d.Text(o))]; ok {
				a[i] = types.NewHexLiteral([]byte(to))
			}
		}
	}
	for _, o := range kept {
		eachDict(o, func(v types.Dict) {
			rename(d.Array(v["Headers"])) // of a table cell
			if to := d.Array(v["SD"]); len(to) > 0 {
				rename(to[:1]) // the destination of an action
			}
		})
	}
}

// addClasses joins the class maps, and renames classes that are taken.
func (t *mergedTags) addClasses(d *pdf.Document, classes types.Dict, elements []element) {
	renamed := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		to := name
		if have := t.classes[name]; have != nil && !bytes.Equal(pdf.AppendObject(nil, have), pdf.AppendObject(nil, classes[name])) {
			to = unique(name, func(s string) bool { return t.classes[s] != nil || classes[s] != nil })
			renamed[name] = to
		}
		t.classes[to] = classes[name]
	}
	if len(renamed) == 0 {
		return
	}
	for _, e := range elements {
		// An array may be shared, so it is copied.
		c := slices.Clone(list(d, e.Dict["C"]))
		for i, o := range c {
			if to, ok := renamed[d.Name(o)]; ok {
				c[i] = types.Name(to)
			}
		}
		if len(c) > 0 {
			e.Dict["C"] = c
		}
	}
}

// joinRoles joins the role maps. If a document uses a mapped type in another
// meaning than the documents before it, its mapped types are renamed.
func (t *mergedTags) joinRoles() types.Dict {
	unmapped := make(map[string]bool) // used as standard types
	for _, in := range t.inputs {
		for name := range in.types {
			if _, ok := in.roles[name]; !ok {
				unmapped[name] = true
			}
		}
		for _, name := range in.roles {
			if _, ok := in.roles[name]; !ok {
				unmapped[name] = true
			}
		}
	}
	out := types.Dict{}
	for _, in := range t.inputs {
		conflict := false
		for name, to := range in.roles {
			conflict = conflict || unmapped[name] || out[name] != nil && out[name] != types.Name(to)
		}
		renamed := make(map[string]string)
		for _, name := range slices.Sorted(maps.Keys(in.roles)) {
			renamed[name] = name
			if conflict && (unmapped[name] || out[name] != nil) {
				renamed[name] = unique(name, func(s string) bool { return unmapped[s] || out[s] != nil || in.roles[s] != "" })
			}
		}
		for name, to := range in.roles {
			if t, ok := renamed[to]; ok {
				to = t
			}
			out[renamed[name]] = types.Name(to)
			if renamed[name] != name {
				for _, e := range in.types[name] {
					e["S"] = types.Name(renamed[name])
				}
			}
		}
	}
	return out
}

// finish returns the entries of the catalog. They are nil if no document has a
// structure.
func (t *mergedTags) finish(d *pdf.Document) (root, marks types.Object) {
	if len(t.inputs) == 0 {
		return nil, nil
	}
	if t.untagged {
		t.marks["Suspects"] = types.Boolean(true) // not all content is tagged
	}
	t.root["K"] = t.kids
	t.root["ParentTree"] = d.AddNumberTree(t.parents)
	t.root["ParentTreeNextKey"] = types.Integer(len(t.parents) / 2)
	if len(t.ids) > 0 {
		t.root["IDTree"] = d.AddNameTree(t.ids)
	}
	for key, v := range map[string]types.Dict{"RoleMap": t.joinRoles(), "ClassMap": t.classes} {
		if len(v) > 0 {
			t.root[key] = v
		}
	}
	for key, a := range t.lists {
		if len(a) > 0 {
			t.root[key] = a
		}
	}
	return t.ref, orNil(t.marks)
}
