// Package matrix walks over everything that the module offers: its test runs
// every action on every extension with every listed value and has the results
// judged by other programs, and [Document] writes docs/formats.md of the same
// list.
package matrix

import (
	"cmp"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A Cell is something that is offered: an action on a format with one value of
// the parameter that selects what comes out.
type Cell struct {
	Action string
	From   format.Format // format.Any for every file
	Param  string        // the selecting parameter: convert_to, compression_value; "" if there is none
	Value  string        // its value

	Spec   fileops.Spec   // of the action that does it
	Schema fileops.Schema // its parameters for From
}

// Target returns the format that comes out, or "" where only the result tells.
func (c Cell) Target() format.Format {
	switch {
	case c.Param == convertTo:
		return format.Format(c.Value)
	case c.Spec.Joint:
		return ""
	}
	return c.From
}

const convertTo = "convert_to"

// selecting are the parameters whose every value is a cell of its own.
func selecting(name string) bool { return name == convertTo || name == "compression_value" }

// Cells returns what actions offer, each thing once: where several can do it, the
// first is meant, as in [fileops.Registry.Resolve]. They are sorted by action,
// format and value.
func Cells(actions []fileops.Action) []Cell {
	type key struct {
		action string
		from   format.Format
		value  string
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
					if k := (key{spec.Name, f, v}); !seen[k] {
						seen[k] = true
						out = append(out, Cell{spec.Name, f, param, v, spec, acc.Params})
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
