//go:build linux

package e2e

import (
	"archive/zip"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
)

// recordUpgrade is a build of an earlier version. With it TestUpgrade first records its data again:
// go test ./internal/e2e -run TestUpgrade -record-upgrade PATH
var recordUpgrade = flag.String("record-upgrade", "", "build of refserver that makes the data of TestUpgrade, at `path`")

// A recording is what clients of the earlier version knew when the server was killed.
type recording struct {
	Key      string            // API key
	Contents map[string][]byte // of files, by key
	Final    []map[string]any  // final operations in the form of status responses
	Open     []string          // IDs of operations that were not final
	Request  map[string]any    // request to do, sent with the header Idempotency-Key: upgrade
	Task     string            // the returned ID
	Upload   map[string]any    // request to complete-upload, whose two parts were sent
	Uploaded []byte
}

// forever keeps the recorded data from expiring.
var forever = []string{"--file-ttl", "876000h", "--operation-ttl", "876000h", "--session-ttl", "876000h"}

// TestUpgrade starts this version with the data of a server of the first version, commit 5799134,
// that was killed while it processed items. Nothing is lost, and nothing final changes.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, database := range []string{"sqlite", "postgres"} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			archive := filepath.Join("testdata", "upgrade-"+database+".zip")
			if *recordUpgrade != "" {
				record(t, database, archive)
			}
			z, err := zip.OpenReader(archive)
			systest.NoError(t, err)
			defer z.Close()
			dir := t.TempDir()
			systest.NoError(t, os.CopyFS(dir, z))
			var was recording
			if b, err := os.ReadFile(filepath.Join(dir, "recording.json")); err != nil || json.Unmarshal(b, &was) != nil {
				t.Fatalf("recording.json: %s, error %v", b, err)
			}
			flags := append([]string{"--queue-time", "876000h"}, forever...)
			driver, source := "sqlite", filepath.Join(dir, "data", "filewright.db")
			if database == "postgres" {
				driver, source = "pgx", restore(t, filepath.Join(dir, "dump.sql"))
				flags = append([]string{"--database-url", source, "--blob-url", filepath.Join(dir, "blobs")}, flags...)
			}
			was.renew(t, driver, source)
			s := start(t, filepath.Join(dir, "data"), flags...)
			if s.key != "" {
				t.Error("the server made a new key")
			}
			s.key = was.Key
			was.compare(t, s)
			for _, task := range was.Open {
				if r := s.await(t, task); r.str("operation_status") != "completed" || len(r.elements()) != 1 {
					t.Errorf("operation that was open: %s", r.raw)
				}
			}
			if r := s.want(t, 200, "", "POST", "/api/v1/do", was.Request, "Idempotency-Key", "upgrade"); r.str("main_task_id") != was.Task {
				t.Errorf("the same idempotency key: operation %s, want %s", r.str("main_task_id"), was.Task)
			}
			s.want(t, 200, "", "POST", "/api/v1/complete-upload", was.Upload)
			was.Contents[was.Upload["file_key"].(string)] = was.Uploaded
			was.compare(t, s)
			systest.Check(t, s.stop())
		})
	}
}

// renew changes the time of the request with an idempotency key to now, because a server
// keeps such keys for a day.
func (was *recording) renew(t *testing.T, driver, source string) {
	t.Helper()
	db, err := sql.Open(driver, source)
	systest.NoError(t, err)
	defer db.Close()
	now := time.Now().UTC().Truncate(time.Second).Add(-time.Millisecond) // stored in milliseconds
	if _, err := db.ExecContext(t.Context(), `UPDATE operations SET created_ms = $1 WHERE id = $2`, now.UnixMilli(), was.Task); err != nil {
		t.Fatal(err)
	}
	for _, op := range was.Final {
		if op["main_task_id"] == was.Task {
			op["created_at"] = now.Format(time.RFC3339Nano)
			op["data"].(map[string]any)["created_at"] = op["created_at"]
		}
	}
}

// compare compares a server's responses with the recording.
func (was *recording) compare(t *testing.T, s *server) {
	t.Helper()
	for key, content := range was.Contents {
		if d := s.want(t, 200, "", "GET", "/v1/download/"+key, nil); string(d.raw) != string(content) {
			t.Errorf("file %s has %d bytes, want %d", key, len(d.raw), len(content))
		}
	}
	for _, op := range was.Final {
		r := s.want(t, 200, "", "GET", fmt.Sprint("/api/v1/status/", op["main_task_id"]), nil)
		if path := differs(op, r.body); path != "" {
			t.Errorf("operation %v: %s is another now: %s, was %v", op["main_task_id"], path, r.raw, op)
		}
	}
}

// differs returns where b lacks a value of a or differs from it, or "". b may have more members.
func differs(a, b any) string {
	switch a := a.(type) {
	case map[string]any:
		b, _ := b.(map[string]any)
		for name, v := range a {
			if d := differs(v, b[name]); d != "" {
				return strings.TrimSuffix(name+"."+d, ".")
			}
		}
		return ""
	case []any:
		b, _ := b.([]any)
		if len(a) != len(b) {
			return "."
		}
		for i := range a {
			if d := differs(a[i], b[i]); d != "" {
				return fmt.Sprint(i, ".", d)
			}
		}
		return ""
	}
	if !reflect.DeepEqual(a, b) {
		return "."
	}
	return ""
}

// restore restores a dump and returns the URL of the database.
func restore(t *testing.T, dump string) string {
	t.Helper()
	text := systest.ReadFile(t, dump)
	url := pgtest.Own(t).Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	systest.NoError(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), string(text), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	return url
}

// record runs a server of the earlier version, kills it and archives its data.
func record(t *testing.T, database, archive string) {
	dir := t.TempDir()
	flags := append([]string{"--concurrency", "office=1", "--office-documents", "1"}, forever...)
	url := ""
	if database == "postgres" {
		url = pgtest.Own(t).Database(t)
		flags = append(flags, "--database-url", url, "--blob-url", filepath.Join(dir, "blobs"))
	}
	s, err := launchProgram([]string{*recordUpgrade}, nil, filepath.Join(dir, "data"), flags...)
	systest.NoError(t, err)
	defer s.kill()
	was := recording{Key: s.key, Contents: make(map[string][]byte)}
	table := []byte("name,count\nx,1\n")
	csv := s.upload(t, "table.csv", table, 1)
	broken := s.upload(t, "broken.jpg", jpg(t).b[:200], 1)
	was.Contents[csv], was.Contents[broken] = table, jpg(t).b[:200]
	do := func(body map[string]any, headers ...string) string {
		return s.want(t, 200, "", "POST", "/api/v1/do", body, headers...).str("main_task_id")
	}
	convert := func(file, to string) map[string]any {
		return map[string]any{"action": "convert", "file_keys": []string{file}, "parameters": map[string]any{"convert_to": to}, "notes": map[string]any{"for": to}}
	}
	was.Request = convert(csv, "json")
	was.Task = do(was.Request, "Idempotency-Key", "upgrade")
	for _, task := range []string{was.Task, do(convert(broken, "webp")), do(map[string]any{"action": "zip", "file_keys": []string{csv, broken}})} {
		r := s.await(t, task)
		was.Final = append(was.Final, r.body)
		for _, e := range r.elements() {
			if link, ok := e["download_link"].(string); ok {
				was.Contents[e["file_key"].(string)] = s.want(t, 200, "", "GET", link, nil).raw
			}
		}
	}
	up := s.initiate(t, "both.txt", 2000, 2)
	first, second := []byte(strings.Repeat("1", 1000)), []byte(strings.Repeat("2", 1000))
	was.Upload = map[string]any{"file_key": up.key, "object_name": up.object, "upload_id": up.id, "parts": []map[string]any{
		{"part_number": 1, "etag": s.put(t, up.urls[0], first)}, {"part_number": 2, "etag": s.put(t, up.urls[1], second)}}}
	was.Uploaded = append(first, second...)
	for range 6 {
		was.Open = append(was.Open, do(convert(csv, "pdf")))
	}
	s.kill()
	for _, name := range []string{"cache", "scratch"} {
		systest.NoError(t, os.RemoveAll(filepath.Join(dir, "data", name)))
	}
	if url != "" {
		dump := tool(t, "pg_dump", "--inserts", "--no-owner", url)
		dump = regexp.MustCompile(`(?m)^\\.*$`).ReplaceAllString(dump, "") // commands for psql
		systest.NoError(t, os.WriteFile(filepath.Join(dir, "dump.sql"), []byte(dump), 0o600))
	}
	b, err := json.MarshalIndent(was, "", "  ")
	systest.NoError(t, err)
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "recording.json"), b, 0o600))
	f, err := os.Create(archive)
	systest.NoError(t, err)
	defer f.Close()
	z := zip.NewWriter(f)
	systest.NoError(t, z.AddFS(os.DirFS(dir)))
	systest.NoError(t, z.Close())
}
