// Package sqlstore keeps operations, file records, accounts, API keys, webhooks and
// settings in a database. SQLite needs one file, no server and no cgo; PostgreSQL can
// be shared by processes on several machines. It implements the stores of packages
// account, status, upload and webhook.
//
//	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: "data/filewright.db", Exclusive: true})
//	...
//	defer db.Close()
//	tracker, err := status.New(status.Config{Store: db.Operations(), Exclusive: true, ...})
//
// # Durability
//
// When a method has returned, its changes survive a crash of the process and of the
// machine. SQLite's journal is a write-ahead log with synchronous=FULL. One connection
// writes; several others read and do not wait for it. PostgreSQL is used as configured;
// its defaults have the same effect.
//
// Some changes in SQLite are durable only once a later one is: claims of items,
// heartbeats, results of items that are not final, and the starts of uploads whose parts
// the server receives. They survive a crash of the process. After a crash of the machine
// nobody needs them: the only server was on it, its items run again, and an upload
// without a part is started again.
//
// # Several processes
//
// Several processes may have an SQLite database open, for example a server and a
// command that creates an API key. Only one may run operations; it opens the database
// with Options.Exclusive. The database must be on a local file system. Any number of
// processes may run operations of a PostgreSQL database, with package riverqueue as
// their dispatcher.
//
// # Erased data
//
// The parameters of an operation are set to NULL when it is final. SQLite, with
// secure_delete=ON, also overwrites the old content in the database file, even where it
// spans several pages. The write-ahead log may hold older copies until its next
// checkpoint. Close checkpoints and truncates it; so does the deletion of finished
// operations, which a Tracker does at least once a minute. PostgreSQL keeps old
// versions of rows until they are vacuumed, and in its own log.
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/transfer"
	"github.com/filewright/filewright/status/webhook"
	"github.com/filewright/filewright/upload"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Name suffixes of migrations for only one of the databases.
const (
	onlyPostgres = "_postgres.sql"
	onlySQLite   = "_sqlite.sql"
)

// migrations returns a provider of the migrations for a database.
func migrations(dialect goose.Dialect, db *sql.DB) (*goose.Provider, error) {
	dir, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	other := onlySQLite
	if dialect != goose.DialectPostgres {
		other = onlyPostgres
	}
	exclude, err := fs.Glob(dir, "*"+other)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, db, dir, goose.WithExcludeNames(exclude),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}

// newest returns the version of the last migration of p.
func newest(p *goose.Provider) int64 {
	sources := p.ListSources()
	return sources[len(sources)-1].Version
}

// Errors of Open.
var (
	// ErrLocked reports that another process uses the database exclusively.
	ErrLocked = errors.New("the database is in use by another process")

	// ErrNewer reports that the database was written by a newer version of this
	// program, and that this version might damage it.
	ErrNewer = errors.New("the database belongs to a newer version of this program")
)

// Options configure a [DB]. Path or URL is required.
type Options struct {
	// Path is the SQLite database file. It is created if it does not exist, readable by
	// the user only; so is its directory. Next to it are files of the same name with
	// -wal, -shm and .lock appended.
	Path string

	// URL is a PostgreSQL database, postgres://user@host/name, which must exist. The
	// fields about SQLite do not apply to it.
	URL string

	// Exclusive makes Open fail with ErrLocked if another process has the SQLite
	// database open exclusively, and makes the Open of others fail until Close.
	Exclusive bool

	// Readers is the number of connections for reading from SQLite. 0: 4, or GOMAXPROCS
	// if greater.
	Readers int

	// Connections is the maximum number of PostgreSQL connections in [DB.Pool]; half as
	// many are opened in addition. 0: pool_max_conns of the URL, or 10.
	Connections int

	// Cache is the approximate size in bytes of the cache of finished operations. 0: 32
	// MiB, <0: no cache.
	Cache int64

	Log *slog.Logger // nil discards
}

// A DB is an open database. It is safe for concurrent use.
type DB struct {
	engine engine
	pg     *postgres // nil if the engine is SQLite
	cache  *cache
	grants *grantCache // nil if the engine is PostgreSQL
	outbox outbox
	meter  *meter

	touched sync.Map // API key ID → time.Time of its last recorded use
}

var (
	_ account.Store        = (*Accounts)(nil)
	_ account.KeyStore     = (*Keys)(nil)
	_ account.SessionStore = (*Sessions)(nil)
	_ account.UsageStore   = (*DB)(nil)
	_ status.Feed          = (*Operations)(nil)
	_ status.Store         = (*Operations)(nil)
	_ upload.Store         = (*Files)(nil)
	_ transfer.Store       = (*Transfers)(nil)
	_ webhook.Store        = (*Webhooks)(nil)
)

// An engine is the part that differs between the databases.
type engine interface {
	// tx runs f in a transaction that may write, and commits it unless f fails. f must
	// use the database only through its tx. It may be called again if the transaction
	// conflicts with others.
	tx(ctx context.Context, f func(context.Context, tx) error) error

	// soft is tx for changes that nobody needs after a crash of the machine if the only
	// server runs on it.
	soft(ctx context.Context, f func(context.Context, tx) error) error

	// heartbeat is tx for heartbeats, which other transactions must not delay and which
	// need not survive a crash of the database.
	heartbeat(ctx context.Context, f func(context.Context, tx) error) error

	// view runs f in a transaction that sees one state of the database.
	view(ctx context.Context, f func(context.Context, tx) error) error

	// each runs a query in a view of its own and calls f to scan every row.
	each(ctx context.Context, f func(scanner) error, text string, args ...any) error

	// now is the time by which leases are measured.
	now() time.Time

	// alive is the time after which a lease must end for its claim to be live: now, or
	// an earlier time after an outage in which claims could not be renewed.
	alive() time.Time

	// tidy is called after large deletions.
	tidy(ctx context.Context) error

	close() error
}

// A tx is a transaction. Both databases use the same SQL except for row locks, which
// SQLite does not need: it runs one writing transaction at a time.
type tx interface {
	each(ctx context.Context, f func(scanner) error, text string, args ...any) error
	row(ctx context.Context, text string, args ...any) scanner
	exec(ctx context.Context, text string, args ...any) (int64, error)

	// later is exec without waiting for the result. PostgreSQL gets the statement in
	// the round trip of the next other call or the commit, which returns its error. If
	// f is not nil, it is called for each row. It must only scan, because the
	// transaction may be committed by then.
	later(ctx context.Context, f func(scanner) error, text string, args ...any) error

	// change is later for a statement that must change a row. If it changes none, for
	// example because another transaction was first, this transaction fails with an
	// error that matches lost.
	change(ctx context.Context, lost error, text string, args ...any) error

	// flush sends the statements queued by later and change and waits for their
	// results.
	flush(ctx context.Context) error

	// locking returns the clause at the end of a query that locks its rows until the
	// end of the transaction.
	locking() string

	// issue records that items of a lane were added or finished, so that tickets are
	// issued after the commit.
	issue(l status.Lane)

	// issueNext is issue for a finished item, which matters only if the owner has
	// queued items.
	issueNext(l status.Lane)
}

// A scanner is a result row.
type scanner interface{ Scan(...any) error }

// failed is a row that could not be read.
type failed struct{ error }

func (f failed) Scan(...any) error { return f.error }

// A flag scans a number as a bool.
type flag bool

func (f *flag) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("cannot scan %T as a bool", v)
	}
	*f = n != 0
	return nil
}

// Open opens the database and brings its schema up to date. If it must change the
// schema of an SQLite database, no other process may have that open exclusively.
// Several processes may open a PostgreSQL database at the same time: one of them
// migrates it.
func Open(ctx context.Context, o Options) (*DB, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	db := &DB{cache: newCache(o.Cache), meter: newMeter(), outbox: outbox{wake: make(chan struct{}, 1)}}
	switch {
	case o.Path != "" && o.URL != "":
		return nil, errors.New("sqlstore: Options has both a Path and a URL")
	case o.URL != "":
		p, err := openPostgres(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
		db.engine, db.pg = p, p
	case o.Path != "":
		path, err := filepath.Abs(o.Path)
		if err != nil {
			return nil, err
		}
		s, err := openSQLite(ctx, path, o)
		if err != nil {
			return nil, fmt.Errorf("open database %s: %w", o.Path, err)
		}
		db.engine, db.grants = s, newGrantCache(s.version)
	default:
		return nil, errors.New("sqlstore: Options has no Path")
	}
	return db, nil
}

// Close waits for running calls and closes the database. Methods called later fail.
func (db *DB) Close() error { return db.engine.close() }

// Ping checks that the database can be read and written. It waits for its turn to
// write, so it also detects a stuck writer when ctx ends.
func (db *DB) Ping(ctx context.Context) error {
	if _, err := db.Setting(ctx, ""); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return db.tx(ctx, func(context.Context, tx) error { return nil })
}

// Backup writes a consistent copy of an SQLite database to a new file while other calls
// continue to read and write. It fails on PostgreSQL, which has its own tools.
func (db *DB) Backup(ctx context.Context, path string) error {
	s, ok := db.engine.(*sqlite)
	if !ok {
		return fmt.Errorf("back up the database: %w; use pg_dump", errors.ErrUnsupported)
	}
	return s.backup(ctx, path)
}

// UnfinishedObjects returns the keys of the objects that unfinished operations in a copy by
// [DB.Backup] read: their inputs and the results of earlier steps. A server can delete these while
// the copy is made.
func UnfinishedObjects(ctx context.Context, path string) (keys []string, err error) {
	db, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"ro"}}))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, `WITH unfinished AS (SELECT i.inputs, i.results FROM items i JOIN operations o ON o.id = i.operation WHERE o.finished_ms IS NULL)
		SELECT f.object FROM files f WHERE f.object <> '' AND f.file_key IN (
			SELECT e.value ->> 'key' FROM unfinished u, json_each(u.inputs) e UNION SELECT e.value ->> 'key' FROM unfinished u, json_each(u.results) e)`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, rows.Err()
}

// Pool returns the connections to PostgreSQL, or nil if the database is SQLite.
func (db *DB) Pool() *pgxpool.Pool {
	if db.pg == nil {
		return nil
	}
	return db.pg.pool
}

// AsyncCommitPool returns connections to PostgreSQL whose commits do not wait for the
// disk (synchronous_commit=off), or nil if the database is SQLite. A crash of the
// database may lose the commits of the last second. Use it for data that can be
// recreated.
func (db *DB) AsyncCommitPool() *pgxpool.Pool {
	if db.pg == nil {
		return nil
	}
	return db.pg.async
}

// tx runs f in a transaction that may write, and commits it unless f fails.
// For the kinds of its errors see storeError.
func (db *DB) tx(ctx context.Context, f func(context.Context, tx) error) error {
	return db.write(ctx, db.engine.tx, f)
}

// soft is tx for changes that nobody needs after a crash of the machine; see engine.
func (db *DB) soft(ctx context.Context, f func(context.Context, tx) error) error {
	return db.write(ctx, db.engine.soft, f)
}

func (db *DB) write(ctx context.Context, run func(context.Context, func(context.Context, tx) error) error, f func(context.Context, tx) error) error {
	began := time.Now()
	f, done := audited(ctx, f)
	err := run(ctx, f)
	if err == nil {
		done()
	}
	return db.meter.done(kindWrite, began, storeError(ctx, err))
}

func (db *DB) view(ctx context.Context, f func(context.Context, tx) error) error {
	began := time.Now()
	return db.meter.done(kindRead, began, storeError(ctx, db.engine.view(ctx, f)))
}

// each runs a query in a view of its own and calls f to scan every row.
func (db *DB) each(ctx context.Context, f func(scanner) error, text string, args ...any) error {
	began := time.Now()
	return db.meter.done(kindRead, began, storeError(ctx, db.engine.each(ctx, f, text, args...)))
}

// one runs a query of one row. Without a row the error matches sql.ErrNoRows.
func (db *DB) one(ctx context.Context, f func(scanner) error, text string, args ...any) error {
	found := false
	err := db.each(ctx, func(row scanner) error {
		found = true
		return f(row)
	}, text, args...)
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return err
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
