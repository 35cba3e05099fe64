package sqlstore_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// A search of very many operations looks through a bounded number of them, says so, and goes on
// where it stopped. Every operation is found exactly once.
func TestHistoryOfManyOperations(t *testing.T) {
	t.Parallel()
	n := 100_000
	if testing.Short() {
		n = 25_000
	}
	check := func(t *testing.T, db *sqlstore.DB, exec func(text string) error) {
		numbers := fmt.Sprintf(`WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < %d)`, n-1)
		for _, text := range []string{
			`INSERT INTO operations (id, owner, action, state, cancelled, open_items, completed_items, fingerprint, created_ms, finished_ms, condition, search, key_id, bytes, name)
				` + numbers + ` SELECT 'op' || n, 'alice', CASE WHEN n % 3 = 0 THEN 'convert' ELSE 'compress' END, 'completed', 0, 0, 1, '', 1000000 + n, 1000100 + n + n * 7919 % 5000,
				CASE WHEN n % 5000 = 17 THEN 'partial' ELSE 'completed' END, 'op' || n || chr || 'report number ' || n || ' of the year.docx', 'k', n * 7919 % 1000000, 'report ' || (n * 7919 % 1000) FROM c CROSS JOIN (SELECT ' ' AS chr) x`,
			`INSERT INTO items (operation, idx, queue, owner, created_ms, state, attempt, token, due_ms, progress, inputs, finished_ms)
				` + numbers + ` SELECT 'op' || n, 0, 'pdf', 'alice', 1000000 + n, 'completed', 1, 1, 0, 1, '[{"key":"k","name":"report.docx","size":5}]', 1000100 + n FROM c`,
		} {
			systest.NoError(t, exec(text))
		}
		systest.NoError(t, exec(`ANALYZE`))
		h := db.Operations()
		for name, tt := range map[string]struct {
			q     status.HistoryQuery
			found int
			pages int // 0: any
		}{
			"newest":        {status.HistoryQuery{Owner: "alice", Limit: 50, To: time.UnixMilli(1000100)}, 100, 2},
			"rare text":     {status.HistoryQuery{Owner: "alice", Text: fmt.Sprintf("number %d of", n/2), Limit: 50}, 1, n/10_000 + 1},
			"no match":      {status.HistoryQuery{Owner: "alice", Text: "nothing", Limit: 50}, 0, n/10_000 + 1},
			"rare state":    {status.HistoryQuery{Owner: "alice", Condition: status.Partial, Limit: 50, Oldest: true}, n / 5000, n/10_000 + 1},
			"an action":     {status.HistoryQuery{Owner: "alice", Action: "convert", Limit: 500}, (n + 2) / 3, 0},
			"largest":       {status.HistoryQuery{Owner: "alice", Order: status.BySize, Limit: 500}, n, n/500 + 1},
			"shortest":      {status.HistoryQuery{Owner: "alice", Order: status.ByDuration, Oldest: true, Limit: 500}, n, n/500 + 1},
			"by name":       {status.HistoryQuery{Owner: "alice", Order: status.ByName, Oldest: true, Limit: 500}, n, n/500 + 1},
			"rare, longest": {status.HistoryQuery{Owner: "alice", Order: status.ByDuration, Condition: status.Partial, Limit: 50}, n / 5000, n/10_000 + 1},
			"rare, by size": {status.HistoryQuery{Owner: "alice", Order: status.BySize, Text: fmt.Sprintf("number %d of", n/2), Limit: 50}, 1, n/10_000 + 1},
			"of everyone":   {status.HistoryQuery{Text: "number 7 of", Limit: 50}, 1, n/10_000 + 1},
		} {
			seen := make(map[string]bool)
			pages, q, longest := 0, tt.q, time.Duration(0)
			for {
				began := time.Now()
				page, err := h.History(t.Context(), q)
				longest = max(longest, time.Since(began))
				systest.NoError(t, err)
				pages++
				for _, op := range page.Operations {
					if seen[op.ID] || len(op.Items) != 1 {
						t.Errorf("%s: %s twice, or with %d items", name, op.ID, len(op.Items))
					}
					seen[op.ID] = true
				}
				if page.Scanned && len(page.Operations) >= q.Limit || page.Next == "" && page.Scanned {
					t.Errorf("%s: page %d: %d operations, next %q, scanned %v", name, pages, len(page.Operations), page.Next, page.Scanned)
				}
				if q.After = page.Next; q.After == "" {
					break
				}
			}
			if len(seen) != tt.found || tt.pages > 0 && pages != tt.pages && pages != tt.pages-1 {
				t.Errorf("%s: %d operations on %d pages, want %d on %d", name, len(seen), pages, tt.found, tt.pages)
			}
			t.Logf("%s: slowest page %v", name, longest.Round(time.Millisecond))
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "test.db")
		db := openPath(t, path)
		raw, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(20000)")
		systest.NoError(t, err)
		defer raw.Close()
		check(t, db, func(text string) error { _, err := raw.Exec(text); return err })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := openURL(t, pgtest.Empty(t))
		check(t, db, func(text string) error {
			_, err := db.Pool().Exec(t.Context(), text)
			return err
		})
	})
}
