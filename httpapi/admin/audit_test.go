package admin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/admin"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/webhook"
)

// Every route that changes something writes an entry in the audit log, with the key of the caller. A
// new route must be added to this test.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	s := serveWebhooks(t)
	bossID, boss := s.account(t, "Boss", true)
	entries := func() []account.AuditEntry {
		t.Helper()
		page, err := s.accounts.AuditEntries(t.Context(), account.AuditQuery{Limit: 1000})
		systest.NoError(t, err)
		return page.Entries
	}
	const prefix = "/api/v1/admin"
	seen := make(map[string]bool)
	change := func(route, action, path, body string) map[string]any {
		t.Helper()
		seen[route] = true
		before := len(entries())
		method, _, _ := strings.Cut(route, " ")
		got := s.call(t, 200, boss, method, prefix+path, body)
		list := entries()
		if len(list) != before+1 {
			t.Fatalf("%s writes %d entries", route, len(list)-before)
		}
		e := list[0]
		if e.Action != action || e.Object == "" || e.Actor.Key == "" || e.Actor.Name != "all" || e.Actor.Login != "" || e.Actor.Address == "" || e.Refused {
			t.Errorf("%s writes %+v", route, e)
		}
		return got
	}
	id := change("POST /accounts", account.AuditAccountCreate, "/accounts", `{"name":"Ada"}`)["id"].(string)
	one := "/accounts/" + id
	change("PATCH /accounts/{account}", account.AuditAccountUpdate, one, `{"name":"Eve"}`)
	change("PATCH /accounts/{account}", account.AuditAccountDisable, one, `{"disabled":true}`)
	change("PATCH /accounts/{account}", account.AuditAccountEnable, one, `{"disabled":false}`)
	change("POST /accounts/{account}/password", account.AuditPasswordReset, one+"/password", "")
	key := one + "/keys/" + change("POST /accounts/{account}/keys", account.AuditKeyCreate, one+"/keys", `{"name":"k"}`)["id"].(string)
	change("PATCH /accounts/{account}/keys/{key}", account.AuditKeyUpdate, key, `{"name":"other"}`)
	change("DELETE /accounts/{account}/keys/{key}", account.AuditKeyRevoke, key, "")
	const hooks = "/accounts/{account}/webhooks"
	hook := one + "/webhooks/" + change("POST "+hooks, account.AuditWebhookCreate, one+"/webhooks", `{"url":"http://127.0.0.1:1/secret"}`)["id"].(string)
	change("PATCH "+hooks+"/{webhook}", account.AuditWebhookUpdate, hook, `{"description":"x"}`)
	change("PATCH "+hooks+"/{webhook}", account.AuditWebhookDisable, hook, `{"enabled":false}`)
	change("PATCH "+hooks+"/{webhook}", account.AuditWebhookEnable, hook, `{"enabled":true}`)
	change("POST "+hooks+"/{webhook}/secret", account.AuditWebhookRotate, hook+"/secret", "")
	delivery := change("POST "+hooks+"/{webhook}/test", account.AuditWebhookTest, hook+"/test", "")["id"].(string)
	change("POST "+hooks+"/{webhook}/deliveries/{delivery}/replay", account.AuditWebhookReplay, hook+"/deliveries/"+delivery+"/replay", "")
	change("DELETE "+hooks+"/{webhook}", account.AuditWebhookDelete, hook, "")
	change("DELETE /accounts/{account}", account.AuditAccountDelete, one, "")

	sends, err := webhook.New(webhook.Config{Store: s.db.Webhooks(), Secrets: [][]byte{[]byte("0123456789abcdef")},
		Payload: func(context.Context, webhook.Event) ([]byte, error) { return nil, nil }})
	systest.NoError(t, err)
	for _, extension := range admin.New(admin.Config{Accounts: s.accounts, Operations: s.db, Webhooks: sends}) {
		for _, r := range extension(s.svc).Routes {
			if route := r.Method + " " + strings.TrimPrefix(r.Path, prefix); r.Method != "GET" && !seen[route] {
				t.Errorf("%s is not in this test: it must write an audit entry", route)
			}
		}
	}
	for _, e := range entries() {
		if e.Account != id && e.Account != bossID {
			t.Errorf("the entry %+v is of another account", e)
		}
	}
}
