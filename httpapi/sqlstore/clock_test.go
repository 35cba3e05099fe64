package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// TestClockWasAhead starts with items that were written while the host's clock was a
// day ahead: they do not wait until the clock reaches that time again.
func TestClockWasAhead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db := openPath(t, path)
	op := benchOperation()
	if _, err := db.Operations().Create(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", path)
	systest.NoError(t, err)
	defer raw.Close()
	if _, err := raw.Exec(`UPDATE items SET due_ms = $1`, time.Now().Add(24*time.Hour).UnixMilli()); err != nil {
		t.Fatal(err)
	}
	pending := func() (n int) {
		t.Helper()
		for _, err := range db.Operations().Pending(t.Context(), status.PendingQuery{}) {
			systest.NoError(t, err)
			n++
		}
		return n
	}
	if n := pending(); n != 0 {
		t.Fatalf("%d items are due, want none yet", n)
	}
	if _, err := db.Operations().Recover(t.Context(), "me"); err != nil {
		t.Fatal(err)
	}
	if n := pending(); n != len(op.Items) {
		t.Errorf("%d items are due after the start, want %d", n, len(op.Items))
	}
}
