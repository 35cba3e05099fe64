package upload

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

// A MemStore is a [Store] in memory. Its zero value is empty and ready to use.
type MemStore struct {
	mu       sync.Mutex
	files    map[string]*memFile
	idem     map[idemKey]string // → file key
	identity string
}

type memFile struct {
	File
	parts map[int]Part
}

type idemKey struct{ owner, key string }

// idemWindow is how long an idempotency key is valid.
const idemWindow = 24 * time.Hour

func (s *MemStore) get(key string) (*memFile, error) {
	if f := s.files[key]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("file record: %w", fs.ErrNotExist)
}

// set changes a record and updates the index of idempotency keys.
func (s *MemStore) set(f *memFile, change func(*File)) {
	if f.IdempotencyKey != "" {
		delete(s.idem, idemKey{f.Owner, f.IdempotencyKey})
	}
	change(&f.File)
	if f.IdempotencyKey != "" {
		s.idem[idemKey{f.Owner, f.IdempotencyKey}] = f.Key
	}
}

// Create implements [Store].
func (s *MemStore) Create(ctx context.Context, f *File) (*File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files, s.idem = make(map[string]*memFile), make(map[idemKey]string)
	}
	id := idemKey{f.Owner, f.IdempotencyKey}
	if old := s.files[s.idem[id]]; f.IdempotencyKey != "" && old != nil {
		if old.Created.After(f.Created.Add(-idemWindow)) {
			c := old.File
			return &c, nil
		}
		s.set(old, func(f *File) { f.IdempotencyKey = "" })
	}
	if s.files[f.Key] != nil {
		return nil, fmt.Errorf("file record: %w", fs.ErrExist)
	}
	m := new(memFile)
	s.files[f.Key] = m
	s.set(m, func(m *File) { *m = *f })
	c := *f
	return &c, nil
}

// Get implements [Store].
func (s *MemStore) Get(ctx context.Context, key string) (*File, error) {
	return s.Update(ctx, key, func(*File) error { return nil })
}

// GetAll implements [Store].
func (s *MemStore) GetAll(ctx context.Context, keys []string) (map[string]*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := make(map[string]*File)
	for _, key := range keys {
		if f := s.files[key]; f != nil {
			c := f.File
			files[key] = &c
		}
	}
	return files, ctx.Err()
}

// Update implements [Store].
func (s *MemStore) Update(ctx context.Context, key string, fn func(*File) error) (*File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.get(key)
	if err != nil {
		return nil, err
	}
	c := f.File
	if err := fn(&c); err != nil {
		return nil, err
	}
	c.Key = key
	s.set(f, func(f *File) { *f = c })
	return &c, nil
}

// Expire implements [Store].
func (s *MemStore) Expire(ctx context.Context, keys []string, at, until time.Time) (ended []*File, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		f := s.files[key]
		if f == nil || f.State == Open || f.Expires.IsZero() || f.Expires.After(at) {
			continue
		}
		if f.State == Ready {
			c := f.File
			ended = append(ended, &c)
			if !until.IsZero() {
				s.set(f, func(f *File) { f.State, f.Expires = Expired, until })
				continue
			}
		}
		s.remove(key)
	}
	return ended, nil
}

// Delete implements [Store].
func (s *MemStore) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
	return nil
}

// remove removes a record, if it exists. s.mu must be held.
func (s *MemStore) remove(key string) {
	if f := s.files[key]; f != nil {
		s.set(f, func(f *File) { f.IdempotencyKey = "" })
		delete(s.files, key)
	}
}

// AddPart implements [Store].
func (s *MemStore) AddPart(ctx context.Context, key string, p Part) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.get(key)
	if err != nil {
		return err
	}
	if f.State != Open {
		return fmt.Errorf("open file record: %w", fs.ErrNotExist)
	}
	if f.parts == nil {
		f.parts = make(map[int]Part)
	}
	f.parts[p.Number] = p
	return nil
}

// Parts implements [Store].
func (s *MemStore) Parts(ctx context.Context, key string) (*File, []Part, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.get(key)
	if err != nil {
		return nil, nil, err
	}
	c := f.File
	return &c, slices.SortedFunc(maps.Values(f.parts), func(a, b Part) int { return cmp.Compare(a.Number, b.Number) }), nil
}

// ExpiredBefore implements [Store].
func (s *MemStore) ExpiredBefore(ctx context.Context, t time.Time) iter.Seq2[*File, error] {
	return s.matching(ctx, func(f *File) bool { return !f.Expires.IsZero() && f.Expires.Before(t) })
}

// OpenSessions implements [Store].
func (s *MemStore) OpenSessions(ctx context.Context) iter.Seq2[*File, error] {
	return s.matching(ctx, func(f *File) bool { return f.State == Open })
}

// NewestReady implements [Store].
func (s *MemStore) NewestReady(ctx context.Context, n int) ([]*File, error) {
	var ready []*File
	for f, err := range s.matching(ctx, func(f *File) bool { return f.State == Ready }) {
		if err != nil {
			return nil, err
		}
		ready = append(ready, f)
	}
	slices.SortFunc(ready, func(a, b *File) int { return b.Created.Compare(a.Created) })
	return ready[:min(n, len(ready))], ctx.Err()
}

// Identity implements [Store].
func (s *MemStore) Identity(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identity, ctx.Err()
}

// ReplaceIdentity implements [Store].
func (s *MemStore) ReplaceIdentity(ctx context.Context, old, by string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.identity == old {
		s.identity = by
	}
	return s.identity, nil
}

// All implements [Store].
func (s *MemStore) All(ctx context.Context) iter.Seq2[*File, error] {
	return s.sorted(ctx, func(*File) bool { return true }, func(a, b *File) int { return cmp.Compare(a.Key, b.Key) })
}

// matching yields the records for which which is true, ordered by expiry.
func (s *MemStore) matching(ctx context.Context, which func(*File) bool) iter.Seq2[*File, error] {
	return s.sorted(ctx, which, func(a, b *File) int {
		return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.Key, b.Key))
	})
}

// sorted yields the records for which which is true, in the given order.
func (s *MemStore) sorted(ctx context.Context, which func(*File) bool, order func(a, b *File) int) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		s.mu.Lock()
		var some []*File
		for _, f := range s.files {
			if which(&f.File) {
				c := f.File
				some = append(some, &c)
			}
		}
		s.mu.Unlock()
		slices.SortFunc(some, order)
		for _, f := range some {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

var _ Store = (*MemStore)(nil)
