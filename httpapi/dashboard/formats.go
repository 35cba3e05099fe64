package dashboard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
)

type formatsPage struct {
	Query    string
	Families []*formatFamily
	Any      []string // actions for every file
	Count    int
	Engines  []httpapi.Engine
	Sandbox  *httpapi.Sandbox
	Tier     tier
}

type formatFamily struct {
	Name    string
	Formats []*formatRow
}

type formatRow struct {
	Ext, Title string
	Aliases    []string
	Actions    []string
	Targets    []string
	Engines    []string
}

// A tier explains a sandbox tier, without its number.
type tier struct{ Kind, Title, Text string }

func tierOf(s *httpapi.Sandbox) tier {
	switch {
	case s == nil:
		return tier{"warn", "Unknown", "This server does not report how it confines its engines."}
	case s.Tier >= 4:
		return tier{"ok", "Fully confined", "Engines see only the files of their task, cannot reach the network, may not make dangerous system calls, and run in namespaces and a control group of their own."}
	case s.Tier == 3:
		return tier{"ok", "Confined", "Engines see only the files of their task, cannot reach the network, may not make dangerous system calls, and run in namespaces of their own."}
	case s.Tier == 2:
		return tier{"ok", "Confined", "Engines see only the files of their task, cannot reach the network, and may not make dangerous system calls."}
	case s.Tier == 1:
		return tier{"warn", "Partly confined", "Engines are partly confined: either file access or system calls."}
	}
	return tier{"bad", "Not confined", "Engines are not confined. A hostile file could read other files or use the network."}
}

var familyNames = []struct {
	family format.Family
	name   string
}{
	{format.Document, "Documents"}, {format.Slides, "Slides"}, {format.Sheet, "Sheets"}, {format.Image, "Pictures"},
	{format.Audio, "Audio"}, {format.Video, "Video"}, {format.Archive, "Archives"}, {format.Other, "Other"},
}

func (d *Dashboard) formats(v *visit) error {
	b := formatsPage{Query: strings.TrimSpace(v.r.URL.Query().Get("q")), Engines: d.cfg.Service.Engines(), Sandbox: d.cfg.Service.Sandbox()}
	b.Tier = tierOf(b.Sandbox)
	rows := make(map[format.Format]*formatRow)
	byFamily := make(map[format.Family][]*formatRow)
	add := func(to *[]string, what string) {
		if !slices.Contains(*to, what) {
			*to = append(*to, what)
		}
	}
	for e := range d.cfg.Service.Capabilities().Entries() {
		if e.Format == format.Any {
			add(&b.Any, e.Action)
			continue
		}
		r := rows[e.Format]
		if r == nil {
			r = &formatRow{Ext: string(e.Format), Title: e.Format.Title()}
			for _, a := range e.Format.Aliases() {
				r.Aliases = append(r.Aliases, string(a))
			}
			rows[e.Format] = r
			byFamily[e.Format.Family()] = append(byFamily[e.Format.Family()], r)
		}
		add(&r.Actions, e.Action)
		add(&r.Engines, e.Engine)
		if e.Action != "convert" {
			continue
		}
		for _, p := range e.Params {
			if p.Name == "convert_to" {
				for _, t := range p.Enum {
					add(&r.Targets, t)
				}
			}
		}
	}
	for _, f := range familyNames {
		fam := &formatFamily{Name: f.name}
		for _, r := range byFamily[f.family] {
			slices.Sort(r.Actions)
			slices.Sort(r.Targets)
			slices.Sort(r.Engines)
			if r.matches(b.Query) {
				fam.Formats = append(fam.Formats, r)
			}
		}
		slices.SortFunc(fam.Formats, func(x, y *formatRow) int { return strings.Compare(x.Ext, y.Ext) })
		if b.Count += len(fam.Formats); len(fam.Formats) > 0 {
			b.Families = append(b.Families, fam)
		}
	}
	return d.render(v, http.StatusOK, page{Template: "formats", Title: "Formats", Nav: "formats", Body: b})
}

// matches reports whether a search query matches the format: its extension, title, targets or
// engines.
func (r *formatRow) matches(query string) bool {
	q := strings.ToLower(strings.TrimPrefix(query, "."))
	if q == "" || r.Ext == q || slices.Contains(r.Aliases, q) || strings.Contains(strings.ToLower(r.Title), q) {
		return true
	}
	return slices.ContainsFunc(r.Engines, func(e string) bool { return strings.Contains(strings.ToLower(e), q) }) || slices.Contains(r.Actions, q)
}
