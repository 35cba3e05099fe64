package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/filewright/filewright/httpapi/account"
)

// Factors is an [account.FactorStore].
type Factors struct{ db *DB }

// Factors returns the second factors of the database.
func (db *DB) Factors() *Factors { return &Factors{db} }

// Get implements [account.FactorStore].
func (s *Factors) Get(ctx context.Context, id string) (*account.Factor, error) {
	f := &account.Factor{Account: id}
	err := s.db.one(ctx, func(row scanner) error {
		var created int64
		err := row.Scan(&f.Secret, &created, &f.Step, &f.Recovery)
		f.Created = timeOf(created)
		return err
	}, `SELECT secret, created_ms, step, (SELECT count(*) FROM recovery_codes WHERE account = $1) FROM second_factors WHERE account = $1`, id)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("second factor", id)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Put implements [account.FactorStore].
func (s *Factors) Put(ctx context.Context, f *account.Factor, recovery [][32]byte) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		// Locked, so that two calls do not mix their codes.
		if err := lockAccount(ctx, t, f.Account); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM second_factors WHERE account = $1`, f.Account); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `INSERT INTO second_factors (account, secret, created_ms, step) VALUES ($1, $2, $3, $4)`,
			f.Account, f.Secret, millis(f.Created), f.Step); err != nil {
			return err
		}
		for _, code := range recovery {
			if _, err := t.exec(ctx, `INSERT INTO recovery_codes (account, code) VALUES ($1, $2)`, f.Account, code[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

// UseStep implements [account.FactorStore].
func (s *Factors) UseStep(ctx context.Context, id string, step int64) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `UPDATE second_factors SET step = $2 WHERE account = $1 AND step < $2`, id, step)
		if err == nil && n == 0 {
			err = missing("unused code", id)
		}
		return err
	})
}

// UseRecovery implements [account.FactorStore].
func (s *Factors) UseRecovery(ctx context.Context, id string, code [32]byte) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `DELETE FROM recovery_codes WHERE account = $1 AND code = $2`, id, code[:])
		if err == nil && n == 0 {
			err = missing("recovery code", id)
		}
		return err
	})
}

// Delete implements [account.FactorStore].
func (s *Factors) Delete(ctx context.Context, id string) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `DELETE FROM second_factors WHERE account = $1`, id)
		return err
	})
}

var _ account.FactorStore = (*Factors)(nil)
