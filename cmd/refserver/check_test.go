package main

import (
	"context"
	"crypto/md5"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

// withFiles opens the files of a data directory, like a server.
func withFiles(t testing.TB, dir string, do func(m *upload.Manager, blobs *fsblob.Store)) {
	t.Helper()
	systest.NoError(t, os.MkdirAll(dir, 0o700))
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(dir, databaseName), Exclusive: true})
	systest.NoError(t, err)
	defer db.Close()
	blobs, err := fsblob.New(filepath.Join(dir, "blobs"))
	systest.NoError(t, err)
	defer blobs.Close()
	m, err := upload.NewManager(blobs, &upload.Options{Store: db.Files(), FileTTL: -1})
	systest.NoError(t, err)
	do(m, blobs)
}

// The exit code and both report formats show the result of a check.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	type report struct {
		Differences []upload.Difference
		Records     int64
		Objects     int64
		Found       int64
		Left        int64
		Recent      int64 `json:"recent_orphans"`
		Verified    int64
	}
	check := func(want int, args ...string) (string, string) {
		t.Helper()
		var out, errw strings.Builder
		code := run(t.Context(), append([]string{"check", "--data-dir", dir}, args...), &out, &errw, func(string) (string, bool) { return "", false })
		if code != want {
			t.Errorf("%v: exit code %d, want %d\n%s%s", args, code, want, &out, &errw)
		}
		return out.String(), errw.String()
	}
	checkJSON := func(want int, args ...string) (r report) {
		t.Helper()
		out, _ := check(want, append(args, "--json")...)
		d := json.NewDecoder(strings.NewReader(out))
		if err := d.Decode(&r); err != nil || d.More() {
			t.Errorf("%v: %v in\n%s", args, err, out)
		}
		return r
	}
	if _, text := check(incompleteCode); !strings.Contains(text, "not a data directory") {
		t.Errorf("no data directory: %s", text)
	}
	var lost, kept *upload.File
	withFiles(t, dir, func(m *upload.Manager, blobs *fsblob.Store) {
		for _, f := range []**upload.File{&lost, &kept} {
			var err error
			if *f, err = m.Add(t.Context(), upload.File{Owner: "a", Name: "x.txt", Size: 3}, strings.NewReader("abc"), ""); err != nil {
				t.Fatal(err)
			}
		}
		// The server owns the directory and is running.
		if out, _ := check(0); !strings.Contains(out, "Checked 2 records, 2 files and 0 open uploads.\n0 differences found") {
			t.Errorf("a whole store: %s", out)
		}
		if r := checkJSON(0, "--deep"); r.Records != 2 || r.Objects != 2 || r.Found != 0 || r.Differences == nil {
			t.Errorf("a whole store: %+v", r)
		}
		systest.NoError(t, blobs.Delete(t.Context(), lost.Object))
		systest.NoError(t, blobs.Put(t.Context(), "files/nobody", strings.NewReader("abcd"), 4))
	})
	if r := checkJSON(1, "--grace", "1h"); r.Found != 1 || r.Left != 1 || r.Recent != 1 || r.Differences[0].Kind != upload.DifferenceMissing || r.Differences[0].Key != lost.Key || r.Differences[0].Want != 3 {
		t.Errorf("%+v", r)
	}
	out, text := check(1, "--grace", "100ms")
	for _, want := range []string{"missing       " + lost.Key, "orphan        nobody", "2 differences found, 0 repaired."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if text != "refserver: 2 differences remain\n" {
		t.Errorf("standard error: %q", text)
	}
	if r := checkJSON(1, "--grace", "1ms", "--repair"); r.Found != 2 || r.Left != 1 || r.Differences[1].Kind != upload.DifferenceOrphan || r.Differences[1].Size != 4 || !r.Differences[1].Repaired {
		t.Errorf("%+v", r)
	}
	withFiles(t, dir, func(m *upload.Manager, _ *fsblob.Store) {
		systest.NoError(t, m.Delete(t.Context(), "a", lost.Key))
	})
	if out, _ := check(0, "--grace", "1ms"); !strings.Contains(out, "1 files are in quarantine.\n0 differences found") {
		t.Errorf("after the repair: %s", out)
	}
	for _, bad := range [][]string{{"--nonsense"}, {"argument"}, {"--grace", "0"}, {"--blob-url", "file:///x"}, {"--database-url", "postgres://127.0.0.1:1/x"}} {
		check(2, bad...)
	}
	systest.NoError(t, os.Rename(filepath.Join(dir, "blobs"), filepath.Join(dir, "away")))
	check(incompleteCode)
	systest.NoError(t, os.Mkdir(filepath.Join(dir, "blobs"), 0o700))
	if _, text := check(incompleteCode); !strings.Contains(text, "empty") {
		t.Errorf("an empty directory: %s", text)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "blobs")); err != nil || len(entries) > 0 {
		t.Errorf("a check has made %v, %v", entries, err)
	}
}

// Progress goes to standard error.
func TestCheckProgress(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	p := newCheckProgress(&text, 1000)
	p.update(upload.CheckCounts{Records: 1})
	if text.Len() > 0 {
		t.Errorf("at once: %q", &text)
	}
	p.next = time.Time{}
	p.update(upload.CheckCounts{Records: 500, Bytes: 2e6})
	p.update(upload.CheckCounts{Records: 501})
	if got := text.String(); !strings.HasPrefix(got, "checked 500 of about 1000 records, ") || !strings.Contains(got, "read 2.0 MB") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
	text.Reset()
	p.terminal, p.next = true, time.Time{}
	p.update(upload.CheckCounts{Records: 600})
	p.clear()
	p.clear()
	if got := text.String(); !strings.HasPrefix(got, "\r\x1b[Kchecked 600") || !strings.HasSuffix(got, "/s\r\x1b[K") {
		t.Errorf("on a terminal: %q", got)
	}
}

// BenchmarkCheck compares 100,000 small files with their records.
func BenchmarkCheck(b *testing.B) {
	const n = 100_000
	dir := filepath.Join(b.TempDir(), "data")
	withFiles(b, dir, func(*upload.Manager, *fsblob.Store) {})
	systest.NoError(b, fillFiles(b.Context(), dir, n))
	for b.Loop() {
		var out strings.Builder
		if code := run(b.Context(), []string{"check", "--data-dir", dir}, &out, &out, os.LookupEnv); code != 0 || !strings.Contains(out.String(), "100000 files") {
			b.Fatal(code, out.String())
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
}

// fillFiles creates n files of 3 bytes without the fsync calls of a server.
func fillFiles(ctx context.Context, dir string, n int) error {
	db, err := sql.Open("sqlite", filepath.Join(dir, databaseName))
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for i := range n {
		key := upload.KeyOf(md5.Sum(fmt.Append(nil, i)))
		if _, err := tx.ExecContext(ctx, `INSERT INTO files (file_key, owner, name, content_type, size, state, object, upload_id, parts, etag, task, fingerprint, created_ms)
			VALUES ($1, 'a', 'x.txt', 'text/plain', 3, 'ready', $2, '', 1, '', '', '', 0)`, key, "files/"+key); err != nil {
			return err
		}
		shard := filepath.Join(dir, "blobs", "obj", "=files", "-"+key[:2])
		if err := os.MkdirAll(shard, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(shard, key), []byte("abc"), 0o600); err != nil {
			return err
		}
	}
	return tx.Commit()
}
