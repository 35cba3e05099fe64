package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

func TestParseAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "",
		" 192.0.2.1,\n2001:db8::1 ":             "192.0.2.1 2001:db8::1",
		"192.0.2.77/24":                         "192.0.2.0/24",
		"10.0.0.0/8 10.1.0.0/16 10.0.0.1":       "10.0.0.0/8",
		"10.1.0.0/16 10.0.0.0/8":                "10.0.0.0/8",
		"::ffff:192.0.2.1 ::ffff:10.0.0.0/104":  "10.0.0.0/8 192.0.2.1",
		"0.0.0.0/0 ::/0":                        "0.0.0.0/0 ::/0",
		"192.0.2.1/32 2001:db8::/32 2001:db8::": "192.0.2.1 2001:db8::/32",
	} {
		list, err := auth.ParseAddresses(text)
		if got := auth.FormatAddresses(list); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "192.0.2.300", "192.0.2.0/33", "fe80::1%eth0", "192.0.2.1-192.0.2.9", "example.com", strings.Repeat("192.0.2.1/x ", 2)} {
		var p *httpapi.Problem
		if _, err := auth.ParseAddresses(text); !errors.As(err, &p) || p.Param != "addresses" {
			t.Errorf("%q: %v", text, err)
		}
	}
	var many []string
	for i := range 51 {
		many = append(many, netip.AddrFrom4([4]byte{10, 0, byte(i), 1}).String())
	}
	if _, err := auth.ParseAddresses(strings.Join(many, " ")); err == nil {
		t.Error("51 addresses are accepted")
	}
}

// A key with addresses is refused from elsewhere, at once after a change. The address of a proxy counts
// unless the proxy is trusted, and then only the one that it added.
func TestKeyAddresses(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		ctx := t.Context()
		db := connect()
		direct, behind := newAccounts(db, auth.Config{}), newAccounts(db, auth.Config{TrustProxy: true})
		list, err := auth.ParseAddresses("192.0.2.0/24 2001:db8:1::5")
		systest.NoError(t, err)
		raw, key, err := direct.Keys().Create(ctx, auth.NewKey{Name: "k", Account: "a", Addresses: list})
		systest.NoError(t, err)
		check := func(a *auth.Accounts, remote, forwarded string, ok bool) {
			t.Helper()
			r := httptest.NewRequest("GET", "http://files.test/", nil)
			r.RemoteAddr = remote
			r.Header.Set("Authorization", "Bearer "+raw)
			if forwarded != "" {
				r.Header.Set("X-Forwarded-For", forwarded)
			}
			_, err := a.Authenticate(r)
			if ok != (err == nil) {
				t.Errorf("from %s, forwarded for %q: %v", remote, forwarded, err)
			}
			var p *httpapi.Problem
			if err != nil && (!errors.As(err, &p) || p.Slug != "address_not_allowed" || p.Status != http.StatusForbidden) {
				t.Errorf("the error is %v", err)
			}
		}
		check(direct, "192.0.2.9:1234", "", true)
		check(direct, "[::ffff:192.0.2.9]:1234", "", true)
		check(direct, "[2001:db8:1::5]:1", "", true)
		check(direct, "[2001:db8:1::6]:1", "", false) // the /64 network is not enough
		check(direct, "198.51.100.1:1", "", false)
		check(direct, "198.51.100.1:1", "192.0.2.9", false)
		check(direct, "@", "", false)
		check(behind, "198.51.100.1:1", "192.0.2.9", true)
		check(behind, "192.0.2.9:1", "203.0.113.5", false)
		check(behind, "198.51.100.1:1", "192.0.2.9, 203.0.113.5", false) // the first one is the client's word
		check(behind, "198.51.100.1:1", "203.0.113.5, 192.0.2.9", true)

		all := []netip.Prefix{}
		changed, err := direct.Keys().Update(ctx, key.ID, auth.KeyChange{Addresses: &all})
		if err != nil || changed.Addresses != "" {
			t.Fatalf("the key is %+v, %v", changed, err)
		}
		check(direct, "198.51.100.1:1", "", true)

		// A list that cannot be read admits nobody.
		broken := account.Key{ID: key.ID, Name: "k", Addresses: "nonsense", Expires: time.Time{}}
		systest.NoError(t, db.Keys().Update(ctx, &broken))
		r := httptest.NewRequest("GET", "http://files.test/", nil)
		r.Header.Set("Authorization", "Bearer "+raw)
		if _, err := direct.Authenticate(r); err == nil {
			t.Error("a key with a broken list is accepted")
		}
	})
}
