package status

import (
	"container/heap"
	"context"
	"errors"
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

// A Source is what [Local] needs of a [Store].
type Source interface {
	Pending(ctx context.Context, q PendingQuery) iter.Seq2[PendingItem, error]
	Load(ctx context.Context) ([]Load, error)
}

// LocalOptions configure a [Local]. The zero value is usable.
type LocalOptions struct {
	// Every is the time between two looks at the store for items that the
	// dispatcher was not told of, such as those of a process that died.
	// 0: 10 seconds.
	Every time.Duration

	Log *slog.Logger // nil discards
}

// Bounds of what a Local remembers; the rest waits in the store.
const (
	bucketSize = 32   // items of one owner in one queue
	delayedMax = 4096 // items to be tried again later
)

// failureDelay is the time before an item is handed out again whose work has
// failed without telling when, and before a store that failed is asked again.
const failureDelay = time.Second

// A Local is a [Dispatcher] for one process. It hands out new items as it is told
// of them, and takes the items of a queue from their owners in turn, so that
// nobody waits for another one's backlog. It holds no more than 32 items per
// owner and queue in memory and reads the others from the store in time.
type Local struct {
	source Source
	every  time.Duration
	log    *slog.Logger
	wake   chan struct{} // holds a token if there may be something to do

	mu      sync.Mutex
	running bool
	limits  map[string]int
	lanes   map[string]*lane // nil if nothing is handed out
	busy    map[Ref]bool     // being worked on
	delayed delayedHeap
}

// A lane is a queue with those who have items in it.
type lane struct {
	limit   int
	running int
	ring    []*bucket // whose turn it is
	owners  map[string]*bucket
}

type bucket struct {
	queue, owner string
	items        []PendingItem
	more         bool // the store may hold more of them
	loading      bool // they are being read: new ones must not overtake them
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
	l := &Local{source: s, every: o.Every, log: o.Log, wake: make(chan struct{}, 1)}
	if l.every <= 0 {
		l.every = 10 * time.Second
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
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

// signal makes Run look for something to do.
func (l *Local) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// add puts an item behind the others of its owner. l.mu is held.
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

// bucket returns the items of an owner in a queue, or nil if the queue is not
// worked on here. l.mu is held.
func (l *Local) bucket(queue, owner string) *bucket {
	ln := l.lanes[queue]
	if ln == nil {
		limit, ok := l.limits[queue]
		if !ok {
			limit = l.limits[""]
		}
		if limit == 0 {
			limit = runtime.GOMAXPROCS(0)
		}
		if limit < 0 {
			return nil
		}
		ln = &lane{limit: limit, owners: make(map[string]*bucket)}
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
		return errors.New("dispatcher is running already")
	}
	l.running, l.limits = true, limits
	l.lanes, l.busy, l.delayed = make(map[string]*lane), make(map[Ref]bool), nil
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
	tick := time.NewTimer(0) // due at once: read the store at start
	defer tick.Stop()
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for ctx.Err() == nil {
		empty, next := l.handOut(start)
		if empty != nil {
			if err := l.refill(ctx, empty); err != nil && ctx.Err() == nil {
				l.log.Error("items cannot be read", "queue", empty.queue, "error", err)
				sleep(ctx, failureDelay)
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
			if err := l.look(ctx); err != nil && ctx.Err() == nil {
				l.log.Error("waiting items cannot be counted", "error", err)
				tick.Reset(min(failureDelay, l.every))
				continue
			}
			tick.Reset(l.every)
		}
	}
	return nil
}

// handOut starts what may be started. It returns a bucket if it must be read
// from the store to go on, and when the next delayed item is due.
func (l *Local) handOut(start func(PendingItem)) (empty *bucket, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for now := time.Now(); len(l.delayed) > 0 && !l.delayed[0].due.After(now); {
		l.add(heap.Pop(&l.delayed).(delayedItem).PendingItem)
	}
	if len(l.delayed) > 0 {
		next = l.delayed[0].due
	}
	for _, ln := range l.lanes {
		for ln.running < ln.limit && len(ln.ring) > 0 {
			b := ln.ring[0]
			if len(b.items) == 0 && b.more {
				b.more, b.loading = false, true
				return b, next
			}
			ln.ring[0] = nil
			ln.ring = ln.ring[1:]
			if len(b.items) == 0 {
				delete(ln.owners, b.owner)
				continue
			}
			it := b.items[0]
			b.items = b.items[1:]
			ln.ring = append(ln.ring, b)
			if l.busy[it.Ref] {
				continue
			}
			l.busy[it.Ref] = true
			ln.running++
			start(it)
		}
	}
	return nil, next
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

// look asks the store who has items.
func (l *Local) look(ctx context.Context) error {
	loads, err := l.source.Load(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ld := range loads {
		// A running item counts as well: its claim may have lapsed.
		if b := l.bucket(ld.Queue, ld.Owner); b != nil {
			b.more = true
		}
	}
	return nil
}

// work has an item worked on.
func (l *Local) work(ctx context.Context, it PendingItem, work func(context.Context, Ref) error) {
	err := errors.New("work has not returned") // if it panics or ends its goroutine
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.busy, it.Ref)
		if l.lanes == nil {
			return
		}
		l.lanes[it.Queue].running--
		if err != nil && len(l.delayed) < delayedMax {
			after := failureDelay
			var retry *RetryError
			if errors.As(err, &retry) {
				after = max(0, retry.After)
			} else {
				l.log.Error("item cannot be worked on", "operation", it.Operation, "index", it.Index, "error", err)
			}
			heap.Push(&l.delayed, delayedItem{it, time.Now().Add(after)})
		}
		l.signal()
	}()
	err = work(ctx, it.Ref)
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

var (
	_ Dispatcher = (*Local)(nil)
	_ Notifier   = (*Local)(nil)
)
