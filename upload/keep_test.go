package upload_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
)

// The expiry of a file is only postponed, never brought forward.
func TestKeep(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		f, err := e.Add(t.Context(), upload.File{Owner: "alice", Name: "a.txt", Size: 1}, strings.NewReader("x"), "")
		systest.NoError(t, err)
		expires := func(until time.Time) time.Time {
			t.Helper()
			systest.NoError(t, e.Keep(t.Context(), "alice", f.Key, until))
			f, err := e.Get(t.Context(), "alice", f.Key)
			systest.NoError(t, err)
			return f.Expires
		}
		if got := expires(f.Expires.Add(-time.Hour)); !got.Equal(f.Expires) {
			t.Errorf("earlier time: expires at %v, want %v", got, f.Expires)
		}
		if got, want := expires(f.Expires.Add(time.Hour)), f.Expires.Add(time.Hour); !got.Equal(want) {
			t.Errorf("later time: expires at %v, want %v", got, want)
		}
		for owner, key := range map[string]string{"bob": f.Key, "alice": upload.KeyOf([16]byte{})} {
			if err := e.Keep(t.Context(), owner, key, time.Now()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: error is %v", owner, err)
			}
		}
	})
}
