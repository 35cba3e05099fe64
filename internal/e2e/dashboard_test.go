//go:build linux

package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/filewright/filewright/internal/browsertest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/webhook"
)

// screenshots is the directory for pictures of all pages, below the root of the module; "" means
// none.
var screenshots = flag.String("screenshots", "", "`directory` in the module that the test of the dashboard writes screenshots to")

const newPassword = "correct horse battery"

// A boardHook is a receiver of webhooks.
type boardHook struct {
	*httptest.Server
	mu     sync.Mutex
	secret string
	got    []boardEvent
}

type boardEvent struct {
	id   string
	body string
	err  error // of the signature check
}

func newBoardHook(t *testing.T) *boardHook {
	h := &boardHook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err == nil && h.secret != "" {
			err = webhook.Verify([]string{h.secret}, r.Header, body, time.Now())
		}
		h.got = append(h.got, boardEvent{r.Header.Get("webhook-id"), string(body), err})
		fmt.Fprint(w, `<script>window.hacked = "by an answer"</script>`)
	}))
	t.Cleanup(h.Close)
	return h
}

// wait waits for n requests whose bodies contain a text, and returns them.
func (h *boardHook) wait(t *testing.T, n int, text string) []boardEvent {
	t.Helper()
	var found []boardEvent
	eventually(t, fmt.Sprintf("%d requests with %q", n, text), func() bool {
		found = nil
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, r := range h.got {
			if strings.Contains(r.body, text) {
				found = append(found, r)
			}
		}
		return len(found) >= n
	})
	return found
}

// login opens the dashboard of a new server and replaces the one-time password.
func login(t *testing.T, s *server, tab *browsertest.Tab) (name string) {
	t.Helper()
	m := passwordLine.FindStringSubmatch(s.banner)
	if m == nil {
		t.Fatalf("no password in the banner:\n%s", s.banner)
	}
	tab.Go(s.url + "/dashboard/keys?x=1")
	tab.Accessible()
	shot(tab, "login")
	refused := tab.Expect("401")
	tab.Fill("#name", m[1])
	tab.Fill("#password", "not this one")
	tab.Leave("form.form button")
	if text := tab.Text("[role=alert]"); text != "Wrong name or password." {
		t.Errorf("a wrong password: %s", text)
	}
	tab.Accessible()
	refused()
	tab.Fill("#password", m[2])
	tab.Leave("form.form button")
	tab.Go(s.url + "/dashboard/keys") // not accessible before the password is replaced
	if h := tab.Text("h1"); h != "Choose a password" {
		t.Fatalf("after the first login: %s", h)
	}
	tab.Accessible()
	weak := tab.Expect("422")
	tab.Fill("#old", m[2])
	tab.Fill("#new", newPassword)
	tab.Fill("#again", newPassword+"!")
	tab.Leave("form.form button")
	if text := tab.Text("#again-error"); !strings.Contains(text, "do not match") {
		t.Errorf("two passwords: %s", text)
	}
	weak()
	tab.Fill("#old", m[2])
	tab.Fill("#new", newPassword)
	tab.Fill("#again", newPassword)
	tab.Leave("form.form button")
	if h := tab.Text("h1"); h != "Overview" {
		t.Fatalf("after the password was changed: %s", h)
	}
	return m[1]
}

// shot takes a screenshot of the page if -screenshots is set.
func shot(tab *browsertest.Tab, name string) {
	if *screenshots != "" {
		pause := time.Second
		if count(tab, "iframe") > 0 {
			pause = 6 * time.Second // the document viewer does not report when it is ready
		}
		tab.Do(chromedp.Sleep(pause))
		tab.Screenshot(filepath.Join("..", "..", *screenshots, "dashboard-"+name+".png"))
	}
}

// Typical tasks in a real browser with real engines: login, keys, the try-it page, webhooks, usage
// and revocation. Every browser error fails the test.
func TestDashboard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "data"), "--webhook-allow", "127.0.0.1")
	tab := browsertest.Open(t)
	tab.Size(1280, 860)
	tab.Scheme("light")
	login(t, s, tab)
	tab.Accessible()
	tab.NoProblems()
	seedUsage(t, s)

	// A key is shown once.
	tab.Go(s.url + "/dashboard/keys")
	tab.Wait(`document.querySelector("details.fold").open || (document.querySelector("details.fold").open = true)`)
	tab.Fill("#name", "laptop")
	tab.Leave(".form-foot button")
	raw := tab.Text("#secret")
	if !strings.HasPrefix(raw, "fw_") || len(raw) < 30 {
		t.Fatalf("the new key is %q", raw)
	}
	tab.Accessible()
	s.want(t, 200, "", "GET", "/api/v1/operations", nil, "Authorization", "Bearer "+raw)
	s.want(t, 403, "forbidden", "GET", "/api/v1/admin/accounts", nil, "Authorization", "Bearer "+raw)
	tab.Go(s.url + "/dashboard/keys")
	var page string
	tab.Eval(`document.documentElement.outerHTML`, &page)
	if strings.Contains(page, raw) || !strings.Contains(page, "laptop") {
		t.Error("the key is shown again, or its name is not")
	}

	// A webhook and its test delivery.
	receiver := newBoardHook(t)
	tab.Go(s.url + "/dashboard/webhooks")
	tab.Fill("#url", receiver.URL+"/hook")
	tab.Fill("#description", "local receiver")
	tab.Leave(".form-foot button")
	receiver.mu.Lock()
	receiver.secret = tab.Text("#secret")
	receiver.mu.Unlock()
	tab.Accessible()
	tab.Leave("main .page-head button")
	if h := tab.Text("h1"); h != webhook.TestType {
		t.Errorf("after a test: %s", h)
	}
	tab.Wait(`document.querySelector("#delivery .badge.delivered")`) // without a reload
	if got := receiver.wait(t, 1, webhook.TestType); got[0].err != nil {
		t.Errorf("the signature of the test: %v", got[0].err)
	}
	tab.Wait(`document.querySelector("#attempts .badge.ok")`)
	tab.Accessible()

	// Convert a document to PDF.
	doc := filepath.Join("..", "..", "examples", "files", "report.docx")
	try(tab, s, doc)
	if n := count(tab, `#actions input`); n < 5 {
		t.Errorf("%d actions are offered for a docx", n)
	}
	choose(tab, "convert_to", "pdf")
	shot(tab, "try")
	tab.Accessible()
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .completed") && document.querySelector("#results iframe")`)
	if pdf := fetchResult(t, s, tab); !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("the result is %.20q", pdf)
	}
	tab.Accessible()
	tab.Eval(`document.querySelector("#step-result").scrollIntoView({block: "center"})`, nil)
	shot(tab, "result")
	for _, text := range []string{"/api/v1/run/convert", "initiate-upload", "complete-upload", "/api/v1/do", "?wait=30s", "/v1/download/"} {
		if !strings.Contains(tab.Text("#calls"), text) {
			t.Errorf("as curl: %s is missing", text)
		}
	}
	operation := attribute(tab, "#operation", "href")
	tab.Go(s.url + operation)
	tab.Wait(`document.querySelector("#summary .badge.completed") && document.querySelector("#results a[data-preview=pdf]")`)
	tab.Wait(`document.querySelector("#results .view > img")?.naturalWidth > 100`) // the first page of the PDF
	if text := tab.Text("#summary"); !strings.Contains(text, "Chrome on Linux") || !strings.Contains(text, "127.0.0.1") {
		t.Errorf("the client of the operation: %s", text)
	}
	tab.Click("#log-title")
	if text := tab.Text("#log"); !strings.Contains(text, "submitted request=") || !strings.Contains(text, "completed results=1") || !strings.Contains(text, "address=127.0.0.1") {
		t.Errorf("log: %s", text)
	}
	tab.Accessible()
	tab.Click("#results a[data-preview=pdf]")
	tab.Wait(`document.querySelector("dialog[open] iframe")`)
	tab.Accessible()
	tab.Do(chromedp.KeyEvent(kb.Escape))
	tab.Wait(`!document.querySelector("dialog[open], dialog iframe")`)
	tab.NoProblems()

	live(t, s, tab)
	manyOperations(t, s, tab, filepath.Base(operation))
	tryMore(t, s, tab, dir)
	uploads(t, s, tab, dir)
	hostileNames(t, s, tab, dir, raw)

	// The event was delivered, and can be sent again.
	first := receiver.wait(t, 1, "operation.completed")[0]
	if first.err != nil {
		t.Errorf("the signature of an event: %v", first.err)
	}
	tab.Go(s.url + "/dashboard/webhooks")
	tab.Leave("tbody a")
	shot(tab, "webhook")
	tab.Leave(`.tabs a[href$="state=delivered"]`)
	tab.Eval(`[...document.querySelectorAll("tbody a")].find(a => a.textContent === "operation.completed").id = "event"`, nil)
	tab.Leave("#event")
	tab.Wait(`document.querySelectorAll("#attempts article").length === 1`)
	id := tab.Text("#delivery dl > div:last-child dd code")
	before := len(receiver.wait(t, 1, "operation.completed"))
	tab.Leave("main .page-head button")
	again := receiver.wait(t, before+1, "operation.completed")
	if last := again[len(again)-1]; last.id != id || last.err != nil {
		t.Errorf("replay of %s: %s, %v", id, last.id, last.err)
	}
	tab.Wait(`document.querySelectorAll("#attempts article").length === 2`)
	tab.Accessible()
	shot(tab, "delivery")
	var hacked bool
	if tab.Eval(`window.hacked !== undefined || document.querySelector("#attempts script") !== null`, &hacked); hacked {
		t.Error("the answer of a receiver is part of the page")
	}

	// The usage page shows the operation.
	tab.Go(s.url + "/dashboard/usage")
	if n := count(tab, `.chart svg .a`); n == 0 {
		t.Error("there is nothing in the charts")
	}
	if text := tab.Text("main"); !strings.Contains(text, "Convert") {
		t.Errorf("usage: %s", text)
	}

	// A second account.
	tab.Go(s.url + "/dashboard/accounts")
	tab.Click("details.fold summary")
	tab.Fill("#acct-name", "bob")
	tab.Fill("#stored", "20 GB")
	tab.Leave(".form-foot button")
	if p := tab.Text("#secret"); len(p) < 10 {
		t.Errorf("the password of a new account is %q", p)
	}
	tab.Accessible()
	tab.Leave(`tbody tr:last-child a`)
	if v := attribute(tab, "#stored", "value"); v != "20 GB" {
		t.Errorf("the limit of the account is %q", v)
	}
	tab.Accessible()
	account := location(tab)

	tour(t, s, tab, operation, account)

	// Exact times are in the time zone of the reader.
	tab.Size(1280, 860)
	tab.Go(s.url + "/dashboard/settings")
	tab.Wait(`document.querySelector("#timezone option[value='Asia/Tokyo']")`)
	tab.Do(chromedp.SetValue("#timezone", "Asia/Tokyo", chromedp.ByQuery))
	tab.Eval(`document.querySelector("#timezone").dispatchEvent(new Event("change"))`, nil)
	tab.Wait(`/GMT\+9|JST/.test(document.querySelector("#dates-now").textContent)`)
	tab.Do(chromedp.SetValue("#date-language", "ja", chromedp.ByQuery))
	tab.Eval(`document.querySelector("#date-language").dispatchEvent(new Event("change"))`, nil)
	tab.Wait(`document.querySelector("#dates-now").textContent.includes("/") && document.querySelector("#dates-now").textContent.includes("JST")`)
	tab.Go(s.url + "/dashboard/keys")
	tab.Wait(`/GMT\+9|JST/.test(document.querySelector("main time").title)`)

	// A revoked key is refused.
	tab.Size(1280, 860)
	tab.Go(s.url + "/dashboard/keys")
	tab.Eval(`[...document.querySelectorAll("tbody tr")].find(r => r.textContent.includes("laptop")).id = "mine"`, nil)
	tab.Click("#mine summary")
	tab.Accessible()
	tab.Leave("#mine .ask-box button")
	if text := tab.Text(".flash"); !strings.Contains(text, "revoked") {
		t.Errorf("after revoking: %s", text)
	}
	s.want(t, 401, "unauthorized", "GET", "/api/v1/operations", nil, "Authorization", "Bearer "+raw)

	// After the logout the session is invalid.
	tab.Leave(".side-foot .inline button")
	tab.Go(s.url + "/dashboard/keys")
	if h := tab.Text("h1"); h != "Log in" {
		t.Errorf("after logging out: %s", h)
	}
	tab.NoProblems()
}

// try opens the try-it page and selects files.
func try(tab *browsertest.Tab, s *server, files ...string) {
	tab.Go(s.url + "/dashboard/try")
	var paths []string
	for _, f := range files {
		p, err := filepath.Abs(f)
		if err != nil {
			panic(err)
		}
		paths = append(paths, p)
	}
	tab.Do(chromedp.SetUploadFiles("#input", paths, chromedp.ByQuery))
	settled(tab)
}

// settled waits until the page has loaded the parameters of the action.
func settled(tab *browsertest.Tab) {
	tab.Wait(`document.querySelector("#actions input:checked") && document.querySelector("#form").ariaBusy === "false"`)
}

// choose selects an option of a radio group.
func choose(tab *browsertest.Tab, name, value string) {
	tab.Click(fmt.Sprintf(`#form input[name=%s][value=%s] + span`, name, value))
	tab.Wait(fmt.Sprintf(`document.querySelector("#form input[name=%s][value=%s]")?.checked`, name, value))
	settled(tab)
}

func count(tab *browsertest.Tab, selector string) (n int) {
	tab.Eval(fmt.Sprintf("document.querySelectorAll(%q).length", selector), &n)
	return n
}

func attribute(tab *browsertest.Tab, selector, name string) (v string) {
	tab.Eval(fmt.Sprintf("document.querySelector(%q).getAttribute(%q)", selector, name), &v)
	return v
}

func location(tab *browsertest.Tab) (v string) {
	tab.Do(chromedp.Location(&v))
	return v
}

// fetchResult downloads the first result from its link.
func fetchResult(t *testing.T, s *server, tab *browsertest.Tab) []byte {
	t.Helper()
	r, err := http.Get(s.url + attribute(tab, "#results a.button", "href"))
	systest.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("download: %d, %v", r.StatusCode, err)
	}
	return b
}

// live watches a running operation and cancels it.
func live(t *testing.T, s *server, tab *browsertest.Tab) {
	t.Helper()
	if *screenshots != "" { // some work for the screenshots
		photo, one, two := sampleFile(t, "photo.jpg"), sampleFile(t, "one.pdf"), sampleFile(t, "two.pdf")
		s.run(t, "compress", map[string]any{"compression_value": "extreme_compression"}, photo)
		s.run(t, "merge", nil, one, two)
		s.fails(t, "not_encrypted", "unlock", map[string]any{"password": "s3cret"}, one)
		s.run(t, "convert", map[string]any{"convert_to": "mp3"}, sampleFile(t, "clip.mp4"))
		s.run(t, "convert", map[string]any{"convert_to": "webp"}, photo, file{"garden.jpg", photo.b}, file{"harvest.jpg", photo.b})
	}
	film := makeFile(t, "film.mp4", "", "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=30:duration=60", "-c:v", "mpeg4", "-q:v", "10", "film.mp4")
	tab.Go(s.url + "/dashboard/")
	tab.Wait(`document.querySelector("#live .pulse:not(.off)")`)
	task := s.begin(t, "convert", map[string]any{"convert_to": "webm"}, film)
	row := fmt.Sprintf("#active [data-operation='%s']", task)
	tab.Wait(fmt.Sprintf(`document.querySelector(%q)`, row)) // without a reload
	tab.Wait(fmt.Sprintf(`document.querySelector(%q)?.querySelector("progress").value > 0`, row))
	tab.Accessible()
	shot(tab, "overview")
	if *screenshots != "" {
		tab.Scheme("dark")
		shot(tab, "overview-dark")
		tab.Scheme("light")
		tab.Phone(360, 780)
		shot(tab, "overview-phone")
		tab.Size(1280, 860)
	}
	tab.Go(s.url + "/dashboard/operations/" + task)
	tab.Wait(`document.querySelector("#overall").value > 0`)
	tab.Click("#cancel summary")
	tab.Accessible()
	tab.Leave("#cancel .ask-box button")
	tab.Wait(`document.querySelector("#summary .badge.cancelled") && document.querySelector("#files").textContent.includes("cancelled")`)
	if n := count(tab, "#cancel form[action$=cancel]"); n != 0 {
		t.Error("what is cancelled can be cancelled again")
	}
	tab.Go(s.url + "/dashboard/")
	tab.Wait(`document.querySelectorAll("#active [data-operation]").length === 0`)
	tab.NoProblems()
}

// manyOperations searches the list of operations, runs one again with changes, and changes several at
// once. id is a finished conversion of report.docx.
// clickDuringRefresh clicks a link in the list while the list is replaced, and waits for its page.
func clickDuringRefresh(tab *browsertest.Tab, selector string) {
	tab.Eval(`window.leaving = true; import(new URL("./app.js", document.querySelector("script[src*=overview]").src)).then(m => window.refresh = m.refresh)`, nil)
	tab.Wait(`window.refresh`)
	var at [2]float64
	tab.Eval(fmt.Sprintf(`(() => { const box = document.querySelector("#list %s").getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] })()`, selector), &at)
	tab.Do(chromedp.MouseEvent(input.MousePressed, at[0], at[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	// The refresh has what it needs when a later request has its response.
	tab.Eval(`document.querySelector("#list").source = ""; window.refresh(); fetch(location.href).then(r => r.text()).then(() => fetch(location.href)).then(r => r.text()).then(() => window.later = true)`, nil)
	tab.Wait(`window.later`)
	tab.Do(chromedp.MouseEvent(input.MouseReleased, at[0], at[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	tab.Wait(`window.leaving === undefined && document.readyState === "complete"`)
}

func manyOperations(t *testing.T, s *server, tab *browsertest.Tab, id string) {
	t.Helper()
	tab.Go(s.url + "/dashboard/operations/" + id)
	tab.Leave(`a[href$="try?from=` + id + `"]`)
	settled(tab)
	tab.Wait(`document.querySelector("#files").textContent.includes("report.docx") && document.querySelector("#form input[value=pdf]").checked`)
	choose(tab, "convert_to", "txt")
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .completed") && document.querySelector("#results pre")?.textContent.includes("Harvest")`)
	if operation := attribute(tab, "#operation", "href"); strings.HasSuffix(operation, id) {
		t.Error("the changed operation is the old one")
	}

	tab.Go(s.url + "/dashboard/operations")
	tab.Fill("input[name=q]", "REPORT")
	tab.Leave(".filters-main button")
	if where := location(tab); !strings.HasSuffix(where, "/operations?q=REPORT") {
		t.Errorf("the address of a search is %s", where)
	}
	if text := tab.Text("#list"); !strings.Contains(text, "report.docx") || strings.Contains(text, "film.mp4") {
		t.Errorf("found: %s", text)
	}
	// A select applies at once; the address has everything.
	tab.Eval(`window.leaving = true; document.querySelector("select[name=state]").value = "completed"; document.querySelector("select[name=state]").dispatchEvent(new Event("change", {bubbles: true}))`, nil)
	tab.Wait(`window.leaving === undefined && document.readyState === "complete" && location.search === "?q=REPORT&state=completed"`)
	tab.Accessible()
	tab.Click(".bulk > .check input")
	tab.Wait(`document.querySelector(".bulk .count").textContent.endsWith(" selected")`)
	if n := count(tab, "#list input:checked"); n < 2 {
		t.Errorf("%d operations are selected", n)
	}
	tab.Accessible()
	tab.Leave(`.bulk button[value=again]`)
	if text := tab.Text(".flash"); !strings.Contains(text, "started again") {
		t.Errorf("running again: %s", text)
	}
	tab.Wait(`fetch("/api/v1/operations").then(r => r.json()).then(b => b.operations.every(o => o.operation_status === "completed" || o.operation_status === "failed"))`)
	// The head of a column sorts by it, and again in the other direction.
	tab.Go(s.url + "/dashboard/operations?q=r")
	order := func() (names string) {
		tab.Eval(`[...document.querySelectorAll("#list tbody tr")].map(r => r.dataset.operation).join(" ")`, &names)
		return names
	}
	clickDuringRefresh(tab, "thead th a.sort")
	tab.Go(s.url + "/dashboard/operations?q=r")
	newest := order()
	if n := len(strings.Fields(newest)); n < 3 {
		t.Errorf("%d operations to sort", n)
	}
	for i, column := range []string{"name", "size", "duration"} {
		link := fmt.Sprintf("thead th:nth-child(%d) a.sort", []int{1, 4, 5}[i])
		var orders []string
		for _, direction := range []string{map[bool]string{true: "ascending", false: "descending"}[column == "name"], map[bool]string{true: "descending", false: "ascending"}[column == "name"]} {
			tab.Leave(link)
			tab.Wait(fmt.Sprintf(`document.querySelectorAll("th[aria-sort]").length === 1 && document.querySelector("th[aria-sort=%s]")`, direction))
			orders = append(orders, order())
		}
		ids := strings.Fields(orders[1])
		slices.Reverse(ids)
		if strings.Join(ids, " ") != orders[0] || !strings.Contains(location(tab), "q=r") {
			t.Errorf("by %s: %s, then %s", column, orders[0], orders[1])
		}
	}
	tab.Accessible()
	tab.Leave("thead th:last-child a.sort")
	if got := order(); got != newest {
		t.Errorf("newest first again: %s, want %s", got, newest)
	}

	tab.Go(s.url + "/dashboard/operations?state=cancelled")
	tab.Click(".bulk > .check input")
	tab.Click(".bulk summary")
	tab.Accessible()
	tab.Leave(".bulk .ask-box button")
	if text := tab.Text(".flash"); text != "1 operation deleted." {
		t.Errorf("deleting: %s", text)
	}
	tab.NoProblems()
}

// tryMore checks what the try-it page does before an upload, and what it shows after one.
func tryMore(t *testing.T, s *server, tab *browsertest.Tab, dir string) {
	t.Helper()
	// Too many files are refused before they are uploaded.
	tab.Go(s.url + "/dashboard/try")
	var many []string
	for i := range 101 {
		many = append(many, filepath.Join(dir, fmt.Sprintf("%03d.txt", i)))
		write(t, many[i], []byte("text"))
	}
	tab.Do(chromedp.SetUploadFiles("#input", many, chromedp.ByQuery))
	settled(tab)
	if text := tab.Text("#files-problem"); !strings.Contains(text, "at most 100 files. 1 of the 101 files") || count(tab, "#files li") != 100 {
		t.Errorf("101 files: %q, %d are listed", text, count(tab, "#files li"))
	}
	tab.Accessible()

	// Videos stay videos unless something else is chosen.
	try(tab, s, filepath.Join("..", "..", "examples", "files", "clip.mp4"))
	var target string
	if tab.Eval(`document.querySelector("#form input[name=convert_to]:checked").value`, &target); target != "webm" {
		t.Errorf("a video becomes %s", target)
	}
	if n := count(tab, ".target-group"); n < 3 {
		t.Errorf("the targets of a video are in %d groups", n)
	}
	tab.Accessible()

	// Files of several types have one target, or each type its own.
	files := filepath.Join("..", "..", "examples", "files")
	try(tab, s, filepath.Join(files, "report.docx"), filepath.Join(files, "photo.jpg"), filepath.Join(files, "one.pdf"))
	choose(tab, "mode", "each")
	tab.Accessible()
	for i, to := range []string{"txt", "webp", "txt"} {
		tab.Eval(fmt.Sprintf(`{ const s = document.querySelector("#target-%d"); s.value = %q; s.dispatchEvent(new Event("change")); }`, i, to), nil)
		settled(tab)
		tab.Wait(fmt.Sprintf(`document.querySelector("#target-%d").value === %q`, i, to))
	}
	tab.Eval(`document.querySelector("#curl").open = true`, nil)
	if code := tab.Text("#calls"); strings.Count(code, "/api/v1/run/convert") != 2 || !strings.Contains(code, "convert_to=webp") || !strings.Contains(code, `"convert_to":"txt"`) {
		t.Errorf("the calls of two targets: %s", code)
	}
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .completed") && document.querySelectorAll("#results .result").length === 3 && !document.querySelector("#all-results").hidden`)
	if text := tab.Text("#results"); !strings.Contains(text, "report.txt") || !strings.Contains(text, "photo.webp") || !strings.Contains(text, "one.txt") {
		t.Errorf("results of two targets: %s", text)
	}
	tab.Accessible()
	var packed string
	tab.Eval(`window.sent = null; HTMLFormElement.prototype.submit = function () { window.sent = fetch(this.action, {method: "POST", body: new URLSearchParams(new FormData(this))}).then((r) => r.blob()).then((b) => b.text()); }; document.querySelector("#all-results").click()`, nil)
	tab.Wait(`window.sent !== null`)
	tab.Do(chromedp.Evaluate(`window.sent`, &packed, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, name := range []string{"PK", "report.txt", "photo.webp", "one.txt"} {
		if !strings.Contains(packed, name) {
			t.Errorf("the ZIP of all results has no %s", name)
		}
	}

	// A compressed picture beside the original, and code.
	try(tab, s, filepath.Join("..", "..", "examples", "files", "photo.jpg"))
	choose(tab, "action", "compress")
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .completed") && document.querySelectorAll(".compare img").length === 2 && [...document.querySelectorAll(".compare img")].every(i => i.naturalWidth > 0)`)
	if text := tab.Text("#results"); !strings.Contains(text, "smaller than") {
		t.Errorf("a compressed picture: %s", text)
	}
	tab.Eval(`document.querySelector(".compare input").focus()`, nil)
	tab.Do(chromedp.KeyEvent(kb.ArrowRight))
	tab.Wait(`document.querySelector(".compare").style.getPropertyValue("--at") === "51%"`)
	tab.Accessible()
	tab.Eval(`document.querySelector("#step-result").scrollIntoView({block: "center"})`, nil)
	shot(tab, "compare")
	tab.Click("#curl summary")
	for language, text := range map[string]string{"go": "multipart.NewWriter", "node": "openAsBlob", "python": "requests.post", "curl": "curl -sS"} {
		tab.Click(`#languages input[value=` + language + `] + span`)
		if code := tab.Text("#calls"); !strings.Contains(code, text) || !strings.Contains(code, "/api/v1/run/compress") {
			t.Errorf("code for %s: %s", language, code)
		}
	}
	tab.Accessible()

	// Several results are tiles, and one ZIP.
	try(tab, s, filepath.Join("..", "..", "examples", "files", "photo.jpg"), filepath.Join("..", "..", "examples", "files", "one.pdf"))
	choose(tab, "action", "compress")
	tab.Click("#start")
	tab.Wait(`document.querySelectorAll("#results a[data-preview]").length === 2 && !document.querySelector("#all-results").hidden`)
	tab.Accessible()
	tab.NoProblems()
}

func sampleFile(t *testing.T, name string) file {
	t.Helper()
	b := systest.ReadFile(t, filepath.Join("..", "..", "examples", "files", name))
	return file{name, b}
}

// uploads sends a picture in several parts, one of which fails at first. It then pauses and resumes
// a second upload, and cancels a third.
func uploads(t *testing.T, s *server, tab *browsertest.Tab, dir string) {
	t.Helper()
	picture := noisePicture(t, dir, 2000, 1900)

	// Requests for parts can be held, failed or passed.
	var mu sync.Mutex
	var held []fetch.RequestID
	var puts int
	mode := "fail"
	set := func(m string) { mu.Lock(); mode = m; mu.Unlock() }
	events := tab.Listen(func(ctx context.Context, e any) {
		p, ok := e.(*fetch.EventRequestPaused)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		puts++
		var action chromedp.Action = fetch.ContinueRequest(p.RequestID)
		switch mode {
		case "fail":
			mode = "pass"
			action = fetch.FailRequest(p.RequestID, network.ErrorReasonConnectionReset)
		case "one": // the others are held
			mode = "hold"
		case "hold":
			held = append(held, p.RequestID)
			return
		}
		go chromedp.Run(ctx, action)
	})
	defer events()
	tab.Do(fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: "*/v1/upload/*"}}))
	lost := tab.Expect("ERR_CONNECTION_RESET")
	try(tab, s, picture)
	choose(tab, "convert_to", "jpg")
	tab.Click(`#parameters summary`)
	tab.Fill("#p-width", "0")
	tab.Click("#start")
	tab.Wait(`document.querySelector("#problem .note") && document.activeElement.id === "p-width"`) // too small
	tab.Accessible()
	tab.Fill("#p-width", "200")
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .completed") && document.querySelector("#results img")?.naturalWidth === 200`)
	mu.Lock()
	if puts < 3 {
		t.Errorf("%d requests for parts", puts)
	}
	mu.Unlock()
	lost()
	if b := fetchResult(t, s, tab); !bytes.HasPrefix(b, []byte("\xff\xd8\xff")) {
		t.Errorf("the result is %.20q", b)
	}

	// Pause and resume.
	mu.Lock()
	puts = 0
	mu.Unlock()
	set("hold")
	try(tab, s, picture)
	choose(tab, "convert_to", "jpg")
	tab.Click("#start")
	holds := func(n int) {
		eventually(t, "a part is being sent", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(held) >= n
		})
	}
	holds(1)
	tab.Click("#pause")
	tab.Wait(`document.querySelector("#state").textContent === "Paused"`)
	tab.Accessible()
	set("pass")
	// The parts on their way arrive during the pause, and are not sent again after it.
	release := func() {
		mu.Lock()
		waiting := held
		held, puts = nil, 0
		mu.Unlock()
		for _, id := range waiting {
			tab.Do(fetch.ContinueRequest(id))
		}
	}
	mu.Lock()
	before := puts
	mu.Unlock()
	release()
	tab.Click("#pause")
	tab.Wait(`document.querySelector("#state .completed")`)
	mu.Lock()
	if parts := before + puts; parts != 2 {
		t.Errorf("%d requests for two parts", parts)
	}
	mu.Unlock()

	// A reload interrupts an upload, which continues when the file is chosen again.
	set("one")
	try(tab, s, picture)
	tab.Click("#start")
	holds(1)
	tab.Wait(`Object.values(JSON.parse(localStorage["filewright.uploads"] ?? "{}")).some(u => Object.keys(u.etags).length === 1)`)
	set("pass")
	tab.Go(s.url + "/dashboard/try")
	tab.Wait(`document.querySelector("#interrupted").textContent.includes("noise.png was interrupted at 50 %")`)
	tab.Accessible()
	mu.Lock()
	held, puts = nil, 0
	mu.Unlock()
	try(tab, s, picture)
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .completed") && localStorage["filewright.uploads"] === "{}"`)
	mu.Lock()
	if puts != 1 {
		t.Errorf("after a reload %d parts were sent, want the missing one", puts)
	}
	mu.Unlock()

	// Cancel.
	set("hold")
	try(tab, s, picture)
	tab.Click("#start")
	holds(1)
	tab.Click("#cancel")
	tab.Wait(`document.querySelector("#state").textContent === "Cancelled" && !document.querySelector("#start").disabled`)
	set("pass")
	tab.Click("#start") // restart from the first part
	tab.Wait(`document.querySelector("#state .completed")`)
	tab.Do(fetch.Disable())
	tab.NoProblems()
}

// noisePicture writes a PNG of about width*height*3 bytes.
func noisePicture(t *testing.T, dir string, width, height int) (path string) {
	t.Helper()
	noise := make([]byte, width*height*3)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	raw := filepath.Join(dir, "noise.ppm")
	write(t, raw, append(fmt.Appendf(nil, "P6\n%d %d\n255\n", width, height), noise...))
	path = filepath.Join(dir, "noise.png")
	if out, err := exec.Command("vips", "copy", raw, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// hostileNames uses files with names that attack a page, through the try-it page and through the
// API.
func hostileNames(t *testing.T, s *server, tab *browsertest.Tab, dir, key string) {
	t.Helper()
	const name = `<img src=x onerror=window.hacked=1>'"&#x6a;{{.}}.txt`
	path := filepath.Join(dir, name)
	write(t, path, []byte("<script>window.hacked=2</script>\n"))
	try(tab, s, path)
	choose(tab, "action", "zip")
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .completed")`)
	tab.Click("#curl summary")
	tab.Accessible()
	pages := []string{location(tab), s.url + attribute(tab, "#operation", "href")}
	tab.Go(pages[1])
	// The preview of a text is plain text.
	try(tab, s, path)
	choose(tab, "action", "convert")
	choose(tab, "convert_to", "html")
	tab.Click("#start")
	tab.Wait(`document.querySelector("#results pre")?.textContent.includes("window.hacked=2")`)
	pages = append(pages, s.url+attribute(tab, "#operation", "href"), s.url+"/dashboard/", s.url+"/dashboard/operations")
	for _, p := range pages[1:] {
		tab.Go(p)
		var found string
		tab.Eval(`String(window.hacked ?? "") + (document.querySelector("img[src=x]") ? "an element" : "")`, &found)
		if found != "" {
			t.Errorf("%s: %s", p, found)
		}
		if !strings.Contains(tab.Text("main"), name) {
			t.Errorf("%s does not show the name as it is", p)
		}
	}
	tab.NoProblems()
}

// tour checks all pages in the light and dark themes and on a phone.
func tour(t *testing.T, s *server, tab *browsertest.Tab, operation, account string) {
	t.Helper()
	tab.Go(s.url + "/dashboard/keys")
	tab.Leave("tbody th a")
	key := location(tab)
	pages := []struct {
		name, address string
		picture       bool
	}{
		{"overview", s.url + "/dashboard/", false}, {"try", s.url + "/dashboard/try", false}, {"operations", s.url + "/dashboard/operations?q=p&account=all", true}, {"operation", s.url + operation, true},
		{"usage", s.url + "/dashboard/usage", true}, {"keys", s.url + "/dashboard/keys", true}, {"webhooks", s.url + "/dashboard/webhooks", true},
		{"formats", s.url + "/dashboard/formats", true}, {"accounts", s.url + "/dashboard/accounts", true}, {"account", account, true}, {"settings", s.url + "/dashboard/settings", true}, {"system", s.url + "/dashboard/system", true}, {"key", key, true}, {"audit", s.url + "/dashboard/audit?account=all", true},
		{"nothing", s.url + "/dashboard/nothing", false},
	}
	defer tab.Expect("404")()
	for _, mode := range []string{"light", "dark", "tablet", "phone"} {
		tab.Scheme(map[bool]string{true: "dark", false: "light"}[mode == "dark"])
		switch mode {
		case "phone":
			tab.Phone(360, 780)
		case "tablet":
			tab.Size(768, 1024)
		default:
			tab.Size(1280, 860)
		}
		for _, p := range pages {
			tab.Go(p.address)
			switch mode {
			case "dark":
				tab.Contrasts()
			case "tablet": // a layout between the two others
				tab.Fits()
			default:
				tab.Accessible()
			}
			suffix := map[string]string{"light": "", "dark": "-dark", "phone": "-phone"}[mode]
			if mode == "tablet" {
				continue
			}
			if pictured := mode == "light" || p.name == "usage" || p.name == "operation"; pictured && p.picture {
				shot(tab, p.name+suffix)
			}
		}
	}
	tab.Scheme("light")
	// The theme switch overrides the system's preference, at once and on later pages.
	tab.Size(1280, 860)
	tab.Click(`.themes button[value=dark]`)
	tab.Wait(`document.documentElement.dataset.theme === "dark" && getComputedStyle(document.body).colorScheme === "dark"`)
	tab.Go(s.url + "/dashboard/settings")
	tab.Accessible()
	tab.Wait(`document.documentElement.dataset.theme === "dark"`)
	tab.Click(`main form[data-themes] button[value=""]`)
	tab.Wait(`!("theme" in document.documentElement.dataset) && getComputedStyle(document.body).colorScheme === "light dark"`)
}

// Login and the try-it page work with only the keyboard.
func TestDashboardByKeyboard(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "data"))
	m := passwordLine.FindStringSubmatch(s.banner)
	if m == nil {
		t.Fatalf("no password in the banner:\n%s", s.banner)
	}
	tab := browsertest.Open(t)
	tab.Size(1280, 860)
	press := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			tab.Do(chromedp.KeyEvent(k))
		}
	}
	// focus presses Tab until an element has the focus, which must be visible.
	focus := func(selector string) {
		t.Helper()
		for range 80 {
			var at, visible bool
			tab.Eval(fmt.Sprintf(`document.activeElement.matches(%q)`, selector), &at)
			if at {
				tab.Eval(`[document.activeElement, document.activeElement.nextElementSibling, document.activeElement.parentElement].some(e => e && getComputedStyle(e).outlineStyle !== "none")`, &visible)
				if !visible {
					t.Errorf("the focus on %s cannot be seen", selector)
				}
				return
			}
			press(kb.Tab)
		}
		t.Fatalf("%s cannot be reached by Tab", selector)
	}
	tab.Go(s.url + "/dashboard/")
	press(m[1], kb.Tab, m[2], kb.Enter)
	tab.Wait(`document.querySelector("h1")?.textContent === "Choose a password" && document.readyState === "complete"`)
	for _, f := range []struct{ field, text string }{{"#old", m[2]}, {"#new", newPassword}, {"#again", newPassword}} {
		focus(f.field)
		press(f.text)
	}
	press(kb.Enter)
	tab.Wait(`document.querySelector("h1")?.textContent === "Overview" && document.readyState === "complete"`)
	press(kb.Tab)
	focus(".skip")
	press(kb.Enter)
	tab.Wait(`document.activeElement.id === "content"`)
	focus(`main a[href="/dashboard/try"]`)
	press(kb.Enter)
	tab.Arrive("/dashboard/try")
	focus("#input") // Enter would open the system's file picker, which a test cannot control
	doc, err := filepath.Abs(filepath.Join("..", "..", "examples", "files", "report.docx"))
	systest.NoError(t, err)
	tab.Do(chromedp.SetUploadFiles("#input", []string{doc}, chromedp.ByQuery))
	tab.Wait(`document.querySelector("#parameters input")`)
	focus(`#actions input`)
	press(kb.ArrowRight) // compress
	tab.Wait(`document.querySelector("#actions input[value=compress]").checked && document.querySelector("#parameters input[value=extreme_compression]")`)
	press(kb.ArrowLeft)
	tab.Wait(`document.querySelector("#actions input[value=convert]").checked && document.querySelector("#parameters input[value=txt]")`)
	focus(`#parameters input[type=radio]`)
	for range 20 {
		var there bool
		if tab.Eval(`document.activeElement.value === "txt"`, &there); there {
			break
		}
		press(kb.ArrowRight)
		settled(tab)
		tab.Wait(`document.activeElement.matches("#parameters input:checked")`)
	}
	settled(tab)
	press(kb.Enter) // in a form Enter submits like the button
	tab.Wait(`document.querySelector("#results pre")?.textContent.includes("Harvest")`)
	tab.Wait(`document.querySelector("#announce").textContent.includes("report.txt is ready")`)
	focus("#results a.button")
	tab.Accessible()

	// The page of an operation: the log and the preview.
	focus("#operation")
	press(kb.Enter)
	tab.Wait(`location.pathname.startsWith("/dashboard/operations/") && document.readyState === "complete"`)
	focus("#results a[data-preview]")
	press(kb.Enter)
	tab.Wait(`document.querySelector("dialog[open]")`)
	press(kb.Escape)
	tab.Wait(`!document.querySelector("dialog[open]")`)
	focus("#log-title")
	press(kb.Enter)
	tab.Wait(`document.querySelector("#log-title").parentElement.open`)

	// The list in another order.
	tab.Go(s.url + "/dashboard/operations")
	focus("th:nth-child(4) a.sort")
	press(kb.Enter)
	tab.Wait(`location.search === "?sort=largest" && document.readyState === "complete" && document.querySelector("th[aria-sort=descending]")`)

	// The settings: dates, sessions and the second factor.
	tab.Go(s.url + "/dashboard/settings")
	tab.Wait(`document.querySelectorAll("#timezone option").length > 10 && document.querySelectorAll("#date-language option").length > 3`)
	for _, id := range []string{"timezone", "date-language"} {
		focus("#" + id)
		press(kb.ArrowDown)
		tab.Wait(fmt.Sprintf(`document.querySelector("#%s").selectedIndex === 1`, id))
	}
	other, err := http.PostForm(s.url+"/dashboard/login", url.Values{"name": {m[1]}, "password": {newPassword}}) // another session
	systest.NoError(t, err)
	other.Body.Close()
	tab.Go(s.url + "/dashboard/settings")
	tab.Wait(`document.querySelector("#timezone").selectedIndex === 1 && document.querySelector("#date-language").selectedIndex === 1`) // kept
	focus(`form[action$="settings/sessions"] button`)
	press(kb.Enter)
	tab.Wait(`document.querySelector(".flash") && !document.querySelector("form[action$='settings/sessions']")`)
	focus(`a[href$="settings/second-factor"]`)
	press(kb.Enter)
	tab.Wait(`document.querySelector("#code") && document.readyState === "complete"`)
	var secret string
	tab.Eval(`document.querySelector("#secret").textContent`, &secret)
	focus("#code")
	press(code(t, secret, time.Now().Unix()/30), kb.Tab)
	focus("#password")
	press(newPassword, kb.Enter)
	tab.Wait(`document.querySelectorAll("#recovery li").length > 5`)
	tab.Accessible()
	tab.NoProblems()
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	systest.NoError(t, os.WriteFile(path, content, 0o600))
}

// seedUsage creates past usage, only for screenshots.
func seedUsage(t *testing.T, s *server) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	db, err := sql.Open("sqlite", filepath.Join(s.dir, "filewright.db")+"?_pragma=busy_timeout(20000)")
	systest.NoError(t, err)
	defer db.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for d := range 90 {
		day := time.Now().AddDate(0, 0, -d-1)
		for i, action := range []string{"convert", "compress", "merge", "lock"} {
			n := 40/(i+1) + random.IntN(100/(i+1)) - d/6
			if wd := day.UTC().Weekday(); wd == time.Saturday || wd == time.Sunday {
				n /= 5
			}
			n = max(n, 0)
			if _, err := db.Exec(`INSERT INTO usage (owner, day, action, part, items, failed, bytes_in, bytes_out, work_ms)
				SELECT id, ?, ?, 0, ?, ?, ?, ?, ? FROM accounts WHERE name = 'admin'`,
				day.Unix()/86400, action, n, n/19, n*(300_000+random.IntN(400_000)), n*(200_000+random.IntN(300_000)), n*(400+random.IntN(900))); err != nil {
				t.Fatal(err)
			}
		}
	}
}
