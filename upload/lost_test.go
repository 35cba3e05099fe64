package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A linkedStore has links and can be unavailable.
type linkedStore struct {
	blob.Store
	away bool
}

func (s *linkedStore) Open(ctx context.Context, key string) (blob.Object, error) {
	if s.away {
		return nil, fmt.Errorf("open: %w", blob.ErrUnavailable)
	}
	return s.Store.Open(ctx, key)
}

func (s *linkedStore) Link(context.Context, string, blob.LinkOptions) (*url.URL, error) {
	return url.Parse("https://bucket.example/object")
}

func (s *linkedStore) Origin(context.Context) (string, error) { return "https://bucket.example", nil }

// Missing or truncated content causes ErrContentLost in every call that needs it, and
// one log line. An unavailable store or a deleted file does not.
func TestContentLost(t *testing.T) {
	t.Parallel()
	var log logtest.Buffer
	store := &linkedStore{Store: memblob.New()}
	e := newEnv(t, store, upload.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	ctx := t.Context()
	add := func(task string) *upload.File {
		f, err := e.Add(ctx, upload.File{Owner: "a", Name: "x.txt", Size: 5, Task: task}, strings.NewReader("hello"), "")
		systest.NoError(t, err)
		return f
	}
	read := func(key string) (errs []error) {
		_, o, err := e.Open(ctx, "a", key)
		if err == nil {
			o.Close()
		}
		_, u, lerr := e.link(ctx, "a", key, blob.LinkOptions{})
		if lerr == nil && u == nil {
			t.Error("no link")
		}
		return []error{err, lerr}
	}
	gone, truncated, result, kept, deleted := add(""), add(""), add("task"), add(""), add("")
	for _, f := range []*upload.File{gone, result} {
		systest.NoError(t, store.Delete(ctx, f.Object))
	}
	systest.NoError(t, store.Put(ctx, truncated.Object, strings.NewReader("hell"), 4))
	systest.NoError(t, e.Delete(ctx, "a", deleted.Key))
	for _, tt := range []struct {
		f    *upload.File
		want error // nil: no error
		text string
	}{
		{gone, upload.ErrContentLost, "upload it again"},
		{truncated, upload.ErrContentLost, "upload it again"},
		{result, upload.ErrContentLost, "run the operation again"},
		{deleted, fs.ErrNotExist, "no such file"},
		{kept, nil, ""},
	} {
		for range 2 {
			for _, err := range read(tt.f.Key) {
				if tt.want == nil && err != nil || tt.want != nil && (!errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text)) {
					t.Errorf("error %v, want %v with %q", err, tt.want, tt.text)
				}
				if errors.Is(tt.want, upload.ErrContentLost) && errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%v is taken for a file that does not exist", err)
				}
			}
		}
	}
	store.away = true
	for _, err := range append(read(gone.Key), read(kept.Key)...) {
		if !errors.Is(err, blob.ErrUnavailable) || errors.Is(err, upload.ErrContentLost) {
			t.Errorf("with the store away: %v", err)
		}
	}
	if n := e.LostContents(); n != 3 {
		t.Errorf("%d contents lost, want 3", n)
	}
	for _, f := range []*upload.File{gone, truncated, result} {
		if n := strings.Count(log.String(), "file="+f.Key); n != 1 {
			t.Errorf("%d lines about a lost file:\n%s", n, log.String())
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 3 {
		t.Errorf("%d errors in the log:\n%s", n, log.String())
	}
}
