// Package capability reports which actions and parameter values are valid for a file
// extension. It derives the answers from the registered actions, so they match the
// installed engines. There is no second list to maintain.
package capability

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A Query is the body of supported-operation.
type Query struct {
	Ext        string         // with or without its dot, in any case; a file name is accepted
	Action     string         // in any case; "" requests the actions
	Parameters map[string]any // may be nil
}

// An Answer is the response of supported-operation.
type Answer struct {
	Supported bool
	Ext       string // canonical: "jpg" for ".JPEG"
	Action    string // canonical, "" if the query had none

	// AvailableActions are the actions on the extension, sorted; set only if the query
	// names no action.
	AvailableActions []string

	// Parameters holds the values that the action's parameters accept, see
	// [fileops.Schema.Options]; nil if the action is not supported at all.
	Parameters map[string]any

	// Changes lists the parameters with which the action keeps the extension: convert
	// with convert_to equal to Ext and at least one of these parameters, see
	// [fileops.Accept]. It is nil if the action does not do so.
	Changes []string

	// Err is the reason why the action of a query is not supported: the error of
	// [fileops.Registry.Resolve]. It is nil if Supported is true.
	Err error
}

// A Matrix is a read-only view of a registry. It is safe for concurrent use.
type Matrix struct {
	reg     *fileops.Registry
	aliases map[string]string
}

// New returns the matrix of reg. aliases maps further names of actions to their names
// in reg, such as "create_zip" to "zip"; it may be nil.
func New(reg *fileops.Registry, aliases map[string]string) *Matrix {
	return &Matrix{reg, maps.Clone(aliases)}
}

// Registry returns the registry of the matrix.
func (m *Matrix) Registry() *fileops.Registry { return m.reg }

// Canonical returns the name of an action as the registry spells it: in lower case,
// with aliases replaced.
func (m *Matrix) Canonical(action string) string {
	action = strings.ToLower(strings.TrimSpace(action))
	if name, ok := m.aliases[action]; ok {
		return name
	}
	return action
}

// Resolve finds the action for a request. It is [fileops.Registry.Resolve] for any
// spelling of the action. Code that creates operations must call it, so that the
// service accepts exactly the requests that it advertises.
func (m *Matrix) Resolve(action string, inputs []format.Format, args fileops.Args) (fileops.Action, fileops.Params, error) {
	return m.reg.Resolve(m.Canonical(action), inputs, args)
}

// Query answers q. For an extension alone, it lists the actions. For an action, it
// reports whether the action is supported and which values its parameters accept. If q
// has parameters, it reports whether exactly that request would be accepted.
func (m *Matrix) Query(q Query) Answer {
	f := format.Parse(q.Ext)
	ans := Answer{Ext: string(f), Action: m.Canonical(q.Action)}
	if ans.Action == "" {
		ans.AvailableActions = m.actionsFor(f)
		ans.Supported = len(ans.AvailableActions) > 0
		return ans
	}
	schema, ok := m.reg.Schema(ans.Action, f)
	ans.Supported = ok
	if ok {
		ans.Parameters = schema.Options()
		ans.Changes = m.reg.Changes(ans.Action, f)
	}
	if !ok || len(q.Parameters) > 0 {
		_, _, ans.Err = m.Resolve(ans.Action, []format.Format{f}, q.Parameters)
		ans.Supported = ans.Err == nil
	}
	return ans
}

// An Entry is one cell of the matrix, for tables and tests.
type Entry struct {
	Action string
	Engine string
	Family string
	Format format.Format // format.Any for an action that accepts every file
	Params fileops.Schema

	Changes []string // see [fileops.Accept]
}

// Entries yields every cell in registration order.
func (m *Matrix) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for a := range m.reg.Actions() {
			spec := a.Spec()
			for _, acc := range spec.Accepts {
				for _, f := range acc.Formats {
					if !yield(Entry{spec.Name, spec.Engine, spec.Family, f, acc.Params, acc.Changes}) {
						return
					}
				}
			}
		}
	}
}

func (m *Matrix) actionsFor(f format.Format) []string {
	seen := make(map[string]bool)
	for e := range m.Entries() {
		if e.Format == f || e.Format == format.Any {
			seen[e.Action] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
