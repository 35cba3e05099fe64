package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/fsblob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// slow are limits for tests of slow clients.
func slow() httpapi.Limits { return httpapi.Limits{MinRate: 1000, Stall: 4 * time.Second} }

// A remote is a service with connections in memory, for a synctest bubble.
type remote struct {
	api
	listener *systest.Listener
	ended    chan string // the path of each request that has ended
}

func serveInMemory(t *testing.T, cfg httpapi.Config) *remote {
	t.Helper()
	r := &remote{listener: systest.Listen(), ended: make(chan string, 100)}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.listener.Dial(ctx) }}
	r.api = api{log: &logtest.Buffer{}, client: &http.Client{Transport: transport}}
	r.start(t, cfg, func(h http.Handler) *httptest.Server {
		srv := &httptest.Server{Listener: r.listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			h.ServeHTTP(w, q)
			r.ended <- q.URL.Path
		})}}
		srv.Start()
		return srv
	})
	t.Cleanup(transport.CloseIdleConnections)
	return r
}

// wait returns when a request ends whose path contains part.
func (r *remote) wait(t *testing.T, part string) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		select {
		case path := <-r.ended:
			if strings.Contains(path, part) {
				return
			}
		case <-limit:
			t.Fatalf("the server waits for the client of %s", part)
		}
	}
}

func (r *remote) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := r.listener.Dial(t.Context())
	systest.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// initiate starts an upload and returns its URL.
func (a *api) initiate(t *testing.T, key string, size int) string {
	t.Helper()
	st, m := a.call(t, key, "POST", "/api/v1/initiate-upload", fmt.Sprintf(`{"file_name":"a.bin","size":%d,"mime_type":"text/plain"}`, size))
	if st != 200 {
		t.Fatalf("%d %v", st, m)
	}
	return m["presigned_urls"].([]any)[0].(string)
}

// wire sends a request header by hand and returns the connection.
func (r *remote) wire(t *testing.T, method, target string, size int, headers ...string) net.Conn {
	t.Helper()
	u, err := url.Parse(target)
	systest.NoError(t, err)
	conn := r.dial(t)
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n", method, u.RequestURI(), size, strings.Join(append(headers, ""), "\r\n"))
	return conn
}

// trickle sends a byte at each interval until done is closed.
func trickle(conn net.Conn, every time.Duration, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(every):
			if _, err := conn.Write([]byte(" ")); err != nil {
				return
			}
		}
	}
}

// The server is a plain http.Server, as embedders may use it. The service itself disconnects slow
// senders, and only them.
func TestSlowSenders(t *testing.T) {
	t.Parallel()
	json := []string{"Authorization: Bearer key-a", "Content-Type: application/json"}
	for _, tt := range []struct {
		name    string
		open    func(t *testing.T, a *remote) net.Conn
		every   time.Duration
		status  int
		request string
	}{
		{"part, trickling", func(t *testing.T, a *remote) net.Conn {
			return a.wire(t, "PUT", a.initiate(t, "key-a", 100_000), 100_000)
		}, 100 * time.Millisecond, 408, ""},
		{"part, standing still", func(t *testing.T, a *remote) net.Conn {
			return a.wire(t, "PUT", a.initiate(t, "key-a", 100_000), 100_000)
		}, time.Hour, 408, ""},
		{"JSON, trickling", func(t *testing.T, a *remote) net.Conn { return a.wire(t, "POST", "/api/v1/do", 100_000, json...) }, 100 * time.Millisecond, 408, ""},
		{"JSON, standing still", func(t *testing.T, a *remote) net.Conn { return a.wire(t, "POST", "/api/v1/do", 100_000, json...) }, time.Hour, 408, ""},
		{"after the answer", func(t *testing.T, a *remote) net.Conn { return a.wire(t, "POST", "/api/v1/do", 100_000) }, 100 * time.Millisecond, 401, ""},
		{"after the answer, nowhere", func(t *testing.T, a *remote) net.Conn { return a.wire(t, "POST", "/nowhere", 100_000) }, time.Hour, 404, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := serveInMemory(t, httpapi.Config{Limits: slow()})
				conn := tt.open(t, a)
				done := make(chan struct{})
				sent := make(chan struct{})
				go func() { defer close(sent); trickle(conn, tt.every, done) }()
				defer func() {
					close(done)
					conn.Close()
					<-sent
				}()
				conn.SetReadDeadline(time.Now().Add(2 * time.Minute)) // of the test, if the server does not close the connection
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				systest.NoError(t, err)
				b, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != tt.status {
					t.Fatalf("%d %s %v, want %d", resp.StatusCode, b, err, tt.status)
				}
				if tt.status == 408 && !bytes.Contains(b, []byte(`"error":"request_timeout"`)) {
					t.Errorf("%s", b)
				}
				// The connection is then closed, although the client keeps sending.
				var timeout net.Error
				if _, err := conn.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
					t.Errorf("the connection is still open: %v", err)
				}
			})
		})
	}

	// Ten times the least rate, for longer than the permitted pause.
	t.Run("slow but well", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			a := serveInMemory(t, httpapi.Config{Limits: slow()})
			n := 2.5 * slow().Stall.Seconds() * 10
			size := int(n) * 1000
			conn := a.wire(t, "PUT", a.initiate(t, "key-a", size), size)
			for range int(n) {
				if _, err := conn.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%v %v", resp, err)
			}
		})
	})
	// The deadlines of a request must not affect the next request on the connection.
	t.Run("connection used again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			a := serveInMemory(t, httpapi.Config{Limits: slow()})
			conn := a.dial(t)
			r := bufio.NewReader(conn)
			for i := range 3 {
				body := `{"ext":"txt"}`
				fmt.Fprintf(conn, "POST /api/v1/supported-operation HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				resp, err := http.ReadResponse(r, nil)
				if err != nil || resp.StatusCode != 200 {
					t.Fatalf("request %d: %v %v", i, resp, err)
				}
				io.Copy(io.Discard, resp.Body)
				time.Sleep(slow().Stall + time.Second)
			}
		})
	})
}

// get sends a GET request and returns the connection, its reader and the response.
func (r *remote) get(t *testing.T, path string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn := r.dial(t)
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-a\r\n\r\n", path)
	b := bufio.NewReaderSize(conn, 512)
	resp, err := http.ReadResponse(b, nil)
	systest.NoError(t, err)
	return conn, b, resp
}

func TestSlowReaders(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) blob.Store{
		"memory": func(t *testing.T) blob.Store { return memblob.New() },
		"file system": func(t *testing.T) blob.Store {
			s, err := fsblob.New(t.TempDir())
			systest.NoError(t, err)
			t.Cleanup(func() { s.Close() })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limits := slow()
				limits.MinFree = -1
				a := serveInMemory(t, httpapi.Config{Limits: limits, Blobs: open(t)})
				content := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB
				key := a.upload(t, "key-a", "a.bin", content)

				_, _, resp := a.get(t, "/v1/download/"+key)
				a.wait(t, "/download/")
				if n, err := io.Copy(io.Discard, resp.Body); err == nil || n >= int64(len(content)) {
					t.Errorf("the client got %d bytes, %v", n, err)
				}

				// Slow but above the least rate, for longer than the permitted pause.
				_, _, resp = a.get(t, "/v1/download/"+key)
				var all bytes.Buffer
				for {
					n, err := io.CopyN(&all, resp.Body, 32<<10)
					if errors.Is(err, io.EOF) || n == 0 {
						break
					}
					if err != nil {
						t.Fatalf("after %d bytes: %v", all.Len(), err)
					}
					time.Sleep(120 * time.Millisecond)
				}
				if all.String() != content {
					t.Errorf("the client got %d bytes of %d", all.Len(), len(content))
				}
			})
		})
	}
}

// busy is an action that reports progress until it is cancelled.
func busy() fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "convert", Engine: "go", Family: "text", Summary: "Works for ever.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}},
	}, func(ctx context.Context, job *fileops.Job) error {
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(50 * time.Millisecond):
				job.Progress(1 - 1/float64(i+2))
			}
		}
	})
}

func TestSlowEventReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSlowEventReader)
}

func testSlowEventReader(t *testing.T) {
	limits := slow()
	limits.MinRate, limits.Drain = 100_000, time.Second // the action runs forever
	a := serveInMemory(t, httpapi.Config{Limits: limits, Actions: []fileops.Action{busy()}, Concurrency: map[string]int{"text": 1}})
	key := a.upload(t, "key-a", "a.txt", "x")
	keys := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%q,", key), 100), ",") // a status of about 50 KiB
	st, m := a.call(t, "key-a", "POST", "/api/v1/do", `{"action":"convert","file_keys":[`+keys+`]}`)
	if st != 200 {
		t.Fatal(m)
	}
	a.get(t, "/api/v1/status/"+m["main_task_id"].(string)+"/events")
	a.wait(t, "/events")
	// A client that reads the events is not disconnected.
	_, r, _ := a.get(t, "/api/v1/status/"+m["main_task_id"].(string)+"/events")
	for end := time.Now().Add(2 * limits.Stall); time.Now().Before(end); {
		if _, err := r.ReadByte(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case path := <-a.ended:
		t.Errorf("%s has ended", path)
	default:
	}
}

// Hostile JSON is rejected or harmless.
func TestHostileJSON(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{})
	mine, foreign := a.upload(t, "key-a", "a.txt", "hello"), a.upload(t, "key-b", "b.txt", "secret")
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n) + strings.Repeat(`]}`, n) }
	for _, tt := range []struct {
		name, body string
		status     int
	}{
		{"deep", `{"action":"convert","file_keys":["` + mine + `"],"parameters":` + deep(60_000) + `}`, 413},
		{"deep, never closed", `{"parameters":` + strings.Repeat(`[`, 1_000_000), 413},
		{"deep, ignored member", `{"x":` + deep(60_000) + `}`, 413},
		{"many members", `{` + strings.Repeat(`"a":1,`, 150_000) + `"action":"convert"}`, 413},
		{"long number", `{"action":"convert","file_keys":["` + mine + `"],"parameters":{"convert_to":` + strings.Repeat("9", 900_000) + `}}`, 400},
		{"too long", `{"action":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
		{"not UTF-8", "{\"action\":\"\xff\xfe\",\"file_keys\":[\"" + mine + "\"]}", 400},
		{"file_keys twice, foreign first", `{"action":"convert","file_keys":["` + foreign + `"],"file_keys":["` + mine + `"],"parameters":{"convert_to":"md"}}`, 200},
		{"file_keys twice, foreign last", `{"action":"convert","file_keys":["` + mine + `"],"file_keys":["` + foreign + `"],"parameters":{"convert_to":"md"}}`, 404},
		{"foreign in other spelling", `{"action":"convert","file_keys":["` + mine + `"],"FILE_KEYS":["` + foreign + `"],"parameters":{"convert_to":"md"}}`, 404},
		{"parameter twice", `{"action":"convert","file_keys":["` + mine + `"],"parameters":{"convert_to":"exe","convert_to":"md"}}`, 200},
		{"parameter twice, wrong one last", `{"action":"convert","file_keys":["` + mine + `"],"parameters":{"convert_to":"md","convert_to":"exe"}}`, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st, m := a.call(t, "key-a", "POST", "/api/v1/do", tt.body)
			if st != tt.status {
				t.Errorf("%d %.300v, want %d", st, fmt.Sprint(m), tt.status)
			}
			if len(fmt.Sprint(m)) > 5000 {
				t.Errorf("the answer has %d bytes", len(fmt.Sprint(m)))
			}
		})
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	rate := httpapi.Rate{PerSecond: 0.001, Burst: 4}
	a := serve(t, httpapi.Config{
		Auth: httpapi.AuthFunc(func(r *http.Request) (httpapi.Principal, error) {
			switch key := httpapi.Key(r); key {
			case "fast":
				return httpapi.Principal{Account: "x", KeyID: key, Rate: httpapi.Unlimited()}, nil
			case "slow", "slow-too":
				return httpapi.Principal{Account: "x", KeyID: key}, nil // same account
			}
			return httpapi.Principal{}, httpapi.ErrUnauthenticated
		}),
		Limits: httpapi.Limits{Rate: rate},
	})
	ask := func(key string) *http.Response {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), "GET", a.URL+"/api/v1/formats", nil)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, b := systest.Send(t, req)
		systest.Check(t, a.check.Response("GET", "/api/v1/formats", resp.StatusCode, resp.Header, b))
		return resp
	}
	left := func(resp *http.Response) string {
		h := resp.Header
		return fmt.Sprint(resp.StatusCode, " ", h.Get("RateLimit-Limit"), " ", h.Get("RateLimit-Remaining"), " ", h.Get("RateLimit-Reset"), " ", h.Get("Retry-After"))
	}
	url := a.initiate(t, "slow", 5)
	for i, want := range []string{"200 4 2 2000 ", "200 4 1 3000 ", "200 4 0 4000 ", "429 4 0 4000 1000", "429 4 0 4000 1000"} {
		// Some seconds may have passed.
		if got := left(ask("slow")); len(got) != len(want) || got[:7] != want[:7] {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
	if got := left(ask("slow-too")); got[:7] != "200 4 3" {
		t.Errorf("another key: %s", got)
	}
	for range 50 {
		if got := left(ask("fast")); got != "200    " {
			t.Fatalf("a key without limit: %s", got)
		}
	}
	// An upload URL continues to work: a part needs no key.
	if st, m := a.call(t, "slow", "PUT", url, "hello"); st != 200 {
		t.Errorf("%d %v", st, m)
	}
	if st, m := a.call(t, "slow", "GET", "/v1/download/aaaaaaaaaaaaaaaaaaaaaaaaaa", ""); st != 429 {
		t.Errorf("a download with the key: %d %v", st, m)
	}
}

func TestInvalidKeys(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{TrustProxy: true, Limits: httpapi.Limits{InvalidKeys: httpapi.Rate{PerSecond: 0.001, Burst: 3}}})
	ask := func(from, key string) int {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), "GET", a.URL+"/api/v1/formats", nil)
		req.Header.Set("X-Forwarded-For", "203.0.113.77, "+from) // the client forges the first element
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultClient.Do(req)
		systest.NoError(t, err)
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		systest.Check(t, a.check.Response("GET", "/api/v1/formats", resp.StatusCode, resp.Header, b))
		return resp.StatusCode
	}
	for i, tt := range []struct {
		from, key string
		want      int
	}{
		{"192.0.2.1", "key-a", 200},
		{"192.0.2.1", "guess-1", 401}, {"192.0.2.1", "guess-2", 401}, {"192.0.2.1", "guess-3", 401},
		{"192.0.2.1", "guess-4", 429},
		{"192.0.2.1", "key-b", 429}, // a correct guess is not revealed
		{"192.0.2.1", "key-a", 200}, // a client with a valid key is not locked out
		{"192.0.2.1", "", 401},      // requests without a key are not affected
		{"192.0.2.2", "key-b", 200}, // nor are other addresses
		{"192.0.2.1", "key-b", 200}, // the key is known now
		{"2001:db8::1", "guess-1", 401}, {"2001:db8::2", "guess-2", 401}, {"2001:db8::3", "guess-3", 401},
		{"2001:db8::4", "guess-4", 429}, // the same network
		{"2001:db8:0:1::4", "guess-4", 401},
	} {
		if got := ask(tt.from, tt.key); got != tt.want {
			t.Errorf("%d: %s with %q: %d, want %d", i, tt.from, tt.key, got, tt.want)
		}
	}
	// Many concurrent requests do not pass together.
	var wg sync.WaitGroup
	var refused atomic.Int32
	for i := range 40 {
		wg.Go(func() {
			if ask("192.0.2.9", fmt.Sprint("guess-", i)) == 429 {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if n := refused.Load(); n != 37 {
		t.Errorf("%d of 40 were refused, want 37", n)
	}
}

// Objects of other accounts look missing: every endpoint gives exactly the response for an invented
// ID.
func TestForeignIsUnknown(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Concurrency: map[string]int{"text": 1}})
	m := a.convert(t, "key-a", `{"convert_to":"md"}`)
	task, input, result := m["main_task_id"].(string), first(m)["input_file_key"].(string), first(m)["file_key"].(string)
	_, session := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", `{"file_name":"a.txt","size":5,"mime_type":"text/plain"}`)
	open := session["file_key"].(string)
	var noTask, noFile = "0b9f1c7e-3d52-4a86-9a4e-5f0f3f1b7c20", "k3v7mzq2d5yhw6tcn4xrfa7p2e"

	do := func(key string) string {
		return fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, key)
	}
	complete := func(key string) string {
		return fmt.Sprintf(`{"file_key":%q,"object_name":"files/%s","upload_id":"q6bn2wdt7rj5ychx3mzk4fav6p","parts":[{"part_number":1,"etag":"d41d8cd98f00b204e9800998ecf8427e"}]}`, key, key)
	}
	covered := make(map[string]bool)
	for _, tt := range []struct {
		method, path, theirs, none string
		body                       func(string) string
	}{
		{"GET", "/api/v1/status/{main_task_id}", task, noTask, nil},
		{"DELETE", "/api/v1/status/{main_task_id}", task, noTask, nil},
		{"GET", "/api/v1/status/{main_task_id}?wait=1s", task, noTask, nil},
		{"GET", "/api/v1/status/{main_task_id}/events", task, noTask, nil},
		{"GET", "/api/v1/operations/{main_task_id}/download", task, noTask, nil},
		{"GET", "/api/v1/status/{main_task_id}/" + input, task, noTask, nil},
		{"GET", "/api/v1/status/{main_task_id}/" + result, task, noTask, nil},
		{"GET", "/api/v1/operations?cursor={main_task_id}", task, noTask, nil},
		{"GET", "/v1/biz/status/{main_task_id}", task, noTask, nil},
		{"GET", "/api/v1/files/{file_key}", input, noFile, nil},
		{"GET", "/api/v1/files/{file_key}?wait=1s", open, noFile, nil},
		{"DELETE", "/api/v1/files/{file_key}", input, noFile, nil},
		{"DELETE", "/api/v1/files/{file_key}", result, noFile, nil},
		{"DELETE", "/api/v1/files/{file_key}", open, noFile, nil},
		{"GET", "/v1/download/{file_key}", input, noFile, nil},
		{"GET", "/v1/download/{file_key}", open, noFile, nil},
		{"GET", "/api/v1/download/{file_key}", input, noFile, nil},
		{"POST", "/api/v1/do", input, noFile, do},
		{"POST", "/api/v1/do", result, noFile, do},
		{"POST", "/api/v1/do", open, noFile, do},
		{"POST", "/api/v1/complete-upload", open, noFile, complete},
		{"POST", "/api/v1/complete-upload", input, noFile, complete},
		{"POST", "/v1/external/complete-upload", open, noFile, complete},
	} {
		ask := func(id string) (int, string) {
			path := strings.NewReplacer("{main_task_id}", id, "{file_key}", id).Replace(tt.path)
			var body io.Reader
			if tt.body != nil {
				body = strings.NewReader(tt.body(id))
			}
			req, err := http.NewRequestWithContext(t.Context(), tt.method, a.URL+path, body)
			systest.NoError(t, err)
			req.Header.Set("Authorization", "Bearer key-b")
			req.Header.Set("X-Request-Id", "same")
			resp, b := systest.Send(t, req)
			for _, varies := range []string{"Date", "RateLimit-Remaining", "RateLimit-Reset"} {
				resp.Header.Del(varies)
			}
			h, _ := json.Marshal(resp.Header)
			return resp.StatusCode, string(h) + strings.ReplaceAll(string(b), id, "ID")
		}
		st, theirs := ask(tt.theirs)
		_, none := ask(tt.none)
		if st != 404 || theirs != none {
			t.Errorf("%s %s: %d\n foreign %s\n unknown %s", tt.method, tt.path, st, theirs, none)
		}
		bare, _, _ := strings.Cut(tt.path, "?")
		covered[tt.method+" "+bare] = true
	}
	// Every endpoint with an ID in its path is tested.
	_, doc := a.call(t, "", "GET", "/openapi.json", "")
	for path, item := range doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			name := strings.ToUpper(method) + " " + path
			takes := strings.Contains(path, "{main_task_id}") || strings.Contains(path, "{file_key}") || strings.HasSuffix(path, "/do") || strings.HasSuffix(path, "complete-upload")
			if !takes || method == "head" || !slices.Contains([]string{"get", "post", "delete", "put"}, method) {
				continue
			}
			if !covered[name] && !covered[strings.Replace(name, "/{file_key}", "/"+input, 1)] {
				t.Errorf("%s was not tried", name)
			}
		}
	}
	// The owner can still see everything.
	if st, m := a.call(t, "key-a", "GET", "/api/v1/status/"+task, ""); st != 200 || m["operation_status"] != "completed" {
		t.Errorf("%d %v", st, m)
	}
	if st, m := a.call(t, "key-a", "DELETE", "/api/v1/files/"+open, ""); st != 200 {
		t.Errorf("%d %v", st, m)
	}
	// Idempotency keys are separate for each owner.
	same := func(key, path, body string) string {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", a.URL+path, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Idempotency-Key", "one")
		resp, err := http.DefaultClient.Do(req)
		systest.NoError(t, err)
		defer resp.Body.Close()
		var m map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&m); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %v %v", resp.StatusCode, m, err)
		}
		return fmt.Sprint(m["main_task_id"], m["file_key"])
	}
	start := `{"file_name":"a.txt","size":5,"mime_type":"text/plain"}`
	if x, y, z := same("key-a", "/api/v1/initiate-upload", start), same("key-a", "/api/v1/initiate-upload", start), same("key-b", "/api/v1/initiate-upload", start); x != y || x == z {
		t.Errorf("uploads %s, %s and, of someone else, %s", x, y, z)
	}
	inB := a.upload(t, "key-b", "b.txt", "hello")
	if x, y, z := same("key-a", "/api/v1/do", do(input)), same("key-a", "/api/v1/do", do(input)), same("key-b", "/api/v1/do", do(inB)); x != y || x == z {
		t.Errorf("operations %s, %s and, of someone else, %s", x, y, z)
	}
}

// tight is a blob store on a disk that fills up.
type tight struct {
	*memblob.Store
	free   atomic.Int64 // free bytes
	failed atomic.Int32 // how often the disk was full
}

func (s *tight) FreeSpace(context.Context) (int64, error)      { return s.free.Load(), nil }
func (s *tight) Sweep(context.Context, time.Time) (int, error) { return 0, nil }
func (s *tight) Move(ctx context.Context, from, to string) error {
	return blob.Move(ctx, s.Store, from, to)
}

func (s *tight) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if s.free.Load() == 0 {
		s.failed.Add(1)
		return fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return s.Store.Put(ctx, key, r, size)
}

// Uploads leave free space for processing. A refused upload can be sent again later.
func TestMinFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testMinFree)
}

func testMinFree(t *testing.T) {
	store := &tight{Store: memblob.New()}
	a := serveInMemory(t, httpapi.Config{Blobs: store, Limits: httpapi.Limits{MinFree: 1000}})
	start := `{"file_name":"a.txt","size":500,"mime_type":"text/plain"}`
	store.free.Store(1499)
	if st, m := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", start); st != 507 || m["error"] != "insufficient_storage" {
		t.Fatalf("%d %v", st, m)
	}
	store.free.Store(1500)
	url := a.initiate(t, "key-a", 500)
	store.free.Store(1499)
	// Refused before the body is read: the client need not send it.
	conn := a.wire(t, "PUT", url, 500)
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 507 || resp.Header.Get("Retry-After") == "" {
		t.Fatalf("%v %v", resp, err)
	}
	store.free.Store(1500)
	if st, m := a.call(t, "", "PUT", url, strings.Repeat("x", 500)); st != 200 {
		t.Errorf("%d %v", st, m)
	}
	// Existing files can be processed even with exactly MinFree left.
	store.free.Store(1 << 30)
	key := a.upload(t, "key-a", "a.txt", "hello")
	store.free.Store(900)
	st, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, key))
	if st != 200 {
		t.Fatalf("%d %v", st, m)
	}
	if _, m = a.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=20s", m["main_task_id"]), ""); m["operation_status"] != "completed" {
		t.Errorf("%v", m)
	}
}

// A result that does not fit on the disk is retried later; the attempt does not count.
func TestResultWithoutSpace(t *testing.T) {
	t.Parallel()
	store := &tight{Store: memblob.New()}
	store.free.Store(1 << 30)
	ops := status.NewMemStore()
	a := serve(t, httpapi.Config{Blobs: store, Operations: ops, Limits: httpapi.Limits{MaxAttempts: 1, MinFree: -1}})
	key := a.upload(t, "key-a", "a.txt", "hello")
	store.free.Store(0)
	_, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, key))
	id := m["main_task_id"].(string)
	systest.Until(t, "a result does not fit", func() bool { return store.failed.Load() > 0 })
	store.free.Store(1 << 30)
	for range 6 {
		if _, m = a.call(t, "key-a", "GET", "/api/v1/status/"+id+"?wait=20s", ""); m["operation_status"] != "queued" && m["operation_status"] != "running" {
			break
		}
	}
	op, err := ops.Get(t.Context(), id)
	if err != nil || op.State != status.Completed || op.Items[0].Attempt != 1 {
		t.Errorf("%+v, %v", op, err)
	}
	if !strings.Contains(a.log.String(), "no space left") {
		t.Errorf("the log does not tell why:\n%s", a.log)
	}
}
