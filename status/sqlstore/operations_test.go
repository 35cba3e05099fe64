package sqlstore_test

import (
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/sqlstore"
	"github.com/filewright/filewright/status/statustest"
)

func open(t testing.TB) *sqlstore.DB {
	t.Helper()
	return openPath(t, filepath.Join(t.TempDir(), "test.db"))
}

func openPath(t testing.TB, path string) *sqlstore.DB {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestOperations(t *testing.T) {
	t.Parallel()
	statustest.Run(t, func(t *testing.T) status.Store { return open(t).Operations() })
}
