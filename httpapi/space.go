package httpapi

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// lowSpace is how many free bytes of scratch space are as good as none:
	// engines fail in all kinds of ways shortly before the last byte.
	lowSpace = 16 << 20

	spaceEvery = 250 * time.Millisecond // between two looks
)

// A spaceWatch knows whether the scratch space has been full while items were worked
// on. Engines say so in their own words or not at all, and their files are gone when we
// look.
type spaceWatch struct {
	dir  string                                 // "": that of the system
	free func(dir string) (n int64, known bool) // how many bytes can be written there
	seen atomic.Int64                           // when it was last low, in Unix nanoseconds

	mu    sync.Mutex
	items int         // that are being worked on
	next  *time.Timer // when to look again, if there are some
}

func newSpaceWatch(dir string) *spaceWatch { return &spaceWatch{dir: dir, free: freeSpace} }

// watch looks until the work on an item has ended, which is told by the function that it
// returns. When nothing is worked on nobody looks.
func (w *spaceWatch) watch() (ended func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.items++; w.items == 1 {
		w.next = time.AfterFunc(spaceEvery, w.look)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.items--; w.items == 0 {
			w.next.Stop()
		}
	}
}

func (w *spaceWatch) look() {
	w.low()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.items > 0 {
		w.next.Reset(spaceEvery)
	}
}

// low tells whether there is no space now. Where that cannot be known there is.
func (w *spaceWatch) low() bool {
	dir := w.dir
	if dir == "" {
		dir = os.TempDir()
	}
	free, ok := w.free(dir)
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
