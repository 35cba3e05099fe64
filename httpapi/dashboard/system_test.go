package dashboard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/dashboard"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// Administrators see the state of the whole server, and nobody else does.
func TestSystem(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *dashboard.Config) {
		c.Nodes = func(context.Context) ([]dashboard.SystemNode, error) {
			return []dashboard.SystemNode{{Name: "worker-7/42", Role: "worker", Version: "v2", Seen: time.Now(), Engines: 5}}, nil
		}
		c.Failures = func(_ context.Context, since time.Time) ([]status.FailureCount, error) {
			if age := time.Since(since); age < 23*time.Hour || age > 25*time.Hour {
				t.Errorf("failures since %v", since)
			}
			return []status.FailureCount{{Action: "convert", Code: "corrupt_input", Items: 1234}}, nil
		}
	})
	member, acct := s.member("ada")
	s.submit(acct.ID, "a", "open.txt")
	if p := member.get("/dashboard/system"); p.status != 404 {
		t.Errorf("a member sees the system: %d", p.status)
	}
	if p := member.get("/dashboard/"); strings.Contains(p.text, "/dashboard/system") {
		t.Error("members have a link to the system")
	}
	admin := s.visitor()
	admin.login("admin", s.admin)
	if p := admin.get("/dashboard/system"); strings.Count(p.text, ">Not yet<") != 4 {
		t.Error("sweeps before the first run")
	}
	_, err := s.service.Uploads().Sweep(t.Context())
	systest.NoError(t, err)
	_, _, err = s.service.Operations().Sweep(t.Context())
	systest.NoError(t, err)
	systest.Start(t, s.hooks.Run)
	systest.Start(t, func(ctx context.Context) error { s.accounts.SweepAudit(ctx, time.Hour); return nil })
	p := admin.get("/dashboard/system")
	for ; strings.Contains(p.text, ">Not yet<") && t.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
		p = admin.get("/dashboard/system")
	}
	for _, want := range []string{"worker-7/42", "corrupt_input", "1\u202f234", "go1.", ">v1<", "Queues", "Engines", "Stored files", "Free space", "Sweeps", "Expired files and uploads", "Webhook deliveries"} {
		if p.status != 200 || !strings.Contains(p.text, want) {
			t.Errorf("the page has no %q (%d)", want, p.status)
		}
	}
}

// The overview shows how much failed lately, and why.
func TestTroubles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	if p := v.get("/dashboard/"); strings.Contains(p.text, "Last 7 days") || !strings.Contains(p.text, "Get started") {
		t.Error("a new account has no first steps, or a failure rate")
	}
	for i, code := range []string{"wrong_password", "corrupt_input", "corrupt_input", ""} {
		o := status.Outcome{}
		if code != "" {
			o.Error = &status.Error{Code: code, Message: "no"}
		}
		s.finish(s.submit(acct.ID, string(rune('a'+i)), "x.pdf"), o)
	}
	p := v.get("/dashboard/")
	_, week, ok := strings.Cut(p.text, "Last 7 days")
	week, _, _ = strings.Cut(week, "</section>")
	if first := strings.Index(week, "corrupt_input"); !ok || !strings.Contains(week, "75 %") || first < 0 || first > strings.Index(week, "wrong_password") || !strings.Contains(week, "2 files") {
		t.Errorf("the week: %s", week)
	}
}
