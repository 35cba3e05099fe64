package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// The credentials of the first start do not go to a log, but to a file that only the server's user
// can read.
func TestFirstStartSecrets(t *testing.T) {
	t.Parallel()
	a := &app{dataDir: t.TempDir()}
	path := filepath.Join(a.dataDir, firstStartName)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, prepare := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(path, []byte("old"), 0o644) },
		func() error { return os.Symlink(elsewhere, path) },
	} {
		systest.NoError(t, os.RemoveAll(path))
		systest.NoError(t, prepare())
		var out strings.Builder
		a.welcome(&cli{out: &out}, "http://127.0.0.1:1", true, firstStart{"admin", "the-password", "fw_the_key"}, oneCall)
		if text := out.String(); strings.Contains(text, "the-password") || strings.Contains(text, "fw_the_key") || !strings.Contains(text, path) || !strings.Contains(text, "is ready at http://127.0.0.1:1 ") {
			t.Errorf("the output is %q", text)
		}
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), "the-password") || !strings.Contains(string(b), "once: fw_the_key") || strings.Contains(string(b), "old") {
			t.Errorf("the file has %q, %v", b, err)
		}
		if st, err := os.Lstat(path); err != nil || st.Mode() != 0o600 {
			t.Errorf("mode %v, %v", st.Mode(), err)
		}
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("a symbolic link was followed")
	}
	systest.NoError(t, os.Remove(path))
	var out strings.Builder
	a.welcome(&cli{out: &out}, "http://127.0.0.1:1", true, firstStart{}, oneCall)
	if _, err := os.Stat(path); err == nil || strings.Contains(out.String(), firstStartName) {
		t.Errorf("a later start writes %q", &out)
	}
	a.dataDir = filepath.Join(a.dataDir, "missing")
	out.Reset()
	a.welcome(&cli{out: &out}, "http://127.0.0.1:1", true, firstStart{"admin", "the-password", ""}, oneCall)
	if text := out.String(); strings.Contains(text, "the-password") || !strings.Contains(text, "refserver accounts password admin") {
		t.Errorf("with a file that cannot be written: %q", text)
	}
}

// A pipe gets the secrets, a regular file does not.
func TestFirstStartOutput(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	systest.NoError(t, err)
	defer r.Close()
	a := &app{dataDir: t.TempDir()}
	a.welcome(&cli{out: w}, "http://127.0.0.1:1", true, firstStart{"admin", "the-password", "fw_the_key"}, oneCall)
	systest.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	if _, made := os.Stat(filepath.Join(a.dataDir, firstStartName)); err != nil || made == nil || !strings.Contains(string(text), "once: fw_the_key") {
		t.Errorf("a pipe got %q, %v", text, err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	systest.NoError(t, err)
	defer log.Close()
	a.welcome(&cli{out: log}, "http://127.0.0.1:1", true, firstStart{"admin", "the-password", "fw_the_key"}, oneCall)
	if text, err := os.ReadFile(log.Name()); err != nil || strings.Contains(string(text), "fw_the_key") || !strings.Contains(string(text), firstStartName) {
		t.Errorf("a log file got %q, %v", text, err)
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]bool{"127.0.0.1": true, "127.8.8.8": true, "::1": true, "0.0.0.0": false, "::": false, "192.0.2.1": false} {
		if got := isLoopback(&net.TCPAddr{IP: net.ParseIP(ip)}); got != want {
			t.Errorf("%s: %t", ip, got)
		}
	}
}
