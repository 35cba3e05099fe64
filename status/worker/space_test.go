package worker

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpaceWatch looks at the scratch space while items are worked on, and only then.
func TestSpaceWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSpaceWatch(t.TempDir())
		var looks, free atomic.Int64
		free.Store(1 << 30)
		w.free = func(string) (int64, bool) {
			looks.Add(1)
			return free.Load(), true
		}
		seconds := func(want int64, what string) {
			t.Helper()
			synctest.Wait() // for a check in progress
			before := looks.Load()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := looks.Load() - before; got < want*9 || got > want*11 {
				t.Errorf("%s: %d looks in ten seconds, want %d", what, got, want*10)
			}
		}
		seconds(0, "before")
		first := w.watch()
		began := time.Now()
		seconds(4, "one item")
		second := w.watch()
		seconds(4, "two items")
		first()
		seconds(4, "one of two")
		if w.lowSince(began) {
			t.Error("there was no space, although there was")
		}

		// Items that ran while the space was low for a moment can see it.
		free.Store(0)
		time.Sleep(spaceEvery)
		synctest.Wait()
		free.Store(1 << 30)
		time.Sleep(time.Minute)
		if !w.lowSince(began) || w.lowSince(time.Now()) {
			t.Errorf("since the beginning %v, since now %v, want true and false", w.lowSince(began), w.lowSince(time.Now()))
		}
		second()
		seconds(0, "after")
		again := w.watch()
		seconds(4, "again")
		again()
		seconds(0, "after that")
	})
}
