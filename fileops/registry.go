package fileops

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/format"
)

// A Registry is an immutable set of actions. There is no global registry and no
// automatic registration: a program lists its actions.
type Registry struct {
	actions []Action
}

// NewRegistry checks the specs of actions and returns a registry of them. If several
// actions fit a request, the first in the list is used.
func NewRegistry(actions ...Action) (*Registry, error) {
	for _, a := range actions {
		if err := a.Spec().check(); err != nil {
			return nil, err
		}
	}
	return &Registry{slices.Clone(actions)}, nil
}

// UncheckedRegistry is [NewRegistry] for actions whose specifications were checked before, such as
// in another process of the same program. The check compiles all patterns of parameters, which takes
// longer than a tiny run.
func UncheckedRegistry(actions ...Action) *Registry { return &Registry{slices.Clone(actions)} }

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
		for _, name := range acc.Changes {
			if !slices.ContainsFunc(acc.Params, func(d Param) bool { return d.Name == name && !d.Required }) {
				return bad("%q, which changes the file, is not an optional parameter", name)
			}
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

// Resolve finds the action for a request and validates the parameters. It is the only
// place that decides this: the capability matrix uses it too. name is case-insensitive.
//
// It fails with *[ParamError] if the action exists for these inputs but not with these
// parameters, else with *[UnsupportedError].
func (r *Registry) Resolve(name string, inputs []format.Format, args Args) (Action, Params, error) {
	name = strings.ToLower(name)
	var (
		entries []Accept
		near    error // error of the first entry whose listed values all match

		unchanged *unchangedError
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
			p, err := acc.parse(args)
			if err == nil {
				return a, p, nil
			}
			if near == nil && (errors.As(err, &unchanged) || len(args) > 0 && acc.Params.selectedBy(args)) {
				near = err
			}
			entries = append(entries, acc)
		}
	}
	if len(entries) == 0 {
		return nil, Params{}, &UnsupportedError{Action: name, Inputs: inputs, Actions: r.accepting(inputs)}
	}
	if errors.As(near, &unchanged) {
		e := unchanged.ParamError
		if d, ok := offered(entries).selector(); ok && d.Name == e.Param {
			e.Allowed = d.Enum
		}
		near = &e
	}
	if near != nil {
		return nil, Params{}, near
	}
	_, err := offered(entries).Parse(args) // the error names all allowed values
	if err == nil {                        // each value is allowed, but not the combination
		err = &UnsupportedError{Action: name, Inputs: inputs}
	}
	return nil, Params{}, err
}

// accepting returns the names of the actions that accept inputs, sorted.
func (r *Registry) accepting(inputs []format.Format) (names []string) {
	for _, a := range r.actions {
		spec := a.Spec()
		if len(inputs) == 0 || slices.ContainsFunc(spec.Accepts, func(acc Accept) bool { return acc.covers(inputs) }) {
			names = append(names, spec.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Schema returns the parameters of an action for a format, merged over all actions of
// that name. ok is false if no action fits. A required parameter lists only the values
// that need no further parameter, so not those of an entry with [Accept.Changes].
func (r *Registry) Schema(name string, f format.Format) (s Schema, ok bool) {
	all := r.entries(name, f)
	return offered(all), len(all) > 0
}

// Changes returns the parameters that change a file of a format if an action keeps its
// format, see [Accept.Changes]. It returns nil if no action does.
func (r *Registry) Changes(name string, f format.Format) []string {
	var out []string
	for _, acc := range r.entries(name, f) {
		if d, ok := acc.Params.selector(); !ok || !slices.Contains(d.Enum, string(f)) {
			continue // it has no target, such as metadata
		}
		for _, c := range acc.Changes {
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out
}

// MaxBytes returns the size of the largest file of a format that an action reads, see
// [Spec]. If several actions with this name accept the format, it is the largest of their
// limits. It returns 0 if there is no limit.
func (r *Registry) MaxBytes(name string, f format.Format) (most int64) {
	name = strings.ToLower(name)
	for _, a := range r.actions {
		spec := a.Spec()
		if spec.Name != name || !slices.ContainsFunc(spec.Accepts, func(acc Accept) bool { return acc.covers([]format.Format{f}) }) {
			continue
		}
		if spec.MaxBytes <= 0 {
			return 0
		}
		most = max(most, spec.MaxBytes)
	}
	return most
}

// entries returns what the actions of a name accept for a format.
func (r *Registry) entries(name string, f format.Format) (all []Accept) {
	name = strings.ToLower(name)
	for _, a := range r.actions {
		if spec := a.Spec(); spec.Name == name {
			for _, acc := range spec.Accepts {
				if acc.covers([]format.Format{f}) {
					all = append(all, acc)
				}
			}
		}
	}
	return all
}

// offered merges the parameters of entries. The listed values are those that a request
// may have without other parameters.
func offered(entries []Accept) Schema {
	var all, free []Schema
	for _, acc := range entries {
		if all = append(all, acc.Params); len(acc.Changes) == 0 {
			free = append(free, acc.Params)
		}
	}
	s := Merge(all...)
	d, ok := Merge(free...).selector()
	for i := range s {
		if ok && s[i].Name == d.Name {
			s[i].Enum, s[i].Aliases = d.Enum, d.Aliases
		}
	}
	return s
}

// selector returns the first required parameter with listed values, such as the format
// of the result.
func (s Schema) selector() (Param, bool) {
	i := slices.IndexFunc(s, func(d Param) bool { return d.Required && len(d.Enum) > 0 })
	if i < 0 {
		return Param{}, false
	}
	return s[i], true
}

// selectedBy reports whether args has a listed value for each required parameter with an
// Enum, and there is at least one such parameter. The caller then clearly means this
// entry.
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

// names reports whether the spec lists f explicitly, not only through format.Any.
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
