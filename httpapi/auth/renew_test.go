package auth_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

// TestRenewed logs in with a hash of other parameters. The hash is renewed once, also during
// concurrent logins, and only with the right password.
func TestRenewed(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		ctx := t.Context()
		db := connect()
		a := newAccounts(db, auth.Config{})
		acct, _, err := a.Create(ctx, auth.NewAccount{Name: "Ada"})
		systest.NoError(t, err)
		kept := func() string {
			t.Helper()
			acct, err := db.Accounts().Get(ctx, acct.ID)
			systest.NoError(t, err)
			return acct.Password
		}
		now := strings.Join(strings.Split(kept(), "$")[:4], "$") + "$"
		const password = "correct horse battery"
		b64 := base64.RawStdEncoding.EncodeToString
		hash := func(time, memory uint32, salt string, length uint32) string {
			return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, memory, time,
				b64([]byte(salt)), b64(argon2.IDKey([]byte(password), []byte(salt), time, memory, 1, length)))
		}
		for name, old := range map[string]string{
			"less memory":    hash(2, 8<<10, "0123456789abcdef", 32),
			"a shorter salt": hash(2, 19<<10, "01234567", 32),
		} {
			systest.NoError(t, db.Accounts().SetPassword(ctx, acct.ID, "*", old, false))
			if _, _, err := a.Login(ctx, "ada", password+"!", home); err == nil || kept() != old {
				t.Errorf("%s: after a wrong password: %v, kept is %s", name, err, kept())
			}
			var logins sync.WaitGroup
			for i := range 3 {
				logins.Go(func() {
					time.Sleep(time.Duration(i) * 20 * time.Millisecond) // some arrive while another login renews the hash
					token, _, err := a.Login(ctx, "ada", password, home)
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					if _, err := a.Session(ctx, token); err != nil {
						t.Errorf("%s: the session: %v", name, err)
					}
				})
			}
			logins.Wait()
			renewed := kept()
			if !strings.HasPrefix(renewed, now) || renewed == old {
				t.Errorf("%s: kept is %s, want %s…", name, renewed, now)
			}
			if list, err := a.Sessions(ctx, acct.ID); err != nil || len(list) != 3 {
				t.Errorf("%s: %d sessions, error %v", name, len(list), err)
			}
			if _, got, err := a.Login(ctx, "ada", password, home); err != nil || got.MustChange || kept() != renewed {
				t.Errorf("%s: the next login: %v, kept is %s, was %s", name, err, kept(), renewed)
			}
		}
	})
}
