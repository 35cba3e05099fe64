package status_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/status"
)

// starved is a store whose heartbeats are slow or fail.
type starved struct {
	status.Store
	mu     sync.Mutex
	slow   time.Duration
	err    error
	leases []time.Duration // of the heartbeats
}

func (s *starved) set(slow time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow, s.err = slow, err
}

func (s *starved) last() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[len(s.leases)-1]
}

func (s *starved) Heartbeat(ctx context.Context, worker string, lease time.Duration, progress map[status.Ref]float64) ([]status.Ref, error) {
	s.mu.Lock()
	slow, err := s.slow, s.err
	s.leases = append(s.leases, lease)
	s.mu.Unlock()
	time.Sleep(slow)
	if err != nil {
		return nil, err
	}
	return s.Store.Heartbeat(ctx, worker, lease, progress)
}

// A starved process takes longer leases, so that no other process claims its items, and
// shorter ones when that is over. An unreachable store says nothing about the process.
func TestLeaseFollowsStarvation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &starved{Store: status.NewMemStore()}
		end := make(chan struct{})
		tr := newTracker(t, status.Config{Store: s, Lease: 3 * time.Second,
			Handler: handler(func(context.Context, *status.Claim, func(float64)) status.Outcome {
				<-end
				return status.Outcome{}
			})})
		stop := run(t, tr, time.Minute)
		op := submit(t, tr, "alice", "pdf")
		for _, step := range []struct {
			what        string
			slow        time.Duration
			err         error
			last        time.Duration
			least, most time.Duration
		}{
			{"at first", 0, nil, 10 * time.Second, 3 * time.Second, 3 * time.Second},
			{"starved a little", 700 * time.Millisecond, nil, 10 * time.Second, 3500 * time.Millisecond, 7 * time.Second},
			{"starved", 2 * time.Second, nil, 30 * time.Second, 9 * time.Second, 15 * time.Second},
			{"starved for longer than the longest lease", 20 * time.Second, nil, time.Minute, 15 * time.Second, 15 * time.Second},
			{"afterwards", 0, nil, 10 * time.Minute, 3 * time.Second, 3200 * time.Millisecond},
			{"without a store", 0, errors.New("no connection"), time.Minute, 3 * time.Second, 3200 * time.Millisecond},
			{"with a store again", 0, nil, 10 * time.Second, 3 * time.Second, 3200 * time.Millisecond},
		} {
			s.set(step.slow, step.err)
			time.Sleep(step.last)
			if got := s.last(); got < step.least || got > step.most {
				t.Errorf("%s: the lease is %v, want %v to %v", step.what, got, step.least, step.most)
			}
		}
		close(end)
		wait(t, tr, op)
		stop()
	})
}
