package archiveops

import (
	"path"
	"strings"

	"github.com/filewright/filewright/fileops"
)

const paramMembers = "members"

func membersParam() fileops.Param {
	return fileops.Param{
		Name: paramMembers, Min: 1, Max: 1000,
		Doc: "Files to extract, as globs separated by commas, such as *.pdf,docs/**; all if absent.",
	}
}

// A glob chooses files by their folded paths.
type glob struct {
	text    string
	parts   []string // ** matches any number of folders
	matched bool
}

// parseGlobs parses globs that are separated by commas.
func parseGlobs(list string) (globs []*glob, err error) {
	for _, text := range splitList(list) {
		g := &glob{text: text}
		pattern := strings.TrimLeft(strings.TrimPrefix(fold(text), "./"), "/")
		if strings.HasSuffix(pattern, "/") {
			pattern += "**"
		}
		if !strings.Contains(pattern, "/") {
			g.parts = append(g.parts, "**")
		}
		for part := range strings.SplitSeq(pattern, "/") {
			if _, err := path.Match(part, ""); err != nil {
				return nil, &fileops.ParamError{Param: paramMembers, Reason: "has the malformed pattern " + text}
			}
			if part == "**" && len(g.parts) > 0 && g.parts[len(g.parts)-1] == "**" {
				continue
			}
			g.parts = append(g.parts, part)
		}
		globs = append(globs, g)
	}
	if list != "" && len(globs) == 0 {
		return nil, &fileops.ParamError{Param: paramMembers, Reason: "names no file"}
	}
	return globs, nil
}

// splitList splits a list at its commas, except those after a backslash or in brackets.
func splitList(list string) (items []string) {
	var item strings.Builder
	escaped, class := false, false
	end := func() {
		if s := strings.TrimSpace(item.String()); s != "" {
			items = append(items, s)
		}
		item.Reset()
	}
	for _, r := range list {
		if r == ',' && !escaped && !class {
			end()
			continue
		}
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == '[':
			class = true
		case r == ']':
			class = false
		}
		item.WriteRune(r)
	}
	end()
	return items
}

// match reports whether a folded path matches. Like a glob with stars, it only ever
// returns to the last **, so its time is at most quadratic.
func (g *glob) match(key string) bool {
	names := strings.Split(key, "/")
	n, p := 0, 0
	anyAt, from := -1, 0 // position after the last **, and the first name that it does not cover
	for n < len(names) {
		if p < len(g.parts) && g.parts[p] == "**" {
			p++
			anyAt, from = p, n
			continue
		}
		if p < len(g.parts) {
			if ok, _ := path.Match(g.parts[p], names[n]); ok { // the pattern was checked
				n++
				p++
				continue
			}
		}
		if anyAt < 0 {
			return false
		}
		from++
		n, p = from, anyAt
	}
	for p < len(g.parts) && g.parts[p] == "**" {
		p++
	}
	return p == len(g.parts)
}
