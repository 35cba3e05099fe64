package status_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// onStores runs a test on every kind of store.
func onStores(t *testing.T, test func(t *testing.T, s status.Store)) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, status.NewMemStore())
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "test.db")})
		systest.NoError(t, err)
		systest.AtEnd(t, db.Close)
		test(t, db.Operations())
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: pgtest.New(t)})
		systest.NoError(t, err)
		systest.AtEnd(t, db.Close)
		test(t, db.Operations())
	})
}

func TestMain(m *testing.M) { os.Exit(pgtest.MainWith(m, prepare)) }

// prepare creates the tables for the tests.
func prepare(url string) error {
	db, err := sqlstore.Open(context.Background(), sqlstore.Options{URL: url})
	if err != nil {
		return err
	}
	return db.Close()
}

type handler = status.HandlerFunc

func newTracker(t *testing.T, cfg status.Config) *status.Tracker {
	t.Helper()
	tr, err := status.New(cfg)
	systest.NoError(t, err)
	return tr
}

// run runs tr and returns a function that stops it. The end of the test also stops it.
func run(t *testing.T, tr *status.Tracker, grace time.Duration) (stop func()) {
	return systest.Start(t, func(ctx context.Context) error { return tr.Run(ctx, grace) })
}

func operation(owner string, queues ...string) status.Operation {
	op := status.Operation{Owner: owner, Action: "convert", Args: []byte("args")}
	for i, q := range queues {
		op.Items = append(op.Items, status.Item{Queue: q, Inputs: []status.File{{Key: fmt.Sprint("in", i)}}})
	}
	return op
}

func submit(t *testing.T, tr *status.Tracker, owner string, queues ...string) *status.Operation {
	t.Helper()
	op, err := tr.Submit(t.Context(), operation(owner, queues...))
	systest.NoError(t, err)
	return op
}

func wait(t *testing.T, tr *status.Tracker, op *status.Operation) *status.Operation {
	t.Helper()
	got, err := tr.Wait(t.Context(), op.Owner, op.ID)
	systest.NoError(t, err)
	if !got.State.Final() {
		t.Fatalf("operation is %s, want it final", got.State)
	}
	return got
}

// until waits until an operation satisfies ok.
func until(t *testing.T, tr *status.Tracker, op *status.Operation, ok func(*status.Operation) bool) *status.Operation {
	t.Helper()
	for got, err := range tr.Watch(t.Context(), op.Owner, op.ID) {
		systest.NoError(t, err)
		if ok(got) {
			return got
		}
	}
	t.Fatal("operation ended before")
	return nil
}

func running(op *status.Operation) bool {
	return slices.ContainsFunc(op.Items, func(it status.Item) bool { return it.State == status.Running })
}

// codes returns the error codes of the items, "" for no error.
func codes(op *status.Operation) []string {
	all := make([]string, len(op.Items))
	for i, it := range op.Items {
		if it.Error != nil {
			all[i] = it.Error.Code
		}
	}
	return all
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s are %v, want %v", what, got, want)
	}
}

func succeed(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
	return status.Outcome{Results: []status.File{{Key: "out-" + c.Item.Inputs[0].Key}}}
}

// obey runs until it is stopped.
func obey(ctx context.Context, _ *status.Claim, _ func(float64)) status.Outcome {
	<-ctx.Done()
	return status.Outcome{Error: &status.Error{Code: "engine_failed", Message: "killed"}, Results: []status.File{{Key: "part"}}}
}

func TestRollup(t *testing.T) {
	t.Parallel()
	q, r := status.Item{State: status.Queued}, status.Item{State: status.Running, Attempt: 1}
	c, f := status.Item{State: status.Completed, Attempt: 1}, status.Item{State: status.Failed}
	again := status.Item{State: status.Queued, Attempt: 1}
	released := status.Item{State: status.Queued, Started: time.Now()}
	for name, tt := range map[string]struct {
		items []status.Item
		want  status.State
	}{
		"none":                 {nil, status.Queued},
		"all queued":           {[]status.Item{q, q}, status.Queued},
		"one running":          {[]status.Item{q, r}, status.Running},
		"one waits for retry":  {[]status.Item{q, again}, status.Running},
		"one was given back":   {[]status.Item{released, q}, status.Running},
		"one completed":        {[]status.Item{c, q}, status.Running},
		"one failed":           {[]status.Item{q, f}, status.Running},
		"completed and failed": {[]status.Item{f, c, f}, status.Completed},
		"all completed":        {[]status.Item{c, c}, status.Completed},
		"all failed":           {[]status.Item{f, f}, status.Failed},
		"failed and running":   {[]status.Item{f, r}, status.Running},
	} {
		if got := status.Rollup(tt.items, true); tt.want.Final() && got != status.Failed || !tt.want.Final() && got != tt.want {
			t.Errorf("Rollup of a cancelled operation with %v is %s", tt.items, got)
		}
		if got := status.Rollup(tt.items, false); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]status.Config{
		"negative attempts": {MaxAttempts: -1},
		"negative bound":    {MaxQueued: -1},
		"short lease":       {Lease: time.Second, Heartbeat: time.Second},
	} {
		if _, err := status.New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := newTracker(t, status.Config{}).Run(t.Context(), 0); err == nil {
		t.Error("runs without a handler")
	}
	if _, err := newTracker(t, status.Config{}).Submit(t.Context(), operation("alice")); err == nil {
		t.Error("accepts an operation without items")
	}
}

// TestParallel runs items that wait for each other, so they finish only if all run at
// once.
func TestParallel(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		const n = 5
		var meet sync.WaitGroup
		meet.Add(n)
		tr := newTracker(t, status.Config{Store: s, Limits: map[string]int{"pdf": n},
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				meet.Done()
				meet.Wait()
				return succeed(ctx, c, p)
			})})
		run(t, tr, 0)
		op := wait(t, tr, submit(t, tr, "alice", slices.Repeat([]string{"pdf"}, n)...))
		if op.State != status.Completed || len(op.Args) != 0 {
			t.Errorf("operation is %s with %d bytes of parameters, want completed without", op.State, len(op.Args))
		}
		for i, it := range op.Items {
			if want := fmt.Sprint("out-in", i); len(it.Results) != 1 || it.Results[0].Key != want {
				t.Errorf("results of item %d are %v, want %s", i, it.Results, want)
			}
		}
	})
}

func TestLimits(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		limits := map[string]int{"pdf": 2, "office": 1, "": 3, "elsewhere": -1}
		var mu sync.Mutex
		now, most := make(map[string]int), make(map[string]int)
		tr := newTracker(t, status.Config{Store: s, Limits: limits,
			Handler: handler(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
				q := c.Item.Queue
				mu.Lock()
				now[q]++
				most[q] = max(most[q], now[q])
				mu.Unlock()
				time.Sleep(time.Millisecond) // so that others would have the time to exceed the limit
				mu.Lock()
				now[q]--
				mu.Unlock()
				return status.Outcome{}
			})})
		run(t, tr, 0)
		never := submit(t, tr, "alice", "elsewhere")
		var ops []*status.Operation
		for range 20 {
			ops = append(ops, submit(t, tr, "alice", "pdf", "office", "image", "pdf", "image"))
		}
		for _, op := range ops {
			wait(t, tr, op)
		}
		mu.Lock()
		defer mu.Unlock()
		for q, limit := range map[string]int{"pdf": 2, "office": 1, "image": 3} {
			if most[q] == 0 || most[q] > limit {
				t.Errorf("%d items of queue %s were worked on at once, the limit is %d", most[q], q, limit)
			}
		}
		if got, err := tr.Get(t.Context(), "alice", never.ID); err != nil || got.State != status.Queued {
			t.Errorf("operation of a queue that is not worked on is %+v, error %v", got, err)
		}
	})
}

// TestFairness submits items of one owner after many of another, and checks the order
// in which they run. The order does not depend on time: the items wait for the
// dispatcher to start, or for a first item to finish.
func TestFairness(t *testing.T) {
	for _, early := range []bool{false, true} {
		t.Run(map[bool]string{false: "before start", true: "while running"}[early], func(t *testing.T) {
			onStores(t, func(t *testing.T, s status.Store) {
				var mu sync.Mutex
				var order []string
				first := make(chan struct{})
				tr := newTracker(t, status.Config{Store: s, Limits: map[string]int{"pdf": 1},
					Handler: handler(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
						if c.Op.Owner == "first" {
							<-first
						}
						mu.Lock()
						defer mu.Unlock()
						order = append(order, c.Op.Owner)
						return status.Outcome{}
					})})
				var ops []*status.Operation
				if early {
					run(t, tr, 0)
					op := submit(t, tr, "first", "pdf")
					ops = append(ops, op)
					until(t, tr, op, running)
				}
				ops = append(ops, submit(t, tr, "many", slices.Repeat([]string{"pdf"}, systest.Scale(500, 100))...))
				for range 3 {
					ops = append(ops, submit(t, tr, "few", "pdf"))
				}
				ops = append(ops, submit(t, tr, "other", "pdf"))
				if !early {
					run(t, tr, 0)
				}
				close(first)
				for _, op := range ops {
					wait(t, tr, op)
				}
				mu.Lock()
				defer mu.Unlock()
				if i := slices.Index(order, "other"); i > 4 {
					t.Errorf("an item of another owner was number %d of %d", i+1, len(order))
				}
				last := len(order) - 1 - slices.Index(reversed(order), "few")
				if last > 9 {
					t.Errorf("the third item of another owner was number %d of %d", last+1, len(order))
				}
			})
		})
	}
}

func reversed(s []string) []string {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

func TestCancelQueued(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		var finals atomic.Int32
		block := make(chan struct{})
		tr := newTracker(t, status.Config{Store: s, Limits: map[string]int{"pdf": 1},
			OnFinal: func(context.Context, *status.Operation) { finals.Add(1) },
			Handler: handler(func(context.Context, *status.Claim, func(float64)) status.Outcome {
				<-block
				return status.Outcome{}
			})})
		run(t, tr, 0)
		first := submit(t, tr, "alice", "pdf")
		until(t, tr, first, running)
		second := submit(t, tr, "alice", "pdf", "pdf")
		if _, err := tr.Cancel(t.Context(), "bob", second.ID); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
		}
		for range 2 {
			op, err := tr.Cancel(t.Context(), "alice", second.ID)
			systest.NoError(t, err)
			equal(t, "codes", codes(op), []string{status.CodeCancelled, status.CodeCancelled})
			if op.State != status.Failed || finals.Load() != 1 {
				t.Errorf("operation is %s, %d were told of as final; want failed and 1", op.State, finals.Load())
			}
		}
		close(block)
		wait(t, tr, first)
		op, err := tr.Cancel(t.Context(), "alice", first.ID)
		if err != nil || op.State != status.Completed || op.Cancelled {
			t.Errorf("final operation is %+v, error %v", op, err)
		}
	})
}

func TestCancelRunning(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		var finals atomic.Int32
		discarded := make(chan status.File, 8)
		ended := make(chan struct{}, 8)
		ignore := make(chan struct{})
		tr := newTracker(t, status.Config{Store: s,
			Limits:    map[string]int{"": 8},
			Lease:     time.Hour,
			Heartbeat: 10 * time.Minute, // so that no heartbeat reports the cancellation
			Discard:   func(_ context.Context, files []status.File) { discarded <- files[0] },
			OnFinal:   func(context.Context, *status.Operation) { finals.Add(1); ended <- struct{}{} },
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				if c.Item.Queue == "stubborn" {
					<-ignore
					return succeed(ctx, c, p)
				}
				return obey(ctx, c, p)
			})})
		run(t, tr, 0)
		op := submit(t, tr, "alice", "obedient", "stubborn")
		until(t, tr, op, func(op *status.Operation) bool {
			return op.Items[0].State == status.Running && op.Items[1].State == status.Running
		})
		got, err := tr.Cancel(t.Context(), "alice", op.ID)
		if err != nil || got.State != status.Running || !got.Cancelled {
			t.Errorf("cancelled operation is %+v, error %v", got, err)
		}
		until(t, tr, op, func(op *status.Operation) bool { return op.Items[0].State == status.Failed })
		close(ignore) // a success comes too late
		got = wait(t, tr, op)
		equal(t, "codes", codes(got), []string{status.CodeCancelled, status.CodeCancelled})
		<-ended
		if n := finals.Load(); n != 1 {
			t.Errorf("told %d times of the end", n)
		}
		equal(t, "discarded results", []string{(<-discarded).Key, (<-discarded).Key}, []string{"part", "out-in1"})
	})
}

// late is a store in which an operation finishes just before it is cancelled.
type late struct {
	status.Store
	end func()
}

func (l late) Cancel(ctx context.Context, owner, id string) (*status.Operation, error) {
	l.end()
	return l.Store.Cancel(ctx, owner, id)
}

func TestCancelTooLate(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		var finals atomic.Int32
		goOn, ended := make(chan struct{}), make(chan struct{}, 2)
		tr := newTracker(t, status.Config{
			Store:   late{s, func() { close(goOn); <-ended }},
			OnFinal: func(context.Context, *status.Operation) { finals.Add(1); ended <- struct{}{} },
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				<-goOn
				return succeed(ctx, c, p)
			})})
		run(t, tr, 0)
		op := submit(t, tr, "alice", "pdf")
		until(t, tr, op, running)
		got, err := tr.Cancel(t.Context(), "alice", op.ID)
		if err != nil || got.State != status.Completed {
			t.Errorf("operation is %+v, error %v", got, err)
		}
		if n := finals.Load(); n != 1 {
			t.Errorf("told %d times of the end", n)
		}
	})
}

func TestCancelElsewhere(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		worker := newTracker(t, status.Config{Store: s, Handler: handler(obey), Heartbeat: 20 * time.Millisecond})
		api := newTracker(t, status.Config{Store: s})
		run(t, worker, 0)
		op := submit(t, worker, "alice", "pdf")
		until(t, worker, op, running)
		if _, err := api.Cancel(t.Context(), "alice", op.ID); err != nil {
			t.Fatal(err)
		}
		equal(t, "codes", codes(wait(t, worker, op)), []string{status.CodeCancelled})
	})
}

func TestPanic(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		var log logtest.Buffer
		tr := newTracker(t, status.Config{Store: s, Log: slog.New(slog.NewTextHandler(&log, nil)),
			OnFinal: func(context.Context, *status.Operation) { panic("also here") },
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				if c.Item.Queue == "bad" {
					panic("ouch")
				}
				return succeed(ctx, c, p)
			})})
		run(t, tr, 0)
		request := operation("alice", "good", "bad")
		request.Origin = status.Origin{Request: "r1", Key: "k1"}
		op, err := tr.Submit(t.Context(), request)
		systest.NoError(t, err)
		equal(t, "codes", codes(wait(t, tr, op)), []string{"", status.CodeInternal})
		if want := "request_id=r1 operation=" + op.ID + " item=1 account=alice key=k1"; !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, &log)
		}
		equal(t, "codes", codes(wait(t, tr, submit(t, tr, "alice", "good"))), []string{""})
	})
}

func TestRetry(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		var attempts atomic.Int32
		tr := newTracker(t, status.Config{Store: s, MaxAttempts: 3,
			Backoff: func(int) time.Duration { return time.Millisecond },
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				n := c.Item.Attempt
				if c.Item.Queue == "never" {
					attempts.Add(1)
					p(float64(n) / 10)
					return status.Outcome{Retry: true, Error: &status.Error{Code: "engine_failed", Message: fmt.Sprint(n)}}
				}
				if n < 3 {
					return status.Outcome{Retry: true}
				}
				return succeed(ctx, c, p)
			})})
		run(t, tr, 0)
		op := wait(t, tr, submit(t, tr, "alice", "never", "third"))
		equal(t, "codes", codes(op), []string{"engine_failed", ""})
		if n := attempts.Load(); n != 3 || op.Items[0].Attempt != 3 || op.Items[0].Error.Message != "3" {
			t.Errorf("%d attempts, item is %+v; want 3 attempts and the last error", n, op.Items[0])
		}
		if op.Items[0].Progress != 0.3 || op.Items[1].Attempt != 3 {
			t.Errorf("items are %+v", op.Items)
		}
	})
}

// TestStop stops a tracker while its items run. No item may be lost, and no attempt may
// count.
func TestStop(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		started, enough := make(chan struct{}, 8), make(chan struct{})
		first := newTracker(t, status.Config{Store: s, Limits: map[string]int{"": 8},
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				p(0.5)
				started <- struct{}{}
				switch c.Item.Queue {
				case "quick": // finishes within the grace period
					<-enough
					return succeed(ctx, c, p)
				case "late": // succeeds although it was stopped
					<-ctx.Done()
					return succeed(ctx, c, p)
				}
				return obey(ctx, c, p)
			})})
		stop := run(t, first, 50*time.Millisecond)
		op := submit(t, first, "alice", "quick", "late", "slow", "slow")
		for range op.Items {
			<-started
		}
		close(enough)
		stop()
		got, err := first.Get(t.Context(), "alice", op.ID)
		systest.NoError(t, err)
		var states []status.State
		for _, it := range got.Items {
			states = append(states, it.State)
		}
		equal(t, "states", states, []status.State{status.Completed, status.Completed, status.Queued, status.Queued})
		if got.State != status.Running || got.Items[2].Attempt != 0 || got.Items[2].Progress != 0.5 {
			t.Errorf("operation is %+v", got)
		}

		// Submitted while no tracker runs.
		other := submit(t, first, "alice", "slow")
		second := newTracker(t, status.Config{Store: s, Handler: handler(succeed)})
		run(t, second, 0)
		for _, op := range []*status.Operation{op, other} {
			got = wait(t, second, op)
			for _, it := range got.Items {
				if it.State != status.Completed || it.Attempt != 1 {
					t.Errorf("item is %+v, want it completed at the first attempt", it)
				}
			}
		}
	})
}

// mute is a store whose Finish blocks until its context is done.
type mute struct{ status.Store }

func (mute) Finish(ctx context.Context, _ *status.Claim, _ status.Outcome) (*status.Operation, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", status.ErrUnavailable, ctx.Err())
}

// TestStopWithoutStore stops a tracker whose store does not respond: it does not wait,
// and it keeps the results because the store may have recorded them.
func TestStopWithoutStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := status.NewMemStore()
		started := make(chan struct{}, 1)
		tr := newTracker(t, status.Config{Store: mute{s}, Lease: 10 * time.Second,
			Discard: func(context.Context, []status.File) { t.Error("results were discarded") },
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				started <- struct{}{}
				<-ctx.Done()
				time.Sleep(8 * time.Second) // an engine stops slowly; its outcome still gets its full time
				return succeed(ctx, c, p)
			})})
		stop := run(t, tr, time.Second)
		op := submit(t, tr, "alice", "pdf")
		<-started
		start := time.Now()
		stop()
		if took := time.Since(start); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("stopped after %v", took)
		}
		if got, err := s.Get(t.Context(), op.ID); err != nil || got.Items[0].State != status.Running {
			t.Errorf("operation is %+v, %v", got, err)
		}
	})
}

// frozen is a store whose heartbeats fail.
type frozen struct{ status.Store }

func (frozen) Heartbeat(context.Context, string, time.Duration, map[status.Ref]float64) ([]status.Ref, error) {
	return nil, errors.New("no connection")
}

// TestCrash abandons a tracker with running items. Their later outcomes must not count.
func TestCrash(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		const n = 20
		var finals, discarded atomic.Int32
		onFinal := func(context.Context, *status.Operation) { finals.Add(1) }
		thaw := make(chan struct{})
		started := make(chan struct{}, n)
		dead := newTracker(t, status.Config{Store: frozen{s}, Limits: map[string]int{"": n}, OnFinal: onFinal,
			Discard: func(context.Context, []status.File) { discarded.Add(1) },
			Handler: handler(func(context.Context, *status.Claim, func(float64)) status.Outcome {
				started <- struct{}{}
				<-thaw
				return status.Outcome{Results: []status.File{{Key: "from the dead"}}}
			})})
		stop := run(t, dead, time.Hour)
		var ops []*status.Operation
		for range n / 2 {
			ops = append(ops, submit(t, dead, "alice", "pdf", "pdf"))
		}
		for range n {
			<-started
		}

		alive := newTracker(t, status.Config{Store: s, Exclusive: true, OnFinal: onFinal, Handler: handler(succeed)})
		stopAlive := run(t, alive, time.Hour)
		for _, op := range ops {
			for i, it := range wait(t, alive, op).Items {
				if it.Attempt != 1 || it.Restarts != 1 || len(it.Results) != 1 || it.Results[0].Key != fmt.Sprint("out-in", i) {
					t.Errorf("item is %+v, want it completed after one restart", it)
				}
			}
		}
		close(thaw)
		stop()
		if got := discarded.Load(); got != n {
			t.Errorf("%d late results were discarded, want %d", got, n)
		}
		for _, op := range ops {
			if got := wait(t, alive, op); got.Items[0].Results[0].Key != "out-in0" {
				t.Errorf("a late result was recorded: %+v", got.Items[0])
			}
		}
		stopAlive()
		if got := finals.Load(); got != n/2 {
			t.Errorf("told %d times of the end of %d operations", got, n/2)
		}
	})
}

// TestCrashLoop runs an item that kills every process that runs it.
func TestCrashLoop(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		op, err := s.Create(t.Context(), &status.Operation{
			ID: "x", Owner: "alice", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}},
		})
		systest.NoError(t, err)
		for range 2 {
			if _, err := s.Claim(t.Context(), status.Ref{Operation: "x"}, "dead", time.Hour); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recover(t.Context(), "next"); err != nil {
				t.Fatal(err)
			}
		}
		var handled atomic.Int32
		tr := newTracker(t, status.Config{Store: s, MaxRestarts: 1,
			Handler: handler(func(context.Context, *status.Claim, func(float64)) status.Outcome {
				handled.Add(1)
				return status.Outcome{}
			})})
		run(t, tr, 0)
		equal(t, "codes", codes(wait(t, tr, op)), []string{status.CodeInternal})
		if handled.Load() != 0 {
			t.Error("item was started once more")
		}
	})
}

// broken is a store that fails now and then, sometimes after it has made the change.
type broken struct {
	status.Store
	claims, finishes atomic.Int32
}

func (b *broken) Claim(ctx context.Context, ref status.Ref, worker string, lease time.Duration) (*status.Claim, error) {
	if b.claims.Add(1)%3 == 1 {
		return nil, errors.New("disk is full")
	}
	return b.Store.Claim(ctx, ref, worker, lease)
}

func (b *broken) Finish(ctx context.Context, c *status.Claim, o status.Outcome) (*status.Operation, error) {
	switch b.finishes.Add(1) % 3 {
	case 1:
		return nil, errors.New("disk is full")
	case 2:
		if _, err := b.Store.Finish(ctx, c, o); err != nil {
			return nil, err
		}
		return nil, errors.New("answer was lost")
	}
	return b.Store.Finish(ctx, c, o)
}

func TestBrokenStore(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		var finals atomic.Int32
		tr := newTracker(t, status.Config{Store: &broken{Store: s},
			OnFinal: func(context.Context, *status.Operation) { finals.Add(1) },
			Discard: func(_ context.Context, files []status.File) { t.Errorf("%v were discarded", files) },
			Handler: handler(succeed)})
		stop := run(t, tr, time.Minute)
		for range 3 {
			op := wait(t, tr, submit(t, tr, "alice", "pdf"))
			if op.State != status.Completed || op.Items[0].Attempt != 1 {
				t.Errorf("operation is %+v", op)
			}
		}
		stop()
		if n := finals.Load(); n != 3 {
			t.Errorf("told of %d ends, want 3", n)
		}
	})
}

// silent is a store that loses the response to Finish and does not respond for a while
// afterwards.
type silent struct {
	status.Store
	finishes, gets atomic.Int32
}

func (s *silent) Finish(ctx context.Context, c *status.Claim, o status.Outcome) (*status.Operation, error) {
	op, err := s.Store.Finish(ctx, c, o)
	if s.finishes.Add(1) == 1 {
		return nil, status.ErrUnavailable
	}
	return op, err
}

func (s *silent) Get(ctx context.Context, id string) (*status.Operation, error) {
	if s.finishes.Load() > 1 && s.gets.Add(1) <= 3 {
		return nil, status.ErrUnavailable
	}
	return s.Store.Get(ctx, id)
}

// Results that may have been recorded are kept until it is known that they were not.
func TestSilentStore(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		ended := make(chan *status.Operation, 1)
		broken := &silent{Store: s}
		tr := newTracker(t, status.Config{Store: broken,
			OnFinal: func(_ context.Context, op *status.Operation) { ended <- op },
			Discard: func(_ context.Context, files []status.File) { t.Errorf("%v were discarded", files) },
			Handler: handler(succeed)})
		stop := run(t, tr, time.Minute)
		submit(t, tr, "alice", "pdf")
		if op := <-ended; op.State != status.Completed || len(op.Items[0].Results) != 1 {
			t.Errorf("operation is %+v", op)
		}
		stop()
		if n := broken.gets.Load(); n <= 3 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestWatch(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		const watchers = 20
		var watching sync.WaitGroup
		watching.Add(watchers)
		tr := newTracker(t, status.Config{Store: s, Limits: map[string]int{"": 2}, MaxAttempts: 10,
			Backoff: func(int) time.Duration { return time.Millisecond },
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				watching.Wait()
				for i := range 100 {
					p(float64(i) / 100 / float64(c.Item.Attempt)) // falls behind in the second attempt
					time.Sleep(time.Millisecond)
				}
				if c.Item.Attempt < 3 {
					return status.Outcome{Retry: true}
				}
				return succeed(ctx, c, p)
			})})
		run(t, tr, 0)
		op := submit(t, tr, "alice", "pdf", "pdf", "pdf")
		var wg sync.WaitGroup
		for range watchers {
			wg.Go(func() {
				first := sync.OnceFunc(watching.Done)
				defer first()
				rank := map[status.State]int{status.Queued: 0, status.Running: 1, status.Completed: 2, status.Failed: 2}
				var last *status.Operation
				n := 0
				for got, err := range tr.Watch(t.Context(), "alice", op.ID) {
					if err != nil {
						t.Error(err)
						return
					}
					if last != nil {
						if rank[got.State] < rank[last.State] {
							t.Errorf("operation became %s after %s", got.State, last.State)
						}
						for i := range got.Items {
							if a, b := last.Items[i].Progress, got.Items[i].Progress; b < a {
								t.Errorf("progress fell from %v to %v", a, b)
							}
							if a, b := last.Items[i].Attempt, got.Items[i].Attempt; b < a {
								t.Errorf("attempt fell from %v to %v", a, b)
							}
						}
					}
					last = got
					n++
					first()
				}
				if last == nil || last.State != status.Completed || n < 2 {
					t.Errorf("watcher was told %d times, in the end %+v", n, last)
				}
			})
		}
		wg.Wait()
		n := 0
		for got, err := range tr.Watch(t.Context(), "alice", op.ID) {
			if n++; err != nil || got.State != status.Completed {
				t.Errorf("watcher of a final operation got %+v, error %v", got, err)
			}
		}
		if n != 1 {
			t.Errorf("watcher of a final operation was told %d times", n)
		}
		for _, q := range []struct{ owner, id string }{{"bob", op.ID}, {"alice", "none"}} {
			for _, err := range tr.Watch(t.Context(), q.owner, q.id) {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
				}
			}
			if _, err := tr.Get(t.Context(), q.owner, q.id); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
			}
			if _, err := tr.Wait(t.Context(), q.owner, q.id); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
			}
		}
	})
}

func TestQueueFull(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		tr := newTracker(t, status.Config{Store: s, MaxQueued: 12, MaxQueuedPerOwner: 5})
		try := func(owner string, n int) error {
			_, err := tr.Submit(t.Context(), operation(owner, slices.Repeat([]string{"pdf"}, n)...))
			return err
		}
		for i, step := range []struct {
			owner string
			n     int
			full  bool
		}{
			{"alice", 3, false}, {"alice", 3, true}, {"alice", 2, false}, {"alice", 1, true},
			{"bob", 5, false}, {"carol", 3, true}, {"carol", 2, false}, {"dave", 1, true},
		} {
			if err := try(step.owner, step.n); errors.Is(err, status.ErrQueueFull) != step.full {
				t.Fatalf("step %d: error is %v, want a full queue: %t", i, err, step.full)
			}
		}
		for op, err := range tr.List(t.Context(), status.Query{Owner: "bob"}) {
			if err == nil {
				_, err = tr.Cancel(t.Context(), "bob", op.ID)
			}
			systest.NoError(t, err)
		}
		systest.NoError(t, try("dave", 5))

		// Concurrent calls do not exceed the limit.
		tr = newTracker(t, status.Config{Store: s, MaxQueued: 20})
		var wg sync.WaitGroup
		var accepted atomic.Int32
		for i := range 32 {
			wg.Go(func() {
				err := try(fmt.Sprint("owner", i), 1)
				if err == nil {
					accepted.Add(1)
				} else if !errors.Is(err, status.ErrQueueFull) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := accepted.Load(); n > 8 || n == 0 {
			t.Errorf("%d operations were accepted where there was room for 8", n)
		}
		tr = newTracker(t, status.Config{Store: s}) // has no statistics yet
		stats, err := tr.Stats(t.Context())
		if err != nil || len(stats) != 1 || stats[0].Queue != "pdf" || stats[0].Queued != 12+int(accepted.Load()) ||
			stats[0].Running != 0 || stats[0].Oldest <= 0 {
			t.Errorf("stats are %+v, error %v", stats, err)
		}
	})
}

func TestIdempotent(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		var handled atomic.Int32
		tr := newTracker(t, status.Config{Store: s, Handler: handler(func(context.Context, *status.Claim, func(float64)) status.Outcome {
			handled.Add(1)
			return status.Outcome{}
		})})
		run(t, tr, 0)
		ids := make([]string, 16)
		var wg sync.WaitGroup
		for i := range ids {
			op := operation("alice", "pdf", "pdf")
			op.IdempotencyKey = "key"
			wg.Go(func() {
				got, err := tr.Submit(t.Context(), op)
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = got.ID
			})
		}
		wg.Wait()
		equal(t, "ids", ids, slices.Repeat(ids[:1], len(ids)))
		wait(t, tr, &status.Operation{ID: ids[0], Owner: "alice"})
		if n := handled.Load(); n != 2 {
			t.Errorf("%d items were worked on, want 2", n)
		}
	})
}

// TestMany runs many operations of several owners and queues, newly submitted and
// from a backlog, and counts them.
func TestMany(t *testing.T) {
	onStores(t, func(t *testing.T, s status.Store) {
		n := systest.Scale(1000, 200)
		var mu sync.Mutex
		finals, handled := make(map[string]int), make(map[status.Ref]int)
		all := make(chan struct{})
		tr := newTracker(t, status.Config{Store: s, Limits: map[string]int{"": 8},
			OnFinal: func(_ context.Context, op *status.Operation) {
				mu.Lock()
				defer mu.Unlock()
				if finals[op.ID]++; len(finals) == n {
					close(all)
				}
			},
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				mu.Lock()
				handled[c.Ref]++
				mu.Unlock()
				return succeed(ctx, c, p)
			})})
		put := func(from, to int) {
			for i := from; i < to; i++ {
				op := operation(fmt.Sprint("owner", i%7), "a", "b", "a", "b", "a")
				if _, err := tr.Submit(t.Context(), op); err != nil {
					t.Error(err)
				}
			}
		}
		put(0, n/2)
		run(t, tr, time.Minute)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { put(n/2+i*n/8, n/2+(i+1)*n/8) })
		}
		wg.Wait()
		<-all
		mu.Lock()
		defer mu.Unlock()
		for id, times := range finals {
			if times != 1 {
				t.Errorf("told %d times of the end of %s", times, id)
			}
		}
		if len(handled) != 5*n {
			t.Errorf("%d items were worked on, want %d", len(handled), 5*n)
		}
		for ref, times := range handled {
			if times != 1 {
				t.Errorf("%v was worked on %d times", ref, times)
			}
		}
	})
}

// The tests below are about time. They run on a synctest clock.

func TestWorkTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var discarded []status.File
		tr := newTracker(t, status.Config{
			Lease:     time.Hour, // heartbeats and reads of the store do not matter here
			Heartbeat: time.Minute,
			Limits:    map[string]int{"": 8},
			WorkTimeout: func(queue string) time.Duration {
				return map[string]time.Duration{"slow": time.Minute, "endless": -1}[queue]
			},
			Discard: func(_ context.Context, f []status.File) { discarded = append(discarded, f...) },
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				switch c.Item.Queue {
				case "deaf": // succeeds after its timeout
					time.Sleep(time.Hour)
					return succeed(ctx, c, p)
				case "endless":
					time.Sleep(10 * time.Hour)
					if ctx.Err() != nil {
						t.Error("item without a limit was stopped")
					}
					return succeed(ctx, c, p)
				}
				return obey(ctx, c, p)
			})})
		stop := run(t, tr, 0)
		start := time.Now()
		op := wait(t, tr, submit(t, tr, "alice", "slow", "default", "deaf", "endless"))
		equal(t, "codes", codes(op), []string{status.CodeTimeout, status.CodeTimeout, "", ""})
		for i, want := range []time.Duration{time.Minute, 30 * time.Minute, time.Hour} {
			if got := op.Items[i].Finished.Sub(start); got < want || got > want+time.Second {
				t.Errorf("item %d ended after %v, want %v", i, got, want)
			}
		}
		stop()
		if len(discarded) != 2 {
			t.Errorf("discarded %v, want the results of two items that took too long", discarded)
		}
	})
}

func TestQueueTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		finals := 0
		tr := newTracker(t, status.Config{
			Limits:       map[string]int{"pdf": 1},
			QueueTimeout: 10 * time.Minute,
			WorkTimeout:  func(string) time.Duration { return -1 },
			OnFinal:      func(context.Context, *status.Operation) { finals++ },
			Handler: handler(func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				time.Sleep(time.Hour) // longer than items may be queued, which does not matter
				return succeed(ctx, c, p)
			})})
		stop := run(t, tr, time.Hour)
		first := submit(t, tr, "alice", "pdf")
		time.Sleep(time.Minute)
		second := submit(t, tr, "bob", "pdf")
		start := time.Now()
		got := wait(t, tr, second)
		equal(t, "codes", codes(got), []string{status.CodeTimeout})
		if waited := time.Since(start); waited < 10*time.Minute || waited > 12*time.Minute {
			t.Errorf("item was given up after %v, want 10 minutes", waited)
		}
		equal(t, "codes", codes(wait(t, tr, first)), []string{""})
		stop()
		if finals != 2 {
			t.Errorf("told of %d ends, want 2", finals)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var starts []time.Duration
		tr := newTracker(t, status.Config{MaxAttempts: 6,
			Handler: handler(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
				starts = append(starts, time.Since(start).Truncate(time.Second))
				if c.Item.Attempt == 2 {
					return status.Outcome{Retry: true, RetryAfter: time.Hour}
				}
				return status.Outcome{Retry: true}
			})})
		stop := run(t, tr, 0)
		wait(t, tr, submit(t, tr, "alice", "pdf"))
		stop()
		h := time.Hour
		equal(t, "starts", starts, []time.Duration{0, time.Second, h + time.Second, h + 17*time.Second,
			h + 81*time.Second, h + 337*time.Second})
	})
}

// TestLapse lets another process die whose items are not released.
func TestLapse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := status.NewMemStore()
		tr := newTracker(t, status.Config{Store: s, Handler: handler(succeed)})
		op := submit(t, tr, "alice", "pdf")
		if _, err := s.Claim(t.Context(), status.Ref{Operation: op.ID}, "dead", time.Minute); err != nil {
			t.Fatal(err)
		}
		stop := run(t, tr, 0)
		start := time.Now()
		got := wait(t, tr, op)
		if waited := time.Since(start); waited < time.Minute || waited > 80*time.Second || got.Items[0].Restarts != 1 {
			t.Errorf("item was done after %d restarts and %v, want 1 and a minute", got.Items[0].Restarts, waited)
		}
		stop()
	})
}

// TestLongWork runs an item for longer than a lease, which heartbeats renew.
func TestLongWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := status.NewMemStore()
		tr := newTracker(t, status.Config{Store: s, Handler: handler(
			func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				for i := range 10 {
					p(float64(i) / 10)
					time.Sleep(time.Minute)
				}
				return succeed(ctx, c, p)
			})})
		stop := run(t, tr, 0)
		op := submit(t, tr, "alice", "pdf")
		time.Sleep(5*time.Minute + 30*time.Second)
		if got, err := s.Get(t.Context(), op.ID); err != nil || got.Items[0].Progress != 0.5 {
			t.Errorf("progress in the store is %v, error %v, want 0.5", got.Items[0].Progress, err)
		}
		if got := wait(t, tr, op); got.State != status.Completed || got.Items[0].Attempt != 1 {
			t.Errorf("operation is %+v", got)
		}
		stop()
	})
}

// TestProgress sees unstored progress at once, and no invalid values.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan float64)
		tr := newTracker(t, status.Config{Lease: time.Hour, Heartbeat: time.Minute, Handler: handler(
			func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				for x := range steps {
					p(x)
				}
				return succeed(ctx, c, p)
			})})
		stop := run(t, tr, 0)
		op := submit(t, tr, "alice", "pdf")
		nan := 0.0
		nan /= nan
		for _, step := range []struct{ report, want float64 }{
			{0.25, 0.25}, {0.5, 0.5}, {0.25, 0.5}, {-1, 0.5}, {nan, 0.5}, {0.75, 0.75}, {7, 1},
		} {
			steps <- step.report
			synctest.Wait()
			got, err := tr.Get(t.Context(), "alice", op.ID)
			if err != nil || got.Items[0].Progress != step.want {
				t.Errorf("progress is %v after %v, want %v", got.Items[0].Progress, step.report, step.want)
			}
			for got, err := range tr.List(t.Context(), status.Query{Owner: "alice"}) {
				if err != nil || got.Items[0].Progress != step.want {
					t.Errorf("listed progress is %v after %v, want %v", got.Items[0].Progress, step.report, step.want)
				}
			}
		}
		close(steps)
		wait(t, tr, op)
		stop()
	})
}

// TestWatchRate counts the updates that watchers get of fast progress.
func TestWatchRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := &counted{Store: status.NewMemStore()}
		tr := newTracker(t, status.Config{Store: reads, Handler: handler(
			func(ctx context.Context, c *status.Claim, p func(float64)) status.Outcome {
				for i := range 10000 {
					p(float64(i) / 10000)
					time.Sleep(time.Millisecond)
				}
				return succeed(ctx, c, p)
			})})
		stop := run(t, tr, 0)
		op := submit(t, tr, "alice", "pdf")
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				n := 0
				for _, err := range tr.Watch(t.Context(), "alice", op.ID) {
					systest.Check(t, err)
					n++
				}
				if n < 10 || n > 50 {
					t.Errorf("watcher was told %d times within 10 seconds, want some 40", n)
				}
			})
		}
		wg.Wait()
		if n := reads.gets.Load(); n > 20 {
			t.Errorf("100 watchers had the store read %d times", n)
		}
		stop()
	})
}

type counted struct {
	status.Store
	gets atomic.Int32
}

func (c *counted) Get(ctx context.Context, id string) (*status.Operation, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, id)
}

// TestWatchElsewhere watches an operation that another process runs.
func TestWatchElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := status.NewMemStore()
		worker := newTracker(t, status.Config{Store: s, Handler: handler(succeed)})
		api := newTracker(t, status.Config{Store: s})
		op := submit(t, api, "alice", "pdf")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got, err := api.Wait(ctx, "alice", op.ID)
		if err != nil || got.State != status.Queued {
			t.Errorf("after ten seconds the operation is %+v, error %v, want it queued", got, err)
		}
		stop := run(t, worker, 0)
		if got := wait(t, api, op); got.State != status.Completed {
			t.Errorf("operation is %+v", got)
		}
		stop()
	})
}

func TestRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTracker(t, status.Config{Retention: time.Hour, Handler: handler(succeed)})
		stop := run(t, tr, 0)
		op := wait(t, tr, submit(t, tr, "alice", "pdf"))
		time.Sleep(59 * time.Minute)
		if _, err := tr.Get(t.Context(), "alice", op.ID); err != nil {
			t.Errorf("operation is gone too early: %v", err)
		}
		time.Sleep(3 * time.Minute)
		if _, err := tr.Get(t.Context(), "alice", op.ID); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
		}
		stop()
	})
}

// sweepingStore is a store whose DeleteFinished blocks until the end of the test.
type sweepingStore struct {
	status.Store
	sweeping chan struct{}
}

func (s sweepingStore) DeleteFinished(ctx context.Context, _ time.Time) (int, error) {
	close(s.sweeping)
	<-ctx.Done()
	return 0, ctx.Err()
}

// Old operations are deleted in the background, even at startup.
func TestSweepBesideTheWork(t *testing.T) {
	t.Parallel()
	s := sweepingStore{status.NewMemStore(), make(chan struct{})}
	tr := newTracker(t, status.Config{Store: s, Handler: handler(func(context.Context, *status.Claim, func(float64)) status.Outcome {
		<-s.sweeping
		return status.Outcome{}
	})})
	run(t, tr, time.Second)
	if op := wait(t, tr, submit(t, tr, "alice", "pdf")); op.State != status.Completed {
		t.Errorf("operation is %s", op.State)
	}
}

// TestBacklog queues far more items than the dispatcher keeps in memory, from owners with
// retries in between, and counts how many it reads.
func TestBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &lazy{Store: status.NewMemStore()}
		done := 0
		var mu sync.Mutex
		tr := newTracker(t, status.Config{Store: s, Limits: map[string]int{"": 4},
			Handler: handler(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
				time.Sleep(time.Millisecond)
				if c.Index%10 == 0 && c.Item.Attempt == 1 {
					return status.Outcome{Retry: true}
				}
				mu.Lock()
				defer mu.Unlock()
				done++
				return status.Outcome{}
			})})
		const n = 5000
		var ops []*status.Operation
		for i := range n / 100 {
			ops = append(ops, submit(t, tr, fmt.Sprint("owner", i%2), slices.Repeat([]string{"pdf"}, 100)...))
		}
		stop := run(t, tr, time.Minute)
		for _, op := range ops {
			wait(t, tr, op)
		}
		stop()
		if done != n {
			t.Errorf("%d items were done, want %d", done, n)
		}
		if got := s.read.Load(); got > 3*n {
			t.Errorf("%d items were read from the store to do %d", got, n)
		}
	})
}

// lazy counts the items that are read.
type lazy struct {
	status.Store
	read atomic.Int32
}

func (l *lazy) Pending(ctx context.Context, q status.PendingQuery) iter.Seq2[status.PendingItem, error] {
	return func(yield func(status.PendingItem, error) bool) {
		for it, err := range l.Store.Pending(ctx, q) {
			if q.Owner != "" { // the dispatcher's, not the sweep's
				l.read.Add(1)
			}
			if !yield(it, err) {
				return
			}
		}
	}
}
