package capability

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A Step is one action of a request with several steps: the results of a step are the
// inputs of the next.
type Step struct {
	Action     string
	Parameters map[string]any
}

// A Stage is a step that has been checked.
type Stage struct {
	Action string // canonical
	Joint  bool   // one run takes all files

	// Families holds the family of the action that runs, by the format of its input.
	// format.Any stands for all other formats.
	Families map[format.Format]string

	// Guessed is set if the formats of the inputs are not known before the step runs.
	// Then Families has all that the action accepts.
	Guessed bool

	// Results are the formats of the results; nil if they are not known.
	Results []format.Format

	// Uploads holds the keys of the files that parameters name, by parameter.
	Uploads map[string]string
}

// A StepError reports that a step does not fit.
type StepError struct {
	Step    int             // index
	Action  string          // canonical
	Err     error           // of [fileops.Registry.Resolve]
	Accepts []format.Format // what the action accepts, if it does not accept the formats of the files

	before string          // action of the step before; "": none
	files  []format.Format // that do not fit
	unlike bool            // each of the files fits, but they do not fit together
}

// Error describes e: it names the step and, if the files do not fit, what the action
// accepts.
func (e *StepError) Error() string {
	name, files := fmt.Sprintf("step %d (%s)", e.Step+1, e.Action), join(e.files)
	if e.before != "" {
		files += fmt.Sprintf(" from step %d (%s)", e.Step, e.before)
	}
	switch {
	case e.unlike:
		return fmt.Sprintf("%s does not accept these formats together: %s", name, files)
	case e.Accepts != nil:
		return fmt.Sprintf("%s does not accept %s; it accepts %s", name, files, join(e.Accepts))
	}
	return fmt.Sprintf("%s: %s", name, fileops.Message(e.Err))
}

// Unwrap returns the error of [fileops.Registry.Resolve].
func (e *StepError) Unwrap() error { return e.Err }

func join(formats []format.Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		if names[i] = string(f); f == format.Any {
			names[i] = "any file"
		}
	}
	return strings.Join(names, ", ")
}

// Plan checks a request with several steps for inputs of the given formats. The formats
// of the results of a step follow from its action and parameters; see
// [fileops.Spec.ResultFormats]. Where they cannot, as for the files in an archive, the
// next step fits if its action accepts some format with these parameters, and files of
// other formats fail when the step runs. The error is a *[StepError].
func (m *Matrix) Plan(inputs []format.Format, steps []Step) ([]Stage, error) {
	var stages []Stage
	current, known := unique(inputs), true
	for i, step := range steps {
		action := m.Canonical(step.Action)
		st := Stage{Action: action, Families: make(map[format.Format]string), Guessed: !known, Uploads: make(map[string]string)}
		refused := func(err error) *StepError {
			e := &StepError{Step: i, Action: action, Err: err}
			if i > 0 {
				e.before = stages[i-1].Action
			}
			if !known {
				return e
			}
			if e.files = slices.DeleteFunc(slices.Clone(current), func(f format.Format) bool { return m.accepts(action, f) }); len(e.files) > 0 {
				e.Accepts = m.formatsOf(action)
			}
			return e
		}
		if !known {
			current = m.all()
		}
		next, unforeseen := []format.Format(nil), false
		take := func(a fileops.Action, p fileops.Params, formats ...format.Format) {
			spec := a.Spec()
			for _, f := range formats {
				st.Families[f] = spec.Family
			}
			maps.Insert(st.Uploads, p.Uploads())
			results := spec.ResultFormats(formats, p)
			unforeseen = unforeseen || results == nil
			next = append(next, results...)
		}
		var problem error = &fileops.UnsupportedError{Action: action}
		for _, f := range current {
			a, p, err := m.Resolve(action, []format.Format{f}, step.Parameters)
			if err != nil && known {
				return nil, refused(err)
			}
			if err != nil {
				problem = merged(problem, err)
				continue
			}
			st.Joint = st.Joint || a.Spec().Joint
			take(a, p, f)
		}
		if len(st.Families) == 0 {
			return nil, refused(problem)
		}
		if st.Joint && known {
			a, p, err := m.Resolve(action, current, step.Parameters)
			if err != nil {
				e := refused(err)
				if e.Accepts == nil && isUnsupported(err) {
					e.files, e.unlike = current, true
				}
				return nil, e
			}
			next, unforeseen = nil, false
			take(a, p, current...)
		}
		current = unique(next)
		// An action that keeps the format of any file gives files of any format.
		known = !unforeseen && (!st.Guessed || len(current) == 1 && current[0] != format.Any)
		if known {
			st.Results = current
		}
		stages = append(stages, st)
	}
	return stages, nil
}

// merged returns the error of an action that accepts no format: that of a parameter, with
// the values that any format allows, before that of the action.
func merged(sum, err error) error {
	var old, p *fileops.ParamError
	switch {
	case !errors.As(err, &p):
		return sum
	case !errors.As(sum, &old):
		return p
	case old.Param != p.Param || len(old.Allowed) == 0 || len(p.Allowed) == 0:
		return sum
	}
	all := unique(slices.Concat(old.Allowed, p.Allowed))
	return &fileops.ParamError{Param: p.Param, Reason: "must be one of: " + strings.Join(all, ", "), Allowed: all}
}

// accepts reports whether an action accepts files of a format with some parameters.
func (m *Matrix) accepts(action string, f format.Format) bool {
	_, ok := m.reg.Schema(action, f)
	return ok
}

func isUnsupported(err error) bool {
	var u *fileops.UnsupportedError
	return errors.As(err, &u)
}

// formatsOf returns the formats that an action accepts, sorted.
func (m *Matrix) formatsOf(action string) []format.Format {
	return collect(m.Entries(), func(e Entry) bool { return e.Action == action })
}

// all returns all formats of the matrix, sorted.
func (m *Matrix) all() []format.Format {
	return collect(m.Entries(), func(Entry) bool { return true })
}

func collect(entries iter.Seq[Entry], selected func(Entry) bool) []format.Format {
	seen := make(map[format.Format]bool)
	for e := range entries {
		if selected(e) {
			seen[e.Format] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func unique[T comparable](list []T) (out []T) {
	for _, v := range list {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
