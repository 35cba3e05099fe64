package dashboard_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/internal/passkeytest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

// notAudited are the forms that write no entry, because they change nothing that is kept.
var notAudited = map[string]string{
	"POST theme":                   "sets a cookie of the browser",
	"POST login/passkey/start":     "asks the browser for a passkey",
	"POST settings/passkeys/start": "asks the browser for a passkey",
}

// entries returns the audit log of the server, newest first.
func (s *site) entries() []account.AuditEntry {
	s.t.Helper()
	page, err := s.accounts.AuditEntries(s.t.Context(), account.AuditQuery{Limit: 1000})
	systest.NoError(s.t, err)
	if page.Next != "" {
		s.t.Fatal("the log has more entries than the test reads")
	}
	return page.Entries
}

// An auditCheck runs the forms of all routes, and checks the entries that they write.
type auditCheck struct {
	*site
	routes map[string]bool
}

// form calls do, which submits the form of a route, and returns the entry that it wrote.
func (c *auditCheck) form(route, action string, do func() shown) (e account.AuditEntry, p shown) {
	c.t.Helper()
	before := len(c.entries())
	p = do()
	c.routes[route] = true
	list := c.entries()
	for _, e = range list[:max(0, len(list)-before)] {
		if e.Action == action {
			if e.Time.IsZero() || e.Object == "" && !e.Refused {
				c.t.Errorf("%s: the entry %+v is incomplete", route, e)
			}
			return e, p
		}
	}
	c.t.Errorf("%s writes no entry %s (status %d at %s)", route, action, p.status, p.path)
	return account.AuditEntry{}, p
}

func totp(t *testing.T, secret string) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	systest.NoError(t, err)
	h := hmac.New(sha1.New, key)
	systest.NoError(t, binary.Write(h, binary.BigEndian, time.Now().Unix()/30))
	sum := h.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1_000_000)
}

func found(t *testing.T, p shown, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(p.text)
	if m == nil {
		t.Fatalf("%s is not in the page (status %d):\n%s", pattern, p.status, p.text)
	}
	return m[1]
}

// Every form writes an entry in the audit log, unless it is in notAudited. A new route must be added to
// this test.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1) // passkeys have no domain at an address
	c := &auditCheck{site: s, routes: make(map[string]bool)}
	ctx := t.Context()

	// Sessions and passwords.
	boss := s.visitor()
	refused, _ := c.form("POST login", account.AuditLogin, func() shown {
		return boss.post("/dashboard/login", url.Values{"name": {"admin"}, "password": {"wrong"}})
	})
	if !refused.Refused || refused.Name != "admin" || refused.Actor.Address == "" || refused.Detail != "password" {
		t.Errorf("a wrong password is recorded as %+v", refused)
	}
	unknown, _ := c.form("POST login", account.AuditLogin, func() shown {
		return boss.post("/dashboard/login", url.Values{"name": {"my secret password"}, "password": {"wrong"}})
	})
	if !unknown.Refused || unknown.Name+unknown.Actor.Name+unknown.Account != "" {
		t.Errorf("an unknown name is recorded as %+v", unknown)
	}
	in, _ := c.form("POST login", account.AuditLogin, func() shown {
		return boss.post("/dashboard/login", url.Values{"name": {"admin"}, "password": {s.admin}})
	})
	if in.Refused || in.Actor.Name != "admin" || in.Actor.Login != in.Object || in.Actor.Address == "" {
		t.Errorf("a login is recorded as %+v", in)
	}
	c.form("POST password", account.AuditPasswordChange, func() shown {
		return boss.post("/dashboard/password", url.Values{"old": {s.admin}, "new": {good}, "again": {good}})
	})
	_, p := c.form("POST accounts", account.AuditAccountCreate, func() shown { return boss.post("/dashboard/accounts", url.Values{"name": {"Ada"}}) })
	first := found(t, p, `id="secret">([^<]+)<`)
	acct, err := s.accounts.ByName(ctx, "Ada")
	systest.NoError(t, err)
	ada := s.visitor()
	ada.login("Ada", first)
	const fresh = "another long sentence"
	wrong, _ := c.form("POST settings/password", account.AuditPasswordChange, func() shown {
		return ada.post("/dashboard/settings/password", url.Values{"old": {"wrong"}, "new": {fresh}, "again": {fresh}})
	})
	if !wrong.Refused {
		t.Errorf("a wrong current password is recorded as %+v", wrong)
	}
	c.form("POST settings/password", account.AuditPasswordChange, func() shown {
		return ada.post("/dashboard/settings/password", url.Values{"old": {good}, "new": {fresh}, "again": {fresh}})
	})
	c.form("POST settings/sessions", account.AuditSessionEnd, func() shown { return ada.post("/dashboard/settings/sessions", nil) })

	// Members.
	var link string
	for range 2 {
		_, p = c.form("POST members/invitations", account.AuditInvitationCreate, func() shown {
			return ada.post("/dashboard/members/invitations", url.Values{"role": {"member"}, "note": {"Bob"}, "expires": {"7"}})
		})
		link = found(t, p, `id="secret">[^<]*invitation=([A-Z2-7]+)<`)
	}
	list, err := s.accounts.Invitations(ctx, acct.ID)
	systest.NoError(t, err)
	bob := s.visitor()
	joined, _ := c.form("POST join", account.AuditMemberJoin, func() shown {
		return bob.post("/dashboard/join", url.Values{"invitation": {link}, "name": {"Bob"}, "new": {good}, "again": {good}})
	})
	if joined.Account != acct.ID || joined.Actor.Name != "Bob" || joined.Detail != "member, invited by Ada" {
		t.Errorf("joining is recorded as %+v", joined)
	}
	for _, i := range list {
		if s.accounts.RevokeInvitation(ctx, acct, i.ID()) == nil && len(list) > 1 {
			break
		}
	}
	ada.post("/dashboard/members/invitations", url.Values{"role": {"viewer"}, "note": {"Eve"}, "expires": {"7"}})
	list, err = s.accounts.Invitations(ctx, acct.ID)
	systest.NoError(t, err)
	c.form("POST members/invitations/{id}/revoke", account.AuditInvitationRevoke, func() shown {
		return ada.post("/dashboard/members/invitations/"+list[len(list)-1].ID()+"/revoke", nil)
	})
	c.form("POST members/{id}/role", account.AuditMemberRole, func() shown {
		return ada.post("/dashboard/members/"+joined.Object+"/role", url.Values{"role": {"administrator"}})
	})
	c.form("POST logout", account.AuditLogout, func() shown { return bob.post("/dashboard/logout", nil) })
	removed, _ := c.form("POST members/{id}/remove", account.AuditMemberRemove, func() shown { return ada.post("/dashboard/members/"+joined.Object+"/remove", nil) })
	if removed.Name != "Bob" || removed.Actor.Name != "Ada" || removed.Actor.Login != acct.ID || removed.Account != acct.ID {
		t.Errorf("a removed member is recorded as %+v", removed)
	}

	// Keys.
	made, p := c.form("POST keys", account.AuditKeyCreate, func() shown {
		return ada.post("/dashboard/keys", url.Values{"name": {"=laptop"}, "scope": {"read"}})
	})
	secrets := []string{found(t, p, `id="secret">(fw_[a-z2-7]+)<`), first, fresh, good, link}
	key := "/dashboard/keys/" + made.Object
	changed, _ := c.form("POST keys/{id}", account.AuditKeyUpdate, func() shown {
		return ada.post(key, url.Values{"name": {"=laptop 2"}, "scope": {"read", "upload"}, "expires": {"keep"}})
	})
	if changed.Detail != "name, permissions: upload read" {
		t.Errorf("a changed key is recorded as %+v", changed)
	}
	rolled, _ := c.form("POST keys/{id}/roll", account.AuditKeyRoll, func() shown { return ada.post(key+"/roll", url.Values{"overlap": {"24"}}) })
	if rolled.Detail != "replaces "+made.Object {
		t.Errorf("a rolled key is recorded as %+v", rolled)
	}
	c.form("POST keys/{id}/revoke", account.AuditKeyRevoke, func() shown { return ada.post(key+"/revoke", nil) })
	byBoss, _ := c.form("POST accounts/{id}/keys/{key}/revoke", account.AuditKeyRevoke, func() shown {
		return boss.post("/dashboard/accounts/"+acct.ID+"/keys/"+rolled.Object+"/revoke", nil)
	})
	if byBoss.Account != acct.ID || byBoss.Actor.Name != "admin" {
		t.Errorf("a key that an administrator revoked is recorded as %+v", byBoss)
	}

	// Webhooks.
	hook, _ := c.form("POST webhooks", account.AuditWebhookCreate, func() shown {
		return ada.post("/dashboard/webhooks", url.Values{"url": {"https://hooks.example.com/a/secret-path?token=x"}, "event": {webhook.OperationCompleted}})
	})
	if hook.Name != "hooks.example.com" {
		t.Errorf("a webhook is recorded as %+v", hook)
	}
	secrets = append(secrets, "secret-path", "token=x")
	at := "/dashboard/webhooks/" + hook.Object
	c.form("POST webhooks/{id}", account.AuditWebhookUpdate, func() shown {
		return ada.post(at, url.Values{"url": {"https://hooks.example.com/b"}, "event": {webhook.OperationCompleted}})
	})
	const actions = "POST webhooks/{id}/{what}"
	c.form(actions, account.AuditWebhookTest, func() shown { return ada.post(at+"/test", nil) })
	deliveries, err := s.hooks.Deliveries(ctx, acct.ID, webhook.Query{Endpoint: hook.Object, Limit: 1})
	systest.NoError(t, err)
	c.form("POST webhooks/{id}/deliveries/{delivery}/replay", account.AuditWebhookReplay, func() shown {
		return ada.post(at+"/deliveries/"+deliveries[0].ID+"/replay", nil)
	})
	c.form(actions, account.AuditWebhookRotate, func() shown { return ada.post(at+"/rotate", nil) })
	c.form(actions, account.AuditWebhookDisable, func() shown { return ada.post(at+"/disable", nil) })
	c.form(actions, account.AuditWebhookEnable, func() shown { return ada.post(at+"/enable", nil) })
	c.form(actions, account.AuditWebhookReplay, func() shown { return ada.post(at+"/replay-failed", url.Values{"period": {"all"}}) })
	c.form(actions, account.AuditWebhookDelete, func() shown { return ada.post(at+"/delete", nil) })

	// Operations.
	file := ada.send("a.txt", "content")
	submit := func() string {
		t.Helper()
		op, err := s.service.Operations().Submit(ctx, status.Operation{
			Owner: acct.ID, Action: "zip", Asked: []status.Asked{{}}, Items: []status.Item{{Queue: "archive", Inputs: []status.File{{Key: file, Name: "a.txt", Size: 7}}}},
		})
		systest.NoError(t, err)
		return op.ID
	}
	one, two := submit(), submit()
	cancelled, _ := c.form("POST operations/{id}/cancel", account.AuditOperationCancel, func() shown { return ada.post("/dashboard/operations/"+one+"/cancel", nil) })
	if cancelled.Object != one || cancelled.Actor.Name != "Ada" {
		t.Errorf("a cancelled operation is recorded as %+v", cancelled)
	}
	c.form("POST operations/{id}/again", account.AuditOperationRunAgain, func() shown { return ada.post("/dashboard/operations/"+one+"/again", nil) })
	c.form("POST operations/{id}/delete", account.AuditOperationDelete, func() shown { return ada.post("/dashboard/operations/"+one+"/delete", nil) })
	for what, action := range map[string]string{"cancel": account.AuditOperationCancel, "again": account.AuditOperationRunAgain} {
		c.form("POST operations/selected", action, func() shown {
			return ada.post("/dashboard/operations/selected", url.Values{"id": {two}, "what": {what}})
		})
	}
	three := submit()
	byAPI := func(method, path string) shown {
		r, err := http.NewRequestWithContext(ctx, method, s.URL+path, nil)
		systest.NoError(t, err)
		return ada.do(r)
	}
	c.form("POST operations/selected", account.AuditOperationCancel, func() shown { return byAPI("DELETE", "/api/v1/status/"+three) })
	c.form("POST operations/selected", account.AuditOperationDelete, func() shown {
		return ada.post("/dashboard/operations/selected", url.Values{"id": {three}, "what": {"delete"}})
	})
	c.form("POST operations/selected", account.AuditFileDelete, func() shown { return byAPI("DELETE", "/api/v1/files/"+ada.send("b.txt", "x")) })

	// Second factors and passkeys.
	p = ada.get("/dashboard/settings/second-factor")
	secret, ticket := found(t, p, `id="secret">([A-Z2-7]+)<`), found(t, p, `name="ticket" value="([^"]+)"`)
	_, p = c.form("POST settings/second-factor", account.AuditFactorEnable, func() shown {
		return ada.post("/dashboard/settings/second-factor", url.Values{"ticket": {ticket}, "code": {totp(t, secret)}, "password": {fresh}})
	})
	recovery := found(t, p, `<li><code>([a-z2-7-]+)</code>`)
	secrets = append(secrets, secret, recovery)
	second := s.visitor()
	p = second.post("/dashboard/login", url.Values{"name": {"Ada"}, "password": {fresh}})
	ticket = found(t, p, `name="ticket" value="([^"]+)"`)
	bad, _ := c.form("POST login/code", account.AuditLogin, func() shown {
		return second.post("/dashboard/login/code", url.Values{"ticket": {ticket}, "code": {"000000"}})
	})
	if !bad.Refused || bad.Detail != "second factor" {
		t.Errorf("a wrong code is recorded as %+v", bad)
	}
	c.form("POST login/code", account.AuditLogin, func() shown {
		return second.post("/dashboard/login/code", url.Values{"ticket": {ticket}, "code": {recovery}})
	})
	c.form("POST settings/second-factor/off", account.AuditFactorDisable, func() shown {
		return ada.post("/dashboard/settings/second-factor/off", url.Values{"password": {fresh}})
	})
	device := passkeytest.New(t, s.URL, "localhost")
	ask := func(v *visitor, path string, form url.Values) (options []byte, ticket string) {
		t.Helper()
		var q struct {
			Options json.RawMessage
			Ticket  string
		}
		if p := v.post(path, form); json.Unmarshal([]byte(p.text), &q) != nil || q.Ticket == "" {
			t.Fatalf("%s: %d %s", path, p.status, p.text)
		}
		return q.Options, q.Ticket
	}
	options, ticket := ask(ada, "/dashboard/settings/passkeys/start", url.Values{"password": {fresh}})
	c.form("POST settings/passkeys", account.AuditPasskeyAdd, func() shown {
		return ada.post("/dashboard/settings/passkeys", url.Values{"name": {"Phone"}, "ticket": {ticket}, "credential": {string(device.Create(options))}})
	})
	guest := s.visitor()
	options, ticket = ask(guest, "/dashboard/login/passkey/start", nil)
	byKey, _ := c.form("POST login/passkey", account.AuditLogin, func() shown {
		return guest.post("/dashboard/login/passkey", url.Values{"ticket": {ticket}, "credential": {string(device.Get(options))}})
	})
	if byKey.Detail != account.MethodPasskey || byKey.Refused {
		t.Errorf("a login with a passkey is recorded as %+v", byKey)
	}
	passkey := found(t, ada.get("/dashboard/settings"), `name="passkey" value="([^"]+)"`)
	c.form("POST settings/passkeys/remove", account.AuditPasskeyRemove, func() shown {
		return ada.post("/dashboard/settings/passkeys/remove", url.Values{"passkey": {passkey}, "password": {fresh}})
	})

	// Accounts.
	at = "/dashboard/accounts/" + acct.ID
	updated, _ := c.form("POST accounts/{id}", account.AuditAccountUpdate, func() shown {
		return boss.post(at, url.Values{"name": {"Ada"}, "parallel": {"3"}})
	})
	if updated.Account != acct.ID || updated.Actor.Name != "admin" || !strings.Contains(updated.Detail, "limits") {
		t.Errorf("a changed account is recorded as %+v", updated)
	}
	const accounts = "POST accounts/{id}/{what}"
	c.form(accounts, account.AuditAccountDisable, func() shown { return boss.post(at+"/disable", nil) })
	c.form(accounts, account.AuditAccountEnable, func() shown { return boss.post(at+"/enable", nil) })
	c.form(accounts, account.AuditFactorDisable, func() shown { return boss.post(at+"/second-factor", nil) })
	_, p = c.form(accounts, account.AuditPasswordReset, func() shown { return boss.post(at+"/password", nil) })
	first = found(t, p, `id="secret">([^<]+)<`)
	secrets = append(secrets, first)
	ada = s.visitor()
	ada.login("Ada", first)
	c.form("GET account/export", account.AuditAccountExport, func() shown { return ada.get("/dashboard/account/export") })
	c.form("POST account/delete", account.AuditAccountDelete, func() shown { return ada.post("/dashboard/account/delete", url.Values{"confirm": {"Ada"}}) })
	_, acct = s.member("Eve")
	gone, _ := c.form(accounts, account.AuditAccountDelete, func() shown {
		return boss.post("/dashboard/accounts/"+acct.ID+"/delete", url.Values{"confirm": {"Eve"}})
	})
	if gone.Account != acct.ID || gone.Name != "Eve" || gone.Actor.Name != "admin" {
		t.Errorf("a deleted account is recorded as %+v", gone)
	}

	for route := range s.dashboard.Needs() {
		if strings.HasPrefix(route, "POST ") && !c.routes[route] && notAudited[route] == "" {
			t.Errorf("the form %s is not in this test: it must write an audit entry", route)
		}
	}
	for _, e := range s.entries() {
		for _, secret := range secrets {
			if text := fmt.Sprintf("%+v", e); strings.Contains(text, secret) {
				t.Errorf("the entry %s contains a secret", text)
			}
		}
	}

	// The page of the server, its filters and its export.
	p = boss.get("/dashboard/audit?account=all&action=key.revoke")
	if n := strings.Count(p.text, "API key revoked"); p.status != 200 || n != 3 { // two entries and the filter
		t.Errorf("the filter shows %d times: %d", n, p.status)
	}
	p = boss.get("/dashboard/audit.csv?account=all")
	rows, err := csv.NewReader(strings.NewReader(p.text)).ReadAll()
	systest.NoError(t, err)
	if n := len(s.entries()); len(rows) != n+1 || !slices.ContainsFunc(rows, func(r []string) bool { return r[8] == "'=laptop" }) {
		t.Errorf("the export has %d rows for %d entries", len(rows), n)
	}
	if p = boss.get("/dashboard/audit?account=all&who=system"); !strings.Contains(p.text, "No entry matches") && !strings.Contains(p.text, ">System<") {
		t.Errorf("entries of the system: %d", p.status)
	}
}

// The log of an account shows its own entries only, page by page.
func TestAuditPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada, _ := s.member("Ada")
	bob, acct := s.member("Bob")
	for i := range 60 {
		systest.NoError(t, s.accounts.Audit(t.Context(), account.AuditEntry{Account: acct.ID, Action: account.AuditKeyUpdate, Object: "k", Name: fmt.Sprintf("<i>key %d.", i)}, nil))
	}
	p := bob.get("/dashboard/audit?action=key.update&account=all")
	if n := strings.Count(p.text, "&lt;i&gt;key "); n != 50 || !strings.Contains(p.text, "key 59.") || strings.Contains(p.text, "<i>") || strings.Contains(p.text, "All accounts") {
		t.Errorf("the first page has %d entries", n)
	}
	if n := len(p.text); n > 120_000 {
		t.Errorf("a page has %d bytes", n)
	}
	p = bob.get(strings.ReplaceAll(found(t, p, `href="([^"]+)" rel="next"`), "&amp;", "&"))
	if n := strings.Count(p.text, "&lt;i&gt;key "); n != 10 || !strings.Contains(p.text, "key 0.") {
		t.Errorf("the second page has %d entries", n)
	}
	today := time.Now().UTC()
	if p = bob.get("/dashboard/audit?from=" + today.AddDate(0, 0, 1).Format(time.DateOnly)); !strings.Contains(p.text, "No entry matches") {
		t.Error("entries of tomorrow")
	}
	if p = bob.get("/dashboard/audit?who=bob&to=" + today.AddDate(0, 0, 1).Format(time.DateOnly)); !strings.Contains(p.text, "Logged in") || strings.Contains(p.text, "key 0.") {
		t.Error("entries of Bob")
	}
	if p = ada.get("/dashboard/audit?account=" + acct.ID); p.status != 200 || strings.Contains(p.text, "key 5") {
		t.Errorf("the log of another account: %d", p.status)
	}
	if p = bob.get("/dashboard/audit?after=x"); p.status != 404 {
		t.Errorf("an invalid cursor: %d", p.status)
	}
	for _, action := range account.AuditActions() {
		if strings.Contains(ada.get("/dashboard/audit?action="+action).text, ">"+action+"<") {
			t.Errorf("the action %s has no text", action)
		}
	}
}
