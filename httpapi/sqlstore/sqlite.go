package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // registers the driver

	"github.com/filewright/filewright/internal/backoff"
	"github.com/filewright/filewright/internal/steady"
)

// An sqlite is the engine for SQLite, which keeps a database in a file.
type sqlite struct {
	path string
	w    *writer
	r    *pool // read-only connections
	seen *pool // of one connection, which only compares versions
	lock *os.File
	log  *slog.Logger

	clock *steady.Clock
}

func openSQLite(ctx context.Context, path string, o Options) (_ *sqlite, err error) {
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

	db := &sqlite{path: path, log: o.Log, clock: steady.NewThroughSuspend()}
	defer func() {
		if err != nil {
			db.close()
		}
	}()
	if o.Exclusive {
		if db.lock, err = LockFile(ctx, path+".lock"); err != nil {
			return nil, err
		}
	}
	busyPragma := fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())
	p, err := newPool(1, dsn(path, url.Values{"_pragma": {
		busyPragma, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"secure_delete(1)", "journal_size_limit(67108864)", "cache_size(-16000)",
	}, "_txlock": {"immediate"}}))
	if err != nil {
		return nil, err
	}
	db.w = &writer{pool: p}
	if err := connect(ctx, p.db); err != nil {
		return nil, err
	}
	if err := db.migrate(ctx); err != nil {
		return nil, err
	}
	n := o.Readers
	if n <= 0 {
		n = max(4, runtime.GOMAXPROCS(0))
	}
	if db.r, err = newPool(n, dsn(path, url.Values{"_pragma": {
		busyPragma, "query_only(1)", "cache_size(-8000)",
	}})); err != nil {
		return nil, err
	}
	if err := db.view(ctx, func(context.Context, tx) error { return nil }); err != nil {
		return nil, err
	}
	if db.seen, err = newPool(1, dsn(path, url.Values{"_pragma": {busyPragma, "query_only(1)", "cache_size(-100)"}})); err != nil {
		return nil, err
	}
	return db, nil
}

// busyTimeout is how long a connection waits for the locks of others.
const busyTimeout = 10 * time.Second

// connect opens the first connection of db. When several processes switch a new
// database to write-ahead logging at the same time, SQLite avoids a deadlock by failing
// some of them at once, without the busy timeout. So connect retries.
func connect(ctx context.Context, db *sql.DB) error {
	end := time.Now().Add(busyTimeout)
	for b := backoff.New(20*time.Millisecond, 20*time.Millisecond); ; {
		err := db.PingContext(ctx)
		if sqliteCode(err)&0xff != sqliteBusy || time.Now().After(end) || b.Wait(ctx) != nil {
			return err
		}
	}
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
func (db *sqlite) migrate(ctx context.Context) error {
	p, err := migrations(goose.DialectSQLite3, db.w.db)
	if err != nil {
		return err
	}
	want := newest(p)
	have, err := db.schema(ctx)
	if err != nil {
		return err
	}
	if have < want && db.lock == nil {
		// The process that holds the lock may be migrating, too. On a busy disk that
		// takes long, but the version grows.
		var f *os.File
		defer func() { f.Close() }() // a nil file is not closed
		for end := time.Now().Add(busyTimeout); ; {
			if f, err = lock(db.path + ".lock"); err != nil && !errors.Is(err, ErrLocked) {
				return err
			}
			before := have
			var err2 error
			if have, err2 = db.schema(ctx); err2 != nil {
				return err2
			}
			if have > before {
				end = time.Now().Add(busyTimeout)
			}
			if err == nil || have >= want {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("the schema must be updated from version %d to %d: %w", have, want, err)
			}
			if err := backoff.Sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	}
	if have > want {
		return fmt.Errorf("schema version %d, newest known version %d: %w", have, want, ErrNewer)
	}
	if have < want {
		if have > 0 {
			db.log.Info("updating the database schema", "from", have, "to", want)
		}
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("update the schema from version %d to %d: %w", have, want, err)
		}
	}
	return nil
}

// schema returns the version of the schema, or 0.
func (db *sqlite) schema(ctx context.Context) (int64, error) {
	var n int
	err := db.w.db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'`).Scan(&n)
	if err != nil || n == 0 {
		return 0, err
	}
	var v sql.NullInt64
	err = db.w.db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version`).Scan(&v)
	return v.Int64, err
}

func (db *sqlite) close() error {
	var errs []error
	// The last connection to close merges the log into the database and removes it,
	// which a read-only connection cannot do.
	if db.seen != nil {
		errs = append(errs, db.seen.close())
	}
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

func (db *sqlite) backup(ctx context.Context, path string) (err error) {
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
	// A separate connection: the reading ones refuse it, and the writing one is needed.
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

func (db *sqlite) tx(ctx context.Context, f func(context.Context, tx) error) error {
	return db.w.run(ctx, false, f)
}

func (db *sqlite) soft(ctx context.Context, f func(context.Context, tx) error) error {
	return db.w.run(ctx, true, f)
}

func (db *sqlite) heartbeat(ctx context.Context, f func(context.Context, tx) error) error {
	return db.soft(ctx, f)
}

func (db *sqlite) view(ctx context.Context, f func(context.Context, tx) error) error {
	return db.r.run(ctx, f)
}

func (db *sqlite) each(ctx context.Context, f func(scanner) error, text string, args ...any) error {
	return db.r.each(ctx, f, text, args...)
}

// version returns a number that changes whenever a transaction of any process is committed. Only
// calls without an error between them are comparable.
func (db *sqlite) version(ctx context.Context) (v int64, err error) {
	c, err := db.seen.get(ctx)
	if err != nil {
		return 0, err
	}
	defer db.seen.put(c)
	// Every authenticated request calls this. Without database/sql it takes half the time.
	err = c.Raw(func(dc any) error {
		if c.version == nil {
			s, err := dc.(driver.ConnPrepareContext).PrepareContext(context.WithoutCancel(ctx), `PRAGMA data_version`)
			if err != nil {
				return err
			}
			c.version = s
		}
		rows, err := c.version.(driver.StmtQueryContext).QueryContext(context.WithoutCancel(ctx), nil)
		if err != nil {
			return err
		}
		defer rows.Close()
		row := make([]driver.Value, 1)
		if err := rows.Next(row); err != nil {
			return err
		}
		var ok bool
		if v, ok = row[0].(int64); !ok {
			return fmt.Errorf("data_version is a %T", row[0])
		}
		return nil
	})
	c.broken = err != nil
	return v, err
}

// now returns a time that ignores jumps of the host's clock: a jump ends no lease and
// postpones no item.
func (db *sqlite) now() time.Time { return db.clock.Running() }

func (db *sqlite) alive() time.Time { return db.clock.Running() }

// tidy moves the write-ahead log into the database and empties it, if no
// reader needs it.
func (db *sqlite) tidy(ctx context.Context) error {
	c, err := db.w.get(ctx)
	if err != nil {
		return err
	}
	defer db.w.put(c)
	// While it waits for readers, such as a backup, it blocks all writers. If it times
	// out, the next call tidies up.
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

// predecessorTimeout is how long [LockFile] waits for a lock. A server that was killed
// while it started a program still holds its locks: the new process has a copy of the
// descriptor until it calls execve.
const predecessorTimeout = 5 * time.Second

// LockFile creates a file and locks it until it is closed or the process exits. It
// fails with [ErrLocked] if another process holds the lock and does not release it within
// five seconds.
func LockFile(ctx context.Context, path string) (*os.File, error) {
	for end := time.Now().Add(predecessorTimeout); ; {
		f, err := lock(path)
		if !errors.Is(err, ErrLocked) || time.Now().After(end) {
			return f, err
		}
		if err := backoff.Sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}
