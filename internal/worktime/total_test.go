package worktime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/internal/worktime"
)

// A total ends when everything that works for it has worked for the limit together. What
// hangs may take five times the limit, and what is starved takes as long as it needs.
func TestTotal(t *testing.T) {
	t.Parallel()
	const limit = 30 * time.Minute
	// engine works for d of wall time, using the given shares of it.
	engine := func(ctx context.Context, d time.Duration, worked, waited float64) bool {
		start := time.Now()
		m := func() worktime.Usage {
			since := time.Since(start)
			return worktime.Usage{Worked: time.Duration(worked * float64(since)), Waited: time.Duration(waited * float64(since))}
		}
		stop := worktime.Count(ctx, m)
		defer stop()
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return ctx.Err() == nil
	}
	for name, tt := range map[string]struct {
		work func(context.Context)
		want time.Duration
	}{
		"an engine hangs":  {func(ctx context.Context) { engine(ctx, 24*time.Hour, 0, 0) }, 5 * limit},
		"one engine works": {func(ctx context.Context) { engine(ctx, time.Hour, 1, 0) }, limit},
		"four threads":     {func(ctx context.Context) { engine(ctx, time.Hour, 4, 0) }, limit},
		"engines one after the other": {func(ctx context.Context) {
			for engine(ctx, time.Minute, 1, 0) {
				time.Sleep(2 * time.Minute) // such as reading the bucket
			}
		}, 88 * time.Minute},
		"short runs count by the clock": {func(ctx context.Context) {
			for engine(ctx, 900*time.Millisecond, 0, 0) {
			}
		}, limit},
		"a starved engine": {func(ctx context.Context) { engine(ctx, 24*time.Hour, 0.05, 0.95) }, 20 * limit},
		"starved engines": {func(ctx context.Context) {
			for engine(ctx, time.Minute, 0.05, 0.95) {
			}
		}, 20 * limit},
		"an engine with a limit of its own": {func(ctx context.Context) {
			before := time.Now().Add(-time.Hour) // it was warm
			inner, cancel := worktime.Context(ctx, 24*time.Hour, nil, func() worktime.Usage { return worktime.Usage{Worked: time.Since(before)} })
			defer cancel()
			<-inner.Done()
		}, limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, process := time.Now(), worktime.Process()
				before := process().Worked
				ctx, cancel := worktime.Total(t.Context(), limit, errTooLong)
				defer cancel()
				tt.work(ctx)
				<-ctx.Done()
				// Between engines the work of this process counts, with that of tests at the same time.
				own := process().Worked - before
				if got := time.Since(start); got < tt.want-time.Second-own || got > tt.want+10*time.Second || !errors.Is(context.Cause(ctx), errTooLong) {
					t.Errorf("it ends after %v with %v, want %v", got, context.Cause(ctx), tt.want)
				}
			})
		})
	}
	worktime.Count(t.Context(), func() worktime.Usage { t.Error("measured without a total"); return worktime.Usage{} })()
}

// Work of this process counts as long as no engine is measured.
func TestTotalOfThisProcess(t *testing.T) {
	t.Parallel()
	ctx, cancel := worktime.Total(t.Context(), 50*time.Millisecond, errTooLong)
	defer cancel()
	for ctx.Err() == nil {
	}
	if !errors.Is(context.Cause(ctx), errTooLong) {
		t.Errorf("got %v", context.Cause(ctx))
	}
}
