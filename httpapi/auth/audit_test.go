package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		ctx := t.Context()
		db := connect()
		a := newAccounts(db, auth.Config{Audit: db.Audit()})
		all := func() []account.AuditEntry {
			t.Helper()
			page, err := a.AuditEntries(ctx, account.AuditQuery{Limit: 5000})
			systest.NoError(t, err)
			return page.Entries
		}
		ada, password, err := a.Create(ctx, auth.NewAccount{Name: "Ada"})
		systest.NoError(t, err)
		if list := all(); len(list) != 1 || list[0].Action != account.AuditAccountCreate || !list[0].Actor.System() || list[0].Account != ada.ID {
			t.Fatalf("a command is recorded as %+v", list)
		}

		// The actor of a key has the name of the key.
		_, key, err := a.Keys().Create(ctx, auth.NewKey{Name: "robot", Account: ada.ID})
		systest.NoError(t, err)
		name := "Eve"
		_, err = a.Update(auth.WithActor(ctx, account.Actor{Key: key.ID, Address: "192.0.2.7"}), ada.ID, auth.Change{Name: &name})
		systest.NoError(t, err)
		if e := all()[0]; e.Actor != (account.Actor{Key: key.ID, Name: "robot", Address: "192.0.2.7"}) || e.Detail != "name" || e.Name != "Ada" {
			t.Errorf("the change of a key is recorded as %+v", e)
		}

		// A failed change has no entry.
		before := len(all())
		if _, _, err := a.Create(ctx, auth.NewAccount{Name: "eve"}); !errors.Is(err, account.ErrNameTaken) {
			t.Errorf("a taken name: %v", err)
		}
		if n := len(all()); n != before {
			t.Errorf("%d entries after a failed change, want %d", n, before)
		}

		// Logins and refused ones.
		if _, _, err := a.Login(ctx, "eve", "wrong", home); !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("a wrong password: %v", err)
		}
		_, _, err = a.Login(ctx, "eve", password, home)
		systest.NoError(t, err)
		list := all()
		if in, out := list[0], list[1]; in.Refused || in.Actor != (account.Actor{Login: ada.ID, Name: "Eve", Address: home.Address}) || !out.Refused || out.Account != ada.ID {
			t.Errorf("logins are recorded as %+v", list[:2])
		}

		// Old entries are removed.
		sweeping, stop := context.WithCancel(ctx)
		defer stop()
		a.SweepAudit(sweeping, -1) // unlimited: returns
		if len(all()) == 0 {
			t.Error("an unlimited log was emptied")
		}
		old := account.AuditEntry{Time: time.Now().Add(-2 * time.Hour), Action: account.AuditLogin, Object: "old"}
		for range 1001 {
			systest.NoError(t, db.Audit().Record(ctx, &old))
		}
		kept := len(all()) - 1001
		go a.SweepAudit(sweeping, time.Hour)
		for len(all()) != kept {
			if ctx.Err() != nil {
				t.Fatal("old entries stay")
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// Refused logins of strangers fill neither the database nor the log of an account.
func TestAuditRefusals(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir()+"/x.db")
	a := newAccounts(db, auth.Config{Audit: db.Audit()})
	refuse := func(context.Context) error { return auth.ErrCredentials }
	for range 1100 {
		if err := a.Audit(t.Context(), account.AuditEntry{Action: account.AuditLogin}, refuse); !errors.Is(err, auth.ErrCredentials) {
			t.Fatal(err)
		}
	}
	page, err := a.AuditEntries(t.Context(), account.AuditQuery{Limit: 2000})
	systest.NoError(t, err)
	if n := len(page.Entries); n < 1000 || n > 1010 || !page.Entries[0].Refused {
		t.Errorf("%d refusals are recorded", n)
	}
}

// A store that cannot record leaves the change as it is, and the log names the entry.
func TestAuditFails(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir()+"/x.db")
	log := &logtest.Buffer{}
	a := newAccounts(db, auth.Config{Audit: brokenAudit{db.Audit()}, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err := a.Audit(t.Context(), account.AuditEntry{Action: account.AuditAccountExport, Object: "x"}, nil); err != nil {
		t.Errorf("a change without an entry: %v", err)
	}
	if !strings.Contains(log.String(), "action=account.export") {
		t.Errorf("the log is %s", log)
	}
}

type brokenAudit struct{ account.AuditStore }

func (brokenAudit) Record(context.Context, *account.AuditEntry) error { return errors.New("broken") }
