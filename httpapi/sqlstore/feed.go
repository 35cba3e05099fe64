package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/filewright/filewright/internal/backoff"
	"github.com/filewright/filewright/status"
)

// A feed notifies other processes of changed operations. PostgreSQL commits only one
// notifying transaction at a time, so notifications have transactions of their own and
// each covers all changes of a short time. Other processes find lost changes when they
// poll.
type feed struct {
	self string // identifies the sender of a notification

	mu      sync.Mutex
	changed map[string]bool // by operation: whether it was cancelled
	wake    chan struct{}   // holds a token if there are changes to publish
}

// Channel and limits of notifications.
const (
	feedChannel = "filewright_changes"
	feedPause   = 40 * time.Millisecond // between two notifications of a process
	feedBytes   = 7500                  // of one notification; PostgreSQL accepts less than 8000
	feedMax     = 1000                  // operations for one notification round: more are not worth it
	cancelMark  = "\t"                  // prefix of a cancelled operation
)

func (f *feed) init() {
	f.self, f.wake, f.changed = rand.Text(), make(chan struct{}, 1), make(map[string]bool)
}

func (f *feed) add(id string, cancelled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancelled || len(f.changed) < feedMax {
		f.changed[id] = f.changed[id] || cancelled
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns the pending changes, as the payloads of as many notifications as needed.
func (f *feed) take() (payloads []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for id, cancelled := range f.changed {
		if id == "" || len(id) > 200 || strings.ContainsAny(id, "\n\x00") || !utf8.ValidString(id) {
			continue // an ID that this service does not create
		}
		if cancelled {
			id = cancelMark + id
		}
		if b.Len()+1+len(id) > feedBytes {
			payloads = append(payloads, b.String())
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteString(f.self)
		}
		b.WriteString("\n" + id)
	}
	if b.Len() > 0 {
		payloads = append(payloads, b.String())
	}
	clear(f.changed)
	return payloads
}

// publish notifies other processes of changes until ctx is done.
func (p *postgres) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.feed.wake:
		}
		for _, payload := range p.feed.take() {
			wait, cancel := context.WithTimeout(ctx, longest)
			_, err := p.async.Exec(wait, `SELECT pg_notify($1, $2)`, feedChannel, payload)
			cancel()
			if err != nil && ctx.Err() == nil {
				p.log.Warn("cannot notify other processes of changes", "err", err)
				break
			}
		}
		if backoff.Sleep(ctx, feedPause) != nil {
			return
		}
	}
}

// changed makes publish report a changed operation.
func (db *DB) changed(id string, cancelled bool) {
	if db.pg != nil {
		db.pg.feed.add(id, cancelled)
	}
}

// Changes implements [status.Feed]. It uses one connection. If the database is SQLite,
// it only waits for ctx.
func (s *Operations) Changes(ctx context.Context, f func([]status.Change)) error {
	p := s.db.pg
	if p == nil {
		<-ctx.Done()
		return nil
	}
	pauses := func() *backoff.Backoff { return backoff.New(50*time.Millisecond, 5*time.Second) }
	for b := pauses(); ctx.Err() == nil; {
		start := time.Now()
		if err := p.listen(ctx, f); ctx.Err() == nil {
			p.log.Warn("cannot receive changes from other processes; polling instead", "err", err)
		}
		if time.Since(start) > 10*time.Second {
			b = pauses()
		}
		_ = b.Wait(ctx) // fails only if ctx is done
	}
	return nil
}

// listen calls f until the connection breaks.
func (p *postgres) listen(ctx context.Context, f func([]status.Change)) error {
	// A connection outside the pool, which is for short transactions.
	c, err := pgx.ConnectConfig(ctx, p.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer hangUp(c)
	if _, err := c.Exec(ctx, "LISTEN "+feedChannel); err != nil {
		return err
	}
	f(nil)
	for {
		// A ping detects a connection that is dead but not closed.
		wait, cancel := context.WithTimeout(ctx, 30*time.Second)
		n, err := c.WaitForNotification(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && wait.Err() != nil && !c.IsClosed():
			ask, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := c.Ping(ask)
			cancel()
			if err != nil {
				return fmt.Errorf("listen: %w", err)
			}
			continue
		case err != nil:
			return fmt.Errorf("listen: %w", err)
		}
		sender, ids, _ := strings.Cut(n.Payload, "\n")
		if sender == p.feed.self || ids == "" {
			continue
		}
		var changes []status.Change
		for id := range strings.SplitSeq(ids, "\n") {
			id, cancelled := strings.CutPrefix(id, cancelMark)
			changes = append(changes, status.Change{ID: id, Cancelled: cancelled})
		}
		f(changes)
	}
}
