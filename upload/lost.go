package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/filewright/filewright/upload/blob"
)

// A sizeError reports that the content of a file has another size than its record.
type sizeError struct{ got, want int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("the content has %d bytes, its record says %d", e.got, e.want)
}

// checkSize returns a *sizeError unless i has the size in f.
func checkSize(f *File, i blob.Info) error {
	if i.Size != f.Size {
		return &sizeError{i.Size, f.Size}
	}
	return nil
}

// isLost reports whether the error means that content is gone or has the wrong size.
func isLost(err error) bool {
	var size *sizeError
	return errors.Is(err, fs.ErrNotExist) || errors.As(err, &size)
}

// contentError returns the error for content of a Ready file that cannot be read.
func (m *Manager) contentError(ctx context.Context, owner string, f *File, err error) error {
	if !isLost(err) {
		return fmt.Errorf("open content: %w", err)
	}
	// Deleted or expired a moment ago?
	if _, err := m.Ready(ctx, owner, f.Key); err != nil {
		return err
	}
	if m.lost.add(f.Key) {
		m.log.Error("content lost", "file", f.Key, "object", f.Object, "size", f.Size, "created", f.Created, "err", err)
	}
	lost := &Error{Kind: ErrContentLost, Message: "the service has lost the content of this file; upload it again, or ask the operator to restore it"}
	if f.Task != "" {
		lost.Message = "the service has lost the content of this result; run the operation again, or ask the operator of the service to restore it"
	}
	return lost
}

// LostContents returns the number of files found without their content since
// NewManager. Each file counts once.
func (m *Manager) LostContents() int64 {
	m.lost.mu.Lock()
	defer m.lost.mu.Unlock()
	return m.lost.n
}

// maxLost is how many keys lostContents keeps. Then it starts anew, and a file may be
// reported again.
const maxLost = 10_000

// lostContents are the files that were found without their content.
type lostContents struct {
	mu   sync.Mutex
	n    int64
	keys map[string]struct{}
}

// add reports whether the key is new.
func (l *lostContents) add(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.keys[key]; known {
		return false
	}
	if l.keys == nil || len(l.keys) >= maxLost {
		l.keys = make(map[string]struct{})
	}
	l.keys[key] = struct{}{}
	l.n++
	return true
}
