package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

// only returns the only delivery of an account.
func only(t testing.TB, w *webhook.Webhooks, account string) *webhook.Delivery {
	t.Helper()
	list, err := w.Deliveries(t.Context(), account, webhook.Query{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d deliveries, error %v, want one", len(list), err)
	}
	return list[0]
}

func TestRetries(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, nil)
		var n atomic.Int64
		r := receive(t, func(rw http.ResponseWriter, _ *http.Request) {
			if n.Add(1) < 3 {
				rw.WriteHeader(http.StatusServiceUnavailable)
				io.WriteString(rw, "busy\x00\xff")
				return
			}
			rw.WriteHeader(http.StatusAccepted)
		})
		e, secret := create(t, w, "alice", r.URL+"/hook?a=b", webhook.OperationCompleted)
		one(t, db, "alice", "op1")
		run(t, w)
		id := only(t, w, "alice").ID
		d, attempts := settled(t, w, "alice", id, webhook.Delivered)
		for i, m := range r.messages() {
			if m.id() != id {
				t.Errorf("attempt %d has the webhook-id %q, want %q", i+1, m.id(), id)
			}
			if err := verify(t, m, secret); err != nil {
				t.Errorf("attempt %d: %v", i+1, err)
			}
			if !bytes.Equal(m.body, d.Payload) {
				t.Errorf("attempt %d has another body: %s", i+1, m.body)
			}
		}
		if d.Attempts != 3 || len(attempts) != 3 || d.Type != webhook.OperationCompleted || d.Operation != "op1" || d.Endpoint != e.ID ||
			d.Finished.IsZero() || !d.Next.IsZero() {
			t.Errorf("delivery %+v with %d attempts", d, len(attempts))
		}
		for i, a := range attempts {
			want := webhook.Attempt{N: i + 1, At: a.At, Took: a.Took, URL: r.URL + "/hook?a=b", Status: 503, Response: "busy\ufffd\ufffd"}
			if i == 2 {
				want.Status, want.Response = 202, ""
			}
			if a != want {
				t.Errorf("attempt is %+v, want %+v", a, want)
			}
			if time.Since(a.At) > time.Hour || i > 0 && a.At.Before(attempts[i-1].At) {
				t.Errorf("attempt %d was made at %v", i+1, a.At)
			}
		}
		if e, err := w.Get(t.Context(), "alice", e.ID); err != nil || !e.Failing.IsZero() {
			t.Errorf("endpoint %+v, error %v, want one that is not failing", e, err)
		}
	})
}

// TestSchedule checks the times of attempts that get no response. It skips the pauses
// by changing the times in the database.
func TestSchedule(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	db := openDB(t, sqlstore.Options{Path: path, Exclusive: true})
	other, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(10000)")
	systest.NoError(t, err)
	defer other.Close()
	w := newHooks(t, db, func(c *webhook.Config) { c.Schedule = nil })
	r := receive(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusInternalServerError) })
	create(t, w, "alice", r.URL, webhook.OperationCompleted)
	one(t, db, "alice", "op1")
	run(t, w)
	id := only(t, w, "alice").ID
	var waits []time.Duration
	for n := 1; ; n++ {
		var d *webhook.Delivery
		var attempts []webhook.Attempt
		wait(t, fmt.Sprintf("attempt %d", n), func() bool {
			d, attempts = delivery(t, w, "alice", id)
			return len(attempts) == n
		})
		if d.State == webhook.Failed {
			break
		}
		last := attempts[n-1]
		waits = append(waits, d.Next.Sub(last.At.Add(last.Took)))
		if _, err := other.Exec(`UPDATE webhook_deliveries SET due_ms = ?`, time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}
	want := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	// Allows for the time that the machine needs to record an attempt.
	soon := func(got, want time.Duration) bool {
		return got > want-10*time.Millisecond && got < want+patience
	}
	if !slices.EqualFunc(waits, want, soon) {
		t.Errorf("attempts are made after %v, want %v", waits, want)
	}
	for _, m := range r.wait(t, 10) {
		if m.id() != id {
			t.Errorf("webhook-id is %q, want %q", m.id(), id)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	elsewhere := receive(t, nil)
	r := receive(t, func(rw http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/large":
			rw.WriteHeader(http.StatusOK)
			for range 1 << 10 {
				if _, err := rw.Write(bytes.Repeat([]byte("x"), 1<<10)); err != nil {
					return
				}
			}
		case "/redirect":
			http.Redirect(rw, req, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/hang":
			select {
			case <-hang:
			case <-req.Context().Done():
			}
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/headers":
			rw.Header().Set("X-Large", strings.Repeat("x", 1<<20))
		case "/404":
			http.NotFound(rw, req)
		}
	})
	t.Cleanup(func() { close(hang) }) // before the server is closed
	plainTLS := strings.Replace(r.URL, "http://", "https://", 1)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())

	for name, c := range map[string]struct {
		url    string
		tls    *tls.Config
		status int
		error  string
		state  string
	}{
		"large":       {url: r.URL + "/large", status: 200, state: webhook.Delivered},
		"redirect":    {url: r.URL + "/redirect", status: 307, error: "redirects are not followed", state: webhook.Failed},
		"hang":        {url: r.URL + "/hang", error: "no response within 2s", state: webhook.Failed},
		"abort":       {url: r.URL + "/abort", error: "the connection was closed without a response", state: webhook.Failed},
		"headers":     {url: r.URL + "/headers", error: "the request failed", state: webhook.Failed},
		"not found":   {url: r.URL + "/404", status: 404, state: webhook.Failed},
		"refused":     {url: closed.URL, error: "the connection was refused", state: webhook.Failed},
		"no name":     {url: "http://nobody.invalid/", error: "cannot resolve the host name", state: webhook.Failed},
		"no TLS":      {url: plainTLS, error: "the server does not speak TLS", state: webhook.Failed},
		"certificate": {url: secure.URL, error: "invalid certificate", state: webhook.Failed},
		"TLS":         {url: secure.URL, tls: &tls.Config{RootCAs: roots}, status: 200, state: webhook.Delivered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openSQLite(t)
			w := newHooks(t, db, func(cfg *webhook.Config) {
				cfg.Schedule, cfg.TLS, cfg.Timeout = []time.Duration{}, c.tls, patience
				if name == "hang" {
					cfg.Timeout = 2 * time.Second
				}
			})
			run(t, w)
			create(t, w, "alice", c.url, webhook.OperationCompleted)
			one(t, db, "alice", "op1")
			_, attempts := settled(t, w, "alice", only(t, w, "alice").ID, c.state)
			if len(attempts) != 1 || attempts[0].Status != c.status || !strings.HasPrefix(attempts[0].Error, c.error) || (c.error == "") != (attempts[0].Error == "") {
				t.Fatalf("attempts %+v, want one with status %d and error %q", attempts, c.status, c.error)
			}
			if n := len(attempts[0].Response); n > 1<<10 || name == "large" && n != 1<<10 {
				t.Errorf("%d bytes of the answer were kept", n)
			}
			if name == "redirect" && len(elsewhere.messages()) != 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

func TestSimpleSignature(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	w := newHooks(t, db, nil)
	r := receive(t, nil)
	_, secret := create(t, w, "alice", r.URL, webhook.OperationCompleted)
	one(t, db, "alice", "op1")
	run(t, w)
	m := r.wait(t, 1)[0]
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(m.body)
	if got, want := m.header.Get("X-Webhook-Signature"), "sha256="+hex.EncodeToString(mac.Sum(nil)); got != want {
		t.Errorf("X-Webhook-Signature is %q, want %q", got, want)
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, func(c *webhook.Config) { c.Schedule = []time.Duration{time.Hour} })
		var gone atomic.Bool
		r := receive(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(map[bool]int{true: http.StatusGone, false: http.StatusBadGateway}[gone.Load()])
		})
		e, _ := create(t, w, "alice", r.URL, webhook.OperationCompleted)
		run(t, w)
		one(t, db, "alice", "op1") // fails and is retried in an hour
		first := only(t, w, "alice").ID
		wait(t, "an attempt", func() bool { d, _ := delivery(t, w, "alice", first); return d.Attempts == 1 })
		gone.Store(true)
		one(t, db, "alice", "op2")
		wait(t, "the end of the endpoint", func() bool {
			var err error
			e, err = w.Get(t.Context(), "alice", e.ID)
			return err == nil && !e.Disabled.IsZero()
		})
		if !strings.Contains(e.Reason, "410") {
			t.Errorf("reason is %q", e.Reason)
		}
		// Pending deliveries fail too, and no new ones are stored.
		if d, attempts := settled(t, w, "alice", first, webhook.Failed); d.Attempts != 1 || len(attempts) != 1 {
			t.Errorf("delivery %+v with attempts %+v", d, attempts)
		}
		one(t, db, "alice", "op3")
		list, err := w.Deliveries(t.Context(), "alice", webhook.Query{})
		if err != nil || len(list) != 2 {
			t.Errorf("%d deliveries, error %v, want 2", len(list), err)
		}

		// Once enabled, it gets the events from then on.
		gone.Store(false)
		enabled := true
		if e, err = w.Update(t.Context(), "alice", e.ID, webhook.Change{Enabled: &enabled}); err != nil || !e.Disabled.IsZero() || e.Reason != "" || !e.Failing.IsZero() {
			t.Fatalf("endpoint %+v, error %v", e, err)
		}
		one(t, db, "alice", "op4")
		r.wait(t, 3)
	})
}

func TestFailing(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	w := newHooks(t, db, func(c *webhook.Config) {
		c.DisableAfter = 300 * time.Millisecond
		c.Schedule = slices.Repeat([]time.Duration{50 * time.Millisecond}, 1000)
	})
	var good atomic.Bool
	r := receive(t, func(rw http.ResponseWriter, _ *http.Request) {
		if !good.Load() {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})
	e, _ := create(t, w, "alice", r.URL, webhook.OperationCompleted)
	run(t, w)
	one(t, db, "alice", "op1")
	id := only(t, w, "alice").ID
	d, attempts := settled(t, w, "alice", id, webhook.Failed)
	e, err := w.Get(t.Context(), "alice", e.ID)
	if err != nil || e.Disabled.IsZero() || !strings.Contains(e.Reason, "every attempt has failed since") {
		t.Fatalf("endpoint %+v, error %v", e, err)
	}
	if after := e.Disabled.Sub(attempts[0].At); d.Attempts < 2 || after < 290*time.Millisecond {
		t.Errorf("disabled after %d attempts in %v", d.Attempts, after)
	}

	// A manual attempt still reaches it.
	good.Store(true)
	if _, err := w.Replay(t.Context(), "alice", id); err != nil {
		t.Fatal(err)
	}
	if _, attempts = settled(t, w, "alice", id, webhook.Delivered); !attempts[len(attempts)-1].Manual {
		t.Errorf("the last attempt is %+v", attempts[len(attempts)-1])
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	w := newHooks(t, db, func(c *webhook.Config) { c.Overlap = patience })
	r := receive(t, nil)
	e, old := create(t, w, "alice", r.URL, webhook.OperationCompleted)
	run(t, w)
	fresh, err := w.Rotate(t.Context(), "alice", e.ID)
	if err != nil || fresh == old {
		t.Fatalf("secret %q, error %v", fresh, err)
	}
	one(t, db, "alice", "op1")
	m := r.wait(t, 1)[0]
	for name, secret := range map[string]string{"old": old, "new": fresh} {
		if err := verify(t, m, secret); err != nil {
			t.Errorf("%s secret: %v", name, err)
		}
		if err := webhook.Verify([]string{secret}, m.header, m.body, time.Now()); err != nil {
			t.Errorf("%s secret: %v", name, err)
		}
	}
	if e, err = w.Get(t.Context(), "alice", e.ID); err != nil || time.Until(e.PreviousSecretUntil) <= 0 {
		t.Errorf("endpoint %+v, error %v", e, err)
	}
	// The secret before the last one no longer signs.
	newest, err := w.Rotate(t.Context(), "alice", e.ID)
	systest.NoError(t, err)
	one(t, db, "alice", "op2")
	m = r.wait(t, 2)[1]
	if verify(t, m, old) == nil || verify(t, m, fresh) != nil || verify(t, m, newest) != nil {
		t.Errorf("signatures %q, want those of the last two secrets", m.header.Get("webhook-signature"))
	}
}

func TestRotated(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	w := newHooks(t, db, func(c *webhook.Config) { c.Overlap = time.Nanosecond })
	r := receive(t, nil)
	e, old := create(t, w, "alice", r.URL, webhook.OperationCompleted)
	fresh, err := w.Rotate(t.Context(), "alice", e.ID)
	systest.NoError(t, err)
	wait(t, "the end of the old secret", func() bool {
		e, err := w.Get(t.Context(), "alice", e.ID)
		return err == nil && e.PreviousSecretUntil.IsZero()
	})
	run(t, w)
	one(t, db, "alice", "op1")
	if m := r.wait(t, 1)[0]; verify(t, m, old) == nil || verify(t, m, fresh) != nil {
		t.Errorf("signatures %q, want that of the new secret", m.header.Get("webhook-signature"))
	}
}

// TestSealed searches the database for plain secrets, and opens it by servers with
// other secrets.
func TestSealed(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	other := []byte("fedcba9876543210")
	r := receive(t, nil)
	w := newHooks(t, db, nil)
	e, secret := create(t, w, "alice", r.URL, webhook.OperationCompleted)
	row, err := db.Webhooks().Get(t.Context(), "alice", e.ID)
	systest.NoError(t, err)
	if len(row.Secret) < 48 || strings.Contains(secret, string(row.Secret)) {
		t.Errorf("the secret is kept as %q", row.Secret)
	}
	both := newHooks(t, db, func(c *webhook.Config) { c.Secrets = [][]byte{other, secrets()[0]} })
	stop := run(t, both)
	one(t, db, "alice", "op1")
	systest.Check(t, verify(t, r.wait(t, 1)[0], secret))
	stop()

	wrong := newHooks(t, db, func(c *webhook.Config) { c.Secrets, c.Schedule = [][]byte{other}, []time.Duration{time.Hour} })
	stop = run(t, wrong)
	one(t, db, "alice", "op2")
	list, err := w.Deliveries(t.Context(), "alice", webhook.Query{State: webhook.Pending})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d deliveries, error %v", len(list), err)
	}
	wait(t, "an attempt", func() bool {
		_, attempts := delivery(t, w, "alice", list[0].ID)
		return len(attempts) == 1 && strings.Contains(attempts[0].Error, "rotate")
	})
	if _, err := wrong.Rotate(t.Context(), "alice", e.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Replay(t.Context(), "alice", list[0].ID); err != nil {
		t.Fatal(err)
	}
	settled(t, w, "alice", list[0].ID, webhook.Delivered)
	stop()
}

func TestReplay(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, func(c *webhook.Config) { c.Schedule = []time.Duration{time.Hour} })
		var code atomic.Int64
		code.Store(200)
		r := receive(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(int(code.Load())) })
		_, secret := create(t, w, "alice", r.URL, webhook.OperationCompleted)
		run(t, w)
		one(t, db, "alice", "op1")
		id := only(t, w, "alice").ID
		settled(t, w, "alice", id, webhook.Delivered)
		replay := func(attempts int, state string) (*webhook.Delivery, []webhook.Attempt) {
			t.Helper()
			if d, err := w.Replay(t.Context(), "alice", id); err != nil || d.ID != id || d.State != webhook.Pending {
				t.Fatalf("delivery %+v, error %v", d, err)
			}
			wait(t, "an attempt", func() bool { d, _ := delivery(t, w, "alice", id); return d.Attempts == attempts })
			d, all := delivery(t, w, "alice", id)
			if d.State != state || len(all) != attempts || !all[attempts-1].Manual {
				t.Fatalf("delivery %+v, attempts %+v, want %d, %s", d, all, attempts, state)
			}
			return d, all
		}
		replay(2, webhook.Delivered)
		for _, m := range r.wait(t, 2) {
			if m.id() != id || verify(t, m, secret) != nil {
				t.Errorf("message %q is not the one that was replayed", m.id())
			}
		}
		code.Store(500)
		replay(3, webhook.Delivered) // as before

		// A scheduled retry keeps its time, whatever manual attempts happen.
		one(t, db, "alice", "op2")
		list, err := w.Deliveries(t.Context(), "alice", webhook.Query{State: webhook.Pending})
		if err != nil || len(list) != 1 {
			t.Fatalf("%d pending deliveries, error %v", len(list), err)
		}
		id = list[0].ID
		wait(t, "an attempt", func() bool { d, _ := delivery(t, w, "alice", id); return d.Attempts == 1 })
		before, _ := delivery(t, w, "alice", id)
		after, _ := replay(2, webhook.Pending)
		if !after.Next.Equal(before.Next) || time.Until(after.Next) < 30*time.Minute {
			t.Errorf("next attempt at %v, was at %v", after.Next, before.Next)
		}
		code.Store(204)
		replay(3, webhook.Delivered)
	})
}

func TestTest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, nil)
		var code atomic.Int64
		code.Store(204)
		r := receive(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(int(code.Load())) })
		e, secret := create(t, w, "alice", r.URL, webhook.FileTaskFailed)
		disabled := false
		if e, err := w.Update(t.Context(), "alice", e.ID, webhook.Change{Enabled: &disabled}); err != nil || e.Disabled.IsZero() || e.Reason == "" {
			t.Fatalf("endpoint %+v, error %v", e, err)
		}
		run(t, w)
		d, err := w.Test(t.Context(), "alice", e.ID)
		systest.NoError(t, err)
		m := r.wait(t, 1)[0]
		if b := m.decode(t); b.Type != webhook.TestType || m.id() != d.ID || verify(t, m, secret) != nil {
			t.Errorf("message %s with id %q", m.body, m.id())
		}
		settled(t, w, "alice", d.ID, webhook.Delivered)

		code.Store(500)
		if d, err = w.Test(t.Context(), "alice", e.ID); err != nil {
			t.Fatal(err)
		}
		if d, attempts := settled(t, w, "alice", d.ID, webhook.Failed); d.Attempts != 1 || !attempts[0].Manual || attempts[0].Status != 500 {
			t.Errorf("delivery %+v, attempts %+v", d, attempts)
		}
	})
}

// TestSlow has an account whose endpoints do not respond, and another account that must
// not be delayed.
func TestSlow(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	w := newHooks(t, db, func(c *webhook.Config) { c.Workers, c.Timeout = 8, patience })
	hang := make(chan struct{})
	var now, most atomic.Int64
	slow := receive(t, func(_ http.ResponseWriter, req *http.Request) {
		for n := now.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		defer now.Add(-1)
		select {
		case <-hang:
		case <-req.Context().Done():
		}
	})
	quick := receive(t, nil)
	for i := range 3 {
		create(t, w, "alice", fmt.Sprint(slow.URL, "/", i))
	}
	create(t, w, "bob", quick.URL)
	for i := range 20 {
		one(t, db, "alice", fmt.Sprint("slow", i))
	}
	run(t, w)
	slow.wait(t, 2)
	for i := range 20 {
		one(t, db, "bob", fmt.Sprint("quick", i))
	}
	quick.wait(t, 40)
	if n := now.Load(); n == 0 {
		t.Error("the slow endpoints were not slow")
	}
	if n := most.Load(); n > 2 {
		t.Errorf("one account had %d of 8 requests, want a quarter", n)
	}
	close(hang)
	slow.wait(t, 120)
}

// TestTogether runs several senders on one outbox: nothing is sent twice.
func TestTogether(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	var dbs []*sqlstore.DB
	for range 3 {
		dbs = append(dbs, openDB(t, sqlstore.Options{URL: url, Connections: 4}))
	}
	r := receive(t, nil)
	w := newHooks(t, dbs[0], nil)
	for i := range 4 {
		create(t, w, "alice", fmt.Sprint(r.URL, "/", i))
	}
	var work sync.WaitGroup
	var senders []*webhook.Webhooks
	for k, db := range dbs {
		senders = append(senders, newHooks(t, db, nil))
		run(t, senders[k])
		work.Go(func() {
			for i := range 25 {
				one(t, db, "alice", fmt.Sprintf("op%d-%d", k, i))
			}
		})
	}
	work.Wait()
	const all = 3 * 25 * 2 * 4
	r.wait(t, all)
	wait(t, "an empty outbox", func() bool {
		s, err := w.Stats(t.Context())
		return err == nil && s.Pending == 0
	})
	seen := make(map[string]bool)
	for _, m := range r.messages() {
		if seen[m.id()] {
			t.Errorf("%s was sent twice", m.id())
		}
		seen[m.id()] = true
	}
	if len(seen) != all {
		t.Errorf("%d deliveries, want %d", len(seen), all)
	}
	sent := int64(0)
	for _, w := range senders {
		s, err := w.Stats(t.Context())
		if err != nil || s.Attempts["refused"]+s.Attempts["no_answer"]+s.Attempts["blocked"] != 0 {
			t.Errorf("stats are %+v, error %v", s, err)
		}
		sent += s.Attempts["delivered"]
	}
	if sent != all {
		t.Errorf("%d attempts are counted, want %d", sent, all)
	}
}

// TestTakenOver claims a delivery like a process that is then killed.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, nil)
		r := receive(t, nil)
		e, _ := create(t, w, "alice", r.URL, webhook.OperationCompleted)
		one(t, db, "alice", "op1")
		const lease = 2 * time.Second
		claimed := time.Now()
		out, err := db.Webhooks().Claim(t.Context(), e.ID, 5, lease)
		if err != nil || len(out) != 1 {
			t.Fatalf("%d deliveries claimed, error %v", len(out), err)
		}
		// Nothing else sends it, not even a manual request.
		if again, err := db.Webhooks().Claim(t.Context(), e.ID, 5, lease); err != nil || len(again) != 0 {
			t.Fatalf("%d deliveries claimed, error %v, want none", len(again), err)
		}
		if _, err := w.Replay(t.Context(), "alice", out[0].ID); err != nil {
			t.Fatal(err)
		}
		run(t, w)
		m := r.wait(t, 1)[0]
		if d := m.at.Sub(claimed); d < lease-100*time.Millisecond {
			t.Errorf("sent again after %v", d)
		}
		settled(t, w, "alice", out[0].ID, webhook.Delivered)
		// A sender that lost its claim records nothing.
		if _, err := db.Webhooks().Record(t.Context(), out[0], webhook.AttemptResult{}); err == nil || !strings.Contains(err.Error(), status.ErrLost.Error()) {
			t.Errorf("error is %v, want %v", err, status.ErrLost)
		}
		if d, attempts := delivery(t, w, "alice", out[0].ID); d.State != webhook.Delivered || len(attempts) != 1 {
			t.Errorf("delivery %+v, attempts %+v", d, attempts)
		}
	})
}

// TestExclusive continues at once with deliveries that an earlier process had claimed.
func TestExclusive(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	w := newHooks(t, db, func(c *webhook.Config) { c.Exclusive = true })
	r := receive(t, nil)
	e, _ := create(t, w, "alice", r.URL, webhook.OperationCompleted)
	one(t, db, "alice", "op1")
	if out, err := db.Webhooks().Claim(t.Context(), e.ID, 5, time.Hour); err != nil || len(out) != 1 {
		t.Fatalf("%d deliveries claimed, error %v", len(out), err)
	}
	run(t, w)
	r.wait(t, 1)
}

// TestStop stops a sender during a request: the next sender repeats it.
func TestStop(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	w := newHooks(t, db, func(c *webhook.Config) { c.Timeout = patience })
	var n atomic.Int64
	r := receive(t, func(_ http.ResponseWriter, req *http.Request) {
		if n.Add(1) == 1 {
			<-req.Context().Done()
		}
	})
	create(t, w, "alice", r.URL, webhook.OperationCompleted)
	one(t, db, "alice", "op1")
	stop := run(t, w)
	r.wait(t, 1)
	if err := w.Run(t.Context()); err == nil {
		t.Error("Run ran twice")
	}
	stop()
	id := only(t, w, "alice").ID
	if d, attempts := delivery(t, w, "alice", id); d.State != webhook.Pending || len(attempts) != 0 {
		t.Errorf("delivery %+v, attempts %+v", d, attempts)
	}
	run(t, w)
	settled(t, w, "alice", id, webhook.Delivered)
}

// TestPayloadFails makes Payload fail at first.
func TestPayloadFails(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var n atomic.Int64
	w := newHooks(t, db, func(c *webhook.Config) {
		c.Payload = func(_ context.Context, e webhook.Event) ([]byte, error) {
			switch n.Add(1) {
			case 1:
				panic("no")
			case 2:
				return nil, fmt.Errorf("no")
			}
			return fmt.Appendf(nil, `{"type":%q,"id":%q}`, e.Type, e.Operation.ID), nil
		}
	})
	r := receive(t, nil)
	create(t, w, "alice", r.URL, webhook.OperationCompleted)
	one(t, db, "alice", "op1")
	run(t, w)
	if got := string(r.wait(t, 1)[0].body); got != `{"type":"operation.completed","id":"op1"}` {
		t.Errorf("body is %s", got)
	}
	_, attempts := settled(t, w, "alice", only(t, w, "alice").ID, webhook.Delivered)
	if len(attempts) != 3 || attempts[0].Error != "cannot create the request" || attempts[0].Status != 0 {
		t.Errorf("attempts %+v", attempts)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, func(c *webhook.Config) { c.Retention = 100 * time.Millisecond })
		r := receive(t, nil)
		create(t, w, "alice", r.URL)
		run(t, w)
		one(t, db, "alice", "op1")
		r.wait(t, 2)
		wait(t, "an empty log", func() bool {
			list, err := w.Deliveries(t.Context(), "alice", webhook.Query{})
			return err == nil && len(list) == 0
		})
	})
}
