package auth

import (
	"net/http"
	"sync"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/internal/gcra"
)

// A throttle slows down password guessing: it limits the failures of each name and of each address.
// Once a name has logged in from an address, that pair counts in place of the name. So nobody can
// permanently lock out another user.
type throttle struct {
	now      func() time.Duration
	attempts *gcra.Buckets

	mu    sync.Mutex
	known map[string]bool // pairs of name and address with a successful login
}

// Limits of consecutive failures, and the rate of further attempts.
const (
	loginBurst   = 10
	loginSpacing = 30 * time.Second
	maxKnown     = 20000 // bound of throttle.known
)

var loginRate = gcra.Rate{PerSecond: 1 / loginSpacing.Seconds(), Burst: loginBurst}

func newThrottle() *throttle {
	attempts := gcra.New()
	return &throttle{now: attempts.Now, attempts: attempts, known: make(map[string]bool)}
}

// begin counts an attempt for a name and an address ("" for no address) before its result is known,
// so that many concurrent attempts do not pass together. After success the caller calls succeeded,
// which uncounts it.
func (t *throttle) begin(name, from string) (succeeded func(), err error) {
	now := t.now()
	pair := name + "\x00" + from
	names := []string{name}
	if from != "" {
		t.mu.Lock()
		if t.known[pair] {
			names[0] = pair
		}
		t.mu.Unlock()
		names = append(names, from)
	}
	refund := func(names []string) {
		for _, n := range names {
			t.attempts.GiveBack(n, loginRate, t.now())
		}
	}
	for i, n := range names {
		if a := t.attempts.Take(n, loginRate, now, 1); !a.OK {
			refund(names[:i])
			p := httpapi.NewProblem(http.StatusTooManyRequests, "rate_limit_exceeded", "too many login attempts; try again later")
			p.RetryAfter = a.Retry
			return nil, p
		}
	}
	return func() {
		refund(names)
		if from == "" {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.known) >= maxKnown {
			for old := range t.known { // any entry
				delete(t.known, old)
				break
			}
		}
		t.known[pair] = true
	}, nil
}
