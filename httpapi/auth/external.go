package auth

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
)

// An ExternalUser is a user whom a sign-in provider has authenticated.
type ExternalUser struct {
	Issuer  string // URL of the provider
	Subject string // the provider's ID of the user, which never changes
	Name    string // login name of a new account

	// Administrator is what the account becomes; nil leaves it unchanged, and false for a new
	// account.
	Administrator *bool

	// Create allows a new account if the user has none.
	Create bool
}

// A LoginRequest is why somebody signs in with a provider. It comes back at the end of the login.
type LoginRequest struct {
	Next    string // page to show then
	Account string // account to connect to the user; "": log in
	Invite  string // secret of an invitation to accept; "": none
}

// Errors of logins with a sign-in provider, which [httpapi.Service.Fail] sends to clients.
var (
	// ErrNoAccount reports a user who has no account and may not get one.
	ErrNoAccount error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "this user has no account here; ask an administrator for one")

	// ErrUserTaken reports a user who is connected to another account.
	ErrUserTaken error = httpapi.NewProblem(http.StatusConflict, "conflict", "this user is connected to another account")

	// ErrOnlyLogin reports that without an identity nobody could log in to the account.
	ErrOnlyLogin error = httpapi.NewProblem(http.StatusConflict, "conflict", "this is the only way to log in to the account; ask an administrator for a password first")
)

// LoginExternal starts a session for a user of a sign-in provider and returns its token. The account
// is found by issuer and subject. For a new user it is the account with the user's name, if it is not
// an administrator's and nobody has logged in to it, or else a new account. It fails with
// ErrNoAccount, with account.ErrNameTaken if an account of that name is in use, and with
// ErrCredentials if the account is disabled. Config.Identities must be set.
func (a *Accounts) LoginExternal(ctx context.Context, u ExternalUser, from Client) (token string, acct *account.Account, err error) {
	if acct, err = a.external(ctx, u); err != nil {
		return "", nil, err
	}
	if !acct.Disabled.IsZero() {
		a.cfg.Log.Warn("login refused", "from", from.Address, "account", acct.ID)
		return "", nil, ErrCredentials
	}
	if u.Administrator != nil && acct.MemberOf == "" && *u.Administrator != acct.Administrator {
		changed, err := a.Update(WithActor(ctx, provider), acct.ID, Change{Administrator: u.Administrator})
		switch {
		case errors.Is(err, account.ErrLastAdministrator):
			a.cfg.Log.Warn("the provider no longer lists the last administrator as one; the account stays an administrator", "account", acct.ID)
		case err != nil:
			return "", nil, err
		default:
			a.cfg.Log.Info("the provider changed a role", "account", acct.ID, "administrator", changed.Administrator)
			acct = changed
		}
	}
	if token, err = a.start(ctx, acct, acct.Password, account.MethodExternal, from); err != nil {
		return "", nil, err
	}
	return token, acct, nil
}

// external returns the account of a user. It creates or adopts one if necessary. Another process may
// do the same at the same time, so it tries again after a conflict.
func (a *Accounts) external(ctx context.Context, u ExternalUser) (*account.Account, error) {
	for n := 0; ; n++ {
		acct, err := a.cfg.Identities.Account(ctx, u.Issuer, u.Subject)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return acct, err
		}
		acct, err = a.newExternal(ctx, u)
		if err == nil {
			err = a.addIdentity(WithActor(ctx, provider), acct, u)
		}
		if err == nil {
			a.cfg.Log.Info("account connected to a user of the provider", "account", acct.ID, "issuer", u.Issuer)
			return acct, nil
		}
		if n >= 2 || !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, account.ErrNameTaken) {
			return nil, toPublicError(err)
		}
	}
}

// newExternal returns an account to connect to a new user.
func (a *Accounts) newExternal(ctx context.Context, u ExternalUser) (*account.Account, error) {
	name, err := cleanName(u.Name)
	if err != nil {
		return nil, err
	}
	acct, err := a.store.ByName(ctx, name)
	switch {
	case err == nil:
		return acct, a.adopt(ctx, acct)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !u.Create:
		return nil, ErrNoAccount
	}
	acct = &account.Account{ID: uuid.NewString(), Name: name, Role: account.RoleOwner, Created: time.Now().UTC().Truncate(time.Millisecond), Limits: a.cfg.Limits}
	e := account.AuditEntry{Account: acct.ID, Actor: provider, Action: account.AuditAccountCreate, Object: acct.ID, Name: acct.Name}
	return acct, a.Audit(ctx, e, func(ctx context.Context) error { return a.store.Create(ctx, acct) })
}

// provider is the actor of changes that a sign-in provider causes.
var provider = account.Actor{Name: "Sign-in provider"}

// addIdentity connects an account to a user of a provider.
func (a *Accounts) addIdentity(ctx context.Context, acct *account.Account, u ExternalUser) error {
	e := account.AuditEntry{Account: acct.Owner(), Action: account.AuditIdentityAdd, Object: acct.ID, Name: acct.Name, Detail: u.Issuer}
	return a.Audit(ctx, e, func(ctx context.Context) error { return a.cfg.Identities.Add(ctx, u.identity(acct.ID)) })
}

// adopt prepares an existing account for its first login by a user of the provider, whose one-time
// password ends. It fails with account.ErrNameTaken if the account may belong to somebody else.
func (a *Accounts) adopt(ctx context.Context, acct *account.Account) error {
	if acct.Administrator || !acct.LastLogin.IsZero() {
		return account.ErrNameTaken
	}
	others, err := a.cfg.Identities.List(ctx, acct.ID)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return account.ErrNameTaken
	}
	if acct.Password == "" {
		return nil
	}
	if err := a.store.SetPassword(ctx, acct.ID, acct.Password, "", false); err != nil {
		return err
	}
	acct.Password, acct.MustChange = "", false
	return nil
}

// Connect lets a user of a sign-in provider log in to an account. It fails with ErrUserTaken if the
// user is connected to another account.
func (a *Accounts) Connect(ctx context.Context, id string, u ExternalUser) error {
	acct, err := a.store.Get(ctx, id)
	if err != nil {
		return err
	}
	if err = a.addIdentity(ctx, acct, u); !errors.Is(err, fs.ErrExist) {
		return err
	}
	acct, err = a.cfg.Identities.Account(ctx, u.Issuer, u.Subject)
	if err == nil && acct.ID != id {
		err = ErrUserTaken
	}
	return err
}

func (u ExternalUser) identity(id string) account.Identity {
	return account.Identity{Issuer: u.Issuer, Subject: u.Subject, Account: id, Created: time.Now().UTC().Truncate(time.Millisecond)}
}

// Identities returns the users of sign-in providers that may log in to an account.
func (a *Accounts) Identities(ctx context.Context, id string) ([]account.Identity, error) {
	if a.cfg.Identities == nil {
		return nil, nil
	}
	return a.cfg.Identities.List(ctx, id)
}

// Disconnect ends the connection of an account to a user of a sign-in provider. It fails with
// ErrOnlyLogin if nobody could log in to the account any more.
func (a *Accounts) Disconnect(ctx context.Context, id, issuer, subject string) error {
	acct, err := a.store.Get(ctx, id)
	if err != nil {
		return err
	}
	all, err := a.usable(ctx, id)
	if err != nil {
		return err
	}
	if (acct.Password == "" || a.cfg.NoPasswords) && len(all) == 0 {
		return ErrOnlyLogin
	}
	e := account.AuditEntry{Account: acct.Owner(), Action: account.AuditIdentityRemove, Object: id, Name: acct.Name, Detail: issuer}
	return a.Audit(ctx, e, func(ctx context.Context) error { return a.cfg.Identities.Remove(ctx, id, issuer, subject) })
}

// PasswordLogin reports whether users may log in with a password.
func (a *Accounts) PasswordLogin() bool { return !a.cfg.NoPasswords }

// SessionMethod returns how a session was started, or "" for a missing session.
func (a *Accounts) SessionMethod(ctx context.Context, id, token string) (string, error) {
	all, err := a.Sessions(ctx, id)
	for _, s := range all {
		if s.ID == a.SessionID(token) {
			return s.Method, err
		}
	}
	return "", err
}
