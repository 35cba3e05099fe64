package pdfops

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A nameTree collects the entries of one kind of name tree (ISO 32000-2, 7.9.6).
type nameTree struct {
	entries map[string]types.Object
}

// unique returns name, followed by the first number that makes it unique if it
// is taken.
func unique(name string, taken func(string) bool) string {
	free := name
	for i := 2; taken(free); i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	return free
}

// addNames copies the name trees of a document. It returns the renamed
// destinations.
func (m *merger) addNames(catalog types.Dict) map[string]string {
	d := m.out
	renamed := make(map[string]string)
	trees := d.Dict(catalog["Names"])
	for _, kind := range slices.Sorted(maps.Keys(trees)) {
		tree := m.names[kind]
		if tree == nil {
			tree = &nameTree{entries: make(map[string]types.Object)}
			m.names[kind] = tree
		}
		own := make(map[string]types.Object)
		d.TreeLeaves(trees[kind], "Names", func(key, value types.Object) {
			if name := d.Text(key); name != nil {
				if _, twice := own[string(name)]; !twice {
					own[string(name)] = value
				}
			}
		})
		for _, name := range slices.Sorted(maps.Keys(own)) {
			to := name
			if _, taken := tree.entries[name]; taken {
				to = unique(name, func(s string) bool {
					_, a := tree.entries[s]
					_, b := own[s]
					return a || b
				})
			}
			tree.entries[to] = own[name]
			if kind == "Dests" && to != name {
				renamed[name] = to
			}
		}
	}
	own := d.Dict(catalog["Dests"])
	for _, name := range slices.Sorted(maps.Keys(own)) {
		to := name
		if _, taken := m.dests[name]; taken {
			to = unique(name, func(s string) bool { return m.dests[s] != nil || own[s] != nil })
			renamed["/"+name] = to
		}
		m.dests[to] = own[name]
	}
	return renamed
}

// renameDests updates the references to renamed destinations, in annotations,
// bookmarks and the actions that stay in the file.
func (m *merger) renameDests(kept map[int]types.Object, renamed map[string]string) {
	rename := func(v types.Dict, key string) {
		switch o := m.out.Resolve(v[key]).(type) {
		case types.Name:
			if to, ok := renamed["/"+string(o)]; ok {
				v[key] = types.Name(to)
			}
		case types.StringLiteral, types.HexLiteral:
			if to, ok := renamed[string(m.out.Text(o))]; ok {
				v[key] = types.NewHexLiteral([]byte(to))
			}
		}
	}
	for _, o := range kept {
		eachDict(o, func(v types.Dict) {
			rename(v, "Dest")
			if m.out.Name(v["S"]) == "GoTo" {
				rename(v, "D")
			}
		})
	}
	// Only the first document keeps its /OpenAction, and nothing in the first
	// document is renamed.
}

// nameTrees writes all name trees.
func (m *merger) nameTrees() types.Object {
	out := types.Dict{}
	for kind, tree := range m.names {
		if len(tree.entries) > 0 {
			out[kind] = m.out.AddNameTree(tree.entries)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return m.out.Add(out)
}
