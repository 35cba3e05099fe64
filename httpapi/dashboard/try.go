package dashboard

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/upload"
)

// A tryPage has the formats for the scripts, as JSON.
type tryPage struct {
	Kinds, Families string
	OneCall         bool
	Imports         bool
	From            string // JSON of an operation to run again with changes; "": none
	MaxFiles        int    // of one operation
	MaxSize         int64  // of a file in bytes
	Limits          string // of the above, for people
}

// A tryFrom is an operation that the page runs again with changes.
type tryFrom struct {
	Action     string         `json:"action"`
	Parameters map[string]any `json:"parameters"`
	Files      []tryFile      `json:"files"`
}

type tryFile struct {
	Key  string `json:"file_key"`
	Name string `json:"file_name"`
	Size int64  `json:"size"`
	Type string `json:"mime_type"`
}

// tryFrom returns the operation with an ID, as far as its files still exist; nil: none.
func (d *Dashboard) tryFrom(v *visit, id string) (*tryFrom, error) {
	op, err := d.cfg.Service.Operations().Get(v.r.Context(), v.owner(), id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || len(op.Asked) != 1 || len(op.Steps) > 0 {
		return nil, err
	}
	from := &tryFrom{Action: op.Action, Parameters: op.Asked[0].Parameters, Files: []tryFile{}}
	for _, it := range op.Items {
		for _, in := range it.Inputs {
			f, err := d.cfg.Service.Uploads().Ready(v.r.Context(), v.owner(), in.Key)
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, upload.ErrExpired):
			case err != nil:
				return nil, err
			default:
				from.Files = append(from.Files, tryFile{f.Key, f.Name, f.Size, f.ContentType})
			}
		}
	}
	return from, nil
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
	b := tryPage{Kinds: string(k), Families: string(f), OneCall: d.cfg.OneCall, Imports: d.cfg.Imports}
	limits := d.cfg.Service.Limits()
	b.MaxFiles, b.MaxSize = limits.Files, limits.FileSize
	b.Limits = "Up to " + plural(b.MaxFiles, "file", "files")
	if b.MaxSize > 0 {
		b.Limits += " of " + bytesText(b.MaxSize) + " each"
	}
	if id := v.r.URL.Query().Get("from"); id != "" {
		from, err := d.tryFrom(v, id)
		if err != nil {
			return err
		}
		if from != nil {
			j, err := json.Marshal(from)
			if err != nil {
				return err
			}
			b.From = string(j)
		}
	}
	return d.render(v, http.StatusOK, page{Template: "try", Title: "Try it", Nav: "try", Body: b})
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
