// Package sqlstore keeps operations, file records, API keys and settings in an
// SQLite database: one file, no server, no cgo.
//
//	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: "data/filewright.db", Exclusive: true})
//	...
//	defer db.Close()
//	tracker, err := status.New(status.Config{Store: db.Operations(), Exclusive: true, ...})
//
// # Durability
//
// What a method has acknowledged survives a crash of the process and of the
// machine: the journal is a write-ahead log with synchronous=FULL. Writing
// is done by one connection, reading by several others that do not wait for it.
//
// # Several processes
//
// Several processes may have the database open, for example a server and a
// command that creates an API key. Only one may work on operations; it opens the
// database with Options.Exclusive. The database must be on a local file system.
//
// # Erased data
//
// The parameters of an operation are set to NULL when it is final. With
// secure_delete=ON the old content is overwritten in the database file as well,
// also where it was spread over several pages. The write-ahead log may hold
// older copies until its next checkpoint; deleting finished operations, which a
// Tracker does at least once a minute, and Close checkpoint and truncate it.
package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // registers the driver
)

//go:embed migrations/*.sql
var migrations embed.FS

// Errors of Open.
var (
	// ErrLocked tells that another process uses the database exclusively.
	ErrLocked = errors.New("the database is in use by another process")

	// ErrNewer tells that the database was written by a newer version of
	// this program, which this one might damage.
	ErrNewer = errors.New("the database belongs to a newer version of this program")
)

// Options configure a [DB]. Path is required.
type Options struct {
	// Path is the database file. It is created if it does not exist, readable
	// by the user only, and so is its directory. Beside it are files of the
	// same name with -wal, -shm and .lock appended.
	Path string

	// Exclusive makes Open fail with ErrLocked if another process has the
	// database open in this way, and others fail until Close.
	Exclusive bool

	// Readers is the number of connections for reading. 0: 4, or GOMAXPROCS
	// if that is more.
	Readers int
}

// A DB is an open database. It is safe for concurrent use.
type DB struct {
	path string
	w    *writer
	r    *pool // connections that cannot write
	lock *os.File

	touched sync.Map // API key ID → time.Time of the last write of its use
}

// Open opens the database and brings its schema up to date. If it has to change
// the schema, no other process may have the database open exclusively.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Path == "" {
		return nil, errors.New("sqlstore: no path")
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	db, err := open(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", o.Path, err)
	}
	return db, nil
}

func open(ctx context.Context, path string, o Options) (_ *DB, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// SQLite gives its other files the permissions of this one.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}

	db := &DB{path: path}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	if o.Exclusive {
		if db.lock, err = lock(path + ".lock"); err != nil {
			return nil, err
		}
	}
	p, err := newPool(1, dsn(path, url.Values{"_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"secure_delete(1)", "journal_size_limit(67108864)", "cache_size(-16000)",
	}, "_txlock": {"immediate"}}))
	if err != nil {
		return nil, err
	}
	db.w = &writer{pool: p}
	if err = db.migrate(ctx); err != nil {
		return nil, err
	}
	n := o.Readers
	if n <= 0 {
		n = max(4, runtime.GOMAXPROCS(0))
	}
	if db.r, err = newPool(n, dsn(path, url.Values{"_pragma": {
		"busy_timeout(10000)", "query_only(1)", "cache_size(-8000)",
	}})); err != nil {
		return nil, err
	}
	return db, db.view(ctx, func(context.Context, *tx) error { return nil })
}

func dsn(path string, q url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… on Windows
	}
	u := url.URL{Scheme: "file", Path: path, OmitHost: true, RawQuery: q.Encode()}
	return u.String()
}

// migrate brings the schema up to date.
func (db *DB) migrate(ctx context.Context) error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db.w.db, dir,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	sources := p.ListSources()
	want := sources[len(sources)-1].Version
	have, err := db.version(ctx)
	if err != nil {
		return err
	}
	if have < want && db.lock == nil {
		// Whoever holds the lock may just be doing the same.
		var f *os.File
		for end := time.Now().Add(5 * time.Second); ; {
			if f, err = lock(db.path + ".lock"); err == nil {
				defer f.Close()
			} else if !errors.Is(err, ErrLocked) {
				return err
			}
			var err2 error
			if have, err2 = db.version(ctx); err2 != nil {
				return err2
			}
			if err == nil || have >= want {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("the schema must be updated from version %d to %d: %w", have, want, err)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	if have > want {
		return fmt.Errorf("schema version %d, known is %d: %w", have, want, ErrNewer)
	}
	if have < want {
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("update the schema from version %d to %d: %w", have, want, err)
		}
	}
	return nil
}

// version returns the version of the schema, 0 if there is none.
func (db *DB) version(ctx context.Context) (int64, error) {
	var n int
	err := db.w.db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'`).Scan(&n)
	if err != nil || n == 0 {
		return 0, err
	}
	var v sql.NullInt64
	err = db.w.db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version`).Scan(&v)
	return v.Int64, err
}

// Close closes the database when what is going on has ended. Methods called later
// fail.
func (db *DB) Close() error {
	var errs []error
	// The connection that is closed last merges the log into the database and
	// removes it; one that may not write could not.
	if db.r != nil {
		errs = append(errs, db.r.close())
	}
	if db.w != nil {
		errs = append(errs, db.w.close())
	}
	if db.lock != nil {
		errs = append(errs, db.lock.Close())
		db.lock = nil
	}
	return errors.Join(errs...)
}

// Ping makes sure that the database can be read and written. It waits for its turn
// to write, so it also notices a writer that is stuck, by the end of ctx.
func (db *DB) Ping(ctx context.Context) error {
	if _, err := db.Setting(ctx, ""); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return db.tx(ctx, func(context.Context, *tx) error { return nil })
}

// Backup writes a consistent copy of the database to a new file while others go
// on reading and writing.
func (db *DB) Backup(ctx context.Context, path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err2 := f.Close(); err == nil {
			err = err2
		}
		if err != nil {
			os.Remove(path)
		}
	}()
	// A connection of its own: those for reading refuse it, that for writing
	// is needed.
	c, err := sql.Open("sqlite", dsn(db.path, url.Values{"_pragma": {"busy_timeout(10000)"}}))
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, `VACUUM INTO $1`, path); err != nil {
		return fmt.Errorf("back up the database: %w", err)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced
	}
	return dir.Sync()
}

// checkpoint moves the write-ahead log into the database and empties it, if no
// reader needs it.
func (db *DB) checkpoint(ctx context.Context) error {
	c, err := db.w.get(ctx)
	if err != nil {
		return err
	}
	defer db.w.put(c)
	// It holds up all writers while it waits for readers, one of which may be
	// a backup. There will be another time.
	defer func() {
		if _, err := c.ExecContext(context.WithoutCancel(ctx), `PRAGMA busy_timeout(10000)`); err != nil {
			c.broken = true
		}
	}()
	if _, err := c.ExecContext(ctx, `PRAGMA busy_timeout(50)`); err != nil {
		return err
	}
	var busy, log, moved int
	return c.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &moved)
}

// tx runs f in a transaction that may write, and commits it unless f fails. f must
// not use the database otherwise: there is only one connection that writes.
//
// If the disk is full the error matches syscall.ENOSPC.
func (db *DB) tx(ctx context.Context, f func(context.Context, *tx) error) error {
	err := db.w.run(ctx, f)
	var code interface{ Code() int } // of the driver
	if errors.As(err, &code) {
		switch code.Code() {
		case sqliteFull, sqliteShmSize:
			return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
		}
	}
	return err
}

// Result codes of SQLite (sqlite3.h) that mean a full disk.
const (
	sqliteFull    = 13
	sqliteShmSize = 10 | 19<<8 // SQLITE_IOERR_SHMSIZE: the index of the log cannot grow
)

// view runs f in a transaction that sees one state of the database.
func (db *DB) view(ctx context.Context, f func(context.Context, *tx) error) error {
	return db.r.run(ctx, f)
}

// each runs a query in a view of its own and has f scan every row.
func (db *DB) each(ctx context.Context, f func(scanner) error, text string, args ...any) error {
	return db.view(ctx, func(ctx context.Context, t *tx) error { return t.each(ctx, f, text, args...) })
}

func millis(t time.Time) int64 { return t.UnixMilli() }

// millisOrNull is NULL for the zero time.
func millisOrNull(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func timeOrZero(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return timeOf(ms.Int64)
}

func textOrNull(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
