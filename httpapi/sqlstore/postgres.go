package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/filewright/filewright/internal/backoff"
	"github.com/filewright/filewright/status"
)

// A postgres is the engine for PostgreSQL, which several processes may share.
//
// Transactions are READ COMMITTED. Those that change an operation or its items lock the
// row of the operation first. Exceptions are claims of items of an operation that has
// started, and heartbeats, which change only items of their own worker.
type postgres struct {
	pool       *pgxpool.Pool
	async      *pgxpool.Pool // commits do not wait for the disk
	heartbeats *pgxpool.Pool // like async; one connection that only heartbeats use
	log        *slog.Logger
	clock      clock
	feed       feed
	locks      locks
	stop       context.CancelFunc // stops the background goroutines
	done       sync.WaitGroup

	mu      sync.Mutex
	onReady func([]status.Lane)
	down    time.Time // since when the database is unreachable; zero: it is reachable
	outage  struct{ from, to time.Time }
}

// OnReady makes the database call f after the commit of every transaction that added,
// requeued or finished items of lanes, so that a dispatcher can queue them. f must not
// block. It is not called if the process dies in between. The column ticket is not null
// for items that are in the queue. OnReady fails if the database is SQLite.
func (db *DB) OnReady(f func([]status.Lane)) error {
	if db.pg == nil {
		return fmt.Errorf("tickets in SQLite: %w", errors.ErrUnsupported)
	}
	db.pg.mu.Lock()
	defer db.pg.mu.Unlock()
	db.pg.onReady = f
	return nil
}

// Timeouts of the database, unless the URL sets others.
var timeouts = map[string]string{
	"statement_timeout":                   "30s",
	"lock_timeout":                        "10s",
	"idle_in_transaction_session_timeout": "5s", // a client that loses its connection mid-transaction keeps its locks until then
	"application_name":                    "filewright",
}

// longest is the timeout of a transaction, and of a query outside transactions. Without
// it, a server that vanishes silently, with its host or behind a broken network, goes
// unnoticed for a quarter of an hour.
const longest = 30 * time.Second

func openPostgres(ctx context.Context, o Options) (_ *postgres, err error) {
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, err // does not contain the password
	}
	for name, v := range timeouts {
		if _, ok := cfg.ConnConfig.RuntimeParams[name]; !ok {
			cfg.ConnConfig.RuntimeParams[name] = v
		}
	}
	cfg.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnConfig.ConnectTimeout, 5*time.Second)
	switch {
	case o.Connections > 0:
		cfg.MaxConns = int32(o.Connections)
	case !strings.Contains(o.URL, "pool_max_conns"):
		cfg.MaxConns = 10
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := &postgres{pool: pool, log: o.Log}
	defer func() {
		if err != nil {
			p.closePools()
		}
	}()
	cfg = cfg.Copy()
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = max(2, cfg.MaxConns/2), 0, 0
	if p.async, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	cfg = cfg.Copy()
	cfg.MaxConns = 1
	if p.heartbeats, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	if err := p.retry(ctx, func() error { return pool.Ping(ctx) }); err != nil {
		return nil, err
	}
	if err := p.Migrate(ctx, p.migrate); err != nil {
		return nil, err
	}
	if err := p.clock.set(ctx, pool); err != nil {
		return nil, err
	}
	p.feed.init()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	p.done.Go(func() { p.keepTime(background) })
	p.done.Go(func() { p.publish(background) })
	return p, nil
}

func (p *postgres) close() error {
	p.stop()
	p.done.Wait()
	p.locks.close()
	p.closePools()
	return nil
}

// closeTimeout is how long Close waits for connections in use.
const closeTimeout = 3 * time.Second

// closePools closes all connections. After closeTimeout it leaves the connections that
// still wait for a server that does not respond; they are closed when their calls
// return.
func (p *postgres) closePools() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		var all sync.WaitGroup
		defer all.Wait()
		for _, pool := range []*pgxpool.Pool{p.pool, p.async, p.heartbeats} {
			if pool != nil {
				all.Go(pool.Close)
			}
		}
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
	}
}

// migrationLock is the advisory lock of the process that changes the schema. Versions
// before migration 15 use another lock and wait for it in the database. A statement
// that waits there holds a snapshot, and CREATE INDEX CONCURRENTLY waits for the end of
// all snapshots.
const migrationLock = 0x46_49_4c_45_57_52_32 // "FILEWR2"

// Migrate runs f while no other process is in Migrate on the same database. f creates
// tables other than those of this package.
func (db *DB) Migrate(ctx context.Context, f func(context.Context) error) error {
	if db.pg == nil {
		return f(ctx)
	}
	return db.pg.Migrate(ctx, f)
}

// Migrate implements [DB.Migrate].
func (p *postgres) Migrate(ctx context.Context, f func(context.Context) error) (err error) {
	// The connection is used only for the lock, which ends with it.
	cfg := p.pool.Config().ConnConfig
	cfg.RuntimeParams["statement_timeout"], cfg.RuntimeParams["lock_timeout"] = "0", "0"
	cfg.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	for b := backoff.New(5*time.Millisecond, 200*time.Millisecond); ; {
		var ok bool
		if err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(migrationLock)).Scan(&ok); err != nil {
			return fmt.Errorf("wait for another server to update the schema: %w", err)
		}
		if ok {
			return f(ctx)
		}
		if err := b.Wait(ctx); err != nil {
			return fmt.Errorf("wait for another server to update the schema: %w", err)
		}
	}
}

func (p *postgres) migrate(ctx context.Context) error {
	cfg := p.pool.Config().ConnConfig
	cfg.RuntimeParams["statement_timeout"] = "0" // a large table takes long
	db := stdlib.OpenDB(*cfg)
	defer db.Close()
	m, err := migrations(goose.DialectPostgres, db)
	if err != nil {
		return err
	}
	var table *string
	if err := p.pool.QueryRow(ctx, `SELECT to_regclass('goose_db_version')::text`).Scan(&table); err != nil {
		return err
	}
	have, want := int64(0), newest(m)
	if table != nil {
		if err := p.pool.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version`).Scan(&have); err != nil {
			return err
		}
	}
	if have > want {
		return fmt.Errorf("schema version %d, newest known version %d: %w", have, want, ErrNewer)
	}
	if have < want {
		if have > 0 {
			p.log.Info("updating the database schema", "from", have, "to", want)
		}
		if _, err := m.Up(ctx); err != nil {
			return fmt.Errorf("update the schema from version %d to %d: %w", have, want, err)
		}
	}
	return nil
}

// errBroken matches a failure of the connection during a transaction.
var errBroken = errors.New("connection to the database lost")

// retryUntil is how long a transaction is retried while the database cannot be reached:
// about as long as a restart takes. Then the caller gets the error.
const retryUntil = 3 * time.Second

// retry calls f again while it fails for a transient reason, and records when the
// database was unreachable.
func (p *postgres) retry(ctx context.Context, f func() error) error {
	start := time.Now()
	for b := backoff.New(5*time.Millisecond, 250*time.Millisecond); ; {
		err := f()
		lost := err != nil && ctx.Err() == nil && unreachable(err)
		p.reached(!lost)
		if !lost && !collided(err) || errors.Is(err, errUnsure) || time.Since(start) > retryUntil || b.Wait(ctx) != nil {
			return storeError(ctx, err)
		}
	}
}

// errUnsure matches the failure of a commit that may have taken effect.
var errUnsure = errors.New("unknown whether the transaction was committed")

// reached records when the database was unreachable.
func (p *postgres) reached(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !ok && p.down.IsZero():
		p.down = p.clock.now()
	case ok && !p.down.IsZero():
		p.outage.from, p.outage.to = p.down, p.clock.now()
		p.down = time.Time{}
	}
}

// forgiven is how long after an outage claims that lapsed during it may still be
// renewed.
const forgiven = 15 * time.Second

// alive returns a time before now after an outage, so that claims that could not be
// renewed stay live unless another process has claimed the items.
func (p *postgres) alive() time.Time {
	now := p.clock.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.outage.from.IsZero() && now.Sub(p.outage.to) < forgiven {
		return p.outage.from
	}
	return now
}

func (p *postgres) now() time.Time { return p.clock.now() }

func (p *postgres) tidy(context.Context) error { return nil } // PostgreSQL has autovacuum

// plain returns a context with the deadline of ctx, at most longest from now, that is
// not cancelled with ctx. So it is known whether a transaction was committed.
func plain(ctx context.Context) (context.Context, context.CancelFunc) {
	end := time.Now().Add(longest)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}

func (p *postgres) tx(ctx context.Context, f func(context.Context, tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.retry(ctx, func() error { return p.once(ctx, p.pool, f) })
}

// soft is tx: other processes go on when the database crashes, and a claim that is forgotten while its
// holder works could be given out again with the same token.
func (p *postgres) soft(ctx context.Context, f func(context.Context, tx) error) error {
	return p.tx(ctx, f)
}

func (p *postgres) heartbeat(ctx context.Context, f func(context.Context, tx) error) error {
	return p.retry(ctx, func() error { return p.once(ctx, p.heartbeats, f) })
}

func (p *postgres) once(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, tx) error) (err error) {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	ctx, cancel := plain(ctx)
	defer cancel()
	t := &pgTx{conn: c.Conn(), begin: "BEGIN"}
	defer t.rollback(ctx)
	if err := f(ctx, t); err != nil {
		return broken(c, err)
	}
	if err := t.commit(ctx); err != nil {
		var pe *pgconn.PgError
		if errors.As(err, &pe) || errors.Is(err, pgx.ErrTxCommitRollback) {
			return err // the server rejected it
		}
		p.reached(false)
		return fmt.Errorf("%w: %w", errUnsure, err)
	}
	p.mu.Lock()
	onReady := p.onReady
	p.mu.Unlock()
	if onReady != nil && len(t.lanes) > 0 {
		onReady(t.lanes)
	}
	return nil
}

// broken marks an error as a broken connection if the connection is closed.
func broken(c *pgxpool.Conn, err error) error {
	if err != nil && c.Conn().IsClosed() {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return err
}

// hangUp closes a connection outside the pools, whether the server responds or not.
func hangUp(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// limited calls f, which only reads, with a context that ends after longest.
func limited(ctx context.Context, f func(context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := f(short)
	if err != nil && short.Err() != nil && ctx.Err() == nil && !errors.Is(err, status.ErrUnavailable) {
		err = fmt.Errorf("%w: no response within %v: %w", status.ErrUnavailable, longest, err)
	}
	return err
}

// readOnly starts a transaction that sees one state of the database.
const readOnly = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

// view starts the transaction together with the first statement of f, and ends it
// together with the statements that f leaves queued. It calls f again if the connection
// broke before f received any data.
func (p *postgres) view(ctx context.Context, f func(context.Context, tx) error) error {
	return p.read(ctx, func(ctx context.Context) (got bool, err error) {
		c, err := p.pool.Acquire(ctx)
		if err != nil {
			return false, err
		}
		defer c.Release()
		t := &pgTx{conn: c.Conn(), begin: readOnly}
		defer func() {
			end, cancel := plain(context.WithoutCancel(ctx))
			defer cancel()
			t.rollback(end)
		}()
		err = f(ctx, t)
		if err == nil && t.batch != nil {
			err = t.commit(ctx)
		}
		return t.got, broken(c, err)
	})
}

// each runs a query, which sees one state of the database by itself.
func (p *postgres) each(ctx context.Context, f func(scanner) error, text string, args ...any) error {
	args = texts(args)
	return p.read(ctx, func(ctx context.Context) (got bool, err error) {
		rows, err := p.pool.Query(ctx, text, args...)
		if err != nil {
			return false, err
		}
		err = scan(rows, func(row scanner) error {
			got = true
			return f(row)
		})
		return got, err
	})
}

// read calls f again, within the limits of retry, while it fails before it has received
// any data.
func (p *postgres) read(ctx context.Context, f func(context.Context) (got bool, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return limited(ctx, func(ctx context.Context) error {
		var failed error
		err := p.retry(ctx, func() error {
			got, err := f(ctx)
			if got {
				failed = err
				return nil
			}
			return err
		})
		return cmp.Or(err, failed)
	})
}

func scan(rows pgx.Rows, f func(scanner) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A pgTx is a transaction of PostgreSQL. It starts with its first statement, in the
// same round trip.
type pgTx struct {
	conn  *pgx.Conn
	begin string     // the statement that starts the transaction; "": already queued
	batch *pgx.Batch // statements not sent yet; nil: none
	got   bool       // a row was read
	lanes []status.Lane
}

func (t *pgTx) locking() string { return " FOR NO KEY UPDATE" }

func (t *pgTx) issue(l status.Lane) {
	if slices.Contains(t.lanes, l) {
		return
	}
	t.lanes = append(t.lanes, l)
}

func (t *pgTx) issueNext(l status.Lane) {
	t.queue(`SELECT 1 FROM items WHERE finished_ms IS NULL AND owner = $1 AND state = 'queued' LIMIT 1`, text(l.Owner)).Query(func(rows pgx.Rows) error {
		return scan(rows, func(scanner) error {
			t.issue(l)
			return nil
		})
	})
}

// queue adds a statement to those that are sent next.
func (t *pgTx) queue(text string, args ...any) *pgx.QueuedQuery {
	if t.batch == nil {
		t.batch = new(pgx.Batch)
		if t.begin != "" {
			t.batch.Queue(t.begin)
			t.begin = ""
		}
	}
	return t.batch.Queue(text, args...)
}

// send sends the queued statements and reads all results except the last. The caller
// must close the results even after an error.
func (t *pgTx) send(ctx context.Context) (pgx.BatchResults, error) {
	b := t.batch
	t.batch = nil
	r := t.conn.SendBatch(ctx, b)
	for _, q := range b.QueuedQueries[:b.Len()-1] {
		f := q.Fn
		if f == nil {
			f = func(r pgx.BatchResults) error { _, err := r.Exec(); return err }
		}
		if err := f(r); err != nil {
			r.Close()
			return r, err
		}
	}
	return r, nil
}

func (t *pgTx) later(_ context.Context, f func(scanner) error, text string, args ...any) error {
	q := t.queue(text, texts(args)...)
	if f != nil {
		q.Query(func(rows pgx.Rows) error { return t.scan(rows, f) })
	}
	return nil
}

// scan calls the function scan and records that there was a row.
func (t *pgTx) scan(rows pgx.Rows, f func(scanner) error) error {
	return scan(rows, func(row scanner) error {
		t.got = true
		return f(row)
	})
}

func (t *pgTx) flush(ctx context.Context) error {
	if t.batch == nil {
		return nil
	}
	_, err := t.exec(ctx, "SELECT 1")
	return err
}

func (t *pgTx) change(_ context.Context, lost error, text string, args ...any) error {
	// The commit may be sent in the same round trip. An error prevents it.
	const divisionByZero = "22012"
	t.queue(`WITH changed AS (`+text+` RETURNING 1) SELECT 1 / count(*) FROM changed`, texts(args)...).Query(func(rows pgx.Rows) error {
		err := scan(rows, func(scanner) error { return nil })
		var pe *pgconn.PgError
		if errors.As(err, &pe) && pe.Code == divisionByZero {
			return fmt.Errorf("%w: %w", lost, err)
		}
		return err
	})
	return nil
}

func (t *pgTx) each(ctx context.Context, f func(scanner) error, text string, args ...any) (err error) {
	t.queue(text, texts(args)...)
	r, err := t.send(ctx)
	defer func() { err = cmp.Or(err, r.Close()) }()
	if err != nil {
		return err
	}
	rows, err := r.Query()
	if err != nil {
		return err
	}
	return t.scan(rows, f)
}

func (t *pgTx) row(ctx context.Context, text string, args ...any) scanner {
	t.queue(text, texts(args)...)
	r, err := t.send(ctx)
	if err != nil {
		return failed{err}
	}
	return lastRow{t, r}
}

// A lastRow is the last result of a batch.
type lastRow struct {
	t *pgTx
	pgx.BatchResults
}

func (r lastRow) Scan(dest ...any) error {
	err := r.QueryRow().Scan(dest...)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	r.t.got = r.t.got || err == nil
	return err
}

func (t *pgTx) exec(ctx context.Context, text string, args ...any) (int64, error) {
	t.queue(text, texts(args)...)
	r, err := t.send(ctx)
	if err != nil {
		return 0, err
	}
	tag, err := r.Exec()
	return tag.RowsAffected(), cmp.Or(err, r.Close())
}

// commit sends the queued statements and commits in one round trip.
func (t *pgTx) commit(ctx context.Context) error {
	t.queue("COMMIT")
	r, err := t.send(ctx)
	if err != nil {
		return err
	}
	tag, err := r.Exec()
	cerr := r.Close()
	var pe *pgconn.PgError
	switch {
	case err == nil && tag.String() == "COMMIT":
		return nil // even if the connection has broken since
	case err == nil:
		return cmp.Or(cerr, pgx.ErrTxCommitRollback) // an earlier statement had failed
	case errors.As(err, &pe) && pe.SeverityUnlocalized != "ERROR":
		return errors.New("the server process ended: " + err.Error()) // and may have committed: not a PgError, which would mean that it has not
	}
	return err
}

// rollback ends the transaction if it is open. If the rollback fails, it closes the
// connection.
func (t *pgTx) rollback(ctx context.Context) {
	if t.conn.IsClosed() || t.conn.PgConn().TxStatus() == 'I' {
		return
	}
	if _, err := t.conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = t.conn.Close(ctx)
	}
}

// texts quotes strings that PostgreSQL rejects because they contain zero bytes or
// invalid UTF-8. Such strings come from clients that send invalid IDs.
func texts(args []any) []any {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = text(a)
		case sql.NullString:
			a.String = text(a.String)
			args[i] = a
		}
	}
	return args
}

func text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return fmt.Sprintf("\ufffd%q", s)
}

// A clock returns the time of the database. Processes on several machines measure
// leases by it, independently of their own clocks.
type clock struct {
	mu     sync.Mutex
	base   time.Time // time of this process, with its monotonic reading
	offset time.Duration
}

// set reads the time of the database. If it may equal the time of this process, within
// the duration of the query, set uses the process's own time.
func (c *clock) set(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	before := time.Now()
	var us int64
	if err := pool.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&us); err != nil {
		return fmt.Errorf("read the time of the database: %w", err)
	}
	after := time.Now()
	at := time.UnixMicro(us)
	var offset time.Duration
	switch {
	case at.Before(before.Add(-time.Millisecond)):
		offset = at.Sub(before)
	case at.After(after.Add(time.Millisecond)):
		offset = at.Sub(after)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base, c.offset = before, offset
	return nil
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		return time.Now()
	}
	return c.base.Add(c.offset + time.Since(c.base)).Round(0)
}

// keepTime sets the clock periodically.
func (p *postgres) keepTime(ctx context.Context) {
	t := time.NewTicker(30 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := p.clock.set(ctx, p.pool); err != nil && ctx.Err() == nil {
			p.log.Warn("cannot compare clocks", "err", err)
		}
	}
}
