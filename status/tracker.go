package status

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	mrand "math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/filewright/filewright/internal/backoff"
	"github.com/filewright/filewright/internal/steady"
)

// ErrQueueFull reports that too many items wait already; see [Config.MaxQueued]. The
// operation may be submitted again later.
var ErrQueueFull = errors.New("too many items are waiting")

// A QueueFullError is what Submit fails with when too many items wait. It matches
// [ErrQueueFull].
type QueueFullError struct {
	// Owner tells that it is the owner's bound that is reached; else it is
	// that of all.
	Owner bool

	// RetryAfter is when there will be room, judged by how many items this
	// process has started lately: 1 second to 1 minute.
	RetryAfter time.Duration
}

// Error describes e.
func (e *QueueFullError) Error() string { return ErrQueueFull.Error() }

// Is makes e match [ErrQueueFull].
func (e *QueueFullError) Is(target error) bool { return target == ErrQueueFull }

// Config configures a [Tracker]. The zero value is usable for all but Run, which
// needs a Handler.
type Config struct {
	Store      Store      // nil: a new MemStore
	Dispatcher Dispatcher // nil: a Local on Store
	Handler    Handler

	// Limits is how many items of a queue are worked on at once in this
	// process. Limits[""] is for queues that are not named; 0 means
	// GOMAXPROCS; a queue with a negative limit is not worked on.
	Limits map[string]int

	// Worker names this process in claims. It must be unique among all
	// processes that share the store, now and before. "": random.
	Worker string

	// Exclusive says that no other process works on the items of Store. Then
	// what an earlier process left running is started again at once, not
	// when its claim lapses.
	Exclusive bool

	// MaxAttempts is how many attempts at an item its handler may want to be
	// retried before it fails. 0: 3.
	MaxAttempts int

	// MaxRestarts is how often an item is started again because the process that
	// worked on it died, froze or lost the store, before it fails with
	// CodeInternal. After three times the item runs alone. 0: 1000.
	MaxRestarts int

	// MaxWait is how long an item waits for something that its work needs; then
	// it fails with CodeWaited. See Outcome.Waiting. 0: 24 hours, <0: for ever.
	MaxWait time.Duration

	// Backoff is the time before another attempt if the handler does not
	// tell; attempt is that which failed, from 1. nil: 1 s, 4 s, 16 s …, at
	// most 5 minutes.
	Backoff func(attempt int) time.Duration

	// Lease is how long a claim lasts without a heartbeat, and Heartbeat the time
	// between two. A cancellation by another process is noticed by a
	// heartbeat, one by this process at once. A process whose heartbeats are late,
	// because its host is overloaded, takes longer leases for some minutes.
	// 0: 15 seconds, and a sixth of Lease, at most 1 second.
	Lease     time.Duration
	Heartbeat time.Duration

	// QueueTimeout is how long an item may wait; then it fails with
	// CodeTimeout. 0: 24 hours, <0: for ever.
	QueueTimeout time.Duration

	// WorkTimeout returns how long one attempt at an item of a queue may
	// take; then it fails with CodeTimeout. 0 means 30 minutes, <0 for ever.
	// nil: 30 minutes for all.
	WorkTimeout func(queue string) time.Duration

	// Retention is how long operations are kept when they are final. 0: 24
	// hours, <0: for ever.
	Retention time.Duration

	// MaxQueued and MaxQueuedPerOwner bound the items that wait in the store,
	// beyond which Submit fails with ErrQueueFull. 0: no bound. With several
	// processes the bounds may be exceeded a little.
	MaxQueued         int
	MaxQueuedPerOwner int

	// OnFinal, if not nil, is called when an operation has become final in
	// this process. It delays the next item of the queue until it returns. It
	// is not called again if the process dies before or while it runs.
	OnFinal func(ctx context.Context, op *Operation)

	// Discard, if not nil, is called with results of a handler that were not
	// recorded, because the claim was lost, the operation was cancelled or
	// the attempt was not a success after all.
	Discard func(ctx context.Context, results []File)

	Log *slog.Logger // nil discards
}

// A Tracker accepts operations, runs them and tells how they are.
type Tracker struct {
	cfg   Config
	hub   hub
	gauge gauge
	gate  gate

	clock *steady.Clock // for what ends by time
	pulse pulse

	rescued atomic.Int64
	running atomic.Bool
	cancels sync.Mutex // serialises Cancel, so that OnFinal is called once

	mu   sync.Mutex
	base context.Context             // of the items being worked on; set by Run
	over time.Time                   // when the time of grace was over; zero: it is not
	runs map[string]map[int]*attempt // by operation and index
}

// Causes of the end of an attempt's context.
var (
	errCancelled = errors.New("the operation was cancelled")
	errTimeout   = errors.New("the work took too long")
	errRevoked   = errors.New("the claim was lost or the operation was cancelled")
	errStopping  = errors.New("the process is stopping")
)

// An attempt is an item that this process works on.
type attempt struct {
	cancel   context.CancelCauseFunc
	progress atomic.Uint64 // bits of a float64
	claimed  atomic.Bool
}

// raise records progress and reports whether it is news.
func (a *attempt) raise(p float64) bool {
	if !(p > 0) { // also not a number
		return false
	}
	p = min(p, 1)
	for {
		old := a.progress.Load()
		if p <= math.Float64frombits(old) {
			return false
		}
		if a.progress.CompareAndSwap(old, math.Float64bits(p)) {
			return true
		}
	}
}

func (a *attempt) value() float64 { return math.Float64frombits(a.progress.Load()) }

// New returns a Tracker. It starts nothing: see [Tracker.Run].
func New(cfg Config) (*Tracker, error) {
	if cfg.Store == nil {
		cfg.Store = NewMemStore()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Dispatcher == nil {
		cfg.Dispatcher = NewLocal(cfg.Store, &LocalOptions{Log: cfg.Log})
	}
	cfg.Worker = cmp.Or(cfg.Worker, rand.Text())
	cfg.MaxAttempts = cmp.Or(cfg.MaxAttempts, 3)
	cfg.MaxRestarts = cmp.Or(cfg.MaxRestarts, 1000)
	cfg.MaxWait = cmp.Or(cfg.MaxWait, 24*time.Hour)
	cfg.Lease = cmp.Or(cfg.Lease, 15*time.Second)
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, min(time.Second, cfg.Lease/6))
	cfg.QueueTimeout = cmp.Or(cfg.QueueTimeout, 24*time.Hour)
	cfg.Retention = cmp.Or(cfg.Retention, 24*time.Hour)
	if cfg.Backoff == nil {
		cfg.Backoff = func(attempt int) time.Duration {
			return min(5*time.Minute, time.Second<<(2*min(max(attempt-1, 0), 10)))
		}
	}
	switch {
	case cfg.MaxAttempts < 0 || cfg.MaxRestarts < 0 || cfg.MaxQueued < 0 || cfg.MaxQueuedPerOwner < 0:
		return nil, errors.New("negative limit")
	case cfg.Heartbeat < 0 || cfg.Lease < 2*cfg.Heartbeat:
		return nil, fmt.Errorf("a lease of %v is too short for a heartbeat every %v", cfg.Lease, cfg.Heartbeat)
	}
	t := &Tracker{cfg: cfg, clock: steady.New(), runs: make(map[string]map[int]*attempt)}
	t.pulse.lease.Store(int64(cfg.Lease))
	return t, nil
}

// newID returns a random (version 4) UUID, RFC 9562 section 5.4: 122 random bits.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Submit stores an operation with all its items queued and has them worked on.
// ID and Created are filled in if they are zero; of the items only Queue and
// Inputs count.
//
// If op.IdempotencyKey is not empty and was used by op.Owner within the last 24
// hours, the operation of then is returned and nothing is stored. The caller may
// compare Fingerprint to see whether it is the same request.
func (t *Tracker) Submit(ctx context.Context, op Operation) (*Operation, error) {
	if len(op.Items) == 0 {
		return nil, errors.New("operation without items")
	}
	op = *op.Clone()
	op.ID = cmp.Or(op.ID, newID())
	if op.Created.IsZero() {
		op.Created = time.Now()
	}
	op.Created = op.Created.UTC().Truncate(time.Millisecond)
	op.State, op.Cancelled, op.Finished = Queued, false, time.Time{}
	for i, it := range op.Items {
		op.Items[i] = Item{Queue: it.Queue, Inputs: it.Inputs, State: Queued}
	}

	if err := t.reserve(ctx, op.Owner, len(op.Items)); err != nil {
		return nil, err
	}
	got, err := t.cfg.Store.Create(ctx, &op)
	isNew := err == nil && got.ID == op.ID
	t.gauge.release(op.Owner, len(op.Items), isNew)
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	if n, ok := t.cfg.Dispatcher.(Notifier); ok && isNew {
		items := make([]PendingItem, len(got.Items))
		for i, it := range got.Items {
			items[i] = PendingItem{
				Ref: Ref{got.ID, i}, Queue: it.Queue, Owner: got.Owner, Created: got.Created, Since: got.Created,
			}
		}
		n.Notify(items)
	}
	return got, nil
}

// Get returns an operation of owner. It matches fs.ErrNotExist if there is none,
// also if it belongs to someone else.
func (t *Tracker) Get(ctx context.Context, owner, id string) (*Operation, error) {
	return t.get(owner, id, func() (*Operation, error) { return t.cfg.Store.Get(ctx, id) })
}

// get reads an operation and adds the progress that the store does not know yet.
// That must be looked at first: if an attempt ends in between, the store knows.
func (t *Tracker) get(owner, id string, read func() (*Operation, error)) (*Operation, error) {
	progress := t.progress(id)
	op, err := read()
	if err != nil {
		return nil, err
	}
	if op.Owner != owner {
		return nil, missing(id)
	}
	raise(op, progress)
	return op, nil
}

// progress returns the progress of the items of an operation that this process
// works on.
func (t *Tracker) progress(id string) map[int]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.runs[id]) == 0 {
		return nil
	}
	m := make(map[int]float64, len(t.runs[id]))
	for i, a := range t.runs[id] {
		m[i] = a.value()
	}
	return m
}

func raise(op *Operation, progress map[int]float64) {
	for i, p := range progress {
		if i < len(op.Items) && !op.Items[i].State.Final() {
			op.Items[i].Progress = max(op.Items[i].Progress, p)
		}
	}
}

// List yields the operations of q.Owner that q selects, newest first.
func (t *Tracker) List(ctx context.Context, q Query) iter.Seq2[*Operation, error] {
	return func(yield func(*Operation, error) bool) {
		for op, err := range t.cfg.Store.List(ctx, q) {
			if err == nil {
				raise(op, t.progress(op.ID))
			}
			if !yield(op, err) {
				return
			}
		}
	}
}

// Cancel ends an operation of owner: items that wait never start, those that are
// worked on are stopped. Cancelling a final operation changes nothing. It
// returns the operation as it is then, which need not be final yet.
func (t *Tracker) Cancel(ctx context.Context, owner, id string) (*Operation, error) {
	op, ended, err := t.cancel(ctx, owner, id)
	if err != nil {
		return nil, fmt.Errorf("cancel: %w", err)
	}
	if ended {
		t.ended(context.WithoutCancel(ctx), op)
	}
	return op, nil
}

// cancel reports whether it has made the operation final.
func (t *Tracker) cancel(ctx context.Context, owner, id string) (op *Operation, ended bool, err error) {
	t.cancels.Lock()
	defer t.cancels.Unlock()
	before, err := t.Get(ctx, owner, id)
	if err != nil || before.State.Final() {
		return before, false, err
	}
	op, err = t.cfg.Store.Cancel(ctx, owner, id)
	if err != nil {
		return nil, false, err
	}
	t.gauge.forget()
	t.stop(id)
	t.hub.changed(op, true)
	// Had it been final already, it would not be marked as cancelled; had it
	// been marked before, the last of its items would have ended it.
	return op, op.State.Final() && op.Cancelled && !before.Cancelled, nil
}

// ended tells of an operation that has become final.
func (t *Tracker) ended(ctx context.Context, op *Operation) {
	if t.cfg.OnFinal == nil {
		return
	}
	defer t.recovered("OnFinal panicked", op.ID)
	t.cfg.OnFinal(ctx, op.Clone())
}

// discard gives results back that were not recorded.
func (t *Tracker) discard(ctx context.Context, id string, results []File) {
	if t.cfg.Discard == nil || len(results) == 0 {
		return
	}
	defer t.recovered("Discard panicked", id)
	t.cfg.Discard(ctx, results)
}

func (t *Tracker) recovered(msg, id string) {
	if r := recover(); r != nil {
		t.cfg.Log.Error(msg, "operation", id, "panic", r, "stack", string(debug.Stack()))
	}
}

// Run works on items until ctx is done. Then no item is started any more; those
// in work have the time grace to end, before they are stopped and given back,
// without loss of an attempt, for another process to do. Run returns when all of
// this is done, nil if that is because ctx is done. A store that does not answer is
// not waited for: items that could not be given back are begun again when their claims
// have lapsed. Run must not be called again before it has returned.
func (t *Tracker) Run(ctx context.Context, grace time.Duration) error {
	if t.cfg.Handler == nil {
		return errors.New("no handler to run items with")
	}
	if !t.running.CompareAndSwap(false, true) {
		return errors.New("tracker is running already")
	}
	defer t.running.Store(false)

	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(errStopping)
	t.mu.Lock()
	t.base, t.over = base, time.Time{}
	t.mu.Unlock()
	if t.cfg.Exclusive {
		n, err := t.cfg.Store.Recover(ctx, t.cfg.Worker)
		if err != nil {
			return fmt.Errorf("recover running items: %w", err)
		}
		t.rescued.Add(int64(n))
	}

	dispatch, end := context.WithCancel(ctx)
	// Claims must be renewed until the last item has ended.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	loops.Go(func() {
		every(background, t.cfg.Heartbeat, func(ctx context.Context) { t.measure(t.heartbeat(ctx)) })
	})
	// The first sweep may have a week's operations to delete.
	loops.Go(func() {
		t.sweep(dispatch)
		every(dispatch, t.sweepInterval(), t.sweep)
	})
	loops.Go(func() { t.follow(background) })
	defer loops.Wait()
	defer cancel()
	defer end()

	done := make(chan error, 1)
	go func() { done <- t.cfg.Dispatcher.Run(dispatch, t.cfg.Limits, t.work) }()
	select {
	case err := <-done:
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("dispatcher ended: %w", cmp.Or(err, errors.New("no reason given")))
	case <-ctx.Done():
	}
	timer := time.NewTimer(max(0, grace))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.mu.Lock()
		t.over = time.Now()
		t.mu.Unlock()
		stop(errStopping)
		<-done
	}
	return nil
}

// every calls f from time to time until ctx is done.
func every(ctx context.Context, d time.Duration, f func(context.Context)) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f(ctx)
		}
	}
}

// A pulse says for how long claims are taken. The loop of heartbeats uses it; its lease
// is for all.
type pulse struct {
	last  time.Time     // when the last heartbeat was over
	late  time.Duration // by how much heartbeats have been late; it fades
	lease atomic.Int64  // time.Duration
}

// mostLease is the longest lease that a process takes because it is starved, unless it
// is configured with more.
const mostLease = 15 * time.Second

// measure notes the end of a heartbeat. One that failed says nothing of this host.
func (t *Tracker) measure(ok bool) {
	p, now := &t.pulse, time.Now()
	if ok && !p.last.IsZero() {
		p.late = max(now.Sub(p.last)-t.cfg.Heartbeat, p.late-p.late/64)
		lease := min(t.cfg.Lease+4*p.late, mostLease)
		p.lease.Store(int64(max(t.cfg.Lease, lease)))
	}
	p.last = now
}

// lease returns how long claims last.
func (t *Tracker) lease() time.Duration { return time.Duration(t.pulse.lease.Load()) }

// heartbeat renews the claims of this process. It reports whether the store did so.
func (t *Tracker) heartbeat(ctx context.Context) bool {
	progress := make(map[Ref]float64)
	attempts := make(map[Ref]*attempt)
	t.mu.Lock()
	for id, items := range t.runs {
		for i, a := range items {
			if a.claimed.Load() {
				progress[Ref{id, i}] = a.value()
				attempts[Ref{id, i}] = a
			}
		}
	}
	t.mu.Unlock()
	if len(progress) == 0 {
		return true
	}
	limited, cancel := context.WithTimeout(ctx, t.lease()/2) // there is time for another one
	defer cancel()
	stop, err := t.cfg.Store.Heartbeat(limited, t.cfg.Worker, t.lease(), progress)
	if err != nil {
		if ctx.Err() == nil {
			t.cfg.Log.Error("claims cannot be renewed", "error", err)
		}
		return false
	}
	for _, ref := range stop {
		attempts[ref].cancel(errRevoked)
	}
	return true
}

// begin registers an attempt. It fails if there is one already, whose claim must
// have been lost without its handler having returned yet.
func (t *Tracker) begin(ref Ref) (*attempt, context.Context, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs[ref.Operation][ref.Index] != nil {
		return nil, nil, false
	}
	a := new(attempt)
	var ctx context.Context
	ctx, a.cancel = context.WithCancelCause(t.base)
	if t.runs[ref.Operation] == nil {
		t.runs[ref.Operation] = make(map[int]*attempt)
	}
	t.runs[ref.Operation][ref.Index] = a
	return a, ctx, true
}

func (t *Tracker) end(ref Ref, a *attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.runs[ref.Operation], ref.Index)
	if len(t.runs[ref.Operation]) == 0 {
		delete(t.runs, ref.Operation)
	}
	a.cancel(nil)
}

// work makes an attempt at an item. It is called by the dispatcher, whose context
// ends before the time of grace and is of no interest therefore.
func (t *Tracker) work(_ context.Context, ref Ref) error {
	// Registered before the claim, so that Cancel finds either.
	a, ctx, ok := t.begin(ref)
	if !ok {
		return &RetryError{After: t.cfg.Heartbeat}
	}
	defer t.end(ref, a)
	// Before the claim, so that somebody else may start the item meanwhile.
	if !t.gate.enter(ctx) {
		return new(RetryError)
	}
	defer t.gate.leave()
	plain := context.WithoutCancel(ctx)
	c, err := t.cfg.Store.Claim(plain, ref, t.cfg.Worker, t.lease())
	switch {
	case errors.Is(err, ErrLost), errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil: // ErrParallel too
		return fmt.Errorf("claim: %w", err)
	}
	a.raise(c.Item.Progress)
	a.claimed.Store(true)
	if c.Rescued {
		t.rescued.Add(1)
	}
	t.gauge.started(c.Op.Owner)
	t.hub.changed(c.Op, true)

	var o Outcome
	switch {
	case c.Op.Cancelled: // Finish will say so
	case c.Item.Attempt > t.cfg.MaxAttempts:
		o.Error = &Error{CodeInternal, "processing was interrupted too often"}
	case c.Item.Restarts > t.cfg.MaxRestarts:
		o.Error = &Error{CodeInternal, "the server was restarted too often while the file was processed"}
	default:
		c.Alone = c.Item.suspected() && t.gate.isolate(ctx)
		switch {
		case c.Alone || !c.Item.suspected():
			o = t.handle(ctx, a, c)
		case ctx.Err() != nil:
			o = Outcome{Release: true}
		default:
			o = t.putOff(c, Outcome{Release: true, Waiting: WaitAlone})
		}
	}
	return t.finish(plain, a, c, o)
}

// handle runs the handler and returns what has become of the attempt.
func (t *Tracker) handle(ctx context.Context, a *attempt, c *Claim) Outcome {
	limit := 30 * time.Minute
	if t.cfg.WorkTimeout != nil {
		limit = cmp.Or(t.cfg.WorkTimeout(c.Item.Queue), limit)
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	o := t.call(ctx, c, func(p float64) {
		if a.raise(p) {
			t.hub.changed(c.Op, false)
		}
	})
	success := o.Error == nil && !o.Retry && !o.Release
	if cause := context.Cause(ctx); cause != nil && !success {
		// What the handler says of an end that was forced upon it does not
		// count. A success does, if Finish still accepts it.
		switch {
		case errors.Is(cause, errTimeout):
			o = Outcome{Results: o.Results, Error: &Error{CodeTimeout, "processing took longer than " + limit.String()}}
		case errors.Is(cause, errCancelled):
			o = Outcome{Results: o.Results, Error: &Error{CodeCancelled, "the operation was cancelled"}}
		default:
			o = Outcome{Results: o.Results, Release: true, Clean: o.Clean}
		}
	}
	if o.Release && o.Waiting != "" {
		return t.putOff(c, o)
	}
	if o.Retry && !o.Release {
		if c.Item.Attempt >= t.cfg.MaxAttempts {
			o.Retry = false
			if o.Error == nil {
				o.Error = &Error{CodeInternal, "processing did not succeed"}
			}
		} else if o.RetryAfter <= 0 {
			o.RetryAfter = t.cfg.Backoff(c.Item.Attempt)
		}
	}
	return o
}

// Bounds of the pause before an item is started again that waits for something.
const (
	leastWait = time.Second
	mostWait  = 30 * time.Second

	// slowest is how long an attempt and the pause after it take at most, on the
	// average, if the clock is right.
	slowest = 10 * time.Minute
)

// putOff returns the outcome of an item that waits for something: it is started again
// when it has waited for as long as it has until now, so that pauses double, and it
// fails when it has waited for too long.
func (t *Tracker) putOff(c *Claim, o Outcome) Outcome {
	var waited time.Duration
	if w := c.Item.Waiting; w != nil {
		waited = time.Since(w.Since)
	}
	// A clock that jumps is no wait: there were attempts in that time.
	if t.cfg.MaxWait > 0 && waited >= t.cfg.MaxWait && c.Token > int(t.cfg.MaxWait/slowest) {
		return Outcome{Results: o.Results, Error: &Error{CodeWaited, fmt.Sprintf("what the work on the file needs was not available for %v (%s)", t.cfg.MaxWait, o.Waiting)}}
	}
	if o.RetryAfter <= 0 {
		pause := min(max(waited, leastWait), mostWait)
		o.RetryAfter = pause - pause/4 + mrand.N(pause/2)
	}
	return o
}

// Rescued returns how many items this process has taken over from workers that died,
// froze or lost the store.
func (t *Tracker) Rescued() int64 { return t.rescued.Load() }

// call calls the handler and survives its panic.
func (t *Tracker) call(ctx context.Context, c *Claim, progress func(float64)) (o Outcome) {
	defer func() {
		if r := recover(); r != nil {
			t.cfg.Log.Error("handler panicked", "operation", c.Operation, "index", c.Index,
				"action", c.Op.Action, "panic", r, "stack", string(debug.Stack()))
			o = Outcome{Error: &Error{CodeInternal, "processing failed unexpectedly"}}
		}
	}()
	claim := *c // the handler may keep or change what it gets
	claim.Item, claim.Op = c.Item.clone(), c.Op.Clone()
	return t.cfg.Handler.Handle(ctx, &claim, progress)
}

// lastWait is how long recording an outcome is tried when the time of grace is over.
const lastWait = 5 * time.Second

// finishDeadline returns a context for recording an outcome that exists since a time. It
// has a deadline if the process is to stop.
func (t *Tracker) finishDeadline(ctx context.Context, since time.Time) (context.Context, context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over.IsZero():
		return context.WithCancel(ctx)
	case t.over.After(since):
		since = t.over
	}
	return context.WithDeadline(ctx, since.Add(lastWait))
}

// retryUntil calls f until the store has answered. It fails when the process is to stop
// and the finishDeadline of an outcome that exists since a time has passed.
func (t *Tracker) retryUntil(ctx context.Context, since time.Time, f func(context.Context) (answered bool)) bool {
	for b := backoff.New(50*time.Millisecond, 5*time.Second); ; {
		limited, cancel := t.finishDeadline(ctx, since)
		answered := f(limited)
		over := limited.Err() != nil
		cancel()
		if answered || over {
			return answered
		}
		_ = b.Wait(context.WithoutCancel(ctx)) // the end of ctx does not end the attempts
	}
}

// finish records the outcome of an attempt.
func (t *Tracker) finish(ctx context.Context, a *attempt, c *Claim, o Outcome) error {
	c.Item.Progress = max(c.Item.Progress, a.value())
	since := time.Now()
	var op *Operation
	var err error
	// A store that is out of order for a moment must not cost the work. The
	// claim is renewed meanwhile, or lost.
	unsure := false
	if !t.retryUntil(ctx, since, func(ctx context.Context) bool {
		op, err = t.cfg.Store.Finish(ctx, c, o)
		if err == nil || errors.Is(err, ErrLost) {
			return true
		}
		unsure = true
		t.cfg.Log.Error("outcome cannot be recorded", "operation", c.Operation, "index", c.Index, "error", err)
		return false
	}) {
		return fmt.Errorf("finish: %w", err)
	}
	final := err == nil && op.State.Final()
	if err != nil && unsure {
		// A call may have failed only after it had done its work. The results may be
		// somebody's by now, and must stay until that is known.
		if !t.retryUntil(ctx, since, func(ctx context.Context) bool {
			op, err = t.recorded(ctx, c, o)
			return err == nil || errors.Is(err, ErrLost) || errors.Is(err, fs.ErrNotExist)
		}) {
			return fmt.Errorf("finish: %w", err)
		}
		final = err == nil && op.State.Final() && op.Finished.Equal(op.Items[c.Index].Finished)
	}
	if err != nil {
		t.cfg.Log.Warn("claim was lost, outcome is dropped", "operation", c.Operation, "index", c.Index)
		t.discard(ctx, c.Operation, o.Results)
		t.hub.changed(c.Op, true)
		return new(RetryError) // if it is not done it must be begun again
	}

	t.hub.changed(op, true)
	it, _ := o.Apply(c.Item, op.Cancelled, time.Now())
	if len(op.Items) > 0 {
		it = op.Items[c.Index]
	}
	if it.State != Completed {
		t.discard(ctx, c.Operation, o.Results)
	}
	if final {
		t.ended(ctx, op)
	}
	if it.State == Queued {
		t.gauge.requeued(op.Owner)
		return &RetryError{After: o.RetryAfter}
	}
	return nil
}

// recorded returns the operation if an outcome is in the store already, else an
// error.
func (t *Tracker) recorded(ctx context.Context, c *Claim, o Outcome) (*Operation, error) {
	op, err := t.cfg.Store.Get(ctx, c.Operation)
	if err != nil {
		return nil, err
	}
	it := op.Items[c.Index]
	same := func(a, b File) bool { return a.Key == b.Key }
	if !it.State.Final() || it.Claims != c.Token || !slices.EqualFunc(it.Results, o.Results, same) {
		return nil, ErrLost
	}
	return op, nil
}

// sweepInterval is how often Run sweeps: often enough for both time limits.
func (t *Tracker) sweepInterval() time.Duration {
	d := time.Minute
	for _, limit := range []time.Duration{t.cfg.QueueTimeout, t.cfg.Retention} {
		if limit > 0 {
			d = min(d, limit/4)
		}
	}
	return max(d, 100*time.Millisecond)
}

func (t *Tracker) sweep(ctx context.Context) {
	if _, _, err := t.Sweep(ctx); err != nil && ctx.Err() == nil {
		t.cfg.Log.Error("sweep failed", "error", err)
	}
}

// Sweep fails items that have waited too long, and deletes operations that have
// been final for long enough. Run does so from time to time.
func (t *Tracker) Sweep(ctx context.Context) (expired, deleted int, err error) {
	now := t.clock.Earliest() // a clock that is set forward ends nothing
	if t.cfg.QueueTimeout > 0 {
		expired, err = t.expire(ctx, now.Add(-t.cfg.QueueTimeout))
	}
	if t.cfg.Retention > 0 {
		n, err2 := t.cfg.Store.DeleteFinished(ctx, now.Add(-t.cfg.Retention))
		deleted, err = n, errors.Join(err, err2)
	}
	return expired, deleted, err
}

// expire fails the items that have been waiting since before the given time.
func (t *Tracker) expire(ctx context.Context, before time.Time) (n int, err error) {
	for it, err := range t.cfg.Store.Pending(ctx, PendingQuery{}) {
		if err != nil {
			return n, err
		}
		if it.Created.After(before) {
			break // so are all that follow
		}
		if it.Since.After(before) {
			continue
		}
		c, err := t.cfg.Store.Claim(ctx, it.Ref, t.cfg.Worker, t.cfg.Lease)
		if errors.Is(err, ErrLost) || errors.Is(err, ErrParallel) || errors.Is(err, fs.ErrNotExist) {
			continue // it has just been started, or must wait for its turn to fail
		}
		if err != nil {
			return n, err
		}
		t.gauge.started(it.Owner)
		op, err := t.cfg.Store.Finish(context.WithoutCancel(ctx), c, Outcome{Error: &Error{CodeTimeout, "waited for longer than " + t.cfg.QueueTimeout.String() + " to be processed"}})
		if errors.Is(err, ErrLost) {
			continue
		}
		if err != nil {
			return n, err
		}
		n++
		t.hub.changed(op, true)
		if op.State.Final() {
			t.ended(ctx, op)
		}
	}
	return n, nil
}
