package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/filewright/filewright/httpapi/internal/gcra"
	"github.com/filewright/filewright/internal/systest"
)

func TestGuardIsBounded(t *testing.T) {
	t.Parallel()
	g := newGuard(Rate{PerSecond: 1, Burst: 1})
	for i := range uint64(3 * maxKnown) {
		g.learn(i+1, true)
	}
	if len(g.known) > maxKnown {
		t.Errorf("%d credentials are known", len(g.known))
	}
	for range 5 {
		g.learn(3*maxKnown, true)
	}
	if !g.isKnown(3 * maxKnown) {
		t.Error("the last one is not known")
	}
	g.learn(3*maxKnown, false)
	if g.isKnown(3 * maxKnown) {
		t.Error("a key that is not valid any more is known")
	}
}

func TestClientNetwork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		remote, forwarded string
		trust             bool
		want              string
	}{
		{"192.0.2.1:1234", "", false, "192.0.2.1"},
		{"192.0.2.1:1234", "198.51.100.7", false, "192.0.2.1"},
		{"192.0.2.1:1234", "198.51.100.7", true, "198.51.100.7"},
		{"192.0.2.1:1234", "203.0.113.9, 198.51.100.7", true, "198.51.100.7"}, // the client sent the preceding elements
		{"192.0.2.1:1234", "nonsense", true, "unknown"},
		{"[2001:db8:1:2:3:4:5:6]:1234", "", false, "2001:db8:1:2::"},
		{"[::ffff:192.0.2.1]:1234", "", false, "192.0.2.1"},
		{"[fe80::1%eth0]:1234", "", false, "fe80::"},
		{"@", "", false, "unknown"}, // a Unix socket
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tt.remote
		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tt.forwarded)
		}
		s := &Service{Node: &Node{cfg: Config{TrustProxy: tt.trust}}}
		if got := s.clientNetwork(r); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// Stored fingerprints cannot be used to guess a password: they are keyed. A replaced secret still
// recognises its fingerprints.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	one, two := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	old, err := newFingerprints([][]byte{one})
	systest.NoError(t, err)
	replaced, err := newFingerprints([][]byte{two, one})
	systest.NoError(t, err)
	other, err := newFingerprints([][]byte{two})
	systest.NoError(t, err)
	body := []byte(`{"action":"lock","parameters":{"password":"1234"}}`)
	f := old.of(body)
	sum := sha256.Sum256(body)
	if f == hex.EncodeToString(sum[:]) || f == other.of(body) {
		t.Error("the fingerprint does not depend on the secret")
	}
	if !old.match(f, body) || !replaced.match(f, body) || other.match(f, body) || old.match(f, append(body, ' ')) || old.match("", body) {
		t.Error("fingerprints are not recognised")
	}
}

// Measures only the limit: one request with each of ten thousand keys.
func BenchmarkRateLimit(b *testing.B) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("9f1c7e3d-5a86-4a4e-%04d-5f0f3f1b7c20", i)
	}
	s := &Service{rates: gcra.New(), guard: newGuard(Rate{PerSecond: 1, Burst: 50})}
	s.cfg.Limits.Rate = Rate{PerSecond: 1e9, Burst: 1 << 30}
	s.cfg.Auth = AuthFunc(func(r *http.Request) (Principal, error) { return Principal{Account: "a", KeyID: names[0]}, nil })
	req := httptest.NewRequest("GET", "/", nil)
	req.Header.Set("Authorization", "Bearer fw_"+strings.Repeat("x", 32))
	w := httptest.NewRecorder()
	b.Run("request", func(b *testing.B) { // with the headers and the guard of wrong keys
		b.ReportAllocs()
		for b.Loop() {
			p, err := s.authenticate(req)
			if err == nil {
				err = s.limit(w, p)
			}
			systest.NoError(b, err)
		}
	})
}
