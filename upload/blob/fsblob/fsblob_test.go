package fsblob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/blobtest"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

func open(t *testing.T, dir string) *fsblob.Store {
	t.Helper()
	s, err := fsblob.New(dir)
	systest.NoError(t, err)
	systest.AtEnd(t, s.Close)
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, filepath.Join(t.TempDir(), "blobs")) })
}

func openShared(t *testing.T, dir string) *fsblob.Store {
	t.Helper()
	s, err := fsblob.NewShared(dir)
	systest.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSharedStore(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { return openShared(t, t.TempDir()) })
}

// A directory whose contents are gone, such as an unmounted file system, is not an
// empty store.
func TestAway(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, string) *fsblob.Store{"alone": open, "shared": openShared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blobtest.RunAway(t, func(t *testing.T) (blob.Store, func()) {
				dir := t.TempDir()
				return open(t, dir), func() {
					systest.NoError(t, os.Rename(filepath.Join(dir, "obj"), filepath.Join(dir, "elsewhere")))
				}
			})
		})
	}
}

// The generic functions of package blob work without the optional roles of a store.
func TestStoreWithoutOptionalInterfaces(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { return struct{ blob.Store }{open(t, t.TempDir())} })
}

// files returns the regular files below dir by their paths relative to it.
func files(t *testing.T, dir string) map[string]fs.FileInfo {
	t.Helper()
	m := make(map[string]fs.FileInfo)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			if i.Mode().Perm() != 0o700 && path != dir {
				t.Errorf("%s has mode %v", path, i.Mode())
			}
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		m[rel] = i
		return err
	})
	systest.NoError(t, err)
	return m
}

func TestFiles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, dir)
	systest.NoError(t, s.Put(ctx, "files/abcdef", strings.NewReader("x"), 1))
	src := filepath.Join(t.TempDir(), "result")
	systest.NoError(t, os.WriteFile(src, []byte("abc"), 0o666))
	before, err := os.Stat(src)
	systest.NoError(t, err)
	systest.NoError(t, s.PutFile(ctx, "files/xy", src))
	got := files(t, dir)
	for _, name := range []string{"obj/=files/-ab/abcdef", "obj/=files/-xy/xy"} {
		if i := got[name]; i == nil || i.Mode() != 0o600 {
			t.Errorf("%s: %v", name, i)
		}
	}
	if len(got) != 2 {
		t.Errorf("there are more files: %v", got)
	}
	if !os.SameFile(before, got["obj/=files/-xy/xy"]) {
		t.Error("PutFile has copied the file")
	}
	if _, err := os.Stat(src); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file taken over is still there: %v", err)
	}

	// The usual upload is one file from start to finish.
	a := blob.Assembly{Store: s, ID: "u", Size: 5, Parts: 2}
	systest.NoError(t, a.Begin(ctx))
	staged := files(t, dir)["stage/u"]
	if staged == nil || staged.Size() != 5 || staged.Mode() != 0o600 {
		t.Fatalf("staging area: %v", staged)
	}
	p2, err := a.WritePart(ctx, 2, strings.NewReader("de"), 2)
	systest.NoError(t, err)
	p1, err := a.WritePart(ctx, 1, strings.NewReader("abc"), 3)
	systest.NoError(t, err)
	systest.NoError(t, a.Commit(ctx, "files/abc", []blob.AssembledPart{p1, p2}))
	if !os.SameFile(staged, files(t, dir)["obj/=files/-ab/abc"]) {
		t.Error("the staging area was not renamed")
	}

	// Parts of any size leave no directory behind, and aborted writes no file.
	a = blob.Assembly{Store: s, ID: "v", Size: 5, Parts: 2}
	if _, err := a.WritePart(ctx, 1, strings.NewReader("abcde"), 5); err != nil {
		t.Fatal(err)
	}
	systest.NoError(t, a.Abort(ctx))
	if err := s.Put(ctx, "files/short", strings.NewReader("x"), 2<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "obj/=parts/=v")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory of parts: %v", err)
	}
	if got := files(t, dir); len(got) != 3 {
		t.Errorf("files are left: %v", got)
	}
}

func TestNoSpace(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, dir)
	free, err := s.FreeSpace(ctx)
	systest.NoError(t, err)
	tooMuch := free + 1<<40
	r := strings.NewReader("abc")
	for name, err := range map[string]error{
		"Put":   fmt.Errorf("outer: %w", s.Put(ctx, "k", r, tooMuch)),
		"Stage": fmt.Errorf("outer: %w", s.Stage(ctx, "u", tooMuch)),
	} {
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s = %v, want ENOSPC", name, err)
		}
		if strings.Contains(err.Error(), dir) {
			t.Errorf("%s tells the path: %v", name, err)
		}
	}
	if r.Len() != 3 {
		t.Error("Put has read from a body for which there is no room")
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("files are left: %v", got)
	}
}

// A key must not lead out of the directory, even if there is a symbolic link in it.
func TestSymlinks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir, outside := t.TempDir(), t.TempDir()
	s := open(t, dir)
	systest.NoError(t, os.WriteFile(filepath.Join(outside, "xsecret"), []byte("secret"), 0o600))
	systest.NoError(t, os.Mkdir(filepath.Join(dir, "obj/=a"), 0o700))
	systest.NoError(t, os.Symlink(outside, filepath.Join(dir, "obj/=a/-xs")))
	if _, err := s.Open(ctx, "a/xsecret"); err == nil {
		t.Error("Open follows a link out of the directory")
	}
	if err := s.Put(ctx, "a/xsnew", strings.NewReader("x"), 1); err == nil {
		t.Error("Put follows a link out of the directory")
	}
	if err := s.Delete(ctx, "a/xsecret"); err == nil {
		t.Error("Delete follows a link out of the directory")
	}
	if got := files(t, outside); len(got) != 1 {
		t.Errorf("outside there are %v", got)
	}
}

// The leftovers of a killed process.
func TestReopen(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, dir)
	a := blob.Assembly{Store: s, ID: "u", Size: 6, Parts: 2}
	systest.NoError(t, a.Begin(ctx))
	p1, err := a.WritePart(ctx, 1, strings.NewReader("abc"), 3)
	systest.NoError(t, err)
	systest.NoError(t, s.Put(ctx, "files/k", strings.NewReader("x"), 1))
	old := fmt.Sprintf("tmp/%d-ABC", time.Now().Add(-48*time.Hour).Unix())
	recent := fmt.Sprintf("tmp/%d-ABC", time.Now().Unix())
	for _, name := range []string{old, recent, "tmp/other"} {
		systest.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600))
	}

	s = open(t, dir)
	if n, err := blob.Sweep(ctx, s, time.Now().Add(-24*time.Hour)); n != 1 || err != nil {
		t.Errorf("Sweep = %d, %v, want 1", n, err)
	}
	got := files(t, dir)
	if got[old] != nil || got[recent] == nil || got["tmp/other"] == nil {
		t.Errorf("after Sweep there are %v", got)
	}
	a.Store = s
	systest.NoError(t, a.Begin(ctx))
	p2, err := a.WritePart(ctx, 2, strings.NewReader("def"), 3)
	systest.NoError(t, err)
	systest.NoError(t, a.Commit(ctx, "files/u", []blob.AssembledPart{p1, p2}))
	o, err := s.Open(ctx, "files/u")
	systest.NoError(t, err)
	defer o.Close()
	if b, err := io.ReadAll(blob.NewReader(o)); string(b) != "abcdef" || err != nil {
		t.Errorf("object is %q, %v", b, err)
	}
}

// The kernel can send the file of an object.
func TestObjectFile(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	systest.NoError(t, s.Put(t.Context(), "k", strings.NewReader("content"), 7))
	o, err := s.Open(t.Context(), "k")
	systest.NoError(t, err)
	defer o.Close()
	f := o.(blob.LocalObject).File()
	if _, err := f.Seek(3, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); string(b) != "tent" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
}

func TestRenamesAndRemovedDirectories(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for range 40 {
				key := fmt.Sprintf("parts/same/%d", w)
				systest.Check(t, s.Put(t.Context(), key, strings.NewReader("x"), 1))
				if _, err := blob.Stat(t.Context(), s, key); err != nil {
					t.Error(err)
				}
				systest.Check(t, s.Delete(t.Context(), key))
			}
		})
	}
	wg.Wait()
}

func Example() {
	dir, err := os.MkdirTemp("", "blobs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := fsblob.New(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	ctx := context.Background()
	for _, name := range []string{"reports/b", "reports/a", "other"} {
		if err := s.Put(ctx, name, strings.NewReader("hello"), 5); err != nil {
			log.Fatal(err)
		}
	}
	for i, err := range s.List(ctx, "reports/") {
		fmt.Println(i.Key, i.Size, err)
	}
	// Output:
	// reports/a 5 <nil>
	// reports/b 5 <nil>
}

// TestShared runs two stores on one directory, like two processes. They create and
// remove objects, and with them their directories.
func TestShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for n := range 2 {
		s := openShared(t, dir)
		for w := range 2 {
			wg.Go(func() {
				for i := range 100 {
					key := fmt.Sprintf("parts/session/%d", n*2+w)
					if err := s.Put(t.Context(), key, strings.NewReader("content"), 7); err != nil {
						t.Errorf("object %d: %v", i, err)
						return
					}
					o, err := s.Open(t.Context(), key)
					if err != nil {
						t.Errorf("object %d that was stored: %v", i, err)
						return
					}
					o.Close()
					if err := s.Delete(t.Context(), key); err != nil {
						t.Errorf("object %d: %v", i, err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// A process that lost the lock of a part while it received the bytes, and notices late,
// does not damage the object that another process has completed.
func TestLateWriter(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	late, other := openShared(t, dir), openShared(t, dir)
	const size = 3 << 20
	data := bytes.Repeat([]byte("content."), size/8)
	systest.NoError(t, late.Stage(ctx, "u", size))
	r, w := io.Pipe()
	broken := errors.New("the client has gone")
	done := make(chan error)
	go func() {
		_, err := late.WriteStaged(ctx, "u", 0, r, size)
		done <- err
	}()
	if _, err := w.Write(data[:size/2]); err != nil {
		t.Fatal(err)
	}
	if n, err := other.WriteStaged(ctx, "u", 0, bytes.NewReader(data), size); n != size || err != nil {
		t.Fatalf("WriteStaged = %d, %v", n, err)
	}
	systest.NoError(t, other.CommitStaged(ctx, "u", "files/u", []blob.Piece{{Size: size}}))
	w.CloseWithError(broken)
	if err := <-done; !errors.Is(err, broken) {
		t.Errorf("late WriteStaged = %v", err)
	}
	o, err := other.Open(ctx, "files/u")
	systest.NoError(t, err)
	defer o.Close()
	got := make([]byte, size)
	if _, err := o.ReadAt(got, 0); err != nil && err != io.EOF || !bytes.Equal(got, data) {
		t.Errorf("the object is damaged: %v", err)
	}
}
