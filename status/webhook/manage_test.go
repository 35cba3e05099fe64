package webhook_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/webhook"
)

func TestManage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, nil)
		ctx := t.Context()
		e, _, err := w.Create(ctx, "alice", webhook.NewEndpoint{URL: "http://127.0.0.1:9/a", Description: "shop", Events: []string{webhook.OperationFailed, webhook.OperationCompleted}})
		systest.NoError(t, err)
		if e.ID == "" || e.Account != "alice" || e.Description != "shop" || !slices.Equal(e.Events, []string{webhook.OperationCompleted, webhook.OperationFailed}) || !e.Disabled.IsZero() || time.Since(e.Created) > time.Hour {
			t.Errorf("endpoint is %+v", e)
		}
		second, _ := create(t, w, "alice", "http://127.0.0.1:9/b")
		create(t, w, "bob", "http://127.0.0.1:9/c")
		list, err := w.List(ctx, "alice")
		if err != nil || len(list) != 2 || !slices.ContainsFunc(list, func(x *webhook.Endpoint) bool { return x.ID == e.ID && x.URL == e.URL }) {
			t.Errorf("%d endpoints, error %v", len(list), err)
		}
		one(t, db, "alice", "op1")
		one(t, db, "alice", "op2")
		first, err := w.Deliveries(ctx, "alice", webhook.Query{Endpoint: e.ID})
		if err != nil || len(first) != 2 || first[0].Operation != "op2" || first[0].State != webhook.Pending || first[0].Next.IsZero() {
			t.Fatalf("deliveries %+v, error %v", first, err)
		}

		// Another account's endpoint is not found.
		url, enabled := "http://127.0.0.1:9/d", true
		for name, call := range map[string]func(account string) error{
			"Get":    func(a string) error { _, err := w.Get(ctx, a, e.ID); return err },
			"Update": func(a string) error { _, err := w.Update(ctx, a, e.ID, webhook.Change{Enabled: &enabled}); return err },
			"Rotate": func(a string) error { _, err := w.Rotate(ctx, a, e.ID); return err },
			"Test":   func(a string) error { _, err := w.Test(ctx, a, e.ID); return err },
			"Deliveries": func(a string) error {
				_, err := w.Deliveries(ctx, a, webhook.Query{Endpoint: e.ID})
				return err
			},
			"Before": func(a string) error {
				_, err := w.Deliveries(ctx, a, webhook.Query{Before: first[0].ID})
				return err
			},
			"Delivery": func(a string) error { _, _, err := w.Delivery(ctx, a, first[0].ID); return err },
			"Replay":   func(a string) error { _, err := w.Replay(ctx, a, first[0].ID); return err },
			"Delete":   func(a string) error { return w.Delete(ctx, a, e.ID) },
		} {
			if err := call("bob"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s by somebody else: error is %v, want one that matches fs.ErrNotExist", name, err)
			}
			if name == "Delete" {
				continue
			}
			if err := call("alice"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}

		// One page after another.
		var ids []string
		for before := ""; ; {
			page, err := w.Deliveries(ctx, "alice", webhook.Query{Before: before, Limit: 2})
			systest.NoError(t, err)
			for _, d := range page {
				ids = append(ids, d.ID)
			}
			if len(page) < 2 {
				break
			}
			before = page[1].ID
		}
		// Two operations: one endpoint gets one event of each, the other two; and a
		// test event.
		if n := len(ids); n != 7 || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != n {
			t.Errorf("deliveries %q", ids)
		}
		if all, err := w.Deliveries(ctx, "alice", webhook.Query{State: webhook.Delivered}); err != nil || len(all) != 0 {
			t.Errorf("%d were delivered, error %v", len(all), err)
		}

		events := []string{}
		changed, err := w.Update(ctx, "alice", e.ID, webhook.Change{URL: &url, Events: &events})
		if err != nil || changed.URL != url || len(changed.Events) != 0 || changed.Description != "shop" {
			t.Errorf("endpoint is %+v, error %v", changed, err)
		}
		systest.NoError(t, w.Delete(ctx, "alice", e.ID))
		if err := w.Delete(ctx, "alice", e.ID); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
		}
		if _, _, err := w.Delivery(ctx, "alice", first[0].ID); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
		}
		left, err := w.Deliveries(ctx, "alice", webhook.Query{})
		if err != nil || len(left) != 4 || left[0].Endpoint != second.ID {
			t.Errorf("deliveries %+v, error %v", left, err)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	good := webhook.Config{Store: db.Webhooks(), Secrets: secrets(), Payload: payloadOfNothing}
	for name, change := range map[string]func(*webhook.Config){
		"no store":       func(c *webhook.Config) { c.Store = nil },
		"no payload":     func(c *webhook.Config) { c.Payload = nil },
		"no secret":      func(c *webhook.Config) { c.Secrets = nil },
		"short secret":   func(c *webhook.Config) { c.Secrets = [][]byte{[]byte("short")} },
		"odd schedule":   func(c *webhook.Config) { c.Schedule = []time.Duration{0} },
		"too short time": func(c *webhook.Config) { c.Lease = time.Second },
	} {
		cfg := good
		change(&cfg)
		if _, err := webhook.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := webhook.New(good); err != nil {
		t.Error(err)
	}
}
