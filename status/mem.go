package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"sync"
	"time"
)

// idempotencyTTL is how long an idempotency key holds; see Store.Create.
const idempotencyTTL = 24 * time.Hour

// A MemStore is a [Store] in memory. Its operations are lost with the process. It has
// no limits per owner, so Claim never fails with [ErrParallel].
type MemStore struct {
	mu     sync.Mutex
	ops    map[string]*memOp
	keys   map[ownerKey]*memOp
	live   opList // operations that are not final
	owners map[string]*memOwner
	claims map[string]map[Ref]*memOp // by worker
}

type ownerKey struct{ owner, key string }

type memOwner struct {
	all  opList
	live opList
}

type memOp struct {
	op    Operation
	items []memItem // beside op.Items
}

type memItem struct {
	worker string
	lease  time.Time // while Running: when the claim lapses
	due    time.Time // while Queued: earliest start
}

// NewMemStore returns an empty store.
func NewMemStore() *MemStore {
	return &MemStore{
		ops:    make(map[string]*memOp),
		keys:   make(map[ownerKey]*memOp),
		owners: make(map[string]*memOwner),
		claims: make(map[string]map[Ref]*memOp),
	}
}

// An opList is ordered by Created and ID. It drops removed operations only when they
// are the majority, so that a removal is cheap.
type opList struct {
	ops  []*memOp
	dead int
}

type position struct {
	created time.Time
	id      string
}

func (p position) compare(q position) int {
	return cmp.Or(p.created.Compare(q.created), cmp.Compare(p.id, q.id))
}

func (m *memOp) position() position { return position{m.op.Created, m.op.ID} }

// search returns the index of the first operation at or after p.
func (l *opList) search(p position) int {
	i, _ := slices.BinarySearchFunc(l.ops, p, func(m *memOp, p position) int { return m.position().compare(p) })
	return i
}

func (l *opList) insert(m *memOp) {
	if n := len(l.ops); n == 0 || l.ops[n-1].position().compare(m.position()) < 0 {
		l.ops = append(l.ops, m)
		return
	}
	l.ops = slices.Insert(l.ops, l.search(m.position()), m)
}

// drop records that one operation no longer belongs to the list; alive reports whether
// an operation still does.
func (l *opList) drop(alive func(*memOp) bool) {
	if l.dead++; l.dead > 32 && l.dead > len(l.ops)/2 {
		l.ops = slices.DeleteFunc(l.ops, func(m *memOp) bool { return !alive(m) })
		l.dead = 0
	}
}

func unfinished(m *memOp) bool { return !m.op.State.Final() }

func missing(id string) error { return fmt.Errorf("operation %q: %w", id, fs.ErrNotExist) }

// Create implements [Store].
func (s *MemStore) Create(_ context.Context, op *Operation) (*Operation, error) {
	if op.ID == "" || len(op.Items) == 0 {
		return nil, errors.New("operation without ID or items")
	}
	m := &memOp{op: *op.Clone(), items: make([]memItem, len(op.Items))}
	m.op.State, m.op.Cancelled, m.op.Finished = Queued, false, time.Time{}
	now := time.Now()
	for i := range m.op.Items {
		it := &m.op.Items[i]
		*it = Item{Queue: it.Queue, Inputs: it.Inputs, State: Queued}
		if m.items[i].due = op.Created; m.items[i].due.After(now) {
			m.items[i].due = now // the submitter's clock is ahead
		}
	}
	m.op.Begin()

	s.mu.Lock()
	defer s.mu.Unlock()
	if op.IdempotencyKey != "" {
		k := ownerKey{op.Owner, op.IdempotencyKey}
		if old := s.keys[k]; old != nil {
			if old.op.Created.After(op.Created.Add(-idempotencyTTL)) {
				return old.op.Clone(), nil
			}
			old.op.IdempotencyKey = ""
			delete(s.keys, k)
		}
	}
	if s.ops[op.ID] != nil {
		return nil, fmt.Errorf("operation %q: %w", op.ID, fs.ErrExist)
	}
	if op.IdempotencyKey != "" {
		s.keys[ownerKey{op.Owner, op.IdempotencyKey}] = m
	}
	s.ops[op.ID] = m
	s.live.insert(m)
	o := s.owners[op.Owner]
	if o == nil {
		o = new(memOwner)
		s.owners[op.Owner] = o
	}
	o.all.insert(m)
	o.live.insert(m)
	return m.op.Clone(), nil
}

// Get implements [Store].
func (s *MemStore) Get(_ context.Context, id string) (*Operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.ops[id]
	if m == nil {
		return nil, missing(id)
	}
	return m.op.Clone(), nil
}

// List implements [Store].
func (s *MemStore) List(ctx context.Context, q Query) iter.Seq2[*Operation, error] {
	return func(yield func(*Operation, error) bool) {
		limit := q.Limit
		limit = cmp.Or(max(limit, 0), 50)
		var before *position
		if q.Before != "" {
			s.mu.Lock()
			m := s.ops[q.Before]
			if m == nil || m.op.Owner != q.Owner {
				s.mu.Unlock()
				yield(nil, missing(q.Before))
				return
			}
			p := m.position()
			before = &p
			s.mu.Unlock()
		}
		for n := 0; n < limit; n++ {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			op := s.older(q, before)
			if op == nil || !yield(op, nil) {
				return
			}
			before = &position{op.Created, op.ID}
		}
	}
}

// older returns the newest operation before p that q selects, or nil.
func (s *MemStore) older(q Query, p *position) *Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owners[q.Owner]
	if o == nil {
		return nil
	}
	selected := func(m *memOp) bool { return q.State == "" || q.State == m.op.State }
	if q.IdempotencyKey != "" {
		m := s.keys[ownerKey{q.Owner, q.IdempotencyKey}]
		if m == nil || !selected(m) || p != nil && m.position().compare(*p) >= 0 {
			return nil
		}
		return m.op.Clone()
	}
	i := len(o.all.ops)
	if p != nil {
		i = o.all.search(*p)
	}
	for i--; i >= 0; i-- {
		if m := o.all.ops[i]; s.ops[m.op.ID] == m && selected(m) {
			return m.op.Clone()
		}
	}
	return nil
}

// Claim implements [Store].
func (s *MemStore) Claim(_ context.Context, ref Ref, worker string, lease time.Duration) (*Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.ops[ref.Operation]
	if m == nil || ref.Index < 0 || ref.Index >= len(m.items) {
		return nil, missing(ref.Operation)
	}
	now := time.Now()
	if !m.startable(ref.Index, now) {
		return nil, ErrLost
	}
	it, st := &m.op.Items[ref.Index], &m.items[ref.Index]
	s.unclaim(ref, st)
	rescued := it.State == Running
	if rescued {
		it.Restarts++
	} else {
		it.Attempt++
	}
	it.State, it.Started = Running, now
	it.Claims++
	st.worker, st.lease = worker, now.Add(lease)
	if s.claims[worker] == nil {
		s.claims[worker] = make(map[Ref]*memOp)
	}
	s.claims[worker][ref] = m
	m.op.State = m.op.Rollup()

	op := m.op
	op.Items = nil
	return &Claim{Ref: ref, Token: it.Claims, Item: it.clone(), Op: op.Clone(), Rescued: rescued}, nil
}

// startable reports whether item i may be claimed now.
func (m *memOp) startable(i int, now time.Time) bool {
	switch m.op.Items[i].State {
	case Queued:
		return !now.Before(m.items[i].due)
	case Running:
		return !now.Before(m.items[i].lease)
	}
	return false
}

func (s *MemStore) unclaim(ref Ref, st *memItem) {
	delete(s.claims[st.worker], ref)
	if len(s.claims[st.worker]) == 0 {
		delete(s.claims, st.worker)
	}
	st.worker = ""
}

// Heartbeat implements [Store].
func (s *MemStore) Heartbeat(_ context.Context, worker string, lease time.Duration, progress map[Ref]float64) ([]Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	held := make(map[Ref]bool)
	for ref, m := range s.claims[worker] {
		st := &m.items[ref.Index]
		if !now.Before(st.lease) {
			continue
		}
		st.lease = now.Add(lease)
		held[ref] = !m.op.Cancelled
		if p, ok := progress[ref]; ok {
			it := &m.op.Items[ref.Index]
			it.Progress = max(it.Progress, p)
		}
	}
	var stop []Ref
	for ref := range progress {
		if !held[ref] {
			stop = append(stop, ref)
		}
	}
	return stop, nil
}

// Finish implements [Store].
func (s *MemStore) Finish(_ context.Context, c *Claim, o Outcome) (*Operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.ops[c.Operation]
	if m == nil || c.Index < 0 || c.Index >= len(m.items) {
		return nil, ErrLost
	}
	now := time.Now()
	it, st := &m.op.Items[c.Index], &m.items[c.Index]
	if it.State != Running || it.Claims != c.Token || !now.Before(st.lease) {
		return nil, ErrLost
	}
	it.Progress = max(it.Progress, c.Item.Progress)
	*it, st.due = o.Apply(*it, m.op.Cancelled, now)
	s.unclaim(c.Ref, st)
	fresh := m.op.Advance(o.Next, now)
	for range fresh {
		m.items = append(m.items, memItem{due: now})
	}
	s.settle(m, now)
	op := m.op
	if !op.State.Final() && fresh == nil {
		op.Items = nil
	}
	return op.Clone(), nil
}

// settle updates the operation's state from its items.
func (s *MemStore) settle(m *memOp, now time.Time) {
	if m.op.State = m.op.Rollup(); !m.op.State.Final() {
		return
	}
	m.op.Finished, m.op.Args = now, nil
	s.live.drop(unfinished)
	s.owners[m.op.Owner].live.drop(unfinished)
}

// Cancel implements [Store].
func (s *MemStore) Cancel(_ context.Context, owner, id string) (*Operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.ops[id]
	if m == nil || m.op.Owner != owner {
		return nil, missing(id)
	}
	if !m.op.State.Final() {
		now := time.Now()
		m.op.Cancelled = true
		for i := range m.op.Items {
			if it := &m.op.Items[i]; it.State == Queued {
				*it, _ = Outcome{}.Apply(*it, true, now)
			}
		}
		s.settle(m, now)
	}
	return m.op.Clone(), nil
}

// pendingPage is the number of operations that Pending reads under one lock.
const pendingPage = 64

// Pending implements [Store].
func (s *MemStore) Pending(ctx context.Context, q PendingQuery) iter.Seq2[PendingItem, error] {
	return func(yield func(PendingItem, error) bool) {
		var after *position
		var page []PendingItem
		for {
			if err := ctx.Err(); err != nil {
				yield(PendingItem{}, err)
				return
			}
			page, after = s.pending(q, after, page[:0])
			for _, it := range page {
				if !yield(it, nil) {
					return
				}
			}
			if after == nil {
				return
			}
		}
	}
}

// pending appends the items of the next operations after the given position, and
// returns the position of the last one, or nil at the end of the list.
func (s *MemStore) pending(q PendingQuery, after *position, page []PendingItem) ([]PendingItem, *position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &s.live
	if q.Owner != "" {
		o := s.owners[q.Owner]
		if o == nil {
			return page, nil
		}
		list = &o.live
	}
	i := 0
	if after != nil {
		if i = list.search(*after); i < len(list.ops) && list.ops[i].position() == *after {
			i++
		}
	}
	now := time.Now()
	for n := 0; i < len(list.ops); i, n = i+1, n+1 {
		m := list.ops[i]
		if n >= pendingPage {
			p := list.ops[i-1].position()
			return page, &p
		}
		for j, it := range m.op.Items {
			if q.Queue != "" && q.Queue != it.Queue || !m.startable(j, now) {
				continue
			}
			since := m.items[j].due
			if it.State == Running {
				since = m.items[j].lease
			}
			page = append(page, PendingItem{
				Ref: Ref{m.op.ID, j}, Queue: it.Queue, Owner: m.op.Owner, Created: m.op.Created, Since: since,
			})
		}
	}
	return page, nil
}

// Load implements [Store].
func (s *MemStore) Load(context.Context) ([]Load, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	loads := make(map[ownerKey]*Load)
	for _, m := range s.live.ops {
		for _, it := range m.op.Items {
			if it.State.Final() {
				continue
			}
			l := loads[ownerKey{m.op.Owner, it.Queue}]
			if l == nil {
				l = &Load{Queue: it.Queue, Owner: m.op.Owner}
				loads[ownerKey{m.op.Owner, it.Queue}] = l
			}
			if it.State == Running {
				l.Running++
				continue
			}
			l.Queued++
			if it.Waiting != nil {
				if l.Waiting == nil {
					l.Waiting = make(map[string]int)
				}
				l.Waiting[it.Waiting.Reason]++
			}
			if l.Oldest.IsZero() {
				l.Oldest = m.op.Created
			}
		}
	}
	all := make([]Load, 0, len(loads))
	for _, l := range loads {
		all = append(all, *l)
	}
	return all, nil
}

// Recover implements [Store].
func (s *MemStore) Recover(_ context.Context, worker string) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for w, refs := range s.claims {
		if w == worker {
			continue
		}
		for ref, m := range refs {
			it := &m.op.Items[ref.Index]
			it.State, it.Attempt = Queued, max(0, it.Attempt-1)
			it.Restarts++
			m.items[ref.Index].due = now
			m.items[ref.Index].worker = ""
			n++
		}
		delete(s.claims, w)
	}
	return n, nil
}

// DeleteFinished implements [Store].
func (s *MemStore) DeleteFinished(_ context.Context, t time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range s.ops {
		if !m.op.State.Final() || !m.op.Finished.Before(t) {
			continue
		}
		s.remove(m)
		n++
	}
	return n, nil
}

// remove removes a final operation.
func (s *MemStore) remove(m *memOp) {
	delete(s.ops, m.op.ID)
	if k := (ownerKey{m.op.Owner, m.op.IdempotencyKey}); s.keys[k] == m {
		delete(s.keys, k)
	}
	o := s.owners[m.op.Owner]
	o.all.drop(func(m *memOp) bool { return s.ops[m.op.ID] == m })
	if len(o.all.ops) == o.all.dead {
		delete(s.owners, m.op.Owner)
	}
}

var _ Store = (*MemStore)(nil)
