package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
)

// Prefix is the start of every key, by which users and secret scanners recognise keys.
const Prefix = "fw_"

// Keys creates and authenticates keys. It is safe for concurrent use.
type Keys struct {
	store account.KeyStore
	log   *slog.Logger
	audit func(context.Context, account.AuditEntry, func(context.Context) error) error

	trustProxy bool // as Config.TrustProxy

	lookup lookup
}

// NewKeys returns the keys in store. log may be nil.
func NewKeys(store account.KeyStore, log *slog.Logger) *Keys {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	k := &Keys{store: store, log: log, audit: func(ctx context.Context, _ account.AuditEntry, change func(context.Context) error) error {
		return change(ctx)
	}}
	k.lookup.ask = store.Grants
	return k
}

// NewKey describes a key to create.
type NewKey struct {
	Name    string        // for people; required
	Account string        // owner of files uploaded with the key; "": a new account
	Expires time.Time     // zero: never
	Scopes  httpapi.Scope // permissions; 0: httpapi.DefaultScopes
	Rate    httpapi.Rate  // zero: the default of the service

	Addresses []netip.Prefix // of clients that may use the key; none: all

	// Replaces is the ID of the key that this one replaces; "": none.
	Replaces string
}

// keyName normalizes and validates the name of a key.
func keyName(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", httpapi.Invalid("name", "an API key must have a name")
	case utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, unicode.IsControl):
		return "", httpapi.Invalid("name", "the name of an API key must have at most %d characters and no control characters", maxName)
	}
	return name, nil
}

// maxName is the largest length of a name in characters.
const maxName = 100

var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// Create creates a key. raw is the key itself, which is not stored.
func (k *Keys) Create(ctx context.Context, n NewKey) (raw string, key *account.Key, err error) {
	name, err := keyName(n.Name)
	if err != nil {
		return "", nil, err
	}
	addresses, err := cleanAddresses(n.Addresses)
	if err != nil {
		return "", nil, err
	}
	secret := make([]byte, 20)
	rand.Read(secret) // never fails (crypto/rand)
	raw = Prefix + strings.ToLower(encoding.EncodeToString(secret))
	key = &account.Key{
		ID: uuid.NewString(), Name: name, Prefix: raw[:len(Prefix)+6], Account: n.Account,
		Hash: sha256.Sum256([]byte(raw)), Created: time.Now(), Expires: n.Expires,
		Scopes: cmp.Or(n.Scopes, httpapi.DefaultScopes).String(), Rate: n.Rate.PerSecond, Burst: n.Rate.Burst, Addresses: FormatAddresses(addresses),
	}
	key.Account = cmp.Or(key.Account, key.ID)
	e := keyEntry(account.AuditKeyCreate, key, key.Scopes)
	if n.Replaces != "" {
		e.Action, e.Detail = account.AuditKeyRoll, "replaces "+n.Replaces
	}
	if err := k.audit(ctx, e, func(ctx context.Context) error { return k.store.Create(ctx, key) }); err != nil {
		return "", nil, err
	}
	return raw, key, nil
}

func keyEntry(action string, k *account.Key, detail string) account.AuditEntry {
	return account.AuditEntry{Account: k.Account, Action: action, Object: k.ID, Name: k.Name, Detail: detail}
}

// Get returns a key. The error for a missing key matches fs.ErrNotExist.
func (k *Keys) Get(ctx context.Context, id string) (*account.Key, error) {
	return k.store.Get(ctx, id)
}

// List returns the keys of an account, or all keys if account is "", oldest first. It includes
// expired and revoked keys.
func (k *Keys) List(ctx context.Context, account string) ([]*account.Key, error) {
	return k.store.List(ctx, account)
}

// A KeyChange describes changes to a key. Nil fields stay unchanged.
type KeyChange struct {
	Name    *string
	Expires *time.Time // zero: never
	Scopes  *httpapi.Scope
	Rate    *httpapi.Rate

	Addresses *[]netip.Prefix // empty: all
}

// Update changes a key in all processes at once, and returns it. The error for a missing key
// matches fs.ErrNotExist.
func (k *Keys) Update(ctx context.Context, id string, c KeyChange) (*account.Key, error) {
	key, err := k.store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	old := *key
	if c.Name != nil {
		if key.Name, err = keyName(*c.Name); err != nil {
			return nil, err
		}
	}
	if c.Expires != nil {
		key.Expires = *c.Expires
	}
	if c.Scopes != nil {
		key.Scopes = c.Scopes.String()
	}
	if c.Rate != nil {
		key.Rate, key.Burst = c.Rate.PerSecond, c.Rate.Burst
	}
	if c.Addresses != nil {
		list, err := cleanAddresses(*c.Addresses)
		if err != nil {
			return nil, err
		}
		key.Addresses = FormatAddresses(list)
	}
	e := keyEntry(account.AuditKeyUpdate, key, keyChanges(&old, key))
	return key, k.audit(ctx, e, func(ctx context.Context) error { return k.store.Update(ctx, key) })
}

// keyChanges names the properties in which two versions of a key differ.
func keyChanges(old, key *account.Key) string {
	var list []string
	if old.Name != key.Name {
		list = append(list, "name")
	}
	if !old.Expires.Equal(key.Expires) {
		list = append(list, "expiry")
	}
	if old.Scopes != key.Scopes {
		list = append(list, "permissions: "+key.Scopes)
	}
	if old.Rate != key.Rate || old.Burst != key.Burst {
		list = append(list, "rate")
	}
	if old.Addresses != key.Addresses {
		list = append(list, "addresses: "+cmp.Or(key.Addresses, "all"))
	}
	return strings.Join(list, ", ")
}

// Revoke makes a key invalid. After it has returned, all processes refuse requests with the key.
func (k *Keys) Revoke(ctx context.Context, id string) error {
	key, err := k.store.Get(ctx, id)
	if err == nil {
		err = k.audit(ctx, keyEntry(account.AuditKeyRevoke, key, ""), func(ctx context.Context) error { return k.store.Revoke(ctx, id) })
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no API key has the ID %q: %w", id, fs.ErrNotExist)
	}
	return err
}

// Authenticate implements httpapi.Authenticator.
func (k *Keys) Authenticate(r *http.Request) (httpapi.Principal, error) {
	raw := httpapi.Key(r)
	if !strings.HasPrefix(raw, Prefix) || len(raw) > 100 {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	// Looking up the hash, not comparing it, allows no timing attack: without the key nobody can
	// control its hash.
	g, err := k.lookup.get(r.Context(), sha256.Sum256([]byte(raw)))
	if err != nil {
		return httpapi.Principal{}, err
	}
	if g == nil || !g.Valid(time.Now()) {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	if g.Disabled {
		return httpapi.Principal{}, errDisabled
	}
	if err := k.checkAddress(r, &g.Key); err != nil {
		return httpapi.Principal{}, err
	}
	scopes, err := httpapi.ParseScope(g.Scopes)
	if err != nil {
		return httpapi.Principal{}, fmt.Errorf("key %s: %w", g.ID, err)
	}
	if err := k.store.Touch(r.Context(), g.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.log.Warn("cannot record the use of an API key", "key", g.ID, "err", err)
	}
	return httpapi.Principal{
		Account: g.Account, KeyID: g.ID, Scopes: scopes, Administrator: g.Administrator,
		Rate: httpapi.Rate{PerSecond: g.Rate, Burst: g.Burst},
	}, nil
}

// errDisabled is the error for a key of a disabled account.
var errDisabled error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "the account is disabled")

var _ httpapi.Authenticator = (*Keys)(nil)
