package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// Sweep removes the content of expired sessions and files, and their records after
// Options.KeepExpired. It returns the number of sessions and files that it expired.
//
// At most once in Options.Grace it also removes content without a record, which crashes
// leave behind; see also Options.Exclusive. It moves finished content to quarantine,
// restores it if its record exists again, and deletes it after Options.Quarantine. If
// too much content has no record, Sweep removes none of it, see Options.SweepShare and
// [Manager.SweepRefused].
//
// Sweep continues after errors and returns them all.
func (m *Manager) Sweep(ctx context.Context) (removed int, err error) {
	removed, err = m.sweepExpired(ctx)
	errs := []error{err}
	now := m.past()
	m.mu.Lock()
	due := !now.Before(m.orphansNext)
	young := now.Add(-m.opts.Grace)
	if due {
		m.orphansNext = now.Add(m.opts.Grace)
		if m.leftBehind.After(young) {
			young = m.leftBehind
		}
		m.leftBehind = time.Time{}
	}
	m.mu.Unlock()
	if due {
		errs = append(errs, m.sweepOrphans(ctx, young))
	}
	err = errors.Join(errs...)
	if removed > 0 || err != nil {
		m.log.Info("expired files removed", "count", removed, "err", err)
	}
	m.swept.Set(removed, err)
	return removed, err
}

// LastSweep returns when the last [Manager.Sweep] of this process ended, and its results. The time is
// zero if none has ended.
func (m *Manager) LastSweep() (at time.Time, removed int, err error) { return m.swept.Last() }

// SweepOverdue returns how long the file or session that expired first has waited for a
// sweep. It is 0 if none waits.
func (m *Manager) SweepOverdue(ctx context.Context) (time.Duration, error) {
	now := m.past()
	for f, err := range m.store.ExpiredBefore(ctx, now) {
		if err != nil {
			return 0, fmt.Errorf("expired records: %w", err)
		}
		return now.Sub(f.Expires), nil
	}
	return 0, nil
}

// sweepExpired expires sessions and files, in batches.
func (m *Manager) sweepExpired(ctx context.Context) (removed int, err error) {
	var errs []error
	var page []*File
	flush := func() {
		n, err := m.expireAll(ctx, page)
		removed += n
		errs = append(errs, err)
		page = page[:0]
	}
	// Include files that expire in this very millisecond.
	for f, err := range m.store.ExpiredBefore(ctx, m.past().Add(time.Millisecond)) {
		if err != nil {
			errs = append(errs, fmt.Errorf("expired records: %w", err))
			break
		}
		if page = append(page, f); len(page) == batchSize {
			flush()
		}
	}
	flush()
	return removed, errors.Join(errs...)
}

// expireAll expires a batch of sessions and files.
func (m *Manager) expireAll(ctx context.Context, page []*File) (removed int, err error) {
	var sessions, files []string
	for _, f := range page {
		if f.State == Open {
			sessions = append(sessions, f.Key)
		} else {
			files = append(files, f.Key)
		}
	}
	removed, err = m.expireFiles(ctx, files)
	n, err2 := m.expireEach(ctx, sessions)
	return removed + n, errors.Join(err, err2)
}

// expireFiles expires files and removes the records of those that expired long ago. It
// needs no lock: an expired file cannot change to another state.
func (m *Manager) expireFiles(ctx context.Context, keys []string) (removed int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	records, err := m.store.GetAll(ctx, keys)
	if err != nil {
		return 0, fmt.Errorf("expired records: %w", err)
	}
	now := m.past()
	var objects []string
	for key, f := range records {
		switch {
		case f.Expires.IsZero() || now.Before(f.Expires) || f.State == Open:
			delete(records, key) // changed in the meantime
		case f.State == Ready:
			objects = append(objects, f.Object)
		}
	}
	// The content goes first: until the record changes, later sweeps repeat this.
	var errs []error
	failed := blob.DeleteAll(ctx, m.blobs, objects)
	for key, f := range records {
		if err := failed[f.Object]; err != nil && f.State == Ready {
			errs = append(errs, fmt.Errorf("delete content: %w", err))
			delete(records, key)
		}
	}
	var until time.Time
	if m.opts.KeepExpired >= 0 {
		until = now.Add(m.opts.KeepExpired)
	}
	ended, err := m.store.Expire(ctx, slices.Collect(maps.Keys(records)), now, until)
	removed = len(ended)
	if err != nil {
		// A single record may be the cause.
		n, err := m.expireEach(ctx, slices.Collect(maps.Keys(records)))
		removed += n
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// Limits of expiring files one by one.
const (
	expireParallel = 16
	expireFailures = 100 // after so many errors it stops until the next sweep
)

// expireEach expires files one by one, a few concurrently.
func (m *Manager) expireEach(ctx context.Context, keys []string) (removed int, err error) {
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	slots := make(chan struct{}, expireParallel)
	for _, key := range keys {
		slots <- struct{}{}
		mu.Lock()
		enough := len(errs) >= expireFailures
		mu.Unlock()
		if enough || ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			ended, err := m.expire(ctx, key)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else if ended {
				removed++
			}
		})
	}
	wg.Wait()
	return removed, errors.Join(append(errs, ctx.Err())...)
}

// expire expires a file, or removes the record of one that expired long ago.
func (m *Manager) expire(ctx context.Context, key string) (ended bool, err error) {
	unlock, err := m.lock(ctx, key)
	if err != nil {
		return false, err
	}
	defer unlock()
	f, err := m.store.Get(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now := m.past()
	if f.Expires.IsZero() || now.Before(f.Expires) { // completed in the meantime
		return false, nil
	}
	if f.State == Expired {
		return false, m.store.Delete(ctx, key)
	}
	// The content goes first: until the record changes, later sweeps repeat this.
	if err := m.deleteContent(ctx, f); err != nil {
		return false, err
	}
	if m.opts.KeepExpired < 0 {
		return true, m.store.Delete(ctx, key)
	}
	_, err = m.store.Update(ctx, key, func(f *File) error {
		f.State, f.Expires = Expired, now.Add(m.opts.KeepExpired)
		return nil
	})
	return true, err
}

// Recover finishes the completions that a crash has interrupted, and returns their
// number. It reads only open sessions, not files, and may run concurrently with
// everything else, even in several processes. It is optional: any later call for such a
// session also finishes it. With Recover the file becomes ready even if the client does
// not call again.
//
// Recover continues after errors and returns them all.
func (m *Manager) Recover(ctx context.Context) (recovered int, err error) {
	var errs []error
	for f, err := range m.store.OpenSessions(ctx) {
		if err != nil {
			errs = append(errs, fmt.Errorf("open sessions: %w", err))
			break
		}
		if m.expired(f) {
			continue
		}
		ready, err := m.finishInterrupted(ctx, f)
		if ctx.Err() != nil {
			return recovered, ctx.Err()
		}
		if err != nil {
			errs = append(errs, err)
		} else if ready {
			recovered++
		}
	}
	return recovered, errors.Join(errs...)
}

// finishInterrupted finishes the completion of a session if a crash interrupted it. It
// reports whether the file is ready.
func (m *Manager) finishInterrupted(ctx context.Context, f *File) (bool, error) {
	// Most sessions are simply not completed yet. Check that without a lock, which in a
	// cluster takes longer than the check.
	if yes, err := m.interrupted(ctx, f); !yes {
		return false, err
	}
	unlock, err := m.lock(ctx, f.Key)
	if err != nil {
		return false, err
	}
	defer unlock()
	f, err = m.store.Get(ctx, f.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || f.State != Open {
		return false, err
	}
	f, err = m.settle(ctx, f)
	return err == nil && f.State == Ready, err
}
