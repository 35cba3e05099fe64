package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/passkeytest"
	"github.com/filewright/filewright/internal/systest"
)

const publicURL = "https://files.example.com/"

// A keyring is a person with an account and an authenticator.
type keyring struct {
	t    *testing.T
	a    *auth.Accounts
	r    *http.Request
	acct *account.Account
	*passkeytest.Authenticator
}

func newKeyring(t *testing.T, a *auth.Accounts, name string) *keyring {
	t.Helper()
	acct, once, err := a.Create(t.Context(), auth.NewAccount{Name: name})
	systest.NoError(t, err)
	_, err = a.ChangePassword(t.Context(), acct.ID, once, goodPassword, home)
	systest.NoError(t, err)
	acct, err = a.Get(t.Context(), acct.ID)
	systest.NoError(t, err)
	return &keyring{t, a, httptest.NewRequestWithContext(t.Context(), "POST", publicURL, nil), acct, passkeytest.New(t, "https://files.example.com", "files.example.com")}
}

// add adds the passkey of the authenticator.
func (k *keyring) add() (*account.Passkey, error) {
	k.t.Helper()
	q, err := k.a.NewPasskey(k.r, k.acct, goodPassword)
	systest.NoError(k.t, err)
	return k.a.AddPasskey(k.r, k.acct, " Phone ", q.Ticket, k.Create(q.Options))
}

// login logs in with the passkey; code is the ticket of a login with a password.
func (k *keyring) login(code string) (*account.Account, error) {
	k.t.Helper()
	q, err := k.a.AskPasskey(k.r, code)
	systest.NoError(k.t, err)
	token, acct, err := k.a.LoginPasskey(k.r, q.Ticket, k.Get(q.Options))
	if err == nil {
		if _, err := k.a.Session(k.t.Context(), token); err != nil {
			k.t.Errorf("the session: %v", err)
		}
	}
	return acct, err
}

// password logs in with the password and returns what else is needed.
func (k *keyring) password() *auth.CodeRequired {
	k.t.Helper()
	_, _, err := k.a.Login(k.t.Context(), k.acct.Name, goodPassword, home)
	var needed *auth.CodeRequired
	if err != nil && !errors.As(err, &needed) {
		k.t.Fatal(err)
	}
	return needed
}

func passkeyConfig(t *testing.T, db *sqlstore.DB) auth.Config {
	t.Helper()
	base, err := url.Parse(publicURL)
	systest.NoError(t, err)
	return auth.Config{Factors: db.Factors(), Passkeys: db.Passkeys(), Identities: db.Identities(), Secrets: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}, BaseURL: base}
}

func TestPasskey(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		ctx := t.Context()
		db := connect()
		a := newAccounts(db, passkeyConfig(t, db))
		ada, bob := newKeyring(t, a, "Ada"), newKeyring(t, a, "Bob")
		wants := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}

		// Refusals of new passkeys.
		_, err := a.NewPasskey(ada.r, ada.acct, "wrong")
		wants("wrong password", err, auth.ErrCredentials)
		ada.Origin = "https://evil.example"
		_, err = ada.add()
		wants("another origin", err, auth.ErrPasskey)
		ada.Origin, ada.Domain = "https://files.example.com", "example.com"
		_, err = ada.add()
		wants("another RP ID", err, auth.ErrPasskey)
		ada.Domain, ada.Unverified = "files.example.com", true
		_, err = ada.add()
		wants("a user who was not verified", err, auth.ErrPasskey)
		ada.Unverified = false
		q, err := a.NewPasskey(ada.r, ada.acct, goodPassword)
		systest.NoError(t, err)
		made := ada.Create(q.Options)
		_, err = a.AddPasskey(bob.r, bob.acct, "Phone", q.Ticket, made)
		wants("the ticket of another account", err, auth.ErrNoSession)
		_, err = a.AddPasskey(ada.r, ada.acct, " ", q.Ticket, made)
		wants("no name", err, auth.ErrPasskeyName)
		_, err = a.AddPasskey(ada.r, ada.acct, "Phone", q.Ticket, made[:len(made)/2])
		wants("half a response", err, auth.ErrPasskey)
		if list, err := a.Passkeys(ctx, ada.acct.ID); len(list) != 0 || err != nil || ada.password() != nil {
			t.Errorf("passkeys after refusals: %v, %v", list, err)
		}

		p, err := a.AddPasskey(ada.r, ada.acct, " Phone ", q.Ticket, made)
		systest.NoError(t, err)
		if p.Name != "Phone" || p.Account != ada.acct.ID || p.Domain != "files.example.com" {
			t.Errorf("the passkey is %+v", p)
		}
		_, err = a.AddPasskey(ada.r, ada.acct, "Phone", q.Ticket, made)
		wants("a replayed response", err, auth.ErrPasskeyExists)
		_, err = bob.add()
		systest.NoError(t, err)

		// A login needs neither name nor password.
		if acct, err := ada.login(""); err != nil || acct.ID != ada.acct.ID {
			t.Fatalf("login: %v, %v", acct, err)
		}
		list, err := a.Sessions(ctx, ada.acct.ID)
		if err != nil || list[0].Method != account.MethodPasskey {
			t.Errorf("the sessions are %+v, %v", list, err)
		}
		if list, err := a.Passkeys(ctx, ada.acct.ID); err != nil || len(list) != 1 || list[0].Count != ada.Count || list[0].LastUsed.IsZero() {
			t.Errorf("the passkeys are %+v, %v", list, err)
		}

		// Refusals of logins.
		q, err = a.AskPasskey(ada.r, "")
		systest.NoError(t, err)
		used := ada.Get(q.Options)
		_, _, err = a.LoginPasskey(ada.r, q.Ticket, used)
		systest.NoError(t, err)
		_, _, err = a.LoginPasskey(ada.r, q.Ticket, used)
		wants("the same response again", err, auth.ErrPasskey)
		_, _, err = a.LoginPasskey(ada.r, q.Ticket, ada.Get(q.Options))
		wants("an answered challenge", err, auth.ErrPasskey)
		other, err := a.AskPasskey(ada.r, "")
		systest.NoError(t, err)
		_, _, err = a.LoginPasskey(ada.r, other.Ticket, ada.Get(q.Options))
		wants("the challenge of another request", err, auth.ErrPasskey)
		_, _, err = a.LoginPasskey(ada.r, "x", ada.Get(q.Options))
		wants("no ticket", err, auth.ErrNoSession)
		ada.Origin = "https://evil.example"
		_, err = ada.login("")
		wants("another origin", err, auth.ErrPasskey)
		ada.Origin, ada.Domain = "https://files.example.com", "example.com"
		_, err = ada.login("")
		wants("another RP ID", err, auth.ErrPasskey)
		ada.Domain, ada.Unverified = "files.example.com", true
		_, err = ada.login("")
		wants("a user who was not verified", err, auth.ErrPasskey)
		ada.Unverified = false
		stranger := newKeyring(t, a, "Eve")
		_, err = stranger.login("")
		wants("an unknown passkey", err, auth.ErrPasskey)
		stranger.ID = ada.ID
		_, err = stranger.login("")
		wants("another key", err, auth.ErrPasskey)
		ada.Count = 0
		_, err = ada.login("")
		wants("a copied passkey", err, auth.ErrPasskeyCopied)
		ada.Count += 100
		if _, err = ada.login(""); err != nil {
			t.Errorf("login after refusals: %v", err)
		}
		off := true
		_, err = a.Update(ctx, bob.acct.ID, auth.Change{Disabled: &off})
		systest.NoError(t, err)
		_, err = bob.login("")
		wants("a disabled account", err, auth.ErrCredentials)
		off = false
		_, err = a.Update(ctx, bob.acct.ID, auth.Change{Disabled: &off})
		systest.NoError(t, err)

		// Of concurrent logins with one response, one wins.
		q, err = a.AskPasskey(ada.r, "")
		systest.NoError(t, err)
		once := ada.Get(q.Options)
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, _, err := a.LoginPasskey(ada.r, q.Ticket, once); err == nil {
					won.Add(1)
				} else if !errors.Is(err, auth.ErrPasskey) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d of 4 logins with one response succeeded", won.Load())
		}

		// A device that does not count.
		synced := *bob
		synced.Authenticator = passkeytest.New(t, bob.Origin, bob.Domain)
		synced.Uncounted = true
		_, err = synced.add()
		systest.NoError(t, err)
		for range 2 {
			if _, err := synced.login(""); err != nil {
				t.Errorf("a passkey without a counter: %v", err)
			}
		}
		q, err = a.AskPasskey(bob.r, "")
		systest.NoError(t, err)
		used = synced.Get(q.Options)
		_, _, err = a.LoginPasskey(bob.r, q.Ticket, used)
		systest.NoError(t, err)
		_, _, err = a.LoginPasskey(bob.r, q.Ticket, used)
		wants("the same response without a counter", err, auth.ErrPasskey)
		systest.NoError(t, a.RemovePasskey(ctx, bob.acct, synced.ID, goodPassword))

		// As the second factor of a password.
		needed := ada.password()
		if needed == nil || !needed.Passkey || needed.Code {
			t.Fatalf("the password needs %+v", needed)
		}
		q, err = a.AskPasskey(ada.r, needed.Ticket)
		systest.NoError(t, err)
		_, _, err = a.LoginPasskey(bob.r, q.Ticket, bob.Get(q.Options))
		wants("the passkey of another account", err, auth.ErrPasskey)
		if acct, err := ada.login(needed.Ticket); err != nil || acct.ID != ada.acct.ID {
			t.Errorf("login with password and passkey: %v, %v", acct, err)
		}
		_, err = a.AskPasskey(ada.r, "x")
		wants("an invalid ticket of a password", err, auth.ErrNoSession)
		_, _, err = a.LoginCode(ctx, needed.Ticket, "123456", home)
		wants("a code without an app", err, auth.ErrCode)

		// Several passkeys, and their end.
		second := *ada
		second.Authenticator = passkeytest.New(t, ada.Origin, ada.Domain)
		_, err = second.add()
		systest.NoError(t, err)
		if _, err := second.login(""); err != nil {
			t.Errorf("the second passkey: %v", err)
		}
		wants("removal with a wrong password", a.RemovePasskey(ctx, ada.acct, ada.ID, "x"), auth.ErrCredentials)
		systest.NoError(t, a.RemovePasskey(ctx, bob.acct, ada.ID, goodPassword)) // of another account: no effect
		if _, err := ada.login(""); err != nil {
			t.Errorf("another account removed a passkey: %v", err)
		}
		systest.NoError(t, a.RemovePasskey(ctx, ada.acct, ada.ID, goodPassword))
		_, err = ada.login("")
		wants("a removed passkey", err, auth.ErrPasskey)
		if needed := ada.password(); needed == nil || !needed.Passkey {
			t.Error("the other passkey is not a second factor")
		}
		systest.NoError(t, a.RemoveFactor(ctx, ada.acct.ID))
		if ada.password() != nil {
			t.Error("a second factor remains")
		}
		bare := *bob.acct
		bare.Password = ""
		wants("removal of the only way to log in", a.RemovePasskey(ctx, &bare, bob.ID, ""), auth.ErrOnlyLogin)
	})
}

func TestPasskeyConfigurations(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "filewright.db"))
	config := passkeyConfig(t, db)
	a := newAccounts(db, config)
	ada := newKeyring(t, a, "Ada")
	_, err := ada.add()
	systest.NoError(t, err)

	// After a move to another host name, the passkeys neither work nor lock their users out.
	moved := config
	moved.BaseURL = &url.URL{Scheme: "https", Host: "new.example.com", Path: "/"}
	ada.a = newAccounts(db, moved)
	if ada.password() != nil {
		t.Error("a passkey for another host name is required")
	}
	if _, err := ada.login(""); !errors.Is(err, auth.ErrPasskey) {
		t.Errorf("a passkey for another host name: %v", err)
	}

	// Where only the provider decides, passkeys are off.
	strict := config
	strict.NoPasswords = true
	if newAccounts(db, strict).HasPasskeys() {
		t.Error("there are passkeys where passwords are refused")
	}

	// Browsers offer passkeys over TLS, and at localhost.
	open := config
	open.BaseURL = nil
	b := newAccounts(db, open)
	for address, want := range map[string]bool{
		"https://files.example.com/": true, "https://FILES.example.com:8443/": true, "http://localhost:8080/": true,
		"http://files.example.com/": false, "https://192.0.2.1/": false, "https://[2001:db8::1]/": false, "http://127.0.0.1:8080/": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", address, nil)
		if got := b.PasskeysAt(r); got != want {
			t.Errorf("passkeys at %s: %t", address, got)
		}
		if _, err := b.AskPasskey(r, ""); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "HTTPS") {
			t.Errorf("passkeys at %s: %v", address, err)
		}
	}
}
