package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// Every log line has the node, whatever its format.
func TestLogsNameTheNode(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	systest.NoError(t, err)
	node := host + "/" + strconv.Itoa(os.Getpid())
	for format, want := range map[string]string{"text": " node=" + node, "json": `"node":"` + node + `"`} {
		cfg, _, err := parse(t, nil, "--data-dir", t.TempDir(), "--log-format", format)
		systest.NoError(t, err)
		var out strings.Builder
		log := cfg.logger(&out)
		log.Info("one")
		log.With("operation", "a").WithGroup("g").Error("two", slog.Int("item", 1))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], want) || !strings.Contains(lines[1], want) {
			t.Errorf("%s: %q lacks %s", format, lines, want)
		}
	}
}

// Profiles are served on loopback only, and not to pages of other sites.
func TestProfiles(t *testing.T) {
	t.Parallel()
	for addr, ok := range map[string]bool{"127.0.0.1:6060": true, "localhost:0": true, "[::1]:6060": true, ":6060": false, "0.0.0.0:6060": false, "192.0.2.1:6060": false, "6060": false} {
		if _, _, err := parse(t, nil, "--data-dir", t.TempDir(), "--debug-listen", addr); (err == nil) != ok {
			t.Errorf("--debug-listen %s: %v", addr, err)
		}
	}
	h := profiles()
	for host, want := range map[string]int{"localhost:6060": 200, "127.0.0.1": 200, "[::1]:6060": 200, "evil.example": 403, "evil.example:6060": 403, "192.0.2.1": 403} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/goroutine?debug=1", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("Host %s: %d, want %d", host, w.Code, want)
		}
	}
}
