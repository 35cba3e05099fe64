package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/filewright/filewright/internal/backoff"
	"github.com/filewright/filewright/status"
)

// A Node is a process that shares the database, as announced by itself.
type Node struct {
	ID   string
	Info []byte
	Seen time.Time // by the clock of the database
}

// forgotten is how long a node that no longer announces itself is kept while others do.
const forgotten = time.Hour

// Announce records that a node is up. info describes it to other nodes; its format is
// up to the caller.
func (db *DB) Announce(ctx context.Context, id string, info []byte) error {
	if db.pg == nil {
		return fmt.Errorf("nodes that share SQLite: %w", errors.ErrUnsupported)
	}
	if info == nil {
		info = []byte{}
	}
	return db.tx(ctx, func(ctx context.Context, t tx) error {
		now := db.engine.now()
		if _, err := t.exec(ctx, `INSERT INTO nodes (id, info, beat_ms) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET info = excluded.info, beat_ms = excluded.beat_ms`,
			id, info, millis(now)); err != nil {
			return err
		}
		_, err := t.exec(ctx, `DELETE FROM nodes WHERE beat_ms < $1`, millis(now.Add(-forgotten)))
		return err
	})
}

// Nodes returns, by ID, the last node that announced itself and all nodes that did so
// at most age earlier. While no node is up, these are the nodes that were up last.
func (db *DB) Nodes(ctx context.Context, age time.Duration) (nodes []Node, err error) {
	if db.pg == nil {
		return nil, fmt.Errorf("nodes that share SQLite: %w", errors.ErrUnsupported)
	}
	err = db.each(ctx, func(row scanner) error {
		var n Node
		var seen int64
		err := row.Scan(&n.ID, &n.Info, &seen)
		n.Seen = timeOf(seen)
		nodes = append(nodes, n)
		return err
	}, `SELECT id, info, beat_ms FROM nodes WHERE beat_ms >= (SELECT max(beat_ms) FROM nodes) - $1 ORDER BY id`, age.Milliseconds())
	return nodes, err
}

// locks are named mutexes that all processes share. They are PostgreSQL advisory locks
// on one connection of the process: when that breaks, or the process dies, they are
// released.
type locks struct {
	mu   sync.Mutex
	c    *pgx.Conn // nil: not connected
	held map[string]*pgx.Conn
}

// lockWait is the longest time that Lock waits.
const lockWait = time.Minute

// Lock acquires the named lock, waiting for at most a minute, and returns the function
// that releases it. The error matches status.ErrUnavailable if another process holds
// the lock for longer, or if the database cannot be reached for a few seconds. Lock
// fails on SQLite, where a single process runs the operations.
func (db *DB) Lock(ctx context.Context, name string) (unlock func(), err error) {
	if db.pg == nil {
		return nil, fmt.Errorf("locks in SQLite: %w", errors.ErrUnsupported)
	}
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, fmt.Errorf("locked by another process: %w", status.ErrUnavailable))
	defer cancel()
	reached := time.Now()
	for b := backoff.New(5*time.Millisecond, 200*time.Millisecond); ; {
		ok, err := db.pg.tryLock(ctx, name)
		if err == nil {
			reached = time.Now()
		} else if !unreachable(err) || ctx.Err() != nil || time.Since(reached) > retryUntil {
			return nil, fmt.Errorf("lock: %w", storeError(caller, err))
		}
		if ok {
			return func() { db.pg.unlock(name) }, nil
		}
		if err := b.Wait(ctx); err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
	}
}

func lockKey(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte("filewright\n" + name))
	return int64(h.Sum64())
}

func (p *postgres) tryLock(ctx context.Context, name string) (ok bool, err error) {
	l := &p.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[string]*pgx.Conn)
	}
	if l.c == nil || l.c.IsClosed() {
		clear(l.held) // a broken connection has released them
		if l.c, err = pgx.ConnectConfig(ctx, p.pool.Config().ConnConfig); err != nil {
			l.c = nil
			return false, err
		}
	}
	if l.held[name] != nil {
		return false, nil // the connection would acquire it a second time
	}
	// If ctx ended during the query, the connection would be closed and all locks
	// released.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	if err := l.c.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey(name)).Scan(&ok); err != nil {
		if l.c.IsClosed() {
			err = fmt.Errorf("%w: %w", errBroken, err)
		}
		return false, err
	}
	if ok {
		l.held[name] = l.c
	}
	return ok, nil
}

func (p *postgres) unlock(name string) {
	l := &p.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.held[name]
	if c == nil || c != l.c {
		return // it was released when the connection broke
	}
	delete(l.held, name)
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	if _, err := c.Exec(ctx, `SELECT pg_advisory_unlock($1)`, lockKey(name)); err != nil {
		_ = c.Close(ctx) // which releases all locks
	}
}

func (l *locks) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c != nil {
		hangUp(l.c)
	}
}
