// Package matrix enumerates everything that the module offers. Its test runs every action on every
// extension with every listed value, and other programs judge the results. [Document] writes
// docs/formats.md from the same list.
package matrix

import (
	"cmp"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A Cell is one offered capability: an action on a format with one value of the parameter that
// selects the result.
type Cell struct {
	Action string
	From   format.Format // format.Any for every file
	Param  string        // the selecting parameter: convert_to or compression_value; "" if none
	Value  string        // its value

	Spec   fileops.Spec   // the spec of the action that runs
	Schema fileops.Schema // its parameters for From

	Changes []string // see [fileops.Accept]
}

// Target returns the result format, or "" if it is known only from the result.
func (c Cell) Target() format.Format {
	switch {
	case c.Param == convertTo:
		return format.Format(c.Value)
	case c.Spec.Joint:
		return ""
	case c.Action == "ocr":
		return format.PDF
	case c.Action == "inspect":
		return format.JSON
	}
	return c.From
}

const convertTo = "convert_to"

// selecting reports whether every value of a parameter has its own cell.
func selecting(name string) bool { return name == convertTo || name == "compression_value" }

// Cells returns the capabilities of actions without duplicates. If several actions can do the same,
// the first one counts, as in [fileops.Registry.Resolve]. Cells are sorted by action, format and
// value.
func Cells(actions []fileops.Action) []Cell {
	type key struct {
		action string
		from   format.Format
		value  string
		asked  bool // it needs a parameter from [fileops.Accept.Changes], without which another action counts
	}
	seen := make(map[key]bool)
	var out []Cell
	for _, a := range actions {
		spec := a.Spec()
		for _, acc := range spec.Accepts {
			for _, f := range acc.Formats {
				param, values := "", []string{""}
				for _, p := range acc.Params {
					if selecting(p.Name) {
						param, values = p.Name, p.Enum
					}
				}
				for _, v := range values {
					if k := (key{spec.Name, f, v, len(acc.Changes) > 0}); !seen[k] {
						seen[k] = true
						out = append(out, Cell{spec.Name, f, param, v, spec, acc.Params, acc.Changes})
					}
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.From, b.From), cmp.Compare(a.Value, b.Value))
	})
	return out
}
