package riverqueue

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

// Every River queue that this process serves has an overflow queue beside it, with one
// slot in each process: the overflow slot. A ticket moves there if it has waited for
// long and its owner has nothing running while another owner exceeds its fair share. If
// no process draws it, because all overflow slots are taken, it moves back.

// overflowName returns River's name of the overflow queue of a queue. Existing
// databases contain it.
func overflowName(name string) string { return name + "-guest" }

// overflowPoll is the time between two polls for a ticket.
const overflowPoll = 250 * time.Millisecond

// overflowConfig returns the configuration of an overflow queue.
func overflowConfig() river.QueueConfig {
	return river.QueueConfig{MaxWorkers: 1, FetchPollInterval: overflowPoll}
}

// moveWaiting moves tickets into overflow queues and back. One process at a time does so.
func (r *run) moveWaiting(ctx context.Context, tx pgx.Tx) error {
	// The queues in which an owner exceeds its fair share: it holds several slots, or
	// the only one.
	rows, err := tx.Query(ctx, `SELECT queue, max(n) > 1 OR sum(n) = 1 FROM (
			SELECT queue, count(*) AS n FROM items WHERE worker IS NOT NULL AND state = 'running' AND due_ms > `+dbNow+` GROUP BY queue, owner
		) AS held GROUP BY queue`)
	if err != nil {
		return err
	}
	crowded := make(map[string]bool)
	for queue := range r.queues {
		crowded[queue] = false
	}
	var queue string
	var yes bool
	if _, err := pgx.ForEachRow(rows, []any{&queue, &yes}, func() error { crowded[queue] = yes; return nil }); err != nil {
		return err
	}
	for queue, yes := range crowded {
		name := queueName(queue)
		back, err := tx.Exec(ctx, `UPDATE river_job SET queue = $1 WHERE state = 'available' AND queue = $2`, name, overflowName(name))
		if err != nil {
			return err
		}
		if !yes || back.RowsAffected() > 0 || r.o.OverflowWait <= 0 {
			continue // a ticket that moved back can be drawn like the others
		}
		// The first ticket of an owner with nothing running has priority 1, and
		// scheduled_at is the time since when that is so.
		if _, err := tx.Exec(ctx, `UPDATE river_job SET queue = $2 WHERE id = (
				SELECT j.id FROM river_job j JOIN items i ON i.operation = j.args->>'operation' AND i.idx = (j.args->>'index')::bigint AND i.ticket = j.id
				WHERE j.state = 'available' AND j.queue = $1 AND j.priority = 1 AND j.scheduled_at <= now() - $3 * interval '1 millisecond'
					AND NOT EXISTS (SELECT FROM items r WHERE r.owner = i.owner AND r.queue = i.queue AND r.worker IS NOT NULL AND r.state = 'running')
				ORDER BY j.scheduled_at, j.id LIMIT 1 FOR UPDATE OF j SKIP LOCKED)`,
			name, overflowName(name), r.o.OverflowWait.Milliseconds()); err != nil {
			return err
		}
	}
	return nil
}
