// Package excerpt copies pages of a PDF document into new documents, with
// everything that the pages use and nothing else.
//
//	pages, err := doc.Pages(5000)
//	s := excerpt.New(doc, pages)
//	part, losses := s.Take([]int{0, 1, 2})
//	err = part.Write(out, false, nil)
//
// Links between the pages, named destinations, bookmarks, form fields, page
// labels, layers and tags stay.
package excerpt

import (
	"iter"
	"maps"
	"slices"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A Source is a document whose pages can be taken. It may be used several times,
// but not concurrently.
type Source struct {
	doc     *pdf.Document
	pages   []pdf.Page
	page    map[int]int             // indices of pages, by object number
	annots  map[int]int             // indices of the pages of annotations, by object number
	dests   map[string]types.Object // destinations whose names are strings
	old     types.Dict              // destinations whose names are PDF names
	trees   types.Dict              // name trees, by kind
	labels  []pdf.Numbered
	tags    *tags        // nil if the document has no structure
	outline []*bookmark  // top level
	fields  map[int]bool // nodes of the form
	pruner  *pruner      // of resources
}

// New prepares the pages of d. d cannot be used for anything else afterwards.
func New(d *pdf.Document, pages []pdf.Page) *Source {
	d.SeparatePages(pages)
	s := &Source{
		doc: d, pages: pages, page: make(map[int]int), annots: make(map[int]int),
		dests: make(map[string]types.Object), fields: make(map[int]bool), pruner: newPruner(d),
	}
	for i, p := range pages {
		s.page[p.Ref.ObjectNumber.Value()] = i
		for _, o := range d.Array(p.Dict["Annots"]) {
			if ref, ok := o.(types.IndirectRef); ok {
				if _, known := s.annots[ref.ObjectNumber.Value()]; !known {
					s.annots[ref.ObjectNumber.Value()] = i
				}
			}
		}
	}
	catalog := d.Catalog()
	s.indexNames(catalog)
	s.indexFields(d.Dict(catalog["AcroForm"]))
	s.labels = d.NumberTree(catalog["PageLabels"])
	s.outline = s.bookmarks(d.Dict(catalog["Outlines"])["First"], make(map[int]bool), 0)
	s.tags = s.indexTags(d.Dict(catalog["StructTreeRoot"]))
	return s
}

// Pages returns the number of pages.
func (s *Source) Pages() int { return len(s.pages) }

func (s *Source) indexNames(catalog types.Dict) {
	s.old, s.trees = s.doc.Dict(catalog["Dests"]), s.doc.Dict(catalog["Names"])
	s.doc.TreeLeaves(s.trees["Dests"], "Names", func(key, value types.Object) {
		if name := s.doc.Text(key); name != nil {
			if _, twice := s.dests[string(name)]; !twice {
				s.dests[string(name)] = value
			}
		}
	})
}

// indexFields finds the nodes of a form, so that a field without widgets on the
// chosen pages is recognized as one.
func (s *Source) indexFields(form types.Dict) {
	arrays := make(map[int]bool) // of kids, which several fields could share
	stack := []types.Object{form["Fields"]}
	for len(stack) > 0 {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if ref, ok := o.(types.IndirectRef); ok {
			if arrays[ref.ObjectNumber.Value()] {
				continue
			}
			arrays[ref.ObjectNumber.Value()] = true
		}
		for _, kid := range s.doc.Array(o) {
			ref, ok := kid.(types.IndirectRef)
			if !ok || s.fields[ref.ObjectNumber.Value()] {
				continue
			}
			s.fields[ref.ObjectNumber.Value()] = true
			if kids := s.doc.Dict(kid)["Kids"]; kids != nil {
				stack = append(stack, kids)
			}
		}
	}
}

// target returns the index of the page to which a destination leads (ISO
// 32000-2, 12.3.2), or -1.
func (s *Source) target(dest types.Object) int {
	for range 4 {
		switch v := s.doc.Resolve(dest).(type) {
		case types.Array:
			if len(v) == 0 {
				return -1
			}
			if ref, ok := v[0].(types.IndirectRef); ok {
				if i, ok := s.page[ref.ObjectNumber.Value()]; ok {
					return i
				}
			}
			return -1
		case types.Dict:
			dest = v["D"]
		case types.Name:
			dest = s.old[string(v)]
		case types.StringLiteral, types.HexLiteral:
			dest = s.dests[string(s.doc.Text(v))]
		default:
			return -1
		}
	}
	return -1
}

// jump returns the destination of an annotation or a bookmark in the document, or
// nil.
func (s *Source) jump(v types.Dict) types.Object {
	if dest := v["Dest"]; dest != nil {
		return dest
	}
	if action := s.doc.Dict(v["A"]); s.doc.Name(action["S"]) == "GoTo" {
		return action["D"]
	}
	return nil
}

// A Bookmark is an entry of the outline.
type Bookmark struct {
	Title string
	Page  int // index
}

// Bookmarks returns the bookmarks at the top level that lead to a page, in the
// order of the outline.
func (s *Source) Bookmarks() []Bookmark {
	var out []Bookmark
	for _, b := range s.outline {
		if b.page >= 0 {
			out = append(out, Bookmark{pdf.Unicode(s.doc.Text(b.dict["Title"])), b.page})
		}
	}
	return out
}

// An Entry is a bookmark at any level.
type Entry struct {
	Bookmark
	Level int // from 0
}

// Outline yields all bookmarks that lead to a page, each before those below it.
func (s *Source) Outline() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		var walk func(items []*bookmark, level int) bool
		walk = func(items []*bookmark, level int) bool {
			for _, b := range items {
				below := level
				if b.page >= 0 {
					if !yield(Entry{Bookmark{pdf.Unicode(s.doc.Text(b.dict["Title"])), b.page}, level}) {
						return false
					}
					below++
				}
				if !walk(b.kids, below) {
					return false
				}
			}
			return true
		}
		walk(s.outline, 0)
	}
}

// A bookmark is an item of the outline (ISO 32000-2, 12.3.3).
type bookmark struct {
	dict types.Dict
	page int // index, or -1
	kids []*bookmark
}

func (s *Source) bookmarks(next types.Object, seen map[int]bool, depth int) (out []*bookmark) {
	for depth < 64 {
		ref, ok := next.(types.IndirectRef)
		dict := s.doc.Dict(ref)
		if !ok || dict == nil || seen[ref.ObjectNumber.Value()] {
			break
		}
		seen[ref.ObjectNumber.Value()] = true
		out = append(out, &bookmark{dict: dict, page: s.target(s.jump(dict)), kids: s.bookmarks(dict["First"], seen, depth+1)})
		next = dict["Next"]
	}
	return out
}

// Losses are the parts of a document that an excerpt lacks although they belong
// to all pages, or to the chosen ones.
type Losses struct {
	Links       int  // links to pages that were not taken
	Attachments int  // files attached to the document
	XFA         bool // the XFA form of the document
}

// And returns the losses of two excerpts of one document together.
func (l Losses) And(m Losses) Losses {
	return Losses{Links: l.Links + m.Links, Attachments: max(l.Attachments, m.Attachments), XFA: l.XFA || m.XFA}
}

// Take returns a document with the pages of the given indices, in this order,
// each at most once.
func (s *Source) Take(indices []int) (*pdf.Document, Losses) {
	t := &taking{
		Source: s, out: pdf.New(), taken: make(map[int]int), number: make(map[int]types.IndirectRef),
		changed: make(map[int]types.Object), keptFields: make(map[int]bool), keptAnnots: make(map[int]bool), numbers: make(map[int]bool),
	}
	t.out.Files = s.doc.Files // which the source owns
	for i, index := range indices {
		t.taken[index] = i
	}
	t.count = make([]int, len(s.pages)+1)
	for i := range s.pages {
		t.count[i+1] = t.count[i]
		if _, ok := t.taken[i]; ok {
			t.count[i+1]++
		}
	}
	for _, index := range indices {
		t.preparePage(index)
	}
	t.prepareFields()
	if s.tags != nil {
		t.prepareTags()
	}
	var pages []types.IndirectRef
	for _, index := range indices {
		ref, _ := t.ref(s.pages[index].Ref.ObjectNumber.Value()).(types.IndirectRef)
		pages = append(pages, ref)
	}
	t.drain()
	t.finish(indices, pages)
	return t.out, t.losses
}

// A taking is one call of Take.
type taking struct {
	*Source
	out    *pdf.Document
	taken  map[int]int // positions in the result, by page index
	count  []int       // count[i] is the number of taken pages before index i
	losses Losses

	number     map[int]types.IndirectRef // new references, by old object number
	queue      []int                     // old numbers of objects to copy
	changed    map[int]types.Object      // replaces objects of the source; its references are old
	keptFields map[int]bool              // fields with a widget on a taken page
	keptAnnots map[int]bool
	numbers    map[int]bool // in use, of the parent tree of the structure
}

// takes reports whether a page from first to last is taken.
func (t *taking) takes(first, last int) bool {
	return first <= last && t.count[last+1] > t.count[first]
}

// preparePage changes a taken page: it loses links to pages that are not taken and
// resources that it does not use.
func (t *taking) preparePage(index int) {
	d, p := t.doc, t.pages[index]
	page := maps.Clone(p.Dict)
	delete(page, "Parent") // set by AddPageTree
	delete(page, "B")      // beads of articles lead to the other pages
	if r := t.pruner.page(page); r != nil {
		page["Resources"] = r
	}
	if old := d.Array(page["Annots"]); old != nil {
		annots := types.Array{}
		for _, o := range old {
			ref, indirect := o.(types.IndirectRef)
			dict := d.Dict(o)
			if to := t.target(t.jump(dict)); to >= 0 {
				if _, ok := t.taken[to]; !ok {
					if d.Name(dict["Subtype"]) == "Link" {
						t.losses.Links++
						continue
					}
					dict = maps.Clone(dict)
					delete(dict, "A")
					if indirect {
						t.changed[ref.ObjectNumber.Value()] = dict
					} else {
						o = dict
					}
				}
			}
			if indirect {
				t.keptAnnots[ref.ObjectNumber.Value()] = true
				if d.Name(dict["Subtype"]) == "Widget" {
					t.keepField(ref)
				}
			}
			annots = append(annots, o)
		}
		page["Annots"] = annots
	}
	t.changed[p.Ref.ObjectNumber.Value()] = page
}

// keepField keeps a widget and the fields above it.
func (t *taking) keepField(o types.Object) {
	for {
		ref, ok := o.(types.IndirectRef)
		nr := ref.ObjectNumber.Value()
		if !ok || t.keptFields[nr] {
			return
		}
		t.keptFields[nr] = true
		o = t.doc.Dict(o)["Parent"]
	}
}

// prepareFields removes kids without a widget on a taken page, and signatures,
// which do not cover the result.
func (t *taking) prepareFields() {
	d := t.doc
	for _, nr := range slices.Sorted(maps.Keys(t.keptFields)) {
		field, ok := t.changed[nr].(types.Dict)
		if !ok {
			field = d.Dict(pdf.Ref(nr))
		}
		copied := maps.Clone(field)
		if kids := d.Array(field["Kids"]); kids != nil {
			if ref, ok := field["Kids"].(types.IndirectRef); !ok {
				copied["Kids"] = t.filterFields(kids)
			} else if at := ref.ObjectNumber.Value(); t.changed[at] == nil {
				t.changed[at] = t.filterFields(kids) // other fields can share the array
			}
		}
		if d.Dict(field["V"])["ByteRange"] != nil {
			delete(copied, "V")
		}
		t.changed[nr] = copied
	}
}

// filterFields returns the kept fields of an array.
func (t *taking) filterFields(fields types.Array) types.Array {
	out := types.Array{}
	for _, o := range fields {
		if ref, ok := o.(types.IndirectRef); ok && t.keptFields[ref.ObjectNumber.Value()] {
			out = append(out, o)
		}
	}
	return out
}

// ref returns the new reference for an object, which will be copied, or nil if
// the result does not contain it.
func (t *taking) ref(nr int) types.Object {
	if ref, ok := t.number[nr]; ok {
		return ref
	}
	if t.leavesOut(nr) {
		return nil
	}
	ref := t.out.Add(nil)
	t.number[nr] = ref
	t.queue = append(t.queue, nr)
	return ref
}

// leavesOut reports whether the result lacks an object even if something refers
// to it: the other pages and what belongs to them.
func (t *taking) leavesOut(nr int) bool {
	if t.doc.Objects[nr] == nil || nr == t.doc.Root || t.fields[nr] && !t.keptFields[nr] {
		return true
	}
	if index, ok := t.page[nr]; ok {
		_, taken := t.taken[index]
		return !taken
	}
	if _, ok := t.annots[nr]; ok {
		return !t.keptAnnots[nr]
	}
	if t.tags != nil && (t.tags.elements[nr] != nil || nr == t.tags.rootNr) {
		return t.changed[nr] == nil
	}
	return t.doc.Name(t.doc.Dict(pdf.Ref(nr))["Type"]) == "Pages"
}

// drain copies the objects in the queue, and those to which they refer.
func (t *taking) drain() {
	for len(t.queue) > 0 {
		nr := t.queue[len(t.queue)-1]
		t.queue = t.queue[:len(t.queue)-1]
		o, ok := t.changed[nr]
		if !ok {
			if o, ok = t.pruner.changed[nr]; !ok {
				o = t.doc.Objects[nr]
			}
		}
		t.out.Objects[t.number[nr].ObjectNumber.Value()] = t.copy(o)
	}
}

// copy returns a copy of an object with new references.
func (t *taking) copy(o types.Object) types.Object {
	switch v := o.(type) {
	case types.IndirectRef:
		return t.ref(v.ObjectNumber.Value())
	case types.Dict:
		return t.copyDict(v, "")
	case types.Array:
		out := make(types.Array, len(v))
		for i, e := range v {
			out[i] = t.copy(e)
		}
		return out
	case *types.StreamDict:
		s := *v
		s.Dict = t.copyDict(v.Dict, "Length") // written anew
		return &s
	}
	return o
}

func (t *taking) copyDict(v types.Dict, except string) types.Dict {
	out := make(types.Dict, len(v))
	for key, e := range v {
		if key == except {
			continue
		}
		if key == "StructParent" || key == "StructParents" {
			t.numbers[t.doc.Integer(e)] = true
		}
		if c := t.copy(e); c != nil {
			out[key] = c
		}
	}
	return out
}
