package excerpt

import (
	"maps"
	"slices"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// finish builds the catalog of the result. All pages have been copied.
func (t *taking) finish(indices []int, pages []types.IndirectRef) {
	old := t.doc.Catalog()
	catalog := types.Dict{"Type": types.Name("Catalog")}
	t.out.Root = t.out.Add(catalog).ObjectNumber.Value()
	t.out.Version, t.out.ID = t.doc.Version, t.doc.ID
	if ref, ok := t.ref(t.doc.Info).(types.IndirectRef); ok {
		t.out.Info = ref.ObjectNumber.Value()
	}
	catalog["Pages"] = t.out.AddPageTree(pages)
	for _, key := range []string{"Lang", "Metadata", "ViewerPreferences", "PageLayout", "PageMode", "OutputIntents", "Extensions", "URI"} {
		if o := t.copy(old[key]); o != nil {
			catalog[key] = o
		}
	}
	if _, ok := t.taken[t.target(old["OpenAction"])]; ok {
		catalog["OpenAction"] = t.copy(old["OpenAction"])
	}
	for key, o := range map[string]types.Object{
		"AcroForm":   t.form(t.doc.Dict(old["AcroForm"])),
		"Names":      t.nameTrees(),
		"Dests":      t.namedDests(),
		"Outlines":   t.bookmarkTree(),
		"PageLabels": t.pageLabels(indices),
	} {
		if o != nil {
			catalog[key] = o
		}
	}
	t.drain()
	if t.tags != nil {
		if root := t.structure(); root != nil {
			catalog["StructTreeRoot"] = root
			if o := t.copy(old["MarkInfo"]); o != nil {
				catalog["MarkInfo"] = o
			}
		}
		t.drain()
	}
	if o := t.layers(t.doc.Dict(old["OCProperties"])); o != nil {
		catalog["OCProperties"] = o
	}
	t.drain()
}

// form returns the form of the taken pages, or nil. An XFA form describes all
// pages, so it is left out.
func (t *taking) form(old types.Dict) types.Object {
	if old["XFA"] != nil {
		t.losses.XFA = true
	}
	fields := t.filterFields(t.doc.Array(old["Fields"]))
	if len(fields) == 0 {
		return nil
	}
	form := maps.Clone(old)
	for _, key := range []string{"XFA", "CO"} {
		delete(form, key)
	}
	form["Fields"] = fields
	if order := t.filterFields(t.doc.Array(old["CO"])); len(order) > 0 {
		form["CO"] = order
	}
	return t.copy(form)
}

// nameTrees returns the names of destinations on taken pages, and the scripts of
// a form.
func (t *taking) nameTrees() types.Object {
	names := types.Dict{}
	dests := make(map[string]types.Object)
	for name, dest := range t.dests {
		if _, ok := t.taken[t.target(dest)]; ok {
			dests[name] = t.copy(dest)
		}
	}
	if len(dests) > 0 {
		names["Dests"] = t.out.AddNameTree(dests)
	}
	if len(t.keptFields) > 0 {
		if scripts := t.copy(t.trees["JavaScript"]); scripts != nil {
			names["JavaScript"] = scripts
		}
	}
	t.doc.TreeLeaves(t.trees["EmbeddedFiles"], "Names", func(_, _ types.Object) { t.losses.Attachments++ })
	if len(names) == 0 {
		return nil
	}
	return names
}

// namedDests returns the destinations on taken pages whose names are PDF names.
func (t *taking) namedDests() types.Object {
	out := types.Dict{}
	for name, dest := range t.old {
		if _, ok := t.taken[t.target(dest)]; ok {
			out[name] = t.copy(dest)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// bookmarkTree returns the bookmarks that lead to taken pages, and those above
// them.
func (t *taking) bookmarkTree() types.Object {
	root := types.Dict{"Type": types.Name("Outlines")}
	ref := t.out.Add(root)
	visible := t.addBookmarks(root, ref, t.outline)
	if root["First"] == nil {
		delete(t.out.Objects, ref.ObjectNumber.Value())
		return nil
	}
	root["Count"] = types.Integer(visible)
	return ref
}

// addBookmarks adds bookmarks below parent. It returns how many are visible if
// parent is open.
func (t *taking) addBookmarks(parent types.Dict, parentRef types.IndirectRef, items []*bookmark) (visible int) {
	var last types.Dict
	var lastRef types.IndirectRef
	for _, b := range items {
		item := types.Dict{"Parent": parentRef}
		ref := t.out.Add(item)
		below := t.addBookmarks(item, ref, b.kids)
		_, taken := t.taken[b.page]
		if !taken && item["First"] == nil {
			delete(t.out.Objects, ref.ObjectNumber.Value())
			continue
		}
		for _, key := range []string{"Title", "C", "F"} {
			if o := t.copy(b.dict[key]); o != nil {
				item[key] = o
			}
		}
		if taken {
			for _, key := range []string{"Dest", "A"} {
				if o := t.copy(b.dict[key]); o != nil {
					item[key] = o
				}
			}
		}
		visible++
		if below > 0 {
			if t.doc.Integer(b.dict["Count"]) > 0 {
				item["Count"] = types.Integer(below)
				visible += below
			} else {
				item["Count"] = types.Integer(-below)
			}
		}
		if last == nil {
			parent["First"] = ref
		} else {
			last["Next"], item["Prev"] = ref, lastRef
		}
		parent["Last"] = ref
		last, lastRef = item, ref
	}
	return visible
}

// pageLabels returns the labels of the taken pages, which stay as they are.
func (t *taking) pageLabels(indices []int) types.Object {
	if len(t.labels) == 0 {
		return nil
	}
	var nums types.Array
	previous := numbering{label: -2} // of no page
	for i, index := range indices {
		n := t.numbering(index)
		next := previous
		next.number++
		if n != next {
			label := types.Dict{"S": types.Name("D")}
			if n.label >= 0 {
				label, _ = t.copy(t.doc.Dict(t.labels[n.label].Value)).(types.Dict)
			}
			label["St"] = types.Integer(n.number)
			nums = append(nums, types.Integer(i), label)
		}
		previous = n
	}
	return t.out.AddNumberTree(nums)
}

// A numbering says how a page is numbered.
type numbering struct {
	label  int // index of the label; -1 means none, so the number is decimal
	number int
}

func (t *taking) numbering(index int) numbering {
	at, found := slices.BinarySearchFunc(t.labels, index, func(n pdf.Numbered, i int) int { return n.Key - i })
	if !found {
		at--
	}
	if at < 0 {
		return numbering{-1, index + 1}
	}
	l := t.labels[at]
	return numbering{at, max(1, t.doc.Integer(t.doc.Dict(l.Value)["St"])) + index - l.Key}
}

// layers returns the optional content groups that the result uses, with their
// default states.
func (t *taking) layers(old types.Dict) types.Object {
	used := func(o types.Object) bool {
		ref, ok := o.(types.IndirectRef)
		_, copied := t.number[ref.ObjectNumber.Value()]
		return ok && copied
	}
	groups := t.usedIn(t.doc.Array(old["OCGs"]), used, 0)
	if len(groups) == 0 {
		return nil
	}
	config := types.Dict{}
	for key, o := range t.doc.Dict(old["D"]) {
		switch a := t.doc.Array(o); key {
		case "ON", "OFF", "Locked", "Order", "RBGroups":
			if kept := t.usedIn(a, used, 0); len(kept) > 0 {
				config[key] = kept
			}
		case "AS":
			var kept types.Array
			for _, e := range a {
				usage := maps.Clone(t.doc.Dict(e))
				if groups := t.usedIn(t.doc.Array(usage["OCGs"]), used, 0); len(groups) > 0 {
					usage["OCGs"] = groups
					kept = append(kept, usage)
				}
			}
			if len(kept) > 0 {
				config[key] = kept
			}
		default:
			config[key] = o
		}
	}
	return t.copy(types.Dict{"OCGs": groups, "D": config})
}

// usedIn returns the used groups of an array, and its arrays of groups. A text
// at the begin of an array is its label.
func (t *taking) usedIn(a types.Array, used func(types.Object) bool, depth int) (out types.Array) {
	groups := false
	for _, o := range a {
		switch v := t.doc.Resolve(o).(type) {
		case types.Array:
			if depth < 16 {
				if kept := t.usedIn(v, used, depth+1); len(kept) > 0 {
					out, groups = append(out, kept), true
				}
			}
		case types.Dict:
			if used(o) {
				out, groups = append(out, o), true
			}
		default:
			out = append(out, o)
		}
	}
	if !groups {
		return nil
	}
	return out
}
