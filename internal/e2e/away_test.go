//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
)

// noEngines are flags for a server with only the linked engines.
var noEngines = []string{"--ffmpeg", "none", "--soffice", "none", "--chromium", "none", "--tesseract", "none", "--pandoc", "none", "--qpdf", "none"}

// TestDependenciesAway restarts the database and the bucket while clients send every kind of
// request. No response blames the client or reports an internal error: each is a success, or 503
// with Retry-After.
func TestDependenciesAway(t *testing.T) {
	t.Parallel()
	pg := pgtest.Own(t)
	s3 := s3test.Own(t, "files")
	database := pg.Database(t)
	s := start(t, t.TempDir(), append([]string{"--database-url", database, "--rate", "0", "--max-attempts", "1",
		"--blob-url", fmt.Sprintf("s3://files?endpoint=%s&region=%s&path_style=true&private=true", url.QueryEscape(s3.Endpoint), s3test.Region)}, noEngines...)...)
	admin := &server{url: s.url, key: strings.TrimSpace(tool(t, binary, "keys", "create", "--database-url", database, "--name", "manager", "--account", "admin", "--scopes", "admin,read"))}
	s.supports(t, true, "csv", "convert")
	text := []byte("a,b\n1,2\n")
	key := s.upload(t, "a.csv", text, 1)
	convert := map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": map[string]any{"convert_to": "json"}}
	task := s.want(t, 200, "", "POST", "/api/v1/do", convert).str("main_task_id")
	done := s.await(t, task)
	link := done.elements()[0]["download_link"].(string)

	var good, refused atomic.Int64
	// send returns nil for a response that asks to try again later.
	send := func(ctx context.Context, by *server, method, path string, body any, headers ...string) *response {
		r, err := by.try(ctx, method, path, body, headers...)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			t.Errorf("%s %s: %v", method, path, err)
			return nil
		case r.status == http.StatusServiceUnavailable:
			refused.Add(1)
			if r.header.Get("Retry-After") == "" {
				t.Errorf("%s %s: 503 without Retry-After: %s", method, path, r.raw)
			}
			return nil
		case r.status != http.StatusOK && r.status != http.StatusSeeOther:
			t.Errorf("%s %s: %d %s", method, path, r.status, tail(string(r.raw), 500))
			return nil
		}
		good.Add(1)
		return r
	}
	uploads := func(ctx context.Context) {
		r := send(ctx, s, "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "b.csv", "size": len(text), "mime_type": "text/csv"})
		if r == nil {
			return
		}
		put := send(ctx, s, "PUT", r.body["presigned_urls"].([]any)[0].(string), text, "Content-Type", "application/octet-stream")
		if put == nil {
			return
		}
		up := send(ctx, s, "POST", "/api/v1/complete-upload", map[string]any{"file_key": r.str("file_key"), "parts": []map[string]any{{"part_number": 1, "etag": put.header.Get("ETag")}}})
		if up != nil {
			send(ctx, s, "DELETE", "/api/v1/files/"+r.str("file_key"), nil)
		}
	}
	pages := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page := func(ctx context.Context) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/dashboard/operations", nil)
		if err != nil {
			t.Error(err)
			return
		}
		req.AddCookie(&http.Cookie{Name: auth.CookieName, Value: strings.Repeat("a", 52)}) // an unknown session: redirects to the login
		resp, err := pages.Do(req)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
			refused.Add(1)
		case resp.StatusCode != http.StatusSeeOther:
			t.Errorf("a page of the dashboard: %d", resp.StatusCode)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	for _, f := range []func(context.Context){
		uploads, uploads, page,
		func(ctx context.Context) { send(ctx, s, "POST", "/api/v1/do", convert) },
		func(ctx context.Context) { send(ctx, s, "GET", "/api/v1/status/"+task, nil) },
		func(ctx context.Context) { send(ctx, s, "GET", "/api/v1/status/"+task+"/"+key+"?wait=1s", nil) },
		func(ctx context.Context) { send(ctx, s, "GET", "/api/v1/status/"+task+"/events", nil) },
		func(ctx context.Context) { send(ctx, s, "GET", "/api/v1/operations", nil) },
		func(ctx context.Context) { send(ctx, s, "GET", link, nil) },
		func(ctx context.Context) { send(ctx, s, "GET", "/v1/download/"+key, nil) },
		func(ctx context.Context) { send(ctx, admin, "GET", "/api/v1/admin/accounts", nil) },
		func(ctx context.Context) { send(ctx, admin, "GET", "/api/v1/admin/overview", nil) },
	} {
		clients.Go(func() {
			// Without the pause the requests would take both processors from the database that starts.
			for ctx.Err() == nil {
				f(ctx)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	more := func(n *atomic.Int64, by int64) {
		end := n.Load() + by
		eventually(t, "more answers", func() bool { return n.Load() >= end || t.Failed() })
	}
	back := func(err error) {
		systest.Check(t, err)
	}
	more(&good, 50)
	for _, end := range []func() error{pg.Down, pg.Kill} { // fast and immediate shutdown
		back(end())
		back(pg.Up())
		more(&good, 50)
	}
	back(pg.Down())
	more(&refused, 5)
	back(pg.Up())
	more(&good, 50)
	s3.Kill()
	more(&refused, 2)
	back(s3.Start())
	more(&good, 50)
	stop()
	clients.Wait()
	// No accepted operation has failed, and no attempt was counted.
	c := &cluster{t: t, url: database}
	eventually(t, "all operations end", func() bool { return c.number("SELECT count(*) FROM operations WHERE finished_ms IS NULL") == 0 })
	if n := c.number("SELECT count(*) FROM items WHERE state <> 'completed' OR attempt <> 1"); n > 0 {
		t.Errorf("%d files did not survive the outages", n)
	}

	// Connections stay open without responses. The server reports the failure in time.
	notReady := func(name string) {
		t.Helper()
		start := time.Now()
		r := s.want(t, 503, "unavailable", "GET", "/readyz", nil)
		if d := time.Since(start); d > 10*time.Second { // two on an idle machine
			t.Errorf("readyz answers after %v", d)
		}
		for _, d := range r.body["dependencies"].([]any) {
			if d := d.(map[string]any); (d["state"] == "no answer") != (d["name"] == name) {
				t.Errorf("without %s: %v", name, d)
			}
		}
	}
	ready := func() {
		eventually(t, "ready again", func() bool { return s.request(t, "GET", "/readyz", nil).status == 200 })
	}
	ready()
	back(pg.Freeze())
	notReady("database")
	back(pg.Thaw())
	ready()
	back(s3.Freeze())
	notReady("bucket")
	back(s3.Thaw())
	ready()
	// The line that ends an outage may follow the response that shows its end.
	var failed, over int
	eventually(t, "all outages are over", func() bool {
		log := s.err.String()
		failed, over = strings.Count(log, "dependency failed"), strings.Count(log, "dependency is back")
		return failed == over
	})
	requests := regexp.MustCompile(`.*msg="request failed".*`).FindAllString(s.err.String(), -1) // a deadline may end one request
	if failed == 0 || failed != over || 4*len(requests) > int(refused.Load()) {
		t.Errorf("%d outages, %d of them over; %d refused requests, lines of their own have %q", failed, over, refused.Load(), requests)
	}
	s.want(t, 200, "", "GET", link, nil)
	t.Logf("%d good answers, %d refused", good.Load(), refused.Load())
}

// TestBucketAway makes the bucket unavailable for longer than all attempts take, while operations
// run. They wait, their status says so, and all complete.
func TestBucketAway(t *testing.T) {
	t.Parallel()
	s3 := s3test.Own(t, "files")
	dir := t.TempDir()
	s := start(t, dir, append([]string{"--max-attempts", "1", "--concurrency", "data=2",
		"--blob-url", fmt.Sprintf("s3://files?endpoint=%s&region=%s&path_style=true&private=true", url.QueryEscape(s3.Endpoint), s3test.Region)}, noEngines...)...)
	var tasks []string
	key := s.upload(t, "a.csv", []byte("a,b\n1,2\n"), 1)
	s3.Kill()
	for range 2 {
		tasks = append(tasks, s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": map[string]any{"convert_to": "json"}}).str("main_task_id"))
	}
	waits := regexp.MustCompile(`(?m)^filewright_item_waits_total\{reason="storage_unavailable"\} (\d+)$`)
	seen := make(map[string]bool)
	eventually(t, "the operations say that they wait, after two attempts each", func() bool {
		for _, task := range tasks {
			r := s.want(t, 200, "", "GET", "/api/v1/status/"+task, nil)
			if w, ok := r.elements()[0]["waiting"].(map[string]any); ok && w["reason"] == "storage_unavailable" {
				seen[task] = true
			}
		}
		n := 0
		if m := waits.FindSubmatch(s.want(t, 200, "", "GET", "/metrics", nil).raw); m != nil {
			n, _ = strconv.Atoi(string(m[1]))
		}
		return len(seen) == len(tasks) && n >= 2*len(tasks)
	})
	systest.NoError(t, s3.Start())
	for _, task := range tasks {
		if r := s.await(t, task); r.str("operation_status") != "completed" {
			t.Errorf("after the bucket is back: %s", r.raw)
		}
	}
	metrics := string(s.want(t, 200, "", "GET", "/metrics", nil).raw)
	if strings.Contains(metrics, "\nfilewright_item_failures_total{") || strings.Contains(metrics, "\nfilewright_item_attempts_lost_total{") {
		t.Error("the outage is counted as failures")
	}
}
