package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// eachDatabase runs a test on both databases. Each call of connect opens the same database, like
// another process.
func eachDatabase(t *testing.T, f func(t *testing.T, connect func() *sqlstore.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "filewright.db")
		f(t, func() *sqlstore.DB { return open(t, path) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		link := pgtest.New(t)
		f(t, func() *sqlstore.DB {
			db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: link})
			systest.NoError(t, err)
			t.Cleanup(func() { db.Close() })
			return db
		})
	})
}

var home = auth.Client{Address: "192.0.2.1", Agent: "test"}

// session returns a request with a session cookie.
func session(token string, headers ...string) *http.Request {
	r := httptest.NewRequest("POST", "http://files.test/api/v1/do", nil)
	r.AddCookie(&http.Cookie{Name: auth.CookieName, Value: token})
	r.AddCookie(&http.Cookie{Name: "__Host-" + auth.CookieName, Value: token}) // the name over TLS
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// newAccounts returns accounts in a database.
func newAccounts(db *sqlstore.DB, c auth.Config) *auth.Accounts {
	c.Accounts, c.Keys, c.Sessions, c.Usage = db.Accounts(), db.Keys(), db.Sessions(), db
	return auth.New(c)
}

func problemStatus(err error) int {
	var p *httpapi.Problem
	if errors.As(err, &p) {
		return p.Status
	}
	return 0
}

// goodPassword is a password that users may choose.
const goodPassword = "correct horse battery staple"

// A twin is the accounts of one database in two processes. The secrets must not be in the log.
type twin struct {
	a, there *auth.Accounts
	log      strings.Builder
	secrets  []string
}

func newTwin(t *testing.T, connect func() *sqlstore.DB) *twin {
	w := &twin{secrets: []string{goodPassword, "argon2id"}}
	log := slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.a = newAccounts(connect(), auth.Config{Limits: account.Limits{StoredBytes: 1000}, Log: log})
	w.there = newAccounts(connect(), auth.Config{})
	t.Cleanup(func() {
		for _, secret := range w.secrets {
			if strings.Contains(w.log.String(), secret) {
				t.Errorf("%q is in the log", secret)
			}
		}
	})
	return w
}

// eachTwin runs a test with a twin on each database.
func eachTwin(t *testing.T, f func(t *testing.T, w *twin)) {
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) { f(t, newTwin(t, connect)) })
}

// bootstrap creates the first administrator and returns the password for the first login.
func (w *twin) bootstrap(t *testing.T) (boss *account.Account, once string) {
	t.Helper()
	name, once, err := w.a.Bootstrap(t.Context())
	if err != nil || name != "admin" || len(once) < 20 {
		t.Fatalf("first administrator %q, %v", name, err)
	}
	w.secrets = append(w.secrets, once)
	boss, err = w.a.ByName(t.Context(), name)
	systest.NoError(t, err)
	return boss, once
}

// create makes an account that is logged in with a password of its own.
func (w *twin) create(t *testing.T, name string) (acct *account.Account, session string) {
	t.Helper()
	acct, given, err := w.a.Create(t.Context(), auth.NewAccount{Name: name})
	if err != nil || acct.Limits.StoredBytes != 1000 || !acct.MustChange || acct.Administrator {
		t.Fatalf("made %+v, %v", acct, err)
	}
	_, _, err = w.there.Login(t.Context(), strings.ToLower(name), given, auth.Client{Address: "192.0.2.2", Agent: strings.Repeat("ä", 400)})
	systest.NoError(t, err)
	session, err = w.there.ChangePassword(t.Context(), acct.ID, given, goodPassword, home)
	systest.NoError(t, err)
	w.secrets = append(w.secrets, given, session)
	return acct, session
}

// The first administrator logs in and changes the password.
func TestFirstAdministrator(t *testing.T) {
	t.Parallel()
	eachTwin(t, func(t *testing.T, w *twin) {
		ctx, a, there := t.Context(), w.a, w.there
		_, once := w.bootstrap(t)
		if name, password, err := there.Bootstrap(ctx); name+password != "" || err != nil {
			t.Errorf("a second administrator %q, %v", name, err)
		}
		for _, wrong := range [][2]string{{"admin", "wrong"}, {"nobody", once}, {"admin", ""}, {"", ""}, {"admin", once + strings.Repeat("x", 5000)}, {"admin\x00", once}} {
			if _, _, err := a.Login(ctx, wrong[0], wrong[1], home); !errors.Is(err, auth.ErrCredentials) {
				t.Errorf("login as %q: %v", wrong[0], err)
			}
		}
		token, boss, err := a.Login(ctx, " ADMIN ", once, home)
		if err != nil || !boss.Administrator || !boss.MustChange || boss.LastLogin.IsZero() {
			t.Fatalf("login: %+v, %v", boss, err)
		}
		if got, err := there.Session(ctx, token); err != nil || got.ID != boss.ID || !got.MustChange {
			t.Errorf("session: %+v, %v", got, err)
		}
		if _, err := there.Authenticate(session(token)); problemStatus(err) != 403 {
			t.Errorf("before the password was changed: %v", err)
		}

		for _, weak := range []string{"", "short", "ninechars", "admin", once, strings.Repeat("x", 201), "not utf-8 \xff\xff\xff"} {
			if _, err := a.ChangePassword(ctx, boss.ID, once, weak, home); !errors.Is(err, auth.ErrWeakPassword) {
				t.Errorf("password %q: %v", weak, err)
			}
		}
		if _, err := a.ChangePassword(ctx, boss.ID, "wrong", goodPassword, home); !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("with a wrong old password: %v", err)
		}
		fresh, err := a.ChangePassword(ctx, boss.ID, once, goodPassword, home)
		systest.NoError(t, err)
		if _, err := there.Session(ctx, token); !errors.Is(err, auth.ErrNoSession) {
			t.Errorf("the session from before: %v", err)
		}
		if _, _, err := there.Login(ctx, "admin", once, home); !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("with the password from before: %v", err)
		}
		p, err := there.Authenticate(session(fresh))
		if err != nil || p.Account != boss.ID || p.KeyID != "" || !p.Administrator || p.Scopes != httpapi.DefaultScopes|httpapi.ScopeAdmin {
			t.Errorf("session as %+v, %v", p, err)
		}
		w.secrets = append(w.secrets, token, fresh)
	})
}

func TestNewAccounts(t *testing.T) {
	t.Parallel()
	eachTwin(t, func(t *testing.T, w *twin) {
		ctx, a, there := t.Context(), w.a, w.there
		w.bootstrap(t)
		ada, theirs := w.create(t, "Ada Lovelace")
		for _, bad := range []string{"", " ", "ada LOVELACE", "a/b", "a\nb", strings.Repeat("x", 101), "\xff"} {
			if _, _, err := a.Create(ctx, auth.NewAccount{Name: bad}); problemStatus(err) != 400 && problemStatus(err) != 409 {
				t.Errorf("name %q: %v", bad, err)
			}
		}
		if _, _, err := a.Create(ctx, auth.NewAccount{Name: "x", Limits: &account.Limits{BytesPerDay: -1}}); problemStatus(err) != 400 {
			t.Errorf("a negative limit: %v", err)
		}
		if got, err := there.ByName(ctx, "ADA lovelace"); err != nil || got.ID != ada.ID {
			t.Errorf("by name: %+v, %v", got, err)
		}
		if p, err := a.Authenticate(session(theirs)); err != nil || p.Account != ada.ID || p.Administrator {
			t.Errorf("session as %+v, %v", p, err)
		}
		key, _, err := a.Keys().Create(ctx, auth.NewKey{Name: "laptop", Account: ada.ID})
		systest.NoError(t, err)
		withKey := request("Authorization", "Bearer "+key)
		if p, err := there.Authenticate(withKey); err != nil || p.Account != ada.ID || p.Administrator || p.Scopes != httpapi.DefaultScopes {
			t.Errorf("key as %+v, %v", p, err)
		}
		w.secrets = append(w.secrets, key)

		// Disabling takes effect at once, in both processes.
		yes, no := true, false
		if got, err := a.Update(ctx, ada.ID, auth.Change{Disabled: &yes}); err != nil || got.Disabled.IsZero() {
			t.Fatalf("disabled: %+v, %v", got, err)
		}
		if _, err := there.Authenticate(withKey); problemStatus(err) != 403 {
			t.Errorf("key of a disabled account: %v", err)
		}
		if _, err := there.Authenticate(session(theirs)); !errors.Is(err, httpapi.ErrUnauthenticated) {
			t.Errorf("session of a disabled account: %v", err)
		}
		if _, _, err := there.Login(ctx, "Ada Lovelace", goodPassword, home); !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("login of a disabled account: %v", err)
		}
		if _, err := a.Update(ctx, ada.ID, auth.Change{Disabled: &no}); err != nil {
			t.Fatal(err)
		}
		if _, err := there.Authenticate(withKey); err != nil {
			t.Errorf("key of an account that was disabled: %v", err)
		}
		if _, err := there.Session(ctx, theirs); !errors.Is(err, auth.ErrNoSession) {
			t.Errorf("a session came back: %v", err)
		}
	})
}

// A database always keeps an administrator.
func TestLastAdministrator(t *testing.T) {
	t.Parallel()
	eachTwin(t, func(t *testing.T, w *twin) {
		ctx, a, there := t.Context(), w.a, w.there
		boss, _ := w.bootstrap(t)
		ada, _ := w.create(t, "Ada Lovelace")
		yes, no := true, false
		for what, err := range map[string]error{
			"disabled": second(a.Update(ctx, boss.ID, auth.Change{Disabled: &yes})),
			"demoted":  second(a.Update(ctx, boss.ID, auth.Change{Administrator: &no})),
			"deleted":  a.Delete(ctx, boss.ID),
		} {
			if !errors.Is(err, account.ErrLastAdministrator) || problemStatus(err) != 409 {
				t.Errorf("the last administrator is %s: %v", what, err)
			}
		}
		if _, err := a.Update(ctx, ada.ID, auth.Change{Administrator: &yes}); err != nil {
			t.Fatal(err)
		}
		// Two concurrent attempts: one administrator stays.
		var wg sync.WaitGroup
		results := make([]error, 2)
		for i, id := range []string{boss.ID, ada.ID} {
			wg.Go(func() {
				_, results[i] = []*auth.Accounts{a, there}[i].Update(ctx, id, auth.Change{Administrator: &no})
			})
		}
		wg.Wait()
		if refused := errors.Is(results[0], account.ErrLastAdministrator) != errors.Is(results[1], account.ErrLastAdministrator); !refused {
			t.Errorf("two administrators demoted at the same time: %v", results)
		}
		if err := a.Delete(ctx, ada.ID); err != nil && !errors.Is(err, account.ErrLastAdministrator) {
			t.Error(err)
		}
	})
}

func TestRenameAndReset(t *testing.T) {
	t.Parallel()
	eachTwin(t, func(t *testing.T, w *twin) {
		ctx, a, there := t.Context(), w.a, w.there
		w.bootstrap(t)
		ada, _ := w.create(t, "Ada Lovelace")
		rename := "Countess"
		if got, err := a.Update(ctx, ada.ID, auth.Change{Name: &rename}); err != nil || got.Name != rename {
			t.Errorf("renamed: %+v, %v", got, err)
		}
		taken := "ADMIN"
		if _, err := a.Update(ctx, ada.ID, auth.Change{Name: &taken}); !errors.Is(err, account.ErrNameTaken) || problemStatus(err) != 409 {
			t.Errorf("a name that is taken: %v", err)
		}
		given, err := there.ResetPassword(ctx, ada.ID)
		systest.NoError(t, err)
		w.secrets = append(w.secrets, given)
		if _, got, err := a.Login(ctx, "countess", given, home); err != nil || !got.MustChange {
			t.Errorf("with a password that was given out: %+v, %v", got, err)
		}
		for _, err := range []error{second(a.Get(ctx, "nobody")), second(a.Update(ctx, "nobody", auth.Change{})), second(a.ResetPassword(ctx, "nobody")), a.Delete(ctx, "nobody"), second(a.ByName(ctx, ""))} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("an account that is not there: %v", err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestDeleted(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		ctx := t.Context()
		a, there := newAccounts(connect(), auth.Config{}), newAccounts(connect(), auth.Config{})
		acct, password, err := a.Create(ctx, auth.NewAccount{Name: "Ada", ID: "ada"})
		if err != nil || acct.ID != "ada" {
			t.Fatal(acct, err)
		}
		if _, _, err := a.Create(ctx, auth.NewAccount{Name: "Other", ID: "ada"}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("the same id again: %v", err)
		}
		token, _, err := a.Login(ctx, "ada", password, home)
		systest.NoError(t, err)
		key, _, err := a.Keys().Create(ctx, auth.NewKey{Name: "laptop", Account: "ada"})
		systest.NoError(t, err)
		systest.NoError(t, a.Delete(ctx, "ada"))
		for _, r := range []*http.Request{session(token), request("Authorization", "Bearer "+key)} {
			if _, err := there.Authenticate(r); !errors.Is(err, httpapi.ErrUnauthenticated) {
				t.Errorf("after it was deleted: %v", err)
			}
		}
		if keys, err := there.Keys().List(ctx, "ada"); len(keys) > 0 || err != nil {
			t.Errorf("keys %v, %v", keys, err)
		}
	})
}

// Of several servers that start together, one creates the administrator.
func TestBootstrapTogether(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		const n = 6
		passwords := make([]string, n)
		var wg sync.WaitGroup
		for i := range n {
			a := newAccounts(connect(), auth.Config{})
			wg.Go(func() {
				var err error
				if _, passwords[i], err = a.Bootstrap(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		a := newAccounts(connect(), auth.Config{})
		all, err := a.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%d accounts, %v", len(all), err)
		}
		password := strings.Join(passwords, "")
		if _, _, err := a.Login(t.Context(), "admin", password, home); err != nil {
			t.Errorf("login with what was returned: %v", err)
		}
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		ctx := t.Context()
		db := connect()
		a := newAccounts(db, auth.Config{})
		acct, password, err := a.Create(ctx, auth.NewAccount{Name: "Ada"})
		systest.NoError(t, err)
		login := func() string {
			t.Helper()
			token, _, err := a.Login(ctx, "Ada", password, home)
			systest.NoError(t, err)
			return token
		}
		first, second, third := login(), login(), login()
		list, err := a.Sessions(ctx, acct.ID)
		if err != nil || len(list) != 3 || list[0].From != home.Address || list[0].Agent != home.Agent || list[0].Created.IsZero() {
			t.Fatalf("sessions %+v, %v", list, err)
		}
		for _, s := range list {
			if strings.Contains(first+second+third, s.ID) {
				t.Error("the id of a session is of its token")
			}
		}
		if err := a.EndSession(ctx, "somebody else", a.SessionID(first)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("somebody else's session: %v", err)
		}
		systest.Check(t, a.EndSession(ctx, acct.ID, a.SessionID(first)))
		expect := func(token string, want bool) {
			t.Helper()
			if _, err := a.Session(ctx, token); errors.Is(err, auth.ErrNoSession) == want || want && err != nil {
				t.Errorf("session: %v, want it %v", err, want)
			}
		}
		expect(first, false)
		expect(second, true)
		systest.Check(t, a.EndOtherSessions(ctx, acct.ID, third))
		expect(second, false)
		expect(third, true)
		systest.Check(t, a.Logout(ctx, third))
		expect(third, false)
		systest.Check(t, a.Logout(ctx, "nonsense"))
		expect("", false)
		expect(strings.Repeat("a", 52), false)

		// Unused sessions expire, and finally all sessions.
		token := login()
		start := time.Now()
		systest.Until(t, "a session of a millisecond ends", func() bool { return time.Since(start) > 2*time.Millisecond })
		for _, c := range []auth.Config{{SessionTime: time.Millisecond}, {SessionLife: time.Millisecond}} {
			strict := newAccounts(db, c)
			if _, err := strict.Session(ctx, token); !errors.Is(err, auth.ErrNoSession) {
				t.Errorf("%v, %v: session: %v", c.SessionTime, c.SessionLife, err)
			}
			if list, err := strict.Sessions(ctx, acct.ID); err != nil || len(list) != 0 {
				t.Errorf("sessions %+v, %v", list, err)
			}
		}
		expect(token, true)
		if _, _, err := newAccounts(db, auth.Config{SessionLife: time.Millisecond}).Login(ctx, "Ada", password, home); err != nil {
			t.Fatal(err)
		}
		expect(token, false)
		if all, err := db.Sessions().List(ctx, acct.ID); err != nil || len(all) != 1 {
			t.Errorf("%d sessions are kept, %v", len(all), err)
		}
	})
}

// Cookies count only in requests from a page of the service.
func TestCookies(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := open(t, filepath.Join(t.TempDir(), "filewright.db"))
	base, err := url.Parse("https://files.example/x/")
	systest.NoError(t, err)
	direct, proxied, public := newAccounts(db, auth.Config{}), newAccounts(db, auth.Config{TrustProxy: true}), newAccounts(db, auth.Config{BaseURL: base})
	acct, password, err := direct.Create(ctx, auth.NewAccount{Name: "Ada"})
	systest.NoError(t, err)
	token, err := direct.ChangePassword(ctx, acct.ID, password, "correct horse battery", home)
	systest.NoError(t, err)
	for _, tt := range []struct {
		name   string
		a      *auth.Accounts
		r      *http.Request
		let    bool
		secure bool
	}{
		{"no browser", direct, session(token), true, false},
		{"same origin", direct, session(token, "Sec-Fetch-Site", "same-origin"), true, false},
		{"cross site", direct, session(token, "Sec-Fetch-Site", "cross-site"), false, false},
		{"another subdomain", direct, session(token, "Sec-Fetch-Site", "same-site"), false, false},
		{"post from nowhere", direct, session(token, "Sec-Fetch-Site", "none"), false, false},
		{"old browser, same origin", direct, session(token, "Origin", "http://files.test"), true, false},
		{"old browser, other port", direct, session(token, "Origin", "http://files.test:81"), false, false},
		{"old browser, other scheme", direct, session(token, "Origin", "https://files.test"), false, false},
		{"old browser, other host", direct, session(token, "Origin", "http://evil.test"), false, false},
		{"old browser, no origin to speak of", direct, session(token, "Origin", "null"), false, false},
		{"a proxy that is not trusted", direct, session(token, "Origin", "https://files.test", "X-Forwarded-Proto", "https"), false, false},
		{"a proxy", proxied, session(token, "Origin", "https://public.test", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "public.test"), true, true},
		{"a public address", public, session(token, "Origin", "https://files.example"), true, true},
		{"not the public address", public, session(token, "Origin", "http://files.test"), false, true},
		{"a wrong key beside it", direct, session(token, "Authorization", "Bearer fw_x"), false, false},
		{"another cookie", direct, session(token[:51] + "x"), false, false},
	} {
		p, err := tt.a.Authenticate(tt.r)
		if (p.Account == acct.ID) != tt.let || !tt.let && !errors.Is(err, httpapi.ErrUnauthenticated) {
			t.Errorf("%s: %+v, %v", tt.name, p, err)
		}
		w := httptest.NewRecorder()
		tt.a.SetCookie(w, tt.r, token)
		c := w.Result().Cookies()[0]
		if c.Value != token || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure != tt.secure || c.MaxAge < 86400 {
			t.Errorf("%s: cookie %+v", tt.name, c)
		}
		w = httptest.NewRecorder()
		tt.a.ClearCookie(w, tt.r)
		if c := w.Result().Cookies()[0]; c.Value != "" || c.MaxAge >= 0 || c.Secure != tt.secure || c.Path != "/" {
			t.Errorf("%s: cleared cookie %+v", tt.name, c)
		}
	}
	if got, err := direct.Current(session(token)); err != nil || got.ID != acct.ID {
		t.Errorf("current account %+v, %v", got, err)
	}
	for _, r := range []*http.Request{httptest.NewRequest("GET", "/", nil), session("x")} {
		if _, err := direct.Current(r); !errors.Is(err, auth.ErrNoSession) {
			t.Errorf("current account: %v", err)
		}
	}
	r := session(token, "X-Forwarded-For", "198.51.100.7, 203.0.113.9", "User-Agent", "browser")
	r.RemoteAddr = "192.0.2.9:1234"
	if got := direct.From(r); got != (auth.Client{Address: "192.0.2.9", Agent: "browser"}) {
		t.Errorf("from %+v", got)
	}
	if got := proxied.From(r); got.Address != "203.0.113.9" {
		t.Errorf("from %+v", got)
	}
}

// Password guessing is throttled, and nobody else is locked out.
func TestThrottled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a := newAccounts(open(t, filepath.Join(t.TempDir(), "filewright.db")), auth.Config{})
	acct, password, err := a.Create(ctx, auth.NewAccount{Name: "Ada"})
	systest.NoError(t, err)
	if _, _, err := a.Login(ctx, "Ada", password, home); err != nil {
		t.Fatal(err)
	}
	try := func(name, password string, from int) error {
		_, _, err := a.Login(ctx, name, password, auth.Client{Address: fmt.Sprint("192.0.2.", from)})
		return err
	}
	refused := 0
	for i := range 15 { // each from another address
		switch err := try("ada", "wrong", 100+i); {
		case problemStatus(err) == 429:
			refused++
		case !errors.Is(err, auth.ErrCredentials):
			t.Fatal(err)
		}
	}
	if refused < 3 {
		t.Errorf("of 15 attempts %d were refused", refused)
	}
	if err := try("ADA", password, 200); problemStatus(err) != 429 {
		t.Errorf("the right password among many attempts: %v", err)
	}
	if err := try("Ada", password, 1); err != nil {
		t.Errorf("from where Ada has logged in: %v", err)
	}
	refused = 0
	for i := range 15 { // each with another name
		if err := try(fmt.Sprint("name", i), "wrong", 50); problemStatus(err) == 429 {
			refused++
		}
	}
	if refused < 3 {
		t.Errorf("of 15 attempts from one address %d were refused", refused)
	}
	// Changing the password is throttled too.
	refused = 0
	for range 15 {
		if _, err := a.ChangePassword(ctx, acct.ID, "wrong", "correct horse battery", home); problemStatus(err) == 429 {
			refused++
		}
	}
	if refused < 3 {
		t.Errorf("of 15 attempts to change the password %d were refused", refused)
	}
}

func ExampleAccounts() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "accounts-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "filewright.db")})
	if err != nil {
		panic(err)
	}
	defer db.Close()

	accounts := auth.New(auth.Config{Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db})
	name, password, err := accounts.Bootstrap(ctx)
	if err != nil {
		panic(err)
	}
	token, acct, err := accounts.Login(ctx, name, password, auth.Client{Address: "192.0.2.1"})
	if err != nil {
		panic(err)
	}
	fmt.Println(acct.Name, acct.Administrator, acct.MustChange)
	if _, err := accounts.ChangePassword(ctx, acct.ID, password, "correct horse battery staple", auth.Client{}); err != nil {
		panic(err)
	}
	_, err = accounts.Session(ctx, token)
	fmt.Println(err)
	// Output:
	// admin true true
	// unauthorized: the session has expired; log in again
}
