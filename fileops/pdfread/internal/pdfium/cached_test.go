package pdfium

import (
	"log/slog"
	"os"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// TestCache loads pdfium from an empty cache, from a full one, and from one with the
// code of an outline. A process that is killed at the wrong moment leaves such a cache.
func TestCache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func() {
		t.Helper()
		p, err := NewPool(dir, nil, 1, slog.New(slog.DiscardHandler))
		systest.NoError(t, err)
		systest.NoError(t, p.Warm(t.Context()))
		for range 2 { // the instance that is started in advance, and another one
			systest.NoError(t, p.Run(t.Context(), func(in *Instance) error {
				if p := in.malloc(100); p == 0 {
					t.Error("no memory")
				}
				return in.Err
			}))
		}
		systest.NoError(t, p.Close())
	}
	only := func() (string, os.FileInfo) {
		t.Helper()
		files, err := cacheFiles(dir)
		systest.NoError(t, err)
		if len(files) != 1 {
			t.Fatalf("the cache has the files %v, want one", files)
		}
		st, err := os.Stat(files[0])
		systest.NoError(t, err)
		return files[0], st
	}
	run()
	path, first := only()
	run()
	if _, st := only(); !os.SameFile(st, first) {
		t.Error("pdfium was compiled again")
	}
	systest.NoError(t, os.Remove(path))
	outline, err := outlineOf(pdfiumWasm)
	systest.NoError(t, err)
	l, err := newLibrary(t.Context(), outline, dir, nil)
	systest.NoError(t, err)
	systest.NoError(t, l.close())
	if _, st := only(); st.Size() >= first.Size() {
		t.Errorf("an outline has %d bytes of code, the module %d", st.Size(), first.Size())
	}
	run()
	if _, st := only(); st.Size() != first.Size() {
		t.Errorf("the cache has %d bytes, want %d", st.Size(), first.Size())
	}
}

// TestOutline checks that damaged modules are not taken for a module.
func TestOutline(t *testing.T) {
	t.Parallel()
	whole, err := outlineOf(pdfiumWasm)
	systest.NoError(t, err)
	if len(whole) >= len(pdfiumWasm)/2 {
		t.Errorf("the outline has %d of %d bytes", len(whole), len(pdfiumWasm))
	}
	for _, n := range []int{0, 7, 9, 10, 1000, len(pdfiumWasm) - 1} {
		if _, err := outlineOf(pdfiumWasm[:n]); err == nil {
			t.Errorf("no error for the first %d bytes", n)
		}
	}
}
