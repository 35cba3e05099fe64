package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
)

// Without a key, an upload has the same response as an unknown file key.
func TestDownloadWithoutKey(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{})
	file, missing := a.upload(t, "key-a", "a.txt", "hello"), strings.Repeat("a", 26)
	answer := func(method, key, credential string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, a.URL+"/v1/download/"+key, nil)
		systest.NoError(t, err)
		req.Header.Set("X-Request-Id", "same")
		if credential != "" {
			req.Header.Set("Authorization", "Bearer "+credential)
		}
		resp, body := systest.Send(t, req)
		resp.Header.Del("Date")
		for name := range resp.Header {
			if strings.HasPrefix(strings.ToLower(name), "ratelimit-") {
				resp.Header.Del(name)
			}
		}
		return fmt.Sprint(resp.Status, resp.Header, string(body))
	}
	for _, tt := range []struct{ credential, status string }{{"", "401"}, {"wrong", "401"}, {"key-b", "404"}} {
		for _, method := range []string{"GET", "HEAD"} {
			there, not := answer(method, file, tt.credential), answer(method, missing, tt.credential)
			if there != not || !strings.HasPrefix(there, tt.status) {
				t.Errorf("%s with the key %q: an upload is answered by\n%s\nand a key that does not exist by\n%s", method, tt.credential, there, not)
			}
		}
	}
	if got := answer("GET", missing, "key-a"); !strings.HasPrefix(got, "404") {
		t.Errorf("the owner of nothing: %s", got)
	}
}

// The connection closes after a request with Transfer-Encoding. Otherwise a proxy that uses a
// Content-Length beside it could be tricked into sending a second request.
func TestTransferEncodingCloses(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{})
	for name, tt := range map[string]struct {
		length string
		close  bool
	}{
		"chunked":                    {"Transfer-Encoding: chunked\r\n", true},
		"chunked and Content-Length": {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", true},
		"Content-Length":             {"Content-Length: 5\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", a.Listener.Addr().String())
			systest.NoError(t, err)
			defer conn.Close()
			systest.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
			// By the Content-Length the body is "0\r\n\r\n"; either way another request follows.
			fmt.Fprintf(conn, "POST /api/v1/do HTTP/1.1\r\nHost: x\r\n%s\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", tt.length)
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			systest.NoError(t, err)
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.Close != tt.close {
				t.Errorf("the connection closes: %t, want %t", resp.Close, tt.close)
			}
			second, err := http.ReadResponse(r, nil)
			if err == nil {
				second.Body.Close()
			}
			if answered := err == nil; answered == tt.close {
				t.Errorf("the next request is answered: %t", answered)
			}
		})
	}
}

// The Host header appears in upload URLs, so it must be a host with an optional port.
func TestHostHeader(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{TrustProxy: true})
	status := func(host, forwarded string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", a.URL+"/api/v1/initiate-upload", strings.NewReader(`{"file_name":"a.txt","size":5,"mime_type":"text/plain"}`))
		systest.NoError(t, err)
		req.Host = host
		req.Header.Set("Authorization", "Bearer key-a")
		req.Header.Set("X-Forwarded-Host", forwarded)
		resp, body := systest.Send(t, req)
		return resp.StatusCode, string(body)
	}
	for _, host := range []string{"files.example", "files.example:8080", "127.0.0.1:1", "[::1]", "[2001:db8::1]:443", "my_upstream", "localhost."} {
		if code, body := status(host, ""); code != 200 || !strings.Contains(body, `"http://`+host+"/") {
			t.Errorf("%s: %d, %s", host, code, body)
		}
	}
	for _, host := range []string{"files.example:", "files.example:99999", "files.example:x", "a@b", "a b", "a;b", "a,b", "::1", "[::1", "[1.2.3.4]", "a:1:2", "*", strings.Repeat("a", 254)} {
		if code, body := status(host, ""); code != 400 {
			t.Errorf("%s: %d, %s", host, code, body)
		}
	}
	if code, body := status("inner", "outer.example"); code != 200 || !strings.Contains(body, `"http://outer.example/`) {
		t.Errorf("behind a proxy: %d, %s", code, body)
	}
	if code, body := status("inner", "outer.example, other"); code != 200 || !strings.Contains(body, `"http://inner/`) {
		t.Errorf("behind a proxy with a bad name: %d, %s", code, body)
	}
}
