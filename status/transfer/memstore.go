package transfer

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/filewright/filewright/status"
)

// A MemStore is a [Store] in memory. Its zero value is empty and ready to use.
type MemStore struct {
	mu  sync.Mutex
	all map[name]*entry
}

type name struct{ kind, id string }

type entry struct {
	Transfer
	claimed bool
}

var _ Store = (*MemStore)(nil)

// Now implements [Store].
func (s *MemStore) Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Add implements [Store].
func (s *MemStore) Add(_ context.Context, t *Transfer, limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := name{t.Kind, t.ID}
	if s.all[key] != nil {
		return fmt.Errorf("transfer %s: %w", t.ID, fs.ErrExist)
	}
	n := 0
	for _, e := range s.all {
		if e.Kind == t.Kind && e.Owner == t.Owner && e.Finished.IsZero() {
			n++
		}
	}
	if n >= limit {
		return ErrLimit
	}
	if s.all == nil {
		s.all = make(map[name]*entry)
	}
	e := &entry{Transfer: clone(t)}
	e.Created, e.Finished, e.Claims = s.Now(), time.Time{}, 0
	s.all[key] = e
	return nil
}

// Get implements [Store].
func (s *MemStore) Get(_ context.Context, kind string, ids ...string) (map[string]*Transfer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]*Transfer)
	for _, id := range ids {
		if e := s.all[name{kind, id}]; e != nil {
			t := clone(&e.Transfer)
			t.Request = nil
			out[id] = &t
		}
	}
	return out, nil
}

// Hasten implements [Store].
func (s *MemStore) Hasten(_ context.Context, kind, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[name{kind, id}]; e != nil && !e.claimed && e.Finished.IsZero() {
		e.Due = s.Now()
	}
	return nil
}

// Delete implements [Store].
func (s *MemStore) Delete(_ context.Context, kind, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name{kind, id})
	return nil
}

// Claim implements [Store].
func (s *MemStore) Claim(_ context.Context, kind string, lease time.Duration, except []string) (*Transfer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	var first *entry
	for _, e := range s.all {
		if e.Kind == kind && e.Finished.IsZero() && !e.Due.After(now) && !slices.Contains(except, e.Owner) && (first == nil || e.Due.Before(first.Due)) {
			first = e
		}
	}
	if first == nil {
		return nil, nil
	}
	first.Claims++
	first.claimed, first.Due = true, now.Add(lease)
	t := clone(&first.Transfer)
	return &t, nil
}

// Abandoned implements [Store]. A MemStore knows no accounts, so it returns nil.
func (s *MemStore) Abandoned(context.Context, string, time.Duration, time.Time) (*Transfer, error) {
	return nil, nil
}

// held returns the entry of a claimed transfer.
func (s *MemStore) held(t *Transfer) (*entry, error) {
	e := s.all[name{t.Kind, t.ID}]
	if e == nil || !e.claimed || e.Claims != t.Claims || !e.Finished.IsZero() {
		return nil, status.ErrLost
	}
	return e, nil
}

// Renew implements [Store].
func (s *MemStore) Renew(_ context.Context, t *Transfer, lease time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.held(t)
	if err != nil {
		return err
	}
	e.State, e.Due = slices.Clone(t.State), s.Now().Add(lease)
	return nil
}

// Record implements [Store].
func (s *MemStore) Record(_ context.Context, t *Transfer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.held(t)
	if err != nil {
		return err
	}
	e.State, e.Due, e.Finished, e.claimed = slices.Clone(t.State), t.Due, t.Finished, false
	if !e.Finished.IsZero() {
		e.Request = nil
	}
	return nil
}

// Recover implements [Store].
func (s *MemStore) Recover(_ context.Context, kind string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		if e.Kind == kind && e.claimed {
			e.claimed, e.Due = false, s.Now()
		}
	}
	return nil
}

// Sweep implements [Store].
func (s *MemStore) Sweep(_ context.Context, kind string, finished time.Time) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.all {
		if e.Kind == kind && !e.Finished.IsZero() && e.Finished.Before(finished) {
			delete(s.all, key)
			n++
		}
	}
	return n, nil
}

// Pending implements [Store].
func (s *MemStore) Pending(_ context.Context, kind string) (n int, since time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	for _, e := range s.all {
		if e.Kind != kind || !e.Finished.IsZero() {
			continue
		}
		n++
		if !e.Due.After(now) && (since.IsZero() || e.Due.Before(since)) {
			since = e.Due
		}
	}
	return n, since, nil
}

func clone(t *Transfer) Transfer {
	c := *t
	c.Request, c.State = slices.Clone(t.Request), slices.Clone(t.State)
	return c
}
