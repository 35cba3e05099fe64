package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
)

// Limits of members.
const (
	maxMembers        = 200 // members and invitations of an account
	maxInvitationTime = 90 * 24 * time.Hour
)

// Errors of members, which [httpapi.Service.Fail] sends to clients.
var (
	// ErrRole reports a role that the caller may not give or take.
	ErrRole error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "your role does not permit this")

	// ErrServerAdministrator reports a change that would leave an administrator of the server without
	// access to its account.
	ErrServerAdministrator error = httpapi.NewProblem(http.StatusConflict, "conflict", "this login is an administrator of the server; it must own or administer its account")

	// ErrInvitation reports an invitation that is unknown, was used or revoked, or has expired.
	ErrInvitation error = httpapi.NewProblem(http.StatusNotFound, "not_found", "the invitation was used or revoked, or has expired; ask for another one")
)

// HasMembers reports whether accounts can have members.
func (a *Accounts) HasMembers() bool { return a.cfg.Members != nil }

// Members returns the logins of an account, oldest first.
func (a *Accounts) Members(ctx context.Context, id string) ([]*account.Account, error) {
	return a.cfg.Members.Members(ctx, id)
}

// Invitations returns the invitations of an account that have not expired, oldest first.
func (a *Accounts) Invitations(ctx context.Context, id string) (list []*account.Invitation, err error) {
	all, err := a.cfg.Members.Invitations(ctx, id)
	for _, i := range all {
		if time.Now().Before(i.Expires) {
			list = append(list, i)
		}
	}
	return list, err
}

// Invite creates an invitation to the account of by, and returns the secret of its link, which is not
// stored. It fails with ErrRole, or with a conflict if the account has too many members.
func (a *Accounts) Invite(ctx context.Context, by *account.Account, role account.Role, note string, life time.Duration) (secret string, i *account.Invitation, err error) {
	if !by.Role.MayGrant(role) {
		return "", nil, ErrRole
	}
	note = strings.TrimSpace(note)
	if utf8.RuneCountInString(note) > maxName || !utf8.ValidString(note) || strings.ContainsFunc(note, unicode.IsControl) {
		return "", nil, httpapi.Invalid("note", "a note must have at most %d characters and no control characters", maxName)
	}
	if life <= 0 || life > maxInvitationTime {
		return "", nil, httpapi.Invalid("expires", "an invitation must expire within 90 days")
	}
	secret = rand.Text()
	now := time.Now().UTC().Truncate(time.Millisecond)
	i = &account.Invitation{Token: sha256.Sum256([]byte(secret)), Account: by.Owner(), Role: role, Note: note, Inviter: by.Name, Created: now, Expires: now.Add(life)}
	e := account.AuditEntry{Account: i.Account, Action: account.AuditInvitationCreate, Object: i.ID(), Name: note, Detail: string(role)}
	if err := a.Audit(ctx, e, func(ctx context.Context) error { return a.cfg.Members.AddInvitation(ctx, i, maxMembers) }); err != nil {
		return "", nil, toPublicError(err)
	}
	a.cfg.Log.Info("member invited", "account", i.Account, "role", role, "by", by.ID)
	return secret, i, nil
}

// RevokeInvitation removes an invitation of the account of by. It fails with ErrRole.
func (a *Accounts) RevokeInvitation(ctx context.Context, by *account.Account, id string) error {
	if !by.Role.May(account.Invite) {
		return ErrRole
	}
	all, err := a.cfg.Members.Invitations(ctx, by.Owner())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(i *account.Invitation) bool { return i.ID() == id })
	if at < 0 {
		return nil // used or revoked
	}
	e := account.AuditEntry{Account: by.Owner(), Action: account.AuditInvitationRevoke, Object: id, Name: all[at].Note, Detail: string(all[at].Role)}
	return a.Audit(ctx, e, func(ctx context.Context) error { return a.cfg.Members.RemoveInvitation(ctx, by.Owner(), id) })
}

// OpenInvitation returns the invitation with a secret and its account. It fails with ErrInvitation.
func (a *Accounts) OpenInvitation(ctx context.Context, secret string) (*account.Invitation, *account.Account, error) {
	i, err := a.cfg.Members.Invitation(ctx, sha256.Sum256([]byte(secret)))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !time.Now().Before(i.Expires) {
		return nil, nil, ErrInvitation
	}
	if err != nil {
		return nil, nil, err
	}
	acct, err := a.store.Get(ctx, i.Account)
	if err == nil && !acct.Disabled.IsZero() || errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrInvitation
	}
	return i, acct, err
}

// Join accepts an invitation: it creates a login with a name and a password, starts a session and
// returns its token. It fails with ErrInvitation, ErrNoPasswords, account.ErrNameTaken, and as
// [Accounts.ChangePassword] does for the password.
func (a *Accounts) Join(ctx context.Context, secret, name, password string, from Client) (token string, err error) {
	if a.cfg.NoPasswords {
		return "", ErrNoPasswords
	}
	if _, _, err := a.OpenInvitation(ctx, secret); err != nil {
		return "", err
	}
	if name, err = cleanName(name); err != nil {
		return "", err
	}
	if err := a.checkNew(name, "", password); err != nil {
		return "", err
	}
	hash, err := a.hashing.password(ctx, password)
	if err != nil {
		return "", err
	}
	return a.join(ctx, secret, name, hash, account.MethodPassword, nil, from)
}

// JoinExternal accepts an invitation for a user of a sign-in provider. It fails with ErrInvitation, and
// with ErrUserTaken if the user has an account.
func (a *Accounts) JoinExternal(ctx context.Context, secret string, u ExternalUser, from Client) (token string, err error) {
	name, err := cleanName(u.Name)
	if err != nil {
		return "", err
	}
	user := u.identity("")
	return a.join(ctx, secret, name, "", account.MethodExternal, &user, from)
}

func (a *Accounts) join(ctx context.Context, secret, name, hash, method string, user *account.Identity, from Client) (token string, err error) {
	m := &account.Account{ID: uuid.NewString(), Name: name, Password: hash, Created: time.Now().UTC().Truncate(time.Millisecond)}
	hashed := sha256.Sum256([]byte(secret))
	i, err := a.cfg.Members.Invitation(ctx, hashed)
	if err == nil {
		e := account.AuditEntry{
			Account: i.Account, Actor: account.Actor{Login: m.ID, Name: m.Name, Address: from.Address},
			Action: account.AuditMemberJoin, Object: m.ID, Name: m.Name, Detail: string(i.Role) + ", invited by " + i.Inviter,
		}
		err = a.Audit(ctx, e, func(ctx context.Context) error { return a.cfg.Members.Join(ctx, hashed, time.Now(), m, user) })
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", ErrInvitation
	case errors.Is(err, fs.ErrExist):
		return "", ErrUserTaken
	case err != nil:
		return "", toPublicError(err)
	}
	a.cfg.Log.Info("member joined", "account", m.MemberOf, "login", m.ID, "role", m.Role)
	return a.begin(ctx, m.ID, hash, method, from)
}

// SetRole changes the role of a login of the account of by, at once for all its sessions. It fails with
// ErrRole, and with account.ErrLastOwner. The error for a missing login matches fs.ErrNotExist.
func (a *Accounts) SetRole(ctx context.Context, by *account.Account, login string, role account.Role) error {
	e := a.entry(ctx, account.AuditMemberRole, login)
	e.Account, e.Detail = by.Owner(), string(role)
	err := a.Audit(ctx, e, func(ctx context.Context) error {
		return a.cfg.Members.SetRole(ctx, by.Owner(), login, role, func(m *account.Account) error {
			if !by.Role.MayGrant(m.Role) || !by.Role.MayGrant(role) {
				return ErrRole
			}
			if m.Administrator && !role.May(account.Manage) {
				return ErrServerAdministrator
			}
			return nil
		})
	})
	if err == nil {
		a.cfg.Log.Info("role changed", "account", by.Owner(), "login", login, "role", role, "by", by.ID)
	}
	return toPublicError(err)
}

// RemoveMember removes a login of the account of by, and ends its sessions. Everybody may remove
// himself. It fails with ErrRole, account.ErrLastOwner, and ErrServerAdministrator. The error for a missing login matches fs.ErrNotExist.
func (a *Accounts) RemoveMember(ctx context.Context, by *account.Account, login string) error {
	e := a.entry(ctx, account.AuditMemberRemove, login)
	e.Account = by.Owner()
	err := a.Audit(ctx, e, func(ctx context.Context) error {
		return a.cfg.Members.RemoveMember(ctx, by.Owner(), login, func(m *account.Account) error {
			if m.ID != by.ID && !by.Role.MayGrant(m.Role) {
				return ErrRole
			}
			if m.Administrator {
				return ErrServerAdministrator
			}
			return nil
		})
	})
	if err == nil {
		a.cfg.Log.Info("member removed", "account", by.Owner(), "login", login, "by", by.ID)
	}
	return toPublicError(err)
}

// withAccount completes a member with the limits of its account. It fails with ErrNoSession if that is
// disabled.
func (a *Accounts) withAccount(ctx context.Context, m *account.Account) error {
	if m.MemberOf == "" {
		return nil
	}
	acct, err := a.store.Get(ctx, m.MemberOf)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !acct.Disabled.IsZero() {
		return ErrNoSession
	}
	if err == nil {
		m.Limits = acct.Limits
	}
	return err
}

// scopes returns what a login may do through the API. Members of an administrator's account get no
// scope for administration: keys with it would manage all accounts.
func (a *Accounts) scopes(ctx context.Context, m *account.Account) (s httpapi.Scope, err error) {
	if m.Role.May(account.View) {
		s = httpapi.ScopeRead
	}
	if m.Role.May(account.Operate) {
		s |= httpapi.DefaultScopes
	}
	if !m.Role.May(account.Manage) {
		return s, nil
	}
	allowed, err := a.MayAdminister(ctx, m)
	if allowed {
		s |= httpapi.ScopeAdmin
	}
	return s, err
}

// MayAdminister reports whether a login may use and give the scope "admin".
func (a *Accounts) MayAdminister(ctx context.Context, m *account.Account) (bool, error) {
	if !m.Role.May(account.Manage) || m.MemberOf == "" {
		return m.Role.May(account.Manage), nil
	}
	acct, err := a.store.Get(ctx, m.MemberOf)
	return err == nil && !acct.Administrator, err
}
