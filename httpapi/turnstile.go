package httpapi

import (
	"context"
	"sync"
	"time"
)

// A turnstile bounds the concurrent requests of a kind that uses much memory, in total and for each
// account. The limit for each account keeps slow clients of one account from blocking the others.
type turnstile struct {
	total, each int // limits

	mu    sync.Mutex
	in    int
	by    map[string]int
	freed chan struct{} // closed when a slot becomes free; nil if nobody waits
}

func newTurnstile(total, each int) *turnstile {
	return &turnstile{total: total, each: each, by: make(map[string]int)}
}

// enter reports whether a request of an account may run now. If so, the caller must call leave
// afterwards.
func (t *turnstile) enter(account string) bool {
	ok, _ := t.try(account)
	return ok
}

func (t *turnstile) try(account string) (ok bool, freed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.in >= t.total || t.by[account] >= t.each {
		if t.freed == nil {
			t.freed = make(chan struct{})
		}
		return false, t.freed
	}
	t.in++
	t.by[account]++
	return true, nil
}

// wait is like enter, but waits for a slot until patience is over or ctx is done.
func (t *turnstile) wait(ctx context.Context, account string, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		ok, freed := t.try(account)
		if ok {
			return true
		}
		select {
		case <-freed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (t *turnstile) leave(account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in--
	if t.by[account]--; t.by[account] == 0 {
		delete(t.by, account)
	}
	if t.freed != nil {
		close(t.freed)
		t.freed = nil
	}
}
