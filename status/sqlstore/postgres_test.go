package sqlstore_test

import (
	"testing"

	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/sqlstore"
	"github.com/filewright/filewright/status/statustest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/uploadtest"
)

// openPostgres opens a new PostgreSQL database.
func openPostgres(t testing.TB) *sqlstore.DB {
	t.Helper()
	return openURL(t, pgtest.New(t))
}

func openURL(t testing.TB, url string) *sqlstore.DB {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url})
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

func TestPostgresOperations(t *testing.T) {
	t.Parallel()
	statustest.Run(t, func(t *testing.T) status.Store { return openPostgres(t).Operations() })
}

func TestPostgresFiles(t *testing.T) {
	t.Parallel()
	uploadtest.Run(t, func(t *testing.T) upload.Store { return openPostgres(t).Files() })
}

func TestPostgresKeys(t *testing.T) {
	t.Parallel()
	testKeys(t, openPostgres(t))
}

func TestPostgresSettings(t *testing.T) {
	t.Parallel()
	testSettings(t, openPostgres(t))
}
