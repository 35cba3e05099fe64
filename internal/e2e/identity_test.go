//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
)

// refusesToStart runs the server, which must exit with one error line, and returns the line.
func refusesToStart(t *testing.T, dir string, flags ...string) string {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--log-level", "error"}, flags...)...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s3test.AccessKey, "AWS_SECRET_ACCESS_KEY="+s3test.SecretKey)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("a start that must be refused: %v\n%s%s", err, &stdout, &stderr)
	}
	return stderr.String()
}

// A server that starts with another database than that of its files deletes nothing.
func TestLostDatabase(t *testing.T) {
	t.Parallel()
	dir, backup := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup")
	s := startLean(t, dir)
	key, files := s.key, make(map[string][]byte)
	for i := range 12 {
		text := fmt.Appendf(nil, "text %d\n", i)
		files[s.upload(t, "a.txt", text, 1)] = text
	}
	for range 2 {
		tool(t, binary, "backup", "--data-dir", dir, backup)
	}
	systest.NoError(t, s.stop())
	away := t.TempDir()
	databases, err := filepath.Glob(filepath.Join(dir, "filewright.db*"))
	if err != nil || len(databases) == 0 {
		t.Fatal(databases, err)
	}
	move := func(from, to string) {
		t.Helper()
		for _, path := range databases {
			name := filepath.Base(path)
			systest.NoError(t, os.Rename(filepath.Join(from, name), filepath.Join(to, name)))
		}
	}
	contents := func() (n int) {
		t.Helper()
		paths, err := filepath.Glob(filepath.Join(dir, "blobs", "obj", "=files", "*", "*"))
		systest.NoError(t, err)
		return len(paths)
	}
	move(dir, away)
	line := refusesToStart(t, dir, noEngines...)
	for _, want := range []string{filepath.Join(dir, "filewright.db"), filepath.Join(dir, "blobs"), "identity none", "--adopt"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in: %s", want, line)
		}
	}
	if n := contents(); n != 12 {
		t.Errorf("%d contents are left, want 12", n)
	}
	// The operator adopts the files with the empty database. Nothing is deleted at once.
	s = start(t, dir, append([]string{"--adopt", "--sweep", "10ms"}, noEngines...)...)
	s.upload(t, "b.txt", []byte("b"), 1)
	systest.NoError(t, s.stop())
	if n := contents(); n != 13 || !strings.Contains(s.err.String(), "adopted") {
		t.Errorf("after --adopt %d contents are left, want 13; log:\n%s", n, s.err)
	}
	s = startLean(t, dir)
	systest.NoError(t, s.stop())

	// The original database returns and is adopted as well.
	if databases, err = filepath.Glob(filepath.Join(away, "filewright.db*")); err != nil {
		t.Fatal(err)
	}
	systest.NoError(t, os.RemoveAll(filepath.Join(dir, "filewright.db-wal")))
	move(away, dir)
	refusesToStart(t, dir, noEngines...)
	start(t, dir, append([]string{"--adopt"}, noEngines...)...).intact(t, key, files)

	// A backup contains its identity.
	startLean(t, backup).intact(t, key, files)
}

// The same for a bucket, and for the servers of a cluster.
func TestLostDatabaseElsewhere(t *testing.T) {
	t.Parallel()
	text := []byte("text\n")
	inBucket := append([]string{"--blob-url", bucketURL("lost", "")}, noEngines...)
	s := start(t, filepath.Join(t.TempDir(), "first"), inBucket...)
	key := s.upload(t, "a.txt", text, 1)
	line := refusesToStart(t, filepath.Join(t.TempDir(), "second"), inBucket...)
	if !strings.Contains(line, "the bucket "+bucket+"/lost at "+buckets.Endpoint) {
		t.Errorf("the bucket is not in: %s", line)
	}
	s.intact(t, s.key, map[string][]byte{key: text})

	c := newCluster(t)
	s = c.node("all", noEngines...)
	key = s.upload(t, "a.txt", text, 1)
	for _, role := range []string{"api", "worker"} {
		line := refusesToStart(t, filepath.Join(t.TempDir(), role), append([]string{"--role", role, "--database-url", c.pg.Database(t), "--blob-url", c.blobs}, noEngines...)...)
		if !strings.Contains(line, "the PostgreSQL database ") || !strings.Contains(line, "the directory "+c.blobs) {
			t.Errorf("the database or the directory is not in: %s", line)
		}
	}
	refusesToStart(t, filepath.Join(t.TempDir(), "mount"), append([]string{"--database-url", c.url, "--blob-url", t.TempDir()}, noEngines...)...)
	s.intact(t, s.key, map[string][]byte{key: text})
}

// intact fails unless all files can be downloaded with an API key.
func (s *server) intact(t *testing.T, key string, files map[string][]byte) {
	t.Helper()
	s.key = key
	for file, text := range files {
		if got := s.want(t, 200, "", "GET", "/v1/download/"+file, nil).raw; !bytes.Equal(got, text) {
			t.Errorf("%s is %q, want %q", file, got, text)
		}
	}
}
