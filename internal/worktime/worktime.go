// Package worktime limits the time that something works instead of its wall time. On a
// busy host, a file that needs little processor time may take many times as long by the
// clock.
package worktime

import (
	"context"
	"time"
)

// A Usage is the time that processes or threads have used since some point in the past.
type Usage struct {
	Worked time.Duration // on processors, sum of all threads
	Waited time.Duration // ready to run but waiting for a processor, sum of all threads
}

// A Meter returns the current usage. Its values never decrease. It is safe for
// concurrent use.
type Meter func() Usage

// clockFactor times the limit is the maximum wall time of work, not counting the time
// that it waits for a processor. It stops work that hangs.
const clockFactor = 5

// Context returns a context that ends with cause when the measured work, since the call,
// reaches limit. Work counts at most as much as the wall time, however many threads
// there are. The context also ends after five times limit in wall time, plus the time in
// which the work waited for a processor. The work also counts for the [Total] of ctx.
func Context(ctx context.Context, limit time.Duration, cause error, meters ...Meter) (context.Context, context.CancelFunc) {
	// Work cannot reach the limit before the first check.
	return newWatch(limit, meters).run(ctx, limit, cause)
}

// AfterFunc calls f in a separate goroutine when a context of [Context] would end,
// unless stop is called before.
func AfterFunc(limit time.Duration, f func(), meters ...Meter) (stop func()) {
	ctx, cancel := Context(context.Background(), limit, context.DeadlineExceeded, meters...)
	unhook := context.AfterFunc(ctx, f)
	return func() {
		unhook()
		cancel()
	}
}

// A watch compares work with its limit.
type watch struct {
	limit  time.Duration
	meters []Meter
	start  []Usage
	from   time.Time
	left   time.Duration // remaining work
}

func newWatch(limit time.Duration, meters []Meter) *watch {
	w := &watch{limit: limit, meters: meters, from: time.Now(), left: limit}
	for _, m := range meters {
		w.start = append(w.start, m())
	}
	return w
}

// run returns a context that ends with cause when a limit is reached. The first check
// is after first.
func (w *watch) run(ctx context.Context, first time.Duration, cause error) (context.Context, context.CancelFunc) {
	stops := make([]func(), len(w.meters))
	for i, m := range w.meters {
		stops[i] = count(ctx, m, w.start[i])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		t := time.NewTimer(first)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if w.exceeded() {
				cancel(cause)
				return
			}
			t.Reset(w.period())
		}
	}()
	return ctx, func() {
		cancel(nil)
		for _, stop := range stops {
			stop()
		}
	}
}

// exceeded reports whether a limit is reached.
func (w *watch) exceeded() bool {
	var used Usage
	for i, m := range w.meters {
		u := m()
		used.Worked += u.Worked - w.start[i].Worked
		used.Waited += u.Waited - w.start[i].Waited
	}
	return w.decide(used, time.Since(w.from))
}

func (w *watch) decide(used Usage, elapsed time.Duration) bool {
	w.left = w.limit - min(used.Worked, elapsed)
	return w.left <= 0 || elapsed >= clockFactor*w.limit+min(used.Waited, elapsed)
}

// period returns the time until the next check.
func (w *watch) period() time.Duration {
	return min(max(w.left, 50*time.Millisecond), w.limit/4+50*time.Millisecond, 5*time.Second)
}
