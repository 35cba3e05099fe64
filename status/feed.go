package status

import "context"

// A Feed is a [Store] that tells of changes that other processes make. A Tracker
// uses it while it runs: watchers see changes at once, and a cancellation stops
// items that are worked on here before the next heartbeat.
type Feed interface {
	// Changes calls f with changes that other processes have made, until ctx
	// is done, then it returns nil. No change is certain to be told. f is
	// called with none when some may have been missed.
	Changes(ctx context.Context, f func([]Change)) error
}

// A Change tells that another process has changed an operation.
type Change struct {
	ID        string // of the operation
	Cancelled bool   // Cancel was called
}

// follow takes note of changes by other processes until ctx is done.
func (t *Tracker) follow(ctx context.Context) {
	feed, ok := t.cfg.Store.(Feed)
	if !ok {
		return
	}
	if err := feed.Changes(ctx, func(changes []Change) {
		if len(changes) == 0 {
			t.heartbeat(ctx)
			t.hub.outdate()
		}
		for _, c := range changes {
			if c.Cancelled {
				t.stop(c.ID)
			}
			t.hub.changed(&Operation{ID: c.ID}, true)
		}
	}); err != nil && ctx.Err() == nil {
		t.cfg.Log.Warn("changes by other processes are noticed late", "error", err)
	}
}

// stop ends the attempts at items of an operation that was cancelled.
func (t *Tracker) stop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.runs[id] {
		a.cancel(errCancelled)
	}
}

// outdate has all watched operations read again.
func (h *hub) outdate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, tp := range h.topics {
		tp.outdate(0)
		if tp.changed != nil {
			close(tp.changed)
			tp.changed = nil
		}
	}
}
