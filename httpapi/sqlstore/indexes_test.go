package sqlstore_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
	"github.com/filewright/filewright/upload"
)

// A plan describes how PostgreSQL ran a statement, as auto_explain reports it.
type plan struct {
	Text string `json:"Query Text"`
	Root node   `json:"Plan"`
}

type node struct {
	Type    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Index   string  `json:"Index Name"`
	Cost    float64 `json:"Total Cost"`
	Expect  float64 `json:"Plan Rows"`
	Rows    float64 `json:"Actual Rows"`            // rows that one loop returned
	Removed float64 `json:"Rows Removed by Filter"` // rows that it read in vain
	Loops   float64 `json:"Actual Loops"`
	Inner   []node  `json:"Plans"`
}

// read returns the number of rows that n and its inner nodes read from tables.
func (n *node) read() (rows float64) {
	if n.Table != "" {
		rows = (n.Rows + n.Removed) * n.Loops
	}
	for i := range n.Inner {
		rows += n.Inner[i].read()
	}
	return rows
}

// plans collects the plans that a server reports for its statements.
type plans struct {
	mu   sync.Mutex
	list []plan
}

// watch copies what a server sends and keeps the plans in its notices.
func (p *plans) watch(client io.Writer, server io.Reader) {
	for {
		head, body, err := readMessage(server)
		if err != nil {
			return
		}
		if head[0] == 'N' {
			for field := range bytes.SplitSeq(body, []byte{0}) {
				_, text, ok := bytes.Cut(field, []byte("plan:\n"))
				var one plan
				if ok && field[0] == 'M' && json.Unmarshal(text, &one) == nil {
					p.mu.Lock()
					p.list = append(p.list, one)
					p.mu.Unlock()
				}
			}
			continue
		}
		if _, err := client.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// take returns the plans received since the last call.
func (p *plans) take() []plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}

var (
	placeholder = regexp.MustCompile(`\$(\d+)`)
	// largeScan is a scan in SQLite of a table that grows with use.
	largeScan = regexp.MustCompile(`^SCAN (operations|items|files|parts|d|i|o|webhook_deliveries|usage|usage_groups|days|stored|audit)\b`)
)

// TestIndexes checks that every filter of the service's lists, and every sweep, has an
// index. PostgreSQL reads hardly more rows than it returns, and SQLite neither scans a
// large table nor sorts one.
func TestIndexes(t *testing.T) {
	t.Parallel()
	var seen plans
	to, err := url.Parse(proxied(t, func(client, server *net.TCPConn) {
		go func() {
			defer server.Close()
			_, _ = io.Copy(server, client)
		}()
		seen.watch(client, server)
	}))
	systest.NoError(t, err)
	q := to.Query()
	for name, value := range map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on",
		"auto_explain.log_format": "json", "auto_explain.log_level": "notice", "auto_explain.log_timing": "off",
	} {
		q.Set(name, value)
	}
	to.RawQuery = q.Encode()
	db := openURL(t, to.String())
	path := filepath.Join(t.TempDir(), "x.db")
	openPath(t, path)
	lite, err := sql.Open("sqlite", path)
	systest.NoError(t, err)
	defer lite.Close()

	base := benchOperation()
	if _, err := db.Operations().Create(t.Context(), base); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Files().Create(t.Context(), &upload.File{Key: "base", Owner: "a", State: upload.Ready, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	systest.NoError(t, db.Webhooks().Create(t.Context(), &webhook.StoredEndpoint{Endpoint: webhook.Endpoint{ID: "w", Account: "a", URL: "https://example.com"}, Secret: []byte("s")}, 10))
	// The operations of a are completed, those of c failed, b has few; all have old
	// operations in other states.
	for _, text := range []string{
		`INSERT INTO operations SELECT (jsonb_populate_record(o, jsonb_build_object('id', 'op' || n, 'created_ms', n, 'bytes', n % 97, 'name', 'file' || (n % 89),
			'owner', CASE WHEN n % 1000 = 7 THEN 'b' WHEN n % 2 = 1 THEN 'a' ELSE 'c' END, 'idempotency_key', CASE WHEN n = 9 THEN 'k' END,
			'state', CASE WHEN n < 5 THEN 'running' WHEN n < 25 THEN 'queued' WHEN n IN (1001, 1007) OR n % 2 = 0 AND n <> 1002 THEN 'failed' ELSE 'completed' END,
			'finished_ms', CASE WHEN n >= 25 THEN n + 1000 END))).* FROM operations o, generate_series(1, 6000) n`,
		`INSERT INTO items SELECT (jsonb_populate_record(i, jsonb_build_object('operation', o.id, 'owner', o.owner, 'state', o.state,
			'created_ms', o.created_ms, 'finished_ms', o.finished_ms))).* FROM items i, operations o WHERE i.idx = 0 AND o.id <> i.operation`,
		`INSERT INTO files SELECT (jsonb_populate_record(f, jsonb_build_object('file_key', 'f' || n, 'expires_ms', 100000 + n,
			'state', CASE WHEN n % 1000 = 7 THEN 'open' ELSE f.state END))).* FROM files f, generate_series(1, 6000) n`,
		`INSERT INTO webhook_deliveries (id, endpoint, account, type, operation, created_ms, state, attempts, step, token, claimed, due_ms, manual, finished_ms)
			SELECT 'd' || n, 'w', 'a', 't', 'op' || n, n, CASE WHEN n < 5 THEN 'failed' ELSE 'delivered' END, 1, 1, 1, 0, 0, 0, n FROM generate_series(1, 6000) n`,
		`INSERT INTO usage_groups SELECT 'a', CASE n % 3 WHEN 0 THEN 'key' WHEN 1 THEN 'format' ELSE 'error' END, (extract(epoch FROM now()) / 86400)::bigint - n / 60, 'v' || n % 60, 0, 1, 0, 1, 1, 1 FROM generate_series(1, 6000) n`,
		`INSERT INTO audit SELECT 'e' || n, n, CASE WHEN n % 2 = 1 THEN 'a' ELSE 'c' END, 'l', '', 'Ada', '192.0.2.1', 'login', 'l', 'Ada', '', 0, 'ada' FROM generate_series(1, 6000) n`,
		`DELETE FROM operations WHERE id = '` + base.ID + `'`,
		`ANALYZE`,
	} {
		if _, err := db.Pool().Exec(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	seen.take()

	inSQLite := true
	check := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		list := seen.take()
		if len(list) == 0 {
			t.Errorf("%s: the server reported no plan", name)
		}
		for _, p := range list {
			// A page has 50 operations at most, and 24 are open.
			if n := p.Root.read(); n > 200 {
				plan, _ := json.MarshalIndent(p.Root, "", "  ")
				t.Errorf("%s: PostgreSQL reads %v rows\n%s\n%s", name, n, p.Text, plan)
			}
			for _, step := range explainSQLite(t, lite, p.Text) {
				if inSQLite && (largeScan.MatchString(step) || strings.Contains(step, "TEMP B-TREE FOR ORDER BY")) {
					t.Errorf("%s: SQLite: %s\n%s", name, step, p.Text)
				}
			}
		}
	}
	for _, owner := range []string{"", "a", "b", "c"} {
		for _, state := range []status.State{"", status.Queued, status.Running, status.Completed, status.Failed} {
			for _, before := range []string{"", "late"} {
				if before != "" {
					before = map[string]string{"": "op5000", "a": "op5001", "b": "op5007", "c": "op5000"}[owner]
				}
				name := fmt.Sprintf("owner %q, state %q, before %q", owner, state, before)
				inSQLite = owner != "" || state != "" // all operations are read in the order of rows there
				_, err := db.Summaries(t.Context(), status.SummaryQuery{Owner: owner, State: state, Before: before})
				check("summaries, "+name, err)
				inSQLite = true
				if owner != "" {
					check("operations, "+name, drain(db.Operations().List(t.Context(), status.Query{Owner: owner, State: state, Before: before})))
				}
			}
		}
	}
	// Searches read a bounded number of operations, in the order of an index.
	day := time.UnixMilli(3000)
	for name, q := range map[string]status.HistoryQuery{
		"all of an owner": {Owner: "a"}, "oldest": {Owner: "a", Oldest: true}, "next page": {Owner: "a", After: "op5001"}, "all": {}, "days": {Owner: "a", From: day, To: day.Add(time.Second)},
		"queued": {Owner: "c", Condition: status.Enqueued}, "waiting": {Owner: "c", Condition: status.Held}, "running, all": {Condition: status.Active},
		"by size": {Owner: "a", Order: status.BySize}, "smallest": {Owner: "a", Order: status.BySize, Oldest: true, After: "op5001"}, "by name": {Owner: "a", Order: status.ByName, Oldest: true},
		"by name, next page": {Owner: "a", Order: status.ByName, After: "op5001"}, "by duration": {Owner: "a", Order: status.ByDuration}, "shortest": {Owner: "a", Order: status.ByDuration, Oldest: true, After: "999.op5001"},
	} {
		inSQLite = q.Owner != "" // others read the rows in their order, or the few that are open
		_, err := db.Operations().History(t.Context(), q)
		check("history: "+name, err)
	}
	inSQLite = true
	for name, q := range map[string]account.AuditQuery{
		"all": {}, "of an account": {Account: "a"}, "next page": {Account: "a", After: "3000.e3001"}, "next of all": {After: "3000.e3001"}, "days": {Account: "a", From: day, To: day.Add(50 * time.Millisecond)},
	} {
		inSQLite = q.Account != "" || q.After != "" // the whole log is read in the order of its index
		_, err := db.Audit().Entries(t.Context(), q)
		check("audit log: "+name, err)
	}
	inSQLite = true
	_, err = db.UsageBy(t.Context(), "a", account.UsageByFormat, time.Now().AddDate(0, 0, -30), time.Now().AddDate(0, 0, -29))
	check("usage by format", err)
	_, err = db.Audit().DeleteBefore(t.Context(), time.UnixMilli(30), 50)
	check("old audit entries", err)
	check("idempotency key", drain(db.Operations().List(t.Context(), status.Query{Owner: "a", IdempotencyKey: "k", Limit: 1})))
	_, err = db.Failures(t.Context(), time.UnixMilli(6998))
	check("failures", err)
	check("expired files", drain(db.Files().ExpiredBefore(t.Context(), time.UnixMilli(100020))))
	check("open uploads", drain(db.Files().OpenSessions(t.Context())))
	_, err = db.Files().Get(t.Context(), "f9")
	check("file", err)
	_, err = db.Operations().DeleteFinished(t.Context(), time.UnixMilli(1030))
	check("old operations", err)
	for _, endpoint := range []string{"", "w"} {
		for _, state := range []string{"", "pending", "delivered", "failed"} {
			_, err := db.Webhooks().Deliveries(t.Context(), "a", webhook.Query{Endpoint: endpoint, State: state})
			check(fmt.Sprintf("deliveries of %q, state %q", endpoint, state), err)
		}
	}
}

// explainSQLite returns the steps of a statement; or nil if the statement does not
// read.
func explainSQLite(t *testing.T, db *sql.DB, text string) (steps []string) {
	t.Helper()
	if word, _, _ := strings.Cut(text, " "); !slices.Contains([]string{"SELECT", "UPDATE", "DELETE", "WITH"}, word) {
		return nil
	}
	if strings.Contains(text, "clock_timestamp()") { // the clock of PostgreSQL, which a long test reads again
		return nil
	}
	numbers := make(map[string]bool)
	for _, m := range placeholder.FindAllString(text, -1) {
		numbers[m] = true
	}
	text = strings.ReplaceAll(text, " FOR UPDATE", "")
	rows, err := db.Query("EXPLAIN QUERY PLAN "+text, make([]any, len(numbers))...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		systest.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	systest.NoError(t, rows.Err())
	return steps
}

func drain[T any](all iter.Seq2[T, error]) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
