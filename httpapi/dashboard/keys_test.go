package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/internal/systest"
)

// A key can be edited and rolled; the old key stays valid for the chosen time.
func TestKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	eve, _ := s.member("eve")
	raw, key, err := s.accounts.Keys().Create(t.Context(), auth.NewKey{Name: "build", Account: acct.ID, Expires: time.Now().Add(48 * time.Hour)})
	systest.NoError(t, err)
	path := "/dashboard/keys/" + key.ID
	form := url.Values{"name": {"deploy"}, "scope": {"read"}, "rate": {"2.5"}, "expires": {"keep"}}
	for _, to := range []string{path, path + "/roll", path + "/revoke"} {
		if p := eve.post(to, form); p.status != 404 {
			t.Errorf("eve posts to %s: %d", to, p.status)
		}
	}
	if p := eve.get(path); p.status != 404 {
		t.Errorf("eve sees the key: %d", p.status)
	}
	if p := v.post(path, url.Values{"name": {""}, "scope": {"nothing"}, "rate": {"fast"}}); p.status != 422 || !strings.Contains(p.text, "name-error") || !strings.Contains(p.text, "scope-error") || !strings.Contains(p.text, "rate-error") {
		t.Errorf("an invalid form: %d", p.status)
	}
	if p := v.post(path, form); p.path != path || !strings.Contains(p.text, "API key saved") {
		t.Errorf("saving: %s", p.path)
	}
	changed, err := s.accounts.Keys().Get(t.Context(), key.ID)
	if err != nil || changed.Name != "deploy" || changed.Scopes != "read" || changed.Rate != 2.5 || changed.Expires.Sub(key.Expires).Abs() > time.Second {
		t.Errorf("the saved key is %+v, %v", changed, err)
	}
	if p := v.post(path+"/roll", url.Values{"overlap": {"never"}}); p.status != 404 {
		t.Errorf("an unknown overlap: %d", p.status)
	}
	roll := func(path, overlap string) (fresh string) {
		t.Helper()
		p := v.post(path+"/roll", url.Values{"overlap": {overlap}})
		if fresh = regexp.MustCompile(`fw_[a-z2-7]{32}`).FindString(p.text); fresh == "" || !strings.Contains(p.text, "rolled") {
			t.Fatalf("rolling: %d\n%s", p.status, p.text)
		}
		return fresh
	}
	works := func(raw string) bool {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+raw)
		_, err := s.accounts.Authenticate(r)
		return err == nil
	}
	second := roll(path, "24")
	if !works(raw) || !works(second) {
		t.Error("after rolling, a key does not work")
	}
	old, err := s.accounts.Keys().Get(t.Context(), key.ID)
	if left := time.Until(old.Expires); err != nil || left > 24*time.Hour || left < 23*time.Hour {
		t.Errorf("the old key is valid for %v, %v", left, err)
	}
	keys, err := s.accounts.Keys().List(t.Context(), acct.ID)
	systest.NoError(t, err)
	var fresh *account.Key
	for _, k := range keys {
		if k.ID != key.ID {
			fresh = k
		}
	}
	if fresh.Name != "deploy" || fresh.Scopes != "read" || fresh.Rate != 2.5 || time.Until(fresh.Expires) > 49*time.Hour {
		t.Errorf("the new key is %+v", fresh)
	}
	third := roll("/dashboard/keys/"+fresh.ID, "0")
	if works(second) || !works(third) {
		t.Error("a key that is rolled without an overlap works, or its successor does not")
	}
}

// A key is limited to addresses when it is created or edited, and a new key for an old one keeps them.
func TestKeyAddresses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	form := url.Values{"name": {"office"}, "scope": {"read"}, "addresses": {"127.0.0.1/8, 192.0.2.300"}}
	if p := v.post("/dashboard/keys", form); p.status != 422 || !strings.Contains(p.text, `id="addresses-error"`) || !strings.Contains(p.text, "192.0.2.300") {
		t.Errorf("a wrong address: %d", p.status)
	}
	form.Set("addresses", "192.0.2.0/24 2001:db8::1")
	p := v.post("/dashboard/keys", form)
	secret := regexp.MustCompile(`id="secret">(fw_[a-z2-7]+)<`).FindStringSubmatch(p.text)
	if p.status != 200 || secret == nil || !strings.Contains(p.text, "Only from 192.0.2.0/24 2001:db8::1") {
		t.Fatalf("created: %d", p.status)
	}
	try := func(want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/v1/operations", nil)
		systest.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+secret[1])
		p := s.visitor().do(r)
		if p.status != want || want == 403 && (!strings.Contains(p.text, "address_not_allowed") || !strings.Contains(p.text, "127.0.0.1")) {
			t.Errorf("the key from here: %d %s, want %d", p.status, p.text, want)
		}
	}
	try(403)
	keys, err := s.accounts.Keys().List(t.Context(), acct.ID)
	systest.NoError(t, err)
	page := "/dashboard/keys/" + keys[0].ID
	if p := v.get(page); !strings.Contains(p.text, `value="192.0.2.0/24 2001:db8::1"`) {
		t.Error("the form does not have the addresses")
	}
	if p := v.post(page+"/roll", url.Values{"overlap": {"24"}}); p.status != 200 {
		t.Errorf("rolled: %d", p.status)
	}
	form.Set("addresses", "127.0.0.0/8")
	if p := v.post(page, form); p.status != 200 {
		t.Errorf("saved: %d", p.status)
	}
	try(200)
	keys, err = s.accounts.Keys().List(t.Context(), acct.ID)
	systest.NoError(t, err)
	if keys[0].Addresses != "127.0.0.0/8" || keys[1].Addresses != "192.0.2.0/24 2001:db8::1" {
		t.Errorf("the keys have the addresses %q and %q", keys[0].Addresses, keys[1].Addresses)
	}
}
