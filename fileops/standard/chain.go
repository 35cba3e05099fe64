package standard

import (
	"maps"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

const convertTo = "convert_to"

// passOn gives the chain's own parameters to a step.
func passOn(p fileops.Params) fileops.Args { return p.Args() }

// inputs returns the formats that a converts to target, in the order of its
// Spec.
func inputs(a fileops.Action, target format.Format) []format.Format {
	var out []format.Format
	for _, acc := range a.Spec().Accepts {
		if !slices.Contains(targets(acc.Params), target) {
			continue
		}
		for _, f := range acc.Formats {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// targets returns the formats that a schema lists for convert_to.
func targets(s fileops.Schema) []format.Format {
	var out []format.Format
	for _, p := range s {
		if p.Name == convertTo {
			for _, v := range p.Enum {
				out = append(out, format.Format(v))
			}
		}
	}
	return out
}

// via returns an action that converts in two steps, from each of the formats
// that first can turn into mid to whatever second makes of mid. Only pairs that
// wanted says yes to, and that direct does not list, are offered. It returns nil
// if there are none. The parameters are those of second, except how the file in
// between is separated, and those that say what first is to read.
func via(first fileops.Action, mid format.Format, second fileops.Action, direct []fileops.Action, wanted func(from, to format.Format) bool) fileops.Action {
	if first == nil || second == nil {
		return nil
	}
	known := make(map[[2]format.Format]bool)
	for _, a := range direct {
		for _, acc := range a.Spec().Accepts {
			for _, t := range targets(acc.Params) {
				for _, f := range acc.Formats {
					known[[2]format.Format{f, t}] = true
				}
			}
		}
	}
	one, two := first.Spec(), second.Spec()
	spec := fileops.Spec{
		Name: two.Name, Engine: one.Engine + " + " + two.Engine, Family: one.Family,
		Summary: "Converts by way of " + mid.Title() + ".",
	}
	for _, from := range inputs(first, mid) {
		for _, acc := range two.Accepts {
			if !slices.Contains(acc.Formats, mid) {
				continue
			}
			schema := slices.DeleteFunc(slices.Clone(acc.Params), func(p fileops.Param) bool { return p.Name == "delimiter" })
			i := slices.IndexFunc(schema, func(p fileops.Param) bool { return p.Name == convertTo })
			if i < 0 {
				continue
			}
			schema[i].Enum = slices.DeleteFunc(slices.Clone(schema[i].Enum), func(v string) bool {
				t := format.Format(v)
				return t == from || t == mid || known[[2]format.Format{from, t}] || !wanted(from, t)
			})
			if len(schema[i].Enum) == 0 {
				continue
			}
			schema[i].Aliases = aliasesOf(schema[i].Enum)
			schema = append(schema, reading(first, from, mid, schema)...)
			spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: []format.Format{from}, Params: schema})
		}
	}
	if len(spec.Accepts) == 0 {
		return nil
	}
	spec.Accepts = group(spec.Accepts)
	// A parameter about reading is the second action's if that takes it here.
	before := func(name string, p fileops.Params) bool {
		return slices.Contains(readingParams, name) && !takes(two, mid, format.Format(p.Get(convertTo)), name)
	}
	return fileops.Chain(spec,
		fileops.Step{Action: first, Args: func(p fileops.Params) fileops.Args {
			args := p.Args()
			maps.DeleteFunc(args, func(name string, _ any) bool { return !before(name, p) })
			args[convertTo] = string(mid)
			return args
		}},
		fileops.Step{Action: second, Args: func(p fileops.Params) fileops.Args {
			args := p.Args()
			maps.DeleteFunc(args, func(name string, _ any) bool { return before(name, p) })
			return args
		}})
}

// readingParams are those that say what of a file is read, and how.
var readingParams = []string{"pages", "ocr_language", "sheet"}

// reading returns the parameters of first about reading that schema does not
// have.
func reading(first fileops.Action, from, mid format.Format, schema fileops.Schema) (out fileops.Schema) {
	for _, acc := range first.Spec().Accepts {
		if !slices.Contains(acc.Formats, from) || !slices.Contains(targets(acc.Params), mid) {
			continue
		}
		for _, p := range acc.Params {
			if slices.Contains(readingParams, p.Name) && !has(schema, p.Name) {
				out = append(out, p)
			}
		}
		break
	}
	return out
}

func has(s fileops.Schema, name string) bool {
	return slices.ContainsFunc(s, func(p fileops.Param) bool { return p.Name == name })
}

// takes tells whether an action has a parameter of a name for converting from one
// format to another.
func takes(s fileops.Spec, from, to format.Format, name string) bool {
	return slices.ContainsFunc(s.Accepts, func(a fileops.Accept) bool {
		return slices.Contains(a.Formats, from) && slices.Contains(targets(a.Params), to) && has(a.Params, name)
	})
}

// aliasesOf returns the other spellings of formats: jpeg for jpg.
func aliasesOf(values []string) map[string]string {
	m := make(map[string]string)
	for _, v := range values {
		for _, a := range format.Format(v).Aliases() {
			m[string(a)] = v
		}
	}
	return m
}

// group joins entries that take the same parameters, which makes tables short.
func group(all []fileops.Accept) []fileops.Accept {
	var out []fileops.Accept
	for _, a := range all {
		i := slices.IndexFunc(out, func(o fileops.Accept) bool { return sameSchema(o.Params, a.Params) })
		if i < 0 {
			out = append(out, a)
			continue
		}
		out[i].Formats = append(slices.Clone(out[i].Formats), a.Formats...)
	}
	return out
}

func sameSchema(a, b fileops.Schema) bool {
	return slices.EqualFunc(a, b, func(x, y fileops.Param) bool {
		return x.Name == y.Name && x.Doc == y.Doc && x.Type == y.Type && x.Required == y.Required && x.Default == y.Default &&
			slices.Equal(x.Enum, y.Enum) && x.Min == y.Min && x.Max == y.Max && x.Pattern == y.Pattern && x.Secret == y.Secret
	})
}
