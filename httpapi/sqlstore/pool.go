package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/filewright/filewright/status"
)

// A pool is a fixed number of connections that keep their prepared statements. Skipping
// the parsing of SQL makes short transactions about twice as fast. The pool of
// database/sql cannot prepare a statement on its only connection while that is in a
// transaction.
type pool struct {
	db    *sql.DB
	slots chan *conn // nil elements: not opened yet
}

func newPool(n int, dsn string) (*pool, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	p := &pool{db: db, slots: make(chan *conn, n)}
	for range n {
		p.slots <- nil
	}
	return p, nil
}

// get takes a connection, which must be put back.
func (p *pool) get(ctx context.Context) (*conn, error) {
	var t *conn
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case t = <-p.slots:
	}
	if t != nil {
		return t, nil
	}
	c, err := p.db.Conn(ctx)
	if err != nil {
		p.slots <- nil
		return nil, err
	}
	return &conn{Conn: c, stmts: make(map[string]*sql.Stmt)}, nil
}

// put returns a connection to the pool; it replaces a broken one.
func (p *pool) put(t *conn) {
	if t.broken {
		_ = t.close()
		t = nil
	}
	p.slots <- t
}

// close waits for all connections and closes them.
func (p *pool) close() error {
	var errs []error
	for range cap(p.slots) {
		if t := <-p.slots; t != nil {
			errs = append(errs, t.close())
		}
	}
	errs = append(errs, p.db.Close())
	for range cap(p.slots) {
		p.slots <- nil // get fails from now on
	}
	return errors.Join(errs...)
}

// with calls f with a connection.
func (p *pool) with(ctx context.Context, f func(context.Context, *conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := p.get(ctx)
	if err != nil {
		return err
	}
	defer p.put(t)
	// Reads are short; making them cancellable costs more.
	return f(context.WithoutCancel(ctx), t)
}

// each runs a query and calls f to scan every row.
func (p *pool) each(ctx context.Context, f func(scanner) error, text string, args ...any) error {
	return p.with(ctx, func(ctx context.Context, t *conn) error { return t.each(ctx, f, text, args...) })
}

// run runs f in a read-only transaction.
func (p *pool) run(ctx context.Context, f func(context.Context, tx) error) error {
	return p.with(ctx, func(ctx context.Context, t *conn) error {
		if _, err := t.exec(ctx, "BEGIN"); err != nil {
			return err
		}
		defer t.rollback(ctx)
		return f(ctx, t)
	})
}

// A conn is a connection in a transaction.
type conn struct {
	*sql.Conn
	stmts   map[string]*sql.Stmt
	version driver.Stmt // of sqlite.version; nil: not prepared yet
	soft    bool        // commits do not wait for the disk
	broken  bool
}

// sync makes commits wait for the disk, or not.
func (t *conn) sync(ctx context.Context, wait bool) error {
	if t.soft == !wait {
		return nil
	}
	level := "NORMAL" // only checkpoints wait; https://sqlite.org/pragma.html#pragma_synchronous
	if wait {
		level = "FULL"
	}
	// SQLite executes this pragma when it is prepared, not when the statement runs.
	if _, err := t.ExecContext(ctx, "PRAGMA synchronous = "+level); err != nil {
		t.broken = true
		return err
	}
	t.soft = !wait
	return nil
}

func (t *conn) close() error {
	var errs []error
	for _, s := range t.stmts {
		errs = append(errs, s.Close())
	}
	if t.version != nil {
		errs = append(errs, t.Raw(func(any) error { return t.version.Close() }))
	}
	return errors.Join(append(errs, t.Close())...)
}

// maxStmts limits the prepared statements of a connection. There are fewer texts,
// except that inserts have one for each number of rows.
const maxStmts = 200

func (t *conn) rollback(ctx context.Context) {
	if _, err := t.exec(ctx, "ROLLBACK"); err != nil {
		t.broken = true // SQLite may have rolled back already, but that is uncertain
	}
}

func (t *conn) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	s := t.stmts[text]
	if s != nil {
		return s, nil
	}
	s, err := t.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(t.stmts) >= maxStmts {
		for other, s := range t.stmts {
			delete(t.stmts, other)
			_ = s.Close()
			break
		}
	}
	t.stmts[text] = s
	return s, nil
}

// each runs a query and calls f to scan every row.
func (t *conn) each(ctx context.Context, f func(scanner) error, text string, args ...any) (err error) {
	s, err := t.stmt(ctx, text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// row runs a query and returns its first row for scanning.
func (t *conn) row(ctx context.Context, text string, args ...any) scanner {
	s, err := t.stmt(ctx, text)
	if err != nil {
		return failed{err}
	}
	return s.QueryRowContext(ctx, args...)
}

// exec runs a statement and returns the number of changed rows.
func (t *conn) exec(ctx context.Context, text string, args ...any) (int64, error) {
	s, err := t.stmt(ctx, text)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// later runs the statement at once.
func (t *conn) later(ctx context.Context, f func(scanner) error, text string, args ...any) error {
	if f != nil {
		return t.each(ctx, f, text, args...)
	}
	_, err := t.exec(ctx, text, args...)
	return err
}

// flush does nothing: there is no queue.
func (t *conn) flush(context.Context) error { return nil }

func (t *conn) change(ctx context.Context, lost error, text string, args ...any) error {
	n, err := t.exec(ctx, text, args...)
	if err == nil && n == 0 {
		return lost
	}
	return err
}

// locking returns "": the whole database is locked.
func (t *conn) locking() string { return "" }

// issue does nothing: one process runs all items.
func (t *conn) issue(status.Lane) {}

// issueNext does nothing.
func (t *conn) issueNext(status.Lane) {}
