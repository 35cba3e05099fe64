package upload_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/memblob"
)

func TestOwners(t *testing.T) {
	t.Parallel()
	e := newEnv(t, memblob.New(), upload.Options{})
	ctx := t.Context()
	f, err := e.Add(ctx, upload.File{Owner: "alice", Name: "r.txt", Size: 5, Task: "t1"}, strings.NewReader("hello"), "")
	systest.NoError(t, err)
	for _, owner := range []string{"alice", ""} {
		if got, err := e.Get(ctx, owner, f.Key); err != nil || got.Task != "t1" {
			t.Errorf("Get(%q) = %+v, %v", owner, got, err)
		}
		if got, o, err := e.Open(ctx, owner, f.Key); err != nil || got.Key != f.Key || o.Close() != nil {
			t.Errorf("Open(%q) = %+v, %v", owner, got, err)
		}
	}
	_, err = e.Get(ctx, "bob", f.Key)
	wantKind(t, "Get", err, fs.ErrNotExist)
	_, unknown := e.Get(ctx, "bob", strings.Repeat("a", 26))
	if err.Error() != unknown.Error() {
		t.Errorf("a foreign file (%v) can be told from one that is not there (%v)", err, unknown)
	}
	_, _, err = e.Open(ctx, "bob", f.Key)
	wantKind(t, "Open", err, fs.ErrNotExist)
	wantKind(t, "Delete", e.Delete(ctx, "bob", f.Key), fs.ErrNotExist)
	wantKind(t, "Complete of a result", second(e.Complete(ctx, "alice", f.Key, "", "", nil)), fs.ErrNotExist)
	systest.NoError(t, e.Delete(ctx, "alice", f.Key))
	wantKind(t, "Delete again", e.Delete(ctx, "alice", f.Key), fs.ErrNotExist)
	if n := e.objects(); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{FileTTL: 2 * time.Hour}, func(t *testing.T, e *env) {
		ctx := t.Context()
		f, err := e.Add(ctx, upload.File{Owner: "alice", Name: "../r\x00.txt", ContentType: "text/plain; Charset=UTF-8", Size: 5, Task: "t1"}, strings.NewReader("hello, cut"), "")
		systest.NoError(t, err)
		if f.State != upload.Ready || f.Name != "r.txt" || f.ContentType != "text/plain; charset=UTF-8" || f.Size != 5 ||
			f.ETag != "5d41402abc4b2a76b9719d911017c592" || f.Task != "t1" || !f.Expires.Equal(f.Created.Add(2*time.Hour)) || !upload.IsID(f.Key) {
			t.Errorf("Add = %+v", f)
		}
		if got := e.content(f); string(got) != "hello" {
			t.Errorf("content is %q", got)
		}

		path := filepath.Join(t.TempDir(), "out")
		systest.NoError(t, os.WriteFile(path, noise(100_000), 0o644))
		expires := e.clock.now().UTC().Truncate(time.Millisecond).Add(time.Minute)
		g, err := e.Add(ctx, upload.File{Owner: "alice", Name: "x", Expires: expires}, nil, path)
		systest.NoError(t, err)
		if g.Size != 100_000 || g.ETag == "" || g.ETag == f.ETag || !g.Expires.Equal(expires) || g.ContentType != "application/octet-stream" {
			t.Errorf("Add = %+v", g)
		}
		if !bytes.Equal(e.content(g), noise(100_000)) {
			t.Error("content differs")
		}

		_, err = e.Add(ctx, upload.File{Size: -1}, strings.NewReader(""), "")
		wantKind(t, "negative size", err, upload.ErrInvalid)
		if _, err = e.Add(ctx, upload.File{Size: 9}, strings.NewReader("short"), ""); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("short Add = %v", err)
		}
		if _, err = e.Add(ctx, upload.File{}, nil, path+"-none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Add of no file = %v", err)
		}
		if n := e.objects(); n != 2 {
			t.Errorf("%d objects, want 2", n)
		}

		// Without a record there is no content.
		broken := newEnv(t, e.blobs, upload.Options{Store: failingStore{e.store}})
		if _, err = broken.Add(ctx, upload.File{Size: 5}, strings.NewReader("hello"), ""); !errors.Is(err, errStore) {
			t.Errorf("Add = %v", err)
		}
		if n := e.objects(); n != 2 {
			t.Errorf("%d objects, want 2", n)
		}
	})
}

func testKey(n byte) string { return upload.KeyOf([16]byte{n, 15: n}) }

// A key with a tombstone has no file and cannot get one for the lifetime of files.
func TestBar(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{FileTTL: time.Hour}, func(t *testing.T, e *env) {
		ctx := t.Context()
		add := func(key string) error {
			_, err := e.Add(ctx, upload.File{Key: key, Owner: "alice", Size: 5}, strings.NewReader("hello"), "")
			return err
		}
		tombstone := func(key string, want bool) {
			t.Helper()
			if there, err := e.Tombstone(ctx, "alice", key); there != want || err != nil {
				t.Errorf("Tombstone = %t, %v; want %t", there, err, want)
			}
			if _, err := e.Ready(ctx, "alice", key); !errors.Is(err, upload.ErrExpired) {
				t.Errorf("Ready = %v", err)
			}
			if err := add(key); !errors.Is(err, fs.ErrExist) {
				t.Errorf("Add = %v", err)
			}
			if n := e.objects(); n != 0 {
				t.Errorf("%d objects", n)
			}
		}
		tombstone(testKey(1), false)
		tombstone(testKey(1), false)
		systest.NoError(t, add(testKey(2)))
		tombstone(testKey(2), true)
		tombstone(testKey(2), false)
		_, err := e.Tombstone(ctx, "alice", "../a")
		wantKind(t, "Tombstone of no key", err, upload.ErrInvalid)

		e.clock.advance(time.Hour)
		if _, err := e.Sweep(ctx); err != nil {
			t.Error(err)
		}
		if left := expiredKeys(t, e); len(left) > 0 {
			t.Errorf("records are left: %q", left)
		}
	})
}

// Whichever call comes first, no file is left.
func TestBarAtOnce(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		ctx := t.Context()
		for i := range byte(50) {
			var wg sync.WaitGroup
			wg.Go(func() {
				_, err := e.Add(ctx, upload.File{Key: testKey(i), Owner: "alice", Size: 5}, strings.NewReader("hello"), "")
				if err == nil && i%2 == 0 {
					err = e.Delete(ctx, "alice", testKey(i)) // like a worker that finds that its claim is lost
				}
				if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("Add = %v", err)
				}
			})
			wg.Go(func() {
				if _, err := e.Tombstone(ctx, "alice", testKey(i)); err != nil {
					t.Errorf("Tombstone = %v", err)
				}
			})
			wg.Wait()
			if _, err := e.Ready(ctx, "alice", testKey(i)); err == nil {
				t.Error("there is a file")
			}
		}
		if n := e.objects(); n != 0 {
			t.Errorf("%d objects", n)
		}
	})
}

type failingStore struct{ upload.Store }

func (failingStore) Create(context.Context, *upload.File) (*upload.File, error) {
	return nil, errStore
}

func TestNoSpace(t *testing.T) {
	t.Parallel()
	e := newEnv(t, &memblob.Store{Limit: 10}, upload.Options{})
	_, urls := e.start(20, 2)
	e.put(urls[0], noise(10))
	_, err := e.PutPart(t.Context(), "PUT", urls[1], bytes.NewReader(noise(10)), upload.PutOptions{Size: 10})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("PutPart = %v", err)
	}
	if _, err := e.Add(t.Context(), upload.File{Size: 10}, bytes.NewReader(noise(10)), ""); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Add = %v", err)
	}

	dir := t.TempDir()
	s := newFS(t, dir)
	free, err := s.FreeSpace(t.Context())
	systest.NoError(t, err)
	e = newEnv(t, s, upload.Options{MaxSize: 1 << 60, MaxParts: 1 << 20})
	size := free + 1<<40
	_, _, err = e.Start(t.Context(), upload.Request{Size: size, Parts: int(size/upload.MaxPart) + 1})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Start = %v", err)
	}
	if n := len(expiredKeys(t, e)); n != 0 || e.objects() != 0 {
		t.Errorf("%d records and %d objects are left", n, e.objects())
	}
	if err != nil && strings.Contains(err.Error(), dir) {
		t.Errorf("the path is told: %v", err)
	}
}

func expiredKeys(t testing.TB, e *env) (keys []string) {
	t.Helper()
	for f, err := range e.store.ExpiredBefore(t.Context(), e.clock.now().Add(1e5*time.Hour)) {
		systest.NoError(t, err)
		keys = append(keys, f.Key)
	}
	return keys
}
