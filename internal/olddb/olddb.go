// Package olddb creates databases with the schema of an earlier version, for tests of
// upgrades and measurements of startup.
package olddb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // registers the driver
)

// First is the schema version of the first release, before the indexes for startup and
// lists.
const First = 10

// Open creates a database and migrates its schema to the given version. target is a
// postgres:// URL or the path of an SQLite file. The caller must close the database
// before a server opens it.
func Open(ctx context.Context, target string, version int64) (_ *sql.DB, err error) {
	driver, dialect, other := "sqlite", goose.DialectSQLite3, "*_postgres.sql"
	if Postgres(target) {
		driver, dialect, other = "pgx", goose.DialectPostgres, "*_sqlite.sql"
	} else {
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return nil, err
		}
		target = "file:" + target + "?_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, target)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	if driver == "sqlite" {
		db.SetMaxOpenConns(1)
	}
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(here), "..", "..", "httpapi", "sqlstore", "migrations")
	exclude, err := filepath.Glob(filepath.Join(dir, other))
	if err != nil {
		return nil, err
	}
	for i, path := range exclude {
		exclude[i] = filepath.Base(path)
	}
	p, err := goose.NewProvider(dialect, db, os.DirFS(dir), goose.WithExcludeNames(exclude),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("migrations in %s: %w", dir, err)
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		return nil, err
	}
	return db, nil
}

// Postgres reports whether a target is a PostgreSQL database.
func Postgres(target string) bool { return strings.HasPrefix(target, "postgres://") }
