package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/transfer"
)

// Transfers is a [transfer.Store].
type Transfers struct{ db *DB }

// Transfers returns the transfers between the service and URLs.
func (db *DB) Transfers() *Transfers { return &Transfers{db} }

// Now implements [transfer.Store].
func (s *Transfers) Now() time.Time { return s.db.engine.now().Truncate(time.Millisecond) }

const transferColumns = `kind, id, owner, state, claims, due_ms, created_ms, finished_ms`

func scanTransfer(row scanner, more ...any) (*transfer.Transfer, error) {
	var t transfer.Transfer
	var due, created int64
	var finished sql.NullInt64
	err := row.Scan(append([]any{&t.Kind, &t.ID, &t.Owner, &t.State, &t.Claims, &due, &created, &finished}, more...)...)
	t.Due, t.Created, t.Finished = timeOf(due), timeOf(created), timeOrZero(finished)
	return &t, err
}

// bytesOrNull is NULL for nil.
func bytesOrNull(b []byte) any {
	if b == nil {
		return nil // a nil []byte would be an empty one
	}
	return b
}

// Add implements [transfer.Store].
func (s *Transfers) Add(ctx context.Context, t *transfer.Transfer, limit int) error {
	return s.db.tx(ctx, func(ctx context.Context, x tx) error {
		var n int
		if err := x.row(ctx, `SELECT count(*) FROM transfers WHERE owner = $1 AND kind = $2 AND finished_ms IS NULL`, t.Owner, t.Kind).Scan(&n); err != nil {
			return err
		}
		if n >= limit {
			return transfer.ErrLimit
		}
		added, err := x.exec(ctx, `INSERT INTO transfers (kind, id, owner, request, state, claims, claimed, due_ms, created_ms)
			VALUES ($1, $2, $3, $4, $5, 0, 0, $6, $7) ON CONFLICT DO NOTHING`,
			t.Kind, t.ID, t.Owner, bytesOrNull(t.Request), bytesOrNull(t.State), millis(t.Due), millis(s.Now()))
		if err == nil && added == 0 {
			err = fmt.Errorf("transfer %s: %w", t.ID, fs.ErrExist)
		}
		return err
	})
}

// Get implements [transfer.Store].
func (s *Transfers) Get(ctx context.Context, kind string, ids ...string) (map[string]*transfer.Transfer, error) {
	out := make(map[string]*transfer.Transfer)
	if len(ids) == 0 {
		return out, nil
	}
	list, args := inKeys(ids)
	err := s.db.each(ctx, func(row scanner) error {
		t, err := scanTransfer(row)
		out[t.ID] = t
		return err
	}, fmt.Sprintf(`SELECT `+transferColumns+` FROM transfers WHERE id IN %s AND kind = $%d`, list, len(args)+1), append(args, kind)...)
	return out, err
}

// Hasten implements [transfer.Store].
func (s *Transfers) Hasten(ctx context.Context, kind, id string) error {
	return s.db.tx(ctx, func(ctx context.Context, x tx) error {
		_, err := x.exec(ctx, `UPDATE transfers SET due_ms = $3 WHERE kind = $1 AND id = $2 AND claimed = 0 AND finished_ms IS NULL`, kind, id, millis(s.Now()))
		return err
	})
}

// Delete implements [transfer.Store].
func (s *Transfers) Delete(ctx context.Context, kind, id string) error {
	return s.db.tx(ctx, func(ctx context.Context, x tx) error {
		_, err := x.exec(ctx, `DELETE FROM transfers WHERE kind = $1 AND id = $2`, kind, id)
		return err
	})
}

// Claim implements [transfer.Store].
func (s *Transfers) Claim(ctx context.Context, kind string, lease time.Duration, except []string) (*transfer.Transfer, error) {
	args := []any{kind, millis(s.Now())}
	var others strings.Builder
	for _, owner := range except {
		args = append(args, owner)
		fmt.Fprintf(&others, " AND owner <> $%d", len(args))
	}
	return s.claim(ctx, lease, others.String()+" AND NOT EXISTS "+ofDisabled, args)
}

// ofDisabled is a subquery with a row if the owner of a transfer is disabled.
const ofDisabled = `(SELECT 1 FROM accounts a WHERE a.id = transfers.owner AND a.disabled_ms IS NOT NULL)`

// Abandoned implements [transfer.Store].
func (s *Transfers) Abandoned(ctx context.Context, kind string, lease time.Duration, before time.Time) (*transfer.Transfer, error) {
	return s.claim(ctx, lease, " AND EXISTS "+ofDisabled, []any{kind, millis(before)})
}

// claim claims the transfer that has been due for longest among those that meet a condition. args are
// the kind, the latest time at which they became due, and the arguments of the condition.
func (s *Transfers) claim(ctx context.Context, lease time.Duration, condition string, args []any) (t *transfer.Transfer, err error) {
	kind, now, skip := args[0], s.Now(), ""
	if s.db.pg != nil {
		skip = " FOR NO KEY UPDATE SKIP LOCKED"
	}
	find := `SELECT id FROM transfers WHERE kind = $1 AND finished_ms IS NULL AND due_ms <= $2` + condition + ` ORDER BY due_ms LIMIT 1`
	// Most looks find nothing, and a look is not a transaction that writes.
	var id string
	err = s.db.one(ctx, func(row scanner) error { return row.Scan(&id) }, find, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = s.db.tx(ctx, func(ctx context.Context, x tx) error {
		t = nil
		err := x.row(ctx, find+skip, args...).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		var request []byte
		t, err = scanTransfer(x.row(ctx, `UPDATE transfers SET claims = claims + 1, claimed = 1, due_ms = $3
			WHERE kind = $1 AND id = $2 RETURNING `+transferColumns+`, request`, kind, id, millis(now.Add(lease))), &request)
		if err == nil {
			t.Request = request
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Renew implements [transfer.Store].
func (s *Transfers) Renew(ctx context.Context, t *transfer.Transfer, lease time.Duration) error {
	return s.held(ctx, t, `state = $4, due_ms = $5`, bytesOrNull(t.State), millis(s.Now().Add(lease)))
}

// Record implements [transfer.Store].
func (s *Transfers) Record(ctx context.Context, t *transfer.Transfer) error {
	erase := ""
	if !t.Finished.IsZero() {
		erase = `, request = NULL`
	}
	return s.held(ctx, t, `claimed = 0, state = $4, due_ms = $5, finished_ms = $6`+erase, bytesOrNull(t.State), millis(t.Due), millisOrNull(t.Finished))
}

// held changes a claimed transfer. The arguments of set start at $4.
func (s *Transfers) held(ctx context.Context, t *transfer.Transfer, set string, args ...any) error {
	return s.db.tx(ctx, func(ctx context.Context, x tx) error {
		n, err := x.exec(ctx, `UPDATE transfers SET `+set+` WHERE kind = $1 AND id = $2 AND claims = $3 AND claimed = 1`,
			append([]any{t.Kind, t.ID, t.Claims}, args...)...)
		if err == nil && n == 0 {
			err = status.ErrLost
		}
		return err
	})
}

// Recover implements [transfer.Store].
func (s *Transfers) Recover(ctx context.Context, kind string) error {
	return s.db.tx(ctx, func(ctx context.Context, x tx) error {
		_, err := x.exec(ctx, `UPDATE transfers SET claimed = 0, due_ms = $2 WHERE kind = $1 AND claimed = 1 AND finished_ms IS NULL`, kind, millis(s.Now()))
		return err
	})
}

// Sweep implements [transfer.Store].
func (s *Transfers) Sweep(ctx context.Context, kind string, finished time.Time) (n int, err error) {
	for some := int64(clearing); some == clearing; n += int(some) {
		if err := s.db.tx(ctx, func(ctx context.Context, x tx) (err error) {
			some, err = x.exec(ctx, `DELETE FROM transfers WHERE kind = $1 AND id IN
				(SELECT id FROM transfers WHERE kind = $1 AND finished_ms < $2 LIMIT $3)`, kind, millis(finished), clearing)
			return err
		}); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Pending implements [transfer.Store].
func (s *Transfers) Pending(ctx context.Context, kind string) (n int, since time.Time, err error) {
	var first sql.NullInt64
	err = s.db.one(ctx, func(row scanner) error { return row.Scan(&n, &first) },
		`SELECT count(*), min(CASE WHEN due_ms <= $2 THEN due_ms END) FROM transfers WHERE kind = $1 AND finished_ms IS NULL`, kind, millis(s.Now()))
	return n, timeOrZero(first), err
}
