package worktime_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/internal/worktime"
)

var errTooLong = errors.New("too long")

// A context ends at the limit for working processes, and at five times the limit for
// hanging ones. For a process that waits for a processor it ends once the work reaches
// the limit.
func TestContext(t *testing.T) {
	t.Parallel()
	const limit = time.Minute
	for name, tt := range map[string]struct {
		worked, waited float64 // as fractions of the wall time
		want           time.Duration
	}{
		"works":                    {1, 0, limit},
		"works in eight threads":   {8, 30, limit},
		"hangs":                    {0, 0, 5 * limit},
		"hangs with little to do":  {0.01, 0.01, 5 * limit * 100 / 99},
		"has half a processor":     {0.5, 0.5, 2 * limit},
		"has a 20th of one":        {0.05, 0.95, 20 * limit},
		"waits in several threads": {0.05, 7, 20 * limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				m := func() worktime.Usage {
					since := time.Hour + time.Since(start) // includes time before the context
					return worktime.Usage{Worked: time.Duration(tt.worked * float64(since)), Waited: time.Duration(tt.waited * float64(since))}
				}
				ctx, cancel := worktime.Context(t.Context(), limit, errTooLong, m)
				defer cancel()
				<-ctx.Done()
				if got := time.Since(start); got < tt.want || got > tt.want+6*time.Second || !errors.Is(context.Cause(ctx), errTooLong) {
					t.Errorf("it ends after %v with %v, want %v", got, context.Cause(ctx), tt.want)
				}
			})
		})
	}
}

func TestContextEndsBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		idle := func() worktime.Usage { return worktime.Usage{} }
		outer, end := context.WithCancelCause(t.Context())
		ctx, cancel := worktime.Context(outer, time.Minute, errTooLong, idle)
		defer cancel()
		why := errors.New("why")
		end(why)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), why) {
			t.Errorf("got %v", context.Cause(ctx))
		}
		stop := worktime.AfterFunc(time.Minute, func() { t.Error("called after stop") }, idle)
		time.Sleep(4 * time.Minute)
		stop()
		time.Sleep(time.Hour)
		called := make(chan struct{})
		defer worktime.AfterFunc(time.Minute, func() { close(called) }, idle)()
		<-called
	})
}

// The clock of a thread counts only its work, and other threads can read it.
func TestThread(t *testing.T) {
	t.Parallel()
	meters, idle := make(chan worktime.Meter), make(chan struct{})
	defer close(idle)
	for _, busy := range []bool{true, false} {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			m := worktime.Thread()
			before := m()
			for busy && m().Worked-before.Worked < 50*time.Millisecond {
			}
			meters <- func() worktime.Usage { return worktime.Usage{Worked: m().Worked - before.Worked} }
			<-idle
		}()
		if got := (<-meters)().Worked; busy != (got >= 50*time.Millisecond) {
			t.Errorf("busy %v: worked for %v", busy, got)
		}
	}
	if self := worktime.Process()().Worked; self < 50*time.Millisecond {
		t.Errorf("the process worked for %v", self)
	}
}
