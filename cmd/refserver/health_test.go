package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/readyz":
			http.NotFound(w, r)
		case broken.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"status":"unavailable","checks":{"bucket":"cannot be reached","database":"ok"}}`)
		default:
			fmt.Fprint(w, `{"status":"ok","checks":{"database":"ok"}}`)
		}
	}))
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	systest.NoError(t, err)
	ask := func(env map[string]string, args ...string) (int, string) {
		var out bytes.Buffer
		code := run(t.Context(), append([]string{"health"}, args...), &out, &out, func(k string) (string, bool) { v, ok := env[k]; return v, ok })
		return code, out.String()
	}
	for _, listen := range []string{"127.0.0.1:" + port, "0.0.0.0:" + port, ":" + port} {
		if code, out := ask(map[string]string{"FILEWRIGHT_LISTEN": listen}); code != 0 || out != "ready\n" {
			t.Errorf("%s: %d %s", listen, code, out)
		}
	}
	broken.Store(true)
	if code, out := ask(nil, "--listen", "127.0.0.1:"+port); code != 1 || !strings.Contains(out, "bucket: cannot be reached") || strings.Contains(out, "database") {
		t.Errorf("not ready: %d %s", code, out)
	}
	srv.Close()
	if code, out := ask(nil, "--listen", "127.0.0.1:"+port); code != 1 {
		t.Errorf("gone: %d %s", code, out)
	}
	if code, out := ask(nil, "--listen", "nonsense"); code != 1 {
		t.Errorf("no address: %d %s", code, out)
	}
}
