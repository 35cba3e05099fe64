package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/status"
)

// idempotencyTTL is how long an idempotency key is valid.
const idempotencyTTL = 24 * time.Hour

// Operations is a [status.Store] in a database.
type Operations struct{ db *DB }

// Operations returns the operations of the database.
func (db *DB) Operations() *Operations { return &Operations{db} }

func missing(what, id string) error { return fmt.Errorf("%s %q: %w", what, id, fs.ErrNotExist) }

// toJSON encodes v, or NULL if empty.
func toJSON(v any, empty bool) (sql.NullString, error) {
	if empty {
		return sql.NullString{}, nil
	}
	b, err := json.Marshal(v)
	return sql.NullString{String: string(b), Valid: true}, err
}

func fromJSON(s sql.NullString, v any) error {
	if !s.Valid {
		return nil
	}
	return json.Unmarshal([]byte(s.String), v)
}

// values returns the placeholders of the given number of rows with n columns each.
func values(rows, n int) string {
	var b strings.Builder
	for i := range rows * n {
		switch {
		case i == 0:
			b.WriteString("($")
		case i%n == 0:
			b.WriteString("), ($")
		default:
			b.WriteString(", $")
		}
		b.WriteString(strconv.Itoa(i + 1))
	}
	b.WriteByte(')')
	return b.String()
}

// Create implements [status.Store].
func (s *Operations) Create(ctx context.Context, op *status.Operation) (*status.Operation, error) {
	if op.ID == "" || len(op.Items) == 0 {
		return nil, errors.New("operation without ID or items")
	}
	fresh := op.Clone()
	fresh.State, fresh.Cancelled, fresh.Finished = status.Queued, false, time.Time{}
	for i, it := range fresh.Items {
		fresh.Items[i] = status.Item{Queue: it.Queue, Inputs: it.Inputs, State: status.Queued}
	}
	fresh.Begin()
	var created *status.Operation
	notes, err := toJSON(op.Notes, op.Notes == nil)
	if err != nil {
		return nil, err
	}
	steps, err := toJSON(fresh.Steps, len(fresh.Steps) == 0)
	if err != nil {
		return nil, err
	}
	asked, err := toJSON(fresh.Asked, len(fresh.Asked) == 0)
	if err != nil {
		return nil, err
	}
	err = s.db.tx(ctx, func(ctx context.Context, t tx) (err error) {
		if created, err = holder(ctx, t, op); err != nil || created != nil {
			return err
		}
		// Sent with the next statement.
		var limit int64
		if err := operationsPerDay.count(ctx, t, op.Owner, op.ID, 1, op.Created, &limit); err != nil {
			return err
		}
		n, err := t.exec(ctx, `INSERT INTO operations (id, owner, action, args, notes, state, cancelled,
				open_items, completed_items, idempotency_key, fingerprint, created_ms, request_id, key_id, steps, asked, search, trace, client, address, bytes, name)
			VALUES ($1, $2, $3, $4, $5, 'queued', 0, $6, 0, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) ON CONFLICT DO NOTHING`,
			op.ID, op.Owner, op.Action, op.Args, notes, len(op.Items),
			textOrNull(op.IdempotencyKey), op.Fingerprint, millis(op.Created), textOrNull(op.Origin.Request), textOrNull(op.Origin.Key), steps, asked, status.SearchText(fresh), textOrNull(op.Origin.Trace),
			textOrNull(op.Origin.Client), textOrNull(op.Origin.Address), fresh.InputBytes(), status.SortName(fresh))
		if err != nil {
			return err
		}
		if n == 0 {
			// Another transaction may have used the idempotency key in the meantime.
			if created, err = holder(ctx, t, op); err != nil {
				return err
			}
			if created == nil {
				return fmt.Errorf("operation %q: %w", op.ID, fs.ErrExist)
			}
			return operationsPerDay.count(ctx, t, op.Owner, op.ID, -1, op.Created, new(int64)) // nothing was created
		}
		created = fresh
		// The submitter's clock may be ahead, or may have been set back since.
		if err := insertItems(ctx, t, op, 0, min(millis(op.Created), millis(s.db.engine.now()))); err != nil {
			return err
		}
		return operationsPerDay.check(ctx, t, op.Owner, 1, op.Created, limit)
	})
	if err != nil {
		return nil, err
	}
	return created, nil
}

// holder returns the operation that holds the idempotency key of op, or nil.
func holder(ctx context.Context, t tx, op *status.Operation) (*status.Operation, error) {
	if op.IdempotencyKey == "" {
		return nil, nil
	}
	if err := t.later(ctx, nil, `UPDATE operations SET idempotency_key = NULL
		WHERE owner = $1 AND idempotency_key = $2 AND created_ms <= $3`,
		op.Owner, op.IdempotencyKey, millis(op.Created.Add(-idempotencyTTL))); err != nil {
		return nil, err
	}
	var id string
	err := t.row(ctx, `SELECT id FROM operations WHERE owner = $1 AND idempotency_key = $2`,
		op.Owner, op.IdempotencyKey).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return get(ctx, t, id)
}

// insertItems stores the items of op from the given one on, queued and due at the given
// time.
func insertItems(ctx context.Context, t tx, op *status.Operation, first int, due int64) error {
	const chunk = 100 // SQLite and PostgreSQL limit the number of placeholders
	for ; first < len(op.Items); first += chunk {
		items := op.Items[first:min(first+chunk, len(op.Items))]
		var args []any
		for i, it := range items {
			inputs, err := toJSON(it.Inputs, len(it.Inputs) == 0)
			if err != nil {
				return err
			}
			args = append(args, op.ID, first+i, it.Queue, op.Owner, millis(op.Created), "queued", 0, 0,
				due, 0.0, inputs)
			t.issue(status.Lane{Queue: it.Queue, Owner: op.Owner})
		}
		if err := t.later(ctx, nil, `INSERT INTO items (operation, idx, queue, owner, created_ms, state, attempt, token,
				due_ms, progress, inputs) VALUES `+values(len(items), len(args)/len(items)), args...); err != nil {
			return err
		}
	}
	return nil
}

const operationColumns = `id, owner, action, args, notes, state, cancelled, idempotency_key, fingerprint, created_ms, finished_ms, request_id, key_id, steps, asked, trace, client, address`

func scanOperation(row scanner) (*status.Operation, error) {
	var op status.Operation
	var notes, key, request, keyID, steps, asked, traced, client, address sql.NullString
	var created int64
	var finished sql.NullInt64
	if err := row.Scan(&op.ID, &op.Owner, &op.Action, &op.Args, &notes, &op.State, (*flag)(&op.Cancelled),
		&key, &op.Fingerprint, &created, &finished, &request, &keyID, &steps, &asked, &traced, &client, &address); err != nil {
		return nil, err
	}
	op.Origin = status.Origin{Request: request.String, Key: keyID.String, Trace: traced.String, Client: client.String, Address: address.String}
	op.IdempotencyKey, op.Created, op.Finished = key.String, timeOf(created), timeOrZero(finished)
	return &op, errors.Join(fromJSON(notes, &op.Notes), fromJSON(steps, &op.Steps), fromJSON(asked, &op.Asked))
}

const selectOperation = `SELECT ` + operationColumns + ` FROM operations WHERE id = $1`

// getOnly reads an operation without its items. lock is the locking clause of the
// query, or "".
func getOnly(ctx context.Context, t tx, id, lock string) (*status.Operation, error) {
	op, err := scanOperation(t.row(ctx, selectOperation+lock, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missing("operation", id)
	}
	return op, err
}

const itemColumns = `queue, inputs, results, warnings, state, attempt, restarts, suspicions, token, clean, progress, waiting_reason, waiting_ms, error, started_ms, finished_ms, attempts`

func scanItem(row scanner) (it status.Item, err error) {
	var inputs, results, warnings, reason, failure, attempts sql.NullString
	var since, started, finished sql.NullInt64
	if err := row.Scan(&it.Queue, &inputs, &results, &warnings, &it.State, &it.Attempt, &it.Restarts, &it.Suspicions, &it.Claims, &it.Clean, &it.Progress,
		&reason, &since, &failure, &started, &finished, &attempts); err != nil {
		return it, err
	}
	if reason.Valid {
		it.Waiting = &status.Waiting{Reason: reason.String, Since: timeOrZero(since)}
	}
	it.Started, it.Finished = timeOrZero(started), timeOrZero(finished)
	return it, errors.Join(fromJSON(inputs, &it.Inputs), fromJSON(results, &it.Results), fromJSON(warnings, &it.Warnings), fromJSON(failure, &it.Error), fromJSON(attempts, &it.Attempts))
}

const selectItems = `SELECT ` + itemColumns + ` FROM items WHERE operation = $1 ORDER BY idx`

// getItems reads the items of an operation into op, when the next synchronous statement
// or the commit is sent.
func getItems(ctx context.Context, t tx, id string, op *status.Operation) error {
	return t.later(ctx, func(row scanner) error {
		it, err := scanItem(row)
		op.Items = append(op.Items, it)
		return err
	}, selectItems, id)
}

// get reads an operation.
func get(ctx context.Context, t tx, id string) (*status.Operation, error) {
	op, err := getLater(ctx, t, id)
	if err == nil {
		err = t.flush(ctx)
	}
	if err == nil && op.ID == "" {
		err = missing("operation", id)
	}
	return op, err
}

// getLater reads an operation when the next synchronous statement or the commit is
// sent. If the operation does not exist, the ID stays empty.
func getLater(ctx context.Context, t tx, id string) (*status.Operation, error) {
	op := new(status.Operation)
	if err := t.later(ctx, func(row scanner) error {
		found, err := scanOperation(row)
		if err == nil {
			*op = *found
		}
		return err
	}, selectOperation, id); err != nil {
		return nil, err
	}
	return op, getItems(ctx, t, id, op)
}

// Get implements [status.Store].
func (s *Operations) Get(ctx context.Context, id string) (op *status.Operation, err error) {
	if op := s.db.cache.get(id); op != nil {
		return op, nil
	}
	err = s.db.view(ctx, func(ctx context.Context, t tx) error {
		op, err = getLater(ctx, t, id)
		return err
	})
	if err == nil && op.ID == "" {
		err = missing("operation", id)
	}
	if err != nil {
		return nil, err
	}
	s.db.cache.put(op)
	return op, nil
}

// List implements [status.Store].
func (s *Operations) List(ctx context.Context, q status.Query) iter.Seq2[*status.Operation, error] {
	return func(yield func(*status.Operation, error) bool) {
		left := q.Limit
		left = cmp.Or(max(left, 0), 50)
		created, id := int64(1)<<62, ""
		if q.Before != "" {
			id = q.Before
			err := s.db.one(ctx, func(row scanner) error { return row.Scan(&created) },
				`SELECT created_ms FROM operations WHERE id = $1 AND owner = $2`, id, q.Owner)
			if errors.Is(err, sql.ErrNoRows) {
				err = missing("operation", id)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
		for left > 0 {
			n := min(left, 50)
			ops, err := s.page(ctx, q, created, id, n)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, op := range ops {
				if !yield(op, nil) {
					return
				}
				created, id = millis(op.Created), op.ID
			}
			if len(ops) < n {
				return
			}
			left -= n
		}
	}
}

// inState returns the condition that an operation is in a state, and the arguments so
// far with its own appended. Open and finished operations have separate indexes, so the
// condition names the index's own predicate. created is the column that orders these
// indexes.
func inState(owner string, state status.State, args []any) (where, created string, _ []any) {
	switch {
	case state == "":
		return "", "created_ms", args
	case state.Final():
		where, created = "NOT NULL", "created_ms + 0"
	case owner != "":
		where, created = "NULL", "created_ms + 0"
	default: // all open operations
		where, created = "NULL", "created_ms"
	}
	args = append(args, string(state))
	return fmt.Sprintf(" AND state = $%d AND finished_ms IS %s", len(args), where), created, args
}

// page returns the n newest operations before the given one that q selects.
func (s *Operations) page(ctx context.Context, q status.Query, before int64, id string, n int) (ops []*status.Operation, err error) {
	where, args := "", []any{q.Owner, before, id, n}
	if q.IdempotencyKey != "" { // a separate text, so that the index is used
		where, args = " AND idempotency_key = $5", append(args, q.IdempotencyKey)
	}
	in, created, args := inState(q.Owner, q.State, args)
	where += in
	err = s.db.view(ctx, func(ctx context.Context, t tx) error {
		if err := t.each(ctx, func(row scanner) error {
			op, err := scanOperation(row)
			ops = append(ops, op)
			return err
		}, `SELECT `+operationColumns+` FROM operations
			WHERE owner = $1 AND (`+created+`, id) < ($2, $3)`+where+`
			ORDER BY `+created+` DESC, id DESC LIMIT $4`, args...); err != nil {
			return err
		}
		for _, op := range ops {
			if err := getItems(ctx, t, op.ID, op); err != nil {
				return err
			}
		}
		return nil
	})
	return ops, err
}

// An after is a row with an additional column before those that the caller scans.
type after struct {
	scanner
	first any
}

func (a after) Scan(dest ...any) error { return a.scanner.Scan(append([]any{a.first}, dest...)...) }

// permitted is the condition that the owner's limit allows a claim of an item: it
// counts the owner's other claims that are live after the time $6. Items of cancelled
// operations are always permitted.
const permitted = `(EXISTS (SELECT 1 FROM operations o WHERE o.id = items.operation AND o.cancelled <> 0)
	OR NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = items.owner AND a.max_parallel > 0 AND a.max_parallel <= (
		SELECT count(*) FROM items r WHERE r.owner = items.owner AND r.worker IS NOT NULL AND r.state = 'running' AND r.due_ms > $6
			AND NOT (r.operation = items.operation AND r.idx = items.idx))))`

// Claim implements [status.Store]. The limit is that of the account, see
// [Limits].
func (s *Operations) Claim(ctx context.Context, ref status.Ref, worker string, lease time.Duration) (*status.Claim, error) {
	// Lapsed claims are the exception.
	c, limited, err := s.claim(ctx, ref, worker, lease, status.Queued)
	if err == nil && c == nil {
		c, limited, err = s.claim(ctx, ref, worker, lease, status.Running)
	}
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, s.refused(ctx, ref, limited)
	}
	s.db.changed(ref.Operation, false)
	return c, nil
}

// claim claims an item in the given state. The claim is nil if the item cannot be
// claimed; limited reports whether the owner has a limit.
func (s *Operations) claim(ctx context.Context, ref status.Ref, worker string, lease time.Duration, from status.State) (c *status.Claim, limited bool, err error) {
	counter := "attempt"
	if from == status.Running {
		counter = "restarts"
	}
	err = s.db.soft(ctx, func(ctx context.Context, t tx) error {
		c, limited = &status.Claim{Ref: ref, Rescued: from == status.Running}, false
		// Only the first claim locks the row of the operation, because items of one
		// operation start in parallel.
		if lock := t.locking(); lock != "" {
			if err := t.later(ctx, nil, `SELECT id FROM operations WHERE id = $1 AND state = 'queued'`+lock, ref.Operation); err != nil {
				return err
			}
		}
		// Claims of an owner with a limit are serialised.
		if err := t.later(ctx, func(scanner) error {
			limited = true
			return nil
		}, `SELECT id FROM accounts WHERE id = (SELECT owner FROM operations WHERE id = $1) AND max_parallel > 0`+t.locking(), ref.Operation); err != nil {
			return err
		}
		now := s.db.engine.now()
		if err := t.later(ctx, func(row scanner) (err error) {
			c.Item, err = scanItem(row)
			c.Token = c.Item.Claims
			return err
		}, `UPDATE items SET state = 'running', `+counter+` = `+counter+` + 1, token = token + 1,
				worker = $2, due_ms = $3, started_ms = $1
			WHERE state = '`+string(from)+`' AND due_ms <= $1 AND operation = $4 AND idx = $5 AND `+permitted+` RETURNING `+itemColumns,
			millis(now), worker, millis(now.Add(lease)), ref.Operation, ref.Index, millis(s.db.engine.alive())); err != nil {
			return err
		}
		if err := t.later(ctx, nil, `UPDATE operations SET state = 'running' WHERE id = $1 AND state = 'queued'
			AND EXISTS (SELECT 1 FROM items WHERE operation = $1 AND idx = $2 AND state = 'running')`,
			ref.Operation, ref.Index); err != nil {
			return err
		}
		return t.later(ctx, func(row scanner) (err error) {
			c.Op, err = scanOperation(row)
			return err
		}, selectOperation, ref.Operation)
	})
	if err != nil || c.Op == nil || c.Token == 0 {
		return nil, limited, err
	}
	return c, limited, nil
}

// refused returns why an item could not be claimed; limited reports whether its owner
// has a limit.
func (s *Operations) refused(ctx context.Context, ref status.Ref, limited bool) error {
	found, ready := false, false
	if err := s.db.each(ctx, func(row scanner) error {
		found = true
		return row.Scan((*flag)(&ready))
	}, `SELECT CAST(CASE WHEN state IN ('queued', 'running') AND due_ms <= $1 THEN 1 ELSE 0 END AS bigint) FROM items WHERE operation = $2 AND idx = $3`,
		millis(s.db.engine.now()), ref.Operation, ref.Index); err != nil {
		return err
	}
	switch {
	case !found:
		return missing("operation", ref.Operation)
	case limited && ready:
		return status.ErrParallel
	}
	return status.ErrLost
}

// Heartbeat implements [status.Store].
func (s *Operations) Heartbeat(ctx context.Context, worker string, lease time.Duration, progress map[status.Ref]float64) (stop []status.Ref, err error) {
	var held map[status.Ref]bool
	// One round trip: a process that freezes between two would keep items locked that
	// other processes should take over.
	err = storeError(ctx, s.db.engine.heartbeat(ctx, func(ctx context.Context, t tx) error {
		held = make(map[status.Ref]bool)
		now, alive := s.db.engine.now(), s.db.engine.alive()
		if err := t.later(ctx, nil, `UPDATE items SET due_ms = $2
			WHERE worker = $3 AND state = 'running' AND due_ms > $1`,
			millis(alive), millis(now.Add(lease)), worker); err != nil {
			return err
		}
		for ref, p := range progress {
			if p <= 0 {
				continue
			}
			if err := t.later(ctx, nil, `UPDATE items SET progress = $1
				WHERE operation = $2 AND idx = $3 AND worker = $4 AND state = 'running' AND due_ms > $5 AND progress < $1`,
				p, ref.Operation, ref.Index, worker, millis(now)); err != nil {
				return err
			}
		}
		return t.later(ctx, func(row scanner) error {
			var ref status.Ref
			var cancelled bool
			if err := row.Scan(&ref.Operation, &ref.Index, (*flag)(&cancelled)); err != nil {
				return err
			}
			held[ref] = !cancelled
			return nil
		}, `SELECT i.operation, i.idx, o.cancelled
			FROM items i JOIN operations o ON o.id = i.operation
			WHERE i.worker = $2 AND i.state = 'running' AND i.due_ms > $1`, millis(now), worker)
	}))
	if err != nil {
		return nil, err
	}
	for ref := range progress {
		if !held[ref] {
			stop = append(stop, ref)
		}
	}
	return stop, nil
}

// Finish implements [status.Store].
func (s *Operations) Finish(ctx context.Context, c *status.Claim, o status.Outcome) (op *status.Operation, err error) {
	enqueued := false
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		enqueued = false
		now := s.db.engine.now()
		op = nil
		if err := t.later(ctx, func(row scanner) (err error) {
			op, err = scanOperation(row)
			return err
		}, selectOperation+t.locking(), c.Operation); err != nil {
			return err
		}
		listeners := 0
		it, err := scanItem(after{t.row(ctx, `SELECT `+listening+`, `+itemColumns+` FROM items
			WHERE operation = $2 AND idx = $3 AND token = $4 AND state = 'running' AND due_ms > $1`,
			millis(s.db.engine.alive()), c.Operation, c.Index, c.Token), &listeners})
		switch {
		case errors.Is(err, sql.ErrNoRows), err == nil && op == nil:
			return status.ErrLost
		case err != nil:
			return err
		}
		it.Progress = max(it.Progress, c.Item.Progress)
		it, due := o.Apply(it, op.Cancelled, now)
		// The item is not locked, because a process that loses its connection would
		// keep the lock. So another process may have claimed it since it was read.
		if err := putItem(ctx, t, c.Ref, status.Running, c.Token, it, due); err != nil {
			return err
		}
		if !it.State.Final() {
			t.issue(status.Lane{Queue: it.Queue, Owner: op.Owner})
			return nil
		}
		t.issueNext(status.Lane{Queue: it.Queue, Owner: op.Owner})
		if err := count(ctx, t, op, c.Index, it); err != nil {
			return err
		}
		if len(op.Steps) > 0 {
			enqueued, err = finishStep(ctx, t, c, op, it, o.Next, listeners > 0, now)
			return err
		}
		completed := 0
		if it.State == status.Completed {
			completed = 1
		}
		if err := settle(ctx, t, op, 1, completed, now); err != nil {
			return err
		}
		if err := t.later(ctx, func(row scanner) error {
			it, err := scanItem(row)
			op.Items = append(op.Items, it)
			return err
		}, selectFinalItems, c.Operation); err != nil || listeners == 0 {
			return err
		}
		// Its first statement is synchronous, so op is up to date.
		enqueued, err = enqueueDeliveries(ctx, t, op, []status.Item{it}, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	if enqueued {
		s.db.outbox.notify()
	}
	s.db.cache.put(op)
	s.db.changed(c.Operation, false)
	return op, nil
}

// stepMargin is how long before its start an item of a later step is due, so that other
// processes, whose clocks may be behind a little, can claim it at once.
const stepMargin = time.Second

// finishStep is the rest of Finish for an item of an operation of several steps, whose
// row is locked. It starts the next step if the item was the last of its step.
func finishStep(ctx context.Context, t tx, c *status.Claim, op *status.Operation, it status.Item, next func(*status.Operation) []status.Item, listening bool, now time.Time) (enqueued bool, err error) {
	if err := getItems(ctx, t, op.ID, op); err != nil {
		return false, err
	}
	if err := t.flush(ctx); err != nil {
		return false, err
	}
	completed := 0
	if it.State == status.Completed && op.StepOf(c.Index) == len(op.Steps)-1 {
		completed = 1
	}
	first := len(op.Items)
	ended, open := []int{c.Index}, 0
	if fresh := op.Advance(next, now); len(fresh) > 0 {
		steps, err := toJSON(op.Steps, false)
		if err != nil {
			return false, err
		}
		if err := t.later(ctx, nil, `UPDATE operations SET steps = $1 WHERE id = $2`, steps, op.ID); err != nil {
			return false, err
		}
		if err := insertItems(ctx, t, op, first, millis(now.Add(-stepMargin))); err != nil {
			return false, err
		}
		for i, it := range fresh {
			if !it.State.Final() {
				open++
				continue
			}
			if err := putItem(ctx, t, status.Ref{Operation: op.ID, Index: first + i}, status.Queued, 0, it, time.Time{}); err != nil {
				return false, err
			}
			if err := count(ctx, t, op, first+i, it); err != nil {
				return false, err
			}
			ended = append(ended, first+i)
		}
	}
	if err := settle(ctx, t, op, 1-open, completed, now); err != nil {
		return false, err
	}
	if err := t.flush(ctx); err != nil {
		return false, err
	}
	if op.State.Final() {
		if err := expireIntermediate(ctx, t, op, now); err != nil {
			return false, err
		}
	}
	if listening {
		if enqueued, err = enqueueDeliveries(ctx, t, op, shown(op, ended), now); err != nil {
			return false, err
		}
	}
	if !op.State.Final() && first == len(op.Items) {
		op.Items = nil // no step has started
	}
	return enqueued, nil
}

// shown returns those of the ended items of an operation of several steps that its owner
// sees. If the operation is final, they include items of a step that none follows.
func shown(op *status.Operation, ended []int) (list []status.Item) {
	if step := op.Step(); op.State.Final() && step < len(op.Steps)-1 {
		items, first := op.ItemsOf(step)
		for i, it := range items {
			if it.State == status.Completed && !slices.Contains(ended, first+i) {
				ended = append(ended, first+i)
			}
		}
	}
	for _, i := range ended {
		if it, ok := op.ShownItem(i); ok && it.State.Final() {
			list = append(list, it)
		}
	}
	return list
}

// expireIntermediate makes the results of all steps but the last expire, unless they are
// to be kept, in the transaction that makes the operation final. The worker deletes them
// at once; if it dies before, the next sweep does. It changes nothing if files are in
// another store.
func expireIntermediate(ctx context.Context, t tx, op *status.Operation, now time.Time) error {
	var keys []any
	for i, it := range op.Items {
		if step := op.StepOf(i); step == len(op.Steps)-1 || op.Steps[step].Keep {
			continue
		}
		for _, f := range it.Results {
			keys = append(keys, f.Key)
		}
	}
	for chunk := range slices.Chunk(keys, 100) {
		args := append([]any{millis(now), op.ID}, chunk...)
		marks := make([]string, len(chunk))
		for i := range chunk {
			marks[i] = fmt.Sprintf("$%d", i+3)
		}
		if err := t.later(ctx, nil, `UPDATE files SET expires_ms = $1 WHERE task = $2 AND state = 'ready' AND file_key IN (`+strings.Join(marks, ", ")+`)`, args...); err != nil {
			return err
		}
	}
	return nil
}

// selectFinalItems selects the items of an operation if the operation is final.
const selectFinalItems = `SELECT ` + itemColumns + ` FROM items WHERE operation = $1
	AND EXISTS (SELECT 1 FROM operations WHERE id = $1 AND finished_ms IS NOT NULL) ORDER BY idx`

// putItem stores an item that is no longer running. The transaction fails with
// status.ErrLost if the item is not in state was, or was claimed again after the claim
// with the given token (0: any claim).
func putItem(ctx context.Context, t tx, ref status.Ref, was status.State, token int, it status.Item, due time.Time) error {
	results, err := toJSON(it.Results, len(it.Results) == 0)
	if err != nil {
		return err
	}
	warnings, err := toJSON(it.Warnings, len(it.Warnings) == 0)
	if err != nil {
		return err
	}
	failure, err := toJSON(it.Error, it.Error == nil)
	if err != nil {
		return err
	}
	attempts, err := toJSON(it.Attempts, len(it.Attempts) == 0)
	if err != nil {
		return err
	}
	dueMS := int64(0)
	if !due.IsZero() {
		dueMS = millis(due)
	}
	var reason sql.NullString
	var since sql.NullInt64
	if w := it.Waiting; w != nil {
		reason, since = sql.NullString{String: w.Reason, Valid: true}, millisOrNull(w.Since)
	}
	return t.change(ctx, status.ErrLost, `UPDATE items SET state = $1, attempt = $2, progress = $3, results = $4, error = $5,
			worker = NULL, ticket = NULL, due_ms = $6, finished_ms = $7, suspicions = $12, waiting_reason = $13, waiting_ms = $14, clean = $15, warnings = $16, attempts = $17
		WHERE operation = $8 AND idx = $9 AND state = $10 AND ($11 = 0 OR token = $11)`,
		string(it.State), it.Attempt, it.Progress, results, failure, dueMS, millisOrNull(it.Finished), ref.Operation, ref.Index, string(was), token,
		it.Suspicions, reason, since, it.Clean, warnings, attempts)
}

// settle counts items that have become final and updates the operation's state like
// status.Rollup. op is updated when the next synchronous statement or the commit is
// sent.
func settle(ctx context.Context, t tx, op *status.Operation, ended, completed int, now time.Time) error {
	return t.later(ctx, func(row scanner) error {
		var finished sql.NullInt64
		err := row.Scan(&op.State, &finished)
		if op.Finished = timeOrZero(finished); finished.Valid {
			op.Args = nil
		}
		return err
	}, `UPDATE operations SET
			open_items = open_items - $1,
			completed_items = completed_items + $2,
			state = CASE WHEN open_items > $1 THEN 'running'
				WHEN completed_items + $2 > 0 AND cancelled = 0 THEN 'completed' ELSE 'failed' END,
			finished_ms = CASE WHEN open_items > $1 THEN NULL ELSE CAST($3 AS bigint) END,
			args = CASE WHEN open_items > $1 THEN args ELSE NULL END,
			condition = CASE WHEN open_items > $1 THEN NULL
				WHEN completed_items + $2 > 0 AND cancelled = 0 THEN CASE
					WHEN EXISTS (SELECT 1 FROM items WHERE operation = $4 AND state = 'failed') THEN 'partial'
					WHEN EXISTS (SELECT 1 FROM items WHERE operation = $4 AND warnings IS NOT NULL) THEN 'warnings'
					ELSE 'completed' END
				WHEN cancelled <> 0 THEN 'cancelled' ELSE 'failed' END
		WHERE id = $4 RETURNING state, finished_ms`, ended, completed, millis(now), op.ID)
}

// Cancel implements [status.Store].
func (s *Operations) Cancel(ctx context.Context, owner, id string) (op *status.Operation, err error) {
	enqueued := false
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		enqueued = false
		if op, err = getOnly(ctx, t, id, t.locking()); err != nil {
			return err
		}
		if op.Owner != owner {
			return missing("operation", id)
		}
		// No process starts an item from here on.
		if err := t.later(ctx, nil, `SELECT idx FROM items WHERE operation = $1 AND state = 'queued' ORDER BY idx`+t.locking(), id); err != nil {
			return err
		}
		if err := getItems(ctx, t, id, op); err != nil {
			return err
		}
		if err := t.flush(ctx); err != nil || op.State.Final() {
			return err
		}
		if err := t.later(ctx, nil, `UPDATE operations SET cancelled = 1 WHERE id = $1`, id); err != nil {
			return err
		}
		now := s.db.engine.now()
		var ended []int
		for i, it := range op.Items {
			if it.State != status.Queued {
				continue
			}
			t.issue(status.Lane{Queue: it.Queue, Owner: op.Owner})
			it, due := status.Outcome{}.Apply(it, true, now)
			if err := putItem(ctx, t, status.Ref{Operation: id, Index: i}, status.Queued, 0, it, due); err != nil {
				return err
			}
			ended = append(ended, i)
		}
		if len(ended) > 0 {
			if err := settle(ctx, t, op, len(ended), 0, now); err != nil {
				return err
			}
		}
		if op, err = get(ctx, t, id); err != nil || len(ended) == 0 {
			return err
		}
		if len(op.Steps) > 0 && op.State.Final() {
			if err := expireIntermediate(ctx, t, op, now); err != nil {
				return err
			}
		}
		enqueued, err = enqueueDeliveries(ctx, t, op, shown(op, ended), now)
		return err
	})
	if err != nil {
		return nil, err
	}
	if enqueued {
		s.db.outbox.notify()
	}
	s.db.changed(id, true)
	return op, nil
}

// Pending implements [status.Store].
func (s *Operations) Pending(ctx context.Context, q status.PendingQuery) iter.Seq2[status.PendingItem, error] {
	return func(yield func(status.PendingItem, error) bool) {
		last := pendingRow{created: -1 << 62}
		for n := 40; ; n = min(2*n, 640) {
			page, err := s.pending(ctx, q, last, n)
			if err != nil {
				yield(status.PendingItem{}, err)
				return
			}
			for _, p := range page {
				if !yield(p.PendingItem, nil) {
					return
				}
			}
			if len(page) < n {
				return
			}
			last = page[n-1]
		}
	}
}

type pendingRow struct {
	status.PendingItem
	created int64
}

// pending returns the next n items after the given one.
func (s *Operations) pending(ctx context.Context, q status.PendingQuery, after pendingRow, n int) (page []pendingRow, err error) {
	args := []any{millis(s.db.engine.now()), after.created, after.Operation, after.Index, n}
	// Items of one owner in one queue have an index. Otherwise unfinished operations
	// are read in order; CROSS JOIN keeps SQLite from doing it the other way round.
	text := `SELECT i.operation, i.idx, i.queue, i.owner, i.created_ms, i.due_ms
		FROM items i
		WHERE i.finished_ms IS NULL AND i.queue = $6 AND i.owner = $7
			AND (i.created_ms, i.operation, i.idx) > ($2, $3, $4)
			AND i.state IN ('queued', 'running') AND i.due_ms <= $1
		ORDER BY i.created_ms, i.operation, i.idx LIMIT $5`
	if q.Queue == "" || q.Owner == "" {
		text = `SELECT i.operation, i.idx, i.queue, i.owner, i.created_ms, i.due_ms
			FROM operations o CROSS JOIN items i
			WHERE o.finished_ms IS NULL AND i.operation = o.id
				AND ($6 = '' OR i.queue = $6) AND ($7 = '' OR o.owner = $7)
				AND (o.created_ms, o.id) >= ($2, $3) AND (o.created_ms > $2 OR o.id > $3 OR i.idx > $4)
				AND i.state IN ('queued', 'running') AND i.due_ms <= $1
			ORDER BY o.created_ms, o.id, i.idx LIMIT $5`
	}
	err = s.db.each(ctx, func(row scanner) error {
		var p pendingRow
		var since int64
		if err := row.Scan(&p.Operation, &p.Index, &p.Queue, &p.Owner, &p.created, &since); err != nil {
			return err
		}
		p.Created, p.Since = timeOf(p.created), timeOf(since)
		page = append(page, p)
		return nil
	}, text, append(args, q.Queue, q.Owner)...)
	return page, err
}

// Load implements [status.Store].
func (s *Operations) Load(ctx context.Context) (loads []status.Load, err error) {
	waiting := make(map[status.Lane]map[string]int)
	if err := s.db.each(ctx, func(row scanner) error {
		var l status.Lane
		var reason string
		var n int
		if err := row.Scan(&l.Queue, &l.Owner, &reason, &n); err != nil {
			return err
		}
		if waiting[l] == nil {
			waiting[l] = make(map[string]int)
		}
		waiting[l][reason] = n
		return nil
	}, `SELECT queue, owner, waiting_reason, count(*) FROM items
		WHERE waiting_reason IS NOT NULL AND state = 'queued' GROUP BY queue, owner, waiting_reason`); err != nil {
		return nil, err
	}
	err = s.db.each(ctx, func(row scanner) error {
		var l status.Load
		var oldest sql.NullInt64
		if err := row.Scan(&l.Queue, &l.Owner, &l.Queued, &l.Running, &oldest); err != nil {
			return err
		}
		l.Oldest, l.Waiting = timeOrZero(oldest), waiting[status.Lane{Queue: l.Queue, Owner: l.Owner}]
		loads = append(loads, l)
		return nil
	}, `SELECT queue, owner,
			sum(CASE WHEN state = 'queued' THEN 1 ELSE 0 END),
			sum(CASE WHEN state = 'running' THEN 1 ELSE 0 END),
			min(CASE WHEN state = 'queued' THEN created_ms END)
		FROM items WHERE finished_ms IS NULL GROUP BY queue, owner`)
	return loads, err
}

// Recover implements [status.Store].
func (s *Operations) Recover(ctx context.Context, worker string) (n int, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		all, err := t.exec(ctx, `UPDATE items SET state = 'queued', worker = NULL, due_ms = $1,
				restarts = restarts + 1, attempt = CASE WHEN attempt > 0 THEN attempt - 1 ELSE 0 END
			WHERE worker IS NOT NULL AND worker <> $2`, millis(s.db.engine.now()), worker)
		n = int(all)
		if err != nil {
			return err
		}
		// No item waits for so long: the host's clock was ahead when this was written.
		now := s.db.engine.now()
		_, err = t.exec(ctx, `UPDATE items SET due_ms = $1 WHERE finished_ms IS NULL AND due_ms > $2
			AND operation IN (SELECT id FROM operations WHERE finished_ms IS NULL)`, millis(now), millis(now.Add(time.Hour)))
		return err
	})
	return n, err
}

// DeleteFinished implements [status.Store]. It also empties the write-ahead log.
func (s *Operations) DeleteFinished(ctx context.Context, t time.Time) (n int, err error) {
	const chunk = 100 // so that other writers do not wait for long
	for {
		var some int64
		err := s.db.tx(ctx, func(ctx context.Context, tx tx) error {
			some, err = tx.exec(ctx, `DELETE FROM operations WHERE id IN (
				SELECT id FROM operations WHERE finished_ms IS NOT NULL AND finished_ms < $1 LIMIT $2)`,
				millis(t), chunk)
			return err
		})
		n += int(some)
		if err != nil {
			return n, err
		}
		if n > 0 {
			s.db.cache.clear()
		}
		if some < chunk {
			break
		}
	}
	if err := s.db.tx(ctx, func(ctx context.Context, tx tx) error {
		oldest := dayOf(s.db.engine.now()) - usageKept
		if _, err := tx.exec(ctx, `DELETE FROM usage WHERE day < $1`, oldest); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `DELETE FROM usage_groups WHERE day < $1`, oldest); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `DELETE FROM days WHERE day < $1`, oldest)
		return err
	}); err != nil {
		return n, err
	}
	return n, s.db.engine.tidy(ctx)
}
