package webhook_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/webhook"
)

// disable disables an account, or enables it again.
func disable(t testing.TB, db *sqlstore.DB, owner string, disabled bool) {
	t.Helper()
	if _, err := db.Accounts().Update(t.Context(), owner, func(a *account.Account) error {
		a.Disabled = time.Time{}
		if disabled {
			a.Disabled = time.Now()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestRest disables an account: nothing is sent for it until it is enabled again, and
// then everything. Deliveries that are due later keep their time.
func TestRest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		for _, id := range []string{"alice", "bob"} {
			systest.NoError(t, db.Accounts().Create(t.Context(), &account.Account{ID: id, Created: time.Now()}))
		}
		w := newHooks(t, db, func(c *webhook.Config) {
			c.Schedule = []time.Duration{time.Hour, time.Hour}
			c.Timeout = 2 * patience
		})
		var code atomic.Int64
		code.Store(500)
		failing := receive(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(int(code.Load())) })
		answer := make(chan struct{})
		give := sync.OnceFunc(func() { close(answer) })
		slow := receive(t, func(http.ResponseWriter, *http.Request) { <-answer })
		t.Cleanup(give) // or the receiver would wait for it
		bobs := receive(t, nil)
		e, _ := create(t, w, "alice", failing.URL, webhook.OperationCompleted)
		late, _ := create(t, w, "alice", slow.URL, webhook.FileTaskCompleted)
		create(t, w, "bob", bobs.URL, webhook.OperationCompleted)
		stop := run(t, w)

		one(t, db, "alice", "op1")
		first := func(endpoint string) string {
			t.Helper()
			list, err := w.Deliveries(t.Context(), "alice", webhook.Query{Endpoint: endpoint})
			if err != nil || len(list) == 0 {
				t.Fatalf("%d deliveries, error %v", len(list), err)
			}
			return list[0].ID
		}
		retried, underway := first(e.ID), first(late.ID)
		slow.wait(t, 1)
		wait(t, "an attempt", func() bool { d, _ := delivery(t, w, "alice", retried); return d.Attempts == 1 })
		before, _ := delivery(t, w, "alice", retried)
		if e, err := w.Get(t.Context(), "alice", e.ID); err != nil || e.Failing.IsZero() {
			t.Fatalf("endpoint %+v, error %v, want one that is failing", e, err)
		}

		// A running attempt may finish.
		disable(t, db, "alice", true)
		give()
		settled(t, w, "alice", underway, webhook.Delivered)

		// Events are recorded, but neither they nor manual requests are sent.
		one(t, db, "alice", "op2")
		fresh, next := first(e.ID), first(late.ID)
		if fresh == retried || next == underway {
			t.Error("what has ended while the account is disabled was not recorded")
		}
		byHand, err := w.Test(t.Context(), "alice", late.ID)
		systest.NoError(t, err)
		if _, err := w.Replay(t.Context(), "alice", retried); err != nil {
			t.Fatal(err)
		}
		one(t, db, "bob", "op3")
		bobs.wait(t, 1)
		one(t, db, "bob", "op4") // after a round that could have sent all of these
		bobs.wait(t, 2)
		if due, err := db.Webhooks().Due(t.Context()); err != nil || len(due) > 1 || len(due) == 1 && due[0].Account != "bob" {
			t.Errorf("due is %+v, error %v, want nothing of alice", due, err)
		}
		if out, err := db.Webhooks().Claim(t.Context(), e.ID, 5, time.Minute); err != nil || len(out) != 0 {
			t.Errorf("%d deliveries claimed, error %v, want none", len(out), err)
		}
		wait(t, "what is bob's alone", func() bool {
			s, err := w.Stats(t.Context())
			return err == nil && s.Pending == 0 && s.Overdue == 0
		})
		stop()
		if a, b := len(failing.messages()), len(slow.messages()); a != 1 || b != 1 {
			t.Errorf("%d and %d messages, want one each from before", a, b)
		}

		disable(t, db, "alice", false)
		if e, err := w.Get(t.Context(), "alice", e.ID); err != nil || !e.Failing.IsZero() {
			t.Errorf("endpoint %+v, error %v, want one that begins without failures", e, err)
		}
		if s, err := w.Stats(t.Context()); err != nil || s.Pending != 4 {
			t.Errorf("%+v, error %v, want 4 that are pending", s, err)
		}
		run(t, w)
		settled(t, w, "alice", next, webhook.Delivered)
		settled(t, w, "alice", byHand.ID, webhook.Delivered)
		wait(t, "an attempt", func() bool { d, _ := delivery(t, w, "alice", fresh); return d.Attempts == 1 })
		wait(t, "an attempt by hand", func() bool { d, _ := delivery(t, w, "alice", retried); return d.Attempts == 2 })
		if d, _ := delivery(t, w, "alice", retried); !d.Next.Equal(before.Next) || d.State != webhook.Pending {
			t.Errorf("delivery %+v, want one that is due at %v", d, before.Next)
		}
	})
}

// TestSweep runs no sender: old deliveries are removed all the same.
func TestSweep(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, nil)
		claim := func(account string, lease time.Duration) *webhook.ClaimedDelivery {
			t.Helper()
			e, _ := create(t, w, account, "http://127.0.0.1:9/", webhook.OperationCompleted)
			one(t, db, account, account)
			out, err := db.Webhooks().Claim(t.Context(), e.ID, 1, lease)
			if err != nil || len(out) != 1 {
				t.Fatalf("%d deliveries claimed, error %v", len(out), err)
			}
			return out[0]
		}
		if _, err := db.Webhooks().Record(t.Context(), claim("done", time.Minute), webhook.AttemptResult{Delivered: true, Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		claim("forgotten", -31*24*time.Hour)
		claim("late", -29*24*time.Hour)
		left := func() (accounts string) {
			for _, a := range []string{"done", "forgotten", "late"} {
				list, err := w.Deliveries(t.Context(), a, webhook.Query{})
				systest.NoError(t, err)
				for range list {
					accounts += a + " "
				}
			}
			return accounts
		}
		webhook.Sweep(t.Context(), db.Webhooks(), -1, nil) // keep for ever
		if got := left(); got != "done forgotten late " {
			t.Errorf("there are those of %s", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			webhook.Sweep(ctx, db.Webhooks(), 200*time.Millisecond, nil)
		}()
		wait(t, "what is not old", func() bool { return left() == "late " })
		cancel()
		<-done
	})
}
