package status

import "context"

// A Feed is a [Store] that reports changes made by other processes. A running Tracker
// uses it: watchers see changes at once, and a cancellation stops local items before
// the next heartbeat.
type Feed interface {
	// Changes calls f with changes made by other processes until ctx is done, then
	// returns nil. Delivery is not guaranteed. Changes calls f with an empty slice when
	// it may have missed some.
	Changes(ctx context.Context, f func([]Change)) error
}

// A Change reports that another process changed an operation.
type Change struct {
	ID        string // of the operation
	Cancelled bool   // Cancel was called
}

// follow applies changes made by other processes until ctx is done.
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
		t.cfg.Log.Warn("cannot receive changes from other processes; polling instead", "err", err)
	}
}

// stop cancels the running attempts of a cancelled operation.
func (t *Tracker) stop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.runs[id] {
		a.cancel(errCancelled)
	}
}

// outdate marks all watched operations as stale and wakes their watchers.
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
