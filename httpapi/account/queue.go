package account

import (
	"context"
	"sync"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
)

// A queue asks the database for keys: for every request anew, so that what was
// revoked a moment ago, by whomever, is refused, but for all requests together that
// have come while it was asking. So it is asked by one at a time, however many
// requests there are.
type queue struct {
	ask func(ctx context.Context, hashes ...[32]byte) ([]*sqlstore.Grant, error)

	mu      sync.Mutex
	running *batch // the last that was begun; nil: none
	next    *batch // nil: nobody waits
}

// A batch is asked for together, by the request that has come first.
type batch struct {
	hashes map[[32]byte]*sqlstore.Grant // nil: there is no such key
	err    error
	done   chan struct{} // closed when it has been asked for
}

// askTime is the longest that asking takes.
const askTime = 15 * time.Second

// get returns the key with a hash, or nil if there is none.
func (q *queue) get(ctx context.Context, hash [32]byte) (*sqlstore.Grant, error) {
	q.mu.Lock()
	b, first, before := q.next, q.next == nil, q.running
	if first {
		b = &batch{hashes: make(map[[32]byte]*sqlstore.Grant), done: make(chan struct{})}
		q.next = b
	}
	b.hashes[hash] = nil
	q.mu.Unlock()
	if first {
		if before != nil {
			<-before.done
		}
		q.lead(ctx, b)
	}
	select {
	case <-b.done:
		return b.hashes[hash], b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lead asks for a batch, which nobody can join from now on. That its first request
// is given up is no reason to fail all others.
func (q *queue) lead(ctx context.Context, b *batch) {
	defer close(b.done)
	q.mu.Lock()
	q.next, q.running = nil, b
	hashes := make([][32]byte, 0, len(b.hashes))
	for h := range b.hashes {
		hashes = append(hashes, h)
	}
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	grants, err := q.ask(ctx, hashes...)
	for _, g := range grants {
		b.hashes[g.Hash] = g
	}
	b.err = err
}
