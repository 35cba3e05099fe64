package status_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/status"
)

// flaky is a source that fails at first.
type flaky struct {
	status.Source
	loads, reads atomic.Int32
}

func (f *flaky) Load(ctx context.Context) ([]status.Load, error) {
	if f.loads.Add(1) == 1 {
		return nil, errors.New("no connection")
	}
	return f.Source.Load(ctx)
}

func (f *flaky) Pending(ctx context.Context, q status.PendingQuery) iter.Seq2[status.PendingItem, error] {
	if f.reads.Add(1) == 1 {
		return func(yield func(status.PendingItem, error) bool) {
			yield(status.PendingItem{}, errors.New("no connection"))
		}
	}
	return f.Source.Pending(ctx, q)
}

// TestLocal runs a dispatcher without a tracker: work fails in every way.
func TestLocal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := status.NewMemStore()
		for _, id := range []string{"error", "later", "fine"} {
			if _, err := s.Create(t.Context(), &status.Operation{
				ID: id, Owner: id, Created: time.Now(), Items: []status.Item{{Queue: "pdf"}},
			}); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		var mu sync.Mutex
		starts := make(map[string][]time.Duration)
		work := func(ctx context.Context, ref status.Ref) error {
			mu.Lock()
			defer mu.Unlock()
			id := ref.Operation
			starts[id] = append(starts[id], time.Since(start))
			if len(starts[id]) == 1 {
				switch id {
				case "error":
					return errors.New("cannot be done")
				case "later":
					return &status.RetryError{After: time.Minute}
				}
			}
			c, err := s.Claim(ctx, ref, "w", time.Hour)
			if err == nil {
				_, err = s.Finish(ctx, c, status.Outcome{})
			}
			return err
		}
		l := status.NewLocal(&flaky{Source: s}, &status.LocalOptions{Every: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- l.Run(ctx, nil, work) }()
		synctest.Wait()
		if err := l.Run(ctx, nil, work); err == nil {
			t.Error("runs twice at once")
		}
		time.Sleep(10 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		l.Notify([]status.PendingItem{{Ref: status.Ref{Operation: "fine"}, Queue: "pdf", Owner: "fine"}}) // has no effect

		// Both reads of the store fail once, which costs a second each.
		second := 2 * time.Second
		for id, want := range map[string][]time.Duration{
			"fine": {second}, "error": {second, second + time.Second}, "later": {second, second + time.Minute},
		} {
			if !slices.Equal(starts[id], want) {
				t.Errorf("%s was started at %v, want %v", id, starts[id], want)
			}
		}
	})
}

// TestLocalNotify notifies of more items than the dispatcher keeps in memory, which it
// has not read from the store.
func TestLocalNotify(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := status.NewMemStore()
		l := status.NewLocal(s, &status.LocalOptions{Every: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		starts := make(map[status.Ref]int)
		finished := make(chan error, 1)
		go func() {
			finished <- l.Run(ctx, map[string]int{"pdf": 2}, func(ctx context.Context, ref status.Ref) error {
				time.Sleep(time.Millisecond)
				c, err := s.Claim(ctx, ref, "w", time.Hour)
				if errors.Is(err, status.ErrLost) {
					return nil // started twice, which is allowed
				}
				if err == nil {
					_, err = s.Finish(ctx, c, status.Outcome{})
				}
				mu.Lock()
				defer mu.Unlock()
				starts[ref]++
				return err
			})
		}()
		synctest.Wait()
		const n = 200
		start := time.Now()
		var items []status.PendingItem
		op := &status.Operation{ID: "op", Owner: "alice", Created: start}
		for i := range n {
			op.Items = append(op.Items, status.Item{Queue: "pdf"})
			items = append(items, status.PendingItem{
				Ref: status.Ref{Operation: "op", Index: i}, Queue: "pdf", Owner: "alice", Created: start, Since: start,
			})
		}
		if _, err := s.Create(ctx, op); err != nil {
			t.Fatal(err)
		}
		l.Notify(items)
		l.Notify(items) // notified twice
		time.Sleep(time.Second)
		cancel()
		if err := <-finished; err != nil {
			t.Errorf("run: %v", err)
		}
		if len(starts) != n {
			t.Errorf("%d items were worked on, want %d", len(starts), n)
		}
		for ref, times := range starts {
			if times != 1 {
				t.Errorf("%v was worked on %d times", ref, times)
			}
		}
	})
}
