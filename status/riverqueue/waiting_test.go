package riverqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/riverqueue"
)

// An item may wait more often than it has attempts: waiting costs no attempt, has a
// reason, and continues in another process.
func TestWaiting(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	var left atomic.Int32
	left.Store(6)
	work := func(_ context.Context, c *status.Claim) status.Outcome {
		if c.Item.Attempt != 1 {
			t.Errorf("attempt %d, want the first", c.Item.Attempt)
		}
		if n := left.Add(-1); n > 3 {
			return status.Outcome{Release: true, Waiting: status.WaitStorage, RetryAfter: 10 * time.Millisecond}
		} else if n == 3 {
			return status.Outcome{Release: true, Waiting: status.WaitDisk, RetryAfter: 2 * time.Second}
		} else if n > 0 {
			return status.Outcome{Release: true, Waiting: status.WaitStorage, RetryAfter: 10 * time.Millisecond}
		}
		return status.Outcome{}
	}
	once := func(cfg *status.Config, o *riverqueue.Options) { quick(cfg, o); cfg.MaxAttempts = 1 }
	first := newNode(t, url, map[string]int{"pdf": 1}, work, once)
	stop := first.run(t, 0)
	op := first.submit(t, "alice", "pdf")
	first.until(t, op, func(op *status.Operation) bool {
		w := op.Items[0].Waiting
		return op.Items[0].State == status.Queued && w != nil && w.Reason == status.WaitDisk
	})
	stop()
	second := newNode(t, url, map[string]int{"pdf": 1}, work, once)
	second.run(t, 0)
	if it := second.wait(t, op).Items[0]; it.State != status.Completed || it.Attempt != 1 || it.Restarts != 0 || it.Waiting != nil || it.Claims != 6 {
		t.Errorf("the item is %+v", it)
	}
}

// A worker runs an item alone that has crashed engines twice. Another worker runs the
// other items in the meantime.
func TestAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	var running atomic.Int32
	entered, leave := make(chan struct{}), make(chan struct{})
	suspect := newNode(t, url, map[string]int{"pdf": 2, "bad": 1}, func(_ context.Context, c *status.Claim) status.Outcome {
		n := running.Add(1)
		defer running.Add(-1)
		switch {
		case c.Item.Queue == "bad" && c.Item.Suspicions < 2:
			return status.Outcome{Retry: true, Suspect: true, RetryAfter: time.Millisecond}
		case c.Item.Queue == "bad":
			if !c.Alone || n != 1 {
				t.Errorf("alone: %v, with %d others", c.Alone, n-1)
			}
			close(entered)
			<-leave
			if n := running.Load(); n != 1 {
				t.Errorf("%d others were started meanwhile", n-1)
			}
		}
		return status.Outcome{}
	}, quick)
	suspect.run(t, time.Minute)
	bad := suspect.submit(t, "carl", "bad")
	<-entered
	// This worker takes tickets too, but starts nothing.
	op := suspect.submit(t, "alice", "pdf", "pdf", "pdf")
	other := newNode(t, url, map[string]int{"pdf": 2}, nil, quick)
	other.run(t, 0)
	for i, it := range other.wait(t, op).Items {
		if it.State != status.Completed || it.Attempt != 1 || it.Restarts != 0 {
			t.Errorf("item %d is %+v", i, it)
		}
	}
	close(leave)
	if it := suspect.wait(t, bad).Items[0]; it.State != status.Completed || it.Attempt != 3 || it.Suspicions != 2 {
		t.Errorf("the item that ran alone is %+v", it)
	}
}
