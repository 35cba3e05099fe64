package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

// Webhooks is a [webhook.Store]. [Operations] writes the deliveries of events.
type Webhooks struct{ db *DB }

// Webhooks returns the webhook endpoints of the database and their deliveries.
func (db *DB) Webhooks() *Webhooks { return &Webhooks{db} }

// Wake implements [webhook.Store].
func (s *Webhooks) Wake() <-chan struct{} { return s.db.outbox.wake }

// Now implements [webhook.Store].
func (s *Webhooks) Now() time.Time { return s.db.engine.now() }

const webhookColumns = `id, account, url, description, events, secret, previous, previous_until_ms, created_ms, disabled_ms, reason, failing_ms`

func scanWebhook(row scanner) (*webhook.StoredEndpoint, error) {
	var w webhook.StoredEndpoint
	var events string
	var created int64
	var until, disabled, failing sql.NullInt64
	err := row.Scan(&w.ID, &w.Account, &w.URL, &w.Description, &events, &w.Secret, &w.Previous, &until, &created, &disabled, &w.Reason, &failing)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("webhook: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	w.Events = strings.Fields(events)
	w.PreviousSecretUntil, w.Created = timeOrZero(until), timeOf(created)
	w.Disabled, w.Failing = timeOrZero(disabled), timeOrZero(failing)
	return &w, nil
}

// Create implements [webhook.Store].
func (s *Webhooks) Create(ctx context.Context, w *webhook.StoredEndpoint, limit int) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		var n int
		if err := t.row(ctx, `SELECT count(*) FROM webhook_endpoints WHERE account = $1`, w.Account).Scan(&n); err != nil {
			return err
		}
		if n >= limit {
			return fmt.Errorf("webhooks: %w than %d", webhook.ErrLimit, limit)
		}
		_, err := t.exec(ctx, `INSERT INTO webhook_endpoints (id, account, url, description, events, secret, created_ms, reason)
			VALUES ($1, $2, $3, $4, $5, $6, $7, '')`,
			w.ID, w.Account, w.URL, w.Description, strings.Join(w.Events, " "), w.Secret, millis(w.Created))
		return err
	})
}

// List implements [webhook.Store].
func (s *Webhooks) List(ctx context.Context, account string) (list []*webhook.StoredEndpoint, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		w, err := scanWebhook(row)
		list = append(list, w)
		return err
	}, `SELECT `+webhookColumns+` FROM webhook_endpoints WHERE account = $1 ORDER BY created_ms, id`, account)
	return list, err
}

// Get implements [webhook.Store].
func (s *Webhooks) Get(ctx context.Context, account, id string) (w *webhook.StoredEndpoint, err error) {
	err = s.db.one(ctx, func(row scanner) (err error) {
		w, err = scanWebhook(row)
		return err
	}, `SELECT `+webhookColumns+` FROM webhook_endpoints WHERE id = $1 AND account = $2`, id, account)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("webhook", id)
	}
	return w, err
}

// Update implements [webhook.Store].
func (s *Webhooks) Update(ctx context.Context, account, id string, change func(*webhook.StoredEndpoint) error) (w *webhook.StoredEndpoint, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if w, err = scanWebhook(t.row(ctx, `SELECT `+webhookColumns+` FROM webhook_endpoints WHERE id = $1 AND account = $2`+t.locking(), id, account)); err != nil {
			return err
		}
		was := !w.Disabled.IsZero()
		if err := change(w); err != nil {
			return err
		}
		if is := !w.Disabled.IsZero(); was && !is {
			w.Failing, w.Reason = time.Time{}, "" // failed_ms has no effect on its own
		}
		var previous any // a nil []byte would be an empty one
		if w.Previous != nil {
			previous = w.Previous
		}
		_, err := t.exec(ctx, `UPDATE webhook_endpoints SET url = $2, description = $3, events = $4, secret = $5, previous = $6,
				previous_until_ms = $7, disabled_ms = $8, reason = $9, failing_ms = $10 WHERE id = $1`,
			id, w.URL, w.Description, strings.Join(w.Events, " "), w.Secret, previous,
			millisOrNull(w.PreviousSecretUntil), millisOrNull(w.Disabled), w.Reason, millisOrNull(w.Failing))
		return err
	})
	if err != nil {
		return nil, err
	}
	s.db.outbox.notify()
	return w, nil
}

// Delete implements [webhook.Store].
func (s *Webhooks) Delete(ctx context.Context, account, id string) error {
	err := s.db.tx(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `DELETE FROM webhook_endpoints WHERE id = $1 AND account = $2`, id, account)
		if err == nil && n == 0 {
			err = missing("webhook", id)
		}
		return err
	})
	if err != nil {
		return err
	}
	// Deliveries that a crash leaves behind are invisible, and Claim or Sweep removes
	// them later.
	_, err = s.clear(ctx, `endpoint = $2`, id)
	return err
}

// clear removes the deliveries that satisfy a condition, whose arguments start at $2,
// and returns their number. It does so in batches, so that other writers wait only for
// one.
func (s *Webhooks) clear(ctx context.Context, where string, args ...any) (n int, err error) {
	args = append([]any{clearing}, args...)
	for some := int64(clearing); some == clearing; n += int(some) {
		if err := s.db.tx(ctx, func(ctx context.Context, t tx) (err error) {
			some, err = t.exec(ctx, `DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries WHERE `+where+` LIMIT $1)`, args...)
			return err
		}); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Add implements [webhook.Store].
func (s *Webhooks) Add(ctx context.Context, account, endpoint, kind string, body func(id string) []byte) (d *webhook.Delivery, err error) {
	d = &webhook.Delivery{ID: newDeliveryID(), Endpoint: endpoint, Account: account, Type: kind, State: webhook.Pending}
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if _, err := scanWebhook(t.row(ctx, `SELECT `+webhookColumns+` FROM webhook_endpoints WHERE id = $1 AND account = $2`, endpoint, account)); err != nil {
			return err
		}
		now := millis(s.db.engine.now())
		d.Created, d.Next, d.Payload = timeOf(now), timeOf(now), body(d.ID)
		_, err := t.exec(ctx, `INSERT INTO webhook_deliveries (`+deliveryColumns+`, body) VALUES `+values(1, deliveryValues+1),
			d.ID, endpoint, account, kind, "", now, webhook.Pending, 0, 0, 0, 0, 1, now, sql.NullString{}, sql.NullString{}, d.Payload)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.db.outbox.notify()
	return d, nil
}

const deliveryList = `d.id, d.endpoint, d.account, d.type, d.operation, d.created_ms, d.state, d.attempts, d.due_ms, d.finished_ms`

func scanDelivery(row scanner, more ...any) (*webhook.Delivery, error) {
	var d webhook.Delivery
	var created, due int64
	var finished sql.NullInt64
	err := row.Scan(append([]any{&d.ID, &d.Endpoint, &d.Account, &d.Type, &d.Operation, &created, &d.State, &d.Attempts, &due, &finished}, more...)...)
	d.Created, d.Finished = timeOf(created), timeOrZero(finished)
	if d.Finished.IsZero() {
		d.Next = timeOf(due)
	}
	return &d, err
}

// ofEndpoint is the condition that the endpoint of a delivery still exists.
const ofEndpoint = `EXISTS (SELECT 1 FROM webhook_endpoints w WHERE w.id = d.endpoint)`

// Deliveries implements [webhook.Store].
func (s *Webhooks) Deliveries(ctx context.Context, account string, q webhook.Query) (list []*webhook.Delivery, err error) {
	q.Limit = cmp.Or(max(q.Limit, 0), 50)
	created, id := int64(1)<<62, ""
	if q.Before != "" {
		id = q.Before
		err := s.db.one(ctx, func(row scanner) error { return row.Scan(&created) },
			`SELECT created_ms FROM webhook_deliveries WHERE id = $1 AND account = $2`, id, account)
		if errors.Is(err, sql.ErrNoRows) {
			err = missing("delivery", id)
		}
		if err != nil {
			return nil, err
		}
	}
	// Deliveries are found by their endpoints, of which an account has few. Deliveries
	// of deleted endpoints are not listed.
	err = s.db.view(ctx, func(ctx context.Context, t tx) error {
		endpoints, err := endpointsOf(ctx, t, account, q.Endpoint)
		if err != nil {
			return err
		}
		for _, endpoint := range endpoints {
			where, args := "", []any{endpoint, created, id, q.Limit}
			if q.State != "" { // a separate text, so that the index is used
				where, args = " AND d.state = $5", append(args, q.State)
			}
			if err := t.each(ctx, func(row scanner) error {
				d, err := scanDelivery(row)
				list = append(list, d)
				return err
			}, `SELECT `+deliveryList+` FROM webhook_deliveries d
				WHERE d.endpoint = $1 AND (d.created_ms, d.id) < ($2, $3)`+where+`
				ORDER BY d.created_ms DESC, d.id DESC LIMIT $4`, args...); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(list, func(a, b *webhook.Delivery) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	})
	return list[:min(len(list), q.Limit)], err
}

// endpointsOf returns the IDs of the endpoints of an account, or only the given ID if
// it is among them.
func endpointsOf(ctx context.Context, t tx, account, id string) (ids []string, err error) {
	where, args := "", []any{account}
	if id != "" {
		where, args = " AND id = $2", append(args, id)
	}
	err = t.each(ctx, func(row scanner) error {
		var id string
		err := row.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM webhook_endpoints WHERE account = $1`+where, args...)
	return ids, err
}

// Delivery implements [webhook.Store].
func (s *Webhooks) Delivery(ctx context.Context, account, id string) (d *webhook.Delivery, attempts []webhook.Attempt, err error) {
	err = s.db.view(ctx, func(ctx context.Context, t tx) error {
		d, err = getDelivery(ctx, t, account, id, "")
		if err != nil {
			return err
		}
		return t.each(ctx, func(row scanner) error {
			var a webhook.Attempt
			var at, took int64
			err := row.Scan(&a.N, &at, &took, &a.URL, &a.Status, &a.Response, &a.Error, (*flag)(&a.Manual))
			a.At, a.Took = timeOf(at), time.Duration(took)*time.Millisecond
			attempts = append(attempts, a)
			return err
		}, `SELECT n, at_ms, took_ms, url, status, response, error, manual FROM webhook_attempts WHERE delivery = $1 ORDER BY n`, id)
	})
	return d, attempts, err
}

func getDelivery(ctx context.Context, t tx, account, id, lock string) (*webhook.Delivery, error) {
	var body []byte
	d, err := scanDelivery(t.row(ctx, `SELECT `+deliveryList+`, d.body FROM webhook_deliveries d
		WHERE d.id = $1 AND d.account = $2 AND `+ofEndpoint+lock, id, account), &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missing("delivery", id)
	}
	if err != nil {
		return nil, err
	}
	d.Payload = body
	return d, nil
}

// Replay implements [webhook.Store].
func (s *Webhooks) Replay(ctx context.Context, account, id string) (d *webhook.Delivery, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if d, err = getDelivery(ctx, t, account, id, t.locking()); err != nil {
			return err
		}
		now := millis(s.db.engine.now())
		if _, err := t.exec(ctx, `UPDATE webhook_deliveries SET resume_ms = CASE
					WHEN finished_ms IS NOT NULL THEN NULL
					WHEN manual = 1 THEN resume_ms ELSE due_ms END,
				manual = 1, state = $3, finished_ms = NULL, due_ms = $2, claimed = 0
			WHERE id = $1 AND NOT (claimed = 1 AND due_ms > $2)`, id, now, webhook.Pending); err != nil {
			return err
		}
		d, err = getDelivery(ctx, t, account, id, "")
		return err
	})
	if err != nil {
		return nil, err
	}
	s.db.outbox.notify()
	return d, nil
}

// resting is the condition that the account of an endpoint w is disabled. Nothing is
// sent for it then, and pending deliveries do not change, even when they are due.
const resting = `EXISTS (SELECT 1 FROM accounts a WHERE a.id = w.account AND a.disabled_ms IS NOT NULL)`

// pendingOf defines e, the endpoints with pending deliveries. It does one index lookup
// for each endpoint, however many deliveries there are.
const pendingOf = `WITH RECURSIVE e(id) AS (
	SELECT min(endpoint) FROM webhook_deliveries WHERE finished_ms IS NULL
	UNION ALL
	SELECT (SELECT min(d.endpoint) FROM webhook_deliveries d WHERE d.finished_ms IS NULL AND d.endpoint > e.id) FROM e WHERE e.id IS NOT NULL)`

// firstDue is when the first pending delivery of an endpoint e is due.
const firstDue = `(SELECT min(d.due_ms) FROM webhook_deliveries d WHERE d.finished_ms IS NULL AND d.endpoint = e.id)`

// Due implements [webhook.Store].
func (s *Webhooks) Due(ctx context.Context) (due []webhook.DueEndpoint, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		var d webhook.DueEndpoint
		var account sql.NullString
		var at int64
		var failing, disabled sql.NullInt64
		err := row.Scan(&d.ID, &account, &at, &failing, &disabled)
		d.Account, d.At, d.Failing = account.String, timeOf(at), failing.Valid
		if !account.Valid || disabled.Valid {
			d.At = time.Time{} // there are deliveries to remove
		}
		due = append(due, d)
		return err
	}, pendingOf+` SELECT e.id, w.account, `+firstDue+`, w.failing_ms, w.disabled_ms
		FROM e LEFT JOIN webhook_endpoints w ON w.id = e.id WHERE e.id IS NOT NULL AND NOT `+resting)
	return due, err
}

// clearing is the number of deliveries that one transaction removes.
const clearing = 200

// Claim implements [webhook.Store].
func (s *Webhooks) Claim(ctx context.Context, endpoint string, n int, lease time.Duration) (out []*webhook.ClaimedDelivery, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		out = nil
		now := s.db.engine.now()
		var rests bool
		w, err := scanWebhook(after{t.row(ctx, `SELECT CASE WHEN `+resting+` THEN 1 ELSE 0 END, `+webhookColumns+`
			FROM webhook_endpoints w WHERE id = $1`, endpoint), (*flag)(&rests)})
		if errors.Is(err, fs.ErrNotExist) {
			_, err := t.exec(ctx, `DELETE FROM webhook_deliveries WHERE id IN (
				SELECT id FROM webhook_deliveries WHERE endpoint = $1 AND finished_ms IS NULL LIMIT $2)`, endpoint, clearing)
			return err
		}
		if err != nil || rests {
			return err
		}
		skip := ""
		if s.db.pg != nil {
			skip = " FOR NO KEY UPDATE SKIP LOCKED"
		}
		if !w.Disabled.IsZero() {
			// A claimed delivery is left to the process that claimed it.
			if _, err := t.exec(ctx, `UPDATE webhook_deliveries SET state = $3, finished_ms = $2, claimed = 0, token = token + 1
				WHERE id IN (SELECT id FROM webhook_deliveries
					WHERE endpoint = $1 AND finished_ms IS NULL AND manual = 0 AND NOT (claimed = 1 AND due_ms > $2) LIMIT $4`+skip+`)`,
				endpoint, millis(now), webhook.Failed, clearing); err != nil {
				return err
			}
		}
		var ids []string
		if err := t.each(ctx, func(row scanner) error {
			var id string
			err := row.Scan(&id)
			ids = append(ids, id)
			return err
		}, `SELECT id FROM webhook_deliveries WHERE endpoint = $1 AND finished_ms IS NULL AND due_ms <= $2 ORDER BY due_ms LIMIT $3`+skip,
			endpoint, millis(now), n); err != nil {
			return err
		}
		for _, id := range ids {
			o := &webhook.ClaimedDelivery{Webhook: w}
			var event, traced sql.NullString
			d, err := scanDelivery(t.row(ctx, `UPDATE webhook_deliveries AS d SET token = token + 1, claimed = 1, due_ms = $2
				WHERE id = $1 RETURNING `+strings.ReplaceAll(deliveryList, "d.", "")+`, body, token, step, manual, event, trace`,
				id, millis(now.Add(lease))), &o.Payload, &o.Token, &o.Step, (*flag)(&o.Manual), &event, &traced)
			if err != nil {
				return err
			}
			d.Payload = o.Payload
			o.Delivery, o.Trace = *d, traced.String
			if event.Valid {
				if o.Event, err = decodeEvent(event.String); err != nil {
					return fmt.Errorf("delivery %s: %w", id, err)
				}
			}
			out = append(out, o)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Recover implements [webhook.Store].
func (s *Webhooks) Recover(ctx context.Context) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `UPDATE webhook_deliveries SET claimed = 0, due_ms = $1 WHERE finished_ms IS NULL AND claimed = 1`,
			millis(s.db.engine.now()))
		return err
	})
}

// Release implements [webhook.Store].
func (s *Webhooks) Release(ctx context.Context, o *webhook.ClaimedDelivery) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `UPDATE webhook_deliveries SET claimed = 0, due_ms = $3 WHERE id = $1 AND token = $2 AND claimed = 1`,
			o.ID, o.Token, millis(s.db.engine.now()))
		return err
	})
}

// Record implements [webhook.Store].
func (s *Webhooks) Record(ctx context.Context, o *webhook.ClaimedDelivery, r webhook.AttemptResult) (disabled bool, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		disabled = false
		now := s.db.engine.now()
		state, due, finished := webhook.Pending, millis(now), sql.NullInt64{Int64: millis(now), Valid: true}
		var delivered sql.NullInt64
		step := o.Step
		if !o.Manual {
			step++
		}
		switch {
		case r.Delivered:
			state, delivered = webhook.Delivered, finished
		case o.Manual:
			var resume sql.NullInt64
			if err := t.row(ctx, `SELECT resume_ms, delivered_ms FROM webhook_deliveries WHERE id = $1`, o.ID).Scan(&resume, &delivered); errors.Is(err, sql.ErrNoRows) {
				return status.ErrLost
			} else if err != nil {
				return err
			}
			switch {
			case resume.Valid:
				due, finished = resume.Int64, sql.NullInt64{}
			case delivered.Valid:
				state = webhook.Delivered
			default:
				state = webhook.Failed
			}
		case r.Retry > 0 && r.Disable == "":
			due, finished = millis(now.Add(r.Retry)), sql.NullInt64{}
		default:
			state = webhook.Failed
		}
		n, err := t.exec(ctx, `UPDATE webhook_deliveries SET state = $3, attempts = attempts + 1, step = $4, claimed = 0, manual = 0,
				resume_ms = NULL, due_ms = $5, finished_ms = $6, delivered_ms = coalesce(delivered_ms, $7)
			WHERE id = $1 AND token = $2 AND claimed = 1`,
			o.ID, o.Token, state, step, due, finished, delivered)
		if err != nil {
			return err
		}
		if n == 0 {
			return status.ErrLost
		}
		if o.Payload == nil && r.Body != nil {
			if _, err := t.exec(ctx, `UPDATE webhook_deliveries SET body = $2, event = NULL WHERE id = $1`, o.ID, r.Body); err != nil {
				return err
			}
		}
		a := r.Attempt
		manual := 0
		if o.Manual {
			manual = 1
		}
		if _, err := t.exec(ctx, `INSERT INTO webhook_attempts (delivery, n, at_ms, took_ms, url, status, response, error, manual)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			o.ID, o.Attempts+1, millis(a.At), a.Took.Milliseconds(), a.URL, a.Status, a.Response, a.Error, manual); err != nil {
			return err
		}
		disabled, err = recordEndpointHealth(ctx, t, o, r, now)
		return err
	})
	return disabled && err == nil, err
}

// recordEndpointHealth records since when an endpoint has been failing, and disables it
// after r.FailingLimit.
func recordEndpointHealth(ctx context.Context, t tx, o *webhook.ClaimedDelivery, r webhook.AttemptResult, now time.Time) (disabled bool, err error) {
	if r.Delivered {
		_, err := t.exec(ctx, `UPDATE webhook_endpoints SET failing_ms = NULL, failed_ms = NULL WHERE id = $1 AND failing_ms IS NOT NULL`, o.Endpoint)
		return false, err
	}
	if o.Manual && r.Disable == "" {
		return false, nil
	}
	var first, last, off sql.NullInt64
	err = t.row(ctx, `SELECT failing_ms, failed_ms, disabled_ms FROM webhook_endpoints WHERE id = $1`+t.locking(), o.Endpoint).Scan(&first, &last, &off)
	if errors.Is(err, sql.ErrNoRows) || off.Valid {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	reason := r.Disable
	if reason == "" {
		since := timeOf(first.Int64)
		if !first.Valid || !last.Valid || now.Sub(timeOf(last.Int64)) > r.FailingGap {
			since = now
		}
		if r.FailingLimit <= 0 || now.Sub(since) < r.FailingLimit {
			_, err := t.exec(ctx, `UPDATE webhook_endpoints SET failing_ms = $2, failed_ms = $3 WHERE id = $1`, o.Endpoint, millis(since), millis(now))
			return false, err
		}
		reason = "every attempt has failed since " + since.Format(time.RFC3339)
	}
	_, err = t.exec(ctx, `UPDATE webhook_endpoints SET disabled_ms = $2, reason = $3 WHERE id = $1`, o.Endpoint, millis(now), reason)
	return err == nil, err
}

// Sweep implements [webhook.Store].
func (s *Webhooks) Sweep(ctx context.Context, finished, due time.Time) (n int, err error) {
	if n, err = s.clear(ctx, `finished_ms IS NOT NULL AND finished_ms < $2`, millis(finished)); err != nil {
		return n, err
	}
	var endpoints []string
	if err := s.db.each(ctx, func(row scanner) error {
		var id string
		err := row.Scan(&id)
		endpoints = append(endpoints, id)
		return err
	}, pendingOf+` SELECT e.id FROM e WHERE e.id IS NOT NULL AND `+firstDue+` < $1`, millis(due)); err != nil {
		return n, err
	}
	for _, id := range endpoints {
		some, err := s.clear(ctx, `finished_ms IS NULL AND endpoint = $2 AND due_ms < $3`, id, millis(due))
		if n += some; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Pending implements [webhook.Store].
func (s *Webhooks) Pending(ctx context.Context) (n int, since time.Time, err error) {
	now := millis(s.db.engine.now())
	var first sql.NullInt64
	err = s.db.one(ctx, func(row scanner) error { return row.Scan(&n, &first) }, `SELECT count(*), min(CASE WHEN d.due_ms <= $1 THEN d.due_ms END) FROM webhook_deliveries d
			JOIN webhook_endpoints w ON w.id = d.endpoint AND w.disabled_ms IS NULL AND NOT `+resting+`
			WHERE d.finished_ms IS NULL`, now)
	return n, timeOrZero(first), err
}
