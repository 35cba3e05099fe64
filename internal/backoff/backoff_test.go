package backoff_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/internal/backoff"
	"github.com/filewright/filewright/internal/systest"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backoff.New(100*time.Millisecond, 300*time.Millisecond)
		for _, most := range []time.Duration{100, 200, 300, 300} {
			most *= time.Millisecond
			start := time.Now()
			systest.NoError(t, b.Wait(t.Context()))
			if d := time.Since(start); d < most/2 || d > most {
				t.Errorf("the pause is %v, want %v to %v", d, most/2, most)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("cause")
		time.AfterFunc(time.Millisecond, func() { cancel(cause) })
		start := time.Now()
		if err := b.Wait(ctx); !errors.Is(err, cause) || time.Since(start) != time.Millisecond {
			t.Errorf("Wait returns %v after %v", err, time.Since(start))
		}
	})
}
