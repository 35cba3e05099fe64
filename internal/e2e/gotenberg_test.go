//go:build linux

package e2e

import (
	"bytes"
	"image"
	_ "image/jpeg"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

type formPart = systest.Part

// gotenberg sends a form to a route of Gotenberg, without a key.
func gotenberg(t *testing.T, s *server, path string, parts ...formPart) (*http.Response, []byte) {
	t.Helper()
	body, contentType := systest.Form(t, parts...)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, bytes.NewReader(body))
	systest.NoError(t, err)
	r.Header.Set("Content-Type", contentType)
	return systest.Send(t, r)
}

// A client of Gotenberg gets the results of the real engines.
func TestGotenberg(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "data"), "--gotenberg", "--gotenberg-account", "admin")
	text := func(name, value string) formPart { return formPart{name, "", value} }
	words := func(b []byte) string {
		return tool(t, "pdftotext", file{"result.pdf", b}.save(t), "-")
	}
	document := formPart{"files", "report.docx", string(docx(t).b)}

	for _, c := range []struct {
		path  string
		parts []formPart
		want  []string // in the text of the PDF, with the producer
		not   string
	}{
		{"libreoffice/convert", []formPart{document}, []string{"quick brown fox"}, ""},
		{"libreoffice/convert", []formPart{document, {"files", "second.txt", "the second file"}, text("merge", "true"), text("rotateAngle", "90"), text("metadata", `{"Title":"T"}`)}, []string{"quick brown fox", "the second file"}, ""},
		{"libreoffice/convert", []formPart{document, text("nativeWatermarkText", "SECRETIVE"), text("pdfua", "true")}, []string{"quick brown fox"}, ""},
		{"chromium/convert/html", []formPart{
			{"files", "index.html", `<!doctype html><link rel=stylesheet href=style.css><p id=a>one</p><p id=b>two</p><script>a.textContent = "scripted"</script>`},
			{"files", "style.css", "#b { display: none }"},
		}, []string{"scripted"}, "two"},
		{"chromium/convert/html", []formPart{{"files", "index.html", "<p>body</p>"}, {"files", "footer.html", `<p style="font-size:20px">page <span class="pageNumber"></span></p>`}, text("marginBottom", "2")}, []string{"body", "page 1"}, ""},
		{"chromium/convert/markdown", []formPart{{"files", "index.html", `<body>{{ toHTML "a.md" }}</body>`}, {"files", "a.md", "# Heading\n\n| a | b |\n|---|---|\n| x | y |\n"}}, []string{"Heading", "x"}, "|"},
		{"pdfengines/merge", []formPart{{"files", "b.pdf", string(pdf(t).b)}, {"files", "a.pdf", string(pdf(t).b)}}, []string{"quick brown fox"}, ""},
	} {
		resp, body := gotenberg(t, s, "/forms/"+c.path, c.parts...)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d %.300s", c.path, resp.StatusCode, body)
			continue
		}
		got := words(body)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in %q", c.path, want, got)
			}
		}
		if c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %q is in %q", c.path, c.not, got)
		}
	}
	resp, body := gotenberg(t, s, "/forms/libreoffice/convert", document, text("pdfa", "PDF/A-2b"))
	if meta := tool(t, "pdfinfo", "-meta", file{"result.pdf", body}.save(t)); resp.StatusCode != http.StatusOK || !strings.Contains(meta, "pdfaid:part") {
		t.Errorf("PDF/A: status %d %s", resp.StatusCode, meta)
	}
	resp, body = gotenberg(t, s, "/forms/chromium/screenshot/html", formPart{"files", "index.html", `<p id=a style="width:300px;height:200px;background:red">x</p>`},
		text("format", "jpeg"), text("selector", "#a"))
	if m, kind, err := image.DecodeConfig(bytes.NewReader(body)); err != nil || kind != "jpeg" || m.Width != 300 || m.Height != 200 || resp.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("screenshot: status %d %s %v, error %v", resp.StatusCode, kind, m, err)
	}
	locked := formPart{"files", "locked.pdf", string(lockedPDF(t, "abc").b)}
	if resp, body := gotenberg(t, s, "/forms/pdfengines/flatten", locked); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("locked: status %d %s", resp.StatusCode, body)
	}
}
