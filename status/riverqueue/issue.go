package riverqueue

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/filewright/filewright/status"
)

// An issuer issues tickets for lanes that have changed, in transactions separate from
// those that made the items ready. Lanes that change while it is busy go into its next
// transaction. If the process dies, the rescue of another process finds the items
// without a ticket.
type issuer struct {
	mu    sync.Mutex
	lanes map[status.Lane]bool // lanes that have changed
	done  chan struct{}        // closed when nothing is left to do; nil while idle
}

// Limits of an issuer.
const (
	lanesMax     = 100              // lanes in one transaction
	issueTimeout = 10 * time.Second // for one transaction
)

// Ready starts issuing tickets for items of the lanes, within the limits of their
// owners.
func (q *Queue) Ready(lanes []status.Lane) {
	i := &q.issuer
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range lanes {
		i.lanes[l] = true
	}
	if i.done == nil && len(i.lanes) > 0 {
		i.done = make(chan struct{})
		go q.issueAll()
	}
}

// Flush waits until tickets for all items that this process has stored so far are
// issued, or issuing them failed. If ctx is done first, it returns the error of ctx;
// other processes will issue the rest.
func (q *Queue) Flush(ctx context.Context) error {
	q.issuer.mu.Lock()
	done := q.issuer.done
	q.issuer.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take returns some lanes that have changed. If there are none, it closes done.
func (i *issuer) take() (lanes []status.Lane) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for l := range i.lanes {
		if len(lanes) == lanesMax {
			break
		}
		lanes = append(lanes, l)
		delete(i.lanes, l)
	}
	if len(lanes) == 0 {
		close(i.done)
		i.done = nil
	}
	return lanes
}

// issueAll issues tickets until there is nothing to do. It is busy at most a third of
// the time, so that changed lanes gather into batches.
func (q *Queue) issueAll() {
	for lanes := q.issuer.take(); len(lanes) > 0; lanes = q.issuer.take() {
		start := time.Now()
		if err := q.issueNow(lanes); err != nil {
			q.log.Warn("cannot issue tickets; items start late", "err", err)
		}
		// River sends one notification of a queue in that time.
		time.Sleep(max(fetchCooldown, 2*time.Since(start)))
	}
}

// issueNow issues tickets in a transaction of its own. The commit does not wait for the
// disk: if the database crashes, the rescue finds the items without a ticket.
func (q *Queue) issueNow(lanes []status.Lane) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), issueTimeout)
	defer cancel()
	c, err := q.db.AsyncCommitPool().Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{})
	b.Queue(holdShortly)
	found := q.find(&b, lanes)
	r := c.SendBatch(ctx, &b)
	tx := r.Tx()
	defer func() {
		if c.Conn().PgConn().TxStatus() != 'I' {
			_ = tx.Rollback(ctx)
		}
	}()
	if err := r.Close(); err != nil {
		return err
	}
	b = pgx.Batch{}
	if err := q.insertTickets(ctx, tx, found, &b); err != nil {
		return err
	}
	b.Queue("COMMIT")
	return c.SendBatch(ctx, &b).Close()
}

// issue inserts tickets for items of the lanes, within the limits of their owners.
func (q *Queue) issue(ctx context.Context, tx pgx.Tx, lanes []status.Lane) error {
	var b pgx.Batch
	found := q.find(&b, lanes)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	b = pgx.Batch{}
	if err := q.insertTickets(ctx, tx, found, &b); err != nil {
		return err
	}
	return tx.SendBatch(ctx, &b).Close()
}

// ready holds items that get tickets.
type ready struct {
	queues, owners []string // of the lanes

	jobs       []river.InsertManyParams
	operations []string
	indexes    []int
}

// Selects the items that get tickets, oldest first, and for each the number of tickets
// (have) that its lane has. A lane has a queue, an owner, room (the maximum number of
// tickets), and whether its owner has a limit. Concurrent transactions select different
// items.
const waiting = ` CROSS JOIN LATERAL (
		SELECT count(*) AS have, count(*) FILTER (WHERE state = 'queued') AS queued FROM items
		WHERE finished_ms IS NULL AND ticket IS NOT NULL AND queue = l.queue AND owner = l.owner
	) AS t CROSS JOIN LATERAL (
		SELECT operation, idx FROM items
		WHERE finished_ms IS NULL AND owner = l.owner AND queue = l.queue AND ticket IS NULL AND due_ms <= ` + dbNow + `
		ORDER BY created_ms, operation, idx
		LIMIT greatest(0, l.room - CASE WHEN l.limited THEN t.queued ELSE t.have END)
		FOR UPDATE SKIP LOCKED) AS i`

const (
	// The lanes ($1 queues, $2 owners) whose owner has no limit.
	waitingFree = `SELECT i.operation, i.idx, l.queue, l.owner, t.have
		FROM (SELECT queue, owner, $3::bigint AS room, false AS limited FROM unnest($1::text[], $2::text[]) AS n (queue, owner)
			WHERE NOT EXISTS (SELECT FROM accounts a WHERE a.id = n.owner AND a.max_parallel > 0)) AS l` + waiting

	// All lanes of those owners $1 that have a limit: when an item finishes, an item of
	// any queue may start. Each lane gets as many tickets as items may start, because
	// some queues may have no worker.
	waitingLimited = `WITH RECURSIVE limited AS (
			SELECT a.id, a.max_parallel - (SELECT count(*) FROM items r
				WHERE r.owner = a.id AND r.worker IS NOT NULL AND r.state = 'running' AND r.due_ms > ` + dbNow + `) AS room
			FROM accounts a WHERE a.id = ANY($1::text[]) AND a.max_parallel > 0
		), lanes AS (
			SELECT id AS owner, room, (SELECT min(i.queue) FROM items i WHERE i.finished_ms IS NULL AND i.owner = l.id) AS queue
				FROM limited l WHERE room > 0
			UNION ALL
			SELECT owner, room, (SELECT min(i.queue) FROM items i WHERE i.finished_ms IS NULL AND i.owner = l.owner AND i.queue > l.queue)
				FROM lanes l WHERE queue IS NOT NULL
		)
		SELECT i.operation, i.idx, l.queue, l.owner, t.have
		FROM (SELECT queue, owner, least(room, $2::bigint) AS room, true AS limited FROM lanes WHERE queue IS NOT NULL) AS l` + waiting
)

// promote gives priority to the oldest ticket of each lane ($1, $2) that has nothing
// running. That ticket is drawn before all tickets that are not the first of their
// lane. It skips a ticket that another transaction has locked, which promotes or draws
// it.
const promote = `WITH oldest AS (
		SELECT (SELECT ticket FROM items i
			WHERE i.finished_ms IS NULL AND i.owner = l.owner AND i.queue = l.queue AND i.ticket IS NOT NULL AND i.state = 'queued'
			ORDER BY i.created_ms, i.operation, i.idx LIMIT 1) AS ticket
		FROM unnest($1::text[], $2::text[]) AS l (queue, owner)
		WHERE NOT EXISTS (SELECT FROM items r WHERE r.owner = l.owner AND r.queue = l.queue AND r.worker IS NOT NULL AND r.state = 'running')
	), waiting AS (
		SELECT j.id FROM river_job j JOIN oldest ON j.id = oldest.ticket
		WHERE j.state = 'available' AND j.priority > 1 FOR UPDATE OF j SKIP LOCKED
	)
	UPDATE river_job j SET priority = 1, scheduled_at = now() FROM waiting WHERE j.id = waiting.id`

// priority returns the River priority of a ticket, of which 1 is drawn first. The fewer
// tickets an owner has in the queue, the sooner is its turn.
func priority(have int) int {
	switch {
	case have == 0:
		return 1
	case have < 4:
		return 2
	case have < 16:
		return 3
	}
	return 4
}

// find adds queries to b for the items that get tickets, and returns where their
// results will be stored.
func (q *Queue) find(b *pgx.Batch, lanes []status.Lane) *ready {
	queues, owners := make([]string, len(lanes)), make([]string, len(lanes))
	for i, l := range lanes {
		queues[i], owners[i] = l.Queue, l.Owner
	}
	found := &ready{queues: queues, owners: owners}
	last, n := status.Lane{}, 0 // number of tickets found for the last lane
	read := func(rows pgx.Rows) error {
		var a args
		var l status.Lane
		var have int
		_, err := pgx.ForEachRow(rows, []any{&a.Operation, &a.Index, &l.Queue, &l.Owner, &have}, func() error {
			if l != last {
				last, n = l, 0
			}
			found.jobs = append(found.jobs, river.InsertManyParams{Args: a, InsertOpts: &river.InsertOpts{
				Queue: queueName(l.Queue), MaxAttempts: 1, Priority: priority(have + n),
			}})
			n++
			found.operations, found.indexes = append(found.operations, a.Operation), append(found.indexes, a.Index)
			return nil
		})
		return err
	}
	b.Queue(waitingFree, queues, owners, q.o.Tickets).Query(read)
	b.Queue(waitingLimited, owners, q.o.Tickets).Query(read)
	return found
}

// insertTickets inserts tickets, and adds statements to b that record them and promote
// the first tickets of the lanes.
func (q *Queue) insertTickets(ctx context.Context, tx pgx.Tx, found *ready, b *pgx.Batch) error {
	if len(found.jobs) > 0 {
		tickets, err := q.insert.InsertManyTx(ctx, tx, found.jobs)
		if err != nil {
			return err
		}
		ids := make([]int64, len(tickets))
		for i, t := range tickets {
			ids[i] = t.Job.ID
		}
		b.Queue(`UPDATE items i SET ticket = t.id
			FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS t (operation, idx, id)
			WHERE i.operation = t.operation AND i.idx = t.idx`, found.operations, found.indexes, ids)
	}
	// Last, because until the commit other transactions skip the locked, promoted
	// tickets and draw those behind them.
	b.Queue(promote, found.queues, found.owners)
	return nil
}
