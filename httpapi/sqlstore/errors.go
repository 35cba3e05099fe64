package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/filewright/filewright/status"
)

// storeError classifies an error of the database for callers: the result matches
// syscall.ENOSPC if the disk is full, and status.ErrUnavailable if the same request may
// succeed later. No other code decides this. ctx is the caller's context: its deadline
// says nothing about the database.
func storeError(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, status.ErrUnavailable), errors.Is(err, syscall.ENOSPC):
		return err
	case diskFull(err):
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	case errors.Is(err, context.Canceled):
		return err // the caller cancelled
	case unreachable(err), collided(err), errors.Is(err, errUnsure), overloaded(err), sqliteUnavailable(err),
		errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("%w: %w", status.ErrUnavailable, err)
	}
	return err
}

// IsUnavailable reports whether err, from a database driver, means that the database
// cannot be reached. Errors of this package then match status.ErrUnavailable;
// IsUnavailable is for programs that use [DB.Pool].
func IsUnavailable(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.Is(err, errBroken) || pgCode(err) != "" && unreachable(err)
}

// diskFull reports whether err means that the database has no disk space left.
func diskFull(err error) bool {
	switch sqliteCode(err) {
	case sqliteFull, sqliteShmSize:
		return true
	}
	return pgCode(err) == "53100"
}

// pgCode returns the SQLSTATE of PostgreSQL in err, or "".
func pgCode(err error) string {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return ""
	}
	return pe.Code
}

// unreachable reports whether err means that the database cannot be reached or is not
// ready. A transaction that fails this way before its commit can be retried.
func unreachable(err error) bool {
	if code := pgCode(err); code != "" {
		return strings.HasPrefix(code, "08") || // connection exception
			strings.HasPrefix(code, "57P0") || // shutting down, crashed, starting up
			code == "53300" || code == "53400" || // too many connections, configuration limit
			code == "25006" // read-only transaction: the host is a standby now
	}
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.Is(err, errBroken) || pgconn.SafeToRetry(err) || connectionLost(err)
}

// connectionLost reports whether err means that a connection broke. Database calls
// never read from or write to another connection, so any network error in err is the
// database's.
func connectionLost(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return false // see storeError
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
}

// collided reports whether err means that the transaction must be retried. The cause is
// a conflict with others, or PostgreSQL ended it because this process left it idle for
// too long.
func collided(err error) bool {
	switch pgCode(err) {
	case "40001", "40P01", "55P03", "25P03":
		return true
	}
	return false
}

// overloaded reports whether err means that the database did not respond in time or
// lacked memory.
func overloaded(err error) bool {
	switch code := pgCode(err); {
	case code == "57014", // canceled: statement_timeout
		strings.HasPrefix(code, "53"), // insufficient resources
		strings.HasPrefix(code, "58"): // system error, such as one of input or output
		return true
	}
	return errors.Is(err, pgx.ErrTxCommitRollback)
}

// sqliteUnavailable reports whether SQLite failed for a reason outside the database:
// locks of other processes, the disk or memory.
func sqliteUnavailable(err error) bool {
	switch sqliteCode(err) & 0xff {
	case sqliteBusy, sqliteLocked, sqliteNoMemory, sqliteReadOnly, sqliteIOErr, sqliteCantOpen, sqliteProtocol:
		return true
	}
	return false
}

// Result codes of SQLite (sqlite3.h); all except sqliteShmSize fit in the lowest byte.
const (
	sqliteBusy     = 5          // another connection holds the lock
	sqliteLocked   = 6          // a table is locked
	sqliteNoMemory = 7          //
	sqliteReadOnly = 8          // the file system became read-only
	sqliteIOErr    = 10         // the disk failed
	sqliteFull     = 13         // the disk is full
	sqliteCantOpen = 14         // a file cannot be opened
	sqliteProtocol = 15         // locks of the write-ahead log are contended
	sqliteShmSize  = 10 | 19<<8 // SQLITE_IOERR_SHMSIZE: no disk space for the index of the log
)

// sqliteCode returns the result code of SQLite in err, or 0.
func sqliteCode(err error) int {
	var code interface{ Code() int } // of SQLite's driver
	if !errors.As(err, &code) {
		return 0
	}
	return code.Code()
}
