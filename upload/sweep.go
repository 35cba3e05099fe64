package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// Sweep ends sessions and files that have expired: their content is removed, and
// their records when they have been kept for long enough. It returns how many
// it has ended.
//
// Not more often than once in Options.Grace it also removes what no record knows,
// which crashes leave behind; see also Options.Exclusive. Finished content is moved to
// quarantine, from which it returns if its record does, and is deleted after
// Options.Quarantine. If too much content has no record nothing of it is removed, see
// Options.SweepShare and [Manager.SweepRefused].
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
