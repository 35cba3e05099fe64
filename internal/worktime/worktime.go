// Package worktime limits how long something works, rather than how long it takes: on a busy
// host a file that needs little processor time may take many times as long by the clock.
package worktime

import (
	"context"
	"time"
)

// A Usage is what processes or threads have used since some time in the past.
type Usage struct {
	Worked time.Duration // on processors, all threads together
	Waited time.Duration // ready to run, for a processor, all threads together
}

// A Meter reads a usage. Neither of its values ever decreases.
type Meter func() Usage

// clockFactor is how many times longer than the limit work may take by the clock, beside the
// time in which it waits for a processor. It ends what neither works nor waits.
const clockFactor = 5

// Context returns a context that ends with cause when what the meters measure has worked for
// limit since the call. Several threads that work at the same time count as one.
// It also ends after five times the limit by the clock, to which the time is added in which
// the work was ready and had no processor.
func Context(ctx context.Context, limit time.Duration, cause error, meters ...Meter) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := newWatch(limit, meters)
	go func() {
		t := time.NewTimer(limit) // it cannot have worked for longer before
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
	return ctx, func() { cancel(nil) }
}

// AfterFunc calls f in a goroutine of its own when a context of [Context] would end, unless
// stop is called before.
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
	left   time.Duration // work until the limit
}

func newWatch(limit time.Duration, meters []Meter) *watch {
	w := &watch{limit: limit, meters: meters, from: time.Now(), left: limit}
	for _, m := range meters {
		w.start = append(w.start, m())
	}
	return w
}

// exceeded reports whether the limit is reached.
func (w *watch) exceeded() bool {
	var used Usage
	for i, m := range w.meters {
		u := m()
		used.Worked += u.Worked - w.start[i].Worked
		used.Waited += u.Waited - w.start[i].Waited
	}
	return w.judge(used, time.Since(w.from))
}

func (w *watch) judge(used Usage, elapsed time.Duration) bool {
	w.left = w.limit - min(used.Worked, elapsed)
	return w.left <= 0 || elapsed >= clockFactor*w.limit+min(used.Waited, elapsed)
}

// period returns when to look again.
func (w *watch) period() time.Duration {
	return min(max(w.left, 50*time.Millisecond), w.limit/4+50*time.Millisecond, 5*time.Second)
}
