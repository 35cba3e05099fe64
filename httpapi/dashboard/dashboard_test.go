package dashboard_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/dashboard"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

// A site is a service with a dashboard.
type site struct {
	store status.Store
	*httptest.Server
	t         *testing.T
	dashboard *dashboard.Dashboard
	service   *httpapi.Service
	accounts  *auth.Accounts
	hooks     *webhook.Webhooks
	admin     string // one-time password of the administrator
}

func newSite(t *testing.T, set ...func(*dashboard.Config)) *site {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "filewright.db")})
	systest.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	s := &site{t: t, store: db.Operations(), accounts: auth.New(auth.Config{Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db, Factors: db.Factors(), Passkeys: db.Passkeys(), Members: db.Members(), Audit: db.Audit(), Secrets: [][]byte{bytes.Repeat([]byte("x"), 32)}})}
	if _, s.admin, err = s.accounts.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	secrets := [][]byte{bytes.Repeat([]byte("x"), 32)}
	s.service, err = httpapi.New(httpapi.Config{
		Actions: []fileops.Action{archiveops.Zip()}, Auth: s.accounts, Files: db.Files(), Operations: db.Operations(), Secrets: secrets, TempDir: t.TempDir(),
	})
	systest.NoError(t, err)
	s.hooks, err = webhook.New(webhook.Config{Store: db.Webhooks(), Secrets: secrets, Payload: func(_ context.Context, e webhook.Event) ([]byte, error) {
		return s.service.Notification(e.Type, e.Time, e.Operation)
	}})
	systest.NoError(t, err)
	cfg := dashboard.Config{Service: s.service, Accounts: s.accounts, Webhooks: s.hooks, Version: "v1", OneCall: true}
	for _, f := range set {
		f(&cfg)
	}
	d, err := dashboard.New(cfg)
	systest.NoError(t, err)
	s.dashboard = d
	mux := http.NewServeMux()
	mux.Handle(dashboard.Path, d)
	mux.Handle("/", s.service)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(d.Close)
	return s
}

// A visitor is a browser without JavaScript.
type visitor struct {
	*http.Client
	s *site
	t *testing.T
}

func (s *site) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	systest.NoError(s.t, err)
	return &visitor{&http.Client{Jar: jar, Timeout: time.Minute}, s, s.t}
}

// A shown is a loaded page.
type shown struct {
	status int
	header http.Header
	path   string // path after redirects
	text   string
}

func (v *visitor) do(r *http.Request) shown {
	v.t.Helper()
	resp, err := v.Do(r)
	systest.NoError(v.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	systest.NoError(v.t, err)
	return shown{resp.StatusCode, resp.Header, resp.Request.URL.Path, string(b)}
}

func (v *visitor) get(path string) shown {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), "GET", v.s.URL+path, nil)
	systest.NoError(v.t, err)
	return v.do(r)
}

func (v *visitor) post(path string, form url.Values, headers ...string) shown {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), "POST", v.s.URL+path, strings.NewReader(form.Encode()))
	systest.NoError(v.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return v.do(r)
}

const good = "correct horse battery"

// login logs in with a one-time password and replaces it.
func (v *visitor) login(name, first string) {
	v.t.Helper()
	v.post("/dashboard/login", url.Values{"name": {name}, "password": {first}})
	p := v.post("/dashboard/password", url.Values{"old": {first}, "new": {good}, "again": {good}})
	if p.path != "/dashboard/" || p.status != 200 {
		v.t.Fatalf("%s is not logged in: %s %d", name, p.path, p.status)
	}
}

// member creates an account and logs it in.
func (s *site) member(name string) (*visitor, *account.Account) {
	s.t.Helper()
	acct, password, err := s.accounts.Create(s.t.Context(), auth.NewAccount{Name: name})
	systest.NoError(s.t, err)
	v := s.visitor()
	v.login(name, password)
	return v, acct
}

// Too many login attempts have their own response.
func TestLoginThrottled(t *testing.T) {
	t.Parallel()
	v := newSite(t).visitor()
	for n := range 50 {
		p := v.post("/dashboard/login", url.Values{"name": {"admin"}, "password": {"wrong"}})
		if p.status == 401 && p.header.Get("Retry-After") == "" {
			continue
		}
		wait, err := strconv.Atoi(p.header.Get("Retry-After"))
		if p.status != 429 || err != nil || wait < 1 || !strings.Contains(p.text, "Too many attempts") {
			t.Errorf("attempt %d is answered with %d, Retry-After %q\n%s", n, p.status, p.header.Get("Retry-After"), p.text)
		}
		return
	}
	t.Error("50 attempts were not too many")
}

func TestLogin(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.visitor()
	for _, path := range []string{"", "try", "operations", "operations/x", "keys", "webhooks", "webhooks/x", "usage", "formats", "accounts", "settings", "nonsense", "files/x"} {
		if p := v.get("/dashboard/" + path); p.path != "/dashboard/login" {
			t.Errorf("a stranger sees %s at %s", p.path, path)
		}
	}
	if p := v.post("/dashboard/keys", url.Values{"name": {"x"}, "scope": {"read"}}); p.path != "/dashboard/login" {
		t.Errorf("a stranger's form: %s", p.path)
	}
	wrong := v.post("/dashboard/login", url.Values{"name": {"admin"}, "password": {"wrong"}})
	nobody := v.post("/dashboard/login", url.Values{"name": {"nobody"}, "password": {"wrong"}})
	if wrong.status != 401 || nobody.status != 401 || strings.Replace(wrong.text, `value="admin"`, `value="nobody"`, 1) != nobody.text {
		t.Errorf("what is said of names: %d, %d\n%s", wrong.status, nobody.status, wrong.text)
	}
	v.post("/dashboard/login", url.Values{"name": {"admin"}, "password": {s.admin}})
	for _, path := range []string{"", "keys", "settings", "accounts"} {
		if p := v.get("/dashboard/" + path); p.path != "/dashboard/password" {
			t.Errorf("with a one-time password %s leads to %s", path, p.path)
		}
	}
	if p := v.get("/api/v1/operations"); p.status != 403 {
		t.Errorf("with a one-time password the API answers %d", p.status)
	}
	if p := v.post("/dashboard/password", url.Values{"old": {s.admin}, "new": {"short"}, "again": {"short"}}); p.status != 422 {
		t.Errorf("a weak password: %d", p.status)
	}
	v.login("admin", s.admin)
	p := v.get("/dashboard/settings")
	if p.path != "/dashboard/settings" || !strings.Contains(p.text, "This session") {
		t.Errorf("settings: %s", p.path)
	}
	if p := v.get("/api/v1/operations"); p.status != 200 {
		t.Errorf("the API answers a session with %d", p.status)
	}

	// The first session ends a second session.
	other := s.visitor()
	other.post("/dashboard/login", url.Values{"name": {"ADMIN"}, "password": {good}})
	if p := other.get("/dashboard/keys"); p.path != "/dashboard/keys" {
		t.Errorf("another session: %s", p.path)
	}
	v.post("/dashboard/settings/sessions", nil)
	if p := other.get("/dashboard/keys"); p.path != "/dashboard/login" {
		t.Errorf("a session that was ended: %s", p.path)
	}
	if p := v.post("/dashboard/logout", nil); p.path != "/dashboard/login" || !strings.Contains(p.text, "logged out") {
		t.Errorf("logging out leads to %s", p.path)
	}
	if p := v.get("/dashboard/keys"); p.path != "/dashboard/login" {
		t.Errorf("after logging out: %s", p.path)
	}
}

// After a login the visitor can only go to a page of the dashboard.
func TestNext(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.visitor().login("admin", s.admin)
	for next, want := range map[string]string{
		"keys": "/dashboard/keys", "operations?status=failed": "/dashboard/operations", "": "/dashboard/",
		"https://evil.example/": "/dashboard/", "//evil.example/": "/dashboard/", "/\\evil.example": "/dashboard/", "../v1/upload/x": "/dashboard/", "javascript:alert(1)": "/dashboard/",
		"\thttps://evil.example": "/dashboard/",
	} {
		v := s.visitor()
		var hops []string
		v.CheckRedirect = func(r *http.Request, _ []*http.Request) error { hops = append(hops, r.URL.String()); return nil }
		p := v.post("/dashboard/login", url.Values{"name": {"admin"}, "password": {good}, "next": {next}})
		if p.path != want || len(hops) != 1 || !strings.HasPrefix(hops[0], s.URL+"/dashboard/") {
			t.Errorf("next %q leads to %v", next, hops)
		}
	}
}

func TestForeignForms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.visitor()
	v.login("admin", s.admin)
	form := url.Values{"name": {"stolen"}, "scope": {"read"}}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		if p := v.post("/dashboard/keys", form, headers...); p.status != 403 || strings.Contains(p.text, "fw_") {
			t.Errorf("%v: %d", headers, p.status)
		}
		if p := v.post("/dashboard/logout", nil, headers...); p.status != 403 {
			t.Errorf("logout with %v: %d", headers, p.status)
		}
	}
	if p := v.post("/dashboard/keys", form, "Sec-Fetch-Site", "same-origin", "Origin", s.URL); p.status != 200 || !strings.Contains(p.text, "fw_") {
		t.Errorf("the own form: %d", p.status)
	}
	for _, path := range []string{"logout", "keys/x/revoke"} { // changes need a POST
		if p := v.get("/dashboard/" + path); p.status != 404 && p.status != 405 {
			t.Errorf("GET %s: %d", path, p.status)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.visitor()
	login := v.get("/dashboard/login")
	v.login("admin", s.admin)
	for name, p := range map[string]shown{"login": login, "overview": v.get("/dashboard/"), "try": v.get("/dashboard/try"), "nothing": v.get("/dashboard/nothing")} {
		csp := p.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: policy %q has no %s", name, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "data:") || strings.Contains(csp, "*") {
			t.Errorf("%s: policy %q", name, csp)
		}
		if p.header.Get("X-Content-Type-Options") != "nosniff" || p.header.Get("Cache-Control") != "no-store" || p.header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: headers %v", name, p.header)
		}
		if m := regexp.MustCompile(`<script(?: type="module")? ?>|<style|\son\w+="|\sstyle="|https?://`).FindString(p.text); m != "" {
			t.Errorf("%s: the page has %q", name, m)
		}
	}
	u, err := url.Parse(s.URL)
	systest.NoError(t, err)
	if n := len(v.Jar.Cookies(u)); n == 0 {
		t.Error("there is no session")
	}
}

// Browsers cache static files forever, under an address that changes with the files.
func TestAssets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.visitor()
	page := v.get("/dashboard/login").text
	found := regexp.MustCompile(`/dashboard/static/[0-9a-f]{16}/[a-z.]+`).FindAllString(page, -1)
	if len(found) < 3 {
		t.Fatalf("the page refers to %v", found)
	}
	for _, path := range found {
		p := v.get(path)
		if p.status != 200 || !strings.Contains(p.header.Get("Cache-Control"), "immutable") || p.header.Get("Content-Type") == "" || p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, p.status, p.header)
		}
		for _, m := range regexp.MustCompile(`from "\./([a-z.]+)"`).FindAllStringSubmatch(p.text, -1) {
			if q := v.get(path[:strings.LastIndex(path, "/")+1] + m[1]); q.status != 200 {
				t.Errorf("%s imports %s: %d", path, m[1], q.status)
			}
		}
	}
	old := regexp.MustCompile(`[0-9a-f]{16}`).ReplaceAllString(found[0], "0000000000000000")
	if p := v.get(old); p.status != 200 || p.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the address of another version: %d %s", p.status, p.header.Get("Cache-Control"))
	}
	if p := v.get(strings.TrimSuffix(found[0], "style.css") + "..%2ftemplates%2fframe.html"); p.status != 404 {
		t.Errorf("what is no file: %d", p.status)
	}
}

// send uploads a file with the API and the visitor's session, like the scripts.
func (v *visitor) send(name, content string) (key string) {
	v.t.Helper()
	call := func(method, address string, body any) map[string]any {
		b, err := json.Marshal(body)
		systest.NoError(v.t, err)
		r, err := http.NewRequestWithContext(v.t.Context(), method, address, bytes.NewReader(b))
		systest.NoError(v.t, err)
		r.Header.Set("Content-Type", "application/json")
		var out map[string]any
		p := v.do(r)
		if err := json.Unmarshal([]byte(p.text), &out); err != nil || p.status != 200 {
			v.t.Fatalf("%s: %d %s", address, p.status, p.text)
		}
		return out
	}
	begun := call("POST", v.s.URL+"/api/v1/initiate-upload", map[string]any{"file_name": name, "size": len(content), "mime_type": "text/html"})
	r, err := http.NewRequestWithContext(v.t.Context(), "PUT", begun["presigned_urls"].([]any)[0].(string), strings.NewReader(content))
	systest.NoError(v.t, err)
	sent := v.do(r)
	call("POST", v.s.URL+"/api/v1/complete-upload", map[string]any{
		"file_key": begun["file_key"], "object_name": begun["object_name"], "upload_id": begun["upload_id"],
		"parts": []any{map[string]any{"part_number": 1, "etag": sent.header.Get("ETag")}},
	})
	return begun["file_key"].(string)
}

// submit starts an operation on a file. Nothing processes it.
func (s *site) submit(owner, key, name string) (id string) {
	s.t.Helper()
	op, err := s.service.Operations().Submit(s.t.Context(), status.Operation{
		ID: "op-" + key, Owner: owner, Action: "zip", Created: time.Now(), Notes: map[string]string{"<b>note</b>": name},
		Items: []status.Item{{Queue: "archive", Inputs: []status.File{{Key: key, Name: name, Size: 5}}}},
	})
	systest.NoError(s.t, err)
	return op.ID
}

// The page of an operation of several steps shows the state of each step, the results that are kept,
// and the files as their owner knows them.
func TestStepsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	op, err := s.service.Operations().Submit(t.Context(), status.Operation{
		Owner: acct.ID, Action: "steps", Steps: []status.Step{{Action: "convert", Keep: true}, {Action: "reset_password"}, {Action: "zip"}},
		Items: []status.Item{{Queue: "office", Inputs: []status.File{{Key: "in", Name: "report.docx", Size: 5}}}},
	})
	systest.NoError(t, err)
	c, err := s.store.Claim(t.Context(), status.Ref{Operation: op.ID}, "w", time.Hour)
	systest.NoError(t, err)
	_, err = s.store.Finish(t.Context(), c, status.Outcome{
		Results: []status.File{{Key: "kept", Name: "kept.pdf"}},
		Next: func(*status.Operation) []status.Item {
			return []status.Item{{Queue: "pdf", Inputs: []status.File{{Key: "kept", Name: "kept.pdf"}}}}
		},
	})
	systest.NoError(t, err)
	c, err = s.store.Claim(t.Context(), status.Ref{Operation: op.ID, Index: 1}, "w", time.Hour)
	systest.NoError(t, err)
	if c.Op.ActionOf(c.Index) != "reset_password" {
		t.Errorf("claim %+v", c)
	}
	p := v.get("/dashboard/operations/" + op.ID)
	_, steps, _ := strings.Cut(p.text, `id="steps"`)
	steps, files, _ := strings.Cut(steps, `id="files"`)
	for _, want := range []string{"1. Convert", "Completed", `href="/v1/download/kept"`, "2. Change password", "Running", "3. Zip", "Queued"} {
		_, rest, ok := strings.Cut(steps, want)
		if !ok {
			t.Fatalf("the steps have no %q in its place: %s", want, p.text)
		}
		steps = rest
	}
	files, results, _ := strings.Cut(files, `id="results"`)
	if !strings.Contains(files, "report.docx") || strings.Contains(files, "kept.pdf") || strings.Contains(results, "kept.pdf") {
		t.Errorf("files: %s", files)
	}
	if !strings.Contains(p.text, `max="100" value="33"`) || !strings.Contains(p.text, "Convert, reset password, zip report.docx") {
		t.Errorf("page: %s", p.text)
	}
	for _, path := range []string{"", "operations"} {
		if p := v.get("/dashboard/" + path); !strings.Contains(p.text, "Convert, reset password, zip report.docx") {
			t.Errorf("%q: %s", path, p.text)
		}
	}
}

// Untrusted names are shown as text.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("<i>bob")
	for _, name := range []string{
		`<script>alert(1)<!--.txt`, `"><img src=x onerror=alert(1)>.txt`, `' onmouseover='alert(1).txt`, `{{.Account}}.txt`, "\u202etxt.exe", `javascript:alert(1).txt`,
	} {
		id := s.submit(acct.ID, v.send("a.txt", "hello"), name)
		for _, path := range []string{"", "operations", "operations/" + id} {
			p := v.get("/dashboard/" + path)
			if p.status != 200 {
				t.Errorf("%q: %s answers %d", name, path, p.status)
			}
			for _, bad := range []string{"<script>alert", "<img src=x", "onmouseover='", `href="javascript`, "<b>note", "<i>bob"} {
				if strings.Contains(p.text, bad) {
					t.Errorf("%q: %s has %s", name, path, bad)
				}
			}
		}
	}
	if _, _, err := s.hooks.Create(t.Context(), acct.ID, webhook.NewEndpoint{URL: "https://example.com/?a=<script>alert(1)</script>", Description: "<script>alert(2)</script>"}); err != nil {
		t.Fatal(err)
	}
	if p := v.post("/dashboard/keys", url.Values{"name": {"<script>alert(3)</script>"}, "scope": {"read"}}); strings.Contains(p.text, "<script>alert") || !strings.Contains(p.text, "alert(3)") {
		t.Errorf("keys: %s", p.text)
	}
	if p := v.get("/dashboard/webhooks"); strings.Contains(p.text, "<script>alert") || !strings.Contains(p.text, "alert(2)") {
		t.Errorf("webhooks: %s", p.text)
	}
	if p := v.get(`/dashboard/formats?q="><script>alert(1)</script>`); strings.Contains(p.text, "<script>alert") || !strings.Contains(p.text, "alert(1)") {
		t.Errorf("search: %s", p.text)
	}
	if p := v.post("/dashboard/login", url.Values{"name": {`"><script>alert(1)</script>`}, "password": {"x"}}); strings.Contains(p.text, "<script>alert") {
		t.Error("the name of a login is part of the page")
	}
}

// Previews have only types that browsers do not execute.
func TestPreviews(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, _ := s.member("ada")
	eve, _ := s.member("eve")
	for name, want := range map[string]string{
		"a.html": "text/plain; charset=utf-8", "a.svg": "text/plain; charset=utf-8", "a.xml": "text/plain; charset=utf-8", "a.txt": "text/plain; charset=utf-8",
		"a.png": "image/png", "a.pdf": "application/pdf", "a.mp4": "video/mp4", "a.js": "", "a.docx": "", "a.exe": "", "a": "",
	} {
		key := v.send(name, "<script>alert(1)</script>")
		p := v.get("/dashboard/files/" + key)
		if want == "" {
			if p.status != 404 {
				t.Errorf("%s: %d", name, p.status)
			}
			continue
		}
		if p.status != 200 || p.header.Get("Content-Type") != want || p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", name, p.status, p.header)
		}
		csp := p.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "script") || !strings.Contains(csp, "frame-ancestors 'self'") || want != "application/pdf" && !strings.Contains(csp, "sandbox") {
			t.Errorf("%s: policy %q", name, csp)
		}
		if p := eve.get("/dashboard/files/" + key); p.status != 404 {
			t.Errorf("another account gets %s: %d", name, p.status)
		}
	}
	key := v.send("long.txt", strings.Repeat("0123456789", 100))
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/dashboard/files/"+key, nil)
	systest.NoError(t, err)
	r.Header.Set("Range", "bytes=10-14")
	if p := v.do(r); p.status != 206 || p.text != "01234" {
		t.Errorf("a part of a file: %d %q", p.status, p.text)
	}
}

// Nobody sees or changes data of other accounts.
func TestOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada, adasAccount := s.member("ada")
	eve, _ := s.member("eve")
	id := s.submit(adasAccount.ID, ada.send("secret-name.txt", "hello"), "secret-name.txt")
	raw := regexp.MustCompile(`fw_[a-z2-7]{32}`).FindString(ada.post("/dashboard/keys", url.Values{"name": {"adas key"}, "scope": {"read"}}).text)
	if raw == "" {
		t.Fatal("no key")
	}
	keys, err := s.accounts.Keys().List(t.Context(), adasAccount.ID)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	hook, secret, err := s.hooks.Create(t.Context(), adasAccount.ID, webhook.NewEndpoint{URL: "https://example.com/adas"})
	systest.NoError(t, err)
	delivery, err := s.hooks.Test(t.Context(), adasAccount.ID, hook.ID)
	systest.NoError(t, err)
	for _, path := range []string{"operations/" + id, "webhooks/" + hook.ID, "webhooks/" + hook.ID + "/deliveries/" + delivery.ID, "accounts", "accounts/" + adasAccount.ID} {
		if p := eve.get("/dashboard/" + path); p.status != 404 {
			t.Errorf("eve gets %s: %d", path, p.status)
		}
	}
	for _, path := range []string{
		"operations/" + id + "/cancel", "keys/" + keys[0].ID + "/revoke", "webhooks/" + hook.ID, "webhooks/" + hook.ID + "/rotate", "webhooks/" + hook.ID + "/delete",
		"webhooks/" + hook.ID + "/disable", "webhooks/" + hook.ID + "/test", "webhooks/" + hook.ID + "/deliveries/" + delivery.ID + "/replay",
		"accounts", "accounts/" + adasAccount.ID, "accounts/" + adasAccount.ID + "/password", "accounts/" + adasAccount.ID + "/disable",
		"accounts/" + adasAccount.ID + "/keys/" + keys[0].ID + "/revoke",
	} {
		if p := eve.post("/dashboard/"+path, url.Values{"url": {"https://example.com/eves"}, "name": {"x"}}); p.status != 404 {
			t.Errorf("eve posts to %s: %d", path, p.status)
		}
	}
	for _, path := range []string{"", "operations", "keys", "webhooks", "usage"} {
		if p := eve.get("/dashboard/" + path); strings.Contains(p.text, "secret-name") || strings.Contains(p.text, "adas") {
			t.Errorf("eve sees on %s what is ada's", path)
		}
	}
	// Secrets are shown only once.
	for _, path := range []string{"keys", "webhooks", "webhooks/" + hook.ID} {
		if p := ada.get("/dashboard/" + path); p.status != 200 || strings.Contains(p.text, raw) || strings.Contains(p.text, secret) {
			t.Errorf("ada sees a secret on %s again (%d)", path, p.status)
		}
	}
	if p := ada.post("/dashboard/operations/"+id+"/cancel", nil); p.status != 200 || !strings.Contains(p.text, "cancelled") {
		t.Errorf("ada cancels: %d", p.status)
	}
	if p := ada.post("/dashboard/keys/"+keys[0].ID+"/revoke", nil); p.status != 200 || !strings.Contains(p.text, "API key revoked") {
		t.Errorf("ada revokes: %d", p.status)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+raw)
	if _, err := s.accounts.Authenticate(r); err == nil {
		t.Error("the revoked key is good")
	}
}

// Forms show their errors and keep the entered values.
func TestForms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.visitor()
	v.login("admin", s.admin)
	for _, tt := range []struct {
		name, path string
		form       url.Values
		want       []string
	}{
		{"key without a name", "keys", url.Values{"scope": {"read"}}, []string{"name-error"}},
		{"key without a scope", "keys", url.Values{"name": {"mine"}}, []string{"scope-error", `value="mine"`}},
		{"key with a scope that is not", "keys", url.Values{"name": {"mine"}, "scope": {"everything"}}, []string{"scope-error"}},
		{"key with a rate that is not", "keys", url.Values{"name": {"mine"}, "scope": {"read"}, "rate": {"fast"}}, []string{"rate-error", `value="fast"`}},
		{"webhook without an address", "webhooks", url.Values{"url": {""}}, []string{"url-error"}},
		{"webhook to a file", "webhooks", url.Values{"url": {"file:///etc/passwd"}}, []string{"url-error", "file:///etc/passwd"}},
		{"webhook for events that are not", "webhooks", url.Values{"url": {"https://example.com"}, "event": {"everything"}}, []string{`role="alert"`}},
		{"account without a name", "accounts", url.Values{"name": {""}}, []string{`role="alert"`}},
		{"account whose name is taken", "accounts", url.Values{"name": {"Admin"}}, []string{`role="alert"`, `value="Admin"`}},
		{"account with a limit that is not", "accounts", url.Values{"name": {"new"}, "stored": {"much"}}, []string{"Enter a size such as", `value="much"`}},
		{"account with a negative limit", "accounts", url.Values{"name": {"new"}, "operations": {"-1"}}, []string{"Enter a whole number"}},
		{"wrong password", "settings/password", url.Values{"old": {"wrong"}, "new": {good + "!"}, "again": {good + "!"}}, []string{"old-error"}},
	} {
		p := v.post("/dashboard/"+tt.path, tt.form)
		if p.status != 422 {
			t.Errorf("%s: %d", tt.name, p.status)
		}
		for _, want := range tt.want {
			if !strings.Contains(p.text, want) {
				t.Errorf("%s: the page has no %s", tt.name, want)
			}
		}
	}
	all, err := s.accounts.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Errorf("accounts: %v, %v", all, err)
	}
	p := v.post("/dashboard/accounts/"+all[0].ID+"/disable", nil)
	if p.status != 422 || !strings.Contains(p.text, "last administrator") {
		t.Errorf("the last administrator is disabled: %d", p.status)
	}
	if p := v.post("/dashboard/keys", url.Values{"name": {strings.Repeat("x", 300<<10)}}); p.status != 400 {
		t.Errorf("a form that is too long: %d", p.status)
	}
}

// An account can be created, limited, disabled and enabled again.
func TestAccounts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := s.visitor()
	v.login("admin", s.admin)
	p := v.post("/dashboard/accounts", url.Values{"name": {"bob"}, "stored": {"1.5 GB"}, "per_day": {"2GiB"}, "operations": {"10"}, "parallel": {"2"}})
	m := regexp.MustCompile(`id="secret">([^<]+)<`).FindStringSubmatch(p.text)
	if p.status != 200 || m == nil {
		t.Fatalf("no password: %d", p.status)
	}
	bob, err := s.accounts.ByName(t.Context(), "bob")
	if want := (account.Limits{StoredBytes: 1_500_000_000, BytesPerDay: 2 << 30, OperationsPerDay: 10, Parallel: 2}); err != nil || bob.Limits != want {
		t.Fatalf("%+v, %v", bob, err)
	}
	b := s.visitor()
	b.login("bob", m[1])
	if p := b.get("/dashboard/usage"); !strings.Contains(p.text, "of 1.5 GB") || strings.Contains(p.text, "/dashboard/accounts") {
		t.Error("usage of bob does not show the limit, or shows the accounts")
	}
	page := v.get("/dashboard/accounts/" + bob.ID)
	for _, want := range []string{`value="1500 MB"`, `value="2 GiB"`, `value="10"`, `value="2"`} {
		if !strings.Contains(page.text, want) {
			t.Errorf("the account's page has no %s", want)
		}
	}
	v.post("/dashboard/accounts/"+bob.ID+"/disable", nil)
	if p := b.get("/dashboard/usage"); p.path != "/dashboard/login" {
		t.Errorf("who is disabled sees %s", p.path)
	}
	v.post("/dashboard/accounts/"+bob.ID+"/enable", nil)
	p = v.post("/dashboard/accounts/"+bob.ID+"/password", nil)
	if m = regexp.MustCompile(`id="secret">([^<]+)<`).FindStringSubmatch(p.text); m == nil {
		t.Fatalf("no new password: %d", p.status)
	}
	s.visitor().login("bob", m[1])

	// Deleting needs the name.
	if p := v.post("/dashboard/accounts/"+bob.ID+"/delete", url.Values{"confirm": {"bobby"}}); p.status != 422 || !strings.Contains(p.text, "confirm-error") {
		t.Errorf("deleting without the name: %d", p.status)
	}
	if p := v.post("/dashboard/accounts/"+bob.ID+"/delete", url.Values{"confirm": {"bob"}}); p.path != "/dashboard/accounts" || !strings.Contains(p.text, "Account deleted") {
		t.Errorf("deleting: %s", p.path)
	}
	if p := v.get("/dashboard/accounts/" + bob.ID); p.status != 404 {
		t.Errorf("a deleted account: %d", p.status)
	}
	admin, err := s.accounts.ByName(t.Context(), "admin")
	systest.NoError(t, err)
	if p := v.post("/dashboard/accounts/"+admin.ID+"/delete", url.Values{"confirm": {"admin"}}); p.status != 422 {
		t.Errorf("deleting oneself: %d", p.status)
	}
}

// The parameters of a target are those that the action accepts for it.
func TestTryParameters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, _ := s.member("ada")
	if p := v.get("/dashboard/try"); !strings.Contains(p.text, `data-single-call="true"`) {
		t.Errorf("the page does not offer the one call: %s", p.text)
	}
	for query, want := range map[string]string{
		"action=zip&ext=txt&ext=unknown": `{"parameters":["level","password"]}`,
		"action=convert&ext=txt":         `{"parameters":[]}`,
		"":                               `{"parameters":[]}`,
	} {
		if p := v.get("/dashboard/try/parameters?" + query); p.status != 200 || p.text != want {
			t.Errorf("%s: %d %s", query, p.status, p.text)
		}
	}
}

// Live updates arrive after changes, and stop when the dashboard is closed.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/dashboard/events", nil)
	systest.NoError(t, err)
	resp, err := v.Do(r)
	systest.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return "the end"
	}
	if got := next(); got != "[]" {
		t.Errorf("at first: %s", got)
	}
	id := s.submit(acct.ID, v.send("a.txt", "hello"), "a.txt")
	if got, want := next(), `[{"id":"`+id+`","state":"queued","progress":0}]`; got != want {
		t.Errorf("then: %s, want %s", got, want)
	}
	if _, err := s.service.Operations().Cancel(t.Context(), acct.ID, id); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "[]" {
		t.Errorf("in the end: %s", got)
	}
	s.dashboard.Close()
	if got := next(); got != "the end" {
		t.Errorf("after Close: %s", got)
	}
}

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "dashboard-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "filewright.db")})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	accounts := auth.New(auth.Config{Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db})
	name, _, err := accounts.Bootstrap(ctx) // with a password for the first login
	if err != nil {
		panic(err)
	}
	service, err := httpapi.New(httpapi.Config{Auth: accounts, Files: db.Files(), Operations: db.Operations()})
	if err != nil {
		panic(err)
	}
	pages, err := dashboard.New(dashboard.Config{Service: service, Accounts: accounts})
	if err != nil {
		panic(err)
	}
	defer pages.Close()
	mux := http.NewServeMux()
	mux.Handle(dashboard.Path, pages)
	mux.Handle("/", service)

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", dashboard.Path, nil))
	fmt.Println(name, w.Code, w.Header().Get("Location"))
	// Output: admin 303 /dashboard/login
}
