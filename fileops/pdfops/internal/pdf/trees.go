package pdf

import (
	"bytes"
	"maps"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A Numbered is an entry of a number tree.
type Numbered struct {
	Key   int
	Value types.Object
}

// NumberTree returns the entries of a number tree (ISO 32000-2, 7.9.7), sorted.
func (d *Document) NumberTree(o types.Object) []Numbered {
	var out []Numbered
	d.TreeLeaves(o, "Nums", func(key, value types.Object) {
		if n, ok := d.Resolve(key).(types.Integer); ok {
			out = append(out, Numbered{int(n), value})
		}
	})
	slices.SortStableFunc(out, func(a, b Numbered) int { return a.Key - b.Key })
	return slices.CompactFunc(out, func(a, b Numbered) bool { return a.Key == b.Key })
}

// TreeLeaves calls f for the key-value pairs in the leaves of a name or number
// tree. key is Names or Nums.
func (d *Document) TreeLeaves(o types.Object, key string, f func(key, value types.Object)) {
	seen := make(map[int]bool)
	var walk func(o types.Object, depth int)
	walk = func(o types.Object, depth int) {
		if ref, ok := o.(types.IndirectRef); ok {
			if seen[ref.ObjectNumber.Value()] {
				return
			}
			seen[ref.ObjectNumber.Value()] = true
		}
		node := d.Dict(o)
		if node == nil || depth > 64 {
			return
		}
		if ref, ok := node[key].(types.IndirectRef); ok {
			if seen[ref.ObjectNumber.Value()] {
				return
			}
			seen[ref.ObjectNumber.Value()] = true
		}
		leaf := d.Array(node[key])
		for i := 0; i+1 < len(leaf); i += 2 {
			f(leaf[i], leaf[i+1])
		}
		for _, kid := range d.Array(node["Kids"]) {
			walk(kid, depth+1)
		}
	}
	walk(o, 0)
}

// AddNameTree adds a name tree of two levels.
func (d *Document) AddNameTree(entries map[string]types.Object) types.IndirectRef {
	keys := slices.SortedFunc(maps.Keys(entries), func(a, b string) int { return bytes.Compare([]byte(a), []byte(b)) })
	var kids types.Array
	for part := range slices.Chunk(keys, 64) {
		var names types.Array
		for _, k := range part {
			names = append(names, types.NewHexLiteral([]byte(k)), entries[k])
		}
		if len(keys) == len(part) {
			return d.Add(types.Dict{"Names": names})
		}
		kids = append(kids, d.Add(types.Dict{
			"Names":  names,
			"Limits": types.Array{names[0], names[len(names)-2]},
		}))
	}
	return d.Add(types.Dict{"Kids": kids})
}

// AddNumberTree adds a number tree of two levels for sorted keys with their
// values.
func (d *Document) AddNumberTree(nums types.Array) types.IndirectRef {
	const width = 2 * 64
	if len(nums) <= width {
		return d.Add(types.Dict{"Nums": nums})
	}
	var kids types.Array
	for part := range slices.Chunk(nums, width) {
		kids = append(kids, d.Add(types.Dict{"Nums": part, "Limits": types.Array{part[0], part[len(part)-2]}}))
	}
	return d.Add(types.Dict{"Kids": kids})
}

// AddPageTree adds a page tree with at most 32 children for each node, and sets
// the parents of the pages.
func (d *Document) AddPageTree(pages []types.IndirectRef) types.IndirectRef {
	const width = 32
	type node struct {
		ref   types.IndirectRef
		count int
	}
	var level []node
	for _, p := range pages {
		level = append(level, node{p, 1})
	}
	for {
		var above []node
		for part := range slices.Chunk(level, width) {
			dict := types.Dict{"Type": types.Name("Pages")}
			ref := d.Add(dict)
			var kids types.Array
			count := 0
			for _, n := range part {
				d.Dict(n.ref)["Parent"] = ref
				kids = append(kids, n.ref)
				count += n.count
			}
			dict["Kids"], dict["Count"] = kids, types.Integer(count)
			above = append(above, node{ref, count})
		}
		if len(above) == 1 {
			return above[0].ref
		}
		level = above
	}
}
