package sqlstore_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/statustest"
)

func open(t testing.TB) *sqlstore.DB {
	t.Helper()
	return openPath(t, filepath.Join(t.TempDir(), "test.db"))
}

func openPath(t testing.TB, path string) *sqlstore.DB {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
	systest.NoError(t, err)
	systest.AtEnd(t, db.Close)
	return db
}

func TestOperations(t *testing.T) {
	t.Parallel()
	statustest.Run(t, func(t *testing.T) status.Store { return open(t).Operations() })
}

func TestParallel(t *testing.T) {
	t.Parallel()
	statustest.RunParallel(t, func(t *testing.T) (status.Store, func(string, int)) {
		db := open(t)
		return db.Operations(), limiter(t, db)
	})
}

// limiter returns a function that sets how many items of an account may run at once.
func limiter(t *testing.T, db *sqlstore.DB) func(owner string, n int) {
	return func(owner string, n int) {
		t.Helper()
		a := db.Accounts()
		_, err := a.Update(t.Context(), owner, func(a *account.Account) error {
			a.Limits.Parallel = n
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) {
			err = a.Create(t.Context(), &account.Account{ID: owner, Limits: account.Limits{Parallel: n}})
		}
		systest.NoError(t, err)
	}
}
