package fileops

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/format"
)

// A Registry is an immutable set of actions. There is no global registry and
// nothing registers itself: a program lists the actions it wants.
type Registry struct {
	actions []Action
}

// NewRegistry checks the specs of actions and returns a registry of them. The
// order matters where several can do the same: the first one is used.
func NewRegistry(actions ...Action) (*Registry, error) {
	for _, a := range actions {
		if err := a.Spec().check(); err != nil {
			return nil, err
		}
	}
	return &Registry{slices.Clone(actions)}, nil
}

func (s Spec) check() error {
	bad := func(what string, args ...any) error {
		return fmt.Errorf("action %q (%s): %s", s.Name, s.Engine, fmt.Sprintf(what, args...))
	}
	if s.Name == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return bad("the name must be lower snake case")
	}
	if len(s.Accepts) == 0 {
		return bad("it accepts nothing")
	}
	for _, acc := range s.Accepts {
		if len(acc.Formats) == 0 {
			return bad("an entry has no formats")
		}
		for _, f := range acc.Formats {
			if f != format.Any && format.Parse(string(f)) != f {
				return bad("format %q is not canonical", f)
			}
		}
		if err := acc.Params.check(); err != nil {
			return bad("%v", err)
		}
	}
	return nil
}

// Actions yields the registered actions in order.
func (r *Registry) Actions() iter.Seq[Action] { return slices.Values(r.actions) }

// Names returns the names of the registered actions, sorted.
func (r *Registry) Names() []string {
	var names []string
	for _, a := range r.actions {
		names = append(names, a.Spec().Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Resolve finds the action for a request and validates its parameters. It is
// the only decision procedure: the capability matrix asks it too. name is
// matched without regard to case.
//
// Its errors are *[ParamError], if the action exists for these inputs but not
// with these parameters, and *[UnsupportedError].
func (r *Registry) Resolve(name string, inputs []format.Format, args Args) (Action, Params, error) {
	name = strings.ToLower(name)
	var (
		schemas []Schema
		near    error // of an entry whose listed values all fit
	)
	for _, a := range r.actions {
		spec := a.Spec()
		if spec.Name != name {
			continue
		}
		for _, acc := range spec.Accepts {
			if !acc.covers(inputs) {
				continue
			}
			p, err := acc.Params.Parse(args)
			if err == nil {
				return a, p, nil
			}
			if near == nil && len(args) > 0 && acc.Params.selectedBy(args) {
				near = err
			}
			schemas = append(schemas, acc.Params)
		}
	}
	if len(schemas) == 0 {
		return nil, Params{}, &UnsupportedError{Action: name, Inputs: inputs}
	}
	if near != nil {
		return nil, Params{}, near
	}
	_, err := Merge(schemas...).Parse(args) // its error names every allowed value
	if err == nil {                         // each value is allowed, but not together
		err = &UnsupportedError{Action: name, Inputs: inputs}
	}
	return nil, Params{}, err
}

// Schema returns the parameters valid for an action on a format, merged over
// all actions of that name; ok is false if there is none.
func (r *Registry) Schema(name string, f format.Format) (s Schema, ok bool) {
	name = strings.ToLower(name)
	var all []Schema
	for _, a := range r.actions {
		if spec := a.Spec(); spec.Name == name {
			for _, acc := range spec.Accepts {
				if acc.covers([]format.Format{f}) {
					all = append(all, acc.Params)
				}
			}
		}
	}
	return Merge(all...), len(all) > 0
}

// selectedBy tells whether args name a value for every required parameter with
// listed values, and only listed ones: the caller clearly means this entry.
func (s Schema) selectedBy(args Args) bool {
	found := false
	for _, d := range s {
		if len(d.Enum) == 0 || !d.Required {
			continue
		}
		v, ok := args[d.Name]
		if !ok {
			return false
		}
		if _, err := d.parse(v); err != nil {
			return false
		}
		found = true
	}
	return found
}

func (a Accept) covers(inputs []format.Format) bool {
	if len(inputs) == 0 {
		return false
	}
	if slices.Contains(a.Formats, format.Any) {
		return true
	}
	for _, f := range inputs {
		if !slices.Contains(a.Formats, f) {
			return false
		}
	}
	return true
}

// names tells whether the spec lists f by name, and not only because it takes
// every file.
func (s Spec) names(f format.Format) bool {
	return slices.ContainsFunc(s.Accepts, func(a Accept) bool { return slices.Contains(a.Formats, f) })
}

func formatsOf(files []*File) []format.Format {
	var fs []format.Format
	for _, f := range files {
		fs = append(fs, f.Format())
	}
	return fs
}

var errNoInput = errors.New("fileops: no input files")
