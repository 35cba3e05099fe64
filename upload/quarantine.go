package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// The key of an object in quarantine is quarantinePrefix, the time in quarantineTime, a
// slash and the object's original key.
const (
	quarantinePrefix = "quarantine/"
	quarantineTime   = "20060102T150405Z"
)

// A Quarantined is finished content that was put into quarantine because it had no
// record.
type Quarantined struct {
	Key    string    // in the blob store
	Object string    // original key: File.Object of its record
	File   string    // key of the record
	Size   int64     // bytes
	Since  time.Time // when it was put into quarantine, in seconds
}

func parseQuarantined(i blob.Info) (q Quarantined, ok bool) {
	at, object, ok := strings.Cut(strings.TrimPrefix(i.Key, quarantinePrefix), "/")
	since, err := time.Parse(quarantineTime, at)
	file, isFile := strings.CutPrefix(object, objectPrefix)
	return Quarantined{i.Key, object, file, i.Size, since}, ok && isFile && err == nil
}

// Quarantined yields the content in quarantine, oldest first.
func (m *Manager) Quarantined(ctx context.Context) iter.Seq2[Quarantined, error] {
	return func(yield func(Quarantined, error) bool) {
		for i, err := range m.blobs.List(ctx, quarantinePrefix) {
			if err != nil {
				yield(Quarantined{}, fmt.Errorf("list quarantine: %w", err))
				return
			}
			if q, ok := parseQuarantined(i); ok && !yield(q, nil) {
				return
			}
		}
	}
}

// Quarantine moves an object to quarantine, unless a record needs it; moved reports
// whether it did. If Options.Quarantine is negative, it deletes the object instead. It
// is not an error if the object does not exist. The caller must ensure that no process
// is about to create the record.
func (m *Manager) Quarantine(ctx context.Context, object string) (moved bool, err error) {
	file, ok := strings.CutPrefix(object, objectPrefix)
	if !ok {
		return false, fmt.Errorf("quarantine %s: not the content of a file: %w", object, fs.ErrInvalid)
	}
	unlock, err := m.lock(ctx, file)
	if err != nil {
		return false, err
	}
	defer unlock()
	f, err := m.store.Get(ctx, file)
	if err == nil && needs(f, object) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("file record: %w", err)
	}
	if m.opts.Quarantine < 0 {
		err = m.blobs.Delete(ctx, object)
	} else {
		err = blob.Move(ctx, m.blobs, object, quarantinePrefix+m.now().Format(quarantineTime)+"/"+object)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("quarantine: %w", err)
	}
	return true, nil
}

// Restore moves content, named by its Key in quarantine, back to its original key.
// restored is false if no record needs it, or if the file has content already.
func (m *Manager) Restore(ctx context.Context, key string) (restored bool, err error) {
	i, err := blob.Stat(ctx, m.blobs, key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("restore content: %w", err)
	}
	q, ok := parseQuarantined(i)
	if !ok {
		return false, fmt.Errorf("restore %s: not in quarantine: %w", key, fs.ErrInvalid)
	}
	unlock, err := m.lock(ctx, q.File)
	if err != nil {
		return false, err
	}
	defer unlock()
	f, err := m.store.Get(ctx, q.File)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!needs(f, q.Object) || f.Size != q.Size) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("file record: %w", err)
	}
	if _, err = blob.Stat(ctx, m.blobs, q.Object); err == nil {
		return false, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = blob.Move(ctx, m.blobs, key, q.Object)
	}
	if err != nil {
		return false, fmt.Errorf("restore content: %w", err)
	}
	m.log.Warn("content restored from quarantine; its record exists again", "key", q.File)
	return true, nil
}

// sweepQuarantine restores content whose record exists again. It deletes content that
// has been in quarantine for Options.Quarantine, counted at the earliest from an
// adoption.
func (m *Manager) sweepQuarantine(ctx context.Context, adopted time.Time) error {
	keep := max(m.opts.Quarantine, 0)
	now := m.past()
	deleted := 0
	var errs []error
	for q, err := range m.Quarantined(ctx) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		f, err := m.store.Get(ctx, q.File)
		switch {
		case err == nil && needs(f, q.Object):
			var restored bool
			if restored, err = m.Restore(ctx, q.Key); restored {
				continue
			}
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		}
		if err == nil && !now.Before(q.Since.Add(keep)) && !now.Before(adopted.Add(keep)) {
			if err = m.blobs.Delete(ctx, q.Key); err == nil {
				deleted++
			}
		}
		errs = append(errs, err)
	}
	if deleted > 0 {
		m.log.Info("expired content in quarantine deleted", "count", deleted)
	}
	return errors.Join(errs...)
}
