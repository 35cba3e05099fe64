package worktime

import (
	"context"
	"sync"
	"time"
)

// Total is [Context] for all work that is done for the returned context: that of the
// programs and threads that [Count] or Context measures for it, and while there are
// none, that of this process. Other work of this process counts then too, but at most
// the wall time.
func Total(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	t := &total{active: make(map[*counted]bool), at: time.Now(), cpu: processorTime()}
	// The usage is zero now. The first call of t.usage, which reads the state of all
	// threads, is after a second: most work is done by then.
	w := &watch{limit: limit, meters: []Meter{t.usage}, start: []Usage{{}}, from: t.at, left: limit}
	ctx, cancel := w.run(ctx, min(limit, reading), cause)
	return context.WithValue(ctx, totalKey{}, t), cancel
}

// Count adds what m has measured, and measures until stop is called, to the [Total] of
// ctx. m must work until then; stop may be called several times. Without a Total, Count
// does nothing.
func Count(ctx context.Context, m Meter) (stop func()) { return count(ctx, m, Usage{}) }

// count is Count without the usage before start.
func count(ctx context.Context, m Meter, start Usage) (stop func()) {
	t, ok := ctx.Value(totalKey{}).(*total)
	if !ok {
		return func() {}
	}
	c := &counted{meter: m, start: start, from: time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
	t.active[c] = true
	return sync.OnceFunc(func() { t.end(c) })
}

type totalKey struct{}

// A total adds up the work for one context.
type total struct {
	mu     sync.Mutex
	active map[*counted]bool
	ended  Usage // of meters that are no longer active
	own    Usage // of this process while no meter was active

	at  time.Time     // when own was updated
	cpu time.Duration // processor time of this process then

	// At the last call of usage, if nothing has changed since; a zero sampled means
	// that something has.
	sampled       time.Time
	worked, delay time.Duration // of this process
}

// counted is a meter of a total.
type counted struct {
	meter Meter
	start Usage
	from  time.Time
}

// usage returns what c has measured, at most the elapsed time.
func (c *counted) usage() Usage {
	u, elapsed := c.meter(), time.Since(c.from)
	return Usage{min(u.Worked-c.start.Worked, elapsed), min(u.Waited-c.start.Waited, elapsed)}
}

func (u *Usage) add(v Usage) {
	u.Worked += v.Worked
	u.Waited += v.Waited
}

// reading is how long a meter must have been active to be read at its end. Reading the
// processes of a run takes time, so shorter runs count by the clock.
const reading = time.Second

func (t *total) end(c *counted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
	delete(t.active, c)
	if d := time.Since(c.from); d < reading {
		t.ended.add(Usage{Worked: d})
	} else {
		t.ended.add(c.usage())
	}
}

// pass adds the work of this process since the last call. t.mu is held.
func (t *total) pass() {
	now, cpu := time.Now(), processorTime()
	if len(t.active) == 0 {
		t.own.Worked += min(max(cpu-t.cpu, 0), now.Sub(t.at))
	}
	t.at, t.cpu, t.sampled = now, cpu, time.Time{}
}

// usage is the [Meter] of t.
func (t *total) usage() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, worked, delay := t.sampled, t.worked, t.delay
	t.pass()
	if len(t.active) == 0 {
		t.sampled, t.worked, t.delay = t.at, t.cpu, processorDelay()
		w, d := t.worked-worked, t.delay-delay
		if !before.IsZero() && d > 0 {
			// The share of time that the threads of this process waited for a
			// processor, of the time that they wanted one.
			t.own.Waited += time.Duration(float64(t.at.Sub(before)) * float64(d) / float64(d+max(w, 0)))
		}
	}
	u := t.ended
	u.add(t.own)
	for c := range t.active {
		u.add(c.usage())
	}
	return u
}
