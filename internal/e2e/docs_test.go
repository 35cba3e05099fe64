//go:build linux

package e2e

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/filewright/filewright/internal/browsertest"
	"github.com/filewright/filewright/internal/systest"
)

// weights are the limits of the bytes of a page and everything that it loads, as they are sent.
const (
	firstPageBytes = 150_000
	referenceBytes = 150_000
)

// The documentation works in a browser: at three sizes, light and dark, by keyboard, without problems
// that axe-core finds, and with the policy that it sets.
func TestDocs(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"))
	tab := browsertest.Open(t)
	sent := func() (bytes int) {
		tab.Eval(`performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).reduce((n, e) => n + e.transferSize, 0)`, &bytes)
		return bytes
	}

	tab.Size(1280, 860)
	tab.Scheme("light")
	tab.Go(s.url + "/docs")
	if n := sent(); n == 0 || n > firstPageBytes {
		t.Errorf("the first page has %d bytes, at most %d are allowed", n, firstPageBytes)
	} else {
		t.Logf("first page: %d bytes", n)
	}
	var pages []string
	tab.Eval(`[...document.querySelectorAll(".side a")].map(a => a.getAttribute("href"))`, &pages)
	if len(pages) < 30 || pages[0] != "/docs/quickstart" {
		t.Errorf("the navigation has %q", pages)
	}
	// All pages have the same frame and style. Narrow and dark ones are checked whole where they differ most.
	all := append([]string{"/docs"}, pages...)
	special := []string{"/docs", "/docs/quickstart", "/docs/comparison", "/docs/troubleshooting", "/docs/formats", "/docs/api"}
	if testing.Short() {
		all, special = special[:4], special[1:4]
	}
	for _, page := range all {
		tab.Go(s.url + page)
		tab.Accessible()
	}
	tab.Size(390, 860)
	tab.Scheme("dark")
	for _, page := range all {
		tab.Go(s.url + page)
		if slices.Contains(special, page) {
			tab.Accessible()
		} else {
			tab.Fits()
		}
	}
	tab.Size(768, 860)
	tab.Scheme("light")
	for _, page := range all {
		tab.Go(s.url + page)
		tab.Fits()
	}
	tab.NoProblems()

	// The reference is sent compressed, as all texts.
	for path, limit := range map[string]int{"/docs/api": referenceBytes, "/docs/search.json": referenceBytes, "/openapi.json": referenceBytes} {
		r, err := http.NewRequest("GET", s.url+path, nil)
		systest.NoError(t, err)
		r.Header.Set("Accept-Encoding", "gzip")
		resp, body := systest.Send(t, r)
		if resp.Header.Get("Content-Encoding") != "gzip" || len(body) > limit {
			t.Errorf("%s: %d bytes, encoding %q", path, len(body), resp.Header.Get("Content-Encoding"))
		}
		t.Logf("%s: %d bytes", path, len(body))
	}

	// The search by keyboard.
	tab.Size(1280, 860)
	tab.Go(s.url + "/docs")
	tab.Do(chromedp.KeyEvent("/"), chromedp.KeyEvent("password_required"))
	tab.Wait(`document.querySelectorAll("#results li").length > 0`)
	tab.Accessible()
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Wait(`location.hash === "#file-error-password_required"`)
	for query, want := range map[string]string{"webhook signature": "/docs/webhooks", "create an operation": "/docs/api#", "cluster": "/docs/guides/cluster", "rate_limit_exceeded": "/docs/troubleshooting#error-rate_limit_exceeded"} {
		tab.Go(s.url + "/docs")
		tab.Fill("#search", query)
		tab.Wait(`document.querySelectorAll("#results li").length > 0`)
		var urls []string
		tab.Eval(`[...document.querySelectorAll("#results a")].map(a => a.getAttribute("href"))`, &urls)
		found := false
		for _, u := range urls {
			found = found || strings.HasPrefix(u, want)
		}
		if !found {
			t.Errorf("the search for %q finds %q, not %s", query, urls, want)
		}
	}
	tab.Fill("#search", "xyzzyplugh")
	tab.Wait(`document.querySelector("#found").textContent.startsWith("Nothing found")`)
	tab.Do(chromedp.KeyEvent(kb.Escape))
	tab.Wait(`document.querySelector("#results").hidden`)

	// Tabs, by keyboard. The choice is kept.
	tab.Go(s.url + "/docs/quickstart")
	tab.Click(".tablist button")
	tab.Do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	shown := `[...document.querySelectorAll(".tabs")][0].querySelector("[role=tabpanel]:not([hidden])")`
	tab.Wait(`document.activeElement.textContent === "Python" && ` + shown + `.textContent.includes("convert.py")`)
	tab.Go(s.url + "/docs/quickstart")
	tab.Wait(shown + `.textContent.includes("convert.py")`)
	tab.Go(s.url + "/docs/quickstart#php")
	tab.Wait(shown + `.textContent.includes("convert.php")`)

	// Copy buttons copy commands without the prompt and the output.
	tab.Eval(`window.copied = ""; navigator.clipboard.writeText = async (text) => { window.copied = text }`, nil)
	tab.Click(".code .copy")
	tab.Wait(`window.copied !== ""`)
	var copied string
	tab.Eval(`window.copied`, &copied)
	if !strings.HasPrefix(copied, "git clone ") || !strings.Contains(copied, "\nexport API=") || strings.Contains(copied, "$ ") {
		t.Errorf("copied: %q", copied)
	}

	// The type of an error leads to its section, also that of earlier versions of the reference.
	tab.Go(s.url + "/docs#error-unauthorized")
	tab.Wait(`location.pathname === "/docs/troubleshooting" && location.hash === "#error-unauthorized"`)
	tab.Go(s.url + "/docs#action-zip")
	tab.Wait(`location.pathname === "/docs/api" && location.hash === "#action-zip"`)
	tab.NoProblems()

	// Without scripts, everything can be read.
	r, err := http.NewRequest("GET", s.url+"/docs/quickstart", nil)
	systest.NoError(t, err)
	resp, body := systest.Send(t, r)
	if resp.StatusCode != 200 || !strings.Contains(string(body), "convert.php") || !strings.Contains(string(body), `<details open>`) {
		t.Errorf("%d %.300s", resp.StatusCode, body)
	}
}
