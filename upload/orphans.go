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

// An orphan is an object or staging area that no record needs.
type orphan struct {
	file   string // key of the file whose record would need it
	needed func(*File) bool
	remove func(context.Context) error
}

// orphans is the result of one search of the blob store.
type orphans struct {
	all   int // objects, needed or not; parts of one file count as one
	found int // orphans, except those older than an adoption
	list  []orphan
}

// maxOrphans limits the orphans that are held and removed at a time. The next sweep
// finds the others.
const maxOrphans = 100_000

// sweepOrphans removes content without a record that was created before t.
func (m *Manager) sweepOrphans(ctx context.Context, t time.Time) error {
	records, content, err := m.identities(ctx)
	if err != nil {
		return fmt.Errorf("sweep content: %w", err)
	}
	if e := compare(records, content); e != nil {
		e.Records, e.Content = "the record store", "the blob store"
		m.log.Error("sweep refused: cannot verify the identity of the files", "err", e)
		return nil
	}
	var errs []error
	removed, err := blob.Sweep(ctx, m.blobs, t)
	errs = append(errs, err, m.sweepQuarantine(ctx, records.Adopted))
	if !m.past().Before(records.Adopted.Add(m.opts.Grace)) { // in that time the operator may notice a mistake
		n, err := m.removeOrphans(ctx, t, records.Adopted)
		m.orphans.Add(int64(n))
		removed += n
		errs = append(errs, err)
	}
	if removed > 0 {
		m.log.Info("content without record removed", "count", removed)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep content: %w", err)
	}
	return nil
}

// SweepRefused returns the number of objects without a record that the last sweep kept
// because there were too many, see Options.SweepShare.
func (m *Manager) SweepRefused() int64 { return m.refused.Load() }

// OrphansRemoved returns the number of objects without a record that sweeps of m have
// removed or moved to quarantine.
func (m *Manager) OrphansRemoved() int64 { return m.orphans.Load() }

// removeOrphans removes orphans created before t, unless there are too many. Those
// created before an adoption do not count: the operator has decided about them.
func (m *Manager) removeOrphans(ctx context.Context, t, adopted time.Time) (removed int, err error) {
	// If a list fails, the share of the orphans looks larger, which is the safe side.
	o, err := m.findOrphans(ctx, t, adopted)
	if o.found > m.opts.SweepCount && float64(o.found) > m.opts.SweepShare*float64(o.all) {
		m.refused.Store(int64(o.found))
		m.log.Error("sweep refused: too many objects without a record", "without_record", o.found, "objects", o.all,
			"hint", "refserver check compares records and content; refserver serve --adopt removes content without a record nevertheless")
		return 0, err
	}
	m.refused.Store(0)
	errs := []error{err}
	for _, x := range o.list {
		// The search took time, so read the record again.
		f, err := m.store.Get(ctx, x.file)
		if err == nil && x.needed(f) {
			continue
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			if err = x.remove(ctx); err == nil {
				removed++
			}
		}
		if ctx.Err() != nil {
			return removed, ctx.Err()
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// findOrphans searches the blob store. It continues after errors: not every store
// supports all lists.
func (m *Manager) findOrphans(ctx context.Context, t, adopted time.Time) (*orphans, error) {
	o := new(orphans)
	var errs []error
	add := func(i blob.Info, f *File, counts bool, x orphan) {
		if counts {
			o.all++
		}
		if !i.ModTime.Before(t) || f != nil && x.needed(f) {
			return
		}
		if counts && !i.ModTime.Before(adopted) {
			o.found++
		}
		if len(o.list) < maxOrphans {
			o.list = append(o.list, x)
		}
	}
	isOpen := func(f *File) bool { return f.State == Open }

	objects := m.withRecords(ctx, m.blobs.List(ctx, objectPrefix), func(key string) string { return strings.TrimPrefix(key, objectPrefix) })
	for c, err := range objects {
		if err != nil {
			errs = append(errs, err)
			break
		}
		add(c.Info, c.record, true, orphan{c.file, func(f *File) bool { return needs(f, c.Key) },
			func(ctx context.Context) error { _, err := m.Quarantine(ctx, c.Key); return err }})
	}
	last := ""
	s, staging := blob.As[blob.Stager](m.blobs) // a Stager has an area for each upload, which counts
	parts := m.withRecords(ctx, m.blobs.List(ctx, blob.PartsPrefix), func(key string) string {
		id, _, _ := strings.Cut(strings.TrimPrefix(key, blob.PartsPrefix), "/")
		return id
	})
	for c, err := range parts {
		if err != nil {
			errs = append(errs, err)
			break
		}
		add(c.Info, c.record, !staging && c.file != last, orphan{c.file, isOpen, func(ctx context.Context) error { return m.blobs.Delete(ctx, c.Key) }})
		last = c.file
	}
	if staging {
		for c, err := range m.withRecords(ctx, s.ListStaged(ctx), func(id string) string { return id }) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			add(c.Info, c.record, true, orphan{c.file, isOpen, func(ctx context.Context) error { return s.AbortStaged(ctx, c.Key) }})
		}
	}
	if d, ok := blob.As[blob.DirectUploader](m.blobs); ok {
		for u, err := range d.ListDirect(ctx) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			x := orphan{strings.TrimPrefix(u.Key, objectPrefix), func(f *File) bool { return isOpen(f) && f.UploadID == u.ID },
				func(ctx context.Context) error { return d.AbortDirect(ctx, u) }}
			f, err := m.store.Get(ctx, x.file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
				continue
			}
			add(blob.Info{ModTime: u.Begun}, f, true, x)
		}
	}
	return o, errors.Join(append(errs, ctx.Err())...)
}

// needs reports whether an object is the content of a file.
func needs(f *File, object string) bool { return f.State != Expired && f.Object == object }

// A stored is an object or staging area with the record of its file.
type stored struct {
	blob.Info
	file   string // key of the record
	record *File  // nil: no record
}

// withRecords yields the elements of a list with their records, which it reads in
// batches.
func (m *Manager) withRecords(ctx context.Context, list iter.Seq2[blob.Info, error], file func(key string) string) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		var page []stored
		flush := func() bool {
			keys := make([]string, len(page))
			for i, c := range page {
				keys[i] = c.file
			}
			records, err := m.store.GetAll(ctx, keys)
			if err != nil {
				yield(stored{}, fmt.Errorf("file records: %w", err))
				return false
			}
			for _, c := range page {
				c.record = records[c.file]
				if !yield(c, nil) {
					return false
				}
			}
			page = page[:0]
			return true
		}
		for i, err := range list {
			if err != nil {
				yield(stored{}, err)
				return
			}
			page = append(page, stored{Info: i, file: file(i.Key)})
			if len(page) == batchSize && !flush() {
				return
			}
		}
		if len(page) > 0 {
			flush()
		}
	}
}

// batchSize is the number of records that are read or changed at a time.
const batchSize = 1000
