package upload

import (
	"context"
	"sync"
)

// locks are named mutexes whose lock method takes a context. The zero value is ready
// for use.
type locks struct {
	mu sync.Mutex
	m  map[string]*lock
}

type lock struct {
	held    chan struct{} // holds an element while locked
	waiting int           // number of users, including the holder
}

// lock waits for the lock of a name. The returned function unlocks it.
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

// A Locker provides locks among processes that share files.
type Locker interface {
	// Lock waits for the lock of a name. The returned function releases it; so does the
	// end of the process.
	Lock(ctx context.Context, name string) (unlock func(), err error)
}

// lock waits for the lock of a name, in this process and, with Options.Locker, among
// all processes.
func (m *Manager) lock(ctx context.Context, name string) (unlock func(), err error) {
	here, err := m.locks.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := m.lockOthers(ctx, name)
	if err != nil {
		here()
		return nil, err
	}
	return func() { all(); here() }, nil
}

// lockOthers waits for the lock of a name among all processes. The lock in this process must be
// held.
func (m *Manager) lockOthers(ctx context.Context, name string) (unlock func(), err error) {
	if m.opts.Locker == nil {
		return func() {}, nil
	}
	return m.opts.Locker.Lock(ctx, name)
}
