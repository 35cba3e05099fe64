package upload_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A received file is a completed upload: its content, its ETag, and what Check verifies.
func TestReceive(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		content := strings.Repeat("hello ", 50_000)
		for _, size := range []int64{int64(len(content)), -1} {
			f, err := e.Receive(t.Context(), upload.Request{Owner: "alice", Name: "../a.txt", ContentType: "text/plain", Size: size}, iotest.HalfReader(strings.NewReader(content)))
			systest.NoError(t, err)
			if f.State != upload.Ready || f.Owner != "alice" || f.Name != "a.txt" || f.Size != int64(len(content)) || f.UploadID == "" || f.Parts != 1 || f.Task != "" || f.Expires.IsZero() ||
				f.ETag != fmt.Sprintf("%x", md5.Sum([]byte(content))) {
				t.Errorf("%+v", f)
			}
			got, obj, err := e.Open(t.Context(), "alice", f.Key)
			systest.NoError(t, err)
			b, err := io.ReadAll(blob.NewReader(obj))
			systest.NoError(t, errors.Join(err, obj.Close()))
			if got.Key != f.Key || string(b) != content {
				t.Errorf("%d bytes", len(b))
			}
		}
		counts, err := e.Check(t.Context(), upload.CheckOptions{Deep: true}, func(d upload.Difference) error { return fmt.Errorf("%+v", d) })
		if err != nil || counts.Verified != 2 {
			t.Errorf("%+v, %v", counts, err)
		}
		if _, again, err := e.Complete(t.Context(), "alice", "", "", "", nil); again || err == nil {
			t.Errorf("%v", err)
		}
	})
}

// A body that ends early, or is too large, leaves nothing: no record, no content, no scratch file.
func TestReceiveFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	for _, tt := range []struct {
		name string
		size int64
		body io.Reader
		want error
	}{
		{"shorter", 6, strings.NewReader("hello"), io.ErrUnexpectedEOF},
		{"longer", 4, strings.NewReader("hello"), upload.ErrInvalid},
		{"cut", -1, io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(io.ErrUnexpectedEOF)), upload.ErrInvalid},
		{"broken", 10, io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(broken)), broken},
		{"timeout", -1, iotest.ErrReader(os.ErrDeadlineExceeded), os.ErrDeadlineExceeded},
		{"declared too large", 1001, strings.NewReader("hello"), upload.ErrTooLarge},
		{"too large", -1, bytes.NewReader(make([]byte, 1001)), upload.ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store, dir := new(upload.MemStore), t.TempDir()
			m, err := upload.NewManager(memblob.New(), &upload.Options{Store: store, TempDir: dir, MaxSize: 1000})
			systest.NoError(t, err)
			if _, err := m.Receive(t.Context(), upload.Request{Owner: "alice", Name: "a", Size: tt.size}, tt.body); !errors.Is(err, tt.want) {
				t.Errorf("%v", err)
			}
			nothing(t, store, dir)
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		store, dir := new(upload.MemStore), t.TempDir()
		m, err := upload.NewManager(memblob.New(), &upload.Options{Store: store, TempDir: dir})
		systest.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Receive(ctx, upload.Request{Owner: "alice", Name: "a", Size: -1}, strings.NewReader("hello")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		nothing(t, store, dir)
	})
	t.Run("no scratch directory", func(t *testing.T) {
		m, err := upload.NewManager(memblob.New(), &upload.Options{TempDir: t.TempDir() + "/missing"})
		systest.NoError(t, err)
		if _, err := m.Receive(t.Context(), upload.Request{Name: "a", Size: 1}, strings.NewReader("a")); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%v", err)
		}
	})
}

func nothing(t *testing.T, store *upload.MemStore, dir string) {
	t.Helper()
	for f, err := range store.All(t.Context()) {
		t.Errorf("record %+v, %v", f, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("scratch files %v, %v", left, err)
	}
}

// A file that is received under a chosen key is never replaced by another one.
func TestReceiveKey(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		key := upload.KeyOf([16]byte{1, 2, 3})
		r := upload.Request{Owner: "alice", Name: "a.txt", Size: -1, Key: key}
		f, err := e.Receive(t.Context(), r, strings.NewReader("first"))
		systest.NoError(t, err)
		if f.Key != key {
			t.Errorf("key is %s, want %s", f.Key, key)
		}
		if _, err := e.Receive(t.Context(), r, strings.NewReader("second")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("second file: error is %v, want fs.ErrExist", err)
		}
		_, obj, err := e.Open(t.Context(), "alice", key)
		systest.NoError(t, err)
		b, err := io.ReadAll(blob.NewReader(obj))
		systest.NoError(t, errors.Join(err, obj.Close()))
		if string(b) != "first" {
			t.Errorf("content is %q", b)
		}
		r.Key = "../../etc/passwd"
		if _, err := e.Receive(t.Context(), r, strings.NewReader("third")); !errors.Is(err, upload.ErrInvalid) {
			t.Errorf("invalid key: error is %v", err)
		}
	})
}
