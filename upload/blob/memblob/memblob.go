// Package memblob keeps blobs in memory, for tests and for programs that need no
// persistence.
//
// It has only the four methods of blob.Store and none of the optional roles, so it also
// shows that everything works without them.
package memblob

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// A Store keeps blobs in memory. Its zero value is an empty store.
type Store struct {
	// Limit is the maximum number of bytes that the store holds. A Put that exceeds it
	// fails with an error that matches syscall.ENOSPC, like a full disk. 0 means no
	// limit. It must not be changed while the store is in use.
	Limit int64

	mu      sync.RWMutex
	objects map[string]*entry
	used    int64
}

// An entry never changes, so that readers need no lock.
type entry struct {
	info blob.Info
	data []byte
}

// New returns an empty store without a limit.
func New() *Store { return new(Store) }

func check(ctx context.Context, op, key string) error {
	if !blob.ValidKey(key) {
		return fmt.Errorf("%s %q: %w", op, key, fs.ErrInvalid)
	}
	return ctx.Err()
}

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := check(ctx, "put", key); err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("put %s: size %d: %w", key, size, fs.ErrInvalid)
	}
	if s.Limit > 0 && size > s.Limit {
		return fmt.Errorf("put %s: %w", key, syscall.ENOSPC)
	}
	// The size is only declared: memory is allocated as bytes arrive.
	var data bytes.Buffer
	data.Grow(int(min(size, 1<<20)))
	n, err := blob.Copy(ctx, &data, r, size, make([]byte, min(max(size, 1), 64<<10)))
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	if n < size {
		return fmt.Errorf("put %s: %d of %d bytes: %w", key, n, size, io.ErrUnexpectedEOF)
	}
	e := &entry{blob.Info{Key: key, Size: size, ModTime: time.Now()}, data.Bytes()}

	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used + size
	if old := s.objects[key]; old != nil {
		used -= old.info.Size
	}
	if s.Limit > 0 && used > s.Limit {
		return fmt.Errorf("put %s: %w", key, syscall.ENOSPC)
	}
	if s.objects == nil {
		s.objects = make(map[string]*entry)
	}
	s.objects[key], s.used = e, used
	return nil
}

// Open implements blob.Store. The object also has the method Bytes.
func (s *Store) Open(ctx context.Context, key string) (blob.Object, error) {
	if err := check(ctx, "open", key); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.objects[key]
	if e == nil {
		return nil, fmt.Errorf("open %s: %w", key, fs.ErrNotExist)
	}
	return &object{ctx, e, bytes.NewReader(e.data)}, nil
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.objects[key]; e != nil {
		s.used -= e.info.Size
		delete(s.objects, key)
	}
	return nil
}

// List implements blob.Store. It yields the objects that existed when the iteration
// started.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		s.mu.RLock()
		var infos []blob.Info
		for _, key := range slices.Sorted(maps.Keys(s.objects)) {
			if strings.HasPrefix(key, prefix) {
				infos = append(infos, s.objects[key].info)
			}
		}
		s.mu.RUnlock()
		for _, i := range infos {
			if err := ctx.Err(); err != nil {
				yield(blob.Info{}, err)
				return
			}
			if !yield(i, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(blob.Info{}, err)
		}
	}
}

type object struct {
	ctx context.Context // of Open, as blob.Object requires
	*entry
	r *bytes.Reader
}

func (o *object) Info() blob.Info { return o.info }

// Bytes returns the content, which must not be changed.
func (o *object) Bytes() []byte { return o.data }

func (o *object) ReadAt(b []byte, off int64) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	return o.r.ReadAt(b, off)
}

func (o *object) Close() error { return nil }

var (
	_ blob.Store        = (*Store)(nil)
	_ blob.MemoryObject = (*object)(nil)
)
