package httpapi

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// lowSpace is how many free bytes of scratch space are as good as none:
	// engines fail in all kinds of ways shortly before the last byte.
	lowSpace = 16 << 20

	spaceEvery = 250 * time.Millisecond // between two looks
	spaceWait  = 10 * time.Second       // before an item is begun again that found no space
)

// A spaceWatch knows whether the scratch space has been full lately. Engines say
// so in their own words or not at all, and their files are gone when we look.
type spaceWatch struct {
	dir  string       // "": that of the system
	seen atomic.Int64 // when it was last low, in Unix nanoseconds
}

// run looks until ctx is done.
func (w *spaceWatch) run(ctx context.Context) {
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	for {
		w.low()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// low tells whether there is no space now. Where that cannot be known there is.
func (w *spaceWatch) low() bool {
	dir := w.dir
	if dir == "" {
		dir = os.TempDir()
	}
	free, ok := freeSpace(dir)
	if !ok || free >= lowSpace {
		return false
	}
	w.seen.Store(time.Now().UnixNano())
	return true
}

// lowSince tells whether there was no space at some time since t.
func (w *spaceWatch) lowSince(t time.Time) bool {
	return w.low() || w.seen.Load() >= t.UnixNano()
}

// errNoSpace marks the failure of an item that is the fault of a full disk.
type errNoSpace struct{ error }

func (e errNoSpace) Unwrap() []error { return []error{e.error, syscall.ENOSPC} }
