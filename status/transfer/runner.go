package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/filewright/filewright/status"
)

// A Result is the outcome of an attempt.
type Result struct {
	State []byte // nil: unchanged

	// Exactly one decides what follows. Without any, the transfer is due again after Retry.
	Finished bool // the transfer is kept, with its State, for Config.Retention
	Remove   bool // the transfer is deleted

	Retry time.Duration // 0: at once
}

// A Handler works on claimed transfers.
type Handler interface {
	// Handle makes one attempt. ctx ends when the claim is lost, when the transfer is cancelled, or
	// when the process stops; the Result then does not count, and the transfer stays due unless it
	// was cancelled. save stores a new State without ending the claim.
	Handle(ctx context.Context, t *Transfer, save func(state []byte) error) Result

	// GiveUp returns the final State of a transfer that nobody worked on for Config.Retention,
	// because its owner is disabled.
	GiveUp(t *Transfer) (state []byte)
}

// Config configures a [Runner]. Store, Kind and Handler are required.
type Config struct {
	Store   Store
	Kind    string
	Handler Handler

	Workers  int           // concurrent transfers; 0: 16
	PerOwner int           // of one owner; 0: a quarter of Workers
	Lease    time.Duration // after which another process takes over from one that died; 0: 30 seconds
	Poll     time.Duration // interval of checking for transfers of other processes; 0: 1 second

	// Retention is how long finished transfers are kept, and how long due transfers of disabled
	// accounts wait before they end. 0: 24 hours.
	Retention time.Duration

	// Exclusive declares that no other process works on the store: claims of an earlier process are
	// released at once.
	Exclusive bool

	Log *slog.Logger // nil discards
}

// A Runner works on the transfers of one kind. It is safe for concurrent use.
type Runner struct {
	cfg  Config
	wake chan struct{} // holds a token if a transfer may be due or a slot is free

	mu      sync.Mutex
	running map[string]*context.CancelCauseFunc // by ID
	owners  map[string]int                      // running transfers by owner
	ended   chan struct{}                       // closed when a transfer has ended
}

// NewRunner returns a runner. It starts nothing.
func NewRunner(cfg Config) *Runner {
	cfg.Workers = cmp.Or(max(0, cfg.Workers), 16)
	cfg.PerOwner = cmp.Or(max(0, cfg.PerOwner), max(1, cfg.Workers/4))
	cfg.Lease = cmp.Or(cfg.Lease, 30*time.Second)
	cfg.Poll = cmp.Or(cfg.Poll, time.Second)
	cfg.Retention = cmp.Or(cfg.Retention, 24*time.Hour)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Runner{
		cfg: cfg, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		running: make(map[string]*context.CancelCauseFunc), owners: make(map[string]int),
	}
}

// Wake makes the runner look for due transfers now.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx is done. Running transfers then have the time drain to finish. The others are
// released, and continue in another process or at the next start.
func (r *Runner) Run(ctx context.Context, drain time.Duration) error {
	if r.cfg.Exclusive {
		if err := r.cfg.Store.Recover(ctx, r.cfg.Kind); err != nil && ctx.Err() == nil {
			r.cfg.Log.Error("cannot release claimed transfers; they continue late", "kind", r.cfg.Kind, "err", err)
		}
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var beside, working sync.WaitGroup
	beside.Go(func() { r.sweep(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.wake:
		}
		for ctx.Err() == nil {
			t, err := r.claim(ctx)
			if err != nil && ctx.Err() == nil {
				r.cfg.Log.Error("cannot claim a transfer", "kind", r.cfg.Kind, "err", err)
			}
			if t == nil {
				break
			}
			working.Go(func() { r.work(base, t) })
		}
		timer.Reset(r.cfg.Poll)
	}
	late := time.AfterFunc(drain, stop)
	working.Wait()
	late.Stop()
	beside.Wait()
	return nil
}

// claim claims a due transfer if there is a free slot, else it returns nil.
func (r *Runner) claim(ctx context.Context) (*Transfer, error) {
	r.mu.Lock()
	busy := 0
	var full []string
	for owner, n := range r.owners {
		if busy += n; n >= r.cfg.PerOwner {
			full = append(full, owner)
		}
	}
	r.mu.Unlock()
	if busy >= r.cfg.Workers {
		return nil, nil
	}
	slices.Sort(full)
	t, err := r.cfg.Store.Claim(ctx, r.cfg.Kind, r.cfg.Lease, full)
	if err == nil && t != nil {
		r.mu.Lock()
		r.owners[t.Owner]++
		r.mu.Unlock()
	}
	return t, err
}

// ErrCancelled is the cause of the context of a transfer that [Runner.Cancel] has stopped.
var ErrCancelled = errors.New("the transfer was cancelled")

// work makes one attempt at a claimed transfer and records its result.
func (r *Runner) work(base context.Context, t *Transfer) {
	ctx, cancel := context.WithCancelCause(base)
	defer cancel(nil)
	r.mu.Lock()
	r.running[t.ID] = &cancel
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		if r.running[t.ID] == &cancel { // not that of a later claim
			delete(r.running, t.ID)
		}
		if r.owners[t.Owner]--; r.owners[t.Owner] == 0 {
			delete(r.owners, t.Owner)
		}
		close(r.ended)
		r.ended = make(chan struct{})
		r.mu.Unlock()
		r.Wake()
	}()

	var mu sync.Mutex // of renewals
	held := *t
	renew := func(state []byte) error {
		mu.Lock()
		defer mu.Unlock()
		if state != nil {
			held.State = state
		}
		err := r.cfg.Store.Renew(context.WithoutCancel(ctx), &held, r.cfg.Lease)
		if errors.Is(err, status.ErrLost) {
			cancel(err)
		}
		return err
	}
	stopped := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() {
		every := time.NewTicker(r.cfg.Lease / 3)
		defer every.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-every.C:
				if err := renew(nil); err != nil && !errors.Is(err, status.ErrLost) {
					r.cfg.Log.Warn("cannot renew the claim of a transfer", "kind", t.Kind, "transfer", t.ID, "err", err)
				}
			}
		}
	})
	result := r.handle(ctx, t, renew)
	close(stopped)
	renewing.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, status.ErrLost) || errors.Is(cause, ErrCancelled) {
		return
	} else if cause != nil {
		result = Result{} // the process stops: another continues
	}
	r.record(&held, result)
}

// handle calls the handler. A panic postpones the transfer.
func (r *Runner) handle(ctx context.Context, t *Transfer, save func([]byte) error) (result Result) {
	defer func() {
		if p := recover(); p != nil {
			r.cfg.Log.Error("a transfer panicked", "kind", t.Kind, "transfer", t.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result = Result{Retry: time.Minute}
		}
	}()
	return r.cfg.Handler.Handle(ctx, t, save)
}

// record stores the result of an attempt.
func (r *Runner) record(t *Transfer, result Result) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if result.State != nil {
		t.State = result.State
	}
	now := r.cfg.Store.Now()
	t.Due = now.Add(result.Retry)
	if result.Finished {
		t.Finished = now
	}
	var err error
	if result.Remove {
		err = r.cfg.Store.Delete(ctx, t.Kind, t.ID)
	} else {
		err = r.cfg.Store.Record(ctx, t)
	}
	if err != nil && !errors.Is(err, status.ErrLost) { // another process continues when the lease is over
		r.cfg.Log.Error("cannot record a transfer; it is repeated", "kind", t.Kind, "transfer", t.ID, "err", err)
	}
}

// Cancel removes a transfer, and stops it if this process works on it. Another process notices when
// it renews its claim.
func (r *Runner) Cancel(ctx context.Context, id string) error {
	err := r.cfg.Store.Delete(ctx, r.cfg.Kind, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if stop := r.running[id]; stop != nil && err == nil {
		(*stop)(ErrCancelled)
	}
	return err
}

// Wait returns a transfer when it is finished, or its current state when ctx is done. It returns nil
// if the transfer does not exist (any more).
func (r *Runner) Wait(ctx context.Context, id string) (*Transfer, error) {
	t := time.NewTicker(r.cfg.Poll)
	defer t.Stop()
	for {
		r.mu.Lock()
		ended := r.ended
		r.mu.Unlock()
		all, err := r.cfg.Store.Get(context.WithoutCancel(ctx), r.cfg.Kind, id)
		if err != nil {
			return nil, err
		}
		have := all[id]
		if have == nil || !have.Finished.IsZero() {
			return have, nil
		}
		select {
		case <-ctx.Done():
			return have, nil
		case <-ended:
		case <-t.C:
		}
	}
}

// sweep removes finished transfers, and ends those of disabled accounts, until ctx is done.
func (r *Runner) sweep(ctx context.Context) {
	t := time.NewTicker(max(100*time.Millisecond, min(time.Minute, r.cfg.Retention/4)))
	defer t.Stop()
	for {
		if _, err := r.cfg.Store.Sweep(ctx, r.cfg.Kind, r.cfg.Store.Now().Add(-r.cfg.Retention)); err != nil && ctx.Err() == nil {
			r.cfg.Log.Error("cannot delete old transfers", "kind", r.cfg.Kind, "err", err)
		}
		if err := r.giveUp(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Error("cannot end the transfers of disabled accounts", "kind", r.cfg.Kind, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// giveUp ends the transfers of disabled accounts that have been due for Config.Retention.
func (r *Runner) giveUp(ctx context.Context) error {
	for {
		now := r.cfg.Store.Now()
		t, err := r.cfg.Store.Abandoned(ctx, r.cfg.Kind, r.cfg.Lease, now.Add(-r.cfg.Retention))
		if t == nil || err != nil {
			return err
		}
		t.State, t.Due, t.Finished = r.cfg.Handler.GiveUp(t), now, now
		if err := r.cfg.Store.Record(ctx, t); err != nil && !errors.Is(err, status.ErrLost) {
			return err
		}
	}
}
