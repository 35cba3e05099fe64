package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/admin"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/apicheck"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
)

// A site is a service with accounts. It checks every response against its own document.
type site struct {
	*httptest.Server
	svc      *httpapi.Service
	db       *sqlstore.DB
	accounts *auth.Accounts
	check    *apicheck.Checker
	log      *logtest.Buffer
}

func serve(t *testing.T) *site {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "filewright.db")})
	systest.NoError(t, err)
	s := &site{db: db, log: &logtest.Buffer{}}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.accounts = auth.New(auth.Config{Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db, Audit: db.Audit(), Log: log})
	if s.svc, err = httpapi.New(httpapi.Config{
		Auth: s.accounts, Extensions: admin.New(admin.Config{Accounts: s.accounts, Operations: db}),
		Files: db.Files(), Operations: db.Operations(), TempDir: t.TempDir(), Log: log, Concurrency: map[string]int{},
		Engines: []httpapi.Engine{{Name: "a", Version: "1"}, {Name: "b", Err: errors.New("not found"), Hint: "install it"}},
	}); err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(s.svc)
	t.Cleanup(func() {
		s.Close()
		systest.Check(t, db.Close())
	})
	if s.check, err = apicheck.Fetch(s.URL); err != nil {
		t.Fatal(err)
	}
	return s
}

// call makes a request with a key, checks the response and returns it.
func (s *site) call(t *testing.T, want int, key, method, path, body string) map[string]any {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	systest.NoError(t, err)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, raw := systest.Send(t, r)
	if err := s.check.Response(method, r.URL.Path, resp.StatusCode, resp.Header, raw); err != nil {
		t.Errorf("%s %s: %v\n%s", method, path, err, raw)
	}
	if resp.StatusCode != want {
		t.Fatalf("%s %s: got %d, want %d: %s", method, path, resp.StatusCode, want, raw)
	}
	var m map[string]any
	json.Unmarshal(raw, &m)
	return m
}

// status tries a key and returns the response status.
func (s *site) status(t *testing.T, key string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/v1/formats", nil)
	systest.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	systest.NoError(t, err)
	resp.Body.Close()
	return resp.StatusCode
}

// account creates an account and a key with all scopes.
func (s *site) account(t *testing.T, name string, administrator bool) (id, key string) {
	t.Helper()
	acct, _, err := s.accounts.Create(t.Context(), auth.NewAccount{Name: name, Administrator: administrator})
	systest.NoError(t, err)
	raw, _, err := s.accounts.Keys().Create(t.Context(), auth.NewKey{Name: "all", Account: acct.ID, Scopes: httpapi.DefaultScopes | httpapi.ScopeAdmin})
	systest.NoError(t, err)
	return acct.ID, raw
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ada, key := s.account(t, "Ada", false)
	bob, other := s.account(t, "Bob", false)
	_, boss := s.account(t, "Boss", true)
	const keys = "/api/v1/admin/accounts/self/keys"

	made := s.call(t, 200, key, "POST", keys, `{"name":" form ","scopes":["upload"],"rate":{"per_second":0.001,"burst":2},"expires_at":"2099-01-01T00:00:00Z"}`)
	raw, id := made["key"].(string), made["id"].(string)
	if made["name"] != "form" || made["account"] != ada || made["state"] != "valid" || fmt.Sprint(made["scopes"]) != "[upload]" || made["expires_at"] != "2099-01-01T00:00:00Z" {
		t.Errorf("made %v", made)
	}
	one := "/api/v1/admin/accounts/" + ada + "/keys/" + id
	if got := s.call(t, 200, key, "GET", one, ""); got["key"] != nil || got["prefix"] == "" {
		t.Errorf("key %v", got)
	}
	if got := s.call(t, 200, key, "GET", keys, "")["keys"].([]any); len(got) != 2 {
		t.Errorf("keys %v", got)
	}

	// Scopes and the rate are enforced.
	for _, tt := range []struct {
		method, path, body, scope string
	}{
		{"GET", "/api/v1/formats", "", "read"},
		{"GET", keys, "", "admin"},
	} {
		if p := s.call(t, 403, raw, tt.method, tt.path, tt.body); !strings.HasSuffix(p["message"].(string), "the scope "+tt.scope) {
			t.Errorf("%s %s: %v", tt.method, tt.path, p)
		}
	}
	s.call(t, 429, raw, "GET", "/api/v1/formats", "")

	if got := s.call(t, 200, key, "PATCH", one, `{"scopes":["read","admin"],"rate":{"per_second":1000000,"burst":1000},"name":"reader"}`); fmt.Sprint(got["rate"]) != "map[burst:1000 per_second:1e+06]" || fmt.Sprint(got["scopes"]) != "[read admin]" || got["name"] != "reader" {
		t.Errorf("changed %v", got)
	}
	// The next request is possible soon, and later than the old rate would allow.
	for deadline := time.Now().Add(30 * time.Second); s.status(t, raw) == 429; {
		if time.Now().After(deadline) {
			t.Fatal("the old rate is in force")
		}
	}
	s.call(t, 403, raw, "POST", "/api/v1/do", `{}`)
	if got := s.call(t, 200, key, "PATCH", one, `{"addresses":["192.0.2.7/24","2001:db8::1"]}`); fmt.Sprint(got["addresses"]) != "[192.0.2.0/24 2001:db8::1]" {
		t.Errorf("changed %v", got)
	}
	if got := s.call(t, 403, raw, "GET", "/api/v1/formats", ""); got["error"] != "address_not_allowed" || !strings.Contains(got["detail"].(string), "127.0.0.1") {
		t.Errorf("from another address: %v", got)
	}
	if got := s.call(t, 400, key, "PATCH", one, `{"addresses":["example.com"]}`); got["param"] != "addresses" {
		t.Errorf("a host name: %v", got)
	}
	if got := s.call(t, 200, key, "PATCH", one, `{"addresses":[]}`); got["addresses"] != nil {
		t.Errorf("changed %v", got)
	}
	if got := s.call(t, 200, key, "PATCH", one, `{"rate":{"per_second":0}}`); got["rate"] != nil || got["name"] != "reader" {
		t.Errorf("changed %v", got)
	}

	for body, param := range map[string]string{
		`{}`: "name", `{"name":" "}`: "name", `{"name":"a\u0000b"}`: "name", `{"name":"` + strings.Repeat("ä", 101) + `"}`: "name",
		`{"name":"x","scopes":[]}`: "scopes", `{"name":"x","scopes":["all"]}`: "scopes", `{"name":"x","expires_at":"2001-01-01T00:00:00Z"}`: "expires_at",
		`{"name":"x","rate":{"per_second":-1}}`: "rate", `{"name":"x","rate":{"per_second":0,"burst":3}}`: "rate", `{"name":1}`: "name",
	} {
		if p := s.call(t, 400, key, "POST", keys, body); p["param"] != param {
			t.Errorf("%s: %v", body, p)
		}
	}
	s.call(t, 400, key, "PATCH", one, `{"scopes":["all"]}`)

	// Foreign keys look missing, except for administrators.
	theirs := "/api/v1/admin/accounts/" + ada + "/keys"
	s.call(t, 404, other, "GET", theirs, "")
	s.call(t, 404, other, "POST", theirs, `{"name":"x"}`)
	s.call(t, 404, other, "GET", one, "")
	s.call(t, 404, other, "GET", "/api/v1/admin/accounts/"+bob+"/keys/"+id, "")
	s.call(t, 404, other, "DELETE", "/api/v1/admin/accounts/self/keys/"+id, "")
	s.call(t, 404, other, "PATCH", "/api/v1/admin/accounts/self/keys/"+id, `{"name":"mine"}`)
	s.call(t, 404, boss, "GET", "/api/v1/admin/accounts/nobody/keys", "")
	s.call(t, 401, "", "GET", theirs, "")
	if got := s.call(t, 200, boss, "GET", theirs, "")["keys"].([]any); len(got) != 2 {
		t.Errorf("keys %v", got)
	}

	if got := s.call(t, 200, boss, "DELETE", one, ""); got["state"] != "revoked" || got["revoked_at"] == nil {
		t.Errorf("revoked %v", got)
	}
	s.call(t, 401, raw, "GET", "/api/v1/formats", "")
	if strings.Contains(s.log.String(), raw) {
		t.Error("a key is in the log")
	}
	if missing := s.unseen("/keys"); len(missing) > 0 {
		t.Errorf("not called: %v", missing)
	}
}

// unseen returns the documented successful responses that no request has produced.
func (s *site) unseen(part string) []string {
	return slices.DeleteFunc(s.check.Unseen(), func(op string) bool {
		return !strings.Contains(op, "/admin/") || !strings.Contains(op, part) || strings.Count(op, " ") != 1
	})
}
