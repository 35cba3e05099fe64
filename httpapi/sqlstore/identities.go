package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/filewright/filewright/httpapi/account"
)

// Identities is an [account.IdentityStore].
type Identities struct{ db *DB }

// Identities returns the identities of the database.
func (db *DB) Identities() *Identities { return &Identities{db} }

// Account implements [account.IdentityStore].
func (s *Identities) Account(ctx context.Context, issuer, subject string) (a *account.Account, err error) {
	err = s.db.one(ctx, func(row scanner) (err error) {
		a, err = scanAccount(row)
		return err
	}, `SELECT `+accountColumns+` FROM accounts WHERE id = (SELECT account FROM identities WHERE issuer = $1 AND subject = $2)`, issuer, subject)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("identity", subject)
	}
	return a, err
}

// Add implements [account.IdentityStore].
func (s *Identities) Add(ctx context.Context, n account.Identity) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		// Locked, so that the account is not deleted at the same time.
		if err := lockAccount(ctx, t, n.Account); err != nil {
			return err
		}
		rows, err := t.exec(ctx, `INSERT INTO identities (issuer, subject, account, created_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
			n.Issuer, n.Subject, n.Account, millis(n.Created))
		if err == nil && rows == 0 {
			err = fmt.Errorf("identity %q: %w", n.Subject, fs.ErrExist)
		}
		return err
	})
}

// List implements [account.IdentityStore].
func (s *Identities) List(ctx context.Context, id string) (list []account.Identity, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		n := account.Identity{Account: id}
		var created int64
		err := row.Scan(&n.Issuer, &n.Subject, &created)
		n.Created = timeOf(created)
		list = append(list, n)
		return err
	}, `SELECT issuer, subject, created_ms FROM identities WHERE account = $1 ORDER BY created_ms, issuer, subject`, id)
	return list, err
}

// Remove implements [account.IdentityStore].
func (s *Identities) Remove(ctx context.Context, id, issuer, subject string) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `DELETE FROM identities WHERE account = $1 AND issuer = $2 AND subject = $3`, id, issuer, subject)
		return err
	})
}

var _ account.IdentityStore = (*Identities)(nil)
