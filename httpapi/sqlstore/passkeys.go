package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/filewright/filewright/httpapi/account"
)

// Passkeys is an [account.PasskeyStore].
type Passkeys struct{ db *DB }

// Passkeys returns the passkeys of the database.
func (db *DB) Passkeys() *Passkeys { return &Passkeys{db} }

const passkeyColumns = `id, account, domain, name, public_key, flags, sign_count, created_ms, last_used_ms`

func scanPasskey(row scanner) (*account.Passkey, error) {
	var p account.Passkey
	var flags, count, created int64
	var used sql.NullInt64
	err := row.Scan(&p.ID, &p.Account, &p.Domain, &p.Name, &p.PublicKey, &flags, &count, &created, &used)
	p.Flags, p.Count, p.Created, p.LastUsed = byte(flags), uint32(count), timeOf(created), timeOrZero(used)
	return &p, err
}

// Get implements [account.PasskeyStore].
func (s *Passkeys) Get(ctx context.Context, id []byte) (p *account.Passkey, err error) {
	err = s.db.one(ctx, func(row scanner) (err error) {
		p, err = scanPasskey(row)
		return err
	}, `SELECT `+passkeyColumns+` FROM passkeys WHERE id = $1`, id)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("passkey", hex.EncodeToString(id))
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// List implements [account.PasskeyStore].
func (s *Passkeys) List(ctx context.Context, id string) (list []*account.Passkey, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		p, err := scanPasskey(row)
		list = append(list, p)
		return err
	}, `SELECT `+passkeyColumns+` FROM passkeys WHERE account = $1 ORDER BY created_ms, id`, id)
	return list, err
}

// useChallenge marks a challenge as used, and forgets those that have expired.
func useChallenge(ctx context.Context, t tx, c account.Challenge) error {
	if _, err := t.exec(ctx, `DELETE FROM passkey_challenges WHERE expires_ms < $1`, millis(time.Now())); err != nil {
		return err
	}
	n, err := t.exec(ctx, `INSERT INTO passkey_challenges (challenge, expires_ms) VALUES ($1, $2) ON CONFLICT DO NOTHING`, c.Hash[:], millis(c.Expires))
	if err == nil && n == 0 {
		err = fmt.Errorf("challenge: %w", fs.ErrExist)
	}
	return err
}

// Add implements [account.PasskeyStore].
func (s *Passkeys) Add(ctx context.Context, p *account.Passkey, c account.Challenge, most int) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if err := lockAccount(ctx, t, p.Account); err != nil {
			return err
		}
		if err := useChallenge(ctx, t, c); err != nil {
			return err
		}
		var n int
		if err := t.row(ctx, `SELECT count(*) FROM passkeys WHERE account = $1`, p.Account).Scan(&n); err != nil {
			return err
		}
		if n >= most {
			return fmt.Errorf("%d passkeys: %w", n, fs.ErrExist)
		}
		added, err := t.exec(ctx, `INSERT INTO passkeys (`+passkeyColumns+`) VALUES `+values(1, 9)+` ON CONFLICT DO NOTHING`,
			p.ID, p.Account, p.Domain, p.Name, p.PublicKey, int64(p.Flags), int64(p.Count), millis(p.Created), millisOrNull(p.LastUsed))
		if err == nil && added == 0 {
			err = fmt.Errorf("passkey: %w", fs.ErrExist)
		}
		return err
	})
}

// Use implements [account.PasskeyStore].
func (s *Passkeys) Use(ctx context.Context, p *account.Passkey, c account.Challenge) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if err := useChallenge(ctx, t, c); err != nil {
			return err
		}
		n, err := t.exec(ctx, `UPDATE passkeys SET flags = $2, sign_count = $3, last_used_ms = $4
			WHERE id = $1 AND (sign_count < $3 OR sign_count = 0 AND $3 = 0)`, p.ID, int64(p.Flags), int64(p.Count), millisOrNull(p.LastUsed))
		if err == nil && n == 0 {
			err = missing("passkey", hex.EncodeToString(p.ID))
		}
		return err
	})
}

// Remove implements [account.PasskeyStore].
func (s *Passkeys) Remove(ctx context.Context, id string, passkey []byte) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `DELETE FROM passkeys WHERE account = $1 AND id = $2`, id, passkey)
		return err
	})
}

// RemoveAll implements [account.PasskeyStore].
func (s *Passkeys) RemoveAll(ctx context.Context, id string) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		_, err := t.exec(ctx, `DELETE FROM passkeys WHERE account = $1`, id)
		return err
	})
}

var _ account.PasskeyStore = (*Passkeys)(nil)
