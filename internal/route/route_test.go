package route_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/route"
)

// One step is better than two, and earlier converters and joins are better than later
// ones. Before and Only change that.
func TestSteps(t *testing.T) {
	t.Parallel()
	steps := []string{
		"office docx pdf", "office epub pdf", "office epub html", "office txt pdf", "office csv html",
		"web html pdf", "web txt pdf", "page pdf png", "page pdf docx", "page pdf csv",
	}
	r := &route.Router{
		Converters: []string{"web", "office", "page"},
		Can:        func(s route.Step) bool { return slices.Contains(steps, s.By+" "+string(s.From)+" "+string(s.To)) },
		Joins: []route.Join{
			{First: "office", Mid: format.HTML, Second: "web", Before: true, Only: func(from, _ format.Format) bool { return from == format.EPUB }},
			{First: "web", Mid: format.PDF, Second: "page"},
			{First: "office", Mid: format.PDF, Second: "page", Only: func(_, to format.Format) bool { return to == format.PNG }},
		},
	}
	for pair, want := range map[string]string{
		"docx pdf": "office", "txt pdf": "web", "epub pdf": "office web", "txt png": "web page", "docx png": "office page",
		"docx docx": "", "docx csv": "", "csv pdf": "", "html docx": "web page", "png pdf": "", "pdf png": "page",
	} {
		from, to, _ := strings.Cut(pair, " ")
		var by []string
		at := format.Format(from)
		for _, s := range r.Steps(at, format.Format(to)) {
			if s.From != at {
				t.Errorf("%s: a step from %s begins at %s", pair, s.From, at)
			}
			by, at = append(by, s.By), s.To
		}
		if got := strings.Join(by, " "); got != want {
			t.Errorf("%s: %q, want %q", pair, got, want)
		}
	}
}
