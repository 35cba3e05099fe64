package auth_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

// appCode returns what an authenticator app shows in a time step.
func appCode(t *testing.T, secret string, step int64) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	systest.NoError(t, err)
	h := hmac.New(sha1.New, key)
	systest.NoError(t, binary.Write(h, binary.BigEndian, step))
	sum := h.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1_000_000)
}

func TestSecondFactor(t *testing.T) {
	t.Parallel()
	secrets := [][]byte{[]byte("0123456789abcdef0123456789abcdef")}
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		ctx := t.Context()
		db := connect()
		config := auth.Config{Factors: db.Factors(), Secrets: secrets}
		a, there := newAccounts(db, config), newAccounts(db, config)
		ada, once, err := a.Create(ctx, auth.NewAccount{Name: "Ada"})
		systest.NoError(t, err)
		_, err = a.ChangePassword(ctx, ada.ID, once, goodPassword, home)
		systest.NoError(t, err)
		bob, _, err := a.Create(ctx, auth.NewAccount{Name: "Bob"})
		systest.NoError(t, err)

		// Setup.
		step := time.Now().Unix() / 30
		setup, err := a.NewFactor(ada)
		systest.NoError(t, err)
		if again, err := there.OpenSetup(ada, setup.Ticket); err != nil || again != setup {
			t.Errorf("the setup in another process: %+v, %v", again, err)
		}
		for name, tt := range map[string]struct {
			account, ticket, password, code string
			err                             error
		}{
			"wrong password": {ada.ID, setup.Ticket, "x", appCode(t, setup.Secret, step), auth.ErrCredentials},
			"wrong code":     {ada.ID, setup.Ticket, goodPassword, "000000x", auth.ErrCode},
			"no code":        {ada.ID, setup.Ticket, goodPassword, "", auth.ErrCode},
			"other account":  {bob.ID, setup.Ticket, goodPassword, appCode(t, setup.Secret, step), auth.ErrNoSession},
			"other ticket":   {ada.ID, setup.Ticket[1:], goodPassword, appCode(t, setup.Secret, step), auth.ErrNoSession},
		} {
			if _, err := a.EnableFactor(ctx, tt.account, tt.ticket, tt.password, tt.code); !errors.Is(err, tt.err) {
				t.Errorf("%s: %v, want %v", name, err, tt.err)
			}
		}
		if _, _, err := a.Login(ctx, "Ada", goodPassword, home); err != nil {
			t.Errorf("before the setup is finished: %v", err)
		}
		recovery, err := a.EnableFactor(ctx, ada.ID, setup.Ticket, goodPassword, appCode(t, setup.Secret, step))
		if err != nil || len(recovery) != 10 {
			t.Fatalf("%q, %v", recovery, err)
		}
		f, err := db.Factors().Get(ctx, ada.ID)
		systest.NoError(t, err)
		if strings.Contains(string(f.Secret), setup.Secret) || f.Recovery != 10 {
			t.Errorf("stored: %+v", f)
		}

		// A login needs both.
		ticket := func(a *auth.Accounts) string {
			t.Helper()
			token, _, err := a.Login(ctx, "ada", goodPassword, home)
			var need *auth.CodeRequired
			if !errors.As(err, &need) || token != "" {
				t.Fatalf("login with the password only: %q, %v", token, err)
			}
			return need.Ticket
		}
		if _, _, err := a.Login(ctx, "ada", "wrong password", home); !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("a wrong password: %v", err)
		}
		open := ticket(a)
		if _, err := a.Session(ctx, open); !errors.Is(err, auth.ErrNoSession) {
			t.Errorf("a ticket is a session: %v", err)
		}
		if _, _, err := there.LoginCode(ctx, open, appCode(t, setup.Secret, step), home); !errors.Is(err, auth.ErrCode) {
			t.Errorf("the code of the setup again: %v", err)
		}
		if _, _, err := a.LoginCode(ctx, open[1:], recovery[0], home); !errors.Is(err, auth.ErrNoSession) {
			t.Errorf("another ticket: %v", err)
		}

		// Of many logins with the same code, one succeeds.
		for _, code := range []string{appCode(t, setup.Secret, step+1), recovery[1]} {
			var succeeded atomic.Int32
			var group sync.WaitGroup
			for _, from := range []*auth.Accounts{a, there, a, there} {
				group.Go(func() {
					token, acct, err := from.LoginCode(ctx, open, strings.ToUpper(code), home)
					switch {
					case err == nil && acct.ID == ada.ID:
						succeeded.Add(1)
						if _, err := there.Session(ctx, token); err != nil {
							t.Errorf("session: %v", err)
						}
					case !errors.Is(err, auth.ErrCode):
						t.Error(err)
					}
				})
			}
			group.Wait()
			if n := succeeded.Load(); n != 1 {
				t.Errorf("%d logins with the same code", n)
			}
			// Their wrong attempts count for this process only.
			a, there = newAccounts(db, config), newAccounts(db, config)
		}
		if f, err := a.Factor(ctx, ada.ID); err != nil || f.Recovery != 9 {
			t.Errorf("%+v, %v", f, err)
		}

		// Guesses are limited, also with a right code afterwards.
		for range 5 {
			if _, _, err := a.LoginCode(ctx, open, "12345x", home); !errors.Is(err, auth.ErrCode) {
				t.Errorf("a guess: %v", err)
			}
		}
		if _, _, err := a.LoginCode(ctx, open, recovery[2], home); problemStatus(err) != 429 {
			t.Errorf("after five guesses: %v", err)
		}
		if _, _, err := there.LoginCode(ctx, open, recovery[2], home); err != nil {
			t.Errorf("a recovery code: %v", err)
		}

		// A ticket ends with the password and with the account.
		open = ticket(there)
		_, err = a.ChangePassword(ctx, ada.ID, goodPassword, goodPassword+"!", home)
		systest.NoError(t, err)
		if _, _, err := there.LoginCode(ctx, open, recovery[3], home); !errors.Is(err, auth.ErrNoSession) {
			t.Errorf("after the password changed: %v", err)
		}

		// Other secrets of the server do not open it, and do not turn it off.
		other := newAccounts(db, auth.Config{Factors: db.Factors(), Secrets: [][]byte{[]byte("fedcba9876543210fedcba9876543210")}})
		if _, _, err := other.Login(ctx, "ada", goodPassword+"!", home); err == nil {
			t.Error("a login without a code")
		}
		if _, _, err := newAccounts(db, auth.Config{Factors: db.Factors()}).Login(ctx, "ada", goodPassword+"!", home); err == nil {
			t.Error("a login without a code and without secrets")
		}

		// Off.
		if err := a.DisableFactor(ctx, ada.ID, "x"); !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("off with a wrong password: %v", err)
		}
		systest.NoError(t, a.DisableFactor(ctx, ada.ID, goodPassword+"!"))
		if _, _, err := there.Login(ctx, "ada", goodPassword+"!", home); err != nil {
			t.Errorf("without a second factor: %v", err)
		}
		if _, err := a.Factor(ctx, ada.ID); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the factor: %v", err)
		}
		systest.NoError(t, a.RemoveFactor(ctx, ada.ID))
	})
}
