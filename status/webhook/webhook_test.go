package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(killedEnv); path != "" {
		if err := workUntilKilled(path, os.Getenv(killedEnv+"_URL")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(pgtest.Main(m))
}

// patience is a timeout that no test should reach.
const patience = time.Minute

// loopback allows requests to this machine.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func secrets() [][]byte { return [][]byte{[]byte("0123456789abcdef0123456789abcdef")} }

func openSQLite(t testing.TB) *sqlstore.DB {
	return openDB(t, sqlstore.Options{Path: filepath.Join(t.TempDir(), "test.db"), Exclusive: true})
}

func openDB(t testing.TB, o sqlstore.Options) *sqlstore.DB {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), o)
	systest.NoError(t, err)
	systest.AtEnd(t, db.Close)
	return db
}

// databases opens each kind of database that must work.
var databases = map[string]func(testing.TB) *sqlstore.DB{
	"sqlite":   openSQLite,
	"postgres": func(t testing.TB) *sqlstore.DB { return openDB(t, sqlstore.Options{URL: pgtest.New(t)}) },
}

// eachDatabase runs a test on each of them at the same time.
func eachDatabase(t *testing.T, f func(t *testing.T, db *sqlstore.DB)) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, open(t))
		})
	}
}

// newHooks returns webhooks with a configuration for tests.
func newHooks(t testing.TB, db *sqlstore.DB, change func(*webhook.Config)) *webhook.Webhooks {
	t.Helper()
	svc, err := httpapi.New(httpapi.Config{Auth: httpapi.AllowAll(), Log: slog.New(slog.DiscardHandler)})
	systest.NoError(t, err)
	cfg := webhook.Config{
		Store: db.Webhooks(), Secrets: secrets(), Allow: loopback, Poll: 50 * time.Millisecond,
		Schedule: []time.Duration{10 * time.Millisecond, 20 * time.Millisecond},
		Payload: func(_ context.Context, e webhook.Event) ([]byte, error) {
			return svc.Notification(e.Type, e.Time, e.Operation)
		},
	}
	if change != nil {
		change(&cfg)
	}
	w, err := webhook.New(cfg)
	systest.NoError(t, err)
	return w
}

// run sends webhooks until the test ends or stop is called.
func run(t testing.TB, w *webhook.Webhooks) (stop func()) {
	t.Helper()
	return systest.Start(t, w.Run)
}

// A message is a request that a receiver received.
type message struct {
	path   string
	header http.Header
	body   []byte
	at     time.Time
}

type body struct {
	Type      string
	Timestamp time.Time
	Payload   struct {
		MainTask struct {
			ID, Status string
			Count      *struct{ Total, Success, Failed int }
			Notes      map[string]string
			FileData   []map[string]any `json:"file_data"`
		} `json:"main_task"`
		FileTask map[string]any `json:"file_task"`
	}
}

func (m message) id() string { return m.header.Get("webhook-id") }

func (m message) decode(t testing.TB) (b body) {
	t.Helper()
	if err := json.Unmarshal(m.body, &b); err != nil {
		t.Fatalf("body %s: %v", m.body, err)
	}
	return b
}

// A receiver is a server that keeps the requests it receives.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []message
}

// receive starts a receiver that responds by answer; nil: status 204.
func receive(t testing.TB, answer http.HandlerFunc) *receiver {
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.got = append(r.got, message{req.URL.Path, req.Header, b, time.Now()})
		r.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) messages() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// wait waits until f returns true; what names the event.
var wait = systest.Until

func (r *receiver) wait(t testing.TB, n int) []message {
	t.Helper()
	wait(t, fmt.Sprintf("%d messages", n), func() bool { return len(r.messages()) >= n })
	return r.messages()
}

func create(t testing.TB, w *webhook.Webhooks, account, url string, events ...string) (*webhook.Endpoint, string) {
	t.Helper()
	e, secret, err := w.Create(t.Context(), account, webhook.NewEndpoint{URL: url, Events: events})
	systest.NoError(t, err)
	return e, secret
}

// submit stores an operation with n items.
func submit(t testing.TB, db *sqlstore.DB, owner, id string, n int) *status.Operation {
	t.Helper()
	op := &status.Operation{ID: id, Owner: owner, Action: "convert", Notes: map[string]string{"order": "7"}, Args: []byte("{}"), Created: time.Now()}
	for i := range n {
		op.Items = append(op.Items, status.Item{Queue: "pdf", Inputs: []status.File{{Key: fmt.Sprintf("%s-in%d", id, i), Name: "report.docx", Size: 7}}})
	}
	got, err := db.Operations().Create(t.Context(), op)
	systest.NoError(t, err)
	return got
}

func claim(t testing.TB, db *sqlstore.DB, id string, i int) *status.Claim {
	t.Helper()
	c, err := db.Operations().Claim(t.Context(), status.Ref{Operation: id, Index: i}, "w", time.Minute)
	systest.NoError(t, err)
	return c
}

func finish(t testing.TB, db *sqlstore.DB, id string, i int, o status.Outcome) {
	t.Helper()
	if _, err := db.Operations().Finish(t.Context(), claim(t, db, id, i), o); err != nil {
		t.Fatal(err)
	}
}

// one causes events: it completes an operation of one item.
func one(t testing.TB, db *sqlstore.DB, owner, id string) {
	t.Helper()
	submit(t, db, owner, id, 1)
	finish(t, db, id, 0, status.Outcome{Results: []status.File{{Key: id + "-out", Name: "report.pdf", Size: 9, ContentType: "application/pdf"}}})
}

// verify checks a message with the library of Standard Webhooks.
func verify(t testing.TB, m message, secret string) error {
	t.Helper()
	wh, err := standardwebhooks.NewWebhook(secret)
	systest.NoError(t, err)
	return wh.Verify(m.body, m.header)
}

func delivery(t testing.TB, w *webhook.Webhooks, account, id string) (*webhook.Delivery, []webhook.Attempt) {
	t.Helper()
	d, attempts, err := w.Delivery(t.Context(), account, id)
	systest.NoError(t, err)
	return d, attempts
}

// settled waits until a delivery is in a state.
func settled(t testing.TB, w *webhook.Webhooks, account, id, state string) (d *webhook.Delivery, attempts []webhook.Attempt) {
	t.Helper()
	wait(t, "delivery "+state, func() bool {
		d, attempts = delivery(t, w, account, id)
		return d.State == state
	})
	return d, attempts
}

func TestEvents(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, nil)
		r := receive(t, nil)
		_, secret := create(t, w, "alice", r.URL+"/all")
		create(t, w, "alice", r.URL+"/failures", webhook.FileTaskFailed, webhook.OperationFailed)
		create(t, w, "bob", r.URL+"/bob")
		run(t, w)

		submit(t, db, "alice", "op1", 3)
		finish(t, db, "op1", 0, status.Outcome{Results: []status.File{{Key: "page1", Name: "report-001.png", Size: 1}, {Key: "page2", Name: "report-002.png", Size: 2}}})
		r.wait(t, 2) // while the operation is running
		finish(t, db, "op1", 1, status.Outcome{Error: &status.Error{Code: "corrupt_input", Message: "the file is damaged"}})
		finish(t, db, "op1", 2, status.Outcome{Results: []status.File{{Key: "out3", Name: "report.pdf", Size: 3, ContentType: "application/pdf"}}})

		var lines []string
		for _, m := range r.wait(t, 6) {
			b := m.decode(t)
			line := fmt.Sprintf("%s %s %s %s", m.path, b.Type, b.Payload.MainTask.ID, b.Payload.MainTask.Status)
			if f := b.Payload.FileTask; f != nil {
				line += fmt.Sprintf(" %v %v %v %v", f["file_key"], f["input_file_key"], f["download_link"], f["error_code"])
			}
			if c := b.Payload.MainTask.Count; c != nil {
				line += fmt.Sprintf(" %+v %d", *c, len(b.Payload.MainTask.FileData))
			}
			if b.Payload.MainTask.Notes["order"] != "7" {
				t.Errorf("%s has no notes", line)
			}
			if d := time.Since(b.Timestamp); d < -time.Minute || d > time.Hour {
				t.Errorf("%s: timestamp is %v", line, b.Timestamp)
			}
			lines = append(lines, line)
			if ct := m.header.Get("Content-Type"); ct != "application/json" {
				t.Errorf("%s: Content-Type is %q", line, ct)
			}
			if m.path == "/all" {
				if err := verify(t, m, secret); err != nil {
					t.Errorf("%s: %v", line, err)
				}
				if err := webhook.Verify([]string{secret}, m.header, m.body, time.Now()); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			} else if verify(t, m, secret) == nil {
				t.Errorf("%s is signed with the secret of another endpoint", line)
			}
		}
		slices.Sort(lines)
		want := []string{
			"/all fileTask.completed op1 completed out3 op1-in2 /v1/download/out3 <nil>",
			"/all fileTask.completed op1 running page1 op1-in0 /v1/download/page1 <nil>",
			"/all fileTask.completed op1 running page2 op1-in0 /v1/download/page2 <nil>",
			"/all fileTask.failed op1 running op1-in1 op1-in1 <nil> corrupt_input",
			"/all operation.completed op1 completed {Total:4 Success:3 Failed:1} 4",
			"/failures fileTask.failed op1 running op1-in1 op1-in1 <nil> corrupt_input",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
		list, err := w.Deliveries(t.Context(), "bob", webhook.Query{})
		if err != nil || len(list) != 0 {
			t.Errorf("bob has %d deliveries, error %v", len(list), err)
		}
	})
}

// TestEnds expects an event for each way in which an item can end without its handler.
func TestEnds(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, nil)
		e, _ := create(t, w, "alice", "http://127.0.0.1:9/")
		types := func(op string) (got []string) {
			list, err := w.Deliveries(t.Context(), "alice", webhook.Query{Endpoint: e.ID, Limit: 100})
			systest.NoError(t, err)
			for _, d := range list {
				if d.Operation == op {
					got = append(got, d.Type)
				}
			}
			slices.Sort(got)
			return got
		}
		check := func(op string, want ...string) {
			t.Helper()
			if got := types(op); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", op, got, want)
			}
		}
		ops := db.Operations()

		// Cancelled before it started.
		submit(t, db, "alice", "waiting", 2)
		if _, err := ops.Cancel(t.Context(), "alice", "waiting"); err != nil {
			t.Fatal(err)
		}
		check("waiting", "fileTask.failed", "fileTask.failed", "operation.failed")
		if _, err := ops.Cancel(t.Context(), "alice", "waiting"); err != nil {
			t.Fatal(err)
		}
		check("waiting", "fileTask.failed", "fileTask.failed", "operation.failed")

		// Cancelled while one item was running.
		submit(t, db, "alice", "running", 2)
		c := claim(t, db, "running", 0)
		if _, err := ops.Cancel(t.Context(), "alice", "running"); err != nil {
			t.Fatal(err)
		}
		check("running", "fileTask.failed")
		if _, err := ops.Finish(t.Context(), c, status.Outcome{}); err != nil {
			t.Fatal(err)
		}
		check("running", "fileTask.failed", "fileTask.failed", "operation.failed")

		// Requeued: nothing has finished.
		submit(t, db, "alice", "again", 1)
		finish(t, db, "again", 0, status.Outcome{Retry: true, Error: &status.Error{Code: "engine_failed"}})
		check("again")
		finish(t, db, "again", 0, status.Outcome{Error: &status.Error{Code: "engine_failed"}})
		check("again", "fileTask.failed", "operation.failed")

		// A lost claim records nothing.
		submit(t, db, "alice", "lost", 1)
		c = claim(t, db, "lost", 0)
		finishLost := *c
		finishLost.Token++
		if _, err := ops.Finish(t.Context(), &finishLost, status.Outcome{}); err == nil {
			t.Error("a lost claim was finished")
		}
		check("lost")

		// Queued for too long, and run for too long.
		op := submit(t, db, "alice", "expired", 1)
		tracker, err := status.New(status.Config{Store: ops, QueueTimeout: time.Nanosecond})
		systest.NoError(t, err)
		wait(t, "time to pass", func() bool { return time.Since(op.Created) > 5*time.Millisecond })
		if _, _, err := tracker.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("expired", "fileTask.failed", "operation.failed")

		// Deleted before its events are sent: their content is kept.
		one(t, db, "alice", "deleted")
		if _, err := ops.DeleteFinished(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		check("deleted", "fileTask.completed", "operation.completed")
	})
}

func TestDeletedOperation(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	w := newHooks(t, db, nil)
	r := receive(t, nil)
	create(t, w, "alice", r.URL, webhook.OperationCompleted)
	one(t, db, "alice", "op1")
	if n, err := db.Operations().DeleteFinished(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 1 {
		t.Fatalf("%d operations deleted, error %v", n, err)
	}
	run(t, w)
	b := r.wait(t, 1)[0].decode(t)
	if b.Payload.MainTask.ID != "op1" || b.Payload.MainTask.FileData[0]["download_link"] != "/v1/download/op1-out" {
		t.Errorf("body is %+v", b)
	}
}
