//go:build linux

// Package start measures the time from a server's start to its first completed operation, with a
// database that has grown for a long time.
//
//	go test -count=1 -v -timeout 1h ./benchmarks/start -files 2000000 -operations 1000000
//
// The database is filled with the schema of the first release. The first start migrates it, which
// is also measured. The second start follows a kill -9 and needs no migration.
package start

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/olddb"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
)

var (
	filesFlag      = flag.Int("files", 2000, "`number` of file records")
	operationsFlag = flag.Int("operations", 1000, "`number` of finished operations")
	startsFlag     = flag.Int("starts", 1, "`number` of starts to measure after the first one")
	postgresFlag   = flag.Bool("postgres", true, "measure PostgreSQL too")
	sqliteFlag     = flag.Bool("sqlite", true, "measure SQLite")
	engineFlag     = flag.Bool("engines", true, "start all engines of this host, not only the built-in ones")
)

var binary string // the built refserver

func TestMain(m *testing.M) { systest.MainWith(m, &binary, "../../cmd/refserver") }

// key is an API key that fill inserts.
const key = "fw_start_benchmark_0123456789abcdef"

// fill inserts the records of a server that has run for a week. One account has half of everything,
// 1000 accounts have the rest. One file in a hundred has recently expired, and one in a thousand is
// an incomplete upload. Two operations in a hundred failed.
func fill(ctx context.Context, db *sql.DB, postgres bool, files, operations int) error {
	series := func(n int) string {
		if postgres {
			return fmt.Sprintf(`(SELECT i FROM generate_series(1, %d) AS s (i)) AS n`, n)
		}
		return fmt.Sprintf(`(WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) SELECT i FROM c) AS n`, n)
	}
	id := func(prefix string) string {
		if postgres {
			return `'` + prefix + `' || md5(i::text)`
		}
		return `printf('` + prefix + `%016x%016x', (i * 2654435761) & 4294967295, i)`
	}
	const owner = `CASE WHEN i % 2 = 0 THEN 'bench' ELSE 'owner' || (i % 1000) END`
	now := time.Now().UnixMilli()
	day := (24 * time.Hour).Milliseconds()
	week := 7 * day
	hash := sha256.Sum256([]byte(key))
	for _, s := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO accounts (id, name, login, administrator, password, must_change, created_ms, max_stored, max_bytes, max_operations, max_parallel)
			VALUES ('bench', 'bench', 'bench', 1, '', 0, $1, 0, 0, 0, 0)`, []any{now}},
		{`INSERT INTO api_keys (id, name, prefix, account, hash, created_ms) VALUES ('key1', 'bench', 'fw_start', 'bench', $1, $2)`, []any{hash[:], now}},
		{fmt.Sprintf(`INSERT INTO files (file_key, owner, name, content_type, size, state, object, upload_id, parts, etag, task, fingerprint, created_ms, expires_ms)
			SELECT %s, %s, 'report.pdf', 'application/pdf', 12345,
				CASE WHEN i %% 1000 = 1 THEN 'open' WHEN i %% 100 = 0 THEN 'expired' ELSE 'ready' END,
				'files/' || i, 'upload' || i, 1, '0123456789abcdef0123456789abcdef', CASE WHEN i %% 3 = 0 THEN 'task' || i ELSE '' END, '',
				%d - (CAST(i AS bigint) * 7919) %% %d, %d + (CAST(i AS bigint) * 7919) %% %d FROM %s`, id(""), owner, now, day, now+day/24, day, series(files)), nil},
		{fmt.Sprintf(`INSERT INTO operations (id, owner, action, notes, state, cancelled, open_items, completed_items, fingerprint, created_ms, finished_ms)
			SELECT %s, %s, 'convert', NULL, CASE WHEN i %% 50 = 1 THEN 'failed' ELSE 'completed' END, 0, 0, 1, '',
				%[3]d + CAST(i AS bigint) * %[4]d / %[5]d, %[3]d + CAST(i AS bigint) * %[4]d / %[5]d + 1000 FROM %[6]s`,
			id("op"), owner, now-week+day/24, week-day/12, operations, series(operations)), nil},
		{fmt.Sprintf(`INSERT INTO items (operation, idx, queue, owner, created_ms, state, attempt, token, due_ms, progress, inputs, results, error, started_ms, finished_ms)
			SELECT %s, 0, 'office', %s, %[3]d + CAST(i AS bigint) * %[4]d / %[5]d, CASE WHEN i %% 50 = 1 THEN 'failed' ELSE 'completed' END, 1, 1, 0, 1,
				'[{"Key":"in","Name":"report.docx","Size":12345}]', '[{"Key":"out","Name":"report.pdf","Size":54321}]', CASE WHEN i %% 50 = 1 THEN '{"code":"corrupt_input","message":"x"}' END,
				%[3]d + CAST(i AS bigint) * %[4]d / %[5]d, %[3]d + CAST(i AS bigint) * %[4]d / %[5]d + 1000 FROM %[6]s`,
			id("op"), owner, now-week+day/24, week-day/12, operations, series(operations)), nil},
		// Operations of a process that died.
		{`INSERT INTO operations (id, owner, action, args, state, cancelled, open_items, completed_items, fingerprint, created_ms)
			SELECT 'running' || i, 'other', 'convert', NULL, 'running', 0, 1, 0, '', ` + fmt.Sprint(now) + ` FROM ` + series(8), nil},
		{`INSERT INTO items (operation, idx, queue, owner, created_ms, state, attempt, token, worker, due_ms, progress, inputs, started_ms)
			SELECT 'running' || i, 0, 'office', 'other', ` + fmt.Sprint(now) + `, 'running', 1, 1, 'dead', ` + fmt.Sprint(now) + `, 0, '[{"Key":"in","Name":"report.docx","Size":12345}]', ` + fmt.Sprint(now) + ` FROM ` + series(8), nil},
	} {
		if _, err := db.ExecContext(ctx, s.text, s.args...); err != nil {
			return fmt.Errorf("%.60s …: %w", s.text, err)
		}
	}
	if postgres {
		_, err := db.ExecContext(ctx, `VACUUM ANALYZE`) // as autovacuum does after a while
		return err
	}
	_, err := db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}

// TestStart measures starts and logs the times.
func TestStart(t *testing.T) {
	if *sqliteFlag {
		t.Run("sqlite", func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			measure(t, filepath.Join(dir, "filewright.db"), "--data-dir", dir)
		})
	}
	if *postgresFlag {
		t.Run("postgres", func(t *testing.T) {
			server, err := pgtest.Start(pgtest.Options{Durable: true})
			systest.NoError(t, err)
			defer server.Close()
			url := server.Database(t)
			measure(t, url, "--data-dir", filepath.Join(t.TempDir(), "data"), "--database-url", url, "--blob-url", filepath.Join(t.TempDir(), "blobs"))
		})
	}
}

func measure(t *testing.T, target string, flags ...string) {
	begin := time.Now()
	db, err := olddb.Open(t.Context(), target, olddb.First)
	systest.NoError(t, err)
	systest.NoError(t, fill(t.Context(), db, olddb.Postgres(target), *filesFlag, *operationsFlag))
	systest.NoError(t, db.Close())
	t.Logf("%d files and %d operations written in %v", *filesFlag, *operationsFlag, time.Since(begin).Round(time.Millisecond))
	names := []string{"first start, with the upgrade of the schema"}
	for range *startsFlag {
		names = append(names, "start after kill -9")
	}
	args := append(slices.Clone(flags), "--adopt") // the files have no content
	for i, name := range names {
		if i > 0 {
			args = flags
		}
		ready, done := once(t, args)
		t.Logf("%s: ready after %v, first operation completed after %v", name, ready.Round(10*time.Millisecond), done.Round(10*time.Millisecond))
	}
}

var readyLine = regexp.MustCompile(`is ready at (https?://\S+) `)

// once starts the server, runs one operation and kills the server.
func once(t *testing.T, flags []string) (ready, done time.Duration) {
	t.Helper()
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--cache-dir", systest.CodeCache(), "--log-level", "info"}, flags...)
	if !*engineFlag {
		args = append(args, "--ffmpeg", "none", "--soffice", "none", "--pandoc", "none", "--chromium", "none", "--tesseract", "none")
	}
	cmd := exec.Command(binary, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	systest.NoError(t, err)
	begin := time.Now()
	systest.NoError(t, cmd.Start())
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() || testing.Verbose() {
			t.Logf("log:\n%s", stderr.String())
		}
	}()
	url := ""
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
	}
	if url == "" {
		t.Fatal("the server does not start")
	}
	go io.Copy(io.Discard, out)
	ready = time.Since(begin)
	client{t, url}.zip()
	return ready, time.Since(begin)
}

// A client calls the API.
type client struct {
	t   *testing.T
	url string
}

func (c client) call(method, path string, body, v any) {
	c.t.Helper()
	b, err := json.Marshal(body)
	systest.NoError(c.t, err)
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url+"/api/v1"+path, bytes.NewReader(b))
	systest.NoError(c.t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	systest.NoError(c.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// zip uploads a text and waits until it is zipped.
func (c client) zip() {
	c.t.Helper()
	text := strings.Repeat("Filewright. ", 100)
	var up struct {
		FileKey    string   `json:"file_key"`
		ObjectName string   `json:"object_name"`
		UploadID   string   `json:"upload_id"`
		URLs       []string `json:"presigned_urls"`
	}
	c.call("POST", "/initiate-upload", map[string]any{"file_name": "a.txt", "size": len(text), "mime_type": "text/plain"}, &up)
	req, err := http.NewRequestWithContext(c.t.Context(), "PUT", up.URLs[0], strings.NewReader(text))
	systest.NoError(c.t, err)
	resp, err := http.DefaultClient.Do(req)
	systest.NoError(c.t, err)
	resp.Body.Close()
	etag := fmt.Sprintf("%x", md5.Sum([]byte(text)))
	var done map[string]any
	c.call("POST", "/complete-upload", map[string]any{"file_key": up.FileKey, "object_name": up.ObjectName, "upload_id": up.UploadID,
		"parts": []any{map[string]any{"part_number": 1, "etag": etag}}}, &done)
	var op struct {
		ID string `json:"main_task_id"`
	}
	c.call("POST", "/do", map[string]any{"action": "zip", "file_keys": []string{up.FileKey}}, &op)
	for {
		var st struct {
			Status string `json:"operation_status"`
		}
		c.call("GET", "/status/"+op.ID+"?wait=60s", nil, &st)
		switch st.Status {
		case "completed":
			return
		case "failed":
			c.t.Fatal("the operation failed")
		}
	}
}
