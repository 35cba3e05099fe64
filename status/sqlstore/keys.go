package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// A Key is an API key without its secret, of which only the hash is kept.
type Key struct {
	ID       string
	Name     string // given by its owner, for people
	Prefix   string // start of the secret, to tell keys apart
	Account  string
	Hash     [32]byte // SHA-256 of the secret
	Created  time.Time
	LastUsed time.Time // to the minute; zero: never
	Expires  time.Time // zero: never
	Revoked  time.Time // zero: not revoked
}

// Valid tells whether the key may be used at the given time.
func (k *Key) Valid(at time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || at.Before(k.Expires))
}

// Keys keeps API keys. A missing one matches fs.ErrNotExist.
type Keys struct{ db *DB }

// Keys returns the API keys of the database.
func (db *DB) Keys() *Keys { return &Keys{db} }

const keyColumns = `id, name, prefix, account, hash, created_ms, last_used_ms, expires_ms, revoked_ms`

func scanKey(row scanner) (*Key, error) {
	var k Key
	var hash []byte
	var created int64
	var used, expires, revoked sql.NullInt64
	if err := row.Scan(&k.ID, &k.Name, &k.Prefix, &k.Account, &hash, &created, &used, &expires, &revoked); err != nil {
		return nil, err
	}
	if copy(k.Hash[:], hash) != len(k.Hash) {
		return nil, fmt.Errorf("key %q: hash of %d bytes", k.ID, len(hash))
	}
	k.Created, k.LastUsed = timeOf(created), timeOrZero(used)
	k.Expires, k.Revoked = timeOrZero(expires), timeOrZero(revoked)
	return &k, nil
}

// Create stores a key. ID and Hash must be unique, else the error matches
// fs.ErrExist.
func (s *Keys) Create(ctx context.Context, k *Key) error {
	if k.ID == "" || k.Hash == [32]byte{} {
		return errors.New("key without ID or hash")
	}
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `INSERT INTO api_keys (`+keyColumns+`) VALUES `+values(1, 9)+` ON CONFLICT DO NOTHING`,
			k.ID, k.Name, k.Prefix, k.Account, k.Hash[:], millis(k.Created),
			millisOrNull(k.LastUsed), millisOrNull(k.Expires), millisOrNull(k.Revoked))
		if err == nil && n == 0 {
			err = fmt.Errorf("key %q: %w", k.ID, fs.ErrExist)
		}
		return err
	})
}

// ByHash returns the key whose secret has the given hash, be it valid or not.
func (s *Keys) ByHash(ctx context.Context, hash [32]byte) (k *Key, err error) {
	err = s.db.view(ctx, func(ctx context.Context, t tx) error {
		k, err = scanKey(t.row(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE hash = $1`, hash[:]))
		if errors.Is(err, sql.ErrNoRows) {
			err = fmt.Errorf("key: %w", fs.ErrNotExist)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// List returns the keys of an account, or all if account is "", oldest first.
func (s *Keys) List(ctx context.Context, account string) (keys []*Key, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		k, err := scanKey(row)
		keys = append(keys, k)
		return err
	}, `SELECT `+keyColumns+` FROM api_keys WHERE $1 = '' OR account = $1 ORDER BY created_ms, id`, account)
	return keys, err
}

// Revoke makes a key invalid for ever. Revoking it again changes nothing.
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

// Touch records that a key is being used. It writes at most once a minute per key
// and so may be called with every request.
func (s *Keys) Touch(ctx context.Context, id string) error {
	now := time.Now()
	last, ok := s.db.touched.Load(id)
	if ok && now.Sub(last.(time.Time)) < time.Minute {
		return nil
	}
	// Of several callers at once only one goes on.
	if !ok {
		if _, other := s.db.touched.LoadOrStore(id, now); other {
			return nil
		}
	} else if !s.db.touched.CompareAndSwap(id, last, now) {
		return nil
	}
	err := s.db.tx(ctx, func(ctx context.Context, t tx) error {
		n, err := t.exec(ctx, `UPDATE api_keys SET last_used_ms = $1 WHERE id = $2`, millis(now), id)
		if err == nil && n == 0 {
			err = missing("key", id)
		}
		return err
	})
	if err != nil {
		s.db.touched.CompareAndDelete(id, now)
	}
	return err
}

// Setting returns the value of a setting. It matches fs.ErrNotExist if there is
// none.
func (db *DB) Setting(ctx context.Context, name string) ([]byte, error) {
	var v []byte
	err := db.view(ctx, func(ctx context.Context, t tx) error {
		return t.row(ctx, `SELECT value FROM settings WHERE name = $1`, name).Scan(&v)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missing("setting", name)
	}
	return v, err
}

// SetSettingOnce stores a setting unless there is one of that name, and returns
// the one that is there then. So processes that start at the same time agree, for
// example, on a random secret.
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
