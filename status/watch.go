package status

import (
	"context"
	"iter"
	"sync"
	"time"
)

// Intervals of Watch.
const (
	watchPause = 250 * time.Millisecond // minimum time between two updates, except before the last
	watchPoll  = 2 * time.Second        // between two reads of the store for changes by other processes
)

// Watch yields an operation of owner at once, then after every change of its state or
// progress, at most four times a second. It stops when the operation is final. It stops
// with an error if ctx is done or the operation is deleted. The error matches
// fs.ErrNotExist if owner has no such operation.
//
// Many watchers are cheap: they share their reads of the store. Without local changes
// the store is read only every two seconds, for changes made by other processes.
func (t *Tracker) Watch(ctx context.Context, owner, id string) iter.Seq2[*Operation, error] {
	return func(yield func(*Operation, error) bool) {
		tp := t.hub.join(id)
		defer t.hub.leave(id, tp)
		poll := time.NewTimer(watchPoll)
		defer poll.Stop()
		pause := time.NewTimer(watchPause)
		defer pause.Stop()
		var last *Operation
		for final := tp.final; ; {
			signal := t.hub.signal(tp) // before reading, so that no change is missed
			op, err := t.get(owner, id, func() (*Operation, error) { return tp.read(ctx, t.cfg.Store) })
			if err != nil {
				yield(nil, err)
				return
			}
			if last == nil || changed(last, op) {
				last = op.Clone() // the caller may change op
				if !yield(op, nil) || last.State.Final() {
					return
				}
				pause.Reset(watchPause)
				select {
				case <-ctx.Done():
				case <-final:
				case <-pause.C:
				}
			}
			poll.Reset(watchPoll)
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-signal:
			case <-final:
				final = nil // if the store lags behind, the poll notices
			case <-poll.C:
				tp.outdate(watchPoll / 2)
			}
		}
	}
}

// Wait returns an operation of owner when it is final, or its current state when ctx is
// done. It fails like Get.
func (t *Tracker) Wait(ctx context.Context, owner, id string) (*Operation, error) {
	var last *Operation
	for op, err := range t.Watch(ctx, owner, id) {
		if err != nil {
			if last != nil && ctx.Err() != nil {
				return last, nil
			}
			return nil, err
		}
		last = op
	}
	return last, nil
}

// changed reports whether watchers of a need to see b. It raises b's progress to that
// of a, so that progress never runs backwards.
func changed(a, b *Operation) bool {
	differ := a.State != b.State || a.Cancelled != b.Cancelled || len(a.Items) != len(b.Items)
	for i := range min(len(a.Items), len(b.Items)) {
		x, y := &a.Items[i], &b.Items[i]
		y.Progress = max(x.Progress, y.Progress)
		differ = differ || x.State != y.State || x.Attempt != y.Attempt || x.Progress != y.Progress || reason(x) != reason(y)
	}
	return differ
}

// reason returns what an item waits for, "" if it does not wait.
func reason(it *Item) string {
	if it.Waiting == nil {
		return ""
	}
	return it.Waiting.Reason
}

// A hub notifies watchers of changes. The zero value is ready for use.
type hub struct {
	mu     sync.Mutex
	topics map[string]*topic // watched operations, by ID
}

// A topic is a watched operation.
type topic struct {
	id       string
	watchers int           // guarded by hub.mu
	changed  chan struct{} // closed at the next change; nil if nobody waits for it; guarded by hub.mu
	isFinal  bool          // guarded by hub.mu
	final    chan struct{} // closed when the operation is final

	reading chan struct{} // semaphore that guards op
	op      *Operation    // as last read

	mu    sync.Mutex
	stale bool      // op is outdated
	at    time.Time // when op was read
}

func (h *hub) join(id string) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics == nil {
		h.topics = make(map[string]*topic)
	}
	tp := h.topics[id]
	if tp == nil {
		tp = &topic{id: id, final: make(chan struct{}), reading: make(chan struct{}, 1), stale: true}
		h.topics[id] = tp
	}
	tp.watchers++
	return tp
}

func (h *hub) leave(id string, tp *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tp.watchers--; tp.watchers == 0 {
		delete(h.topics, id)
	}
}

// signal returns a channel that is closed at the next change.
func (h *hub) signal(tp *topic) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tp.changed == nil {
		tp.changed = make(chan struct{})
	}
	return tp.changed
}

// changed wakes the watchers of op. stored reports whether the store has the change; if
// not, it is only progress.
func (h *hub) changed(op *Operation, stored bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tp := h.topics[op.ID]
	if tp == nil {
		return
	}
	if stored {
		tp.outdate(0)
	}
	if tp.changed != nil {
		close(tp.changed)
		tp.changed = nil
	}
	if op.State.Final() && !tp.isFinal {
		tp.isFinal = true
		close(tp.final)
	}
}

// outdate marks the operation as stale, unless it was read less than age ago.
func (tp *topic) outdate(age time.Duration) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if time.Since(tp.at) >= age {
		tp.stale = true
	}
}

// read returns a copy of the operation, which it reads from the store if its own is
// stale.
func (tp *topic) read(ctx context.Context, s Store) (*Operation, error) {
	select {
	case tp.reading <- struct{}{}:
		defer func() { <-tp.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	tp.mu.Lock()
	stale := tp.stale
	tp.stale = false
	tp.mu.Unlock()
	if stale {
		op, err := s.Get(ctx, tp.id)
		tp.mu.Lock()
		defer tp.mu.Unlock()
		if err != nil {
			tp.stale = true
			return nil, err
		}
		tp.op, tp.at = op, time.Now()
	}
	return tp.op.Clone(), nil
}
