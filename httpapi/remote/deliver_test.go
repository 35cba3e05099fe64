package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/remote"
	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/transfer"
)

// soon is a schedule without long pauses.
var soon = []time.Duration{time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond}

// deliveries starts a service with deliveries.
func (p place) deliveries(t *testing.T, cfg httpapi.Config, c remote.DeliveryConfig, resolver *net.Resolver) *server {
	t.Helper()
	return p.start(t, cfg, func(s *server, cfg *httpapi.Config) func(context.Context) error {
		c.Store, c.Exclusive, c.Log, c.Secrets = s.db.Transfers(), true, cfg.Log, secrets
		if c.Allow == nil {
			c.Allow = local
		}
		d, err := remote.NewDeliveries(c)
		systest.NoError(t, err)
		if resolver != nil {
			d.SetResolver(resolver)
		}
		cfg.OnFinal = d.Ended
		cfg.Extensions = append(cfg.Extensions, d.Extension)
		return d.Run
	})
}

// upload stores an upload and returns its key.
func (s *server) upload(t *testing.T, name, content string) string {
	t.Helper()
	st, m := s.call(t, "POST", "/api/v1/initiate-upload", body{"file_name": name, "size": len(content), "mime_type": "text/plain"})
	if st != 200 {
		t.Fatal(m)
	}
	req, err := http.NewRequestWithContext(t.Context(), "PUT", m["presigned_urls"].([]any)[0].(string), strings.NewReader(content))
	systest.NoError(t, err)
	resp, b := systest.Send(t, req)
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, b)
	}
	st, done := s.call(t, "POST", "/api/v1/complete-upload", body{"file_key": m["file_key"], "upload_id": m["upload_id"], "parts": []any{body{"etag": strings.Trim(resp.Header.Get("ETag"), `"`), "part_number": 1}}})
	if st != 200 {
		t.Fatal(done)
	}
	return m["file_key"].(string)
}

// do starts an operation on files and returns its ID.
func (s *server) do(t *testing.T, keys []string, parameters body, deliver ...body) string {
	t.Helper()
	parameters["convert_to"] = "md"
	st, m := s.call(t, "POST", "/api/v1/do", body{"action": "convert", "file_keys": keys, "parameters": parameters, "deliver": deliver})
	if st != 200 {
		t.Fatalf("%d %v", st, m)
	}
	return m["main_task_id"].(string)
}

// delivered waits until every delivery of an operation has ended, and returns the elements of
// files_data.
func (s *server) delivered(t *testing.T, id string) (files []map[string]any) {
	t.Helper()
	systest.Until(t, "the deliveries to end", func() bool {
		st, m := s.call(t, "GET", "/api/v1/status/"+id+"?wait=20s", nil)
		if st != 200 {
			t.Fatalf("%d %v", st, m)
		}
		files = nil
		pending := false
		for _, f := range m["files_data"].([]any) {
			f := f.(map[string]any)
			d, _ := f["delivery"].(map[string]any)
			pending = pending || d["state"] == "pending"
			files = append(files, f)
		}
		return !pending
	})
	return files
}

// state describes the delivery of an element of files_data.
func state(f map[string]any) string {
	d, ok := f["delivery"].(map[string]any)
	if !ok {
		return "none"
	}
	return strings.TrimSpace(fmt.Sprint(d["state"], " ", d["attempts"], " ", d["error_code"]))
}

// A sink records the requests that it gets.
type sink struct {
	mu   sync.Mutex
	got  []string
	fail func(n int) int // the status of the n-th request, from 1; 0: 200
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, fmt.Sprintf("%s %s %s %d %s%s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.ContentLength, r.Header.Get("X-Token"), r.Header.Get("Transfer-Encoding"), b))
	if err != nil {
		return
	}
	if s.fail != nil {
		if code := s.fail(len(s.got)); code != 0 {
			w.WriteHeader(code)
		}
	}
}

func (s *sink) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.got))
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	s := place{t.TempDir()}.deliveries(t, httpapi.Config{}, remote.DeliveryConfig{Schedule: soon}, nil)
	a, b, broken := s.upload(t, "a.txt", "hello"), s.upload(t, "b.txt", ""), s.upload(t, "c.txt", "broken")
	check := func(name string, to *sink, files []map[string]any, states, requests []string) {
		t.Helper()
		var got []string
		for _, f := range files {
			got = append(got, state(f))
		}
		if !slices.Equal(got, states) || !slices.Equal(to.requests(), requests) {
			t.Errorf("%s: %q, %q, want %q, %q", name, got, to.requests(), states, requests)
		}
	}
	to := new(sink)
	url := source(t, to.ServeHTTP).URL
	id := s.do(t, []string{a, broken, b}, body{}, body{"url": url + "/1?sig=x", "headers": body{"X-Token": "s3cret"}}, body{"url": url + "/2"}, body{"url": url + "/3", "headers": body{"Content-Type": "text/x"}})
	check("one URL for each", to, s.delivered(t, id), []string{"delivered 1 <nil>", "none", "delivered 1 <nil>"},
		[]string{"PUT /1?sig=x text/markdown 5 s3cret HELLO", "PUT /3 text/x 0  "})
	if strings.Contains(s.log.String(), "s3cret") || strings.Contains(s.log.String(), "sig=x") {
		t.Error("the log has a secret")
	}

	to = new(sink)
	url = source(t, to.ServeHTTP).URL
	lines := s.upload(t, "l.txt", "x\ny")
	id = s.do(t, []string{lines}, body{"lines": true}, body{"url": url + "/out/{index}/{name}?n={index}"})
	check("placeholders", to, s.delivered(t, id), []string{"delivered 1 <nil>", "delivered 1 <nil>"},
		[]string{"PUT /out/1/line%201.md?n=1 text/markdown 1  x", "PUT /out/2/line%202.md?n=2 text/markdown 1  y"})

	to = new(sink)
	url = source(t, to.ServeHTTP).URL
	id = s.do(t, []string{lines}, body{"lines": true}, body{"url": url + "/only"})
	check("too few URLs", to, s.delivered(t, id), []string{"delivered 1 <nil>", "failed 0 url_missing"}, []string{"PUT /only text/markdown 1  x"})

	to = &sink{fail: func(n int) int { return []int{503, 403, 0}[n-1] }}
	id = s.do(t, []string{a}, body{}, body{"url": source(t, to.ServeHTTP).URL})
	check("retried", to, s.delivered(t, id), []string{"delivered 3 <nil>"}, slices.Repeat([]string{"PUT / text/markdown 5  HELLO"}, 3))

	to = &sink{fail: func(int) int { return 500 }}
	id = s.do(t, []string{a}, body{}, body{"url": source(t, to.ServeHTTP).URL})
	check("given up", to, s.delivered(t, id), []string{"failed 4 url_status"}, slices.Repeat([]string{"PUT / text/markdown 5  HELLO"}, 4))

	to = &sink{fail: func(int) int { return 410 }}
	id = s.do(t, []string{a}, body{}, body{"url": source(t, to.ServeHTTP).URL})
	check("410", to, s.delivered(t, id), []string{"failed 1 url_gone"}, []string{"PUT / text/markdown 5  HELLO"})

	// The results of the last of several steps.
	to = new(sink)
	url = source(t, to.ServeHTTP).URL
	st, m := s.call(t, "POST", "/api/v1/do", body{"file_keys": []any{a, b}, "steps": []any{body{"action": "convert", "parameters": body{"convert_to": "md"}}, body{"action": "join"}}, "deliver": []any{body{"url": url + "/{name}"}}})
	if st != 200 {
		t.Fatalf("%d %v", st, m)
	}
	check("steps", to, s.delivered(t, m["main_task_id"].(string)), []string{"delivered 1 <nil>"}, []string{"PUT /all.txt text/plain 5  HELLO"})

	// Nothing to deliver: the operation fails.
	to = new(sink)
	id = s.do(t, []string{broken}, body{}, body{"url": source(t, to.ServeHTTP).URL})
	check("failed", to, s.delivered(t, id), []string{"none"}, nil)

	// An operation without targets has no deliveries, and the list shows those of the others.
	id = s.do(t, []string{a}, body{})
	check("without", to, s.delivered(t, id), []string{"none"}, nil)
	_, m = s.call(t, "GET", "/api/v1/operations?limit=50", nil)
	shown := 0
	for _, op := range m["operations"].([]any) {
		for _, f := range op.(map[string]any)["files_data"].([]any) {
			if f.(map[string]any)["delivery"] != nil {
				shown++
			}
		}
	}
	if shown != 10 {
		t.Errorf("the list shows %d deliveries", shown)
	}
	systest.Until(t, "no transfer to be pending", func() bool {
		n, _, err := s.db.Transfers().Pending(t.Context(), "delivery")
		return err == nil && n == 0
	})
}

// Impossible targets are refused before anything is queued.
func TestDeliverRefused(t *testing.T) {
	t.Parallel()
	s := place{t.TempDir()}.deliveries(t, httpapi.Config{}, remote.DeliveryConfig{Accepted: 1}, nil)
	a, b := s.upload(t, "a.txt", "hello"), s.upload(t, "b.txt", "hello")
	base := s.left(t)
	do := func(deliver any, more ...string) (int, map[string]any) {
		return s.call(t, "POST", "/api/v1/do", body{"action": "convert", "file_keys": append([]string{a}, more...), "parameters": body{"convert_to": "md"}, "deliver": deliver})
	}
	ok := body{"url": "https://example.com/a"}
	for _, tt := range []struct {
		deliver     any
		slug, param string
	}{
		{[]any{ok}, "invalid_request", "deliver"}, // two files
		{[]any{ok, body{}}, "invalid_request", "deliver[1].url"},
		{[]any{ok, body{"url": "s3://bucket/key"}}, "url_scheme", "deliver[1].url"},
		{[]any{ok, body{"url": "https://a:b@example.com/"}}, "url_credentials", "deliver[1].url"},
		{[]any{body{"url": "http://10.0.0.1/"}, ok}, "url_address", "deliver[0].url"},
		{[]any{ok, body{"url": "https://example.com/", "headers": body{"Content-Length": "1"}}}, "invalid_request", "deliver[1].headers"},
		{[]any{body{"url": "https://{name}.example.com/"}}, "invalid_request", "deliver[0].url"},
		{[]any{body{"url": "https://example.com:{index}/"}}, "invalid_request", "deliver[0].url"},
		{"https://example.com/", "invalid_request", "deliver"},
	} {
		if st, m := do(tt.deliver, b); st != 400 || m["error"] != tt.slug || m["param"] != tt.param {
			t.Errorf("%v: %d %v", tt.deliver, st, m)
		}
	}
	if got := s.left(t); !slices.Equal(got, base) {
		t.Errorf("left %v", got)
	}
	if _, m := s.call(t, "GET", "/api/v1/operations", nil); len(m["operations"].([]any)) != 0 {
		t.Errorf("%v", m)
	}

	// A repeated request does not deliver twice.
	hold := make(chan struct{})
	to := new(sink)
	src := source(t, func(w http.ResponseWriter, r *http.Request) { <-hold; to.ServeHTTP(w, r) })
	one := body{"action": "convert", "file_keys": []string{a}, "parameters": body{"convert_to": "md"}, "deliver": []any{body{"url": src.URL}}}
	st, m := s.call(t, "POST", "/api/v1/do", one)
	if st != 200 {
		t.Fatalf("%d %v", st, m)
	}
	if st, m := s.call(t, "POST", "/api/v1/do", one); st != 429 || m["error"] != "queue_full" {
		t.Errorf("%d %v", st, m)
	}
	close(hold)
	if got := state(s.delivered(t, m["main_task_id"].(string))[0]); got != "delivered 1 <nil>" {
		t.Error(got)
	}

	// A service without deliveries says so.
	s = place{t.TempDir()}.imports(t, httpapi.Config{}, remote.ImportConfig{}, nil)
	a = s.upload(t, "a.txt", "hello")
	if st, m := do([]any{ok}); st != 400 || m["param"] != "deliver" {
		t.Errorf("%d %v", st, m)
	}
}

// Requests do not reach private addresses, redirects are not followed, and slow servers are given up.
func TestDeliverGuard(t *testing.T) {
	t.Parallel()
	var mux http.ServeMux
	reached := new(sink)
	mux.Handle("/reached", reached)
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/reached", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/silent", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	// A handler that does not read the body does not learn that the client has gone.
	release := make(chan struct{})
	mux.HandleFunc("/stalls", func(w http.ResponseWriter, r *http.Request) { <-release })
	src := source(t, mux.ServeHTTP)
	t.Cleanup(func() { close(release) }) // before the server waits for its handlers
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(src.URL, "http://"))
	closed := systest.FreeAddr(t)
	limits := httpapi.Limits{Stall: 100 * time.Millisecond}
	s := place{t.TempDir()}.deliveries(t, httpapi.Config{Limits: limits}, remote.DeliveryConfig{Schedule: soon[:1], Header: 200 * time.Millisecond},
		rebinding(t, [4]byte{127, 0, 0, 2}))
	small, large := s.upload(t, "a.txt", "hello"), s.upload(t, "b.txt", strings.Repeat("large", 200_000))
	for _, tt := range []struct{ url, file, want string }{
		{"http://rebinds.test:" + port + "/reached", small, "failed 2 url_address"},
		{src.URL + "/to", small, "failed 2 url_redirect"},
		{"http://" + closed + "/", small, "failed 2 url_unreachable"},
		{src.URL + "/silent", small, "failed 2 url_timeout"},
		{src.URL + "/stalls", large, "failed 2 url_timeout"},
	} {
		id := s.do(t, []string{tt.file}, body{}, body{"url": tt.url})
		if got := state(s.delivered(t, id)[0]); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.url, got, tt.want)
		}
	}
	if got := reached.requests(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// A delivery survives a restart, and its result does not expire before. A result that its owner
// deletes is not delivered.
func TestDeliverContinues(t *testing.T) {
	t.Parallel()
	down := true
	to := &sink{fail: func(n int) int {
		if down {
			return 503
		}
		return 0
	}}
	src := source(t, to.ServeHTTP)
	p := place{t.TempDir()}
	cfg := httpapi.Config{Retention: httpapi.Retention{Files: time.Second, Sweep: 20 * time.Millisecond}}
	s := p.deliveries(t, cfg, remote.DeliveryConfig{Schedule: []time.Duration{2 * time.Second, time.Millisecond}}, nil)
	in := s.upload(t, "a.txt", "hello")
	id, dropped := s.do(t, []string{in}, body{}, body{"url": src.URL + "/a"}), s.do(t, []string{in}, body{}, body{"url": src.URL + "/b"})
	systest.Until(t, "the first attempts", func() bool { return len(to.requests()) == 2 })
	systest.Until(t, "the input to expire", func() bool {
		_, err := s.svc.Uploads().Ready(t.Context(), "", in)
		return err != nil
	})
	_, m := s.call(t, "GET", "/api/v1/status/"+dropped, nil)
	if st, m := s.call(t, "DELETE", "/api/v1/files/"+m["files_data"].([]any)[0].(map[string]any)["file_key"].(string), nil); st != 200 {
		t.Errorf("%d %v", st, m)
	}
	s.stop()
	to.mu.Lock()
	down = false
	to.mu.Unlock()
	s = p.deliveries(t, cfg, remote.DeliveryConfig{Schedule: soon}, nil)
	if got := state(s.delivered(t, id)[0]); got != "delivered 2 <nil>" {
		t.Error(got)
	}
	if got := state(s.delivered(t, dropped)[0]); got != "failed 2 result_gone" {
		t.Error(got)
	}
}

// Results go to presigned URLs of a real S3 server.
func TestDeliverToBucket(t *testing.T) {
	t.Parallel()
	s3 := s3test.Own(t, "results")
	c, err := s3.Client()
	systest.NoError(t, err)
	s := place{t.TempDir()}.deliveries(t, httpapi.Config{}, remote.DeliveryConfig{Schedule: soon[:1]}, nil)
	content := strings.Repeat("to a bucket ", 87_382)
	in, empty := s.upload(t, "a.txt", content), s.upload(t, "b.txt", "")
	var urls []body
	for _, name := range []string{"dir/a b.md", "empty.md"} {
		u, err := c.PresignedPutObject(t.Context(), "results", name, time.Hour)
		systest.NoError(t, err)
		urls = append(urls, body{"url": u.String()})
	}
	for _, f := range s.delivered(t, s.do(t, []string{in, empty}, body{}, urls...)) {
		if got := state(f); got != "delivered 1 <nil>" {
			t.Errorf("%v", f)
		}
	}
	for name, want := range map[string]string{"dir/a b.md": strings.ToUpper(content), "empty.md": ""} {
		obj, info, _, err := c.GetObject(t.Context(), "results", name, minio.GetObjectOptions{})
		systest.NoError(t, err)
		b, err := io.ReadAll(obj)
		systest.NoError(t, err)
		if string(b) != want || info.ContentType != "text/markdown" {
			t.Errorf("%s: %d bytes of %s, want %d", name, len(b), info.ContentType, len(want))
		}
	}
	// Without a body: a server that refuses a request may close the connection before it has read one.
	wrong := urls[0]["url"].(string) + "0"
	if got := state(s.delivered(t, s.do(t, []string{empty}, body{}, body{"url": wrong}))[0]); got != "failed 2 url_status" {
		t.Error(got)
	}
}

// A process that runs no deliveries makes those of an operation due when the operation ends.
func TestHasten(t *testing.T) {
	t.Parallel()
	store := new(transfer.MemStore)
	for _, id := range []string{"ended", "running"} {
		systest.NoError(t, store.Add(t.Context(), &transfer.Transfer{Kind: "delivery", ID: id, Owner: "alice", Due: store.Now().Add(time.Hour)}, 10))
	}
	remote.Hasten(store, nil)(t.Context(), &status.Operation{ID: "ended"})
	got, err := store.Claim(t.Context(), "delivery", time.Minute, nil)
	if err != nil || got == nil || got.ID != "ended" {
		t.Errorf("due is %+v, error %v", got, err)
	}
	if got, err := store.Claim(t.Context(), "delivery", time.Minute, nil); got != nil || err != nil {
		t.Errorf("due is %+v too, error %v", got, err)
	}
}

// The states of deliveries for a disabled account say why they ended. What was delivered stays so.
func TestDeliverGivesUp(t *testing.T) {
	t.Parallel()
	d, err := remote.NewDeliveries(remote.DeliveryConfig{})
	systest.NoError(t, err)
	state := d.GiveUp(&transfer.Transfer{ID: "op", State: []byte(`{"files":[{"n":1,"key":"a","name":"a.pdf","type":"","ended":"2026-01-01T00:00:00Z"},{"n":2,"key":"b","name":"b.pdf","type":""}]}`)})
	var p struct {
		Files []struct {
			Key     string
			Ended   time.Time
			Failure *struct {
				Code string `json:"error_code"`
			}
		}
	}
	systest.NoError(t, json.Unmarshal(state, &p))
	if len(p.Files) != 2 || p.Files[0].Failure != nil || p.Files[1].Ended.IsZero() || p.Files[1].Failure == nil || p.Files[1].Failure.Code != "account_disabled" {
		t.Errorf("state %s", state)
	}
	i, err := remote.NewImports(remote.ImportConfig{})
	systest.NoError(t, err)
	if state := string(i.GiveUp(&transfer.Transfer{ID: "f", State: []byte(`{"file_name":"a.pdf"}`)})); !strings.Contains(state, "account_disabled") || !strings.Contains(state, "a.pdf") {
		t.Errorf("state %s", state)
	}
}
