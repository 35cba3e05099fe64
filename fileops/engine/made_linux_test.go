package engine_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/systest"
)

// Program output is read and taken only if it is a regular file in its directory.
func TestOpenAndTake(t *testing.T) {
	t.Parallel()
	dir, outside, to := t.TempDir(), t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "file")
	check := func(err error) {
		t.Helper()
		systest.NoError(t, err)
	}
	check(os.WriteFile(secret, []byte("secret"), 0o600))
	check(os.WriteFile(filepath.Join(dir, "file"), []byte("made"), 0o600))
	check(os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	check(os.WriteFile(filepath.Join(dir, "sub", "file"), []byte("below"), 0o600))
	check(os.Symlink(secret, filepath.Join(dir, "link")))
	check(os.Symlink("file", filepath.Join(dir, "own link")))
	check(os.Symlink(outside, filepath.Join(dir, "away")))
	check(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for name, want := range map[string]string{"file": "made", "sub/file": "below"} {
		f, err := engine.Open(dir, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		path := filepath.Join(to, filepath.Base(filepath.Dir(name))+"-linked")
		check(engine.Take(f, path))
		check(os.Remove(filepath.Join(dir, name))) // its name now leads elsewhere, and
		check(os.Symlink(secret, filepath.Join(dir, name)))
		check(os.Remove(path)) // now it has no name, so it is copied
		check(engine.Take(f, path))
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s: taken %q, %v", name, b, err)
		}
		if err := engine.Take(f, path); err == nil {
			t.Errorf("%s: what was there is replaced", name)
		}
		f.Close()
	}
	for _, name := range []string{"link", "own link", "away/file", "pipe", "sub", "none", "../" + filepath.Base(outside) + "/file", secret} {
		if f, err := engine.Open(dir, name); err == nil {
			b, _ := io.ReadAll(f)
			f.Close()
			t.Errorf("%s is opened: %q", name, b)
		}
	}
}
