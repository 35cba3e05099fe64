package upload

import (
	"context"
	"sync"
)

// Locks are mutexes by name that can be waited for with a context. Its zero
// value has none of them locked.
type locks struct {
	mu sync.Mutex
	m  map[string]*lock
}

type lock struct {
	held    chan struct{} // has an element while it is held
	waiting int           // users, with the holder
}

// lock waits for the lock of a name. The function it returns unlocks it.
func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
	l.mu.Lock()
	k := l.m[name]
	if k == nil {
		k = &lock{held: make(chan struct{}, 1)}
		if l.m == nil {
			l.m = make(map[string]*lock)
		}
		l.m[name] = k
	}
	k.waiting++
	l.mu.Unlock()

	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.waiting--; k.waiting == 0 {
			delete(l.m, name)
		}
	}
	select {
	case k.held <- struct{}{}:
		return func() { <-k.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// A Locker excludes processes that share files from each other.
type Locker interface {
	// Lock waits for the lock of a name. The function it returns frees it;
	// the end of the process does so too.
	Lock(ctx context.Context, name string) (unlock func(), err error)
}

// lock waits for the lock of a name, which no other process holds either if
// there are others.
func (m *Manager) lock(ctx context.Context, name string) (unlock func(), err error) {
	here, err := m.locks.lock(ctx, name)
	if err != nil || m.opts.Locker == nil {
		return here, err
	}
	all, err := m.opts.Locker.Lock(ctx, name)
	if err != nil {
		here()
		return nil, err
	}
	return func() { all(); here() }, nil
}
