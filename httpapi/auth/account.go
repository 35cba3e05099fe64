// Package auth manages accounts with their logins and API keys, and authenticates
// requests.
//
//	accounts := auth.New(auth.Config{
//		Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db,
//	})
//	name, password, err := accounts.Bootstrap(ctx) // the first administrator, once
//	...
//	svc, err := httpapi.New(httpapi.Config{Auth: accounts, ...})
//
// [Accounts] is an httpapi.Authenticator for API keys and session cookies. [Keys] is an
// authenticator for API keys only.
//
// # Keys
//
// A key is shown once, when it is created. The database keeps its hash and a prefix by which users
// distinguish keys. A key has 160 random bits, so plain SHA-256 suffices: nobody can guess it.
// Every request looks up its key in the database. So all processes refuse revoked keys, and keys of
// disabled accounts, at once.
//
// # Logins
//
// Passwords are hashed with argon2id and the parameters that OWASP recommends (19 MiB, two passes).
// A login updates a hash with other parameters. Only a few hashes are computed at a time, so that
// logins cannot exhaust memory. Failed logins are limited by name and by address; the response time
// does not reveal whether a name exists. A session is a random token; the database keeps only its
// SHA-256. Passkeys (WebAuthn) log in alone, or after a password.
package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/internal/gcra"
	"github.com/filewright/filewright/internal/lastrun"
)

// Config configures [Accounts]. The four stores are required; *sqlstore.DB provides all of them.
type Config struct {
	Accounts account.Store
	Keys     account.KeyStore
	Sessions account.SessionStore
	Usage    account.UsageStore

	// Identities enables logins with a sign-in provider; nil: there are none.
	Identities account.IdentityStore

	// Factors and Secrets enable second factors; nil: there are none. Secrets seal those of
	// authenticator apps: the first seals, all open.
	Factors account.FactorStore
	Secrets [][]byte

	// Passkeys enables passkeys, for logins and as second factors; nil: there are none. They
	// require Factors.
	Passkeys account.PasskeyStore

	// Members enables members of accounts; nil: each account has one login.
	Members account.MemberStore

	// Audit keeps the audit log; nil: changes are not recorded.
	Audit account.AuditStore

	// Breached is a list of passwords that users may not choose; nil: only the most common ones are
	// refused.
	Breached *PasswordList

	// NoPasswords refuses logins with a password.
	NoPasswords bool

	// Limits apply to accounts that are created without limits.
	Limits account.Limits

	SessionTime time.Duration // lifetime of an unused session; 0: 7 days
	SessionLife time.Duration // lifetime of any session; 0: 30 days

	// BaseURL is the service's public address. nil means the address of each request; proxy headers
	// count only if TrustProxy is set. Requests with a session must come from this address.
	BaseURL    *url.URL
	TrustProxy bool

	Log *slog.Logger // nil discards
}

// Accounts manages accounts and authenticates requests. It is safe for concurrent use.
type Accounts struct {
	cfg      Config
	keys     *Keys
	store    account.Store
	sessions account.SessionStore
	attempts *throttle
	factors  *factors  // nil: there are no second factors
	passkeys *passkeys // nil: there are no passkeys
	hashing  hashing
	refusals *gcra.Buckets // that are recorded
	swept    lastrun.Record
}

// New returns an [Accounts] for the stores in c.
func New(c Config) *Accounts {
	c.SessionTime = cmp.Or(c.SessionTime, 7*24*time.Hour)
	c.SessionLife = cmp.Or(c.SessionLife, 30*24*time.Hour)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	a := &Accounts{factors: newFactors(c.Factors, c.Secrets), passkeys: newPasskeys(c), cfg: c, keys: NewKeys(c.Keys, c.Log), store: c.Accounts, sessions: c.Sessions, attempts: newThrottle(), hashing: newHashing(), refusals: gcra.New()}
	a.keys.audit, a.keys.trustProxy = a.Audit, c.TrustProxy
	return a
}

// DefaultLimits returns the limits of accounts that are created without limits.
func (a *Accounts) DefaultLimits() account.Limits { return a.cfg.Limits }

// Keys returns the API keys of all accounts.
func (a *Accounts) Keys() *Keys { return a.keys }

// Errors of [Accounts], which [httpapi.Service.Fail] sends to clients.
var (
	// ErrCredentials reports a wrong name or password.
	ErrCredentials error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "wrong name or password")

	// ErrWeakPassword reports a new password that is too short, too long, too common or unchanged.
	ErrWeakPassword error = httpapi.Invalid("password", "a password must have %d to %d characters, and must not be the name, the old password or a common password", minPassword, maxPassword)

	// ErrBreached reports a new password that is in Config.Breached.
	ErrBreached error = httpapi.Invalid("password", "this password is in a list of passwords that attackers know; choose another")

	// ErrNoPasswords reports a login with a password where Config.NoPasswords is set.
	ErrNoPasswords error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "this server does not accept passwords; use the sign-in provider")

	// ErrNoSession reports a missing or expired session.
	ErrNoSession error = httpapi.NewProblem(http.StatusUnauthorized, "unauthorized", "the session has expired; log in again")
)

// firstAdministrator is the name of the account that Bootstrap creates.
const firstAdministrator = "admin"

// Bootstrap creates the first administrator, "admin". It returns a one-time password, which must be
// changed at the first login. If the database has or had an administrator, name and password are
// empty. Of several concurrent calls, one creates the account.
func (a *Accounts) Bootstrap(ctx context.Context) (name, password string, err error) {
	if has, err := a.store.HasAdministrator(ctx); err != nil || has {
		return "", "", err
	}
	password = oneTimePassword()
	hash, err := a.hashing.password(ctx, password)
	if err != nil {
		return "", "", err
	}
	acct := &account.Account{ID: uuid.NewString(), Name: firstAdministrator, Administrator: true, Password: hash, MustChange: true, Created: time.Now()}
	for n := 0; ; n++ {
		switch made, err := a.store.CreateFirst(ctx, acct); {
		case made:
			return acct.Name, password, nil
		case errors.Is(err, account.ErrNameTaken) && n < 10:
			acct.Name = firstAdministrator + "-" + acct.ID[:4+n]
		default:
			return "", "", err
		}
	}
}

// NewAccount describes an account to create.
type NewAccount struct {
	Name          string // login name; required
	Administrator bool
	Limits        *account.Limits // nil: Config.Limits

	// ID is the owner of files and operations; "": a random ID. Set it for an account whose files
	// already exist.
	ID string
}

// Create creates an account. It returns a one-time password, which must be changed at the first
// login and is not shown again. A missing or taken name is an error that [httpapi.Service.Fail]
// sends.
func (a *Accounts) Create(ctx context.Context, n NewAccount) (acct *account.Account, password string, err error) {
	name, err := cleanName(n.Name)
	if err != nil {
		return nil, "", err
	}
	password = oneTimePassword()
	hash, err := a.hashing.password(ctx, password)
	if err != nil {
		return nil, "", err
	}
	acct = &account.Account{
		ID: cmp.Or(n.ID, uuid.NewString()), Name: name, Role: account.RoleOwner, Administrator: n.Administrator, Password: hash, MustChange: true,
		Created: time.Now().UTC().Truncate(time.Millisecond), Limits: a.cfg.Limits,
	}
	if n.Limits != nil {
		acct.Limits = *n.Limits
	}
	if err := checkLimits(acct.Limits); err != nil {
		return nil, "", err
	}
	e := account.AuditEntry{Account: acct.ID, Action: account.AuditAccountCreate, Object: acct.ID, Name: acct.Name}
	if acct.Administrator {
		e.Detail = "administrator"
	}
	if err := a.Audit(ctx, e, func(ctx context.Context) error { return a.store.Create(ctx, acct) }); err != nil {
		return nil, "", toPublicError(err)
	}
	return acct, password, nil
}

// cleanName normalizes and validates a name.
func cleanName(name string) (string, error) {
	name = strings.TrimSpace(name)
	bad := func(r rune) bool { return !unicode.IsPrint(r) || r == '/' }
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, bad) {
		return "", httpapi.Invalid("name", "an account name must have 1 to %d printable characters and no slash", maxName)
	}
	return name, nil
}

func checkLimits(l account.Limits) error {
	for _, v := range []struct {
		name string
		n    int64
	}{{"stored_bytes", l.StoredBytes}, {"bytes_per_day", l.BytesPerDay}, {"operations_per_day", l.OperationsPerDay}, {"parallel", int64(l.Parallel)}} {
		if v.n < 0 || v.n > 1<<62 {
			return httpapi.Invalid("limits."+v.name, "a limit must not be negative; 0 means no limit")
		}
	}
	return nil
}

// toPublicError turns store errors into errors for clients.
func toPublicError(err error) error {
	switch {
	case errors.Is(err, account.ErrNameTaken):
		return taken{httpapi.NewProblem(http.StatusConflict, "conflict", "another account already has this name"), err}
	case errors.Is(err, account.ErrLastOwner):
		return taken{httpapi.NewProblem(http.StatusConflict, "conflict", "this is the last owner of the account; make another member an owner first"), err}
	case errors.Is(err, account.ErrTooMany):
		return taken{httpapi.NewProblem(http.StatusConflict, "conflict", "the account has too many members and invitations; remove some first"), err}
	case errors.Is(err, account.ErrLastAdministrator):
		return taken{httpapi.NewProblem(http.StatusConflict, "conflict", "this is the last administrator that can log in; one must remain"), err}
	}
	return err
}

// taken is both a problem for clients and an error for programs.
type taken struct {
	*httpapi.Problem
	err error
}

func (t taken) Error() string   { return t.err.Error() }
func (t taken) Unwrap() []error { return []error{t.Problem, t.err} }

// Get returns an account, not a member of one. The error for a missing account matches fs.ErrNotExist.
func (a *Accounts) Get(ctx context.Context, id string) (*account.Account, error) {
	acct, err := a.store.Get(ctx, id)
	if err == nil && acct.MemberOf != "" {
		acct, err = nil, fmt.Errorf("account %q: %w", id, fs.ErrNotExist)
	}
	return acct, err
}

// ByName returns the account or member of a name, without regard to case. The error for a missing account
// matches fs.ErrNotExist.
func (a *Accounts) ByName(ctx context.Context, name string) (*account.Account, error) {
	return a.store.ByName(ctx, strings.TrimSpace(name))
}

// List returns all accounts, oldest first.
func (a *Accounts) List(ctx context.Context) ([]*account.Account, error) { return a.store.List(ctx) }

// A Change describes changes to an account. Nil fields stay unchanged.
type Change struct {
	Name          *string
	Administrator *bool
	Disabled      *bool // its keys and sessions are refused, and its webhooks pause
	Limits        *account.Limits
}

// Update changes an account in all processes at once, and returns it. The error for a missing
// account matches fs.ErrNotExist. Disabling or demoting the last administrator fails with
// account.ErrLastAdministrator.
func (a *Accounts) Update(ctx context.Context, id string, c Change) (*account.Account, error) {
	name := ""
	if c.Name != nil {
		var err error
		if name, err = cleanName(*c.Name); err != nil {
			return nil, err
		}
	}
	if c.Limits != nil {
		if err := checkLimits(*c.Limits); err != nil {
			return nil, err
		}
	}
	var acct *account.Account
	err := a.Audit(ctx, a.updateEntry(ctx, id, c), func(ctx context.Context) (err error) {
		acct, err = a.store.Update(ctx, id, func(acct *account.Account) error { return c.apply(acct, name) })
		return err
	})
	return acct, toPublicError(err)
}

// updateEntry returns the audit entry of a change of an account.
func (a *Accounts) updateEntry(ctx context.Context, id string, c Change) account.AuditEntry {
	e := a.entry(ctx, account.AuditAccountUpdate, id)
	var changed []string
	if c.Disabled != nil {
		e.Action = account.AuditAccountEnable
		if *c.Disabled {
			e.Action = account.AuditAccountDisable
		}
	}
	if c.Name != nil {
		changed = append(changed, "name")
	}
	if c.Administrator != nil {
		changed = append(changed, fmt.Sprintf("administrator: %t", *c.Administrator))
	}
	if c.Limits != nil {
		changed = append(changed, "limits")
	}
	e.Detail = strings.Join(changed, ", ")
	return e
}

// apply changes an account; name is the normalized c.Name.
func (c *Change) apply(acct *account.Account, name string) error {
	if c.Name != nil {
		acct.Name = name
	}
	if c.Administrator != nil {
		acct.Administrator = *c.Administrator
	}
	switch {
	case c.Disabled == nil:
	case !*c.Disabled:
		acct.Disabled = time.Time{}
	case acct.Disabled.IsZero():
		acct.Disabled = time.Now().UTC().Truncate(time.Millisecond)
	}
	if c.Limits != nil {
		acct.Limits = *c.Limits
	}
	return nil
}

// Delete removes an account with its keys and sessions. Its files and operations stay until they
// expire, visible to nobody. The error for a missing account matches fs.ErrNotExist, for the last
// administrator account.ErrLastAdministrator.
func (a *Accounts) Delete(ctx context.Context, id string) error {
	return toPublicError(a.Audit(ctx, a.entry(ctx, account.AuditAccountDelete, id), func(ctx context.Context) error { return a.store.Delete(ctx, id) }))
}

// ResetPassword sets a one-time password, which must be changed at the next login, and ends the
// account's sessions. The error for a missing account matches fs.ErrNotExist. An account without a
// name cannot have a password.
func (a *Accounts) ResetPassword(ctx context.Context, id string) (password string, err error) {
	acct, err := a.store.Get(ctx, id)
	if err != nil {
		return "", err
	}
	if acct.Name == "" {
		return "", httpapi.Invalid("name", "the account has no login name; set one first")
	}
	password = oneTimePassword()
	hash, err := a.hashing.password(ctx, password)
	if err != nil {
		return "", err
	}
	e := account.AuditEntry{Account: acct.Owner(), Action: account.AuditPasswordReset, Object: acct.ID, Name: acct.Name}
	return password, a.Audit(ctx, e, func(ctx context.Context) error { return a.store.SetPassword(ctx, id, "*", hash, true) })
}

// ChangePassword replaces the old password, ends all sessions of the account and starts a new
// session, whose token it returns. It fails with ErrCredentials if old is wrong, with
// ErrWeakPassword and with ErrBreached. Attempts are limited as in [Accounts.Login].
func (a *Accounts) ChangePassword(ctx context.Context, id, old, fresh string, from Client) (token string, err error) {
	acct, err := a.store.Get(ctx, id)
	if err != nil {
		return "", err
	}
	if err := a.checkNew(acct.Name, old, fresh); err != nil {
		return "", err
	}
	release, err := a.attempts.begin("id\x00"+id, "")
	if err != nil {
		return "", err
	}
	hash := ""
	e := account.AuditEntry{Account: acct.Owner(), Action: account.AuditPasswordChange, Object: id, Name: acct.Name}
	err = a.Audit(ctx, e, func(ctx context.Context) error {
		ok, err := a.hashing.check(ctx, acct.Password, old)
		if err != nil {
			return err
		}
		if !ok {
			return ErrCredentials
		}
		release()
		if hash, err = a.hashing.password(ctx, fresh); err != nil {
			return err
		}
		err = a.store.SetPassword(ctx, id, acct.Password, hash, false)
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrCredentials // a concurrent change won
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return a.begin(ctx, id, hash, account.MethodPassword, from)
}

// checkNew fails with ErrWeakPassword or ErrBreached for a new password that users may not choose.
func (a *Accounts) checkNew(name, old, fresh string) error {
	if weak(name, old, fresh) {
		return ErrWeakPassword
	}
	if a.cfg.Breached == nil {
		return nil
	}
	known, err := a.cfg.Breached.Contains(fresh)
	if err == nil && known {
		err = ErrBreached
	}
	return err
}

// Login checks name and password, starts a session and returns its token. If the account has a second
// factor or a passkey, it returns a *CodeRequired error instead, and [Accounts.LoginCode] or
// [Accounts.LoginPasskey] starts the session. from is the client; see
// [Accounts.From]. It fails with ErrCredentials for any wrong input, and with an [httpapi.Problem]
// of status 429 after too many attempts.
func (a *Accounts) Login(ctx context.Context, name, password string, from Client) (token string, acct *account.Account, err error) {
	if a.cfg.NoPasswords {
		return "", nil, ErrNoPasswords
	}
	name = strings.TrimSpace(name)
	if len(name) > 8*maxName || len(password) > 8*maxPassword {
		return "", nil, ErrCredentials
	}
	release, err := a.attempts.begin("name\x00"+strings.ToLower(name), "from\x00"+from.Address)
	if err != nil {
		return "", nil, err
	}
	hash := ""
	for again := true; ; again = false {
		acct, err = a.store.ByName(ctx, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, err
		}
		hash = ""
		if acct != nil && acct.Disabled.IsZero() {
			hash = acct.Password
		}
		ok, err := a.hashing.check(ctx, hash, password)
		if err != nil {
			return "", nil, err
		}
		if !ok {
			a.cfg.Log.Warn("login refused", "from", from.Address)
			return "", nil, a.login(ctx, acct, account.MethodPassword, from, func(context.Context) error { return ErrCredentials })
		}
		needed, err := a.neededFactor(ctx, acct.ID)
		if err != nil {
			return "", nil, err
		}
		if needed != nil {
			release()
			return "", nil, a.needCode(ctx, acct, password, needed)
		}
		token, err = a.start(ctx, acct, hash, account.MethodPassword, from)
		if err == nil {
			break
		}
		if !again || !errors.Is(err, ErrCredentials) {
			return "", nil, err
		}
		// Only the hash may have changed, because a concurrent login has renewed it.
	}
	release()
	if outdated(hash) {
		a.renew(ctx, acct.ID, hash, password)
	}
	if acct, err = a.store.Get(ctx, acct.ID); err != nil {
		return "", nil, err
	}
	return token, acct, nil
}

// renew stores a new hash of the password with the current parameters. A failure is harmless: the
// next login tries again.
func (a *Accounts) renew(ctx context.Context, id, old, password string) {
	hash, err := a.hashing.password(ctx, password)
	if err == nil {
		err = a.store.RenewPassword(ctx, id, old, hash)
	}
	if err != nil {
		a.cfg.Log.Warn("password hash not renewed", "account", id, "err", err)
	}
}

// start is begin for a login, which it records.
func (a *Accounts) start(ctx context.Context, acct *account.Account, hash, method string, from Client) (token string, err error) {
	if err := a.dropSessions(ctx); err != nil {
		return "", err
	}
	err = a.login(ctx, acct, method, from, func(ctx context.Context) (err error) {
		token, err = a.create(ctx, acct.ID, hash, method, from)
		return err
	})
	return token, err
}

// begin starts a session of an account with the given password hash.
func (a *Accounts) begin(ctx context.Context, id, hash, method string, from Client) (token string, err error) {
	if err := a.dropSessions(ctx); err != nil {
		return "", err
	}
	return a.create(ctx, id, hash, method, from)
}

// dropSessions removes the sessions that have ended.
func (a *Accounts) dropSessions(ctx context.Context) error {
	now := time.Now()
	return a.sessions.DeleteBefore(ctx, now.Add(-a.cfg.SessionLife), now.Add(-a.cfg.SessionTime))
}

func (a *Accounts) create(ctx context.Context, id, hash, method string, from Client) (token string, err error) {
	now := time.Now()
	secret := make([]byte, 32)
	rand.Read(secret) // never fails (crypto/rand)
	token = strings.ToLower(encoding.EncodeToString(secret))
	err = a.sessions.Create(ctx, &account.Session{Token: sha256.Sum256([]byte(token)), Account: id, Created: now, Seen: now, Address: from.Address, Agent: clip(from.Agent), Method: method}, hash)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrCredentials // meanwhile disabled, or the password has changed
	}
	return token, err
}

// A Client is the origin of a login.
type Client struct {
	Address string
	Agent   string // User-Agent of the browser
}

// clip limits the length of a User-Agent.
func clip(agent string) string {
	const maxLength = 300
	if len(agent) > maxLength {
		agent = agent[:maxLength]
	}
	return strings.ToValidUTF8(agent, "")
}

// Session returns the account of a session. It fails with ErrNoSession if the session is unknown or
// has ended, or if the account is disabled.
func (a *Accounts) Session(ctx context.Context, token string) (*account.Account, error) {
	if len(token) != sessionLength {
		return nil, ErrNoSession
	}
	hash := sha256.Sum256([]byte(token))
	s, acct, err := a.sessions.Get(ctx, hash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoSession
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if !a.live(s, now) {
		return nil, ErrNoSession
	}
	if now.Sub(s.Seen) > time.Minute {
		if err := a.sessions.Touch(ctx, hash, now); err != nil {
			a.cfg.Log.Warn("cannot record the use of a session", "account", acct.ID, "err", err)
		}
	}
	if s.Method != account.MethodPassword {
		acct.MustChange = false // the user need not know the one-time password
	}
	if err := a.withAccount(ctx, acct); err != nil {
		return nil, err
	}
	return acct, nil
}

func (a *Accounts) live(s *account.Session, now time.Time) bool {
	return now.Sub(s.Seen) <= a.cfg.SessionTime && now.Sub(s.Created) <= a.cfg.SessionLife
}

// A Session is a current login, as its owner sees it.
type Session struct {
	ID       string // not the token
	Created  time.Time
	LastUsed time.Time // to the minute
	From     string    // client address
	Agent    string    // User-Agent of the browser
	Method   string    // account.MethodPassword or another method
}

// SessionID returns the session ID of a token.
func (a *Accounts) SessionID(token string) string { return sessionID(sha256.Sum256([]byte(token))) }

func sessionID(hash [32]byte) string { return hex.EncodeToString(hash[:8]) }

// Sessions returns the sessions of an account, newest first.
func (a *Accounts) Sessions(ctx context.Context, id string) ([]Session, error) {
	all, err := a.sessions.List(ctx, id)
	list := []Session{}
	for _, s := range all {
		if a.live(s, time.Now()) {
			list = append(list, Session{sessionID(s.Token), s.Created, s.Seen, s.Address, s.Agent, s.Method})
		}
	}
	return list, err
}

// EndSession ends a session of an account. The error for a missing session matches fs.ErrNotExist.
func (a *Accounts) EndSession(ctx context.Context, id, session string) error {
	all, err := a.sessions.List(ctx, id)
	if err != nil {
		return err
	}
	for _, s := range all {
		if sessionID(s.Token) == session {
			return a.Audit(ctx, a.entry(ctx, account.AuditSessionEnd, id), func(ctx context.Context) error { return a.sessions.Delete(ctx, s.Token) })
		}
	}
	return fmt.Errorf("session %q: %w", session, fs.ErrNotExist)
}

// EndOtherSessions ends all sessions of an account except that of token.
func (a *Accounts) EndOtherSessions(ctx context.Context, id, token string) error {
	e := a.entry(ctx, account.AuditSessionEnd, id)
	e.Detail = "all other sessions"
	return a.Audit(ctx, e, func(ctx context.Context) error {
		return a.sessions.DeleteOthers(ctx, id, sha256.Sum256([]byte(token)))
	})
}

// Usage returns the finished items of an account by UTC day and action, for the days from and to
// and all days between them.
func (a *Accounts) Usage(ctx context.Context, id string, from, to time.Time) ([]account.Usage, error) {
	return a.cfg.Usage.Usage(ctx, id, from, to)
}

// UsageBy is Usage by API key, format or error; see [account.UsageStore].
func (a *Accounts) UsageBy(ctx context.Context, id string, kind account.UsageKind, from, to time.Time) ([]account.Usage, error) {
	return a.cfg.Usage.UsageBy(ctx, id, kind, from, to)
}

// Days returns the uploaded bytes and started operations of an account by UTC day, for the days
// from and to and all days between them.
func (a *Accounts) Days(ctx context.Context, id string, from, to time.Time) ([]account.Day, error) {
	return a.cfg.Usage.Days(ctx, id, from, to)
}

// Used returns what an account currently uses of its limits.
func (a *Accounts) Used(ctx context.Context, id string) (account.Used, error) {
	return a.cfg.Usage.Used(ctx, id)
}

// sessionLength is the number of characters of a token: 256 bits.
const sessionLength = 52

// Logout ends a session. A missing session is no error.
func (a *Accounts) Logout(ctx context.Context, token string) error {
	hash := sha256.Sum256([]byte(token))
	if a.cfg.Audit == nil {
		return a.sessions.Delete(ctx, hash)
	}
	_, acct, err := a.sessions.Get(ctx, hash)
	if errors.Is(err, fs.ErrNotExist) { // of a disabled account, or ended
		return a.sessions.Delete(ctx, hash)
	}
	if err != nil {
		return err
	}
	e := account.AuditEntry{Account: acct.Owner(), Action: account.AuditLogout, Object: acct.ID, Name: acct.Name}
	return a.Audit(ctx, e, func(ctx context.Context) error { return a.sessions.Delete(ctx, hash) })
}
