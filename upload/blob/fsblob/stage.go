package fsblob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/filewright/filewright/upload/blob"
)

// Stage implements blob.Stager. An area is a sparse file. Stage checks the free disk
// space, but only WriteStaged allocates it, so that announcing large objects does not
// fill the disk.
func (s *Store) Stage(ctx context.Context, id string, size int64) error {
	if err := checkID(ctx, "stage", id); err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("stage %s: size %d: %w", id, size, fs.ErrInvalid)
	}
	if err := s.stage(id, size); err != nil {
		return fail("stage", id, err)
	}
	return nil
}

func (s *Store) stage(id string, size int64) error {
	f, err := s.root.OpenFile(stageDir+"/"+id, os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() != size {
		err := fmt.Errorf("an object of another size exists: %w", fs.ErrInvalid)
		if st.Size() == 0 {
			if err = checkRoom(f, size); err == nil {
				err = f.Truncate(size)
			}
			if err != nil {
				err = errors.Join(err, s.root.Remove(stageDir+"/"+id))
			}
		}
		if err != nil {
			return err
		}
	}
	if size <= smallArea {
		return nil // see writeStaged
	}
	return s.syncDir(stageDir)
}

// smallArea is the largest size, in bytes, of an area whose name is synced after each write, and not
// when it is created. After the content, that costs ext4 and xfs no second commit of their journal.
const smallArea = 1 << 20

// minReserve is the size below which a range is not worth a system call to reserve
// space.
const minReserve = 1 << 20

// WriteStaged implements blob.Stager. It reserves disk space before it reads r.
func (s *Store) WriteStaged(ctx context.Context, id string, off int64, r io.Reader, n int64) (int64, error) {
	if err := checkID(ctx, "write", id); err != nil {
		return 0, err
	}
	k, err := s.writeStaged(ctx, id, off, r, n)
	if err != nil {
		return k, fail("write", id, err)
	}
	return k, nil
}

func (s *Store) writeStaged(ctx context.Context, id string, off int64, r io.Reader, n int64) (int64, error) {
	f, err := s.root.OpenFile(stageDir+"/"+id, os.O_WRONLY, fileMode)
	if err != nil {
		return 0, err
	}
	defer f.Close() // nothing can fail after the sync
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if off < 0 || n < 0 || off > st.Size() || n > st.Size()-off {
		return 0, fmt.Errorf("range %d+%d of %d: %w", off, n, st.Size(), fs.ErrInvalid)
	}
	unreserve := func(off, k int64) {
		if n >= minReserve && k > 0 && !s.shared {
			punch(f, off, k)
		}
	}
	if err := reserve(f, off, n); err != nil {
		unreserve(off, n)
		return 0, err
	}
	k, err := s.receive(ctx, f, st.Size(), off, r, n)
	if err == nil && k > 0 {
		err = syncData(f)
	}
	if err == nil && st.Size() <= smallArea {
		err = s.syncDir(stageDir)
	}
	switch {
	case err != nil:
		unreserve(off, n) // unused
	case k < n:
		unreserve(off+k, n-k)
	}
	return k, err
}

// CommitStaged implements blob.Stager.
func (s *Store) CommitStaged(ctx context.Context, id, key string, pieces []blob.Piece) error {
	if err := checkID(ctx, "commit", id); err != nil {
		return err
	}
	if err := check(ctx, "commit", key); err != nil {
		return err
	}
	if err := s.commitStaged(ctx, id, key, pieces); err != nil {
		return fail("commit", id, err)
	}
	return nil
}

func (s *Store) commitStaged(ctx context.Context, id, key string, pieces []blob.Piece) error {
	name := stageDir + "/" + id
	area, err := s.root.OpenFile(name, os.O_RDWR, fileMode)
	if err != nil {
		return err
	}
	defer area.Close()

	// If the staged pieces are in place, only the others have to be filled in.
	// Otherwise the area must not change, in case the commit fails.
	var size int64
	inPlace := true
	for _, p := range pieces {
		if p.Key == "" && p.Size > 0 && p.Off != size {
			inPlace = false
		}
		size += p.Size
	}
	if inPlace {
		changed, err := s.join(ctx, area, size, area, pieces)
		if err != nil {
			return err
		}
		if changed || size == 0 { // otherwise WriteStaged has synced all of it
			if err := area.Sync(); err != nil {
				return err
			}
		}
		if err := s.rename(name, key); err != nil {
			return err
		}
	} else {
		t, err := s.temp()
		if err != nil {
			return err
		}
		if _, err := s.join(ctx, t.File, size, area, pieces); err != nil {
			t.discard()
			return err
		}
		if err := t.publish(key); err != nil {
			return err
		}
		_ = s.root.Remove(name) // a sweep removes leftovers
	}
	for _, p := range pieces {
		if p.Key != "" {
			_ = s.Delete(ctx, p.Key) // a sweep removes leftovers
		}
	}
	return nil
}

// join copies pieces to their places in dst, unless they are there already, and sets
// its size. It reports whether it changed dst.
func (s *Store) join(ctx context.Context, dst *os.File, size int64, area *os.File, pieces []blob.Piece) (changed bool, err error) {
	var off int64
	for _, p := range pieces {
		switch {
		case p.Size == 0:
		case p.Key != "":
			changed = true
			_, err = s.appendObject(ctx, dst, off, p.Key, p.Size)
		case dst != area:
			changed = true
			err = s.copyRange(ctx, dst, off, area, p.Off, p.Size)
		}
		if err != nil {
			return changed, err
		}
		off += p.Size
	}
	st, err := dst.Stat()
	if err != nil || st.Size() == size {
		return changed, err
	}
	return true, dst.Truncate(size)
}

// AbortStaged implements blob.Stager.
func (s *Store) AbortStaged(ctx context.Context, id string) error {
	if err := checkID(ctx, "abort", id); err != nil {
		return err
	}
	err := s.root.Remove(stageDir + "/" + id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail("abort", id, err)
	}
	return nil
}

// ListStaged implements blob.Stager.
func (s *Store) ListStaged(ctx context.Context) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		names, err := s.readDir(stageDir)
		if err != nil {
			yield(blob.Info{}, fail("list", stageDir, err))
			return
		}
		for _, n := range names {
			if err := ctx.Err(); err != nil {
				yield(blob.Info{}, err)
				return
			}
			st, err := s.root.Lstat(stageDir + "/" + n)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				yield(blob.Info{}, fail("list", n, err))
				return
			}
			if !yield(blob.Info{Key: n, Size: st.Size(), ModTime: st.ModTime()}, nil) {
				return
			}
		}
	}
}
