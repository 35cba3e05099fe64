package excerpt

import (
	"maps"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// tags is the structure of a document (ISO 32000-2, 14.7).
type tags struct {
	root     types.Dict
	rootNr   int // 0 if the root is a direct object
	kids     []kid
	elements map[int]*element // by object number
	parents  map[int]types.Object
}

// An element is an element of the structure tree.
type element struct {
	nr          int
	dict        types.Dict
	page        int // index of its page, or -1
	kids        []kid
	first, last int // pages of its content; first > last if it has none
}

// A kid is an element, or content of a page.
type kid struct {
	object  types.Object // as in the array of kids
	element *element     // nil for content
	page    int          // of content; -1 if unknown
	part    int          // number of the annotation or picture that is the content, or 0
}

func (s *Source) indexTags(root types.Dict) *tags {
	if root == nil {
		return nil
	}
	t := &tags{root: root, elements: make(map[int]*element), parents: make(map[int]types.Object)}
	if ref, ok := s.doc.Catalog()["StructTreeRoot"].(types.IndirectRef); ok {
		t.rootNr = ref.ObjectNumber.Value()
	}
	for _, e := range s.doc.NumberTree(root["ParentTree"]) {
		t.parents[e.Key] = e.Value
	}
	in := &tagIndexer{Source: s, tags: t, arrays: make(map[int]bool)}
	t.kids = in.kids(root["K"], -1, 0)
	return t
}

type tagIndexer struct {
	*Source
	tags   *tags
	arrays map[int]bool // of kids, which several elements could share
}

// kids returns the kids of an element, or of the root. page is the page of the
// element.
func (in *tagIndexer) kids(k types.Object, page, depth int) (out []kid) {
	if ref, ok := k.(types.IndirectRef); ok && in.doc.Array(k) != nil {
		if in.arrays[ref.ObjectNumber.Value()] {
			return nil
		}
		in.arrays[ref.ObjectNumber.Value()] = true
	}
	all := in.doc.Array(k)
	if all == nil {
		all = types.Array{k}
	}
	for _, o := range all {
		switch v := in.doc.Resolve(o).(type) {
		case types.Integer:
			out = append(out, kid{object: o, page: page})
		case types.Dict:
			if v["S"] == nil {
				out = append(out, in.content(o, v, page))
				continue
			}
			ref, ok := o.(types.IndirectRef)
			if !ok {
				ref = in.doc.Add(v)
			}
			nr := ref.ObjectNumber.Value()
			if in.tags.elements[nr] != nil || depth > 512 {
				continue
			}
			e := &element{nr: nr, dict: v, page: in.pageOf(v["Pg"], page)}
			in.tags.elements[nr] = e
			e.kids = in.kids(v["K"], e.page, depth+1)
			e.first, e.last = len(in.pages), -1
			for _, k := range e.kids {
				first, last := k.page, k.page
				if k.element != nil {
					first, last = k.element.first, k.element.last
				}
				if first >= 0 && first <= last {
					e.first, e.last = min(e.first, first), max(e.last, last)
				}
			}
			out = append(out, kid{object: ref, element: e})
		}
	}
	return out
}

// content returns a marked-content reference or an object reference.
func (in *tagIndexer) content(o types.Object, v types.Dict, page int) kid {
	k := kid{object: o, page: in.pageOf(v["Pg"], page)}
	if ref, ok := v["Obj"].(types.IndirectRef); ok {
		k.part = ref.ObjectNumber.Value()
		if at, ok := in.annots[k.part]; ok {
			k.page = at
		}
	}
	return k
}

// pageOf returns the index of a page, or other.
func (in *tagIndexer) pageOf(o types.Object, other int) int {
	if ref, ok := o.(types.IndirectRef); ok {
		if i, ok := in.page[ref.ObjectNumber.Value()]; ok {
			return i
		}
	}
	return other
}

// prepareTags changes the elements with content on taken pages: they lose the
// other kids.
func (t *taking) prepareTags() {
	for _, k := range t.tags.kids {
		if k.element != nil {
			t.keepElement(k.element)
		}
	}
}

// keepElement keeps an element and reports whether it has content on taken
// pages.
func (t *taking) keepElement(e *element) bool {
	if !t.takes(e.first, e.last) {
		return false
	}
	var kids types.Array
	var empty []*element
	has := false
	for _, k := range e.kids {
		keep := false
		switch _, taken := t.taken[k.page]; {
		case k.element == nil:
			_, annot := t.annots[k.part]
			keep = taken && (!annot || t.keptAnnots[k.part])
			has = has || keep
		case k.element.first > k.element.last:
			keep = true // such as an empty cell of a table
			empty = append(empty, k.element)
		default:
			keep = t.keepElement(k.element)
			has = has || keep
		}
		if keep {
			kids = append(kids, k.object)
		}
	}
	if !has {
		return false
	}
	for len(empty) > 0 {
		last := empty[len(empty)-1]
		empty = empty[:len(empty)-1]
		t.changed[last.nr] = last.dict
		for _, k := range last.kids {
			if k.element != nil {
				empty = append(empty, k.element)
			}
		}
	}
	dict := maps.Clone(e.dict)
	if dict["K"] = kids; len(kids) == 1 {
		dict["K"] = kids[0]
	}
	t.changed[e.nr] = dict
	return true
}

// structure returns the root of the structure of the taken pages, or nil.
func (t *taking) structure() types.Object {
	var kids types.Array
	root := types.Dict{"Type": types.Name("StructTreeRoot")}
	rootRef := t.out.Add(root)
	for _, k := range t.tags.kids {
		if k.element == nil || t.changed[k.element.nr] == nil {
			continue
		}
		if ref := t.ref(k.element.nr); ref != nil {
			kids = append(kids, ref)
		}
	}
	t.drain()
	if len(kids) == 0 {
		delete(t.out.Objects, rootRef.ObjectNumber.Value())
		return nil
	}
	for _, o := range kids {
		t.out.Dict(o)["P"] = rootRef
	}
	root["K"] = kids
	for _, key := range []string{"RoleMap", "ClassMap", "Namespaces", "ParentTreeNextKey"} {
		if o := t.copy(t.tags.root[key]); o != nil {
			root[key] = o
		}
	}
	root["ParentTree"] = t.parentTree()
	ids := make(map[string]types.Object)
	for nr, e := range t.tags.elements {
		if id := t.doc.Text(e.dict["ID"]); id != nil && t.changed[nr] != nil {
			if ref, ok := t.number[nr]; ok {
				ids[string(id)] = ref
			}
		}
	}
	if len(ids) > 0 {
		root["IDTree"] = t.out.AddNameTree(ids)
	}
	return rootRef
}

// parentTree returns the part of the parent tree whose numbers are in use.
func (t *taking) parentTree() types.Object {
	var nums types.Array
	for _, n := range slices.Sorted(maps.Keys(t.numbers)) {
		if o := t.copy(t.tags.parents[n]); o != nil {
			nums = append(nums, types.Integer(n), o)
		}
	}
	return t.out.AddNumberTree(nums)
}
