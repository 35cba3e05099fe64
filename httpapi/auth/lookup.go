package auth

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/filewright/filewright/httpapi/account"
)

// A lookup finds keys by their hashes. It asks the store for every request, so that a
// key that was revoked a moment ago is refused, whoever revoked it. One query at a time
// answers all requests that arrived while the query before it ran.
type lookup struct {
	ask func(ctx context.Context, hashes ...[32]byte) ([]*account.Grant, error)

	mu      sync.Mutex
	running *batch // the newest that was started; nil: none
	next    *batch // nil: no request waits
}

// A batch is the keys of one query. The first request in it runs the query.
type batch struct {
	grants map[[32]byte]*account.Grant // nil: there is no such key
	err    error
	done   chan struct{} // closed after the query
}

// lookupTimeout limits one query.
const lookupTimeout = 15 * time.Second

// get returns the key with a hash, or nil if there is none.
func (l *lookup) get(ctx context.Context, hash [32]byte) (*account.Grant, error) {
	l.mu.Lock()
	b, first, before := l.next, l.next == nil, l.running
	if first {
		b = &batch{grants: make(map[[32]byte]*account.Grant), done: make(chan struct{})}
		l.next = b
	}
	b.grants[hash] = nil
	l.mu.Unlock()
	if first {
		if before != nil {
			<-before.done
		}
		l.run(ctx, b)
	}
	select {
	case <-b.done:
		return b.grants[hash], b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run runs the query of a batch, which no request joins from then on. The query
// continues if its first request is cancelled: the others need the answer.
func (l *lookup) run(ctx context.Context, b *batch) {
	defer close(b.done)
	l.mu.Lock()
	l.next, l.running = nil, b
	hashes := slices.Collect(maps.Keys(b.grants))
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	grants, err := l.ask(ctx, hashes...)
	for _, g := range grants {
		b.grants[g.Hash] = g
	}
	b.err = err
}
