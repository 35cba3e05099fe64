package status_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// An outage may last for more tries than an item has attempts: it costs no attempt, and
// the pauses double up to half a minute.
func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := status.NewMemStore()
		var starts []time.Time
		work := handler(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
			starts = append(starts, time.Now())
			if c.Item.Attempt != 1 {
				t.Errorf("attempt %d, want the first", c.Item.Attempt)
			}
			if len(starts) < 20 {
				return status.Outcome{Release: true, Waiting: status.WaitStorage}
			}
			return status.Outcome{}
		})
		tr := newTracker(t, status.Config{Store: s, Exclusive: true, MaxAttempts: 1, Handler: work})
		stop := run(t, tr, 0)
		start := time.Now()
		op := submit(t, tr, "alice", "pdf")
		time.Sleep(time.Minute)
		synctest.Wait()
		got, err := tr.Get(t.Context(), "alice", op.ID)
		systest.NoError(t, err)
		if w := got.Items[0].Waiting; w == nil || w.Reason != status.WaitStorage || !w.Since.Equal(start) {
			t.Errorf("the item waits for %+v, want the storage since %v", w, start)
		}
		if stats, err := tr.Stats(t.Context()); err != nil || len(stats) != 1 || stats[0].Waiting[status.WaitStorage] != 1 {
			t.Errorf("figures are %+v, %v", stats, err)
		}
		// Another process continues from the state in the store.
		stop()
		tr = newTracker(t, status.Config{Store: s, Exclusive: true, MaxAttempts: 1, Handler: work})
		stop = run(t, tr, 0)
		got = wait(t, tr, op)
		if it := got.Items[0]; it.State != status.Completed || it.Attempt != 1 || it.Waiting != nil {
			t.Errorf("the item is %+v", it)
		}
		stop()
		for i := range starts[1:] {
			pause, waited := starts[i+1].Sub(starts[i]), starts[i].Sub(start)
			want := min(max(waited, time.Second), 30*time.Second)
			if pause < want*3/4 || pause > want*5/4+10*time.Second { // the second tracker reads the store every ten seconds
				t.Errorf("pause %d is %v, want %v", i, pause, want)
			}
		}
	})
}

// A resource that is missing for a day fails the item; a clock that jumps by a day does
// not.
func TestWaitedTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jump := true
		attempts := 0
		tr := newTracker(t, status.Config{MaxAttempts: 1,
			Handler: handler(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
				if attempts++; attempts == 2 && jump {
					time.Sleep(25 * time.Hour)
				}
				return status.Outcome{Release: true, Waiting: status.WaitDisk}
			}),
			WorkTimeout:  func(string) time.Duration { return -1 },
			QueueTimeout: -1,
		})
		run(t, tr, 0)
		jumped := submit(t, tr, "alice", "pdf")
		time.Sleep(26 * time.Hour)
		if got, err := tr.Get(t.Context(), "alice", jumped.ID); err != nil || got.State.Final() {
			t.Errorf("after a jump of the clock the operation is %+v, %v", got, err)
		}
		jump = false
		op := submit(t, tr, "alice", "pdf")
		start := time.Now()
		got := wait(t, tr, op)
		equal(t, "codes", codes(got), []string{status.CodeWaited})
		if d := time.Since(start); d < 24*time.Hour || d > 24*time.Hour+time.Minute {
			t.Errorf("it failed after %v, want a day", d)
		}
		if it := got.Items[0]; it.Attempt != 1 || it.Claims < 2000 || it.Waiting != nil {
			t.Errorf("the item is %+v", it)
		}
	})
}

// crowd runs items in parallel and records which ran with others.
type crowd struct {
	mu      sync.Mutex
	running map[status.Ref]bool
	met     map[status.Ref]bool // whether another item ran, in the previous attempt
}

func (c *crowd) run(ref status.Ref, f func()) (alone bool) {
	c.mu.Lock()
	if c.running == nil {
		c.running, c.met = make(map[status.Ref]bool), make(map[status.Ref]bool)
	}
	c.running[ref] = true
	if len(c.running) > 1 {
		for r := range c.running {
			c.met[r] = true
		}
	} else {
		delete(c.met, ref)
	}
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, ref)
	return !c.met[ref]
}

// An item whose engine has died twice runs alone, and fails the third time. An item
// that ran in three servers that died runs alone, too, and does not fail.
func TestAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := status.NewMemStore()
		var all crowd
		var bad, restarted atomic.Pointer[status.Operation]
		var attempts []bool // of the bad item: whether it ran alone
		tr := newTracker(t, status.Config{Store: s, Limits: map[string]int{"": 4},
			Handler: handler(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
				alone := all.run(c.Ref, func() { time.Sleep(3 * time.Second) })
				if c.Alone && !alone {
					t.Errorf("item %v was to run alone", c.Ref)
				}
				switch op := bad.Load(); {
				case op != nil && op.ID == c.Operation:
					attempts = append(attempts, alone && c.Alone)
					return status.Outcome{Retry: true, Suspect: true, Error: &status.Error{Code: "engine_failed"}}
				case restarted.Load() != nil && restarted.Load().ID == c.Operation && !c.Alone:
					t.Error("an item that was restarted three times does not run alone")
				}
				return status.Outcome{}
			})})
		op := submit(t, tr, "alice", "pdf")
		restarted.Store(op)
		for range 3 {
			if _, err := s.Claim(t.Context(), status.Ref{Operation: op.ID}, "dead", time.Hour); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recover(t.Context(), "next"); err != nil {
				t.Fatal(err)
			}
		}
		var others []*status.Operation
		for range 30 {
			others = append(others, submit(t, tr, "bob", "pdf", "image"))
		}
		bad.Store(submit(t, tr, "carl", "image"))
		stop := run(t, tr, 0)
		got := wait(t, tr, bad.Load())
		equal(t, "codes", codes(got), []string{"engine_failed"})
		equal(t, "attempts that ran alone", attempts, []bool{false, false, true})
		if it := wait(t, tr, op).Items[0]; it.State != status.Completed || it.Restarts != 3 || it.Attempt != 1 {
			t.Errorf("the item that was restarted is %+v", it)
		}
		for _, op := range others {
			equal(t, "codes", codes(wait(t, tr, op)), []string{"", ""})
		}
		stop()
	})
}

// An item that must run alone does not delay others for long, and gets its turn in the
// end.
func TestAloneGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var long atomic.Pointer[status.Operation]
		var starts []time.Duration
		start := time.Now()
		tr := newTracker(t, status.Config{Limits: map[string]int{"": 2}, WorkTimeout: func(string) time.Duration { return -1 },
			Handler: handler(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
				switch {
				case c.Op.Owner == "video":
					time.Sleep(time.Hour)
				case c.Op.Owner == "bad" && !c.Alone:
					return status.Outcome{Retry: true, Suspect: true, RetryAfter: time.Millisecond}
				default:
					if c.Op.Owner == "good" {
						starts = append(starts, time.Since(start))
					}
				}
				return status.Outcome{}
			})})
		stop := run(t, tr, 0)
		long.Store(submit(t, tr, "video", "media"))
		bad := submit(t, tr, "bad", "pdf")
		waiting := func(op *status.Operation) bool { return op.Items[0].Waiting != nil }
		until(t, tr, bad, waiting)
		for range 100 {
			before := time.Now()
			wait(t, tr, submit(t, tr, "good", "pdf"))
			if d := time.Since(before); d > 11*time.Second {
				t.Errorf("an item waits for %v", d)
			}
			time.Sleep(10 * time.Second)
		}
		got, err := tr.Get(t.Context(), "bad", bad.ID)
		if err != nil || got.Items[0].Waiting == nil || got.Items[0].Waiting.Reason != status.WaitAlone || got.Items[0].Attempt > 3 {
			t.Errorf("the item that is to run alone is %+v, %v", got, err)
		}
		if it := wait(t, tr, bad).Items[0]; it.State != status.Completed || it.Attempt != 3 {
			t.Errorf("the item that is to run alone ends as %+v", it)
		}
		if d := time.Since(start); d > time.Hour+time.Minute {
			t.Errorf("it ran alone after %v, want soon after an hour", d)
		}
		stop()
	})
}

// Servers with running items are killed more often than an item has attempts: every
// item completes at its first attempt.
func TestManyRestarts(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		const n, deaths = 4, 12
		tr := newTracker(t, status.Config{Store: s, Exclusive: true, MaxAttempts: 1, Limits: map[string]int{"": n}, Handler: handler(succeed)})
		op := submit(t, tr, "alice", slices.Repeat([]string{"pdf"}, n)...)
		for death := range deaths {
			if death > 0 {
				if _, err := s.Recover(t.Context(), "next"); err != nil {
					t.Fatal(err)
				}
			}
			for i := range n {
				for {
					_, err := s.Claim(t.Context(), status.Ref{Operation: op.ID, Index: i}, "dead", time.Hour)
					if err == nil {
						break
					}
					if !errors.Is(err, status.ErrLost) { // not due, to the millisecond
						t.Fatal(err)
					}
				}
			}
		}
		stop := run(t, tr, time.Hour)
		for _, it := range wait(t, tr, op).Items {
			if it.State != status.Completed || it.Attempt != 1 || it.Restarts != deaths {
				t.Errorf("item is %+v, want it completed at its first attempt after %d restarts", it, deaths)
			}
		}
		if got := tr.Rescued(); got != n {
			t.Errorf("%d items were rescued, want %d", got, n)
		}
		stop()
	})
}
