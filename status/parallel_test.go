package status_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// A limited store lets limit items of alice run at once, and counts the claims that it
// refuses. No claim lapses.
type limited struct {
	*status.MemStore
	mu             sync.Mutex
	limit, running int
	refused        int64
}

func (s *limited) Claim(ctx context.Context, ref status.Ref, worker string, lease time.Duration) (*status.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op, err := s.Get(ctx, ref.Operation)
	if err != nil {
		return nil, err
	}
	if op.Owner == "alice" && s.running >= s.limit {
		s.refused++
		return nil, status.ErrParallel
	}
	c, err := s.MemStore.Claim(ctx, ref, worker, lease)
	if err == nil && op.Owner == "alice" {
		s.running++
	}
	return c, err
}

func (s *limited) Finish(ctx context.Context, c *status.Claim, o status.Outcome) (*status.Operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op, err := s.MemStore.Finish(ctx, c, o)
	if err == nil && op.Owner == "alice" {
		s.running--
	}
	return op, err
}

func (s *limited) setLimit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = n
}

// TestParallelLimit submits a thousand items of an owner with a limit to two queues,
// and later a few of others.
func TestParallelLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const items, limit, places, work = 1000, 3, 4, time.Second
		s := &limited{MemStore: status.NewMemStore(), limit: limit}
		var mu sync.Mutex
		running, most := make(map[string]int), make(map[string]int)
		tr := newTracker(t, status.Config{
			Store: s, Limits: map[string]int{"pdf": places, "image": places}, Exclusive: true, Retention: -1,
			Dispatcher: status.NewLocal(s, &status.LocalOptions{OverflowWait: 2 * work}),
			Handler: status.HandlerFunc(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
				mu.Lock()
				running[c.Op.Owner]++
				most[c.Op.Owner] = max(most[c.Op.Owner], running[c.Op.Owner])
				mu.Unlock()
				time.Sleep(work)
				mu.Lock()
				running[c.Op.Owner]--
				mu.Unlock()
				return status.Outcome{}
			}),
		})
		stop := run(t, tr, 0)
		start := time.Now()
		submit := func(owner string, n int) *status.Operation {
			op := status.Operation{Owner: owner, Action: "convert"}
			for i := range n {
				op.Items = append(op.Items, status.Item{Queue: []string{"pdf", "image"}[i%2]})
			}
			got, err := tr.Submit(t.Context(), op)
			systest.NoError(t, err)
			return got
		}
		wait := func(op *status.Operation) time.Duration {
			if op, err := tr.Wait(t.Context(), op.Owner, op.ID); err != nil || op.State != status.Completed {
				t.Fatalf("operation is %+v, error %v", op, err)
			}
			return time.Since(start)
		}
		alice := submit("alice", items)
		time.Sleep(work / 2)
		bob := submit("bob", 2*places)
		// At most half a second of waiting for alice's items, and two rounds because
		// she holds one or two slots of each queue.
		if d := wait(bob); d > 4*work {
			t.Errorf("bob's items took %v", d)
		}
		// The number of running items equals the limit all the time.
		if d, want := wait(alice), items/limit*work; d < want || d > want+want/10 {
			t.Errorf("alice's items took %v, want about %v", d, want)
		}
		if most["alice"] != limit {
			t.Errorf("%d of alice's items were worked on at once, want %d", most["alice"], limit)
		}
		if most["bob"] < places {
			t.Errorf("%d of bob's items were worked on at once, want %d or more", most["bob"], places)
		}
		// Each free slot tries the limit once a second.
		if n, want := s.refused, int64(items/limit+1)*2*places; n > want {
			t.Errorf("%d claims were refused, want %d at most", n, want)
		}

		// The dispatcher notices that the limit is lifted.
		s.setLimit(items)
		start = time.Now()
		if d := wait(submit("alice", 8*places)); d > 6*work {
			t.Errorf("items took %v after the limit was lifted", d)
		}
		stop()
	})
}
