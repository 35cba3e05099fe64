package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/filewright/filewright/httpapi/account"
)

// Accounts is an [account.Store].
type Accounts struct{ db *DB }

// Accounts returns the accounts of the database.
func (db *DB) Accounts() *Accounts { return &Accounts{db} }

// login returns the form of a name that comparisons use.
func login(name string) sql.NullString { return textOrNull(strings.ToLower(name)) }

const accountColumns = `id, name, administrator, password, must_change, created_ms, last_login_ms, disabled_ms,
	max_stored, max_bytes, max_operations, max_parallel, member_of, role`

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func accountArgs(a *account.Account) []any {
	return []any{
		a.ID, a.Name, number(a.Administrator), a.Password, number(a.MustChange), millis(a.Created), millisOrNull(a.LastLogin), millisOrNull(a.Disabled),
		a.Limits.StoredBytes, a.Limits.BytesPerDay, a.Limits.OperationsPerDay, a.Limits.Parallel, textOrNull(a.MemberOf), string(cmp.Or(a.Role, account.RoleOwner)),
	}
}

func scanAccount(row scanner) (*account.Account, error) {
	var a account.Account
	var created int64
	var seen, disabled sql.NullInt64
	var memberOf sql.NullString
	if err := row.Scan(&a.ID, &a.Name, (*flag)(&a.Administrator), &a.Password, (*flag)(&a.MustChange), &created, &seen, &disabled,
		&a.Limits.StoredBytes, &a.Limits.BytesPerDay, &a.Limits.OperationsPerDay, &a.Limits.Parallel, &memberOf, &a.Role); err != nil {
		return nil, err
	}
	a.MemberOf = memberOf.String
	a.Created, a.LastLogin, a.Disabled = timeOf(created), timeOrZero(seen), timeOrZero(disabled)
	return &a, nil
}

// Create implements [account.Store].
func (s *Accounts) Create(ctx context.Context, a *account.Account) error {
	if a.ID == "" {
		return errors.New("account without ID")
	}
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		args := append(accountArgs(a), login(a.Name))
		n, err := t.exec(ctx, `INSERT INTO accounts (`+accountColumns+`, login) VALUES `+values(1, len(args))+` ON CONFLICT DO NOTHING`, args...)
		if err != nil || n > 0 {
			return err
		}
		if err := nameFree(ctx, t, a.ID, a.Name); err != nil {
			return err
		}
		return fmt.Errorf("account %q: %w", a.ID, fs.ErrExist)
	})
}

// HasAdministrator implements [account.Store].
func (s *Accounts) HasAdministrator(ctx context.Context) (bool, error) {
	n := 0
	err := s.db.each(ctx, func(row scanner) error { return row.Scan(&n) },
		`SELECT (SELECT count(*) FROM accounts WHERE administrator = 1) + (SELECT count(*) FROM settings WHERE name = $1)`, firstSetting)
	return n > 0, err
}

// firstSetting is the setting that records that a first administrator was created.
const firstSetting = "first administrator"

// CreateFirst implements [account.Store].
func (s *Accounts) CreateFirst(ctx context.Context, a *account.Account) (made bool, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		made = false
		// Concurrent processes wait here for the transaction of the first one.
		n, err := t.exec(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`, firstSetting, []byte(a.ID))
		if err != nil || n == 0 {
			return err
		}
		if err := t.row(ctx, `SELECT count(*) FROM accounts WHERE administrator = 1`).Scan(&n); err != nil || n > 0 {
			return err
		}
		if err := nameFree(ctx, t, a.ID, a.Name); err != nil {
			return err
		}
		args := append(accountArgs(a), login(a.Name))
		_, err = t.exec(ctx, `INSERT INTO accounts (`+accountColumns+`, login) VALUES `+values(1, len(args)), args...)
		made = err == nil
		return err
	})
	return made && err == nil, err
}

// nameFree returns an error if another account has the name.
func nameFree(ctx context.Context, t tx, id, name string) error {
	var n int
	err := t.row(ctx, `SELECT count(*) FROM accounts WHERE login = $1 AND id <> $2`, login(name), id).Scan(&n)
	if err == nil && n > 0 {
		err = fmt.Errorf("account %q: %w", name, account.ErrNameTaken)
	}
	return err
}

// Get implements [account.Store].
func (s *Accounts) Get(ctx context.Context, id string) (*account.Account, error) {
	return s.one(ctx, "id", id)
}

// ByName implements [account.Store].
func (s *Accounts) ByName(ctx context.Context, name string) (*account.Account, error) {
	return s.one(ctx, "login", strings.ToLower(name))
}

func (s *Accounts) one(ctx context.Context, column, value string) (a *account.Account, err error) {
	err = s.db.one(ctx, func(row scanner) (err error) {
		a, err = scanAccount(row)
		return err
	}, `SELECT `+accountColumns+` FROM accounts WHERE `+column+` = $1`, value)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("account", value)
	}
	return a, err
}

// List implements [account.Store].
func (s *Accounts) List(ctx context.Context) (all []*account.Account, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		a, err := scanAccount(row)
		all = append(all, a)
		return err
	}, `SELECT `+accountColumns+` FROM accounts WHERE member_of IS NULL ORDER BY created_ms, id`)
	return all, err
}

// Update implements [account.Store].
func (s *Accounts) Update(ctx context.Context, id string, f func(*account.Account) error) (a *account.Account, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		var old account.Account
		if a, err = s.change(ctx, t, id); err != nil {
			return err
		}
		old = *a
		if err := f(a); err != nil {
			return err
		}
		a.ID, a.Password, a.MustChange, a.LastLogin = old.ID, old.Password, old.MustChange, old.LastLogin
		a.MemberOf, a.Role = old.MemberOf, old.Role
		if !a.Administrator || !a.Disabled.IsZero() {
			if err := othersRule(ctx, t, &old); err != nil {
				return err
			}
		}
		if err := nameFree(ctx, t, id, a.Name); err != nil {
			return err
		}
		if !a.Disabled.IsZero() {
			if _, err := t.exec(ctx, `DELETE FROM sessions WHERE account IN (SELECT id FROM accounts WHERE id = $1 OR member_of = $1)`, id); err != nil {
				return err
			}
		} else if !old.Disabled.IsZero() {
			// Otherwise the time for which attempts have failed would include the time
			// in which the account was disabled.
			if _, err := t.exec(ctx, `UPDATE webhook_endpoints SET failing_ms = NULL, failed_ms = NULL
				WHERE account = $1 AND failing_ms IS NOT NULL`, id); err != nil {
				return err
			}
		}
		_, err := t.exec(ctx, `UPDATE accounts SET name = $2, login = $3, administrator = $4, disabled_ms = $5,
				max_stored = $6, max_bytes = $7, max_operations = $8, max_parallel = $9 WHERE id = $1`,
			id, a.Name, login(a.Name), number(a.Administrator), millisOrNull(a.Disabled),
			a.Limits.StoredBytes, a.Limits.BytesPerDay, a.Limits.OperationsPerDay, a.Limits.Parallel)
		return err
	})
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == "23505" { // another transaction created an account of that name
		err = fmt.Errorf("account %q: %w", id, account.ErrNameTaken)
	}
	if err != nil {
		return nil, err
	}
	s.db.outbox.notify() // there may be deliveries to send
	return a, nil
}

// change reads an account for update. It first locks the rows of all administrators, so
// that concurrent changes agree on how many there are.
func (s *Accounts) change(ctx context.Context, t tx, id string) (*account.Account, error) {
	if err := t.each(ctx, func(row scanner) error { return row.Scan(new(string)) },
		`SELECT id FROM accounts WHERE administrator = 1 ORDER BY id`+t.locking()); err != nil {
		return nil, err
	}
	a, err := scanAccount(t.row(ctx, `SELECT `+accountColumns+` FROM accounts WHERE id = $1`+t.locking(), id))
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("account", id)
	}
	return a, err
}

// lockAccount locks the row of an account until the end of the transaction. Its error for a
// missing one matches fs.ErrNotExist.
func lockAccount(ctx context.Context, t tx, id string) error {
	err := t.row(ctx, `SELECT id FROM accounts WHERE id = $1`+t.locking(), id).Scan(new(string))
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("account", id)
	}
	return err
}

// othersRule returns an error if the account is the last enabled administrator.
func othersRule(ctx context.Context, t tx, a *account.Account) error {
	if !a.Administrator || !a.Disabled.IsZero() {
		return nil
	}
	var n int
	err := t.row(ctx, `SELECT count(*) FROM accounts WHERE administrator = 1 AND disabled_ms IS NULL AND id <> $1`, a.ID).Scan(&n)
	if err == nil && n == 0 {
		err = account.ErrLastAdministrator
	}
	return err
}

// Delete implements [account.Store].
func (s *Accounts) Delete(ctx context.Context, id string) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		a, err := s.change(ctx, t, id)
		if err == nil {
			err = othersRule(ctx, t, a)
		}
		if err != nil {
			return err
		}
		for _, table := range []string{"api_keys", "webhook_endpoints"} {
			if _, err := t.exec(ctx, `DELETE FROM `+table+` WHERE account = $1`, id); err != nil {
				return err
			}
		}
		_, err = t.exec(ctx, `DELETE FROM accounts WHERE id = $1`, id)
		return err
	})
}

// RenewPassword implements [account.Store].
func (s *Accounts) RenewPassword(ctx context.Context, id, old, fresh string) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `UPDATE accounts SET password = $3 WHERE id = $1 AND password = $2`, id, old, fresh)
		return err
	})
}

// SetPassword implements [account.Store].
func (s *Accounts) SetPassword(ctx context.Context, id, old, fresh string, mustChange bool) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `UPDATE accounts SET password = $3, must_change = $4 WHERE id = $1 AND ($2 = '*' OR password = $2)`,
			id, old, fresh, number(mustChange))
		if err == nil && n == 0 {
			err = missing("account", id)
		}
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, `DELETE FROM sessions WHERE account = $1`, id)
		return err
	})
}
