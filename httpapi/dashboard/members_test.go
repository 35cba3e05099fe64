package dashboard_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/internal/systest"
)

// wantNeeds lists the permission of each route. A route without one is for guests, for the settings of
// the login itself, or for administrators of the server.
var wantNeeds = map[account.Permission][]string{
	account.View: {
		"GET {$}", "GET events", "GET operations", "GET operations.csv", "GET operations/{id}", "GET files/{key}", "GET keys", "GET keys/{id}",
		"GET usage", "GET usage.csv", "GET formats", "GET webhooks", "GET webhooks/{id}", "GET webhooks/{id}/deliveries/{delivery}", "GET members",
	},
	account.Operate: {
		"GET try", "GET try/parameters", "POST operations/selected", "POST operations/{id}/delete", "POST operations/{id}/again", "POST operations/{id}/cancel",
	},
	account.Manage: {
		"GET audit", "GET audit.csv",
		"POST keys", "POST keys/{id}", "POST keys/{id}/roll", "POST keys/{id}/revoke",
		"POST webhooks", "POST webhooks/{id}", "POST webhooks/{id}/{what}", "POST webhooks/{id}/deliveries/{delivery}/replay",
	},
	account.Invite: {"POST members/invitations", "POST members/invitations/{id}/revoke", "POST members/{id}/role"},
	account.Own:    {"GET account/export", "POST account/delete"},
	"": {
		"GET login", "POST login", "POST login/code", "POST theme", "POST login/passkey/start", "POST login/passkey", "GET join", "POST join",
		"GET password", "POST password", "POST logout", "POST members/{id}/remove", "GET ",
		"GET settings", "POST settings/password", "POST settings/sessions", "GET settings/second-factor", "POST settings/second-factor", "POST settings/second-factor/off",
		"POST settings/passkeys/start", "POST settings/passkeys", "POST settings/passkeys/remove",
		"GET system", "GET accounts", "POST accounts", "GET accounts/{id}", "POST accounts/{id}", "POST accounts/{id}/{what}", "POST accounts/{id}/keys/{key}/revoke",
	},
}

// invited returns a visitor who has accepted an invitation.
func (v *visitor) invited(role account.Role, name string) *visitor {
	v.t.Helper()
	p := v.post("/dashboard/members/invitations", url.Values{"role": {string(role)}, "note": {"<b>" + name}, "expires": {"7"}})
	m := regexp.MustCompile(`id="secret">[^<]*(/dashboard/join\?invitation=[A-Z2-7]+)<`).FindStringSubmatch(p.text)
	if m == nil || !strings.Contains(p.text, "&lt;b&gt;"+name) {
		v.t.Fatalf("no invitation, or an unescaped note: %d %s", p.status, p.text)
	}
	guest := v.s.visitor()
	if p := guest.get(m[1]); p.status != 200 || !strings.Contains(p.text, "invites you") {
		v.t.Fatalf("the page of the invitation: %d", p.status)
	}
	form := url.Values{"invitation": {m[1][strings.Index(m[1], "=")+1:]}, "name": {name}, "new": {good}, "again": {good + "!"}}
	if p := guest.post("/dashboard/join", form); p.status != 422 || !strings.Contains(p.text, "do not match") {
		v.t.Errorf("two passwords: %d", p.status)
	}
	form.Set("again", good)
	if p := guest.post("/dashboard/join", form); p.status != 200 || p.path != "/dashboard/" {
		v.t.Fatalf("joined: %d %s", p.status, p.path)
	}
	if p := v.s.visitor().get(m[1]); p.status != 404 || !strings.Contains(p.text, "used or revoked") {
		v.t.Errorf("a used invitation: %d", p.status)
	}
	return guest
}

// Each route asks for its permission, and each role opens what the table says.
func TestRoutesByRole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	needs := s.dashboard.Needs()
	var routes []string
	for need, list := range wantNeeds {
		for _, route := range list {
			if got, ok := needs[route]; !ok || got != need {
				t.Errorf("%s needs %q (registered: %t), want %q", route, got, ok, need)
			}
			routes = append(routes, route)
		}
	}
	for route := range needs {
		if !slices.Contains(routes, route) {
			t.Errorf("the list of this test has no route %s", route)
		}
	}
	ada, acct := s.member("Ada")
	for _, role := range account.Roles() {
		v := ada
		if role != account.RoleOwner {
			v = ada.invited(role, "A "+string(role))
		}
		for need, list := range wantNeeds {
			for _, route := range list {
				method, path, _ := strings.Cut(route, " ")
				if need == "" || path == "events" && role.May(need) { // events do not end
					continue
				}
				path = "/dashboard/" + regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(strings.TrimSuffix(path, "{$}"), "x")
				var p shown
				if method == "GET" {
					p = v.get(path)
				} else {
					p = v.post(path, nil)
				}
				if refused := p.status == 403 && strings.Contains(p.text, "Not permitted"); refused == role.May(need) {
					t.Errorf("%s as %s: %d", route, role, p.status)
				}
			}
		}
		// Administration of the server is for administrators of the server.
		for _, path := range []string{"system", "accounts", "accounts/" + acct.ID} {
			if p := v.get("/dashboard/" + path); p.status != 404 {
				t.Errorf("%s as %s: %d", path, role, p.status)
			}
		}
		if p := v.get("/dashboard/settings"); p.status != 200 || !strings.Contains(p.text, acct.ID) {
			t.Errorf("settings as %s: %d", role, p.status)
		}
		// Pages show no buttons that would be refused.
		for page, button := range map[string]string{"keys": "Create key", "webhooks": "Add webhook", "members": "Create link"} {
			need := account.Manage
			if page == "members" {
				need = account.Invite
			}
			if p := v.get("/dashboard/" + page); strings.Contains(p.text, button) != role.May(need) {
				t.Errorf("%s as %s: the button %q", page, role, button)
			}
		}
		if p := v.get("/dashboard/"); strings.Contains(p.text, "/dashboard/try") != role.May(account.Operate) {
			t.Errorf("the overview as %s: try", role)
		}
	}
}

// Members are changed and removed, and an owner exports and deletes the account.
func TestMemberPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada, acct := s.member("Ada")
	bob := ada.invited(account.RoleViewer, "Bob")
	id := func(name string) string {
		t.Helper()
		all, err := s.accounts.Members(t.Context(), acct.ID)
		systest.NoError(t, err)
		for _, m := range all {
			if m.Name == name {
				return m.ID
			}
		}
		t.Fatalf("%s is not a member", name)
		return ""
	}
	if p := ada.post("/dashboard/members/"+acct.ID+"/remove", nil); p.status != 409 || !strings.Contains(p.text, "last owner") {
		t.Errorf("the last owner leaves: %d", p.status)
	}
	if p := ada.post("/dashboard/members/invitations", url.Values{"role": {"boss"}, "expires": {"7"}}); p.status != 403 {
		t.Errorf("an unknown role: %d", p.status)
	}
	if p := bob.post("/dashboard/keys", url.Values{"name": {"x"}, "scope": {"read"}}); p.status != 403 {
		t.Errorf("a viewer creates a key: %d", p.status)
	}
	if p := ada.post("/dashboard/members/"+id("Bob")+"/role", url.Values{"role": {"administrator"}}); p.status != 200 || !strings.Contains(p.text, "Role changed") {
		t.Errorf("a role is changed: %d", p.status)
	}
	p := bob.post("/dashboard/keys", url.Values{"name": {"Bob's key"}, "scope": {"read"}})
	secret := regexp.MustCompile(`id="secret">(fw_[a-z2-7]+)<`).FindStringSubmatch(p.text)
	if p.status != 200 || secret == nil {
		t.Fatalf("an administrator creates a key: %d", p.status)
	}

	// The operations of the account are the members' too.
	file := ada.send("a.txt", "content")
	op := s.submit(acct.ID, file, "a.txt")
	if p := bob.get("/dashboard/operations/" + op); p.status != 200 {
		t.Errorf("an operation of the account: %d", p.status)
	}

	// Export.
	p = ada.get("/dashboard/account/export")
	z, err := zip.NewReader(bytes.NewReader([]byte(p.text)), int64(len(p.text)))
	systest.NoError(t, err)
	content := make(map[string]string)
	for _, f := range z.File {
		r, err := f.Open()
		systest.NoError(t, err)
		b, err := io.ReadAll(r)
		systest.NoError(t, err)
		content[f.Name] = string(b)
	}
	for name, want := range map[string]string{"account.json": acct.ID, "members.json": `"role": "administrator"`, "keys.json": "Bob's key", "usage.csv": "day,action", "operations.csv": op} {
		if !strings.Contains(content[name], want) {
			t.Errorf("%s has no %s: %s", name, want, content[name])
		}
	}
	for name, text := range content {
		if strings.Contains(text, secret[1]) || strings.Contains(text, "argon2") {
			t.Errorf("%s has a secret", name)
		}
	}

	// Removal ends sessions at once; the key stays.
	if p := ada.post("/dashboard/members/"+id("Bob")+"/remove", nil); p.status != 200 || !strings.Contains(p.text, "Member removed") {
		t.Errorf("a member is removed: %d", p.status)
	}
	if p := bob.get("/dashboard/"); p.path != "/dashboard/login" {
		t.Errorf("the removed member sees %s", p.path)
	}
	if p := ada.get("/dashboard/keys"); !strings.Contains(p.text, "Bob&#39;s key") {
		t.Error("the key of the removed member is gone")
	}
	if p := ada.post("/dashboard/account/delete", url.Values{"confirm": {"ada"}}); p.status != 422 || !strings.Contains(p.text, "exactly") {
		t.Errorf("another name: %d", p.status)
	}
	if p := ada.post("/dashboard/account/delete", url.Values{"confirm": {"Ada"}}); p.path != "/dashboard/login" || !strings.Contains(p.text, "Account deleted") {
		t.Errorf("deleted: %d %s", p.status, p.path)
	}
	if p := ada.get("/dashboard/"); p.path != "/dashboard/login" {
		t.Errorf("the deleted account sees %s", p.path)
	}

	// A member of an administrator's account creates no keys for the server.
	boss := s.visitor()
	boss.login("admin", s.admin)
	owner := boss.invited(account.RoleOwner, "Second")
	if p := owner.post("/dashboard/keys", url.Values{"name": {"x"}, "scope": {"admin"}}); p.status != 422 || !strings.Contains(p.text, "manages the server") {
		t.Errorf("a key for the server: %d", p.status)
	}
	if p := boss.post("/dashboard/keys", url.Values{"name": {"boss key"}, "scope": {"admin"}}); p.status != 200 {
		t.Errorf("a key of the administrator: %d", p.status)
	}
	m := regexp.MustCompile(`/dashboard/keys/([0-9a-f-]{36})"`).FindStringSubmatch(owner.get("/dashboard/keys").text)
	if p := owner.post("/dashboard/keys/"+m[1]+"/roll", url.Values{"overlap": {"24"}}); p.status != 422 || strings.Contains(p.text, "fw_") && strings.Contains(p.text, `id="secret"`) {
		t.Errorf("a key for the server is rolled: %d", p.status)
	}
}
