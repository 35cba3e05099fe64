package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

func open(t testing.TB, path string) *sqlstore.DB {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
	systest.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func request(header, value string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set(header, value)
	return r
}

func TestKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.db")
	keys := auth.NewKeys(open(t, path).Keys(), nil)
	raw, key, err := keys.Create(t.Context(), auth.NewKey{Name: "laptop"})
	systest.NoError(t, err)
	if !strings.HasPrefix(raw, "fw_") || len(raw) < 30 || !strings.HasPrefix(raw, key.Prefix) || strings.Contains(fmt.Sprintf("%+v", key), raw) {
		t.Errorf("key %q, record %+v", raw, key)
	}
	shared, _, err := keys.Create(t.Context(), auth.NewKey{Name: "server", Account: key.Account})
	systest.NoError(t, err)
	expired, _, err := keys.Create(t.Context(), auth.NewKey{Name: "old", Expires: time.Now().Add(-time.Second)})
	systest.NoError(t, err)
	if _, _, err := keys.Create(t.Context(), auth.NewKey{}); err == nil {
		t.Error("a key without a name is made")
	}
	for _, tt := range []struct {
		name string
		r    *http.Request
		want string // account; "" means refused
	}{
		{"bearer", request("Authorization", "Bearer "+raw), key.Account},
		{"lower case", request("Authorization", "bearer "+raw), key.Account},
		{"other header", request("X-D3-API-Key", raw), key.Account},
		{"second key of the account", request("Authorization", "Bearer "+shared), key.Account},
		{"nothing", httptest.NewRequest("GET", "/", nil), ""},
		{"expired", request("Authorization", "Bearer "+expired), ""},
		{"wrong", request("Authorization", "Bearer fw_"+strings.Repeat("a", 32)), ""},
		{"part of it", request("Authorization", "Bearer "+raw[:len(raw)-1]), ""},
		{"other scheme", request("Authorization", "Basic "+raw), ""},
		{"very long", request("Authorization", "Bearer fw_"+strings.Repeat("a", 10000)), ""},
	} {
		p, err := keys.Authenticate(tt.r)
		if p.Account != tt.want || (err == nil) != (tt.want != "") || err != nil && !errors.Is(err, httpapi.ErrUnauthenticated) {
			t.Errorf("%s: %+v, %v", tt.name, p, err)
		}
	}
	all, err := keys.List(t.Context(), "")
	if err != nil || len(all) != 3 || all[0].LastUsed.IsZero() {
		t.Errorf("list: %+v, %v", all, err)
	}
	if b, _ := os.ReadFile(path); strings.Contains(string(b), raw) {
		t.Error("the key itself is in the database")
	}

	systest.NoError(t, keys.Revoke(t.Context(), key.ID))
	if _, err := keys.Authenticate(request("Authorization", "Bearer "+raw)); !errors.Is(err, httpapi.ErrUnauthenticated) {
		t.Errorf("revoked key: %v", err)
	}
	if err := keys.Revoke(t.Context(), "nonsense"); err == nil {
		t.Error("an unknown key is revoked")
	}
}

// Changes and revocations by another process take effect at the next request.
func TestRevokedElsewhere(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		here, there := auth.NewKeys(connect().Keys(), nil), auth.NewKeys(connect().Keys(), nil)
		raw, key, err := here.Create(t.Context(), auth.NewKey{Name: "laptop"})
		systest.NoError(t, err)
		r := request("Authorization", "Bearer "+raw)
		if p, err := here.Authenticate(r); err != nil || p.Scopes != httpapi.DefaultScopes || p.Rate != (httpapi.Rate{}) {
			t.Fatal(p, err)
		}
		scopes, rate, name, end := httpapi.ScopeUpload, httpapi.Rate{PerSecond: 2, Burst: 3}, "phone", time.Now().Add(time.Hour)
		if _, err := there.Update(t.Context(), key.ID, auth.KeyChange{Scopes: &scopes, Rate: &rate, Name: &name, Expires: &end}); err != nil {
			t.Fatal(err)
		}
		if p, err := here.Authenticate(r); err != nil || p.Scopes != scopes || p.Rate != rate {
			t.Errorf("changed elsewhere: %+v, %v", p, err)
		}
		if k, err := here.Get(t.Context(), key.ID); err != nil || k.Name != name || k.Expires.IsZero() {
			t.Errorf("changed elsewhere: %+v, %v", k, err)
		}
		systest.NoError(t, there.Revoke(t.Context(), key.ID))
		if _, err := here.Authenticate(r); !errors.Is(err, httpapi.ErrUnauthenticated) {
			t.Errorf("revoked elsewhere: %v", err)
		}
		for _, err := range []error{here.Revoke(t.Context(), "nothing"), second(here.Get(t.Context(), "nothing")), second(here.Update(t.Context(), "nothing", auth.KeyChange{}))} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a key that is not there: %v", err)
			}
		}
	})
}

// Concurrent requests are each accepted or refused by the state after their arrival.
func TestKeysTogether(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		here, there := auth.NewKeys(connect().Keys(), nil), auth.NewKeys(connect().Keys(), nil)
		const n = 70 // more than one query takes
		raws, ids := make([]string, n), make([]string, n)
		for i := range n {
			raw, key, err := there.Create(t.Context(), auth.NewKey{Name: "k", Account: fmt.Sprint("account", i)})
			systest.NoError(t, err)
			raws[i], ids[i] = raw, key.ID
		}
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				for range 20 {
					if p, err := here.Authenticate(request("Authorization", "Bearer "+raws[i])); err != nil || p.KeyID != ids[i] {
						t.Errorf("%+v, %v", p, err)
						return
					}
				}
				if i%2 == 0 {
					return
				}
				systest.Check(t, there.Revoke(t.Context(), ids[i]))
				for range 5 {
					if p, err := here.Authenticate(request("Authorization", "Bearer "+raws[i])); !errors.Is(err, httpapi.ErrUnauthenticated) {
						t.Errorf("revoked: %+v, %v", p, err)
					}
				}
			})
			if i%7 == 0 { // some requests are cancelled
				wg.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					here.Authenticate(request("Authorization", "Bearer "+raws[i]).WithContext(ctx))
				})
			}
		}
		wg.Wait()
	})
}

func ExampleKeys() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "keys-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "filewright.db")})
	if err != nil {
		panic(err)
	}
	defer db.Close()

	keys := auth.NewKeys(db.Keys(), nil)
	raw, key, err := keys.Create(ctx, auth.NewKey{Name: "laptop", Account: "ada"})
	if err != nil {
		panic(err)
	}
	r, _ := http.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+raw)
	who, err := keys.Authenticate(r)
	fmt.Println(key.Name, who.Account, err)
	// Output: laptop ada <nil>
}
