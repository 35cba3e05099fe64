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
	"time"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	r := Rate{PerSecond: 2, Burst: 3}
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	for i, tt := range []struct {
		name      string
		now       float64
		ok        bool
		remaining int
		full      float64
		retry     float64
	}{
		{"a", 0, true, 2, 0.5, 0},
		{"a", 0, true, 1, 1, 0},
		{"a", 0, true, 0, 1.5, 0},
		{"a", 0, false, 0, 1.5, 0.5},
		{"a", 0.25, false, 0, 1.25, 0.25},
		{"b", 0.25, true, 2, 0.5, 0}, // of no concern to others
		{"a", 0.5, true, 0, 1.5, 0},
		{"a", 0.5, false, 0, 1.5, 0.5}, // a refusal costs nothing
		{"a", 100, true, 2, 0.5, 0},    // never more than full
	} {
		got := b.take(tt.name, r, at(tt.now))
		want := allowance{tt.ok, 3, tt.remaining, at(tt.full), at(tt.retry)}
		if got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	b.giveBack("a", r, at(100))
	if got := b.take("a", r, at(100)); got.remaining != 2 {
		t.Errorf("after a token was given back: %+v", got)
	}
	b.giveBack("nobody", r, at(100))

	// Over a long time exactly the rate gets through, whatever is sent.
	n := 0
	for i := range 100_000 {
		if b.take("c", Rate{PerSecond: 10, Burst: 5}, at(200+float64(i)/1000)).ok {
			n++
		}
	}
	if n < 1004 || n > 1005 {
		t.Errorf("%d requests in 100 seconds, want 1000 and a burst of 5", n)
	}
	for _, r := range []Rate{{PerSecond: 1e-9}, {PerSecond: 1e12, Burst: 1}, {PerSecond: 0.5}, {PerSecond: 1e-12, Burst: 1 << 30}} {
		if a := newBuckets().take("x", r, at(1)); !a.ok || a.limit < 1 || a.full < 0 || a.remaining < 0 {
			t.Errorf("%+v: %+v", r, a)
		}
	}
}

// Many names, as an attacker has who owns a network, take bounded memory, and
// do not make others be forgotten who are at their limit.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	r := Rate{PerSecond: 0.01, Burst: 10}
	for range 10 {
		b.take("busy", r, 0)
	}
	for i := range 300_000 {
		b.take(fmt.Sprint(i), r, time.Duration(i))
	}
	total := 0
	for i := range b.shards {
		if n := len(b.shards[i].full); n > shardSize {
			t.Errorf("shard %d has %d buckets", i, n)
		}
		total += len(b.shards[i].full)
	}
	if total < bucketShards*shardSize/2 {
		t.Errorf("only %d buckets are kept", total)
	}
	if b.take("busy", r, time.Second).ok {
		t.Error("the bucket that was empty has been forgotten")
	}
}

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
		{"192.0.2.1:1234", "203.0.113.9, 198.51.100.7", true, "198.51.100.7"}, // what comes before was sent by the client
		{"192.0.2.1:1234", "nonsense", true, "unknown"},
		{"[2001:db8:1:2:3:4:5:6]:1234", "", false, "2001:db8:1:2::"},
		{"[::ffff:192.0.2.1]:1234", "", false, "192.0.2.1"},
		{"[fe80::1%eth0]:1234", "", false, "fe80::"},
		{"@", "", false, "unknown"}, // a UNIX socket
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

// Of what is kept to recognise a repeated request no password can be guessed:
// it depends on a secret. A secret that was replaced is still good for it.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	one, two := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	old, err := newFingerprints([][]byte{one})
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := newFingerprints([][]byte{two, one})
	if err != nil {
		t.Fatal(err)
	}
	other, err := newFingerprints([][]byte{two})
	if err != nil {
		t.Fatal(err)
	}
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

// One request with a key, of ten thousand keys, through the limit only.
func BenchmarkRateLimit(b *testing.B) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("9f1c7e3d-5a86-4a4e-%04d-5f0f3f1b7c20", i)
	}
	buckets := newBuckets()
	r := Rate{PerSecond: 100, Burst: 1000}
	b.Run("take", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			buckets.take(names[i%len(names)], r, buckets.now())
		}
	})
	b.Run("take/parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				buckets.take(names[i%len(names)], r, buckets.now())
			}
		})
	})
	s := &Service{rates: newBuckets(), guard: newGuard(Rate{PerSecond: 1, Burst: 50})}
	s.cfg.Limits.Rate = Rate{PerSecond: 1e9, Burst: 1 << 30}
	s.cfg.Auth = AuthFunc(func(r *http.Request) (Principal, error) { return Principal{Account: "a", KeyID: names[0]}, nil })
	req := httptest.NewRequest("GET", "/", nil)
	req.Header.Set("Authorization", "Bearer fw_"+strings.Repeat("x", 32))
	w := httptest.NewRecorder()
	b.Run("request", func(b *testing.B) { // with the headers, and the guard of wrong keys
		b.ReportAllocs()
		for b.Loop() {
			p, err := s.authenticate(req)
			if err == nil {
				err = s.limit(w, p)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
