//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/webhook"
)

// manager creates a key that can manage its account, and sets it as the server's key.
func (s *server) manager(t testing.TB, where ...string) {
	t.Helper()
	s.key = strings.TrimSpace(tool(t, binary, append([]string{"keys", "create", "--name", "manager", "--scopes", "upload,operate,read,admin"}, where...)...))
}

// A hook receives webhooks.
type hook struct {
	*httptest.Server
	mu   sync.Mutex
	got  []*http.Request
	body [][]byte
	hang chan struct{} // requests get no response while it is open
}

func newHook(t *testing.T) *hook {
	h := &hook{hang: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h.mu.Lock()
		h.got, h.body = append(h.got, r), append(h.body, b)
		hang := h.hang
		h.mu.Unlock()
		select {
		case <-hang:
			w.WriteHeader(http.StatusNoContent)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// wait waits for n requests.
func (h *hook) wait(t *testing.T, n int) ([]*http.Request, [][]byte) {
	t.Helper()
	var got []*http.Request
	var body [][]byte
	eventually(t, fmt.Sprint(n, " requests"), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		got, body = h.got, h.body
		return len(got) >= n
	})
	return got, body
}

const webhooks = "/api/v1/admin/accounts/self/webhooks"

// TestWebhooks kills the server between the end of an operation and its webhook, which the next
// start sends.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	flags := append([]string{"--webhook-allow", "127.0.0.0/8"}, noEngines...)
	s := start(t, dir, flags...)
	s.manager(t, "--data-dir", dir)
	h := newHook(t)
	made := s.want(t, 200, "", "POST", webhooks, map[string]any{"url": h.URL, "description": "a receiver"})
	secret, one := made.str("secret"), webhooks+"/"+made.str("id")

	task := s.begin(t, "zip", nil, file{"a.txt", []byte("hello")})
	if r := s.await(t, task); r.str("operation_status") != "completed" {
		t.Fatalf("operation: %s", r.raw)
	}
	h.wait(t, 1) // this request gets no response
	s.ready(t)
	s.kill()
	close(h.hang)
	h.mu.Lock()
	before := len(h.got)
	h.mu.Unlock()
	again := start(t, dir, flags...)
	again.key = s.key
	got, bodies := h.wait(t, before+2)
	wh, err := standardwebhooks.NewWebhook(secret)
	systest.NoError(t, err)
	seen := make(map[string]bool)
	for i, r := range got {
		systest.Check(t, wh.Verify(bodies[i], r.Header))
		if !strings.Contains(string(bodies[i]), task) {
			t.Errorf("body %s", bodies[i])
		}
		seen[r.Header.Get("webhook-id")] = true
	}
	if len(seen) != 2 {
		t.Errorf("requests with %d ids, want those of a file and of the operation", len(seen))
	}

	// The other endpoints.
	again.want(t, 200, "", "POST", one+"/secret", nil)
	test := again.want(t, 200, "", "POST", one+"/test", nil).str("id")
	h.wait(t, len(got)+1)
	eventually(t, "the test is delivered", func() bool {
		r := again.want(t, 200, "", "GET", one+"/deliveries/"+test, nil)
		if r.str("state") == "failed" {
			t.Fatalf("test: %s", r.raw)
		}
		return r.str("state") == "delivered"
	})
	again.want(t, 200, "", "POST", one+"/deliveries/"+test+"/replay", nil)
	h.wait(t, len(got)+2)
	if r := again.want(t, 200, "", "GET", one+"/deliveries?state=delivered", nil); len(r.body["deliveries"].([]any)) < 2 {
		t.Errorf("deliveries %s", r.raw)
	}
	again.want(t, 200, "", "GET", webhooks, nil)
	again.want(t, 200, "", "GET", one, nil)
	again.want(t, 200, "", "PATCH", one, map[string]any{"enabled": false})
	again.want(t, 200, "", "DELETE", one, nil)
	again.want(t, 404, "not_found", "GET", one, nil)
	if err := again.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestWebhooksGuarded checks that a server with default settings sends nothing to this machine, by
// address or by name.
func TestWebhooksGuarded(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	systest.NoError(t, err)
	defer ln.Close()
	reached := make(chan net.Conn, 1)
	go func() {
		if c, err := ln.Accept(); err == nil {
			reached <- c
		}
	}()
	dir := filepath.Join(t.TempDir(), "data")
	s := startLean(t, dir)
	s.manager(t, "--data-dir", dir)
	if r := s.want(t, 400, "invalid_request", "POST", webhooks, map[string]any{"url": "http://" + ln.Addr().String()}); r.str("param") != "url" {
		t.Errorf("refused: %s", r.raw)
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	one := webhooks + "/" + s.want(t, 200, "", "POST", webhooks, map[string]any{"url": "http://localhost:" + port}).str("id")
	test := s.want(t, 200, "", "POST", one+"/test", nil).str("id")
	var r *response
	eventually(t, "the delivery fails", func() bool {
		r = s.want(t, 200, "", "GET", one+"/deliveries/"+test, nil)
		return r.str("state") == "failed"
	})
	if !strings.Contains(string(r.raw), "the address is not public") {
		t.Errorf("delivery %s", r.raw)
	}
	select {
	case <-reached:
		t.Error("the server called this machine")
	default:
	}
	s.ready(t)
}

// TestWebhooksOfCluster has a worker finish an operation and an API node send the webhook: the
// worker needs no outgoing connections.
func TestWebhooksOfCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	api := c.node("api", "--webhook-allow", "127.0.0.0/8")
	c.node("worker", append([]string{"--queues", "archive"}, noEngines...)...)
	api.manager(t, "--database-url", c.url)
	api.supports(t, true, "txt", "zip")
	h := newHook(t)
	close(h.hang)
	made := api.want(t, 200, "", "POST", webhooks, map[string]any{"url": h.URL, "events": []string{"operation.completed"}})
	task := api.begin(t, "zip", nil, file{"a.txt", []byte("hello")})
	got, bodies := h.wait(t, 1)
	wh, err := standardwebhooks.NewWebhook(made.str("secret"))
	if err == nil {
		err = wh.Verify(bodies[0], got[0].Header)
	}
	if err != nil || !strings.Contains(string(bodies[0]), task) {
		t.Errorf("body %s, error %v", bodies[0], err)
	}
}

// TestWebhooksOff checks that a server without webhooks deletes the deliveries of an earlier
// server.
func TestWebhooksOff(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	connect := func() *sqlstore.DB {
		t.Helper()
		db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(dir, "filewright.db")})
		systest.NoError(t, err)
		return db
	}
	db := connect()
	hooks := db.Webhooks()
	systest.NoError(t, hooks.Create(t.Context(), &webhook.StoredEndpoint{Endpoint: webhook.Endpoint{ID: "wh_1", Account: "alice", URL: "http://127.0.0.1:9/", Created: time.Now()}, Secret: []byte("x")}, 1))
	d, err := hooks.Add(t.Context(), "alice", "wh_1", "webhook.test", func(string) []byte { return []byte("{}") })
	systest.NoError(t, err)
	out, err := hooks.Claim(t.Context(), "wh_1", 1, time.Minute)
	if err != nil || len(out) != 1 {
		t.Fatalf("%d deliveries claimed, error %v", len(out), err)
	}
	if _, err := hooks.Record(t.Context(), out[0], webhook.AttemptResult{Delivered: true}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := hooks.Delivery(t.Context(), "alice", d.ID); err != nil {
		t.Fatal(err)
	}
	systest.NoError(t, db.Close())
	startLean(t, dir, "--webhooks=false", "--webhook-ttl", "1s")
	db = connect()
	defer db.Close()
	eventually(t, "the delivery is removed", func() bool {
		_, _, err := db.Webhooks().Delivery(t.Context(), "alice", d.ID)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err != nil
	})
}
