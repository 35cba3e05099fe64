package sqlstore

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/filewright/filewright/httpapi/account"
)

const sessionColumns = `token, account, created_ms, seen_ms, address, agent, method`

func scanSession(row scanner) (*account.Session, error) {
	var n account.Session
	var token []byte
	var created, seen int64
	err := row.Scan(&token, &n.Account, &created, &seen, &n.Address, &n.Agent, &n.Method)
	copy(n.Token[:], token)
	n.Created, n.Seen = timeOf(created), timeOf(seen)
	return &n, err
}

// Sessions is an [account.SessionStore].
type Sessions struct{ db *DB }

// Sessions returns the sessions of the database.
func (db *DB) Sessions() *Sessions { return &Sessions{db} }

// Create implements [account.SessionStore].
func (s *Sessions) Create(ctx context.Context, n *account.Session, password string) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		rows, err := t.exec(ctx, `UPDATE accounts SET last_login_ms = $3 WHERE id = $1 AND password = $2 AND disabled_ms IS NULL`,
			n.Account, password, millis(n.Created))
		if err == nil && rows == 0 {
			err = missing("account", n.Account)
		}
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, `INSERT INTO sessions (`+sessionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			n.Token[:], n.Account, millis(n.Created), millis(n.Seen), n.Address, n.Agent, n.Method)
		return err
	})
}

// Get implements [account.SessionStore].
func (s *Sessions) Get(ctx context.Context, token [32]byte) (n *account.Session, a *account.Account, err error) {
	err = s.db.view(ctx, func(ctx context.Context, t tx) error {
		if err := t.later(ctx, func(row scanner) (err error) {
			n, err = scanSession(row)
			return err
		}, `SELECT `+sessionColumns+` FROM sessions WHERE token = $1`, token[:]); err != nil {
			return err
		}
		return t.later(ctx, func(row scanner) (err error) {
			a, err = scanAccount(row)
			return err
		}, `SELECT `+accountColumns+` FROM accounts WHERE id = (SELECT account FROM sessions WHERE token = $1) AND disabled_ms IS NULL`, token[:])
	})
	if err == nil && (n == nil || a == nil) {
		err = fmt.Errorf("session: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, nil, err
	}
	return n, a, nil
}

// List implements [account.SessionStore].
func (s *Sessions) List(ctx context.Context, account string) (list []*account.Session, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		n, err := scanSession(row)
		list = append(list, n)
		return err
	}, `SELECT `+sessionColumns+` FROM sessions WHERE account = $1 ORDER BY created_ms DESC, token`, account)
	return list, err
}

// DeleteOthers implements [account.SessionStore].
func (s *Sessions) DeleteOthers(ctx context.Context, account string, keep [32]byte) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `DELETE FROM sessions WHERE account = $1 AND token <> $2`, account, keep[:])
		return err
	})
}

// Touch implements [account.SessionStore].
func (s *Sessions) Touch(ctx context.Context, token [32]byte, at time.Time) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `UPDATE sessions SET seen_ms = $2 WHERE token = $1 AND seen_ms < $2`, token[:], millis(at))
		return err
	})
}

// Delete implements [account.SessionStore].
func (s *Sessions) Delete(ctx context.Context, token [32]byte) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `DELETE FROM sessions WHERE token = $1`, token[:])
		return err
	})
}

// DeleteBefore implements [account.SessionStore].
func (s *Sessions) DeleteBefore(ctx context.Context, created, seen time.Time) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `DELETE FROM sessions WHERE created_ms < $1 OR seen_ms < $2`, millis(created), millis(seen))
		return err
	})
}
