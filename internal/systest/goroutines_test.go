package systest

import (
	"context"
	"runtime/pprof"
	"sync"
	"testing"
)

// Goroutines started by other tests do not count.
func TestGoroutines(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	end := make(chan struct{})
	start := func(label string, n int) {
		pprof.Do(t.Context(), pprof.Labels("test", label), func(context.Context) {
			for range n {
				wg.Go(func() { <-end })
			}
		})
	}
	start(t.Name(), 5)
	start("another test", 100)
	if n, _ := Goroutines(t, t.Name()); n != 5 {
		t.Errorf("%d goroutines, want 5", n)
	}
	close(end)
	wg.Wait()
	if n, _ := Goroutines(t, t.Name()); n != 0 {
		t.Errorf("%d goroutines after their end, want 0", n)
	}
}
