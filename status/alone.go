package status

import (
	"context"
	"sync"
	"time"
)

// When an item is run alone: it may be the item that ends what it runs with.
const (
	suspicious = 2 // attempts that ended with Suspect
	unlucky    = 3 // restarts
)

// suspected reports whether an item is to run alone.
func (it Item) suspected() bool { return it.Suspicions >= suspicious || it.Restarts >= unlucky }

// Bounds of how long a suspected item keeps others from being started, before those
// that run have ended.
const (
	aloneWait  = 10 * time.Second
	alonePause = time.Minute // between two such times
)

// A gate lets items run side by side, or one of them alone. The zero value is open.
type gate struct {
	mu      sync.Mutex
	running int           // items that run side by side
	waiting int           // items that wait to
	admit   int           // of those, how many are let in before the next one that runs alone
	alone   bool          // an item runs alone
	claims  int           // items that wait to run alone, and keep others from being started
	failed  time.Time     // when such a wait was given up last
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

// enter waits until an item may run beside others. It fails if ctx is done.
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

// isolate waits until an item that has entered is the only one. It gives up after a
// while, or when ctx is done.
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

// leave ends what enter began.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.alone {
		// Those that wait have their turn before the next one that runs alone.
		g.alone, g.admit = false, g.waiting
	} else {
		g.running--
	}
	g.signal()
}
