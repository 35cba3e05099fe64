package admin_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/internal/apicheck"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

func TestAccounts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	bossID, boss := s.account(t, "Boss", true)
	const accounts = "/api/v1/admin/accounts"

	made := s.call(t, 200, boss, "POST", accounts, `{"name":"Ada Lovelace","limits":{"stored_bytes":100,"operations_per_day":2}}`)
	ada, password := made["id"].(string), made["password"].(string)
	if made["name"] != "Ada Lovelace" || made["must_change_password"] != true || made["login"] != true || made["administrator"] != false || fmt.Sprint(made["limits"]) != "map[bytes_per_day:0 operations_per_day:2 parallel:0 stored_bytes:100]" {
		t.Errorf("made %v", made)
	}
	if _, _, err := s.accounts.Login(t.Context(), "ada lovelace", password, auth.Client{}); err != nil {
		t.Error(err)
	}
	key := s.call(t, 200, boss, "POST", accounts+"/"+ada+"/keys", `{"name":"all","scopes":["upload","operate","read","admin"]}`)["key"].(string)
	one := accounts + "/" + ada

	// Limits are enforced, and the use is reported.
	initiate := func(want int, size int) map[string]any {
		t.Helper()
		return s.call(t, want, key, "POST", "/api/v1/initiate-upload", fmt.Sprintf(`{"file_name":"a.txt","size":%d,"mime_type":"text/plain"}`, size))
	}
	file := initiate(200, 60)["file_key"].(string)
	p := initiate(429, 41)
	if used, _ := p["quota"].(map[string]any); p["error"] != "quota_exceeded" || used["what"] != "stored_bytes" || used["limit"] != 100.0 || used["used"] != 60.0 || used["reset"] != nil {
		t.Errorf("refused %v", p)
	}
	if got := s.call(t, 200, key, "GET", accounts+"/self", ""); got["id"] != ada || got["used"].(map[string]any)["stored_bytes"] != 60.0 || got["password"] != nil {
		t.Errorf("self %v", got)
	}
	s.call(t, 200, key, "DELETE", "/api/v1/files/"+file, "")
	initiate(200, 100)

	if got := s.call(t, 200, boss, "PATCH", one, `{"name":"Countess","limits":{"parallel":3,"stored_bytes":0}}`); got["name"] != "Countess" || fmt.Sprint(got["limits"]) != "map[bytes_per_day:0 operations_per_day:2 parallel:3 stored_bytes:0]" {
		t.Errorf("changed %v", got)
	}
	initiate(200, 1000)
	if got := s.call(t, 200, boss, "POST", one+"/password", ""); got["name"] != "Countess" || got["password"] == password {
		t.Errorf("password %v", got)
	}
	if got := s.call(t, 200, boss, "GET", accounts, "")["accounts"].([]any); len(got) != 2 {
		t.Errorf("accounts %v", got)
	}

	// Requests that need an administrator.
	for _, call := range [][3]string{
		{"GET", accounts, ""}, {"POST", accounts, `{"name":"x"}`}, {"PATCH", accounts + "/self", `{"limits":{"stored_bytes":0}}`}, {"DELETE", accounts + "/self", ""},
		{"POST", accounts + "/self/password", ""}, {"GET", "/api/v1/admin/overview", ""}, {"GET", "/api/v1/admin/operations", ""},
	} {
		s.call(t, 403, key, call[0], call[1], call[2])
	}
	for _, call := range [][3]string{{"GET", "", ""}, {"PATCH", "", `{}`}, {"DELETE", "", ""}, {"POST", "/password", ""}, {"GET", "/usage", ""}, {"GET", "/keys", ""}} {
		s.call(t, 404, key, call[0], accounts+"/"+bossID+call[1], call[2])
		s.call(t, 404, boss, call[0], accounts+"/nobody"+call[1], call[2])
	}

	// Invalid requests.
	for body, want := range map[string]int{
		`{}`: 400, `{"name":""}`: 400, `{"name":"COUNTESS"}`: 409, `{"name":"x","limits":{"parallel":-1}}`: 400, `{"name":"x","limits":{"stored_bytes":1.5}}`: 400,
	} {
		s.call(t, want, boss, "POST", accounts, body)
	}
	for body, want := range map[string]int{`{"disabled":true}`: 409, `{"administrator":false}`: 409, `{"name":"countess"}`: 409} {
		s.call(t, want, boss, "PATCH", accounts+"/self", body)
	}
	s.call(t, 409, boss, "DELETE", accounts+"/self", "")
	s.call(t, 200, boss, "POST", accounts, `{"name":"other"}`)

	if got := s.call(t, 200, boss, "PATCH", one, `{"disabled":true}`); got["disabled_at"] == nil {
		t.Errorf("disabled %v", got)
	}
	s.call(t, 403, key, "GET", "/api/v1/formats", "")
	if got := s.call(t, 200, boss, "PATCH", one, `{"disabled":false}`); got["disabled_at"] != nil {
		t.Errorf("enabled %v", got)
	}
	s.call(t, 200, key, "GET", "/api/v1/formats", "")
	if got := s.call(t, 200, boss, "DELETE", one, ""); got["id"] != ada {
		t.Errorf("deleted %v", got)
	}
	s.call(t, 401, key, "GET", "/api/v1/formats", "")
	if log := s.log.String(); strings.Contains(log, password) || strings.Contains(log, key) {
		t.Error("a secret is in the log")
	}

	// An account with only keys has no login name until it gets one.
	if _, _, err := s.accounts.Keys().Create(t.Context(), auth.NewKey{Name: "old", Account: "robot"}); err != nil {
		t.Fatal(err)
	}
	if got := s.call(t, 200, boss, "GET", accounts+"/robot", ""); got["name"] != nil || got["login"] != false {
		t.Errorf("account %v", got)
	}
	s.call(t, 400, boss, "POST", accounts+"/robot/password", "")
	s.call(t, 200, boss, "PATCH", accounts+"/robot", `{"name":"Robot"}`)
	s.call(t, 200, boss, "POST", accounts+"/robot/password", "")

	s.call(t, 200, boss, "GET", accounts+"/self/usage", "")
	for _, op := range s.unseen("/accounts") {
		if !strings.Contains(op, "/keys") {
			t.Errorf("not called: %s", op)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ada, key := s.account(t, "Ada", false)
	bossID, boss := s.account(t, "Boss", true)
	now := time.Now().UTC()
	create := func(owner, id string, failure *status.Error) {
		t.Helper()
		op := &status.Operation{ID: id, Owner: owner, Action: "convert", Created: now, Items: []status.Item{{Queue: "pdf", Inputs: []status.File{{Key: "in", Size: 10}}}}}
		if _, err := s.db.Operations().Create(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		if failure == nil && id == "3" {
			return // queued
		}
		c, err := s.db.Operations().Claim(t.Context(), status.Ref{Operation: id}, "w", time.Minute)
		systest.NoError(t, err)
		if _, err := s.db.Operations().Finish(t.Context(), c, status.Outcome{Results: []status.File{{Key: "out", Size: 30}}, Error: failure}); err != nil {
			t.Fatal(err)
		}
	}
	create(ada, "1", nil)
	create(ada, "2", &status.Error{Code: "corrupt_input", Message: "damaged"})
	create(bossID, "3", nil)
	if _, err := s.db.Files().Create(t.Context(), &upload.File{Key: "f", Owner: ada, Size: 77, State: upload.Open, Created: now}); err != nil {
		t.Fatal(err)
	}

	const usage = "/api/v1/admin/accounts/self/usage"
	got := s.call(t, 200, key, "GET", usage, "")
	days := got["days"].([]any)
	today := days[len(days)-1].(map[string]any)
	if len(days) != 30 || got["to"] != now.Format("2006-01-02") && time.Since(now) < time.Hour {
		t.Errorf("usage %v", got)
	}
	if time.Now().UTC().Day() == now.Day() { // otherwise midnight is near
		act, _ := today["actions"].([]any)
		if today["uploaded_bytes"] != 77.0 || today["operations"] != 2.0 || len(act) != 1 || act[0].(map[string]any)["items"] != 2.0 || act[0].(map[string]any)["failed"] != 1.0 || act[0].(map[string]any)["bytes_out"] != 30.0 {
			t.Errorf("today %v", today)
		}
	}
	if got := s.call(t, 200, boss, "GET", "/api/v1/admin/accounts/"+ada+"/usage?from=2026-01-31&to=2026-02-02", ""); len(got["days"].([]any)) != 3 || got["from"] != "2026-01-31" {
		t.Errorf("usage %v", got)
	}
	for query, param := range map[string]string{"?from=x": "from", "?to=2026-13-01": "to", "?from=2026-01-02&to=2026-01-01": "from", "?from=2020-01-01&to=2026-01-01": "from"} {
		if p := s.call(t, 400, key, "GET", usage+query, ""); p["param"] != param {
			t.Errorf("%s: %v", query, p)
		}
	}

	over := s.call(t, 200, boss, "GET", "/api/v1/admin/overview", "")
	if over["accounts"] != 2.0 || fmt.Sprint(over["failures"]) != "[map[action:convert error_code:corrupt_input items:1]]" || fmt.Sprint(over["engines"]) != "[map[available:true name:a version:1] map[available:false name:b problem:install it]]" {
		t.Errorf("overview %v", over)
	}
	if q := over["queues"].([]any); len(q) != 1 || q[0].(map[string]any)["queued"] != 1.0 || q[0].(map[string]any)["family"] != "pdf" {
		t.Errorf("queues %v", q)
	}

	const operations = "/api/v1/admin/operations"
	list := func(want int, query string) []any {
		t.Helper()
		got := s.call(t, 200, boss, "GET", operations+query, "")["operations"].([]any)
		if len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
		return got
	}
	list(3, "")
	list(2, "?account="+ada)
	list(0, "?account=nobody")
	list(1, "?status=completed")
	failed := list(1, "?status=failed&account="+ada)[0].(map[string]any)
	if failed["main_task_id"] != "2" || failed["account"] != ada || fmt.Sprint(failed["items"]) != "map[completed:0 failed:1 total:1]" || fmt.Sprint(failed["error_codes"]) != "[corrupt_input]" {
		t.Errorf("failed %v", failed)
	}
	seen := make(map[any]bool)
	cursor := ""
	for range 3 {
		page := s.call(t, 200, boss, "GET", operations+"?limit=1&cursor="+url.QueryEscape(cursor), "")
		for _, op := range page["operations"].([]any) {
			seen[op.(map[string]any)["main_task_id"]] = true
		}
		cursor, _ = page["next_cursor"].(string)
	}
	if len(seen) != 3 || cursor != "" {
		t.Errorf("pages show %v, and then %q", seen, cursor)
	}
	s.call(t, 400, boss, "GET", operations+"?limit=0", "")
	s.call(t, 400, boss, "GET", operations+"?status=gone", "")
	s.call(t, 400, boss, "GET", operations+"?cursor=gone", "")
}

// A logged-in user calls the same endpoints from a page of the service.
func TestSession(t *testing.T) {
	t.Parallel()
	s := serve(t)
	acct, password, err := s.accounts.Create(t.Context(), auth.NewAccount{Name: "Ada", Limits: &account.Limits{}})
	systest.NoError(t, err)
	try := func(token, site string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/api/v1/admin/accounts/self/keys", strings.NewReader(`{"name":"laptop"}`))
		systest.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Sec-Fetch-Site", site)
		r.AddCookie(&http.Cookie{Name: auth.CookieName, Value: token})
		resp, err := http.DefaultClient.Do(r)
		systest.NoError(t, err)
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err == nil {
			err = s.check.Response("POST", r.URL.Path, resp.StatusCode, resp.Header, raw)
		}
		systest.Check(t, err)
		return resp.StatusCode
	}
	token, _, err := s.accounts.Login(t.Context(), "Ada", password, auth.Client{})
	systest.NoError(t, err)
	if got := try(token, "same-origin"); got != 403 {
		t.Errorf("before the password was changed: %d", got)
	}
	if token, err = s.accounts.ChangePassword(t.Context(), acct.ID, password, "correct horse battery", auth.Client{}); err != nil {
		t.Fatal(err)
	}
	for site, want := range map[string]int{"same-origin": 200, "cross-site": 401, "same-site": 401, "none": 401} {
		if got := try(token, site); got != want {
			t.Errorf("%s: %d, want %d", site, got, want)
		}
	}
	systest.NoError(t, s.accounts.Logout(t.Context(), token))
	if got := try(token, "same-origin"); got != 401 {
		t.Errorf("after logging out: %d", got)
	}
}

// Every schema of the document is valid, every reference resolves, and every example matches its
// schema.
func TestDocument(t *testing.T) {
	t.Parallel()
	s := serve(t)
	resp, err := http.Get(s.URL + "/openapi.json")
	systest.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	systest.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	systest.NoError(t, err)
	const name = "https://example.com/openapi.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	systest.NoError(t, c.AddResource(name, doc))
	examples := 0
	check := func(at string, v any) {
		t.Helper()
		schema, err := c.Compile(name + "#" + (&url.URL{Path: at}).EscapedPath())
		if err == nil && v != nil {
			examples++
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	ids := make(map[string]bool)
	var walk func(v any, at string)
	walk = func(v any, at string) {
		switch v := v.(type) {
		case map[string]any:
			if id, ok := v["operationId"].(string); ok {
				if ids[id] {
					t.Errorf("two operations are called %s", id)
				}
				ids[id] = true
			}
			if ref, ok := v["$ref"].(string); ok {
				if !bytes.Contains(text, []byte(`"`+ref[strings.LastIndexByte(ref, '/')+1:]+`":`)) {
					t.Errorf("%s: reference %s leads nowhere", at, ref)
				}
			}
			if v["schema"] != nil {
				check(at+"/schema", v["example"])
				named, _ := v["examples"].(map[string]any)
				for _, e := range named {
					check(at+"/schema", e.(map[string]any)["value"])
				}
			}
			for k, e := range v {
				walk(e, at+"/"+apicheck.EscapeKey(k))
			}
		case []any:
			for i, e := range v {
				walk(e, fmt.Sprintf("%s/%d", at, i))
			}
		}
	}
	walk(doc, "")
	if examples < 80 || !ids["listKeys"] || !ids["createOperation"] {
		t.Errorf("%d examples, operations %v", examples, ids)
	}
	docs, err := http.Get(s.URL + "/docs")
	systest.NoError(t, err)
	defer docs.Body.Close()
	page, err := io.ReadAll(docs.Body)
	systest.NoError(t, err)
	for id := range ids {
		if !bytes.Contains(page, []byte(`id="`+id+`"`)) {
			t.Errorf("operation %s is not on the page", id)
		}
	}
	if !bytes.Contains(page, []byte(`curl -X PATCH &#34;$BASE/api/v1/admin/accounts/self&#34;`)) {
		t.Error("the page does not show how to change an account")
	}
}
