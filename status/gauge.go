package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A gauge estimates the number of queued items without reading the store every time: it
// counts this process's own changes between two reads. The zero value is ready for use.
type gauge struct {
	mu       sync.Mutex
	loads    []Load
	at       time.Time // when loads was read; zero if it must be read again
	took     time.Duration
	total    int
	owners   map[string]int
	reserved map[string]int // by Submit calls in progress
	pledged  int            // sum of reserved

	starts map[string]*meter // started items by owner; "" is all owners
	all    meter
}

// A meter measures the rate of an event over the last 30 to 60 seconds.
type meter struct {
	begin     time.Time // of the current count
	prev, cur int
	since     time.Time // of the first event
}

const meterWindow = 30 * time.Second

func (m *meter) roll(now time.Time) {
	switch d := now.Sub(m.begin); {
	case d >= 2*meterWindow:
		m.begin, m.prev, m.cur = now, 0, 0
	case d >= meterWindow:
		m.begin, m.prev, m.cur = m.begin.Add(meterWindow), m.cur, 0
	}
}

func (m *meter) add(now time.Time) {
	m.roll(now)
	if m.since.IsZero() {
		m.since = now
	}
	m.cur++
}

// rate returns the number of events per second.
func (m *meter) rate(now time.Time) float64 {
	m.roll(now)
	d := min(now.Sub(m.begin)+meterWindow, now.Sub(m.since))
	return float64(m.prev+m.cur) / max(d, time.Second).Seconds()
}

// maxMeters limits the number of owners with a meter.
const maxMeters = 10000

// Limits of the RetryAfter of a [QueueFullError].
const (
	minRetryAfter = time.Second
	maxRetryAfter = time.Minute
	someRetry     = 10 * time.Second // if the rate is unknown
)

// retry estimates the time until an owner has n fewer queued items, from the current
// rate; "" stands for all owners. g.mu is held.
func (g *gauge) retry(owner string, n int, now time.Time) time.Duration {
	m := &g.all
	if owner != "" {
		m = g.starts[owner]
	}
	if m == nil || m.since.IsZero() {
		return someRetry
	}
	rate := m.rate(now)
	if rate <= 0 {
		return maxRetryAfter
	}
	return time.Duration(min(max(float64(n)/rate, minRetryAfter.Seconds()), maxRetryAfter.Seconds()) * float64(time.Second))
}

// Maximum ages of the loads for each use.
const (
	gaugeFresh = 250 * time.Millisecond // new enough to refuse an operation
	gaugeStale = 5 * time.Second        // too old for anything
)

// read reads the store if the last read is older than age. A slow read is not repeated
// soon. g.mu is held.
func (g *gauge) read(ctx context.Context, s Store, age time.Duration) error {
	start := time.Now()
	if !g.at.IsZero() && start.Sub(g.at) < max(age, 20*g.took) {
		return nil
	}
	loads, err := s.Load(ctx)
	if err != nil {
		return fmt.Errorf("count waiting items: %w", err)
	}
	g.loads, g.at, g.took = loads, start, time.Since(start)
	g.total, g.owners = 0, make(map[string]int)
	for _, l := range loads {
		g.total += l.Queued
		g.owners[l.Owner] += l.Queued
	}
	return nil
}

// count adds n to an owner's queued items. g.mu is held.
func (g *gauge) count(owner string, n int) {
	if g.owners == nil {
		return // nothing read yet; the first read will count them
	}
	g.total = max(0, g.total+n)
	if g.owners[owner] = max(0, g.owners[owner]+n); g.owners[owner] == 0 {
		delete(g.owners, owner)
	}
}

func (g *gauge) add(owner string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(owner, n)
}

func (g *gauge) started(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(owner, -1)
	if g.reserved == nil {
		return // nobody reads the rates
	}
	now := time.Now()
	g.all.add(now)
	m := g.starts[owner]
	if m == nil {
		if len(g.starts) >= maxMeters {
			for old := range g.starts { // any of them
				delete(g.starts, old)
				break
			}
		}
		if g.starts == nil {
			g.starts = make(map[string]*meter)
		}
		m = new(meter)
		g.starts[owner] = m
	}
	m.add(now)
}

func (g *gauge) requeued(owner string) { g.add(owner, 1) }

// forget makes the next read go to the store.
func (g *gauge) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = time.Time{}
}

// release ends a reservation.
func (g *gauge) release(owner string, n int, stored bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reserved == nil {
		return // no limits configured
	}
	g.pledged -= n
	if g.reserved[owner] -= n; g.reserved[owner] == 0 {
		delete(g.reserved, owner)
	}
	if stored {
		g.count(owner, n)
	}
}

// reserve reserves room for n more queued items of an owner, or fails with a
// [QueueFullError].
func (t *Tracker) reserve(ctx context.Context, owner string, n int) error {
	if t.cfg.MaxQueued == 0 && t.cfg.MaxQueuedPerOwner == 0 {
		return nil
	}
	g := &t.gauge
	g.mu.Lock()
	defer g.mu.Unlock()
	// excess returns by how much the total limit and the owner's limit are exceeded.
	excess := func() (all, own int) {
		if limit := t.cfg.MaxQueued; limit > 0 {
			all = max(0, g.total+g.pledged+n-limit)
		}
		if limit := t.cfg.MaxQueuedPerOwner; limit > 0 {
			own = max(0, g.owners[owner]+g.reserved[owner]+n-limit)
		}
		return all, own
	}
	if err := g.read(ctx, t.cfg.Store, gaugeStale); err != nil {
		return err
	}
	if all, own := excess(); all+own > 0 {
		if err := g.read(ctx, t.cfg.Store, gaugeFresh); err != nil {
			return err
		}
		if all, own = excess(); all+own > 0 {
			full := &QueueFullError{Owner: own > 0}
			now := time.Now()
			if all > 0 {
				full.RetryAfter = g.retry("", all, now)
			}
			if own > 0 {
				full.RetryAfter = max(full.RetryAfter, g.retry(owner, own, now))
			}
			return full
		}
	}
	if g.reserved == nil {
		g.reserved = make(map[string]int)
	}
	g.pledged += n
	g.reserved[owner] += n
	return nil
}

// QueueStats describes the load of a queue.
type QueueStats struct {
	Queue   string
	Queued  int
	Running int           // in all processes
	Oldest  time.Duration // age of the oldest operation with a queued item; 0 if there is none

	// Waiting counts the queued items that wait for a resource, by reason; nil: no such
	// items.
	Waiting map[string]int
}

// Stats returns the statistics of all non-empty queues, sorted by name. It is cheap to
// call often: it reads the store at most once a second.
func (t *Tracker) Stats(ctx context.Context) ([]QueueStats, error) {
	g := &t.gauge
	g.mu.Lock()
	err := g.read(ctx, t.cfg.Store, time.Second)
	loads := g.loads
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	queues := make(map[string]*QueueStats)
	for _, l := range loads {
		q := queues[l.Queue]
		if q == nil {
			q = &QueueStats{Queue: l.Queue}
			queues[l.Queue] = q
		}
		q.Queued += l.Queued
		q.Running += l.Running
		for reason, n := range l.Waiting {
			if q.Waiting == nil {
				q.Waiting = make(map[string]int)
			}
			q.Waiting[reason] += n
		}
		if l.Queued > 0 {
			q.Oldest = max(q.Oldest, now.Sub(l.Oldest))
		}
	}
	all := make([]QueueStats, 0, len(queues))
	for _, q := range queues {
		all = append(all, *q)
	}
	slices.SortFunc(all, func(a, b QueueStats) int { return cmp.Compare(a.Queue, b.Queue) })
	return all, nil
}
