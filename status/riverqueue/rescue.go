package riverqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/filewright/filewright/status"
)

// rescueLock is the advisory lock of the process that rescues items.
const rescueLock = 0x46_49_4c_45_57_53

// Limits of a rescue round.
const (
	rescueMax     = 500 // items at once
	fullEvery     = 5   // one round in so many also looks for lost tickets
	rescueTimeout = 10 * time.Second

	// settled is the minimum time for which the database must be reachable before this
	// process treats claims as lapsed. Other processes need time to reach it again,
	// too.
	settled = 5 * time.Second
)

// rescueLoop rescues items periodically until ctx is done.
func (r *run) rescueLoop(ctx context.Context) {
	var since, last time.Time // start and end of the time in which the database was reachable without a pause
	t := time.NewTicker(r.o.Every)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		// This process may have been frozen, together with all others.
		if now := time.Now(); since.IsZero() || now.Sub(last) > r.o.Lease {
			since = now
		}
		reap := time.Since(since) >= max(r.o.Lease, settled)
		if err := r.rescue(ctx, reap, n%fullEvery == 0); err != nil {
			since = time.Time{}
			if ctx.Err() == nil {
				r.log.Error("cannot search for items of dead processes", "err", err)
			}
			continue
		}
		last = time.Now()
	}
}

// holdShortly makes the database end a transaction whose process freezes in the middle
// of it: other processes would wait for its locks.
const holdShortly = `SELECT set_config('idle_in_transaction_session_timeout', '2s', true)`

// rescue gives new tickets to items whose claim has lapsed, if reap is set, and to
// items without a valid ticket, if full is set. One process at a time does so.
func (r *run) rescue(ctx context.Context, reap, full bool) error {
	ctx, cancel := context.WithTimeout(ctx, min(rescueTimeout, max(r.o.Lease, settled)))
	defer cancel()
	var lanes []status.Lane
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		var alone bool
		if err := tx.QueryRow(ctx, holdShortly+`, pg_try_advisory_xact_lock($1)`, int64(rescueLock)).Scan(nil, &alone); err != nil || !alone {
			return err
		}
		seen := make(map[status.Lane]bool)
		add := func(l status.Lane) {
			if !seen[l] {
				seen[l] = true
				lanes = append(lanes, l)
			}
		}
		if reap {
			n, err := r.drop(ctx, tx, lapsed, add)
			if err != nil {
				return fmt.Errorf("lapsed claims: %w", err)
			}
			if n > 0 {
				r.log.Warn("requeued items of dead processes", "count", n)
			}
		}
		if full {
			if reap {
				n, err := r.drop(ctx, tx, lost, add)
				if err != nil {
					return fmt.Errorf("lost tickets: %w", err)
				}
				if n > 0 {
					r.log.Warn("reissued lost tickets", "count", n)
				}
			}
			rows, err := tx.Query(ctx, `SELECT queue, owner FROM items
				WHERE finished_ms IS NULL AND ticket IS NULL AND due_ms <= `+dbNow+` GROUP BY queue, owner`)
			if err != nil {
				return err
			}
			var l status.Lane
			if _, err := pgx.ForEachRow(rows, []any{&l.Queue, &l.Owner}, func() error { add(l); return nil }); err != nil {
				return err
			}
		}
		if err := r.moveWaiting(ctx, tx); err != nil {
			return fmt.Errorf("overflow slots: %w", err)
		}
		if len(lanes) == 0 {
			return nil
		}
		return r.issue(ctx, tx, lanes)
	})
	if err != nil || !full || r.limits[""] < 0 {
		return err
	}
	rows, err := r.pool.Query(ctx, `SELECT DISTINCT queue FROM items WHERE finished_ms IS NULL`)
	if err != nil {
		return err
	}
	var queue string
	_, err = pgx.ForEachRow(rows, []any{&queue}, func() error { return r.join(queue) })
	return err
}

// join starts serving a queue that was not known before.
func (r *run) join(queue string) error {
	if r.queues[queue] {
		return nil
	}
	r.queues[queue] = true
	c, ok := r.queueConfig(queue)
	if !ok {
		return nil
	}
	if r.o.OverflowWait > 0 {
		if err := r.client.Queues().Add(overflowName(queueName(queue)), overflowConfig()); err != nil {
			return err
		}
	}
	return r.client.Queues().Add(queueName(queue), c)
}

// Conditions for items without a valid ticket: $1 is the lease in milliseconds.
const (
	// The claim has lapsed, and no ticket is queued or was just drawn.
	lapsed = `i.state = 'running' AND i.worker IS NOT NULL AND i.due_ms <= ` + dbNow + ` AND ` + withoutValidTicket

	// The item is not claimed although its ticket has left the queue, or was drawn too
	// long ago.
	lost = `i.state = 'queued' AND i.finished_ms IS NULL AND i.ticket IS NOT NULL AND ` + withoutValidTicket

	withoutValidTicket = `NOT EXISTS (SELECT FROM river_job j WHERE j.id = i.ticket AND j.finalized_at IS NULL
		AND (j.state <> 'running' OR j.attempted_at > now() - $1 * interval '1 millisecond'))`
)

// drop deletes the tickets of items and returns their number.
func (r *run) drop(ctx context.Context, tx pgx.Tx, which string, add func(status.Lane)) (n int, err error) {
	rows, err := tx.Query(ctx, `WITH found AS (
			SELECT operation, idx, ticket FROM items i WHERE `+which+` LIMIT $2 FOR UPDATE SKIP LOCKED
		), finished AS (
			UPDATE river_job j SET state = 'discarded', finalized_at = now()
			FROM found WHERE j.id = found.ticket AND j.state = 'running'
		)
		UPDATE items i SET ticket = NULL FROM found
		WHERE i.operation = found.operation AND i.idx = found.idx RETURNING i.queue, i.owner`,
		(r.o.Lease / 2).Milliseconds(), rescueMax)
	if err != nil {
		return 0, err
	}
	var l status.Lane
	_, err = pgx.ForEachRow(rows, []any{&l.Queue, &l.Owner}, func() error { n++; add(l); return nil })
	return n, err
}
