package status

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/filewright/filewright/internal/backoff"
)

// A Source is the part of a [Store] that [Local] reads.
type Source interface {
	Pending(ctx context.Context, q PendingQuery) iter.Seq2[PendingItem, error]
	Load(ctx context.Context) ([]Load, error)
}

// LocalOptions configure a [Local]. The zero value is usable.
type LocalOptions struct {
	// Every is the time between two reads of the store for items without a
	// notification, such as those of a process that died. 0: 10 seconds.
	Every time.Duration

	// OverflowWait is how long an owner with queued items and none running waits while
	// another owner holds several slots of the queue, or the only one. Then one of its
	// items starts in the overflow slot, see [Local]. 0: for ever, so that no limit is
	// exceeded.
	OverflowWait time.Duration

	Log *slog.Logger // nil discards
}

// Limits of the items that a Local keeps in memory; the rest waits in the store.
const (
	bucketSize = 32   // items of one owner in one queue
	delayedMax = 4096 // items to be retried later
)

// failureDelay is the pause before the retry of an item whose work failed without a
// RetryError, and before the retry of a failed read of the store.
const failureDelay = time.Second

// A Local is a [Dispatcher] for one process. It starts new items when it is notified of
// them. It takes the items of a queue from their owners in turn, owners without running
// items first, so that no owner waits for another's backlog. It keeps at most 32 items
// per owner and queue in memory and reads the others from the store when needed.
//
// When a claim fails with [ErrParallel], Local skips the owner until one of the owner's
// items finishes, or for a second.
//
// # Long items
//
// Turns are not enough when one owner's long items occupy all slots of a queue. That is
// allowed, because slots that no other owner needs should not be idle. But another
// owner, with nothing running in that queue, may wait for LocalOptions.OverflowWait.
// Then one of its items starts in the overflow slot, one slot beyond the limit. A queue
// has one overflow slot, and nothing new starts until it is free again. So a limit may
// be exceeded by one, but no item is stopped and repeated for another owner.
type Local struct {
	source       Source
	every        time.Duration
	overflowWait time.Duration
	log          *slog.Logger
	wake         chan struct{} // holds a token if there may be work to start

	mu      sync.Mutex
	running bool
	limits  map[string]int
	lanes   map[string]*lane // nil while Run is not running
	owners  map[string]*load // owners with running items or at their limit
	busy    map[Ref]bool     // running items
	delayed delayedHeap
}

// A load counts an owner's running items, over all queues.
type load struct {
	running int

	// The store reported ErrParallel: at most this many may run, assumed until the
	// given time.
	limit int
	until time.Time
}

// full reports whether an owner is at its limit, and until when that is assumed.
func (l *Local) full(owner string, now time.Time) (until time.Time, full bool) {
	o := l.owners[owner]
	if o == nil || o.running < o.limit || !now.Before(o.until) {
		return time.Time{}, false
	}
	return o.until, true
}

// A lane is a queue with the owners that have items in it.
type lane struct {
	limit   int
	running int
	held    map[string]int // slots by owner; no zeros
	ring    []*bucket      // owners in turn
	owners  map[string]*bucket
}

// crowded reports whether an owner exceeds its fair share.
func (ln *lane) crowded() bool {
	for _, n := range ln.held {
		if n > 1 {
			return true
		}
	}
	return ln.limit == 1 && ln.running > 0
}

// turn returns the next bucket, as an index into the ring of a lane: the first owner
// with nothing running, else the first owner. It returns -1 if no item can start before
// the given time.
func (l *Local) turn(ln *lane, now time.Time) (i int, until time.Time) {
	first := -1
	for i, b := range ln.ring {
		if u, full := l.full(b.owner, now); full {
			if until.IsZero() || u.Before(until) {
				until = u
			}
			continue
		}
		if ln.held[b.owner] == 0 && (len(b.items) > 0 || b.more) {
			return i, time.Time{}
		}
		if first < 0 {
			first = i
		}
	}
	if first >= 0 {
		until = time.Time{}
	}
	return first, until
}

func (ln *lane) remove(i int) {
	if i == 0 { // the usual case: do not move the others
		ln.ring[0] = nil
		ln.ring = ln.ring[1:]
		return
	}
	ln.ring = slices.Delete(ln.ring, i, i+1)
}

type bucket struct {
	queue, owner string
	items        []PendingItem
	more         bool // the store may hold more items
	loading      bool // refill is reading: new items must not overtake those it reads

	// since is when handOut first saw that the owner needs a slot and has none; zero if
	// it does not.
	since time.Time
}

type delayedItem struct {
	PendingItem
	due time.Time
}

type delayedHeap []delayedItem

func (h delayedHeap) Len() int           { return len(h) }
func (h delayedHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h delayedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *delayedHeap) Push(x any)        { *h = append(*h, x.(delayedItem)) }
func (h *delayedHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = delayedItem{}
	*h = (*h)[:last]
	return x
}

// NewLocal returns a dispatcher for the items of s. o may be nil.
func NewLocal(s Source, o *LocalOptions) *Local {
	if o == nil {
		o = new(LocalOptions)
	}
	l := &Local{source: s, every: o.Every, overflowWait: o.OverflowWait, log: o.Log, wake: make(chan struct{}, 1)}
	l.every = cmp.Or(max(l.every, 0), 10*time.Second)
	l.log = cmp.Or(l.log, slog.New(slog.DiscardHandler))
	return l
}

// Notify implements [Notifier].
func (l *Local) Notify(items []PendingItem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes == nil {
		return // Run reads the store when it starts
	}
	for _, it := range items {
		l.add(it)
	}
	l.signal()
}

// putBack returns an item that did not start to the front of its owner's items. l.mu is
// held.
func (l *Local) putBack(it PendingItem) {
	b := l.bucket(it.Queue, it.Owner)
	if b.loading || len(b.items) >= bucketSize {
		b.more = true
		return
	}
	b.items = slices.Insert(b.items, 0, it)
}

// signal makes Run look for items to start.
func (l *Local) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// add appends an item to its owner's items. l.mu is held.
func (l *Local) add(it PendingItem) {
	b := l.bucket(it.Queue, it.Owner)
	switch {
	case b == nil:
	case b.more || b.loading || len(b.items) >= bucketSize:
		b.more = true
	default:
		b.items = append(b.items, it)
	}
}

// bucket returns the items of an owner in a queue, or nil if the queue is disabled
// here. l.mu is held.
func (l *Local) bucket(queue, owner string) *bucket {
	ln := l.lanes[queue]
	if ln == nil {
		limit, ok := l.limits[queue]
		if !ok {
			limit = l.limits[""]
		}
		limit = cmp.Or(limit, runtime.GOMAXPROCS(0))
		if limit < 0 {
			return nil
		}
		ln = &lane{limit: limit, held: make(map[string]int), owners: make(map[string]*bucket)}
		l.lanes[queue] = ln
	}
	b := ln.owners[owner]
	if b == nil {
		b = &bucket{queue: queue, owner: owner}
		ln.owners[owner] = b
		ln.ring = append(ln.ring, b)
	}
	return b
}

// Run implements [Dispatcher]. It must not be called again before it has
// returned. A limit of 0 means GOMAXPROCS.
func (l *Local) Run(ctx context.Context, limits map[string]int, work func(context.Context, Ref) error) error {
	l.mu.Lock()
	if l.running {
		l.mu.Unlock()
		return errors.New("dispatcher is already running")
	}
	l.running, l.limits = true, limits
	l.lanes, l.busy, l.delayed = make(map[string]*lane), make(map[Ref]bool), nil
	l.owners = make(map[string]*load)
	l.mu.Unlock()

	var wg sync.WaitGroup
	defer func() {
		l.mu.Lock()
		l.lanes, l.delayed = nil, nil
		l.mu.Unlock()
		wg.Wait()
		l.mu.Lock()
		l.running = false
		l.mu.Unlock()
	}()

	start := func(it PendingItem) { wg.Go(func() { l.work(ctx, it, work) }) }
	tick := time.NewTimer(0) // due at once: read the store at startup
	defer tick.Stop()
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for ctx.Err() == nil {
		empty, next := l.handOut(start)
		if empty != nil {
			if err := l.refill(ctx, empty); err != nil && ctx.Err() == nil {
				l.log.Error("cannot read queued items", "queue", empty.queue, "err", err)
				_ = backoff.Sleep(ctx, failureDelay)
			}
			continue
		}
		retry.Stop()
		if !next.IsZero() {
			retry.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-retry.C:
		case <-tick.C:
			if err := l.loadOwners(ctx); err != nil && ctx.Err() == nil {
				l.log.Error("cannot count queued items", "err", err)
				tick.Reset(min(failureDelay, l.every))
				continue
			}
			tick.Reset(l.every)
		}
	}
	return nil
}

// handOut starts all items that can start. It returns a bucket that must be refilled
// from the store first, if any, and when there may be more to start.
func (l *Local) handOut(start func(PendingItem)) (empty *bucket, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for len(l.delayed) > 0 && !l.delayed[0].due.After(now) {
		l.add(heap.Pop(&l.delayed).(delayedItem).PendingItem)
	}
	if len(l.delayed) > 0 {
		next = l.delayed[0].due
	}
	soon := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, ln := range l.lanes {
		for ln.running < ln.limit && len(ln.ring) > 0 {
			i, until := l.turn(ln, now)
			if i < 0 {
				soon(until)
				break
			}
			b := ln.ring[i]
			if len(b.items) == 0 && b.more {
				b.more, b.loading = false, true
				return b, next
			}
			ln.remove(i)
			if len(b.items) == 0 {
				delete(ln.owners, b.owner)
				continue
			}
			ln.ring = append(ln.ring, b)
			l.startNext(ln, b, start)
		}
		empty, due := l.admitOverflow(ln, now, start)
		if empty != nil {
			return empty, next
		}
		soon(due)
	}
	return nil, next
}

// startNext starts the next item of a bucket, which must not be empty. It reports false
// if the item was running already.
func (l *Local) startNext(ln *lane, b *bucket, start func(PendingItem)) bool {
	it := b.items[0]
	b.items = b.items[1:]
	if l.busy[it.Ref] {
		return false
	}
	l.busy[it.Ref] = true
	ln.running++
	ln.held[b.owner]++
	if l.owners[b.owner] == nil {
		l.owners[b.owner] = new(load)
	}
	l.owners[b.owner].running++
	b.since = time.Time{}
	start(it)
	return true
}

// admitOverflow starts an item in the overflow slot of a lane that is full, if its
// owner has waited long enough. It returns a bucket that must be refilled from the
// store first, if any, and when an owner will have waited long enough.
func (l *Local) admitOverflow(ln *lane, now time.Time, start func(PendingItem)) (empty *bucket, due time.Time) {
	if l.overflowWait <= 0 {
		return nil, due
	}
	full := ln.running >= ln.limit && ln.crowded()
	for i, b := range ln.ring {
		_, limited := l.full(b.owner, now)
		if !full || limited || ln.held[b.owner] > 0 || len(b.items) == 0 && !b.more {
			b.since = time.Time{}
			continue
		}
		if b.since.IsZero() {
			b.since = now
		}
		if ln.running > ln.limit {
			continue // the overflow slot is taken
		}
		if d := b.since.Add(l.overflowWait); d.After(now) {
			if due.IsZero() || d.Before(due) {
				due = d
			}
			continue
		}
		if len(b.items) == 0 {
			b.more, b.loading = false, true
			return b, due
		}
		ln.remove(i)
		ln.ring = append(ln.ring, b)
		if !l.startNext(ln, b, start) {
			return nil, now // the next one, at once
		}
		return nil, time.Time{}
	}
	return nil, due
}

// refill reads the next items of a bucket.
func (l *Local) refill(ctx context.Context, b *bucket) error {
	var items []PendingItem
	var failed error
	full := false
	for it, err := range l.source.Pending(ctx, PendingQuery{Queue: b.queue, Owner: b.owner}) {
		if err != nil {
			failed = err
			break
		}
		l.mu.Lock()
		busy := l.busy[it.Ref]
		l.mu.Unlock()
		if busy {
			continue
		}
		if full = len(items) == bucketSize; full {
			break
		}
		items = append(items, it)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.items, b.loading = items, false
	if full || failed != nil {
		b.more = true
	}
	return failed
}

// loadOwners reads from the store which owners have items.
func (l *Local) loadOwners(ctx context.Context) error {
	loads, err := l.source.Load(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.owners, func(_ string, o *load) bool { return o.running == 0 && !now.Before(o.until) })
	for _, ld := range loads {
		// A running item counts as well: its claim may have lapsed.
		if b := l.bucket(ld.Queue, ld.Owner); b != nil {
			b.more = true
		}
	}
	return nil
}

// work runs an item and then frees its slot.
func (l *Local) work(ctx context.Context, it PendingItem, work func(context.Context, Ref) error) {
	err := errors.New("the work did not return") // if it panics or ends its goroutine
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.busy, it.Ref)
		if l.lanes == nil {
			return
		}
		ln := l.lanes[it.Queue]
		ln.running--
		if ln.held[it.Owner]--; ln.held[it.Owner] == 0 {
			delete(ln.held, it.Owner)
		}
		o := l.owners[it.Owner]
		o.running--
		switch {
		case errors.Is(err, ErrParallel):
			// Retry when another item of the owner has finished; the limit may also
			// have changed.
			o.limit, o.until = o.running, time.Now().Add(failureDelay)
			l.putBack(it)
			l.signal()
			return
		case o.running == 0 && !time.Now().Before(o.until):
			delete(l.owners, it.Owner)
		}
		if err != nil && len(l.delayed) < delayedMax {
			after := failureDelay
			var retry *RetryError
			if errors.As(err, &retry) {
				after = max(0, retry.After)
			} else {
				l.log.Error("cannot run item", "operation", it.Operation, "item", it.Index, "account", it.Owner, "err", err)
			}
			heap.Push(&l.delayed, delayedItem{it, time.Now().Add(after)})
		}
		l.signal()
	}()
	err = work(ctx, it.Ref)
}

var (
	_ Dispatcher = (*Local)(nil)
	_ Notifier   = (*Local)(nil)
)
