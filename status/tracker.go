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
	"github.com/filewright/filewright/internal/lastrun"
	"github.com/filewright/filewright/internal/steady"
	"github.com/filewright/filewright/trace"
)

// ErrQueueFull reports that too many items are queued; see [Config.MaxQueued]. The
// caller may submit the operation again later.
var ErrQueueFull = errors.New("too many queued items")

// A QueueFullError is the error of Submit when too many items are queued. It matches
// [ErrQueueFull].
type QueueFullError struct {
	// Owner reports whether the limit per owner is reached; if not, it is the limit of
	// all owners together.
	Owner bool

	// RetryAfter estimates when there will be room, from the rate at which this process
	// starts items: 1 second to 1 minute.
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

	// Limits holds the maximum number of running items by queue, for this process.
	// Limits[""] applies to queues that are not named; 0 means GOMAXPROCS; a negative
	// limit disables a queue.
	Limits map[string]int

	// Worker names this process in claims. It must be unique among all processes that
	// share the store or have shared it. "": random.
	Worker string

	// Node names this process or its host in the attempts of items, for people. "": none.
	Node string

	// Exclusive declares that no other process runs items of Store. Items that an
	// earlier process left running then restart at once, not when their claims lapse.
	Exclusive bool

	// MaxAttempts is the number of attempts after which an item fails although its
	// handler requests a retry. 0: 3.
	MaxAttempts int

	// MaxRestarts is how often an item restarts because its worker died, froze or lost
	// the store, before it fails with CodeInternal. After three restarts the item runs
	// alone. 0: 1000.
	MaxRestarts int

	// MaxWait is how long an item waits for a missing resource before it fails with
	// CodeWaited. See Outcome.Waiting. 0: 24 hours, <0: no limit.
	MaxWait time.Duration

	// Backoff returns the pause before a retry if the handler does not set one; attempt
	// is the number of the failed attempt, from 1. nil: 1 s, 4 s, 16 s …, at most 5
	// minutes.
	Backoff func(attempt int) time.Duration

	// Lease is how long a claim lasts without a heartbeat, and Heartbeat is the
	// interval between heartbeats. A cancellation by another process is noticed by a
	// heartbeat, one by this process at once. A process whose heartbeats are late,
	// because its host is overloaded, takes longer leases for some minutes. 0: 15
	// seconds, and a sixth of Lease, at most 1 second.
	Lease     time.Duration
	Heartbeat time.Duration

	// QueueTimeout is how long an item may be queued before it fails with CodeTimeout.
	// 0: 24 hours, <0: no limit.
	QueueTimeout time.Duration

	// WorkTimeout returns how long one attempt at an item of a queue may take before it
	// fails with CodeTimeout. 0 means 30 minutes, <0 no limit. nil: 30 minutes for all
	// queues.
	WorkTimeout func(queue string) time.Duration

	// WithTimeout returns a context that ends with cause when an attempt has used up its
	// WorkTimeout, so that something else than wall time can count. cause matches
	// context.DeadlineExceeded. nil: context.WithTimeoutCause.
	WithTimeout func(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc)

	// Retention is how long final operations are kept. 0: 24 hours, <0: for ever.
	Retention time.Duration

	// MaxQueued and MaxQueuedPerOwner limit the queued items in the store; beyond them
	// Submit fails with ErrQueueFull. 0: no limit. Several processes together may
	// exceed the limits a little.
	MaxQueued         int
	MaxQueuedPerOwner int

	// Next makes the items of the next step of an operation of several steps; see
	// [Outcome.Next]. nil: such operations end after their first step.
	Next func(op *Operation) []Item

	// OnFinal, if not nil, is called when this process makes an operation final. It
	// delays the next item of the queue until it returns. It is called at most once:
	// not again if the process dies before or during the call.
	OnFinal func(ctx context.Context, op *Operation)

	// Discard, if not nil, is called with results of a handler that were not recorded,
	// because the claim was lost, the operation was cancelled or the attempt failed
	// after all.
	Discard func(ctx context.Context, results []File)

	// Tracer records spans of the time in the queue and of attempts. nil: none.
	Tracer trace.Tracer

	Log *slog.Logger // nil discards
}

// A Tracker accepts operations, runs them and reports their state.
type Tracker struct {
	cfg   Config
	hub   hub
	gauge gauge
	gate  gate

	clock *steady.Clock // for timeouts
	pulse pulse

	rescued atomic.Int64
	running atomic.Bool
	cancels sync.Mutex // serialises Cancel, so that OnFinal is called once
	swept   lastrun.Record

	mu   sync.Mutex
	base context.Context             // parent of the attempts' contexts; set by Run
	over time.Time                   // when the grace period ended; zero: not yet
	runs map[string]map[int]*attempt // by operation and index
}

// Reasons for which an attempt's context is cancelled.
var (
	errCancelled = errors.New("the operation was cancelled")
	errTimeout   = fmt.Errorf("processing took too long: %w", context.DeadlineExceeded)
	errRevoked   = errors.New("the claim was lost or the operation was cancelled")
	errStopping  = errors.New("the process is stopping")
)

// An attempt is one run of an item by this process.
type attempt struct {
	cancel   context.CancelCauseFunc
	progress atomic.Uint64 // bits of a float64
	claimed  atomic.Bool
}

// raise records progress and reports whether it increased.
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
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
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
	if cfg.WithTimeout == nil {
		cfg.WithTimeout = context.WithTimeoutCause
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

// Submit stores an operation with all its items queued and wakes the dispatcher. Submit
// fills in ID and Created if they are zero; of the items it uses only Queue and Inputs.
//
// If op.IdempotencyKey is not empty and op.Owner used it within the last 24 hours,
// Submit stores nothing and returns that operation. The caller may compare Fingerprint
// to see whether it is the same request.
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
	op.Begin()

	if err := t.reserve(ctx, op.Owner, len(op.Items)); err != nil {
		return nil, err
	}
	got, err := t.cfg.Store.Create(ctx, &op)
	isNew := err == nil && got.ID == op.ID
	t.gauge.release(op.Owner, len(op.Items), isNew)
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	if isNew {
		t.notify(got, got.Items, 0)
	}
	return got, nil
}

// notify passes new items of op, the first of which has the given index, to the
// dispatcher. It returns the number of queued items.
func (t *Tracker) notify(op *Operation, items []Item, first int) (queued int) {
	var pending []PendingItem
	for i, it := range items {
		if it.State == Queued {
			pending = append(pending, PendingItem{
				Ref: Ref{op.ID, first + i}, Queue: it.Queue, Owner: op.Owner, Created: op.Created, Since: op.Created,
			})
		}
	}
	if n, ok := t.cfg.Dispatcher.(Notifier); ok {
		n.Notify(pending)
	}
	return len(pending)
}

// advanced notifies the dispatcher if the end of an item has started a step of op.
func (t *Tracker) advanced(op *Operation, item int) {
	if step := op.Step(); !op.State.Final() && len(op.Items) > 0 && step > op.StepOf(item) {
		items, first := op.ItemsOf(step)
		t.gauge.add(op.Owner, t.notify(op, items, first))
	}
}

// Get returns an operation of owner. It fails with fs.ErrNotExist if there is no such
// operation or it belongs to another owner.
func (t *Tracker) Get(ctx context.Context, owner, id string) (*Operation, error) {
	return t.get(owner, id, func() (*Operation, error) { return t.cfg.Store.Get(ctx, id) })
}

// get reads an operation and adds the progress that the store does not know yet. It
// reads the local progress first: if an attempt finishes in between, the store has its
// progress.
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

// progress returns the progress of the items of an operation that this process runs.
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

// Cancel cancels an operation of owner: queued items never start, running items are
// stopped. Cancelling a final operation changes nothing. Cancel returns the operation,
// which may not be final yet.
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

// cancel reports whether this call made the operation final.
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
	// An operation that was final before is not marked as cancelled. If it had been
	// marked before, its last item would have made it final.
	return op, op.State.Final() && op.Cancelled && !before.Cancelled, nil
}

// ended notifies watchers and OnFinal that an operation is final.
func (t *Tracker) ended(ctx context.Context, op *Operation) {
	if t.cfg.OnFinal == nil {
		return
	}
	defer t.recovered("OnFinal panicked", op.ID)
	t.cfg.OnFinal(ctx, op.Clone())
}

// discard passes unrecorded results to Config.Discard.
func (t *Tracker) discard(ctx context.Context, id string, results []File) {
	if t.cfg.Discard == nil || len(results) == 0 {
		return
	}
	defer t.recovered("Discard panicked", id)
	t.cfg.Discard(ctx, results)
}

// logOf returns a logger for lines about an item.
func (t *Tracker) logOf(c *Claim) *slog.Logger {
	log := t.cfg.Log.With("request_id", c.Op.Origin.Request, "operation", c.Operation, "item", c.Index, "account", c.Op.Owner, "key", c.Op.Origin.Key)
	if id := trace.ID(c.Op.Origin.Trace); id != "" {
		log = log.With("trace_id", id)
	}
	return log
}

// startSpan starts the span of an attempt. The time in the queue, since the item was queued or tried
// before, gets a span of its own.
func (t *Tracker) startSpan(ctx context.Context, c *Claim) (context.Context, *trace.Span) {
	if t.cfg.Tracer == nil {
		return ctx, nil
	}
	since := c.Op.Queued(c.Index)
	if n := len(c.Item.Attempts); n > 0 {
		since = c.Item.Attempts[n-1].Ended
	}
	known := !since.IsZero() && !since.After(time.Now())
	if known && c.Op.Origin.Trace != "" {
		_, wait := trace.Root(ctx, t.cfg.Tracer, c.Op.Origin.Trace, "queue", trace.Internal, since)
		wait.Int("filewright.item", int64(c.Index))
		wait.String("filewright.queue", c.Item.Queue)
		wait.End("")
	}
	ctx, span := trace.Root(ctx, t.cfg.Tracer, c.Op.Origin.Trace, "attempt", trace.Consumer, time.Time{})
	span.String("filewright.operation", c.Operation)
	span.Int("filewright.item", int64(c.Index))
	span.String("filewright.action", c.Op.ActionOf(c.Index))
	span.String("filewright.queue", c.Item.Queue)
	span.Int("filewright.attempt", int64(c.Item.Attempt))
	span.Bool("filewright.rescued", c.Rescued)
	if known {
		span.Int("filewright.queue_ms", time.Since(since).Milliseconds())
	}
	return ctx, span
}

// endSpan ends the span of an attempt with its outcome.
func endSpan(span *trace.Span, o Outcome) {
	if span == nil {
		return
	}
	code := o.Waiting
	switch {
	case o.Error != nil:
		code = o.Error.Code
	case o.Release:
		code = cmp.Or(code, "interrupted")
	}
	span.String("filewright.engine", o.Engine)
	span.Bool("filewright.retry", o.Retry || o.Release)
	span.End(code)
}

func (t *Tracker) recovered(msg, id string) {
	if r := recover(); r != nil {
		t.cfg.Log.Error(msg, "operation", id, "panic", r, "stack", string(debug.Stack()))
	}
}

// Run runs items until ctx is done. Then it starts no more items and gives running ones
// the time grace to finish. After that it stops and releases them, without loss of an
// attempt, for another process to run. Run returns when all items have stopped, with
// nil if ctx ended it. It does not wait for a store that does not respond: items that
// it could not release restart when their claims lapse. Run must not be called again
// before it has returned.
func (t *Tracker) Run(ctx context.Context, grace time.Duration) error {
	if t.cfg.Handler == nil {
		return errors.New("no handler to run items with")
	}
	if !t.running.CompareAndSwap(false, true) {
		return errors.New("tracker is already running")
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
	// Claims must be renewed until the last item has stopped.
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
		return fmt.Errorf("dispatcher stopped: %w", cmp.Or(err, errors.New("no reason given")))
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

// every calls f every d until ctx is done.
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

// A pulse computes the lease of claims from the delay of heartbeats. Only the heartbeat
// loop uses it, except for lease.
type pulse struct {
	last  time.Time     // when the last heartbeat finished
	late  time.Duration // how late heartbeats have been; decays
	lease atomic.Int64  // time.Duration
}

// maxLease is the longest lease that a starved process takes, unless Config.Lease is
// longer.
const maxLease = 15 * time.Second

// measure records the end of a heartbeat. A failed heartbeat says nothing about this
// host's load.
func (t *Tracker) measure(ok bool) {
	p, now := &t.pulse, time.Now()
	if ok && !p.last.IsZero() {
		p.late = max(now.Sub(p.last)-t.cfg.Heartbeat, p.late-p.late/64)
		lease := min(t.cfg.Lease+4*p.late, maxLease)
		p.lease.Store(int64(max(t.cfg.Lease, lease)))
	}
	p.last = now
}

// lease returns how long claims last.
func (t *Tracker) lease() time.Duration { return time.Duration(t.pulse.lease.Load()) }

// heartbeat renews the claims of this process. It reports whether the store accepted
// the heartbeat.
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
	limited, cancel := context.WithTimeout(ctx, t.lease()/2) // leaves time for another heartbeat
	defer cancel()
	stop, err := t.cfg.Store.Heartbeat(limited, t.cfg.Worker, t.lease(), progress)
	if err != nil {
		if ctx.Err() == nil {
			t.cfg.Log.Error("cannot renew claims", "err", err)
		}
		return false
	}
	for _, ref := range stop {
		attempts[ref].cancel(errRevoked)
	}
	return true
}

// begin registers an attempt. It reports false if the item already has one here: its
// claim is lost, but its handler has not returned yet.
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

// work makes an attempt at an item. The dispatcher calls it. It ignores the
// dispatcher's context, which ends before the grace period does.
func (t *Tracker) work(_ context.Context, ref Ref) error {
	// Register the attempt before the claim, so that Cancel finds one or the other.
	a, ctx, ok := t.begin(ref)
	if !ok {
		return &RetryError{After: t.cfg.Heartbeat}
	}
	defer t.end(ref, a)
	// Wait before the claim, so that another process can start the item in the
	// meantime.
	if !t.gate.enter(ctx) {
		return new(RetryError)
	}
	defer t.gate.leave()
	plain := context.WithoutCancel(ctx)
	c, err := t.cfg.Store.Claim(plain, ref, t.cfg.Worker, t.lease())
	switch {
	case errors.Is(err, ErrLost), errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil: // includes ErrParallel
		return fmt.Errorf("claim: %w", err)
	}
	a.raise(c.Item.Progress)
	a.claimed.Store(true)
	if c.Rescued {
		t.rescued.Add(1)
	}
	t.gauge.started(c.Op.Owner)
	t.hub.changed(c.Op, true)

	ctx, span := t.startSpan(ctx, c)
	var o Outcome
	defer func() { endSpan(span, o) }()
	switch {
	case c.Op.Cancelled: // Finish will report it
	case c.Item.Attempt > t.cfg.MaxAttempts:
		o.Error = &Error{CodeInternal, "processing was interrupted too often"}
	case c.Item.Restarts > t.cfg.MaxRestarts:
		o.Error = &Error{CodeInternal, "the server was restarted too often while the file was processed"}
	default:
		c.Alone = c.Item.suspected() && t.gate.isolate(ctx)
		span.Bool("filewright.alone", c.Alone)
		switch {
		case c.Alone || !c.Item.suspected():
			o = t.handle(ctx, a, c)
		case ctx.Err() != nil:
			o = Outcome{Release: true}
		default:
			o = t.postpone(c, Outcome{Release: true, Waiting: WaitAlone})
		}
	}
	o.Node = t.cfg.Node
	return t.finish(context.WithoutCancel(ctx), a, c, o)
}

// handle runs the handler and returns the outcome of the attempt.
func (t *Tracker) handle(ctx context.Context, a *attempt, c *Claim) Outcome {
	limit := 30 * time.Minute
	if t.cfg.WorkTimeout != nil {
		limit = cmp.Or(t.cfg.WorkTimeout(c.Item.Queue), limit)
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = t.cfg.WithTimeout(ctx, limit, errTimeout)
		defer cancel()
	}
	o := t.call(ctx, c, func(p float64) {
		if a.raise(p) {
			t.hub.changed(c.Op, false)
		}
	})
	success := o.Error == nil && !o.Retry && !o.Release
	if cause := context.Cause(ctx); cause != nil && !success {
		// If the tracker stopped the handler, ignore the handler's failure. A success
		// counts if Finish still accepts it.
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
		return t.postpone(c, o)
	}
	if o.Retry && !o.Release {
		if c.Item.Attempt >= t.cfg.MaxAttempts {
			o.Retry = false
			if o.Error == nil {
				o.Error = &Error{CodeInternal, "processing failed"}
			}
		} else if o.RetryAfter <= 0 {
			o.RetryAfter = t.cfg.Backoff(c.Item.Attempt)
		}
	}
	return o
}

// Limits of the pause before a waiting item starts again.
const (
	minPostponement = time.Second
	maxPostponement = 30 * time.Second

	// slowest is the longest average time of an attempt and the pause after it, if the
	// clock is right.
	slowest = 10 * time.Minute
)

// postpone returns the outcome of an item that waits for something: the next pause is as
// long as the wait so far, so that pauses double. The item fails when it has waited for
// Config.MaxWait.
func (t *Tracker) postpone(c *Claim, o Outcome) Outcome {
	var waited time.Duration
	if w := c.Item.Waiting; w != nil {
		waited = time.Since(w.Since)
	}
	// If the clock jumped, the item did not wait that long: a real wait contains a
	// minimum number of attempts.
	if t.cfg.MaxWait > 0 && waited >= t.cfg.MaxWait && c.Token > int(t.cfg.MaxWait/slowest) {
		return Outcome{Results: o.Results, Error: &Error{CodeWaited, fmt.Sprintf("a required resource was unavailable for %v (%s)", t.cfg.MaxWait, o.Waiting)}}
	}
	if o.RetryAfter <= 0 {
		pause := min(max(waited, minPostponement), maxPostponement)
		o.RetryAfter = pause - pause/4 + mrand.N(pause/2)
	}
	return o
}

// Rescued returns the number of items that this process has taken over from workers
// that died, froze or lost the store.
func (t *Tracker) Rescued() int64 { return t.rescued.Load() }

// call calls the handler and recovers from its panic.
func (t *Tracker) call(ctx context.Context, c *Claim, progress func(float64)) (o Outcome) {
	defer func() {
		if r := recover(); r != nil {
			t.logOf(c).Error("handler panicked", "action", c.Op.ActionOf(c.Index), "panic", r, "stack", string(debug.Stack()))
			o = Outcome{Error: &Error{CodeInternal, "processing failed unexpectedly"}}
		}
	}()
	claim := *c // the handler may keep or change its argument
	claim.Item, claim.Op = c.Item.clone(), c.Op.Clone()
	return t.cfg.Handler.Handle(ctx, &claim, progress)
}

// lastWait is how long the tracker tries to record an outcome after the grace period.
const lastWait = 5 * time.Second

// finishDeadline returns a context for recording an outcome that has existed since the
// given time. It has a deadline if the process is stopping.
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

// retryUntil calls f until the store has answered. It reports false if the process is
// stopping and the finishDeadline of the outcome, which has existed since the given
// time, has passed.
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
	o.Next = t.cfg.Next
	since := time.Now()
	var op *Operation
	var err error
	// A short outage of the store must not cost the work. Heartbeats renew the claim in
	// the meantime, or it is lost.
	unsure := false
	if !t.retryUntil(ctx, since, func(ctx context.Context) bool {
		op, err = t.cfg.Store.Finish(ctx, c, o)
		if err == nil || errors.Is(err, ErrLost) {
			return true
		}
		unsure = true
		t.logOf(c).Error("cannot record the outcome", "err", err)
		return false
	}) {
		return fmt.Errorf("finish: %w", err)
	}
	final := err == nil && op.State.Final()
	if err != nil && unsure {
		// A failed call may have taken effect. Then the operation refers to the
		// results, so keep them until that is known.
		if !t.retryUntil(ctx, since, func(ctx context.Context) bool {
			op, err = t.recorded(ctx, c, o)
			return err == nil || errors.Is(err, ErrLost) || errors.Is(err, fs.ErrNotExist)
		}) {
			return fmt.Errorf("finish: %w", err)
		}
		final = err == nil && op.State.Final() && op.Finished.Equal(op.Items[c.Index].Finished)
	}
	if err != nil {
		t.logOf(c).Warn("claim lost; outcome dropped")
		t.discard(ctx, c.Operation, o.Results)
		t.hub.changed(c.Op, true)
		return new(RetryError) // an item that is not finished must restart
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
	t.advanced(op, c.Index)
	if it.State == Queued {
		t.gauge.requeued(op.Owner)
		return &RetryError{After: o.RetryAfter}
	}
	return nil
}

// recorded returns the operation if the store has the outcome already, else an error.
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

// sweepInterval returns the time between two sweeps of Run: short enough for
// QueueTimeout and Retention.
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
		t.cfg.Log.Error("sweep failed", "err", err)
	}
}

// Sweep fails items queued for longer than QueueTimeout and deletes operations final
// for longer than Retention. Run calls it periodically.
func (t *Tracker) Sweep(ctx context.Context) (expired, deleted int, err error) {
	now := t.clock.Earliest() // a clock that is set forward must not expire items
	if t.cfg.QueueTimeout > 0 {
		expired, err = t.expire(ctx, now.Add(-t.cfg.QueueTimeout))
	}
	if t.cfg.Retention > 0 {
		n, err2 := t.cfg.Store.DeleteFinished(ctx, now.Add(-t.cfg.Retention))
		deleted, err = n, errors.Join(err, err2)
	}
	t.swept.Set(deleted, err)
	return expired, deleted, err
}

// LastSweep returns when the last [Tracker.Sweep] of this process ended, and its results. The time is
// zero if none has ended.
func (t *Tracker) LastSweep() (at time.Time, deleted int, err error) { return t.swept.Last() }

// expire fails the items that have been queued since before the given time.
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
			continue // it has just started, or must wait for its turn to fail
		}
		if err != nil {
			return n, err
		}
		t.gauge.started(it.Owner)
		op, err := t.cfg.Store.Finish(context.WithoutCancel(ctx), c, Outcome{
			Error: &Error{CodeTimeout, "waited for longer than " + t.cfg.QueueTimeout.String() + " to be processed"}, Next: t.cfg.Next,
		})
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
		t.advanced(op, it.Index)
	}
	return n, nil
}
