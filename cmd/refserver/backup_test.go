package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

// With files in a bucket, backup reports that it has not copied them.
func TestBackupWithoutFiles(t *testing.T) {
	t.Parallel()
	none := func(string) (string, bool) { return "", false }
	dir, to := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "copy")
	var out strings.Builder
	if code := run(t.Context(), []string{"backup", "--data-dir", dir, to}, &out, &out, none); code != 1 || !strings.Contains(out.String(), "not a data directory") {
		t.Errorf("of nothing: %d, %s", code, &out)
	}
	if code := run(t.Context(), []string{"keys", "create", "--data-dir", dir, "--name", "x"}, &out, &out, none); code != 0 {
		t.Fatalf("keys create: %d, %s", code, &out)
	}
	for range 2 { // also over an older copy
		out.Reset()
		if code := run(t.Context(), []string{"backup", "--data-dir", dir, to}, &out, &out, none); code != 0 || !strings.Contains(out.String(), "--blob-url") {
			t.Errorf("backup: %d, %s", code, &out)
		}
	}
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(dir, databaseName)})
	systest.NoError(t, err)
	if at, err := db.LastBackup(t.Context()); err != nil || time.Since(at) > time.Minute {
		t.Errorf("the last backup was at %v, error %v", at, err)
	}
	systest.Check(t, db.Close())
	out.Reset()
	if code := run(t.Context(), []string{"keys", "list", "--data-dir", to}, &out, &out, none); code != 0 || !strings.Contains(out.String(), "x") {
		t.Errorf("the copy: %d, %s", code, &out)
	}
	if _, err := os.Stat(filepath.Join(dir, "blobs")); err == nil {
		t.Error("backup has made a directory where it only reads")
	}
}
