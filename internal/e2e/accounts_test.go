//go:build linux

package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

var passwordLine = regexp.MustCompile(`administrator is (\S+)\. The password, .*: ([a-z2-7-]{23})\n`)

// TestAccounts manages accounts with the commands and the API while the server runs.
func TestAccounts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := startLean(t, dir, "--account-stored", "1KB", "--account-operations-per-day", "3")
	first := passwordLine.FindStringSubmatch(s.banner)
	if first == nil || first[1] != "admin" {
		t.Fatalf("the first start says %q", s.banner)
	}
	run := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(tool(t, binary, append(args, "--data-dir", dir)...))
	}
	admin := &server{url: s.url, key: strings.TrimSpace(tool(t, binary, "keys", "create", "--data-dir", dir, "--name", "manager", "--account", "ADMIN", "--scopes", "admin,read"))}
	const accounts = "/api/v1/admin/accounts"

	made := admin.want(t, 200, "", "POST", accounts, map[string]any{"name": "Ada"})
	if limits := made.body["limits"].(map[string]any); limits["stored_bytes"] != 1000.0 || limits["operations_per_day"] != 3.0 {
		t.Errorf("limits of a new account: %v", limits)
	}
	ada := accounts + "/" + made.str("id")
	key := admin.want(t, 200, "", "POST", ada+"/keys", map[string]any{"name": "all", "scopes": []string{"upload", "operate", "read", "admin"}})
	user := &server{url: s.url, key: key.str("key")}
	one := ada + "/keys/" + key.str("id")
	admin.want(t, 200, "", "GET", one, nil)
	admin.want(t, 200, "", "PATCH", one, map[string]any{"name": "everything"})
	if got := user.want(t, 200, "", "GET", accounts+"/self/keys", nil).body["keys"].([]any); len(got) != 1 || got[0].(map[string]any)["name"] != "everything" {
		t.Errorf("keys %v", got)
	}

	// Limits apply to new files and operations.
	file := user.upload(t, "a.csv", []byte("a,b\n1,2\n"), 1)
	p := user.want(t, 429, "quota_exceeded", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "b.csv", "size": 993, "mime_type": "text/csv"})
	if used := p.body["quota"].(map[string]any); used["what"] != "stored_bytes" || used["limit"] != 1000.0 || used["used"] != 8.0 {
		t.Errorf("refused: %v", p.body)
	}
	convert := map[string]any{"action": "convert", "file_keys": []string{file}, "parameters": map[string]any{"convert_to": "json"}}
	for range 3 {
		task := user.want(t, 200, "", "POST", "/api/v1/do", convert).str("main_task_id")
		if st := user.want(t, 200, "", "GET", "/api/v1/status/"+task+"?wait=60s", nil); st.str("operation_status") != "completed" {
			t.Fatalf("%s", st.raw)
		}
	}
	p = user.want(t, 429, "quota_exceeded", "POST", "/api/v1/do", convert)
	if used := p.body["quota"].(map[string]any); used["what"] != "operations_per_day" || used["reset"] == nil || p.header.Get("Retry-After") == "" {
		t.Errorf("refused: %v", p.body)
	}
	usage := user.want(t, 200, "", "GET", accounts+"/self/usage", nil).body["used"].(map[string]any)
	if usage["operations_today"] != 3.0 || usage["bytes_today"] != 8.0 || usage["stored_bytes"].(float64) <= 8 {
		t.Errorf("usage %v", usage)
	}
	admin.want(t, 200, "", "PATCH", ada, map[string]any{"limits": map[string]any{"operations_per_day": 4}})
	user.want(t, 200, "", "POST", "/api/v1/do", convert)

	// The overview is for administrators only.
	if got := admin.want(t, 200, "", "GET", accounts, nil).body["accounts"].([]any); len(got) != 2 {
		t.Errorf("accounts %v", got)
	}
	if got := admin.want(t, 200, "", "GET", "/api/v1/admin/operations?account="+made.str("id"), nil).body["operations"].([]any); len(got) != 4 {
		t.Errorf("operations %v", got)
	}
	if got := admin.want(t, 200, "", "GET", "/api/v1/admin/overview", nil); got.body["accounts"] != 2.0 || len(got.body["engines"].([]any)) < 5 {
		t.Errorf("overview %s", got.raw)
	}
	user.want(t, 403, "forbidden", "GET", accounts, nil)
	user.want(t, 403, "forbidden", "GET", "/api/v1/admin/overview", nil)
	admin.want(t, 403, "forbidden", "POST", "/api/v1/do", convert)

	// Changes by commands take effect at once.
	if list := run("accounts", "list"); !strings.Contains(list, "Ada") || !strings.Contains(list, "administrator") {
		t.Errorf("list:\n%s", list)
	}
	tool(t, binary, "accounts", "disable", "--data-dir", dir, "ada")
	user.want(t, 403, "forbidden", "GET", "/api/v1/formats", nil)
	tool(t, binary, "accounts", "enable", "--data-dir", dir, made.str("id"))
	user.want(t, 200, "", "GET", accounts+"/self", nil)
	if password := tool(t, binary, "accounts", "password", "--data-dir", dir, "Ada"); len(strings.TrimSpace(password)) != 23 {
		t.Errorf("password %q", password)
	}
	if password := run("accounts", "create", "--name", "Bob", "--parallel", "2", "--stored", "5GB"); len(password) != 23 {
		t.Errorf("password %q", password)
	}
	for _, args := range [][]string{{"accounts", "create", "--name", "BOB", "--data-dir", dir}, {"accounts", "disable", "--data-dir", dir, "admin"}, {"accounts", "password", "--data-dir", dir, "nobody"}} {
		if out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput(); err == nil {
			t.Errorf("%v: %s", args, out)
		}
	}
	admin.want(t, 200, "", "DELETE", one, nil)
	user.want(t, 401, "unauthorized", "GET", "/api/v1/formats", nil)
	admin.want(t, 200, "", "POST", ada+"/password", nil)
	admin.want(t, 200, "", "DELETE", ada, nil)
	admin.want(t, 404, "not_found", "GET", ada, nil)

	if strings.Contains(s.err.String(), first[2]) || strings.Contains(s.err.String(), user.key) {
		t.Error("a secret is in the log")
	}
	systest.Check(t, s.stop())
	if again := startLean(t, dir); passwordLine.MatchString(again.banner) || again.key != "" {
		t.Errorf("the second start says %q", again.banner)
	}
}
