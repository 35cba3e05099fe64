// Package backoff waits between attempts at an operation that fails for a while.
//
//	for b := backoff.New(5*time.Millisecond, time.Second); ; {
//		err := attempt()
//		if err == nil || b.Wait(ctx) != nil {
//			return err
//		}
//	}
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff is a series of pauses, each twice as long as the one before. It must be
// created by [New] and is for one goroutine.
type Backoff struct{ next, longest time.Duration }

// New returns a Backoff whose pauses grow from first to longest, which must be
// positive.
func New(first, longest time.Duration) *Backoff { return &Backoff{first, longest} }

// Wait waits for the next pause, minus a random part of up to a half, so that processes
// that collided do not collide again. It fails like [Sleep].
func (b *Backoff) Wait(ctx context.Context) error {
	pause := b.next
	b.next = min(2*pause, b.longest)
	return Sleep(ctx, pause-rand.N(pause/2+1))
}

// Sleep waits for d. If ctx is done first, it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Days returns the pauses between attempts to reach another server, which may be down for
// days: 5 seconds, 5 and 30 minutes, 2, 5, 10, 14, 20 and 24 hours.
func Days() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}
