package fsblob

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// Callers that arrive while a directory is synced wait for a sync that starts later, and share it.
func TestSharedSyncs(t *testing.T) {
	t.Parallel()
	s, err := New(t.TempDir())
	systest.NoError(t, err)
	defer s.Close()
	for dir, want := range map[string]error{stageDir: nil, "missing": fs.ErrNotExist} {
		running := &dirSync{done: make(chan struct{})}
		s.syncing[dir] = running
		const callers = 10
		results := make(chan error, callers)
		for range callers {
			go func() { results <- s.syncDir(dir) }()
		}
		systest.Until(t, "a caller waits", func() bool {
			s.syncs.Lock()
			defer s.syncs.Unlock()
			return s.waiting[dir] != nil
		})
		if len(results) > 0 {
			t.Errorf("%s: a caller did not wait", dir)
		}
		close(running.done)
		for range callers {
			if err := <-results; !errors.Is(err, want) {
				t.Errorf("%s: %v", dir, err)
			}
		}
		systest.NoError(t, s.syncDirNow(stageDir))
		if len(s.waiting) > 0 || s.syncing[dir] != nil {
			t.Errorf("%s: syncs remain", dir)
		}
	}
}
