package account_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status/sqlstore"
)

func open(t testing.TB, path string) *sqlstore.DB {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
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
	keys := account.NewKeys(open(t, path).Keys(), nil)
	raw, key, err := keys.Create(t.Context(), account.NewKey{Name: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(raw, "fw_") || len(raw) < 30 || !strings.HasPrefix(raw, key.Prefix) || strings.Contains(fmt.Sprintf("%+v", key), raw) {
		t.Errorf("key %q, record %+v", raw, key)
	}
	shared, _, err := keys.Create(t.Context(), account.NewKey{Name: "server", Account: key.Account})
	if err != nil {
		t.Fatal(err)
	}
	expired, _, err := keys.Create(t.Context(), account.NewKey{Name: "old", Expires: time.Now().Add(-time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := keys.Create(t.Context(), account.NewKey{}); err == nil {
		t.Error("a key without a name is made")
	}
	for _, tt := range []struct {
		name string
		r    *http.Request
		want string // account; "" is refused
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

	if err := keys.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Authenticate(request("Authorization", "Bearer "+raw)); !errors.Is(err, httpapi.ErrUnauthenticated) {
		t.Errorf("revoked key: %v", err)
	}
	if err := keys.Revoke(t.Context(), "nonsense"); err == nil {
		t.Error("an unknown key is revoked")
	}
}

// A key that another process revokes stops working within seconds.
func TestRevokedElsewhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.db")
	here, there := account.NewKeys(open(t, path).Keys(), nil), account.NewKeys(open(t, path).Keys(), nil)
	raw, key, err := here.Create(t.Context(), account.NewKey{Name: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.Authenticate(request("Authorization", "Bearer "+raw)); err != nil {
		t.Fatal(err)
	}
	if err := there.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := here.Authenticate(request("Authorization", "Bearer "+raw)); err != nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("it goes on to work")
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

	keys := account.NewKeys(db.Keys(), nil)
	raw, key, err := keys.Create(ctx, account.NewKey{Name: "laptop", Account: "ada"})
	if err != nil {
		panic(err)
	}
	r, _ := http.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+raw)
	who, err := keys.Authenticate(r)
	fmt.Println(key.Name, who.Account, err)
	// Output: laptop ada <nil>
}
