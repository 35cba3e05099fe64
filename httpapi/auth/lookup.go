package auth

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/filewright/filewright/httpapi/account"
)

// A lookup finds keys by their hashes. Every request queries the store, so that a key is refused as
// soon as any process revokes it; the store may answer from memory if it knows that nothing changed. One query at a time answers all requests that arrived during the
// previous query.
type lookup struct {
	ask func(ctx context.Context, hashes ...[32]byte) ([]*account.Grant, error)

	mu      sync.Mutex
	running *batch // the latest started batch; nil: none
	next    *batch // nil: no request waits
}

// A batch is the keys of one query. The first request in it runs the query.
type batch struct {
	grants map[[32]byte]*account.Grant // nil value: unknown key
	err    error
	done   chan struct{} // closed after the query
}

// lookupTimeout limits one query.
const lookupTimeout = 15 * time.Second

// get returns the key with a hash, or nil if it does not exist.
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

// run queries the store for a batch, which no request can join anymore. The query continues if its
// first request is cancelled: the others need the result.
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
