package dashboard

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops/format"
)

// A tryPage has the formats for the scripts, as JSON.
type tryPage struct {
	Kinds, Families string
	OneCall         bool
	Imports         bool
}

func (d *Dashboard) try(v *visit) error {
	kinds, families := make(map[string]string), make(map[string]string)
	for f := range format.Known() {
		for _, name := range append(f.Aliases(), f) {
			families[string(name)] = string(f.Family())
			if kind := previewKind("x." + string(name)); kind != "" {
				kinds[string(name)] = kind
			}
		}
	}
	k, err := json.Marshal(kinds)
	if err != nil {
		return err
	}
	f, err := json.Marshal(families)
	if err != nil {
		return err
	}
	return d.render(v, http.StatusOK, page{Template: "try", Title: "Try it", Nav: "try", Body: tryPage{string(k), string(f), d.cfg.OneCall, d.cfg.Imports}})
}

// tryParameters answers GET …/try/parameters?action=convert&ext=docx&convert_to=pdf with the names
// of the parameters that this target accepts for all given extensions. supported-operation, in
// contrast, describes the parameters of all targets of an action.
func (d *Dashboard) tryParameters(v *visit) error {
	q := v.r.URL.Query()
	matrix := d.cfg.Service.Capabilities()
	var names []string
	for i, ext := range q["ext"] {
		if i == 100 {
			break
		}
		of := parametersFor(matrix, matrix.Canonical(q.Get("action")), format.Parse(ext), q.Get("convert_to"))
		if i == 0 {
			names = of
			continue
		}
		names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(of, n) })
	}
	if names == nil {
		names = []string{}
	}
	b, err := json.Marshal(map[string][]string{"parameters": names})
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Write(b)
	return nil
}

func parametersFor(m *capability.Matrix, action string, f format.Format, target string) (names []string) {
	for e := range m.Entries() {
		if e.Action != action || e.Format != f && e.Format != format.Any {
			continue
		}
		fits := target == ""
		for _, p := range e.Params {
			if p.Name == "convert_to" {
				fits = fits || slices.ContainsFunc(p.Enum, func(t string) bool { return strings.EqualFold(t, target) })
			}
		}
		if !fits {
			continue
		}
		for _, p := range e.Params {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
		if target != "" {
			return names // the first capable action runs
		}
	}
	return names
}
