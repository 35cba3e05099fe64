package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi/account"
)

// Keys is an [account.KeyStore].
type Keys struct{ db *DB }

// Keys returns the API keys of the database.
func (db *DB) Keys() *Keys { return &Keys{db} }

const keyColumns = `id, name, prefix, account, hash, created_ms, last_used_ms, expires_ms, revoked_ms, scopes, rate, burst, addresses`

func scanKey(row scanner) (*account.Key, error) {
	var k account.Key
	var hash []byte
	var created int64
	var used, expires, revoked sql.NullInt64
	if err := row.Scan(&k.ID, &k.Name, &k.Prefix, &k.Account, &hash, &created, &used, &expires, &revoked, &k.Scopes, &k.Rate, &k.Burst, &k.Addresses); err != nil {
		return nil, err
	}
	if copy(k.Hash[:], hash) != len(k.Hash) {
		return nil, fmt.Errorf("key %q: hash of %d bytes", k.ID, len(hash))
	}
	k.Created, k.LastUsed = timeOf(created), timeOrZero(used)
	k.Expires, k.Revoked = timeOrZero(expires), timeOrZero(revoked)
	return &k, nil
}

// Create implements [account.KeyStore].
func (s *Keys) Create(ctx context.Context, k *account.Key) error {
	if k.ID == "" || k.Hash == [32]byte{} {
		return errors.New("key without ID or hash")
	}
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `INSERT INTO api_keys (`+keyColumns+`) VALUES `+values(1, 13)+` ON CONFLICT DO NOTHING`,
			k.ID, k.Name, k.Prefix, k.Account, k.Hash[:], millis(k.Created),
			millisOrNull(k.LastUsed), millisOrNull(k.Expires), millisOrNull(k.Revoked), k.Scopes, k.Rate, k.Burst, k.Addresses)
		if err == nil && n == 0 {
			err = fmt.Errorf("key %q: %w", k.ID, fs.ErrExist)
		}
		if err != nil || k.Account == "" {
			return err
		}
		args := accountArgs(&account.Account{ID: k.Account, Created: k.Created})
		_, err = t.exec(ctx, `INSERT INTO accounts (`+accountColumns+`) VALUES `+values(1, len(args))+` ON CONFLICT DO NOTHING`, args...)
		return err
	})
}

// Get implements [account.KeyStore].
func (s *Keys) Get(ctx context.Context, id string) (k *account.Key, err error) {
	err = s.db.one(ctx, func(row scanner) (err error) {
		k, err = scanKey(row)
		return err
	}, `SELECT `+keyColumns+` FROM api_keys WHERE id = $1`, id)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("key", id)
	}
	return k, err
}

// Grants implements [account.KeyStore].
func (s *Keys) Grants(ctx context.Context, hashes ...[32]byte) (grants []*account.Grant, err error) {
	grants, ok, keep := s.db.grants.get(ctx, hashes)
	if ok {
		return grants, nil
	}
	for len(hashes) > 0 {
		n := min(len(hashes), 64)
		some := hashes[:n]
		hashes = hashes[n:]
		// Few different texts, so that statements stay prepared.
		size := 1
		for size < n {
			size *= 8
		}
		args := make([]any, size)
		for i := range args {
			args[i] = some[min(i, n-1)][:]
		}
		list := strings.ReplaceAll(strings.Trim(values(size, 1), "()"), "), (", ", ")
		if err := s.db.each(ctx, func(row scanner) error {
			var g account.Grant
			k, err := scanKey(before{row, []any{(*flag)(&g.Disabled), (*flag)(&g.Administrator)}})
			if err == nil {
				g.Key = *k
				grants = append(grants, &g)
			}
			return err
		}, `SELECT `+grantColumns+`, CASE WHEN a.disabled_ms IS NULL THEN 0 ELSE 1 END, coalesce(a.administrator, 0)
			FROM api_keys k LEFT JOIN accounts a ON a.id = k.account WHERE k.hash IN (`+list+`)`, args...); err != nil {
			return nil, err
		}
	}
	keep(grants)
	return grants, nil
}

const grantColumns = `k.id, k.name, k.prefix, k.account, k.hash, k.created_ms, k.last_used_ms, k.expires_ms, k.revoked_ms, k.scopes, k.rate, k.burst, k.addresses`

// A before is a row with additional columns after those that the caller scans.
type before struct {
	scanner
	last []any
}

func (b before) Scan(dest ...any) error { return b.scanner.Scan(append(dest, b.last...)...) }

// Update implements [account.KeyStore].
func (s *Keys) Update(ctx context.Context, k *account.Key) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `UPDATE api_keys SET name = $2, expires_ms = $3, scopes = $4, rate = $5, burst = $6, addresses = $7 WHERE id = $1`,
			k.ID, k.Name, millisOrNull(k.Expires), k.Scopes, k.Rate, k.Burst, k.Addresses)
		if err == nil && n == 0 {
			err = missing("key", k.ID)
		}
		return err
	})
}

// List implements [account.KeyStore].
func (s *Keys) List(ctx context.Context, account string) (keys []*account.Key, err error) {
	where, args := "", []any(nil)
	if account != "" { // a separate text, so that the index is used
		where, args = " WHERE account = $1", []any{account}
	}
	err = s.db.each(ctx, func(row scanner) error {
		k, err := scanKey(row)
		keys = append(keys, k)
		return err
	}, `SELECT `+keyColumns+` FROM api_keys`+where+` ORDER BY created_ms, id`, args...)
	return keys, err
}

// Revoke implements [account.KeyStore].
func (s *Keys) Revoke(ctx context.Context, id string) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `UPDATE api_keys SET revoked_ms = COALESCE(revoked_ms, $1) WHERE id = $2`,
			millis(time.Now()), id)
		if err == nil && n == 0 {
			err = missing("key", id)
		}
		return err
	})
}

// Touch implements [account.KeyStore].
func (s *Keys) Touch(ctx context.Context, id string) error {
	now := time.Now()
	last, ok := s.db.touched.Load(id)
	if ok && now.Sub(last.(time.Time)) < time.Minute {
		return nil
	}
	// Of several concurrent callers only one continues.
	if !ok {
		if _, other := s.db.touched.LoadOrStore(id, now); other {
			return nil
		}
	} else if !s.db.touched.CompareAndSwap(id, last, now) {
		return nil
	}
	err := s.db.tx(ctx, func(ctx context.Context, t tx) error {
		return t.change(ctx, missing("key", id), `UPDATE api_keys SET last_used_ms = $1 WHERE id = $2`, millis(now), id)
	})
	if err != nil {
		s.db.touched.CompareAndDelete(id, now)
	}
	return err
}

// Setting returns the value of a setting. If there is none, the error matches
// fs.ErrNotExist.
func (db *DB) Setting(ctx context.Context, name string) ([]byte, error) {
	var v []byte
	err := db.one(ctx, func(row scanner) error { return row.Scan(&v) }, `SELECT value FROM settings WHERE name = $1`, name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missing("setting", name)
	}
	return v, err
}

// SetSettingOnce stores a setting unless it exists, and returns the stored value. So
// processes that start at the same time agree on a value such as a random secret.
func (db *DB) SetSettingOnce(ctx context.Context, name string, value []byte) (winner []byte, err error) {
	if value == nil {
		value = []byte{}
	}
	err = db.tx(ctx, func(ctx context.Context, t tx) error {
		if _, err := t.exec(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
			name, value); err != nil {
			return err
		}
		return t.row(ctx, `SELECT value FROM settings WHERE name = $1`, name).Scan(&winner)
	})
	return winner, err
}
