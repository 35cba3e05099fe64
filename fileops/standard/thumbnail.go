package standard

import (
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// thumbnails returns previews of the formats that no thumbnail action of all takes, in
// two steps: what converts to PDF shows a page, and video shows a frame.
func thumbnails(all []fileops.Action) (out []fileops.Action) {
	of := make(map[format.Format]fileops.Action) // the thumbnail action of a format
	for _, a := range all {
		if spec := a.Spec(); spec.Name == "thumbnail" {
			for _, acc := range spec.Accepts {
				if len(acc.Changes) > 0 { // sheets of several pictures
					continue
				}
				for _, f := range acc.Formats {
					if of[f] == nil {
						of[f] = a
					}
				}
			}
		}
	}
	for _, a := range all {
		spec := a.Spec()
		if spec.Name != "convert" || spec.Joint {
			continue
		}
		if t := of[format.JPG]; t != nil {
			out = preview(out, of, a, format.JPG, t, func(f format.Format) bool { return f.Family() == format.Video })
		}
		if t := of[format.PDF]; t != nil {
			out = preview(out, of, a, format.PDF, t, func(f format.Format) bool { return f.Family() != format.Video })
		}
	}
	return out
}

// preview appends an action that converts with first to mid and shows the result with
// second, for the formats that fit and have no preview yet.
func preview(out []fileops.Action, of map[format.Format]fileops.Action, first fileops.Action, mid format.Format, second fileops.Action, fits func(format.Format) bool) []fileops.Action {
	one, two := first.Spec(), second.Spec()
	spec := fileops.Spec{
		Name: two.Name, Engine: one.Engine + " + " + two.Engine, Family: one.Family, Encrypted: one.Encrypted,
		Summary: "Makes a small preview by way of " + mid.Title() + ".",
	}
	shown := two.Accepts[slices.IndexFunc(two.Accepts, func(acc fileops.Accept) bool { return slices.Contains(acc.Formats, mid) })].Params
	for _, f := range inputs(first, mid) {
		if !fits(f) || of[f] != nil {
			continue
		}
		var params fileops.Schema
		for _, p := range shown {
			if p.Scope != fileops.ScopeInput {
				params = append(params, p)
			}
		}
		for _, p := range accepted(first, f, mid) {
			if p.Scope == fileops.ScopeInput || p.Name == "time" {
				params = append(params, p)
			}
		}
		spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: []format.Format{f}, Params: params})
	}
	if len(spec.Accepts) == 0 {
		return out
	}
	spec.Accepts = group(spec.Accepts)
	chain := fileops.Chain(spec,
		fileops.Step{Action: first, Args: func(p fileops.Params) fileops.Args {
			args := p.Args()
			for name := range args {
				if slices.ContainsFunc(shown, func(p fileops.Param) bool { return p.Name == name && p.Scope != fileops.ScopeInput }) {
					delete(args, name)
				}
			}
			args[convertTo] = string(mid)
			return args
		}},
		fileops.Step{Action: second, Args: func(p fileops.Params) fileops.Args {
			args := p.Args()
			for name := range args {
				if !slices.ContainsFunc(shown, func(p fileops.Param) bool { return p.Name == name && p.Scope != fileops.ScopeInput }) {
					delete(args, name)
				}
			}
			return args
		}})
	for _, acc := range spec.Accepts {
		for _, f := range acc.Formats {
			of[f] = chain
		}
	}
	return append(out, chain)
}
