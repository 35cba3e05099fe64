// Package route derives conversions in two steps from those in one step.
//
// A [Router] knows converters by name, and which pairs of formats each converts. Its
// joins say where two converters meet: "office" makes a PDF of a document, and "page"
// makes pictures of the PDF. The joins are written by hand; the conversions follow from
// them.
package route

import "github.com/filewright/filewright/fileops/format"

// A Step is a conversion by one converter.
type Step struct {
	By       string
	From, To format.Format
}

// A Join lets Second continue with the format Mid, which First produces.
type Join struct {
	First  string
	Mid    format.Format
	Second string

	// Only reports whether a pair of formats is worth the two steps; nil means that
	// every pair is.
	Only func(from, to format.Format) bool

	// Before makes the router prefer the join to a converter with one step.
	Before bool
}

// A Router finds steps.
type Router struct {
	Converters []string        // in order of preference
	Can        func(Step) bool // reports whether a converter can do a step
	Joins      []Join          // in order of preference
}

// Steps returns the conversion from one format to another: one step if a converter can
// do it, else two. It returns nil if there is no such conversion.
func (r *Router) Steps(from, to format.Format) []Step {
	if from == to {
		return nil
	}
	if steps := r.joined(from, to, true); steps != nil {
		return steps
	}
	for _, by := range r.Converters {
		if s := (Step{by, from, to}); r.Can(s) {
			return []Step{s}
		}
	}
	return r.joined(from, to, false)
}

func (r *Router) joined(from, to format.Format, before bool) []Step {
	for _, j := range r.Joins {
		if j.Before != before || from == j.Mid || to == j.Mid || j.Only != nil && !j.Only(from, to) {
			continue
		}
		first, second := Step{j.First, from, j.Mid}, Step{j.Second, j.Mid, to}
		if r.Can(first) && r.Can(second) {
			return []Step{first, second}
		}
	}
	return nil
}
