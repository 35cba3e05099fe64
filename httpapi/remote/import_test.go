package remote_test

import (
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
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/minio/minio-go/v7"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/client"
	"github.com/filewright/filewright/httpapi/remote"
	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
)

// imports starts a service with imports.
func (p place) imports(t *testing.T, cfg httpapi.Config, c remote.ImportConfig, resolver *net.Resolver) *server {
	t.Helper()
	return p.start(t, cfg, func(s *server, cfg *httpapi.Config) func(context.Context) error {
		c.Store, c.Exclusive, c.Log = s.db.Transfers(), true, cfg.Log
		if c.Secrets == nil {
			c.Secrets = secrets
		}
		if c.Allow == nil {
			c.Allow = local
		}
		i, err := remote.NewImports(c)
		systest.NoError(t, err)
		if resolver != nil {
			i.SetResolver(resolver)
		}
		cfg.Extensions = append(cfg.Extensions, i.Extension)
		return i.Run
	})
}

type body map[string]any

// download returns the content of an upload.
func (s *server) download(t *testing.T, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/v1/download/"+key, nil)
	systest.NoError(t, err)
	req.Header.Set("Authorization", "Bearer key")
	resp, b := systest.SendBy(t, http.DefaultClient, req)
	if resp.StatusCode != 200 {
		t.Errorf("download: %d %s", resp.StatusCode, b)
	}
	return string(b)
}

// An imported file is a file like an uploaded one.
func TestImport(t *testing.T) {
	t.Parallel()
	s := place{t.TempDir()}.imports(t, httpapi.Config{}, remote.ImportConfig{}, nil)
	var got http.Header
	src := source(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		if d := r.FormValue("disposition"); d != "" {
			w.Header().Set("Content-Disposition", d)
		}
		if to := r.FormValue("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", r.FormValue("type"))
		if r.FormValue("chunked") != "" {
			http.NewResponseController(w).Flush()
		}
		io.WriteString(w, "hello")
	})
	for _, tt := range []struct{ path, name, wantName, wantType string }{
		{"/a/report.txt", "", "report.txt", "text/plain"},
		{"/a/Gr%C3%BC%C3%9Fe.txt?x=1#fragment", "", "Grüße.txt", "text/plain"},
		{"/a/report.txt?chunked=1&type=text/csv", "", "report.txt", "text/csv"},
		{"/a/report.txt", "../../my.txt", "my.txt", "text/plain"},
		{"/get?disposition=" + url.QueryEscape(`attachment; filename="x/y.txt"`), "", "y.txt", "text/plain"},
		{"/get?disposition=" + url.QueryEscape(`attachment; filename*=UTF-8''%e2%82%ac.txt`), "", "€.txt", "text/plain"},
		{"/get?type=application/pdf", "", "get.pdf", "application/pdf"},
		{"/?type=text/plain", "", "file.txt", "text/plain"},
		{"/", "", "file", "application/octet-stream"},
		{"/f.txt?to=/blob/1234", "", "f.txt", "text/plain"},
		{"/f?to=/blob/b.txt", "", "b.txt", "text/plain"},
	} {
		st, m := s.call(t, "POST", "/api/v1/import", body{"url": src.URL + tt.path, "file_name": tt.name})
		if st != 200 || m["state"] != "ready" {
			t.Errorf("%s: %d %v", tt.path, st, m)
			continue
		}
		key := m["file_key"].(string)
		if st, m := s.call(t, "GET", "/api/v1/files/"+key, nil); st != 200 || m["state"] != "ready" || m["file_name"] != tt.wantName || m["mime_type"] != tt.wantType || m["size"] != 5.0 || m["expires_at"] == nil {
			t.Errorf("%s: %d %v, want %s", tt.path, st, m, tt.wantName)
		}
		if b := s.download(t, key); b != "hello" {
			t.Errorf("%s: %q", tt.path, b)
		}
		if st, _ := s.callAs(t, "other", "GET", "/api/v1/files/"+key, nil); st != 404 {
			t.Errorf("another account gets %d", st)
		}
	}
	// The headers of the client, and those of the transfer.
	st, m := s.call(t, "POST", "/api/v1/import", body{"url": src.URL + "/h.txt", "headers": body{"authorization": "Bearer s3cret", "X-A": "1", "User-Agent": "mine"}})
	if st != 200 || got.Get("Authorization") != "Bearer s3cret" || got.Get("X-A") != "1" || got.Get("User-Agent") != "mine" || got.Get("Accept-Encoding") != "identity" {
		t.Errorf("%d %v, request %v", st, m, got)
	}
	// An operation takes it.
	st, op := s.call(t, "POST", "/api/v1/do", body{"action": "convert", "file_keys": []any{m["file_key"]}, "parameters": body{"convert_to": "md"}})
	if st != 200 {
		t.Fatalf("%d %v", st, op)
	}
	if _, op = s.call(t, "GET", fmt.Sprintf("/api/v1/status/%s?wait=30s", op["main_task_id"]), nil); op["operation_status"] != "completed" {
		t.Errorf("%v", op)
	}
	// The client for Go.
	c := &client.Client{BaseURL: s.URL, Key: "key"}
	key, err := c.Import(t.Context(), client.Import{URL: src.URL + "/c.txt", Headers: map[string]string{"Authorization": "Bearer s3cret"}})
	systest.NoError(t, err)
	if b := s.download(t, key); b != "hello" {
		t.Errorf("%q", b)
	}
	if _, err := c.Import(t.Context(), client.Import{URL: "ftp://example.com/a.txt"}); !errors.Is(err, &client.Error{Slug: "url_scheme"}) {
		t.Errorf("error is %v", err)
	}
	if strings.Contains(s.log.String(), "s3cret") {
		t.Error("the log has a secret")
	}
	for _, tt := range []struct {
		body  body
		param string
	}{
		{body{}, "url"},
		{body{"url": "x"}, ""},
		{body{"url": src.URL, "headers": body{"Host": "x"}}, "headers"},
		{body{"url": src.URL, "headers": body{"Transfer-Encoding": "chunked"}}, "headers"},
		{body{"url": src.URL, "headers": body{"a b": "x"}}, "headers"},
		{body{"url": src.URL, "headers": body{"A": "x\r\nB: y"}}, "headers"},
		{body{"url": src.URL, "headers": body{"A": strings.Repeat("x", 9000)}}, "headers"},
		{body{"url": src.URL, "headers": 1}, "headers"},
		{body{"url": src.URL, "file_name": strings.Repeat("x", 2000)}, "file_name"},
		{body{"url": src.URL, "wait": "soon"}, "wait"},
		{body{"url": src.URL + "/" + strings.Repeat("x", 9000)}, "url"},
	} {
		if st, m := s.call(t, "POST", "/api/v1/import", tt.body); st != 400 || tt.param != "" && m["param"] != tt.param {
			t.Errorf("%.80v: %d %v", fmt.Sprint(tt.body), st, m)
		}
	}
}

// rebinding returns a resolver that gives a name these addresses, one after another, and then always the last.
func rebinding(t *testing.T, addresses ...[4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	systest.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: addresses[0]},
				}}
				addresses = addresses[min(1, len(addresses)-1):]
			}
			if out, err := m.Pack(); err == nil {
				conn.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// Every refusal names its rule, and leaves nothing behind.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	var mux http.ServeMux
	src := source(t, mux.ServeHTTP)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(src.URL, "http://"))
	secure := httptest.NewTLSServer(&mux)
	secure.Config.ErrorLog = src.Config.ErrorLog
	t.Cleanup(secure.Close)
	closed := systest.FreeAddr(t)

	endless := func(w http.ResponseWriter, r *http.Request) {
		for _, err := w.Write(make([]byte, 64<<10)); err == nil; _, err = w.Write(make([]byte, 64<<10)) {
		}
	}
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	mux.HandleFunc("/endless.txt", endless)
	mux.HandleFunc("/large.txt", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(limit+1))
		endless(w, r)
	})
	mux.HandleFunc("/silent.txt", hang)
	mux.HandleFunc("/stalls.txt", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		hang(w, r)
	})
	mux.HandleFunc("/slow.txt", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, ".")
			http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	mux.HandleFunc("/short.txt", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
	})
	mux.HandleFunc("/breaks.txt", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/gzip.txt", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "x")
	})
	mux.HandleFunc("/empty-location", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusFound) })
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("u"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
	})
	mux.HandleFunc("/ok.txt", text("hello"))
	to := func(u string) string { return src.URL + "/to?u=" + url.QueryEscape(u) }

	conf := &remote.ImportConfig{Header: 500 * time.Millisecond, TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig}
	limits := httpapi.Limits{FileSize: limit, Stall: 500 * time.Millisecond, MinRate: 1 << 10}
	s := place{t.TempDir()}.imports(t, httpapi.Config{Limits: limits}, *conf, rebinding(t, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 2}))
	base := s.left(t)
	if st, m := s.call(t, "POST", "/api/v1/import", body{"url": secure.URL + "/ok.txt"}); st != 200 {
		t.Fatalf("%d %v", st, m)
	} else if st, m := s.call(t, "DELETE", "/api/v1/files/"+m["file_key"].(string), nil); st != 200 {
		t.Fatalf("%d %v", st, m)
	}
	for _, tt := range []struct {
		url, slug string
		status    int
	}{
		{"ftp://127.0.0.1/a.txt", "url_scheme", 400},
		{"file:///etc/passwd", "url_scheme", 400},
		{"//127.0.0.1/a.txt", "url_scheme", 400},
		{"http://user:pass@127.0.0.1/a.txt", "url_credentials", 400},
		{"http:///a.txt", "invalid_request", 400},
		{"http://127.0.0.1:99999/", "invalid_request", 400},
		{"http://10.0.0.1/a.txt", "url_address", 400},
		{"http://[::1]:" + port + "/ok.txt", "url_address", 400},
		{"http://169.254.169.254/latest/meta-data", "url_address", 400},
		{"http://[::ffff:10.0.0.1]/", "url_address", 400},
		{"http://127.0.0.2:" + port + "/ok.txt", "url_address", 400},
		{to("http://127.0.0.2:" + port + "/ok.txt"), "url_address", 400},
		{to("http://10.0.0.1/"), "url_address", 400},
		{to("//10.0.0.1/"), "url_address", 400},
		{to("file:///etc/passwd"), "url_scheme", 400},
		{to("http://a:b@127.0.0.1:" + port + "/ok.txt"), "url_credentials", 400},
		// The name has an allowed address first, and another one when the redirect is followed.
		{"http://rebinds.test:" + port + "/to?u=/ok.txt", "url_address", 400},
		{"http://other.test:" + port + "/ok.txt", "url_address", 400},
		{to("/to?u=/to%3Fu%3D/to"), "url_redirect", 422},
		{src.URL + "/empty-location", "url_redirect", 422},
		{to("http://%zz/"), "url_redirect", 422},
		{secure.URL + "/to?u=" + url.QueryEscape(src.URL+"/ok.txt"), "url_redirect", 422},
		{src.URL + "/status/404", "url_status", 422},
		{src.URL + "/status/500", "url_status", 422},
		{src.URL + "/status/204", "url_status", 422},
		{src.URL + "/status/206", "url_status", 422},
		{"http://" + closed + "/a.txt", "url_unreachable", 422},
		{strings.Replace(src.URL, "http:", "https:", 1) + "/ok.txt", "url_unreachable", 422},
		{src.URL + "/gzip.txt", "url_encoding", 422},
		{src.URL + "/short.txt", "url_incomplete", 422},
		{src.URL + "/breaks.txt", "url_incomplete", 422},
		{src.URL + "/silent.txt", "url_timeout", 422},
		{src.URL + "/stalls.txt", "url_timeout", 422},
		{src.URL + "/slow.txt", "url_timeout", 422},
		{src.URL + "/large.txt", "too_large", 413},
		{src.URL + "/endless.txt", "too_large", 413},
	} {
		st, m := s.call(t, "POST", "/api/v1/import", body{"url": tt.url})
		if st != tt.status || m["error"] != tt.slug {
			t.Errorf("%s: %d %v, want %d %s", tt.url, st, m, tt.status, tt.slug)
		}
		s.empty(t, base)
	}
	// A server that always redirects.
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	if st, m := s.call(t, "POST", "/api/v1/import", body{"url": src.URL + "/loop"}); st != 422 || m["error"] != "url_redirect" {
		t.Errorf("%d %v", st, m)
	}
	// The same later: the state of the file has the reason until it is deleted.
	st, m := s.call(t, "POST", "/api/v1/import?wait=0", body{"url": src.URL + "/status/404", "file_name": "a.txt"})
	if st != 202 || m["location"] != "/api/v1/files/"+m["file_key"].(string) {
		t.Fatalf("%d %v", st, m)
	}
	key := m["file_key"].(string)
	if st, m = s.call(t, "GET", "/api/v1/files/"+key+"?wait=30s", nil); st != 200 || m["state"] != "failed" || m["error_code"] != "url_status" || m["file_name"] != "a.txt" {
		t.Errorf("%d %v", st, m)
	}
	if st, m := s.call(t, "POST", "/api/v1/do", body{"action": "convert", "file_keys": []any{key}, "parameters": body{"convert_to": "md"}}); st != 409 || m["error"] != "upload_incomplete" {
		t.Errorf("%d %v", st, m)
	}
	if st, _ := s.callAs(t, "other", "DELETE", "/api/v1/files/"+key, nil); st != 404 {
		t.Errorf("another account deletes: %d", st)
	}
	if st, m := s.call(t, "DELETE", "/api/v1/files/"+key, nil); st != 200 {
		t.Errorf("%d %v", st, m)
	}
	if st, _ := s.call(t, "GET", "/api/v1/files/"+key, nil); st != 404 {
		t.Errorf("deleted: %d", st)
	}
	s.empty(t, base)
}

// Credentials are sent only to the host of the URL.
func TestImportHeadersStay(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	record := func(name string, next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			seen <- name + r.URL.Path + " " + r.Header.Get("Authorization") + r.Header.Get("X-Token")
			next(w, r)
		}
	}
	second := source(t, record("second", text("hello")))
	first := source(t, record("first", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.txt":
			http.Redirect(w, r, "/b.txt", http.StatusMovedPermanently)
		case "/b.txt":
			http.Redirect(w, r, second.URL+"/c.txt", http.StatusSeeOther)
		}
	}))
	s := place{t.TempDir()}.imports(t, httpapi.Config{}, remote.ImportConfig{}, nil)
	st, m := s.call(t, "POST", "/api/v1/import", body{"url": first.URL + "/a.txt", "headers": body{"Authorization": "s3cret", "X-Token": "t"}})
	if st != 200 {
		t.Fatalf("%d %v", st, m)
	}
	for _, want := range []string{"first/a.txt s3crett", "first/b.txt s3crett", "second/c.txt "} {
		if got := <-seen; got != want {
			t.Errorf("request %q, want %q", got, want)
		}
	}
}

// An accepted import survives a restart of the service, under the same key.
func TestImportContinues(t *testing.T) {
	t.Parallel()
	var block atomic.Bool
	block.Store(true)
	started := make(chan struct{}, 10)
	src := source(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hel")
		if block.Load() {
			http.NewResponseController(w).Flush()
			started <- struct{}{}
			<-r.Context().Done()
			return
		}
		io.WriteString(w, "lo")
	})
	p := place{t.TempDir()}
	s := p.imports(t, httpapi.Config{}, remote.ImportConfig{}, nil)
	accept := func(name string) string {
		st, m := s.call(t, "POST", "/api/v1/import", body{"url": src.URL + "/" + name, "wait": 0})
		if st != 202 || m["state"] != "importing" {
			t.Fatalf("%d %v", st, m)
		}
		<-started
		return m["file_key"].(string)
	}
	key := accept("a.txt")
	if st, m := s.call(t, "GET", "/api/v1/files/"+key, nil); st != 200 || m["state"] != "importing" {
		t.Errorf("%d %v", st, m)
	}
	if st, m := s.call(t, "POST", "/api/v1/do", body{"action": "convert", "file_keys": []any{key}, "parameters": body{"convert_to": "md"}}); st != 409 || m["error"] != "upload_incomplete" || m["param"] != "file_keys[0]" {
		t.Errorf("%d %v", st, m)
	}
	b, err := json.Marshal(s.left(t))
	systest.NoError(t, err)
	if !bytes.Contains(b, []byte("1 of import")) {
		t.Errorf("left: %s", b)
	}
	s.stop()
	if strings.Contains(string(systest.ReadFile(t, p.dir+"/db")), src.URL) {
		t.Error("the database has the URL")
	}
	block.Store(false)
	s = p.imports(t, httpapi.Config{}, remote.ImportConfig{}, nil)
	if st, m := s.call(t, "GET", "/api/v1/files/"+key+"?wait=30s", nil); st != 200 || m["state"] != "ready" || m["file_name"] != "a.txt" {
		t.Errorf("%d %v", st, m)
	}
	if got := s.download(t, key); got != "hello" {
		t.Errorf("%q", got)
	}

	// With another secret the request is lost, which the state says.
	block.Store(true)
	key = accept("b.txt")
	s.stop()
	s = p.imports(t, httpapi.Config{}, remote.ImportConfig{Secrets: [][]byte{[]byte("another secret..")}}, nil)
	if st, m := s.call(t, "GET", "/api/v1/files/"+key+"?wait=30s", nil); st != 200 || m["state"] != "failed" || m["error_code"] != "internal_error" {
		t.Errorf("%d %v", st, m)
	}
}

// A client that disconnects, or deletes the file, stops its import.
func TestImportStops(t *testing.T) {
	t.Parallel()
	started, stopped := make(chan struct{}, 10), make(chan struct{}, 10)
	src := source(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		started <- struct{}{}
		<-r.Context().Done()
		stopped <- struct{}{}
	})
	s := place{t.TempDir()}.imports(t, httpapi.Config{}, remote.ImportConfig{Accepted: 2}, nil)
	base := s.left(t)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/api/v1/import", strings.NewReader(fmt.Sprintf(`{"url":%q}`, src.URL)))
	systest.NoError(t, err)
	req.Header.Set("Authorization", "Bearer key")
	go func() {
		<-started
		leave()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		t.Errorf("status %d", resp.StatusCode)
		resp.Body.Close()
	}
	<-stopped
	s.empty(t, base)

	var keys []string
	for range 2 {
		_, m := s.call(t, "POST", "/api/v1/import?wait=0s", body{"url": src.URL})
		keys = append(keys, m["file_key"].(string))
		<-started
	}
	if st, m := s.call(t, "POST", "/api/v1/import", body{"url": src.URL}); st != 429 || m["error"] != "queue_full" {
		t.Errorf("%d %v", st, m)
	}
	for _, key := range keys {
		if st, m := s.call(t, "DELETE", "/api/v1/files/"+key, nil); st != 200 {
			t.Errorf("%d %v", st, m)
		}
		<-stopped
	}
	s.empty(t, base)
}

// The quotas of uploads are those of imports.
func TestImportQuota(t *testing.T) {
	t.Parallel()
	var key string
	s := place{t.TempDir()}.start(t, httpapi.Config{}, func(s *server, cfg *httpapi.Config) func(context.Context) error {
		accounts := auth.New(auth.Config{Accounts: s.db.Accounts(), Keys: s.db.Keys(), Sessions: s.db.Sessions(), Usage: s.db})
		_, _, err := accounts.Create(t.Context(), auth.NewAccount{Name: "alice", ID: "alice", Limits: &account.Limits{StoredBytes: 8}})
		systest.NoError(t, err)
		key, _, err = accounts.Keys().Create(t.Context(), auth.NewKey{Name: "k", Account: "alice"})
		systest.NoError(t, err)
		cfg.Auth = accounts
		i, err := remote.NewImports(remote.ImportConfig{Store: s.db.Transfers(), Allow: local})
		systest.NoError(t, err)
		cfg.Extensions = append(cfg.Extensions, i.Extension)
		return i.Run
	})
	src := source(t, text("hello"))
	if st, m := s.callAs(t, key, "POST", "/api/v1/import", body{"url": src.URL + "/a.txt"}); st != 200 {
		t.Fatalf("%d %v", st, m)
	}
	base := s.left(t)
	if st, m := s.callAs(t, key, "POST", "/api/v1/import", body{"url": src.URL + "/b.txt"}); st != 429 || m["error"] != "quota_exceeded" {
		t.Errorf("%d %v", st, m)
	}
	s.empty(t, base)
}

// A presigned URL of a bucket is a URL like any other.
func TestImportFromBucket(t *testing.T) {
	t.Parallel()
	s3 := s3test.Own(t, "inputs")
	c, err := s3.Client()
	systest.NoError(t, err)
	content := strings.Repeat("from a bucket ", 500_000)
	_, err = c.PutObject(t.Context(), "inputs", "dir/in put.txt", strings.NewReader(content), int64(len(content)), "", "", minio.PutObjectOptions{ContentType: "text/plain"})
	systest.NoError(t, err)
	u, err := c.Presign(t.Context(), "GET", "inputs", "dir/in put.txt", time.Hour, nil)
	systest.NoError(t, err)
	s := place{t.TempDir()}.imports(t, httpapi.Config{}, remote.ImportConfig{}, nil)
	st, m := s.call(t, "POST", "/api/v1/import", body{"url": u.String()})
	if st != 200 {
		t.Fatalf("%d %v", st, m)
	}
	if got := s.download(t, m["file_key"].(string)); got != content {
		t.Errorf("%d bytes, want %d", len(got), len(content))
	}
	if _, m := s.call(t, "GET", "/api/v1/files/"+m["file_key"].(string), nil); m["file_name"] != "in put.txt" {
		t.Errorf("%v", m)
	}
	u.RawQuery = strings.Replace(u.RawQuery, "X-Amz-Signature=", "X-Amz-Signature=0", 1)
	base := s.left(t)
	if st, m := s.call(t, "POST", "/api/v1/import", body{"url": u.String()}); st != 422 || m["error"] != "url_status" || !strings.Contains(fmt.Sprint(m["detail"]), "403") {
		t.Errorf("%d %v", st, m)
	}
	s.empty(t, base)
}
