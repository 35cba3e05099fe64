package sqlstore

import (
	"context"
	"errors"
	"testing"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/internal/systest"
)

// Grants are kept while the database has one version, and not after an error.
func TestGrantCache(t *testing.T) {
	t.Parallel()
	var version int64
	var broken error
	c := newGrantCache(func(context.Context) (int64, error) { return version, broken })
	a, b := [32]byte{1}, [32]byte{2}
	read := []*account.Grant{{Key: account.Key{Hash: a, ID: "a"}}}
	known := func(hashes ...[32]byte) bool {
		t.Helper()
		found, ok, keep := c.get(t.Context(), hashes)
		if ok != (keep == nil) || ok && (len(found) != len(hashes) || found[0].ID != "a") {
			t.Fatalf("%v, %v", found, ok)
		}
		if !ok {
			keep(read)
		}
		return ok
	}
	if known(a) || !known(a) {
		t.Error("a grant is not kept")
	}
	if known(a, b) || known(b) {
		t.Error("an unknown key is kept")
	}
	if version++; known(a) || !known(a) {
		t.Error("a grant is kept although the database has changed")
	}
	_, _, keep := c.get(t.Context(), [][32]byte{b})
	version++
	known(b)
	if keep([]*account.Grant{{Key: account.Key{Hash: b}}}); known(b) {
		t.Error("a grant of an earlier version is kept")
	}
	broken = errors.New("no connection")
	if known(a) || known(a) {
		t.Error("a grant is used without a version")
	}
	if broken = nil; known(a) || !known(a) {
		t.Error("after an error, grants are from before it")
	}
	for i := range maxGrants + 1 {
		c.put(version, []*account.Grant{{Key: account.Key{Hash: [32]byte{3, byte(i), byte(i >> 8)}}}})
	}
	if len(c.grants) > maxGrants {
		t.Errorf("%d grants are kept", len(c.grants))
	}
}

// The version changes with the commits of this and of other connections, and only with those.
func TestVersion(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/x.db"
	var dbs [2]*DB
	for i := range dbs {
		db, err := Open(t.Context(), Options{Path: path})
		systest.NoError(t, err)
		defer db.Close()
		dbs[i] = db
	}
	version := func() int64 {
		v, err := dbs[0].engine.(*sqlite).version(t.Context())
		systest.NoError(t, err)
		return v
	}
	last := version()
	if now := version(); now != last {
		t.Errorf("version %d became %d", last, now)
	}
	for i, db := range dbs {
		systest.NoError(t, db.Keys().Create(t.Context(), &account.Key{ID: string(rune('a' + i)), Hash: [32]byte{byte(i + 1)}}))
		now := version()
		if now == last {
			t.Errorf("a commit by connection %d does not change the version", i)
		}
		last = now
		_, err := db.Keys().List(t.Context(), "")
		systest.NoError(t, err)
		if now := version(); now != last {
			t.Errorf("after a read by connection %d, version %d became %d", i, last, now)
		}
	}
}
