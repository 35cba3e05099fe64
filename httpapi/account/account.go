// Package account defines accounts, their API keys and sessions, and what they may
// use. It contains no HTTP, so that a database can implement its stores:
//
//   - [Store] keeps accounts, [KeyStore] API keys, [SessionStore] sessions,
//   - [IdentityStore] keeps users of sign-in providers, [FactorStore] second factors,
//     [PasskeyStore] passkeys, [MemberStore] members and invitations,
//   - [UsageStore] reports what an account uses of its [Limits].
//
// Package sqlstore implements them all. Package auth manages accounts with them and
// authenticates requests.
package account

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// An Account owns files, operations and keys.
type Account struct {
	ID   string // owner of files and operations, and account of keys
	Name string // the login name; unique without regard to case; "": none

	// MemberOf is the account to which this login belongs, besides that account's own login; "": this
	// is an account. A member has no files, operations, keys and limits of its own. Role is what the
	// login may do in its account.
	MemberOf string
	Role     Role

	Administrator bool   // may manage all accounts; false for members
	Password      string `json:"-"` // argon2id in PHC form; "": nobody can log in
	MustChange    bool   // the password must be changed before anything else

	Created   time.Time
	LastLogin time.Time // zero: never
	Disabled  time.Time // since when; zero: enabled

	Limits Limits
}

// LogValue keeps the password out of logs.
func (a *Account) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", a.ID), slog.String("name", a.Name))
}

// Errors of a [Store].
var (
	// ErrLastAdministrator reports that a change would leave nobody who may manage
	// accounts.
	ErrLastAdministrator = errors.New("this is the last administrator")

	// ErrNameTaken reports that another account has the name.
	ErrNameTaken = errors.New("the name is taken")
)

// A Store keeps accounts. The error for a missing one matches fs.ErrNotExist.
type Store interface {
	// Create stores an account. The error matches fs.ErrExist if its ID exists,
	// and ErrNameTaken if its name does.
	Create(ctx context.Context, a *Account) error

	// HasAdministrator reports whether there is, or was, an administrator.
	HasAdministrator(ctx context.Context) (bool, error)

	// CreateFirst stores the first administrator, once per database: it returns
	// false if there is, or was, another one. It fails with ErrNameTaken.
	CreateFirst(ctx context.Context, a *Account) (created bool, err error)

	Get(ctx context.Context, id string) (*Account, error)

	// ByName returns the account of a name, without regard to case.
	ByName(ctx context.Context, name string) (*Account, error)

	// List returns all accounts without their members, oldest first.
	List(ctx context.Context) ([]*Account, error)

	// Update applies f to an account and stores the result, as one atomic step.
	// ID, Password, MustChange and LastLogin stay as they are. Disabling an
	// account ends its sessions and pauses its webhooks. Update fails with
	// ErrLastAdministrator or ErrNameTaken.
	Update(ctx context.Context, id string, f func(*Account) error) (*Account, error)

	// Delete removes an account with its sessions, keys and webhooks. Its files
	// and operations stay until they expire. It fails with ErrLastAdministrator.
	Delete(ctx context.Context, id string) error

	// SetPassword replaces the password hash old, or any if old is "*", and ends
	// all sessions of the account. If the account has another hash, the error
	// matches fs.ErrNotExist.
	SetPassword(ctx context.Context, id, old, fresh string, mustChange bool) error

	// RenewPassword replaces the hash old by another hash of the same password,
	// unless the account has another password by now. Sessions continue.
	RenewPassword(ctx context.Context, id, old, fresh string) error
}

// A Key is an API key without its secret.
type Key struct {
	ID       string
	Name     string // given by its owner, for people
	Prefix   string // start of the secret, by which users distinguish keys
	Account  string
	Hash     [32]byte // SHA-256 of the secret
	Created  time.Time
	LastUsed time.Time // to the minute; zero: never
	Expires  time.Time // zero: never
	Revoked  time.Time // zero: not revoked

	Scopes string  // names separated by spaces; "": upload operate read
	Rate   float64 // requests per second; 0: the server's default, negative: unlimited
	Burst  int     // requests at once; 0: the requests of one second

	// Addresses are the addresses and networks of clients that may use the key, separated by spaces;
	// "": all.
	Addresses string
}

// Valid reports whether the key may be used at the given time.
func (k *Key) Valid(at time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || at.Before(k.Expires))
}

// A Grant is a key with the properties of its account.
type Grant struct {
	Key
	Disabled      bool // the account is disabled
	Administrator bool // the account is an administrator
}

// A KeyStore keeps API keys. The error for a missing one matches fs.ErrNotExist.
type KeyStore interface {
	// Create stores a key, and an account without a name if the key's account
	// does not exist. If the ID or the hash exists the error matches fs.ErrExist.
	Create(ctx context.Context, k *Key) error

	// List returns the keys of an account, or all if account is "", oldest first.
	List(ctx context.Context, account string) ([]*Key, error)

	Get(ctx context.Context, id string) (*Key, error)

	// Grants returns the keys whose secrets have the given hashes, valid or not,
	// in any order. It sees all that was committed before the call.
	Grants(ctx context.Context, hashes ...[32]byte) ([]*Grant, error)

	// Update changes name, expiry, scopes, rate and addresses of the key with the ID of k.
	Update(ctx context.Context, k *Key) error

	// Revoke makes a key invalid for ever. Revoking it again changes nothing.
	Revoke(ctx context.Context, id string) error

	// Touch records that a key is used. It writes at most once a minute for each
	// key, so every request may call it.
	Touch(ctx context.Context, id string) error
}

// A Session is a login that has not ended.
type Session struct {
	Token   [32]byte // SHA-256 of the token
	Account string
	Created time.Time
	Seen    time.Time // last use, to the minute
	Address string    // of the client that logged in
	Agent   string    // User-Agent of that client
	Method  string    // how the login was made: a Method constant
}

// Values of Session.Method.
const (
	MethodPassword = ""     // name and password
	MethodExternal = "oidc" // a sign-in provider
)

// An Identity is a user of a sign-in provider with the account of that user.
type Identity struct {
	Issuer  string // URL of the provider
	Subject string // the provider's ID of the user, which never changes
	Account string
	Created time.Time
}

// An IdentityStore keeps identities. The error for a missing one matches fs.ErrNotExist.
type IdentityStore interface {
	// Account returns the account of an identity, even if that is disabled.
	Account(ctx context.Context, issuer, subject string) (*Account, error)

	// Add stores an identity. The error matches fs.ErrExist if the identity belongs to
	// any account, and fs.ErrNotExist if its account does not exist.
	Add(ctx context.Context, i Identity) error

	// List returns the identities of an account, oldest first.
	List(ctx context.Context, account string) ([]Identity, error)

	// Remove removes an identity of an account. A missing one is no error.
	Remove(ctx context.Context, account, issuer, subject string) error
}

// A SessionStore keeps sessions. The error for a missing one matches fs.ErrNotExist.
type SessionStore interface {
	// Create stores a session and records the login, if the account has the given
	// password hash and is enabled. Otherwise the error matches fs.ErrNotExist.
	Create(ctx context.Context, s *Session, password string) error

	// Get returns a session and its account, unless that is disabled.
	Get(ctx context.Context, token [32]byte) (*Session, *Account, error)

	// List returns the sessions of an account, newest first, including those that
	// are too old to be used.
	List(ctx context.Context, account string) ([]*Session, error)

	// Touch records that a session is used.
	Touch(ctx context.Context, token [32]byte, at time.Time) error

	// Delete ends a session. A missing one is no error.
	Delete(ctx context.Context, token [32]byte) error

	// DeleteOthers ends all sessions of an account except one.
	DeleteOthers(ctx context.Context, account string, keep [32]byte) error

	// DeleteBefore removes the sessions that were created before the first time or
	// last used before the second.
	DeleteBefore(ctx context.Context, created, seen time.Time) error
}

// A Factor is the second factor of an account: an authenticator app (TOTP, RFC 6238).
type Factor struct {
	Account  string
	Secret   []byte // sealed
	Created  time.Time
	Step     int64 // time step of the last accepted code
	Recovery int   // unused recovery codes
}

// A FactorStore keeps second factors. The error for a missing one matches fs.ErrNotExist.
type FactorStore interface {
	Get(ctx context.Context, account string) (*Factor, error)

	// Put stores the factor of an account in place of any earlier one, with the SHA-256 of
	// its recovery codes.
	Put(ctx context.Context, f *Factor, recovery [][32]byte) error

	// UseStep records the time step of an accepted code. If that or a later one is
	// recorded, the error matches fs.ErrNotExist.
	UseStep(ctx context.Context, account string, step int64) error

	// UseRecovery removes a recovery code. If there is no such code, the error matches
	// fs.ErrNotExist.
	UseRecovery(ctx context.Context, account string, code [32]byte) error

	// Delete removes a factor with its recovery codes. A missing one is no error.
	Delete(ctx context.Context, account string) error
}
