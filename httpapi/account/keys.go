// Package account keeps API keys and recognises who uses them. [Keys] is an
// httpapi.Authenticator over the keys in a database.
//
// A key is shown once, when it is made; afterwards there is only its hash and
// a prefix that tells it from others. Because a key is 160 random bits, a plain
// SHA-256 is enough: there is nothing to guess.
package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/status/sqlstore"
)

// Prefix starts every key, so that people and secret scanners recognise one.
const Prefix = "fw_"

// cacheTime is how long a key is believed without asking the database again.
// It is the longest that a key revoked by another process goes on to work.
const cacheTime = time.Second

// maxCached bounds the keys that are remembered.
const maxCached = 10000

// A Store keeps keys; *sqlstore.Keys is one.
type Store interface {
	Create(ctx context.Context, k *sqlstore.Key) error
	ByHash(ctx context.Context, hash [32]byte) (*sqlstore.Key, error)
	List(ctx context.Context, account string) ([]*sqlstore.Key, error)
	Revoke(ctx context.Context, id string) error
	Touch(ctx context.Context, id string) error
}

// Keys makes keys and recognises them. It is safe for concurrent use.
type Keys struct {
	store Store
	log   *slog.Logger

	mu    sync.Mutex
	cache map[[32]byte]cached
}

type cached struct {
	key   *sqlstore.Key // nil: there is none
	until time.Time
}

// NewKeys returns the keys in store. log may be nil.
func NewKeys(store Store, log *slog.Logger) *Keys {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Keys{store: store, log: log, cache: make(map[[32]byte]cached)}
}

// NewKey says what a key is to be like.
type NewKey struct {
	Name    string    // for people; required
	Account string    // that owns what is uploaded with it; "": an account of its own
	Expires time.Time // zero: never
}

var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// Create makes a key. raw is the key itself, which cannot be had again.
func (k *Keys) Create(ctx context.Context, n NewKey) (raw string, key *sqlstore.Key, err error) {
	if strings.TrimSpace(n.Name) == "" {
		return "", nil, errors.New("a key needs a name")
	}
	secret := make([]byte, 20)
	rand.Read(secret) // never fails, see its documentation
	raw = Prefix + strings.ToLower(encoding.EncodeToString(secret))
	key = &sqlstore.Key{
		ID: uuid.NewString(), Name: n.Name, Prefix: raw[:len(Prefix)+6], Account: n.Account,
		Hash: sha256.Sum256([]byte(raw)), Created: time.Now(), Expires: n.Expires,
	}
	if key.Account == "" {
		key.Account = key.ID
	}
	if err := k.store.Create(ctx, key); err != nil {
		return "", nil, err
	}
	return raw, key, nil
}

// List returns all keys, oldest first, also those that are not valid any more.
func (k *Keys) List(ctx context.Context) ([]*sqlstore.Key, error) { return k.store.List(ctx, "") }

// Revoke makes a key invalid: at once in this process, within a second in
// others.
func (k *Keys) Revoke(ctx context.Context, id string) error {
	err := k.store.Revoke(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no key with the id %q", id)
	}
	k.mu.Lock()
	clear(k.cache)
	k.mu.Unlock()
	return err
}

// Authenticate implements httpapi.Authenticator.
func (k *Keys) Authenticate(r *http.Request) (httpapi.Principal, error) {
	raw := httpapi.Key(r)
	if !strings.HasPrefix(raw, Prefix) || len(raw) > 100 {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	key, err := k.lookup(r.Context(), sha256.Sum256([]byte(raw)))
	if err != nil {
		return httpapi.Principal{}, err
	}
	if key == nil || !key.Valid(time.Now()) {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	if err := k.store.Touch(r.Context(), key.ID); err != nil {
		k.log.Warn("use of a key not recorded", "key", key.ID, "err", err)
	}
	return httpapi.Principal{Account: key.Account, KeyID: key.ID}, nil
}

// lookup returns the key with a hash, or nil if there is none. That the hash
// is looked up, and not compared, gives no time to measure: who does not know a
// key cannot steer its hash.
func (k *Keys) lookup(ctx context.Context, hash [32]byte) (*sqlstore.Key, error) {
	now := time.Now()
	k.mu.Lock()
	c, ok := k.cache[hash]
	k.mu.Unlock()
	if ok && now.Before(c.until) {
		return c.key, nil
	}
	key, err := k.store.ByHash(ctx, hash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // not remembered: wrong keys could fill the memory
	}
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	if len(k.cache) >= maxCached {
		clear(k.cache)
	}
	k.cache[hash] = cached{key, now.Add(cacheTime)}
	k.mu.Unlock()
	return key, nil
}

var _ httpapi.Authenticator = (*Keys)(nil)
