package status

import (
	"context"
	"sync"
	"time"
)

// Thresholds after which an item runs alone, because it may be killing its worker or
// engine.
const (
	suspicious = 2 // outcomes with Suspect set
	unlucky    = 3 // restarts
)

// suspected reports whether an item must run alone.
func (it Item) suspected() bool { return it.Suspicions >= suspicious || it.Restarts >= unlucky }

// Limits of how long a suspected item keeps other items from starting while it waits
// for the running ones to finish.
const (
	aloneWait  = 10 * time.Second
	alonePause = time.Minute // minimum time between two such waits
)

// A gate lets items run in parallel, or a single item alone. The zero value is open.
type gate struct {
	mu      sync.Mutex
	running int           // items running in parallel
	waiting int           // items waiting to do so
	admit   int           // how many of those may enter before the next item runs alone
	alone   bool          // an item runs alone
	claims  int           // items that wait to run alone and block others from entering
	failed  time.Time     // when such a wait last timed out
	changed chan struct{} // closed at the next change; nil: nobody waits
}

// wait waits for a change. g.mu is held.
func (g *gate) wait(done <-chan struct{}) (ended bool) {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	changed := g.changed
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-changed:
		return false
	case <-done:
		return true
	}
}

// signal wakes all that wait for a change. g.mu is held.
func (g *gate) signal() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// enter waits until an item may run in parallel with others. It reports false if ctx is
// done first.
func (g *gate) enter(ctx context.Context) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	defer func() { g.waiting-- }()
	for g.alone || g.claims > 0 && g.admit == 0 {
		if g.wait(ctx.Done()) {
			g.admit = min(g.admit, g.waiting-1)
			g.signal()
			return false
		}
	}
	g.admit = max(0, g.admit-1)
	g.running++
	return true
}

// isolate waits until the calling item, which has entered, is the only one. It reports
// false after aloneWait, or when ctx is done.
func (g *gate) isolate(ctx context.Context) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.signal()
	free := func() bool { return g.running == 0 && g.admit == 0 && !g.alone }
	if !free() && time.Since(g.failed) > alonePause {
		ctx, cancel := context.WithTimeout(ctx, aloneWait)
		defer cancel()
		g.claims++
		ended := false
		for !free() && !ended {
			ended = g.wait(ctx.Done())
		}
		g.claims--
		g.signal()
		if ended && !free() {
			g.failed = time.Now()
		}
	}
	if !free() {
		g.running++
		return false
	}
	g.alone = true
	return true
}

// leave undoes enter or isolate when the item has finished.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.alone {
		// The waiting items go before the next item that runs alone.
		g.alone, g.admit = false, g.waiting
	} else {
		g.running--
	}
	g.signal()
}
