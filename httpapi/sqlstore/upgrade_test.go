package sqlstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/olddb"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// Items of a server that counted its own deaths as attempts continue after an upgrade:
// an item at its last attempt gets that attempt again.
func TestAttemptsOfOldDatabases(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, target string, open func() *sqlstore.DB) {
		old, err := olddb.Open(t.Context(), target, olddb.First)
		systest.NoError(t, err)
		for _, text := range []string{
			`INSERT INTO operations (id, owner, action, state, cancelled, open_items, completed_items, fingerprint, created_ms)
				VALUES ('a', 'ada', 'zip', 'running', 0, 3, 0, '', 1)`,
			`INSERT INTO items (operation, idx, queue, owner, created_ms, state, attempt, token, worker, due_ms, progress, started_ms) VALUES
				('a', 0, 'zip', 'ada', 1, 'running', 3, 7, 'old', 1, 0.5, 1),
				('a', 1, 'zip', 'ada', 1, 'queued', 2, 2, NULL, 1, 0, 1),
				('a', 2, 'zip', 'ada', 1, 'queued', 0, 0, NULL, 1, 0, NULL)`,
		} {
			if _, err := old.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		systest.NoError(t, old.Close())
		s := open().Operations()
		if n, err := s.Recover(t.Context(), "new"); n != 1 || err != nil {
			t.Fatalf("%d items were recovered, %v; want 1", n, err)
		}
		for i, want := range []status.Item{{Attempt: 3, Restarts: 1, Claims: 8}, {Attempt: 3, Claims: 3}, {Attempt: 1, Claims: 1}} {
			c, err := s.Claim(t.Context(), status.Ref{Operation: "a", Index: i}, "new", time.Hour)
			systest.NoError(t, err)
			if it := c.Item; it.Attempt != want.Attempt || it.Restarts != want.Restarts || it.Claims != want.Claims || it.Waiting != nil {
				t.Errorf("item %d is %+v, want %+v", i, it, want)
			}
			if _, err := s.Finish(t.Context(), c, status.Outcome{}); err != nil {
				t.Fatal(err)
			}
		}
		if op, err := s.Get(t.Context(), "a"); err != nil || op.State != status.Completed {
			t.Errorf("the operation is %+v, %v", op, err)
		}
	}
	onEmpty(t, check)
}

// Each login of an old database owns its account, without anything to do.
func TestOwnersOfOldDatabases(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, target string, open func() *sqlstore.DB) {
		old, err := olddb.Open(t.Context(), target, olddb.First)
		systest.NoError(t, err)
		if _, err := old.ExecContext(t.Context(), `INSERT INTO accounts (id, name, login, administrator, password, must_change, created_ms, max_stored, max_bytes, max_operations, max_parallel)
			VALUES ('a', 'Ada', 'ada', 0, 'x', 0, 1, 0, 0, 0, 0), ('b', '', NULL, 0, '', 0, 2, 0, 0, 0, 0)`); err != nil {
			t.Fatal(err)
		}
		systest.NoError(t, old.Close())
		db := open()
		for id, want := range map[string]int{"a": 1, "b": 0} {
			list, err := db.Members().Members(t.Context(), id)
			if err != nil || len(list) != want || want > 0 && (list[0].Role != account.RoleOwner || list[0].Owner() != id) {
				t.Errorf("the members of %s are %+v, %v", id, list, err)
			}
		}
	}
	onEmpty(t, check)
}

// onEmpty calls check with an empty database of each kind: its path or URL, and a function that opens it.
func onEmpty(t *testing.T, check func(t *testing.T, target string, open func() *sqlstore.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "test.db")
		check(t, path, func() *sqlstore.DB { return openPath(t, path) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.Empty(t)
		check(t, url, func() *sqlstore.DB { return openURL(t, url) })
	})
}
