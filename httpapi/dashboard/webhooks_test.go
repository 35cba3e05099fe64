package dashboard_test

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

// Failed deliveries of a period are sent again together. The pages show samples, the headers of a
// request and the health of a webhook.
func TestWebhookReplay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	eve, _ := s.member("eve")
	hook, _, err := s.hooks.Create(t.Context(), acct.ID, webhook.NewEndpoint{URL: "https://example.com/hook", Description: "mine"})
	systest.NoError(t, err)
	path := "/dashboard/webhooks/" + hook.ID
	p := v.get(path)
	for _, want := range []string{"operation.completed", "fileTask.failed", "&#34;order&#34;: &#34;4711&#34;", "corrupt_input", "Replay all"} {
		if !strings.Contains(p.text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	one, err := s.hooks.Test(t.Context(), acct.ID, hook.ID)
	systest.NoError(t, err)
	if p := v.get(path + "/deliveries/" + one.ID); !strings.Contains(p.text, "webhook-id: "+one.ID) {
		t.Error("the delivery has no headers")
	}
	if p := v.get("/dashboard/webhooks"); !strings.Contains(p.text, "0 of 1 delivered, 1 pending") {
		t.Errorf("health: %s", p.text)
	}
	if p := v.post(path+"/replay-failed", url.Values{"period": {"24"}}); p.path != path || !strings.Contains(p.text, "0 failed deliveries queued again.") {
		t.Errorf("without failures: %s", p.path)
	}
	// Deliveries of a disabled webhook fail.
	off, on := false, true
	_, err = s.hooks.Update(t.Context(), acct.ID, hook.ID, webhook.Change{Enabled: &off})
	systest.NoError(t, err)
	stop := systest.Start(t, s.hooks.Run)
	systest.Until(t, "the delivery fails", func() bool {
		list, err := s.hooks.Deliveries(t.Context(), acct.ID, webhook.Query{Endpoint: hook.ID, State: webhook.Failed})
		systest.NoError(t, err)
		return len(list) == 1
	})
	stop()
	_, err = s.hooks.Update(t.Context(), acct.ID, hook.ID, webhook.Change{Enabled: &on})
	systest.NoError(t, err)
	if p := eve.post(path+"/replay-failed", url.Values{"period": {"all"}}); p.status != 404 {
		t.Errorf("eve replays: %d", p.status)
	}
	if p := v.post(path+"/replay-failed", url.Values{"period": {"never"}}); p.status != 404 {
		t.Errorf("an unknown period: %d", p.status)
	}
	if p := v.post(path+"/replay-failed", url.Values{"period": {"all"}}); !strings.Contains(p.text, "1 failed delivery queued again.") {
		t.Errorf("replaying: %s", p.path)
	}
	pending, err := s.hooks.Deliveries(t.Context(), acct.ID, webhook.Query{Endpoint: hook.ID, State: webhook.Pending})
	if err != nil || len(pending) != 1 {
		t.Errorf("%d deliveries are pending, %v", len(pending), err)
	}
}

// The usage can be exported.
func TestUsageExport(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	s.finish(s.submit(acct.ID, "a", "x.txt"), status.Outcome{Results: []status.File{{Key: "r", Size: 7}}})
	s.finish(s.submit(acct.ID, "b", "y.txt"), status.Outcome{Error: &status.Error{Code: "corrupt_input"}})
	p := v.get("/dashboard/usage.csv?days=7")
	rows, err := csv.NewReader(strings.NewReader(p.text)).ReadAll()
	if err != nil || len(rows) != 2 || strings.Join(rows[1][:6], " ") != time.Now().UTC().Format(time.DateOnly)+" zip 2 1 10 7" {
		t.Errorf("%v: %q", err, rows)
	}
	admin := s.visitor()
	admin.login("admin", s.admin)
	if of := admin.get("/dashboard/usage.csv?days=7&account=" + acct.ID); of.text != p.text {
		t.Errorf("usage for administrators: %s", of.text)
	}
	eve, _ := s.member("eve")
	if of := eve.get("/dashboard/usage.csv?days=7&account=" + acct.ID); strings.Contains(of.text, "zip") {
		t.Error("eve sees the usage of ada")
	}
	if p := v.get("/dashboard/usage"); !strings.Contains(p.text, "50 %") {
		t.Error("the page has no failure rate")
	}
}

// Usage is shown and exported by key, format and error, and on the page of the key.
func TestUsageGroups(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	_, key, err := s.accounts.Keys().Create(t.Context(), auth.NewKey{Name: "<b>build", Account: acct.ID})
	systest.NoError(t, err)
	run := func(from, name string, o status.Outcome) {
		t.Helper()
		op, err := s.service.Operations().Submit(t.Context(), status.Operation{
			Owner: acct.ID, Action: "zip", Origin: status.Origin{Key: from}, Items: []status.Item{{Queue: "archive", Inputs: []status.File{{Key: "f", Name: name, Size: 5}}}},
		})
		systest.NoError(t, err)
		s.finish(op.ID, o)
	}
	run(key.ID, "a.docx", status.Outcome{Results: []status.File{{Key: "r", Size: 7}}})
	run(key.ID, "=b.=x", status.Outcome{Error: &status.Error{Code: "corrupt_input"}})
	run("", "c.pdf", status.Outcome{Results: []status.File{{Key: "r", Size: 7}}})
	p := v.get("/dashboard/usage")
	for _, want := range []string{">&lt;b&gt;build</a>", ">Dashboard<", ">docx<", ">pdf<", ">Other<", "<code>corrupt_input</code>", "usage.csv?by=key&amp;days=30"} {
		if !strings.Contains(p.text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for i := range 100 { // a page has a bounded number of rows
		run("", fmt.Sprintf("x.f%d", i), status.Outcome{Error: &status.Error{Code: fmt.Sprintf("error_%d", i)}})
	}
	if p := v.get("/dashboard/usage?days=90"); len(p.text) > 120_000 || !strings.Contains(p.text, "more rows in the export") {
		t.Errorf("the page of many groups has %d bytes", len(p.text))
	}
	today := time.Now().UTC().Format(time.DateOnly)
	for by, want := range map[string]string{
		"key":    today + "," + key.ID + ",2,1,10,7,",
		"format": today + ",docx,1,0,5,7,",
		"error":  today + ",corrupt_input,1,1,5,0,",
	} {
		if p := v.get("/dashboard/usage.csv?days=7&by=" + by); !strings.Contains(p.text, "day,"+by+",files") || !strings.Contains(p.text, want) {
			t.Errorf("by %s: %s", by, p.text)
		}
	}
	if p := v.get("/dashboard/keys/" + key.ID); !strings.Contains(p.text, `<dd class="value">2</dd><dd class="sub">processed in 30 days`) || !strings.Contains(p.text, "50 % of the files") {
		t.Error("the page of the key has no usage")
	}
	eve, _ := s.member("eve")
	if p := eve.get("/dashboard/usage"); strings.Contains(p.text, "docx") {
		t.Error("eve sees the usage of ada")
	}
}
