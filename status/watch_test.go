package status

import "testing"

// Watchers hear that a queued item waits, for what, and that it waits no more, even if they
// miss the attempt in between.
func TestWatchersSeeWaiting(t *testing.T) {
	t.Parallel()
	item := func(w *Waiting) *Operation {
		return &Operation{Items: []Item{{State: Queued, Waiting: w}}}
	}
	idle, disk, storage := item(nil), item(&Waiting{Reason: WaitDisk}), item(&Waiting{Reason: WaitStorage})
	for _, tt := range []struct {
		a, b *Operation
		want bool
	}{{idle, disk, true}, {disk, storage, true}, {storage, idle, true}, {disk, item(&Waiting{Reason: WaitDisk}), false}, {idle, item(nil), false}} {
		if got := changed(tt.a, tt.b); got != tt.want {
			t.Errorf("from %v to %v: changed is %v, want %v", tt.a.Items[0].Waiting, tt.b.Items[0].Waiting, got, tt.want)
		}
	}
}
