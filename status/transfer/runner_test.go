package transfer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/transfer"
)

// A handler is a function that handles transfers.
type handler func(ctx context.Context, t *transfer.Transfer, save func([]byte) error) transfer.Result

func (h handler) Handle(ctx context.Context, t *transfer.Transfer, save func([]byte) error) transfer.Result {
	return h(ctx, t, save)
}

func (h handler) GiveUp(*transfer.Transfer) []byte { return []byte("given up") }

func run(t *testing.T, cfg transfer.Config) *transfer.Runner {
	t.Helper()
	cfg.Kind, cfg.Poll = "k", 5*time.Millisecond
	r := transfer.NewRunner(cfg)
	systest.Start(t, func(ctx context.Context) error { return r.Run(ctx, time.Millisecond) })
	return r
}

func add(t *testing.T, s transfer.Store, ids ...string) {
	t.Helper()
	first := s.Now().Add(time.Duration(-len(ids)) * time.Millisecond)
	for i, id := range ids { // a store orders transfers of the same millisecond as it likes
		due := first.Add(time.Duration(i) * time.Millisecond)
		systest.NoError(t, s.Add(t.Context(), &transfer.Transfer{Kind: "k", ID: id, Owner: id[:1], Due: due}, 100))
	}
}

// A transfer is repeated until it is finished, and its state is that of the last attempt.
func TestRepeats(t *testing.T) {
	t.Parallel()
	store := new(transfer.MemStore)
	r := run(t, transfer.Config{Store: store, Handler: handler(func(_ context.Context, x *transfer.Transfer, save func([]byte) error) transfer.Result {
		switch x.Claims {
		case 1:
			systest.Check(t, save([]byte("saved")))
			return transfer.Result{Retry: time.Millisecond}
		case 2:
			if string(x.State) != "saved" {
				t.Errorf("state %q", x.State)
			}
			return transfer.Result{State: []byte("returned")}
		}
		return transfer.Result{State: []byte("end of " + string(x.State)), Finished: true}
	})})
	add(t, store, "a")
	r.Wake()
	got, err := r.Wait(t.Context(), "a")
	systest.NoError(t, err)
	if got == nil || string(got.State) != "end of returned" || got.Claims != 3 || got.Finished.IsZero() {
		t.Errorf("%+v", got)
	}
}

// A panic of a handler puts its transfer off, and the others continue.
func TestPanic(t *testing.T) {
	t.Parallel()
	store := new(transfer.MemStore)
	r := run(t, transfer.Config{Store: store, Handler: handler(func(_ context.Context, x *transfer.Transfer, _ func([]byte) error) transfer.Result {
		if x.ID == "a" {
			panic("oops")
		}
		return transfer.Result{Remove: true}
	})})
	add(t, store, "a", "b")
	systest.Until(t, "the other transfer to be removed", func() bool {
		got, err := r.Wait(t.Context(), "b")
		return err == nil && got == nil
	})
	systest.Until(t, "the transfer to be put off", func() bool {
		all, err := store.Get(t.Context(), "k", "a")
		return err == nil && all["a"].Finished.IsZero() && all["a"].Claims == 1 && all["a"].Due.After(time.Now().Add(40*time.Second))
	})
}

// A worker that lost its claim is stopped, and what it returns does not count.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := new(transfer.MemStore)
		started, stopped := make(chan int, 10), make(chan struct{}, 10)
		work := handler(func(ctx context.Context, x *transfer.Transfer, _ func([]byte) error) transfer.Result {
			started <- x.Claims
			if x.Claims == 1 {
				<-ctx.Done()
				stopped <- struct{}{}
				return transfer.Result{State: []byte("late"), Finished: true}
			}
			return transfer.Result{State: []byte("good"), Finished: true}
		})
		r := run(t, transfer.Config{Store: store, Handler: work, Lease: 30 * time.Millisecond})
		add(t, store, "a")
		<-started
		systest.NoError(t, store.Recover(t.Context(), "k")) // as if another process took it over
		<-stopped
		got, err := r.Wait(t.Context(), "a")
		systest.NoError(t, err)
		if string(got.State) != "good" || got.Claims != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// One owner does not get all slots, and long transfers keep their claims.
func TestFairSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := new(transfer.MemStore)
		release := make(chan struct{})
		var mu sync.Mutex
		running := make(map[string]int)
		r := run(t, transfer.Config{Store: store, Workers: 3, PerOwner: 2, Lease: 30 * time.Millisecond, Handler: handler(func(ctx context.Context, x *transfer.Transfer, _ func([]byte) error) transfer.Result {
			mu.Lock()
			running[x.Owner]++
			mu.Unlock()
			select {
			case <-release:
			case <-ctx.Done():
				t.Error("the claim was lost")
			}
			return transfer.Result{Finished: true}
		})})
		add(t, store, "a1", "a2", "a3", "a4", "b1", "b2")
		r.Wake()
		count := func(a, b int) func() bool {
			return func() bool {
				mu.Lock()
				defer mu.Unlock()
				return running["a"] == a && running["b"] == b
			}
		}
		systest.Until(t, "two transfers of one owner and one of the other to run", count(2, 1))
		due := func() (at time.Time) {
			all, err := store.Get(t.Context(), "k", "a1")
			systest.NoError(t, err)
			return all["a1"].Due
		}
		first := due()
		systest.Until(t, "the claims to be renewed for several leases", func() bool { return due().Sub(first) > 100*time.Millisecond })
		if !count(2, 1)() {
			t.Errorf("running %v", running)
		}
		close(release)
		systest.Until(t, "all to run", count(4, 2))
	})
}

// A disabledOwner is a store whose transfers belong to a disabled account.
type disabledOwner struct{ *transfer.MemStore }

func (disabledOwner) Claim(context.Context, string, time.Duration, []string) (*transfer.Transfer, error) {
	return nil, nil
}

func (s disabledOwner) Abandoned(ctx context.Context, kind string, lease time.Duration, before time.Time) (*transfer.Transfer, error) {
	if !before.Before(s.Now()) {
		return nil, errors.New("transfers have no time to wait")
	}
	return s.MemStore.Claim(ctx, kind, lease, nil)
}

// The transfers of disabled accounts end with the state that the handler chooses.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	store := disabledOwner{new(transfer.MemStore)}
	add(t, store, "a", "b")
	r := run(t, transfer.Config{Store: store, Handler: handler(func(context.Context, *transfer.Transfer, func([]byte) error) transfer.Result {
		t.Error("a transfer of a disabled account was started")
		return transfer.Result{Finished: true}
	})})
	for _, id := range []string{"a", "b"} {
		got, err := r.Wait(t.Context(), id)
		systest.NoError(t, err)
		if got == nil || string(got.State) != "given up" || got.Finished.IsZero() {
			t.Errorf("%s is %+v", id, got)
		}
	}
}
