package browsertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/browsertest"
)

// A recorder is a test that keeps its errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// The check finds what is wrong in one of many rows that look alike, and leaves the page as it was.
func TestAccessible(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ row, want string }{
		"nothing":     {`<tr><td class="plain">a text</td></tr>`, ""},
		"picture":     {`<tr><td class="plain"><img src="/x.png" width="9" height="9"></td></tr>`, "image-alt"},
		"contrast":    {`<tr><td class="pale">a text</td></tr>`, "color-contrast"},
		"unlabelled":  {`<tr><td class="plain"><input></td></tr>`, "label"},
		"role":        {`<tr><td class="plain"><b role="no-role">a text</b></td></tr>`, "aria-roles"},
		"wide":        {`<tr><td class="plain"><div class="wide">a text</div></td></tr>`, "wider than the screen"},
		"alike later": {strings.Repeat(`<tr><td class="plain"><input></td></tr>`, 9), "label"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := strings.Repeat(`<tr><td class="plain">a text</td></tr>`, 20)
			page := `<!DOCTYPE html><html lang="en"><title>Rows</title><style>.pale { color: #ddd } .wide { width: 3000px }</style>` +
				`<main><h1>Rows</h1><table><thead><tr><th>Text</th></tr></thead><tbody>` + plain + tt.row + plain + `</tbody></table></main></html>`
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".png") || strings.HasSuffix(r.URL.Path, ".ico") {
					w.WriteHeader(http.StatusNoContent)
					return
				}
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprint(w, page)
			}))
			defer server.Close()
			rec := &recorder{TB: t}
			tab := browsertest.Open(rec)
			tab.Size(800, 600)
			tab.Go(server.URL)
			var before, after string
			tab.Eval(`document.documentElement.outerHTML`, &before)
			tab.Accessible()
			tab.Eval(`document.documentElement.outerHTML`, &after)
			if before != after {
				t.Error("the check changes the page")
			}
			found := strings.Join(rec.errors, "\n")
			if (found == "") != (tt.want == "") || !strings.Contains(found, tt.want) {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}
