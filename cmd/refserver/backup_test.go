package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
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

// A copy has what its unfinished operations read, although the server has deleted it since.
func TestBackupKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	src, dst := memblob.New(), memblob.New()
	put := func(s blob.Store, key string) {
		systest.NoError(t, s.Put(t.Context(), key, strings.NewReader(key), int64(len(key))))
	}
	put(src, "files/step")
	put(dst, "files/old")
	needed := []string{"files/step", "files/lost"}
	if complete, err := copyBlobs(t.Context(), dst, src, needed[:1]); !complete || err != nil {
		t.Errorf("complete %v, %v", complete, err)
	}
	systest.NoError(t, src.Delete(t.Context(), "files/step"))
	put(src, "files/result")
	if complete, err := copyBlobs(t.Context(), dst, src, needed); complete || err != nil {
		t.Errorf("complete %v without an object, %v", complete, err)
	}
	if copied, _, removed, _, err := backupBlobs(t.Context(), dst, src, needed); copied != 1 || removed != 1 || err != nil {
		t.Errorf("%d copied, %d removed, %v", copied, removed, err)
	}
	for _, key := range []string{"files/step", "files/result"} {
		o, err := dst.Open(t.Context(), key)
		systest.NoError(t, err)
		o.Close()
	}
}
