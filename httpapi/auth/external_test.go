package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

// Users of a provider get an account at their first login, or the one that was made for them, but
// never the account of somebody else.
func TestExternal(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		db := connect()
		a := newAccounts(db, auth.Config{Identities: db.Identities(), Limits: account.Limits{Parallel: 3}})
		ctx := t.Context()
		user := func(subject, name string) auth.ExternalUser {
			return auth.ExternalUser{Issuer: "https://id.example", Subject: subject, Name: name, Create: true}
		}
		yes, no := true, false

		// Many first logins at the same time make one account.
		var ids [6]string
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() {
				token, acct, err := a.LoginExternal(ctx, user("1", "Ada"), home)
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = acct.ID
				if again, err := a.Session(ctx, token); err != nil || again.ID != acct.ID || again.Limits.Parallel != 3 || again.Administrator {
					t.Errorf("session of %+v, %v", again, err)
				}
			})
		}
		group.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("accounts %v", ids)
			}
		}
		list, err := a.Sessions(ctx, ids[0])
		if err != nil || len(list) != len(ids) || list[0].Method != account.MethodExternal {
			t.Errorf("sessions %v, %v", list, err)
		}
		// No password opens the account.
		if _, _, err := a.Login(ctx, "Ada", "", home); !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("login without a password: %v", err)
		}
		// A new name at the provider changes nothing.
		if _, acct, err := a.LoginExternal(ctx, user("1", "Countess"), home); err != nil || acct.Name != "Ada" {
			t.Errorf("another name: %v, %v", acct, err)
		}

		// Another user of that name, and users with the names of accounts that are in use.
		_, first, err := a.Bootstrap(ctx)
		systest.NoError(t, err)
		bob, once, err := a.Create(ctx, auth.NewAccount{Name: "bob"})
		systest.NoError(t, err)
		_, _, err = a.Login(ctx, "bob", once, home)
		systest.NoError(t, err)
		for _, name := range []string{"ada", "admin", "BOB"} {
			if _, _, err := a.LoginExternal(ctx, user("2", name), home); !errors.Is(err, account.ErrNameTaken) {
				t.Errorf("another user as %s: %v", name, err)
			}
		}
		if _, _, err := a.Login(ctx, "admin", first, home); err != nil {
			t.Errorf("the administrator: %v", err)
		}

		// An account that an administrator created, and whose password nobody has used.
		cleo, once, err := a.Create(ctx, auth.NewAccount{Name: "cleo"})
		systest.NoError(t, err)
		u := user("3", "Cleo")
		u.Create = false
		token, acct, err := a.LoginExternal(ctx, u, home)
		if err != nil || acct.ID != cleo.ID {
			t.Fatalf("the account for a user: %v, %v", acct, err)
		}
		if again, err := a.Session(ctx, token); err != nil || again.MustChange {
			t.Errorf("session of the account for a user: %+v, %v", again, err)
		}
		if _, _, err := a.Login(ctx, "cleo", once, home); !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("its one-time password: %v", err)
		}
		// A reset does not lock out who does not know the new password.
		_, err = a.ResetPassword(ctx, cleo.ID)
		systest.NoError(t, err)
		token, _, err = a.LoginExternal(ctx, u, home)
		systest.NoError(t, err)
		if again, err := a.Session(ctx, token); err != nil || again.MustChange {
			t.Errorf("session after a reset: %+v, %v", again, err)
		}

		// Without a permission to create accounts.
		u = user("4", "dora")
		u.Create = false
		if _, _, err := a.LoginExternal(ctx, u, home); !errors.Is(err, auth.ErrNoAccount) {
			t.Errorf("no account: %v", err)
		}
		if _, _, err := a.LoginExternal(ctx, user("4", "a/b"), home); problemStatus(err) != 400 {
			t.Errorf("an invalid name: %v", err)
		}

		// Roles.
		u = user("1", "Ada")
		u.Administrator = &yes
		if _, acct, err := a.LoginExternal(ctx, u, home); err != nil || !acct.Administrator {
			t.Errorf("a new administrator: %+v, %v", acct, err)
		}
		u.Administrator = nil
		if _, acct, err := a.LoginExternal(ctx, u, home); err != nil || !acct.Administrator {
			t.Errorf("roles of the dashboard: %+v, %v", acct, err)
		}
		boss, err := a.ByName(ctx, "admin")
		systest.NoError(t, err)
		systest.NoError(t, a.Delete(ctx, boss.ID))
		u.Administrator = &no
		if _, acct, err := a.LoginExternal(ctx, u, home); err != nil || !acct.Administrator {
			t.Errorf("the last administrator: %+v, %v", acct, err)
		}
		_, err = a.Update(ctx, bob.ID, auth.Change{Administrator: &yes})
		systest.NoError(t, err)
		if _, acct, err := a.LoginExternal(ctx, u, home); err != nil || acct.Administrator {
			t.Errorf("no longer an administrator: %+v, %v", acct, err)
		}

		// Connections.
		systest.NoError(t, a.Connect(ctx, bob.ID, user("5", "x")))
		systest.NoError(t, a.Connect(ctx, bob.ID, user("5", "x")))
		if err := a.Connect(ctx, cleo.ID, user("5", "x")); !errors.Is(err, auth.ErrUserTaken) {
			t.Errorf("a user of another account: %v", err)
		}
		if _, acct, err := a.LoginExternal(ctx, user("5", "x"), home); err != nil || acct.ID != bob.ID {
			t.Errorf("a connected user: %v, %v", acct, err)
		}
		if list, err := a.Identities(ctx, bob.ID); err != nil || len(list) != 1 || list[0].Subject != "5" {
			t.Errorf("identities %v, %v", list, err)
		}
		systest.NoError(t, a.Disconnect(ctx, bob.ID, "https://id.example", "5"))
		if list, err := a.Identities(ctx, bob.ID); err != nil || len(list) != 0 {
			t.Errorf("identities %v, %v", list, err)
		}
		if err := a.Disconnect(ctx, ids[0], "https://id.example", "1"); !errors.Is(err, auth.ErrOnlyLogin) {
			t.Errorf("the only way to log in: %v", err)
		}

		// A disabled account, and one that was deleted.
		_, err = a.Update(ctx, cleo.ID, auth.Change{Disabled: &yes})
		systest.NoError(t, err)
		if _, _, err := a.LoginExternal(ctx, user("3", "cleo"), home); !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("a disabled account: %v", err)
		}
		systest.NoError(t, a.Delete(ctx, cleo.ID))
		if _, acct, err := a.LoginExternal(ctx, user("3", "cleo"), home); err != nil || acct.ID == cleo.ID {
			t.Errorf("after the account was deleted: %v, %v", acct, err)
		}

		// A server without passwords.
		b := newAccounts(db, auth.Config{Identities: db.Identities(), NoPasswords: true})
		if _, _, err := b.Login(ctx, "bob", once, home); !errors.Is(err, auth.ErrNoPasswords) || b.PasswordLogin() {
			t.Errorf("a login with a password: %v", err)
		}
	})
}

// Over TLS only this host can have set the session cookie.
func TestHostCookie(t *testing.T) {
	t.Parallel()
	a := newAccounts(open(t, t.TempDir()+"/filewright.db"), auth.Config{})
	for _, tt := range []struct{ url, name string }{{"https://files.test/x", "__Host-filewright_session"}, {"http://files.test/x", "filewright_session"}} {
		r := httptest.NewRequest("GET", tt.url, nil)
		w := httptest.NewRecorder()
		a.SetCookie(w, r, "abc")
		c := w.Result().Cookies()[0]
		if c.Name != tt.name || c.Path != "/" || c.Domain != "" || c.Secure != strings.HasPrefix(tt.url, "https") || !c.HttpOnly {
			t.Errorf("%s: cookie %s", tt.url, c)
		}
		r.AddCookie(&http.Cookie{Name: tt.name, Value: "abc"})
		if got := a.Token(r); got != "abc" {
			t.Errorf("%s: token %q", tt.url, got)
		}
	}
	r := httptest.NewRequest("GET", "https://files.test/x", nil)
	r.AddCookie(&http.Cookie{Name: auth.CookieName, Value: "planted"})
	if got := a.Token(r); got != "" {
		t.Errorf("a cookie without the prefix is taken over TLS: %q", got)
	}
}
