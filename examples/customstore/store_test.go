package customstore_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/filewright/filewright/examples/customstore"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/blobtest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "files.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		if _, err := db.Exec(`CREATE TABLE files (key BLOB PRIMARY KEY, modified INTEGER NOT NULL, data BLOB NOT NULL)`); err != nil {
			t.Fatal(err)
		}
		return customstore.Store{DB: db}
	})
}
