package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/filewright/filewright/status"
)

type sqliteError int

func (e sqliteError) Error() string { return fmt.Sprintf("SQLite code %d", int(e)) }
func (e sqliteError) Code() int     { return int(e) }

// Transient errors are distinguished from permanent ones.
func TestStoreError(t *testing.T) {
	t.Parallel()
	pg := func(code string) error { return fmt.Errorf("query: %w", &pgconn.PgError{Code: code}) }
	for name, c := range map[string]struct{ err, want error }{
		"administrator shutdown": {pg("57P01"), status.ErrUnavailable},
		"crash shutdown":         {pg("57P02"), status.ErrUnavailable},
		"starting up":            {pg("57P03"), status.ErrUnavailable},
		"connection exception":   {pg("08006"), status.ErrUnavailable},
		"too many connections":   {pg("53300"), status.ErrUnavailable},
		"out of memory":          {pg("53200"), status.ErrUnavailable},
		"statement timeout":      {pg("57014"), status.ErrUnavailable},
		"standby":                {pg("25006"), status.ErrUnavailable},
		"input or output":        {pg("58030"), status.ErrUnavailable},
		"deadlock":               {pg("40P01"), status.ErrUnavailable},
		"disk full":              {pg("53100"), syscall.ENOSPC},
		"unexpected EOF":         {fmt.Errorf("receive message: %w", io.ErrUnexpectedEOF), status.ErrUnavailable},
		"refused":                {&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, status.ErrUnavailable},
		"reset":                  {&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, status.ErrUnavailable},
		"inner deadline":         {fmt.Errorf("acquire: %w", context.DeadlineExceeded), status.ErrUnavailable},
		"SQLITE_BUSY_SNAPSHOT":   {sqliteError(5 | 2<<8), status.ErrUnavailable},
		"SQLITE_IOERR_READ":      {sqliteError(10 | 1<<8), status.ErrUnavailable},
		"SQLITE_CANTOPEN":        {sqliteError(14), status.ErrUnavailable},
		"SQLITE_FULL":            {sqliteError(13), syscall.ENOSPC},
		"SQLITE_IOERR_SHMSIZE":   {sqliteError(10 | 19<<8), syscall.ENOSPC},
		"syntax error":           {pg("42601"), nil},
		"SQLITE_CORRUPT":         {sqliteError(11), nil},
		"missing":                {fs.ErrNotExist, nil},
		"canceled":               {context.Canceled, nil},
	} {
		got := storeError(t.Context(), c.err)
		if !errors.Is(got, c.err) {
			t.Errorf("%s: %v does not wrap the error", name, got)
		}
		for _, kind := range []error{status.ErrUnavailable, syscall.ENOSPC} {
			if errors.Is(got, kind) != (c.want == kind) {
				t.Errorf("%s: %v, matches %v: %v", name, got, kind, errors.Is(got, kind))
			}
		}
	}
	ended, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if err := storeError(ended, context.DeadlineExceeded); errors.Is(err, status.ErrUnavailable) {
		t.Error("the caller's own deadline is taken for a failure of the database")
	}
}
