package sqlstore

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// Commits wait for the disk unless all transactions of their batch are soft.
func TestSoft(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "x.db")})
	systest.NoError(t, err)
	t.Cleanup(func() { systest.Check(t, db.Close()) })
	w := db.engine.(*sqlite).w
	const normal, full = 1, 2 // of PRAGMA synchronous
	// run runs one transaction for each element, all in one batch, and returns what it sees.
	run := func(soft ...bool) []int {
		seen := make([]int, len(soft))
		begun, wait := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() { // until all others wait
			systest.Check(t, w.run(t.Context(), true, func(context.Context, tx) error { close(begun); <-wait; return nil }))
		})
		<-begun
		for i, s := range soft {
			all.Go(func() {
				systest.Check(t, w.run(t.Context(), s, func(ctx context.Context, t tx) error {
					return t.(*conn).QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&seen[i])
				}))
			})
		}
		systest.Until(t, "all transactions wait", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.queue) == len(soft)
		})
		close(wait)
		all.Wait()
		return seen
	}
	for _, c := range []struct {
		soft []bool
		want int
	}{
		{[]bool{true}, normal}, {[]bool{true, true, true}, normal}, {[]bool{false}, full}, {[]bool{false, false}, full},
		{[]bool{true, false, true}, full}, {[]bool{true, true}, normal}, {[]bool{false}, full},
	} {
		for i, got := range run(c.soft...) {
			if got != c.want {
				t.Errorf("soft %v: transaction %d runs with synchronous = %d, want %d", c.soft, i, got, c.want)
			}
		}
	}
}
