package worker

import (
	"cmp"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// lowSpace is how many free bytes of scratch space count as none: engines fail
	// in many ways shortly before the last byte.
	lowSpace = 16 << 20

	spaceEvery = 250 * time.Millisecond // between two checks
)

// A spaceWatch records when the scratch space was full while items ran. Engines report
// that in their own words or not at all, and their files are gone afterwards.
type spaceWatch struct {
	dir  string                                 // "": the system's
	free func(dir string) (n int64, known bool) // how many bytes can be written there
	seen atomic.Int64                           // time when it was last low, in Unix nanoseconds

	mu    sync.Mutex
	items int         // running items
	next  *time.Timer // next check, while items run
}

func newSpaceWatch(dir string) *spaceWatch { return &spaceWatch{dir: dir, free: freeSpace} }

// watch checks the space periodically until the caller calls ended. While no item runs,
// nothing checks.
func (w *spaceWatch) watch() (ended func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.items++; w.items == 1 {
		w.next = time.AfterFunc(spaceEvery, w.check)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.items--; w.items == 0 {
			w.next.Stop()
		}
	}
}

func (w *spaceWatch) check() {
	w.low()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.items > 0 {
		w.next.Reset(spaceEvery)
	}
}

// low reports whether there is no space now. It reports false where the free space is
// unknown.
func (w *spaceWatch) low() bool {
	dir := w.dir
	dir = cmp.Or(dir, os.TempDir())
	free, ok := w.free(dir)
	if !ok || free >= lowSpace {
		return false
	}
	w.seen.Store(time.Now().UnixNano())
	return true
}

// lowSince reports whether there was no space at some time since t.
func (w *spaceWatch) lowSince(t time.Time) bool {
	return w.low() || w.seen.Load() >= t.UnixNano()
}

// errNoSpace marks the failure of an item that a full disk caused.
type errNoSpace struct{ error }

func (e errNoSpace) Unwrap() []error { return []error{e.error, syscall.ENOSPC} }
