package auth

import (
	"net/http"
	"sync"
	"time"

	"github.com/filewright/filewright/httpapi"
)

// A throttle slows down those who try passwords. For each name and each address it
// keeps the time at which all failures will be forgotten (the generic cell rate
// algorithm); for an address from which a name was used successfully, that pair
// counts in place of the name, so that nobody can lock out somebody else for good.
type throttle struct {
	now func() time.Time

	mu    sync.Mutex
	until map[string]time.Time
	known map[string]bool // name and address of successful logins
}

// How many attempts may fail in a row, and how soon another one may follow. The
// bound is that of entries in memory.
const (
	loginBurst   = 10
	loginSpacing = 30 * time.Second
	maxThrottled = 20000
)

func newThrottle() *throttle {
	return &throttle{now: time.Now, until: make(map[string]time.Time), known: make(map[string]bool)}
}

// begin counts an attempt for a name and an address, "" for none, before it is known
// what comes of it, so that many at the same time do not get through together. The
// function it returns gives it back after success.
func (t *throttle) begin(name, from string) (succeeded func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	pair := name + "\x00" + from
	first := name
	if from != "" && t.known[pair] {
		first = pair
	}
	names := []string{first}
	if from != "" {
		names = append(names, from)
	}
	for _, n := range names {
		if over := max(0, t.until[n].Sub(now)) - (loginBurst-1)*loginSpacing; over > 0 {
			p := httpapi.NewProblem(http.StatusTooManyRequests, "rate_limit_exceeded", "too many attempts to log in; try again later")
			p.RetryAfter = over
			return nil, p
		}
	}
	for _, n := range names {
		until := t.until[n]
		if until.Before(now) {
			until = now
			t.makeRoom(now)
		}
		t.until[n] = until.Add(loginSpacing)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, n := range names {
			if until, ok := t.until[n]; ok {
				t.until[n] = until.Add(-loginSpacing)
			}
		}
		if from == "" {
			return
		}
		if len(t.known) >= maxThrottled {
			for old := range t.known { // any
				delete(t.known, old)
				break
			}
		}
		t.known[pair] = true
	}, nil
}

// makeRoom drops entries when there are too many: of a few, those that say nothing
// any more, or else the one that says least.
func (t *throttle) makeRoom(now time.Time) {
	if len(t.until) < maxThrottled {
		return
	}
	victim, n := "", 0
	for name, until := range t.until { // begins anywhere
		if victim == "" || until.Before(t.until[victim]) {
			victim = name
		}
		if n++; n == 8 {
			break
		}
	}
	delete(t.until, victim)
}
