package status_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// One owner's long items occupy a queue. Owners that come later get the overflow slot,
// one beyond the limit, and no item is stopped.
func TestOverflow(t *testing.T) {
	t.Parallel()
	const long = time.Hour
	for _, tt := range []struct {
		name  string
		limit int
		wait  time.Duration
		want  map[string]time.Duration // owner → when the first item starts
		most  int
	}{
		// alice occupies both slots when bob comes, and bob the overflow slot when
		// carol comes. In an hour both of alice's items finish. Her last turn was so
		// long ago that one of her items starts before carol's.
		{"two places", 2, 2 * time.Second, map[string]time.Duration{"alice": 0, "bob": 12 * time.Second, "carol": long + 12*time.Second}, 3},
		{"one place", 1, 2 * time.Second, map[string]time.Duration{"alice": 0, "bob": 12 * time.Second, "carol": long}, 2},
		{"longer wait", 2, time.Minute, map[string]time.Duration{"alice": 0, "bob": 70 * time.Second, "carol": long + 70*time.Second}, 3},
		{"no overflow", 2, 0, map[string]time.Duration{"alice": 0, "bob": long, "carol": 2 * long}, 2},
		{"room for all", 600, 2 * time.Second, map[string]time.Duration{"alice": 0, "bob": 10 * time.Second, "carol": 20 * time.Second}, 502},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := status.NewMemStore()
				var mu sync.Mutex
				running, most := 0, 0
				first := make(map[string]time.Duration)
				start := time.Now()
				tr := newTracker(t, status.Config{
					Store: s, Limits: map[string]int{"pdf": tt.limit},
					Dispatcher:  status.NewLocal(s, &status.LocalOptions{OverflowWait: tt.wait}),
					WorkTimeout: func(string) time.Duration { return -1 }, QueueTimeout: -1, Retention: -1, Exclusive: true,
					Handler: status.HandlerFunc(func(ctx context.Context, c *status.Claim, _ func(float64)) status.Outcome {
						mu.Lock()
						running++
						most = max(most, running)
						if _, ok := first[c.Op.Owner]; !ok {
							first[c.Op.Owner] = time.Since(start)
						}
						mu.Unlock()
						defer func() { mu.Lock(); running--; mu.Unlock() }()
						select {
						case <-time.After(long):
						case <-ctx.Done():
						}
						return status.Outcome{}
					}),
				})
				stop := run(t, tr, 0)
				submit := func(owner string, n int) {
					op := status.Operation{Owner: owner, Action: "convert"}
					for range n {
						op.Items = append(op.Items, status.Item{Queue: "pdf"})
					}
					if _, err := tr.Submit(t.Context(), op); err != nil {
						t.Fatal(err)
					}
				}
				submit("alice", 500)
				time.Sleep(10 * time.Second)
				mu.Lock()
				if want := min(tt.limit, 500); running != want {
					t.Errorf("alone, alice has %d items running, want %d", running, want)
				}
				mu.Unlock()
				submit("bob", 1)
				time.Sleep(10 * time.Second)
				submit("carol", 1)
				time.Sleep(2*long + time.Minute)
				stop()
				for owner, want := range tt.want {
					if got := first[owner].Truncate(time.Second); got != want {
						t.Errorf("%s starts after %v, want %v", owner, got, want)
					}
				}
				if most != tt.most {
					t.Errorf("%d items ran at once, want %d", most, tt.most)
				}
			})
		})
	}
}

// Owners with short items are served in turn and need no overflow slot.
func TestNoOverflowAmongShortItems(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		s := status.NewMemStore()
		tr := newTracker(t, status.Config{
			Store: s, Limits: map[string]int{"pdf": 2}, Exclusive: true,
			Dispatcher: status.NewLocal(s, &status.LocalOptions{OverflowWait: 2 * time.Second}),
			Handler: status.HandlerFunc(func(context.Context, *status.Claim, func(float64)) status.Outcome {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(300 * time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
				return status.Outcome{}
			}),
		})
		stop := run(t, tr, 0)
		for _, owner := range []string{"a", "b", "c", "d"} {
			if _, err := tr.Submit(t.Context(), status.Operation{Owner: owner, Items: slices.Repeat([]status.Item{{Queue: "pdf"}}, 50)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		stop()
		if most != 2 {
			t.Errorf("%d items ran at once, want 2", most)
		}
	})
}

// An item that is released because the disk is full keeps its attempts and restarts
// after RetryAfter.
func TestReleaseLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var starts []time.Duration
		s := status.NewMemStore()
		tr := newTracker(t, status.Config{
			Store: s, MaxAttempts: 2, Exclusive: true,
			Dispatcher: status.NewLocal(s, &status.LocalOptions{Every: time.Second}), // reads the store in the meantime
			Handler: status.HandlerFunc(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
				starts = append(starts, time.Since(start).Truncate(time.Second))
				if c.Item.Attempt != 1 {
					t.Errorf("attempt %d, want the first", c.Item.Attempt)
				}
				if len(starts) < 6 {
					return status.Outcome{Release: true, RetryAfter: 10 * time.Second}
				}
				return status.Outcome{}
			}),
		})
		stop := run(t, tr, 0)
		op, err := tr.Submit(t.Context(), status.Operation{Owner: "o", Items: []status.Item{{Queue: "pdf"}}})
		systest.NoError(t, err)
		if op, err = tr.Wait(t.Context(), "o", op.ID); err != nil || op.State != status.Completed {
			t.Errorf("%+v, %v", op, err)
		}
		var want []time.Duration
		for i := range 6 {
			want = append(want, time.Duration(10*i)*time.Second)
		}
		if !slices.Equal(starts, want) {
			t.Errorf("it was started at %v, want %v", starts, want)
		}
		stop()
	})
}

// RetryAfter of a QueueFullError follows from the rate at which the queue empties.
func TestQueueFullRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := status.NewMemStore()
		tr := newTracker(t, status.Config{
			Store: s, Limits: map[string]int{"pdf": 1}, MaxQueued: 100, MaxQueuedPerOwner: 40, Exclusive: true,
			Handler: status.HandlerFunc(func(context.Context, *status.Claim, func(float64)) status.Outcome {
				time.Sleep(500 * time.Millisecond) // two per second
				return status.Outcome{}
			}),
		})
		submit := func(owner string, n int) error {
			_, err := tr.Submit(t.Context(), status.Operation{Owner: owner, Items: slices.Repeat([]status.Item{{Queue: "pdf"}}, n)})
			return err
		}
		refused := func(owner string, n int, own bool, least, most time.Duration) {
			t.Helper()
			err := submit(owner, n)
			var full *status.QueueFullError
			if !errors.Is(err, status.ErrQueueFull) || !errors.As(err, &full) {
				t.Fatalf("%v", err)
			}
			if full.Owner != own || full.RetryAfter < least || full.RetryAfter > most {
				t.Errorf("%s, %d items: %+v, want %v to %v", owner, n, *full, least, most)
			}
		}
		stop := run(t, tr, 0)
		for i := range 3 {
			if err := submit(fmt.Sprint("owner", i), 40); (err != nil) != (i == 2) {
				t.Fatalf("owner %d: %v", i, err)
			}
		}
		refused("owner0", 40, true, time.Second, time.Minute) // before the rate is known
		time.Sleep(20 * time.Second)                          // 40 of 80 are gone, 20 of each
		refused("owner0", 40, true, 15*time.Second, 25*time.Second)
		systest.Check(t, submit("owner2", 40))
		systest.Check(t, submit("owner3", 20))
		// 100 items are queued, and about two start per second.
		refused("owner4", 10, false, 4*time.Second, 6*time.Second)
		if _, err := tr.Get(t.Context(), "owner4", "none"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		stop()
	})
}
