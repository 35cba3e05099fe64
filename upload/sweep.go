package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// Sweep ends sessions and files that have expired: their content is removed, and
// their records when they have been kept for long enough. It returns how many
// it has ended.
//
// Not more often than once in Options.Grace it also removes what no record knows,
// which crashes leave behind; see also Options.Exclusive.
//
// It goes on after errors and returns them all.
func (m *Manager) Sweep(ctx context.Context) (removed int, err error) {
	var errs []error
	// What expires in this very millisecond has expired.
	for f, err := range m.store.ExpiredBefore(ctx, m.now().Add(time.Millisecond)) {
		if err != nil {
			errs = append(errs, fmt.Errorf("expired records: %w", err))
			break
		}
		ended, err := m.expire(ctx, f.Key)
		if err != nil {
			errs = append(errs, err)
		} else if ended {
			removed++
		}
	}
	now := m.now()
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
		m.log.Info("expired files removed", "count", removed, "error", err)
	}
	return removed, err
}

// expire ends a file, or the record of one that ended long ago.
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
	now := m.now()
	if f.Expires.IsZero() || now.Before(f.Expires) { // completed meanwhile
		return false, nil
	}
	if f.State == Expired {
		return false, m.store.Delete(ctx, key)
	}
	// The content goes first: until the record says so, this is repeated.
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

// sweepOrphans removes content made before t that no record knows.
func (m *Manager) sweepOrphans(ctx context.Context, t time.Time) error {
	var errs []error
	removed := 0
	sweep := func(i blob.Info, key string, needed func(*File) bool, remove func() error) {
		if !i.ModTime.Before(t) {
			return
		}
		f, err := m.store.Get(ctx, key)
		if err == nil && needed(f) {
			return
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = remove()
			removed++
		}
		errs = append(errs, err)
	}
	isOpen := func(f *File) bool { return f.State == Open }

	for i, err := range m.blobs.List(ctx, objectPrefix) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		hasContent := func(f *File) bool { return f.State != Expired && f.Object == i.Key }
		sweep(i, strings.TrimPrefix(i.Key, objectPrefix), hasContent, func() error { return m.blobs.Delete(ctx, i.Key) })
	}
	for i, err := range m.blobs.List(ctx, blob.PartsPrefix) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		key, _, _ := strings.Cut(strings.TrimPrefix(i.Key, blob.PartsPrefix), "/")
		sweep(i, key, isOpen, func() error { return m.blobs.Delete(ctx, i.Key) })
	}
	if s, ok := m.blobs.(blob.Stager); ok {
		for i, err := range s.ListStaged(ctx) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			sweep(i, i.Key, isOpen, func() error { return s.AbortStaged(ctx, i.Key) })
		}
	}
	direct, err := m.sweepDirect(ctx, t)
	errs = append(errs, err)
	n, err := blob.Sweep(ctx, m.blobs, t)
	errs = append(errs, err)
	if removed += direct + n; removed > 0 {
		m.log.Info("content without record removed", "count", removed)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep content: %w", err)
	}
	return nil
}

// Recover finishes the completions that a crash has interrupted, and returns how
// many. It reads the sessions that are open, not the files, and may run beside
// everything else, also in several processes. Nothing depends on it, because every
// such session is also finished when its owner comes back, but an owner who does not
// come back may find the file ready.
//
// It goes on after errors and returns them all.
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
		ready, err := m.recover(ctx, f)
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

// recover finishes the completion of a session, if one was interrupted.
func (m *Manager) recover(ctx context.Context, f *File) (bool, error) {
	// Most sessions are just not completed yet. That is found out without locking
	// them, which in a cluster takes longer than the look.
	if !f.interruptible() {
		return false, nil
	}
	_, err := blob.Stat(ctx, m.blobs, f.Object)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for content: %w", err)
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
