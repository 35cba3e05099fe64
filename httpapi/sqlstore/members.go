package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/filewright/filewright/httpapi/account"
)

// Members is an [account.MemberStore].
type Members struct{ db *DB }

// Members returns the members and invitations of the database.
func (db *DB) Members() *Members { return &Members{db} }

// Members implements [account.MemberStore].
func (s *Members) Members(ctx context.Context, id string) (list []*account.Account, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		a, err := scanAccount(row)
		list = append(list, a)
		return err
	}, `SELECT `+accountColumns+` FROM accounts WHERE id = $1 AND login IS NOT NULL OR member_of = $1 ORDER BY created_ms, id`, id)
	return list, err
}

// change calls f with a login of an account. The account is locked, so that concurrent changes agree
// on its owners.
func (s *Members) change(ctx context.Context, id, login string, f func(ctx context.Context, t tx, a *account.Account) error) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if err := lockAccount(ctx, t, id); err != nil {
			return err
		}
		a, err := scanAccount(t.row(ctx, `SELECT `+accountColumns+` FROM accounts WHERE id = $1 AND login IS NOT NULL`, login))
		if errors.Is(err, sql.ErrNoRows) || err == nil && a.Owner() != id {
			return missing("member", login)
		}
		if err != nil {
			return err
		}
		return f(ctx, t, a)
	})
}

// ownersRule returns an error if a login is the last owner of its account.
func ownersRule(ctx context.Context, t tx, a *account.Account) error {
	if a.Role != account.RoleOwner {
		return nil
	}
	var n int
	err := t.row(ctx, `SELECT count(*) FROM accounts WHERE (id = $1 AND login IS NOT NULL OR member_of = $1) AND role = $2 AND id <> $3
		AND (member_of IS NULL OR disabled_ms IS NULL)`, a.Owner(), string(account.RoleOwner), a.ID).Scan(&n)
	if err == nil && n == 0 {
		err = account.ErrLastOwner
	}
	return err
}

// SetRole implements [account.MemberStore].
func (s *Members) SetRole(ctx context.Context, id, login string, role account.Role, check func(*account.Account) error) error {
	return s.change(ctx, id, login, func(ctx context.Context, t tx, a *account.Account) error {
		if err := check(a); err != nil || a.Role == role {
			return err
		}
		if err := ownersRule(ctx, t, a); err != nil {
			return err
		}
		_, err := t.exec(ctx, `UPDATE accounts SET role = $2 WHERE id = $1`, a.ID, string(role))
		return err
	})
}

// RemoveMember implements [account.MemberStore].
func (s *Members) RemoveMember(ctx context.Context, id, login string, check func(*account.Account) error) error {
	return s.change(ctx, id, login, func(ctx context.Context, t tx, a *account.Account) error {
		if err := check(a); err != nil {
			return err
		}
		if err := ownersRule(ctx, t, a); err != nil {
			return err
		}
		if a.MemberOf != "" {
			_, err := t.exec(ctx, `DELETE FROM accounts WHERE id = $1`, a.ID)
			return err
		}
		// The account's own login: files, operations and keys stay with the row.
		for _, table := range []string{"sessions", "identities", "second_factors", "passkeys"} {
			if _, err := t.exec(ctx, `DELETE FROM `+table+` WHERE account = $1`, a.ID); err != nil {
				return err
			}
		}
		_, err := t.exec(ctx, `UPDATE accounts SET name = '', login = NULL, password = '', must_change = 0 WHERE id = $1`, a.ID)
		return err
	})
}

const invitationColumns = `token, account, role, note, inviter, created_ms, expires_ms`

func scanInvitation(row scanner) (*account.Invitation, error) {
	var i account.Invitation
	var token []byte
	var created, expires int64
	err := row.Scan(&token, &i.Account, &i.Role, &i.Note, &i.Inviter, &created, &expires)
	copy(i.Token[:], token)
	i.Created, i.Expires = timeOf(created), timeOf(expires)
	return &i, err
}

// AddInvitation implements [account.MemberStore].
func (s *Members) AddInvitation(ctx context.Context, i *account.Invitation, most int) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if err := lockAccount(ctx, t, i.Account); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM invitations WHERE account = $1 AND expires_ms < $2`, i.Account, millis(time.Now())); err != nil {
			return err
		}
		var n int
		if err := t.row(ctx, `SELECT (SELECT count(*) FROM invitations WHERE account = $1) + (SELECT count(*) FROM accounts WHERE member_of = $1)`, i.Account).Scan(&n); err != nil {
			return err
		}
		if n >= most {
			return account.ErrTooMany
		}
		_, err := t.exec(ctx, `INSERT INTO invitations (`+invitationColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			i.Token[:], i.Account, string(i.Role), i.Note, i.Inviter, millis(i.Created), millis(i.Expires))
		return err
	})
}

// Invitation implements [account.MemberStore].
func (s *Members) Invitation(ctx context.Context, token [32]byte) (i *account.Invitation, err error) {
	err = s.db.one(ctx, func(row scanner) (err error) {
		i, err = scanInvitation(row)
		return err
	}, `SELECT `+invitationColumns+` FROM invitations WHERE token = $1`, token[:])
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("invitation: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return i, nil
}

// Invitations implements [account.MemberStore].
func (s *Members) Invitations(ctx context.Context, id string) (list []*account.Invitation, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		i, err := scanInvitation(row)
		list = append(list, i)
		return err
	}, `SELECT `+invitationColumns+` FROM invitations WHERE account = $1 ORDER BY created_ms, token`, id)
	return list, err
}

// RemoveInvitation implements [account.MemberStore].
func (s *Members) RemoveInvitation(ctx context.Context, id, invitation string) error {
	list, err := s.Invitations(ctx, id)
	if err != nil {
		return err
	}
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		for _, i := range list {
			if i.ID() != invitation {
				continue
			}
			if _, err := t.exec(ctx, `DELETE FROM invitations WHERE token = $1`, i.Token[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Join implements [account.MemberStore].
func (s *Members) Join(ctx context.Context, token [32]byte, at time.Time, m *account.Account, user *account.Identity) error {
	gone := fmt.Errorf("invitation: %w", fs.ErrNotExist)
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		i, err := scanInvitation(t.row(ctx, `SELECT `+invitationColumns+` FROM invitations WHERE token = $1`, token[:]))
		if errors.Is(err, sql.ErrNoRows) || err == nil && !at.Before(i.Expires) {
			return gone
		}
		if err != nil {
			return err
		}
		if err := lockAccount(ctx, t, i.Account); err != nil {
			return err
		}
		n, err := t.exec(ctx, `DELETE FROM invitations WHERE token = $1`, token[:])
		if err == nil && n == 0 {
			err = gone // a concurrent call was first
		}
		if err != nil {
			return err
		}
		if err := nameFree(ctx, t, m.ID, m.Name); err != nil {
			return err
		}
		m.MemberOf, m.Role = i.Account, i.Role
		args := append(accountArgs(m), login(m.Name))
		added, err := t.exec(ctx, `INSERT INTO accounts (`+accountColumns+`, login) VALUES `+values(1, len(args))+` ON CONFLICT DO NOTHING`, args...)
		if err == nil && added == 0 {
			err = fmt.Errorf("account %q: %w", m.Name, account.ErrNameTaken)
		}
		if err != nil || user == nil {
			return err
		}
		n, err = t.exec(ctx, `INSERT INTO identities (issuer, subject, account, created_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
			user.Issuer, user.Subject, m.ID, millis(user.Created))
		if err == nil && n == 0 {
			err = fmt.Errorf("identity %q: %w", user.Subject, fs.ErrExist)
		}
		return err
	})
}

var _ account.MemberStore = (*Members)(nil)
