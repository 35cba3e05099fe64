package sqlstore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

func eachDatabase(t *testing.T, f func(*testing.T, *sqlstore.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); f(t, open(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, openPostgres(t)) })
}

// An entry is stored in the transaction of its change: both or neither.
func TestAuditWithChange(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		audit := db.Audit()
		count := func() int {
			t.Helper()
			page, err := audit.Entries(t.Context(), account.AuditQuery{})
			systest.NoError(t, err)
			return len(page.Entries)
		}
		entry := &account.AuditEntry{Time: time.Now(), Account: "a", Action: account.AuditKeyCreate, Object: "k"}
		ctx, pending := account.WithAudit(t.Context(), entry)
		key := &account.Key{ID: "k", Account: "a", Hash: [32]byte{1}, Created: time.Now()}
		systest.NoError(t, db.Keys().Create(ctx, key))
		if n := count(); n != 1 || !pending.Stored() {
			t.Fatalf("%d entries after a change; stored: %t", n, pending.Stored())
		}
		systest.NoError(t, db.Keys().Update(ctx, key)) // the entry describes one change
		ctx, pending = account.WithAudit(t.Context(), entry)
		if err := db.Keys().Create(ctx, key); !errors.Is(err, fs.ErrExist) {
			t.Fatalf("a second key: %v", err)
		}
		if n := count(); n != 1 || pending.Stored() {
			t.Errorf("%d entries after a failed change; stored: %t", n, pending.Stored())
		}
	})
}

func TestAuditEntries(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		ctx, audit := t.Context(), db.Audit()
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range 20 {
			e := account.AuditEntry{
				Time: start.Add(time.Duration(i/2) * time.Hour), Account: []string{"a", "b"}[i%2], Action: account.AuditKeyCreate, Object: fmt.Sprint(i), Name: "key 100%",
				Actor: account.Actor{Login: "l", Name: "Ärzte_" + fmt.Sprint(i), Address: "192.0.2.1"},
			}
			if i == 7 {
				e.Actor, e.Action, e.Refused, e.Detail = account.Actor{}, account.AuditAccountUpdate, true, "limits"
			}
			systest.NoError(t, audit.Record(ctx, &e))
		}
		all := func(q account.AuditQuery) (objects []string) {
			t.Helper()
			for {
				page, err := audit.Entries(ctx, q)
				systest.NoError(t, err)
				for _, e := range page.Entries {
					objects = append(objects, e.Object)
				}
				if q.After = page.Next; q.After == "" {
					return objects
				}
			}
		}
		for _, c := range []struct {
			name string
			q    account.AuditQuery
			want int
		}{
			{"all", account.AuditQuery{}, 20},
			{"pages", account.AuditQuery{Limit: 3}, 20},
			{"account", account.AuditQuery{Account: "a", Limit: 3}, 10},
			{"action", account.AuditQuery{Action: account.AuditAccountUpdate}, 1},
			{"system", account.AuditQuery{System: true}, 1},
			{"name", account.AuditQuery{Who: "ärzte_1"}, 11},
			{"no wildcard", account.AuditQuery{Who: "ä%"}, 0},
			{"address", account.AuditQuery{Who: "192.0.2.", Limit: 7}, 19},
			{"from", account.AuditQuery{From: start.Add(8 * time.Hour)}, 4},
			{"to", account.AuditQuery{Account: "b", To: start.Add(2 * time.Hour)}, 2},
		} {
			got := all(c.q)
			seen := make(map[string]bool)
			for _, o := range got {
				seen[o] = true
			}
			if len(got) != c.want || len(seen) != c.want {
				t.Errorf("%s: %v, want %d", c.name, got, c.want)
			}
		}
		page, err := audit.Entries(ctx, account.AuditQuery{System: true})
		systest.NoError(t, err)
		if e := page.Entries[0]; !e.Refused || e.Detail != "limits" || e.Object != "7" || e.Account != "b" || !e.Time.Equal(start.Add(3*time.Hour)) || e.Name != "key 100%" {
			t.Errorf("the entry is %+v", e)
		}
		if _, err := audit.Entries(ctx, account.AuditQuery{After: "x"}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an invalid cursor: %v", err)
		}
		n, err := audit.DeleteBefore(ctx, start.Add(5*time.Hour), 7)
		systest.NoError(t, err)
		m, err := audit.DeleteBefore(ctx, start.Add(5*time.Hour), 7)
		systest.NoError(t, err)
		if left := all(account.AuditQuery{}); n != 8 || m != 2 || len(left) != 10 {
			t.Errorf("removed %d and %d, left %v", n, m, left)
		}
	})
}

// A search looks through a bounded number of entries, and continues after them.
func TestAuditScan(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db := openPath(t, path)
	sqlite(t, path, `WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 10100)
		INSERT INTO audit (id, at_ms, account, login, key_id, actor, address, action, object, name, detail, refused, search)
		SELECT 'e' || n, 1000 + n, 'a', '', '', '', '', CASE n WHEN 0 THEN 'key.revoke' ELSE 'login' END, '', '', '', 0, '' FROM c`)
	ctx, audit := t.Context(), db.Audit()
	page, err := audit.Entries(ctx, account.AuditQuery{Account: "a", Action: account.AuditKeyRevoke})
	systest.NoError(t, err)
	if len(page.Entries) != 0 || !page.Scanned || page.Next == "" {
		t.Fatalf("the first page is %+v", page)
	}
	page, err = audit.Entries(ctx, account.AuditQuery{Account: "a", Action: account.AuditKeyRevoke, After: page.Next})
	systest.NoError(t, err)
	if len(page.Entries) != 1 || page.Next != "" {
		t.Errorf("the second page is %+v", page)
	}
}
